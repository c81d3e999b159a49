/* safetensors: 8 bytes of header length, the header (JSON), then the tensors' bytes without gaps.
 *
 * Reading trusts nothing: every number is checked against the file before it is used. Where each
 * tensor lies aligned the file is mapped, copied on write, and read as far as it is looked at;
 * else, since the format promises no alignment, tensors are read one by one into aligned memory. A
 * mapped file that is cut short meanwhile is a SIGBUS (attest/main.c). Writing orders tensors as
 * the safetensors library does (element size descending, then name) and pads the header to 8. It
 * knows nothing of attention. SPDX-License-Identifier: MIT */
#include "oracle.h"
#include "ref.h"
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_LIMIT 100000000 /* the safetensors library's own */
#define FAR ((int64_t)1 << 48) /* elements, 0 counted as 1: no stride of them overflows */
#define MOST 4096              /* tensors: a case has some thirty */
#define ALIGN 64

bool at_say(struct at_said *said, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(said->text, sizeof said->text, format, list);
    va_end(list);
    return false;
}

/* -- Dtypes ---------------------------------------------------------------------------------- */

static const struct stored {
    const char *name;
    enum at_dtype dtype;
    int bytes;
    bool boolean;
} stored[] = {
    {"F64", AT_F64, 8, false},         {"F32", AT_F32, 4, false},
    {"F16", AT_F16, 2, false},         {"BF16", AT_BF16, 2, false},
    {"F8_E4M3", AT_F8_E4M3, 1, false}, {"F8_E5M2", AT_F8_E5M2, 1, false},
    {"U8", AT_U8, 1, false},           {"BOOL", AT_U8, 1, true},
    {"I32", AT_I32, 4, false},         {"I64", AT_I64, 8, false},
};
#define STORED (sizeof stored / sizeof *stored)

static const struct stored *stored_named(const char *name)
{
    for (size_t k = 0; k < STORED; k++)
        if (strcmp(stored[k].name, name) == 0)
            return &stored[k];
    return NULL;
}

static const struct stored *stored_as(enum at_dtype dtype, bool boolean)
{
    for (size_t k = 0; k < STORED; k++)
        if (stored[k].dtype == dtype && stored[k].boolean == boolean)
            return &stored[k];
    return NULL;
}

const char *at_dtype_stored(enum at_dtype dtype)
{
    const struct stored *x = stored_as(dtype, false);
    return x ? x->name : "none";
}

/* -- The header ------------------------------------------------------------------------------ */

/* What a reader knows while it reads; offsets count from the end of the header. */
struct reader {
    const char *path;
    FILE *file;
    int64_t data, size; /* where the tensors start; how many bytes they have */
    int64_t *begin;
    struct at_said *said;
};

static bool header_bytes(struct reader *r, char **text, int64_t *length)
{
    struct stat s;
    unsigned char b[8];
    if (fstat(fileno(r->file), &s) != 0 || !S_ISREG(s.st_mode))
        return at_say(r->said, "%s: not a regular file", r->path);
    if (s.st_size < 8 || fread(b, 1, 8, r->file) != 8)
        return at_say(r->said, "%s: truncated: found %lld bytes, expected 8 of header length first",
                      r->path, (long long)s.st_size);
    uint64_t n = 0;
    for (int k = 8; k-- > 0;)
        n = n << 8 | b[k];
    if (n > (uint64_t)s.st_size - 8)
        return at_say(r->said,
                      "%s: header length %llu found, expected at most the %lld bytes that "
                      "follow: truncated, or no safetensors file",
                      r->path, (unsigned long long)n, (long long)s.st_size - 8);
    if (n > HEADER_LIMIT)
        return at_say(r->said, "%s: header of %llu bytes found, expected at most %d", r->path,
                      (unsigned long long)n, HEADER_LIMIT);
    *length = (int64_t)n;
    r->data = 8 + *length;
    r->size = (int64_t)s.st_size - r->data;
    *text = malloc((size_t)n + 1);
    if (!*text)
        return at_say(r->said, "%s: no memory for the header", r->path);
    if (fread(*text, 1, (size_t)n, r->file) != (size_t)n)
        return at_say(r->said, "%s: the header could not be read: %s", r->path, strerror(errno));
    return true;
}

static json_t *header_read(struct reader *r)
{
    char *text = NULL;
    int64_t length = 0;
    json_error_t error;
    json_t *header = NULL;
    if (header_bytes(r, &text, &length)) {
        header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
        if (!header)
            at_say(r->said, "%s: the header is not valid JSON: %s (byte %d)", r->path, error.text,
                   8 + error.position);
        else if (!json_is_object(header)) {
            at_say(r->said, "%s: the header is no JSON object", r->path);
            json_decref(header);
            header = NULL;
        }
    }
    free(text);
    return header;
}

/* -- One tensor ------------------------------------------------------------------------------ */

static bool read_shape(const struct reader *r, const json_t *shape, struct at_tensor *t)
{
    if (!json_is_array(shape) || json_array_size(shape) > 4)
        return at_say(r->said, "%s: tensor %s: shape %s, expected a list of at most 4 extents",
                      r->path, t->name, shape ? "of another kind or rank" : "absent");
    t->rank = (int)json_array_size(shape);
    int64_t room = FAR, elements = 1;
    for (int k = 0; k < t->rank; k++) {
        const json_t *d = json_array_get(shape, (size_t)k);
        t->dim[k] = json_is_integer(d) ? json_integer_value(d) : -1;
        if (t->dim[k] < 0)
            return at_say(r->said, "%s: tensor %s: extent %d is no whole number >= 0", r->path,
                          t->name, k);
        if (t->dim[k] > room)
            return at_say(r->said, "%s: tensor %s: the product of its extents overflows 2^48",
                          r->path, t->name);
        room /= t->dim[k] > 0 ? t->dim[k] : 1;
        elements *= t->dim[k];
    }
    t->bytes *= elements;
    return true;
}

static bool read_offsets(const struct reader *r, const json_t *at, struct at_tensor *t,
                         int64_t *begin)
{
    const json_t *b = json_array_get(at, 0), *e = json_array_get(at, 1);
    if (json_array_size(at) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return at_say(r->said, "%s: tensor %s: data_offsets are no two whole numbers", r->path,
                      t->name);
    long long from = json_integer_value(b), to = json_integer_value(e);
    if (from < 0 || to < from || to > r->size)
        return at_say(r->said,
                      "%s: tensor %s: bytes %lld..%lld found, expected within the file's "
                      "%lld: truncated or corrupt",
                      r->path, t->name, from, to, (long long)r->size);
    if (to - from != t->bytes)
        return at_say(r->said,
                      "%s: tensor %s: %lld bytes found, expected %lld of its shape and "
                      "dtype",
                      r->path, t->name, to - from, (long long)t->bytes);
    *begin = from;
    return true;
}

static bool read_entry(const struct reader *r, const char *name, const json_t *entry,
                       struct at_tensor *t, int64_t *begin)
{
    if (strlen(name) >= sizeof t->name)
        return at_say(r->said, "%s: tensor %.40s...: name of %zu bytes, expected fewer than %zu",
                      r->path, name, strlen(name), sizeof t->name);
    strcpy(t->name, name);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const struct stored *s = dtype ? stored_named(dtype) : NULL;
    if (!s)
        return at_say(r->said,
                      "%s: tensor %s: dtype %.20s found, expected F64 F32 F16 BF16 F8_E4M3 "
                      "F8_E5M2 U8 BOOL I32 or I64",
                      r->path, name, dtype ? dtype : "absent");
    t->dtype = s->dtype;
    t->boolean = s->boolean;
    t->bytes = s->bytes;
    return read_shape(r, json_object_get(entry, "shape"), t) &&
           read_offsets(r, json_object_get(entry, "data_offsets"), t, begin);
}

/* The one metadata entry that is ours; others (torch writes "format") are left alone. */
static bool read_metadata(const struct reader *r, const json_t *all, struct at_tensors *x)
{
    const char *key;
    json_t *value;
    if (!json_is_object(all))
        return at_say(r->said, "%s: __metadata__ is no object of texts", r->path);
    json_object_foreach((json_t *)all, key, value)
    {
        if (!json_is_string(value))
            return at_say(r->said, "%s: metadata %.60s is no text", r->path, key);
        if (strcmp(key, "attest") == 0 && !(x->attest = strdup(json_string_value(value))))
            return at_say(r->said, "%s: no memory", r->path);
    }
    return true;
}

static bool read_entries(const struct reader *r, json_t *header, struct at_tensors *x)
{
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (!read_metadata(r, entry, x))
                return false;
            continue;
        }
        if (!read_entry(r, name, entry, &x->tensor[x->n], &r->begin[x->n]))
            return false;
        x->n++;
    }
    return true;
}

/* -- The bytes ------------------------------------------------------------------------------- */

/* The tensor at `from` that is not yet placed; an empty one first, since it ends there too. */
static int64_t starting_at(const struct reader *r, const struct at_tensors *x, int64_t from)
{
    int64_t found = -1;
    for (int64_t k = 0; k < x->n; k++)
        if (r->begin[k] == from && !x->tensor[k].data && (found < 0 || x->tensor[k].bytes == 0))
            found = k;
    return found;
}

/* The whole file, if every tensor has bytes and stands where its elements may. */
static char *mapped(const struct reader *r, struct at_tensors *x)
{
    int64_t bytes = r->data + r->size;
    for (int64_t k = 0; k < x->n; k++)
        if (x->tensor[k].bytes == 0 ||
            (r->data + r->begin[k]) % stored_as(x->tensor[k].dtype, x->tensor[k].boolean)->bytes)
            return NULL;
    int private_pages = PROT_READ | PROT_WRITE;
    void *all = mmap(NULL, (size_t)bytes, private_pages, MAP_PRIVATE, fileno(r->file), 0);
    if (all == MAP_FAILED)
        return NULL;
    x->memory = all, x->mapped = bytes;
    return (char *)all + r->data;
}

/* Room for all tensors, no two at one address, each aligned to 64. */
static char *allocated(const struct reader *r, struct at_tensors *x)
{
    int64_t total = ALIGN;
    for (int64_t k = 0; k < x->n; k++)
        total += (x->tensor[k].bytes + ALIGN) / ALIGN * ALIGN;
    x->memory = malloc((size_t)total);
    if (!x->memory)
        at_say(r->said, "%s: no memory for %lld bytes", r->path, (long long)total);
    return x->memory ? (char *)x->memory + (ALIGN - (uintptr_t)x->memory % ALIGN) % ALIGN : NULL;
}

static bool read_tensor(const struct reader *r, struct at_tensor *y, char *to)
{
    y->data = to;
    return fread(to, 1, (size_t)y->bytes, r->file) == (size_t)y->bytes ||
           at_say(r->said, "%s: tensor %s could not be read: %s", r->path, y->name,
                  ferror(r->file) ? strerror(errno) : "the file ends");
}

/* Walks the file from front to back: each tensor must start where the last one ended. */
static bool read_data(const struct reader *r, struct at_tensors *x)
{
    int64_t at = 0;
    char *file = mapped(r, x), *to = file ? file : allocated(r, x);
    if (!to)
        return false;
    for (int64_t k = 0; k < x->n; k++) {
        int64_t t = starting_at(r, x, at);
        if (t < 0)
            return at_say(r->said,
                          "%s: no tensor starts at byte %lld of the data, expected one: "
                          "tensors overlap or leave a hole",
                          r->path, (long long)at);
        struct at_tensor *y = &x->tensor[t];
        if (file)
            y->data = file + at;
        else if (!read_tensor(r, y, to))
            return false;
        to += (y->bytes + ALIGN) / ALIGN * ALIGN;
        at += y->bytes;
    }
    if (at != r->size)
        return at_say(r->said, "%s: %lld bytes of data found, expected %lld: trailing bytes",
                      r->path, (long long)r->size, (long long)at);
    return true;
}

bool at_tensors_read(const char *path, struct at_tensors *x, struct at_said *said)
{
    struct reader r = {.path = path, .said = said};
    json_t *header = NULL;
    bool done = false;
    *x = (struct at_tensors){0};
    r.file = fopen(path, "rb");
    if (!r.file)
        return at_say(said, "%s: cannot be opened: %s", path, strerror(errno));
    header = header_read(&r);
    if (header) {
        size_t n = json_object_size(header) + 1;
        x->tensor = calloc(n, sizeof *x->tensor);
        r.begin = calloc(n, sizeof *r.begin);
        if (n > MOST)
            at_say(said, "%s: %zu tensors found, expected fewer than %d", path, n, MOST);
        else if (!x->tensor || !r.begin)
            at_say(said, "%s: no memory", path);
        else
            done = read_entries(&r, header, x) && read_data(&r, x);
    }
    if (!done)
        at_tensors_free(x);
    json_decref(header);
    free(r.begin);
    fclose(r.file);
    return done;
}

void at_tensors_free(struct at_tensors *x)
{
    free(x->tensor);
    free(x->attest);
    if (x->mapped > 0)
        munmap(x->memory, (size_t)x->mapped);
    else
        free(x->memory);
    *x = (struct at_tensors){0};
}

const struct at_tensor *at_tensors_find(const struct at_tensors *x, const char *name)
{
    for (int64_t k = 0; k < x->n; k++)
        if (strcmp(x->tensor[k].name, name) == 0)
            return &x->tensor[k];
    return NULL;
}

struct at_tensor at_tensor_of(const char *name, enum at_dtype dtype, int rank, const int64_t *dim,
                              void *data)
{
    struct at_tensor t = {.dtype = dtype, .rank = rank, .data = data};
    snprintf(t.name, sizeof t.name, "%s", name);
    t.bytes = at_dtype_size(dtype);
    for (int k = 0; k < rank; k++) {
        t.dim[k] = dim[k];
        t.bytes *= dim[k];
    }
    return t;
}

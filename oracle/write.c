/* Files written whole or not at all, and safetensors among them.
 * SPDX-License-Identifier: MIT */
#include "oracle.h"
#include "ref.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- All or nothing -------------------------------------------------------------------------- */

struct piece {
    const void *data;
    int64_t bytes;
};

static bool put(int to, const struct piece *piece, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const char *from = piece[k].data;
        for (int64_t left = piece[k].bytes; left > 0;) {
            ssize_t put = write(to, from, (size_t)left);
            if (put < 0 && errno == EINTR)
                continue;
            if (put <= 0)
                return false;
            from += put;
            left -= put;
        }
    }
    return true;
}

/* A name that exists and is no regular file (/dev/full, a pipe) is written in place: a rename would
 * replace it. */
static bool in_place(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

static bool write_pieces(const char *path, const struct piece *piece, int64_t n,
                         struct at_said *said)
{
    char beside[4096];
    bool direct = in_place(path);
    int length = snprintf(beside, sizeof beside, "%s.%ld.part", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof beside)
        return at_say(said, "%.200s...: the name is too long", path);
    int to = direct ? open(path, O_WRONLY) : open(beside, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (to < 0)
        return at_say(said, "%s: cannot be written: %s", path, strerror(errno));
    bool done = put(to, piece, n) && (direct || fsync(to) == 0);
    int error = errno;
    if (close(to) != 0 && done)
        error = errno, done = false;
    if (done && !direct && rename(beside, path) != 0)
        error = errno, done = false;
    if (done)
        return true;
    if (!direct)
        unlink(beside);
    return at_say(said, "%s: could not be written whole, nothing is left of it: %s", path,
                  strerror(error));
}

bool at_file_write(const char *path, const void *data, int64_t bytes, struct at_said *said)
{
    struct piece all = {data, bytes};
    return write_pieces(path, &all, 1, said);
}

/* -- safetensors ----------------------------------------------------------------------------- */

static int by_size_then_name(const void *x, const void *y)
{
    const struct at_tensor *a = *(const struct at_tensor *const *)x;
    const struct at_tensor *b = *(const struct at_tensor *const *)y;
    int64_t p = at_dtype_size(a->dtype), q = at_dtype_size(b->dtype);
    return p != q ? (p < q) - (p > q) : strcmp(a->name, b->name);
}

static json_t *entry_of(const struct at_tensor *t, int64_t *at)
{
    json_t *shape = json_array();
    for (int k = 0; k < t->rank; k++)
        json_array_append_new(shape, json_integer(t->dim[k]));
    json_t *entry =
        json_pack("{s:s, s:o, s:[I,I]}", "dtype", t->boolean ? "BOOL" : at_dtype_stored(t->dtype),
                  "shape", shape, "data_offsets", (json_int_t)*at, (json_int_t)(*at + t->bytes));
    *at += t->bytes;
    return entry;
}

/* The header's text, padded with spaces so that the data starts at a multiple of 8; NULL: no
 * memory, or a name that is no UTF-8. */
static char *header_of(const struct at_tensors *x, const struct at_tensor **order)
{
    json_t *header = json_object();
    int64_t at = 0;
    int bad = 0;
    if (x->attest)
        bad |= json_object_set_new(header, "__metadata__", json_pack("{s:s}", "attest", x->attest));
    for (int64_t k = 0; k < x->n; k++)
        bad |= json_object_set_new(header, order[k]->name, entry_of(order[k], &at));
    char *text = bad ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text)
        return NULL;
    size_t n = strlen(text), padded = (n + 7) / 8 * 8;
    char *grown = realloc(text, padded + 1);
    if (!grown) {
        free(text);
        return NULL;
    }
    memset(grown + n, ' ', padded - n);
    grown[padded] = 0;
    return grown;
}

static bool write_ordered(const char *path, const struct at_tensors *x,
                          const struct at_tensor **order, struct piece *piece, struct at_said *said)
{
    unsigned char length[8];
    for (int64_t k = 0; k < x->n; k++)
        order[k] = &x->tensor[k];
    qsort(order, (size_t)x->n, sizeof *order, by_size_then_name);
    char *header = header_of(x, order);
    if (!header)
        return at_say(said, "%s: no memory for the header", path);
    uint64_t n = strlen(header);
    for (int k = 0; k < 8; k++)
        length[k] = (unsigned char)(n >> 8 * k);
    piece[0] = (struct piece){length, 8};
    piece[1] = (struct piece){header, (int64_t)n};
    for (int64_t k = 0; k < x->n; k++)
        piece[2 + k] = (struct piece){order[k]->data, order[k]->bytes};
    bool done = write_pieces(path, piece, 2 + x->n, said);
    free(header);
    return done;
}

bool at_tensors_write(const char *path, const struct at_tensors *x, struct at_said *said)
{
    const struct at_tensor **order = calloc((size_t)x->n + 1, sizeof *order);
    struct piece *piece = calloc((size_t)x->n + 2, sizeof *piece);
    bool done = order && piece ? write_ordered(path, x, order, piece, said)
                               : at_say(said, "%s: no memory", path);
    free(order);
    free(piece);
    return done;
}

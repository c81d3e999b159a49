/* Results as others store them, made into ours: lse natural and placed like q, rows that see
 * nothing marked (0, -inf). What needs no change stays a view of the file's bytes; what does is
 * copied, so that the file can be written again as it was.
 *
 * A base-2 lse times ln 2 is rounded once to its own dtype, which the judge takes into account.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "case.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A result in the making. */
struct making {
    struct at_case *x;
    const char *path;
    const json_t *meta; /* of the file that holds it */
    struct at_said *said;
    const struct at_tensor *out, *lse;
};

static bool refuse(const struct making *m, const struct at_tensor *t, const int64_t *want, int rank)
{
    char found[80] = "", expected[80] = "";
    int n = 0, k = 0;
    for (int d = 0; d < t->rank; d++)
        n += snprintf(found + n, sizeof found - (size_t)n, d ? ",%lld" : "%lld",
                      (long long)t->dim[d]);
    for (int d = 0; d < rank; d++)
        k += snprintf(expected + k, sizeof expected - (size_t)k, d ? ",%lld" : "%lld",
                      (long long)want[d]);
    return at_say(m->said, "%s: tensor %s: extents (%s) found, expected (%s)", m->path, t->name,
                  found, expected);
}

static bool has_extents(const struct at_tensor *t, const int64_t *want, int rank)
{
    bool same = t->rank == rank;
    for (int d = 0; same && d < rank; d++)
        same = t->dim[d] == want[d];
    return same;
}

static bool read_out(const struct making *m, struct at_view *to)
{
    const int64_t *q = m->x->a.q.dim, Dv = m->x->a.v.dim[3];
    const char *layout = at_meta_text(m->meta, "layout", m->x->layout);
    bool packed = strcmp(layout, "thd") == 0, rows = strcmp(layout, "bshd") == 0;
    int64_t four[4] = {q[0], rows ? q[2] : q[1], rows ? q[1] : q[2], Dv};
    int64_t three[3] = {q[2], q[1], Dv};
    if (!at_is_float(m->out->dtype))
        return at_say(m->said, "%s: tensor %s: dtype %s found, expected a float type", m->path,
                      m->out->name, at_dtype_stored(m->out->dtype));
    if (packed != (strcmp(m->x->layout, "thd") == 0))
        return at_say(m->said, "%s: layout %s found, but the case's rows are %s", m->path, layout,
                      m->x->layout);
    if (!has_extents(m->out, packed ? three : four, packed ? 3 : 4))
        return refuse(m, m->out, packed ? three : four, packed ? 3 : 4);
    return at_case_view(m->out, m->path, layout, to, m->said);
}

/* -- Layouts of the lse ---------------------------------------------------------------------- */

/* padded (B,Hq,Sq or more) of packed rows: gathered to where q has them; others are -inf. */
static bool gather(const struct making *m, struct at_view *to)
{
    const struct at_attention *a = &m->x->a;
    struct at_sizes z = at_sizes(a);
    const int64_t *d = m->lse->dim;
    int64_t T = a->q.dim[2], want[3] = {z.B, z.Hq, z.Sq};
    if (m->lse->rank != 3 || d[0] != z.B || d[1] != z.Hq || d[2] < z.Sq)
        return refuse(m, m->lse, want, 3);
    struct at_view from = at_bhsd(m->lse->data, m->lse->dtype, z.B, z.Hq, d[2], 1);
    from.dim[2] = z.Sq; /* some libraries pad further */
    void *space = at_case_alloc(m->x, z.Hq * T * at_dtype_size(m->lse->dtype));
    if (!space)
        return at_say(m->said, "%s: no memory", m->path);
    *to = at_lse_ht(space, m->lse->dtype, T, z.Hq);
    for (int64_t t = 0; t < z.Hq * T; t++)
        at_store(to, t, -(double)INFINITY);
    enum at_status status = at_unpad(a, &from, to);
    return status == AT_OK ||
           at_say(m->said, "%s: tensor %s: %s", m->path, m->lse->name, at_strstatus(status));
}

static bool read_lse(const struct making *m, struct at_view *to)
{
    const int64_t *q = m->x->a.q.dim;
    bool packed = strcmp(m->x->layout, "thd") == 0;
    const char *layout = at_meta_text(m->meta, "lse.layout", packed ? "ht" : "bhs");
    int64_t bhs[3] = {q[0], q[1], q[2]}, ht[2] = {q[1], q[2]}, th[2] = {q[2], q[1]};
    void *data = m->lse->data;
    enum at_dtype dtype = m->lse->dtype;
    if (dtype != AT_F64 && dtype != AT_F32)
        return at_say(m->said, "%s: tensor %s: dtype %s found, expected F64 or F32", m->path,
                      m->lse->name, at_dtype_stored(dtype));
    if (packed == (strcmp(layout, "bhs") == 0))
        return at_say(m->said, "%s: lse layout %s found, expected %s", m->path, layout,
                      packed ? "ht, th or padded" : "bhs");
    if (strcmp(layout, "padded") == 0)
        return gather(m, to);
    *to = at_bhsd(data, dtype, q[0], q[1], q[2], 1);
    if (!packed)
        return has_extents(m->lse, bhs, 3) || refuse(m, m->lse, bhs, 3);
    if (strcmp(layout, "ht") == 0)
        return has_extents(m->lse, ht, 2) || refuse(m, m->lse, ht, 2);
    *to = at_lse_th(data, dtype, q[2], q[1]);
    return has_extents(m->lse, th, 2) || refuse(m, m->lse, th, 2);
}

/* -- Bases and marks ------------------------------------------------------------------------- */

/* A contiguous copy, in the same order of extents. */
static bool copied(const struct making *m, struct at_view *x)
{
    int64_t n = x->dim[0] * x->dim[1] * x->dim[2] * x->dim[3] * at_dtype_size(x->dtype);
    void *space = at_case_alloc(m->x, n);
    if (!space)
        return at_say(m->said, "%s: no memory", m->path);
    if (n > 0)
        memcpy(space, x->data, (size_t)n);
    x->data = space;
    return true;
}

static void to_natural(struct at_view *lse)
{
    int64_t n = lse->dim[0] * lse->dim[1] * lse->dim[2];
    for (int64_t t = 0; t < n; t++)
        at_store(lse, t, at_load(lse, t) * 0x1.62e42fefa39efp-1); /* ln 2 */
}

/* The number that stands in the lse of an empty row. */
static double mark_of(const json_t *meta)
{
    const char *text = at_meta_text(meta, "empty.lse", "-inf");
    if (json_is_number(at_meta_get(meta, "empty.lse")))
        return at_meta_number(meta, "empty.lse", 0);
    return strcmp(text, "zero") == 0 ? 0 : strcmp(text, "+inf") == 0 ? INFINITY : -INFINITY;
}

static bool has_sink(const struct at_attention *a, int64_t h)
{
    const struct at_view *s = &a->score.sink;
    return s->data && !at_is_minus_inf(s, at_offset(s, 0, h, 0, 0));
}

/* One empty row: a mark becomes ours; anything else is left to be judged. A finite mark is compared
 * in the dtype of the lse. */
static void unmark(const struct making *m, struct at_result *got, struct at_place p)
{
    const struct at_attention *a = &m->x->a;
    if (strcmp(at_meta_text(m->meta, "empty.out", "zero"), "nan") == 0)
        for (int64_t c = 0; c < got->out.dim[3]; c++) {
            int64_t at = at_row_offset(a, &got->out, p.b, p.h, p.i) + c * got->out.stride[3];
            if (isnan(at_load(&got->out, at)))
                at_store(&got->out, at, 0);
        }
    if (!got->lse.data)
        return;
    double mark = mark_of(m->meta);
    int64_t at = at_row_offset(a, &got->lse, p.b, p.h, p.i);
    if (at_load(&got->lse, at) == (got->lse.dtype == AT_F32 ? (double)(float)mark : mark))
        at_store(&got->lse, at, -(double)INFINITY);
}

/* Rows at or past q_len are empty even with a sink. */
static void unmark_all(const struct making *m, struct at_result *got)
{
    const struct at_attention *a = &m->x->a;
    struct at_sizes z = at_sizes(a);
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    for (int64_t t = 0; t < all.n; t++) {
        struct at_place p = at_place_of(a, all, t);
        bool past = p.b < 0 || p.i >= at_rows_of(a, &z, p.b);
        if (past || (!has_sink(a, p.h) && !at_sees(a, &z, p.b, p.h, p.i)))
            unmark(m, got, p);
    }
}

static bool convert(const struct making *m, struct at_result *got)
{
    bool base2 = strcmp(at_meta_text(m->meta, "lse.base", "natural"), "base2") == 0;
    bool nan = strcmp(at_meta_text(m->meta, "empty.out", "zero"), "nan") == 0;
    bool marked = nan || mark_of(m->meta) != -(double)INFINITY;
    if (marked && !copied(m, &got->out))
        return false;
    if (got->lse.data && (marked || base2) && !copied(m, &got->lse))
        return false;
    if (marked) /* before the base: a mark is what the file holds */
        unmark_all(m, got);
    if (got->lse.data && base2)
        to_natural(&got->lse);
    return true;
}

/* -- The whole ------------------------------------------------------------------------------- */

static void say_origin(const json_t *meta, const char *name, struct at_named *to)
{
    const json_t *one = json_object_get(at_meta_get(meta, "results"), name);
    const char *arith = json_string_value(json_object_get(one, "arith"));
    const char *why = json_string_value(json_object_get(one, "why"));
    const char *from = json_string_value(json_object_get(one, "from"));
    snprintf(to->arith, sizeof to->arith, "%s", arith ? arith : "");
    snprintf(to->why, sizeof to->why, "%s", why ? why : "");
    snprintf(to->from, sizeof to->from, "%s", from ? from : "");
}

/* name: "" of tensor out, NAME of out.NAME. */
static bool read_one(struct making *m, const struct at_tensors *file, const char *label,
                     const char *name)
{
    char lse[104];
    struct at_case *x = m->x;
    struct at_named one = {.arith = ""};
    struct at_named *grown = realloc(x->result, (size_t)(x->results + 1) * sizeof *grown);
    if (!grown)
        return at_say(m->said, "%s: no memory", m->path);
    x->result = grown;
    snprintf(lse, sizeof lse, *name ? "lse.%s" : "lse%s", name);
    m->lse = strcmp(at_meta_text(m->meta, "lse.base", "natural"), "none") == 0
                 ? NULL
                 : at_tensors_find(file, lse);
    if (!read_out(m, &one.got.out) || (m->lse && !read_lse(m, &one.got.lse)) ||
        !convert(m, &one.got))
        return false;
    one.base2 = strcmp(at_meta_text(m->meta, "lse.base", "natural"), "base2") == 0;
    const char *left = label ? label : *name ? "" : "out";
    snprintf(one.name, sizeof one.name, "%s%s%s", left, *left && *name ? "." : "", name);
    say_origin(m->meta, name, &one);
    x->result[x->results++] = one;
    return true;
}

/* Every lse and every entry of `results` must have its out. */
static bool check_pairs(const struct making *m, const struct at_tensors *file)
{
    char out[104];
    const char *name;
    json_t *one;
    for (int64_t t = 0; t < file->n; t++) {
        const char *lse = file->tensor[t].name;
        if (strcmp(lse, "lse") != 0 && strncmp(lse, "lse.", 4) != 0)
            continue;
        snprintf(out, sizeof out, "out%s", lse + 3);
        if (!at_tensors_find(file, out))
            return at_say(m->said, "%s: tensor %s: absent, expected beside %s", m->path, out, lse);
    }
    json_object_foreach((json_t *)at_meta_get(m->meta, "results"), name, one)
    {
        snprintf(out, sizeof out, *name ? "out.%s" : "out%s", name);
        if (!at_tensors_find(file, out))
            return at_say(m->said, "%s: tensor %s: absent, but metadata attest tells of it",
                          m->path, out);
    }
    return true;
}

bool at_results_read(struct at_case *x, const struct at_tensors *file, const char *path,
                     const char *label, const json_t *meta, struct at_said *said)
{
    struct making m = {x, path, meta, said, NULL, NULL};
    if (!check_pairs(&m, file))
        return false;
    for (int64_t t = 0; t < file->n; t++) {
        const char *name = file->tensor[t].name;
        m.out = &file->tensor[t];
        if (strcmp(name, "out") != 0 && strncmp(name, "out.", 4) != 0)
            continue;
        if (!read_one(&m, file, label, name[3] ? name + 4 : ""))
            return false;
    }
    return true;
}

/* Do q, k, v of a result's file hold the case's own bytes, where it has them? An output of other
 * inputs is a wrong answer to nothing. */
static bool same_inputs(const struct at_case *x, const struct at_tensors *file, const char *path,
                        struct at_said *said)
{
    static const char *const name[] = {"q", "k", "v"};
    for (int k = 0; k < 3; k++) {
        const struct at_tensor *s = at_tensors_find(&x->file, name[k]);
        const struct at_tensor *t = at_tensors_find(file, name[k]);
        if (t && (t->dtype != s->dtype || t->bytes != s->bytes ||
                  memcmp(t->data, s->data, (size_t)t->bytes) != 0))
            return at_say(said, "%s: tensor %s: differs from that of %s, expected the same bytes",
                          path, name[k], x->path);
    }
    return true;
}

/* The file's bytes move to the case, whose views point into them. */
static bool keep_bytes(struct at_case *x, struct at_tensors *file)
{
    struct at_tensors *grown = realloc(x->more, (size_t)(x->nmore + 1) * sizeof *grown);
    if (!grown)
        return false;
    x->more = grown;
    x->more[x->nmore++] = *file;
    *file = (struct at_tensors){0};
    return true;
}

/* The file's name without what follows its dot; its path where that name is taken. */
static void label_of(const struct at_case *x, const char *path, char *label, size_t size)
{
    const char *base = strrchr(path, '/');
    bool taken = false;
    base = base ? base + 1 : path;
    snprintf(label, size, "%.*s", (int)strcspn(base, "."), base);
    for (int64_t k = 0; k < x->results; k++) {
        const char *name = x->result[k].name;
        size_t n = strlen(label);
        taken = taken || (strncmp(name, label, n) == 0 && (name[n] == 0 || name[n] == '.'));
    }
    if (taken)
        snprintf(label, size, "%s", path);
}

bool at_case_add(struct at_case *x, const char *path, const struct at_fields *flags,
                 struct at_said *said)
{
    struct at_tensors file;
    char label[64];
    int64_t had = x->results;
    label_of(x, path, label, sizeof label);
    if (!at_tensors_read(path, &file, said))
        return false;
    json_t *meta = at_meta_read(path, file.attest, flags, false, said);
    const char *conflict = meta ? at_meta_conflict(x->meta, meta) : NULL;
    bool done = meta && same_inputs(x, &file, path, said);
    if (done && conflict)
        done = at_say(said, "%s: metadata attest: field \"%s\" contradicts that of %s", path,
                      conflict, x->path);
    done = done && at_results_read(x, &file, path, label, meta, said);
    if (done && x->results == had)
        done = at_say(said, "%s: tensor out: absent, expected a result", path);
    if (done && !keep_bytes(x, &file))
        done = at_say(said, "%s: no memory", path);
    if (!done)
        x->results = had;
    json_decref(meta);
    at_tensors_free(&file);
    return done;
}

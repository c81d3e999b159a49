/* One row of a case as a case of its own: what a bug report should carry.
 *
 * The row keeps its position and its keys from key 0 (tiles are counted from there) to the last
 * that length, window and causality leave it. What the row does not see among them stays hidden, by
 * the same window, mask and bias. Results are ours by then: lse natural.
 *
 * SPDX-License-Identifier: MIT */
#include "case.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

/* The small case in the making. */
struct row_case {
    const struct at_case *from;
    struct at_place p;
    struct at_sizes z;
    int64_t n; /* keys */
    struct at_tensors to;
    struct at_tensor tensor[MOST];
    bool full; /* memory ran out */
};

/* A tensor of n elements, `rows` rows of `columns` at_offset steps apart; returned for filling. */
static char *add(struct row_case *r, const char *name, enum at_dtype dtype, int rank, int64_t S,
                 int64_t C)
{
    int64_t four[4] = {1, 1, S, C}, one = 1;
    char *data = calloc(1, (size_t)(S * C * at_dtype_size(dtype) + 1));
    if (!data || r->to.n == MOST) {
        free(data);
        r->full = true;
        return NULL;
    }
    r->to.tensor[r->to.n++] = at_tensor_of(name, dtype, rank, rank == 1 ? &one : four, data);
    return data;
}

static void copy(char *to, int64_t k, const struct at_view *x, int64_t at)
{
    size_t size = (size_t)at_dtype_size(x->dtype);
    if (to)
        memcpy(to + (size_t)k * size, (const char *)x->data + (size_t)at * size, size);
}

/* A row of q or of a result. */
static void add_row(struct row_case *r, const char *name, const struct at_view *x, int rank)
{
    int64_t C = x->dim[3], at = at_row_offset(&r->from->a, x, r->p.b, r->p.h, r->p.i);
    char *to = add(r, name, x->dtype, rank, 1, C);
    for (int64_t c = 0; c < C; c++)
        copy(to, c, x, at + c * x->stride[3]);
}

/* Keys 0..n-1 of k or v. */
static void add_keys(struct row_case *r, const char *name, const struct at_view *x)
{
    int64_t C = x->dim[3], g = r->p.h / r->z.group;
    char *to = add(r, name, x->dtype, 4, r->n, C);
    for (int64_t j = 0; j < r->n; j++) {
        int64_t at = at_key_offset(&r->from->a, x, r->p.b, g, j);
        for (int64_t c = 0; c < C; c++)
            copy(to, j * C + c, x, at + c * x->stride[3]);
    }
}

/* What belongs to (row, key) pairs. */
static void add_pairs(struct row_case *r, const char *name, const struct at_view *x)
{
    char *to = x->data ? add(r, name, x->dtype, 4, 1, r->n) : NULL;
    for (int64_t j = 0; to && j < r->n; j++)
        copy(to, j, x, at_offset(x, r->p.b, r->p.h, r->p.i, j));
}

static void add_head(struct row_case *r, const char *name, const struct at_view *x)
{
    char *to = x->data ? add(r, name, x->dtype, 1, 1, 1) : NULL;
    copy(to, 0, x, at_offset(x, 0, r->p.h, 0, 0));
}

/* Descale: rank 3, of rows s..s+n-1 under head h. */
static void add_descale(struct row_case *r, const char *name, const struct at_view *x, int64_t h,
                        int64_t s, int64_t n)
{
    char *to = x->data ? add(r, name, x->dtype, 3, n, 1) : NULL;
    for (int64_t k = 0; to && k < n; k++)
        copy(to, k, x, at_offset(x, r->p.b, h, s + k, 0));
}

/* The draw becomes a mask: its counter depends on the whole case. */
static void add_keep(struct row_case *r)
{
    const struct at_attention *a = &r->from->a;
    char *to = at_drops(a) ? add(r, "keep", AT_U8, 4, 1, r->n) : NULL;
    for (int64_t j = 0; to && j < r->n; j++)
        to[j] = at_kept(a, &r->z, r->p.b, r->p.h, r->p.i, j);
}

static void add_tensors(struct row_case *r, const struct at_named *got, bool absent)
{
    const struct at_attention *a = &r->from->a;
    const struct at_score *s = &a->score;
    int64_t g = r->p.h / r->z.group;
    add_row(r, "q", &a->q, 4);
    add_keys(r, "k", &a->k);
    add_keys(r, "v", &a->v);
    add_head(r, "alibi", &s->alibi);
    add_head(r, "sink", &s->sink);
    if (got)
        add_row(r, "out", &got->got.out, 4);
    if (got && got->got.lse.data)
        add_row(r, "lse", &got->got.lse, 3);
    if (absent) { /* a row at or past q_len, or of no sequence */
        add(r, "q_len", AT_I64, 1, 1, 1);
        return;
    }
    add_pairs(r, "bias", &s->bias);
    add_pairs(r, "mask", &s->mask);
    add_keep(r);
    add_descale(r, "q_descale", &s->qscale, r->p.h, r->p.i, 1);
    add_descale(r, "k_descale", &s->kscale, g, 0, r->n);
    add_descale(r, "v_descale", &s->vscale, g, 0, r->n);
}

static char *metadata(const struct row_case *r, const struct at_named *got, int64_t position)
{
    const struct at_attention *a = &r->from->a;
    char name[200];
    snprintf(name, sizeof name, "%s row %lld,%lld,%lld", r->from->name, (long long)r->p.b,
             (long long)r->p.h, (long long)r->p.i);
    json_t *m = json_pack("{s:i, s:s, s:f, s:I, s:I, s:I}", "spec", 1, "name", name, "scale",
                          a->score.scale, "left", (json_int_t)a->score.left, "right",
                          (json_int_t)a->score.right, "offset", (json_int_t)position);
    if (a->score.softcap > 0)
        json_object_set_new(m, "softcap", json_real(a->score.softcap));
    if (a->dropout.p > 0)
        json_object_set_new(m, "dropout", json_pack("{s:f}", "p", a->dropout.p));
    if (a->plan.compute != AT_DEFAULT)
        json_object_set_new(m, "compute", json_string(at_dtype_name(a->plan.compute)));
    if (got && *got->arith)
        json_object_set_new(m, "results", json_pack("{s:{s:s}}", "", "arith", got->arith));
    char *text = json_dumps(m, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(m);
    return text;
}

bool at_case_write_row(const struct at_case *x, const struct at_named *got, struct at_place place,
                       const char *path, struct at_said *said)
{
    struct row_case r = {.from = x, .p = place, .z = at_sizes(&x->a)};
    bool absent = place.b < 0 || place.i >= at_rows_of(&x->a, &r.z, place.b);
    int64_t position = absent ? 0 : at_position(&x->a, place.b, place.i);
    r.n = absent ? 0 : at_keys(&x->a, &r.z, place.b, place.i).hi;
    r.to.tensor = r.tensor;
    add_tensors(&r, got, absent);
    r.to.attest = metadata(&r, got, position);
    bool done = !r.full && r.to.attest ? at_tensors_write(path, &r.to, said)
                                       : at_say(said, "%s: no memory", path);
    for (int64_t t = 0; t < r.to.n; t++)
        free(r.tensor[t].data);
    free(r.to.attest);
    return done;
}

/* A random descriptor of the whole specification, painted from one number: dtypes, layouts, ragged
 * and paged sequences, windows, masks, bias, sink, descale, dropout, plans. Sizes stay small.
 * SPDX-License-Identifier: MIT */
#ifndef GPU_PROBLEM_H
#define GPU_PROBLEM_H

#include "at_math.h"
#include "attest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, BYTES = 1 << 23 };

struct gpu_problem {
    struct at_attention a;
    struct at_result to;
    int64_t offset[BATCH], q_len[BATCH], kv_len[BATCH], q_start[BATCH], kv_start[BATCH], cut[8];
    int32_t table[4096], indptr[BATCH + 1];
    uint64_t state;
    char *space; /* tensors, then results */
    size_t used;
};

static uint64_t draw(struct gpu_problem *x)
{
    uint64_t z = x->state += 0x9e3779b97f4a7c15u; /* SplitMix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(struct gpu_problem *x, int64_t n) { return (int64_t)(draw(x) % (uint64_t)n); }
static bool once_in(struct gpu_problem *x, int64_t n) { return below(x, n) == 0; }
static double number(struct gpu_problem *x) /* sums of four uniforms: variance 4/3 */
{
    double y = 0;
    for (int k = 0; k < 4; k++)
        y += (double)(draw(x) >> 11) * 0x1p-52 - 1;
    return y;
}

static int size_of(enum at_dtype d)
{
    return d == AT_F64 ? 8 : d == AT_F32 ? 4 : d == AT_F16 || d == AT_BF16 ? 2 : 1;
}

static enum at_dtype a_dtype(struct gpu_problem *x, bool wide)
{
    static const enum at_dtype all[] = {AT_F32,  AT_F32,     AT_F32,     AT_F16,
                                        AT_BF16, AT_F8_E4M3, AT_F8_E5M2, AT_F64};
    return all[below(x, wide ? 8 : 7)];
}

/* dim (d0,d1,d2,d3) in one of three orders, sometimes with gaps; painted. */
static struct at_view tensor(struct gpu_problem *x, enum at_dtype dtype, int64_t d0, int64_t d1,
                             int64_t d2, int64_t d3, double amplitude)
{
    struct at_view v = {x->space + x->used, dtype, {d0, d1, d2, d3}, {0, 0, 0, 0}};
    int order[3][4] = {{3, 2, 1, 0}, {3, 1, 2, 0}, {2, 3, 1, 0}};
    int most = once_in(x, 4) ? 3 : 2, *o = order[below(x, most)];
    int64_t stride = 1;
    for (int k = 0; k < 4; k++) {
        v.stride[o[k]] = stride;
        stride *= v.dim[o[k]] + (once_in(x, 8) ? below(x, 4) : 0);
        stride = stride > 0 ? stride : 1;
    }
    size_t bytes = ((size_t)(stride * size_of(dtype)) + 63) / 64 * 64;
    x->used += bytes;
    if (x->used > BYTES)
        abort();
    memset(v.data, 0xff, bytes); /* gaps are NaN */
    bool dirty = amplitude > 0 && once_in(x, 5);
    for (int64_t b = 0; b < d0; b++)
        for (int64_t h = 0; h < d1; h++)
            for (int64_t s = 0; s < d2; s++)
                for (int64_t c = 0; c < d3; c++) {
                    double y = amplitude * number(x);
                    if (dirty && once_in(x, 97))
                        y = once_in(x, 3)   ? (double)NAN
                            : once_in(x, 2) ? (double)INFINITY
                                            : -(double)INFINITY;
                    if (once_in(x, 50))
                        y = once_in(x, 2) ? 0.0 : -0.0;
                    if (amplitude > 0)
                        at_store(&v, at_offset(&v, b, h, s, c), (at_real)y);
                }
    return v;
}

/* An optional tensor whose extents may be repeated. */
static struct at_view repeated(struct gpu_problem *x, enum at_dtype dtype, int64_t d0, int64_t d1,
                               int64_t d2, int64_t d3, double amplitude)
{
    int64_t d[4] = {d0, d1, d2, d3}, e[4];
    for (int k = 0; k < 4; k++)
        e[k] = once_in(x, 3) ? (d[k] > 0) : d[k];
    struct at_view v = tensor(x, dtype, e[0], e[1], e[2], e[3], amplitude);
    for (int k = 0; k < 4; k++)
        if (v.dim[k] != d[k])
            v.dim[k] = d[k], v.stride[k] = 0;
    return v;
}

static struct at_view flags(struct gpu_problem *x, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    struct at_view v = repeated(x, AT_U8, d0, d1, d2, d3, 0);
    int64_t last = 0;
    for (int k = 0; k < 4; k++)
        last += v.dim[k] ? (v.dim[k] - 1) * v.stride[k] : 0;
    for (int64_t t = 0; t <= last; t++)
        ((unsigned char *)v.data)[t] = (unsigned char)(once_in(x, 3) ? 0 : 1 + below(x, 200));
    return v;
}

static void sequences(struct gpu_problem *x, int64_t B, int64_t *Sq, int64_t *Skv, int *form)
{
    struct at_score *s = &x->a.score;
    *form = (int)below(x, 6); /* 0-2 dense, 3 ragged, 4 paged, 5 page list with ragged queries */
    for (int64_t b = 0; b < B; b++) {
        x->q_len[b] = below(x, *Sq + 1);
        x->kv_len[b] = below(x, *Skv + 1);
        x->offset[b] = once_in(x, 2) ? x->kv_len[b] - x->q_len[b] : below(x, 40) - 20;
    }
    if (*form >= 3 || once_in(x, 3))
        s->kv_len = x->kv_len;
    if (*form == 3 || *form == 5 || once_in(x, 3))
        s->q_len = x->q_len;
    if (once_in(x, 2))
        s->offset = x->offset;
    int64_t q = below(x, 3), k = below(x, 3), wide = 0, page = 0;
    for (int64_t b = 0; b < B; b++) {
        x->q_start[b] = q, q += x->q_len[b] + below(x, 2);
        x->kv_start[b] = k, k += x->kv_len[b] + below(x, 2);
    }
    if (*form == 3 || *form == 5) {
        s->q_start = x->q_start, s->sequences = B;
        *Sq = q + below(x, 2);
    }
    if (*form == 3) {
        s->kv_start = x->kv_start;
        *Skv = k + below(x, 2);
    }
    if (*form < 4)
        return;
    int64_t size = 1 + below(x, 9), pages = 0, need[BATCH];
    for (int64_t b = 0; b < B; b++) {
        need[b] = (x->kv_len[b] + size - 1) / size;
        wide = at_max(wide, need[b]);
        pages += need[b];
    }
    pages += 1;
    x->a.pages.table = x->table;
    x->a.pages.width = wide + below(x, 2);
    for (int k2 = 0; k2 < 4096; k2++)
        x->table[k2] = -1;
    if (*form == 5)
        x->a.pages.indptr = x->indptr;
    for (int64_t b = 0, list = 0; b < B; b++) {
        x->indptr[b] = (int32_t)list;
        for (int64_t n = 0; n < need[b]; n++)
            x->table[*form == 5 ? list + n : b * x->a.pages.width + n] =
                (int32_t)((page++ * 7) % pages);
        list += need[b] + (*form == 5 ? below(x, 2) : 0);
        x->indptr[b + 1] = (int32_t)list;
    }
    *Skv = size; /* of a page; pages come in *form */
    *form = (int)(1000 + pages);
}

static void features(struct gpu_problem *x, bool wide)
{
    struct at_score *s = &x->a.score;
    struct at_sizes z = at_sizes(&x->a);
    if (once_in(x, 2))
        s->right = once_in(x, 3) ? below(x, 9) : 0;
    if (once_in(x, 3))
        s->left = below(x, 50);
    if (once_in(x, 4))
        s->softcap = 1 + 10 * fabs(number(x));
    if (once_in(x, 5))
        s->bias = repeated(x, a_dtype(x, wide), z.B, z.Hq, z.Sq, z.Skv, once_in(x, 8) ? 1e4 : 1);
    if (once_in(x, 5))
        s->mask = flags(x, z.B, z.Hq, z.Sq, z.Skv);
    if (once_in(x, 5))
        s->alibi = repeated(x, AT_F32, 1, z.Hq, 1, 1, 0.3);
    if (once_in(x, 4))
        s->sink = repeated(x, AT_F32, 1, z.Hq, 1, 1, 2);
    if (once_in(x, 6))
        s->qscale = repeated(x, AT_F32, z.B, z.Hq, z.Sq, 1, 1);
    if (once_in(x, 6))
        s->kscale = repeated(x, AT_F16, z.B, z.Hkv, z.Skv, 1, 1);
    if (once_in(x, 6))
        s->vscale = repeated(x, AT_F32, z.B, z.Hkv, z.Skv, 1, 1);
    if (once_in(x, 5)) {
        x->a.dropout.p = once_in(x, 4) ? 0 : 0.3;
        x->a.dropout.seed = draw(x), x->a.dropout.offset = draw(x);
        if (once_in(x, 3))
            x->a.dropout.keep = flags(x, z.B, z.Hq, z.Sq, z.Skv);
    }
}

static void plan(struct gpu_problem *x, int64_t most)
{
    static const int64_t tile[] = {0, 1, 7, 16, 17, 64, 100, 128};
    struct at_plan *p = &x->a.plan;
    p->bc = tile[below(x, 8)];
    p->bc = p->bc > most ? most : p->bc;
    p->lanes = once_in(x, 3) ? 1 << below(x, 7) : once_in(x, 4) ? 0 : 1;
    p->splits = once_in(x, 2) ? 1 + below(x, 5) : below(x, 2);
    p->merge = once_in(x, 2) ? AT_IN_ORDER : (enum at_order)below(x, 4);
    p->merge_seed = draw(x);
    if (p->splits > 1 && once_in(x, 2)) {
        p->cut = x->cut;
        for (int64_t k = 0, at = 0; k < p->splits - 1; k++)
            x->cut[k] = at += below(x, 40);
    }
    p->compute = once_in(x, 6) ? AT_F64 : AT_DEFAULT;
}

/* most: keys of the largest tile; few: at most so many queries (0: any). */
static bool gpu_problem(struct gpu_problem *x, uint64_t seed, int64_t most, int64_t few, bool wide)
{
    char *space = x->space ? x->space : (char *)malloc(BYTES);
    memset(x, 0, sizeof *x);
    x->space = space;
    x->state = seed * 0x9e3779b97f4a7c15u + 12345;
    static const int64_t dims[] = {1, 2, 3, 8, 16, 20, 33, 64, 72, 128, 130};
    int64_t B = below(x, BATCH), Hkv = 1 + below(x, 2), Hq = Hkv * (1 + below(x, 5));
    int64_t Sq = below(x, few ? few + 1 : 70), Skv = below(x, 150);
    int64_t D = dims[below(x, once_in(x, 4) ? 11 : 7)], Dv = once_in(x, 2) ? D : dims[below(x, 8)];
    B += !once_in(x, 8) && B == 0;
    x->a = at_plain((struct at_view){0}, (struct at_view){0}, (struct at_view){0},
                    once_in(x, 9) ? -0.3 : 0.05 + 0.5 * fabs(number(x)));
    int form;
    sequences(x, B, &Sq, &Skv, &form);
    enum at_dtype dk = a_dtype(x, wide), dv = once_in(x, 2) ? dk : a_dtype(x, wide);
    int64_t rows = x->a.score.q_start ? 1 : B, keys = form >= 1000 ? form - 1000
                                                      : form == 3  ? 1
                                                                   : B;
    x->a.q =
        tensor(x, once_in(x, 2) ? dk : a_dtype(x, wide), rows, Hq, Sq, D, once_in(x, 9) ? 30 : 1);
    x->a.k = tensor(x, dk, keys, Hkv, Skv, D, 1);
    x->a.v = tensor(x, dv, keys, Hkv, Skv, Dv, 1);
    features(x, wide);
    plan(x, most);
    static const enum at_dtype outs[] = {AT_F32, AT_F32, AT_F64, AT_F16, AT_BF16, AT_F8_E4M3};
    x->to.out = tensor(x, outs[below(x, 6)], rows, Hq, Sq, Dv, 0);
    if (!once_in(x, 4))
        x->to.lse = tensor(x, once_in(x, 2) ? AT_F32 : AT_F64, rows, Hq, Sq, 1, 0);
    struct at_why why = {""};
    enum at_status status = at_validate(&x->a, &why);
    if (status != AT_OK && why.text[0])
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, why.text);
    return status == AT_OK;
}

/* Everything that a result's memory holds, from out to the end. */
static size_t result_bytes(const struct gpu_problem *x)
{
    return x->used - (size_t)((char *)x->to.out.data - x->space);
}

#endif

/* A small dense problem for the tests of the bound: painted from a seed, every part of a score on
 * or off, any float dtype; its truth and its bound. SPDX-License-Identifier: MIT */
#ifndef BOUND_PROBLEM_H
#define BOUND_PROBLEM_H

#define AT_BITS 64 /* at_store rounds once, from double */
#include "at_math.h"
#include "ref.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { Hq = 2, Sq = 3, MOST = 12, D = 5, Dv = 4, ROWS = Hq * Sq };

enum part {
    BIAS = 1,
    MASK = 2,
    ALIBI = 4,
    SINK = 8,
    CAP = 16,
    KEEP = 32,
    DESCALE = 64,
    CAUSAL = 128
};

struct problem {
    uint64_t seed;
    int64_t Skv;
    double q[ROWS * D], k[MOST * D], v[MOST * Dv], bias[ROWS * MOST]; /* memory of any dtype */
    float alibi[Hq], sink[Hq], qscale[ROWS], kscale[MOST], vscale[MOST];
    unsigned char mask[ROWS * MOST], keep[ROWS * MOST];
    double out[ROWS * Dv], lse[ROWS];
    int64_t offset[1];
    struct at_attention a;
    struct at_answer x;
    struct at_rows rows;
};

static uint64_t seed;

static uint64_t bits(void) /* SplitMix64 [Steele14] */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double unit(void) /* [-1,1) */ { return (double)(int64_t)bits() * 0x1p-63; }

static void paint_view(struct at_view x, int64_t n, double size)
{
    for (int64_t t = 0; t < n; t++)
        at_store(&x, t, size * unit() * (bits() % 8 ? 1 : 4));
}

static void paint_scores(struct problem *p, unsigned parts, enum at_dtype dtype)
{
    struct at_score *s = &p->a.score;
    int64_t n = p->Skv;
    for (int t = 0; t < ROWS * MOST; t++)
        p->mask[t] = bits() % 5 != 0, p->keep[t] = bits() % 4 != 0;
    for (int t = 0; t < MOST; t++)
        p->kscale[t] = (float)(1 + unit() / 2), p->vscale[t] = t % 3 ? (float)(1 + unit() / 2) : 2;
    for (int t = 0; t < ROWS; t++)
        p->qscale[t] = (float)(1 + unit() / 2);
    for (int h = 0; h < Hq; h++)
        p->alibi[h] = (float)(h ? 0.25 : fabs(unit())), p->sink[h] = (float)(2 * unit());
    if (parts & BIAS) {
        s->bias = at_bhsd(p->bias, dtype, 1, Hq, Sq, n);
        paint_view(s->bias, ROWS * n, 1);
    }
    if (parts & MASK)
        s->mask = at_bhsd(p->mask, AT_U8, 1, Hq, Sq, n);
    if (parts & ALIBI)
        s->alibi = at_bhsd(p->alibi, AT_F32, 1, Hq, 1, 1);
    if (parts & SINK)
        s->sink = at_bhsd(p->sink, AT_F32, 1, Hq, 1, 1);
    if (parts & CAP)
        s->softcap = 1.1;
    if (parts & KEEP)
        p->a.dropout.p = 0.3, p->a.dropout.keep = at_bhsd(p->keep, AT_U8, 1, Hq, Sq, n);
    if (parts & DESCALE) {
        s->qscale = at_bhsd(p->qscale, AT_F32, 1, Hq, Sq, 1);
        s->kscale = at_bhsd(p->kscale, AT_F32, 1, 1, n, 1);
        s->vscale = at_bhsd(p->vscale, AT_F32, 1, 1, n, 1);
    }
    p->offset[0] = n - Sq;
    if (parts & CAUSAL)
        s->right = 0, s->offset = p->offset;
}

/* n keys, scores of about `size`. Truth is asked for when everything is set: problem_truth. */
static void paint_problem(struct problem *p, unsigned parts, enum at_dtype dtype, int64_t n,
                          double size)
{
    *p = (struct problem){.seed = seed, .Skv = n, .rows = {ROWS, NULL}};
    p->a = at_plain(at_bhsd(p->q, dtype, 1, Hq, Sq, D), at_bhsd(p->k, dtype, 1, 1, n, D),
                    at_bhsd(p->v, dtype, 1, 1, n, Dv), 1 / sqrt(D));
    paint_view(p->a.q, ROWS * D, size);
    paint_view(p->a.k, n * D, 1);
    paint_view(p->a.v, n * Dv, 1);
    if (bits() % 4 == 0) /* a mean far from 0 */
        for (int64_t t = 0; t < n * Dv; t++)
            at_store(&p->a.v, t, 3 + at_stored(&p->a.v, t) / 8);
    paint_scores(p, parts, dtype);
    p->a.plan.threads = 1;
    ck_assert_int_eq(at_answer_make(&p->x, ROWS, Dv), AT_OK);
}

static void problem_truth(struct problem *p)
{
    ck_assert_int_eq(at_truth(&p->a, p->rows, &p->x), AT_OK);
}

static void problem_bound(struct problem *p, const struct at_arith *arith)
{
    ck_assert_int_eq(at_bound(&p->a, arith, p->rows, &p->x), AT_OK);
}

static inline struct at_arith arith_of(const char *text)
{
    struct at_arith x;
    struct at_why why;
    ck_assert_msg(at_arith_read(&x, text, &why), "%s", why.text);
    return x;
}

/* Only scores: q = 0, so that a score is its bias, exactly. */
static inline void score_by_bias(struct problem *p, const double *s)
{
    for (int t = 0; t < ROWS * D; t++)
        at_store(&p->a.q, t, 0);
    p->a.score.bias = at_bhsd(p->bias, p->a.q.dtype, 1, Hq, Sq, p->Skv);
    for (int64_t t = 0; t < ROWS; t++)
        for (int64_t j = 0; j < p->Skv; j++)
            at_store(&p->a.score.bias, t * p->Skv + j, s[j]);
}

#endif

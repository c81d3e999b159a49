/* Values of the cases about one field of the descriptor each: what a score is, sinks, descale,
 * dropout, infinities. Numbers that further tensors hold have few bits, so that every dtype that a
 * kernel keeps them in holds them. SPDX-License-Identifier: MIT */
#include "generate.h"
#include <math.h>

/* -- Scores ---------------------------------------------------------------------------------- */

/* 1/D: what is meant is far from 1/sqrt(D); q makes up for it. */
void at_fill_scale(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t t = 0; t < at_q_n(x); t++)
        x->q[t] *= 16;
}

/* 2^-1 .. 2^-8 by turns, each head its own: a power of two for every number of heads. */
void at_fill_slopes(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t h = 0; h < x->Hq; h++)
        x->alibi[h] = 1 / (double)(2 << h % 8);
}

/* Softcap, bias and slopes at once; scores are as large as the cap. */
void at_fill_order(struct at_canvas *x)
{
    at_fill_slopes(x);
    for (int64_t t = 0; t < at_q_n(x); t++)
        x->q[t] *= 4;
    at_fill_normal(x, x->bias, 4, x->Hq * x->Sq * x->Skv);
}

/* -- Sinks ----------------------------------------------------------------------------------- */

/* -2 .. 2 in steps of 1/4. */
void at_fill_sink(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t h = 0; h < x->Hq; h++)
        x->sink[h] = (double)at_integer(at_canvas_brush(x, 6), (uint64_t)h, -8, 8) / 4;
}

/* By turns of the heads: some above the scores, above what e^x can hold, absent. */
void at_fill_sink_above(struct at_canvas *x)
{
    static const double turn[3] = {8, 300, -INFINITY};
    at_fill(x);
    for (int64_t h = 0; h < x->Hq; h++)
        x->sink[h] = turn[h % 3];
}

/* A mask that leaves some rows nothing but the sink. */
void at_fill_sink_alone(struct at_canvas *x)
{
    at_fill_masked(x);
    for (int64_t h = 0; h < x->Hq; h++)
        x->sink[h] = (double)(h % 5) - 2;
}

/* -- Descale --------------------------------------------------------------------------------- */

/* 8/8 .. 15/8 times 1/2, 1 or 2. */
static double factor(const struct at_canvas *x, uint64_t n)
{
    double y = (double)at_integer(at_canvas_brush(x, 6), 2 * n, 8, 15) / 8;
    int64_t e = at_integer(at_canvas_brush(x, 6), 2 * n + 1, 0, 2);
    return e == 0 ? y / 2 : e == 1 ? y : 2 * y;
}

/* k's numbers come after q's, v's after both. */
void at_fill_descale(struct at_canvas *x)
{
    int64_t n = x->B * x->Hq * x->Sq, keys = x->B * x->Hkv * x->Skv;
    at_fill(x);
    for (int64_t t = 0; t < n; t++)
        x->qscale[t] = factor(x, (uint64_t)t);
    for (int64_t t = 0; t < keys; t++) {
        x->kscale[t] = factor(x, (uint64_t)(n + t));
        x->vscale[t] = factor(x, (uint64_t)(n + keys + t));
    }
}

/* -- Dropout --------------------------------------------------------------------------------- */

/* One weight in four is dropped, as data. */
void at_fill_keep(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t t = 0; t < x->B * x->Hq * x->Sq * x->Skv; t++)
        x->keep[t] = at_integer(at_canvas_brush(x, 6), (uint64_t)t, 0, 3) != 0;
}

/* -- Infinities ------------------------------------------------------------------------------ */

static double *value(struct at_canvas *x, int64_t b, int64_t g, int64_t j, int64_t c)
{
    return &x->v[((b * x->Hkv + g) * x->Skv + j) * x->Dv + c];
}

/* In the values of a key that the later rows see and the earlier ones do not: NaN in column 0,
 * +inf in 1, -inf in 2, and in 3 both, by two keys. Other heads and columns are as ever. */
void at_fill_infinite_values(struct at_canvas *x)
{
    static const double what[4] = {NAN, INFINITY, -INFINITY, INFINITY};
    int64_t j = at_max(x->Skv - 1 - x->Sq / 2, 0);
    at_fill(x);
    for (int64_t c = 0; c < at_min(x->Dv, 4); c++)
        *value(x, 0, 0, j, c) = what[c];
    if (x->Dv > 3 && j > 0)
        *value(x, 0, 0, j - 1, 3) = -INFINITY;
}

/* One key of the first head is -inf in a column where queries are positive by turns of three: its
 * score is -inf, +inf there, or 0 times infinity. */
void at_fill_infinite_scores(struct at_canvas *x)
{
    at_fill(x);
    x->k[(x->Skv / 2 + 1) * x->D - 1] = -INFINITY;
    for (int64_t t = x->D - 1; t < at_q_n(x); t += x->D)
        x->q[t] = 1 - (double)(t / x->D % 3);
}

/* Every fourth key, from the second, is hidden from all rows and holds NaN and infinities. */
void at_fill_hidden(struct at_canvas *x)
{
    static const double what[3] = {NAN, INFINITY, -INFINITY};
    at_fill(x);
    for (int64_t t = 0; t < x->B * x->Sq * x->Skv; t++)
        x->mask[t] = t % x->Skv % 4 != 1;
    for (int64_t t = 0; t < at_k_n(x); t++)
        x->k[t] = t / x->D % x->Skv % 4 == 1 ? what[t % 3] : x->k[t];
    for (int64_t t = 0; t < at_v_n(x); t++)
        x->v[t] = t / x->Dv % x->Skv % 4 == 1 ? what[t % 3] : x->v[t];
}

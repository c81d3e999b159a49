/* Values beyond plain normals: peaked, shifted, extreme, aimed at tiles and at sums.
 * SPDX-License-Identifier: MIT */
#include "generate.h"
#include "ref.h"
#include <math.h>

void at_fill(struct at_canvas *x)
{
    at_fill_normal(x, x->q, 1, at_q_n(x));
    at_fill_normal(x, x->k, 2, at_k_n(x));
    at_fill_normal(x, x->v, 3, at_v_n(x));
}

static void times(double *to, int64_t n, double factor)
{
    for (int64_t t = 0; t < n; t++)
        to[t] *= factor;
}

void at_fill_peaked(struct at_canvas *x)
{
    at_fill(x);
    times(x->q, at_q_n(x), 4);
}

void at_fill_mean(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t t = 0; t < at_v_n(x); t++)
        x->v[t] += 3;
}

/* The last column adds f(j) to each score: q is 2^e there, k is f(j)/(2^e scale). */
static void add_to_scores(struct at_canvas *x, double (*f)(const struct at_canvas *x, int64_t j))
{
    double Q = 16;
    for (int64_t t = x->D - 1; t < at_q_n(x); t += x->D)
        x->q[t] = Q;
    for (int64_t t = x->D - 1; t < at_k_n(x); t += x->D)
        x->k[t] = f(x, t / x->D % x->Skv) / (Q * x->a.score.scale);
}

/* In fp8 the largest k is 448, in fp16 65504: offsets as large as all formats take. */
static double common(const struct at_canvas *x, int64_t j)
{
    (void)j;
    return 4096 * x->a.score.scale;
}

static double below(const struct at_canvas *x, int64_t j) { return -common(x, j); }

static double rising(const struct at_canvas *x, int64_t j)
{
    return 64 * (double)(j + 1) / (double)x->Skv;
}

static double falling(const struct at_canvas *x, int64_t j) { return rising(x, x->Skv - 1 - j); }

/* 8 more from tile to tile, by turns up to 64: each tile raises the maximum of the one before. */
static double by_tile(const struct at_canvas *x, int64_t j)
{
    return 4 * (double)(j / x->tile % 16) + (j % x->tile == 0 ? 2 : 0);
}

static double at_the_end(const struct at_canvas *x, int64_t j)
{
    return j % x->tile == x->tile - 1 || j == x->Skv - 1 ? 8 : 0;
}

/* e^-2^-9: halfway between 1 and the bf16 below it, and near such a place in fp16. */
static double half(const struct at_canvas *x, int64_t j)
{
    (void)x;
    return j % 2 ? -0x1p-9 : 0;
}

void at_fill_common(struct at_canvas *x) { at_fill(x), add_to_scores(x, common); }
void at_fill_below(struct at_canvas *x) { at_fill(x), add_to_scores(x, below); }
void at_fill_rising(struct at_canvas *x) { at_fill(x), add_to_scores(x, rising); }
void at_fill_falling(struct at_canvas *x) { at_fill(x), add_to_scores(x, falling); }
void at_fill_by_tile(struct at_canvas *x) { at_fill(x), add_to_scores(x, by_tile); }
void at_fill_at_the_end(struct at_canvas *x) { at_fill(x), add_to_scores(x, at_the_end); }

/* Below -10000 in every format: two columns of 256 times at most 448. */
void at_fill_low(struct at_canvas *x)
{
    int64_t columns = at_min(x->D, 2);
    double k = 12000 / (256 * (double)columns * x->a.score.scale);
    at_fill(x);
    for (int64_t t = 0; t < at_q_n(x); t++)
        x->q[t] = t % x->D < columns ? 256 : x->q[t];
    for (int64_t t = 0; t < at_k_n(x); t++)
        x->k[t] = t % x->D < columns ? -(k < 448 ? k : 448) : x->k[t];
}

/* All scores 0: q is silent, k is loud. */
void at_fill_zero(struct at_canvas *x)
{
    at_fill_normal(x, x->k, 2, at_k_n(x));
    at_fill_normal(x, x->v, 3, at_v_n(x));
}

void at_fill_half(struct at_canvas *x)
{
    at_fill_normal(x, x->v, 3, at_v_n(x));
    add_to_scores(x, half);
    for (int64_t t = 0; t < at_v_n(x); t++)
        x->v[t] += 3;
}

/* n max|v| below the largest number: no sum of the request's type overflows. */
void at_fill_huge(struct at_canvas *x)
{
    double most = at_format(x->want->dtype).max / (8 * (double)x->Skv), factor = 1;
    while (factor * 2 <= most)
        factor *= 2;
    at_fill(x);
    times(x->v, at_v_n(x), factor);
}

void at_fill_tiny(struct at_canvas *x)
{
    double factor = 1, least = ldexp(1, (int)at_format(x->want->dtype).emin - 2);
    while (factor / 2 >= least)
        factor /= 2;
    at_fill(x);
    times(x->v, at_v_n(x), factor);
}

/* Scores of 1/8 in one column alone, so that hardly any error is theirs. */
static double small(const struct at_canvas *x, int64_t j)
{
    return at_normal(at_canvas_brush(x, 2), (uint64_t)j) / 8;
}

void at_fill_pair(struct at_canvas *x)
{
    add_to_scores(x, small);
    at_fill_normal(x, x->v, 3, at_v_n(x));
    for (int64_t t = 0; t < at_v_n(x); t++)
        x->v[t] = (t / x->Dv % 2 ? -2 : 2) + x->v[t] / 4;
}

/* Large values in the first half of the keys, their opposites in the second, and normals on top. */
void at_fill_cancel(struct at_canvas *x)
{
    at_fill_zero(x);
    for (int64_t t = 0; t < at_v_n(x); t++) {
        int64_t j = t / x->Dv % x->Skv, n = x->Skv / 2;
        x->v[t] += j < n ? 200 : j < 2 * n ? -200 : 0;
    }
}

void at_fill_poisoned(struct at_canvas *x) { at_fill(x), at_poison(x); }

/* Half of the keys; row 1 none. */
void at_fill_masked(struct at_canvas *x)
{
    at_fill(x);
    for (int64_t t = 0; t < x->B * x->Sq * x->Skv; t++)
        x->mask[t] =
            t / x->Skv % x->Sq != 1 && at_integer(at_canvas_brush(x, 5), (uint64_t)t, 0, 1);
}

void at_fill_biased(struct at_canvas *x)
{
    int64_t n = x->Hq * x->Sq * x->Skv;
    at_fill(x);
    at_fill_normal(x, x->bias, 4, n);
    for (int64_t t = 0; t < n; t++)
        if (at_integer(at_canvas_brush(x, 5), (uint64_t)t, 0, 3) == 0)
            x->bias[t] = -INFINITY;
}

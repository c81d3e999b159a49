/* One row with scores by bias, its bound, and (A-ord) of docs/bounds.md once more, in long double.
 * SPDX-License-Identifier: MIT */
#ifndef ORDERED_H
#define ORDERED_H

#include "at_index.h"
#include "at_simulate.h"
#include "paint.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>

enum { MOST = 64 };

/* One row: n scores by bias and values, in numbers of the compute format; q = 0 until it is set. */
struct row {
    int64_t n;
    double s[MOST], v[MOST], out, lse; /* as simulated */
    double ratio, lse_ratio;
    struct at_arith arith;
    struct at_attention a;
    struct at_answer x;
    double q[2], k[2 * MOST];
};

static void open_row(struct row *w, const char *words, const struct at_float *own, int64_t n)
{
    struct at_why why;
    memset(w, 0, sizeof *w);
    w->n = n;
    ck_assert_msg(at_arith_read(&w->arith, words, &why), "%s", why.text);
    w->arith.own = own ? *own : at_float_of(w->arith.compute);
    w->a = at_plain(at_bhsd(w->q, AT_F64, 1, 1, 1, 2), at_bhsd(w->k, AT_F64, 1, 1, n, 2),
                    at_bhsd(w->v, AT_F64, 1, 1, n, 1), 1);
    w->a.score.bias = at_bhsd(w->s, AT_F64, 1, 1, 1, n);
    w->a.plan.bc = w->arith.tile ? w->arith.tile : 1, w->a.plan.threads = 1;
    ck_assert_int_eq(at_answer_make(&w->x, 1, 1), AT_OK);
}

static void close_row(struct row *w) { at_answer_free(&w->x); }

static const struct at_rows one = {1, NULL};

/* Truth and bound. */
static double bound(struct row *w)
{
    ck_assert_int_eq(at_truth(&w->a, one, &w->x), AT_OK);
    ck_assert_int_eq(at_bound(&w->a, &w->arith, one, &w->x), AT_OK);
    return w->x.out_bound[0];
}

/* -- The theorem's number ---------------------------------------------------------------------- */

/* (A-ord) once more, in long double, for scores that are exact: D = 0, and no P of its own. */
struct theorem {
    int64_t n, tile, T[MOST];
    long double eps, exp_eps, p[MOST], E[MOST], leaf[MOST], v[MOST], o, less, depth;
    bool raises[MOST]; /* by tile */
};

static long double grown(long double n, long double eps) { return expm1l(n * log1pl(eps)); }

static void theorem_of(const struct row *w, struct theorem *x)
{
    long double M = -INFINITY, l = 0, so_far = -INFINITY;
    *x = (struct theorem){.n = w->n, .tile = w->arith.tile, .eps = ldexpl(1, -w->arith.own.p)};
    int64_t tiles = (x->n + x->tile - 1) / x->tile;
    x->exp_eps = -log1pl(-(long double)w->arith.exp_ulps * 2 * x->eps);
    for (int64_t j = 0; j < x->n; j++)
        M = fmaxl(M, w->s[j]);
    for (int64_t t = 0; t < tiles; t++) {
        long double most = so_far;
        for (int64_t j = t * x->tile; j < x->n && j < (t + 1) * x->tile; j++)
            most = fmaxl(most, w->s[j]);
        x->raises[t] = t > 0 && most > so_far;
        so_far = most;
    }
    for (int64_t j = 0; j < x->n; j++) {
        int64_t rivals = 0;
        x->p[j] = expl(w->s[j] - M), l += x->p[j], x->v[j] = w->v[j];
        for (int64_t k = 0; k < x->n; k++)
            rivals += w->s[k] > w->s[j];
        for (int64_t t = j / x->tile + 1; t < tiles; t++)
            x->T[j] += x->raises[t];
        x->T[j] = at_min(x->T[j], rivals);
        x->E[j] = rivals ? x->eps * (M - w->s[j]) + (long double)(x->T[j] + 1) * x->exp_eps : 0;
        x->leaf[j] = rivals ? x->eps : 0;
    }
    for (int64_t j = 0; j < x->n; j++)
        x->p[j] /= l, x->o += x->p[j] * x->v[j], x->less += x->p[j] * expl(-x->E[j]);
    x->depth = at_min(x->n - 1, at_min(x->n, x->tile) - 1 + tiles - 1);
}

/* max(R+ - o, o - R-): e^E on the largest or smallest v's, e^-E on the others. */
static long double shared(const struct theorem *x)
{
    long double most = 0;
    for (int64_t k = 0; k < x->n; k++)
        for (int side = 0; side < 2; side++) {
            long double u = 0, l = 0;
            for (int64_t j = 0; j < x->n; j++) {
                bool far = side ? x->v[j] <= x->v[k] : x->v[j] >= x->v[k];
                long double e = x->p[j] * expl(far ? x->E[j] : -x->E[j]);
                u += e * x->v[j], l += e;
            }
            most = fmaxl(most, fabsl(u / l - x->o));
        }
    return most;
}

/* sum over additions and rescales of |sum_J p v| + sum_J p (e^E - 1)|v|, and of l's, sum_J p
 * e^E. */
static long double sums(const struct theorem *x, bool of_l)
{
    long double sum = 0, all = 0, second = 0;
    for (int64_t t = 0; t * x->tile < x->n; t++) {
        long double tile = 0;
        for (int64_t j = t * x->tile; j < x->n && j < (t + 1) * x->tile; j++) {
            tile += of_l ? x->p[j] * expl(x->E[j]) : x->p[j] * x->v[j];
            all += j > t * x->tile ? fabsl(tile) : 0;
        }
        all += x->raises[t] ? fabsl(sum) : 0;
        sum += tile;
        all += t > 0 ? fabsl(sum) : 0;
    }
    for (int64_t j = 0; j < x->n; j++)
        second += (x->depth + (long double)x->T[j]) * x->p[j] * expm1l(x->E[j]) * fabsl(x->v[j]);
    return of_l ? all : all + second;
}

/* What bound.c must not be less than, nor much more: B of (A*) with both private terms ordered. */
static long double allowed(const struct row *w)
{
    struct theorem x;
    long double rescales = 0, own = 0, R = 0, leaf = 0;
    theorem_of(w, &x);
    for (int64_t t = 0; t * x.tile < x.n; t++)
        rescales += t > 0;
    long double grow = 1 + grown(x.depth + fminl((long double)x.n - 1, rescales) + 1, x.eps);
    for (int64_t j = 0; j < x.n; j++) {
        own += x.p[j] * expl(x.E[j]) * x.leaf[j] * fabsl(x.v[j]);
        leaf = fmaxl(leaf, x.leaf[j]);
        R = fmaxl(R, grown(x.depth + (long double)x.T[j], x.eps));
    }
    long double u = grow * (own + x.eps * (1 + leaf) * sums(&x, false)) / x.less;
    long double l = grow * x.eps * sums(&x, true) / x.less;
    return (shared(&x) + u + fabsl(x.o) * fminl(l, R)) / (1 - R);
}

#endif

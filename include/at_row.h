/* The algebra of one query row: what it knows of the keys it has met, {m, l, u}. C and CUDA.
 *
 *     m' = max(m, s),  l' = e^(m-m') l + e^(s-m'),  u' = e^(m-m') u + e^(s-m') v  [MG18, Dao22]
 *
 * Every rounding of the algebra happens in the functions of the first section: an engine that keeps
 * u in lanes or registers calls those, in the same order, and gets the same bits. Nothing here
 * selects on a number, except where a state is empty. SPDX-License-Identifier: MIT */
#ifndef AT_ROW_H
#define AT_ROW_H

#include "at_math.h"

/* -- One number ------------------------------------------------------------------------------ */

AT_FN at_real at_larger(at_real m, at_real s) { return s > m ? s : m; } /* a NaN score passes by */
AT_FN at_real at_weight(at_real s, at_real m) { return at_exp(s - m); } /* ... and is caught here */

/* What sums with reference m are worth under reference to >= m. The test lets a row that has seen
 * nothing pass a tile in lanes, where -inf - -inf would be NaN. */
AT_FN at_real at_worth(at_real m, at_real to) { return m == to ? 1 : at_exp(m - to); }

/* x grows by a tile's sum t; + 0: a zero has one sign. */
AT_FN at_real at_take(at_real a, at_real x, at_real t) { return (a * x + t) + 0; }

/* Two products and a sum, no fma: commutative to the bit; one of a, b is 1. */
AT_FN at_real at_join(at_real a, at_real x, at_real b, at_real y) { return a * x + b * y; }

/* A NaN is written as the one that the format calls quiet and positive: by its bits and as the last
 * step, since arithmetic on a GPU makes another of it. */
#if AT_BITS == 32
AT_FN at_real at_canonical(at_real x) { return at_float(x == x ? at_bits32(x) : 0x7fc00000u); }
#else
AT_FN at_real at_canonical(at_real x)
{
    return at_double(x == x ? at_bits64(x) : 0x7ff8000000000000u);
}
#endif

AT_FN at_real at_out(at_real u, at_real l, at_real gain)
{
    return l == 0 ? 0 : at_canonical(gain * u / l + 0); /* gain 1 is exact */
}

AT_FN at_real at_lse(at_real m, at_real l) { return l == 0 ? m : at_canonical(m + at_log(l)); }

/* -- A score --------------------------------------------------------------------------------- */

/* s = (cap*tanh(scale*raw/cap) + bias) - slope*|p-j|, each step rounded, no fma. */
AT_FN at_real at_scored(const struct at_attention *a, at_real raw, int64_t b, int64_t h, int64_t i,
                        int64_t j)
{
    const struct at_view *bias = &a->score.bias, *alibi = &a->score.alibi;
    at_real s = at_rounded(a->score.scale) * raw, cap = at_rounded(a->score.softcap);
    if (cap > 0)
        s = cap * at_tanh(s / cap);
    if (bias->data)
        s = s + at_load(bias, at_offset(bias, b, h, i, j));
    if (alibi->data)
        s = s - at_load(alibi, at_offset(alibi, 0, h, 0, 0)) * at_distance(at_position(a, b, i), j);
    return s;
}

/* Row x[0..n-1] of q, k or v in the working type, times its descale where there is one. */
AT_FN void at_load_row(const struct at_view *x, int64_t at, const struct at_view *descale,
                       int64_t b, int64_t h, int64_t s, int64_t n, at_real *to)
{
    for (int64_t c = 0; c < n; c++)
        to[c] = at_load(x, at + c * x->stride[3]);
    if (descale->data) {
        at_real d = at_load(descale, at_offset(descale, b, h, s, 0));
        for (int64_t c = 0; c < n; c++)
            to[c] = to[c] * d;
    }
}

/* sum q k in one chain, or in `lanes` chains over c mod lanes, added pairwise in halves. */
AT_FN at_real at_dot(const at_real *q, const at_real *k, int64_t D, int64_t lanes)
{
    at_real x[64];
    for (int64_t w = 0; w < lanes; w++) {
        x[w] = 0;
        for (int64_t c = w; c < D; c += lanes)
            x[w] = at_fma(q[c], k[c], x[w]);
    }
    for (int64_t w = lanes / 2; w > 0; w /= 2)
        for (int64_t c = 0; c < w; c++)
            x[c] += x[c + w];
    return x[0]; /* |err| <= ((1+eps)^(D/lanes + log2 lanes) - 1) sum|q k| */
}

/* -- One row, u[0..Dv-1] --------------------------------------------------------------------- */

struct at_row {
    at_real m, l, *u;
};

AT_FN void at_row_clear(struct at_row *x, at_real m, int64_t Dv)
{
    x->m = m;
    x->l = 0;
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = 0;
}

/* A key joins a tile whose reference m is already the largest of its scores. v == NULL: the key is
 * dropped or a sink, and counts in l alone. */
AT_FN void at_row_add(struct at_row *t, at_real s, const at_real *v, int64_t Dv)
{
    at_real p = at_weight(s, t->m);
    t->l += p; /* after n keys |err| <= ((1+eps)^(n-1) - 1) l */
    for (int64_t c = 0; v && c < Dv; c++)
        t->u[c] = at_fma(p, v[c], t->u[c]); /* |err| <= ((1+eps)^n - 1) sum p|v| */
}

/* The row takes in a tile, t.m >= x.m. */
AT_FN void at_row_take(struct at_row *x, const struct at_row *t, int64_t Dv)
{
    at_real a = at_worth(x->m, t->m);
    x->m = t->m;
    x->l = at_take(a, x->l, t->l);
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = at_take(a, x->u[c], t->u[c]);
}

/* One key at a time: a tile of one, to the bit. */
AT_FN void at_row_push(struct at_row *x, at_real s, const at_real *v, int64_t Dv)
{
    at_real m = at_larger(x->m, s) + 0, a = at_worth(x->m, m), p = at_weight(s, m);
    x->m = m;
    x->l = at_take(a, x->l, p);
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = at_take(a, x->u[c], v ? at_fma(p, v[c], (at_real)0) : 0);
}

/* x = x (+) y. An empty side is known by l == 0 and chosen away: what its u holds cannot leak. */
AT_FN void at_row_merge(struct at_row *x, const struct at_row *y, int64_t Dv)
{
    if (y->l == 0)
        return;
    bool empty = x->l == 0;
    at_real m = empty ? y->m : at_larger(x->m, y->m) + 0;
    at_real a = at_worth(x->m, m), b = at_worth(y->m, m);
    x->m = m;
    x->l = empty ? y->l : at_join(a, x->l, b, y->l);
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = empty ? y->u[c] : at_join(a, x->u[c], b, y->u[c]);
}

/* A sink is one more key whose value is 0; it joins last, once. -inf: absent. */
AT_FN void at_row_sink(struct at_row *x, at_real s, int64_t Dv)
{
    if (s == -(at_real)INFINITY)
        return;
    bool empty = x->l == 0;
    at_real l = at_weight(s, s); /* 1; NaN where s is +inf or NaN */
    at_real m = empty ? s + 0 : at_larger(x->m, s) + 0;
    at_real a = at_worth(x->m, m), b = at_worth(s, m);
    x->m = m;
    x->l = empty ? l : at_join(a, x->l, b, l);
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = empty ? 0 : at_join(a, x->u[c], b, 0);
}

/* -- Rows between tensors and the working type ------------------------------------------------ */

AT_FN void at_row_load(const struct at_attention *a, const struct at_state *x, int64_t b, int64_t h,
                       int64_t i, struct at_row *row)
{
    int64_t at = at_row_offset(a, &x->u, b, h, i);
    row->m = at_load(&x->m, at_row_offset(a, &x->m, b, h, i));
    row->l = at_load(&x->l, at_row_offset(a, &x->l, b, h, i));
    for (int64_t c = 0; c < x->u.dim[3]; c++)
        row->u[c] = at_load(&x->u, at + c * x->u.stride[3]);
}

AT_FN void at_row_store(const struct at_attention *a, const struct at_state *x, int64_t b,
                        int64_t h, int64_t i, const struct at_row *row)
{
    int64_t at = at_row_offset(a, &x->u, b, h, i);
    at_store(&x->m, at_row_offset(a, &x->m, b, h, i), row->m);
    at_store(&x->l, at_row_offset(a, &x->l, b, h, i), row->l);
    for (int64_t c = 0; c < x->u.dim[3]; c++)
        at_store(&x->u, at + c * x->u.stride[3], row->u[c]);
}

#endif

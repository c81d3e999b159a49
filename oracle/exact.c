/* Exact cases: a correct kernel of any arithmetic makes no error on them: got equals the truth.
 *
 * Every key has a label, its binary digits on pairs of columns: k is 0 on the column of its digit
 * and -K on the other. A query writes Q on the columns of the digits it asks for. Then
 *     score(i,j) = -Q K scale (digits that differ),
 * and for a key that answers every product is 0, so its score is 0 in any order, scaled and fused
 * alike, and its weight e^0 = 1. Q K scale >= 128: the others' weights are below 2^-184, which is 0
 * in binary32 and narrower, and in binary64 is lost beside the answer, which is not 0. Digits that
 * are not asked for make a block of 2^m keys. Further columns hold a query's noise against zeros.
 *     one key:    out = v of that key, any v
 *     2^m keys:   out = sum v / 2^m, |sum v| < 256: exact in 8 bits, and 1/2^m is a power of two
 *     balanced:   any number of keys, whose values cancel by pairs: out = 0
 * Not so where exp(0) need not be 1 or products have errors of their own; and the second not where
 * splits join through a rounded lse. The third also needs sums that hold integers past 256, P that
 * is not divided by l, and weights of 0 beside the answer. at_exact_for says which.
 * SPDX-License-Identifier: MIT */
#include "generate.h"
#include "ref.h"

static int bits(enum at_dtype d) { return d ? at_format(d).p : 53; }

bool at_exact_for(enum at_exact how, const struct at_arith *arith, enum at_dtype v)
{
    int sum = bits(arith->sum), total = bits(arith->total);
    int T = bits(arith->compute ? arith->compute : AT_F32);
    bool one = !arith->inexact_one && !(arith->product_eps > 0) && sum >= bits(v) && T >= bits(v);
    if (how == AT_COUNTED)
        return one && !arith->lse_merge && sum >= 8 && total >= 8 && T >= 8;
    if (how == AT_BALANCED)
        return one && !arith->lse_merge && !arith->normalised && sum >= 24 && T == 24;
    return how == AT_ONE_KEY && one;
}

void at_exact_claim(enum at_exact how, const struct at_arith *arith, enum at_dtype v,
                    struct at_answer *x)
{
    for (int64_t t = 0; at_exact_for(how, arith, v) && t < x->n * x->Dv; t++)
        if (x->out_kind[t] == AT_CLAIMED)
            x->out_bound[t] = 0;
}

/* -- Labels ---------------------------------------------------------------------------------- */

enum { MOST_BLOCK = 6 }; /* 2^6 keys: their counts and sums of |v| <= 3 stay below 256 */

static int digits_of(int64_t most)
{
    int n = 1;
    while (most >> n)
        n++;
    return n;
}

/* The largest shift of a label is half a block. */
static int digits(const struct at_canvas *x) { return digits_of(x->Skv + (1 << (MOST_BLOCK - 1))); }

const char *at_unfit_label(const struct at_canvas *x)
{
    return 2 * digits(x) > x->D ? "D is too small to label the keys: two columns a binary digit"
                                : NULL;
}

/* Q K = 2^e, the least with 2^e scale >= 128; K <= 2^8 so that e4m3 holds it. */
static void sizes(const struct at_canvas *x, double *Q, double *K)
{
    double product = 128;
    *K = 256;
    while (product * x->a.score.scale < 128)
        product *= 2;
    *Q = product / *K > 1 ? product / *K : 1;
}

/* sign -1: keys that do not answer are silent; +1: they are loud. */
static void label_keys(struct at_canvas *x, int64_t shift, int sign)
{
    double Q, K;
    int n = digits(x);
    sizes(x, &Q, &K);
    for (int64_t r = 0; r < x->B * x->Hkv * x->Skv; r++) /* b, g, j */
        for (int d = 0; d < n; d++) {
            int64_t digit = (r % x->Skv + shift) >> d & 1;
            x->k[r * x->D + 2 * d + (1 - digit)] = sign * K;
        }
}

/* Row r of q asks for the digits of `label` from digit m on. */
static void ask(struct at_canvas *x, int64_t r, int64_t label, int m)
{
    double Q, K;
    int n = digits(x);
    sizes(x, &Q, &K);
    for (int d = m; d < n; d++)
        x->q[r * x->D + 2 * d + (label >> d & 1)] = Q;
    for (int64_t c = 2 * n; c < x->D; c++)
        x->q[r * x->D + c] = at_normal(at_canvas_brush(x, 1), (uint64_t)(r * x->D + c));
}

/* -- Rows ------------------------------------------------------------------------------------ */

struct asking {
    struct at_canvas *x;
    struct at_sizes z;
    int64_t r, turn; /* row of q; a number that differs between neighbours and heads */
    struct at_span seen;
};

static void each_row(struct at_canvas *x, void (*row)(struct asking *k))
{
    struct asking k = {.x = x, .z = at_sizes(&x->a)};
    for (; k.r < x->B * x->Hq * x->Sq; k.r++) {
        int64_t b = k.r / (x->Hq * x->Sq), h = k.r / x->Sq % x->Hq, i = k.r % x->Sq;
        k.seen = at_keys(&x->a, &k.z, b, i);
        k.turn = i + h + b;
        if (k.seen.lo < k.seen.hi)
            row(&k);
    }
}

/* The largest block of at most 2^most labels that the row sees whole; of those, by turns. */
static void ask_block(struct asking *k, int64_t shift, int most)
{
    for (int m = most; m >= 0; m--) {
        int64_t size = (int64_t)1 << m;
        int64_t first = (k->seen.lo + shift + size - 1) / size, end = (k->seen.hi + shift) / size;
        if (first >= end)
            continue;
        ask(k->x, k->r, (first + k->turn % (end - first)) * size, m);
        return;
    }
}

static void ask_largest(struct asking *k) { ask_block(k, 0, MOST_BLOCK); }
static void ask_eight(struct asking *k) { ask_block(k, 4, 3); }

/* Every key that the row sees, where that is pairs; else the largest block. */
static void ask_pairs(struct asking *k)
{
    int n = digits(k->x);
    if (k->seen.lo % 2 == 0 && k->seen.hi % 2 == 0)
        ask(k->x, k->r, 0, n);
    else
        ask_block(k, 0, n);
}

/* Border t of the keys that a tile makes: 0; tile-1, tile, tile+1; 2 tile-1, ...; the last. */
static int64_t border(const struct at_canvas *x, int64_t t)
{
    return t == 0 ? 0 : at_min((t + 2) / 3 * x->tile + (t + 2) % 3 - 1, x->Skv - 1);
}

static void ask_border(struct asking *k)
{
    const struct at_canvas *x = k->x;
    int64_t most = 3 * (x->Skv / x->tile + 1), n = 0, last = -1, found = k->seen.lo;
    for (int64_t t = 0; t <= most; t++)
        n += border(x, t) >= k->seen.lo && border(x, t) < k->seen.hi;
    for (int64_t t = 0, at = 0; t <= most && last < 0; t++)
        if (border(x, t) >= k->seen.lo && border(x, t) < k->seen.hi && at++ == k->turn % n)
            last = found = border(x, t);
    ask(k->x, k->r, found, 0);
}

/* Blocks around borders of the tile: the largest power of two that divides it, at least 2. */
static int block_of(const struct at_canvas *x)
{
    int m = 1;
    while (m < MOST_BLOCK && x->tile % ((int64_t)2 << m) == 0 && x->tile % 2 == 0)
        m++;
    return m;
}

static void ask_straddle(struct asking *k)
{
    const struct at_canvas *x = k->x;
    int m = block_of(x);
    int64_t half = (int64_t)1 << (m - 1), T = x->tile;
    int64_t first = (k->seen.lo + half + T - 1) / T, end = (k->seen.hi - half) / T + 1;
    if (x->tile % 2 != 0 || k->seen.hi < half || at_max(first, 1) >= end) {
        ask_block(k, half, m);
        return;
    }
    first = at_max(first, 1);
    ask(k->x, k->r, (first + k->turn % (end - first)) * T, m);
}

static void ask_place(struct asking *k) { ask(k->x, k->r, k->seen.lo, 0); }

static void ask_last(struct asking *k)
{
    ask(k->x, k->r, k->turn % 3 ? k->seen.hi - 1 : k->seen.lo, 0);
}

/* -- Values ---------------------------------------------------------------------------------- */

/* 1, 2, 3 of each key, or of each head and column alone; one sign a column, so that no sum is 0. */
static void small_values(struct at_canvas *x, bool constant)
{
    struct at_brush b = at_canvas_brush(x, 3);
    int64_t n = x->B * x->Hkv * x->Skv * x->Dv;
    for (int64_t t = 0; t < n; t++) {
        int64_t c = t % x->Dv, g = t / (x->Skv * x->Dv);
        int64_t y = at_integer(b, (uint64_t)(constant ? g * x->Dv + c : t), 1, 3);
        x->v[t] = (double)((c + g) % 2 ? -y : y);
    }
}

void at_fill_constant(struct at_canvas *x)
{
    label_keys(x, 0, -1);
    each_row(x, ask_largest);
    small_values(x, true);
}

void at_fill_equal(struct at_canvas *x)
{
    label_keys(x, 0, -1);
    each_row(x, ask_largest);
    small_values(x, false);
}

void at_fill_straddle(struct at_canvas *x)
{
    label_keys(x, (int64_t)1 << (block_of(x) - 1), -1);
    each_row(x, ask_straddle);
    small_values(x, false);
}

/* +-2^0 .. +-2^7 on eight neighbours, another order in each column; any subset has its own sum. */
void at_fill_signature(struct at_canvas *x)
{
    int64_t n = x->B * x->Hkv * x->Skv * x->Dv;
    label_keys(x, 4, -1);
    each_row(x, ask_eight);
    for (int64_t t = 0; t < n; t++) {
        int64_t c = t % x->Dv, j = t / x->Dv % x->Skv, g = t / (x->Dv * x->Skv);
        double power = (double)((int64_t)1 << (j + c) % 8);
        x->v[t] = ((c + g) % 2 ? -power : power);
    }
}

/* +-1 or +-2, and its opposite at the next key. */
void at_fill_balance(struct at_canvas *x)
{
    struct at_brush b = at_canvas_brush(x, 3);
    label_keys(x, 0, -1);
    each_row(x, ask_pairs);
    for (int64_t t = 0; t < at_v_n(x); t++) {
        int64_t c = t % x->Dv, r = t / x->Dv, j = r % x->Skv;
        int64_t y = at_integer(b, (uint64_t)((r - j % 2) * x->Dv + c), 0, 3) - 2;
        y += y >= 0;
        x->v[t] = (double)(j % 2 ? -y : y);
    }
}

void at_fill_needle(struct at_canvas *x)
{
    label_keys(x, 0, -1);
    each_row(x, ask_border);
    at_fill_normal(x, x->v, 3, x->B * x->Hkv * x->Skv * x->Dv);
}

void at_fill_diagonal(struct at_canvas *x)
{
    label_keys(x, 0, 1);
    each_row(x, ask_place);
    at_fill_normal(x, x->v, 3, x->B * x->Hkv * x->Skv * x->Dv);
}

void at_fill_lengths(struct at_canvas *x)
{
    label_keys(x, 0, -1);
    each_row(x, ask_last);
    at_fill_normal(x, x->v, 3, x->B * x->Hkv * x->Skv * x->Dv);
    at_poison(x);
}

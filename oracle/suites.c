/* The cases: what each catches, and how its inputs are painted beyond plain normals.
 *
 * A case's number selects its stream of random numbers and its name its file, so neither is ever
 * used for another case; a wrong one is withdrawn (manifest.c), a new one joins at the end.
 * Suites are named by what stands before the first dash. SPDX-License-Identifier: MIT */
#include "generate.h"
#include "ref.h"
#include <math.h>

/* -- Extents and masks ------------------------------------------------------------------------- */

static void corner(struct at_canvas *x, enum at_corner which)
{
    x->corner = which;
    x->left = AT_UNBOUNDED;
    x->right = which == AT_NO_CORNER ? AT_UNBOUNDED : 0;
}

static void set_bottom_right(struct at_canvas *x) { corner(x, AT_BOTTOM_RIGHT); }
static void set_top_left(struct at_canvas *x) { corner(x, AT_TOP_LEFT); }
static void set_decode(struct at_canvas *x) { x->Sq = 1; }
static void set_masked(struct at_canvas *x) { x->masked = true; }
static void set_biased(struct at_canvas *x) { x->biased = true; }

static void set_window(struct at_canvas *x)
{
    corner(x, AT_BOTTOM_RIGHT);
    x->left = x->tile;
}

static void set_both_sides(struct at_canvas *x)
{
    corner(x, AT_NO_CORNER);
    x->left = x->tile - 1;
    x->right = x->tile + 1;
}

static void set_diagonal(struct at_canvas *x)
{
    corner(x, AT_NO_CORNER);
    x->left = x->right = 0;
}

static void set_two(struct at_canvas *x)
{
    corner(x, AT_BOTTOM_RIGHT);
    x->left = 1;
}

void at_set_lengths(struct at_canvas *x)
{
    x->lengths = true;
    x->B = at_max(x->B, 5);
}

static void set_batch_decode(struct at_canvas *x)
{
    x->Sq = 1;
    x->lengths = true;
    x->B = at_max(x->B, 7);
    corner(x, AT_NO_CORNER);
}

/* -- Values ------------------------------------------------------------------------------------ */

static int64_t q_n(const struct at_canvas *x) { return x->B * x->Hq * x->Sq * x->D; }
static int64_t k_n(const struct at_canvas *x) { return x->B * x->Hkv * x->Skv * x->D; }
static int64_t v_n(const struct at_canvas *x) { return x->B * x->Hkv * x->Skv * x->Dv; }

static void fill(struct at_canvas *x)
{
    at_fill_normal(x, x->q, 1, q_n(x));
    at_fill_normal(x, x->k, 2, k_n(x));
    at_fill_normal(x, x->v, 3, v_n(x));
}

static void times(double *to, int64_t n, double factor)
{
    for (int64_t t = 0; t < n; t++)
        to[t] *= factor;
}

static void fill_peaked(struct at_canvas *x)
{
    fill(x);
    times(x->q, q_n(x), 4);
}

static void fill_mean(struct at_canvas *x)
{
    fill(x);
    for (int64_t t = 0; t < v_n(x); t++)
        x->v[t] += 3;
}

/* The last column adds f(j) to each score: q is 2^e there, k is f(j)/(2^e scale). */
static void add_to_scores(struct at_canvas *x, double (*f)(const struct at_canvas *x, int64_t j))
{
    double Q = 16;
    for (int64_t t = x->D - 1; t < q_n(x); t += x->D)
        x->q[t] = Q;
    for (int64_t t = x->D - 1; t < k_n(x); t += x->D)
        x->k[t] = f(x, t / x->D % x->Skv) / (Q * x->a.score.scale);
}

/* In fp8 the largest k is 448, in fp16 65504: offsets as large as all formats take. */
static double common(const struct at_canvas *x, int64_t j)
{
    (void)j;
    return 4096 * x->a.score.scale;
}

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

static void fill_common(struct at_canvas *x) { fill(x), add_to_scores(x, common); }
static void fill_rising(struct at_canvas *x) { fill(x), add_to_scores(x, rising); }
static void fill_falling(struct at_canvas *x) { fill(x), add_to_scores(x, falling); }
static void fill_by_tile(struct at_canvas *x) { fill(x), add_to_scores(x, by_tile); }
static void fill_at_the_end(struct at_canvas *x) { fill(x), add_to_scores(x, at_the_end); }

/* All scores 0: q is silent, k is loud. */
static void fill_zero(struct at_canvas *x)
{
    at_fill_normal(x, x->k, 2, k_n(x));
    at_fill_normal(x, x->v, 3, v_n(x));
}

static void fill_half(struct at_canvas *x)
{
    at_fill_normal(x, x->v, 3, v_n(x));
    add_to_scores(x, half);
    for (int64_t t = 0; t < v_n(x); t++)
        x->v[t] += 3;
}

/* n max|v| below the largest number: no sum of the request's type overflows. */
static void fill_huge(struct at_canvas *x)
{
    double most = at_format(x->want->dtype).max / (8 * (double)x->Skv), factor = 1;
    while (factor * 2 <= most)
        factor *= 2;
    fill(x);
    times(x->v, v_n(x), factor);
}

static void fill_tiny(struct at_canvas *x)
{
    double factor = 1, least = ldexp(1, (int)at_format(x->want->dtype).emin - 2);
    while (factor / 2 >= least)
        factor /= 2;
    fill(x);
    times(x->v, v_n(x), factor);
}

/* Large values in the first half of the keys, their opposites in the second, and normals on top. */
static void fill_cancel(struct at_canvas *x)
{
    fill_zero(x);
    for (int64_t t = 0; t < v_n(x); t++) {
        int64_t j = t / x->Dv % x->Skv, n = x->Skv / 2;
        x->v[t] += j < n ? 200 : j < 2 * n ? -200 : 0;
    }
}

static void fill_poisoned(struct at_canvas *x) { fill(x), at_poison(x); }

/* Half of the keys; row 1 none. */
static void fill_masked(struct at_canvas *x)
{
    fill(x);
    for (int64_t t = 0; t < x->B * x->Sq * x->Skv; t++)
        x->mask[t] =
            t / x->Skv % x->Sq != 1 && at_integer(at_canvas_brush(x, 5), (uint64_t)t, 0, 1);
}

static void fill_biased(struct at_canvas *x)
{
    int64_t n = x->Hq * x->Sq * x->Skv;
    fill(x);
    at_fill_normal(x, x->bias, 4, n);
    for (int64_t t = 0; t < n; t++)
        if (at_integer(at_canvas_brush(x, 5), (uint64_t)t, 0, 3) == 0)
            x->bias[t] = -INFINITY;
}

/* -- The table --------------------------------------------------------------------------------- */

#define LABELS .unfit = at_unfit_label

static const struct at_plot plots[] = {
    {1, "smoke-normal", "gross faults on ordinary inputs", "", .fill = fill},
    {2, "smoke-decode", "one query row: another code path in most libraries", "",
     .size = set_decode, .fill = fill},
    {3, "smoke-peaked", "scale applied twice or not at all: few keys carry the weight", "",
     .fill = fill_peaked},
    {4, "smoke-mean", "gain errors: values of mean 3, so a wrong l shows in every element", "",
     .fill = fill_mean},
    {5, "exact-constant", "a key counted in l or in u alone; another head's or column's v", "",
     AT_COUNTED, LABELS, .fill = at_fill_constant},
    {6, "exact-equal", "a key lost, counted twice or foreign among up to 64 equal scores", "",
     AT_COUNTED, LABELS, .fill = at_fill_equal},
    {7, "exact-straddle", "keys lost or counted twice on either side of a tile's border", "",
     AT_COUNTED, true, .fill = at_fill_straddle, LABELS},
    {8, "exact-signature", "which keys were counted: values 2^0 .. 2^7 on eight neighbours", "",
     AT_COUNTED, LABELS, .fill = at_fill_signature},
    {9, "exact-needle", "keys tile-1, tile, tile+1 of every tile: each is some row's only key", "",
     AT_ONE_KEY, true, .fill = at_fill_needle, LABELS},
    {10, "exact-diagonal", "window (0,0): hidden neighbours have overwhelming scores", "window",
     AT_ONE_KEY, .size = set_diagonal, .fill = at_fill_diagonal, LABELS},
    {11, "exact-lengths", "keys past kv_len read: they hold NaN; first and last key are needles",
     "lengths", AT_ONE_KEY, true, .size = at_set_lengths, .fill = at_fill_lengths, LABELS},
    {12, "masks-bottom-right", "the wrong causal corner", "causal", .size = set_bottom_right,
     .fill = fill},
    {13, "masks-top-left", "the wrong causal corner", "causal top-left", .size = set_top_left,
     .fill = fill},
    {14, "masks-window", "a window of a tile to the left, off by one", "causal, window",
     .by_tile = true, .size = set_window, .fill = fill},
    {15, "masks-both-sides", "a window of tile-1 to the left and tile+1 to the right", "window",
     .by_tile = true, .size = set_both_sides, .fill = fill},
    {16, "masks-lengths", "kv_len of 1, tile-1, tile, tile+1, all; NaN past it", "lengths",
     .by_tile = true, .size = at_set_lengths, .fill = fill_poisoned},
    {17, "masks-boolean", "a mask that is data; a row that sees nothing", "mask",
     .size = set_masked, .fill = fill_masked},
    {18, "masks-bias", "a bias that is data, a quarter of it -inf", "bias", .size = set_biased,
     .fill = fill_biased},
    {19, "extreme-common", "one large offset on every score: merges through lse, fused shifts", "",
     .fill = fill_common},
    {20, "extreme-rising", "scores that rise by 64 along the keys: every tile rescales", "",
     .fill = fill_rising},
    {21, "extreme-falling", "scores that fall by 64: weights that underflow", "",
     .fill = fill_falling},
    {22, "extreme-zero", "all scores 0: the sums alone", "", .fill = fill_zero},
    {23, "extreme-huge", "values near the largest number", "", .fill = fill_huge},
    {24, "extreme-tiny", "values among the subnormals: flushed to 0", "", .fill = fill_tiny},
    {25, "splits-maximum", "a new maximum at the first key of every tile", "", .by_tile = true,
     .fill = fill_by_tile},
    {26, "splits-last", "the last key of every tile carries the weight", "", .by_tile = true,
     .fill = fill_at_the_end},
    {27, "splits-lengths", "sequences that end at tile-1, tile, tile+1, with rising maxima",
     "lengths", .by_tile = true, .size = at_set_lengths, .fill = fill_by_tile},
    {28, "adversarial-half", "weights halfway between bf16 numbers: P truncated, not rounded", "",
     .fill = fill_half},
    {29, "adversarial-cancel", "sorted values whose sum cancels: sums in a narrow type", "",
     .fill = fill_cancel},
    {30, "adversarial-two", "two keys a row: the bound is reached to 0.9", "causal, window",
     .size = set_two, .fill = fill_peaked},
    {31, "workloads-prefill", "all queries at once, causal", "causal", .size = set_bottom_right,
     .fill = fill},
    {32, "workloads-decode", "one query against the cache", "", .size = set_decode, .fill = fill},
    {33, "workloads-batch", "one query each against caches of Skv/64 .. Skv keys", "lengths",
     .size = set_batch_decode, .fill = fill_poisoned},
};

const struct at_plot *at_plot_at(int64_t k)
{
    return k >= 0 && k < (int64_t)(sizeof plots / sizeof *plots) ? &plots[k] : NULL;
}

const char *at_suite_at(int64_t k)
{
    static const char *const suites[] = {"smoke",  "exact",       "masks",     "extreme",
                                         "splits", "adversarial", "workloads", "full"};
    return k >= 0 && k < (int64_t)(sizeof suites / sizeof *suites) ? suites[k] : NULL;
}

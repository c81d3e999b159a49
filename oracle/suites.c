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
static void set_rows_of_tiles(struct at_canvas *x) { x->Sq = at_max(x->Sq, 2 * x->tile + 1); }
static void set_masked(struct at_canvas *x) { x->has[AT_MASK] = true; }
static void set_biased(struct at_canvas *x) { x->has[AT_BIAS] = true; }

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

static void set_lengths(struct at_canvas *x)
{
    x->has[AT_KV_LEN] = true;
    x->B = at_max(x->B, 5);
}

static void set_batch_decode(struct at_canvas *x)
{
    x->Sq = 1;
    x->has[AT_KV_LEN] = true;
    x->B = at_max(x->B, 7);
    corner(x, AT_NO_CORNER);
}

static void set_scale(struct at_canvas *x) { x->a.score.scale = 1 / (double)x->D; }
static void set_softcap(struct at_canvas *x) { x->a.score.softcap = 5; }
static void set_sink(struct at_canvas *x) { x->has[AT_SINK] = true; }
static void set_slopes(struct at_canvas *x) { x->has[AT_ALIBI] = true; }

static void set_slopes_causal(struct at_canvas *x)
{
    set_slopes(x);
    corner(x, AT_BOTTOM_RIGHT);
}

static void set_slopes_both(struct at_canvas *x)
{
    set_slopes(x);
    corner(x, AT_NO_CORNER);
}

static void set_order(struct at_canvas *x)
{
    set_softcap(x);
    set_slopes(x);
    x->has[AT_BIAS] = true;
}

static void set_sink_alone(struct at_canvas *x) { x->has[AT_SINK] = x->has[AT_MASK] = true; }

static void set_descale(struct at_canvas *x, enum at_grain grain)
{
    x->has[AT_Q_DESCALE] = x->has[AT_K_DESCALE] = x->has[AT_V_DESCALE] = true;
    x->grain = grain;
}

static void set_descale_tensor(struct at_canvas *x) { set_descale(x, AT_BY_TENSOR); }
static void set_descale_head(struct at_canvas *x) { set_descale(x, AT_BY_HEAD); }
static void set_descale_row(struct at_canvas *x) { set_descale(x, AT_BY_ROW); }

static void set_dropout(struct at_canvas *x)
{
    x->a.dropout.p = 0.1;
    x->a.dropout.seed = x->want->seed;
}

/* Seed and offset past 32 bits. */
static void set_dropout_wide(struct at_canvas *x)
{
    x->a.dropout.p = 0.5;
    x->a.dropout.seed = (x->want->seed ^ 0x1234567890abcdefu) & INT64_MAX;
    x->a.dropout.offset = 0x123456789abcu;
}

static void set_keep(struct at_canvas *x)
{
    x->a.dropout.p = 0.25;
    x->has[AT_KEEP] = true;
}

static void set_rows(struct at_canvas *x)
{
    set_lengths(x);
    x->has[AT_Q_LEN] = true;
}

static void set_offsets(struct at_canvas *x)
{
    corner(x, AT_NO_CORNER);
    x->right = 0;
    x->has[AT_OFFSETS] = true;
    x->B = at_max(x->B, 5);
}

static void set_packed(struct at_canvas *x)
{
    set_rows(x);
    x->packed = true;
}

static void set_dropout_packed(struct at_canvas *x)
{
    set_packed(x);
    set_dropout(x);
}

static void set_pages(struct at_canvas *x)
{
    set_lengths(x);
    x->paging = AT_BLOCK_TABLE;
}

static void set_page_list(struct at_canvas *x)
{
    set_lengths(x);
    x->paging = AT_PAGE_LIST;
}

static void set_packed_pages(struct at_canvas *x)
{
    set_packed(x);
    x->paging = AT_BLOCK_TABLE;
}

/* -- The table --------------------------------------------------------------------------------- */

#define LABELS .unfit = at_unfit_label

static const struct at_plot plots[] = {
    {1, "smoke-normal", "gross faults on ordinary inputs", "", .fill = at_fill},
    {2, "smoke-decode", "one query row: another code path in most libraries", "",
     .size = set_decode, .fill = at_fill},
    {3, "smoke-peaked", "scale applied twice or not at all: few keys carry the weight", "",
     .fill = at_fill_peaked},
    {4, "smoke-mean", "gain errors: values of mean 3, so a wrong l shows in every element", "",
     .fill = at_fill_mean},
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
     "lengths", AT_ONE_KEY, true, .size = set_lengths, .fill = at_fill_lengths, LABELS},
    {12, "masks-bottom-right", "the wrong causal corner", "causal", .size = set_bottom_right,
     .fill = at_fill},
    {13, "masks-top-left", "the wrong causal corner", "causal top-left", .size = set_top_left,
     .fill = at_fill},
    {14, "masks-window", "a window of a tile to the left, off by one", "causal, window",
     .by_tile = true, .size = set_window, .fill = at_fill},
    {15, "masks-both-sides", "a window of tile-1 to the left and tile+1 to the right", "window",
     .by_tile = true, .size = set_both_sides, .fill = at_fill},
    {16, "masks-lengths", "kv_len of 1, tile-1, tile, tile+1, all; NaN past it", "lengths",
     .by_tile = true, .size = set_lengths, .fill = at_fill_poisoned},
    {17, "masks-boolean", "a mask that is data; a row that sees nothing", "mask",
     .size = set_masked, .fill = at_fill_masked},
    {18, "masks-bias", "a bias that is data, a quarter of it -inf", "bias", .size = set_biased,
     .fill = at_fill_biased},
    {19, "extreme-common", "one large offset on every score: merges through lse, fused shifts", "",
     .fill = at_fill_common},
    {20, "extreme-rising", "scores that rise by 64 along the keys: every tile rescales", "",
     .fill = at_fill_rising},
    {21, "extreme-falling", "scores that fall by 64: weights that underflow", "",
     .fill = at_fill_falling},
    {22, "extreme-zero", "all scores 0: the sums alone", "", .fill = at_fill_zero},
    {23, "extreme-huge", "values near the largest number", "", .fill = at_fill_huge},
    {24, "extreme-tiny", "values among the subnormals: flushed to 0", "", .fill = at_fill_tiny},
    {25, "splits-maximum", "a new maximum at the first key of every tile", "", .by_tile = true,
     .fill = at_fill_by_tile},
    {26, "splits-last", "the last key of every tile carries the weight", "", .by_tile = true,
     .fill = at_fill_at_the_end},
    {27, "splits-lengths", "sequences that end at tile-1, tile, tile+1, with rising maxima",
     "lengths", .by_tile = true, .size = set_lengths, .fill = at_fill_by_tile},
    {28, "adversarial-half", "weights halfway between bf16 numbers: P truncated, not rounded", "",
     .fill = at_fill_half},
    {29, "adversarial-cancel", "sorted values whose sum cancels: sums in a narrow type", "",
     .fill = at_fill_cancel},
    {30, "adversarial-two", "two keys a row: the bound is reached to 0.9", "causal, window",
     .size = set_two, .fill = at_fill_peaked},
    {31, "workloads-prefill", "all queries at once, causal", "causal", .size = set_bottom_right,
     .fill = at_fill},
    {32, "workloads-decode", "one query against the cache", "", .size = set_decode,
     .fill = at_fill},
    {33, "workloads-batch", "one query each against caches of Skv/64 .. Skv keys", "lengths",
     .size = set_batch_decode, .fill = at_fill_poisoned},
    /* from version 2 on */
    {34, "extreme-low", "a maximum that starts at 0 or -10000: every score is far below", "",
     .fill = at_fill_low},
    {35, "scores-scale", "1/sqrt(D) where another scale is said: 1/D", "scale", .size = set_scale,
     .fill = at_fill_scale},
    {36, "scores-softcap", "the softcap left out, or bent; scores are as large as the cap",
     "softcap", .size = set_softcap, .fill = at_fill_peaked},
    {37, "scores-order", "softcap, bias and ALiBi in another order", "softcap, bias, alibi",
     .size = set_order, .fill = at_fill_order},
    {38, "scores-alibi", "distances from the wrong corner, of the wrong sign", "causal, alibi",
     .size = set_slopes_causal, .fill = at_fill_slopes},
    {39, "scores-alibi-both", "the distance of keys to the right: |p - j|", "alibi",
     .size = set_slopes_both, .fill = at_fill_slopes},
    {40, "scores-sink", "the sink left out, scaled, or counted twice", "sink", .size = set_sink,
     .fill = at_fill_sink},
    {41, "scores-sink-above", "sinks above every score, past what e^x holds, of -inf", "sink",
     .size = set_sink, .fill = at_fill_sink_above},
    {42, "scores-sink-alone", "rows that see nothing but the sink: out 0, lse the sink",
     "sink, mask", .size = set_sink_alone, .fill = at_fill_sink_alone},
    {43, "scores-descale-tensor", "descale left out: one number for each of q, k, v", "descale",
     .size = set_descale_tensor, .fill = at_fill_descale},
    {44, "scores-descale-head", "descale of another head or sequence", "descale",
     .size = set_descale_head, .fill = at_fill_descale},
    {45, "scores-descale-row", "descale of another row", "descale", .size = set_descale_row,
     .fill = at_fill_descale},
    {46, "dropout-draw", "the draw's counter, the gain, weights that do not count in l", "dropout",
     .size = set_dropout, .fill = at_fill},
    {47, "dropout-wide", "seed and offset cut to 32 bits", "dropout", .size = set_dropout_wide,
     .fill = at_fill},
    {48, "dropout-keep", "a mask of the kept weights", "keep", .size = set_keep,
     .fill = at_fill_keep},
    {49, "dropout-packed", "the counter of packed rows: it counts the longest lengths",
     "dropout, packed", .size = set_dropout_packed, .fill = at_fill},
    {50, "batches-rows", "q_len of all, none, one, half; rows past it are (0, -inf)",
     "lengths, q_len", .by_tile = true, .size = set_rows, .fill = at_fill_poisoned},
    {51, "batches-offsets", "causal with a position of its own for each sequence", "offset",
     .by_tile = true, .size = set_offsets, .fill = at_fill},
    {52, "batches-packed", "rows of other sequences; a sequence without rows", "packed",
     .by_tile = true, .size = set_packed, .fill = at_fill},
    {53, "batches-pages", "pages of 16 keys in any order; NaN in pages and ends nobody owns",
     "pages", .by_tile = true, .size = set_pages, .fill = at_fill_poisoned},
    {54, "batches-page-list", "pages of 16 keys as a list, heads before rows", "page list",
     .by_tile = true, .size = set_page_list, .fill = at_fill_poisoned},
    {55, "batches-packed-pages", "packed queries over a paged cache", "packed, pages",
     .by_tile = true, .size = set_packed_pages, .fill = at_fill_poisoned},
    {56, "batches-needle", "a key of another page or sequence: each row has one key that answers",
     "packed, pages", AT_ONE_KEY, true, .size = set_packed_pages, .fill = at_fill_needle, LABELS},
    {57, "infinities-values", "NaN and infinities of visible values, and of no others", "causal",
     .size = set_bottom_right, .fill = at_fill_infinite_values},
    {58, "infinities-scores", "a key whose scores are -inf, +inf and NaN", "",
     .fill = at_fill_infinite_scores},
    {59, "infinities-hidden", "0 times NaN: hidden keys hold NaN and infinities", "mask",
     .size = set_masked, .fill = at_fill_hidden},
    {60, "adversarial-search", "rounding at its worst: inputs found by climbing", "",
     .fill = at_fill_search, .unfit = at_unfit_search},
    {61, "exact-balance", "a key lost or counted twice anywhere: values cancel, so out is 0", "",
     AT_BALANCED, .fill = at_fill_balance, LABELS},
    /* from version 3 on */
    {62, "smoke-rows", "query tiles: two of them and a row, each row at its own place", "",
     .size = set_rows_of_tiles, .fill = at_fill},
    {63, "splits-empty", "0 for the maximum of splits and tiles without keys: scores are far below",
     "lengths", .by_tile = true, .size = set_lengths, .fill = at_fill_below},
    {64, "adversarial-pair", "the exponential alone: two keys a row, small scores, opposite values",
     "causal, window", .size = set_two, .fill = at_fill_pair},
};

/* The last number of each version. */
static const uint32_t last[AT_SUITE] = {33, 61, 64};

int64_t at_plot_since(const struct at_plot *plot)
{
    int64_t version = 1;
    while (plot->number > last[version - 1])
        version++;
    return version;
}

const struct at_plot *at_plot_at(int64_t k)
{
    return k >= 0 && k < (int64_t)(sizeof plots / sizeof *plots) ? &plots[k] : NULL;
}

const char *at_suite_at(int64_t k)
{
    static const char *const suites[] = {"smoke",   "exact",       "masks",      "scores",
                                         "dropout", "batches",     "infinities", "extreme",
                                         "splits",  "adversarial", "workloads",  "full"};
    return k >= 0 && k < (int64_t)(sizeof suites / sizeof *suites) ? suites[k] : NULL;
}

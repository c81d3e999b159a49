/* The bank of planted faults: the scalar engine in fp32 with one thing wrong, to show that the
 * judge sees it, and to name what a stranger's kernel does wrong (diagnose.c).
 *
 * Each fault is tied to a public one by its number in the catalogue (tests/catalogue_*.c; 0: none
 * there), and to the arithmetic that it must fail where it has an effect: under a looser one it may
 * be legal. Where it needs a feature to show, the descriptor must have it.
 * SPDX-License-Identifier: MIT */
#include "mutant.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct at_mutant mutants[] = {
    [LOST_RESCALE] = {"lost-rescale",
                      "l and u keep their old reference when tile N raises the maximum", "fp32",
                      AT_NEEDS_TILES, 90, "tile"},
    [LOST_RESCALE_U] = {"lost-rescale-u",
                        "u keeps its old reference when tile N raises the maximum", "fp32",
                        AT_NEEDS_TILES, 90, "tile"},
    [LOST_RESCALE_L] = {"lost-rescale-l",
                        "l keeps its old reference when tile N raises the maximum", "fp32",
                        AT_NEEDS_TILES, 90, "tile"},
    [INVERSE_RESCALE] = {"inverse-rescale",
                         "old sums are multiplied by e^(m'-m) instead of e^(m-m')", "fp32",
                         AT_NEEDS_TILES, 90, NULL},
    [STALE_MAXIMUM] = {"stale-maximum", "weights of tile N refer to the maximum before it", "fp32",
                       AT_NEEDS_TILES, 13, "tile"},
    [MAXIMUM_FROM_ZERO] = {"maximum-from-zero", "the running maximum starts at 0", "fp32",
                           AT_NEEDS_LOW, 8, NULL},
    [MAXIMUM_FLOOR] = {"maximum-floor", "the running maximum starts at -10000", "fp32",
                       AT_NEEDS_LOW, 3, NULL},
    [NO_MAXIMUM] = {"no-maximum", "weights are e^s, without a maximum", "fp32", AT_NEEDS_HIGH, 0,
                    NULL},
    [HIDDEN_TILE_ZERO] = {"hidden-tile-zero",
                          "a tile that the row does not see raises the maximum to 0", "fp32",
                          AT_NEEDS_TILES | AT_NEEDS_HIDDEN | AT_NEEDS_LOW, 8, NULL},
    [LAGGING_SUM] = {"lagging-sum", "l takes in the sum of the tile before N", "fp32",
                     AT_NEEDS_TILES, 13, "tile"},
    [STALE_WORKSPACE] = {"stale-workspace", "u starts from what the row before left there", "fp32",
                         0, 19, NULL},
    [LOST_KEY] = {"lost-key", "key N is never pushed", "fp32", 0, 25, "key"},
    [LOST_UPDATE] = {"lost-update", "key N counts in l, but not in u", "fp32", 0, 52, "key"},
    [TWICE_KEY] = {"twice-key", "key N is pushed twice", "fp32", 0, 25, "key"},
    [LOST_TILE] = {"lost-tile", "tile N is skipped", "fp32", 0, 6, "tile"},
    [TWICE_TILE] = {"twice-tile", "tile N is counted twice", "fp32", 0, 25, "tile"},
    [LOST_TAIL] = {"lost-tail", "the last tile is skipped where it is not full", "fp32",
                   AT_NEEDS_TAIL, 25, NULL},
    [OPEN_TAIL] = {"open-tail",
                   "the last tile's end is not masked: keys and values 0 past the last key", "fp32",
                   AT_NEEDS_TAIL, 36, NULL},
    [NEIGHBOUR_VALUE] = {"neighbour-value", "in tile N a key's weight meets the next key's value",
                         "fp32", 0, 76, "tile"},
    [LAST_COLUMN] = {"last-column", "the last column of v is not loaded", "fp32", 0, 42, NULL},
    [UNWRITTEN_ROW] = {"unwritten-row", "the last row of each head is never written", "fp32", 0, 24,
                       NULL},
    [CAUSAL_WIDE] = {"causal-off-by-one", "each row sees one key more on the right", "fp32",
                     AT_NEEDS_CAUSAL, 30, NULL},
    [CAUSAL_SHORT] = {"causal-short", "each row sees one key less on the right", "fp32",
                      AT_NEEDS_CAUSAL, 30, NULL},
    [CAUSAL_CORNER] = {"causal-corner", "the diagonal ends in the other corner", "fp32",
                       AT_NEEDS_CAUSAL | AT_NEEDS_SHAPE, 26, NULL},
    [CAUSAL_IGNORED] = {"causal-ignored", "keys after the row's own are seen", "fp32",
                        AT_NEEDS_CAUSAL, 89, NULL},
    [CAUSAL_IN_TILE] = {"causal-in-tile", "the diagonal starts anew in each tile of query rows",
                        "fp32", AT_NEEDS_CAUSAL | AT_NEEDS_TILES, 28, NULL},
    [WINDOW_WIDE] = {"window-wide", "each row sees one key more on the left", "fp32",
                     AT_NEEDS_WINDOW, 29, NULL},
    [WINDOW_SHORT] = {"window-short", "each row sees one key less on the left", "fp32",
                      AT_NEEDS_WINDOW, 29, NULL},
    [WINDOW_IGNORED] = {"window-ignored", "keys before the window are seen", "fp32",
                        AT_NEEDS_WINDOW, 32, NULL},
    [WINDOW_CAUSAL] = {"window-causal", "what a window shows on the right is hidden", "fp32",
                       AT_NEEDS_CAUSAL, 30, NULL},
    [MASK_INVERTED] = {"mask-inverted", "the mask's 0 shows and 1 hides", "fp32", AT_NEEDS_MASK, 73,
                       NULL},
    [MASK_IGNORED] = {"mask-ignored", "the mask is not read", "fp32", AT_NEEDS_MASK, 69, NULL},
    [MASK_FINITE] = {"mask-finite", "hidden keys are scored -10000 instead of left out", "fp32",
                     AT_NEEDS_HIDDEN, 10, NULL},
    [KV_LEN_IGNORED] = {"kv-len-ignored", "keys past the sequence's length are seen", "fp32",
                        AT_NEEDS_KV_LEN, 77, NULL},
    [Q_LEN_IGNORED] = {"q-len-ignored", "rows past the sequence's length are computed", "fp32",
                       AT_NEEDS_Q_LEN, 1, NULL},
    [EMPTY_NAN] = {"empty-nan", "a row that sees nothing is 0/0", "fp32", AT_NEEDS_HIDDEN, 1, NULL},
    [HEAD_MODULO] = {"head-modulo", "query head h reads key head h mod Hkv", "fp32",
                     AT_NEEDS_GROUPS, 66, NULL},
    [HEAD_GROUP] = {"head-group", "query head h reads key head h / Hkv", "fp32", AT_NEEDS_HEADS, 67,
                    NULL},
    [BATCH_ZERO] = {"batch-zero", "every sequence reads the keys of the first", "fp32",
                    AT_NEEDS_BATCH, 45, NULL},
    [PAGE_IDENTITY] = {"page-identity", "the page table is read as 0, 1, 2, ...", "fp32",
                       AT_NEEDS_PAGES, 76, NULL},
    [SCALE_TWICE] = {"scale-twice", "the scale is applied twice", "fp32", 0, 60, NULL},
    [SCALE_OVER_D] = {"scale-over-d", "the scale is 1/D", "fp32", 0, 60, NULL},
    [SCALE_MISSING] = {"scale-missing", "the scale is 1", "fp32", 0, 60, NULL},
    [SCALE_PADDED] = {"scale-padded", "the scale is 1/sqrt(D) of the padded head size", "fp32", 0,
                      60, NULL},
    [DOT_TAIL] = {"dot-tail", "columns of q and k past a multiple of 8 are left out", "fp32",
                  AT_NEEDS_ODD_D, 42, NULL},
    [CAP_MISSING] = {"softcap-missing", "the softcap is not applied", "fp32", AT_NEEDS_CAP, 54,
                     NULL},
    [CAP_AFTER_BIAS] = {"softcap-after-bias", "the softcap is applied after bias and ALiBi", "fp32",
                        AT_NEEDS_CAP | AT_NEEDS_ADDED, 54, NULL},
    [CAP_EVEN] = {"softcap-even", "s tanh(s/cap) instead of cap tanh(s/cap)", "fp32", AT_NEEDS_CAP,
                  55, NULL},
    [BIAS_MISSING] = {"bias-missing", "the bias is not added", "fp32", AT_NEEDS_BIAS, 59, NULL},
    [BIAS_BASE_2] = {"bias-base-2", "the bias is added to base-2 scores unconverted", "fp32",
                     AT_NEEDS_BIAS, 59, NULL},
    [BIAS_SCALED] = {"bias-scaled", "the bias is multiplied by the scale", "fp32", AT_NEEDS_BIAS,
                     59, NULL},
    [ALIBI_MISSING] = {"alibi-missing", "ALiBi is not applied", "fp32", AT_NEEDS_ALIBI, 58, NULL},
    [ALIBI_SIGN] = {"alibi-sign", "ALiBi grows with the distance", "fp32", AT_NEEDS_ALIBI, 58,
                    NULL},
    [ALIBI_FROM_ORIGIN] = {"alibi-from-origin", "distances are counted without the offset", "fp32",
                           AT_NEEDS_ALIBI | AT_NEEDS_SHAPE, 57, NULL},
    [KEY_SCALE_LOST] = {"key-scale-lost", "k's descale is not applied", "fp32", AT_NEEDS_KSCALE, 61,
                        NULL},
    [VALUE_SCALE_LOST] = {"value-scale-lost", "v's descale is not applied", "fp32", AT_NEEDS_VSCALE,
                          61, NULL},
    [SINK_MISSING] = {"sink-missing", "the sink is not counted", "fp32", AT_NEEDS_SINK, 62, NULL},
    [SINK_TWICE] = {"sink-twice", "the sink is counted twice", "fp32", AT_NEEDS_SINK, 62, NULL},
    [SINK_SCALED] = {"sink-scaled", "the sink is multiplied by the scale", "fp32", AT_NEEDS_SINK,
                     62, NULL},
    [SINK_PAST_MAXIMUM] = {"sink-past-maximum", "the sink takes no part in the maximum", "fp32",
                           AT_NEEDS_SINK | AT_NEEDS_HIGH, 63, NULL},
    [DROPOUT_NO_GAIN] = {"dropout-no-gain", "kept weights are not divided by 1-p", "fp32",
                         AT_NEEDS_DROPOUT, 80, NULL},
    [DROPOUT_IN_SUM] = {"dropout-in-sum", "dropped keys are missing from l too", "fp32",
                        AT_NEEDS_DROPOUT, 80, NULL},
    [DROPOUT_IGNORED] = {"dropout-ignored", "nothing is dropped", "fp32", AT_NEEDS_DROPOUT, 80,
                         NULL},
    [MERGE_BASE_2] = {"merge-base-2", "splits hand over a base-2 lse, merged with e^x", "fp32",
                      AT_NEEDS_SPLITS, 16, NULL},
    [MERGE_UNWEIGHTED] = {"merge-unweighted", "splits are averaged without weights", "fp32",
                          AT_NEEDS_SPLITS, 16, NULL},
    [MERGE_INVERSE] = {"merge-inverse", "the merge multiplies by the inverse factors", "fp32",
                       AT_NEEDS_SPLITS, 90, NULL},
    [FIRST_SPLIT_TWICE] = {"first-split-twice", "the first split is merged twice", "fp32",
                           AT_NEEDS_SPLITS, 25, NULL},
    [LAST_SPLIT_LOST] = {"last-split-lost", "the last split is never merged", "fp32",
                         AT_NEEDS_SPLITS, 24, NULL},
    [EMPTY_SPLIT_ZERO] = {"empty-split-zero",
                          "a split without keys is merged with 0 for its maximum", "fp32",
                          AT_NEEDS_SPLITS | AT_NEEDS_LOW, 25, NULL},
    [LSE_BASE_2] = {"lse-base-2", "the lse returned is in base 2", "fp32", AT_NEEDS_LSE, 15, NULL},
    [LSE_NO_MAXIMUM] = {"lse-no-maximum", "the lse returned is log l, without the maximum", "fp32",
                        AT_NEEDS_LSE, 20, NULL},
    [NAN_EMPTY] = {"nan-empty", "a row whose sum is NaN is taken for one that sees nothing", "fp32",
                   AT_NEEDS_RANGE, 14, NULL},
    [NAN_TO_ZERO] = {"nan-to-zero", "NaN in out is written as 0", "fp32", AT_NEEDS_RANGE, 1, NULL},
    [SCORE_CLAMPED] = {"score-clamped", "a score of +inf is cut to the largest finite number",
                       "fp32", AT_NEEDS_RANGE, 0, NULL},
    [VALUE_CLAMPED] = {"value-clamped", "an infinite v is cut to the largest finite number", "fp32",
                       AT_NEEDS_RANGE, 0, NULL},
    [VALUE_FLUSHED] = {"value-flushed", "a subnormal v is read as 0", "fp32", AT_NEEDS_RANGE, 0,
                       NULL},
    [WEIGHTS_SCALED] = {"weights-scaled", "u is kept times 2^8, and may overflow", "fp32",
                        AT_NEEDS_RANGE, 48, NULL},
    [P_TRUNCATED] = {"p-truncated", "P is cut to bf16 instead of rounded", "bf16-p", 0, 0, NULL},
    [P_BF16] = {"p-bf16", "P in bf16: rounded before P V", "fp32", 0, 52, NULL},
    [P_FP16] = {"p-fp16", "P in fp16: rounded before P V", "fp32", 0, 52, NULL},
    [SCORES_BF16] = {"scores-bf16", "scores in bf16", "fp32", 0, 0, NULL},
    [SCORES_FP16] = {"scores-fp16", "scores in fp16", "fp32", 0, 47, NULL},
    [Q_BF16] = {"q-bf16", "q is scaled first and rounded to bf16", "fp32", 0, 0, NULL},
    [SCALE_SLIGHT] = {"scale-slight", "the scale is off by 2^-13", "fp32", 0, 0, NULL},
    [TF32_INPUTS] = {"tf32-inputs", "q and k are rounded to TF32", "fp32", 0, 0, NULL},
    [SUMS_FP16] = {"sums-fp16", "l and u are summed in fp16", "fp32", 0, 48, NULL},
    [SUMS_BF16] = {"sums-bf16", "l and u are summed in bf16", "fp32", 0, 50, NULL},
    [LSE_FP16] = {"lse-fp16", "splits hand over their lse in fp16", "fp32", AT_NEEDS_SPLITS, 0,
                  NULL},
    [EXP_FLUSHED] = {"exp-flushed", "e^x is 0 below -10", "fp32", 0, 52, NULL},
    [EXP_BASE_SHORT] = {"exp-base-short", "1.4427 stands for log2 e", "fp32", 0, 0, NULL},
    [EXP_ROUGH] = {"exp-rough", "e^x is off by up to 2^-13", "fp32", 0, 0, NULL},
    [EXP_FAIR] = {"exp-fair", "e^x is off by up to 2^-17", "fp32", 0, 0, NULL},
    [EXP_CLOSE] = {"exp-close", "e^x is off by up to 20 ulps", "fp32", 0, 0, NULL},
    [SMALL_WEIGHTS_LOST] = {"small-weights-lost", "weights below 2^-10 are 0 in P V, not in l",
                            "fp32", 0, 52, NULL},
};

const struct at_mutant *at_mutant_at(int64_t k)
{
    return k >= 0 && k < FAULTS ? &mutants[k] : NULL;
}

int64_t at_mutant_formats(void) { return P_TRUNCATED; }

/* -- What a problem offers ------------------------------------------------------------------- */

unsigned at_mutant_offers(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    struct at_sizes z = at_sizes(a);
    bool lengths = s->kv_len && !s->kv_start && !a->pages.table;
    bool hides = s->right != AT_UNBOUNDED || s->left != AT_UNBOUNDED || s->mask.data ||
                 s->bias.data || s->kv_len || s->q_len || z.Skv == 0;
    unsigned x = AT_NEEDS_LOW | AT_NEEDS_HIGH | AT_NEEDS_TILES | AT_NEEDS_TAIL | AT_NEEDS_SPLITS |
                 AT_NEEDS_LSE | AT_NEEDS_RANGE;
    x |= s->right != AT_UNBOUNDED ? AT_NEEDS_CAUSAL : 0;
    x |= s->offset || z.Sq != z.Skv ? AT_NEEDS_SHAPE : 0;
    x |= s->left != AT_UNBOUNDED ? AT_NEEDS_WINDOW : 0;
    x |= s->mask.data ? AT_NEEDS_MASK : 0;
    x |= hides ? AT_NEEDS_HIDDEN : 0;
    x |= lengths ? AT_NEEDS_KV_LEN : 0;
    x |= s->q_len && !s->q_start ? AT_NEEDS_Q_LEN : 0;
    x |= z.Hq != z.Hkv && z.Hkv > 1 ? AT_NEEDS_GROUPS : 0;
    x |= z.Hkv > 1 ? AT_NEEDS_HEADS : 0;
    x |= z.B > 1 ? AT_NEEDS_BATCH : 0;
    x |= a->pages.table ? AT_NEEDS_PAGES : 0;
    x |= z.D % 8 != 0 ? AT_NEEDS_ODD_D : 0;
    x |= s->softcap > 0 ? AT_NEEDS_CAP : 0;
    x |= s->bias.data ? AT_NEEDS_BIAS : 0;
    x |= s->alibi.data ? AT_NEEDS_ALIBI : 0;
    x |= s->bias.data || s->alibi.data ? AT_NEEDS_ADDED : 0;
    x |= s->kscale.data ? AT_NEEDS_KSCALE : 0;
    x |= s->vscale.data ? AT_NEEDS_VSCALE : 0;
    x |= s->sink.data ? AT_NEEDS_SINK : 0;
    x |= at_drops(a) ? AT_NEEDS_DROPOUT : 0;
    return x;
}

/* -- "name@at,head=H" ------------------------------------------------------------------------ */

static bool parse_item(const char *item, struct at_planted *f)
{
    char *end;
    const char *digits = strchr(item, '=');
    long long n = strtoll(digits ? digits + 1 : item, &end, 10);
    if (strcmp(item, "p=bf16") == 0 || strcmp(item, "p=fp16") == 0) {
        f->weight = item[2] == 'b' ? AT_BF16 : AT_F16;
        return true;
    }
    if (*end || end == (digits ? digits + 1 : item) || n < 0)
        return false;
    if (!digits || strncmp(item, "tile=", 5) == 0 || strncmp(item, "key=", 4) == 0)
        f->at = n;
    else if (strncmp(item, "head=", 5) == 0)
        f->head = n;
    else
        return false;
    return true;
}

bool at_mutant_parse(const char *text, struct at_planted *f, struct at_said *said)
{
    char copy[128], *rest;
    *f = (struct at_planted){-1, -1, -1, AT_DEFAULT};
    if (strlen(text) >= sizeof copy)
        return at_say(said, "fault %.40s...: too long", text);
    strcpy(copy, text);
    if ((rest = strchr(copy, '@')))
        *rest++ = 0;
    for (int k = 0; k < FAULTS; k++)
        if (strcmp(mutants[k].name, copy) == 0)
            f->kind = k;
    if (f->kind < 0)
        return at_say(said, "fault %s: unknown, expected one of `attest list faults`", copy);
    while (rest && *rest) {
        char *comma = strchr(rest, ',');
        if (comma)
            *comma = 0;
        if (!parse_item(rest, f))
            return at_say(said, "fault %s: \"%s\" found, expected N, tile=N, key=N or head=N", copy,
                          rest);
        rest = comma ? comma + 1 : NULL;
    }
    if (f->at < 0 && mutants[f->kind].of && strcmp(mutants[f->kind].of, "key") == 0)
        return at_say(said, "fault %s: which key? write %s@63", copy, copy);
    return true;
}

void at_mutant_name(const struct at_planted *f, char *to, size_t size)
{
    const struct at_mutant *x = &mutants[f->kind];
    if (f->at < 0)
        snprintf(to, size, "%s", x->name);
    else
        snprintf(to, size, "%s@%s=%lld", x->name, x->of ? x->of : "", (long long)f->at);
}

/* -- Running --------------------------------------------------------------------------------- */

/* The problem as the mutant runs it: two splits where a fault of the merge finds one. */
struct at_mutant_run {
    struct at_attention a;
    int64_t middle;
    struct mutant_work w;
};

struct at_mutant_run *at_mutant_open(const struct at_attention *a, int64_t most)
{
    struct at_sizes z = at_sizes(a);
    int64_t Dv = z.Dv, D = at_max(z.D, Dv), keys = z.Skv + MUTANT_TAIL;
    int64_t parts = at_max(most, at_max(a->plan.splits, 2));
    size_t rows = (size_t)parts * sizeof(struct at_row);
    size_t floats = (size_t)(2 * D + (parts + 1) * Dv + keys) * sizeof(float);
    struct at_mutant_run *r = malloc(sizeof *r + rows + floats + (size_t)keys);
    if (!r)
        return NULL;
    *r = (struct at_mutant_run){.a = *a, .middle = z.Skv / 2};
    struct mutant_work *w = &r->w;
    *w = (struct mutant_work){.a = &r->a, .z = z, .scored_by = -1};
    w->part = (struct at_row *)(r + 1);
    w->q = (float *)(w->part + parts);
    w->kv = w->q + D;
    w->s = w->kv + D;
    w->tile.u = w->s + keys;
    for (int64_t k = 0; k < parts; k++)
        w->part[k].u = w->tile.u + (k + 1) * Dv;
    w->scored = (unsigned char *)(w->tile.u + (parts + 1) * Dv);
    return r;
}

void at_mutant_close(struct at_mutant_run *r) { free(r); }

void at_mutant_plan(struct at_mutant_run *r, int64_t tile, int64_t splits)
{
    r->a.plan.bc = tile;
    r->a.plan.splits = splits;
    r->a.plan.cut = NULL;
}

static void row(struct at_mutant_run *r, const struct at_planted *f, struct at_place p)
{
    struct mutant_work *w = &r->w;
    struct at_plan plan = r->a.plan;
    if (f->kind >= 0 && mutants[f->kind].needs & AT_NEEDS_SPLITS && plan.splits == 1) {
        r->a.plan.splits = 2;
        r->a.plan.cut = &r->middle;
    }
    w->f = *f;
    w->b = p.b, w->h = p.h, w->i = p.i;
    mutant_row(w);
    r->a.plan = plan;
}

void at_mutant_row(struct at_mutant_run *r, const struct at_planted *f, struct at_place place,
                   double *out, double *lse)
{
    row(r, f, place);
    for (int64_t c = 0; c < r->w.z.Dv; c++)
        out[c] = (double)mutant_out(&r->w, c);
    *lse = (double)mutant_lse(&r->w);
}

bool at_mutant_forward(const char *fault, const struct at_attention *a, const struct at_result *to,
                       struct at_said *said)
{
    struct at_planted f;
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    if (!at_mutant_parse(fault, &f, said))
        return false;
    if (a->plan.compute != AT_F32)
        return at_say(said, "fault %s: planted in fp32 alone, but the case needs fp64", fault);
    struct at_mutant_run *r = at_mutant_open(a, 0);
    if (!r)
        return at_say(said, "fault %s: no memory", fault);
    for (int64_t t = 0; t < all.n; t++) {
        struct at_place p = at_place_of(a, all, t);
        row(r, &f, p);
        int64_t at = at_row_offset(a, &to->out, p.b, p.h, p.i);
        for (int64_t c = 0; c < r->w.z.Dv; c++)
            at_store(&to->out, at + c * to->out.stride[3], mutant_out(&r->w, c));
        if (to->lse.data)
            at_store(&to->lse, at_row_offset(a, &to->lse, p.b, p.h, p.i), mutant_lse(&r->w));
    }
    at_mutant_close(r);
    return true;
}

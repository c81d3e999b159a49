/* Faults in the recurrence, the merge, the sink and the end of a row: ref/scalar.c, at_row.h and
 * at_forward for one row, each fault one difference; without one the same bits.
 *
 * Arguments of exp past at_exp's range arise in faults alone: those go to libm's.
 * SPDX-License-Identifier: MIT */
#include "mutant.h"
#include "ref.h"

static bool is(const struct mutant_work *w, enum fault kind) { return w->kind == (int)kind; }

static float exponential(const struct mutant_work *w, float x)
{
    if (is(w, EXP_FLUSHED) && x < -10)
        return 0;
    if (is(w, EXP_BASE_SHORT)) /* 1.4427 for log2 e: 1 + 58 2^-24 times as much */
        x *= 0x1.00003ap+0f;
    float y = x > 0 ? expf(x) : at_exp(x);
    float off = is(w, EXP_ROUGH)   ? 0x1p-13f
                : is(w, EXP_FAIR)  ? 0x1p-17f
                : is(w, EXP_CLOSE) ? 20 * 0x1p-23f
                                   : 0;
    if (off > 0 && x != 0 && x > -80) /* a wave, as a short polynomial leaves */
        y *= 1 + off * sinf(37 * x);
    return y;
}

static float worth(const struct mutant_work *w, float m, float to)
{
    return m == to ? 1 : exponential(w, m - to);
}

/* The maximum becomes 0 where it was less: an empty state that did not start at -inf joins. */
static void lift(const struct mutant_work *w, struct at_row *x)
{
    if (x->l == 0 || !(x->m < 0))
        return;
    float a = worth(w, x->m, 0);
    x->m = 0;
    x->l *= a;
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] *= a;
}

/* -- A tile ---------------------------------------------------------------------------------- */

/* P as it enters P V. */
static float weight(const struct mutant_work *w, float p)
{
    if (is(w, SMALL_WEIGHTS_LOST) && p < 0x1p-10f) /* half of e4m3's least number */
        return 0;
    if (is(w, WEIGHTS_SCALED))
        p *= 256;
    if (is(w, P_TRUNCATED))
        return at_float(at_bits32(p) & 0xffff0000u);
    if (is(w, P_BF16) || is(w, P_FP16))
        return mutant_rounded(p, is(w, P_BF16) ? AT_BF16 : AT_F16);
    return mutant_rounded(p, w->f.weight);
}

static enum at_dtype sums(const struct mutant_work *w)
{
    return is(w, SUMS_FP16) ? AT_F16 : is(w, SUMS_BF16) ? AT_BF16 : AT_DEFAULT;
}

static void add(struct mutant_work *w, int64_t j)
{
    struct at_row *t = &w->tile;
    float p = exponential(w, mutant_score(w, j) - t->m), P = weight(w, p);
    const float *v = mutant_value(w, j);
    enum at_dtype narrow = sums(w);
    if (v || !is(w, DROPOUT_IN_SUM))
        t->l += p;
    for (int64_t c = 0; v && c < w->z.Dv; c++)
        t->u[c] = at_fma(P, v[c], t->u[c]);
    if (!narrow)
        return;
    t->l = mutant_rounded(t->l, narrow);
    for (int64_t c = 0; c < w->z.Dv; c++)
        t->u[c] = mutant_rounded(t->u[c], narrow);
}

static void take(struct mutant_work *w, struct at_row *x, int64_t number)
{
    struct at_row *t = &w->tile;
    bool first = x->l == 0;
    float a = worth(w, x->m, t->m), l = t->l;
    if (!first && is(w, INVERSE_RESCALE))
        a = 1 / a;
    if (!first && mutant_hit(w, LOST_RESCALE, number))
        a = 1;
    if (!first && mutant_hit(w, LAGGING_SUM, number))
        l = w->last_l;
    w->last_l = t->l;
    x->m = t->m;
    x->l = at_take(!first && mutant_hit(w, LOST_RESCALE_L, number) ? 1 : a, x->l, l);
    if ((!first && mutant_hit(w, LOST_RESCALE_U, number)) || (first && w->stale))
        a = 1;
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] = at_take(a, x->u[c], t->u[c]);
}

static void tile(struct mutant_work *w, struct at_row *x, int64_t number, struct at_span span)
{
    float m = x->m;
    int64_t n = 0;
    if (mutant_hit(w, LOST_TILE, number))
        return;
    for (int64_t j = span.lo; j < span.hi; j++)
        if (mutant_shown(w, j)) {
            m = at_larger(m, mutant_score(w, j));
            n++;
        }
    if (n == 0 && is(w, HIDDEN_TILE_ZERO))
        lift(w, x);
    if (n == 0)
        return;
    if (is(w, NO_MAXIMUM))
        m = 0;
    bool stale = mutant_hit(w, STALE_MAXIMUM, number) && x->l != 0;
    at_row_clear(&w->tile, stale ? x->m : m + 0, w->z.Dv);
    for (int64_t j = span.lo; j < span.hi; j++)
        for (int64_t turn = mutant_hit(w, TWICE_KEY, j) ? 2 : 1; turn > 0; turn--)
            if (mutant_shown(w, j))
                add(w, j);
    w->tile.m = m + 0;
    take(w, x, number);
}

/* -- Splits ---------------------------------------------------------------------------------- */

static void attend(struct mutant_work *w, struct at_row *x, struct at_span seen)
{
    int64_t bc = w->a->plan.bc;
    float m = is(w, MAXIMUM_FROM_ZERO) || is(w, NO_MAXIMUM) ? 0
              : is(w, MAXIMUM_FLOOR)                        ? -10000
                                                            : -INFINITY;
    if (w->stale)
        x->m = m, x->l = 0;
    else
        at_row_clear(x, m, w->z.Dv);
    for (int64_t t = seen.lo / bc; seen.lo < seen.hi && t * bc < seen.hi; t++) {
        struct at_span span = at_cut(seen, (struct at_span){t * bc, t * bc + bc});
        tile(w, x, t, span);
        if (mutant_hit(w, TWICE_TILE, t))
            tile(w, x, t, span);
    }
}

/* Is a tile of the split beyond what is seen? */
static bool tile_hidden(const struct mutant_work *w, struct at_span split, struct at_span seen)
{
    int64_t bc = w->a->plan.bc, first = seen.lo - seen.lo % bc;
    return seen.lo == seen.hi || split.lo < first || (seen.hi + bc - 1) / bc * bc < split.hi;
}

/* What a split hands over under the merge's faults. */
static void hand_over(const struct mutant_work *w, struct at_row *x)
{
    if (x->l == 0 || !(is(w, MERGE_BASE_2) || is(w, MERGE_UNWEIGHTED) || is(w, LSE_FP16)))
        return;
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] /= x->l;
    x->m += at_log(x->l);
    x->l = 1;
    if (is(w, MERGE_BASE_2))
        x->m *= 0x1.715476p+0f; /* log2 e */
    if (is(w, LSE_FP16))
        x->m = mutant_rounded(x->m, AT_F16);
}

static void merge(const struct mutant_work *w, struct at_row *x, const struct at_row *y)
{
    if (y->l == 0 && is(w, EMPTY_SPLIT_ZERO))
        lift(w, x);
    if (y->l == 0)
        return;
    bool empty = x->l == 0;
    float m = empty ? y->m : at_larger(x->m, y->m) + 0;
    float a = worth(w, x->m, m), b = worth(w, y->m, m);
    if (is(w, MERGE_UNWEIGHTED))
        a = b = 1;
    if (is(w, MERGE_INVERSE) && !empty)
        a = 1 / a, b = 1 / b;
    x->m = m;
    x->l = empty ? y->l : at_join(a, x->l, b, y->l);
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] = empty ? y->u[c] : at_join(a, x->u[c], b, y->u[c]);
    if (empty && is(w, EMPTY_SPLIT_ZERO))
        lift(w, x);
}

static void merge_all(struct mutant_work *w)
{
    struct at_row *x = w->part;
    uint64_t seed = w->a->plan.merge_seed;
    int64_t turn = 0, n = w->a->plan.splits;
    if (is(w, LAST_SPLIT_LOST) && n > 1)
        x[n - 1].l = 0;
    for (; n > 1; n--) {
        int64_t at = at_next_merge(&w->a->plan, n, &seed, &turn);
        merge(w, &x[at], &x[at + 1]);
        struct at_row spent = x[at + 1];
        for (int64_t k = at + 1; k < n - 1; k++)
            x[k] = x[k + 1];
        x[n - 1] = spent;
    }
}

/* -- Sink ------------------------------------------------------------------------------------ */

static void sink(struct mutant_work *w)
{
    const struct at_view *view = &w->a->score.sink;
    struct at_row *x = w->part;
    if (!view->data || is(w, SINK_MISSING))
        return;
    float s = at_load(view, at_offset(view, 0, w->h, 0, 0));
    if (is(w, SINK_SCALED))
        s *= at_rounded(w->a->score.scale);
    if (is(w, SINK_PAST_MAXIMUM) && x->l != 0) { /* may overflow */
        x->l += expf(s - x->m);
        return;
    }
    at_row_sink(x, s, w->z.Dv);
    if (is(w, SINK_TWICE))
        at_row_sink(x, s, w->z.Dv);
}

/* -- The row --------------------------------------------------------------------------------- */

/* Scores are kept from fault to fault of the same row, but for those that spoil a score. */
static void recall_scores(struct mutant_work *w)
{
    bool spoils = (w->kind >= CAUSAL_WIDE && w->kind <= VALUE_SCALE_LOST) ||
                  (w->kind >= SCORES_BF16 && w->kind <= TF32_INPUTS) || w->kind == OPEN_TAIL ||
                  w->kind == SCORE_CLAMPED;
    int by = spoils ? w->kind : FAULTS;
    if (w->scored_by == by && w->at.b == w->b && w->at.h == w->h && w->at.i == w->i)
        return;
    w->scored_by = by;
    w->at = (struct at_place){w->b, w->h, w->i};
    memset(w->scored, 0, (size_t)(w->z.Skv + MUTANT_TAIL));
    if (w->b >= 0)
        mutant_query(w);
}

static void run(struct mutant_work *w, bool stale)
{
    const struct at_attention *a = w->a;
    struct at_span seen = mutant_seen(w);
    recall_scores(w);
    for (int64_t k = 0; k < a->plan.splits; k++) {
        struct at_span cut = {at_split(a, k), at_split(a, k + 1)};
        if (k == a->plan.splits - 1)
            cut.hi = at_max(cut.hi, seen.hi); /* an open tail lies past the last key */
        w->stale = stale && k == 0;
        attend(w, &w->part[k], at_cut(seen, cut));
        if (is(w, HIDDEN_TILE_ZERO) && tile_hidden(w, cut, at_cut(seen, cut)))
            lift(w, &w->part[k]);
        hand_over(w, &w->part[k]);
    }
    merge_all(w);
    w->stale = false;
    if (is(w, FIRST_SPLIT_TWICE) && a->plan.splits > 1) {
        struct at_row *again = &w->part[1];
        attend(w, again, at_cut(seen, (struct at_span){at_split(a, 0), at_split(a, 1)}));
        merge(w, &w->part[0], again);
    }
    if (w->b >= 0 && w->i < at_rows_of(a, &w->z, w->b))
        sink(w);
}

void mutant_row(struct mutant_work *w)
{
    bool head = w->f.head < 0 || w->f.head == w->h;
    int kind = head ? w->f.kind : FAULTS;
    bool stale = kind == STALE_WORKSPACE && w->b >= 0 && w->i > 0;
    w->kind = kind;
    if (stale) { /* the row before leaves its u */
        w->kind = FAULTS;
        w->i--;
        run(w, false);
        w->i++;
        w->kind = kind;
    }
    run(w, stale);
}

static bool unwritten(const struct mutant_work *w)
{
    return is(w, UNWRITTEN_ROW) && w->b >= 0 && w->i == at_rows_of(w->a, &w->z, w->b) - 1;
}

float mutant_out(const struct mutant_work *w, int64_t c)
{
    const struct at_attention *a = w->a;
    const struct at_row *x = &w->part[0];
    bool gains = at_drops(a) && !is(w, DROPOUT_NO_GAIN) && !is(w, DROPOUT_IGNORED);
    if ((is(w, EMPTY_NAN) && x->l == 0) || unwritten(w))
        return NAN;
    float u = is(w, WEIGHTS_SCALED) ? x->u[c] / 256 : x->u[c];
    float out = at_out(u, x->l, gains ? at_rounded(at_gain(a->dropout.p)) : 1);
    if ((is(w, NAN_EMPTY) && isnan(x->l)) || (is(w, NAN_TO_ZERO) && isnan(out)))
        return 0;
    return out;
}

float mutant_lse(const struct mutant_work *w)
{
    const struct at_row *x = &w->part[0];
    float lse = at_lse(x->m, x->l);
    if (unwritten(w))
        return NAN; /* what results are filled with */
    if (is(w, LSE_BASE_2))
        return lse * 0x1.715476p+0f; /* log2 e */
    if (is(w, NAN_EMPTY) && isnan(x->l))
        return -INFINITY;
    if (is(w, LSE_NO_MAXIMUM) && x->l != 0)
        return at_log(x->l);
    return lse;
}

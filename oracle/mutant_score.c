/* Faults in who is seen, where things lie and what a score is. Each function is its namesake of
 * at_index.h, at_row.h or ref/scalar.c with the fault's one difference; without one it has the same
 * bits. SPDX-License-Identifier: MIT */
#include "mutant.h"
#include "ref.h"
#include <float.h>

/* -- Who sees whom --------------------------------------------------------------------------- */

static bool is(const struct mutant_work *w, enum fault kind) { return w->kind == (int)kind; }

static int64_t position(const struct mutant_work *w)
{
    int64_t given = w->a->score.offset ? w->a->score.offset[w->b] : 0;
    if (is(w, CAUSAL_CORNER) && w->a->score.right != AT_UNBOUNDED) /* the other corner */
        return given == 0 ? w->i + w->z.Skv - w->z.Sq : w->i;
    if (is(w, CAUSAL_IN_TILE) && w->a->score.right != AT_UNBOUNDED) /* tiles are square */
        return w->i % w->a->plan.bc + given;
    return w->i + given;
}

static int64_t right_edge(const struct mutant_work *w)
{
    int64_t right = w->a->score.right;
    if (right == AT_UNBOUNDED || is(w, CAUSAL_IGNORED))
        return INT64_MAX / 4;
    if (is(w, WINDOW_CAUSAL))
        return at_min(right, 0);
    return right + is(w, CAUSAL_WIDE) - is(w, CAUSAL_SHORT);
}

static int64_t left_edge(const struct mutant_work *w)
{
    int64_t left = w->a->score.left;
    if (left == AT_UNBOUNDED || is(w, WINDOW_IGNORED))
        return INT64_MAX / 4;
    return left + is(w, WINDOW_WIDE) - is(w, WINDOW_SHORT);
}

/* Keys that lie past the length are in memory only where neither starts nor pages are. */
static int64_t keys(const struct mutant_work *w)
{
    bool dense = !w->a->score.kv_start && !w->a->pages.table;
    if (is(w, KV_LEN_IGNORED) && dense)
        return w->z.Skv;
    return at_keys_of(w->a, &w->z, w->b);
}

struct at_span mutant_seen(const struct mutant_work *w)
{
    struct at_span x = {0, 0};
    bool all = is(w, Q_LEN_IGNORED) && !w->a->score.q_start;
    if (w->b < 0 || (w->i >= at_rows_of(w->a, &w->z, w->b) && !all))
        return x;
    int64_t p = position(w), right = right_edge(w), left = left_edge(w);
    x.hi = keys(w);
    if (is(w, MASK_FINITE)) /* all are pushed, the hidden with a low score */
        return x;
    if (is(w, LOST_TAIL))
        x.hi -= x.hi % w->a->plan.bc;
    if (right < x.hi - p)
        x.hi = p + right + 1;
    if (left < p)
        x.lo = p - left;
    int64_t bc = at_min(w->a->plan.bc, MUTANT_TAIL);
    if (is(w, OPEN_TAIL) && x.hi == keys(w)) /* up to the tile's end, as zeros */
        x.hi += (bc - x.hi % bc) % bc;
    if (x.hi < x.lo)
        x.hi = x.lo;
    return x;
}

static bool hidden(const struct mutant_work *w, int64_t j)
{
    struct at_span x = at_keys(w->a, &w->z, w->b, w->i);
    return j < x.lo || j >= x.hi || !at_shown(w->a, w->b, w->h, w->i, j);
}

bool mutant_shown(const struct mutant_work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    struct at_attention wrong;
    if (mutant_hit(w, LOST_KEY, j))
        return false;
    if (is(w, MASK_FINITE) || (is(w, OPEN_TAIL) && j >= keys(w)))
        return true;
    if (!a->score.mask.data || !(is(w, MASK_INVERTED) || is(w, MASK_IGNORED)))
        return at_shown(a, w->b, w->h, w->i, j);
    bool masked = !(
        (const unsigned char *)a->score.mask.data)[at_offset(&a->score.mask, w->b, w->h, w->i, j)];
    wrong = *a;
    wrong.score.mask.data = NULL;
    return at_shown(&wrong, w->b, w->h, w->i, j) && (is(w, MASK_IGNORED) || masked);
}

/* -- Where things lie ------------------------------------------------------------------------ */

static int64_t key_head(const struct mutant_work *w)
{
    if (is(w, HEAD_MODULO))
        return w->h % w->z.Hkv;
    if (is(w, HEAD_GROUP)) /* the number of key heads where the group's size is meant */
        return w->h / w->z.Hkv % w->z.Hkv;
    return w->h / w->z.group;
}

static int64_t sequence(const struct mutant_work *w)
{
    return is(w, BATCH_ZERO) && at_keys_of(w->a, &w->z, 0) >= at_keys_of(w->a, &w->z, w->b) ? 0
                                                                                            : w->b;
}

static int64_t place(const struct mutant_work *w, const struct at_view *x, int64_t g, int64_t j)
{
    int64_t size = x->dim[2];
    if (is(w, PAGE_IDENTITY) && w->a->pages.table)
        return at_offset(x, j / size % x->dim[0], g, j % size, 0);
    return at_key_offset(w->a, x, sequence(w), g, j);
}

static void load(struct mutant_work *w, const struct at_view *x, const struct at_view *descale,
                 int64_t j, int64_t n)
{
    static const struct at_view none = {0};
    int64_t g = key_head(w);
    bool lost = is(w, x == &w->a->k ? KEY_SCALE_LOST : VALUE_SCALE_LOST);
    at_load_row(x, place(w, x, g, j), lost ? &none : descale, w->b, g, j, n, w->kv);
}

const float *mutant_value(struct mutant_work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    bool dropped = at_drops(a) && !at_kept(a, &w->z, w->b, w->h, w->i, j);
    if ((dropped && !is(w, DROPOUT_IGNORED)) || mutant_hit(w, LOST_UPDATE, j))
        return NULL;
    if (is(w, OPEN_TAIL) && j >= keys(w)) {
        memset(w->kv, 0, (size_t)w->z.Dv * sizeof *w->kv);
        return w->kv;
    }
    bool next = mutant_hit(w, NEIGHBOUR_VALUE, j / a->plan.bc) && j + 1 < keys(w);
    load(w, &a->v, &a->score.vscale, j + next, w->z.Dv);
    if (is(w, LAST_COLUMN))
        w->kv[w->z.Dv - 1] = 0;
    for (int64_t c = 0; is(w, VALUE_FLUSHED) && c < w->z.Dv; c++)
        if (fabsf(w->kv[c]) < FLT_MIN)
            w->kv[c] = 0;
    for (int64_t c = 0; is(w, VALUE_CLAMPED) && c < w->z.Dv; c++)
        if (isinf(w->kv[c]))
            w->kv[c] = copysignf(FLT_MAX, w->kv[c]);
    return w->kv;
}

/* -- What a score is ------------------------------------------------------------------------- */

float mutant_rounded(float x, enum at_dtype dtype)
{
    return dtype ? (float)at_nearest((double)x, at_format(dtype)) : x;
}

static void round_row(float *x, int64_t n, struct at_format f)
{
    for (int64_t c = 0; c < n; c++)
        x[c] = (float)at_nearest((double)x[c], f);
}

static const struct at_format tf32 = {11, -126, FLT_MAX};

void mutant_query(struct mutant_work *w)
{
    const struct at_attention *a = w->a;
    int64_t D = w->z.D;
    at_load_row(&a->q, at_row_offset(a, &a->q, w->b, w->h, w->i), &a->score.qscale, w->b, w->h,
                w->i, D, w->q);
    if (is(w, TF32_INPUTS))
        round_row(w->q, D, tf32);
    if (is(w, Q_BF16)) {
        for (int64_t c = 0; c < D; c++)
            w->q[c] *= at_rounded(a->score.scale);
        round_row(w->q, D, at_format(AT_BF16));
    }
}

static float scale(const struct mutant_work *w)
{
    double scale = w->a->score.scale, D = (double)w->z.D, wide = 8;
    while (wide < D)
        wide *= 2;
    switch (w->kind) {
    case SCALE_TWICE: return at_rounded(scale) * at_rounded(scale);
    case SCALE_OVER_D: return at_rounded(1 / D);
    case SCALE_SLIGHT: return at_rounded(scale * (1 + 0x1p-13));
    case SCALE_PADDED: return at_rounded(1 / sqrt(wide));
    case SCALE_MISSING:
    case Q_BF16: return 1;
    default: return at_rounded(scale);
    }
}

static float capped(const struct mutant_work *w, float s)
{
    float cap = at_rounded(w->a->score.softcap);
    if (!(cap > 0) || is(w, CAP_MISSING))
        return s;
    return (is(w, CAP_EVEN) ? s : cap) * at_tanh(s / cap);
}

static float biased(const struct mutant_work *w, float s, int64_t j)
{
    const struct at_view *bias = &w->a->score.bias;
    if (!bias->data || is(w, BIAS_MISSING))
        return s;
    float x = at_load(bias, at_offset(bias, w->b, w->h, w->i, j));
    if (is(w, BIAS_BASE_2)) /* as if it were in units of log 2 */
        x *= 0x1.62e430p-1f;
    if (is(w, BIAS_SCALED))
        x *= at_rounded(w->a->score.scale);
    return s + x;
}

static float slanted(const struct mutant_work *w, float s, int64_t j)
{
    const struct at_view *alibi = &w->a->score.alibi;
    if (!alibi->data || is(w, ALIBI_MISSING))
        return s;
    int64_t p = is(w, ALIBI_FROM_ORIGIN) ? w->i : at_position(w->a, w->b, w->i);
    float x = at_load(alibi, at_offset(alibi, 0, w->h, 0, 0)) * at_distance(p, j);
    return is(w, ALIBI_SIGN) ? s + x : s - x;
}

static float raw(struct mutant_work *w, int64_t j)
{
    int64_t D = w->z.D, lanes = at_max(w->a->plan.lanes, 1);
    load(w, &w->a->k, &w->a->score.kscale, j, D);
    if (is(w, TF32_INPUTS))
        round_row(w->kv, D, tf32);
    if (is(w, DOT_TAIL)) /* eight at a time, the rest forgotten */
        D -= D % 8;
    return at_dot(w->q, w->kv, D, lanes);
}

static float score(struct mutant_work *w, int64_t j)
{
    if (is(w, OPEN_TAIL) && j >= keys(w))
        return 0;
    if (is(w, MASK_FINITE) && hidden(w, j))
        return -10000;
    float s = scale(w) * raw(w, j);
    if (is(w, CAP_AFTER_BIAS))
        return capped(w, slanted(w, biased(w, s, j), j));
    s = slanted(w, biased(w, capped(w, s), j), j);
    if (is(w, SCORE_CLAMPED) && s > FLT_MAX)
        return FLT_MAX;
    return is(w, SCORES_BF16)   ? mutant_rounded(s, AT_BF16)
           : is(w, SCORES_FP16) ? mutant_rounded(s, AT_F16)
                                : s;
}

float mutant_score(struct mutant_work *w, int64_t j)
{
    if (!w->scored[j])
        w->s[j] = score(w, j);
    w->scored[j] = 1;
    return w->s[j];
}

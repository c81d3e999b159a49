/* Lemma 1 of docs/bounds.md: how far a computed score may be from the score.
 *
 * A score goes through dot, scale, softcap, bias, ALiBi. Each step carries (s, D) on: D first takes
 * what the step makes of the error so far, then the step's own rounding, relative to |s| + D and,
 * where the result may be subnormal, absolute. Zeros stay exact. Scores are sums in two doubles;
 * sigma is what that leaves open, and is 0 where a score is one stored number. Not here: weights
 * (bound_key.c). Proved by machine (proofs/): Score.prepared_dot_error, Score.rounded_error and its
 * kin, Softcap.softcap_error; at_tanh, underflow before the dot product: tested, not proved.
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include <float.h>

/* -- Stored numbers --------------------------------------------------------------------------- */

static void load_query(struct row *x)
{
    const struct rule *r = x->r;
    const struct at_attention *a = r->a;
    int64_t at = at_row_offset(a, &a->q, x->at.b, x->at.h, x->at.i);
    x->q_scale = at_descale(&a->score.qscale, x->at.b, x->at.h, x->at.i);
    x->q_factor = fabs(x->q_scale) * r->inner_q;
    x->q_least = INFINITY;
    bool loses = false;
    for (int64_t c = 0; c < r->z.D; c++) {
        x->q[c] = at_stored(&a->q, at + c * a->q.stride[3]);
        double size = fabs(x->q[c] * x->q_scale);
        x->q_lost[c] =
            a->score.qscale.data && size > 0 && size < r->edge ? r->tiny * r->inner_q : 0;
        x->q_size[c] = size * r->inner_q;
        if (r->arith->query && size > 0 && x->q_size[c] < r->edge_query)
            x->q_lost[c] += r->tiny_query;
        loses = loses || x->q_lost[c] > 0;
        x->q_least = x->q_size[c] > 0 ? fmin(x->q_least, x->q_size[c]) : x->q_least;
        x->store->q[c * ROWS + x->lane] = x->q[c];
        x->store->q_size[c * ROWS + x->lane] = fabs(x->q[c]);
    }
    x->q_least = loses ? 0 : x->q_least;
}

static void load_key(struct row *x, int64_t b, int64_t g, int64_t j)
{
    const struct at_attention *a = x->r->a;
    int64_t D = x->r->z.D, Dv = x->r->z.Dv;
    struct store *s = x->store;
    if (s->b != b || s->g != g) {
        memset(s->have, 0, (size_t)x->r->z.Skv);
        s->b = b, s->g = g;
    }
    if (s->have[j])
        return;
    int64_t k = at_key_offset(a, &a->k, b, g, j), v = at_key_offset(a, &a->v, b, g, j);
    double least = INFINITY, most = 0;
    for (int64_t c = 0; c < D; c++) {
        double y = at_stored(&a->k, k + c * a->k.stride[3]), size = fabs(y);
        s->k[j * s->deep + c] = y;
        least = size > 0 && size < least ? size : least;
        most = size > most ? size : most;
    }
    s->least[j] = least, s->most[j] = most;
    double *value = at_bound_value(s, j);
    for (int64_t c = 0; c < Dv; c++)
        value[c / WIDE * WIDE * NEAR + c % WIDE] = at_stored(&a->v, v + c * a->v.stride[3]);
    s->have[j] = 1;
}

/* -- One score --------------------------------------------------------------------------------- */

struct step {
    long double s, big; /* value so far; the largest number that was near a rounding */
    double D, sigma;
};

/* fmaxl, inline. */
static inline long double larger(long double x, long double y) { return x > y ? x : y; }

/* What rounding adds to D: relatively, and `lost` where the result may be subnormal. */
static double rounding(const struct rule *r, double size, double D, double off, double lost)
{
    double low = size - D;
    return (also(off, r->eps_score) * (size + D) + (low < r->edge ? lost : 0) +
            (low < r->edge_score ? r->tiny_score : 0)) *
           WIDER;
}

/* The operation's result is rounded. */
static void rounded(const struct rule *r, struct step *x, double off, double lost)
{
    double size = (double)fabsl(x->s);
    if ((size == 0 && x->D == 0) || !isfinite(x->s))
        return;
    x->big = larger(x->big, fabsl(x->s) + x->D);
    x->D += rounding(r, size, x->D, off, lost);
}

/* Infinities and NaN as the extended reals have them; numbers whose products may be subnormal. */
static long double inner_kind(const struct row *x, const double *k)
{
    long double raw = 0;
    for (int64_t c = 0; c < x->r->z.D; c++)
        raw += (long double)x->q[c] * k[c];
    return raw;
}

/* Products in range, or losing nothing that shows. */
static bool in_range(double raw) { return raw >= 0x1p-900 && raw <= 0x1p900; }

/* q k in double, where that is good enough and no product or factor may be subnormal. */
static bool coarse(const struct row *x, int64_t j, double size, struct inner *to)
{
    const struct rule *r = x->r;
    const struct store *s = x->store;
    int64_t at = j % NEAR * ROWS + x->lane;
    double least = s->least[j] * size, factor = x->q_factor * size;
    if (!r->coarse || !in_range(s->raw[at]) || !in_range(factor) ||
        !(x->q_least * least >= r->edge) || !(least >= fmax(r->edge, r->edge_key)))
        return false;
    *to = (struct inner){s->dot[at], 0, s->raw[at], s->raw[at] * factor, s->most[j] * size, 0};
    return true;
}

/* raw and scale*raw. */
static void product(const struct row *x, int64_t j, double k_scale, struct step *to)
{
    const struct rule *r = x->r;
    const double *k = x->store->k + j * x->store->deep;
    double size = fabs(k_scale) * r->inner_k, scale = r->a->score.scale;
    struct inner y;
    bool one = coarse(x, j, size, &y);
    if (!one)
        y = at_bound_dot(x, k, size, r->a->score.kscale.data ? r->tiny * r->inner_k : 0);
    double A = y.A, lost = y.lost;
    long double raw = in_range(y.raw) ? (long double)y.hi + y.lo : inner_kind(x, k);
    if (r->arith->flush && A > 0) /* sums are flushed too */
        lost += (double)r->z.D * r->tiny;
    int sides = (r->a->score.qscale.data && !power_of_two(x->q_scale)) +
                (r->a->score.kscale.data && !power_of_two(k_scale));
    double outer = r->outer, most_A = A * (1 + r->dot[sides]) + lost;
    to->s = (long double)scale * x->q_scale * k_scale * raw;
    if (!isfinite(A)) { /* infinite inputs: tanh may still make a number of the score */
        to->big = isfinite(raw) ? INFINITY : 0;
        return;
    }
    to->D = outer * (r->dot[sides] * A + lost) * WIDER;
    to->sigma = (double)(r->z.D + 8) * (one ? 2 * DBL_EPSILON : (double)LDBL_EPSILON) * A * outer;
    to->big = larger(y.most, most_A * fmax(1, outer * (1 + r->scaled)));
    rounded(r, to, r->scaled, r->tiny);
}

/* score() where nothing but a scaled product in double makes it. */
static bool simple_score(struct row *x, int64_t j, struct key *to)
{
    const struct rule *r = x->r;
    struct inner y;
    if (!r->simple || !coarse(x, j, r->inner_k, &y))
        return false;
    double s = r->a->score.scale * y.hi, size = fabs(s), D = r->outer * (r->dot[0] * y.A) * WIDER;
    double most = y.A * (1 + r->dot[0]) * fmax(1, r->outer * (1 + r->scaled));
    if (!(size < 0x1p1000) || D == 0) /* a scale of 0 leaves exact zeros */
        return false;
    most = y.most > most ? y.most : most;
    most = size + D > most ? size + D : most;
    x->overflow = x->overflow || most >= (double)r->limit;
    D += rounding(r, size, D, r->scaled, r->tiny);
    *to = (struct key){.j = j, .s = s, .D = D, .factor = 1};
    to->sigma = (double)(r->z.D + 8) * 2 * DBL_EPSILON * y.A * r->outer;
    return true;
}

/* y = C tanh(x/C): 1-Lipschitz, so D stays; then three operations. */
static void softcap(const struct rule *r, struct step *x)
{
    double cap = r->a->score.softcap;
    if (!(cap > 0) || (x->s == 0 && x->D == 0))
        return;
    x->s = cap * tanhl(x->s / cap);
    x->sigma += 8 * (double)LDBL_EPSILON * (double)fabsl(x->s);
    rounded(r, x, r->cap_error, 0);
    x->D += 3 * r->tiny * (1 + cap);
}

/* s + t, t known to within `off`, rounded once; adding to an exact zero, or a zero, is exact. */
static void add(const struct rule *r, struct step *x, long double t, double off)
{
    bool exact = (x->s == 0 && x->D == 0) || (t == 0 && off == 0), alone = exact && x->sigma == 0;
    if (t == 0 && off == 0)
        return;
    x->s += t;
    x->D += off;
    if (!alone)
        x->sigma += 2 * (double)LDBL_EPSILON * (double)(fabsl(x->s) + fabsl(t));
    rounded(r, x, exact ? 0 : r->eps, r->arith->flush ? r->tiny : 0);
}

static void alibi(const struct row *x, int64_t j, struct step *to)
{
    const struct rule *r = x->r;
    const struct at_view *view = &r->a->score.alibi;
    if (!view->data)
        return;
    double slope = at_stored(view, at_offset(view, 0, x->at.h, 0, 0));
    int64_t p = at_position(r->a, x->at.b, x->at.i), distance = p < j ? j - p : p - j;
    if (slope == 0 || distance == 0)
        return;
    long double t = (long double)slope * (long double)distance;
    double size = (double)fabsl(t), far = (double)distance * r->eps > 1 ? r->eps : 0;
    double off = also(also(r->eps, far), relative(slope, r->compute)) * size;
    if (power_of_two(slope) && far == 0 && size >= r->edge)
        off = 0;
    add(r, to, -t, off + (size < r->edge ? r->tiny : 0));
}

static void score(struct row *x, int64_t g, int64_t j, struct key *to)
{
    const struct rule *r = x->r;
    const struct at_attention *a = r->a;
    const struct at_view *bias = &a->score.bias;
    struct step s = {0};
    product(x, j, at_descale(&a->score.kscale, x->at.b, g, j), &s);
    softcap(r, &s);
    if (bias->data)
        add(r, &s, at_stored(bias, at_offset(bias, x->at.b, x->at.h, x->at.i, j)), 0);
    alibi(x, j, &s);
    double v_scale = at_descale(&a->score.vscale, x->at.b, g, j);
    bool kept = !at_drops(a) || at_kept(a, &r->z, x->at.b, x->at.h, x->at.i, j);
    *to = (struct key){.j = j, .s = (double)s.s, .D = s.D, .sigma = s.sigma};
    to->s_lo = (double)(s.s - to->s);
    to->factor = kept ? v_scale * r->gain : 0;
    to->rounds_v = !power_of_two(v_scale);
    x->overflow = x->overflow || s.big >= r->limit;
    if (!isfinite(to->s) && isfinite(s.s)) /* past any double */
        to->s = copysign(DBL_MAX, to->s), to->s_lo = 0;
}

/* -- The row's scores ------------------------------------------------------------------------- */

/* A score that is no number answers for the row (rule 2); one of -inf leaves it open. */
static void enter(struct row *x)
{
    const struct key *key = &x->key[x->n]; /* the next */
    if (isfinite(key->s))
        x->n++;
    else if (key->s < 0) /* -inf: no weight */
        x->open = true;
    else
        x->dead = true; /* +inf, NaN */
}

/* A sink is a key of value 0, rounded once to the compute type. */
static void sink(struct row *x)
{
    const struct at_view *view = &x->r->a->score.sink;
    if (!view->data)
        return;
    double s = at_stored(view, at_offset(view, 0, x->at.h, 0, 0));
    if (s == -INFINITY)
        return;
    struct key *key = &x->key[x->n];
    *key = (struct key){.j = -1, .s = s};
    key->D = isfinite(s) ? fabs(s) * (relative(s, x->r->compute) + x->r->eps_score) : 0;
    x->overflow = x->overflow || (isfinite(s) && fabsl(s) >= x->r->limit);
    enter(x);
}

void at_bound_open(struct row *x)
{
    const struct rule *r = x->r;
    x->seen = at_keys(r->a, &r->z, x->at.b, x->at.i);
    x->n = 0;
    x->dead = x->open = x->overflow = false;
    if (x->seen.lo < x->seen.hi)
        load_query(x);
}

/* Keys that a row sees are loaded, and those alone. */
static void load_keys(struct row *x, struct at_span seen)
{
    const struct rule *r = x->r;
    for (int64_t j = seen.lo; j < seen.hi; j++)
        if (at_shown(r->a, x->at.b, x->at.h, x->at.i, j))
            load_key(x, x->at.b, x->at.h / r->z.group, j);
}

static void add_keys(struct row *x, struct at_span seen)
{
    const struct rule *r = x->r;
    int64_t g = x->at.h / r->z.group;
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(r->a, x->at.b, x->at.h, x->at.i, j))
            continue;
        struct key *key = &x->key[x->n];
        if (!simple_score(x, j, key))
            score(x, g, j, key);
        x->overflow = x->overflow || r->large_scale;
        enter(x);
    }
}

void at_bound_scores(struct row *x, int64_t n, struct at_span part)
{
    struct at_span any = {part.hi, part.lo};
    for (int64_t k = 0; k < n; k++) {
        struct at_span seen = at_cut(x[k].seen, part);
        load_keys(&x[k], seen);
        if (seen.lo < seen.hi)
            any.lo = at_min(any.lo, seen.lo), any.hi = at_max(any.hi, seen.hi);
    }
    if (any.lo >= any.hi)
        return;
    if (x->r->coarse)
        at_bound_dots(x->store, part.lo, at_min(part.hi, x->r->z.Skv) - part.lo);
    for (int64_t k = 0; k < n; k++)
        add_keys(&x[k], at_cut(x[k].seen, part));
}

void at_bound_close(struct row *x)
{
    if (x->at.b >= 0 && x->at.i < at_rows_of(x->r->a, &x->r->z, x->at.b))
        sink(x);
}

/* Lemma 1 of docs/bounds.md: how far a computed score may be from the score.
 *
 * A score goes through dot, scale, softcap, bias, ALiBi. Each step carries (s, D) on: D first takes
 * what the step makes of the error so far, then the step's own rounding, relative to |s| + D and,
 * where the result may be subnormal, absolute. Zeros stay exact. Scores are sums in two doubles;
 * sigma is what that leaves open, and is 0 where a score is one stored number. Not here: weights
 * (bound_key.c). Tested, not proved by machine: the theorems take any D_j.
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include <float.h>

/* -- The arithmetic on this problem ----------------------------------------------------------- */

static double normal(struct at_format f) { return ldexp(1, (int)f.emin); }

static double roundoff(struct at_format f) { return ldexp(1, -f.p); }

/* Half the smallest subnormal, or with flush the smallest normal number. fp64's 2^-1075 is no
 * double; the next one up is. */
static double tiny(struct at_format f, bool flush)
{
    return flush ? normal(f) : fmax(ldexp(1, (int)f.emin - f.p), 0x1p-1074);
}

static double relative(double x, struct at_format f)
{
    return x == 0 ? 0 : fabs((at_nearest(x, f) - x) / x) * WIDER;
}

/* The least number that rounds past the largest finite one. */
static long double limit(struct at_format f)
{
    return (long double)f.max + ldexpl(1, ilogb(f.max) - f.p);
}

/* Tensor cores align a group of 4 or more products to the largest and cut: each meets one cut more
 * in four. A product that is itself inexact (3xTF32) is three products. */
static double additions(const struct at_arith *arith, double n)
{
    n = arith->product_eps > 0 ? 3 * n : n;
    return arith->truncates ? n + ceil(n / 4) : n;
}

static void narrower(struct rule *r)
{
    const struct at_arith *k = r->arith;
    if (k->score) {
        r->eps_score = at_roundoff(k->score);
        r->tiny_score = tiny(at_format(k->score), k->flush);
        r->edge_score = 2 * normal(at_format(k->score));
        r->limit = fminl(r->limit, limit(at_format(k->score)));
    }
    if (k->query) {
        r->tiny_query = tiny(at_format(k->query), k->flush);
        r->edge_query = 2 * normal(at_format(k->query));
        r->limit = fminl(r->limit, limit(at_format(k->query)));
    }
    if (k->key) {
        r->tiny_key = tiny(at_format(k->key), k->flush);
        r->edge_key = 2 * normal(at_format(k->key));
        r->limit = fminl(r->limit, limit(at_format(k->key)));
    }
    if (k->weight || k->own_weight.p) {
        struct at_format P = k->own_weight.p ? at_format_of(&k->own_weight) : at_format(k->weight);
        r->narrow_weight = true;
        r->eps_weight = roundoff(P);
        r->tiny_weight = ldexp(tiny(P, k->flush), -k->weight_shift);
        r->ln_weight = log(normal(P)) - k->weight_shift * log(2);
        r->max_weight = P.max;
    }
}

/* A number times a constant that is off, rounded, then once more where it is stored narrower. */
static double prescaled(const struct rule *r, double off, enum at_dtype dtype)
{
    return also(also(r->eps, off), at_roundoff(dtype) == r->eps ? 0 : at_roundoff(dtype));
}

/* Where the scale goes: onto the product, onto q, or by its root onto q and k. Returns the relative
 * error that a term has of it before the dot product. */
static double place_scale(struct rule *r)
{
    const struct at_arith *k = r->arith;
    double scale = fabs(r->a->score.scale), root = sqrt(scale);
    r->inner_q = !k->query ? 1 : k->key ? root : scale;
    r->inner_k = k->query && k->key ? root : 1;
    r->outer = k->query ? 1 : scale;
    if (!k->query)
        return 0;
    if (!k->key)
        return prescaled(r, relative(scale, r->compute), k->query);
    double off = relative(root, r->compute) + 0x1p-52; /* the root here is rounded too */
    return also(prescaled(r, off, k->query), prescaled(r, off, k->key));
}

static void scores_of(struct rule *r)
{
    const struct at_score *s = &r->a->score;
    const struct at_arith *k = r->arith;
    double off = relative(s->scale, r->compute), before = also(k->product_eps, place_scale(r));
    double eps = r->finer ? r->eps_sum : r->eps * (k->truncates ? 2 : 1);
    double D = additions(k, (double)(k->dot > 0 ? k->dot : r->z.D));
    r->folded = k->fused && !k->query && s->softcap == 0 && !s->bias.data && !s->alibi.data;
    before = also(before, r->finer ? r->eps : 0); /* the whole sum, rounded to compute */
    for (int sides = 0; sides < 3; sides++)
        r->dot[sides] = also(also(growth(D, eps), growth(sides, r->eps)), before);
    r->scaled = k->query || r->folded ? 0 : also(r->eps, off);
    r->argument = growth((double)(k->arguments > 0 ? k->arguments : k->fused ? 3 : 1), r->eps);
    if (k->fused) /* scale*log2 e is one rounded constant, and it multiplies s - m */
        r->argument += (2 * r->eps + (r->folded ? off : 0)) * WIDER;
    /* tanh(z(1+d)) is within 1+|d| of tanh z; C tanh(x/C) moves by less than C does, relatively. */
    r->cap_error = also(also(growth(2, r->eps), r->tanh), relative(s->softcap, r->compute));
}

struct rule at_rule(const struct at_attention *a, const struct at_arith *arith)
{
    struct rule r = {.a = a, .arith = arith, .z = at_sizes(a)};
    struct at_format compute = at_computed_in(arith);
    struct at_format sum = arith->sum ? at_format(arith->sum) : compute;
    struct at_format total = arith->total ? at_format(arith->total) : sum;
    double unit;
    r.compute = compute;
    r.eps = roundoff(compute);
    r.tiny = tiny(compute, arith->flush);
    r.edge = 2 * normal(compute);
    r.finer = roundoff(sum) < r.eps;
    r.narrow_sum = roundoff(sum) > r.eps;
    r.narrow_total = roundoff(total) > r.eps;
    r.eps_sum = roundoff(sum) * (arith->truncates ? 2 : 1);
    r.eps_total = arith->total ? fmax(r.eps_sum, at_roundoff(arith->total)) : r.eps_sum;
    /* In compute, not as finer as the sums: u before l divides it or dropout's gain multiplies it
     * (undivided it is the output: compare.c), and v times its descale. */
    bool rough = !r.finer || !arith->normalised || at_drops(a) || a->score.vscale.data;
    r.tiny_sum = fmax(rough ? r.tiny : 0, tiny(sum, arith->flush));
    if (tiny(total, arith->flush) > r.tiny)
        r.tiny_sum = fmax(r.tiny_sum, tiny(total, arith->flush));
    r.tiny_sum = ldexp(r.tiny_sum, arith->weight_shift < 0 ? -arith->weight_shift : 0);
    unit = 2 * r.eps;
    r.one_exp = -log1p(-(arith->exp_ulps > 0 ? arith->exp_ulps : 1) * unit) * WIDER;
    r.exp_up = log1p((arith->exp_ulps > 0 ? arith->exp_ulps : 1) * unit) * WIDER;
    r.log = (arith->log_ulps > 0 ? arith->log_ulps : 1) * unit;
    r.tanh = (arith->tanh_ulps > 0 ? arith->tanh_ulps : 3) * unit;
    r.limit = limit(compute);
    r.limit_sum = sum.max;
    narrower(&r);
    scores_of(&r);
    double p = a->dropout.p, left = 1 - p;
    r.gain = 1 / left;
    /* gain rounds (twice, once in 2^28) and multiplies u; a power of two does neither. */
    r.gain_roundings = 1 - left == p && power_of_two(left) ? 0 : 2 + 0x1p-20;
    return r;
}

/* -- Stored numbers --------------------------------------------------------------------------- */

static double descale(const struct at_view *x, int64_t b, int64_t h, int64_t s)
{
    return x->data ? at_stored(x, at_offset(x, b, h, s, 0)) : 1;
}

static void load_query(struct row *x)
{
    const struct rule *r = x->r;
    const struct at_attention *a = r->a;
    int64_t at = at_row_offset(a, &a->q, x->at.b, x->at.h, x->at.i);
    x->q_scale = descale(&a->score.qscale, x->at.b, x->at.h, x->at.i);
    for (int64_t c = 0; c < r->z.D; c++) {
        x->q[c] = at_stored(&a->q, at + c * a->q.stride[3]);
        double size = fabs(x->q[c] * x->q_scale);
        x->q_lost[c] =
            a->score.qscale.data && size > 0 && size < r->edge ? r->tiny * r->inner_q : 0;
        x->q_size[c] = size * r->inner_q;
        if (r->arith->query && size > 0 && x->q_size[c] < r->edge_query)
            x->q_lost[c] += r->tiny_query;
    }
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
    for (int64_t c = 0; c < D; c++)
        s->k[j * s->deep + c] = at_stored(&a->k, k + c * a->k.stride[3]);
    for (int64_t c = 0; c < Dv; c++)
        s->v[j * s->wide + c] = at_stored(&a->v, v + c * a->v.stride[3]);
    s->have[j] = 1;
}

/* -- One score --------------------------------------------------------------------------------- */

struct step {
    long double s, big; /* value so far; the largest number that was near a rounding */
    double D, sigma;
};

/* The operation's result is rounded: relatively, and by `lost` where it may be subnormal. */
static void rounded(const struct rule *r, struct step *x, double off, double lost)
{
    double size = (double)fabsl(x->s);
    if ((size == 0 && x->D == 0) || !isfinite(x->s))
        return;
    x->big = fmaxl(x->big, fabsl(x->s) + x->D);
    double low = size - x->D;
    off = also(off, r->eps_score);
    x->D += (off * (size + x->D) + (low < r->edge ? lost : 0) +
             (low < r->edge_score ? r->tiny_score : 0)) *
            WIDER;
}

/* Infinities and NaN as the extended reals have them; numbers whose products may be subnormal. */
static long double inner_kind(const struct row *x, const double *k)
{
    long double raw = 0;
    for (int64_t c = 0; c < x->r->z.D; c++)
        raw += (long double)x->q[c] * k[c];
    return raw;
}

/* raw and scale*raw. */
static void product(const struct row *x, int64_t j, double k_scale, struct step *to)
{
    const struct rule *r = x->r;
    const double *k = x->store->k + j * x->store->deep;
    double size = fabs(k_scale) * r->inner_k, scale = r->a->score.scale;
    struct inner y = at_bound_dot(x, k, size, r->a->score.kscale.data ? r->tiny * r->inner_k : 0);
    double A = y.A, lost = y.lost;
    bool plain =
        y.raw >= 0x1p-900 && y.raw <= 0x1p900; /* Dot2 in range, or losing nothing that shows */
    long double raw = plain ? (long double)y.hi + y.lo : inner_kind(x, k);
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
    to->sigma = (double)(r->z.D + 8) * (double)LDBL_EPSILON * A * outer;
    to->big = fmaxl(y.most, (long double)most_A * fmax(1, outer * (1 + r->scaled)));
    rounded(r, to, r->scaled, r->tiny);
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
    load_key(x, x->at.b, g, j);
    product(x, j, descale(&a->score.kscale, x->at.b, g, j), &s);
    softcap(r, &s);
    if (bias->data)
        add(r, &s, at_stored(bias, at_offset(bias, x->at.b, x->at.h, x->at.i, j)), 0);
    alibi(x, j, &s);
    double v_scale = descale(&a->score.vscale, x->at.b, g, j);
    bool kept = !at_drops(a) || at_kept(a, &r->z, x->at.b, x->at.h, x->at.i, j);
    *to = (struct key){.j = j, .s = s.s, .D = s.D, .sigma = s.sigma};
    to->factor = kept ? v_scale * r->gain : 0;
    to->rounds_v = !power_of_two(v_scale);
    /* The scale too, or scale*log2 e, is a number of compute: 0 times an infinite one is NaN. */
    x->overflow = x->overflow || s.big >= r->limit ||
                  fabs(a->score.scale) * (r->arith->fused ? 1.5 : 1) >= r->limit;
}

/* -- The row's scores ---------------------------------------------------------------------------
 */

/* A score that is no number answers for the row (rule 2); one of -inf leaves it open. */
static void enter(struct row *x, const struct key *key)
{
    if (isfinite(key->s))
        x->key[x->n++] = *key;
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
    struct key key = {.j = -1, .s = s};
    key.D = isfinite(s) ? fabs(s) * (relative(s, x->r->compute) + x->r->eps_score) : 0;
    x->overflow = x->overflow || (isfinite(s) && fabsl(s) >= x->r->limit);
    enter(x, &key);
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

void at_bound_scores(struct row *x, struct at_span part)
{
    const struct rule *r = x->r;
    struct at_span seen = at_cut(x->seen, part);
    int64_t g = x->at.h / r->z.group;
    struct key key;
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(r->a, x->at.b, x->at.h, x->at.i, j))
            continue;
        score(x, g, j, &key);
        enter(x, &key);
    }
}

void at_bound_close(struct row *x)
{
    if (x->at.b >= 0 && x->at.i < at_rows_of(x->r->a, &x->r->z, x->at.b))
        sink(x);
}

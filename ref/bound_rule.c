/* A stated arithmetic on one problem, worked out once: its roundoffs, what underflow takes, and
 * what the constants themselves lose. What each field enters: docs/bounds.md, table 1.
 * SPDX-License-Identifier: MIT */
#include "bound.h"

/* -- The arithmetic on this problem ----------------------------------------------------------- */

static double normal(struct at_format f) { return ldexp(1, (int)f.emin); }

static double roundoff(struct at_format f) { return ldexp(1, -f.p); }

/* Half the smallest subnormal, or with flush the smallest normal number. fp64's 2^-1075 is no
 * double; the next one up is. */
static double tiny(struct at_format f, bool flush)
{
    return flush ? normal(f) : fmax(ldexp(1, (int)f.emin - f.p), 0x1p-1074);
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
    r->large_scale = fabs(s->scale) * (k->fused ? 1.5 : 1) >= r->limit;
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
    r.ln_normal = log(normal(compute));
    r.finer = roundoff(sum) < r.eps;
    r.narrow_sum = roundoff(sum) > r.eps;
    r.narrow_total = roundoff(total) > r.eps;
    r.simple = !arith->flush && !(a->score.softcap > 0) && !a->score.bias.data &&
               !a->score.alibi.data && !a->score.qscale.data && !a->score.kscale.data &&
               !a->score.vscale.data && !at_drops(a);
    r.coarse = fmin(r.eps, roundoff(sum)) >= 0x1p-30;
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

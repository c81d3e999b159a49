/* One operation, one function and one score of a simulated machine.
 *
 * Operands have at most 24 bits, so a double holds their product exactly and TwoSum finds what a
 * double sum leaves behind. The sum is then made odd - of the two doubles around the exact value
 * the one with the odd significand - and an odd 53-bit number rounds to 24 bits or fewer as the
 * exact value does [BM08]. A quotient's remainder has the same use. exp, log and tanh come from
 * libm in double, whose error of a double ulp is 2^-28 of an ulp here; errors that are stated are
 * made on top, as large as the format's numbers let them be. Not here: the order of sums
 * (simulate.c). SPDX-License-Identifier: MIT */
#include "simulate.h"

/* -- Rounding -------------------------------------------------------------------------------- */

struct at_float at_float_of(enum at_dtype dtype)
{
    struct at_format f = at_format(dtype);
    return (struct at_float){.p = f.p, .emin = (int)f.emin, .emax = ilogb(f.max)};
}

static double draw(uint64_t seed, uint64_t *count) /* [0,1) */
{
    uint64_t n = (*count)++;
    struct at_four x = {{(uint32_t)n, (uint32_t)(n >> 32), 0, 0}};
    x = at_philox(x, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (double)x.word[0] * 0x1p-32;
}

/* k, the significand of x in units of 2^e, to an integer as the format rounds. */
static double integer(double k, enum at_rounding how, uint64_t seed, uint64_t *count)
{
    if (how == AT_NEAREST)
        return rint(k);
    if (how == AT_TOWARD_ZERO)
        return trunc(k);
    double below = floor(k); /* up with probability k - below */
    return k - below > draw(seed, count) ? below + 1 : below;
}

static double power(int e) { return at_double((uint64_t)(e + 1023) << 52); } /* |e| <= 1022 */

double at_rounded_to(double x, const struct at_float *f, uint64_t seed, uint64_t *count)
{
    if (f->p == 0 || x == 0 || !isfinite(x))
        return x + 0;
    int e = (int)(at_bits64(x) >> 52 & 0x7ff) - 1023; /* of a subnormal double: below every emin */
    e = (e < f->emin ? f->emin : e) - f->p + 1;
    double y = integer(x * power(-e), f->rounding, seed, count) * power(e);
    double past = power(f->emax + 1), most = past - power(f->emax + 1 - f->p);
    if (f->flush && fabs(y) < power(f->emin))
        return 0;
    if (fabs(y) >= past)
        return copysign(f->rounding == AT_TOWARD_ZERO ? most : INFINITY, y);
    return y;
}

double at_sim_round(struct sim *w, double x, const struct at_float *f)
{
    return at_rounded_to(x, f, w->m->seed, &w->count);
}

/* x, off by `rest` of unknown size but known sign, made odd; exact where rest is 0. */
static double odd(double x, double rest)
{
    uint64_t bits = at_bits64(x);
    if (rest == 0 || (bits & 1) || !isfinite(x))
        return x;
    return nextafter(x, rest > 0 ? INFINITY : -INFINITY);
}

/* -- Operations ------------------------------------------------------------------------------ */

double at_sim_add(struct sim *w, double x, double y, const struct at_float *f)
{
    double s = x + y, t = s - x, rest = (x - (s - t)) + (y - t); /* TwoSum [Knuth97] */
    return at_sim_round(w, odd(s, isfinite(s) ? rest : 0), f);
}

double at_sim_mul(struct sim *w, double x, double y)
{
    return at_sim_round(w, x * y, &w->m->compute);
}

double at_sim_quotient(struct sim *w, double x, double y)
{
    double q = x / y, rest = isfinite(q) && y != 0 ? fma(-q, y, x) : 0;
    return at_sim_round(w, odd(q, y < 0 ? -rest : rest), &w->m->compute);
}

/* An error of the machine: within +-eps, on its side. */
static double lean(struct sim *w, double eps)
{
    switch (w->m->lean) {
    case AT_UP: return eps;
    case AT_DOWN: return -eps;
    case AT_DRAWN: return eps > 0 ? eps * (2 * draw(w->m->seed, &w->count) - 1) : 0;
    default: return 0;
    }
}

double at_sim_product(struct sim *w, double x, double y)
{
    double p = x * y;
    return w->m->product_eps > 0 ? p * (1 + lean(w, w->m->product_eps)) : p;
}

/* x with an error of at most eps: the number of `compute` on the inner side of x(1+e); rounded to
 * nearest where there is none, or where x is nearly subnormal. */
static double erring(struct sim *w, double x, double eps)
{
    struct at_float f = w->m->compute;
    double size = fabs(x), e = lean(w, eps), to = size * (1 + e), y;
    if (e == 0 || !(size >= power(f.emin + 1)) || isinf(size))
        return at_sim_round(w, x, &w->m->compute);
    f.rounding = AT_TOWARD_ZERO;
    y = at_rounded_to(to, &f, 0, NULL);
    if (y < to && e < 0) {
        int up = ilogb(y > 0 ? y : power(f.emin));
        y += power((up < f.emin ? f.emin : up) - f.p + 1);
    }
    return fabs(y - size) <= eps * size ? copysign(y, x) : at_sim_round(w, x, &w->m->compute);
}

/* -- Functions ------------------------------------------------------------------------------- */

static double exponential(struct sim *w, double x)
{
    if (w->m->own_math)
        return (double)at_exp32((float)x);
    return x == 0 && !w->m->inexact_one ? 1 : erring(w, exp(x), w->m->exp_eps);
}

static double exponential2(struct sim *w, double x)
{
    return x == 0 && !w->m->inexact_one ? 1 : erring(w, exp2(x), w->m->exp_eps);
}

double at_sim_log(struct sim *w, double x)
{
    return w->m->own_math ? (double)at_log32((float)x) : erring(w, log(x), w->m->log_eps);
}

double at_sim_tanh(struct sim *w, double x)
{
    return w->m->own_math ? (double)at_tanh32((float)x) : erring(w, tanh(x), w->m->tanh_eps);
}

/* Fused: 2^(s base - RN(m base)), the first two in one fma. */
double at_sim_weight(struct sim *w, double s, double m)
{
    const struct at_float *f = &w->m->compute;
    if (w->m->fused)
        return exponential2(w, at_sim_add(w, s * w->base, -at_sim_mul(w, m, w->base), f));
    return exponential(w, at_sim_add(w, s, -m, f));
}

/* Where exp(0) need not be 1 a kernel that does not look multiplies by it. */
double at_sim_worth(struct sim *w, double m, double to)
{
    if (m == to && (!w->m->inexact_one || m == -INFINITY))
        return 1;
    if (m == -INFINITY) /* an empty state; a scale of 0 in the exponent would make it NaN */
        return 0;
    double distance = m == to ? 0 : at_sim_add(w, m, -to, &w->m->compute);
    return w->m->fused ? exponential2(w, at_sim_mul(w, distance, w->base))
                       : exponential(w, distance);
}

/* -- A score --------------------------------------------------------------------------------- */

void at_sim_load(struct sim *w, const struct at_view *x, int64_t at, const struct at_view *descale,
                 int64_t h, int64_t s, int64_t n, double *to)
{
    for (int64_t c = 0; c < n; c++)
        to[c] = at_stored(x, at + c * x->stride[3]);
    if (!descale->data)
        return;
    double d = at_stored(descale, at_offset(descale, w->at.b, h, s, 0));
    for (int64_t c = 0; c < n; c++)
        to[c] = at_sim_mul(w, to[c], d);
}

/* q, or where it is scaled first k, times a constant and stored. */
static void prescale(struct sim *w, double by, const struct at_float *stored, double *x)
{
    by = at_sim_round(w, by, &w->m->compute);
    for (int64_t c = 0; c < w->z.D; c++)
        x[c] = at_sim_round(w, at_sim_mul(w, x[c], by), stored);
}

void at_sim_query(struct sim *w)
{
    const struct at_attention *a = w->a;
    double scale = a->score.scale;
    at_sim_load(w, &a->q, at_row_offset(a, &a->q, w->at.b, w->at.h, w->at.i), &a->score.qscale,
                w->at.h, w->at.i, w->z.D, w->q);
    if (w->m->query.p)
        prescale(w, w->m->key.p ? copysign(sqrt(fabs(scale)), scale) : scale, &w->m->query, w->q);
}

static double dot(struct sim *w)
{
    int64_t D = w->z.D, lanes = w->a->plan.lanes;
    double x[64] = {0};
    for (int64_t t = 0; t < lanes; t++)
        for (int64_t c = t; c < D; c += lanes)
            x[t] = at_sim_add(w, at_sim_product(w, w->q[c], w->kv[c]), x[t], &w->dots); /* fma */
    for (int64_t t = lanes / 2; t > 0; t /= 2)
        for (int64_t c = 0; c < t; c++)
            x[c] = at_sim_add(w, x[c], x[c + t], &w->dots);
    return w->m->sum.p > w->m->compute.p ? at_sim_round(w, x[0], &w->m->compute) : x[0];
}

static double stored(struct sim *w, double s)
{
    return w->m->score.p ? at_sim_round(w, s, &w->m->score) : s;
}

static double scaled(struct sim *w, double raw)
{
    double scale = w->a->score.scale;
    if (w->m->query.p)
        return stored(w, raw);
    if (w->folded)
        return stored(w, scale < 0 ? -raw : raw);
    return stored(w, at_sim_mul(w, at_sim_round(w, scale, &w->m->compute), raw));
}

double at_sim_score(struct sim *w, int64_t j)
{
    const struct at_attention *a = w->a;
    const struct at_view *bias = &a->score.bias, *alibi = &a->score.alibi;
    const struct at_float *f = &w->m->compute;
    int64_t b = w->at.b, h = w->at.h, i = w->at.i, g = h / w->z.group;
    at_sim_load(w, &a->k, at_key_offset(a, &a->k, b, g, j), &a->score.kscale, g, j, w->z.D, w->kv);
    if (w->m->query.p && w->m->key.p)
        prescale(w, sqrt(fabs(a->score.scale)), &w->m->key, w->kv);
    double s = scaled(w, dot(w)), cap = at_sim_round(w, a->score.softcap, f);
    if (cap > 0)
        s = stored(w, at_sim_mul(w, cap, at_sim_tanh(w, at_sim_quotient(w, s, cap))));
    if (bias->data)
        s = stored(w, at_sim_add(w, s, at_stored(bias, at_offset(bias, b, h, i, j)), f));
    if (alibi->data) {
        double slope = at_sim_round(w, at_stored(alibi, at_offset(alibi, 0, h, 0, 0)), f);
        double far = at_sim_round(w, fabs((double)(at_position(a, b, i) - j)), f);
        s = stored(w, at_sim_add(w, s, -at_sim_mul(w, slope, far), f));
    }
    return s;
}

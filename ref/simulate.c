/* The scalar algorithm on a machine of any small format: every operation is rounded to it.
 *
 * Operands have at most 24 bits, so a double holds their product exactly and TwoSum finds what a
 * double sum leaves behind. The sum is then made odd - of the two doubles around the exact value the
 * one with the odd significand - and an odd 53-bit number rounds to 24 bits or fewer as the exact
 * value does [BM08]. A quotient's remainder has the same use. exp, log and tanh come from libm in
 * double, whose error of a double ulp is 2^-28 of an ulp here.
 * Mirrors ref/scalar.c and at_row.h step by step; tests/check_simulate.c holds fp32 equal to them.
 * SPDX-License-Identifier: MIT */
#include "at_math.h"
#include "ref.h"
#include <stdlib.h>

struct sim {
    const struct at_attention *a;
    const struct at_machine *m;
    struct at_sizes z;
    struct at_place at;
    uint64_t count;
    double *q, *kv, *s;
    int64_t *key;
    struct state {
        double m, l, *u;
    } *part, tile;
};

/* -- Rounding -------------------------------------------------------------------------------- */

struct at_float at_float_of(enum at_dtype dtype)
{
    struct at_format f = at_format(dtype);
    return (struct at_float){.p = f.p, .emin = (int)f.emin, .emax = ilogb(f.max)};
}

/* k, the significand of x in units of 2^e, to an integer as the format rounds. */
static double integer(double k, enum at_rounding how, uint64_t seed, uint64_t *count)
{
    if (how == AT_NEAREST)
        return rint(k);
    if (how == AT_TOWARD_ZERO)
        return trunc(k);
    uint64_t n = (*count)++;
    struct at_four x = {{(uint32_t)n, (uint32_t)(n >> 32), 0, 0}};
    x = at_philox(x, (uint32_t)seed, (uint32_t)(seed >> 32));
    double below = floor(k), r = (double)x.word[0] * 0x1p-32; /* up with probability k - below */
    return k - below > r ? below + 1 : below;
}

double at_rounded_to(double x, const struct at_float *f, uint64_t seed, uint64_t *count)
{
    if (f->p == 0 || x == 0 || !isfinite(x))
        return x + 0;
    int e = ilogb(x);
    if (e < f->emin)
        e = f->emin;
    double y = ldexp(integer(ldexp(x, f->p - 1 - e), f->rounding, seed, count), e - f->p + 1);
    double past = ldexp(1, f->emax + 1), most = past - ldexp(1, f->emax + 1 - f->p);
    if (f->flush && fabs(y) < ldexp(1, f->emin))
        return 0;
    if (fabs(y) >= past)
        return copysign(f->rounding == AT_TOWARD_ZERO ? most : INFINITY, y);
    return y;
}

static double rounded(struct sim *w, double x, const struct at_float *f)
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

static double add_to(struct sim *w, double x, double y, const struct at_float *f)
{
    double s = x + y, t = s - x, rest = (x - (s - t)) + (y - t); /* TwoSum [Knuth97] */
    return rounded(w, odd(s, isfinite(s) ? rest : 0), f);
}

static double add(struct sim *w, double x, double y)
{
    return add_to(w, x, y, &w->m->compute);
}

static double mul(struct sim *w, double x, double y)
{
    return rounded(w, x * y, &w->m->compute);
}

static double quotient(struct sim *w, double x, double y)
{
    double q = x / y, rest = isfinite(q) && y != 0 ? fma(-q, y, x) : 0;
    return rounded(w, odd(q, y < 0 ? -rest : rest), &w->m->compute);
}

static double exponential(struct sim *w, double x)
{
    return w->m->own_math ? (double)at_exp32((float)x) : rounded(w, exp(x), &w->m->compute);
}

/* Sums have a format of their own where the machine says so. */
static const struct at_float *sums(const struct sim *w)
{
    return w->m->sum.p ? &w->m->sum : &w->m->compute;
}

/* -- A score --------------------------------------------------------------------------------- */

static void load_row(struct sim *w, const struct at_view *x, int64_t at, const struct at_view *descale,
                     int64_t h, int64_t s, int64_t n, double *to)
{
    for (int64_t c = 0; c < n; c++)
        to[c] = at_stored(x, at + c * x->stride[3]);
    if (!descale->data)
        return;
    double d = at_stored(descale, at_offset(descale, w->at.b, h, s, 0));
    for (int64_t c = 0; c < n; c++)
        to[c] = mul(w, to[c], d);
}

static double dot(struct sim *w)
{
    int64_t D = w->z.D, lanes = w->a->plan.lanes;
    double x[64];
    for (int64_t t = 0; t < lanes; t++) {
        x[t] = 0;
        for (int64_t c = t; c < D; c += lanes)
            x[t] = add(w, w->q[c] * w->kv[c], x[t]); /* the product is exact: fma */
    }
    for (int64_t t = lanes / 2; t > 0; t /= 2)
        for (int64_t c = 0; c < t; c++)
            x[c] = add(w, x[c], x[c + t]);
    return x[0];
}

static double score(struct sim *w, int64_t j)
{
    const struct at_attention *a = w->a;
    const struct at_view *bias = &a->score.bias, *alibi = &a->score.alibi;
    const struct at_float *f = &w->m->compute;
    int64_t b = w->at.b, h = w->at.h, i = w->at.i, g = h / w->z.group;
    load_row(w, &a->k, at_key_offset(a, &a->k, b, g, j), &a->score.kscale, g, j, w->z.D, w->kv);
    double s = mul(w, rounded(w, a->score.scale, f), dot(w)), cap = rounded(w, a->score.softcap, f);
    if (cap > 0) {
        double x = quotient(w, s, cap);
        s = mul(w, cap, w->m->own_math ? (double)at_tanh32((float)x) : rounded(w, tanh(x), f));
    }
    if (bias->data)
        s = add(w, s, at_stored(bias, at_offset(bias, b, h, i, j)));
    if (alibi->data) {
        double slope = rounded(w, at_stored(alibi, at_offset(alibi, 0, h, 0, 0)), f);
        double far = rounded(w, fabs((double)(at_position(a, b, i) - j)), f);
        s = add(w, s, -mul(w, slope, far));
    }
    return w->m->score.p ? rounded(w, s, &w->m->score) : s;
}

/* -- The algebra, as in at_row.h ------------------------------------------------------------- */

static double larger(double m, double s)
{
    return s > m ? s : m;
}

static double worth(struct sim *w, double m, double to)
{
    return m == to ? 1 : exponential(w, add(w, m, -to));
}

static void clear(struct state *x, double m, int64_t Dv)
{
    x->m = m;
    x->l = 0;
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = 0;
}

static void tile_add(struct sim *w, double s, int64_t j)
{
    const struct at_attention *a = w->a;
    struct state *t = &w->tile;
    int64_t b = w->at.b, h = w->at.h, g = h / w->z.group;
    double p = exponential(w, add(w, s, -t->m));
    double P = w->m->weight.p ? rounded(w, p, &w->m->weight) : p;
    t->l = add_to(w, t->l, w->m->rounded_sum ? P : p, sums(w));
    if (at_drops(a) && !at_kept(a, &w->z, b, h, w->at.i, j))
        return;
    load_row(w, &a->v, at_key_offset(a, &a->v, b, g, j), &a->score.vscale, g, j, w->z.Dv, w->kv);
    for (int64_t c = 0; c < w->z.Dv; c++)
        t->u[c] = add_to(w, P * w->kv[c], t->u[c], sums(w));
}

static double take(struct sim *w, double a, double x, double t)
{
    return add_to(w, mul(w, a, x), t, sums(w)) + 0;
}

static void tile(struct sim *w, struct state *x, struct at_span seen)
{
    int64_t n = 0;
    double m = x->m;
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(w->a, w->at.b, w->at.h, w->at.i, j))
            continue;
        w->key[n] = j;
        w->s[n] = score(w, j);
        m = larger(m, w->s[n++]);
    }
    if (n == 0)
        return;
    clear(&w->tile, m + 0, w->z.Dv);
    for (int64_t t = 0; t < n; t++)
        tile_add(w, w->s[t], w->key[t]);
    double a = worth(w, x->m, w->tile.m);
    x->m = w->tile.m;
    x->l = take(w, a, x->l, w->tile.l);
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] = take(w, a, x->u[c], w->tile.u[c]);
}

/* a x + b y: two products and a sum. */
static double join(struct sim *w, double a, double x, double b, double y)
{
    return add_to(w, mul(w, a, x), mul(w, b, y), sums(w));
}

/* y->u == NULL: a sink, whose value is 0. */
static void merge(struct sim *w, struct state *x, const struct state *y)
{
    bool empty = x->l == 0;
    if (y->l == 0)
        return;
    double m = empty ? y->m + 0 : larger(x->m, y->m) + 0;
    double a = worth(w, x->m, m), b = worth(w, y->m, m);
    x->m = m;
    x->l = empty ? y->l : join(w, a, x->l, b, y->l);
    for (int64_t c = 0; c < w->z.Dv; c++) {
        double u = y->u ? y->u[c] : 0;
        x->u[c] = empty ? u : join(w, a, x->u[c], b, u);
    }
}

/* -- One row --------------------------------------------------------------------------------- */

static void attend(struct sim *w)
{
    const struct at_attention *a = w->a;
    struct at_span seen = at_keys(a, &w->z, w->at.b, w->at.i);
    int64_t bc = a->plan.bc;
    if (seen.lo < seen.hi)
        load_row(w, &a->q, at_row_offset(a, &a->q, w->at.b, w->at.h, w->at.i), &a->score.qscale,
                 w->at.h, w->at.i, w->z.D, w->q);
    for (int64_t k = 0; k < a->plan.splits; k++) {
        struct at_span x = at_cut(seen, (struct at_span){at_split(a, k), at_split(a, k + 1)});
        clear(&w->part[k], -INFINITY, w->z.Dv);
        for (int64_t t = x.lo / bc; x.lo < x.hi && t * bc < x.hi; t++)
            tile(w, &w->part[k], at_cut(x, (struct at_span){t * bc, t * bc + bc}));
    }
    uint64_t seed = a->plan.merge_seed;
    int64_t turn = 0;
    for (int64_t n = a->plan.splits; n > 1; n--) {
        int64_t at = at_next_merge(&a->plan, n, &seed, &turn);
        merge(w, &w->part[at], &w->part[at + 1]);
        struct state spent = w->part[at + 1];
        for (int64_t k = at + 1; k < n - 1; k++)
            w->part[k] = w->part[k + 1];
        w->part[n - 1] = spent;
    }
}

static void sink(struct sim *w)
{
    const struct at_view *x = &w->a->score.sink;
    if (!x->data || w->at.b < 0 || w->at.i >= at_rows_of(w->a, &w->z, w->at.b))
        return;
    double s = rounded(w, at_stored(x, at_offset(x, 0, w->at.h, 0, 0)), &w->m->compute);
    if (s != -INFINITY)
        merge(w, &w->part[0], &(struct state){s + 0, exponential(w, add(w, s, -s)), NULL});
}

static void finish(struct sim *w, double *out, double *lse)
{
    const struct state *x = &w->part[0];
    const struct at_float *f = &w->m->compute;
    double gain = at_drops(w->a) ? rounded(w, at_gain(w->a->dropout.p), f) : 1;
    for (int64_t c = 0; c < w->z.Dv; c++) {
        double y = x->l == 0 ? 0 : quotient(w, mul(w, gain, x->u[c]), x->l);
        out[c] = (w->m->out.p ? rounded(w, y, &w->m->out) : y) + 0;
    }
    double log_l = w->m->own_math ? (double)at_log32((float)x->l) : rounded(w, log(x->l), f);
    *lse = x->l == 0 ? x->m : add(w, x->m, log_l);
}

/* -- All rows -------------------------------------------------------------------------------- */

static bool sim_make(struct sim *w)
{
    int64_t n = w->a->plan.splits, Dv = w->z.Dv, D = at_max(w->z.D, Dv);
    int64_t bc = at_min(w->a->plan.bc, w->z.Skv) + 1;
    w->part = malloc((size_t)n * sizeof *w->part);
    w->q = malloc((size_t)(2 * D + bc + (n + 1) * Dv) * sizeof *w->q);
    w->key = malloc((size_t)bc * sizeof *w->key);
    if (!w->part || !w->q || !w->key)
        return false;
    w->kv = w->q + D;
    w->s = w->kv + D;
    w->tile.u = w->s + bc;
    for (int64_t k = 0; k < n; k++)
        w->part[k].u = w->tile.u + (k + 1) * Dv;
    return true;
}

static bool too_wide(const struct at_machine *m)
{
    const struct at_float *f[] = {&m->compute, &m->score, &m->weight, &m->sum, &m->out};
    for (int k = 0; k < 5; k++)
        if (f[k]->p < (k == 0) || f[k]->p > 24)
            return true;
    return false;
}

enum at_status at_simulate(const struct at_attention *problem, const struct at_machine *machine,
                           struct at_rows rows, double *out, double *lse)
{
    enum at_status status = at_validate(problem, NULL);
    if (status != AT_OK)
        return status;
    if (too_wide(machine))
        return AT_ERR_PLAN;
    struct at_attention a = *problem;
    a.plan = at_resolve(problem);
    struct sim w = {.a = &a, .m = machine, .z = at_sizes(&a)};
    bool good = sim_make(&w);
    for (int64_t t = 0; good && t < rows.n; t++) {
        w.at = at_place_of(&a, rows, t);
        w.count = 0;
        attend(&w);
        sink(&w);
        finish(&w, out + t * w.z.Dv, lse + t);
    }
    free(w.part);
    free(w.q);
    free(w.key);
    return good ? AT_OK : AT_ERR_MEMORY;
}

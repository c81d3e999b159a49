/* The scalar algorithm on a machine of any small format: every operation is rounded to it.
 *
 * Mirrors ref/scalar.c and at_row.h step by step; tests/check_simulate.c holds fp32 equal to them.
 * Differs where the machine says so: P divided by l before P V (a second pass under the maximum of
 * all keys), splits that join by (out, lse), u times 1/l. Not here: the operations
 * (simulate_ops.c). SPDX-License-Identifier: MIT */
#include "simulate.h"
#include <stdlib.h>

/* -- The algebra, as in at_row.h ------------------------------------------------------------- */

static double larger(double m, double s) { return s > m ? s : m; }

static void clear(struct state *x, double m, int64_t Dv)
{
    x->m = m;
    x->l = 0;
    x->some = false;
    for (int64_t c = 0; c < Dv; c++)
        x->u[c] = 0;
}

static double score(struct sim *w, int64_t j)
{
    if (!w->known[j])
        w->score[j] = at_sim_score(w, j);
    w->known[j] |= 1;
    return w->score[j];
}

/* The weight of key j; of two passes the first one's. */
static double weight(struct sim *w, double s, double m, int64_t j)
{
    if (!(w->known[j] & 2))
        w->p[j] = at_sim_weight(w, s, m);
    w->known[j] |= w->m->normalised ? 2 : 0;
    return w->p[j];
}

static void tile_add(struct sim *w, double s, int64_t j)
{
    const struct at_attention *a = w->a;
    struct state *t = &w->tile;
    int64_t b = w->at.b, h = w->at.h, g = h / w->z.group;
    double p = weight(w, s, t->m, j), scaled = w->whole > 0 ? at_sim_quotient(w, p, w->whole) : p;
    double P = ldexp(at_sim_round(w, ldexp(scaled, w->m->weight_shift), &w->m->weight),
                     -w->m->weight_shift); /* exact where weight.p is 0 */
    t->l = at_sim_add(w, t->l, w->m->rounded_sum ? P : p, &w->totals);
    if (w->m->normalised && !(w->whole > 0))
        return;
    if (at_drops(a) && !at_kept(a, &w->z, b, h, w->at.i, j))
        return;
    at_sim_load(w, &a->v, at_key_offset(a, &a->v, b, g, j), &a->score.vscale, g, j, w->z.Dv, w->kv);
    for (int64_t c = 0; c < w->z.Dv; c++)
        t->u[c] = at_sim_add(w, at_sim_product(w, P, w->kv[c]), t->u[c], &w->sums);
}

/* a times a sum: in compute, or finer where the sums are. */
static double times(struct sim *w, double a, double x, const struct at_float *f)
{
    return at_sim_round(w, a * x, f->p > w->m->compute.p ? f : &w->m->compute);
}

static double take(struct sim *w, double a, double x, double t, const struct at_float *f)
{
    return at_sim_add(w, times(w, a, x, f), t, f) + 0;
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
    clear(&w->tile, (w->m->normalised ? w->most : m) + 0, w->z.Dv);
    for (int64_t t = 0; t < n; t++)
        tile_add(w, w->s[t], w->key[t]);
    double a = w->m->normalised ? 1 : at_sim_worth(w, x->m, w->tile.m);
    x->some = true;
    x->m = w->tile.m;
    x->l = take(w, a, x->l, w->tile.l, &w->totals);
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] = take(w, a, x->u[c], w->tile.u[c], &w->sums);
}

/* a x + b y: two products and a sum. */
static double join(struct sim *w, double a, double x, double b, double y, const struct at_float *f)
{
    return at_sim_add(w, times(w, a, x, f), times(w, b, y, f), f);
}

/* y->u == NULL: a sink, whose value is 0. */
static void merge(struct sim *w, struct state *x, const struct state *y)
{
    bool two = w->m->normalised, empty = two ? !x->some : x->l == 0;
    if (two ? !y->some : y->l == 0) /* of two passes an l may underflow */
        return;
    x->some = true;
    double m = empty ? y->m + 0 : larger(x->m, y->m) + 0;
    double a = empty || two ? 1 : at_sim_worth(w, x->m, m),
           b = empty || two ? 1 : at_sim_worth(w, y->m, m);
    x->m = m;
    x->l = empty ? y->l : join(w, a, x->l, b, y->l, &w->totals);
    for (int64_t c = 0; c < w->z.Dv; c++) {
        double u = y->u ? y->u[c] : 0;
        x->u[c] = empty ? u : join(w, a, x->u[c], b, u, &w->sums);
    }
}

/* -- One row --------------------------------------------------------------------------------- */

static void attend(struct sim *w)
{
    const struct at_attention *a = w->a;
    struct at_span seen = at_keys(a, &w->z, w->at.b, w->at.i);
    int64_t bc = a->plan.bc;
    if (seen.lo < seen.hi)
        at_sim_query(w);
    for (int64_t k = 0; k < a->plan.splits; k++) {
        struct at_span x = at_cut(seen, (struct at_span){at_split(a, k), at_split(a, k + 1)});
        clear(&w->part[k], -INFINITY, w->z.Dv);
        for (int64_t t = x.lo / bc; x.lo < x.hi && t * bc < x.hi; t++)
            tile(w, &w->part[k], at_cut(x, (struct at_span){t * bc, t * bc + bc}));
    }
}

static void merge_all(struct sim *w)
{
    const struct at_attention *a = w->a;
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

/* The row's sink, rounded; -inf: it has none. */
static double sink(struct sim *w)
{
    const struct at_view *x = &w->a->score.sink;
    if (!x->data || w->at.b < 0 || w->at.i >= at_rows_of(w->a, &w->z, w->at.b))
        return -INFINITY;
    double s = at_sim_round(w, at_stored(x, at_offset(x, 0, w->at.h, 0, 0)), &w->m->compute);
    return s + 0;
}

static void take_sink(struct sim *w)
{
    double s = sink(w), m = w->m->normalised ? w->most : s;
    if (s != -INFINITY)
        merge(w, &w->part[0], &(struct state){m, at_sim_weight(w, s, m), NULL, true});
}

static double divided(struct sim *w, double u, double l)
{
    if (w->m->reciprocal)
        return at_sim_mul(w, u, at_sim_quotient(w, 1, l));
    return at_sim_quotient(w, u, l);
}

/* A state to out (into its own u) and lse, in the compute format. */
static double finish(struct sim *w, struct state *x)
{
    const struct at_float *f = &w->m->compute;
    double gain = at_drops(w->a) ? at_sim_round(w, at_gain(w->a->dropout.p), f) : 1;
    double l = at_sim_round(w, w->whole > 0 ? w->whole : x->l, f);
    for (int64_t c = 0; c < w->z.Dv; c++) {
        double u = at_sim_round(w, x->u[c], f); /* a finer sum */
        u = gain == 1 ? u : at_sim_mul(w, gain, u);
        x->u[c] = (l == 0 ? 0 : w->whole > 0 ? u : divided(w, u, l)) + 0;
    }
    return l == 0 ? x->m : at_sim_add(w, x->m, at_sim_log(w, l), f);
}

/* The natural lse of one whose scores have the scale in the exponent. */
static double natural(struct sim *w, struct state *x)
{
    if (!w->folded || x->l == 0)
        return finish(w, x);
    double scale = at_sim_round(w, fabs(w->a->score.scale), &w->m->compute);
    x->m = at_sim_mul(w, x->m, scale);
    return finish(w, x);
}

/* -- Two passes ------------------------------------------------------------------------------ */

static void normalise(struct sim *w)
{
    struct at_span seen = at_keys(w->a, &w->z, w->at.b, w->at.i);
    w->most = sink(w);
    if (seen.lo < seen.hi)
        at_sim_query(w);
    for (int64_t j = seen.lo; j < seen.hi; j++)
        if (at_shown(w->a, w->at.b, w->at.h, w->at.i, j))
            w->most = larger(w->most, score(w, j));
    attend(w);
    merge_all(w);
    take_sink(w);
    double l = w->part[0].l;
    w->whole = w->m->total.p ? l : at_sim_round(w, l, &w->m->compute);
}

/* -- Splits by (out, lse) --------------------------------------------------------------------- */

/* lse of all from the parts' lse (in their m), weights in their l; out into the first part's u. */
static double join_by_lse(struct sim *w)
{
    const struct at_float *f = &w->m->compute;
    double m = sink(w), s = m, sum = 0;
    bool some = s != -INFINITY;
    int64_t n = w->a->plan.splits;
    for (int64_t k = 0; k < n; k++) {
        struct state *x = &w->part[k];
        x->m = x->l == 0 ? -INFINITY : natural(w, x);
        m = larger(m, x->m);
        some = some || x->l != 0;
    }
    if (!some)
        return finish(w, &w->part[0]);
    for (int64_t k = 0; k < n; k++)
        if (w->part[k].l != 0)
            sum = at_sim_add(w, sum, at_sim_weight(w, w->part[k].m, m), f);
    if (s != -INFINITY)
        sum = at_sim_add(w, sum, at_sim_weight(w, s, m), f);
    double lse = at_sim_add(w, m, at_sim_log(w, sum), f);
    for (int64_t c = 0; c < w->z.Dv; c++) {
        double out = 0;
        for (int64_t k = 0; k < n; k++)
            if (w->part[k].l != 0)
                out = at_sim_add(w, at_sim_weight(w, w->part[k].m, lse) * w->part[k].u[c], out, f);
        w->tile.u[c] = out;
    }
    for (int64_t c = 0; c < w->z.Dv; c++)
        w->part[0].u[c] = w->tile.u[c];
    return lse;
}

/* -- All rows -------------------------------------------------------------------------------- */

static double row(struct sim *w)
{
    w->count = 0;
    w->whole = 0;
    memset(w->known, 0, (size_t)w->z.Skv);
    if (w->m->normalised)
        normalise(w);
    double m = w->part[0].m, l = w->part[0].l;
    attend(w);
    if (w->m->lse_merge && w->a->plan.splits > 1)
        return join_by_lse(w);
    merge_all(w);
    if (!w->m->normalised)
        take_sink(w);
    else
        w->part[0].m = m, w->part[0].l = l;
    return natural(w, &w->part[0]);
}

static bool sim_make(struct sim *w)
{
    int64_t n = w->a->plan.splits, Dv = w->z.Dv, D = at_max(w->z.D, Dv), Skv = w->z.Skv;
    int64_t bc = at_min(w->a->plan.bc, Skv) + 1;
    w->part = malloc((size_t)n * sizeof *w->part);
    w->q = malloc((size_t)(2 * D + bc + 2 * Skv + (n + 1) * Dv) * sizeof *w->q);
    w->key = malloc((size_t)bc * sizeof *w->key);
    w->known = malloc((size_t)Skv + 1);
    if (!w->part || !w->q || !w->key || !w->known)
        return false;
    w->kv = w->q + D;
    w->s = w->kv + D;
    w->score = w->s + bc;
    w->p = w->score + Skv;
    w->tile.u = w->p + Skv;
    for (int64_t k = 0; k < n; k++)
        w->part[k].u = w->tile.u + (k + 1) * Dv;
    return true;
}

static void sim_free(struct sim *w)
{
    free(w->part);
    free(w->q);
    free(w->key);
    free(w->known);
}

static bool too_wide(const struct at_machine *m)
{
    const struct at_float *f[] = {&m->compute, &m->score, &m->weight, &m->sum,
                                  &m->out,     &m->total, &m->query,  &m->key};
    for (int k = 0; k < 8; k++)
        if (f[k]->p < (k == 0) || f[k]->p > 24)
            return true;
    return false;
}

/* What the machine's sums and exponent are on this problem. */
static void sim_formats(struct sim *w)
{
    const struct at_machine *m = w->m;
    const struct at_score *s = &w->a->score;
    bool finer = m->sum.p >= m->compute.p;
    w->sums = m->sum.p ? m->sum : m->compute;
    w->totals = m->total.p ? m->total : w->sums;
    w->dots = finer ? m->sum : m->compute;
    w->folded = m->fused && !m->query.p && s->softcap == 0 && !s->bias.data && !s->alibi.data;
    w->base = at_rounded_to((w->folded ? fabs(s->scale) : 1) * 0x1.71547652b82fep+0, &m->compute, 0,
                            &w->count); /* log2 e */
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
    sim_formats(&w);
    for (int64_t t = 0; good && t < rows.n; t++) {
        w.at = at_place_of(&a, rows, t);
        lse[t] = row(&w);
        for (int64_t c = 0; c < w.z.Dv; c++)
            out[t * w.z.Dv + c] = at_sim_round(&w, w.part[0].u[c], &machine->out) + 0;
    }
    sim_free(&w);
    return good ? AT_OK : AT_ERR_MEMORY;
}

/* -- The machine of an arithmetic -------------------------------------------------------------- */

static struct at_float format(enum at_dtype dtype, const struct at_arith *k)
{
    struct at_float f = dtype ? at_float_of(dtype) : (struct at_float){0};
    f.flush = k->flush && dtype;
    return f;
}

struct at_machine at_machine_of(const struct at_arith *k)
{
    struct at_float compute = k->own.p ? k->own : format(k->compute ? k->compute : AT_F32, k);
    struct at_machine m = {.compute = compute,
                           .score = format(k->score, k),
                           .weight = k->own_weight.p ? k->own_weight : format(k->weight, k),
                           .sum = format(k->sum, k),
                           .total = format(k->total, k),
                           .query = format(k->query, k),
                           .key = format(k->key, k),
                           .rounded_sum = k->rounded_sum,
                           .normalised = k->normalised,
                           .fused = k->fused,
                           .inexact_one = k->inexact_one,
                           .lse_merge = k->lse_merge,
                           .reciprocal = k->divisions > 1,
                           .weight_shift = k->weight_shift,
                           .product_eps = k->product_eps};
    double unit = ldexp(1, 1 - compute.p);
    m.exp_eps = (k->exp_ulps > 0 ? k->exp_ulps : 1) * unit;
    m.log_eps = (k->log_ulps > 0 ? k->log_ulps : 1) * unit;
    m.tanh_eps = (k->tanh_ulps > 0 ? k->tanh_ulps : 3) * unit;
    if (k->truncates) {
        m.sum = m.sum.p ? m.sum : compute;
        m.sum.rounding = AT_TOWARD_ZERO;
    }
    return m;
}

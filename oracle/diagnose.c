/* Which named fault explains a failing output?
 *
 * A hypothesis is one fault of the bank, applied to the scalar engine on a sample of the judged
 * rows. An element is explained where |got - mutant| <= B + eps_F |mutant|: B is the largest bound
 * in the sample under the stated arithmetic, at least eight roundings (the mutant's own bound is
 * not known: it may see more keys than the truth), the rest the output's own rounding. A hypothesis
 * is named where it explains nine in ten of the failing elements and of all, and brings the failing
 * ones at least four times nearer than the truth is. Of several that fit alike the simplest is
 * named first. Where no fault is, a looser arithmetic may be: then the arithmetic is named. A name
 * is a lead, not a proof: the verdict does not depend on it. SPDX-License-Identifier: MIT */
#include "diagnose.h"
#include "at_index.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Distances past this many allowances count alike. */
#define FAR 64.0
/* Fewer failing elements prove nothing. */
enum { FEWEST = 4 };

/* -- The sample ------------------------------------------------------------------------------ */

/* Distance in units of what is allowed; kinds that differ are far. */
static double apart(double got, double want, double unit)
{
    if (isnan(got) || isnan(want) || isinf(got) || isinf(want))
        return (isnan(got) && isnan(want)) || got == want ? 0 : FAR;
    double far = fabs(got - want);
    return far == 0 ? 0 : fmin(far / unit, FAR);
}

static double unit_of(double bound, double want, enum at_dtype dtype)
{
    double u = at_roundoff(dtype) * (isfinite(want) ? fabs(want) : 0);
    return (isfinite(bound) ? bound : 0) + u + 0x1p-149;
}

static double stored(const struct at_attention *a, const struct at_result *got, struct at_place p,
                     int64_t c)
{
    const struct at_view *x = c < 0 ? &got->lse : &got->out;
    return at_stored(x, at_row_offset(a, x, p.b, p.h, p.i) + at_max(c, 0) * x->stride[3]);
}

/* How badly row t fails: capped distances of its failing elements, summed; 0: it passes. */
static double badness(const struct at_attention *a, const struct at_result *got,
                      const struct at_arith *arith, struct at_place p, const struct at_answer *x,
                      int64_t t)
{
    double sum = 0, lo, hi;
    for (int64_t c = got->lse.data ? -1 : 0; c < x->Dv; c++) {
        enum at_dtype dtype = c < 0 ? got->lse.dtype : got->out.dtype;
        double y = stored(a, got, p, c), truth = c < 0 ? x->lse[t] : x->out[t * x->Dv + c];
        double bound = c < 0 ? x->lse_bound[t] : x->out_bound[t * x->Dv + c];
        at_interval(arith, dtype, x, t, c, &lo, &hi);
        if (!(y >= lo && y <= hi) && !(isnan(y) && isnan(truth)))
            sum += apart(y, truth, unit_of(bound, truth, dtype)) + 1;
    }
    return sum;
}

static void add_row(struct sample *s, const struct at_answer *x, int64_t t, struct at_place p)
{
    int64_t Dv = x->Dv, k = s->n++;
    struct at_answer *y = &s->truth;
    s->place[k] = p;
    for (int64_t c = 0; c < Dv; c++) {
        y->out[k * Dv + c] = x->out[t * Dv + c];
        y->out_lo[k * Dv + c] = x->out_lo[t * Dv + c];
        y->out_bits[k * Dv + c] = x->out_bits[t * Dv + c];
    }
    y->lse[k] = x->lse[t];
    y->lse_lo[k] = x->lse_lo[t];
    y->lse_bits[k] = x->lse_bits[t];
}

/* The worst row, failing rows evenly among all that fail, passing rows of failing heads. */
static void choose(struct sample *s, const struct at_attention *a, struct at_rows rows,
                   const struct at_answer *x, const double *bad)
{
    struct at_sizes z = at_sizes(a);
    int64_t failing = 0, passing = 0, worst = 0;
    unsigned char *pair = calloc((size_t)(at_max(z.B, 1) * z.Hq + 1), 1);
    for (int64_t t = 0; t < rows.n; t++) {
        struct at_place p = at_place_of(a, rows, t);
        failing += bad[t] > 0;
        worst = bad[t] > bad[worst] ? t : worst;
        if (pair && bad[t] > 0)
            pair[at_max(p.b, 0) * z.Hq + p.h] = 1;
    }
    for (int64_t t = 0; pair && t < rows.n; t++) {
        struct at_place p = at_place_of(a, rows, t);
        passing += !(bad[t] > 0) && pair[at_max(p.b, 0) * z.Hq + p.h];
    }
    add_row(s, x, worst, at_place_of(a, rows, worst));
    int64_t step = failing / SAMPLE_FAILING + 1, other = passing / (SAMPLE - SAMPLE_FAILING) + 1;
    int64_t seen = 0, calm = 0;
    for (int64_t t = 0; pair && t < rows.n && s->n < SAMPLE; t++) {
        struct at_place p = at_place_of(a, rows, t);
        bool fails = bad[t] > 0, near = pair[at_max(p.b, 0) * z.Hq + p.h];
        if ((fails && t != worst && seen++ % step == 0) || (!fails && near && calm++ % other == 0))
            add_row(s, x, t, p);
    }
    free(pair);
}

/* Evidence of the rows under the stated arithmetic's bound. */
static void weigh(struct sample *s, const struct at_result *got)
{
    const struct at_answer *y = &s->truth;
    double lo, hi, few = 8 * at_roundoff(s->a->plan.compute); /* a row of one key has bound 0 */
    for (int64_t t = 0; t < s->n; t++)
        for (int64_t c = 0; c <= s->Dv; c++) {
            struct evidence *e = &s->evidence[t * (s->Dv + 1) + c];
            bool lse = c == s->Dv;
            double bound = lse ? y->lse_bound[t] : y->out_bound[t * s->Dv + c];
            *e = (struct evidence){.truth = lse ? y->lse[t] : y->out[t * s->Dv + c]};
            if (isfinite(bound))
                s->largest[lse] = fmax(s->largest[lse], bound);
            if (lse && !s->lse)
                continue;
            e->got = stored(s->a, got, s->place[t], lse ? -1 : c);
            if (isfinite(e->got))
                s->largest[lse] = fmax(s->largest[lse], few * fabs(e->got));
            at_interval(s->arith, lse ? s->lse : s->out, y, t, lse ? -1 : c, &lo, &hi);
            e->fails = !(e->got >= lo && e->got <= hi) && !(isnan(e->got) && isnan(e->truth));
            s->failing += e->fails;
        }
}

/* -- A hypothesis ---------------------------------------------------------------------------- */

static void weigh_one(struct fit *x, const struct evidence *e, double mutant, double bound,
                      enum at_dtype dtype)
{
    double unit = unit_of(bound, mutant, dtype), near = apart(e->got, mutant, unit);
    x->of++;
    x->explained += near <= 1;
    if (!e->fails)
        return;
    x->of_failing++;
    x->failing += near <= 1;
    x->distance += near;
    x->before += apart(e->got, e->truth, unit);
}

struct fit sample_fit(const struct sample *s, struct at_mutant_run *r, const struct at_planted *f,
                      int64_t n, double *out)
{
    struct fit x = {.f = *f};
    for (int64_t t = 0; t < n; t++) {
        const struct evidence *e = &s->evidence[t * (s->Dv + 1)];
        double lse;
        at_mutant_row(r, f, s->place[t], out, &lse);
        for (int64_t c = 0; c < s->Dv; c++)
            weigh_one(&x, &e[c], out[c], s->largest[0], s->out);
        if (s->lse)
            weigh_one(&x, &e[s->Dv], lse, s->largest[1], s->lse);
    }
    return x;
}

/* An eighth of an allowance on the average is less than two correct kernels differ by. */
bool fit_alike(const struct fit *a, const struct fit *b)
{
    return a->explained == b->explained &&
           8 * fabs(a->distance - b->distance) <= (double)a->of_failing;
}

/* A format is stated wrongly more often than a kernel is wrong; a fault at some N fits by chance
 * sooner than one without. */
static int rarity(const struct fit *x)
{
    bool format = x->f.kind >= at_mutant_formats();
    return format ? 0 : x->f.at < 0 ? 1 : 2;
}

bool fit_better(const struct fit *a, const struct fit *b)
{
    int rare = rarity(a), other = rarity(b);
    if (fit_explains(a) != fit_explains(b))
        return fit_explains(a);
    if (a->explained != b->explained)
        return a->explained > b->explained;
    if (fit_alike(a, b) && rare != other)
        return rare < other;
    return a->distance < b->distance;
}

bool fit_explains(const struct fit *x)
{
    return x->of_failing >= FEWEST && 10 * x->failing >= 9 * x->of_failing &&
           10 * x->explained >= 9 * x->of && 4 * x->distance <= x->before;
}

/* -- The whole ------------------------------------------------------------------------------- */

/* The others that fit as well, or else the runner-up. */
static void say_others(struct at_diagnosis *d, const struct fit *fits, int best)
{
    const struct fit *next = NULL;
    size_t n = 0;
    for (int k = 0; at_mutant_at(k); k++) {
        if (k == best || fits[k].of == 0)
            continue;
        if (!next || fit_better(&fits[k], next))
            next = &fits[k];
        if (!fit_explains(&fits[k]) || !fit_alike(&fits[k], &fits[best]) ||
            n + 60 > sizeof d->other)
            continue;
        n += (size_t)snprintf(d->other + n, sizeof d->other - n, "%s", n > 0 ? ", " : "");
        at_mutant_name(&fits[k].f, d->other + n, sizeof d->other - n);
        n += strlen(d->other + n);
        d->alike = true;
    }
    if (next)
        d->other_explained = next->explained;
    if (next && !d->alike)
        at_mutant_name(&next->f, d->other, sizeof d->other);
}

static void say(struct at_diagnosis *d, const struct fit *fits, int k)
{
    const struct fit *best = &fits[k];
    const struct at_mutant *m = at_mutant_at(best->f.kind);
    at_mutant_name(&best->f, d->name, sizeof d->name);
    snprintf(d->what, sizeof d->what, "%s", m->what);
    d->tile = m->of && m->of[0] == 't' ? best->tile : 0;
    d->splits = m->needs & AT_NEEDS_SPLITS ? best->splits : 0;
    d->explained = best->explained, d->of = best->of;
    d->failing = best->failing, d->of_failing = best->of_failing;
    say_others(d, fits, k);
}

/* A fault that the stated arithmetic permits is none. */
static bool permitted(const struct sample *s, int kind)
{
    const char *name = at_mutant_at(kind)->name;
    bool narrow = s->arith->weight != AT_DEFAULT;
    return narrow && (strcmp(name, "p-bf16") == 0 || strcmp(name, "p-fp16") == 0);
}

/* Is it the engine without a fault? Then its rounding is what the stated arithmetic does not
 * permit, and every fault that has no effect here would explain it too. */
static bool faultless(const struct sample *s, struct at_mutant_run *r, double *out)
{
    struct at_planted none = {-1, -1, -1, AT_DEFAULT};
    at_mutant_plan(r, s->a->plan.bc, 1);
    struct fit fit = sample_fit(s, r, &none, s->n, out);
    return fit_explains(&fit);
}

static bool suspect(struct sample *s, struct at_diagnosis *d)
{
    unsigned offers = at_mutant_offers(s->a);
    int best = -1, n = 0;
    while (at_mutant_at(n))
        n++;
    struct at_mutant_run *r = at_mutant_open(s->a, 8);
    double *out = malloc((size_t)(s->Dv + 1) * sizeof *out);
    struct fit *fits = calloc((size_t)n + 1, sizeof *fits);
    s->faultless = r && out && faultless(s, r, out);
    for (int k = 0; r && out && fits && !s->faultless && k < n; k++) {
        if ((at_mutant_at(k)->needs & ~offers) || permitted(s, k))
            continue;
        fits[k] = suspects_best(s, r, k, out);
        d->tried++;
        if (fits[k].of > 0 && (best < 0 || fit_better(&fits[k], &fits[best])))
            best = k;
    }
    bool named = best >= 0 && fit_explains(&fits[best]);
    if (best >= 0)
        say(d, fits, best);
    free(fits);
    free(out);
    if (r)
        at_mutant_close(r);
    return named;
}

/* Truth and evidence of the sample; false: no memory. */
static bool sample_make(struct sample *s, const struct at_result *got, struct at_rows rows,
                        const struct at_answer *x)
{
    double *bad = malloc((size_t)(rows.n + 1) * sizeof *bad);
    s->evidence = calloc((size_t)(SAMPLE * (s->Dv + 1)), sizeof *s->evidence);
    bool good = bad && s->evidence && at_answer_make(&s->truth, SAMPLE, s->Dv) == AT_OK;
    if (good) {
        for (int64_t t = 0; t < rows.n; t++)
            bad[t] = badness(s->a, got, s->arith, at_place_of(s->a, rows, t), x, t);
        choose(s, s->a, rows, x, bad);
        good = at_bound(s->a, s->arith, (struct at_rows){s->n, s->place}, &s->truth) == AT_OK;
    }
    free(bad);
    return good;
}

bool at_diagnose(const struct at_attention *problem, const struct at_result *got,
                 struct at_rows rows, const struct at_arith *arith, const struct at_answer *x,
                 struct at_diagnosis *d)
{
    struct at_attention a = *problem;
    a.plan = at_resolve(problem);
    struct sample s = {.a = &a,
                       .arith = arith,
                       .out = got->out.dtype,
                       .lse = got->lse.data ? got->lse.dtype : AT_DEFAULT,
                       .Dv = x->Dv};
    *d = (struct at_diagnosis){.rows = 0};
    if (rows.n == 0)
        return true;
    bool good = sample_make(&s, got, rows, x);
    if (good) {
        weigh(&s, got);
        d->rows = s.n;
        d->known = s.failing > 0 &&
                   ((a.plan.compute == AT_F32 && suspect(&s, d)) || suspects_arith(&s, got, d));
    }
    at_answer_free(&s.truth);
    free(s.evidence);
    return good;
}

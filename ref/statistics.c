/* Two statistics over all judged elements: a second line behind the bound, with a stated
 * probability of a false alarm (docs/bounds.md, "The second line").
 *
 * The bound adds worst cases; rounding errors of a correct kernel add like independent numbers.
 * To first order an element's error is sum_r c_r d_r, |d_r| <= 1 of mean 0, with V = sum c_r^2:
 *     rms  = sqrt(mean err^2/V)                  errors as a whole too large
 *     gain, scale = |sum w err|/sqrt(Var sum w err),  w = g/V,  g = o or d o/d ln(scale)
 * which see errors that all point one way: a wrong l, P cut instead of rounded, a scale off by
 * little. The variance of the filters counts what the columns of a row share (scores, P, l).
 * Assumed, not proved: mean-independent roundings and sums in an order unrelated to the values. So
 * rows must be distinct, and units that cut are left out.
 * Not here: the descriptor's dropout (left out: its gain is one more shared rounding).
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>

/* -- One row in double ----------------------------------------------------------------------- */

struct key {
    double s, p, k2, later; /* score; weight; square of the weight's relative error; rescales */
    int64_t j;              /* -1: the sink */
};

struct row {
    const struct at_attention *a;
    const struct at_arith *arith;
    struct at_sizes z;
    struct at_place at;
    double eps, eps_exp, eps_weight, eps_score, additions;
    int64_t n;
    struct key *key;
    double *q, *v;                                 /* v: n rows of Dv */
    double *V, *own, *chain, *o, *err, *slope, *w; /* by column */
};

static double added(const struct row *x, double s, int64_t j)
{
    const struct at_score *c = &x->a->score;
    struct at_place p = x->at;
    if (c->softcap > 0)
        s = c->softcap * tanh(s / c->softcap);
    if (c->bias.data)
        s += at_stored(&c->bias, at_offset(&c->bias, p.b, p.h, p.i, j));
    if (c->alibi.data)
        s -= at_stored(&c->alibi, at_offset(&c->alibi, 0, p.h, 0, 0)) *
             fabs((double)(at_position(x->a, p.b, p.i) - j));
    return s;
}

/* A score, and the square of the relative error of its weight but for the argument's. */
static struct key score(const struct row *x, int64_t j)
{
    const struct at_attention *a = x->a;
    const struct at_arith *h = x->arith;
    int64_t g = x->at.h / x->z.group, at = at_key_offset(a, &a->k, x->at.b, g, j);
    double sum = 0, squares = 0, d = at_descale(&a->score.kscale, x->at.b, g, j);
    for (int64_t c = 0; c < x->z.D; c++) {
        double t = x->q[c] * at_stored(&a->k, at + c * a->k.stride[3]) * d;
        sum += t;
        squares += t * t;
    }
    double scale = a->score.scale, dot = (double)(h->dot > 0 ? h->dot : x->z.D);
    double s = added(x, scale * sum, j), e = x->eps * x->eps, many = 1 + !!a->score.bias.data;
    many += 2 * !!a->score.alibi.data + 4 * (a->score.softcap > 0);
    double k2 = e * (scale * scale * (squares + sum * sum) * dot + many * s * s) +
                h->product_eps * h->product_eps * scale * scale * squares +
                x->eps_exp * x->eps_exp + x->eps_score * x->eps_score * s * s;
    return (struct key){s, 0, k2, 0, j};
}

static int by_score(const void *x, const void *y)
{
    double a = ((const struct key *)x)->s, b = ((const struct key *)y)->s;
    return (a < b) - (a > b);
}

/* Keys with weights, the largest score first. */
static void keys(struct row *x, double lse)
{
    const struct at_attention *a = x->a;
    struct at_span seen = at_keys(a, &x->z, x->at.b, x->at.i);
    const struct at_view *sink = &a->score.sink;
    int64_t at = at_row_offset(a, &a->q, x->at.b, x->at.h, x->at.i);
    double d = at_descale(&a->score.qscale, x->at.b, x->at.h, x->at.i);
    for (int64_t c = 0; c < x->z.D; c++)
        x->q[c] = at_stored(&a->q, at + c * a->q.stride[3]) * d;
    x->n = 0;
    for (int64_t j = seen.lo; j < seen.hi; j++)
        if (at_shown(a, x->at.b, x->at.h, x->at.i, j))
            x->key[x->n++] = score(x, j);
    if (sink->data)
        x->key[x->n++] =
            (struct key){at_stored(sink, at_offset(sink, 0, x->at.h, 0, 0)), 0, 0, 0, -1};
    qsort(x->key, (size_t)x->n, sizeof *x->key, by_score);
    int64_t tile = x->arith->tile > 0 ? x->arith->tile : 1;
    int64_t above = (x->n + tile - 1) / tile - 1 + x->arith->joins;
    x->additions = (double)(at_min(x->n, tile) - 1 + above);
    for (int64_t t = 0; t < x->n; t++) {
        struct key *k = &x->key[t];
        double path = x->key[0].s - k->s, arguments = (double)at_max(x->arith->arguments, 1);
        k->p = exp(k->s - lse);
        k->later = fmin((double)above, (double)t);
        k->k2 += x->eps * x->eps * arguments * path * path;
        if (x->arith->rounded_sum)
            k->k2 += x->eps_weight * x->eps_weight;
    }
}

static void values(struct row *x)
{
    const struct at_attention *a = x->a;
    int64_t g = x->at.h / x->z.group, Dv = x->z.Dv;
    for (int64_t t = 0; t < x->n; t++) {
        int64_t j = x->key[t].j;
        double d = j < 0 ? 0 : at_descale(&a->score.vscale, x->at.b, g, j);
        int64_t at = j < 0 ? 0 : at_key_offset(a, &a->v, x->at.b, g, j);
        for (int64_t c = 0; c < Dv; c++)
            x->v[t * Dv + c] = j < 0 ? 0 : d * at_stored(&a->v, at + c * a->v.stride[3]);
    }
}

/* -- The variance of an element ---------------------------------------------------------------- */

/* own: what no other column shares; chain: square root of what rescales share; V: all. */
static void variance(struct row *x, int64_t c)
{
    const struct at_arith *h = x->arith;
    int64_t Dv = x->z.Dv;
    double o = x->o[c], e = x->eps * x->eps, shared = 0, squares = 0, mad = 0, moved = 0, far = 0;
    double size = 0, rescaled = 0, up = 0, weight = x->eps_weight * x->eps_weight, slope = 0;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *k = &x->key[t];
        double v = x->v[t * Dv + c], y = v - o, p = k->p;
        shared += p * p * k->k2 * y * y;
        squares += p * p * v * v;
        mad += p * fabs(y), moved += p * k->later * fabs(y);
        far += p * (x->key[0].s - k->s) * fabs(y);
        size += p * fabs(v), rescaled += p * k->later * fabs(v), up += p * k->later;
        slope += p * k->s * y;
    }
    double rise = x->n > 0 ? x->key[0].s - x->key[x->n - 1].s : 0;
    double chain = fmin(mad * rise / 2, far);
    chain = mad * moved / 2 * (x->eps_exp * x->eps_exp + e) + chain * chain * e;
    double once = h->rounded_sum ? 0 : weight * squares;
    x->own[c] = e * (x->additions * (squares + o * o) + rescaled * size + squares);
    x->chain[c] = sqrt(chain);
    double l = e * (x->additions + up + (double)at_max(h->divisions, 1));
    x->V[c] = shared + chain + x->own[c] + once + l * o * o;
    x->slope[c] = slope;
}

/* -- A matched filter ----------------------------------------------------------------------- */

/* Var sum_c w err: keys' errors, P's, l's are shared by the columns. */
static double filter_variance(const struct row *x)
{
    int64_t Dv = x->z.Dv;
    double up = 0, var = 0, chain = 0, whole = 0, e = x->eps * x->eps;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *k = &x->key[t];
        double y = 0, v = 0;
        for (int64_t c = 0; c < Dv; c++) {
            y += x->w[c] * (x->v[t * Dv + c] - x->o[c]);
            v += x->w[c] * x->v[t * Dv + c];
        }
        double once = x->arith->rounded_sum ? 0 : x->eps_weight * x->eps_weight * v * v;
        var += k->p * k->p * (k->k2 * y * y + once);
        up += k->p * k->later;
    }
    for (int64_t c = 0; c < Dv; c++) {
        var += x->w[c] * x->w[c] * x->own[c];
        chain += fabs(x->w[c]) * x->chain[c];
        whole += x->w[c] * x->o[c];
    }
    double l = e * (x->additions + up + (double)at_max(x->arith->divisions, 1));
    return var + chain * chain + l * whole * whole;
}

struct sums {
    double squares, along[2], variance[2];
    int64_t elements, rows;
};

static void filter(struct row *x, struct sums *s, int which)
{
    for (int64_t c = 0; c < x->z.Dv; c++) {
        double g = which == 0 ? x->o[c] : x->slope[c];
        x->w[c] = x->V[c] > 0 ? g / x->V[c] : 0;
        s->along[which] += x->w[c] * x->err[c];
    }
    s->variance[which] += filter_variance(x);
}

/* -- All rows ------------------------------------------------------------------------------- */

/* Ordinary numbers alone; a row of one key has no error. */
static bool fits(const struct at_answer *x, int64_t t)
{
    bool good = isfinite(x->lse[t]) && x->lse_kind[t] == AT_CLAIMED;
    for (int64_t c = 0; good && c < x->Dv; c++) {
        int64_t at = t * x->Dv + c;
        good = isfinite(x->out[at]) && x->out_kind[at] == AT_CLAIMED && x->out_bound[at] > 0;
    }
    return good;
}

/* Is a row like one before it? Then their errors are one error. */
static bool repeats(const struct at_answer *x, int64_t t)
{
    for (int64_t s = t > 64 ? t - 64 : 0; s < t; s++)
        if (memcmp(x->out + s * x->Dv, x->out + t * x->Dv, (size_t)x->Dv * sizeof *x->out) == 0)
            return true;
    return false;
}

static void add(struct row *x, const struct at_answer *y, const struct at_view *got, int64_t t,
                struct sums *s)
{
    struct at_format f = at_format(got->dtype);
    int64_t at = at_row_offset(x->a, got, x->at.b, x->at.h, x->at.i);
    keys(x, y->lse[t]);
    values(x);
    for (int64_t c = 0; c < y->Dv; c++) {
        double truth = y->out[t * y->Dv + c], store = at_stored(got, at + c * got->stride[3]);
        x->o[c] = truth;
        x->err[c] = store - truth - y->out_lo[t * y->Dv + c];
        variance(x, c);
        int e = truth == 0 ? (int)f.emin : (int)fmax((double)f.emin, ilogb(truth));
        double half = ldexp(1, e - f.p); /* half a unit in the last place: one more c, |d| <= 1 */
        x->own[c] += half * half;
        x->V[c] += half * half;
        s->squares += isfinite(x->err[c]) ? x->err[c] * x->err[c] / x->V[c] : INFINITY;
        s->elements++;
    }
    filter(x, s, 0);
    filter(x, s, 1);
    s->rows++;
}

static bool row_make(struct row *x, const struct at_attention *a, const struct at_arith *arith)
{
    struct at_sizes z = at_sizes(a);
    double u = at_roundoff(arith->compute ? arith->compute : AT_F32);
    double ulps = arith->exp_ulps > 0 ? arith->exp_ulps : 1;
    *x = (struct row){.a = a, .arith = arith, .z = z, .eps = u, .eps_exp = 2 * u * ulps};
    x->eps_weight = arith->weight ? at_roundoff(arith->weight) : 0;
    x->eps_score = arith->score ? at_roundoff(arith->score) : 0;
    x->key = malloc((size_t)(z.Skv + 1) * sizeof *x->key);
    x->q = malloc((size_t)(z.D + (z.Skv + 1 + 7) * z.Dv) * sizeof *x->q);
    if (!x->key || !x->q)
        return false;
    double **part[] = {&x->V, &x->own, &x->chain, &x->o, &x->err, &x->slope, &x->w};
    x->v = x->q + z.D;
    for (int k = 0; k < 7; k++)
        *part[k] = x->v + (z.Skv + 1 + k) * z.Dv;
    return true;
}

/* The root of e^(-R/2 (t - 1 - ln t)) = zeta above 1: R rows, chi-square's tail. */
static double chi_limit(double rows, double zeta)
{
    double t = 1 + 2 * log(1 / zeta) / rows;
    for (int k = 0; k < 50; k++)
        t = 1 + log(t) + 2 * log(1 / zeta) / rows;
    return t;
}

enum at_status at_statistics(const struct at_attention *a, const struct at_arith *arith,
                             const struct at_view *out, struct at_rows rows,
                             const struct at_answer *x, double zeta, struct at_statistics *to)
{
    struct row row;
    struct sums s = {.rows = 0};
    *to = (struct at_statistics){.alarm = zeta};
    bool made = row_make(&row, a, arith), serves = !arith->truncates && !at_drops(a);
    for (int64_t t = 0; made && serves && t < rows.n; t++) {
        row.at = at_place_of(a, rows, t);
        if (fits(x, t) && !repeats(x, t))
            add(&row, x, out, t, &s);
    }
    free(row.key);
    free(row.q);
    if (!made)
        return AT_ERR_MEMORY;
    to->rows = s.rows;
    if (s.rows < 8) /* too few to add up */
        return AT_OK;
    to->applies = true;
    to->rms = sqrt(s.squares / (double)s.elements);
    to->gain = s.variance[0] > 0 ? fabs(s.along[0]) / sqrt(s.variance[0]) : 0;
    to->scale = s.variance[1] > 0 ? fabs(s.along[1]) / sqrt(s.variance[1]) : 0;
    /* d of variance 1/3, as uniform ones have; a third of zeta for each of the three */
    to->rms_limit = fmax(1, sqrt(chi_limit((double)s.rows, zeta / 3) / 3));
    to->limit = sqrt(2 * log(6 / zeta));
    to->fails = !(to->rms <= to->rms_limit && to->gain <= to->limit && to->scale <= to->limit);
    return AT_OK;
}

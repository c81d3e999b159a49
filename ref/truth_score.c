/* Truth's scores: which keys a row sees, and
 *     s = scale sum q k + bias - alibi |p-j|      exactly, or with softcap
 *     s = softcap tanh(x/softcap) + r             x, r exactly, s within 2^-prec.
 * Sorted by descending score, equal scores side by side. Equality is decided, not measured: without
 * softcap s is rational; with it, tanh of different rationals other than 0 never differ by a
 * rational (Lindemann-Weierstrass: multiply tanh a - tanh b = c out and compare the coefficients of
 * e^2a, e^2b, e^(2a+2b)), so scores are equal iff x and r are, once tanh(0) and tanh(inf) are in r.
 *
 * Infinities and NaN are MPFR's own, which are the extended reals of the semantics.
 * SPDX-License-Identifier: MIT */
#include "truth.h"
#include <math.h>
#include <stdlib.h>

/* -- Room ------------------------------------------------------------------------------------ */

static void init_numbers(struct row *r)
{
    mpfr_inits2(FIRST_PREC, r->l, r->rest, r->z, r->x, r->y, r->G, r->C, r->B, (mpfr_ptr)0);
    mpfr_init2(r->e, 64);      /* an error needs no more */
    mpfr_init2(r->keep, 1200); /* exact: p >= 2^-1074 */
    mpfr_set_d(r->keep, -r->a->dropout.p, MPFR_RNDN);
    mpfr_add_ui(r->keep, r->keep, 1, MPFR_RNDN);
    mpfr_prec_t least = mpfr_min_prec(r->keep);
    mpfr_prec_round(r->keep, least > 2 ? least : 2, MPFR_RNDN);
}

bool at_row_open(struct row *r, const struct at_attention *a)
{
    *r = (struct row){.a = a, .size = at_sizes(a)};
    size_t room = (size_t)r->size.Skv + 1; /* and the sink */
    init_numbers(r);
    r->key = calloc(room, sizeof *r->key);
    r->v = calloc(room, sizeof *r->v);
    r->q = calloc((size_t)r->size.D, sizeof *r->q);
    r->narrow = at_format(a->q.dtype).p + at_format(a->k.dtype).p <= at_format(AT_F64).p;
    return r->key && r->v && r->q;
}

void at_row_close(struct row *r)
{
    for (int64_t t = 0; t < r->ready; t++)
        mpfr_clears(r->key[t].s, r->key[t].x, r->key[t].r, r->key[t].p, r->key[t].w, (mpfr_ptr)0);
    mpfr_clears(r->l, r->rest, r->z, r->x, r->y, r->G, r->C, r->B, r->e, r->keep, (mpfr_ptr)0);
    free(r->key);
    free(r->v);
    free(r->q);
}

/* The next key of the row, its numbers made when first needed. */
static struct key *new_key(struct row *r, int64_t j)
{
    struct key *k = &r->key[r->n++];
    if (r->n > r->ready) {
        mpfr_inits2(FIRST_PREC, k->s, k->x, k->r, k->p, k->w, (mpfr_ptr)0);
        r->ready = r->n;
    }
    k->j = j;
    k->at = 0;
    k->descale = 1;
    k->kept = false;
    k->exact = true;
    return k;
}

/* -- One score, exactly ---------------------------------------------------------------------- */

/* A finite factor may leave the sum. An infinite one, or NaN, must meet each term; there a product
 * of doubles is exact, being a kind and no number. */
static double inner(double factor) { return isfinite(factor) ? 1 : factor; }

static double outer(double factor) { return isfinite(factor) ? factor : 1; }

static void load_query(struct row *r)
{
    const struct at_attention *a = r->a;
    const struct at_view *q = &a->q;
    int64_t at = at_row_offset(a, q, r->at.b, r->at.h, r->at.i);
    double f = at_descale(&a->score.qscale, r->at.b, r->at.h, r->at.i);
    for (int64_t c = 0; c < r->size.D; c++)
        r->q[c] = at_stored(q, at + c * q->stride[3]) * inner(f);
    r->qscale = outer(f);
}

/* x = scale sum q k, descaled, at the precision of x; 0 iff exactly. */
static int product(struct row *r, int64_t j, mpfr_ptr x)
{
    const struct at_view *k = &r->a->k;
    int64_t g = r->at.h / r->size.group, at = at_key_offset(r->a, k, r->at.b, g, j);
    double f = at_descale(&r->a->score.kscale, r->at.b, g, j), in = inner(f);
    int inexact = 0;
    mpfr_set_zero(x, 1);
    for (int64_t c = 0; c < r->size.D; c++) {
        double y = at_stored(k, at + c * k->stride[3]) * in;
        if (r->narrow)
            mpfr_set_d(r->G, r->q[c] * y,
                       MPFR_RNDN); /* exact: 48 bits, exponents far from the ends */
        else {
            mpfr_set_d(r->G, r->q[c], MPFR_RNDN);
            mpfr_mul_d(r->G, r->G, y, MPFR_RNDN); /* exact: 106 bits */
        }
        inexact |= mpfr_add(x, x, r->G, MPFR_RNDN);
    }
    inexact |= mpfr_mul_d(x, x, r->a->score.scale, MPFR_RNDN);
    if (r->qscale != 1)
        inexact |= mpfr_mul_d(x, x, r->qscale, MPFR_RNDN);
    if (outer(f) != 1)
        inexact |= mpfr_mul_d(x, x, outer(f), MPFR_RNDN);
    return inexact;
}

/* x = bias - alibi |p-j| at the precision of x; 0 iff exactly. */
static int addend(struct row *r, int64_t j, mpfr_ptr x)
{
    const struct at_view *bias = &r->a->score.bias, *alibi = &r->a->score.alibi;
    struct at_place at = r->at;
    mpfr_set_zero(x, 1);
    if (bias->data)
        mpfr_set_d(x, at_stored(bias, at_offset(bias, at.b, at.h, at.i, j)), MPFR_RNDN);
    if (!alibi->data)
        return 0;
    int64_t far = at_position(r->a, at.b, at.i) - j;
    mpfr_set_si(r->G, far < 0 ? -far : far, MPFR_RNDN); /* with the slope 63 + 53 bits: exact */
    mpfr_mul_d(r->G, r->G, at_stored(alibi, at_offset(alibi, 0, at.h, 0, 0)), MPFR_RNDN);
    return mpfr_sub(x, x, r->G, MPFR_RNDN);
}

/* s of a key; with softcap x and r. Ends, because sums of products have finitely many bits. */
static void exact_score(struct row *r, struct key *k)
{
    bool capped = r->a->score.softcap > 0;
    mpfr_ptr x = capped ? k->x : k->s;
    for (;; r->wide *= 2) {
        mpfr_set_prec(x, r->wide);
        mpfr_set_prec(k->r, r->wide);
        int inexact = product(r, k->j, x) | addend(r, k->j, k->r);
        if (!capped)
            inexact |= mpfr_add(x, x, k->r, MPFR_RNDN);
        if (inexact == 0)
            return;
    }
}

/* -- Softcap --------------------------------------------------------------------------------- */

/* tanh(0) and tanh(inf) are rational: there r takes all of the score, and x is 0. */
static void fold(struct row *r, struct key *k)
{
    double cap = r->a->score.softcap;
    k->exact = !mpfr_regular_p(k->x);
    if (!k->exact || mpfr_nan_p(k->x))
        return;
    if (mpfr_inf_p(k->x)) {
        mpfr_prec_round(k->r, WIDE, MPFR_RNDN);
        mpfr_add_d(k->r, k->r, mpfr_sgn(k->x) * cap, MPFR_RNDN);
    }
    mpfr_set_zero(k->x, 1);
}

static long exponent(mpfr_srcptr x) { return mpfr_regular_p(x) ? mpfr_get_exp(x) : 0; }

/* y = softcap tanh(x/softcap) has three roundings and the quotient's own error, which tanh does not
 * magnify: |a tanh'(a)| <= |tanh a|. So |error of s| <= (4|y| + |s|) 2^-P, and with |y|, |r| < 2^E
 * the precision P = prec + 4 + E makes it less than 2^-prec. */
static void cap_score(struct row *r, struct key *k)
{
    double cap = r->a->score.softcap;
    if (k->exact) {
        mpfr_set_prec(k->s, mpfr_get_prec(k->r));
        mpfr_add(k->s, k->x, k->r, MPFR_RNDN); /* x is 0 or NaN */
        return;
    }
    long E = at_max(0, at_max(exponent(k->r), at_min(exponent(k->x), ilogb(cap) + 1)));
    mpfr_set_prec(k->s, r->prec + 4 + E);
    mpfr_div_d(k->s, k->x, cap, MPFR_RNDN);
    mpfr_tanh(k->s, k->s, MPFR_RNDN);
    mpfr_mul_d(k->s, k->s, cap, MPFR_RNDN);
    mpfr_add(k->s, k->s, k->r, MPFR_RNDN);
}

void at_row_cap(struct row *r)
{
    for (int64_t t = 0; t < r->n; t++)
        cap_score(r, &r->key[t]);
}

/* -- The row --------------------------------------------------------------------------------- */

static void add_keys(struct row *r)
{
    const struct at_attention *a = r->a;
    int64_t b = r->at.b, h = r->at.h, i = r->at.i, g = h / r->size.group;
    struct at_span seen = at_keys(a, &r->size, b, i);
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(a, b, h, i, j))
            continue;
        struct key *k = new_key(r, j);
        k->at = at_key_offset(a, &a->v, b, g, j);
        k->kept = !at_drops(a) || at_kept(a, &r->size, b, h, i, j);
        if (k->kept) /* what belongs to a dropped value is not read */
            k->descale = at_descale(&a->score.vscale, b, g, j);
        exact_score(r, k);
        if (a->score.softcap > 0) {
            fold(r, k);
            cap_score(r, k);
        }
    }
}

/* A sink of -inf is absent. */
static void add_sink(struct row *r)
{
    const struct at_view *sink = &r->a->score.sink;
    if (!sink->data || r->at.i >= at_rows_of(r->a, &r->size, r->at.b))
        return;
    double s = at_stored(sink, at_offset(sink, 0, r->at.h, 0, 0));
    if (s == -INFINITY)
        return;
    struct key *k = new_key(r, -1);
    mpfr_set_prec(k->s, FIRST_PREC);
    mpfr_set_prec(k->r, FIRST_PREC);
    mpfr_set_d(k->s, s, MPFR_RNDN);
    mpfr_set_d(k->r, s, MPFR_RNDN);
    mpfr_set_zero(k->x, 1);
}

/* x and r tell scores apart that agree at prec; without softcap they are stale and not asked. */
static int compare(const struct key *x, const struct key *y, bool capped)
{
    int order = mpfr_cmp(y->s, x->s);
    if (order == 0 && capped)
        order = mpfr_cmp(y->x, x->x);
    if (order == 0 && capped)
        order = mpfr_cmp(y->r, x->r);
    return order;
}

static int by_score(const void *x, const void *y)
{
    const struct key *k = x, *m = y;
    int order = compare(k, m, false);
    return order != 0 ? order : (k->j > m->j) - (k->j < m->j);
}

static int by_capped_score(const void *x, const void *y)
{
    const struct key *k = x, *m = y;
    int order = compare(k, m, true);
    return order != 0 ? order : (k->j > m->j) - (k->j < m->j);
}

enum at_row_kind at_row_scores(struct row *r)
{
    bool capped = r->a->score.softcap > 0;
    r->n = r->dead = 0;
    r->wide = r->prec = FIRST_PREC;
    mpfr_set_prec(r->x, FIRST_PREC);
    mpfr_set_prec(r->G, FIRST_PREC);
    if (r->at.b < 0)
        return ROW_EMPTY;
    load_query(r);
    add_keys(r);
    add_sink(r);
    for (int64_t t = 0; t < r->n; t++)
        if (mpfr_nan_p(r->key[t].s))
            return ROW_NAN;
    qsort(r->key, (size_t)r->n, sizeof *r->key, capped ? by_capped_score : by_score);
    if (r->n > 0 && mpfr_inf_p(r->key[0].s)) /* +inf, or nothing but -inf */
        return ROW_NAN;
    for (; r->n > 0 && mpfr_inf_p(r->key[r->n - 1].s); r->n--)
        r->dead++;
    for (int64_t t = 0; t < r->n; t++)
        r->key[t].opens = t == 0 || compare(&r->key[t - 1], &r->key[t], capped) != 0;
    return r->n > 0 ? ROW_FINITE : ROW_EMPTY;
}

/* Truth: the meaning of attention (docs/semantics.md), decided by MPFR and rounded once.
 *
 *     p_j = e^(s_j-M),  l = sum p_j,  out_c = sum of kept p_j v_jc / ((1-p) l),  lse = M + log l
 *
 * Ziv's loop [Ziv91]: an answer t with a proved error e is settled when all numbers within e of it
 * round alike; else the precision doubles. A first estimate settles most answers. What it leaves is
 * measured from a centre B, a double near t or the border between two doubles (truth_distance.c),
 *
 *     t - B = sum over groups of equal score  p G / ((1-p) l),   G = sum of (kept v - (1-p) B).
 *
 * The tie rule is complete: powers of e to different rationals are linearly independent over the
 * rationals (Lindemann-Weierstrass), so t = B iff every G is 0 - otherwise the loop ends by itself.
 * Alike lse = B iff M = B and there is one key.
 * With softcap scores are irrational and no theorem promises an end: the precision stops at
 * CAPPED_PREC, and the answer says how many bits are certain.
 *
 * Shares no floating-point code with an engine. Not here: gradients, rounding to other formats
 * (at_interval). SPDX-License-Identifier: MIT */
#include "truth.h"
#include <math.h>

enum { CAPPED_PREC = 8192, ENOUGH = 106, EXACT = INT16_MAX };

/* -- Deciding -------------------------------------------------------------------------------- */

struct pair {
    double hi, lo;
    int16_t bits;
};

static void distance_d(struct row *r, int64_t c, double near)
{
    mpfr_set_prec(r->B, 64);
    mpfr_set_d(r->B, near, MPFR_RNDN);
    at_row_distance(r, c, r->B);
}

/* Is the sign of z the sign of the answer less the centre? */
static bool sided(const struct row *r) { return mpfr_cmpabs(r->z, r->e) > 0 || mpfr_zero_p(r->e); }

/* The double next to near + z, finite and not -0. */
static double rounded(struct row *r, double near)
{
    double most = at_format(AT_F64).max;
    mpfr_add_d(r->y, r->z, near, MPFR_RNDN);
    return fmax(-most, fmin(most, mpfr_get_d(r->y, MPFR_RNDN))) + 0;
}

/* B = the border that near shares with the next double on z's side; past the largest double the
 * format goes on to 2^1024. */
static double border(struct row *r, double near)
{
    int side = mpfr_sgn(r->z);
    double next = nextafter(near, side * (double)INFINITY);
    mpfr_set_prec(r->B, 64);
    mpfr_set_d(r->B, next, MPFR_RNDN);
    if (isinf(next))
        mpfr_set_si_2exp(r->B, side, 1024, MPFR_RNDN);
    mpfr_add_d(r->B, r->B, near, MPFR_RNDN);
    mpfr_div_2ui(r->B, r->B, 1, MPFR_RNDN);
    return next;
}

/* Bits of near + z that are certain: the most b with e < 2^-b |near + z|. */
static int16_t certain(const struct row *r, double near)
{
    if (mpfr_zero_p(r->e))
        return EXACT;
    if (near == 0 && mpfr_zero_p(r->z))
        return 0;
    long size = near == 0 ? mpfr_get_exp(r->z) : isinf(near) ? 1025 : ilogb(near) + 1;
    return (int16_t)at_max(0, at_min(EXACT, size - 2 - mpfr_get_exp(r->e)));
}

/* Does near + z, wherever it is within e, round to near and tell enough bits? */
static bool inside(struct row *r, double near)
{
    if (!sided(r) || certain(r, near) < ENOUGH)
        return false;
    if (mpfr_zero_p(r->z))
        return true;
    border(r, near);
    mpfr_sub_d(r->B, r->B, near, MPFR_RNDN); /* exact: half a unit in the last place */
    mpfr_abs(r->y, r->z, MPFR_RNDN);
    mpfr_add(r->y, r->y, r->e, MPFR_RNDU);
    return mpfr_cmpabs(r->y, r->B) < 0;
}

/* hi = near, lo = z away from 0. Where z looks like a double, it may be one: asked exactly. */
static struct pair finish(struct row *r, int64_t c, double near)
{
    struct pair to = {near, mpfr_get_d(r->z, MPFR_RNDA) + 0, certain(r, near)};
    if (isinf(near))
        to.lo = 0;
    double lo = mpfr_get_d(r->z, MPFR_RNDN);
    mpfr_sub_d(r->y, r->z, lo, MPFR_RNDN);
    if (lo == 0 || isinf(near) || mpfr_cmpabs(r->y, r->e) > 0)
        return to;
    mpfr_set_prec(r->B, WIDE);
    mpfr_set_d(r->B, near, MPFR_RNDN);
    mpfr_add_d(r->B, r->B, lo, MPFR_RNDN);
    mpfr_prec_round(r->B, mpfr_min_prec(r->B) + 1, MPFR_RNDN);
    at_row_distance(r, c, r->B);
    return mpfr_zero_p(r->z) && mpfr_zero_p(r->e) ? (struct pair){near, lo, EXACT} : to;
}

/* The answer lies beside *near, on z's side: this or that side of the border? Then *near is the
 * double on that side (a tie: the even one) and z the distance from it; false: not known. */
static bool beside(struct row *r, int64_t c, double *near)
{
    int side = mpfr_sgn(r->z);
    double next = border(r, *near);
    at_row_distance(r, c, r->B);
    bool sure = sided(r);
    if (mpfr_sgn(r->z) * side > 0)
        *near = next;
    if (mpfr_zero_p(r->z))
        *near = mpfr_get_d(r->B, MPFR_RNDN) + 0;
    if (isfinite(*near)) { /* the difference is exact, and B not needed again */
        mpfr_sub_d(r->B, r->B, *near, MPFR_RNDN);
        mpfr_add(r->z, r->B, r->z, MPFR_RNDN);
    }
    return sure && certain(r, *near) >= ENOUGH;
}

/* Column c (-1: the lse) at this precision; false: more is needed. z, e hold an estimate. */
static bool decide(struct row *r, int64_t c, struct pair *to)
{
    double near = sided(r) ? rounded(r, 0) : 0, again;
    mpfr_sub_d(r->z, r->z, near, MPFR_RNDN); /* exact: near is made of z's own bits */
    bool sure = inside(r, near);
    if (!sure) {
        distance_d(r, c, near);
        if (sided(r) && (again = rounded(r, near)) != near)
            distance_d(r, c, near = again);
        sure = inside(r, near);
    }
    if (!sure && sided(r))
        sure = beside(r, c, &near);
    if (!sure && !(r->a->score.softcap > 0 && r->prec >= CAPPED_PREC))
        return false;
    *to = finish(r, c, near);
    return true;
}

/* -- Rows ------------------------------------------------------------------------------------ */

/* Once a column has needed more precision, the rest of the row has it too. */
static struct pair answer(struct row *r, int64_t c)
{
    struct pair x;
    for (;;) {
        if (c < 0)
            distance_d(r, c, 0);
        else
            at_row_average(r);
        if (decide(r, c, &x))
            return x;
        mpfr_prec_t next = 2 * r->prec;
        at_row_start(r, r->a->score.softcap > 0 && next > CAPPED_PREC ? CAPPED_PREC : next);
    }
}

static void put(struct at_answer *x, int64_t t, int64_t c, struct pair y)
{
    if (c < 0) {
        x->lse[t] = y.hi, x->lse_lo[t] = y.lo, x->lse_bits[t] = y.bits;
        return;
    }
    t = t * x->Dv + c;
    x->out[t] = y.hi, x->out_lo[t] = y.lo, x->out_bits[t] = y.bits;
}

static void truth_row(struct row *r, int64_t t, struct at_answer *x)
{
    enum at_row_kind kind = at_row_scores(r);
    double sum, nothing = kind == ROW_NAN ? NAN : 0;
    if (kind == ROW_FINITE) {
        at_row_start(r, FIRST_PREC);
        put(x, t, -1, answer(r, -1));
    } else
        put(x, t, -1, (struct pair){kind == ROW_NAN ? NAN : -(double)INFINITY, 0, EXACT});
    for (int64_t c = 0; c < x->Dv; c++) {
        if (kind != ROW_FINITE)
            put(x, t, c, (struct pair){nothing, 0, EXACT});
        else if (!at_row_column(r, c, &sum))
            put(x, t, c, (struct pair){sum, 0, EXACT});
        else
            put(x, t, c, answer(r, c));
    }
}

enum at_status at_truth(const struct at_attention *a, struct at_rows rows, struct at_answer *x)
{
    enum at_status status = at_validate(a, NULL);
    if (status != AT_OK)
        return status;
    int64_t n = rows.at ? rows.n : a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
    if (x->n != n || x->Dv != a->v.dim[3])
        return AT_ERR_SHAPE;
    x->by_mpfr = n;
    bool good = true;
#pragma omp parallel num_threads(at_resolve(a).threads) reduction(&& : good)
    {
        struct row r;
        good = at_row_open(&r, a);
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < n; t++) { /* rows */
            r.at = at_place_of(a, rows, t);
            if (good)
                truth_row(&r, t, x);
        }
        at_row_close(&r);
        mpfr_free_cache();
    }
    return good ? AT_OK : AT_ERR_MEMORY;
}

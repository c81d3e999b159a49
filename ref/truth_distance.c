/* Truth's distances: how far an answer lies from a centre B, with a proved error. The first
 * estimate is the average itself, B = 0, with an error in proportion to max|v|; out_from and
 * lse_from measure the rest anew from any B, with an error in proportion to that rest:
 *
 *     out - B = sum over groups of equal score  p G / ((1-p) l),   G = sum of (kept v - (1-p) B)
 *     lse - B = (M - B) + log(1 + rest)
 *
 * G is exact, and keys whose G is 0 cost no accuracy: a weight of e^-500000 beside them shows at
 * 180 bits on which side of B the answer lies. SPDX-License-Identifier: MIT */
#include "truth.h"
#include <limits.h>
#include <math.h>

/* e^-FAR is smaller than any ratio that numbers made from doubles have, yet within MPFR's range. */
enum { FAR = 1 << 29 };

/* -- Weights --------------------------------------------------------------------------------- */

/* p (from == 0) or w = e^(s - s_from), a gap past FAR counted as FAR. Returns the widest gap. */
static double weigh(struct row *r, int64_t from)
{
    double widest = 0;
    for (int64_t t = from; t < r->n; t++) {
        struct key *k = &r->key[t];
        mpfr_ptr p = from == 0 ? k->p : k->w;
        mpfr_set_prec(p, r->prec);
        if (t > from && !k->opens) { /* of a group's w only the first is asked */
            mpfr_set(p, k[-1].p, MPFR_RNDN);
            continue;
        }
        mpfr_sub(p, k->s, r->key[from].s, MPFR_RNDN);
        if (mpfr_cmp_si(p, -FAR) < 0)
            mpfr_set_si(p, -FAR, MPFR_RNDN);
        widest = fmax(widest, fabs(mpfr_get_d(p, MPFR_RNDA)));
        mpfr_exp(p, p, MPFR_RNDN);
    }
    return widest;
}

/* A weight's relative error, in units of 2^-prec: gap (the argument's rounding) + 1 (exp) + 2 (two
 * scores that softcap made inexact). An average adds: G 1, product 1, sum n, and l's own
 * gap + 3 + n, two divisions 2: in all 2 (gap + n) + 10, here doubled for the higher orders and for
 * the gaps past FAR. */
static double units(double gap, int64_t n) { return 4 * (gap + (double)n + 6); }

void at_row_start(struct row *r, mpfr_prec_t prec)
{
    r->prec = prec;
    r->frame = 0;
    mpfr_set_prec(r->l, prec);
    mpfr_set_prec(r->rest, prec);
    mpfr_set_prec(r->z, prec);
    mpfr_set_prec(r->y, prec);
    if (r->a->score.softcap > 0)
        at_row_cap(r);
    r->units = units(weigh(r, 0), r->n);
    mpfr_set_zero(r->rest, 1);
    for (int64_t t = 1; t < r->n; t++)
        mpfr_add(r->rest, r->rest, r->key[t].p, MPFR_RNDN);
    mpfr_add_ui(r->l, r->rest, 1, MPFR_RNDN);
}

/* -- Values ---------------------------------------------------------------------------------- */

/* An infinite value whose score is -inf: 0*inf, NaN. */
bool at_row_column(struct row *r, int64_t c, double *sum)
{
    const struct at_view *v = &r->a->v;
    bool finite = true;
    *sum = 0;
    for (int64_t t = 0; t < r->n + r->dead; t++) {
        const struct key *k = &r->key[t];
        r->v[t] = 0;
        if (!k->kept)
            continue;
        r->v[t] = at_stored(v, k->at + c * v->stride[3]);
        if (isfinite(r->v[t]) && isfinite(k->descale))
            continue;
        *sum += t < r->n ? r->v[t] * k->descale : NAN; /* exact: a kind, no number */
        finite = false;
    }
    return finite;
}

/* x = the value of key t, exactly: 106 bits. */
static void value(struct row *r, int64_t t)
{
    mpfr_set_d(r->x, r->v[t], MPFR_RNDN);
    if (r->key[t].descale != 1)
        mpfr_mul_d(r->x, r->x, r->key[t].descale, MPFR_RNDN);
}

static void divide(struct row *r, mpfr_ptr x, mpfr_rnd_t rnd)
{
    mpfr_div(x, x, r->l, rnd);
    if (mpfr_cmp_ui(r->keep, 1) != 0)
        mpfr_div(x, x, r->keep, rnd);
}

/* -- Distances ------------------------------------------------------------------------------- */

/* e = units 2^-prec max|v| / (1-p). */
void at_row_average(struct row *r)
{
    long big = LONG_MIN;
    mpfr_set_zero(r->z, 1);
    mpfr_set_zero(r->e, 1);
    for (int64_t t = 0; t < r->n; t++) {
        value(r, t);
        if (mpfr_zero_p(r->x))
            continue;
        big = at_max(big, mpfr_get_exp(r->x));
        mpfr_mul(r->y, r->key[t].p, r->x, MPFR_RNDN);
        mpfr_add(r->z, r->z, r->y, MPFR_RNDN);
    }
    if (big == LONG_MIN)
        return;
    divide(r, r->z, MPFR_RNDN);
    mpfr_set_d(r->e, r->units, MPFR_RNDU);
    mpfr_div(r->e, r->e, r->keep, MPFR_RNDU);
    mpfr_mul_2si(r->e, r->e, big - r->prec, MPFR_RNDU);
}

/* G = sum of v - C over the group [t,end): one key rounded once, more exactly. */
static void group_sum(struct row *r, int64_t t, int64_t end)
{
    mpfr_set_prec(r->G, end - t == 1 ? r->prec : WIDE);
    value(r, t);
    mpfr_sub(r->G, r->x, r->C, MPFR_RNDN);
    while (++t < end) {
        value(r, t);
        mpfr_add(r->G, r->G, r->x, MPFR_RNDN);
        mpfr_sub(r->G, r->G, r->C, MPFR_RNDN);
    }
}

/* Do weights that `lead` heads have to be taken relative to it, because relative to M they may lie
 * past FAR? Then w holds them. What is past FAR of lead, or of M where lead is within FAR/2 of it,
 * is less than any G by a factor that no precision here sees. */
static bool reframe(struct row *r, int64_t lead)
{
    mpfr_sub(r->y, r->key[0].s, r->key[lead].s, MPFR_RNDN);
    if (mpfr_cmp_si(r->y, FAR / 2) <= 0)
        return false;
    if (r->frame != lead)
        weigh(r, lead);
    r->frame = lead;
    return true;
}

/* z, e from the frame's scale to M's: times e^(s_frame - M), or e^-FAR where that is less: so far
 * from B that only the side matters. */
static void unframe(struct row *r)
{
    mpfr_sub(r->y, r->key[r->frame].s, r->key[0].s, MPFR_RNDN);
    if (mpfr_cmp_si(r->y, -FAR) < 0)
        mpfr_set_si(r->y, -FAR, MPFR_RNDN);
    mpfr_exp(r->y, r->y, MPFR_RNDN);
    mpfr_mul(r->z, r->z, r->y, MPFR_RNDN);
    mpfr_mul(r->e, r->e, r->y, MPFR_RNDU);
}

/* z = out - B for the loaded column, e = units 2^-prec sum p|G| / ((1-p) l); z = e = 0 iff out = B
 * is proved. */
static void out_from(struct row *r, mpfr_srcptr B)
{
    bool framed = false;
    int64_t end, lead = -1;
    mpfr_set_prec(r->C, mpfr_get_prec(B) + mpfr_get_prec(r->keep));
    mpfr_mul(r->C, B, r->keep, MPFR_RNDN); /* exact */
    mpfr_set_zero(r->z, 1);
    mpfr_set_zero(r->e, 1);
    for (int64_t t = 0; t < r->n; t = end) { /* groups of equal score */
        for (end = t + 1; end < r->n && !r->key[end].opens; end++)
            ;
        group_sum(r, t, end);
        if (mpfr_zero_p(r->G))
            continue;
        if (lead < 0)
            framed = reframe(r, lead = t);
        mpfr_mul(r->y, framed ? r->key[t].w : r->key[t].p, r->G, MPFR_RNDN);
        mpfr_add(r->z, r->z, r->y, MPFR_RNDN);
        mpfr_abs(r->y, r->y, MPFR_RNDN);
        mpfr_add(r->e, r->e, r->y, MPFR_RNDU);
    }
    if (framed)
        unframe(r);
    divide(r, r->z, MPFR_RNDN);
    divide(r, r->e, MPFR_RNDU);
    mpfr_mul_d(r->e, r->e, framed ? units(2.0 * FAR, r->n) : r->units, MPFR_RNDU);
    mpfr_div_2si(r->e, r->e, r->prec, MPFR_RNDU);
}

/* z = lse - B = (M - B) + log(1 + rest), e = 2^-prec (units log(1 + rest) + 4|z|), and M's own
 * error. A rest that is all past FAR is only known to be positive and less than e^-FAR n: enough,
 * since M - B, made from doubles, is 0 or far larger. */
static void lse_from(struct row *r, mpfr_srcptr B)
{
    mpfr_log1p(r->y, r->rest, MPFR_RNDN);
    mpfr_mul_d(r->e, r->y, r->units, MPFR_RNDU);
    mpfr_sub(r->z, r->key[0].s, B, MPFR_RNDN);
    mpfr_add(r->z, r->z, r->y, MPFR_RNDN);
    mpfr_mul_2ui(r->y, r->z, 2, MPFR_RNDN);
    mpfr_abs(r->y, r->y, MPFR_RNDN);
    mpfr_add(r->e, r->e, r->y, MPFR_RNDU);
    if (!r->key[0].exact)
        mpfr_add_ui(r->e, r->e, 1, MPFR_RNDU);
    mpfr_div_2si(r->e, r->e, r->prec, MPFR_RNDU);
}

void at_row_distance(struct row *r, int64_t c, mpfr_srcptr B)
{
    if (c < 0)
        lse_from(r, B);
    else
        out_from(r, B);
}

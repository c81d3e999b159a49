/* Truth: the meaning of attention (docs/semantics.md), decided by MPFR and rounded once.
 *
 *     p_j = e^(s_j-M),  l = sum p_j,  out_c = sum of kept p_j v_jc / ((1-p) l),  lse = M + log l
 *
 * Ziv's loop [Ziv91]: an answer t with a proved error e is settled when all numbers within e of it
 * round alike; else the precision doubles. A first estimate settles most answers. What it leaves is
 * measured from a centre B, a double near t or the border between two doubles:
 *
 *     t - B = sum over groups of equal score  p G / ((1-p) l),   G = sum of (kept v - (1-p) B).
 *
 * G is exact. So keys that say B cost no accuracy, and a weight of e^-500000 beside them decides at
 * 180 bits which side of B the answer lies on. The tie rule is complete: powers of e to different
 * rationals are linearly independent over the rationals (Lindemann-Weierstrass), so t = B iff every
 * G is 0 - otherwise the loop ends by itself. Alike lse = B iff M = B and there is one key.
 * With softcap scores are irrational and no theorem promises an end: the precision stops at
 * CAPPED_PREC, and the answer says how many bits are certain.
 *
 * Shares no floating-point code with an engine. Not here: gradients, rounding to other formats
 * (at_interval). SPDX-License-Identifier: MIT */
#include "truth.h"
#include <math.h>

/* e^-FAR is smaller than any ratio that numbers made from doubles have, yet within MPFR's range. */
enum { CAPPED_PREC = 8192, ENOUGH = 106, EXACT = INT16_MAX, FAR = 1 << 29 };

/* -- Weights --------------------------------------------------------------------------------- */

/* p (from == 0) or w = e^(s - s_from), a gap past FAR counted as FAR. Returns the widest gap. */
static double weigh(struct row *r, int64_t from)
{
    double widest = 0;
    for (int64_t t = from; t < r->n; t++) {
        struct key *k = &r->key[t];
        mpfr_ptr p = from == 0 ? k->p : k->w;
        mpfr_set_prec(p, r->prec);
        if (t > from && !k->opens) {
            mpfr_set(p, from == 0 ? k[-1].p : k[-1].w, MPFR_RNDN);
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
static double units(double gap, int64_t n)
{
    return 4 * (gap + (double)n + 6);
}

static void start(struct row *r, mpfr_prec_t prec)
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

/* Reads column c. True iff all of it is finite; else *sum is the NaN or infinity that it makes. An
 * infinite value whose score is -inf: 0*inf, NaN. */
static bool load_column(struct row *r, int64_t c, double *sum)
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

/* z = out, e = units 2^-prec max|v| / (1-p): the first estimate. */
static void average(struct row *r)
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

/* z = lse - B = (M - B) + log(1 + rest), e = 2^-prec (units log(1 + rest) + 4|z|), and M's own error.
 * A rest that is all past FAR is only known to be positive and less than e^-FAR n: enough, since
 * M - B, made from doubles, is 0 or far larger. */
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

/* Column -1 is the lse. */
static void distance(struct row *r, int64_t c, mpfr_srcptr B)
{
    if (c < 0)
        lse_from(r, B);
    else
        out_from(r, B);
}

static void distance_d(struct row *r, int64_t c, double near)
{
    mpfr_set_prec(r->B, 64);
    mpfr_set_d(r->B, near, MPFR_RNDN);
    distance(r, c, r->B);
}

/* -- Deciding -------------------------------------------------------------------------------- */

struct pair {
    double hi, lo;
    int16_t bits;
};

/* Is the sign of z the sign of the answer less the centre? */
static bool sided(const struct row *r)
{
    return mpfr_cmpabs(r->z, r->e) > 0 || mpfr_zero_p(r->e);
}

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
    distance(r, c, r->B);
    return mpfr_zero_p(r->z) && mpfr_zero_p(r->e) ? (struct pair){near, lo, EXACT} : to;
}

/* The answer lies beside *near, on z's side: this or that side of the border? Then *near is the
 * double on that side (a tie: the even one) and z the distance from it; false: not known. */
static bool beside(struct row *r, int64_t c, double *near)
{
    int side = mpfr_sgn(r->z);
    double next = border(r, *near);
    distance(r, c, r->B);
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
            average(r);
        if (decide(r, c, &x))
            return x;
        mpfr_prec_t next = 2 * r->prec;
        start(r, r->a->score.softcap > 0 && next > CAPPED_PREC ? CAPPED_PREC : next);
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
        start(r, FIRST_PREC);
        put(x, t, -1, answer(r, -1));
    } else
        put(x, t, -1, (struct pair){kind == ROW_NAN ? NAN : -(double)INFINITY, 0, EXACT});
    for (int64_t c = 0; c < x->Dv; c++) {
        if (kind != ROW_FINITE)
            put(x, t, c, (struct pair){nothing, 0, EXACT});
        else if (!load_column(r, c, &sum))
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

/* got, truth, bound -> verdict.
 *
 * A kernel whose value before its last division is within B of the truth o may write a number of
 *     [lo, hi],  lo = RN_F(RN_T(o - B)),  hi = RN_F(RN_T(o + B)),
 * T the compute type whose division (for the lse: addition) ends the row, F the output's format,
 * and nothing else: rounding is monotone. The interval decides. The ratio is the least t >= 0 with
 * RN_F(RN_T(o - tB)) <= got <= RN_F(RN_T(o + tB)): 0 for the correctly rounded number. At a tie
 * that least t need not exist, so it is kept on the interval's side of 1. Most numbers are rounded
 * in doubles, with a check that no tie is near; MPFR decides the others. Not here: what an element
 * means (judge, diagnosis). SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"
#include <math.h>

/* -- Rounding a double ------------------------------------------------------------------------ */

/* Exponent of the unit in the last place of numbers like x. */
static int unit(double x, struct at_format f)
{
    int e = x == 0 ? (int)f.emin : ilogb(x);
    return (e > f.emin ? e : (int)f.emin) - f.p + 1;
}

double at_nearest(double x, struct at_format f)
{
    if (f.p == 53 || x == 0 || !isfinite(x))
        return x;
    int e = unit(x, f);
    double y = ldexp(rint(ldexp(x, -e)), e); /* exact but for rint */
    return fabs(y) > f.max ? copysign(INFINITY, x) : y;
}

/* The next number below x > -inf; below +inf counts as below the first number past the largest. */
static double below(double x, struct at_format f)
{
    int exponent;
    if (f.p == 53)
        return nextafter(x, -INFINITY);
    double step = ldexp(1, unit(x, f));
    bool power = x > 0 && frexp(x, &exponent) == 0.5 && ilogb(x) > f.emin;
    return x - (power ? step / 2 : step); /* numbers lie closer below a power of two */
}

/* -- Rounding o + b --------------------------------------------------------------------------- */

/* The truth hi + lo and the two formats it is written through. */
struct number {
    double hi, lo;
    struct at_format T, F;
};

static double written_exactly(const struct number *o, double b)
{
    mpfr_t x;
    mpfr_init2(x, 2300); /* any sum of three doubles is exact */
    mpfr_set_d(x, o->hi, MPFR_RNDN);
    mpfr_add_d(x, x, o->lo, MPFR_RNDN);
    mpfr_add_d(x, x, b, MPFR_RNDN);
    at_round(x, o->T);
    at_round(x, o->F);
    double y = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return y;
}

/* RN_F(RN_T(o + b)). sum + tail is o + b up to 2^-50 of |tail|; if the numbers just below and just
 * above round alike, so does all between them. */
static double written(const struct number *o, double b)
{
    if (isinf(b))
        return b;
    double sum = o->hi + b, part = sum - o->hi;
    double error = (o->hi - (sum - part)) + (b - part),
           tail = error + o->lo; /* sum + error exact */
    if (!isfinite(sum))
        return written_exactly(o, b);
    if (error == 0 && o->lo == 0)
        return at_nearest(at_nearest(sum, o->T), o->F);
    double near = fabs(tail) + (fabs(error) + fabs(o->lo)) * 0x1p-50 + 0x1p-1074;
    bool wide = o->T.p == 53;
    double low = wide ? sum + (tail - near * 0x1p-40) : nextafter(sum - near, -INFINITY);
    double high = wide ? sum + (tail + near * 0x1p-40) : nextafter(sum + near, INFINITY);
    double x = at_nearest(at_nearest(low, o->T), o->F),
           y = at_nearest(at_nearest(high, o->T), o->F);
    return x == y ? x : written_exactly(o, b);
}

/* -- The interval ----------------------------------------------------------------------------- */

static struct number number_of(const struct at_arith *arith, enum at_dtype dtype,
                               const struct at_answer *x, int64_t row, int64_t column,
                               double *bound)
{
    struct number o = {0, 0, at_computed_in(arith), at_format(dtype)};
    int64_t at = row * x->Dv + column;
    if (column < 0) {
        o.hi = x->lse[row], o.lo = x->lse_lo[row];
        *bound = x->lse_bound[row];
    } else if (x->out_kind[at] == AT_OPEN_INF) {
        o.hi = x->without[at];
        *bound = x->out_bound[at];
    } else {
        o.hi = x->out[at], o.lo = x->out_lo[at];
        *bound = x->out_bound[at];
    }
    return o;
}

void at_interval(const struct at_arith *arith, enum at_dtype dtype, const struct at_answer *x,
                 int64_t row, int64_t column, double *lo, double *hi)
{
    double B;
    struct number o = number_of(arith, dtype, x, row, column, &B);
    if (isfinite(o.hi)) {
        *lo = written(&o, -B);
        *hi = written(&o, B);
    } else { /* an infinity by itself; NaN: an empty interval */
        *lo = *hi = o.hi;
        if (isinf(B))
            *lo = -INFINITY, *hi = INFINITY;
    }
}

/* -- The ratio -------------------------------------------------------------------------------- */

/* got - o at the border below which a value is not written as got or more, for got above the truth:
 * z, the least number of T with RN_F(z) >= got, less half the gap below it. */
static double border(const struct number *o, double got)
{
    struct at_format T = o->T, F = o->F;
    double past = ldexp(1, unit(F.max, F)), z = got; /* the first number past the largest */
    if (isinf(got))
        got = z = F.max + past;
    if (F.p < T.p) { /* the middle of two numbers of F is a number of T */
        double low = below(got, F);
        z = low + (got - low) / 2;
        double rounded = at_nearest(z, F);
        if (rounded < got) /* the tie goes down; z lies just above */
            z = -below(-z, T);
    } else if (F.p > T.p) { /* not every number of F is one of T */
        z = at_nearest(got, T);
        if (z < got)
            z = -below(-z, T);
    }
    return (z - o->hi) - (z - below(z, T)) / 2 - o->lo;
}

static double ratio(const struct number *o, double got, double B, double lo, double hi)
{
    double center = written(o, 0);
    struct number up = *o;
    bool inside = got >= lo && got <= hi;
    if (got == center)
        return 0;
    if (!(B > 0))
        return INFINITY;
    if (got < center)
        up.hi = -up.hi, up.lo = -up.lo, got = -got;
    double t = border(&up, got) / B;
    if (!(t == t))
        t = 1;
    return inside ? fmin(fmax(t, 0), 1) : fmax(t, nextafter(1, 2));
}

/* -- One element ------------------------------------------------------------------------------ */

struct element {
    enum at_kind kind;
    bool is_lse;
    double got, truth, lo, hi, bound;
    struct number o; /* what the interval is about */
};

/* e4m3 has no infinity: past the largest number it stores NaN. */
static double as_overflow(const struct element *x, enum at_dtype dtype)
{
    if (dtype != AT_F8_E4M3 || !isnan(x->got) || isnan(x->o.hi))
        return x->got;
    return x->hi == INFINITY ? INFINITY : x->lo == -INFINITY ? -INFINITY : x->got;
}

/* Against one truth: by kind where that is no number. */
static double held(const struct element *x, double truth, double got)
{
    if (isnan(truth) || isnan(got))
        return isnan(truth) && isnan(got) ? 0 : INFINITY;
    if (isinf(truth))
        return got == truth ? 0 : INFINITY;
    return ratio(&x->o, got, x->bound, x->lo, x->hi);
}

static double judged(const struct element *x, enum at_dtype dtype)
{
    double got = as_overflow(x, dtype);
    switch (x->kind) {
    case AT_OPEN: return isnan(got) ? 0 : held(x, x->truth, got);
    case AT_OPEN_INF:
        if (isnan(got) || got == x->truth)
            return 0;
        if (x->is_lse) /* dead_zero: (0, -inf) */
            return got == -INFINITY ? 0 : INFINITY;
        return held(x, x->o.hi, got);
    case AT_OVERFLOW:
    case AT_LOOSE: return NAN;
    default: return held(x, x->truth, got);
    }
}

static void enter(struct at_verdict *v, const struct element *x, double t, int64_t row, int64_t c)
{
    double error = fabs(x->got - x->truth);
    v->open += x->kind == AT_OPEN || x->kind == AT_OPEN_INF;
    if (fabs(x->truth) > v->max_value && isfinite(x->truth))
        v->max_value = fabs(x->truth);
    if (error > v->max_error && isfinite(error))
        v->max_error = error;
    if (isnan(t)) {
        v->unclaimed++;
        return;
    }
    v->judged++;
    v->failed += !(t <= 1);
    if (v->worst >= 0 && !(t > v->ratio))
        return;
    v->ratio = t, v->worst = row, v->worst_c = c;
    v->got = x->got, v->truth = x->truth, v->lo = x->lo, v->hi = x->hi, v->allowed = x->bound;
}

/* -- All of them ------------------------------------------------------------------------------ */

struct job {
    const struct at_attention *a;
    const struct at_arith *arith;
    const struct at_answer *x;
    struct at_verdict *verdict;
};

/* Row t, column c of the answer, stored at `at` of the view. */
static double element(const struct job *j, const struct at_view *view, int64_t at, int64_t t,
                      int64_t c)
{
    const struct at_answer *x = j->x;
    int64_t k = t * x->Dv + c;
    struct element e = {.is_lse = c < 0, .got = at_stored(view, at)};
    e.kind = (enum at_kind)(c < 0 ? x->lse_kind[t] : x->out_kind[k]);
    e.truth = c < 0 ? x->lse[t] : x->out[k];
    e.o = number_of(j->arith, view->dtype, x, t, c, &e.bound);
    at_interval(j->arith, view->dtype, x, t, c, &e.lo, &e.hi);
    double r = judged(&e, view->dtype);
    enter(j->verdict, &e, r, t, c);
    return r;
}

/* Truth lies within e = 2^-bits |hi| of hi + lo, and its own bound within 2^-30 of B or of B - 2e,
 * which at_bound adds. So its interval holds the one of B - 3e and lies in that of B + e. */
static bool settled(const struct job *j, const struct at_view *view, int64_t at, int64_t t,
                    int64_t c)
{
    const struct at_answer *x = j->x;
    int64_t k = t * x->Dv + c;
    int bits = c < 0 ? x->lse_bits[t] : x->out_bits[k];
    struct element e = {.got = at_stored(view, at)};
    e.kind = (enum at_kind)(c < 0 ? x->lse_kind[t] : x->out_kind[k]);
    e.o = number_of(j->arith, view->dtype, x, t, c, &e.bound);
    if (bits >= 106 || e.kind == AT_OVERFLOW || e.kind == AT_LOOSE || !isfinite(e.o.hi))
        return true;
    double off = ldexp(fabs(e.o.hi), -bits), wide = e.bound * (1 + 0x1p-30) + off;
    double narrow = e.bound * (1 - 0x1p-30) - 3 * off;
    e.lo = written(&e.o, -wide), e.hi = written(&e.o, wide);
    double got = as_overflow(&e, view->dtype);
    bool inside = got >= written(&e.o, -narrow) && got <= written(&e.o, narrow);
    return inside || !(got >= e.lo && got <= e.hi);
}

void at_unsettled(const struct at_attention *a, const struct at_result *got, struct at_rows rows,
                  const struct at_arith *arith, const struct at_answer *x, unsigned char *open)
{
    const struct at_view *out = &got->out, *lse = &got->lse;
    struct job j = {a, arith, x, NULL};
    for (int64_t t = 0; t < rows.n; t++) {
        struct at_place p = at_place_of(a, rows, t);
        int64_t at = at_row_offset(a, out, p.b, p.h, p.i);
        bool sure = !lse->data || settled(&j, lse, at_row_offset(a, lse, p.b, p.h, p.i), t, -1);
        for (int64_t c = 0; c < x->Dv && sure; c++)
            sure = settled(&j, out, at + c * out->stride[3], t, c);
        open[t] |= !sure;
    }
}

static enum at_status check(const struct at_attention *a, const struct at_view *x, int64_t columns)
{
    if (x->dim[0] != a->q.dim[0] || x->dim[1] != a->q.dim[1] || x->dim[2] != a->q.dim[2] ||
        x->dim[3] != columns)
        return AT_ERR_SHAPE;
    return at_is_float(x->dtype) ? AT_OK : AT_ERR_DTYPE;
}

enum at_status at_compare(const struct at_attention *a, const struct at_result *got,
                          struct at_rows rows, const struct at_arith *arith,
                          const struct at_answer *x, double *ratios, struct at_verdict *verdict)
{
    const struct at_view *out = &got->out, *lse = &got->lse;
    int64_t n = rows.n, Dv = x->Dv;
    enum at_status status = !out->data && n > 0 ? AT_ERR_MISSING : AT_OK;
    if (status == AT_OK && (x->n < n || Dv != a->v.dim[3]))
        status = AT_ERR_SHAPE;
    if (status == AT_OK && out->data)
        status = check(a, out, Dv);
    if (status == AT_OK && lse->data)
        status = check(a, lse, 1);
    if (status != AT_OK)
        return status;
    struct job j = {a, arith, x, verdict};
    *verdict = (struct at_verdict){.worst = -1};
    for (int64_t t = 0; t < n; t++) {
        struct at_place p = at_place_of(a, rows, t);
        int64_t at = at_row_offset(a, out, p.b, p.h, p.i);
        for (int64_t c = 0; c < Dv; c++) {
            double r = element(&j, out, at + c * out->stride[3], t, c);
            if (ratios)
                ratios[t * Dv + c] = r;
        }
        double r = lse->data ? element(&j, lse, at_row_offset(a, lse, p.b, p.h, p.i), t, -1) : -1;
        if (ratios)
            ratios[n * Dv + t] = r;
    }
    return AT_OK;
}

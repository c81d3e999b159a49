/* Suite math: exp, log, tanh of at_math.h against MPFR, in units of 2 eps of the result (2 eps =
 * one ulp of 1): exp <= 1, log <= 1, tanh <= 3, as at_math.h states and the bound uses. Results
 * below the smallest normal number are held to half a subnormal more. LONG=1: exp over every fp32
 * argument. SPDX-License-Identifier: MIT */
#include "at_math.h"
#include "paint.h"
#include "ref.h"
#include <float.h>
#include <stdio.h>

enum { TIMES = 20000 };
static const uint32_t minus_104 = 0xc2d00000;

/* One function in one type, behind doubles; every fp32 is a double. */
struct subject {
    const char *name;
    double (*f)(double);
    int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
    double eps;
    long half; /* half the smallest subnormal is 2^half */
    double normal;
    double lo, hi; /* the domain */
    double ulps;   /* as stated */
};

static double exp32(double x) { return (double)at_exp32((float)x); }
static double log32(double x) { return (double)at_log32((float)x); }
static double tanh32(double x) { return (double)at_tanh32((float)x); }

#define SINGLE 0x1p-24, -150, 0x1p-126
#define DOUBLE 0x1p-53, -1075, 0x1p-1022
enum { EXP_F32, EXP_F64, LOG_F32, LOG_F64, TANH_F32, TANH_F64, SUBJECTS };
static const struct subject subjects[SUBJECTS] = {
    {"exp fp32", exp32, mpfr_exp, SINGLE, -104, 40, 1},
    {"exp fp64", at_exp64, mpfr_exp, DOUBLE, -746, 40, 1},
    {"log fp32", log32, mpfr_log, SINGLE, 0x1p-126, 0x1.fffffep127, 1},
    {"log fp64", at_log64, mpfr_log, DOUBLE, 0x1p-1022, 0x1.fffffffffffffp1023, 1},
    {"tanh fp32", tanh32, mpfr_tanh, SINGLE, -30, 30, 3},
    {"tanh fp64", at_tanh64, mpfr_tanh, DOUBLE, -50, 50, 3}};

struct worst {
    double ulps, at;
};

static mpfr_t x0, y, t; /* main makes them */

/* |f(x) - exact| in units of 2 eps |exact|; half a subnormal is forgiven below the normal
 * numbers. */
static double error_of(const struct subject *s, double x)
{
    mpfr_set_d(x0, x, MPFR_RNDN);
    s->exact(y, x0, MPFR_RNDN);
    mpfr_sub_d(t, y, s->f(x), MPFR_RNDN);
    mpfr_abs(t, t, MPFR_RNDN);
    if (mpfr_cmp_d(y, s->normal) < 0 && mpfr_cmp_d(y, -s->normal) > 0) {
        mpfr_set_ui_2exp(x0, 1, s->half, MPFR_RNDN);
        mpfr_sub(t, t, x0, MPFR_RNDN);
    }
    if (mpfr_sgn(t) <= 0)
        return 0;
    mpfr_div(t, t, y, MPFR_RNDN);
    return fabs(mpfr_get_d(t, MPFR_RNDU)) / (2 * s->eps);
}

static void hold(const struct subject *s, double x, struct worst *w)
{
    double e = error_of(s, x);
    if (!(e <= w->ulps))
        *w = (struct worst){e, x};
}

static void close_subject(const struct subject *s, struct worst w)
{
    printf("%s: worst error %.4f of %g, at %a\n", s->name, w.ulps, s->ulps, w.at);
    fflush(stdout);
    ck_assert_msg(w.ulps <= s->ulps, "%s(%a) errs by %g of 2 eps, SEED=%llu build/tests/check_math",
                  s->name, w.at, w.ulps, (unsigned long long)paint_seed());
}

/* -- Errors ------------------------------------------------------------------------------------ */

/* Linear over the domain, and with a uniform exponent. */
static double draw(const struct subject *s, struct paint *r)
{
    double x = paint_unit(r);
    if (s->exact == mpfr_log) /* mostly near 1, where it cancels; and over all exponents */
        x = paint_one_in(r, 2)
                ? 1 + x * ldexp(1, (int)paint_int(r, -50, -1))
                : ldexp(1.5 + x / 2, (int)paint_int(r, s->eps > 0x1p-30 ? -126 : -1022,
                                                    s->eps > 0x1p-30 ? 126 : 1022));
    else if (paint_one_in(r, 3))
        x = ldexp(x, (int)paint_int(r, -60, 4));
    else
        x = x < 0 ? -x * s->lo : x * s->hi;
    return s->eps > 0x1p-30 ? (double)(float)x : x;
}

START_TEST(errors_stay_within_what_the_header_states)
{
    const struct subject *s = &subjects[_i];
    struct paint r = paint_from(paint_seed(), 10 + (uint64_t)_i);
    struct worst w = {0, 0};
    for (int k = 0; k < TIMES; k++) {
        double x = draw(s, &r);
        if (x >= s->lo && x <= s->hi)
            hold(s, x, &w);
    }
    close_subject(s, w);
}
END_TEST

/* Each multiple of ln2/2, where the reduction changes, and its neighbours; each power of two. */
START_TEST(errors_stay_within_it_where_the_reduction_changes)
{
    const struct subject *s = &subjects[_i];
    struct worst w = {0, 0};
    for (int n = -2160; n <= 2160; n++)
        for (int step = -3; step <= 3; step++) {
            double x = s->exact == mpfr_log ? ldexp(n % 2 ? 0.70710678118654752 : 1, n / 2)
                                            : n * 0.34657359027997264;
            x = s->eps > 0x1p-30 ? (double)((float)x * (1 + (float)step * 0x1p-23f))
                                 : x * (1 + step * 0x1p-52);
            if (x >= s->lo && x <= s->hi)
                hold(s, x, &w);
        }
    close_subject(s, w);
}
END_TEST

START_TEST(small_exponentials_underflow_gradually)
{
    struct worst w = {0, 0};
    struct paint r = paint_from(paint_seed(), 20);
    for (int k = 0; k < TIMES; k++) {
        hold(&subjects[EXP_F32], (double)(float)(-95.5 + 8.5 * paint_unit(&r)), &w);
        hold(&subjects[EXP_F64], -727 + 19 * paint_unit(&r), &w);
    }
    ck_assert(w.ulps <= 1);
    ck_assert(at_exp32(-103) == 0x1p-149f && at_exp32(-104) == 0 && at_exp64(-745) == 0x1p-1074);
    ck_assert(at_exp64(-746) == 0);
}
END_TEST

/* -- Fixed points, specials, monotone ---------------------------------------------------------- */

START_TEST(the_exponential_of_zero_is_one)
{
    ck_assert(at_exp32(0) == 1 && at_exp32(-0.0f) == 1 && at_exp64(0) == 1 && at_exp64(-0.0) == 1);
    ck_assert(at_log32(1) == 0 && at_log64(1) == 0 && at_tanh32(0) == 0 && at_tanh64(0) == 0);
}
END_TEST

START_TEST(nan_and_infinity_pass_as_the_meaning_says)
{
    const float f = INFINITY;
    const double d = (double)INFINITY;
    ck_assert(isnan(at_exp32(NAN)) && isnan(at_exp64((double)NAN)) && isnan(at_log32(NAN)));
    ck_assert(isnan(at_log64((double)NAN)) && isnan(at_tanh32(NAN)) &&
              isnan(at_tanh64((double)NAN)));
    ck_assert(at_exp32(-f) == 0 && at_exp64(-d) == 0 && at_exp32(-FLT_MAX) == 0);
    ck_assert(at_exp64(-DBL_MAX) == 0 && at_log32(f) == f && at_log64(d) == d);
    ck_assert(at_tanh32(f) == 1 && at_tanh32(-f) == -1 && at_tanh64(d) == 1 && at_tanh64(-d) == -1);
}
END_TEST

/* Not claimed by the header, and so not needed by the bound; a weight above 1 would be seen. */
START_TEST(no_weight_exceeds_one)
{
    for (uint32_t k = 0; k < 4000000; k++) {
        float x = -at_float(k * 268); /* 0 .. -104 */
        if (x >= -104)
            ck_assert_msg(at_exp32(x) <= 1, "exp(%a)", (double)x);
    }
    struct paint r = paint_from(paint_seed(), 21);
    for (int k = 0; k < TIMES; k++) {
        double x = -fabs(ldexp(paint_unit(&r), (int)paint_int(&r, -70, 9)));
        ck_assert_msg(at_exp64(x) <= 1, "exp(%a)", x);
    }
}
END_TEST

START_TEST(tanh_is_odd_and_never_exceeds_one)
{
    struct paint r = paint_from(paint_seed(), 22);
    for (int k = 0; k < TIMES; k++) {
        double x = ldexp(paint_unit(&r), (int)paint_int(&r, -70, 9));
        ck_assert(at_tanh64(-x) == -at_tanh64(x) && fabs(at_tanh64(x)) <= 1);
        float z = (float)x;
        ck_assert(at_tanh32(-z) == -at_tanh32(z) && fabsf(at_tanh32(z)) <= 1);
    }
}
END_TEST

/* -- The gain of dropout, distances ------------------------------------------------------------ */

START_TEST(the_gain_of_dropout_is_rounded_once)
{
    struct paint r = paint_from(paint_seed(), 23);
    for (int k = 0; k < TIMES; k++) {
        double p = fabs(paint_unit(&r));
        p = paint_one_in(&r, 3) ? ldexp(p, (int)paint_int(&r, -60, -1)) : p;
        p = paint_one_in(&r, 5) ? 1 - ldexp(p, (int)paint_int(&r, -50, -1)) : p;
        if (!(p < 1))
            continue;
        mpfr_set_d(y, p, MPFR_RNDN);
        mpfr_ui_sub(y, 1, y, MPFR_RNDN);
        mpfr_ui_div(y, 1, y, MPFR_RNDN);
        ck_assert_msg(at_gain(p) == mpfr_get_d(y, MPFR_RNDN), "gain(%a) = %a", p, at_gain(p));
    }
    ck_assert(at_gain(0) == 1 && at_gain(0.5) == 2 && at_gain(0.75) == 4);
}
END_TEST

START_TEST(a_distance_is_rounded_once_and_has_no_sign)
{
    ck_assert(at_distance(3, 7) == 4 && at_distance(7, 3) == 4 && at_distance(-2, 3) == 5);
    ck_assert(at_distance(0, 16777217) == 16777216 && at_distance(16777219, 0) == 16777220);
    ck_assert(at_distance((int64_t)1 << 47, -((int64_t)1 << 47)) == 0x1p48f);
}
END_TEST

/* -- Every argument (make check-long) ---------------------------------------------------------- */

/* The double of libm is off by at most 2^-52 relative: MPFR is asked only where that could
 * matter. */
START_TEST(exp_errs_by_at_most_one_for_every_fp32_argument)
{
    struct worst w = {0, 0};
    if (!paint_number("LONG", 0)) {
        printf("exp over every fp32 argument: LONG=1 build/tests/check_math\n");
        return;
    }
    for (uint32_t sign = 0; sign <= 1; sign++)
        for (uint32_t k = 0; k <= (sign ? minus_104 & 0x7fffffff : 0x42200000u /* 40 */); k++) {
            double x = (double)at_float(sign << 31 | k), e = exp(x);
            double off = fabs((double)at_exp32((float)x) - e) - 0x1p-51 * e;
            if (off > w.ulps * 0x1p-23 * e || e < 0x1p-125)
                hold(&subjects[EXP_F32], x, &w);
        }
    printf("every fp32 argument in [-104, 40]: ");
    close_subject(&subjects[EXP_F32], w);
}
END_TEST

int main(void)
{
    mpfr_inits2(192, x0, y, t, (mpfr_ptr)0);
    Suite *s = suite_create("math");
    TCase *c = tcase_create("math");
    tcase_set_timeout(c, 3000);
    tcase_add_loop_test(c, errors_stay_within_what_the_header_states, 0, SUBJECTS);
    tcase_add_loop_test(c, errors_stay_within_it_where_the_reduction_changes, 0, SUBJECTS);
    tcase_add_test(c, small_exponentials_underflow_gradually);
    tcase_add_test(c, the_exponential_of_zero_is_one);
    tcase_add_test(c, nan_and_infinity_pass_as_the_meaning_says);
    tcase_add_test(c, no_weight_exceeds_one);
    tcase_add_test(c, tanh_is_odd_and_never_exceeds_one);
    tcase_add_test(c, the_gain_of_dropout_is_rounded_once);
    tcase_add_test(c, a_distance_is_rounded_once_and_has_no_sign);
    tcase_add_test(c, exp_errs_by_at_most_one_for_every_fp32_argument);
    suite_add_tcase(s, c);
    return paint_run(s);
}

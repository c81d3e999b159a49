/* The judge's last step, on answers made by hand: intervals, ratios, kinds.
 * SEED=n paints other numbers. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "ref.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const enum at_dtype formats[] = {AT_F64, AT_F32, AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2};
enum { FORMATS = 6, MANY = 1000 };
static uint64_t seed;

static uint64_t bits(void) /* SplitMix64 [Steele14] */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void plant(void)
{
    const char *text = getenv("SEED");
    seed = text ? strtoull(text, NULL, 10) : 1;
}

static double unit(void) /* [-1,1) */ { return (double)(int64_t)bits() * 0x1p-63; }

/* -- One element ------------------------------------------------------------------------------- */

/* An answer of one row and one column, the stored element, and what they are judged under. */
struct one {
    struct at_answer x;
    struct at_attention a;
    struct at_arith arith;
    enum at_dtype dtype;
    uint64_t stored; /* the element's bits */
    float zero;
};

static void one_make(struct one *w, enum at_dtype compute, enum at_dtype dtype)
{
    *w = (struct one){.arith = {.compute = compute}, .dtype = dtype};
    ck_assert_int_eq(at_answer_make(&w->x, 1, 1), AT_OK);
    struct at_view q = at_bhsd(&w->zero, AT_F32, 1, 1, 1, 1);
    w->a = at_plain(q, q, q, 1);
}

static void one_set(struct one *w, double hi, double lo, double B, enum at_kind kind)
{
    w->x.out[0] = hi, w->x.out_lo[0] = lo, w->x.out_bound[0] = B;
    w->x.out_kind[0] = (unsigned char)kind;
}

static struct at_verdict judge(struct one *w, double got, double *ratio)
{
    struct at_verdict v;
    double ratios[2];
    struct at_result r = {.out = at_bhsd(&w->stored, w->dtype, 1, 1, 1, 1)};
    at_store(&r.out, 0, got); /* exact: got is a number of the format */
    ck_assert_int_eq(at_compare(&w->a, &r, (struct at_rows){1, NULL}, &w->arith, &w->x, ratios, &v),
                     AT_OK);
    if (ratio)
        *ratio = ratios[0];
    return v;
}

static bool passes(struct one *w, double got) { return judge(w, got, NULL).failed == 0; }

/* RN_F(RN_T(hi + lo + b)), the definition in MPFR. */
static double defined(const struct one *w, double hi, double lo, double b)
{
    mpfr_t x;
    mpfr_init2(x, 2300);
    mpfr_set_d(x, hi, MPFR_RNDN);
    mpfr_add_d(x, x, lo, MPFR_RNDN);
    mpfr_add_d(x, x, b, MPFR_RNDN);
    at_round(x, at_format(w->arith.compute));
    at_round(x, at_format(w->dtype));
    double y = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return y;
}

/* The neighbour of x in the format, upwards; NAN past the largest. */
static double next(double x, enum at_dtype dtype)
{
    mpfr_t y;
    mpfr_init2(y, 100);
    mpfr_set_d(y, x, MPFR_RNDN);
    at_next(y, at_format(dtype));
    double z = mpfr_get_d(y, MPFR_RNDN);
    mpfr_clear(y);
    return isfinite(z) ? z : NAN;
}

/* Truths of every size the format has, often on a tie or beside one, of F or of T; allowances from
 * far below to far above an ulp, often whole halves of one, sometimes all but the truth itself. */
static void paint(struct one *w)
{
    struct at_format F = at_format(w->dtype), T = at_format(w->arith.compute);
    int range = F.p == 53 ? 40 : ilogb(F.max) - 3;
    double x = unit() * ldexp(1, (int)(bits() % (unsigned)range) - (int)(bits() % 12));
    double ulp = ldexp(1, ilogb(x) - F.p + 1), lo = 0, B = bits() % 8 ? fabs(unit()) : 0;
    if (bits() % 2 == 0)
        x = at_nearest(x, F) + (bits() % 2 ? ulp / 2 : 0);
    if (bits() % 4 == 0 && x != 0)
        x += ldexp(1, ilogb(x) - T.p);
    if (bits() % 2 == 0)
        lo = unit() * fabs(x) * 0x1p-54 * (bits() % 2 ? 1 : 0x1p-200);
    B *= ulp * ldexp(1, (int)(bits() % 24) - 12);
    if (bits() % 4 == 0)
        B = ulp / 2 * (double)(bits() % 4);
    if (bits() % 8 == 0)
        B = fabs(x) + (bits() % 2 ? 0 : unit() * 0x1p-60 * ulp);
    one_set(w, x, lo, B, AT_CLAIMED);
}

#define REPRO "seed %llu: %s through %s, truth %a + %a, allowed %a, got %a, ratio %a"
#define SHOWN(w, got, ratio)                                                                       \
    (unsigned long long)at, at_dtype_name((w).dtype), at_dtype_name((w).arith.compute),            \
        (w).x.out[0], (w).x.out_lo[0], (w).x.out_bound[0], got, ratio

/* -- Intervals --------------------------------------------------------------------------------- */

START_TEST(the_edge_of_the_interval_passes_and_one_step_beyond_fails)
{
    enum at_dtype compute = _i % 2 ? AT_F64 : AT_F32;
    struct one w;
    one_make(&w, compute, formats[_i / 2]);
    for (int k = 0; k < MANY; k++) {
        uint64_t at = seed;
        double lo, hi, r, B;
        paint(&w);
        B = w.x.out_bound[0];
        at_interval(&w.arith, w.dtype, &w.x, 0, 0, &lo, &hi);
        ck_assert_msg(lo == defined(&w, w.x.out[0], w.x.out_lo[0], -B), REPRO, SHOWN(w, lo, 0.0));
        ck_assert_msg(hi == defined(&w, w.x.out[0], w.x.out_lo[0], B), REPRO, SHOWN(w, hi, 0.0));
        struct at_verdict v = judge(&w, lo, &r);
        ck_assert_msg(v.failed == 0 && v.judged == 1 && r <= 1, REPRO, SHOWN(w, lo, r));
        v = judge(&w, hi, &r);
        ck_assert_msg(v.failed == 0 && v.judged == 1 && r <= 1, REPRO, SHOWN(w, hi, r));
        double above = next(hi, w.dtype), under = -next(-lo, w.dtype);
        for (int side = 0; side < 2; side++) {
            double got = side ? above : under;
            if (isnan(got))
                continue;
            v = judge(&w, got, &r);
            ck_assert_msg(v.failed == 1 && r > 1 && (B > 0 || r == INFINITY), REPRO,
                          SHOWN(w, got, r));
        }
    }
    at_answer_free(&w.x);
}
END_TEST

START_TEST(the_correctly_rounded_truth_is_inside_with_ratio_0)
{
    struct one w;
    one_make(&w, AT_F32, formats[_i]);
    w.arith.compute = w.dtype == AT_F64 ? AT_F64 : AT_F32;
    for (int k = 0; k < MANY; k++) {
        uint64_t at = seed;
        double r, y;
        paint(&w);
        y = defined(&w, w.x.out[0], w.x.out_lo[0], 0);
        struct at_verdict v = judge(&w, y, &r);
        ck_assert_msg(v.failed == 0 && r == 0, REPRO, SHOWN(w, y, r));
    }
    at_answer_free(&w.x);
}
END_TEST

/* Catalogue 88: with half an ulp of 30 above any absolute tolerance, and no allowance at all. */
START_TEST(an_allowance_of_nothing_still_holds_the_rounded_truth_at_every_size)
{
    static const enum at_dtype narrow[] = {AT_F32, AT_F16, AT_BF16};
    static const double size[] = {30, 0.03, 3e-5};
    for (int f = 0; f < 3; f++)
        for (int s = 0; s < 3; s++) {
            struct one w;
            one_make(&w, AT_F32, narrow[f]);
            for (int k = 0; k < MANY; k++) {
                double lo, hi, o = size[s] * (1 + unit() / 8);
                one_set(&w, o, 0, 0, AT_CLAIMED);
                at_interval(&w.arith, w.dtype, &w.x, 0, 0, &lo, &hi);
                ck_assert(lo == hi && lo == defined(&w, o, 0, 0) && passes(&w, lo));
            }
            at_answer_free(&w.x);
        }
}
END_TEST

START_TEST(a_truth_that_may_round_past_the_largest_number_is_judged_by_its_interval)
{
    struct one w;
    one_make(&w, AT_F32, AT_F16);
    one_set(&w, 65500, 0, 10, AT_CLAIMED); /* 65510 < 65520: never infinite */
    ck_assert(!passes(&w, INFINITY) && passes(&w, 65504));
    one_set(&w, 65500, 0, 30, AT_CLAIMED);
    ck_assert(passes(&w, INFINITY) && passes(&w, 65504) && !passes(&w, -INFINITY) &&
              !passes(&w, NAN));
    one_set(&w, -70000, 0, 1, AT_CLAIMED);
    ck_assert(passes(&w, -INFINITY) && !passes(&w, -65504));
    at_answer_free(&w.x);
    const double most = 0x1.fffffffffffffp1023;
    one_make(&w, AT_F64, AT_F64); /* a sum past any double: truth's rest decides the tie */
    one_set(&w, most, -0x1p900, 0x1p970, AT_CLAIMED);
    ck_assert(passes(&w, most) && !passes(&w, INFINITY));
    one_set(&w, most, 0x1p900, 0x1p970, AT_CLAIMED);
    ck_assert(passes(&w, most) && passes(&w, INFINITY) && !passes(&w, -INFINITY));
    double r;
    judge(&w, INFINITY, &r);
    ck_assert(r == 1); /* at the edge, as far as is known */
    at_answer_free(&w.x);
    one_make(&w, AT_F32, AT_F8_E4M3); /* no infinity: it stores NaN past 464 */
    one_set(&w, 460, 0, 3, AT_CLAIMED);
    ck_assert(passes(&w, 448) && !passes(&w, NAN));
    one_set(&w, 460, 0, 5, AT_CLAIMED);
    ck_assert(passes(&w, 448) && passes(&w, NAN));
    one_set(&w, -470, 0, 1, AT_CLAIMED);
    ck_assert(passes(&w, NAN) && !passes(&w, -448));
    at_answer_free(&w.x);
}
END_TEST

/* -- The ratio --------------------------------------------------------------------------------- */

/* Its definition: tB is enough, and less is not. */
START_TEST(the_ratio_is_the_least_share_of_the_allowance_that_admits_got)
{
    struct one w;
    one_make(&w, _i % 2 ? AT_F64 : AT_F32, formats[_i / 2]);
    for (int k = 0; k < MANY; k++) {
        uint64_t at = seed;
        double r, lo, hi, got;
        paint(&w);
        struct at_answer x = w.x;
        double B = x.out_bound[0], o = x.out[0];
        at_interval(&w.arith, w.dtype, &x, 0, 0, &lo, &hi);
        got = bits() % 2 ? hi : lo;
        for (uint64_t steps = bits() % 4; steps > 0 && !isnan(next(got, w.dtype)); steps--)
            got = next(got, w.dtype);
        if (w.dtype == AT_F8_E4M3 && isinf(got)) /* its NaN has no sign */
            continue;
        judge(&w, got, &r);
        if (!(r > 0 && r < INFINITY) || r == 1 ||
            r == nextafter(1, 2)) /* 0; or held to its side of 1 */
            continue;
        one_set(&w, o, x.out_lo[0], r * B + 0x1p-30 * (r * B), AT_CLAIMED);
        ck_assert_msg(passes(&w, got), REPRO, SHOWN(w, got, r));
        double less = r * B - 0x1p-30 * (r * B);
        one_set(&w, o, x.out_lo[0], less > 0 ? less : 0, AT_CLAIMED);
        ck_assert_msg(less <= 0 || !passes(&w, got), REPRO, SHOWN(w, got, r));
    }
    at_answer_free(&w.x);
}
END_TEST

START_TEST(the_ratio_grows_with_distance_and_knows_no_sign)
{
    struct one w;
    one_make(&w, AT_F32, formats[_i]);
    for (int k = 0; k < 100; k++) {
        uint64_t at = seed;
        double last = 0, r, mirrored, got;
        paint(&w);
        double hi = w.x.out[0], lo = w.x.out_lo[0], B = w.x.out_bound[0];
        got = defined(&w, hi, lo, 0);
        for (int step = 0; step < 8 && !isnan(got); step++, got = next(got, w.dtype)) {
            one_set(&w, hi, lo, B, AT_CLAIMED);
            judge(&w, got, &r);
            one_set(&w, -hi, -lo, B, AT_CLAIMED);
            judge(&w, -got, &mirrored);
            ck_assert_msg(r >= last && r == mirrored, REPRO, SHOWN(w, got, r));
            last = r;
        }
    }
    at_answer_free(&w.x);
}
END_TEST

/* -- Kinds: catalogue 85, 86 ------------------------------------------------------------------- */

START_TEST(no_pair_of_nan_and_infinity_slips_through)
{
    static const struct {
        double truth, got;
        enum at_kind kind;
        int failed, unclaimed;
    } pairs[] = {{NAN, 1, AT_CLAIMED, 1, 0},
                 {1, NAN, AT_CLAIMED, 1, 0},
                 {NAN, NAN, AT_CLAIMED, 0, 0},
                 {INFINITY, INFINITY, AT_CLAIMED, 0, 0},
                 {INFINITY, -INFINITY, AT_CLAIMED, 1, 0},
                 {INFINITY, 0x1.fffffep+127, AT_CLAIMED, 1, 0},
                 {1, INFINITY, AT_CLAIMED, 1, 0},
                 {0, -0.0, AT_CLAIMED, 0, 0},
                 {INFINITY, NAN, AT_CLAIMED, 1, 0},
                 {1, 1.0625, AT_CLAIMED, 0, 0},
                 {1, 1.125, AT_CLAIMED, 1, 0},
                 {1, NAN, AT_OPEN, 0, 0},
                 {1, INFINITY, AT_OPEN, 1, 0},
                 {1, 1.125, AT_OPEN, 1, 0},
                 {INFINITY, NAN, AT_OPEN_INF, 0, 0},
                 {INFINITY, INFINITY, AT_OPEN_INF, 0, 0},
                 {INFINITY, -INFINITY, AT_OPEN_INF, 1, 0},
                 {INFINITY, 2.0625, AT_OPEN_INF, 0, 0},
                 {INFINITY, 2.125, AT_OPEN_INF, 1, 0},
                 {1, NAN, AT_OVERFLOW, 0, 1},
                 {1, 7, AT_LOOSE, 0, 1}};
    struct one w;
    one_make(&w, AT_F32, AT_F32);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        bool none = pairs[k].unclaimed;
        one_set(&w, pairs[k].truth, 0, none ? INFINITY : 0.0625, pairs[k].kind);
        w.x.without[0] = 2;
        double r;
        struct at_verdict v = judge(&w, pairs[k].got, &r);
        ck_assert_msg(v.failed == pairs[k].failed && v.unclaimed == pairs[k].unclaimed, "pair %zu",
                      k);
        ck_assert_int_eq(v.judged, !none);
        ck_assert_int_eq(v.open, pairs[k].kind == AT_OPEN || pairs[k].kind == AT_OPEN_INF);
        ck_assert(none ? isnan(r) : (r <= 1) == !pairs[k].failed);
        ck_assert(!pairs[k].failed || !isnan(pairs[k].got) || r == INFINITY);
    }
    at_answer_free(&w.x);
}
END_TEST

/* dead_zero: every visible score is -inf. */
START_TEST(an_open_lse_is_nan_or_minus_infinity_and_no_number)
{
    static const double got[] = {NAN, -INFINITY, INFINITY, 0, -0x1p100};
    for (int k = 0; k < 5; k++) {
        struct one w;
        struct at_verdict v;
        double stored = got[k];
        one_make(&w, AT_F32, AT_F32);
        one_set(&w, NAN, 0, 0, AT_OPEN_INF);
        w.x.lse[0] = NAN, w.x.lse_kind[0] = AT_OPEN_INF;
        struct at_result r = {at_bhsd(&w.zero, AT_F32, 1, 1, 1, 1),
                              at_bhsd(&stored, AT_F64, 1, 1, 1, 1)};
        ck_assert_int_eq(at_compare(&w.a, &r, (struct at_rows){1, NULL}, &w.arith, &w.x, NULL, &v),
                         AT_OK);
        ck_assert_msg(v.failed == (k > 1) && v.judged == 2, "%a: %d failed", stored, (int)v.failed);
        at_answer_free(&w.x);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *t = tcase_create("compare");
    plant();
    printf("SEED=%llu build/tests/check_compare\n", (unsigned long long)seed);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_edge_of_the_interval_passes_and_one_step_beyond_fails, 0,
                        2 * FORMATS);
    tcase_add_loop_test(t, the_correctly_rounded_truth_is_inside_with_ratio_0, 0, FORMATS);
    tcase_add_test(t, an_allowance_of_nothing_still_holds_the_rounded_truth_at_every_size);
    tcase_add_test(t, a_truth_that_may_round_past_the_largest_number_is_judged_by_its_interval);
    tcase_add_loop_test(t, the_ratio_is_the_least_share_of_the_allowance_that_admits_got, 0,
                        2 * FORMATS);
    tcase_add_loop_test(t, the_ratio_grows_with_distance_and_knows_no_sign, 0, FORMATS);
    tcase_add_test(t, no_pair_of_nan_and_infinity_slips_through);
    tcase_add_test(t, an_open_lse_is_nan_or_minus_infinity_and_no_number);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

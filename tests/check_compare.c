/* The judge's last step, on answers made by hand: intervals, ratios, kinds, places.
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

static double unit(void) /* [-1,1) */
{
    return (double)(int64_t)bits() * 0x1p-63;
}

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
    ck_assert_int_eq(at_compare(&w->a, &r, (struct at_rows){1, NULL}, &w->arith, &w->x, ratios, &v), AT_OK);
    if (ratio)
        *ratio = ratios[0];
    return v;
}

static bool passes(struct one *w, double got)
{
    return judge(w, got, NULL).failed == 0;
}

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
#define SHOWN(w, got, ratio) \
    (unsigned long long)at, at_dtype_name((w).dtype), at_dtype_name((w).arith.compute), (w).x.out[0], \
        (w).x.out_lo[0], (w).x.out_bound[0], got, ratio

/* -- Intervals ----------------------------------------------------------------------------------- */

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
            ck_assert_msg(v.failed == 1 && r > 1 && (B > 0 || r == INFINITY), REPRO, SHOWN(w, got, r));
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
    ck_assert(passes(&w, INFINITY) && passes(&w, 65504) && !passes(&w, -INFINITY) && !passes(&w, NAN));
    one_set(&w, -70000, 0, 1, AT_CLAIMED);
    ck_assert(passes(&w, -INFINITY) && !passes(&w, -65504));
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

/* -- The ratio -------------------------------------------------------------------------------------- */

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
        if (!(r > 0 && r < INFINITY) || r == 1 || r == nextafter(1, 2)) /* 0; or held to its side of 1 */
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

/* -- Kinds: catalogue 85, 86 ------------------------------------------------------------------------ */

START_TEST(no_pair_of_nan_and_infinity_slips_through)
{
    static const struct {
        double truth, got;
        enum at_kind kind;
        int failed, unclaimed;
    } pairs[] = {{NAN, 1, AT_CLAIMED, 1, 0},        {1, NAN, AT_CLAIMED, 1, 0},
                 {NAN, NAN, AT_CLAIMED, 0, 0},      {INFINITY, INFINITY, AT_CLAIMED, 0, 0},
                 {INFINITY, -INFINITY, AT_CLAIMED, 1, 0}, {INFINITY, 0x1.fffffep+127, AT_CLAIMED, 1, 0},
                 {1, INFINITY, AT_CLAIMED, 1, 0},   {0, -0.0, AT_CLAIMED, 0, 0},
                 {INFINITY, NAN, AT_CLAIMED, 1, 0}, {1, 1.0625, AT_CLAIMED, 0, 0},
                 {1, 1.125, AT_CLAIMED, 1, 0},      {1, NAN, AT_OPEN, 0, 0},
                 {1, INFINITY, AT_OPEN, 1, 0},      {1, 1.125, AT_OPEN, 1, 0},
                 {INFINITY, NAN, AT_OPEN_INF, 0, 0}, {INFINITY, INFINITY, AT_OPEN_INF, 0, 0},
                 {INFINITY, -INFINITY, AT_OPEN_INF, 1, 0}, {INFINITY, 2.0625, AT_OPEN_INF, 0, 0},
                 {INFINITY, 2.125, AT_OPEN_INF, 1, 0}, {1, NAN, AT_OVERFLOW, 0, 1},
                 {1, 7, AT_LOOSE, 0, 1}};
    struct one w;
    one_make(&w, AT_F32, AT_F32);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        bool none = pairs[k].unclaimed;
        one_set(&w, pairs[k].truth, 0, none ? INFINITY : 0.0625, pairs[k].kind);
        w.x.without[0] = 2;
        double r;
        struct at_verdict v = judge(&w, pairs[k].got, &r);
        ck_assert_msg(v.failed == pairs[k].failed && v.unclaimed == pairs[k].unclaimed, "pair %zu", k);
        ck_assert_int_eq(v.judged, !none);
        ck_assert_int_eq(v.open, pairs[k].kind == AT_OPEN || pairs[k].kind == AT_OPEN_INF);
        ck_assert(none ? isnan(r) : (r <= 1) == !pairs[k].failed);
        ck_assert(!pairs[k].failed || !isnan(pairs[k].got) || r == INFINITY);
    }
    at_answer_free(&w.x);
}
END_TEST

/* -- Many elements ------------------------------------------------------------------------------------ */

enum { H = 2, T = 7, C = 3 };

/* A packed batch: rows 0 and 6 belong to nobody; out is stored (T,H,C), in bf16. */
static const int64_t start[] = {1, 4}, length[] = {3, 2};

struct batch {
    struct at_attention a;
    struct at_answer x;
    struct at_arith arith;
    uint16_t out[T * H * C * 2]; /* every other one */
    float q[T * H], lse[T * H];
    struct at_result got;
};

static void batch_make(struct batch *w)
{
    *w = (struct batch){.arith = {.compute = AT_F32}};
    struct at_view q = at_thd(w->q, AT_F32, T, H, 1), v = at_thd(w->q, AT_F32, 2, H, C);
    w->a = at_plain(q, at_thd(w->q, AT_F32, 2, H, 1), v, 1);
    w->a.score.q_start = start, w->a.score.q_len = length, w->a.score.sequences = 2;
    ck_assert_int_eq(at_answer_make(&w->x, H * T, C), AT_OK);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < T; i++) { /* row h*T + i in the order of q */
            int row = h * T + i;
            w->lse[i * H + h] = (float)row;
            w->x.lse[row] = row;
            for (int c = 0; c < C; c++) {
                w->out[((i * H + h) * C + c) * 2] = (uint16_t)(0x3f80 + row * C + c);
                w->x.out[row * C + c] = 1 + (row * C + c) * 0x1p-7;
            }
        }
    w->got = (struct at_result){at_thd(w->out, AT_BF16, T, H, 2 * C), at_thd(w->lse, AT_F32, T, H, 1)};
    w->got.out.dim[3] = C, w->got.out.stride[3] = 2;
}

START_TEST(every_element_is_held_against_the_row_that_it_belongs_to)
{
    struct batch w;
    struct at_verdict v;
    double ratios[H * T * (C + 1)];
    struct at_rows all = {H * T, NULL};
    batch_make(&w);
    ck_assert_int_eq(at_compare(&w.a, &w.got, all, &w.arith, &w.x, ratios, &v), AT_OK);
    ck_assert(v.failed == 0 && v.judged == H * T * (C + 1) && v.ratio == 0 && v.max_error == 0);
    ck_assert(v.max_value == H * T - 1);
    w.out[((4 * H + 1) * C + 2) * 2] ^= 1; /* head 1, packed row 4 */
    ck_assert_int_eq(at_compare(&w.a, &w.got, all, &w.arith, &w.x, ratios, &v), AT_OK);
    ck_assert(v.failed == 1 && v.worst == T + 4 && v.worst_c == 2 && v.max_error == 0x1p-7);
    ck_assert(ratios[(T + 4) * C + 2] > 1 && ratios[(T + 4) * C + 1] == 0);
    w.lse[6 * H] = NAN; /* head 0, a row of nobody */
    ck_assert_int_eq(at_compare(&w.a, &w.got, all, &w.arith, &w.x, ratios, &v), AT_OK);
    ck_assert(v.failed == 2 && ratios[H * T * C + 6] == INFINITY);
    struct at_place place = {1, 1, 0}; /* packed row 4: the answer's first row */
    w.x.out[0] = w.x.out[(T + 4) * C], w.x.out[1] = w.x.out[(T + 4) * C + 1];
    w.x.out[2] = w.x.out[(T + 4) * C + 2], w.x.lse[0] = T + 4;
    ck_assert_int_eq(at_compare(&w.a, &w.got, (struct at_rows){1, &place}, &w.arith, &w.x, NULL, &v), AT_OK);
    ck_assert(v.failed == 1 && v.judged == C + 1 && v.worst == 0 && v.worst_c == 2);
    at_answer_free(&w.x);
}
END_TEST

START_TEST(all_nan_fails_and_nothing_is_no_pass_of_anything)
{
    struct batch w;
    struct at_verdict v;
    struct at_rows all = {H * T, NULL}, none = {0, NULL};
    batch_make(&w);
    memset(w.out, 0xff, sizeof w.out);
    ck_assert_int_eq(at_compare(&w.a, &w.got, all, &w.arith, &w.x, NULL, &v), AT_OK);
    ck_assert(v.failed == H * T * C && v.ratio == INFINITY);
    ck_assert_int_eq(at_compare(&w.a, &w.got, none, &w.arith, &w.x, NULL, &v), AT_OK);
    ck_assert(v.judged == 0 && v.failed == 0 && v.worst == -1);
    struct at_result bad = w.got;
    bad.out.data = NULL;
    ck_assert_int_eq(at_compare(&w.a, &bad, all, &w.arith, &w.x, NULL, &v), AT_ERR_MISSING);
    bad = w.got, bad.out.dim[2]--;
    ck_assert_int_eq(at_compare(&w.a, &bad, all, &w.arith, &w.x, NULL, &v), AT_ERR_SHAPE);
    bad = w.got, bad.lse.dim[3] = 2;
    ck_assert_int_eq(at_compare(&w.a, &bad, all, &w.arith, &w.x, NULL, &v), AT_ERR_SHAPE);
    bad = w.got, bad.out.dtype = AT_I32;
    ck_assert_int_eq(at_compare(&w.a, &bad, all, &w.arith, &w.x, NULL, &v), AT_ERR_DTYPE);
    at_answer_free(&w.x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compare");
    TCase *t = tcase_create("compare");
    plant();
    printf("SEED=%llu build/tests/check_compare\n", (unsigned long long)seed);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_edge_of_the_interval_passes_and_one_step_beyond_fails, 0, 2 * FORMATS);
    tcase_add_loop_test(t, the_correctly_rounded_truth_is_inside_with_ratio_0, 0, FORMATS);
    tcase_add_test(t, an_allowance_of_nothing_still_holds_the_rounded_truth_at_every_size);
    tcase_add_test(t, a_truth_that_may_round_past_the_largest_number_is_judged_by_its_interval);
    tcase_add_loop_test(t, the_ratio_is_the_least_share_of_the_allowance_that_admits_got, 0, 2 * FORMATS);
    tcase_add_loop_test(t, the_ratio_grows_with_distance_and_knows_no_sign, 0, FORMATS);
    tcase_add_test(t, no_pair_of_nan_and_infinity_slips_through);
    tcase_add_test(t, every_element_is_held_against_the_row_that_it_belongs_to);
    tcase_add_test(t, all_nan_fails_and_nothing_is_no_pass_of_anything);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

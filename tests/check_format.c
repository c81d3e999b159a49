/* Suite format: stored numbers. at_decode and at_encode (at_math.h, engines) against at_stored and
 * at_round (ref/format.c, truth) over every pattern of the narrow formats, against _Float16 where
 * the compiler has it, and against MPFR at the midpoints. SPDX-License-Identifier: MIT */
#include "paint.h"
#include "ref.h"
#define AT_BITS 64
#include "at_math.h"
#include <float.h>

enum { NARROW = 4, TIMES = 40000 };
static const enum at_dtype narrow[NARROW] = {AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2};

static uint32_t patterns(enum at_dtype d) { return at_dtype_size(d) == 2 ? 65536 : 256; }

/* Pattern k of the dtype as a view of one element. */
static struct at_view one(enum at_dtype d, uint32_t k, void *memory)
{
    uint16_t half = (uint16_t)k;
    unsigned char byte = (unsigned char)k;
    memcpy(memory, at_dtype_size(d) == 2 ? (void *)&half : (void *)&byte, (size_t)at_dtype_size(d));
    return at_bhsd(memory, d, 1, 1, 1, 1);
}

static void equal(double x, double y, const char *what, enum at_dtype d, double of)
{
    ck_assert_msg(at_bits64(x) == at_bits64(y) || (isnan(x) && isnan(y)),
                  "%s of %s(%a): %a and %a, SEED=%llu build/tests/check_format", what,
                  at_dtype_name(d), of, x, y, (unsigned long long)paint_seed());
}

/* x rounded to d by MPFR. */
static double rounded(double x, enum at_dtype d)
{
    mpfr_t y;
    mpfr_init2(y, 53);
    mpfr_set_d(y, x, MPFR_RNDN);
    at_round(y, at_format(d));
    double r = mpfr_get_d(y, MPFR_RNDN);
    mpfr_clear(y);
    return r;
}

/* What an engine stores for x, and reads back. */
static double stored(double x, enum at_dtype d)
{
    unsigned char memory[8];
    struct at_view v = at_bhsd(memory, d, 1, 1, 1, 1);
    at_store(&v, 0, x);
    return at_stored(&v, 0);
}

/* Past the largest number e4m3 has only NaN. */
static double expected(double x, enum at_dtype d)
{
    double y = rounded(x, d);
    return d == AT_F8_E4M3 && isinf(y) ? (double)NAN : y;
}

/* -- Every pattern ----------------------------------------------------------------------------- */

START_TEST(engines_and_truth_read_the_same_numbers)
{
    enum at_dtype d = narrow[_i];
    unsigned char memory[8];
    for (uint32_t k = 0; k < patterns(d); k++) {
        struct at_view x = one(d, k, memory);
        double y = at_stored(&x, 0);
        equal(at_load(&x, 0), y, "load", d, y);
        equal(at_decode(k, at_narrow_of(d)), y, "decode", d, y);
    }
}
END_TEST

START_TEST(every_number_encodes_to_its_own_pattern)
{
    enum at_dtype d = narrow[_i];
    struct at_narrow f = at_narrow_of(d);
    for (uint32_t k = 0; k < patterns(d); k++) {
        double x = at_decode(k, f);
        ck_assert_msg(at_encode(x, f) == (isnan(x) ? f.nan : k), "%s pattern %x is %a",
                      at_dtype_name(d), k, x);
    }
}
END_TEST

START_TEST(fp16_is_the_compilers)
{
#ifdef __FLT16_MAX__
    for (uint32_t k = 0; k < 65536; k++) {
        uint16_t bits = (uint16_t)k;
        _Float16 x;
        memcpy(&x, &bits, 2);
        equal(at_decode(k, at_narrow_of(AT_F16)), (double)x, "fp16", AT_F16, (double)x);
    }
    struct paint r = paint_from(paint_seed(), 1);
    for (int k = 0; k < TIMES; k++) {
        double x = ldexp(paint_unit(&r), (int)paint_int(&r, -28, 18));
        _Float16 y = (_Float16)x;
        equal(stored(x, AT_F16), (double)y, "fp16", AT_F16, x);
    }
#endif
}
END_TEST

START_TEST(bf16_is_the_upper_half_of_fp32)
{
    for (uint32_t k = 0; k < 65536; k++)
        equal(at_decode(k, at_narrow_of(AT_BF16)), (double)at_float(k << 16), "bf16", AT_BF16,
              (double)at_float(k << 16));
}
END_TEST

START_TEST(the_corners_of_fp8_are_where_the_standard_has_them)
{
    struct at_narrow e4m3 = at_narrow_of(AT_F8_E4M3), e5m2 = at_narrow_of(AT_F8_E5M2);
    ck_assert(at_decode(0x7e, e4m3) == 448 && isnan(at_decode(0x7f, e4m3)));
    ck_assert(isnan(at_decode(0xff, e4m3)) && at_decode(0x78, e4m3) == 256);
    ck_assert(at_decode(1, e4m3) == 0x1p-9 && at_decode(8, e4m3) == 0x1p-6);
    ck_assert(at_decode(0x7b, e5m2) == 57344 && isinf(at_decode(0x7c, e5m2)));
    ck_assert(isnan(at_decode(0x7d, e5m2)) && at_decode(1, e5m2) == 0x1p-16);
    ck_assert(at_encode(464, e4m3) == 0x7e && at_encode(464.0000001, e4m3) == 0x7f);
    ck_assert(at_encode(61440, e5m2) == 0x7c && at_encode(61439, e5m2) == 0x7b);
    ck_assert(at_encode(-(double)NAN, e4m3) == 0x7f && at_encode(-(double)NAN, e5m2) == 0x7e);
}
END_TEST

/* -- One rounding ------------------------------------------------------------------------------ */

/* Around each number and each midpoint: exact, and the next doubles to either side. */
START_TEST(midpoints_go_to_even_and_their_neighbours_to_the_nearer)
{
    enum at_dtype d = narrow[_i];
    struct at_narrow f = at_narrow_of(d);
    uint32_t top = patterns(d) / 2;
    for (uint32_t k = 0; k < top; k++) {
        double x = at_decode(k, f), up = at_decode(k + 1 < top ? k + 1 : k, f);
        if (!isfinite(x))
            continue;
        double middle = isfinite(up) ? x + (up - x) / 2 : x + (x - at_decode(k - 1, f)) / 2;
        const double near[6] = {x,
                                nextafter(x, DBL_MAX),
                                middle,
                                nextafter(middle, -DBL_MAX),
                                nextafter(middle, DBL_MAX),
                                nextafter(x, -DBL_MAX)};
        for (int t = 0; t < 6; t++) {
            equal(stored(near[t], d), expected(near[t], d), "store", d, near[t]);
            equal(stored(-near[t], d), expected(-near[t], d), "store", d, -near[t]);
        }
    }
}
END_TEST

START_TEST(storing_a_double_rounds_once)
{
    enum at_dtype d = narrow[_i];
    struct paint r = paint_from(paint_seed(), 2 + (uint64_t)_i);
    for (int k = 0; k < TIMES; k++) {
        double x = ldexp(paint_unit(&r), (int)paint_int(&r, -150, 130));
        /* Close to a midpoint after a first rounding to fp32: double rounding would fall here. */
        double y =
            (double)(float)rounded(x, d) * (1 + at_roundoff(d) * (1 + 0x1p-40 * paint_unit(&r)));
        equal(stored(x, d), expected(x, d), "store", d, x);
        equal(stored(y, d), expected(y, d), "store", d, y);
    }
    const double far[] = {DBL_MAX,    -DBL_MAX,         DBL_MIN, 0x1p-1074,
                          -0x1p-1074, (double)INFINITY, 0.0,     -0.0};
    for (size_t k = 0; k < sizeof far / sizeof *far; k++)
        equal(stored(far[k], d), expected(far[k], d), "store", d, far[k]);
    ck_assert(isnan(stored((double)NAN, d)));
}
END_TEST

START_TEST(rounding_by_mpfr_agrees_with_the_machine)
{
    struct paint r = paint_from(paint_seed(), 9);
    mpfr_t y;
    mpfr_init2(y, 120);
    for (int k = 0; k < TIMES; k++) {
        double x = ldexp(paint_unit(&r), (int)paint_int(&r, -160, 130));
        equal(rounded(x, AT_F32), (double)(float)x, "round", AT_F32, x);
        mpfr_set_d(y, x, MPFR_RNDN); /* a sum of two doubles, rounded once by the machine */
        mpfr_add_d(y, y, x * 0x1.8p-54, MPFR_RNDN);
        at_round(y, at_format(AT_F64));
        equal(mpfr_get_d(y, MPFR_RNDN), x + x * 0x1.8p-54, "round", AT_F64, x);
    }
    for (int k = -1076; k <= -1070; k++) { /* the smallest doubles */
        mpfr_set_ui_2exp(y, 3, k - 1, MPFR_RNDN);
        at_round(y, at_format(AT_F64));
        double once = fma(0x1.8p-500, ldexp(1, k + 500), 0); /* rounded once by the machine */
        equal(mpfr_get_d(y, MPFR_RNDN), once, "round", AT_F64, k);
    }
    mpfr_clear(y);
}
END_TEST

START_TEST(rounding_leaves_zeros_infinities_and_nan)
{
    for (int d = AT_F64; d <= AT_F8_E5M2; d++) {
        const double x[] = {0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN};
        for (int k = 0; k < 5; k++)
            equal(rounded(x[k], (enum at_dtype)d), x[k], "round", (enum at_dtype)d, x[k]);
    }
}
END_TEST

/* -- Neighbours -------------------------------------------------------------------------------- */

static double next(double x, enum at_dtype d)
{
    mpfr_t y;
    mpfr_init2(y, 60);
    mpfr_set_d(y, x, MPFR_RNDN);
    at_next(y, at_format(d));
    double r = mpfr_get_d(y, MPFR_RNDN);
    mpfr_clear(y);
    return r;
}

START_TEST(next_is_the_next_pattern)
{
    enum at_dtype d = narrow[_i];
    struct at_narrow f = at_narrow_of(d);
    uint32_t half = patterns(d) / 2;
    double largest = at_format(d).max;
    for (uint32_t k = 0; k < half; k++) {
        double x = at_decode(k, f), up = at_decode(k + 1 < half ? k + 1 : k, f);
        if (!isfinite(x))
            continue;
        ck_assert(next(x, d) == (x == largest ? (double)INFINITY : up));
        if (k > 0)
            ck_assert(next(-x, d) == -at_decode(k - 1, f));
    }
}
END_TEST

START_TEST(next_agrees_with_nextafter)
{
    struct paint r = paint_from(paint_seed(), 11);
    const double fixed[] = {0, 1, -1, 0x1p-1022, -0x1p-1022, -0x1p-1074, DBL_MAX, -DBL_MAX, 2, -2};
    for (int k = 0; k < TIMES; k++) {
        double x = ldexp(paint_unit(&r), (int)paint_int(&r, -1080, 1023));
        float y = (float)ldexp(paint_unit(&r), (int)paint_int(&r, -155, 127));
        x = k < 10       ? fixed[k]
            : k % 7 == 0 ? ldexp(k % 2 ? 1 : -1, (int)paint_int(&r, -1074, 1023))
                         : x;
        equal(next(x, AT_F64), nextafter(x, (double)INFINITY) + 0, "next", AT_F64, x);
        equal(next((double)y, AT_F32), (double)nextafterf(y, INFINITY) + 0, "next", AT_F32,
              (double)y);
    }
}
END_TEST

/* -- Names and sizes --------------------------------------------------------------------------- */

START_TEST(names_find_their_dtype)
{
    for (int d = AT_F64; d <= AT_I64; d++)
        ck_assert(at_dtype_find(at_dtype_name((enum at_dtype)d)) == (enum at_dtype)d);
    ck_assert_int_eq(at_dtype_find("float"), AT_DEFAULT);
    ck_assert_str_eq(at_dtype_name(AT_DEFAULT), "default");
    const int size[] = {0, 8, 4, 2, 2, 1, 1, 1, 4, 8};
    for (int d = AT_DEFAULT; d <= AT_I64; d++)
        ck_assert_int_eq(at_dtype_size((enum at_dtype)d), size[d]);
    unsigned char memory[8] = {0};
    struct at_view number = at_bhsd(memory, AT_I32, 1, 1, 1, 1);
    ck_assert(isnan(at_stored(&number, 0))); /* integers are no tensors of ours */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("format");
    TCase *c = tcase_create("format");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, engines_and_truth_read_the_same_numbers, 0, NARROW);
    tcase_add_loop_test(c, every_number_encodes_to_its_own_pattern, 0, NARROW);
    tcase_add_test(c, fp16_is_the_compilers);
    tcase_add_test(c, bf16_is_the_upper_half_of_fp32);
    tcase_add_test(c, the_corners_of_fp8_are_where_the_standard_has_them);
    tcase_add_loop_test(c, midpoints_go_to_even_and_their_neighbours_to_the_nearer, 0, NARROW);
    tcase_add_loop_test(c, storing_a_double_rounds_once, 0, NARROW);
    tcase_add_test(c, rounding_by_mpfr_agrees_with_the_machine);
    tcase_add_test(c, rounding_leaves_zeros_infinities_and_nan);
    tcase_add_loop_test(c, next_is_the_next_pattern, 0, NARROW);
    tcase_add_test(c, next_agrees_with_nextafter);
    tcase_add_test(c, names_find_their_dtype);
    suite_add_tcase(s, c);
    return paint_run(s);
}

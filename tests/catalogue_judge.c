/* Ideas 85 .. 91: comparators, tolerances and wrong oracles.
 * SPDX-License-Identifier: MIT */
#include "catalogue.h"
#include <math.h>

/* One key whose value is `truth`: the bound is 0. Does `got` pass? */
static bool passes(double truth, float got)
{
    struct problem x;
    struct hold h;
    begin(&x, AT_F32, 1, 1, 1, 1, 1, 1, 1);
    SET(&x.a.v, truth);
    ck_assert(hold_truth(&h, &x.a));
    hold_engine(&h, &at_scalar, &x.a, &x.got); /* for the bound */
    struct at_arith arith = at_scalar.arith(&x.a);
    *(float *)x.got.out.data = got;
    ck_assert_int_eq(at_compare(&x.a, &x.got, h.rows, &arith, &h.truth, NULL, &h.verdict), AT_OK);
    bool pass = h.verdict.failed == 0;
    hold_free(&h), problem_free(&x);
    return pass;
}

START_TEST(a_comparison_with_nan_or_infinity_is_of_kinds)
{
    ck_assert(!passes((double)NAN, 1) && !passes(1, NAN) && passes((double)NAN, NAN));
    ck_assert(passes((double)INFINITY, INFINITY) && !passes((double)INFINITY, -INFINITY));
    ck_assert(!passes((double)INFINITY, 0x1.fffffep127f) && !passes(1, INFINITY));
    ck_assert(passes(0, -0.0f) && passes(-0.0, 0) && passes(1, 1) && !passes(1, 1 + 0x1p-23f));
    ck_assert(!passes((double)NAN, INFINITY) && !passes((double)INFINITY, NAN));
}
END_TEST

START_TEST(an_output_of_nan_alone_fails_and_an_absent_one_is_told)
{
    struct problem x;
    struct hold h;
    begin(&x, AT_F32, 1, 1, 1, 3, 4, 1, 2);
    set_painted(&x.a.v, 1);
    ck_assert(hold_truth(&h, &x.a));
    hold_engine(&h, &at_scalar, &x.a, &x.got);
    struct at_arith arith = at_scalar.arith(&x.a);
    SET(&x.got.out, (double)NAN);
    ck_assert_int_eq(at_compare(&x.a, &x.got, h.rows, &arith, &h.truth, NULL, &h.verdict), AT_OK);
    ck_assert(h.verdict.failed == 6 && !(h.verdict.ratio <= 1));
    SET(&x.got.lse, (double)NAN);
    ck_assert_int_eq(at_compare(&x.a, &x.got, h.rows, &arith, &h.truth, NULL, &h.verdict), AT_OK);
    ck_assert(h.verdict.failed == 9);
    struct at_result got = x.got;
    got.out.dim[2] = 2;
    ck_assert_int_eq(at_compare(&x.a, &got, h.rows, &arith, &h.truth, NULL, &h.verdict),
                     AT_ERR_SHAPE);
    got.out.data = got.lse.data = NULL;
    ck_assert_int_ne(at_compare(&x.a, &got, h.rows, &arith, &h.truth, NULL, &h.verdict), AT_OK);
    hold_free(&h), problem_free(&x);
}
END_TEST

START_TEST(wrong_results_are_outside_the_interval)
{
    struct problem x;
    struct hold h;
    begin(&x, AT_F32, 1, 1, 1, 4, 8, 4, 3);
    set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
    draw_mask(&x, "###.#### ##.##### #####.## #.######");
    ck_assert(hold_truth(&h, &x.a));
    for (int control = 0; control < 6; control++) {
        hold_engine(&h, &at_scalar, &x.a, &x.got);
        struct at_arith arith = at_scalar.arith(&x.a);
        ck_assert(h.verdict.failed == 0);
        struct problem y = x; /* the control's problem, into the same results */
        float mean = 0;
        for (int64_t k = 0; k < 8; k++)
            mean += ((float *)x.a.v.data)[k * 3] / 8;
        if (control == 0)
            SET(&x.got.out, (double)mean);
        if (control == 1)
            SET(&x.got.out, (double)((float *)x.a.v.data)[0]);
        if (control == 2)
            y.a.score.mask.data = NULL;
        if (control == 3)
            y.a.score.scale = 1 + 0x1p-10;
        if (control == 4)
            y.a.score.right = 2;
        if (control == 5)
            y.a.v.stride[2] = 2; /* another head's rows */
        if (control >= 2)
            ck_assert_int_eq(at_forward(&at_scalar, &y.a, &y.got), AT_OK);
        ck_assert_int_eq(at_compare(&x.a, &x.got, h.rows, &arith, &h.truth, NULL, &h.verdict),
                         AT_OK);
        ck_assert_msg(h.verdict.failed > 0 && h.verdict.ratio > 1, "control %d passes", control);
    }
    hold_free(&h), problem_free(&x);
}
END_TEST

/* V times 2^k: truth and interval times 2^k, to the bit; and the interval holds the rounded
 * truth. */
START_TEST(the_interval_scales_with_the_values_and_holds_the_rounded_truth)
{
    const enum at_dtype dtype[] = {AT_F32, AT_BF16, AT_F16};
    double lo[2][12], hi[2][12], truth[2][12];
    for (int d = 0; d < 3; d++)
        for (int k = -5; k <= 5; k++) {
            for (int side = 0; side < 2; side++) {
                struct problem x;
                struct hold h;
                begin(&x, AT_F32, 1, 1, 1, 4, 9, 4, 3);
                set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
                for (int64_t j = 0; j < 27; j++) /* about 30, times 2^k */
                    ((float *)x.a.v.data)[j] = ldexpf(30 + ((float *)x.a.v.data)[j], side ? k : 0);
                ck_assert(hold_truth(&h, &x.a));
                hold_engine(&h, &at_scalar, &x.a, &x.got);
                struct at_arith arith = at_scalar.arith(&x.a);
                for (int64_t t = 0; t < 12; t++) {
                    struct at_view one = at_bhsd(&(float){0}, dtype[d], 1, 1, 1, 1);
                    at_interval(&arith, dtype[d], &h.truth, t / 3, t % 3, &lo[side][t],
                                &hi[side][t]);
                    truth[side][t] = h.truth.out[t];
                    paint_put(&one, 0, truth[side][t]);
                    double rounded = paint_get(&one, 0, 0, 0, 0);
                    ck_assert(lo[side][t] <= rounded && rounded <= hi[side][t]);
                }
                hold_free(&h), problem_free(&x);
            }
            for (int t = 0; t < 12; t++)
                ck_assert(truth[1][t] == ldexp(truth[0][t], k) && lo[1][t] == ldexp(lo[0][t], k) &&
                          hi[1][t] == ldexp(hi[0][t], k));
        }
}
END_TEST

START_TEST(known_answers_worked_out_by_hand)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 3, 3, 1, 1);
    SET(&x.a.v, 1, 2, 4);
    answers(&x, "2.33333333333333 2.33333333333333 2.33333333333333", NULL);
    x.a.score.right = 0;
    answers(&x, "1 1.5 2.33333333333333", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(the_old_sums_are_rescaled_by_the_factor_not_by_its_inverse)
{
    struct problem x;
    begin(&x, AT_F64, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 0, 0x1.62e42fefa39efp+0), SET(&x.a.v, 1, 0); /* ln 4 */
    answers(&x, "0.2", "1.6094379124341");
    problem_free(&x);
}
END_TEST

const struct idea catalogue_judge[] = {
    {85, "NaN in the reference switches the check off", "here",
     &a_comparison_with_nan_or_infinity_is_of_kinds},
    {86, "fmaxf swallows NaN", "here", &an_output_of_nan_alone_fails_and_an_absent_one_is_told},
    {87, "Tolerance so wide that anything passes", "here", &wrong_results_are_outside_the_interval},
    {88, "Absolute tolerance below half an ulp", "here",
     &the_interval_scales_with_the_values_and_holds_the_rounded_truth},
    {89, "Same flag inverted in test and code", "here", &known_answers_worked_out_by_hand},
    {90, "Inverse factor in the printed recurrence", "here",
     &the_old_sums_are_rescaled_by_the_factor_not_by_its_inverse},
    {91, "Result depends on batch mates",
     "check_engines: a_row_alone_has_the_bits_that_it_has_in_its_batch", NULL},
    {0, NULL, NULL, NULL}};

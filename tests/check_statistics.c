/* Suite statistics: the second line passes correct kernels and sees errors that the bound allows,
 * where they all point one way. Its false alarms are counted. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "at_simulate.h"
#include "hold.h"
#include "oracle.h"
#include "ordinary.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>

#define ALARM 1e-6

/* 60 keys of normal numbers, 32 distinct rows. */
static struct ordinary_shape shape(uint32_t features)
{
    return (struct ordinary_shape){1, 4, 2, 8, 60, 16, 8, AT_F32, features, 1};
}

static struct at_statistics of(const struct ordinary *x, struct hold *h,
                               const struct at_arith *arith, int64_t *failed)
{
    struct at_statistics s;
    struct at_verdict v;
    ck_assert_int_eq(at_bound(&x->a, arith, h->rows, &h->truth), AT_OK);
    ck_assert_int_eq(at_compare(&x->a, &x->got, h->rows, arith, &h->truth, NULL, &v), AT_OK);
    ck_assert_int_eq(at_statistics(&x->a, arith, &x->got.out, h->rows, &h->truth, ALARM, &s),
                     AT_OK);
    *failed = v.failed;
    return s;
}

static void multiply(const struct ordinary *x, double by)
{
    int64_t n = x->got.out.dim[0] * x->got.out.dim[1] * x->got.out.dim[2] * x->got.out.dim[3];
    for (int64_t k = 0; k < n; k++)
        ((float *)x->got.out.data)[k] = (float)(by * (double)((float *)x->got.out.data)[k]);
}

START_TEST(correct_kernels_pass_whatever_their_plan_and_features)
{
    static const uint32_t features[] = {0,
                                        ORDINARY_CAUSAL,
                                        ORDINARY_BIAS,
                                        ORDINARY_ALIBI,
                                        ORDINARY_SINK,
                                        ORDINARY_CAP,
                                        ORDINARY_DESCALE,
                                        ORDINARY_MASK};
    double most = 0, z = 0;
    int64_t failed, applied = 0;
    for (int64_t k = 0; k < paint_number("COUNT", 48); k++) {
        struct ordinary x;
        struct hold h;
        ordinary_make(&x, paint_seed() + (uint64_t)k, shape(features[k % 8]));
        x.a.plan = (struct at_plan){.compute = AT_F32, .bc = 1 + k % 3 * 15, .splits = 1 + k % 4};
        x.a.plan = at_resolve(&x.a);
        ck_assert(hold_truth(&h, &x.a));
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        struct at_arith arith = at_scalar.arith(&x.a);
        struct at_statistics s = of(&x, &h, &arith, &failed);
        ck_assert_msg(!s.applies || !s.fails, "rms %g of %g, gain %g, scale %g of %g: SEED=%llu",
                      s.rms, s.rms_limit, s.gain, s.scale, s.limit,
                      (unsigned long long)(paint_seed() + (uint64_t)k));
        ck_assert_int_eq(failed, 0);
        applied += s.applies;
        most = fmax(most, s.rms), z = fmax(z, fmax(s.gain, s.scale));
        hold_free(&h);
        ordinary_free(&x);
    }
    printf("%lld correct outputs: rms at most %.2f, filters at most %.2f\n", (long long)applied,
           most, z);
    ck_assert_int_gt(applied, 40);
    ck_assert(most > 0.02); /* not vacuous */
}
END_TEST

/* Where rounding the output is all there is, err^2 is half^2/3 on the average: rms 1/sqrt(3). */
START_TEST(a_correct_kernel_whose_only_error_is_the_outputs_rounding_is_far_from_the_limit)
{
    double most = 0;
    for (int64_t k = 0; k < 24; k++) {
        struct ordinary x;
        struct hold h;
        struct ordinary_shape bf16 = shape(0);
        int64_t failed;
        bf16.dtype = k % 2 ? AT_BF16 : AT_F16;
        ordinary_make(&x, paint_seed() + (uint64_t)k, bf16);
        ck_assert(hold_truth(&h, &x.a));
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        struct at_statistics s = of(&x, &h, at_arith_find("bf16-inside-fp32"), &failed);
        ck_assert_int_eq(failed, 0);
        ck_assert_msg(s.applies && !s.fails && s.rms < 0.75 && s.rms > 0.4, "rms %g", s.rms);
        most = fmax(most, s.rms);
        hold_free(&h);
        ordinary_free(&x);
    }
    printf("rounded outputs: rms at most %.3f\n", most);
}
END_TEST

/* A machine that sums in l the P that it rounded: what a weight loses it loses in both. */
START_TEST(rounded_weights_that_l_sums_too_pass)
{
    double most = 0;
    for (int64_t k = 0; k < 24; k++) {
        struct ordinary x;
        struct hold h;
        double out[32 * 8], lse[32];
        int64_t failed;
        struct at_arith arith = *at_arith_find("bf16-p");
        arith.rounded_sum = true;
        struct at_machine machine = at_machine_of(&arith);
        ordinary_make(&x, paint_seed() + (uint64_t)k, shape(0));
        ck_assert(hold_truth(&h, &x.a));
        ck_assert_int_eq(at_simulate(&x.a, &machine, h.rows, out, lse), AT_OK);
        for (int64_t t = 0; t < 32 * 8; t++)
            ((float *)x.got.out.data)[t] = (float)out[t];
        x.got.lse.data = NULL;
        struct at_statistics s = of(&x, &h, &arith, &failed);
        ck_assert_msg(failed == 0 && s.applies && !s.fails,
                      "rms %g of %g, gain %g, scale %g of %g: SEED=%llu", s.rms, s.rms_limit,
                      s.gain, s.scale, s.limit, (unsigned long long)(paint_seed() + (uint64_t)k));
        most = fmax(most, s.rms);
        hold_free(&h);
        ordinary_free(&x);
    }
    printf("rounded weights: rms at most %.3f\n", most);
    ck_assert(most > 0.1); /* not vacuous */
}
END_TEST

START_TEST(a_gain_that_the_bound_allows_fails)
{
    struct ordinary x;
    struct hold h;
    int64_t failed;
    ordinary_make(&x, paint_seed(), shape(0));
    ck_assert(hold_truth(&h, &x.a));
    ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
    multiply(&x, 1 + 0x1.6p-19);
    struct at_statistics s = of(&x, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_eq(failed, 0);
    ck_assert_msg(s.applies && s.fails && s.gain > s.limit, "gain %g of %g", s.gain, s.limit);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

START_TEST(a_scale_that_the_bound_allows_fails)
{
    struct ordinary x;
    struct hold h;
    int64_t failed;
    ordinary_make(&x, paint_seed(), shape(0));
    ck_assert(hold_truth(&h, &x.a));
    double scale = x.a.score.scale;
    x.a.score.scale = scale * (1 + 0x1p-18);
    ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
    x.a.score.scale = scale;
    struct at_statistics s = of(&x, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_eq(failed, 0);
    ck_assert_msg(s.applies && s.fails && s.scale > s.limit, "scale %g of %g", s.scale, s.limit);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

START_TEST(equal_rows_count_once_and_too_few_do_not_apply)
{
    struct ordinary x;
    struct hold h;
    int64_t failed;
    ordinary_make(&x, paint_seed(), shape(0));
    for (int64_t t = 0; t < 4 * 8; t++) /* of a head */
        for (int64_t c = 0; c < 16; c++)
            ((float *)x.a.q.data)[t * 16 + c] = ((float *)x.a.q.data)[t / 8 * 128 + c];
    ck_assert(hold_truth(&h, &x.a));
    ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
    struct at_statistics s = of(&x, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_eq(s.rows, 4);
    ck_assert(!s.applies && !s.fails);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

START_TEST(units_that_cut_and_dropout_are_left_out)
{
    struct ordinary x;
    struct hold h;
    int64_t failed;
    for (int turn = 0; turn < 2; turn++) {
        ordinary_make(&x, paint_seed(), shape(turn ? ORDINARY_DROPOUT : 0));
        ck_assert(hold_truth(&h, &x.a));
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        struct at_arith arith = *at_arith_find("fp32");
        arith.truncates = turn == 0;
        ck_assert(!of(&x, &h, &arith, &failed).applies);
        hold_free(&h);
        ordinary_free(&x);
    }
}
END_TEST

START_TEST(a_nan_fails)
{
    struct ordinary x;
    struct hold h;
    int64_t failed;
    ordinary_make(&x, paint_seed(), shape(0));
    ck_assert(hold_truth(&h, &x.a));
    ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
    ((float *)x.got.out.data)[77] = NAN;
    struct at_statistics s = of(&x, &h, at_arith_find("fp32"), &failed);
    ck_assert(s.applies && s.fails);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("statistics");
    TCase *c = tcase_create("statistics");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, correct_kernels_pass_whatever_their_plan_and_features);
    tcase_add_test(c,
                   a_correct_kernel_whose_only_error_is_the_outputs_rounding_is_far_from_the_limit);
    tcase_add_test(c, rounded_weights_that_l_sums_too_pass);
    tcase_add_test(c, a_gain_that_the_bound_allows_fails);
    tcase_add_test(c, a_scale_that_the_bound_allows_fails);
    tcase_add_test(c, equal_rows_count_once_and_too_few_do_not_apply);
    tcase_add_test(c, units_that_cut_and_dropout_are_left_out);
    tcase_add_test(c, a_nan_fails);
    suite_add_tcase(s, c);
    return paint_run(s);
}

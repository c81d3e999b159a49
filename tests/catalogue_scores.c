/* Ideas 47 .. 65: range and precision, softcap, bias, ALiBi, scales, sinks.
 * SPDX-License-Identifier: MIT */
#include "catalogue.h"
#include <math.h>

static const double ln2 = 0x1.62e42fefa39efp-1, ln3 = 0x1.193ea7aad030bp+0;

/* -- Range and precision ----------------------------------------------------------------------- */

START_TEST(raw_products_past_the_range_of_fp16_are_finite_scores)
{
    struct problem x;
    begin(&x, AT_F16, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.q, 300), SET(&x.a.k, 300, 299), SET(&x.a.v, 1, 2);
    x.a.score.scale = 0.01;
    answers(&x, "1.04742587317757", "900.048587351574");
    problem_free(&x);
}
END_TEST

START_TEST(an_unnormalised_sum_past_the_range_of_fp16_divides_back)
{
    struct problem x;
    begin(&x, AT_F16, 1, 1, 1, 1, 8192, 1, 1);
    SET(&x.a.v, 16);
    answers(&x, "16", "9.01091334727929");
    problem_free(&x);
}
END_TEST

START_TEST(one_visible_key_gives_its_value_whatever_the_score)
{
    struct problem x;
    begin(&x, AT_BF16, 1, 1, 1, 1, 1, 64, 1);
    SET(&x.a.q, 135168), SET(&x.a.k, 135168), SET(&x.a.v, 135168);
    x.a.score.scale = 0.125;
    answers(&x, "135168", "146163105792");
    problem_free(&x);
    begin(&x, AT_F32, 1, 1, 1, 1, 1, 3, 1);
    struct paint r = paint_from(paint_seed(), 49);
    for (int t = 0; t < 200; t++) {
        float v = (float)paint_unit(&r), out = NAN;
        SET(&x.a.q, ldexp(paint_unit(&r), (int)paint_int(&r, -40, 40)));
        SET(&x.a.k, ldexp(paint_unit(&r), (int)paint_int(&r, -40, 40)));
        SET(&x.a.v, (double)v);
        x.got.out = at_bhsd(&out, AT_F32, 1, 1, 1, 1);
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        ck_assert(out == v);
    }
    problem_free(&x);
}
END_TEST

START_TEST(a_row_sum_of_16_bits_would_stick)
{
    struct problem x;
    const enum at_dtype dtype[] = {AT_F16, AT_BF16};
    const char *const lse[] = {"8.31776616671934", "6.23832462503951"};
    for (int t = 0; t < 2; t++) {
        int64_t n = t ? 512 : 4096;
        begin(&x, dtype[t], 1, 1, 1, 1, n, 1, 1);
        SET(&x.a.v, 1);
        for (int64_t j = n / 2; j < n; j++)
            set_row(&x.a.v, 0, 0, j, 3);
        answers(&x, "2", lse[t]);
        problem_free(&x);
    }
}
END_TEST

START_TEST(numerator_and_denominator_take_the_same_weight)
{
    struct problem x;
    begin(&x, AT_F64, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 0, 3 * ln2), SET(&x.a.v, 0, 1);
    answers(&x, "0.888888888888889", "2.19722457733622");
    problem_free(&x);
}
END_TEST

START_TEST(small_weights_stay_in_the_numerator)
{
    struct problem x;
    begin(&x, AT_F64, 1, 1, 1, 1, 4097, 1, 1);
    SET(&x.a.k, -11 * ln2), SET(&x.a.v, 1);
    set_row(&x.a.k, 0, 0, 0, 0);
    answers(&x, "1", "1.09861228866811");
    problem_free(&x);
}
END_TEST

START_TEST(a_scale_may_be_negative_or_zero)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 0, 2), SET(&x.a.v, 1, 3);
    x.a.score.scale = -0.5;
    answers(&x, "1.53788284273999", "0.313261687518223");
    x.a.score.scale = 0;
    answers(&x, "2", "0.693147180559945");
    problem_free(&x);
}
END_TEST

/* -- Softcap, bias, ALiBi, scales -------------------------------------------------------------- */

START_TEST(softcap_comes_before_the_mask)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.v, 1, 100);
    x.a.score.softcap = 1;
    draw_mask(&x, "#.");
    answers(&x, "1", "0");
    problem_free(&x);
}
END_TEST

START_TEST(a_capped_score_keeps_its_sign)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, -3, 2), SET(&x.a.v, 1, 0);
    x.a.score.softcap = 5;
    answers(&x, "0.0101007584538341", "1.90989692852517");
    problem_free(&x);
}
END_TEST

START_TEST(a_score_past_the_cap_is_capped)
{
    struct problem x; /* idea 56, forward */
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.q, 2), SET(&x.a.k, 1, 0), SET(&x.a.v, 1, 0);
    x.a.score.softcap = 2;
    answers(&x, "0.821007496006", NULL);
    problem_free(&x);
}
END_TEST

static void alibi(struct problem *x, double slope)
{
    static const int64_t offset = 2;
    begin(x, AT_F32, 1, 1, 1, 1, 3, 1, 1);
    SET(&x->a.v, 1, 2, 4);
    x->a.score.offset = &offset;
    x->a.score.alibi = tensor(x, AT_F32, 1, 1, 1, 1);
    SET(&x->a.score.alibi, slope);
}

START_TEST(the_nearest_key_has_distance_zero)
{
    struct problem x;
    alibi(&x, 0.5);
    answers(&x, "2.82663705888546", "0.680269670641735");
    problem_free(&x);
}
END_TEST

START_TEST(a_positive_slope_favours_the_near_key)
{
    struct problem x;
    alibi(&x, -0.5); /* what the wrong sign would give */
    answers(&x, "1.86616705539604", NULL);
    problem_free(&x);
    alibi(&x, 0.5);
    int64_t before = 0; /* keys on both sides of the query count their distance */
    x.a.score.offset = &before;
    answers(&x, "1.86616705539604", "0.680269670641735");
    problem_free(&x);
}
END_TEST

START_TEST(a_bias_is_in_natural_units)
{
    struct problem x;
    begin(&x, AT_F64, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.v, 0, 1);
    x.a.score.bias = tensor(&x, AT_F64, 1, 1, 1, 2);
    SET(&x.a.score.bias, 0, ln3);
    answers(&x, "0.75", "1.38629436111989");
    problem_free(&x);
}
END_TEST

START_TEST(the_scale_is_the_number_given_not_one_of_a_padded_size)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 5, 1);
    SET(&x.a.k, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0), SET(&x.a.v, 1, 0);
    x.a.score.scale = 1 / sqrt(5.0);
    answers(&x, "0.903441993753177", "2.3376113502227");
    problem_free(&x);
}
END_TEST

START_TEST(scales_of_k_and_v_are_not_dropped)
{
    struct problem x;
    begin(&x, AT_F8_E4M3, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 2, 0), SET(&x.a.v, 4, 8);
    x.a.score.kscale = at_repeated(tensor(&x, AT_F32, 1, 1, 1, 1), 1, 1, 2, 1);
    x.a.score.vscale = at_repeated(tensor(&x, AT_F32, 1, 1, 1, 1), 1, 1, 2, 1);
    SET(&x.a.score.kscale, 0.5), SET(&x.a.score.vscale, 0.25);
    answers(&x, "1.26894142137", "1.31326168751822");
    problem_free(&x);
}
END_TEST

/* -- Sinks ------------------------------------------------------------------------------------- */

static void sink(struct problem *x, double s)
{
    x->a.score.sink = tensor(x, AT_F32, 1, 1, 1, 1);
    SET(&x->a.score.sink, s);
}

START_TEST(a_sink_counts_once_whatever_the_splits)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 4, 1, 1);
    SET(&x.a.v, 3);
    sink(&x, 0);
    draw_mask(&x, "..##");
    answers(&x, "2", "1.09861228866811");
    draw_mask(&x, "....");
    answers(&x, "0", "0");
    draw_mask(&x, "##..");
    x.a.score.scale = 7, x.a.score.softcap = 0.5; /* neither touches the sink */
    sink(&x, 2);
    answers(&x, "?", "2.23954476622188");
    problem_free(&x);
}
END_TEST

START_TEST(a_sink_takes_part_in_the_maximum)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 1, 1, 1);
    SET(&x.a.v, 1);
    sink(&x, 100);
    answers(&x, "3.72007597602084e-44", "100");
    problem_free(&x);
    begin(&x, AT_F32, 1, 1, 1, 1, 0, 1, 1);
    sink(&x, 0.5);
    answers(&x, "0", "0.5");
    problem_free(&x);
}
END_TEST

START_TEST(the_denominator_holds_the_sink)
{
    struct problem x; /* idea 64, forward */
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 1, -1), SET(&x.a.v, 2, 6);
    sink(&x, 0);
    answers(&x, "1.87066535057193", "1.40760596444438");
    problem_free(&x);
}
END_TEST

START_TEST(rows_past_the_length_have_no_sink)
{
    struct problem x;
    const int64_t len = 1;
    begin(&x, AT_F32, 1, 1, 1, 2, 1, 1, 1);
    SET(&x.a.v, 4);
    sink(&x, 0);
    x.a.score.q_len = &len;
    answers(&x, "2 0", "0.693147180559945 -inf");
    problem_free(&x);
}
END_TEST

const struct idea catalogue_scores[] = {
    {47, "fp16 overflow of raw scores", "here",
     &raw_products_past_the_range_of_fp16_are_finite_scores},
    {48, "fp16 accumulator of P*V overflows", "here",
     &an_unnormalised_sum_past_the_range_of_fp16_divides_back},
    {49, "Fused multiply-add against a rounded max", "here",
     &one_visible_key_gives_its_value_whatever_the_score},
    {50, "Row sum saturates in 16 bits", "here", &a_row_sum_of_16_bits_would_stick},
    {51, "Numerator clamps, denominator does not", "here",
     &numerator_and_denominator_take_the_same_weight},
    {52, "Small probabilities vanish from the numerator only", "here",
     &small_weights_stay_in_the_numerator},
    {53, "Negative scale", "here", &a_scale_may_be_negative_or_zero},
    {54, "Softcap applied after the mask", "here", &softcap_comes_before_the_mask},
    {55, "Score times tanh instead of cap times tanh", "here", &a_capped_score_keeps_its_sign},
    {56, "Missing factor in the softcap gradient", "backward", &a_score_past_the_cap_is_capped},
    {57, "ALiBi distance off by one", "here", &the_nearest_key_has_distance_zero},
    {58, "ALiBi sign", "here", &a_positive_slope_favours_the_near_key},
    {59, "Bias added in the wrong log base", "here", &a_bias_is_in_natural_units},
    {60, "Scale from the padded head size", "here",
     &the_scale_is_the_number_given_not_one_of_a_padded_size},
    {61, "K and V scales dropped", "here", &scales_of_k_and_v_are_not_dropped},
    {62, "Sink counted twice or never", "here", &a_sink_counts_once_whatever_the_splits},
    {63, "Sink outside the running max", "here", &a_sink_takes_part_in_the_maximum},
    {64, "Backward denominators without the sink", "backward", &the_denominator_holds_the_sink},
    {65, "Delta from rounded output", "backward", &rows_past_the_length_have_no_sink},
    {0, NULL, NULL, NULL}};

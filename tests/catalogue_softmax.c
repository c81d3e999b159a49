/* Ideas 1 .. 25: rows without keys, the running maximum, the log-sum-exp.
 * SPDX-License-Identifier: MIT */
#include "catalogue.h"
#include "ref.h"
#include <float.h>
#include <math.h>

static const double ln2 = 0x1.62e42fefa39efp-1;

/* -- Rows with no visible key ------------------------------------------------------------------ */

START_TEST(a_padding_row_that_sees_nothing_is_zero_and_disturbs_no_other)
{
    struct problem x, y;
    begin(&x, AT_F32, 1, 1, 1, 3, 4, 2, 2), begin(&y, AT_F32, 1, 1, 1, 2, 4, 2, 2);
    SET(&x.a.q, 1, 2, -1, 3, 5, 7), SET(&y.a.q, 1, 2, -1, 3);
    SET(&x.a.k, 1, 0, 0, 1, 2, -1, 1, 1), SET(&y.a.k, 1, 0, 0, 1, 2, -1, 1, 1);
    SET(&x.a.v, 1, -1, 2, -2, 4, -4, 8, -8), SET(&y.a.v, 1, -1, 2, -2, 4, -4, 8, -8);
    draw_mask(&x, "#... ##.. ...."), draw_mask(&y, "#... ##..");
    answers(&x, "1 -1 ? ? 0 0", "1 ? -inf");
    same_bits(&y, &x, -1);
    problem_free(&x), problem_free(&y);
}
END_TEST

START_TEST(no_floor_under_the_maximum_zeroes_a_row)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, -20000, -20001), SET(&x.a.v, 1, 3);
    answers(&x, "1.53788284273999", "-19999.6867383125");
    problem_free(&x);
}
END_TEST

START_TEST(two_masks_with_an_empty_intersection_leave_an_empty_row)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 2, 3, 1, 1);
    SET(&x.a.v, 3, 6, 12);
    x.a.score.right = 0;
    draw_mask(&x, ".## .##");
    answers(&x, "0 6", "-inf 0");
    problem_free(&x);
}
END_TEST

START_TEST(more_queries_than_keys_leave_the_first_rows_empty)
{
    struct problem x;
    int64_t offset = -2;
    begin(&x, AT_F32, 1, 1, 1, 3, 1, 2, 2); /* idea 5, forward */
    SET(&x.a.q, 1, 0, 0, 1, 1, 1), SET(&x.a.k, 2, 1), SET(&x.a.v, 5, 7);
    x.a.score.right = 0, x.a.score.offset = &offset;
    answers(&x, "0 0 0 0 5 7", "-inf -inf 3");
    problem_free(&x);
}
END_TEST

START_TEST(a_negative_block_bound_hides_the_first_rows_and_only_them)
{
    struct problem x;
    int64_t offset = -5;
    begin(&x, AT_F32, 1, 1, 1, 9, 4, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8);
    x.a.score.right = 0, x.a.score.offset = &offset;
    answers(&x, "0 0 0 0 0 1 1.5 2.33333333333333 3.75",
            "-inf -inf -inf -inf -inf 0 0.693147180559945 1.09861228866811 1.38629436111989");
    x.a.score.offset = NULL;
    answers(&x, "1 1.5 2.33333333333333 3.75 3.75 3.75 3.75 3.75 3.75", NULL);
    problem_free(&x);
}
END_TEST

/* -- The running maximum ----------------------------------------------------------------------- */

START_TEST(leading_tiles_fully_masked_do_no_harm)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 12, 1, 1);
    SET(&x.a.v, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 6);
    draw_mask(&x, "........####");
    answers(&x, "3", "1.38629436111989");
    problem_free(&x);
}
END_TEST

START_TEST(a_masked_tile_does_not_reset_the_maximum_to_zero)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 4, 1, 1);
    SET(&x.a.k, -200, -201, 5, 6), SET(&x.a.v, 1, 3, 7, 9);
    draw_mask(&x, "##..");
    answers(&x, "1.53788284273999", "-199.686738312482");
    SET(&x.a.k, 5, 6, -200, -201), SET(&x.a.v, 7, 9, 1, 3);
    draw_mask(&x, "..##");
    answers(&x, "1.53788284273999", "-199.686738312482");
    problem_free(&x);
}
END_TEST

START_TEST(no_finite_maximum_starts_on_unscaled_scores)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, -60000, -60001), SET(&x.a.v, 1, 3);
    x.a.score.scale = 0.01;
    answers(&x, "1.99500004166625", "-599.311840319492");
    problem_free(&x);
}
END_TEST

START_TEST(a_masked_key_never_wins_the_softmax)
{
    struct problem x, y;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.q, -30000), SET(&x.a.k, 1, 0), SET(&x.a.v, 2, 50);
    draw_mask(&x, "#.");
    answers(&x, "2", "-30000");
    begin(&y, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&y.a.q, -30000), SET(&y.a.k, 1, -1e30), SET(&y.a.v, 2, 1e30);
    draw_mask(&y, "#.");
    same_bits(&x, &y, -1);
    problem_free(&x), problem_free(&y);
}
END_TEST

START_TEST(a_row_biased_by_the_lowest_finite_number_is_no_nan)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 0, 1), SET(&x.a.v, 1, 3);
    x.a.score.bias = tensor(&x, AT_F32, 1, 1, 1, 2);
    SET(&x.a.score.bias, -(double)FLT_MAX);
    answers(&x, "2.46211715726001", NULL); /* fp32 says 2: the interval is the range of V */
    problem_free(&x);
}
END_TEST

START_TEST(a_mask_of_all_true_is_no_mask)
{
    struct problem x, y;
    begin(&x, AT_F32, 1, 1, 1, 2, 2, 3, 2), begin(&y, AT_F32, 1, 1, 1, 2, 2, 3, 2);
    set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
    set_painted(&y.a.q, 1), set_painted(&y.a.k, 2), set_painted(&y.a.v, 3);
    draw_mask(&y, "## ##");
    same_bits(&x, &y, -1);
    SET(&x.a.v, 1, 2, 3, 4);
    draw_mask(&x, ".# #.");
    answers(&x, "3 4 1 2", NULL);
    problem_free(&x), problem_free(&y);
}
END_TEST

START_TEST(weights_are_taken_against_the_maximum_that_is_kept)
{
    struct problem x;
    begin(&x, AT_F64, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.k, 0, 5 * ln2), SET(&x.a.v, 1, 2);
    answers(&x, "1.96969696969697", "3.49650756146648");
    problem_free(&x);
}
END_TEST

START_TEST(a_nan_query_is_not_taken_for_an_empty_row)
{
    struct problem x, y;
    begin(&x, AT_F32, 1, 1, 1, 2, 2, 2, 2), begin(&y, AT_F32, 1, 1, 1, 1, 2, 2, 2);
    SET(&x.a.q, (double)NAN, 1, 1, 2), SET(&y.a.q, 1, 2);
    SET(&x.a.k, 1, 0, 0, 1), SET(&y.a.k, 1, 0, 0, 1);
    SET(&x.a.v, 1, 2, 3, 4), SET(&y.a.v, 1, 2, 3, 4);
    answers(&x, "nan nan ? ?", "nan ?");
    x.a.q = at_bhsd((float *)x.a.q.data + 2, AT_F32, 1, 1, 1, 2); /* row 1 alone */
    x.got.out.dim[2] = x.got.lse.dim[2] = 1;
    same_bits(&x, &y, -1);
    problem_free(&x), problem_free(&y);
}
END_TEST

/* -- Log-sum-exp ------------------------------------------------------------------------------- */

START_TEST(the_log_sum_exp_is_natural)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    answers(&x, "0", "0.693147180559945");
    problem_free(&x);
}
END_TEST

START_TEST(a_short_suffix_keeps_its_weight_beside_a_long_prefix)
{
    struct problem x;
    const int64_t size[2][2] = {{48, 16}, {3072, 64}};
    const char *const digits[2] = {"0.25", "0.0204081632653061"};
    for (int t = 0; t < 2; t++) {
        begin(&x, AT_F32, 1, 1, 1, 1, size[t][0] + size[t][1], 1, 1);
        for (int64_t j = size[t][0]; j < x.Skv; j++)
            set_row(&x.a.v, 0, 0, j, 1);
        answers(&x, digits[t], t == 0 ? "4.15888308335967" : NULL);
        problem_free(&x);
    }
}
END_TEST

/* Three states of one row and one column, as a tensor of one row each. */
struct lone {
    float m, l, u;
    struct at_state x;
};

static void lone(struct lone *s, float m, float l, float u)
{
    s->m = m, s->l = l, s->u = u;
    s->x = (struct at_state){at_bhsd(&s->m, AT_F32, 1, 1, 1, 1), at_bhsd(&s->l, AT_F32, 1, 1, 1, 1),
                             at_bhsd(&s->u, AT_F32, 1, 1, 1, 1)};
}

static void finishes(const struct lone *s, float out, float lse)
{
    float o = NAN, e = NAN;
    struct at_result to = {at_bhsd(&o, AT_F32, 1, 1, 1, 1), at_bhsd(&e, AT_F32, 1, 1, 1, 1)};
    ck_assert_int_eq(at_finish(&s->x, 1, &to), AT_OK);
    ck_assert_msg(o == out && e == lse, "%a, %a", (double)o, (double)e);
}

START_TEST(a_row_without_keys_has_log_sum_exp_minus_infinity_and_merges_as_nothing)
{
    struct problem x;
    struct lone a, b;
    begin(&x, AT_F32, 1, 1, 1, 1, 0, 1, 1);
    answers(&x, "0", "-inf");
    problem_free(&x);
    lone(&a, -INFINITY, 0, 0), lone(&b, 1, 1, 4);
    ck_assert_int_eq(at_merge(&a.x, &b.x), AT_OK);
    finishes(&a, 4, 1);
}
END_TEST

START_TEST(empty_states_merge_in_all_orders)
{
    for (int order = 0; order < 6; order++) {
        const int first = order / 2, second = (first + 1 + order % 2) % 3,
                  third = 3 - first - second;
        struct lone s[3];
        lone(&s[0], -INFINITY, 0, 0), lone(&s[1], -INFINITY, 0, 0), lone(&s[2], 2, 1, 7);
        ck_assert_int_eq(at_merge(&s[first].x, &s[second].x), AT_OK);
        finishes(&s[first], first == 2 || second == 2 ? 7 : 0,
                 first == 2 || second == 2 ? 2 : -INFINITY);
        ck_assert_int_eq(at_merge(&s[first].x, &s[third].x), AT_OK);
        finishes(&s[first], 7, 2);
    }
}
END_TEST

START_TEST(a_stale_output_of_weight_zero_is_left_out)
{
    const float stale[] = {NAN, INFINITY, -INFINITY, 3};
    for (int k = 0; k < 8; k++) {
        struct lone a, b;
        lone(&a, -INFINITY, 0, stale[k % 4]), lone(&b, 0, 1, 2);
        struct lone *x = k < 4 ? &a : &b, *y = k < 4 ? &b : &a;
        ck_assert_int_eq(at_merge(&x->x, &y->x), AT_OK);
        finishes(x, 2, 0);
    }
}
END_TEST

/* sum exp(s - lse) = 1 and sum exp(s - lse) v = out, to the 106 bits that truth gives: an lse
 * within |lse| 2^-106 moves a weight by at most that factor, here doubled, and out by twice
 * max|v|. */
START_TEST(truth_is_consistent_with_its_own_log_sum_exp)
{
    struct paint r = paint_from(paint_seed(), 20);
    mpfr_t s, sum, u, e;
    mpfr_inits2(300, s, sum, u, e, (mpfr_ptr)0);
    for (int t = 0; t < 50; t++) {
        struct problem x;
        struct hold h;
        begin(&x, AT_F64, 1, 1, 1, 1, 9, 1, 1);
        for (int j = 0; j < 9; j++) {
            set_row(&x.a.k, 0, 0, j, 20 * paint_unit(&r));
            set_row(&x.a.v, 0, 0, j, paint_unit(&r));
        }
        ck_assert(hold_truth(&h, &x.a));
        mpfr_set_ui(sum, 0, MPFR_RNDN), mpfr_set_ui(u, 0, MPFR_RNDN);
        for (int j = 0; j < 9; j++) {
            mpfr_set_d(s, paint_get(&x.a.k, 0, 0, j, 0), MPFR_RNDN);
            mpfr_sub_d(s, s, h.truth.lse[0], MPFR_RNDN);
            mpfr_sub_d(s, s, h.truth.lse_lo[0], MPFR_RNDN);
            mpfr_exp(s, s, MPFR_RNDN);
            mpfr_add(sum, sum, s, MPFR_RNDN);
            mpfr_mul_d(s, s, paint_get(&x.a.v, 0, 0, j, 0), MPFR_RNDN);
            mpfr_add(u, u, s, MPFR_RNDN);
        }
        double allowed = (fabs(h.truth.lse[0]) + 1) * 0x1p-105;
        mpfr_sub_ui(e, sum, 1, MPFR_RNDN);
        ck_assert(fabs(mpfr_get_d(e, MPFR_RNDA)) <= allowed);
        mpfr_sub_d(u, u, h.truth.out[0], MPFR_RNDN);
        mpfr_sub_d(u, u, h.truth.out_lo[0], MPFR_RNDN);
        ck_assert(fabs(mpfr_get_d(u, MPFR_RNDA)) <= 2 * allowed);
        hold_free(&h);
        problem_free(&x);
    }
    mpfr_clears(s, sum, u, e, (mpfr_ptr)0);
}
END_TEST

START_TEST(shards_merge_whole_and_a_shift_of_k_moves_only_the_log_sum_exp)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 4, 1, 1);
    SET(&x.a.q, 2), SET(&x.a.k, 1, 3, 5, 5), SET(&x.a.v, 1, 3, 5, 7);
    answers(&x, "5.97194947172239", "10.702429516828");
    SET(&x.a.k, -3, -1, 1, 1);
    answers(&x, "5.97194947172239", "2.70242951682798");
    problem_free(&x);
}
END_TEST

START_TEST(each_head_writes_its_own_log_sum_exp)
{
    struct problem x;
    begin(&x, AT_F32, 2, 4, 2, 1, 4, 1, 1);
    SET(&x.a.q, 0, 1, 2, 3, 10, 11, 12, 13), SET(&x.a.k, 1), SET(&x.a.v, 5);
    answers(&x, "5 5 5 5 5 5 5 5",
            "1.38629436111989 2.38629436111989 3.38629436111989 4.38629436111989 11.3862943611199 "
            "12.3862943611199 13.3862943611199 14.3862943611199");
    problem_free(&x);
}
END_TEST

START_TEST(the_combine_step_writes_every_sequence)
{
    struct problem x;
    const int64_t len[] = {4, 5, 6};
    begin(&x, AT_F32, 3, 1, 1, 1, 6, 1, 1);
    SET(&x.a.v, 1, 1, 1, 1, 1, 1, 10, 10, 10, 10, 10, 10, 100, 100, 100, 100, 100, 100);
    x.a.score.kv_len = len;
    answers(&x, "1 10 100", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(more_splits_than_keys_change_nothing)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 3, 1, 1);
    SET(&x.a.v, 1, 2, 4);
    answers(&x, "2.33333333333333", "1.09861228866811");
    problem_free(&x);
    begin(&x, AT_F32, 1, 1, 1, 3, 3, 1, 1);
    SET(&x.a.v, 1, 2, 4);
    x.a.score.right = 0;
    answers(&x, "1 1.5 2.33333333333333", "0 0.693147180559945 1.09861228866811");
    problem_free(&x);
}
END_TEST

const struct idea catalogue_softmax[] = {
    {1, "Padding row that sees nothing", "here",
     &a_padding_row_that_sees_nothing_is_zero_and_disturbs_no_other},
    {2, "Gradients of an empty row", "backward", NULL},
    {3, "Max floor that zeroes valid rows", "here", &no_floor_under_the_maximum_zeroes_a_row},
    {4, "Two legal masks with empty intersection", "here",
     &two_masks_with_an_empty_intersection_leave_an_empty_row},
    {5, "Causal with more queries than keys, backward", "backward",
     &more_queries_than_keys_leave_the_first_rows_empty},
    {6, "Negative block bound", "here", &a_negative_block_bound_hides_the_first_rows_and_only_them},
    {7, "Leading tiles fully masked", "here", &leading_tiles_fully_masked_do_no_harm},
    {8, "Running max reset to 0 after a masked tile", "here",
     &a_masked_tile_does_not_reset_the_maximum_to_zero},
    {9, "Finite initial max on unscaled scores", "here",
     &no_finite_maximum_starts_on_unscaled_scores},
    {10, "Masked key wins the softmax", "here", &a_masked_key_never_wins_the_softmax},
    {11, "Whole row biased by the lowest finite value", "here",
     &a_row_biased_by_the_lowest_finite_number_is_no_nan},
    {12, "Boolean mask converted by arithmetic", "here", &a_mask_of_all_true_is_no_mask},
    {13, "Weights computed against the wrong max", "here",
     &weights_are_taken_against_the_maximum_that_is_kept},
    {14, "NaN input hidden by the empty-row guard", "here",
     &a_nan_query_is_not_taken_for_an_empty_row},
    {15, "Base of the returned LSE", "here", &the_log_sum_exp_is_natural},
    {16, "Base-2 LSE fed to a natural-log merge", "here",
     &a_short_suffix_keeps_its_weight_beside_a_long_prefix},
    {17, "Plus infinity as the LSE of an empty row", "here",
     &a_row_without_keys_has_log_sum_exp_minus_infinity_and_merges_as_nothing},
    {18, "Both partial states empty", "here", &empty_states_merge_in_all_orders},
    {19, "Stale output with zero weight", "here", &a_stale_output_of_weight_zero_is_left_out},
    {20, "Golden LSE off by a factor", "here", &truth_is_consistent_with_its_own_log_sum_exp},
    {21, "Shift of K leaks into LSE", "here",
     &shards_merge_whole_and_a_shift_of_k_moves_only_the_log_sum_exp},
    {22, "LSE written in another head order", "here", &each_head_writes_its_own_log_sum_exp},
    {23, "Gradient through LSE is dropped", "backward", NULL},
    {24, "Combine step writes only sequence 0", "here", &the_combine_step_writes_every_sequence},
    {25, "More splits than keys", "here", &more_splits_than_keys_change_nothing},
    {0, NULL, NULL, NULL}};

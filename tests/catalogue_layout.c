/* Ideas 66 .. 84: heads, strides, broadcasts, pages, dropout.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "catalogue.h"
#include "ref.h"
#include <math.h>

/* -- Heads, broadcasts, strides ---------------------------------------------------------------- */

START_TEST(key_heads_are_repeated_not_tiled)
{
    struct problem x;
    begin(&x, AT_F32, 1, 4, 2, 1, 1, 1, 1);
    SET(&x.a.v, 1, 2);
    answers(&x, "1 1 2 2", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(each_key_head_serves_its_group_for_any_ratio)
{
    const int64_t ratio[][2] = {{6, 2}, {6, 3}, {4, 1}, {4, 4}, {12, 4}, {28, 4}};
    for (size_t t = 0; t < sizeof ratio / sizeof *ratio; t++) {
        struct problem x;
        int64_t Hq = ratio[t][0], Hkv = ratio[t][1];
        begin(&x, AT_F32, 1, Hq, Hkv, 1, 1, 1, 1);
        for (int64_t g = 0; g < Hkv; g++)
            set_row(&x.a.v, 0, g, 0, (double)(g + 1));
        answers(&x, NULL, NULL);
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        for (int64_t h = 0; h < Hq; h++)
            ck_assert(paint_get(&x.got.out, 0, h, 0, 0) == (double)(h / (Hq / Hkv) + 1));
        problem_free(&x);
    }
}
END_TEST

START_TEST(a_partly_broadcast_mask_is_the_expanded_one)
{
    for (unsigned full = 0; full < 16; full++) {
        struct problem x, y;
        const int64_t all[4] = {2, 2, 3, 4};
        int64_t dim[4];
        for (int k = 0; k < 4; k++)
            dim[k] = full >> k & 1 ? all[k] : 1;
        begin(&x, AT_F32, 2, 2, 1, 3, 4, 2, 2), begin(&y, AT_F32, 2, 2, 1, 3, 4, 2, 2);
        set_painted(&x.a.k, 1), set_painted(&y.a.k, 1), set_painted(&x.a.v, 2),
            set_painted(&y.a.v, 2);
        struct at_view mask = tensor(&x, AT_U8, dim[0], dim[1], dim[2], dim[3]);
        struct paint r = paint_from(paint_seed(), full);
        for (int64_t k = 0; k < dim[0] * dim[1] * dim[2] * dim[3]; k++)
            ((uint8_t *)mask.data)[k] = paint_bits(&r) % 2;
        x.a.score.mask = at_repeated(mask, 2, 2, 3, 4);
        y.a.score.mask = tensor(&y, AT_U8, 2, 2, 3, 4);
        for (int64_t k = 0; k < 48; k++) {
            int64_t at[4] = {k / 24, k / 12 % 2, k / 4 % 3, k % 4};
            for (int d = 0; d < 4; d++)
                at[d] = at[d] % dim[d];
            ((uint8_t *)y.a.score.mask.data)[k] =
                ((uint8_t *)
                     mask.data)[((at[0] * dim[1] + at[1]) * dim[2] + at[2]) * dim[3] + at[3]];
        }
        same_bits(&x, &y, -1);
        problem_free(&x), problem_free(&y);
    }
}
END_TEST

START_TEST(a_bias_of_one_column_moves_the_log_sum_exp_alone)
{
    struct problem x, y;
    begin(&x, AT_F64, 1, 1, 1, 3, 5, 1, 1), begin(&y, AT_F64, 1, 1, 1, 3, 5, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8, 16), SET(&y.a.v, 1, 2, 4, 8, 16);
    answers(&x, "6.2 6.2 6.2", "1.6094379124341 1.6094379124341 1.6094379124341");
    struct at_view bias = tensor(&y, AT_F64, 1, 1, 3, 1);
    SET(&bias, 0.5, -1, 0x1.193ea7aad030bp+0); /* ln 3 */
    y.a.score.bias = at_repeated(bias, 1, 1, 3, 5);
    answers(&y, "6.2 6.2 6.2", "2.1094379124341 0.6094379124341 2.70805020110221");
    SET(&bias, 0.5, -(double)INFINITY, 0);
    answers(&y, "6.2 0 6.2", "2.1094379124341 -inf 1.6094379124341");
    problem_free(&x), problem_free(&y);
}
END_TEST

START_TEST(values_may_have_another_head_size)
{
    const int64_t size[][2] = {{4, 2}, {2, 5}, {1, 7}, {7, 1}};
    for (int t = 0; t < 4; t++) {
        struct problem x;
        begin(&x, AT_F32, 1, 2, 1, 3, 4, size[t][0], size[t][1]);
        set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
        answers(&x, NULL, NULL);
        problem_free(&x);
    }
}
END_TEST

START_TEST(true_means_attend)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.v, 1, 9);
    draw_mask(&x, "#.");
    answers(&x, "1", NULL);
    problem_free(&x);
}
END_TEST

/* The tensor with columns slowest, or every second element NaN. */
static struct at_view restored(struct problem *x, const struct at_view *v, bool slowest)
{
    int64_t H = v->dim[1], S = v->dim[2], D = v->dim[3];
    struct at_view y = {problem_own(x, (size_t)(2 * H * S * D) * sizeof(float)),
                        AT_F32,
                        {1, H, S, D},
                        {0, S, 1, H * S}};
    if (!slowest)
        y.stride[1] = S * D * 2, y.stride[2] = D * 2, y.stride[3] = 2;
    for (int64_t h = 0; h < H; h++)
        for (int64_t s = 0; s < S; s++)
            for (int64_t c = 0; c < D; c++)
                paint_put(&y, at_offset(&y, 0, h, s, c), paint_get(v, 0, h, s, c));
    return y;
}

START_TEST(the_innermost_stride_need_not_be_one)
{
    for (int t = 0; t < 6; t++) {
        struct problem x, y;
        begin(&x, AT_F32, 1, 2, 1, 3, 5, 4, 3), begin(&y, AT_F32, 1, 2, 1, 3, 5, 4, 3);
        set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
        y.a = x.a;
        struct at_view *v = (struct at_view *[]){&y.a.q, &y.a.k, &y.a.v}[t / 2];
        *v = restored(&y, v, t % 2);
        same_bits(&x, &y, -1);
        problem_free(&x), problem_free(&y);
    }
}
END_TEST

/* -- Pages ------------------------------------------------------------------------------------- */

START_TEST(a_page_number_is_not_cut_to_16_bits)
{
    struct problem x;
    const int32_t table[] = {65539, 3, 69999};
    const int64_t len = 3;
    begin(&x, AT_F32, 1, 1, 1, 1, 3, 1, 1);
    x.a.k = tensor(&x, AT_F32, 70000, 1, 1, 1), x.a.v = tensor(&x, AT_F32, 70000, 1, 1, 1);
    for (int64_t p = 0; p < 70000; p++)
        set_row(&x.a.v, p, 0, 0, (double)p);
    x.a.pages = (struct at_pages){table, NULL, 3}, x.a.score.kv_len = &len;
    answers(&x, "45180.3333333333", NULL);
    problem_free(&x);
}
END_TEST

/* x: keys and values of y spread over pages of `size`, all else NaN. */
static void page_out(struct problem *x, const struct problem *y, int64_t size, const int32_t *table,
                     int64_t width)
{
    const struct at_view *from[2] = {&y->a.k, &y->a.v};
    struct at_view *to[2] = {&x->a.k, &x->a.v};
    for (int t = 0; t < 2; t++) {
        int64_t D = from[t]->dim[3];
        *to[t] = at_pages_nhd(problem_own(x, (size_t)(9 * size * D) * 4), AT_F32, 9, size, 1, D);
        for (int64_t j = 0; j < y->Skv; j++)
            for (int64_t c = 0; c < D; c++)
                paint_put(to[t], at_offset(to[t], table[j / size], 0, j % size, c),
                          paint_get(from[t], 0, 0, j, c));
    }
    x->a.pages = (struct at_pages){table, NULL, width};
}

START_TEST(a_paged_cache_is_not_read_as_contiguous)
{
    struct problem x, y;
    const int32_t table[] = {5, 2, 7};
    const int64_t len = 5;
    begin(&x, AT_F32, 1, 1, 1, 2, 5, 3, 2), begin(&y, AT_F32, 1, 1, 1, 2, 5, 3, 2);
    set_painted(&y.a.k, 1), set_painted(&y.a.v, 2);
    page_out(&x, &y, 2, table, 3);
    x.a.score.kv_len = &len;
    same_bits(&y, &x, -1);
    answers(&x, NULL, NULL);
    problem_free(&x), problem_free(&y);
}
END_TEST

START_TEST(a_page_allocated_ahead_does_not_count)
{
    const int64_t length[] = {4, 5, 7, 8, 9};
    const int32_t table[] = {3, 8, 1, 6, 0};
    for (int t = 0; t < 5; t++)
        for (int64_t spare = 0; spare <= 2; spare++) {
            struct problem x, y;
            begin(&x, AT_F32, 1, 1, 1, 1, length[t], 2, 2),
                begin(&y, AT_F32, 1, 1, 1, 1, length[t], 2, 2);
            set_painted(&y.a.k, 1), set_painted(&y.a.v, 2);
            page_out(&x, &y, 4, table, (length[t] + 3) / 4 + spare);
            x.a.score.kv_len = &length[t];
            same_bits(&y, &x, -1);
            for (int64_t s = 0; s < 4; s++) { /* a page ahead: keys 0, values 1e4 */
                int64_t ahead = table[(length[t] + 3) / 4];
                set_row(&x.a.k, ahead, 0, s, 0), set_row(&x.a.v, ahead, 0, s, 1e4);
            }
            same_bits(&y, &x, -1);
            problem_free(&x), problem_free(&y);
        }
}
END_TEST

/* -- Dropout, the smallest problem ------------------------------------------------------------- */

START_TEST(a_kept_weight_counts_more_and_the_log_sum_exp_not)
{
    struct problem x; /* idea 80, forward */
    begin(&x, AT_F32, 1, 1, 1, 1, 2, 1, 1);
    SET(&x.a.v, 1, 3);
    x.a.dropout.p = 0.25;
    x.a.dropout.keep = tensor(&x, AT_U8, 1, 1, 1, 2);
    SET(&x.a.dropout.keep, 1, 0);
    answers(&x, "0.666666666666667", "0.693147180559945");
    set_row(&x.a.v, 0, 0, 1, (double)NAN); /* dropped: not read */
    answers(&x, "0.666666666666667", "0.693147180559945");
    problem_free(&x);
}
END_TEST

START_TEST(one_query_and_one_key_give_the_value_and_the_score)
{
    struct problem x; /* idea 83, forward */
    begin(&x, AT_F32, 1, 1, 1, 1, 1, 16, 1);
    SET(&x.a.q, 5, -4.5, 5.5), SET(&x.a.k, -5, 4, 4.75), SET(&x.a.v, 5.25);
    answers(&x, "5.25", "-109.375");
    problem_free(&x);
}
END_TEST

const struct idea catalogue_layout[] = {
    {66, "Key heads tiled instead of repeated", "here", &key_heads_are_repeated_not_tiled},
    {67, "Head map right only for square ratios", "here",
     &each_key_head_serves_its_group_for_any_ratio},
    {68, "dK,dV not summed over the group", "backward", NULL},
    {69, "Partially broadcast mask", "here", &a_partly_broadcast_mask_is_the_expanded_one},
    {70, "Mask whose last dimension is 1", "here",
     &a_bias_of_one_column_moves_the_log_sum_exp_alone},
    {71, "dO assumed contiguous", "backward", NULL},
    {72, "Value head size differs from query head size", "here",
     &values_may_have_another_head_size},
    {73, "Meaning of True in a mask", "here", &true_means_attend},
    {74, "Innermost dimension not contiguous", "here", &the_innermost_stride_need_not_be_one},
    {75, "Block number cut to 16 bits", "here", &a_page_number_is_not_cut_to_16_bits},
    {76, "Paged cache read as contiguous", "here", &a_paged_cache_is_not_read_as_contiguous},
    {77, "Length from the number of pages", "here", &a_page_allocated_ahead_does_not_count},
    {78, "Product formed in int before widening", "check_index: offsets_are_formed_in_64_bits",
     NULL},
    {79, "Mask offset wraps at 2^32", "check_index: mask_offsets_pass_two_to_the_32", NULL},
    {80, "Dropout in backward", "backward", &a_kept_weight_counts_more_and_the_log_sum_exp_not},
    {81, "dQ differs from run to run", "check_engines: threads_and_query_tiles_change_no_bit",
     NULL},
    {82, "Zero cotangent gives non-zero gradients", "backward", NULL},
    {83, "One query, one key", "backward", &one_query_and_one_key_give_the_value_and_the_score},
    {84, "Broadcast bias gradient: last writer wins", "backward", NULL},
    {0, NULL, NULL, NULL}};

/* Ideas 26 .. 46: causal corners and windows, tile tails, memory that is not the problem's, ragged
 * batches. SPDX-License-Identifier: MIT */
#include "catalogue.h"
#include "ref.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

/* -- Causal corners, windows ------------------------------------------------------------------- */

START_TEST(the_causal_corner_is_the_one_that_the_offset_names)
{
    struct problem x;
    int64_t offset = 3;
    begin(&x, AT_F32, 1, 1, 1, 2, 5, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8, 16);
    x.a.score.right = 0, x.a.score.offset = &offset;
    answers(&x, "3.75 6.2", "1.38629436111989 1.6094379124341");
    x.a.score.offset = NULL;
    answers(&x, "1 1.5", "0 0.693147180559945");
    problem_free(&x);
}
END_TEST

START_TEST(one_query_is_not_excused_from_the_causal_rule)
{
    struct problem x;
    int64_t offset = 3;
    begin(&x, AT_F32, 1, 1, 1, 1, 4, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8);
    x.a.score.right = 0;
    answers(&x, "1", "0");
    x.a.score.offset = &offset;
    answers(&x, "3.75", "1.38629436111989");
    problem_free(&x);
}
END_TEST

START_TEST(each_sequence_has_its_own_offset)
{
    struct problem x;
    const int64_t len[] = {3, 8}, offset[] = {1, 6}, one[] = {1, 1}, behind[] = {-1, -1};
    begin(&x, AT_F32, 2, 1, 1, 2, 8, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8, 16, 32, 64, 128);
    x.a.score.right = 0, x.a.score.kv_len = len, x.a.score.offset = offset;
    answers(&x, "1.5 2.33333333333333 18.1428571428571 31.875", NULL);
    x.a.score.kv_len = one, x.a.score.offset = behind; /* shorter than Sq */
    answers(&x, "0 1 0 1", "-inf 0 -inf 0");
    problem_free(&x);
}
END_TEST

START_TEST(the_left_bound_is_inclusive)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 6, 6, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8, 16, 32);
    x.a.score.right = 0, x.a.score.left = 1; /* W = 2, counting itself */
    answers(&x, "1 1.5 3 6 12 24", NULL);
    x.a.score.left = 2;
    answers(&x, "1 1.5 ? ? ? 18.6666666666667", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(the_right_bound_is_inclusive)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 6, 6, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8, 16, 32);
    x.a.score.left = 0, x.a.score.right = 2;
    answers(&x, "2.33333333333333 4.66666666666667 9.33333333333333 18.6666666666667 24 32", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(a_window_of_zero_is_the_key_itself)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 3, 3, 1, 1);
    SET(&x.a.v, 1, 2, 4);
    x.a.score.left = x.a.score.right = 0;
    answers(&x, "1 2 4", "0 0 0");
    x.a.score.left = x.a.score.right = AT_UNBOUNDED;
    answers(&x, "2.33333333333333 2.33333333333333 2.33333333333333", NULL);
    x.a.score.left = -2;
    ck_assert_int_eq(at_validate(&x.a, NULL), AT_ERR_WINDOW);
    problem_free(&x);
}
END_TEST

START_TEST(a_window_does_not_replace_the_callers_mask)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 4, 4, 1, 1);
    SET(&x.a.v, 1, 2, 4, 8);
    x.a.score.right = 0, x.a.score.left = 2;
    draw_mask(&x, "#.## #.## #.## #.##");
    answers(&x, "1 1 2.5 6", NULL);
    problem_free(&x);
}
END_TEST

START_TEST(rows_before_a_changed_key_keep_their_bits)
{
    for (int64_t n = 1; n <= 9; n++)
        for (int64_t t = 1; t < n; t++) {
            struct problem x, y;
            begin(&x, AT_F32, 1, 1, 1, n, n, 4, 3), begin(&y, AT_F32, 1, 1, 1, n, n, 4, 3);
            set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
            set_painted(&y.a.q, 1), set_painted(&y.a.k, 2), set_painted(&y.a.v, 3);
            for (int64_t j = t; j < n; j++)
                set_row(&y.a.k, 0, 0, j, 30), set_row(&y.a.v, 0, 0, j, -1e6);
            x.a.score.right = y.a.score.right = 0;
            same_bits(&x, &y, t);
            problem_free(&x), problem_free(&y);
        }
}
END_TEST

START_TEST(a_causal_row_and_a_free_row_differ)
{
    struct problem x; /* idea 35, forward */
    begin(&x, AT_F32, 1, 1, 1, 2, 2, 1, 1);
    SET(&x.a.q, 1, 2), SET(&x.a.k, 0, 1), SET(&x.a.v, 1, 3);
    answers(&x, "2.46211715726001 2.76159415595576", NULL);
    x.a.score.right = 0;
    answers(&x, "1 2.76159415595576", NULL);
    problem_free(&x);
}
END_TEST

/* -- Tails, padding, garbage ------------------------------------------------------------------- */

START_TEST(lanes_past_the_tail_are_not_counted)
{
    struct problem x;
    begin(&x, AT_F32, 1, 1, 1, 1, 5, 1, 1);
    SET(&x.a.q, 0), set_painted(&x.a.k, 1), SET(&x.a.v, 1);
    answers(&x, "1", "1.6094379124341");
    problem_free(&x);
}
END_TEST

START_TEST(softcap_does_not_revive_lanes_past_the_tail)
{
    struct problem x;
    const char *const lse[2] = {"1.6094379124341", "4.17438726989564"};
    for (int t = 0; t < 2; t++) {
        begin(&x, AT_F32, 1, 1, 1, 1, t ? 65 : 5, 1, 1);
        SET(&x.a.q, 0), set_painted(&x.a.k, 1), SET(&x.a.v, 1);
        x.a.score.softcap = 1;
        answers(&x, "1", lse[t]);
        problem_free(&x);
    }
}
END_TEST

/* Quiet NaN, signalling NaN, infinities, the largest number. */
static float garbage(int k)
{
    const uint32_t bits[] = {0x7fc00000, 0x7f800001, 0x7f800000, 0xff800000, 0x7f7fffff};
    float x;
    memcpy(&x, &bits[k], 4);
    return x;
}

static void put_garbage(const struct at_view *v, int64_t from, int k)
{
    float *data = v->data, x = garbage(k);
    for (int64_t t = from * v->dim[3]; t < v->dim[2] * v->dim[3]; t++)
        memcpy(&data[t], &x, 4);
}

START_TEST(slots_past_the_length_may_hold_anything)
{
    const int64_t len = 3;
    for (int k = 0; k < 5; k++) {
        struct problem x, y, compact;
        begin(&x, AT_F32, 1, 1, 1, 2, 8, 2, 2), begin(&y, AT_F32, 1, 1, 1, 2, 8, 2, 2);
        begin(&compact, AT_F32, 1, 1, 1, 2, 3, 2, 2);
        SET(&x.a.k, 1, 2, -1, 0.5, 0, 1), SET(&y.a.k, 1, 2, -1, 0.5, 0, 1);
        SET(&x.a.v, 3, 1, 4, 1, 5, 9), SET(&y.a.v, 3, 1, 4, 1, 5, 9);
        SET(&compact.a.k, 1, 2, -1, 0.5, 0, 1), SET(&compact.a.v, 3, 1, 4, 1, 5, 9);
        put_garbage(&x.a.k, 3, k), put_garbage(&x.a.v, 3, k);
        x.a.score.kv_len = y.a.score.kv_len = &len;
        answers(&x, "? ? ? ?", NULL);
        same_bits(&y, &x, -1);
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        ck_assert_int_eq(at_forward(&at_scalar, &compact.a, &compact.got), AT_OK);
        ck_assert(paint_same(&x.got.out, &compact.got.out) &&
                  paint_same(&x.got.lse, &compact.got.lse));
        problem_free(&x), problem_free(&y), problem_free(&compact);
    }
}
END_TEST

START_TEST(a_hidden_position_may_hold_anything)
{
    for (int k = 0; k < 5; k++) {
        struct problem x, y;
        begin(&x, AT_F32, 1, 1, 1, 2, 2, 1, 1), begin(&y, AT_F32, 1, 1, 1, 2, 2, 1, 1);
        SET(&x.a.k, 1, 1), SET(&y.a.k, 1, 1), SET(&x.a.v, 5, 5), SET(&y.a.v, 5, 5);
        put_garbage(&x.a.k, 1, k), put_garbage(&x.a.v, 1, k);
        draw_mask(&x, "#. #."), draw_mask(&y, "#. #.");
        answers(&x, "5 5", "1 1");
        same_bits(&y, &x, -1);
        problem_free(&x), problem_free(&y);
    }
}
END_TEST

START_TEST(a_padded_half_tile_is_not_scored_zero)
{
    struct problem x; /* idea 40, forward */
    begin(&x, AT_F32, 1, 1, 1, 1, 3, 1, 1);
    SET(&x.a.q, -1), SET(&x.a.k, 100, 101, 102), SET(&x.a.v, 1, 2, 6);
    answers(&x, "1.6948813369067", "-99.5923940355556");
    problem_free(&x);
}
END_TEST

START_TEST(rows_past_the_last_offset_are_zero_and_read_by_nobody)
{
    struct problem x;
    const int64_t start[] = {0, 3}, len[] = {3, 4};
    begin(&x, AT_F32, 1, 1, 1, 10, 10, 1, 1);
    SET(&x.a.v, 1, 2, 4, 3, 3, 3, 3);
    put_garbage(&x.a.q, 7, 0), put_garbage(&x.a.k, 7, 0), put_garbage(&x.a.v, 7, 0);
    x.a.score.q_start = x.a.score.kv_start = start, x.a.score.q_len = x.a.score.kv_len = len;
    x.a.score.sequences = 2;
    answers(&x, "2.33333333333333 2.33333333333333 2.33333333333333 3 3 3 3 0 0 0",
            "? ? ? 1.38629436111989 ? ? ? -inf -inf -inf");
    problem_free(&x);
}
END_TEST

START_TEST(odd_head_sizes_have_no_stale_columns)
{
    const int64_t D[] = {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 72, 80, 104};
    for (size_t t = 0; t < sizeof D / sizeof *D; t++) {
        struct problem x, y;
        begin(&x, AT_F32, 1, 1, 1, 5, 5, D[t], D[t]),
            begin(&y, AT_F32, 1, 1, 1, 5, 5, D[t] + 3, D[t]);
        set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
        set_painted(&y.a.v, 3), SET(&y.a.q, 0);
        for (int64_t s = 0; s < 5; s++)
            for (int64_t c = 0; c < D[t]; c++) { /* y: three columns of zeros more */
                paint_put(&y.a.q, s * (D[t] + 3) + c, paint_get(&x.a.q, 0, 0, s, c));
                paint_put(&y.a.k, s * (D[t] + 3) + c, paint_get(&x.a.k, 0, 0, s, c));
            }
        answers(&x, NULL, NULL);
        same_bits(&x, &y, -1);
        problem_free(&x), problem_free(&y);
    }
}
END_TEST

/* -- Ragged batches ---------------------------------------------------------------------------- */

START_TEST(empty_sequences_do_not_shift_the_others)
{
    struct problem x, y;
    const int64_t q_len[] = {1, 0, 1, 0}, kv_len[] = {3, 0, 5, 2}, q_start[] = {0, 1, 1, 2};
    const int64_t kv_start[] = {0, 3, 3, 8}, offset[] = {2, 0, 4, 2};
    for (int64_t b = 0; b <= 2; b += 2) {
        begin(&x, AT_F32, 1, 6, 2, 2, 10, 4, 2), begin(&y, AT_F32, 1, 6, 2, 1, kv_len[b], 4, 2);
        set_painted(&x.a.q, 1), set_painted(&x.a.k, 2), set_painted(&x.a.v, 3);
        x.a.score.q_len = q_len, x.a.score.kv_len = kv_len, x.a.score.right = 0;
        x.a.score.q_start = q_start, x.a.score.kv_start = kv_start, x.a.score.offset = offset;
        x.a.score.sequences = 4;
        answers(&x, NULL, NULL);
        y.a = at_plain(x.a.q, x.a.k, x.a.v, 1); /* sequence b alone, in place */
        y.a.q.data = (float *)x.a.q.data + q_start[b] * 4, y.a.q.dim[2] = 1;
        y.a.k.data = (float *)x.a.k.data + kv_start[b] * 4, y.a.k.dim[2] = kv_len[b];
        y.a.v.data = (float *)x.a.v.data + kv_start[b] * 2, y.a.v.dim[2] = kv_len[b];
        x.got.out.data = problem_own(&x, 96), x.got.lse.data = problem_own(&x, 48);
        ck_assert_int_eq(at_forward(&at_scalar, &x.a, &x.got), AT_OK);
        ck_assert_int_eq(at_forward(&at_scalar, &y.a, &y.got), AT_OK);
        for (int64_t h = 0; h < 6; h++)
            for (int64_t c = 0; c < 2; c++)
                ck_assert(paint_get(&x.got.out, 0, h, q_start[b], c) ==
                          paint_get(&y.got.out, 0, h, 0, c));
        problem_free(&x), problem_free(&y);
    }
}
END_TEST

const struct idea catalogue_masks[] = {
    {26, "Which corner is the causal mask tied to", "here",
     &the_causal_corner_is_the_one_that_the_offset_names},
    {27, "Single-query shortcut", "here", &one_query_is_not_excused_from_the_causal_rule},
    {28, "Offset differs per batch entry", "here", &each_sequence_has_its_own_offset},
    {29, "Window counts itself or not", "here", &the_left_bound_is_inclusive},
    {30, "Right bound exclusive", "here", &the_right_bound_is_inclusive},
    {31, "Window wipes the causal mask",
     "check_index: a_window_and_the_causal_rule_bound_from_both_sides", NULL},
    {32, "What does window 0 mean", "here", &a_window_of_zero_is_the_key_itself},
    {33, "Window replaces the caller mask", "here", &a_window_does_not_replace_the_callers_mask},
    {34, "Causal mask applied once per four rows", "here",
     &rows_before_a_changed_key_keep_their_bits},
    {35, "Backward ignores the causal flag", "backward", &a_causal_row_and_a_free_row_differ},
    {36, "Non-causal tail lanes counted", "here", &lanes_past_the_tail_are_not_counted},
    {37, "Softcap revives padded lanes", "here", &softcap_does_not_revive_lanes_past_the_tail},
    {38, "NaN beyond the valid length", "here", &slots_past_the_length_may_hold_anything},
    {39, "NaN at a hidden position", "here", &a_hidden_position_may_hold_anything},
    {40, "Padded half tile scored 0 in backward", "backward",
     &a_padded_half_tile_is_not_scored_zero},
    {41, "Buffers longer than the last offset", "here",
     &rows_past_the_last_offset_are_zero_and_read_by_nobody},
    {42, "Stale columns for odd head sizes", "here", &odd_head_sizes_have_no_stale_columns},
    {43, "Longest query is 1 and some sequences are empty", "here",
     &empty_sequences_do_not_shift_the_others},
    {44, "Empty query segment with keys, backward", "backward", NULL},
    {45, "Batch stride of one token",
     "check_engines: a_row_alone_has_the_bits_that_it_has_in_its_batch", NULL},
    {46, "Head size zero for Q and K",
     "check_validate: each_misuse_earns_its_status_and_its_sentence", NULL},
    {0, NULL, NULL, NULL}};

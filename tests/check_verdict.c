/* The judge over whole tensors: each element against its own row's answer, wherever it is stored.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"
#include <check.h>
#include <math.h>

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
    w->got =
        (struct at_result){at_thd(w->out, AT_BF16, T, H, 2 * C), at_thd(w->lse, AT_F32, T, H, 1)};
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
    ck_assert_int_eq(
        at_compare(&w.a, &w.got, (struct at_rows){1, &place}, &w.arith, &w.x, NULL, &v), AT_OK);
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
    Suite *suite = suite_create("verdict");
    TCase *t = tcase_create("verdict");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_element_is_held_against_the_row_that_it_belongs_to);
    tcase_add_test(t, all_nan_fails_and_nothing_is_no_pass_of_anything);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

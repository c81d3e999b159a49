/* States between libraries: every form there and back, every mark, every place of a log-sum-exp.
 * Values are chosen so that the arithmetic is exact: equality throughout.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { H = 2, S = 3, Dv = 2, ROWS = H * S };

/* m, l, u of six rows; row 4 has seen nothing. l are powers of two and m multiples of ln 2 rounded
 * once, so u/l and u are exact. */
static float m[ROWS], l[ROWS], u[ROWS * Dv];
static struct at_state state;

static void set_up(void)
{
    for (int t = 0; t < ROWS; t++) {
        m[t] = (float)(t - 2);
        l[t] = (float)(1 << t);
        for (int c = 0; c < Dv; c++)
            u[t * Dv + c] = (float)(t * 3 + c - 5);
    }
    m[4] = -INFINITY, l[4] = 0, u[8] = u[9] = 0;
    state = (struct at_state){at_bhsd(m, AT_F32, 1, H, S, 1), at_bhsd(l, AT_F32, 1, H, S, 1),
                              at_bhsd(u, AT_F32, 1, H, S, Dv)};
}

struct other {
    float out[ROWS * Dv], lse[ROWS], l[ROWS];
    struct at_foreign x;
};

static void foreign(struct other *to, enum at_form form, double mark, bool nan)
{
    for (int t = 0; t < ROWS * Dv; t++)
        to->out[t] = NAN;
    to->x = (struct at_foreign){.form = form,
                                .out = at_bhsd(to->out, AT_F32, 1, H, S, Dv),
                                .lse = at_bhsd(to->lse, AT_F32, 1, H, S, 1),
                                .l = at_bhsd(to->l, AT_F32, 1, H, S, 1),
                                .empty_lse = mark,
                                .empty_nan = nan};
    ck_assert_int_eq(at_to_foreign(&state, &to->x), AT_OK);
}

/* A state read back into NaN-filled memory. */
static struct at_state back(const struct other *from, float *space)
{
    for (int t = 0; t < ROWS * (Dv + 2); t++)
        space[t] = NAN;
    struct at_state x = {at_bhsd(space, AT_F32, 1, H, S, 1),
                         at_bhsd(space + ROWS, AT_F32, 1, H, S, 1),
                         at_bhsd(space + 2 * ROWS, AT_F32, 1, H, S, Dv)};
    ck_assert_int_eq(at_from_foreign(&from->x, &x), AT_OK);
    return x;
}

static void is_empty(const float *space, int row)
{
    ck_assert(space[row] == -INFINITY && space[ROWS + row] == 0);
    for (int c = 0; c < Dv; c++)
        ck_assert(space[2 * ROWS + row * Dv + c] == 0);
}

START_TEST(forms_that_keep_the_sums_come_back_to_the_bit)
{
    float space[ROWS * (Dv + 2)];
    for (int form = AT_OUT_M_L; form <= AT_U_M_L; form++) {
        struct other x;
        foreign(&x, (enum at_form)form, -INFINITY, false);
        back(&x, space);
        ck_assert(memcmp(space, m, sizeof m) == 0);
        ck_assert(memcmp(space + ROWS, l, sizeof l) == 0);
        ck_assert(memcmp(space + 2 * ROWS, u, sizeof u) == 0);
        for (int c = 0; c < Dv; c++)
            ck_assert(x.out[3 * Dv + c] == (form == AT_U_M_L ? u[3 * Dv + c] : u[3 * Dv + c] / 8));
    }
}
END_TEST

START_TEST(out_and_lse_come_back_as_a_state_of_one_key)
{
    float space[ROWS * (Dv + 2)];
    struct other x;
    foreign(&x, AT_OUT_LSE, -INFINITY, false);
    back(&x, space);
    for (int t = 0; t < ROWS; t++) {
        if (t == 4)
            continue;
        ck_assert(space[t] == x.lse[t] && space[ROWS + t] == 1);
        ck_assert(x.out[t * Dv] == u[t * Dv] / l[t]);
        ck_assert(space[2 * ROWS + t * Dv] == x.out[t * Dv]);
    }
    ck_assert(x.lse[0] == m[0]); /* l = 1 */
    is_empty(space, 4);
}
END_TEST

START_TEST(base_two_is_base_e_over_the_logarithm_of_two)
{
    struct other x, y;
    float space[ROWS * (Dv + 2)];
    foreign(&x, AT_OUT_LSE, -INFINITY, false);
    foreign(&y, AT_OUT_LSE2, -INFINITY, false);
    for (int t = 0; t < ROWS; t++)
        ck_assert(t == 4 || y.lse[t] == x.lse[t] * 0x1.715476p+0f);
    back(&y, space);
    for (int t = 0; t < ROWS; t++)
        ck_assert(t == 4 || space[t] == y.lse[t] * 0x1.62e430p-1f);
    is_empty(space, 4);
}
END_TEST

START_TEST(every_mark_of_an_empty_row_is_written_and_read)
{
    const double marks[] = {-INFINITY, INFINITY, 0, -1e30};
    float space[ROWS * (Dv + 2)];
    for (int form = AT_OUT_LSE; form <= AT_U_M_L; form++)
        for (int k = 0; k < 8; k++) {
            struct other x;
            foreign(&x, (enum at_form)form, marks[k / 2], k % 2 == 1);
            ck_assert(x.lse[4] == (float)marks[k / 2]);
            ck_assert(k % 2 ? isnan(x.out[8]) && isnan(x.out[9]) : x.out[8] == 0 && x.out[9] == 0);
            ck_assert(!isnan(x.out[0]));
            back(&x, space);
            is_empty(space, 4);
        }
}
END_TEST

START_TEST(two_shards_merge_alike_by_sums_and_by_lse_where_that_is_exact)
{
    /* One key each, equal scores: weights 1/2, whatever the form. */
    float ma[] = {3}, la[] = {1}, ua[] = {2, 6}, mb[] = {3}, lb[] = {1}, ub[] = {4, 2}, out[2],
          lse[1];
    struct at_state a = {at_bhsd(ma, AT_F32, 1, 1, 1, 1), at_bhsd(la, AT_F32, 1, 1, 1, 1),
                         at_bhsd(ua, AT_F32, 1, 1, 1, 2)};
    struct at_state b = {at_bhsd(mb, AT_F32, 1, 1, 1, 1), at_bhsd(lb, AT_F32, 1, 1, 1, 1),
                         at_bhsd(ub, AT_F32, 1, 1, 1, 2)};
    struct at_foreign f = {.form = AT_OUT_LSE,
                           .out = at_bhsd(out, AT_F32, 1, 1, 1, 2),
                           .lse = at_bhsd(lse, AT_F32, 1, 1, 1, 1),
                           .empty_lse = -INFINITY};
    ck_assert_int_eq(at_to_foreign(&b, &f), AT_OK);
    ck_assert_int_eq(at_from_foreign(&f, &b), AT_OK);
    ck_assert_int_eq(at_merge(&a, &b), AT_OK);
    ck_assert(ma[0] == 3 && la[0] == 2 && ua[0] == 6 && ua[1] == 8);
}
END_TEST

START_TEST(packed_log_sum_exps_lie_where_their_names_say)
{
    enum { T = 5 };
    float ht[H * T], th[T * H];
    struct at_view x = at_lse_ht(ht, AT_F32, T, H), y = at_lse_th(th, AT_F32, T, H);
    for (int h = 0; h < H; h++)
        for (int t = 0; t < T; t++) {
            ck_assert_int_eq(at_offset(&x, 0, h, t, 0), h * T + t);
            ck_assert_int_eq(at_offset(&y, 0, h, t, 0), t * H + h);
        }
}
END_TEST

START_TEST(padding_and_unpadding_move_the_rows_of_sequences_and_nothing_else)
{
    enum { B = 3, T = 7, LONGEST = 3 };
    int64_t start[B] = {0, 2, 3}, len[B] = {2, 0, 3};
    float q[T * H], packed[T * H], padded[B * H * LONGEST];
    struct at_attention a = at_plain(at_thd(q, AT_F32, T, H, 1), at_bhsd(q, AT_F32, B, H, 1, 1),
                                     at_bhsd(q, AT_F32, B, H, 1, 1), 1);
    a.score.q_start = start, a.score.q_len = len, a.score.sequences = B;
    for (int t = 0; t < T * H; t++)
        packed[t] = (float)t;
    for (int t = 0; t < B * H * LONGEST; t++)
        padded[t] = -1;
    struct at_view x = at_lse_th(packed, AT_F32, T, H),
                   y = at_bhsd(padded, AT_F32, B, H, LONGEST, 1);
    ck_assert_int_eq(at_pad(&a, &x, &y), AT_OK);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < LONGEST; i++)
                ck_assert(padded[(b * H + h) * LONGEST + i] ==
                          (i < len[b] ? (float)((start[b] + i) * H + h) : -1));
    float again[T * H];
    for (int t = 0; t < T * H; t++)
        again[t] = -2;
    x.data = again;
    ck_assert_int_eq(at_unpad(&a, &y, &x), AT_OK);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < H; h++)
            ck_assert(again[t * H + h] == (t == 2 || t > 5 ? -2 : packed[t * H + h]));
}
END_TEST

START_TEST(misuse_is_told_and_nothing_is_written)
{
    struct other x;
    foreign(&x, AT_OUT_M_L, -INFINITY, false);
    float before[ROWS * (Dv + 2)];
    back(&x, before);
    struct at_state to = state;
    struct at_foreign y = x.x;
    y.l.data = NULL;
    ck_assert_int_eq(at_from_foreign(&y, &to), AT_ERR_MISSING);
    y = x.x, y.lse.dim[2] = 2;
    ck_assert_int_eq(at_from_foreign(&y, &to), AT_ERR_SHAPE);
    y = x.x, y.out.dtype = AT_I32;
    ck_assert_int_eq(at_to_foreign(&to, &y), AT_ERR_DTYPE);
    to.l.dtype = AT_F64;
    ck_assert_int_eq(at_to_foreign(&to, &x.x), AT_ERR_DTYPE);
    ck_assert(memcmp(before + ROWS, l, sizeof l) == 0);
    struct at_view wrong = at_bhsd(NULL, AT_F32, 1, H, S, 2);
    struct at_attention a =
        at_plain(at_bhsd(u, AT_F32, 1, H, S, Dv), at_bhsd(u, AT_F32, 1, H, S, Dv),
                 at_bhsd(u, AT_F32, 1, H, S, Dv), 1);
    ck_assert_int_eq(at_pad(&a, &state.m, &wrong), AT_ERR_SHAPE);
    wrong = state.m, wrong.dtype = AT_F64;
    ck_assert_int_eq(at_unpad(&a, &wrong, &state.m), AT_ERR_DTYPE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("state");
    TCase *t = tcase_create("forms");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, forms_that_keep_the_sums_come_back_to_the_bit);
    tcase_add_test(t, out_and_lse_come_back_as_a_state_of_one_key);
    tcase_add_test(t, base_two_is_base_e_over_the_logarithm_of_two);
    tcase_add_test(t, every_mark_of_an_empty_row_is_written_and_read);
    tcase_add_test(t, two_shards_merge_alike_by_sums_and_by_lse_where_that_is_exact);
    tcase_add_test(t, packed_log_sum_exps_lie_where_their_names_say);
    tcase_add_test(t, padding_and_unpadding_move_the_rows_of_sequences_and_nothing_else);
    tcase_add_test(t, misuse_is_told_and_nothing_is_written);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

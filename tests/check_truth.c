/* Truth against numbers worked out by hand, and the kinds that infinities and NaN make.
 * SPDX-License-Identifier: MIT */
#include "truth_cases.h"

/* -- Numbers from the catalogue of faults ------------------------------------------------------ */

/* Fifteen digits, cut: so many are compared. */
static void expect_digits(const char *what, double got, double right)
{
    double unit = right == 0 ? 0 : pow(10, floor(log10(fabs(right))) - 14);
    ck_assert_msg(fabs(got - right) <= unit, "%s: %.17g, expected %.15g", what, got, right);
}

START_TEST(catalogue_numbers_come_out_to_their_last_digit)
{
    struct known x = known[_i];
    struct at_attention a = row_of(x.n, x.s, x.v);
    a.score.scale = x.scale;
    a.score.softcap = x.cap;
    a.score.sink = at_bhsd(&x.sink, AT_F64, 1, 1, 1, 1); /* -inf: absent */
    struct one y = truth_of(&a);
    expect_digits(x.name, y.hi, x.out);
    expect_digits(x.name, y.lse, x.lse);
    ck_assert_int_ge(y.bits, 106);
    ck_assert_int_ge(y.lse_bits, 106);
}
END_TEST

START_TEST(alibi_falls_with_distance_and_is_0_at_the_row_itself)
{
    double s[3] = {0, 0, 0}, v[3] = {1, 2, 4}, slope = 0.5;
    const int64_t offset = 2;
    struct at_attention a = row_of(3, s, v);
    a.score.alibi = at_bhsd(&slope, AT_F64, 1, 1, 1, 1);
    a.score.offset = &offset;
    struct one y = truth_of(&a);
    expect_digits("57", y.hi, 2.82663705888546);
    expect_digits("57 lse", y.lse, 0.680269670641735);
}
END_TEST

START_TEST(bias_is_added_after_scale_and_hides_where_minus_infinite)
{
    double s[3] = {0, 0, NAN}, v[3] = {0, 1, NAN};
    double bias[3] = {0, 1.0986122886681098, -INFINITY}; /* ln 3 */
    struct at_attention a = row_of(3, s, v);
    a.score.scale = 0.125;
    a.score.bias = at_bhsd(bias, AT_F64, 1, 1, 1, 3);
    struct one y = truth_of(&a);
    expect_digits("59", y.hi, 0.75);
    expect_digits("59 lse", y.lse, 1.38629436111989);
}
END_TEST

START_TEST(a_shift_of_all_scores_cancels_whatever_its_size)
{
    double s[2] = {0, 1}, v[2] = {1, 3}, bias[2] = {-0x1.fffffep+127, -0x1.fffffep+127};
    struct at_attention a = row_of(2, s, v);
    double plain = truth_of(&a).hi;
    a.score.bias = at_bhsd(bias, AT_F64, 1, 1, 1, 2);
    expect("11", truth_of(&a).hi, plain);
    expect_digits("11", plain, 2.46211715726001);
}
END_TEST

START_TEST(descale_of_keys_is_in_the_scores_and_that_of_values_is_not)
{
    unsigned char k[2] = {0x40, 0x00}, v[2] = {0x48, 0x50}; /* e4m3: 2, 0 and 4, 8 */
    double ks = 0.5, vs = 0.25;
    struct at_attention a = row_of(2, NULL, NULL);
    a.k = at_bhsd(k, AT_F8_E4M3, 1, 1, 2, 1);
    a.v = at_bhsd(v, AT_F8_E4M3, 1, 1, 2, 1);
    a.score.kscale = at_repeated(at_bhsd(&ks, AT_F64, 1, 1, 1, 1), 1, 1, 2, 1);
    a.score.vscale = at_repeated(at_bhsd(&vs, AT_F64, 1, 1, 1, 1), 1, 1, 2, 1);
    struct one y = truth_of(&a);
    expect_digits("61", y.hi, 1.26894142136999);
    expect_digits("61 lse", y.lse, 1.31326168751822);
}
END_TEST

START_TEST(both_causal_corners_see_their_keys)
{
    double q[2] = {0, 0}, s[5] = {0, 0, 0, 0, 0}, v[5] = {1, 2, 4, 8, 16};
    const double right[2][2] = {{1, 1.5}, {3.75, 6.2}};
    for (int corner = 0; corner < 2; corner++) {
        const int64_t offset = 3 * corner;
        struct at_attention a = row_of(5, s, v);
        a.q = at_bhsd(q, AT_F64, 1, 1, 2, 1);
        a.score.right = 0;
        a.score.offset = &offset;
        struct at_answer x = answers(&a);
        expect("26", x.out[0], right[corner][0]);
        expect("26", x.out[1], right[corner][1]);
        at_answer_free(&x);
    }
}
END_TEST

START_TEST(dropout_counts_kept_values_more_and_leaves_the_lse)
{
    double s[2] = {0, 0}, v[2] = {1, NAN};
    double descale[2] = {1, NAN}; /* what is dropped is not read */
    uint8_t keep[2] = {1, 0};
    struct at_attention a = row_of(2, s, v);
    a.score.vscale = at_bhsd(descale, AT_F64, 1, 1, 2, 1);
    a.dropout.p = 0.25;
    a.dropout.keep = at_bhsd(keep, AT_U8, 1, 1, 1, 2);
    struct one y = truth_of(&a);
    expect("80", y.hi, 2 / 3.0);
    expect_digits("80 lse", y.lse, 0.693147180559945);
}
END_TEST

/* -- Infinities, NaN, empty rows --------------------------------------------------------------- */

static bool alike(double x, double y) { return x == y || (isnan(x) && isnan(y)); }

START_TEST(infinities_and_nan_follow_the_rules)
{
    struct rule x = rules[_i];
    struct at_attention a = row_of(x.n, x.s, x.v);
    a.score.sink = at_bhsd(&x.sink, AT_F64, 1, 1, 1, 1);
    struct one y = truth_of(&a);
    ck_assert_msg(alike(y.hi, x.out) && alike(y.lse, x.lse), "%s: out %g, lse %g", x.name, y.hi,
                  y.lse);
}
END_TEST

START_TEST(an_infinite_descale_meets_each_product)
{
    double q[2] = {3, 1}, k[2] = {1, 1}, v[1] = {7}, descale = INF;
    struct at_attention a = at_plain(at_bhsd(q, AT_F64, 1, 1, 1, 2), at_bhsd(k, AT_F64, 1, 1, 1, 2),
                                     at_bhsd(v, AT_F64, 1, 1, 1, 1), 1);
    a.score.softcap = 5;
    struct at_view *x[2] = {&a.score.qscale, &a.score.kscale};
    for (int t = 0; t < 2; t++) {
        *x[t] = at_bhsd(&descale, AT_F64, 1, 1, 1, 1);
        k[1] = 1;
        expect("inf + inf", truth_of(&a).lse, 5);
        k[1] = -1;
        ck_assert_msg(isnan(truth_of(&a).lse), "inf - inf");
        x[t]->data = NULL;
    }
}
END_TEST

START_TEST(rows_of_nothing_are_0_even_with_a_sink)
{
    double q[3] = {1, NAN, 1}, s[2] = {0, 0}, v[2] = {1, 3}, sink = 0.5;
    const int64_t start[2] = {0, 2}, len[2] = {1, 1}, keys[2] = {2, 0}, where[2] = {0, 2};
    struct at_attention a = row_of(2, s, v);
    a.q = at_thd(q, AT_F64, 3, 1, 1);
    a.score.q_start = start, a.score.q_len = len, a.score.sequences = 2;
    a.score.kv_start = where, a.score.kv_len = keys;
    a.score.sink = at_bhsd(&sink, AT_F64, 1, 1, 1, 1);
    struct at_answer x = answers(&a);
    expect_digits("sink and keys", x.lse[0], 1.29437676941764);
    expect("a row of no sequence", x.out[1], 0);
    expect("a row of no sequence", x.lse[1], -INF);
    expect("a sink and no key", x.out[2], 0);
    expect("a sink and no key", x.lse[2], 0.5);
    at_answer_free(&x);
    const int64_t none = 0;
    a.q = at_bhsd(q, AT_F64, 1, 1, 1, 1);
    a.score.q_start = a.score.kv_start = a.score.kv_len = NULL;
    a.score.q_len = &none;
    expect("past q_len", truth_of(&a).lse, -INF);
}
END_TEST

START_TEST(rows_that_were_chosen_come_in_the_order_asked)
{
    double q[3] = {0, 1, 2}, s[1] = {1}, v[1] = {1};
    const struct at_place at[3] = {{0, 0, 2}, {0, 0, 0}, {-1, 0, 0}};
    struct at_attention a = row_of(1, s, v);
    struct at_answer x;
    a.q = at_bhsd(q, AT_F64, 1, 1, 3, 1);
    ck_assert_int_eq(at_answer_make(&x, 3, 1), AT_OK);
    ck_assert_int_eq(at_truth(&a, (struct at_rows){3, at}, &x), AT_OK);
    expect("first", x.lse[0], 2);
    expect("second", x.lse[1], 0);
    expect("third", x.lse[2], -INF);
    ck_assert_int_eq(at_truth(&a, (struct at_rows){2, at}, &x), AT_ERR_SHAPE);
    a.score.scale = NAN;
    ck_assert_int_eq(at_truth(&a, (struct at_rows){3, at}, &x), AT_ERR_SCALE);
    at_answer_free(&x);
}
END_TEST

START_TEST(without_memory_there_is_a_status_and_no_leak)
{
    double s[2] = {0, 1}, v[2] = {1, 2};
    struct at_attention a = row_of(2, s, v);
    struct at_answer x = answers(&a), none;
    a.plan.threads = 1;
    for (int k = 0; k < 3; k++) {
        memory_countdown = k + 1;
        ck_assert_int_eq(at_truth(&a, (struct at_rows){1, NULL}, &x), AT_ERR_MEMORY);
    }
    memory_countdown = 1;
    ck_assert_int_eq(at_answer_make(&none, 1, 1), AT_ERR_MEMORY);
    memory_countdown = 0;
    ck_assert_int_eq(at_answer_make(&none, INT64_MAX / 16, 15), AT_ERR_MEMORY);
    ck_assert_int_eq(at_answer_make(&none, -1, 15), AT_ERR_SHAPE);
    ck_assert_int_eq(at_truth(&a, (struct at_rows){1, NULL}, &x), AT_OK);
    at_answer_free(&x);
}
END_TEST

/* Hidden keys, whatever they hold, leave a row to the fast truth and change no bit of it. */
START_TEST(the_fast_truth_meets_nothing_hidden)
{
    double s[MOST] = {0.3, 0, -0.7, 1.1}, v[MOST] = {0.1, 0, 3.7, -0.9};
    const double bad[] = {0, NAN, INFINITY, -INFINITY, 1e308, 1e15};
    uint8_t mask[4] = {1, 0, 1, 1};
    struct at_attention a = row_of(4, s, v);
    struct at_answer x[2];
    a.score.mask = at_bhsd(mask, AT_U8, 1, 1, 1, 4);
    for (int k = 0; k < 6; k++) {
        s[1] = v[1] = bad[k];
        struct at_answer *y = &x[k > 0];
        ck_assert_int_eq(at_answer_make(y, 1, 1), AT_OK);
        ck_assert_int_eq(at_truth_fast(&a, (struct at_rows){1, NULL}, y), AT_OK);
        ck_assert_int_eq(y->by_mpfr, 0);
        ck_assert(y->out[0] == x->out[0] && y->out_lo[0] == x->out_lo[0]);
        ck_assert(y->lse[0] == x->lse[0] && y->out_bits[0] == x->out_bits[0]);
        if (k > 0)
            at_answer_free(y);
    }
    at_answer_free(&x[0]);
}
END_TEST

/* log 2 - RN(log 2): the sum of two words loses half its bits. */
START_TEST(an_lse_that_cancels_is_left_to_mpfr)
{
    double s[MOST] = {-0x1.62e42fefa39efp-1, -0x1.62e42fefa39efp-1}, v[MOST] = {1, 3};
    struct at_attention a = row_of(2, s, v);
    struct at_answer x;
    ck_assert_int_eq(at_answer_make(&x, 1, 1), AT_OK);
    ck_assert_int_eq(at_truth_fast(&a, (struct at_rows){1, NULL}, &x), AT_OK);
    ck_assert(x.by_mpfr == 1 && x.lse[0] == 0x1.abc9e3b39803fp-56 && x.out[0] == 2);
    s[0] = s[1] = -0x1.62e42fefa39ep-1; /* a few units away the words suffice */
    ck_assert_int_eq(at_truth_fast(&a, (struct at_rows){1, NULL}, &x), AT_OK);
    ck_assert(x.by_mpfr == 1 || x.lse_bits[0] >= 64);
    at_answer_free(&x);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("truth");
    TCase *c = tcase_create("numbers");
    const int numbers = sizeof known / sizeof *known, kinds = sizeof rules / sizeof *rules;
    tcase_add_loop_test(c, catalogue_numbers_come_out_to_their_last_digit, 0, numbers);
    tcase_add_test(c, alibi_falls_with_distance_and_is_0_at_the_row_itself);
    tcase_add_test(c, bias_is_added_after_scale_and_hides_where_minus_infinite);
    tcase_add_test(c, a_shift_of_all_scores_cancels_whatever_its_size);
    tcase_add_test(c, descale_of_keys_is_in_the_scores_and_that_of_values_is_not);
    tcase_add_test(c, both_causal_corners_see_their_keys);
    tcase_add_test(c, dropout_counts_kept_values_more_and_leaves_the_lse);
    tcase_add_loop_test(c, infinities_and_nan_follow_the_rules, 0, kinds);
    tcase_add_test(c, an_infinite_descale_meets_each_product);
    tcase_add_test(c, rows_of_nothing_are_0_even_with_a_sink);
    tcase_add_test(c, rows_that_were_chosen_come_in_the_order_asked);
    tcase_add_test(c, the_fast_truth_meets_nothing_hidden);
    tcase_add_test(c, an_lse_that_cancels_is_left_to_mpfr);
    tcase_add_test(c, without_memory_there_is_a_status_and_no_leak);
    suite_add_tcase(s, c);
    return paint_run(s);
}

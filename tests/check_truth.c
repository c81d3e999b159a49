/* Truth against numbers worked out by hand, against exact fractions where an answer lies on a
 * border between two doubles, and against the second truth on problems painted over all fields.
 * Repeat one: SEED=n COUNT=1 build/tests/check_truth. SPDX-License-Identifier: MIT */
#include "paint.h"
#include "truth_cases.h"
#include <stdlib.h>
#include <string.h>

enum { EXACT = INT16_MAX };

/* -- Small rows: D = Dv = 1, q = 1, so that k are the scores -------------------------------------
 */

static double one = 1;

static struct at_attention row_of(int64_t n, double *s, double *v)
{
    return at_plain(at_bhsd(&one, AT_F64, 1, 1, 1, 1), at_bhsd(s, AT_F64, 1, 1, n, 1),
                    at_bhsd(v, AT_F64, 1, 1, n, 1), 1);
}

static struct at_answer answers(const struct at_attention *a)
{
    struct at_answer x;
    int64_t n = a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
    ck_assert_int_eq(at_answer_make(&x, n, a->v.dim[3]), AT_OK);
    memset(x.out, 0xff, (size_t)(n * x.Dv) * sizeof *x.out);
    ck_assert_int_eq(at_truth(a, (struct at_rows){n, NULL}, &x), AT_OK);
    return x;
}

/* Out (and lse) of a row of one column. */
struct one {
    double hi, lo, lse, lse_lo;
    int bits, lse_bits;
};

static struct one truth_of(const struct at_attention *a)
{
    struct at_answer x = answers(a);
    struct one y = {x.out[0], x.out_lo[0], x.lse[0], x.lse_lo[0], x.out_bits[0], x.lse_bits[0]};
    at_answer_free(&x);
    return y;
}

static void expect(const char *what, double got, double right)
{
    ck_assert_msg(got == right && !signbit(got) == !signbit(right), "%s: %a (%.17g), expected %a",
                  what, got, got, right);
}

/* -- Numbers from the catalogue of faults --------------------------------------------------------
 */

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
    uint8_t keep[2] = {1, 0};
    struct at_attention a = row_of(2, s, v);
    a.dropout.p = 0.25;
    a.dropout.keep = at_bhsd(keep, AT_U8, 1, 1, 1, 2);
    struct one y = truth_of(&a);
    expect("80", y.hi, 2 / 3.0);
    expect_digits("80 lse", y.lse, 0.693147180559945);
}
END_TEST

/* -- Borders and exact fractions -----------------------------------------------------------------
 */

START_TEST(a_tie_is_decided_exactly)
{
    struct tie x = ties[_i];
    struct at_attention a = row_of(x.n, x.s, x.v);
    struct one y = truth_of(&a);
    expect(x.name, y.hi, x.hi);
    if (x.exact >= 0)
        expect(x.name, y.lo, x.lo);
    ck_assert_msg((y.bits == EXACT && x.exact == 1) || (y.bits >= 106 && x.exact < 1),
                  "%s: %d bits are certain", x.name, y.bits);
}
END_TEST

/* The same with a softcap that meets equal arguments only; far keys are far by bias. */
START_TEST(softcap_keeps_the_ties_that_are_certain)
{
    struct tie x = ties[_i];
    double bias[MOST];
    struct at_attention a = row_of(x.n, x.s, x.v);
    a.score.bias = at_bhsd(bias, AT_F64, 1, 1, 1, x.n);
    a.score.softcap = 3;
    memcpy(bias, x.s, sizeof bias);
    for (int j = 0; j < x.n; j++)
        x.s[j] = 0.7;
    struct one y = truth_of(&a);
    expect(x.name, y.hi, x.hi);
    ck_assert_msg(x.exact < 0 || y.lo == x.lo, "%s: rest %a", x.name, y.lo);
    ck_assert_msg(y.bits >= 106, "%s: %d bits are certain", x.name, y.bits);
}
END_TEST

START_TEST(tanh_of_0_and_of_infinity_is_exact)
{
    double s[4] = {0, 0, INFINITY, -INFINITY}, v[4] = {1, 1 + E, 1, 1 + E}, bias[4] = {2, 2, -1, 5};
    struct at_attention a = row_of(4, s, v);
    a.score.softcap = 3;
    a.score.bias = at_bhsd(bias, AT_F64, 1, 1, 1, 4);
    struct one y = truth_of(&a); /* four equal scores of 2 */
    expect("out", y.hi, 1);
    expect("rest", y.lo, E / 2);
    ck_assert_int_eq(y.bits, EXACT);
    expect("lse", y.lse, 0x1.b17217f7d1cf8p+1); /* 2 + ln 4 */
    a.k.dim[2] = a.v.dim[2] = a.score.bias.dim[3] = 1;
    y = truth_of(&a);
    expect("lse", y.lse, 2);
    ck_assert_int_eq(y.lse_bits, EXACT);
}
END_TEST

START_TEST(tanh_of_opposite_arguments_is_not_equal)
{
    double s[2] = {0x1p-900, -0x1p-900}, v[2] = {1, -1};
    struct at_attention a = row_of(2, s, v);
    a.score.softcap = 1;
    struct one y = truth_of(&a); /* tanh(tanh(2^-900)) */
    expect("out", y.hi, 0x1p-900);
    expect("rest", y.lo, -TINIEST);
    ck_assert_int_ge(y.bits, 106);
}
END_TEST

START_TEST(a_sink_is_a_key_whose_value_is_0)
{
    double s[2] = {4, 4}, v[2] = {3, 3 + 0x1p-51}, sink = 4;
    struct at_attention a = row_of(1, s, v);
    a.score.sink = at_bhsd(&sink, AT_F64, 1, 1, 1, 1);
    expect("half", truth_of(&a).hi, 1.5);
    ck_assert_int_eq(truth_of(&a).bits, EXACT);
    sink = -1e30;
    expect("a far sink", truth_of(&a).hi, 3);
    expect("a far sink's rest", truth_of(&a).lo, -TINIEST);
    expect("lse", truth_of(&a).lse, 4);
    expect("lse's rest", truth_of(&a).lse_lo, TINIEST);
    a.k.dim[2] = a.v.dim[2] = 2; /* the mean of v is a border */
    expect("a border and a far sink", truth_of(&a).hi, 3);
}
END_TEST

START_TEST(values_times_descale_are_exact_products)
{
    double s[2] = {1, 2}, v[2] = {0.1, 0.1}, d = 0.3;
    struct at_attention a = row_of(2, s, v);
    a.score.vscale = at_repeated(at_bhsd(&d, AT_F64, 1, 1, 1, 1), 1, 1, 2, 1);
    struct one y = truth_of(&a);
    expect("product", y.hi, 0.1 * 0.3);
    expect("rest", y.lo, fma(0.1, 0.3, -(0.1 * 0.3)));
    ck_assert_int_eq(y.bits, EXACT);
}
END_TEST

START_TEST(an_answer_past_the_largest_double_is_infinite)
{
    double s[1] = {1}, v[1] = {DBL_MAX};
    struct at_attention a = row_of(1, s, v);
    a.dropout.p = 0x1p-54; /* this key is kept */
    expect("less than half a unit", truth_of(&a).hi, DBL_MAX);
    a.dropout.p = 0x1p-53;
    expect("more", truth_of(&a).hi, (double)INFINITY);
    v[0] = -DBL_MAX;
    expect("negative", truth_of(&a).hi, -(double)INFINITY);
}
END_TEST

/* -- Log-sum-exp ----------------------------------------------------------------------------------
 */

START_TEST(the_lse_of_one_key_is_its_score)
{
    double q[2] = {1, 1}, k[4] = {1, E / 2, -1e30, 0}, v[2] = {1, 1};
    struct at_attention a = at_plain(at_bhsd(q, AT_F64, 1, 1, 1, 2), at_bhsd(k, AT_F64, 1, 1, 1, 2),
                                     at_bhsd(v, AT_F64, 1, 1, 1, 1), 1);
    struct one y = truth_of(&a); /* s = 1 + 2^-53, a border */
    expect("to even", y.lse, 1);
    expect("rest", y.lse_lo, E / 2);
    ck_assert_int_eq(y.lse_bits, EXACT);
    a.k.dim[2] = a.v.dim[2] = 2; /* and a far key */
    expect("above", truth_of(&a).lse, 1 + E);
    q[0] = k[0] = 1 + 0x1p-30; /* 1 + 2^-29 + 2^-60 */
    a.k.dim[2] = a.v.dim[2] = 1;
    a.q.dim[3] = a.k.dim[3] = 1;
    y = truth_of(&a);
    expect("product", y.lse, 1 + 0x1p-29);
    expect("rest", y.lse_lo, 0x1p-60);
    ck_assert_int_eq(y.lse_bits, EXACT);
}
END_TEST

START_TEST(an_lse_near_0_has_all_its_bits)
{
    double ln2 = 0x1.62e42fefa39efp-1, s[2] = {-ln2, -ln2}, v[2] = {1, 1}; /* ln 2, rounded */
    struct at_attention a = row_of(2, s, v);
    struct one y = truth_of(&a);
    expect("lse", y.lse, 0x1.abc9e3b39803fp-56);
    ck_assert_int_ge(y.lse_bits, 106);
}
END_TEST

START_TEST(a_far_key_leaves_the_lse_and_its_side)
{
    double s[2] = {2, -800}, v[2] = {1, 1};
    const double far[] = {-800, -1e9, -1e30, -1e300};
    struct at_attention a = row_of(2, s, v);
    for (int k = 0; k < 4; k++) {
        s[1] = far[k];
        expect("lse", truth_of(&a).lse, 2);
        ck_assert(truth_of(&a).lse_lo > 0);
    }
}
END_TEST

/* -- Infinities, NaN, empty rows ------------------------------------------------------------------
 */

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

int main(void)
{
    Suite *s = suite_create("truth");
    TCase *c = tcase_create("numbers"), *t = tcase_create("borders"), *k = tcase_create("kinds");
    tcase_set_timeout(t, 10); /* what has no tie rule never ends */
    const int numbers = sizeof known / sizeof *known, borders = sizeof ties / sizeof *ties;
    tcase_add_loop_test(c, catalogue_numbers_come_out_to_their_last_digit, 0, numbers);
    tcase_add_test(c, alibi_falls_with_distance_and_is_0_at_the_row_itself);
    tcase_add_test(c, bias_is_added_after_scale_and_hides_where_minus_infinite);
    tcase_add_test(c, a_shift_of_all_scores_cancels_whatever_its_size);
    tcase_add_test(c, descale_of_keys_is_in_the_scores_and_that_of_values_is_not);
    tcase_add_test(c, both_causal_corners_see_their_keys);
    tcase_add_test(c, dropout_counts_kept_values_more_and_leaves_the_lse);
    tcase_add_loop_test(t, a_tie_is_decided_exactly, 0, borders);
    tcase_add_loop_test(t, softcap_keeps_the_ties_that_are_certain, 0, borders);
    tcase_add_test(t, tanh_of_0_and_of_infinity_is_exact);
    tcase_add_test(t, tanh_of_opposite_arguments_is_not_equal);
    tcase_add_test(t, a_sink_is_a_key_whose_value_is_0);
    tcase_add_test(t, values_times_descale_are_exact_products);
    tcase_add_test(t, an_answer_past_the_largest_double_is_infinite);
    tcase_add_test(t, the_lse_of_one_key_is_its_score);
    tcase_add_test(t, an_lse_near_0_has_all_its_bits);
    tcase_add_test(t, a_far_key_leaves_the_lse_and_its_side);
    tcase_add_loop_test(k, infinities_and_nan_follow_the_rules, 0, sizeof rules / sizeof *rules);
    tcase_add_test(k, rows_of_nothing_are_0_even_with_a_sink);
    tcase_add_test(k, rows_that_were_chosen_come_in_the_order_asked);
    suite_add_tcase(s, c);
    suite_add_tcase(s, t);
    suite_add_tcase(s, k);
    return paint_run(s);
}

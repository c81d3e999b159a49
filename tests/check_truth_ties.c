/* Truth where an answer lies on a border between two doubles, or beside it by less than any fixed
 * precision shows: exact fractions, far keys, cancellation. SPDX-License-Identifier: MIT */
#include "truth.h"
#include "truth_cases.h"

/* -- Borders and exact fractions --------------------------------------------------------------- */

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

/* Other weights, other noise in the estimate: the same tie. */
START_TEST(ties_of_two_groups_go_to_even)
{
    double odd = _i % 2 ? E : 0, s[4] = {0, 0.1 * _i - 2, 0, 0.1 * _i - 2};
    double v[4] = {1 + odd, 1 + odd, 1 + odd + E, 1 + odd + E};
    struct at_attention a = row_of(4, s, v);
    expect("to even", truth_of(&a).hi, 1 + 2 * odd);
    expect("rest", truth_of(&a).lo, _i % 2 ? -E / 2 : E / 2);
}
END_TEST

START_TEST(scores_keep_every_bit)
{
    double q[3] = {0x1p200, 1, 0x1p200}, k[3] = {0x1p200, 5, -0x1p200}, v[1] = {1};
    struct at_attention a = at_plain(at_bhsd(q, AT_F64, 1, 1, 1, 3), at_bhsd(k, AT_F64, 1, 1, 1, 3),
                                     at_bhsd(v, AT_F64, 1, 1, 1, 1), 1);
    expect("lse", truth_of(&a).lse, 5);
    ck_assert_int_eq(truth_of(&a).lse_bits, EXACT);
    double bias = 0x1p200, slope = 3;
    const int64_t offset = 1;
    k[0] = k[1] = 0, k[2] = -1; /* -2^200 + (2^200 - 3) */
    a.score.bias = at_bhsd(&bias, AT_F64, 1, 1, 1, 1);
    a.score.alibi = at_bhsd(&slope, AT_F64, 1, 1, 1, 1);
    a.score.offset = &offset;
    expect("lse", truth_of(&a).lse, -3);
}
END_TEST

/* e^s less its own first four doubles: what is left of five keys is some 2^-215 of them. */
START_TEST(what_cancels_has_all_its_bits)
{
    double s[5] = {1 + 0.1 * _i, 0, 0, 0, 0}, v[5] = {1, 0, 0, 0, 0};
    mpfr_t rest, l;
    mpfr_inits2(1000, rest, l, (mpfr_ptr)0);
    mpfr_set_d(rest, s[0], MPFR_RNDN);
    mpfr_exp(rest, rest, MPFR_RNDN);
    mpfr_add_ui(l, rest, 4, MPFR_RNDN);
    for (int k = 1; k < 5; k++) {
        v[k] = -mpfr_get_d(rest, MPFR_RNDN);
        mpfr_add_d(rest, rest, v[k], MPFR_RNDN);
    }
    mpfr_div(rest, rest, l, MPFR_RNDN);
    struct at_attention a = row_of(5, s, v);
    struct one y = truth_of(&a);
    expect("out", y.hi, mpfr_get_d(rest, MPFR_RNDN));
    ck_assert_int_ge(y.bits, 106);
    mpfr_clears(rest, l, (mpfr_ptr)0);
}
END_TEST

/* The estimate's noise is larger than the last bits of e^-100: a better double has to be found. */
START_TEST(what_cancelling_groups_leave_has_all_its_bits)
{
    double low = -0.1 * _i - 0.1, s[6] = {0, low, low, low, low, -100}, v[6] = {0, 1, 2, 4, -7, 3};
    mpfr_t x, l;
    mpfr_inits2(1000, x, l, (mpfr_ptr)0);
    mpfr_set_d(l, low, MPFR_RNDN);
    mpfr_exp(l, l, MPFR_RNDN);
    mpfr_mul_ui(l, l, 4, MPFR_RNDN);
    mpfr_add_ui(l, l, 1, MPFR_RNDN);
    mpfr_set_d(x, -100, MPFR_RNDN);
    mpfr_exp(x, x, MPFR_RNDN);
    mpfr_add(l, l, x, MPFR_RNDN);
    mpfr_mul_ui(x, x, 3, MPFR_RNDN);
    mpfr_div(x, x, l, MPFR_RNDN);
    struct at_attention a = row_of(6, s, v);
    expect("out", truth_of(&a).hi, mpfr_get_d(x, MPFR_RNDN));
    mpfr_clears(x, l, (mpfr_ptr)0);
}
END_TEST

START_TEST(columns_that_differ_at_other_far_keys_do_not_disturb_each_other)
{
    double s[4] = {0, -1e12, -2e12, -2e12 - 1}, v[4][2] = {{1, 1}, {0, 1}, {5, 2}, {5, -1}};
    struct at_attention a = row_of(4, s, &v[0][0]);
    a.v = at_bhsd(v, AT_F64, 1, 1, 4, 2);
    struct at_answer x = answers(&a);
    expect("below", x.out_lo[0], -TINIEST);
    expect("above", x.out_lo[1], TINIEST); /* 1 - 2/e > 0 */
    at_answer_free(&x);
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

START_TEST(tanh_of_neighbours_is_not_equal)
{
    double q[2] = {1, 1}, k[4] = {0.5, 0, 0.5, 0x1p-300}, v[2] = {1, -1};
    struct at_attention a = at_plain(at_bhsd(q, AT_F64, 1, 1, 1, 2), at_bhsd(k, AT_F64, 1, 1, 2, 2),
                                     at_bhsd(v, AT_F64, 1, 1, 2, 1), 1);
    a.score.softcap = 1;
    expect("out", truth_of(&a).hi, -0x1.92a946fa34394p-302);
}
END_TEST

START_TEST(a_capped_score_claims_no_more_bits_than_it_has)
{
    double s[1] = {0.7}, v[1] = {1}, bias[1];
    struct at_attention a = row_of(1, s, v);
    a.score.softcap = 3;
    bias[0] = -truth_of(&a).lse; /* leaves the last bits of the tanh */
    a.score.bias = at_bhsd(bias, AT_F64, 1, 1, 1, 1);
    struct one y = truth_of(&a);
    ck_assert(y.lse != 0 && fabs(y.lse) < E);
    ck_assert_int_ge(y.lse_bits, 106);
    ck_assert_int_le(y.lse_bits, FIRST_PREC - 52);
    ck_assert_int_eq(y.bits, EXACT); /* one key: out = v */
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
    expect("rest", truth_of(&a).lo, 0);
    v[0] = -DBL_MAX;
    expect("negative", truth_of(&a).hi, -(double)INFINITY);
}
END_TEST

/* -- Log-sum-exp ------------------------------------------------------------------------------- */

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

int main(void)
{
    Suite *s = suite_create("truth_ties");
    TCase *t = tcase_create("ties");
    const int borders = sizeof ties / sizeof *ties;
    tcase_set_timeout(t, 10); /* what has no tie rule never ends */
    tcase_add_loop_test(t, a_tie_is_decided_exactly, 0, borders);
    tcase_add_loop_test(t, softcap_keeps_the_ties_that_are_certain, 0, borders);
    tcase_add_loop_test(t, ties_of_two_groups_go_to_even, 0, 40);
    tcase_add_test(t, scores_keep_every_bit);
    tcase_add_loop_test(t, what_cancels_has_all_its_bits, 0, 20);
    tcase_add_loop_test(t, what_cancelling_groups_leave_has_all_its_bits, 0, 20);
    tcase_add_test(t, columns_that_differ_at_other_far_keys_do_not_disturb_each_other);
    tcase_add_test(t, tanh_of_0_and_of_infinity_is_exact);
    tcase_add_test(t, tanh_of_opposite_arguments_is_not_equal);
    tcase_add_test(t, tanh_of_neighbours_is_not_equal);
    tcase_add_test(t, a_capped_score_claims_no_more_bits_than_it_has);
    tcase_add_test(t, a_sink_is_a_key_whose_value_is_0);
    tcase_add_test(t, values_times_descale_are_exact_products);
    tcase_add_test(t, an_answer_past_the_largest_double_is_infinite);
    tcase_add_test(t, the_lse_of_one_key_is_its_score);
    tcase_add_test(t, an_lse_near_0_has_all_its_bits);
    tcase_add_test(t, a_far_key_leaves_the_lse_and_its_side);
    suite_add_tcase(s, t);
    return paint_run(s);
}

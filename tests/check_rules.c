/* What the bound says where it is not about size: equality, no claim, open elements, laws of
 * size. SPDX-License-Identifier: MIT */
#include "bound_problem.h"

static void bounds(struct problem *p, const char *arith)
{
    struct at_arith x = arith_of(arith);
    problem_bound(p, &x);
}

/* -- Equality ---------------------------------------------------------------------------------- */

START_TEST(one_visible_key_is_an_equality_unless_the_arithmetic_says_otherwise)
{
    for (int64_t k = 0; at_arith_at(k); k++) {
        const struct at_arith *x = at_arith_at(k);
        struct problem p;
        paint_problem(&p, CAP | BIAS, x->compute == AT_F16 ? AT_F16 : AT_BF16, 1, 3);
        problem_truth(&p);
        problem_bound(&p, x);
        bool inexact = x->product_eps > 0 || x->inexact_one || x->fused;
        for (int64_t t = 0; t < ROWS * Dv; t++) {
            double v = at_stored(&p.a.v, t % Dv), lo, hi;
            ck_assert_msg((p.x.out_bound[t] == 0) == !inexact, "%s: %a", x->name, p.x.out_bound[t]);
            at_interval(x, AT_F32, &p.x, t / Dv, t % Dv, &lo, &hi);
            ck_assert(inexact || (lo == v && hi == v));
        }
        at_answer_free(&p.x);
    }
}
END_TEST

START_TEST(a_descaled_value_is_rounded_and_a_sink_of_minus_infinity_changes_nothing)
{
    struct problem p;
    paint_problem(&p, DESCALE, AT_F32, 1, 1);
    p.vscale[0] = 1 + 0x1p-20f;
    problem_truth(&p);
    bounds(&p, "fp32");
    for (int64_t t = 0; t < ROWS * Dv; t++)
        ck_assert(p.x.out_bound[t] >= 0x1p-24 * fabs(p.x.out[t]));
    at_answer_free(&p.x);
    double bound[2];
    for (int sink = 0; sink < 2; sink++) {
        seed = 7;
        paint_problem(&p, SINK, AT_F32, 5, 1);
        p.sink[0] = -INFINITY;
        if (!sink)
            p.a.score.sink.data = NULL;
        problem_truth(&p);
        bounds(&p, "fp32");
        ck_assert(p.x.out_kind[0] == AT_CLAIMED && p.x.lse_kind[0] == AT_CLAIMED);
        bound[sink] = p.x.out_bound[0];
        at_answer_free(&p.x);
    }
    ck_assert(bound[0] == bound[1]);
}
END_TEST

START_TEST(rows_that_see_nothing_and_rows_of_a_sink_alone_are_equalities)
{
    for (int sink = 0; sink < 2; sink++) {
        struct problem p;
        paint_problem(&p, MASK | (sink ? SINK : 0), AT_F32, 5, 1);
        memset(p.mask, 0, sizeof p.mask);
        problem_truth(&p);
        bounds(&p, "fp32");
        for (int64_t t = 0; t < ROWS; t++) {
            double lo, hi, lse = sink ? (double)p.sink[t / Sq] : -INFINITY;
            at_interval(at_arith_find("fp32"), AT_F32, &p.x, t, -1, &lo, &hi);
            ck_assert(lo == lse && hi == lse);
            at_interval(at_arith_find("fp32"), AT_F32, &p.x, t, 0, &lo, &hi);
            ck_assert(lo == 0 && hi == 0);
        }
        at_answer_free(&p.x);
    }
}
END_TEST

/* -- Laws of size ------------------------------------------------------------------------------ */

/* Catalogue 88. */
START_TEST(the_bound_scales_with_v)
{
    for (int k = -30; k <= 30; k += 10) {
        struct problem p;
        double before[ROWS * Dv];
        paint_problem(&p, BIAS | SINK, AT_F32, 9, 1);
        problem_truth(&p);
        bounds(&p, "bf16-p");
        memcpy(before, p.x.out_bound, sizeof before);
        for (int64_t t = 0; t < p.Skv * Dv; t++)
            at_store(&p.a.v, t, ldexp(at_stored(&p.a.v, t), k));
        problem_truth(&p);
        bounds(&p, "bf16-p");
        for (int64_t t = 0; t < ROWS * Dv; t++)
            ck_assert_msg(p.x.out_bound[t] == ldexp(before[t], k), "%a, %a times 2^%d",
                          p.x.out_bound[t], before[t], k);
        at_answer_free(&p.x);
    }
}
END_TEST

/* To first order the bound is a multiple of eps. Scores in {1, 2}: sums that are exact in both. */
START_TEST(the_bound_of_fp64_is_that_of_fp32_times_2_to_the_minus_29)
{
    for (int k = 0; k < 60; k++) {
        struct problem p;
        double before[ROWS * Dv], lse[ROWS];
        paint_problem(&p, (unsigned)bits() % 256 & ~(unsigned)DESCALE, AT_F32,
                      2 + (int64_t)(bits() % (MOST - 1)), 1);
        p.a.score.scale = 0.5; /* rounds in neither */
        p.a.score.softcap *= 0.5 / 0.55;
        p.a.dropout.p = p.a.dropout.keep.data ? 0.5 : 0;
        problem_truth(&p);
        bounds(&p, "fp32");
        memcpy(before, p.x.out_bound, sizeof before);
        memcpy(lse, p.x.lse_bound, sizeof lse);
        bounds(&p, "fp64");
        for (int64_t t = 0; t < ROWS * Dv; t++) {
            double was = before[t] * 0x1p-29, now = p.x.out_bound[t];
            ck_assert_msg(now >= was / 1.5 && now <= was * 1.5, "SEED=%llu: %a, %a; truth %a",
                          (unsigned long long)p.seed, was, now, p.x.out[t]);
        }
        for (int64_t t = 0; t < ROWS; t++)
            ck_assert(p.x.lse_bound[t] >= lse[t] * 0x1p-29 / 1.5 &&
                      p.x.lse_bound[t] <= lse[t] * 0x1p-29 * 1.5);
        at_answer_free(&p.x);
    }
}
END_TEST

START_TEST(huge_scores_cost_no_more_than_the_range_of_v_and_a_clear_winner_costs_nothing)
{
    struct problem p;
    paint_problem(&p, 0, AT_F32, 6, 1);
    double near[] = {10000, 9999, 9998, -1e9, 9000, 10001},
           far[] = {10000, 0, -5, -0x1.fep+127, 9000, 3};
    for (int64_t t = 0; t < p.Skv * Dv; t++)
        at_store(&p.a.v, t, t % 2 ? -1 : 1 + (double)(t % 3));
    score_by_bias(&p, near);
    problem_truth(&p);
    bounds(&p, "fp32,score=bf16");
    for (int64_t t = 0; t < ROWS * Dv; t++)
        ck_assert(p.x.out_kind[t] == AT_CLAIMED && p.x.out_bound[t] <= 4);
    score_by_bias(&p, far); /* the lowest finite number keeps its claim */
    problem_truth(&p);
    bounds(&p, "fp32,score=bf16,weight=bf16");
    for (int64_t t = 0; t < ROWS * Dv; t++)
        ck_assert_msg(p.x.out_kind[t] == AT_CLAIMED && p.x.out_bound[t] <= 0x1p-17, "%d %a",
                      p.x.out_kind[t], p.x.out_bound[t]);
    at_answer_free(&p.x);
}
END_TEST

/* -- Rules 2 to 5 of semantics.md -------------------------------------------------------------- */

enum { N = 4 };

/* Four keys: the given scores, v = values in each column; column 0 of row 0 is looked at. */
static struct at_answer *ruled(struct problem *p, const double *s, const double *values,
                               const char *arith)
{
    paint_problem(p, 0, AT_F32, N, 1);
    score_by_bias(p, s);
    for (int64_t t = 0; t < N * Dv; t++)
        at_store(&p->a.v, t, t % Dv ? 1 : values[t / Dv]);
    problem_truth(p);
    bounds(p, arith);
    return &p->x;
}

static const struct rule_case {
    double s[N], v[N];
    const char *arith;
    enum at_kind out, lse, other; /* column 0, lse, column 1 */
    double without;
} rules[] = {
    {{0, 1, 2, 3}, {1, 2, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 1, NAN, 3}, {1, 2, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 1, INFINITY, 3}, {1, 2, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 0, 0, 0}, {1, NAN, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 0, 0, 0}, {1, INFINITY, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, -200, 0, 0}, {1, INFINITY, 3, 5}, "fp32", AT_OPEN_INF, AT_CLAIMED, AT_CLAIMED, 3},
    {{0, -200, 0, 0}, {1, NAN, 3, 5}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, -200, 0, 0}, {1, INFINITY, NAN, 5}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, -200, 0, 0},
     {1, -INFINITY, INFINITY, 5},
     "fp32",
     AT_OPEN_INF,
     AT_CLAIMED,
     AT_CLAIMED,
     INFINITY},
    {{0, -20, 0, 0}, {1, INFINITY, 3, 5}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, -20, 0, 0},
     {1, INFINITY, 3, 5},
     "fp32,weight=fp16",
     AT_OPEN_INF,
     AT_CLAIMED,
     AT_CLAIMED,
     3},
    {{0, 0, 0, 0},
     {1, INFINITY, 65504, 4},
     "fp32,score=fp16",
     AT_CLAIMED,
     AT_CLAIMED,
     AT_CLAIMED,
     0},
    {{0, 0, 0, 0},
     {1, INFINITY, 65520, 4},
     "fp32,score=fp16",
     AT_OVERFLOW,
     AT_CLAIMED,
     AT_CLAIMED,
     0},
    {{0, 0, 0, 0}, {1, 0x1p126, 3, 4}, "fp32", AT_OVERFLOW, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 0, 0, 0}, {1, 0x1p125, 3, 4}, "fp32", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 0, 0, 0},
     {1, 0x1p125, 3, 4},
     "fp32,weight=fp16,weight_shift=1",
     AT_OVERFLOW,
     AT_CLAIMED,
     AT_CLAIMED,
     0},
    {{0, 0, 0, 0}, {1, 20000, 3, 4}, "fp32,sum=fp16", AT_OVERFLOW, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 0, 0, 0},
     {1, 2, 3, 4},
     "fp32,weight=fp8-e4m3,weight_shift=9",
     AT_OVERFLOW,
     AT_OVERFLOW,
     AT_OVERFLOW,
     0},
    {{0, 65520, 0, 0}, {1, 2, 3, 4}, "fp32,score=fp16", AT_OVERFLOW, AT_OVERFLOW, AT_OVERFLOW, 0},
    {{0, 65519, 0, 0}, {1, 2, 3, 4}, "fp32,score=fp16", AT_CLAIMED, AT_CLAIMED, AT_CLAIMED, 0},
    {{0, 1e10, 0, 0}, {1, 2, 3, 4}, "fp32,fused=true", AT_OVERFLOW, AT_OVERFLOW, AT_OVERFLOW, 0},
    {{0, 1, 2, 3},
     {1, 2, 3, 4},
     "fp32,sum=fp8-e5m2,joins=9,lse_merge=true",
     AT_LOOSE,
     AT_LOOSE,
     AT_LOOSE,
     0},
};
enum { RULES = sizeof rules / sizeof *rules };

START_TEST(rules_of_infinities_and_overflow)
{
    const struct rule_case *r = &rules[_i];
    struct problem p;
    struct at_answer *x = ruled(&p, r->s, r->v, r->arith);
    ck_assert_int_eq(x->out_kind[0], r->out);
    ck_assert_int_eq(x->lse_kind[0], r->lse);
    ck_assert_int_eq(x->out_kind[1], r->other);
    ck_assert((x->out_bound[0] == INFINITY) == (r->out == AT_OVERFLOW || r->out == AT_LOOSE));
    ck_assert((x->lse_bound[0] == INFINITY) == (r->lse == AT_OVERFLOW || r->lse == AT_LOOSE));
    double off = fabs(x->without[0] - r->without);
    ck_assert(r->out == AT_OPEN_INF ? x->without[0] == r->without || off <= x->out_bound[0]
                                    : x->without[0] == 0);
    at_answer_free(x);
}
END_TEST

/* e^-88 is subnormal; times 1e37 it counts, and a machine that flushes loses it. */
START_TEST(a_weight_that_underflows_may_be_lost_and_no_more)
{
    struct problem p;
    double s[N] = {0, -88, -88, -88}, v[N] = {0, 0x1p123, 0, 0},
           far[N] = {0, -103.6, -103.6, -103.6};
    struct at_answer *x = ruled(&p, s, v, "fp32");
    ck_assert(x->out[0] > 0.01 && x->out_bound[0] < x->out[0] * 0x1p-10);
    bounds(&p, "fp32,flush=true");
    ck_assert(x->out_bound[0] >= x->out[0]);
    bounds(&p, "fp32,weight=fp16");
    ck_assert(x->out_bound[0] >= x->out[0]);
    at_answer_free(x);
    x = ruled(&p, far, v, "fp32"); /* below half the smallest number: 0 */
    ck_assert(x->out[0] > 0 && x->out_bound[0] >= x->out[0]);
    at_answer_free(x);
}
END_TEST

/* Scores of -inf come from infinite keys: a bias of -inf hides. */
START_TEST(a_score_of_minus_infinity_leaves_its_row_open)
{
    for (int all = 0; all < 4; all++) {
        struct problem p;
        paint_problem(&p, 0, AT_F32, N, 1);
        for (int64_t t = 0; t < ROWS * D; t++)
            at_store(&p.a.q, t, 1);
        for (int64_t j = 0; j < (all & 1 ? N : 1); j++)
            at_store(&p.a.k, j * D, -INFINITY);
        problem_truth(&p);
        bounds(&p, all & 2 ? "fp32,dead_zero=true" : "fp32");
        int kind = !(all & 1) ? AT_OPEN : all & 2 ? AT_OPEN_INF : AT_CLAIMED;
        ck_assert(p.x.out_kind[0] == kind && p.x.lse_kind[0] == kind &&
                  isnan(p.x.out[0]) == (all & 1));
        ck_assert(p.x.out_bound[0] < 1 && p.x.lse_bound[0] < 1 && p.x.without[0] == 0);
        at_answer_free(&p.x);
    }
}
END_TEST

/* 2^1030 is a number of truth's, and of no kernel's. */
START_TEST(scores_past_any_double_have_no_claim)
{
    for (int side = -1; side < 2; side += 2) {
        struct problem p;
        paint_problem(&p, 0, AT_F64, N, 1);
        for (int64_t t = 0; t < ROWS * D; t++)
            at_store(&p.a.q, t, t % D ? 0 : 0x1p515);
        for (int64_t j = 0; j < N; j++)
            at_store(&p.a.k, j * D, side * 0x1p505);
        p.a.score.scale = 1024;
        problem_truth(&p);
        bounds(&p, "fp64");
        ck_assert(p.x.out_kind[0] == AT_OVERFLOW && p.x.lse_kind[0] == AT_OVERFLOW);
        ck_assert(p.x.out_bound[0] == INFINITY && p.x.lse_bound[0] == INFINITY);
        at_answer_free(&p.x);
    }
}
END_TEST

START_TEST(a_type_that_does_not_hold_the_tensors_is_refused)
{
    struct problem p;
    paint_problem(&p, 0, AT_F64, 3, 1);
    problem_truth(&p);
    ck_assert_int_eq(at_bound(&p.a, at_arith_find("fp32"), p.rows, &p.x), AT_ERR_UNSUPPORTED);
    ck_assert_int_eq(at_bound(&p.a, at_arith_find("fp64"), p.rows, &p.x), AT_OK);
    p.a.score.scale = NAN;
    ck_assert_int_eq(at_bound(&p.a, at_arith_find("fp64"), p.rows, &p.x), AT_ERR_SCALE);
    at_answer_free(&p.x);
}
END_TEST

int main(void)
{
    const char *text = getenv("SEED");
    seed = text ? strtoull(text, NULL, 10) : 1;
    printf("SEED=%llu build/tests/check_rules\n", (unsigned long long)seed);
    fflush(stdout);
    Suite *suite = suite_create("rules");
    TCase *t = tcase_create("rules");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_visible_key_is_an_equality_unless_the_arithmetic_says_otherwise);
    tcase_add_test(t, a_descaled_value_is_rounded_and_a_sink_of_minus_infinity_changes_nothing);
    tcase_add_test(t, rows_that_see_nothing_and_rows_of_a_sink_alone_are_equalities);
    tcase_add_test(t, the_bound_scales_with_v);
    tcase_add_test(t, the_bound_of_fp64_is_that_of_fp32_times_2_to_the_minus_29);
    tcase_add_test(t,
                   huge_scores_cost_no_more_than_the_range_of_v_and_a_clear_winner_costs_nothing);
    tcase_add_loop_test(t, rules_of_infinities_and_overflow, 0, RULES);
    tcase_add_test(t, a_weight_that_underflows_may_be_lost_and_no_more);
    tcase_add_test(t, a_score_of_minus_infinity_leaves_its_row_open);
    tcase_add_test(t, scores_past_any_double_have_no_claim);
    tcase_add_test(t, a_type_that_does_not_hold_the_tensors_is_refused);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* No preset's simulated kernel leaves its bound, over families of extreme problems and over painted
 * ones of every descriptor field. Prints what each reached. LONG=1: 10^7 outputs and more.
 * SEED=n paints others; COUNT=n as many a preset. SPDX-License-Identifier: MIT */
#include "family.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t count, seed;
static struct tally total;

static void print(const char *name, const struct tally *x)
{
    printf("%-18s %9lld outputs %9lld claimed %7lld without claim %6lld open %lld violations; "
           "ratio out %.3f lse %.3f\n",
           name, (long long)x->outputs, (long long)x->claimed, (long long)x->unclaimed,
           (long long)x->open, (long long)x->failed, x->out, x->lse);
    fflush(stdout);
}

/* -- Families ---------------------------------------------------------------------------------- */

static void one(const struct at_arith *preset, uint64_t from, struct tally *to)
{
    struct family f;
    struct at_arith arith;
    family_paint(&f, from, preset, &arith);
    if (family_truth(&f)) {
        int64_t failed = to->failed;
        bool served = family_judge(&f, &arith, (enum at_lean)(from % 4), from, to);
        ck_assert_msg(served, "SEED=%llu COUNT=1: %s refuses %s", (unsigned long long)from,
                      preset->name, family_line(&f));
        if (to->failed != failed && failed < 20) {
            int64_t t = 0;
            while (t < FAMILY_ROWS * (f.Dv + 1) && !(f.ratio[t] > 1))
                t++;
            printf("SEED=%llu COUNT=1: %s on %s: element %lld, ratio %g\n",
                   (unsigned long long)from, preset->name, family_line(&f), (long long)t,
                   f.ratio[t]);
        }
    }
    family_free(&f);
}

START_TEST(no_preset_leaves_its_bound_on_extreme_problems)
{
    for (int64_t k = 0; at_arith_at(k); k++) {
        struct tally x = {0};
        for (int64_t t = 0; t < count; t++)
            one(at_arith_at(k), (uint64_t)(seed + t * 7919), &x);
        print(at_arith_at(k)->name, &x);
        tally_add(&total, &x);
        ck_assert(x.out > 0 && x.claimed > x.outputs / 2); /* no empty words */
    }
    print("all", &total);
    ck_assert_int_eq(total.failed, 0);
}
END_TEST

/* -- Every field ------------------------------------------------------------------------------- */

struct painted {
    struct problem p;
    double *out, *lse;
    struct at_answer x;
    struct at_rows rows;
};

/* True where it fails; served: where the arithmetic can have computed it. */
static bool judge(const struct at_arith *preset, struct painted *x, struct tally *to)
{
    struct at_arith arith = *preset;
    struct at_machine m = at_machine_of(&arith);
    struct at_verdict v;
    const int64_t *d = x->p.a.q.dim;
    m.lean = (enum at_lean)(x->p.seed % 4), m.seed = x->p.seed;
    if (x->p.seed % 2 && !arith.lse_merge) { /* the plan is stated, as our engines do */
        struct at_plan plan = at_resolve(&x->p.a);
        arith.tile = plan.bc, arith.joins = plan.splits - 1, arith.ordered = true;
    }
    if (at_bound(&x->p.a, &arith, x->rows, &x->x) != AT_OK ||
        at_simulate(&x->p.a, &m, x->rows, x->out, x->lse) != AT_OK)
        return false;
    struct at_result got = {at_bhsd(x->out, AT_F64, d[0], d[1], d[2], x->p.Dv),
                            at_bhsd(x->lse, AT_F64, d[0], d[1], d[2], 1)};
    ck_assert_int_eq(at_compare(&x->p.a, &got, x->rows, &arith, &x->x, NULL, &v), AT_OK);
    to->outputs += v.judged + v.unclaimed, to->claimed += v.judged, to->unclaimed += v.unclaimed;
    to->open += v.open, to->failed += v.failed;
    double *most = v.worst_c < 0 ? &to->lse : &to->out;
    *most = fmax(*most, v.ratio);
    return v.failed > 0;
}

static bool painted_fails(struct problem *p, void *with)
{
    struct painted x = {.p = {0}};
    const struct at_arith *preset = with;
    paint_problem(&x.p, p->seed, p->options);
    const int64_t *d = x.p.a.q.dim;
    x.rows = (struct at_rows){d[0] * d[1] * d[2], NULL};
    x.out = problem_own(&x.p, (size_t)(x.rows.n * x.p.Dv) * sizeof *x.out);
    x.lse = problem_own(&x.p, (size_t)x.rows.n * sizeof *x.lse);
    ck_assert_int_eq(at_answer_make(&x.x, x.rows.n, x.p.Dv), AT_OK);
    bool bad = false;
    if (x.rows.n > 0 && at_truth(&x.p.a, x.rows, &x.x) == AT_OK) {
        bad = judge(preset, &x, &total);
        if (bad)
            printf("%s: %s\n", preset->name, problem_line(&x.p));
    }
    at_answer_free(&x.x);
    problem_free(&x.p);
    return bad;
}

/* What a preset cannot be given. */
static uint32_t not_for(const struct at_arith *k)
{
    uint32_t always = PAINT_WIDE | PAINT_SPECIAL;
    return always | (uint32_t)(k->fused ? PAINT_SINK : 0) | (uint32_t)(k->tile ? PAINT_SPLITS : 0);
}

START_TEST(no_preset_leaves_its_bound_on_painted_problems_of_every_field)
{
    total = (struct tally){0};
    for (int64_t k = 0; at_arith_at(k); k++) {
        struct at_arith arith = *at_arith_at(k);
        if (arith.compute != AT_F32)
            continue; /* painted tensors are not all numbers of fp16 or bf16 */
        int64_t claimed = total.claimed;
        arith.tile = 0;
        for (int64_t t = 0; t < count / 4; t++) {
            struct paint_options options = {.without = not_for(&arith)};
            struct problem p = {.seed = (uint64_t)(seed + t), .options = options};
            if (!painted_fails(&p, &arith))
                continue;
            options = paint_shrink(p.seed, options, painted_fails, &arith);
            ck_abort_msg("%s: %s", arith.name, paint_repro(p.seed, options, "families"));
        }
        ck_assert_msg(total.claimed > claimed || count < 4, "%s: nothing is claimed", arith.name);
    }
    print("painted", &total);
}
END_TEST

/* -- What these problems found ----------------------------------------------------------------- */

/* One row: n scores by bias, values; a tile of one key. */
struct small {
    int64_t n;
    double s[8], v[8], drop, descale; /* drop: nothing is dropped, but out is divided by 1 - drop */
    double out, truth, bound;
    enum at_kind kind;
};

/* Simulated and bounded. */
static void compute(const char *name, enum at_lean lean, struct small *x)
{
    double q = 0, k[8] = {0}, scale[8];
    unsigned char keep[8];
    struct at_arith arith;
    ck_assert(at_arith_read(&arith, name, NULL));
    struct at_machine m = at_machine_of(&arith);
    struct at_rows row = {1, NULL};
    struct at_answer y;
    double lse;
    struct at_attention a =
        at_plain(at_bhsd(&q, AT_F64, 1, 1, 1, 1), at_bhsd(k, AT_F64, 1, 1, x->n, 1),
                 at_bhsd(x->v, AT_F64, 1, 1, x->n, 1), 1);
    arith.own = at_float_of(arith.compute); /* the tensors are fp64 */
    m.lean = lean;
    for (int j = 0; j < 8; j++)
        keep[j] = 1, scale[j] = x->descale;
    a.score.bias = at_bhsd(x->s, AT_F64, 1, 1, 1, x->n);
    if (x->drop > 0)
        a.dropout.p = x->drop, a.dropout.keep = at_bhsd(keep, AT_U8, 1, 1, 1, x->n);
    if (x->descale > 0)
        a.score.vscale = at_bhsd(scale, AT_F64, 1, 1, x->n, 1);
    a.plan.bc = 1, a.plan.threads = 1;
    ck_assert_int_eq(at_answer_make(&y, 1, 1), AT_OK);
    ck_assert_int_eq(at_truth(&a, row, &y), AT_OK);
    ck_assert_int_eq(at_bound(&a, &arith, row, &y), AT_OK);
    ck_assert_int_eq(at_simulate(&a, &m, row, &x->out, &lse), AT_OK);
    x->truth = y.out[0], x->bound = y.out_bound[0], x->kind = (enum at_kind)y.out_kind[0];
    at_answer_free(&y);
}

static void reaches(const char *name, enum at_lean lean, struct small x, double least)
{
    compute(name, lean, &x);
    double r = fabs(x.out - x.truth) / x.bound;
    ck_assert_int_eq(x.kind, AT_CLAIMED);
    ck_assert_msg(r >= least && r <= 1, "%s: %a for %a, allowed %a", name, x.out, x.truth, x.bound);
}

START_TEST(huge_scores_that_their_format_makes_equal_share_the_row)
{
    /* bf16 has neither: 2 for a truth of 1. (A*) is the range of v. */
    struct small x = {.n = 2, .s = {0x1.0dep+126, 0x1.0dcp+126}, .v = {1, 3}};
    reaches("bf16-sp", AT_STRAIGHT, x, 0.4);
}
END_TEST

/* Eight equal scores, a key a tile: the first key meets exp(0) eight times, the last one once. */
START_TEST(an_exp_of_0_that_is_not_1_rescales_every_tile)
{
    struct small x = {.n = 8, .s = {0}, .v = {1, 1, 1, 1, -1, -1, -1, -1}};
    reaches("fp32-libm-exp20", AT_UP, x, 0.1);
    reaches("fp32-libm-exp20", AT_DOWN, x, 0.1);
}
END_TEST

START_TEST(what_underflows_is_enlarged_by_the_gain_of_dropout)
{
    struct small x = {
        .n = 2, .s = {0, -0.75}, .v = {0, 0x1p-149}, .drop = 0.990234375}; /* p v is 0 */
    reaches("fp32", AT_STRAIGHT, x, 0.01);
    struct small y = {.n = 2,
                      .s = {0, 0},
                      .v = {0x1p-24, 0x1p-23},
                      .drop = 0.90625}; /* u is rounded to fp16 first */
    reaches("onnx-fp16", AT_STRAIGHT, y, 0.01);
}
END_TEST

/* 0.625 of the smallest number is that number; sums are finer, and do not lose it again. */
START_TEST(a_descaled_value_may_underflow_where_the_sums_do_not)
{
    double t = 0x1p-24;
    struct small x = {.n = 8, .s = {0}, .v = {-3 * t, t, t, t, t, t, t, t}, .descale = 0.625};
    reaches("onnx-fp16", AT_STRAIGHT, x, 0.01);
}
END_TEST

/* e^-90 is no normal number, but times 2^120 it is 1e-3. */
START_TEST(a_weight_that_is_flushed_takes_a_huge_value_with_it)
{
    struct small x = {.n = 2, .s = {0, -90}, .v = {0, 0x1p120}};
    reaches("fp32,flush=true", AT_STRAIGHT, x, 0.01);
}
END_TEST

START_TEST(a_descaled_value_that_may_overflow_has_no_claim)
{
    struct small x = {.n = 2, .s = {0, -12}, .v = {1, 60000}, .descale = 2};
    compute("onnx-fp16", AT_STRAIGHT, &x);
    ck_assert(isinf(x.out) && isfinite(x.truth));
    ck_assert_int_eq(x.kind, AT_OVERFLOW);
}
END_TEST

/* Seven weights of 2^-43 beside a 1: no addition but theirs, which errs by no more than they
 * are. */
START_TEST(light_keys_cost_what_they_weigh)
{
    struct small x = {
        .n = 8, .s = {0, -30, -30, -30, -30, -30, -30, -30}, .v = {1, 1, 1, 1, 1, 1, 1, 1}};
    compute("fp32", AT_STRAIGHT, &x);
    ck_assert_msg(x.bound > 0 && x.bound <= 0x1p-38, "allowed %a", x.bound);
    ck_assert(fabs(x.out - x.truth) <= x.bound);
}
END_TEST

START_TEST(each_final_rounding_beyond_one_is_allowed)
{
    struct small x = {.n = 2, .s = {0, -1}, .v = {1, 3}}, y = x;
    compute("fp32", AT_STRAIGHT, &x);
    compute("fp32,divisions=65", AT_STRAIGHT, &y);
    double more = (y.bound - x.bound) / (64 * 0x1p-24 * y.truth);
    ck_assert_msg(more >= 1 && more <= 1 + 0x1p-8, "%a", more);
}
END_TEST

/* Equal values: what is shared cancels. l is one addition; u is p/l, a product and an addition. */
START_TEST(a_divided_weight_is_rounded_once_more)
{
    struct small x = {.n = 2, .s = {0, -1}, .v = {1, 1}};
    compute("eager", AT_STRAIGHT, &x);
    ck_assert_msg(x.bound >= 0x1p-22 && x.bound <= 0x1p-22 * (1 + 0x1p-8), "%a", x.bound);
}
END_TEST

/* One key: lse is its score. q k and the product by the scale are rounded; so was the scale. */
START_TEST(the_scale_is_rounded_and_so_is_its_product)
{
    double one = 1, off = fabs((double)0.3f - 0.3) / 0.3;
    struct at_view x = at_bhsd(&one, AT_F64, 1, 1, 1, 1);
    struct at_attention a = at_plain(x, x, x, 0.3);
    struct at_arith arith = *at_arith_find("fp32");
    struct at_rows row = {1, NULL};
    struct at_answer y;
    arith.own = at_float_of(AT_F32);
    ck_assert_int_eq(at_answer_make(&y, 1, 1), AT_OK);
    ck_assert_int_eq(at_truth(&a, row, &y), AT_OK);
    ck_assert_int_eq(at_bound(&a, &arith, row, &y), AT_OK);
    double D = 0.3 * (2 * 0x1p-24 + off);
    ck_assert_msg(y.lse_bound[0] >= D && y.lse_bound[0] <= D * (1 + 0x1p-8), "%a", y.lse_bound[0]);
    at_answer_free(&y);
}
END_TEST

START_TEST(a_scale_that_the_compute_type_does_not_hold_has_no_claim)
{
    double zero = 0;
    struct at_view x = at_bhsd(&zero, AT_F64, 1, 1, 1, 1);
    struct at_attention a = at_plain(x, x, x, 0x1p128);
    struct at_arith arith = *at_arith_find("fp32");
    struct at_rows row = {1, NULL};
    struct at_answer y;
    arith.own = at_float_of(AT_F32);
    ck_assert_int_eq(at_answer_make(&y, 1, 1), AT_OK);
    ck_assert_int_eq(at_truth(&a, row, &y), AT_OK);
    ck_assert_int_eq(at_bound(&a, &arith, row, &y), AT_OK);
    ck_assert_int_eq(y.out_kind[0], AT_OVERFLOW); /* infinity times 0 */
    at_answer_free(&y);
}
END_TEST

START_TEST(finite_products_past_the_largest_double_have_no_claim)
{
    double q[2] = {4, 4}, k[4] = {0x1p1023, -0x1p1023, 0, 0}, v[2] = {1, 2};
    struct at_attention a = at_plain(at_bhsd(q, AT_F64, 1, 1, 1, 2), at_bhsd(k, AT_F64, 1, 1, 2, 2),
                                     at_bhsd(v, AT_F64, 1, 1, 2, 1), 1);
    struct at_rows row = {1, NULL};
    struct at_answer x;
    ck_assert_int_eq(at_answer_make(&x, 1, 1), AT_OK);
    ck_assert_int_eq(at_truth(&a, row, &x), AT_OK);
    ck_assert(x.out[0] == 1.5); /* 2^1025 - 2^1025 = 0 */
    ck_assert_int_eq(at_bound(&a, at_arith_find("fp64"), row, &x), AT_OK);
    ck_assert_int_eq(x.out_kind[0], AT_OVERFLOW);
    at_answer_free(&x);
}
END_TEST

int main(void)
{
    seed = (int64_t)paint_seed();
    count = paint_number("COUNT", getenv("LONG") ? 6400 : 160);
    Suite *suite = suite_create("families");
    TCase *t = tcase_create("families");
    tcase_set_timeout(t, 3600);
    tcase_add_test(t, no_preset_leaves_its_bound_on_extreme_problems);
    tcase_add_test(t, no_preset_leaves_its_bound_on_painted_problems_of_every_field);
    tcase_add_test(t, huge_scores_that_their_format_makes_equal_share_the_row);
    tcase_add_test(t, an_exp_of_0_that_is_not_1_rescales_every_tile);
    tcase_add_test(t, what_underflows_is_enlarged_by_the_gain_of_dropout);
    tcase_add_test(t, a_descaled_value_may_underflow_where_the_sums_do_not);
    tcase_add_test(t, a_weight_that_is_flushed_takes_a_huge_value_with_it);
    tcase_add_test(t, a_descaled_value_that_may_overflow_has_no_claim);
    tcase_add_test(t, light_keys_cost_what_they_weigh);
    tcase_add_test(t, each_final_rounding_beyond_one_is_allowed);
    tcase_add_test(t, a_divided_weight_is_rounded_once_more);
    tcase_add_test(t, the_scale_is_rounded_and_so_is_its_product);
    tcase_add_test(t, a_scale_that_the_compute_type_does_not_hold_has_no_claim);
    tcase_add_test(t, finite_products_past_the_largest_double_have_no_claim);
    suite_add_tcase(suite, t);
    return paint_run(suite);
}

/* Arithmetics by name: the presets, the words that change them, and which is looser than which.
 * SPDX-License-Identifier: MIT */
#include "bound_problem.h"

static void bounds(struct problem *p, const char *arith)
{
    struct at_arith x = arith_of(arith);
    problem_bound(p, &x);
}

/* -- Order ------------------------------------------------------------------------------------- */

/* Each word loosens what stands before it. */
static const char *const looser[][2] = {
    {"fp32", "fp32,product_eps=1e-6"},
    {"fp32", "fp32,exp_ulps=3"},
    {"fp32", "fp32,log_ulps=2"},
    {"fp32", "fp32,tanh_ulps=9"},
    {"fp32", "fp32,dot=40"},
    {"fp32,tile=3,joins=1", "fp32"},
    {"fp32,tile=4", "fp32,tile=4,joins=2"},
    {"fp32,tile=1,ordered=true", "fp32,tile=1"},
    {"fp32,tile=4,ordered=true", "fp32,tile=4"},
    {"fp32", "fp32,arguments=4"},
    {"fp32", "fp32,divisions=2"},
    {"fp32,divisions=2", "fp32,divisions=3"},
    {"fp32", "fp32,weight=fp16"},
    {"fp32,weight=fp16", "fp32,weight=fp8-e5m2"},
    {"fp32", "fp32,weight=bf16"},
    {"fp32", "fp32,score=fp16"},
    {"fp32,score=fp16", "fp32,score=fp8-e5m2"},
    {"fp32", "fp32,query=fp16"},
    {"fp32", "fp32,sum=fp16"},
    {"fp32,sum=fp16", "fp32,sum=fp8-e5m2"},
    {"fp32", "fp32,inexact_one=true"},
    {"fp32", "fp32,flush=true"},
    {"fp32", "fp32,truncates=true"},
    {"fp32", "fp32,lse_merge=true"},
    {"fp32,lse_merge=true", "fp32,lse_merge=true,joins=3"},
    {"fp32", "fp32,fused=true"},
    {"fp32,weight=fp8-e4m3,weight_shift=4", "fp32,weight=fp8-e4m3"},
    {"fp64", "fp32"},
};
enum { LOOSER = sizeof looser / sizeof *looser };

START_TEST(a_looser_arithmetic_never_has_the_smaller_bound)
{
    const char *strict = looser[_i][0], *loose = looser[_i][1];
    int64_t larger = 0;
    for (int k = 0; k < 60; k++) {
        struct problem p;
        double before[ROWS * Dv], lse[ROWS];
        paint_problem(&p, (unsigned)bits() % 256 | CAP, AT_F32, 1 + (int64_t)(bits() % MOST),
                      k % 2 ? 1 : 8);
        problem_truth(&p);
        bounds(&p, strict);
        memcpy(before, p.x.out_bound, sizeof before);
        memcpy(lse, p.x.lse_bound, sizeof lse);
        bounds(&p, loose);
        for (int64_t t = 0; t < ROWS * Dv; t++) {
            double was = before[t], now = p.x.out_bound[t];
            ck_assert_msg(now >= was, "SEED=%llu: %s %a, %s %a", (unsigned long long)p.seed, strict,
                          was, loose, now);
            larger += now > was;
        }
        for (int64_t t = 0; t < ROWS; t++) {
            ck_assert_msg(p.x.lse_bound[t] >= lse[t], "SEED=%llu: lse, %s %a, %s %a",
                          (unsigned long long)p.seed, strict, lse[t], loose, p.x.lse_bound[t]);
            larger += p.x.lse_bound[t] > lse[t];
        }
        at_answer_free(&p.x);
    }
    ck_assert_msg(larger > 0, "%s is no looser than %s", loose, strict);
}
END_TEST

/* -- Presets ----------------------------------------------------------------------------------- */

START_TEST(presets_have_names_and_sources_of_their_own_and_are_found)
{
    int64_t n = 0;
    for (; at_arith_at(n); n++) {
        const struct at_arith *x = at_arith_at(n);
        ck_assert(x->name && *x->name && x->source && *x->source && at_arith_find(x->name) == x);
        for (int64_t k = 0; k < n; k++)
            ck_assert(strcmp(x->name, at_arith_at(k)->name) &&
                      strcmp(x->source, at_arith_at(k)->source));
    }
    ck_assert(at_arith_find("fp32-tile64")->tile == 64 &&
              at_arith_find("fp32-sequential")->tile == 1);
    ck_assert(n > 20 && !at_arith_at(-1) && !at_arith_find("no such"));
    for (int d = AT_F64; d <= AT_F8_E5M2; d++) {
        int64_t k = 0;
        for (; at_arith_ladder((enum at_dtype)d, k); k++)
            for (int64_t i = 0; i < k; i++)
                ck_assert_ptr_ne(at_arith_ladder((enum at_dtype)d, i),
                                 at_arith_ladder((enum at_dtype)d, k));
        ck_assert(k > 0 && (d == AT_F64 || k > 2));
    }
}
END_TEST

#define ZEROS                                                                                      \
    "000000000000000000000000000000000000000000000000000000000000" /* 60: too long a word */

START_TEST(words_change_the_field_that_they_name_and_nothing_else)
{
    struct at_arith x =
        arith_of("bf16-p,tile=64,weight=default,fused=true,exp_ulps=0x1p3,weight_shift=-2");
    struct at_arith y = *at_arith_find("bf16-p"), z = x;
    y.tile = 64, y.weight = AT_DEFAULT, y.fused = true, y.exp_ulps = 8, y.weight_shift = -2;
    ck_assert(memcmp(&x, &y, sizeof x) == 0);
    static const char *const bad[] = {"nothing",
                                      "fp32,",
                                      "fp32,tile",
                                      "fp32,tile=",
                                      "fp32,tile=-1",
                                      "fp32,tile=1.5",
                                      "fp32,tiles=3",
                                      "fp32,fused=maybe",
                                      "fp32,weight=int32",
                                      "fp32,exp_ulps=nan",
                                      "fp32,exp_ulps=-1",
                                      "fp32,weight_shift=99",
                                      "",
                                      "fp32,=3",
                                      "fp32,exp_ulps=1x",
                                      "fp32,exp_ulps=" ZEROS ZEROS "1"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct at_why why = {""};
        ck_assert_msg(!at_arith_read(&x, bad[k], &why) && why.text[0], "%s", bad[k]);
        ck_assert(memcmp(&x, &z, sizeof x) == 0 && !at_arith_read(&x, bad[k], NULL));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arith");
    TCase *t = tcase_create("arith");
    const char *text = getenv("SEED");
    seed = text ? strtoull(text, NULL, 10) : 1;
    printf("SEED=%llu build/tests/check_arith\n", (unsigned long long)seed);
    fflush(stdout);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_looser_arithmetic_never_has_the_smaller_bound, 0, LOOSER);
    tcase_add_test(t, presets_have_names_and_sources_of_their_own_and_are_found);
    tcase_add_test(t, words_change_the_field_that_they_name_and_nothing_else);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

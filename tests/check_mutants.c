/* Suite mutants: the bank of planted faults. Without a fault the row loop is the scalar engine to
 * the bit; each fault fails somewhere under the arithmetic that it names, and changes no bit of a
 * problem that lacks what it needs. Problems are painted: SEED, COUNT; FAULT=name tries one alone.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "hold.h"
#include "oracle.h"
#include "turned.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 96, COUNT = 1500 };

/* What few faults are about: inputs past every number; and none: fp64. */
static const struct paint_options ordinary = {.without = PAINT_WIDE | PAINT_ZERO | PAINT_HUGE |
                                                         PAINT_SPECIAL};

static void resolved(struct at_attention *a, const struct problem *p)
{
    *a = p->a;
    a->plan.compute = AT_F32;
    a->plan = at_resolve(a);
}

/* -- The loop -------------------------------------------------------------------------------- */

/* fp32 results of every row in `to`, (rows, Dv) and (rows); rows of sequences alone. */
struct rows {
    double *out, *lse;
    struct at_rows all;
};

static struct rows mutant(struct problem *p, const struct at_attention *a,
                          const struct at_planted *f)
{
    struct rows x = {.all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL}};
    struct at_mutant_run *r = at_mutant_open(a, 0);
    x.out = problem_own(p, (size_t)(x.all.n * p->Dv) * sizeof(double));
    x.lse = problem_own(p, (size_t)x.all.n * sizeof(double));
    for (int64_t t = 0; t < x.all.n; t++)
        at_mutant_row(r, f, at_place_of(a, x.all, t), x.out + t * p->Dv, x.lse + t);
    at_mutant_close(r);
    return x;
}

static bool same(double x, double y) { return x == y || (isnan(x) && isnan(y)); }

static bool same_rows(const struct problem *p, const struct rows *x, const struct rows *y)
{
    for (int64_t k = 0; k < x->all.n * p->Dv; k++)
        if (!same(x->out[k], y->out[k]))
            return false;
    for (int64_t k = 0; k < x->all.n; k++)
        if (!same(x->lse[k], y->lse[k]))
            return false;
    return true;
}

START_TEST(without_a_fault_the_row_loop_is_scalar_to_the_bit)
{
    for (int64_t k = 0; k < paint_number("COUNT", 400); k++) {
        struct problem p;
        struct at_attention a;
        uint64_t seed = paint_seed() + (uint64_t)k;
        paint_problem(&p, seed,
                      (struct paint_options){.without = PAINT_WIDE | PAINT_ZERO | PAINT_STRIDES});
        resolved(&a, &p);
        struct at_planted none = {-1, -1, -1, AT_DEFAULT};
        struct rows x = mutant(&p, &a, &none);
        ck_assert_int_eq(at_forward(&at_scalar, &a, &p.got), AT_OK);
        struct at_view like = p.got.out, lse = p.got.lse;
        like.data = problem_own(&p, p.bytes[p.results]);
        if (lse.data)
            lse.data = problem_own(&p, p.bytes[p.results + 1]);
        for (int64_t t = 0; t < x.all.n; t++) {
            struct at_place r = at_place_of(&a, x.all, t);
            int64_t at = at_row_offset(&a, &like, r.b, r.h, r.i);
            for (int64_t c = 0; c < p.Dv; c++)
                paint_put(&like, at + c * like.stride[3], x.out[t * p.Dv + c]);
            if (lse.data)
                paint_put(&lse, at_row_offset(&a, &lse, r.b, r.h, r.i), x.lse[t]);
        }
        ck_assert_msg(paint_same(&like, &p.got.out) && (!lse.data || paint_same(&lse, &p.got.lse)),
                      "%s\n    %s", problem_line(&p),
                      paint_repro(seed, p.options, "check_mutants"));
        problem_free(&p);
    }
}
END_TEST

/* -- Each fault ------------------------------------------------------------------------------ */

/* N that the problem has: a key or tile in the middle. */
static struct at_planted planted(int64_t kind, const struct at_attention *a, int64_t turn)
{
    struct at_planted f = {(int)kind, -1, -1, AT_DEFAULT};
    struct at_sizes z = at_sizes(a);
    const char *of = at_mutant_at(kind)->of;
    if (of && strcmp(of, "key") == 0)
        f.at = turn % at_max(z.Skv, 1);
    if (of && strcmp(of, "tile") == 0)
        f.at = turn % at_max(z.Skv / a->plan.bc, 1);
    if (strcmp(at_mutant_at(kind)->arith, "bf16-p") == 0)
        f.weight = AT_BF16;
    return f;
}

/* Does the mutant's result fail the arithmetic that it names? */
static bool fails(struct problem *p, const struct at_attention *a, int64_t kind,
                  const struct at_planted *f, struct at_answer *truth, struct at_rows all)
{
    struct at_verdict v;
    char name[80];
    struct at_said said;
    at_mutant_name(f, name, sizeof name);
    if (f->weight == AT_BF16)
        strcat(name, strchr(name, '@') ? ",p=bf16" : "@p=bf16");
    problem_clear(p);
    ck_assert_msg(at_mutant_forward(name, a, &p->got, &said), "%s", said.text);
    const struct at_arith *arith = at_arith_find(at_mutant_at(kind)->arith);
    ck_assert_ptr_nonnull(arith);
    ck_assert_int_eq(at_bound(a, arith, all, truth), AT_OK);
    ck_assert_int_eq(at_compare(a, &p->got, all, arith, truth, NULL, &v), AT_OK);
    return v.failed > 0;
}

/* Scores far below 0: what a floor under the maximum needs. */
static void lower(struct problem *p, int64_t k)
{
    if (k % 4 != 1 || p->a.score.softcap > 0)
        return;
    p->a.score.scale *= k % 8 == 1 ? 0x1p13 : 0x1p6;
}

START_TEST(each_fault_fails_the_arithmetic_that_it_names)
{
    bool dead[MOST] = {false};
    int64_t n = 0, killed = 0, k = 0;
    const char *only = getenv("FAULT");
    while (at_mutant_at(n))
        n++;
    ck_assert_int_ge(n, 40);
    ck_assert_int_le(n, MOST);
    for (int64_t m = 0; m < n; m++)
        if (only && strcmp(only, at_mutant_at(m)->name) != 0)
            dead[m] = true, killed++;
    for (; killed < n && k < paint_number("COUNT", COUNT); k++) {
        struct problem p;
        struct at_attention a;
        struct hold h;
        paint_problem(&p, paint_seed() + (uint64_t)k, turned(ordinary, k));
        lower(&p, k);
        stretch(&p.a.v, k);
        resolved(&a, &p);
        ck_assert(hold_truth(&h, &a));
        for (int64_t m = 0; m < n; m++) {
            if (dead[m] || (at_mutant_at(m)->needs & ~at_mutant_offers(&a)))
                continue;
            struct at_planted f = planted(m, &a, k);
            if (fails(&p, &a, m, &f, &h.truth, h.rows))
                dead[m] = true, killed++;
        }
        hold_free(&h);
        problem_free(&p);
    }
    for (int64_t m = 0; m < n; m++)
        ck_assert_msg(dead[m],
                      "%s fails on none of %lld problems: SEED=%llu FAULT=%s "
                      "build/tests/check_mutants",
                      at_mutant_at(m)->name, (long long)k, (unsigned long long)paint_seed(),
                      at_mutant_at(m)->name);
    printf("%lld faults, each failed by one of %lld painted problems\n", (long long)n,
           (long long)k);
}
END_TEST

START_TEST(a_fault_changes_no_bit_where_what_it_needs_is_absent)
{
    struct at_planted none = {-1, -1, -1, AT_DEFAULT};
    int64_t tried = 0;
    for (int64_t k = 0; k < paint_number("COUNT", 60); k++) {
        struct problem p;
        struct at_attention a;
        paint_problem(&p, paint_seed() + (uint64_t)k, ordinary);
        resolved(&a, &p);
        struct rows plain = mutant(&p, &a, &none);
        int count = p.count;
        for (int64_t m = 0; at_mutant_at(m); m++) {
            if (!(at_mutant_at(m)->needs & ~at_mutant_offers(&a)))
                continue;
            struct at_planted f = planted(m, &a, k);
            f.weight = AT_DEFAULT;
            struct rows x = mutant(&p, &a, &f);
            ck_assert_msg(same_rows(&p, &plain, &x), "%s: %s\n    %s", at_mutant_at(m)->name,
                          problem_line(&p),
                          paint_repro(paint_seed() + (uint64_t)k, p.options, "check_mutants"));
            while (p.count > count)
                free(p.owned[--p.count]);
            tried++;
        }
        problem_free(&p);
    }
    ck_assert_int_gt(tried, 100);
}
END_TEST

START_TEST(a_name_is_read_back)
{
    struct at_said said;
    struct at_planted f;
    char name[80];
    for (int64_t m = 0; at_mutant_at(m); m++)
        for (int64_t at = -1; at < 2; at++) {
            struct at_planted g = {(int)m, at_mutant_at(m)->of ? at : -1, -1, AT_DEFAULT};
            bool key = at_mutant_at(m)->of && strcmp(at_mutant_at(m)->of, "key") == 0;
            at_mutant_name(&g, name, sizeof name);
            bool read = at_mutant_parse(name, &f, &said);
            ck_assert_msg(read == !(key && at < 0), "%s: %s", name, said.text);
            if (read)
                ck_assert(f.kind == g.kind && f.at == g.at && f.head == -1);
        }
    ck_assert(!at_mutant_parse("lost-keys@1", &f, &said));
    ck_assert(!at_mutant_parse("lost-key@1,p=fp8", &f, &said));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mutants");
    TCase *c = tcase_create("mutants");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, without_a_fault_the_row_loop_is_scalar_to_the_bit);
    tcase_add_test(c, each_fault_fails_the_arithmetic_that_it_names);
    tcase_add_test(c, a_fault_changes_no_bit_where_what_it_needs_is_absent);
    tcase_add_test(c, a_name_is_read_back);
    suite_add_tcase(s, c);
    return paint_run(s);
}

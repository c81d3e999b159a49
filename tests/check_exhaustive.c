/* Toy formats in which every input can be tried: all scores and all values of one, two or three
 * keys, every split and merge tree. Each is simulated, held to its bound, and counted. One row has
 * all values as its columns. LONG=1: all sets, else the small ones. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "family.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

/* -- Numbers ----------------------------------------------------------------------------------- */

/* Every finite number of the format, 0 once. */
static int64_t numbers(const struct at_float *f, double *to)
{
    int64_t n = 0;
    to[n++] = 0;
    for (int64_t k = 1; k < (int64_t)1 << (f->p - 1); k++)
        to[n++] = ldexp((double)k, f->emin - f->p + 1);
    for (int e = f->emin; e <= f->emax; e++)
        for (int64_t k = 0; k < (int64_t)1 << (f->p - 1); k++)
            to[n++] = ldexp(1 + ldexp((double)k, 1 - f->p), e);
    int64_t positive = n;
    for (int64_t k = 1; k < positive; k++)
        to[n++] = -to[k];
    ck_assert_int_le(n, MOST);
    return n;
}

static double digit(const double *x, int64_t base, int64_t at, int64_t place)
{
    while (place-- > 0)
        at /= base;
    return x[at % base];
}

static int64_t power(int64_t base, int64_t n)
{
    int64_t x = 1;
    while (n-- > 0)
        x *= base;
    return x;
}

/* -- Plans: every order of one, two or three keys ---------------------------------------------- */

static const struct tree {
    int64_t n, bc, splits, cut[2];
    enum at_order merge;
    const char *name;
} trees[] = {
    {1, 1, 1, {0, 0}, AT_IN_ORDER, "a"},       {2, 1, 1, {0, 0}, AT_IN_ORDER, "a,b"},
    {2, 2, 1, {0, 0}, AT_IN_ORDER, "[ab]"},    {2, 1, 2, {1, 0}, AT_IN_ORDER, "a+b"},
    {3, 1, 1, {0, 0}, AT_IN_ORDER, "a,b,c"},   {3, 2, 1, {0, 0}, AT_IN_ORDER, "[ab],c"},
    {3, 4, 1, {0, 0}, AT_IN_ORDER, "[abc]"},   {3, 1, 2, {1, 0}, AT_IN_ORDER, "a+(b,c)"},
    {3, 4, 2, {1, 0}, AT_IN_ORDER, "a+[bc]"},  {3, 1, 2, {2, 0}, AT_IN_ORDER, "(a,b)+c"},
    {3, 4, 2, {2, 0}, AT_IN_ORDER, "[ab]+c"},  {3, 1, 3, {1, 2}, AT_IN_ORDER, "(a+b)+c"},
    {3, 1, 3, {1, 2}, AT_REVERSED, "a+(b+c)"},
};
enum { TREES = sizeof trees / sizeof *trees };

static void plan(struct at_attention *a, const struct tree *t)
{
    a->plan = (struct at_plan){.bc = t->bc, .splits = t->splits, .merge = t->merge, .threads = 1};
    a->plan.cut = t->splits > 1 ? t->cut : NULL;
    a->plan.lanes = 1;
}

/* -- A set of inputs and a machine ------------------------------------------------------------- */

#define F(p, emin, emax)                                                                           \
    {                                                                                              \
        p, emin, emax, false, AT_NEAREST                                                           \
    }
/* Machines. e^-F is below every subnormal: F is 14, 12, 15, 7.75 and the least number 2^-8 or
 * more. */
#define RN .exp_ulps = 0.5, .log_ulps = 0.5, .tanh_ulps = 0.5
static const struct at_arith machines[] = {
    {.name = "p=3", .own = F(3, -6, 3), RN},
    {.name = "p=2", .own = F(2, -6, 3), RN},
    {.name = "p=4", .own = F(4, -5, 3), RN},
    {.name = "p=3 flush", .own = {3, -6, 3, true, AT_NEAREST}, .flush = true, RN},
    {.name = "p=4, P p=2", .own = F(4, -5, 3), .own_weight = F(2, -5, 3), RN},
    {.name = "p=4, P and l p=2",
     .own = F(4, -5, 3),
     .own_weight = F(2, -5, 3),
     .rounded_sum = true,
     RN},
    {.name = "p=4 normalised", .own = F(4, -5, 3), .normalised = true, RN},
    {.name = "p=4 exp2 fused", .own = F(4, -5, 3), .fused = true, .divisions = 2, RN},
    {.name = "p=4 sums cut", .own = F(4, -5, 3), .truncates = true, RN},
    {.name = "p=4 exp(0) up",
     .own = F(4, -5, 3),
     .inexact_one = true,
     .exp_ulps = 1,
     .log_ulps = 1},
};
enum { MACHINES = sizeof machines / sizeof *machines };

struct set {
    const char *name;
    int64_t n, D;       /* keys; D > 1: scores are q k, else stored */
    struct at_float in; /* every finite number of this */
    int machines;       /* the first so many */
};

static const struct set sets[] = {
    {"1 key", 1, 1, F(3, -3, 3), MACHINES},  {"2 keys", 2, 1, F(3, 0, 0), MACHINES},
    {"3 keys", 3, 1, F(1, -1, 1), MACHINES}, {"2 keys, D=2", 2, 2, F(1, 0, 1), 3},
    {"2 keys", 2, 1, F(3, -3, 3), 4},        {"3 keys", 3, 1, F(2, -1, 1), 3},
    {"2 keys, D=2", 2, 2, F(1, -1, 1), 3},
};
enum { SETS = sizeof sets / sizeof *sets, QUICK = 4 }; /* the others: LONG=1 */

struct exhaustive {
    const struct set *set;
    double number[MOST];
    int64_t base, columns, rows; /* rows at a time */
    double *q, *k, *v, *bias, *out, *lse, *ratio;
    struct at_attention a;
    struct at_answer x;
    struct tally tally[MACHINES];
};

static void *make(int64_t n)
{
    double *x = malloc((size_t)n * sizeof *x);
    ck_assert(x != NULL);
    return x;
}

static void open_set(struct exhaustive *e, const struct set *s)
{
    *e = (struct exhaustive){.set = s};
    e->base = numbers(&s->in, e->number);
    e->columns = power(e->base, s->n);
    e->rows = s->D > 1 ? 1 : e->base;
    int64_t D = s->D;
    e->q = make(e->rows * D), e->k = make(s->n * D), e->v = make(s->n * e->columns);
    e->bias = make(e->rows * s->n), e->out = make(e->rows * e->columns), e->lse = make(e->rows);
    e->ratio = make(e->rows * (e->columns + 1));
    e->a = at_plain(at_bhsd(e->q, AT_F64, 1, 1, e->rows, D), at_bhsd(e->k, AT_F64, 1, 1, s->n, D),
                    at_bhsd(e->v, AT_F64, 1, 1, s->n, e->columns), 1);
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t c = 0; c < e->columns; c++)
            e->v[j * e->columns + c] = digit(e->number, e->base, c, j);
    for (int64_t c = 0; c < e->rows * D; c++)
        e->q[c] = 0;
    for (int64_t c = 0; c < s->n * D; c++)
        e->k[c] = 0;
    if (D == 1)
        e->a.score.bias = at_bhsd(e->bias, AT_F64, 1, 1, e->rows, s->n);
    ck_assert_int_eq(at_answer_make(&e->x, e->rows, e->columns), AT_OK);
}

static void close_set(struct exhaustive *e)
{
    double *all[] = {e->q, e->k, e->v, e->bias, e->out, e->lse, e->ratio};
    for (int k = 0; k < 7; k++)
        free(all[k]);
    at_answer_free(&e->x);
}

/* Batch t of the scores: the first varies in it; with D > 1 one choice of q and k. */
static void scores_of(struct exhaustive *e, int64_t t)
{
    int64_t n = e->set->n, D = e->set->D;
    for (int64_t c = 0; c < D && D > 1; c++)
        e->q[c] = digit(e->number, e->base, t, c);
    for (int64_t c = 0; c < n * D && D > 1; c++)
        e->k[c] = digit(e->number, e->base, t, D + c);
    for (int64_t i = 0; i < e->rows && D == 1; i++)
        for (int64_t j = 0; j < n; j++)
            e->bias[i * n + j] = j == 0 ? e->number[i] : digit(e->number, e->base, t, j - 1);
}

static int64_t batches(const struct exhaustive *e)
{
    return power(e->base, e->set->D > 1 ? e->set->D * (1 + e->set->n) : e->set->n - 1);
}

/* -- The bound --------------------------------------------------------------------------------- */

static void count(struct exhaustive *e, int k, const struct at_arith *arith, const struct tree *t)
{
    struct at_rows rows = {e->rows, NULL};
    struct at_result got = {at_bhsd(e->out, AT_F64, 1, 1, e->rows, e->columns),
                            at_bhsd(e->lse, AT_F64, 1, 1, e->rows, 1)};
    struct tally *to = &e->tally[k];
    struct at_verdict v;
    ck_assert_int_eq(at_compare(&e->a, &got, rows, arith, &e->x, e->ratio, &v), AT_OK);
    to->claimed += v.judged, to->unclaimed += v.unclaimed, to->failed += v.failed;
    to->outputs += e->rows * (e->columns + 1);
    for (int64_t c = 0; c < e->rows * (e->columns + 1); c++) {
        double *most = c < e->rows * e->columns ? &to->out : &to->lse;
        *most = e->ratio[c] > *most ? e->ratio[c] : *most;
    }
    if (v.failed > 0 && to->failed - v.failed < 10) {
        printf("%s %s%s: got %a truth %a allowed %a; scores", arith->name, t->name,
               arith->ordered ? " ordered" : "", v.got, v.truth, v.allowed);
        for (int64_t j = 0; j < e->set->n; j++)
            printf(" %g", e->bias[v.worst * e->set->n + j]);
        for (int64_t j = 0; j < e->set->n && v.worst_c >= 0; j++)
            printf("%s %g", j ? "" : " values", e->v[j * e->columns + v.worst_c]);
        printf("\n");
    }
}

/* Trees without splits once more, as sums of a known order. */
static void hold(struct exhaustive *e, int k)
{
    struct at_rows rows = {e->rows, NULL};
    for (int turn = 0; turn < 2; turn++)
        for (int u = 0; u < TREES; u++) {
            struct at_arith arith = machines[k];
            struct at_machine m = at_machine_of(&arith);
            if (trees[u].n != e->set->n || (turn && trees[u].splits > 1))
                continue;
            m.lean = arith.inexact_one ? AT_UP : AT_STRAIGHT;
            arith.ordered = turn, arith.tile = turn ? trees[u].bc : 0;
            plan(&e->a, &trees[u]);
            if (turn || u == 0 || trees[u - 1].n != e->set->n)
                ck_assert_int_eq(at_bound(&e->a, &arith, rows, &e->x), AT_OK);
            ck_assert_int_eq(at_simulate(&e->a, &m, rows, e->out, e->lse), AT_OK);
            count(e, k, &arith, &trees[u]);
        }
}

START_TEST(no_input_of_a_toy_format_leaves_its_bound)
{
    const struct set *s = &sets[_i];
    struct exhaustive e;
    open_set(&e, s);
    int64_t failed = 0, counted = 0;
    for (int64_t t = 0; t < batches(&e); t++) {
        struct at_rows rows = {e.rows, NULL};
        scores_of(&e, t);
        plan(&e.a, &trees[0]);
        ck_assert_int_eq(at_truth(&e.a, rows, &e.x), AT_OK);
        for (int k = 0; k < s->machines; k++)
            if (machines[k].own.p >= s->in.p) /* it holds the inputs */
                hold(&e, k);
    }
    for (int k = 0; k < s->machines; k++) {
        const struct tally *x = &e.tally[k];
        if (x->outputs == 0)
            continue;
        printf("%-12s of %lld numbers, %-18s %10lld inputs %10lld claimed %9lld without claim "
               "%lld violations; ratio out %.3f lse %.3f\n",
               s->name, (long long)e.base, machines[k].name, (long long)x->outputs,
               (long long)x->claimed, (long long)x->unclaimed, (long long)x->failed, x->out,
               x->lse);
        failed += x->failed, counted += x->claimed;
        if (s->n > 1)
            ck_assert(x->out > 0);
    }
    fflush(stdout);
    close_set(&e);
    ck_assert_int_eq(failed, 0);
    ck_assert_int_gt(counted, 0);
}
END_TEST

/* -- Laws -------------------------------------------------------------------------------------- */

/* The machine's out and lse under another plan, or with its keys the other way round. */
static void run(const struct exhaustive *e, int k, const struct at_attention *a, double *out,
                double *lse)
{
    struct at_machine m = at_machine_of(&machines[k]);
    ck_assert_int_eq(at_simulate(a, &m, (struct at_rows){e->rows, NULL}, out, lse), AT_OK);
}

static struct at_view reversed(struct at_view x, int dim)
{
    x.data = (double *)x.data + (x.dim[dim] - 1) * x.stride[dim];
    x.stride[dim] = -x.stride[dim];
    return x;
}

static void laws_of(struct exhaustive *e, int k, double *out, double *lse)
{
    static const int64_t ends[] = {0, 2};
    size_t bytes = (size_t)(e->rows * e->columns) * sizeof *out;
    size_t lse_bytes = (size_t)e->rows * sizeof *lse;
    struct at_attention a = e->a;
    plan(&a, &trees[2]);
    run(e, k, &a, e->out, e->lse);
    a.plan.splits = 3, a.plan.cut = ends;
    run(e, k, &a, out, lse);
    ck_assert_msg(memcmp(out, e->out, bytes) == 0 && memcmp(lse, e->lse, lse_bytes) == 0,
                  "%s: an empty state changes a bit", machines[k].name);
    plan(&a, &trees[3]);
    run(e, k, &a, e->out, e->lse);
    a.k = reversed(a.k, 2), a.v = reversed(a.v, 2), a.score.bias = reversed(a.score.bias, 3);
    run(e, k, &a, out, lse);
    ck_assert_msg(memcmp(out, e->out, bytes) == 0 && memcmp(lse, e->lse, lse_bytes) == 0,
                  "%s: the sides of a merge are not alike", machines[k].name);
}

START_TEST(empty_is_neutral_and_merging_commutes_on_every_input)
{
    struct exhaustive e;
    open_set(&e, &sets[1]);
    double *out = make(e.rows * e.columns), *lse = make(e.rows);
    for (int64_t t = 0; t < batches(&e); t++) {
        scores_of(&e, t);
        for (int k = 0; k < MACHINES; k++)
            laws_of(&e, k, out, lse);
    }
    printf("laws: empty neutral, merge commutative on %lld inputs of each machine\n",
           (long long)(batches(&e) * e.rows * e.columns));
    free(out);
    free(lse);
    close_set(&e);
}
END_TEST

START_TEST(one_key_gives_its_value_on_every_input)
{
    struct exhaustive e;
    open_set(&e, &sets[0]);
    for (int k = 0; k < 4; k++) { /* numbers that the machine holds, a weight that is exactly 1 */
        if (machines[k].own.p < 3)
            continue;
        scores_of(&e, 0);
        plan(&e.a, &trees[0]);
        run(&e, k, &e.a, e.out, e.lse);
        for (int64_t t = 0; t < e.rows * e.columns; t++)
            ck_assert_msg(e.out[t] == e.v[t % e.columns], "%s: %g", machines[k].name, e.out[t]);
        for (int64_t i = 0; i < e.rows; i++)
            ck_assert(e.lse[i] == e.bias[i]);
    }
    close_set(&e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exhaustive");
    TCase *t = tcase_create("exhaustive");
    tcase_set_timeout(t, 3600);
    tcase_add_loop_test(t, no_input_of_a_toy_format_leaves_its_bound, 0,
                        getenv("LONG") ? SETS : QUICK);
    tcase_add_test(t, empty_is_neutral_and_merging_commutes_on_every_input);
    tcase_add_test(t, one_key_gives_its_value_on_every_input);
    suite_add_tcase(suite, t);
    return paint_run(suite);
}

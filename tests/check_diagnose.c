/* Suite diagnose: a planted fault is named, from the output alone - by an engine of other tiles and
 * lanes than the one that made it; noise and correct kernels are not given a fault's name.
 * Problems are painted: SEED, COUNT; FAULT=name tries one alone. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "hold.h"
#include "oracle.h"
#include "ordinary.h"
#include "turned.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 96, COUNT = 40, TIMES = 3 };

static const struct paint_options ordinary = {.without = PAINT_WIDE | PAINT_ZERO | PAINT_HUGE |
                                                         PAINT_SPECIAL | PAINT_OUT | PAINT_STRIDES |
                                                         PAINT_PLAN | PAINT_SPLITS,
                                              .most = 60};

/* The kernel's plan: what it is, the diagnosis does not know. */
static struct at_attention kernel(const struct at_attention *problem, int64_t k)
{
    struct at_attention a = *problem;
    a.plan = (struct at_plan){.compute = AT_F32, .bc = 16, .lanes = k % 2 ? 4 : 1};
    a.plan.splits = k % 3 == 0 ? 2 : 1;
    a.plan = at_resolve(&a);
    return a;
}

/* Scores far below 0: what a floor under the maximum needs. */
static void lower(struct at_attention *a, int64_t k)
{
    if (k % 4 == 1 && !(a->score.softcap > 0))
        a->score.scale *= k % 8 == 1 ? 0x1p13 : 0x1p6;
}

/* N among what the longest sequence sees. */
static struct at_planted planted(int64_t kind, const struct at_attention *a, int64_t turn)
{
    struct at_planted f = {(int)kind, -1, -1, AT_DEFAULT};
    struct at_sizes z = at_sizes(a);
    const char *of = at_mutant_at(kind)->of;
    if (of && strcmp(of, "key") == 0)
        f.at = turn % at_max(z.Skv, 1);
    if (of && strcmp(of, "tile") == 0)
        f.at = at_min(z.Skv / 16, 1 + turn % at_max(z.Skv / 16, 1));
    if (strcmp(at_mutant_at(kind)->arith, "bf16-p") == 0)
        f.weight = AT_BF16;
    return f;
}

static void make(const struct at_result *to, const struct at_attention *a,
                 const struct at_planted *f)
{
    char name[100];
    struct at_said said;
    at_mutant_name(f, name, sizeof name);
    if (f->weight == AT_BF16)
        strcat(name, strchr(name, '@') ? ",p=bf16" : "@p=bf16");
    ck_assert_msg(at_mutant_forward(name, a, to, &said), "%s", said.text);
}

/* What the diagnosis says of a result, not knowing its plan; failed: elements. */
static struct at_diagnosis say(const struct at_attention *problem, const struct at_result *got,
                               struct hold *h, const struct at_arith *arith, int64_t *failed)
{
    struct at_verdict v;
    struct at_diagnosis d = {.rows = 0};
    struct at_attention stranger = *problem;
    stranger.plan = (struct at_plan){.compute = AT_F32};
    ck_assert_int_eq(at_bound(&stranger, arith, h->rows, &h->truth), AT_OK);
    ck_assert_int_eq(at_compare(&stranger, got, h->rows, arith, &h->truth, NULL, &v), AT_OK);
    *failed = v.failed;
    ck_assert(at_diagnose(&stranger, got, h->rows, arith, &h->truth, &d));
    return d;
}

/* Is the fault in a list "lost-key@key=3, lost-tail"? */
static bool names(const char *list, const char *fault)
{
    size_t n = strlen(fault);
    for (const char *at = list; (at = strstr(at, fault)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == '@' || at[n] == ','))
            return true;
    return false;
}

/* An arithmetic in its own words is the fault's name too. */
static bool same_arithmetic(const struct at_diagnosis *d, const char *fault)
{
    static const char *const words[][2] = {{"p-bf16", "P in bf16"}, {"p-fp16", "P in fp16"}};
    for (int k = 0; d->arithmetic && k < 2; k++)
        if (strcmp(fault, words[k][0]) == 0 && strncmp(d->name, words[k][1], 9) == 0)
            return true;
    return false;
}

/* -- Named ----------------------------------------------------------------------------------- */

struct score {
    int64_t tried[MOST], right[MOST], other[MOST], unknown[MOST], first;
};

static void diagnose(const struct at_attention *problem, const struct at_result *got,
                     struct hold *h, int64_t k, int64_t m, struct score *s)
{
    struct at_attention a = kernel(problem, k);
    struct at_planted f = planted(m, &a, k);
    int64_t failed;
    make(got, &a, &f);
    struct at_diagnosis d = say(problem, got, h, at_arith_find(at_mutant_at(m)->arith), &failed);
    if (failed < 4) /* a number or two prove nothing */
        return;
    const char *name = at_mutant_at(m)->name;
    bool first = d.known && (names(d.name, name) || same_arithmetic(&d, name));
    bool right = first || (d.known && d.alike && names(d.other, name));
    s->first += first;
    s->tried[m]++;
    s->right[m] += right;
    s->other[m] += d.known && !right;
    s->unknown[m] += !d.known;
    if (!right && getenv("FAULT"))
        printf("%lld: %s: said %s (%lld of %lld, failing %lld of %lld), next %s; failed %lld\n",
               (long long)k, name, d.known ? d.name : "unknown", (long long)d.explained,
               (long long)d.of, (long long)d.failing, (long long)d.of_failing, d.other,
               (long long)failed);
}

static void diagnose_all(const struct at_attention *a, const struct at_result *got, int64_t k,
                         struct score *s)
{
    const char *only = getenv("FAULT");
    struct hold h;
    ck_assert(hold_truth(&h, a));
    for (int64_t m = 0; at_mutant_at(m); m++)
        if ((!only || strcmp(only, at_mutant_at(m)->name) == 0) && s->tried[m] < TIMES &&
            !(at_mutant_at(m)->needs & ~at_mutant_offers(a)))
            diagnose(a, got, &h, k, m, s);
    hold_free(&h);
}

/* Normal numbers, more keys than a tile has, features in turn. */
static void diagnose_ordinary(int64_t k, struct score *s)
{
    struct ordinary x;
    uint32_t features = k < 11 ? 1u << k : ORDINARY_CAUSAL | 1u << (k % 11);
    struct ordinary_shape shape = {2, 4, 2, 20, 72, 20, 7, AT_F32, features, k % 2 ? 1 : 30};
    ordinary_make(&x, paint_seed() + (uint64_t)k, shape);
    lower(&x.a, k);
    diagnose_all(&x.a, &x.got, k, s);
    ordinary_free(&x);
}

START_TEST(a_planted_fault_is_named)
{
    struct score s = {.first = 0};
    const char *only = getenv("FAULT");
    int64_t tried = 0, right = 0, n = 0;
    for (int64_t k = 0; k < paint_number("COUNT", COUNT); k++) {
        struct problem p;
        if (k % 2 == 0) {
            diagnose_ordinary(k / 2, &s);
            continue;
        }
        paint_problem(&p, paint_seed() + (uint64_t)k, turned(ordinary, k));
        lower(&p.a, k);
        stretch(&p.a.v, k);
        diagnose_all(&p.a, &p.got, k, &s);
        problem_free(&p);
    }
    for (int64_t m = 0; at_mutant_at(m); m++, n++) {
        tried += s.tried[m];
        right += s.right[m];
        if (s.right[m] < s.tried[m] || (s.tried[m] == 0 && !only))
            printf("%-20s right %lld of %lld, another name %lld, unknown %lld\n",
                   at_mutant_at(m)->name, (long long)s.right[m], (long long)s.tried[m],
                   (long long)s.other[m], (long long)s.unknown[m]);
    }
    printf("%lld faults, %lld failing outputs, named rightly %lld, %lld of them first\n",
           (long long)n, (long long)tried, (long long)right, (long long)s.first);
    fflush(stdout);
    ck_assert_int_gt(tried, only ? 0 : 2 * n);
    ck_assert_int_ge(right * 100, tried * 95);
}
END_TEST

/* -- Not named ------------------------------------------------------------------------------- */

/* A fault of the bank that is no narrow format. */
static bool blames(const struct at_diagnosis *d)
{
    for (int64_t m = at_mutant_formats(); at_mutant_at(m); m++)
        if (names(d->name, at_mutant_at(m)->name))
            return false;
    return d->known && !d->arithmetic;
}

/* A correct kernel's rows (turn 0), with noise (1), with P in bf16 (2) or fp16 (3). */
static void fill(struct problem *p, const struct at_attention *a, struct at_rows all, int turn)
{
    struct at_planted f = {-1, -1, -1, turn == 2 ? AT_BF16 : turn == 3 ? AT_F16 : AT_DEFAULT};
    struct at_mutant_run *r = at_mutant_open(a, 0);
    const struct at_view *y = &p->got.out, *lse = &p->got.lse;
    for (int64_t t = 0; t < all.n; t++) {
        double out[64], end;
        struct at_place q = at_place_of(a, all, t);
        int64_t at = at_row_offset(a, y, q.b, q.h, q.i);
        at_mutant_row(r, &f, q, out, &end);
        for (int64_t c = 0; c < p->Dv; c++) {
            double noise = turn == 1 ? 1 + 0x1p-10 * sin(1e4 * (double)(t + c)) : 1;
            paint_put(y, at + c * y->stride[3], out[c] * noise);
        }
        if (lse->data)
            paint_put(lse, at_row_offset(a, lse, q.b, q.h, q.i), end);
    }
    at_mutant_close(r);
}

START_TEST(correct_kernels_and_noise_are_not_blamed)
{
    static const char *const held[] = {"fp32-tile64", "fp32", "fp32", "fp32"};
    int64_t tried = 0, formats = 0, failed;
    for (int64_t k = 0; k < paint_number("COUNT", COUNT); k++) {
        struct problem p;
        struct hold h;
        paint_problem(&p, paint_seed() + 1000 + (uint64_t)k, ordinary);
        ck_assert(hold_truth(&h, &p.a));
        struct at_attention a = kernel(&p.a, k);
        for (int turn = 0; turn < 4; turn++) {
            fill(&p, &a, h.rows, turn);
            struct at_diagnosis d = say(&p.a, &p.got, &h, at_arith_find(held[turn]), &failed);
            ck_assert_msg(!blames(&d), "%s: said %s (%lld of %lld) of a kernel without it: %s",
                          turn == 1 ? "noise" : "a correct kernel", d.name, (long long)d.failing,
                          (long long)d.of_failing, problem_line(&p));
            ck_assert(!d.known || failed > 0);
            ck_assert(turn > 0 || failed == 0);
            tried += failed > 0;
            formats += d.known;
        }
        hold_free(&h);
        problem_free(&p);
    }
    printf("%lld outputs that fail without a fault: %lld given a format, none a fault\n",
           (long long)tried, (long long)formats);
    ck_assert_int_gt(tried, 0);
}
END_TEST

/* A plain problem of normal numbers: the right output in `good`, a mutant's in got. */
static void both(struct ordinary *x, struct hold *h, const char *fault, float *good)
{
    struct at_said said;
    struct ordinary_shape shape = {1, 2, 1, 4, 40, 16, 8, AT_F32, 0, 1};
    ordinary_make(x, paint_seed(), shape);
    ck_assert(hold_truth(h, &x->a));
    struct at_attention a = kernel(&x->a, 1);
    ck_assert_int_eq(at_forward(&at_scalar, &a, &x->got), AT_OK);
    memcpy(good, x->got.out.data, 64 * sizeof *good);
    ck_assert_msg(at_mutant_forward(fault, &a, &x->got, &said), "%s", said.text);
    x->got.lse.data = NULL;
}

START_TEST(one_wrong_number_is_no_fault)
{
    struct ordinary x;
    struct hold h;
    struct at_said said;
    int64_t failed;
    struct ordinary_shape shape = {1, 1, 1, 1, 40, 16, 1, AT_F32, 0, 1};
    ordinary_make(&x, paint_seed(), shape);
    ck_assert(hold_truth(&h, &x.a));
    struct at_attention a = kernel(&x.a, 1);
    ck_assert_msg(at_mutant_forward("lost-key@7", &a, &x.got, &said), "%s", said.text);
    x.got.lse.data = NULL;
    struct at_diagnosis d = say(&x.a, &x.got, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_eq(failed, 1);
    ck_assert_msg(!blames(&d), "said %s", d.name);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

START_TEST(a_fault_that_explains_half_is_not_named)
{
    struct ordinary x;
    struct hold h;
    float good[64];
    int64_t failed;
    both(&x, &h, "scale-twice", good);
    for (int k = 0; k < 64; k += 2) /* in the even columns: something else */
        ((float *)x.got.out.data)[k] = good[k] + (float)(1 + k % 5) / 8;
    struct at_diagnosis d = say(&x.a, &x.got, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_gt(failed, 50);
    ck_assert_msg(!d.known, "said %s", d.name);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

START_TEST(a_weight_that_fp16_loses_is_called_a_format)
{
    struct ordinary x;
    struct hold h;
    float good[64];
    int64_t failed;
    both(&x, &h, "lost-key@7", good);
    memset(x.a.q.data, 0, 4 * 2 * 4 * 16); /* scores 0, but for key 7: e^-18 < 2^-25 */
    for (int row = 0; row < 8; row++)
        ((float *)x.a.q.data)[row * 16] = 4;
    for (int j = 0; j < 40; j++)
        ((float *)x.a.k.data)[j * 16] = j == 7 ? -18 : 0;
    for (int c = 0; c < 8; c++)
        ((float *)x.a.v.data)[7 * 8 + c] = 0x1p20f;
    hold_free(&h);
    ck_assert(hold_truth(&h, &x.a));
    struct at_attention a = kernel(&x.a, 1);
    struct at_said said;
    ck_assert_msg(at_mutant_forward("p-fp16", &a, &x.got, &said), "%s", said.text);
    struct at_diagnosis d = say(&x.a, &x.got, &h, at_arith_find("fp32"), &failed);
    ck_assert_int_eq(failed, 64);
    ck_assert_msg(d.known && names(d.name, "p-fp16"), "said %s", d.name);
    ck_assert_msg(d.alike && names(d.other, "lost-update"), "beside %s", d.other);
    hold_free(&h);
    ordinary_free(&x);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("diagnose");
    TCase *c = tcase_create("diagnose");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, a_planted_fault_is_named);
    tcase_add_test(c, correct_kernels_and_noise_are_not_blamed);
    tcase_add_test(c, one_wrong_number_is_no_fault);
    tcase_add_test(c, a_fault_that_explains_half_is_not_named);
    tcase_add_test(c, a_weight_that_fp16_loses_is_called_a_format);
    suite_add_tcase(s, c);
    return paint_run(s);
}

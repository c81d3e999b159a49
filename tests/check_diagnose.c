/* Suite diagnose: a planted fault is named, from the output alone - by an engine of other tiles and
 * lanes than the one that made it; noise and correct kernels are not given a fault's name.
 * Problems are painted: SEED, COUNT; FAULT=name tries one alone. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "hold.h"
#include "oracle.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 96, COUNT = 60, TIMES = 4 };

static const struct paint_options ordinary = {.without = PAINT_WIDE | PAINT_ZERO | PAINT_HUGE |
                                                         PAINT_SPECIAL | PAINT_OUT | PAINT_STRIDES |
                                                         PAINT_PLAN | PAINT_SPLITS,
                                              .most = 40};

/* The kernel's plan: what it is, the diagnosis does not know. */
static struct at_attention kernel(const struct problem *p, int64_t k)
{
    struct at_attention a = p->a;
    a.plan = (struct at_plan){.compute = AT_F32, .bc = 16, .lanes = k % 2 ? 4 : 1};
    a.plan.splits = k % 3 == 0 ? 2 : 1;
    a.plan = at_resolve(&a);
    return a;
}

/* Scores far below 0: what a floor under the maximum needs. */
static void lower(struct problem *p, int64_t k)
{
    if (k % 4 == 1 && !(p->a.score.softcap > 0))
        p->a.score.scale *= k % 8 == 1 ? 0x1p13 : 0x1p6;
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
        f.at = turn % at_max((z.Skv + 15) / 16, 1);
    if (strcmp(at_mutant_at(kind)->arith, "bf16-p") == 0)
        f.weight = AT_BF16;
    return f;
}

static void make(struct problem *p, const struct at_attention *a, const struct at_planted *f)
{
    char name[100];
    struct at_said said;
    problem_clear(p);
    at_mutant_name(f, name, sizeof name);
    if (f->weight == AT_BF16)
        strcat(name, strchr(name, '@') ? ",p=bf16" : "@p=bf16");
    ck_assert_msg(at_mutant_forward(name, a, &p->got, &said), "%s", said.text);
}

/* What the diagnosis says of p->got; failed: elements. */
static struct at_diagnosis say(struct problem *p, struct hold *h, const struct at_arith *arith,
                               int64_t *failed)
{
    struct at_verdict v;
    struct at_diagnosis d = {.rows = 0};
    struct at_attention stranger = p->a;
    stranger.plan = (struct at_plan){.compute = AT_F32};
    ck_assert_int_eq(at_bound(&stranger, arith, h->rows, &h->truth), AT_OK);
    ck_assert_int_eq(at_compare(&stranger, &p->got, h->rows, arith, &h->truth, NULL, &v), AT_OK);
    *failed = v.failed;
    ck_assert(at_diagnose(&stranger, &p->got, h->rows, arith, &h->truth, &d));
    return d;
}

static bool names(const char *said, const char *fault)
{
    size_t n = strlen(fault);
    return strncmp(said, fault, n) == 0 && (said[n] == 0 || said[n] == '@');
}

/* -- Named ----------------------------------------------------------------------------------- */

struct score {
    int64_t tried[MOST], right[MOST], other[MOST], unknown[MOST];
};

static void diagnose(struct problem *p, struct hold *h, int64_t k, int64_t m, struct score *s)
{
    struct at_attention a = kernel(p, k);
    struct at_planted f = planted(m, &a, k);
    int64_t failed;
    make(p, &a, &f);
    struct at_diagnosis d = say(p, h, at_arith_find(at_mutant_at(m)->arith), &failed);
    if (failed < 4) /* a number or two prove nothing */
        return;
    const char *name = at_mutant_at(m)->name;
    bool right = d.known && (names(d.name, name) || (d.alike && names(d.other, name)));
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

START_TEST(a_planted_fault_is_named)
{
    struct score s = {{0}, {0}, {0}, {0}};
    const char *only = getenv("FAULT");
    int64_t tried = 0, right = 0, n = 0;
    for (int64_t k = 0; k < paint_number("COUNT", COUNT); k++) {
        struct problem p;
        struct hold h;
        paint_problem(&p, paint_seed() + (uint64_t)k, ordinary);
        lower(&p, k);
        ck_assert(hold_truth(&h, &p.a));
        for (int64_t m = 0; at_mutant_at(m); m++)
            if ((!only || strcmp(only, at_mutant_at(m)->name) == 0) && s.tried[m] < TIMES &&
                !(at_mutant_at(m)->needs & ~at_mutant_offers(&p.a)))
                diagnose(&p, &h, k, m, &s);
        hold_free(&h);
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
    printf("%lld faults, %lld failing outputs, named rightly %lld\n", (long long)n,
           (long long)tried, (long long)right);
    ck_assert_int_gt(tried, only ? 0 : n * 3);
    ck_assert_int_ge(right * 100, tried * 95);
}
END_TEST

/* -- Not named ------------------------------------------------------------------------------- */

/* A fault of the bank that is no rounding. */
static bool blames(const struct at_diagnosis *d)
{
    return d->known && !d->arithmetic && strncmp(d->name, "p-", 2) != 0 &&
           strncmp(d->name, "scores-", 7) != 0;
}

START_TEST(correct_kernels_and_noise_are_not_blamed)
{
    static const char *const held[] = {"fp32-tile64", "fp32", "fp32", "fp32"};
    int64_t tried = 0, arithmetic = 0;
    for (int64_t k = 0; k < paint_number("COUNT", COUNT); k++) {
        struct problem p;
        struct hold h;
        int64_t failed;
        paint_problem(&p, paint_seed() + 1000 + (uint64_t)k, ordinary);
        ck_assert(hold_truth(&h, &p.a));
        struct at_attention a = kernel(&p, k);
        for (int turn = 0; turn < 4; turn++) {
            struct at_planted f = {-1, -1, -1,
                                   turn == 2   ? AT_BF16
                                   : turn == 3 ? AT_F16
                                               : AT_DEFAULT};
            struct at_rows all = h.rows;
            struct at_mutant_run *r = at_mutant_open(&a, 0);
            for (int64_t t = 0; t < all.n; t++) { /* P narrow, or nothing */
                double out[64], lse;
                struct at_place q = at_place_of(&a, all, t);
                at_mutant_row(r, &f, q, out, &lse);
                for (int64_t c = 0; c < p.Dv; c++)
                    paint_put(&p.got.out,
                              problem_row(&p, &p.got.out, q.b, q.h, q.i) + c * p.got.out.stride[3],
                              out[c] * (turn == 1 ? 1 + 0x1p-10 * sin(1e4 * (double)(t + c)) : 1));
                if (p.got.lse.data)
                    paint_put(&p.got.lse, problem_row(&p, &p.got.lse, q.b, q.h, q.i), lse);
            }
            at_mutant_close(r);
            struct at_diagnosis d = say(&p, &h, at_arith_find(held[turn]), &failed);
            ck_assert_msg(!blames(&d), "%s: said %s of a kernel without it (turn %d): %s",
                          turn == 1 ? "noise" : "a correct kernel", d.name, turn, problem_line(&p));
            ck_assert(!d.known || failed > 0);
            tried += failed > 0;
            arithmetic += d.known;
        }
        hold_free(&h);
        problem_free(&p);
    }
    printf("%lld outputs that fail without a fault: %lld given an arithmetic, none a fault\n",
           (long long)tried, (long long)arithmetic);
    ck_assert_int_gt(tried, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("diagnose");
    TCase *c = tcase_create("diagnose");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, a_planted_fault_is_named);
    tcase_add_test(c, correct_kernels_and_noise_are_not_blamed);
    suite_add_tcase(s, c);
    return paint_run(s);
}

/* Truth on problems painted over all fields of the descriptor: against the second truth within the
 * error that this one proves of itself, whatever stands in hidden memory, with any number of
 * threads. SEED=n COUNT=1 build/tests/check_truth_painted repeats one problem.
 * SPDX-License-Identifier: MIT */
#include "paint.h"
#include "ref.h"
#include "second_truth.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 quad;
enum { GROUPS = 8, GROUP = 50 }; /* problems; a failure names its seed */

static int64_t rows_in(const struct problem *p)
{
    return p->a.q.dim[0] * p->a.q.dim[1] * p->a.q.dim[2];
}

/* Truth with every byte of the answer set before; false: it refused. */
static bool answer(const struct at_attention *a, int64_t n, struct at_answer *x)
{
    if (at_answer_make(x, n, a->v.dim[3]) != AT_OK)
        return false;
    memset(x->out, 0xff, (size_t)(n * x->Dv) * sizeof *x->out);
    memset(x->out_lo, 0xff, (size_t)(n * x->Dv) * sizeof *x->out_lo);
    memset(x->lse, 0xff, (size_t)n * sizeof *x->lse);
    memset(x->lse_lo, 0xff, (size_t)n * sizeof *x->lse_lo);
    return at_truth(a, (struct at_rows){n, NULL}, x) == AT_OK;
}

/* -- Two truths -------------------------------------------------------------------------------- */

struct tally {
    int64_t judged, tight; /* elements; those that the second truth knows to 80 bits */
};

static quad size(quad x) { return x < 0 ? -x : x; }

/* hi must be what some number within e of x rounds to, and hi + lo within e of x; lo itself is
 * rounded once, and the interval's ends are as well. */
static bool agrees(double hi, double lo, int bits, struct second y, struct tally *tally)
{
    quad big = size(y.x), e = y.e + big * 0x1p-112;
    tally->judged++;
    if (!(big < (quad)HUGE_VAL)) /* a kind */
        return (isnan(hi) && y.x != y.x) || ((quad)hi == y.x && bits == INT16_MAX);
    tally->tight += e <= big * 0x1p-80;
    if (!(e < (quad)HUGE_VAL))
        return isfinite(hi) && bits >= 106;
    bool rounds = (double)(y.x - e) <= hi && hi <= (double)(y.x + e) && !(hi == 0 && signbit(hi));
    quad ulp = ldexp(fabs(lo), -52) + 0x1p-1074;
    return rounds && bits >= 106 && size((quad)hi - y.x + lo) <= e + ulp;
}

/* Truths of one problem disagree: true. */
static bool disagree(struct problem *p, void *with)
{
    int64_t n = rows_in(p), Dv = p->a.v.dim[3];
    struct at_answer x;
    struct second lse, *out = calloc((size_t)Dv, sizeof *out);
    bool good = out && answer(&p->a, n, &x);
    for (int64_t t = 0; good && t < n; t++) {
        second_truth(&p->a, t, out, &lse);
        good = agrees(x.lse[t], x.lse_lo[t], x.lse_bits[t], lse, with);
        for (int64_t c = 0; c < Dv && good; c++)
            good = agrees(x.out[t * Dv + c], x.out_lo[t * Dv + c], x.out_bits[t * Dv + c], out[c],
                          with);
    }
    at_answer_free(&x);
    free(out);
    return !good;
}

/* Shrinks what fails and says how to repeat it. */
static void none(problem_fails *fails, void *with, int group, uint32_t without)
{
    int64_t count = paint_number("COUNT", GROUP);
    for (int64_t k = 0; k < count; k++) {
        uint64_t seed = paint_seed() + (uint64_t)(group * count + k);
        struct paint_options o = {.without = (uint32_t)paint_number("WITHOUT", 0) | without,
                                  .most = paint_number("MOST", 0)};
        struct problem p;
        paint_problem(&p, seed, o);
        bool bad = fails(&p, with);
        problem_free(&p);
        if (!bad)
            continue;
        o = paint_shrink(seed, o, fails, with);
        paint_problem(&p, seed, o);
        fprintf(stderr, "%s\n", problem_line(&p));
        problem_free(&p);
        ck_abort_msg("%s", paint_repro(seed, o, "check_truth_painted"));
    }
}

START_TEST(two_truths_agree)
{
    struct tally x = {0, 0};
    none(disagree, &x, _i, 0);
    ck_assert_msg(2 * x.tight > x.judged || paint_number("COUNT", 0),
                  "the second truth knows little: %lld of %lld", (long long)x.tight,
                  (long long)x.judged);
}
END_TEST

/* -- What must change nothing ------------------------------------------------------------------ */

static bool same_answers(const struct at_answer *x, const struct at_answer *y)
{
    size_t n = (size_t)x->n, m = n * (size_t)x->Dv;
    return !memcmp(x->out, y->out, 8 * m) && !memcmp(x->out_lo, y->out_lo, 8 * m) &&
           !memcmp(x->lse, y->lse, 8 * n) && !memcmp(x->lse_lo, y->lse_lo, 8 * n) &&
           !memcmp(x->out_bits, y->out_bits, 2 * m) && !memcmp(x->lse_bits, y->lse_bits, 2 * n);
}

/* Do answers differ between a and b? */
static bool differ(const struct at_attention *a, const struct at_attention *b, int64_t n)
{
    struct at_answer x, y;
    bool good = answer(a, n, &x), also = answer(b, n, &y);
    bool same = good && also && same_answers(&x, &y);
    at_answer_free(&x);
    at_answer_free(&y);
    return !same;
}

static bool threads_matter(struct problem *p, void *with)
{
    struct at_attention many = p->a;
    (void)with;
    many.plan.threads = 3;
    return differ(&p->a, &many, rows_in(p));
}

START_TEST(threads_do_not_change_bits) { none(threads_matter, NULL, _i, 0); }
END_TEST

/* x, but for the rows that some row of q sees (and keeps, if asked) all poison. */
static void poison(struct problem *p, struct at_view *x, bool kept, double with)
{
    const struct at_view was = *x;
    int64_t size = at_dtype_size(x->dtype), n = x->dim[0] * x->dim[1] * x->dim[2] * x->dim[3];
    x->data = problem_own(p, (size_t)(n * size));
    for (int64_t k = 0; k < n; k++)
        paint_put(x, k, with);
    for (int64_t t = 0; t < rows_in(p); t++) {
        struct second_row at = second_place(&p->a, t);
        for (int64_t j = 0; at.b >= 0 && j < second_keys(&p->a, at.b); j++) {
            if (!second_sees(&p->a, at, j))
                continue;
            if (kept && (p->fields & PAINT_DROPOUT) && !second_keeps(&p->a, at, j))
                continue;
            int64_t g = at.h / (p->Hq / p->Hkv), row = second_key(&p->a, &was, at.b, g, j) * size;
            memcpy((char *)x->data + row, (char *)was.data + row, (size_t)(x->dim[3] * size));
        }
    }
}

static bool hidden_matters(struct problem *p, void *with)
{
    const double bad[] = {(double)NAN, (double)INFINITY, -1e30};
    struct at_attention clean = p->a;
    bool yes = false;
    (void)with;
    for (int k = 0; k < 3 && !yes; k++) {
        poison(p, &p->a.k, false, bad[k]);
        poison(p, &p->a.v, true, bad[k]);
        yes = differ(&clean, &p->a, rows_in(p));
        p->a = clean;
    }
    return yes;
}

START_TEST(hidden_memory_changes_nothing)
{
    none(hidden_matters, NULL, _i,
         PAINT_STRIDES | PAINT_LATENT); /* rows with memory of their own */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("truth_painted");
    TCase *c = tcase_create("painted");
    int groups = paint_number("COUNT", 0) ? 1 : GROUPS;
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, two_truths_agree, 0, groups);
    tcase_add_loop_test(c, threads_do_not_change_bits, 0, (groups + 3) / 4);
    tcase_add_loop_test(c, hidden_memory_changes_nothing, 0, (groups + 3) / 4);
    suite_add_tcase(s, c);
    return paint_run(s);
}

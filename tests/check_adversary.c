/* How much of the bound can a kernel of the stated arithmetic reach? Hill climbing over scores and
 * values of one row, from random ones and from two worked out (lose, halve), the ratio as height.
 * What it reached stands in docs/figures/tightness.tsv (TIGHTNESS=file LONG=1 writes it). SEED=n
 * climbs elsewhere. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "at_simulate.h"
#include "paint.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

enum { CLIMBERS = 32, MOST = 64 };

static const struct climb {
    const char *arith; /* words */
    int64_t n, tile;   /* 0: any order is stated, and one key after another is done */
    bool is_lse;
    double at_least; /* with LONG=1 */
    bool quick;      /* in make check, where 0.6 of that will do */
} climbs[] = {
    {"fp32,exp_ulps=1", 2, 0, false, 0.74, true},
    {"fp32,exp_ulps=1", 3, 0, false, 0.73, false},
    {"fp32,exp_ulps=1", 4, 0, false, 0.71, false},
    {"fp32,exp_ulps=1", 8, 0, false, 0.9, false},
    {"fp32,exp_ulps=1", 16, 0, false, 0.9, false},
    {"fp32,exp_ulps=1", 64, 0, false, 0.9, false},
    {"fp32,exp_ulps=1,divisions=2", 2, 0, false, 0.5, true},
    {"fp32", 2, 16, false, 0.74, false},
    {"fp32", 4, 16, false, 0.75, false},
    {"fp32", 16, 16, false, 0.9, false},
    {"fp32", 64, 16, false, 0.9, true},
    {"fp32,ordered=true", 16, 16, false, 0.9, false},
    {"fp32,ordered=true", 64, 16, false, 0.9, true},
    {"fp32-sequential", 64, 1, false, 0.9, true},
    {"fp32", 2, 0, true, 0.79, true},
    {"fp32", 64, 16, true, 0.9, true},
    {"eager", 2, 0, false, 0.45, false},
    {"eager", 64, 0, false, 0.9, true},
    {"fp32-exp2", 2, 16, false, 0.57, false},
    {"fp32-exp2", 64, 16, false, 0.8, false},
    {"split-lse", 2, 0, false, 0.38, false},
    {"split-lse", 64, 0, false, 0.65, false},
    {"fp32-libm-exp20", 2, 16, false, 0.55, false},
    {"fp32-libm-exp20", 64, 16, false, 0.65, false},
    {"3xtf32", 2, 16, false, 0.24, false},
    {"3xtf32", 64, 16, false, 0.09, false},
    {"bf16-p", 2, 16, false, 0.9, true},
    {"bf16-p", 64, 16, false, 0.9, false},
    {"bf16-p-normalised", 2, 16, false, 0.9, false},
    {"bf16-p-normalised", 64, 16, false, 0.9, false},
    {"bf16-p-exp400", 64, 16, false, 0.9, false},
    {"bf16-sp", 2, 16, false, 0.79, false},
    {"bf16-sp", 64, 16, false, 0.76, false},
    {"bf16-tensor-core", 2, 16, false, 0.9, false},
    {"bf16-tensor-core", 64, 16, false, 0.9, false},
    {"fp16-p", 2, 16, false, 0.9, true},
    {"fp16-p", 64, 16, false, 0.9, false},
    {"fp16-sp", 64, 16, false, 0.76, false},
    {"onnx-fp16", 2, 16, false, 0.58, false},
    {"onnx-fp16", 64, 16, false, 0.45, false},
    {"onnx-bf16", 64, 16, false, 0.65, false},
    {"fp8-p", 2, 16, false, 0.85, true},
    {"fp8-p", 64, 16, false, 0.85, false},
};
enum { CLIMBS = sizeof climbs / sizeof *climbs };

struct swarm {
    const struct climb *what;
    struct at_arith arith;
    struct at_float in; /* what scores and values are numbers of */
    double s[CLIMBERS * MOST], v[CLIMBERS * MOST], q[CLIMBERS], k[CLIMBERS * MOST];
    double best_s[CLIMBERS * MOST], best_v[CLIMBERS * MOST], best[CLIMBERS];
    double out[CLIMBERS], lse[CLIMBERS], ratio[2 * CLIMBERS];
    struct at_attention a;
    struct at_answer x;
    struct paint r;
    int64_t tried, failed, cut;
};

static void swarm_open(struct swarm *w, const struct climb *c, uint64_t seed)
{
    struct at_why why;
    int64_t n = c->n;
    *w = (struct swarm){.what = c, .r = paint_from(seed, 950)};
    ck_assert_msg(at_arith_read(&w->arith, c->arith, &why), "%s", why.text);
    w->arith.tile = c->tile;
    w->in = at_float_of(w->arith.compute);
    w->arith.own = w->in; /* the tensors are fp64 */
    w->a =
        at_plain(at_bhsd(w->q, AT_F64, CLIMBERS, 1, 1, 1), at_bhsd(w->k, AT_F64, CLIMBERS, 1, n, 1),
                 at_bhsd(w->v, AT_F64, CLIMBERS, 1, n, 1), 1);
    w->a.score.bias = at_bhsd(w->s, AT_F64, CLIMBERS, 1, 1, n);
    w->a.plan.bc = c->tile ? c->tile : 1, w->a.plan.threads = 1, w->a.plan.lanes = 1;
    w->a.plan.splits = w->arith.lse_merge ? 2 : 1;
    w->a.plan.cut = &w->cut, w->cut = n - 1; /* one long sum */
    ck_assert_int_eq(at_answer_make(&w->x, CLIMBERS, 1), AT_OK);
}

static double number(const struct swarm *w, double x) { return at_rounded_to(x, &w->in, 0, NULL); }

/* One heavy key, then light ones that add half an ulp to its tile, and tiles that add half an ulp
 * to the row. To l they are a little less, and lost; their values are a little more than 1, and u
 * gains a whole ulp by each. So every sum that the heavy key meets errs by eps, and those of l and
 * u to opposite sides. */
static void lose(struct swarm *w, int64_t t)
{
    int64_t tile = w->what->tile > 0 ? w->what->tile : 1;
    enum at_dtype sums = w->arith.total ? w->arith.total : w->arith.sum;
    int p = sums ? at_float_of(sums).p : w->in.p;
    double half = -p * log(2), off = ldexp(1, -(int)paint_int(&w->r, 1, 12));
    for (int64_t j = 0; j < w->what->n; j++) {
        double light = half - (j < tile ? 0 : log((double)tile)) - off;
        w->best_s[t * MOST + j] = number(w, j ? light : 0);
        w->best_v[t * MOST + j] = number(w, j ? 1 + 2 * off : 1);
    }
}

/* The heaviest key's value is 0; the others' P, nearly half an ulp above a power of 2, is rounded
 * to it. */
static void halve(struct swarm *w, int64_t t)
{
    int64_t n = w->what->n;
    double unit = w->arith.normalised ? ldexp(1, -ilogb((double)n) - 1) : 0.5, off = 1;
    off -= ldexp(1, -(int)paint_int(&w->r, 4, 16));
    double P = unit * (1 + ldexp(off, -at_float_of(w->arith.weight).p));
    double top = w->arith.normalised ? 1 - (double)(n - 1) * P : 1;
    for (int64_t j = 0; j < n; j++) {
        w->best_s[t * MOST + j] = number(w, j ? log(P / top) : 0);
        w->best_v[t * MOST + j] = j ? 1 : 0;
    }
}

static void start(struct swarm *w, int64_t t)
{
    static const double spreads[] = {0, 0.5, 1, 4, 20};
    double spread = spreads[paint_int(&w->r, 0, 4)];
    int64_t shape = paint_int(&w->r, 0, 3);
    w->best[t] = -1;
    if (shape == 3) {
        (w->arith.weight ? halve : lose)(w, t);
        return;
    }
    for (int64_t j = 0; j < w->what->n; j++) {
        double x = paint_unit(&w->r), at = 2 * (double)j < (double)w->what->n ? 1 : -1;
        w->best_s[t * MOST + j] = number(w, spread * paint_unit(&w->r));
        w->best_v[t * MOST + j] = number(w, shape == 0   ? 1.5 + x / 2
                                            : shape == 1 ? x
                                                         : at * (1.5 + x / 2));
    }
}

static double moved(struct swarm *w, double x)
{
    switch (paint_int(&w->r, 0, 4)) {
    case 0: return number(w, x * (1 + paint_unit(&w->r) / 8));
    case 1:
        return number(w,
                      x + ldexp((double)paint_int(&w->r, -8, 8), ilogb(x == 0 ? 1 : x) - w->in.p));
    case 2: return number(w, paint_unit(&w->r));
    case 3: return number(w, 1.5 + paint_unit(&w->r) / 2);
    default: return paint_one_in(&w->r, 2) ? -x : number(w, x + paint_unit(&w->r));
    }
}

/* The best so far with a few numbers moved. */
static void vary(struct swarm *w, int64_t t)
{
    int64_t n = w->what->n, many = paint_int(&w->r, 1, paint_one_in(&w->r, 4) ? n : 2);
    memcpy(w->s + t * n, w->best_s + t * MOST, (size_t)n * sizeof *w->s);
    memcpy(w->v + t * n, w->best_v + t * MOST, (size_t)n * sizeof *w->v);
    for (int64_t k = 0; k < many && w->best[t] >= 0; k++) {
        int64_t j = t * n + paint_int(&w->r, 0, n - 1), other = t * n + paint_int(&w->r, 0, n - 1);
        double *x = paint_one_in(&w->r, 2) ? w->s : w->v;
        x[j] = paint_one_in(&w->r, 8) ? x[other] : moved(w, x[j]);
        w->s[j] = fabs(w->s[j]) > 60 ? 0 : w->s[j];
    }
}

static void generation(struct swarm *w, enum at_lean lean)
{
    int64_t n = w->what->n;
    struct at_rows rows = {CLIMBERS, NULL};
    struct at_machine m = at_machine_of(&w->arith);
    struct at_result got = {at_bhsd(w->out, AT_F64, CLIMBERS, 1, 1, 1),
                            at_bhsd(w->lse, AT_F64, CLIMBERS, 1, 1, 1)};
    struct at_verdict v;
    m.lean = lean, m.seed = 1;
    for (int64_t t = 0; t < CLIMBERS; t++)
        vary(w, t);
    ck_assert_int_eq(at_truth(&w->a, rows, &w->x), AT_OK);
    ck_assert_int_eq(at_bound(&w->a, &w->arith, rows, &w->x), AT_OK);
    ck_assert_int_eq(at_simulate(&w->a, &m, rows, w->out, w->lse), AT_OK);
    ck_assert_int_eq(at_compare(&w->a, &got, rows, &w->arith, &w->x, w->ratio, &v), AT_OK);
    w->tried += CLIMBERS, w->failed += v.failed;
    for (int64_t t = 0; t < CLIMBERS; t++) {
        double r = w->ratio[t + (w->what->is_lse ? CLIMBERS : 0)];
        if (!(r >= w->best[t]))
            continue;
        w->best[t] = r;
        memcpy(w->best_s + t * MOST, w->s + t * n, (size_t)n * sizeof *w->s);
        memcpy(w->best_v + t * MOST, w->v + t * n, (size_t)n * sizeof *w->v);
    }
}

/* Swarms from several starts, each leaning one way; the highest ratio of all. */
static double climbed(const struct climb *c, int64_t starts, int64_t steps, int64_t *tried)
{
    double best = 0;
    static struct swarm w;
    *tried = 0;
    for (int64_t k = 0; k < starts; k++) {
        swarm_open(&w, c, paint_seed() + (uint64_t)k);
        for (int64_t t = 0; t < CLIMBERS; t++)
            start(&w, t);
        for (int64_t step = 0; step < steps; step++)
            generation(&w, (enum at_lean)(k % 4));
        for (int64_t t = 0; t < CLIMBERS; t++)
            best = fmax(best, w.best[t]);
        ck_assert_msg(w.failed == 0, "%s n=%lld: %lld violations", c->arith, (long long)c->n,
                      (long long)w.failed);
        *tried += w.tried;
        at_answer_free(&w.x);
    }
    return best;
}

START_TEST(the_bound_is_nearly_reached_and_never_left)
{
    const char *path = getenv("TIGHTNESS");
    bool all = getenv("LONG") || path;
    FILE *to = path ? fopen(path, "w") : NULL;
    ck_assert(!path || to);
    if (to)
        fprintf(to, "# Largest ratios that hill climbing reached: make tightness\n"
                    "# arith\tn\ttile\twhat\tratio\ttried\n");
    int low = 0;
    for (int k = 0; k < CLIMBS; k++) {
        const struct climb *c = &climbs[k];
        int64_t tried;
        if (!all && !c->quick)
            continue;
        int64_t starts = all ? (c->n <= 4 ? 16 : 6) : 4, steps = all ? (c->n <= 4 ? 400 : 250) : 40;
        double r = climbed(c, starts, steps, &tried), least = c->at_least;
        printf("%-18s n=%-3lld tile %-3lld %s: ratio %.3f after %lld\n", c->arith, (long long)c->n,
               (long long)c->tile, c->is_lse ? "lse" : "out", r, (long long)tried);
        fflush(stdout);
        if (to)
            fprintf(to, "%s\t%lld\t%lld\t%s\t%.3f\t%lld\n", c->arith, (long long)c->n,
                    (long long)c->tile, c->is_lse ? "lse" : "out", r, (long long)tried);
        least *= all ? 1 : 0.6;
        if (!(r >= least))
            printf("  expected %g at least\n", least), low++;
    }
    if (to)
        fclose(to);
    ck_assert_int_eq(low, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adversary");
    TCase *t = tcase_create("adversary");
    tcase_set_timeout(t, 3600);
    tcase_add_test(t, the_bound_is_nearly_reached_and_never_left);
    suite_add_tcase(suite, t);
    return paint_run(suite);
}

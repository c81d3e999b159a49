/* The fast truth: at_truth's hi to the bit, lo within the bits it tells, whatever stands beside a
 * row; every charge made; verdicts settled. Constants of the lemmas: check_fast_lemmas.
 * SEED=n COUNT=1 build/tests/check_truth_fast repeats one problem. SPDX-License-Identifier: MIT */
#include "fast.h"
#include "paint.h"
#include "ref.h"
#include "truth_cases.h"
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUPS = 8 };

static int64_t rows_in(const struct problem *p)
{
    return p->a.q.dim[0] * p->a.q.dim[1] * p->a.q.dim[2];
}

/* -- Two truths -------------------------------------------------------------------------------- */

struct tally {
    int64_t rows, by_mpfr;
};

static bool same(double hi, double lo, double fast_hi, double fast_lo, int bits)
{
    if (isnan(hi) || isnan(fast_hi))
        return isnan(hi) && isnan(fast_hi) && bits == INT16_MAX;
    if (memcmp(&hi, &fast_hi, 8) != 0)
        return false;
    return !isfinite(hi) || bits >= 106 ||
           (bits >= 56 && fabs(lo - fast_lo) <= ldexp(fabs(hi), -bits) + fabs(hi) * 0x1p-105);
}

static bool same_row(const struct at_answer *x, const struct at_answer *y, int64_t t)
{
    bool good = same(x->lse[t], x->lse_lo[t], y->lse[t], y->lse_lo[t], y->lse_bits[t]);
    for (int64_t at = t * x->Dv; at < (t + 1) * x->Dv; at++)
        good = good && same(x->out[at], x->out_lo[at], y->out[at], y->out_lo[at], y->out_bits[at]);
    return good;
}

static struct at_answer filled(int64_t n, int64_t Dv)
{
    struct at_answer x;
    ck_assert_int_eq(at_answer_make(&x, n, Dv), AT_OK);
    memset(x.out, 0xff, (size_t)(n * Dv) * sizeof *x.out);
    memset(x.lse, 0xff, (size_t)n * sizeof *x.lse);
    return x;
}

static bool disagree(struct problem *p, void *with)
{
    struct tally *tally = with;
    int64_t n = rows_in(p);
    struct at_rows all = {n, NULL};
    struct at_answer x = filled(n, p->a.v.dim[3]), y = filled(n, p->a.v.dim[3]);
    bool good = at_truth(&p->a, all, &x) == AT_OK && at_truth_fast(&p->a, all, &y) == AT_OK;
    for (int64_t t = 0; good && t < n; t++)
        good = same_row(&x, &y, t);
    tally->rows += n, tally->by_mpfr += y.by_mpfr;
    at_answer_free(&x);
    at_answer_free(&y);
    return !good;
}

/* Every row alone, and all rows in another order, give the bits of all at once. */
static bool depends_on_neighbours(struct problem *p, void *with)
{
    (void)with;
    int64_t n = rows_in(p);
    struct at_rows all = {n, NULL};
    struct at_answer x = filled(n, p->a.v.dim[3]), y = filled(1, p->a.v.dim[3]);
    bool good = at_truth_fast(&p->a, all, &x) == AT_OK;
    for (int64_t t = 0; good && t < n; t++) {
        struct at_place one_place = at_place_of(&p->a, all, t);
        struct at_rows alone = {1, &one_place};
        size_t size = (size_t)x.Dv * 8, at = (size_t)(t * x.Dv);
        good = at_truth_fast(&p->a, alone, &y) == AT_OK && !memcmp(y.out, x.out + at, size) &&
               !memcmp(y.out_lo, x.out_lo + at, size) && !memcmp(y.lse, x.lse + t, 8) &&
               !memcmp(y.lse_lo, x.lse_lo + t, 8) && y.lse_bits[0] == x.lse_bits[t] &&
               !memcmp(y.out_bits, x.out_bits + at, size / 4);
    }
    at_answer_free(&x);
    at_answer_free(&y);
    return !good;
}

static void none(problem_fails *fails, void *with, int group, int64_t count, int64_t most)
{
    count = paint_number("COUNT", count);
    for (int64_t k = 0; k < count; k++) {
        uint64_t seed = paint_seed() + (uint64_t)(group * count + k);
        struct paint_options o = {.without = (uint32_t)paint_number("WITHOUT", 0),
                                  .most = paint_number("MOST", k % 10 == 0 ? most : 0)};
        struct problem p;
        paint_problem(&p, seed, o);
        bool bad = fails(&p, with);
        problem_free(&p);
        if (!bad)
            continue;
        o = paint_shrink(seed, o, fails, with);
        ck_abort_msg("%s", paint_repro(seed, o, "check_truth_fast"));
    }
}

/* Every tenth problem has up to 150 keys: more than one tile. */
START_TEST(both_truths_agree_in_every_bit)
{
    struct tally x = {0, 0};
    none(disagree, &x, _i, getenv("LONG") ? 1000 : 40, 150);
    printf("%lld rows, %lld by MPFR\n", (long long)x.rows, (long long)x.by_mpfr);
    ck_assert(2 * x.by_mpfr < x.rows || paint_number("COUNT", 0));
}
END_TEST

START_TEST(a_row_depends_on_no_other) { none(depends_on_neighbours, NULL, _i, 5, 150); }
END_TEST

START_TEST(ties_and_kinds_are_those_of_truth)
{
    for (size_t k = 0; k < sizeof ties / sizeof *ties; k++) {
        double s[MOST], v[MOST];
        memcpy(s, ties[k].s, sizeof s), memcpy(v, ties[k].v, sizeof v);
        struct at_attention a = row_of(ties[k].n, s, v);
        struct at_answer y = filled(1, 1);
        ck_assert_int_eq(at_truth_fast(&a, (struct at_rows){1, NULL}, &y), AT_OK);
        expect(ties[k].name, y.out[0], ties[k].hi);
        at_answer_free(&y);
    }
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        double s[MOST], v[MOST], sink = rules[k].sink;
        memcpy(s, rules[k].s, sizeof s), memcpy(v, rules[k].v, sizeof v);
        struct at_attention a = row_of(rules[k].n, s, v);
        a.score.sink = at_bhsd(&sink, AT_F64, 1, 1, 1, 1);
        struct at_answer y = filled(1, 1);
        ck_assert_int_eq(at_truth_fast(&a, (struct at_rows){1, NULL}, &y), AT_OK);
        ck_assert_msg(y.out[0] == rules[k].out || (isnan(y.out[0]) && isnan(rules[k].out)), "%s",
                      rules[k].name);
        at_answer_free(&y);
    }
}
END_TEST

/* -- What it refuses to decide ----------------------------------------------------------------- */

/* 40 keys, 3 rows, D 5, Dv 2, fp64. */
struct plain {
    double q[15], k[200], v[80], bias[120], slope, out[6], lse[3];
    struct at_attention a;
};

static struct plain *plain(void)
{
    static struct plain x;
    struct paint r = paint_from(paint_seed(), 99);
    for (int c = 0; c < 15; c++)
        x.q[c] = paint_unit(&r);
    for (int c = 0; c < 200; c++)
        x.k[c] = paint_unit(&r);
    for (int c = 0; c < 80; c++)
        x.v[c] = paint_unit(&r);
    for (int c = 0; c < 120; c++)
        x.bias[c] = 100 * paint_unit(&r);
    x.slope = 0.3;
    x.a = at_plain(at_bhsd(x.q, AT_F64, 1, 1, 3, 5), at_bhsd(x.k, AT_F64, 1, 1, 40, 5),
                   at_bhsd(x.v, AT_F64, 1, 1, 40, 2), 0.7);
    x.a.plan.threads = 1;
    return &x;
}

static int64_t by_mpfr(const struct at_attention *a)
{
    struct at_answer y = filled(3, 2);
    ck_assert_int_eq(at_truth_fast(a, (struct at_rows){3, NULL}, &y), AT_OK);
    int64_t n = y.by_mpfr;
    at_answer_free(&y);
    return n;
}

START_TEST(what_no_lemma_covers_is_mpfrs)
{
    struct plain *x = plain();
    ck_assert_int_eq(by_mpfr(&x->a), 0);
    const double bad[] = {NAN, INFINITY, 0x1p401, 0x1p-401};
    for (int k = 0; k < 4; k++) {
        double old = x->v[7];
        x->v[7] = bad[k];
        ck_assert_msg(by_mpfr(&x->a) == 3, "a value of %a", bad[k]);
        x->v[7] = old, old = x->k[9], x->k[9] = bad[k];
        ck_assert_msg(by_mpfr(&x->a) == (k < 3 ? 3 : 0), "a key of %a", bad[k]);
        x->k[9] = old, old = x->q[2], x->q[2] = bad[k];
        ck_assert_msg(by_mpfr(&x->a) == (k < 3 ? 1 : 0), "a query of %a", bad[k]);
        x->q[2] = old;
    }
    x->a.score.scale = 1e12; /* scores past 2^38 */
    ck_assert_int_eq(by_mpfr(&x->a), 3);
}
END_TEST

START_TEST(a_machine_that_rounds_otherwise_is_noticed)
{
    struct plain *x = plain();
    ck_assert_int_eq(fesetround(FE_UPWARD), 0);
    int64_t n = by_mpfr(&x->a);
    fesetround(FE_TONEAREST);
    ck_assert_int_eq(n, 3);
}
END_TEST

/* -- Every charge is made ---------------------------------------------------------------------- */

/* Room for one tile of the plain problem's rows. */
struct bench {
    struct fast_rows rows;
    struct fast_keys keys;
    struct fast_tile tile;
};

static void bench_make(struct bench *x, const struct at_attention *a)
{
    static double space[7 * TILE * LANES] __attribute__((aligned(64)));
    const int n = TILE * LANES;
    ck_assert(at_fast_rows_make(&x->rows, a) && at_fast_keys_make(&x->keys, 40, 5, 2));
    x->tile = (struct fast_tile){space,         space + n,     space + 2 * n, space + 3 * n,
                                 space + 4 * n, space + 5 * n, space + 6 * n, {0}};
    x->keys.b = x->keys.g = 0;
    at_fast_keys_load(&x->keys, a, (struct at_span){0, 40});
    x->rows.n = 3;
    for (int i = 0; i < 3; i++) {
        x->rows.at[i] = (struct at_place){0, 0, i};
        x->rows.span[i] = (struct at_span){0, 40};
    }
    at_fast_rows_load(&x->rows);
    at_fast_scores(&x->rows, &x->keys, 0, &x->tile);
}

static void bench_free(struct bench *x)
{
    at_fast_rows_free(&x->rows);
    at_fast_keys_free(&x->keys);
}

static double length(const double *x, int n)
{
    double sum = 0;
    for (int c = 0; c < n; c++)
        sum += x[c] * x[c];
    return sqrt(sum);
}

/* Exactly: s of row i, key j, and what its error is measured by. */
static double score_error(const struct plain *x, const struct bench *y, int i, int j)
{
    const struct at_score *s = &x->a.score;
    mpfr_t r, t;
    mpfr_inits2(400, r, t, (mpfr_ptr)0);
    mpfr_set_zero(r, 1);
    for (int c = 0; c < 5; c++) {
        mpfr_set_d(t, x->q[5 * i + c], MPFR_RNDN);
        mpfr_mul_d(t, t, x->k[5 * j + c], MPFR_RNDN);
        mpfr_add(r, r, t, MPFR_RNDN);
    }
    mpfr_mul_d(r, r, s->scale, MPFR_RNDN);
    if (s->softcap > 0) {
        mpfr_div_d(r, r, s->softcap, MPFR_RNDN);
        mpfr_tanh(r, r, MPFR_RNDN);
        mpfr_mul_d(r, r, s->softcap, MPFR_RNDN);
    }
    mpfr_add_d(r, r, s->bias.data ? x->bias[40 * i + j] : 0, MPFR_RNDN);
    mpfr_set_d(t, s->alibi.data ? -x->slope : 0, MPFR_RNDN);
    mpfr_mul_si(t, t, labs((long)(i - j)), MPFR_RNDN);
    mpfr_add(r, r, t, MPFR_RNDN);
    mpfr_const_log2(t, MPFR_RNDN);
    mpfr_div(r, r, t, MPFR_RNDN);
    mpfr_sub_d(r, r, y->tile.sh[j * LANES + i], MPFR_RNDN);
    mpfr_sub_d(r, r, y->tile.sl[j * LANES + i], MPFR_RNDN);
    mpfr_mul(r, r, t, MPFR_RNDN); /* natural units */
    double e = fabs(mpfr_get_d(r, MPFR_RNDA));
    mpfr_clears(r, t, (mpfr_ptr)0);
    return e;
}

/* _i: which of softcap, bias, ALiBi. Lemma S, and that eps_j is at least what the lemmas say. */
START_TEST(a_score_errs_by_no_more_than_it_is_charged)
{
    struct plain *x = plain();
    struct bench y;
    double most = 0;
    x->a.score.softcap = _i & 1 ? 3 : 0;
    x->a.score.scale = _i == 1 ? 200 : 0.7;
    if (_i & 2)
        x->a.score.bias = at_bhsd(x->bias, AT_F64, 1, 1, 3, 40);
    if (_i & 4)
        x->a.score.alibi = at_bhsd(&x->slope, AT_F64, 1, 1, 1, 1);
    bench_make(&y, &x->a);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 40; j++) {
            int at = j * LANES + i;
            double charged = y.tile.error[at] + CAP_UNITS * AT_EPS2 * x->a.score.softcap;
            double dot = SCORE_UNITS(5) * x->a.score.scale * length(x->q + 5 * i, 5) *
                         length(x->k + 5 * j, 5);
            double size =
                (_i & 2 ? fabs(x->bias[40 * i + j]) : 0) + (_i & 4 ? x->slope * abs(i - j) : 0);
            ck_assert(y.tile.error[at] >= AT_EPS2 * (dot + STEP_UNITS * size) * (1 - 0x1p-20));
            most = fmax(most, score_error(x, &y, i, j) / charged);
        }
    printf("score, terms %d: error/charge %.4f\n", _i, most);
    ck_assert(most <= 1);
    ck_assert(most > 0x1p-8);
    bench_free(&y);
}
END_TEST

/* w_j = p (kappa + eps_j) + floor; le, ue and the bits that are told follow from them. */
START_TEST(every_weight_is_charged)
{
    struct plain *x = plain();
    struct bench y;
    double eps[TILE], le = 0, ue = 0, kappa = AT_EPS2 * (SUM_UNITS + 2 * JOIN_UNITS + DD_EXP + 2);
    bench_make(&y, &x->a);
    for (int j = 0; j < TILE; j++)
        eps[j] = y.tile.error[j * LANES + 1] += 0x1p-88;
    at_fast_rescale(&y.rows, y.tile.top);
    at_fast_weights(&y.rows, &y.tile);
    for (int j = 0; j < 40; j++) {
        double w = y.tile.sh[j * LANES + 1] * (kappa + eps[j]) + EXP_FLOOR;
        ck_assert(y.tile.error[j * LANES + 1] >= w * (1 - 0x1p-40));
        le += w, ue += w * fabs(x->v[2 * j]);
    }
    struct fast_values values = {2,         y.keys.v,  y.tile.sh, y.tile.sl, y.tile.error,
                                 y.rows.uh, y.rows.ul, y.rows.ue};
    at_fast_values(&values);
    ck_assert(y.rows.le[1] >= le * (1 - 0x1p-40) && y.rows.ue[1] >= ue * (1 - 0x1p-40));
    ck_assert(y.tile.error[50 * LANES + 1] == 0 && y.rows.seen[1] == 40);
    struct at_answer z = filled(3, 2);
    ck_assert_int_eq(at_truth_fast(&x->a, (struct at_rows){3, NULL}, &z), AT_OK);
    le -= 0x1p-88 * y.rows.lh[1]; /* what was added above */
    double o = fabs(z.out[2]), least = o * le / y.rows.lh[1] + 26 * AT_EPS2 * o;
    ck_assert_msg(ldexp(o, -z.out_bits[2]) >= least, "%d bits", z.out_bits[2]);
    ck_assert(ldexp(fabs(z.lse[1]), -z.lse_bits[1]) >= le / y.rows.lh[1] + 115 * AT_EPS2);
    at_answer_free(&z);
    bench_free(&y);
}
END_TEST

/* -- Verdicts at an interval's edge ------------------------------------------------------------ */

/* An output of fp64 one number past hi + B: outside, unless o may be half a number larger. */
START_TEST(an_element_at_its_edge_is_not_settled)
{
    struct plain *x = plain();
    struct at_result got = {at_bhsd(x->out, AT_F64, 1, 1, 3, 2),
                            at_bhsd(x->lse, AT_F64, 1, 1, 3, 1)};
    struct at_rows all = {3, NULL};
    struct at_arith arith = *at_arith_find("fp64");
    struct at_answer y = filled(3, 2);
    unsigned char open[3] = {0};
    ck_assert_int_eq(at_truth_fast(&x->a, all, &y), AT_OK);
    ck_assert_int_eq(at_bound(&x->a, &arith, all, &y), AT_OK);
    memcpy(x->out, y.out, sizeof x->out), memcpy(x->lse, y.lse, sizeof x->lse);
    at_unsettled(&x->a, &got, all, &arith, &y, open);
    ck_assert(!open[0] && !open[1] && !open[2]);
    y.out_bits[2] = 58; /* row 1 is known to 2^-58; B is far more, but got lies at its end */
    double lo, hi, step = ldexp(1, ilogb(y.out[2]) - 52);
    y.out_bound[2] = 8 * step;
    at_interval(&arith, AT_F64, &y, 1, 0, &lo, &hi);
    for (int k = -2; k <= 2; k++) {
        y.out_lo[2] = (k == 0 ? 0.5 : 0.25) * step; /* hi's own tie: open */
        x->out[2] = y.out[2] + (8 + (k >= 0)) * step;
        memset(open, 0, 3);
        at_unsettled(&x->a, &got, all, &arith, &y, open);
        ck_assert_int_eq(open[1], k == 0);
    }
    open[0] = 0, open[1] = 1, open[2] = 0;
    int64_t before = y.by_mpfr;
    ck_assert_int_eq(at_truth_again(&x->a, &arith, all, open, &y), AT_OK);
    ck_assert(y.by_mpfr == before + 1 && y.out_bits[2] >= 106 && y.out_bound[2] != 8 * step);
    at_answer_free(&y);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("truth_fast");
    TCase *t = tcase_create("truth_fast");
    tcase_set_timeout(t, getenv("LONG") ? 3600 : 120);
    tcase_add_loop_test(t, both_truths_agree_in_every_bit, 0, GROUPS);
    tcase_add_loop_test(t, a_row_depends_on_no_other, 0, GROUPS);
    tcase_add_test(t, ties_and_kinds_are_those_of_truth);
    tcase_add_test(t, what_no_lemma_covers_is_mpfrs);
    tcase_add_test(t, a_machine_that_rounds_otherwise_is_noticed);
    tcase_add_loop_test(t, a_score_errs_by_no_more_than_it_is_charged, 0, 8);
    tcase_add_test(t, every_weight_is_charged);
    tcase_add_test(t, an_element_at_its_edge_is_not_settled);
    suite_add_tcase(s, t);
    return paint_run(s);
}

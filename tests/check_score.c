/* Lemma 1 alone: with one visible key the lse is its score and the lse's bound is D. A kernel whose
 * every operation errs as far as it may, all the same way, comes within a few per cent of D and
 * never past it. SPDX-License-Identifier: MIT */
#include "bound_problem.h"

struct machine {
    const char *arith;
    enum at_dtype tensors;
    double eps, dot, query, stored; /* relative errors of an operation; roundings of a product */
};

static const struct machine machines[] = {
    {"fp32", AT_F32, 0x1p-24, D, 0, 0},
    {"fp32,dot=1", AT_F32, 0x1p-24, 1, 0, 0},
    {"fp32,compute=bf16,dot=1,tanh_ulps=0.5", AT_BF16, 0x1p-8, 1, 0, 0},
    {"fp32,compute=fp16,dot=2", AT_F16, 0x1p-11, 2, 0, 0},
    {"fp32,score=bf16", AT_F32, 0x1p-24, D, 0, 0x1p-8},
    {"fp32,query=bf16,dot=1", AT_F32, 0x1p-24, 1, 0x1p-8, 0},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static long double part_of(double x, enum at_dtype dtype)
{
    return x == 0 ? 0
                  : fabsl((long double)at_nearest(x, at_format(dtype)) - x) / fabsl((long double)x);
}

/* x, moved by `times` roundings of size e in the direction of sign. */
static long double moved(long double x, long double e, double times, double sign)
{
    return x + sign * fabsl(x) * expm1l((long double)times * log1pl(e));
}

/* The score of row t's only key, every step moved by its rounding. */
static long double pushed(const struct problem *p, const struct machine *m, enum at_dtype compute,
                          int64_t t, double sign, double tanh_error)
{
    const struct at_score *s = &p->a.score;
    int64_t i = t % Sq;
    double e = m->eps, way = s->scale < 0 ? -sign : sign, sides = s->qscale.data ? 2 : 0;
    long double raw = 0, far = i;
    for (int64_t c = 0; c < D; c++) {
        long double qk = (long double)at_stored(&p->a.q, t * D + c) * at_stored(&p->a.k, c);
        qk *= s->qscale.data ? (long double)p->qscale[t] * p->kscale[0] : 1;
        qk = moved(qk, e, m->dot + sides + (m->query > 0), way);
        raw += moved(moved(qk, m->query, 1, way), m->query > 0 ? part_of(s->scale, compute) : 0, 1,
                     way);
    }
    long double x = s->scale * raw;
    if (m->query == 0)
        x = moved(moved(x, e, 1, sign), part_of(s->scale, compute), 1, sign);
    x = moved(x, m->stored, 1, sign);
    if (s->softcap > 0) {
        x = moved(s->softcap * tanhl(x / s->softcap), e, 2, sign);
        x = moved(moved(x, tanh_error, 1, sign), part_of(s->softcap, compute), 1, sign);
        x = moved(x, m->stored, 1, sign);
    }
    if (s->bias.data)
        x = moved(moved(x + at_stored(&s->bias, t * p->Skv), e, 1, sign), m->stored, 1, sign);
    if (s->alibi.data && i > 0) {
        long double slope = p->alibi[t / Sq], product = moved(slope * far, e, 1, -sign);
        product = moved(product, part_of((double)slope, compute), 1, -sign);
        product = slope == 0.25L ? slope * far : product; /* exact */
        x = moved(moved(x - product, e, 1, sign), m->stored, 1, sign);
    }
    return x;
}

START_TEST(the_error_of_a_score_is_reached_and_never_passed)
{
    const struct machine *m = &machines[_i];
    struct at_arith arith = arith_of(m->arith);
    double least = INFINITY, most = 0;
    for (int k = 0; k < 2000; k++) {
        struct problem p;
        unsigned parts = (unsigned)bits() % 256 & (BIAS | ALIBI | CAP | DESCALE);
        paint_problem(&p, parts, m->tensors, 1, 1 + 9 * (k % 2));
        p.a.score.scale *= k % 3 ? 1 : -1;
        problem_truth(&p);
        problem_bound(&p, &arith);
        double ulps = arith.tanh_ulps > 0 ? arith.tanh_ulps : 3;
        for (int64_t t = 0; t < ROWS; t++) {
            double sides[2], B = p.x.lse_bound[t];
            for (int side = 0; side < 2; side++) {
                long double s = pushed(&p, m, arith.compute, t, side ? 1 : -1, ulps * 2 * m->eps);
                sides[side] = (double)fabsl(s - p.x.lse[t] - p.x.lse_lo[t]) / B;
                ck_assert_msg(sides[side] <= 1, "SEED=%llu: %s parts %u row %lld: %a of D",
                              (unsigned long long)p.seed, m->arith, parts, (long long)t,
                              sides[side]);
            }
            if (!(parts & CAP)) /* where tanh is flat, x may move and y does not */
                least = fmin(least, fmax(sides[0], sides[1]));
            most = fmax(most, fmax(sides[0], sides[1]));
        }
        at_answer_free(&p.x);
    }
    printf("%-40s error/D from %.3f to %.3f\n", m->arith, least, most);
    ck_assert_msg(least > 0.9, "D is too large: %g", least);
}
END_TEST

START_TEST(a_product_below_the_smallest_number_may_be_lost)
{
    struct problem p;
    paint_problem(&p, 0, AT_F32, 1, 0);
    at_store(&p.a.q, 0, 0x1.8p-75), at_store(&p.a.k, 0, 0x1p-75);
    p.a.score.scale = 0x1p120;
    problem_truth(&p);
    problem_bound(&p, at_arith_find("fp32"));
    ck_assert(p.x.lse[0] == 0x1.8p-30 && p.x.lse_bound[0] >= 0x1p-31); /* it is stored as 2^-149 */
    ck_assert(p.x.lse_bound[0] <= 0x1.1p-30 && p.x.lse_bound[1] == 0);
    at_answer_free(&p.x);
}
END_TEST

START_TEST(a_sink_is_rounded_once_and_one_of_minus_infinity_is_absent)
{
    struct at_arith arith = arith_of("fp32,compute=bf16");
    struct problem p;
    double lo, hi;
    paint_problem(&p, MASK | SINK, AT_BF16, 1, 1);
    memset(p.mask, 0, sizeof p.mask);
    p.sink[0] = 1 + 0x1p-10f;
    problem_truth(&p);
    problem_bound(&p, &arith);
    at_interval(&arith, AT_F32, &p.x, 0, -1, &lo, &hi);
    ck_assert(p.x.lse_bound[0] >= 0x1p-10 && lo <= 1 && hi >= 1);
    p.sink[0] = -INFINITY;
    problem_truth(&p);
    problem_bound(&p, &arith);
    at_interval(&arith, AT_F32, &p.x, 0, -1, &lo, &hi);
    ck_assert(lo == -INFINITY && hi == -INFINITY && p.x.lse_kind[0] == AT_CLAIMED);
    at_answer_free(&p.x);
}
END_TEST

int main(void)
{
    const char *text = getenv("SEED");
    seed = text ? strtoull(text, NULL, 10) : 1;
    printf("SEED=%llu build/tests/check_score\n", (unsigned long long)seed);
    fflush(stdout);
    Suite *suite = suite_create("score");
    TCase *t = tcase_create("score");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_error_of_a_score_is_reached_and_never_passed, 0, MACHINES);
    tcase_add_test(t, a_product_below_the_smallest_number_may_be_lost);
    tcase_add_test(t, a_sink_is_rounded_once_and_one_of_minus_infinity_is_absent);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

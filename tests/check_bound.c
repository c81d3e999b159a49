/* The bound from both sides: real kernels and simulated machines never leave it, a kernel that
 * makes exactly the error that it states is let pass, and the shared part is as small as it can be.
 * SEED=n paints others; COUNT=n as many. SPDX-License-Identifier: MIT */
#include "at_simulate.h"
#include "bound_problem.h"

static int64_t count = 60;

static struct at_verdict held(struct problem *p, const struct at_result *got,
                              const struct at_arith *arith)
{
    struct at_verdict v;
    ck_assert_int_eq(at_compare(&p->a, got, p->rows, arith, &p->x, NULL, &v), AT_OK);
    return v;
}

#define REPRO "SEED=%llu COUNT=1: %s: row %lld column %lld got %a truth %a allowed %a ratio %g"
#define SHOWN(p, name, v)                                                                          \
    (unsigned long long)(p)->seed, name, (long long)(v).worst, (long long)(v).worst_c, (v).got,    \
        (v).truth, (v).allowed, (v).ratio

/* -- Never left -------------------------------------------------------------------------------- */

static void engine_case(struct problem *p, const struct at_engine *e, enum at_dtype compute,
                        enum at_dtype out)
{
    for (int t = 0; t < ROWS * Dv; t++)
        p->out[t] = NAN;
    p->a.plan.compute = compute;
    p->a.plan.bc = 1 + (int64_t)(p->seed % 5);
    p->a.plan.splits = 1 + (int64_t)(p->seed % 3);
    p->a.plan.lanes = p->seed % 2 ? 4 : 1;
    struct at_result got = {at_bhsd(p->out, out, 1, Hq, Sq, Dv),
                            at_bhsd(p->lse, compute, 1, Hq, Sq, 1)};
    struct at_arith arith = e->arith(&p->a);
    ck_assert_int_eq(at_forward(e, &p->a, &got), AT_OK);
    problem_bound(p, &arith);
    struct at_verdict v = held(p, &got, &arith);
    ck_assert_msg(v.failed == 0, REPRO, SHOWN(p, e->name, v));
    ck_assert_int_eq(v.judged, ROWS * (Dv + 1));
}

START_TEST(our_engines_stay_within_what_they_state)
{
    static const enum at_dtype outs[] = {AT_F64, AT_F32, AT_F16, AT_BF16};
    static const double sizes[] = {0.1, 1, 10, 300};
    for (int64_t k = 0; k < 4 * count; k++) {
        struct problem p;
        paint_problem(&p, (unsigned)bits() % 256, AT_F32, 1 + (int64_t)(bits() % MOST),
                      sizes[k % 4]);
        problem_truth(&p);
        for (int e = 0; e < 4; e++)
            engine_case(&p, e % 2 ? &at_standard : &at_scalar, e / 2 ? AT_F32 : AT_F64,
                        outs[bits() % 4]);
        at_answer_free(&p.x);
    }
}
END_TEST

/* A machine and the words that state its arithmetic. */
static const struct machine {
    const char *arith;
    enum at_dtype compute, score, weight, sum;
    bool rounded_sum, flush, cut;
} machines[] = {
    {"fp32,exp_ulps=1", AT_F32, 0, 0, 0, false, false, false},
    {"fp32,flush=true", AT_F32, 0, 0, 0, false, true, false},
    {"fp32,weight=bf16", AT_F32, 0, AT_BF16, 0, false, false, false},
    {"fp32,weight=bf16,rounded_sum=true", AT_F32, 0, AT_BF16, 0, true, false, false},
    {"fp32,weight=fp16", AT_F32, 0, AT_F16, 0, false, false, false},
    {"fp32,weight=fp8-e4m3", AT_F32, 0, AT_F8_E4M3, 0, false, false, false},
    {"fp32,weight=fp8-e5m2,rounded_sum=true", AT_F32, 0, AT_F8_E5M2, 0, true, false, false},
    {"fp32,score=bf16", AT_F32, AT_BF16, 0, 0, false, false, false},
    {"fp32,score=fp16,weight=fp16", AT_F32, AT_F16, AT_F16, 0, false, false, false},
    {"fp32,sum=fp16", AT_F32, 0, 0, AT_F16, false, false, false},
    {"fp32,sum=bf16,weight=bf16", AT_F32, 0, AT_BF16, AT_BF16, false, false, false},
    {"fp32,truncates=true", AT_F32, 0, 0, AT_F32, false, false, true},
    {"fp32,compute=fp16", AT_F16, 0, 0, 0, false, false, false},
    {"fp32,compute=bf16", AT_BF16, 0, 0, 0, false, false, false},
    {"fp32,compute=fp16,flush=true", AT_F16, 0, 0, 0, false, true, false},
};
enum { MACHINES = sizeof machines / sizeof *machines };

static struct at_float float_of(enum at_dtype dtype)
{
    return dtype ? at_float_of(dtype) : (struct at_float){0};
}

START_TEST(a_simulated_machine_stays_within_what_it_states)
{
    const struct machine *m = &machines[_i];
    static const double sizes[] = {0.1, 1, 5, 30};
    struct at_machine sim = {float_of(m->compute),
                             float_of(m->score),
                             float_of(m->weight),
                             float_of(m->sum),
                             {0},
                             .rounded_sum = m->rounded_sum};
    sim.compute.flush = m->flush;
    sim.sum.rounding = m->cut ? AT_TOWARD_ZERO : AT_NEAREST;
    double worst = 0;
    for (int64_t k = 0; k < 4 * count; k++) {
        struct problem p;
        struct at_arith arith = arith_of(m->arith);
        bool small = m->compute != AT_F32; /* whose parts must be numbers of the format */
        paint_problem(&p,
                      (unsigned)bits() % 256 & (small ? BIAS | MASK | CAP | KEEP | CAUSAL : 255u),
                      small ? m->compute : AT_F32, 1 + (int64_t)(bits() % MOST), sizes[k % 4]);
        problem_truth(&p);
        p.a.plan.bc = 1 + (int64_t)(bits() % 5);
        arith.tile = k % 2 ? p.a.plan.bc : 0, arith.ordered = k % 4 == 1;
        ck_assert_int_eq(at_simulate(&p.a, &sim, p.rows, p.out, p.lse), AT_OK);
        problem_bound(&p, &arith);
        struct at_result got = {at_bhsd(p.out, AT_F64, 1, Hq, Sq, Dv),
                                at_bhsd(p.lse, AT_F64, 1, Hq, Sq, 1)};
        struct at_verdict v = held(&p, &got, &arith);
        ck_assert_msg(v.failed == 0, REPRO, SHOWN(&p, m->arith, v));
        worst = fmax(worst, v.ratio);
        at_answer_free(&p.x);
    }
    printf("%-40s largest ratio %.3f\n", m->arith, worst);
    ck_assert(worst > 0); /* the machine does round, and the bound is no empty word */
}
END_TEST

/* -- As large as what is stated ---------------------------------------------------------------- */

/* One kind of error, as large as its field says (times a little less than 1), every sign chosen
 * against the column; exact otherwise. */
enum kind {
    PRODUCT,
    PV,
    SCALE,
    TANH,
    STORED,
    ARGUMENT,
    EXP,
    RESCALED,
    WEIGHT,
    EVERY_WEIGHT,
    SUM_U,
    SUM_L,
    SUMS,
    LOG,
    QUERY
};

static const struct stated {
    const char *arith;
    enum kind kind;
    double error; /* relative */
    unsigned parts;
} stated[] = {
    {"fp32,product_eps=0.01", PRODUCT, 0.01, 0},
    {"fp32,dot=65536", PRODUCT, 65536 * 0x1p-24, 0},
    {"fp32,score=bf16", STORED, 0x1p-8, BIAS},
    {"fp32,score=fp8-e4m3", STORED, 0x1p-4, ALIBI},
    {"fp32,query=bf16", QUERY, 0x1p-8, 0},
    {"fp32,compute=bf16", SCALE, 0x1p-8, 0},
    {"fp32,tanh_ulps=65536", TANH, 0x1p-7, CAP},
    {"fp32,arguments=65536", ARGUMENT, 0x1p-8, 0},
    {"fp32,tile=64,exp_ulps=100", EXP, 100 * 0x1p-23, 0},
    {"fp32,tile=64,exp_ulps=65536", EXP, 0x1p-7, SINK},
    {"fp32,exp_ulps=65536", RESCALED, 0x1p-7, 0}, /* twice */
    {"fp32,product_eps=0.01", PV, 0.01, 0},
    {"fp32,score=fp8-e5m2", STORED, 0x1p-3, BIAS},
    {"fp32,weight=bf16", WEIGHT, 0x1p-8, 0},
    {"bf16-p-normalised", EVERY_WEIGHT, 0x1p-8, 0},
    {"fp32,sum=bf16,truncates=true,tile=64", SUMS, 0x1p-6, 0}, /* two cuts of each sum */
    {"fp32,weight=fp8-e4m3", WEIGHT, 0x1p-4, KEEP},
    {"fp32,sum=bf16", SUM_U, 0x1p-8, 0}, /* one addition of each key's n - 1 */
    {"fp32,sum=bf16", SUM_L, 0x1p-8, 0},
    {"fp32,log_ulps=65536", LOG, 0x1p-7, 0},
};
enum { STATED = sizeof stated / sizeof *stated };

static double of(const struct at_view *x, int64_t at) { return x->data ? at_stored(x, at) : 0; }

/* The score of key j in row t, with errors of sign up. */
static double pushed_score(const struct problem *p, const struct stated *w, int64_t t, int64_t j,
                           double up)
{
    const struct at_score *s = &p->a.score;
    int64_t i = t % Sq, h = t / Sq, far = i < j ? j - i : i - j;
    double raw = 0, e = up * w->error, side = s->scale < 0 ? -e : e;
    for (int64_t c = 0; c < D; c++) {
        double qk = of(&p->a.q, t * D + c) * of(&p->a.k, j * D + c);
        raw += qk + (w->kind == PRODUCT || w->kind == QUERY ? side * fabs(qk) : 0);
    }
    double x = s->scale * raw;
    x += w->kind == SCALE ? e * fabs(x) : 0;
    if (s->softcap > 0) {
        x = s->softcap * tanh(x / s->softcap);
        x += w->kind == TANH ? e * fabs(x) : 0;
    }
    x = x + of(&s->bias, t * p->Skv + j) - of(&s->alibi, h) * (double)far;
    return w->kind == STORED ? x + e * fabs(x) : x;
}

struct pushed {
    double out, lse;
};

/* Row t, column c, pushed up (sign 1) or down; c == -1: for the lse. */
static struct pushed pushed(const struct problem *p, const struct stated *w, int64_t t, int64_t c,
                            double sign)
{
    double u = 0, l = 0, M = -INFINITY, o = c < 0 ? 0 : p->x.out[t * Dv + c], e = sign * w->error;
    double gain = p->a.dropout.keep.data ? 1 / (1 - p->a.dropout.p) : 1;
    for (int64_t j = 0; j < p->Skv; j++)
        M = fmax(M, pushed_score(p, w, t, j, 0));
    M = p->a.score.sink.data ? fmax(M, p->sink[t / Sq]) : M;
    for (int64_t j = 0; j < p->Skv; j++) {
        bool kept = gain == 1 || p->keep[t * p->Skv + j];
        double v = c < 0  ? 1
                   : kept ? gain * of(&p->a.v, j * Dv + c)
                          : 0,
               with = v > o ? sign : -sign;
        with = c < 0 ? sign : with;
        double s = pushed_score(p, w, t, j, with), below = s - M;
        below += w->kind == ARGUMENT ? with * w->error * fabs(below) : 0;
        double once = 1 + (w->kind == EXP || w->kind == RESCALED ? with * w->error : 0);
        double weight =
            exp(below) * (below < 0 ? once : 1) * (below < 0 && w->kind == RESCALED ? once : 1);
        bool private = (w->kind == WEIGHT && below < 0) || w->kind == EVERY_WEIGHT || w->kind == PV;
        l += weight * (1 - (w->kind == SUM_L || w->kind == SUMS ? (o < 0 || c < 0 ? -e : e) : 0));
        u += weight * v;
        u += private || w->kind == SUM_U || w->kind == SUMS ? e * fabs(weight * v) : 0;
    }
    l += p->a.score.sink.data ? exp(p->sink[t / Sq] - M) : 0;
    return (struct pushed){u / l, M + log(l) * (1 + (w->kind == LOG ? e : 0))};
}

START_TEST(a_kernel_may_make_the_error_that_it_states)
{
    struct stated w = stated[_i];
    struct at_arith arith = arith_of(w.arith);
    double most = 0;
    w.error *= 1 - 0x1p-6; /* the sums here are no fp32 sums; and 1 - e is less than 1/(1 + e) */
    for (int64_t k = 0; k < count; k++) {
        struct problem p;
        enum at_dtype dtype = arith.compute == AT_BF16 ? AT_BF16 : AT_F32;
        paint_problem(&p, w.parts, dtype, 2 + (int64_t)(bits() % (MOST - 1)),
                      1 + (double)(bits() % 4));
        problem_truth(&p);
        problem_bound(&p, &arith);
        for (int64_t t = 0; t < ROWS; t++)
            for (int64_t c = -1; c < Dv; c++)
                for (int sign = -1; sign < 2; sign += 2) {
                    struct pushed y = pushed(&p, &w, t, c, sign);
                    double B = c < 0 ? p.x.lse_bound[t] : p.x.out_bound[t * Dv + c];
                    double off = c < 0 ? y.lse - p.x.lse[t] : y.out - p.x.out[t * Dv + c];
                    ck_assert_msg(
                        fabs(off) <= B, "SEED=%llu: %s: row %lld column %lld off %a allowed %a",
                        (unsigned long long)p.seed, w.arith, (long long)t, (long long)c, off, B);
                    most = fmax(most, B > 0 ? fabs(off) / B : 0);
                }
        at_answer_free(&p.x);
    }
    printf("%-40s error/allowance reaches %.3f\n", w.arith, most);
    ck_assert_msg(most > 0.1, "%s is not what the allowance is about: %g", w.arith, most);
}
END_TEST

/* -- The shared part is exact ------------------------------------------------------------------ */

/* The largest change of a weighted mean over every choice of e^E or e^-E for each key. */
static double exhaustive(const double *p, const double *v, int64_t n, double o, double E)
{
    double most = 0;
    for (int64_t choice = 0; choice < (int64_t)1 << n; choice++) {
        double u = 0, l = 0;
        for (int64_t j = 0; j < n; j++) {
            double w = p[j] * exp(choice >> j & 1 ? E : -E);
            u += w * v[j], l += w;
        }
        most = fmax(most, fabs(u / l - o));
    }
    return most;
}

START_TEST(the_range_of_the_mean_is_found_for_small_and_large_errors)
{
    static const double errors[] = {0x1p-10, 0x1p-6, 0.1, 0.5, 0.99, 1 - 0x1p-20}; /* of exp */
    struct at_arith arith = arith_of("fp32,inexact_one=true,tile=64");
    arith.exp_ulps = errors[_i] * 0x1p23;
    for (int64_t k = 0; k < count; k++) {
        struct problem p;
        double s[MOST], w[MOST], v[MOST], l = 0;
        paint_problem(&p, 0, AT_F32, 8, 1);
        for (int64_t j = 0; j < p.Skv; j++)
            s[j] = (float)(unit() * (k % 2 ? 2 : 20));
        score_by_bias(&p, s);
        problem_truth(&p);
        problem_bound(&p, &arith);
        for (int64_t j = 0; j < p.Skv; j++)
            l += w[j] = exp(s[j]);
        for (int64_t c = 0; c < Dv; c++) {
            for (int64_t j = 0; j < p.Skv; j++)
                v[j] = of(&p.a.v, j * Dv + c);
            double B = p.x.out_bound[c], E = -log1p(-errors[_i]);
            double exact = exhaustive(w, v, p.Skv, p.x.out[c], E), size = 0;
            for (int64_t j = 0; j < p.Skv; j++)
                size = fmax(size, fabs(v[j]));
            /* Nine roundings of u, eight of l: private, and no more than these of the largest
             * value. */
            double private = 17 * 0x1p-24 * size * (1 + 0x1p-10);
            ck_assert_msg(exact <= B, "SEED=%llu: column %lld, range %a, allowed %a",
                          (unsigned long long)p.seed, (long long)c, exact, B);
            ck_assert_msg(B <= exact * (1 + 0x1p-5) + private,
                          "SEED=%llu: column %lld, range %a, allowed %a",
                          (unsigned long long)p.seed, (long long)c, exact, B);
        }
        at_answer_free(&p.x);
    }
}
END_TEST

int main(void)
{
    const char *text = getenv("SEED"), *number = getenv("COUNT");
    seed = text ? strtoull(text, NULL, 10) : 1;
    count = number ? strtoll(number, NULL, 10) : count;
    printf("SEED=%llu COUNT=%lld build/tests/check_bound\n", (unsigned long long)seed,
           (long long)count);
    fflush(stdout);
    Suite *suite = suite_create("bound");
    TCase *t = tcase_create("bound");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, our_engines_stay_within_what_they_state);
    tcase_add_loop_test(t, a_simulated_machine_stays_within_what_it_states, 0, MACHINES);
    tcase_add_loop_test(t, a_kernel_may_make_the_error_that_it_states, 0, STATED);
    tcase_add_loop_test(t, the_range_of_the_mean_is_found_for_small_and_large_errors, 0, 6);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Simulated machines: fp32 with our functions is the scalar engine to the bit; conversions are
 * those of at_math.h and MPFR; one rounding an operation, also where a double's own rounding would
 * be a second one. SEED=n paints others; COUNT=n as many. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "at_simulate.h"
#include "paint.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

static int64_t count, seed;

/* -- The scalar engine ------------------------------------------------------------------------- */

/* A painted problem, and its results placed like q without gaps. */
struct both {
    struct problem p;
    int64_t rows;
    float *out, *lse;
    double *sim_out, *sim_lse;
};

static struct at_rows all_rows(const struct at_attention *a)
{
    return (struct at_rows){a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
}

static void both_make(struct both *x, uint64_t from, struct paint_options options)
{
    paint_problem(&x->p, from, options);
    x->rows = all_rows(&x->p.a).n;
    x->out = problem_own(&x->p, (size_t)(x->rows * x->p.Dv) * sizeof *x->out);
    x->lse = problem_own(&x->p, (size_t)x->rows * sizeof *x->lse);
    x->sim_out = problem_own(&x->p, (size_t)(x->rows * x->p.Dv) * sizeof *x->sim_out);
    x->sim_lse = problem_own(&x->p, (size_t)x->rows * sizeof *x->sim_lse);
}

static bool same(double x, double y)
{
    return x == y ? signbit(x) == signbit(y) : x != x && y != y;
}

static bool differs(struct problem *p, void *with)
{
    struct both x = {.p = {0}};
    const struct at_machine *m = with;
    both_make(&x, p->seed, p->options);
    const int64_t *d = x.p.a.q.dim;
    struct at_result to = {at_bhsd(x.out, AT_F32, d[0], d[1], d[2], x.p.Dv),
                           at_bhsd(x.lse, AT_F32, d[0], d[1], d[2], 1)};
    if (x.rows > 0) /* strides of an empty tensor are 0 */
        ck_assert_int_eq(at_forward(&at_scalar, &x.p.a, &to), AT_OK);
    ck_assert_int_eq(at_simulate(&x.p.a, m, all_rows(&x.p.a), x.sim_out, x.sim_lse), AT_OK);
    bool bad = false;
    for (int64_t t = 0; t < x.rows * x.p.Dv && !bad; t++)
        bad = !same((double)x.out[t], x.sim_out[t]);
    for (int64_t t = 0; t < x.rows && !bad; t++)
        bad = !same((double)x.lse[t], x.sim_lse[t]);
    problem_free(&x.p);
    return bad;
}

START_TEST(fp32_with_our_functions_is_the_scalar_engine_to_the_bit)
{
    struct at_machine m = {.compute = at_float_of(AT_F32), .own_math = true};
    int64_t rows = 0;
    for (int64_t k = 0; k < count; k++) {
        struct problem p;
        struct paint_options options = {.without = PAINT_WIDE};
        paint_problem(&p, (uint64_t)(seed + k), options);
        rows += all_rows(&p.a).n;
        bool bad = differs(&p, &m);
        problem_free(&p);
        if (bad) {
            options = paint_shrink((uint64_t)(seed + k), options, differs, &m);
            ck_abort_msg("%s", paint_repro((uint64_t)(seed + k), options, "simulate"));
        }
    }
    printf("simulated fp32 equals the scalar engine: %lld problems, %lld rows\n", (long long)count,
           (long long)rows);
}
END_TEST

/* -- Conversions ------------------------------------------------------------------------------- */

static double encoded(double x, enum at_dtype dtype)
{
    struct at_narrow f = at_narrow_of(dtype);
    return at_decode(at_encode(x, f), f);
}

/* x as the format rounds it, by at_float; past e4m3's 448 it has numbers that the dtype does
 * not. */
static void converted(double x, enum at_dtype dtype)
{
    struct at_float f = at_float_of(dtype);
    double y = at_rounded_to(x, &f, 0, NULL), z = encoded(x, dtype);
    if (dtype == AT_F8_E4M3 && fabs(y) > 448)
        ck_assert_msg(isnan(z), "%a: %a, at_encode %a", x, y, z);
    else
        ck_assert_msg(y == z || (isnan(y) && isnan(z)), "%a: %a, at_encode %a", x, y, z);
}

static const enum at_dtype narrow[] = {AT_BF16, AT_F16, AT_F8_E4M3, AT_F8_E5M2};

START_TEST(every_number_middle_and_neighbour_of_a_narrow_format_converts_as_at_encode_does)
{
    enum at_dtype dtype = narrow[_i];
    struct at_narrow f = at_narrow_of(dtype);
    for (uint32_t bits = 0; bits < (uint32_t)1 << f.width; bits++) {
        double x = at_decode(bits, f), y = at_decode(bits + 1, f), middle = x / 2 + y / 2;
        double at[] = {x,
                       middle,
                       nextafter(middle, 0),
                       nextafter(middle, INFINITY),
                       nextafter(x, -INFINITY),
                       nextafter(x, INFINITY)};
        for (int k = 0; k < 6; k++)
            converted(at[k], dtype);
    }
}
END_TEST

static const struct {
    enum at_rounding how;
    mpfr_rnd_t mpfr;
} modes[] = {{AT_NEAREST, MPFR_RNDN}, {AT_TOWARD_ZERO, MPFR_RNDZ}};

/* x rounded by MPFR to p bits, or to the grid of subnormals. */
static double by_mpfr(mpfr_srcptr exact, const struct at_float *f, mpfr_rnd_t how)
{
    mpfr_t x;
    long e = mpfr_zero_p(exact) ? f->emin : mpfr_get_exp(exact) - 1;
    mpfr_init2(x, mpfr_get_prec(exact));
    e = (e < f->emin ? f->emin : e) - f->p + 1;
    mpfr_div_2si(x, exact, e, MPFR_RNDN);
    mpfr_rint(x, x, how);
    mpfr_mul_2si(x, x, e, MPFR_RNDN);
    double y = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    if (f->flush && fabs(y) < ldexp(1, f->emin))
        y = 0;
    double past = ldexp(1, f->emax + 1), most = past - ldexp(1, f->emax + 1 - f->p);
    return fabs(y) < past ? y : copysign(how == MPFR_RNDZ ? most : INFINITY, y);
}

static struct at_float painted_format(struct paint *r)
{
    int p = (int)paint_int(r, 1, 24), emax = (int)paint_int(r, 2, 127);
    return (struct at_float){.p = p, .emin = -(int)paint_int(r, 2, 126), .emax = emax};
}

START_TEST(a_conversion_to_any_format_is_that_of_mpfr)
{
    struct paint r = paint_from((uint64_t)seed, 700);
    mpfr_t x;
    mpfr_init2(x, 53);
    for (int64_t k = 0; k < 200 * count; k++) {
        struct at_float f = painted_format(&r);
        f.rounding = modes[k % 2].how, f.flush = paint_one_in(&r, 4);
        double y = ldexp(paint_unit(&r), (int)paint_int(&r, f.emin - 26, f.emax + 3));
        if (paint_one_in(&r, 3)) /* at or beside a middle */
            y = (double)(float)y + ldexp(1, ilogb(y) - f.p);
        if (!isfinite(y))
            continue;
        mpfr_set_d(x, y, MPFR_RNDN);
        double z = at_rounded_to(y, &f, 0, NULL), w = by_mpfr(x, &f, modes[k % 2].mpfr);
        ck_assert_msg(z == w, "%a to p=%d emin=%d emax=%d: %a, MPFR %a", y, f.p, f.emin, f.emax, z,
                      w);
    }
    mpfr_clear(x);
}
END_TEST

/* -- Stochastic rounding ----------------------------------------------------------------------- */

START_TEST(stochastic_rounding_has_the_right_mean_and_repeats_by_its_seed)
{
    struct at_float f = {.p = 3, .emin = -6, .emax = 8, .rounding = AT_STOCHASTIC};
    enum { N = 40000 };
    for (int t = 0; t < 16; t++) {
        double x = (t % 2 ? -1 : 1) * (1 + 0.0625 * t) * (t > 12 ? 0x1p-9 : 1), sum = 0;
        double unit = t > 12 ? 0x1p-8 : fabs(x) < 1 ? 0.125 : 0.25;
        uint64_t n = 0, again = 0;
        for (int k = 0; k < N; k++) {
            double y = at_rounded_to(x, &f, (uint64_t)(seed + t), &n);
            ck_assert(fabs(y - x) < unit &&
                      y == at_rounded_to(x, &f, (uint64_t)(seed + t), &again));
            sum += y;
        }
        /* Hoeffding: past 6 unit/(2 sqrt N) with probability 3e-8. */
        ck_assert_msg(fabs(sum / N - x) <= 6 * unit / (2 * sqrt(N)), "%g: mean %g", x, sum / N);
    }
}
END_TEST

/* -- One rounding an operation ----------------------------------------------------------------- */

/* One key: lse = RN(RN(RN(q0 k0) + q1 k1)), out = v. */
static double fused_sum(const double q[2], const double k[2], const struct at_machine *m)
{
    double v = 0, out, lse, q2[2] = {q[0], q[1]}, k2[2] = {k[0], k[1]};
    struct at_attention a =
        at_plain(at_bhsd(q2, AT_F64, 1, 1, 1, 2), at_bhsd(k2, AT_F64, 1, 1, 1, 2),
                 at_bhsd(&v, AT_F64, 1, 1, 1, 1), 1);
    a.plan.lanes = 1, a.plan.threads = 1;
    ck_assert_int_eq(at_simulate(&a, m, all_rows(&a), &out, &lse), AT_OK);
    return lse;
}

static double fused_sum_by_mpfr(const double q[2], const double k[2], const struct at_float *f,
                                mpfr_rnd_t how)
{
    mpfr_t x, y;
    mpfr_inits2(900, x, y, (mpfr_ptr)0);
    mpfr_set_d(x, q[0], MPFR_RNDN);
    mpfr_mul_d(x, x, k[0], MPFR_RNDN);
    mpfr_set_d(x, by_mpfr(x, f, how), MPFR_RNDN);
    mpfr_set_d(y, q[1], MPFR_RNDN);
    mpfr_mul_d(y, y, k[1], MPFR_RNDN);
    mpfr_add(x, x, y, MPFR_RNDN);
    double z = by_mpfr(x, f, how);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return z;
}

START_TEST(a_sum_is_rounded_once_also_just_beside_a_middle)
{
    struct paint r = paint_from((uint64_t)seed, 701);
    int64_t hard = 0;
    for (int64_t t = 0; t < 60 * count; t++) {
        struct at_machine m = {.compute = at_float_of(AT_F32)};
        struct at_float *f = &m.compute;
        f->p = t % 2 ? 24 : (int)paint_int(&r, 2, 24), f->rounding = modes[t / 2 % 2].how;
        double half = ldexp(1, -f->p), near = 1 + ldexp((double)paint_int(&r, -1, 1), 1 - f->p);
        /* x0 = k significand units; x1 = half a unit (1 + 2^(1-p))(1 - 2^(1-p)): 2^(2-2p) below. */
        double x0 = 1 + ldexp((double)paint_int(&r, 0, ((int64_t)1 << (f->p - 1)) - 1), 1 - f->p);
        double q[2] = {x0, near * (paint_one_in(&r, 2) ? 1 : -1)};
        double k[2] = {1, half * (2 - near) * ldexp(1, (int)paint_int(&r, -1, 1))};
        k[1] = at_rounded_to(k[1], f, 0, NULL), q[1] = at_rounded_to(q[1], f, 0, NULL);
        double got = fused_sum(q, k, &m), want = fused_sum_by_mpfr(q, k, f, modes[t / 2 % 2].mpfr);
        ck_assert_msg(got == want, "p=%d: %a*%a + %a*%a: %a, MPFR %a", f->p, q[0], k[0], q[1], k[1],
                      got, want);
        hard += at_rounded_to(q[0] * k[0] + q[1] * k[1], f, 0, NULL) != want;
    }
    printf("sums that a second rounding would spoil: %lld of %lld\n", (long long)hard,
           (long long)(60 * count));
    ck_assert_int_gt(hard, count); /* else the test has no teeth */
}
END_TEST

/* n keys of score 0, one with a value: out = RN(v/n). */
START_TEST(a_quotient_is_rounded_once)
{
    struct paint r = paint_from((uint64_t)seed, 702);
    mpfr_t x;
    mpfr_init2(x, 300); /* v/n for n <= 7: no tie within 2^-290 that is none */
    for (int64_t t = 0; t < 20 * count; t++) {
        struct at_machine m = {.compute = at_float_of(AT_F32)};
        double q = 0, k[7] = {0}, v[7] = {0}, out, lse;
        int64_t n = paint_int(&r, 1, 7);
        m.compute.p = (int)paint_int(&r, 4, 24), m.compute.rounding = modes[t % 2].how;
        v[n - 1] = at_rounded_to(paint_unit(&r), &m.compute, 0, NULL);
        struct at_attention a =
            at_plain(at_bhsd(&q, AT_F64, 1, 1, 1, 1), at_bhsd(k, AT_F64, 1, 1, n, 1),
                     at_bhsd(v, AT_F64, 1, 1, n, 1), 1);
        ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_OK);
        mpfr_set_d(x, v[n - 1], MPFR_RNDN);
        mpfr_div_si(x, x, n, MPFR_RNDN);
        ck_assert_msg(out == by_mpfr(x, &m.compute, modes[t % 2].mpfr), "p=%d: %a / %lld: %a",
                      m.compute.p, v[n - 1], (long long)n, out);
    }
    mpfr_clear(x);
}
END_TEST

/* -- Stated errors ----------------------------------------------------------------------------- */

/* Two keys whose scores are 0 and s: lse = log(1 + e^s), so out with v = (0, 1) tells e^s. */
START_TEST(a_leaning_exponential_errs_by_what_it_states_and_no_more)
{
    struct paint r = paint_from((uint64_t)seed, 703);
    double most[3] = {0}, eps = 20 * 0x1p-23;
    for (int64_t t = 0; t < 20 * count; t++) {
        enum at_lean way = (enum at_lean)(AT_UP + t % 3);
        struct at_machine m = {.compute = at_float_of(AT_F32), .exp_eps = eps, .lean = way};
        double q = 1, k[2] = {0, -(double)(float)(70 * fabs(paint_unit(&r)))}, v[2] = {0, 1}, out,
               lse;
        m.sum = (struct at_float){.p = 24, .emin = -126, .emax = 127}, m.seed = (uint64_t)t;
        struct at_attention a =
            at_plain(at_bhsd(&q, AT_F64, 1, 1, 1, 1), at_bhsd(k, AT_F64, 1, 1, 2, 1),
                     at_bhsd(v, AT_F64, 1, 1, 2, 1), 1);
        ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_OK);
        if (k[1] > -30) /* 1 + e^s rounds, and the quotient */
            continue;
        double error = out / exp(k[1]) - 1;
        ck_assert_msg(fabs(error) <= eps, "e^%a: error %a", k[1], error);
        ck_assert(way == AT_UP ? error > 0 : way == AT_DOWN ? error < 0 : true);
        most[way - AT_UP] = fmax(most[way - AT_UP], fabs(error));
    }
    ck_assert(most[0] > 0.9 * eps && most[1] > 0.9 * eps && most[2] > 0.5 * eps);
}
END_TEST

START_TEST(a_flushing_machine_has_no_subnormal_result)
{
    struct at_machine m = {.compute = at_float_of(AT_F16)};
    double q = 1, k[2] = {0, -10}, v[2] = {0, 1}, out, lse;
    struct at_attention a =
        at_plain(at_bhsd(&q, AT_F64, 1, 1, 1, 1), at_bhsd(k, AT_F64, 1, 1, 2, 1),
                 at_bhsd(v, AT_F64, 1, 1, 2, 1), 1);
    ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_OK);
    ck_assert(out > 0 && out < 0x1p-14);
    m.compute.flush = true;
    ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_OK);
    ck_assert(out == 0);
}
END_TEST

START_TEST(a_format_past_24_bits_is_refused)
{
    struct at_machine m = {.compute = at_float_of(AT_F64)};
    double x = 0, out, lse;
    struct at_view one = at_bhsd(&x, AT_F64, 1, 1, 1, 1);
    struct at_attention a = at_plain(one, one, one, 1);
    ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_ERR_PLAN);
    m.compute.p = 0;
    ck_assert_int_eq(at_simulate(&a, &m, all_rows(&a), &out, &lse), AT_ERR_PLAN);
}
END_TEST

int main(void)
{
    seed = (int64_t)paint_seed();
    count = paint_number("COUNT", getenv("LONG") ? 20000 : 400);
    Suite *suite = suite_create("simulate");
    TCase *t = tcase_create("simulate");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, fp32_with_our_functions_is_the_scalar_engine_to_the_bit);
    tcase_add_loop_test(
        t, every_number_middle_and_neighbour_of_a_narrow_format_converts_as_at_encode_does, 0, 4);
    tcase_add_test(t, a_conversion_to_any_format_is_that_of_mpfr);
    tcase_add_test(t, stochastic_rounding_has_the_right_mean_and_repeats_by_its_seed);
    tcase_add_test(t, a_sum_is_rounded_once_also_just_beside_a_middle);
    tcase_add_test(t, a_quotient_is_rounded_once);
    tcase_add_test(t, a_leaning_exponential_errs_by_what_it_states_and_no_more);
    tcase_add_test(t, a_flushing_machine_has_no_subnormal_result);
    tcase_add_test(t, a_format_past_24_bits_is_refused);
    suite_add_tcase(suite, t);
    return paint_run(suite);
}

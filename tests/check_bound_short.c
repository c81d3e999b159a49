/* The short ways of the bound are no smaller than the long: ranks by buckets against a count,
 * scores in double against two doubles, sums where every E is small against the theorem's own
 * extremes. SPDX-License-Identifier: MIT */
#include "bound.h"
#include "paint.h"
#include <stdlib.h>

static struct paint painter;

static void setup(void) { painter = paint_from(paint_seed(), 4242); }

/* -- A row of keys that are set, not computed -------------------------------------------------- */

enum { MOST = 300 };

struct bench {
    struct at_attention a;
    struct at_arith arith;
    struct rule r;
    struct worker w;
    struct row *x;
    double q[1], v[MOST * WIDE], lse;
};

static void open_bench(struct bench *y, const char *arith, int64_t n)
{
    struct at_why why;
    ck_assert(at_arith_read(&y->arith, arith, &why));
    y->a = at_plain(at_bhsd(y->q, AT_F64, 1, 1, 1, 1), at_bhsd(y->v, AT_F64, 1, 1, n, 1),
                    at_bhsd(y->v, AT_F64, 1, 1, n, WIDE), 1);
    y->r = at_rule(&y->a, &y->arith);
    ck_assert(at_bound_make(&y->w, &y->r));
    y->x = &y->w.row[0];
    y->x->n = n, y->x->swell = y->x->common = 1;
}

/* Scores are there: what becomes of them. */
static void weigh(struct bench *y)
{
    struct row *x = y->x;
    long double M = -INFINITY, l = 0;
    for (int64_t t = 0; t < x->n; t++)
        M = fmaxl(M, x->key[t].s);
    for (int64_t t = 0; t < x->n; t++)
        l += expl(x->key[t].s - M);
    long double lse = M + logl(l);
    y->lse = (double)lse;
    at_bound_errors(x, y->lse, (double)(lse - y->lse));
}

/* -- Ranks ------------------------------------------------------------------------------------- */

enum shape { ANY, TIED, FAR_ABOVE, FAR_BELOW, CLUSTER, UNKNOWN, SHAPES };

static void fill(struct row *x, enum shape shape)
{
    for (int64_t t = 0; t < x->n; t++) {
        double s = 5 * paint_unit(&painter), D = paint_one_in(&painter, 3) ? 0 : 0x1p-10;
        if (shape == TIED)
            s = (double)paint_int(&painter, 0, 3);
        if (shape == CLUSTER)
            s = 1 + 0x1p-40 * paint_unit(&painter);
        if (t == 0 && (shape == FAR_ABOVE || shape == FAR_BELOW))
            s = shape == FAR_ABOVE ? 0x1p90 : -0x1p90;
        if (shape == UNKNOWN && paint_one_in(&painter, 50))
            D = INFINITY;
        x->key[t] = (struct key){.j = t, .s = s, .D = D * fabs(paint_unit(&painter)), .factor = 1};
    }
}

/* Lemma 2 by counting. */
static double counted(const struct row *x, int64_t t)
{
    const struct key *k = &x->key[t], *y;
    double rivals = 0;
    for (int64_t u = 0; u < x->n; u++) {
        y = &x->key[u];
        rivals += u != t && y->s + y->D + y->sigma > k->s - k->D - k->sigma;
    }
    return rivals;
}

START_TEST(a_key_has_as_many_rivals_as_are_counted)
{
    static const char *const names[] = {"fp32", "fp32-tile64", "fp32,tile=16", "fp32,joins=2"};
    for (int64_t k = 0; k < 40 * SHAPES; k++) {
        struct bench y;
        int64_t n = k % 5 == 0 ? paint_int(&painter, 1, 4) : paint_int(&painter, 1, MOST);
        open_bench(&y, names[k % 4], n);
        fill(y.x, (enum shape)(k % SHAPES));
        weigh(&y);
        for (int64_t t = 0; t < n; t++) {
            double T = fmin(y.x->rescales, counted(y.x, t));
            ck_assert_msg(y.x->key[t].R == growth(y.x->depth + T, y.r.eps_total),
                          "SEED=%llu: shape %d n=%lld key %lld: not %g rescales",
                          (unsigned long long)paint_seed(), (int)(k % SHAPES), (long long)n,
                          (long long)t, T);
        }
        at_bound_free(&y.w);
    }
}
END_TEST

START_TEST(growth_is_no_less_than_it_says)
{
    for (int64_t k = 0; k < 20000; k++) {
        double eps = exp2(-28 + 25 * paint_unit(&painter));
        double n = ceil(fmin(exp2(10 + 10 * paint_unit(&painter)), 100 / eps));
        long double want = expm1l((long double)n * log1pl((long double)eps));
        double got = growth(n, eps), x = exp2(-34 + 27 * paint_unit(&painter));
        ck_assert_msg(got >= want && got <= want * WIDER * WIDER, "growth(%a, %a) = %a", n, eps,
                      got);
        ck_assert_msg(small_expm1(x) * (1 + 0x1p-50) >= expm1l((long double)x) &&
                          small_expm1(x) <= expm1l((long double)x) * WIDER,
                      "e^%a - 1", x);
    }
}
END_TEST

/* -- Scores ------------------------------------------------------------------------------------ */

static bool same_scores(const struct row *x, const struct row *y)
{
    bool good = x->n == y->n && x->dead == y->dead && x->open == y->open;
    good = good && x->overflow == y->overflow;
    for (int64_t t = 0; t < x->n && good && !x->overflow; t++) {
        const struct key *p = &x->key[t], *q = &y->key[t];
        long double off = ((long double)p->s - q->s) + ((long double)p->s_lo - q->s_lo);
        good = p->j == q->j && p->factor == q->factor && fabsl(off) <= p->sigma + q->sigma;
        good = good && p->sigma >= q->sigma;
        good = good && ((p->D * WIDER >= q->D && p->D <= q->D * WIDER) ||
                        (isnan(p->D) && isnan(q->D))); /* a softcap that the type does not hold */
    }
    return good;
}

static void score(struct row *x, struct at_place at)
{
    x->at = at;
    at_bound_open(x);
    for (int64_t j = 0; j < x->seen.hi; j += NEAR)
        at_bound_scores(x, 1, (struct at_span){j, j + NEAR});
    at_bound_close(x);
}

static bool differ(struct problem *p, void *with)
{
    bool bad = false;
    int64_t *short_ones = with;
    for (int64_t k = 0; at_arith_at(k); k += 3) {
        struct rule quick = at_rule(&p->a, at_arith_at(k)), slow = quick;
        struct worker x, y;
        slow.coarse = slow.simple = false;
        ck_assert(at_bound_make(&x, &quick) && at_bound_make(&y, &slow));
        int64_t n = p->a.q.dim[0] * p->a.q.dim[1] * p->a.q.dim[2];
        for (int64_t t = 0; t < n && !bad; t++) {
            struct at_place at = at_place_of(&p->a, (struct at_rows){n, NULL}, t);
            score(&x.row[t % ROWS], at), score(&y.row[0], at);
            bad = !same_scores(&x.row[t % ROWS], &y.row[0]);
            const struct row *z = &x.row[t % ROWS];
            for (int64_t u = 0; u < z->n && quick.simple && !z->overflow && !bad; u++)
                *short_ones += z->key[u].sigma > y.row[0].key[u].sigma; /* in double */
        }
        at_bound_free(&x);
        at_bound_free(&y);
    }
    return bad;
}

START_TEST(scores_in_double_are_within_their_sigma)
{
    int64_t count = paint_number("COUNT", 400), simple = 0;
    for (int64_t k = 0; k < count; k++) {
        uint64_t seed = paint_seed() + (uint64_t)k;
        struct paint_options o = {.without = (uint32_t)paint_number("WITHOUT", k % 2 ? 0 : 0x37f),
                                  .most = paint_number("MOST", k % 7 == 0 ? 150 : 0)};
        struct problem p;
        paint_problem(&p, seed, o);
        bool bad = differ(&p, &simple);
        problem_free(&p);
        if (bad)
            ck_abort_msg("%s", paint_repro(seed, paint_shrink(seed, o, differ, &simple),
                                           "check_bound_short"));
    }
    ck_assert(simple > 0);
}
END_TEST

/* -- Sums -------------------------------------------------------------------------------------- */

/* The most that max(R+ - o, o - R-) can be, and the private sum, from the theorem. */
static long double shared(const struct row *x, const long double *p, const double *v, long double o)
{
    long double most = 0;
    for (int64_t k = 0; k < x->n; k++)
        for (int side = 0; side < 2; side++) {
            long double u = 0, l = 0;
            for (int64_t t = 0; t < x->n; t++) {
                double at = v[t * WIDE], E = x->key[t].E;
                bool far = side ? at <= v[k * WIDE] : at >= v[k * WIDE];
                long double w = p[t] * expl(far ? E : -E);
                u += w * at, l += w;
            }
            most = fmaxl(most, fabsl(u / l - o));
        }
    return most;
}

static void add(struct row *x, struct columns *s, double *to)
{
    for (int64_t t = 0; t < x->n; t += 7)
        at_bound_sum(x, t, 7, s, 1);
    at_bound_summed(x, s, 1);
    at_bound_shared(x, s, to);
}

static void hold_sums(struct bench *y, bool *took)
{
    struct row *x = y->x;
    long double p[MOST], u[WIDE] = {0}, l = 0, less = 0;
    double quick[WIDE], slow[WIDE], priv, old;
    struct columns s = {.c = 0};
    for (int64_t t = 0; t < x->n; t++)
        l += p[t] = expl((long double)x->key[t].s - y->lse);
    for (int64_t t = 0; t < x->n; t++) {
        p[t] /= l, less += p[t] * expl(-(long double)x->key[t].E);
        for (int c = 0; c < WIDE; c++)
            u[c] += p[t] * y->v[t * WIDE + c];
        x->panel[t] = y->v + t * WIDE;
    }
    for (int c = 0; c < WIDE; c++) {
        s.hi[c] = (double)u[c], s.lo[c] = (double)(u[c] - s.hi[c]);
        s.most[c] = -INFINITY, s.least[c] = INFINITY;
    }
    struct columns z = s;
    *took = *took || x->fine;
    ck_assert(x->direct || (x->below <= less && x->below * (1 + 0x1p-8) >= less));
    add(x, &s, quick);
    for (int64_t t = 0; t < x->n && x->fine; t++) {
        double mean = x->up[t], half = x->down[t];
        x->up[t] = mean + half, x->down[t] = mean - half;
    }
    bool fine = x->fine;
    x->fine = false;
    add(x, &z, slow);
    for (int c = 0; c < WIDE; c++) {
        long double want = shared(x, p, y->v + c, u[c]), own = 0;
        for (int64_t t = 0; t < x->n; t++)
            own += p[t] * expl(x->key[t].E) * x->key[t].S * fabs(y->v[t * WIDE + c]);
        priv = fmin(fmin(s.priv[c], s.few[c]) / x->below, s.priv_max[c]);
        old = fmin(fmin(z.priv[c], z.few[c]) / x->below, z.priv_max[c]);
        ck_assert_msg(quick[c] >= want - 0x1p-58L * s.size[c],
                      "SEED=%llu: %a, the theorem says %La", (unsigned long long)paint_seed(),
                      quick[c], want);
        ck_assert(!fine || (quick[c] * WIDER >= slow[c] && s.size[c] == z.size[c]));
        ck_assert(!fine || c < 3 || quick[c] <= slow[c] * 1.013); /* others: rounding alone */
        ck_assert(s.priv[c] * WIDER >= own && priv * WIDER >= old && priv <= old * 1.013);
    }
}

START_TEST(short_sums_are_no_less_than_the_theorem)
{
    bool took = false;
    for (int64_t k = 0; k < 200; k++) {
        struct bench y;
        int64_t n = paint_int(&painter, 1, 60);
        double D = exp2(-26 + (double)(k % 25)), mean = k % 3 ? 0 : 4;
        open_bench(&y, k % 2 ? "fp32" : "bf16-p", n);
        for (int64_t t = 0; t < n; t++) {
            y.x->key[t] = (struct key){.j = t, .s = 4 * paint_unit(&painter), .factor = 1};
            y.x->key[t].D = D * fabs(paint_unit(&painter));
            if (paint_one_in(&painter, 20)) /* of no weight, and hardly known */
                y.x->key[t].s = -20, y.x->key[t].D = 8 * fabs(paint_unit(&painter));
            for (int c = 0; c < WIDE; c++)
                y.v[t * WIDE + c] = c == 0   ? 1.5
                                    : c == 1 ? t == 0
                                    : c == 2 ? 1 + (double)(t % 3 == 0) * 0x1p-52 /* by lo */
                                             : mean + paint_unit(&painter);
        }
        weigh(&y);
        hold_sums(&y, &took);
        at_bound_free(&y.w);
    }
    ck_assert(took);
}
END_TEST

/* Scores so large that their errors have no double of e: the surest weight is 1, to the bit. */
START_TEST(of_huge_scores_the_surest_weight_is_one)
{
    for (int64_t k = 0; k < 2000; k++) {
        struct bench y;
        int64_t n = paint_int(&painter, 1, 4);
        open_bench(&y, "fp32", n);
        for (int64_t t = 0; t < n; t++) {
            double s = 0x1p120 * paint_unit(&painter);
            y.x->key[t] = (struct key){.j = t, .s = s, .factor = 1};
            y.x->key[t].D = 0x1p-24 * fabs(s), y.x->key[t].sigma = 0x1p-25 * fabs(s);
        }
        weigh(&y);
        ck_assert_msg(y.x->direct && y.x->below * WIDER >= 1 && y.x->below <= (double)n,
                      "SEED=%llu: W- of %lld keys is %a", (unsigned long long)paint_seed(),
                      (long long)n, y.x->below);
        at_bound_free(&y.w);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bound_short");
    TCase *t = tcase_create("bound_short");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, a_key_has_as_many_rivals_as_are_counted);
    tcase_add_test(t, growth_is_no_less_than_it_says);
    tcase_add_test(t, scores_in_double_are_within_their_sigma);
    tcase_add_test(t, short_sums_are_no_less_than_the_theorem);
    tcase_add_test(t, of_huge_scores_the_surest_weight_is_one);
    suite_add_tcase(s, t);
    return paint_run(s);
}

/* (A-ord) of docs/bounds.md: the bound where the order of the sums is known. It is the theorem's
 * number, held by kernels of that order, and left by those of another. Also what l loses to
 * underflow and to a narrow format. SEED=n paints others; COUNT=n as many.
 * SPDX-License-Identifier: MIT */
#include "ordered.h"
#include <stdlib.h>

/* Key order[k] of another's, as key k: the same sums in another order. */
static struct at_view permuted(const double *x, const int64_t *order, int64_t n, double *to)
{
    for (int64_t k = 0; k < n; k++)
        to[k] = x[order ? order[k] : k];
    return at_bhsd(to, AT_F64, 1, 1, n, 1);
}

/* The machine of the arithmetic on the keys in that order (NULL: theirs), held to the bound. */
static bool holds(struct row *w, const int64_t *order, enum at_lean lean, uint64_t seed)
{
    double s[MOST], v[MOST], ratio[2];
    struct at_machine m = at_machine_of(&w->arith);
    struct at_attention a = w->a;
    struct at_verdict verdict;
    m.lean = lean, m.seed = seed;
    a.v = permuted(w->v, order, w->n, v);
    permuted(w->s, order, w->n, s);
    a.score.bias = at_bhsd(s, AT_F64, 1, 1, 1, w->n);
    ck_assert_int_eq(at_simulate(&a, &m, one, &w->out, &w->lse), AT_OK);
    struct at_result got = {at_bhsd(&w->out, AT_F64, 1, 1, 1, 1),
                            at_bhsd(&w->lse, AT_F64, 1, 1, 1, 1)};
    ck_assert_int_eq(at_compare(&w->a, &got, one, &w->arith, &w->x, ratio, &verdict), AT_OK);
    w->ratio = ratio[0], w->lse_ratio = ratio[1];
    return verdict.failed == 0;
}

/* -- Rows -------------------------------------------------------------------------------------- */

enum shape { EQUAL, RISING, FALLING, ANY, HEAVY };

static void fill(struct row *w, struct paint *r, enum shape shape)
{
    for (int64_t j = 0; j < w->n; j++) {
        double at = (double)j / 16, x = paint_unit(r);
        w->s[j] = shape == EQUAL ? 0 : shape == RISING ? at : shape == FALLING ? -at : x;
        w->v[j] = (j % 2 ? -1 : 1) * (1.5 + paint_unit(r) / 2);
        if (shape == HEAVY) /* equal scores; light values first, then 1 and -1 */
            w->s[j] = 0, w->v[j] = j < w->n - 2 ? 0x0.cp-24 : j < w->n - 1 ? 1 : -1;
        w->s[j] = at_rounded_to(w->s[j], &w->arith.own, 0, NULL);
        w->v[j] = at_rounded_to(w->v[j], &w->arith.own, 0, NULL);
    }
}

/* In a format of few bits, so that each part of the theorem shows; underflow far away. */
START_TEST(the_ordered_bound_is_the_number_of_the_theorem)
{
    static const struct at_float few = {10, -900, 900, false, AT_NEAREST};
    static const int64_t tiles[] = {1, 3, 8, 64};
    struct paint r = paint_from(paint_seed(), 960);
    for (int64_t k = 0; k < 4 * 4 * 4; k++) {
        struct row w;
        char words[60];
        snprintf(words, sizeof words, "fp32,exp_ulps=0.01,ordered=true,tile=%lld",
                 (long long)tiles[k % 4]);
        open_row(&w, words, &few, k / 16 % 2 ? 64 : 40);
        fill(&w, &r, (enum shape)(k / 4 % 4));
        double B = bound(&w);
        long double want = allowed(&w);
        ck_assert_msg(B >= want, "%s shape %d n=%lld: %a, the theorem says %La", words,
                      (int)(k / 4 % 4), (long long)w.n, B, want);
        ck_assert_msg(B <= want * (1 + 0x1p-7), "%s shape %d n=%lld: %a, the theorem says %La",
                      words, (int)(k / 4 % 4), (long long)w.n, B, want);
        close_row(&w);
    }
}
END_TEST

/* Values of both signs: partial sums are small where sum p|v| is not. */
START_TEST(values_of_both_signs_are_allowed_less_where_the_order_is_known)
{
    struct paint r = paint_from(paint_seed(), 961);
    for (int64_t k = 0; k < 4; k++) {
        struct row w, any;
        open_row(&w, "fp32,tile=16,ordered=true", NULL, 64);
        fill(&w, &r, EQUAL);
        open_row(&any, "fp32,tile=16", NULL, 64);
        memcpy(any.s, w.s, sizeof w.s), memcpy(any.v, w.v, sizeof w.v);
        double B = bound(&w), unordered = bound(&any);
        ck_assert_msg(B * 8 <= unordered, "%a for %a", B, unordered);
        close_row(&w), close_row(&any);
    }
}
END_TEST

/* -- Held by that order, left by another ------------------------------------------------------- */

static void shuffle(struct paint *r, int64_t n, int64_t *order)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t at = paint_int(r, 0, k);
        order[k] = order[at], order[at] = k;
    }
}

/* Sorted by value: partial sums as large as they get. */
static void sort(const struct row *w, int64_t *order)
{
    for (int64_t k = 0; k < w->n; k++) {
        int64_t t = k;
        for (; t > 0 && w->v[order[t - 1]] < w->v[k]; t--)
            order[t] = order[t - 1];
        order[t] = k;
    }
}

static const char *const tiles[] = {"fp32,tile=1", "fp32,tile=3", "fp32,tile=16", "fp32,tile=64"};

/* Equal scores, values that alternate, or two heavy ones at the end: a kernel that shuffles its
 * keys, or sorts them, keeps the bound of any order, and leaves that of the ascending one. */
START_TEST(a_kernel_that_permutes_its_keys_leaves_the_ordered_bound_and_not_the_other)
{
    struct paint r = paint_from(paint_seed(), 962);
    int64_t left[3] = {0}, count = paint_number("COUNT", 400);
    for (int64_t k = 0; k < count; k++) {
        struct row w, any;
        char words[60];
        int64_t order[MOST];
        snprintf(words, sizeof words, "%s,ordered=true", tiles[k / 2 % 4]);
        open_row(&w, words, NULL, 64);
        fill(&w, &r, k % 2 ? HEAVY : EQUAL);
        open_row(&any, "fp32", NULL, 64);
        memcpy(any.s, w.s, sizeof w.s), memcpy(any.v, w.v, sizeof w.v);
        bound(&w), bound(&any);
        for (int turn = 0; turn < 3; turn++) {
            if (turn == 1)
                shuffle(&r, w.n, order);
            else
                sort(&w, order);
            any.a.plan.bc = w.a.plan.bc;
            left[turn] += !holds(&w, turn ? order : NULL, AT_STRAIGHT, 1);
            ck_assert_msg(holds(&any, turn ? order : NULL, AT_STRAIGHT, 1),
                          "SEED=%llu, problem %lld: fails the unordered bound",
                          (unsigned long long)paint_seed(), (long long)k);
        }
        close_row(&w), close_row(&any);
    }
    printf("of %lld rows leave the ordered bound: ascending %lld, shuffled %lld, sorted %lld\n",
           (long long)count, (long long)left[0], (long long)left[1], (long long)left[2]);
    fflush(stdout);
    ck_assert(left[0] == 0 && left[1] > 0 && left[2] > 0);
}
END_TEST

/* Light keys before the heavy one: summed first, they count; after it, each is lost. */
START_TEST(a_kernel_that_takes_keys_from_the_end_leaves_the_ordered_bound)
{
    struct row w, any;
    int64_t order[MOST];
    open_row(&w, "fp32-sequential", NULL, 64);
    open_row(&any, "fp32-sequential,ordered=false", NULL, 64);
    for (int64_t j = 0; j < 64; j++) {
        w.s[j] = any.s[j] = j < 63 ? -20 : 0; /* 2^-28.9 */
        w.v[j] = any.v[j] = j < 63 ? 0x1.8p+3 : 1;
        order[j] = 63 - j;
    }
    bound(&w), bound(&any);
    ck_assert(holds(&w, NULL, AT_STRAIGHT, 1) && holds(&any, NULL, AT_STRAIGHT, 1));
    ck_assert(holds(&any, order, AT_STRAIGHT, 1));
    ck_assert_msg(!holds(&w, order, AT_STRAIGHT, 1), "ratio %g", w.ratio);
    ck_assert(w.ratio > 4);
    close_row(&w), close_row(&any);
}
END_TEST

/* In each tile 1, then values that add three halves of an ulp to it, then -1: u errs by half an ulp
 * 14 times, where it is an eighth of all; in l those keys are lost. */
START_TEST(the_ordered_bound_is_nearly_reached_where_it_is_much_less_than_the_other)
{
    struct row w, any;
    open_row(&w, "fp32,tile=16,ordered=true", NULL, 64);
    open_row(&any, "fp32,tile=16", NULL, 64);
    for (int64_t j = 0; j < 64; j++) {
        bool light = j % 16 != 0 && j % 16 != 15;
        w.s[j] = any.s[j] = light ? -0x1.0a3p+4 : 0; /* e^s = 0.9988 2^-24 */
        w.v[j] = any.v[j] = light ? 3 + 0x1p-8 : j % 16 ? -1 : 1;
    }
    ck_assert(bound(&w) * 2.5 < bound(&any));
    ck_assert(holds(&any, NULL, AT_STRAIGHT, 1) && any.ratio < 0.5);
    ck_assert_msg(holds(&w, NULL, AT_STRAIGHT, 1) && w.ratio > 0.95, "ratio %g", w.ratio);
    close_row(&w), close_row(&any);
}
END_TEST

/* The last key's score is 1.03125, computed as 1.0625: its product is rounded up before most of it
 * cancels. It raises the maximum, which is 1.046875, and 62 weights meet a second exponential. */
START_TEST(a_tile_may_raise_the_maximum_that_should_not)
{
    struct row w;
    open_row(&w, "fp32-sequential,exp_ulps=65536", NULL, 64);
    w.q[0] = 1 + 0x1p-12, w.q[1] = -1;
    for (int64_t j = 0; j < 64; j++)
        w.k[2 * j + 1] = j ? -0.875 : -1.046875, w.v[j] = 1;
    w.k[126] = 0x1p19 * (1 + 3 * 0x1p-12);
    w.k[127] = 0x1p19 * (1 + 4 * 0x1p-12 + 4 * 0x1p-24) - 1.0625;
    bound(&w);
    ck_assert_msg(holds(&w, NULL, AT_UP, 1) && w.lse_ratio > 0.5, "lse ratio %g", w.lse_ratio);
    close_row(&w);
}
END_TEST

/* With joins the ends of the splits are not stated, without a tile the order is not. */
START_TEST(order_is_no_claim_where_the_sums_are_not_known)
{
    static const char *const words[] = {
        "fp32", "fp32,tile=16,joins=1", "fp32,tile=16,truncates=true",
        "fp32,tile=16,product_eps=1e-6", "fp32,tile=16,joins=0,lse_merge=true"};
    struct paint r = paint_from(paint_seed(), 963);
    for (int k = 0; k < 5; k++) {
        struct row w;
        open_row(&w, words[k], NULL, 64);
        fill(&w, &r, ANY);
        double without = bound(&w), lse = w.x.lse_bound[0];
        if (k != 2 && k != 3) { /* there T may still be less */
            w.arith.ordered = true;
            ck_assert(bound(&w) == without && w.x.lse_bound[0] == lse);
        }
        fill(&w, &r, EQUAL); /* no rescale */
        w.arith.ordered = false, without = bound(&w);
        w.arith.ordered = true;
        ck_assert(bound(&w) == without);
        close_row(&w);
    }
}
END_TEST

/* -- Random rows, every lean ------------------------------------------------------------------- */

START_TEST(no_machine_of_that_order_leaves_the_ordered_bound)
{
    static const char *const words[] = {"fp32,ordered=true",
                                        "bf16-p,ordered=true",
                                        "fp32-exp2,ordered=true",
                                        "fp16-p-normalised,ordered=true",
                                        "fp32-libm-exp20,ordered=true",
                                        "fp32,compute=fp16,exp_ulps=1,ordered=true",
                                        "fp32,sum=fp16,ordered=true"};
    struct paint r = paint_from(paint_seed(), 964);
    int64_t count = paint_number("COUNT", getenv("LONG") ? 200000 : 4000), held = 0;
    double most = 0;
    for (int64_t k = 0; k < count; k++) {
        struct row w;
        char line[100];
        int64_t n = paint_int(&r, 2, MOST), tile = paint_one_in(&r, 3) ? 1 : paint_int(&r, 1, 70);
        snprintf(line, sizeof line, "%s,tile=%lld", words[k % 7], (long long)tile);
        open_row(&w, line, NULL, n);
        fill(&w, &r, (enum shape)paint_int(&r, 0, 3));
        bound(&w);
        for (enum at_lean lean = AT_STRAIGHT; lean <= AT_DRAWN; lean++, held++) {
            ck_assert_msg(holds(&w, NULL, lean, (uint64_t)k + 1),
                          "SEED=%llu COUNT=%lld: %s n=%lld: got %a truth %a ratio %g, lse %g",
                          (unsigned long long)paint_seed(), (long long)count, line, (long long)n,
                          w.out, w.x.out[0], w.ratio, w.lse_ratio);
            most = fmax(most, w.ratio);
        }
        close_row(&w);
    }
    printf("%lld rows of kernels in order: none leaves its bound; largest ratio %.3f\n",
           (long long)held, most);
    ck_assert(most > 0);
}
END_TEST

/* -- What l loses ------------------------------------------------------------------------------ */

/* 63 weights just below half the least number: none is in l or u, and together they are a ninth of
 * l. With o = 0 nothing but the division by what is left of l makes the error so large. */
START_TEST(what_l_loses_to_underflow_is_taken_from_the_divisor)
{
    static const struct at_float own = {12, 3, 60, false, AT_NEAREST};
    struct row w;
    open_row(&w, "fp32,exp_ulps=1,tile=64", &own, 64);
    double p = exp(-6.2421875), V = 0x1p20;
    for (int64_t j = 0; j < w.n; j++)
        w.s[j] = j ? -6.2421875 : 0, w.v[j] = V;
    w.v[0] = at_rounded_to(-(double)(w.n - 1) * p * V, &own, 0, NULL);
    bound(&w);
    ck_assert_int_eq(w.x.out_kind[0], AT_CLAIMED);
    ck_assert_msg(holds(&w, NULL, AT_STRAIGHT, 1), "%a for %a, allowed %a", w.out, w.x.out[0],
                  w.x.out_bound[0]);
    ck_assert(w.out == w.v[0] && w.ratio > 0.5);
    close_row(&w);
}
END_TEST

/* Four equal weights in a format without a normal 1: each may lose half the least number, and what
 * is lost meets the additions of u too. The number of Theorem A*, o = 0. */
START_TEST(what_underflow_takes_is_the_number_of_the_theorem)
{
    static const struct at_float own = {6, 3, 60, false, AT_NEAREST};
    struct row w;
    open_row(&w, "fp32,exp_ulps=1,tile=64", &own, 4);
    double V = 0x1p20, tiny = 0x1p-3, S = expm1(3 * log1p(0x1p-6)), R = S;
    for (int64_t j = 0; j < 4; j++)
        w.v[j] = j % 2 ? -V : V;
    double B = bound(&w), of_l = tiny * (1 + R), of_u = tiny * V * (1 + S);
    double want = (S * V + of_u + 8 * tiny) / (1 - R - of_l);
    ck_assert_msg(B >= want && B <= want * (1 + 0x1p-10), "%a, the theorem says %a", B, want);
    close_row(&w);
}
END_TEST

/* p = e^s joins an empty l of fp16: a rounding before its two additions. */
START_TEST(a_weight_is_rounded_where_l_is_narrower)
{
    struct row w;
    open_row(&w, "fp32,exp_ulps=1,total=fp16,tile=4", NULL, 3);
    w.s[0] = w.s[1] = -0.0625, w.v[0] = w.v[1] = w.v[2] = 1;
    bound(&w);
    double p = exp(-0.0625), least = log1p(0x1p-11 * (3 * p + 2 * p + 2) / (2 * p + 1));
    ck_assert_msg(w.x.lse_bound[0] >= least, "%a, at least %a", w.x.lse_bound[0], least);
    close_row(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, 3600);
    tcase_add_test(t, the_ordered_bound_is_the_number_of_the_theorem);
    tcase_add_test(t, values_of_both_signs_are_allowed_less_where_the_order_is_known);
    tcase_add_test(t, a_kernel_that_permutes_its_keys_leaves_the_ordered_bound_and_not_the_other);
    tcase_add_test(t, a_kernel_that_takes_keys_from_the_end_leaves_the_ordered_bound);
    tcase_add_test(t, the_ordered_bound_is_nearly_reached_where_it_is_much_less_than_the_other);
    tcase_add_test(t, a_tile_may_raise_the_maximum_that_should_not);
    tcase_add_test(t, order_is_no_claim_where_the_sums_are_not_known);
    tcase_add_test(t, no_machine_of_that_order_leaves_the_ordered_bound);
    tcase_add_test(t, what_l_loses_to_underflow_is_taken_from_the_divisor);
    tcase_add_test(t, what_underflow_takes_is_the_number_of_the_theorem);
    tcase_add_test(t, a_weight_is_rounded_where_l_is_narrower);
    suite_add_tcase(suite, t);
    return paint_run(suite);
}

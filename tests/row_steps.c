/* Where each step of a row rounds (at_row.h): no contraction, no reciprocal, one order. Compiled
 * for AT_BITS 32 and 64. SPDX-License-Identifier: MIT */
#include "at_row.h"
#include "row.h"

enum { Dv = 5, TIMES = 20000 };

static at_real paint(struct paint *r)
{
    at_real x = (at_real)paint_unit(r);
    switch (paint_int(r, 0, 11)) {
    case 0: return 0;
    case 1: return -(at_real)0;
    case 2: return 50 * x;
    case 3: return 1000 * x;
    case 4: return x * (at_real)0x1p-60;
    default: return x;
    }
}

/* volatile: a product that is stored is rounded. */
START_TEST(each_step_rounds_where_the_header_says)
{
    struct paint r = paint_from(paint_seed(), 8);
    for (int k = 0; k < TIMES; k++) {
        at_real a = paint(&r), x = paint(&r), b = paint(&r), y = paint(&r), l = paint(&r);
        volatile at_real ax = a * x, by = b * y, sum = ax + by;
        ck_assert(at_join(a, x, b, y) == sum);
        sum = ax + y;
        ck_assert(at_take(a, x, y) == sum);
        if (l != 0) {
            volatile at_real out = ax / l;
            ck_assert(at_out(x, l, a) == out);
        }
        at_real v[Dv] = {x, y, b, 0, 1}, p = at_exp(-1), u[Dv] = {b, a, x, y, l};
        struct at_row tile = {1, 2, (at_real[]){b, a, x, y, l}};
        at_row_add(&tile, 0, v, Dv); /* one rounding: fma */
        for (int c = 0; c < Dv; c++)
            ck_assert(tile.u[c] == at_fma(p, v[c], u[c]));
    }
}
END_TEST

START_TEST(a_score_rounds_after_each_step_in_order)
{
    struct paint r = paint_from(paint_seed(), 9);
    at_real number[2];
    struct at_view bias = at_bhsd(&number[0], AT_BITS == 32 ? AT_F32 : AT_F64, 1, 1, 1, 1);
    bias = at_repeated(bias, 1, 1, 100, 100);
    struct at_view alibi = bias;
    alibi.data = &number[1];
    for (int k = 0; k < TIMES; k++) {
        struct at_attention a = {.score = {.bias = bias, .alibi = alibi}};
        int64_t i = paint_int(&r, 0, 99), j = paint_int(&r, 0, 99);
        at_real raw = 9 * paint(&r);
        number[0] = paint(&r), number[1] = paint(&r);
        a.score.scale = paint_unit(&r), a.score.softcap = k % 2 ? 3 * fabs(paint_unit(&r)) : 0;
        at_real cap = (at_real)a.score.softcap;
        volatile at_real s = (at_real)a.score.scale * raw;
        if (k % 2) {
            volatile at_real t = s / cap;
            s = cap * at_tanh(t);
        }
        volatile at_real sum = s + number[0], step = number[1] * (at_real)(i < j ? j - i : i - j);
        sum = sum - step;
        ck_assert(at_scored(&a, raw, 0, 0, i, j) == sum);
    }
}
END_TEST

START_TEST(lanes_sum_the_products_they_name)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 7);
    at_real q[130], k[130];
    for (int64_t lanes = 1; lanes <= 64; lanes *= 2)
        for (int64_t D = 1; D <= 130; D++) {
            double sum = 0; /* whole numbers: every order is exact */
            for (int64_t c = 0; c < D; c++) {
                q[c] = (at_real)paint_int(&r, -9, 9);
                k[c] = (at_real)paint_int(&r, -9, 9);
                sum += (double)(q[c] * k[c]);
            }
            ck_assert((double)at_dot(q, k, D, lanes) == sum);
        }
    const at_real half = AT_BITS == 32 ? (at_real)0x1p-25 : (at_real)0x1p-54;
    /* Not associative: 1 + eps/2 - 1 tells chains apart. */
    at_real a[4] = {1, half, -1, 0}, b[4] = {1, 1, 1, 1};
    ck_assert(at_dot(a, b, 4, 1) == 0);
    ck_assert(at_dot(a, b, 4, 2) == half); /* (1 - 1) + (eps/2 + 0) */
}
END_TEST

TCase *AT_NAME(step_cases)(void)
{
    TCase *t = tcase_create(AT_BITS == 32 ? "steps fp32" : "steps fp64");
    tcase_add_test(t, lanes_sum_the_products_they_name);
    tcase_add_test(t, each_step_rounds_where_the_header_says);
    tcase_add_test(t, a_score_rounds_after_each_step_in_order);
    return t;
}

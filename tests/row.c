/* Laws of (+) on {m, l, u}, at_row.h: neutral, commutative, associative, push, sink, finish.
 * Compiled for AT_BITS 32 and 64. Associativity is held to a bound, derived at `allowed`; all else
 * is equality of bits. SPDX-License-Identifier: MIT */
#include "row.h"
#include "at_row.h"
#include <stdio.h>

enum { Dv = 5, TIMES = 20000 };

#if AT_BITS == 32
static const double eps = 0x1p-24, tiny = 0x1p-149;
static const at_real low = -80; /* e^low v with v <= 2^-40 is below half a subnormal */
#else
static const double eps = 0x1p-53, tiny = 0x1p-1074;
static const at_real low = -700;
#endif
static const at_real none = -(at_real)INFINITY;

struct state {
    at_real m, l, u[Dv];
};

static struct at_row row_of(struct state *x) { return (struct at_row){x->m, x->l, x->u}; }

static void keep(struct state *x, const struct at_row *row)
{
    x->m = row->m;
    x->l = row->l;
}

/* Bits, -0 told from +0; any NaN equals any NaN. */
static void same(struct state x, struct state y, uint64_t seed, int64_t turn)
{
    const at_real *a = &x.m, *b = &y.m;
    for (int k = 0; k < Dv + 2; k++)
        ck_assert_msg(memcmp(a + k, b + k, sizeof *a) == 0 || (isnan(a[k]) && isnan(b[k])),
                      "number %d of m, l, u: %a and %a, turn %lld: SEED=%llu build/tests/check_row",
                      k, (double)a[k], (double)b[k], (long long)turn, (unsigned long long)seed);
}

/* -- Painting ---------------------------------------------------------------------------------- */

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

static at_real strange(struct paint *r)
{
    const at_real x[3] = {(at_real)NAN, (at_real)INFINITY, none};
    return paint_one_in(r, 40) ? x[paint_int(r, 0, 2)] : paint(r);
}

static struct state empty(void) { return (struct state){none, 0, {0}}; }

/* A state that has met n keys in tiles of `tile`. */
static struct state met(int64_t n, const at_real *s, const at_real (*v)[Dv], int64_t tile)
{
    struct state x = empty(), t;
    struct at_row row = row_of(&x), part = row_of(&t);
    for (int64_t j = 0; j < n; j += tile) {
        int64_t end = at_min(n, j + tile);
        at_real m = row.m;
        for (int64_t k = j; k < end; k++)
            m = at_larger(m, s[k]);
        at_row_clear(&part, m + 0, Dv);
        for (int64_t k = j; k < end; k++)
            at_row_add(&part, s[k], v[k], Dv);
        at_row_take(&row, &part, Dv);
    }
    keep(&x, &row);
    return x;
}

enum { MANY = 8 };

static struct state painted(struct paint *r, at_real (*number)(struct paint *))
{
    at_real s[MANY], v[MANY][Dv];
    for (int j = 0; j < MANY; j++) {
        s[j] = number(r);
        for (int c = 0; c < Dv; c++)
            v[j][c] = number(r);
    }
    return met(paint_int(r, 0, MANY), s, (const at_real(*)[Dv])v, paint_int(r, 1, MANY));
}

static struct state merged(struct state x, struct state y)
{
    struct at_row a = row_of(&x), b = row_of(&y);
    at_row_merge(&a, &b, Dv);
    keep(&x, &a);
    return x;
}

/* -- Laws -------------------------------------------------------------------------------------- */

START_TEST(merging_with_empty_changes_nothing)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 1);
    for (int64_t k = 0; k < TIMES; k++) {
        struct state x = painted(&r, strange), stale = empty();
        if (x.l == 0)
            continue;
        for (int c = 0; c < Dv; c++)
            stale.u[c] = (at_real[]){(at_real)NAN, (at_real)INFINITY, 7, 0}[paint_int(&r, 0, 3)];
        same(merged(stale, x), x, seed, k);
        same(merged(x, stale), x, seed, k);
    }
}
END_TEST

START_TEST(two_empty_states_merge_into_an_empty_one)
{
    same(merged(empty(), empty()), empty(), 0, 0);
    struct state x = merged(empty(), merged(empty(), empty()));
    ck_assert(x.l == 0 && at_out(x.u[0], x.l, 1) == 0 && at_lse(x.m, x.l) == none);
}
END_TEST

START_TEST(merging_is_commutative_to_the_bit)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 2);
    for (int64_t k = 0; k < TIMES; k++) {
        struct state x = painted(&r, strange), y = painted(&r, strange);
        if (x.l != 0 || y.l != 0)
            same(merged(x, y), merged(y, x), seed, k);
    }
    /* A state from elsewhere may hold m = -0: the larger of two zeros is the positive one. */
    struct state x = {-(at_real)0, 1, {-(at_real)0, 0, 1, -1, 2}},
                 y = {0, 1, {0, -(at_real)0, -1, 1, 3}};
    same(merged(x, y), merged(y, x), seed, -1);
    ck_assert(!signbit(merged(x, y).m) && !signbit(merged(y, x).m));
}
END_TEST

/* A term x_k e^d, d = m_k - m, is rescaled at most twice. Its exponents' roundings telescope to
 * eps |d|; two exp err by 2 eps each, two products and two sums by eps each: 8 eps, 9 with what is
 * of second order. An underflow costs `tiny`, times the factors that follow. */
static double allowed(const double *m, const double *x, double top)
{
    double sum = 0, size = 1;
    for (int k = 0; k < 3; k++) {
        double d = m[k] - top;
        sum += fabs(x[k]) * exp(d) * (9 - d);
        size += fabs(x[k]);
    }
    return eps * sum + 6 * tiny * size;
}

START_TEST(merging_is_associative_within_the_bound)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 3);
    for (int64_t k = 0; k < TIMES; k++) {
        struct state x = painted(&r, paint), y = painted(&r, paint), z = painted(&r, paint);
        if (x.l == 0 || y.l == 0 || z.l == 0)
            continue;
        struct state left = merged(merged(x, y), z), right = merged(x, merged(y, z));
        const double m[3] = {(double)x.m, (double)y.m, (double)z.m};
        ck_assert(left.m == right.m);
        for (int c = -1; c < Dv; c++) { /* l, then u */
            double a = (double)(c < 0 ? left.l : left.u[c]),
                   b = (double)(c < 0 ? right.l : right.u[c]);
            const double of[3] = {(double)(c < 0 ? x.l : x.u[c]), (double)(c < 0 ? y.l : y.u[c]),
                                  (double)(c < 0 ? z.l : z.u[c])};
            ck_assert_msg(fabs(a - b) <= 2 * allowed(m, of, (double)left.m),
                          "column %d: %a and %a, turn %lld: SEED=%llu build/tests/check_row", c, a,
                          b, (long long)k, (unsigned long long)seed);
        }
    }
}
END_TEST

START_TEST(pushing_a_key_is_a_tile_of_one_key)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 4);
    for (int64_t k = 0; k < TIMES; k++) {
        struct state x = painted(&r, strange), y = x, t;
        at_real s = strange(&r), v[Dv];
        bool kept = !paint_one_in(&r, 5);
        for (int c = 0; c < Dv; c++)
            v[c] = strange(&r);
        struct at_row push = row_of(&x), row = row_of(&y), tile = row_of(&t);
        at_row_push(&push, s, kept ? v : NULL, Dv);
        at_row_clear(&tile, at_larger(row.m, s) + 0, Dv);
        at_row_add(&tile, s, kept ? v : NULL, Dv);
        at_row_take(&row, &tile, Dv);
        keep(&x, &push);
        keep(&y, &row);
        same(x, y, seed, k);
    }
}
END_TEST

START_TEST(a_sink_is_a_key_of_value_zero_merged_last)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 5);
    for (int64_t k = 0; k < TIMES; k++) {
        struct state x = painted(&r, strange), y = x;
        at_real s = strange(&r), zero[1][Dv] = {{0}};
        struct at_row row = row_of(&x);
        at_row_sink(&row, s, Dv);
        keep(&x, &row);
        y = s == none ? y : merged(y, met(1, &s, (const at_real(*)[Dv])zero, 1));
        if (isnan(x.l) && isnan(y.l)) /* whatever m and u then are, out and lse are NaN */
            continue;
        same(x, y, seed, k);
    }
}
END_TEST

START_TEST(a_sink_of_minus_infinity_is_absent)
{
    struct state x = empty(), y = {3, 1, {1, 2, 3, 4, 5}}, z = y;
    struct at_row row = row_of(&x), other = row_of(&y);
    at_row_sink(&row, none, Dv);
    at_row_sink(&other, none, Dv);
    keep(&x, &row);
    keep(&y, &other);
    same(x, empty(), 0, 0);
    same(y, z, 0, 0);
}
END_TEST

/* -- The two "+ 0" ----------------------------------------------------------------------------- */

START_TEST(a_maximum_of_minus_zero_becomes_zero)
{
    at_real v[1][Dv] = {{1, 1, 1, 1, 1}}, s = -(at_real)0;
    struct state x = {-(at_real)0, 1, {1, 1, 1, 1, 1}}, y = {-(at_real)0, 1, {0}};
    struct at_row row = row_of(&x), other = row_of(&y);
    at_row_push(&row, s, v[0], Dv);
    at_row_sink(&other, s, Dv);
    ck_assert(row.m == 0 && !signbit(row.m) && other.m == 0 && !signbit(other.m));
    struct state first = empty();
    struct at_row start = row_of(&first);
    at_row_push(&start, s, v[0], Dv);
    ck_assert(!signbit(start.m));
    first = empty(), start = row_of(&first);
    at_row_sink(&start, s, Dv);
    ck_assert(!signbit(start.m));
    struct state lone = {-(at_real)0, 1, {0}}, pair = merged(lone, lone);
    ck_assert(!signbit(pair.m));
}
END_TEST

START_TEST(two_terms_that_underflow_to_minus_zero_leave_zero)
{
    /* u holds a small negative number; the new key lies far above it and its value is -0. */
    at_real little = -(at_real)0x1p-40;
    struct state x = {low - 60, 1, {little, little, little, little, little}}, t;
    struct at_row row = row_of(&x), tile = row_of(&t);
    at_row_clear(&tile, 0, Dv);
    for (int c = 0; c < Dv; c++)
        tile.u[c] = -(at_real)0; /* as a vector engine's tile may be */
    tile.l = 1;
    at_row_take(&row, &tile, Dv);
    for (int c = 0; c < Dv; c++)
        ck_assert_msg(row.u[c] == 0 && !signbit(row.u[c]), "u[%d] = %a", c, (double)row.u[c]);
    ck_assert(!signbit(at_take(0, little, -(at_real)0)));
    ck_assert(!signbit(at_out(-(at_real)0, 1, 1)));
}
END_TEST

/* -- Rows without keys, lanes that have seen nothing, finish ----------------------------------- */

START_TEST(a_row_that_has_seen_nothing_passes_an_empty_tile)
{
    struct state x = empty(), t = empty();
    struct at_row row = row_of(&x), tile = row_of(&t);
    at_row_take(&row, &tile, Dv);
    keep(&x, &row);
    same(x, empty(), 0, 0);
}
END_TEST

START_TEST(a_score_of_nan_or_infinity_makes_the_row_nan)
{
    const at_real bad[3] = {(at_real)NAN, (at_real)INFINITY, none};
    const at_real v[Dv] = {1, 2, 3, 4, 5};
    for (int k = 0; k < 3; k++) {
        struct state x = empty();
        struct at_row row = row_of(&x);
        at_row_push(&row, bad[k], v, Dv);
        ck_assert(isnan(row.l) && isnan(row.u[0]));
        ck_assert(isnan(at_out(row.u[0], row.l, 1)) && isnan(at_lse(row.m, row.l)));
        at_row_push(&row, 1, v, Dv); /* and stays so */
        ck_assert(isnan(row.l) && isnan(row.u[0]));
    }
}
END_TEST

START_TEST(a_finished_nan_is_the_canonical_one)
{
    at_real quiet = (at_real)NAN, x = at_out(-quiet, 1, 1), y = at_lse(1, -quiet);
    ck_assert(memcmp(&x, &quiet, sizeof x) == 0 && memcmp(&y, &quiet, sizeof y) == 0);
}
END_TEST

START_TEST(an_empty_state_finishes_as_zero_whatever_its_sums_hold)
{
    ck_assert(at_out((at_real)NAN, 0, 1) == 0 && !signbit(at_out(-1, 0, 1)));
    ck_assert(at_lse(none, 0) == none);
}
END_TEST

START_TEST(one_key_gives_its_value_back_to_the_bit)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 6);
    for (int64_t k = 0; k < TIMES; k++) {
        at_real s = paint(&r), v[1][Dv];
        for (int c = 0; c < Dv; c++)
            v[0][c] = paint(&r);
        struct state x = met(1, &s, (const at_real(*)[Dv])v, 1);
        for (int c = 0; c < Dv; c++) {
            at_real out = at_out(x.u[c], x.l, 1), zero = v[0][c] + 0;
            ck_assert_msg(memcmp(&out, &zero, sizeof out) == 0, "%a, SEED=%llu", (double)out,
                          (unsigned long long)seed);
        }
        ck_assert(at_lse(x.m, x.l) == s);
    }
}
END_TEST

TCase *AT_NAME(row_cases)(void)
{
    TCase *t = tcase_create(AT_BITS == 32 ? "fp32" : "fp64");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, merging_with_empty_changes_nothing);
    tcase_add_test(t, two_empty_states_merge_into_an_empty_one);
    tcase_add_test(t, merging_is_commutative_to_the_bit);
    tcase_add_test(t, merging_is_associative_within_the_bound);
    tcase_add_test(t, pushing_a_key_is_a_tile_of_one_key);
    tcase_add_test(t, a_sink_is_a_key_of_value_zero_merged_last);
    tcase_add_test(t, a_sink_of_minus_infinity_is_absent);
    tcase_add_test(t, a_maximum_of_minus_zero_becomes_zero);
    tcase_add_test(t, two_terms_that_underflow_to_minus_zero_leave_zero);
    tcase_add_test(t, a_row_that_has_seen_nothing_passes_an_empty_tile);
    tcase_add_test(t, a_score_of_nan_or_infinity_makes_the_row_nan);
    tcase_add_test(t, a_finished_nan_is_the_canonical_one);
    tcase_add_test(t, an_empty_state_finishes_as_zero_whatever_its_sums_hold);
    tcase_add_test(t, one_key_gives_its_value_back_to_the_bit);
    return t;
}

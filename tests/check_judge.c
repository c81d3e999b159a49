/* The judge around truth and bound: which rows, where failures lie, what published rules say, what
 * a base-2 lse is allowed. SPDX-License-Identifier: MIT */
#include "case_help.h"

/* -- Rows ------------------------------------------------------------------------------------ */

/* Nothing but extents: rows are chosen from the descriptor alone. */
static struct at_attention sized(int64_t B, int64_t H, int64_t Sq, int64_t Skv)
{
    static char nothing[8];
    struct at_view q = at_bhsd(nothing, AT_F32, B, H, Sq, 4),
                   k = at_bhsd(nothing, AT_F32, B, 1, Skv, 4);
    return at_plain(q, k, k, 1);
}

static bool holds(struct at_rows rows, int64_t b, int64_t h, int64_t i)
{
    for (int64_t t = 0; t < rows.n; t++)
        if (rows.at[t].b == b && rows.at[t].h == h && rows.at[t].i == i)
            return true;
    return false;
}

static struct at_rows choose(const struct at_attention *a, int64_t want, uint64_t seed)
{
    struct at_rows rows;
    ck_assert(at_rows_choose(a, want, seed, &rows));
    return rows;
}

START_TEST(as_many_rows_as_asked_are_chosen_each_once_in_stored_order)
{
    struct at_attention a = sized(2, 3, 37, 50);
    for (int64_t want = 1; want < 222; want += 17) {
        struct at_rows rows = choose(&a, want, 5);
        ck_assert_int_eq(rows.n, want);
        for (int64_t t = 1; t < want; t++) {
            struct at_place p = rows.at[t - 1], q = rows.at[t];
            ck_assert_int_lt((p.b * 3 + p.h) * 37 + p.i, (q.b * 3 + q.h) * 37 + q.i);
        }
        free((void *)(uintptr_t)rows.at);
    }
    ck_assert_ptr_null(choose(&a, 222, 5).at);
    ck_assert_ptr_null(choose(&a, -1, 5).at);
    ck_assert_int_eq(choose(&a, -1, 5).n, 222);
}
END_TEST

START_TEST(every_head_has_its_last_row_then_its_first)
{
    struct at_attention a = sized(2, 3, 500, 500);
    struct at_rows few = choose(&a, 6, 1), more = choose(&a, 12, 1);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 3; h++) {
            ck_assert(holds(few, b, h, 499));
            ck_assert(holds(more, b, h, 499) && holds(more, b, h, 0));
        }
}
END_TEST

START_TEST(borders_come_before_the_rest)
{
    struct at_attention a = sized(1, 1, 64, 64);
    struct at_rows rows = choose(&a, 12, 1);
    static const int64_t border[] = {0, 1, 15, 16, 31, 32, 47, 48, 62, 63};
    for (size_t k = 0; k < sizeof border / sizeof *border; k++)
        ck_assert_msg(holds(rows, 0, 0, border[k]), "row %d", (int)border[k]);
}
END_TEST

START_TEST(the_ends_of_lengths_and_diagonals_are_borders)
{
    int64_t q_len[1] = {40}, offset[1] = {-5};
    struct at_attention a = sized(1, 1, 64, 20);
    a.score.q_len = q_len;
    a.score.offset = offset;
    a.score.right = 0;
    struct at_rows rows = choose(&a, 20, 1);
    static const int64_t border[] = {0, 4, 5, 6, 23, 24, 25, 39, 40}; /* 5: first key; 24: last */
    for (size_t k = 0; k < sizeof border / sizeof *border; k++)
        ck_assert_msg(holds(rows, 0, 0, border[k]), "row %d", (int)border[k]);
}
END_TEST

START_TEST(the_seed_decides_and_nothing_else)
{
    struct at_attention a = sized(2, 2, 300, 300);
    struct at_rows one = choose(&a, 200, 7), two = choose(&a, 200, 7), other = choose(&a, 200, 8);
    ck_assert_mem_eq(one.at, two.at, 200 * sizeof *one.at);
    ck_assert_mem_ne(one.at, other.at, 200 * sizeof *one.at);
}
END_TEST

START_TEST(packed_rows_are_numbered_by_their_sequence)
{
    int64_t start[2] = {0, 9}, len[2] = {9, 20};
    struct at_attention a = sized(1, 2, 30, 30);
    a.score.q_start = start, a.score.q_len = len;
    a.score.kv_start = start, a.score.kv_len = len;
    a.score.sequences = 2;
    struct at_rows rows = choose(&a, 8, 1);
    for (int64_t h = 0; h < 2; h++)
        ck_assert(holds(rows, 0, h, 0) && holds(rows, 0, h, 8) && holds(rows, 1, h, 0) &&
                  holds(rows, 1, h, 19));
    rows = choose(&a, 59, 1);
    ck_assert(holds(rows, -1, 0, 29) || holds(rows, -1, 1, 29));
}
END_TEST

START_TEST(all_rows_are_judged_up_to_the_budget)
{
    struct at_attention small = sized(1, 3, 512, 512), large = sized(8, 16, 4096, 4096);
    ck_assert_int_eq(at_rows_default(&small), 3 * 512);
    int64_t n = at_rows_default(&large), all = 8 * 16 * 4096;
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, all);
    ck_assert_int_le(at_rows_cost(&large) / all * n, AT_ROWS_BUDGET);
}
END_TEST

/* -- Where ----------------------------------------------------------------------------------- */

/* Ratios of 1 head pair set per test: 0.5 everywhere, 2 where fails(h, i, c). */
static struct at_where painted_where(bool (*fails)(int64_t h, int64_t i, int64_t c))
{
    struct at_attention a = sized(1, 4, 512, 512);
    struct at_rows all = {4 * 512, NULL};
    double *ratios = malloc(4 * 512 * 5 * sizeof *ratios);
    struct at_where w;
    for (int64_t t = 0; t < all.n; t++) {
        for (int64_t c = 0; c < 4; c++)
            ratios[t * 4 + c] = fails(t / 512, t % 512, c) ? 2 : 0.5;
        ratios[4 * all.n + t] = 0;
    }
    ck_assert(at_where(&a, all, ratios, &w));
    free(ratios);
    return w;
}

static bool half_tiles(int64_t h, int64_t i, int64_t c)
{
    return (h == 1 || h == 3) && i % 128 >= 64 && c >= 2;
}

static bool one_row(int64_t h, int64_t i, int64_t c) { return h == 2 && i == 77 && c == 0; }
static bool from_a_row_on(int64_t h, int64_t i, int64_t c) { return h >= 0 && i >= 300 && c >= 0; }
static bool nowhere(int64_t h, int64_t i, int64_t c) { return h + i + c < 0; }
static bool every_16th(int64_t h, int64_t i, int64_t c) { return h == 0 && i % 16 == 3 && c == 1; }

static bool three_rows(int64_t h, int64_t i, int64_t c)
{
    return h == 0 && c == 0 && (i == 10 || i == 138 || i == 266);
}

START_TEST(the_period_of_failing_rows_is_found)
{
    struct at_where w = painted_where(half_tiles);
    ck_assert_int_eq(w.row.period, 128);
    ck_assert_int_eq(w.row.lo, 64);
    ck_assert_int_eq(w.row.hi, 127);
    ck_assert_int_eq(w.row.failed, 512);
    ck_assert_int_eq(w.row.judged, 512);
    ck_assert_int_eq((int64_t)w.heads, 1 << 1 | 1 << 3);
    ck_assert_int_eq(w.pairs, 2);
    ck_assert_int_eq(w.pairs_judged, 4);
    ck_assert_int_eq(w.c[0], 2);
    ck_assert_int_eq(w.c[1], 3);
    ck_assert_int_eq(w.out, 2 * 256 * 2);
    ck_assert_int_eq(w.rows, 512);
    w = painted_where(every_16th);
    ck_assert_int_eq(w.row.period, 16);
    ck_assert_int_eq(w.row.lo, 3);
    ck_assert_int_eq(w.row.hi, 3);
}
END_TEST

START_TEST(no_period_is_told_where_there_is_none)
{
    struct at_where w = painted_where(one_row);
    ck_assert_int_eq(w.row.period, 0);
    ck_assert_int_eq(w.i[0], 77);
    ck_assert_int_eq(w.i[1], 77);
    ck_assert_int_eq(w.h[0], 2);
    ck_assert_int_eq(painted_where(from_a_row_on).row.period, 0);
    ck_assert_int_eq(painted_where(three_rows).row.period, 0); /* too few to tell */
    w = painted_where(nowhere);
    ck_assert_int_eq(w.out + w.lse + w.rows + w.row.period, 0);
    ck_assert_int_lt(w.i[1], w.i[0]);
}
END_TEST

START_TEST(ratios_are_counted_by_powers_of_two_and_none_is_lost)
{
    struct at_attention a = sized(1, 1, 2, 2);
    struct at_where w;
    double ratios[10] = {0, 0.5, 0.51, 1, 1.01, INFINITY, NAN, 1e300, 1e-300, 1};
    ck_assert(at_where(&a, (struct at_rows){2, NULL}, ratios, &w));
    int at = 1 - AT_BUCKET_BASE; /* of (1/2, 1] */
    ck_assert_int_eq(w.histogram[0], 1);
    ck_assert_int_eq(w.histogram[at - 1], 1);
    ck_assert_int_eq(w.histogram[at], 3);
    ck_assert_int_eq(w.histogram[at + 1], 1);
    ck_assert_int_eq(w.histogram[1], 1);
    ck_assert_int_eq(w.histogram[AT_BUCKETS - 1], 1);
    ck_assert_int_eq(w.infinite, 2);
    ck_assert_int_eq(w.out, 4); /* 1.01, infinity, NaN, 1e300 */
}
END_TEST

/* -- Published rules and bits ----------------------------------------------------------------- */

START_TEST(published_rules_hold_got_against_the_rounded_truth)
{
    float got[4] = {1, 1 + 0x1p-16f, NAN, 0};
    double truth[4] = {1, 1, 1, 0};
    struct at_attention a = sized(1, 1, 1, 1);
    struct at_view out = at_bhsd(got, AT_F32, 1, 1, 1, 4);
    struct at_answer answer = {.n = 1, .Dv = 4, .out = truth};
    struct at_rule rule[AT_RULES];
    at_rules(&a, &out, (struct at_rows){1, NULL}, &answer, rule);
    ck_assert_int_eq(rule[0].judged, 4);
    ck_assert_int_eq(rule[0].beyond, 2); /* 2^-16 and NaN */
    ck_assert_int_eq(rule[1].beyond, 2);
    got[1] = 1 + 0x1p-17f;
    at_rules(&a, &out, (struct at_rows){1, NULL}, &answer, rule);
    ck_assert_int_eq(rule[0].beyond, 1);
}
END_TEST

START_TEST(one_bit_is_a_difference_and_two_nans_are_none)
{
    float one[4] = {1, NAN, 0, 4}, two[4] = {1, -NAN, 0, 4};
    struct at_attention a = sized(1, 1, 1, 1);
    struct at_result p = {.out = at_bhsd(one, AT_F32, 1, 1, 1, 4)};
    struct at_result q = {.out = at_bhsd(two, AT_F32, 1, 1, 1, 4)};
    struct at_place place;
    int64_t column;
    ck_assert(!at_differ(&a, &p, &q, &place, &column));
    two[3] = nextafterf(4, 5);
    ck_assert(at_differ(&a, &p, &q, &place, &column));
    ck_assert_int_eq(column, 3);
    two[2] = -0.0f;
    ck_assert(at_differ(&a, &p, &q, &place, &column));
    ck_assert_int_eq(column, 2);
}
END_TEST

/* -- A base-2 lse ---------------------------------------------------------------------------- */

/* The plain case judged with these base-2 lse in fp32. */
static enum at_outcome judge_base2(struct made *m, struct at_answer *y, struct at_judgement *j)
{
    struct at_rows all = {8, NULL};
    const struct at_arith *fp32 = at_arith_find("fp32");
    at_case_free(&x);
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"lse\":{\"base\":\"base2\"}}"), NULL);
    ck_assert(at_judge_bound(&x.a, all, fp32, y, &said));
    ck_assert_msg(at_judge(&x.a, &x.result[0], all, fp32, 0, y, j, &said), "%s", said.text);
    return j->outcome;
}

/* A kernel whose lse before its last rounding lies anywhere within the bound rounds it in base
 * 2. */
START_TEST(a_base_2_lse_within_the_bound_passes_and_one_further_off_fails)
{
    struct made *m = made_plain();
    struct at_answer y;
    struct at_judgement j;
    must_read(made_file(m, "x", META), NULL);
    ck_assert_int_eq(at_answer_make(&y, 8, 2), AT_OK);
    ck_assert_int_eq(at_truth(&x.a, (struct at_rows){8, NULL}, &y), AT_OK);
    float *out = made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    float *lse = made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    for (int k = 0; k < 16; k++)
        out[k] = (float)y.out[k];
    ck_assert(at_judge_bound(&x.a, (struct at_rows){8, NULL}, at_arith_find("fp32"), &y, &said));
    for (int side = -8; side <= 8; side++) {
        for (int k = 0; k < 8; k++)
            lse[k] = (float)((y.lse[k] + side / 8.0 * y.lse_bound[k]) / log(2));
        ck_assert_msg(judge_base2(m, &y, &j) == AT_PASS, "side %d ratio %g", side, j.v.ratio);
    }
    for (int k = 0; k < 8; k++)
        lse[k] *= 1 + 0x1p-17f;
    ck_assert_int_eq(judge_base2(m, &y, &j), AT_FAIL);
    ck_assert_int_gt(j.where.lse, 0);
    at_answer_free(&y);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("judge");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, as_many_rows_as_asked_are_chosen_each_once_in_stored_order);
    tcase_add_test(t, every_head_has_its_last_row_then_its_first);
    tcase_add_test(t, borders_come_before_the_rest);
    tcase_add_test(t, the_ends_of_lengths_and_diagonals_are_borders);
    tcase_add_test(t, the_seed_decides_and_nothing_else);
    tcase_add_test(t, packed_rows_are_numbered_by_their_sequence);
    tcase_add_test(t, all_rows_are_judged_up_to_the_budget);
    tcase_add_test(t, the_period_of_failing_rows_is_found);
    tcase_add_test(t, no_period_is_told_where_there_is_none);
    tcase_add_test(t, ratios_are_counted_by_powers_of_two_and_none_is_lost);
    tcase_add_test(t, published_rules_hold_got_against_the_rounded_truth);
    tcase_add_test(t, one_bit_is_a_difference_and_two_nans_are_none);
    tcase_add_test(t, a_base_2_lse_within_the_bound_passes_and_one_further_off_fails);
    return run_suite("judge", t) != 0;
}

/* Suite index: who sees whom, against pictures drawn here and against the second predicate of
 * problem.c; where elements lie, against 128-bit arithmetic. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "paint.h"
#include "ref.h"
#include <math.h>

enum { TIMES = 3000 };
static const int64_t all = AT_UNBOUNDED;

/* -- Pictures: a row of text for each query row, '#' where it sees the key --------------------- */

struct drawing {
    const char *name;
    int64_t left, right, offset, q_len, kv_len; /* lengths: -1 absent */
    const char *mask;                           /* drawn alike, or NULL */
    const char *picture;
};

static const struct drawing drawings[] = {
    {"all", all, all, 0, -1, -1, NULL, "#### #### ####"},
    {"26 causal, top-left corner", all, 0, 0, -1, -1, NULL, "#.... ##..."},
    {"26 causal, bottom-right corner", all, 0, 3, -1, -1, NULL, "####. #####"},
    {"27 one query, top-left", all, 0, 0, -1, -1, NULL, "#..."},
    {"27 one query, bottom-right", all, 0, 3, -1, -1, NULL, "####"},
    {"6 more queries than keys, bottom-right", all, 0, -5, -1, -1, NULL,
     ".... .... .... .... .... #... ##.. ###. ####"},
    {"6 more queries than keys, top-left", all, 0, 0, -1, -1, NULL,
     "#... ##.. ###. #### #### #### #### #### ####"},
    {"28 three keys cached, offset 1", all, 0, 1, -1, 3, NULL, "##...... ###....."},
    {"28 eight keys cached, offset 6", all, 0, 6, -1, 8, NULL, "#######. ########"},
    {"28 fewer keys than queries, offset -1", all, 0, -1, -1, 1, NULL, "........ #......."},
    {"29 window of 2 that counts itself", 1, 0, 0, -1, -1, NULL,
     "#..... ##.... .##... ..##.. ...##. ....##"},
    {"29 left bound 2, inclusive", 2, 0, 0, -1, -1, NULL,
     "#..... ##.... ###... .###.. ..###. ...###"},
    {"30 right bound 2, inclusive", 0, 2, 0, -1, -1, NULL,
     "###... .###.. ..###. ...### ....## .....#"},
    {"32 window (0,0) is the key itself", 0, 0, 0, -1, -1, NULL, "#.. .#. ..#"},
    {"32 left 0 alone looks ahead", 0, all, 0, -1, -1, NULL, "### .## ..#"},
    {"33 window, causal and padding together", 2, 0, 0, -1, -1, "#.## #.## #.## #.##",
     "#... #... #.#. ..##"},
    {"4 masks whose intersection is empty", all, 0, 0, -1, -1, ".## .##", "... .#."},
    {"lengths", all, all, 0, 2, 3, NULL, "###.. ###.. ....."},
    {"no key", all, all, 0, -1, 0, NULL, "... ..."},
    {"no row", all, all, 0, 0, -1, NULL, "... ..."},
    {"window left of the keys", 1, 0, -4, -1, -1, NULL, ".... .... .... .... #..."},
    {"window right of the keys", 1, all, 9, -1, -1, NULL, "... ..."},
    {"window beyond a short cache", 1, 1, 3, -1, 4, NULL, "..##.... ...#.... ........"},
    {"a band off the diagonal", 0, 1, 2, -1, -1, NULL, "..##. ...## ....#"},
    {"a mask alone", all, all, 0, -1, -1, "#..# .... ####", "#..# .... ####"}};
enum { DRAWINGS = sizeof drawings / sizeof *drawings };

/* One head of one column; x is never read. */
static struct at_attention plain(float *x, int64_t B, int64_t Sq, int64_t Skv)
{
    return at_plain(at_bhsd(x, AT_F32, B, 1, Sq, 1), at_bhsd(x, AT_F32, B, 1, Skv, 1),
                    at_bhsd(x, AT_F32, B, 1, Skv, 1), 1);
}

/* Lines of a picture, and their width. */
static void measure(const char *picture, int64_t *rows, int64_t *width)
{
    const char *space = strchr(picture, ' ');
    *width = space ? space - picture : (int64_t)strlen(picture);
    *rows = ((int64_t)strlen(picture) + 1) / (*width + 1);
}

START_TEST(visibility_is_as_drawn)
{
    const struct drawing *d = &drawings[_i];
    int64_t Sq, Skv, width, height;
    float x[64] = {0};
    uint8_t mask[64];
    measure(d->picture, &Sq, &Skv);
    struct at_attention a = plain(x, 1, Sq, Skv);
    a.score.left = d->left, a.score.right = d->right;
    a.score.offset = &d->offset;
    a.score.q_len = d->q_len < 0 ? NULL : &d->q_len;
    a.score.kv_len = d->kv_len < 0 ? NULL : &d->kv_len;
    if (d->mask) {
        measure(d->mask, &height, &width);
        ck_assert(height == Sq && width == Skv);
        for (int64_t k = 0; k < Sq * Skv; k++)
            mask[k] = d->mask[k + k / Skv] == '#';
        a.score.mask = at_bhsd(mask, AT_U8, 1, 1, Sq, Skv);
    }
    ck_assert_int_eq(at_validate(&a, NULL), AT_OK);
    struct at_sizes z = at_sizes(&a);
    struct problem p = {.a = a, .B = 1, .Hq = 1, .Hkv = 1, .Sq = Sq, .Skv = Skv};
    for (int64_t i = 0; i < Sq; i++) {
        struct at_span keys = at_keys(&a, &z, 0, i);
        for (int64_t j = 0; j < Skv; j++) {
            bool drawn = d->picture[i * (Skv + 1) + j] == '#';
            bool sees = j >= keys.lo && j < keys.hi && at_shown(&a, 0, 0, i, j);
            ck_assert_msg(sees == drawn, "%s: row %lld, key %lld", d->name, (long long)i,
                          (long long)j);
            ck_assert_msg(problem_sees(&p, 0, 0, i, j) == drawn, "%s: problem_sees", d->name);
        }
    }
}
END_TEST

/* Idea 31: max(0, i + Skv - Sq - W + 1) <= j <= i + Skv - Sq. */
START_TEST(a_window_and_the_causal_rule_bound_from_both_sides)
{
    const int64_t shape[][3] = {
        {1, 800, 200}, {1, 200, 400}, {200, 200, 496}, {3, 5, 2}, {4, 2, 1}};
    float x[1] = {0};
    for (size_t t = 0; t < sizeof shape / sizeof *shape; t++) {
        int64_t Sq = shape[t][0], Skv = shape[t][1], W = shape[t][2], offset = Skv - Sq;
        struct at_attention a = plain(x, 1, Sq, Skv);
        a.score.left = W - 1, a.score.right = 0, a.score.offset = &offset;
        struct at_sizes z = at_sizes(&a);
        for (int64_t i = 0; i < Sq; i++) {
            struct at_span keys = at_keys(&a, &z, 0, i);
            for (int64_t j = 0; j < Skv; j++) {
                int64_t first = i + Skv - Sq - W + 1 > 0 ? i + Skv - Sq - W + 1 : 0;
                ck_assert((j >= keys.lo && j < keys.hi) == (first <= j && j <= i + Skv - Sq));
            }
            if (t == 0)
                ck_assert(keys.lo == 600 && keys.hi == 800);
        }
    }
}
END_TEST

START_TEST(bounds_at_the_ends_of_int64_do_not_overflow)
{
    float x[1] = {0};
    int64_t far = (int64_t)1 << 48, offset[] = {far, -far};
    struct at_attention a = plain(x, 2, 3, 5);
    a.score.left = INT64_MAX, a.score.right = INT64_MAX, a.score.offset = offset;
    ck_assert_int_eq(at_validate(&a, NULL), AT_OK);
    struct at_sizes z = at_sizes(&a);
    for (int64_t b = 0; b < 2; b++)
        ck_assert(at_keys(&a, &z, b, 1).lo == 0 && at_keys(&a, &z, b, 1).hi == 5);
    a.score.left = 0;
    ck_assert(at_keys(&a, &z, 0, 0).lo >= at_keys(&a, &z, 0, 0).hi); /* far to the right */
    a.score.left = all, a.score.right = 0;
    ck_assert(at_keys(&a, &z, 0, 0).hi == 5);
    ck_assert(at_keys(&a, &z, 1, 0).lo >= at_keys(&a, &z, 1, 0).hi); /* far to the left */
}
END_TEST

START_TEST(a_bias_of_minus_infinity_hides_in_every_dtype_that_has_one)
{
    const enum at_dtype dtype[] = {AT_F64, AT_F32, AT_F16, AT_BF16, AT_F8_E5M2, AT_F8_E4M3};
    const double value[] = {-(double)INFINITY, (double)INFINITY, -448, 0, (double)NAN};
    unsigned char memory[64];
    for (int t = 0; t < 6; t++) {
        struct at_view bias = at_bhsd(memory, dtype[t], 1, 1, 1, 5);
        struct at_attention a = {.score = {.bias = bias}};
        for (int j = 0; j < 5; j++)
            paint_put(&bias, j, value[j]);
        for (int j = 0; j < 5; j++)
            ck_assert(at_shown(&a, 0, 0, 0, j) == !(j == 0 && dtype[t] != AT_F8_E4M3));
    }
}
END_TEST

START_TEST(painted_problems_are_seen_alike_by_both_predicates)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = 0; t < TIMES; t++) {
        struct problem p;
        paint_problem(&p, seed + t, (struct paint_options){0});
        struct at_sizes z = at_sizes(&p.a);
        ck_assert(z.B == p.B && z.Sq == p.Sq && z.Skv == p.Skv && z.Dv == p.Dv && z.D == p.D);
        for (int64_t b = 0; b < p.B; b++)
            for (int64_t h = 0; h < p.Hq; h++)
                for (int64_t i = 0; i < problem_rows_of(&p, b); i++) {
                    struct at_span keys = at_keys(&p.a, &z, b, i);
                    for (int64_t j = 0; j < problem_keys_of(&p, b); j++) {
                        bool sees = j >= keys.lo && j < keys.hi && at_shown(&p.a, b, h, i, j);
                        ck_assert_msg(sees == problem_sees(&p, b, h, i, j),
                                      "(%lld,%lld,%lld,%lld) of %s: "
                                      "%s",
                                      (long long)b, (long long)h, (long long)i, (long long)j,
                                      problem_line(&p),
                                      paint_repro(seed + t, p.options, "check_index"));
                    }
                }
        problem_free(&p);
    }
}
END_TEST

/* -- Places ------------------------------------------------------------------------------------ */

START_TEST(offsets_are_formed_in_64_bits)
{
    const int64_t shape[][4] = {{8300, 16, 128, 128},      {1, 1, 70000, 65537},
                                {1, 1, 70000, 73728},      {3, 5, 1 << 20, 1 << 12},
                                {1 << 20, 64, 1 << 10, 3}, {65537, 65537, 65537, 1}};
    char x[1];
    for (size_t t = 0; t < sizeof shape / sizeof *shape; t++) {
        const int64_t *d = shape[t];
        struct at_view v = at_bhsd(x, AT_U8, d[0], d[1], d[2], d[3]);
        struct at_view w = at_bshd(x, AT_U8, d[0], d[2], d[1], d[3]);
        for (int corner = 0; corner < 16; corner++) {
            int64_t at[4];
            for (int k = 0; k < 4; k++)
                at[k] = corner >> k & 1 ? d[k] - 1 : d[k] / 2;
            __int128 b = at[0], h = at[1], s = at[2], c = at[3];
            ck_assert(at_offset(&v, at[0], at[1], at[2], at[3]) ==
                      (int64_t)(((b * d[1] + h) * d[2] + s) * d[3] + c));
            ck_assert(at_offset(&w, at[0], at[1], at[2], at[3]) ==
                      (int64_t)(((b * d[2] + s) * d[1] + h) * d[3] + c));
        }
    }
    struct at_view v = at_bhsd(x, AT_F32, 8300, 16, 128, 128); /* idea 78 */
    ck_assert(at_offset(&v, 8299, 15, 127, 0) == 2175795072);
}
END_TEST

/* Idea 79: the cells around 2^31 and 2^32 of an S x S mask. */
START_TEST(mask_offsets_pass_two_to_the_32)
{
    const int64_t side[] = {65537, 73728};
    char x[1];
    for (int t = 0; t < 2; t++) {
        int64_t S = side[t];
        struct at_view mask = at_bhsd(x, AT_U8, 1, 1, S, S);
        for (int bit = 31; bit <= 32; bit++)
            for (int64_t k = -2; k <= 2; k++) {
                int64_t e = ((int64_t)1 << bit) + k, r = e / S, c = e % S;
                ck_assert(at_offset(&mask, 0, 0, r, c) == e);
            }
    }
    struct at_view mask = at_bhsd(x, AT_U8, 1, 1, 73728, 73728);
    ck_assert(at_offset(&mask, 0, 0, 58254, 16384) == (int64_t)1 << 32);
    mask = at_bhsd(x, AT_U8, 1, 1, 65537, 65537);
    ck_assert(at_offset(&mask, 0, 0, 65535, 1) == (int64_t)1 << 32);
}
END_TEST

START_TEST(layouts_place_elements_as_their_names_say)
{
    char x[1];
    struct at_view v = at_thd(x, AT_U8, 10, 3, 4); /* packed (total,H,D) */
    ck_assert(v.dim[0] == 1 && v.dim[1] == 3 && v.dim[2] == 10 && v.dim[3] == 4);
    ck_assert(at_offset(&v, 0, 2, 7, 1) == (7 * 3 + 2) * 4 + 1);
    v = at_pages_hnd(x, AT_U8, 9, 3, 5, 4);
    ck_assert(v.dim[2] == 5 && at_offset(&v, 8, 2, 4, 3) == ((8 * 3 + 2) * 5 + 4) * 4 + 3);
    v = at_pages_nhd(x, AT_U8, 9, 5, 3, 4);
    ck_assert(v.dim[2] == 5 && at_offset(&v, 8, 2, 4, 3) == ((8 * 5 + 4) * 3 + 2) * 4 + 3);
    v = at_repeated(at_bhsd(x, AT_U8, 1, 3, 1, 7), 2, 3, 5, 7);
    ck_assert(v.dim[0] == 2 && v.dim[2] == 5 && at_offset(&v, 1, 2, 4, 6) == 2 * 7 + 6);
    v = at_repeated(at_bhsd(x, AT_U8, 1, 3, 4, 1), 1, 3, 4, 9);
    ck_assert(at_offset(&v, 0, 2, 3, 8) == 2 * 4 + 3);
}
END_TEST

START_TEST(rows_and_keys_of_painted_problems_lie_where_the_second_reader_finds_them)
{
    const uint64_t seed = paint_seed();
    int64_t paged = 0;
    for (uint64_t t = 0; t < TIMES; t++) {
        struct problem p;
        paint_problem(&p, seed + t, (struct paint_options){0});
        paged += p.a.pages.table != NULL;
        for (int64_t b = 0; b < p.B; b++) {
            for (int64_t g = 0; g < p.Hkv; g++)
                for (int64_t j = 0; j < problem_keys_of(&p, b); j++)
                    if (!p.a.pages.table || j < p.a.score.kv_len[b])
                        ck_assert(at_key_offset(&p.a, &p.a.k, b, g, j) ==
                                  problem_key(&p, &p.a.k, b, g, j));
            for (int64_t h = 0; h < p.Hq; h++)
                for (int64_t i = 0; i < problem_rows_of(&p, b); i++)
                    ck_assert(at_row_offset(&p.a, &p.got.out, b, h, i) ==
                              problem_row(&p, &p.got.out, b, h, i));
        }
        problem_free(&p);
    }
    ck_assert(paged > 0);
}
END_TEST

/* Idea 75: ids past 2^16, in a table and in a list. */
START_TEST(pages_beyond_65535_are_found)
{
    char x[1];
    int32_t table[] = {-1, 65539, 3, 69999, -1}, indptr[] = {1, 4};
    struct at_view k = at_bhsd(x, AT_U8, 70000, 1, 1, 1);
    struct at_attention a = {.k = k, .pages = {table + 1, NULL, 3}};
    ck_assert(at_key_offset(&a, &k, 0, 0, 0) == 65539 && at_key_offset(&a, &k, 0, 0, 2) == 69999);
    a.pages = (struct at_pages){table, indptr, 0};
    ck_assert(at_key_offset(&a, &k, 0, 0, 0) == 65539 && at_key_offset(&a, &k, 0, 0, 1) == 3);
}
END_TEST

START_TEST(every_stored_row_has_one_place_and_every_place_its_row)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = 0; t < TIMES / 4; t++) {
        struct problem p;
        paint_problem(&p, seed + t, (struct paint_options){0});
        const struct at_view *q = &p.a.q;
        int64_t n = q->dim[0] * q->dim[1] * q->dim[2], owned = 0, none = 0;
        for (int64_t row = 0; row < n; row++) {
            struct at_place x = at_place_of(&p.a, (struct at_rows){n, NULL}, row);
            int64_t h = row / q->dim[2] % q->dim[1];
            ck_assert(x.h == h && (x.b >= 0 || p.a.score.q_start));
            ck_assert(x.b < 0 || x.i < problem_rows_of(&p, x.b));
            ck_assert(at_row_offset(&p.a, q, x.b, x.h, x.i) ==
                      at_offset(q, row / (q->dim[1] * q->dim[2]), h, row % q->dim[2], 0));
            owned += x.b >= 0, none += x.b < 0;
        }
        int64_t expected = 0;
        for (int64_t b = 0; b < p.B; b++)
            expected += p.Hq * problem_rows_of(&p, b);
        ck_assert(owned == expected && owned + none == n);
        problem_free(&p);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("index");
    TCase *c = tcase_create("index");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, visibility_is_as_drawn, 0, DRAWINGS);
    tcase_add_test(c, a_window_and_the_causal_rule_bound_from_both_sides);
    tcase_add_test(c, bounds_at_the_ends_of_int64_do_not_overflow);
    tcase_add_test(c, a_bias_of_minus_infinity_hides_in_every_dtype_that_has_one);
    tcase_add_test(c, painted_problems_are_seen_alike_by_both_predicates);
    tcase_add_test(c, offsets_are_formed_in_64_bits);
    tcase_add_test(c, mask_offsets_pass_two_to_the_32);
    tcase_add_test(c, layouts_place_elements_as_their_names_say);
    tcase_add_test(c, rows_and_keys_of_painted_problems_lie_where_the_second_reader_finds_them);
    tcase_add_test(c, pages_beyond_65535_are_found);
    tcase_add_test(c, every_stored_row_has_one_place_and_every_place_its_row);
    suite_add_tcase(s, c);
    return paint_run(s);
}

/* The tiled engine: the bits of scalar, and that hidden tiles cost nothing.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "bits.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Same plan, same bits ---------------------------------------------------------------------- */

/* Every build of the engine that this machine runs, over n problems. */
static void compare(uint64_t seed, uint64_t n)
{
    char text[300];
    uint64_t failed = 0;
    for (uint64_t k = 0; k < n && failed < 3; k++)
        for (int64_t e = 0; at_tiled_at(e); e++) {
            if (bits_equal(&at_scalar, at_tiled_at(e), seed + k, BITS_ALL, text))
                continue;
            printf("scalar and %s differ: %s; make build/tests/bits && build/tests/bits 0x%llx 1 "
                   "0x%x\n",
                   at_tiled_at(e)->name, text, (unsigned long long)(seed + k),
                   bits_shrink(&at_scalar, at_tiled_at(e), seed + k));
            failed++;
        }
    ck_assert_uint_eq(failed, 0);
}

START_TEST(every_build_has_the_bits_of_scalar_on_random_problems)
{
    uint64_t n = getenv("LONG") ? 20000 : 1500;
    const char *text = getenv("SEED");
    compare(text ? strtoull(text, NULL, 0) : 0x7117ed, n);
}
END_TEST

/* -- One problem, seen closely ----------------------------------------------------------------- */

enum { S = 150, D = 20, H = 4 };

struct tensors {
    float q[H * S * D], k[S * D], v[S * D], out[H * S * D];
};

static struct at_attention painted(struct tensors *t, uint32_t seed)
{
    for (int i = 0; i < (int)(sizeof *t / sizeof(float)); i++) {
        seed = seed * 1664525u + 1013904223u;
        (&t->q[0])[i] = (float)(int32_t)seed * 0x1p-30f;
    }
    return at_plain(at_bhsd(t->q, AT_F32, 1, H, S, D), at_bhsd(t->k, AT_F32, 1, 1, S, D),
                    at_bhsd(t->v, AT_F32, 1, 1, S, D), 0.3);
}

static struct at_result result(struct tensors *t)
{
    return (struct at_result){.out = at_bhsd(t->out, AT_F32, 1, H, S, D)};
}

START_TEST(threads_and_query_tiles_do_not_change_bits)
{
    static const int threads[] = {1, 2, 3, 7, 16};
    static const int64_t br[] = {1, 5, 16, 33, 64, 1000};
    static struct tensors t, first;
    struct at_attention a = painted(&t, 5);
    struct at_result to = result(&t);
    a.score.right = 3;
    for (int k = 0; k < 30; k++) {
        a.plan.threads = threads[k % 5];
        a.plan.br = br[k % 6];
        ck_assert_int_eq(at_forward(&at_tiled, &a, &to), AT_OK);
        if (k == 0)
            first = t;
        ck_assert_mem_eq(t.out, first.out, sizeof t.out);
    }
}
END_TEST

/* Keys at or past 70 and keys more than 20 back: whatever is there, nothing moves. */
START_TEST(hidden_keys_and_values_are_never_felt)
{
    static struct tensors t, first;
    struct at_attention a = painted(&t, 9);
    struct at_result to = result(&t);
    int64_t keys = 70;
    a.score.kv_len = &keys;
    a.score.left = 20;
    unsigned char mask[S] = {0};
    for (int j = 0; j < S; j++)
        mask[j] = j % 5 != 2;
    a.score.mask = at_repeated(at_bhsd(mask, AT_U8, 1, 1, 1, S), 1, H, S, S);
    for (int64_t lanes = 1; lanes <= 16; lanes *= 16) {
        a.plan.lanes = lanes;
        ck_assert_int_eq(at_forward(&at_tiled, &a, &to), AT_OK);
        first = t;
        for (int j = 0; j < S; j++)
            for (int c = 0; c < D && (j >= keys || j % 5 == 2); c++)
                t.k[j * D + c] = t.v[j * D + c] = c % 2 ? NAN : -INFINITY;
        ck_assert_int_eq(at_forward(&at_tiled, &a, &to), AT_OK);
        ck_assert_mem_eq(t.out, first.out, sizeof t.out);
    }
}
END_TEST

/* Strips by brute force: does some row of these see some key of this tile by the intervals? */
START_TEST(hidden_tiles_are_skipped_and_counted)
{
    static struct tensors t;
    struct at_attention a = painted(&t, 11);
    struct at_result to = result(&t);
    struct at_tally all, half;
    a.plan.br = 64, a.plan.bc = 10, a.plan.threads = 2;
    a.plan = at_resolve(&a);
    ck_assert_int_eq(at_tiled_counted(&a, &to, &all), AT_OK);
    ck_assert_int_eq(all.skipped + all.partial, 0);
    ck_assert_int_eq(all.visited % (S / 10), 0);
    a.score.right = 0; /* causal: about half, one or two tiles of a strip in part */
    ck_assert_int_eq(at_tiled_counted(&a, &to, &half), AT_OK);
    ck_assert_int_eq(half.visited + half.skipped, all.visited);
    ck_assert_int_gt(half.skipped * 100, all.visited * 30);
    ck_assert_int_le(half.partial, 4 * all.visited / (S / 10));
    a.score.left = 0; /* the diagonal alone */
    ck_assert_int_eq(at_tiled_counted(&a, &to, &half), AT_OK);
    ck_assert_int_eq(half.visited, half.partial);
    ck_assert_int_eq(half.visited + half.skipped, all.visited);
    ck_assert_int_le(half.partial, 8 * all.visited / (S / 10));
}
END_TEST

/* Scores of -0 only: the state's m is +0, or a later maximum would depend on the order of zeros. */
START_TEST(a_maximum_of_minus_zero_is_plus_zero)
{
    static struct tensors t;
    static float m[H * S], l[H * S], u[H * S * D];
    struct at_attention a = painted(&t, 13);
    struct at_state x = {at_bhsd(m, AT_F32, 1, H, 2, 1), at_bhsd(l, AT_F32, 1, H, 2, 1),
                         at_bhsd(u, AT_F32, 1, H, 2, D)};
    memset(t.q, 0, sizeof t.q);
    a.q = at_bhsd(t.q, AT_F32, 1, H, 2, D);
    a.score.scale = -1;
    for (int64_t lanes = 1; lanes <= 16; lanes *= 16)
        for (int64_t e = 0; at_tiled_at(e); e++) {
            a.plan = (struct at_plan){.lanes = lanes};
            a.plan = at_resolve(&a);
            ck_assert_int_eq(at_tiled_at(e)->attend_f32(&a, 0, 40, &x), AT_OK);
            for (int k = 0; k < 2 * H; k++)
                ck_assert(m[k] == 0 && !signbit(m[k]) && l[k] == 40);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tiled");
    TCase *tests = tcase_create("tiled");
    tcase_set_timeout(tests, 1800);
    tcase_add_test(tests, every_build_has_the_bits_of_scalar_on_random_problems);
    tcase_add_test(tests, threads_and_query_tiles_do_not_change_bits);
    tcase_add_test(tests, hidden_keys_and_values_are_never_felt);
    tcase_add_test(tests, hidden_tiles_are_skipped_and_counted);
    tcase_add_test(tests, a_maximum_of_minus_zero_is_plus_zero);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* OpenMP's threads do not survive a fork */
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* The CUDA kernels' own source, emulated on this CPU: the scalar engine's bits over random
 * descriptors of the whole specification, and an emulation that catches what it must - every
 * barrier of every kernel left out, a barrier that one thread misses, a wait for a copy left out,
 * an index past its array. The device itself is tests/gpu.sh's. SPDX-License-Identifier: MIT */
#include "gpu.h"
#include "gpu_problem.h"
#include <check.h>

static struct gpu_problem problem;
static char want[BYTES];

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 0) : otherwise;
}

static void quiet(void) { memset(at_emulation(), 0, sizeof *at_emulation()); }

/* -- Bits ------------------------------------------------------------------------------------- */

static void one_has_the_bits(const struct at_engine *e, int64_t seed)
{
    size_t bytes = result_bytes(&problem);
    memset(problem.to.out.data, 0xff, bytes);
    ck_assert_int_eq(at_forward(&at_scalar, &problem.a, &problem.to), AT_OK);
    memcpy(want, problem.to.out.data, bytes);
    memset(problem.to.out.data, 0xff, bytes);
    at_emulation()->few = false;
    enum at_status status = at_forward(e, &problem.a, &problem.to);
    ck_assert_msg(status == AT_OK, "%s, seed %lld: %s: %s (SEED=%lld COUNT=1)", e->name,
                  (long long)seed, at_strstatus(status), at_gpu_note()->trouble, (long long)seed);
    ck_assert_msg(memcmp(want, problem.to.out.data, bytes) == 0,
                  "%s, seed %lld: other bits than scalar (SEED=%lld COUNT=1)", e->name,
                  (long long)seed, (long long)seed);
}

/* most: the largest key tile of the engine; few: at most so many queries, 0: any number. */
static void same_bits(const struct at_engine *e, int64_t first, int64_t n, int64_t most,
                      int64_t few)
{
    for (int64_t seed = first; seed < first + n; seed++)
        if (gpu_problem(&problem, (uint64_t)seed, most, few, true))
            one_has_the_bits(e, seed);
}

/* A causal problem that asks for no more than few.cuh has: the bits, the short descriptor, and
 * `kernel` last. */
static void short_launch(const struct at_engine *e, int64_t Sq, int64_t splits, const char *kernel)
{
    static float q[2 * 40 * 8], kv[100 * 8], out[2][2 * 40 * 8];
    problem.state = 11;
    for (int t = 0; t < 2 * 40 * 8; t++)
        q[t] = (float)number(&problem);
    for (int t = 0; t < 100 * 8; t++)
        kv[t] = (float)number(&problem);
    struct at_view keys = at_bhsd(kv, AT_F32, 1, 1, 100, 8);
    struct at_attention a = at_plain(at_bhsd(q, AT_F32, 1, 2, Sq, 8), keys, keys, 0.2);
    int64_t offset = 100 - Sq;
    a.score.right = 0, a.score.offset = &offset;
    a.plan.bc = 16, a.plan.lanes = 1, a.plan.splits = splits;
    struct at_result to[2] = {{.out = at_bhsd(out[0], AT_F32, 1, 2, Sq, 8)},
                              {.out = at_bhsd(out[1], AT_F32, 1, 2, Sq, 8)}};
    memset(out, 0xff, sizeof out);
    at_emulation()->few = false;
    ck_assert_int_eq(at_forward(&at_scalar, &a, &to[0]), AT_OK);
    ck_assert_int_eq(at_forward(e, &a, &to[1]), AT_OK);
    ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
    ck_assert(at_emulation()->few);
    ck_assert_str_eq(at_gpu_note()->kernel, kernel);
}

START_TEST(short_descriptors_have_the_bits_of_scalar)
{
    quiet();
    short_launch(&at_gpu_emulated, 40, 1, "attend");
    short_launch(&at_gpu_decode_emulated, 3, 1, "decode");
    short_launch(&at_gpu_decode_emulated, 3, 3, "merge");
}
END_TEST

START_TEST(prefill_has_the_bits_of_scalar)
{
    quiet();
    int64_t first = setting("SEED", 1), n = setting("COUNT", setting("LONG", 0) ? 2000 : 60);
    printf("seeds %lld .. %lld\n", (long long)first, (long long)(first + n - 1));
    same_bits(&at_gpu_emulated, first, n, 128, 0);
}
END_TEST

START_TEST(decode_has_the_bits_of_scalar)
{
    quiet();
    int64_t first = setting("SEED", 1), n = setting("COUNT", setting("LONG", 0) ? 2000 : 100);
    same_bits(&at_gpu_decode_emulated, first, n, 64, 5);
}
END_TEST

/* The columns past D are 0 in a tile, and 0 times an infinite descale would be NaN. */
START_TEST(columns_past_the_last_have_no_descale)
{
    quiet();
    same_bits(&at_gpu_emulated, 1956, 1, 128, 0);
    same_bits(&at_gpu_decode_emulated, 1543, 1, 64, 5);
}
END_TEST

START_TEST(the_tile_shapes_of_the_device_have_the_bits_of_scalar)
{
    quiet();
    at_emulation()->device_tiles = true;
    same_bits(&at_gpu_emulated, 5000, 8, 128, 0);
    same_bits(&at_gpu_decode_emulated, 5000, 12, 64, 5);
    quiet();
}
END_TEST

START_TEST(states_of_a_split_have_the_bits_of_scalar)
{
    quiet();
    float q[2 * 5 * 8], kv[2 * 40 * 8], s[2][2 * 5 * 10];
    problem.state = 3;
    for (int t = 0; t < 640; t++)
        kv[t] = (float)number(&problem), q[t % 80] = (float)number(&problem);
    struct at_attention a =
        at_plain(at_bhsd(q, AT_F32, 1, 2, 5, 8), at_bhsd(kv, AT_F32, 1, 2, 40, 8),
                 at_bhsd(kv, AT_F32, 1, 2, 40, 8), 0.5);
    a.plan = at_resolve(&a);
    const struct at_engine *e[3] = {&at_scalar, &at_gpu_emulated, &at_gpu_decode_emulated};
    for (int k = 0; k < 3; k++) {
        float *m = s[k > 0];
        struct at_state x = {at_bhsd(m, AT_F32, 1, 2, 5, 1), at_bhsd(m + 10, AT_F32, 1, 2, 5, 1),
                             at_bhsd(m + 20, AT_F32, 1, 2, 5, 8)};
        memset(m, 0xff, sizeof s[0]);
        ck_assert_int_eq(e[k]->attend_f32(&a, 7, 33, &x), AT_OK);
        ck_assert_mem_eq(s[0], s[k > 0], sizeof s[0]);
    }
}
END_TEST

/* -- Seeded faults ----------------------------------------------------------------------------- */

/* A problem whose kernels meet every barrier: D past a panel, several tiles, several splits. */
static void open_barriers(int64_t splits)
{
    static float q[2 * 40 * 40], kv[100 * 40], out[2 * 40 * 40];
    problem.state = 9;
    for (int t = 0; t < 2 * 40 * 40; t++)
        q[t] = (float)number(&problem);
    for (int t = 0; t < 100 * 40; t++)
        kv[t] = (float)number(&problem);
    int64_t Sq = splits > 1 ? 3 : 40;
    problem.a = at_plain(at_bhsd(q, AT_F32, 1, 2, Sq, 40), at_bhsd(kv, AT_F32, 1, 1, 100, 40),
                         at_bhsd(kv, AT_F32, 1, 1, 100, 40), 0.2);
    problem.a.plan.bc = 16;
    problem.a.plan.lanes = 1;
    problem.a.plan.splits = splits;
    problem.to = (struct at_result){.out = at_bhsd(out, AT_F32, 1, 2, Sq, 40)};
}

/* The engine refuses, and its sentence has the word. */
static void caught(const struct at_engine *e, const char *fault, int line, const char *word)
{
    enum at_status status = at_forward(e, &problem.a, &problem.to);
    ck_assert_msg(status == AT_ERR_UNSUPPORTED && strstr(at_gpu_note()->trouble, word),
                  "%s: %s at line %d is not caught: %s", e->name, fault, line,
                  at_gpu_note()->trouble);
}

static void every_barrier(const struct at_engine *e, int64_t splits, bool lone, const char *word)
{
    quiet();
    open_barriers(splits);
    ck_assert_int_eq(at_forward(e, &problem.a, &problem.to), AT_OK);
    uint64_t lines[8];
    memcpy(lines, at_emulation()->lines, sizeof lines);
    int n = 0;
    for (int line = 0; line < 512; line++)
        if (lines[line / 64] >> (line % 64) & 1) {
            at_emulation()->skip_line = line;
            at_emulation()->skip_lone = lone;
            caught(e, lone ? "a barrier that one thread misses" : "a barrier left out", line, word);
            n++;
        }
    ck_assert_int_ge(n, 4);
    quiet();
}

START_TEST(every_barrier_left_out_is_a_race)
{
    every_barrier(&at_gpu_emulated, 1, false, "");
    every_barrier(&at_gpu_decode_emulated, 3, false, "");
}
END_TEST

START_TEST(every_barrier_that_one_thread_misses_is_caught)
{
    every_barrier(&at_gpu_emulated, 1, true, "");
    every_barrier(&at_gpu_decode_emulated, 3, true, "");
}
END_TEST

START_TEST(a_wait_left_out_is_caught)
{
    quiet();
    at_emulation()->skip_waits = true;
    open_barriers(1);
    caught(&at_gpu_emulated, "a wait left out", 0, "under way");
    open_barriers(3);
    caught(&at_gpu_decode_emulated, "a wait left out", 0, "under way");
    quiet();
}
END_TEST

START_TEST(an_index_past_its_array_is_caught)
{
    quiet();
    at_emulation()->shrink = 5; /* past the padding of a row */
    open_barriers(1);
    caught(&at_gpu_emulated, "a short array", 0, "outside its array");
    open_barriers(3);
    caught(&at_gpu_decode_emulated, "a short array", 0, "outside its array");
    quiet();
}
END_TEST

/* -- Evidence and refusals --------------------------------------------------------------------- */

START_TEST(a_launch_leaves_evidence)
{
    quiet();
    open_barriers(3);
    ck_assert_int_eq(at_forward(&at_gpu_decode_emulated, &problem.a, &problem.to), AT_OK);
    ck_assert_str_eq(at_gpu_note()->kernel, "merge");
    ck_assert_int_eq(at_gpu_note()->launches, 2);
    ck_assert_uint_eq(at_gpu_note()->grid[0], 2 * 3);
    ck_assert_uint_eq(at_gpu_note()->block, 128);
}
END_TEST

START_TEST(what_is_not_served_is_refused_with_a_sentence)
{
    quiet();
    open_barriers(1);
    problem.a.plan.bc = 129;
    caught(&at_gpu_emulated, "a tile of 129 keys", 0, "128 keys");
    problem.a.plan.bc = 65;
    caught(&at_gpu_decode_emulated, "a tile of 65 keys", 0, "64 keys");
    const struct at_engine *device[] = {&at_gpu, &at_gpu_decode, &at_gpu_mma, &at_gpu_wgmma};
    char text[300];
    at_gpu_describe(text, sizeof text);
    for (int k = 0; k < 4 && strncmp(text, "not built", 9) == 0; k++)
        caught(device[k], "no device", 0, "not built");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gpu");
    TCase *t = tcase_create("emulated");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, prefill_has_the_bits_of_scalar);
    tcase_add_test(t, decode_has_the_bits_of_scalar);
    tcase_add_test(t, columns_past_the_last_have_no_descale);
    tcase_add_test(t, the_tile_shapes_of_the_device_have_the_bits_of_scalar);
    tcase_add_test(t, short_descriptors_have_the_bits_of_scalar);
    tcase_add_test(t, states_of_a_split_have_the_bits_of_scalar);
    tcase_add_test(t, every_barrier_left_out_is_a_race);
    tcase_add_test(t, every_barrier_that_one_thread_misses_is_caught);
    tcase_add_test(t, a_wait_left_out_is_caught);
    tcase_add_test(t, an_index_past_its_array_is_caught);
    tcase_add_test(t, a_launch_leaves_evidence);
    tcase_add_test(t, what_is_not_served_is_refused_with_a_sentence);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

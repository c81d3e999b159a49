/* Engine "tiled": the widest of its instruction sets that this machine runs.
 * SPDX-License-Identifier: MIT */
#include "attest.h"

typedef enum at_status at_counted(const struct at_attention *a, const struct at_result *to,
                                  struct at_tally *tally);

extern const struct at_engine at_tiled_base;
at_counted at_counted_base;
#ifdef TILED_X86
extern const struct at_engine at_tiled_v3, at_tiled_v4;
at_counted at_counted_v3, at_counted_v4;

static bool runs_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

struct build {
    const struct at_engine *engine;
    at_counted *counted;
};

/* Build k of those that this machine runs, widest first. */
static struct build build_at(int64_t k)
{
    struct build run[4] = {{NULL, NULL}};
    int64_t n = 0;
#ifdef TILED_X86
    if (runs_v4())
        run[n++] = (struct build){&at_tiled_v4, at_counted_v4};
    if (runs_v3())
        run[n++] = (struct build){&at_tiled_v3, at_counted_v3};
#endif
    run[n++] = (struct build){&at_tiled_base, at_counted_base};
    return run[k >= 0 && k < n ? k : n];
}

const struct at_engine *at_tiled_at(int64_t k) { return build_at(k).engine; }

enum at_status at_tiled_counted(const struct at_attention *a, const struct at_result *to,
                                struct at_tally *tally)
{
    return build_at(0).counted(a, to, tally);
}

static enum at_status attend_f32(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return at_tiled_at(0)->attend_f32(a, j0, j1, x);
}

static enum at_status attend_f64(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return at_tiled_at(0)->attend_f64(a, j0, j1, x);
}

static enum at_status forward(const struct at_attention *a, const struct at_result *to)
{
    return at_tiled_at(0)->forward(a, to);
}

static struct at_arith arith(const struct at_attention *a) { return at_scalar.arith(a); }

static int64_t workspace(const struct at_attention *a) { return at_tiled_at(0)->workspace(a); }

const struct at_engine at_tiled = {.name = "tiled",
                                   .arith = arith,
                                   .attend_f32 = attend_f32,
                                   .attend_f64 = attend_f64,
                                   .forward = forward,
                                   .workspace = workspace};

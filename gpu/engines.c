/* The engines over attention.cu and decode.cu: whole problems finished on the device, or the states
 * of a split. Compiled once for the emulation and, in a build by nvcc, once more with AT_CUDA.
 * SPDX-License-Identifier: MIT */
#include "gpu.h"

#ifdef AT_CUDA
#define ENGINE(name) at_gpu##name
#define NAMED(name) "gpu" name
#define KERNEL(name, bits) at_##name##_cuda_##bits
#else
#define ENGINE(name) at_gpu##name##_emulated
#define NAMED(name) "gpu" name "-emulated"
#define KERNEL(name, bits) at_##name##_emulated_##bits
#endif

static int64_t ceil_log2(int64_t n)
{
    int64_t k = 0;
    while (((int64_t)1 << k) < n)
        k++;
    return k;
}

/* The scalar engine's arithmetic: the same bits under the same plan. */
static struct at_arith tiles(const struct at_attention *a)
{
    struct at_plan p = at_resolve(a);
    int64_t joins = p.merge == AT_TREE ? ceil_log2(p.splits) : p.splits - 1;
    return (struct at_arith){.name = "tiles",
                             .source = "the engine's own plan",
                             .compute = p.compute,
                             .dot = (a->k.dim[3] + p.lanes - 1) / p.lanes + ceil_log2(p.lanes),
                             .tile = p.bc,
                             .joins = joins,
                             .ordered = true};
}

/* -- gpu: attention.cu ------------------------------------------------------------------------- */

static enum at_status prefill_f32(const struct at_attention *a, int64_t j0, int64_t j1,
                                  const struct at_state *x)
{
    return KERNEL(attention, f32)(a, j0, j1, x, NULL, NULL);
}

static enum at_status prefill_f64(const struct at_attention *a, int64_t j0, int64_t j1,
                                  const struct at_state *x)
{
    return KERNEL(attention, f64)(a, j0, j1, x, NULL, NULL);
}

static const struct at_engine prefill_states = {
    .name = NAMED(""), .arith = tiles, .attend_f32 = prefill_f32, .attend_f64 = prefill_f64};

/* Without splits a row is finished where it was computed. */
static enum at_status prefill(const struct at_attention *a, const struct at_result *to)
{
    if (a->plan.splits > 1)
        return at_forward(&prefill_states, a, to);
    at_gpu_run *run = a->plan.compute == AT_F64 ? KERNEL(attention, f64) : KERNEL(attention, f32);
    return run(a, 0, at_split(a, 1), NULL, to, NULL);
}

const struct at_engine ENGINE() = {.name = NAMED(""),
                                   .arith = tiles,
                                   .attend_f32 = prefill_f32,
                                   .attend_f64 = prefill_f64,
                                   .forward = prefill};

/* -- gpu-decode: decode.cu --------------------------------------------------------------------- */

static enum at_status decode_f32(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return KERNEL(decode, f32)(a, j0, j1, x, NULL, NULL);
}

static enum at_status decode_f64(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return KERNEL(decode, f64)(a, j0, j1, x, NULL, NULL);
}

static const struct at_engine decode_states = {
    .name = NAMED("-decode"), .arith = tiles, .attend_f32 = decode_f32, .attend_f64 = decode_f64};

/* The device merges in key order; other orders are at_forward's. */
static enum at_status decode(const struct at_attention *a, const struct at_result *to)
{
    if (a->plan.splits > 1 && (a->plan.merge != AT_IN_ORDER || a->plan.splits > 128))
        return at_forward(&decode_states, a, to);
    at_gpu_run *run = a->plan.compute == AT_F64 ? KERNEL(decode, f64) : KERNEL(decode, f32);
    return run(a, 0, at_split(a, a->plan.splits), NULL, to, NULL);
}

const struct at_engine ENGINE(_decode) = {.name = NAMED("-decode"),
                                          .arith = tiles,
                                          .attend_f32 = decode_f32,
                                          .attend_f64 = decode_f64,
                                          .forward = decode};

/* The tensor-core engines and what they state of their rounding; which device there is. Part of a
 * build by nvcc. SPDX-License-Identifier: MIT */
#include "gpu.h"
#include <cuda_runtime_api.h>
#include <stdio.h>

/* Sums run through the tensor core in groups of `group` products, whose additions it truncates; a
 * score's D products likewise. P is rounded to the inputs' format, l sums the unrounded; the last
 * division is by a reciprocal. */
static struct at_arith tensor(const struct at_attention *a, const char *name, int64_t group)
{
    int64_t D = a->k.dim[3];
    return (struct at_arith){.name = name,
                             .source = "gpu/tensor.cuh",
                             .compute = AT_F32,
                             .weight = a->q.dtype == AT_F16 ? AT_F16 : AT_BF16,
                             .fused = true,
                             .inexact_one = true,
                             .flush = true,
                             .truncates = true,
                             .dead_zero = true,
                             .dot = D + D / group,
                             .tile = group,
                             .joins = 4 + (a->score.sink.data ? 1 : 0),
                             .arguments = 3,
                             .divisions = 2,
                             .exp_ulps = 2};
}

static struct at_arith mma_arith(const struct at_attention *a) { return tensor(a, "mma.sync", 8); }
static struct at_arith wgmma_arith(const struct at_attention *a) { return tensor(a, "wgmma", 16); }

/* These kernels have a plan of their own. */
static enum at_status whole(at_gpu_run *run, const struct at_attention *problem,
                            const struct at_result *to)
{
    struct at_attention a = *problem;
    a.plan.splits = 1;
    a.plan.cut = NULL;
    return run(&a, 0, at_split(&a, 1), NULL, to, NULL);
}

static enum at_status mma(const struct at_attention *a, const struct at_result *to)
{
    return whole(at_mma_cuda, a, to);
}

static enum at_status wgmma(const struct at_attention *a, const struct at_result *to)
{
    return whole(at_wgmma_cuda, a, to);
}

const struct at_engine at_gpu_mma = {.name = "gpu-mma", .arith = mma_arith, .forward = mma};
const struct at_engine at_gpu_wgmma = {.name = "gpu-wgmma", .arith = wgmma_arith, .forward = wgmma};

void at_gpu_describe(char *text, size_t size)
{
    struct cudaDeviceProp x;
    int n = 0, driver = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        snprintf(text, size, "built for " AT_CUDA_ARCHS "; no device: %s",
                 e == cudaSuccess ? "none found" : cudaGetErrorString(e));
        return;
    }
    e = cudaGetDeviceProperties(&x, 0);
    cudaDriverGetVersion(&driver);
    if (e != cudaSuccess)
        snprintf(text, size, "built for " AT_CUDA_ARCHS "; %s", cudaGetErrorString(e));
    else
        snprintf(
            text, size,
            "%s, compute capability %d.%d, %d multiprocessors, CUDA %d.%d (driver %d.%d); built "
            "for " AT_CUDA_ARCHS,
            x.name, x.major, x.minor, x.multiProcessorCount, CUDART_VERSION / 1000,
            CUDART_VERSION / 10 % 100, driver / 1000, driver / 10 % 100);
}

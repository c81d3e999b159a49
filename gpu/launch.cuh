/* A kernel's launch, with its evidence, and the one function that its file offers outside.
 * SPDX-License-Identifier: MIT */
#ifndef LAUNCH_CUH
#define LAUNCH_CUH

#include "device.cuh"
#include "few.cuh"

/* -- Launches ---------------------------------------------------------------------------------- */

/* threads a block, bytes of shared memory a block; after: may start before the launch ahead of it
 * has ended, and waits by itself. An empty grid is no launch. */
template <class A>
static inline enum at_status launch(const A &p, void (*kernel)(const A), const char *name,
                                    int64_t gx, int64_t gy, int64_t gz, unsigned threads, int bytes,
                                    bool after = false)
{
    struct at_gpu_evidence *note = at_gpu_note();
    if (gx == 0 || gy == 0 || gz == 0)
        return AT_OK;
    if (gx > 0x7fffffff || gy > 65535 || gz > 65535)
        return trouble(AT_ERR_UNSUPPORTED, "more blocks than a grid has", name);
    snprintf(note->kernel, sizeof note->kernel, "%s", name);
    note->grid[0] = (unsigned)gx, note->grid[1] = (unsigned)gy, note->grid[2] = (unsigned)gz;
    note->block = threads, note->shared = (unsigned)bytes;
    note->launches++;
    dim3 grid((unsigned)gx, (unsigned)gy, (unsigned)gz);
#ifdef __CUDACC__
    cudaFuncAttributes f;
    enum at_status status = checked(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
    if (status == AT_OK && note->launches <= 2 && cudaFuncGetAttributes(&f, kernel) == cudaSuccess)
        note->registers = f.numRegs;
    cudaLaunchAttribute overlap;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    int device = 0, major = 0; /* before sm_90 a launch waits for the one before */
    if (after && cudaGetDevice(&device) == cudaSuccess)
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaLaunchConfig_t how = {};
    how.gridDim = grid, how.blockDim = dim3(threads), how.dynamicSmemBytes = (size_t)bytes;
    how.attrs = &overlap, how.numAttrs = after && major >= 9 ? 1 : 0;
    if (status == AT_OK)
        status = checked(cudaLaunchKernelEx(&how, kernel, p), name);
    return status;
#else
    (void)after;
    at_emulation()->few = A::FEW;
    if (!emulate::launch(kernel, grid, threads, (size_t)bytes, p))
        return trouble(AT_ERR_UNSUPPORTED, name, emulate::fault_text);
    return AT_OK;
#endif
}

/* -- Outside --------------------------------------------------------------------------------- */

/* What every kernel's file offers outside: at_gpu_run with its way to launch. */
static inline enum at_status run(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x, const struct at_result *to,
                                 struct at_gpu_job **keep,
                                 enum at_status (*go)(struct at_gpu_job *))
{
    struct job *job;
    enum at_status status = job_open(&job, a, {j0, j1}, x, to);
    if (status != AT_OK)
        return status;
    job->go = go;
    job->close = job_close;
    if (!keep)
        return job_close(job, go(job));
    *keep = job;
    return AT_OK;
}

#define JOIN(x, y, z) at_##x##_##y##z
#define JOINED(x, y, z) JOIN(x, y, z)
#ifdef __CUDACC__
#define MACHINE cuda
#else
#define MACHINE emulated
#endif
#define RUN(name, bits, go)                                                                        \
    extern "C" enum at_status JOINED(name, MACHINE, bits)(                                         \
        const struct at_attention *a, int64_t j0, int64_t j1, const struct at_state *x,            \
        const struct at_result *to, struct at_gpu_job **job)                                       \
    {                                                                                              \
        return run(a, j0, j1, x, to, job, go);                                                     \
    }
#if AT_BITS == 32
#define BITS _f32
#else
#define BITS _f64
#endif

#endif

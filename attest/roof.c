/* The roof of a measurement, by the kernels of the engine's own instruction set.
 * SPDX-License-Identifier: MIT */
#include "roof.h"
#include "attest.h"
#include <string.h>
#include <time.h>

#define DECLARE(isa)                                                                               \
    double roof_flops_f32_##isa(int64_t n, float x, float y, float *sink);                         \
    double roof_flops_f64_##isa(int64_t n, double x, double y, double *sink);                      \
    float roof_sum_##isa(const float *x, int64_t n);
#define ENTRY(isa)                                                                                 \
    {                                                                                              \
        "tiled-" #isa, roof_flops_f32_##isa, roof_flops_f64_##isa, roof_sum_##isa                  \
    }

DECLARE(base)
#ifdef TILED_X86
DECLARE(v3)
DECLARE(v4)
#endif

static const struct kernels {
    const char *name;
    double (*f32)(int64_t n, float x, float y, float *sink);
    double (*f64)(int64_t n, double x, double y, double *sink);
    float (*sum)(const float *x, int64_t n);
} kernels[] = {
    ENTRY(base),
#ifdef TILED_X86
    ENTRY(v3),
    ENTRY(v4),
#endif
};

static const struct kernels *kernels_at(int64_t k)
{
    const struct at_engine *e = at_tiled_at(k);
    for (size_t t = 0; e && t < sizeof kernels / sizeof *kernels; t++)
        if (strcmp(kernels[t].name, e->name) == 0)
            return &kernels[t];
    return &kernels[0];
}

static double reads(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct seconds seconds_now(void)
{
    return (struct seconds){reads(CLOCK_MONOTONIC), reads(CLOCK_PROCESS_CPUTIME_ID)};
}

struct seconds seconds_since(struct seconds start)
{
    struct seconds now = seconds_now();
    return (struct seconds){now.wall - start.wall, now.cpu - start.cpu};
}

static double some_flops(const struct kernels *f, bool wide, int64_t n)
{
    volatile double x = 0.999, y = 0.001, end; /* not known when this is compiled */
    float single = 0;
    double twice = 0, flops;
    flops = wide ? f->f64(n, x, y, &twice) : f->f32(n, (float)x, (float)y, &single);
    end = twice + (double)single;
    (void)end;
    return flops;
}

struct seconds roof_fma(double flops, double time, int64_t k, bool wide, int threads)
{
    (void)threads; /* one, without OpenMP */
    const struct kernels *f = kernels_at(k);
    struct seconds start = seconds_now(), took;
    double done = 0;
    (void)some_flops(f, wide, 100000); /* how many make up the time? */
    int64_t n = (int64_t)(100000 * time / seconds_since(start).cpu);
    start = seconds_now();
#pragma omp parallel num_threads(threads) reduction(+ : done)
    done += some_flops(f, wide, n);
    took = seconds_since(start);
    return (struct seconds){flops / done * took.wall, flops / done * took.cpu};
}

struct seconds roof_read(int64_t k, const struct roof_block *block, int64_t n, int threads)
{
    (void)threads;
    enum { PIECE = 1 << 18 };
    const struct kernels *f = kernels_at(k);
    volatile float end;
    float sum = 0;
    struct seconds start = seconds_now();
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    for (int64_t t = 0; t < n; t++)
#pragma omp for schedule(dynamic) nowait
        for (int64_t at = 0; at < block[t].bytes; at += PIECE) {
            int64_t part = block[t].bytes - at < PIECE ? block[t].bytes - at : PIECE;
            sum += f->sum((const float *)((const char *)block[t].data + at), part / 512 * 128);
        }
    end = sum;
    (void)end;
    return seconds_since(start);
}

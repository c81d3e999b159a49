/* The two inner loops of the roof, compiled for each instruction set as tiled/ is.
 * SPDX-License-Identifier: MIT */
#include "at_math.h"

#ifndef TILED_ISA
#define TILED_ISA base
#endif
#define GLUE(name, isa) name##_##isa
#define AS(name, isa) GLUE(name, isa)
#define KERNEL(name) AS(name, TILED_ISA)

/* CHAINS vectors in flight cover the latency of two pipes: 4 cycles each need 8 chains or more; gcc
 * unrolls 16. */
#if defined(__AVX512F__)
enum { BYTES = 64, CHAINS = 16 };
#elif defined(__AVX2__)
enum { BYTES = 32, CHAINS = 12 };
#else
enum { BYTES = 16, CHAINS = 12 };
#endif

double KERNEL(roof_flops_f32)(int64_t n, float x, float y, float *sink);
double KERNEL(roof_flops_f64)(int64_t n, double x, double y, double *sink);
float KERNEL(roof_sum)(const float *x, int64_t n);

double KERNEL(roof_flops_f32)(int64_t n, float x, float y, float *sink)
{
    enum { W = BYTES / sizeof(float) };
    float t[CHAINS][W];
    for (int r = 0; r < CHAINS; r++)
        _Pragma("omp simd") for (int c = 0; c < W; c++) t[r][c] = (float)(r + c);
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < CHAINS; r++)
            _Pragma("omp simd") for (int c = 0; c < W; c++) t[r][c] = fmaf(t[r][c], x, y);
    for (int r = 0; r < CHAINS; r++)
        for (int c = 0; c < W; c++)
            *sink += t[r][c] + 1;
    return 2.0 * CHAINS * W * (double)n;
}

double KERNEL(roof_flops_f64)(int64_t n, double x, double y, double *sink)
{
    enum { W = BYTES / sizeof(double) };
    double t[CHAINS][W];
    for (int r = 0; r < CHAINS; r++)
        _Pragma("omp simd") for (int c = 0; c < W; c++) t[r][c] = r + c;
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < CHAINS; r++)
            _Pragma("omp simd") for (int c = 0; c < W; c++) t[r][c] = fma(t[r][c], x, y);
    for (int r = 0; r < CHAINS; r++)
        for (int c = 0; c < W; c++)
            *sink += t[r][c] + 1;
    return 2.0 * CHAINS * W * (double)n;
}

/* n is a multiple of 128. */
float KERNEL(roof_sum)(const float *x, int64_t n)
{
    enum { W = BYTES / sizeof(float) };
    float t[8][W] = {{0}}, sum = 0;
    for (int64_t k = 0; k < n; k += 8 * W)
        for (int r = 0; r < 8; r++)
            _Pragma("omp simd") for (int c = 0; c < W; c++) t[r][c] += x[k + r * W + c];
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < W; c++)
            sum += t[r][c] + 1;
    return sum;
}

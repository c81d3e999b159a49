/* exp, log, tanh and the conversions that every engine uses, the same text in C and CUDA.
 *
 *     e^x = 2^n e^r,  n = rint(x log2 e),  r = x - n ln2 in two constants,  e^r = 1 + r q(r)
 *     log x = k ln2 + log f,  f in [sqrt(1/2), sqrt 2),  by the series of log((1+s)/(1-s))
 *     tanh x = E/(E+2),  E = e^(2x) - 1 from the same q
 *
 * Errors, measured against MPFR (tests/check_math.c) in units of 2 eps = 1 ulp of 1: exp <= 1 (fp32
 * over every argument in check-long), log <= 1, tanh <= 3. exp is for arguments <= 40; it
 * underflows gradually and e^0 = 1 exactly; log is for arguments >= the smallest normal number. NaN
 * in, NaN out. Needs round to nearest, no contraction, no fast-math.
 * SPDX-License-Identifier: MIT */
#ifndef AT_MATH_H
#define AT_MATH_H

#include "at_index.h"
#include <math.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the bound holds for IEEE arithmetic: compile without -ffast-math"
#endif

/* -- Bits ------------------------------------------------------------------------------------ */

AT_FN uint32_t at_bits32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

AT_FN float at_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

AT_FN uint64_t at_bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

AT_FN double at_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* -- Exponential, 32 bits -------------------------------------------------------------------- */

/* (e^r - 1)/r on |r| <= ln2/2: minimax, degree 6 in e^r, which it gives within 3.7e-9. */
AT_FN float at_q32(float r)
{
    float q = fmaf(0x1.6b654cp-10f, r, 0x1.122f26p-7f);
    q = fmaf(q, r, 0x1.55569p-5f);
    q = fmaf(q, r, 0x1.5554a4p-3f);
    q = fmaf(q, r, 0.5f);
    return fmaf(q, r, 1.0f);
}

/* r, and k = n + shift; n*ln2 is exact inside the fma, and so is the first difference. */
AT_FN float at_reduce32(float x, float shift, float *k)
{
    *k = fmaf(x, 0x1.715476p+0f, shift); /* log2 e */
    float n = *k - shift;
    float r = fmaf(n, -0x1.62e430p-1f, x); /* ln2 = 0x1.62e430p-1 - 0x1.05c610p-29 */
    return fmaf(n, 0x1.05c610p-29f, r);
}

AT_FN float at_exp32(float x)
{
    const float shift = 0x1.8p23f + 191; /* the low bits of k are then n + 64 + 127 */
    float k, r = at_reduce32(x < -104.0f ? -104.0f : x, shift, &k); /* e^-104 < 2^-150 */
    float power = at_float(at_bits32(k) << 23);                     /* 2^(n+64), a normal number */
    return fmaf(at_q32(r), r, 1.0f) * power * 0x1p-64f;             /* rounds once more if tiny */
}

/* -- Exponential, 64 bits -------------------------------------------------------------------- */

/* (e^r - 1)/r by Taylor's series to r^12/13!: the tail is < 2^-57. */
AT_FN double at_q64(double r)
{
    double q = 1.0 / 6227020800;
    q = fma(q, r, 1.0 / 479001600);
    q = fma(q, r, 1.0 / 39916800);
    q = fma(q, r, 1.0 / 3628800);
    q = fma(q, r, 1.0 / 362880);
    q = fma(q, r, 1.0 / 40320);
    q = fma(q, r, 1.0 / 5040);
    q = fma(q, r, 1.0 / 720);
    q = fma(q, r, 1.0 / 120);
    q = fma(q, r, 1.0 / 24);
    q = fma(q, r, 1.0 / 6);
    q = fma(q, r, 0.5);
    return fma(q, r, 1.0);
}

AT_FN double at_reduce64(double x, double shift, double *k)
{
    *k = fma(x, 0x1.71547652b82fep+0, shift);
    double n = *k - shift;
    double r = fma(n, -0x1.62e42fefa39efp-1, x); /* ln2 = 0x1.62e42fefa39efp-1 + ... */
    return fma(n, -0x1.abc9e3b39803fp-56, r);
}

AT_FN double at_exp64(double x)
{
    const double shift = 0x1.8p52 + 1623; /* the low bits of k are then n + 600 + 1023 */
    double k, r = at_reduce64(x < -746.0 ? -746.0 : x, shift, &k); /* e^-746 < 2^-1075 */
    double power = at_double(at_bits64(k) << 52);                  /* 2^(n+600) */
    return fma(at_q64(r), r, 1.0) * power * 0x1p-600;
}

/* -- Hyperbolic tangent ---------------------------------------------------------------------- */

/* E = 2^n (r q) + (2^n - 1) keeps its accuracy near 0, where n = 0. tanh 10 rounds to 1. */
AT_FN float at_tanh32(float x)
{
    const float shift = 0x1.8p23f + 127;
    float k, a = x < 0 ? -x : x, r = at_reduce32(a > 10.0f ? 20.0f : 2 * a, shift, &k);
    float power = at_float(at_bits32(k) << 23); /* 2^n */
    float e = fmaf(at_q32(r) * r, power, power - 1), t = e / (e + 2);
    return x < 0 ? -t : t;
}

AT_FN double at_tanh64(double x)
{
    const double shift = 0x1.8p52 + 1023;
    double k, a = x < 0 ? -x : x, r = at_reduce64(a > 20.0 ? 40.0 : 2 * a, shift, &k);
    double power = at_double(at_bits64(k) << 52);
    double e = fma(at_q64(r) * r, power, power - 1), t = e / (e + 2);
    return x < 0 ? -t : t;
}

/* -- Logarithm ------------------------------------------------------------------------------- */

/* With F = f - 1, s = F/(2+F) and h = F^2/2: log f = F - (h - s (h + R)), R = 2 s^2/3 + 2 s^4/5 ...
 * [fdlibm's arrangement, Taylor's coefficients; s^2 <= 0.0295]; ln2 is split so that k ln2_hi is
 * exact. */
AT_FN float at_log32(float x)
{
    if (!(x < (float)INFINITY)) /* NaN stays */
        return x;
    uint32_t i = at_bits32(x) + (0x3f800000u - 0x3f3504f3u); /* sqrt(1/2) */
    float k = (float)((int32_t)(i >> 23) - 127);
    float F = at_float((i & 0x7fffffu) + 0x3f3504f3u) - 1, s = F / (2 + F), z = s * s,
          h = F * F / 2;
    float R = fmaf(z, 2.0f / 9, 2.0f / 7);
    R = fmaf(R, z, 2.0f / 5);
    R = fmaf(R, z, 2.0f / 3) * z;
    return k * 0x1.62e300p-1f - ((h - (s * (h + R) + k * 0x1.2fefa2p-17f)) - F);
}

AT_FN double at_log64(double x)
{
    if (!(x < (double)INFINITY))
        return x;
    uint64_t i = at_bits64(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    double k = (double)((int64_t)(i >> 52) - 1023);
    double F = at_double((i & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double s = F / (2 + F), z = s * s, h = F * F / 2;
    double R = fma(z, 2.0 / 23, 2.0 / 21);
    R = fma(R, z, 2.0 / 19);
    R = fma(R, z, 2.0 / 17);
    R = fma(R, z, 2.0 / 15);
    R = fma(R, z, 2.0 / 13);
    R = fma(R, z, 2.0 / 11);
    R = fma(R, z, 2.0 / 9);
    R = fma(R, z, 2.0 / 7);
    R = fma(R, z, 2.0 / 5);
    R = fma(R, z, 2.0 / 3) * z;
    return k * 0x1.62e42feep-1 - ((h - (s * (h + R) + k * 0x1.a39ef35793c76p-33)) - F);
}

/* -- Narrow formats -------------------------------------------------------------------------- */

/* p significand bits, smallest normal 2^emin; the bit patterns of infinity (or of the first number
 * past the largest) and of the one NaN that is written. */
struct at_narrow {
    int p, emin, width;
    uint32_t inf, nan;
};

AT_FN struct at_narrow at_narrow_of(enum at_dtype dtype)
{
    struct at_narrow f16 = {11, -14, 16, 0x7c00, 0x7e00}, bf16 = {8, -126, 16, 0x7f80, 0x7fc0};
    struct at_narrow e4m3 = {4, -6, 8, 0x7f, 0x7f}, e5m2 = {3, -14, 8, 0x7c, 0x7e};
    return dtype == AT_F16 ? f16 : dtype == AT_BF16 ? bf16 : dtype == AT_F8_E4M3 ? e4m3 : e5m2;
}

/* The bits of x rounded once, to nearest even, subnormals and overflow included. */
AT_FN uint32_t at_encode(double x, struct at_narrow f)
{
    uint64_t bits = at_bits64(x), tail;
    uint32_t sign = (uint32_t)(bits >> 63) << (f.width - 1);
    int e = (int)(bits >> 52 & 0x7ff) - 1023, cut;
    if (x != x)
        return f.nan; /* canonical: positive, quiet */
    if (e == 1024)
        return sign | f.inf;
    uint64_t m = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    cut = 53 - f.p + (e < f.emin ? f.emin - e : 0);
    if (e < f.emin)
        e = f.emin;
    if (cut > 54) /* below half the smallest subnormal; doubles' own subnormals too */
        return sign;
    tail = m & (((uint64_t)1 << cut) - 1);
    m >>= cut;
    uint64_t half = (uint64_t)1 << (cut - 1);
    m += tail > half || (tail == half && (m & 1));
    uint32_t y = (uint32_t)(m + ((uint64_t)(e - f.emin) << (f.p - 1))); /* a carry moves on */
    return sign | (y < f.inf ? y : f.inf);
}

/* Exact. */
AT_FN double at_decode(uint32_t bits, struct at_narrow f)
{
    uint32_t sign = bits >> (f.width - 1), y = bits & (((uint32_t)1 << (f.width - 1)) - 1);
    uint32_t e = y >> (f.p - 1), m = y & (((uint32_t)1 << (f.p - 1)) - 1);
    double x;
    if (f.inf == f.nan ? y >= f.nan : y > f.inf)
        x = (double)NAN;
    else if (y == f.inf)
        x = (double)INFINITY;
    else if (e == 0) /* m 2^(emin-p+1) */
        x = (double)m * at_double((uint64_t)(f.emin - f.p + 1 + 1023) << 52);
    else
        x = at_double((uint64_t)((int)e - 1 + f.emin + 1023) << 52 | (uint64_t)m << (53 - f.p));
    return sign ? -x : x;
}

/* -- The working type: AT_BITS is 32 or 64, set for each compilation of an engine ------------- */

#ifndef AT_BITS
#define AT_BITS 32
#endif
#if AT_BITS == 32
typedef float at_real;
#define AT_NAME(name) name##_f32
#define at_exp at_exp32
#define at_log at_log32
#define at_tanh at_tanh32
#define at_fma fmaf
#else
typedef double at_real;
#define AT_NAME(name) name##_f64
#define at_exp at_exp64
#define at_log at_log64
#define at_tanh at_tanh64
#define at_fma fma
#endif

/* A number of the descriptor (scale, softcap, slope, sink) in the working type, rounded once. */
AT_FN at_real at_rounded(double x) { return (at_real)x; }

/* 1/(1-p), rounded once; an engine rounds it to its working type. */
AT_FN double at_gain(double p)
{
    double hi = 1 - p, lo = (1 - hi) - p; /* 1 - p = hi + lo exactly */
    double y = 1 / hi;
    return fma(y, fma(-y, hi, 1.0) - y * lo, y);
}

/* |p - j|, rounded once. */
AT_FN at_real at_distance(int64_t p, int64_t j) { return (at_real)(p < j ? j - p : p - j); }

/* A stored number, exactly where the working type holds it (at_validate sees to that). */
AT_FN at_real at_load(const struct at_view *x, int64_t at)
{
    const unsigned char *data = (const unsigned char *)x->data;
    uint16_t half;
    switch (x->dtype) {
    case AT_F64: return (at_real)((const double *)x->data)[at];
    case AT_F32: return (at_real)((const float *)x->data)[at];
    case AT_BF16: memcpy(&half, data + 2 * at, 2); return (at_real)at_float((uint32_t)half << 16);
    case AT_F16:
        memcpy(&half, data + 2 * at, 2);
        return (at_real)at_decode(half, at_narrow_of(AT_F16));
    default: return (at_real)at_decode(data[at], at_narrow_of(x->dtype));
    }
}

/* Rounds once, to nearest even, from the working type straight to the stored one. */
AT_FN void at_store(const struct at_view *x, int64_t at, at_real y)
{
    unsigned char *data = (unsigned char *)x->data;
    uint16_t half;
    switch (x->dtype) {
    case AT_F64: ((double *)x->data)[at] = (double)y; break;
    case AT_F32: ((float *)x->data)[at] = (float)y; break;
    case AT_F16:
    case AT_BF16:
        half = (uint16_t)at_encode((double)y, at_narrow_of(x->dtype));
        memcpy(data + 2 * at, &half, 2);
        break;
    default: data[at] = (unsigned char)at_encode((double)y, at_narrow_of(x->dtype));
    }
}

#endif

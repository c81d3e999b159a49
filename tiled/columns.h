/* The steps of decode for a few rows before one tile of keys: lane = column, so K and V are read
 * where they lie, whole vectors at a time, and each is read once for all rows.
 *
 *     dots()    s[r] = k_j . q_r in 16 chains over columns, added in halves, as at_dot does
 *     gather()  u_r = (a u_r + sum_j p_rj v_j) + 0 over C columns of R rows, j in order from zero
 *
 * R rows keep R * 2 vectors of 8 floats in flight, which covers the latency of two pipes. Arrays
 * are small and their indices literal, or gcc would keep them in memory.
 * Not here: which keys, which rows (decode.c).
 *
 * SPDX-License-Identifier: MIT */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "tiled.h"

enum { CHAINS = 16, C = 64 / sizeof(at_real), R = AT_BITS == 32 ? 4 : 2 };

#define COLUMNS _Pragma("omp simd") for (int c = 0; c < C; c++)
#define INLINE static inline __attribute__((always_inline))

enum { AHEAD = 8 };

/* Asks for a row's memory: a value wanted after the softmax, a key wanted soon (1.6 times). */
INLINE void hint(const at_real *row, int64_t n)
{
    for (int64_t c = 0; c < n; c += C)
        __builtin_prefetch(row + c);
}

/* at_dot's pairwise halves of 16 chains, written out so that they stay in registers. */
INLINE at_real halves(const at_real *t)
{
    at_real x[8], y[4];
    _Pragma("omp simd") for (int w = 0; w < 8; w++) x[w] = t[w] + t[w + 8];
    _Pragma("omp simd") for (int w = 0; w < 4; w++) y[w] = x[w] + x[w + 4];
    return (y[0] + y[2]) + (y[1] + y[3]);
}

/* at_dot in CHAINS chains of one key with `rows` (a literal) queries. */
INLINE void dots(int rows, int64_t D, const at_real *restrict q, const at_real *restrict k,
                 at_real *restrict s, int64_t stride)
{
    at_real t[R][CHAINS];
    int64_t whole = D / CHAINS * CHAINS;
    for (int r = 0; r < rows; r++)
        _Pragma("omp simd") for (int w = 0; w < CHAINS; w++) t[r][w] = 0;
    for (int64_t c = 0; c < whole; c += CHAINS)
        for (int r = 0; r < rows; r++)
            _Pragma("omp simd") for (int w = 0; w < CHAINS; w++) t[r][w] =
                at_fma(q[r * D + c + w], k[c + w], t[r][w]);
    if (whole == D) {
        for (int r = 0; r < rows; r++)
            s[r * stride] = halves(t[r]);
        return;
    }
    for (int r = 0; r < rows; r++) {
        at_real x[CHAINS];
        memcpy(x, t[r], sizeof x); /* or t, indexed by a variable, would not stay in registers */
        for (int64_t c = whole; c < D; c++)
            x[c - whole] = at_fma(q[r * D + c], k[c], x[c - whole]);
        s[r * stride] = halves(x);
    }
}

/* The tile's reference: the larger of m and its scores. Lanes hold every C-th score; the largest of
 * numbers does not depend on the order, but for the sign of a zero, and + 0 sees to that. */
static at_real reference(int64_t n, const at_real *s, at_real m)
{
    at_real top[C];
    int64_t j = 0;
    COLUMNS top[c] = m;
    for (; j + C <= n; j += C)
        COLUMNS top[c] = at_larger(top[c], s[j + c]);
    for (; j < n; j++)
        m = at_larger(m, s[j]);
    for (int c = 0; c < C; c++)
        m = at_larger(m, top[c]);
    return m + 0;
}

/* l[r] = sum_j p[r][j] in key order; `rows` (a literal) chains side by side hide the latency. */
INLINE void sums(int rows, int64_t n, const at_real *p, int64_t bc, at_real *l)
{
    at_real t[R] = {0};
    for (int64_t j = 0; j < n; j++)
        for (int r = 0; r < rows; r++)
            t[r] += p[r * bc + j];
    for (int r = 0; r < rows; r++)
        l[r] = t[r];
}

/* u[r] takes in sum_j p[r][j] v_j over columns [c0, c0+C) of `rows` (a literal) rows. */
INLINE void gather(int rows, int64_t n, const at_real *restrict p, int64_t bc,
                   const at_real *const *v, int64_t c0, const at_real *worth, at_real *restrict u,
                   int64_t stride)
{
    at_real t[R][C];
    for (int r = 0; r < rows; r++)
        COLUMNS t[r][c] = 0;
    for (int64_t j = 0; j < n; j++) {
        const at_real *restrict y = v[j] + c0;
        for (int r = 0; r < rows; r++) {
            at_real w = p[r * bc + j];
            COLUMNS t[r][c] = at_fma(w, y[c], t[r][c]);
        }
    }
    for (int r = 0; r < rows; r++)
        COLUMNS u[r * stride + c0 + c] = at_take(worth[r], u[r * stride + c0 + c], t[r][c]);
}

/* The columns that C leaves over. */
static void gather_rest(int64_t n, const at_real *p, const at_real *const *v, int64_t c0,
                        int64_t Dv, at_real worth, at_real *u)
{
    for (int64_t c = c0; c < Dv; c++) {
        at_real t = 0;
        for (int64_t j = 0; j < n; j++)
            t = at_fma(p[j], v[j][c], t);
        u[c] = at_take(worth, u[c], t);
    }
}

#endif

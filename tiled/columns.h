/* The steps of decode for a few rows before one tile of keys: lane = column, so K and V are read
 * where they lie, whole vectors at a time, and each is read once for all rows.
 *
 *     dots()    s[r] = k_j . q_r in 16 chains over columns, added in halves, as at_dot does
 *     gather()  u_r = (a u_r + sum_j p_rj v_j) + 0 over C columns of R rows, j in order from zero
 *
 * Eight vectors in flight cover the latency of two pipes. Arrays are small and their
 * indices literal, or gcc would keep them in memory. Not here: which keys, which rows (decode.c).
 *
 * SPDX-License-Identifier: MIT */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "tiled.h"

/* R rows of KEYS keys in dots, R rows of C columns in gather: eight vectors of 512 or 256 bits. */
#if defined(__AVX512F__)
enum { C = 128 / sizeof(at_real), KEYS = 2 };
#else
enum { C = 64 / sizeof(at_real), KEYS = 1 };
#endif
enum { CHAINS = 16, R = AT_BITS == 32 ? 4 : 2, LINE = 64 / sizeof(at_real) };
enum { AHEAD = 8 };

#define COLUMNS(n) _Pragma("omp simd") for (int c = 0; c < n; c++)
#define INLINE static inline __attribute__((always_inline))

/* Asks for a row's memory: a value wanted after the softmax, a key wanted soon (1.6 times). */
INLINE void hint(const at_real *row, int64_t n)
{
    for (int64_t c = 0; c < n; c += LINE)
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

/* at_dot in CHAINS chains of `keys` keys with `rows` queries (both literal). */
INLINE void dots(int rows, int keys, int64_t D, const at_real *restrict q, const at_real *const *k,
                 at_real *restrict s, int64_t stride)
{
    at_real t[KEYS][R][CHAINS];
    const at_real *y[KEYS];
    int64_t whole = D / CHAINS * CHAINS;
    for (int j = 0; j < keys; j++) {
        y[j] = k[j];
        for (int r = 0; r < rows; r++)
            _Pragma("omp simd") for (int w = 0; w < CHAINS; w++) t[j][r][w] = 0;
    }
    for (int64_t c = 0; c < whole; c += CHAINS)
        for (int j = 0; j < keys; j++)
            for (int r = 0; r < rows; r++)
                _Pragma("omp simd") for (int w = 0; w < CHAINS; w++) t[j][r][w] =
                    at_fma(q[r * D + c + w], y[j][c + w], t[j][r][w]);
    if (whole == D) {
        for (int j = 0; j < keys; j++)
            for (int r = 0; r < rows; r++)
                s[r * stride + j] = halves(t[j][r]);
        return;
    }
    for (int j = 0; j < keys; j++)
        for (int r = 0; r < rows; r++) {
            at_real x[CHAINS];
            memcpy(x, t[j][r], sizeof x); /* or t, indexed by a variable, would leave registers */
            for (int64_t c = whole; c < D; c++)
                x[c - whole] = at_fma(q[r * D + c], y[j][c], x[c - whole]);
            s[r * stride + j] = halves(x);
        }
}

/* The tile's reference: the larger of m and its scores. Lanes hold every LINE-th score; the largest
 * of numbers does not depend on the order, but for the sign of a zero, and + 0 sees to that. */
static at_real reference(int64_t n, const at_real *s, at_real m)
{
    at_real top[LINE];
    int64_t j = 0;
    COLUMNS(LINE) top[c] = m;
    for (; j + LINE <= n; j += LINE)
        COLUMNS(LINE) top[c] = at_larger(top[c], s[j + c]);
    for (; j < n; j++)
        m = at_larger(m, s[j]);
    for (int c = 0; c < LINE; c++)
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

/* u[r] takes in sum_j p[r][j] v_j over columns [c0, c0+columns) of `rows` rows (both literal). */
INLINE void gather(int rows, int columns, int64_t n, const at_real *restrict p, int64_t bc,
                   const at_real *const *v, int64_t c0, const at_real *worth, at_real *restrict u,
                   int64_t stride)
{
    at_real t[R][C];
    for (int r = 0; r < rows; r++)
        COLUMNS(columns) t[r][c] = 0;
    for (int64_t j = 0; j < n; j++) {
        const at_real *restrict y = v[j] + c0;
        for (int r = 0; r < rows; r++) {
            at_real w = p[r * bc + j];
            COLUMNS(columns) t[r][c] = at_fma(w, y[c], t[r][c]);
        }
    }
    for (int r = 0; r < rows; r++) {
        at_real *restrict x = u + r * stride + c0;
        COLUMNS(columns) x[c] = at_take(worth[r], x[c], t[r][c]);
    }
}

/* The columns that LINE leaves over. */
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

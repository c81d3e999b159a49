/* The four steps of one tile for W query rows side by side: lane = row, so nothing is ever summed
 * across lanes and every lane does what scalar.c does for its row, in the same order.
 *
 *     s[j][lane] = scale * sum_c k[j][c] q[c][lane]           product(), a chain over c from zero
 *     m' = max(m, s),  p = e^(s-m'),  l_t = sum_j p            weights()
 *     u[c][lane] = (a u + sum_j v[j][c] p[j][lane]) + 0        gather(), a chain over j from zero
 *
 * Both products are the same rank-one updates of an MR x W block that stays in registers: K and V
 * are read as broadcasts, whole vectors of q and p as they lie.
 * Plain C under `omp simd`; needs -O3 and, from gcc, -fno-tree-loop-distribute-patterns, or the
 * block's way out becomes a memcpy, the block an array in memory and all of it three times slower.
 * Not here: which keys, which rows (attend.c). SPDX-License-Identifier: MIT */
#ifndef TILE_H
#define TILE_H

#include "tiled.h"

/* MR * W accumulators: 24 of 32 registers of 512 bits, 16 of 32 of 128, 8 of 16 of 256. */
#if defined(__AVX512F__)
enum { W = 192 / sizeof(at_real), MR = 8 };
#else
enum { W = 64 / sizeof(at_real), MR = 4 };
#endif

#define LANES _Pragma("omp simd") for (int lane = 0; lane < W; lane++)
#define INLINE static inline __attribute__((always_inline))

/* An integer as wide as the working type, so that a choice is one blend. */
#if AT_BITS == 32
typedef int32_t at_int;
#else
typedef int64_t at_int;
#endif

/* What a row does with a key: nothing; counts in l alone (dropped); counts. */
enum { HIDDEN = 0, SEEN = 1, KEPT = 2 };

typedef at_real at_lanes[W]; /* one number of each row */
typedef at_int at_marks[W];

/* -- The product ------------------------------------------------------------------------------ */

/* t[r] = sum_k a[r*ar + k*ak] b[k], r < MR. */
INLINE void product(int64_t n, const at_real *restrict a, int64_t ar, int64_t ak,
                    const at_lanes *restrict b, at_lanes *restrict t)
{
    for (int r = 0; r < MR; r++)
        LANES t[r][lane] = 0;
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < MR; r++) {
            at_real x = a[r * ar + k * ak];
            LANES t[r][lane] = at_fma(x, b[k][lane], t[r][lane]);
        }
}

/* s[j] = scale * raw for n keys in rows of D; up to MR - 1 rows more are read and written. */
static void scores(int64_t n, int64_t D, at_real scale, const at_real *k, const at_lanes *q,
                   at_lanes *restrict s)
{
    for (int64_t j = 0; j < n; j += MR) {
        at_lanes t[MR];
        product(D, k + j * D, D, 1, q, t);
        for (int r = 0; r < MR; r++)
            LANES s[j + r][lane] = scale * t[r][lane];
    }
}

/* The same with the dot product in `chains` chains over c, added pairwise in halves (at_dot). */
static void scores_chained(int64_t n, int64_t D, int64_t chains, at_real scale, const at_real *k,
                           const at_lanes *q, at_lanes *restrict s)
{
    for (int64_t j = 0; j < n; j++) {
        at_lanes t[64];
        for (int64_t w = 0; w < chains; w++) {
            LANES t[w][lane] = 0;
            for (int64_t c = w; c < D; c += chains)
                LANES t[w][lane] = at_fma(q[c][lane], k[j * D + c], t[w][lane]);
        }
        for (int64_t half = chains / 2; half > 0; half /= 2)
            for (int64_t w = 0; w < half; w++)
                LANES t[w][lane] += t[w + half][lane];
        LANES s[j][lane] = scale * t[0][lane];
    }
}

/* u[c] takes in a tile's sum over its n keys; v in panels of MR columns, `height` keys each. */
static void gather(int64_t n, int64_t Dv, int64_t height, const at_real *v, const at_lanes *p,
                   const at_real *worth, at_lanes *restrict u)
{
    for (int64_t c = 0; c < Dv; c += MR) {
        at_lanes t[MR];
        product(n, v + c * height, 1, MR, p, t);
        for (int r = 0; r < MR; r++)
            LANES u[c + r][lane] = at_take(worth[lane], u[c + r][lane], t[r][lane]);
    }
}

/* The same where a hidden or dropped value is infinite or NaN: 0*v would not be 0. */
static void gather_marked(int64_t n, int64_t Dv, int64_t height, const at_real *v,
                          const at_lanes *p, const at_marks *mark, const at_real *worth,
                          at_lanes *restrict u)
{
    for (int64_t c = 0; c < Dv; c++) {
        const at_real *column = v + c / MR * MR * height + c % MR;
        at_lanes t;
        LANES t[lane] = 0;
        for (int64_t j = 0; j < n; j++) {
            at_real x = column[j * MR];
            LANES t[lane] = mark[j][lane] == KEPT ? at_fma(p[j][lane], x, t[lane]) : t[lane];
        }
        LANES u[c][lane] = at_take(worth[lane], u[c][lane], t[lane]);
    }
}

/* -- The softmax ------------------------------------------------------------------------------ */

/* s becomes p; m and l take the tile in; worth is what u was worth. Every key is seen. */
static void weights(int64_t n, at_lanes *restrict s, at_real *restrict m, at_real *restrict l,
                    at_real *restrict worth)
{
    at_lanes top, sum;
    LANES top[lane] = m[lane], sum[lane] = 0;
    for (int64_t j = 0; j < n; j++)
        LANES top[lane] = at_larger(top[lane], s[j][lane]);
    LANES top[lane] = top[lane] + 0;
    for (int64_t j = 0; j < n; j++)
        LANES
        {
            at_real p = at_weight(s[j][lane], top[lane]);
            sum[lane] += p;
            s[j][lane] = p;
        }
    LANES worth[lane] = at_worth(m[lane], top[lane]);
    LANES l[lane] = at_take(worth[lane], l[lane], sum[lane]);
    LANES m[lane] = top[lane];
}

/* The same under marks. Where a row sees no key of the tile, worth is 1 and all sums are 0: it
 * stays what it was. On the way out s is p where the key is kept, else 0. */
static void weights_marked(int64_t n, at_lanes *restrict s, const at_marks *restrict mark,
                           at_real *restrict m, at_real *restrict l, at_real *restrict worth)
{
    at_lanes top, sum;
    LANES top[lane] = m[lane], sum[lane] = 0;
    for (int64_t j = 0; j < n; j++)
        LANES
        {
            at_real larger = at_larger(top[lane], s[j][lane]);
            top[lane] = mark[j][lane] == HIDDEN ? top[lane] : larger;
        }
    LANES top[lane] = top[lane] + 0;
    for (int64_t j = 0; j < n; j++)
        LANES
        {
            at_real p = at_weight(s[j][lane], top[lane]);
            sum[lane] += mark[j][lane] == HIDDEN ? 0 : p;
            s[j][lane] = mark[j][lane] == KEPT ? p : 0;
        }
    LANES worth[lane] = at_worth(m[lane], top[lane]);
    LANES l[lane] = at_take(worth[lane], l[lane], sum[lane]);
    LANES m[lane] = top[lane];
}

#endif

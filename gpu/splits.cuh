/* The states of decode.cu's splits: stored, and merged: x = x (+) y over a row's splits, in key
 * order, as at_row_merge does it. The factors of every step need only the maxima before it, so they
 * are found side by side; what remains in sequence is two products and a sum.
 * SPDX-License-Identifier: MIT */
#ifndef SPLITS_CUH
#define SPLITS_CUH

#include "launch.cuh"

/* Four pairs x of sequence b under key head g: row x / group, head g*group + x % group. */
struct quad {
    int b, g, x0, pairs, split;
};

template <class A> static __device__ inline int row_of(const A &p, int x)
{
    return x / (int)p.z.group;
}
template <class A> static __device__ inline int head_of(const A &p, int g, int x)
{
    return g * (int)p.z.group + x % (int)p.z.group;
}

/* Columns c .. c+3 of a pair's row: the state of the split, or where there is one split, the end.
 */
template <class A>
static __device__ inline void store(const A &p, const struct quad &w, int warp, int c,
                                    struct at_row &row)
{
    int x = w.x0 + warp, i = row_of(p, x), h = head_of(p, w.g, x);
    bool live = x < w.pairs;
    if (c >= p.width || (!live && (p.splits > 1 || p.ragged || i >= (int)p.z.Sq)))
        return;
    if (p.splits == 1) {
        if (!live)
            at_row_clear(&row, -(at_real)INFINITY, 4);
        row_out(&p, &row, w.b, h, i, c, 4);
        return;
    }
    int64_t at = ((w.b * p.z.Hq + h) * p.z.Sq + i) * p.splits + w.split;
    if (c == 0)
        p.m[at] = row.m, p.l[at] = row.l;
    for (int e = 0; e < 4; e++)
        p.u[at * p.width + c + e] = row.u[e];
}

enum { AT_ONCE = 32 }; /* loads in flight */

/* Column c of the states of splits s0 .. of row n, where there are keys. */
template <class A>
static __device__ inline void fetch(at_real (&x)[AT_ONCE], const A &p, int n, int c, int s0,
                                    struct range seen)
{
    const at_real *part = p.u + ((int64_t)n * p.splits + s0) * p.width + c;
#pragma unroll
    for (int s = 0; s < AT_ONCE; s++) {
        bool some = s0 + s < p.splits && c < (int)p.z.Dv &&
                    at_max(p.cut[s0 + s], seen.lo) < at_min(p.cut[s0 + s + 1], seen.hi);
        x[s] = some ? part[(int64_t)s * p.width] : 0;
    }
}

/* One row a block, a column a thread: the states of its splits joined in key order, then the end.
 */
template <class A> static __global__ void merge(const __grid_constant__ A p)
{
    constexpr int NT = 128;
    int n = (int)blockIdx.x, S = (int)p.z.Sq, Hq = (int)p.z.Hq, b = n / S / Hq, i = n % S;
    ARENA(all);
    shared<at_real> m = all.take<at_real>(SPLITS), ls = all.take<at_real>(SPLITS);
    shared<at_real> a = all.take<at_real>(SPLITS), f = all.take<at_real>(SPLITS);
    struct range seen = keys_of(&p, b, i); /* empty: rows past q_len too */
    int t = (int)threadIdx.x;
    bool mine = t < p.splits && at_max(p.cut[t], seen.lo) < at_min(p.cut[t + 1], seen.hi);
    at_real x[AT_ONCE], before = -(at_real)INFINITY, top;
    if (p.ragged && i >= rows_of(p, b))
        return;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize(); /* the splits' states are written */
#endif
    m[t] = mine ? p.m[(int64_t)n * p.splits + t] : -(at_real)INFINITY;
    ls[t] = mine ? p.l[(int64_t)n * p.splits + t] : 0;
    fetch(x, p, n, t, 0, seen);
    __syncthreads(); /* maxima and sums are here */
#pragma unroll 8
    for (int y = 0; y < t && y < p.splits; y++)
        before = at_larger(before, m[y]);
    top = at_larger(before, m[t]) + 0;
    a[t] = at_worth(before, top); /* of an empty split: 1, not used */
    f[t] = at_worth(m[t], top);
    __syncthreads(); /* factors are here */
    for (int c = t; c < (int)p.z.Dv; c += NT) {
        at_real u = 0;
        struct at_row row = {-(at_real)INFINITY, 0, &u};
        for (int s0 = 0; s0 < p.splits; s0 += AT_ONCE) {
            if (c > t || s0 > 0)
                fetch(x, p, n, c, s0, seen);
#pragma unroll
            for (int s = 0; s < AT_ONCE; s++) {
                if (s0 + s >= p.splits || ls[s0 + s] == 0)
                    continue;
                bool empty = row.l == 0; /* chosen away: at_row_merge */
                row.m = at_larger(row.m, m[s0 + s]);
                row.l =
                    empty ? (at_real)ls[s0 + s] : at_join(a[s0 + s], row.l, f[s0 + s], ls[s0 + s]);
                u = empty ? x[s] : at_join(a[s0 + s], u, f[s0 + s], x[s]);
            }
        }
        row_out(&p, &row, b, n / S % Hq, i, c, 1);
    }
}

#endif

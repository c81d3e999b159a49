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
    int group = (int)p.z.group;
    return x < group ? 0 : x / group; /* a division is long */
}
template <class A> static __device__ inline int head_of(const A &p, int g, int x)
{
    int group = (int)p.z.group;
    return g * group + (x < group ? x : x % group);
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

/* The largest of the lanes before this one (y) and of all (x). */
static __device__ inline void scan(at_real &x, at_real &y)
{
    int lane = (int)threadIdx.x % 32;
    y = -(at_real)INFINITY;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        at_real other = __shfl_xor_sync(~0u, x, d);
        y = lane & d ? at_larger(y, other) : y;
        x = at_larger(x, other);
    }
}

enum { JOINERS = SPLITS }; /* threads of `merge`, one a split; a column each */

/* The step of the thread's split, whose state has m and l: the factors a and f of x = a x + f y,
 * and l. They need only the maxima before it, so all are found side by side. An empty split's step
 * is 1 x + 0. Returns the largest m. A barrier. */
static __device__ inline at_real prepare(shared<at_real> step, shared<at_real> warps, at_real m,
                                         at_real l)
{
    constexpr int W = JOINERS / 32;
    int t = (int)threadIdx.x;
    at_real top = m, any = l == 0 ? -(at_real)INFINITY : 0, before, first;
    scan(top, before), scan(any, first);
    if (t % 32 == 0)
        warps[t / 32] = top, warps[W + t / 32] = any;
    __syncthreads(); /* the warps' are here */
    top = -(at_real)INFINITY;
#pragma unroll
    for (int w = 0; w < W; w++) {
        top = at_larger(top, warps[w]);
        before = w < t / 32 ? at_larger(before, warps[w]) : before;
        first = w < t / 32 ? at_larger(first, warps[W + w]) : first;
    }
    at_real to = at_larger(before, m) + 0;
    step[4 * t] = first < 0 || l == 0 ? 1 : at_worth(before, to);
    step[4 * t + 1] = l == 0 ? 0 : first < 0 ? 1 : at_worth(m, to);
    step[4 * t + 2] = l, step[4 * t + 3] = 0;
    return top;
}

/* One row a block, a column a thread: the states of its splits joined in key order, then the end.
 * Turn 0 goes through it with no states, while decode works: it brings the instructions. */
template <class A> static __global__ void merge(const __grid_constant__ A p)
{
    constexpr int NT = JOINERS, E = 16 / sizeof(at_real), PIECES = NT / E;
    int n = (int)blockIdx.x, S = (int)p.z.Sq, Hq = (int)p.z.Hq, b = n / S / Hq, i = n % S;
    int t = (int)threadIdx.x, splits = p.splits, Dv = (int)p.z.Dv;
    ARENA(all);
    shared<at_real> warps = all.take<at_real>(2 * NT / 32); /* maxima; 0: saw something, -inf */
    shared<at_real> step = all.take<at_real>(4 * SPLITS), x = all.take<at_real>(splits * NT);
    shared<int> there = all.take<int>(SPLITS);
    struct range seen = keys_of(&p, b, i); /* empty: rows past q_len too */
    bool some = t < splits && at_max(p.cut[t], seen.lo) < at_min(p.cut[t + 1], seen.hi);
    if (p.ragged && i >= rows_of(p, b))
        return;
    there[t] = some;
#pragma unroll 1
    for (int c0 = -NT; c0 < Dv; c0 += NT) { /* turn 0, panels of columns */
        bool now = c0 >= 0;
        int s0 = t / PIECES, c = t % PIECES * E + (now ? c0 : 0);
        const at_real *from = p.u + ((int64_t)n * splits + s0) * p.width + c;
        at_real m = -(at_real)INFINITY, l = 0, u = 0;
        __syncthreads(); /* what splits there are; the panel before is read */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        if (now)
            cudaGridDependencySynchronize(); /* the splits' states are written */
#endif
        if (now && some)
            m = p.m[(int64_t)n * splits + t], l = p.l[(int64_t)n * splits + t];
#pragma unroll 4
        for (int s = s0; s < splits; s += NT / PIECES, from += NT / PIECES * p.width) {
            bool is = now && c < p.width && there[s];
            copy16(x + (s * NT + t % PIECES * E), is ? from : p.u, is);
        }
        commit();
        struct at_row row = {prepare(step, warps, m, l), 0, &u};
        wait_copies<0>();
        __syncthreads(); /* factors and states are here */
#pragma unroll 8
        for (int s = 0; s < splits; s++) {
            at_real y[4];
            load4(y, step + 4 * s);
            row.l = at_join(y[0], row.l, y[1], y[2]);
            u = at_join(y[0], u, y[1], x[s * NT + t]);
        }
        if (now && c0 + t < Dv)
            row_out(&p, &row, b, n / S % Hq, i, c0 + t, 1);
    }
}

#endif

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

/* Does the row see keys of split s? */
template <class A> static __device__ inline bool some(const A &p, int s, struct range seen)
{
    return at_max(p.cut[s], seen.lo) < at_min(p.cut[s + 1], seen.hi);
}

/* One row a block, a column a thread: the states of its splits joined in key order, then the end.
 * A step is four numbers: the factors a and f of x = a x + f y, and y's l and m. Turn 0 goes
 * through it with no states, while decode works: it brings the instructions. */
template <class A> static __global__ void merge(const __grid_constant__ A p)
{
    constexpr int NT = 128, E = 16 / sizeof(at_real), PIECES = NT / E;
    int n = (int)blockIdx.x, S = (int)p.z.Sq, Hq = (int)p.z.Hq, b = n / S / Hq, i = n % S;
    int t = (int)threadIdx.x, splits = p.splits, Dv = (int)p.z.Dv;
    ARENA(all);
    shared<at_real> step = all.take<at_real>(4 * SPLITS), x = all.take<at_real>(splits * NT);
    struct range seen = keys_of(&p, b, i); /* empty: rows past q_len too */
    if (p.ragged && i >= rows_of(p, b))
        return;
#pragma unroll 1
    for (int c0 = -NT; c0 < Dv; c0 += NT) { /* turn 0, panels of columns */
        int c1 = c0 < 0 ? 0 : c0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        if (c0 == 0)
            cudaGridDependencySynchronize(); /* the splits' states are written */
#endif
        bool mine = c0 >= 0 && t < splits && some(p, t, seen);
        at_real m = mine ? p.m[(int64_t)n * splits + t] : -(at_real)INFINITY;
        at_real l = mine ? p.l[(int64_t)n * splits + t] : 0;
#pragma unroll 1
        for (int y = t; y < splits * PIECES; y += NT) {
            int s = y / PIECES, c = c1 + y % PIECES * E;
            bool there = c0 >= 0 && c < p.width && some(p, s, seen);
            copy16(x + y * E, p.u + (there ? ((int64_t)n * splits + s) * p.width + c : 0), there);
        }
        commit();
        step[4 * t + 2] = l, step[4 * t + 3] = m;
        __syncthreads(); /* maxima and sums are here */
        at_real before = -(at_real)INFINITY;
        bool first = true;
#pragma unroll 4
        for (int y = 0; y < t && y < splits; y++) {
            before = at_larger(before, step[4 * y + 3]);
            first = first && step[4 * y + 2] == 0;
        }
        at_real top = at_larger(before, m) + 0;
        step[4 * t] = first || l == 0 ? 1 : at_worth(before, top);
        step[4 * t + 1] = l == 0 ? 0 : first ? 1 : at_worth(m, top);
        wait_copies<0>();
        __syncthreads(); /* factors and states are here */
        at_real u = 0;
        struct at_row row = {-(at_real)INFINITY, 0, &u};
#pragma unroll 4
        for (int s = 0; s < splits; s++) { /* an empty split: 1 x + 0 */
            at_real y[4];
            load4(y, step + 4 * s);
            row.m = at_larger(row.m, y[3]);
            row.l = at_join(y[0], row.l, y[1], y[2]);
            u = at_join(y[0], u, y[1], x[s * NT + t]);
        }
        if (c0 >= 0 && c0 + t < Dv)
            row_out(&p, &row, b, n / S % Hq, i, c0 + t, 1);
        __syncthreads(); /* the panel is read */
    }
}

#endif

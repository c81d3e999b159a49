/* What stands between the two products of attention.cu, and after the last: scores are finished,
 * hidden, weighed; rows of u go out. SPDX-License-Identifier: MIT */
#ifndef STEPS_CUH
#define STEPS_CUH

#include "few.cuh"

/* Where a block and its thread stand. lo, hi: the keys that each row sees, in shared memory. */
struct place {
    int b, h, row0, j0, tx, ty;
    shared<int> lo, hi;
};

/* Raw to finished scores. Where not every score is scale*raw of a visible key, the thread's own
 * cells of P serve as its array, so that one rolled loop can ask everything of every key. Returns a
 * bit for each hidden key; its score is -inf, so that it does not count in the maximum. */
template <class S>
static __device__ inline uint64_t finished(at_real (&s)[S::RM][S::KM], shared<at_real> P,
                                           const struct args &p, const struct place &w, bool whole)
{
    uint64_t hidden = 0;
    bool simple = whole && p.plain && p.a.plan.lanes == 1;
#pragma unroll
    for (int x = 0; x < S::RM * S::KM; x++) {
        int r = w.ty + x / S::KM * S::TY, k = w.tx + x % S::KM * S::TX;
        if (simple)
            s[x / S::KM][x % S::KM] *= p.scale;
        else
            P[r * S::LP + k] = s[x / S::KM][x % S::KM];
    }
    if (simple)
        return 0;
#pragma unroll 1
    for (int x = 0; x < S::RM * S::KM; x++) {
        int r = w.ty + x / S::KM * S::TY, k = w.tx + x % S::KM * S::TX;
        int i = w.row0 + r, j = w.j0 + k;
        at_real y = -(at_real)INFINITY;
        if (k < p.bc && j >= w.lo[r] && j < w.hi[r] && seen(&p, w.b, w.h, i, j))
            y = scored(&p, P[r * S::LP + k], w.b, w.h, i, j);
        else
            hidden |= (uint64_t)1 << x;
        P[r * S::LP + k] = y;
    }
#pragma unroll
    for (int x = 0; x < S::RM * S::KM; x++)
        s[x / S::KM][x % S::KM] = P[(w.ty + x / S::KM * S::TY) * S::LP + w.tx + x % S::KM * S::TX];
    return hidden;
}

/* ... where few things are asked: place alone hides a key. */
template <class S>
static __device__ inline uint64_t finished(at_real (&s)[S::RM][S::KM], shared<at_real>,
                                           const struct few &p, const struct place &w, bool whole)
{
#pragma unroll
    for (int x = 0; x < S::RM * S::KM; x++)
        s[x / S::KM][x % S::KM] *= p.scale;
    if (!whole)
#pragma unroll
        for (int x = 0; x < S::RM * S::KM; x++) {
            int r = w.ty + x / S::KM * S::TY, k = w.tx + x % S::KM * S::TX;
            if (k >= p.bc || w.j0 + k < w.lo[r] || w.j0 + k >= w.hi[r])
                s[x / S::KM][x % S::KM] = -(at_real)INFINITY;
        }
    return 0;
}

/* The tile's reference m of each row, a = what the row's earlier sums are worth under it, and the
 * weights into P. */
template <class S>
static __device__ inline void weights(const at_real (&s)[S::RM][S::KM], at_real (&m)[S::RM],
                                      at_real (&a)[S::RM], shared<at_real> P, int tx, int ty)
{
#pragma unroll
    for (int i = 0; i < S::RM; i++) {
        at_real top = m[i];
#pragma unroll
        for (int k = 0; k < S::KM; k++)
            top = at_larger(top, s[i][k]);
#pragma unroll
        for (int lane = S::TX / 2; lane > 0; lane /= 2)
            top = at_larger(top, __shfl_xor_sync(~0u, top, lane));
        top = top + 0; /* of two zeros the positive one */
        a[i] = at_worth(m[i], top);
        m[i] = top;
#pragma unroll
        for (int k = 0; k < S::KM; k++)
            P[(ty + S::TY * i) * S::LP + tx + S::TX * k] = at_weight(s[i][k], top);
    }
}

/* The thread's own weights, marked where a value is not to be read. */
template <class S, class A>
static __device__ inline void mark(shared<at_real> P, uint64_t hidden, const A &p,
                                   const struct place &w)
{
#pragma unroll 1
    for (int x = 0; x < S::RM * S::KM; x++) {
        int r = w.ty + x / S::KM * S::TY, k = w.tx + x % S::KM * S::TX;
        at_real y = P[r * S::LP + k];
        if constexpr (A::FEW) {
            bool hides = k >= p.bc || w.j0 + k < w.lo[r] || w.j0 + k >= w.hi[r];
            P[r * S::LP + k] = hides ? with_sign((at_real)0) : at_canonical(y);
        } else {
            P[r * S::LP + k] = marked(&p, y, hidden >> x & 1, w.b, w.h, w.row0 + r, w.j0 + k);
        }
    }
}

/* Rows of u to where they go, through own cells of shared memory: one rolled loop for all. */
template <class S>
static __device__ inline void
finish(const at_real (&m)[S::RM], const at_real (&l)[S::RM], const at_real (&u)[S::RM][S::CM * 4],
       shared<at_real> U, shared<at_real> P, const struct args &p, const struct place &w, int c0)
{
#pragma unroll
    for (int i = 0; i < S::RM; i++) {
        int r = w.ty + S::TY * i;
        P[r * S::LP + w.tx] = m[i], P[r * S::LP + w.tx + S::TX] = l[i];
#pragma unroll
        for (int c = 0; c < S::CM * 4; c++)
            U[r * S::LD + 4 * (w.tx + c / 4 * S::TX) + c % 4] = u[i][c];
    }
    int64_t rows = at_rows_of(&p.a, &p.z, w.b), end = p.ragged ? rows : p.z.Sq;
#pragma unroll 1
    for (int x = 0; x < S::RM * S::CM; x++) {
        int r = w.ty + S::TY * (x / S::CM), c = 4 * (w.tx + x % S::CM * S::TX);
        at_real part[4];
        struct at_row row = {P[r * S::LP + w.tx], P[r * S::LP + w.tx + S::TX], part};
        load4(part, U + (r * S::LD + c));
        if (w.row0 + r >= rows)
            at_row_clear(&row, -(at_real)INFINITY, 4);
        if (w.row0 + r < end)
            row_out(&p, &row, w.b, w.h, w.row0 + r, c0 + c, 4);
    }
}

/* ... where few things are asked: four columns at a time. */
template <class S>
static __device__ inline void
finish(const at_real (&m)[S::RM], const at_real (&l)[S::RM], const at_real (&u)[S::RM][S::CM * 4],
       shared<at_real>, shared<at_real>, const struct few &p, const struct place &w, int)
{
    int rows = rows_of(p, w.b), end = p.ragged ? rows : p.z.Sq;
#pragma unroll
    for (int i = 0; i < S::RM; i++) {
        int row = w.row0 + w.ty + S::TY * i;
        if (row >= end)
            continue;
        at_real sum = row < rows ? l[i] : 0; /* 0: a row of zeros */
        at_real *to = (at_real *)p.out.data + row_at(p, p.out, w.b, w.h, row);
#pragma unroll
        for (int g = 0; g < S::CM; g++) {
            int c = 4 * (w.tx + S::TX * g);
            at_real y[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                y[e] = at_out(u[i][4 * g + e], sum, 1);
            if (c < p.z.Dv)
                store4(to + c, y);
        }
        if (w.tx == 0 && p.lse.data)
            at_store(&p.lse, row_at(p, p.lse, w.b, w.h, row),
                     at_lse(row < rows ? m[i] : -(at_real)INFINITY, sum));
    }
}

#endif

/* The steps of decode.cu over one tile of keys: queries to shared memory, scores, weights, sums. A
 * thread owns one key and HT pairs (query row, head) for the scores; a warp owns one pair after
 * that. No barriers here.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PAIRS_CUH
#define PAIRS_CUH

#include "launch.cuh"
#include "splits.cuh"

template <class T_, int W_, int KEYS_> struct form {
    typedef T_ T;
    static constexpr int W = W_, KEYS = KEYS_, G = 4, NT = 128, HT = G * KEYS / NT;
    static constexpr int C = sizeof(T) == 2 ? 8 : 4;   /* columns that one load brings */
    static constexpr int LD = W + 16 / (int)sizeof(T); /* eight keys' vectors fall in eight banks */
    static_assert(KEYS % 32 == 0 && W <= 128 && W % 8 == 0, "a warp is one pair, 4 columns a lane");
};

static __device__ inline void load(at_real (&y)[4], shared<at_real> x) { load4(y, x); }
#if AT_BITS == 32
static __device__ inline void load(float (&y)[8], shared<uint16_t> x) { load8(y, x); }
#endif

/* Column c of the query of pair x. */
static __device__ inline at_real query(const struct args &p, const struct quad &w, int x, int c)
{
    const struct at_view *q = &p.a.q, *scale = &p.a.score.qscale;
    int i = row_of(p, x), h = head_of(p, w.g, x);
    at_real y = at_load(q, at_row_offset(&p.a, q, w.b, h, i) + c * q->stride[3]);
    return scale->data ? y * at_load(scale, at_offset(scale, w.b, h, i, 0)) : y;
}
static __device__ inline at_real query(const struct few &p, const struct quad &w, int x, int c)
{
    int64_t row = row_at(p, p.q, w.b, head_of(p, w.g, x), row_of(p, x));
    return at_load(&p.q, row + c * p.q.stride[3]);
}

/* All columns of the four queries, D rounded up to panels; zero where there is none. */
template <class F, class A>
static __device__ inline void queries(shared<at_real> Q, const A &p, const struct quad &w,
                                      int width)
{
    for (int t = (int)threadIdx.x; t < F::G * width; t += F::NT) {
        int x = w.x0 + t / width, c = t % width;
        Q[t] = x < w.pairs && c < (int)p.z.D ? query(p, w, x, c) : 0;
    }
}

/* s[t] += sum of W columns of the thread's key and of pairs first + t. */
template <class F>
static __device__ inline void products(at_real (&s)[F::HT], shared<at_real> Q,
                                       shared<typename F::T> K, int width)
{
#pragma unroll 4
    for (int c = 0; c < F::W; c += F::C) {
        at_real k[F::C], q[4];
        load(k, K + c);
#pragma unroll
        for (int x = 0; x < F::C * F::HT / 4; x++) {
            int t = x % F::HT, e = x / F::HT * 4;
            load4(q, Q + (t * width + c + e));
#pragma unroll
            for (int y = 0; y < 4; y++)
                s[t] = at_fma(q[y], k[e + y], s[t]);
        }
    }
}

/* The scores of the thread's key, where the descriptor may ask for anything. */
template <class F>
static __device__ inline void
finished(shared<at_real> P, shared<int> hidden, const at_real (&s)[F::HT], const struct args &p,
         const struct quad &w, int key, int first, int j0, struct range cut, bool whole)
{
    for (int t = 0; t < F::HT; t++) {
        int x = w.x0 + first + t, i = row_of(p, x), h = head_of(p, w.g, x), j = j0 + key;
        struct range own = whole ? cut : keys_of(&p, w.b, i);
        bool sees = x < w.pairs && key < p.bc && j >= at_max(own.lo, cut.lo) &&
                    j < at_min(own.hi, cut.hi) && seen(&p, w.b, h, i, j);
        at_real y = p.scale * s[t];
        if (!p.plain || p.a.plan.lanes != 1)
            y = sees ? scored(&p, s[t], w.b, h, i, j) : 0;
        P[(first + t) * F::KEYS + key] = sees ? y : -(at_real)INFINITY;
        hidden[(first + t) * F::KEYS + key] = !sees;
    }
}

/* ... where it asks for few things: what is hidden is seen by `weights`. */
template <class F>
static __device__ inline void finished(shared<at_real> P, shared<int>, const at_real (&s)[F::HT],
                                       const struct few &p, const struct quad &, int key, int first,
                                       int, struct range, bool)
{
    for (int t = 0; t < F::HT; t++)
        P[(first + t) * F::KEYS + key] = s[t] * p.scale;
}

/* Scores of one pair to weights, by one warp; m moves on; what earlier sums are worth is returned.
 * own: the pair's keys. */
template <class F, class A>
static __device__ inline at_real weights(shared<at_real> P, shared<int> hidden, at_real &m,
                                         const A &p, const struct quad &w, int j0, struct range own,
                                         bool whole)
{
    int lane = (int)threadIdx.x % 32, x = w.x0 + (int)threadIdx.x / 32;
    at_real s[F::KEYS / 32], top = m, before = m;
    bool hides[F::KEYS / 32];
#pragma unroll
    for (int t = 0; t < F::KEYS / 32; t++) {
        int key = lane + 32 * t;
        s[t] = P[key];
        if constexpr (A::FEW) {
            hides[t] = !whole && (j0 + key < own.lo || j0 + key >= own.hi || key >= p.bc);
            s[t] = hides[t] ? -(at_real)INFINITY : s[t];
        } else {
            hides[t] = !whole && hidden[key];
        }
        top = at_larger(top, s[t]);
    }
    for (int t = 16; t > 0; t /= 2)
        top = at_larger(top, __shfl_xor_sync(~0u, top, t));
    m = top + 0; /* of two zeros the positive one */
#pragma unroll
    for (int t = 0; t < F::KEYS / 32; t++) {
        at_real y = at_weight(s[t], m);
        if constexpr (A::FEW)
            y = hides[t] ? with_sign((at_real)0) : whole ? y : at_canonical(y);
        else if (!whole)
            y = marked(&p, y, hides[t], w.b, head_of(p, w.g, x), row_of(p, x), j0 + lane + 32 * t);
        P[lane + 32 * t] = y;
    }
    return at_worth(before, m);
}

/* u = sum of p v over 4 columns, l = sum of p, in key order. MARKED: see tile.cuh. */
template <class F, bool MARKED>
static __device__ inline void weigh(at_real (&u)[4], at_real &l, shared<at_real> P,
                                    shared<typename F::T> V)
{
#pragma unroll 4
    for (int j = 0; j < F::KEYS; j += 4) {
        at_real p[4], v[4];
        load4(p, P + j);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            load4(v, V + (j + e) * F::W);
            l += MARKED && p[e] < 0 ? -p[e] : p[e];
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (!MARKED || !has_sign(p[e]))
                    u[c] = at_fma(p[e], v[c], u[c]);
        }
    }
}

#endif

/* Exact blocked attention on CUDA cores: the bits of ref/scalar.c under the same plan.
 *
 *     S = Q K^T,  m' = max(m, S),  P = e^(S-m'),  l' = e^(m-m') l + sum P,  u' = e^(m-m') u + P V
 *
 * A block owns BR query rows of one head, and W columns of u, and walks over the tiles of keys that
 * its rows see. Its TX x TY threads stand in a grid: thread (tx,ty) owns rows ty + TY*i, the scores
 * of keys tx + TX*k, and columns 4*(tx + TX*g) .. +3 of u. Every sum lives in one thread and grows
 * in key (or column) order: that is why the bits agree, at no cost [BLISlab: register blocks].
 * K and V take turns in one buffer; each is copied while the other is at work. Differs from
 * scalar.c where a tile is partly hidden: the row passes it with what it sees (tile.cuh, `marked`).
 *
 * Any D: in panels of W columns. Any Dv: a block per panel, which recomputes the scores. Tiles of
 * up to BC keys. Not here: splits (decode.cu). nvcc --fmad=false, for AT_BITS 32 and 64.
 * SPDX-License-Identifier: MIT */
#include "launch.cuh"
#include "micro.cuh"

template <int W_, int BR_, int BC_, int TX_, int TY_, int BLOCKS_> struct shape {
    static constexpr int W = W_, BR = BR_, BC = BC_, TX = TX_, TY = TY_, NT = TX * TY;
    static constexpr int BLOCKS = BLOCKS_;                            /* on one multiprocessor */
    static constexpr int RM = BR / TY, KM = BC / TX, CM = W / TX / 4; /* of one thread */
    static constexpr int LD = W + 4, LP = BC + 4; /* eight rows' vectors fall in eight banks */
    static constexpr int bytes = (BR * LD + BC * LD + BR * LP) * (int)sizeof(at_real) + BR * 8;
    static_assert(RM * KM <= 64 && RM <= TX && TX <= 32, "hidden keys are 64 bits; l by shuffle");
};

/* Where a block and its thread stand. lo, hi: the keys that each row sees, in shared memory. */
struct place {
    int b, h, row0, j0, tx, ty;
    shared<int> lo, hi;
};

/* Raw to finished scores. Where not every score is scale*raw of a visible key, the thread's own
 * cells of P serve as its array, so that one rolled loop can ask everything of every key. Returns a
 * bit for each hidden key; its score is -inf, so that it does not count in the maximum. */
template <class S>
static __device__ inline uint64_t scores(at_real (&s)[S::RM][S::KM], shared<at_real> P,
                                         const struct args &p, const struct place &w, bool simple)
{
    uint64_t hidden = 0;
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
        if (k < (int)p.a.plan.bc && j >= w.lo[r] && j < w.hi[r] && seen(&p, w.b, w.h, i, j))
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
template <class S>
static __device__ inline void mark(shared<at_real> P, uint64_t hidden, const struct args &p,
                                   const struct place &w)
{
#pragma unroll 1
    for (int x = 0; x < S::RM * S::KM; x++) {
        int r = w.ty + x / S::KM * S::TY, k = w.tx + x % S::KM * S::TX;
        P[r * S::LP + k] =
            marked(&p, P[r * S::LP + k], hidden >> x & 1, w.b, w.h, w.row0 + r, w.j0 + k);
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

/* blockIdx.x: head, sequence, panel of Dv; blockIdx.y: rows, those that see most first. */
template <class S>
static __global__ void __launch_bounds__(S::NT, S::BLOCKS)
    attend(const __grid_constant__ struct args p)
{
    constexpr int RM = S::RM, KM = S::KM, CM = S::CM;
    const struct at_attention &a = p.a;
    const struct at_sizes &z = p.z;
    ARENA(all);
    shared<at_real> Q = all.take<at_real>(S::BR * S::LD), KV = all.take<at_real>(S::BC * S::LD);
    shared<at_real> P = all.take<at_real>(S::BR * S::LP);
    int bc = (int)a.plan.bc, Hq = (int)z.Hq, B = (int)z.B, x = (int)blockIdx.x;
    struct place w = {x / Hq % B,
                      x % Hq,
                      (int)(gridDim.y - 1 - blockIdx.y) * S::BR,
                      0,
                      (int)threadIdx.x % S::TX,
                      (int)threadIdx.x / S::TX,
                      all.take<int>(S::BR),
                      all.take<int>(S::BR)};
    int c0 = x / (Hq * B) * S::W, g = w.h / (int)z.group, rows = (int)at_rows_of(&a, &z, w.b);
    struct range mine = {w.row0, (int)at_min(w.row0 + S::BR, rows)};
    struct range first = keys_of(&p, w.b, w.row0), last = keys_of(&p, w.b, mine.hi - 1);
    struct range block = {first.lo, last.hi}; /* spans move on with i: these bound them all */
    struct source q = {&a.q, &a.score.qscale, w.b, w.h, false, p.direct_q};
    struct source k = {&a.k, &a.score.kscale, w.b, g, true, p.direct_k};
    struct source v = {&a.v, &a.score.vscale, w.b, g, true, p.direct_v};
    for (int r = (int)threadIdx.x; r < S::BR; r += S::NT) {
        struct range one = keys_of(&p, w.b, w.row0 + r);
        w.lo[r] = one.lo, w.hi[r] = one.hi;
    }
    at_real m[RM], l[RM] = {}, u[RM][CM * 4] = {};
    for (int i = 0; i < RM; i++)
        m[i] = -(at_real)INFINITY;
    w.j0 = block.lo / bc * bc;
    bool work = mine.lo < mine.hi && w.j0 < block.hi;
    if (work) {
        stage<S::BR, S::W, S::LD, S::NT>(Q, &a, q, w.row0, mine, 0);
        stage<S::BC, S::W, S::LD, S::NT>(KV, &a, k, w.j0, block, 0);
    }
    for (; work && w.j0 < block.hi; w.j0 += bc) { /* key tiles */
        at_real s[RM][KM] = {}, worth[RM], lt = 0, ut[RM][CM * 4] = {};
        bool whole = w.j0 >= last.lo && w.j0 + S::BC <= first.hi && bc == S::BC && !p.sparse &&
                     !at_drops(&a);
        wait_copies<0>();
        __syncthreads(); /* Q and K are here */
        products<S>(s, Q, KV, w.tx, w.ty);
        for (int d = S::W; d < (int)z.D; d += S::W) { /* panels of columns */
            __syncthreads();                          /* the panel before is read */
            stage<S::BR, S::W, S::LD, S::NT>(Q, &a, q, w.row0, mine, d);
            stage<S::BC, S::W, S::LD, S::NT>(KV, &a, k, w.j0, block, d);
            wait_copies<0>();
            __syncthreads(); /* this one is here */
            products<S>(s, Q, KV, w.tx, w.ty);
        }
        uint64_t hidden = scores<S>(s, P, p, w, whole && p.plain && a.plan.lanes == 1);
        __syncthreads(); /* Q and K are read */
        stage<S::BC, S::W, S::LD, S::NT>(KV, &a, v, w.j0, block, c0);
        weights<S>(s, m, worth, P, w.tx, w.ty);
        if (!whole)
            mark<S>(P, hidden, p, w);
        wait_copies<0>();
        __syncthreads(); /* V and P are here */
        if (whole)
            weigh<S, false>(ut, lt, P, KV, w.tx, w.ty);
        else
            weigh<S, true>(ut, lt, P, KV, w.tx, w.ty);
#pragma unroll
        for (int i = 0; i < RM; i++) {
            l[i] = at_take(worth[i], l[i], __shfl_sync(~0u, lt, i, S::TX));
#pragma unroll
            for (int c = 0; c < CM * 4; c++)
                u[i][c] = at_take(worth[i], u[i][c], ut[i][c]);
        }
        __syncthreads(); /* V and P are read */
        if (w.j0 + bc >= block.hi)
            break;
        if (z.D > S::W)
            stage<S::BR, S::W, S::LD, S::NT>(Q, &a, q, w.row0, mine, 0);
        stage<S::BC, S::W, S::LD, S::NT>(KV, &a, k, w.j0 + bc, block, 0);
    }
    finish<S>(m, l, u, Q, P, p, w, c0);
}

/* -- Host -------------------------------------------------------------------------------------- */

template <class S> static enum at_status go(struct job *x)
{
    int64_t panels = (x->p.z.Dv + S::W - 1) / S::W, blocks = (x->p.z.Sq + S::BR - 1) / S::BR;
    return launch(x, attend<S>, "attend", x->p.z.Hq * x->p.z.B * panels, blocks, 1, S::NT,
                  S::bytes);
}

/*                  W  BR   BC  TX  TY  blocks */
static enum at_status dispatch(struct at_gpu_job *job)
{
    struct job *x = (struct job *)job;
    int64_t bc = x->p.a.plan.bc, wide = at_max(x->p.z.D, x->p.z.Dv);
    if (bc > 128 || x->p.splits > 1)
        return trouble(AT_ERR_UNSUPPORTED, "one split, and key tiles of up to 128 keys", "");
#ifndef __CUDACC__
    if (bc <= 16 && !at_emulation()->device_tiles)
        return go<shape<16, 32, 16, 4, 16, 1>>(x);
    if (bc <= 64 && !at_emulation()->device_tiles)
        return go<shape<32, 32, 64, 8, 16, 1>>(x);
#endif
#if AT_BITS == 32
    if (bc <= 64)
        return wide <= 64 ? go<shape<64, 128, 64, 8, 16, 2>>(x)
                          : go<shape<128, 64, 64, 8, 16, 2>>(x);
    return go<shape<128, 128, 128, 16, 16, 1>>(x);
#else
    (void)wide;
    return bc <= 64 ? go<shape<64, 64, 64, 8, 16, 1>>(x) : go<shape<64, 64, 128, 16, 8, 1>>(x);
#endif
}

RUN(attention, BITS, dispatch)

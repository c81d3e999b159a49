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
#include "steps.cuh"

template <int W_, int BR_, int BC_, int TX_, int TY_, int BLOCKS_> struct shape {
    static constexpr int W = W_, BR = BR_, BC = BC_, TX = TX_, TY = TY_, NT = TX * TY;
    static constexpr int BLOCKS = BLOCKS_;                            /* on one multiprocessor */
    static constexpr int RM = BR / TY, KM = BC / TX, CM = W / TX / 4; /* of one thread */
    static constexpr int LD = W + 4, LP = BC + 4; /* eight rows' vectors fall in eight banks */
    static constexpr int bytes = (BR * LD + BC * LD + BR * LP) * (int)sizeof(at_real) + BR * 8;
    static_assert(RM * KM <= 64 && RM <= TX && TX <= 32, "hidden keys are 64 bits; l by shuffle");
};

/* blockIdx.x: head, sequence, panel of Dv; blockIdx.y: rows, those that see most first. */
template <class S, class A>
static __global__ void __launch_bounds__(S::NT, S::BLOCKS) attend(const __grid_constant__ A p)
{
    constexpr int RM = S::RM, KM = S::KM, CM = S::CM;
    ARENA(all);
    shared<at_real> Q = all.take<at_real>(S::BR * S::LD), KV = all.take<at_real>(S::BC * S::LD);
    shared<at_real> P = all.take<at_real>(S::BR * S::LP);
    int bc = p.bc, Hq = (int)p.z.Hq, B = (int)p.z.B, D = A::FEW ? S::W : (int)p.z.D,
        x = (int)blockIdx.x;
    struct place w = {x / Hq % B,
                      x % Hq,
                      (int)(gridDim.y - 1 - blockIdx.y) * S::BR,
                      0,
                      (int)threadIdx.x % S::TX,
                      (int)threadIdx.x / S::TX,
                      all.take<int>(S::BR),
                      all.take<int>(S::BR)};
    int c0 = x / (Hq * B) * S::W, g = w.h / (int)p.z.group, rows = rows_of(p, w.b);
    struct range mine = {w.row0, (int)at_min(w.row0 + S::BR, rows)};
    struct range first = keys_of(&p, w.b, w.row0), last = keys_of(&p, w.b, mine.hi - 1);
    struct range block = {first.lo, last.hi}; /* spans move on with i: these bound them all */
    auto q = q_of<at_real>(p, w.b, w.h), k = k_of<at_real>(p, w.b, g), v = v_of<at_real>(p, w.b, g);
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
        stage<S::BR, S::W, S::LD, S::NT>(Q, p, q, w.row0, mine, 0);
        stage<S::BC, S::W, S::LD, S::NT>(KV, p, k, w.j0, block, 0);
    }
    for (; work && w.j0 < block.hi; w.j0 += bc) { /* key tiles */
        at_real s[RM][KM] = {}, worth[RM], lt = 0, ut[RM][CM * 4] = {};
        bool whole = w.j0 >= last.lo && w.j0 + S::BC <= first.hi && bc == S::BC && simple(p);
        wait_copies<0>();
        __syncthreads(); /* Q and K are here */
        products<S>(s, Q, KV, w.tx, w.ty);
        for (int d = S::W; d < D; d += S::W) { /* panels of columns */
            __syncthreads();                   /* the panel before is read */
            stage<S::BR, S::W, S::LD, S::NT>(Q, p, q, w.row0, mine, d);
            stage<S::BC, S::W, S::LD, S::NT>(KV, p, k, w.j0, block, d);
            wait_copies<0>();
            __syncthreads(); /* this one is here */
            products<S>(s, Q, KV, w.tx, w.ty);
        }
        uint64_t hidden = finished<S>(s, P, p, w, whole);
        __syncthreads(); /* Q and K are read */
        stage<S::BC, S::W, S::LD, S::NT>(KV, p, v, w.j0, block, c0);
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
        if (D > S::W)
            stage<S::BR, S::W, S::LD, S::NT>(Q, p, q, w.row0, mine, 0);
        stage<S::BC, S::W, S::LD, S::NT>(KV, p, k, w.j0 + bc, block, 0);
    }
    finish<S>(m, l, u, Q, P, p, w, c0);
}

/* -- Host -------------------------------------------------------------------------------------- */

/* Rows of out take four numbers of the working type at a time. */
static inline bool fours(const struct args *p)
{
    struct at_view none = {};
    return p->direct_q && p->direct_k && p->direct_v && p->z.Dv % 4 == 0 &&
           direct(&p->to.out, &none, AT_BITS == 32 ? AT_F32 : AT_F64);
}

template <class S> static enum at_status go(struct job *x)
{
    struct few few;
    int64_t panels = (x->p.z.Dv + S::W - 1) / S::W, blocks = (x->p.z.Sq + S::BR - 1) / S::BR;
    int64_t heads = x->p.z.Hq * x->p.z.B * panels;
    if (asks_few(&x->p, S::W, &few) && fours(&x->p))
        return launch(few, attend<S, struct few>, "attend", heads, blocks, 1, S::NT, S::bytes);
    return launch(x->p, attend<S, struct args>, "attend", heads, blocks, 1, S::NT, S::bytes);
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

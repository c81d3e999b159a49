/* Split-KV decode: few queries, long keys. The bits of ref/scalar.c under the same plan.
 *
 *     a split's state (m,l,u) as in attention.cu;  then x = x (+) y over the splits, in key order
 *
 * A block owns four pairs (query row, head) that share a key head, W columns of u, and the keys of
 * one split; K and V are read once for the four. In a tile of keys (1) a thread owns one key and HT
 * pairs: a score is one chain over the columns; (2) a warp owns one pair: its lanes are keys for
 * the weights, then columns for P V, each a chain over keys. K of the next tile is copied during P
 * V, V during the scores. `merge` then joins a row's states: the factors of every step need only
 * the maxima before it, so they are found side by side; in sequence remain two products and a sum.
 *
 * K and V stay as stored where they are bf16 (T), else become the working type on their way.
 * Not here: other merge orders and more than SPLITS splits (at_forward).
 *
 * SPDX-License-Identifier: MIT */
#include "pairs.cuh"

/* blockIdx: split and sequence; key head; four pairs and panel of Dv. */
template <class F, class A>
static __global__ void __launch_bounds__(F::NT, A::FEW ? 6 : 1) decode(const __grid_constant__ A p)
{
    typedef typename F::T T;
    int group = (int)p.z.group, bc = p.bc, n = (int)blockIdx.x, quad = (int)blockIdx.z, c0 = 0;
    if (!A::FEW) {
        int quads = ((int)p.z.Sq * group + F::G - 1) / F::G;
        c0 = quad / quads * F::W, quad %= quads;
    }
    int width = A::FEW ? F::W : ((int)p.z.D + F::W - 1) / F::W * F::W;
    ARENA(all);
    shared<at_real> Q = all.take<at_real>(F::G * width);
    shared<at_real> P = all.take<at_real>(F::G * F::KEYS);
    shared<int> hidden = all.take<int>(F::G * F::KEYS);
    shared<T> K = all.take<T>(F::KEYS * F::LD);
    shared<T> V = all.take<T>(F::KEYS * F::W);
    int b = n < p.splits ? 0 : n / p.splits; /* a division is long */
    struct quad w = {b, (int)blockIdx.y, quad * F::G, 0, n - b * p.splits};
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32,
        key = (int)threadIdx.x % F::KEYS;
    int first = (int)threadIdx.x / F::KEYS * F::HT;
    w.pairs = rows_of(p, w.b) * group;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion(); /* merge may be put in place; it waits for us */
#endif
    struct range cut = {p.cut[w.split], p.cut[w.split + 1]};
    int most = (int)at_min(w.x0 + F::G, w.pairs) - 1, i0 = row_of(p, w.x0), i1 = row_of(p, most);
    struct range one = keys_of(&p, w.b, i0), last = i1 == i0 ? one : keys_of(&p, w.b, i1);
    struct range block = {(int)at_max(one.lo, cut.lo), (int)at_min(last.hi, cut.hi)}, own = one;
    if (most < w.x0)
        block.hi = block.lo;
    if (block.lo >= block.hi && p.splits > 1)
        return; /* merge does not ask for it */
    auto k = k_of<T>(p, w.b, w.g), v = v_of<T>(p, w.b, w.g);
    at_real m = -(at_real)INFINITY, l = 0, u[4] = {};
    int j0 = block.lo / bc * bc, column = 4 * (lane % (F::W / 4));
    stage<F::KEYS, F::W, F::LD, F::NT>(K, p, k, j0, block, 0);
    stage<F::KEYS, F::W, F::W, F::NT>(V, p, v, j0, block, c0);
    if (A::FEW && i1 != i0)
        own = keys_of(&p, w.b, row_of(p, w.x0 + warp));
    own.lo = (int)at_max(own.lo, cut.lo), own.hi = (int)at_min(own.hi, cut.hi);
    queries<F>(Q, p, w, width);
    for (; j0 < block.hi; j0 += bc) { /* key tiles */
        at_real s[F::HT] = {}, lt = 0, ut[4] = {};
        bool whole = j0 >= at_max(last.lo, cut.lo) && j0 + F::KEYS <= at_min(one.hi, cut.hi) &&
                     bc == F::KEYS && simple(p);
        wait_copies<1>();
        __syncthreads(); /* K is here */
        products<F>(s, Q + first * width, K + key * F::LD, width);
        for (int d = F::W; d < width; d += F::W) { /* panels of columns */
            __syncthreads();                       /* the panel before is read */
            stage<F::KEYS, F::W, F::LD, F::NT>(K, p, k, j0, block, d);
            wait_copies<0>();
            __syncthreads(); /* this one is here */
            products<F>(s, Q + (first * width + d), K + key * F::LD, width);
        }
        finished<F>(P, hidden, s, p, w, key, first, j0, cut, whole);
        __syncthreads(); /* scores are here, K is read */
        stage<F::KEYS, F::W, F::LD, F::NT>(K, p, k, j0 + bc, block, 0);
        at_real worth =
            weights<F>(P + warp * F::KEYS, hidden + warp * F::KEYS, m, p, w, j0, own, whole);
        wait_copies<1>();
        __syncthreads(); /* weights and V are here */
        if (whole)
            weigh<F, false>(ut, lt, P + warp * F::KEYS, V + column);
        else
            weigh<F, true>(ut, lt, P + warp * F::KEYS, V + column);
        l = at_take(worth, l, lt);
        for (int c = 0; c < 4; c++)
            u[c] = at_take(worth, u[c], ut[c]);
        __syncthreads(); /* V and P are read */
        stage<F::KEYS, F::W, F::W, F::NT>(V, p, v, j0 + bc, block, c0);
    }
    wait_copies<0>();
    struct at_row row = {m, l, u};
    store(p, w, warp, lane < F::W / 4 ? c0 + column : p.width, row);
}

/* -- Host -------------------------------------------------------------------------------------- */

template <class F, class A> static enum at_status both(const A &p)
{
    int64_t quads = (p.z.Sq * p.z.group + F::G - 1) / F::G, panels = (p.z.Dv + F::W - 1) / F::W;
    int64_t width = (p.z.D + F::W - 1) / F::W * F::W, real = sizeof(at_real);
    int64_t bytes = F::G * (width + F::KEYS) * real + F::G * F::KEYS * 4 +
                    F::KEYS * (F::LD + F::W) * (int64_t)sizeof(typename F::T);
    enum at_status status = launch(p, decode<F, A>, "decode", (int64_t)p.splits * p.z.B, p.z.Hkv,
                                   quads * panels, F::NT, (int)bytes);
    if (status == AT_OK && p.splits > 1)
        status = launch(p, merge<A>, "merge", (int64_t)p.z.B * p.z.Hq * p.z.Sq, 1, 1, JOINERS,
                        SPLITS * 4 + (8 + (4 + p.splits) * SPLITS) * (int)real, true);
    return status;
}

template <class F> static enum at_status go(struct job *x)
{
    struct args *p = &x->p;
    struct few few;
    int64_t states = p->z.B * p->z.Hq * p->z.Sq * p->splits, real = sizeof(at_real);
    p->width = (int)((p->z.Dv + F::W - 1) / F::W * F::W);
    void *m = p->m, *l = p->l, *u = p->u;
    enum at_status status = AT_OK;
    if (p->splits > 1 && !p->u) { /* kept for later launches of this job */
        status = take(x, (size_t)(states * real), &m);
        status = status == AT_OK ? take(x, (size_t)(states * real), &l) : status;
        status = status == AT_OK ? take(x, (size_t)(states * p->width * real), &u) : status;
        p->m = (at_real *)m, p->l = (at_real *)l, p->u = (at_real *)u;
    }
    if (status != AT_OK)
        return status;
    if ((sizeof(typename F::T) == 2 || (p->direct_k && p->direct_v)) && asks_few(p, F::W, &few))
        return both<F>(few);
    return both<F>(*p);
}

static enum at_status dispatch(struct at_gpu_job *job)
{
    struct job *x = (struct job *)job;
    struct args *p = &x->p;
    int64_t bc = p->a.plan.bc, wide = at_max(p->z.D, p->z.Dv);
    if (bc > 64 || p->z.D > 2048)
        return trouble(AT_ERR_UNSUPPORTED, "decode has tiles of up to 64 keys, rows of up to 2048",
                       "");
#ifndef __CUDACC__
    if (!at_emulation()->device_tiles)
        return bc <= 32 ? go<form<at_real, 32, 32>>(x) : go<form<at_real, 32, 64>>(x);
#endif
#if AT_BITS == 32
    if (p->stored)
        return wide <= 64 ? go<form<uint16_t, 64, 64>>(x) : go<form<uint16_t, 128, 64>>(x);
    return wide <= 64 ? go<form<at_real, 64, 64>>(x) : go<form<at_real, 128, 64>>(x);
#else
    (void)wide;
    return go<form<at_real, 64, 64>>(x);
#endif
}

RUN(decode, BITS, dispatch)

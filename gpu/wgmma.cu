/* Prefill on Hopper's tensor cores with wgmma (sm_90a only): bf16 or fp16 in, fp32 sums.
 *
 *     S = Q K^T,  P = 2^(S c - m c) rounded to 16 bits,  u = 2^(m c - m' c) u + P V,  out = u / l
 *
 * A block owns BR = 64*NWG query rows of one head, a warpgroup 64 of them. Tiles lie in shared
 * memory as [D/64][rows][64] 16-bit numbers, piece c of row r at c ^ (r & 7): wgmma's 128-byte
 * swizzle. Q is read there by descriptor, P comes from registers, K and V have two buffers each and
 * one barrier a tile. Differs from mma.cu: four warps multiply at once and read both operands of S
 * from shared memory; a warpgroup whose rows see nothing of a tile leaves it out. Not here: TMA, a
 * producer warp, two tiles in flight.
 * SPDX-License-Identifier: MIT */
#include "warpgroup.cuh"

template <class T_, int D_, int BC_, int NWG_> struct shape {
    typedef T_ T;
    static constexpr int D = D_, BC = BC_, NWG = NWG_, BR = 64 * NWG, NT = 128 * NWG;
    static constexpr int bytes = (BR + 4 * BC) * D * 2 + BR * 8;
};

template <int D_, int ROWS_> struct swizzled {
    static constexpr int D = D_, ROWS = ROWS_;
    static __device__ int at(int r, int c)
    {
        return (c / 8 * ROWS + r) * 64 + ((c & 7) ^ (r & 7)) * 8;
    }
};

/* The warpgroups' scores in turn: one's exponentials run beside the next one's product. */
static __device__ inline void take_turn(int team)
{
    if (team > 0)
        asm volatile("bar.sync %0, 256;" ::"r"(team) : "memory");
}
static __device__ inline void pass_turn(int team, int teams)
{
    if (team + 1 < teams)
        asm volatile("bar.arrive %0, 256;" ::"r"(team + 1) : "memory");
}

/* s = Q K^T for the warpgroup's 64 rows: under way until `end`. */
template <class S>
static __device__ inline void products(float (&s)[S::BC / 64][8][4], const uint16_t *Q,
                                       const uint16_t *K)
{
    pin(s);
    begin();
#pragma unroll
    for (int x = 0; x < S::D / 16; x++)
        multiply<typename S::T>(s, operand(Q + x / 4 * S::BR * 64 + x % 4 * 16, 1024),
                                operand(K + x / 4 * S::BC * 64 + x % 4 * 16, 1024), x > 0);
    sent();
}

/* u += P V: the accumulators of two score tiles are one A operand. */
template <class S>
static __device__ inline void weigh(float (&u)[S::D / 64][8][4], const float (&s)[S::BC / 64][8][4],
                                    const uint16_t *V)
{
    uint32_t a[S::BC / 16][4];
#pragma unroll
    for (int x = 0; x < S::BC / 4; x++) {
        const float *pair = &s[x / 16][x / 4 % 4 * 2 + x % 4 / 2][x % 2 * 2];
        a[x / 4][x % 4] = pack<typename S::T>(pair[0], pair[1]);
        asm volatile("" : "+r"(a[x / 4][x % 4])::"memory"); /* before the product begins */
    }
    pin(u);
    begin();
#pragma unroll
    for (int x = 0; x < S::BC / 16; x++)
        multiply<typename S::T>(u, a[x], operand(V + 16 * x * 64, S::BC * 128));
    sent();
    end();
    pin(u);
}

/* Tiles of K and V from key j0, where there are any. */
template <class S, class X>
static __device__ inline void bring(uint16_t *K, uint16_t *V, const struct args &p, const X &k,
                                    const X &v, int j0, struct range block)
{
    if (j0 < block.hi) {
        stage16<swizzled<S::D, S::BC>, S::NT>(K, &p.a, k, j0, block);
        stage16<swizzled<S::D, S::BC>, S::NT>(V, &p.a, v, j0, block);
    }
    commit();
}

/* blockIdx.x: head and sequence; blockIdx.y: rows, those that see most first. */
template <class S, bool PAGED>
static __global__ void __launch_bounds__(S::NT) attend_wgmma(const __grid_constant__ struct args p)
{
    constexpr int D = S::D, BC = S::BC;
    extern __shared__ __align__(1024) uint4 aligned_shared[];
    uint16_t *Q = (uint16_t *)aligned_shared, *K = Q + S::BR * D, *V = K + 2 * BC * D;
    struct range *seen = (struct range *)(V + 2 * BC * D);
    int b = (int)blockIdx.x / (int)p.z.Hq, h = (int)blockIdx.x % (int)p.z.Hq,
        g = h / (int)p.z.group;
    int lane = (int)threadIdx.x % 32,
        row = __shfl_sync(~0u, (int)threadIdx.x / 32 * 16, 0), /* uniform */
        team = row / 64;
    int row0 = (int)(gridDim.y - 1 - blockIdx.y) * S::BR;
    struct range mine = {row0, min(row0 + S::BR, (int)at_rows_of(&p.a, &p.z, b))};
    struct range first = keys_of(&p, b, row0), last = keys_of(&p, b, mine.hi - 1);
    struct range block = {first.lo, mine.lo < mine.hi ? last.hi : first.lo};
    auto q = rows_from<false>(p, p.a.q, b, h, false);
    auto k = rows_from<PAGED>(p, p.a.k, b, g, true), v = rows_from<PAGED>(p, p.a.v, b, g, true);
    const struct range *top = seen + 64 * team, /* the warpgroup's first row and last */
        *bottom = seen + min(64 * team + 63, mine.hi - 1 - row0);
    float u[D / 64][8][4] = {}, s[BC / 64][8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {}, old;
    bool dirty = false;
    for (int r = (int)threadIdx.x; r < S::BR; r += S::NT)
        seen[r] = keys_of(&p, b, row0 + r);
    seen += row + lane / 4; /* this lane's rows: here and 8 below */
    int j0 = block.lo / BC * BC, turn = 0;
    stage16<swizzled<D, S::BR>, S::NT>(Q, &p.a, q, row0, mine);
    bring<S>(K, V, p, k, v, j0, block);
    for (; j0 < block.hi; j0 += BC, turn = BC * D - turn) { /* key tiles */
        bool whole = j0 >= last.lo && j0 + BC <= first.hi;
        wait_copies<0>();
        fence_async();
        __syncthreads(); /* this step's tiles are here, the other buffers are read */
        bool busy = top <= bottom && j0 < bottom->hi && j0 + BC > top->lo;
        if (!whole)
            dirty = clean<typename S::T, S::NT>(V + turn, BC * D) || dirty;
        take_turn(team);
        if (!busy) {
            pass_turn(team, S::NWG);
            bring<S>(K + BC * D - turn, V + BC * D - turn, p, k, v, j0 + BC, block);
            continue;
        }
        products<S>(s, Q + 64 * team * 64, K + turn);
        pass_turn(team, S::NWG);
        bring<S>(K + BC * D - turn, V + BC * D - turn, p, k, v, j0 + BC, block);
        end(); /* of the product */
        pin(s);
        whole = j0 >= bottom->lo && j0 + BC <= top->hi;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            float *one[BC / 4];
#pragma unroll
            for (int y = 0; y < BC / 4; y++)
                one[y] = &s[y / 16][y / 2 % 8][2 * w + y % 2];
            if (!whole)
                hide<BC / 4>(one, seen[8 * w], j0 + lane % 4 * 2);
            weights<BC / 4>(one, m[w], l[w], old, p.base2);
#pragma unroll
            for (int y = 0; y < D / 4; y++)
                u[y / 16][y / 2 % 8][2 * w + y % 2] *= old;
        }
        weigh<S>(u, s, V + turn);
    }
    if (dirty) /* what the partly seen tiles lack */
#pragma unroll
        for (int x = 0; x < D / 2; x++)
            u[x / 32][x / 4 % 8][x % 4] +=
                unclean<BC>(&p, b, g, seen[x % 4 / 2 * 8], range{last.lo, first.hi},
                            x / 4 * 8 + lane % 4 * 2 + x % 2);
    wait_copies<0>();
#pragma unroll
    for (int w = 0; w < 2; w++) {
        const float *one[D / 4];
#pragma unroll
        for (int y = 0; y < D / 4; y++)
            one[y] = &u[y / 16][y / 2 % 8][2 * w + y % 2];
        row_end<D / 4>(p, b, h, row0 + row + lane / 4 + 8 * w, lane % 4 * 2, m[w], l[w], one);
    }
}

/* -- Host -------------------------------------------------------------------------------------- */

template <class S> static enum at_status go(struct job *x)
{
    int64_t heads = x->p.z.Hq * x->p.z.B, blocks = (x->p.z.Sq + S::BR - 1) / S::BR;
    void (*kernel)(const struct args) =
        x->p.a.pages.table ? attend_wgmma<S, true> : attend_wgmma<S, false>;
    return launch(x->p, kernel, "attend_wgmma", heads, blocks, 1, S::NT, S::bytes);
}

/*                      T   D    BC  NWG */
template <class T> static enum at_status typed(struct job *x)
{
    return x->p.z.D == 64 ? go<shape<T, 64, 128, 4>>(x) : go<shape<T, 128, 128, 3>>(x);
}

static enum at_status dispatch(struct at_gpu_job *job)
{
    struct job *x = (struct job *)job;
    enum at_status status = served(&x->p);
    if (status != AT_OK)
        return status;
    return x->p.a.q.dtype == AT_BF16 ? typed<bf16>(x) : typed<fp16>(x);
}

RUN(wgmma, , dispatch)

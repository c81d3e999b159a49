/* Prefill on tensor cores with mma.sync m16n8k16 (sm_80 and later): bf16 or fp16 in, fp32 sums.
 *
 *     S = Q K^T,  P = 2^(S c - m c) rounded to 16 bits,  u = 2^(m c - m' c) u + P V,  out = u / l
 *
 * A block owns BR = 16*WM*NW query rows of one head, a warp 16*WM of them. Tiles lie in shared
 * memory as rows of 16-byte pieces, piece c of row r at c ^ (r & 7), so that ldmatrix finds 8 rows
 * in 8 bank groups. The accumulators of two score tiles are one A operand of P V: P never leaves
 * the registers. K and V have one buffer each, loaded while the other is at work.
 * Differs from attention.cu: sums run across tiles, inside the tensor core, which truncates; the
 * arithmetic is stated (engines.c), not the scalar's bits. SPDX-License-Identifier: MIT */
#include "tensor.cuh"

template <class T_, int D_, int BC_, int WM_, int NW_, int BLOCKS_> struct shape {
    typedef T_ T;
    static constexpr int D = D_, BC = BC_, WM = WM_, NW = NW_, BLOCKS = BLOCKS_;
    static constexpr int BR = 16 * WM * NW, NT = 32 * NW, bytes = (BR + 2 * BC) * D * 2 + BR * 8;
};

template <int D_, int ROWS_> struct swizzled {
    static constexpr int D = D_, ROWS = ROWS_;
    static __device__ int at(int r, int c) { return r * D + (c ^ (r & 7)) * 8; }
};

template <class T>
static __device__ inline void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    if (T::dtype == AT_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four 8x8 matrices; this lane's address is of a piece of one of their rows. */
static __device__ inline void ldmatrix(uint32_t (&x)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

/* ... transposed: V's keys run down its rows. */
static __device__ inline void ldmatrix_t(uint32_t (&x)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

/* Where row r, piece c of a tile is; piece c + 2x of that row is 32x bytes off, by exclusive or. */
template <int D> static __device__ inline unsigned piece(const uint16_t *tile, int r, int c)
{
    return (unsigned)__cvta_generic_to_shared(tile + swizzled<D, 1>::at(r, c));
}

/* s += Q K^T, 16 columns a step. */
template <class S>
static __device__ inline void products(float (&s)[S::WM][S::BC / 8][4], const uint16_t *Q,
                                       const uint16_t *K, int row, int lane)
{
    unsigned q = piece<S::D>(Q, row + lane % 16, lane / 16),
             k = piece<S::D>(K, lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
    for (int x = 0; x < S::D / 16; x++) {
        uint32_t a[S::WM][4], b[4];
#pragma unroll
        for (int w = 0; w < S::WM; w++)
            ldmatrix(a[w], (q ^ 32 * x) + 32 * w * S::D);
#pragma unroll
        for (int y = 0; y < S::BC / 16; y++) {
            ldmatrix(b, (k ^ 32 * x) + 32 * y * S::D);
#pragma unroll
            for (int w = 0; w < S::WM; w++) {
                mma<typename S::T>(s[w][2 * y], a[w], b[0], b[1]);
                mma<typename S::T>(s[w][2 * y + 1], a[w], b[2], b[3]);
            }
        }
    }
}

/* u += P V, 16 keys a step. */
template <class S>
static __device__ inline void weigh(float (&u)[S::WM][S::D / 8][4],
                                    const float (&s)[S::WM][S::BC / 8][4], const uint16_t *V,
                                    int lane)
{
    unsigned v = piece<S::D>(V, lane % 16, lane / 16);
#pragma unroll
    for (int x = 0; x < S::BC / 16; x++) {
        uint32_t a[S::WM][4], b[4];
#pragma unroll
        for (int w = 0; w < S::WM; w++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                a[w][e] = pack<typename S::T>(s[w][2 * x + e / 2][e % 2 * 2],
                                              s[w][2 * x + e / 2][e % 2 * 2 + 1]);
#pragma unroll
        for (int y = 0; y < S::D / 16; y++) {
            ldmatrix_t(b, (v ^ 32 * y) + 32 * x * S::D);
#pragma unroll
            for (int w = 0; w < S::WM; w++) {
                mma<typename S::T>(u[w][2 * y], a[w], b[0], b[1]);
                mma<typename S::T>(u[w][2 * y + 1], a[w], b[2], b[3]);
            }
        }
    }
}

/* blockIdx.x: head and sequence; blockIdx.y: rows, those that see most first. */
template <class S, bool PAGED>
static __global__ void __launch_bounds__(S::NT, S::BLOCKS)
    attend_mma(const __grid_constant__ struct args p)
{
    constexpr int D = S::D, BC = S::BC, WM = S::WM;
    typedef swizzled<D, BC> tile;
    extern __shared__ __align__(1024) uint4 aligned_shared[];
    uint16_t *Q = (uint16_t *)aligned_shared, *K = Q + S::BR * D, *V = K + BC * D;
    struct range *seen = (struct range *)(V + BC * D);
    int b = (int)blockIdx.x / (int)p.z.Hq, h = (int)blockIdx.x % (int)p.z.Hq,
        g = h / (int)p.z.group;
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16 * WM;
    int row0 = (int)(gridDim.y - 1 - blockIdx.y) * S::BR;
    struct range mine = {row0, min(row0 + S::BR, (int)at_rows_of(&p.a, &p.z, b))};
    struct range first = keys_of(&p, b, row0), last = keys_of(&p, b, mine.hi - 1);
    struct range block = {first.lo, mine.lo < mine.hi ? last.hi : first.lo};
    auto q = rows_from<false>(p, p.a.q, b, h, false);
    auto k = rows_from<PAGED>(p, p.a.k, b, g, true), v = rows_from<PAGED>(p, p.a.v, b, g, true);
    float u[WM][D / 8][4] = {}, m[WM][2], l[WM][2] = {}, old;
    bool dirty = false;
#pragma unroll
    for (int w = 0; w < WM * 2; w++)
        m[w / 2][w % 2] = -INFINITY;
    for (int r = (int)threadIdx.x; r < S::BR; r += S::NT)
        seen[r] = keys_of(&p, b, row0 + r);
    seen += row + lane / 4; /* this lane's rows: every eighth from here */
    int j0 = block.lo / BC * BC;
    stage16<swizzled<D, S::BR>, S::NT>(Q, &p.a, q, row0, mine);
    stage16<tile, S::NT>(K, &p.a, k, j0, block);
    commit();
    for (; j0 < block.hi; j0 += BC) { /* key tiles */
        float s[WM][BC / 8][4] = {};
        bool whole = j0 >= last.lo && j0 + BC <= first.hi;
        wait_copies<0>();
        __syncthreads(); /* K is here, V of the tile before is read */
        stage16<tile, S::NT>(V, &p.a, v, j0, block);
        commit();
        products<S>(s, Q, K, row, lane);
        wait_copies<0>();
        __syncthreads(); /* V is here, K is read */
        if (!whole)
            dirty = clean<typename S::T, S::NT>(V, BC * D) || dirty;
        stage16<tile, S::NT>(K, &p.a, k, j0 + BC, block);
        commit();
#pragma unroll
        for (int w = 0; w < WM * 2; w++) {
            float *one[BC / 4];
#pragma unroll
            for (int y = 0; y < BC / 4; y++)
                one[y] = &s[w / 2][y / 2][w % 2 * 2 + y % 2];
            if (!whole)
                hide<BC / 4>(one, seen[8 * w], j0 + lane % 4 * 2);
            weights<BC / 4>(one, m[w / 2][w % 2], l[w / 2][w % 2], old, p.base2);
#pragma unroll
            for (int y = 0; y < D / 4; y++)
                u[w / 2][y / 2][w % 2 * 2 + y % 2] *= old;
        }
        weigh<S>(u, s, V, lane);
    }
    if (dirty) /* what the partly seen tiles lack */
#pragma unroll
        for (int x = 0; x < WM * D / 2; x++) {
            int y = x % (D / 4) / 2, e = x % 2;
            u[x / (D / 2)][y][x / (D / 4) % 2 * 2 + e] +=
                unclean<BC>(&p, b, g, seen[x / (D / 4) * 8], range{last.lo, first.hi},
                            8 * y + lane % 4 * 2 + e);
        }
    wait_copies<0>();
#pragma unroll
    for (int w = 0; w < WM * 2; w++) {
        const float *one[D / 4];
#pragma unroll
        for (int y = 0; y < D / 4; y++)
            one[y] = &u[w / 2][y / 2][w % 2 * 2 + y % 2];
        row_end<D / 4>(p, b, h, row0 + row + lane / 4 + 8 * w, lane % 4 * 2, m[w / 2][w % 2],
                       l[w / 2][w % 2], one);
    }
}

/* -- Host -------------------------------------------------------------------------------------- */

template <class S> static enum at_status go(struct job *x)
{
    int64_t heads = x->p.z.Hq * x->p.z.B, blocks = (x->p.z.Sq + S::BR - 1) / S::BR;
    void (*kernel)(const struct args) =
        x->p.a.pages.table ? attend_mma<S, true> : attend_mma<S, false>;
    return launch(x->p, kernel, "attend_mma", heads, blocks, 1, S::NT, S::bytes);
}

/*                      T    D   BC  WM NW blocks */
template <class T> static enum at_status typed(struct job *x)
{
    return x->p.z.D == 64 ? go<shape<T, 64, 128, 2, 4, 2>>(x) : go<shape<T, 128, 64, 2, 4, 2>>(x);
}

static enum at_status dispatch(struct at_gpu_job *job)
{
    struct job *x = (struct job *)job;
    enum at_status status = served(&x->p);
    if (status != AT_OK)
        return status;
    return x->p.a.q.dtype == AT_BF16 ? typed<bf16>(x) : typed<fp16>(x);
}

RUN(mma, , dispatch)

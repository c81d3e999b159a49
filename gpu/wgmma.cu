/* Prefill on Hopper's tensor cores with wgmma (sm_90a only): bf16 or fp16 in, fp32 sums.
 *
 *     S = Q K^T,  P = 2^(S c - m c) rounded to 16 bits,  u = 2^(m c - m' c) u + P V,  out = u / l
 *
 * A block owns BR = 64*NWG query rows of one head, a warpgroup 64 of them. Tiles lie in shared
 * memory as [D/64][rows][64] 16-bit numbers, piece c of row r at c ^ (r & 7): wgmma's 128-byte
 * swizzle. Q is read there by descriptor, P comes from registers, K and V have two buffers each and
 * one barrier a tile. Differs from mma.cu: four warps multiply at once and read both operands of S
 * from shared memory. Not here: TMA, a producer warp, two tiles in flight.
 * An accumulator must not be touched between the product's start and the wait for it: `pin`.
 * SPDX-License-Identifier: MIT */
#include "tensor.cuh"

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

/* An operand in shared memory: 1024 bytes from 8 rows to the next, 128-byte swizzle; `step` bytes
 * from one group of 64 columns to the next where the rows run along the sum. */
static __device__ inline uint64_t operand(const uint16_t *tile, int step)
{
    return (uint64_t)(__cvta_generic_to_shared(tile) >> 4) | (uint64_t)(step >> 4) << 16 |
           (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

#define R4(i)                                                                                      \
    "+f"(d[(i) / 8][(i) % 8][0]), "+f"(d[(i) / 8][(i) % 8][1]), "+f"(d[(i) / 8][(i) % 8][2]),      \
        "+f"(d[(i) / 8][(i) % 8][3])
#define R32(i) R4(i), R4(i + 1), R4(i + 2), R4(i + 3), R4(i + 4), R4(i + 5), R4(i + 6), R4(i + 7)
#define L32                                                                                        \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"   \
    "%25,%26,%27,%28,%29,%30,%31"
#define L64                                                                                        \
    L32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,"    \
        "%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA(n, type) "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {"
/* d (64 x 64 or 128) = a b + (add ? d : 0), both in shared memory, rows along the sum */
#define SCORES(n, type, list, a, b, add)                                                           \
    "{ .reg .pred p; setp.ne.b32 p, " add ", 0;\n" WGMMA(n, type) list "}, " a ", " b              \
                                                                       ", p, 1, 1, 0, 0; }"
/* d += a b, a in registers, b's rows across the sum */
#define VALUES(n, type, list, a, b) WGMMA(n, type) list "}, {" a "}, " b ", 1, 1, 1, 1;"

template <class T>
static __device__ inline void multiply(float (&d)[1][8][4], uint64_t a, uint64_t b, int add)
{
    if (T::dtype == AT_BF16)
        asm volatile(SCORES("64", "bf16", L32, "%32", "%33", "%34")
                     : R32(0)
                     : "l"(a), "l"(b), "r"(add));
    else
        asm volatile(SCORES("64", "f16", L32, "%32", "%33", "%34")
                     : R32(0)
                     : "l"(a), "l"(b), "r"(add));
}
template <class T>
static __device__ inline void multiply(float (&d)[2][8][4], uint64_t a, uint64_t b, int add)
{
    if (T::dtype == AT_BF16)
        asm volatile(SCORES("128", "bf16", L64, "%64", "%65", "%66")
                     : R32(0), R32(8)
                     : "l"(a), "l"(b), "r"(add));
    else
        asm volatile(SCORES("128", "f16", L64, "%64", "%65", "%66")
                     : R32(0), R32(8)
                     : "l"(a), "l"(b), "r"(add));
}
#define A4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
template <class T>
static __device__ inline void multiply(float (&d)[1][8][4], const uint32_t (&a)[4], uint64_t b)
{
    if (T::dtype == AT_BF16)
        asm volatile(VALUES("64", "bf16", L32, "%32,%33,%34,%35", "%36") : R32(0) : A4);
    else
        asm volatile(VALUES("64", "f16", L32, "%32,%33,%34,%35", "%36") : R32(0) : A4);
}
template <class T>
static __device__ inline void multiply(float (&d)[2][8][4], const uint32_t (&a)[4], uint64_t b)
{
    if (T::dtype == AT_BF16)
        asm volatile(VALUES("128", "bf16", L64, "%64,%65,%66,%67", "%68") : R32(0), R32(8) : A4);
    else
        asm volatile(VALUES("128", "f16", L64, "%64,%65,%66,%67", "%68") : R32(0), R32(8) : A4);
}

static __device__ inline void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ inline void end()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}

/* The compiler neither reads nor writes d across this point. */
template <int N> static __device__ inline void pin(float (&d)[N][8][4])
{
#pragma unroll
    for (int y = 0; y < N * 32; y++)
        asm volatile("" : "+f"(d[y / 32][y / 4 % 8][y % 4])::"memory");
}

/* s = Q K^T for the warpgroup's 64 rows. */
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
    end();
    pin(s);
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
    end();
    pin(u);
}

/* blockIdx.x: head and sequence; blockIdx.y: rows, those that see most first. */
template <class S>
static __global__ void __launch_bounds__(S::NT) attend_wgmma(const __grid_constant__ struct args p)
{
    constexpr int D = S::D, BC = S::BC;
    typedef swizzled<D, BC> tile;
    extern __shared__ __align__(1024) uint4 aligned_shared[];
    uint16_t *Q = (uint16_t *)aligned_shared, *K = Q + S::BR * D, *V = K + 2 * BC * D;
    struct range *seen = (struct range *)(V + 2 * BC * D);
    int b = (int)blockIdx.x / (int)p.z.Hq, h = (int)blockIdx.x % (int)p.z.Hq,
        g = h / (int)p.z.group;
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16;
    int row0 = (int)(gridDim.y - 1 - blockIdx.y) * S::BR;
    struct range mine = {row0, min(row0 + S::BR, (int)at_rows_of(&p.a, &p.z, b))};
    struct range first = keys_of(&p, b, row0), last = keys_of(&p, b, mine.hi - 1);
    struct range block = {first.lo, mine.lo < mine.hi ? last.hi : first.lo};
    struct source q = {&p.a.q, NULL, b, h, false, true};
    struct source k = {&p.a.k, NULL, b, g, true, true}, v = {&p.a.v, NULL, b, g, true, true};
    float u[D / 64][8][4] = {}, s[BC / 64][8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {}, old;
    for (int r = (int)threadIdx.x; r < S::BR; r += S::NT)
        seen[r] = keys_of(&p, b, row0 + r);
    seen += row + lane / 4; /* this lane's rows: here and 8 below */
    int j0 = block.lo / BC * BC, turn = 0;
    stage16<swizzled<D, S::BR>, S::NT>(Q, &p.a, q, row0, mine);
    stage16<tile, S::NT>(K, &p.a, k, j0, block);
    stage16<tile, S::NT>(V, &p.a, v, j0, block);
    for (; j0 < block.hi; j0 += BC, turn = BC * D - turn) { /* key tiles */
        bool whole = j0 >= last.lo && j0 + BC <= first.hi, dirty = false;
        commit();
        wait_copies<0>();
        fence_async();
        __syncthreads(); /* this step's tiles are here, the other buffers are read */
        if (j0 + BC < block.hi) {
            stage16<tile, S::NT>(K + BC * D - turn, &p.a, k, j0 + BC, block);
            stage16<tile, S::NT>(V + BC * D - turn, &p.a, v, j0 + BC, block);
        }
        if (!whole)
            dirty = clean<typename S::T, S::NT>(V + turn, BC * D);
        products<S>(s, Q + row / 64 * 64 * 64, K + turn);
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
        if (dirty)
#pragma unroll
            for (int x = 0; x < D / 2; x++) {
                struct range r = seen[x % 4 / 2 * 8];
                u[x / 32][x / 4 % 8][x % 4] += unclean(&p, b, g, max(r.lo, j0), min(r.hi, j0 + BC),
                                                       x / 4 * 8 + lane % 4 * 2 + x % 2);
            }
    }
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
    return launch(x->p, attend_wgmma<S>, "attend_wgmma", x->p.z.Hq * x->p.z.B,
                  (x->p.z.Sq + S::BR - 1) / S::BR, 1, S::NT, S::bytes);
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

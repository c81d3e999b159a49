/* The instruction of wgmma.cu: a warpgroup's product of a tile of 64 rows with one of 64 or 128
 * columns, sums in registers. It runs on after it is sent: an accumulator must not be touched
 * between `begin` and `end`, which `pin` tells the compiler. [PTX ISA] SPDX-License-Identifier: MIT
 */
#ifndef WARPGROUP_CUH
#define WARPGROUP_CUH

#include "tensor.cuh"

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
static __device__ inline void sent()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
static __device__ inline void end()
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* The compiler neither reads nor writes d across this point. */
template <int N> static __device__ inline void pin(float (&d)[N][8][4])
{
#pragma unroll
    for (int y = 0; y < N * 32; y++)
        asm volatile("" : "+f"(d[y / 32][y / 4 % 8][y % 4])::"memory");
}

#endif

/* What the tensor-core kernels share: 16-bit tiles, the exponential in base 2, and the rule that a
 * hidden value is not read where the product reads a whole tile.
 *
 * With c = scale log2 e:  p = 2^(s c - m c) in one fma,  P rounded to the input's format for P V, l
 * summed from the unrounded. A zero weight does not hide an infinite value (0 * inf is NaN): in a
 * tile that some row sees in part, non-finite values are zeroed in shared memory (`clean`) and
 * added back, from global memory, for the rows that see them (`unclean`).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TENSOR_CUH
#define TENSOR_CUH

#include "launch.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct bf16 {
    static constexpr enum at_dtype dtype = AT_BF16;
    static constexpr uint16_t exponent = 0x7f80; /* all ones: infinite or NaN */
};
struct fp16 {
    static constexpr enum at_dtype dtype = AT_F16;
    static constexpr uint16_t exponent = 0x7c00;
};

/* ex2.approx: |error| <= 2^-22.5 relative, 2^0 = 1, subnormal results are 0 [PTX ISA]. */
static __device__ inline float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two numbers, each rounded to nearest even. */
template <class T> static __device__ inline uint32_t pack(float lo, float hi)
{
    uint32_t y;
    if (T::dtype == AT_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    return y;
}

/* Rows first .. first+ROWS-1 of a tensor, in pieces of 8 columns where the layout L puts them; rows
 * not among `in` become zero and are not read. Of pages: rows lie anywhere. */
template <class L, int NT>
static __device__ inline void stage16(uint16_t *tile, const struct at_attention *a,
                                      const struct source &s, int first, struct range in)
{
    constexpr int C = L::D / 8, STEP = NT / C; /* pieces in a row; a thread's next row */
    int r0 = (int)threadIdx.x / C, c = (int)threadIdx.x % C;
    const uint16_t *data = (const uint16_t *)s.x->data + c * 8;
#pragma unroll 1
    for (int r = r0; r < L::ROWS; r += STEP) {
        bool inside = first + r >= in.lo && first + r < in.hi;
        copy16(tile + L::at(r, c), data + (inside ? source_offset(a, &s, first + r) : 0), inside);
    }
}

/* ... one stride apart. */
template <class L, int NT>
static __device__ inline void stage16(uint16_t *tile, const struct at_attention *,
                                      const struct rows &s, int first, struct range in)
{
    constexpr int C = L::D / 8, STEP = NT / C;
    int r0 = (int)threadIdx.x / C, c = (int)threadIdx.x % C;
    const uint16_t *data = (const uint16_t *)s.data, *from = data + (first + r0) * s.stride + c * 8;
    unsigned lo = (unsigned)(first + r0 - in.lo), n = (unsigned)(in.hi - in.lo);
#pragma unroll 16
    for (int x = 0; x < (L::ROWS + STEP - 1) / STEP; x++, from += STEP * s.stride) {
        if (L::ROWS % STEP && r0 + x * STEP >= L::ROWS)
            break;
        bool inside = lo + x * STEP < n;
        copy16(tile + L::at(r0 + x * STEP, c), inside ? from : data, inside);
    }
}

/* Rows of q, or of keys, of one sequence and head: anywhere, or one stride apart. */
template <bool PAGED, class X>
static __device__ inline auto rows_from(const struct args &p, const X &x, int b, int h, bool keys)
{
    struct source s = {&x, NULL, b, h, keys, true};
    if constexpr (PAGED)
        return s;
    else
        return rows{(const uint16_t *)x.data + (keys && p.a.score.kv_start
                                                    ? at_offset(&x, 0, h, p.a.score.kv_start[b], 0)
                                                : keys ? at_offset(&x, b, h, 0, 0)
                                                       : at_row_offset(&p.a, &x, b, h, 0)),
                    x.stride[2], 0};
}

/* Scores y of keys j + 8 (y/2) + y%2 that the row does not see become -inf. */
template <int N> static __device__ inline void hide(float *(&s)[N], struct range seen, int j)
{
#pragma unroll
    for (int y = 0; y < N; y++)
        if (j + y / 2 * 8 + y % 2 < seen.lo || j + y / 2 * 8 + y % 2 >= seen.hi)
            *s[y] = -INFINITY;
}

/* Scores to weights in place for one row's N scores of this lane; old: what the row's earlier sums
 * are worth. A row is spread over four lanes. Hidden scores are -inf. */
template <int N>
static __device__ inline void weights(float *(&s)[N], float &m, float &l, float &old, float c)
{
    float top = m, sum = 0;
#pragma unroll
    for (int y = 0; y < N; y++)
        top = fmaxf(top, *s[y]);
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    float shift = top == -INFINITY ? 0 : top * c;
    old = ex2(fmaf(m, c, -shift));
    m = top;
#pragma unroll
    for (int y = 0; y < N; y++)
        sum += *s[y] = ex2(fmaf(*s[y], c, -shift));
    l = l * old + sum;
}

/* What threads wrote to shared memory, wgmma may read after the next barrier. */
static __device__ inline void fence_async()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Zeroes what is not finite; true, for the whole block, where there was any. A barrier. */
template <class T, int NT> static __device__ inline bool clean(uint16_t *tile, int elements)
{
    bool found = false;
    for (int x = (int)threadIdx.x; x < elements / 2; x += NT) {
        uint32_t w = ((uint32_t *)tile)[x], e = T::exponent;
        bool lo = (w & e) == e, hi = (w >> 16 & e) == e;
        if (lo || hi)
            ((uint32_t *)tile)[x] = w & (lo ? 0xffff0000u : ~0u) & (hi ? 0xffffu : ~0u);
        found = found || lo || hi;
    }
    fence_async();
    return __syncthreads_or(found);
}

/* The sum of the non-finite v[j][column] over the row's keys outside the tiles of BC keys that
 * every row sees, those within lo .. hi-1: what `clean` took. */
template <int BC>
AT_FAR float unclean(const struct args *p, int b, int g, struct range row, struct range all,
                     int column)
{
    float sum = 0;
    for (int j = row.lo; j < row.hi; j++) {
        if (j / BC * BC >= all.lo && j / BC * BC + BC <= all.hi)
            continue;
        float v = at_load(&p->a.v, at_key_offset(&p->a, &p->a.v, b, g, j) + column);
        if (!(fabsf(v) < INFINITY))
            sum += v;
    }
    return sum;
}

/* Two columns of a finished row. m is the largest raw score; l and u refer to it. */
static __device__ inline void pair_out(const struct args &p, int b, int h, int i, int column,
                                       float m, float l, float u0, float u1)
{
    float u[2] = {u0, u1};
    struct at_row row = {l == 0 ? -INFINITY : m * p.scale, l, u};
    const struct at_view *out = &p.to.out;
    if (!p.pairs) {
        row_out(&p, &row, b, h, i, column, 2);
        return;
    }
    float r = l == 0 ? 0 : 1 / l;
    int64_t at = at_row_offset(&p.a, out, b, h, i) + column;
    *(uint32_t *)((uint16_t *)out->data + at) =
        out->dtype == AT_BF16 ? pack<bf16>(u0 * r, u1 * r) : pack<fp16>(u0 * r, u1 * r);
}

/* A finished row of which this lane holds columns column + 8y, two each; l is spread over four
 * lanes. */
template <int N>
static __device__ inline void row_end(const struct args &p, int b, int h, int i, int column,
                                      float m, float l, const float *(&u)[N])
{
    int rows = (int)at_rows_of(&p.a, &p.z, b);
    const struct at_view *lse = &p.to.lse;
    l += __shfl_xor_sync(~0u, l, 1);
    l += __shfl_xor_sync(~0u, l, 2);
    if (i >= (p.ragged ? rows : (int)p.z.Sq))
        return;
    l = i < rows ? l : 0;
#pragma unroll
    for (int y = 0; y < N; y += 2)
        pair_out(p, b, h, i, column + 4 * y, m, l, *u[y], *u[y + 1]);
    if (p.pairs && lse->data && column == 0)
        at_store(lse, at_row_offset(&p.a, lse, b, h, i),
                 at_lse(l == 0 ? -INFINITY : m * p.scale, l));
}

/* -- Host -------------------------------------------------------------------------------------- */

/* Pairs of columns can be stored as they come. */
static inline bool pairs_fit(const struct args *p)
{
    const struct at_view *x = &p->to.out;
    bool good = x->dtype == p->a.q.dtype && x->stride[3] == 1 && (uintptr_t)x->data % 4 == 0;
    for (int k = 0; k < 3; k++)
        good = good && x->stride[k] % 2 == 0;
    return good && !p->a.score.sink.data;
}

/* What both kernels serve: q, k, v of one 16-bit type, D = Dv of 64 or 128, rows of 16 bytes, any
 * layout, lengths, window and pages; a positive scale; sink. */
static inline enum at_status served(struct args *p)
{
    const struct at_attention *a = &p->a;
    enum at_dtype d = a->q.dtype;
    bool good = (d == AT_BF16 || d == AT_F16) && direct(&a->q, &a->score.qscale, d) &&
                direct(&a->k, &a->score.kscale, d) && direct(&a->v, &a->score.vscale, d);
    if (!good)
        return trouble(AT_ERR_UNSUPPORTED,
                       "tensor cores: q, k, v all bf16 or all fp16, rows of 16 bytes", "");
    if ((p->z.D != 64 && p->z.D != 128) || p->z.Dv != p->z.D)
        return trouble(AT_ERR_UNSUPPORTED, "tensor cores: head dimensions 64 and 128", "");
    if (!p->plain || p->sparse || at_drops(a) || !(p->scale > 0))
        return trouble(AT_ERR_UNSUPPORTED,
                       "tensor cores: no bias, mask, alibi, softcap, dropout; a positive scale",
                       "");
    p->base2 = (float)(a->score.scale * 1.4426950408889634); /* log2 e */
    p->pairs = pairs_fit(p);
    return AT_OK;
}

#endif

/* What the fp32 and fp64 kernels share: their argument, tiles in shared memory, a score's last
 * steps.
 *
 * The algebra is at_row.h's, its rounding functions called one by one, so that the bits agree with
 * ref/scalar.c. A tile in shared memory is rows of `W` columns of the working type, padded to LD.
 * A weight whose sign bit is set stands for a value that is not to be read: a hidden key is -0, a
 * dropped one -p, which still counts in l. Compiled by nvcc, or by a C++ compiler with emulate.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TILE_CUH
#define TILE_CUH

#include "at_row.h"
#include "gpu.h"

#ifdef __CUDACC__
#include <cuda_pipeline.h>
#define AT_FAR static __device__ __noinline__ /* what is rare must not cost the rest registers */

template <class T> using shared = T *;

struct arena {
    char *at;
    template <class T> __device__ T *take(int n)
    {
        T *p = (T *)at;
        at += (n * sizeof(T) + 15) / 16 * 16;
        return p;
    }
};
#define ARENA(name)                                                                                \
    extern __shared__ float4 dynamic_shared[];                                                     \
    struct arena name = {(char *)dynamic_shared}

/* 16 bytes on their way to shared memory, zeros where `inside` is false. */
template <class T> static __device__ inline void copy16(T *to, const T *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}
static __device__ inline void commit() { __pipeline_commit(); }
template <int LEFT> static __device__ inline void wait_copies() { __pipeline_wait_prior(LEFT); }

static __device__ inline void load4(float (&y)[4], const float *x)
{
    *(float4 *)y = *(const float4 *)x;
}
static __device__ inline void load4(double (&y)[4], const double *x)
{
    *(double2 *)y = *(const double2 *)x;
    *(double2 *)(y + 2) = *(const double2 *)(x + 2);
}

static __device__ inline void store4(float *to, const float (&y)[4])
{
    *(float4 *)to = *(const float4 *)y;
}
static __device__ inline void store4(double *to, const double (&y)[4])
{
    *(double2 *)to = *(const double2 *)y;
    *(double2 *)(to + 2) = *(const double2 *)(y + 2);
}

/* bf16 is the upper half of a float. */
static __device__ inline void load_pair(float *y, unsigned w)
{
    y[0] = at_float(w << 16), y[1] = at_float(w & 0xffff0000u);
}
static __device__ inline void load4(float (&y)[4], const uint16_t *x)
{
    uint2 w = *(const uint2 *)x;
    load_pair(y, w.x), load_pair(y + 2, w.y);
}
static __device__ inline void load8(float (&y)[8], const uint16_t *x)
{
    uint4 w = *(const uint4 *)x;
    load_pair(y, w.x), load_pair(y + 2, w.y), load_pair(y + 4, w.z), load_pair(y + 6, w.w);
}
#else
#define AT_FAR static inline
using emulate::arena;
using emulate::commit;
using emulate::copy16;
using emulate::shared;
#define ARENA(name) struct arena name
template <int LEFT> static inline void wait_copies() { emulate::wait(LEFT); }

static inline void load4(at_real (&y)[4], shared<at_real> x)
{
    for (int e = 0; e < 4; e++)
        y[e] = x[e];
}
static inline void store4(at_real *to, const at_real (&y)[4]) { memcpy(to, y, sizeof y); }
template <int N> static inline void load_bf16(float (&y)[N], shared<uint16_t> x)
{
    for (int e = 0; e < N; e++)
        y[e] = at_float((uint32_t)x[e] << 16);
}
static inline void load4(float (&y)[4], shared<uint16_t> x) { load_bf16(y, x); }
static inline void load8(float (&y)[8], shared<uint16_t> x) { load_bf16(y, x); }
#define cudaTriggerProgrammaticLaunchCompletion() ((void)0)
#define cudaGridDependencySynchronize() ((void)0)
#endif

/* -- The argument of every kernel ------------------------------------------------------------ */

enum { SPLITS = 128 };

/* The descriptor with device addresses, and what the host found out once. */
struct args {
    static constexpr bool FEW = false; /* see few.cuh */
    struct at_attention a;
    struct at_sizes z;
    struct at_span keys; /* of this launch */
    struct at_state x;   /* where states go, unless */
    struct at_result to; /* ... the rows are finished here */
    bool finish, ragged;
    bool plain;                        /* a score is scale*raw */
    bool sparse;                       /* mask or bias: visibility is data */
    bool direct_q, direct_k, direct_v; /* rows of the working type, 16 bytes at a time */
    bool stored;                       /* k and v are bf16 rows that can be copied so */
    at_real scale, gain;
    float base2; /* tensor cores: scale log2 e; */
    bool pairs;  /* ... out takes two 16-bit numbers at a time */
    /* decode.cu: splits of the keys, and their states (row, split) and (row, split, column) */
    int bc, splits, cut[SPLITS + 1], width; /* width: of a row of u */
    at_real *m, *l, *u;
};

/* -- Rows of q, k or v into shared memory ------------------------------------------------------ */

struct source {
    const struct at_view *x, *descale;
    int b, h;
    bool keys, direct;
};

template <class T> static __device__ inline struct source q_of(const struct args &p, int b, int h)
{
    return {&p.a.q, &p.a.score.qscale, b, h, false, p.direct_q};
}
template <class T> static __device__ inline struct source k_of(const struct args &p, int b, int g)
{
    return {&p.a.k, &p.a.score.kscale, b, g, true, p.direct_k};
}
template <class T> static __device__ inline struct source v_of(const struct args &p, int b, int g)
{
    return {&p.a.v, &p.a.score.vscale, b, g, true, p.direct_v};
}

/* Rows or keys lo <= . < hi of a sequence, in 32 bits: registers are what the kernels lack. */
struct range {
    int lo, hi;
};

AT_FN int rows_of(const struct args &p, int b) { return (int)at_rows_of(&p.a, &p.z, b); }

/* The keys of this launch that row i sees, by length, window and causality. */
AT_FN struct range keys_of(const struct args *p, int b, int i)
{
    int64_t end = at_min(at_keys_of(&p->a, &p->z, b), p->keys.hi);
    struct at_span x = at_cut(at_keys(&p->a, &p->z, b, i), p->keys);
    struct range y = {(int)at_min(x.lo, end), (int)at_min(x.hi, end)};
    return y;
}

AT_FN int64_t source_offset(const struct at_attention *a, const struct source *s, int64_t row)
{
    return s->keys ? at_key_offset(a, s->x, s->b, s->h, row)
                   : at_row_offset(a, s->x, s->b, s->h, row);
}

/* Rows first .. first+ROWS-1, columns c0 .. c0+W-1; what is not among `in` or the tensor's columns
 * becomes zero and is not read. The copies are committed as one group. */
template <int ROWS, int W, int LD, int NT, class T>
static __device__ inline void stage(shared<T> tile, const struct args &p, const struct source &s,
                                    int first, struct range in, int c0)
{
    const struct at_attention *a = &p.a;
    constexpr int E = 16 / sizeof(T);
    const T *data = (const T *)s.x->data;
    bool near = !s.keys || !a->pages.table; /* rows lie one stride apart */
    int columns = (int)s.x->dim[3] - c0;
    int64_t base = near ? source_offset(a, &s, first) : 0;
    for (int x = (int)threadIdx.x; x < ROWS * W / E; x += NT) {
        int r = x / (W / E), c = x % (W / E) * E;
        int row = first + r;
        int64_t at = 0;
        bool inside = row >= in.lo && row < in.hi && c < columns;
        if (inside)
            at = near ? base + r * s.x->stride[2] : source_offset(a, &s, row);
        if (sizeof(T) != sizeof(at_real) || s.direct)
            copy16(tile + (r * LD + c), data + (inside ? at + c0 + c : 0), inside);
        else if constexpr (sizeof(T) == sizeof(at_real))
            for (int e = 0; e < E; e++) {
                at_real y = 0;
                bool here = inside && c + e < columns; /* 0 times an infinite descale is NaN */
                if (here)
                    y = at_load(s.x, at + (c0 + c + e) * s.x->stride[3]);
                if (here && s.descale->data)
                    y = y * at_load(s.descale, at_offset(s.descale, s.b, s.h, row, 0));
                tile[r * LD + c + e] = y;
            }
    }
    commit();
}

/* -- One score, one weight ------------------------------------------------------------------- */

/* A raw score in `lanes` chains, straight from memory: a plan's wish, not a fast way. */
AT_FN at_real lanes_dot(const struct at_attention *a, int64_t b, int64_t h, int64_t g, int64_t i,
                        int64_t j)
{
    const struct at_view *qs = &a->score.qscale, *ks = &a->score.kscale;
    int64_t q = at_row_offset(a, &a->q, b, h, i), k = at_key_offset(a, &a->k, b, g, j);
    int64_t lanes = a->plan.lanes;
    at_real x[64], dq = 1, dk = 1; /* times 1 is exact */
    if (qs->data)
        dq = at_load(qs, at_offset(qs, b, h, i, 0));
    if (ks->data)
        dk = at_load(ks, at_offset(ks, b, g, j, 0));
    for (int64_t w = 0; w < lanes; w++) {
        x[w] = 0;
        for (int64_t c = w; c < a->q.dim[3]; c += lanes)
            x[w] = at_fma(at_load(&a->q, q + c * a->q.stride[3]) * dq,
                          at_load(&a->k, k + c * a->k.stride[3]) * dk, x[w]);
    }
    for (int64_t w = lanes / 2; w > 0; w /= 2)
        for (int64_t c = 0; c < w; c++)
            x[c] += x[c + w];
    return x[0];
}

/* Does row i see key j? Asked only inside the row's span. */
AT_FN bool seen(const struct args *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return !p->sparse || at_shown(&p->a, b, h, i, j);
}

/* No weight but those of keys outside a row's span is special. */
AT_FN bool simple(const struct args &p) { return !p.sparse && !at_drops(&p.a); }

/* The finished score of a key that is seen, from its one-chain raw score. */
AT_FAR at_real scored(const struct args *p, at_real raw, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (p->a.plan.lanes != 1)
        raw = lanes_dot(&p->a, b, h, h / p->z.group, i, j);
    return p->plain ? p->scale * raw : at_scored(&p->a, raw, b, h, i, j);
}

AT_FN float with_sign(float x) { return at_float(at_bits32(x) | 0x80000000u); }
AT_FN double with_sign(double x) { return at_double(at_bits64(x) | 0x8000000000000000u); }
AT_FN bool has_sign(float x) { return at_bits32(x) >> 31; }
AT_FN bool has_sign(double x) { return at_bits64(x) >> 63; }

/* The weight as PV reads it: see the head of this file. A NaN's sign is not left to chance. */
AT_FAR at_real marked(const struct args *p, at_real weight, bool hidden, int64_t b, int64_t h,
                      int64_t i, int64_t j)
{
    if (hidden)
        return with_sign((at_real)0);
    bool kept = !at_drops(&p->a) || at_kept(&p->a, &p->z, b, h, i, j);
    return kept ? at_canonical(weight) : with_sign(weight);
}

/* -- The end of a row -------------------------------------------------------------------------- */

/* n columns from c0 of row i: a state, or with the sink taken in and divided, a result. */
AT_FAR void row_out(const struct args *p, struct at_row *row, int64_t b, int64_t h, int64_t i,
                    int64_t c0, int n)
{
    const struct at_attention *a = &p->a;
    const struct at_view *sink = &a->score.sink, *u = p->finish ? &p->to.out : &p->x.u;
    const struct at_view *lse = &p->to.lse;
    if (p->finish && sink->data && i < at_rows_of(a, &p->z, b))
        at_row_sink(row, at_load(sink, at_offset(sink, 0, h, 0, 0)), n);
    int64_t at = at_row_offset(a, u, b, h, i) + c0 * u->stride[3];
    for (int c = 0; c < n; c++) {
        at_real y = p->finish ? at_out(row->u[c], row->l, p->gain) : row->u[c];
        if (c0 + c < p->z.Dv)
            at_store(u, at + c * u->stride[3], y);
    }
    if (c0 > 0)
        return;
    if (!p->finish) {
        at_store(&p->x.m, at_row_offset(a, &p->x.m, b, h, i), row->m);
        at_store(&p->x.l, at_row_offset(a, &p->x.l, b, h, i), row->l);
    } else if (lse->data) {
        at_store(lse, at_row_offset(a, lse, b, h, i), at_lse(row->m, row->l));
    }
}

#endif

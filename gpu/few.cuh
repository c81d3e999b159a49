/* The descriptor of a problem that asks for few things: lengths, window, causality, ragged rows, a
 * scale - no more. Such a problem's kernels are the same templates over this argument: a few
 * hundred bytes to send, rows one stride apart, a key hidden by its place alone. The functions have
 * the names of tile.cuh's. SPDX-License-Identifier: MIT */
#ifndef FEW_CUH
#define FEW_CUH

#include "tile.cuh"

struct few {
    static constexpr bool FEW = true;
    struct {
        int B, Hq, Hkv, group, Sq, Skv, D, Dv;
    } z;
    int bc, splits, width, lo, hi; /* keys lo <= j < hi in this launch */
    bool ragged;
    at_real scale;
    at_real *m, *l, *u; /* states of splits */
    const void *k, *v;
    int64_t k_stride[3], v_stride[3], left, right;
    const int64_t *offset, *q_len, *kv_len, *q_start, *kv_start;
    struct at_view q, out, lse;
    int cut[SPLITS + 1];
};

AT_FN bool simple(const struct few &) { return true; }

AT_FN int rows_of(const struct few &p, int b)
{
    return p.q_len ? (int)at_min(p.q_len[b], p.z.Sq) : p.z.Sq;
}

AT_FN struct range keys_of(const struct few *p, int b, int i)
{
    struct range y = {p->lo, p->hi};
    int64_t at = i + (p->offset ? p->offset[b] : 0);
    if (p->kv_len)
        y.hi = (int)at_min(y.hi, p->kv_len[b]);
    if (i >= rows_of(*p, b))
        y.hi = y.lo;
    if (p->right != AT_UNBOUNDED && p->right < y.hi - at)
        y.hi = (int)at_max(at + p->right + 1, 0);
    if (p->left != AT_UNBOUNDED && p->left < at - y.lo)
        y.lo = (int)at_min(at - p->left, INT32_MAX);
    y.lo = y.lo < y.hi ? y.lo : y.hi;
    return y;
}

/* Rows of one sequence and head, a stride apart. */
struct rows {
    const void *data;
    int64_t stride;
    int columns;
};

AT_FN int64_t row_at(const struct few &p, const struct at_view &x, int b, int h, int i)
{
    return p.q_start ? at_offset(&x, 0, h, p.q_start[b] + i, 0) : at_offset(&x, b, h, i, 0);
}
AT_FN int64_t key_at(const struct few &p, const int64_t (&stride)[3], int b, int g)
{
    return g * stride[1] + (p.kv_start ? p.kv_start[b] * stride[2] : b * stride[0]);
}

template <class T> static __device__ inline struct rows q_of(const struct few &p, int b, int h)
{
    return {(const T *)p.q.data + row_at(p, p.q, b, h, 0), p.q.stride[2], p.z.D};
}
template <class T> static __device__ inline struct rows k_of(const struct few &p, int b, int g)
{
    return {(const T *)p.k + key_at(p, p.k_stride, b, g), p.k_stride[2], p.z.D};
}
template <class T> static __device__ inline struct rows v_of(const struct few &p, int b, int g)
{
    return {(const T *)p.v + key_at(p, p.v_stride, b, g), p.v_stride[2], p.z.Dv};
}

template <int ROWS, int W, int LD, int NT, class T>
static __device__ inline void stage(shared<T> tile, const struct few &, const struct rows &s,
                                    int first, struct range in, int)
{
    constexpr int E = 16 / sizeof(T), C = W / E, STEP = NT / C;
    int r0 = (int)threadIdx.x / C, c = (int)threadIdx.x % C * E;
    const T *data = (const T *)s.data, *from = data + (first + r0) * s.stride + c;
    unsigned lo = (unsigned)(first + r0 - in.lo), n = c < s.columns ? (unsigned)(in.hi - in.lo) : 0;
    static_assert(NT % C == 0 && ROWS % STEP == 0, "a thread copies one column of pieces");
    if (first < in.hi)
#pragma unroll
        for (int x = 0; x < ROWS / STEP; x++) {
            bool inside = lo + x * STEP < n;
            copy16(tile + ((r0 + x * STEP) * LD + c), inside ? from : data, inside);
            from += STEP * s.stride;
        }
    commit();
}

/* n columns from c0 of row i, finished. */
static __device__ inline void row_out(const struct few *p, struct at_row *row, int b, int h, int i,
                                      int c0, int n)
{
    int64_t at = row_at(*p, p->out, b, h, i) + c0 * p->out.stride[3];
    for (int c = 0; c < n && c0 + c < p->z.Dv; c++)
        at_store(&p->out, at + c * p->out.stride[3], at_out(row->u[c], row->l, 1));
    if (c0 == 0 && p->lse.data)
        at_store(&p->lse, row_at(*p, p->lse, b, h, i), at_lse(row->m, row->l));
}

/* -- Host -------------------------------------------------------------------------------------- */

/* Is this all that the problem asks, with rows of up to `wide` columns? Then y says it. */
static inline bool asks_few(const struct args *p, int64_t wide, struct few *y)
{
    const struct at_attention *a = &p->a;
    const struct at_score *s = &a->score;
    if (!p->finish || !p->plain || p->sparse || at_drops(a) || a->plan.lanes != 1 || s->sink.data ||
        s->qscale.data || s->kscale.data || s->vscale.data || a->pages.table || p->z.D > wide ||
        p->z.Dv > wide)
        return false;
    *y = {{(int)p->z.B, (int)p->z.Hq, (int)p->z.Hkv, (int)p->z.group, (int)p->z.Sq, (int)p->z.Skv,
           (int)p->z.D, (int)p->z.Dv},
          (int)a->plan.bc,
          p->splits,
          p->width,
          (int)p->keys.lo,
          (int)at_min(p->keys.hi, p->z.Skv),
          p->ragged,
          p->scale,
          p->m,
          p->l,
          p->u,
          a->k.data,
          a->v.data,
          {},
          {},
          s->left,
          s->right,
          s->offset,
          s->q_len,
          s->kv_len,
          s->q_start,
          s->kv_start,
          a->q,
          p->to.out,
          p->to.lse,
          {}};
    memcpy(y->k_stride, a->k.stride, sizeof y->k_stride);
    memcpy(y->v_stride, a->v.stride, sizeof y->v_stride);
    memcpy(y->cut, p->cut, sizeof y->cut);
    return true;
}

#endif

/* Where an element lies, which keys a row sees, which weights are dropped: integers only, the same
 * text in C and CUDA.
 *
 * Row i of sequence b stands at p = i + offset[b]. It sees key j of its sequence iff
 *     j < kv_len[b],  i < q_len[b],  p-left <= j <= p+right,  mask != 0,  bias != -inf.
 * All but the last two make an interval, so loops run over at_keys and ask at_shown only where the
 * mask is data. This predicate is the specification; engines, truth and bound share it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef AT_INDEX_H
#define AT_INDEX_H

#include "attest.h"
#include <string.h>

#ifdef __CUDACC__
#define AT_FN static __host__ __device__ __forceinline__
#else
#define AT_FN static inline
#endif

AT_FN int64_t at_min(int64_t x, int64_t y) { return x < y ? x : y; }
AT_FN int64_t at_max(int64_t x, int64_t y) { return x > y ? x : y; }

/* -- Sizes ----------------------------------------------------------------------------------- */

/* Read once: Sq, Skv are the longest lengths of ragged and paged batches. */
struct at_sizes {
    int64_t B, Hq, Hkv, group, Sq, Skv, D, Dv;
};

AT_FN int64_t at_longest(const int64_t *len, int64_t B)
{
    int64_t most = 0;
    for (int64_t b = 0; b < B; b++)
        most = at_max(most, len[b]);
    return most;
}

AT_FN struct at_sizes at_sizes(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    struct at_sizes z;
    z.B = s->q_start ? s->sequences : a->q.dim[0];
    z.Hq = a->q.dim[1];
    z.Hkv = a->k.dim[1];
    z.group = z.Hkv > 0 ? z.Hq / z.Hkv : 1;
    z.Sq = s->q_start ? at_longest(s->q_len, z.B) : a->q.dim[2];
    z.Skv = s->kv_start || a->pages.table ? at_longest(s->kv_len, z.B) : a->k.dim[2];
    z.D = a->q.dim[3];
    z.Dv = a->v.dim[3];
    return z;
}

/* Rows and keys that sequence b has. */
AT_FN int64_t at_rows_of(const struct at_attention *a, const struct at_sizes *z, int64_t b)
{
    return a->score.q_len ? at_min(a->score.q_len[b], z->Sq) : z->Sq;
}

AT_FN int64_t at_keys_of(const struct at_attention *a, const struct at_sizes *z, int64_t b)
{
    return a->score.kv_len ? at_min(a->score.kv_len[b], z->Skv) : z->Skv;
}

/* -- Places ---------------------------------------------------------------------------------- */

AT_FN int64_t at_offset(const struct at_view *x, int64_t b, int64_t h, int64_t s, int64_t c)
{
    return b * x->stride[0] + h * x->stride[1] + s * x->stride[2] + c * x->stride[3];
}

/* Row i of sequence b in q, or in anything placed like q; b == -1: packed row i. */
AT_FN int64_t at_row_offset(const struct at_attention *a, const struct at_view *x, int64_t b,
                            int64_t h, int64_t i)
{
    if (a->score.q_start)
        return at_offset(x, 0, h, b < 0 ? i : a->score.q_start[b] + i, 0);
    return at_offset(x, b, h, i, 0);
}

/* Key row j of sequence b in k or v, key head g. */
AT_FN int64_t at_key_offset(const struct at_attention *a, const struct at_view *x, int64_t b,
                            int64_t g, int64_t j)
{
    if (a->pages.table) {
        int64_t size = x->dim[2], n = j / size;
        int64_t first = a->pages.indptr ? a->pages.indptr[b] : b * a->pages.width;
        return at_offset(x, a->pages.table[first + n], g, j - n * size, 0);
    }
    if (a->score.kv_start)
        return at_offset(x, 0, g, a->score.kv_start[b] + j, 0);
    return at_offset(x, b, g, j, 0);
}

/* Row t of a choice of rows; without a choice, row t of q as stored. */
AT_FN struct at_place at_place_of(const struct at_attention *a, struct at_rows rows, int64_t t)
{
    int64_t Hq = a->q.dim[1], S = a->q.dim[2];
    if (rows.at)
        return rows.at[t];
    struct at_place x = {t / (Hq * S), t / S % Hq, t % S};
    if (!a->score.q_start)
        return x;
    x.b = -1;
    for (int64_t b = 0; b < a->score.sequences; b++) {
        int64_t i = x.i - a->score.q_start[b];
        if (i >= 0 && i < a->score.q_len[b]) {
            x.b = b, x.i = i;
            break;
        }
    }
    return x;
}

/* -- Who sees whom --------------------------------------------------------------------------- */

struct at_span {
    int64_t lo, hi; /* keys lo <= j < hi; empty when lo >= hi */
};

/* Where row i stands among the keys. */
AT_FN int64_t at_position(const struct at_attention *a, int64_t b, int64_t i)
{
    return i + (a->score.offset ? a->score.offset[b] : 0);
}

/* The keys that length, window and causality leave to row i. */
AT_FN struct at_span at_keys(const struct at_attention *a, const struct at_sizes *z, int64_t b,
                             int64_t i)
{
    const struct at_score *s = &a->score;
    struct at_span x = {0, 0};
    if (b < 0 || i >= at_rows_of(a, z, b))
        return x;
    int64_t p = at_position(a, b, i);
    x.hi = at_keys_of(a, z, b);
    if (s->right != AT_UNBOUNDED && s->right < x.hi - p) /* p + right could overflow */
        x.hi = p + s->right + 1;
    if (s->left != AT_UNBOUNDED && s->left < p)
        x.lo = p - s->left;
    if (x.hi < x.lo)
        x.hi = x.lo;
    return x;
}

AT_FN struct at_span at_cut(struct at_span x, struct at_span y)
{
    struct at_span z = {at_max(x.lo, y.lo), at_min(x.hi, y.hi)};
    return z;
}

/* Is the element the format's -inf? By its bits, so that truth shares no arithmetic. */
AT_FN bool at_is_minus_inf(const struct at_view *x, int64_t at)
{
    const unsigned char *data = (const unsigned char *)x->data;
    uint64_t wide;
    uint32_t single;
    uint16_t half;
    switch (x->dtype) {
    case AT_F64: memcpy(&wide, data + 8 * at, 8); return wide == 0xfff0000000000000u;
    case AT_F32: memcpy(&single, data + 4 * at, 4); return single == 0xff800000u;
    case AT_F16: memcpy(&half, data + 2 * at, 2); return half == 0xfc00u;
    case AT_BF16: memcpy(&half, data + 2 * at, 2); return half == 0xff80u;
    case AT_F8_E5M2: return data[at] == 0xfcu;
    default: return false;
    }
}

/* Does the mask, or a bias of -inf, leave key j to row i? Ask only inside at_keys. */
AT_FN bool at_shown(const struct at_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct at_view *mask = &a->score.mask, *bias = &a->score.bias;
    if (mask->data && ((const unsigned char *)mask->data)[at_offset(mask, b, h, i, j)] == 0)
        return false;
    return !(bias->data && at_is_minus_inf(bias, at_offset(bias, b, h, i, j)));
}

/* -- Dropout --------------------------------------------------------------------------------- */

struct at_four {
    uint32_t word[4];
};

/* Philox4x32-10 [Salmon11]: ten rounds of two 32 x 32 -> 64 bit products. */
AT_FN struct at_four at_philox(struct at_four x, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * x.word[0], b = (uint64_t)0xcd9e8d57u * x.word[2];
        struct at_four y = {{(uint32_t)(b >> 32) ^ x.word[1] ^ key0, (uint32_t)b,
                             (uint32_t)(a >> 32) ^ x.word[3] ^ key1, (uint32_t)a}};
        x = y;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return x;
}

AT_FN bool at_drops(const struct at_attention *a)
{
    return a->dropout.p > 0 || a->dropout.keep.data;
}

/* Is the weight of key j in row i kept? Ask only where at_drops. */
AT_FN bool at_kept(const struct at_attention *a, const struct at_sizes *z, int64_t b, int64_t h,
                   int64_t i, int64_t j)
{
    const struct at_view *keep = &a->dropout.keep;
    if (keep->data)
        return ((const unsigned char *)keep->data)[at_offset(keep, b, h, i, j)] != 0;
    uint64_t e = (uint64_t)(((b * z->Hq + h) * z->Sq + i) * z->Skv + j), n = e / 4;
    uint64_t offset = a->dropout.offset, seed = a->dropout.seed;
    struct at_four x = {
        {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)}};
    x = at_philox(x, (uint32_t)seed, (uint32_t)(seed >> 32));
    return x.word[e % 4] >= (uint32_t)(a->dropout.p * 0x1p32); /* exact: p < 1 */
}

#endif

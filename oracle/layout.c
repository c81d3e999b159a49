/* A painted case as the tensors of a file: rounded once to the dtype, rows packed, keys in pages.
 *
 * Packed rows stand sequence after sequence. Page n of all that sequences need, in their order,
 * lies at (step n + shift) mod pages, so that neighbours are apart and none is where it would be by
 * counting; the pages that are left over, and the ends of last pages, hold NaN or what is hidden.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "generate.h"
#include "ref.h"
#include <math.h>

enum { PAGE = 16, SPARE = 3 }; /* keys a page has; pages that nobody needs */

static const char *const names[AT_INPUTS] = {"q",
                                             "k",
                                             "v",
                                             "bias",
                                             "alibi",
                                             "sink",
                                             "q_descale",
                                             "k_descale",
                                             "v_descale",
                                             "mask",
                                             "keep",
                                             "q_len",
                                             "kv_len",
                                             "offset",
                                             "cu_seqlens_q",
                                             "cu_seqlens_k",
                                             "block_table",
                                             "kv_indptr",
                                             "kv_indices",
                                             "kv_last_page_len"};

/* -- Sequences ------------------------------------------------------------------------------- */

static int64_t pages_of(const struct at_canvas *x, int64_t b)
{
    return (at_canvas_keys(x, b) + PAGE - 1) / PAGE;
}

/* What f says of the sequences before b, summed. */
static int64_t before(const struct at_canvas *x, int64_t b,
                      int64_t (*f)(const struct at_canvas *x, int64_t b))
{
    int64_t sum = 0;
    for (int64_t k = 0; k < b; k++)
        sum += f(x, k);
    return sum;
}

static int64_t common(int64_t x, int64_t y) { return y == 0 ? x : common(y, x % y); }

static int64_t pages(const struct at_canvas *x) { return before(x, x->B, pages_of) + SPARE; }

static int64_t page_at(const struct at_canvas *x, int64_t n)
{
    int64_t all = pages(x), step = all * 5 / 8;
    while (common(step, all) != 1)
        step++;
    return (step * n + all / 3 + 1) % all;
}

static int64_t widest(const struct at_canvas *x)
{
    int64_t most = 0;
    for (int64_t b = 0; b < x->B; b++)
        most = at_max(most, pages_of(x, b));
    return most;
}

int64_t at_canvas_height(const struct at_canvas *x)
{
    return x->packed ? before(x, x->B, at_canvas_rows) : x->B * x->Sq;
}

/* -- Extents --------------------------------------------------------------------------------- */

static int put(int64_t *to, int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    to[0] = d0, to[1] = d1, to[2] = d2, to[3] = d3;
    return rank;
}

static int keys_extents(const struct at_canvas *x, int64_t C, int64_t *d)
{
    if (x->paging == AT_BLOCK_TABLE)
        return put(d, 4, pages(x), PAGE, x->Hkv, C);
    if (x->paging == AT_PAGE_LIST)
        return put(d, 4, pages(x), x->Hkv, PAGE, C);
    if (x->packed)
        return put(d, 3, before(x, x->B, at_canvas_keys), x->Hkv, C, 1);
    return put(d, 4, x->B, x->Hkv, x->Skv, C);
}

static int descale_extents(const struct at_canvas *x, int64_t H, int64_t S, int64_t *d)
{
    return put(d, 3, x->grain == AT_BY_TENSOR ? 1 : x->B, x->grain == AT_BY_TENSOR ? 1 : H,
               x->grain == AT_BY_ROW ? S : 1, 1);
}

/* Does the file hold it? Lengths of packed rows and of page lists are said in other words. */
static bool holds(const struct at_canvas *x, int t)
{
    bool list = x->paging == AT_PAGE_LIST, packed_keys = x->packed && x->paging == AT_DENSE;
    switch (t) {
    case AT_Q_LEN: return x->has[t] && !x->packed;
    case AT_KV_LEN: return x->has[t] && !list && !packed_keys;
    case AT_CU_Q: return x->packed;
    case AT_CU_K: return packed_keys;
    case AT_TABLE: return x->paging == AT_BLOCK_TABLE;
    case AT_INDPTR:
    case AT_INDICES:
    case AT_LAST_PAGE: return list;
    default: return x->has[t];
    }
}

/* The rank; 0: the file has none such. */
static int extents(const struct at_canvas *x, int t, int64_t *d)
{
    if (!holds(x, t))
        return 0;
    switch (t) {
    case AT_Q:
        return x->packed ? put(d, 3, at_canvas_height(x), x->Hq, x->D, 1)
                         : put(d, 4, x->B, x->Hq, x->Sq, x->D);
    case AT_K: return keys_extents(x, x->D, d);
    case AT_V: return keys_extents(x, x->Dv, d);
    case AT_BIAS: return put(d, 4, 1, x->Hq, x->Sq, x->Skv);
    case AT_MASK: return put(d, 4, x->B, 1, x->Sq, x->Skv);
    case AT_KEEP: return put(d, 4, x->B, x->Hq, x->Sq, x->Skv);
    case AT_ALIBI:
    case AT_SINK: return put(d, 1, x->Hq, 1, 1, 1);
    case AT_Q_DESCALE: return descale_extents(x, x->Hq, x->Sq, d);
    case AT_K_DESCALE:
    case AT_V_DESCALE: return descale_extents(x, x->Hkv, x->Skv, d);
    case AT_CU_Q:
    case AT_CU_K:
    case AT_INDPTR: return put(d, 1, x->B + 1, 1, 1, 1);
    case AT_TABLE: return put(d, 2, x->B, widest(x), 1, 1);
    case AT_INDICES: return put(d, 1, pages(x) - SPARE, 1, 1, 1);
    default: return put(d, 1, x->B, 1, 1, 1);
    }
}

/* Inputs of the dtype are q, k, v alone: a bias holds -inf, which e4m3 does not have. */
static enum at_dtype dtype_of(const struct at_canvas *x, int t)
{
    enum at_dtype d = x->want->dtype;
    if (t >= AT_NUMBERS)
        return t < AT_BYTES ? AT_U8 : AT_I64;
    return t <= AT_V || d == AT_F64 ? d : AT_F32;
}

int64_t at_canvas_bytes(const struct at_canvas *x)
{
    int64_t d[4], bytes = 0;
    for (int t = 0; t < AT_INPUTS; t++)
        if (extents(x, t, d))
            bytes += d[0] * d[1] * d[2] * d[3] * at_dtype_size(dtype_of(x, t));
    return bytes;
}

/* -- Contents -------------------------------------------------------------------------------- */

/* Where a row of k or v lies; rows at or past the length have no place among packed ones. */
static int64_t key_row(const struct at_canvas *x, int64_t first, int64_t g, int64_t s)
{
    int64_t page = x->paging ? page_at(x, first + s / PAGE) : 0;
    if (x->paging == AT_BLOCK_TABLE)
        return (page * PAGE + s % PAGE) * x->Hkv + g;
    if (x->paging == AT_PAGE_LIST)
        return (page * x->Hkv + g) * PAGE + s % PAGE;
    return (first + s) * x->Hkv + g;
}

static void put_row(const struct at_view *to, int64_t row, const double *from, int64_t C)
{
    for (int64_t c = 0; c < C; c++)
        at_store(to, row * C + c, from[c]);
}

static void put_keys(const struct at_canvas *x, int t, const struct at_view *to)
{
    int64_t C = t == AT_K ? x->D : x->Dv;
    const double *from = t == AT_K ? x->k : x->v;
    for (int64_t n = 0; x->paging && n < pages(x) * PAGE * x->Hkv * C; n++)
        at_store(to, n, (double)NAN);
    for (int64_t b = 0; b < x->B; b++) {
        int64_t first = before(x, b, x->paging ? pages_of : at_canvas_keys);
        int64_t end = x->paging ? at_min(pages_of(x, b) * PAGE, x->Skv) : at_canvas_keys(x, b);
        for (int64_t g = 0; g < x->Hkv; g++)
            for (int64_t s = 0; s < end; s++)
                put_row(to, key_row(x, first, g, s), from + ((b * x->Hkv + g) * x->Skv + s) * C, C);
    }
}

static void put_queries(const struct at_canvas *x, const struct at_view *to)
{
    for (int64_t b = 0, row = 0; b < x->B; b++)
        for (int64_t i = 0; i < at_canvas_rows(x, b); i++, row++)
            for (int64_t h = 0; h < x->Hq; h++)
                put_row(to, row * x->Hq + h, x->q + ((b * x->Hq + h) * x->Sq + i) * x->D, x->D);
}

static void put_table(const struct at_canvas *x, int64_t *to)
{
    int64_t W = widest(x), n = 0;
    for (int64_t b = 0; b < x->B; b++)
        for (int64_t w = 0; w < W; w++)
            to[b * W + w] = w < pages_of(x, b) ? page_at(x, n++) : -1;
}

static void put_whole(const struct at_canvas *x, int t, int64_t n, int64_t *to)
{
    if (t == AT_TABLE)
        put_table(x, to);
    for (int64_t b = 0; t != AT_TABLE && b < n; b++)
        switch (t) {
        case AT_Q_LEN: to[b] = x->q_len[b]; break;
        case AT_KV_LEN: to[b] = x->kv_len[b]; break;
        case AT_OFFSETS: to[b] = x->offset[b]; break;
        case AT_CU_Q: to[b] = before(x, b, at_canvas_rows); break;
        case AT_CU_K: to[b] = before(x, b, at_canvas_keys); break;
        case AT_INDPTR: to[b] = before(x, b, pages_of); break;
        case AT_INDICES: to[b] = page_at(x, b); break;
        default: to[b] = x->kv_len[b] ? (x->kv_len[b] - 1) % PAGE + 1 : 0; break;
        }
}

static void put_tensor(const struct at_canvas *x, int t, int64_t n, void *space)
{
    const double *const from[AT_NUMBERS] = {x->q,    x->k,      x->v,      x->bias,  x->alibi,
                                            x->sink, x->qscale, x->kscale, x->vscale};
    struct at_view y = at_bhsd(space, dtype_of(x, t), 1, 1, 1, n);
    if (t == AT_MASK || t == AT_KEEP)
        memcpy(space, t == AT_MASK ? x->mask : x->keep, (size_t)n);
    else if (t >= AT_BYTES)
        put_whole(x, t, n, space);
    else if (t == AT_Q && x->packed)
        put_queries(x, &y);
    else if ((t == AT_K || t == AT_V) && (x->packed || x->paging))
        put_keys(x, t, &y);
    else
        put_row(&y, 0, from[t], n);
}

int64_t at_canvas_tensors(const struct at_canvas *x, struct at_tensor *to,
                          void *(*alloc)(void *with, int64_t bytes), void *with)
{
    int64_t made = 0;
    for (int t = 0; t < AT_INPUTS; t++) {
        int64_t d[4];
        int rank = extents(x, t, d);
        if (rank == 0)
            continue;
        int64_t n = d[0] * d[1] * d[2] * d[3];
        void *space = alloc(with, n * at_dtype_size(dtype_of(x, t)));
        if (!space)
            return -1;
        to[made++] = at_tensor_of(names[t], dtype_of(x, t), rank, d, space);
        put_tensor(x, t, n, space);
    }
    return made;
}

/* What the files of tiled/ share. attend.c and decode.c are compiled for both working types and for
 * each instruction set that the build serves, engine.c for each set; dispatch.c picks at run time.
 * SPDX-License-Identifier: MIT */
#ifndef TILED_H
#define TILED_H

#include "at_row.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* A name of its own for each compilation: at_blocks_f32_v3. */
#ifndef TILED_ISA
#define TILED_ISA base
#endif
#define TILED_GLUE(name, isa) name##_##isa
#define TILED_AS(name, isa) TILED_GLUE(name, isa)
#define TILED(name) TILED_AS(AT_NAME(name), TILED_ISA)

/* One call of an engine: the keys [cut(0), cut(splits)) in splits whose states join in key order,
 * and where the rows go: into a state, or finished. Exactly one of x and to is given. */
struct tiled_call {
    const struct at_attention *a;
    const struct at_state *x;
    const struct at_result *to;
    int64_t j0, j1; /* of x: the only split */
    int64_t splits;
    struct at_tally *tally; /* or NULL */
};

typedef enum at_status tiled_run(const struct tiled_call *call);
typedef int64_t tiled_bytes(const struct at_attention *a, int64_t splits); /* INT64_MAX: too many */

/* Lanes are queries: prefill, and everything that decode leaves. */
tiled_run TILED(at_blocks);
tiled_bytes TILED(at_blocks_bytes);
/* Lanes are columns: few queries before many keys. */
tiled_run TILED(at_decode);
tiled_bytes TILED(at_decode_bytes);

enum { TILED_FEW = 4 }; /* rows of a sequence up to which it is decode's */

static inline int tiled_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static inline struct at_span split_of(const struct tiled_call *call, int64_t k)
{
    if (call->x)
        return (struct at_span){call->j0, call->j1};
    return (struct at_span){at_split(call->a, k), at_split(call->a, k + 1)};
}

/* Tiles of the split that sequence b has. */
static inline int64_t tiles_of(const struct at_attention *a, const struct at_sizes *z, int64_t b,
                               struct at_span split)
{
    int64_t bc = a->plan.bc;
    split = at_cut(split, (struct at_span){0, at_keys_of(a, z, b)});
    return split.lo < split.hi ? (split.hi - 1) / bc - split.lo / bc + 1 : 0;
}

/* A thread's count joins the others'. */
static inline void tally_add(struct at_tally *sum, const struct at_tally *x)
{
    if (!sum)
        return;
#pragma omp critical(at_tally)
    {
        sum->visited += x->visited;
        sum->partial += x->partial;
        sum->skipped += x->skipped;
    }
}

/* Rows of sequence b that have a place: in a dense batch those past q_len too, which are empty. */
static inline int64_t placed_rows(const struct at_attention *a, const struct at_sizes *z, int64_t b)
{
    return a->score.q_start ? at_rows_of(a, z, b) : z->Sq;
}

/* -- Rows into the working type, at the speed of a copy --------------------------------------- */

/* fp16 by shifting its exponent field and one exact product; subnormals become normal by it. */
static inline float wide_half(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    float y = at_float(bits) * 0x1p112f;
    y = (half & 0x7c00) == 0x7c00 ? at_float(bits | 0x7f800000u) : y; /* infinity and NaN */
    return at_float(at_bits32(y) | sign);
}

/* The same numbers as at_load_row (a NaN may have another payload). */
static inline void load_row(const struct at_view *x, int64_t at, const struct at_view *descale,
                            int64_t b, int64_t h, int64_t s, int64_t n, at_real *restrict to)
{
    const uint16_t *half = (const uint16_t *)x->data + at;
    if (x->stride[3] != 1 || descale->data || x->dtype > AT_BF16) {
        at_load_row(x, at, descale, b, h, s, n, to);
    } else if (x->dtype == AT_F32) {
        for (int64_t c = 0; c < n; c++)
            to[c] = (at_real)((const float *)x->data + at)[c];
    } else if (x->dtype == AT_F64) {
        for (int64_t c = 0; c < n; c++)
            to[c] = (at_real)((const double *)x->data + at)[c];
    } else if (x->dtype == AT_BF16) {
        for (int64_t c = 0; c < n; c++)
            to[c] = (at_real)at_float((uint32_t)half[c] << 16);
    } else {
        for (int64_t c = 0; c < n; c++)
            to[c] = (at_real)wide_half(half[c]);
    }
}

/* Asks for a row's memory. */
static inline void hint_row(const struct at_view *x, int64_t at)
{
    int64_t size = x->dtype == AT_F64 ? 8 : x->dtype == AT_F32 ? 4 : x->dtype > AT_BF16 ? 1 : 2;
    const char *row = (const char *)x->data + at * size;
    for (int64_t c = 0; c < x->dim[3] * size; c += 64)
        __builtin_prefetch(row + c);
}

static inline void load_key(const struct at_attention *a, const struct at_sizes *z, int64_t b,
                            int64_t g, int64_t j, at_real *to)
{
    load_row(&a->k, at_key_offset(a, &a->k, b, g, j), &a->score.kscale, b, g, j, z->D, to);
}

static inline void load_value(const struct at_attention *a, const struct at_sizes *z, int64_t b,
                              int64_t g, int64_t j, at_real *to)
{
    load_row(&a->v, at_key_offset(a, &a->v, b, g, j), &a->score.vscale, b, g, j, z->Dv, to);
}

/* -- Rows out --------------------------------------------------------------------------------- */

/* Takes in the sink, divides and stores. row is spoilt. */
static inline void finish_row(const struct tiled_call *call, const struct at_sizes *z, int64_t b,
                              int64_t h, int64_t i, struct at_row *row)
{
    const struct at_attention *a = call->a;
    const struct at_view *sink = &a->score.sink, *out = &call->to->out, *lse = &call->to->lse;
    at_real gain = at_drops(a) ? at_rounded(at_gain(a->dropout.p)) : 1;
    if (sink->data && i < at_rows_of(a, z, b))
        at_row_sink(row, at_load(sink, at_offset(sink, 0, h, 0, 0)), z->Dv);
    for (int64_t c = 0; c < z->Dv; c++)
        row->u[c] = at_out(row->u[c], row->l, gain);
    int64_t at = at_row_offset(a, out, b, h, i);
    for (int64_t c = 0; c < z->Dv; c++)
        at_store(out, at + c * out->stride[3], row->u[c]);
    if (lse->data)
        at_store(lse, at_row_offset(a, lse, b, h, i), at_lse(row->m, row->l));
}

static inline void put_row(const struct tiled_call *call, const struct at_sizes *z, int64_t b,
                           int64_t h, int64_t i, struct at_row *row)
{
    if (call->x)
        at_row_store(call->a, call->x, b, h, i, row);
    else
        finish_row(call, z, b, h, i, row);
}

#endif

/* What the files of the generator share: numbers by integers alone, a case in the making, the table
 * of cases. SPDX-License-Identifier: MIT */
#ifndef GENERATE_H
#define GENERATE_H

#include "brush.h"
#include "oracle.h"
#include <jansson.h>

/* -- A case in the making ---------------------------------------------------------------------- */

struct at_plot;

/* Tensors that a case may have, as its file names them. The first AT_NUMBERS hold numbers, then
 * come bytes, then whole numbers. */
enum at_part {
    AT_Q,
    AT_K,
    AT_V,
    AT_BIAS,
    AT_ALIBI,
    AT_SINK,
    AT_Q_DESCALE,
    AT_K_DESCALE,
    AT_V_DESCALE,
    AT_MASK,
    AT_KEEP,
    AT_Q_LEN,
    AT_KV_LEN,
    AT_OFFSETS,
    AT_CU_Q,
    AT_CU_K,
    AT_TABLE,
    AT_INDPTR,
    AT_INDICES,
    AT_LAST_PAGE,
    AT_INPUTS,
    AT_NUMBERS = AT_MASK,
    AT_BYTES = AT_Q_LEN
};

/* How k and v lie in the file: dense; in pages of a table (rows, then heads); in pages of a list
 * (heads, then rows). */
enum at_paging { AT_DENSE, AT_BLOCK_TABLE, AT_PAGE_LIST };

/* How fine descales are: one a tensor, a head of a sequence, a row of it. */
enum at_grain { AT_BY_TENSOR, AT_BY_HEAD, AT_BY_ROW };

/* Extents and masks may differ from the request's where the case is about them. It is painted
 * dense, in doubles, and rounded once to the dtype where the file's tensors are made (layout.c);
 * packed rows and pages are made there too. */
struct at_canvas {
    const struct at_request *want;
    const struct at_plot *plot;
    char name[80];
    int64_t tile; /* of a case that is made once for each stated tile; else the first */
    int64_t B, Hq, Hkv, Sq, Skv, D, Dv;
    enum at_corner corner;
    int64_t left, right;
    bool has[AT_CU_Q]; /* which tensors; q, k, v always; the rest follows from the two below */
    bool packed;       /* layout thd */
    bool failed;       /* memory ran out while it was filled */
    enum at_paging paging;
    enum at_grain grain;
    double *q, *k, *v, *bias, *alibi, *sink, *qscale, *kscale, *vscale;
    unsigned char *mask, *keep;
    int64_t *q_len, *kv_len, *offset;
    struct at_attention a; /* over the doubles: dense; softcap and dropout are said here */
};

/* A case that may be generated. Names and numbers are for ever; new ones are added at the end. */
struct at_plot {
    uint32_t number;
    const char *name, *catches;
    const char *needs; /* of the kernel, beyond causal and window as asked; "" */
    enum at_exact exact;
    bool by_tile;                      /* one case a stated tile, its name ends in -tileN */
    void (*size)(struct at_canvas *x); /* before the tensors exist; NULL: as asked */
    void (*fill)(struct at_canvas *x);
    const char *(*unfit)(const struct at_canvas *x); /* why not at this shape; NULL: it is */
};

const struct at_plot *at_plot_at(int64_t k);       /* NULL: no more */
int64_t at_plot_since(const struct at_plot *plot); /* the version of the suites that it joined */

/* Sizes only, or with the tensors painted. */
bool at_canvas_plan(struct at_canvas *x, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile);
bool at_canvas_paint(struct at_canvas *x);
void at_canvas_free(struct at_canvas *x);
/* Sequence b has so many rows and keys. */
int64_t at_canvas_rows(const struct at_canvas *x, int64_t b);
int64_t at_canvas_keys(const struct at_canvas *x, int64_t b);

/* -- Its file (layout.c, recipe.c) ---------------------------------------------------------- */

/* Bytes of its input tensors, without painting. */
int64_t at_canvas_bytes(const struct at_canvas *x);
/* Rows of q in the file, without heads: B Sq, or all packed ones. */
int64_t at_canvas_height(const struct at_canvas *x);
/* The input tensors in the request's dtype, in memory of alloc(with, bytes); -1: none left. At most
 * AT_INPUTS. */
int64_t at_canvas_tensors(const struct at_canvas *x, struct at_tensor *to,
                          void *(*alloc)(void *with, int64_t bytes), void *with);
/* The metadata: what a score is, and the recipe. */
json_t *at_canvas_meta(const struct at_canvas *x);
json_t *at_request_json(const struct at_request *want);

/* -- What cases are made of (exact.c, suites.c, fills.c, search.c) ----------------------------- */

/* 1 q, 2 k, 3 v, 4 bias, 5 masks, 6 further tensors, 7 searches */
struct at_brush at_canvas_brush(const struct at_canvas *x, int tensor);
void at_fill_normal(const struct at_canvas *x, double *to, int tensor, int64_t n);
/* Elements of the dense tensors. */
int64_t at_q_n(const struct at_canvas *x);
int64_t at_k_n(const struct at_canvas *x);
int64_t at_v_n(const struct at_canvas *x);

void at_fill_constant(struct at_canvas *x);
void at_fill_equal(struct at_canvas *x);
void at_fill_straddle(struct at_canvas *x);
void at_fill_signature(struct at_canvas *x);
void at_fill_balance(struct at_canvas *x);
void at_fill_needle(struct at_canvas *x);
void at_fill_diagonal(struct at_canvas *x);
void at_fill_lengths(struct at_canvas *x);
const char *at_unfit_label(const struct at_canvas *x);

/* Normals, times 4 for q, plus 3 for v. */
void at_fill(struct at_canvas *x);
void at_fill_peaked(struct at_canvas *x);
void at_fill_mean(struct at_canvas *x);
/* Normals, and NaN in the keys and values past the lengths. */
void at_fill_poisoned(struct at_canvas *x);
void at_poison(struct at_canvas *x);
/* Extreme scores and values, maxima by tile. */
void at_fill_common(struct at_canvas *x);
void at_fill_low(struct at_canvas *x);
void at_fill_below(struct at_canvas *x);
void at_fill_rising(struct at_canvas *x);
void at_fill_falling(struct at_canvas *x);
void at_fill_by_tile(struct at_canvas *x);
void at_fill_at_the_end(struct at_canvas *x);
void at_fill_zero(struct at_canvas *x);
void at_fill_half(struct at_canvas *x);
void at_fill_huge(struct at_canvas *x);
void at_fill_tiny(struct at_canvas *x);
void at_fill_cancel(struct at_canvas *x);
void at_fill_pair(struct at_canvas *x);
void at_fill_masked(struct at_canvas *x);
void at_fill_biased(struct at_canvas *x);

/* Fields of the score, dropout, infinities (fills_score.c). */
void at_fill_scale(struct at_canvas *x);
void at_fill_order(struct at_canvas *x);
void at_fill_slopes(struct at_canvas *x);
void at_fill_sink(struct at_canvas *x);
void at_fill_sink_above(struct at_canvas *x);
void at_fill_sink_alone(struct at_canvas *x);
void at_fill_descale(struct at_canvas *x);
void at_fill_keep(struct at_canvas *x);
void at_fill_infinite_values(struct at_canvas *x);
void at_fill_infinite_scores(struct at_canvas *x);
void at_fill_hidden(struct at_canvas *x);

/* Climbs to inputs on which a machine of the dtype errs most. */
void at_fill_search(struct at_canvas *x);
const char *at_unfit_search(const struct at_canvas *x);

#endif

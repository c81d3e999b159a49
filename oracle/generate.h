/* What the files of the generator share: numbers by integers alone, a case in the making, the table
 * of cases. SPDX-License-Identifier: MIT */
#ifndef GENERATE_H
#define GENERATE_H

#include "brush.h"
#include "oracle.h"
#include <jansson.h>

/* -- A case in the making ---------------------------------------------------------------------- */

struct at_plot;

/* Extents and masks may differ from the request's where the case is about them. Values are doubles
 * until the end, then rounded once to the dtype. */
struct at_canvas {
    const struct at_request *want;
    const struct at_plot *plot;
    char name[80];
    int64_t tile; /* of a case that is made once for each stated tile; else the first */
    int64_t B, Hq, Hkv, Sq, Skv, D, Dv;
    enum at_corner corner;
    int64_t left, right;
    bool lengths, masked, biased; /* which further tensors the case has */
    double *q, *k, *v, *bias;
    unsigned char *mask;
    int64_t *kv_len, *offset;
    struct at_attention a; /* over the doubles */
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

const struct at_plot *at_plot_at(int64_t k); /* NULL: no more */

/* Sizes only, or with the tensors painted. */
bool at_canvas_plan(struct at_canvas *x, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile);
bool at_canvas_paint(struct at_canvas *x);
void at_canvas_free(struct at_canvas *x);
/* Bytes of its input tensors, without painting. */
int64_t at_canvas_bytes(const struct at_canvas *x);
/* The input tensors in the request's dtype, in memory of alloc(with, bytes); -1: none left. At most
 * AT_INPUTS. */
enum { AT_INPUTS = 6 };
int64_t at_canvas_tensors(const struct at_canvas *x, struct at_tensor *to,
                          void *(*alloc)(void *with, int64_t bytes), void *with);
/* The metadata: what a score is, and the recipe. */
json_t *at_canvas_meta(const struct at_canvas *x);
json_t *at_request_json(const struct at_request *want);

/* -- What cases are made of (exact.c, suites.c) ------------------------------------------ */

/* 1 q, 2 k, 3 v, 4 bias, 5 masks */
struct at_brush at_canvas_brush(const struct at_canvas *x, int tensor);
void at_fill_normal(const struct at_canvas *x, double *to, int tensor, int64_t n);

void at_fill_constant(struct at_canvas *x);
void at_fill_equal(struct at_canvas *x);
void at_fill_straddle(struct at_canvas *x);
void at_fill_signature(struct at_canvas *x);
void at_fill_needle(struct at_canvas *x);
void at_fill_diagonal(struct at_canvas *x);
void at_fill_lengths(struct at_canvas *x);
const char *at_unfit_label(const struct at_canvas *x);
/* Lengths 1, tile-1, tile, tile+1, Skv, .. of the sequences. */
void at_set_lengths(struct at_canvas *x);
/* NaN in the keys and values that no row may see. */
void at_poison(struct at_canvas *x);

#endif

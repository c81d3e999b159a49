/* The catalogue's ideas as small problems: built by a few numbers, held for every tile, split and
 * merge order, answered in the catalogue's 15 digits. SPDX-License-Identifier: MIT */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "hold.h"

/* One row of the table. where: "here"; "check_x: test" in another suite; "backward". A backward
 * idea whose forward half is tested has a test too. */
struct idea {
    int number;
    const char *title, *where;
    const TTest *const *test;
};
extern const struct idea catalogue_softmax[], catalogue_masks[], catalogue_scores[],
    catalogue_layout[], catalogue_judge[]; /* each ends with number 0 */

/* Queries 1, keys and values 0, scale 1, everything visible; results NaN. */
void begin(struct problem *x, enum at_dtype dtype, int64_t B, int64_t Hq, int64_t Hkv, int64_t Sq,
           int64_t Skv, int64_t D, int64_t Dv);
/* A tensor of the problem's, 0 everywhere. */
struct at_view tensor(struct problem *x, enum at_dtype dtype, int64_t B, int64_t H, int64_t S,
                      int64_t D);
/* Numbers in the order (b,h,s,c), over again until the tensor is full. */
#define SET(view, ...)                                                                             \
    set(view, (const double[]){__VA_ARGS__}, sizeof(const double[]){__VA_ARGS__} / sizeof(double))
void set(const struct at_view *view, const double *number, size_t n);
void set_painted(const struct at_view *view, uint64_t stream); /* in [-1,1) */
void set_row(const struct at_view *view, int64_t b, int64_t h, int64_t s, double number);
/* "##. #.#": one picture for all sequences and heads. */
void draw_mask(struct problem *x, const char *picture);

/* Truth answers, and for every tile, split and order both engines stay within their bound. Digits
 * of all rows in order, "?" for any; NULL: not asked. */
void answers(struct problem *x, const char *out, const char *lse);
/* x and y give the same bits for every tile, split and order; rows 0 .. rows-1 (-1: all). */
void same_bits(struct problem *x, struct problem *y, int64_t rows);

#endif

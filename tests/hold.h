/* Holds an engine to truth: at_forward - at_truth - at_bound - at_compare; and two ways to disturb
 * a painted problem that must not change a bit. SPDX-License-Identifier: MIT */
#ifndef HOLD_H
#define HOLD_H

#include "paint.h"

struct hold {
    struct at_answer truth; /* of all rows, then the bound of the last engine */
    struct at_rows rows;
    enum at_status status; /* of the last step */
    struct at_verdict verdict;
};

/* Truth of every row; false: refused. */
bool hold_truth(struct hold *h, const struct at_attention *a);
/* Runs e into `to` and judges it; a problem without rows passes. */
void hold_engine(struct hold *h, const struct at_engine *e, const struct at_attention *a,
                 const struct at_result *to);
void hold_free(struct hold *h);
bool hold_same_truth(const struct hold *x, const struct hold *y); /* hi and lo, to the bit */
/* "out (3,1): got ..., truth ..., allowed ..., ratio ..."; 15 digits of a number as the catalogue
 * prints them. Both in static buffers. */
const char *hold_line(const struct hold *h);
const char *hold_digits(double x);

/* Writes `poison` wherever no row of p looks: hidden keys and values, dropped values, queries that
 * see nothing, their scales and biases, unused pages, gaps; masks there are turned round. */
void hold_poison(struct problem *p, double poison);

/* Row i of sequence b under head h as a problem of its own, with the split points of p; its results
 * are written into the memory of p's. */
struct hold_alone {
    struct at_attention a;
    struct at_result got;
    int64_t offset, q_len, kv_len, *cut;
    uint8_t *keep;
};
void hold_alone(struct hold_alone *x, const struct problem *p, int64_t b, int64_t h, int64_t i);
void hold_alone_free(struct hold_alone *x);
bool hold_same_row(const struct problem *p, const struct problem *q, int64_t b, int64_t h,
                   int64_t i);

#endif

/* Ordinary inputs: normal numbers, as a kernel's own test would draw them, of any shape, with the
 * features that are asked for. SPDX-License-Identifier: MIT */
#ifndef ORDINARY_H
#define ORDINARY_H

#include "paint.h"

enum ordinary_feature {
    ORDINARY_CAUSAL = 1 << 0, /* bottom-right */
    ORDINARY_WINDOW = 1 << 1, /* a quarter of the keys on the left */
    ORDINARY_MASK = 1 << 2,   /* one key in four hidden */
    ORDINARY_LENGTHS = 1 << 3,
    ORDINARY_BIAS = 1 << 4,
    ORDINARY_ALIBI = 1 << 5,
    ORDINARY_SINK = 1 << 6,
    ORDINARY_CAP = 1 << 7,
    ORDINARY_DROPOUT = 1 << 8,
    ORDINARY_DESCALE = 1 << 9,
    ORDINARY_PAGES = 1 << 10,
    ORDINARY_ALL = (1 << 11) - 1
};

struct ordinary_shape {
    int64_t B, Hq, Hkv, Sq, Skv, D, Dv;
    enum at_dtype dtype; /* of q, k, v and out */
    uint32_t features;
    double reach; /* the standard deviation of q; 0: 1 */
};

struct ordinary {
    struct at_attention a; /* valid, plan not chosen */
    struct at_result got;  /* out of the dtype, lse fp32 */
    void *owned[24];
    int count;
};

void ordinary_make(struct ordinary *x, uint64_t seed, struct ordinary_shape shape);
void ordinary_free(struct ordinary *x);

#endif

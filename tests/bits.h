/* Random problems and the comparison of two engines' bits. No test library, no MPFR: the same file
 * serves Check's suite, a replay by hand and another machine under an emulator.
 * SPDX-License-Identifier: MIT */
#ifndef BITS_H
#define BITS_H

#include "attest.h"

/* What a problem may have beyond the plain one; a replay drops some to find the one that
 * matters. */
enum {
    BITS_MASK = 1 << 0,
    BITS_BIAS = 1 << 1,
    BITS_SOFTCAP = 1 << 2,
    BITS_ALIBI = 1 << 3,
    BITS_SINK = 1 << 4,
    BITS_DESCALE = 1 << 5,
    BITS_WINDOW = 1 << 6,
    BITS_LENGTHS = 1 << 7,
    BITS_DROPOUT = 1 << 8,
    BITS_LAYOUT = 1 << 9, /* ragged, paged, (B,S,H,D) */
    BITS_DTYPE = 1 << 10,
    BITS_POISON = 1 << 11, /* NaN, infinities, zeros of both signs, tiny and huge numbers */
    BITS_SPLITS = 1 << 12,
    BITS_TILE = 1 << 13,
    BITS_LANES = 1 << 14,
    BITS_THREADS = 1 << 15,
    BITS_BATCH = 1 << 16,
    BITS_SIZE = 1 << 17,
    BITS_ALL = (1 << 18) - 1
};

struct bits_problem {
    struct at_attention a;
    struct at_result to;
    struct bits_block *blocks; /* every array, freed together */
};

/* Every array is a block of its own, so that a sanitizer sees its ends. */
void bits_make(struct bits_problem *p, uint64_t seed, unsigned features);
void bits_free(struct bits_problem *p);

/* Runs both on the problem of this seed. AT_OK and the same bits, in the whole way and in the state
 * of some keys: true. Otherwise `text` says what. */
bool bits_equal(const struct at_engine *x, const struct at_engine *y, uint64_t seed,
                unsigned features, char text[300]);

/* The fewest features with which they still differ. */
unsigned bits_shrink(const struct at_engine *x, const struct at_engine *y, uint64_t seed);

#endif

/* What this machine could do at best: fused multiply-adds from registers, one pass over memory.
 * SPDX-License-Identifier: MIT */
#ifndef ROOF_H
#define ROOF_H

#include <stdbool.h>
#include <stdint.h>

/* FLOP/s of all threads together, in fp32 or fp64, in the widest instruction set that the engine may
 * use here (k as in at_tiled_at). */
double roof_fma(int64_t k, bool wide, int threads);

/* Bytes/s of reading these blocks once, threads sharing them by need. */
struct roof_block {
    const void *data;
    int64_t bytes;
};
double roof_read(int64_t k, const struct roof_block *block, int64_t n, int threads);

double seconds_now(void);

#endif

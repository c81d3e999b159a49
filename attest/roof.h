/* What this machine could do at best: fused multiply-adds from registers, one pass over memory.
 * SPDX-License-Identifier: MIT */
#ifndef ROOF_H
#define ROOF_H

#include <stdbool.h>
#include <stdint.h>

/* By the clock on the wall, and by the processor time of all threads together: on a shared machine
 * the second does not see other people's work, only what they do to caches and memory. */
struct seconds {
    double wall, cpu;
};

struct seconds seconds_now(void);
struct seconds seconds_since(struct seconds start);

/* What `flops` fused multiply-adds from registers take all threads together, in fp32 or fp64, in
 * the engine's build k (as in at_tiled_at); measured over about `time` seconds. */
struct seconds roof_fma(double flops, double time, int64_t k, bool wide, int threads);

/* What reading these blocks once takes, threads sharing them by need. */
struct roof_block {
    const void *data;
    int64_t bytes;
};
struct seconds roof_read(int64_t k, const struct roof_block *block, int64_t n, int threads);

#endif

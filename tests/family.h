/* Problems that are hard on a bound: extreme scores and values, any plan, any part of a score; and
 * a stated arithmetic simulated on them and judged. SPDX-License-Identifier: MIT */
#ifndef FAMILY_H
#define FAMILY_H

#include "at_simulate.h"
#include "paint.h"

enum { FAMILY_ROWS = 8, FAMILY_KEYS = 80, FAMILY_D = 8, FAMILY_DV = 8 };

struct family {
    uint64_t seed;
    struct at_attention a; /* (1,2,4,D), (1,1,n,D), (1,1,n,Dv) */
    int64_t n, D, Dv;
    enum at_dtype dtype;
    const char *scores, *values; /* which family */
    double q[FAMILY_ROWS * FAMILY_D], k[FAMILY_KEYS * FAMILY_D], v[FAMILY_KEYS * FAMILY_DV];
    double bias[FAMILY_ROWS * FAMILY_KEYS], small[4][FAMILY_KEYS]; /* memory of any dtype */
    unsigned char mask[FAMILY_ROWS * FAMILY_KEYS], keep[FAMILY_ROWS * FAMILY_KEYS];
    double out[FAMILY_ROWS * FAMILY_DV], lse[FAMILY_ROWS];     /* as simulated */
    double got[FAMILY_ROWS * FAMILY_DV], got_lse[FAMILY_ROWS]; /* as stored */
    double ratio[FAMILY_ROWS * (FAMILY_DV + 1)];               /* -1: no claim */
    int64_t offset[1], cut[8];
    struct at_answer x;
};

/* Sums over problems. */
struct tally {
    int64_t outputs, claimed, unclaimed, open, failed;
    double out, lse; /* largest ratios */
};

/* A problem of a kind that the preset serves, and its arithmetic with the plan's tile and joins. */
void family_paint(struct family *f, uint64_t seed, const struct at_arith *preset,
                  struct at_arith *arith);
void family_free(struct family *f);
bool family_truth(struct family *f); /* false: the arithmetic does not serve it */
/* Simulates, bounds, judges in an output dtype of the problem's; false: not served. */
bool family_judge(struct family *f, const struct at_arith *arith, enum at_lean lean, uint64_t seed,
                  struct tally *to);
const char *family_line(const struct family *f); /* in a static buffer */
void tally_add(struct tally *to, const struct tally *x);

#endif

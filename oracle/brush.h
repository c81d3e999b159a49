/* Numbers painted by integers alone (paint.c; the formula: docs/generator.md). Needs no library.
 * SPDX-License-Identifier: MIT */
#ifndef BRUSH_H
#define BRUSH_H

#include "at_index.h"

/* Number n of a stream of a seed; the same number whatever else is drawn. */
struct at_brush {
    uint64_t seed;
    uint32_t stream;
};

double at_normal(struct at_brush b, uint64_t n);                           /* exact: 52 bits */
int64_t at_integer(struct at_brush b, uint64_t n, int64_t lo, int64_t hi); /* lo..hi, uniform */

#endif

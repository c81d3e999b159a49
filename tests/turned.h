/* Problems at the ends of the range, by turns of their number k: what few faults show in.
 * SPDX-License-Identifier: MIT */
#ifndef TURNED_H
#define TURNED_H

#include "at_index.h"
#include "paint.h"

/* In one problem of eight NaN and infinities are seen; one in eight can be stretched. */
static inline struct paint_options turned(struct paint_options x, int64_t k)
{
    if (k % 8 == 3)
        x.without &= ~(uint32_t)PAINT_SPECIAL, x.with = PAINT_SPECIAL;
    if (k % 8 == 7)
        x.without |= PAINT_STRIDES | PAINT_LATENT | PAINT_NARROW;
    return x;
}

/* Its values become huge, 256 of their sums past every number, or subnormal. */
static inline void stretch(const struct at_view *v, int64_t k)
{
    const int64_t *n = v->dim;
    for (int64_t t = 0; k % 8 == 7 && t < n[0] * n[1] * n[2] * n[3]; t++) {
        int64_t c = t % n[3], j = t / n[3] % n[2], g = t / (n[3] * n[2]) % n[1];
        int64_t b = t / (n[3] * n[2] * n[1]);
        double x = paint_get(v, b, g, j, c) * (k % 16 == 7 ? 0x1p120 : 0x1p-130);
        paint_put(v, at_offset(v, b, g, j, c), x);
    }
}

#endif

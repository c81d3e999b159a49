/* Numbers from a seed by integers alone, so that they are the same bits on every machine and in
 * every language: Philox4x32-10 of the number's place, then sums and shifts.
 *
 *     w = philox(n lo, n hi, stream, 0; seed) ++ philox(n lo, n hi, stream, 1; seed)
 *     normal  = (2^32 (the 12 halves of w[0..5]) + w[6] - 2^32 393210.5) 2^-48
 *     integer = lo + floor(w[7] (hi-lo+1) / 2^32)
 *
 * A half has mean 32767.5 and variance (2^32-1)/12, so the normal has mean 0 and variance 1 to
 * 2^-16, and |normal| < 6. It is an integer below 2^52 times 2^-48: a double holds it exactly, and
 * fp64 inputs have full significands. Nothing here calls libm. SPDX-License-Identifier: MIT */
#include "brush.h"

static void words(struct at_brush b, uint64_t n, uint32_t w[8])
{
    for (uint32_t k = 0; k < 2; k++) {
        struct at_four x = {{(uint32_t)n, (uint32_t)(n >> 32), b.stream, k}};
        x = at_philox(x, (uint32_t)b.seed, (uint32_t)(b.seed >> 32));
        memcpy(w + 4 * k, x.word, sizeof x.word);
    }
}

double at_normal(struct at_brush b, uint64_t n)
{
    uint32_t w[8];
    int64_t sum = 0;
    words(b, n, w);
    for (int k = 0; k < 6; k++)
        sum += (w[k] & 0xffff) + (w[k] >> 16);
    int64_t centred = (sum - 393210) * ((int64_t)1 << 32) + (int64_t)w[6] - ((int64_t)1 << 31);
    return (double)centred * 0x1p-48;
}

int64_t at_integer(struct at_brush b, uint64_t n, int64_t lo, int64_t hi)
{
    uint32_t w[8];
    words(b, n, w);
    return lo + (int64_t)((uint64_t)w[7] * (uint64_t)(hi - lo + 1) >> 32);
}

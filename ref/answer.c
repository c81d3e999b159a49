/* Room for the answers of truth and bound. SPDX-License-Identifier: MIT */
#include "attest.h"
#include <stdlib.h>

/* One block: numbers, then bits, then kinds, so that each begins aligned. */
enum at_status at_answer_make(struct at_answer *x, int64_t n, int64_t Dv)
{
    int64_t cells, bytes;
    *x = (struct at_answer){.n = n, .Dv = Dv};
    if (n < 0 || Dv < 1)
        return AT_ERR_SHAPE;
    int64_t each = 5 * (int64_t)sizeof(double) + (int64_t)sizeof(int16_t) + 1; /* at most, a cell */
    if (__builtin_mul_overflow(n, Dv + 1, &cells) || __builtin_mul_overflow(cells, each, &bytes))
        return AT_ERR_MEMORY;
    double *d = calloc((size_t)bytes + 1, 1);
    if (!d)
        return AT_ERR_MEMORY;
    int64_t m = n * Dv;
    x->out = d, x->out_lo = d + m, x->out_bound = d + 2 * m, x->without = d + 3 * m;
    d += 4 * m;
    x->lse = d, x->lse_lo = d + n, x->lse_bound = d + 2 * n;
    x->out_bits = (int16_t *)(d + 3 * n), x->lse_bits = x->out_bits + m;
    x->out_kind = (unsigned char *)(x->lse_bits + n), x->lse_kind = x->out_kind + m;
    return AT_OK;
}

void at_answer_free(struct at_answer *x)
{
    free(x->out);
    *x = (struct at_answer){0};
}

/* Whole tensors of row states: merge, sink, finish. The algebra is at_row.h's.
 * Compiled for AT_BITS 32 and 64; checked by attention.c. SPDX-License-Identifier: MIT */
#include "at_row.h"
#include "ref.h"
#include <stdlib.h>

/* States are merged and finished where they lie, packed or not: a descriptor that places rows like
 * a dense tensor. */
static const struct at_attention dense;

enum at_status AT_NAME(at_merge)(const struct at_state *x, const struct at_state *y)
{
    int64_t Dv = x->u.dim[3];
    at_real *u = malloc((size_t)(2 * Dv) * sizeof *u);
    if (!u)
        return AT_ERR_MEMORY;
    for (int64_t b = 0; b < x->u.dim[0]; b++)
    for (int64_t h = 0; h < x->u.dim[1]; h++)
    for (int64_t i = 0; i < x->u.dim[2]; i++) {
        struct at_row one = {.u = u}, other = {.u = u + Dv};
        at_row_load(&dense, x, b, h, i, &one);
        at_row_load(&dense, y, b, h, i, &other);
        at_row_merge(&one, &other, Dv);
        at_row_store(&dense, x, b, h, i, &one);
    }
    free(u);
    return AT_OK;
}

enum at_status AT_NAME(at_sink)(const struct at_attention *a, const struct at_state *x)
{
    struct at_sizes z = at_sizes(a);
    const struct at_view *sink = &a->score.sink;
    struct at_row row = {.u = malloc((size_t)z.Dv * sizeof *row.u)};
    if (!row.u)
        return AT_ERR_MEMORY;
    for (int64_t b = 0; b < z.B; b++)
    for (int64_t h = 0; h < z.Hq; h++)
    for (int64_t i = 0; i < at_rows_of(a, &z, b); i++) {
        at_row_load(a, x, b, h, i, &row);
        at_row_sink(&row, at_load(sink, at_offset(sink, 0, h, 0, 0)), z.Dv);
        at_row_store(a, x, b, h, i, &row);
    }
    free(row.u);
    return AT_OK;
}

enum at_status AT_NAME(at_finish)(const struct at_state *x, double gain, const struct at_result *to)
{
    at_real g = at_rounded(gain);
    for (int64_t b = 0; b < x->u.dim[0]; b++)
    for (int64_t h = 0; h < x->u.dim[1]; h++)
    for (int64_t i = 0; i < x->u.dim[2]; i++) {
        at_real m = at_load(&x->m, at_offset(&x->m, b, h, i, 0));
        at_real l = at_load(&x->l, at_offset(&x->l, b, h, i, 0));
        for (int64_t c = 0; c < x->u.dim[3]; c++) {
            at_real u = at_load(&x->u, at_offset(&x->u, b, h, i, c));
            at_store(&to->out, at_offset(&to->out, b, h, i, c), at_out(u, l, g));
        }
        if (to->lse.data)
            at_store(&to->lse, at_offset(&to->lse, b, h, i, 0), at_lse(m, l));
    }
    return AT_OK;
}

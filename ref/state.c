/* Whole tensors of row states: merge, sink, finish, and the forms that other libraries hand over.
 * The algebra is at_row.h's.
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

/* -- Other libraries' forms ------------------------------------------------------------------ */

static const at_real LN2 = (at_real)0x1.62e42fefa39efp-1, LOG2E = (at_real)0x1.71547652b82fep+0;

/* One row out: what stands in place of lse, and out's factor. */
static void row_to_foreign(const struct at_row *row, const struct at_foreign *to, int64_t b,
                           int64_t h, int64_t i)
{
    bool empty = row->l == 0, raw = to->form == AT_U_M_L;
    at_real lse =
        to->form == AT_OUT_LSE || to->form == AT_OUT_LSE2 ? at_lse(row->m, row->l) : row->m;
    if (to->form == AT_OUT_LSE2)
        lse = lse * LOG2E;
    if (empty)
        lse = at_rounded(to->empty_lse);
    at_store(&to->lse, at_offset(&to->lse, b, h, i, 0), lse);
    if (raw || to->form == AT_OUT_M_L)
        at_store(&to->l, at_offset(&to->l, b, h, i, 0), row->l);
    for (int64_t c = 0; c < to->out.dim[3]; c++) {
        at_real x = raw ? row->u[c] : at_out(row->u[c], row->l, 1);
        at_store(&to->out, at_offset(&to->out, b, h, i, c),
                 empty && to->empty_nan ? (at_real)NAN : x);
    }
}

/* A foreign row is empty where its l is 0, or its lse the mark. A mark that is a number can also be
 * an honest lse: whoever uses one has lost that distinction. */
static void row_from_foreign(const struct at_foreign *from, int64_t b, int64_t h, int64_t i,
                             struct at_row *row)
{
    bool sums = from->form == AT_OUT_M_L || from->form == AT_U_M_L;
    row->m = at_load(&from->lse, at_offset(&from->lse, b, h, i, 0));
    row->l = sums ? at_load(&from->l, at_offset(&from->l, b, h, i, 0)) : 1;
    if (sums ? row->l == 0 : row->m == at_rounded(from->empty_lse)) {
        at_row_clear(row, -(at_real)INFINITY, from->out.dim[3]);
        return;
    }
    if (from->form == AT_OUT_LSE2)
        row->m = row->m * LN2;
    for (int64_t c = 0; c < from->out.dim[3]; c++) {
        at_real x = at_load(&from->out, at_offset(&from->out, b, h, i, c));
        row->u[c] = from->form == AT_OUT_M_L ? x * row->l : x;
    }
}

enum at_status AT_NAME(at_to_foreign)(const struct at_state *x, const struct at_foreign *to)
{
    struct at_row row = {.u = malloc((size_t)x->u.dim[3] * sizeof *row.u)};
    if (!row.u)
        return AT_ERR_MEMORY;
    for (int64_t b = 0; b < x->u.dim[0]; b++)
        for (int64_t h = 0; h < x->u.dim[1]; h++)
            for (int64_t i = 0; i < x->u.dim[2]; i++) {
                at_row_load(&dense, x, b, h, i, &row);
                row_to_foreign(&row, to, b, h, i);
            }
    free(row.u);
    return AT_OK;
}

enum at_status AT_NAME(at_from_foreign)(const struct at_foreign *from, const struct at_state *x)
{
    struct at_row row = {.u = malloc((size_t)x->u.dim[3] * sizeof *row.u)};
    if (!row.u)
        return AT_ERR_MEMORY;
    for (int64_t b = 0; b < x->u.dim[0]; b++)
        for (int64_t h = 0; h < x->u.dim[1]; h++)
            for (int64_t i = 0; i < x->u.dim[2]; i++) {
                row_from_foreign(from, b, h, i, &row);
                at_row_store(&dense, x, b, h, i, &row);
            }
    free(row.u);
    return AT_OK;
}

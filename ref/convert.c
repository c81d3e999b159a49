/* Other libraries' forms of a state: checks, and the places of their log-sum-exps.
 * The arithmetic is state.c's. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"

static bool holds_sums(const struct at_foreign *x)
{
    return x->form == AT_OUT_M_L || x->form == AT_U_M_L;
}

static enum at_status check(const struct at_state *x, const struct at_foreign *y)
{
    enum at_status status = at_check_state(x);
    if (status != AT_OK)
        return status;
    if (!y->out.data || !y->lse.data || (holds_sums(y) && !y->l.data))
        return AT_ERR_MISSING;
    if (!at_same_rows(&y->out, &x->u, x->u.dim[3]) || !at_same_rows(&y->lse, &x->u, 1) ||
        (holds_sums(y) && !at_same_rows(&y->l, &x->u, 1)))
        return AT_ERR_SHAPE;
    bool numbers = at_is_float(y->out.dtype) && at_is_float(y->lse.dtype) &&
                   (!holds_sums(y) || at_is_float(y->l.dtype));
    return numbers ? AT_OK : AT_ERR_DTYPE;
}

enum at_status at_to_foreign(const struct at_state *x, const struct at_foreign *to)
{
    enum at_status status = check(x, to);
    if (status != AT_OK)
        return status;
    return x->u.dtype == AT_F64 ? at_to_foreign_f64(x, to) : at_to_foreign_f32(x, to);
}

enum at_status at_from_foreign(const struct at_foreign *from, const struct at_state *x)
{
    enum at_status status = check(x, from);
    if (status != AT_OK)
        return status;
    return x->u.dtype == AT_F64 ? at_from_foreign_f64(from, x) : at_from_foreign_f32(from, x);
}

/* -- Places ---------------------------------------------------------------------------------- */

struct at_view at_lse_ht(void *data, enum at_dtype dtype, int64_t T, int64_t H)
{
    return (struct at_view){data, dtype, {1, H, T, 1}, {H * T, T, 1, 1}};
}

struct at_view at_lse_th(void *data, enum at_dtype dtype, int64_t T, int64_t H)
{
    return (struct at_view){data, dtype, {1, H, T, 1}, {H * T, 1, H, 1}};
}

/* Copies the rows that sequences have, one way or the other. */
static enum at_status copy_rows(const struct at_attention *a, const struct at_view *packed,
                                const struct at_view *padded, bool pad)
{
    struct at_sizes z = at_sizes(a);
    int64_t C = packed->dim[3], size = at_dtype_size(packed->dtype);
    if (!at_same_rows(packed, &a->q, C) || padded->dim[0] != z.B || padded->dim[1] != z.Hq ||
        padded->dim[2] < z.Sq || padded->dim[3] != C)
        return AT_ERR_SHAPE;
    if (packed->dtype != padded->dtype || size == 0)
        return AT_ERR_DTYPE;
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.Hq; h++)
            for (int64_t i = 0; i < at_rows_of(a, &z, b); i++)
                for (int64_t c = 0; c < C; c++) {
                    int64_t at = at_row_offset(a, packed, b, h, i) + c * packed->stride[3];
                    char *x = (char *)packed->data + size * at;
                    char *y = (char *)padded->data + size * at_offset(padded, b, h, i, c);
                    memcpy(pad ? y : x, pad ? x : y, (size_t)size);
                }
    return AT_OK;
}

enum at_status at_pad(const struct at_attention *a, const struct at_view *packed,
                      const struct at_view *padded)
{
    return copy_rows(a, packed, padded, true);
}

enum at_status at_unpad(const struct at_attention *a, const struct at_view *padded,
                        const struct at_view *packed)
{
    return copy_rows(a, packed, padded, false);
}

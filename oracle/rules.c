/* What published rules of thumb say of the same numbers: shown beside the verdict, never part of
 * it. The numbers are the defaults of torch.testing.assert_close (PyTorch's _DTYPE_PRECISIONS) and
 * of numpy.allclose; both hold got against the truth rounded to got's dtype: |got - want| <= atol +
 * rtol*|want|, NaN never, infinities equal. These are the only tolerances in the tree.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "oracle.h"

static const struct published {
    enum at_dtype dtype;
    double rtol, atol;
} assert_close[] = {
    {AT_F64, 1e-7, 1e-7},    /* published rule */
    {AT_F32, 1.3e-6, 1e-5},  /* published rule */
    {AT_F16, 1e-3, 1e-5},    /* published rule */
    {AT_BF16, 1.6e-2, 1e-5}, /* published rule */
};
static const struct published allclose = {AT_DEFAULT, 1e-5, 1e-8}; /* published rule, any dtype */

/* Other dtypes have no default there: equality. */
static struct at_rule rule_for(enum at_dtype dtype)
{
    struct at_rule rule = {.name = "assert_close"};
    for (size_t k = 0; k < sizeof assert_close / sizeof *assert_close; k++)
        if (assert_close[k].dtype == dtype) {
            rule.rtol = assert_close[k].rtol;
            rule.atol = assert_close[k].atol;
        }
    return rule;
}

static bool within(const struct at_rule *rule, double got, double want)
{
    return got == want ||
           (isfinite(want) && fabs(got - want) <= rule->atol + rule->rtol * fabs(want));
}

void at_rules(const struct at_attention *a, const struct at_view *out, struct at_rows rows,
              const struct at_answer *x, struct at_rule rule[AT_RULES])
{
    unsigned char space[8];
    struct at_view one = at_bhsd(space, out->dtype, 1, 1, 1, 1);
    rule[0] = rule_for(out->dtype);
    rule[1] = (struct at_rule){"allclose", allclose.rtol, allclose.atol, 0, 0};
    for (int64_t t = 0; t < rows.n; t++) {
        struct at_place p = at_place_of(a, rows, t);
        for (int64_t c = 0; c < x->Dv; c++) {
            double got = at_load(out, at_row_offset(a, out, p.b, p.h, p.i) + c * out->stride[3]);
            at_store(&one, 0, x->out[t * x->Dv + c]);
            double want = at_load(&one, 0);
            for (int k = 0; k < AT_RULES; k++) {
                rule[k].judged++;
                rule[k].beyond += !within(&rule[k], got, want);
            }
        }
    }
}

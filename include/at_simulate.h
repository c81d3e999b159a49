/* Simulated machines: evidence for the bound (docs/bounds.md, "Evidence").
 * SPDX-License-Identifier: MIT */
#ifndef AT_SIMULATE_H
#define AT_SIMULATE_H

#include "attest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which way the stated errors of exp, log, tanh and products go: none is made (each is correctly
 * rounded), all up, all down, or drawn from the seed. */
enum at_lean { AT_STRAIGHT, AT_UP, AT_DOWN, AT_DRAWN };

/* The scalar algorithm on a machine that rounds every operation to `compute`; scores, weights and
 * sums are rounded again where they have formats of their own. exp, log and tanh are at_math.h's
 * where own_math is set (then compute is fp32). The rest is what at_arith says of the same names;
 * sums that are cut, or finer than compute, are those of the dot product too. */
struct at_machine {
    struct at_float compute, score, weight, sum, out;
    bool rounded_sum; /* l sums the rounded weights */
    bool own_math;
    uint64_t seed; /* Philox4x32-10, counted from 0 in each row */
    struct at_float total, query, key;
    bool normalised, fused, inexact_one, lse_merge, reciprocal;
    int weight_shift;
    enum at_lean lean;
    double product_eps, exp_eps, log_eps, tanh_eps; /* the errors, relative */
};

/* One that makes what the arithmetic states; any plan but for `joins`. */
struct at_machine at_machine_of(const struct at_arith *arith);

struct at_float at_float_of(enum at_dtype dtype); /* to nearest even, gradual underflow; not fp64 */

/* x rounded to the format; count advances where that is stochastic. */
double at_rounded_to(double x, const struct at_float *f, uint64_t seed, uint64_t *count);

/* out (n,Dv), lse (n) of the rows, as the machine computes them under a's plan.
 * Errors  those of at_validate; AT_ERR_PLAN: a format past 24 bits; AT_ERR_MEMORY. */
AT_CHECKED enum at_status at_simulate(const struct at_attention *a,
                                      const struct at_machine *machine, struct at_rows rows,
                                      double *out, double *lse);

#ifdef __cplusplus
}
#endif
#endif

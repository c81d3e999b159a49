/* What the files of ref/ share. SPDX-License-Identifier: MIT */
#ifndef REF_H
#define REF_H

#include "attest.h"
#include <mpfr.h>

/* -- The engines, once for each working type ------------------------------------------------- */

at_attend at_scalar_f32, at_scalar_f64, at_standard_f32, at_standard_f64;
enum at_status at_merge_f32(const struct at_state *x, const struct at_state *y);
enum at_status at_merge_f64(const struct at_state *x, const struct at_state *y);
enum at_status at_finish_f32(const struct at_state *x, double gain, const struct at_result *to);
enum at_status at_finish_f64(const struct at_state *x, double gain, const struct at_result *to);
enum at_status at_to_foreign_f32(const struct at_state *x, const struct at_foreign *to);
enum at_status at_to_foreign_f64(const struct at_state *x, const struct at_foreign *to);
enum at_status at_from_foreign_f32(const struct at_foreign *from, const struct at_state *x);
enum at_status at_from_foreign_f64(const struct at_foreign *from, const struct at_state *x);
/* What attention.c and convert.c ask of views. */
bool at_is_float(enum at_dtype dtype);
bool at_same_rows(const struct at_view *x, const struct at_view *y, int64_t D);
enum at_status at_check_state(const struct at_state *x);

/* Where the next merge of n neighbouring states happens: states at, at+1. seed, turn start as the
 * plan's merge_seed and 0. */
int64_t at_next_merge(const struct at_plan *p, int64_t n, uint64_t *seed, int64_t *turn);

/* The compute type of a plan: as asked, or the narrowest that holds every tensor. */
enum at_dtype at_compute(const struct at_attention *a);
/* x takes in the sinks of its rows; rows at or past q_len have none. */
enum at_status at_sink_f32(const struct at_attention *a, const struct at_state *x);
enum at_status at_sink_f64(const struct at_attention *a, const struct at_state *x);

/* -- Truth once more ------------------------------------------------------------------------- */

/* at_truth of the rows t that open[t] marks, then at_bound where arith is given. */
enum at_status at_truth_again(const struct at_attention *a, const struct at_arith *arith,
                              struct at_rows rows, const unsigned char *open, struct at_answer *x);
/* open[t] = 1, without clearing others, where the bits that truth has do not say whether an element
 * of row t is inside its interval. Shapes as at_compare has accepted. */
void at_unsettled(const struct at_attention *a, const struct at_result *got, struct at_rows rows,
                  const struct at_arith *arith, const struct at_answer *x, unsigned char *open);

/* -- Binary formats and MPFR ----------------------------------------------------------------- */

/* Significands of p bits; the smallest normal number is 2^emin; max is the largest finite one. */
struct at_format {
    int p;
    long emin;
    double max;
};

struct at_format at_format(enum at_dtype dtype);
double at_roundoff(enum at_dtype dtype); /* eps = 2^-p */
struct at_format at_format_of(const struct at_float *f);
struct at_format at_computed_in(const struct at_arith *arith);

/* "fp64", "fp32", "fp16", "bf16", "fp8-e4m3", "fp8-e5m2", "uint8", "int32", "int64"; "default".
 * Unknown name: AT_DEFAULT. Size in bytes. */
const char *at_dtype_name(enum at_dtype dtype);
enum at_dtype at_dtype_find(const char *name);
int at_dtype_size(enum at_dtype dtype);

/* A stored number, exactly, decoded by integers: no code in common with at_math.h. */
double at_stored(const struct at_view *x, int64_t at);
/* What row s of a tensor is multiplied by; 1: absent. */
double at_descale(const struct at_view *x, int64_t b, int64_t h, int64_t s);

/* A double rounded to nearest even in the format, subnormals and overflow to infinity included. */
double at_nearest(double x, struct at_format f);

/* x rounded to nearest even in the format, subnormals and overflow to infinity included. x must
 * have a precision that holds numbers of the format. */
void at_round(mpfr_ptr x, struct at_format f);

/* The next number of the format above x, a number of the format; past the largest: infinity. */
void at_next(mpfr_ptr x, struct at_format f);

/* -- Arithmetics by name --------------------------------------------------------------------- */

/* "key=value" into one field; where that says nothing x is untouched, and why (or NULL) says so. */
bool at_arith_set(struct at_arith *x, const char *text, struct at_why *why);
/* "preset,key=value,..." */
bool at_arith_read(struct at_arith *x, const char *text, struct at_why *why);
/* The presets that an output of this dtype is tried under, strictest first; NULL past the last. */
const struct at_arith *at_arith_ladder(enum at_dtype out, int64_t k);

/* -- Statistics of a verdict ------------------------------------------------------------------ */

/* The second line: errors as a whole, over the rows that have ordinary numbers in every column.
 * Assumes mean-independent roundings (ref/statistics.c); then a correct kernel fails it with
 * probability <= alarm. Does not apply: fewer than 8 such rows, identical rows, sums that are cut,
 * dropout. */
struct at_statistics {
    double rms, rms_limit;     /* of error over standard deviation */
    double gain, scale, limit; /* |z| along out, and along d out/d ln(scale) */
    double alarm;
    int64_t rows;
    bool applies, fails;
};

/* x: truth and bound of the rows under arith. Errors  AT_ERR_MEMORY. */
AT_CHECKED enum at_status at_statistics(const struct at_attention *a, const struct at_arith *arith,
                                        const struct at_view *out, struct at_rows rows,
                                        const struct at_answer *x, double alarm,
                                        struct at_statistics *to);

#endif

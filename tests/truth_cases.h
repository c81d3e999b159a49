/* Rows of one query of D = 1 and what their truth is: s are the keys, and q is 1.
 * SPDX-License-Identifier: MIT */
#ifndef TRUTH_CASES_H
#define TRUTH_CASES_H

#include "paint.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 8, EXACT = INT16_MAX };
#define INF (double)INFINITY
#define NO (-INF) /* no sink */
#define E 0x1p-52 /* from 1 to the next double */
#define TINIEST 0x1p-1074

/* By number from the catalogue of faults; out and lse to fifteen digits. */
static const struct known {
    const char *name;
    int n;
    double s[MOST], v[MOST], scale, cap, sink, out, lse;
} known[] = {
    {"3 a floor of the maximum",
     2,
     {-20000, -20001},
     {1, 3},
     1,
     0,
     NO,
     1.53788284273999,
     -19999.6867383125},
    {"9 unscaled scores",
     2,
     {-60000, -60001},
     {1, 3},
     0.01,
     0,
     NO,
     1.99500004166625,
     -599.311840319492},
    {"21 shards together",
     4,
     {2, 6, 10, 10},
     {1, 3, 5, 7},
     1,
     0,
     NO,
     5.97194947172239,
     10.702429516828},
    {"36 lost mass", 5, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}, 1, 0, NO, 1, 1.6094379124341},
    {"37 softcap of nothing", 5, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}, 1, 1, NO, 1, 1.6094379124341},
    {"40 low scores",
     3,
     {-100, -101, -102},
     {1, 2, 6},
     1,
     0,
     NO,
     1.6948813369067,
     -99.5923940355556},
    {"47 raw scores", 2, {90000, 89700}, {1, 2}, 0.01, 0, NO, 1.04742587317757, 900.048587351574},
    {"53 negative scale", 2, {0, 2}, {1, 3}, -0.5, 0, NO, 1.53788284273999, 0.313261687518223},
    {"55 softcap", 2, {-3, 2}, {1, 0}, 1, 5, NO, 0.0101007584538341, 1.90989692852517},
    {"60 scale of D = 5",
     2,
     {5, 0},
     {1, 0},
     0.4472135954999579,
     0,
     NO,
     0.903441993753177,
     2.3376113502227},
    {"62 sink", 2, {0, 0}, {3, 3}, 1, 0, 0, 2, 1.09861228866811},
    {"63 large sink", 1, {0}, {1}, 1, 0, 100, 3.72007597602084e-44, 100},
    {"64 sink", 2, {1, -1}, {2, 6}, 1, 0, 0, 1.87066535057193, 1.40760596444438},
    {"83 one key", 1, {5}, {7}, 1, 0, NO, 7, 5},
    {"90 rescale", 2, {0, 1.3862943611198906}, {1, 0}, 1, 0, NO, 0.2, 1.6094379124341}};

/* Answers on or near a border. exact: 1 proved equal to hi + lo, 0 not, -1: lo is not told. A key
 * whose weight is past the range of MPFR's exponents is a key still. */
static const struct tie {
    const char *name;
    int n;
    double s[MOST], v[MOST];
    double hi, lo;
    int exact;
} ties[] = {
    {"V = {1, 1+2^-23}", 2, {3, 3}, {1, 1 + 0x1p-23}, 1 + 0x1p-24, 0, 1},
    {"one key at a bf16 midpoint", 1, {3}, {1 + 0x1p-8}, 1 + 0x1p-8, 0, 1},
    {"constant V", 4, {1, -2, 3, 0.1}, {0.1, 0.1, 0.1, 0.1}, 0.1, 0, 1},
    {"+-1 cancel", 2, {7, 7}, {1, -1}, 0, 0, 1},
    {"+-1 cancel in each group", 4, {7, 2, 7, 2}, {1, -3, -1, 3}, 0, 0, 1},
    {"-0", 2, {1, 2}, {-0.0, -0.0}, 0, 0, 1},
    {"a midpoint and e^-500 above",
     3,
     {0, 0, -500},
     {1, 1 + 0x1p-7, 3},
     1 + 0x1p-8,
     0x1.919cb4997d96cp-722,
     0},
    {"a midpoint and e^-500000 above",
     3,
     {0, 0, -500000},
     {1, 1 + 0x1p-7, 3},
     1 + 0x1p-8,
     TINIEST,
     0},
    {"a midpoint and e^-500000 below",
     3,
     {0, 0, -500000},
     {1, 1 + 0x1p-7, 1},
     1 + 0x1p-8,
     -TINIEST,
     0},
    {"a midpoint and e^-1e30 below", 3, {0, 0, -1e30}, {1, 1 + 0x1p-7, 1}, 1 + 0x1p-8, -TINIEST, 0},
    {"a double's midpoint, to even below", 2, {5, 5}, {1, 1 + E}, 1, E / 2, 1},
    {"a double's midpoint, to even above", 2, {5, 5}, {1 + E, 1 + 2 * E}, 1 + 2 * E, -E / 2, 1},
    {"a double's midpoint of two groups", 4, {5, 1, 5, 1}, {1, 1, 1 + E, 1 + E}, 1, E / 2, 1},
    {"a double's midpoint, e^-500 above", 3, {0, 0, -500}, {1, 1 + E, 3}, 1 + E, -E / 2, 0},
    {"a double's midpoint, e^-500000 above", 3, {0, 0, -500000}, {1, 1 + E, 3}, 1 + E, -E / 2, 0},
    {"a double's midpoint, e^-500000 below", 3, {0, 0, -500000}, {1, 1 + E, 1}, 1, E / 2, 0},
    {"a double's midpoint, e^-1e30 above", 3, {0, 0, -1e30}, {1, 1 + E, 3}, 1 + E, -E / 2, 0},
    {"a double's midpoint, e^-1e30 below",
     4,
     {0, 0, -1e30, -1e40},
     {1, 1 + E, -1, 1e9},
     1,
     E / 2,
     0},
    {"below a power of two", 2, {5, 5}, {1, 1 - E / 2}, 1, -E / 4, 1},
    {"equal means, unequal counts", 3, {0, 1, 1}, {2, 1, 3}, 2, 0, 1},
    {"equal sums, unequal counts", 3, {0, 1, 1}, {4, 1, 3}, 0x1.27c5d49a0c236p+1, 0, -1},
    {"far cancellation", 3, {0, 0, -1e30}, {1, -1, -3}, 0, -TINIEST, 0},
    {"a far key alone differs", 2, {1e300, 0}, {1, 2}, 1, TINIEST, 0},
    {"far keys beyond far keys", 4, {0, -1e12, -1e12, -1e13}, {1, 2, 0, 0}, 1, -TINIEST, 0},
    {"half the least number", 2, {0, 0}, {TINIEST, 0}, 0, TINIEST, 0},
    {"half the least number and more", 3, {0, 0, -1e9}, {TINIEST, 0, 1}, TINIEST, -TINIEST, 0},
    {"scores 2^-300 apart", 2, {0x1p-300, 0}, {1, -1}, 0x1p-301, -0x1.5555555555556p-905, 0},
    {"a sum that 180 bits lose", 3, {0, 0, 0}, {0x1p300, 1, -0x1p300}, 1 / 3.0, 0, -1},
    {"+-1 cancel but for e^-100", 3, {0, 0, -100}, {1, -1, 3}, 0x1.3e9174faa0386p-144, 0, -1},
    {"a mean of 3", 3, {0, 0, 0}, {1, 0, 0}, 1 / 3.0, 0, -1},
    {"a dyadic mean below a double", 2, {0, 0}, {1, 1 + 0x1p-51}, 1 + E, 0, 1},
    {"the largest double", 2, {0, 1}, {DBL_MAX, DBL_MAX}, DBL_MAX, 0, 1}};

/* Infinities and NaN, docs/semantics.md. */
static const struct rule {
    const char *name;
    int n;
    double s[MOST], v[MOST], sink, out, lse;
} rules[] = {{"a score of NaN", 2, {NAN, 0}, {1, 2}, NO, NAN, NAN},
             {"a score of +inf", 2, {INF, 0}, {1, 2}, NO, NAN, NAN},
             {"all scores -inf", 2, {-INF, -INF}, {1, 2}, NO, NAN, NAN},
             {"a score of -inf beside a finite one", 2, {-INF, 3}, {1, 2}, NO, 2, 3},
             {"NaN under a score of -inf", 2, {-INF, 3}, {NAN, 2}, NO, NAN, 3},
             {"infinity under a score of -inf", 2, {-INF, 3}, {INF, 2}, NO, NAN, 3},
             {"a value of NaN", 2, {-500, 3}, {NAN, 2}, NO, NAN, 3},
             {"a value of -inf", 2, {-500, 3}, {-INF, 2}, NO, -INF, 3},
             {"values of both infinities", 2, {3, -500}, {INF, -INF}, NO, NAN, 3},
             {"a sink of NaN", 1, {3}, {1}, NAN, NAN, NAN},
             {"a sink of +inf", 1, {3}, {1}, INF, NAN, NAN},
             {"a sink of -inf", 1, {3}, {1}, NO, 1, 3},
             {"a sink beside scores of -inf", 1, {-INF}, {1}, 3, 0, 3},
             {"a sink and no key", 0, {0}, {0}, 0.5, 0, 0.5},
             {"no key", 0, {0}, {0}, NO, 0, -INF}};

/* -- Small rows: D = Dv = 1, q = 1, so that k are the scores ----------------------------------- */

static double one = 1;

static inline struct at_attention row_of(int64_t n, double *s, double *v)
{
    return at_plain(at_bhsd(&one, AT_F64, 1, 1, 1, 1), at_bhsd(s, AT_F64, 1, 1, n, 1),
                    at_bhsd(v, AT_F64, 1, 1, n, 1), 1);
}

static inline struct at_answer answers(const struct at_attention *a)
{
    struct at_answer x;
    int64_t n = a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
    ck_assert_int_eq(at_answer_make(&x, n, a->v.dim[3]), AT_OK);
    memset(x.out, 0xff, (size_t)(n * x.Dv) * sizeof *x.out);
    ck_assert_int_eq(at_truth(a, (struct at_rows){n, NULL}, &x), AT_OK);
    return x;
}

/* Out (and lse) of a row of one column. */
struct one {
    double hi, lo, lse, lse_lo;
    int bits, lse_bits;
};

static inline struct one truth_of(const struct at_attention *a)
{
    struct at_answer x = answers(a);
    struct one y = {x.out[0], x.out_lo[0], x.lse[0], x.lse_lo[0], x.out_bits[0], x.lse_bits[0]};
    at_answer_free(&x);
    return y;
}

static inline void expect(const char *what, double got, double right)
{
    ck_assert_msg(got == right && !signbit(got) == !signbit(right), "%s: %a (%.17g), expected %a",
                  what, got, got, right);
}

#endif

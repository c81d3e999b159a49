/* Double-words: a number as the sum h + l of two doubles, |l| <= ulp(h)/2, and 2^x in them.
 *
 * Lemmas P and X of docs/fast-truth.md. eps = 2^-53; errors are relative, numbers stay within
 * 2^+-900, round to nearest, nothing is contracted. Every claim is measured and its constant
 * directed at by tests/check_truth_fast.c. Not here: what attention makes of them.
 * Source [Joldes17]. SPDX-License-Identifier: MIT */
#ifndef FAST_DOUBLE_H
#define FAST_DOUBLE_H

#include "fast_table.h"
#include "lanes.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

struct dd {
    double h, l;
};

#define AT_EPS2 0x1p-106 /* eps^2: the unit of every bound */

/* Units of eps^2. */
#define DD_ADD 3  /* [Joldes17, Theorem 3.1] */
#define DD_MUL1 2 /* [Joldes17, Theorem 4.3] */
#define DD_MUL 7
#define DD_DIV 17

/* a + b exactly, |a| >= |b| or a == 0. */
AT_INLINE struct dd quick_sum(double a, double b)
{
    double s = a + b;
    return (struct dd){s, b - (s - a)};
}

/* a + b exactly. */
AT_INLINE struct dd two_sum(double a, double b)
{
    double s = a + b, z = s - a;
    return (struct dd){s, (a - (s - z)) + (b - z)};
}

AT_INLINE struct dd dd_add(struct dd a, struct dd b) /* 3 eps^2 */
{
    struct dd s = two_sum(a.h, b.h), t = two_sum(a.l, b.l);
    s = quick_sum(s.h, s.l + t.h);
    return quick_sum(s.h, s.l + t.l);
}

AT_INLINE struct dd dd_mul1(struct dd a, double b) /* 2 eps^2 */
{
    double p = a.h * b, e = fma(a.l, b, fma(a.h, b, -p));
    return quick_sum(p, e);
}

/* 7 eps^2: three fma roundings of terms <= eps, 2 eps, 3 eps times |p|, and the dropped a.l b.l. */
AT_INLINE struct dd dd_mul(struct dd a, struct dd b)
{
    double p = a.h * b.h, e = fma(a.h, b.h, -p);
    e = fma(a.h, b.l, e);
    e = fma(a.l, b.h, e);
    return quick_sum(p, e);
}

/* 17 eps^2: the residual's product 2, its sum 2 + 4, the second quotient 8 (its rounding and the
 * ignored low word of y, on at most 4 eps), the last sum. */
AT_INLINE struct dd dd_div(struct dd x, struct dd y)
{
    double a = x.h / y.h;
    struct dd r = dd_mul1(y, a);
    double b = ((x.h - r.h) + (x.l - r.l)) / y.h;
    return quick_sum(a, b);
}

AT_INLINE double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

AT_INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The power of two in (x, 2x], x > 0 normal; 2^k, k normal. */
AT_INLINE double power_above(double x) { return 2 * double_of(bits_of(x) & 0x7ff0000000000000u); }

AT_INLINE double power(int64_t k) { return double_of((uint64_t)(k + 1023) << 52); }

/* -- 2^(t - m) ------------------------------------------------------------------------------- */

/* tests/peers/exp_budget.py adds up 53.4 eps^2; 91 are charged. */
#define DD_EXP 91
/* Below t - m = -512 the result and 2^(t-m) both lie in [0, 2^-510]. */
#define EXP_FLOOR 0x1p-510

/* 1/2, 1/6, 1/24 and on, in Horner's order; y^5/5! .. y^9/9! in double, |y| < 2^-8.5. */
AT_INLINE struct dd exp_series(struct dd y)
{
    double q = 1.0 / 362880;
    q = fma(q, y.h, 1.0 / 40320);
    q = fma(q, y.h, 1.0 / 5040);
    q = fma(q, y.h, 1.0 / 720);
    q = fma(q, y.h, 1.0 / 120);
    struct dd r = quick_sum(at_24th.h, fma(q, y.h, at_24th.l)), z;
    r = dd_mul(r, y), z = quick_sum(at_6th.h, r.h);
    r = quick_sum(z.h, z.l + (r.l + at_6th.l));
    r = dd_mul(r, y), z = quick_sum(0.5, r.h);
    r = quick_sum(z.h, z.l + r.l);
    r = dd_mul(r, y), z = quick_sum(1, r.h);
    r = quick_sum(z.h, z.l + r.l);
    r = dd_mul(r, y), z = quick_sum(1, r.h);
    return quick_sum(z.h, z.l + r.l);
}

/* 2^(t - m), m an integer, |t| < 2^40, t - m < 512. With g the multiple of 1/128 next to t, t - g
 * is exact, and 2^(g - m) a table entry times a power of two. The exponent alone is clamped, so
 * that the table's index stays data. */
AT_INLINE struct dd dd_exp2(struct dd t, double m)
{
    const double magic = 0x1.8p52;
    double g = (t.h * 128 + magic) - magic;
    struct dd y = dd_mul(quick_sum(t.h - g * 0x1p-7, t.l), at_ln2), r = exp_series(y);
    g -= 128 * m;
    uint64_t entry = bits_of(g + magic) & 127;
    g = g > -65536 ? g : -65536;
    double s = double_of(((bits_of(g + magic) & ~(uint64_t)127) << 45) + 0x3ff0000000000000u);
    r = dd_mul(r, (struct dd){at_root_h[entry], at_root_l[entry]});
    return (struct dd){r.h * s, r.l * s};
}

#endif

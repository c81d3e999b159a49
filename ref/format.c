/* Binary formats: stored numbers to doubles, MPFR numbers to a format. Rounds straight from MPFR,
 * never through double. Decodes by integers: shares no code with at_math.h, which it judges.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"
#include <math.h>
#include <string.h>

struct at_format at_format(enum at_dtype dtype)
{
    switch (dtype) {
    case AT_F64: return (struct at_format){53, -1022, 0x1.fffffffffffffp+1023};
    case AT_F16: return (struct at_format){11, -14, 65504};
    case AT_BF16: return (struct at_format){8, -126, 0x1.fep+127};
    case AT_F8_E4M3: return (struct at_format){4, -6, 448};
    case AT_F8_E5M2: return (struct at_format){3, -14, 57344};
    default: return (struct at_format){24, -126, 0x1.fffffep+127};
    }
}

double at_roundoff(enum at_dtype dtype) { return ldexp(1, -at_format(dtype).p); }

struct at_format at_format_of(const struct at_float *f)
{
    return (struct at_format){f->p, f->emin, ldexp(2 - ldexp(1, 1 - f->p), f->emax)};
}

struct at_format at_computed_in(const struct at_arith *arith)
{
    return arith->own.p ? at_format_of(&arith->own)
                        : at_format(arith->compute ? arith->compute : AT_F32);
}

/* The names of the command line and of reports. */
static const struct {
    const char *name;
    enum at_dtype dtype;
    int size;
} names[] = {{"fp64", AT_F64, 8},  {"fp32", AT_F32, 4},         {"fp16", AT_F16, 2},
             {"bf16", AT_BF16, 2}, {"fp8-e4m3", AT_F8_E4M3, 1}, {"fp8-e5m2", AT_F8_E5M2, 1},
             {"uint8", AT_U8, 1},  {"int32", AT_I32, 4},        {"int64", AT_I64, 8}};
enum { NAMES = sizeof names / sizeof *names };

const char *at_dtype_name(enum at_dtype dtype)
{
    for (int k = 0; k < NAMES; k++)
        if (names[k].dtype == dtype)
            return names[k].name;
    return "default";
}

enum at_dtype at_dtype_find(const char *name)
{
    for (int k = 0; k < NAMES; k++)
        if (strcmp(names[k].name, name) == 0)
            return names[k].dtype;
    return AT_DEFAULT;
}

int at_dtype_size(enum at_dtype dtype)
{
    for (int k = 0; k < NAMES; k++)
        if (names[k].dtype == dtype)
            return names[k].size;
    return 0;
}

bool at_is_float(enum at_dtype d) { return d >= AT_F64 && d <= AT_F8_E5M2; }

/* sign, exponent and significand fields of `width` bits, `p` significand bits, bias 1 - emin. */
static double decoded(unsigned bits, int width, int p, int emin)
{
    unsigned sign = bits >> (width - 1), fields = bits & ((1u << (width - 1)) - 1);
    unsigned m = fields & ((1u << (p - 1)) - 1), all = (1u << (width - p)) - 1;
    int e = (int)(fields >> (p - 1));
    uint64_t normal = (uint64_t)(e - 1 + emin + 1023) << 52 | (uint64_t)m << (53 - p);
    double x;
    memcpy(&x, &normal, sizeof x);
    x = e > 0 ? x : ldexp((double)m, emin - p + 1);
    if (width == 8 && p == 4) /* e4m3fn: one NaN, no infinity */
        x = fields == 0x7f ? NAN : x;
    else if ((unsigned)e == all)
        x = m ? NAN : INFINITY;
    return sign ? -x : x;
}

double at_stored(const struct at_view *x, int64_t at)
{
    const unsigned char *data = x->data;
    double wide;
    float single;
    uint16_t half;
    switch (x->dtype) {
    case AT_F64: memcpy(&wide, data + 8 * at, 8); return wide;
    case AT_F32: memcpy(&single, data + 4 * at, 4); return (double)single;
    case AT_F16: memcpy(&half, data + 2 * at, 2); return decoded(half, 16, 11, -14);
    case AT_BF16: memcpy(&half, data + 2 * at, 2); return decoded(half, 16, 8, -126);
    case AT_F8_E4M3: return decoded(data[at], 8, 4, -6);
    case AT_F8_E5M2: return decoded(data[at], 8, 3, -14);
    default: return NAN;
    }
}

double at_descale(const struct at_view *x, int64_t b, int64_t h, int64_t s)
{
    return x->data ? at_stored(x, at_offset(x, b, h, s, 0)) : 1;
}

/* Exponent of the unit in the last place of the format's numbers near x: x = k 2^e, |k| < 2^p. */
static long unit(mpfr_srcptr x, struct at_format f)
{
    long e = mpfr_zero_p(x) ? f.emin : mpfr_get_exp(x) - 1;
    return (e > f.emin ? e : f.emin) - f.p + 1;
}

static void overflow(mpfr_ptr x, struct at_format f)
{
    if (mpfr_cmp_d(x, f.max) > 0 || mpfr_cmp_d(x, -f.max) < 0)
        mpfr_set_inf(x, mpfr_sgn(x));
}

void at_round(mpfr_ptr x, struct at_format f)
{
    if (!mpfr_regular_p(x))
        return;
    long e = unit(x, f);
    mpfr_div_2si(x, x, e, MPFR_RNDN); /* exact: MPFR's exponents reach further */
    mpfr_rint(x, x, MPFR_RNDN);
    mpfr_mul_2si(x, x, e, MPFR_RNDN);
    overflow(x, f);
}

void at_next(mpfr_ptr x, struct at_format f)
{
    long e = unit(x, f);
    mpfr_div_2si(x, x, e, MPFR_RNDN);
    if (mpfr_sgn(x) < 0 && mpfr_cmp_si_2exp(x, -1, f.p - 1) == 0 && e > f.emin - f.p + 1)
        mpfr_add_d(x, x, 0.5, MPFR_RNDN); /* below a power of two the numbers lie closer */
    else
        mpfr_add_ui(x, x, 1, MPFR_RNDN);
    mpfr_mul_2si(x, x, e, MPFR_RNDN);
    overflow(x, f);
}

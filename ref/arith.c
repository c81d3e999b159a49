/* The arithmetics that kernels state, in one table, and the words of the command line that change
 * them. What a field means: attest.h; what it costs: docs/bounds.md, table 1.
 * "measured" marks what was found by judging a library's output, not by reading its source.
 * SPDX-License-Identifier: MIT */
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FP32 .compute = AT_F32, .exp_ulps = 2
/* onnx.reference's Attention: every array is stored in the inputs' dtype, sqrt(scale) too. */
#define ONNX(type) .compute = (type), .query = (type), .key = (type), .normalised = true
#define CORES FP32, .fused = true, .truncates = true, .divisions = 2, .log_ulps = 4

static const struct at_arith presets[] = {
    {.name = "fp64",
     .source = "IEEE binary64, any order; exp within 2 ulps [Higham02, 2.2]",
     .compute = AT_F64,
     .exp_ulps = 2},
    {.name = "fp32", .source = "IEEE binary32, any order; exp within 2 ulps [Higham02, 2.2]", FP32},
    {.name = "fp32-tile64",
     .source = "IEEE binary32, key tiles of 64 that join in any order [Dao23]",
     FP32,
     .tile = 64},
    {.name = "fp32-sequential",
     .source = "IEEE binary32, one key after another [MG18]",
     FP32,
     .tile = 1,
     .ordered = true},
    {.name = "eager",
     .source = "textbook in binary32: two passes, P divided by l before P V",
     FP32,
     .normalised = true},
    {.name = "fp32-exp2",
     .source = "exp2 with scale and shift in one fma, u times 1/l [Dao23, code]",
     FP32,
     .fused = true,
     .divisions = 2,
     .log_ulps = 2},
    {.name = "split-lse",
     .source = "splits of the keys joined once by (out, lse) [Flash-Decoding]",
     FP32,
     .lse_merge = true,
     .joins = 1,
     .log_ulps = 2},
    {.name = "fp32-libm-exp20",
     .source = "PyTorch CPU: vector exp within 20 ulps, exp(0) too; measured",
     .compute = AT_F32,
     .exp_ulps = 20,
     .inexact_one = true,
     .divisions = 2},
    {.name = "3xtf32",
     .source = "CUTLASS 3xTF32: products of two 11-bit parts; measured on H200",
     CORES,
     .product_eps = 0x1p-21},
    {.name = "bf16-inside-fp32",
     .source = "bf16 tensors, all arithmetic in binary32; measured: PyTorch math",
     FP32,
     .divisions = 2},
    {.name = "bf16-p",
     .source = "P rounded to bf16 before P V; measured: flash kernels",
     FP32,
     .weight = AT_BF16,
     .divisions = 2},
    {.name = "bf16-p-normalised",
     .source = "P divided by l, then rounded to bf16; measured: JAX CPU",
     FP32,
     .weight = AT_BF16,
     .normalised = true},
    {.name = "bf16-tensor-core",
     .source = "as bf16-p, sums cut, exp2 fused [Fasi21; Khattak25]",
     CORES,
     .weight = AT_BF16},
    {.name = "bf16-p-exp400",
     .source = "P in bf16 from an exp within 400 ulps; measured: PyTorch CPU flash",
     .compute = AT_F32,
     .exp_ulps = 400,
     .inexact_one = true,
     .weight = AT_BF16,
     .divisions = 2},
    {.name = "bf16-sp",
     .source = "scores and P stored in bf16: unfused attention",
     FP32,
     .score = AT_BF16,
     .weight = AT_BF16,
     .normalised = true},
    {.name = "fp16-inside-fp32",
     .source = "fp16 tensors, all arithmetic in binary32; measured: PyTorch math",
     FP32,
     .divisions = 2},
    {.name = "fp16-p",
     .source = "P rounded to fp16 before P V; measured: flash kernels",
     FP32,
     .weight = AT_F16,
     .divisions = 2},
    {.name = "fp16-p-normalised",
     .source = "P divided by l, then rounded to fp16; measured: JAX CPU",
     FP32,
     .weight = AT_F16,
     .normalised = true},
    {.name = "fp16-tensor-core",
     .source = "as fp16-p, sums cut, exp2 fused [Fasi21; Khattak25]",
     CORES,
     .weight = AT_F16},
    {.name = "fp16-sp",
     .source = "scores and P stored in fp16; measured: onnxruntime CPU",
     FP32,
     .score = AT_F16,
     .weight = AT_F16,
     .normalised = true},
    /* exp: 2.1264e-7 = 1.784 * 2^-23 over all binary32 arguments [numpy, simd_exp_FLOAT]. */
    {.name = "onnx-fp32",
     .source = "onnx.reference: numpy in binary32, BLAS in any order",
     ONNX(AT_F32),
     .exp_ulps = 1.79},
    /* exp and tanh are binary32's, rounded once: half an ulp and 1.784 * 2^-13 of one. */
    {.name = "onnx-fp16",
     .source = "onnx.reference: numpy in fp16, each sum in binary32; measured",
     ONNX(AT_F16),
     .sum = AT_F32,
     .exp_ulps = 0.501,
     .tanh_ulps = 0.501},
    {.name = "onnx-bf16",
     .source = "onnx.reference: ml_dtypes, l in bf16, products' sums in binary32; measured",
     ONNX(AT_BF16),
     .sum = AT_F32,
     .total = AT_BF16,
     .exp_ulps = 0.501,
     .tanh_ulps = 0.501},
    {.name = "fp8-p",
     .source = "P times 2^8 rounded to e4m3, sums cut, exp2 fused [FA3]",
     CORES,
     .weight = AT_F8_E4M3,
     .weight_shift = 8},
};
enum { PRESETS = sizeof presets / sizeof *presets };

const struct at_arith *at_arith_at(int64_t k) { return k >= 0 && k < PRESETS ? &presets[k] : NULL; }

const struct at_arith *at_arith_find(const char *name)
{
    for (int k = 0; k < PRESETS; k++)
        if (strcmp(presets[k].name, name) == 0)
            return &presets[k];
    return NULL;
}

/* -- From strict to loose --------------------------------------------------------------------- */

static const char *const ladder64[] = {"fp64", NULL};
static const char *const ladder32[] = {"fp32-tile64",     "fp32",   "fp32-exp2",
                                       "fp32-libm-exp20", "3xtf32", NULL};
static const char *const ladder_bf16[] = {
    "bf16-inside-fp32", "bf16-p", "bf16-tensor-core", "bf16-p-normalised", "bf16-p-exp400",
    "bf16-sp",          NULL};
static const char *const ladder_fp16[] = {"fp16-inside-fp32",  "fp16-p",  "fp16-tensor-core",
                                          "fp16-p-normalised", "fp16-sp", NULL};
static const char *const ladder_fp8[] = {"fp32", "bf16-p", "fp8-p", NULL};

const struct at_arith *at_arith_ladder(enum at_dtype out, int64_t k)
{
    const char *const *names = out == AT_F64    ? ladder64
                               : out == AT_F32  ? ladder32
                               : out == AT_BF16 ? ladder_bf16
                               : out == AT_F16  ? ladder_fp16
                                                : ladder_fp8;
    for (int64_t i = 0; names[i]; i++)
        if (i == k)
            return at_arith_find(names[i]);
    return NULL;
}

/* -- preset,key=value,... --------------------------------------------------------------------- */

enum field { DTYPE, BOOL, INT, COUNT, SIZE };

#define FIELD(name, kind)                                                                          \
    {                                                                                              \
#name, kind, offsetof(struct at_arith, name)                                               \
    }
static const struct {
    const char *name;
    enum field kind;
    size_t at;
} fields[] = {FIELD(compute, DTYPE),    FIELD(query, DTYPE),      FIELD(key, DTYPE),
              FIELD(score, DTYPE),      FIELD(weight, DTYPE),     FIELD(sum, DTYPE),
              FIELD(total, DTYPE),      FIELD(product_eps, SIZE), FIELD(weight_shift, INT),
              FIELD(rounded_sum, BOOL), FIELD(normalised, BOOL),  FIELD(fused, BOOL),
              FIELD(inexact_one, BOOL), FIELD(flush, BOOL),       FIELD(truncates, BOOL),
              FIELD(lse_merge, BOOL),   FIELD(dead_zero, BOOL),   FIELD(ordered, BOOL),
              FIELD(dot, COUNT),        FIELD(tile, COUNT),       FIELD(joins, COUNT),
              FIELD(arguments, COUNT),  FIELD(divisions, COUNT),  FIELD(exp_ulps, SIZE),
              FIELD(log_ulps, SIZE),    FIELD(tanh_ulps, SIZE)};
enum { FIELDS = sizeof fields / sizeof *fields };

static bool whole(const char *text, int64_t least, int64_t most, int64_t *x)
{
    char *end;
    long long y = strtoll(text, &end, 10);
    *x = y;
    return *text && !*end && y >= least && y <= most;
}

/* The value's text into the field; false: it is none. */
static bool assign(char *to, enum field kind, const char *text)
{
    enum at_dtype dtype = at_dtype_find(text);
    int64_t n;
    char *end;
    double x;
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    switch (kind) {
    case DTYPE:
        if (!at_is_float(dtype) && strcmp(text, "default") != 0)
            return false;
        memcpy(to, &dtype, sizeof dtype);
        return true;
    case BOOL:
        memcpy(to, &yes, sizeof yes);
        return yes || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    case INT:
        if (!whole(text, -64, 64, &n))
            return false;
        memcpy(to, &(int){(int)n}, sizeof(int));
        return true;
    case COUNT:
        if (!whole(text, 0, INT64_MAX / 16, &n))
            return false;
        memcpy(to, &n, sizeof n);
        return true;
    default:
        x = strtod(text, &end);
        if (!*text || *end || !(x >= 0) || !(x < 0x1p20))
            return false;
        memcpy(to, &x, sizeof x);
        return true;
    }
}

static bool refuse(struct at_why *why, const char *what, const char *found, const char *expected)
{
    if (why)
        snprintf(why->text, sizeof why->text, "%s: '%s', expected %s", what, found, expected);
    return false;
}

bool at_arith_set(struct at_arith *x, const char *text, struct at_why *why)
{
    static const char *const expected[] = {"a float dtype or default", "true or false",
                                           "a number from -64 to 64", "a number >= 0",
                                           "a number >= 0 and < 2^20"};
    size_t n = strcspn(text, "=");
    for (int k = 0; k < FIELDS; k++) {
        if (strlen(fields[k].name) != n || strncmp(fields[k].name, text, n) != 0)
            continue;
        struct at_arith y = *x;
        const char *value = text[n] ? text + n + 1 : "";
        if (!assign((char *)&y + fields[k].at, fields[k].kind, value))
            return refuse(why, fields[k].name, value, expected[fields[k].kind]);
        *x = y;
        return true;
    }
    return refuse(why, "arithmetic", text, "field=value");
}

bool at_arith_read(struct at_arith *x, const char *text, struct at_why *why)
{
    char word[120];
    struct at_arith y = {0};
    for (int k = 0;; k++) {
        size_t n = strcspn(text, ",");
        if (n >= sizeof word)
            return refuse(why, "arithmetic", text, "shorter words");
        memcpy(word, text, n);
        word[n] = 0;
        if (k == 0) {
            const struct at_arith *preset = at_arith_find(word);
            if (!preset)
                return refuse(why, "arithmetic", word, "a preset ('attest list arith')");
            y = *preset;
        } else if (!at_arith_set(&y, word, why)) {
            return false;
        }
        if (!text[n])
            break;
        text += n + 1;
    }
    *x = y;
    return true;
}

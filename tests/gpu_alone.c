/* What ref/format.c gives to at_validate, for builds without MPFR (tests/gpu.sh).
 * SPDX-License-Identifier: MIT */
#include "attest.h"

const char *at_dtype_name(enum at_dtype dtype);
int at_dtype_size(enum at_dtype dtype);
bool at_is_float(enum at_dtype dtype);

const char *at_dtype_name(enum at_dtype dtype)
{
    static const char *const name[] = {"default",  "fp64",     "fp32",  "fp16",  "bf16",
                                       "fp8-e4m3", "fp8-e5m2", "uint8", "int32", "int64"};
    return name[dtype];
}

int at_dtype_size(enum at_dtype dtype)
{
    static const int size[] = {0, 8, 4, 2, 2, 1, 1, 1, 4, 8};
    return size[dtype];
}

bool at_is_float(enum at_dtype dtype) { return dtype >= AT_F64 && dtype <= AT_F8_E5M2; }

/* malloc and calloc under the tests (linked with --wrap): every workspace of malloc starts as NaN,
 * and the allocation that memory_countdown counts down to fails. SPDX-License-Identifier: MIT */
#include "paint.h"
#include <string.h>

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

int64_t memory_countdown;

static bool fails(void)
{
    int64_t left;
#pragma omp atomic capture
    left = memory_countdown--;
    return left == 1;
}

void *__wrap_malloc(size_t bytes)
{
    void *x = fails() ? NULL : __real_malloc(bytes);
    return x ? memset(x, 0xff, bytes) : x;
}

void *__wrap_calloc(size_t n, size_t bytes) { return fails() ? NULL : __real_calloc(n, bytes); }

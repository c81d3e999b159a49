/* malloc under the tests (linked with --wrap=malloc): every workspace starts as NaN, and the
 * allocation that memory_countdown counts down to fails. SPDX-License-Identifier: MIT */
#include "paint.h"
#include <string.h>

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

int64_t memory_countdown;

void *__wrap_malloc(size_t bytes)
{
    int64_t left;
#pragma omp atomic capture
    left = memory_countdown--;
    void *x = left == 1 ? NULL : __real_malloc(bytes);
    return x ? memset(x, 0xff, bytes) : x;
}

/* Painted numbers in every dtype, as one hash, for machines where nothing else of the generator can
 * be built (AArch64 without its MPFR). Prints it. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "brush.h"
#include <stdio.h>

int main(void)
{
    static const enum at_dtype dtypes[] = {AT_F64, AT_F32, AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2};
    uint64_t hash = 0xcbf29ce484222325u, count = 0; /* FNV-1a */
    for (int d = 0; d < 6; d++)
        for (uint64_t n = 0; n < 200000; n++) {
            struct at_brush b = {0x123456789abcdef0u, (uint32_t)(16 * d + 1)};
            unsigned char bytes[8] = {0};
            struct at_view to = {bytes, dtypes[d], {1, 1, 1, 1}, {1, 1, 1, 1}};
            at_store(&to, 0,
                     n % 5 ? at_normal(b, n * n) : (double)at_integer(b, n, -1000, 1000) / 3);
            for (int k = 0; k < 8; k++)
                hash = (hash ^ bytes[k]) * 0x100000001b3u;
            count++;
        }
    printf("%llu numbers, hash %016llx\n", (unsigned long long)count, (unsigned long long)hash);
    return 0;
}

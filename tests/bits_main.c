/* bits SEED [COUNT [FEATURES]]: replays problems of the bit equality of engines, says where they
 * differ and with which features. Exit 0: all equal. SPDX-License-Identifier: MIT */
#include "bits.h"
#include <stdio.h>
#include <stdlib.h>

static bool replay(uint64_t seed, unsigned features)
{
    char text[300];
    for (int64_t k = 0; at_tiled_at(k); k++) {
        const struct at_engine *e = at_tiled_at(k);
        if (bits_equal(&at_scalar, e, seed, features, text))
            continue;
        unsigned few = features == BITS_ALL ? bits_shrink(&at_scalar, e, seed) : features;
        printf("scalar and %s differ: %s; bits 0x%llx 1 0x%x\n", e->name, text,
               (unsigned long long)seed, few);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, failed = 0;
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    unsigned features = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : BITS_ALL;
    for (uint64_t k = 0; k < n; k++)
        failed += !replay(seed + k, features);
    printf("%llu problems from seed 0x%llx: %llu failed\n", (unsigned long long)n,
           (unsigned long long)seed, (unsigned long long)failed);
    return failed != 0;
}

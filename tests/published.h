/* The rules that published tests hold attention kernels to, on the same numbers: shown beside our
 * verdict in the kill matrix, never part of it. SPDX-License-Identifier: MIT */
#ifndef PUBLISHED_H
#define PUBLISHED_H

#include "attest.h"

enum published {
    ASSERT_CLOSE, /* torch.testing.assert_close, the dtype's defaults */
    ALLCLOSE,     /* numpy.allclose's */
    FLASH_2X,     /* flash-attention's tests: twice the error of eager attention in the dtype */
    COSINE,       /* cosine similarity > 0.99 */
    RMS,          /* relative RMS, a hundredth */
    FLASHMLA,     /* FlashMLA's tests: (abs or rel) and cosine difference, lse too */
    HIPDNN,       /* hipDNN's derived scalar */
    PUBLISHED
};

extern const char *const published_names[PUBLISHED];

/* fails[rule]: does got fail it? eager: out of unfused attention in got's dtype, as doubles. */
void published_fails(const struct at_attention *a, const struct at_result *got,
                     const struct at_answer *truth, const double *eager, bool fails[PUBLISHED]);

#endif

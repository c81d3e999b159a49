/* A second truth, for tests: the formula of docs/semantics.md in quadruple precision, as it stands.
 *
 * Shares no code with the first: its own decoding, places, visibility and Philox; of the project it
 * sees the descriptor alone. Each number carries a running bound of its own error [Hig02, 3.3].
 * SPDX-License-Identifier: MIT */
#ifndef SECOND_TRUTH_H
#define SECOND_TRUTH_H

#include "attest.h"

/* The meaning is within e of x; NaN and infinity: that kind, e = 0. */
struct second {
    __float128 x, e;
};

/* Which row is it, by sequence? b == -1: a packed row of no sequence. */
struct second_row {
    int64_t b, h, i;
};

/* Row t of q as stored: out has Dv numbers. */
void second_truth(const struct at_attention *a, int64_t t, struct second *out, struct second *lse);

/* Row t of q as stored; and does it see key j of its sequence, is that key's weight kept? */
struct second_row second_place(const struct at_attention *a, int64_t t);
bool second_sees(const struct at_attention *a, struct second_row at, int64_t j);
bool second_keeps(const struct at_attention *a, struct second_row at, int64_t j);

/* Keys that sequence b can have, and the element where row j of one begins. */
int64_t second_keys(const struct at_attention *a, int64_t b);
int64_t second_key(const struct at_attention *a, const struct at_view *x, int64_t b, int64_t g,
                   int64_t j);
#endif

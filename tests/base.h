/* An ordinary problem for tests that spoil it: B 2, Hq 4, Hkv 2, Sq 3, Skv 5, D 4, Dv 2.
 * SPDX-License-Identifier: MIT */
#ifndef BASE_H
#define BASE_H

#include "paint.h"
#include <string.h>

struct base {
    float q[96], k[80], v[40], bias[120], out[48], lse[24];
    uint8_t mask[120];
    int64_t len[2], start[2], cut[3];
    int32_t table[6], indptr[3];
    struct at_attention a;
    struct at_result to;
};

static inline struct base *base(void)
{
    static struct base x;
    memset(&x, 0, sizeof x);
    memset(x.out, 0xff, sizeof x.out);
    memset(x.lse, 0xff, sizeof x.lse);
    x.a = at_plain(at_bhsd(x.q, AT_F32, 2, 4, 3, 4), at_bhsd(x.k, AT_F32, 2, 2, 5, 4),
                   at_bhsd(x.v, AT_F32, 2, 2, 5, 2), 0.5);
    x.to =
        (struct at_result){at_bhsd(x.out, AT_F32, 2, 4, 3, 2), at_bhsd(x.lse, AT_F32, 2, 4, 3, 1)};
    return &x;
}

static inline bool untouched(const struct base *x)
{
    bool good = true;
    for (size_t k = 0; k < sizeof x->out; k++)
        good = good && ((const unsigned char *)x->out)[k] == 0xff;
    for (size_t k = 0; k < sizeof x->lse; k++)
        good = good && ((const unsigned char *)x->lse)[k] == 0xff;
    return good;
}

/* q packed: two sequences of 2 and 1 rows in 3. */
static inline void pack_q(struct base *x)
{
    x->len[0] = 2, x->len[1] = 1, x->start[0] = 0, x->start[1] = 2;
    x->a.q = at_bhsd(x->q, AT_F32, 1, 4, 3, 4);
    x->to.out = at_bhsd(x->out, AT_F32, 1, 4, 3, 2),
    x->to.lse = at_bhsd(x->lse, AT_F32, 1, 4, 3, 1);
    x->a.score.q_start = x->start, x->a.score.q_len = x->len, x->a.score.sequences = 2;
}

#endif

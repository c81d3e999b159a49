/* at_tiled for bench_peers.py: arrays in, arrays out, in fp32. SPDX-License-Identifier: MIT */
#include "attest.h"
#include <stdio.h>

int peers_forward(float *q, float *k, float *v, float *out, const int64_t shape[6], double scale,
                  int causal, int threads, const int64_t *kv_start, const int64_t *kv_len);
const char *peers_engine(void);
int64_t peers_workspace(const int64_t shape[6], int threads);

/* shape: B, Hq, Hkv, Sq, keys, D; with kv_start the keys of all sequences lie one after another. */
int peers_forward(float *q, float *k, float *v, float *out, const int64_t shape[6], double scale,
                  int causal, int threads, const int64_t *kv_start, const int64_t *kv_len)
{
    int64_t B = shape[0], Hq = shape[1], Hkv = shape[2], Sq = shape[3], N = shape[4], D = shape[5];
    int64_t batch = kv_start ? 1 : B;
    struct at_attention a =
        at_plain(at_bhsd(q, AT_F32, B, Hq, Sq, D), at_bhsd(k, AT_F32, batch, Hkv, N, D),
                 at_bhsd(v, AT_F32, batch, Hkv, N, D), scale);
    struct at_result to = {.out = at_bhsd(out, AT_F32, B, Hq, Sq, D)};
    a.score.right = causal ? 0 : AT_UNBOUNDED;
    a.score.kv_start = kv_start;
    a.score.kv_len = kv_len;
    a.plan.threads = threads;
    return (int)at_forward(&at_tiled, &a, &to);
}

const char *peers_engine(void) { return at_tiled_at(0)->name; }

/* Bytes that the engine takes beyond inputs and output. */
int64_t peers_workspace(const int64_t shape[6], int threads)
{
    int64_t B = shape[0], Hq = shape[1], Hkv = shape[2], Sq = shape[3], N = shape[4], D = shape[5];
    struct at_attention a =
        at_plain(at_bhsd(NULL, AT_F32, B, Hq, Sq, D), at_bhsd(NULL, AT_F32, B, Hkv, N, D),
                 at_bhsd(NULL, AT_F32, B, Hkv, N, D), 1);
    a.plan.threads = threads;
    return at_tiled.workspace(&a);
}

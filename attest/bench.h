/* What the files of attest bench share. SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H

#include "attest.h"
#include "roof.h"

enum { MOST_ROUNDS = 101, MOST_LAYERS = 64 };

struct bench_options {
    const char *workload, *json;
    const struct at_engine *engine;
    enum at_dtype dtype;
    int64_t n, d, heads, kv_heads, batch, layers, rounds, br, bc, splits, threads;
    bool causal;
};

/* One round's figures and what is kept of them. */
struct bench_series {
    double at[MOST_ROUNDS];
    int n;
};

struct bench {
    struct bench_options o;
    struct at_attention a[MOST_LAYERS];
    struct at_result to;
    int64_t *start, *len;
    void *q, *kv[MOST_LAYERS], *out;
    int64_t q_bytes, kv_bytes, out_bytes; /* kv: one layer's K, or its V */
    double flops, bytes; /* of one layer: useful arithmetic, useful bytes of K and V */
    struct bench_series time, peak, read, share, cpu_share;
    int64_t rss_before, peak_rss;
    struct at_tally tally;
};

bool bench_make(struct bench *x);
void bench_free(struct bench *x);
enum at_status bench_measure(struct bench *x);
double bench_quantile(const struct bench_series *s, double part);
void bench_say(const struct bench *x);
bool bench_say_json(const struct bench *x); /* one line, appended to o.json */
int command_bench(int argc, char **argv);

#endif

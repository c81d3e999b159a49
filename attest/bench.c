/* attest bench prefill|decode|batch: three questions that must not stand in for one another, each
 * answered as a share of what this machine can do, measured in the same rounds.
 *
 *     prefill  FLOP/s of 4 N^2 D (visible pairs only) over the FMA peak
 *     decode   time to read K and V once, or for their FMAs where longer, over the time taken
 *
 * A figure counts as the median of the rounds' ratios: machines are shared and noisy.
 * Not here: other libraries (tests/peers/bench_peers.py).
 *
 * SPDX-License-Identifier: MIT */
#include "bench.h"
#include "ref.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: attest bench prefill|decode|batch [options]\n"
    "  prefill: N queries over N keys; decode: 1 over N; batch: 1 over each of many, 128 .. N "
    "keys\n"
    "  --n N  --d D  --heads H  --kv-heads H  --batch B  --dtype fp32|fp64|bf16|...  --causal\n"
    "  --engine tiled|scalar|standard  --threads T  --br R  --bc C  --splits S\n"
    "  --rounds R  --layers L (copies of the cache, met in turn)  --json FILE (appends a line)\n";

static const struct option list[] = {
    {"n", 1, NULL, 'n'},        {"d", 1, NULL, 'd'},       {"heads", 1, NULL, 'h'},
    {"kv-heads", 1, NULL, 'g'}, {"batch", 1, NULL, 'b'},   {"layers", 1, NULL, 'l'},
    {"rounds", 1, NULL, 'r'},   {"br", 1, NULL, 'q'},      {"bc", 1, NULL, 'k'},
    {"splits", 1, NULL, 's'},   {"threads", 1, NULL, 't'}, {"dtype", 1, NULL, 'y'},
    {"engine", 1, NULL, 'e'},   {"json", 1, NULL, 'j'},    {"causal", 0, NULL, 'c'},
    {NULL, 0, NULL, 0}};

static const struct at_engine *engine_of(const char *name)
{
    const struct at_engine *all[] = {&at_tiled, &at_scalar, &at_standard};
    for (int k = 0; k < 3; k++)
        if (strcmp(all[k]->name, name) == 0)
            return all[k];
    for (int64_t k = 0; at_tiled_at(k); k++)
        if (strcmp(at_tiled_at(k)->name, name) == 0)
            return at_tiled_at(k);
    return NULL;
}

/* A whole number in lo .. hi; otherwise false. */
static bool number(const char *text, int64_t lo, int64_t hi, int64_t *to)
{
    char *end;
    long long x = strtoll(text, &end, 10);
    *to = x;
    return *end == 0 && end != text && x >= lo && x <= hi;
}

static bool take(struct bench_options *o, int key)
{
    const int64_t most = (int64_t)1 << 32;
    switch (key) {
    case 'n': return number(optarg, 1, most, &o->n);
    case 'd': return number(optarg, 1, 65536, &o->d);
    case 'h': return number(optarg, 1, 65536, &o->heads);
    case 'g': return number(optarg, 1, 65536, &o->kv_heads);
    case 'b': return number(optarg, 1, 65536, &o->batch);
    case 'l': return number(optarg, 1, MOST_LAYERS, &o->layers);
    case 'r': return number(optarg, 1, MOST_ROUNDS, &o->rounds);
    case 'q': return number(optarg, 0, most, &o->br);
    case 'k': return number(optarg, 0, most, &o->bc);
    case 's': return number(optarg, 0, most, &o->splits);
    case 't': return number(optarg, 0, 1024, &o->threads);
    case 'y': return (o->dtype = at_dtype_find(optarg)) >= AT_F64 && o->dtype <= AT_F8_E5M2;
    case 'e': return (o->engine = engine_of(optarg)) != NULL;
    case 'j': return (o->json = optarg) != NULL;
    case 'c': return o->causal = true;
    default: return false;
    }
}

/* The seed's sizes: prefill 8192 x 8192, decode 1 x 8192 and batch 128 .. 8192, 32 heads over 8. */
static bool options(struct bench_options *o, int argc, char **argv)
{
    static const char *const names[] = {"prefill", "decode", "batch"};
    *o = (struct bench_options){.engine = &at_tiled,
                                .dtype = AT_F32,
                                .n = 8192,
                                .d = 128,
                                .layers = 1,
                                .rounds = 9,
                                .batch = 1};
    for (int k = 0; k < 3 && argc > 1; k++)
        if (strcmp(argv[1], names[k]) == 0)
            o->workload = names[k];
    if (!o->workload)
        return false;
    bool prefill = strcmp(o->workload, "prefill") == 0;
    o->heads = prefill ? 1 : 32;
    o->kv_heads = prefill ? 0 : 8;
    o->layers = prefill ? 1 : 4;
    o->batch = strcmp(o->workload, "batch") == 0 ? 16 : 1;
    optind = 2;
    for (int key; (key = getopt_long(argc, argv, "", list, NULL)) != -1;)
        if (!take(o, key))
            return false;
    o->kv_heads = o->kv_heads ? o->kv_heads : o->heads;
    o->causal = o->causal && prefill; /* one query sees every key */
    return optind == argc && (o->batch == 1 || strcmp(o->workload, "batch") == 0);
}

int command_bench(int argc, char **argv)
{
    static struct bench x; /* too wide for a stack */
    enum at_status status = AT_ERR_MEMORY;
    if (!options(&x.o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (bench_make(&x))
        status = bench_measure(&x);
    if (status == AT_OK)
        bench_say(&x);
    else
        fprintf(stderr, "attest bench: %s\n", at_strstatus(status));
    bool kept = status != AT_OK || !x.o.json || bench_say_json(&x);
    if (!kept)
        fprintf(stderr, "attest bench: %s: cannot be written\n", x.o.json);
    bench_free(&x);
    return status == AT_OK && kept ? 0 : 2;
}

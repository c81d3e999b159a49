/* The workloads of attest bench and their rounds. SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* madvise */
#include "at_math.h"
#include "bench.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- Memory: our own ledger, and the kernel's word --------------------------------------------- */

/* Huge pages where the kernel gives them on request, as numpy asks for its arrays: a plain malloc
 * reads 1.3-1.6 times slower. */
static void *room(int64_t bytes)
{
    const size_t huge = (size_t)2 << 20;
    size_t size = ((size_t)bytes + huge - 1) / huge * huge;
    void *x = aligned_alloc(huge, size);
#ifdef MADV_HUGEPAGE
    if (x && size >= 8 * huge)
        (void)madvise(x, size, MADV_HUGEPAGE);
#endif
    return x;
}

/* "VmHWM" or "VmRSS" of this process in bytes; 0 where the kernel does not say. */
static int64_t kernel_says(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoll(line + strlen(name) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
}

/* -- The problem ------------------------------------------------------------------------------- */

/* About N(0,1): the sum of four uniforms. */
static double draw(uint64_t *seed)
{
    double sum = -2;
    for (int k = 0; k < 4; k++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 11) * 0x1p-53;
    }
    return sum * 1.7320508;
}

static void paint(void *data, enum at_dtype dtype, int64_t n, uint64_t seed)
{
    for (int64_t t = 0; t < n; t++) {
        double y = draw(&seed);
        if (dtype == AT_F64) {
            ((double *)data)[t] = y;
        } else if (dtype == AT_F32) {
            ((float *)data)[t] = (float)y;
        } else {
            uint32_t bits = at_encode(y, at_narrow_of(dtype));
            memcpy((char *)data + t * at_dtype_size(dtype), &bits, (size_t)at_dtype_size(dtype));
        }
    }
}

/* Lengths 128 .. n, evenly on a logarithmic scale; longest last, as no scheduler would like it. */
static int64_t lengths(struct bench *x)
{
    int64_t B = x->o.batch, total = 0;
    for (int64_t b = 0; b < B; b++) {
        double part = B > 1 ? (double)b / (double)(B - 1) : 1, n = (double)x->o.n;
        x->len[b] = (int64_t)(n > 128 ? 128 * pow(n / 128, part) : n);
        x->start[b] = total;
        total += x->len[b];
    }
    return total;
}

static void describe(struct bench *x, int64_t keys, bool mixed)
{
    const struct bench_options *o = &x->o;
    int64_t Sq = strcmp(o->workload, "prefill") == 0 ? o->n : 1;
    enum at_dtype out = o->dtype == AT_F64 ? AT_F64 : AT_F32;
    for (int64_t k = 0; k < o->layers; k++) {
        char *kv = x->kv[k];
        struct at_attention *a = &x->a[k];
        *a = at_plain(at_bhsd(x->q, o->dtype, o->batch, o->heads, Sq, o->d),
                      at_bhsd(kv, o->dtype, 1, o->kv_heads, keys, o->d),
                      at_bhsd(kv + x->kv_bytes, o->dtype, 1, o->kv_heads, keys, o->d),
                      1 / sqrt((double)o->d));
        a->score.right = o->causal ? 0 : AT_UNBOUNDED;
        a->score.kv_start = mixed ? x->start : NULL;
        a->score.kv_len = mixed ? x->len : NULL;
        a->plan = (struct at_plan){
            .br = o->br, .bc = o->bc, .splits = o->splits, .threads = (int)o->threads};
        a->plan = at_resolve(a);
    }
    x->to = (struct at_result){.out = at_bhsd(x->out, out, o->batch, o->heads, Sq, o->d)};
    double pairs = o->causal ? (double)Sq * (double)(Sq + 1) / 2 : (double)Sq * (double)keys;
    x->flops = 4 * pairs * (double)(o->heads * o->d);
    x->bytes = 2.0 * (double)x->kv_bytes;
}

bool bench_make(struct bench *x)
{
    const struct bench_options *o = &x->o;
    bool mixed = strcmp(o->workload, "batch") == 0, prefill = strcmp(o->workload, "prefill") == 0;
    x->start = malloc((size_t)o->batch * sizeof *x->start);
    x->len = malloc((size_t)o->batch * sizeof *x->len);
    if (!x->start || !x->len)
        return false;
    int64_t keys = mixed ? lengths(x) : o->n, size = at_dtype_size(o->dtype);
    x->q_bytes = o->batch * o->heads * (prefill ? o->n : 1) * o->d * size;
    x->kv_bytes = o->kv_heads * keys * o->d * size;
    x->out_bytes = x->q_bytes / size * (o->dtype == AT_F64 ? 8 : 4);
    x->q = room(x->q_bytes);
    x->out = room(x->out_bytes);
    for (int64_t k = 0; k < o->layers; k++)
        if (!(x->kv[k] = room(2 * x->kv_bytes)))
            return false;
    if (!x->q || !x->out)
        return false;
    paint(x->q, o->dtype, x->q_bytes / size, 1);
    for (int64_t k = 0; k < o->layers; k++)
        paint(x->kv[k], o->dtype, 2 * x->kv_bytes / size, 2 + (uint64_t)k);
    memset(x->out, 0, (size_t)x->out_bytes);
    describe(x, keys, mixed);
    return true;
}

void bench_free(struct bench *x)
{
    for (int64_t k = 0; k < x->o.layers; k++)
        free(x->kv[k]);
    free(x->q), free(x->out), free(x->start), free(x->len);
}

/* -- The rounds -------------------------------------------------------------------------------- */

static void note(struct bench_series *s, double x) { s->at[s->n++] = x; }

static double larger(double x, double y) { return x > y ? x : y; }

/* The roof before and after the engine, so that a drift of the machine cancels. In decode every
 * layer is met once: what one leaves in the caches does not help it again. */
static enum at_status round_of(struct bench *x, double guess, bool kept)
{
    const struct bench_options *o = &x->o;
    bool prefill = strcmp(o->workload, "prefill") == 0, wide = x->a[0].plan.compute == AT_F64;
    int threads = x->a[0].plan.threads;
    struct roof_block block[MOST_LAYERS];
    struct seconds fma[2], read[2] = {{0}}, start, took = {0};
    /* A short call is repeated: it must last as long as the roof's measurement, 30 ms or more. */
    int64_t again = guess * (double)o->layers < 0.03 ? (int64_t)(0.03 / guess) / o->layers + 1 : 1;
    double L = (double)(o->layers * again), passes = (double)o->layers,
           each = guess / 4 < 0.03 ? 0.03 : guess / 4;
    for (int64_t k = 0; k < o->layers; k++)
        block[k] = (struct roof_block){x->kv[k], 2 * x->kv_bytes};
    for (int turn = 0; turn < 2; turn++) {
        fma[turn] = roof_fma(x->flops, each, 0, wide, threads);
        if (!prefill)
            read[turn] = roof_read(0, block, o->layers, threads);
        start = seconds_now();
        for (int64_t k = 0; k < o->layers * again && turn == 0; k++) {
            enum at_status status = at_forward(o->engine, &x->a[k % o->layers], &x->to);
            if (status != AT_OK)
                return status;
        }
        if (turn == 0)
            took = seconds_since(start);
    }
    double f = (fma[0].wall + fma[1].wall) / 2, r = (read[0].wall + read[1].wall) / 2 / passes;
    double fc = (fma[0].cpu + fma[1].cpu) / 2, rc = (read[0].cpu + read[1].cpu) / 2 / passes;
    if (kept) {
        note(&x->time, took.wall / L);
        note(&x->peak, x->flops / f);
        note(&x->read, prefill ? 0 : x->bytes / r);
        note(&x->share, larger(f, r) / (took.wall / L));
        note(&x->cpu_share, larger(fc, rc) / (took.cpu / L));
    }
    return AT_OK;
}

enum at_status bench_measure(struct bench *x)
{
    bool seen = isatty(2);
    x->rss_before = kernel_says("VmRSS");
    struct seconds start = seconds_now();
    enum at_status status = x->o.engine == &at_tiled /* alone: its memory */
                                ? at_tiled_counted(&x->a[0], &x->to, &x->tally)
                                : at_forward(x->o.engine, &x->a[0], &x->to);
    double guess = seconds_since(start).wall;
    x->peak_rss = kernel_says("VmHWM");
    for (int64_t k = 0; k <= x->o.rounds && status == AT_OK; k++) {
        if (seen)
            fprintf(stderr, "\rbench %s: round %lld of %lld", x->o.workload, (long long)k,
                    (long long)x->o.rounds);
        status = round_of(x, guess, k > 0); /* the first warms up */
    }
    if (seen)
        fprintf(stderr, "\r%60s\r", "");
    return status;
}

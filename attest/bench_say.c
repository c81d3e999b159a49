/* What attest bench says: a table to read, a line to keep. SPDX-License-Identifier: MIT */
#include "bench.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_quantile(const struct bench_series *s, double part)
{
    double sorted[MOST_ROUNDS];
    memcpy(sorted, s->at, sizeof sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, ascending);
    return sorted[(int)(part * (s->n - 1) + 0.5)];
}

/* The ledger: what the engine asks for beyond inputs and output; 0: it does not say. */
static int64_t workspace_of(const struct bench *x)
{
    const struct at_engine *e = x->o.engine;
    return e->workspace ? e->workspace(&x->a[0]) : 0;
}

/* -- What is said ------------------------------------------------------------------------------ */

static void processor(char text[100])
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[300];
    snprintf(text, 100, "processor unknown");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            char *at = strchr(line, ':');
            snprintf(text, 100, "%.99s", at ? at + 2 : line);
            text[strcspn(text, "\n")] = 0;
            break;
        }
    if (f)
        fclose(f);
}

static const char *question(const struct bench_options *o)
{
    if (strcmp(o->workload, "prefill") == 0)
        return "How near the FMA peak is attention of N queries over N keys?";
    if (strcmp(o->workload, "decode") == 0)
        return "How near the memory's speed is one query over one long cache?";
    return "How near the memory's speed is one query in each of many caches of mixed length?";
}

static const char *compiler(void)
{
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

static const char *build_of(const struct bench_options *o)
{
    return o->engine == &at_tiled ? at_tiled_at(0)->name : o->engine->name;
}

void bench_say(const struct bench *x)
{
    const struct bench_options *o = &x->o;
    const struct at_plan *p = &x->a[0].plan;
    struct utsname u;
    char cpu[100];
    double ms = 1e3 * bench_quantile(&x->time, 0.5),
           inputs = (double)(x->q_bytes + 2 * o->layers * x->kv_bytes);
    bool prefill = strcmp(o->workload, "prefill") == 0;
    processor(cpu);
    uname(&u);
    printf("%s\n", question(o));
    printf(
        "  problem   %s N %lld D %lld, %lld heads over %lld, %lld sequences, %s%s, %lld layers\n",
        o->workload, (long long)o->n, (long long)o->d, (long long)o->heads, (long long)o->kv_heads,
        (long long)o->batch, at_dtype_name(o->dtype), o->causal ? ", causal" : "",
        (long long)o->layers);
    printf("  engine    %s, compute %s, br %lld, bc %lld, lanes %lld, splits %lld, threads %d\n",
           build_of(o), at_dtype_name(p->compute), (long long)p->br, (long long)p->bc,
           (long long)p->lanes, (long long)p->splits, p->threads);
    printf("  machine   %s, %s %s, %s\n", cpu, u.sysname, u.machine, compiler());
    printf("  time      %.3f ms a layer (%.3f .. %.3f), median of %d rounds\n", ms,
           1e3 * bench_quantile(&x->time, 0), 1e3 * bench_quantile(&x->time, 1), x->time.n);
    printf("  rate      %.1f GFLOP/s; FMA peak alongside %.1f\n", x->flops / ms * 1e-6,
           1e-9 * bench_quantile(&x->peak, 0.5));
    if (!prefill)
        printf("            %.1f GB/s of K and V; read stream alongside %.1f\n",
               x->bytes / ms * 1e-6, 1e-9 * bench_quantile(&x->read, 0.5));
    printf("  share     %.3f of %s (%.3f .. %.3f)\n", bench_quantile(&x->share, 0.5),
           prefill ? "the FMA peak" : "the roof", bench_quantile(&x->share, 0),
           bench_quantile(&x->share, 1));
    printf(
        "            %.3f by processor time, which does not see other processes (%.3f .. %.3f)\n",
        bench_quantile(&x->cpu_share, 0.5), bench_quantile(&x->cpu_share, 0),
        bench_quantile(&x->cpu_share, 1));
    printf("  memory    inputs %.1f MB, output %.1f MB, workspace %.2f MB (VmHWM rose by %.2f MB)\n"
           "            peak %.1f MB = %.2f of inputs and output\n",
           inputs * 1e-6, (double)x->out_bytes * 1e-6, (double)workspace_of(x) * 1e-6,
           (double)(x->peak_rss - x->rss_before) * 1e-6, (double)x->peak_rss * 1e-6,
           (double)x->peak_rss / (inputs + (double)x->out_bytes));
    if (x->tally.visited)
        printf("  tiles     %lld visited, %lld of them partly hidden, %lld skipped\n",
               (long long)x->tally.visited, (long long)x->tally.partial,
               (long long)x->tally.skipped);
}

bool bench_say_json(const struct bench *x)
{
    const struct bench_options *o = &x->o;
    const struct at_plan *p = &x->a[0].plan;
    FILE *f = fopen(o->json, "a");
    char cpu[100];
    if (!f)
        return false;
    processor(cpu);
    fprintf(f,
            "{\"workload\":\"%s\",\"n\":%lld,\"d\":%lld,\"heads\":%lld,\"kv_heads\":%lld,"
            "\"batch\":%lld,\"layers\":%lld,\"dtype\":\"%s\",\"causal\":%s,",
            o->workload, (long long)o->n, (long long)o->d, (long long)o->heads,
            (long long)o->kv_heads, (long long)o->batch, (long long)o->layers,
            at_dtype_name(o->dtype), o->causal ? "true" : "false");
    fprintf(f,
            "\"engine\":\"%s\",\"br\":%lld,\"bc\":%lld,\"lanes\":%lld,\"splits\":%lld,"
            "\"threads\":%d,\"machine\":\"%s\",\"compiler\":\"%s\",",
            build_of(o), (long long)p->br, (long long)p->bc, (long long)p->lanes,
            (long long)p->splits, p->threads, cpu, compiler());
    fprintf(f,
            "\"rounds\":%d,\"ms\":%.6g,\"ms_min\":%.6g,\"ms_max\":%.6g,\"gflops\":%.6g,"
            "\"peak_gflops\":%.6g,\"gbs\":%.6g,\"read_gbs\":%.6g,\"share\":%.4g,\"share_min\":%.4g,"
            "\"share_max\":%.4g,\"cpu_share\":%.4g,",
            x->time.n, 1e3 * bench_quantile(&x->time, 0.5), 1e3 * bench_quantile(&x->time, 0),
            1e3 * bench_quantile(&x->time, 1), 1e-9 * x->flops / bench_quantile(&x->time, 0.5),
            1e-9 * bench_quantile(&x->peak, 0.5), 1e-9 * x->bytes / bench_quantile(&x->time, 0.5),
            1e-9 * bench_quantile(&x->read, 0.5), bench_quantile(&x->share, 0.5),
            bench_quantile(&x->share, 0), bench_quantile(&x->share, 1),
            bench_quantile(&x->cpu_share, 0.5));
    fprintf(f,
            "\"input_bytes\":%lld,\"output_bytes\":%lld,\"workspace_bytes\":%lld,"
            "\"rss_grew\":%lld,\"peak_bytes\":%lld,\"tiles_visited\":%lld,\"tiles_partial\":%lld,"
            "\"tiles_skipped\":%lld}\n",
            (long long)x->q_bytes + 2 * (long long)o->layers * (long long)x->kv_bytes,
            (long long)x->out_bytes, (long long)workspace_of(x),
            (long long)(x->peak_rss - x->rss_before), (long long)x->peak_rss,
            (long long)x->tally.visited, (long long)x->tally.partial, (long long)x->tally.skipped);
    return fclose(f) == 0;
}

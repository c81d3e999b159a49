/* Every mutant, and every correct kernel, under our judge and under published rules: a table of
 * tab-separated lines on stdout, the names of the cases on stderr.
 *
 *     kernel  suite  case  effect  judge  confidence  assert_close ... hipdnn
 *
 * effect: does the kernel differ from the one without the fault in a bit of out, or of lse where
 * the suite is generated? 1 in a rule's column: it fails the kernel. Suites: "ordinary" (normal
 * numbers, as a kernel's own test draws them, fp32 and bf16), and those of `attest generate full`,
 * whose intervals stand in for the judge: the preset that the files state, equality on exact cases.
 * usage: kill_matrix [seed]. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_index.h"
#include "at_simulate.h"
#include "hold.h"
#include "oracle.h"
#include "ordinary.h"
#include "published.h"
#include "ref.h"
#include "vector.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALARM 1e-6 /* of the second line, for each verdict */

/* One problem with its truth; base: the kernel without a fault. */
struct scene {
    const char *suite;
    char name[140];
    const struct at_attention *a;
    const struct at_result *got;
    struct at_arith arith, bounded; /* the kernels'; that of the bound in h */
    enum at_exact exact;
    enum at_dtype weight;
    struct hold h;
    double *eager;
    unsigned char *base;
    size_t bytes;
    const unsigned char *memory; /* of got */
    bool rules;                  /* ordinary: published rules too */
};

/* -- Verdicts -------------------------------------------------------------------------------- */

/* The bound in h becomes the arithmetic's. */
static void bind(struct scene *s, const struct at_arith *arith)
{
    if (memcmp(&s->bounded, arith, sizeof *arith) == 0)
        return;
    s->bounded = *arith;
    if (at_bound(s->a, arith, s->h.rows, &s->h.truth) != AT_OK)
        abort();
    at_exact_claim(s->exact, arith, s->a->v.dtype, &s->h.truth);
}

static void put(struct scene *s, const char *kernel, bool effect, const struct at_arith *arith)
{
    struct at_verdict v;
    struct at_statistics c = {.applies = false};
    bool fails[PUBLISHED] = {false};
    struct hold *h = &s->h;
    bind(s, arith);
    if (at_compare(s->a, s->got, h->rows, arith, &h->truth, NULL, &v) != AT_OK ||
        at_statistics(s->a, arith, &s->got->out, h->rows, &h->truth, ALARM, &c) != AT_OK)
        abort();
    if (s->rules)
        published_fails(s->a, s->got, &h->truth, s->eager, fails);
    printf("%s\t%s\t%s\t%d\t%d\t%d", kernel, s->suite, s->name, effect, v.failed > 0,
           v.failed > 0 || (c.applies && c.fails));
    for (int k = 0; k < PUBLISHED; k++)
        printf("\t%s", s->rules ? fails[k] ? "1" : "0" : "-");
    printf("\t%.3g\t%.3g\t%.3g\t%.3g\n", v.ratio, c.applies ? c.rms / c.rms_limit : 0, c.gain,
           c.scale);
}

static void keep(struct scene *s)
{
    free(s->base);
    s->base = malloc(s->bytes + 1);
    if (!s->base)
        abort();
    memcpy(s->base, s->memory, s->bytes);
}

static bool plant(const struct scene *s, int kind, int64_t at)
{
    char name[140];
    struct at_said said;
    struct at_planted f = {kind, at, -1, s->weight};
    enum at_dtype weight = s->weight;
    if (strcmp(at_mutant_at(kind)->name, "p-truncated") == 0)
        weight = AT_BF16;
    at_mutant_name(&f, name, sizeof name);
    if (weight)
        strcat(strcat(name, strchr(name, '@') ? "," : "@"),
               weight == AT_BF16 ? "p=bf16" : "p=fp16");
    memset((unsigned char *)(uintptr_t)s->memory, 0xff, s->bytes);
    return at_mutant_forward(name, s->a, s->got, &said);
}

/* N in the middle: a key that ordinary tests lose least willingly. */
static int64_t middle(const struct at_attention *a, const char *of)
{
    struct at_sizes z = at_sizes(a);
    if (!of)
        return -1;
    return of[0] == 'k' ? z.Skv / 2 : at_min(1, (z.Skv - 1) / a->plan.bc);
}

static void mutants(struct scene *s, unsigned needs, bool exactly)
{
    for (int m = 0; at_mutant_at(m); m++) {
        const struct at_mutant *x = at_mutant_at(m);
        struct at_arith arith = s->arith;
        bool weighs = strcmp(x->arith, "bf16-p") == 0;
        if ((x->needs & ~at_mutant_offers(s->a)) || (exactly && (x->needs & needs) != needs))
            continue;
        if (s->weight && strncmp(x->name, "p-", 2) == 0 && !weighs)
            continue; /* permitted */
        if (weighs)
            arith.weight = AT_BF16;
        if (!plant(s, m, middle(s->a, x->of)))
            abort();
        put(s, x->name, memcmp(s->base, s->memory, s->bytes) != 0, &arith);
    }
}

/* The kernel without a fault, through the mutants' own loop: P narrow where the scene's is. */
static void unspoiled(const struct scene *s)
{
    struct at_planted f = {-1, -1, -1, s->weight};
    struct at_rows all = s->h.rows;
    struct at_mutant_run *r = at_mutant_open(s->a, 0);
    double *out = malloc((size_t)(s->a->v.dim[3] + 1) * sizeof *out), lse;
    if (!r || !out)
        abort();
    for (int64_t t = 0; t < all.n; t++) {
        struct at_place p = at_place_of(s->a, all, t);
        int64_t at = at_row_offset(s->a, &s->got->out, p.b, p.h, p.i);
        at_mutant_row(r, &f, p, out, &lse);
        for (int64_t c = 0; c < s->a->v.dim[3]; c++)
            paint_put(&s->got->out, at + c * s->got->out.stride[3], out[c]);
        if (s->got->lse.data)
            paint_put(&s->got->lse, at_row_offset(s->a, &s->got->lse, p.b, p.h, p.i), lse);
    }
    at_mutant_close(r);
    free(out);
}

/* Correct kernels of many plans; with P narrow, the one that has it. On ordinary inputs each is
 * held to its own arithmetic, on generated ones to the files'. */
static void correct(struct scene *s)
{
    static const struct at_plan plans[] = {
        {.bc = 1}, {.bc = 16, .lanes = 8}, {.bc = 64}, {.bc = 64, .splits = 4, .merge = AT_TREE}};
    unspoiled(s);
    keep(s);
    put(s, s->weight ? "correct-p" : "correct", false, &s->arith);
    if (s->weight) { /* all in fp32, only the output rounded */
        struct at_arith inside = s->arith;
        inside.weight = AT_DEFAULT;
        if (at_forward(&at_scalar, s->a, s->got) != AT_OK)
            abort();
        put(s, "correct-inside-fp32", false, &inside);
    }
    for (int k = 0; k < 5 && !s->weight; k++) {
        struct at_attention a = *s->a;
        const struct at_engine *e = k < 4 ? &at_scalar : &at_standard;
        a.plan = k < 4 ? plans[k] : (struct at_plan){.bc = 0};
        a.plan.compute = AT_F32;
        a.plan = at_resolve(&a);
        if (at_forward(e, &a, s->got) != AT_OK)
            abort();
        struct at_arith arith = s->rules ? e->arith(&a) : s->arith;
        char name[40];
        snprintf(name, sizeof name, "correct-%s-%d", e->name, k);
        put(s, name, false, &arith);
    }
}

/* Unfused attention whose scores, P and output have the dtype: flash-attention's out_pt. */
static void eager(struct scene *s)
{
    int64_t n = s->h.rows.n, Dv = s->a->v.dim[3];
    struct at_float f = at_float_of(AT_F32), d = {.p = 0};
    if (s->got->out.dtype != AT_F32)
        d = at_float_of(s->got->out.dtype);
    struct at_machine m = {.compute = f, .score = d, .weight = d, .out = d};
    struct at_attention a = *s->a;
    a.plan = (struct at_plan){.compute = AT_F32, .bc = at_max(a.k.dim[2], 1)};
    s->eager = malloc((size_t)(n * (Dv + 1) + 1) * sizeof *s->eager);
    if (!s->eager || at_simulate(&a, &m, s->h.rows, s->eager, s->eager + n * Dv) != AT_OK)
        abort();
}

/* The truth is there. */
static void play(struct scene *s, unsigned needs, bool exactly)
{
    if (s->rules)
        eager(s);
    correct(s);
    mutants(s, needs, exactly);
    free(s->eager);
    free(s->base);
    fprintf(stderr, "%s\n", s->name);
}

/* -- Suites ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t features;
    unsigned needs;
} settings[] = {
    {"plain", 0, 0},
    {"causal", ORDINARY_CAUSAL, AT_NEEDS_CAUSAL},
    {"window", ORDINARY_CAUSAL | ORDINARY_WINDOW, AT_NEEDS_WINDOW},
    {"mask", ORDINARY_MASK, AT_NEEDS_MASK},
    {"lengths", ORDINARY_LENGTHS, AT_NEEDS_KV_LEN},
    {"q-lengths", ORDINARY_LENGTHS, AT_NEEDS_Q_LEN},
    {"bias", ORDINARY_BIAS, AT_NEEDS_BIAS},
    {"alibi", ORDINARY_ALIBI | ORDINARY_CAUSAL, AT_NEEDS_ALIBI},
    {"sink", ORDINARY_SINK, AT_NEEDS_SINK},
    {"cap", ORDINARY_CAP | ORDINARY_BIAS, AT_NEEDS_CAP},
    {"dropout", ORDINARY_DROPOUT, AT_NEEDS_DROPOUT},
    {"descale", ORDINARY_DESCALE, AT_NEEDS_KSCALE},
    {"v-descale", ORDINARY_DESCALE, AT_NEEDS_VSCALE},
    {"pages", ORDINARY_PAGES, AT_NEEDS_PAGES},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void stage(struct scene *s, struct ordinary *x, int64_t tile, bool narrow)
{
    x->a.plan = (struct at_plan){.compute = AT_F32, .bc = tile};
    x->a.plan = at_resolve(&x->a);
    s->a = &x->a, s->got = &x->got;
    s->weight = narrow ? AT_BF16 : AT_DEFAULT;
    s->arith = at_scalar.arith(&x->a);
    if (narrow)
        s->arith.weight = AT_BF16;
    int64_t rows = x->got.lse.dim[0] * x->got.lse.dim[1] * x->got.lse.dim[2];
    int64_t size = at_dtype_size(x->got.out.dtype);
    s->memory = x->got.out.data;
    s->bytes = (size_t)(rows * x->got.out.dim[3] * size);
}

/* Normal numbers at the given length: each feature with the mutants that need it. */
static void ordinary(uint64_t seed, int64_t Skv, enum at_dtype dtype, int64_t D, int64_t rows,
                     int kinds)
{
    for (int k = 0; k < kinds; k++) {
        struct ordinary x;
        struct scene s = {.suite = "ordinary", .rules = true};
        struct ordinary_shape shape = {.B = 2,
                                       .Hq = 4,
                                       .Hkv = 2,
                                       .Sq = rows,
                                       .Skv = Skv,
                                       .D = D,
                                       .Dv = 32,
                                       .dtype = dtype,
                                       .features = settings[k].features};
        ordinary_make(&x, seed + (uint64_t)k, shape);
        stage(&s, &x, 64, dtype == AT_BF16);
        snprintf(s.name, sizeof s.name, "%s-%s-%lld-%llu", at_dtype_name(dtype), settings[k].name,
                 (long long)Skv, (unsigned long long)seed);
        if (!hold_truth(&s.h, s.a))
            abort();
        play(&s, settings[k].needs, true);
        hold_free(&s.h);
        ordinary_free(&x);
    }
}

/* One case of `attest generate`, as its files have it. */
static void vector(struct at_vector *v, const char *where)
{
    struct at_attention *a = &v->x.a;
    struct scene s = {.a = a, .arith = v->arith, .exact = v->canvas.plot->exact};
    char suite[20];
    int64_t n = v->y.n, size = at_dtype_size(v->out);
    snprintf(suite, sizeof suite, "%.*s", (int)strcspn(v->canvas.name, "-"), v->canvas.name);
    snprintf(s.name, sizeof s.name, "%s-%s", where, v->canvas.name);
    a->plan = (struct at_plan){.compute = AT_F32, .bc = v->canvas.want->tile[0]};
    a->plan = at_resolve(a);
    s.bytes = (size_t)(n * (v->y.Dv * size + 4));
    unsigned char *memory = malloc(s.bytes + 1);
    if (!memory)
        abort();
    const int64_t *q = a->q.dim;
    struct at_result got = {at_case_like_q(&v->x, memory + 4 * n, v->out, v->y.Dv),
                            at_bhsd(memory, AT_F32, q[0], q[1], q[2], 1)};
    s.suite = suite, s.got = &got, s.memory = memory;
    s.weight = v->arith.weight;
    s.h = (struct hold){.truth = v->y, .rows = v->rows};
    play(&s, 0, false);
    free(memory);
}

/* Every suite at a shape; arith "": what kernels of the dtype usually do. */
static void generated(uint64_t seed, enum at_dtype dtype, const int64_t shape[7], const char *arith)
{
    const struct at_progress quiet = {NULL, NULL};
    const struct at_plot *plot;
    struct at_request want = at_request_plain();
    struct at_said said;
    struct at_vector v;
    char where[40];
    int64_t tile;
    memcpy(want.shape, shape, sizeof want.shape);
    want.seed = seed, want.dtype = dtype, want.corner = AT_BOTTOM_RIGHT, want.tile[0] = 64;
    want.rows = INT64_MAX / 2; /* all */
    snprintf(want.arith, sizeof want.arith, "%s", arith);
    snprintf(where, sizeof where, "%s-%lld", at_dtype_name(dtype), (long long)shape[4]);
    if (!at_request_suite(&want, "full", &said) || !at_request_check(&want, &said))
        abort();
    for (int64_t k = 0; at_suite_case(&want, k, &plot, &tile); k++) {
        if (!at_vector_make(&v, &want, plot, tile, quiet, &said) || v.sampled)
            abort();
        vector(&v, where);
        at_vector_free(&v);
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("kernel\tsuite\tcase\teffect\tjudge\tconfidence");
    for (int k = 0; k < PUBLISHED; k++)
        printf("\t%s", published_names[k]);
    printf("\tratio\trms/limit\tgain\tscale\n");
    ordinary(seed, 500, AT_F32, 80, 4, SETTINGS);
    ordinary(seed, 500, AT_BF16, 80, 4, SETTINGS);
    ordinary(seed + 100, 2000, AT_F32, 64, 2, 1); /* plain alone: truth takes its time */
    ordinary(seed + 100, 2000, AT_BF16, 64, 2, 1);
    /* A tail, groups and a batch as faults need them; then many keys to a row. */
    const int64_t small[7] = {2, 6, 2, 7, 150, 20, 4}, deep[7] = {1, 2, 1, 3, 1500, 24, 4};
    generated(seed, AT_F32, small, "");
    generated(seed, AT_BF16, small, "");
    generated(seed, AT_BF16, deep, "");
    /* A cache as long as users have, under the loosest bound that they state. */
    const int64_t cache[7] = {1, 2, 1, 3, 4100, 64, 4};
    generated(seed, AT_BF16, cache, "bf16-tensor-core");
    return 0;
}

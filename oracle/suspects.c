/* What the diagnosis tries: each named fault under the tiles and splits that kernels have and at
 * each N, screened on the worst row; and arithmetics looser than the one stated.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "diagnose.h"
#include "ref.h"
#include <stdio.h>
#include <string.h>

/* -- Faults ---------------------------------------------------------------------------------- */

/* Multiply-adds that the screening of one kind may take: some 0.2 s. */
#define BUDGET ((int64_t)1 << 28)

/* The best few of a kind by the worst row alone. */
enum { SHORT_LIST = 12 };

struct search {
    const struct sample *s;
    struct at_mutant_run *r;
    double *out;
    struct fit list[SHORT_LIST];
    int n;
};

static void enter(struct search *x, const struct fit *fit)
{
    if (x->n == SHORT_LIST && !fit_better(fit, &x->list[SHORT_LIST - 1]))
        return;
    int at = x->n < SHORT_LIST ? x->n++ : SHORT_LIST - 1;
    for (; at > 0 && fit_better(fit, &x->list[at - 1]); at--)
        x->list[at] = x->list[at - 1];
    x->list[at] = *fit;
}

static void try_one(struct search *x, int kind, int64_t at, int64_t tile, int64_t splits)
{
    struct at_planted f = {kind, at, -1, AT_DEFAULT};
    if (strcmp(at_mutant_at(kind)->arith, "bf16-p") == 0)
        f.weight = x->s->arith->weight;
    at_mutant_plan(x->r, tile, splits);
    struct fit fit = sample_fit(x->s, x->r, &f, 1, x->out);
    fit.tile = tile, fit.splits = splits;
    enter(x, &fit);
}

/* Keys beside multiples of 16 and the row's last, where all would take too long. */
static bool border(int64_t j, struct at_span seen)
{
    int64_t at = j % 16;
    return at == 0 || at == 15 || at == 1 || j == seen.lo || j == seen.hi - 1;
}

static void try_keys(struct search *x, int kind, int64_t tile)
{
    const struct at_attention *a = x->s->a;
    struct at_sizes z = at_sizes(a);
    struct at_place p = x->s->place[0];
    struct at_span seen = at_keys(a, &z, p.b, p.i);
    int64_t n = at_max(seen.hi - seen.lo, 1), cost = n * n * z.Dv;
    for (int64_t j = seen.lo; j < seen.hi; j++)
        if (cost < BUDGET || border(j, seen))
            try_one(x, kind, j, tile, 1);
}

static void try_tiles(struct search *x, int kind, int64_t tile, int64_t splits)
{
    struct at_sizes z = at_sizes(x->s->a);
    int64_t n = (z.Skv + tile - 1) / tile, cost = n * z.Skv * z.Dv;
    try_one(x, kind, -1, tile, splits);
    for (int64_t t = 0; t < n && cost < BUDGET && at_mutant_at(kind)->of; t++)
        try_one(x, kind, t, tile, splits);
}

static const int64_t tiles[] = {16, 32, 64, 128, 1};
enum { TILES = 5 };

static void try_splits(struct search *x, int kind)
{
    static const int64_t parts[] = {2, 3, 4, 8};
    const struct at_plan *own = &x->s->a->plan;
    try_one(x, kind, -1, own->bc, 1); /* in the middle */
    if (own->splits > 1)
        try_one(x, kind, -1, own->bc, at_min(own->splits, 8));
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < TILES; t++)
            try_one(x, kind, -1, tiles[t], parts[k]);
}

/* Does the fault's answer depend on the tile? Where sums or P are rounded, it does; and where the
 * first tile decides what a stale u is worth. */
static bool tiled(const struct at_mutant *m)
{
    bool rounds = strncmp(m->name, "p-", 2) == 0 || strncmp(m->name, "sums-", 5) == 0 ||
                  strncmp(m->name, "small-", 6) == 0 || strcmp(m->name, "stale-workspace") == 0;
    return rounds || m->needs & (AT_NEEDS_TILES | AT_NEEDS_TAIL) || (m->of && m->of[0] == 't');
}

static void try_all(struct search *x, int kind)
{
    const struct at_mutant *m = at_mutant_at(kind);
    int64_t own = x->s->a->plan.bc, Skv = at_sizes(x->s->a).Skv;
    if (m->needs & AT_NEEDS_SPLITS) {
        try_splits(x, kind);
        return;
    }
    if (m->of && m->of[0] == 'k') {
        try_keys(x, kind, own);
        return;
    }
    for (int k = -1; k < (tiled(m) ? TILES : 0); k++) {
        int64_t tile = k < 0 ? own : tiles[k];
        bool vain = tile >= 2 * Skv && !(m->needs & AT_NEEDS_TAIL);
        if (k >= 0 && (tile == own || vain))
            continue;
        if (tiled(m) && tile > 1)
            for (int64_t splits = 1; splits <= 2; splits++)
                try_tiles(x, kind, tile, splits);
        else
            try_one(x, kind, -1, tile, 1);
    }
}

struct fit suspects_best(const struct sample *s, struct at_mutant_run *r, int kind, double *out)
{
    struct search x = {.s = s, .r = r, .out = out};
    struct fit best = {.of = 0};
    try_all(&x, kind);
    for (int k = 0; k < x.n; k++) {
        at_mutant_plan(r, x.list[k].tile, x.list[k].splits);
        struct fit fit = sample_fit(s, r, &x.list[k].f, s->n, out);
        fit.tile = x.list[k].tile, fit.splits = x.list[k].splits;
        if (best.of == 0 || fit_better(&fit, &best))
            best = fit;
    }
    return best;
}

/* -- Arithmetics ----------------------------------------------------------------------------- */

/* From small to large. */
static const struct loosening {
    const char *name, *change;
} loosenings[] = {
    {"computed in fp32", "compute=fp32"},
    {"sums in another order", "tile=0,joins=0,dot=0"},
    {"a reciprocal of l", "divisions=2"},
    {"exp2 with scale and shift in one fma", "fused=true,divisions=2,log_ulps=4"},
    {"sums that are cut, not rounded", "truncates=true,fused=true,divisions=2,log_ulps=4"},
    {"exp within 20 ulps", "exp_ulps=20,inexact_one=true,divisions=2"},
    {"products of two TF32 parts", "product_eps=4.8e-7,truncates=true,fused=true,divisions=2"},
    {"P in fp16", "weight=fp16,divisions=2"},
    {"P in fp16, divided by l before", "weight=fp16,normalised=true"},
    {"P in bf16", "weight=bf16,divisions=2"},
    {"P in bf16, divided by l before", "weight=bf16,normalised=true"},
    {"P in bf16, sums cut", "weight=bf16,truncates=true,fused=true,divisions=2,log_ulps=4"},
    {"P in bf16 from an exp within 400 ulps",
     "weight=bf16,exp_ulps=400,inexact_one=true,divisions=2"},
    {"q and k in TF32", "product_eps=0.0009765625,truncates=true,divisions=2"},
    {"scores in fp16", "score=fp16,divisions=2"},
    {"scores and P in fp16", "score=fp16,weight=fp16,normalised=true"},
    {"scores in bf16", "score=bf16,divisions=2"},
    {"scores and P in bf16", "score=bf16,weight=bf16,normalised=true"},
};

static bool loosened(const struct at_arith *from, const char *change, struct at_arith *to)
{
    char word[60];
    *to = *from;
    while (*change) {
        size_t n = strcspn(change, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, change);
        if (!at_arith_set(to, word, NULL))
            return false;
        change += change[n] ? n + 1 : n;
    }
    return true;
}

/* A narrow format that the inputs do not have is no likely guess. */
static bool likely(const struct sample *s, const char *name)
{
    enum at_dtype in = s->a->q.dtype;
    if (strcmp(name, "computed in fp32") == 0)
        return s->faultless && s->arith->compute == AT_F64;
    if (strstr(name, "fp16") && !strstr(name, "bf16"))
        return in == AT_F16 || in == AT_F32;
    if (strstr(name, "bf16"))
        return in == AT_BF16 || in == AT_F32;
    return !strstr(name, "TF32") || in == AT_F32;
}

bool suspects_arith(struct sample *s, const struct at_result *got, struct at_diagnosis *d)
{
    struct at_verdict v;
    struct at_arith looser;
    struct at_rows rows = {s->n, s->place};
    for (size_t k = 0; k < sizeof loosenings / sizeof *loosenings; k++) {
        if (!likely(s, loosenings[k].name) || !loosened(s->arith, loosenings[k].change, &looser))
            continue;
        if (at_bound(s->a, &looser, rows, &s->truth) != AT_OK ||
            at_compare(s->a, got, rows, &looser, &s->truth, NULL, &v) != AT_OK)
            continue;
        if (v.failed > 0 || v.unclaimed > 0 || !(v.ratio * 8 > 1 || s->faultless))
            continue;
        snprintf(d->name, sizeof d->name, "%s", loosenings[k].name);
        snprintf(d->what, sizeof d->what, "%s,%s", s->arith->name, loosenings[k].change);
        d->arithmetic = true;
        d->ratio = v.ratio;
        return true;
    }
    return false;
}

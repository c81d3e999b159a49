/* Planted faults: the scalar row loop in fp32 with one thing wrong, to show that the judge sees it.
 *
 * A fault is a switch in one of five places: who is seen, which key head is read, which keys of a
 * tile are pushed, with what reference, and how a row takes in a tile. Each names the arithmetic
 * that it must fail where it has an effect: under a looser one it may be legal.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 32
#include "at_row.h"
#include "oracle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault {
    LOST_RESCALE_U,
    LOST_RESCALE_L,
    LOST_KEY,
    TWICE_KEY,
    CAUSAL,
    LOST_RESCALE,
    HEAD_MODULO
};

static const struct at_mutant mutants[] = {
    [LOST_RESCALE_U] = {"lost-rescale-u",
                        "u keeps its old reference when tile N raises the maximum", "fp32"},
    [LOST_RESCALE_L] = {"lost-rescale-l",
                        "l keeps its old reference when tile N raises the maximum", "fp32"},
    [LOST_KEY] = {"lost-key", "key N is never pushed", "fp32"},
    [TWICE_KEY] = {"twice-key", "key N is pushed twice", "fp32"},
    [CAUSAL] = {"causal-off-by-one", "each row sees one key more on the right", "fp32"},
    [LOST_RESCALE] = {"lost-rescale", "l and u both keep their old reference", "fp32"},
    [HEAD_MODULO] = {"head-modulo", "query head h reads key head h mod Hkv", "fp32"},
};
#define MUTANTS ((int64_t)(sizeof mutants / sizeof *mutants))

const struct at_mutant *at_mutant_at(int64_t k)
{
    return k >= 0 && k < MUTANTS ? &mutants[k] : NULL;
}

/* -- "name@at,head=H" ------------------------------------------------------------------------ */

/* at, head -1: everywhere. */
struct planted {
    int64_t kind, at, head;
};

static bool parse_item(const char *item, struct planted *f)
{
    char *end;
    const char *digits = strchr(item, '=');
    long long n = strtoll(digits ? digits + 1 : item, &end, 10);
    if (*end || end == (digits ? digits + 1 : item) || n < 0)
        return false;
    if (!digits || strncmp(item, "tile=", 5) == 0 || strncmp(item, "key=", 4) == 0)
        f->at = n;
    else if (strncmp(item, "head=", 5) == 0)
        f->head = n;
    else
        return false;
    return true;
}

static bool parse(const char *text, struct planted *f, struct at_said *said)
{
    char copy[128], *rest;
    *f = (struct planted){-1, -1, -1};
    if (strlen(text) >= sizeof copy)
        return at_say(said, "fault %.40s...: too long", text);
    strcpy(copy, text);
    if ((rest = strchr(copy, '@')))
        *rest++ = 0;
    for (int64_t k = 0; k < MUTANTS; k++)
        if (strcmp(mutants[k].name, copy) == 0)
            f->kind = k;
    if (f->kind < 0)
        return at_say(said, "fault %s: unknown, expected one of `attest list faults`", copy);
    while (rest && *rest) {
        char *comma = strchr(rest, ',');
        if (comma)
            *comma = 0;
        if (!parse_item(rest, f))
            return at_say(said, "fault %s: \"%s\" found, expected N, tile=N, key=N or head=N", copy,
                          rest);
        rest = comma ? comma + 1 : NULL;
    }
    if (f->at < 0 && (f->kind == LOST_KEY || f->kind == TWICE_KEY))
        return at_say(said, "fault %s: which key? write %s@63", copy, copy);
    return true;
}

/* -- The faulty loop ------------------------------------------------------------------------- */

struct work {
    const struct at_attention *a;
    struct at_sizes z;
    struct planted f;
    int64_t b, h, i;
    float *q, *kv;
    struct at_row row, tile;
};

static bool hit(const struct work *w, int64_t kind, int64_t at)
{
    return w->f.kind == kind && (w->f.at < 0 || w->f.at == at) &&
           (w->f.head < 0 || w->f.head == w->h);
}

static int64_t key_head(const struct work *w)
{
    return hit(w, HEAD_MODULO, w->f.at) ? w->h % w->z.Hkv : w->h / w->z.group;
}

static float score(const struct work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    int64_t g = key_head(w);
    at_load_row(&a->k, at_key_offset(a, &a->k, w->b, g, j), &a->score.kscale, w->b, g, j, w->z.D,
                w->kv);
    return at_scored(a, at_dot(w->q, w->kv, w->z.D, a->plan.lanes), w->b, w->h, w->i, j);
}

static const float *value(const struct work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    int64_t g = key_head(w);
    if (at_drops(a) && !at_kept(a, &w->z, w->b, w->h, w->i, j))
        return NULL;
    at_load_row(&a->v, at_key_offset(a, &a->v, w->b, g, j), &a->score.vscale, w->b, g, j, w->z.Dv,
                w->kv);
    return w->kv;
}

static void take(struct work *w, int64_t number)
{
    struct at_row *x = &w->row, *t = &w->tile;
    float a = hit(w, LOST_RESCALE, number) ? 1 : at_worth(x->m, t->m);
    bool first = x->l == 0;
    x->m = t->m;
    x->l = at_take(!first && hit(w, LOST_RESCALE_L, number) ? 1 : a, x->l, t->l);
    for (int64_t c = 0; c < w->z.Dv; c++)
        x->u[c] = at_take(!first && hit(w, LOST_RESCALE_U, number) ? 1 : a, x->u[c], t->u[c]);
}

/* Two passes over the tile's keys, scores computed in both: slower than scalar, the same bits. */
static void tile(struct work *w, int64_t number, struct at_span x)
{
    float m = w->row.m;
    int64_t n = 0;
    for (int64_t j = x.lo; j < x.hi; j++)
        if (at_shown(w->a, w->b, w->h, w->i, j) && !hit(w, LOST_KEY, j)) {
            m = at_larger(m, score(w, j));
            n++;
        }
    if (n == 0)
        return;
    at_row_clear(&w->tile, m + 0, w->z.Dv);
    for (int64_t j = x.lo; j < x.hi; j++) {
        if (!at_shown(w->a, w->b, w->h, w->i, j) || hit(w, LOST_KEY, j))
            continue;
        float s = score(w, j);
        for (int64_t turn = hit(w, TWICE_KEY, j) ? 2 : 1; turn > 0; turn--)
            at_row_add(&w->tile, s, value(w, j), w->z.Dv);
    }
    take(w, number);
}

static void store(const struct work *w, const struct at_result *to)
{
    const struct at_attention *a = w->a;
    float gain = at_drops(a) ? at_rounded(at_gain(a->dropout.p)) : 1;
    int64_t at = at_row_offset(a, &to->out, w->b, w->h, w->i);
    for (int64_t c = 0; c < w->z.Dv; c++)
        at_store(&to->out, at + c * to->out.stride[3], at_out(w->row.u[c], w->row.l, gain));
    if (to->lse.data)
        at_store(&to->lse, at_row_offset(a, &to->lse, w->b, w->h, w->i),
                 at_lse(w->row.m, w->row.l));
}

static void run_row(struct work *w, const struct at_result *to)
{
    const struct at_attention *a = w->a;
    const struct at_view *sink = &a->score.sink;
    struct at_span seen = at_keys(a, &w->z, w->b, w->i);
    int64_t bc = a->plan.bc;
    at_row_clear(&w->row, -INFINITY, w->z.Dv);
    if (w->b >= 0 && w->i < at_rows_of(a, &w->z, w->b)) {
        at_load_row(&a->q, at_row_offset(a, &a->q, w->b, w->h, w->i), &a->score.qscale, w->b, w->h,
                    w->i, w->z.D, w->q);
        for (int64_t t = seen.lo / bc; seen.lo < seen.hi && t * bc < seen.hi; t++)
            tile(w, t, at_cut(seen, (struct at_span){t * bc, t * bc + bc}));
        if (sink->data)
            at_row_sink(&w->row, at_load(sink, at_offset(sink, 0, w->h, 0, 0)), w->z.Dv);
    }
    store(w, to);
}

bool at_mutant_run(const char *fault, const struct at_attention *a, const struct at_result *to,
                   struct at_said *said)
{
    struct at_attention wrong = *a;
    struct work w = {.a = &wrong, .z = at_sizes(a)};
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    int64_t wide = at_max(w.z.D, w.z.Dv);
    if (!parse(fault, &w.f, said))
        return false;
    if (a->plan.compute != AT_F32)
        return at_say(said, "fault %s: planted in fp32 alone, but the case needs fp64", fault);
    float *space = malloc((size_t)(w.z.D + wide + 2 * w.z.Dv) * sizeof *space);
    if (!space)
        return at_say(said, "fault %s: no memory", fault);
    w.q = space, w.kv = w.q + w.z.D, w.row.u = w.kv + wide, w.tile.u = w.row.u + w.z.Dv;
    for (int64_t t = 0; t < all.n; t++) {
        struct at_place p = at_place_of(a, all, t);
        w.b = p.b, w.h = p.h, w.i = p.i;
        wrong.score.right = a->score.right; /* one more where the fault is */
        if (hit(&w, CAUSAL, p.i) && a->score.right != AT_UNBOUNDED)
            wrong.score.right++;
        run_row(&w, to);
    }
    free(space);
    return true;
}

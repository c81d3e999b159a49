/* A case in the making: its extents and masks, its tensors painted in doubles.
 * SPDX-License-Identifier: MIT */
#include "generate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Sizes ----------------------------------------------------------------------------------- */

bool at_canvas_plan(struct at_canvas *x, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile)
{
    const int64_t *s = want->shape;
    struct at_view none = {0};
    *x = (struct at_canvas){.want = want,
                            .plot = plot,
                            .tile = tile,
                            .B = s[0],
                            .Hq = s[1],
                            .Hkv = s[2],
                            .Sq = s[3],
                            .Skv = s[4],
                            .D = s[5],
                            .Dv = s[6],
                            .corner = want->corner,
                            .left = want->left,
                            .right = want->right,
                            .has = {[AT_Q] = true, [AT_K] = true, [AT_V] = true}};
    x->a = at_plain(none, none, none, 1 / sqrt((double)x->D)); /* IEEE: one result everywhere */
    if (plot->by_tile)
        snprintf(x->name, sizeof x->name, "%s-tile%lld", plot->name, (long long)tile);
    else
        snprintf(x->name, sizeof x->name, "%s", plot->name);
    if (plot->size)
        plot->size(x);
    return !plot->unfit || !plot->unfit(x);
}

int64_t at_q_n(const struct at_canvas *x) { return x->B * x->Hq * x->Sq * x->D; }
int64_t at_k_n(const struct at_canvas *x) { return x->B * x->Hkv * x->Skv * x->D; }
int64_t at_v_n(const struct at_canvas *x) { return x->B * x->Hkv * x->Skv * x->Dv; }

/* Around the tile; a decode batch's go from Skv/64 to Skv. */
int64_t at_canvas_keys(const struct at_canvas *x, int64_t b)
{
    int64_t around[5] = {x->tile, 1, x->Skv, x->tile + 1, x->tile - 1};
    if (!x->has[AT_KV_LEN])
        return x->Skv;
    if (strcmp(x->plot->name, "workloads-batch") == 0)
        return at_max(1, x->Skv * (1 + b * 63 / (x->B - 1)) / 64);
    return at_min(at_max(around[b % 5], 0), x->Skv);
}

/* All, none, one, one too few, half of them. */
int64_t at_canvas_rows(const struct at_canvas *x, int64_t b)
{
    int64_t some[5] = {x->Sq, 0, 1, x->Sq - 1, (x->Sq + 1) / 2};
    return x->has[AT_Q_LEN] ? some[b % 5] : x->Sq;
}

/* Where row 0 stands: said, or the corner's. Said: the corner, key 0, a tile, one before key 0. */
static int64_t offset_of(const struct at_canvas *x, int64_t b)
{
    int64_t corner = at_canvas_keys(x, b) - at_canvas_rows(x, b);
    int64_t said[5] = {corner, 0, x->tile, -1, x->tile - 1};
    if (x->has[AT_OFFSETS])
        return said[b % 5];
    return x->corner == AT_BOTTOM_RIGHT ? corner : 0;
}

/* -- Paint ----------------------------------------------------------------------------------- */

struct at_brush at_canvas_brush(const struct at_canvas *x, int tensor)
{
    return (struct at_brush){x->want->seed, 16 * x->plot->number + (uint32_t)tensor};
}

void at_fill_normal(const struct at_canvas *x, double *to, int tensor, int64_t n)
{
    struct at_brush b = at_canvas_brush(x, tensor);
    for (int64_t t = 0; t < n; t++)
        to[t] = at_normal(b, (uint64_t)t);
}

void at_poison(struct at_canvas *x)
{
    for (int64_t r = 0; r < x->B * x->Hkv * x->Skv; r++) {
        if (r % x->Skv < x->kv_len[r / (x->Hkv * x->Skv)])
            continue;
        for (int64_t c = 0; c < x->D; c++)
            x->k[r * x->D + c] = (double)NAN;
        for (int64_t c = 0; c < x->Dv; c++)
            x->v[r * x->Dv + c] = (double)NAN;
    }
}

/* The descriptor of what every case has; fills look at nothing else of it. */
static void place(struct at_canvas *x)
{
    struct at_attention *a = &x->a;
    a->q = at_bhsd(x->q, AT_F64, x->B, x->Hq, x->Sq, x->D);
    a->k = at_bhsd(x->k, AT_F64, x->B, x->Hkv, x->Skv, x->D);
    a->v = at_bhsd(x->v, AT_F64, x->B, x->Hkv, x->Skv, x->Dv);
    a->score.left = x->left;
    a->score.right = x->right;
    a->score.offset = x->offset;
    a->score.q_len = x->q_len;
    a->score.kv_len = x->kv_len;
    for (int64_t b = 0; b < x->B; b++) {
        x->kv_len[b] = at_canvas_keys(x, b);
        x->q_len[b] = at_canvas_rows(x, b);
        x->offset[b] = offset_of(x, b);
    }
}

bool at_canvas_paint(struct at_canvas *x)
{
    double **number[AT_NUMBERS] = {&x->q,    &x->k,      &x->v,      &x->bias,  &x->alibi,
                                   &x->sink, &x->qscale, &x->kscale, &x->vscale};
    int64_t pairs = x->Sq * x->Skv, n[AT_NUMBERS] = {at_q_n(x),
                                                     at_k_n(x),
                                                     at_v_n(x),
                                                     x->has[AT_BIAS] ? x->Hq * pairs : 0,
                                                     x->Hq,
                                                     x->Hq,
                                                     x->B * x->Hq * x->Sq,
                                                     x->B * x->Hkv * x->Skv,
                                                     x->B * x->Hkv * x->Skv};
    int64_t masks = x->has[AT_MASK] ? x->B * pairs : 0;
    int64_t kept = x->has[AT_KEEP] ? x->B * x->Hq * pairs : 0, all = 0;
    for (int t = 0; t < AT_NUMBERS; t++)
        all += n[t];
    double *space = calloc((size_t)all, sizeof *space);
    int64_t *whole = calloc((size_t)(3 * x->B), sizeof *whole);
    x->mask = calloc((size_t)(masks + kept) + 1, 1);
    x->q = space;
    x->kv_len = whole;
    if (!space || !whole || !x->mask) {
        at_canvas_free(x);
        return false;
    }
    for (int t = 0; t < AT_NUMBERS; t++, space += n[t - 1])
        *number[t] = space;
    x->keep = x->mask + masks;
    x->offset = x->kv_len + x->B, x->q_len = x->offset + x->B;
    place(x);
    x->plot->fill(x);
    if (x->failed)
        at_canvas_free(x);
    return !x->failed;
}

void at_canvas_free(struct at_canvas *x)
{
    free(x->q);
    free(x->mask);
    free(x->kv_len);
    x->q = NULL, x->mask = NULL, x->kv_len = NULL;
}

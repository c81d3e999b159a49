/* Ordinary inputs, as ordinary.h says. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "ordinary.h"
#include "at_math.h"
#include "ref.h"
#include <stdlib.h>

static void *own(struct ordinary *x, int64_t bytes)
{
    void *y = calloc(1, (size_t)bytes + 1);
    if (!y || x->count == 24)
        abort();
    return x->owned[x->count++] = y;
}

/* A sum of twelve uniform numbers: near enough to normal for a test. */
static double normal(struct paint *r)
{
    double sum = 0;
    for (int k = 0; k < 12; k++)
        sum += paint_unit(r);
    return sum / 2;
}

static struct at_view tensor(struct ordinary *x, struct paint *r, enum at_dtype dtype, int64_t B,
                             int64_t H, int64_t S, int64_t D, double deviation)
{
    int64_t n = B * H * S * D;
    struct at_view y = at_bhsd(own(x, n * at_dtype_size(dtype)), dtype, B, H, S, D);
    for (int64_t k = 0; k < n; k++)
        paint_put(&y, k, deviation * normal(r));
    return y;
}

static int64_t *list(struct ordinary *x, int64_t n, int64_t from, int64_t step)
{
    int64_t *y = own(x, 8 * n);
    for (int64_t b = 0; b < n; b++)
        y[b] = from - b * step;
    return y;
}

static void hide(struct ordinary *x, struct paint *r, const struct ordinary_shape *s)
{
    struct at_score *c = &x->a.score;
    if (s->features & ORDINARY_CAUSAL) {
        c->right = 0;
        c->offset = list(x, s->B, s->Skv - s->Sq, 0);
    }
    if (s->features & ORDINARY_WINDOW)
        c->left = s->Skv / 4;
    if (s->features & ORDINARY_LENGTHS) {
        c->kv_len = list(x, s->B, s->Skv - 3, 5);
        c->q_len = list(x, s->B, s->Sq - 1, 1);
    }
    if (s->features & ORDINARY_MASK) {
        c->mask = at_bhsd(own(x, s->B * s->Sq * s->Skv), AT_U8, s->B, 1, s->Sq, s->Skv);
        for (int64_t k = 0; k < s->B * s->Sq * s->Skv; k++)
            ((uint8_t *)c->mask.data)[k] = !paint_one_in(r, 4);
        c->mask = at_repeated(c->mask, s->B, s->Hq, s->Sq, s->Skv);
    }
}

static void score(struct ordinary *x, struct paint *r, const struct ordinary_shape *s)
{
    struct at_score *c = &x->a.score;
    if (s->features & ORDINARY_BIAS)
        c->bias = at_repeated(tensor(x, r, AT_F32, 1, s->Hq, s->Sq, s->Skv, 1), s->B, s->Hq, s->Sq,
                              s->Skv);
    if (s->features & ORDINARY_ALIBI) {
        c->alibi = tensor(x, r, AT_F32, 1, s->Hq, 1, 1, 1);
        for (int64_t h = 0; h < s->Hq; h++)
            paint_put(&c->alibi, h, ldexp(1, -(int)(h % 8) - 2));
    }
    if (s->features & ORDINARY_SINK) {
        c->sink = tensor(x, r, AT_F32, 1, s->Hq, 1, 1, 2);
        paint_put(&c->sink, 0, 300); /* above every score */
    }
    if (s->features & ORDINARY_CAP)
        c->softcap = 3;
    if (s->features & ORDINARY_DESCALE) {
        c->kscale = tensor(x, r, AT_F32, s->B, s->Hkv, s->Skv, 1, 1);
        c->vscale = tensor(x, r, AT_F32, s->B, s->Hkv, s->Skv, 1, 1);
    }
    if (s->features & ORDINARY_DROPOUT) {
        x->a.dropout.p = 0.25;
        x->a.dropout.seed = paint_bits(r);
    }
}

/* Pages of 8 keys, in falling order, all sequences one after the other. */
static void page(struct ordinary *x, const struct ordinary_shape *s)
{
    int64_t width = s->Skv / 8, pages = s->B * width;
    int32_t *table = own(x, 4 * pages);
    x->a.k = at_pages_hnd(x->a.k.data, s->dtype, pages, s->Hkv, 8, s->D);
    x->a.v = at_pages_hnd(x->a.v.data, s->dtype, pages, s->Hkv, 8, s->Dv);
    for (int64_t n = 0; n < pages; n++)
        table[n] = (int32_t)(pages - 1 - n);
    x->a.pages = (struct at_pages){table, NULL, width};
    x->a.score.kv_len = list(x, s->B, 8 * width - 2, 0);
}

void ordinary_make(struct ordinary *x, uint64_t seed, struct ordinary_shape s)
{
    struct paint r = paint_from(seed, 77);
    *x = (struct ordinary){.count = 0};
    struct at_view q = tensor(x, &r, s.dtype, s.B, s.Hq, s.Sq, s.D, s.reach > 0 ? s.reach : 1);
    struct at_view k = tensor(x, &r, s.dtype, s.B, s.Hkv, s.Skv, s.D, 1);
    struct at_view v = tensor(x, &r, s.dtype, s.B, s.Hkv, s.Skv, s.Dv, 1);
    x->a = at_plain(q, k, v, 1 / sqrt((double)s.D));
    hide(x, &r, &s);
    score(x, &r, &s);
    if (s.features & ORDINARY_PAGES)
        page(x, &s);
    int64_t rows = s.B * s.Hq * s.Sq;
    x->got.out =
        at_bhsd(own(x, rows * s.Dv * at_dtype_size(s.dtype)), s.dtype, s.B, s.Hq, s.Sq, s.Dv);
    x->got.lse = at_bhsd(own(x, rows * 4), AT_F32, s.B, s.Hq, s.Sq, 1);
}

void ordinary_free(struct ordinary *x)
{
    for (int k = 0; k < x->count; k++)
        free(x->owned[k]);
    x->count = 0;
}

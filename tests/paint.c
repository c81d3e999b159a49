/* Paints problems (paint.h). Memory is 0xff until it is painted: gaps between strides, pages that
 * no key needs and rows of no sequence are NaN from the start. SPDX-License-Identifier: MIT */
#define AT_BITS 64 /* at_store rounds once, from double */
#include "paint.h"
#include "at_math.h"
#include "ref.h"
#include <stdlib.h>

/* -- Drawing ----------------------------------------------------------------------------------- */

/* Streams: a field's own number, or one of these plus the tensor's. */
enum { SIZES = 100, LAYOUT = 200, VALUES = 300, DTYPE = 400, TABLES = 500 };
enum tensor { Q, K, V, BIAS, MASK, ALIBI, SINK, QSCALE, KSCALE, VSCALE, KEEP, OUT, LSE };

/* Does the field occur? Each about once in n. */
static bool occurs(struct problem *p, uint32_t field, int64_t n)
{
    struct paint r = paint_from(p->seed, field);
    bool yes = paint_one_in(&r, n) || (p->options.with & field);
    yes = yes && !(p->options.without & field);
    p->fields |= yes ? field : 0;
    return yes;
}

static struct paint stream(const struct problem *p, int what)
{
    return paint_from(p->seed, (uint64_t)what + ((uint64_t)1 << 27));
}

static enum at_dtype draw_dtype(const struct problem *p, enum tensor t)
{
    struct paint r = stream(p, DTYPE + (int)t);
    enum at_dtype narrow = (enum at_dtype)paint_int(&r, AT_F32, AT_F8_E5M2);
    bool wide = paint_one_in(&r, 2);
    if ((p->fields & PAINT_NARROW) && !(wide && (p->fields & PAINT_WIDE)))
        return narrow;
    return wide && (p->fields & PAINT_WIDE) ? AT_F64 : AT_F32;
}

/* What values a tensor gets: size*unit; one in `zero` a zero of either sign, ... 0: never. */
struct values {
    double size;
    int64_t zero, hide, special;
};

static double draw_value(struct paint *r, struct values how)
{
    double x = how.size * paint_unit(r);
    const double strange[3] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    if (how.zero && paint_one_in(r, how.zero))
        x = paint_one_in(r, 2) ? 0.0 : -0.0;
    if (how.hide && paint_one_in(r, how.hide))
        x = -(double)INFINITY;
    if (how.special && paint_one_in(r, how.special))
        x = strange[paint_int(r, 0, 2)];
    return x;
}

/* Memory for a tensor: contiguous, or in any order with gaps, turned round, repeated. */
static struct at_view make_view(struct problem *p, enum tensor t, enum at_dtype dtype,
                                const int64_t dim[4], bool input)
{
    struct paint r = stream(p, LAYOUT + (int)t);
    struct at_view x = {.dtype = dtype};
    int order[4] = {3, 2, 1, 0};
    bool plain = !(p->fields & PAINT_STRIDES);
    for (int k = 3; k > 0 && !plain; k--) { /* the fastest first */
        int other = (int)paint_int(&r, 0, k), swap = order[k];
        order[k] = order[other], order[other] = swap;
    }
    int64_t size = plain || paint_one_in(&r, 2) ? 1 : 2, base = 0;
    for (int k = 0; k < 4; k++) {
        int d = order[k];
        x.dim[d] = dim[d];
        if (!plain && input && paint_one_in(&r, 6))
            continue; /* stride 0 */
        x.stride[d] = size;
        size *= at_max(dim[d], 1);
        if (!plain && paint_one_in(&r, 3))
            size += paint_int(&r, 1, 2);
        if (!plain && dim[d] > 0 && paint_one_in(&r, 6)) {
            base += (dim[d] - 1) * x.stride[d];
            x.stride[d] = -x.stride[d];
        }
    }
    char *memory = problem_own(p, (size_t)(size * at_dtype_size(dtype)));
    x.data = memory + base * at_dtype_size(dtype);
    return x;
}

static void fill(const struct problem *p, enum tensor t, const struct at_view *x, struct values how)
{
    struct paint r = stream(p, VALUES + (int)t);
    if (x->dtype == AT_F8_E4M3)
        how.hide = 0; /* it has no infinity */
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t h = 0; h < x->dim[1]; h++)
            for (int64_t s = 0; s < x->dim[2]; s++)
                for (int64_t c = 0; c < x->dim[3]; c++)
                    paint_put(x, at_offset(x, b, h, s, c), draw_value(&r, how));
}

static struct at_view draw_tensor(struct problem *p, enum tensor t, const int64_t dim[4],
                                  struct values how)
{
    enum at_dtype dtype = t == MASK || t == KEEP ? AT_U8 : draw_dtype(p, t);
    struct at_view x = make_view(p, t, dtype, dim, true);
    fill(p, t, &x, how);
    return x;
}

/* -- Sizes and sequences ----------------------------------------------------------------------- */

static int64_t draw_tile(const struct problem *p)
{
    static const int64_t tile[] = {1, 2, 3, 4, 7, 8, 16, 64};
    struct paint r = stream(p, SIZES);
    return tile[paint_int(&r, 0, 7)];
}

static void draw_sizes(struct problem *p)
{
    struct paint r = stream(p, SIZES + 1);
    int64_t most = p->options.most ? p->options.most : 18, tile = at_min(draw_tile(p), 8);
    const int64_t near[] = {1,           2, 3, 5, 7, 11, 13, tile, tile + 1, at_max(1, tile - 1),
                            2 * tile + 1};
    const int64_t group = paint_int(&r, 2, 3);
    p->B = paint_int(&r, 1, 3);
    p->Hkv = paint_int(&r, 1, 2);
    p->Hq = p->Hkv * (p->fields & PAINT_GROUPS ? group : 1);
    p->Sq = at_min(most, near[paint_int(&r, 0, 4)]);
    p->Skv = at_min(most, near[paint_int(&r, 0, 10)]);
    p->D = at_min(most, near[paint_int(&r, 0, 10)]);
    p->Dv = at_min(most, near[paint_int(&r, 0, 5)]);
    if (p->fields & PAINT_LATENT)
        p->Dv = at_min(p->D, p->Dv);
    if (p->fields & PAINT_ZERO)
        *(int64_t *[]){&p->B, &p->Sq, &p->Skv}[paint_int(&r, 0, 2)] = 0;
    if (most < 4)
        p->B = at_min(p->B, 1), p->Hq /= p->Hkv, p->Hkv = 1;
}

static int64_t *draw_lengths(struct problem *p, struct paint *r, int64_t most)
{
    int64_t *len = problem_own(p, (size_t)(p->B + 1) * sizeof *len);
    for (int64_t b = 0; b < p->B; b++)
        len[b] = paint_one_in(r, 6) ? 0 : paint_int(r, 0, most);
    return len;
}

/* Sequences side by side, with gaps; returns how many rows there are in all. */
static int64_t draw_starts(struct problem *p, struct paint *r, const int64_t *len,
                           const int64_t **start)
{
    int64_t end = 0, *x = problem_own(p, (size_t)(p->B + 1) * sizeof *x);
    for (int64_t b = 0; b < p->B; b++) {
        x[b] = end + (paint_one_in(r, 3) ? paint_int(r, 1, 2) : 0);
        end = x[b] + len[b];
    }
    *start = x;
    return end + (paint_one_in(r, 2) ? paint_int(r, 1, 2) : 0);
}

static int64_t longest(const int64_t *len, int64_t B)
{
    int64_t most = 0;
    for (int64_t b = 0; b < B; b++)
        most = len[b] > most ? len[b] : most;
    return most;
}

/* Extents of q, packed or not. */
static void draw_queries(struct problem *p, int64_t dim[4])
{
    struct at_score *s = &p->a.score;
    struct paint r = stream(p, TABLES);
    int64_t dense[4] = {p->B, p->Hq, p->Sq, p->D};
    if (p->fields & (PAINT_Q_LEN | PAINT_Q_RAGGED))
        s->q_len = draw_lengths(p, &r, p->Sq);
    if (p->fields & PAINT_Q_RAGGED) {
        dense[0] = 1;
        dense[2] = draw_starts(p, &r, s->q_len, &s->q_start);
        s->sequences = p->B;
        p->Sq = longest(s->q_len, p->B);
    }
    memcpy(dim, dense, sizeof dense);
}

/* Extents of k and a table in which no page is where a sequence would have it; unused: -1. */
static void draw_pages(struct problem *p, int64_t dim[4])
{
    struct at_pages *g = &p->a.pages;
    struct paint r = stream(p, TABLES + 1);
    int64_t size = paint_int(&r, 1, 4), width = (p->Skv + size - 1) / size + paint_int(&r, 0, 2);
    int64_t pages = p->B * width + paint_int(&r, 1, 3), used = 0;
    int32_t *order = problem_own(p, (size_t)pages * sizeof *order);
    int32_t *table = problem_own(p, (size_t)(p->B * width + 1) * sizeof *table);
    int32_t *indptr = problem_own(p, (size_t)(p->B + 1) * sizeof *indptr);
    bool list = paint_one_in(&r, 2);
    for (int64_t n = 0; n < pages; n++) {
        int64_t other = paint_int(&r, 0, n);
        order[n] = order[other], order[other] = (int32_t)n;
    }
    for (int64_t b = 0; b < p->B; b++) {
        int64_t need = (p->a.score.kv_len[b] + size - 1) / size, spare = paint_int(&r, 0, 1);
        int64_t room = list ? at_min(need + spare, width) : width;
        indptr[b] = (int32_t)used;
        for (int64_t n = 0; n < room; n++)
            table[used + n] = n < need ? order[b * width + n] : -1;
        used += room;
    }
    indptr[p->B] = (int32_t)used;
    *g = (struct at_pages){table, list ? indptr : NULL, list ? -7 : width};
    dim[0] = pages, dim[2] = size;
}

static void draw_keys(struct problem *p, int64_t dim[4])
{
    struct at_score *s = &p->a.score;
    struct paint r = stream(p, TABLES + 2);
    int64_t dense[4] = {p->B, p->Hkv, p->Skv, p->D};
    if (p->fields & (PAINT_KV_LEN | PAINT_KV_RAGGED | PAINT_PAGED))
        s->kv_len = draw_lengths(p, &r, p->Skv);
    if (p->fields & PAINT_KV_RAGGED) {
        dense[0] = 1;
        dense[2] = draw_starts(p, &r, s->kv_len, &s->kv_start);
    }
    if (p->fields & PAINT_PAGED)
        draw_pages(p, dense);
    if (p->fields & (PAINT_KV_RAGGED | PAINT_PAGED))
        p->Skv = longest(s->kv_len, p->B);
    memcpy(dim, dense, sizeof dense);
}

/* -- Scores, dropout, plan --------------------------------------------------------------------- */

/* Is it this one of four that is huge? */
static bool huge(const struct problem *p, int64_t which)
{
    struct paint r = stream(p, VALUES + 53);
    return (p->fields & PAINT_HUGE) && paint_int(&r, 0, 3) == which;
}

static void draw_numbers(struct problem *p)
{
    struct at_score *s = &p->a.score;
    struct paint r = stream(p, VALUES + 50);
    const double scale[] = {-0.5, 0, 1, 0.1, -1 / 3.0};
    int64_t *offset = problem_own(p, (size_t)(p->B + 1) * sizeof *offset);
    s->scale = p->fields & PAINT_SCALE ? scale[paint_int(&r, 0, 4)] : 1 / sqrt((double)p->D);
    s->softcap = p->fields & PAINT_SOFTCAP ? 0.25 + 20 * fabs(paint_unit(&r)) : 0;
    s->left = s->right = AT_UNBOUNDED;
    const double far[] = {0x1p-160, 0x1p140, 0x1p-1000, 0x1p1000, 0x1p-140, 0x1p120};
    if (huge(p, 3) && s->softcap > 0)
        s->softcap = far[paint_int(&r, 4, 5)];
    else if (huge(p, 3))
        s->scale = far[paint_int(&r, 0, 5)];
    if (p->fields & PAINT_WINDOW) {
        s->left = paint_one_in(&r, 2) ? AT_UNBOUNDED : paint_int(&r, 0, p->Skv);
        s->right = paint_one_in(&r, 4) ? AT_UNBOUNDED : paint_int(&r, 0, p->Skv) / 2;
        s->right = paint_one_in(&r, 2) ? 0 : s->right;
    }
    for (int64_t b = 0; b < p->B; b++)
        offset[b] = paint_one_in(&r, 2) ? p->Skv - p->Sq : paint_int(&r, -p->Sq - 1, p->Skv + 1);
    s->offset = p->fields & PAINT_OFFSET ? offset : NULL;
}

static void draw_optional(struct problem *p)
{
    struct at_score *s = &p->a.score;
    struct paint r = stream(p, VALUES + 51);
    const int64_t full[4] = {p->B, p->Hq, p->Sq, p->Skv}, head[4] = {1, p->Hq, 1, 1};
    const int64_t query[4] = {p->B, p->Hq, p->Sq, 1}, key[4] = {p->B, p->Hkv, p->Skv, 1};
    const struct values some = {1, 4, 0, 0}, scales = {1.5, 0, 0, 0};
    const struct values any = {huge(p, 2) ? 0x1.fffffep127 : 2, 8, 5, 0};
    bool drawn = paint_one_in(&r, 2);
    const double p_drop[] = {0.1, 0.25, 0.5, 0.9};
    if (p->fields & PAINT_MASK)
        s->mask = draw_tensor(p, MASK, full, some);
    if (p->fields & PAINT_BIAS)
        s->bias = draw_tensor(p, BIAS, full, any);
    if (p->fields & PAINT_ALIBI)
        s->alibi = draw_tensor(p, ALIBI, head, some);
    if (p->fields & PAINT_SINK)
        s->sink = draw_tensor(p, SINK, head, any);
    if ((p->fields & PAINT_DESCALE) && !paint_one_in(&r, 3))
        s->qscale = draw_tensor(p, QSCALE, query, scales);
    if ((p->fields & PAINT_DESCALE) && !paint_one_in(&r, 3))
        s->kscale = draw_tensor(p, KSCALE, key, scales);
    if ((p->fields & PAINT_DESCALE) && !paint_one_in(&r, 3))
        s->vscale = draw_tensor(p, VSCALE, key, scales);
    if (!(p->fields & PAINT_DROPOUT))
        return;
    p->a.dropout = (struct at_dropout){
        p_drop[paint_int(&r, 0, 3)], paint_bits(&r), paint_bits(&r), {.data = NULL}};
    if (!drawn)
        p->a.dropout.keep = draw_tensor(p, KEEP, full, some);
}

static void draw_plan(struct problem *p)
{
    struct at_plan *n = &p->a.plan;
    struct paint r = stream(p, VALUES + 52);
    int64_t *cut = problem_own(p, 8 * sizeof *cut), splits = paint_int(&r, 2, 8);
    bool points = paint_one_in(&r, 2), wide = paint_one_in(&r, 6);
    for (int64_t k = 0; k < 8; k++) { /* ascending, some equal, some past the end */
        cut[k] = paint_int(&r, 0, p->Skv + 1);
        for (int64_t t = k; t > 0 && cut[t] < cut[t - 1]; t--) {
            int64_t x = cut[t];
            cut[t] = cut[t - 1], cut[t - 1] = x;
        }
    }
    if (p->fields & PAINT_SPLITS) {
        n->splits = splits;
        n->cut = points ? cut : NULL;
        n->merge = (enum at_order)paint_int(&r, AT_IN_ORDER, AT_RANDOM);
        n->merge_seed = paint_bits(&r);
    }
    n->threads = 1;
    if (p->fields & PAINT_PLAN) {
        n->bc = draw_tile(p);
        n->br = paint_int(&r, 0, 5);
        n->lanes = (int64_t)1 << paint_int(&r, 0, 6);
        n->compute = wide && !(p->options.without & PAINT_WIDE) ? AT_F64 : AT_DEFAULT;
    }
}

/* -- The problem ------------------------------------------------------------------------------- */

/* How often each field occurs: about once in `in`. */
const struct paint_chance paint_chances[] = {
    {PAINT_MASK, 4, "mask"},         {PAINT_BIAS, 3, "bias"},           {PAINT_ALIBI, 4, "alibi"},
    {PAINT_SINK, 4, "sink"},         {PAINT_SOFTCAP, 4, "softcap"},     {PAINT_WINDOW, 3, "window"},
    {PAINT_OFFSET, 2, "offset"},     {PAINT_Q_LEN, 5, "q_len"},         {PAINT_KV_LEN, 4, "kv_len"},
    {PAINT_Q_RAGGED, 6, "q_ragged"}, {PAINT_KV_RAGGED, 6, "kv_ragged"}, {PAINT_PAGED, 5, "paged"},
    {PAINT_DROPOUT, 5, "dropout"},   {PAINT_DESCALE, 4, "descale"},     {PAINT_GROUPS, 3, "groups"},
    {PAINT_STRIDES, 2, "strides"},   {PAINT_LATENT, 8, "latent"},       {PAINT_NARROW, 2, "narrow"},
    {PAINT_WIDE, 5, "wide"},         {PAINT_SCALE, 3, "scale"},         {PAINT_LARGE, 5, "large"},
    {PAINT_SPECIAL, 10, "special"},  {PAINT_PLAN, 2, "plan"},           {PAINT_SPLITS, 3, "splits"},
    {PAINT_OUT, 3, "out"},           {PAINT_ZERO, 25, "zero"},          {PAINT_HUGE, 12, "huge"}};
const int paint_chances_n = sizeof paint_chances / sizeof *paint_chances;

static void draw_results(struct problem *p, const int64_t rows[4])
{
    struct paint r = stream(p, DTYPE + 50);
    const int64_t out[4] = {rows[0], rows[1], rows[2], p->Dv};
    const int64_t lse[4] = {rows[0], rows[1], rows[2], 1};
    bool any = p->fields & PAINT_OUT, wide = p->fields & PAINT_WIDE;
    enum at_dtype dtype = wide ? AT_F64 : AT_F32;
    p->results = p->count;
    p->got.out = make_view(p, OUT, any ? (enum at_dtype)paint_int(&r, AT_F64, AT_F8_E5M2) : dtype,
                           out, false);
    p->got.lse =
        make_view(p, LSE, any ? (enum at_dtype)paint_int(&r, AT_F64, AT_BF16) : dtype, lse, false);
    if (any && paint_one_in(&r, 4))
        p->got.lse.data = NULL;
}

static void draw_values(struct problem *p, const int64_t queries[4], const int64_t keys[4])
{
    const int64_t values[4] = {keys[0], keys[1], keys[2], p->Dv};
    int64_t special = p->fields & PAINT_SPECIAL ? 25 : 0;
    struct values plain = {2, 12, 0, special};
    struct paint r = stream(p, LAYOUT + 50);
    plain.size = huge(p, 0) ? 0x1.8p127 : 2;
    p->a.v = make_view(p, V, draw_dtype(p, V), values, true);
    fill(p, V, &p->a.v, plain);
    plain.size = 2;
    p->a.k = make_view(p, K, draw_dtype(p, K), keys, true);
    fill(p, K, &p->a.k, plain);
    if (p->fields & PAINT_LATENT) {
        int64_t column = paint_int(&r, 0, p->D - p->Dv);
        p->a.v = p->a.k;
        p->a.v.dim[3] = p->Dv;
        p->a.v.data = (char *)p->a.k.data + column * p->a.k.stride[3] * at_dtype_size(p->a.k.dtype);
    }
    plain.size = huge(p, 1) ? 0x1p126 : p->fields & PAINT_LARGE ? 200 : 2;
    p->a.q = make_view(p, Q, draw_dtype(p, Q), queries, true);
    fill(p, Q, &p->a.q, plain);
}

void paint_problem(struct problem *p, uint64_t seed, struct paint_options options)
{
    int64_t queries[4], keys[4];
    *p = (struct problem){.seed = seed, .options = options};
    for (int k = 0; k < paint_chances_n; k++)
        occurs(p, paint_chances[k].field, paint_chances[k].in);
    if (p->fields & PAINT_PAGED)
        p->fields &= ~(uint32_t)PAINT_KV_RAGGED;
    draw_sizes(p);
    draw_queries(p, queries);
    draw_keys(p, keys);
    draw_values(p, queries, keys);
    draw_numbers(p);
    draw_optional(p);
    draw_plan(p);
    draw_results(p, queries);
}

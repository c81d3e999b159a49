/* A random problem from a seed. All random numbers are drawn whatever the features, so that
 * dropping one leaves the rest of the problem alone. SPDX-License-Identifier: MIT */
#include "at_math.h"
#include "bits.h"
#include <stdlib.h>

struct bits_block {
    struct bits_block *next;
    uint64_t pad; /* 16 bytes before the data */
};

struct maker {
    struct bits_problem *p;
    unsigned features;
    uint64_t seed;
};

static uint64_t draw(struct maker *m)
{
    uint64_t z = m->seed += 0x9e3779b97f4a7c15u; /* SplitMix64 [Steele14] */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(struct maker *m, int64_t n) { return (int64_t)(draw(m) % (uint64_t)n); }
static double unit(struct maker *m) { return (double)(draw(m) >> 11) * 0x1p-53; }

/* Is the feature there? with chance one in n; the draw happens anyway. */
static bool has(struct maker *m, unsigned feature, int64_t n)
{
    bool yes = below(m, n) == 0;
    return yes && (m->features & feature);
}

#define PICK(m, list) (list)[below(m, (int64_t)(sizeof(list) / sizeof *(list)))]

static void *block(struct maker *m, int64_t bytes)
{
    struct bits_block *x = calloc(1, sizeof *x + (size_t)bytes);
    if (!x)
        abort();
    x->next = m->p->blocks;
    m->p->blocks = x;
    return x + 1;
}

void bits_free(struct bits_problem *p)
{
    while (p->blocks) {
        struct bits_block *x = p->blocks;
        p->blocks = x->next;
        free(x);
    }
}

/* -- Tensors ---------------------------------------------------------------------------------- */

static int64_t size_of(enum at_dtype dtype)
{
    return dtype == AT_F64 || dtype == AT_I64    ? 8
           : dtype == AT_F32 || dtype == AT_I32  ? 4
           : dtype == AT_F16 || dtype == AT_BF16 ? 2
                                                 : 1;
}

static void put(const struct at_view *x, int64_t at, double y)
{
    unsigned char *data = (unsigned char *)x->data + at * size_of(x->dtype);
    float single = (float)y;
    if (x->dtype == AT_F64) {
        memcpy(data, &y, 8);
    } else if (x->dtype == AT_F32) {
        memcpy(data, &single, 4);
    } else {
        uint32_t bits = at_encode(y, at_narrow_of(x->dtype));
        memcpy(data, &bits, (size_t)size_of(x->dtype)); /* little-endian machines */
    }
}

static double normal(struct maker *m)
{
    double sum = -6;
    for (int k = 0; k < 12; k++)
        sum += unit(m);
    return sum;
}

/* What stands in a poisoned tensor here and there. */
static double strange(struct maker *m)
{
    static const double list[] = {NAN,     INFINITY, -INFINITY, 0.0,  -0.0,    0x1p-149, -0x1p-140,
                                  1e-30,   -1e-38,   30,        -80,  0x1p60,  -0x1p60,  -0.0,
                                  0x1p-74, -0x1p-75, 0x1p-1074, -0.0, 0x1p-30, 100};
    return PICK(m, list);
}

/* kind 0: numbers about 1; 1: and one strange one in 40; 2: half of them zeros; 3: magnitudes over
 * the range of exponents; 4: strange ones, rarely. */
static void paint(struct maker *m, const struct at_view *x, int kind, double spread)
{
    int64_t n = 1;
    for (int k = 0; k < 4; k++)
        n *= x->stride[k] ? x->dim[k] : 1;
    for (int64_t t = 0; t < n; t++) {
        double y = spread * normal(m), odd = strange(m);
        int64_t die = below(m, 400), e = below(m, 40) - 30;
        if ((kind == 1 && die < 10) || (kind == 4 && die < 1))
            y = odd;
        if (kind == 2 && die < 200)
            y = die < 100 ? 0.0 : -0.0;
        if (kind == 3)
            y = ldexp(y, (int)e * (x->dtype == AT_F32 || x->dtype == AT_F64 ? 3 : 1));
        put(x, t, y);
    }
}

static enum at_dtype a_dtype(struct maker *m)
{
    static const enum at_dtype list[] = {AT_F32, AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2, AT_F32};
    enum at_dtype one = PICK(m, list);
    bool wide = has(m, BITS_DTYPE, 12);
    return !(m->features & BITS_DTYPE) ? AT_F32 : wide ? AT_F64 : one;
}

static struct at_view tensor(struct maker *m, int order, enum at_dtype dtype, int64_t B, int64_t H,
                             int64_t S, int64_t D)
{
    struct at_view x = order ? at_bshd(NULL, dtype, B, S, H, D) : at_bhsd(NULL, dtype, B, H, S, D);
    x.data = block(m, B * H * S * D * size_of(dtype));
    return x;
}

/* A painted tensor whose extents of chance are repeated; absent without the feature. */
static struct at_view some(struct maker *m, bool there, enum at_dtype dtype, int64_t B, int64_t H,
                           int64_t S, int64_t D, int kind, double spread)
{
    int64_t to[4] = {B, H, S, D};
    for (int k = 0; k < 4; k++)
        to[k] = below(m, 3) == 0 ? at_min(to[k], 1) : to[k];
    if (!there)
        return (struct at_view){0};
    struct at_view x = tensor(m, (int)below(m, 2), dtype, to[0], to[1], to[2], to[3]);
    paint(m, &x, kind, spread);
    return at_repeated(x, B, H, S, D);
}

static struct at_view marks(struct maker *m, bool there, struct at_sizes z)
{
    struct at_view x = some(m, there, AT_U8, z.B, z.Hq, z.Sq, z.Skv, 0, 1);
    int64_t style = below(m, 3);
    if (!there)
        return x;
    unsigned char *data = x.data;
    int64_t n = 1;
    for (int k = 0; k < 4; k++)
        n *= x.stride[k] ? x.dim[k] : 1;
    for (int64_t t = 0; t < n; t++) /* a few hidden; most hidden; long runs */
        data[t] = style == 0 ? below(m, 8) != 0 : style == 1 ? below(m, 8) == 0 : t / 23 % 2 != 0;
    return x;
}

/* -- Sequences --------------------------------------------------------------------------------- */

static int64_t *lengths(struct maker *m, int64_t B, int64_t most)
{
    int64_t *len = block(m, B * 8);
    for (int64_t b = 0; b < B; b++)
        len[b] = below(m, 3) == 0 ? most : below(m, most + 1);
    return len;
}

static int64_t *starts(struct maker *m, const int64_t *len, int64_t B, int64_t *total)
{
    int64_t *start = block(m, B * 8);
    *total = below(m, 2);
    for (int64_t b = 0; b < B; b++) {
        start[b] = *total;
        *total += len[b] + below(m, 2) * below(m, 3);
    }
    return start;
}

/* Pages in a random order, as a table or as a list; entries without use are -1. */
static void paged(struct maker *m, struct at_attention *a, int64_t B, int64_t Skv, int order)
{
    int64_t size = 1 + below(m, 20), width = (Skv + size - 1) / size + 1, n = B * width, used = 0;
    int32_t *table = block(m, n * 4), *indptr = block(m, (B + 1) * 4);
    bool list = below(m, 2) == 0;
    n += n % 7 == 0; /* 7 k permutes the pages */
    for (int64_t b = 0; b < B; b++) {
        int64_t need = (a->score.kv_len[b] + size - 1) / size, first = list ? used : b * width;
        for (int64_t t = 0; t < (list ? need : width); t++)
            table[first + t] = t < need ? (int32_t)(used++ * 7 % n) : -1;
        indptr[b + 1] = (int32_t)used;
    }
    a->pages.table = table;
    a->pages.indptr = list ? indptr : NULL;
    a->pages.width = width;
    a->k = tensor(m, order, a->k.dtype, n, a->k.dim[1], size, a->k.dim[3]);
    a->v = tensor(m, order, a->v.dtype, n, a->v.dim[1], size, a->v.dim[3]);
}

struct shape {
    int64_t B, Hkv, group, Sq, Skv, D, Dv;
};

static struct shape a_shape(struct maker *m)
{
    static const int64_t rows[] = {1, 1, 2, 3, 4, 5, 15, 16, 17, 33, 40, 0};
    static const int64_t keys[] = {1, 2, 3, 15, 16, 17, 31, 63, 64, 65, 100, 130, 0};
    static const int64_t columns[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 24, 32, 33, 48};
    static const int64_t groups[] = {1, 1, 2, 3, 4, 5, 8};
    struct shape x = {1 + below(m, 3), 1 + below(m, 2),  PICK(m, groups), PICK(m, rows),
                      PICK(m, keys),   PICK(m, columns), PICK(m, columns)};
    if (!(m->features & BITS_BATCH))
        x.B = x.Hkv = x.group = 1;
    if (!(m->features & BITS_SIZE))
        x.Sq = at_min(x.Sq, 2), x.Skv = at_min(x.Skv, 4), x.D = x.Dv = 1;
    return x;
}

static void place(struct maker *m, struct at_attention *a, struct shape x)
{
    struct at_score *s = &a->score;
    bool ragged_q = has(m, BITS_LAYOUT, 4), ragged_kv = has(m, BITS_LAYOUT, 4);
    bool pages = has(m, BITS_LAYOUT, 4) && !ragged_kv;
    bool q_len = has(m, BITS_LENGTHS, 4), kv_len = has(m, BITS_LENGTHS, 3);
    int order = (int)below(m, 2) && (m->features & BITS_LAYOUT), kind = (int)below(m, 9);
    static const double list[] = {0.3, 1, 1, 4, 30};
    double spread = PICK(m, list);
    int64_t T = x.Sq, N = x.Skv;
    enum at_dtype dtype[3] = {a_dtype(m), a_dtype(m), a_dtype(m)};
    if (q_len || ragged_q)
        s->q_len = lengths(m, x.B, x.Sq);
    if (kv_len || ragged_kv || pages)
        s->kv_len = lengths(m, x.B, x.Skv);
    if (ragged_q)
        s->q_start = starts(m, s->q_len, x.B, &T);
    if (ragged_kv)
        s->kv_start = starts(m, s->kv_len, x.B, &N);
    s->sequences = x.B;
    a->q = tensor(m, order, dtype[0], ragged_q ? 1 : x.B, x.Hkv * x.group, T, x.D);
    a->k = tensor(m, order, dtype[1], ragged_kv ? 1 : x.B, x.Hkv, N, x.D);
    a->v = tensor(m, order, dtype[2], ragged_kv ? 1 : x.B, x.Hkv, N, x.Dv);
    if (pages)
        paged(m, a, x.B, x.Skv, order);
    kind = (m->features & BITS_POISON) && kind < 5 ? kind : 0;
    paint(m, &a->q, kind == 1 ? 4 : kind, spread);
    paint(m, &a->k, kind == 1 ? 4 : kind, 1);
    paint(m, &a->v, kind, 1);
}

/* -- The score, the plan, the result ----------------------------------------------------------- */

static void score(struct maker *m, struct at_attention *a)
{
    struct at_score *s = &a->score;
    struct at_sizes z = at_sizes(a);
    int64_t *offset = block(m, z.B * 8), shift = below(m, 40) - 20;
    bool window = has(m, BITS_WINDOW, 2), left = has(m, BITS_WINDOW, 3);
    int64_t far[2] = {below(m, 50), below(m, 2) * below(m, 20)};
    bool odd = has(m, BITS_POISON, 6);
    s->scale = (unit(m) - 0.2) * (below(m, 5) ? 1 : 20);
    for (int64_t b = 0; b < z.B; b++)
        offset[b] = below(m, 2) ? z.Skv - z.Sq : shift;
    if (window)
        s->right = far[1], s->offset = offset;
    if (left)
        s->left = far[0];
    s->softcap = has(m, BITS_SOFTCAP, 4) ? 1 + 20 * unit(m) : 0;
    s->mask = marks(m, has(m, BITS_MASK, 4), z);
    s->bias = some(m, has(m, BITS_BIAS, 4), a_dtype(m), z.B, z.Hq, z.Sq, z.Skv, odd ? 1 : 0, 3);
    s->alibi = some(m, has(m, BITS_ALIBI, 4), a_dtype(m), 1, z.Hq, 1, 1, 0, 0.2);
    s->sink = some(m, has(m, BITS_SINK, 3), a_dtype(m), 1, z.Hq, 1, 1, odd ? 1 : 0, 3);
    s->qscale = some(m, has(m, BITS_DESCALE, 6), a_dtype(m), z.B, z.Hq, z.Sq, 1, 0, 1);
    s->kscale = some(m, has(m, BITS_DESCALE, 6), a_dtype(m), z.B, z.Hkv, z.Skv, 1, 0, 1);
    s->vscale = some(m, has(m, BITS_DESCALE, 6), a_dtype(m), z.B, z.Hkv, z.Skv, 1, 0, 1);
    bool drops = has(m, BITS_DROPOUT, 4), drawn = below(m, 2) == 0;
    a->dropout.p = drops ? 0.5 * unit(m) + 0.05 : 0;
    a->dropout.seed = draw(m), a->dropout.offset = draw(m);
    a->dropout.keep = marks(m, drops && !drawn, z);
}

static void plan(struct maker *m, struct at_attention *a)
{
    static const int64_t tiles[] = {0, 1, 2, 3, 7, 16, 20, 64, 100, 1000};
    static const int64_t chains[] = {0, 1, 1, 2, 4, 16, 16, 16, 64};
    static const int threads[] = {1, 2, 3, 7, 16};
    struct at_plan *p = &a->plan;
    struct at_sizes z = at_sizes(a);
    int64_t br = PICK(m, tiles), bc = PICK(m, tiles), lanes = PICK(m, chains);
    int64_t splits = below(m, 6), *cut = block(m, 4 * 8), order = below(m, 4);
    int many = PICK(m, threads);
    bool wide = has(m, BITS_DTYPE, 4), cuts = has(m, BITS_SPLITS, 2);
    for (int64_t k = 0, at = 0; k < 4; k++)
        cut[k] = at = at_min(z.Skv + 1, at + below(m, z.Skv / 3 + 2));
    p->compute = wide ? AT_F64 : AT_DEFAULT;
    p->br = m->features & BITS_TILE ? br : 0;
    p->bc = m->features & BITS_TILE ? bc : 0;
    p->lanes = m->features & BITS_LANES ? lanes : 1;
    p->splits = m->features & BITS_SPLITS ? splits : 1;
    p->cut = cuts && p->splits > 1 ? cut : NULL;
    p->merge = (enum at_order)(m->features & BITS_SPLITS ? order % 2 ? AT_IN_ORDER : order : 0);
    p->merge_seed = draw(m);
    p->threads = m->features & BITS_THREADS ? many : 1;
}

void bits_make(struct bits_problem *p, uint64_t seed, unsigned features)
{
    struct maker m = {p, features, seed * 0x2545f4914f6cdd1du + 1};
    struct shape x = a_shape(&m);
    p->blocks = NULL;
    p->a = (struct at_attention){0};
    p->a.score.left = p->a.score.right = AT_UNBOUNDED;
    place(&m, &p->a, x);
    score(&m, &p->a);
    plan(&m, &p->a);
    const struct at_view *q = &p->a.q;
    int order = (int)below(&m, 2);
    bool lse = below(&m, 4) != 0;
    enum at_dtype dtype[2] = {a_dtype(&m), a_dtype(&m)};
    p->to.out = tensor(&m, order, dtype[0], q->dim[0], q->dim[1], q->dim[2], p->a.v.dim[3]);
    p->to.lse = tensor(&m, order, dtype[1], q->dim[0], q->dim[1], q->dim[2], 1);
    if (!lse)
        p->to.lse.data = NULL;
}

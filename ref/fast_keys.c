/* What the fast truth reads: keys of one (b, key head) and rows, decoded once, and the ranges that
 * its lemmas need. What lies outside - infinities, NaN, numbers past the ranges - is marked, and a
 * row that sees a marked key is left to MPFR. SPDX-License-Identifier: MIT */
#include "fast.h"
#include "ref.h"
#include <stdlib.h>

/* Norms, factors and values up to MOST, factors of values and keys within 2^+-FACTOR of 1, and no
 * value below LEAST but 0: products of all of them stay in the range of doubles. */
#define MOST 0x1p400
#define LEAST 0x1p-400
#define FACTOR 0x1p40
#define SCALE_MOST 0x1p100

static double *numbers(int64_t n)
{
    size_t bytes = ((size_t)n * sizeof(double) + 127) / 64 * 64; /* whole cache lines */
    double *x = aligned_alloc(64, bytes);
    if (x)
        memset(x, 0, bytes);
    return x;
}

/* -- Decoding ---------------------------------------------------------------------------------- */

/* By integers: no code in common with at_math.h. */
static double bf16(const unsigned char *x)
{
    uint16_t half;
    float y;
    memcpy(&half, x, 2);
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&y, &bits, 4);
    return (double)y;
}

static double fp32(const unsigned char *x)
{
    float y;
    memcpy(&y, x, 4);
    return (double)y;
}

/* n numbers of a row that begins at element `at`, `step` apart in `to`. */
static void decode(const struct at_view *x, int64_t at, int64_t n, double *to, int64_t step)
{
    const unsigned char *data = x->data;
    int64_t stride = x->stride[3];
    if (x->dtype == AT_F32)
        for (int64_t c = 0; c < n; c++)
            to[c * step] = fp32(data + 4 * (at + c * stride));
    else if (x->dtype == AT_BF16)
        for (int64_t c = 0; c < n; c++)
            to[c * step] = bf16(data + 2 * (at + c * stride));
    else
        for (int64_t c = 0; c < n; c++)
            to[c * step] = at_stored(x, at + c * stride);
}

/* An upper bound of the norm; NaN or infinite where the numbers are, or their squares. */
static double norm(const double *x, int64_t n, int64_t step)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c++)
        sum += x[c * step] * x[c * step];
    return sqrt(sum) * (1 + 0x1p-30) + 0x1p-520; /* n <= 2^20 roundings */
}

/* -- Keys -------------------------------------------------------------------------------------- */

bool at_fast_keys_make(struct fast_keys *x, int64_t n, int64_t D, int64_t Dv)
{
    int64_t room = (n + TILE - 1) / TILE * TILE;
    *x = (struct fast_keys){.D = D, .Dv = Dv};
    x->k = numbers(room * D);
    x->v = numbers(room * Dv);
    x->norm = numbers(3 * room);
    if (x->norm)
        x->kscale = x->norm + room, x->vscale = x->norm + 2 * room;
    return x->k && x->v && x->norm;
}

void at_fast_keys_free(struct fast_keys *x)
{
    free(x->k);
    free(x->v);
    free(x->norm);
}

/* Values within range, or 0? */
static bool fit(const double *v, int64_t n)
{
    bool good = true;
    for (int64_t c = 0; c < n; c++) {
        double size = fabs(v[c * TILE]);
        good = good && ((size >= LEAST && size <= MOST) || size == 0);
    }
    return good;
}

static void load_key(struct fast_keys *x, const struct at_attention *a, int64_t j, int64_t at)
{
    double *k = x->k + at * x->D, *v = x->v + at / TILE * TILE * x->Dv + at % TILE;
    double f = at_descale(&a->score.kscale, x->b, x->g, j),
           h = at_descale(&a->score.vscale, x->b, x->g, j);
    decode(&a->k, at_key_offset(a, &a->k, x->b, x->g, j), x->D, k, 1);
    decode(&a->v, at_key_offset(a, &a->v, x->b, x->g, j), x->Dv, v, TILE);
    x->norm[at] = norm(k, x->D, 1);
    x->kscale[at] = f, x->vscale[at] = h;
    bool good = x->norm[at] <= MOST && fit(v, x->Dv) && fabs(f) <= FACTOR &&
                ((fabs(h) >= 1 / FACTOR && fabs(h) <= FACTOR) || h == 0);
    if (good)
        return;
    x->norm[at] = INFINITY;
    x->kscale[at] = x->vscale[at] = 1;
    memset(k, 0, (size_t)x->D * sizeof *k);
    for (int64_t c = 0; c < x->Dv; c++)
        v[c * TILE] = 0;
}

void at_fast_keys_load(struct fast_keys *x, const struct at_attention *a, struct at_span s)
{
    x->first = s.lo / TILE * TILE;
    x->n = (s.hi + TILE - 1) / TILE * TILE - x->first;
    for (int64_t at = 0; at < x->n; at++) {
        int64_t j = x->first + at;
        if (j >= s.lo && j < s.hi) {
            load_key(x, a, j, at);
            continue;
        }
        memset(x->k + at * x->D, 0, (size_t)x->D * sizeof *x->k);
        for (int64_t c = 0; c < x->Dv; c++)
            x->v[at / TILE * TILE * x->Dv + c * TILE + at % TILE] = 0;
        x->norm[at] = 0, x->kscale[at] = x->vscale[at] = 1;
    }
}

/* -- Rows -------------------------------------------------------------------------------------- */

bool at_fast_rows_make(struct fast_rows *x, const struct at_attention *a)
{
    *x = (struct fast_rows){.a = a, .z = at_sizes(a)};
    x->q = numbers(x->z.D * LANES);
    x->uh = numbers(3 * x->z.Dv * LANES);
    if (!x->uh)
        return false;
    x->ul = x->uh + x->z.Dv * LANES, x->ue = x->ul + x->z.Dv * LANES;
    double cap = a->score.softcap, scale = fabs(a->score.scale);
    x->softcap = cap;
    x->far = 0x1p38;
    x->keep = two_sum(1, -a->dropout.p);
    if (cap > 0) {
        x->cap = dd_mul1(at_log2e, cap);
        x->inner = dd_div((struct dd){2, 0}, (struct dd){cap, 0});
        x->far = cap < 1 ? 0x1p37 * cap : 0x1p37;
    }
    /* Past these no row is served. */
    if (scale > SCALE_MOST || (scale < 1 / SCALE_MOST && scale > 0) ||
        (cap > 0 && (cap < 0x1p-60 || cap > 0x1p40)) || x->keep.h < 0x1p-50)
        x->far = 0;
    return x->q != NULL;
}

void at_fast_rows_free(struct fast_rows *x)
{
    free(x->q);
    free(x->uh);
}

static void load_row(struct fast_rows *x, int i)
{
    const struct at_attention *a = x->a;
    const struct at_score *s = &a->score;
    struct at_place p = x->at[i];
    double *q = x->q + i, f = at_descale(&s->qscale, p.b, p.h, p.i);
    int64_t tiles = (x->span[i].hi + TILE - 1) / TILE - x->span[i].lo / TILE + 1; /* and the sink */
    decode(&a->q, at_row_offset(a, &a->q, p.b, p.h, p.i), x->z.D, q, LANES);
    x->norm[i] = norm(q, x->z.D, LANES);
    x->bad[i] = !(x->norm[i] <= MOST) || !(fabs(f) <= FACTOR) || x->far == 0;
    struct dd scale = dd_mul1(dd_mul1(at_log2e, s->scale), f);
    x->scale_h[i] = scale.h, x->scale_l[i] = scale.l;
    x->alpha[i] = fabs(s->scale * f) * x->norm[i] * AT_EPS2 * SCORE_UNITS(x->z.D);
    x->kappa[i] = AT_EPS2 * (SUM_UNITS + JOIN_UNITS * (double)tiles + DD_EXP + DD_MUL1 +
                             CAP_UNITS * x->softcap);
    x->slope[i] = s->alibi.data ? at_stored(&s->alibi, at_offset(&s->alibi, 0, p.h, 0, 0)) : 0;
    x->sink[i] = s->sink.data ? at_stored(&s->sink, at_offset(&s->sink, 0, p.h, 0, 0)) : -INFINITY;
    if (p.i >= at_rows_of(a, &x->z, p.b))
        x->sink[i] = -INFINITY;
    x->bad[i] += !(x->sink[i] == -INFINITY || fabs(x->sink[i]) < 0x1p37);
    x->bad[i] += !(fabs(x->slope[i]) < 0x1p37);
}

void at_fast_rows_load(struct fast_rows *x)
{
    for (int i = 0; i < LANES; i++) {
        x->m[i] = NO_KEY;
        x->lh[i] = x->ll[i] = x->le[i] = x->seen[i] = 0;
        if (i < x->n) {
            load_row(x, i);
            continue;
        }
        for (int64_t c = 0; c < x->z.D; c++)
            x->q[c * LANES + i] = 0;
        x->at[i] = x->at[0], x->span[i] = (struct at_span){0, 0};
        x->norm[i] = x->scale_h[i] = x->scale_l[i] = x->alpha[i] = x->kappa[i] = x->slope[i] = 0;
        x->bad[i] = 1;
        x->sink[i] = -INFINITY;
    }
    memset(x->uh, 0, (size_t)(3 * x->z.Dv * LANES) * sizeof *x->uh);
}

/* out = sum of kept e^s v / ((1-p) sum e^s), lse = log sum e^s, over what a row sees; s by the
 * order scale, softcap, bias, ALiBi. Quadruple precision, eps = 2^-113, each operation with the
 * error that it inherits and the error that it makes: |fl(a+b) - (A+B)| <= ea + eb + eps |fl|
 * |fl(ab) - AB| <= |a| eb + |b| ea + ea eb + eps |fl| |fl(a/b) - A/B| <= (ea + |a/b| eb)/(|b| - eb)
 * + eps |fl| |fl(exp a) - exp A| <= exp(a) (exp(ea) - 1) + f    tanh: ea + f    log: ea/(a - ea) +
 * f f: two units in the last place, assumed of libquadmath. TINY: what underflow may lose; SLACK
 * covers the roundings of the errors themselves. Sums are in key order and not of the best
 * accuracy. SPDX-License-Identifier: MIT */
#include "second_truth.h"
#include <string.h>

/* What we call of libquadmath, whose header clang lacks. */
typedef __float128 quad;
quad expq(quad x);
quad expm1q(quad x);
quad logq(quad x);
quad tanhq(quad x);
quad fabsq(quad x);
quad ldexpq(quad x, int e);
quad floorq(quad x);
int finiteq(quad x);
int isnanq(quad x);
#define HUGE ((quad)__builtin_inf())
#define NOT_A_NUMBER ((quad)__builtin_nan(""))
#define EPS 0x1p-113Q
#define TINY 0x1p-16490Q
#define SLACK (1 + 0x1p-60Q)

/* -- Numbers with errors ----------------------------------------------------------------------- */

static struct second make(quad x, quad e)
{
    if (!finiteq(x))
        return (struct second){x, 0};
    return (struct second){x, isnanq(e) ? HUGE : e * SLACK}; /* 0 times a bound of infinity */
}

static struct second exactly(quad x) { return make(x, 0); }

static struct second plus(struct second a, struct second b)
{
    quad x = a.x + b.x;
    return make(x, a.e + b.e + EPS * fabsq(x));
}

static struct second times(struct second a, struct second b)
{
    quad x = a.x * b.x;
    return make(x, fabsq(a.x) * b.e + fabsq(b.x) * a.e + a.e * b.e + EPS * fabsq(x) + TINY);
}

static struct second over(struct second a, struct second b)
{
    quad x = a.x / b.x, room = fabsq(b.x) - b.e;
    return make(x, room > 0 ? (a.e + fabsq(x) * b.e) / room + EPS * fabsq(x) + TINY : HUGE);
}

static struct second minus(struct second a) { return (struct second){-a.x, a.e}; }

static struct second power(struct second a)
{
    quad x = expq(a.x);
    if (!(a.e < 1))
        return make(x, expq(a.x + a.e));
    return make(x, x * (expm1q(a.e) + 8 * EPS) + TINY);
}

static struct second bounded(struct second a)
{
    quad x = tanhq(a.x);
    return make(x, a.e + 4 * EPS * fabsq(x));
}

static struct second logarithm(struct second a)
{
    quad x = logq(a.x), room = a.x - a.e;
    return make(x, room > 0 ? a.e / room + 4 * EPS * fabsq(x) : HUGE);
}

/* -- Stored numbers ---------------------------------------------------------------------------- */

/* IEEE fields: sign, `width` exponent bits, `digits` fraction bits. */
static quad decode(uint64_t bits, int width, int digits)
{
    int64_t all = (1 << width) - 1, bias = all / 2, e = (int64_t)(bits >> digits) & all;
    quad fraction = (quad)(bits & (((uint64_t)1 << digits) - 1)) / (quad)((uint64_t)1 << digits);
    quad sign = (bits >> (width + digits)) & 1 ? -1 : 1;
    if (e == all)
        return fraction != 0 ? NOT_A_NUMBER : sign * HUGE;
    if (e == 0)
        return sign * ldexpq(fraction, (int)(1 - bias));
    return sign * ldexpq(1 + fraction, (int)(e - bias));
}

static quad stored(const struct at_view *x, int64_t at)
{
    static const struct {
        size_t size;
        int width, digits;
    } format[] = {[AT_F64] = {8, 11, 52}, [AT_F32] = {4, 8, 23},    [AT_F16] = {2, 5, 10},
                  [AT_BF16] = {2, 8, 7},  [AT_F8_E4M3] = {1, 4, 3}, [AT_F8_E5M2] = {1, 5, 2},
                  [AT_U8] = {1, 0, 8}};
    size_t size = format[x->dtype].size;
    uint64_t bits = 0; /* little-endian, as all that we build for */
    memcpy(&bits, (const char *)x->data + at * (int64_t)size, size);
    if (x->dtype == AT_U8)
        return (quad)bits;
    if (x->dtype == AT_F8_E4M3 && (bits & 0x7f) > 0x77 && (bits & 0x7f) < 0x7f)
        return ((bits & 0x80) ? -32 : 32) * (quad)(8 + (bits & 7)); /* 256 .. 448: no infinities */
    return decode(bits, format[x->dtype].width, format[x->dtype].digits);
}

static int64_t element(const struct at_view *x, int64_t b, int64_t h, int64_t s, int64_t c)
{
    return b * x->stride[0] + h * x->stride[1] + s * x->stride[2] + c * x->stride[3];
}

/* What stands in an optional tensor, or what its absence means. */
static quad optional(const struct at_view *x, int64_t b, int64_t h, int64_t s, int64_t c,
                     quad absent)
{
    return x->data ? stored(x, element(x, b, h, s, c)) : absent;
}

/* -- Places ------------------------------------------------------------------------------------ */

struct second_row second_place(const struct at_attention *a, int64_t t)
{
    int64_t S = a->q.dim[2], H = a->q.dim[1];
    struct second_row x = {t / S / H, t / S % H, t % S};
    if (a->score.q_start) {
        int64_t row = x.i;
        x.b = -1;
        for (int64_t b = a->score.sequences - 1; b >= 0; b--)
            if (row >= a->score.q_start[b] && row < a->score.q_start[b] + a->score.q_len[b])
                x = (struct second_row){b, x.h, row - a->score.q_start[b]};
    }
    return x;
}

int64_t second_keys(const struct at_attention *a, int64_t b)
{
    int64_t room = a->score.kv_start || a->pages.table ? INT64_MAX : a->k.dim[2];
    if (a->score.kv_len && a->score.kv_len[b] < room)
        return a->score.kv_len[b];
    return room;
}

int64_t second_key(const struct at_attention *a, const struct at_view *x, int64_t b, int64_t g,
                   int64_t j)
{
    int64_t size = x->dim[2];
    if (a->pages.table) {
        const int32_t *pages = a->pages.table;
        pages += a->pages.indptr ? a->pages.indptr[b] : b * a->pages.width;
        return element(x, pages[j / size], g, j % size, 0);
    }
    return a->score.kv_start ? element(x, 0, g, j + a->score.kv_start[b], 0)
                             : element(x, b, g, j, 0);
}

static bool is_row(const struct at_attention *a, struct second_row at)
{
    return at.b >= 0 && !(a->score.q_len && at.i >= a->score.q_len[at.b]);
}

static int64_t position(const struct at_attention *a, struct second_row at)
{
    return a->score.offset ? at.i + a->score.offset[at.b] : at.i;
}

bool second_sees(const struct at_attention *a, struct second_row at, int64_t j)
{
    const struct at_score *s = &a->score;
    if (!is_row(a, at) || j >= second_keys(a, at.b))
        return false;
    int64_t ahead = j - position(a, at); /* > 0: after the row */
    if ((s->left != AT_UNBOUNDED && ahead < -s->left) ||
        (s->right != AT_UNBOUNDED && ahead > s->right))
        return false;
    return optional(&s->mask, at.b, at.h, at.i, j, 1) != 0 &&
           optional(&s->bias, at.b, at.h, at.i, j, 0) != -HUGE;
}

/* -- Dropout ----------------------------------------------------------------------------------- */

/* Longest of the lengths that ragged or paged batches have. */
static uint64_t longest(const int64_t *len, int64_t B, int64_t otherwise)
{
    if (!len)
        return (uint64_t)otherwise;
    int64_t most = 0;
    for (int64_t b = 0; b < B; b++)
        most = most < len[b] ? len[b] : most;
    return (uint64_t)most;
}

/* Philox4x32-10, written from the paper: (L0 R0 L1 R1) and 64-bit products. */
static uint32_t philox(uint64_t counter, uint64_t offset, uint64_t key, int word)
{
    uint32_t R0 = (uint32_t)counter, L0 = (uint32_t)(counter >> 32), k0 = (uint32_t)key;
    uint32_t R1 = (uint32_t)offset, L1 = (uint32_t)(offset >> 32), k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t first = 0xD2511F53ull * R0, second = 0xCD9E8D57ull * R1;
        R0 = (uint32_t)(second >> 32) ^ L0 ^ k0;
        L0 = (uint32_t)second;
        R1 = (uint32_t)(first >> 32) ^ L1 ^ k1;
        L1 = (uint32_t)first;
    }
    return word == 0 ? R0 : word == 1 ? L0 : word == 2 ? R1 : L1;
}

bool second_keeps(const struct at_attention *a, struct second_row at, int64_t j)
{
    const struct at_dropout *d = &a->dropout;
    if (d->keep.data)
        return stored(&d->keep, element(&d->keep, at.b, at.h, at.i, j)) != 0;
    int64_t B = a->score.q_start ? a->score.sequences : a->q.dim[0];
    uint64_t Sq = longest(a->score.q_start ? a->score.q_len : NULL, B, a->q.dim[2]);
    uint64_t Skv =
        longest(a->score.kv_start || a->pages.table ? a->score.kv_len : NULL, B, a->k.dim[2]);
    uint64_t row = (uint64_t)at.b * (uint64_t)a->q.dim[1] + (uint64_t)at.h;
    uint64_t e = (row * Sq + (uint64_t)at.i) * Skv + (uint64_t)j;
    return (quad)philox(e >> 2, d->offset, d->seed, (int)(e & 3)) >= floorq((quad)d->p * 0x1p32Q);
}

/* -- The formula ------------------------------------------------------------------------------- */

static struct second score(const struct at_attention *a, struct second_row at, int64_t row,
                           int64_t j)
{
    const struct at_score *s = &a->score;
    int64_t g = at.h / (a->q.dim[1] / a->k.dim[1]), k = second_key(a, &a->k, at.b, g, j);
    quad f = optional(&s->qscale, at.b, at.h, at.i, 0, 1),
         d = optional(&s->kscale, at.b, g, j, 0, 1);
    struct second x = exactly(0), cap = exactly(s->softcap);
    for (int64_t c = 0; c < a->q.dim[3]; c++) {
        struct second q = times(exactly(stored(&a->q, row + c * a->q.stride[3])), exactly(f));
        struct second y = times(exactly(stored(&a->k, k + c * a->k.stride[3])), exactly(d));
        x = plus(x, times(q, y));
    }
    x = times(exactly(s->scale), x);
    if (s->softcap > 0)
        x = times(cap, bounded(over(x, cap)));
    x = plus(x, exactly(optional(&s->bias, at.b, at.h, at.i, j, 0)));
    if (!s->alibi.data)
        return x;
    int64_t far = position(a, at) - j;
    struct second slope = exactly(optional(&s->alibi, 0, at.h, 0, 0, 0));
    return plus(x, minus(times(slope, exactly((quad)(far < 0 ? -far : far)))));
}

/* Sums over a row relative to m, or what it turned out to be. */
struct sums {
    struct second m, l;
    int64_t finite, dead; /* scores that are numbers, that are -inf */
    bool broken;          /* a score of NaN or +inf */
};

static void meet(struct sums *x, struct second s)
{
    if (isnanq(s.x) || s.x == HUGE)
        x->broken = true;
    else if (s.x == -HUGE)
        x->dead++;
    else if (x->finite++ == 0 || s.x > x->m.x)
        x->m = s;
}

/* u of column c; the rules for values that are not finite. */
static struct second column(const struct at_attention *a, struct second_row at,
                            const struct sums *x, int64_t row, int64_t n, int64_t c)
{
    int64_t g = at.h / (a->q.dim[1] / a->k.dim[1]);
    struct second u = exactly(0);
    for (int64_t j = 0; j < n; j++) {
        bool drops = a->dropout.p > 0 || a->dropout.keep.data;
        if (!second_sees(a, at, j) || (drops && !second_keeps(a, at, j)))
            continue;
        struct second s = score(a, at, row, j);
        int64_t place = second_key(a, &a->v, at.b, g, j) + c * a->v.stride[3];
        struct second v = times(exactly(stored(&a->v, place)),
                                exactly(optional(&a->score.vscale, at.b, g, j, 0, 1)));
        if (!finiteq(v.x) && s.x != -HUGE)
            u = plus(u, exactly(v.x)); /* however small its weight is */
        else if (s.x == -HUGE)
            u = plus(u, times(exactly(0), v));
        else
            u = plus(u, times(power(plus(s, minus(x->m))), v));
    }
    struct second keep = plus(exactly(1), exactly(-(quad)a->dropout.p));
    return over(u, times(keep, x->l));
}

void second_truth(const struct at_attention *a, int64_t t, struct second *out, struct second *lse)
{
    struct second_row at = second_place(a, t);
    int64_t S = a->q.dim[2], n = is_row(a, at) ? second_keys(a, at.b) : 0;
    int64_t row = element(&a->q, t / S / a->q.dim[1], at.h, t % S, 0);
    struct sums x = {{0, 0}, {0, 0}, 0, 0, false};
    quad sink = is_row(a, at) ? optional(&a->score.sink, 0, at.h, 0, 0, -HUGE) : -HUGE;
    for (int64_t j = 0; j < n; j++)
        if (second_sees(a, at, j))
            meet(&x, score(a, at, row, j));
    if (sink != -HUGE)
        meet(&x, exactly(sink));
    bool none = x.finite == 0 && x.dead == 0, broken = x.broken || (x.finite == 0 && x.dead > 0);
    for (int64_t j = 0; j < n && x.finite > 0 && !broken; j++)
        if (second_sees(a, at, j) && score(a, at, row, j).x != -HUGE)
            x.l = plus(x.l, power(plus(score(a, at, row, j), minus(x.m))));
    if (sink != -HUGE && x.finite > 0)
        x.l = plus(x.l, power(plus(exactly(sink), minus(x.m))));
    *lse = exactly(broken ? NOT_A_NUMBER : -HUGE);
    if (!broken && !none)
        *lse = plus(x.m, logarithm(x.l));
    for (int64_t c = 0; c < a->v.dim[3]; c++)
        out[c] = broken ? exactly(NOT_A_NUMBER) : none ? exactly(0) : column(a, at, &x, row, n, c);
}

/* Truth fast: the meaning in double-words with a proved enclosure; MPFR decides what that leaves.
 *
 *     |out_c - (oh + ol)| <= E = (ue_c/(1-p) + |o| le)/l + 26 eps^2 |o|,     o = u/((1-p) l)
 *     |lse - (lh + ll)|   <= le/l + 91 eps^2 + (24 + 12 |lse|) eps^2
 *
 * A number is decided where oh + ol - E and oh + ol + E round to the same double. A row with an
 * element that is not, with fewer than two keys, or outside the lemmas' ranges (fast_keys.c: every
 * infinity and NaN) is at_truth's. So hi is at_truth's to the bit; hi + lo is within the bits told.
 * Source docs/fast-truth.md. Not here: verdicts (compare.c). SPDX-License-Identifier: MIT */
#include "fast.h"
#include "ref.h"
#include <fenv.h>
#include <float.h>
#include <stdlib.h>

enum { ENOUGH = 56, EXACT = INT16_MAX, JOB = 128 }; /* least bits; rows that share decoded keys */

/* -- Is this machine what the lemmas suppose? ------------------------------------------------- */

/* Round to nearest, no wider registers, subnormals kept, fma fused: asked of every thread, since
 * modes belong to threads. */
static bool sound(void)
{
    volatile double one = 1, half = 0x1p-53, tiny = 0x1p-1074, third = 1.0 / 3, x = 0x1p-1000;
    struct dd s = two_sum(one, half);
    return FLT_EVAL_METHOD == 0 && fegetround() == FE_TONEAREST && s.h == 1 && s.l == half &&
           one + 3 * half == 1 + 0x1p-51 && tiny * one > 0 && x * 0x1p-60 > 0 &&
           fma(third, 3.0, -1.0) == -0x1p-54;
}

/* -- Deciding --------------------------------------------------------------------------------- */

struct answer {
    double hi, lo;
    int16_t bits;
};

/* x within e; false: not decided. 2^-105 |x| covers the roundings here. */
static bool decide(struct dd x, double e, struct answer *to)
{
    if (e == 0 && x.h == 0) {
        *to = (struct answer){0, 0, EXACT};
        return true;
    }
    double w = e * (1 + 0x1p-40) + 0x1p-105 * fabs(x.h);
    double below = x.h + (x.l - w), above = x.h + (x.l + w);
    if (!(below == above) || !(fabs(below) >= 0x1p-900))
        return false;
    int bits = ilogb(below) - ilogb(w) - 1; /* w < 2^-bits |hi| */
    *to = (struct answer){below, (x.h - below) + x.l, (int16_t)bits};
    return bits >= ENOUGH;
}

static bool decide_lse(const struct fast_rows *x, int i, struct answer *to)
{
    struct dd l = {x->lh[i], x->ll[i]};
    double y = log2(l.h); /* not trusted: l 2^-y = 1 + r is measured */
    struct dd p = dd_mul(dd_exp2((struct dd){-y, 0}, 0), l), r = quick_sum(p.h - 1, p.l);
    if (!(fabs(r.h) < 0x1p-40))
        return false;
    r = quick_sum(r.h, r.l - 0.5 * r.h * r.h);
    struct dd lse = dd_mul(dd_add(two_sum(x->m[i], y), dd_mul(at_log2e, r)), at_ln2);
    double e = x->le[i] * (1 + 0x1p-16) / l.h + AT_EPS2 * (DD_EXP + 24 + 12 * fabs(lse.h));
    return decide(lse, e * (1 + 0x1p-16), to);
}

static bool decide_out(const struct fast_rows *x, int i, int64_t c, struct answer *to)
{
    int64_t at = c * LANES + i;
    struct dd u = {x->uh[at], x->ul[at]}, l = {x->lh[i], x->ll[i]};
    if (x->ue[at] == 0) /* every value that counts is 0 */
        return decide((struct dd){0, 0}, 0, to);
    if (x->keep.h != 1)
        l = dd_mul(l, x->keep);
    struct dd o = dd_div(u, l);
    double e = x->ue[at] / x->keep.h + fabs(o.h) * x->le[i];
    e = e / x->lh[i] + (DD_DIV + DD_MUL + 2) * AT_EPS2 * fabs(o.h);
    return decide(o, e * (1 + 0x1p-15), to);
}

/* False: MPFR's. */
static bool decide_row(const struct fast_rows *x, int i, struct at_answer *to)
{
    int64_t t = x->t[i], Dv = to->Dv;
    struct answer y = {-INFINITY, 0, EXACT};
    if (x->bad[i] != 0 || x->seen[i] == 1)
        return false;
    bool none = x->seen[i] == 0;
    if (!none && (!(x->le[i] <= x->lh[i] * 0x1p-41) || !decide_lse(x, i, &y)))
        return false;
    to->lse[t] = y.hi, to->lse_lo[t] = y.lo, to->lse_bits[t] = y.bits;
    for (int64_t c = 0; c < Dv; c++) {
        y = (struct answer){0, 0, EXACT};
        if (!none && !decide_out(x, i, c, &y))
            return false;
        int64_t at = t * Dv + c;
        to->out[at] = y.hi, to->out_lo[at] = y.lo, to->out_bits[at] = y.bits;
    }
    return true;
}

/* -- Rows by (b, key head) -------------------------------------------------------------------- */

struct place {
    int64_t g, t;
    struct at_place at;
};

static int by_key_head(const void *x, const void *y)
{
    const struct place *p = x, *q = y;
    if (p->at.b != q->at.b)
        return p->at.b < q->at.b ? -1 : 1;
    if (p->g != q->g)
        return p->g < q->g ? -1 : 1;
    if (p->at.i != q->at.i)
        return p->at.i < q->at.i ? -1 : 1;
    return (p->t > q->t) - (p->t < q->t);
}

/* One thread's memory. */
struct worker {
    struct fast_keys keys;
    struct fast_rows rows;
    struct fast_tile tile;
    bool sound;
};

static bool worker_make(struct worker *x, const struct at_attention *a)
{
    struct at_sizes z = at_sizes(a);
    const int64_t n = TILE * LANES;
    bool good = at_fast_keys_make(&x->keys, z.Skv, z.D, z.Dv);
    good &= at_fast_rows_make(&x->rows, a);
    double *s = aligned_alloc(64, (size_t)(7 * n) * sizeof *s);
    x->tile =
        (struct fast_tile){s, s + n, s + 2 * n, s + 3 * n, s + 4 * n, s + 5 * n, s + 6 * n, {0}};
    x->sound = sound();
    return good && s;
}

static void worker_free(struct worker *x)
{
    at_fast_keys_free(&x->keys);
    at_fast_rows_free(&x->rows);
    free(x->tile.sh);
}

/* The rows of the group, over all keys that one of them may see. */
static void attend(struct worker *x)
{
    struct fast_rows *r = &x->rows;
    int64_t lo = INT64_MAX, hi = 0;
    at_fast_rows_load(r);
    for (int i = 0; i < r->n; i++)
        if (r->span[i].lo < r->span[i].hi)
            lo = at_min(lo, r->span[i].lo), hi = at_max(hi, r->span[i].hi);
    for (int64_t j0 = lo < hi ? lo / TILE * TILE : hi; j0 < hi; j0 += TILE) {
        const double *v = x->keys.v + (j0 - x->keys.first) * r->z.Dv;
        at_fast_scores(r, &x->keys, j0, &x->tile);
        at_fast_rescale(r, x->tile.top);
        at_fast_weights(r, &x->tile);
        struct fast_values values = {r->z.Dv,       v,     x->tile.sh, x->tile.sl,
                                     x->tile.error, r->uh, r->ul,      r->ue};
        at_fast_values(&values);
    }
    if (r->a->score.sink.data)
        at_fast_sink(r);
}

/* Places of one (b, g), n <= JOB. */
static void run_job(struct worker *x, const struct place *p, int64_t n, struct at_answer *to,
                    unsigned char *open)
{
    struct fast_rows *r = &x->rows;
    struct at_span all = {INT64_MAX, 0};
    for (int64_t k = 0; k < n; k++) {
        struct at_span s = at_keys(r->a, &r->z, p[k].at.b, p[k].at.i);
        if (s.lo < s.hi)
            all.lo = at_min(all.lo, s.lo), all.hi = at_max(all.hi, s.hi);
    }
    x->keys.b = p->at.b, x->keys.g = p->g;
    if (all.lo < all.hi)
        at_fast_keys_load(&x->keys, r->a, all);
    for (int64_t k = 0; k < n; k += LANES) {
        r->n = (int)at_min(LANES, n - k);
        for (int i = 0; i < r->n; i++) {
            r->t[i] = p[k + i].t, r->at[i] = p[k + i].at;
            r->span[i] = at_keys(r->a, &r->z, r->at[i].b, r->at[i].i);
        }
        attend(x);
        for (int i = 0; i < r->n; i++)
            open[r->t[i]] = !decide_row(r, i, to);
    }
}

/* Where the job that begins at place k ends. */
static int64_t job_end(const struct place *p, int64_t n, int64_t k, int64_t most)
{
    int64_t end = k + 1;
    while (end < n && end - k < most && p[end].at.b == p[k].at.b && p[end].g == p[k].g)
        end++;
    return end;
}

/* Rows p[0..n) sorted; open: what is left to MPFR. */
static bool run_all(const struct at_attention *a, const struct place *p, int64_t n,
                    struct at_answer *to, unsigned char *open)
{
    int threads = at_resolve(a).threads;
    int64_t most = at_min(JOB, (n / (4 * threads) + LANES) / LANES * LANES), jobs = 0;
    int64_t *start = malloc((size_t)(n + 1) * sizeof *start);
    bool good = start != NULL;
    for (int64_t k = 0; good && k < n; k = job_end(p, n, k, most))
        start[jobs++] = k;
#pragma omp parallel num_threads(threads) reduction(&& : good)
    {
        struct worker x = {.sound = false};
        good = good && worker_make(&x, a);
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < jobs; k++) {
            int64_t from = start[k], end = job_end(p, n, from, most);
            if (good && x.sound && p[from].at.b >= 0)
                run_job(&x, p + from, end - from, to, open);
        }
        worker_free(&x);
    }
    free(start);
    return good;
}

/* -- What is left to MPFR --------------------------------------------------------------------- */

static void copy_row(struct at_answer *to, int64_t t, const struct at_answer *x, int64_t k)
{
    size_t Dv = (size_t)x->Dv, n = Dv * sizeof *to->out;
    int64_t at = t * x->Dv, from = k * x->Dv;
    memcpy(to->out + at, x->out + from, n);
    memcpy(to->out_lo + at, x->out_lo + from, n);
    memcpy(to->out_bits + at, x->out_bits + from, Dv * sizeof *to->out_bits);
    memcpy(to->out_bound + at, x->out_bound + from, n);
    memcpy(to->without + at, x->without + from, n);
    memcpy(to->out_kind + at, x->out_kind + from, Dv);
    to->lse[t] = x->lse[k], to->lse_lo[t] = x->lse_lo[k], to->lse_bits[t] = x->lse_bits[k];
    to->lse_bound[t] = x->lse_bound[k], to->lse_kind[t] = x->lse_kind[k];
}

enum at_status at_truth_again(const struct at_attention *a, const struct at_arith *arith,
                              struct at_rows rows, const unsigned char *open, struct at_answer *x)
{
    struct at_answer y;
    int64_t n = 0, k = 0;
    for (int64_t t = 0; t < x->n; t++)
        n += open[t] != 0;
    if (n == 0)
        return AT_OK;
    struct at_place *at = malloc((size_t)n * sizeof *at);
    enum at_status status = at_answer_make(&y, n, x->Dv);
    if (status == AT_OK && !at)
        status = AT_ERR_MEMORY;
    for (int64_t t = 0; t < x->n && status == AT_OK; t++)
        if (open[t])
            at[k++] = at_place_of(a, rows, t);
    struct at_rows some = {n, at};
    if (status == AT_OK)
        status = at_truth(a, some, &y);
    if (status == AT_OK && arith)
        status = at_bound(a, arith, some, &y);
    for (int64_t t = k = 0; t < x->n && status == AT_OK; t++)
        if (open[t])
            copy_row(x, t, &y, k++);
    x->by_mpfr += status == AT_OK ? n : 0;
    at_answer_free(&y);
    free(at);
    return status;
}

/* -- The whole -------------------------------------------------------------------------------- */

enum at_status at_truth_fast(const struct at_attention *a, struct at_rows rows, struct at_answer *x)
{
    enum at_status status = at_validate(a, NULL);
    if (status != AT_OK)
        return status;
    struct at_sizes z = at_sizes(a);
    int64_t n = rows.at ? rows.n : a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
    if (x->n != n || x->Dv != a->v.dim[3])
        return AT_ERR_SHAPE;
    struct place *p = malloc((size_t)(n + 1) * sizeof *p);
    unsigned char *open = malloc((size_t)n + 1);
    x->by_mpfr = 0;
    status = p && open ? AT_OK : AT_ERR_MEMORY;
    for (int64_t t = 0; t < n && status == AT_OK; t++) {
        p[t] = (struct place){.t = t, .at = at_place_of(a, rows, t)};
        p[t].g = p[t].at.h / z.group;
        open[t] = 1;
    }
    if (status == AT_OK) {
        qsort(p, (size_t)n, sizeof *p, by_key_head);
        status = run_all(a, p, n, x, open) ? at_truth_again(a, NULL, rows, open, x) : AT_ERR_MEMORY;
    }
    free(p);
    free(open);
    return status;
}

/* Where the failures are: their ranges, and the period that holds them all and fits best. A fault
 * in a tile, a warp or a head shows as "rows 64-127 of each 128".
 *
 * A period P is believed when every failing number has n mod P in lo..hi, that range is at most
 * half of P, at least one in four of the judged there fail, and failures lie in at least two
 * periods and in half of those judged. Of several the one where most of the judged fail counts,
 * then the smallest. Nothing is inferred from fewer than four failing numbers.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "oracle.h"
#include <math.h>
#include <stdlib.h>

static int bucket(double ratio)
{
    if (ratio == 0)
        return 0;
    double e = ceil(log2(ratio)) - AT_BUCKET_BASE + 1;
    return e < 1 ? 1 : e > AT_BUCKETS - 1 ? AT_BUCKETS - 1 : (int)e;
}

static void widen(int64_t range[2], int64_t n)
{
    range[0] = at_min(range[0], n);
    range[1] = at_max(range[1], n);
}

/* -- Periods --------------------------------------------------------------------------------- */

/* How often each number 0..n-1 was judged, and failed. */
struct tally {
    int64_t n, *judged, *failed;
};

static bool tally_make(struct tally *t, int64_t n)
{
    t->n = n;
    t->judged = calloc((size_t)(2 * n + 1), sizeof *t->judged);
    t->failed = t->judged + n;
    return t->judged != NULL;
}

/* The range of n mod P over the failing, and what happens inside it. */
static struct at_period period_of(const struct tally *t, int64_t P)
{
    struct at_period x = {P, P, -1, 0, 0};
    for (int64_t n = 0; n < t->n; n++)
        if (t->failed[n] > 0) {
            x.lo = at_min(x.lo, n % P);
            x.hi = at_max(x.hi, n % P);
        }
    for (int64_t n = 0; n < t->n; n++)
        if (n % P >= x.lo && n % P <= x.hi) {
            x.failed += t->failed[n];
            x.judged += t->judged[n];
        }
    return x;
}

/* In how many periods does a number of the range fail, of those where one was judged? */
static bool recurs(const struct tally *t, const struct at_period *x)
{
    int64_t seen = 0, hit = 0;
    for (int64_t from = 0; from < t->n; from += x->period) {
        bool judged = false, failed = false;
        for (int64_t n = from + x->lo; n <= from + x->hi && n < t->n; n++) {
            judged = judged || t->judged[n] > 0;
            failed = failed || t->failed[n] > 0;
        }
        seen += judged;
        hit += failed;
    }
    return hit >= 2 && 2 * hit >= seen;
}

static struct at_period best_period(const struct tally *t)
{
    struct at_period best = {0, 0, 0, 0, 0};
    int64_t failing = 0;
    for (int64_t n = 0; n < t->n; n++)
        failing += t->failed[n] > 0;
    if (failing < 4)
        return best;
    for (int64_t P = 2; P <= t->n / 2 && P <= 4096; P++) {
        struct at_period x = period_of(t, P);
        if (2 * (x.hi - x.lo + 1) <= P && 4 * x.failed >= x.judged && recurs(t, &x) &&
            (best.period == 0 || x.failed * best.judged > best.failed * x.judged))
            best = x;
    }
    return best;
}

/* -- The whole ------------------------------------------------------------------------------- */

struct look {
    const struct at_attention *a;
    struct at_rows rows;
    const double *ratios;
    struct at_where *w;
    struct tally row, column;
    unsigned char *pair; /* 1: judged, 2: failed */
};

static bool count(struct at_where *w, double ratio)
{
    if (ratio < 0) /* a result without an lse */
        return false;
    if (isfinite(ratio))
        w->histogram[bucket(ratio)]++;
    else
        w->infinite++;
    return !(ratio <= 1);
}

/* Row t: its elements, then its lse. */
static void look_at(struct look *l, int64_t t)
{
    struct at_place p = at_place_of(l->a, l->rows, t);
    int64_t Dv = l->a->v.dim[3], n = l->rows.n, b = at_max(p.b, 0), failed = 0;
    struct at_where *w = l->w;
    for (int64_t c = 0; c < Dv; c++) {
        bool bad = count(w, l->ratios[t * Dv + c]);
        l->column.judged[c]++;
        l->column.failed[c] += bad;
        failed += bad;
        if (bad)
            widen(w->c, c);
    }
    bool lse = count(w, l->ratios[n * Dv + t]);
    w->out += failed;
    w->lse += lse;
    unsigned char *pair = &l->pair[b * l->a->q.dim[1] + p.h];
    *pair |= failed || lse ? 3 : 1;
    if (p.i < l->row.n)
        l->row.judged[p.i]++;
    if (!failed && !lse)
        return;
    w->rows++;
    if (p.i < l->row.n)
        l->row.failed[p.i]++;
    widen(w->b, p.b);
    widen(w->h, p.h);
    widen(w->i, p.i);
    w->heads |= p.h < 64 ? (uint64_t)1 << p.h : 0;
}

/* Rows of heads without a failure would hide a period of those with one. */
static void judged_in_failing_heads(struct look *l)
{
    int64_t Hq = l->a->q.dim[1];
    for (int64_t k = 0; k < l->row.n; k++)
        l->row.judged[k] = 0;
    for (int64_t t = 0; t < l->rows.n; t++) {
        struct at_place p = at_place_of(l->a, l->rows, t);
        if (p.i < l->row.n && l->pair[at_max(p.b, 0) * Hq + p.h] == 3)
            l->row.judged[p.i]++;
    }
}

bool at_where(const struct at_attention *a, struct at_rows rows, const double *ratios,
              struct at_where *w)
{
    struct at_sizes z = at_sizes(a);
    int64_t pairs = at_max(z.B, 1) * z.Hq;
    struct look l = {.a = a, .rows = rows, .ratios = ratios, .w = w};
    *w = (struct at_where){
        .b = {INT64_MAX, -1}, .h = {INT64_MAX, -1}, .i = {INT64_MAX, -1}, .c = {INT64_MAX, -1}};
    l.pair = calloc((size_t)pairs + 1, 1);
    bool done = tally_make(&l.row, z.Sq);
    done = tally_make(&l.column, z.Dv) && done && l.pair;
    if (done) {
        for (int64_t t = 0; t < rows.n; t++)
            look_at(&l, t);
        for (int64_t k = 0; k < pairs; k++) {
            w->pairs_judged += l.pair[k] > 0;
            w->pairs += l.pair[k] == 3;
        }
        judged_in_failing_heads(&l);
        w->row = best_period(&l.row);
        w->column = best_period(&l.column);
    }
    free(l.row.judged);
    free(l.column.judged);
    free(l.pair);
    return done;
}

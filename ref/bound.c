/* How far a kernel of a stated arithmetic may be from the truth: (A*) and (D) of docs/bounds.md.
 *
 *     |u^/l^ - o| <= (shared + private_u + |o| private_l + U) / (1 - max R - U_l)
 *
 * shared is exact: over |kappa_j| <= E_j a weighted mean of v ranges over [R-, R+], the upper end
 * with e^E_j on every v_j > R+ and e^-E_j elsewhere. So it never exceeds the range of V, however
 * large E. private_u = sum p e^E S |v| / W-, private_l = sum p e^E R / W-, each no more than its
 * largest term. U, U_l: what underflow may take, in all and of l. Which rows and columns have no
 * claim, or are open: docs/semantics.md, rules 2 to 5. Proved by machine (proofs/): (A*)
 * RowBound.row_theorem_A_star, l^ >= 1 Range.range_fp, (D) RowBound.row_lse; the rules of
 * semantics.md and `without`: tested, not proved. Not here: the last rounding (compare.c); (A-ord)
 * (bound_order.c); the second line (statistics.c).
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* -- One column ------------------------------------------------------------------------------- */

/* What truth leaves open: hi + lo is certain to 106 bits, or to as many as it says. */
static double uncertain(double o, int bits)
{
    return bits > 0 && bits < 106 ? ldexp(fabs(o), 1 - bits) : 0;
}

static double allowance(const struct row *x, const struct columns *s, int c, double common)
{
    const struct rule *r = x->r;
    double o = fabs(s->hi[c]), left = 1 - x->R_max - x->lost_l;
    double lost =
        s->lost[c] * (1 + x->S_max) + o * x->R_max * x->lost_weight + x->operations * (1 + o);
    double priv = fmin(fmin(s->priv[c], s->few[c]) / x->below, s->priv_max[c]) +
                  o * fmin(x->R_mean / x->below, x->R_max);
    double B = common + priv + (lost > 0 ? lost / x->divisor : 0);
    if (s->size[c] == 0) /* u is a sum of zeros */
        return 0;
    if (!(left > 0x1p-20)) /* what is left is known to WIDER */
        return INFINITY;
    B = B * WIDER / left;
    for (int64_t k = 1; k < r->arith->divisions && !at_bound_lone(x); k++)
        B = (B + r->eps * (B + o) + r->tiny) * WIDER;
    return B < INFINITY ? B : INFINITY;
}

struct claim {
    double bound;
    enum at_kind kind;
};

/* n max|v| at or past the largest number may overflow u; a finer u is rounded to compute, as is a
 * descaled v. */
static struct claim claim(const struct row *x, const struct columns *s, int c, double common)
{
    struct claim to = {INFINITY, AT_OVERFLOW};
    double most =
        ldexp((double)x->n * s->size[c] * (1 + x->R_max), x->r->arith->weight_shift) * x->swell;
    double whole = x->r->finer && !x->r->arith->normalised ? most : s->size[c];
    if (most >= x->r->limit_sum || whole >= (double)x->r->limit)
        return to;
    to.bound = allowance(x, s, c, common);
    to.kind = to.bound < INFINITY ? (x->open ? AT_OPEN : AT_CLAIMED) : AT_LOOSE;
    return to;
}

static struct columns columns_at(const double *hi, const double *lo, int64_t c, int64_t n)
{
    struct columns s = {.c = c};
    for (int k = 0; k < WIDE; k++) {
        s.most[k] = -INFINITY, s.least[k] = INFINITY;
        if (k < n)
            s.hi[k] = hi[k], s.lo[k] = lo[k];
    }
    return s;
}

/* -- Infinite values (rules 3 and 4) ---------------------------------------------------------- */

static double value(const struct row *x, int64_t t, int64_t c)
{
    const struct key *k = &x->key[t];
    return k->factor == 0
               ? 0
               : at_bound_value(x->store, k->j)[c / WIDE * WIDE * NEAR + c % WIDE] * k->factor;
}

/* The column without the keys whose infinite value may meet a weight of 0: they take the mean of
 * the others, so that they pull nowhere. Its own error joins the bound. */
static struct claim without(struct row *x, int64_t c, double *mean)
{
    long double u = 0, l = 0, size = 0;
    double eta = 0, common[WIDE];
    for (int64_t t = 0; t < x->n; t++) {
        double v = value(x, t, c);
        if (isinf(v))
            continue;
        long double p = expl((long double)x->key[t].ln_p);
        u += p * v, l += p, size += p * fabs(v);
        eta = fmax(eta, p > 0 ? x->key[t].eta : 0);
    }
    *mean = l > 0 ? (double)(u / l) : 0;
    for (int64_t t = 0; t < x->n; t++) {
        double v = value(x, t, c), factor = x->key[t].factor == 0 ? 1 : x->key[t].factor;
        memset(x->edit + t * WIDE, 0, WIDE * sizeof *x->edit);
        x->edit[t * WIDE] = (isinf(v) ? *mean : v) / factor;
        x->panel[t] = x->edit + t * WIDE;
    }
    struct columns s = columns_at(mean, (double[]){0}, 0, 1);
    x->ordered = false; /* who is in a partial sum is not known */
    at_bound_sum(x, 0, x->n, &s, 1);
    at_bound_summed(x, &s, 1);
    at_bound_shared(x, &s, common);
    struct claim to = claim(x, &s, 0, common[0]);
    to.bound += l > 0 ? (4 * eta + 0x1p-50) * (double)(size / l) : 0;
    to.kind = to.bound < INFINITY ? AT_OPEN_INF : to.kind;
    return to;
}

/* A column whose truth is no number: NaN stays NaN; an infinite value whose weight may underflow
 * leaves the element open. */
static struct claim infinite(struct row *x, int64_t c, double truth, double *mean)
{
    struct claim to = {0, x->open ? AT_OPEN : AT_CLAIMED};
    double sure = 0;
    bool gone = x->open && isinf(truth); /* of a key whose score is -inf */
    for (int64_t t = 0; t < x->n; t++) {
        double v = value(x, t, c);
        if (isnan(v))
            return to;
        if (isfinite(v) && fabs(v) >= (double)x->r->limit)
            return (struct claim){INFINITY, AT_OVERFLOW};
        gone = gone || (isinf(v) && x->key[t].gone);
        sure += isinf(v) && !x->key[t].gone ? v : 0;
    }
    if (!gone)
        return to;
    if (sure == 0)
        return without(x, c, mean);
    *mean = sure;
    to.kind = AT_OPEN_INF;
    return to;
}

/* -- The lse (D) ------------------------------------------------------------------------------ */

/* -ln of the least sum p e^-E (1-R), no less than its largest term. */
static double shrink(const struct row *x)
{
    double best = -INFINITY;
    if (!x->direct)
        return -log1p(-fmin(1, x->down_sum + x->R_mean));
    for (int64_t t = 0; t < x->n; t++)
        best = fmax(best, x->key[t].ln_p - x->key[t].eta - x->key[t].E);
    return -best - log1p(-x->R_max);
}

static struct claim lse_claim(const struct row *x)
{
    const struct rule *r = x->r;
    double size = fabs(x->top), none = at_bound_lone(x) ? 0 : 1;
    double lost = x->R_max < 1 ? x->lost_l / (1 - x->R_max) : INFINITY;
    double grow =
        x->direct ? x->largest + log(x->up_sum) + log1p(x->R_max) : log1p(x->up_sum + x->R_mean);
    double B = fmax(grow, shrink(x)) + (lost < 0.5 ? 2 * lost : INFINITY);
    double L = log(x->l) + B;
    /* A log better than an ulp is so relatively; a rough one is accurate absolutely at best. */
    B += none * r->log * (r->arith->log_ulps > 1 ? fmax(1, L) : L);
    if (r->arith->fused) /* m*scale and m*scale*log2 e are rounded apart */
        B += 2 * r->eps * (size + B);
    B *= WIDER;
    struct claim to = {B, x->open ? AT_OPEN : AT_CLAIMED};
    if (!(x->R_max < 1) || !(B < INFINITY))
        to = (struct claim){INFINITY, AT_LOOSE};
    return to;
}

/* -- Rows ------------------------------------------------------------------------------------- */

static void all(struct at_answer *to, int64_t t, struct claim x)
{
    for (int64_t c = 0; c < to->Dv; c++) {
        to->out_bound[t * to->Dv + c] = x.bound;
        to->out_kind[t * to->Dv + c] = (unsigned char)x.kind;
        to->without[t * to->Dv + c] = 0;
    }
    to->lse_bound[t] = x.bound;
    to->lse_kind[t] = (unsigned char)x.kind;
}

/* Rule 5 for what is no score: l, the scaled P, and the residual of a fused m*scale. */
static bool overflows(struct row *x)
{
    const struct rule *r = x->r;
    double n = ldexp((double)x->n, r->arith->weight_shift), size = 0, residual;
    for (int64_t t = 0; t < x->n && r->arith->fused; t++)
        size = fmax(size, fabs(x->key[t].s) + x->key[t].D);
    if (r->narrow_weight && ldexp(1, r->arith->weight_shift) > r->max_weight)
        return true;
    /* A weight is past 1 by exp's error and its rescales'; by a fused residual in base 2. */
    residual = r->eps * size * 1.5;
    x->common = r->arith->fused ? exp2(residual) : 1;
    x->swell = x->common * exp((r->arith->normalised ? 1 : (double)x->n) * r->exp_up);
    return x->overflow || n * x->swell >= r->limit_sum || residual > 64 ||
           size * 1.5 >= (double)r->limit;
}

static void set(struct at_answer *to, int64_t at, struct claim x)
{
    to->out_bound[at] = x.bound + (x.bound > 0 ? uncertain(to->out[at], to->out_bits[at]) : 0);
    to->out_kind[at] = (unsigned char)x.kind;
    to->without[at] = 0;
}

static int64_t blocks(const struct row *x) { return (x->r->z.Dv + WIDE - 1) / WIDE; }

/* What the sums say of the columns. */
static void columns(struct row *x, struct at_answer *to, int64_t t)
{
    int64_t Dv = to->Dv, at = t * Dv;
    double common[WIDE];
    at_bound_summed(x, x->block, blocks(x));
    for (int64_t c0 = 0; c0 < Dv; c0 += WIDE) {
        const struct columns *s = &x->block[c0 / WIDE];
        at_bound_shared(x, s, common);
        for (int64_t c = 0; c < at_min(WIDE, Dv - c0); c++)
            if (isfinite(to->out[at + c0 + c]))
                set(to, at + c0 + c, claim(x, s, (int)c, common[c]));
    }
    for (int64_t c = 0; c < Dv; c++) { /* last, as they change x->panel */
        double mean = 0;
        if (isfinite(to->out[at + c]))
            continue;
        set(to, at + c, infinite(x, c, to->out[at + c], &mean));
        to->without[at + c] = mean;
    }
    struct claim lse = lse_claim(x);
    to->lse_bound[t] = lse.bound + (lse.bound > 0 ? uncertain(to->lse[t], to->lse_bits[t]) : 0);
    to->lse_kind[t] = (unsigned char)lse.kind;
}

/* Keys are known: rows by kind are done; of others the columns' sums begin. */
static void weigh_row(struct row *x, struct at_answer *to, int64_t t)
{
    struct claim nothing = {0, AT_CLAIMED}, zero = {0, AT_OPEN_INF}, none = {INFINITY, AT_OVERFLOW};
    x->summed = false;
    if (x->dead || (x->n == 0 && !x->open)) { /* NaN, or an empty row: by kind */
        all(to, t, nothing);
        return;
    }
    if (x->n == 0) { /* every score -inf: NaN, and where the arithmetic says so (0, -inf) */
        all(to, t, x->r->arith->dead_zero ? zero : nothing);
        return;
    }
    if (overflows(x)) {
        all(to, t, none);
        return;
    }
    at_bound_errors(x, to->lse[t], to->lse_lo[t]);
    for (int64_t k = 0; k < x->n; k++) {
        const struct key *key = &x->key[k];
        x->panel[k] = key->factor == 0 ? x->store->zero : at_bound_value(x->store, key->j);
    }
    int64_t at = t * to->Dv;
    for (int64_t c = 0; c < to->Dv; c += WIDE)
        x->block[c / WIDE] =
            columns_at(to->out + at + c, to->out_lo + at + c, c, at_min(WIDE, to->Dv - c));
    x->summed = true;
}

/* Rows t .. t+n of one (b, key head). */
static void bound_rows(struct row *x, struct at_answer *to, int64_t t, int64_t n)
{
    struct at_span all_keys = {0, 0};
    int64_t most = 0;
    for (int64_t k = 0; k < n; k++) {
        at_bound_open(&x[k]);
        all_keys.hi = at_max(all_keys.hi, x[k].seen.hi);
    }
    for (int64_t j = 0; j < all_keys.hi; j += NEAR)
        at_bound_scores(x, n, (struct at_span){j, j + NEAR});
    for (int64_t k = 0; k < n; k++) {
        at_bound_close(&x[k]);
        weigh_row(&x[k], to, t + k);
        most = x[k].summed ? at_max(most, x[k].n) : most;
    }
    for (int64_t j = 0; j < most; j += NEAR)
        for (int64_t k = 0; k < n; k++)
            if (x[k].summed)
                at_bound_sum(&x[k], j, NEAR, x[k].block, blocks(x));
    for (int64_t k = 0; k < n; k++)
        if (x[k].summed)
            columns(&x[k], to, t + k);
}

/* Rows t .. t+n, as many together as share their keys. */
static void bound_some(struct worker *w, struct at_rows rows, struct at_answer *to, int64_t t,
                       int64_t n)
{
    const struct rule *r = w->row->r;
    for (int64_t k = 0; k < n; k++)
        w->row[k].at = at_place_of(r->a, rows, t + k);
    for (int64_t k = 0, end; k < n; k = end) {
        struct at_place first = w->row[k].at;
        for (end = k + 1; end < n; end++)
            if (w->row[end].at.b != first.b ||
                w->row[end].at.h / r->z.group != first.h / r->z.group)
                break;
        bound_rows(w->row + k, to, t + k, end - k);
    }
}

/* Does the compute type hold every number of dtype? */
static bool holds(struct at_format T, const struct at_view *x)
{
    if (!x->data)
        return true;
    struct at_format F = at_format(x->dtype);
    return F.p <= T.p && F.max <= T.max && F.emin - F.p >= T.emin - T.p;
}

enum at_status at_bound(const struct at_attention *a, const struct at_arith *arith,
                        struct at_rows rows, struct at_answer *x)
{
    enum at_status status = at_validate(a, NULL);
    if (status != AT_OK)
        return status;
    struct rule r = at_rule(a, arith);
    if (arith->own.p == 0 && (!holds(r.compute, &a->q) || !holds(r.compute, &a->k) ||
                              !holds(r.compute, &a->v) || !holds(r.compute, &a->score.bias)))
        return AT_ERR_UNSUPPORTED;
    bool good = true;
#ifdef _OPENMP
#pragma omp parallel num_threads(a->plan.threads > 0 ? a->plan.threads : omp_get_max_threads())
#endif
    {
        struct worker w;
        bool made = at_bound_make(&w, &r);
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
        for (int64_t t = 0; t < rows.n; t += ROWS)
            if (made)
                bound_some(&w, rows, x, t, at_min(ROWS, rows.n - t));
        at_bound_free(&w);
        if (!made) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
            good = false;
        }
    }
    return good ? AT_OK : AT_ERR_MEMORY;
}

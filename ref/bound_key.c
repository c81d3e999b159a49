/* Lemmas 2, 3 and 4 of docs/bounds.md: what becomes of each key on its way into l and u.
 *
 * With W_j = e^(s_j-m) e^kappa_j the computed sums are l^ = sum W_j (1+rho_j) and
 * u^ = sum W_j (1+sigma_j) v_j:
 *     |kappa_j| <= E_j   score, argument, exp, rescales: shared by l and u, weighted by |v - o|
 *     |rho_j|   <= R_j   additions to l and its rescales: private
 *     |sigma_j| <= S_j   those of u, the product p v, P's own rounding: private
 * Order-free: how often a key is rescaled is bounded by how many keys may score above it. What is
 * known of the order (tiles, joins) enters by `path` alone; many light keys cost no more than they
 * weigh (Lemma 5). Proved by machine: rivals and path Formats.row_run and Formats.stream_depth, E
 * RowBound.shared_error, R and S RowBound.row_theorem_A; Lemma 5, lse_merge, normalised, underflow
 * of narrow P: tested, not proved. SPDX-License-Identifier: MIT */
#include "bound.h"
#include <stdlib.h>

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Scores in order of s + D, and l. */
static void rank(struct row *x, double lse)
{
    long double M = -INFINITY;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *k = &x->key[t];
        M = fmaxl(M, k->s);
        x->sorted[t] = (double)(k->s + k->D + k->sigma);
    }
    qsort(x->sorted, (size_t)x->n, sizeof *x->sorted, ascending);
    x->top = x->sorted[x->n - 1];
    x->l = fmin((double)x->n, fmax(1, (double)expl(lse - M))); /* an lse of 2^126 knows no better */
}

/* Lemma 2: how many keys may score above key k. */
static double rivals(const struct row *x, const struct key *k)
{
    double low = (double)(k->s - k->D - k->sigma);
    const double *from = x->sorted; /* without a branch on data: all before `from` are <= low */
    for (int64_t n = x->n; n > 0; n -= (n + 1) / 2)
        from += from[(n + 1) / 2 - 1] <= low ? (n + 1) / 2 : 0;
    bool itself = (double)(k->s + k->D + k->sigma) > low;
    return (double)(x->n - (from - x->sorted) - itself);
}

/* The most additions and rescales between a key and the end. A sink is one more of both. */
static void path(struct row *x)
{
    const struct at_arith *k = x->r->arith;
    double n = (double)x->n, sink = x->key[x->n - 1].j < 0, joins = (double)k->joins + sink;
    x->depth = x->rescales = n - 1;
    if (k->tile > 0 && n > sink) {
        struct at_span seen = at_keys(x->r->a, &x->r->z, x->at.b, x->at.i);
        int64_t first = seen.lo / k->tile, last = (seen.hi - 1) / k->tile;
        double tiles = (double)(last - first + 1);
        double above = tiles - 1 + joins, inside = fmin(n - sink, (double)k->tile) - 1;
        x->depth = fmin(n - 1, inside + above);
        x->rescales = fmin(n - 1, above);
    }
    if (k->normalised) /* two passes */
        x->rescales = 0;
    if (k->product_eps > 0) /* a product is three */
        x->depth = 3 * (x->depth + 1) - 1;
    if (k->truncates) /* a group of products is cut once more: bound_score.c */
        x->depth += ceil(x->depth / 4);
}

/* -- Joining by (out, lse) ----------------------------------------------------------------------
 */

/* An lse of the split, stored and read; exp(lse_split - lse) as a factor of out, and again inside
 * the common lse, whose error then is l's alone. joins counts how often. */
static void join_by_lse(const struct row *x, struct key *k)
{
    const struct rule *r = x->r;
    double levels = (double)at_max(1, r->arith->joins), ln_n = log((double)x->n);
    double size = fmax(fabs(x->top), (double)fabsl(k->s) + k->D) + ln_n + 1;
    double distance = x->top - (double)k->s + k->D + ln_n + 1;
    double stored = r->eps * size + r->log * (ln_n + 1), factor = r->eps * distance + r->one_exp;
    k->E += levels * (stored + factor) * WIDER;
    k->R = also(k->R, expm1(levels * (stored + factor)) * WIDER);
    k->S = also(also(k->S, growth(3 * levels, r->eps)), expm1(levels * factor) * WIDER);
}

/* -- One key -------------------------------------------------------------------------------------
 */

/* Surely the maximum: its argument is exactly 0, its weight and its product exact, and it is never
 * rescaled - unless exp(0) is not 1, or the weight is divided by l first. */
static bool stays_one(const struct row *x, double above)
{
    const struct at_arith *k = x->r->arith;
    return above == 0 && !k->fused && !k->inexact_one && (!k->normalised || x->n == 1);
}

static void key_errors(struct row *x, struct key *k)
{
    const struct rule *r = x->r;
    const struct at_arith *arith = r->arith;
    double above = rivals(x, k), eps = r->eps_sum;
    /* An exp(0) that is not 1 rescales also where the maximum stays. */
    double T = fmin(k->T, arith->inexact_one ? x->rescales : fmin(x->rescales, above));
    bool one = stays_one(x, above);
    double distance = x->top - (double)k->s + k->D + k->sigma;
    double more = r->gain_roundings * (k->factor != 0) + k->rounds_v;
    double weight = one ? 0 : r->eps_weight,
           own = k->factor == 0 || power_of_two(k->factor) ? 0 : 0x1p-51;
    k->T = T;
    k->E = k->D;
    if (!one)
        k->E += r->argument * distance + (T + 1) * (r->one_exp + r->tiny);
    if (arith->fused && T > 0) /* m log2 e is rounded, and differently under each m */
        k->E += 2 * r->eps * fmax(fabs(x->top), (double)fabsl(k->s) + k->D);
    if (arith->rounded_sum && !one)
        k->E += -log1p(-weight);
    k->R = growth(x->depth + T + (!one && r->narrow_total), r->eps_total);
    k->S = growth(x->depth + T + (!one || r->narrow_sum), eps);
    k->S = also(k->S, growth(more, fmax(eps, r->eps))); /* in compute, also where sums are finer */
    if (arith->normalised ? !one : r->finer) /* p/l; u, before it is divided, to compute */
        k->S = also(k->S, r->eps);
    if (r->finer && !arith->total && x->n > 1) /* l is rounded to compute */
        k->R = also(k->R, r->eps);
    k->S = also(also(k->S, arith->rounded_sum ? 0 : weight), arith->product_eps) + own;
    if (arith->lse_merge && x->n > 1)
        join_by_lse(x, k);
    k->E *= WIDER, k->S *= WIDER;
}

/* What underflow can take from a key, absolutely. */
static void underflow(struct row *x, int64_t t)
{
    const struct rule *r = x->r;
    struct key *k = &x->key[t];
    double ln_l = r->arith->normalised ? log(x->l) : 0; /* P is divided by l */
    double low = (double)k->s - x->top - 2 * k->E - ln_l - 1 -
                 log(x->common); /* the least ln of its weight */
    double normal = log(r->edge / 2);
    k->gone = low < normal;
    x->lost_y[t] = k->gone ? (x->rescales + 1) * r->tiny : 0;
    x->lost_v[t] = r->arith->normalised && k->gone ? r->tiny : 0;
    if (r->narrow_weight && low < r->ln_weight) {
        k->gone = true; /* from P at least */
        *(r->arith->rounded_sum ? &x->lost_y[t] : &x->lost_v[t]) += r->tiny_weight;
    }
    x->sums_lost = x->sums_lost || x->lost_y[t] > 0 || x->lost_v[t] > 0;
}

/* -- Weights -------------------------------------------------------------------------------------
 */

/* p and its range under E. The bound takes p from s, whose own error eta widens it outward: up,
 * down and priv are upper bounds, below a lower one. Where E leaves little of W-, or e^E is no
 * double, the range is kept as the two weights themselves, all scaled alike: the surest least
 * weight to 1. An upper one past e^200 is kept as that: the mean is then within e^-200 of that
 * key's value, or past it; at_bound_shared pays for it. */
static void weights(struct row *x, bool direct, double shift)
{
    x->direct = direct, x->shift = shift;
    x->below = x->up_sum = x->down_sum = x->R_mean = x->R_max = x->S_max = 0;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *k = &x->key[t];
        double high = k->ln_p + k->eta - shift, p = exp(high);
        double most = exp(fmin(k->ln_p + k->eta + k->E - shift, direct ? 200 : 700));
        double least = exp(k->ln_p - k->eta - shift - k->E);
        x->p[t] = p;
        x->up[t] = direct ? most : k->E > 1 ? most : p * expm1(k->E);
        x->down[t] = direct ? least : p * -expm1(-k->E);
        x->priv[t] = direct ? most : p + x->up[t]; /* p e^E, for now */
        x->below += least;
        x->up_sum += direct ? exp(k->ln_p + k->eta + k->E - x->largest) : x->up[t];
        x->down_sum += x->down[t];
    }
    x->below /= WIDER;
    for (int64_t t = 0; t < x->n; t++) { /* no key's share of sum w is more than 1 */
        double share = (direct ? fmin(x->priv[t], x->below) : x->priv[t]) * WIDER;
        x->R_mean += share * x->key[t].R;
        x->R_max = fmax(x->R_max, x->key[t].R);
        x->S_max = fmax(x->S_max, x->key[t].S);
        x->share[t] = share;
        x->priv[t] = share * x->key[t].S;
        x->few[t] = INFINITY;
    }
}

/* -- Few heavy keys ------------------------------------------------------------------------------
 */

/* How many weights are at least 2^-k of 1, k = 0..SCALES-1, and what the others weigh, and the k
 * where a sum errs least: additions of that many, and once more than all that the others are worth.
 */
enum { SCALES = 64 };

static double lightest(const struct row *x, double *additions)
{
    double many[SCALES] = {0}, mass[SCALES + 1] = {0}, best = INFINITY, at = 0, heavy = 0,
           light = 0;
    for (int64_t t = 0; t < x->n; t++) {
        int k = x->share[t] > 0 ? -ilogb(x->share[t]) : SCALES;
        k = k < 0 ? 0 : k;
        mass[k < SCALES ? k : SCALES] += x->share[t];
        if (k < SCALES)
            many[k]++;
    }
    for (int k = 0; k <= SCALES; k++)
        light += mass[k];
    for (int k = 0; k < SCALES; k++) {
        heavy += many[k], light -= mass[k];
        double error = growth(fmax(0, heavy - 1), x->r->eps_sum) + fmax(0, light);
        if (heavy > 0 && error < best)
            best = error, at = ldexp(1, -k), *additions = fmin(heavy - 1, x->depth);
    }
    return at;
}

/* The error of a rounded sum is no more than either of its terms. So of any tree over K heavy keys
 * and some light ones, each leaf meets at most K - 1 sums of two heavy sides, and every other sum
 * errs by no more than its light side. Needs rounding to nearest in one format. */
static void few(struct row *x)
{
    const struct rule *r = x->r;
    const struct at_arith *k = r->arith;
    double additions = 0, R = 0, S = 0, l = 0;
    if (x->direct || x->n < 3 || k->truncates || k->flush || k->lse_merge || k->product_eps > 0 ||
        k->total || r->finer || r->narrow_sum)
        return;
    double all = growth(x->depth, r->eps_sum), least = lightest(x, &additions);
    double heavy = growth(additions, r->eps_sum),
           light = heavy + 1 + growth(3 * x->depth, r->eps_sum);
    for (int64_t t = 0; t < x->n; t++) {
        R = fmax(R, besides(x->key[t].R, all));
        S = fmax(S, besides(x->key[t].S, all));
    }
    for (int64_t t = 0; t < x->n; t++) {
        double sums = x->share[t] < least ? light : heavy;
        l += x->share[t] * (besides(x->key[t].R, all) + (1 + R) * sums);
        x->few[t] = x->share[t] * (besides(x->key[t].S, all) + (1 + S) * sums);
    }
    x->R_mean = fmin(x->R_mean, l * WIDER);
}

/* What underflow takes of l by itself: each rescale of it may, and a sum where it is flushed or
 * does not hold every weight. */
static double lost_of_l(const struct row *x)
{
    const struct rule *r = x->r;
    double n = (double)x->n, rescaled = r->arith->joins > 0 ? n - 1 : x->rescales;
    double sums = r->arith->flush || r->narrow_total ? 2 * n : 0;
    return (2 * rescaled + sums) * r->tiny_sum;
}

void at_bound_errors(struct row *x, double lse, double lse_lo)
{
    const struct rule *r = x->r;
    const struct at_arith *arith = r->arith;
    double surest = -INFINITY;
    x->largest = -INFINITY;
    x->sums_lost = false;
    x->lost_weight = 0;
    rank(x, lse);
    path(x);
    at_bound_steps(x);
    for (int64_t t = 0; t < x->n; t++) {
        struct key *k = &x->key[t];
        key_errors(x, k);
        underflow(x, t);
        x->lost_weight += x->lost_y[t];
        long double ln_p = (k->s - lse) - lse_lo;
        k->ln_p = (double)ln_p;
        k->eta = k->sigma + 0x1p-50 * fabs(k->ln_p) + 0x1p-100 * fabs(lse);
        x->largest = fmax(x->largest, k->ln_p + k->eta + k->E);
        surest = fmax(surest, k->ln_p - k->eta - k->E);
    }
    weights(x, false, 0);
    if (!(x->below >= 0.5 && x->largest < 600))
        weights(x, true, surest);
    few(x);
    at_bound_order(x);
    /* Each operation on l and u may underflow once; a lone exact weight meets none. */
    double factor = x->key[0].factor;
    bool exact = factor == 0 || (power_of_two(factor) && factor >= 1 && !r->a->score.vscale.data);
    bool lone = at_bound_lone(x) && exact && !arith->flush && !r->narrow_sum;
    x->operations = lone ? 0 : 8 * (double)x->n * r->tiny_sum * fmax(1, r->gain);
    /* l^ >= l W-; and >= 1, as the largest weight is exactly 1. Divided P are summed as they are.
     */
    double whole = x->l * x->below * exp(x->direct ? x->shift : 0) / x->common;
    x->divisor = arith->fused || arith->inexact_one ? whole : fmax(1, whole);
    x->divisor = arith->normalised ? fmin(1, x->divisor) : x->divisor;
    x->lost_l = (lost_of_l(x) + x->lost_weight) * (1 + x->R_max);
    x->lost_l = x->lost_l > 0 ? x->lost_l / x->divisor : 0;
}

bool at_bound_lone(const struct row *x) { return x->n == 1 && stays_one(x, 0); }

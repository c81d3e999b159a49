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

/* -- Lemma 2 ---------------------------------------------------------------------------------- */

/* fmax of numbers, inline. */
static inline double larger(double x, double y) { return x > y ? x : y; }

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void sort_few(double *x, int64_t n)
{
    if (n > 32) {
        qsort(x, (size_t)n, sizeof *x, ascending);
        return;
    }
    for (int64_t t = 1; t < n; t++) {
        double y = x[t];
        int64_t at = t;
        for (; at > 0 && x[at - 1] > y; at--)
            x[at] = x[at - 1];
        x[at] = y;
    }
}

/* The bucket of a number, no lower than that of any smaller one. */
static int64_t bucket(const struct ranks *b, double x)
{
    double at = (x - b->low) * b->scale;
    return at > 0 ? at < (double)b->n ? (int64_t)at : b->n : 0;
}

/* x in ascending order by way of buckets of equal width, about as many as numbers: those of one
 * bucket are sorted by themselves, and rivals() need look nowhere else. */
static void sort(struct ranks *b, double *x, int64_t n, double *space)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        low = x[t] < low ? x[t] : low;
        high = x[t] > high ? x[t] : high;
    }
    double scale = (double)n / (high - low);
    *b = (struct ranks){n, low, scale < INFINITY ? scale : 0, b->start};
    memset(b->start, 0, (size_t)(n + 2) * sizeof *b->start);
    for (int64_t t = 0; t < n; t++) {
        space[t] = x[t];
        b->start[bucket(b, x[t]) + 1]++;
    }
    for (int64_t k = 0; k <= n; k++)
        b->start[k + 1] += b->start[k];
    for (int64_t t = 0; t < n; t++) /* each start moves to its bucket's end, and back below */
        x[b->start[bucket(b, space[t])]++] = space[t];
    memmove(b->start + 1, b->start, (size_t)(n + 1) * sizeof *b->start);
    b->start[0] = 0;
    for (int64_t k = 0; k <= n; k++)
        sort_few(x + b->start[k], b->start[k + 1] - b->start[k]);
}

/* Scores in order of s + D, and l. */
static void rank(struct row *x, double lse)
{
    double M = -INFINITY;
    for (int64_t t = 0; t < x->n; t++) {
        M = x->key[t].s > M ? x->key[t].s : M;
        x->sorted[t] = highest(&x->key[t]);
    }
    sort(&x->store->ranks, x->sorted, x->n, x->store->space);
    x->top = x->sorted[x->n - 1];
    x->l = fmin((double)x->n, fmax(1, exp(lse - M))); /* an lse of 2^126 knows no better */
}

/* Lemma 2: how many keys may score above key k; once past `most`, any such number. */
static double rivals(const struct row *x, const struct key *k, double most)
{
    double low = lowest(k);
    int64_t past = x->n - 2 - (int64_t)most;
    if (past >= 0 && x->sorted[past] > low)
        return most + 1;
    const struct ranks *b = &x->store->ranks;
    int64_t in = bucket(b, low), n = b->start[in + 1] - b->start[in];
    const double *from = x->sorted + b->start[in]; /* all before `from` are <= low */
    for (; n > 0; n -= (n + 1) / 2)
        from += from[(n + 1) / 2 - 1] <= low ? (n + 1) / 2 : 0;
    bool itself = highest(k) > low;
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

/* -- Joining by (out, lse) -------------------------------------------------------------------- */

/* An lse of the split, stored and read; exp(lse_split - lse) as a factor of out, and again inside
 * the common lse, whose error then is l's alone. joins counts how often. */
static void join_by_lse(const struct row *x, struct key *k)
{
    const struct rule *r = x->r;
    double levels = (double)at_max(1, r->arith->joins), ln_n = log((double)x->n);
    double size = fmax(fabs(x->top), fabs(k->s) + k->D) + ln_n + 1;
    double distance = x->top - k->s + k->D + ln_n + 1;
    double stored = r->eps * size + r->log * (ln_n + 1), factor = r->eps * distance + r->one_exp;
    k->E += levels * (stored + factor) * WIDER;
    k->R = also(k->R, expm1(levels * (stored + factor)) * WIDER);
    k->S = also(also(k->S, growth(3 * levels, r->eps)), expm1(levels * factor) * WIDER);
}

/* -- One key ---------------------------------------------------------------------------------- */

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
    double above = rivals(x, k, x->rescales), eps = r->eps_sum;
    /* An exp(0) that is not 1 rescales also where the maximum stays. */
    double T = fmin(k->T, arith->inexact_one ? x->rescales : fmin(x->rescales, above));
    bool one = stays_one(x, above);
    double distance = x->top - k->s + k->D + k->sigma;
    double more = r->gain_roundings * (k->factor != 0) + k->rounds_v;
    double weight = one ? 0 : r->eps_weight,
           own = k->factor == 0 || power_of_two(k->factor) ? 0 : 0x1p-51;
    k->T = T;
    k->E = k->D;
    if (!one)
        k->E += r->argument * distance + (T + 1) * (r->one_exp + r->tiny);
    if (arith->fused && T > 0) /* m log2 e is rounded, and differently under each m */
        k->E += 2 * r->eps * fmax(fabs(x->top), fabs(k->s) + k->D);
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

/* What underflow can take from a key, absolutely; past: what its weight is divided by, ln. */
static void underflow(struct row *x, int64_t t, double past)
{
    const struct rule *r = x->r;
    struct key *k = &x->key[t];
    double low = k->s - x->top - 2 * k->E - past; /* the least ln of its weight */
    k->gone = low < r->ln_normal;
    x->lost_y[t] = k->gone ? (x->rescales + 1) * r->tiny : 0;
    x->lost_v[t] = r->arith->normalised && k->gone ? r->tiny : 0;
    if (r->narrow_weight && low < r->ln_weight) {
        k->gone = true; /* from P at least */
        *(r->arith->rounded_sum ? &x->lost_y[t] : &x->lost_v[t]) += r->tiny_weight;
    }
    x->sums_lost = x->sums_lost || x->lost_y[t] > 0 || x->lost_v[t] > 0;
}

/* -- Weights ---------------------------------------------------------------------------------- */

/* One key, whatever E. */
static void range(struct row *x, int64_t t, bool direct)
{
    const struct key *k = &x->key[t];
    double high = k->ln_p + k->eta, p = exp(high - x->shift);
    x->p[t] = p;
    double most = exp(fmin(high + k->E - x->shift, direct ? 200 : 700));
    double least = exp((k->ln_p - k->eta - k->E) - x->shift); /* <= 1 in direct form: as shift */
    x->up[t] = direct ? most : k->E > 1 ? most : p * expm1(k->E);
    x->down[t] = direct ? least : p * -expm1(-k->E);
    x->priv[t] = direct ? most : p + x->up[t]; /* p e^E, for now */
    x->below += least;
    x->up_sum += direct ? exp(high + k->E - x->largest) : x->up[t];
    x->down_sum += x->down[t];
}

/* p and its range under E. The bound takes p from s, whose own error eta widens it outward: up,
 * down and priv are upper bounds, below a lower one. Where E leaves little of W-, or e^E is no
 * double, the range is kept as the two weights themselves, all scaled alike: the surest least
 * weight to 1. An upper one past e^200 is kept as that: the mean is then within e^-200 of that
 * key's value, or past it; at_bound_shared pays for it. */
static void weights(struct row *x, bool direct, double shift)
{
    x->direct = direct, x->shift = shift;
    x->below = x->up_sum = x->down_sum = x->R_mean = x->R_max = x->S_max = 0;
    x->has_few = false;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *k = &x->key[t];
        if (direct || !(k->E <= 0x1p-7) || !(k->eta <= 0x1p-20)) {
            range(x, t, direct);
            continue;
        }
        double E = k->E, p = exp(k->ln_p) * (1 + k->eta);    /* to within eta^2/2 */
        double down = E * (1 - E * (1. / 2 - E * (1. / 6))); /* 1 - e^-E, and more */
        x->p[t] = p;
        x->up[t] = p * small_expm1(E), x->down[t] = p * down;
        x->priv[t] = p + x->up[t];
        x->below += p * (1 - 3 * k->eta) * (1 - down);
        x->up_sum += x->up[t], x->down_sum += x->down[t];
    }
    x->below /= WIDER;
    for (int64_t t = 0; t < x->n; t++) { /* no key's share of sum w is more than 1 */
        double share = (direct ? fmin(x->priv[t], x->below) : x->priv[t]) * WIDER;
        x->R_mean += share * x->key[t].R;
        x->R_max = larger(x->R_max, x->key[t].R);
        x->S_max = larger(x->S_max, x->key[t].S);
        x->share[t] = share;
        x->priv[t] = share * x->key[t].S;
    }
}

/* -- Few heavy keys --------------------------------------------------------------------------- */

/* How many weights are at least 2^-k of 1, k = 0..SCALES-1, what the others weigh, and the k where
 * a sum errs least: additions of that many, and once more than all that the others are worth. */
enum { SCALES = 64 };

struct split {
    double least, additions, error; /* the lightest heavy weight; sums of two such; of l in all */
};

static struct split split(const struct row *x)
{
    double many[SCALES] = {0}, mass[SCALES + 1] = {0}, heavy = 0, light = 0;
    struct split best = {0, 0, INFINITY};
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
        if (heavy > 0 && error < best.error)
            best = (struct split){ldexp(1, -k), fmin(heavy - 1, x->depth), error};
    }
    return best;
}

/* The error of a rounded sum is no more than either of its terms. So of any tree over K heavy keys
 * and some light ones, each leaf meets at most K - 1 sums of two heavy sides, and every other sum
 * errs by no more than its light side. Needs rounding to nearest in one format. */
static void few(struct row *x)
{
    const struct rule *r = x->r;
    const struct at_arith *k = r->arith;
    double R = 0, S = 0, l = 0;
    if (x->direct || x->n < 3 || !(x->R_max < 1) || k->truncates || k->flush || k->lse_merge ||
        k->product_eps > 0 || k->total || r->finer || r->narrow_sum)
        return;
    double all = growth(x->depth, r->eps_sum), part = 1 / (1 + all);
    struct split best = split(x);
    double heavy = growth(best.additions, r->eps_sum),
           light = heavy + 1 + growth(3 * x->depth, r->eps_sum);
    for (int64_t t = 0; t < x->n; t++) {
        double of_l = besides(x->key[t].R, all, part), of_u = besides(x->key[t].S, all, part);
        R = larger(R, of_l), S = larger(S, of_u);
    }
    for (int64_t t = 0; t < x->n; t++) {
        double sums = x->share[t] < best.least ? light : heavy;
        l += x->share[t] * (besides(x->key[t].R, all, part) + (1 + R) * sums);
        x->few[t] = x->share[t] * (besides(x->key[t].S, all, part) + (1 + S) * sums);
    }
    x->R_mean = fmin(x->R_mean, l * WIDER);
    x->has_few = true;
}

/* May the sums over the keys take the short way (bound_sum.c)? Where sum p (e^E - 1) <= 2^-8, rise
 * is at most that much and the weight above o, times the largest v - o: the range of v would lower
 * it by less than 1 %. */
static void shorten(struct row *x)
{
    x->fine = !x->direct && x->up_sum <= 0x1p-8;
    for (int64_t t = 0; t < x->n && x->fine; t++)
        x->fine = x->key[t].factor == 1 || x->key[t].factor == 0;
    for (int64_t t = 0; t < x->n && x->fine; t++) {
        double up = x->up[t], down = x->down[t];
        x->up[t] = (up + down) / 2, x->down[t] = (up - down) / 2;
    }
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
    double past = (arith->normalised ? log(x->l) : 0) + 1 + log(x->common); /* P divided by l */
    for (int64_t t = 0; t < x->n; t++) {
        struct key *k = &x->key[t];
        key_errors(x, k);
        underflow(x, t, past);
        x->lost_weight += x->lost_y[t];
        k->ln_p = (k->s - lse) + (k->s_lo - lse_lo);
        k->eta = k->sigma + 0x1p-50 * fabs(k->ln_p) + 0x1p-100 * fabs(lse);
        x->largest = larger(x->largest, k->ln_p + k->eta + k->E);
        surest = larger(surest, k->ln_p - k->eta - k->E);
    }
    weights(x, false, 0);
    if (!(x->below >= 0.5 && x->largest < 600))
        weights(x, true, surest);
    few(x);
    at_bound_order(x);
    shorten(x);
    /* Each operation on l and u may underflow once; a lone exact weight meets none. */
    double factor = x->key[0].factor;
    bool exact = factor == 0 || (power_of_two(factor) && factor >= 1 && !r->a->score.vscale.data);
    bool lone = at_bound_lone(x) && exact && !arith->flush && !r->narrow_sum;
    x->operations = lone ? 0 : 8 * (double)x->n * r->tiny_sum * fmax(1, r->gain);
    /* l^ >= l W-; and >= 1, as the largest weight is exactly 1. Divided P: summed as they are. */
    double whole = x->l * x->below * exp(x->direct ? x->shift : 0) / x->common;
    x->divisor = arith->fused || arith->inexact_one ? whole : fmax(1, whole);
    x->divisor = arith->normalised ? fmin(1, x->divisor) : x->divisor;
    x->lost_l = (lost_of_l(x) + x->lost_weight) * (1 + x->R_max);
    x->lost_l = x->lost_l > 0 ? x->lost_l / x->divisor : 0;
}

bool at_bound_lone(const struct row *x) { return x->n == 1 && stays_one(x, 0); }

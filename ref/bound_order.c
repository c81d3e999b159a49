/* (A-ord) of docs/bounds.md: private errors where the order of the sums is known.
 *
 * An arithmetic may state `ordered`: keys join their tile's sums one after another, ascending, and
 * tiles those of the row. Each addition and each rescale then errs by at most eps times a sum of
 * known keys J, with computed weights w:
 *
 *     |u^ - sum w v| <= sum_j w_j s_j |v_j| (1+eps)^h + eps (1+eps)^h sum_J |sum_J w v|
 *     |sum_J w v|    <= |sum_J p v| + sum_J p (e^E - 1) |v|
 *
 * s_j is what sigma_j has besides additions and rescales; l alike with v = 1. With v of both signs
 * the partial sums are small where sum p|v| is not. A rescale is there only where a tile's scores
 * may be larger than all before them (Lemma 2, ordered). Proved by machine (proofs/): the sum,
 * Ordered.ordered_error, Ordered.partial_sum_weights; which operations count: tested, not proved.
 * Not here: splits (their ends are not stated), sums that are cut, joins by lse.
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include "lanes.h"

/* What becomes of the sums at a key. */
enum {
    JOINS = 1,  /* it is added to others of its tile */
    ENDS = 2,   /* it is its tile's last: the row takes the tile in, */
    TAKEN = 4,  /* by an addition, */
    RAISES = 8, /* and rescales what it has */
};

static bool known(const struct at_arith *k)
{
    return k->ordered && k->tile > 0 && k->joins == 0 && !k->lse_merge;
}

/* A sink joins last, by itself. */
static int64_t tile_of(const struct row *x, int64_t t)
{
    int64_t j = x->key[t].j;
    return j < 0 ? INT64_MAX : j / x->r->arith->tile;
}

/* The tile of keys [from,to): surest, the maximum that was surely reached, rises. */
static void mark(struct row *x, int64_t from, int64_t to, double *surest)
{
    const struct at_arith *k = x->r->arith;
    double most = -INFINITY, least = -INFINITY;
    for (int64_t t = from; t < to; t++) {
        double high = highest(&x->key[t]), low = lowest(&x->key[t]);
        most = high > most ? high : most, least = low > least ? low : least;
        x->step[t] = t > from ? JOINS : 0;
    }
    int step = ENDS;
    if (from > 0 && x->key[from].j >= 0) /* the first tile is added to 0, a sink's value is 0 */
        step |= TAKEN;
    if (from > 0 && !k->normalised && (k->inexact_one || most > *surest))
        step |= RAISES;
    x->step[to - 1] |= (unsigned char)step;
    *surest = fmax(*surest, least);
}

void at_bound_steps(struct row *x)
{
    double surest = -INFINITY;
    double T = 0, own = 0;
    for (int64_t t = 0; t < x->n; t++)
        x->key[t].T = INFINITY;
    if (!known(x->r->arith))
        return;
    for (int64_t from = 0, to; from < x->n; from = to) {
        for (to = from; to < x->n && tile_of(x, to) == tile_of(x, from); to++)
            ;
        mark(x, from, to, &surest);
    }
    for (int64_t t = x->n - 1; t >= 0; t--) { /* T: later tiles that rescale */
        own = x->step[t] & ENDS ? (x->step[t] & RAISES) != 0 : own;
        x->key[t].T = x->key[t].j < 0 ? 1 : T; /* a sink's weight is rescaled itself */
        T += x->step[t] & JOINS ? 0 : own;
    }
}

/* sum over J of sum_J p e^E: what each addition and rescale of l is relative to. */
static double sums_of_l(const struct row *x)
{
    double tile = 0, sum = 0, run = 0;
    for (int64_t t = 0; t < x->n; t++) {
        int step = x->step[t];
        tile += x->share[t];
        run += step & JOINS ? tile : 0;
        if (!(step & ENDS))
            continue;
        run += step & RAISES ? sum : 0;
        sum += tile;
        run += step & TAKEN      ? sum
               : x->key[t].j < 0 ? sum + tile
                                 : 0; /* a sink: b 1, then the sum */
        tile = 0;
    }
    return run;
}

void at_bound_order(struct row *x)
{
    const struct rule *r = x->r;
    const struct at_arith *k = r->arith;
    double T = -1, l = 0, u = 0, of_l = 1, of_u = 1, S = 0, R = 0, rest = 0, n = (double)x->n;
    x->ordered = known(k) && x->n > 1 && !x->direct && !k->truncates && !(k->product_eps > 0);
    if (!x->ordered)
        return;
    double all_u = 1 + growth(x->depth + x->rescales + 1, r->eps_sum),
           all_l = 1 + growth(x->depth + x->rescales + 1, r->eps_total);
    for (int64_t t = 0; t < x->n; t++) { /* s_j; l's is only summed */
        const struct key *y = &x->key[t];
        if (y->T != T) {
            T = y->T, u = growth(x->depth + T, r->eps_sum), l = growth(x->depth + T, r->eps_total);
            of_u = 1 / (1 + u), of_l = 1 / (1 + l);
        }
        double s = besides(y->S, u, of_u), own = besides(y->R, l, of_l);
        x->own[t] = s, S = s > S ? s : S, R = own > R ? own : R;
        rest += x->share[t] * own;
    }
    x->order_eps = r->eps_sum * all_u * (1 + S) * WIDER;
    for (int64_t t = 0; t < x->n; t++) {
        const struct key *y = &x->key[t];
        double eta = y->eta <= 0x1p-4 ? 2 * y->eta * (1 + 2 * y->eta) : expm1(2 * y->eta);
        double off = eta + (n + 16) * 0x1p-52; /* of p and of sums of p v here */
        x->own[t] = x->share[t] * x->own[t] * all_u * WIDER +
                    x->order_eps * (x->depth + y->T) * (x->up[t] + off * x->p[t]);
    }
    l = all_l * (rest + r->eps_total * (1 + R) * sums_of_l(x));
    x->R_mean = fmin(x->R_mean, l * WIDER);
}

AT_CLONES void at_bound_order_sum(const struct row *x, int64_t from, int64_t to, struct columns *s)
{
    double own[WIDE], tile[WIDE], sum[WIDE], run[WIDE];
    for (int c = 0; c < WIDE; c++)
        own[c] = s->own[c], tile[c] = s->tile[c], sum[c] = s->sum[c], run[c] = s->run[c];
    for (int64_t t = from; t < to; t++) {
        const double *restrict v = x->panel[t] + s->c * NEAR;
        double factor = x->key[t].factor, p = x->p[t] * factor, o = x->own[t] * fabs(factor);
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            tile[c] = fma(p, v[c], tile[c]);
            own[c] = fma(o, fabs(v[c]), own[c]);
        }
        if (x->step[t] & JOINS) {
#pragma omp simd
            for (int c = 0; c < WIDE; c++)
                run[c] += fabs(tile[c]);
        }
        if (!(x->step[t] & ENDS))
            continue;
        double raises = x->step[t] & RAISES ? 1 : 0, taken = x->step[t] & TAKEN ? 1 : 0;
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            run[c] += raises * fabs(sum[c]);
            sum[c] += tile[c];
            run[c] += taken * fabs(sum[c]);
            tile[c] = 0;
        }
    }
    for (int c = 0; c < WIDE; c++)
        s->own[c] = own[c], s->tile[c] = tile[c], s->sum[c] = sum[c], s->run[c] = run[c];
}

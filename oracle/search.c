/* Inputs on which rounding is worst, found by hill climbing.
 *
 * A climber is one row over a few keys: scores lie in one column of k, values in one of v, all
 * numbers of the dtype. Its height is the error of a machine that rounds every operation
 * (at_simulate) over the largest |v|; it moves a number or two and keeps what is not lower. Neither
 * the bound nor a preset nor the clock takes part, so that the same recipe climbs to the same
 * inputs for ever. The best climbers, by turns of the heads, are repeated along the keys. Not here:
 * a proof that there is nothing worse. SPDX-License-Identifier: MIT */
#include "at_simulate.h"
#include "generate.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>

enum { CLIMBERS = 16, KEYS = 16, STEPS = 1000, REACH = 20, LARGEST = 2 }; /* of |s|, of |v| */

struct swarm {
    struct at_brush brush;
    uint64_t drawn;
    struct at_format f; /* of k and v */
    int64_t n;
    double unit; /* of a score: k = unit s */
    double q[CLIMBERS], k[CLIMBERS * KEYS], v[CLIMBERS * KEYS];
    double best_k[CLIMBERS][KEYS], best_v[CLIMBERS][KEYS], best[CLIMBERS];
    double got[2 * CLIMBERS];
    struct at_attention a;
    struct at_machine m;
    struct at_answer truth;
};

/* P is rounded as kernels of the dtype round it. */
static struct at_machine machine_of(enum at_dtype dtype)
{
    struct at_machine m = {.compute = at_float_of(AT_F32)};
    if (dtype == AT_F8_E4M3 || dtype == AT_F8_E5M2)
        m.weight = at_float_of(AT_F8_E4M3), m.weight_shift = 8;
    else if (dtype != AT_F32)
        m.weight = at_float_of(dtype);
    return m;
}

const char *at_unfit_search(const struct at_canvas *x)
{
    return x->want->dtype == AT_F64 ? "the machines that are searched on have at most 24 bits"
                                    : NULL;
}

/* -- Moves ----------------------------------------------------------------------------------- */

static int64_t draw(struct swarm *w, int64_t lo, int64_t hi)
{
    return at_integer(w->brush, w->drawn++, lo, hi);
}

static double unit(struct swarm *w) { return (double)draw(w, -(1 << 20), 1 << 20) * 0x1p-20; }

static double within(double x, double most) { return x > most ? most : x < -most ? -most : x; }

static double score(const struct swarm *w, double s)
{
    return at_nearest(w->unit * within(s, REACH), w->f);
}

static double value(const struct swarm *w, double v)
{
    return at_nearest(within(v, LARGEST), w->f);
}

/* Scores of one spread, values of one shape: near 1.5, of either sign, or of opposite halves. */
static void start(struct swarm *w, int64_t t)
{
    static const double spreads[] = {0, 0.5, 1, 4, 20};
    double spread = spreads[draw(w, 0, 4)];
    int64_t shape = draw(w, 0, 2);
    for (int64_t j = 0; j < w->n; j++) {
        double near = 1.5 + unit(w) / 2;
        w->best_k[t][j] = score(w, spread * unit(w));
        w->best_v[t][j] = value(w, shape == 1                   ? unit(w)
                                   : shape == 2 && 2 * j < w->n ? -near
                                                                : near);
    }
    w->best[t] = -1;
}

/* x a little further, a few last bits further, or elsewhere. */
static double moved(struct swarm *w, double x)
{
    switch (draw(w, 0, 3)) {
    case 0: return x * (1 + unit(w) / 8);
    case 1: return x + (double)draw(w, -8, 8) * ldexp(1, (x == 0 ? 0 : ilogb(x)) - w->f.p);
    case 2: return unit(w);
    default: return draw(w, 0, 1) ? -x : 1.5 + unit(w) / 2;
    }
}

static void vary(struct swarm *w, int64_t t)
{
    int64_t many = w->best[t] < 0 ? 0 : draw(w, 0, 3) ? draw(w, 1, 2) : draw(w, 1, w->n);
    double *k = w->k + t * w->n, *v = w->v + t * w->n;
    memcpy(k, w->best_k[t], (size_t)w->n * sizeof *k);
    memcpy(v, w->best_v[t], (size_t)w->n * sizeof *v);
    for (; many > 0; many--) {
        int64_t j = draw(w, 0, w->n - 1);
        if (draw(w, 0, 1))
            k[j] = score(w, moved(w, k[j] / w->unit));
        else
            v[j] = value(w, moved(w, v[j]));
    }
}

/* -- Heights --------------------------------------------------------------------------------- */

static double largest(const struct swarm *w, int64_t t)
{
    double most = 0;
    for (int64_t j = 0; j < w->n; j++)
        most = fmax(most, fabs(w->v[t * w->n + j]));
    return most;
}

static bool generation(struct swarm *w)
{
    struct at_rows rows = {CLIMBERS, NULL};
    for (int64_t t = 0; t < CLIMBERS; t++)
        vary(w, t);
    if (at_truth_fast(&w->a, rows, &w->truth) != AT_OK ||
        at_simulate(&w->a, &w->m, rows, w->got, w->got + CLIMBERS) != AT_OK)
        return false;
    for (int64_t t = 0; t < CLIMBERS; t++) {
        double height = fabs(w->got[t] - w->truth.out[t]) / largest(w, t);
        if (!(height >= w->best[t]))
            continue;
        w->best[t] = height;
        memcpy(w->best_k[t], w->k + t * w->n, (size_t)w->n * sizeof *w->k);
        memcpy(w->best_v[t], w->v + t * w->n, (size_t)w->n * sizeof *w->v);
    }
    return true;
}

/* The climber of rank r, 0 the highest. */
static int64_t ranked(const struct swarm *w, int64_t r)
{
    for (int64_t t = 0; t < CLIMBERS; t++) {
        int64_t above = 0;
        for (int64_t k = 0; k < CLIMBERS; k++)
            above += w->best[k] > w->best[t] || (w->best[k] == w->best[t] && k < t);
        if (above == r)
            return t;
    }
    return 0;
}

/* -- The case -------------------------------------------------------------------------------- */

static void open_swarm(struct swarm *w, const struct at_canvas *x, double Q)
{
    w->brush = at_canvas_brush(x, 7);
    w->f = at_format(x->want->dtype);
    w->n = at_min(x->Skv, KEYS);
    w->unit = 1 / (Q * x->a.score.scale);
    w->m = machine_of(x->want->dtype);
    w->a = at_plain(at_bhsd(w->q, AT_F64, CLIMBERS, 1, 1, 1),
                    at_bhsd(w->k, AT_F64, CLIMBERS, 1, w->n, 1),
                    at_bhsd(w->v, AT_F64, CLIMBERS, 1, w->n, 1), x->a.score.scale);
    w->a.plan = (struct at_plan){.br = 1, .bc = w->n, .lanes = 1, .splits = 1, .threads = 1};
    for (int64_t t = 0; t < CLIMBERS; t++) {
        w->q[t] = Q;
        start(w, t);
    }
}

/* One column of q and k makes the scores; columns of v are powers of two of one. */
static void lay(const struct swarm *w, struct at_canvas *x, double Q)
{
    for (int64_t t = x->D - 1; t < at_q_n(x); t += x->D)
        x->q[t] = Q;
    for (int64_t r = 0; r < x->B * x->Hkv * x->Skv; r++) {
        int64_t t = ranked(w, r / x->Skv % CLIMBERS), j = r % x->Skv % w->n;
        x->k[r * x->D + x->D - 1] = w->best_k[t][j];
        for (int64_t c = 0; c < x->Dv; c++)
            x->v[r * x->Dv + c] = w->best_v[t][j] * (double)(1 << c % 4) * (c % 2 ? -1 : 1);
    }
}

void at_fill_search(struct at_canvas *x)
{
    double Q = 1;
    struct swarm *w = calloc(1, sizeof *w);
    while (Q * x->a.score.scale < 1)
        Q *= 2;
    if (!w) {
        x->failed = true;
        return;
    }
    open_swarm(w, x, Q);
    bool good = at_answer_make(&w->truth, CLIMBERS, 1) == AT_OK;
    for (int step = 0; good && step < STEPS; step++)
        good = generation(w);
    if (good)
        lay(w, x, Q);
    x->failed = !good;
    at_answer_free(&w->truth);
    free(w);
}

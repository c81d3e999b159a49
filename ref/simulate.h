/* The operations of a simulated machine, each rounded as it says. SPDX-License-Identifier: MIT */
#ifndef SIMULATE_H
#define SIMULATE_H

#include "at_math.h"
#include "at_simulate.h"
#include "ref.h"

struct sim {
    const struct at_attention *a;
    const struct at_machine *m;
    struct at_sizes z;
    struct at_place at;
    struct at_float dots, sums, totals; /* formats of the three kinds of sums */
    uint64_t count;
    double base;        /* fused: e^(s - m) is 2^(base (s - m)) */
    bool folded;        /* ... and the scale is in base; then scores have its sign */
    double *q, *kv, *s; /* the query, one key or value, one tile's scores and whose they are */
    int64_t *key;
    double *score, *p; /* of each key of the row, once known */
    unsigned char *known;
    double most, whole; /* normalised: the row's maximum, its l; 0 in the first pass */
    struct state {
        double m, l, *u;
        bool some; /* keys, or a sink */
    } * part, tile;
};

double at_sim_round(struct sim *w, double x, const struct at_float *f);
double at_sim_add(struct sim *w, double x, double y, const struct at_float *f); /* x may be exact */
double at_sim_mul(struct sim *w, double x, double y);
double at_sim_quotient(struct sim *w, double x, double y);
double at_sim_product(struct sim *w, double x, double y); /* exact but for product_eps */
double at_sim_tanh(struct sim *w, double x);
double at_sim_log(struct sim *w, double x);
double at_sim_weight(struct sim *w, double s, double m); /* e^(s - m) */
double at_sim_worth(struct sim *w, double m, double to); /* e^(m - to), 1 where they are equal */
double at_sim_score(struct sim *w, int64_t j);
/* n numbers from `at` of a row, times its descale. */
void at_sim_load(struct sim *w, const struct at_view *x, int64_t at, const struct at_view *descale,
                 int64_t h, int64_t s, int64_t n, double *to);
void at_sim_query(struct sim *w);

#endif

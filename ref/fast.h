/* What the files of the fast truth share: LANES query rows of one (b, key head), side by side.
 * Lemmas and symbols as in docs/fast-truth.md. SPDX-License-Identifier: MIT */
#ifndef FAST_H
#define FAST_H

#include "at_index.h"
#include "fast_double.h"

enum { LANES = 8, TILE = 64 }; /* rows side by side; keys at a time */

/* Errors in units of eps^2. Lemma G: of a score, times |scale| |q| |k|. */
#define SCORE_UNITS(D) (2.02 * (double)(D) * ((double)(D) + 3))
/* Lemma S: of what a score is made of in base 2, in natural units; of softcap, times softcap. */
#define STEP_UNITS 32
#define CAP_UNITS 81
/* Lemma D: of a tile's sum, times sum p|v|; one tile joining the sums of the others. */
#define SUM_UNITS ((double)TILE * TILE + 6.0 * TILE + 2)
#define JOIN_UNITS 3.1
#define NO_KEY (-0x1p41) /* the reference before any key, the score of a hidden one */

/* Keys first.. of one (b, g), decoded: tiles begin at multiples of TILE whatever the rows. */
struct fast_keys {
    int64_t b, g, first, n, D, Dv;
    double *k;    /* (n, D) */
    double *v;    /* by tile (Dv, TILE) */
    double *norm; /* >= |k_j|; +inf: the row or its factors are not served */
    double *kscale, *vscale;
};

/* Rows, and what they know: m, l, u of the reference algorithm and the errors of l and u. */
struct fast_rows {
    const struct at_attention *a;
    struct at_sizes z;
    int n;
    int64_t t[LANES]; /* number in the answer */
    struct at_place at[LANES];
    struct at_span span[LANES];
    double *q; /* (D, LANES), as stored */
    double norm[LANES], scale_h[LANES], scale_l[LANES], slope[LANES], sink[LANES];
    double alpha[LANES]; /* eps_j = alpha |k_j| + beta .. */
    double kappa[LANES]; /* what every key is charged */
    double softcap, far;
    struct dd cap, keep, inner; /* log2(e) softcap; 1 - p; 2/softcap */
    double bad[LANES];          /* not 0: not served */
    double seen[LANES];         /* keys */
    double m[LANES], lh[LANES], ll[LANES], le[LANES];
    double *uh, *ul, *ue; /* (Dv, LANES) */
};

/* One tile: (TILE, LANES) each. */
struct fast_tile {
    double *sh, *sl; /* q k; scores in base 2; weights */
    double *error;   /* eps_j; the weight's share of every error */
    double *size;    /* sum of the magnitudes that a score is made of */
    double *on;      /* 1: seen */
    double *pull;    /* factor of the value: descale, 0 where dropped */
    double *bias;
    double top[LANES]; /* the new reference */
};

/* -- fast_keys.c ------------------------------------------------------------------------------ */

bool at_fast_keys_make(struct fast_keys *x, int64_t n, int64_t D, int64_t Dv);
void at_fast_keys_free(struct fast_keys *x);
/* Keys lo <= j < hi of (b, g). */
void at_fast_keys_load(struct fast_keys *x, const struct at_attention *a, struct at_span s);
bool at_fast_rows_make(struct fast_rows *x, const struct at_attention *a);
void at_fast_rows_free(struct fast_rows *x);
/* Rows x->at[0 .. x->n) and empty states. */
void at_fast_rows_load(struct fast_rows *x);

/* -- fast_score.c, fast_sum.c ----------------------------------------------------------------- */

struct fast_dot {
    int64_t D;
    const double *k, *k_norm; /* (TILE, D), (TILE) */
    const double *q, *q_norm; /* (D, LANES), (LANES) */
    double *sh, *sl;          /* (TILE, LANES) */
};
void at_fast_dot(const struct fast_dot *x); /* Lemma G */
/* Scores of the tile that begins at key j0, and what they may be off by. */
void at_fast_scores(struct fast_rows *x, const struct fast_keys *keys, int64_t j0,
                    struct fast_tile *to);
/* The sums at the reference `top`, an integer at or above m: exact, or charged. */
void at_fast_rescale(struct fast_rows *x, const double *top);
void at_fast_weights(struct fast_rows *x, struct fast_tile *s);

struct fast_values {
    int64_t Dv;
    const double *v;               /* (Dv, TILE) */
    const double *ph, *pl, *error; /* (TILE, LANES) */
    double *uh, *ul, *ue;          /* (Dv, LANES) */
};
void at_fast_values(const struct fast_values *x); /* Lemma D */
void at_fast_sink(struct fast_rows *x);

#endif

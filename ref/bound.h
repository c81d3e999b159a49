/* What the files of the bound share: one row, and what a stated arithmetic does to its keys.
 * Symbols as in docs/bounds.md. SPDX-License-Identifier: MIT */
#ifndef BOUND_H
#define BOUND_H

#include "at_index.h"
#include "ref.h"
#include <math.h>

/* The bound's own arithmetic is plain double and long double. Every sum has non-negative terms, so
 * n of them err by at most n 2^-52 relatively; a quantity that must not come out too small is
 * multiplied by WIDER, which covers 2^30 such roundings and the errors of libm. What does cancel -
 * scores, v - o - is charged by name (sigma, eta). */
#define WIDER (1 + 0x1p-20)

/* Columns that are worked on together: a cache line of doubles. */
enum { WIDE = 8 };

/* Rows that are worked on together, NEAR keys at a time, so that K and V are read once for all. */
enum { ROWS = 8, NEAR = 64 };

/* A stated arithmetic on one problem, worked out once. */
struct rule {
    const struct at_attention *a;
    const struct at_arith *arith;
    struct at_sizes z;
    struct at_format compute;
    double eps, tiny, edge;   /* compute: a result below edge may lose up to tiny, absolutely */
    double ln_normal;         /* ln of its smallest normal number */
    double eps_sum, tiny_sum; /* of u, and of l but for: */
    double eps_total;         /* of l */
    bool finer;               /* sums are finer than compute, and each is rounded to it */
    bool narrow_sum;          /* u may not hold even one v, */
    bool narrow_total;        /* l not one p */
    double eps_score, tiny_score, edge_score;   /* scores stored in a narrower format; else 0 */
    bool narrow_weight;                         /* P is rounded: */
    double max_weight, eps_weight, tiny_weight; /* ... to a narrower format */
    double ln_weight;                           /* ln of its smallest normal number */
    double tiny_query, edge_query, tiny_key, edge_key;
    double inner_q, inner_k, outer; /* the scale: on q, on k, on their product */
    double one_exp, exp_up;         /* -ln(1 - error of exp), ln(1 + it) */
    double log, tanh;               /* errors */
    double dot[3];                  /* growth of a dot product with 0, 1, 2 descaled sides */
    double scaled;                  /* relative error of the multiplication by scale */
    double argument;                /* ... of an exponent's argument */
    double cap_error;               /* ... of tanh and its two roundings */
    double gain;                    /* of dropout */
    double gain_roundings;
    bool folded;       /* the scale sits in the exponent's fma */
    bool coarse;       /* scores err by far more than a sum in double */
    bool simple;       /* they are scaled products, not flushed, and values are as stored */
    long double limit; /* a score at or past it may overflow */
    bool large_scale; /* the scale too, or scale*log2 e, is a number of compute: 0 times an infinite
                         one is NaN */
    double limit_sum;
};

struct key {
    int64_t j;        /* -1: the sink */
    double s, s_lo;   /* score, from the inputs, and what is missing to it */
    double sigma;     /* |s here - s| <= sigma */
    double D;         /* Lemma 1: |computed s - s| <= D */
    double factor;    /* its value is factor*v: descale, dropout; 0: dropped, or the sink */
    bool rounds_v;    /* ... and the kernel rounds that product */
    bool gone;        /* its weight may underflow */
    double T;         /* Lemma 2: the most rescales that it meets */
    double E, R, S;   /* Lemmas 3, 4 */
    double ln_p, eta; /* |ln p here - ln p| <= eta */
};

/* Numbers in ascending order: bucket k has those from start[k] on, k = 0..n. */
struct ranks {
    int64_t n;
    double low, scale;
    int64_t *start;
};

/* Decoded keys of one (b, g), each on first use: a hidden key is never read. */
struct store {
    int64_t b, g;
    int64_t wide, deep; /* a row of v, of k has so many doubles: a multiple of WIDE, 0 at its end */
    double *k;          /* (n, deep) */
    double *v;          /* by NEAR keys (wide/WIDE, NEAR, WIDE): a few columns lie together */
    double *zero;       /* the value of a dropped key and of a sink, as v has it */
    double *least, *most; /* of a row of k: the least |k| but 0, the largest */
    unsigned char *have;
    double *q, *q_size; /* the queries of ROWS rows side by side, and their sizes: (deep, ROWS) */
    double *dot, *raw;  /* q k and sum |q k|: (NEAR, ROWS) */
    struct ranks ranks; /* of the row at hand */
    double *space;      /* to sort in */
};

static inline double *at_bound_value(const struct store *s, int64_t j)
{
    return s->v + j / NEAR * NEAR * s->wide + j % NEAR * WIDE;
}

struct row {
    const struct rule *r;
    struct at_place at;
    struct store *store; /* of all rows that a thread has */
    struct at_span seen;
    double *q, *q_size, *q_lost; /* as stored; |q| as multiplied with k; its underflow error */
    double q_scale;              /* descale */
    double q_least, q_factor;    /* the least q_size but 0 (0: some lost); q_size over |q| */
    int lane;                    /* place among ROWS rows */
    int64_t n;                   /* keys with a weight, the sink among them */
    struct key *key;
    double *sorted;            /* s + D + sigma, ascending */
    const double **panel;      /* of each key, the value: columns c .. c+WIDE at c NEAR */
    double *up, *down;         /* p (e^E - 1), p (1 - e^-E); in direct form p e^E, p e^-E; where
                                  fine, half their sum and half their difference */
    double *priv;              /* p e^E S; in direct form p e^E <= W- */
    double *share, *few;       /* p e^E; that times the private errors of u where few keys count */
    double *lost_y, *lost_v;   /* underflow that counts with |v - o|, |v| */
    double *p, *own;           /* p, from above; ordered: its private errors but for the sums' */
    unsigned char *step;       /* ordered: what becomes of the sums at it */
    bool summed;               /* its columns are wanted */
    double *edit;              /* a column with some keys taken out */
    struct columns *block;     /* all columns */
    bool dead, open, overflow; /* no finite score; a score of -inf beside finite ones; rule 5 */
    double depth, rescales;    /* the most additions, rescales that a key meets */
    double top, l;             /* max s + D + sigma; sum e^(s-max) */
    double swell, common;      /* the largest weight; the most that fused ones are off alike */
    bool direct;               /* E too large for differences from p */
    bool fine;                 /* E is small, every factor 1 (or of a value that is 0) */
    bool has_few;
    bool sums_lost;   /* some lost_y or lost_v is not 0 */
    bool ordered;     /* (A-ord) applies, */
    double order_eps; /* with this error of a sum */
    double shift;     /* direct form: all weights times e^-shift */
    double largest;   /* max of ln (p e^E); direct form: up_sum is in units of it */
    double below;     /* W- = sum p e^-E, in the form's units */
    double up_sum, down_sum, R_mean, R_max, S_max;
    double operations, divisor; /* underflow of the sums, and what l divides it by */
    double lost_weight, lost_l; /* sum of lost_y; all that l may lose to underflow, relatively */
};

/* One thread's share. */
struct worker {
    struct store store;
    struct row row[ROWS];
};
bool at_bound_make(struct worker *x, const struct rule *r);
void at_bound_free(struct worker *x); /* also what was made in part */

/* Some columns of one row: their truth o = hi + lo, and sums over the keys. */
struct columns {
    int64_t c; /* the first */
    double hi[WIDE], lo[WIDE];
    double rise[WIDE], fall[WIDE];  /* sum of (w - p)(v - o) at its largest and smallest */
    double most[WIDE], least[WIDE]; /* of v - o */
    double few[WIDE], priv[WIDE], priv_max[WIDE], lost[WIDE], size[WIDE]; /* size = max |v| */
    double own[WIDE], tile[WIDE], sum[WIDE], run[WIDE]; /* ordered: own |v|, p v, p v, |partial| */
};

/* e^x - 1, upwards, 0 <= x <= 2^-7. */
static inline double small_expm1(double x)
{
    return x * (1 + x * (1. / 2 + x * (1. / 6 + x * (1. / 23))));
}

/* Where a key's computed score may lie. */
static inline double highest(const struct key *k) { return k->s + (k->s_lo + k->D + k->sigma); }
static inline double lowest(const struct key *k) { return k->s + (k->s_lo - k->D - k->sigma); }

/* (1+eps)^n - 1, upwards; log(1+eps) <= eps - eps^2/2 + eps^3/3. */
static inline double growth(double n, double eps)
{
    double x = n * eps * (1 - eps * (1. / 2 - eps * (1. / 3)));
    return (x <= 0x1p-7 ? small_expm1(x) : expm1(n * log1p(eps))) * WIDER;
}

/* Two relative errors, one after the other: (1+x)(1+y) - 1, upwards. Never through 1 + x, which is
 * 1 where x is fp64's eps. */
static inline double also(double x, double y) { return (x + y + x * y) * (1 + 0x1p-40); }

/* What rounding x to f does to it, relatively, upwards. */
static inline double relative(double x, struct at_format f)
{
    return x == 0 ? 0 : fabs((at_nearest(x, f) - x) / x) * WIDER;
}

/* What an error has besides its additions: 1+error = (1+additions)(1+rest).
 * part = 1/(1+additions). */
static inline double besides(double error, double additions, double part)
{
    double rest = (error - additions) * part;
    return (rest > 0 ? rest : 0) + 0x1p-40 * error;
}

/* Multiplying by it rounds nothing, but for underflow. */
static inline bool power_of_two(double x)
{
    int e;
    return x == 1 || fabs(frexp(x, &e)) == 0.5;
}

/* What a row of k makes with the query. */
struct inner {
    double hi, lo; /* q k */
    double raw, A; /* sum |q k| without and with factors */
    double most;   /* largest |k|, with its factor */
    double lost;   /* to underflow */
};
/* size: of the factors on k; left: what a descale of k may lose. */
struct inner at_bound_dot(const struct row *x, const double *k, double size, double left);
/* Keys j .. j+n of the store against its queries, in double: |dot - q k| <= (D+8) eps sum|q k|. */
void at_bound_dots(const struct store *s, int64_t j, int64_t n);

struct rule at_rule(const struct at_attention *a, const struct at_arith *arith);
/* Lemma 1: the keys with s, D; dead, open, overflow. Parts of the keys come in order. */
void at_bound_open(struct row *x);
void at_bound_scores(struct row *x, int64_t n, struct at_span part); /* of n rows */
void at_bound_close(struct row *x);
void at_bound_errors(struct row *x, double lse, double lse_lo); /* Lemmas 2-4: E, R, S, p */
/* (A-ord): each key's T and steps; after the weights, its own errors and R_mean; of keys [from,to)
 * the columns' sums. */
void at_bound_steps(struct row *x);
void at_bound_order(struct row *x);
void at_bound_order_sum(const struct row *x, int64_t from, int64_t to, struct columns *s);
bool at_bound_lone(const struct row *x); /* one key, whose weight is exactly 1 */
/* The sums of s[0 .. blocks) from their hi, lo and c: of keys [from,from+n), or what is left of
 * them; and after the last. Then max(R+ - o, o - R-) of each column. */
void at_bound_sum(const struct row *x, int64_t from, int64_t n, struct columns *s, int64_t blocks);
void at_bound_summed(const struct row *x, struct columns *s, int64_t blocks);
void at_bound_shared(const struct row *x, const struct columns *s, double *to);

#endif

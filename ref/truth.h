/* What the files of truth share: one query row on its way to an answer.
 * SPDX-License-Identifier: MIT */
#ifndef TRUTH_H
#define TRUTH_H

#include "at_index.h"
#include "ref.h"

/* 180 bits: three limbs less a few bits, where MPFR adds and multiplies fastest. WIDE holds any sum
 * of products of two doubles times a third number that occurs here: 2^2112 down to 2^-2149. */
enum { FIRST_PREC = 180, WIDE = 4400 };

/* A visible key, or the sink, as its row sees it. */
struct key {
    int64_t j;      /* -1: the sink */
    int64_t at;     /* where its row of v starts */
    double descale; /* of that row */
    bool kept;      /* its value counts: it is not the sink and not dropped */
    bool exact;     /* s is the score itself; always so without softcap */
    bool opens;     /* its score differs from the key's before it */
    mpfr_t s;       /* the score, within 2^-prec where it is not exact */
    mpfr_t x, r;    /* softcap: the score is softcap*tanh(x/softcap) + r; x and r are exact */
    mpfr_t p;       /* e^(s - M), M = key[0].s */
    mpfr_t w;       /* e^(s - key[frame].s), see truth.c */
};

struct row {
    const struct at_attention *a;
    struct at_sizes size;
    struct at_place at;
    struct key *key;        /* n by descending score, then `dead` whose score is -inf */
    int64_t n, dead, ready; /* ready: keys whose numbers exist */
    double *q;              /* the query, as stored */
    double qscale;          /* and its descale */
    bool narrow;            /* products q k are exact doubles */
    double *v;              /* one column of the keys' values, as stored */
    mpfr_prec_t wide;       /* that scores have so far been exact at */
    mpfr_prec_t prec;       /* of the weights and answers */
    int64_t frame;          /* key that w belongs to; 0: none */
    double units;           /* relative error of an average of weights, in units of 2^-prec */
    mpfr_t l, rest;         /* l = 1 + rest */
    mpfr_t keep;            /* 1 - p of dropout */
    mpfr_t z, e;            /* the answer less a centre, and its error */
    mpfr_t x, y, G, C, B;   /* scratch: x at FIRST_PREC, y at prec; a group's sum, centre, border */
};

/* Makes room for every key that a row may see; false: out of memory. Close it in either case. */
bool at_row_open(struct row *r, const struct at_attention *a);
void at_row_close(struct row *r);

enum at_row_kind {
    ROW_EMPTY, /* sees nothing */
    ROW_NAN,   /* its scores have no meaning: semantics, rule 2 */
    ROW_FINITE
};

/* Fills key, n, dead of the row r->at; wide and prec start anew. */
enum at_row_kind at_row_scores(struct row *r);

/* The scores that softcap makes irrational, at prec. */
void at_row_cap(struct row *r);

/* Weights at prec, sorted scores given. */
void at_row_start(struct row *r, mpfr_prec_t prec);

/* Reads column c. True iff all of it is finite; else *sum is the NaN or infinity that it makes. */
bool at_row_column(struct row *r, int64_t c, double *sum);

/* z = out of the column that was read, within e: the first estimate. */
void at_row_average(struct row *r);

/* z = out - B of the column that was read, or lse - B for c == -1, within e; z = e = 0 iff that is
 * proved to be 0. B may be r->B, and its precision is not changed. */
void at_row_distance(struct row *r, int64_t c, mpfr_srcptr B);

#endif

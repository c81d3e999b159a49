/* What the files of the diagnosis share. SPDX-License-Identifier: MIT */
#ifndef DIAGNOSE_H
#define DIAGNOSE_H

#include "oracle.h"

/* Rows that hypotheses are tried on: failing ones, the worst first, then passing ones. */
enum { SAMPLE = 16, SAMPLE_FAILING = 12 };

/* One element of the sample. */
struct evidence {
    double got, truth;
    bool fails;
};

struct sample {
    const struct at_attention *a; /* plan resolved */
    const struct at_arith *arith;
    enum at_dtype out, lse; /* formats of what was got; lse AT_DEFAULT: none */
    int64_t n, Dv, failing; /* rows; failing elements */
    struct at_place place[SAMPLE];
    struct at_answer truth;    /* of the rows */
    struct evidence *evidence; /* n rows of Dv + 1, the lse last */
    double largest[2];         /* bound of out, of lse */
    bool faultless;            /* got is what the engine computes without a fault */
};

/* How well a hypothesis fits. */
struct fit {
    struct at_planted f;
    int64_t tile, splits; /* of the plan it was tried under */
    int64_t explained, of, failing, of_failing;
    double distance, before; /* of the failing elements to it, and to the truth */
};

/* The fit of one fault on rows 0..n-1 of the sample. */
struct fit sample_fit(const struct sample *s, struct at_mutant_run *r, const struct at_planted *f,
                      int64_t n, double *out);
/* Is a the better name? Of two that fit alike, the one with fewer numbers to choose. */
bool fit_better(const struct fit *a, const struct fit *b);
bool fit_explains(const struct fit *x);
bool fit_alike(const struct fit *a, const struct fit *b);

/* The best of one kind of fault over tiles, splits and N (suspects.c). */
struct fit suspects_best(const struct sample *s, struct at_mutant_run *r, int kind, double *out);
/* The least loosening of s->arith under which every element of the sample passes; false: none. */
AT_CHECKED bool suspects_arith(struct sample *s, const struct at_result *got,
                               struct at_diagnosis *d);

#endif

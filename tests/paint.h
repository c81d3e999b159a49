/* Problems painted from a seed: every field of the descriptor together, small, owned in one place.
 *
 * The same seed and options give the same problem. Each field and each tensor has a stream of its
 * own, so that leaving one out (options.without) changes no other: that is how paint_shrink finds a
 * small case. Not here: any arithmetic of attention; the predicate and the addresses below are
 * written a second time on purpose, from docs/semantics.md alone. SPDX-License-Identifier: MIT */
#ifndef PAINT_H
#define PAINT_H

#include "attest.h"
#include <check.h>

/* -- SplitMix64 [Steele14] --------------------------------------------------------------------- */

struct paint {
    uint64_t state;
};

struct paint paint_from(uint64_t seed, uint64_t what); /* stream `what` of a seed */
uint64_t paint_bits(struct paint *r);
int64_t paint_int(struct paint *r, int64_t lo, int64_t hi); /* lo <= x <= hi */
bool paint_one_in(struct paint *r, int64_t n);
double paint_unit(struct paint *r); /* in [-1,1) */

/* -- A problem --------------------------------------------------------------------------------- */

enum paint_field {
    PAINT_MASK = 1 << 0,
    PAINT_BIAS = 1 << 1, /* also -inf */
    PAINT_ALIBI = 1 << 2,
    PAINT_SINK = 1 << 3,
    PAINT_SOFTCAP = 1 << 4,
    PAINT_WINDOW = 1 << 5, /* causal among them */
    PAINT_OFFSET = 1 << 6,
    PAINT_Q_LEN = 1 << 7,
    PAINT_KV_LEN = 1 << 8,
    PAINT_Q_RAGGED = 1 << 9,
    PAINT_KV_RAGGED = 1 << 10,
    PAINT_PAGED = 1 << 11,   /* a table or a list; no KV_RAGGED then */
    PAINT_DROPOUT = 1 << 12, /* drawn, or a keep mask */
    PAINT_DESCALE = 1 << 13, /* of q, k, v, each or not */
    PAINT_GROUPS = 1 << 14,  /* Hq a multiple of Hkv */
    PAINT_STRIDES = 1 << 15, /* any order, gaps, negative and zero strides */
    PAINT_LATENT = 1 << 16,  /* v a view into k */
    PAINT_NARROW = 1 << 17,  /* fp16, bf16, both fp8, each tensor by itself */
    PAINT_WIDE = 1 << 18,    /* some tensor fp64 */
    PAINT_SCALE = 1 << 19,   /* not 1/sqrt(D): also negative, 0 */
    PAINT_LARGE = 1 << 20,   /* scores in the hundreds */
    PAINT_SPECIAL = 1 << 21, /* NaN and infinities where they are seen */
    PAINT_PLAN = 1 << 22,    /* tile, lanes, threads, compute */
    PAINT_SPLITS = 1 << 23,  /* splits, cut points, merge orders */
    PAINT_OUT = 1 << 24,     /* out and lse of any float dtype, lse perhaps absent */
    PAINT_ZERO = 1 << 25,    /* an extent of 0 */
    PAINT_HUGE = 1 << 26,    /* a tensor or number near the ends of fp32: rows without a claim */
    PAINT_FIELDS = (1 << 27) - 1
};

/* A field occurs about once in `in` problems. */
extern const struct paint_chance {
    uint32_t field;
    int64_t in;
    const char *name;
} paint_chances[];
extern const int paint_chances_n;

/* Zero: everything may occur. */
struct paint_options {
    uint32_t without; /* fields that must not occur */
    uint32_t with;    /* fields that must occur, where the others permit */
    int64_t most;     /* largest extent of Sq, Skv, D, Dv; 0: 18 */
};

struct problem {
    uint64_t seed;
    struct paint_options options;
    uint32_t fields;       /* what occurs */
    struct at_attention a; /* valid */
    struct at_result got;  /* every byte 0xff: NaN; reset by problem_clear */
    int64_t B, Hq, Hkv, Sq, Skv, D,
        Dv; /* Sq, Skv: the longest lengths of ragged or paged batches */
    void *owned[48];
    size_t bytes[48];
    int count, results; /* owned[results ..]: memory of got */
};

void paint_problem(struct problem *p, uint64_t seed, struct paint_options options);
void problem_free(struct problem *p);
void problem_clear(struct problem *p);
/* Memory of the problem, every byte 0xff: NaN in each float dtype. */
void *problem_own(struct problem *p, size_t bytes);
/* Is each byte of got's memory that is no element still 0xff? */
bool problem_gaps_untouched(const struct problem *p);

/* Who sees whom, keys' and rows' places: docs/semantics.md once more. s: the key within b. */
bool problem_sees(const struct problem *p, int64_t b, int64_t h, int64_t i, int64_t j);
bool problem_keeps(const struct problem *p, int64_t b, int64_t h, int64_t i, int64_t j);
int64_t problem_key(const struct problem *p, const struct at_view *x, int64_t b, int64_t g,
                    int64_t j);
int64_t problem_row(const struct problem *p, const struct at_view *x, int64_t b, int64_t h,
                    int64_t i);
int64_t problem_rows_of(const struct problem *p,
                        int64_t b); /* rows that sequence b has in memory */
int64_t problem_keys_of(const struct problem *p, int64_t b);

/* One number of any dtype, rounded once (a U8: 0 or not); one element, exactly. */
void paint_put(const struct at_view *x, int64_t at, double y);
double paint_get(const struct at_view *x, int64_t b, int64_t h, int64_t s, int64_t c);

/* Leaves out fields, then halves the extents, for as long as it still fails. */
typedef bool problem_fails(struct problem *p, void *with);
struct paint_options paint_shrink(uint64_t seed, struct paint_options from, problem_fails *fails,
                                  void *with);
/* "SEED=7 COUNT=1 WITHOUT=0x80 MOST=3 build/tests/check_engines": one problem, in a static
 * buffer. */
const char *paint_repro(uint64_t seed, struct paint_options options, const char *suite);
/* The shapes and fields of p, in a static buffer. */
const char *problem_line(const struct problem *p);

/* memory.c: malloc fills with NaN; the allocation counted down to fails (0: none does). */
extern int64_t memory_countdown;

/* -- A suite ----------------------------------------------------------------------------------- */

uint64_t paint_seed(void); /* SEED, default 1; printed by the first call */
int64_t paint_number(const char *name, int64_t otherwise); /* another number of the environment */
int paint_run(Suite *suite);                               /* exit status */
/* Equal to the bit, or both NaN. */
bool paint_same(const struct at_view *x, const struct at_view *y);

#endif

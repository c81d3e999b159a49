/* What the files of the mutant bank share: the faults by number, and one row in the making.
 * SPDX-License-Identifier: MIT */
#ifndef MUTANT_H
#define MUTANT_H

#define AT_BITS 32
#include "at_row.h"
#include "oracle.h"

enum fault {
    /* the recurrence */
    LOST_RESCALE,
    LOST_RESCALE_U,
    LOST_RESCALE_L,
    INVERSE_RESCALE,
    STALE_MAXIMUM,
    MAXIMUM_FROM_ZERO,
    MAXIMUM_FLOOR,
    NO_MAXIMUM,
    HIDDEN_TILE_ZERO,
    LAGGING_SUM,
    STALE_WORKSPACE,
    /* tiles and keys */
    LOST_KEY,
    LOST_UPDATE,
    TWICE_KEY,
    LOST_TILE,
    TWICE_TILE,
    LOST_TAIL,
    OPEN_TAIL,
    NEIGHBOUR_VALUE,
    LAST_COLUMN,
    UNWRITTEN_ROW,
    /* who sees whom */
    CAUSAL_WIDE,
    CAUSAL_SHORT,
    CAUSAL_CORNER,
    CAUSAL_IGNORED,
    CAUSAL_IN_TILE,
    WINDOW_WIDE,
    WINDOW_SHORT,
    WINDOW_IGNORED,
    WINDOW_CAUSAL,
    MASK_INVERTED,
    MASK_IGNORED,
    MASK_FINITE,
    KV_LEN_IGNORED,
    Q_LEN_IGNORED,
    EMPTY_NAN,
    /* where things lie */
    HEAD_MODULO,
    HEAD_GROUP,
    BATCH_ZERO,
    PAGE_IDENTITY,
    /* what a score is */
    SCALE_TWICE,
    SCALE_OVER_D,
    SCALE_MISSING,
    SCALE_PADDED,
    DOT_TAIL,
    CAP_MISSING,
    CAP_AFTER_BIAS,
    CAP_EVEN,
    BIAS_MISSING,
    BIAS_BASE_2,
    BIAS_SCALED,
    ALIBI_MISSING,
    ALIBI_SIGN,
    ALIBI_FROM_ORIGIN,
    KEY_SCALE_LOST,
    VALUE_SCALE_LOST,
    /* sink and dropout */
    SINK_MISSING,
    SINK_TWICE,
    SINK_SCALED,
    SINK_PAST_MAXIMUM,
    DROPOUT_NO_GAIN,
    DROPOUT_IN_SUM,
    DROPOUT_IGNORED,
    /* splits and lse */
    MERGE_BASE_2,
    MERGE_UNWEIGHTED,
    MERGE_INVERSE,
    FIRST_SPLIT_TWICE,
    LAST_SPLIT_LOST,
    EMPTY_SPLIT_ZERO,
    LSE_BASE_2,
    LSE_NO_MAXIMUM,
    /* the ends of the range */
    NAN_EMPTY,
    NAN_TO_ZERO,
    SCORE_CLAMPED,
    VALUE_CLAMPED,
    VALUE_FLUSHED,
    WEIGHTS_SCALED,
    /* arithmetic */
    P_TRUNCATED,
    P_BF16,
    P_FP16,
    SCORES_BF16,
    SCORES_FP16,
    Q_BF16,
    SCALE_SLIGHT,
    TF32_INPUTS,
    SUMS_FP16,
    SUMS_BF16,
    LSE_FP16,
    EXP_FLUSHED,
    EXP_BASE_SHORT,
    EXP_ROUGH,
    EXP_FAIR,
    EXP_CLOSE,
    SMALL_WEIGHTS_LOST,
    FAULTS
};

/* Scores past the last key that a tail may have. */
#define MUTANT_TAIL 1024

/* One row in the making. Scores are kept by key until the row, or what spoils a score, changes. */
struct mutant_work {
    const struct at_attention *a;
    struct at_sizes z;
    struct at_planted f;
    int kind; /* of the fault in this head; FAULTS: none */
    int64_t b, h, i;
    float *q, *kv, *s;
    unsigned char *scored;
    struct at_place at; /* whose scores these are, and under what fault */
    int scored_by;
    struct at_row *part, tile;
    float last_l;
    bool stale; /* u of the row before is still in the part */
};

/* Who is seen, what a score and a value is (mutant_score.c). */
struct at_span mutant_seen(const struct mutant_work *w);
bool mutant_shown(const struct mutant_work *w, int64_t j);
float mutant_score(struct mutant_work *w, int64_t j);
const float *mutant_value(struct mutant_work *w, int64_t j); /* NULL: dropped */
void mutant_query(struct mutant_work *w);

/* x rounded to the dtype; AT_DEFAULT: as it is. */
float mutant_rounded(float x, enum at_dtype dtype);

static inline bool mutant_hit(const struct mutant_work *w, enum fault kind, int64_t at)
{
    return w->kind == (int)kind && (w->f.at < 0 || w->f.at == at);
}

/* One row as the fault leaves it, in part[0] (mutant_row.c). */
void mutant_row(struct mutant_work *w);
float mutant_out(const struct mutant_work *w, int64_t c);
float mutant_lse(const struct mutant_work *w);

#endif

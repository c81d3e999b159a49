/* What the files that read a case share. SPDX-License-Identifier: MIT */
#ifndef CASE_H
#define CASE_H

#include "at_index.h"
#include "oracle.h"
#include <jansson.h>

/* A case in the making. */
struct reading {
    const char *path;
    struct at_case *x;
    struct at_said *said;
};

/* -- Metadata (fields.c) --------------------------------------------------------------------- */

/* The metadata of a file with the flags joined, every field known and of its kind; NULL: refused.
 * text NULL: the file has none. whole: of a case, where scale must be said. */
json_t *at_meta_read(const char *path, const char *text, const struct at_fields *flags, bool whole,
                     struct at_said *said);
/* Field "lse.base" or "scale"; NULL: absent. */
const json_t *at_meta_get(const json_t *meta, const char *name);
const char *at_meta_text(const json_t *meta, const char *name, const char *absent);
double at_meta_number(const json_t *meta, const char *name, double absent);
int64_t at_meta_integer(const json_t *meta, const char *name, int64_t absent);
/* Is a field of the question in both, and different? Its name, or NULL. */
const char *at_meta_conflict(const json_t *case_meta, const json_t *result_meta);

/* -- Results (results.c) --------------------------------------------------------------------- */

/* The tensors out, lse, out.NAME, lse.NAME of a file join x's results. label: NULL in the case's
 * own file, else what its results are called. */
bool at_results_read(struct at_case *x, const struct at_tensors *file, const char *path,
                     const char *label, const json_t *meta, struct at_said *said);

/* -- Tensors in the case's layout (case.c) ---------------------------------------------------- */

/* q, k, v, out: four extents, or three packed ones. */
bool at_case_view(const struct at_tensor *t, const char *path, const char *layout,
                  struct at_view *to, struct at_said *said);

/* x->file, which was made and not read, becomes a case. On refusal x is empty. */
bool at_case_take(struct at_case *x, const char *path, struct at_said *said);

/* -- Sequences (sequences.c) ------------------------------------------------------------------ */

/* Lengths, starts, pages. kv_layout NULL: not paged. */
bool at_case_sequences(struct reading *r, const char *kv_layout);
/* Positions of the sequences' first rows; lengths are known. */
bool at_case_offset(struct reading *r);

#endif

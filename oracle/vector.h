/* What generate.c, manifest.c and header.c share: a case with its truth and interval.
 * SPDX-License-Identifier: MIT */
#ifndef VECTOR_H
#define VECTOR_H

#include "generate.h"

/* Kinds in files; in the truth's only the first four. */
enum {
    KIND_FINITE,
    KIND_NAN,
    KIND_PLUS,
    KIND_MINUS,
    KIND_OPEN,
    KIND_OPEN_PLUS,
    KIND_OPEN_MINUS,
    KIND_NONE
};

struct at_vector {
    struct at_canvas canvas;
    struct at_case x;     /* the inputs as a reader would have them */
    bool stored, sampled; /* the file holds the inputs; the truth of some rows alone */
    struct at_rows rows;
    struct at_answer y;
    struct at_arith arith;
    enum at_dtype out, lse; /* of the intervals */
};

/* Rows of the truth, before anything is painted. */
int64_t at_vector_rows(const struct at_canvas *c, bool *stored, bool *sampled);
/* The whole of a case; free it. */
bool at_vector_make(struct at_vector *v, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile, struct at_progress progress, struct at_said *said);
void at_vector_free(struct at_vector *v);
/* Element t of the answer, column -1 the lse: its kind and interval. */
unsigned char at_vector_element(const struct at_vector *v, int64_t row, int64_t column, double *lo,
                                double *hi);
/* Row of the answer that stands k-th in the file's out; in its lse that is k. */
int64_t at_vector_row(const struct at_vector *v, int64_t k);
bool at_vector_write(const struct at_vector *v, const char *truth, const char *interval,
                     struct at_said *said);

/* The cases of a request, in order; tile by tile. k = 0, 1, ..; false: no more. */
bool at_suite_case(const struct at_request *want, int64_t k, const struct at_plot **plot,
                   int64_t *tile);

/* -- The manifest (manifest.c) ------------------------------------------------------------- */

struct at_manifest {
    char path[4096];
    json_t *old, *now; /* the one found there, or NULL; the one in the making */
};

bool at_manifest_open(struct at_manifest *m, const struct at_request *want, const char *dir,
                      struct at_said *said);
/* Does the old one know the case's two files, and are they so? Then it joins the new one. */
bool at_manifest_has(struct at_manifest *m, const char *name, const char *dir,
                     struct at_generated *done);
bool at_manifest_add(struct at_manifest *m, const struct at_canvas *c, const char *dir,
                     const char *const file[2], struct at_generated *done, struct at_said *said);
void at_manifest_unfit(struct at_manifest *m, const struct at_canvas *c, struct at_generated *done);
/* The last time: done->pin. */
bool at_manifest_write(struct at_manifest *m, bool last, struct at_generated *done,
                       struct at_said *said);
void at_manifest_close(struct at_manifest *m);

#endif

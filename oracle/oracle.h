/* Who judges: case files, the choice of rows, the judge, planted faults. Library code: it returns
 * structs and sentences, prints nothing and never exits. Files are little-endian, as are the
 * machines that this is built for. SPDX-License-Identifier: MIT */
#ifndef ORACLE_H
#define ORACLE_H

#include "attest.h"

struct json_t;   /* of jansson */
struct at_sizes; /* of at_index.h */

/* What is wrong, in one line: file, tensor or field, found, expected. */
struct at_said {
    char text[600];
};

/* Writes the sentence and returns false, so that a refusal is one statement. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool at_say(struct at_said *said, const char *format, ...);

/* -- Files of tensors (safetensors) ---------------------------------------------------------- */

struct at_tensor {
    char name[96];
    enum at_dtype dtype;
    bool boolean; /* BOOL, read as U8 */
    int rank;     /* 0..4 */
    int64_t dim[4], bytes;
    void *data;   /* aligned to 64, whatever the file does */
};

struct at_tensors {
    int64_t n;
    struct at_tensor *tensor;
    char *attest; /* the metadata entry of that name, or NULL */
    void *memory;
};

/* Refuses what a reader could misunderstand: duplicate keys, holes, overlaps, trailing bytes, a
 * dtype or rank that attest has no use for. On refusal x is empty. */
AT_CHECKED bool at_tensors_read(const char *path, struct at_tensors *x, struct at_said *said);
/* The same tensors give the same bytes. Written beside path, then renamed: no half of a file is
 * ever seen under its name, and on failure nothing is left. A device or pipe is written in place. */
AT_CHECKED bool at_tensors_write(const char *path, const struct at_tensors *x,
                                 struct at_said *said);
void at_tensors_free(struct at_tensors *x);
const struct at_tensor *at_tensors_find(const struct at_tensors *x, const char *name);

const char *at_dtype_stored(enum at_dtype dtype); /* "BF16" */
/* A tensor of the given extents over data; the name must be shorter than 96. */
struct at_tensor at_tensor_of(const char *name, enum at_dtype dtype, int rank, const int64_t *dim,
                              void *data);
/* Any bytes under a name, all or nothing. */
AT_CHECKED bool at_file_write(const char *path, const void *data, int64_t bytes,
                              struct at_said *said);

/* -- Cases (docs/formats.md) ----------------------------------------------------------------- */

/* A flag of the command line: a metadata field by dotted name ("lse.base"), and its JSON. The
 * names "kv_len" and "q_len" stand for those tensors and take an array. */
struct at_field {
    char name[24], text[200];
};

struct at_fields {
    int64_t n;
    struct at_field at[24];
};

/* A result, natural lse placed like q, empty rows marked our way. */
struct at_named {
    char name[128];
    struct at_result got;
    char arith[200], from[200], why[200]; /* "": not said */
};

struct at_case {
    char name[128], path[256];
    struct at_attention a;
    int64_t results;
    struct at_named *result;
    const char *layout;      /* of q: bhsd, bshd or thd */
    struct json_t *meta;     /* the metadata, flags included */
    struct at_tensors file;
    void **owned;            /* what else was allocated */
    int64_t nowned;
};

/* flags supply what the file lacks; one that contradicts it is refused. On refusal x is empty. */
AT_CHECKED bool at_case_read(const char *path, const struct at_fields *flags, struct at_case *x,
                             struct at_said *said);
/* The results of one more file join the case's. */
AT_CHECKED bool at_case_add(struct at_case *x, const char *path, const struct at_fields *flags,
                            struct at_said *said);
/* The file's tensors with the completed metadata. */
AT_CHECKED bool at_case_write(const struct at_case *x, const char *path, struct at_said *said);
/* A case of one row: its query, the keys before its span's end, the result's row where got. */
AT_CHECKED bool at_case_write_row(const struct at_case *x, const struct at_named *got,
                                  struct at_place place, const char *path, struct at_said *said);
void at_case_free(struct at_case *x);
/* Zeroed memory that lives as long as the case; NULL: none left. */
void *at_case_alloc(struct at_case *x, int64_t bytes);
/* A contiguous tensor like q with Dv columns, as the case's layout has it. */
struct at_view at_case_like_q(const struct at_case *x, void *data, enum at_dtype dtype, int64_t Dv);
/* Does row i of sequence b under head h see a key? */
bool at_sees(const struct at_attention *a, const struct at_sizes *z, int64_t b, int64_t h,
             int64_t i);

/* -- The choice of rows (rows.c) -------------------------------------------------------------- */

/* What the truth of all rows costs: visible span times (D + Dv), summed. */
int64_t at_rows_cost(const struct at_attention *a);
/* Up to this cost all rows are judged where nobody asks for fewer: some 40 s on two cores. */
#define AT_ROWS_BUDGET ((int64_t)1 << 27)
/* How many rows fit the budget; all of them where all do. */
int64_t at_rows_default(const struct at_attention *a);
/* `want` rows of q (all: n = -1 or more than there are), the same for the same seed: first each
 * (b,h)'s last and first row, then both sides of every multiple of 16, corners of the diagonal and
 * ends of lengths, then any. Sorted as stored. Free rows->at. False: no memory. */
AT_CHECKED bool at_rows_choose(const struct at_attention *a, int64_t want, uint64_t seed,
                               struct at_rows *rows);

#endif

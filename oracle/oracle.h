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
    void *data; /* aligned to its element, whatever the file does */
};

struct at_tensors {
    int64_t n;
    struct at_tensor *tensor;
    char *attest; /* the metadata entry of that name, or NULL */
    void *memory;
    int64_t mapped; /* bytes of the file that memory is; 0: allocated */
};

/* Refuses what a reader could misunderstand: duplicate keys, holes, overlaps, trailing bytes, a
 * dtype or rank that attest has no use for. On refusal x is empty. */
AT_CHECKED bool at_tensors_read(const char *path, struct at_tensors *x, struct at_said *said);
/* The same tensors give the same bytes. Written beside path, then renamed: no half of a file is
 * ever seen under its name; on failure nothing is left. A device or pipe is written in place. */
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
    bool base2;                           /* its lse was converted from base 2 */
    char arith[200], from[200], why[200]; /* "": not said */
};

struct at_case {
    char name[128], path[256];
    struct at_attention a;
    int64_t results;
    struct at_named *result;
    const char *layout;  /* of q: bhsd, bshd or thd */
    struct json_t *meta; /* the metadata, flags included */
    struct at_tensors file;
    struct at_tensors *more; /* files of results */
    int64_t nmore;
    void **owned; /* what else was allocated */
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
/* As tensors of a file: rows like out with Dv columns, and like lse in its default layout. */
struct at_tensor at_case_out(const struct at_case *x, const char *name, enum at_dtype dtype,
                             void *data);
struct at_tensor at_case_lse(const struct at_case *x, const char *name, enum at_dtype dtype,
                             void *data);
/* The rows that the case's tensor `rows` says; n = -1 without one. Free rows->at. */
AT_CHECKED bool at_case_rows(const struct at_case *x, struct at_rows *rows, struct at_said *said);
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

/* -- The judge (judge.c, where.c, rules.c) ---------------------------------------------------- */

/* Told now and then how far the truth has come; with NULL functions nothing is told. */
struct at_progress {
    void (*tell)(void *with, int64_t done, int64_t of);
    void *with;
};

/* Truth of the rows in x, which is made here; free it. fast: by at_truth_fast. */
AT_CHECKED bool at_judge_truth(const struct at_attention *a, struct at_rows rows, bool fast,
                               struct at_progress progress, struct at_answer *x,
                               struct at_said *said);

enum at_outcome { AT_PASS, AT_FAIL, AT_UNDECIDED };

/* Numbers lo..hi of every `period`; failed of the judged there. period 0: none was found. */
struct at_period {
    int64_t period, lo, hi, failed, judged;
};

/* Ratios by powers of two: [0] is 0, [k] (2^(k-12), 2^(k-11)], the ends take what lies beyond. */
#define AT_BUCKETS 33
#define AT_BUCKET_BASE (-11)

/* Which elements failed, and what they have in common. */
struct at_where {
    int64_t out, lse, rows;         /* failing elements, elements, rows */
    int64_t histogram[AT_BUCKETS];  /* of all judged elements */
    int64_t infinite;               /* ratios without a number: NaN, or a bound of 0 */
    int64_t b[2], h[2], i[2], c[2]; /* first and last that fails; c over out alone */
    int64_t pairs, pairs_judged;    /* (b,h) */
    uint64_t heads;                 /* bit h of the failing heads below 64 */
    struct at_period row, column;
};

/* What a published rule of thumb says of the numbers: got against truth rounded to its dtype. */
struct at_rule {
    const char *name;
    double rtol, atol;
    int64_t judged, beyond; /* elements of out */
};
#define AT_RULES 2

struct at_judgement {
    struct at_arith arith;
    enum at_outcome outcome;
    struct at_verdict v;
    struct at_place place; /* of the worst */
    struct at_where where;
    struct at_rule rule[AT_RULES];
};

/* The bound of the rows under one arithmetic joins their truth in x: once for all results. */
AT_CHECKED bool at_judge_bound(const struct at_attention *a, struct at_rows rows,
                               const struct at_arith *arith, struct at_answer *x,
                               struct at_said *said);
/* One result against truth and bound. Undecided: nothing failed, but more than `allowed` elements
 * have no claim. */
AT_CHECKED bool at_judge(const struct at_attention *a, const struct at_named *got,
                         struct at_rows rows, const struct at_arith *arith, int64_t allowed,
                         struct at_answer *x, struct at_judgement *j, struct at_said *said);

/* The parts of at_judge. ratios: as at_compare gives them. */
AT_CHECKED bool at_where(const struct at_attention *a, struct at_rows rows, const double *ratios,
                         struct at_where *w);
void at_rules(const struct at_attention *a, const struct at_view *out, struct at_rows rows,
              const struct at_answer *x, struct at_rule rule[AT_RULES]);

/* Largest finite |v| of the keys that sequences have, descale included. */
double at_largest_value(const struct at_attention *a);

/* First row and column (-1: lse) where two results differ in a bit, but for NaN; false: nowhere. */
bool at_differ(const struct at_attention *a, const struct at_result *x, const struct at_result *y,
               struct at_place *place, int64_t *column);

/* -- Planted faults (mutants.c, mutant_row.c, mutant_score.c) ---------------------------------- */

/* What a problem must have for a fault to show; LOW, HIGH: scores far below, above 0. */
enum at_need {
    AT_NEEDS_TILES = 1 << 0, /* more than one tile */
    AT_NEEDS_TAIL = 1 << 1,  /* a last tile that is not full */
    AT_NEEDS_SPLITS = 1 << 2,
    AT_NEEDS_LOW = 1 << 3,
    AT_NEEDS_HIGH = 1 << 4,
    AT_NEEDS_LSE = 1 << 5,
    AT_NEEDS_CAUSAL = 1 << 6, /* a bound on the right */
    AT_NEEDS_SHAPE = 1 << 7,  /* an offset, or Sq != Skv */
    AT_NEEDS_WINDOW = 1 << 8, /* a bound on the left */
    AT_NEEDS_MASK = 1 << 9,
    AT_NEEDS_HIDDEN = 1 << 10, /* hidden keys; for some, rows that see nothing */
    AT_NEEDS_KV_LEN = 1 << 11,
    AT_NEEDS_Q_LEN = 1 << 12,
    AT_NEEDS_GROUPS = 1 << 13,
    AT_NEEDS_BATCH = 1 << 14,
    AT_NEEDS_PAGES = 1 << 15,
    AT_NEEDS_ODD_D = 1 << 16, /* no multiple of 8 */
    AT_NEEDS_CAP = 1 << 17,
    AT_NEEDS_BIAS = 1 << 18,
    AT_NEEDS_ALIBI = 1 << 19,
    AT_NEEDS_ADDED = 1 << 20, /* a bias or ALiBi */
    AT_NEEDS_KSCALE = 1 << 21,
    AT_NEEDS_VSCALE = 1 << 22,
    AT_NEEDS_SINK = 1 << 23,
    AT_NEEDS_DROPOUT = 1 << 24,
    AT_NEEDS_HEADS = 1 << 25, /* several key heads */
    AT_NEEDS_RANGE = 1 << 26  /* NaN, infinities, huge or subnormal values */
};

struct at_mutant {
    const char *name, *what;
    const char *arith; /* the arithmetic that it must fail, where it has an effect */
    unsigned needs;    /* enum at_need */
    int idea;          /* its public fault's number in the catalogue of ideas */
    const char *of;    /* what N counts: "tile", "key"; NULL: nothing */
};

const struct at_mutant *at_mutant_at(int64_t k); /* NULL: no more */
int64_t at_mutant_formats(void);                 /* from here on: numbers kept in narrow formats */
/* What of enum at_need the descriptor shows; what only data or plan could tell is always there. */
unsigned at_mutant_offers(const struct at_attention *a);

/* One of them: number of the mutant, N and head (-1: everywhere), and the format of P (AT_DEFAULT:
 * not rounded). kind -1: no fault. */
struct at_planted {
    int kind;
    int64_t at, head;
    enum at_dtype weight;
};

/* "lost-rescale-u@tile=1", "lost-key@63,head=2,p=bf16", "causal-off-by-one"; and back. */
AT_CHECKED bool at_mutant_parse(const char *fault, struct at_planted *f, struct at_said *said);
void at_mutant_name(const struct at_planted *f, char *to, size_t size);

/* The scalar engine in fp32 with one fault, on all rows. a is valid and its plan resolved; a fault
 * of the merge splits the keys in the middle where the plan does not split. */
AT_CHECKED bool at_mutant_forward(const char *fault, const struct at_attention *a,
                                  const struct at_result *to, struct at_said *said);

/* Row by row: scores are kept from fault to fault of the same row. Tiles and equal splits, at most
 * `most` of them, may be changed in between. open: NULL: no memory. */
struct at_mutant_run;
struct at_mutant_run *at_mutant_open(const struct at_attention *a, int64_t most);
void at_mutant_plan(struct at_mutant_run *r, int64_t tile, int64_t splits);
void at_mutant_row(struct at_mutant_run *r, const struct at_planted *f, struct at_place place,
                   double *out, double *lse);
void at_mutant_close(struct at_mutant_run *r);

/* -- Diagnosis (diagnose.c, suspects.c) -------------------------------------------------------- */

/* Which named fault, or looser arithmetic, explains a failure. Unknown: name is the nearest. */
struct at_diagnosis {
    char name[80], what[300]; /* a fault; or an arithmetic, written as arith->name and a change */
    bool known, arithmetic;
    double ratio;                /* the worst under the looser arithmetic */
    int64_t rows, tried;         /* rows of the sample; kinds of fault */
    int64_t explained, of;       /* elements of the sample that the fault explains */
    int64_t failing, of_failing; /* ... among those that fail */
    int64_t tile, splits;        /* of the plan under which it does; 0: no matter */
    char other[240];             /* all that fit as well; else the runner-up */
    int64_t other_explained;
    bool alike; /* other fits as well */
};

/* x holds truth and bound of the rows under arith, which got fails. False: no memory. */
AT_CHECKED bool at_diagnose(const struct at_attention *a, const struct at_result *got,
                            struct at_rows rows, const struct at_arith *arith,
                            const struct at_answer *x, struct at_diagnosis *d);

/* -- Exact cases (exact.c) -------------------------------------------------------------------- */

/* How a case is exact: on its inputs a correct kernel makes no error in out. */
enum at_exact {
    AT_INEXACT,
    AT_ONE_KEY, /* one key has score 0, all others a weight that every arithmetic makes 0 */
    AT_COUNTED, /* 2^n keys have score 0, their values are small integers */
    AT_BALANCED /* all keys that count have score 0, and their values, integers, cancel */
};

/* Does that hold for this arithmetic, with values of dtype v? */
bool at_exact_for(enum at_exact how, const struct at_arith *arith, enum at_dtype v);
/* Where it does, the bounds of out become 0. */
void at_exact_claim(enum at_exact how, const struct at_arith *arith, enum at_dtype v,
                    struct at_answer *x);
enum at_exact at_case_exact(const struct at_case *x); /* what the file says of itself */

/* -- The generator (generate.c; docs/generator.md) --------------------------------------------- */

enum at_corner { AT_NO_CORNER, AT_BOTTOM_RIGHT, AT_TOP_LEFT };

/* The versions that files state: what a score means, which cases there are, how the interval comes
 * about. */
enum { AT_SPEC = 1, AT_SUITE = 3, AT_BOUND = 1 };

#define AT_TILES 8
struct at_request {
    char suite[16]; /* smoke .. workloads, or full */
    int64_t version;
    enum at_dtype dtype;
    uint64_t seed;
    int64_t shape[7]; /* B Hq Hkv Sq Skv D Dv */
    enum at_corner corner;
    int64_t left, right;
    int64_t tile[AT_TILES], tiles;
    int64_t rows; /* of each case whose files would pass 1 MB; 0: by cost */
    char arith[200];
};

/* The plain request: what the command line does not say. */
struct at_request at_request_plain(void);
/* "exact", "exact@1" */
AT_CHECKED bool at_request_suite(struct at_request *x, const char *text, struct at_said *said);
/* Extents, dtype, tiles and arithmetic that fit each other; sets the arithmetic where none is. */
AT_CHECKED bool at_request_check(struct at_request *x, struct at_said *said);
enum at_dtype at_request_output(const struct at_request *x); /* dtype of out_lo, out_hi */

/* What generate did. */
struct at_generated {
    int64_t cases, files, bytes, skipped, unfit;
    char pin[65]; /* SHA-256 of MANIFEST.json */
};

/* The suite's files into a directory, which is made. A file that the manifest there knows and whose
 * hash is right is left alone. */
AT_CHECKED bool at_generate(const struct at_request *want, const char *dir,
                            struct at_progress progress, struct at_generated *done,
                            struct at_said *said);
/* Tiny cases as one header of hex floats. */
AT_CHECKED bool at_generate_header(const struct at_request *want, const char *path,
                                   struct at_generated *done, struct at_said *said);
const char *at_suite_at(int64_t k); /* NULL: no more */

/* The input tensors that a recipe stands for join a case in the making. */
AT_CHECKED bool at_recipe_inputs(struct at_case *x, const char *path, struct at_said *said);
/* Is it a file that generate writes beside cases: MANIFEST.json, an interval? */
bool at_is_beside(const char *path);

#endif

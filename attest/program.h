/* What the files of the program share. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "at_index.h"
#include "oracle.h"
#include "ref.h"

enum { PASS, FAIL, MISUSE, UNDECIDED }; /* exit statuses */

enum { MOST_CUTS = 64, MOST_NUMBERS = 1024 };

/* The command line. */
struct options {
    const char *command;
    struct at_fields fields; /* flags that say what a case lacks */
    const char *arith, *out, *write_case, *repro, *fault, *scores, *values;
    int64_t rows; /* -1 all, -2 not said */
    uint64_t seed;
    int64_t allow; /* elements without a claim */
    double alarm;  /* --confidence: the second line's chance of a false alarm; 0: no such line */
    int64_t split;
    struct at_place row;
    bool one_row, json, same_bits, help, brief, no_diagnose;
    const char *append, *profile, *only;
    const char *junit;                          /* of check */
    int64_t limit;                              /* seconds that a shared object has for a case */
    const char *truth;                          /* "fast", "mpfr"; NULL: not said */
    const char *dtype, *shape, *format, *tiles; /* of generate */
    struct at_plan plan;
    int64_t cut[MOST_CUTS];
    char line[8000]; /* the command, for repeating */
    char **file;     /* what is left: engine, case, results */
    int files;
};

void drop_right_zero(struct at_fields *f); /* where causal says the same (line.c) */

static inline bool truth_fast(const struct options *o, bool otherwise)
{
    return o->truth ? o->truth[0] == 'f' : otherwise;
}

/* False: misuse, told in said. */
bool read_options(int argc, char **argv, struct options *o, struct at_said *said);
/* --confidence's probability of a false alarm (line.c). */
bool line_alarm(const char *text, double *alarm, struct at_said *said);

/* The command as it can be pasted into a shell. */
void line_join(int argc, char **argv, char *to, size_t size);
/* A bit of its own for each command that has flags (args.c, JUDGE ..); 0: none of them. */
int line_command(const char *name);
/* The options with file k alone in the line, so that it repeats one failure. */
struct options line_alone(const struct options *o, int k);

/* -- Commands: an exit status ---------------------------------------------------------------- */

int run_judge(const struct options *o);
int run_check(const struct options *o);
int run_run(const struct options *o);
int run_truth(const struct options *o);
int run_trace(const struct options *o);
int run_show(const struct options *o);
int run_list(const struct options *o);
int run_generate(const struct options *o);

/* -- Engines and arithmetics (engine.c) -------------------------------------------------------- */

const struct at_engine *engine_at(int64_t k); /* NULL: no more */
const struct at_engine *engine_find(const char *name);
/* "bf16-p" or "fp32,tile=64,joins=3"; false: refused. */
bool arith_parse(const char *text, struct at_arith *to, struct at_said *said);
/* The words that arith_parse reads back. */
void arith_text(const struct at_arith *x, char *text, size_t size);
/* The options' plan over the case's; what is not said stays the engine's choice. */
void plan_case(const struct options *o, struct at_attention *a);
/* An engine's result in memory of the case, out and lse of the compute type; false: refused. */
bool engine_result(const char *engine, const struct options *o, struct at_case *x,
                   struct at_named *to, struct at_arith *arith, struct at_said *said);
/* Half of this machine's memory is enough for the engine's workspace; false: refused. */
bool engine_fits(const struct at_engine *e, const struct at_attention *a, struct at_said *said);

/* -- A kernel as a shared object (plugin.c) --------------------------------------------------- */

/* A name with a slash is the path of one. */
bool is_plugin(const char *engine);
/* The result of o->file[0] on a case. PASS: there is one, and arith->name NULL where it states
 * none; FAIL: how the kernel broke; UNDECIDED: it does not serve this case; MISUSE: refused. Forks,
 * and so comes before anything that uses OpenMP. */
int plugin_result(const struct options *o, struct at_case *x, struct at_named *to,
                  struct at_arith *arith, struct at_said *said);

/* -- What became of each case (junit.c) -------------------------------------------------------- */

struct outcome {
    char name[128], file[256];
    int status;
    double seconds;
    char text[600]; /* why not PASS */
};

/* JUnit's XML, whole or not at all. */
bool junit_write(const char *path, const char *engine, const struct outcome *x, int n,
                 struct at_said *said);

/* -- A judged case (session.c) ---------------------------------------------------------------- */

/* One result under one arithmetic, or on the ladder. */
struct entry {
    const struct at_named *result;
    char held[200];            /* the arithmetic in words; "" on the ladder */
    struct at_judgement *step; /* one, or the ladder's, strictest first */
    int64_t steps;
    bool ladder;
    enum at_outcome outcome;
    bool diagnosed;
    struct at_diagnosis fault;   /* of a failure */
    struct at_statistics second; /* with --confidence */
};

/* The last step's arithmetic in words. */
static inline const char *held_to(const struct entry *e)
{
    return e->ladder ? e->step[e->steps - 1].arith.name : e->held;
}

struct session {
    const struct options *o;
    struct at_case x;
    struct at_rows rows;
    int64_t all; /* rows there are */
    struct at_answer truth;
    int64_t first; /* result that entry[0] is about */
    int64_t entries;
    struct entry *entry;
    const struct at_arith *stated; /* of our engine; NULL: each result's own word */
    double seconds, bounding;      /* that the truth took; the bounds */
    double largest;                /* |v| */
};

/* Seconds of a clock that is never set. */
double now(void);
/* Rows, truth, and a verdict on the results of s->x from s->first on. False: refused. */
bool session_judge(struct session *s, struct at_said *said);
/* Rows as the options say; free rows->at. */
bool choose_rows(const struct options *o, const struct at_attention *a, struct at_rows *rows,
                 struct at_said *said);
/* The case of the command line, kept where --write-case says. */
bool open_case(const struct options *o, const char *path, struct at_case *x, struct at_said *said);
/* The same report for every command that judges. */
int session_report(struct session *s);
void session_free(struct session *s);
/* What a result fails on the rungs of its ladder above its own, nearest first; outcome AT_PASS
 * where it fails none. False: refused. */
bool stricter_failure(struct session *s, const struct entry *e, struct at_judgement *j,
                      struct at_said *said);
/* Error and allowance of each row, for gnuplot. False: refused. */
bool append_profiles(struct session *s, const char *path, struct at_said *said);
/* Exit status of the entries: FAIL before UNDECIDED before PASS. */
int session_status(const struct session *s);

/* -- Printing (report.c, detail.c, json.c, picture.c): the only files that do ------------------ */

int refuse(const struct at_said *said); /* one line on stderr; MISUSE */
void print_usage(const char *command);
void print_line(const char *text);
void print_beside(int n);
void print_generated(const struct at_generated *done);
/* stderr, where it is a terminal and more than a second has passed. */
struct at_progress progress_of(const char *what);
void progress_done(void);
void print_session(const struct session *s);
void print_details(const struct session *s);
void print_json(const struct session *s, const char *append); /* NULL: to stdout */
void print_brief(const struct session *s, const struct entry *e,
                 const struct at_judgement *stricter);
void print_differ(const struct session *s, const char *x, const char *y, struct at_place p,
                  int64_t column);
void print_case(const struct at_case *x);
void print_lists(const char *which);
/* A case without numbers to judge: how the kernel broke, or why it refused. */
void print_broken(const struct session *s, const char *engine, const struct outcome *x);
void print_broken_json(const struct session *s, const char *engine, const struct outcome *x);

/* One line of a trace: the state after a key (key -1: a merge, -2: the sums of a part). */
struct traced {
    char what[80];
    double m, l, u, m_error, l_error, u_error;
};
void print_trace_line(const struct traced *t);
void print_trace_head(void);
void print_trace_end(double out, double out_error, double lse, double lse_error);

#endif

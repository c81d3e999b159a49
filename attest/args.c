/* What a command line means. A flag that describes the case becomes a metadata field, so that file
 * and flags are read by the same code; a flag that a command has no use for is refused.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* getopt_long */
#include "program.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- Numbers --------------------------------------------------------------------------------- */

static bool whole(const char *flag, const char *text, int64_t least, int64_t *to,
                  struct at_said *said)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (*end || end == text || errno || x < least)
        return at_say(said, "--%s %s: expected a whole number >= %lld", flag, text,
                      (long long)least);
    *to = x;
    return true;
}

/* "3,5,7" */
static bool whole_list(const char *flag, const char *text, int64_t *to, int64_t most, int64_t *n,
                       struct at_said *said)
{
    char one[24];
    *n = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length >= sizeof one || *n == most)
            return at_say(said, "--%s %s: expected at most %lld whole numbers", flag, text,
                          (long long)most);
        snprintf(one, sizeof one, "%.*s", (int)length, at);
        if (!whole(flag, one, 0, &to[(*n)++], said))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

static bool finite_number(const char *flag, const char *text, double *to, struct at_said *said)
{
    char *end;
    *to = strtod(text, &end);
    if (*end || end == text || !isfinite(*to))
        return at_say(said, "--%s %s: expected a finite number", flag, text);
    return true;
}

/* -- Metadata fields ------------------------------------------------------------------------- */

static bool field(struct options *o, const char *name, const char *json, struct at_said *said)
{
    struct at_fields *f = &o->fields;
    if (f->n == (int64_t)(sizeof f->at / sizeof *f->at) || strlen(json) >= sizeof f->at->text)
        return at_say(said, "--%s: too long, or too many flags", name);
    snprintf(f->at[f->n].name, sizeof f->at->name, "%s", name);
    snprintf(f->at[f->n++].text, sizeof f->at->text, "%s", json);
    return true;
}

static bool number_field(struct options *o, const char *name, const char *flag, const char *text,
                         struct at_said *said)
{
    char json[40];
    double x;
    if (!finite_number(flag, text, &x, said))
        return false;
    snprintf(json, sizeof json, "%.17g", x);
    return field(o, name, json, said);
}

/* A word goes in as it is: the table of fields says whether it is one of theirs. */
static bool word_field(struct options *o, const char *name, const char *flag, const char *text,
                       struct at_said *said)
{
    char json[60];
    if (strlen(text) > 40 || strpbrk(text, "\"\\"))
        return at_say(said, "--%s %.40s: expected a word", flag, text);
    snprintf(json, sizeof json, "\"%s\"", text);
    return field(o, name, json, said);
}

static bool list_field(struct options *o, const char *name, const char *flag, const char *text,
                       struct at_said *said)
{
    int64_t n, list[MOST_NUMBERS];
    char json[200];
    if (!whole_list(flag, text, list, MOST_NUMBERS, &n, said))
        return false;
    if (strlen(text) + 3 > sizeof json)
        return at_say(said, "--%s: the list is too long, put it into the file as a tensor", flag);
    snprintf(json, sizeof json, "[%s]", text);
    return field(o, name, json, said);
}

static bool window(struct options *o, const char *text, struct at_said *said)
{
    char left[24], right[24];
    int64_t l, r;
    if (sscanf(text, "%23[^,],%23s", left, right) != 2)
        return at_say(said, "--window %s: expected LEFT,RIGHT", text);
    if (!whole("window", left, -1, &l, said) || !whole("window", right, -1, &r, said))
        return false;
    /* causal says right = 0 by itself, in whatever order the flags come */
    return field(o, "left", left, said) && field(o, "right", right, said);
}

/* -- Flags ----------------------------------------------------------------------------------- */

enum { JUDGE = 1, CHECK = 2, RUN = 4, TRUTH = 8, TRACE = 16, SHOW = 32, LIST = 64, GENERATE = 128 };
enum { CASE = JUDGE | CHECK | RUN | TRUTH | SHOW, ENGINE = CHECK | RUN };

enum flag {
    HELP,
    CAUSAL,
    SCALE,
    LAYOUT,
    KV_LAYOUT,
    WINDOW,
    SOFTCAP,
    OFFSET,
    KV_LEN,
    Q_LEN,
    LSE,
    LSE_LAYOUT,
    EMPTY,
    EMPTY_LSE,
    WRITE_CASE,
    ARITH,
    ROWS,
    SEED,
    ROW,
    JSON,
    SAME_BITS,
    SAVE_REPRO,
    ALLOW_UNCLAIMED,
    TILE,
    SPLITS,
    MERGE,
    LANES,
    COMPUTE,
    THREADS,
    FAULT,
    OUT,
    SCORES,
    VALUES,
    LIMIT,
    JUNIT,
    SPLIT,
    BRIEF,
    APPEND,
    PROFILE,
    ONLY,
    TRUTH_BY,
    NO_DIAGNOSE,
    CONFIDENCE,
    DTYPE,
    SHAPE,
    FORMAT,
    FLAGS
};

static const struct {
    const char *name;
    int commands;
    const char *field; /* where the flag is a word or number of the metadata */
} flags[FLAGS] = {
    [HELP] = {"help", 255, NULL},
    [CAUSAL] = {"causal", CASE | GENERATE, "causal"},
    [SCALE] = {"scale", CASE, "scale"},
    [LAYOUT] = {"layout", CASE, "layout"},
    [KV_LAYOUT] = {"kv-layout", CASE, "kv_layout"},
    [WINDOW] = {"window", CASE | GENERATE, NULL},
    [SOFTCAP] = {"softcap", CASE, "softcap"},
    [OFFSET] = {"offset", CASE, "offset"},
    [KV_LEN] = {"kv-len", CASE, "kv_len"},
    [Q_LEN] = {"q-len", CASE, "q_len"},
    [LSE] = {"lse", CASE, "lse.base"},
    [LSE_LAYOUT] = {"lse-layout", CASE, "lse.layout"},
    [EMPTY] = {"empty", CASE, "empty.out"},
    [EMPTY_LSE] = {"empty-lse", CASE, "empty.lse"},
    [WRITE_CASE] = {"write-case", CASE, NULL},
    [ARITH] = {"arith", JUDGE | CHECK | GENERATE, NULL},
    [ROWS] = {"rows", JUDGE | CHECK | TRUTH | GENERATE, NULL},
    [SEED] = {"seed", JUDGE | CHECK | TRUTH | GENERATE, NULL},
    [ROW] = {"row", JUDGE | CHECK | TRUTH, NULL},
    [JSON] = {"json", JUDGE | CHECK, NULL},
    [SAME_BITS] = {"same-bits", JUDGE, NULL},
    [SAVE_REPRO] = {"save-repro", JUDGE | CHECK, NULL},
    [ALLOW_UNCLAIMED] = {"allow-unclaimed", JUDGE | CHECK, NULL},
    [TILE] = {"tile", ENGINE | TRACE | GENERATE, NULL},
    [SPLITS] = {"splits", ENGINE, NULL},
    [MERGE] = {"merge", ENGINE, NULL},
    [LANES] = {"lanes", ENGINE, NULL},
    [COMPUTE] = {"compute", ENGINE, NULL},
    [THREADS] = {"threads", ENGINE, NULL},
    [FAULT] = {"fault", CHECK | RUN, NULL},
    [OUT] = {"output", RUN | TRUTH | GENERATE, NULL},
    [SCORES] = {"scores", TRACE, NULL},
    [VALUES] = {"values", TRACE, NULL},
    [LIMIT] = {"limit", ENGINE, NULL},
    [JUNIT] = {"junit", CHECK, NULL},
    [SPLIT] = {"split", TRACE, NULL},
    [BRIEF] = {"brief", JUDGE | CHECK, NULL},
    [APPEND] = {"append", JUDGE | CHECK, NULL},
    [PROFILE] = {"profile", JUDGE | CHECK, NULL},
    [ONLY] = {"only", JUDGE, NULL},
    [TRUTH_BY] = {"truth", JUDGE | CHECK | TRUTH, NULL},
    [CONFIDENCE] = {"confidence", JUDGE | CHECK, NULL},
    [NO_DIAGNOSE] = {"no-diagnose", JUDGE | CHECK, NULL},
    [DTYPE] = {"dtype", GENERATE, NULL},
    [SHAPE] = {"shape", GENERATE, NULL},
    [FORMAT] = {"format", GENERATE, NULL},
};

static bool plain(enum flag f)
{
    return f == HELP || f == JSON || f == SAME_BITS || f == BRIEF || f == NO_DIAGNOSE;
}

/* "0,1,7,300" are split points, "4" is a number of equal parts. A point 0 makes an empty part. */
static bool splits(struct options *o, const char *text, struct at_said *said)
{
    int64_t n;
    if (!whole_list("splits", text, o->cut, MOST_CUTS, &n, said))
        return false;
    bool points = strchr(text, ',') != NULL;
    o->plan.splits = points ? n + 1 : o->cut[0];
    o->plan.cut = points ? o->cut : NULL;
    if (!points && o->plan.splits < 1)
        return at_say(said, "--splits 0: expected at least 1 part, or split points 0,1,7");
    return true;
}

static bool merge(struct options *o, const char *text, struct at_said *said)
{
    static const char *const order[] = {"order", "reversed", "tree"};
    int64_t seed = 0;
    for (int k = 0; k < 3; k++)
        if (strcmp(order[k], text) == 0) {
            o->plan.merge = (enum at_order)k;
            return true;
        }
    if (strncmp(text, "random:", 7) != 0)
        return at_say(said, "--merge %s: expected order, reversed, tree or random:SEED", text);
    if (!whole("merge", text + 7, 0, &seed, said))
        return false;
    o->plan.merge = AT_RANDOM;
    o->plan.merge_seed = (uint64_t)seed;
    return true;
}

static bool compute(struct options *o, const char *text, struct at_said *said)
{
    bool wide = strcmp(text, "fp64") == 0;
    if (!wide && strcmp(text, "fp32") != 0)
        return at_say(said, "--compute %s: expected fp32 or fp64", text);
    o->plan.compute = wide ? AT_F64 : AT_F32;
    return true;
}

static bool one_row(struct options *o, const char *text, struct at_said *said)
{
    int64_t n = 0, at[3] = {0};
    const char *from = strncmp(text, "-1,", 3) == 0 ? text + 1 : text; /* b of no sequence */
    if (!whole_list("row", from, at, 3, &n, said) || n != 3)
        return at_say(said, "--row %s: expected B,H,I", text);
    o->row = (struct at_place){from == text ? at[0] : -1, at[1], at[2]};
    o->one_row = true;
    return true;
}

static bool plan_flag(struct options *o, enum flag f, const char *text, struct at_said *said)
{
    int64_t n = 0;
    switch (f) {
    case SPLITS: return splits(o, text, said);
    case MERGE: return merge(o, text, said);
    case COMPUTE: return compute(o, text, said);
    case TILE:
        o->tiles = text; /* generate takes several */
        return line_command(o->command) == GENERATE || whole("tile", text, 1, &o->plan.bc, said);
    case LANES: return whole("lanes", text, 1, &o->plan.lanes, said);
    case THREADS:
        if (!whole("threads", text, 1, &n, said))
            return false;
        o->plan.threads = (int)at_min(n, 1 << 16);
        return true;
    default: return at_say(said, "--%s: not served", flags[f].name);
    }
}

static bool case_flag(struct options *o, enum flag f, const char *text, struct at_said *said)
{
    const char *name = flags[f].field;
    char *end;
    switch (f) {
    case WINDOW: return window(o, text, said);
    case SCALE:
    case SOFTCAP:
    case OFFSET: return number_field(o, name, flags[f].name, text, said);
    case KV_LEN:
    case Q_LEN: return list_field(o, name, flags[f].name, text, said);
    case EMPTY_LSE:
        strtod(text, &end);
        if (*text && !*end && !strstr(text, "inf"))
            return number_field(o, name, flags[f].name, text, said);
        return word_field(o, name, flags[f].name, text, said);
    default: return word_field(o, name, flags[f].name, text, said);
    }
}

static bool take_flag(struct options *o, enum flag f, const char *text, struct at_said *said)
{
    int64_t n = 0;
    switch (f) {
    case HELP: o->help = true; return true;
    case JSON: o->json = true; return true;
    case SAME_BITS: o->same_bits = true; return true;
    case BRIEF: o->brief = true; return true;
    case NO_DIAGNOSE: o->no_diagnose = true; return true;
    case APPEND: o->append = text; return true;
    case PROFILE: o->profile = text; return true;
    case ONLY: o->only = text; return true;
    case TRUTH_BY:
        o->truth = text;
        return !strcmp(text, "fast") || !strcmp(text, "mpfr") ||
               at_say(said, "--truth %.40s: expected fast or mpfr", text);
    case DTYPE: o->dtype = text; return true;
    case SHAPE: o->shape = text; return true;
    case FORMAT: o->format = text; return true;
    case WRITE_CASE: o->write_case = text; return true;
    case ARITH: o->arith = text; return true;
    case SAVE_REPRO: o->repro = text; return true;
    case FAULT: o->fault = text; return true;
    case OUT: o->out = text; return true;
    case SCORES: o->scores = text; return true;
    case VALUES: o->values = text; return true;
    case JUNIT: o->junit = text; return true;
    case LIMIT: return whole("limit", text, 1, &o->limit, said);
    case SPLIT: return whole("split", text, 1, &o->split, said);
    case ALLOW_UNCLAIMED: return whole("allow-unclaimed", text, 0, &o->allow, said);
    case CONFIDENCE: return line_alarm(text, &o->alarm, said);
    case ROW: return one_row(o, text, said);
    case ROWS:
        o->rows = -1;
        return strcmp(text, "all") == 0 || whole("rows", text, 1, &o->rows, said);
    case SEED:
        if (!whole("seed", text, 0, &n, said))
            return false;
        o->seed = (uint64_t)n;
        return true;
    default: return f <= EMPTY_LSE ? case_flag(o, f, text, said) : plan_flag(o, f, text, said);
    }
}

bool read_options(int argc, char **argv, struct options *o, struct at_said *said)
{
    struct option table[FLAGS + 1] = {{0}};
    int f, bit = line_command(argv[0]);
    for (int k = 0; k < FLAGS; k++)
        table[k] = (struct option){
            flags[k].name, plain((enum flag)k) ? no_argument : required_argument, NULL, 256 + k};
    *o = (struct options){.command = argv[0], .rows = -2, .seed = 1, .limit = 60};
    line_join(argc, argv, o->line, sizeof o->line); /* before getopt_long sorts it */
    opterr = 0;
    optind = 1;
    while ((f = getopt_long(argc, argv, ":o:", table, NULL)) != -1) {
        if (f == '?' || f == ':')
            return at_say(said, "%s: flag %s %s (attest %s --help)", argv[0], argv[optind - 1],
                          f == ':' ? "needs a value" : "is unknown or ambiguous", argv[0]);
        enum flag which = f == 'o' ? OUT : (enum flag)(f - 256);
        if (!(flags[which].commands & bit))
            return at_say(said, "%s: flag --%s found, but this command has no use for it", argv[0],
                          flags[which].name);
        if (!take_flag(o, which, optarg, said))
            return false;
    }
    drop_right_zero(&o->fields);
    o->file = argv + optind;
    o->files = argc - optind;
    return true;
}

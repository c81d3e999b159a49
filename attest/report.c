/* What the program says: tables, one line a refusal, progress. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* fileno */
#include "program.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int refuse(const struct at_said *said)
{
    progress_done();
    fprintf(stderr, "attest: %s\n", said->text);
    return MISUSE;
}

void print_line(const char *text) { printf("%s\n", text); }

/* Files given to check that are no cases. */
void print_beside(int n) { printf("%d manifests and intervals passed over\n", n); }

void print_generated(const struct at_generated *done)
{
    printf("%lld cases, %lld files, %.2f MB", (long long)done->cases, (long long)done->files,
           (double)done->bytes / 1e6);
    if (done->skipped > 0)
        printf(", %lld of them were there already", (long long)done->skipped);
    if (done->unfit > 0)
        printf(", %lld cases left out: MANIFEST.json says why", (long long)done->unfit);
    printf("\n");
    if (*done->pin)
        printf("MANIFEST.json %s\n", done->pin);
}

void print_usage(const char *command)
{
    static const char *const lines[][2] = {
        {"judge",
         "attest judge CASE [GOT...] [--arith A] [--rows N|all] [--seed N] [--row B,H,I] [--json]\n"
         "                       [--same-bits] [--save-repro F] [--allow-unclaimed N] "
         "[--no-diagnose]\n"
         "                       [--confidence 0.000001] [--truth fast|mpfr]\n"
         "    Judges the results of GOT, or of CASE itself, element by element. Without --arith:\n"
         "    what the file says of a result, else a ladder of arithmetics."},
        {"check",
         "attest check ENGINE CASE... [--tile N] [--splits N|0,1,7] [--merge "
         "order|reversed|tree|random:SEED]\n"
         "                       [--lanes N] [--compute fp32|fp64] [--threads N] [--fault F]\n"
         "                       [--limit SECONDS] [--junit F] [--truth fast|mpfr]\n"
         "    Runs one of our engines, or ./my.so (docs/embedding.md), and judges it under its "
         "own\n"
         "    arithmetic."},
        {"run", "attest run ENGINE CASE -o OUT [the plan, --fault and --limit, as of check]"},
        {"truth", "attest truth CASE -o OUT [--rows N|all] [--seed N] [--truth mpfr|fast]"},
        {"trace",
         "attest trace --scores 1000,999,1002,998 --values 2,-1,4,3 [--split 2] [--tile 2]"},
        {"show", "attest show CASE"},
        {"list", "attest list [engines|arith|faults|suites]"},
        {"generate", "attest generate SUITE[@VERSION] -o DIR [--shape B,Hq,Hkv,Sq,Skv,D,Dv] "
                     "[--dtype T] [--tile 64,128]\n"
                     "                       [--causal bottom-right|top-left] [--window L,R] "
                     "[--arith A] [--seed N]\n"
                     "                       [--rows N] [--format safetensors|c]\n"
                     "    Test vectors with their truth and the interval that a correct kernel of "
                     "that arithmetic hits."},
    };
    printf("attest: is my attention kernel wrong, or is that rounding?\n\n");
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        if (!command || strcmp(command, lines[k][0]) == 0)
            printf("  %s\n", lines[k][1]);
    printf(
        "\nA case is one safetensors file (docs/formats.md). Flags say what it lacks: --causal\n"
        "bottom-right|top-left --scale X --layout bhsd|bshd|thd --kv-layout pages-hnd|pages-nhd\n"
        "--window LEFT,RIGHT --softcap X --offset N --q-len N,.. --kv-len N,.. --lse "
        "natural|base2|none\n"
        "--lse-layout bhs|ht|th|padded --empty zero|nan --empty-lse -inf|+inf|zero|NUMBER;\n"
        "--write-case FILE keeps the completed case. Status: 0 pass, 1 fail, 2 misuse or bad\n"
        "input, 3 undecided.\n");
}

/* -- Progress -------------------------------------------------------------------------------- */

static struct {
    const char *what;
    double start, told;
    bool shown;
} progress;

static void tell(void *with, int64_t done, int64_t of)
{
    (void)with;
    double spent = now() - progress.start, left = spent * (double)(of - done) / (double)done;
    if (spent + left < 1 || now() - progress.told < 0.2)
        return;
    progress.told = now();
    progress.shown = true;
    fprintf(stderr, "\r%s: %lld of %lld rows, %.0f s left  ", progress.what, (long long)done,
            (long long)of, left);
    fflush(stderr);
}

struct at_progress progress_of(const char *what)
{
    struct at_progress quiet = {NULL, NULL}, loud = {tell, NULL};
    progress.what = what;
    progress.start = now();
    progress.told = 0;
    return isatty(fileno(stderr)) ? loud : quiet;
}

void progress_done(void)
{
    if (progress.shown)
        fprintf(stderr, "\r%60s\r", "");
    progress.shown = false;
}

/* -- The table ------------------------------------------------------------------------------- */

static const char *word(enum at_outcome outcome)
{
    return outcome == AT_PASS ? "pass" : outcome == AT_FAIL ? "FAIL" : "undecided";
}

static void print_head(const struct session *s)
{
    const struct at_case *x = &s->x;
    printf("%s: rows judged %lld of %lld", x->name, (long long)s->rows.n, (long long)s->all);
    if (s->rows.n < s->all && !s->o->one_row)
        printf(" (ends and borders first, then drawn; --seed %llu, --rows all for all)",
               (unsigned long long)s->o->seed);
    printf("; truth %.1f s, bounds %.1f s, %lld rows (%.3g %%) by MPFR\n", s->seconds, s->bounding,
           (long long)s->truth.by_mpfr, 100 * (double)s->truth.by_mpfr / (double)s->rows.n);
}

static const char *rule_word(const struct at_rule *r, char *text, size_t size)
{
    if (r->beyond == 0)
        return "pass";
    snprintf(text, size, "%lld fail", (long long)r->beyond);
    return text;
}

static int name_width(const struct session *s)
{
    size_t width = 6;
    for (int64_t k = 0; k < s->entries; k++) {
        size_t n = strlen(s->entry[k].result->name);
        width = n > width ? n : width;
    }
    return width > 48 ? 48 : (int)width;
}

/* held: the arithmetic's words, cut where they are many. */
static void print_row(const struct session *s, const char *name, const char *held, int width,
                      const struct at_judgement *j)
{
    char beyond[2][40];
    struct at_place p = j->place;
    printf("%-*.*s  %-18.30s %-9s %9.4g %8lld %9.2e %9.3g  %-12s %-11s", width, width, name, held,
           word(j->outcome), j->v.ratio, (long long)j->v.failed, j->v.allowed, s->largest,
           rule_word(&j->rule[0], beyond[0], sizeof beyond[0]),
           rule_word(&j->rule[1], beyond[1], sizeof beyond[1]));
    if (j->v.worst_c < 0)
        printf(" lse[%lld,%lld,%lld]\n", (long long)p.b, (long long)p.h, (long long)p.i);
    else
        printf(" [%lld,%lld,%lld,%lld]\n", (long long)p.b, (long long)p.h, (long long)p.i,
               (long long)j->v.worst_c);
}

/* A line for each arithmetic, then the flag that pins the verdict. */
static void print_ladder(const struct session *s, const struct entry *e, int width)
{
    const struct at_judgement *pin = NULL;
    for (int64_t k = 0; k < e->steps; k++) {
        const struct at_judgement *j = &e->step[k];
        print_row(s, k == 0 ? e->result->name : "", j->arith.name, width, j);
        if (!pin && j->outcome == AT_PASS)
            pin = j;
    }
    if (pin)
        printf(
            "%-*s  undecided: nobody stated an arithmetic. The strictest that holds: --arith %s\n",
            width, "", pin->arith.name);
    else if (e->outcome == AT_FAIL)
        printf("%-*s  fails even the loosest arithmetic of its dtype\n", width, "");
    else
        printf("%-*s  undecided: no arithmetic of its dtype makes a claim on every element\n",
               width, "");
}

/* A third party's name, or our engine with its plan. */
static void label(const struct session *s, const struct entry *e, char *text, size_t size)
{
    static const char *const order[] = {"in order", "reversed", "tree", "random"};
    const struct at_plan *p = &s->x.a.plan;
    if (!s->stated || s->o->fault)
        snprintf(text, size, "%s", s->o->fault ? s->o->fault : e->result->name);
    else if (p->splits > 1)
        snprintf(text, size, "%s, %lld splits %s", e->result->name, (long long)p->splits,
                 order[p->merge]);
    else if (s->stated->tile > 0)
        snprintf(text, size, "%s, tile %lld", e->result->name, (long long)p->bc);
    else
        snprintf(text, size, "%s", e->result->name);
}

void print_brief(const struct session *s, const struct entry *e,
                 const struct at_judgement *stricter)
{
    const struct at_judgement *j = &e->step[0];
    char name[200], beyond[2][40], other[80] = "";
    label(s, e, name, sizeof name);
    if (stricter->outcome == AT_FAIL)
        snprintf(other, sizeof other, "%s: FAIL %.3g", stricter->arith.name, stricter->v.ratio);
    printf("%-20s %-26.60s %-18.18s %-5s %8.3g %6lld  %-28s %-10s %-9s", s->x.name, name, e->held,
           word(j->outcome), j->v.ratio, (long long)j->v.failed, other,
           rule_word(&j->rule[0], beyond[0], sizeof beyond[0]),
           rule_word(&j->rule[1], beyond[1], sizeof beyond[1]));
    if (j->outcome == AT_FAIL)
        printf(" %s[%lld,%lld,%lld,%lld]", j->v.worst_c < 0 ? "lse" : "out", (long long)j->place.b,
               (long long)j->place.h, (long long)j->place.i, (long long)at_max(j->v.worst_c, 0));
    printf("\n");
}

static void print_counts(const struct entry *e)
{
    const struct at_judgement *j = e->steps == 1 ? &e->step[0] : NULL;
    if (j && (j->v.open > 0 || j->v.unclaimed > 0))
        printf("%s: %lld elements open (NaN is accepted too), %lld without a claim\n",
               e->result->name, (long long)j->v.open, (long long)j->v.unclaimed);
}

static void print_second(const struct session *s, const struct entry *e)
{
    const struct at_statistics *x = &e->second;
    if (!(s->o->alarm > 0) || e->ladder)
        return;
    printf("%s, second line: ", e->result->name);
    if (!x->applies)
        printf("does not apply (%lld rows with ordinary numbers, or an arithmetic that cuts)\n",
               (long long)x->rows);
    else
        printf("%s: rms %.3g of %.3g; along out %.3g, along d out/d scale %.3g of %.3g deviations; "
               "%lld rows\n    a correct kernel of independent roundings fails it with probability "
               "<= %g\n",
               x->fails ? "FAIL" : "pass", x->rms, x->rms_limit, x->gain, x->scale, x->limit,
               (long long)x->rows, x->alarm);
}

void print_session(const struct session *s)
{
    int width = name_width(s);
    print_head(s);
    printf("%-*s  %-18s %-9s %9s %8s %9s %9s  %-12s %-11s worst at\n", width, "result", "held to",
           "verdict", "ratio", "failed", "allowed", "max |v|", "assert_close", "allclose");
    for (int64_t k = 0; k < s->entries; k++) {
        const struct entry *e = &s->entry[k];
        if (e->ladder)
            print_ladder(s, e, width);
        else
            print_row(s, e->result->name, e->held, width, &e->step[0]);
    }
    for (int64_t k = 0; k < s->entries; k++)
        print_counts(&s->entry[k]);
    for (int64_t k = 0; k < s->entries; k++)
        print_second(s, &s->entry[k]);
}

void print_differ(const struct session *s, const char *x, const char *y, struct at_place p,
                  int64_t column)
{
    const char *what = column < 0 ? "lse" : "out";
    printf("%s: %s and %s differ in bits, first in %s at [%lld,%lld,%lld,%lld]\n", s->x.name, x, y,
           what, (long long)p.b, (long long)p.h, (long long)p.i, (long long)at_max(column, 0));
}

void print_broken(const struct session *s, const char *engine, const struct outcome *x)
{
    printf("%s: %s %s: %s\n", x->name, engine, x->status == FAIL ? "FAILS" : "undecided", x->text);
    printf("  repeat   %s\n", s->o->line);
}

/* -- Lists ----------------------------------------------------------------------------------- */

void print_lists(const char *which)
{
    bool all = strcmp(which, "all") == 0;
    if (all || strcmp(which, "engines") == 0) {
        printf("engines\n");
        for (int64_t k = 0; engine_at(k); k++)
            printf("  %s\n", engine_at(k)->name);
        char device[300];
        at_gpu_describe(device, sizeof device);
        printf("device (gpu, gpu-decode, gpu-mma, gpu-wgmma)\n  %s\n", device);
    }
    if (all || strcmp(which, "arith") == 0) {
        printf("arithmetics (--arith NAME, or NAME,key=value,...)\n");
        for (int64_t k = 0; at_arith_at(k); k++)
            printf("  %-22s %s\n", at_arith_at(k)->name, at_arith_at(k)->source);
    }
    if (all || strcmp(which, "suites") == 0) {
        printf("suites (attest generate NAME -o DIR)\n");
        for (int64_t k = 0; at_suite_at(k); k++)
            printf("  %s\n", at_suite_at(k));
    }
    if (all || strcmp(which, "faults") == 0) {
        printf("faults (attest check scalar CASE --fault NAME@N,head=H,p=bf16)\n");
        for (int64_t k = 0; at_mutant_at(k); k++)
            printf("  %-18s %-8s fails %-7s %s\n", at_mutant_at(k)->name,
                   at_mutant_at(k)->of ? at_mutant_at(k)->of : "", at_mutant_at(k)->arith,
                   at_mutant_at(k)->what);
    }
}

/* -- A trace --------------------------------------------------------------------------------- */

void print_trace_head(void)
{
    printf("%3s %9s %9s   %12s %14s %14s   %10s %10s\n", "key", "score", "value", "m", "l", "u",
           "error of l", "error of u");
}

void print_trace_line(const struct traced *t)
{
    printf("%-23s   %12.9g %14.9g %14.9g   %10.1e %10.1e\n", t->what, t->m, t->l, t->u, t->l_error,
           t->u_error);
}

void print_trace_end(double out, double out_error, double lse, double lse_error)
{
    printf("out = u/l     = %.9g, error %.1e\n", out, out_error);
    printf("lse = m+log l = %.9g, error %.1e\n", lse, lse_error);
}

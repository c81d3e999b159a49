/* One case judged: rows, truth, then every result under the arithmetic that it is held to.
 *
 * Which arithmetic: --arith, else our engine's, else what the file says of the result; where nobody
 * says, the ladder of presets, strictest first. A bound depends on the arithmetic alone, so the
 * loop runs over arithmetics outside and results inside. SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool open_case(const struct options *o, const char *path, struct at_case *x, struct at_said *said)
{
    if (!at_case_read(path, &o->fields, x, said))
        return false;
    if (!o->write_case || at_case_write(x, o->write_case, said))
        return true;
    at_case_free(x);
    return false;
}

bool choose_rows(const struct options *o, const struct at_attention *a, struct at_rows *rows,
                 struct at_said *said)
{
    struct at_sizes z = at_sizes(a);
    struct at_place p = o->row;
    if (!o->one_row)
        return at_rows_choose(a, o->rows == -2 ? at_rows_default(a) : o->rows, o->seed, rows) ||
               at_say(said, "rows: no memory");
    int64_t end = p.b < 0 || !a->score.q_start ? a->q.dim[2] : at_rows_of(a, &z, p.b);
    if ((p.b < 0 && !a->score.q_start) || p.b >= z.B || p.h >= z.Hq || p.i >= end)
        return at_say(said, "--row %lld,%lld,%lld: no such row, expected below %lld,%lld,%lld",
                      (long long)p.b, (long long)p.h, (long long)p.i, (long long)z.B,
                      (long long)z.Hq, (long long)end);
    struct at_place *at = malloc(sizeof *at);
    if (!at)
        return at_say(said, "rows: no memory");
    *at = p;
    *rows = (struct at_rows){1, at};
    return true;
}

/* -- Arithmetics ----------------------------------------------------------------------------- */

/* The arithmetic that a result is held to; nobody says: the ladder. */
static bool arith_of(const struct session *s, struct entry *e, struct at_arith *arith,
                     struct at_said *said)
{
    const char *text = s->o->arith ? s->o->arith : e->result->arith;
    if (!s->o->arith && s->stated) {
        *arith = *s->stated;
        text = arith->name;
    } else if (*text && !arith_parse(text, arith, said))
        return false;
    e->ladder = !*text;
    snprintf(e->held, sizeof e->held, "%s", text);
    return true;
}

static bool add_step(struct session *s, struct entry *e, const struct at_arith *arith,
                     struct at_said *said)
{
    struct at_judgement *grown = realloc(e->step, (size_t)(e->steps + 1) * sizeof *grown);
    if (!grown)
        return at_say(said, "%s: no memory", s->x.path);
    e->step = grown;
    return at_judge(&s->x.a, e->result, s->rows, arith, s->o->allow, &s->truth,
                    &e->step[e->steps++], said);
}

/* The bound of the case's rows; of an exact case, 0 where the arithmetic makes no error. */
static bool bound_of(struct session *s, const struct at_arith *arith, struct at_said *said)
{
    double start = now();
    if (!at_judge_bound(&s->x.a, s->rows, arith, &s->truth, said))
        return false;
    s->bounding += now() - start;
    at_exact_claim(at_case_exact(&s->x), arith, s->x.a.v.dtype, &s->truth);
    return true;
}

static bool judge_held(struct session *s, struct entry *e, const struct at_arith *arith,
                       struct at_said *said)
{
    if (!bound_of(s, arith, said) || !add_step(s, e, arith, said))
        return false;
    e->outcome = e->step[0].outcome;
    return true;
}

/* Strictest first. Failing the loosest is a failure; anything else is for the user to pin. */
static bool judge_ladders(struct session *s, struct at_said *said)
{
    enum at_dtype seen[8];
    int64_t n = 0;
    for (int64_t k = 0; k < s->entries; k++) { /* each output dtype has a ladder of its own */
        enum at_dtype dtype = s->entry[k].result->got.out.dtype;
        bool done = !s->entry[k].ladder;
        for (int64_t t = 0; t < n; t++)
            done = done || seen[t] == dtype;
        if (done || n == 8)
            continue;
        seen[n++] = dtype;
        for (int64_t r = 0; at_arith_ladder(dtype, r); r++) {
            if (!bound_of(s, at_arith_ladder(dtype, r), said))
                return false;
            for (int64_t e = 0; e < s->entries; e++)
                if (s->entry[e].ladder && s->entry[e].result->got.out.dtype == dtype &&
                    !add_step(s, &s->entry[e], at_arith_ladder(dtype, r), said))
                    return false;
        }
    }
    for (int64_t k = 0; k < s->entries; k++) {
        struct entry *e = &s->entry[k];
        if (!e->ladder)
            continue;
        e->outcome = AT_UNDECIDED;
        if (e->steps > 0 && e->step[e->steps - 1].outcome == AT_FAIL)
            e->outcome = AT_FAIL;
    }
    return true;
}

static bool judge_all(struct session *s, struct at_said *said)
{
    s->entries = s->x.results - s->first;
    s->entry = calloc((size_t)s->entries + 1, sizeof *s->entry);
    if (!s->entry)
        return at_say(said, "%s: no memory", s->x.path);
    for (int64_t k = 0; k < s->entries; k++) {
        struct entry *e = &s->entry[k];
        struct at_arith arith;
        e->result = &s->x.result[s->first + k];
        if (!arith_of(s, e, &arith, said))
            return false;
        if (!e->ladder && !judge_held(s, e, &arith, said))
            return false;
    }
    return judge_ladders(s, said);
}

/* -- Diagnosis ------------------------------------------------------------------------------- */

/* The bound in truth is the last arithmetic's; of several results each needs its own again. */
static bool diagnose(struct session *s, struct at_said *said)
{
    for (int64_t k = 0; k < s->entries; k++) {
        struct entry *e = &s->entry[k];
        bool fails = e->outcome == AT_FAIL && e->step[e->steps - 1].outcome == AT_FAIL;
        if (!fails || s->o->no_diagnose || s->o->brief)
            continue;
        struct at_arith arith = e->step[e->steps - 1].arith;
        arith.name = held_to(e); /* a looser one is named after it */
        if (s->entries > 1 && !at_judge_bound(&s->x.a, s->rows, &arith, &s->truth, said))
            return false;
        if (!at_diagnose(&s->x.a, &e->result->got, s->rows, &arith, &s->truth, &e->fault))
            return at_say(said, "%s: no memory for the diagnosis", s->x.path);
        e->diagnosed = true;
    }
    return true;
}

/* The second line: over pinned results that the bound lets pass. Its failure is a failure. */
static bool second_line(struct session *s, struct at_said *said)
{
    for (int64_t k = 0; k < s->entries && s->o->alarm > 0; k++) {
        struct entry *e = &s->entry[k];
        if (e->ladder || e->steps != 1)
            continue;
        const struct at_arith *arith = &e->step[0].arith;
        if (s->entries > 1 && !at_judge_bound(&s->x.a, s->rows, arith, &s->truth, said))
            return false;
        if (at_statistics(&s->x.a, arith, &e->result->got.out, s->rows, &s->truth, s->o->alarm,
                          &e->second) != AT_OK)
            return at_say(said, "%s: no memory for the second line", s->x.path);
        if (e->second.applies && e->second.fails)
            e->outcome = AT_FAIL;
    }
    return true;
}

/* -- The whole ------------------------------------------------------------------------------- */

/* As the options say; else those that the file says; else by cost. */
static bool rows_of(struct session *s, struct at_said *said)
{
    struct at_rows rows = {-1, NULL};
    if (s->o->rows == -2 && !s->o->one_row && !at_case_rows(&s->x, &rows, said))
        return false;
    if (rows.n >= 0)
        s->rows = rows;
    return rows.n >= 0 || choose_rows(s->o, &s->x.a, &s->rows, said);
}

bool session_judge(struct session *s, struct at_said *said)
{
    const struct at_attention *a = &s->x.a;
    s->all = a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
    if (!rows_of(s, said))
        return false;
    if (s->rows.n == 0)
        return at_say(said, "%s: tensor q: no rows found, expected one to judge", s->x.path);
    double start = now();
    bool done =
        at_judge_truth(a, s->rows, truth_fast(s->o, true), progress_of("truth"), &s->truth, said);
    progress_done();
    s->seconds = now() - start;
    s->largest = at_largest_value(a);
    return done && judge_all(s, said) && second_line(s, said) && diagnose(s, said);
}

int session_status(const struct session *s)
{
    int status = PASS;
    for (int64_t k = 0; k < s->entries; k++) {
        if (s->entry[k].outcome == AT_FAIL)
            return FAIL;
        if (s->entry[k].outcome == AT_UNDECIDED)
            status = UNDECIDED;
    }
    return status;
}

/* The worst row of the first result that failed, else of the first. */
static bool save_repro(const struct session *s, struct at_said *said)
{
    const struct entry *e = s->entries > 0 ? &s->entry[0] : NULL;
    for (int64_t k = s->entries; k-- > 0;)
        if (s->entry[k].outcome == AT_FAIL)
            e = &s->entry[k];
    if (!e || e->steps == 0)
        return at_say(said, "%s: no result to save a row of", s->x.path);
    struct at_named got = *e->result; /* held to what it was judged by */
    if (s->o->arith)
        snprintf(got.arith, sizeof got.arith, "%s", s->o->arith);
    return at_case_write_row(&s->x, &got, e->step[e->steps - 1].place, s->o->repro, said);
}

int session_report(struct session *s)
{
    struct at_said said;
    if (s->o->repro && !save_repro(s, &said))
        return refuse(&said);
    if (s->o->append)
        print_json(s, s->o->append);
    if (s->o->profile && !append_profiles(s, s->o->profile, &said))
        return refuse(&said);
    if (s->o->json)
        print_json(s, NULL);
    else if (s->o->brief) {
        for (int64_t k = 0; k < s->entries; k++) {
            struct at_judgement stricter;
            if (s->entry[k].ladder)
                continue;
            if (!stricter_failure(s, &s->entry[k], &stricter, &said))
                return refuse(&said);
            print_brief(s, &s->entry[k], &stricter);
        }
    } else {
        print_session(s);
        print_details(s);
    }
    return session_status(s);
}

void session_free(struct session *s)
{
    for (int64_t k = 0; k < s->entries && s->entry; k++)
        free(s->entry[k].step);
    free(s->entry);
    free((void *)s->rows.at);
    at_answer_free(&s->truth);
    at_case_free(&s->x);
    *s = (struct session){0};
}

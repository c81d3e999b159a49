/* --json: one object a case, one line each; numbers that are none (NaN, infinities) as texts.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *number(double x)
{
    if (isfinite(x))
        return json_real(x);
    return json_string(x != x ? "nan" : x > 0 ? "+inf" : "-inf");
}

static const char *word(enum at_outcome outcome)
{
    return outcome == AT_PASS ? "pass" : outcome == AT_FAIL ? "fail" : "undecided";
}

static json_t *range(const int64_t x[2])
{
    if (x[1] < x[0])
        return json_null();
    return json_pack("[I,I]", (json_int_t)x[0], (json_int_t)x[1]);
}

static json_t *period(const struct at_period *p)
{
    if (p->period == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "period", (json_int_t)p->period, "lo",
                     (json_int_t)p->lo, "hi", (json_int_t)p->hi, "failed", (json_int_t)p->failed,
                     "judged", (json_int_t)p->judged);
}

/* [power of two, count]: ratios in (2^(e-1), 2^e]; null for 0. */
static json_t *histogram(const struct at_where *w)
{
    json_t *list = json_array();
    for (int k = 0; k < AT_BUCKETS; k++) {
        if (w->histogram[k] == 0)
            continue;
        json_t *e = k == 0 ? json_null() : json_integer(AT_BUCKET_BASE + k - 1);
        json_array_append_new(list, json_pack("[o,I]", e, (json_int_t)w->histogram[k]));
    }
    return list;
}

static json_t *where(const struct at_where *w)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "out",
                     (json_int_t)w->out, "lse", (json_int_t)w->lse, "rows", (json_int_t)w->rows,
                     "ratios", histogram(w), "infinite", (json_int_t)w->infinite, "b", range(w->b),
                     "h", range(w->h), "i", range(w->i), "c", range(w->c), "heads_failing",
                     (json_int_t)w->pairs, "heads_judged", (json_int_t)w->pairs_judged,
                     "row_period", period(&w->row), "column_period", period(&w->column));
}

static json_t *rules(const struct at_judgement *j)
{
    json_t *all = json_object();
    for (int k = 0; k < AT_RULES; k++)
        json_object_set_new(all, j->rule[k].name,
                            json_pack("{s:f, s:f, s:I, s:I, s:b}", "rtol", j->rule[k].rtol, "atol",
                                      j->rule[k].atol, "judged", (json_int_t)j->rule[k].judged,
                                      "beyond", (json_int_t)j->rule[k].beyond, "passes",
                                      j->rule[k].beyond == 0));
    return all;
}

static json_t *worst(const struct at_judgement *j)
{
    const struct at_verdict *v = &j->v;
    return json_pack(
        "{s:s, s:[I,I,I,I], s:o, s:o, s:[o,o], s:o}", "tensor", v->worst_c < 0 ? "lse" : "out",
        "at", (json_int_t)j->place.b, (json_int_t)j->place.h, (json_int_t)j->place.i,
        (json_int_t)at_max(v->worst_c, 0), "got", number(v->got), "truth", number(v->truth),
        "interval", number(v->lo), number(v->hi), "allowed", number(v->allowed));
}

static json_t *step(const struct at_judgement *j)
{
    const struct at_verdict *v = &j->v;
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "arith",
                     j->arith.name, "verdict", word(j->outcome), "ratio", number(v->ratio),
                     "judged", (json_int_t)v->judged, "failed", (json_int_t)v->failed, "open",
                     (json_int_t)v->open, "unclaimed", (json_int_t)v->unclaimed, "max_value",
                     number(v->max_value), "max_error", number(v->max_error), "worst", worst(j),
                     "where", where(&j->where), "rules", rules(j));
}

/* The faults that fit as well, or else the runner-up: "a, b" as a list. */
static json_t *names(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t n = strcspn(text, ",");
        json_array_append_new(list, json_stringn(text, n));
        text += n + strspn(text + n, ", ");
    }
    return list;
}

/* What explains the failure; null where nothing failed, or nobody looked (--no-diagnose). */
static json_t *diagnosis(const struct entry *e)
{
    const struct at_diagnosis *d = &e->fault;
    if (!e->diagnosed)
        return json_null();
    json_t *x = json_pack("{s:s, s:s, s:s, s:I, s:I}", "is",
                          !d->known       ? "unknown"
                          : d->arithmetic ? "arithmetic"
                                          : "fault",
                          "name", d->name, "what", d->known ? d->what : "", "rows",
                          (json_int_t)d->rows, "tried", (json_int_t)d->tried);
    if (d->known && d->arithmetic) {
        json_object_set_new(x, "ratio", number(d->ratio));
        return x;
    }
    json_object_update_new(x, json_pack("{s:[I,I], s:[I,I], s:I, s:I}", "explains",
                                        (json_int_t)d->explained, (json_int_t)d->of,
                                        "explains_failing", (json_int_t)d->failing,
                                        (json_int_t)d->of_failing, "tile", (json_int_t)d->tile,
                                        "splits", (json_int_t)d->splits));
    json_object_update_new(x,
                           json_pack("{s:o, s:b, s:I}", "others", names(d->other), "alike",
                                     d->alike, "others_explain", (json_int_t)d->other_explained));
    return x;
}

static json_t *result(const struct entry *e)
{
    json_t *steps = json_array();
    for (int64_t k = 0; k < e->steps; k++)
        json_array_append_new(steps, step(&e->step[k]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o}", "name", e->result->name, "verdict",
                     word(e->outcome), "why", e->result->why, "from", e->result->from, "held",
                     e->held, "ladder", e->ladder, "diagnosis", diagnosis(e), "steps", steps);
}

void print_broken_json(const struct session *s, const char *engine, const struct outcome *x)
{
    json_t *all = json_pack("{s:s, s:s, s:i, s:[{s:s, s:s, s:s}]}", "case", x->name, "file",
                            s->x.path, "status", x->status, "results", "name", engine, "verdict",
                            x->status == FAIL ? "fail" : "undecided", "why", x->text);
    char *text = json_dumps(all, JSON_COMPACT);
    printf("%s\n", text ? text : "{}");
    free(text);
    json_decref(all);
}

void print_json(const struct session *s, const char *append)
{
    json_t *results = json_array();
    for (int64_t k = 0; k < s->entries; k++)
        json_array_append_new(results, result(&s->entry[k]));
    json_t *all =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:i, s:o}", "case", s->x.name,
                  "file", s->x.path, "rows_judged", (json_int_t)s->rows.n, "rows",
                  (json_int_t)s->all, "seed", (json_int_t)s->o->seed, "truth_seconds", s->seconds,
                  "bound_seconds", s->bounding, "rows_by_mpfr", (json_int_t)s->truth.by_mpfr,
                  "largest_v", s->largest, "status", session_status(s), "results", results);
    char *text = json_dumps(all, JSON_COMPACT);
    FILE *f = append ? fopen(append, "a") : stdout;
    if (f)
        fprintf(f, "%s\n", text ? text : "{}");
    if (f && append)
        fclose(f);
    free(text);
    json_decref(all);
}

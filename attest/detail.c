/* A failure says where: the worst element, how far the others are out, what they have in common,
 * and the line that repeats it. SPDX-License-Identifier: MIT */
#include "program.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_worst(const struct at_judgement *j)
{
    const struct at_verdict *v = &j->v;
    struct at_place p = j->place;
    if (v->worst_c < 0)
        printf("  worst    lse[%lld,%lld,%lld]", (long long)p.b, (long long)p.h, (long long)p.i);
    else
        printf("  worst    out[%lld,%lld,%lld,%lld]", (long long)p.b, (long long)p.h,
               (long long)p.i, (long long)v->worst_c);
    printf(" ratio %.4g\n", v->ratio);
    printf("           got     %-24.17g %a\n", v->got, v->got);
    printf("           truth   %-24.17g %a\n", v->truth, v->truth);
    printf("           allowed [%.17g, %.17g]\n", v->lo, v->hi);
    printf("                   [%a, %a]\n", v->lo, v->hi);
}

/* One count, on a new line where the old one is full. */
static void print_count(int *column, const char *what, int64_t n)
{
    char text[60];
    int length = snprintf(text, sizeof text, "  %s: %lld", what, (long long)n);
    if (*column + length > 98) {
        printf("\n          ");
        *column = 10;
    }
    *column += printf("%s", text);
}

/* "0: 812  <=2^-3: 40  <=1: 7  <=2: 3" - only what occurs. */
static void print_histogram(const struct at_where *w)
{
    char what[40];
    int column = printf("  ratios  ");
    for (int k = 0; k < AT_BUCKETS; k++) {
        int e = AT_BUCKET_BASE + k - 1;
        if (w->histogram[k] == 0)
            continue;
        if (k == 0)
            snprintf(what, sizeof what, "0");
        else if (k == AT_BUCKETS - 1)
            snprintf(what, sizeof what, ">%.0f", ldexp(1, e - 1));
        else
            snprintf(what, sizeof what, e < 0 ? "<=2^%.0f" : "<=%.0f", e < 0 ? e : ldexp(1, e));
        print_count(&column, what, w->histogram[k]);
    }
    if (w->infinite)
        print_count(&column, "infinite", w->infinite);
    printf("\n");
}

static void print_range(const char *what, const int64_t range[2])
{
    if (range[1] < range[0])
        return;
    if (range[0] == range[1])
        printf(" %s %lld", what, (long long)range[0]);
    else
        printf(" %s %lld-%lld", what, (long long)range[0], (long long)range[1]);
}

static void print_heads(const struct at_where *w)
{
    int n = 0, span = (int)at_min(w->h[1] - w->h[0] + 1, 64);
    for (int h = 0; h < 64; h++)
        n += (int)(w->heads >> h & 1);
    if (n == span || n > 12 || w->h[1] >= 64) {
        print_range("h", w->h);
        return;
    }
    printf(" h");
    for (int h = 0; h < 64; h++)
        if (w->heads >> h & 1)
            printf(" %d", h);
}

static void print_period(const char *what, const struct at_period *p)
{
    if (p->period == 0)
        return;
    printf("  period   %s ", what);
    if (p->lo == p->hi)
        printf("%lld", (long long)p->lo);
    else
        printf("%lld-%lld", (long long)p->lo, (long long)p->hi);
    printf(" of each %lld (%lld of the %lld judged there fail)\n", (long long)p->period,
           (long long)p->failed, (long long)p->judged);
}

static void print_where(const struct at_where *w)
{
    printf("  where   ");
    print_range("b", w->b);
    print_heads(w);
    print_range("rows", w->i);
    print_range("columns", w->c);
    printf("; %lld of %lld (b,h), %lld rows\n", (long long)w->pairs, (long long)w->pairs_judged,
           (long long)w->rows);
    print_period("rows", &w->row);
    print_period("columns", &w->column);
}

static void print_other(const struct at_diagnosis *d)
{
    if (*d->other)
        printf("           %s %s: %lld of %lld\n", d->alike ? "or" : "next", d->other,
               (long long)d->other_explained, (long long)d->of);
}

static void print_fault(const struct at_diagnosis *d)
{
    if (d->known && d->arithmetic) {
        printf("  fault    %s? Held to %s all of %lld rows pass, ratio %.3g\n", d->name, d->what,
               (long long)d->rows, d->ratio);
        return;
    }
    if (!d->known) {
        printf("  fault    unknown: none of %lld named faults explains %lld rows",
               (long long)d->tried, (long long)d->rows);
        if (d->of_failing > 0)
            printf(" (nearest: %s, %lld of %lld failing elements)", d->name, (long long)d->failing,
                   (long long)d->of_failing);
        printf("\n");
        return;
    }
    printf("  fault    %s: %s", d->name, d->what);
    if (d->tile > 0)
        printf(" (tiles of %lld)", (long long)d->tile);
    if (d->splits > 1)
        printf(" (%lld splits)", (long long)d->splits);
    printf("\n           explains %lld of %lld elements of %lld rows, %lld of the %lld that fail\n",
           (long long)d->explained, (long long)d->of, (long long)d->rows, (long long)d->failing,
           (long long)d->of_failing);
    print_other(d);
}

static void print_repro(const struct session *s, const struct entry *e,
                        const struct at_judgement *j)
{
    struct at_place p = j->place;
    printf("  repeat   %s", s->o->line);
    if (e->ladder)
        printf(" --arith %s", j->arith.name);
    if (!s->o->one_row)
        printf(" --row %lld,%lld,%lld", (long long)p.b, (long long)p.h, (long long)p.i);
    printf("\n");
}

static void print_failure(const struct session *s, const struct entry *e,
                          const struct at_judgement *j)
{
    int64_t n = s->rows.n;
    printf("\n%s FAILS %s: %lld of %lld elements of out, %lld of %lld of lse\n", e->result->name,
           held_to(e), (long long)j->where.out, (long long)(n * s->truth.Dv),
           (long long)j->where.lse, (long long)(e->result->got.lse.data ? n : 0));
    if (*e->result->why && !s->o->arith)
        printf("  held     because: %s\n", e->result->why);
    print_worst(j);
    print_histogram(&j->where);
    print_where(&j->where);
    if (e->diagnosed)
        print_fault(&e->fault);
    print_repro(s, e, j);
}

/* Of a ladder that fails to its end, the loosest step. */
void print_details(const struct session *s)
{
    for (int64_t k = 0; k < s->entries; k++) {
        const struct entry *e = &s->entry[k];
        if (e->steps > 0 &&
            e->step[e->steps - 1].outcome == AT_FAIL) /* not the second line alone */
            print_failure(s, e, &e->step[e->steps - 1]);
    }
}

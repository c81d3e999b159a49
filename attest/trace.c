/* attest trace --scores 1000,999,1002,998 --values 2,-1,4,3 [--split 2] [--tile 2]: the state
 * (m,l,u) of one row after each key or tile, in fp32, and how far each number is from the truth.
 *
 * The truth of l and u is computed in MPFR from the same scores and the same m; m itself is one of
 * the scores and exact. SPDX-License-Identifier: MIT */
#define AT_BITS 32
#include "at_row.h"
#include "program.h"
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 256 };

/* The row's numbers, rounded to fp32 before anybody sees them. */
struct input {
    float s[MOST_NUMBERS], v[MOST_NUMBERS];
    int64_t n;
};

static bool numbers(const char *flag, const char *text, float *to, int64_t *n, struct at_said *said)
{
    char *end;
    *n = 0;
    for (const char *at = text; at && *n < MOST_NUMBERS; at = end + 1) {
        to[*n] = strtof(at, &end);
        if (end == at || (*end && *end != ','))
            return at_say(said, "--%s %s: expected numbers between commas", flag, text);
        ++*n;
        if (!*end)
            return true;
    }
    return at_say(said, "--%s: %s", flag,
                  text ? "too many numbers"
                       : "absent, expected --scores and "
                         "--values, numbers with commas");
}

/* -- The truth of a state over keys from..to-1 ------------------------------------------------- */

/* l = sum e^(s-m), u = sum e^(s-m) v. */
static void sums(const struct input *x, int64_t from, int64_t to, float m, mpfr_ptr l, mpfr_ptr u)
{
    mpfr_t p, t;
    mpfr_inits2(BITS, p, t, (mpfr_ptr)0);
    mpfr_set_zero(l, 1);
    mpfr_set_zero(u, 1);
    for (int64_t j = from; j < to; j++) {
        mpfr_set_flt(p, x->s[j], MPFR_RNDN);
        mpfr_set_flt(t, m, MPFR_RNDN);
        mpfr_sub(p, p, t, MPFR_RNDN);
        mpfr_exp(p, p, MPFR_RNDN);
        mpfr_add(l, l, p, MPFR_RNDN);
        mpfr_set_flt(t, x->v[j], MPFR_RNDN);
        mpfr_fma(u, p, t, u, MPFR_RNDN);
    }
    mpfr_clears(p, t, (mpfr_ptr)0);
}

static double error_of(float got, mpfr_srcptr truth)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    mpfr_set_flt(x, got, MPFR_RNDN);
    mpfr_sub(x, x, truth, MPFR_RNDN);
    double error = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return error;
}

static void print_state(const struct input *x, int64_t from, int64_t to, const struct at_row *row,
                        const char *what)
{
    struct traced line = {.m = (double)row->m, .l = (double)row->l, .u = (double)row->u[0]};
    mpfr_t l, u;
    mpfr_inits2(BITS, l, u, (mpfr_ptr)0);
    sums(x, from, to, row->m, l, u);
    snprintf(line.what, sizeof line.what, "%s", what);
    line.l_error = error_of(row->l, l);
    line.u_error = error_of(row->u[0], u);
    print_trace_line(&line);
    mpfr_clears(l, u, (mpfr_ptr)0);
}

/* out = u/l, lse = m + log l. */
static void print_result(const struct input *x, const struct at_row *row)
{
    float out = at_out(row->u[0], row->l, 1), lse = at_lse(row->m, row->l);
    mpfr_t l, u, m;
    mpfr_inits2(BITS, l, u, m, (mpfr_ptr)0);
    sums(x, 0, x->n, row->m, l, u);
    mpfr_div(u, u, l, MPFR_RNDN);
    mpfr_log(l, l, MPFR_RNDN);
    mpfr_set_flt(m, row->m, MPFR_RNDN);
    mpfr_add(l, l, m, MPFR_RNDN);
    print_trace_end((double)out, error_of(out, u), (double)lse, error_of(lse, l));
    mpfr_clears(l, u, m, (mpfr_ptr)0);
}

/* -- Steps ----------------------------------------------------------------------------------- */

/* Keys from..to-1 join the row as one tile. */
static void take_tile(const struct input *x, int64_t from, int64_t to, struct at_row *row)
{
    float u, m = row->m;
    struct at_row tile = {0, 0, &u};
    for (int64_t j = from; j < to; j++)
        m = at_larger(m, x->s[j]);
    at_row_clear(&tile, m + 0, 1);
    for (int64_t j = from; j < to; j++)
        at_row_add(&tile, x->s[j], &x->v[j], 1);
    at_row_take(row, &tile, 1);
}

static void trace_part(const struct input *x, int64_t from, int64_t to, int64_t tile,
                       struct at_row *row)
{
    char what[80];
    at_row_clear(row, -(float)INFINITY, 1);
    for (int64_t j = from; j < to;) {
        int64_t end = at_min(to, (j / tile + 1) * tile);
        take_tile(x, j, end, row);
        if (end == j + 1)
            snprintf(what, sizeof what, "%3lld %9.6g %9.6g", (long long)j, (double)x->s[j],
                     (double)x->v[j]);
        else
            snprintf(what, sizeof what, "%lld..%lld", (long long)j, (long long)end - 1);
        print_state(x, from, end, row, what);
        j = end;
    }
}

static void trace(const struct input *x, int64_t split, int64_t tile)
{
    float u[2];
    struct at_row a = {.u = &u[0]}, b = {.u = &u[1]};
    print_trace_head();
    trace_part(x, 0, split, tile, &a);
    if (split < x->n) {
        print_line("the other part starts from nothing:");
        trace_part(x, split, x->n, tile, &b);
        at_row_merge(&a, &b, 1);
        print_state(x, 0, x->n, &a, "the two merged");
    }
    print_result(x, &a);
}

int run_trace(const struct options *o)
{
    struct input x = {.n = 0};
    struct at_said said;
    int64_t values = 0;
    bool done = numbers("scores", o->scores, x.s, &x.n, &said) &&
                numbers("values", o->values, x.v, &values, &said);
    if (done && values != x.n)
        done =
            at_say(&said, "--values: %lld numbers found, expected one for each of the %lld scores",
                   (long long)values, (long long)x.n);
    if (done && o->files > 0)
        done = at_say(&said, "trace: %s found, expected flags alone", o->file[0]);
    if (done && o->split >= x.n)
        done = at_say(&said, "--split %lld: expected less than the %lld scores",
                      (long long)o->split, (long long)x.n);
    for (int64_t j = 0; done && j < x.n; j++)
        if (!isfinite(x.s[j]) || !isfinite(x.v[j]))
            done = at_say(&said, "trace: number %lld is not finite in fp32", (long long)j);
    if (!done)
        return refuse(&said);
    trace(&x, o->split ? o->split : x.n, o->plan.bc ? o->plan.bc : 1);
    return PASS;
}

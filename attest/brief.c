/* What a demonstration needs: one line a result (--brief) with the nearest stricter arithmetic that
 * it fails, JSON lines in a file (--append), and error beside allowance row by row (--profile).
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- The nearest stricter arithmetic ---------------------------------------------------------- */

/* Where on its dtype's ladder an arithmetic stands; -1: nowhere. */
static int64_t rung(enum at_dtype dtype, const char *name)
{
    for (int64_t k = 0; at_arith_ladder(dtype, k); k++)
        if (strcmp(at_arith_ladder(dtype, k)->name, name) == 0)
            return k;
    return -1;
}

bool stricter_failure(struct session *s, const struct entry *e, struct at_judgement *j,
                      struct at_said *said)
{
    enum at_dtype dtype = e->result->got.out.dtype;
    j->outcome = AT_PASS;
    for (int64_t k = rung(dtype, e->step[0].arith.name) - 1; k >= 0; k--) {
        const struct at_arith *arith = at_arith_ladder(dtype, k);
        if (!at_judge_bound(&s->x.a, s->rows, arith, &s->truth, said) ||
            !at_judge(&s->x.a, e->result, s->rows, arith, s->o->allow, &s->truth, j, said))
            return false;
        if (j->outcome == AT_FAIL)
            return true;
    }
    return true;
}

/* -- Row by row ------------------------------------------------------------------------------- */

/* The column of row t that comes nearest to its border, or lies furthest past it. */
static int64_t nearest_border(const struct session *s, const double *ratio, int64_t t)
{
    int64_t Dv = s->truth.Dv, worst = 0;
    for (int64_t c = 0; c < Dv; c++)
        if (!(ratio[t * Dv + c] <= ratio[t * Dv + worst]))
            worst = c;
    return worst;
}

/* head row error allowed assert_close: how far got lies from the truth, how far this arithmetic
 * lets it, and how far the published rule would. */
static void write_row(FILE *f, const struct session *s, const struct entry *e, const double *ratio,
                      int64_t t)
{
    const struct at_judgement *j = &e->step[0];
    const struct at_view *out = &e->result->got.out;
    struct at_place p = at_place_of(&s->x.a, s->rows, t);
    int64_t c = nearest_border(s, ratio, t);
    double o = s->truth.out[t * s->truth.Dv + c], lo, hi;
    double got = at_stored(out, at_row_offset(&s->x.a, out, p.b, p.h, p.i) + c * out->stride[3]);
    at_interval(&j->arith, out->dtype, &s->truth, t, c, &lo, &hi);
    fprintf(f, "%lld %lld %.6g %.6g %.6g\n", (long long)p.h, (long long)p.i, fabs(got - o),
            got < o ? o - lo : hi - o, j->rule[0].atol + j->rule[0].rtol * fabs(o));
}

static bool write_profile(FILE *f, struct session *s, const struct entry *e, struct at_said *said)
{
    int64_t n = s->rows.n * (s->truth.Dv + 1);
    double *ratio = malloc((size_t)(n + 1) * sizeof *ratio);
    struct at_verdict v;
    bool done = ratio && at_bound(&s->x.a, &e->step[0].arith, s->rows, &s->truth) == AT_OK &&
                at_compare(&s->x.a, &e->result->got, s->rows, &e->step[0].arith, &s->truth, ratio,
                           &v) == AT_OK;
    if (done) {
        fprintf(f, "# %s, %s held to %s: head row error allowed assert_close\n", s->x.name,
                e->result->name, e->held);
        for (int64_t t = 0; t < s->rows.n; t++)
            write_row(f, s, e, ratio, t);
        fprintf(f, "\n\n"); /* gnuplot's next data set */
    }
    free(ratio);
    return done || at_say(said, "profile of %s: no memory", e->result->name);
}

bool append_profiles(struct session *s, const char *path, struct at_said *said)
{
    FILE *f = fopen(path, "a");
    if (!f)
        return at_say(said, "%s: cannot be written", path);
    bool done = true;
    for (int64_t k = 0; done && k < s->entries; k++)
        done = s->entry[k].ladder || write_profile(f, s, &s->entry[k], said);
    bool closed = fclose(f) == 0;
    return done && (closed || at_say(said, "%s: cannot be written", path));
}

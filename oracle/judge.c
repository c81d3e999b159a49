/* The judge: truth, bound, comparison, and what the failures have in common. Everybody's output goes
 * through here, ours and others'. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "oracle.h"
#include <stdlib.h>

/* -- Truth ----------------------------------------------------------------------------------- */

/* Rows from..to of an answer, as an answer. */
static struct at_answer part(const struct at_answer *x, int64_t from, int64_t n)
{
    struct at_answer y = *x;
    int64_t at = from * x->Dv;
    y.n = n;
    y.out += at, y.out_lo += at, y.out_bits += at, y.out_bound += at, y.out_kind += at;
    y.without += at;
    y.lse += from, y.lse_lo += from, y.lse_bits += from, y.lse_bound += from, y.lse_kind += from;
    return y;
}

/* Rows at a time, so that somebody can be told: enough for every thread to have several. */
enum { CHUNK = 128 };

static enum at_status truth_in_parts(const struct at_attention *a, struct at_rows rows,
                                     struct at_progress progress, struct at_answer *x)
{
    struct at_place at[CHUNK];
    enum at_status status = AT_OK;
    for (int64_t from = 0; from < rows.n && status == AT_OK; from += CHUNK) {
        int64_t n = at_min(CHUNK, rows.n - from);
        struct at_answer y = part(x, from, n);
        for (int64_t t = 0; t < n; t++)
            at[t] = at_place_of(a, rows, from + t);
        status = at_truth(a, (struct at_rows){n, at}, &y);
        progress.tell(progress.with, from + n, rows.n);
    }
    return status;
}

bool at_judge_truth(const struct at_attention *a, struct at_rows rows, struct at_progress progress,
                    struct at_answer *x, struct at_said *said)
{
    enum at_status status = at_answer_make(x, rows.n, a->v.dim[3]);
    if (status != AT_OK)
        return at_say(said, "truth of %lld rows: %s", (long long)rows.n, at_strstatus(status));
    status = progress.tell ? truth_in_parts(a, rows, progress, x) : at_truth(a, rows, x);
    if (status == AT_OK)
        return true;
    at_answer_free(x);
    return at_say(said, "truth: %s", at_strstatus(status));
}

/* -- Judgement ------------------------------------------------------------------------------- */

bool at_judge_bound(const struct at_attention *a, struct at_rows rows, const struct at_arith *arith,
                    struct at_answer *x, struct at_said *said)
{
    enum at_status status = at_bound(a, arith, rows, x);
    return status == AT_OK || at_say(said, "bound of %s: %s", arith->name, at_strstatus(status));
}

bool at_judge(const struct at_attention *a, const struct at_result *got, struct at_rows rows,
              const struct at_arith *arith, int64_t allowed,
              const struct at_answer *x, struct at_judgement *j, struct at_said *said)
{
    int64_t n = rows.n * (x->Dv + 1);
    double *ratios = malloc((size_t)(n + 1) * sizeof *ratios);
    enum at_status status = ratios ? AT_OK : AT_ERR_MEMORY;
    *j = (struct at_judgement){.arith = *arith};
    if (status == AT_OK)
        status = at_compare(a, got, rows, arith, x, ratios, &j->v);
    if (status == AT_OK && !at_where(a, rows, ratios, &j->where))
        status = AT_ERR_MEMORY;
    free(ratios);
    if (status != AT_OK)
        return at_say(said, "held to %s: %s", arith->name, at_strstatus(status));
    at_rules(a, &got->out, rows, x, j->rule);
    j->place = rows.n > 0 ? at_place_of(a, rows, j->v.worst) : (struct at_place){0, 0, 0};
    j->outcome = j->v.failed > 0 ? AT_FAIL : j->v.unclaimed > allowed ? AT_UNDECIDED : AT_PASS;
    return true;
}

/* -- Equality of results ---------------------------------------------------------------------- */

static bool same_number(const struct at_view *x, int64_t at, const struct at_view *y, int64_t to)
{
    double p = at_load(x, at), q = at_load(y, to);
    return p == q || (isnan(p) && isnan(q));
}

static bool same_sign(const struct at_view *x, int64_t at, const struct at_view *y, int64_t to)
{
    return !signbit(at_load(x, at)) == !signbit(at_load(y, to));
}

bool at_differ(const struct at_attention *a, const struct at_result *x, const struct at_result *y,
               struct at_place *place, int64_t *column)
{
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    bool both = x->lse.data && y->lse.data;
    for (int64_t t = 0; t < all.n; t++) {
        *place = at_place_of(a, all, t);
        for (*column = both ? -1 : 0; *column < a->v.dim[3]; ++*column) {
            const struct at_view *p = *column < 0 ? &x->lse : &x->out;
            const struct at_view *q = *column < 0 ? &y->lse : &y->out;
            int64_t c = at_max(*column, 0);
            int64_t at = at_row_offset(a, p, place->b, place->h, place->i) + c * p->stride[3];
            int64_t to = at_row_offset(a, q, place->b, place->h, place->i) + c * q->stride[3];
            if (!same_number(p, at, q, to) || !(isnan(at_load(p, at)) || same_sign(p, at, q, to)))
                return true;
        }
    }
    return false;
}

/* The judge: truth, bound, comparison, and what the failures have in common. Everybody's output
 * goes through here, ours and others'. SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "oracle.h"
#include "ref.h"
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
enum { CHUNK = 128, FAST_CHUNK = 2048 };

static enum at_status truth_in_parts(const struct at_attention *a, struct at_rows rows, bool fast,
                                     struct at_progress progress, struct at_answer *x)
{
    struct at_place at[FAST_CHUNK];
    int64_t chunk = fast ? FAST_CHUNK : CHUNK;
    enum at_status status = AT_OK;
    for (int64_t from = 0; from < rows.n && status == AT_OK; from += chunk) {
        int64_t n = at_min(chunk, rows.n - from);
        struct at_answer y = part(x, from, n);
        for (int64_t t = 0; t < n; t++)
            at[t] = at_place_of(a, rows, from + t);
        struct at_rows some = {n, at};
        status = fast ? at_truth_fast(a, some, &y) : at_truth(a, some, &y);
        x->by_mpfr += y.by_mpfr;
        progress.tell(progress.with, from + n, rows.n);
    }
    return status;
}

bool at_judge_truth(const struct at_attention *a, struct at_rows rows, bool fast,
                    struct at_progress progress, struct at_answer *x, struct at_said *said)
{
    enum at_status status = at_answer_make(x, rows.n, a->v.dim[3]);
    if (status != AT_OK)
        return at_say(said, "truth of %lld rows: %s", (long long)rows.n, at_strstatus(status));
    if (progress.tell)
        status = truth_in_parts(a, rows, fast, progress, x);
    else
        status = fast ? at_truth_fast(a, rows, x) : at_truth(a, rows, x);
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

/* A base-2 lse was rounded where its maker wrote it, on another grid than ours, and again where it
 * was converted: two roundings beyond the one that compare counts, each B <- B(1+u) + u|o|
 * (docs/bounds.md, the rule for roundings beyond one). */
static double *widened(const struct at_answer *x, enum at_dtype dtype)
{
    double u = at_roundoff(dtype), *bound = malloc((size_t)(x->n + 1) * sizeof *bound);
    for (int64_t t = 0; bound && t < x->n; t++) {
        double o = fabs(x->lse[t]), B = x->lse_bound[t];
        B = B + u * (B + o);
        bound[t] = isfinite(o) ? B + u * (B + o) : x->lse_bound[t];
    }
    return bound;
}

static enum at_status compare(const struct at_attention *a, const struct at_named *got,
                              struct at_rows rows, const struct at_answer *x, double *ratios,
                              struct at_judgement *j)
{
    struct at_answer y = *x;
    if (!got->base2 || !got->got.lse.data)
        return at_compare(a, &got->got, rows, &j->arith, x, ratios, &j->v);
    y.lse_bound = widened(x, got->got.lse.dtype);
    if (!y.lse_bound)
        return AT_ERR_MEMORY;
    enum at_status status = at_compare(a, &got->got, rows, &j->arith, &y, ratios, &j->v);
    free(y.lse_bound);
    return status;
}

/* Ziv for verdicts: a row with an element that the fast truth puts neither inside its interval nor
 * outside is MPFR's. */
static enum at_status settle(const struct at_attention *a, const struct at_named *got,
                             struct at_rows rows, const struct at_arith *arith, struct at_answer *x)
{
    if (x->by_mpfr >= x->n)
        return AT_OK;
    bool wider = got->base2 && got->got.lse.data;
    struct at_answer y = *x;
    unsigned char *open = calloc((size_t)x->n + 1, 1);
    y.lse_bound = wider ? widened(x, got->got.lse.dtype) : x->lse_bound;
    enum at_status status = AT_ERR_MEMORY;
    if (open && y.lse_bound) {
        at_unsettled(a, &got->got, rows, arith, &y, open);
        status = at_truth_again(a, arith, rows, open, x);
    }
    if (wider)
        free(y.lse_bound);
    free(open);
    return status;
}

bool at_judge(const struct at_attention *a, const struct at_named *got, struct at_rows rows,
              const struct at_arith *arith, int64_t allowed, struct at_answer *x,
              struct at_judgement *j, struct at_said *said)
{
    int64_t n = rows.n * (x->Dv + 1);
    double *ratios = malloc((size_t)(n + 1) * sizeof *ratios);
    *j = (struct at_judgement){.arith = *arith};
    enum at_status status = ratios ? compare(a, got, rows, x, ratios, j) : AT_ERR_MEMORY;
    int64_t before = x->by_mpfr;
    if (status == AT_OK)
        status = settle(a, got, rows, arith, x);
    if (status == AT_OK && x->by_mpfr != before)
        status = compare(a, got, rows, x, ratios, j);
    if (status == AT_OK && !at_where(a, rows, ratios, &j->where))
        status = AT_ERR_MEMORY;
    free(ratios);
    if (status != AT_OK)
        return at_say(said, "%s held to %s: %s", got->name, arith->name, at_strstatus(status));
    at_rules(a, &got->got.out, rows, x, j->rule);
    j->place = at_place_of(a, rows, j->v.worst);
    j->outcome = j->v.failed > 0 ? AT_FAIL : j->v.unclaimed > allowed ? AT_UNDECIDED : AT_PASS;
    return true;
}

static double row_largest(const struct at_attention *a, int64_t b, int64_t g, int64_t j)
{
    const struct at_view *v = &a->v, *d = &a->score.vscale;
    int64_t at = at_key_offset(a, v, b, g, j);
    double most = 0, scale = d->data ? fabs(at_load(d, at_offset(d, b, g, j, 0))) : 1;
    for (int64_t c = 0; c < v->dim[3]; c++) {
        double x = scale * fabs(at_load(v, at + c * v->stride[3]));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

double at_largest_value(const struct at_attention *a)
{
    struct at_sizes z = at_sizes(a);
    double most = 0;
#pragma omp parallel for collapse(2) reduction(max : most)
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t g = 0; g < z.Hkv; g++)
            for (int64_t j = 0; j < at_keys_of(a, &z, b); j++)
                most = fmax(most, row_largest(a, b, g, j));
    return most;
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

/* Engine "standard": the textbook. S = scale Q K^T is stored for a head, then P = e^(S - max), then
 * P V: two passes over an Sq x Skv matrix, which is what blocked attention avoids.
 *
 * Differs: P is not divided by its row sum before P V, because an engine returns (m, l, u) and
 * at_finish divides; the textbook's order has one rounding more in each weight.
 * Compiled for AT_BITS 32 and 64. SPDX-License-Identifier: MIT */
#include "at_row.h"
#include "ref.h"
#include <stdlib.h>

/* A head's two matrices (S becomes P), its rows' maxima, and one row of each tensor. */
struct work {
    const struct at_attention *a;
    const struct at_sizes *z;
    struct at_span split;
    int64_t b, h;
    at_real *S, *m, *q, *k, *u;
};

/* First pass: S[j] for the keys that row i sees, and their maximum. Hidden keys are not written. */
static at_real scores(const struct work *w, int64_t i, at_real *S)
{
    const struct at_attention *a = w->a;
    int64_t b = w->b, h = w->h, g = h / w->z->group, D = w->z->D;
    struct at_span seen = at_cut(at_keys(a, w->z, b, i), w->split);
    at_real m = -(at_real)INFINITY;
    if (seen.lo < seen.hi)
        at_load_row(&a->q, at_row_offset(a, &a->q, b, h, i), &a->score.qscale, b, h, i, D, w->q);
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(a, b, h, i, j))
            continue;
        at_load_row(&a->k, at_key_offset(a, &a->k, b, g, j), &a->score.kscale, b, g, j, D, w->k);
        S[j] = at_scored(a, at_dot(w->q, w->k, D, a->plan.lanes), b, h, i, j);
        m = at_larger(m, S[j]);
    }
    return m + 0;
}

/* Second pass: P, l = sum P, u = sum P V over the same keys. */
static void weights(const struct work *w, int64_t i, const at_real *S, struct at_row *x)
{
    const struct at_attention *a = w->a;
    int64_t b = w->b, h = w->h, g = h / w->z->group, Dv = w->z->Dv;
    struct at_span seen = at_cut(at_keys(a, w->z, b, i), w->split);
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(a, b, h, i, j))
            continue;
        bool kept = !at_drops(a) || at_kept(a, w->z, b, h, i, j);
        if (kept)
            at_load_row(&a->v, at_key_offset(a, &a->v, b, g, j), &a->score.vscale, b, g, j, Dv,
                        w->k);
        at_row_add(x, S[j], kept ? w->k : NULL, Dv);
    }
}

static void head(const struct work *w, const struct at_state *x)
{
    int64_t Sq = at_rows_of(w->a, w->z, w->b), Skv = w->z->Skv;
    struct at_row row = {.u = w->u};
    for (int64_t i = 0; i < Sq; i++)
        w->m[i] = scores(w, i, w->S + i * Skv);
    if (!w->a->score.q_start)
        Sq = w->z->Sq; /* rows at or past q_len see nothing, but are there */
    for (int64_t i = 0; i < Sq; i++) {
        bool there = i < at_rows_of(w->a, w->z, w->b);
        at_row_clear(&row, there ? w->m[i] : -(at_real)INFINITY, w->z->Dv);
        weights(w, i, w->S + i * Skv, &row);
        at_row_store(w->a, x, w->b, w->h, i, &row);
    }
}

enum at_status AT_NAME(at_standard)(const struct at_attention *a, int64_t j0, int64_t j1,
                                    const struct at_state *x)
{
    struct at_sizes z = at_sizes(a);
    int64_t D = at_max(z.D, z.Dv), n = 0, most = INT64_MAX / (int64_t)sizeof(at_real);
    if (__builtin_mul_overflow(z.Sq, z.Skv + 1, &n) || n > most - D - z.D - z.Dv)
        return AT_ERR_MEMORY;
    struct work w = {.a = a, .z = &z, .split = {j0, j1}};
    w.S = malloc((size_t)(n + D + z.D + z.Dv) * sizeof *w.S);
    if (!w.S)
        return AT_ERR_MEMORY;
    w.m = w.S + z.Sq * z.Skv;
    w.q = w.m + z.Sq;
    w.k = w.q + z.D;
    w.u = w.k + D;
    for (w.b = 0; w.b < z.B; w.b++)
        for (w.h = 0; w.h < z.Hq; w.h++)
            head(&w, x);
    free(w.S);
    return AT_OK;
}

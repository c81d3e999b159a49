/* Engine "scalar": one query row, one key at a time - the specification in C.
 *
 * Keys come in tiles [t*bc, (t+1)*bc) counted from key 0 of the sequence, cut to the split and to
 * what the row sees. A tile's reference m' is the larger of m and its scores; its sums start from
 * zero, grow key by key and join the row once. With bc = 1 this is the online softmax of [MG18].
 * Compiled for AT_BITS 32 and 64. Not here: splits, sink, the last division (at_forward); speed.
 *
 * SPDX-License-Identifier: MIT */
#include "at_row.h"
#include "ref.h"
#include <stdlib.h>

/* One row and its workspace: the query, one key or value, one tile's scores and whose they are. */
struct work {
    const struct at_attention *a;
    const struct at_sizes *z;
    int64_t b, h, i;
    at_real *q, *kv, *s;
    int64_t *key;
    struct at_row row, tile;
};

static at_real score(const struct work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    int64_t g = w->h / w->z->group;
    at_load_row(&a->k, at_key_offset(a, &a->k, w->b, g, j), &a->score.kscale, w->b, g, j, w->z->D,
                w->kv);
    return at_scored(a, at_dot(w->q, w->kv, w->z->D, a->plan.lanes), w->b, w->h, w->i, j);
}

/* v_j; NULL where dropout takes the weight out of u: then v_j is not read. */
static const at_real *value(const struct work *w, int64_t j)
{
    const struct at_attention *a = w->a;
    int64_t g = w->h / w->z->group;
    if (at_drops(a) && !at_kept(a, w->z, w->b, w->h, w->i, j))
        return NULL;
    at_load_row(&a->v, at_key_offset(a, &a->v, w->b, g, j), &a->score.vscale, w->b, g, j, w->z->Dv,
                w->kv);
    return w->kv;
}

/* The row takes in its visible keys among x, at most a tile of them. */
static void tile(struct work *w, struct at_span x)
{
    int64_t n = 0, Dv = w->z->Dv;
    at_real m = w->row.m;
    for (int64_t j = x.lo; j < x.hi; j++) {
        if (!at_shown(w->a, w->b, w->h, w->i, j))
            continue;
        w->key[n] = j;
        w->s[n] = score(w, j);
        m = at_larger(m, w->s[n++]);
    }
    if (n == 0) /* by count: the scores may be infinite */
        return;
    at_row_clear(&w->tile, m + 0, Dv); /* + 0: of two zeros the positive one */
    for (int64_t t = 0; t < n; t++)
        at_row_add(&w->tile, w->s[t], value(w, w->key[t]), Dv);
    at_row_take(&w->row, &w->tile, Dv);
}

static void attend_row(struct work *w, struct at_span split)
{
    const struct at_attention *a = w->a;
    int64_t bc = a->plan.bc;
    struct at_span seen = at_cut(at_keys(a, w->z, w->b, w->i), split);
    at_row_clear(&w->row, -(at_real)INFINITY, w->z->Dv);
    if (seen.lo >= seen.hi)
        return;
    at_load_row(&a->q, at_row_offset(a, &a->q, w->b, w->h, w->i), &a->score.qscale, w->b, w->h,
                w->i, w->z->D, w->q);
    for (int64_t t = seen.lo / bc; t * bc < seen.hi; t++) /* key tiles */
        tile(w, at_cut(seen, (struct at_span){t * bc, t * bc + bc}));
}

static bool work_make(struct work *w, const struct at_attention *a, const struct at_sizes *z)
{
    int64_t bc = at_min(a->plan.bc, z->Skv) + 1, D = at_max(z->D, z->Dv);
    *w = (struct work){.a = a, .z = z};
    w->q = malloc((size_t)(2 * D + 2 * z->Dv + bc) * sizeof *w->q);
    w->key = malloc((size_t)bc * sizeof *w->key);
    if (!w->q || !w->key)
        return false;
    w->kv = w->q + D;
    w->row.u = w->kv + D;
    w->tile.u = w->row.u + z->Dv;
    w->s = w->tile.u + z->Dv;
    return true;
}

static void work_free(struct work *w)
{
    free(w->q);
    free(w->key);
}

enum at_status AT_NAME(at_scalar)(const struct at_attention *a, int64_t j0, int64_t j1,
                                  const struct at_state *x)
{
    struct at_sizes z = at_sizes(a);
    int64_t rows = z.B * z.Hq * z.Sq;
    bool good = true;
#pragma omp parallel num_threads(a->plan.threads) reduction(&& : good)
    {
        struct work w;
        good = work_make(&w, a, &z);
#pragma omp for schedule(dynamic, 16)
        for (int64_t t = 0; t < rows; t++) {
            w.b = t / (z.Hq * z.Sq);
            w.h = t / z.Sq % z.Hq;
            w.i = t % z.Sq;
            if (!good || (a->score.q_start && w.i >= at_rows_of(a, &z, w.b)))
                continue; /* a shorter sequence of a ragged batch has no such row */
            attend_row(&w, (struct at_span){j0, j1});
            at_row_store(a, x, w.b, w.h, w.i, &w.row);
        }
        work_free(&w);
    }
    return good ? AT_OK : AT_ERR_MEMORY;
}

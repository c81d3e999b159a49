/* Memory of the bound: the keys that a thread has decoded, and its rows.
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include <stdlib.h>

static bool store_make(struct store *s, const struct rule *r)
{
    int64_t n = r->z.Skv, wide = (r->z.Dv + WIDE - 1) / WIDE * WIDE;
    int64_t deep = (r->z.D + WIDE - 1) / WIDE * WIDE, tiled = (n + NEAR - 1) / NEAR * NEAR + NEAR;
    *s = (struct store){.b = -1, .g = -1, .wide = wide, .deep = deep};
    s->k = calloc((size_t)(n * (deep + 3) + tiled * wide + 2 * ROWS * (deep + NEAR) + 1),
                  sizeof *s->k);
    s->have = calloc((size_t)n + 1, 1);
    s->ranks.start = calloc((size_t)n + 3, sizeof *s->ranks.start);
    if (!s->k || !s->have || !s->ranks.start)
        return false;
    s->v = s->k + n * deep;
    s->zero = s->v + (tiled - NEAR) * wide; /* a tile that no key fills */
    s->least = s->v + tiled * wide, s->most = s->least + n;
    s->q = s->most + n, s->q_size = s->q + ROWS * deep;
    s->dot = s->q_size + ROWS * deep, s->raw = s->dot + ROWS * NEAR;
    s->space = s->raw + ROWS * NEAR;
    return true;
}

/* One block of doubles, cut up; the sink is one key more. */
static bool row_make(struct row *x, const struct rule *r, struct store *store)
{
    int64_t n = r->z.Skv + 1, wide = store->wide, D = store->deep;
    *x = (struct row){.r = r, .store = store};
    double *space = calloc((size_t)(3 * D + n * (10 + WIDE)), sizeof *space);
    x->key = calloc((size_t)n, sizeof *x->key);
    x->panel = calloc((size_t)n, sizeof *x->panel);
    x->step = calloc((size_t)n, 1);
    x->block = calloc((size_t)(wide / WIDE), sizeof *x->block);
    x->q = space;
    if (!space || !x->key || !x->panel || !x->step || !x->block)
        return false;
    x->q_size = x->q + D, x->q_lost = x->q + 2 * D;
    x->sorted = x->q + 3 * D;
    x->up = x->sorted + n, x->down = x->up + n, x->priv = x->down + n;
    x->lost_y = x->priv + n, x->lost_v = x->lost_y + n;
    x->share = x->lost_v + n, x->few = x->share + n;
    x->p = x->few + n, x->own = x->p + n;
    x->edit = x->own + n;
    return true;
}

static void row_free(struct row *x)
{
    free(x->q);
    free(x->key);
    free((void *)x->panel);
    free(x->step);
    free(x->block);
}

bool at_bound_make(struct worker *x, const struct rule *r)
{
    bool good = store_make(&x->store, r);
    for (int k = 0; k < ROWS; k++) {
        good &= row_make(&x->row[k], r, &x->store);
        x->row[k].lane = k;
    }
    return good;
}

void at_bound_free(struct worker *x)
{
    for (int k = 0; k < ROWS; k++)
        row_free(&x->row[k]);
    free(x->store.k);
    free(x->store.have);
    free(x->store.ranks.start);
}

/* Few queries before many keys: a row's columns lie in the lanes, K and V are read where they lie.
 *
 * The work is cut by (sequence, key head, split), each part a state, shared out by need, and joined
 * in key order by the one public merge. Every key is read once for all query heads of its group.
 * A tile that some row sees in part goes row by row over the list of its keys, as scalar.c does:
 * there are at most two such tiles a split, unless the mask is data.
 * Not here: prefill (attend.c).
 *
 * SPDX-License-Identifier: MIT */
#include "columns.h"
#include <stdlib.h>

/* A thread's place: the rows of one key head, one tile of keys. */
struct reader {
    const struct tiled_call *call;
    const struct at_attention *a;
    struct at_sizes z;
    int64_t b, g, rows, bc;
    at_real *q, *s, *state, *k, *v,
        *sum; /* q (rows,D), s (rows,bc), state (rows,Dv+2), sum (2 rows + Dv) */
    struct at_tally tally;
    const at_real **key, **value; /* where the tile's rows lie; k, v if converted */
    const at_real **next;         /* keys of the next tile, to ask for */
    int64_t *list;
};

static struct at_row row_of(const struct reader *x, at_real *state, int64_t r)
{
    at_real *at = state + r * (x->z.Dv + 2);
    return (struct at_row){at[0], at[1], at + 2};
}

static void row_keep(const struct at_row *row)
{
    row->u[-2] = row->m;
    row->u[-1] = row->l;
}

/* -- A tile's rows in the working type -------------------------------------------------------- */

static bool lies_ready(const struct at_view *x, const struct at_view *descale)
{
    return x->dtype == (AT_BITS == 32 ? AT_F32 : AT_F64) && x->stride[3] == 1 && !descale->data;
}

/* Where n rows lie from key j on: in a page table one by one, else evenly apart. */
static void place(const struct reader *x, const struct at_view *view, int64_t j, int64_t n,
                  const at_real **row)
{
    int64_t at = 0;
    for (int64_t t = 0; t < n; t++) {
        at += view->stride[2];
        if (t == 0 || x->a->pages.table)
            at = at_key_offset(x->a, view, x->b, x->g, j + t);
        row[t] = (const at_real *)view->data + at;
    }
}

/* The rows of these keys: where they lie, or converted into `to`. As a call it costs the walk
 * around it 15 %. */
INLINE void rows_of_keys(const struct reader *x, const struct at_view *view,
                         const struct at_view *descale, struct at_span keys, at_real *to,
                         const at_real **row)
{
    int64_t n = keys.hi - keys.lo, width = view->dim[3];
    if (lies_ready(view, descale)) {
        place(x, view, keys.lo, n, row);
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        int64_t j = keys.lo + t;
        row[t] = to + t * width;
        load_row(view, at_key_offset(x->a, view, x->b, x->g, j), descale, x->b, x->g, j, width,
                 to + t * width);
    }
}

static void tile_place(struct reader *x, struct at_span keys)
{
    const struct at_attention *a = x->a;
    rows_of_keys(x, &a->k, &a->score.kscale, keys, x->k, x->key);
    rows_of_keys(x, &a->v, &a->score.vscale, keys, x->v, x->value);
}

/* The n keys after the tile's; what the sequence has no more is the last of them. */
static void next_place(struct reader *x, struct at_span keys)
{
    int64_t n = keys.hi - keys.lo, more = 0;
    if (lies_ready(&x->a->k, &x->a->score.kscale))
        more = at_min(n, at_keys_of(x->a, &x->z, x->b) - keys.hi);
    place(x, &x->a->k, keys.hi, more, x->next);
    for (int64_t t = more; t < n; t++)
        x->next[t] = t > 0 ? x->next[t - 1] : x->k;
}

/* -- Scores ----------------------------------------------------------------------------------- */

/* `keys` (a literal) of n keys, from j on. */
INLINE void key_scores(struct reader *x, int keys, int64_t j, int64_t n)
{
    int64_t D = x->z.D, lanes = x->a->plan.lanes, r;
    at_real *s = x->s + j;
    for (int k = 0; k < keys; k++) {
        hint_far(x->value[j + k], x->z.Dv);
        if (j + k + AHEAD < n)
            hint(x->key[j + k + AHEAD], D);
    }
    for (r = 0; lanes == CHAINS && r + R <= x->rows; r += R)
        dots(R, keys, D, x->q + r * D, x->key + j, s + r * x->bc, x->bc);
    for (; lanes == CHAINS && r < x->rows; r++)
        dots(1, keys, D, x->q + r * D, x->key + j, s + r * x->bc, x->bc);
    for (; r < x->rows; r++)
        for (int k = 0; k < keys; k++)
            s[r * x->bc + k] = at_dot(x->q + r * D, x->key[j + k], D, lanes);
}

static void raw_scores(struct reader *x, int64_t n)
{
    int64_t j = 0;
    for (; j + KEYS <= n; j += KEYS)
        key_scores(x, KEYS, j, n);
    for (; j < n; j++)
        key_scores(x, 1, j, n);
}

/* -- A tile that every row sees --------------------------------------------------------------- */

/* Scores become weights; every row takes in all but u. worth[r] is what u was worth. */
static void weights(struct reader *x, int64_t n, at_real *worth)
{
    at_real *l = worth + x->rows;
    int64_t r;
    for (r = 0; r < x->rows; r++) {
        at_real *restrict s = x->s + r * x->bc, top = reference(n, s, row_of(x, x->state, r).m);
        worth[r] = top;
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            s[j] = at_weight(s[j], top);
        for (int64_t j = r * n / 4 / x->rows; FAR && j < (r + 1) * n / 4 / x->rows; j++)
            hint_far(x->next[j], x->z.D);
    }
    for (r = 0; r + R <= x->rows; r += R)
        sums(R, n, x->s + r * x->bc, x->bc, l + r);
    for (; r < x->rows; r++)
        sums(1, n, x->s + r * x->bc, x->bc, l + r);
    for (r = 0; r < x->rows; r++) {
        struct at_row row = row_of(x, x->state, r);
        at_real top = worth[r];
        worth[r] = at_worth(row.m, top);
        row.m = top;
        row.l = at_take(worth[r], row.l, l[r]);
        row_keep(&row);
    }
}

/* Columns [c, c + columns) of `rows` rows from r on: C of R rows at once, or LINE row by row. A
 * function of its own, or gcc runs out of registers in the walk around it. */
static __attribute__((noinline)) void gather_rows(struct reader *x, int64_t rows, int64_t columns,
                                                  int64_t n, int64_t r, int64_t c,
                                                  const at_real *worth)
{
    int64_t stride = x->z.Dv + 2, bc = x->bc;
    const at_real *p = x->s + r * bc;
    at_real *u = x->state + r * stride + 2;
    if (rows == R && columns == C)
        gather(R, C, n, p, bc, x->value, x->next, c, worth + r, u, stride);
    else
        for (int64_t k = 0; k < rows; k++)
            gather(1, LINE, n, p + k * bc, bc, x->value, x->next, c, worth + r + k, u + k * stride,
                   stride);
}

static void gather_all(struct reader *x, int64_t n, const at_real *worth)
{
    int64_t Dv = x->z.Dv, c, columns;
    for (int64_t r = 0; r < x->rows; r += R) {
        int64_t rows = at_min(R, x->rows - r);
        for (c = 0; c + LINE <= Dv; c += columns) {
            columns = rows == R && c + C <= Dv ? C : LINE;
            gather_rows(x, rows, columns, n, r, c, worth);
        }
        for (int64_t k = r; k < r + rows; k++)
            gather_rest(n, x->s + k * x->bc, x->value, c, Dv, worth[k],
                        x->state + k * (Dv + 2) + 2);
    }
}

static void tile_whole(struct reader *x, struct at_span keys, at_real *worth)
{
    const struct at_score *score = &x->a->score;
    int64_t n = keys.hi - keys.lo;
    at_real scale = at_rounded(score->scale);
    raw_scores(x, n);
    for (int64_t r = 0; r < x->rows; r++) {
        at_real *s = x->s + r * x->bc;
        int64_t h = x->g * x->z.group + r % x->z.group, i = r / x->z.group;
        if (score->softcap > 0 || score->alibi.data)
            for (int64_t j = 0; j < n; j++)
                s[j] = at_scored(x->a, s[j], x->b, h, i, keys.lo + j);
        else
            for (int64_t j = 0; j < n; j++)
                s[j] = scale * s[j];
    }
    weights(x, n, worth);
    gather_all(x, n, worth);
}

/* -- A tile that a row sees in part ----------------------------------------------------------- */

static void row_part(struct reader *x, struct at_span keys, int64_t r)
{
    const struct at_attention *a = x->a;
    int64_t h = x->g * x->z.group + r % x->z.group, i = r / x->z.group, n = 0, D = x->z.D;
    struct at_row row = row_of(x, x->state, r), t = {.u = x->sum};
    struct at_span seen = at_cut(keys, at_keys(a, &x->z, x->b, i));
    at_real m = row.m;
    for (int64_t j = seen.lo; j < seen.hi; j++) {
        if (!at_shown(a, x->b, h, i, j))
            continue;
        x->list[n] = j;
        x->s[n] = at_scored(a, at_dot(x->q + r * D, x->key[j - keys.lo], D, a->plan.lanes), x->b, h,
                            i, j);
        m = at_larger(m, x->s[n++]);
    }
    if (n == 0)
        return;
    at_row_clear(&t, m + 0, x->z.Dv);
    for (int64_t k = 0; k < n; k++) {
        int64_t j = x->list[k];
        bool kept = !at_drops(a) || at_kept(a, &x->z, x->b, h, i, j);
        at_row_add(&t, x->s[k], kept ? x->value[j - keys.lo] : NULL, x->z.Dv);
    }
    at_row_take(&row, &t, x->z.Dv);
    row_keep(&row);
}

/* -- A part of the work ------------------------------------------------------------------------ */

/* What every row and what some row sees of the split by its interval. */
static void spans(const struct reader *x, struct at_span split, struct at_span *any,
                  struct at_span *all)
{
    *any = (struct at_span){INT64_MAX, 0};
    *all = split;
    for (int64_t i = 0; i < x->rows / x->z.group; i++) {
        struct at_span seen = at_cut(at_keys(x->a, &x->z, x->b, i), split);
        *all = at_cut(*all, seen);
        if (seen.lo < seen.hi) {
            any->lo = at_min(any->lo, seen.lo);
            any->hi = at_max(any->hi, seen.hi);
        }
    }
}

static void open_rows(struct reader *x)
{
    const struct at_attention *a = x->a;
    for (int64_t r = 0; r < x->rows; r++) {
        int64_t h = x->g * x->z.group + r % x->z.group, i = r / x->z.group;
        struct at_row row = row_of(x, x->state, r);
        at_row_clear(&row, -(at_real)INFINITY, x->z.Dv);
        row_keep(&row);
        load_row(&a->q, at_row_offset(a, &a->q, x->b, h, i), &a->score.qscale, x->b, h, i, x->z.D,
                 x->q + r * x->z.D);
    }
}

static void part_run(struct reader *x, struct at_span split)
{
    const struct at_attention *a = x->a;
    int64_t bc = a->plan.bc, tiles = tiles_of(a, &x->z, x->b, split);
    struct at_span any, all;
    open_rows(x);
    spans(x, split, &any, &all);
    bool data = a->score.mask.data || a->score.bias.data || at_drops(a);
    for (int64_t t = any.lo / bc; any.lo < any.hi && t * bc < any.hi; t++) { /* key tiles */
        struct at_span keys = at_cut(any, (struct at_span){t * bc, t * bc + bc});
        bool whole = !data && keys.lo >= all.lo && keys.hi <= all.hi;
        tile_place(x, keys);
        if (FAR && whole)
            next_place(x, keys);
        for (int64_t r = 0; !whole && r < x->rows; r++)
            row_part(x, keys, r);
        if (whole)
            tile_whole(x, keys, x->sum);
        x->tally.partial += !whole;
        x->tally.visited++, tiles--;
    }
    x->tally.skipped += tiles;
}

/* -- All of it --------------------------------------------------------------------------------- */

/* Numbers of one thread's workspace; its places are cut off where x is given. */
static int64_t workspace(const struct at_attention *a, const struct at_sizes *z, struct reader *x,
                         at_real *at)
{
    int64_t bc = at_min(a->plan.bc, z->Skv) + C, rows = z->Sq * z->group, n = 0;
    int64_t size[] = {rows * z->D, rows * bc, bc * z->D, bc * z->Dv, 2 * rows + z->Dv};
    at_real *place[5];
    for (int k = 0; k < 5; k++) {
        place[k] = at + n;
        n += (size[k] + C - 1) / C * C;
    }
    if (!x)
        return n;
    x->bc = bc;
    x->q = place[0], x->s = place[1], x->k = place[2], x->v = place[3], x->sum = place[4];
    return n;
}

/* Joins the states of unit u over its splits and puts its rows. */
static void unit_join(struct reader *x, at_real *states, int64_t unit)
{
    int64_t width = x->z.Sq * x->z.group * (x->z.Dv + 2), splits = x->call->splits;
    for (int64_t r = 0; r < x->rows; r++) {
        struct at_row row = row_of(x, states + unit * splits * width, r);
        for (int64_t k = 1; k < splits; k++) {
            struct at_row next = row_of(x, states + (unit * splits + k) * width, r);
            at_row_merge(&row, &next, x->z.Dv);
        }
        put_row(x->call, &x->z, x->b, x->g * x->z.group + r % x->z.group, r / x->z.group, &row);
    }
}

static void unit_at(struct reader *x, int64_t unit)
{
    x->b = unit / x->z.Hkv;
    x->g = unit % x->z.Hkv;
    x->rows = placed_rows(x->a, &x->z, x->b) * x->z.group;
}

/* States of every part, then each thread's workspace. */
int64_t TILED(at_decode_bytes)(const struct at_attention *a, int64_t splits)
{
    struct at_sizes z = at_sizes(a);
    int64_t rows = z.B * z.Hq * z.Sq, states, bytes;
    if (__builtin_mul_overflow(rows * (z.Dv + 2), splits, &states) ||
        __builtin_add_overflow(states, workspace(a, &z, NULL, NULL) * a->plan.threads + C,
                               &bytes) ||
        __builtin_mul_overflow(bytes / C * C, (int64_t)sizeof(at_real), &bytes))
        return INT64_MAX;
    return bytes;
}

enum at_status TILED(at_decode)(const struct tiled_call *call)
{
    const struct at_attention *a = call->a;
    struct at_sizes z = at_sizes(a);
    int64_t bytes = TILED(at_decode_bytes)(a, call->splits);
    if (bytes == INT64_MAX)
        return AT_ERR_MEMORY;
    int64_t n = workspace(a, &z, NULL, NULL), units = z.B * z.Hkv, tasks = units * call->splits;
    int64_t width = z.Sq * z.group * (z.Dv + 2), bc = at_min(a->plan.bc, z.Skv) + C;
    int threads = (int)at_max(1, at_min(a->plan.threads, tasks));
    at_real *states = aligned_alloc(64, (size_t)bytes);
    const at_real **list = malloc((size_t)(4 * bc * threads) * sizeof *list);
    bool good = states && list;
#pragma omp parallel num_threads(threads) if (good)
    {
        int me = tiled_thread();
        struct reader x = {.call = call, .a = a, .z = z};
        if (good) {
            workspace(a, &z, &x, states + tasks * width + n * me);
            x.key = list + 4 * bc * me, x.value = x.key + bc, x.next = x.value + bc;
            x.list = (int64_t *)(x.next + bc);
        }
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < tasks; t++)
            if (good) {
                unit_at(&x, t / call->splits);
                x.state = states + t * width;
                part_run(&x, split_of(call, t % call->splits));
            }
        tally_add(call->tally, &x.tally);
#pragma omp for schedule(dynamic)
        for (int64_t unit = 0; unit < units; unit++)
            if (good) {
                unit_at(&x, unit);
                unit_join(&x, states, unit);
            }
    }
    free(list);
    free(states);
    return good ? AT_OK : AT_ERR_MEMORY;
}

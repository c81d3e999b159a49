/* Blocked attention with a query row in each lane [Dao22, Dao23: queries outside, keys inside].
 *
 * The rows of one key head - i, and within it the query heads of the group - are cut into blocks of
 * br that walk over the keys together; a block is strips of W rows. For every key tile
 * [t*bc, (t+1)*bc) that some row of the block sees, K and V are loaded once and each strip takes
 * the tile in: scores, softmax, gather. Tiles that no row sees are never touched.
 *
 * Differs: scalar.c skips hidden keys, a strip computes and marks them; tile.h says why bits agree.
 * Not here: the decision which kernel runs (engine.c); few queries (decode.c).
 *
 * SPDX-License-Identifier: MIT */
#include "tile.h"
#include <stdlib.h>

struct strip {
    at_real m[W], l[W], slope[W];
    int64_t h[W], i[W], p[W];
    struct at_span seen[W];
    struct at_span any, all; /* keys that some row, that every row sees by its interval */
    at_lanes *q, *u;
};

struct block {
    const struct tiled_call *call;
    const struct at_attention *a;
    struct at_sizes z;
    int64_t b, g, rows, strips;
    struct strip *strip;
    at_real *k, *v, *row, *sum; /* one tile; one row of anything; the rows' states, merged so far */
    const at_real *key;         /* the tile's keys: in k, or where they lie */
    at_lanes *s;
    at_marks *mark;
    struct at_tally tally;
    bool known, finite; /* are the tile's values all finite? found out where it matters */
};

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* -- Workspace -------------------------------------------------------------------------------- */

/* Rows of a block: the plan's, or fewer where threads would stand idle; no bit depends on it. */
static int64_t block_rows(const struct at_attention *a, const struct at_sizes *z)
{
    int64_t rows = z->Sq * z->group, share = z->B * z->Hkv * rows / (4 * a->plan.threads);
    return up(at_max(1, at_min(at_min(a->plan.br, rows), at_max(share, W))), W);
}

/* Numbers of one thread's workspace: O((br + bc) (D + Dv)); places are cut off where x is given. */
static int64_t workspace(const struct at_attention *a, const struct at_sizes *z, struct block *x,
                         at_real *at)
{
    int64_t bc = up(at_min(a->plan.bc, z->Skv), MR) + MR, br = block_rows(a, z);
    int64_t D = at_max(z->D, z->Dv), Dv = up(z->Dv, MR), n = 0;
    int64_t size[] = {br * z->D, br * Dv, bc * z->D, bc * Dv,
                      bc * W,    bc * W,  up(D, W),  up(br * (z->Dv + 2), W)};
    at_real *place[8];
    for (int k = 0; k < 8; k++) {
        place[k] = at + n;
        n += up(size[k], W);
    }
    if (!x)
        return n;
    for (int64_t t = 0; t < br / W; t++) {
        x->strip[t].q = (at_lanes *)place[0] + t * z->D;
        x->strip[t].u = (at_lanes *)place[1] + t * Dv;
    }
    x->k = place[2];
    x->v = place[3];
    x->s = (at_lanes *)place[4];
    x->mark = (at_marks *)place[5];
    x->row = place[6];
    x->sum = place[7];
    return n;
}

/* -- A strip of rows -------------------------------------------------------------------------- */

/* Lane by lane; past the block's end the last row again, which is then not stored. */
static void strip_open(struct block *x, struct strip *s, int64_t first, int64_t last)
{
    const struct at_attention *a = x->a;
    const struct at_view *alibi = &a->score.alibi;
    s->any = (struct at_span){INT64_MAX, 0};
    s->all = (struct at_span){0, INT64_MAX};
    for (int lane = 0; lane < W; lane++) {
        int64_t r = at_min(first + lane, last), i = r / x->z.group;
        int64_t h = x->g * x->z.group + r % x->z.group;
        struct at_span seen = at_keys(a, &x->z, x->b, i);
        s->h[lane] = h;
        s->i[lane] = i;
        s->p[lane] = at_position(a, x->b, i);
        s->seen[lane] = seen;
        s->all = at_cut(s->all, seen);
        s->slope[lane] = alibi->data ? at_load(alibi, at_offset(alibi, 0, h, 0, 0)) : 0;
        load_row(&a->q, at_row_offset(a, &a->q, x->b, h, i), &a->score.qscale, x->b, h, i, x->z.D,
                 x->row);
        for (int64_t c = 0; c < x->z.D; c++)
            s->q[c][lane] = x->row[c];
        if (seen.lo < seen.hi) {
            s->any.lo = at_min(s->any.lo, seen.lo);
            s->any.hi = at_max(s->any.hi, seen.hi);
        }
    }
}

static void strip_clear(const struct block *x, struct strip *s)
{
    LANES s->m[lane] = -(at_real)INFINITY, s->l[lane] = 0;
    memset(s->u, 0, (size_t)up(x->z.Dv, MR) * sizeof *s->u);
}

/* Marks keys for every row; is any seen? */
static bool mark_keys(struct block *x, const struct strip *s, struct at_span keys)
{
    const struct at_attention *a = x->a;
    bool data = a->score.mask.data || a->score.bias.data, any = false;
    int64_t n = keys.hi - keys.lo;
    at_marks lo, hi;
    for (int lane = 0; lane < W; lane++) {
        lo[lane] = (at_int)at_min(n, at_max(0, s->seen[lane].lo - keys.lo));
        hi[lane] = (at_int)at_min(n, at_max(0, s->seen[lane].hi - keys.lo));
    }
    for (at_int j = 0; j < n; j++)
        LANES x->mark[j][lane] = j >= lo[lane] && j < hi[lane] ? KEPT : HIDDEN;
    if (!data && !at_drops(a))
        return true;
    for (int lane = 0; lane < W; lane++)
        for (at_int j = lo[lane]; j < hi[lane]; j++) {
            int64_t h = s->h[lane], i = s->i[lane];
            if (data && !at_shown(a, x->b, h, i, keys.lo + j))
                x->mark[j][lane] = HIDDEN;
            else if (at_drops(a) && !at_kept(a, &x->z, x->b, h, i, keys.lo + j))
                x->mark[j][lane] = SEEN;
            any = any || x->mark[j][lane] != HIDDEN;
        }
    return any;
}

/* The rest of a score, as at_scored orders it; scale is in it already. */
static void shape(struct block *x, const struct strip *s, struct at_span keys)
{
    const struct at_view *bias = &x->a->score.bias;
    at_real cap = at_rounded(x->a->score.softcap);
    for (int64_t j = keys.lo; j < keys.hi; j++) {
        at_real *restrict y = x->s[j - keys.lo];
        if (cap > 0)
            LANES y[lane] = cap * at_tanh(y[lane] / cap);
        if (bias->data)
            for (int lane = 0; lane < W; lane++)
                y[lane] += at_load(bias, at_offset(bias, x->b, s->h[lane], s->i[lane], j));
        if (x->a->score.alibi.data)
            for (int lane = 0; lane < W; lane++)
                y[lane] -= s->slope[lane] * at_distance(s->p[lane], j);
    }
}

/* -- A tile ----------------------------------------------------------------------------------- */

/* Can the tile's keys be read where they lie, row after row, and the MR - 1 after them? */
static bool lies_ready(const struct block *x, struct at_span keys)
{
    const struct at_attention *a = x->a;
    return a->k.dtype == (AT_BITS == 32 ? AT_F32 : AT_F64) && a->k.stride[3] == 1 &&
           a->k.stride[2] == x->z.D && !a->score.kscale.data && !a->pages.table &&
           keys.hi + MR - 1 <= at_keys_of(a, &x->z, x->b);
}

/* K as it lies, in place where that can be, V in panels of MR columns, which gather() then reads
 * front to back; a key more in each panel than the tile has, or their rows would all fall into the
 * same few sets of the cache.
 */
static void tile_load(struct block *x, struct at_span keys)
{
    int64_t n = keys.hi - keys.lo, D = x->z.D, Dv = x->z.Dv;
    bool ready = lies_ready(x, keys);
    x->key = x->k;
    if (ready)
        x->key = (const at_real *)x->a->k.data + at_key_offset(x->a, &x->a->k, x->b, x->g, keys.lo);
    for (int64_t j = 0; j < n; j++) {
        if (!ready)
            load_key(x->a, &x->z, x->b, x->g, keys.lo + j, x->k + j * D);
        load_value(x->a, &x->z, x->b, x->g, keys.lo + j, x->row);
        for (int64_t c = Dv; c < up(Dv, MR); c++)
            x->row[c] = 0;
        for (int64_t c = 0; c < Dv; c += MR)
            memcpy(x->v + c * (n + 1) + j * MR, x->row + c, MR * sizeof *x->v);
    }
    x->known = false;
}

/* Asks for strip k's share of the next tile, so that its copy finds it near: 2 % of a prefill. */
static void tile_hint(const struct block *x, struct at_span next, int64_t k)
{
    const struct at_attention *a = x->a;
    for (int64_t j = next.lo + k; j < next.hi; j += x->strips) {
        hint_row(&a->k, at_key_offset(a, &a->k, x->b, x->g, j));
        hint_row(&a->v, at_key_offset(a, &a->v, x->b, x->g, j));
    }
}

static bool values_finite(struct block *x, int64_t n)
{
    at_real zero = 0; /* NaN as soon as one of them is not finite */
    if (!x->known) {
        for (int64_t c = 0; c < x->z.Dv; c += MR)
#pragma omp simd reduction(+ : zero)
            for (int64_t t = 0; t < MR * n; t++)
                zero += x->v[c * (n + 1) + t] * 0;
        x->finite = zero == 0;
    }
    x->known = true;
    return x->finite;
}

/* The strip takes in `part` of the loaded tile. */
static void strip_take(struct block *x, struct strip *s, struct at_span tile, struct at_span part)
{
    const struct at_attention *a = x->a;
    const struct at_score *score = &a->score;
    int64_t n = part.hi - part.lo, first = part.lo - tile.lo, height = tile.hi - tile.lo + 1;
    at_real scale = at_rounded(score->scale), *v = x->v + first * MR;
    const at_real *k = x->key + first * x->z.D;
    at_lanes worth;
    bool marked = part.lo < s->all.lo || part.hi > s->all.hi || score->mask.data ||
                  score->bias.data || at_drops(a);
    if (marked && !mark_keys(x, s, part))
        return;
    x->tally.visited++;
    x->tally.partial += marked;
    if (a->plan.lanes == 1)
        scores(n, x->z.D, scale, k, s->q, x->s);
    else
        scores_chained(n, x->z.D, a->plan.lanes, scale, k, s->q, x->s);
    if (score->softcap > 0 || score->bias.data || score->alibi.data)
        shape(x, s, part);
    if (marked)
        weights_marked(n, x->s, x->mark, s->m, s->l, worth);
    else
        weights(n, x->s, s->m, s->l, worth);
    if (marked && !values_finite(x, height - 1))
        gather_marked(n, x->z.Dv, height, v, x->s, x->mark, worth, s->u);
    else
        gather(n, x->z.Dv, height, v, x->s, worth, s->u);
}

/* -- A block ---------------------------------------------------------------------------------- */

static void block_walk(struct block *x, struct at_span split)
{
    int64_t bc = x->a->plan.bc, before = x->tally.visited;
    int64_t tiles = x->strips * tiles_of(x->a, &x->z, x->b, split);
    struct at_span any = {INT64_MAX, 0};
    for (int64_t t = 0; t < x->strips; t++) {
        strip_clear(x, &x->strip[t]);
        any.lo = at_min(any.lo, x->strip[t].any.lo);
        any.hi = at_max(any.hi, x->strip[t].any.hi);
    }
    any = at_cut(any, split);
    for (int64_t t = any.lo / bc; any.lo < any.hi && t * bc < any.hi; t++) { /* key tiles */
        struct at_span tile = at_cut(any, (struct at_span){t * bc, t * bc + bc});
        tile_load(x, tile);
        struct at_span next = at_cut(any, (struct at_span){tile.hi, tile.hi + bc});
        for (int64_t k = 0; k < x->strips; k++) {
            tile_hint(x, next, k);
            struct at_span part = at_cut(tile, x->strip[k].any);
            if (part.lo < part.hi)
                strip_take(x, &x->strip[k], tile, part);
        }
    }
    x->tally.skipped += tiles - (x->tally.visited - before);
}

/* Row r of the block joins its sum over the splits before; the first starts it. */
static void row_join(struct block *x, int64_t r, bool first, struct at_row *sum)
{
    const struct strip *s = &x->strip[r / W];
    int64_t lane = r % W, Dv = x->z.Dv;
    struct at_row row = {s->m[lane], s->l[lane], first ? sum->u : x->row};
    for (int64_t c = 0; c < Dv; c++)
        row.u[c] = s->u[c][lane];
    if (first)
        *sum = row;
    else
        at_row_merge(sum, &row, Dv);
}

static void block_run(struct block *x, int64_t first)
{
    int64_t Dv = x->z.Dv;
    for (int64_t t = 0; t < x->strips; t++)
        strip_open(x, &x->strip[t], first + t * W, first + x->rows - 1);
    for (int64_t k = 0; k < x->call->splits; k++) {
        block_walk(x, split_of(x->call, k));
        for (int64_t r = 0; r < x->rows; r++) {
            at_real *at = x->sum + r * (Dv + 2);
            struct at_row sum = {at[0], at[1], at + 2};
            row_join(x, r, k == 0, &sum);
            at[0] = sum.m, at[1] = sum.l;
            if (k + 1 == x->call->splits)
                put_row(x->call, &x->z, x->b, x->strip[r / W].h[r % W], x->strip[r / W].i[r % W],
                        &sum);
        }
    }
}

/* Block t of all, the last rows of every sequence first: under causality they are the longest. */
static void block_at(struct block *x, int64_t t, int64_t blocks, int64_t br)
{
    int64_t heads = x->z.B * x->z.Hkv, first = (blocks - 1 - t / heads) * br;
    x->b = t % heads / x->z.Hkv;
    x->g = t % x->z.Hkv;
    x->rows = at_min(br, placed_rows(x->a, &x->z, x->b) * x->z.group - first);
    x->strips = (x->rows + W - 1) / W;
    if (x->rows > 0)
        block_run(x, first);
}

static int threads_for(const struct at_attention *a, const struct at_sizes *z)
{
    int64_t br = block_rows(a, z), tasks = z->B * z->Hkv * ((z->Sq * z->group + br - 1) / br);
    return (int)at_max(1, at_min(a->plan.threads, tasks));
}

int64_t TILED(at_blocks_bytes)(const struct at_attention *a, int64_t splits)
{
    struct at_sizes z = at_sizes(a);
    int64_t n = workspace(a, &z, NULL, NULL), bytes;
    (void)splits; /* joined one by one */
    if (__builtin_mul_overflow(n, (int64_t)sizeof(at_real) * threads_for(a, &z), &bytes))
        return INT64_MAX;
    return bytes;
}

enum at_status TILED(at_blocks)(const struct tiled_call *call)
{
    const struct at_attention *a = call->a;
    struct at_sizes z = at_sizes(a);
    int64_t br = block_rows(a, &z), blocks = (z.Sq * z.group + br - 1) / br;
    int64_t n = workspace(a, &z, NULL, NULL), tasks = z.B * z.Hkv * blocks;
    int64_t bytes = TILED(at_blocks_bytes)(a, call->splits);
    int threads = threads_for(a, &z);
    at_real *space = bytes < INT64_MAX ? aligned_alloc(64, (size_t)bytes) : NULL;
    struct strip *strip = malloc((size_t)(br / W * threads) * sizeof *strip);
    bool good = space && strip;
#pragma omp parallel num_threads(threads) if (good)
    {
        int me = tiled_thread();
        struct block x = {.call = call, .a = a, .z = z, .strip = strip + br / W * me};
        if (good)
            workspace(a, &z, &x, memset(space + n * me, 0, (size_t)n * sizeof *space));
#pragma omp for schedule(dynamic) nowait
        for (int64_t t = 0; t < tasks; t++)
            if (good)
                block_at(&x, t, blocks, br);
        tally_add(call->tally, &x.tally);
    }
    free(strip);
    free(space);
    return good ? AT_OK : AT_ERR_MEMORY;
}

/* Which rows are judged where all would take too long: first those where kernels break.
 *
 * A row is a number t, its place in q as stored (at_place_of). Three classes, each in an order
 * drawn from the seed: ends of each (b,h); borders (multiples of 16, where a diagonal starts and
 * ends, ends of lengths); the rest. A set of t keeps a row from being chosen twice.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "oracle.h"
#include <stdlib.h>

/* -- Drawing --------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u; /* SplitMix64 [Steele14] */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Rows chosen so far. */
struct choice {
    const struct at_attention *a;
    struct at_sizes z;
    int64_t want, n, rows, *row, *class, nclass, room;
    unsigned char *taken; /* one bit a row */
    uint64_t seed;
};

static bool take(struct choice *c, int64_t t)
{
    unsigned char bit = (unsigned char)(1u << t % 8);
    if (c->n >= c->want || (c->taken[t / 8] & bit))
        return false;
    c->taken[t / 8] |= bit;
    c->row[c->n++] = t;
    return true;
}

/* Number of row i of sequence b: the inverse of at_place_of. */
static int64_t number(const struct choice *c, int64_t b, int64_t h, int64_t i)
{
    int64_t S = c->a->q.dim[2];
    if (c->a->score.q_start)
        return h * S + c->a->score.q_start[b] + i;
    return (b * c->z.Hq + h) * S + i;
}

static void propose(struct choice *c, int64_t b, int64_t h, int64_t i)
{
    if (i >= 0 && i < at_rows_of(c->a, &c->z, b) && c->nclass < c->room)
        c->class[c->nclass++] = number(c, b, h, i);
}

/* The class's rows in a drawn order, until enough are taken. */
static void take_class(struct choice *c)
{
    for (int64_t k = c->nclass; k > 0; k--) {
        int64_t other = (int64_t)(draw(&c->seed) % (uint64_t)k);
        int64_t t = c->class[other];
        c->class[other] = c->class[k - 1];
        take(c, t);
    }
    c->nclass = 0;
}

/* -- Classes --------------------------------------------------------------------------------- */

static void propose_borders(struct choice *c, int64_t b, int64_t h)
{
    const struct at_score *s = &c->a->score;
    int64_t rows = at_rows_of(c->a, &c->z, b), keys = at_keys_of(c->a, &c->z, b);
    int64_t offset = at_position(c->a, b, 0);
    for (int64_t i = 16; i < rows; i += 16) {
        propose(c, b, h, i - 1);
        propose(c, b, h, i);
    }
    for (int64_t d = -1; d <= 1; d++) {          /* rows beside a change of who is seen */
        propose(c, b, h, -offset + d);           /* meets key 0 */
        propose(c, b, h, keys - 1 - offset + d); /* meets the last key */
        if (s->left != AT_UNBOUNDED)
            propose(c, b, h, s->left - offset + d); /* loses key 0 */
        if (s->right > 0)
            propose(c, b, h, keys - 1 - s->right - offset + d);
    }
}

static void choose(struct choice *c)
{
    for (int64_t turn = 0; turn < 3; turn++) {
        for (int64_t b = 0; b < c->z.B; b++)
            for (int64_t h = 0; h < c->z.Hq; h++) {
                int64_t rows = at_rows_of(c->a, &c->z, b);
                if (turn == 0)
                    propose(c, b, h, rows - 1);
                if (turn == 1)
                    propose(c, b, h, 0);
                if (turn == 2)
                    propose_borders(c, b, h);
                if (turn == 2 && rows < c->z.Sq && !c->a->score.q_start && c->nclass < c->room)
                    c->class[c->nclass++] = number(c, b, h, rows); /* the first absent row */
            }
        take_class(c);
    }
    while (c->n < c->want) { /* the rest; then the next free one, so that this ends */
        int64_t t = (int64_t)(draw(&c->seed) % (uint64_t)c->rows);
        while (!take(c, t))
            t = (t + 1) % c->rows;
    }
}

static int by_number(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

bool at_rows_choose(const struct at_attention *a, int64_t want, uint64_t seed, struct at_rows *rows)
{
    struct choice c = {.a = a, .z = at_sizes(a), .seed = seed};
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    *rows = all;
    if (want < 0 || want >= all.n)
        return true;
    c.rows = all.n;
    c.want = want;
    c.room = c.z.B * c.z.Hq * (c.z.Sq / 8 + 16);
    c.row = malloc((size_t)(want + 1) * sizeof *c.row);
    c.class = malloc((size_t)(c.room + 1) * sizeof *c.class);
    c.taken = calloc((size_t)all.n / 8 + 1, 1);
    struct at_place *at = malloc((size_t)(want + 1) * sizeof *at);
    bool done = c.row && c.class && c.taken && at;
    if (done) {
        choose(&c);
        qsort(c.row, (size_t)c.n, sizeof *c.row, by_number);
        for (int64_t k = 0; k < c.n; k++)
            at[k] = at_place_of(a, all, c.row[k]);
        *rows = (struct at_rows){c.n, at};
    } else
        free(at);
    free(c.row);
    free(c.class);
    free(c.taken);
    return done;
}

/* -- Cost ------------------------------------------------------------------------------------ */

int64_t at_rows_cost(const struct at_attention *a)
{
    struct at_sizes z = at_sizes(a);
    double cost = 0;
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t i = 0; i < at_rows_of(a, &z, b); i++) {
            struct at_span keys = at_keys(a, &z, b, i);
            cost += (double)(keys.hi - keys.lo) * (double)z.Hq * (double)(z.D + z.Dv);
        }
    return cost < 0x1p62 ? (int64_t)cost : (int64_t)1 << 62;
}

int64_t at_rows_default(const struct at_attention *a)
{
    int64_t n = a->q.dim[0] * a->q.dim[1] * a->q.dim[2], cost = at_rows_cost(a);
    if (cost <= AT_ROWS_BUDGET)
        return n;
    double fits = (double)n * ((double)AT_ROWS_BUDGET / (double)cost);
    return fits < 1 ? 1 : (int64_t)fits;
}

/* What a painted problem is and owns, who sees whom in it (docs/semantics.md once more), how it is
 * shrunk and told. SPDX-License-Identifier: MIT */
#define AT_BITS 64 /* at_store rounds once, from double */
#include "at_math.h"
#include "paint.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

/* -- SplitMix64 -------------------------------------------------------------------------------- */

uint64_t paint_bits(struct paint *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct paint paint_from(uint64_t seed, uint64_t what)
{
    struct paint r = {seed}, s = {paint_bits(&r) ^ (what << 32)};
    return (struct paint){paint_bits(&s)};
}

int64_t paint_int(struct paint *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(paint_bits(r) % (uint64_t)(hi - lo + 1));
}

bool paint_one_in(struct paint *r, int64_t n) { return paint_int(r, 1, n) == n; }

double paint_unit(struct paint *r)
{
    return (double)(int64_t)(paint_bits(r) & ~(uint64_t)0x7ff) * 0x1p-63;
}

/* -- Memory and numbers ------------------------------------------------------------------------ */

void *problem_own(struct problem *p, size_t bytes)
{
    if (p->count == (int)(sizeof p->owned / sizeof *p->owned))
        abort();
    void *x = malloc(bytes + 1);
    if (!x)
        abort();
    memset(x, 0xff, bytes + 1);
    p->bytes[p->count] = bytes + 1;
    return p->owned[p->count++] = x;
}

void problem_free(struct problem *p)
{
    for (int k = 0; k < p->count; k++)
        free(p->owned[k]);
    p->count = 0;
}

void problem_clear(struct problem *p)
{
    for (int k = p->results; k < p->count; k++)
        memset(p->owned[k], 0xff, p->bytes[k]);
}

void paint_put(const struct at_view *x, int64_t at, double y)
{
    if (x->dtype == AT_U8)
        ((uint8_t *)x->data)[at] = y != 0;
    else
        at_store(x, at, y);
}

double paint_get(const struct at_view *x, int64_t b, int64_t h, int64_t s, int64_t c)
{
    int64_t at = b * x->stride[0] + h * x->stride[1] + s * x->stride[2] + c * x->stride[3];
    return x->dtype == AT_U8 ? ((uint8_t *)x->data)[at] : at_stored(x, at);
}

bool problem_gaps_untouched(const struct problem *p)
{
    const struct at_view *x[2] = {&p->got.out, &p->got.lse};
    bool good = true;
    for (int t = 0; t < 2; t++) {
        int64_t size = at_dtype_size(x[t]->dtype);
        unsigned char *memory = p->owned[p->results + t],
                      *mark = calloc(p->bytes[p->results + t], 1);
        if (!mark)
            abort();
        for (int64_t b = 0; x[t]->data && b < x[t]->dim[0]; b++)
            for (int64_t h = 0; h < x[t]->dim[1]; h++)
                for (int64_t s = 0; s < x[t]->dim[2]; s++)
                    for (int64_t c = 0; c < x[t]->dim[3]; c++)
                        memset(mark + ((unsigned char *)x[t]->data - memory) +
                                   at_offset(x[t], b, h, s, c) * size,
                               1, (size_t)size);
        for (size_t k = 0; k < p->bytes[p->results + t]; k++)
            good = good && (mark[k] || memory[k] == 0xff);
        free(mark);
    }
    return good;
}

/* -- Who sees whom, once more ------------------------------------------------------------------ */

int64_t problem_rows_of(const struct problem *p, int64_t b)
{
    return p->a.score.q_start ? p->a.score.q_len[b] : p->Sq;
}

int64_t problem_keys_of(const struct problem *p, int64_t b)
{
    return p->a.score.kv_start || p->a.pages.table ? p->a.score.kv_len[b] : p->Skv;
}

bool problem_sees(const struct problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct at_score *s = &p->a.score;
    int64_t at = i + (s->offset ? s->offset[b] : 0);
    bool sees = !(s->kv_len && j >= s->kv_len[b]) && !(s->q_len && i >= s->q_len[b]);
    sees = sees && (s->left < 0 || at - j <= s->left) && (s->right < 0 || j - at <= s->right);
    if (s->mask.data && paint_get(&s->mask, b, h, i, j) == 0)
        sees = false;
    return sees && !(s->bias.data && paint_get(&s->bias, b, h, i, j) == -(double)INFINITY);
}

bool problem_keeps(const struct problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    struct at_sizes z = {p->B, p->Hq, p->Hkv, p->Hq / p->Hkv, p->Sq, p->Skv, p->D, p->Dv};
    return !at_drops(&p->a) || at_kept(&p->a, &z, b, h, i, j); /* Philox: check_index.c */
}

int64_t problem_key(const struct problem *p, const struct at_view *x, int64_t b, int64_t g,
                    int64_t j)
{
    const struct at_pages *t = &p->a.pages;
    int64_t row = j, batch = b;
    if (p->a.score.kv_start)
        batch = 0, row += p->a.score.kv_start[b];
    if (t->table) {
        int64_t n = j / x->dim[2];
        batch = t->table[t->indptr ? t->indptr[b] + n : b * t->width + n];
        row = j % x->dim[2];
    }
    return batch * x->stride[0] + g * x->stride[1] + row * x->stride[2];
}

int64_t problem_row(const struct problem *p, const struct at_view *x, int64_t b, int64_t h,
                    int64_t i)
{
    int64_t start = p->a.score.q_start ? p->a.score.q_start[b] : 0;
    return (p->a.score.q_start ? 0 : b * x->stride[0]) + h * x->stride[1] +
           (start + i) * x->stride[2];
}

/* -- Shrinking and saying ---------------------------------------------------------------------- */

static bool still_fails(uint64_t seed, struct paint_options o, problem_fails *fails, void *with)
{
    struct problem p;
    paint_problem(&p, seed, o);
    bool yes = fails(&p, with);
    problem_free(&p);
    return yes;
}

struct paint_options paint_shrink(uint64_t seed, struct paint_options from, problem_fails *fails,
                                  void *with)
{
    struct paint_options best = from, next;
    for (int k = 0; k < paint_chances_n; k++) {
        next = best;
        next.without |= paint_chances[k].field;
        best = still_fails(seed, next, fails, with) ? next : best;
    }
    for (int64_t most = best.most ? best.most : 18; most > 1;
         most = most > 4 ? most / 2 : most - 1) {
        next = best;
        next.most = most > 4 ? most / 2 : most - 1;
        best = still_fails(seed, next, fails, with) ? next : best;
    }
    return best;
}

const char *paint_repro(uint64_t seed, struct paint_options o, const char *suite)
{
    static char text[200];
    snprintf(text, sizeof text, "SEED=%llu COUNT=1 WITHOUT=0x%x MOST=%lld build/tests/%s",
             (unsigned long long)seed, o.without, (long long)o.most, suite);
    return text;
}

const char *problem_line(const struct problem *p)
{
    static char text[600];
    int n = snprintf(text, sizeof text, "B %lld Hq %lld Hkv %lld Sq %lld Skv %lld D %lld Dv %lld",
                     (long long)p->B, (long long)p->Hq, (long long)p->Hkv, (long long)p->Sq,
                     (long long)p->Skv, (long long)p->D, (long long)p->Dv);
    for (int k = 0; k < paint_chances_n; k++)
        if ((p->fields & paint_chances[k].field) && n < 500)
            n += snprintf(text + n, sizeof text - (size_t)n, " %s", paint_chances[k].name);
    return text;
}

/* -- A suite ----------------------------------------------------------------------------------- */

int64_t paint_number(const char *name, int64_t otherwise)
{
    const char *given = getenv(name);
    return given ? (int64_t)strtoull(given, NULL, 0) : otherwise;
}

uint64_t paint_seed(void)
{
    static bool printed;
    uint64_t seed = (uint64_t)paint_number("SEED", 1);
    if (!printed)
        printf("SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    printed = true;
    return seed;
}

int paint_run(Suite *suite)
{
    SRunner *r = srunner_create(suite);
    paint_seed();
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

bool paint_same(const struct at_view *x, const struct at_view *y)
{
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t h = 0; h < x->dim[1]; h++)
            for (int64_t s = 0; s < x->dim[2]; s++)
                for (int64_t c = 0; c < x->dim[3]; c++) {
                    double a = paint_get(x, b, h, s, c), z = paint_get(y, b, h, s, c);
                    if (at_bits64(a) != at_bits64(z) && !(isnan(a) && isnan(z)))
                        return false;
                }
    return true;
}

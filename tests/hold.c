/* Holds an engine to truth (hold.h). SPDX-License-Identifier: MIT */
#include "hold.h"
#include "at_index.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Truth and verdict ------------------------------------------------------------------------- */

bool hold_truth(struct hold *h, const struct at_attention *a)
{
    const struct at_view *q = &a->q;
    *h = (struct hold){.rows = {q->dim[0] * q->dim[1] * q->dim[2], NULL}};
    h->status = at_answer_make(&h->truth, h->rows.n, a->v.dim[3]);
    if (h->status == AT_OK)
        h->status = at_truth(a, h->rows, &h->truth);
    return h->status == AT_OK;
}

void hold_engine(struct hold *h, const struct at_engine *e, const struct at_attention *a,
                 const struct at_result *to)
{
    struct at_arith arith = e->arith(a);
    h->verdict = (struct at_verdict){0};
    h->status = at_forward(e, a, to);
    if (h->status == AT_OK && h->rows.n > 0)
        h->status = at_bound(a, &arith, h->rows, &h->truth);
    if (h->status == AT_OK && h->rows.n > 0)
        h->status = at_compare(a, to, h->rows, &arith, &h->truth, NULL, &h->verdict);
}

void hold_free(struct hold *h) { at_answer_free(&h->truth); }

static bool same(const double *x, const double *y, int64_t n)
{
    bool good = true;
    for (int64_t t = 0; t < n; t++)
        good = good && (memcmp(x + t, y + t, sizeof *x) == 0 || (isnan(x[t]) && isnan(y[t])));
    return good;
}

bool hold_same_truth(const struct hold *x, const struct hold *y)
{
    const struct at_answer *a = &x->truth, *b = &y->truth;
    return a->n == b->n && a->Dv == b->Dv && same(a->out, b->out, a->n * a->Dv) &&
           same(a->out_lo, b->out_lo, a->n * a->Dv) && same(a->lse, b->lse, a->n) &&
           same(a->lse_lo, b->lse_lo, a->n);
}

const char *hold_line(const struct hold *h)
{
    static char text[400];
    const struct at_verdict *v = &h->verdict;
    snprintf(text, sizeof text,
             "%s, %lld of %lld fail, worst row %lld column %lld: got %.9g (%a), truth "
             "%.17g (%a), in %a .. %a, allowed %.3g, ratio %.4g",
             at_strstatus(h->status), (long long)v->failed, (long long)v->judged,
             (long long)v->worst, (long long)v->worst_c, v->got, v->got, v->truth, v->truth, v->lo,
             v->hi, v->allowed, v->ratio);
    return text;
}

const char *hold_digits(double x)
{
    static char text[40];
    snprintf(text, sizeof text, "%.15g", x);
    return text;
}

/* -- Poison ------------------------------------------------------------------------------------ */

enum { HOLDS = 48 };

/* A byte for each byte that the problem owns: is it looked at? */
struct marks {
    unsigned char *byte[HOLDS];
};

static int owner(const struct problem *p, const void *address)
{
    for (int k = 0; k < p->count; k++) {
        const char *base = p->owned[k], *x = address;
        if (x >= base && x < base + p->bytes[k])
            return k;
    }
    abort();
}

static void mark(const struct problem *p, struct marks *m, const struct at_view *x, int64_t at)
{
    if (!x->data)
        return;
    size_t size = (size_t)at_dtype_size(x->dtype);
    const char *address = (const char *)x->data + at * (int64_t)size;
    int k = owner(p, address);
    memset(m->byte[k] + (address - (const char *)p->owned[k]), 1, size);
}

static void mark_row(const struct problem *p, struct marks *m, const struct at_view *x, int64_t at)
{
    for (int64_t c = 0; c < x->dim[3]; c++)
        mark(p, m, x, at + c * x->stride[3]);
}

/* All that a visible key makes a row look at. */
static void mark_key(const struct problem *p, struct marks *m, int64_t b, int64_t h, int64_t i,
                     int64_t j)
{
    const struct at_score *s = &p->a.score;
    int64_t g = h / (p->Hq / p->Hkv);
    mark_row(p, m, &p->a.q, problem_row(p, &p->a.q, b, h, i));
    mark(p, m, &s->qscale, at_offset(&s->qscale, b, h, i, 0));
    mark_row(p, m, &p->a.k, problem_key(p, &p->a.k, b, g, j));
    mark(p, m, &s->kscale, at_offset(&s->kscale, b, g, j, 0));
    mark(p, m, &p->a.dropout.keep, at_offset(&p->a.dropout.keep, b, h, i, j));
    if (!problem_keeps(p, b, h, i, j))
        return;
    mark_row(p, m, &p->a.v, problem_key(p, &p->a.v, b, g, j));
    mark(p, m, &s->vscale, at_offset(&s->vscale, b, g, j, 0));
}

static void mark_all(const struct problem *p, struct marks *m)
{
    struct problem bare = *p; /* without mask and bias: where those are looked at */
    const struct at_view *mask = &p->a.score.mask, *bias = &p->a.score.bias;
    bare.a.score.mask.data = bare.a.score.bias.data = NULL;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->Hq; h++)
            for (int64_t i = 0; i < problem_rows_of(p, b); i++)
                for (int64_t j = 0; j < problem_keys_of(p, b); j++) {
                    if (problem_sees(p, b, h, i, j))
                        mark_key(p, m, b, h, i, j);
                    if (!problem_sees(&bare, b, h, i, j))
                        continue;
                    mark(p, m, mask, at_offset(mask, b, h, i, j));
                    if (!mask->data || paint_get(mask, b, h, i, j) != 0)
                        mark(p, m, bias, at_offset(bias, b, h, i, j));
                }
}

/* Every slot of x's memory that nobody looks at. */
static void spoil(struct problem *p, const struct marks *m, const struct at_view *x, double poison)
{
    if (!x->data || p->count == 0)
        return;
    int64_t size = at_dtype_size(x->dtype);
    int k = owner(p, x->data);
    struct at_view all = {p->owned[k], x->dtype, {0}, {0}};
    for (int64_t t = 0; (size_t)((t + 1) * size) <= p->bytes[k]; t++) {
        if (m->byte[k][t * size])
            continue;
        if (x->dtype == AT_U8)
            poison = ((unsigned char *)p->owned[k])[t] == 0;
        paint_put(&all, t, poison);
    }
}

void hold_poison(struct problem *p, double poison)
{
    struct marks m;
    struct at_score *s = &p->a.score;
    for (int k = 0; k < p->count; k++)
        if (!(m.byte[k] = calloc(p->bytes[k] + 8, 1)))
            abort();
    mark_all(p, &m);
    const struct at_view *x[] = {&p->a.q,    &p->a.k,    &p->a.v,    &s->bias,          &s->mask,
                                 &s->qscale, &s->kscale, &s->vscale, &p->a.dropout.keep};
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        spoil(p, &m, x[k], poison);
    for (int k = 0; k < p->count; k++)
        free(m.byte[k]);
}

/* -- A row alone ------------------------------------------------------------------------------- */

/* x from element (b,h,s,0) on, with n rows of it; absent stays absent. */
static struct at_view part(struct at_view x, int64_t at, int64_t n, int64_t columns)
{
    if (x.data)
        x.data = (char *)x.data + at * at_dtype_size(x.dtype);
    x.dim[0] = x.dim[1] = 1, x.dim[2] = n, x.dim[3] = columns;
    return x;
}

/* k or v of one sequence and head: a plain tensor, or the same pages. */
static struct at_view keys(const struct problem *p, const struct at_view *x, int64_t b, int64_t g,
                           int64_t Skv)
{
    struct at_view y;
    if (p->a.pages.table) {
        y = part(*x, g * x->stride[1], x->dim[2], x->dim[3]);
        y.dim[0] = x->dim[0];
        return y;
    }
    return part(*x, problem_key(p, x, b, g, 0), Skv, x->dim[3]);
}

static void alone_plan(struct hold_alone *x, const struct problem *p)
{
    struct at_attention whole = p->a;
    whole.plan = at_resolve(&p->a);
    x->cut = malloc((size_t)whole.plan.splits * sizeof *x->cut);
    if (!x->cut)
        abort();
    for (int64_t k = 1; k < whole.plan.splits; k++)
        x->cut[k - 1] = at_split(&whole, k);
    x->a.plan = whole.plan;
    x->a.plan.cut = x->cut;
}

static void alone_keep(struct hold_alone *x, const struct problem *p, int64_t b, int64_t h,
                       int64_t i, int64_t Skv)
{
    x->keep = malloc((size_t)Skv + 1);
    if (!x->keep)
        abort();
    for (int64_t j = 0; j < Skv; j++)
        x->keep[j] = problem_keeps(p, b, h, i, j);
    x->a.dropout.p = p->a.dropout.p;
    x->a.dropout.keep = at_bhsd(x->keep, AT_U8, 1, 1, 1, Skv);
}

void hold_alone(struct hold_alone *x, const struct problem *p, int64_t b, int64_t h, int64_t i)
{
    const struct at_score *s = &p->a.score;
    int64_t g = h / (p->Hq / p->Hkv), Skv = problem_keys_of(p, b);
    *x = (struct hold_alone){.offset = i + (s->offset ? s->offset[b] : 0),
                             .q_len = !s->q_len || i < s->q_len[b],
                             .kv_len = s->kv_len ? s->kv_len[b] : Skv};
    x->a = at_plain(part(p->a.q, problem_row(p, &p->a.q, b, h, i), 1, p->D),
                    keys(p, &p->a.k, b, g, Skv), keys(p, &p->a.v, b, g, Skv), s->scale);
    if (p->a.pages.table)
        x->a.pages.table =
            p->a.pages.table + (p->a.pages.indptr ? p->a.pages.indptr[b] : b * p->a.pages.width);
    x->a.pages.width = (x->kv_len + p->a.k.dim[2]) / at_max(1, p->a.k.dim[2]);
    struct at_score *y = &x->a.score;
    y->softcap = s->softcap, y->left = s->left, y->right = s->right;
    y->offset = &x->offset, y->q_len = &x->q_len, y->kv_len = &x->kv_len;
    y->bias = part(s->bias, at_offset(&s->bias, b, h, i, 0), 1, Skv);
    y->mask = part(s->mask, at_offset(&s->mask, b, h, i, 0), 1, Skv);
    y->alibi = part(s->alibi, at_offset(&s->alibi, 0, h, 0, 0), 1, 1);
    y->sink = part(s->sink, at_offset(&s->sink, 0, h, 0, 0), 1, 1);
    y->qscale = part(s->qscale, at_offset(&s->qscale, b, h, i, 0), 1, 1);
    y->kscale = part(s->kscale, at_offset(&s->kscale, b, g, 0, 0), Skv, 1);
    y->vscale = part(s->vscale, at_offset(&s->vscale, b, g, 0, 0), Skv, 1);
    if (at_drops(&p->a))
        alone_keep(x, p, b, h, i, Skv);
    alone_plan(x, p);
    x->got.out = part(p->got.out, problem_row(p, &p->got.out, b, h, i), 1, p->Dv);
    x->got.lse = part(p->got.lse, problem_row(p, &p->got.lse, b, h, i), 1, 1);
}

void hold_alone_free(struct hold_alone *x)
{
    free(x->cut);
    free(x->keep);
}

bool hold_same_row(const struct problem *p, const struct problem *q, int64_t b, int64_t h,
                   int64_t i)
{
    const struct at_view *x[2] = {&p->got.out, &p->got.lse}, *y[2] = {&q->got.out, &q->got.lse};
    for (int t = 0; t < 2; t++) {
        if (!x[t]->data)
            continue;
        struct at_view one = part(*x[t], problem_row(p, x[t], b, h, i), 1, x[t]->dim[3]);
        struct at_view other = part(*y[t], problem_row(q, y[t], b, h, i), 1, y[t]->dim[3]);
        if (!paint_same(&one, &other))
            return false;
    }
    return true;
}

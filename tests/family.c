/* Families of extreme problems; see family.h. SPDX-License-Identifier: MIT */
#define AT_BITS 64 /* at_store rounds once, from double */
#include "family.h"
#include "at_math.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

static double sign(struct paint *r) { return paint_one_in(r, 2) ? 1 : -1; }

/* -- Scores ------------------------------------------------------------------------------------ */

enum { RANDOM, EQUAL, OFFSET, UP, DOWN, ONE_HOT, TWO_LEVELS, PAIRS, FAR, STEEP, SCORES };
static const char *const score_names[] = {"random",  "equal",  "offset", "up",  "down",
                                          "one hot", "levels", "edge",   "far", "steep"};

/* Scores of a row of n keys. */
static void scores(struct paint *r, int kind, int64_t n, double most, double *s)
{
    static const double sizes[] = {0.1, 1, 3, 10, 40}, offsets[] = {0, 1, 100, 1e4, 1e5};
    double size = sizes[paint_int(r, 0, 4)], far = offsets[paint_int(r, 0, 4)] * sign(r);
    int64_t hot = paint_int(r, 0, n - 1);
    for (int64_t j = 0; j < n; j++) {
        double x = paint_unit(r), at = n > 1 ? (double)j / (double)(n - 1) : 0;
        switch (kind) {
        case EQUAL: s[j] = far; break;
        case OFFSET: s[j] = far + size * x; break;
        case UP: s[j] = size * at; break;
        case DOWN: s[j] = -size * at + x / 64; break;
        case ONE_HOT: s[j] = j == hot ? 0 : -size + x; break;
        case TWO_LEVELS: s[j] = x > 0 ? 0 : -size; break;
        case PAIRS: s[j] = most / 4 * (j % 2 ? 1 : -1) + most / 64 * x; break;
        case FAR: s[j] = j == hot ? 0 : -70 - 40 * fabs(x); break;
        case STEEP: s[j] = 1000 * at * size; break;
        default: s[j] = size * x;
        }
    }
}

/* -- Values ------------------------------------------------------------------------------------ */

enum { PLAIN, CONSTANT, SORTED, CANCEL, SUBNORMAL, HUGE_V, HUGE_ONE, SPREAD, POSITIVE, VALUES };
static const char *const value_names[] = {"plain", "constant", "sorted", "cancelling", "subnormal",
                                          "huge",  "one huge", "spread", "in [1,2)"};

static double value(struct paint *r, int kind, int64_t j, int64_t n, struct at_format f, double one)
{
    double x = paint_unit(r), at = n > 1 ? 2 * (double)j / (double)(n - 1) - 1 : 1;
    switch (kind) {
    case CONSTANT: return one;
    case SORTED: return at + x / 16;
    case CANCEL: return (j % 2 ? -one : one) + x / 512;
    case SUBNORMAL: return x * ldexp(4, (int)f.emin);
    case HUGE_V: return x * f.max / (double)(n + 1);
    case HUGE_ONE: return j == n / 2 ? f.max / (double)(4 * n) : x;
    case SPREAD: return x * exp2(20 * paint_unit(r));
    case POSITIVE: return 1.5 + x / 2;
    default: return x;
    }
}

/* -- The problem ------------------------------------------------------------------------------- */

static enum at_dtype draw_dtype(struct paint *r, const struct at_arith *k)
{
    static const enum at_dtype any[] = {AT_F32, AT_F32, AT_F32, AT_BF16, AT_F16, AT_F8_E4M3};
    enum at_dtype compute = k->compute ? k->compute : AT_F32;
    return compute == AT_F32 ? any[paint_int(r, 0, 5)] : compute;
}

/* Scores as a bias over q = 0, or q k with k = (s, ...) and the rest noise that q weighs little. */
static void paint_q_k(struct family *f, struct paint *r, int kind)
{
    struct at_format F = at_format(f->dtype);
    bool by_bias = paint_one_in(r, 2), noise = paint_one_in(r, 2);
    double s[FAMILY_KEYS], q = paint_one_in(r, 2) ? 1 : 1 + fabs(paint_unit(r));
    f->a.score.scale = by_bias || paint_one_in(r, 3) ? 1 : paint_one_in(r, 4) ? -0.3 : 0.3;
    if (by_bias)
        f->a.score.bias = at_bhsd(f->bias, f->dtype, 1, 2, 4, f->n);
    for (int64_t t = 0; t < FAMILY_ROWS; t++) {
        if (t == 0 || by_bias)
            scores(r, kind, f->n, F.max, s);
        for (int64_t j = 0; j < f->n && by_bias; j++)
            at_store(&f->a.score.bias, t * f->n + j, s[j]);
        for (int64_t c = 0; c < f->D; c++) {
            double x = c == 0 ? q * (1 + (double)t / 64) : noise ? paint_unit(r) : 0;
            at_store(&f->a.q, t * f->D + c, by_bias && !noise ? 0 : by_bias ? paint_unit(r) : x);
        }
    }
    for (int64_t j = 0; j < f->n; j++)
        for (int64_t c = 0; c < f->D; c++)
            at_store(&f->a.k, j * f->D + c, c == 0 && !by_bias ? s[j] : paint_unit(r));
}

static void paint_parts(struct family *f, struct paint *r, const struct at_arith *k)
{
    struct at_score *s = &f->a.score;
    for (int64_t t = 0; t < FAMILY_ROWS * f->n; t++)
        f->mask[t] = !paint_one_in(r, 5), f->keep[t] = !paint_one_in(r, 4);
    if (paint_one_in(r, 4))
        s->mask = at_bhsd(f->mask, AT_U8, 1, 2, 4, f->n);
    if (paint_one_in(r, 4))
        s->right = 0, s->offset = f->offset, f->offset[0] = f->n - 4;
    if (paint_one_in(r, 6))
        s->left = paint_int(r, 0, f->n);
    if (paint_one_in(r, 6))
        s->softcap = 1 + 30 * fabs(paint_unit(r));
    if (paint_one_in(r, 6))
        f->a.dropout.p = 0.3, f->a.dropout.keep = at_bhsd(f->keep, AT_U8, 1, 2, 4, f->n);
    struct at_view *small[] = {&s->sink, &s->alibi, &s->qscale, &s->kscale, &s->vscale};
    int64_t heads[] = {2, 2, 2, 1, 1}, rows[] = {1, 1, 4, f->n, f->n};
    for (int t = 0; t < 5; t++) {
        if (!paint_one_in(r, 6) || (t == 0 && k->fused))
            continue; /* a fused kernel's sink: docs/bounds.md, "not shown" */
        *small[t] = at_bhsd(f->small[t % 4], f->dtype, 1, heads[t], rows[t], 1);
        for (int64_t j = 0; j < heads[t] * rows[t]; j++)
            at_store(small[t], j, t == 0 ? 4 * paint_unit(r) : 1 + paint_unit(r) / 2);
    }
    if (s->sink.data) /* they share memory */
        s->vscale = (struct at_view){.data = NULL};
}

static void paint_plan(struct family *f, struct paint *r, const struct at_arith *k,
                       struct at_arith *arith)
{
    static const int64_t tiles[] = {1, 2, 3, 4, 8, 16, 64};
    struct at_plan *p = &f->a.plan;
    p->bc = k->tile ? k->tile : tiles[paint_int(r, 0, 6)];
    p->splits = paint_one_in(r, 2) ? paint_int(r, 2, 5) : 1;
    p->lanes = (int64_t)1 << paint_int(r, 0, 2);
    p->merge = (enum at_order)paint_int(r, AT_IN_ORDER, AT_RANDOM);
    p->merge_seed = paint_bits(r), p->threads = 1;
    for (int t = 0; t < 4; t++) { /* ascending */
        f->cut[t] = paint_int(r, 0, f->n);
        for (int u = t; u > 0 && f->cut[u] < f->cut[u - 1]; u--) {
            int64_t x = f->cut[u];
            f->cut[u] = f->cut[u - 1], f->cut[u - 1] = x;
        }
    }
    if (p->splits > 1 && paint_one_in(r, 2))
        p->cut = f->cut;
    *arith = *k;
    if (k->lse_merge || (!k->tile && paint_one_in(r, 2)))
        return;
    arith->tile = p->bc, arith->joins = p->splits - 1;
    arith->ordered = p->splits == 1 || paint_one_in(r, 2);
}

void family_paint(struct family *f, uint64_t seed, const struct at_arith *preset,
                  struct at_arith *arith)
{
    static const int64_t keys[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64, 65};
    struct paint r = paint_from(seed, 900);
    int kind = (int)paint_int(&r, 0, SCORES - 1), shape = (int)paint_int(&r, 0, VALUES - 1);
    *f = (struct family){.seed = seed, .n = keys[paint_int(&r, 0, 11)], .D = paint_int(&r, 1, 8)};
    f->Dv = FAMILY_DV, f->dtype = draw_dtype(&r, preset);
    f->scores = score_names[kind], f->values = value_names[shape];
    f->a =
        at_plain(at_bhsd(f->q, f->dtype, 1, 2, 4, f->D), at_bhsd(f->k, f->dtype, 1, 1, f->n, f->D),
                 at_bhsd(f->v, f->dtype, 1, 1, f->n, f->Dv), 1);
    paint_q_k(f, &r, kind);
    for (int64_t c = 0; c < f->Dv; c++) {
        double one = 1.5 + paint_unit(&r) / 2;
        for (int64_t j = 0; j < f->n; j++)
            at_store(&f->a.v, j * f->Dv + c, value(&r, shape, j, f->n, at_format(f->dtype), one));
    }
    paint_parts(f, &r, preset);
    paint_plan(f, &r, preset, arith);
    if (at_answer_make(&f->x, FAMILY_ROWS, f->Dv) != AT_OK)
        abort();
}

void family_free(struct family *f) { at_answer_free(&f->x); }

const char *family_line(const struct family *f)
{
    static char line[300];
    const struct at_score *s = &f->a.score;
    snprintf(line, sizeof line,
             "n=%lld D=%lld %s, scores %s%s, values %s, bc=%lld splits=%lld%s%s%s%s%s%s%s",
             (long long)f->n, (long long)f->D, at_dtype_name(f->dtype), f->scores,
             s->bias.data ? " (bias)" : "", f->values, (long long)f->a.plan.bc,
             (long long)f->a.plan.splits, s->softcap > 0 ? " softcap" : "",
             s->sink.data ? " sink" : "", s->alibi.data ? " alibi" : "",
             s->qscale.data ? " qscale" : "", s->kscale.data ? " kscale" : "",
             s->vscale.data ? " vscale" : "", f->a.dropout.p > 0 ? " dropout" : "");
    return line;
}

/* -- Judging ----------------------------------------------------------------------------------- */

static const struct at_rows rows = {FAMILY_ROWS, NULL};

bool family_truth(struct family *f)
{
    struct at_why why;
    enum at_status status = at_validate(&f->a, &why);
    ck_assert_msg(status == AT_OK, "SEED=%llu: %s", (unsigned long long)f->seed, why.text);
    return at_truth(&f->a, rows, &f->x) == AT_OK;
}

/* fp64 is run by the engine itself: the machine has 24 bits. */
static bool compute(struct family *f, const struct at_arith *arith, enum at_lean lean,
                    uint64_t seed)
{
    struct at_machine m = at_machine_of(arith);
    m.lean = lean, m.seed = seed;
    if (arith->compute != AT_F64)
        return at_simulate(&f->a, &m, rows, f->out, f->lse) == AT_OK;
    struct at_result to = {at_bhsd(f->out, AT_F64, 1, 2, 4, f->Dv),
                           at_bhsd(f->lse, AT_F64, 1, 2, 4, 1)};
    f->a.plan.compute = AT_F64;
    return at_forward(arith->tile ? &at_scalar : &at_standard, &f->a, &to) == AT_OK;
}

bool family_judge(struct family *f, const struct at_arith *arith, enum at_lean lean, uint64_t seed,
                  struct tally *to)
{
    static const enum at_dtype stored[] = {AT_F64, AT_F64, AT_F32, AT_BF16, AT_F16, AT_F8_E5M2};
    enum at_dtype dtype = stored[seed % 6];
    struct at_result got = {at_bhsd(f->got, dtype, 1, 2, 4, f->Dv),
                            at_bhsd(f->got_lse, AT_F64, 1, 2, 4, 1)};
    struct at_verdict v;
    if (at_bound(&f->a, arith, rows, &f->x) != AT_OK || !compute(f, arith, lean, seed))
        return false;
    for (int64_t t = 0; t < FAMILY_ROWS * f->Dv; t++)
        at_store(&got.out, t, f->out[t]);
    for (int64_t t = 0; t < FAMILY_ROWS; t++)
        at_store(&got.lse, t, f->lse[t]);
    ck_assert_int_eq(at_compare(&f->a, &got, rows, arith, &f->x, f->ratio, &v), AT_OK);
    to->outputs += FAMILY_ROWS * (f->Dv + 1);
    to->claimed += v.judged, to->unclaimed += v.unclaimed, to->open += v.open,
        to->failed += v.failed;
    for (int64_t t = 0; t < FAMILY_ROWS * (f->Dv + 1); t++) {
        double *most = t < FAMILY_ROWS * f->Dv ? &to->out : &to->lse;
        *most = f->ratio[t] > *most ? f->ratio[t] : *most;
    }
    return true;
}

void tally_add(struct tally *to, const struct tally *x)
{
    to->outputs += x->outputs, to->claimed += x->claimed, to->unclaimed += x->unclaimed;
    to->open += x->open, to->failed += x->failed;
    to->out = fmax(to->out, x->out), to->lse = fmax(to->lse, x->lse);
}

/* Scores of a tile, in base 2, as double-words: Lemmas G and S of docs/fast-truth.md.
 *
 *     t = log2(e) s,  s = softcap tanh(scale q k / softcap) + bias - slope |p - j|,
 *     |error of s| <= eps_j = alpha |k_j| + STEP_UNITS eps^2 (|x| + |bias| + |slope (p-j)|) log2(e)
 *
 * A key that is hidden is so by selection, before the exponential: whatever it holds, no lane's
 * number meets it. Not here: infinities and NaN; a row that sees one becomes `bad`.
 * SPDX-License-Identifier: MIT */
#include "fast.h"
#include "ref.h"

/* -- Lemma G ----------------------------------------------------------------------------------- */

/* sum x y on the grid of [sig, 2 sig): t = fma(x,y,s) stays there by Cauchy-Schwarz, so z = t - s
 * is exact [Sterbenz], x y - z is half a grid step at most and e gathers it.
 * |s - 1.5 sig + e - sum x y| <= eps^2 sig D(D+3)/2, sig <= 4(1+2^-17)(1+2^-18) |q| |k|. */
AT_CLONES void at_fast_dot(const struct fast_dot *x)
{
    const int64_t D = x->D;
    const double *restrict k = x->k, *restrict q = x->q;
    for (int64_t j = 0; j < TILE; j++, k += D) { /* keys */
        double s[LANES], e[LANES], start[LANES];
        for (int i = 0; i < LANES; i++) {
            double a = x->q_norm[i] * x->k_norm[j] * (1 + 0x1p-18) + 0x1p-500;
            start[i] = s[i] = 3 * power_above(a); /* 1.5 sig */
            e[i] = 0;
        }
        for (int64_t c = 0; c < D; c++) {
            double y = k[c];
#pragma omp simd
            for (int i = 0; i < LANES; i++) {
                double qc = q[c * LANES + i], t = fma(y, qc, s[i]), z = t - s[i];
                e[i] += fma(y, qc, -z);
                s[i] = t;
            }
        }
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            struct dd t = two_sum(s[i] - start[i], e[i]);
            x->sh[j * LANES + i] = t.h;
            x->sl[j * LANES + i] = t.l;
        }
    }
}

/* -- Lemma S ----------------------------------------------------------------------------------- */

/* x log2(e), x = scale q k with its descales: 14 eps^2 |x|. */
AT_CLONES static void scale_all(const struct fast_rows *x, const double *kscale,
                                struct fast_tile *to)
{
    double *restrict sh = to->sh, *restrict sl = to->sl, *restrict size = to->size;
    for (int64_t j = 0; j < TILE; j++) {
        double f = kscale[j];
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            int64_t at = j * LANES + i;
            struct dd c = {x->scale_h[i], x->scale_l[i]};
            struct dd t = dd_mul1(dd_mul((struct dd){sh[at], sl[at]}, c), f);
            size[at] = fabs(t.h);
            sh[at] = t.h, sl[at] = t.l;
        }
    }
}

/* softcap tanh(x/softcap) = softcap (1-w)/(1+w), w = 2^(-2|x| log2(e)/softcap): tanh is 1-Lipschitz
 * in what comes in, and dw 2/(1+w)^2 <= DD_EXP/2: CAP_UNITS eps^2 softcap. */
AT_CLONES static void soften_all(const struct fast_rows *x, struct fast_tile *to)
{
    double *restrict sh = to->sh, *restrict sl = to->sl;
    struct dd inner = x->inner, cap = x->cap, one = {1, 0};
    for (int64_t j = 0; j < TILE; j++)
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            int64_t at = j * LANES + i;
            double sign = copysign(1, sh[at]);
            struct dd t = dd_mul((struct dd){-sign * sh[at], -sign * sl[at]}, inner);
            struct dd w = dd_exp2(t, 0), minus = {-w.h, -w.l};
            t = dd_div(dd_add(one, minus), dd_add(one, w));
            t = dd_mul((struct dd){sign * t.h, sign * t.l}, cap);
            sh[at] = t.h, sl[at] = t.l;
        }
}

/* Bias (3 eps^2) and ALiBi (8 eps^2), each with the addition's 3. */
AT_CLONES static void add_terms(const struct fast_rows *x, int64_t j0, struct fast_tile *to)
{
    bool biased = x->a->score.bias.data, sloped = x->a->score.alibi.data;
    for (int i = 0; i < LANES; i++) {
        int64_t p = at_position(x->a, x->at[i].b, x->at[i].i);
        for (int64_t j = 0; j < TILE; j++) {
            int64_t at = j * LANES + i, away = p < j0 + j ? j0 + j - p : p - j0 - j;
            struct dd t = {to->sh[at], to->sl[at]};
            if (to->on[at] == 0)
                continue;
            if (biased) {
                struct dd y = dd_mul1(at_log2e, to->bias[at]);
                to->size[at] += fabs(y.h);
                t = dd_add(t, y);
            }
            if (sloped) {
                double h = -x->slope[i] * (double)away, l = fma(-x->slope[i], (double)away, -h);
                struct dd y = dd_mul((struct dd){h, l}, at_log2e);
                to->size[at] += fabs(y.h);
                t = dd_add(t, y);
            }
            to->sh[at] = t.h, to->sl[at] = t.l;
        }
    }
}

/* -- Who sees whom ----------------------------------------------------------------------------- */

static void see(const struct fast_rows *x, const struct fast_keys *keys, int64_t j0,
                struct fast_tile *to)
{
    const struct at_attention *a = x->a;
    bool asked = a->score.mask.data || a->score.bias.data, drops = at_drops(a);
    const struct at_view *bias = &a->score.bias;
    for (int i = 0; i < LANES; i++) {
        struct at_place p = x->at[i];
        for (int64_t j = j0; j < j0 + TILE; j++) {
            int64_t at = (j - j0) * LANES + i;
            bool on = i < x->n && j >= x->span[i].lo && j < x->span[i].hi;
            if (on && asked)
                on = at_shown(a, p.b, p.h, p.i, j);
            to->on[at] = on;
            to->pull[at] = keys->vscale[j - keys->first];
            if (on && drops && !at_kept(a, &x->z, p.b, p.h, p.i, j))
                to->pull[at] = 0;
            to->bias[at] = 0;
            if (on && bias->data)
                to->bias[at] = at_stored(bias, at_offset(bias, p.b, p.h, p.i, j));
        }
    }
}

/* eps_j, the highest reference, hidden keys put away, lanes that are not served. */
AT_CLONES static void finish(struct fast_rows *x, const double *k_norm, const double *kscale,
                             struct fast_tile *to)
{
    const double beta = STEP_UNITS * AT_EPS2, far = x->far;
    double top[LANES], bad[LANES], seen[LANES];
    for (int i = 0; i < LANES; i++)
        top[i] = x->m[i], bad[i] = x->bad[i], seen[i] = x->seen[i];
    for (int64_t j = 0; j < TILE; j++) {
        double size_k = k_norm[j] * fabs(kscale[j]);
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            int64_t at = j * LANES + i;
            double on = to->on[at], e = x->alpha[i] * size_k + beta * to->size[at];
            double unfit = !((to->size[at] < far) & (e < 0x1p-24)) ? 1 : 0;
            bad[i] += on > 0 ? unfit : 0;
            seen[i] += on;
            to->sh[at] = on > 0 ? to->sh[at] : NO_KEY;
            to->sl[at] = on > 0 ? to->sl[at] : 0;
            to->error[at] = on > 0 ? e : 0;
            double y = on > unfit ? ceil(to->sh[at]) : NO_KEY;
            top[i] = y > top[i] ? y : top[i];
        }
    }
    for (int i = 0; i < LANES; i++)
        to->top[i] = top[i], x->bad[i] = bad[i], x->seen[i] = seen[i];
}

void at_fast_scores(struct fast_rows *x, const struct fast_keys *keys, int64_t j0,
                    struct fast_tile *to)
{
    int64_t at = j0 - keys->first;
    struct fast_dot dot = {x->z.D, keys->k + at * x->z.D, keys->norm + at, x->q, x->norm, to->sh,
                           to->sl};
    see(x, keys, j0, to);
    at_fast_dot(&dot);
    scale_all(x, keys->kscale + at, to);
    if (x->softcap > 0)
        soften_all(x, to);
    if (x->a->score.bias.data || x->a->score.alibi.data)
        add_terms(x, j0, to);
    finish(x, keys->norm + at, keys->kscale + at, to);
}

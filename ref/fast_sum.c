/* Weights and sums of a tile: Lemmas R, X, D and E of docs/fast-truth.md.
 *
 *     p_j = 2^(t_j - m),  l = sum p_j,  u_c = sum p_j v_jc   as double-words, m an integer >= t
 *     w_j = p_j (kappa + eps_j) + 2^-510,  le = sum w_j,  ue_c = sum w_j |v_jc|
 *
 * so that |l - its sum| <= le and |u_c - its sum| <= ue_c, but for a factor 1 + 2^-16 that covers
 * what these plain sums of positive terms round. SPDX-License-Identifier: MIT */
#include "fast.h"

/* Lemma R. By 2^-k exactly; k > 600 drops what is at most 2^-600 sum p|v|, while the error then
 * shrinks by 2^-500 only and so still covers it. */
void at_fast_rescale(struct fast_rows *x, const double *top)
{
    double a[LANES], b[LANES];
    bool grows = false;
    for (int i = 0; i < LANES; i++) {
        double k = x->m[i] - top[i];
        grows = grows || k < 0;
        x->m[i] = top[i];
        a[i] = k < -600 ? 0 : power((int64_t)k);
        b[i] = k < -500 ? 0x1p-500 : a[i];
    }
    if (!grows)
        return;
    for (int i = 0; i < LANES; i++) {
        double e = x->le[i];
        x->lh[i] *= a[i], x->ll[i] *= a[i];
        x->le[i] = e * b[i] + fmin(e, 0x1p-1000);
    }
    for (int64_t c = 0; c < x->z.Dv; c++)
        for (int i = 0; i < LANES; i++) {
            double e = x->ue[c * LANES + i];
            x->uh[c * LANES + i] *= a[i], x->ul[c * LANES + i] *= a[i];
            x->ue[c * LANES + i] = e * b[i] + fmin(e, 0x1p-1000);
        }
}

/* Scores become weights, eps_j the key's share w_j; l takes the tile in. */
AT_CLONES static void weigh(struct fast_rows *x, struct fast_tile *s)
{
    double ph[LANES] = {0}, pl[LANES] = {0}, error[LANES] = {0};
    double *restrict sh = s->sh, *restrict sl = s->sl, *restrict w = s->error;
    const double *restrict on = s->on;
    for (int64_t j = 0; j < TILE; j++)
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            int64_t at = j * LANES + i;
            struct dd p = dd_exp2((struct dd){sh[at], sl[at]}, x->m[i]), t;
            sh[at] = p.h *= on[at];
            sl[at] = p.l *= on[at];
            t = two_sum(ph[i], p.h);
            ph[i] = t.h;
            pl[i] += t.l + p.l;
            w[at] = on[at] * (p.h * (x->kappa[i] + w[at]) + EXP_FLOOR);
            error[i] += w[at];
        }
    for (int i = 0; i < LANES; i++) {
        struct dd l = dd_add((struct dd){x->lh[i], x->ll[i]}, two_sum(ph[i], pl[i]));
        x->lh[i] = l.h, x->ll[i] = l.l;
        x->le[i] += error[i];
    }
}

/* What u takes of a weight: times the value's factor (2 eps^2, in kappa), or nothing. */
AT_CLONES static void pull_all(struct fast_tile *s)
{
    double *restrict sh = s->sh, *restrict sl = s->sl, *restrict w = s->error;
    const double *restrict f = s->pull;
#pragma omp simd
    for (int64_t at = 0; at < TILE * LANES; at++) {
        struct dd p = dd_mul1((struct dd){sh[at], sl[at]}, f[at]);
        sh[at] = p.h, sl[at] = p.l;
        w[at] *= fabs(f[at]);
    }
}

void at_fast_weights(struct fast_rows *x, struct fast_tile *s)
{
    weigh(x, s);
    if (at_drops(x->a) || x->a->score.vscale.data)
        pull_all(s);
}

/* Lemma D, Dot2 [Ogita05]: |e| <= (j+2) eps sum p|v| after j keys, three additions to it a key, so
 * eps^2 (TILE^2 + 6 TILE + 2) sum p|v| in all. */
AT_CLONES void at_fast_values(const struct fast_values *x)
{
    const double *restrict ph = x->ph, *restrict pl = x->pl, *restrict w = x->error;
    for (int64_t c = 0; c < x->Dv; c++) {
        const double *restrict v = x->v + c * TILE;
        double s[LANES] = {0}, e[LANES] = {0}, error[LANES] = {0};
        for (int64_t j = 0; j < TILE; j++) {
            double y = v[j], size = fabs(y);
#pragma omp simd
            for (int i = 0; i < LANES; i++) {
                double p = ph[j * LANES + i], h = p * y;
                struct dd t = two_sum(s[i], h);
                e[i] = fma(pl[j * LANES + i], y, e[i] + (t.l + fma(p, y, -h)));
                s[i] = t.h;
                error[i] = fma(w[j * LANES + i], size, error[i]);
            }
        }
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            int64_t at = c * LANES + i;
            struct dd u = dd_add((struct dd){x->uh[at], x->ul[at]}, two_sum(s[i], e[i]));
            x->uh[at] = u.h, x->ul[at] = u.l;
            x->ue[at] += error[i];
        }
    }
}

/* One more key, of value 0; a sink of -inf is absent. */
void at_fast_sink(struct fast_rows *x)
{
    double top[LANES];
    struct dd t[LANES];
    for (int i = 0; i < LANES; i++) {
        t[i] = dd_mul1(at_log2e, x->sink[i] > -INFINITY ? x->sink[i] : 0);
        top[i] = x->sink[i] > -INFINITY ? fmax(x->m[i], ceil(t[i].h)) : x->m[i];
    }
    at_fast_rescale(x, top);
    for (int i = 0; i < LANES; i++) {
        if (x->sink[i] == -INFINITY)
            continue;
        struct dd p = dd_exp2(t[i], top[i]), l = dd_add((struct dd){x->lh[i], x->ll[i]}, p);
        x->lh[i] = l.h, x->ll[i] = l.l;
        x->le[i] += p.h * (x->kappa[i] + STEP_UNITS * AT_EPS2 * fabs(t[i].h)) + EXP_FLOOR;
        x->seen[i] += 1;
    }
}

/* (A*) of docs/bounds.md: the shared error of a row's columns, in a few passes over its keys.
 *
 * Over |kappa_j| <= E_j a weighted mean of v ranges over exactly [R-, R+]; the upper end has e^E_j
 * on every v_j > R+ and e^-E_j elsewhere. R+ - o is the root of F(t) = sum w_j(t) (y_j - t), y = v
 * - o. The sums of one pass serve the private errors too. SPDX-License-Identifier: MIT */
#include "bound.h"

/* -- Sums over the keys ---------------------------------------------------------------------------
 */

static void add_key(const struct row *x, int64_t t, struct columns *s)
{
    const double *v = x->value[t] + s->c;
    double factor = x->key[t].factor, S = x->key[t].S, up = x->up[t], down = x->down[t];
    double priv = x->priv[t], few = x->few[t];
    for (int c = 0; c < WIDE; c++) {
        double vc = v[c] * factor, y = (vc - s->hi[c]) - s->lo[c];
        double size = fabs(vc), far = fabs(y), with = y > 0 ? up : down,
               against = y > 0 ? down : up;
        s->rise[c] += with * far;
        s->fall[c] += against * far;
        s->priv[c] += priv * size;
        s->few[c] += size > 0 ? few * size : 0;
        s->priv_max[c] = S * size > s->priv_max[c] ? S * size : s->priv_max[c];
        s->size[c] = size > s->size[c] ? size : s->size[c];
        s->most[c] = y > s->most[c] ? y : s->most[c];
        s->least[c] = y < s->least[c] ? y : s->least[c];
    }
}

static void add_lost(const struct row *x, int64_t t, struct columns *s)
{
    const double *v = x->value[t] + s->c;
    for (int c = 0; c < WIDE; c++) {
        double vc = v[c] * x->key[t].factor;
        s->lost[c] += x->lost_y[t] * fabs(vc - s->hi[c]) + x->lost_v[t] * fabs(vc);
    }
}

void at_bound_sum(const struct row *x, struct columns *s)
{
    for (int64_t t = 0; t < x->n; t++)
        add_key(x, t, s);
    for (int64_t t = 0; t < x->n && x->sums_lost; t++)
        add_lost(x, t, s);
}

/* -- The shared part
 * -------------------------------------------------------------------------------- */

struct pass {
    double gain[WIDE], loss[WIDE], mass[WIDE];
};

/* F(t) = sum w (y - t) = gain - loss, y = sign (v - o), w = p e^E where y > t, else p e^-E; mass =
 * sum w. Not in direct form sum p (y - t) = -t leaves F = sum |w - p| |y - t| - t. */
static struct pass evaluate(const struct row *x, const struct columns *s, double sign,
                            const double *t)
{
    struct pass f = {{0}, {0}, {0}};
    double other = x->direct ? 1 : -1;
    for (int64_t j = 0; j < x->n; j++) {
        const double *v = x->value[j] + s->c;
        double factor = x->key[j].factor, up = x->up[j], down = x->down[j];
        for (int c = 0; c < WIDE; c++) {
            double y = sign * ((v[c] * factor - s->hi[c]) - s->lo[c]), far = y - t[c];
            f.gain[c] += far > 0 ? up * far : 0;
            f.loss[c] -= far > 0 ? 0 : down * far;
            f.mass[c] += far > 0 ? up : other * down;
        }
    }
    for (int c = 0; c < WIDE && !x->direct; c++) {
        f.gain[c] += f.loss[c];
        f.loss[c] = t[c];
        f.mass[c] += 1;
    }
    return f;
}

/* The root of F from below by Newton's method (F is convex and falls), each time with a small step
 * outward; F <= 0, with the rounding of its sums against it, certifies t. */
static void newton(const struct row *x, const struct columns *s, double sign, double *root)
{
    double t[WIDE] = {0};
    bool done[WIDE] = {false};
    int left = WIDE;
    for (int passes = 0; passes < 64 && left > 0; passes++) {
        struct pass f = evaluate(x, s, sign, t);
        for (int c = 0; c < WIDE; c++) {
            if (done[c])
                continue;
            if (f.gain[c] * (1 + 0x1p-30) <= f.loss[c] * (1 - 0x1p-30)) {
                root[c] = t[c];
                done[c] = true, left--;
                continue;
            }
            double step = (f.gain[c] - f.loss[c]) / f.mass[c];
            t[c] = (t[c] + (step > 0 ? step : 0)) * (1 + 0x1p-8);
        }
    }
    for (int c = 0; c < WIDE; c++)
        if (!done[c])
            root[c] = INFINITY;
}

/* max(R+ - o, o - R-). With W- near 1 one pass does: t <= sum |w - p| |y| / (1 - sum p (1 - e^-E)).
 */
void at_bound_shared(const struct row *x, const struct columns *s, double *to)
{
    double plus[WIDE], minus[WIDE];
    bool close = !x->direct && x->up_sum <= 0x1p-6;
    if (!close) {
        newton(x, s, 1, plus);
        newton(x, s, -1, minus);
    }
    for (int c = 0; c < WIDE; c++) {
        if (close) {
            plus[c] = s->rise[c] / (1 - x->down_sum);
            minus[c] = s->fall[c] / (1 - x->down_sum);
        }
        to[c] = fmax(fmin(plus[c], s->most[c]), fmin(minus[c], -s->least[c])) * WIDER;
        to[c] += x->direct ? 0x1p-49 * s->size[c] : 0; /* v - o, where v is a product; e^-200 n */
    }
}

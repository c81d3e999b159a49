/* (A*) of docs/bounds.md: the shared error of a row's columns, in a few passes over its keys.
 *
 * Over |kappa_j| <= E_j a weighted mean of v ranges over exactly [R-, R+]; the upper end has e^E_j
 * on every v_j > R+ and e^-E_j elsewhere. R+ - o is the root of F(t) = sum w_j(t) (y_j - t),
 * y = v - o (Bound.shared_range). The sums of one pass serve the private errors too.
 * SPDX-License-Identifier: MIT */
#include "bound.h"
#include "lanes.h"

/* Near W- = 1 the sums rise and fall are enough: at_bound_shared. */
static bool one_pass(const struct row *x) { return !x->direct && x->up_sum <= 0x1p-6; }

/* -- Sums over the keys ----------------------------------------------------------------------- */

/* Keys [from,to): sum |w - p| |v - o|, with the weight's rise where v lies above o and its fall
 * below, and the other way round. */
AT_CLONES static void add_spread(const struct row *x, int64_t from, int64_t to, struct columns *s)
{
    double rise[WIDE], fall[WIDE], hi[WIDE], lo[WIDE];
    for (int c = 0; c < WIDE; c++)
        rise[c] = s->rise[c], fall[c] = s->fall[c], hi[c] = s->hi[c], lo[c] = s->lo[c];
    for (int64_t t = from; t < to; t++) {
        const double *restrict v = x->panel[t] + s->c * NEAR;
        double factor = x->key[t].factor, up = x->up[t], down = x->down[t];
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            double y = (v[c] * factor - hi[c]) - lo[c], above = y > 0 ? y : 0, under = above - y;
            rise[c] += up * above + down * under;
            fall[c] += down * above + up * under;
        }
    }
    for (int c = 0; c < WIDE; c++)
        s->rise[c] = rise[c], s->fall[c] = fall[c];
}

/* The private sums, and in most, least the values' own range. */
AT_CLONES static void add_sizes(const struct row *x, int64_t from, int64_t to, struct columns *s)
{
    double priv[WIDE], few[WIDE], priv_max[WIDE], most[WIDE], least[WIDE];
    for (int c = 0; c < WIDE; c++) {
        priv[c] = s->priv[c], few[c] = s->few[c], priv_max[c] = s->priv_max[c];
        most[c] = s->most[c], least[c] = s->least[c];
    }
    for (int64_t t = from; t < to; t++) {
        const double *restrict v = x->panel[t] + s->c * NEAR;
        double factor = x->key[t].factor, S = x->key[t].S, share = x->priv[t];
        double heavy = x->has_few ? x->few[t] : 0;
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            double y = v[c] * factor, size = fabs(y), z = S * size;
            priv[c] += share * size;
            few[c] += size > 0 ? heavy * size : 0;
            priv_max[c] = z > priv_max[c] ? z : priv_max[c];
            most[c] = y > most[c] ? y : most[c];
            least[c] = y < least[c] ? y : least[c];
        }
    }
    for (int c = 0; c < WIDE; c++) {
        s->priv[c] = priv[c], s->few[c] = few[c], s->priv_max[c] = priv_max[c];
        s->most[c] = most[c], s->least[c] = least[c];
    }
}

/* Where E is small, with up and down as half the sum and half the difference of a weight's
 * rise and fall: rise, fall = sum up |y| +- sum down y, y = v - hi. What lo adds, and the
 * cancellation, finish_fine charges. The range of v is not asked for: the sums are far inside. */
AT_INLINE void add_small(const struct row *x, int64_t from, int64_t to, struct columns *s, bool few)
{
    const double *restrict hi = s->hi;
    double mean[WIDE] = {0}, half[WIDE] = {0}, priv[WIDE] = {0}, part[WIDE] = {0};
    double most[WIDE] = {0};
    for (int64_t t = from; t < to; t++) {
        const double *restrict v = x->panel[t] + s->c * NEAR;
        double up = x->up[t], down = x->down[t], share = x->priv[t], heavy = few ? x->few[t] : 0;
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            double size = fabs(v[c]), y = v[c] - hi[c];
            mean[c] = fma(up, fabs(y), mean[c]);
            half[c] = fma(down, y, half[c]);
            priv[c] = fma(share, size, priv[c]);
            part[c] = few ? fma(heavy, size, part[c]) : 0;
            most[c] = size > most[c] ? size : most[c];
        }
    }
#pragma omp simd
    for (int c = 0; c < WIDE; c++) {
        s->rise[c] += mean[c], s->fall[c] += half[c];
        s->priv[c] += priv[c], s->few[c] += part[c];
        s->size[c] = most[c] > s->size[c] ? most[c] : s->size[c];
    }
}

AT_CLONES static void add_fine(const struct row *x, int64_t from, int64_t to, struct columns *s)
{
    if (x->has_few)
        add_small(x, from, to, s, true);
    else
        add_small(x, from, to, s, false);
}

static void finish_fine(const struct row *x, struct columns *s)
{
    for (int c = 0; c < WIDE; c++) {
        double mean = s->rise[c], half = s->fall[c];
        double off = (double)(x->n + 8) * 0x1p-51 * mean + fabs(s->lo[c]) * x->up_sum;
        s->rise[c] = mean + half + off;
        s->fall[c] = mean - half + off;
        s->most[c] = INFINITY, s->least[c] = -INFINITY;
        s->priv_max[c] = x->S_max * s->size[c];
    }
}

/* The range of v becomes that of v - o: rounding is monotone. */
static void finish(struct columns *s)
{
    for (int c = 0; c < WIDE; c++) {
        s->size[c] = fmax(fabs(s->most[c]), fabs(s->least[c]));
        s->most[c] = (s->most[c] - s->hi[c]) - s->lo[c];
        s->least[c] = (s->least[c] - s->hi[c]) - s->lo[c];
    }
}

static void add_lost(const struct row *x, int64_t t, struct columns *s)
{
    const double *v = x->panel[t] + s->c * NEAR;
    for (int c = 0; c < WIDE; c++) {
        double vc = v[c] * x->key[t].factor;
        s->lost[c] += x->lost_y[t] * fabs(vc - s->hi[c]) + x->lost_v[t] * fabs(vc);
    }
}

void at_bound_sum(const struct row *x, int64_t from, int64_t n, struct columns *s, int64_t blocks)
{
    int64_t to = at_min(x->n, from + n);
    for (int64_t k = 0; k < blocks && from < to; k++) {
        if (x->fine)
            add_fine(x, from, to, s + k);
        else {
            if (one_pass(x))
                add_spread(x, from, to, s + k);
            add_sizes(x, from, to, s + k);
        }
        if (x->ordered)
            at_bound_order_sum(x, from, to, s + k);
    }
    for (int64_t t = from; t < to && x->sums_lost; t++)
        for (int64_t k = 0; k < blocks && x->lost_y[t] + x->lost_v[t] > 0; k++)
            add_lost(x, t, s + k);
}

void at_bound_summed(const struct row *x, struct columns *s, int64_t blocks)
{
    for (int64_t k = 0; k < blocks; k++) {
        for (int c = 0; c < WIDE; c++) {
            s[k].few[c] = x->has_few ? s[k].few[c] : INFINITY;
            if (x->ordered)
                s[k].few[c] = fmin(s[k].few[c], s[k].own[c] + x->order_eps * s[k].run[c]);
        }
        if (x->fine)
            finish_fine(x, s + k);
        else
            finish(s + k);
    }
}

/* -- The shared part -------------------------------------------------------------------------- */

struct pass {
    double gain[WIDE], loss[WIDE], mass[WIDE];
};

/* F(t) = sum w (y - t) = gain - loss, y = sign (v - o), w = p e^E where y > t, else p e^-E; mass =
 * sum w. Not in direct form sum p (y - t) = -t leaves F = sum |w - p| |y - t| - t. */
AT_CLONES static struct pass evaluate(const struct row *x, const struct columns *s, double sign,
                                      const double *t)
{
    struct pass f = {{0}, {0}, {0}};
    double other = x->direct ? 1 : -1;
    for (int64_t j = 0; j < x->n; j++) {
        const double *v = x->panel[j] + s->c * NEAR;
        double factor = x->key[j].factor, up = x->up[j], down = x->down[j];
#pragma omp simd
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

/* max(R+ - o, o - R-); where one pass does, by t <= sum |w - p| |y| / (1 - sum p (1 - e^-E)). */
void at_bound_shared(const struct row *x, const struct columns *s, double *to)
{
    double plus[WIDE], minus[WIDE];
    bool one = one_pass(x);
    if (!one) {
        newton(x, s, 1, plus);
        newton(x, s, -1, minus);
    }
    for (int c = 0; c < WIDE; c++) {
        if (one) {
            plus[c] = s->rise[c] / (1 - x->down_sum);
            minus[c] = s->fall[c] / (1 - x->down_sum);
        }
        to[c] = fmax(fmin(plus[c], s->most[c]), fmin(minus[c], -s->least[c])) * WIDER;
        to[c] += x->direct ? 0x1p-49 * s->size[c] : 0; /* v - o, where v is a product; e^-200 n */
    }
}

/* A row of k against the query, for Lemma 1 of docs/bounds.md: q k in one double or in two, A =
 * sum|q k|, and what underflow may take of its products. SPDX-License-Identifier: MIT */
#include "bound.h"
#include "lanes.h"

/* Dot2 [Ogita05] in WIDE chains: |hi + lo - q k| <= eps |q k| + (D+8)^2 2^-105 sum|q k|, which is
 * less than the long double sigma that is charged. */
AT_CLONES static void add_products(const struct row *x, const double *restrict k, struct inner *to)
{
    const double *restrict q = x->q;
    double s[WIDE] = {0}, e[WIDE] = {0}, raw[WIDE] = {0};
    for (int64_t at = 0; at < x->store->deep; at += WIDE)
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            double y = k[at + c], h = q[at + c] * y, t = s[c] + h, z = t - s[c];
            e[c] += ((s[c] - (t - z)) + (h - z)) + fma(q[at + c], y, -h);
            s[c] = t;
            raw[c] += fabs(h);
        }
    for (int c = 0; c < WIDE; c++) {
        double t = to->hi + s[c], z = t - to->hi;
        to->lo += ((to->hi - (t - z)) + (s[c] - z)) + e[c];
        to->hi = t;
        to->raw += raw[c];
    }
}

/* A and most; true where some product or factor is so small that underflow must be asked about. */
AT_CLONES static bool add_sizes(const struct row *x, const double *restrict k, double size,
                                struct inner *to)
{
    const double *restrict q = x->q_size, *restrict stored = x->q, *restrict lost = x->q_lost;
    const double edge = x->r->edge, edge_key = fmax(edge, x->r->edge_key);
    double A[WIDE] = {0}, most[WIDE] = {0}, small[WIDE] = {0};
    for (int64_t at = 0; at < x->store->deep; at += WIDE)
#pragma omp simd
        for (int c = 0; c < WIDE; c++) {
            double y = fabs(k[at + c]) * size, z = q[at + c] * y;
            double low = ((z < edge) & (stored[at + c] != 0)) ? 1 : 0;
            low = y < edge_key ? 1 : low;
            small[c] += (y > 0 ? low : 0) + lost[at + c];
            A[c] += z;
            most[c] = y > most[c] ? y : most[c];
        }
    double any = 0;
    for (int c = 0; c < WIDE; c++) {
        to->A += A[c], any += small[c];
        to->most = most[c] > to->most ? most[c] : to->most;
    }
    return any != 0;
}

/* left: what a descale of k may lose. */
static void add_lost(const struct row *x, const double *k, double size, double left,
                     struct inner *to)
{
    const double edge = x->r->edge, edge_key = x->r->edge_key;
    for (int64_t c = 0; c < x->r->z.D; c++) {
        double y = fabs(k[c]) * size, k_lost = y > 0 && y < edge ? left : 0;
        k_lost += y > 0 && y < edge_key ? x->r->tiny_key : 0;
        to->lost += x->q_lost[c] * y + k_lost * (x->q_size[c] + x->q_lost[c]);
        to->lost += x->q[c] != 0 && y > 0 && x->q_size[c] * y < edge ? x->r->tiny : 0;
    }
}

struct inner at_bound_dot(const struct row *x, const double *k, double size, double left)
{
    struct inner to = {0};
    add_products(x, k, &to);
    if (add_sizes(x, k, size, &to))
        add_lost(x, k, size, left, &to);
    return to;
}

/* -- In double -------------------------------------------------------------------------------- */

AT_CLONES void at_bound_dots(const struct store *s, int64_t j, int64_t n)
{
    const double *restrict q = s->q, *restrict size = s->q_size;
    for (int64_t t = 0; t < n; t += 2) { /* two keys hide the latency of each other's sums */
        const double *restrict k0 = s->k + (j + t) * s->deep;
        const double *restrict k1 = t + 1 < n ? k0 + s->deep : k0;
        double s0[ROWS] = {0}, s1[ROWS] = {0}, a0[ROWS] = {0}, a1[ROWS] = {0};
        for (int64_t c = 0; c < s->deep; c++) {
            double y0 = k0[c], y1 = k1[c], z0 = fabs(y0), z1 = fabs(y1);
#pragma omp simd
            for (int i = 0; i < ROWS; i++) {
                double x = q[c * ROWS + i], y = size[c * ROWS + i];
                s0[i] = fma(x, y0, s0[i]), a0[i] = fma(y, z0, a0[i]);
                s1[i] = fma(x, y1, s1[i]), a1[i] = fma(y, z1, a1[i]);
            }
        }
        double *dot = s->dot + t * ROWS, *raw = s->raw + t * ROWS;
#pragma omp simd
        for (int i = 0; i < ROWS; i++) {
            dot[i] = s0[i], raw[i] = a0[i];
            dot[ROWS + i] = s1[i], raw[ROWS + i] = a1[i];
        }
    }
}

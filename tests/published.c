/* Published rules, as published.h says. Dense rows in the order of the truth.
 * SPDX-License-Identifier: MIT */
#include "published.h"
#include "at_index.h"
#include "oracle.h"
#include "ref.h"
#include <math.h>

const char *const published_names[PUBLISHED] = {"assert_close", "allclose", "flash-2x", "cosine",
                                                "rms",          "flashmla", "hipdnn"};

/* Sums over all elements of out; bad: a NaN or infinity. */
struct sums {
    double error2, want2, got2, both, worst, eager, round, largest;
    bool bad, mla;
};

static bool mla_far(double got, double want, double abs, double rel)
{
    double error = fabs(got - want);
    return !(error < abs || error / (fabs(want) + 1e-6) < rel); /* published rule */
}

static void add(struct sums *s, double got, double truth, double eager, struct at_format f)
{
    double want = at_nearest(truth, f), error = fabs(got - want);
    s->bad = s->bad || !isfinite(got);
    s->error2 += error * error, s->want2 += want * want, s->got2 += got * got;
    s->both += got * want;
    s->worst = fmax(s->worst, error);
    s->eager = fmax(s->eager, fabs(eager - want));
    double back = at_nearest(at_nearest(want + 0.3, f) - 0.3, f);
    s->round = fmax(s->round, 2 * fabs(back - want));
    s->largest = fmax(s->largest, fabs(got - truth));
    s->mla = s->mla || mla_far(got, want, 1e-3, 2.01 / 128); /* published rule */
}

static double largest(const struct at_view *x)
{
    double most = 0;
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t h = 0; h < x->dim[1]; h++)
            for (int64_t s = 0; s < x->dim[2]; s++)
                for (int64_t c = 0; c < x->dim[3]; c++)
                    most = fmax(most, fabs(at_stored(x, at_offset(x, b, h, s, c))));
    return most;
}

static double gamma_of(double n, double eps)
{
    return n * eps < 0.01 ? n * eps / (1 - n * eps) : 6 * sqrt(2 * n) * eps;
}

/* hipDNN (PR 7032): one scalar from the largest |q|, |k|, |v|. */
static double hipdnn(const struct at_attention *a, enum at_dtype dtype)
{
    double eps = 0x1p-23, mv = largest(&a->v), d = (double)a->q.dim[3], n = (double)a->k.dim[2];
    double s = d * largest(&a->q) * largest(&a->k), c = fabs(a->score.scale);
    double stored = dtype == AT_BF16 ? 0x1p-7 : dtype == AT_F16 ? 0x1p-10 : eps;
    double score = gamma_of(d, eps) * s * c + s * c * eps;
    return score * mv + (gamma_of(n, eps) + (n + 1) * eps) * mv + gamma_of(n, eps) * mv +
           stored * mv;
}

void published_fails(const struct at_attention *a, const struct at_result *got,
                     const struct at_answer *x, const double *eager, bool fails[PUBLISHED])
{
    struct at_rows all = {a->q.dim[0] * a->q.dim[1] * a->q.dim[2], NULL};
    struct at_format f = at_format(got->out.dtype);
    struct at_rule rule[AT_RULES];
    struct sums s = {.bad = false};
    for (int64_t t = 0; t < all.n; t++) {
        struct at_place p = at_place_of(a, all, t);
        int64_t at = at_row_offset(a, &got->out, p.b, p.h, p.i);
        for (int64_t c = 0; c < x->Dv; c++)
            add(&s, at_stored(&got->out, at + c * got->out.stride[3]), x->out[t * x->Dv + c],
                eager[t * x->Dv + c], f);
        double lse = at_stored(&got->lse, at_row_offset(a, &got->lse, p.b, p.h, p.i));
        if (!(isinf(lse) && lse == x->lse[t]))
            s.mla = s.mla || mla_far(lse, x->lse[t], 1e-6, 8.01 / 65536); /* published rule */
    }
    at_rules(a, &got->out, all, x, rule);
    double cosine = s.both / sqrt(s.got2 * s.want2), apart = 1 - 2 * s.both / (s.got2 + s.want2);
    fails[ASSERT_CLOSE] = rule[0].beyond > 0;
    fails[ALLCLOSE] = rule[1].beyond > 0;
    fails[FLASH_2X] = s.bad || !(s.worst <= 2 * s.eager + s.round);
    fails[COSINE] = s.bad || !(cosine > 0.99);
    fails[RMS] = s.bad || !(sqrt(s.error2 / s.want2) <= 1e-2); /* published rule */
    fails[FLASHMLA] = s.bad || s.mla || !(apart < 5e-6);       /* published rule */
    fails[HIPDNN] = s.bad || !(s.largest <= hipdnn(a, got->out.dtype));
}

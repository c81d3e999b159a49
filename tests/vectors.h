/* What the suites of the generator share. SPDX-License-Identifier: MIT */
#ifndef VECTORS_H
#define VECTORS_H

#define AT_BITS 64
#include "at_math.h"
#include "case.h"
#include "make.h"
#include "vector.h"
#include <math.h>

static struct at_said said;
static const struct at_progress quiet = {NULL, NULL};

/* Small, grouped, causal, and every border of a tile of 8 inside. */
static inline struct at_request small(const char *suite, enum at_dtype dtype)
{
    struct at_request x = at_request_plain();
    const int64_t shape[7] = {1, 4, 2, 7, 35, 16, 3};
    memcpy(x.shape, shape, sizeof shape);
    x.dtype = dtype;
    x.corner = AT_BOTTOM_RIGHT;
    x.tile[0] = 8, x.tile[1] = 5, x.tiles = 2;
    ck_assert_msg(at_request_suite(&x, suite, &said), "%s", said.text);
    ck_assert_msg(at_request_check(&x, &said), "%s", said.text);
    return x;
}

/* Vector k of those of the request that fit its shape; false: there are no more. */
static inline bool vector(struct at_vector *v, const struct at_request *want, int64_t k)
{
    const struct at_plot *plot;
    int64_t tile;
    for (int64_t n = 0; at_suite_case(want, n, &plot, &tile); n++) {
        struct at_canvas c;
        if (!at_canvas_plan(&c, want, plot, tile) || k-- > 0)
            continue;
        ck_assert_msg(at_vector_make(v, want, plot, tile, quiet, &said), "%s", said.text);
        v->x.a.plan.threads = 1; /* the problems are small */
        return true;
    }
    return false;
}

static inline struct at_generated generated(const struct at_request *want, const char *dir)
{
    struct at_generated done;
    ck_assert_msg(at_generate(want, dir, quiet, &done, &said), "%s", said.text);
    return done;
}

/* As a reader of the files judges: docs/generator.md. */
static inline bool accepted(const struct at_vector *v, int64_t row, int64_t c, double got)
{
    double lo, hi;
    unsigned char kind = at_vector_element(v, row, c, &lo, &hi);
    double truth = c < 0 ? v->y.lse[row] : v->y.out[row * v->y.Dv + c];
    if (isnan(got))
        return kind == KIND_NAN || kind >= KIND_OPEN;
    return (got >= lo && got <= hi) ||
           ((kind == KIND_OPEN_PLUS || kind == KIND_OPEN_MINUS) && got == truth);
}

static inline double rounded_as(double x, enum at_dtype dtype)
{
    double space = 0;
    struct at_view y = at_bhsd(&space, dtype, 1, 1, 1, 1);
    at_store(&y, 0, x);
    return at_load(&y, 0);
}

/* The scalar engine's result on a vector, rounded to the output dtype, row by row. */
static inline double *scalar_result(struct at_vector *v, const char *fault, struct at_arith *arith)
{
    struct at_attention a = v->x.a;
    a.plan = (struct at_plan){.bc = 8};
    a.plan = at_resolve(&a);
    int64_t n = v->y.n, Dv = v->y.Dv, T = a.q.dim[2];
    double *out = malloc((size_t)(n * (Dv + 1)) * sizeof *out);
    void *space = malloc((size_t)(n * (Dv + 1)) * 8);
    ck_assert(out && space);
    struct at_result to = {
        at_case_like_q(&v->x, space, a.plan.compute, Dv),
        at_bhsd((char *)space + 8 * n * Dv, a.plan.compute, a.q.dim[0], a.q.dim[1], T, 1)};
    if (fault)
        ck_assert_msg(at_mutant_forward(fault, &a, &to, &said), "%s", said.text);
    else
        ck_assert_int_eq(at_forward(&at_scalar, &a, &to), AT_OK);
    for (int64_t t = 0; t < n; t++) {
        struct at_place p = at_place_of(&a, v->rows, t);
        int64_t at = at_row_offset(&a, &to.out, p.b, p.h, p.i);
        for (int64_t c = 0; c < Dv; c++)
            out[t * Dv + c] = rounded_as(at_load(&to.out, at + c * to.out.stride[3]), v->out);
        out[n * Dv + t] = at_load(&to.lse, at_row_offset(&a, &to.lse, p.b, p.h, p.i));
    }
    *arith = at_scalar.arith(&a);
    free(space);
    return out;
}

static inline int64_t count_failed(const struct at_vector *v, const double *got, bool lse)
{
    int64_t failed = 0, n = v->y.n, Dv = v->y.Dv;
    for (int64_t t = 0; t < n * Dv; t++)
        failed += !accepted(v, t / Dv, t % Dv, got[t]);
    for (int64_t t = 0; lse && t < n; t++)
        failed += !accepted(v, t, -1, got[n * Dv + t]);
    return failed;
}

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

static inline TCase *group(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 300);
    suite_add_tcase(s, t);
    return t;
}

static inline int run_groups(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}

#endif

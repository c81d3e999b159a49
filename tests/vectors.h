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

/* Vector k of the request; false: there is none. Fails where it does not fit. */
static inline bool vector(struct at_vector *v, const struct at_request *want, int64_t k)
{
    const struct at_plot *plot;
    int64_t tile;
    if (!at_suite_case(want, k, &plot, &tile))
        return false;
    ck_assert_msg(at_vector_make(v, want, plot, tile, quiet, &said), "%s", said.text);
    v->x.a.plan.threads = 1; /* the problems are small */
    return true;
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

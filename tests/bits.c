/* Two engines, one problem: the same bits? SPDX-License-Identifier: MIT */
#include "bits.h"
#include "at_math.h"
#include <stdio.h>
#include <stdlib.h>

static double value(const struct at_view *x, int64_t at)
{
    if (x->dtype == AT_F64)
        return ((const double *)x->data)[at];
    return (double)at_load(x, at); /* AT_BITS is 32 here, and the rest fits it */
}

static int64_t count(const struct at_view *x)
{
    return x->dim[0] * x->dim[1] * x->dim[2] * x->dim[3];
}

static int64_t bytes(const struct at_view *x)
{
    return count(x) * (x->dtype == AT_F64                          ? 8
                       : x->dtype == AT_F32                        ? 4
                       : x->dtype == AT_F16 || x->dtype == AT_BF16 ? 2
                                                                   : 1);
}

/* A copy filled with a pattern that no result has: what is not written shows. */
static struct at_view twin(const struct at_view *x)
{
    struct at_view y = *x;
    if (!x->data)
        return y;
    y.data = malloc((size_t)bytes(x) + 1);
    if (!y.data)
        abort();
    memset(y.data, 0xa5, (size_t)bytes(x));
    return y;
}

/* Two contiguous tensors in the same order. Any NaN equals any NaN. */
static bool same(const struct at_view *x, const struct at_view *y, const char *name, char text[300])
{
    int64_t n = count(x), size = n ? bytes(x) / n : 1;
    for (int64_t t = 0; x->data && t < n; t++) {
        double a = value(x, t), b = value(y, t);
        const char *px = (const char *)x->data + t * size, *py = (const char *)y->data + t * size;
        if (memcmp(px, py, (size_t)size) == 0 || (a != a && b != b))
            continue;
        snprintf(text, 300, "%s[%lld of %lld] %a (%.9g) and %a (%.9g)", name, (long long)t,
                 (long long)n, a, a, b, b);
        return false;
    }
    return true;
}

static bool same_way(const struct at_engine *x, const struct at_engine *y,
                     const struct bits_problem *p, char text[300])
{
    struct at_result one = {twin(&p->to.out), twin(&p->to.lse)};
    struct at_result two = {twin(&p->to.out), twin(&p->to.lse)};
    enum at_status a = at_forward(x, &p->a, &one), b = at_forward(y, &p->a, &two);
    bool good = a == AT_OK && b == AT_OK;
    if (good)
        good = same(&one.out, &two.out, "out", text) && same(&one.lse, &two.lse, "lse", text);
    else
        snprintf(text, 300, "status %s and %s", at_strstatus(a), at_strstatus(b));
    free(one.out.data), free(one.lse.data), free(two.out.data), free(two.lse.data);
    return good;
}

static struct at_state state_like(const struct at_attention *a, enum at_dtype dtype)
{
    int64_t B = a->q.dim[0], H = a->q.dim[1], S = a->q.dim[2];
    struct at_view one = at_bhsd(a->q.data, dtype, B, H, S, 1);
    struct at_view u = at_bhsd(a->q.data, dtype, B, H, S, a->v.dim[3]);
    return (struct at_state){twin(&one), twin(&one), twin(&u)};
}

/* The states over keys that neither start nor end with a tile. */
static bool same_state(const struct at_engine *x, const struct at_engine *y,
                       const struct bits_problem *p, char text[300])
{
    struct at_attention a = p->a;
    a.plan = at_resolve(&p->a);
    int64_t Skv = at_sizes(&a).Skv;
    bool wide = a.plan.compute == AT_F64;
    struct at_state one = state_like(&a, a.plan.compute), two = state_like(&a, a.plan.compute);
    enum at_status s = (wide ? x->attend_f64 : x->attend_f32)(&a, Skv / 5, Skv - Skv / 7, &one);
    enum at_status t = (wide ? y->attend_f64 : y->attend_f32)(&a, Skv / 5, Skv - Skv / 7, &two);
    bool good = s == AT_OK && t == AT_OK;
    if (good)
        good = same(&one.m, &two.m, "m", text) && same(&one.l, &two.l, "l", text) &&
               same(&one.u, &two.u, "u", text);
    else
        snprintf(text, 300, "attend: %s and %s", at_strstatus(s), at_strstatus(t));
    free(one.m.data), free(one.l.data), free(one.u.data);
    free(two.m.data), free(two.l.data), free(two.u.data);
    return good;
}

bool bits_equal(const struct at_engine *x, const struct at_engine *y, uint64_t seed,
                unsigned features, char text[300])
{
    struct bits_problem p;
    struct at_why why;
    bits_make(&p, seed, features);
    bool good = at_validate(&p.a, &why) == AT_OK;
    if (!good)
        snprintf(text, 300, "the problem is none: %s", why.text);
    good = good && same_way(x, y, &p, text) && same_state(x, y, &p, text);
    bits_free(&p);
    return good;
}

unsigned bits_shrink(const struct at_engine *x, const struct at_engine *y, uint64_t seed)
{
    unsigned features = BITS_ALL;
    char text[300];
    for (int turn = 0; turn < 2; turn++)
        for (unsigned f = 1; f < BITS_ALL; f <<= 1)
            if ((features & f) && !bits_equal(x, y, seed, features & ~f, text))
                features &= ~f;
    return features;
}

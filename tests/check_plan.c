/* Suite plan: splits, merge orders, at_resolve; extents of 0.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "base.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>

enum { TIMES = 2000 };

/* -- Splits ------------------------------------------------------------------------------------ */

START_TEST(splits_cover_each_key_once)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 1);
    for (int t = 0; t < TIMES; t++) {
        struct base *x = base();
        int64_t cut[9], splits = paint_int(&r, 1, 9), Skv = paint_int(&r, 0, 40), end = 0;
        x->a.k.dim[2] = x->a.v.dim[2] = Skv;
        x->a.plan.bc = paint_int(&r, 1, 20), x->a.plan.splits = splits;
        for (int64_t k = 0; k < splits; k++)
            cut[k] = (k ? cut[k - 1] : 0) + paint_int(&r, 0, 1) * paint_int(&r, 0, 9);
        x->a.plan.cut = t % 2 ? cut : NULL;
        for (int64_t k = 0; k < splits; k++) {
            ck_assert(at_split(&x->a, k) == end && at_split(&x->a, k + 1) >= end);
            end = at_split(&x->a, k + 1);
            if (t % 2 && k < splits - 1)
                ck_assert(end == (cut[k] < Skv ? cut[k] : Skv));
            if (t % 2 == 0)
                ck_assert(end % x->a.plan.bc == 0 || end == Skv); /* whole tiles */
        }
        ck_assert_msg(end == Skv, "SEED=%llu build/tests/check_plan", (unsigned long long)seed);
    }
}
END_TEST

/* An engine that computes nothing: it writes down which keys it is given, and states it was
 * told. */
static struct {
    int64_t j0[16], j1[16];
    int n;
    float u[16];
} spy;

static enum at_status attend_spy(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    (void)a;
    spy.j0[spy.n] = j0, spy.j1[spy.n] = j1;
    for (int64_t t = 0; t < x->m.dim[0] * x->m.dim[1] * x->m.dim[2]; t++) {
        ((float *)x->m.data)[t] = 0;
        ((float *)x->l.data)[t] = 1;
        for (int64_t c = 0; c < x->u.dim[3]; c++)
            ((float *)x->u.data)[t * x->u.dim[3] + c] = spy.u[spy.n];
    }
    spy.n++;
    return AT_OK;
}

static const struct at_engine at_spy = {.name = "spy", .attend_f32 = attend_spy};

static enum at_status forward_spy(const struct at_attention *a, const struct at_result *to)
{
    spy.n = a->plan.splits > 0 && a->plan.bc > 0 && to->out.data ? 77 : 0;
    return AT_OK;
}

START_TEST(an_engine_with_a_way_of_its_own_takes_it_with_a_resolved_plan)
{
    struct base *x = base();
    const struct at_engine e = {.name = "own way", .forward = forward_spy};
    ck_assert_int_eq(at_forward(&e, &x->a, &x->to), AT_OK);
    ck_assert_int_eq(spy.n, 77);
}
END_TEST

/* sum of u over four splits, told from out = u/4. */
static float merged(enum at_order order, uint64_t seed, int64_t splits, const float *u)
{
    struct base *x = base();
    x->a.plan.bc = 1, x->a.plan.splits = splits;
    x->a.plan.merge = order, x->a.plan.merge_seed = seed;
    spy.n = 0;
    memcpy(spy.u, u, (size_t)splits * sizeof *u);
    ck_assert_int_eq(at_forward(&at_spy, &x->a, &x->to), AT_OK);
    ck_assert_int_eq(spy.n, (int)splits);
    for (int k = 1; k < spy.n; k++)
        ck_assert(spy.j0[k] == spy.j1[k - 1]);
    ck_assert(spy.j0[0] == 0 && spy.j1[spy.n - 1] == 5);
    return x->out[47] * (float)splits;
}

/* 1 + ulp/2 is 1, so that the brackets show: ulp = 2^-23. */
START_TEST(states_merge_in_the_order_of_the_plan)
{
    const float ulp = 0x1p-23f, u[4] = {1, ulp / 2, ulp / 2, ulp / 2};
    ck_assert(merged(AT_IN_ORDER, 0, 4, u) == 1);           /* ((0+1)+2)+3 */
    ck_assert(merged(AT_REVERSED, 0, 4, u) == 1 + 2 * ulp); /* 0+(1+(2+3)) */
    ck_assert(merged(AT_TREE, 0, 4, u) == 1 + ulp);         /* (0+1)+(2+3) */
    const float v[8] = {1, ulp / 2, 1, ulp / 2, ulp / 2, ulp / 2, 0, 0};
    /* ((1 + 1) + (2 ulp/2 + 0)): tied, to even */
    ck_assert(merged(AT_TREE, 0, 8, v) == 2);
    ck_assert(merged(AT_TREE, 0, 3, (float[]){1, ulp / 2, ulp / 2}) * 1 == 1);
}
END_TEST

START_TEST(a_random_merge_order_repeats_with_its_seed_and_differs_between_seeds)
{
    const float ulp = 0x1p-23f, u[4] = {1, ulp / 2, ulp / 2, ulp / 2};
    int64_t seen[3] = {0, 0, 0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        float x = merged(AT_RANDOM, seed, 4, u);
        ck_assert(x == merged(AT_RANDOM, seed, 4, u));
        ck_assert(x == 1 || x == 1 + ulp || x == 1 + 2 * ulp);
        seen[(int)((x - 1) / ulp)]++;
    }
    ck_assert(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}
END_TEST

/* Scale -1 times a product of 0: the only score is -0, and the state says 0. */
START_TEST(the_maximum_of_an_attended_row_is_never_minus_zero)
{
    const struct at_engine *const engine[] = {&at_scalar, &at_standard};
    for (int e = 0; e < 2; e++) {
        struct base *x = base();
        float l[24];
        struct at_state state = {at_bhsd(x->lse, AT_F32, 2, 4, 3, 1),
                                 at_bhsd(l, AT_F32, 2, 4, 3, 1),
                                 at_bhsd(x->out, AT_F32, 2, 4, 3, 2)};
        x->a.score.scale = -1;
        x->a.plan = at_resolve(&x->a);
        ck_assert_int_eq(engine[e]->attend_f32(&x->a, 0, 5, &state), AT_OK);
        for (int k = 0; k < 24; k++)
            ck_assert(x->lse[k] == 0 && !signbit(x->lse[k]) && l[k] == 5);
    }
}
END_TEST

/* -- at_resolve -------------------------------------------------------------------------------- */

static bool same_plan(const struct at_plan *x, const struct at_plan *y)
{
    return x->compute == y->compute && x->br == y->br && x->bc == y->bc && x->lanes == y->lanes &&
           x->splits == y->splits && x->cut == y->cut && x->merge == y->merge &&
           x->merge_seed == y->merge_seed && x->threads == y->threads;
}

START_TEST(resolving_is_pure_complete_and_done_once)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = 0; t < TIMES; t++) {
        struct problem p;
        paint_problem(&p, seed + t, (struct paint_options){0});
        struct at_attention before;
        memcpy(&before, &p.a, sizeof before);
        struct at_plan x = at_resolve(&p.a), y = at_resolve(&p.a);
        ck_assert(memcmp(&before, &p.a, sizeof before) == 0 && same_plan(&x, &y));
        ck_assert(x.br > 0 && x.bc > 0 && x.lanes > 0 && x.splits > 0 && x.threads > 0);
        ck_assert(x.compute == AT_F32 || x.compute == AT_F64);
        ck_assert(!p.a.plan.bc || x.bc == p.a.plan.bc);
        ck_assert(!p.a.plan.lanes || x.lanes == p.a.plan.lanes);
        ck_assert(!p.a.plan.splits || x.splits == p.a.plan.splits);
        p.a.plan = x;
        y = at_resolve(&p.a);
        ck_assert(same_plan(&x, &y));
        problem_free(&p);
    }
}
END_TEST

START_TEST(any_tensor_of_doubles_asks_for_double)
{
    struct base *x = base();
    ck_assert(at_resolve(&x->a).compute == AT_F32);
    const struct at_view wide = at_bhsd(x->bias, AT_F64, 1, 1, 1, 1);
    struct at_view *const place[] = {&x->a.q,
                                     &x->a.k,
                                     &x->a.v,
                                     &x->a.score.bias,
                                     &x->a.score.qscale,
                                     &x->a.score.kscale,
                                     &x->a.score.vscale};
    for (int k = 0; k < 7; k++) {
        struct at_view old = *place[k];
        *place[k] = wide;
        ck_assert(at_resolve(&x->a).compute == AT_F64);
        *place[k] = old;
    }
    x->a.plan.compute = AT_F64;
    ck_assert(at_resolve(&x->a).compute == AT_F64);
}
END_TEST

START_TEST(the_plan_of_the_bound_follows_the_plan_of_the_engine)
{
    struct base *x = base();
    x->a.plan = (struct at_plan){.bc = 2, .splits = 5, .lanes = 1, .merge = AT_IN_ORDER};
    struct at_arith arith = at_scalar.arith(&x->a);
    ck_assert(arith.tile == 2 && arith.joins == 4 && arith.dot == 4 && arith.compute == AT_F32);
    ck_assert(arith.ordered);
    x->a.plan.merge = AT_TREE, x->a.plan.lanes = 2;
    x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 4, 1, 1);
    arith = at_scalar.arith(&x->a);
    ck_assert(arith.joins == 3 && arith.dot == 3); /* ceil(log2 5); 4/2 + 1 */
    ck_assert(at_standard.workspace(&x->a) == 3 * 5 * 4);
    x->a.q.dim[2] = x->a.k.dim[2] = (int64_t)1 << 40;
    ck_assert(at_standard.workspace(&x->a) == INT64_MAX);
}
END_TEST

/* -- Extents of 0 ------------------------------------------------------------------------------ */

START_TEST(empty_batches_heads_and_queries_give_empty_results)
{
    for (int d = 0; d < 3; d++) {
        struct base *x = base();
        x->a.q.dim[d] = x->to.out.dim[d] = x->to.lse.dim[d] = 0;
        if (d < 1)
            x->a.k.dim[d] = x->a.v.dim[d] = 0;
        x->a.q.data = x->to.out.data = x->to.lse.data = NULL;
        ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
        ck_assert_int_eq(at_forward(&at_standard, &x->a, &x->to), AT_OK);
        ck_assert(untouched(x));
    }
}
END_TEST

START_TEST(without_keys_every_row_is_empty)
{
    const struct at_engine *const engine[] = {&at_scalar, &at_standard};
    for (int e = 0; e < 2; e++) {
        struct base *x = base();
        x->a.k.dim[2] = x->a.v.dim[2] = 0;
        x->a.k.data = x->a.v.data = NULL;
        ck_assert_int_eq(at_forward(engine[e], &x->a, &x->to), AT_OK);
        for (int k = 0; k < 48; k++)
            ck_assert(x->out[k] == 0 && !signbit(x->out[k]));
        for (int k = 0; k < 24; k++)
            ck_assert(x->lse[k] == -INFINITY);
    }
}
END_TEST

START_TEST(packed_rows_of_no_sequence_are_zero)
{
    struct base *x = base();
    pack_q(x);
    x->len[0] = 1, x->len[1] = 0; /* row 1 and row 2 belong to nobody */
    for (int k = 0; k < 96; k++)
        x->q[k] = NAN;
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
    for (int h = 0; h < 4; h++)
        for (int i = 1; i < 3; i++)
            ck_assert(x->out[h * 6 + i * 2] == 0 && x->lse[h * 3 + i] == -INFINITY);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, splits_cover_each_key_once);
    tcase_add_test(c, an_engine_with_a_way_of_its_own_takes_it_with_a_resolved_plan);
    tcase_add_test(c, the_maximum_of_an_attended_row_is_never_minus_zero);
    tcase_add_test(c, states_merge_in_the_order_of_the_plan);
    tcase_add_test(c, a_random_merge_order_repeats_with_its_seed_and_differs_between_seeds);
    tcase_add_test(c, resolving_is_pure_complete_and_done_once);
    tcase_add_test(c, any_tensor_of_doubles_asks_for_double);
    tcase_add_test(c, the_plan_of_the_bound_follows_the_plan_of_the_engine);
    tcase_add_test(c, empty_batches_heads_and_queries_give_empty_results);
    tcase_add_test(c, without_keys_every_row_is_empty);
    tcase_add_test(c, packed_rows_of_no_sequence_are_zero);
    suite_add_tcase(s, c);
    return paint_run(s);
}

/* Suite memory: what is asked for and not there is AT_ERR_MEMORY, and nothing has been written.
 * SPDX-License-Identifier: MIT */
#include "base.h"
#include "ref.h"
#include <math.h>

/* -- Allocations that fail, each in its turn (memory.c) ---------------------------------------- */

START_TEST(an_allocation_that_fails_is_told_and_nothing_is_written)
{
    const struct at_engine *const engine[] = {&at_scalar, &at_standard};
    for (int e = 0; e < 4; e++) {
        int64_t turn = 0;
        enum at_status status = AT_ERR_MEMORY;
        while (status == AT_ERR_MEMORY && turn < 99) {
            struct base *x = base();
            x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 4, 1, 1);
            x->a.plan = (struct at_plan){.splits = 3, .bc = 1, .threads = 2};
            x->a.plan.compute = e < 2 ? AT_F32 : AT_F64;
            memory_countdown = ++turn;
            status = at_forward(engine[e % 2], &x->a, &x->to);
            memory_countdown = 0;
            ck_assert(status == AT_OK || untouched(x));
        }
        ck_assert(status == AT_OK && turn > 4);
    }
}
END_TEST

START_TEST(truth_and_bound_tell_of_an_allocation_that_fails)
{
    struct base *x = base();
    struct at_rows rows = {24, NULL};
    struct at_answer answer;
    struct at_arith arith = at_scalar.arith(&x->a);
    x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 4, 1, 1);
    ck_assert_int_eq(at_answer_make(&answer, 24, 2), AT_OK);
    unsigned char open[24];
    memset(open, 1, sizeof open);
    for (int step = 0; step < 3; step++) {
        enum at_status status = AT_ERR_MEMORY;
        int64_t turn = 0;
        while (status == AT_ERR_MEMORY && turn < 999) {
            memory_countdown = ++turn;
            status = step == 0   ? at_truth(&x->a, rows, &answer)
                     : step == 1 ? at_bound(&x->a, &arith, rows, &answer)
                                 : at_truth_again(&x->a, &arith, rows, open, &answer);
            memory_countdown = 0;
        }
        ck_assert(status == AT_OK && turn > 1);
    }
    at_answer_free(&answer);
}
END_TEST

/* A state of one row in doubles, and the same as another library has it. */
START_TEST(converters_tell_of_an_allocation_that_fails_and_serve_doubles)
{
    double m = 1, l = 2, u = 6, out = 0, lse = 0, sum = 0;
    struct at_state x = {at_bhsd(&m, AT_F64, 1, 1, 1, 1), at_bhsd(&l, AT_F64, 1, 1, 1, 1),
                         at_bhsd(&u, AT_F64, 1, 1, 1, 1)};
    struct at_foreign y = {.form = AT_OUT_M_L,
                           .out = at_bhsd(&out, AT_F64, 1, 1, 1, 1),
                           .lse = at_bhsd(&lse, AT_F64, 1, 1, 1, 1),
                           .l = at_bhsd(&sum, AT_F64, 1, 1, 1, 1),
                           .empty_lse = -(double)INFINITY};
    memory_countdown = 1;
    ck_assert_int_eq(at_to_foreign(&x, &y), AT_ERR_MEMORY);
    ck_assert(out == 0 && lse == 0);
    memory_countdown = 1;
    ck_assert_int_eq(at_from_foreign(&y, &x), AT_ERR_MEMORY);
    memory_countdown = 0;
    ck_assert(m == 1 && l == 2 && u == 6);
    for (int form = AT_OUT_LSE; form <= AT_U_M_L; form++) {
        y.form = (enum at_form)form;
        ck_assert_int_eq(at_to_foreign(&x, &y), AT_OK);
        ck_assert(out == (form == AT_U_M_L ? 6 : 3));
        m = l = u = (double)NAN;
        ck_assert_int_eq(at_from_foreign(&y, &x), AT_OK);
        ck_assert(u / l == 3);
        m = 1, l = 2, u = 6;
    }
    l = 0; /* a row that has seen nothing, marked by NaN */
    y.empty_nan = true;
    ck_assert_int_eq(at_to_foreign(&x, &y), AT_OK);
    ck_assert(isnan(out) && lse == -(double)INFINITY);
    ck_assert_int_eq(at_from_foreign(&y, &x), AT_OK);
    ck_assert(m == -(double)INFINITY && l == 0 && u == 0);
}
END_TEST

/* -- More than there is ------------------------------------------------------------------------ */

START_TEST(sizes_past_64_bits_are_told)
{
    struct base *x = base();
    int64_t many = (int64_t)1 << 40;
    x->a.q.dim[2] = x->to.out.dim[2] = x->to.lse.dim[2] = many;
    x->a.plan.splits = 1 << 20;
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_ERR_MEMORY);
    ck_assert(untouched(x));
    struct at_attention a = x->a;
    a.q.dim[2] = a.k.dim[2] = many; /* S alone is too large */
    struct at_state none = {{.data = NULL}, {.data = NULL}, {.data = NULL}};
    ck_assert_int_eq(at_standard.attend_f32(&a, 0, 1, &none), AT_ERR_MEMORY);
    ck_assert_int_eq(at_standard.attend_f64(&a, 0, 1, &none), AT_ERR_MEMORY);
    struct at_answer answer;
    ck_assert_int_eq(at_answer_make(&answer, -1, 1), AT_ERR_SHAPE);
    ck_assert_int_eq(at_answer_make(&answer, 1, 0), AT_ERR_SHAPE);
    ck_assert_int_eq(at_answer_make(&answer, INT64_MAX / 2, 3), AT_ERR_MEMORY);
    ck_assert_int_eq(at_answer_make(&answer, (int64_t)1 << 45, 2), AT_ERR_MEMORY);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory");
    TCase *c = tcase_create("memory");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, an_allocation_that_fails_is_told_and_nothing_is_written);
    tcase_add_test(c, truth_and_bound_tell_of_an_allocation_that_fails);
    tcase_add_test(c, converters_tell_of_an_allocation_that_fails_and_serve_doubles);
    tcase_add_test(c, sizes_past_64_bits_are_told);
    suite_add_tcase(s, c);
    return paint_run(s);
}

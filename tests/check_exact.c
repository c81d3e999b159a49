/* Generated cases hold what they promise: exact ones are exact, correct engines pass, faults and
 * negative controls fail. SPDX-License-Identifier: MIT */
#include "at_simulate.h"
#include "vectors.h"

/* -- Exact cases ----------------------------------------------------------------------------- */

static const enum at_dtype dtypes[] = {AT_F64, AT_F32, AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2};

/* Masks and sizes that make rows of no key, of one, of many. */
static struct at_request exact_request(int turn)
{
    struct at_request x = small("exact", dtypes[turn % 6]);
    const int64_t windows[3] = {-1, 9, 0};
    x.corner = (enum at_corner)(turn % 3);
    x.left = windows[turn / 3 % 3];
    x.right = x.corner == AT_NO_CORNER ? (turn % 2 ? 3 : -1) : 0;
    x.shape[3] = turn % 4 == 3 ? 40 : 7; /* Sq > Skv: empty rows */
    x.seed = (uint64_t)turn + 1;
    return x;
}

START_TEST(an_exact_case_leaves_one_number_under_every_preset_it_holds_for)
{
    struct at_request want = exact_request(_i);
    struct at_vector v;
    int64_t held = 0;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        ck_assert_int_ne(v.canvas.plot->exact, AT_INEXACT);
        for (int64_t p = 0; at_arith_at(p); p++) {
            const struct at_arith *arith = at_arith_at(p);
            v.arith = *arith;
            if (!at_exact_for(v.canvas.plot->exact, arith, want.dtype) ||
                at_bound(&v.x.a, arith, v.rows, &v.y) != AT_OK)
                continue;
            at_exact_claim(v.canvas.plot->exact, arith, want.dtype, &v.y);
            for (int64_t t = 0; t < v.y.n * v.y.Dv; t++) {
                double lo, hi;
                unsigned char kind = at_vector_element(&v, t / v.y.Dv, t % v.y.Dv, &lo, &hi);
                ck_assert_msg(kind == KIND_FINITE && lo == hi &&
                                  lo == rounded_as(v.y.out[t], v.out),
                              "%s under %s: element %lld: kind %d, %a .. %a, truth %a",
                              v.canvas.name, arith->name, (long long)t, kind, lo, hi, v.y.out[t]);
            }
            held++;
        }
        at_vector_free(&v);
    }
    ck_assert_int_ge(held, want.dtype == AT_F64 ? 7 : 80);
}
END_TEST

START_TEST(arithmetics_that_are_not_exact_are_these)
{
    char one[200] = "", counted[200] = "", balanced[400] = "";
    for (int64_t p = 0; at_arith_at(p); p++) {
        const struct at_arith *x = at_arith_at(p);
        if (!at_exact_for(AT_ONE_KEY, x, AT_F8_E4M3))
            strcat(strcat(one, x->name), " ");
        else if (!at_exact_for(AT_COUNTED, x, AT_F8_E4M3))
            strcat(strcat(counted, x->name), " ");
        else if (!at_exact_for(AT_BALANCED, x, AT_F8_E4M3))
            strcat(strcat(balanced, x->name), " ");
    }
    ck_assert_str_eq(one, "fp32-libm-exp20 3xtf32 bf16-p-exp400 ");
    ck_assert_str_eq(counted, "split-lse ");
    ck_assert_str_eq(balanced, "fp64 eager bf16-p-normalised bf16-sp fp16-p-normalised fp16-sp "
                               "onnx-fp32 onnx-fp16 onnx-bf16 ");
}
END_TEST

/* Machines that round everything, some of them badly. */
static struct at_machine machine(int k)
{
    struct at_float single = at_float_of(AT_F32), half = at_float_of(AT_F16),
                    brain = at_float_of(AT_BF16);
    struct at_float cut = single, drawn = single, flush = single;
    cut.rounding = AT_TOWARD_ZERO, drawn.rounding = AT_STOCHASTIC, flush.flush = true;
    const struct at_machine all[] = {
        {.compute = single},
        {.compute = single, .own_math = true},
        {.compute = single, .weight = brain},
        {.compute = single, .weight = half, .score = half, .rounded_sum = true},
        {.compute = single, .weight = at_float_of(AT_F8_E4M3), .sum = cut},
        {.compute = cut, .weight = brain},
        {.compute = drawn, .seed = 5},
        {.compute = flush, .score = brain, .weight = brain},
        {.compute = brain},
        {.compute = half},
    };
    return k < (int)(sizeof all / sizeof *all) ? all[k] : (struct at_machine){0};
}

static void run_machines(struct at_vector *v, enum at_dtype dtype)
{
    int64_t n = v->y.n, Dv = v->y.Dv;
    double *out = malloc((size_t)(n * (Dv + 1)) * sizeof *out);
    ck_assert_ptr_nonnull(out);
    for (int k = 0; machine(k).compute.p; k++) {
        struct at_machine m = machine(k);
        if (at_format(dtype).p > m.compute.p || (dtype == AT_BF16 && m.compute.emin == -14))
            continue; /* it must hold every input */
        for (int turn = 0; turn < 3; turn++) {
            const struct at_plan plans[3] = {
                {.bc = 1},
                {.bc = 8, .splits = 3, .merge = AT_TREE},
                {.bc = 5, .splits = 2, .merge = AT_REVERSED, .lanes = 4}};
            v->x.a.plan = plans[turn];
            ck_assert_int_eq(at_simulate(&v->x.a, &m, v->rows, out, out + n * Dv), AT_OK);
            for (int64_t t = 0; t < n * Dv; t++)
                ck_assert_msg(rounded_as(out[t], v->out) == rounded_as(v->y.out[t], v->out),
                              "%s, machine %d, plan %d: element %lld is %a, truth %a",
                              v->canvas.name, k, turn, (long long)t, out[t], v->y.out[t]);
        }
    }
    free(out);
}

START_TEST(no_machine_makes_an_error_on_an_exact_case)
{
    struct at_request want = exact_request(_i);
    struct at_vector v;
    if (want.dtype == AT_F64)
        return; /* machines have at most 24 bits */
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        run_machines(&v, want.dtype);
        at_vector_free(&v);
    }
}
END_TEST

START_TEST(a_correct_engine_passes_every_suite_in_every_dtype)
{
    struct at_request want = small("full", dtypes[_i]);
    struct at_vector v;
    struct at_arith arith;
    int64_t n = 0, all = 0, tile;
    const struct at_plot *plot;
    for (; vector(&v, &want, n); n++) {
        double *got = scalar_result(&v, NULL, &arith);
        ck_assert_msg(count_failed(&v, got, true) == 0, "%s: %lld elements fail", v.canvas.name,
                      (long long)count_failed(&v, got, true));
        free(got);
        at_vector_free(&v);
    }
    while (at_suite_case(&want, all, &plot, &tile))
        all++;
    ck_assert_int_eq(all - n, want.dtype == AT_F64); /* the search does not fit */
}
END_TEST

static const char *const suites[] = {"smoke", "exact", "masks", "extreme", "splits", "adversarial"};
static const char *const faults[] = {"lost-key@7",       "lost-key@8",     "twice-key@15",
                                     "head-modulo",      "lost-rescale-u", "lost-rescale-l",
                                     "causal-off-by-one"};

START_TEST(a_planted_fault_fails_some_exact_case)
{
    struct at_request want = small("exact", AT_F32);
    struct at_vector v;
    struct at_arith arith;
    int64_t failed = 0;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        double *got = scalar_result(&v, faults[_i], &arith);
        failed += count_failed(&v, got, false) > 0;
        free(got);
        at_vector_free(&v);
    }
    ck_assert_msg(failed > 0, "%s", faults[_i]);
}
END_TEST

/* A border of the tile of 8, and the case that is aimed at it. */
static const struct {
    const char *plot, *fault;
} aimed[] = {{"exact-needle", "lost-key@0"},    {"exact-needle", "lost-key@7"},
             {"exact-needle", "lost-key@8"},    {"exact-needle", "lost-key@9"},
             {"exact-needle", "lost-key@16"},   {"exact-needle", "lost-key@25"},
             {"exact-straddle", "lost-key@7"},  {"exact-straddle", "twice-key@8"},
             {"exact-straddle", "lost-key@15"}, {"exact-straddle", "twice-key@16"},
             {"exact-lengths", "lost-key@7"},   {"exact-diagonal", "lost-key@3"}};

START_TEST(a_fault_at_a_border_fails_the_case_that_is_aimed_at_it)
{
    struct at_request want = small("exact", AT_F32);
    struct at_vector v;
    struct at_arith arith;
    int64_t failed = 0;
    want.tiles = 1;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        double *got = scalar_result(&v, aimed[_i].fault, &arith);
        if (strcmp(v.canvas.plot->name, aimed[_i].plot) == 0)
            failed = count_failed(&v, got, false);
        free(got);
        at_vector_free(&v);
    }
    ck_assert_msg(failed > 0, "%s: %s", aimed[_i].plot, aimed[_i].fault);
}
END_TEST

START_TEST(a_signature_says_which_of_eight_keys_were_counted)
{
    struct at_request want = small("exact", AT_F32);
    struct at_vector v;
    ck_assert(vector(&v, &want, 4) && strcmp(v.canvas.name, "exact-signature") == 0);
    const struct at_view *x = &v.x.a.v;
    for (int64_t c = 0; c < x->dim[3]; c++)
        for (int64_t from = 4; from + 8 <= x->dim[2]; from += 8) {
            int set = 0;
            for (int64_t j = from; j < from + 8; j++)
                set |= (int)fabs(at_load(x, at_offset(x, 0, 1, j, c)));
            ck_assert_int_eq(set, 255);
        }
    at_vector_free(&v);
}
END_TEST

START_TEST(kinds_say_what_the_truth_is_and_what_is_open)
{
    static const struct {
        double truth;
        int claim, kind;
    } want[] = {{1, AT_CLAIMED, KIND_FINITE},
                {NAN, AT_CLAIMED, KIND_NAN},
                {INFINITY, AT_CLAIMED, KIND_PLUS},
                {-INFINITY, AT_CLAIMED, KIND_MINUS},
                {1, AT_OPEN, KIND_OPEN},
                {INFINITY, AT_OPEN_INF, KIND_OPEN_PLUS},
                {-INFINITY, AT_OPEN_INF, KIND_OPEN_MINUS},
                {1, AT_LOOSE, KIND_NONE}};
    struct at_request plain = small("smoke", AT_F32);
    struct at_vector v;
    double lo, hi;
    ck_assert(vector(&v, &plain, 0));
    v.y.out[3] = want[_i].truth;
    v.y.out_kind[3] = (unsigned char)want[_i].claim;
    ck_assert_int_eq(at_vector_element(&v, 1, 0, &lo, &hi), want[_i].kind);
    at_vector_free(&v);
}
END_TEST

/* -- Negative controls (catalogue, item 87) ------------------------------------------------- */

enum control { MEAN, FIRST, UNMASKED, WRONG_HEAD, NOISE, CONTROLS };
static const char *const controls[] = {"mean of v", "v of the first key", "unmasked", "wrong head",
                                       "noise as large as the lse"};

/* Truth of the problem with something wrong. */
static void wrong_truth(const struct at_vector *v, enum control what, struct at_answer *y)
{
    struct at_attention a = v->x.a;
    if (what == UNMASKED) {
        a.score.left = a.score.right = AT_UNBOUNDED;
        a.score.kv_len = NULL;
        a.score.mask = a.score.bias = (struct at_view){0};
    } else {
        struct at_view *of[2] = {&a.k, &a.v};
        for (int k = 0; k < 2; k++) {
            of[k]->data = (char *)of[k]->data + of[k]->stride[1] * at_dtype_size(of[k]->dtype);
            of[k]->stride[1] = -of[k]->stride[1]; /* two heads, exchanged */
        }
    }
    ck_assert_int_eq(at_answer_make(y, v->y.n, v->y.Dv), AT_OK);
    ck_assert_int_eq(at_truth(&a, v->rows, y), AT_OK);
}

static double control(const struct at_vector *v, enum control what, const struct at_answer *y,
                      int64_t t)
{
    int64_t Dv = v->y.Dv, row = t / Dv, c = t % Dv;
    struct at_place p = at_place_of(&v->x.a, v->rows, row);
    const struct at_view *x = &v->x.a.v;
    int64_t g = p.h / 2, Skv = x->dim[2];
    double sum = 0;
    if (what == UNMASKED || what == WRONG_HEAD)
        return y->out[t];
    if (what == NOISE)
        return v->y.out[t] + v->y.lse[row] * (t % 2 ? 1 : -1);
    for (int64_t j = 0; j < (what == MEAN ? Skv : 1); j++)
        sum += at_load(x, at_offset(x, p.b, g, j, c));
    return what == MEAN ? sum / (double)Skv : sum;
}

START_TEST(negative_controls_fail_every_suite)
{
    struct at_request want = small(suites[_i], AT_BF16);
    struct at_vector v;
    int64_t failed[CONTROLS] = {0}, all = 0;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        for (int w = 0; w < CONTROLS; w++) {
            struct at_answer y = {0};
            if (w == UNMASKED || w == WRONG_HEAD)
                wrong_truth(&v, (enum control)w, &y);
            for (int64_t t = 0; t < v.y.n * v.y.Dv; t++)
                failed[w] += !accepted(&v, t / v.y.Dv, t % v.y.Dv,
                                       rounded_as(control(&v, (enum control)w, &y, t), v.out));
            at_answer_free(&y);
        }
        all += v.y.n * v.y.Dv;
        at_vector_free(&v);
    }
    for (int w = 0; w < CONTROLS; w++)
        ck_assert_msg(failed[w] * 10 > all, "%s: %s fails %lld of %lld elements", suites[_i],
                      controls[w], (long long)failed[w], (long long)all);
}
END_TEST

static void add_exact(TCase *t)
{
    tcase_add_loop_test(t, an_exact_case_leaves_one_number_under_every_preset_it_holds_for, 0, 9);
    tcase_add_test(t, arithmetics_that_are_not_exact_are_these);
    tcase_add_loop_test(t, no_machine_makes_an_error_on_an_exact_case, 0, 9);
    tcase_add_loop_test(t, a_planted_fault_fails_some_exact_case, 0, COUNT(faults));
    tcase_add_loop_test(t, a_fault_at_a_border_fails_the_case_that_is_aimed_at_it, 0, COUNT(aimed));
    tcase_add_loop_test(t, kinds_say_what_the_truth_is_and_what_is_open, 0, 8);
    tcase_add_test(t, a_signature_says_which_of_eight_keys_were_counted);
}

int main(void)
{
    Suite *s = suite_create("exact");
    TCase *t;
    add_exact(group(s, "exact"));
    t = group(s, "suites");
    tcase_add_loop_test(t, a_correct_engine_passes_every_suite_in_every_dtype, 0, COUNT(dtypes));
    tcase_add_loop_test(t, negative_controls_fail_every_suite, 0, COUNT(suites));
    return run_groups(s);
}

/* The generator: paint, exact cases, restart, versions, recipes, negative controls, committed vectors.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "vector.h"
#include "at_math.h"
#include "case.h"
#include "make.h"
#include <dirent.h>
#include <math.h>
#include <sys/wait.h>

static struct at_said said;
static const struct at_progress quiet = {NULL, NULL};

/* Small, grouped, causal, and every border of a tile of 8 inside. */
static struct at_request small(const char *suite, enum at_dtype dtype)
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
static bool vector(struct at_vector *v, const struct at_request *want, int64_t k)
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
static bool accepted(const struct at_vector *v, int64_t row, int64_t c, double got)
{
    double lo, hi;
    unsigned char kind = at_vector_element(v, row, c, &lo, &hi);
    double truth = c < 0 ? v->y.lse[row] : v->y.out[row * v->y.Dv + c];
    if (isnan(got))
        return kind == KIND_NAN || kind >= KIND_OPEN;
    return (got >= lo && got <= hi) ||
           ((kind == KIND_OPEN_PLUS || kind == KIND_OPEN_MINUS) && got == truth);
}

static double rounded_as(double x, enum at_dtype dtype)
{
    double space = 0;
    struct at_view y = at_bhsd(&space, dtype, 1, 1, 1, 1);
    at_store(&y, 0, x);
    return at_load(&y, 0);
}

/* -- Paint ----------------------------------------------------------------------------------- */

START_TEST(painted_numbers_are_those_of_the_formula)
{
    /* printed by tests/peers/paint.py */
    struct at_brush b = {0x123456789abcdef0u, 33};
    ck_assert_msg(at_normal(b, 0) == -0x1.5fa11537969p-1, "%a", at_normal(b, 0));
    ck_assert_msg(at_normal(b, 1) == -0x1.4775d299bd22p-1, "%a", at_normal(b, 1));
    ck_assert_msg(at_normal(b, (uint64_t)5 << 32) == -0x1.1f412d7b5d74p-2, "%a", at_normal(b, (uint64_t)5 << 32));
    ck_assert_int_eq(at_integer(b, 7, -100, 100), -38);
}
END_TEST

START_TEST(the_formula_in_the_documentation_is_the_one_that_paints)
{
    char command[600];
    const char *path = made_path("doc.c");
    snprintf(command, sizeof command,
             "{ echo '#include \"at_index.h\"'; sed -n '/^    double normal(/,/^    }/p' docs/generator.md; "
             "echo 'int main(void) { return !(normal(0x123456789abcdef0u, 33, 0) == -0x1.5fa11537969p-1 && "
             "normal(0x123456789abcdef0u, 33, 5ull << 32) == -0x1.1f412d7b5d74p-2); }'; } > %s && "
             "cc -std=c11 -Iinclude -o %s.run %s && %s.run", path, path, path, path);
    ck_assert_int_eq(system(command), 0);
    made_clean();
}
END_TEST

START_TEST(painted_normals_have_mean_0_and_variance_1)
{
    struct at_brush b = {1, 2};
    double sum = 0, square = 0, most = 0;
    int n = 100000, odd = 0;
    for (int k = 0; k < n; k++) {
        double x = at_normal(b, (uint64_t)k);
        sum += x, square += x * x, most = fmax(most, fabs(x));
        odd += fmod(x * 0x1p48, 2) != 0;
    }
    ck_assert(fabs(sum / n) < 5 / sqrt(n) && fabs(square / n - 1) < 5 * sqrt(2.0 / n));
    ck_assert(most > 3.5 && most < 6);
    ck_assert_int_gt(odd, n / 3); /* the last bit is used */
}
END_TEST

/* -- The table ------------------------------------------------------------------------------- */

START_TEST(names_and_numbers_of_cases_are_their_own)
{
    for (int64_t k = 0; at_plot_at(k); k++) {
        const struct at_plot *p = at_plot_at(k);
        bool suite = false;
        ck_assert_uint_eq(p->number, (unsigned)k + 1); /* appended, never moved */
        ck_assert(*p->catches && p->needs && p->fill);
        for (int64_t j = 0; j < k; j++)
            ck_assert_str_ne(p->name, at_plot_at(j)->name);
        for (int64_t s = 0; at_suite_at(s); s++) {
            size_t n = strlen(at_suite_at(s));
            suite = suite || (strncmp(p->name, at_suite_at(s), n) == 0 && p->name[n] == '-');
        }
        ck_assert_msg(suite, "%s", p->name);
    }
}
END_TEST

static const struct {
    const char *suite, *sentence;
} versions[] = {{"exact@2", "version 2 found, expected 1"},
                {"exact@0", "version 0 found, expected 1"},
                {"exact@", "version  found, expected 1"},
                {"exactly", "suite exactly: unknown, expected smoke"},
                {"ex", "suite ex: unknown"}};

START_TEST(a_version_that_does_not_exist_is_refused)
{
    struct at_request x = at_request_plain();
    ck_assert(!at_request_suite(&x, versions[_i].suite, &said));
    ck_assert_msg(strstr(said.text, versions[_i].sentence) != NULL, "%s", said.text);
}
END_TEST

START_TEST(requests_that_cannot_be_met_are_refused)
{
    struct at_request x = at_request_plain();
    x.shape[2] = 3;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "Hq 4 found, expected a multiple of Hkv 3"));
    x = at_request_plain(), x.shape[5] = 0;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "D 0 found"));
    x = at_request_plain(), x.tile[0] = 1;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "tile 1 found, expected 2"));
    x = at_request_plain(), x.corner = AT_TOP_LEFT, x.right = 3;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "right 3 found beside causal"));
    x = at_request_plain(), x.dtype = AT_F64, strcpy(x.arith, "fp32");
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "expected one that holds dtype fp64"));
    x = at_request_plain(), strcpy(x.arith, "fp33");
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "arithmetic fp33"));
    x = at_request_plain(), x.shape[3] = x.shape[4] = x.shape[0] = 1 << 24;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "2^34 elements"));
}
END_TEST

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
                              "%s under %s: element %lld: kind %d, %a .. %a, truth %a", v.canvas.name,
                              arith->name, (long long)t, kind, lo, hi, v.y.out[t]);
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
    char one[200] = "", counted[200] = "";
    for (int64_t p = 0; at_arith_at(p); p++) {
        const struct at_arith *x = at_arith_at(p);
        if (!at_exact_for(AT_ONE_KEY, x, AT_F8_E4M3))
            strcat(strcat(one, x->name), " ");
        else if (!at_exact_for(AT_COUNTED, x, AT_F8_E4M3))
            strcat(strcat(counted, x->name), " ");
    }
    ck_assert_str_eq(one, "fp32-libm-exp20 3xtf32 bf16-p-exp400 ");
    ck_assert_str_eq(counted, "split-lse ");
}
END_TEST

/* Machines that round everything, some of them badly. */
static struct at_machine machine(int k)
{
    struct at_float single = at_float_of(AT_F32), half = at_float_of(AT_F16), brain = at_float_of(AT_BF16);
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
            const struct at_plan plans[3] = {{.bc = 1}, {.bc = 8, .splits = 3, .merge = AT_TREE},
                                             {.bc = 5, .splits = 2, .merge = AT_REVERSED, .lanes = 4}};
            v->x.a.plan = plans[turn];
            ck_assert_int_eq(at_simulate(&v->x.a, &m, v->rows, out, out + n * Dv), AT_OK);
            for (int64_t t = 0; t < n * Dv; t++)
                ck_assert_msg(rounded_as(out[t], v->out) == rounded_as(v->y.out[t], v->out),
                              "%s, machine %d, plan %d: element %lld is %a, truth %a", v->canvas.name, k,
                              turn, (long long)t, out[t], v->y.out[t]);
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

/* The scalar engine's result on a vector, rounded to the output dtype. */
static double *scalar_result(struct at_vector *v, const char *fault, struct at_arith *arith)
{
    struct at_attention a = v->x.a;
    a.plan = (struct at_plan){.bc = 8};
    a.plan = at_resolve(&a);
    int64_t n = v->y.n, Dv = v->y.Dv;
    double *out = malloc((size_t)(n * (Dv + 1)) * sizeof *out);
    void *space = malloc((size_t)(n * (Dv + 1)) * 8);
    ck_assert(out && space);
    struct at_result to = {at_bhsd(space, a.plan.compute, v->canvas.B, v->canvas.Hq, v->canvas.Sq, Dv),
                           at_bhsd((char *)space + 8 * n * Dv, a.plan.compute, v->canvas.B, v->canvas.Hq,
                                   v->canvas.Sq, 1)};
    if (fault)
        ck_assert_msg(at_mutant_run(fault, &a, &to, &said), "%s", said.text);
    else
        ck_assert_int_eq(at_forward(&at_scalar, &a, &to), AT_OK);
    for (int64_t t = 0; t < n * Dv; t++)
        out[t] = rounded_as(at_load(&to.out, t), v->out);
    for (int64_t t = 0; t < n; t++)
        out[n * Dv + t] = at_load(&to.lse, t);
    *arith = at_scalar.arith(&a);
    free(space);
    return out;
}

static int64_t count_failed(const struct at_vector *v, const double *got, bool lse)
{
    int64_t failed = 0, n = v->y.n, Dv = v->y.Dv;
    for (int64_t t = 0; t < n * Dv; t++)
        failed += !accepted(v, t / Dv, t % Dv, got[t]);
    for (int64_t t = 0; lse && t < n; t++)
        failed += !accepted(v, t, -1, got[n * Dv + t]);
    return failed;
}

START_TEST(a_correct_engine_passes_every_suite_in_every_dtype)
{
    struct at_request want = small("full", dtypes[_i]);
    struct at_vector v;
    struct at_arith arith;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        double *got = scalar_result(&v, NULL, &arith);
        ck_assert_msg(count_failed(&v, got, true) == 0, "%s: %lld elements fail", v.canvas.name,
                      (long long)count_failed(&v, got, true));
        free(got);
        at_vector_free(&v);
    }
}
END_TEST

static const char *const suites[] = {"smoke", "exact", "masks", "extreme", "splits", "adversarial"};
static const char *const faults[] = {"lost-key@7", "lost-key@8", "twice-key@15", "head-modulo",
                                     "lost-rescale-u", "lost-rescale-l", "causal-off-by-one"};

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

/* -- Negative controls (catalogue, item 87) -------------------------------------------------------- */

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

static double control(const struct at_vector *v, enum control what, const struct at_answer *y, int64_t t)
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

/* -- Files ------------------------------------------------------------------------------------- */

static struct at_generated generated(const struct at_request *want, const char *dir)
{
    struct at_generated done;
    ck_assert_msg(at_generate(want, dir, quiet, &done, &said), "%s", said.text);
    return done;
}

static size_t slurp(const char *dir, const char *name, char *to, size_t most)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return made_read(path, to, most);
}

START_TEST(a_second_run_writes_nothing_and_a_damaged_file_is_made_again)
{
    static char before[1 << 18], after[1 << 18];
    char dir[200], path[300];
    struct at_request want = small("smoke", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir), second = generated(&want, dir);
    ck_assert_int_eq(first.skipped, 0);
    ck_assert_int_eq(second.skipped, first.files);
    ck_assert_str_eq(first.pin, second.pin);
    size_t n = slurp(dir, "smoke-normal.fp32.safetensors", before, sizeof before);
    snprintf(path, sizeof path, "%s/smoke-normal.fp32.safetensors", dir);
    FILE *f = fopen(path, "ab");
    fputc(0, f);
    fclose(f);
    struct at_generated third = generated(&want, dir);
    ck_assert_int_eq(third.skipped, first.files - 2);
    ck_assert_str_eq(third.pin, first.pin);
    ck_assert_uint_eq(slurp(dir, "smoke-normal.fp32.safetensors", after, sizeof after), n);
    ck_assert_mem_eq(before, after, n);
    made_clean();
}
END_TEST

START_TEST(a_stopped_run_goes_on_where_it_was)
{
    char dir[200];
    struct at_manifest m;
    struct at_generated done = {0};
    struct at_request want = small("smoke", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir);
    ck_assert(at_manifest_open(&m, &want, dir, &said)); /* as if stopped after the first case */
    ck_assert(at_manifest_has(&m, "smoke-normal", dir, &done));
    ck_assert(at_manifest_write(&m, false, &done, &said));
    ck_assert_str_ne(done.pin, first.pin);
    at_manifest_close(&m);
    struct at_generated second = generated(&want, dir);
    ck_assert_int_eq(second.skipped, 2);
    ck_assert_str_eq(second.pin, first.pin);
    made_clean();
}
END_TEST

START_TEST(another_request_does_not_mix_with_the_files_of_the_first)
{
    char dir[200];
    struct at_generated done;
    struct at_request want = small("smoke", AT_F32), other = small("smoke@1", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir), same = generated(&other, dir);
    ck_assert_str_eq(first.pin, same.pin); /* @1 is the same request */
    ck_assert_int_eq(same.skipped, first.files);
    other.seed = 2;
    ck_assert(!at_generate(&other, dir, quiet, &done, &said));
    ck_assert_msg(strstr(said.text, "found one of another request") != NULL, "%s", said.text);
    made_clean();
}
END_TEST

START_TEST(a_recipe_gives_the_same_inputs_as_the_file_that_holds_them)
{
    char dir[200], path[300], whole[300];
    struct at_case x, y;
    struct at_request want = small("full", AT_BF16);
    want.shape[4] = 2400, want.shape[5] = want.shape[6] = 64; /* inputs of more than 1 MB */
    want.tile[0] = 64, want.tiles = 1, want.rows = 3;
    want.shape[1] = want.shape[2] = 1, want.shape[0] = 2;
    ck_assert(at_request_suite(&want, _i ? "splits" : "exact", &said));
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    generated(&want, dir);
    const struct at_plot *plot;
    int64_t tile;
    for (int64_t k = 0; at_suite_case(&want, k, &plot, &tile); k++) {
        struct at_canvas c;
        ck_assert(at_canvas_plan(&c, &want, plot, tile));
        snprintf(path, sizeof path, "%s/%s.safetensors", dir, c.name);
        snprintf(whole, sizeof whole, "%s/whole", dir);
        ck_assert_msg(at_case_read(path, NULL, &x, &said), "%s", said.text);
        ck_assert_ptr_nonnull(at_tensors_find(&x.file, "rows"));
        ck_assert(at_case_write(&x, whole, &said));
        ck_assert_msg(at_case_read(whole, NULL, &y, &said), "%s", said.text);
        struct at_vector v;
        ck_assert(at_vector_make(&v, &want, plot, tile, quiet, &said));
        for (int64_t t = 0; t < v.x.file.n; t++) {
            const struct at_tensor *a = &v.x.file.tensor[t], *b = at_tensors_find(&y.file, a->name);
            ck_assert(b && b->bytes == a->bytes && memcmp(a->data, b->data, (size_t)a->bytes) == 0);
        }
        at_vector_free(&v);
        at_case_free(&x);
        at_case_free(&y);
    }
    made_clean();
}
END_TEST

START_TEST(a_recipe_that_nobody_wrote_is_refused)
{
    static const char *const wrong[][2] = {
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-none\"}}", "\"recipe.case\""},
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-normal\"}}", "\"recipe.shape\""},
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-normal\",\"suite\":1,\"dtype\":\"fp32\","
         "\"shape\":[1,1,1,1,1,1,0],\"window\":[-1,-1],\"causal\":\"none\",\"tile\":2}}", "Dv 0 found"},
        {"{\"spec\":1,\"interval\":{}}", "an interval of `attest generate` found, expected its case"},
    };
    struct made *m = calloc(1, sizeof *m);
    struct at_case x;
    made_add(m, "rows", AT_F32, 2, EXTENTS(1, 3));
    const char *path = made_file(m, "x", wrong[_i][0]);
    ck_assert(!at_case_read(path, NULL, &x, &said));
    ck_assert_msg(strstr(said.text, wrong[_i][1]) != NULL, "%s", said.text);
    made_clean();
}
END_TEST

START_TEST(a_directory_that_cannot_be_made_leaves_nothing)
{
    struct at_generated done;
    struct at_request want = small("smoke", AT_F32);
    ck_assert(!at_generate(&want, made_path("no/such"), quiet, &done, &said));
    ck_assert_msg(strstr(said.text, "no/such: cannot be made") != NULL, "%s", said.text);
    ck_assert_int_eq(made_count(), 0);
    made_clean();
}
END_TEST

START_TEST(a_header_of_tiny_cases_compiles_and_holds_the_truth)
{
    char command[400], header[200];
    struct at_generated done;
    struct at_request want = small("exact", AT_F16);
    snprintf(header, sizeof header, "%s", made_path("cases.h"));
    ck_assert_msg(at_generate_header(&want, header, &done, &said), "%s", said.text);
    ck_assert_int_eq(done.cases, 10);
    FILE *f = fopen(made_path("t.c"), "w");
    fprintf(f, "#include \"cases.h\"\nint main(void) { int bad = sizeof exact_equal_q / 8 != 4 * 7 * 16;\n"
               "for (int t = 0; t < 4 * 7 * 3; t++) bad += exact_equal_out_lo[t] != exact_equal_out_hi[t];\n"
               "return bad; }\n");
    fclose(f);
    snprintf(command, sizeof command, "cd %s && cc -w -o t t.c && ./t", made_dir);
    ck_assert_int_eq(system(command), 0);
    want.shape[3] = 2000;
    ck_assert(!at_generate_header(&want, header, &done, &said));
    ck_assert_msg(strstr(said.text, "expected a smaller --shape") != NULL, "%s", said.text);
    made_clean();
}
END_TEST

/* -- Committed vectors, the program ---------------------------------------------------------------- */

static const char *const committed[] = {"smoke", "exact"};

START_TEST(the_committed_vectors_are_what_generate_prints)
{
    static char ours[1 << 19], theirs[1 << 19];
    char dir[200], data[200];
    struct at_request want = at_request_plain();
    ck_assert(at_request_suite(&want, committed[_i], &said) && at_request_check(&want, &said));
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    snprintf(data, sizeof data, "tests/data/vectors/%s", committed[_i]);
    struct at_generated done = generated(&want, dir);
    DIR *d = opendir(data);
    ck_assert_ptr_nonnull(d);
    int64_t files = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        size_t n = slurp(data, e->d_name, theirs, sizeof theirs);
        ck_assert_uint_lt(n, sizeof theirs);
        ck_assert_uint_eq(slurp(dir, e->d_name, ours, sizeof ours), n);
        ck_assert_msg(memcmp(ours, theirs, n) == 0, "%s", e->d_name);
        files++;
    }
    closedir(d);
    ck_assert_int_eq(files, done.files + 1);
    made_clean();
}
END_TEST

static int run(const char *command, char *to, size_t size)
{
    char line[1000];
    const char *attest = getenv("ATTEST");
    snprintf(line, sizeof line, "%s %s 2>&1", attest ? attest : "build/attest", command);
    FILE *p = popen(line, "r");
    ck_assert_ptr_nonnull(p);
    size_t n = fread(to, 1, size - 1, p);
    to[n] = 0;
    while (fgetc(p) != EOF)
        ;
    return WEXITSTATUS(pclose(p));
}

START_TEST(check_takes_a_whole_directory_and_counts_what_it_passes_over)
{
    static char text[1 << 16];
    char command[400], dir[200];
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    snprintf(command, sizeof command, "generate exact --shape 1,2,1,20,30,16,8 --dtype bf16 "
             "--causal bottom-right --tile 8 -o %s", dir);
    ck_assert_msg(run(command, text, sizeof text) == 0, "%s", text);
    ck_assert_msg(strstr(text, "7 cases, 14 files") && strstr(text, "MANIFEST.json "), "%s", text);
    snprintf(command, sizeof command, "check scalar %s/*", dir);
    ck_assert_msg(run(command, text, sizeof text) == 0, "%s", text);
    ck_assert_msg(strstr(text, "\n8 manifests and intervals passed over") != NULL, "%s", text);
    snprintf(command, sizeof command, "check scalar %s/* --fault lost-key@7", dir);
    ck_assert_int_eq(run(command, text, sizeof text), 1);
    ck_assert_msg(strstr(text, "worst    out[") != NULL, "%s", text);
    snprintf(command, sizeof command, "check scalar %s/MANIFEST.json", dir);
    ck_assert_int_eq(run(command, text, sizeof text), 2);
    made_clean();
}
END_TEST

static const char *const misuse[][2] = {
    {"generate", "generate: expected attest generate SUITE"},
    {"generate smoke -o x --shape 1,2,3", "--shape 1,2,3: expected 7 whole numbers"},
    {"generate smoke -o x --shape 1,2,1,3,3,4,4,4", "--shape 1,2,1,3,3,4,4,4: expected 7"},
    {"generate smoke -o x --tile 64,", "--tile 64,: expected at most 8 whole numbers"},
    {"generate smoke -o x --dtype fp12", "--dtype fp12: expected fp64"},
    {"generate smoke -o x --causal left", "--causal \"left\": expected bottom-right or top-left"},
    {"generate smoke -o x --format json", "--format json: expected safetensors or c"},
    {"generate smoke -o x --softcap 3", "flag --softcap found, but this command has no use for it"},
    {"generate smock -o x", "suite smock: unknown"},
};

START_TEST(misuse_of_generate_is_one_line_and_status_2)
{
    char text[2000];
    ck_assert_int_eq(run(misuse[_i][0], text, sizeof text), 2);
    ck_assert_msg(strstr(text, misuse[_i][1]) != NULL, "%s", text);
    ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    ck_assert_int_ne(access("x", F_OK), 0);
}
END_TEST

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

static TCase *group(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 300);
    suite_add_tcase(s, t);
    return t;
}

static void add_exact(TCase *t)
{
    tcase_add_loop_test(t, an_exact_case_leaves_one_number_under_every_preset_it_holds_for, 0, 9);
    tcase_add_test(t, arithmetics_that_are_not_exact_are_these);
    tcase_add_loop_test(t, no_machine_makes_an_error_on_an_exact_case, 0, 9);
    tcase_add_loop_test(t, a_planted_fault_fails_some_exact_case, 0, COUNT(faults));
}

static void add_files(TCase *t)
{
    tcase_add_test(t, a_second_run_writes_nothing_and_a_damaged_file_is_made_again);
    tcase_add_test(t, a_stopped_run_goes_on_where_it_was);
    tcase_add_test(t, another_request_does_not_mix_with_the_files_of_the_first);
    tcase_add_loop_test(t, a_recipe_gives_the_same_inputs_as_the_file_that_holds_them, 0, 2);
    tcase_add_loop_test(t, a_recipe_that_nobody_wrote_is_refused, 0, 4);
    tcase_add_test(t, a_directory_that_cannot_be_made_leaves_nothing);
    tcase_add_test(t, a_header_of_tiny_cases_compiles_and_holds_the_truth);
    tcase_add_loop_test(t, the_committed_vectors_are_what_generate_prints, 0, COUNT(committed));
}

int main(void)
{
    Suite *s = suite_create("generate");
    TCase *t = group(s, "paint");
    tcase_add_test(t, painted_numbers_are_those_of_the_formula);
    tcase_add_test(t, the_formula_in_the_documentation_is_the_one_that_paints);
    tcase_add_test(t, painted_normals_have_mean_0_and_variance_1);
    t = group(s, "requests");
    tcase_add_test(t, names_and_numbers_of_cases_are_their_own);
    tcase_add_loop_test(t, a_version_that_does_not_exist_is_refused, 0, COUNT(versions));
    tcase_add_test(t, requests_that_cannot_be_met_are_refused);
    add_exact(group(s, "exact"));
    t = group(s, "suites");
    tcase_add_loop_test(t, a_correct_engine_passes_every_suite_in_every_dtype, 0, COUNT(dtypes));
    tcase_add_loop_test(t, negative_controls_fail_every_suite, 0, COUNT(suites));
    add_files(group(s, "files"));
    t = group(s, "program");
    tcase_add_test(t, check_takes_a_whole_directory_and_counts_what_it_passes_over);
    tcase_add_loop_test(t, misuse_of_generate_is_one_line_and_status_2, 0, COUNT(misuse));
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}

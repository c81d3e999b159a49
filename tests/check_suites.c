/* The suites as a whole: every field of the descriptor is in them, each case fails the fault that
 * it is aimed at, files say what was decided, earlier versions stay what they were.
 * SPDX-License-Identifier: MIT */
#include "at_simulate.h"
#include "vectors.h"
#include <sha256.h>

/* -- Fields ---------------------------------------------------------------------------------- */

/* A field of docs/semantics.md, and whether a case has it. */
struct field {
    const char *name;
    bool there;
};

/* Is there a number like that in q, k, v? */
static bool holds(const struct at_case *x, bool nan)
{
    static const char *const names[] = {"q", "k", "v"};
    for (int t = 0; t < 3; t++) {
        const struct at_tensor *y = at_tensors_find(&x->file, names[t]);
        struct at_view all = at_bhsd(y->data, y->dtype, 1, 1, 1, 1);
        for (int64_t n = 0; n < y->bytes / at_dtype_size(y->dtype); n++)
            if (nan ? isnan(at_load(&all, n)) : isinf(at_load(&all, n)))
                return true;
    }
    return false;
}

enum { FIELDS = 28 };

static void look(const struct at_case *x, struct field *f)
{
    const struct at_attention *a = &x->a;
    const struct at_score *s = &a->score;
    const bool corner = at_meta_get(x->meta, "causal") != NULL;
    const struct field found[FIELDS] = {
        {"scale", s->scale != 1 / sqrt((double)a->q.dim[3])},
        {"softcap", s->softcap > 0},
        {"bias", s->bias.data},
        {"mask", s->mask.data},
        {"alibi", s->alibi.data},
        {"sink", s->sink.data},
        {"q_descale", s->qscale.data},
        {"k_descale", s->kscale.data},
        {"v_descale", s->vscale.data},
        {"descale of one number", s->kscale.data && s->kscale.stride[1] == 0},
        {"descale of a row", s->kscale.data && s->kscale.stride[2] != 0},
        {"left", s->left != AT_UNBOUNDED},
        {"right", s->right > 0},
        {"no corner", !corner && s->right == AT_UNBOUNDED},
        {"bottom-right", corner && s->offset},
        {"top-left", corner && !s->offset},
        {"offset", !corner && s->offset},
        {"q_len", s->q_len && !s->q_start},
        {"kv_len", s->kv_len && !s->kv_start && !a->pages.table},
        {"packed queries", s->q_start},
        {"packed keys", s->kv_start},
        {"a page table", a->pages.table && !a->pages.indptr},
        {"a page list", a->pages.indptr},
        {"dropout drawn", a->dropout.p > 0 && !a->dropout.keep.data},
        {"seed and offset past 32 bits", a->dropout.seed >> 32 && a->dropout.offset >> 32},
        {"keep", a->dropout.keep.data},
        {"NaN", holds(x, true)},
        {"infinities", holds(x, false)},
    };
    for (int k = 0; k < FIELDS; k++)
        f[k] = (struct field){found[k].name, f[k].there || found[k].there};
}

START_TEST(every_field_of_the_descriptor_is_in_the_suites)
{
    struct field f[FIELDS] = {{NULL, false}};
    struct at_request want = small("full", AT_F32);
    struct at_vector v;
    want.corner = AT_NO_CORNER, want.right = AT_UNBOUNDED;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        look(&v.x, f);
        at_vector_free(&v);
    }
    for (int k = 0; k < FIELDS; k++)
        ck_assert_msg(f[k].there, "no case has %s", f[k].name);
}
END_TEST

/* -- Faults ---------------------------------------------------------------------------------- */

static const struct {
    const char *plot, *fault;
} aimed[] = {{"extreme-low", "maximum-floor"},
             {"extreme-low", "maximum-from-zero"},
             {"scores-scale", "scale-missing"},
             {"scores-softcap", "softcap-missing"},
             {"scores-softcap", "softcap-even"},
             {"scores-order", "softcap-after-bias"},
             {"scores-order", "bias-scaled"},
             {"scores-alibi", "alibi-from-origin"},
             {"scores-alibi-both", "alibi-sign"},
             {"scores-sink", "sink-missing"},
             {"scores-sink", "sink-twice"},
             {"scores-sink", "sink-scaled"},
             {"scores-sink-above", "sink-past-maximum"},
             {"scores-sink-alone", "sink-missing"},
             {"scores-descale-tensor", "key-scale-lost"},
             {"scores-descale-head", "value-scale-lost"},
             {"scores-descale-row", "key-scale-lost"},
             {"dropout-draw", "dropout-no-gain"},
             {"dropout-wide", "dropout-ignored"},
             {"dropout-keep", "dropout-in-sum"},
             {"dropout-packed", "dropout-ignored"},
             {"batches-rows-tile8", "q-len-ignored"},
             {"workloads-batch", "kv-len-ignored"},
             {"batches-offsets-tile8", "causal-off-by-one"},
             {"batches-packed-tile8", "batch-zero"},
             {"batches-pages-tile8", "page-identity"},
             {"batches-page-list-tile8", "page-identity"},
             {"batches-packed-pages-tile8", "page-identity"},
             {"batches-needle-tile8", "page-identity"},
             {"batches-needle-tile8", "lost-key@7"},
             {"infinities-values", "causal-off-by-one"},
             {"infinities-hidden", "mask-ignored"},
             {"exact-balance", "lost-key@0"},
             {"exact-balance", "lost-update@3"},
             {"exact-balance", "twice-key@17"},
             {"exact-balance", "lost-key@30"},
             {"adversarial-search", "p-bf16"},
             {"masks-both-sides-tile8", "window-causal"},
             {"smoke-rows", "causal-in-tile"},
             {"infinities-values", "value-clamped"},
             {"infinities-values", "nan-to-zero"},
             {"infinities-scores", "nan-empty"},
             {"infinities-scores", "score-clamped"},
             {"extreme-tiny", "value-flushed"},
             {"extreme-huge", "weights-scaled"},
             {"splits-empty-tile8", "empty-split-zero"},
             {"splits-empty-tile8", "hidden-tile-zero"},
             {"adversarial-pair", "exp-close"}};

START_TEST(a_fault_fails_the_case_that_is_aimed_at_it)
{
    struct at_request want = small("full", AT_F32);
    struct at_vector v;
    struct at_arith arith;
    const struct at_plot *plot;
    int64_t failed = -1, tile;
    for (int64_t k = 0; at_suite_case(&want, k, &plot, &tile); k++) {
        struct at_canvas c;
        if (!at_canvas_plan(&c, &want, plot, tile) || strcmp(c.name, aimed[_i].plot) != 0)
            continue;
        ck_assert_msg(at_vector_make(&v, &want, plot, tile, quiet, &said), "%s", said.text);
        double *got = scalar_result(&v, aimed[_i].fault, &arith);
        failed = count_failed(&v, got, true);
        free(got);
        at_vector_free(&v);
    }
    ck_assert_msg(failed > 0, "%s: %s fails %lld elements", aimed[_i].plot, aimed[_i].fault,
                  (long long)failed);
}
END_TEST

/* -- The search ------------------------------------------------------------------------------ */

static const enum at_dtype searched_in[] = {AT_F32, AT_F16, AT_BF16, AT_F8_E4M3, AT_F8_E5M2};

/* The worst ratio of a machine that does what the vector's arithmetic states. */
static double reached(struct at_vector *v)
{
    int64_t n = v->y.n, Dv = v->y.Dv;
    double *out = malloc((size_t)(n * (Dv + 1)) * sizeof *out), worst = 0;
    struct at_machine m = at_machine_of(&v->arith);
    ck_assert_ptr_nonnull(out);
    v->x.a.plan = (struct at_plan){.bc = 16, .lanes = 1, .splits = 1, .threads = 1};
    ck_assert_int_eq(at_simulate(&v->x.a, &m, v->rows, out, out + n * Dv), AT_OK);
    for (int64_t t = 0; t < n * Dv; t++)
        worst = fmax(worst, fabs(out[t] - v->y.out[t]) / v->y.out_bound[t]);
    free(out);
    return worst;
}

/* Those that can be searched on; the other adversarial cases are directed by hand. */
START_TEST(a_searched_case_comes_nearer_to_the_bound_than_normal_numbers)
{
    struct at_request want = small("full", searched_in[_i]);
    struct at_vector v;
    double normal = 0, searched = 0;
    want.corner = AT_NO_CORNER, want.right = AT_UNBOUNDED, want.shape[4] = 16;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        if (strcmp(v.canvas.name, "smoke-normal") == 0)
            normal = reached(&v);
        if (strcmp(v.canvas.name, "adversarial-search") == 0)
            searched = reached(&v);
        at_vector_free(&v);
    }
    printf("%s: ratio %.3f on normal numbers, %.3f on searched ones\n", at_dtype_name(want.dtype),
           normal, searched);
    ck_assert(normal > 0 && searched > normal);
}
END_TEST

/* -- Files ----------------------------------------------------------------------------------- */

static const char *const by_recipe[] = {"exact", "splits", "batches", "adversarial"};

/* The rows that a file says are those that have an answer. */
static void same_rows(const struct at_case *x, struct at_rows want)
{
    struct at_rows rows;
    ck_assert_msg(at_case_rows(x, &rows, &said), "%s", said.text);
    ck_assert_int_eq(rows.n, want.n);
    for (int64_t t = 0; t < rows.n; t++)
        ck_assert(rows.at[t].b == want.at[t].b && rows.at[t].h == want.at[t].h &&
                  rows.at[t].i == want.at[t].i);
    free((void *)rows.at);
}

START_TEST(a_recipe_gives_the_same_inputs_as_the_file_that_holds_them)
{
    char dir[200], path[300], whole[300];
    struct at_case x, y;
    struct at_request want = small("full", AT_BF16);
    int64_t recipes = 0;
    want.shape[4] = 4800, want.shape[5] = want.shape[6] = 64; /* inputs of more than 1 MB */
    want.tile[0] = 64, want.tiles = 1, want.rows = 3;
    want.shape[1] = want.shape[2] = 1, want.shape[0] = 2;
    ck_assert(at_request_suite(&want, by_recipe[_i], &said));
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
        ck_assert(at_case_write(&x, whole, &said));
        ck_assert_msg(at_case_read(whole, NULL, &y, &said), "%s", said.text);
        struct at_vector v;
        ck_assert(at_vector_make(&v, &want, plot, tile, quiet, &said));
        ck_assert_int_eq(at_tensors_find(&x.file, "rows") != NULL, v.sampled);
        if (v.sampled)
            same_rows(&x, v.rows);
        recipes += !v.stored;
        for (int64_t t = 0; t < v.x.file.n; t++) {
            const struct at_tensor *a = &v.x.file.tensor[t], *b = at_tensors_find(&y.file, a->name);
            ck_assert(b && b->bytes == a->bytes && memcmp(a->data, b->data, (size_t)a->bytes) == 0);
        }
        at_vector_free(&v);
        at_case_free(&x);
        at_case_free(&y);
    }
    ck_assert_int_gt(recipes, 0);
    made_clean();
}
END_TEST

/* truth_out as a reader finds it: placed like out, whatever the layout. */
START_TEST(a_file_has_the_truth_where_its_layout_has_the_row)
{
    char dir[200], path[300];
    struct at_request want = small("batches", AT_F32);
    struct at_vector v;
    struct at_case x;
    int64_t k = 0;
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    generated(&want, dir);
    for (; vector(&v, &want, k); k++) {
        snprintf(path, sizeof path, "%s/%s.safetensors", dir, v.canvas.name);
        ck_assert_msg(at_case_read(path, NULL, &x, &said), "%s", said.text);
        const struct at_tensor *t = at_tensors_find(&x.file, "truth_out");
        struct at_view out;
        ck_assert(t && at_case_view(t, path, x.layout, &out, &said));
        for (int64_t r = 0; r < v.y.n; r++) {
            struct at_place p = at_place_of(&x.a, v.rows, r);
            int64_t at = at_row_offset(&x.a, &out, p.b, p.h, p.i);
            for (int64_t c = 0; c < v.y.Dv; c++)
                ck_assert_double_eq(at_load(&out, at + c), v.y.out[r * v.y.Dv + c]);
        }
        at_case_free(&x);
        at_vector_free(&v);
    }
    ck_assert_int_gt(k, 0);
    made_clean();
}
END_TEST

START_TEST(no_page_lies_where_counting_would_put_it)
{
    struct at_request want = small("batches", AT_F32);
    struct at_vector v;
    int64_t tables = 0;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        const struct at_tensor *t = at_tensors_find(&v.x.file, "block_table");
        int64_t B = t ? t->dim[0] : 0, W = t ? t->dim[1] : 0;
        for (int64_t n = 0; n + 1 < B * W; n++) {
            const int64_t *page = (const int64_t *)t->data + n;
            ck_assert(page[0] < 0 || page[1] != page[0] + 1);
        }
        tables += t != NULL;
        at_vector_free(&v);
    }
    ck_assert_int_gt(tables, 0);
}
END_TEST

/* Intervals may tighten under another bound; inputs and truth never change. */
static const struct {
    const char *suite;
    int64_t cases;
    const char *hash;
} versions[] = {{"full@1", 42, "684b1fc5ff89f3dccad68b4d5d73c762137e6025a2a510e3372dc9a4a1c46e79"},
                {"full@2", 77, "20e16259352aa90b35425b216a6dfdca2ec1ee7ba41521429532b3bff5b2192f"}};

START_TEST(a_version_has_the_inputs_and_truth_that_it_always_had)
{
    char dir[200], path[300], hash[SHA256_DIGEST_STRING_LENGTH];
    struct at_request want = small(versions[_i].suite, AT_F32);
    const struct at_plot *plot;
    int64_t tile, n = 0;
    SHA2_CTX all;
    SHA256Init(&all);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    generated(&want, dir);
    for (; at_suite_case(&want, n, &plot, &tile); n++) {
        struct at_canvas c;
        ck_assert(at_canvas_plan(&c, &want, plot, tile));
        snprintf(path, sizeof path, "%s/%s.safetensors", dir, c.name);
        ck_assert_ptr_nonnull(SHA256File(path, hash));
        SHA256Update(&all, (const uint8_t *)hash, strlen(hash));
    }
    ck_assert_int_eq(n, versions[_i].cases);
    ck_assert_str_eq(SHA256End(&all, hash), versions[_i].hash);
    made_clean();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("suites");
    TCase *t = group(s, "cases");
    tcase_add_test(t, every_field_of_the_descriptor_is_in_the_suites);
    tcase_add_loop_test(t, a_fault_fails_the_case_that_is_aimed_at_it, 0, COUNT(aimed));
    tcase_add_loop_test(t, a_searched_case_comes_nearer_to_the_bound_than_normal_numbers, 0,
                        COUNT(searched_in));
    t = group(s, "files");
    tcase_add_loop_test(t, a_recipe_gives_the_same_inputs_as_the_file_that_holds_them, 0,
                        COUNT(by_recipe));
    tcase_add_test(t, a_file_has_the_truth_where_its_layout_has_the_row);
    tcase_add_test(t, no_page_lies_where_counting_would_put_it);
    tcase_add_loop_test(t, a_version_has_the_inputs_and_truth_that_it_always_had, 0,
                        COUNT(versions));
    return run_groups(s);
}

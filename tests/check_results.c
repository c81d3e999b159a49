/* Case files: results as others store them, and the case of one row.
 * SPDX-License-Identifier: MIT */
#include "case_help.h"

/* -- Results --------------------------------------------------------------------------------- */

START_TEST(results_stand_side_by_side_with_what_is_said_of_them)
{
    struct made *m = made_plain();
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    made_add(m, "out.peer", AT_BF16, 4, EXTENTS(1, 2, 4, 2));
    must_read(made_file(m, "x",
                        "{\"spec\":1,\"scale\":1,\"results\":{\"peer\":{\"arith\":\"bf16-p\","
                        "\"why\":\"w\",\"from\":\"f\"}}}"),
              NULL);
    ck_assert_int_eq(x.results, 2);
    for (int64_t k = 0; k < 2; k++) {
        bool peer = strcmp(x.result[k].name, "peer") == 0;
        ck_assert_str_eq(x.result[k].arith, peer ? "bf16-p" : "");
        ck_assert_int_eq(x.result[k].got.out.dtype, peer ? AT_BF16 : AT_F32);
        ck_assert_int_eq(x.result[k].got.lse.data == NULL, peer);
    }
}
END_TEST

START_TEST(a_misshapen_result_is_refused)
{
    struct made *m = made_plain();
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 3));
    must_refuse(made_file(m, "x", META), NULL,
                "tensor out: extents (1,2,4,3) found, expected (1,2,4,2)");
    m = made_plain();
    made_add(m, "out", AT_I32, 4, EXTENTS(1, 2, 4, 2));
    must_refuse(made_file(m, "x", META), NULL, "tensor out: dtype I32 found");
    m = made_plain();
    made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    must_refuse(made_file(m, "x", META), NULL, "tensor out: absent, expected beside lse");
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    m->tensor[3].dim[2] = 2, m->tensor[3].bytes = 16;
    must_refuse(made_file(m, "x", META), NULL,
                "tensor lse: extents (1,2,2) found, expected (1,2,4)");
}
END_TEST

/* The lse of row i of sequence b under head h, in each layout of packed rows. */
START_TEST(every_layout_of_the_lse_puts_a_row_where_it_belongs)
{
    static const char *const layout[] = {"ht", "th", "padded"};
    for (int k = 0; k < 3; k++) {
        char meta[160];
        struct made *m = packed();
        made_add(m, "out", AT_F32, 3, EXTENTS(6, 2, 2));
        float *lse = made_add(m, "lse", AT_F32, k < 2 ? 2 : 3,
                              k == 0   ? EXTENTS(2, 6)
                              : k == 1 ? EXTENTS(6, 2)
                                       : EXTENTS(3, 2, 4));
        /* head 1, sequence 2, row 1 is packed row 4 */
        lse[k == 0 ? 6 + 4 : k == 1 ? 4 * 2 + 1 : (2 * 2 + 1) * 4 + 1] = 77;
        snprintf(meta, sizeof meta,
                 "{\"spec\":1,\"scale\":1,\"layout\":\"thd\",\"lse\":{\"layout\":"
                 "\"%s\"}}",
                 layout[k]);
        must_read(made_file(m, "x", meta), NULL);
        const struct at_view *v = &x.result[0].got.lse;
        ck_assert_int_eq(v->dim[1], 2);
        ck_assert_int_eq(v->dim[2], 6);
        ck_assert_msg(at_load(v, at_row_offset(&x.a, v, 2, 1, 1)) == 77, "%s", layout[k]);
        at_case_free(&x);
    }
}
END_TEST

START_TEST(a_base_2_lse_becomes_natural_and_the_file_keeps_its_own)
{
    struct made *m = made_plain();
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    float *lse = made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    lse[3] = 10;
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"lse\":{\"base\":\"base2\"}}"), NULL);
    ck_assert(at_load(&x.result[0].got.lse, 3) == (double)(float)(10 * log(2)));
    ck_assert(((float *)at_tensors_find(&x.file, "lse")->data)[3] == 10);
    ck_assert(x.result[0].base2);
}
END_TEST

START_TEST(marks_of_empty_rows_become_ours_and_marks_elsewhere_stay)
{
    struct made *m = made_plain();
    float *out = made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    float *lse = made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    uint8_t *mask = made_add(m, "mask", AT_U8, 2, EXTENTS(4, 6));
    memset(mask, 1, 24);
    memset(mask + 6, 0, 6); /* row 1 sees nothing */
    out[2] = out[4] = NAN;
    out[3] = 5; /* no mark: left to be judged */
    lse[1] = lse[2] = 1e30f;
    must_read(
        made_file(m, "x", "{\"spec\":1,\"scale\":1,\"empty\":{\"out\":\"nan\",\"lse\":1e30}}"),
        NULL);
    const struct at_view *o = &x.result[0].got.out, *l = &x.result[0].got.lse;
    ck_assert(at_load(o, 2) == 0 && at_load(o, 3) == 5);
    ck_assert(isnan(at_load(o, 4)));
    ck_assert(at_load(l, 1) == -(double)INFINITY);
    ck_assert(at_load(l, 2) == (double)1e30f);
}
END_TEST

START_TEST(results_of_other_inputs_or_another_question_are_refused)
{
    struct made *m = made_plain(), *n = made_plain();
    made_add(n, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    must_read(made_file(m, "x", META), NULL);
    ck_assert_msg(at_case_add(&x, made_file(n, "got.safetensors", NULL), NULL, &said), "%s",
                  said.text);
    ck_assert_int_eq(x.results, 1);
    ck_assert_str_eq(x.result[0].name, "got");
    ck_assert(!at_case_add(&x, made_file(n, "y", "{\"spec\":1,\"scale\":2}"), NULL, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "field \"scale\" contradicts that of"));
    ((float *)n->tensor[0].data)[0] += 1;
    ck_assert(!at_case_add(&x, made_file(n, "y", NULL), NULL, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "tensor q: differs from that of"));
    ck_assert(!at_case_add(&x, made_file(m, "y", NULL), NULL, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "tensor out: absent"));
    ck_assert_int_eq(x.results, 1);
}
END_TEST

/* -- One row --------------------------------------------------------------------------------- */

/* A case with everything that a score can have. */
static struct made *rich(void)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 4, EXTENTS(2, 4, 5, 3));
    made_add(m, "k", AT_F32, 4, EXTENTS(2, 2, 9, 3));
    made_add(m, "v", AT_F32, 4, EXTENTS(2, 2, 9, 2));
    made_add(m, "bias", AT_F32, 3, EXTENTS(4, 1, 9));
    made_add(m, "mask", AT_U8, 4, EXTENTS(2, 1, 5, 9));
    made_add(m, "alibi", AT_F32, 1, EXTENTS(4));
    made_add(m, "sink", AT_F32, 1, EXTENTS(4));
    made_add(m, "q_descale", AT_F32, 3, EXTENTS(2, 4, 5));
    made_add(m, "k_descale", AT_F32, 3, EXTENTS(2, 2, 9));
    made_add(m, "v_descale", AT_F32, 3, EXTENTS(2, 1, 9));
    made_list(m, "kv_len", 2, EXTENTS(9, 6));
    made_list(m, "q_len", 2, EXTENTS(5, 3));
    made_add(m, "out", AT_F32, 4, EXTENTS(2, 4, 5, 2));
    made_add(m, "lse", AT_F32, 3, EXTENTS(2, 4, 5));
    return m;
}

static void truth_of(const struct at_attention *a, struct at_place p, double number[3])
{
    struct at_answer y;
    ck_assert_int_eq(at_answer_make(&y, 1, 2), AT_OK);
    ck_assert_int_eq(at_truth(a, (struct at_rows){1, &p}, &y), AT_OK);
    number[0] = y.out[0], number[1] = y.out[1], number[2] = y.lse[0];
    at_answer_free(&y);
}

START_TEST(the_case_of_one_row_has_that_row_for_its_answer)
{
    const char *path =
        made_file(rich(), "x",
                  "{\"spec\":1,\"scale\":0.7,\"softcap\":3,\"left\":5,"
                  "\"causal\":\"bottom-right\",\"dropout\":{\"p\":0.25,\"seed\":5}}");
    struct at_case y;
    must_read(path, NULL);
    for (int64_t t = 0; t < 40; t++) {
        struct at_place p = at_place_of(&x.a, (struct at_rows){40, NULL}, t);
        double want[3], got[3];
        ck_assert_msg(at_case_write_row(&x, &x.result[0], p, made_path("row"), &said), "%s",
                      said.text);
        ck_assert_msg(at_case_read(made_path("row"), NULL, &y, &said), "%s", said.text);
        truth_of(&x.a, p, want);
        truth_of(&y.a, (struct at_place){0, 0, 0}, got);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(want[k] == got[k], "row %lld,%lld,%lld number %d: %a, expected %a",
                          (long long)p.b, (long long)p.h, (long long)p.i, k, got[k], want[k]);
        const struct at_view *o = &x.result[0].got.out;
        ck_assert(at_load(&y.result[0].got.out, 1) == at_load(o, at_offset(o, p.b, p.h, p.i, 1)));
        at_case_free(&y);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("results");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, results_stand_side_by_side_with_what_is_said_of_them);
    tcase_add_test(t, a_misshapen_result_is_refused);
    tcase_add_test(t, every_layout_of_the_lse_puts_a_row_where_it_belongs);
    tcase_add_test(t, a_base_2_lse_becomes_natural_and_the_file_keeps_its_own);
    tcase_add_test(t, marks_of_empty_rows_become_ours_and_marks_elsewhere_stay);
    tcase_add_test(t, results_of_other_inputs_or_another_question_are_refused);
    tcase_add_test(t, the_case_of_one_row_has_that_row_for_its_answer);
    return run_suite("results", t) != 0;
}

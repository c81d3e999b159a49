/* Case files: what the metadata may say, flags, tensors. SPDX-License-Identifier: MIT */
#include "case_help.h"

/* -- Metadata -------------------------------------------------------------------------------- */

static const struct {
    const char *meta, *sentence;
} wrong[] = {
    {"{", "metadata attest is not valid JSON"},
    {"[1]", "metadata attest is no JSON object"},
    {"{\"spec\":1,\"scale\":1,\"scale\":2}", "duplicate"},
    {"{\"scale\":1}", "field \"spec\": found 0, expected 1"},
    {"{\"spec\":2,\"scale\":1}", "field \"spec\": found 2, expected 1"},
    {"{\"spec\":1}", "field \"scale\" absent"},
    {"{\"spec\":1,\"scale\":NaN}", "not valid JSON"},
    {"{\"spec\":1,\"scale\":1e999}", "not valid JSON"},
    {"{\"spec\":1,\"scale\":\"1\"}", "field \"scale\": found \"1\", expected a number"},
    {"{\"spec\":1,\"scale\":1,\"sclae\":1}", "field \"sclae\" found, expected a known one"},
    {"{\"spec\":1,\"scale\":1,\"layout\":\"sbhd\"}",
     "field \"layout\": found \"sbhd\", expected one"},
    {"{\"spec\":1,\"scale\":1,\"softcap\":-1}",
     "field \"softcap\": found -1, expected a number >= 0"},
    {"{\"spec\":1,\"scale\":1,\"softcap\":0}", "field \"softcap\": found 0, expected a number > 0"},
    {"{\"spec\":1,\"scale\":1,\"left\":-2}",
     "field \"left\": found -2, expected a whole number >= -1"},
    {"{\"spec\":1,\"scale\":1,\"right\":1.5}", "field \"right\": found 1.5"},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"middle\"}", "field \"causal\": found \"middle\""},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"top-left\",\"right\":0}",
     "\"causal\" found beside right"},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"top-left\",\"offset\":0}",
     "\"causal\" found beside right"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"p\":1}}", "dropout: p 1, expected 0 <= p < 1"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"q\":0.5}}", "field \"dropout.q\" found"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"p\":0.5,\"seed\":-1}}",
     "field \"dropout.seed\": found -1"},
    {"{\"spec\":1,\"scale\":1,\"compute\":\"fp16\"}", "field \"compute\": found \"fp16\""},
    {"{\"spec\":1,\"scale\":1,\"lse\":{\"base\":\"e\"}}", "field \"lse.base\": found \"e\""},
    {"{\"spec\":1,\"scale\":1,\"empty\":{\"out\":0}}", "field \"empty.out\": found 0"},
    {"{\"spec\":1,\"scale\":1,\"empty\":{\"lse\":\"inf\"}}", "field \"empty.lse\": found \"inf\""},
    {"{\"spec\":1,\"scale\":1,\"results\":{\"a\":1}}", "results \"a\" is no object"},
    {"{\"spec\":1,\"scale\":1,\"results\":{\"a\":{\"arth\":\"\"}}}",
     "field \"results.arth\" found"},
    {"{\"spec\":1,\"scale\":1,\"results\":{\"a\":{}}}", "tensor out.a: absent"},
    {"{\"spec\":1,\"scale\":1,\"layout\":\"thd\"}", "tensor q: 4 extents found, expected 3"},
    {"{\"spec\":1,\"scale\":1,\"kv_layout\":\"pages-hnd\"}", "tensor block_table"},
};

START_TEST(metadata_that_says_too_much_or_too_little_is_refused)
{
    must_refuse(made_file(made_plain(), "x", wrong[_i].meta), NULL, wrong[_i].sentence);
}
END_TEST

START_TEST(every_field_reaches_the_descriptor)
{
    must_read(made_file(made_plain(), "x",
                        "{\"spec\":1,\"scale\":0.1,\"softcap\":2.5,\"left\":3,"
                        "\"right\":4,\"offset\":-5,\"compute\":\"fp64\",\"dropout\":"
                        "{\"p\":0.25,\"seed\":7,\"offset\":9},\"name\":\"n\",\"source\":[1]}"),
              NULL);
    ck_assert(x.a.score.scale == 0.1 && x.a.score.softcap == 2.5);
    ck_assert_int_eq(x.a.score.left, 3);
    ck_assert_int_eq(x.a.score.right, 4);
    ck_assert_int_eq(x.a.score.offset[0], -5);
    ck_assert_int_eq(x.a.plan.compute, AT_F64);
    ck_assert(x.a.dropout.p == 0.25);
    ck_assert_int_eq((int64_t)x.a.dropout.seed, 7);
    ck_assert_int_eq((int64_t)x.a.dropout.offset, 9);
    ck_assert_str_eq(x.name, "n");
}
END_TEST

START_TEST(what_is_not_said_is_the_plain_problem)
{
    must_read(made_file(made_plain(), "plain.safetensors", "{\"spec\":1,\"scale\":1}"), NULL);
    ck_assert_int_eq(x.a.score.left, AT_UNBOUNDED);
    ck_assert_int_eq(x.a.score.right, AT_UNBOUNDED);
    ck_assert_ptr_null(x.a.score.offset);
    ck_assert(x.a.score.softcap == 0 && x.a.dropout.p == 0);
    ck_assert_str_eq(x.name, "plain");
    ck_assert_int_eq(x.results, 0);
}
END_TEST

/* -- Flags ----------------------------------------------------------------------------------- */

START_TEST(a_flag_supplies_what_a_file_without_metadata_lacks)
{
    struct at_fields f = flag("scale", "0.5");
    must_refuse(made_file(made_plain(), "x", NULL), NULL, "field \"scale\" absent");
    must_read(made_file(made_plain(), "x", NULL), &f);
    ck_assert(x.a.score.scale == 0.5);
}
END_TEST

START_TEST(a_flag_that_contradicts_the_file_is_refused)
{
    struct at_fields other = flag("scale", "0.5"), same = flag("scale", "1.0");
    const char *path = made_file(made_plain(), "x", "{\"spec\":1,\"scale\":1}");
    must_refuse(path, &other, "field \"scale\": found 1, but the flag says 0.5");
    must_read(path, &same);
}
END_TEST

START_TEST(a_flag_with_an_unknown_word_is_refused)
{
    struct at_fields f = flag("causal", "\"both\""), nan = flag("scale", "nan");
    const char *path = made_file(made_plain(), "x", "{\"spec\":1,\"scale\":1}");
    must_refuse(path, &f, "field \"causal\": found \"both\"");
    must_refuse(made_file(made_plain(), "x", NULL), &nan, "which is no number or word");
}
END_TEST

START_TEST(lengths_can_be_flags)
{
    struct at_fields f = flag("kv_len", "[4]"), wrong_count = flag("kv_len", "[4,4]");
    struct at_fields other = flag("kv_len", "[5]"), too_long = flag("kv_len", "[7]");
    const char *path = made_file(made_plain(), "x", "{\"spec\":1,\"scale\":1}");
    must_read(path, &f);
    ck_assert_int_eq(x.a.score.kv_len[0], 4);
    ck_assert(at_case_write(&x, made_path("y"), &said));
    at_case_free(&x);
    must_read(made_path("y"), &f); /* the flag is in the file now */
    at_case_free(&x);
    must_refuse(made_path("y"), &other, "tensor kv_len contradicts the flag's [5]");
    must_refuse(path, &wrong_count, "tensor kv_len: found rank 1 and extent 2");
    must_refuse(path, &too_long, "kv_len[0]: 7, expected 0 .. 6");
}
END_TEST

START_TEST(a_completed_case_needs_no_flags)
{
    struct at_fields f = flag("scale", "0.1");
    snprintf(f.at[1].name, sizeof f.at[1].name, "causal");
    snprintf(f.at[1].text, sizeof f.at[1].text, "\"bottom-right\"");
    f.n = 2;
    must_read(made_file(made_plain(), "x", NULL), &f);
    ck_assert(at_case_write(&x, made_path("y"), &said));
    at_case_free(&x);
    must_read(made_path("y"), NULL);
    ck_assert(x.a.score.scale == 0.1);
    ck_assert_int_eq(x.a.score.right, 0);
    ck_assert_int_eq(x.a.score.offset[0], 2);
}
END_TEST

/* -- Tensors --------------------------------------------------------------------------------- */

START_TEST(tensors_that_are_absent_unknown_or_misshapen_are_refused)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 4, EXTENTS(1, 2, 4, 3));
    must_refuse(made_file(m, "x", META), NULL, "tensor k: absent");
    made_add(m, "k", AT_F32, 4, EXTENTS(1, 1, 6, 4));
    made_add(m, "v", AT_F32, 4, EXTENTS(1, 1, 6, 2));
    must_refuse(made_file(m, "x", META), NULL, "k: head dimension 4, expected q's 3");
    m = made_plain();
    made_add(m, "mask_", AT_U8, 1, EXTENTS(6));
    must_refuse(made_file(m, "x", META), NULL, "tensor mask_: unknown name");
    m = made_plain();
    made_add(m, "mask", AT_U8, 2, EXTENTS(4, 5));
    must_refuse(made_file(m, "x", META), NULL, "mask: extents (1,2,4,5), expected (1,2,4,6)");
    m = made_plain();
    made_add(m, "mask", AT_F32, 2, EXTENTS(4, 6));
    must_refuse(made_file(m, "x", META), NULL, "mask: fp32, expected uint8");
    m = made_plain();
    made_add(m, "alibi", AT_F32, 1, EXTENTS(3));
    must_refuse(made_file(m, "x", META), NULL, "tensor alibi: found rank 1 and extent 3");
    m = made_plain();
    made_add(m, "offset", AT_F32, 1, EXTENTS(1));
    must_refuse(made_file(m, "x", META), NULL,
                "tensor offset: dtype F32 found, expected I32 or I64");
    m = made_plain();
    made_list(m, "q_len", 1, EXTENTS(INT64_MIN));
    must_refuse(made_file(m, "x", META), NULL, "tensor q_len: element 0 is -9223372036854775808");
    m = made_plain();
    made_add(m, "q_descale", AT_F32, 4, EXTENTS(1, 1, 1, 1));
    must_refuse(made_file(m, "x", META), NULL,
                "tensor q_descale: 4 extents found, expected at most 3");
}
END_TEST

START_TEST(query_heads_that_key_heads_do_not_divide_are_refused)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 4, EXTENTS(1, 3, 4, 3));
    made_add(m, "k", AT_F32, 4, EXTENTS(1, 2, 6, 3));
    made_add(m, "v", AT_F32, 4, EXTENTS(1, 2, 6, 2));
    must_refuse(made_file(m, "x", META), NULL, "k: 2 heads, expected a divisor of q's 3");
}
END_TEST

START_TEST(an_extent_of_1_repeats_and_a_missing_one_is_1)
{
    struct made *m = made_plain();
    made_add(m, "bias", AT_F64, 1, EXTENTS(6));
    made_add(m, "mask", AT_U8, 4, EXTENTS(1, 2, 1, 6));
    made_add(m, "k_descale", AT_F32, 0, NULL);
    made_add(m, "q_descale", AT_F32, 3, EXTENTS(1, 2, 1));
    must_read(made_file(m, "x", META), NULL);
    ck_assert_int_eq(x.a.score.bias.dim[2], 4);
    ck_assert_int_eq(x.a.score.bias.stride[2], 0);
    ck_assert_int_eq(x.a.score.bias.stride[3], 1);
    ck_assert_int_eq(x.a.score.mask.stride[1], 6);
    ck_assert_int_eq(x.a.score.mask.stride[2], 0);
    ck_assert_int_eq(x.a.score.kscale.dim[2], 6);
    ck_assert_int_eq(x.a.score.kscale.stride[2], 0);
    ck_assert_int_eq(x.a.score.qscale.stride[1], 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("case");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_loop_test(t, metadata_that_says_too_much_or_too_little_is_refused, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(t, every_field_reaches_the_descriptor);
    tcase_add_test(t, what_is_not_said_is_the_plain_problem);
    tcase_add_test(t, a_flag_supplies_what_a_file_without_metadata_lacks);
    tcase_add_test(t, a_flag_that_contradicts_the_file_is_refused);
    tcase_add_test(t, a_flag_with_an_unknown_word_is_refused);
    tcase_add_test(t, lengths_can_be_flags);
    tcase_add_test(t, a_completed_case_needs_no_flags);
    tcase_add_test(t, tensors_that_are_absent_unknown_or_misshapen_are_refused);
    tcase_add_test(t, query_heads_that_key_heads_do_not_divide_are_refused);
    tcase_add_test(t, an_extent_of_1_repeats_and_a_missing_one_is_1);
    return run_suite("case", t) != 0;
}

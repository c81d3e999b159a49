/* Case files: what the metadata may say, flags, layouts, lengths, pages, results, one row's case.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "make.h"

static struct at_case x;
static struct at_said said;

static void must_read(const char *path, const struct at_fields *flags)
{
    ck_assert_msg(at_case_read(path, flags, &x, &said), "%s", said.text);
}

static void must_refuse(const char *path, const struct at_fields *flags, const char *sentence)
{
    said.text[0] = 0;
    bool read = at_case_read(path, flags, &x, &said);
    ck_assert_msg(!read, "read, expected \"%s\"", sentence);
    ck_assert_msg(strstr(said.text, sentence) != NULL, "found \"%s\", expected \"%s\"", said.text,
                  sentence);
    ck_assert_msg(strncmp(said.text, path, strlen(path)) == 0, "%s", said.text);
    ck_assert_ptr_null(x.meta);
    ck_assert_ptr_null(x.file.tensor);
}

static struct at_fields flag(const char *name, const char *text)
{
    struct at_fields f = {.n = 1};
    snprintf(f.at[0].name, sizeof f.at[0].name, "%s", name);
    snprintf(f.at[0].text, sizeof f.at[0].text, "%s", text);
    return f;
}

static void forget(void)
{
    at_case_free(&x);
    made_clean();
}

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
    {"{\"spec\":1,\"scale\":1,\"layout\":\"sbhd\"}", "field \"layout\": found \"sbhd\", expected one"},
    {"{\"spec\":1,\"scale\":1,\"softcap\":-1}", "field \"softcap\": found -1, expected a number >= 0"},
    {"{\"spec\":1,\"scale\":1,\"softcap\":0}", "field \"softcap\": found 0, expected a number > 0"},
    {"{\"spec\":1,\"scale\":1,\"left\":-2}", "field \"left\": found -2, expected a whole number >= -1"},
    {"{\"spec\":1,\"scale\":1,\"right\":1.5}", "field \"right\": found 1.5"},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"middle\"}", "field \"causal\": found \"middle\""},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"top-left\",\"right\":0}", "\"causal\" found beside right"},
    {"{\"spec\":1,\"scale\":1,\"causal\":\"top-left\",\"offset\":0}", "\"causal\" found beside right"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"p\":1}}", "dropout: p 1, expected 0 <= p < 1"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"q\":0.5}}", "field \"dropout.q\" found"},
    {"{\"spec\":1,\"scale\":1,\"dropout\":{\"p\":0.5,\"seed\":-1}}", "field \"dropout.seed\": found -1"},
    {"{\"spec\":1,\"scale\":1,\"compute\":\"fp16\"}", "field \"compute\": found \"fp16\""},
    {"{\"spec\":1,\"scale\":1,\"lse\":{\"base\":\"e\"}}", "field \"lse.base\": found \"e\""},
    {"{\"spec\":1,\"scale\":1,\"empty\":{\"out\":0}}", "field \"empty.out\": found 0"},
    {"{\"spec\":1,\"scale\":1,\"empty\":{\"lse\":\"inf\"}}", "field \"empty.lse\": found \"inf\""},
    {"{\"spec\":1,\"scale\":1,\"results\":{\"a\":1}}", "results \"a\" is no object"},
    {"{\"spec\":1,\"scale\":1,\"results\":{\"a\":{\"arth\":\"\"}}}", "field \"results.arth\" found"},
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
    must_read(made_file(made_plain(), "x", "{\"spec\":1,\"scale\":0.1,\"softcap\":2.5,\"left\":3,"
                        "\"right\":4,\"offset\":-5,\"compute\":\"fp64\",\"dropout\":"
                        "{\"p\":0.25,\"seed\":7,\"offset\":9},\"name\":\"n\",\"source\":[1]}"), NULL);
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

#define META "{\"spec\":1,\"scale\":1}"

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
    must_refuse(made_file(m, "x", META), NULL, "tensor offset: dtype F32 found, expected I32 or I64");
    m = made_plain();
    made_list(m, "q_len", 1, EXTENTS(INT64_MIN));
    must_refuse(made_file(m, "x", META), NULL, "tensor q_len: element 0 is -9223372036854775808");
    m = made_plain();
    made_add(m, "q_descale", AT_F32, 4, EXTENTS(1, 1, 1, 1));
    must_refuse(made_file(m, "x", META), NULL, "tensor q_descale: 4 extents found, expected at most 3");
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

/* -- Layouts and sequences ------------------------------------------------------------------- */

START_TEST(bshd_puts_rows_before_heads)
{
    struct made *m = calloc(1, sizeof *m);
    float *q = made_add(m, "q", AT_F32, 4, EXTENTS(2, 4, 2, 3));
    made_add(m, "k", AT_F32, 4, EXTENTS(2, 6, 1, 3));
    made_add(m, "v", AT_F32, 4, EXTENTS(2, 6, 1, 2));
    q[((1 * 4 + 3) * 2 + 1) * 3 + 2] = 77;
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"layout\":\"bshd\"}"), NULL);
    ck_assert_int_eq(x.a.q.dim[1], 2);
    ck_assert_int_eq(x.a.q.dim[2], 4);
    ck_assert(at_load(&x.a.q, at_offset(&x.a.q, 1, 1, 3, 2)) == 77);
}
END_TEST

/* Sequences of 3, 0, 2 rows and 4, 1, 2 keys. */
static struct made *packed(void)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 3, EXTENTS(6, 2, 3));
    made_add(m, "k", AT_F32, 3, EXTENTS(7, 1, 3));
    made_add(m, "v", AT_F32, 3, EXTENTS(7, 1, 2));
    made_list(m, "cu_seqlens_q", 4, EXTENTS(0, 3, 3, 5)); /* row 5 belongs to no sequence */
    made_list(m, "cu_seqlens_k", 4, EXTENTS(0, 4, 5, 7));
    return m;
}

START_TEST(cu_seqlens_say_starts_lengths_and_the_causal_corner)
{
    must_read(made_file(packed(), "x", "{\"spec\":1,\"scale\":1,\"layout\":\"thd\","
                                       "\"causal\":\"bottom-right\"}"), NULL);
    ck_assert_int_eq(x.a.score.sequences, 3);
    ck_assert_int_eq(x.a.score.q_start[2], 3);
    ck_assert_int_eq(x.a.score.q_len[0], 3);
    ck_assert_int_eq(x.a.score.q_len[1], 0);
    ck_assert_int_eq(x.a.score.kv_len[2], 2);
    ck_assert_int_eq(x.a.score.offset[0], 1);
    ck_assert_int_eq(x.a.score.offset[1], 1);
    ck_assert_int_eq(x.a.score.offset[2], 0);
}
END_TEST

START_TEST(lengths_beside_cu_seqlens_may_only_shorten)
{
    struct made *m = packed();
    made_list(m, "kv_len", 3, EXTENTS(4, 0, 1));
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"layout\":\"thd\"}"), NULL);
    ck_assert_int_eq(x.a.score.kv_len[2], 1);
    at_case_free(&x);
    m = packed();
    made_list(m, "kv_len", 3, EXTENTS(5, 0, 1));
    must_refuse(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"layout\":\"thd\"}"), NULL,
                "length 5 of sequence 0 found, expected at most the 4 rows of cu_seqlens_k");
}
END_TEST

START_TEST(cu_seqlens_that_do_not_ascend_within_their_tensor_are_refused)
{
    static const int64_t bad[][4] = {{0, 4, 3, 7}, {0, 4, 5, 8}, {-1, 4, 5, 7}};
    static const char *const sentence[] = {"element 2 is 3, expected 4..7", "element 3 is 8",
                                           "element 0 is -1"};
    for (int k = 0; k < 3; k++) {
        struct made *m = packed();
        memcpy(m->tensor[4].data, bad[k], sizeof bad[k]);
        must_refuse(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"layout\":\"thd\"}"), NULL,
                    sentence[k]);
    }
    struct made *m = packed();
    m->all.n--;
    must_refuse(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"layout\":\"thd\"}"), NULL,
                "tensor cu_seqlens_k: absent");
}
END_TEST

/* 4 pages of 4 keys; sequences of 5 and 8 keys. */
static struct made *paged(const char *layout)
{
    struct made *m = calloc(1, sizeof *m);
    bool nhd = strcmp(layout, "pages-nhd") == 0;
    made_add(m, "q", AT_F32, 4, EXTENTS(2, 2, 1, 3));
    made_add(m, "k", AT_F32, 4, nhd ? EXTENTS(4, 4, 1, 3) : EXTENTS(4, 1, 4, 3));
    made_add(m, "v", AT_F32, 4, nhd ? EXTENTS(4, 4, 1, 2) : EXTENTS(4, 1, 4, 2));
    return m;
}

static const char *const page_meta[] = {
    "{\"spec\":1,\"scale\":1,\"kv_layout\":\"pages-hnd\",\"causal\":\"bottom-right\"}",
    "{\"spec\":1,\"scale\":1,\"kv_layout\":\"pages-nhd\",\"causal\":\"bottom-right\"}"};

START_TEST(a_block_table_and_a_page_list_say_the_same)
{
    for (int nhd = 0; nhd < 2; nhd++) {
        struct made *m = paged(nhd ? "pages-nhd" : "pages-hnd"), *n = paged(nhd ? "pages-nhd"
                                                                                : "pages-hnd");
        memcpy(made_add(m, "block_table", AT_I64, 2, EXTENTS(2, 3)),
               EXTENTS(3, 0, -1, 1, 2, -1), 48);
        made_list(m, "kv_len", 2, EXTENTS(5, 8));
        made_list(n, "kv_indptr", 3, EXTENTS(0, 2, 4));
        made_list(n, "kv_indices", 4, EXTENTS(3, 0, 1, 2));
        made_list(n, "kv_last_page_len", 2, EXTENTS(1, 4));
        must_read(made_file(m, "x", page_meta[nhd]), NULL);
        struct at_case y = x;
        must_read(made_file(n, "y", page_meta[nhd]), NULL);
        for (int64_t b = 0; b < 2; b++) {
            ck_assert_int_eq(x.a.score.kv_len[b], y.a.score.kv_len[b]);
            ck_assert_int_eq(x.a.score.offset[b], y.a.score.offset[b]);
            for (int64_t j = 0; j < y.a.score.kv_len[b]; j++)
                ck_assert_int_eq(at_key_offset(&x.a, &x.a.k, b, 0, j),
                                 at_key_offset(&y.a, &y.a.k, b, 0, j));
        }
        ck_assert_int_eq(at_key_offset(&x.a, &x.a.k, 0, 0, 4), 0); /* page 0, its first key */
        at_case_free(&y);
        at_case_free(&x);
    }
}
END_TEST

START_TEST(pages_out_of_range_are_refused)
{
    struct made *m = paged("pages-hnd");
    int64_t *table = made_add(m, "block_table", AT_I64, 2, EXTENTS(2, 2));
    memcpy(table, EXTENTS(3, 4, 1, 2), 32);
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "tensor kv_len: absent, expected with block_table");
    made_list(m, "kv_len", 2, EXTENTS(5, 8));
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "page 4, expected 0 .. 3");
    table[1] = (int64_t)1 << 40;
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "expected 32 bits");
    m = paged("pages-hnd");
    made_list(m, "kv_indptr", 3, EXTENTS(0, 2, 5));
    made_list(m, "kv_indices", 4, EXTENTS(3, 0, 1, 2));
    made_list(m, "kv_last_page_len", 2, EXTENTS(1, 4));
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "kv_indptr: element 2 is 5");
    memcpy(m->tensor[3].data, EXTENTS(0, 2, 4), 24);
    memcpy(m->tensor[5].data, EXTENTS(1, 5), 16);
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "kv_last_page_len: element 1 is 5");
    memcpy(m->tensor[5].data, EXTENTS(1, 4), 16);
    made_list(m, "kv_len", 2, EXTENTS(5, 8));
    must_refuse(made_file(m, "x", page_meta[0]), NULL, "kv_len found beside a page list");
}
END_TEST

START_TEST(a_position_has_one_word)
{
    struct made *m = made_plain();
    made_list(m, "offset", 1, EXTENTS(3));
    must_refuse(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"causal\":\"top-left\"}"), NULL,
                "tensor offset found beside the field causal or offset");
    must_read(made_file(m, "x", META), NULL);
    ck_assert_int_eq(x.a.score.offset[0], 3);
}
END_TEST

START_TEST(the_causal_corner_follows_the_lengths_of_each_sequence)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 4, EXTENTS(2, 1, 4, 3));
    made_add(m, "k", AT_F32, 4, EXTENTS(2, 1, 6, 3));
    made_add(m, "v", AT_F32, 4, EXTENTS(2, 1, 6, 2));
    made_list(m, "q_len", 2, EXTENTS(4, 1));
    made_list(m, "kv_len", 2, EXTENTS(3, 6));
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"causal\":\"bottom-right\"}"), NULL);
    ck_assert_int_eq(x.a.score.offset[0], -1);
    ck_assert_int_eq(x.a.score.offset[1], 5);
    at_case_free(&x);
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"causal\":\"top-left\"}"), NULL);
    ck_assert_ptr_null(x.a.score.offset);
    ck_assert_int_eq(x.a.score.right, 0);
}
END_TEST

/* -- Results --------------------------------------------------------------------------------- */

START_TEST(results_stand_side_by_side_with_what_is_said_of_them)
{
    struct made *m = made_plain();
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    made_add(m, "out.peer", AT_BF16, 4, EXTENTS(1, 2, 4, 2));
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"results\":{\"peer\":{\"arith\":\"bf16-p\","
                        "\"why\":\"w\",\"from\":\"f\"}}}"), NULL);
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
    must_refuse(made_file(m, "x", META), NULL, "tensor out: extents (1,2,4,3) found, expected (1,2,4,2)");
    m = made_plain();
    made_add(m, "out", AT_I32, 4, EXTENTS(1, 2, 4, 2));
    must_refuse(made_file(m, "x", META), NULL, "tensor out: dtype I32 found");
    m = made_plain();
    made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    must_refuse(made_file(m, "x", META), NULL, "tensor out: absent, expected beside lse");
    made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    m->tensor[3].dim[2] = 2, m->tensor[3].bytes = 16;
    must_refuse(made_file(m, "x", META), NULL, "tensor lse: extents (1,2,2) found, expected (1,2,4)");
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
                              k == 0 ? EXTENTS(2, 6) : k == 1 ? EXTENTS(6, 2) : EXTENTS(3, 2, 4));
        /* head 1, sequence 2, row 1 is packed row 4 */
        lse[k == 0 ? 6 + 4 : k == 1 ? 4 * 2 + 1 : (2 * 2 + 1) * 4 + 1] = 77;
        snprintf(meta, sizeof meta, "{\"spec\":1,\"scale\":1,\"layout\":\"thd\",\"lse\":{\"layout\":"
                 "\"%s\"}}", layout[k]);
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
    out[2] = out[3] = out[4] = NAN;
    lse[1] = lse[2] = 1e30f;
    must_read(made_file(m, "x", "{\"spec\":1,\"scale\":1,\"empty\":{\"out\":\"nan\",\"lse\":1e30}}"),
              NULL);
    const struct at_view *o = &x.result[0].got.out, *l = &x.result[0].got.lse;
    ck_assert(at_load(o, 2) == 0 && at_load(o, 3) == 0);
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
    const char *path = made_file(rich(), "x", "{\"spec\":1,\"scale\":0.7,\"softcap\":3,\"left\":5,"
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
        ck_assert(at_load(&y.result[0].got.out, 1) ==
                  at_load(o, at_offset(o, p.b, p.h, p.i, 1)));
        at_case_free(&y);
    }
}
END_TEST

static void add_tests(TCase *t)
{
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
    tcase_add_test(t, bshd_puts_rows_before_heads);
    tcase_add_test(t, cu_seqlens_say_starts_lengths_and_the_causal_corner);
    tcase_add_test(t, lengths_beside_cu_seqlens_may_only_shorten);
    tcase_add_test(t, cu_seqlens_that_do_not_ascend_within_their_tensor_are_refused);
    tcase_add_test(t, a_block_table_and_a_page_list_say_the_same);
    tcase_add_test(t, pages_out_of_range_are_refused);
    tcase_add_test(t, a_position_has_one_word);
    tcase_add_test(t, the_causal_corner_follows_the_lengths_of_each_sequence);
    tcase_add_test(t, results_stand_side_by_side_with_what_is_said_of_them);
    tcase_add_test(t, a_misshapen_result_is_refused);
    tcase_add_test(t, every_layout_of_the_lse_puts_a_row_where_it_belongs);
    tcase_add_test(t, a_base_2_lse_becomes_natural_and_the_file_keeps_its_own);
    tcase_add_test(t, marks_of_empty_rows_become_ours_and_marks_elsewhere_stay);
    tcase_add_test(t, results_of_other_inputs_or_another_question_are_refused);
    tcase_add_test(t, the_case_of_one_row_has_that_row_for_its_answer);
}

int main(void)
{
    Suite *suite = suite_create("case");
    TCase *t = tcase_create("case");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, NULL, forget);
    add_tests(t);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Case files: layouts, lengths, ragged and paged sequences, causal corners.
 * SPDX-License-Identifier: MIT */
#include "case_help.h"

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

START_TEST(cu_seqlens_say_starts_lengths_and_the_causal_corner)
{
    must_read(made_file(packed(), "x",
                        "{\"spec\":1,\"scale\":1,\"layout\":\"thd\","
                        "\"causal\":\"bottom-right\"}"),
              NULL);
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
        struct made *m = paged(nhd ? "pages-nhd" : "pages-hnd"),
                    *n = paged(nhd ? "pages-nhd" : "pages-hnd");
        memcpy(made_add(m, "block_table", AT_I64, 2, EXTENTS(2, 3)), EXTENTS(3, 0, -1, 1, 2, -1),
               48);
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
    must_refuse(made_file(m, "x", page_meta[0]), NULL,
                "tensor kv_len: absent, expected with block_table");
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

int main(void)
{
    TCase *t = tcase_create("sequences");
    tcase_add_checked_fixture(t, NULL, forget);
    tcase_add_test(t, bshd_puts_rows_before_heads);
    tcase_add_test(t, cu_seqlens_say_starts_lengths_and_the_causal_corner);
    tcase_add_test(t, lengths_beside_cu_seqlens_may_only_shorten);
    tcase_add_test(t, cu_seqlens_that_do_not_ascend_within_their_tensor_are_refused);
    tcase_add_test(t, a_block_table_and_a_page_list_say_the_same);
    tcase_add_test(t, pages_out_of_range_are_refused);
    tcase_add_test(t, a_position_has_one_word);
    tcase_add_test(t, the_causal_corner_follows_the_lengths_of_each_sequence);
    return run_suite("sequences", t) != 0;
}

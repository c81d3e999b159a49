/* Files of tensors: round trips, every corruption refused with its sentence, nothing left behind.
 * SPDX-License-Identifier: MIT */
#include "make.h"
#include <signal.h>
#include <sys/resource.h>

/* -- Round trips ----------------------------------------------------------------------------- */

static struct made *every_dtype(void)
{
    struct made *m = calloc(1, sizeof *m);
    static const enum at_dtype all[] = {AT_U8,  AT_F8_E4M3, AT_F8_E5M2, AT_BF16, AT_F16,
                                        AT_I32, AT_F32,     AT_F64,     AT_I64};
    char name[8] = "t0";
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        name[1] = (char)('0' + k);
        made_add(m, name, all[k], (int)(k % 5), EXTENTS(3, 2, 1, 5));
    }
    made_add(m, "empty", AT_F32, 3, EXTENTS(2, 0, 3));
    made_add(m, "a", AT_U8, 1, EXTENTS(3));
    m->tensor[m->all.n - 1].boolean = true;
    return m;
}

START_TEST(a_file_reads_back_as_written)
{
    struct made *m = every_dtype();
    struct at_tensors x;
    struct at_said said;
    const char *path = made_file(m, "x", "{\"spec\":1}");
    ck_assert_msg(at_tensors_read(path, &x, &said), "%s", said.text);
    ck_assert_int_eq(x.n, m->all.n);
    ck_assert_str_eq(x.attest, "{\"spec\":1}");
    for (int64_t k = 0; k < x.n; k++) {
        const struct at_tensor *s = &m->tensor[k], *t = at_tensors_find(&x, s->name);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(t->dtype, s->dtype);
        ck_assert_int_eq(t->boolean, s->boolean);
        ck_assert_int_eq(t->rank, s->rank);
        ck_assert_mem_eq(t->dim, s->dim, sizeof(int64_t) * (size_t)s->rank);
        ck_assert_mem_eq(t->data, s->data, (size_t)s->bytes);
        ck_assert_uint_eq((uintptr_t)t->data % (uintptr_t)at_dtype_size(t->dtype), 0);
    }
    at_tensors_free(&x);
}
END_TEST

START_TEST(the_same_tensors_in_any_order_give_the_same_bytes)
{
    static char a[4096], b[4096];
    struct made *m = every_dtype();
    size_t n = made_read(made_file(m, "x", "{}"), a, sizeof a);
    for (int64_t k = 0; k < m->all.n / 2; k++) {
        struct at_tensor t = m->tensor[k];
        m->tensor[k] = m->tensor[m->all.n - 1 - k];
        m->tensor[m->all.n - 1 - k] = t;
    }
    ck_assert_uint_eq(made_read(made_file(m, "y", "{}"), b, sizeof b), n);
    ck_assert_mem_eq(a, b, n);
}
END_TEST

START_TEST(data_starts_at_a_multiple_of_8)
{
    char a[4096], name[32] = "q";
    for (int k = 1; k < 16; k++) {
        struct made *m = calloc(1, sizeof *m);
        memset(name, 'q', (size_t)k);
        made_add(m, name, AT_F32, 1, EXTENTS(2));
        made_read(made_file(m, "x", NULL), a, sizeof a);
        ck_assert_int_eq((unsigned char)a[0] % 8, 0);
    }
}
END_TEST

/* -- Corruptions ----------------------------------------------------------------------------- */

/* A file of the header and n bytes of data. */
static const char *raw(const char *header, size_t data)
{
    static char bytes[1 << 16];
    size_t n = strlen(header);
    memset(bytes, 0, sizeof bytes);
    for (int k = 0; k < 8; k++)
        bytes[k] = (char)(n >> 8 * k);
    memcpy(bytes + 8, header, n);
    for (size_t k = 0; k < data; k++)
        bytes[8 + n + k] = (char)k;
    return made_bytes("raw", bytes, 8 + n + data);
}

START_TEST(a_tensor_at_an_odd_offset_reads)
{
    struct at_tensors x;
    struct at_said said;
    const char *path = raw("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                           "\"b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[1,9]}}",
                           9);
    unsigned char want[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    ck_assert_msg(at_tensors_read(path, &x, &said), "%s", said.text);
    ck_assert_mem_eq(at_tensors_find(&x, "b")->data, want, 8);
    ck_assert_uint_eq((uintptr_t)at_tensors_find(&x, "b")->data % 64, 0);
    ck_assert_int_eq(x.mapped, 0);
    at_tensors_free(&x);
}
END_TEST

START_TEST(a_file_of_aligned_tensors_is_mapped_and_never_written)
{
    static char before[4096], after[4096];
    int64_t dim[1] = {3};
    double values[3] = {1, 2, 3};
    struct at_tensor t = at_tensor_of("t", AT_F64, 1, dim, values);
    struct at_tensors x = {.n = 1, .tensor = &t};
    struct at_said said;
    const char *path = made_path("mapped");
    ck_assert(at_tensors_write(path, &x, &said));
    size_t n = made_read(path, before, sizeof before);
    ck_assert_msg(at_tensors_read(path, &x, &said), "%s", said.text);
    ck_assert_int_eq(x.mapped, (int64_t)n);
    ck_assert_mem_eq(x.tensor->data, values, sizeof values);
    ((double *)x.tensor->data)[1] = 7;
    ck_assert_uint_eq(made_read(path, after, sizeof after), n);
    ck_assert_mem_eq(before, after, n);
    at_tensors_free(&x);
}
END_TEST

static const struct {
    const char *header;
    size_t data;
    const char *sentence;
} corrupt[] = {
    {"{", 0, "the header is not valid JSON"},
    {"[]", 0, "the header is no JSON object"},
    {"{} x", 0, "the header is not valid JSON"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "duplicate"},
    {"{\"q\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "tensor q: dtype F33 found, expected F64"},
    {"{\"q\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor q: dtype absent found"},
    {"{\"q\":7}", 0, "tensor q: dtype absent found"},
    {"{\"q\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor q: shape absent"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "expected a list of at most 4 extents"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
     "extent 0 is no whole number"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4,
     "extent 0 is no whole number"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}", 4,
     "the product of its extents overflows"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[4294967296,0,4294967296],\"data_offsets\":[0,0]}}", 0,
     "the product of its extents overflows"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
     "the header is not valid JSON"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
     "data_offsets are no two whole numbers"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "bytes 4..0 found"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "bytes -4..0 found"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4,
     "bytes 0..8 found, expected within the file's 4"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
     "4 bytes found, expected 8 of its shape and dtype"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"k\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "overlap or leave a hole"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"k\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[6,10]}}",
     10, "overlap or leave a hole"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "overlap or leave a hole"},
    {"{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "trailing bytes"},
    {"{\"__metadata__\":{\"attest\":1}}", 0, "metadata attest is no text"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is no object"},
    {"{\"012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "0123456789\":"
     "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "name of 100 bytes"},
};

START_TEST(a_corrupt_file_is_refused_with_its_sentence)
{
    struct at_tensors x;
    struct at_said said = {{0}};
    const char *path = raw(corrupt[_i].header, corrupt[_i].data);
    ck_assert_msg(!at_tensors_read(path, &x, &said), "%s", corrupt[_i].header);
    ck_assert_msg(strstr(said.text, corrupt[_i].sentence) != NULL, "found \"%s\", expected \"%s\"",
                  said.text, corrupt[_i].sentence);
    ck_assert_msg(strncmp(said.text, path, strlen(path)) == 0, "%s", said.text);
    ck_assert_ptr_null(strchr(said.text, '\n'));
    ck_assert_int_eq(x.n, 0);
    ck_assert_ptr_null(x.tensor);
}
END_TEST

START_TEST(a_header_length_past_the_end_is_told)
{
    struct at_tensors x;
    struct at_said said = {{0}};
    unsigned char bytes[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    ck_assert(!at_tensors_read(made_bytes("long", bytes, 10), &x, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "header length 3 found, expected at most the 2 bytes"));
    bytes[7] = 0xff;
    ck_assert(!at_tensors_read(made_bytes("long", bytes, 10), &x, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "header length 18374686479671623683 found"));
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused)
{
    static char bytes[4096];
    size_t n = made_read(made_file(every_dtype(), "x", "{}"), bytes, sizeof bytes);
    for (size_t k = 0; k < n; k++) {
        struct at_tensors x;
        struct at_said said = {{0}};
        ck_assert_msg(!at_tensors_read(made_bytes("cut", bytes, k), &x, &said), "%zu bytes", k);
        ck_assert_msg(*said.text, "%zu bytes", k);
    }
}
END_TEST

/* Whatever a changed header says, reading stays inside memory: the sanitizers watch. */
START_TEST(a_changed_byte_is_refused_or_read_but_never_believed)
{
    static char bytes[4096];
    size_t n = made_read(made_file(every_dtype(), "x", "{}"), bytes, sizeof bytes);
    size_t header = (unsigned char)bytes[0] + 256u * (unsigned char)bytes[1];
    for (size_t k = 0; k < 8 + header; k++)
        for (int change = 1; change < 256; change *= 3) {
            struct at_tensors x;
            struct at_said said;
            bytes[k] = (char)(bytes[k] ^ change);
            if (at_tensors_read(made_bytes("changed", bytes, n), &x, &said)) {
                int64_t total = 0;
                for (int64_t t = 0; t < x.n; t++)
                    total += x.tensor[t].bytes;
                ck_assert_int_eq(total, (int64_t)(n - 8 - header));
                at_tensors_free(&x);
            }
            bytes[k] = (char)(bytes[k] ^ change);
        }
}
END_TEST

START_TEST(what_is_no_regular_file_is_refused)
{
    struct at_tensors x;
    struct at_said said;
    ck_assert(!at_tensors_read(made_path("absent"), &x, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "cannot be opened"));
    ck_assert(!at_tensors_read("/dev/null", &x, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "not a regular file"));
    ck_assert(!at_tensors_read("/tmp", &x, &said));
}
END_TEST

/* -- Writing --------------------------------------------------------------------------------- */

START_TEST(a_place_that_cannot_be_written_is_refused)
{
    struct made *m = every_dtype();
    struct at_said said;
    ck_assert(!at_tensors_write(made_path("no/such/place"), &m->all, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "cannot be written"));
    ck_assert_int_eq(made_count(), 0);
    ck_assert(!at_tensors_write(made_device("full"), &m->all, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "could not be written whole"));
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file_and_nothing_else)
{
    char before[64];
    struct made *m = every_dtype();
    struct at_said said;
    struct rlimit limit = {100, 100}; /* bytes a file may have: as good as a full disk */
    const char *path = made_bytes("x", "the old file", 12);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(!at_tensors_write(path, &m->all, &said));
    ck_assert_ptr_nonnull(strstr(said.text, "could not be written whole"));
    ck_assert_int_eq(made_count(), 1);
    ck_assert_uint_eq(made_read(path, before, sizeof before), 12);
    ck_assert_mem_eq(before, "the old file", 12);
}
END_TEST

START_TEST(a_device_is_written_in_place)
{
    struct stat s;
    struct at_said said;
    struct made *m = every_dtype();
    const char *path = made_device("null");
    ck_assert_msg(at_tensors_write(path, &m->all, &said), "%s", said.text);
    ck_assert_int_eq(lstat(path, &s), 0);
    ck_assert(S_ISLNK(s.st_mode));
    ck_assert_int_eq(made_count(), 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tensors");
    tcase_add_checked_fixture(t, NULL, made_clean);
    tcase_add_test(t, a_file_reads_back_as_written);
    tcase_add_test(t, the_same_tensors_in_any_order_give_the_same_bytes);
    tcase_add_test(t, data_starts_at_a_multiple_of_8);
    tcase_add_test(t, a_tensor_at_an_odd_offset_reads);
    tcase_add_test(t, a_file_of_aligned_tensors_is_mapped_and_never_written);
    tcase_add_loop_test(t, a_corrupt_file_is_refused_with_its_sentence, 0,
                        (int)(sizeof corrupt / sizeof *corrupt));
    tcase_add_test(t, a_header_length_past_the_end_is_told);
    tcase_add_test(t, a_file_cut_anywhere_is_refused);
    tcase_add_test(t, a_changed_byte_is_refused_or_read_but_never_believed);
    tcase_add_test(t, what_is_no_regular_file_is_refused);
    tcase_add_test(t, a_place_that_cannot_be_written_is_refused);
    tcase_add_test(t, a_full_disk_leaves_the_old_file_and_nothing_else);
    tcase_add_test(t, a_device_is_written_in_place);
    return run_suite("tensors", t) != 0;
}

/* Small cases painted for tests, and files as bytes. SPDX-License-Identifier: MIT */
#ifndef MAKE_H
#define MAKE_H

#include "oracle.h"
#include "ref.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAKE_MOST = 24 };

/* Tensors in the making; their memory is the process's, which a test has to itself. */
struct made {
    struct at_tensor tensor[MAKE_MOST];
    struct at_tensors all;
};

/* Numbers in -2..2 from the name and the place, exact in every dtype. */
static inline double painted(const char *name, int64_t k)
{
    uint64_t z = (uint64_t)k * 0x9e3779b97f4a7c15u + (uint64_t)name[0] * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
    return (double)((int64_t)(z >> 60) - 8) / 4;
}

static inline void *made_add(struct made *m, const char *name, enum at_dtype dtype, int rank,
                             const int64_t *dim)
{
    int64_t n = 1;
    for (int k = 0; k < rank; k++)
        n *= dim[k];
    char *data = calloc(1, (size_t)(n * at_dtype_size(dtype) + 1));
    ck_assert_ptr_nonnull(data);
    for (int64_t k = 0; k < n; k++) {
        if (dtype == AT_F32)
            ((float *)(void *)data)[k] = (float)painted(name, k);
        else if (dtype == AT_F64)
            ((double *)(void *)data)[k] = painted(name, k);
        else
            data[k] = (char)(dtype == AT_U8 ? painted(name, k) > -1 : 0);
    }
    ck_assert_int_lt(m->all.n, MAKE_MOST);
    m->all.tensor = m->tensor;
    m->tensor[m->all.n++] = at_tensor_of(name, dtype, rank, dim, data);
    return data;
}

#define EXTENTS(...)                                                                               \
    (const int64_t[]) { __VA_ARGS__ }

static inline void *made_list(struct made *m, const char *name, int64_t n, const int64_t *list)
{
    void *data = made_add(m, name, AT_I64, 1, &n);
    if (n > 0)
        memcpy(data, list, (size_t)(8 * n));
    return data;
}

/* q (1,2,4,3), k (1,1,6,3), v (1,1,6,2), fp32. */
static inline struct made *made_plain(void)
{
    struct made *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    made_add(m, "q", AT_F32, 4, EXTENTS(1, 2, 4, 3));
    made_add(m, "k", AT_F32, 4, EXTENTS(1, 1, 6, 3));
    made_add(m, "v", AT_F32, 4, EXTENTS(1, 1, 6, 2));
    return m;
}

/* Files of one test: in a directory of its own, so that "nothing is left" can be counted. */
static char made_dir[64];

static inline const char *made_path(const char *name)
{
    static char path[4][160];
    static int turn;
    if (!*made_dir) {
        strcpy(made_dir, "/tmp/attest-check-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(made_dir));
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", made_dir, name);
    return path[turn];
}

/* A link to a device: a writer that wrongly renames over it, run as root, then replaces the link
 * and not the machine's device. Tests hand no writer a name under /dev. */
static inline const char *made_device(const char *name)
{
    char device[40];
    const char *path = made_path(name);
    snprintf(device, sizeof device, "/dev/%s", name);
    unlink(path);
    ck_assert_int_eq(symlink(device, path), 0);
    return path;
}

static inline void made_clean(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", made_dir);
    if (*made_dir)
        ck_assert_int_eq(system(command), 0);
    *made_dir = 0;
}

static inline int made_count(void)
{
    char command[200];
    int n = -1;
    made_path("");
    snprintf(command, sizeof command, "ls -A %s | wc -l", made_dir);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static inline const char *made_file(struct made *m, const char *name, const char *meta)
{
    struct at_said said = {{0}};
    const char *path = made_path(name);
    m->all.attest = (char *)(uintptr_t)meta;
    ck_assert_msg(at_tensors_write(path, &m->all, &said), "%s", said.text);
    return path;
}

static inline const char *made_bytes(const char *name, const void *data, size_t n)
{
    const char *path = made_path(name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static inline size_t made_read(const char *path, char *to, size_t most)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(to, 1, most, f);
    fclose(f);
    return n;
}

/* Runs a suite of one case; its failures. */
static inline int run_suite(const char *name, TCase *t)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(t, 120);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

#endif

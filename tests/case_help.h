/* Reading a case in a test, or being refused one. SPDX-License-Identifier: MIT */
#ifndef CASE_HELP_H
#define CASE_HELP_H

#define AT_BITS 64
#include "at_math.h"
#include "make.h"

static struct at_case x;
static struct at_said said;

static inline void must_read(const char *path, const struct at_fields *flags)
{
    ck_assert_msg(at_case_read(path, flags, &x, &said), "%s", said.text);
}

static inline void must_refuse(const char *path, const struct at_fields *flags,
                               const char *sentence)
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

static inline struct at_fields flag(const char *name, const char *text)
{
    struct at_fields f = {.n = 1};
    snprintf(f.at[0].name, sizeof f.at[0].name, "%s", name);
    snprintf(f.at[0].text, sizeof f.at[0].text, "%s", text);
    return f;
}

static inline void forget(void)
{
    at_case_free(&x);
    made_clean();
}

#define META "{\"spec\":1,\"scale\":1}"

/* Sequences of 3, 0, 2 rows and 4, 1, 2 keys. */
static inline struct made *packed(void)
{
    struct made *m = calloc(1, sizeof *m);
    made_add(m, "q", AT_F32, 3, EXTENTS(6, 2, 3));
    made_add(m, "k", AT_F32, 3, EXTENTS(7, 1, 3));
    made_add(m, "v", AT_F32, 3, EXTENTS(7, 1, 2));
    made_list(m, "cu_seqlens_q", 4, EXTENTS(0, 3, 3, 5)); /* row 5 belongs to no sequence */
    made_list(m, "cu_seqlens_k", 4, EXTENTS(0, 4, 5, 7));
    return m;
}

#endif

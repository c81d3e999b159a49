/* Memory for a stranger's kernel: between pages that nobody may touch.
 * SPDX-License-Identifier: MIT */
#ifndef GUARD_H
#define GUARD_H

#include "oracle.h"

/* bytes at data, which is aligned to 64 and ends within 63 bytes of a page without access; another
 * lies before its first page. Everything is 0xff, which is NaN in every dtype. */
struct guarded {
    char name[24], *map, *data;
    int64_t span, bytes;
    bool input;
};

enum { MOST_GUARDED = 40 };

struct guards {
    int64_t n;
    struct guarded at[MOST_GUARDED];
};

/* Seen by a child process too; NULL: no memory. */
void *shared_make(size_t bytes);
/* from == NULL: an output, whose pages a child process shares. Else an input, copied and read-only.
 * NULL: no memory. */
struct guarded *guard_add(struct guards *all, const char *name, const void *from, int64_t bytes);
/* The first buffer beside which something was written, and how many bytes; NULL: none. */
const struct guarded *guard_spilled(const struct guards *all, int64_t *bytes);
/* "a write to input k, at byte 12 of 4096" of an address that could not be accessed. */
void guard_tell(const struct guards *all, const void *address, char *text, size_t size);
void guard_free(struct guards *all);

#endif

/* Guarded memory. A buffer's end lies against a page without access, so that the first access past
 * it is a fault; what alignment to 64 leaves between them is looked at afterwards.
 * Does not see: a read in those bytes (it gets NaN), or an access further off than MARGIN.
 * SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "guard.h"
#include "at_index.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, MARGIN = 1 << 20 }; /* of pages without access on either side */

static int64_t page(void) { return (int64_t)sysconf(_SC_PAGESIZE); }
static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

void *shared_make(size_t bytes)
{
    void *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return x == MAP_FAILED ? NULL : x;
}

struct guarded *guard_add(struct guards *all, const char *name, const void *from, int64_t bytes)
{
    int64_t body = round_up(round_up(bytes, ALIGN), page()), span = body + 2 * MARGIN;
    int kind = (from ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS;
    if (all->n == MOST_GUARDED || bytes < 0)
        return NULL;
    char *map = mmap(NULL, (size_t)span, PROT_NONE, kind, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    struct guarded *g = &all->at[all->n++];
    *g = (struct guarded){.map = map, .span = span, .bytes = bytes, .input = from != NULL};
    snprintf(g->name, sizeof g->name, "%s", name);
    g->data = map + MARGIN + body - round_up(bytes, ALIGN);
    if (mprotect(map + MARGIN, (size_t)body, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    memset(map + MARGIN, 0xff, (size_t)body);
    if (from && bytes > 0)
        memcpy(g->data, from, (size_t)bytes);
    return !from || mprotect(map + MARGIN, (size_t)body, PROT_READ) == 0 ? g : NULL;
}

const struct guarded *guard_spilled(const struct guards *all, int64_t *bytes)
{
    for (int64_t k = 0; k < all->n; k++) {
        const struct guarded *g = &all->at[k];
        const char *first = g->map + MARGIN, *end = g->map + g->span - MARGIN;
        *bytes = 0;
        for (const char *at = first; at < g->data; at++)
            *bytes += *at != (char)0xff;
        for (const char *at = g->data + g->bytes; at < end; at++)
            *bytes += *at != (char)0xff;
        if (*bytes > 0)
            return g;
    }
    return NULL;
}

void guard_tell(const struct guards *all, const void *address, char *text, size_t size)
{
    const char *at = address;
    for (int64_t k = 0; k < all->n; k++) {
        const struct guarded *g = &all->at[k];
        long long to = at - g->data, bytes = g->bytes;
        if (at < g->map || at >= g->map + g->span)
            continue;
        if (to < 0)
            snprintf(text, size, "an access %lld bytes before the start of %s", -to, g->name);
        else if (to >= bytes)
            snprintf(text, size, "an access %lld bytes past the end of %s (%lld bytes)", to - bytes,
                     g->name, bytes);
        else
            snprintf(text, size, "a write to %s %s, at byte %lld of %lld",
                     g->input ? "input" : "output", g->name, to, bytes);
        return;
    }
    snprintf(text, size, "an access to %p, in none of its buffers", address);
}

void guard_free(struct guards *all)
{
    for (int64_t k = 0; k < all->n; k++)
        munmap(all->at[k].map, (size_t)all->at[k].span);
    all->n = 0;
}

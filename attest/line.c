/* The command line as text, so that a report can repeat it. SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdio.h>
#include <string.h>

/* The command as it can be pasted into a shell. */
void line_join(int argc, char **argv, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "attest");
    for (int k = 0; k < argc && n < size; k++) {
        bool bare = strspn(argv[k], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_./-,:=@+%") == strlen(argv[k]);
        n += (size_t)snprintf(to + n, size - n, bare && *argv[k] ? " %s" : " '%s'", argv[k]);
    }
}

struct options line_alone(const struct options *o, int k)
{
    struct options one = *o;
    char word[1000], *at;
    for (int t = 1; t < o->files; t++) {
        size_t n = (size_t)snprintf(word, sizeof word, " %s", o->file[t]);
        if (t == k || n >= sizeof word || !(at = strstr(one.line, word)) || (at[n] && at[n] != ' '))
            continue;
        memmove(at, at + n, strlen(at + n) + 1);
    }
    return one;
}

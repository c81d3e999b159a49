/* The command line as text, so that a report can repeat it. SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int line_command(const char *name)
{
    static const char *const names[] = {"judge", "check", "run",  "truth",
                                        "trace", "show",  "list", "generate"};
    for (int k = 0; k < 8; k++)
        if (strcmp(names[k], name) == 0)
            return 1 << k;
    return 0;
}

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

bool line_alarm(const char *text, double *alarm, struct at_said *said)
{
    char *end;
    *alarm = strtod(text, &end);
    return (*text && !*end && *alarm > 0 && *alarm < 1) ||
           at_say(said, "--confidence %s: expected a probability of a false alarm, as 0.000001",
                  text);
}

/* --window L,0 --causal ... is one statement. */
void drop_right_zero(struct at_fields *f)
{
    bool causal = false;
    for (int64_t k = 0; k < f->n; k++)
        causal = causal || strcmp(f->at[k].name, "causal") == 0;
    for (int64_t k = 0; causal && k < f->n; k++)
        if (strcmp(f->at[k].name, "right") == 0 && strcmp(f->at[k].text, "0") == 0)
            f->at[k] = f->at[--f->n];
}

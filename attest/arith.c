/* Arithmetics in words: read from a command line or a file, and written so that they read back.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool arith_parse(const char *text, struct at_arith *to, struct at_said *said)
{
    struct at_why why = {{0}};
    return at_arith_read(to, text, &why) || at_say(said, "arithmetic %.100s: %s", text, why.text);
}

/* ",tile=64"; a zero says nothing. */
static size_t add(char *text, size_t size, size_t n, const char *key, int64_t x)
{
    if (x != 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, ",%s=%lld", key, (long long)x);
    return n;
}

/* Our engines differ from the preset of their compute type in how keys are grouped and in having
 * at_math.h's exp, whose error is 1 where nothing is said. */
void arith_text(const struct at_arith *x, char *text, size_t size)
{
    bool preset = at_arith_find(x->name) != NULL;
    size_t n = (size_t)snprintf(text, size, "%s", preset ? x->name : at_dtype_name(x->compute));
    if (preset)
        return;
    n = add(text, size, n, "exp_ulps", x->exp_ulps > 0 ? (int64_t)ceil(x->exp_ulps) : 1);
    n = add(text, size, n, "dot", x->dot);
    n = add(text, size, n, "tile", x->tile);
    add(text, size, n, "joins", x->joins);
}

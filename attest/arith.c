/* Arithmetics in words: read from a command line or a file, and written so that they read back.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "ref.h"
#include <stdio.h>
#include <string.h>

bool arith_parse(const char *text, struct at_arith *to, struct at_said *said)
{
    struct at_why why = {{0}};
    return at_arith_read(to, text, &why) || at_say(said, "arithmetic %.100s: %s", text, why.text);
}

/* Our engines differ from a preset in how keys are grouped, and in no other field. */
void arith_text(const struct at_arith *x, char *text, size_t size)
{
    if (at_arith_find(x->name))
        snprintf(text, size, "%s", x->name);
    else
        snprintf(text, size, "%s,exp_ulps=%g,dot=%lld,tile=%lld,joins=%lld",
                 at_dtype_name(x->compute), x->exp_ulps > 0 ? x->exp_ulps : 1, (long long)x->dot,
                 (long long)x->tile, (long long)x->joins);
}

const struct at_arith *ladder_at(enum at_dtype dtype, int64_t k)
{
    return at_arith_ladder(dtype, k);
}

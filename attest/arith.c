/* Arithmetics by name. SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdio.h>
#include <string.h>

bool arith_parse(const char *text, struct at_arith *to, struct at_said *said)
{
    const struct at_arith *preset = at_arith_find(text);
    if (!preset)
        return at_say(said, "arithmetic %s: unknown, expected one of `attest list arith`", text);
    *to = *preset;
    return true;
}

const struct at_arith *ladder_at(enum at_dtype dtype, int64_t k)
{
    (void)dtype;
    return at_arith_at(k);
}

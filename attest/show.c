/* attest show CASE: what a case is. SPDX-License-Identifier: MIT */
#include "program.h"

int run_show(const struct options *o)
{
    struct at_case x;
    struct at_said said;
    if (o->files != 1) {
        at_say(&said, "show: expected attest show CASE");
        return refuse(&said);
    }
    if (!open_case(o, o->file[0], &x, &said))
        return refuse(&said);
    print_case(&x);
    at_case_free(&x);
    return PASS;
}

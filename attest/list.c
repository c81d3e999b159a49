/* attest list [engines|arith|faults|suites]: what there is. SPDX-License-Identifier: MIT */
#include "program.h"
#include <string.h>

int run_list(const struct options *o)
{
    struct at_said said;
    const char *which = o->files > 0 ? o->file[0] : "all";
    bool known = strcmp(which, "all") == 0 || strcmp(which, "engines") == 0 ||
                 strcmp(which, "arith") == 0 || strcmp(which, "faults") == 0 ||
                 strcmp(which, "suites") == 0;
    if (o->files > 1 || !known) {
        at_say(&said, "list %s: expected engines, arith, faults or suites", which);
        return refuse(&said);
    }
    print_lists(which);
    return PASS;
}

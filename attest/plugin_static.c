/* In place of plugin_run.c and plugin_child.c where the binary is static: it has no loader.
 * SPDX-License-Identifier: MIT */
#include "plugin.h"

int plugin_run(struct job *job, int64_t limit, struct at_said *said)
{
    (void)limit;
    at_say(said,
           "engine %s: %s: this binary is static and loads no shared object, expected one of "
           "`make`",
           job->path, at_strstatus(AT_ERR_UNSUPPORTED));
    return MISUSE;
}

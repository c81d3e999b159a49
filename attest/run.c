/* attest run ENGINE CASE -o OUT: the result of one of our engines as a file that judge reads.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* How the result came about, and what it is held to. */
static char *metadata(const struct at_case *x, const struct at_named *got)
{
    json_t *m = json_pack("{s:i, s:s, s:{s:{s:s, s:s}}}", "spec", 1, "layout", x->layout, "results",
                          "", "arith", got->arith, "from", got->from);
    char *text = json_dumps(m, JSON_COMPACT);
    json_decref(m);
    return text;
}

static bool write_result(const struct at_case *x, const struct at_named *got, const char *path,
                         struct at_said *said)
{
    struct at_tensor t[2] = {at_case_out(x, "out", got->got.out.dtype, got->got.out.data),
                             at_case_lse(x, "lse", got->got.lse.dtype, got->got.lse.data)};
    struct at_tensors file = {.n = 2, .tensor = t, .attest = metadata(x, got)};
    if (!file.attest)
        return at_say(said, "%s: no memory", path);
    bool done = at_tensors_write(path, &file, said);
    free(file.attest);
    return done;
}

int run_run(const struct options *o)
{
    struct at_case x;
    struct at_named got;
    struct at_arith arith;
    struct at_said said;
    if (o->files != 2 || !o->out) {
        at_say(&said, "run: expected attest run ENGINE CASE -o OUT");
        return refuse(&said);
    }
    if (!open_case(o, o->file[1], &x, &said))
        return refuse(&said);
    int status = MISUSE;
    if (is_plugin(o->file[0]))
        status = plugin_result(o, &x, &got, &arith, &said);
    else if (engine_result(o->file[0], o, &x, &got, &arith, &said))
        status = PASS;
    if (status == PASS && !write_result(&x, &got, o->out, &said))
        status = MISUSE;
    at_case_free(&x);
    if (status != PASS)
        refuse(&said);
    return status;
}

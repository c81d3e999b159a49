/* attest check ENGINE CASE...: runs one of our engines and judges it under its own arithmetic.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdlib.h>

/* The engine's result becomes the case's last one. */
static bool check(struct session *s, const char *engine, const char *path, struct at_arith *arith,
                  struct at_said *said)
{
    struct at_named got;
    if (!open_case(s->o, path, &s->x, said))
        return false;
    if (!engine_result(engine, s->o, &s->x, &got, arith, said))
        return false;
    s->first = s->x.results;
    struct at_named *grown = realloc(s->x.result, (size_t)(s->first + 1) * sizeof *grown);
    if (!grown)
        return at_say(said, "%s: no memory", path);
    s->x.result = grown;
    s->x.result[s->x.results++] = got;
    s->stated = arith;
    return session_judge(s, said);
}

/* A failure outweighs an undecided case; misuse ends it. */
static int worse(int x, int y)
{
    if (x == FAIL || y == FAIL)
        return FAIL;
    return x == UNDECIDED || y == UNDECIDED ? UNDECIDED : PASS;
}

int run_check(const struct options *o)
{
    struct at_said said;
    int status = PASS;
    if (o->files < 2) {
        at_say(&said, "check: %s, expected attest check ENGINE CASE...",
               o->files ? "no case given" : "no engine given");
        return refuse(&said);
    }
    int beside = 0;
    for (int k = 1; k < o->files; k++) {
        if (at_is_beside(o->file[k])) {
            beside++;
            continue;
        }
        struct options single = line_alone(o, k);
        struct session s = {.o = &single};
        struct at_arith arith;
        bool done = check(&s, o->file[0], o->file[k], &arith, &said);
        int one = done ? session_report(&s) : refuse(&said);
        session_free(&s);
        if (one == MISUSE)
            return MISUSE;
        status = worse(status, one);
    }
    if (beside == o->files - 1) {
        at_say(&said, "check: %d manifests and intervals found, expected a case", beside);
        return refuse(&said);
    }
    if (beside > 0 && !o->json)
        print_beside(beside);
    return status;
}

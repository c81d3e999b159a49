/* attest judge CASE [GOT...]: the results of the case, or those of other files, against its truth.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include <string.h>

/* Every result must be the first one's equal. */
static int same_bits(const struct session *s)
{
    struct at_place p;
    int64_t column;
    int status = PASS;
    for (int64_t k = 1; k < s->entries; k++) {
        const struct at_named *x = s->entry[0].result, *y = s->entry[k].result;
        if (x->got.out.dtype == y->got.out.dtype &&
            !at_differ(&s->x.a, &x->got, &y->got, &p, &column))
            continue;
        if (x->got.out.dtype != y->got.out.dtype)
            p = (struct at_place){0, 0, 0}, column = 0;
        print_differ(s, x->name, y->name, p, column);
        status = FAIL;
    }
    return status;
}

/* The result of that name alone. */
static bool keep_only(struct session *s, const char *name)
{
    for (int64_t k = s->first; k < s->x.results; k++)
        if (strcmp(s->x.result[k].name, name) == 0) {
            s->x.result[s->first] = s->x.result[k];
            s->x.results = s->first + 1;
            return true;
        }
    return false;
}

static bool judge(struct session *s, struct at_said *said)
{
    const struct options *o = s->o;
    if (o->files < 1)
        return at_say(said, "judge: no case given (attest judge CASE [GOT...])");
    if (!open_case(o, o->file[0], &s->x, said))
        return false;
    if (o->files > 1)
        s->first = s->x.results; /* the files' results alone */
    for (int k = 1; k < o->files; k++)
        if (!at_case_add(&s->x, o->file[k], &o->fields, said))
            return false;
    if (o->only && !keep_only(s, o->only))
        return at_say(said, "%s: result %s: absent", o->file[0], o->only);
    if (s->x.results == s->first)
        return at_say(said, "%s: tensor out: absent, expected a result here or in a further file",
                      o->file[0]);
    if (o->same_bits && s->x.results - s->first < 2)
        return at_say(said, "judge: --same-bits with one result, expected at least two");
    return session_judge(s, said);
}

int run_judge(const struct options *o)
{
    struct session s = {.o = o};
    struct at_said said;
    int status = judge(&s, &said) ? session_report(&s) : refuse(&said);
    if (status != MISUSE && o->same_bits && same_bits(&s) == FAIL)
        status = FAIL;
    session_free(&s);
    return status;
}

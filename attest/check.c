/* attest check ENGINE CASE...: runs one of our engines, or a kernel in a shared object, and judges
 * it under its own arithmetic. SPDX-License-Identifier: MIT */
#include "plugin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- One case --------------------------------------------------------------------------------- */

/* The engine's result becomes the case's last one. PASS: it is there and was judged. */
static int check(struct session *s, const char *engine, const char *path, struct at_arith *arith,
                 struct at_said *said)
{
    struct at_named got;
    int status = MISUSE;
    if (!open_case(s->o, path, &s->x, said))
        return MISUSE;
    if (is_plugin(engine))
        status = plugin_result(s->o, &s->x, &got, arith, said);
    else if (engine_result(engine, s->o, &s->x, &got, arith, said))
        status = PASS;
    if (status != PASS)
        return status;
    s->first = s->x.results;
    struct at_named *grown = realloc(s->x.result, (size_t)(s->first + 1) * sizeof *grown);
    if (!grown) {
        at_say(said, "%s: no memory", path);
        return MISUSE;
    }
    s->x.result = grown;
    s->x.result[s->x.results++] = got;
    s->stated = arith->name ? arith : NULL;
    return session_judge(s, said) ? PASS : MISUSE;
}

/* The worst element in a line. */
static void tell(const struct session *s, struct outcome *x)
{
    const struct entry *e = &s->entry[0];
    const struct at_judgement *j = e->steps > 0 ? &e->step[e->steps - 1] : NULL;
    if (x->status == FAIL && j)
        snprintf(
            x->text, sizeof x->text,
            "%s[%lld,%lld,%lld,%lld] is %.9g, allowed [%.9g, %.9g]: ratio %.4g under %s, %lld of "
            "%lld elements fail",
            j->v.worst_c < 0 ? "lse" : "out", (long long)j->place.b, (long long)j->place.h,
            (long long)j->place.i, (long long)at_max(j->v.worst_c, 0), j->v.got, j->v.lo, j->v.hi,
            j->v.ratio, held_to(e), (long long)j->v.failed, (long long)j->v.judged);
    if (x->status == UNDECIDED)
        snprintf(x->text, sizeof x->text, "undecided: %s",
                 e->ladder ? "nobody stated an arithmetic (--arith)" : "elements without a claim");
}

static void check_one(const struct options *o, const char *path, struct outcome *x)
{
    struct session s = {.o = o};
    struct at_said said = {{0}};
    struct at_arith arith = {0};
    double start = now();
    snprintf(x->file, sizeof x->file, "%s", path);
    snprintf(x->name, sizeof x->name, "%.120s", path);
    int made = check(&s, o->file[0], path, &arith, &said);
    if (*s.x.name)
        snprintf(x->name, sizeof x->name, "%s", s.x.name);
    x->status = made;
    snprintf(x->text, sizeof x->text, "%s", said.text);
    if (made == MISUSE)
        refuse(&said);
    else if (made != PASS)
        (o->json ? print_broken_json : print_broken)(&s, o->file[0], x);
    else {
        x->status = session_report(&s);
        tell(&s, x);
    }
    x->seconds = now() - start;
    session_free(&s);
}

/* -- All cases -------------------------------------------------------------------------------- */

/* In a process of its own: a kernel's process can only be forked from one that has not used OpenMP,
 * and judging uses it. */
static void check_apart(const struct options *o, const char *path, struct outcome *x)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        check_one(o, path, x);
        fflush(NULL);
        _exit(0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return;
    struct at_said said;
    at_say(&said, "%s: the process that judges it ended early", path);
    snprintf(x->text, sizeof x->text, "%s", said.text);
    x->status = refuse(&said);
}

/* A failure outweighs an undecided case; misuse ends it. */
static int worse(int x, int y)
{
    if (x == MISUSE || y == MISUSE)
        return MISUSE;
    if (x == FAIL || y == FAIL)
        return FAIL;
    return x == UNDECIDED || y == UNDECIDED ? UNDECIDED : PASS;
}

static int check_all(const struct options *o, struct outcome *x, struct at_said *said)
{
    int status = PASS, n = 0, beside = 0;
    for (int k = 1; k < o->files && status != MISUSE; k++) {
        if (at_is_beside(o->file[k])) {
            beside++;
            continue;
        }
        struct options single = line_alone(o, k);
        x[n].status = MISUSE;
        (is_plugin(o->file[0]) ? check_apart : check_one)(&single, o->file[k], &x[n]);
        status = worse(status, x[n++].status);
    }
    if (n == 0) {
        at_say(said, "check: %d manifests and intervals found, expected a case", beside);
        return refuse(said);
    }
    if (beside > 0 && status != MISUSE && !o->json)
        print_beside(beside);
    if (o->junit && !junit_write(o->junit, o->file[0], x, n, said))
        return refuse(said);
    return status;
}

int run_check(const struct options *o)
{
    struct at_said said;
    if (o->files < 2) {
        at_say(&said, "check: %s, expected attest check ENGINE CASE...",
               o->files ? "no case given" : "no engine given");
        return refuse(&said);
    }
    size_t bytes = (size_t)o->files * sizeof(struct outcome);
    struct outcome *x = shared_make(bytes);
    if (!x) {
        at_say(&said, "check: no memory for %d outcomes", o->files);
        return refuse(&said);
    }
    int status = check_all(o, x, &said);
    munmap(x, bytes);
    return status;
}

/* The process of a stranger's kernel: forked, waited for within a limit, and what its end says.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* strsignal */
#include "plugin.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* False: the limit has passed and the child was ended. */
static bool wait_within(pid_t child, double limit, int *status)
{
    double end = now() + limit;
    struct timespec nap = {0, 500000};
    while (waitpid(child, status, WNOHANG) == 0) {
        if (now() > end) {
            kill(-child, SIGKILL);
            kill(child, SIGKILL);
            waitpid(child, status, 0);
            return false;
        }
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < 8000000 ? 2 * nap.tv_nsec : nap.tv_nsec;
    }
    kill(-child, SIGKILL); /* what it has started */
    return true;
}

static int failed(struct at_said *said, const char *what, const char *detail)
{
    at_say(said, "%s%s%s", what, *detail ? ": " : "", detail);
    return FAIL;
}

/* What the child mapped is no memory of ours: `own` buffers are. */
static int verdict(struct told *t, int64_t own, int status, struct at_said *said)
{
    char text[200] = "", what[200];
    int64_t bytes;
    const char *when = t->stage == LOADING ? " while it was loaded" : "";
    if (WIFSIGNALED(status)) {
        if (t->signal == WTERMSIG(status))
            guard_tell(&t->guards, t->address, text, sizeof text);
        snprintf(what, sizeof what, "ended by signal %d (%s)%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), when);
        t->guards.n = own;
        return failed(said, what, text);
    }
    t->guards.n = own;
    if (t->stage == NOT_LOADED) {
        *said = t->said;
        return MISUSE;
    }
    if (t->stage != RETURNED) {
        snprintf(what, sizeof what, "ended its process with status %d%s", WEXITSTATUS(status),
                 when);
        return failed(said, what, "");
    }
    const struct guarded *g = t->spilled > 0 ? NULL : guard_spilled(&t->guards, &bytes);
    if (g || t->spilled > 0) {
        snprintf(text, sizeof text, "%lld bytes beside %s", (long long)(g ? bytes : t->spilled),
                 g ? g->name : t->beside);
        return failed(said, "wrote outside its outputs", text);
    }
    if (t->status == AT_ERR_UNSUPPORTED || t->status == AT_ERR_DTYPE) {
        at_say(said, "not served: %s", at_strstatus(t->status));
        return UNDECIDED;
    }
    return t->status == AT_OK
               ? PASS
               : failed(said, "returned an error on a valid problem", at_strstatus(t->status));
}

int plugin_run(struct job *job, int64_t limit, struct at_said *said)
{
    int status = 0;
    int64_t own = job->told->guards.n;
    char text[100];
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        at_say(said, "engine %s: no process to run it in", job->path);
        return MISUSE;
    }
    if (child == 0)
        plugin_child(job);
    if (wait_within(child, (double)limit, &status))
        return verdict(job->told, own, status, said);
    job->told->guards.n = own;
    snprintf(text, sizeof text, "ended after the %lld s of --limit", (long long)limit);
    return failed(said, "did not return", text);
}

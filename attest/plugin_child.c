/* The process that a stranger's kernel runs in. It was forked before anything used OpenMP, whose
 * threads a fork loses. Inputs are read-only; outputs, states and every malloc are filled with NaN.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* M_PERTURB, prctl */
#include "at_plugin.h"
#include "plugin.h"
#include "ref.h"
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct told *told;
static const struct at_engine *real;

/* -- Its own ground --------------------------------------------------------------------------- */

/* Noted, then done again without a handler: the process ends by the signal. */
static void caught(int number, siginfo_t *info, void *context)
{
    (void)context;
    told->signal = number;
    told->address = info->si_addr;
}

static void prepare(void)
{
    static char stack[1 << 16]; /* a kernel that overflows its own is caught too */
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction on = {.sa_sigaction = caught,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    struct rlimit none = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &on, NULL);
    sigaction(SIGBUS, &on, NULL);
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0x100); /* fresh memory is the complement of the low byte: 0xff */
#endif
}

/* -- Loading ---------------------------------------------------------------------------------- */

/* A symbol's address as the function that it is. */
static bool look_up(void *object, const char *path, const char *name, void *to)
{
    void *at = dlsym(object, name);
    memcpy(to, &at, sizeof at);
    return at || at_say(&told->said, "engine %s: symbol %s: absent, expected as in at_plugin.h",
                        path, name);
}

static bool load(const char *path)
{
    int (*abi)(void);
    const struct at_engine *(*engine)(void);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return at_say(&told->said, "engine %s: cannot be loaded: %s", path, dlerror());
    if (!look_up(object, path, "attest_abi", &abi) ||
        !look_up(object, path, "attest_engine", &engine))
        return false;
    if (abi() != AT_ABI)
        return at_say(&told->said, "engine %s: ABI %d found, expected %d: compile it again", path,
                      abi(), AT_ABI);
    real = engine();
    if (!real || !real->name || !(real->forward || real->attend_f32 || real->attend_f64))
        return at_say(&told->said,
                      "engine %s: attest_engine() gives no name or nothing to run, expected "
                      "forward, attend_f32 or attend_f64",
                      path);
    return true;
}

/* -- Running ---------------------------------------------------------------------------------- */

static bool guarded_state(const struct at_state *like, struct at_state *to)
{
    const struct at_view *from[3] = {&like->m, &like->l, &like->u};
    struct at_view *view[3] = {&to->m, &to->l, &to->u};
    static const char *const name[3] = {"state m", "state l", "state u"};
    for (int k = 0; k < 3; k++) {
        const int64_t *d = from[k]->dim;
        enum at_dtype dtype = from[k]->dtype;
        int64_t bytes = d[0] * d[1] * d[2] * d[3] * at_dtype_size(dtype);
        struct guarded *g = guard_add(&told->guards, name[k], NULL, bytes);
        if (!g)
            return false;
        *view[k] = at_bhsd(g->data, dtype, d[0], d[1], d[2], d[3]);
    }
    return true;
}

/* Row by row, since packed rows of no sequence are not the kernel's to write. */
static void copy_rows(const struct at_attention *a, const struct at_view *from, struct at_view *to)
{
    int64_t n = to->dim[0] * to->dim[1] * to->dim[2], size = at_dtype_size(to->dtype) * to->dim[3];
    for (int64_t t = 0; t < n; t++)
        if (at_place_of(a, (struct at_rows){0, NULL}, t).b >= 0)
            memcpy((char *)to->data + t * size, (const char *)from->data + t * size, (size_t)size);
}

/* The kernel's attend into guarded states, which go with the call. */
static enum at_status attend(const struct at_attention *a, int64_t j0, int64_t j1,
                             const struct at_state *x)
{
    at_attend *f = a->plan.compute == AT_F64 ? real->attend_f64 : real->attend_f32;
    struct at_state mine, to = *x;
    int64_t first = told->guards.n, spilled;
    if (!f)
        return AT_ERR_UNSUPPORTED;
    if (!guarded_state(x, &mine))
        return AT_ERR_MEMORY;
    enum at_status status = f(a, j0, j1, &mine);
    copy_rows(a, &mine.m, &to.m);
    copy_rows(a, &mine.l, &to.l);
    copy_rows(a, &mine.u, &to.u);
    const struct guarded *g = guard_spilled(&told->guards, &spilled);
    if (g && told->spilled == 0) {
        told->spilled = spilled;
        snprintf(told->beside, sizeof told->beside, "%s", g->name);
    }
    struct guards done = {.n = told->guards.n - first};
    memcpy(done.at, &told->guards.at[first], (size_t)done.n * sizeof *done.at);
    guard_free(&done);
    told->guards.n = first;
    return status;
}

/* A kernel that does not write q's dtype is asked once more, for its compute type. */
static void run(const struct job *job)
{
    struct at_engine e = *real;
    struct at_result to = {job->out[0], job->lse};
    e.attend_f32 = real->attend_f32 ? attend : NULL;
    e.attend_f64 = real->attend_f64 ? attend : NULL;
    if (!engine_fits(real, &job->a, &told->said)) {
        told->stage = NOT_LOADED;
        return;
    }
    told->stage = RUNNING;
    told->which = e.forward ? 0 : 1;
    to.out = job->out[told->which];
    told->status = at_forward(&e, &job->a, &to);
    if (told->status == AT_ERR_DTYPE && told->which == 0) {
        told->which = 1;
        to.out = job->out[1];
        told->status = at_forward(&e, &job->a, &to);
    }
    if (real->arith) {
        told->arith = real->arith(&job->a);
        told->has_arith = true;
        snprintf(told->arith_name, sizeof told->arith_name, "%s",
                 told->arith.name ? told->arith.name : real->name);
        snprintf(told->source, sizeof told->source, "%s",
                 told->arith.source ? told->arith.source : "the shared object");
    }
    told->stage = RETURNED;
}

void plugin_child(const struct job *job)
{
    told = job->told;
    prepare();
    if (load(job->path)) {
        snprintf(told->name, sizeof told->name, "%s", real->name);
        run(job);
    } else
        told->stage = NOT_LOADED;
    fflush(NULL);
    _exit(0);
}

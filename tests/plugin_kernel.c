/* The C template with a fault that FAULT names: what attest check must survive and tell.
 * SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#define attest_abi template_abi
#define attest_engine template_engine
#include "peers/templates/kernel.c"
#undef attest_abi
#undef attest_engine
#include <stdlib.h>
#include <unistd.h>

int attest_abi(void);
const struct at_engine *attest_engine(void);

static bool fault(const char *name)
{
    const char *set = getenv("FAULT");
    return set && strcmp(set, name) == 0;
}

static int deeper(volatile int n)
{
    volatile char page[4096] = {(char)n};
    return n < 0 ? page[0] : deeper(n + 1) + page[1];
}

/* Faults before anything is computed. */
static void early(const struct at_attention *a, const struct at_result *to)
{
    float *out = to->out.data, *q = a->q.data;
    if (fault("null"))
        *(volatile float *)(uintptr_t)16 = 1;
    if (fault("abort"))
        abort();
    if (fault("exit"))
        exit(0);
    if (fault("stack"))
        deeper(0);
    if (fault("hang"))
        for (;;)
            pause();
    if (fault("write-input"))
        q[3] = 1;
    if (fault("write-past-end"))
        out[at_max(1, to->out.dim[0] * to->out.dim[1] * to->out.dim[2] * to->out.dim[3])] = 1;
    if (fault("write-before"))
        ((volatile char *)out)[-8192] = 1;
    if (fault("read-past-end"))
        q[0] += ((volatile float *)a->k.data)[1024];
}

/* Faults in a finished answer. */
static void late(const struct at_result *to)
{
    float *out = to->out.data, *lse = to->lse.data;
    if (fault("write-beside"))
        lse[to->lse.dim[0] * to->lse.dim[1] * to->lse.dim[2]] = 1;
    if (fault("write-just-before"))
        out[-1] = 1;
    if (fault("wrong"))
        out[5] += 0.5f;
    if (fault("malloc")) {
        float *space = malloc(400 * sizeof *space);
        if (space)
            out[5] += space[77]; /* never written: NaN, so that it shows */
        free(space);
    }
}

static enum at_status faulty(const struct at_attention *a, const struct at_result *to)
{
    static int calls;
    if (fault("error"))
        return AT_ERR_SHAPE;
    if (fault("unsupported"))
        return AT_ERR_UNSUPPORTED;
    if (fault("dtype") && calls++ == 0)
        return AT_ERR_DTYPE; /* "not in q's": asked again */
    early(a, to);
    int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
    threads++; /* a team, which a fork after OpenMP would wait for in vain */
    struct at_result all = *to, *mine = fault("left") ? &all : NULL;
    size_t n = (size_t)(to->out.dim[0] * to->out.dim[1] * to->out.dim[2] * to->out.dim[3]);
    float space[400];
    if (mine)
        mine->out.data = space;
    enum at_status status = threads > 0 ? forward(a, mine ? mine : to) : AT_ERR_MEMORY;
    for (size_t k = 0; mine && k < n; k++)
        if (k != 5) /* which nobody writes */
            ((float *)to->out.data)[k] = space[k];
    late(to);
    return status;
}

/* The template's forward as a state of all keys: m the lse, l 1, u the output. */
static enum at_status attend(const struct at_attention *a, int64_t j0, int64_t j1,
                             const struct at_state *x)
{
    struct at_result to = {x->u, x->m};
    int64_t rows = x->l.dim[0] * x->l.dim[1] * x->l.dim[2];
    if (j0 != 0 || j1 < at_sizes(a).Skv)
        return AT_ERR_UNSUPPORTED;
    enum at_status status = forward(a, &to);
    for (int64_t t = 0; t < rows; t++)
        ((float *)x->l.data)[t] = 1;
    if (fault("attend-beside"))
        ((float *)x->m.data)[rows] = 1;
    if (fault("attend-past-end"))
        ((float *)x->l.data)[rows + 16] = 1;
    return status;
}

static struct at_arith stated(const struct at_attention *a)
{
    (void)a;
    if (fault("no-such-arith"))
        return (struct at_arith){.name = "fp31"};
    if (fault("fields")) /* a name of its own, every field its own */
        return (struct at_arith){.name = "my own", .source = "here", .compute = AT_F32};
    return (struct at_arith){.name = "fp32"};
}

int attest_abi(void) { return fault("abi") ? AT_ABI + 1 : AT_ABI; }

#ifndef NO_ENGINE
const struct at_engine *attest_engine(void)
{
    static struct at_engine e = {.name = "faulty", .arith = stated, .forward = faulty};
    if (fault("no-arith"))
        e.arith = NULL;
    if (fault("attend") || fault("attend-beside") || fault("attend-past-end")) {
        e.forward = NULL;
        e.attend_f32 = attend;
    }
    if (fault("nothing"))
        e.forward = NULL;
    return fault("no-engine") ? NULL : &e;
}

__attribute__((constructor)) static void loaded(void)
{
    if (fault("load"))
        abort();
}
#endif

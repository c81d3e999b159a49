/* Engines by name, and their results on a case. SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* _SC_PHYS_PAGES */
#include "gpu.h"
#include "program.h"
#include "ref.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct at_engine *const engines[] = {
    &at_scalar, &at_standard,   &at_tiled,   &at_gpu_emulated, &at_gpu_decode_emulated,
    &at_gpu,    &at_gpu_decode, &at_gpu_mma, &at_gpu_wgmma,
};

const struct at_engine *engine_at(int64_t k)
{
    return k < (int64_t)(sizeof engines / sizeof *engines) ? engines[k] : NULL;
}

const struct at_engine *engine_find(const char *name)
{
    for (int64_t k = 0; engine_at(k); k++)
        if (strcmp(engine_at(k)->name, name) == 0)
            return engine_at(k);
    return NULL;
}

void plan_case(const struct options *o, struct at_attention *a)
{
    enum at_dtype stated = a->plan.compute;
    a->plan = o->plan;
    if (a->plan.compute == AT_DEFAULT)
        a->plan.compute = stated;
}

static void say_plan(const struct at_engine *e, const struct at_plan *p, const char *fault,
                     struct at_named *to)
{
    static const char *const order[] = {"order", "reversed", "tree", "random"};
    snprintf(
        to->from, sizeof to->from,
        "attest %s%s%.60s: %s, key tile %lld, %lld splits, merged in %s, seed %llu, %lld lanes",
        e->name, fault ? " with fault " : "", fault ? fault : "", at_dtype_name(p->compute),
        (long long)p->bc, (long long)p->splits, order[p->merge], (unsigned long long)p->merge_seed,
        (long long)p->lanes);
}

/* Everything is NaN until it is written. */
static bool make_result(struct at_case *x, struct at_result *to)
{
    enum at_dtype dtype = x->a.plan.compute;
    int64_t rows = x->a.q.dim[0] * x->a.q.dim[1] * x->a.q.dim[2], Dv = x->a.v.dim[3];
    int64_t size = at_dtype_size(dtype);
    char *space = at_case_alloc(x, rows * (Dv + 1) * size);
    if (!space)
        return false;
    memset(space, 0xff, (size_t)(rows * (Dv + 1) * size));
    to->out = at_case_like_q(x, space, dtype, Dv);
    to->lse =
        at_bhsd(space + rows * Dv * size, dtype, x->a.q.dim[0], x->a.q.dim[1], x->a.q.dim[2], 1);
    return true;
}

/* Memory that is promised and not there would end the program halfway. */
bool engine_fits(const struct at_engine *e, const struct at_attention *a, struct at_said *said)
{
    int64_t need = e->workspace ? e->workspace(a) : 0;
    int64_t have = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    return need <= have / 2 ||
           at_say(
               said,
               "engine %s: needs %lld bytes of workspace on this problem, expected at most half of "
               "this machine's %lld",
               e->name, (long long)need, (long long)have);
}

bool engine_result(const char *engine, const struct options *o, struct at_case *x,
                   struct at_named *to, struct at_arith *arith, struct at_said *said)
{
    const struct at_engine *e = engine_find(engine);
    struct at_why why = {{0}};
    *to = (struct at_named){.arith = ""};
    if (o->fault && strcmp(engine, "scalar") != 0)
        return at_say(said, "%s: --fault with engine %s, expected scalar", o->command, engine);
    if (!e)
        return at_say(said, "engine %s: unknown, expected one of `attest list engines`", engine);
    plan_case(o, &x->a);
    if (at_validate(&x->a, &why) != AT_OK)
        return at_say(said, "%s: %s", x->path, why.text);
    x->a.plan = at_resolve(&x->a);
    if (!engine_fits(e, &x->a, said))
        return false;
    if (!make_result(x, &to->got))
        return at_say(said, "%s: no memory for the result", x->path);
    if (o->fault && !at_mutant_forward(o->fault, &x->a, &to->got, said))
        return false;
    enum at_status status = o->fault ? AT_OK : at_forward(e, &x->a, &to->got);
    const char *trouble = strncmp(engine, "gpu", 3) == 0 ? at_gpu_note()->trouble : "";
    if (status != AT_OK)
        return at_say(said, "%s: engine %s: %s%s%s", x->path, engine, at_strstatus(status),
                      *trouble ? ": " : "", trouble);
    snprintf(to->name, sizeof to->name, "%s%s%s", engine, o->fault ? " with " : "",
             o->fault ? o->fault : "");
    *arith = e->arith(&x->a);
    arith_text(arith, to->arith, sizeof to->arith);
    say_plan(e, &x->a.plan, o->fault, to);
    return true;
}

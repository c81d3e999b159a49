/* attest check ./my.so CASE...: a stranger's kernel between guard pages, in a process of its own,
 * within a time limit. A crash, a hang, a write where none is allowed is a verdict, not our end.
 * Here: its buffers, and its answer taken out of them. SPDX-License-Identifier: MIT */
#include "plugin.h"
#include "ref.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

bool is_plugin(const char *engine) { return strchr(engine, '/') != NULL; }

/* -- Inputs ----------------------------------------------------------------------------------- */

static bool guard_list(struct guards *all, const char *name, const void **list, int64_t bytes)
{
    struct guarded *g = *list ? guard_add(all, name, *list, bytes) : NULL;
    bool done = !*list || g;
    *list = g ? g->data : NULL;
    return done;
}

/* The elements from the first to the last; those between that are not its own come along. */
static bool guard_view(struct guards *all, const char *name, struct at_view *x)
{
    int64_t last = 0, count = 1;
    for (int k = 0; k < 4; k++) {
        last += (x->dim[k] - 1) * x->stride[k];
        count *= x->dim[k];
    }
    const void *data = x->data;
    bool done = guard_list(all, name, &data, count > 0 ? (last + 1) * at_dtype_size(x->dtype) : 0);
    x->data = (void *)(uintptr_t)data;
    return done;
}

static bool guard_lists(struct job *job)
{
    struct at_attention *a = &job->a;
    struct at_score *s = &a->score;
    int64_t B = at_sizes(a).B, parts = a->plan.splits - 1;
    int64_t entries = a->pages.indptr ? a->pages.indptr[B] : B * a->pages.width;
    const struct {
        const char *name;
        const void *list;
        int64_t bytes;
    } list[] = {{"offset", s->offset, 8 * B},
                {"q_len", s->q_len, 8 * B},
                {"kv_len", s->kv_len, 8 * B},
                {"q_start", s->q_start, 8 * B},
                {"kv_start", s->kv_start, 8 * B},
                {"page table", a->pages.table, 4 * entries},
                {"page indptr", a->pages.indptr, 4 * (B + 1)},
                {"plan.cut", a->plan.cut, 8 * parts}};
    const void *at[8];
    for (int k = 0; k < 8; k++) {
        at[k] = list[k].list;
        if (!guard_list(&job->told->guards, list[k].name, &at[k], list[k].bytes))
            return false;
    }
    s->offset = at[0], s->q_len = at[1], s->kv_len = at[2], s->q_start = at[3];
    s->kv_start = at[4], a->pages.table = at[5], a->pages.indptr = at[6], a->plan.cut = at[7];
    return true;
}

bool plugin_inputs(struct job *job, const struct at_attention *a)
{
    struct guards *all = &job->told->guards;
    job->a = *a;
    struct at_score *s = &job->a.score;
    return guard_lists(job) && guard_view(all, "q", &job->a.q) && guard_view(all, "k", &job->a.k) &&
           guard_view(all, "v", &job->a.v) && guard_view(all, "bias", &s->bias) &&
           guard_view(all, "mask", &s->mask) && guard_view(all, "alibi", &s->alibi) &&
           guard_view(all, "sink", &s->sink) && guard_view(all, "q_descale", &s->qscale) &&
           guard_view(all, "k_descale", &s->kscale) && guard_view(all, "v_descale", &s->vscale) &&
           guard_view(all, "keep", &job->a.dropout.keep);
}

/* -- Outputs ---------------------------------------------------------------------------------- */

static enum at_dtype narrow(enum at_dtype dtype)
{
    return dtype == AT_F8_E4M3 || dtype == AT_F8_E5M2 ? AT_BF16 : dtype;
}

static int64_t rows_of(const struct at_attention *a)
{
    return a->q.dim[0] * a->q.dim[1] * a->q.dim[2];
}

static bool outputs(struct job *job, const struct at_case *x)
{
    struct guards *all = &job->told->guards;
    const int64_t *q = x->a.q.dim, Dv = x->a.v.dim[3];
    enum at_dtype dtype[2] = {narrow(x->a.q.dtype), x->a.plan.compute};
    for (int k = 0; k < 2; k++) {
        struct guarded *g =
            guard_add(all, "out", NULL, rows_of(&x->a) * Dv * at_dtype_size(dtype[k]));
        if (!g)
            return false;
        job->out[k] = at_case_like_q(x, g->data, dtype[k], Dv);
    }
    struct guarded *g = guard_add(all, "lse", NULL, rows_of(&x->a) * at_dtype_size(dtype[1]));
    if (g)
        job->lse = at_bhsd(g->data, dtype[1], q[0], q[1], q[2], 1);
    return g != NULL;
}

/* Out of the guarded memory into the case's. */
static bool take_result(const struct job *job, struct at_case *x, struct at_named *to,
                        struct at_arith *arith, struct at_said *said)
{
    const struct told *t = job->told;
    struct at_view out = job->out[t->which], lse = job->lse;
    size_t wide = (size_t)(rows_of(&x->a) * x->a.v.dim[3] * at_dtype_size(out.dtype));
    size_t thin = (size_t)(rows_of(&x->a) * at_dtype_size(lse.dtype));
    char *space = at_case_alloc(x, (int64_t)(wide + thin)), *words = at_case_alloc(x, 400);
    if (!space || !words)
        return at_say(said, "%s: no memory for the result", x->path);
    memcpy(space, out.data, wide);
    memcpy(space + wide, lse.data, thin);
    out.data = space;
    lse.data = space + wide;
    to->got = (struct at_result){out, lse};
    snprintf(to->name, sizeof to->name, "%s", t->name);
    snprintf(to->from, sizeof to->from, "%.100s: engine %s", job->path, t->name);
    snprintf(words, 100, "%s", t->arith_name);
    snprintf(words + 100, 300, "%s", t->source);
    *arith = t->arith;
    if (t->has_arith && arith->compute == AT_DEFAULT) { /* its name says all */
        snprintf(to->arith, sizeof to->arith, "%s", words);
        return arith_parse(words, arith, said) && (arith->name = words);
    }
    arith->name = t->has_arith ? words : NULL;
    arith->source = words + 100;
    return true;
}

/* -- The whole --------------------------------------------------------------------------------- */

int plugin_result(const struct options *o, struct at_case *x, struct at_named *to,
                  struct at_arith *arith, struct at_said *said)
{
    struct at_why why = {{0}};
    struct job job = {.path = o->file[0], .told = shared_make(sizeof *job.told)};
    int status = MISUSE;
    *to = (struct at_named){.arith = ""};
    plan_case(o, &x->a);
    if (o->fault)
        at_say(said, "%s: --fault with engine %s, expected scalar", o->command, job.path);
    else if (at_validate(&x->a, &why) != AT_OK)
        at_say(said, "%s: %s", x->path, why.text);
    else if (job.told) {
        x->a.plan = at_resolve(&x->a);
        if (!plugin_inputs(&job, &x->a) || !outputs(&job, x))
            at_say(said, "%s: no memory for guarded buffers", x->path);
        else
            status = plugin_run(&job, o->limit, said);
        if (status == PASS && !take_result(&job, x, to, arith, said))
            status = MISUSE;
    } else
        at_say(said, "%s: no memory", x->path);
    if (job.told) {
        guard_free(&job.told->guards);
        munmap(job.told, sizeof *job.told);
    }
    return status;
}

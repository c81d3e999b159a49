/* A kernel as a shared object, run in a process of its own. SPDX-License-Identifier: MIT */
#ifndef PLUGIN_H
#define PLUGIN_H

#include "guard.h"
#include "program.h"

/* What child and parent both see. */
struct told {
    enum { LOADING, RUNNING, RETURNED, NOT_LOADED } stage;
    enum at_status status; /* RETURNED */
    int which;             /* of out[], that the kernel wrote */
    int signal;            /* it was ended by, where address could not be accessed */
    void *address;
    char name[64], arith_name[100], source[200];
    bool has_arith;
    struct at_arith arith;
    struct at_said said; /* NOT_LOADED */
    int64_t spilled;     /* bytes written beside a state, which the child alone can see, .. */
    char beside[24];     /* .. and its name */
    struct guards guards;
};

/* A problem in guarded memory, and where its answer goes: out in q's dtype and in the compute
 * type, of which an engine takes the first that it serves. */
struct job {
    const char *path;
    struct at_attention a;
    struct at_view out[2], lse;
    struct told *told;
};

/* The child's run. PASS: out[told->which] and lse hold an answer; else as plugin_result. */
int plugin_run(struct job *job, int64_t limit, struct at_said *said);
/* Child: loads, runs, tells, ends the process. */
void plugin_child(const struct job *job);
/* a's inputs in guarded memory become the job's; false: no memory. */
bool plugin_inputs(struct job *job, const struct at_attention *a);

#endif

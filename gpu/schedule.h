/* The emulation's scheduler: a block's fibers are resumed in turn until each has met its barrier,
 * its shuffle or its end. Part of emulate.h. SPDX-License-Identifier: MIT */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "emulate.h"

namespace emulate
{

static inline void enter()
{
    now->body(now->kernel, now->args);
    leave(DONE, 0);
}

__attribute__((noinline)) static void resume(struct fiber *f)
{
    bool fresh = f->turn < 0;
    self = f;
    if (_setjmp(now->scheduler))
        return;
    if (fresh) {
        f->turn = 0;
        setcontext(&f->start);
    }
    _longjmp(f->where, 1);
}

/* Threads first .. last-1 all stand in this state at one line: they may go on. */
static inline bool release(struct block *b, int first, int last, enum state state)
{
    for (int t = first; t < last; t++)
        if (b->fiber[t].state != state || b->fiber[t].line != b->fiber[first].line)
            return false;
    for (int t = first; t < last; t++)
        b->fiber[t].state = READY;
    return true;
}

static inline bool step(struct block *b)
{
    bool ran = false;
    for (int x = 0; x < b->threads && !b->failed; x++) { /* there and back: no order is promised */
        struct fiber *f = &b->fiber[b->interval % 2 ? x : b->threads - 1 - x];
        if (f->state == READY) {
            resume(f);
            ran = true;
        }
    }
    for (int w = 0; w < b->threads; w += WARP)
        ran = release(b, w, w + WARP < b->threads ? w + WARP : b->threads, SHUFFLE) || ran;
    return ran && !b->failed;
}

static inline void run(struct block *b)
{
    b->interval = 1;
    b->arrays = 0;
    b->bytes = 0;
    b->failed = false;
    for (int t = 0; t < b->threads; t++) {
        struct fiber *f = &b->fiber[t];
        f->thread = dim3((unsigned)t, 0, 0);
        f->id = t;
        f->line = f->taken = f->copies = f->groups = 0;
        f->turn = -1;
        f->state = READY;
        getcontext(&f->start);
        f->start.uc_stack.ss_sp = f->stack;
        f->start.uc_stack.ss_size = STACK;
        f->start.uc_link = NULL;
        makecontext(&f->start, enter, 0);
    }
    do {
        while (step(b))
            ;
        b->interval++;
    } while (!b->failed && release(b, 0, b->threads, BARRIER));
    for (int t = 0; t < b->threads && !b->failed; t++)
        if (b->fiber[t].state != DONE) {
            self = &b->fiber[t];
            record(self->line, "waits at a barrier or shuffle where others do not (of threads)",
                   b->threads, 0);
        }
    for (int k = 0; k < b->arrays; k++) {
        free(b->array[k].data);
        free(b->array[k].touched);
    }
}

static inline struct block *block_make(unsigned threads)
{
    struct block *b = (struct block *)calloc(1, sizeof *b);
    char *stacks = b ? (char *)malloc((size_t)threads * STACK) : NULL;
    for (int t = 0; stacks && t < (int)threads && t < THREADS; t++)
        b->fiber[t].stack = stacks + (size_t)t * STACK;
    return b;
}

/* Runs every block; true unless there was a fault or no memory. */
template <class A>
static inline bool launch(void (*kernel)(A), struct dim3 grid, unsigned threads, size_t bytes,
                          const A &args)
{
    fault_text[0] = 0;
    int64_t blocks = (int64_t)grid.x * grid.y * grid.z;
    bool good = true;
#pragma omp parallel reduction(&& : good)
    {
        struct block *b = now = block_make(threads);
        good = b && b->fiber[0].stack && threads <= THREADS;
#pragma omp for schedule(dynamic)
        for (int64_t x = 0; x < blocks; x++) {
            if (!good)
                continue;
            b->index = dim3((unsigned)(x % grid.x), (unsigned)(x / grid.x % grid.y),
                            (unsigned)(x / grid.x / grid.y));
            b->grid = grid;
            b->size = dim3(threads);
            b->threads = (int)threads;
            b->limit = bytes;
            b->control = at_emulation();
            b->kernel = (const void *)kernel;
            b->args = &args;
            b->body = [](const void *k, const void *a) { ((void (*)(A))k)(*(const A *)a); };
            run(b);
            good = !b->failed;
        }
        if (b)
            free(b->fiber[0].stack);
        free(b);
    }
    return good;
}

} // namespace emulate

#endif

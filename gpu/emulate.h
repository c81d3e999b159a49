/* CUDA's execution model on a CPU: the kernels' own source, compiled by a C++ compiler.
 *
 * A block's threads are fibers that run until they meet a barrier, a shuffle or their end; blocks
 * are spread over OpenMP's threads. Shared memory is reached through shared<T>, which remembers who
 * touched each element since which barrier. Caught, with a sentence that names both sides:
 *     an index outside its array - a read of what nobody wrote, or of a copy still under way - two
 *     threads at one element, one of them writing, with no barrier between - a barrier or shuffle
 *     that some threads of the block (warp) do not reach, or reach at another line.
 * Device memory is malloc's, sized to the byte, so that AddressSanitizer sees wrong indices there.
 * Not emulated: __syncwarp, atomics, cooperating blocks, tensor cores; time. No C++ library is
 * used.
 *
 * SPDX-License-Identifier: MIT */
#ifndef EMULATE_H
#define EMULATE_H

#include "gpu.h"
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace emulate
{

/* The first fault of a launch, or empty. */
inline char fault_text[200];

/* -- One block ------------------------------------------------------------------------------- */

enum { THREADS = 256, WARP = 32, ARRAYS = 8, COPIES = 128, STACK = 1 << 18 };
enum state { READY, SHUFFLE, BARRIER, DONE };

/* Who wrote and who read an element, and in which interval between barriers (0: never). */
struct touch {
    uint32_t write, read;
    int16_t writer, reader; /* reader -1: several */
    bool flying;            /* an asynchronous copy is under way */
};

struct array {
    char *data;
    struct touch *touched;
    int size, width; /* elements, bytes of one */
};

struct copy {
    struct array *to;
    int at, bytes;
    char data[16];
};

struct fiber {
    struct dim3 thread;
    int id, line, taken, copies, group[COPIES], groups;
    enum state state;
    jmp_buf where;
    ucontext_t start;
    char *stack;
    struct copy copy[COPIES];
    int64_t slot[2]; /* values offered to a shuffle; the parity alternates */
    int turn;
};

struct block {
    struct fiber fiber[THREADS];
    struct array array[ARRAYS];
    struct dim3 index, grid, size;
    uint32_t interval;
    int threads, arrays;
    size_t bytes, limit;
    jmp_buf scheduler;
    ucontext_t back;
    void (*body)(const void *kernel, const void *args);
    const void *kernel, *args;
    struct at_emulation *control;
    bool failed;
};

inline thread_local struct block *now;
inline thread_local struct fiber *self;

#define threadIdx (emulate::self->thread)
#define blockIdx (emulate::now->index)
#define gridDim (emulate::now->grid)
#define blockDim (emulate::now->size)

__attribute__((noreturn)) static inline void leave(enum state state, int line)
{
    self->state = state;
    self->line = line;
    _longjmp(now->scheduler, 1);
}

/* The first fault of a launch is kept; its block ends. */
static inline void record(int line, const char *what, int64_t x, int64_t y)
{
    now->failed = true;
#pragma omp critical(emulated_fault)
    if (!fault_text[0])
        snprintf(fault_text, sizeof fault_text,
                 "block (%u,%u,%u) thread %d after line %d: %s (%lld, %lld)", now->index.x,
                 now->index.y, now->index.z, self->id, line, what, (long long)x, (long long)y);
}

__attribute__((noreturn)) static inline void fault(const char *what, int line, int64_t x, int64_t y)
{
    record(line, what, x, y);
    leave(DONE, line);
}

static inline void pause(enum state state, int line)
{
    if (!_setjmp(self->where))
        leave(state, line);
}

/* -- Shared memory --------------------------------------------------------------------------- */

static inline struct touch *touched(struct array *a, int at)
{
    if (at < 0 || at >= a->size)
        fault("shared index outside its array (index, extent)", self->line, at, a->size);
    return &a->touched[at];
}

static inline void reads(struct array *a, int at)
{
    struct touch *t = touched(a, at);
    if (t->write == 0 || t->flying)
        fault(t->flying ? "reads a copy still under way (index, writer)"
                        : "reads shared memory that nobody wrote (index, extent)",
              self->line, at, t->flying ? t->writer : a->size);
    if (t->write == now->interval && t->writer != self->id)
        fault("race: reads what another thread writes, no barrier between (index, writer)",
              self->line, at, t->writer);
    t->reader = t->read == now->interval && t->reader != self->id ? -1 : (int16_t)self->id;
    t->read = now->interval;
}

static inline void writes(struct array *a, int at, bool flying)
{
    struct touch *t = touched(a, at);
    if (t->write == now->interval && t->writer != self->id)
        fault("race: two threads write, no barrier between (index, writer)", self->line, at,
              t->writer);
    if (t->read == now->interval && t->reader != self->id)
        fault("race: writes what another thread reads, no barrier between (index, reader)",
              self->line, at, t->reader);
    t->write = now->interval;
    t->writer = (int16_t)self->id;
    t->flying = flying;
}

template <class T> struct element {
    struct array *a;
    int at;
    operator T() const
    {
        T y;
        reads(a, at);
        memcpy(&y, a->data + (size_t)at * sizeof y, sizeof y);
        return y;
    }
    T operator=(T y) const
    {
        writes(a, at, false);
        memcpy(a->data + (size_t)at * sizeof y, &y, sizeof y);
        return y;
    }
    T operator=(const element &y) const { return *this = (T)y; }
};

/* A pointer into a shared array. */
template <class T> struct shared {
    struct array *a;
    int at;
    element<T> operator[](int x) const { return {a, at + x}; }
    shared operator+(int x) const { return {a, at + x}; }
};

/* The block's dynamic shared memory, taken piece by piece, by every thread in the same order. */
struct arena {
    template <class T> shared<T> take(int n)
    {
        int k = self->taken++;
        struct array *a = &now->array[k];
        if (k == now->arrays) {
            now->bytes += ((size_t)n * sizeof(T) + 15) / 16 * 16;
            if (k == ARRAYS || now->bytes > now->limit)
                fault("more shared memory than the launch gave (bytes, given)", 0,
                      (int64_t)now->bytes, (int64_t)now->limit);
            now->arrays++;
            *a = {(char *)calloc((size_t)n, sizeof(T)),
                  (struct touch *)calloc((size_t)n, sizeof(struct touch)), n - now->control->shrink,
                  (int)sizeof(T)};
        }
        return {a, 0};
    }
};

/* -- Asynchronous copies: they land when their thread waits ---------------------------------- */

template <class T> static inline void copy16(shared<T> to, const T *from, bool inside)
{
    struct copy *c = &self->copy[self->copies++];
    if (self->copies > COPIES)
        fault("the emulation holds fewer copies under way (copies, room)", self->line, COPIES, 0);
    *c = {to.a, to.at, 16, {}};
    if (inside)
        memcpy(c->data, from, 16);
    for (int x = 0; x < 16 / (int)sizeof(T); x++)
        writes(to.a, to.at + x, true);
}

static inline void commit() { self->group[self->groups++] = self->copies; }

/* All but the last `left` committed groups have landed. */
static inline void wait(int left)
{
    int done = self->groups > left ? self->group[self->groups - left - 1] : 0;
    if (now->control->skip_waits)
        return;
    for (int x = 0; x < done; x++) {
        struct copy *c = &self->copy[x];
        memcpy(c->to->data + (size_t)c->at * (size_t)c->to->width, c->data, 16);
        for (int e = 0; e < 16 / c->to->width; e++)
            writes(c->to, c->at + e, false);
    }
    memmove(self->copy, self->copy + done, (size_t)(self->copies - done) * sizeof *self->copy);
    self->copies -= done;
    int keep = self->groups < left ? self->groups : left;
    for (int x = 0; x < keep; x++)
        self->group[x] = self->group[self->groups - keep + x] - done;
    self->groups = keep;
}

/* -- Barriers and shuffles ------------------------------------------------------------------- */

static inline void barrier(int line)
{
    __atomic_fetch_or(&now->control->lines[line / 64 % 8], (uint64_t)1 << (line % 64),
                      __ATOMIC_RELAXED);
    if (line == now->control->skip_line && (self->id == 0 || !now->control->skip_lone))
        self->line = line;
    else
        pause(BARRIER, line);
}
#define __syncthreads() emulate::barrier(__LINE__)

template <class T> static inline T shuffle(T x, int lane, int line)
{
    T y;
    int turn = self->turn ^= 1;
    memcpy(&self->slot[turn], &x, sizeof x);
    pause(SHUFFLE, line);
    memcpy(&y, &now->fiber[self->id / WARP * WARP + lane].slot[turn], sizeof y);
    return y;
}
#define __shfl_xor_sync(mask, x, with)                                                             \
    emulate::shuffle(x, (emulate::self->id % emulate::WARP) ^ (with), __LINE__)
#define __shfl_sync(mask, x, lane, width)                                                          \
    emulate::shuffle(x, emulate::self->id % emulate::WARP / (width) * (width) + (lane), __LINE__)

} // namespace emulate

#include "schedule.h"

#endif

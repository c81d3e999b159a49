/* The host's side: the descriptor's tensors to the device and results back, launches, and every
 * failure a status with a sentence. A failed launch never passes for a result.
 *
 * An input's bytes from its first to its last element go over as they lie, so that strides stay; a
 * result comes back from a contiguous copy. SPDX-License-Identifier: MIT */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "emulate.h"
typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

static inline cudaError_t cudaMalloc(void **p, size_t bytes)
{
    *p = malloc(bytes ? bytes : 1);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}
#endif
#include "tile.cuh"
#include <stdio.h>
#include <stdlib.h>

/* A result: where it belongs on the host, and its contiguous copy. */
struct result {
    struct at_view host, *device;
    bool away; /* host memory: to bring back */
};

struct job : at_gpu_job {
    void *held[40];
    int helds, results;
    struct result result[3];
    struct args p; /* last: its size depends on the working type */
};

/* -- Failures -------------------------------------------------------------------------------- */

static inline enum at_status trouble(enum at_status status, const char *what, const char *detail)
{
    struct at_gpu_evidence *note = at_gpu_note();
    snprintf(note->trouble, sizeof note->trouble, "%s%s%s", what, *detail ? ": " : "", detail);
    return status;
}

#ifdef __CUDACC__
static inline enum at_status checked(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return AT_OK;
    cudaGetLastError(); /* or the next call would fail again */
    return trouble(e == cudaErrorMemoryAllocation ? AT_ERR_MEMORY : AT_ERR_UNSUPPORTED, what,
                   cudaGetErrorString(e));
}

static inline bool on_device(const void *p)
{
    cudaPointerAttributes x;
    return cudaPointerGetAttributes(&x, p) == cudaSuccess && x.type == cudaMemoryTypeDevice;
}

static inline enum at_status present(void)
{
    int n = 0;
    enum at_status status = checked(cudaGetDeviceCount(&n), "no CUDA device");
    return status == AT_OK && n == 0 ? trouble(AT_ERR_UNSUPPORTED, "no CUDA device", "") : status;
}

static inline enum at_status finished(void)
{
    return checked(cudaDeviceSynchronize(), "the kernel failed");
}
#else
static inline enum at_status checked(cudaError_t e, const char *what)
{
    return e == cudaSuccess ? AT_OK : trouble(AT_ERR_MEMORY, what, "");
}
static inline bool on_device(const void *) { return false; }
static inline enum at_status present(void) { return AT_OK; }
static inline enum at_status finished(void) { return AT_OK; }
#endif

/* -- Memory ---------------------------------------------------------------------------------- */

static inline enum at_status take(struct job *x, size_t bytes, void **p)
{
    enum at_status status = checked(cudaMalloc(p, bytes), "device memory");
    if (status == AT_OK)
        x->held[x->helds++] = *p;
    return status;
}

static inline enum at_status put(struct job *x, const void *from, size_t bytes, void **p)
{
    enum at_status status = take(x, bytes, p);
    return status != AT_OK ? status
                           : checked(cudaMemcpy(*p, from, bytes, cudaMemcpyHostToDevice), "copy");
}

static inline int bytes_of(enum at_dtype d)
{
    return d == AT_F64 || d == AT_I64    ? 8
           : d == AT_F32 || d == AT_I32  ? 4
           : d == AT_F16 || d == AT_BF16 ? 2
                                         : 1;
}

static inline int64_t elements(const struct at_view *x)
{
    return x->dim[0] * x->dim[1] * x->dim[2] * x->dim[3];
}

/* An input view, its strides kept. */
static inline enum at_status put_view(struct job *x, struct at_view *v)
{
    int64_t lo = 0, hi = 0, size = bytes_of(v->dtype);
    if (!v->data || elements(v) == 0 || on_device(v->data))
        return AT_OK;
    for (int k = 0; k < 4; k++) {
        int64_t far = (v->dim[k] - 1) * v->stride[k];
        lo += at_min(far, 0);
        hi += at_max(far, 0);
    }
    void *p;
    enum at_status status =
        put(x, (const char *)v->data + lo * size, (size_t)((hi - lo + 1) * size), &p);
    if (status == AT_OK)
        v->data = (char *)p - lo * size;
    return status;
}

template <class T> static inline enum at_status put_array(struct job *x, const T **a, int64_t n)
{
    void *p;
    if (!*a)
        return AT_OK;
    enum at_status status = put(x, *a, (size_t)n * sizeof(T), &p);
    *a = (const T *)p;
    return status;
}

/* The elements of two views of the same extents, one of them contiguous. */
static inline void copy_view(const struct at_view *to, const struct at_view *from)
{
    size_t size = (size_t)bytes_of(to->dtype);
    for (int64_t b = 0; b < to->dim[0]; b++)
        for (int64_t h = 0; h < to->dim[1]; h++)
            for (int64_t s = 0; s < to->dim[2]; s++)
                for (int64_t c = 0; c < to->dim[3]; c++)
                    memcpy((char *)to->data + (size_t)at_offset(to, b, h, s, c) * size,
                           (const char *)from->data + (size_t)at_offset(from, b, h, s, c) * size,
                           size);
}

static inline struct at_view contiguous(const struct at_view *x, void *data)
{
    const int64_t *d = x->dim;
    struct at_view y = {
        data, x->dtype, {d[0], d[1], d[2], d[3]}, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}};
    return y;
}

/* A result view becomes a device view. fill: what a row of no sequence holds; NULL: what is there.
 */
static inline enum at_status put_result(struct job *x, struct at_view *v, const double *fill)
{
    struct result *r = &x->result[x->results++];
    r->host = *v;
    r->device = v;
    r->away = v->data && elements(v) > 0 && !on_device(v->data);
    if (!r->away)
        return AT_OK;
    size_t bytes = (size_t)(elements(v) * bytes_of(v->dtype));
    struct at_view copy = contiguous(v, malloc(bytes));
    if (!copy.data)
        return trouble(AT_ERR_MEMORY, "host memory", "");
    for (int64_t t = 0; fill && t < elements(v); t++)
        at_store(&copy, t, (at_real)*fill);
    if (!fill)
        copy_view(&copy, v);
    void *p = NULL;
    enum at_status status = put(x, copy.data, bytes, &p);
    free(copy.data);
    *v = contiguous(v, p);
    return status;
}

static inline enum at_status get_result(const struct result *r)
{
    size_t bytes = (size_t)(elements(&r->host) * bytes_of(r->host.dtype));
    struct at_view copy = contiguous(&r->host, malloc(bytes));
    if (!copy.data)
        return trouble(AT_ERR_MEMORY, "host memory", "");
    enum at_status status =
        checked(cudaMemcpy(copy.data, r->device->data, bytes, cudaMemcpyDeviceToHost), "copy back");
    if (status == AT_OK)
        copy_view(&r->host, &copy);
    free(copy.data);
    return status;
}

/* -- A problem on the device ------------------------------------------------------------------- */

/* Rows stored as `dtype` that can be copied as they are, 16 bytes at a time. */
static inline bool direct(const struct at_view *x, const struct at_view *descale,
                          enum at_dtype dtype)
{
    int64_t each = 16 / bytes_of(dtype);
    bool good = x->dtype == dtype && x->stride[3] == 1 && !descale->data &&
                (uintptr_t)x->data % 16 == 0 && x->dim[3] % each == 0;
    for (int k = 0; k < 3; k++)
        good = good && x->stride[k] % each == 0;
    return good;
}

static inline enum at_status put_inputs(struct job *x)
{
    struct at_attention *a = &x->p.a;
    struct at_score *s = &a->score;
    int64_t B = x->p.z.B,
            entries = a->pages.table && a->pages.indptr ? a->pages.indptr[B] : B * a->pages.width;
    struct at_view *view[] = {&a->q,      &a->k,      &a->v,           &s->bias,
                              &s->mask,   &s->alibi,  &s->sink,        &s->qscale,
                              &s->kscale, &s->vscale, &a->dropout.keep};
    const int64_t **array[] = {&s->offset, &s->q_len, &s->kv_len, &s->q_start, &s->kv_start};
    enum at_status status = AT_OK;
    for (size_t k = 0; k < sizeof view / sizeof *view && status == AT_OK; k++)
        status = put_view(x, view[k]);
    for (size_t k = 0; k < sizeof array / sizeof *array && status == AT_OK; k++)
        status = put_array(x, array[k], B);
    if (status == AT_OK)
        status = put_array(x, &a->pages.table, entries);
    return status == AT_OK ? put_array(x, &a->pages.indptr, B + 1) : status;
}

/* What the host finds out once. */
static inline void examine(struct args *p, const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    p->a = *a;
    p->z = at_sizes(a);
    p->plain = !(s->softcap > 0) && !s->bias.data && !s->alibi.data;
    p->sparse = s->bias.data || s->mask.data;
    p->ragged = s->q_start != NULL;
    p->scale = at_rounded(s->scale);
    p->gain = at_drops(a) ? at_rounded(at_gain(a->dropout.p)) : 1;
    p->a.plan.cut = NULL;
    p->splits = 1, p->bc = (int)a->plan.bc;
}

/* The split points of a plan, for a kernel that takes all splits in one launch. */
static inline enum at_status cut_keys(struct args *p, const struct at_attention *a)
{
    p->splits = (int)a->plan.splits;
    for (int k = 0; k <= p->splits && p->splits <= SPLITS; k++)
        p->cut[k] = (int)at_split(a, k);
    return p->splits <= SPLITS ? AT_OK : trouble(AT_ERR_UNSUPPORTED, "more splits than 128", "");
}

static inline void release(struct job *x)
{
    for (int k = 0; x && k < x->helds; k++)
        cudaFree(x->held[k]);
    free(x);
}

/* to == NULL: the states x of keys j0 .. j1-1. */
static inline enum at_status job_open(struct job **job, const struct at_attention *a,
                                      struct at_span keys, const struct at_state *x,
                                      const struct at_result *to)
{
    static const double nothing[2] = {0, -INFINITY};
    memset(at_gpu_note(), 0, sizeof *at_gpu_note());
    enum at_status status = present();
    struct job *y = *job = status == AT_OK ? (struct job *)calloc(1, sizeof *y) : NULL;
    if (!y)
        return status == AT_OK ? trouble(AT_ERR_MEMORY, "host memory", "") : status;
    struct args *p = &y->p;
    examine(p, a);
    p->keys = keys;
    p->finish = to != NULL;
    status = put_inputs(y);
    if (to) {
        p->to = *to;
        status = status == AT_OK ? put_result(y, &p->to.out, nothing) : status;
        status = status == AT_OK && to->lse.data ? put_result(y, &p->to.lse, nothing + 1) : status;
    } else {
        p->x = *x;
        struct at_view *view[3] = {&p->x.m, &p->x.l, &p->x.u};
        for (int k = 0; k < 3 && status == AT_OK; k++)
            status = put_result(y, view[k], NULL);
    }
    enum at_dtype real = AT_BITS == 32 ? AT_F32 : AT_F64;
    p->direct_q = direct(&p->a.q, &a->score.qscale, real);
    p->direct_k = direct(&p->a.k, &a->score.kscale, real);
    p->direct_v = direct(&p->a.v, &a->score.vscale, real);
    p->stored =
        direct(&p->a.k, &a->score.kscale, AT_BF16) && direct(&p->a.v, &a->score.vscale, AT_BF16);
    if (p->z.Sq > INT32_MAX || p->z.Skv > INT32_MAX || p->z.B * p->z.Hq > INT32_MAX)
        status = trouble(AT_ERR_UNSUPPORTED, "rows, keys or heads past 2^31", "");
    p->cut[0] = (int)keys.lo, p->cut[1] = (int)keys.hi;
    if (status == AT_OK && to)
        status = cut_keys(p, a);
    if (status != AT_OK) {
        release(y);
        *job = NULL;
    }
    return status;
}

/* Waits, brings back and frees; on a failure the host's results are untouched. */
static inline enum at_status job_close(struct at_gpu_job *job, enum at_status status)
{
    struct job *x = (struct job *)job;
    enum at_status end = finished();
    status = status == AT_OK ? end : status;
    for (int k = 0; k < x->results && status == AT_OK; k++)
        if (x->result[k].away)
            status = get_result(&x->result[k]);
    release(x);
    return status;
}

#endif

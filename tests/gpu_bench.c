/* Kernels on tensors that already lie on the device, for tests/gpu_bench.py: contiguous q
 * (B,Hq,Sq,D), k, v (B,Hkv,Skv,D), out like q. SPDX-License-Identifier: MIT */
#include "gpu.h"
#include <stdlib.h>
#include <string.h>

int bench_open(int kind, int dtype, int out_dtype, const int64_t *size, void *q, void *k, void *v,
               void *out, double scale, int causal, const int64_t *kv_len, int64_t bc,
               int64_t splits, struct at_gpu_job **job);
int bench_go(struct at_gpu_job *job);
int bench_close(struct at_gpu_job *job);
const struct at_gpu_evidence *bench_note(void);

static struct at_attention problem(int dtype, const int64_t *n, void *q, void *k, void *v,
                                   double scale, int causal, const int64_t *kv_len, int64_t bc,
                                   int64_t splits, const int64_t *offset)
{
    enum at_dtype d = (enum at_dtype)dtype;
    struct at_attention a =
        at_plain(at_bhsd(q, d, n[0], n[1], n[3], n[5]), at_bhsd(k, d, n[0], n[2], n[4], n[5]),
                 at_bhsd(v, d, n[0], n[2], n[4], n[5]), scale);
    if (causal)
        a.score.right = 0, a.score.offset = offset;
    a.score.kv_len = kv_len;
    a.plan.lanes = 1, a.plan.bc = bc, a.plan.splits = splits;
    a.plan = at_resolve(&a);
    return a;
}

/* size: B Hq Hkv Sq Skv D; kind: prefill, decode, mma, wgmma. */
int bench_open(int kind, int dtype, int out_dtype, const int64_t *size, void *q, void *k, void *v,
               void *out, double scale, int causal, const int64_t *kv_len, int64_t bc,
               int64_t splits, struct at_gpu_job **job)
{
    at_gpu_run *const run[] = {at_attention_cuda_f32, at_decode_cuda_f32, at_mma_cuda,
                               at_wgmma_cuda};
    int64_t *offset = malloc((size_t)size[0] * sizeof *offset);
    for (int64_t b = 0; b < size[0]; b++)
        offset[b] = size[4] - size[3];
    struct at_attention a =
        problem(dtype, size, q, k, v, scale, causal, kv_len, bc, splits, offset);
    struct at_result to = {
        .out = at_bhsd(out, (enum at_dtype)out_dtype, size[0], size[1], size[3], size[5])};
    enum at_status status = run[kind](&a, 0, size[4], NULL, &to, job);
    free(offset);
    return (int)status;
}

int bench_go(struct at_gpu_job *job) { return (int)job->go(job); }
int bench_close(struct at_gpu_job *job) { return (int)job->close(job, AT_OK); }
const struct at_gpu_evidence *bench_note(void) { return at_gpu_note(); }

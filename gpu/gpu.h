/* What the files of gpu/ share, and what a program or a test may ask of them beside the engines:
 * the evidence of a launch, a problem that stays on the device, the emulation's switches.
 * SPDX-License-Identifier: MIT */
#ifndef GPU_H
#define GPU_H

#include "attest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last launch of the calling thread: what ran, and if it did not, why. */
struct at_gpu_evidence {
    char kernel[64], trouble[256];
    unsigned grid[3], block, shared; /* shared: bytes a block */
    int registers, launches;
};
struct at_gpu_evidence *at_gpu_note(void);

/* -- A problem on the device, to launch again and again (benchmarks) -------------------------- */

struct at_gpu_job {
    enum at_status (*go)(struct at_gpu_job *job);                           /* does not wait */
    enum at_status (*close)(struct at_gpu_job *job, enum at_status so_far); /* waits */
};

/* One kernel: states x of keys j0 .. j1-1, or with to the finished rows of all keys. job: leave the
 * problem on the device, launch nothing. Tensors that already lie there stay where they are; others
 * are copied, and results on the host come back when the job is closed. a is valid and resolved. */
typedef enum at_status at_gpu_run(const struct at_attention *a, int64_t j0, int64_t j1,
                                  const struct at_state *x, const struct at_result *to,
                                  struct at_gpu_job **job);
at_gpu_run at_attention_cuda_f32, at_attention_cuda_f64, at_decode_cuda_f32, at_decode_cuda_f64;
at_gpu_run at_attention_emulated_f32, at_attention_emulated_f64;
at_gpu_run at_decode_emulated_f32, at_decode_emulated_f64;
at_gpu_run at_mma_cuda, at_wgmma_cuda;

/* -- The emulation (emulate.h) ----------------------------------------------------------------- */

/* A test seeds a fault with the first four, and reads the last two afterwards. */
struct at_emulation {
    int skip_line;     /* barriers at this line of a kernel's file are not kept */
    bool skip_lone;    /* ... by thread 0 alone */
    bool skip_waits;   /* waits for asynchronous copies are not kept */
    int shrink;        /* shared arrays end this many elements early */
    bool device_tiles; /* tile shapes as on the device, not the small ones */
    uint64_t lines[8]; /* bit n: a barrier at line n was met */
    bool few;          /* the last launch was of a short descriptor (few.cuh) */
};
struct at_emulation *at_emulation(void);

#ifdef __cplusplus
}
#endif
#endif

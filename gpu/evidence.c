/* The evidence of each thread's last launch, and the emulation's switches.
 * SPDX-License-Identifier: MIT */
#include "gpu.h"

struct at_gpu_evidence *at_gpu_note(void)
{
    static _Thread_local struct at_gpu_evidence note;
    return &note;
}

struct at_emulation *at_emulation(void)
{
    static struct at_emulation one;
    return &one;
}

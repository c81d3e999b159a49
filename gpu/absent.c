/* The device's engines in a build without nvcc: listed, and refusing. gpu.mk says when.
 * SPDX-License-Identifier: MIT */
#include "gpu.h"
#include <stdio.h>

static const char why[] = "not built: this build had no nvcc (make GPU=1)";

static enum at_status refuse(const struct at_attention *a, const struct at_result *to)
{
    (void)a, (void)to;
    snprintf(at_gpu_note()->trouble, sizeof at_gpu_note()->trouble, "%s", why);
    return AT_ERR_UNSUPPORTED;
}

static struct at_arith nothing(const struct at_attention *a)
{
    (void)a;
    return (struct at_arith){.name = "none", .source = "not built"};
}

const struct at_engine at_gpu = {.name = "gpu", .arith = nothing, .forward = refuse};
const struct at_engine at_gpu_decode = {.name = "gpu-decode", .arith = nothing, .forward = refuse};
const struct at_engine at_gpu_mma = {.name = "gpu-mma", .arith = nothing, .forward = refuse};
const struct at_engine at_gpu_wgmma = {.name = "gpu-wgmma", .arith = nothing, .forward = refuse};

void at_gpu_describe(char *text, size_t size) { snprintf(text, size, "%s", why); }

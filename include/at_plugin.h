/* A kernel as a shared object, which `attest check ./my.so CASE...` loads (docs/embedding.md): what
 * it exports. Templates in C, C++ and Rust: tests/peers/templates. SPDX-License-Identifier: MIT */
#ifndef AT_PLUGIN_H
#define AT_PLUGIN_H

#include "attest.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stands for the layout of every struct of attest.h. */
#define AT_ABI 1

/* What a shared object exports, so that `attest check ./my.so CASE...` runs it: AT_ABI as it was
 * compiled, and its engine. Of that, name and one of forward, attend_f32, attend_f64 must be there.
 * - forward gets lse in the compute type, and out in q's dtype (fp8: AT_BF16); where it answers
 *   AT_ERR_DTYPE, out in the compute type. AT_ERR_UNSUPPORTED leaves a case undecided.
 * - arith NULL: judged on the ladder. An arith whose compute is AT_DEFAULT says by its name what
 *   --arith takes: "bf16-p", "fp32,tile=64". */
int attest_abi(void);
const struct at_engine *attest_engine(void);

#ifdef __cplusplus
}
#endif
#endif

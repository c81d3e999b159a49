/* A kernel as a shared object in C, to start from. SPDX-License-Identifier: MIT
 *     cc -O2 -shared -fPIC -Iinclude -o my.so kernel.c -lm && attest check ./my.so CASE */
#include "at_plugin.h"
#include <math.h>

static enum at_status forward(const struct at_attention *a, const struct at_result *to)
{
    if (!at_line_serves(a))
        return AT_ERR_UNSUPPORTED; /* refuse what you do not compute: the case stays undecided */
    struct at_line x;
    for (int64_t t = 0; at_line(a, to, t, &x); t++) { /* query rows */
        float m = -INFINITY, l = 0, s = 0;
        memset(x.out, 0, (size_t)x.Dv * sizeof *x.out);
        for (int64_t j = x.lo; j < x.hi; j++, s = 0) { /* keys */
            for (int64_t c = 0; c < x.D; c++)
                s += x.q[c] * x.k[j * x.k_step + c];
            float most = fmaxf(m, s *= x.scale), old = expf(m - most), p = expf(s - most);
            for (int64_t c = 0; c < x.Dv; c++)
                x.out[c] = old * x.out[c] + p * x.v[j * x.v_step + c];
            l = old * l + p, m = most;
        }
        for (int64_t c = 0; c < x.Dv; c++)
            x.out[c] = l == 0 ? 0 : x.out[c] / l;
        *x.lse = m + logf(l);
    }
    return AT_OK;
}

AT_PLUGIN("mine", "fp32", forward) /* what it is held to: attest list arith */

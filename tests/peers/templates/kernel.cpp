// A kernel as a shared object in C++, to start from. SPDX-License-Identifier: MIT
//     c++ -O2 -shared -fPIC -Iinclude -o my.so kernel.cpp && attest check ./my.so CASE
#include "at_plugin.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

static at_status forward(const at_attention *a, const at_result *to)
{
    if (!at_line_serves(a))
        return AT_ERR_UNSUPPORTED; // refuse what you do not compute: the case stays undecided
    struct at_line x;
    for (int64_t t = 0; at_line(a, to, t, &x); t++) { // query rows
        std::vector<float> p;
        for (int64_t j = x.lo; j < x.hi; j++)
            p.push_back(std::inner_product(x.q, x.q + x.D, x.k + j * x.k_step, 0.0f) * x.scale);
        const float m = p.empty() ? -INFINITY : *std::max_element(p.begin(), p.end());
        std::transform(p.begin(), p.end(), p.begin(), [m](float s) { return std::exp(s - m); });
        const float l = std::accumulate(p.begin(), p.end(), 0.0f);
        std::fill_n(x.out, x.Dv, 0.0f);
        for (int64_t c = 0; c < x.Dv && !p.empty(); x.out[c++] /= l)
            for (int64_t j = x.lo; j < x.hi; j++)
                x.out[c] += p[static_cast<size_t>(j - x.lo)] * x.v[j * x.v_step + c];
        *x.lse = m + std::log(l);
    }
    return AT_OK;
}

AT_PLUGIN("mine", "fp32", forward) // what it is held to: attest list arith

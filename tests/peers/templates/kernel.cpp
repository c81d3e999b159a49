// A kernel as a shared object in C++, to start from: plain fp32 attention, all scores of a row first.
//     c++ -O2 -shared -fPIC -Iinclude -o my.so kernel.cpp && attest check ./my.so CASE
// SPDX-License-Identifier: MIT
#include "at_index.h"
#include "at_plugin.h"
#include <algorithm>
#include <cmath>
#include <vector>

static void row(const at_attention &a, const struct at_sizes &z, int64_t b, int64_t h, int64_t i,
                const at_result &to)
{
    const float *q = static_cast<float *>(a.q.data) + at_offset(&a.q, b, h, i, 0);
    float *out = static_cast<float *>(to.out.data) + at_offset(&to.out, b, h, i, 0);
    float &lse = static_cast<float *>(to.lse.data)[at_offset(&to.lse, b, h, i, 0)];
    const at_span keys = at_keys(&a, &z, b, i); // length, window and causality
    std::vector<float> s;
    for (int64_t j = keys.lo; j < keys.hi; j++) {
        const float *k = static_cast<float *>(a.k.data) + at_key_offset(&a, &a.k, b, h / z.group, j);
        float dot = 0;
        for (int64_t c = 0; c < z.D; c++)
            dot += q[c] * k[c];
        s.push_back(dot * static_cast<float>(a.score.scale));
    }
    const float m = s.empty() ? -INFINITY : *std::max_element(s.begin(), s.end());
    float l = 0;
    for (float &x : s)
        l += x = std::exp(x - m);
    for (int64_t c = 0; c < z.Dv; c++) {
        float u = 0;
        for (int64_t j = keys.lo; j < keys.hi; j++)
            u += s[static_cast<size_t>(j - keys.lo)] *
                 static_cast<float *>(a.v.data)[at_key_offset(&a, &a.v, b, h / z.group, j) + c];
        out[c] = s.empty() ? 0 : u / l;
    }
    lse = m + std::log(l);
}

static at_status forward(const at_attention *a, const at_result *to)
{
    const at_score &s = a->score;
    if (a->q.dtype != AT_F32 || a->k.dtype != AT_F32 || a->v.dtype != AT_F32 ||
        a->plan.compute != AT_F32 || s.softcap > 0 || s.bias.data || s.mask.data || s.alibi.data ||
        s.sink.data || s.qscale.data || s.kscale.data || s.vscale.data || s.q_start ||
        s.kv_start || a->pages.table || at_drops(a))
        return AT_ERR_UNSUPPORTED; // refuse what you do not compute: the case stays undecided
    const struct at_sizes z = at_sizes(a);
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t h = 0; h < z.Hq; h++)
            for (int64_t i = 0; i < z.Sq; i++)
                row(*a, z, b, h, i, *to);
    return AT_OK;
}

static at_arith arith(const at_attention *)
{
    at_arith x{};
    x.name = "fp32"; // what it is held to: attest list arith
    return x;
}

extern "C" int attest_abi(void) { return AT_ABI; }

extern "C" const at_engine *attest_engine(void)
{
    static const at_engine mine{"mine", arith, nullptr, nullptr, forward, nullptr};
    return &mine;
}

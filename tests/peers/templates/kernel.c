/* A kernel as a shared object in C, to start from: plain fp32 attention, a key at a time.
 *     cc -O2 -shared -fPIC -Iinclude -o my.so kernel.c -lm && attest check ./my.so CASE
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "at_plugin.h"
#include <math.h>

static void row(const struct at_attention *a, const float *q, int64_t b, int64_t h, int64_t i,
                float *u, float *lse)
{
    struct at_sizes z = at_sizes(a);
    struct at_span keys = at_keys(a, &z, b, i); /* length, window and causality */
    float m = -INFINITY, l = 0;
    memset(u, 0, (size_t)z.Dv * sizeof *u);
    for (int64_t j = keys.lo; j < keys.hi; j++) {
        const float *k = (float *)a->k.data + at_key_offset(a, &a->k, b, h / z.group, j);
        const float *v = (float *)a->v.data + at_key_offset(a, &a->v, b, h / z.group, j);
        float s = 0;
        for (int64_t c = 0; c < z.D; c++)
            s += q[c] * k[c];
        s *= (float)a->score.scale;
        float to = fmaxf(m, s), old = l > 0 ? expf(m - to) : 0, p = expf(s - to);
        for (int64_t c = 0; c < z.Dv; c++)
            u[c] = old * u[c] + p * v[c];
        l = old * l + p;
        m = to;
    }
    for (int64_t c = 0; c < z.Dv; c++)
        u[c] = l > 0 ? u[c] / l : 0;
    *lse = m + logf(l);
}

static enum at_status forward(const struct at_attention *a, const struct at_result *to)
{
    const struct at_score *s = &a->score;
    if (a->q.dtype != AT_F32 || a->k.dtype != AT_F32 || a->v.dtype != AT_F32 ||
        a->plan.compute != AT_F32 || s->softcap > 0 || s->bias.data || s->mask.data ||
        s->alibi.data || s->sink.data || s->qscale.data || s->kscale.data || s->vscale.data ||
        s->q_start || s->kv_start || a->pages.table || at_drops(a))
        return AT_ERR_UNSUPPORTED; /* refuse what you do not compute: the case stays undecided */
    for (int64_t b = 0; b < a->q.dim[0]; b++)
        for (int64_t h = 0; h < a->q.dim[1]; h++)
            for (int64_t i = 0; i < a->q.dim[2]; i++)
                row(a, (float *)a->q.data + at_offset(&a->q, b, h, i, 0), b, h, i,
                    (float *)to->out.data + at_offset(&to->out, b, h, i, 0),
                    (float *)to->lse.data + at_offset(&to->lse, b, h, i, 0));
    return AT_OK;
}

static struct at_arith arith(const struct at_attention *a)
{
    (void)a;
    return (struct at_arith){.name = "fp32"}; /* what it is held to: attest list arith */
}

int attest_abi(void) { return AT_ABI; }

const struct at_engine *attest_engine(void)
{
    static const struct at_engine mine = {.name = "mine", .arith = arith, .forward = forward};
    return &mine;
}

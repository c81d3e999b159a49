/* A kernel as a shared object, which `attest check ./my.so CASE...` loads (docs/embedding.md): what
 * it exports, and help for one that computes plain fp32 attention. Templates in C, C++ and Rust:
 * tests/peers/templates. SPDX-License-Identifier: MIT */
#ifndef AT_PLUGIN_H
#define AT_PLUGIN_H

#include "at_index.h"

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

/* Both, for a kernel that is one function: AT_PLUGIN("mine", "fp32", forward) */
#define AT_PLUGIN(NAME, ARITH, FORWARD)                                                            \
    static struct at_arith at_stated(const struct at_attention *a)                                 \
    {                                                                                              \
        struct at_arith x;                                                                         \
        (void)a;                                                                                   \
        memset(&x, 0, sizeof x);                                                                   \
        x.name = ARITH;                                                                            \
        return x;                                                                                  \
    }                                                                                              \
    AT_EXPORT int attest_abi(void) { return AT_ABI; }                                              \
    AT_EXPORT const struct at_engine *attest_engine(void)                                          \
    {                                                                                              \
        static const struct at_engine mine = {NAME, at_stated, NULL, NULL, FORWARD, NULL};         \
        return &mine;                                                                              \
    }

#ifdef __cplusplus
}
#define AT_EXPORT extern "C"
#else
#define AT_EXPORT
#endif

/* -- Plain fp32 attention, row by row ---------------------------------------------------------- */

/* A query row, and the keys lo <= j < hi that length, window and causality leave to it. */
struct at_line {
    const float *q, *k, *v; /* key j lies at k + j*k_step, its value at v + j*v_step */
    float *out, *lse;
    int64_t D, Dv, lo, hi, k_step, v_step;
    float scale;
};

/* Is this all that the problem has, every tensor dense and fp32? */
AT_FN bool at_line_serves(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    return a->q.dtype == AT_F32 && a->k.dtype == AT_F32 && a->v.dtype == AT_F32 &&
           a->plan.compute == AT_F32 && !(s->softcap > 0) && !s->bias.data && !s->mask.data &&
           !s->alibi.data && !s->sink.data && !s->qscale.data && !s->kscale.data &&
           !s->vscale.data && !s->q_start && !s->kv_start && !a->pages.table && !at_drops(a);
}

/* Row t of the problem; false: there is none. */
AT_FN bool at_line(const struct at_attention *a, const struct at_result *to, int64_t t,
                   struct at_line *x)
{
    struct at_sizes z = at_sizes(a);
    struct at_rows all = {0, NULL};
    if (t >= z.B * z.Hq * z.Sq)
        return false;
    struct at_place p = at_place_of(a, all, t);
    struct at_span keys = at_keys(a, &z, p.b, p.i);
    x->q = (float *)a->q.data + at_offset(&a->q, p.b, p.h, p.i, 0);
    x->k = (float *)a->k.data + at_offset(&a->k, p.b, p.h / z.group, 0, 0);
    x->v = (float *)a->v.data + at_offset(&a->v, p.b, p.h / z.group, 0, 0);
    x->out = (float *)to->out.data + at_offset(&to->out, p.b, p.h, p.i, 0);
    x->lse = (float *)to->lse.data + at_offset(&to->lse, p.b, p.h, p.i, 0);
    x->D = z.D, x->Dv = z.Dv, x->lo = keys.lo, x->hi = keys.hi;
    x->k_step = a->k.stride[2], x->v_step = a->v.stride[2];
    x->scale = (float)a->score.scale;
    return true;
}

#endif

/* One engine of one instruction set: which kernel a problem gets. Compiled for each set, with no
 * floating-point arithmetic of its own. SPDX-License-Identifier: MIT */
#include "tiled.h"

#define OF(name) TILED_AS(name, TILED_ISA)

tiled_run OF(at_blocks_f32), OF(at_blocks_f64), OF(at_decode_f32), OF(at_decode_f64);
tiled_bytes OF(at_blocks_bytes_f32), OF(at_blocks_bytes_f64);
tiled_bytes OF(at_decode_bytes_f32), OF(at_decode_bytes_f64);
extern const struct at_engine OF(at_tiled);
enum at_status OF(at_counted)(const struct at_attention *a, const struct at_result *to,
                              struct at_tally *tally);

static bool is_decode(const struct at_attention *a)
{
    return a->plan.lanes > 1 && at_sizes(a).Sq <= TILED_FEW;
}

/* Chains over columns suit decode, one chain suits lanes of queries; either kernel serves both. */
static enum at_status run(const struct tiled_call *call, bool wide)
{
    struct at_sizes z = at_sizes(call->a);
    if (z.B * z.Hq * z.Sq == 0)
        return AT_OK;
    if (is_decode(call->a))
        return wide ? OF(at_decode_f64)(call) : OF(at_decode_f32)(call);
    return wide ? OF(at_blocks_f64)(call) : OF(at_blocks_f32)(call);
}

static enum at_status attend_f32(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return run(&(struct tiled_call){.a = a, .x = x, .j0 = j0, .j1 = j1, .splits = 1}, false);
}

static enum at_status attend_f64(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    return run(&(struct tiled_call){.a = a, .x = x, .j0 = j0, .j1 = j1, .splits = 1}, true);
}

/* Packed rows of no sequence: out 0, lse -inf. */
static void put_nothing(const struct at_attention *a, const struct at_result *to)
{
    struct at_rows all = {0};
    for (int64_t t = 0; t < a->q.dim[0] * a->q.dim[1] * a->q.dim[2]; t++) {
        struct at_place x = at_place_of(a, all, t);
        if (x.b >= 0)
            continue;
        int64_t at = at_row_offset(a, &to->out, -1, x.h, x.i);
        for (int64_t c = 0; c < to->out.dim[3]; c++)
            at_store(&to->out, at + c * to->out.stride[3], 0);
        if (to->lse.data)
            at_store(&to->lse, at_row_offset(a, &to->lse, -1, x.h, x.i), -(at_real)INFINITY);
    }
}

enum at_status OF(at_counted)(const struct at_attention *a, const struct at_result *to,
                              struct at_tally *tally)
{
    struct tiled_call call = {.a = a, .to = to, .splits = a->plan.splits, .tally = tally};
    if (tally)
        *tally = (struct at_tally){0};
    enum at_status status = run(&call, a->plan.compute == AT_F64);
    if (status == AT_OK && a->score.q_start)
        put_nothing(a, to);
    return status;
}

static enum at_status forward(const struct at_attention *a, const struct at_result *to)
{
    return OF(at_counted)(a, to, NULL);
}

static struct at_arith arith(const struct at_attention *a)
{
    return at_scalar.arith(a); /* the same bits, so the same statement */
}

static int64_t workspace(const struct at_attention *problem)
{
    struct at_attention a = *problem;
    a.plan = at_resolve(problem);
    bool wide = a.plan.compute == AT_F64;
    if (is_decode(&a))
        return (wide ? OF(at_decode_bytes_f64) : OF(at_decode_bytes_f32))(&a, a.plan.splits);
    return (wide ? OF(at_blocks_bytes_f64) : OF(at_blocks_bytes_f32))(&a, a.plan.splits);
}

#define TEXT(isa) #isa
#define NAMED(isa) "tiled-" TEXT(isa)

const struct at_engine OF(at_tiled) = {.name = NAMED(TILED_ISA),
                                       .arith = arith,
                                       .attend_f32 = attend_f32,
                                       .attend_f64 = attend_f64,
                                       .forward = forward,
                                       .workspace = workspace};

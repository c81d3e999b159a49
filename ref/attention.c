/* The descriptor's constructors, the plan, and the way through an engine:
 * attend each split - merge as planned - take in the sink - finish.
 * SPDX-License-Identifier: MIT */
#include "at_math.h"
#include "ref.h"
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

const char *at_strstatus(enum at_status status)
{
    switch (status) {
    case AT_OK: return "no error";
    case AT_ERR_MISSING: return "a tensor or array that is needed is absent";
    case AT_ERR_SHAPE: return "extents disagree";
    case AT_ERR_STRIDE: return "an output's elements share memory";
    case AT_ERR_DTYPE: return "this tensor cannot have this dtype";
    case AT_ERR_HEADS: return "query heads are not a multiple of key heads";
    case AT_ERR_DIM: return "a head dimension is below 1";
    case AT_ERR_SCALE: return "the scale is not a finite number";
    case AT_ERR_SOFTCAP: return "the softcap is negative or not a finite number";
    case AT_ERR_WINDOW: return "a window bound is negative and not the unbounded one";
    case AT_ERR_LENGTH: return "a length is negative or beyond its tensor";
    case AT_ERR_START: return "ragged starts do not ascend within their tensor";
    case AT_ERR_PAGE: return "a page that a key needs is out of range";
    case AT_ERR_DROPOUT: return "the dropout probability is outside [0,1)";
    case AT_ERR_PLAN: return "the plan is none";
    case AT_ERR_UNSUPPORTED: return "this is legal but not served here";
    case AT_ERR_MEMORY: return "out of memory";
    }
    return "unknown status";
}

/* -- Views ----------------------------------------------------------------------------------- */

struct at_view at_bhsd(void *data, enum at_dtype dtype, int64_t B, int64_t H, int64_t S, int64_t D)
{
    return (struct at_view){data, dtype, {B, H, S, D}, {H * S * D, S * D, D, 1}};
}

struct at_view at_bshd(void *data, enum at_dtype dtype, int64_t B, int64_t S, int64_t H, int64_t D)
{
    return (struct at_view){data, dtype, {B, H, S, D}, {S * H * D, D, H * D, 1}};
}

struct at_view at_thd(void *data, enum at_dtype dtype, int64_t T, int64_t H, int64_t D)
{
    return at_bshd(data, dtype, 1, T, H, D);
}

struct at_view at_pages_hnd(void *data, enum at_dtype dtype, int64_t pages, int64_t H, int64_t size,
                            int64_t D)
{
    return at_bhsd(data, dtype, pages, H, size, D);
}

struct at_view at_pages_nhd(void *data, enum at_dtype dtype, int64_t pages, int64_t size, int64_t H,
                            int64_t D)
{
    return at_bshd(data, dtype, pages, size, H, D);
}

struct at_view at_repeated(struct at_view x, int64_t B, int64_t H, int64_t S, int64_t D)
{
    int64_t to[4] = {B, H, S, D};
    for (int k = 0; k < 4; k++) {
        if (x.dim[k] != 1 || to[k] == 1)
            continue;
        x.dim[k] = to[k];
        x.stride[k] = 0;
    }
    return x;
}

struct at_attention at_plain(struct at_view q, struct at_view k, struct at_view v, double scale)
{
    struct at_attention a = {.q = q, .k = k, .v = v};
    a.score.scale = scale;
    a.score.left = a.score.right = AT_UNBOUNDED;
    return a;
}

/* -- The plan -------------------------------------------------------------------------------- */

/* ROWS: K and V are copied once for so many queries; no bit depends on it. */
enum { ROWS = 1024, TILE = 64, FEW_ROWS = 4, PART = 1024, LANES = 16 };

/* Few queries face each key: decode. Then keys are split and a key's row is read in lanes. */
struct at_plan at_resolve(const struct at_attention *a)
{
    struct at_sizes z = at_sizes(a);
    struct at_plan p = a->plan;
    bool decode = z.Sq <= FEW_ROWS;
    p.compute = at_compute(a);
    p.br = p.br ? p.br : ROWS;
    p.bc = p.bc ? p.bc : TILE;
    if (p.lanes == 0)
        p.lanes = decode ? LANES : 1;
    if (p.splits == 0)
        p.splits = decode ? at_max(1, (z.Skv + PART - 1) / PART) : 1;
#ifdef _OPENMP
    p.threads = p.threads ? p.threads : omp_get_max_threads();
#else
    p.threads = 1;
#endif
    return p;
}

int64_t at_split(const struct at_attention *a, int64_t k)
{
    const struct at_plan *p = &a->plan;
    int64_t Skv = at_sizes(a).Skv;
    if (k == 0)
        return 0;
    if (k >= p->splits)
        return Skv;
    if (p->cut)
        return at_min(p->cut[k - 1], Skv);
    int64_t tiles = (Skv + p->bc - 1) / p->bc;
    return at_min(tiles * k / p->splits * p->bc, Skv);
}

static bool is_wide(const struct at_view *x) { return x->data && x->dtype == AT_F64; }

enum at_dtype at_compute(const struct at_attention *a)
{
    const struct at_score *s = &a->score;
    bool wide = a->q.dtype == AT_F64 || a->k.dtype == AT_F64 || a->v.dtype == AT_F64 ||
                is_wide(&s->bias) || is_wide(&s->qscale) || is_wide(&s->kscale) ||
                is_wide(&s->vscale);
    return wide || a->plan.compute == AT_F64 ? AT_F64 : AT_F32;
}

static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u; /* SplitMix64 [Steele14] */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t at_next_merge(const struct at_plan *p, int64_t n, uint64_t *seed, int64_t *turn)
{
    int64_t at = 0; /* in order: the first two */
    if (p->merge == AT_REVERSED)
        at = n - 2;
    if (p->merge == AT_TREE) /* level by level */
        at = *turn + 1 < n ? *turn : 0;
    if (p->merge == AT_RANDOM)
        at = (int64_t)(draw(seed) % (uint64_t)(n - 1));
    *turn = at + 1;
    return at;
}

/* Merges n states of neighbouring keys as the plan says, two at a time; result in x[0]. */
static enum at_status merge_all(const struct at_plan *p, struct at_state *x, int64_t n)
{
    uint64_t seed = p->merge_seed;
    int64_t turn = 0;
    for (; n > 1; n--) {
        int64_t at = at_next_merge(p, n, &seed, &turn);
        enum at_status status = at_merge(&x[at], &x[at + 1]);
        if (status != AT_OK)
            return status;
        for (int64_t k = at + 1; k < n - 1; k++)
            x[k] = x[k + 1];
    }
    return AT_OK;
}

/* -- The way through an engine --------------------------------------------------------------- */

static struct at_state state_in(char *space, const struct at_attention *a)
{
    enum at_dtype dtype = a->plan.compute;
    int64_t B = a->q.dim[0], H = a->q.dim[1], S = a->q.dim[2], size = at_dtype_size(dtype);
    return (struct at_state){at_bhsd(space, dtype, B, H, S, 1),
                             at_bhsd(space + B * H * S * size, dtype, B, H, S, 1),
                             at_bhsd(space + 2 * B * H * S * size, dtype, B, H, S, a->v.dim[3])};
}

/* Packed rows of no sequence stay as this leaves them. */
static void clear(const struct at_state *x, size_t bytes)
{
    int64_t rows = x->m.dim[0] * x->m.dim[1] * x->m.dim[2];
    memset(x->m.data, 0, bytes);
    for (int64_t t = 0; t < rows; t++) {
        if (x->m.dtype == AT_F64)
            ((double *)x->m.data)[t] = -(double)INFINITY;
        else
            ((float *)x->m.data)[t] = -(float)INFINITY;
    }
}

static enum at_status attend(const struct at_engine *e, const struct at_attention *a, int64_t k,
                             const struct at_state *x)
{
    at_attend *f = a->plan.compute == AT_F64 ? e->attend_f64 : e->attend_f32;
    return f ? f(a, at_split(a, k), at_split(a, k + 1), x) : AT_ERR_UNSUPPORTED;
}

static enum at_status forward(const struct at_engine *e, const struct at_attention *a,
                              struct at_state *x, char *space, size_t size,
                              const struct at_result *to)
{
    enum at_status status = AT_OK;
    bool wide = a->plan.compute == AT_F64;
    for (int64_t k = 0; k < a->plan.splits && status == AT_OK; k++) {
        x[k] = state_in(space + (size_t)k * size, a);
        if (a->score.q_start)
            clear(&x[k], size);
        status = attend(e, a, k, &x[k]);
    }
    if (status == AT_OK)
        status = merge_all(&a->plan, x, a->plan.splits);
    if (status == AT_OK && a->score.sink.data)
        status = wide ? at_sink_f64(a, &x[0]) : at_sink_f32(a, &x[0]);
    if (status == AT_OK)
        status = at_finish(&x[0], at_drops(a) ? at_gain(a->dropout.p) : 1, to);
    return status;
}

bool at_same_rows(const struct at_view *x, const struct at_view *y, int64_t D)
{
    return x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1] && x->dim[2] == y->dim[2] &&
           x->dim[3] == D;
}

/* Could two elements share an address? Only repeated ones are told: extents above 1, stride 0. */
static bool repeats(const struct at_view *x)
{
    for (int k = 0; k < 4; k++)
        if (x->dim[k] > 1 && x->stride[k] == 0)
            return true;
    return false;
}

/* rows: a tensor placed as the results must be. */
static enum at_status check_result(const struct at_result *to, const struct at_view *rows,
                                   int64_t Dv)
{
    bool empty = rows->dim[0] * rows->dim[1] * rows->dim[2] == 0;
    if (!to->out.data && !empty)
        return AT_ERR_MISSING;
    if (!at_same_rows(&to->out, rows, Dv) || (to->lse.data && !at_same_rows(&to->lse, rows, 1)))
        return AT_ERR_SHAPE;
    if (!at_is_float(to->out.dtype) || (to->lse.data && !at_is_float(to->lse.dtype)))
        return AT_ERR_DTYPE;
    if (empty) /* its strides are products of a zero */
        return AT_OK;
    return repeats(&to->out) || (to->lse.data && repeats(&to->lse)) ? AT_ERR_STRIDE : AT_OK;
}

enum at_status at_forward(const struct at_engine *e, const struct at_attention *problem,
                          const struct at_result *to)
{
    enum at_status status = at_validate(problem, NULL);
    if (status == AT_OK)
        status = check_result(to, &problem->q, problem->v.dim[3]);
    if (status != AT_OK)
        return status;
    struct at_attention a = *problem;
    a.plan = at_resolve(problem);
    if (e->forward && (a.plan.merge == AT_IN_ORDER || a.plan.splits == 1))
        return e->forward(&a, to);
    int64_t rows = a.q.dim[0] * a.q.dim[1] * a.q.dim[2], n = a.plan.splits, size, all;
    if (__builtin_mul_overflow(rows, (a.v.dim[3] + 2) * at_dtype_size(a.plan.compute), &size) ||
        __builtin_mul_overflow(size, n, &all))
        return AT_ERR_MEMORY;
    struct at_state *x = malloc((size_t)n * sizeof *x);
    char *space = malloc((size_t)all + 1);
    status = x && space ? forward(e, &a, x, space, (size_t)size, to) : AT_ERR_MEMORY;
    free(space);
    free(x);
    return status;
}

/* -- States ---------------------------------------------------------------------------------- */

enum at_status at_check_state(const struct at_state *x)
{
    int64_t Dv = x->u.dim[3];
    if (!at_same_rows(&x->m, &x->u, 1) || !at_same_rows(&x->l, &x->u, 1) || Dv < 1)
        return AT_ERR_SHAPE;
    bool one = x->m.dtype == x->u.dtype && x->l.dtype == x->u.dtype;
    return one && (x->u.dtype == AT_F32 || x->u.dtype == AT_F64) ? AT_OK : AT_ERR_DTYPE;
}

enum at_status at_merge(const struct at_state *x, const struct at_state *y)
{
    enum at_status status = at_check_state(x);
    if (status == AT_OK)
        status = at_check_state(y);
    if (status != AT_OK)
        return status;
    if (!at_same_rows(&x->u, &y->u, y->u.dim[3]))
        return AT_ERR_SHAPE;
    if (x->u.dtype != y->u.dtype)
        return AT_ERR_DTYPE;
    return x->u.dtype == AT_F64 ? at_merge_f64(x, y) : at_merge_f32(x, y);
}

enum at_status at_finish(const struct at_state *x, double gain, const struct at_result *to)
{
    enum at_status status = at_check_state(x);
    if (status == AT_OK)
        status = check_result(to, &x->u, x->u.dim[3]);
    if (status != AT_OK)
        return status;
    return x->u.dtype == AT_F64 ? at_finish_f64(x, gain, to) : at_finish_f32(x, gain, to);
}

/* -- Our engines ----------------------------------------------------------------------------- */

static int64_t ceil_log2(int64_t n)
{
    int64_t k = 0;
    while (((int64_t)1 << k) < n)
        k++;
    return k;
}

static struct at_arith tiled_arith(const struct at_attention *a)
{
    struct at_plan p = at_resolve(a);
    int64_t joins = p.merge == AT_TREE ? ceil_log2(p.splits) : p.splits - 1;
    return (struct at_arith){.name = "tiles",
                             .source = "the engine's own plan",
                             .compute = p.compute,
                             .dot = (a->k.dim[3] + p.lanes - 1) / p.lanes + ceil_log2(p.lanes),
                             .tile = p.bc,
                             .joins = joins,
                             .ordered = true};
}

static struct at_arith two_pass_arith(const struct at_attention *a)
{
    struct at_arith x = tiled_arith(a);
    x.name = "two passes", x.source = "sums in key order, two passes";
    x.tile = at_max(1, at_sizes(a).Skv);
    return x;
}

static int64_t two_pass_bytes(const struct at_attention *a)
{
    struct at_sizes z = at_sizes(a);
    int64_t n;
    if (__builtin_mul_overflow(z.Sq, z.Skv, &n) ||
        __builtin_mul_overflow(n, at_dtype_size(at_compute(a)), &n))
        return INT64_MAX;
    return n;
}

const struct at_engine at_scalar = {.name = "scalar",
                                    .arith = tiled_arith,
                                    .attend_f32 = at_scalar_f32,
                                    .attend_f64 = at_scalar_f64};
const struct at_engine at_standard = {.name = "standard",
                                      .arith = two_pass_arith,
                                      .attend_f32 = at_standard_f32,
                                      .attend_f64 = at_standard_f64,
                                      .workspace = two_pass_bytes};

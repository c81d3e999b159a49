/* at_validate: every misuse has its status and its sentence. Reads lengths, starts and page tables,
 * never q, k, v. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "ref.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Offsets and extents stay far from the ends of int64, so that sums of a few never overflow. */
#define FAR ((int64_t)1 << 48)

__attribute__((format(printf, 3, 4))) static enum at_status
fail(struct at_why *why, enum at_status status, const char *text, ...)
{
    va_list list;
    if (why) {
        va_start(list, text);
        vsnprintf(why->text, sizeof why->text, text, list);
        va_end(list);
    }
    return status;
}

/* -- One tensor ------------------------------------------------------------------------------ */

/* Extents 0 .. FAR whose product counts bytes in int64. */
static enum at_status check_extents(const struct at_view *x, const char *name, struct at_why *why)
{
    int64_t n = at_dtype_size(x->dtype);
    bool zero = false;
    for (int k = 0; k < 4; k++) {
        if (x->dim[k] < 0 || x->dim[k] > FAR)
            return fail(why, AT_ERR_SHAPE, "%s: extent %lld, expected 0 .. 2^48", name,
                        (long long)x->dim[k]);
        zero = zero || x->dim[k] == 0;
    }
    for (int k = 0; k < 4; k++)
        if (!zero && __builtin_mul_overflow(n, x->dim[k], &n))
            return fail(why, AT_ERR_SHAPE, "%s: its bytes overflow 64 bits", name);
    if (!x->data && !zero)
        return fail(why, AT_ERR_MISSING, "%s: absent, expected %lld bytes", name, (long long)n);
    return AT_OK;
}

static enum at_status check_shape(const struct at_view *x, const int64_t to[4], const char *name,
                                  struct at_why *why)
{
    for (int k = 0; k < 4; k++)
        if (x->dim[k] != to[k])
            return fail(why, AT_ERR_SHAPE,
                        "%s: extents (%lld,%lld,%lld,%lld), expected "
                        "(%lld,%lld,%lld,%lld)",
                        name, (long long)x->dim[0], (long long)x->dim[1], (long long)x->dim[2],
                        (long long)x->dim[3], (long long)to[0], (long long)to[1], (long long)to[2],
                        (long long)to[3]);
    return AT_OK;
}

/* A tensor that may be absent, of exactly these extents. */
static enum at_status check_optional(const struct at_view *x, const int64_t to[4], bool number,
                                     const char *name, struct at_why *why)
{
    if (!x->data)
        return AT_OK;
    if (number ? !at_is_float(x->dtype) : x->dtype != AT_U8)
        return fail(why, AT_ERR_DTYPE, "%s: %s, expected %s", name, at_dtype_name(x->dtype),
                    number ? "a float type" : "uint8");
    return check_shape(x, to, name, why);
}

/* -- q, k, v --------------------------------------------------------------------------------- */

static enum at_status check_qkv(const struct at_attention *a, struct at_why *why)
{
    const struct at_view *x[3] = {&a->q, &a->k, &a->v};
    static const char *const name[3] = {"q", "k", "v"};
    for (int t = 0; t < 3; t++) {
        if (!at_is_float(x[t]->dtype))
            return fail(why, AT_ERR_DTYPE, "%s: %s, expected a float type", name[t],
                        at_dtype_name(x[t]->dtype));
        if (x[t]->dim[3] < 1)
            return fail(why, AT_ERR_DIM, "%s: head dimension %lld, expected at least 1", name[t],
                        (long long)x[t]->dim[3]);
        enum at_status status = check_extents(x[t], name[t], why);
        if (status != AT_OK)
            return status;
    }
    int64_t Hq = a->q.dim[1], Hkv = a->k.dim[1];
    if (Hkv < 1 ? Hq != 0 : Hq % Hkv != 0)
        return fail(why, AT_ERR_HEADS, "k: %lld heads, expected a divisor of q's %lld",
                    (long long)Hkv, (long long)Hq);
    if (a->k.dim[3] != a->q.dim[3])
        return fail(why, AT_ERR_SHAPE, "k: head dimension %lld, expected q's %lld",
                    (long long)a->k.dim[3], (long long)a->q.dim[3]);
    for (int k = 0; k < 3; k++)
        if (a->v.dim[k] != a->k.dim[k])
            return fail(why, AT_ERR_SHAPE, "v: extent %d is %lld, expected k's %lld", k,
                        (long long)a->v.dim[k], (long long)a->k.dim[k]);
    return AT_OK;
}

/* -- Sequences ------------------------------------------------------------------------------- */

/* Lengths within 0 .. most (per sequence, or one for all where starts are absent). */
static enum at_status check_lengths(const int64_t *len, int64_t B, int64_t most, const char *name,
                                    struct at_why *why)
{
    for (int64_t b = 0; len && b < B; b++)
        if (len[b] < 0 || len[b] > most)
            return fail(why, AT_ERR_LENGTH, "%s[%lld]: %lld, expected 0 .. %lld", name,
                        (long long)b, (long long)len[b], (long long)most);
    return AT_OK;
}

/* Sequences side by side in `rows` packed rows. */
static enum at_status check_ragged(const int64_t *start, const int64_t *len, int64_t B,
                                   int64_t rows, const char *name, struct at_why *why)
{
    if (!len)
        return fail(why, AT_ERR_MISSING, "%s_len: absent, expected with %s_start", name, name);
    int64_t end = 0;
    for (int64_t b = 0; b < B; b++) {
        if (len[b] < 0 || len[b] > rows)
            return fail(why, AT_ERR_LENGTH, "%s_len[%lld]: %lld, expected 0 .. %lld", name,
                        (long long)b, (long long)len[b], (long long)rows);
        if (start[b] < end || start[b] > rows - len[b])
            return fail(why, AT_ERR_START, "%s_start[%lld]: %lld, expected %lld .. %lld", name,
                        (long long)b, (long long)start[b], (long long)end,
                        (long long)(rows - len[b]));
        end = start[b] + len[b];
    }
    return AT_OK;
}

static enum at_status check_pages(const struct at_attention *a, int64_t B, struct at_why *why)
{
    const struct at_pages *p = &a->pages;
    int64_t size = a->k.dim[2], pages = a->k.dim[0];
    if (a->score.kv_start)
        return fail(why, AT_ERR_UNSUPPORTED, "pages: beside kv_start, expected one of them");
    if (!a->score.kv_len)
        return fail(why, AT_ERR_MISSING, "kv_len: absent, expected with pages");
    if (size < 1)
        return fail(why, AT_ERR_PAGE, "pages: size %lld, expected at least 1", (long long)size);
    if (!p->indptr && (p->width < 0 || p->width > FAR / at_max(size, at_max(B, 1))))
        return fail(why, AT_ERR_PAGE,
                    "pages: width %lld, expected at least 0 and a table that can "
                    "be",
                    (long long)p->width);
    for (int64_t b = 0; b < B; b++) {
        int64_t len = a->score.kv_len[b], first = p->indptr ? p->indptr[b] : b * p->width;
        int64_t room = p->indptr ? (int64_t)p->indptr[b + 1] - first : p->width;
        if (first < 0 || room < 0)
            return fail(why, AT_ERR_PAGE, "indptr[%lld]: does not ascend from 0", (long long)b);
        if (len < 0 || len > FAR || (len + size - 1) / size > room)
            return fail(why, AT_ERR_LENGTH,
                        "kv_len[%lld]: %lld, expected 0 .. %lld (%lld pages of "
                        "%lld)",
                        (long long)b, (long long)len, (long long)(room * size), (long long)room,
                        (long long)size);
        for (int64_t n = 0; n * size < len; n++)
            if (p->table[first + n] < 0 || p->table[first + n] >= pages)
                return fail(why, AT_ERR_PAGE, "table[%lld][%lld]: page %d, expected 0 .. %lld",
                            (long long)b, (long long)n, p->table[first + n],
                            (long long)(pages - 1));
    }
    return AT_OK;
}

static enum at_status check_queries(const struct at_attention *a, int64_t B, struct at_why *why)
{
    const struct at_score *s = &a->score;
    if (!s->q_start)
        return check_lengths(s->q_len, B, a->q.dim[2], "q_len", why);
    if (B < 0 || B > FAR || a->q.dim[0] != 1)
        return fail(why, AT_ERR_SHAPE,
                    "q: ragged with extent 0 of %lld and %lld sequences, expected "
                    "1 and at least 0",
                    (long long)a->q.dim[0], (long long)B);
    return check_ragged(s->q_start, s->q_len, B, a->q.dim[2], "q", why);
}

static enum at_status check_sequences(const struct at_attention *a, struct at_why *why)
{
    const struct at_score *s = &a->score;
    int64_t B = s->q_start ? s->sequences : a->q.dim[0], batch = s->kv_start ? 1 : B;
    enum at_status status = check_queries(a, B, why);
    if (status != AT_OK)
        return status;
    if (a->pages.table)
        status = check_pages(a, B, why);
    else if (a->k.dim[0] != batch)
        status = fail(why, AT_ERR_SHAPE, "k: extent 0 is %lld, expected %lld",
                      (long long)a->k.dim[0], (long long)batch);
    else if (s->kv_start)
        status = check_ragged(s->kv_start, s->kv_len, B, a->k.dim[2], "kv", why);
    else
        status = check_lengths(s->kv_len, B, a->k.dim[2], "kv_len", why);
    for (int64_t b = 0; status == AT_OK && s->offset && b < B; b++)
        if (s->offset[b] < -FAR || s->offset[b] > FAR)
            status = fail(why, AT_ERR_LENGTH, "offset[%lld]: %lld, expected within 2^48",
                          (long long)b, (long long)s->offset[b]);
    return status;
}

/* -- Scores, dropout, plan ------------------------------------------------------------------- */

static enum at_status check_numbers(const struct at_attention *a, struct at_why *why)
{
    const struct at_score *s = &a->score;
    if (!isfinite(s->scale))
        return fail(why, AT_ERR_SCALE, "scale: %g, expected a finite number", s->scale);
    if (!(s->softcap >= 0 && isfinite(s->softcap)))
        return fail(why, AT_ERR_SOFTCAP, "softcap: %g, expected 0 or a positive number",
                    s->softcap);
    float cap = (float)s->softcap;
    if (s->softcap > 0 && !(cap > 0 && isfinite(cap)) && at_compute(a) == AT_F32)
        return fail(why, AT_ERR_SOFTCAP,
                    "softcap: %g, expected a number of fp32, or plan.compute fp64", s->softcap);
    if (s->left < AT_UNBOUNDED || s->right < AT_UNBOUNDED)
        return fail(why, AT_ERR_WINDOW,
                    "window: (%lld,%lld), expected bounds of at least 0, or -1 "
                    "for none",
                    (long long)s->left, (long long)s->right);
    if (!(a->dropout.p >= 0 && a->dropout.p < 1))
        return fail(why, AT_ERR_DROPOUT, "dropout: p %g, expected 0 <= p < 1", a->dropout.p);
    return AT_OK;
}

static enum at_status check_tensors(const struct at_attention *a, struct at_why *why)
{
    const struct at_score *s = &a->score;
    struct at_sizes z = at_sizes(a);
    int64_t n, full[4] = {z.B, z.Hq, z.Sq, z.Skv}, head[4] = {1, z.Hq, 1, 1};
    int64_t query[4] = {z.B, z.Hq, z.Sq, 1}, key[4] = {z.B, z.Hkv, z.Skv, 1};
    if (__builtin_mul_overflow(z.B, z.Hq, &n) || __builtin_mul_overflow(n, z.Sq, &n) ||
        __builtin_mul_overflow(n, z.Skv, &n))
        return fail(why, AT_ERR_SHAPE, "B*Hq*Sq*Skv overflows 64 bits");
    const struct {
        const struct at_view *x;
        const int64_t *to;
        bool number;
        const char *name;
    } list[] = {{&s->bias, full, true, "bias"},         {&s->mask, full, false, "mask"},
                {&s->alibi, head, true, "alibi"},       {&s->sink, head, true, "sink"},
                {&s->qscale, query, true, "q_descale"}, {&s->kscale, key, true, "k_descale"},
                {&s->vscale, key, true, "v_descale"},   {&a->dropout.keep, full, false, "keep"}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        enum at_status status =
            check_optional(list[k].x, list[k].to, list[k].number, list[k].name, why);
        if (status != AT_OK)
            return status;
    }
    return AT_OK;
}

static enum at_status check_plan(const struct at_attention *a, struct at_why *why)
{
    const struct at_plan *p = &a->plan;
    if (p->br < 0 || p->bc < 0 || p->splits < 0 || p->threads < 0)
        return fail(why, AT_ERR_PLAN, "plan: a negative number, expected at least 0");
    if (p->br > FAR || p->bc > FAR || p->splits > FAR)
        return fail(why, AT_ERR_PLAN, "plan: a number past 2^48");
    if (p->cut && p->splits < 1)
        return fail(why, AT_ERR_PLAN, "plan: split points without splits");
    if (p->lanes < 0 || p->lanes > 64 || (p->lanes & (p->lanes - 1)) != 0)
        return fail(why, AT_ERR_PLAN, "plan: %lld lanes, expected 1, 2, 4, .. 64",
                    (long long)p->lanes);
    if (p->merge < AT_IN_ORDER || p->merge > AT_RANDOM)
        return fail(why, AT_ERR_PLAN, "plan: merge order %d, expected 0 .. 3", (int)p->merge);
    for (int64_t k = 0; p->cut && k < p->splits - 1; k++)
        if (p->cut[k] < (k ? p->cut[k - 1] : 0))
            return fail(why, AT_ERR_PLAN, "plan: split point %lld does not ascend from 0",
                        (long long)p->cut[k]);
    if (p->compute != AT_DEFAULT && p->compute != AT_F32 && p->compute != AT_F64)
        return fail(why, AT_ERR_PLAN, "plan: compute %s, expected fp32 or fp64",
                    at_dtype_name(p->compute));
    if (p->compute == AT_F32 && at_compute(a) == AT_F64)
        return fail(why, AT_ERR_UNSUPPORTED, "plan: compute fp32 does not hold fp64 tensors");
    return AT_OK;
}

enum at_status at_validate(const struct at_attention *a, struct at_why *why)
{
    enum at_status status = check_qkv(a, why);
    if (status == AT_OK)
        status = check_sequences(a, why);
    if (status == AT_OK)
        status = check_numbers(a, why);
    if (status == AT_OK)
        status = check_tensors(a, why);
    return status == AT_OK ? check_plan(a, why) : status;
}

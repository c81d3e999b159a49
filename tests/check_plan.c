/* Suite plan: splits, merge orders, at_resolve; every status earned by its misuse, with its sentence
 * and with the outputs untouched; extents of 0; allocations that fail.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "paint.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>

enum { TIMES = 2000 };

/* -- An ordinary problem: B 2, Hq 4, Hkv 2, Sq 3, Skv 5, D 4, Dv 2 ----------------------------------- */

struct base {
    float q[96], k[80], v[40], bias[120], out[48], lse[24];
    uint8_t mask[120];
    int64_t len[2], start[2], cut[3];
    int32_t table[6], indptr[3];
    struct at_attention a;
    struct at_result to;
};

static struct base *base(void)
{
    static struct base x;
    memset(&x, 0, sizeof x);
    memset(x.out, 0xff, sizeof x.out);
    memset(x.lse, 0xff, sizeof x.lse);
    x.a = at_plain(at_bhsd(x.q, AT_F32, 2, 4, 3, 4), at_bhsd(x.k, AT_F32, 2, 2, 5, 4),
                   at_bhsd(x.v, AT_F32, 2, 2, 5, 2), 0.5);
    x.to = (struct at_result){at_bhsd(x.out, AT_F32, 2, 4, 3, 2), at_bhsd(x.lse, AT_F32, 2, 4, 3, 1)};
    return &x;
}

static bool untouched(const struct base *x)
{
    bool good = true;
    for (size_t k = 0; k < sizeof x->out; k++)
        good = good && ((const unsigned char *)x->out)[k] == 0xff;
    for (size_t k = 0; k < sizeof x->lse; k++)
        good = good && ((const unsigned char *)x->lse)[k] == 0xff;
    return good;
}

/* q packed: two sequences of 2 and 1 rows in 3. */
static void pack_q(struct base *x)
{
    x->len[0] = 2, x->len[1] = 1, x->start[0] = 0, x->start[1] = 2;
    x->a.q = at_bhsd(x->q, AT_F32, 1, 4, 3, 4);
    x->to.out = at_bhsd(x->out, AT_F32, 1, 4, 3, 2), x->to.lse = at_bhsd(x->lse, AT_F32, 1, 4, 3, 1);
    x->a.score.q_start = x->start, x->a.score.q_len = x->len, x->a.score.sequences = 2;
}

static void pack_kv(struct base *x)
{
    x->len[0] = 2, x->len[1] = 3, x->start[0] = 0, x->start[1] = 2;
    x->a.k = at_bhsd(x->k, AT_F32, 1, 2, 5, 4), x->a.v = at_bhsd(x->v, AT_F32, 1, 2, 5, 2);
    x->a.score.kv_start = x->start, x->a.score.kv_len = x->len;
}

/* Pages of 2 keys, 3 entries a sequence; 5 pages. */
static void page(struct base *x)
{
    const int32_t table[6] = {4, 0, 2, 1, 3, -1};
    memcpy(x->table, table, sizeof table);
    x->a.k = at_bhsd(x->k, AT_F32, 5, 2, 2, 4), x->a.v = at_bhsd(x->v, AT_F32, 5, 2, 2, 2);
    x->len[0] = 5, x->len[1] = 4;
    x->a.score.kv_len = x->len;
    x->a.pages = (struct at_pages){x->table, NULL, 3};
}

/* -- Misuses ------------------------------------------------------------------------------------------- */

#define SPOIL(name, how) static void name(struct base *x) { how; }
SPOIL(no_q, x->a.q.data = NULL)
SPOIL(no_v, x->a.v.data = NULL)
SPOIL(no_out, x->to.out.data = NULL)
SPOIL(q_start_alone, pack_q(x); x->a.score.q_len = NULL)
SPOIL(kv_start_alone, pack_kv(x); x->a.score.kv_len = NULL)
SPOIL(pages_alone, page(x); x->a.score.kv_len = NULL)
SPOIL(negative_extent, x->a.q.dim[2] = -1)
SPOIL(huge_extent, x->a.k.dim[2] = (int64_t)1 << 49)
SPOIL(huge_product, x->a.q.dim[0] = (int64_t)1 << 40; x->a.q.dim[2] = (int64_t)1 << 40)
SPOIL(huge_scores, x->a.q.dim[2] = (int64_t)1 << 47; x->a.k.dim[2] = x->a.v.dim[2] = (int64_t)1 << 47)
SPOIL(huge_heads, x->a.q.dim[0] = x->a.k.dim[0] = x->a.v.dim[0] = x->a.q.dim[1] = (int64_t)1 << 48;
      x->a.q.dim[2] = x->a.k.dim[2] = x->a.v.dim[2] = 0)
SPOIL(k_narrower, x->a.k.dim[3] = 3)
SPOIL(v_heads, x->a.v.dim[1] = 1)
SPOIL(v_rows, x->a.v.dim[2] = 4)
SPOIL(k_batch, x->a.k.dim[0] = x->a.v.dim[0] = 1)
SPOIL(small_bias, x->a.score.bias = at_bhsd(x->bias, AT_F32, 2, 4, 3, 4))
SPOIL(small_mask, x->a.score.mask = at_bhsd(x->mask, AT_U8, 1, 4, 3, 5))
SPOIL(long_sink, x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 5, 1, 1))
SPOIL(long_alibi, x->a.score.alibi = at_bhsd(x->bias, AT_F32, 1, 2, 1, 1))
SPOIL(wide_qscale, x->a.score.qscale = at_bhsd(x->bias, AT_F32, 2, 4, 3, 2))
SPOIL(q_kscale, x->a.score.kscale = at_bhsd(x->bias, AT_F32, 2, 4, 5, 1))
SPOIL(q_vscale, x->a.score.vscale = at_bhsd(x->bias, AT_F32, 2, 2, 3, 1))
SPOIL(small_keep, x->a.dropout.keep = at_bhsd(x->mask, AT_U8, 2, 4, 5, 3))
SPOIL(ragged_batch, pack_q(x); x->a.q.dim[0] = 2)
SPOIL(ragged_count, pack_q(x); x->a.score.sequences = -1)
SPOIL(ragged_k_batch, pack_kv(x); x->a.k.dim[0] = x->a.v.dim[0] = 2)
SPOIL(narrow_out, x->to.out.dim[3] = 3)
SPOIL(short_lse, x->to.lse.dim[2] = 2)
SPOIL(wide_lse, x->to.lse.dim[3] = 2)
SPOIL(repeated_out, x->to.out.stride[2] = 0)
SPOIL(repeated_lse, x->to.lse.stride[0] = 0)
SPOIL(q_of_bytes, x->a.q.dtype = AT_U8)
SPOIL(v_of_nothing, x->a.v.dtype = AT_DEFAULT)
SPOIL(float_mask, x->a.score.mask = at_bhsd(x->bias, AT_F32, 2, 4, 3, 5))
SPOIL(integer_bias, x->a.score.bias = at_bhsd(x->bias, AT_I32, 2, 4, 3, 5))
SPOIL(integer_out, x->to.out.dtype = AT_I32)
SPOIL(integer_lse, x->to.lse.dtype = AT_U8)
SPOIL(three_heads, x->a.k.dim[1] = x->a.v.dim[1] = 3)
SPOIL(no_heads, x->a.k.dim[1] = x->a.v.dim[1] = 0)
SPOIL(no_columns, x->a.q.dim[3] = x->a.k.dim[3] = 0)
SPOIL(no_values, x->a.v.dim[3] = 0)
SPOIL(nan_scale, x->a.score.scale = (double)NAN)
SPOIL(infinite_scale, x->a.score.scale = -(double)INFINITY)
SPOIL(negative_cap, x->a.score.softcap = -1)
SPOIL(nan_cap, x->a.score.softcap = (double)NAN)
SPOIL(infinite_cap, x->a.score.softcap = (double)INFINITY)
SPOIL(window_of_minus_two, x->a.score.left = -2)
SPOIL(right_of_minus_three, x->a.score.right = -3)
SPOIL(negative_length, x->a.score.kv_len = x->len; x->len[1] = -1)
SPOIL(long_length, x->a.score.kv_len = x->len; x->len[1] = 6)
SPOIL(long_q_length, x->a.score.q_len = x->len; x->len[0] = 4)
SPOIL(far_offset, x->a.score.offset = x->len; x->len[1] = ((int64_t)1 << 48) + 1)
SPOIL(ragged_length, pack_q(x); x->len[1] = 4)
SPOIL(paged_length, page(x); x->len[1] = 7)
SPOIL(negative_paged_length, page(x); x->len[1] = -1)
SPOIL(endless_paged_length, page(x); x->len[0] = INT64_MAX)
SPOIL(overlap, pack_q(x); x->start[1] = 1)
SPOIL(negative_start, pack_kv(x); x->start[0] = -1)
SPOIL(past_the_end, pack_kv(x); x->start[1] = 3)
SPOIL(page_too_far, page(x); x->table[4] = 5)
SPOIL(page_missing, page(x); x->table[1] = -1)
SPOIL(page_of_nothing, page(x); x->a.k.dim[2] = x->a.v.dim[2] = 0)
SPOIL(falling_list, page(x); x->a.pages.indptr = x->indptr; x->indptr[0] = 3; x->indptr[1] = 0)
SPOIL(negative_list, page(x); x->a.pages.indptr = x->indptr; x->indptr[0] = -1)
SPOIL(negative_width, page(x); x->a.pages.width = -1)
SPOIL(p_of_one, x->a.dropout.p = 1)
SPOIL(negative_p, x->a.dropout.p = -0.25)
SPOIL(nan_p, x->a.dropout.p = (double)NAN)
SPOIL(negative_tile, x->a.plan.bc = -1)
SPOIL(endless_tile, x->a.plan.bc = INT64_MAX)
SPOIL(endless_query_tile, x->a.plan.br = INT64_MAX)
SPOIL(negative_splits, x->a.plan.splits = -1)
SPOIL(negative_threads, x->a.plan.threads = -1)
SPOIL(three_lanes, x->a.plan.lanes = 3)
SPOIL(many_lanes, x->a.plan.lanes = 128)
SPOIL(fifth_order, x->a.plan.merge = (enum at_order)4)
SPOIL(half_compute, x->a.plan.compute = AT_F16)
SPOIL(falling_cut, x->a.plan.splits = 4; x->a.plan.cut = x->cut; x->cut[0] = 2; x->cut[1] = 1)
SPOIL(negative_cut, x->a.plan.splits = 2; x->a.plan.cut = x->cut; x->cut[0] = -1)
SPOIL(cut_without_splits, x->a.plan.cut = x->cut)
SPOIL(narrow_compute, x->a.plan.compute = AT_F32;
      x->a.score.bias = at_repeated(at_bhsd(x->bias, AT_F64, 1, 1, 1, 5), 2, 4, 3, 5))
SPOIL(pages_and_starts, page(x); x->a.score.kv_start = x->start)
SPOIL(endless_splits, x->a.plan.splits = (int64_t)1 << 47)

static const struct misuse {
    void (*spoil)(struct base *x);
    enum at_status status;
    const char *says; /* part of why; NULL: only at_forward can tell */
} misuses[] = {
    {no_q, AT_ERR_MISSING, "q"}, {no_v, AT_ERR_MISSING, "v"}, {no_out, AT_ERR_MISSING, NULL},
    {q_start_alone, AT_ERR_MISSING, "q_len"}, {kv_start_alone, AT_ERR_MISSING, "kv_len"},
    {pages_alone, AT_ERR_MISSING, "kv_len"}, {negative_extent, AT_ERR_SHAPE, "q: extent -1"},
    {huge_extent, AT_ERR_SHAPE, "k: extent"}, {huge_product, AT_ERR_SHAPE, "overflow"},
    {huge_scores, AT_ERR_SHAPE, "overflow"}, {huge_heads, AT_ERR_SHAPE, "overflow"},
    {k_narrower, AT_ERR_SHAPE, "k: head dimension 3, expected q's 4"},
    {v_heads, AT_ERR_SHAPE, "v: extent 1"}, {v_rows, AT_ERR_SHAPE, "v: extent 2"},
    {k_batch, AT_ERR_SHAPE, "k: extent 0"},
    {small_bias, AT_ERR_SHAPE, "bias: extents (2,4,3,4), expected (2,4,3,5)"},
    {small_mask, AT_ERR_SHAPE, "mask"}, {long_sink, AT_ERR_SHAPE, "sink"},
    {long_alibi, AT_ERR_SHAPE, "alibi"}, {wide_qscale, AT_ERR_SHAPE, "q_descale"},
    {q_kscale, AT_ERR_SHAPE, "k_descale"}, {q_vscale, AT_ERR_SHAPE, "v_descale"},
    {small_keep, AT_ERR_SHAPE, "keep"}, {ragged_batch, AT_ERR_SHAPE, "q: ragged"},
    {ragged_count, AT_ERR_SHAPE, "sequences"}, {ragged_k_batch, AT_ERR_SHAPE, "k: extent 0"},
    {narrow_out, AT_ERR_SHAPE, NULL}, {short_lse, AT_ERR_SHAPE, NULL}, {wide_lse, AT_ERR_SHAPE, NULL},
    {repeated_out, AT_ERR_STRIDE, NULL}, {repeated_lse, AT_ERR_STRIDE, NULL},
    {q_of_bytes, AT_ERR_DTYPE, "q: uint8"}, {v_of_nothing, AT_ERR_DTYPE, "v: default"},
    {float_mask, AT_ERR_DTYPE, "mask: fp32, expected uint8"},
    {integer_bias, AT_ERR_DTYPE, "bias: int32, expected a float type"},
    {integer_out, AT_ERR_DTYPE, NULL}, {integer_lse, AT_ERR_DTYPE, NULL},
    {three_heads, AT_ERR_HEADS, "k: 3 heads, expected a divisor of q's 4"},
    {no_heads, AT_ERR_HEADS, "k: 0 heads"}, {no_columns, AT_ERR_DIM, "q: head dimension 0"},
    {no_values, AT_ERR_DIM, "v: head dimension 0"}, {nan_scale, AT_ERR_SCALE, "scale"},
    {infinite_scale, AT_ERR_SCALE, "scale: -inf"}, {negative_cap, AT_ERR_SOFTCAP, "softcap: -1"},
    {nan_cap, AT_ERR_SOFTCAP, "softcap"}, {infinite_cap, AT_ERR_SOFTCAP, "softcap: inf"},
    {window_of_minus_two, AT_ERR_WINDOW, "window: (-2,-1)"},
    {right_of_minus_three, AT_ERR_WINDOW, "window: (-1,-3)"},
    {negative_length, AT_ERR_LENGTH, "kv_len[1]: -1, expected 0 .. 5"},
    {long_length, AT_ERR_LENGTH, "kv_len[1]: 6"}, {long_q_length, AT_ERR_LENGTH, "q_len[0]: 4"},
    {far_offset, AT_ERR_LENGTH, "offset[1]"}, {ragged_length, AT_ERR_LENGTH, "q_len[1]: 4"},
    {paged_length, AT_ERR_LENGTH, "kv_len[1]: 7, expected 0 .. 6 (3 pages of 2)"},
    {negative_paged_length, AT_ERR_LENGTH, "kv_len[1]: -1"},
    {endless_paged_length, AT_ERR_LENGTH, "kv_len[0]"}, {overlap, AT_ERR_START, "q_start[1]: 1"},
    {negative_start, AT_ERR_START, "kv_start[0]: -1"},
    {past_the_end, AT_ERR_START, "kv_start[1]: 3, expected 2 .. 2"},
    {page_too_far, AT_ERR_PAGE, "table[1][1]: page 5, expected 0 .. 4"},
    {page_missing, AT_ERR_PAGE, "table[0][1]: page -1"}, {page_of_nothing, AT_ERR_PAGE, "size 0"},
    {falling_list, AT_ERR_PAGE, "indptr[0]"}, {negative_list, AT_ERR_PAGE, "indptr[0]"},
    {negative_width, AT_ERR_PAGE, "width -1"}, {p_of_one, AT_ERR_DROPOUT, "p 1"},
    {negative_p, AT_ERR_DROPOUT, "p -0.25"}, {nan_p, AT_ERR_DROPOUT, "dropout"},
    {negative_tile, AT_ERR_PLAN, "negative"}, {endless_tile, AT_ERR_PLAN, "plan"},
    {endless_query_tile, AT_ERR_PLAN, "plan"}, {negative_splits, AT_ERR_PLAN, "negative"},
    {negative_threads, AT_ERR_PLAN, "negative"}, {three_lanes, AT_ERR_PLAN, "3 lanes"},
    {many_lanes, AT_ERR_PLAN, "128 lanes"}, {fifth_order, AT_ERR_PLAN, "merge order 4"},
    {half_compute, AT_ERR_PLAN, "compute fp16"}, {falling_cut, AT_ERR_PLAN, "split point 1"},
    {negative_cut, AT_ERR_PLAN, "split point -1"}, {cut_without_splits, AT_ERR_PLAN, "plan"},
    {narrow_compute, AT_ERR_UNSUPPORTED, "compute fp32"},
    {pages_and_starts, AT_ERR_UNSUPPORTED, "pages"}, {endless_splits, AT_ERR_MEMORY, NULL}};
enum { MISUSES = sizeof misuses / sizeof *misuses };

START_TEST(each_misuse_earns_its_status_and_its_sentence)
{
    const struct misuse *m = &misuses[_i];
    struct base *x = base();
    struct at_why why = {""};
    m->spoil(x);
    enum at_status status = at_validate(&x->a, &why);
    if (m->says) {
        ck_assert_msg(status == m->status, "misuse %d: status %d, expected %d: %s", _i, (int)status,
                      (int)m->status, why.text);
        ck_assert_msg(strstr(why.text, m->says) != NULL, "misuse %d says: %s", _i, why.text);
        ck_assert_int_eq(at_validate(&x->a, NULL), m->status);
    } else {
        ck_assert_int_eq(status, AT_OK);
    }
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), m->status);
    ck_assert_int_eq(at_forward(&at_standard, &x->a, &x->to), m->status);
    ck_assert(untouched(x));
}
END_TEST

START_TEST(legal_neighbours_of_the_misuses_pass)
{
    void (*const start[])(struct base *) = {pack_q, pack_kv, page};
    for (int t = 0; t < 3; t++) {
        struct base *x = base();
        start[t](x);
        ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
    }
    struct base *x = base();
    x->a.plan.splits = 4, x->a.plan.cut = x->cut, x->cut[0] = 2, x->cut[1] = 2, x->cut[2] = 99;
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
}
END_TEST

START_TEST(every_status_has_a_sentence_of_its_own)
{
    for (int s = AT_OK; s <= AT_ERR_MEMORY; s++) {
        const char *text = at_strstatus((enum at_status)s);
        ck_assert(strlen(text) > 5 && text[strlen(text) - 1] != '.');
        for (int t = AT_OK; t < s; t++)
            ck_assert_str_ne(text, at_strstatus((enum at_status)t));
    }
    ck_assert_str_eq(at_strstatus((enum at_status)99), "unknown status");
}
END_TEST

START_TEST(an_engine_without_code_for_the_type_is_unsupported)
{
    struct base *x = base();
    struct at_engine half = at_scalar;
    half.attend_f32 = NULL;
    ck_assert_int_eq(at_forward(&half, &x->a, &x->to), AT_ERR_UNSUPPORTED);
    ck_assert(untouched(x));
}
END_TEST

/* -- States: what at_merge and at_finish refuse ----------------------------------------------------------- */

struct states {
    float m[4], l[4], u[8];
    double wide[8];
    struct at_state x;
};

static void state(struct states *s)
{
    *s = (struct states){.m = {0}};
    s->x = (struct at_state){at_bhsd(s->m, AT_F32, 1, 2, 2, 1), at_bhsd(s->l, AT_F32, 1, 2, 2, 1),
                             at_bhsd(s->u, AT_F32, 1, 2, 2, 2)};
}

START_TEST(states_that_do_not_match_are_refused)
{
    struct states x, y;
    struct base *b = base();
    struct at_result to = {at_bhsd(b->out, AT_F32, 1, 2, 2, 2), {.data = NULL}};
    state(&x), state(&y);
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_OK);
    y.x.m.dim[2] = 1;
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_ERR_SHAPE);
    state(&y), y.x.l.dim[3] = 2;
    ck_assert_int_eq(at_merge(&y.x, &x.x), AT_ERR_SHAPE);
    ck_assert_int_eq(at_finish(&y.x, 1, &to), AT_ERR_SHAPE);
    state(&y), y.x.u.dim[3] = 1;
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_ERR_SHAPE);
    state(&y), y.x.u.dim[3] = 0;
    ck_assert_int_eq(at_merge(&y.x, &x.x), AT_ERR_SHAPE);
    state(&y), y.x.m.dtype = AT_F64;
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_ERR_DTYPE);
    state(&y), y.x.m.dtype = y.x.l.dtype = y.x.u.dtype = AT_F16;
    ck_assert_int_eq(at_merge(&y.x, &x.x), AT_ERR_DTYPE);
    state(&y);
    y.x.m = y.x.l = at_bhsd(y.wide, AT_F64, 1, 2, 2, 1), y.x.u = at_bhsd(y.wide, AT_F64, 1, 2, 2, 2);
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_ERR_DTYPE);
    to.out.dim[3] = 1;
    ck_assert_int_eq(at_finish(&x.x, 1, &to), AT_ERR_SHAPE);
    ck_assert(untouched(b));
}
END_TEST

/* -- Splits -------------------------------------------------------------------------------------------------- */

START_TEST(splits_cover_each_key_once)
{
    const uint64_t seed = paint_seed();
    struct paint r = paint_from(seed, 1);
    for (int t = 0; t < TIMES; t++) {
        struct base *x = base();
        int64_t cut[9], splits = paint_int(&r, 1, 9), Skv = paint_int(&r, 0, 40), end = 0;
        x->a.k.dim[2] = x->a.v.dim[2] = Skv;
        x->a.plan.bc = paint_int(&r, 1, 20), x->a.plan.splits = splits;
        for (int64_t k = 0; k < splits; k++)
            cut[k] = (k ? cut[k - 1] : 0) + paint_int(&r, 0, 1) * paint_int(&r, 0, 9);
        x->a.plan.cut = t % 2 ? cut : NULL;
        for (int64_t k = 0; k < splits; k++) {
            ck_assert(at_split(&x->a, k) == end && at_split(&x->a, k + 1) >= end);
            end = at_split(&x->a, k + 1);
            if (t % 2 && k < splits - 1)
                ck_assert(end == (cut[k] < Skv ? cut[k] : Skv));
            if (t % 2 == 0)
                ck_assert(end % x->a.plan.bc == 0 || end == Skv); /* whole tiles */
        }
        ck_assert_msg(end == Skv, "SEED=%llu build/tests/check_plan", (unsigned long long)seed);
    }
}
END_TEST

/* An engine that computes nothing: it writes down which keys it is given, and states it was told. */
static struct {
    int64_t j0[16], j1[16];
    int n;
    float u[16];
} spy;

static enum at_status attend_spy(const struct at_attention *a, int64_t j0, int64_t j1,
                                 const struct at_state *x)
{
    (void)a;
    spy.j0[spy.n] = j0, spy.j1[spy.n] = j1;
    for (int64_t t = 0; t < x->m.dim[0] * x->m.dim[1] * x->m.dim[2]; t++) {
        ((float *)x->m.data)[t] = 0;
        ((float *)x->l.data)[t] = 1;
        for (int64_t c = 0; c < x->u.dim[3]; c++)
            ((float *)x->u.data)[t * x->u.dim[3] + c] = spy.u[spy.n];
    }
    spy.n++;
    return AT_OK;
}

static const struct at_engine at_spy = {.name = "spy", .attend_f32 = attend_spy};

/* sum of u over four splits, told from out = u/4. */
static float merged(enum at_order order, uint64_t seed, int64_t splits, const float *u)
{
    struct base *x = base();
    x->a.plan.bc = 1, x->a.plan.splits = splits;
    x->a.plan.merge = order, x->a.plan.merge_seed = seed;
    spy.n = 0;
    memcpy(spy.u, u, (size_t)splits * sizeof *u);
    ck_assert_int_eq(at_forward(&at_spy, &x->a, &x->to), AT_OK);
    ck_assert_int_eq(spy.n, (int)splits);
    for (int k = 1; k < spy.n; k++)
        ck_assert(spy.j0[k] == spy.j1[k - 1]);
    ck_assert(spy.j0[0] == 0 && spy.j1[spy.n - 1] == 5);
    return x->out[47] * (float)splits;
}

/* 1 + ulp/2 is 1, so that the brackets show: ulp = 2^-23. */
START_TEST(states_merge_in_the_order_of_the_plan)
{
    const float ulp = 0x1p-23f, u[4] = {1, ulp / 2, ulp / 2, ulp / 2};
    ck_assert(merged(AT_IN_ORDER, 0, 4, u) == 1);          /* ((0+1)+2)+3 */
    ck_assert(merged(AT_REVERSED, 0, 4, u) == 1 + 2 * ulp); /* 0+(1+(2+3)) */
    ck_assert(merged(AT_TREE, 0, 4, u) == 1 + ulp);        /* (0+1)+(2+3) */
    const float v[8] = {1, ulp / 2, 1, ulp / 2, ulp / 2, ulp / 2, 0, 0};
    /* ((1 + 1) + (2 ulp/2 + 0)): tied, to even */
    ck_assert(merged(AT_TREE, 0, 8, v) == 2);
    ck_assert(merged(AT_TREE, 0, 3, (float[]){1, ulp / 2, ulp / 2}) * 1 == 1);
}
END_TEST

START_TEST(a_random_merge_order_repeats_with_its_seed_and_differs_between_seeds)
{
    const float ulp = 0x1p-23f, u[4] = {1, ulp / 2, ulp / 2, ulp / 2};
    int64_t seen[3] = {0, 0, 0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        float x = merged(AT_RANDOM, seed, 4, u);
        ck_assert(x == merged(AT_RANDOM, seed, 4, u));
        ck_assert(x == 1 || x == 1 + ulp || x == 1 + 2 * ulp);
        seen[(int)((x - 1) / ulp)]++;
    }
    ck_assert(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}
END_TEST

/* -- at_resolve --------------------------------------------------------------------------------------------- */

static bool same_plan(const struct at_plan *x, const struct at_plan *y)
{
    return x->compute == y->compute && x->br == y->br && x->bc == y->bc && x->lanes == y->lanes &&
           x->splits == y->splits && x->cut == y->cut && x->merge == y->merge &&
           x->merge_seed == y->merge_seed && x->threads == y->threads;
}

START_TEST(resolving_is_pure_complete_and_done_once)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = 0; t < TIMES; t++) {
        struct problem p;
        paint_problem(&p, seed + t, (struct paint_options){0});
        struct at_attention before;
        memcpy(&before, &p.a, sizeof before);
        struct at_plan x = at_resolve(&p.a), y = at_resolve(&p.a);
        ck_assert(memcmp(&before, &p.a, sizeof before) == 0 && same_plan(&x, &y));
        ck_assert(x.br > 0 && x.bc > 0 && x.lanes > 0 && x.splits > 0 && x.threads > 0);
        ck_assert(x.compute == AT_F32 || x.compute == AT_F64);
        ck_assert(!p.a.plan.bc || x.bc == p.a.plan.bc);
        ck_assert(!p.a.plan.lanes || x.lanes == p.a.plan.lanes);
        ck_assert(!p.a.plan.splits || x.splits == p.a.plan.splits);
        p.a.plan = x;
        y = at_resolve(&p.a);
        ck_assert(same_plan(&x, &y));
        problem_free(&p);
    }
}
END_TEST

START_TEST(any_tensor_of_doubles_asks_for_double)
{
    struct base *x = base();
    ck_assert(at_resolve(&x->a).compute == AT_F32);
    const struct at_view wide = at_bhsd(x->bias, AT_F64, 1, 1, 1, 1);
    struct at_view *const place[] = {&x->a.q, &x->a.k, &x->a.v, &x->a.score.bias, &x->a.score.qscale,
                                     &x->a.score.kscale, &x->a.score.vscale};
    for (int k = 0; k < 7; k++) {
        struct at_view old = *place[k];
        *place[k] = wide;
        ck_assert(at_resolve(&x->a).compute == AT_F64);
        *place[k] = old;
    }
    x->a.plan.compute = AT_F64;
    ck_assert(at_resolve(&x->a).compute == AT_F64);
}
END_TEST

START_TEST(the_plan_of_the_bound_follows_the_plan_of_the_engine)
{
    struct base *x = base();
    x->a.plan = (struct at_plan){.bc = 2, .splits = 5, .lanes = 1, .merge = AT_IN_ORDER};
    struct at_arith arith = at_scalar.arith(&x->a);
    ck_assert(arith.tile == 2 && arith.joins == 4 && arith.dot == 4 && arith.compute == AT_F32);
    x->a.plan.merge = AT_TREE, x->a.plan.lanes = 2;
    x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 4, 1, 1);
    arith = at_scalar.arith(&x->a);
    ck_assert(arith.joins == 4 && arith.dot == 3); /* ceil(log2 5) + sink; 4/2 + 1 */
    ck_assert(at_standard.workspace(&x->a) == 3 * 5 * 4);
    x->a.q.dim[2] = x->a.k.dim[2] = (int64_t)1 << 40;
    ck_assert(at_standard.workspace(&x->a) == INT64_MAX);
}
END_TEST

/* -- Extents of 0 ------------------------------------------------------------------------------------------- */

START_TEST(empty_batches_heads_and_queries_give_empty_results)
{
    for (int d = 0; d < 3; d++) {
        struct base *x = base();
        x->a.q.dim[d] = x->to.out.dim[d] = x->to.lse.dim[d] = 0;
        if (d < 1)
            x->a.k.dim[d] = x->a.v.dim[d] = 0;
        x->a.q.data = x->to.out.data = x->to.lse.data = NULL;
        ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
        ck_assert_int_eq(at_forward(&at_standard, &x->a, &x->to), AT_OK);
        ck_assert(untouched(x));
    }
}
END_TEST

START_TEST(without_keys_every_row_is_empty)
{
    const struct at_engine *const engine[] = {&at_scalar, &at_standard};
    for (int e = 0; e < 2; e++) {
        struct base *x = base();
        x->a.k.dim[2] = x->a.v.dim[2] = 0;
        x->a.k.data = x->a.v.data = NULL;
        ck_assert_int_eq(at_forward(engine[e], &x->a, &x->to), AT_OK);
        for (int k = 0; k < 48; k++)
            ck_assert(x->out[k] == 0 && !signbit(x->out[k]));
        for (int k = 0; k < 24; k++)
            ck_assert(x->lse[k] == -INFINITY);
    }
}
END_TEST

START_TEST(packed_rows_of_no_sequence_are_zero)
{
    struct base *x = base();
    pack_q(x);
    x->len[0] = 1, x->len[1] = 0; /* row 1 and row 2 belong to nobody */
    for (int k = 0; k < 96; k++)
        x->q[k] = NAN;
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
    for (int h = 0; h < 4; h++)
        for (int i = 1; i < 3; i++)
            ck_assert(x->out[h * 6 + i * 2] == 0 && x->lse[h * 3 + i] == -INFINITY);
}
END_TEST

/* -- Allocations that fail (linked with --wrap=malloc) -------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
static int64_t countdown; /* the allocation that fails; 0: none */

void *__wrap_malloc(size_t bytes)
{
    int64_t left;
#pragma omp atomic capture
    left = countdown--;
    return left == 1 ? NULL : __real_malloc(bytes);
}

START_TEST(an_allocation_that_fails_is_told_and_nothing_is_written)
{
    const struct at_engine *const engine[] = {&at_scalar, &at_standard};
    for (int e = 0; e < 4; e++) {
        int64_t turn = 0;
        enum at_status status = AT_ERR_MEMORY;
        while (status == AT_ERR_MEMORY && turn < 99) {
            struct base *x = base();
            x->a.score.sink = at_bhsd(x->bias, AT_F32, 1, 4, 1, 1);
            x->a.plan = (struct at_plan){.splits = 3, .bc = 1, .threads = 2};
            x->a.plan.compute = e < 2 ? AT_F32 : AT_F64;
            countdown = ++turn;
            status = at_forward(engine[e % 2], &x->a, &x->to);
            countdown = 0;
            ck_assert(status == AT_OK || untouched(x));
        }
        ck_assert(status == AT_OK && turn > 4);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, each_misuse_earns_its_status_and_its_sentence, 0, MISUSES);
    tcase_add_test(c, legal_neighbours_of_the_misuses_pass);
    tcase_add_test(c, every_status_has_a_sentence_of_its_own);
    tcase_add_test(c, an_engine_without_code_for_the_type_is_unsupported);
    tcase_add_test(c, states_that_do_not_match_are_refused);
    tcase_add_test(c, splits_cover_each_key_once);
    tcase_add_test(c, states_merge_in_the_order_of_the_plan);
    tcase_add_test(c, a_random_merge_order_repeats_with_its_seed_and_differs_between_seeds);
    tcase_add_test(c, resolving_is_pure_complete_and_done_once);
    tcase_add_test(c, any_tensor_of_doubles_asks_for_double);
    tcase_add_test(c, the_plan_of_the_bound_follows_the_plan_of_the_engine);
    tcase_add_test(c, empty_batches_heads_and_queries_give_empty_results);
    tcase_add_test(c, without_keys_every_row_is_empty);
    tcase_add_test(c, packed_rows_of_no_sequence_are_zero);
    tcase_add_test(c, an_allocation_that_fails_is_told_and_nothing_is_written);
    suite_add_tcase(s, c);
    return paint_run(s);
}

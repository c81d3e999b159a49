/* Suite validate: every status earned by its misuse, with its sentence and with the outputs
 * untouched. SPDX-License-Identifier: MIT */
#include "base.h"
#include "ref.h"
#include <math.h>

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

/* -- Misuses ----------------------------------------------------------------------------------- */

#define SPOIL(name, how)                                                                           \
    static void name(struct base *x) { how; }
SPOIL(no_q, x->a.q.data = NULL)
SPOIL(no_v, x->a.v.data = NULL)
SPOIL(no_out, x->to.out.data = NULL)
SPOIL(q_start_alone, pack_q(x); x->a.score.q_len = NULL)
SPOIL(kv_start_alone, pack_kv(x); x->a.score.kv_len = NULL)
SPOIL(pages_alone, page(x); x->a.score.kv_len = NULL)
SPOIL(negative_extent, x->a.q.dim[2] = -1)
SPOIL(huge_extent, x->a.k.dim[2] = (int64_t)1 << 49)
SPOIL(huge_product, x->a.q.dim[0] = (int64_t)1 << 40; x->a.q.dim[2] = (int64_t)1 << 40)
SPOIL(huge_scores, x->a.q.dim[2] = (int64_t)1 << 47;
      x->a.k.dim[2] = x->a.v.dim[2] = (int64_t)1 << 47)
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
SPOIL(tiny_cap, x->a.score.softcap = 0x1p-160)
SPOIL(far_cap, x->a.score.softcap = 0x1p140)
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
} misuses[] = {{no_q, AT_ERR_MISSING, "q"},
               {no_v, AT_ERR_MISSING, "v"},
               {no_out, AT_ERR_MISSING, NULL},
               {q_start_alone, AT_ERR_MISSING, "q_len"},
               {kv_start_alone, AT_ERR_MISSING, "kv_len"},
               {pages_alone, AT_ERR_MISSING, "kv_len"},
               {negative_extent, AT_ERR_SHAPE, "q: extent -1"},
               {huge_extent, AT_ERR_SHAPE, "k: extent"},
               {huge_product, AT_ERR_SHAPE, "overflow"},
               {huge_scores, AT_ERR_SHAPE, "overflow"},
               {huge_heads, AT_ERR_SHAPE, "overflow"},
               {k_narrower, AT_ERR_SHAPE, "k: head dimension 3, expected q's 4"},
               {v_heads, AT_ERR_SHAPE, "v: extent 1"},
               {v_rows, AT_ERR_SHAPE, "v: extent 2"},
               {k_batch, AT_ERR_SHAPE, "k: extent 0"},
               {small_bias, AT_ERR_SHAPE, "bias: extents (2,4,3,4), expected (2,4,3,5)"},
               {small_mask, AT_ERR_SHAPE, "mask"},
               {long_sink, AT_ERR_SHAPE, "sink"},
               {long_alibi, AT_ERR_SHAPE, "alibi"},
               {wide_qscale, AT_ERR_SHAPE, "q_descale"},
               {q_kscale, AT_ERR_SHAPE, "k_descale"},
               {q_vscale, AT_ERR_SHAPE, "v_descale"},
               {small_keep, AT_ERR_SHAPE, "keep"},
               {ragged_batch, AT_ERR_SHAPE, "q: ragged"},
               {ragged_count, AT_ERR_SHAPE, "sequences"},
               {ragged_k_batch, AT_ERR_SHAPE, "k: extent 0"},
               {narrow_out, AT_ERR_SHAPE, NULL},
               {short_lse, AT_ERR_SHAPE, NULL},
               {wide_lse, AT_ERR_SHAPE, NULL},
               {repeated_out, AT_ERR_STRIDE, NULL},
               {repeated_lse, AT_ERR_STRIDE, NULL},
               {q_of_bytes, AT_ERR_DTYPE, "q: uint8"},
               {v_of_nothing, AT_ERR_DTYPE, "v: default"},
               {float_mask, AT_ERR_DTYPE, "mask: fp32, expected uint8"},
               {integer_bias, AT_ERR_DTYPE, "bias: int32, expected a float type"},
               {integer_out, AT_ERR_DTYPE, NULL},
               {integer_lse, AT_ERR_DTYPE, NULL},
               {three_heads, AT_ERR_HEADS, "k: 3 heads, expected a divisor of q's 4"},
               {no_heads, AT_ERR_HEADS, "k: 0 heads"},
               {no_columns, AT_ERR_DIM, "q: head dimension 0"},
               {no_values, AT_ERR_DIM, "v: head dimension 0"},
               {nan_scale, AT_ERR_SCALE, "scale"},
               {infinite_scale, AT_ERR_SCALE, "scale: -inf"},
               {negative_cap, AT_ERR_SOFTCAP, "softcap: -1"},
               {nan_cap, AT_ERR_SOFTCAP, "softcap"},
               {infinite_cap, AT_ERR_SOFTCAP, "softcap: inf"},
               {tiny_cap, AT_ERR_SOFTCAP, "expected a number of fp32"},
               {far_cap, AT_ERR_SOFTCAP, "softcap"},
               {window_of_minus_two, AT_ERR_WINDOW, "window: (-2,-1)"},
               {right_of_minus_three, AT_ERR_WINDOW, "window: (-1,-3)"},
               {negative_length, AT_ERR_LENGTH, "kv_len[1]: -1, expected 0 .. 5"},
               {long_length, AT_ERR_LENGTH, "kv_len[1]: 6"},
               {long_q_length, AT_ERR_LENGTH, "q_len[0]: 4"},
               {far_offset, AT_ERR_LENGTH, "offset[1]"},
               {ragged_length, AT_ERR_LENGTH, "q_len[1]: 4"},
               {paged_length, AT_ERR_LENGTH, "kv_len[1]: 7, expected 0 .. 6 (3 pages of 2)"},
               {negative_paged_length, AT_ERR_LENGTH, "kv_len[1]: -1"},
               {endless_paged_length, AT_ERR_LENGTH, "kv_len[0]"},
               {overlap, AT_ERR_START, "q_start[1]: 1"},
               {negative_start, AT_ERR_START, "kv_start[0]: -1"},
               {past_the_end, AT_ERR_START, "kv_start[1]: 3, expected 2 .. 2"},
               {page_too_far, AT_ERR_PAGE, "table[1][1]: page 5, expected 0 .. 4"},
               {page_missing, AT_ERR_PAGE, "table[0][1]: page -1"},
               {page_of_nothing, AT_ERR_PAGE, "size 0"},
               {falling_list, AT_ERR_PAGE, "indptr[0]"},
               {negative_list, AT_ERR_PAGE, "indptr[0]"},
               {negative_width, AT_ERR_PAGE, "width -1"},
               {p_of_one, AT_ERR_DROPOUT, "p 1"},
               {negative_p, AT_ERR_DROPOUT, "p -0.25"},
               {nan_p, AT_ERR_DROPOUT, "dropout"},
               {negative_tile, AT_ERR_PLAN, "negative"},
               {endless_tile, AT_ERR_PLAN, "plan"},
               {endless_query_tile, AT_ERR_PLAN, "plan"},
               {negative_splits, AT_ERR_PLAN, "negative"},
               {negative_threads, AT_ERR_PLAN, "negative"},
               {three_lanes, AT_ERR_PLAN, "3 lanes"},
               {many_lanes, AT_ERR_PLAN, "128 lanes"},
               {fifth_order, AT_ERR_PLAN, "merge order 4"},
               {half_compute, AT_ERR_PLAN, "compute fp16"},
               {falling_cut, AT_ERR_PLAN, "split point 1"},
               {negative_cut, AT_ERR_PLAN, "split point -1"},
               {cut_without_splits, AT_ERR_PLAN, "plan"},
               {narrow_compute, AT_ERR_UNSUPPORTED, "compute fp32"},
               {pages_and_starts, AT_ERR_UNSUPPORTED, "pages"},
               {endless_splits, AT_ERR_MEMORY, NULL}};
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
    x->a.score.softcap = 0x1p140, x->a.plan.compute = AT_F64;
    ck_assert_int_eq(at_forward(&at_scalar, &x->a, &x->to), AT_OK);
    x = base();
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

/* -- States: what at_merge and at_finish refuse ------------------------------------------------ */

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
    y.x.m = y.x.l = at_bhsd(y.wide, AT_F64, 1, 2, 2, 1),
    y.x.u = at_bhsd(y.wide, AT_F64, 1, 2, 2, 2);
    ck_assert_int_eq(at_merge(&x.x, &y.x), AT_ERR_DTYPE);
    to.out.dim[3] = 1;
    ck_assert_int_eq(at_finish(&x.x, 1, &to), AT_ERR_SHAPE);
    ck_assert(untouched(b));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("validate");
    TCase *c = tcase_create("validate");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, each_misuse_earns_its_status_and_its_sentence, 0, MISUSES);
    tcase_add_test(c, legal_neighbours_of_the_misuses_pass);
    tcase_add_test(c, every_status_has_a_sentence_of_its_own);
    tcase_add_test(c, an_engine_without_code_for_the_type_is_unsupported);
    tcase_add_test(c, states_that_do_not_match_are_refused);
    suite_add_tcase(s, c);
    return paint_run(s);
}

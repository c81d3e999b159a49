/* Suite engines: scalar and standard against truth, within the bound, on problems painted over
 * every field of the descriptor; and what must not change a bit: hidden keys, batch mates, threads.
 * A failure is shrunk and told as one line. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "hold.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct at_engine *const engines[] = {&at_scalar, &at_standard};
enum { ENGINES = 2, TIMES = 4000, FEWER = 600 };

static struct paint_options given(void)
{
    return (struct paint_options){.without = (uint32_t)paint_number("WITHOUT", 0),
                                  .most = paint_number("MOST", 0)};
}

static int64_t count(int64_t otherwise) { return paint_number("COUNT", otherwise); }

/* -- Within the bound -------------------------------------------------------------------------- */

static bool leaves_the_bound(struct problem *p, void *with)
{
    struct hold h;
    if (!hold_truth(&h, &p->a))
        return true;
    hold_engine(&h, *(const struct at_engine *const *)with, &p->a, &p->got);
    bool bad = h.status != AT_OK || h.verdict.failed > 0 || !problem_gaps_untouched(p);
    hold_free(&h);
    return bad;
}

static void tell(uint64_t seed, const struct at_engine *e)
{
    struct paint_options small = paint_shrink(seed, given(), leaves_the_bound, &e);
    struct problem p;
    struct hold h;
    paint_problem(&p, seed, small);
    if (hold_truth(&h, &p.a))
        hold_engine(&h, e, &p.a, &p.got);
    ck_abort_msg("%s: %s\n    %s\n    %s", e->name, hold_line(&h), problem_line(&p),
                 paint_repro(seed, small, "check_engines"));
}

/* What all problems together came to, for one engine. */
struct sum {
    int64_t judged, open, unclaimed;
    double ratio;
    uint64_t seed; /* of the worst */
};

static void add(struct sum *s, const struct at_verdict *v, uint64_t seed)
{
    s->judged += v->judged, s->open += v->open, s->unclaimed += v->unclaimed;
    if (v->ratio > s->ratio)
        s->ratio = v->ratio, s->seed = seed;
}

START_TEST(engines_stay_within_the_bound_of_truth_on_every_field)
{
    const uint64_t seed = paint_seed();
    struct sum sum[ENGINES] = {{0}};
    int64_t n = count(TIMES) << (paint_number("LONG", 0) ? 4 : 0);
    for (uint64_t t = seed; t < seed + (uint64_t)n; t++) {
        struct problem p;
        struct hold h;
        paint_problem(&p, t, given());
        ck_assert_msg(hold_truth(&h, &p.a), "truth: %s", paint_repro(t, given(), "check_engines"));
        for (int e = 0; e < ENGINES; e++) {
            problem_clear(&p);
            hold_engine(&h, engines[e], &p.a, &p.got);
            if (h.status != AT_OK || h.verdict.failed > 0 || !problem_gaps_untouched(&p))
                tell(t, engines[e]);
            add(&sum[e], &h.verdict, t);
        }
        hold_free(&h);
        problem_free(&p);
    }
    for (int e = 0; e < ENGINES; e++)
        printf("%s: %lld problems, %lld numbers, %lld open, %lld unclaimed, worst ratio %.3f "
               "(SEED=%llu)\n",
               engines[e]->name, (long long)n, (long long)sum[e].judged, (long long)sum[e].open,
               (long long)sum[e].unclaimed, sum[e].ratio, (unsigned long long)sum[e].seed);
    fflush(stdout);
}
END_TEST

/* -- Same bits --------------------------------------------------------------------------------- */

/* Runs e on a descriptor into the results of p; aborts with the seed if it refuses. */
static void forward(const struct at_engine *e, const struct at_attention *a, struct problem *p)
{
    problem_clear(p);
    enum at_status status = at_forward(e, a, &p->got);
    ck_assert_msg(status == AT_OK, "%s: %s: %s", e->name, at_strstatus(status),
                  paint_repro(p->seed, p->options, "check_engines"));
}

static void same_results(const struct problem *p, const struct problem *q, const char *what)
{
    bool same = paint_same(&p->got.out, &q->got.out) &&
                (!p->got.lse.data || paint_same(&p->got.lse, &q->got.lse));
    ck_assert_msg(same, "%s\n    %s\n    %s", what, problem_line(p),
                  paint_repro(p->seed, p->options, "check_engines"));
}

START_TEST(one_tile_is_the_textbook_to_the_bit)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = seed; t < seed + (uint64_t)count(TIMES); t++) {
        struct problem p, q;
        paint_problem(&p, t, given());
        paint_problem(&q, t, given());
        p.a.plan.bc = q.a.plan.bc = 64; /* more than a painted problem has keys */
        forward(&at_scalar, &p.a, &p);
        forward(&at_standard, &q.a, &q);
        same_results(&p, &q, "scalar in one tile differs from standard");
        problem_free(&p);
        problem_free(&q);
    }
}
END_TEST

START_TEST(threads_and_query_tiles_change_no_bit)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = seed; t < seed + (uint64_t)count(FEWER); t++) {
        struct problem p, q;
        paint_problem(&p, t, given());
        paint_problem(&q, t, given());
        p.a.plan.threads = 1, p.a.plan.br = 1;
        forward(&at_scalar, &p.a, &p);
        for (int threads = 2; threads <= 8; threads += 3) {
            q.a.plan.threads = threads, q.a.plan.br = threads;
            forward(&at_scalar, &q.a, &q);
            same_results(&p, &q, "threads change bits");
        }
        problem_free(&p);
        problem_free(&q);
    }
}
END_TEST

/* -- Hidden means absent ----------------------------------------------------------------------- */

START_TEST(what_no_row_sees_changes_no_bit)
{
    const uint64_t seed = paint_seed();
    const double poison[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e30};
    for (uint64_t t = seed; t < seed + (uint64_t)count(TIMES); t++) {
        struct problem p, q;
        const struct at_engine *e = engines[t % 2];
        paint_problem(&p, t, given());
        paint_problem(&q, t, given());
        forward(e, &p.a, &p);
        hold_poison(&q, poison[t / 2 % 4]);
        forward(e, &q.a, &q);
        same_results(&p, &q, "a hidden number was read");
        problem_free(&p);
        problem_free(&q);
    }
}
END_TEST

START_TEST(what_no_row_sees_changes_no_truth)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = seed; t < seed + (uint64_t)count(FEWER); t++) {
        struct problem p, q;
        struct hold x, y;
        paint_problem(&p, t, given());
        paint_problem(&q, t, given());
        hold_poison(&q, t % 2 ? (double)NAN : (double)INFINITY);
        ck_assert(hold_truth(&x, &p.a) && hold_truth(&y, &q.a));
        ck_assert_msg(hold_same_truth(&x, &y), "truth reads what is hidden\n    %s\n    %s",
                      problem_line(&p), paint_repro(t, given(), "check_engines"));
        hold_free(&x), hold_free(&y);
        problem_free(&p), problem_free(&q);
    }
}
END_TEST

/* Ideas 45 and 91: each row of a batch, alone: one query, one head, one sequence, not packed. */
START_TEST(a_row_alone_has_the_bits_that_it_has_in_its_batch)
{
    const uint64_t seed = paint_seed();
    for (uint64_t t = seed; t < seed + (uint64_t)count(FEWER); t++) {
        struct problem p, q;
        const struct at_engine *e = engines[t % 2];
        paint_problem(&p, t, given());
        paint_problem(&q, t, given());
        forward(e, &p.a, &p);
        problem_clear(&q);
        for (int64_t b = 0; b < p.B; b++)
            for (int64_t h = 0; h < p.Hq; h++)
                for (int64_t i = 0; i < problem_rows_of(&p, b); i++) {
                    struct hold_alone x;
                    hold_alone(&x, &q, b, h, i);
                    enum at_status status = at_forward(e, &x.a, &x.got);
                    ck_assert_msg(status == AT_OK, "%s: %s", at_strstatus(status),
                                  problem_line(&p));
                    hold_alone_free(&x);
                }
        for (int64_t b = 0; b < p.B; b++) /* rows of no sequence are the batch's alone */
            for (int64_t h = 0; h < p.Hq; h++)
                for (int64_t i = 0; i < problem_rows_of(&p, b); i++)
                    ck_assert_msg(hold_same_row(&p, &q, b, h, i),
                                  "row (%lld,%lld,%lld) of %s\n    %s", (long long)b, (long long)h,
                                  (long long)i, problem_line(&p),
                                  paint_repro(t, given(), "check_engines"));
        problem_free(&p), problem_free(&q);
    }
}
END_TEST

/* -- No field is ignored ----------------------------------------------------------------------- */

#define CHANGE(name, ...)                                                                          \
    static void name(struct at_attention *a) { __VA_ARGS__; }
static int64_t *lasting(const int64_t *x) { return (int64_t *)(uintptr_t)x; }
CHANGE(to_scale, a->score.scale *= 1.5)
CHANGE(to_softcap, a->score.softcap *= 0.5)
CHANGE(to_no_softcap, a->score.softcap = 0)
CHANGE(to_no_bias, a->score.bias.data = NULL)
CHANGE(to_no_mask, a->score.mask.data = NULL)
CHANGE(to_no_alibi, a->score.alibi.data = NULL)
CHANGE(to_no_sink, a->score.sink.data = NULL)
CHANGE(to_no_qscale, a->score.qscale.data = NULL)
CHANGE(to_no_kscale, a->score.kscale.data = NULL)
CHANGE(to_no_vscale, a->score.vscale.data = NULL)
CHANGE(to_left, a->score.left++)
CHANGE(to_right, a->score.right++)
CHANGE(to_no_offset, a->score.offset = NULL)
CHANGE(to_q_len, lasting(a->score.q_len)[0] /= 2)
CHANGE(to_kv_len, lasting(a->score.kv_len)[0] /= 2)
CHANGE(to_q_start, lasting(a->score.q_start)[a->score.sequences - 1]++)
CHANGE(to_kv_start, lasting(a->score.kv_start)[a->score.sequences - 1]++)
CHANGE(to_sequences, a->score.sequences--)
CHANGE(to_p, a->dropout.p *= 0.5)
CHANGE(to_seed, a->dropout.seed ^= (uint64_t)1 << 40)
CHANGE(to_seed_low, a->dropout.seed ^= 1)
CHANGE(to_offset_high, a->dropout.offset ^= (uint64_t)1 << 40)
CHANGE(to_offset_low, a->dropout.offset ^= 1)
CHANGE(to_no_keep, a->dropout.keep.data = NULL)
CHANGE(to_table, int32_t *x = (int32_t *)(uintptr_t)a->pages.table; int32_t y = x[0]; x[0] = x[1];
       x[1] = y)
CHANGE(to_k, a->k.stride[2] = 0)
CHANGE(to_v, a->v.stride[3] = 0)
CHANGE(to_q, a->q.stride[3] = 0)
CHANGE(to_q_dtype, a->q.dtype = a->q.dtype == AT_F16 ? AT_BF16 : AT_DEFAULT)

/* A field, what a problem must have for it, and another value of it. */
static const struct {
    const char *name;
    uint32_t with;
    void (*change)(struct at_attention *a);
} changes[] = {{"scale", 0, to_scale},
               {"softcap", PAINT_SOFTCAP, to_softcap},
               {"softcap", PAINT_SOFTCAP, to_no_softcap},
               {"bias", PAINT_BIAS, to_no_bias},
               {"mask", PAINT_MASK, to_no_mask},
               {"alibi", PAINT_ALIBI, to_no_alibi},
               {"sink", PAINT_SINK, to_no_sink},
               {"qscale", PAINT_DESCALE, to_no_qscale},
               {"kscale", PAINT_DESCALE, to_no_kscale},
               {"vscale", PAINT_DESCALE, to_no_vscale},
               {"left", PAINT_WINDOW, to_left},
               {"right", PAINT_WINDOW, to_right},
               {"offset", PAINT_WINDOW | PAINT_OFFSET, to_no_offset},
               {"q_len", PAINT_Q_LEN, to_q_len},
               {"kv_len", PAINT_KV_LEN, to_kv_len},
               {"q_start", PAINT_Q_RAGGED, to_q_start},
               {"kv_start", PAINT_Q_RAGGED | PAINT_KV_RAGGED, to_kv_start},
               {"sequences", PAINT_Q_RAGGED | PAINT_KV_RAGGED, to_sequences},
               {"p", PAINT_DROPOUT, to_p},
               {"seed", PAINT_DROPOUT, to_seed},
               {"seed", PAINT_DROPOUT, to_seed_low},
               {"dropout offset", PAINT_DROPOUT, to_offset_low},
               {"dropout offset", PAINT_DROPOUT, to_offset_high},
               {"keep", PAINT_DROPOUT, to_no_keep},
               {"table", PAINT_PAGED, to_table},
               {"k", 0, to_k},
               {"v", 0, to_v},
               {"q", 0, to_q},
               {"q dtype", PAINT_NARROW, to_q_dtype}};
enum { CHANGES = sizeof changes / sizeof *changes };

START_TEST(every_field_changes_truth_and_engines_for_some_input)
{
    const uint64_t seed = paint_seed();
    const struct paint_options o = {.with = changes[_i].with,
                                    .without = PAINT_FIELDS & ~changes[_i].with};
    bool truth = false, engine = false;
    for (uint64_t t = seed; t < seed + 200 && !(truth && engine); t++) {
        struct problem p, q;
        struct hold x, y;
        paint_problem(&p, t, o), paint_problem(&q, t, o);
        changes[_i].change(&q.a);
        if (at_validate(&q.a, NULL) == AT_OK) {
            ck_assert(hold_truth(&x, &p.a) && hold_truth(&y, &q.a));
            truth = truth || !hold_same_truth(&x, &y);
            forward(&at_scalar, &p.a, &p), forward(&at_scalar, &q.a, &q);
            engine = engine || !paint_same(&p.got.out, &q.got.out);
            hold_free(&x), hold_free(&y);
        }
        problem_free(&p), problem_free(&q);
    }
    ck_assert_msg(truth && engine, "%s is ignored by %s", changes[_i].name,
                  truth ? "scalar" : "truth");
}
END_TEST

/* Two sequences of one key in pages of one key; page n holds the value n. */
START_TEST(a_page_is_found_through_the_width_or_the_list)
{
    float q[2] = {1, 1}, k[4] = {0}, v[4] = {0, 1, 2, 3}, out[2];
    const int32_t table[4] = {3, 1, 2, 0}, list[2][3] = {{0, 2, 3}, {1, 3, 4}};
    const int64_t len[2] = {1, 1};
    struct at_attention a = at_plain(at_bhsd(q, AT_F32, 2, 1, 1, 1), at_bhsd(k, AT_F32, 4, 1, 1, 1),
                                     at_bhsd(v, AT_F32, 4, 1, 1, 1), 1);
    struct at_result got = {at_bhsd(out, AT_F32, 2, 1, 1, 1), {.data = NULL}};
    const struct {
        struct at_pages pages;
        float first, second;
    } turn[] = {{{table, NULL, 1}, 3, 1},
                {{table, NULL, 2}, 3, 2},
                {{table, NULL, 3}, 3, 0},
                {{table, list[0], 9}, 3, 2},
                {{table, list[1], 9}, 1, 0}};
    a.score.kv_len = len;
    for (size_t t = 0; t < sizeof turn / sizeof *turn; t++) {
        struct hold h;
        a.pages = turn[t].pages;
        ck_assert(hold_truth(&h, &a));
        ck_assert(h.truth.out[0] == (double)turn[t].first &&
                  h.truth.out[1] == (double)turn[t].second);
        for (int e = 0; e < ENGINES; e++) {
            ck_assert_int_eq(at_forward(engines[e], &a, &got), AT_OK);
            ck_assert(out[0] == turn[t].first && out[1] == turn[t].second);
        }
        hold_free(&h);
    }
}
END_TEST

/* -- The seed's example ------------------------------------------------------------------------ */

START_TEST(four_scores_one_key_at_a_time)
{
    float q = 1, k[] = {1000, 999, 1002, 998}, v[] = {2, -1, 4, 3}, out, lse;
    const int64_t cut[] = {1, 3};
    struct at_attention a =
        at_plain(at_bhsd(&q, AT_F32, 1, 1, 1, 1), at_bhsd(k, AT_F32, 1, 1, 4, 1),
                 at_bhsd(v, AT_F32, 1, 1, 4, 1), 1);
    struct at_result got = {at_bhsd(&out, AT_F32, 1, 1, 1, 1), at_bhsd(&lse, AT_F32, 1, 1, 1, 1)};
    struct hold h;
    ck_assert(hold_truth(&h, &a));
    ck_assert_str_eq(hold_digits(h.truth.out[0]), "3.55301265918918");
    ck_assert_str_eq(hold_digits(h.truth.lse[0]), "1002.1851824526");
    for (int64_t tile = 1; tile <= 5; tile++)
        for (int64_t splits = 1; splits <= 3; splits += 2)
            for (int e = 0; e < ENGINES; e++) {
                out = lse = NAN;
                a.plan = (struct at_plan){.bc = tile, .splits = splits, .cut = cut};
                hold_engine(&h, engines[e], &a, &got);
                ck_assert_msg(h.status == AT_OK && h.verdict.failed == 0, "%s", hold_line(&h));
            }
    hold_free(&h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engines");
    TCase *c = tcase_create("engines");
    tcase_set_timeout(c, 3000);
    tcase_add_test(c, engines_stay_within_the_bound_of_truth_on_every_field);
    tcase_add_test(c, one_tile_is_the_textbook_to_the_bit);
    tcase_add_test(c, threads_and_query_tiles_change_no_bit);
    tcase_add_test(c, what_no_row_sees_changes_no_bit);
    tcase_add_test(c, what_no_row_sees_changes_no_truth);
    tcase_add_test(c, a_row_alone_has_the_bits_that_it_has_in_its_batch);
    tcase_add_loop_test(c, every_field_changes_truth_and_engines_for_some_input, 0, CHANGES);
    tcase_add_test(c, a_page_is_found_through_the_width_or_the_list);
    tcase_add_test(c, four_scores_one_key_at_a_time);
    suite_add_tcase(s, c);
    return paint_run(s);
}

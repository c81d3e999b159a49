/* The lemmas of docs/fast-truth.md, each directed at where its error is largest: never exceeded,
 * never vacuous. An end-to-end test sees none of these constants. SPDX-License-Identifier: MIT */
#include "fast.h"
#include "paint.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>

static struct paint painter;

static mpfr_t got, right, part;

static void setup(void)
{
    painter = paint_from(paint_seed(), 77);
    mpfr_inits2(2000, got, right, part, (mpfr_ptr)0);
}

static void teardown(void) { mpfr_clears(got, right, part, (mpfr_ptr)0); }

static void set(mpfr_ptr x, struct dd y)
{
    mpfr_set_d(x, y.h, MPFR_RNDN);
    mpfr_add_d(x, x, y.l, MPFR_RNDN);
}

/* |y - right| in units of eps^2 times `of`. */
static double off(struct dd y, double of)
{
    set(got, y);
    mpfr_sub(got, got, right, MPFR_RNDN);
    return fabs(mpfr_get_d(got, MPFR_RNDA)) / AT_EPS2 / of;
}

/* ... relative to right; 0 / 0 is 0. */
static double relative(struct dd y)
{
    set(got, y);
    mpfr_sub(got, got, right, MPFR_RNDN);
    if (mpfr_zero_p(got))
        return 0;
    mpfr_div(got, got, right, MPFR_RNDN);
    return fabs(mpfr_get_d(got, MPFR_RNDA)) / AT_EPS2;
}

/* At most the claim, and no less than a share of it that was seen. */
static void within(const char *what, double most, double claim, double seen)
{
    printf("%-28s %8.2f of %8.2f eps^2\n", what, most, claim);
    ck_assert_msg(most <= claim, "%s: %.3f eps^2, claimed %.3f", what, most, claim);
    ck_assert_msg(most >= seen, "%s: %.3f eps^2 at most, %.3f was seen: vacuous", what, most, seen);
}

static double unit(void) { return 1 + fabs(paint_unit(&painter)); } /* [1,2], all bits */

/* Half of them beside a power of two, most low words near half an ulp. */
static struct dd hard(void)
{
    double h = unit(), l = 0x1p-53 * paint_unit(&painter);
    if (paint_one_in(&painter, 2))
        h = 1 + 0x1p-52 * (double)paint_int(&painter, 0, 3);
    if (!paint_one_in(&painter, 4))
        l = (paint_one_in(&painter, 2) ? 1 : -1) * 0x1p-53 *
            (1 - 0x1p-53 * (double)paint_int(&painter, 0, 3));
    return two_sum(h, l);
}

/* -- P ----------------------------------------------------------------------------------------- */

START_TEST(double_words_err_by_no_more_than_claimed)
{
    double add = 0, mul1 = 0, mul = 0, div = 0;
    mpfr_t a, b;
    mpfr_inits2(2000, a, b, (mpfr_ptr)0);
    for (int k = 0; k < 300000; k++) {
        struct dd x = hard(), y = hard();
        set(a, x), set(b, y);
        mpfr_mul(right, a, b, MPFR_RNDN);
        mul = fmax(mul, relative(dd_mul(x, y)));
        mpfr_mul_d(right, a, y.h, MPFR_RNDN);
        mul1 = fmax(mul1, relative(dd_mul1(x, y.h)));
        mpfr_div(right, a, b, MPFR_RNDN);
        div = fmax(div, relative(dd_div(x, y)));
        double f = ldexp(k % 2 ? 1 : -1, (int)paint_int(&painter, -54, 0));
        y.h *= f, y.l *= f, mpfr_mul_d(b, b, f, MPFR_RNDN);
        mpfr_add(right, a, b, MPFR_RNDN);
        add = fmax(add, relative(dd_add(x, y)));
    }
    mpfr_clears(a, b, (mpfr_ptr)0);
    within("dd + dd", add, DD_ADD, 1);
    ck_assert(JOIN_UNITS > DD_ADD * (1 + 5 * 0x1p-53)); /* 3 eps^2 + 13 eps^3 */
    within("dd * d", mul1, DD_MUL1, 1.5);
    within("dd * dd", mul, DD_MUL, 3.5);
    within("dd / dd", div, DD_DIV, 5.5);
}
END_TEST

/* -- X ----------------------------------------------------------------------------------------- */

START_TEST(constants_are_double_words)
{
    struct dd x[4] = {at_ln2, at_log2e, at_6th, at_24th};
    mpfr_const_log2(right, MPFR_RNDN);
    ck_assert(relative(x[0]) < 0.5);
    mpfr_ui_div(right, 1, right, MPFR_RNDN);
    ck_assert(relative(x[1]) < 0.5);
    for (unsigned k = 0; k < 2; k++) {
        mpfr_set_ui(right, 1, MPFR_RNDN);
        mpfr_div_ui(right, right, k ? 24 : 6, MPFR_RNDN);
        ck_assert(relative(x[2 + k]) < 0.5);
    }
    for (int i = 0; i < 128; i++) {
        mpfr_set_d(right, i / 128.0, MPFR_RNDN);
        mpfr_exp2(right, right, MPFR_RNDN);
        ck_assert_msg(relative((struct dd){at_root_h[i], at_root_l[i]}) < 1, "entry %d", i);
    }
}
END_TEST

/* Arguments all over, and beside the borders between table entries. */
START_TEST(exp2_errs_by_no_more_than_its_budget)
{
    double most = 0;
    mpfr_set_prec(right, 300);
    for (int k = 0; k < 100000; k++) {
        double t = 300 * paint_unit(&painter), step = k % 2 ? 0.5 - 1e-9 : 1e-9 - 0.5;
        if (k % 3 == 0)
            t = (floor(128 * t) + step) / 128;
        double m = ceil(t) + (double)(k % 5 == 0 ? paint_int(&painter, 0, 500) : 0);
        struct dd x = quick_sum(t, fabs(t) * 0x1p-54 * paint_unit(&painter));
        set(right, x);
        mpfr_sub_d(right, right, m, MPFR_RNDN);
        mpfr_exp2(right, right, MPFR_RNDN);
        most = fmax(most, relative(dd_exp2(x, m)));
    }
    within("2^(t-m)", most, 53.4, 20);
    ck_assert_int_ge(DD_EXP, 54);
}
END_TEST

START_TEST(exp2_far_below_is_small_and_positive)
{
    const double gap[] = {512, 513, 600, 1e4, 0x1p38};
    for (int k = 0; k < 5; k++) {
        struct dd p = dd_exp2((struct dd){-gap[k] - 0.25, 0}, 0);
        ck_assert_msg(p.h > 0 && p.h <= EXP_FLOOR, "2^-%g: %a", gap[k], p.h);
    }
    ck_assert(dd_exp2((struct dd){-500, 0}, 0).h == 0x1p-500);
}
END_TEST

/* -- G ----------------------------------------------------------------------------------------- */

struct dots {
    double k[TILE * 128], q[128 * LANES], k_norm[TILE], q_norm[LANES], sh[TILE * LANES],
        sl[TILE * LANES];
};

/* Products whose distance from the grid has one sign, so that e grows as fast as it can. Norms of
 * 2^r make sig as large as it gets for them. */
static void one_signed(struct dots *x, int64_t D)
{
    double norm = power((ilogb((double)D) + 2) / 2 + 1), sig = 4 * norm * norm, g = sig * 0x1p-52;
    for (int i = 0; i < LANES; i++)
        x->q_norm[i] = norm;
    for (int j = 0; j < TILE; j++)
        x->k_norm[j] = norm;
    for (int64_t c = 0; c < D; c++) {
        double q = unit() / 2;
        for (int i = 0; i < LANES; i++)
            x->q[c * LANES + i] = q;
        for (int64_t j = 0; j < TILE; j++)
            for (int tries = 0; tries < 200; tries++) {
                double k = paint_unit(&painter) / 2, t = fma(k, q, 1.5 * sig), z = t - 1.5 * sig;
                x->k[j * D + c] = k;
                if (fma(k, q, -z) > 0.4 * g)
                    break;
            }
    }
}

static double dot_error(struct dots *x, int64_t D)
{
    double most = 0;
    struct fast_dot dot = {D, x->k, x->k_norm, x->q, x->q_norm, x->sh, x->sl};
    at_fast_dot(&dot);
    for (int64_t j = 0; j < TILE; j++) {
        mpfr_set_zero(right, 1);
        for (int64_t c = 0; c < D; c++) {
            mpfr_set_d(part, x->k[j * D + c], MPFR_RNDN);
            mpfr_mul_d(part, part, x->q[c * LANES], MPFR_RNDN);
            mpfr_add(right, right, part, MPFR_RNDN);
        }
        struct dd s = {x->sh[j * LANES], x->sl[j * LANES]};
        most = fmax(most, off(s, x->q_norm[0] * x->k_norm[j]));
    }
    return most;
}

START_TEST(a_score_errs_by_no_more_than_lemma_g)
{
    static struct dots x;
    const int64_t D[] = {2, 4, 16, 64, 128};
    for (int k = 0; k < 5; k++) {
        double most = 0;
        for (int turn = 0; turn < 20; turn++) {
            one_signed(&x, D[k]);
            most = fmax(most, dot_error(&x, D[k]));
        }
        within("q k", most, SCORE_UNITS(D[k]), SCORE_UNITS(D[k]) / 16);
    }
}
END_TEST

/* -- S ----------------------------------------------------------------------------------------- */

/* q k is 1 or a power of two, exactly: what is left is the work of its factors and of softcap. */
struct factors {
    double q[LANES], k[TILE], v[TILE], qscale[LANES], kscale[TILE];
    struct at_attention a;
};

static void draw(struct factors *x, double softcap, double size)
{
    for (int i = 0; i < LANES; i++)
        x->q[i] = 1, x->qscale[i] = hard().h;
    for (int j = 0; j < TILE; j++)
        x->k[j] = j % 2 ? size : -size, x->v[j] = 1, x->kscale[j] = hard().h;
    x->a = at_plain(at_bhsd(x->q, AT_F64, 1, 1, LANES, 1), at_bhsd(x->k, AT_F64, 1, 1, TILE, 1),
                    at_bhsd(x->v, AT_F64, 1, 1, TILE, 1), hard().h);
    x->a.score.qscale = at_bhsd(x->qscale, AT_F64, 1, 1, LANES, 1);
    x->a.score.kscale = at_bhsd(x->kscale, AT_F64, 1, 1, TILE, 1);
    x->a.score.softcap = softcap;
}

/* The largest error of a tile's scores: relative; with softcap, over softcap. */
static double steps_error(const struct factors *x)
{
    static double space[7 * TILE * LANES];
    const int n = TILE * LANES;
    double most = 0, cap = x->a.score.softcap;
    struct fast_rows rows;
    struct fast_keys keys;
    struct fast_tile tile = {space,         space + n,     space + 2 * n, space + 3 * n,
                             space + 4 * n, space + 5 * n, space + 6 * n, {0}};
    ck_assert(at_fast_rows_make(&rows, &x->a) && at_fast_keys_make(&keys, TILE, 1, 1));
    keys.b = keys.g = 0;
    at_fast_keys_load(&keys, &x->a, (struct at_span){0, TILE});
    rows.n = LANES;
    for (int i = 0; i < LANES; i++)
        rows.at[i] = (struct at_place){0, 0, i}, rows.span[i] = (struct at_span){0, TILE};
    at_fast_rows_load(&rows);
    at_fast_scores(&rows, &keys, 0, &tile);
    for (int at = 0; at < n; at++) {
        mpfr_set_d(right, x->k[at / LANES], MPFR_RNDN);
        mpfr_mul_d(right, right, x->a.score.scale, MPFR_RNDN);
        mpfr_mul_d(right, right, x->qscale[at % LANES], MPFR_RNDN);
        mpfr_mul_d(right, right, x->kscale[at / LANES], MPFR_RNDN);
        if (cap > 0) {
            mpfr_div_d(right, right, cap, MPFR_RNDN);
            mpfr_tanh(right, right, MPFR_RNDN);
            mpfr_mul_d(right, right, cap, MPFR_RNDN);
        }
        mpfr_const_log2(part, MPFR_RNDN);
        mpfr_div(right, right, part, MPFR_RNDN);
        struct dd t = {tile.sh[at], tile.sl[at]};
        most = fmax(most, cap > 0 ? off(t, cap) * 0.693147 : relative(t));
    }
    at_fast_rows_free(&rows);
    at_fast_keys_free(&keys);
    return most;
}

START_TEST(a_scores_factors_err_by_no_more_than_lemma_s)
{
    static struct factors x;
    double plain = 0, capped = 0;
    mpfr_set_prec(right, 400);
    mpfr_set_prec(part, 400);
    for (int turn = 0; turn < 100; turn++) {
        draw(&x, 0, 1);
        plain = fmax(plain, steps_error(&x));
        draw(&x, unit(), 0x1p-12);
        capped = fmax(capped, steps_error(&x));
    }
    within("scale q k", plain, STEP_UNITS * 1.4426, 1.5);
    within("softcap", capped, CAP_UNITS, 5);
}
END_TEST

/* -- D ----------------------------------------------------------------------------------------- */

/* Among some products the one that pushes the sum's error furthest, key by key. */
static void greedy(struct dd *p, double *v)
{
    double s = 0, e = 0;
    mpfr_set_zero(right, 1);
    for (int j = 0; j < TILE; j++) {
        double best = -1, best_s = 0, best_e = 0;
        for (int tries = 0; tries < 30; tries++) {
            struct dd x = hard();
            double y = unit(), h = x.h * y;
            struct dd t = two_sum(s, h);
            double low = fma(x.l, y, e + (t.l + fma(x.h, y, -h)));
            set(part, x);
            mpfr_mul_d(part, part, y, MPFR_RNDN);
            mpfr_add(part, part, right, MPFR_RNDN);
            mpfr_sub_d(part, part, t.h, MPFR_RNDN);
            mpfr_sub_d(part, part, low, MPFR_RNDN);
            double error = mpfr_get_d(part, MPFR_RNDN) + 0x1p-55 * low; /* a long e errs more */
            if (tries > 0 && !(error > best))
                continue;
            best = error, best_s = t.h, best_e = low;
            p[j] = x, v[j] = y;
        }
        s = best_s, e = best_e;
        set(part, p[j]);
        mpfr_mul_d(part, part, v[j], MPFR_RNDN);
        mpfr_add(right, right, part, MPFR_RNDN);
    }
}

START_TEST(a_tiles_sum_errs_by_no_more_than_lemma_d)
{
    double most = 0, v[TILE], ph[TILE * LANES], pl[TILE * LANES], w[TILE * LANES];
    for (int turn = 0; turn < 50; turn++) {
        struct dd p[TILE];
        double uh[LANES] = {0}, ul[LANES] = {0}, ue[LANES] = {0, 0, 0, 0x1p-80};
        double charge = ue[3]; /* of tiles before */
        greedy(p, v);
        for (int at = 0; at < TILE * LANES; at++) {
            ph[at] = p[at / LANES].h, pl[at] = p[at / LANES].l;
            w[at] = ph[at] * 0x1p-90;
        }
        for (int j = 0; j < TILE; j++)
            charge += w[j * LANES] * v[j];
        struct fast_values x = {1, v, ph, pl, w, uh, ul, ue};
        at_fast_values(&x);
        double size = mpfr_get_d(right, MPFR_RNDN);
        most = fmax(most, off((struct dd){uh[3], ul[3]}, size));
        ck_assert(fabs(ue[3] - charge) <= 0x1p-40 * charge);
    }
    within("tile of p v", most, SUM_UNITS, SUM_UNITS / 512);
}
END_TEST

/* -- R ----------------------------------------------------------------------------------------- */

START_TEST(a_rescale_is_exact_or_charged)
{
    const double gap[] = {0, 1, 499, 500, 501, 600, 601, 700, 5000};
    double uh[LANES], ul[LANES], ue[LANES];
    for (int k = 0; k < 9; k++) {
        struct fast_rows x = {.z = {.Dv = 1}, .uh = uh, .ul = ul, .ue = ue};
        double top[LANES];
        for (int i = 0; i < LANES; i++) {
            x.m[i] = 3 - i, top[i] = x.m[i] + gap[k];
            uh[i] = x.lh[i] = 1.5, ul[i] = x.ll[i] = 0x1p-60;
            ue[i] = x.le[i] = 1.5 * SUM_UNITS * AT_EPS2;
        }
        double before = ue[0];
        at_fast_rescale(&x, top);
        for (int i = 0; i < LANES; i++) {
            double least = ldexp(before, -(int)fmin(gap[k], 1100));
            mpfr_set_d(right, 1.5, MPFR_RNDN);
            mpfr_add_d(right, right, 0x1p-60, MPFR_RNDN);
            mpfr_div_2ui(right, right, (unsigned long)gap[k], MPFR_RNDN);
            double u = off((struct dd){uh[i], ul[i]}, 1) * AT_EPS2;
            ck_assert_msg(u + least <= ue[i] && (u == 0) == (gap[k] <= 600), "2^-%g: u", gap[k]);
            double l = off((struct dd){x.lh[i], x.ll[i]}, 1) * AT_EPS2;
            ck_assert_msg(l + least <= x.le[i] && x.m[i] == top[i], "2^-%g: l", gap[k]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fast_lemmas");
    TCase *t = tcase_create("lemmas");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, double_words_err_by_no_more_than_claimed);
    tcase_add_test(t, constants_are_double_words);
    tcase_add_test(t, exp2_errs_by_no_more_than_its_budget);
    tcase_add_test(t, exp2_far_below_is_small_and_positive);
    tcase_add_test(t, a_score_errs_by_no_more_than_lemma_g);
    tcase_add_test(t, a_scores_factors_err_by_no_more_than_lemma_s);
    tcase_add_test(t, a_tiles_sum_errs_by_no_more_than_lemma_d);
    tcase_add_test(t, a_rescale_is_exact_or_charged);
    suite_add_tcase(s, t);
    return paint_run(s);
}

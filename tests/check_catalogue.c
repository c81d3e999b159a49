/* Suite catalogue: 91 ways in which real kernels, wrappers, tests and references were wrong, each
 * with its place here or elsewhere. Expected numbers are exact closed forms to 15 digits.
 * SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "catalogue.h"
#include "gpu.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { IDEAS = 91 };

/* -- Building a problem ------------------------------------------------------------------------ */

struct at_view tensor(struct problem *x, enum at_dtype dtype, int64_t B, int64_t H, int64_t S,
                      int64_t D)
{
    size_t bytes = (size_t)(B * H * S * D * at_dtype_size(dtype));
    void *data = problem_own(x, bytes);
    memset(data, 0, bytes);
    return at_bhsd(data, dtype, B, H, S, D);
}

void begin(struct problem *x, enum at_dtype dtype, int64_t B, int64_t Hq, int64_t Hkv, int64_t Sq,
           int64_t Skv, int64_t D, int64_t Dv)
{
    enum at_dtype to = dtype == AT_F64 ? AT_F64 : AT_F32;
    *x = (struct problem){.B = B, .Hq = Hq, .Hkv = Hkv, .Sq = Sq, .Skv = Skv, .D = D, .Dv = Dv};
    x->got.out = at_bhsd(problem_own(x, (size_t)(B * Hq * Sq * Dv * 8)), to, B, Hq, Sq, Dv);
    x->got.lse = at_bhsd(problem_own(x, (size_t)(B * Hq * Sq * 8)), to, B, Hq, Sq, 1);
    x->a = at_plain(tensor(x, dtype, B, Hq, Sq, D), tensor(x, dtype, B, Hkv, Skv, D),
                    tensor(x, dtype, B, Hkv, Skv, Dv), 1);
    x->a.plan.threads = 1;
    SET(&x->a.q, 1);
}

void set(const struct at_view *v, const double *number, size_t n)
{
    size_t t = 0;
    for (int64_t b = 0; b < v->dim[0]; b++)
        for (int64_t h = 0; h < v->dim[1]; h++)
            for (int64_t s = 0; s < v->dim[2]; s++)
                for (int64_t c = 0; c < v->dim[3]; c++)
                    paint_put(v, at_offset(v, b, h, s, c), number[t++ % n]);
}

void set_painted(const struct at_view *v, uint64_t stream)
{
    struct paint r = paint_from(paint_seed(), stream);
    for (int64_t b = 0; b < v->dim[0]; b++)
        for (int64_t h = 0; h < v->dim[1]; h++)
            for (int64_t s = 0; s < v->dim[2]; s++)
                for (int64_t c = 0; c < v->dim[3]; c++)
                    paint_put(v, at_offset(v, b, h, s, c), paint_unit(&r));
}

void set_row(const struct at_view *v, int64_t b, int64_t h, int64_t s, double number)
{
    for (int64_t c = 0; c < v->dim[3]; c++)
        paint_put(v, at_offset(v, b, h, s, c), number);
}

void draw_mask(struct problem *x, const char *picture)
{
    struct at_view mask = tensor(x, AT_U8, 1, 1, x->Sq, x->Skv);
    for (int64_t k = 0; k < x->Sq * x->Skv; k++)
        ((uint8_t *)mask.data)[k] = picture[k + k / x->Skv] == '#';
    x->a.score.mask = at_repeated(mask, x->B, x->Hq, x->Sq, x->Skv);
}

/* -- Every plan -------------------------------------------------------------------------------- */

/* Tiles 1 .. Skv+1; of long rows a choice, and fewer splits and orders. */
static bool takes(int64_t tile, int64_t Skv)
{
    bool power = (tile & (tile - 1)) == 0 || (tile >= 63 && tile <= 65) || tile >= Skv - 1;
    return Skv <= 64 || power;
}

typedef void each_plan(struct problem *x, const struct at_engine *e, void *with);

static void for_each_plan(struct problem *x, each_plan *f, void *with)
{
    struct at_plan before = x->a.plan;
    bool small = x->Skv <= 64;
    for (int64_t tile = 1; tile <= x->Skv + 1; tile++) {
        if (!takes(tile, x->Skv))
            continue;
        for (int64_t splits = 1; splits <= 8; splits += small ? 1 : 7)
            for (int order = AT_IN_ORDER; order <= (small ? AT_RANDOM : AT_REVERSED); order++) {
                x->a.plan.bc = tile, x->a.plan.splits = splits;
                x->a.plan.merge = (enum at_order)order, x->a.plan.merge_seed = (uint64_t)splits;
                f(x, &at_scalar, with);
                if (tile == 1)
                    f(x, &at_standard, with);
            }
    }
    x->a.plan = before;
}

static void hold_plan(struct problem *x, const struct at_engine *e, void *with)
{
    struct hold *h = with;
    memset(x->owned[0], 0xff, x->bytes[0]); /* out and lse */
    memset(x->owned[1], 0xff, x->bytes[1]);
    hold_engine(h, e, &x->a, &x->got);
    ck_assert_msg(h->status == AT_OK && h->verdict.failed == 0 && h->verdict.unclaimed == 0,
                  "%s, tile %lld, %lld splits, order %d: %s", e->name, (long long)x->a.plan.bc,
                  (long long)x->a.plan.splits, (int)x->a.plan.merge, hold_line(h));
}

/* The CUDA kernels' source, emulated: the scalar engine's bits. */
static void emulate(struct problem *x)
{
    static const struct at_plan plans[] = {{.bc = 1, .splits = 2}, {.bc = 16, .splits = 1}};
    const struct at_engine *const engines[] = {&at_scalar, &at_gpu_emulated,
                                               &at_gpu_decode_emulated};
    size_t out = x->bytes[0], lse = x->bytes[1];
    char *want = malloc(out + lse);
    ck_assert_ptr_nonnull(want);
    struct at_plan before = x->a.plan;
    for (int k = 0; k < 6; k++) {
        const struct at_engine *e = engines[k % 3];
        x->a.plan.bc = plans[k / 3].bc, x->a.plan.splits = plans[k / 3].splits;
        memset(x->owned[0], 0xff, out);
        memset(x->owned[1], 0xff, lse);
        ck_assert_int_eq(at_forward(e, &x->a, &x->got), AT_OK);
        if (e == &at_scalar) {
            memcpy(want, x->owned[0], out);
            memcpy(want + out, x->owned[1], lse);
            continue;
        }
        ck_assert_msg(memcmp(want, x->owned[0], out) == 0 &&
                          memcmp(want + out, x->owned[1], lse) == 0,
                      "%s, tile %lld: other bits than scalar", e->name, (long long)plans[k / 3].bc);
    }
    free(want);
    x->a.plan = before;
}

/* The next of a list of digits, or "?". */
static void digits(const char **list, double x, const char *what, int64_t row)
{
    char word[40];
    int n = 0;
    if (!*list)
        return;
    ck_assert_msg(sscanf(*list, " %39s%n", word, &n) == 1, "no digits for %s of row %lld", what,
                  (long long)row);
    *list += n;
    const char *is = isnan(x) ? "nan" : hold_digits(x);
    ck_assert_msg(strcmp(word, "?") == 0 || strcmp(word, is) == 0,
                  "%s of row %lld: truth %s, expected "
                  "%s",
                  what, (long long)row, is, word);
}

void answers(struct problem *x, const char *out, const char *lse)
{
    struct hold h;
    ck_assert_msg(hold_truth(&h, &x->a), "%s", at_strstatus(h.status));
    for (int64_t t = 0; t < h.rows.n; t++) {
        for (int64_t c = 0; c < x->Dv; c++)
            digits(&out, h.truth.out[t * x->Dv + c], "out", t);
        digits(&lse, h.truth.lse[t], "lse", t);
    }
    for_each_plan(x, hold_plan, &h);
    emulate(x);
    hold_free(&h);
}

struct pair {
    struct problem *other;
    int64_t rows;
};

static void compare_plan(struct problem *x, const struct at_engine *e, void *with)
{
    struct pair *pair = with;
    struct problem *y = pair->other;
    y->a.plan = x->a.plan;
    ck_assert_int_eq(at_forward(e, &x->a, &x->got), AT_OK);
    ck_assert_int_eq(at_forward(e, &y->a, &y->got), AT_OK);
    struct at_view out = x->got.out, lse = x->got.lse;
    out.dim[2] = lse.dim[2] = pair->rows < 0 ? out.dim[2] : pair->rows;
    ck_assert_msg(paint_same(&out, &y->got.out) && paint_same(&lse, &y->got.lse),
                  "%s, tile %lld, %lld splits, order %d: bits differ", e->name,
                  (long long)x->a.plan.bc, (long long)x->a.plan.splits, (int)x->a.plan.merge);
}

void same_bits(struct problem *x, struct problem *y, int64_t rows)
{
    struct pair pair = {y, rows};
    for_each_plan(x, compare_plan, &pair);
}

/* -- The table --------------------------------------------------------------------------------- */

static const struct idea *const parts[] = {catalogue_softmax, catalogue_masks, catalogue_scores,
                                           catalogue_layout, catalogue_judge};
enum { PARTS = 5 };

/* Is "check_x: test" a test of tests/check_x.c or what it includes? */
static bool is_elsewhere(const char *where)
{
    char path[80], name[120], line[300];
    const char *colon = strchr(where, ':');
    if (!colon || strncmp(where, "check_", 6) != 0)
        return false;
    bool row = strncmp(where, "check_row:", 10) == 0;
    snprintf(path, sizeof path, "tests/%.*s.c", (int)(colon - where), where);
    FILE *file = fopen(row ? "tests/row.c" : path, "r");
    snprintf(name, sizeof name, "START_TEST(%s)", colon + 2);
    bool found = false;
    while (file && fgets(line, sizeof line, file))
        found = found || strncmp(line, name, strlen(name)) == 0;
    if (file)
        fclose(file);
    return found;
}

START_TEST(every_idea_has_its_place)
{
    int here = 0, elsewhere = 0, backward = 0, next = 1;
    for (int p = 0; p < PARTS; p++)
        for (const struct idea *x = parts[p]; x->number; x++, next++) {
            ck_assert_msg(x->number == next, "idea %d is missing", next);
            bool is_here = strcmp(x->where, "here") == 0, later = strcmp(x->where, "backward") == 0;
            ck_assert_msg(is_here ? x->test != NULL : later || is_elsewhere(x->where),
                          "idea %d: no such place: %s", x->number, x->where);
            here += is_here, backward += later, elsewhere += !is_here && !later;
        }
    ck_assert_int_eq(next, IDEAS + 1);
    printf("catalogue: %d ideas: %d here, %d in other suites, %d backward\n", next - 1, here,
           elsewhere, backward);
    fflush(stdout);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("catalogue");
    TCase *c = tcase_create("catalogue");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, every_idea_has_its_place);
    for (int p = 0; p < PARTS; p++)
        for (const struct idea *x = parts[p]; x->number; x++)
            if (x->test)
                tcase_add_test(c, *x->test);
    suite_add_tcase(s, c);
    return paint_run(s);
}

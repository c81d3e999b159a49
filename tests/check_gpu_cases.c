/* The CUDA kernels' own source, emulated, on the cases of tests/data: real activations and
 * generated vectors. On each, gpu-emulated (tiles of 64 keys) and gpu-decode-emulated (tiles of 16,
 * five splits) have the scalar engine's bits. SPDX-License-Identifier: MIT */
#include "at_index.h"
#include "gpu.h"
#include "oracle.h"
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forward(struct at_case *x, const struct at_engine *e, float *space, int64_t rows)
{
    const struct at_view *q = &x->a.q;
    struct at_result to = {
        .out = at_case_like_q(x, space, AT_F32, x->a.v.dim[3]),
        .lse = at_bhsd(space + rows * x->a.v.dim[3], AT_F32, q->dim[0], q->dim[1], q->dim[2], 1)};
    enum at_status status = at_forward(e, &x->a, &to);
    ck_assert_msg(status == AT_OK, "%s: %s: %s: %s", x->path, e->name, at_strstatus(status),
                  at_gpu_note()->trouble);
}

static void same_bits(struct at_case *x)
{
    static const struct at_plan plans[] = {{.bc = 64, .splits = 1}, {.bc = 16, .splits = 5}};
    const struct at_engine *const engines[] = {&at_gpu_emulated, &at_gpu_decode_emulated};
    int64_t rows = x->a.q.dim[0] * x->a.q.dim[1] * x->a.q.dim[2];
    size_t bytes = (size_t)(rows * (x->a.v.dim[3] + 1)) * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    for (int k = 0; k < 2; k++) {
        x->a.plan = plans[k];
        x->a.plan.lanes = 1;
        x->a.plan = at_resolve(&x->a);
        memset(want, 0xff, bytes);
        memset(got, 0xff, bytes);
        forward(x, &at_scalar, want, rows);
        forward(x, engines[k], got, rows);
        ck_assert_msg(memcmp(want, got, bytes) == 0, "%s: %s: other bits than scalar", x->path,
                      engines[k]->name);
    }
    free(want);
    free(got);
}

START_TEST(every_case_has_the_bits_of_scalar)
{
    glob_t found = {0};
    struct at_said said;
    struct at_case x;
    int cases = 0;
    glob("tests/data/real/*.safetensors", 0, NULL, &found);
    glob("tests/data/vectors/*/*.safetensors", GLOB_APPEND, NULL, &found);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        if (strstr(found.gl_pathv[k], ".fp32.")) /* an interval */
            continue;
        ck_assert_msg(at_case_read(found.gl_pathv[k], NULL, &x, &said), "%s", said.text);
        same_bits(&x);
        at_case_free(&x);
        cases++;
    }
    globfree(&found);
    ck_assert_int_ge(cases, 20);
    printf("cases: %d, 2 runs each\n", cases);
    fflush(stdout);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gpu_cases");
    TCase *t = tcase_create("emulated");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, every_case_has_the_bits_of_scalar);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

/* The real program on real files: verdicts, exit statuses, first contact.
 * SPDX-License-Identifier: MIT */
#include "shell.h"

/* The plain case with the scalar engine's result in it; *out: its numbers. */
static struct made *answered(float **out, float **lse)
{
    struct at_tensors got;
    struct at_said why;
    struct made *m = made_plain();
    const char *path = plain();
    STATUS(0, "run scalar %s -o %s", path, made_path("answer.safetensors"));
    ck_assert_msg(at_tensors_read(made_path("answer.safetensors"), &got, &why), "%s", why.text);
    *out = made_add(m, "out", AT_F32, 4, EXTENTS(1, 2, 4, 2));
    *lse = made_add(m, "lse", AT_F32, 3, EXTENTS(1, 2, 4));
    memcpy(*out, at_tensors_find(&got, "out")->data, 64);
    memcpy(*lse, at_tensors_find(&got, "lse")->data, 32);
    at_tensors_free(&got);
    unlink(made_path("answer.safetensors"));
    return m;
}

/* -- Verdicts -------------------------------------------------------------------------------- */

START_TEST(our_engines_pass_whatever_their_plan)
{
    const char *path = plain();
    static const char *const plan[] = {"scalar --tile 1",
                                       "scalar --tile 64",
                                       "standard",
                                       "scalar --splits 0,1,3 --merge tree",
                                       "scalar --splits 3 --merge random:7",
                                       "scalar --merge reversed --splits 2 --lanes 2",
                                       "scalar --compute fp64"};
    for (size_t k = 0; k < sizeof plan / sizeof *plan; k++) {
        STATUS(0, "check %s %s", plan[k], path);
        SAYS("rows judged 8 of 8");
        SAYS("pass");
        SAYS("max |v|");
    }
}
END_TEST

START_TEST(without_an_arithmetic_the_ladder_is_printed_and_the_status_is_3)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    STATUS(3, "judge %s", made_file(m, "x.safetensors", META));
    SAYS("fp32-tile64");
    SAYS("3xtf32");
    SAYS("The strictest that holds: --arith fp32-tile64");
    STATUS(0, "judge %s --arith fp32", made_path("x.safetensors"));
}
END_TEST

START_TEST(an_arithmetic_in_the_file_pins_the_verdict)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    const char *path =
        made_file(m, "x.safetensors",
                  "{\"spec\":1,\"scale\":0.5,\"causal\":\"bottom-right\",\"results\":"
                  "{\"\":{\"arith\":\"fp32,tile=64\"}}}");
    STATUS(0, "judge %s", path);
    SAYS("fp32,tile=64");
}
END_TEST

START_TEST(a_wrong_number_fails_and_is_named)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    out[(1 * 4 + 2) * 2 + 1] += 0.001f; /* b 0, h 1, i 2, c 1 */
    const char *path = made_file(m, "x.safetensors", META);
    STATUS(1, "judge %s --arith fp32", path);
    SAYS("worst    out[0,1,2,1]");
    SAYS("1 of 16 elements of out, 0 of 8 of lse");
    SAYS("b 0 h 1 rows 2 columns 1; 1 of 2 (b,h), 1 rows");
    SAYS("--arith fp32 --row 0,1,2");
    SAYS("0x1."); /* hex floats */
    STATUS(1, "judge %s", path);
    SAYS("fails even the loosest arithmetic");
    STATUS(1, "judge %s --arith fp32 --row 0,1,2", path);
    SAYS("rows judged 1 of 8");
    STATUS(0, "judge %s --arith fp32 --row 0,1,1", path);
}
END_TEST

/* What the diagnosis names can be said again, and then the result passes. */
START_TEST(a_looser_arithmetic_is_named_after_all_that_was_stated)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    for (int k = 0; k < 16; k++) /* P in bf16, or as good as that */
        out[k] *= 1 + 0x1p-10f;
    const char *path = made_file(m, "x.safetensors", META);
    STATUS(1, "judge %s --arith fp32,tile=64,log_ulps=3", path);
    SAYS("Held to fp32,tile=64,log_ulps=3,");
    char words[200], *end;
    snprintf(words, sizeof words, "%s", strstr(said, "Held to ") + 8);
    ck_assert_ptr_nonnull(end = strchr(words, ' '));
    *end = 0;
    STATUS(0, "judge %s --arith %s", path, words);
}
END_TEST

START_TEST(a_wrong_lse_fails_unless_it_is_not_to_be_judged)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    lse[5] += 0.001f;
    const char *path = made_file(m, "x.safetensors", META);
    STATUS(1, "judge %s --arith fp32", path);
    SAYS("worst    lse[0,1,1]");
    STATUS(0, "judge %s --arith fp32 --lse none", path);
}
END_TEST

START_TEST(one_nan_fails)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    out[0] = NAN;
    STATUS(1, "judge %s --arith fp32", made_file(m, "x.safetensors", META));
    SAYS("worst    out[0,0,0,0]");
    SAYS("infinite: 1");
}
END_TEST

START_TEST(the_truth_itself_has_ratio_0)
{
    const char *path = plain();
    STATUS(0, "truth %s -o %s", path, made_path("t.safetensors"));
    STATUS(0, "judge %s %s --json", path, made_path("t.safetensors"));
    SAYS("\"ratio\":0.0,");
    SAYS("\"arith\":\"fp64\"");
}
END_TEST

START_TEST(the_truth_of_some_rows_says_which)
{
    struct at_tensors t;
    struct at_said why;
    STATUS(0, "truth %s -o %s --rows 3 --seed 5", plain(), made_path("t"));
    ck_assert_msg(at_tensors_read(made_path("t"), &t, &why), "%s", why.text);
    const struct at_tensor *rows = at_tensors_find(&t, "rows"), *out = at_tensors_find(&t, "out");
    ck_assert_ptr_nonnull(rows);
    ck_assert_int_eq(rows->dim[0], 3);
    ck_assert_int_eq(rows->dim[1], 3);
    ck_assert_int_eq(out->dim[0], 3);
    ck_assert_int_eq(out->dim[1], 2);
    ck_assert_int_eq(((int64_t *)rows->data)[2], 3); /* a head's last row comes first */
    at_tensors_free(&t);
}
END_TEST

/* Every element at each end of its interval, then one step outside. */
START_TEST(the_edge_of_the_interval_passes_and_one_step_beyond_fails)
{
    struct at_case x;
    struct at_said why;
    struct at_answer y;
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    ck_assert_msg(at_case_read(plain(), NULL, &x, &why), "%s", why.text);
    struct at_rows all = {8, NULL};
    ck_assert_int_eq(at_answer_make(&y, 8, 2), AT_OK);
    ck_assert_int_eq(at_truth(&x.a, all, &y), AT_OK);
    ck_assert_int_eq(at_bound(&x.a, at_arith_find("fp32"), all, &y), AT_OK);
    for (int side = 0; side < 4; side++) {
        for (int64_t k = 0; k < 16; k++) {
            double end[2];
            at_interval(at_arith_find("fp32"), AT_F32, &y, k / 2, k % 2, &end[0], &end[1]);
            float edge = (float)end[side % 2];
            out[k] = side < 2 ? edge : nextafterf(edge, side % 2 ? INFINITY : -INFINITY);
        }
        STATUS(side < 2 ? 0 : 1, "judge %s --arith fp32 --lse none",
               made_file(m, "x.safetensors", META));
        if (side >= 2)
            SAYS("16 of 16 elements of out");
    }
    at_answer_free(&y);
    at_case_free(&x);
}
END_TEST

START_TEST(planted_faults_fail)
{
    const char *path = plain();
    static const char *const fault[] = {"lost-key@2",        "twice-key@1",
                                        "causal-off-by-one", "lost-rescale-u",
                                        "lost-rescale-l",    "lost-key@key=3,head=1"};
    for (size_t k = 0; k < sizeof fault / sizeof *fault; k++) {
        STATUS(1, "check scalar %s --tile 1 --fault %s", path, fault[k]);
        SAYS("FAILS");
        SAYS(fault[k]);
    }
    STATUS(0, "check scalar %s --fault lost-key@6", path); /* no such key: nothing is lost */
    STATUS(2, "check scalar %s --fault lost-key", path);
    SAYS("which key?");
    STATUS(2, "check scalar %s --fault lost-keys@1", path);
    STATUS(2, "check standard %s --fault lost-key@1", path);
}
END_TEST

START_TEST(the_saved_row_repeats_the_failure)
{
    const char *path = plain();
    STATUS(1, "check scalar %s --tile 1 --fault lost-key@2 --save-repro %s", path, made_path("r"));
    STATUS(1, "judge %s", made_path("r"));
    SAYS("rows judged 1 of 1");
}
END_TEST

START_TEST(results_side_by_side_are_compared_bit_by_bit)
{
    char a[160], b[160];
    const char *path = plain();
    snprintf(a, sizeof a, "%s", made_path("a.safetensors"));
    snprintf(b, sizeof b, "%s", made_path("b.safetensors"));
    STATUS(0, "run scalar %s -o %s", path, a);
    STATUS(0, "run scalar %s -o %s --threads 2", path, b);
    STATUS(0, "judge %s %s %s --same-bits", path, a, b);
    STATUS(0, "run scalar %s -o %s --splits 0,1,2,3 --merge reversed --tile 1", path, b);
    STATUS(1, "judge %s %s %s --same-bits", path, a, b);
    SAYS("differ in bits, first in");
    STATUS(2, "judge %s %s --same-bits", path, a);
}
END_TEST

/* -- First contact --------------------------------------------------------------------------- */

START_TEST(a_file_without_metadata_is_judged_with_flags)
{
    float *out, *lse;
    struct made *m = answered(&out, &lse);
    const char *path = made_file(m, "dump.safetensors", NULL);
    STATUS(2, "judge %s", path);
    SAYS("flag --scale");
    STATUS(0, "judge %s --causal bottom-right --scale 0.5 --arith fp32 --write-case %s", path,
           made_path("case"));
    STATUS(1, "judge %s --causal top-left --scale 0.5 --arith fp32", path);
    STATUS(0, "judge %s --window -1,0 --offset 2 --scale 0.5 --arith fp32", path);
    STATUS(0, "judge %s --arith fp32", made_path("case"));
    STATUS(2, "judge %s --arith fp32 --scale 0.25", made_path("case"));
    one_line();
    SAYS("field \"scale\": found 0.5, but the flag says 0.25");
}
END_TEST

START_TEST(a_causal_window_can_be_said_in_any_order)
{
    const char *path = made_file(made_plain(), "x", NULL);
    STATUS(0, "check scalar %s --scale 1 --window 2,0 --causal bottom-right", path);
    STATUS(0, "check scalar %s --scale 1 --causal bottom-right --window 2,0", path);
    STATUS(2, "check scalar %s --scale 1 --causal bottom-right --window 2,1", path);
    SAYS("found beside right");
}
END_TEST

/* What the system says where a mapped file was cut short; opening a pipe waits. */
START_TEST(a_file_cut_short_while_it_is_read_is_bad_input)
{
    char line[1000];
    const char *pipe = made_path("pipe"), *binary = getenv("ATTEST");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    snprintf(line, sizeof line,
             "for n in 1 2 3 4 5 6 7 8 9; do %s show %s 2>%s & p=$!; sleep 0.$n; kill -BUS $p;"
             " wait $p; s=$?; [ $s = 2 ] && break; done 2>/dev/null; exit $s",
             binary ? binary : "build/attest", pipe, made_path("said"));
    int status = system(line);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 2, "status %d", status);
    size_t n = made_read(made_path("said"), line, sizeof line - 1);
    line[n] = 0;
    ck_assert_str_eq(line, "attest: a file was cut short while it was read\n");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("program");
    tcase_add_checked_fixture(t, NULL, made_clean);
    tcase_add_test(t, our_engines_pass_whatever_their_plan);
    tcase_add_test(t, without_an_arithmetic_the_ladder_is_printed_and_the_status_is_3);
    tcase_add_test(t, an_arithmetic_in_the_file_pins_the_verdict);
    tcase_add_test(t, a_wrong_number_fails_and_is_named);
    tcase_add_test(t, a_looser_arithmetic_is_named_after_all_that_was_stated);
    tcase_add_test(t, a_wrong_lse_fails_unless_it_is_not_to_be_judged);
    tcase_add_test(t, one_nan_fails);
    tcase_add_test(t, the_truth_itself_has_ratio_0);
    tcase_add_test(t, the_truth_of_some_rows_says_which);
    tcase_add_test(t, the_edge_of_the_interval_passes_and_one_step_beyond_fails);
    tcase_add_test(t, planted_faults_fail);
    tcase_add_test(t, the_saved_row_repeats_the_failure);
    tcase_add_test(t, results_side_by_side_are_compared_bit_by_bit);
    tcase_add_test(t, a_file_without_metadata_is_judged_with_flags);
    tcase_add_test(t, a_causal_window_can_be_said_in_any_order);
    tcase_add_test(t, a_file_cut_short_while_it_is_read_is_bad_input);
    return run_suite("program", t) != 0;
}

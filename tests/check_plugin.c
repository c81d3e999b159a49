/* The real program and kernels in shared objects: good ones pass, and each way to break is a
 * verdict that says how. The objects lie beside the suites (Makefile, PLUGINS).
 * SPDX-License-Identifier: MIT */
#include "at_plugin.h"
#include "shell.h"

/* "check OBJECT" with a fault in the environment, as arguments of attest(). */
static const char *object(const char *name)
{
    static char path[300];
    const char *binary = getenv("ATTEST"), *slash = strrchr(binary ? binary : "build/attest", '/');
    binary = binary ? binary : "build/attest";
    snprintf(path, sizeof path, "%.*s/tests/plugins/%s.so", (int)(slash - binary), binary, name);
    return path;
}

static int with_fault(const char *fault, const char *more)
{
    setenv("FAULT", fault, 1);
    int status = attest("check %s %s %s", object("faulty"), plain(), more);
    unsetenv("FAULT");
    return status;
}

/* -- Kernels that are right ------------------------------------------------------------------- */

START_TEST(the_templates_pass_refuse_what_they_do_not_compute_and_fail_with_a_fault)
{
    static const char *const name[] = {"c", "cpp", "rs"};
    struct made *m = made_plain();
    made_add(m, "sink", AT_F32, 1, EXTENTS(2));
    const char *other = made_file(m, "sink.safetensors", META), *mine = plain();
    const char *exact = made_path("exact"); /* lengths, windows, causality among them */
    STATUS(0, "generate exact --shape 2,4,2,40,40,16,16 --dtype fp32 --tile 16 -o %s", exact);
    for (int k = 0; k < 3; k++) {
        if (access(object(name[k]), R_OK) != 0 && k == 2) {
            printf("skipped: no rustc, so no kernel in Rust\n");
            continue;
        }
        STATUS(0, "check %s %s --arith fp32", object(name[k]), mine);
        SAYS("rows judged 8 of 8");
        SAYS("mine");
        STATUS(0, "check %s %s/*.safetensors", object(name[k]), exact);
        STATUS(3, "check %s %s --arith fp32", object(name[k]), other);
        SAYS("undecided: not served: this is legal but not served here");
        char broken[20];
        snprintf(broken, sizeof broken, "%s_broken", name[k]);
        STATUS(1, "check %s %s --arith fp32", object(broken), mine);
        SAYS("the scale is applied twice");
    }
}
END_TEST

START_TEST(a_kernel_is_held_to_the_arithmetic_that_it_states)
{
    STATUS(0, "check %s %s", object("c"), plain());
    SAYS("fp32 ");
    ck_assert_int_eq(with_fault("fields", ""), 0);
    SAYS("my own");
    ck_assert_int_eq(with_fault("no-arith", ""), 3);
    SAYS("nobody stated an arithmetic");
    ck_assert_int_eq(with_fault("no-arith", "--arith fp32"), 0);
    ck_assert_int_eq(with_fault("no-such-arith", ""), 2);
    SAYS("arithmetic fp31");
}
END_TEST

START_TEST(attend_alone_is_enough_and_an_out_of_the_compute_type_is_asked_for_second)
{
    ck_assert_int_eq(with_fault("attend", "--arith fp32,joins=1"), 0);
    ck_assert_int_eq(with_fault("dtype", ""), 0);
}
END_TEST

START_TEST(run_writes_the_result_of_a_shared_object)
{
    const char *path = plain(), *out = made_path("out.safetensors");
    STATUS(0, "run %s %s -o %s", object("c"), path, out);
    STATUS(0, "judge %s %s", path, out); /* what the kernel states went along */
    setenv("FAULT", "abort", 1);
    STATUS(1, "run %s %s -o %s", object("faulty"), path, made_path("none.safetensors"));
    unsetenv("FAULT");
    SAYS("ended by signal 6");
    ck_assert_int_ne(access(made_path("none.safetensors"), F_OK), 0);
}
END_TEST

/* -- Kernels that break ----------------------------------------------------------------------- */

START_TEST(each_way_to_break_is_a_failure_that_names_the_case_and_says_how)
{
    static const char *const broken[][2] = {
        {"null",
         "ended by signal 11 (Segmentation fault): an access to 0x10, in none of its buffers"},
        {"abort", "ended by signal 6 (Aborted)"},
        {"load", "ended by signal 6 (Aborted) while it was loaded"},
        {"exit", "ended its process with status 0"},
        {"stack", "ended by signal 11"},
        {"hang", "did not return: ended after the 1 s of --limit"},
        {"write-input", "a write to input q, at byte 12 of 96"},
        {"write-past-end", "an access 0 bytes past the end of out (64 bytes)"},
        {"write-before", "an access 8192 bytes before the start of out"},
        {"read-past-end", "bytes past the end of k (72 bytes)"},
        {"write-beside", "wrote outside its outputs: 4 bytes beside lse"},
        {"write-just-before", "wrote outside its outputs: 4 bytes beside out"},
        {"attend-beside", "wrote outside its outputs: 4 bytes beside state m"},
        {"attend-past-end", "past the end of state l (32 bytes)"},
        {"error", "returned an error on a valid problem: extents disagree"},
        {"wrong", "worst    out[0,0,2,1]"},
        {"left", "-nan"},
        {"malloc", "nan"},
    };
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        int status = with_fault(broken[k][0], "--limit 1");
        ck_assert_msg(status == 1, "%s: status %d:\n%s", broken[k][0], status, said);
        SAYS(broken[k][1]);
        SAYS("plain");
        SAYS("FAIL");
        SAYS("  repeat   attest check");
    }
}
END_TEST

START_TEST(what_is_no_kernel_is_misuse_and_one_line)
{
    static const char *const refused[][2] = {{"abi", "ABI 2 found, expected 1"},
                                             {"no-engine", "attest_engine() gives no name"},
                                             {"nothing", "attest_engine() gives no name"}};
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(with_fault(refused[k][0], ""), 2);
        SAYS(refused[k][1]);
        one_line();
    }
    STATUS(2, "check %s %s", object("no_engine"), plain());
    SAYS("symbol attest_engine: absent");
    one_line();
    STATUS(2, "check ./no/such.so %s", plain());
    SAYS("engine ./no/such.so: cannot be loaded");
    STATUS(2, "check %s %s --fault lost-key", object("c"), plain());
    SAYS("--fault with engine");
    STATUS(2, "check %s /no/such", object("c"));
    SAYS("/no/such: cannot be opened");
}
END_TEST

/* A number that stands for layouts: whoever changes one of these changes AT_ABI. */
START_TEST(the_abi_number_stands_for_these_layouts)
{
    ck_assert_int_eq(AT_ABI, 1);
    ck_assert_uint_eq(sizeof(struct at_view), 80);
    ck_assert_uint_eq(sizeof(struct at_score), 640);
    ck_assert_uint_eq(sizeof(struct at_attention), 1080);
    ck_assert_uint_eq(sizeof(struct at_arith), 176);
    ck_assert_uint_eq(sizeof(struct at_result), 160);
    ck_assert_uint_eq(sizeof(struct at_engine), 48);
}
END_TEST

/* -- Many cases ------------------------------------------------------------------------------- */

START_TEST(a_broken_case_does_not_end_the_others_and_junit_names_each)
{
    char text[4000];
    const char *path = plain(), *file = made_path("junit.xml");
    STATUS(0, "check %s %s %s %s --junit %s --limit 9", object("faulty"), path, path, path, file);
    text[made_read(file, text, sizeof text - 1)] = 0;
    ck_assert_ptr_nonnull(strstr(text, "tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"0\""));
    setenv("FAULT", "write-input", 1);
    STATUS(1, "check %s %s %s --junit %s", object("faulty"), path, path, file);
    unsetenv("FAULT");
    text[made_read(file, text, sizeof text - 1)] = 0;
    ck_assert_ptr_nonnull(strstr(text, "tests=\"2\" failures=\"2\""));
    ck_assert_ptr_nonnull(strstr(text, "name=\"plain\""));
    ck_assert_ptr_nonnull(strstr(text,
                                 "<failure message=\"ended by signal 11 (Segmentation fault): "
                                 "a write to input q, at byte 12 of 96\"/>"));
}
END_TEST

START_TEST(junit_serves_our_engines_too_and_is_whole_or_absent)
{
    char text[4000];
    const char *file = made_path("junit.xml");
    STATUS(1, "check scalar %s --fault 'lost-key@1,head=1' --arith fp32,joins=1 --junit %s",
           plain(), file);
    text[made_read(file, text, sizeof text - 1)] = 0;
    ck_assert_ptr_nonnull(strstr(text, "<failure message=\"out[0,1,"));
    ck_assert_ptr_nonnull(strstr(text, " under fp32,joins=1, "));
    ck_assert_ptr_nonnull(strstr(text, "elements fail\"/></testcase>\n</testsuite>\n"));
    STATUS(2, "check scalar %s --junit /no/such/place", plain());
    SAYS("/no/such/place: cannot be written");
    STATUS(2, "check scalar %s /no/such --junit %s", plain(), file);
    text[made_read(file, text, sizeof text - 1)] = 0;
    ck_assert_ptr_nonnull(strstr(text, "<error message=\"/no/such: cannot be opened"));
}
END_TEST

START_TEST(a_broken_kernel_is_an_object_of_json_too)
{
    ck_assert_int_eq(with_fault("abort", "--json"), 1);
    ck_assert_int_eq(said[0], '{');
    SAYS("\"verdict\":\"fail\",\"why\":\"ended by signal 6 (Aborted)\"");
}
END_TEST

/* -- Rows that the file says ------------------------------------------------------------------- */

START_TEST(a_file_says_which_rows_are_judged)
{
    static const int64_t at[6] = {0, 1, 2, 0, 0, 3};
    struct made *m = made_plain();
    memcpy(made_add(m, "rows", AT_I64, 2, EXTENTS(2, 3)), at, sizeof at);
    const char *path = made_file(m, "rows.safetensors", META);
    STATUS(0, "check scalar %s", path);
    SAYS("rows judged 2 of 8");
    STATUS(0, "check scalar %s --rows all", path);
    SAYS("rows judged 8 of 8");
    STATUS(0, "check scalar %s --row 0,0,0", path);
    SAYS("rows judged 1 of 8");
    ((int64_t *)m->tensor[3].data)[5] = 4;
    STATUS(2, "check scalar %s", made_file(m, "rows.safetensors", META));
    SAYS("tensor rows: (0,0,4) found, expected below q's extents");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("plugin");
    tcase_add_checked_fixture(t, NULL, made_clean);
    tcase_add_test(t, the_templates_pass_refuse_what_they_do_not_compute_and_fail_with_a_fault);
    tcase_add_test(t, a_kernel_is_held_to_the_arithmetic_that_it_states);
    tcase_add_test(t, attend_alone_is_enough_and_an_out_of_the_compute_type_is_asked_for_second);
    tcase_add_test(t, run_writes_the_result_of_a_shared_object);
    tcase_add_test(t, each_way_to_break_is_a_failure_that_names_the_case_and_says_how);
    tcase_add_test(t, what_is_no_kernel_is_misuse_and_one_line);
    tcase_add_test(t, the_abi_number_stands_for_these_layouts);
    tcase_add_test(t, a_broken_case_does_not_end_the_others_and_junit_names_each);
    tcase_add_test(t, junit_serves_our_engines_too_and_is_whole_or_absent);
    tcase_add_test(t, a_broken_kernel_is_an_object_of_json_too);
    tcase_add_test(t, a_file_says_which_rows_are_judged);
    return run_suite("plugin", t) != 0;
}

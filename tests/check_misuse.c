/* The real program: misuse, corrupt files, a full disk, and what it prints.
 * SPDX-License-Identifier: MIT */
#include "shell.h"

/* -- Misuse ---------------------------------------------------------------------------------- */

/* PLAIN stands for a good case, DEVICE for a full one. */
static void fill_in(const char *from, char *to, size_t size)
{
    size_t n = 0;
    for (*to = 0; *from; n = strlen(to)) {
        bool case_name = strncmp(from, "PLAIN", 5) == 0, device = strncmp(from, "DEVICE", 6) == 0;
        if (case_name || device)
            snprintf(to + n, size - n, "%s", case_name ? plain() : made_device("full"));
        else
            snprintf(to + n, size - n, "%c", *from);
        from += case_name ? 5 : device ? 6 : 1;
    }
}

START_TEST(misuse_is_one_line_and_status_2)
{
    static const struct {
        const char *arguments, *sentence;
    } misuse[] = {
        {"frob", "command frob: unknown"},
        {"judge", "no case given"},
        {"judge /no/such", "/no/such: cannot be opened"},
        {"judge /dev/null", "/dev/null: not a regular file"},
        {"check scalar", "no case given"},
        {"check nosuch PLAIN", "engine nosuch: unknown"},
        {"judge PLAIN", "tensor out: absent"},
        {"judge PLAIN --frob", "flag --frob is unknown"},
        {"judge PLAIN --arith", "flag --arith needs a value"},
        {"judge PLAIN --tile 4", "flag --tile found, but this command has no use for it"},
        {"check scalar PLAIN --tile 0", "--tile 0: expected a whole number >= 1"},
        {"check scalar PLAIN --lanes 3", "3 lanes, expected 1, 2, 4"},
        {"check scalar PLAIN --splits 0", "--splits 0: expected at least 1 part"},
        {"check scalar PLAIN --splits 3,2", "does not ascend from 0"},
        {"check scalar PLAIN --merge sideways", "--merge sideways: expected order"},
        {"check scalar PLAIN --compute fp16", "--compute fp16: expected fp32 or fp64"},
        {"check scalar PLAIN --arith fp31", "arithmetic fp31"},
        {"check scalar PLAIN --arith fp32,tile=x", "tile: 'x'"},
        {"check scalar PLAIN --rows 0", "--rows 0: expected a whole number >= 1"},
        {"check scalar PLAIN --row 0,2,0", "--row 0,2,0: no such row"},
        {"check scalar PLAIN --scale nan", "--scale nan: expected a finite number"},
        {"check scalar PLAIN --window 1", "--window 1: expected LEFT,RIGHT"},
        {"check scalar PLAIN --window -2,0", "--window -2: expected a whole number >= -1"},
        {"check scalar PLAIN --kv-len 1,x", "--kv-len x: expected a whole number >= 0"},
        {"run scalar PLAIN", "expected attest run ENGINE CASE -o OUT"},
        {"run scalar PLAIN -o /no/such/place", "/no/such/place: cannot be written"},
        {"run scalar PLAIN -o DEVICE", "full: could not be written whole"},
        {"truth PLAIN", "expected attest truth CASE -o OUT"},
        {"truth PLAIN -o DEVICE", "full: could not be written whole"},
        {"show", "expected attest show CASE"},
        {"list nonsense", "list nonsense: expected"},
        {"trace", "absent, expected --scores"},
        {"trace --scores 1,2 --values 1", "1 numbers found, expected one for each of the 2"},
        {"trace --scores 1,a --values 1,2", "expected numbers between commas"},
        {"trace --scores 1,nan --values 1,2", "is not finite"},
        {"trace --scores 1,2 --values 1,2 --split 2", "expected less than the 2 scores"},
    };
    for (size_t k = 0; k < sizeof misuse / sizeof *misuse; k++) {
        char arguments[600];
        fill_in(misuse[k].arguments, arguments, sizeof arguments);
        STATUS(2, "%s", arguments);
        one_line();
        SAYS(misuse[k].sentence);
    }
}
END_TEST

START_TEST(corrupt_files_are_status_2_and_leave_nothing)
{
    static char bytes[4096];
    char cut[160];
    size_t n = made_read(plain(), bytes, sizeof bytes);
    snprintf(cut, sizeof cut, "%s", made_bytes("cut", bytes, n - 1));
    STATUS(2, "judge %s", cut);
    one_line();
    SAYS("truncated or corrupt");
    STATUS(2, "truth %s -o %s", cut, made_path("t"));
    STATUS(2, "run scalar %s -o %s", cut, made_path("t"));
    STATUS(2, "check scalar %s --save-repro %s --write-case %s", cut, made_path("t"),
           made_path("u"));
    ck_assert_int_eq(made_count(), 2); /* plain and cut */
}
END_TEST

START_TEST(a_full_disk_leaves_nothing)
{
    const char *path = plain(), *binary = getenv("ATTEST");
    char command[600];
    snprintf(command, sizeof command, "ulimit -f 0; %s run scalar %s -o %s 2>/dev/null",
             binary ? binary : "build/attest", path, made_path("t"));
    int status = system(command);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 2);
    ck_assert_int_eq(made_count(), 1);
}
END_TEST

/* -- What it prints -------------------------------------------------------------------------- */

START_TEST(the_trace_shows_each_state_and_its_error)
{
    STATUS(0, "trace --scores 1000,999,1002,998 --values 2,-1,4,3");
    SAYS("1.36787939     1.63212061     -5.0e-08    5.0e-08");
    SAYS("out = u/l     = 3.55301237");
    STATUS(0, "trace --scores 1000,999,1002,998 --values 2,-1,4,3 --split 2");
    SAYS("the two merged");
    SAYS("out = u/l     = 3.55301237");
    STATUS(0, "trace --scores 1000,999,1002,998 --values 2,-1,4,3 --tile 2");
    SAYS("2..3");
}
END_TEST

START_TEST(show_draws_who_sees_whom)
{
    STATUS(0, "show %s", plain());
    SAYS("     0  ###...\n     1  ####..\n     2  #####.\n     3  ######\n");
    SAYS("s = 0.5*q.k");
    SAYS("empty rows     0 of 8");
    SAYS("over 36 visible pairs");
}
END_TEST

START_TEST(rows_can_be_sampled_and_the_report_says_so)
{
    STATUS(0, "check scalar %s --rows 5 --seed 9", plain());
    SAYS("rows judged 5 of 8");
    SAYS("--seed 9");
}
END_TEST

START_TEST(json_is_one_object_a_case)
{
    const char *path = plain();
    STATUS(0, "check scalar %s %s --json", path, path);
    ck_assert_int_eq(said[0], '{');
    char *second = strchr(said, '\n');
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(second[1], '{');
    SAYS("\"status\":0");
    SAYS("\"assert_close\":{\"rtol\":");
}
END_TEST

START_TEST(json_names_the_fault_and_its_suspects)
{
    const char *path = "tests/data/vectors/smoke/smoke-normal.safetensors";
    STATUS(0, "check scalar %s --json", path);
    SAYS("\"diagnosis\":null,");
    STATUS(1, "check scalar %s --fault lost-key@30 --json --no-diagnose", path);
    SAYS("\"diagnosis\":null,");
    STATUS(1, "check scalar %s --fault lost-key@30 --json", path);
    SAYS("\"diagnosis\":{\"is\":\"fault\",\"name\":\"lost-key@key=30\",\"what\":\"key N is never ");
    SAYS("\"others\":[\"");
    STATUS(1, "check scalar %s --fault lse-base-2 --json", path);
    SAYS("\"others\":[\"lse-base-2\"],\"alike\":true");
    STATUS(1, "check scalar %s --arith fp64 --json", path);
    SAYS("\"diagnosis\":{\"is\":\"arithmetic\",\"name\":\"computed in fp32\",");
}
END_TEST

START_TEST(what_there_is_can_be_listed)
{
    STATUS(0, "list");
    SAYS("scalar");
    SAYS("bf16-p-normalised");
    SAYS("lost-rescale-u");
    STATUS(0, "list engines");
    ck_assert_ptr_null(strstr(said, "bf16"));
    STATUS(0, "--help");
    SAYS("attest judge CASE");
    STATUS(0, "judge --help");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("misuse");
    tcase_add_checked_fixture(t, NULL, made_clean);
    tcase_add_test(t, misuse_is_one_line_and_status_2);
    tcase_add_test(t, corrupt_files_are_status_2_and_leave_nothing);
    tcase_add_test(t, a_full_disk_leaves_nothing);
    tcase_add_test(t, the_trace_shows_each_state_and_its_error);
    tcase_add_test(t, show_draws_who_sees_whom);
    tcase_add_test(t, rows_can_be_sampled_and_the_report_says_so);
    tcase_add_test(t, json_is_one_object_a_case);
    tcase_add_test(t, json_names_the_fault_and_its_suspects);
    tcase_add_test(t, what_there_is_can_be_listed);
    return run_suite("misuse", t) != 0;
}

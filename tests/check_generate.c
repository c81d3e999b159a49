/* The generator: paint, exact cases, restart, versions, recipes, controls, committed vectors.
 * SPDX-License-Identifier: MIT */
#include "vectors.h"
#include <dirent.h>
#include <sys/wait.h>

/* -- Paint ----------------------------------------------------------------------------------- */

START_TEST(painted_numbers_are_those_of_the_formula)
{
    /* printed by tests/peers/paint.py */
    struct at_brush b = {0x123456789abcdef0u, 33};
    ck_assert(at_normal(b, 0) == -0x1.5fa11537969p-1 && at_normal(b, 1) == -0x1.4775d299bd22p-1);
    ck_assert(at_normal(b, (uint64_t)5 << 32) == -0x1.1f412d7b5d74p-2);
    ck_assert_int_eq(at_integer(b, 7, -100, 100), -38);
}
END_TEST

START_TEST(the_formula_in_the_documentation_is_the_one_that_paints)
{
    char command[600];
    const char *path = made_path("doc.c");
    snprintf(command, sizeof command,
             "{ echo '#include \"at_index.h\"'; sed -n '/^    double normal(/,/^    }/p' "
             "docs/generator.md; "
             "echo 'int main(void) { return !(normal(0x123456789abcdef0u, 33, 0) == "
             "-0x1.5fa11537969p-1 && "
             "normal(0x123456789abcdef0u, 33, 5ull << 32) == -0x1.1f412d7b5d74p-2); }'; } > %s && "
             "cc -std=c11 -Iinclude -o %s.run %s && %s.run",
             path, path, path, path);
    ck_assert_int_eq(system(command), 0);
    made_clean();
}
END_TEST

START_TEST(painted_normals_have_mean_0_and_variance_1)
{
    struct at_brush b = {1, 2};
    double sum = 0, square = 0, most = 0;
    int n = 100000, odd = 0, ends = 0;
    for (int k = 0; k < n; k++) {
        double x = at_normal(b, (uint64_t)k);
        sum += x, square += x * x, most = fmax(most, fabs(x));
        odd += fmod(x * 0x1p48, 2) != 0;
    }
    ck_assert(fabs(sum / n) < 5 / sqrt(n) && fabs(square / n - 1) < 5 * sqrt(2.0 / n));
    ck_assert(most > 3.5 && most < 6);
    ck_assert_int_gt(odd, n / 3); /* the last bit is used */
    for (int k = 0; k < 100; k++)
        ends |= 1 << at_integer(b, (uint64_t)k, 0, 5);
    ck_assert_int_eq(ends, 63);
}
END_TEST

/* -- The table ------------------------------------------------------------------------------- */

START_TEST(names_and_numbers_of_cases_are_their_own)
{
    for (int64_t k = 0; at_plot_at(k); k++) {
        const struct at_plot *p = at_plot_at(k);
        bool suite = false;
        ck_assert_uint_eq(p->number, (unsigned)k + 1); /* appended, never moved */
        ck_assert(*p->catches && p->needs && p->fill);
        for (int64_t j = 0; j < k; j++)
            ck_assert_str_ne(p->name, at_plot_at(j)->name);
        for (int64_t s = 0; at_suite_at(s); s++) {
            size_t n = strlen(at_suite_at(s));
            suite = suite || (strncmp(p->name, at_suite_at(s), n) == 0 && p->name[n] == '-');
        }
        ck_assert_msg(suite, "%s", p->name);
    }
}
END_TEST

static const struct {
    const char *suite, *sentence;
} versions[] = {{"exact@4", "version 4 found, expected 1 .. 3"},
                {"exact@0", "version 0 found, expected 1 .. 3"},
                {"exact@", "version  found, expected 1 .. 3"},
                {"exactly", "suite exactly: unknown, expected smoke"},
                {"ex", "suite ex: unknown"}};

START_TEST(a_version_that_does_not_exist_is_refused)
{
    struct at_request x = at_request_plain();
    ck_assert(!at_request_suite(&x, versions[_i].suite, &said));
    ck_assert_msg(strstr(said.text, versions[_i].sentence) != NULL, "%s", said.text);
}
END_TEST

START_TEST(requests_that_cannot_be_met_are_refused)
{
    struct at_request x = at_request_plain();
    x.shape[2] = 3;
    ck_assert(!at_request_check(&x, &said) &&
              strstr(said.text, "Hq 4 found, expected a multiple of Hkv 3"));
    x = at_request_plain(), x.shape[5] = 0;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "D 0 found"));
    x = at_request_plain(), x.tile[0] = 1;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "tile 1 found, expected 2"));
    x = at_request_plain(), x.corner = AT_TOP_LEFT, x.right = 3;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "right 3 found beside causal"));
    x = at_request_plain(), x.dtype = AT_F64, strcpy(x.arith, "fp32");
    ck_assert(!at_request_check(&x, &said) &&
              strstr(said.text, "expected one that holds dtype fp64"));
    x = at_request_plain(), strcpy(x.arith, "fp33");
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "arithmetic fp33"));
    x = at_request_plain(), x.shape[3] = x.shape[4] = x.shape[0] = 1 << 24;
    ck_assert(!at_request_check(&x, &said) && strstr(said.text, "2^34 elements"));
}
END_TEST

/* -- Files ------------------------------------------------------------------------------------- */

static size_t slurp(const char *dir, const char *name, char *to, size_t most)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return made_read(path, to, most);
}

START_TEST(a_second_run_writes_nothing_and_a_damaged_file_is_made_again)
{
    static char before[1 << 18], after[1 << 18];
    char dir[200], path[300];
    struct at_request want = small("smoke", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir), second = generated(&want, dir);
    ck_assert_int_eq(first.skipped, 0);
    ck_assert_int_eq(second.skipped, first.files);
    ck_assert_str_eq(first.pin, second.pin);
    size_t n = slurp(dir, "smoke-normal.fp32.safetensors", before, sizeof before);
    snprintf(path, sizeof path, "%s/smoke-normal.fp32.safetensors", dir);
    ck_assert_int_eq(truncate(path, (off_t)n - 1), 0);
    struct at_generated third = generated(&want, dir);
    ck_assert_int_eq(third.skipped, first.files - 2);
    ck_assert_str_eq(third.pin, first.pin);
    ck_assert_uint_eq(slurp(dir, "smoke-normal.fp32.safetensors", after, sizeof after), n);
    ck_assert_mem_eq(before, after, n);
    made_clean();
}
END_TEST

START_TEST(a_stopped_run_goes_on_where_it_was)
{
    char dir[200];
    struct at_manifest m;
    struct at_generated done = {0};
    struct at_request want = small("smoke", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir);
    ck_assert(at_manifest_open(&m, &want, dir, &said)); /* as if stopped after the first case */
    ck_assert(at_manifest_has(&m, "smoke-normal", dir, &done));
    ck_assert(at_manifest_write(&m, false, &done, &said));
    ck_assert_str_ne(done.pin, first.pin);
    at_manifest_close(&m);
    struct at_generated second = generated(&want, dir);
    ck_assert_int_eq(second.skipped, 2);
    ck_assert_str_eq(second.pin, first.pin);
    made_clean();
}
END_TEST

START_TEST(another_request_does_not_mix_with_the_files_of_the_first)
{
    char dir[200];
    struct at_generated done;
    struct at_request want = small("smoke", AT_F32), other = small("smoke@3", AT_F32);
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    struct at_generated first = generated(&want, dir), same = generated(&other, dir);
    ck_assert_str_eq(first.pin, same.pin); /* @3 is the same request */
    ck_assert_int_eq(same.skipped, first.files);
    other.seed = 2;
    ck_assert(!at_generate(&other, dir, quiet, &done, &said));
    ck_assert_msg(strstr(said.text, "found one of another request") != NULL, "%s", said.text);
    made_clean();
}
END_TEST

START_TEST(a_recipe_that_nobody_wrote_is_refused)
{
    static const char *const wrong[][2] = {
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-none\"}}", "\"recipe.case\""},
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-normal\"}}", "\"recipe.shape\""},
        {"{\"spec\":1,\"scale\":1,\"recipe\":{\"case\":\"smoke-normal\",\"suite\":1,\"dtype\":"
         "\"fp32\","
         "\"shape\":[1,1,1,1,1,1,0],\"window\":[-1,-1],\"causal\":\"none\",\"tile\":2}}",
         "Dv 0 found"},
        {"{\"spec\":1,\"interval\":{}}",
         "an interval of `attest generate` found, expected its case"},
    };
    struct made *m = calloc(1, sizeof *m);
    struct at_case x;
    made_add(m, "rows", AT_F32, 2, EXTENTS(1, 3));
    const char *path = made_file(m, "x", wrong[_i][0]);
    ck_assert(!at_case_read(path, NULL, &x, &said));
    ck_assert_msg(strstr(said.text, wrong[_i][1]) != NULL, "%s", said.text);
    made_clean();
}
END_TEST

START_TEST(a_directory_that_cannot_be_made_leaves_nothing)
{
    struct at_generated done;
    struct at_request want = small("smoke", AT_F32);
    ck_assert(!at_generate(&want, made_path("no/such"), quiet, &done, &said));
    ck_assert_msg(strstr(said.text, "no/such: cannot be made") != NULL, "%s", said.text);
    ck_assert_int_eq(made_count(), 0);
    made_clean();
}
END_TEST

START_TEST(a_header_of_tiny_cases_compiles_and_holds_the_truth)
{
    char command[400], header[200];
    struct at_generated done;
    struct at_request want = small("exact", AT_F16);
    snprintf(header, sizeof header, "%s", made_path("cases.h"));
    ck_assert_msg(at_generate_header(&want, header, &done, &said), "%s", said.text);
    ck_assert_int_eq(done.cases, 11);
    FILE *f = fopen(made_path("t.c"), "w");
    fprintf(
        f,
        "#include \"cases.h\"\nint main(void) { int bad = sizeof exact_equal_q / 8 != 4 * 7 * 16;\n"
        "for (int t = 0; t < 4 * 7 * 3; t++) bad += exact_equal_out_lo[t] != "
        "exact_equal_out_hi[t];\n"
        "return bad; }\n");
    fclose(f);
    snprintf(command, sizeof command, "cd %s && cc -w -o t t.c && ./t", made_dir);
    ck_assert_int_eq(system(command), 0);
    want.shape[3] = 2000;
    ck_assert(!at_generate_header(&want, header, &done, &said));
    ck_assert_msg(strstr(said.text, "expected a smaller --shape") != NULL, "%s", said.text);
    made_clean();
}
END_TEST

/* -- Committed vectors, the program ------------------------------------------------------- */

static const char *const committed[] = {"smoke", "exact"};

START_TEST(the_committed_vectors_are_what_generate_prints)
{
    static char ours[1 << 19], theirs[1 << 19];
    char dir[200], data[200];
    struct at_request want = at_request_plain();
    ck_assert(at_request_suite(&want, committed[_i], &said) && at_request_check(&want, &said));
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    snprintf(data, sizeof data, "tests/data/vectors/%s", committed[_i]);
    struct at_generated done = generated(&want, dir);
    DIR *d = opendir(data);
    ck_assert_ptr_nonnull(d);
    int64_t files = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        size_t n = slurp(data, e->d_name, theirs, sizeof theirs);
        ck_assert_uint_lt(n, sizeof theirs);
        ck_assert_uint_eq(slurp(dir, e->d_name, ours, sizeof ours), n);
        ck_assert_msg(memcmp(ours, theirs, n) == 0, "%s", e->d_name);
        files++;
    }
    closedir(d);
    ck_assert_int_eq(files, done.files + 1);
    made_clean();
}
END_TEST

static int run(const char *command, char *to, size_t size)
{
    char line[1000];
    const char *attest = getenv("ATTEST");
    snprintf(line, sizeof line, "%s %s 2>&1", attest ? attest : "build/attest", command);
    FILE *p = popen(line, "r");
    ck_assert_ptr_nonnull(p);
    to[fread(to, 1, size - 1, p)] = 0; /* all of it: size is generous */
    return WEXITSTATUS(pclose(p));
}

START_TEST(check_takes_a_whole_directory_and_counts_what_it_passes_over)
{
    static char text[1 << 16];
    char command[600], dir[200];
    snprintf(dir, sizeof dir, "%s", made_path("v"));
    snprintf(command, sizeof command,
             "generate exact --shape 1,2,1,20,30,16,8 --dtype bf16 "
             "--causal bottom-right --tile 8 -o %s",
             dir);
    ck_assert_msg(run(command, text, sizeof text) == 0, "%s", text);
    ck_assert_msg(strstr(text, "8 cases, 16 files") && strstr(text, "MANIFEST.json "), "%s", text);
    snprintf(command, sizeof command, "check scalar %s/*", dir);
    ck_assert_msg(run(command, text, sizeof text) == 0, "%s", text);
    ck_assert_msg(strstr(text, "\n9 manifests and intervals passed over") != NULL, "%s", text);
    snprintf(command, sizeof command, "check scalar %s/* --fault lost-key@7", dir);
    ck_assert_int_eq(run(command, text, sizeof text), 1);
    ck_assert_ptr_nonnull(strstr(text, "worst    out["));
    snprintf(command, sizeof command,
             "check scalar %s/exact-needle-tile8.safetensors %s/exact-diagonal.safetensors "
             "--fault lost-key@25",
             dir, dir);
    ck_assert_int_eq(run(command, text, sizeof text), 1); /* though the last one passes */
    ck_assert_int_eq(run("check scalar tests/data/vectors/smoke/MANIFEST.json", text, 99), 2);
    made_clean();
}
END_TEST

static const char *const misuse[][2] = {
    {"generate", "generate: expected attest generate SUITE"},
    {"generate smoke -o x --shape 1,2,3", "--shape 1,2,3: expected 7 whole numbers"},
    {"generate smoke -o x --shape 1,2,1,3,3,4,4,4", "--shape 1,2,1,3,3,4,4,4: expected 7"},
    {"generate smoke -o x --tile 64,", "--tile 64,: expected at most 8 whole numbers"},
    {"generate smoke -o x --dtype fp12", "--dtype fp12: expected fp64"},
    {"generate smoke -o x --causal left", "--causal \"left\": expected bottom-right or top-left"},
    {"generate smoke -o x --format json", "--format json: expected safetensors or c"},
    {"generate smoke -o x --softcap 3", "flag --softcap found, but this command has no use for it"},
    {"generate smock -o x", "suite smock: unknown"},
};

START_TEST(misuse_of_generate_is_one_line_and_status_2)
{
    char text[2000];
    ck_assert_int_eq(run(misuse[_i][0], text, sizeof text), 2);
    ck_assert_msg(strstr(text, misuse[_i][1]) != NULL, "%s", text);
    ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
    ck_assert_int_ne(access("x", F_OK), 0);
}
END_TEST

static void add_files(TCase *t)
{
    tcase_add_test(t, a_second_run_writes_nothing_and_a_damaged_file_is_made_again);
    tcase_add_test(t, a_stopped_run_goes_on_where_it_was);
    tcase_add_test(t, another_request_does_not_mix_with_the_files_of_the_first);
    tcase_add_loop_test(t, a_recipe_that_nobody_wrote_is_refused, 0, 4);
    tcase_add_test(t, a_directory_that_cannot_be_made_leaves_nothing);
    tcase_add_test(t, a_header_of_tiny_cases_compiles_and_holds_the_truth);
    tcase_add_loop_test(t, the_committed_vectors_are_what_generate_prints, 0, COUNT(committed));
}

int main(void)
{
    Suite *s = suite_create("generate");
    TCase *t = group(s, "paint");
    tcase_add_test(t, painted_numbers_are_those_of_the_formula);
    tcase_add_test(t, the_formula_in_the_documentation_is_the_one_that_paints);
    tcase_add_test(t, painted_normals_have_mean_0_and_variance_1);
    t = group(s, "requests");
    tcase_add_test(t, names_and_numbers_of_cases_are_their_own);
    tcase_add_loop_test(t, a_version_that_does_not_exist_is_refused, 0, COUNT(versions));
    tcase_add_test(t, requests_that_cannot_be_met_are_refused);
    add_files(group(s, "files"));
    t = group(s, "program");
    tcase_add_test(t, check_takes_a_whole_directory_and_counts_what_it_passes_over);
    tcase_add_loop_test(t, misuse_of_generate_is_one_line_and_status_2, 0, COUNT(misuse));
    return run_groups(s);
}

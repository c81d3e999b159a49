/* Suite alone: no suite of the generator is idle: each fails some fault that every case of all the
 * others passes, so that without it the fault goes unseen. SPDX-License-Identifier: MIT */
#include "vectors.h"

/* What only that suite fails: at the small shape, or over a cache of 4100 keys under the loosest
 * bound that kernels state; in bf16 both. */
static const struct {
    const char *suite, *fault;
    bool cache;
} alone[] = {{"smoke", "causal-in-tile", false},    {"exact", "lost-update@2050", true},
             {"masks", "window-causal", false},     {"scores", "softcap-missing", false},
             {"dropout", "dropout-ignored", false}, {"batches", "page-identity", false},
             {"infinities", "nan-empty", false},    {"extreme", "value-flushed", false},
             {"splits", "empty-split-zero", false}, {"adversarial", "exp-close", false},
             {"workloads", "kv-len-ignored", false}};

static struct at_request large(void)
{
    struct at_request x = at_request_plain();
    const int64_t shape[7] = {1, 1, 1, 2, 4100, 32, 4};
    memcpy(x.shape, shape, sizeof shape);
    x.dtype = AT_BF16, x.corner = AT_BOTTOM_RIGHT, x.tile[0] = 64, x.rows = INT64_MAX / 2;
    snprintf(x.arith, sizeof x.arith, "bf16-tensor-core");
    ck_assert_msg(at_request_suite(&x, "full", &said), "%s", said.text);
    ck_assert_msg(at_request_check(&x, &said), "%s", said.text);
    return x;
}

/* Every suite has a fault that all cases of the others pass. */
START_TEST(without_any_suite_a_fault_goes_unseen)
{
    bool cache = _i == 1, seen[COUNT(alone)] = {false};
    struct at_request want = cache ? large() : small("full", AT_BF16);
    struct at_vector v;
    struct at_arith arith;
    for (int64_t k = 0; vector(&v, &want, k); k++) {
        size_t n = strcspn(v.canvas.name, "-");
        for (int f = 0; f < COUNT(alone); f++) {
            if (alone[f].cache != cache)
                continue;
            double *got = scalar_result(&v, alone[f].fault, &arith);
            bool fails = count_failed(&v, got, true) > 0;
            bool own = strncmp(v.canvas.name, alone[f].suite, n) == 0 && !alone[f].suite[n];
            free(got);
            ck_assert_msg(own || !fails, "%s fails %s", alone[f].fault, v.canvas.name);
            seen[f] = seen[f] || fails;
        }
        at_vector_free(&v);
    }
    for (int f = 0; f < COUNT(alone); f++)
        ck_assert_msg(seen[f] || alone[f].cache != cache, "%s passes %s", alone[f].fault,
                      alone[f].suite);
}
END_TEST

/* The lists are complete: each suite of at_suite_at stands in one. */
START_TEST(every_suite_has_a_fault_of_its_own)
{
    for (int64_t k = 0; at_suite_at(k); k++) {
        bool there = strcmp(at_suite_at(k), "full") == 0;
        for (int f = 0; f < COUNT(alone); f++)
            there = there || strcmp(at_suite_at(k), alone[f].suite) == 0;
        ck_assert_msg(there, "%s", at_suite_at(k));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("alone");
    TCase *t = group(s, "alone");
    tcase_add_test(t, every_suite_has_a_fault_of_its_own);
    tcase_add_loop_test(t, without_any_suite_a_fault_goes_unseen, 0, 2);
    return run_groups(s);
}

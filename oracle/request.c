/* What may be asked of the generator. SPDX-License-Identifier: MIT */
#include "generate.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

struct at_request at_request_plain(void)
{
    return (struct at_request){.suite = "smoke",
                               .version = AT_SUITE,
                               .dtype = AT_F32,
                               .seed = 1,
                               .shape = {1, 4, 2, 33, 65, 16, 16},
                               .left = AT_UNBOUNDED,
                               .right = AT_UNBOUNDED,
                               .tile = {16},
                               .tiles = 1};
}

bool at_request_suite(struct at_request *x, const char *text, struct at_said *said)
{
    size_t n = strcspn(text, "@");
    char *end = NULL;
    bool known = false;
    for (int64_t k = 0; at_suite_at(k); k++)
        known = known || (strlen(at_suite_at(k)) == n && strncmp(at_suite_at(k), text, n) == 0);
    if (!known)
        return at_say(said,
                      "suite %.60s: unknown, expected smoke, exact, masks, scores, dropout, "
                      "batches, infinities, extreme, splits, adversarial, workloads or full",
                      text);
    snprintf(x->suite, sizeof x->suite, "%.*s", (int)n, text);
    if (!text[n])
        return true;
    x->version = strtoll(text + n + 1, &end, 10);
    if (*end || end == text + n + 1 || x->version < 1 || x->version > AT_SUITE)
        return at_say(said, "suite %.60s: version %.20s found, expected 1 .. %d", text,
                      text + n + 1, AT_SUITE);
    return true;
}

enum at_dtype at_request_output(const struct at_request *x)
{
    return x->dtype == AT_F8_E4M3 || x->dtype == AT_F8_E5M2 ? AT_BF16 : x->dtype;
}

/* What kernels of that dtype usually do. */
static const char *usual(enum at_dtype dtype)
{
    switch (dtype) {
    case AT_F64: return "fp64";
    case AT_F16: return "fp16-p";
    case AT_BF16: return "bf16-p";
    case AT_F32: return "fp32";
    default: return "fp8-p";
    }
}

static bool check_shape(const struct at_request *x, struct at_said *said)
{
    static const char *const name[7] = {"B", "Hq", "Hkv", "Sq", "Skv", "D", "Dv"};
    const int64_t *s = x->shape;
    for (int k = 0; k < 7; k++)
        if (s[k] < 1 || s[k] > 1 << 24)
            return at_say(said, "shape: %s %lld found, expected 1 .. 2^24", name[k],
                          (long long)s[k]);
    if (s[1] % s[2])
        return at_say(said, "shape: Hq %lld found, expected a multiple of Hkv %lld",
                      (long long)s[1], (long long)s[2]);
    double wide = (double)at_max(s[5], s[6]) * (double)at_max(s[0], 7);
    if ((double)s[1] * (double)at_max(s[3], s[4]) * wide > 0x1p34)
        return at_say(said, "shape: a tensor of more than 2^34 elements, expected fewer");
    return true;
}

bool at_request_check(struct at_request *x, struct at_said *said)
{
    struct at_arith arith;
    struct at_why why = {{0}};
    if (!at_is_float(x->dtype))
        return at_say(said, "dtype: expected fp64, fp32, fp16, bf16, fp8-e4m3 or fp8-e5m2");
    if (!check_shape(x, said))
        return false;
    if (x->version < 1 || x->version > AT_SUITE)
        return at_say(said, "suite version %lld found, expected 1 .. %d", (long long)x->version,
                      AT_SUITE);
    if (x->left < AT_UNBOUNDED || x->right < AT_UNBOUNDED)
        return at_say(said, "window %lld,%lld found, expected -1 (none) or more",
                      (long long)x->left, (long long)x->right);
    if (x->corner != AT_NO_CORNER && x->right != AT_UNBOUNDED && x->right != 0)
        return at_say(said, "window: right %lld found beside causal, expected 0",
                      (long long)x->right);
    if (x->corner != AT_NO_CORNER)
        x->right = 0;
    for (int64_t k = 0; k < x->tiles; k++)
        if (x->tile[k] < 2 || x->tile[k] > 1 << 24)
            return at_say(said, "tile %lld found, expected 2 .. 2^24", (long long)x->tile[k]);
    if (!*x->arith)
        snprintf(x->arith, sizeof x->arith, "%s", usual(x->dtype));
    if (!at_arith_read(&arith, x->arith, &why))
        return at_say(said, "arithmetic %.100s: %s", x->arith, why.text);
    if (x->dtype == AT_F64 && arith.compute != AT_F64)
        return at_say(said, "arithmetic %.100s: computes in %s, expected one that holds dtype fp64",
                      x->arith, at_dtype_name(arith.compute));
    return true;
}

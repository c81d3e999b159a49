/* attest generate SUITE[@VERSION] -o DIR: test vectors with truth and interval (docs/generator.md).
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "3,5,7": exactly or at most n whole numbers. */
static bool numbers(const char *flag, const char *text, int64_t *to, int64_t n, bool exactly,
                    int64_t *found, struct at_said *said)
{
    const char *at = text;
    for (*found = 0; *found < n; at++) {
        char *end;
        long long x = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || x > INT32_MAX || x < 0)
            break;
        to[(*found)++] = x;
        at = end;
        if (!*end && (!exactly || *found == n))
            return true;
        if (!*end)
            break;
    }
    return at_say(said, "--%s %.80s: expected %s%lld whole numbers with commas", flag, text,
                  exactly ? "" : "at most ", (long long)n);
}

/* --causal and --window stand among the metadata fields. */
static bool masks(const struct options *o, struct at_request *want, struct at_said *said)
{
    for (int64_t k = 0; k < o->fields.n; k++) {
        const struct at_field *f = &o->fields.at[k];
        if (strcmp(f->name, "left") == 0)
            want->left = strtoll(f->text, NULL, 10);
        else if (strcmp(f->name, "right") == 0)
            want->right = strtoll(f->text, NULL, 10);
        else if (strcmp(f->text, "\"bottom-right\"") == 0)
            want->corner = AT_BOTTOM_RIGHT;
        else if (strcmp(f->text, "\"top-left\"") == 0)
            want->corner = AT_TOP_LEFT;
        else
            return at_say(said, "--causal %.40s: expected bottom-right or top-left", f->text);
    }
    return true;
}

static bool request(const struct options *o, struct at_request *want, struct at_said *said)
{
    int64_t found;
    *want = at_request_plain();
    if (o->files != 1 || !o->out)
        return at_say(said, "generate: expected attest generate SUITE[@VERSION] -o DIR");
    want->seed = o->seed;
    want->rows = o->rows > 0 ? o->rows : o->rows == -1 ? INT64_MAX : 0;
    if (o->dtype)
        want->dtype = at_dtype_find(o->dtype);
    if (o->dtype && !at_is_float(want->dtype))
        return at_say(said, "--dtype %.40s: expected fp64, fp32, fp16, bf16, fp8-e4m3 or fp8-e5m2",
                      o->dtype);
    if (o->arith && strlen(o->arith) >= sizeof want->arith)
        return at_say(said, "--arith %.40s...: too long", o->arith);
    snprintf(want->arith, sizeof want->arith, "%s", o->arith ? o->arith : "");
    return at_request_suite(want, o->file[0], said) && masks(o, want, said) &&
           (!o->shape || numbers("shape", o->shape, want->shape, 7, true, &found, said)) &&
           (!o->tiles ||
            numbers("tile", o->tiles, want->tile, AT_TILES, false, &want->tiles, said)) &&
           at_request_check(want, said);
}

int run_generate(const struct options *o)
{
    struct at_request want;
    struct at_generated done;
    struct at_said said;
    bool header = o->format && strcmp(o->format, "c") == 0;
    if (o->format && !header && strcmp(o->format, "safetensors") != 0) {
        at_say(&said, "--format %.40s: expected safetensors or c", o->format);
        return refuse(&said);
    }
    if (!request(o, &want, &said))
        return refuse(&said);
    bool good = header ? at_generate_header(&want, o->out, &done, &said)
                       : at_generate(&want, o->out, progress_of("generate"), &done, &said);
    progress_done();
    if (!good)
        return refuse(&said);
    print_generated(&done);
    return PASS;
}

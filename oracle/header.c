/* Tiny cases as one C header of hex floats, for a test that reads no files.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "ref.h"
#include "vector.h"
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Numbers that a case of a header may have. */
enum { TINY = 1 << 14 };

/* Into the memory that becomes the file. */
__attribute__((format(printf, 2, 3))) static void put(FILE *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(to, format, list);
    va_end(list);
}

static void identifier(const char *name, char *to, size_t size)
{
    size_t n = strlen(name) < size - 1 ? strlen(name) : size - 1;
    for (size_t k = 0; k < n; k++)
        to[k] = isalnum((unsigned char)name[k]) ? name[k] : '_';
    to[n] = 0;
}

static void number(FILE *to, double x)
{
    if (isnan(x))
        put(to, "NAN");
    else if (isinf(x))
        put(to, "%s", x > 0 ? "INFINITY" : "-INFINITY");
    else
        put(to, "%a", x);
}

static void tensor(FILE *to, const char *id, const struct at_tensor *t)
{
    int64_t n = 1;
    struct at_view x = at_bhsd(t->data, t->dtype, 1, 1, 1, 1);
    for (int k = 0; k < t->rank; k++)
        n *= t->dim[k];
    put(to, "static const double %s_%s[%lld] = {", id, t->name, (long long)n);
    for (int64_t k = 0; k < n; k++) {
        put(to, "%s", k % 4 ? " " : "\n    ");
        if (t->dtype == AT_I64)
            number(to, (double)((const int64_t *)t->data)[k]);
        else
            number(to, t->dtype == AT_U8 ? ((const unsigned char *)t->data)[k] : at_load(&x, k));
        put(to, ",");
    }
    put(to, "\n};\n");
}

/* side 0: lo, 1: hi, 2: kinds. */
static void answers(FILE *to, const struct at_vector *v, const char *id, bool lse, int side)
{
    static const char *const what[3] = {"lo", "hi", "kind"};
    int64_t Dv = lse ? 1 : v->y.Dv;
    put(to, "static const %s %s_%s_%s[%lld] = {", side == 2 ? "unsigned char" : "double", id,
        lse ? "lse" : "out", what[side], (long long)v->y.n * Dv);
    for (int64_t t = 0; t < v->y.n * Dv; t++) {
        double end[2];
        int64_t row = lse ? t : at_vector_row(v, t / Dv);
        unsigned char kind = at_vector_element(v, row, lse ? -1 : t % Dv, &end[0], &end[1]);
        put(to, "%s", t % 4 ? " " : "\n    ");
        if (side == 2)
            put(to, "%d", kind);
        else
            number(to, end[side]);
        put(to, ",");
    }
    put(to, "\n};\n");
}

static void one_case(FILE *to, const struct at_vector *v)
{
    char id[100];
    const struct at_canvas *c = &v->canvas;
    identifier(c->name, id, sizeof id);
    put(to,
        "\n/* %s: %s.\n * B %lld, Hq %lld, Hkv %lld, Sq %lld, Skv %lld, D %lld, Dv %lld; "
        "left %lld, right %lld, offset %s. */\n",
        c->name, c->plot->catches, (long long)c->B, (long long)c->Hq, (long long)c->Hkv,
        (long long)c->Sq, (long long)c->Skv, (long long)c->D, (long long)c->Dv, (long long)c->left,
        (long long)c->right,
        c->has[AT_OFFSETS]             ? "as said"
        : c->corner != AT_BOTTOM_RIGHT ? "0"
        : c->has[AT_Q_LEN]             ? "key length - query length"
                                       : "key length - Sq");
    put(to, "static const double %s_scale = %a;\n", id, v->x.a.score.scale);
    for (int64_t t = 0; t < v->x.file.n; t++)
        tensor(to, id, &v->x.file.tensor[t]);
    for (int side = 0; side < 3; side++) {
        answers(to, v, id, false, side);
        answers(to, v, id, true, side);
    }
}

static bool is_tiny(const struct at_canvas *c)
{
    return c->B * (c->Hq * c->Sq * (c->D + 2 * c->Dv) + c->Hkv * c->Skv * (c->D + c->Dv)) <= TINY;
}

static bool all_cases(FILE *to, const struct at_request *want, struct at_generated *done,
                      struct at_said *said)
{
    const struct at_plot *plot;
    struct at_vector v;
    struct at_canvas c;
    struct at_progress quiet = {NULL, NULL};
    int64_t tile;
    for (int64_t k = 0; at_suite_case(want, k, &plot, &tile); k++) {
        if (!at_canvas_plan(&c, want, plot, tile)) {
            done->unfit++;
            continue;
        }
        if (!is_tiny(&c))
            return at_say(said,
                          "%s: more than %d numbers, expected a smaller --shape for --format c",
                          c.name, TINY);
        if (!at_vector_make(&v, want, plot, tile, quiet, said))
            return false;
        one_case(to, &v);
        at_vector_free(&v);
        done->cases++;
    }
    return true;
}

bool at_generate_header(const struct at_request *want, const char *path, struct at_generated *done,
                        struct at_said *said)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    *done = (struct at_generated){.files = 1};
    if (!to)
        return at_say(said, "%s: no memory", path);
    put(to,
        "/* attest generate %s@%lld --format c, seed %llu, dtype %s, arithmetic %s, spec %d, "
        "bound %d.\n"
        " * A kernel passes where lo <= got <= hi; kinds: docs/generator.md. CC0-1.0 */\n"
        "#include <math.h>\n",
        want->suite, (long long)want->version, (unsigned long long)want->seed,
        at_dtype_name(want->dtype), want->arith, AT_SPEC, AT_BOUND);
    bool good = all_cases(to, want, done, said);
    if (fclose(to) != 0 && good)
        good = at_say(said, "%s: no memory", path);
    good = good && at_file_write(path, text, (int64_t)size, said);
    done->bytes = (int64_t)size;
    free(text);
    return good;
}

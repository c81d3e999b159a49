/* The metadata of a painted case, and the way back from its recipe to the same tensors.
 * SPDX-License-Identifier: MIT */
#include "case.h"
#include "generate.h"
#include "ref.h"
#include <stdio.h>
#include <stdlib.h>

/* -- Metadata -------------------------------------------------------------------------------- */

static const char *const corners[] = {"none", "bottom-right", "top-left"};

/* All that the inputs depend on. */
static json_t *inputs_json(const struct at_request *want, int64_t version)
{
    json_t *shape = json_array();
    for (int k = 0; k < 7; k++)
        json_array_append_new(shape, json_integer(want->shape[k]));
    return json_pack("{s:I, s:s, s:I, s:o, s:s, s:[I,I]}", "suite", (json_int_t)version, "dtype",
                     at_dtype_name(want->dtype), "seed", (json_int_t)want->seed, "shape", shape,
                     "causal", corners[want->corner], "window", (json_int_t)want->left,
                     (json_int_t)want->right);
}

json_t *at_request_json(const struct at_request *want)
{
    json_t *x = inputs_json(want, want->version), *tiles = json_array();
    for (int64_t k = 0; k < want->tiles; k++)
        json_array_append_new(tiles, json_integer(want->tile[k]));
    json_object_set_new(x, "tiles", tiles);
    json_object_set_new(x, "rows", json_integer(want->rows));
    json_object_set_new(x, "arith", json_string(want->arith));
    json_object_set_new(x, "cases", json_string(want->suite));
    return x;
}

/* Beyond what every case says. */
static void add_fields(const struct at_canvas *x, json_t *m)
{
    static const char *const pages[] = {NULL, "pages-nhd", "pages-hnd"};
    const struct at_dropout *drop = &x->a.dropout;
    if (x->packed)
        json_object_set_new(m, "layout", json_string("thd"));
    if (x->paging)
        json_object_set_new(m, "kv_layout", json_string(pages[x->paging]));
    if (x->a.score.softcap > 0)
        json_object_set_new(m, "softcap", json_real(x->a.score.softcap));
    if (drop->p > 0)
        json_object_set_new(m, "dropout",
                            json_pack("{s:f, s:I, s:I}", "p", drop->p, "seed",
                                      (json_int_t)drop->seed, "offset", (json_int_t)drop->offset));
}

json_t *at_canvas_meta(const struct at_canvas *x)
{
    static const char *const exact[] = {NULL, "one", "counted", "balanced"};
    json_t *recipe = inputs_json(x->want, at_plot_since(x->plot));
    json_object_set_new(recipe, "case", json_string(x->plot->name));
    json_object_set_new(recipe, "stream", json_integer(16 * (json_int_t)x->plot->number));
    json_object_set_new(recipe, "tile", json_integer(x->tile));
    json_t *m = json_pack("{s:i, s:s, s:f, s:I}", "spec", AT_SPEC, "name", x->name, "scale",
                          x->a.score.scale, "left", (json_int_t)x->left);
    if (x->corner == AT_NO_CORNER)
        json_object_set_new(m, "right", json_integer(x->right));
    else
        json_object_set_new(m, "causal", json_string(corners[x->corner]));
    add_fields(x, m);
    if (exact[x->plot->exact])
        json_object_set_new(m, "exact", json_string(exact[x->plot->exact]));
    json_object_set_new(m, "recipe", recipe);
    return m;
}

/* -- From a recipe to the same tensors --------------------------------------------------------- */

static bool wrong(const char *path, const char *field, struct at_said *said)
{
    return at_say(said,
                  "%s: metadata attest: field \"recipe.%s\": absent or not as `attest generate` "
                  "writes it, expected a recipe where tensor q is absent",
                  path, field);
}

static bool list(const json_t *recipe, const char *name, size_t n, int64_t *to)
{
    const json_t *x = json_object_get(recipe, name);
    bool good = json_array_size(x) == n;
    for (size_t k = 0; good && k < n; k++) {
        good = json_is_integer(json_array_get(x, k));
        to[k] = json_integer_value(json_array_get(x, k));
    }
    return good;
}

static bool read_request(const json_t *recipe, const char *path, struct at_request *to,
                         struct at_said *said)
{
    const char *dtype = json_string_value(json_object_get(recipe, "dtype"));
    const char *corner = json_string_value(json_object_get(recipe, "causal"));
    int64_t window[2];
    *to = at_request_plain();
    to->dtype = dtype ? at_dtype_find(dtype) : AT_DEFAULT;
    to->seed = (uint64_t)json_integer_value(json_object_get(recipe, "seed"));
    to->version = json_integer_value(json_object_get(recipe, "suite"));
    to->tile[0] = json_integer_value(json_object_get(recipe, "tile"));
    to->tiles = 1;
    if (!list(recipe, "shape", 7, to->shape))
        return wrong(path, "shape", said);
    if (!list(recipe, "window", 2, window))
        return wrong(path, "window", said);
    to->left = window[0], to->right = window[1];
    for (int k = 0; k < 3; k++)
        if (corner && strcmp(corner, corners[k]) == 0) {
            to->corner = (enum at_corner)k;
            struct at_said what;
            return at_request_check(to, &what) ||
                   at_say(said, "%s: metadata attest: field \"recipe\": %s", path, what.text);
        }
    return wrong(path, "causal", said);
}

static const struct at_plot *plot_named(const char *name)
{
    for (int64_t k = 0; name && at_plot_at(k); k++)
        if (strcmp(at_plot_at(k)->name, name) == 0)
            return at_plot_at(k);
    return NULL;
}

static void *from_case(void *with, int64_t bytes) { return at_case_alloc(with, bytes); }

bool at_recipe_inputs(struct at_case *x, const char *path, struct at_said *said)
{
    const json_t *recipe = at_meta_get(x->meta, "recipe");
    struct at_request want;
    struct at_canvas canvas;
    const struct at_plot *plot = plot_named(json_string_value(json_object_get(recipe, "case")));
    if (!plot)
        return wrong(path, "case", said);
    if (!read_request(recipe, path, &want, said))
        return false;
    struct at_tensor *grown =
        realloc(x->file.tensor, (size_t)(x->file.n + AT_INPUTS) * sizeof *grown);
    if (!grown)
        return at_say(said, "%s: no memory", path);
    x->file.tensor = grown;
    if (!at_canvas_plan(&canvas, &want, plot, want.tile[0]))
        return wrong(path, "shape", said);
    if (!at_canvas_paint(&canvas))
        return at_say(said, "%s: no memory for the inputs", path);
    int64_t n = at_canvas_tensors(&canvas, grown + x->file.n, from_case, x);
    at_canvas_free(&canvas);
    if (n < 0)
        return at_say(said, "%s: no memory for the inputs", path);
    x->file.n += n;
    return true;
}

/* Row t of the tensor: (b, h, i), or of packed rows (t, h); false: outside q. */
static bool place_of(const struct at_case *x, const int64_t *p, struct at_place *to)
{
    const int64_t *q = x->a.q.dim;
    struct at_rows all = {0, NULL};
    bool packed = x->a.score.q_start != NULL;
    int64_t b = packed ? 0 : p[0], h = p[1], i = packed ? p[0] : p[2];
    if (b < 0 || b >= q[0] || h < 0 || h >= q[1] || i < 0 || i >= q[2])
        return false;
    *to = at_place_of(&x->a, all, (b * q[1] + h) * q[2] + i);
    return true;
}

bool at_case_rows(const struct at_case *x, struct at_rows *rows, struct at_said *said)
{
    const struct at_tensor *t = at_tensors_find(&x->file, "rows");
    int64_t wide = x->a.score.q_start ? 2 : 3;
    *rows = (struct at_rows){-1, NULL};
    if (!t)
        return true;
    if (t->dtype != AT_I64 || t->rank != 2 || t->dim[1] != wide)
        return at_say(said, "%s: tensor rows: expected I64 (n,3), or (n,2) of packed rows",
                      x->path);
    struct at_place *at = malloc((size_t)(t->dim[0] + 1) * sizeof *at);
    if (!at)
        return at_say(said, "%s: no memory", x->path);
    for (int64_t r = 0; r < t->dim[0]; r++) {
        const int64_t *p = (const int64_t *)t->data + wide * r;
        if (!place_of(x, p, &at[r])) {
            free(at);
            return at_say(said,
                          wide == 3 ? "%s: tensor rows: (%lld,%lld,%lld) found, expected below "
                                      "q's extents"
                                    : "%s: tensor rows: (%lld,%lld) found, expected below q's "
                                      "extents",
                          x->path, (long long)p[0], (long long)p[1], (long long)p[wide - 1]);
        }
    }
    *rows = (struct at_rows){t->dim[0], at};
    return true;
}

enum at_exact at_case_exact(const struct at_case *x)
{
    const char *how = at_meta_text(x->meta, "exact", "");
    return strcmp(how, "one") == 0        ? AT_ONE_KEY
           : strcmp(how, "counted") == 0  ? AT_COUNTED
           : strcmp(how, "balanced") == 0 ? AT_BALANCED
                                          : AT_INEXACT;
}

/* A case in the making: its extents and masks, its tensors painted in doubles and rounded once, its
 * metadata, and the way back from a recipe to the same tensors.
 * SPDX-License-Identifier: MIT */
#define AT_BITS 64
#include "at_math.h"
#include "case.h"
#include "generate.h"
#include "ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Sizes ----------------------------------------------------------------------------------- */

bool at_canvas_plan(struct at_canvas *x, const struct at_request *want, const struct at_plot *plot,
                    int64_t tile)
{
    const int64_t *s = want->shape;
    struct at_view none = {0};
    *x = (struct at_canvas){.want = want,
                            .plot = plot,
                            .tile = tile,
                            .B = s[0],
                            .Hq = s[1],
                            .Hkv = s[2],
                            .Sq = s[3],
                            .Skv = s[4],
                            .D = s[5],
                            .Dv = s[6],
                            .corner = want->corner,
                            .left = want->left,
                            .right = want->right};
    x->a = at_plain(none, none, none, 1 / sqrt((double)x->D)); /* IEEE: one result everywhere */
    if (plot->by_tile)
        snprintf(x->name, sizeof x->name, "%s-tile%lld", plot->name, (long long)tile);
    else
        snprintf(x->name, sizeof x->name, "%s", plot->name);
    if (plot->size)
        plot->size(x);
    return !plot->unfit || !plot->unfit(x);
}

/* Elements of q, k, v, bias, mask, kv_len. */
static void counts(const struct at_canvas *x, int64_t n[AT_INPUTS])
{
    n[0] = x->B * x->Hq * x->Sq * x->D;
    n[1] = x->B * x->Hkv * x->Skv * x->D;
    n[2] = x->B * x->Hkv * x->Skv * x->Dv;
    n[3] = x->biased ? x->Hq * x->Sq * x->Skv : 0;
    n[4] = x->masked ? x->B * x->Sq * x->Skv : 0;
    n[5] = x->lengths ? x->B : 0;
}

/* A bias holds -inf, which e4m3 does not have. */
static enum at_dtype dtype_of(const struct at_canvas *x, int tensor)
{
    enum at_dtype d = x->want->dtype;
    return tensor == 5 ? AT_I64 : tensor == 4 ? AT_U8 : tensor < 3 || d == AT_F64 ? d : AT_F32;
}

int64_t at_canvas_bytes(const struct at_canvas *x)
{
    int64_t n[AT_INPUTS], bytes = 0;
    counts(x, n);
    for (int t = 0; t < AT_INPUTS; t++)
        bytes += n[t] * at_dtype_size(dtype_of(x, t));
    return bytes;
}

/* -- Paint ----------------------------------------------------------------------------------- */

struct at_brush at_canvas_brush(const struct at_canvas *x, int tensor)
{
    return (struct at_brush){x->want->seed, 16 * x->plot->number + (uint32_t)tensor};
}

void at_fill_normal(const struct at_canvas *x, double *to, int tensor, int64_t n)
{
    struct at_brush b = at_canvas_brush(x, tensor);
    for (int64_t t = 0; t < n; t++)
        to[t] = at_normal(b, (uint64_t)t);
}

/* Around the tile; a decode batch's go from Skv/64 to Skv. */
static int64_t length_of(const struct at_canvas *x, int64_t b)
{
    int64_t around[5] = {x->tile, 1, x->Skv, x->tile + 1, x->tile - 1};
    if (strcmp(x->plot->name, "workloads-batch") == 0)
        return at_max(1, x->Skv * (1 + b * 63 / (x->B - 1)) / 64);
    return at_min(at_max(around[b % 5], 0), x->Skv);
}

void at_poison(struct at_canvas *x)
{
    for (int64_t r = 0; r < x->B * x->Hkv * x->Skv; r++) {
        if (r % x->Skv < x->kv_len[r / (x->Hkv * x->Skv)])
            continue;
        for (int64_t c = 0; c < x->D; c++)
            x->k[r * x->D + c] = (double)NAN;
        for (int64_t c = 0; c < x->Dv; c++)
            x->v[r * x->Dv + c] = (double)NAN;
    }
}

static void place(struct at_canvas *x)
{
    struct at_attention *a = &x->a;
    a->q = at_bhsd(x->q, AT_F64, x->B, x->Hq, x->Sq, x->D);
    a->k = at_bhsd(x->k, AT_F64, x->B, x->Hkv, x->Skv, x->D);
    a->v = at_bhsd(x->v, AT_F64, x->B, x->Hkv, x->Skv, x->Dv);
    a->score.left = x->left;
    a->score.right = x->right;
    a->score.offset = x->offset;
    a->score.kv_len = x->lengths ? x->kv_len : NULL;
    for (int64_t b = 0; b < x->B; b++) {
        x->kv_len[b] = x->lengths ? length_of(x, b) : x->Skv;
        x->offset[b] = x->corner == AT_BOTTOM_RIGHT ? x->kv_len[b] - x->Sq : 0;
    }
}

bool at_canvas_paint(struct at_canvas *x)
{
    int64_t n[AT_INPUTS];
    counts(x, n);
    double *space = calloc((size_t)(n[0] + n[1] + n[2] + n[3] + 1), sizeof *space);
    int64_t *whole = calloc((size_t)(2 * x->B + 1), sizeof *whole);
    x->mask = calloc((size_t)n[4] + 1, 1);
    x->q = space;
    x->kv_len = whole;
    if (!space || !whole || !x->mask) {
        at_canvas_free(x);
        return false;
    }
    x->k = x->q + n[0], x->v = x->k + n[1], x->bias = x->v + n[2];
    x->offset = x->kv_len + x->B;
    place(x);
    x->plot->fill(x);
    return true;
}

void at_canvas_free(struct at_canvas *x)
{
    free(x->q);
    free(x->mask);
    free(x->kv_len);
    x->q = NULL, x->mask = NULL, x->kv_len = NULL;
}

/* -- Tensors --------------------------------------------------------------------------------- */

static bool copy_tensor(const struct at_canvas *x, int t, int64_t n, struct at_tensor *to,
                        void *space)
{
    static const char *const name[AT_INPUTS] = {"q", "k", "v", "bias", "mask", "kv_len"};
    const double *from[4] = {x->q, x->k, x->v, x->bias};
    int64_t dim[AT_INPUTS][4] = {{x->B, x->Hq, x->Sq, x->D},    {x->B, x->Hkv, x->Skv, x->D},
                                 {x->B, x->Hkv, x->Skv, x->Dv}, {1, x->Hq, x->Sq, x->Skv},
                                 {x->B, 1, x->Sq, x->Skv},      {x->B}};
    struct at_view y = at_bhsd(space, dtype_of(x, t), 1, 1, 1, n);
    if (!space)
        return false;
    *to = at_tensor_of(name[t], dtype_of(x, t), t == 5 ? 1 : 4, dim[t], space);
    if (t == 5)
        memcpy(space, x->kv_len, (size_t)(8 * n));
    else if (t == 4)
        memcpy(space, x->mask, (size_t)n);
    for (int64_t k = 0; t < 4 && k < n; k++)
        at_store(&y, k, from[t][k]);
    return true;
}

int64_t at_canvas_tensors(const struct at_canvas *x, struct at_tensor *to,
                          void *(*alloc)(void *with, int64_t bytes), void *with)
{
    int64_t n[AT_INPUTS], made = 0;
    counts(x, n);
    for (int t = 0; t < AT_INPUTS; t++) {
        if (n[t] == 0)
            continue;
        void *space = alloc(with, n[t] * at_dtype_size(dtype_of(x, t)));
        if (!copy_tensor(x, t, n[t], &to[made++], space))
            return -1;
    }
    return made;
}

/* -- Metadata -------------------------------------------------------------------------------- */

static const char *const corners[] = {"none", "bottom-right", "top-left"};

/* All that the inputs depend on. */
static json_t *inputs_json(const struct at_request *want)
{
    json_t *shape = json_array();
    for (int k = 0; k < 7; k++)
        json_array_append_new(shape, json_integer(want->shape[k]));
    return json_pack("{s:I, s:s, s:I, s:o, s:s, s:[I,I]}", "suite", (json_int_t)want->version,
                     "dtype", at_dtype_name(want->dtype), "seed", (json_int_t)want->seed, "shape",
                     shape, "causal", corners[want->corner], "window", (json_int_t)want->left,
                     (json_int_t)want->right);
}

json_t *at_request_json(const struct at_request *want)
{
    json_t *x = inputs_json(want), *tiles = json_array();
    for (int64_t k = 0; k < want->tiles; k++)
        json_array_append_new(tiles, json_integer(want->tile[k]));
    json_object_set_new(x, "tiles", tiles);
    json_object_set_new(x, "rows", json_integer(want->rows));
    json_object_set_new(x, "arith", json_string(want->arith));
    json_object_set_new(x, "cases", json_string(want->suite));
    return x;
}

json_t *at_canvas_meta(const struct at_canvas *x)
{
    static const char *const exact[] = {NULL, "one", "counted"};
    json_t *recipe = inputs_json(x->want);
    json_object_set_new(recipe, "case", json_string(x->plot->name));
    json_object_set_new(recipe, "stream", json_integer(16 * (json_int_t)x->plot->number));
    json_object_set_new(recipe, "tile", json_integer(x->tile));
    json_t *m = json_pack("{s:i, s:s, s:f, s:I}", "spec", AT_SPEC, "name", x->name, "scale",
                          x->a.score.scale, "left", (json_int_t)x->left);
    if (x->corner == AT_NO_CORNER)
        json_object_set_new(m, "right", json_integer(x->right));
    else
        json_object_set_new(m, "causal", json_string(corners[x->corner]));
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

bool at_case_rows(const struct at_case *x, struct at_rows *rows, struct at_said *said)
{
    const struct at_tensor *t = at_tensors_find(&x->file, "rows");
    const int64_t *q = x->a.q.dim;
    *rows = (struct at_rows){-1, NULL};
    if (!t)
        return true;
    if (t->dtype != AT_I64 || t->rank != 2 || t->dim[1] != 3 || x->a.score.q_start)
        return at_say(said, "%s: tensor rows: expected I64 (n,3) beside rows that are not packed",
                      x->path);
    struct at_place *at = malloc((size_t)(t->dim[0] + 1) * sizeof *at);
    if (!at)
        return at_say(said, "%s: no memory", x->path);
    for (int64_t r = 0; r < t->dim[0]; r++) {
        const int64_t *p = (const int64_t *)t->data + 3 * r;
        at[r] = (struct at_place){p[0], p[1], p[2]};
        if (p[0] < 0 || p[0] >= q[0] || p[1] < 0 || p[1] >= q[1] || p[2] < 0 || p[2] >= q[2]) {
            free(at);
            return at_say(said,
                          "%s: tensor rows: (%lld,%lld,%lld) found, expected below q's extents",
                          x->path, (long long)p[0], (long long)p[1], (long long)p[2]);
        }
    }
    *rows = (struct at_rows){t->dim[0], at};
    return true;
}

enum at_exact at_case_exact(const struct at_case *x)
{
    const char *how = at_meta_text(x->meta, "exact", "");
    return strcmp(how, "one") == 0       ? AT_ONE_KEY
           : strcmp(how, "counted") == 0 ? AT_COUNTED
                                         : AT_INEXACT;
}

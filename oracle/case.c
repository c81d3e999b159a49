/* A case: the tensors and the metadata of one file made into the one descriptor (docs/formats.md).
 *
 * Names of the outer world end here: a layout becomes strides, a causal corner becomes right = 0
 * and an offset. Lengths, starts and pages are read in sequences.c, results in results.c.
 * SPDX-License-Identifier: MIT */
#include "case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *at_case_alloc(struct at_case *x, int64_t bytes)
{
    void **grown = realloc(x->owned, (size_t)(x->nowned + 1) * sizeof *grown);
    void *space = calloc(1, (size_t)bytes + 1);
    if (grown)
        x->owned = grown;
    if (!grown || !space) {
        free(space);
        return NULL;
    }
    x->owned[x->nowned++] = space;
    return space;
}

/* -- Flags that stand for tensors -------------------------------------------------------------- */

static bool flag_equals(const struct at_tensor *t, const json_t *list)
{
    bool same = t->rank == 1 && t->dim[0] == (int64_t)json_array_size(list);
    for (int64_t b = 0; same && b < t->dim[0]; b++) {
        int64_t x = t->dtype == AT_I64 ? ((int64_t *)t->data)[b] : ((int32_t *)t->data)[b];
        same = x == json_integer_value(json_array_get(list, (size_t)b));
    }
    return same;
}

static bool add_tensor(struct reading *r, const char *name, const json_t *list)
{
    int64_t n = (int64_t)json_array_size(list), *data = at_case_alloc(r->x, 8 * n);
    struct at_tensors *file = &r->x->file;
    struct at_tensor *grown = realloc(file->tensor, (size_t)(file->n + 1) * sizeof *grown);
    if (grown)
        file->tensor = grown;
    if (!grown || !data)
        return at_say(r->said, "%s: no memory", r->path);
    for (int64_t b = 0; b < n; b++)
        data[b] = json_integer_value(json_array_get(list, (size_t)b));
    grown[file->n++] = at_tensor_of(name, AT_I64, 1, &n, data);
    return true;
}

static bool read_flag(struct reading *r, const struct at_field *flag)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, flag->name);
    json_t *list = json_loads(flag->text, 0, NULL);
    bool done = json_is_array(list);
    for (size_t b = 0; done && b < json_array_size(list); b++)
        done = json_is_integer(json_array_get(list, b));
    if (!done)
        at_say(r->said, "%s: the flag for %s says %s, expected whole numbers", r->path, flag->name,
               flag->text);
    else if (!t)
        done = add_tensor(r, flag->name, list);
    else if (!flag_equals(t, list))
        done = at_say(r->said, "%s: tensor %s contradicts the flag's %s", r->path, flag->name,
                      flag->text);
    json_decref(list);
    return done;
}

static bool read_flags(struct reading *r, const struct at_fields *flags)
{
    for (int64_t k = 0; flags && k < flags->n; k++)
        if (strstr(flags->at[k].name, "_len") && !read_flag(r, &flags->at[k]))
            return false;
    return true;
}

/* -- Tensors --------------------------------------------------------------------------------- */

static const char *const known[] = {
    "q", "k", "v", "bias", "mask", "keep", "alibi", "sink", "q_descale", "k_descale", "v_descale",
    "offset", "q_len", "kv_len", "cu_seqlens_q", "cu_seqlens_k", "block_table", "kv_indptr",
    "kv_indices", "kv_last_page_len", "out", "lse",
    /* of the truth, and of backward: not read here */
    "out_lo", "lse_lo", "truth_out", "truth_out_lo", "truth_lse", "truth_lse_lo", "kind",
    "kind_lse", "rows", "dout", "dlse", "dq", "dk", "dv", "dbias", "dsink"};

/* A name that nobody reads is a misspelt mask as often as not. */
static bool check_names(struct reading *r)
{
    for (int64_t t = 0; t < r->x->file.n; t++) {
        const char *name = r->x->file.tensor[t].name;
        bool found = strncmp(name, "out.", 4) == 0 || strncmp(name, "lse.", 4) == 0;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || strcmp(name, known[k]) == 0;
        if (!found)
            return at_say(r->said, "%s: tensor %s: unknown name, expected those of docs/formats.md",
                          r->path, name);
    }
    return true;
}

bool at_case_view(const struct at_tensor *t, const char *path, const char *layout,
                  struct at_view *to, struct at_said *said)
{
    const int64_t *d = t->dim;
    int rank = strcmp(layout, "thd") == 0 ? 3 : 4;
    if (t->rank != rank)
        return at_say(said, "%s: tensor %s: %d extents found, expected %d of layout %s", path,
                      t->name, t->rank, rank, layout);
    if (strcmp(layout, "thd") == 0)
        *to = at_thd(t->data, t->dtype, d[0], d[1], d[2]);
    else if (strcmp(layout, "bshd") == 0 || strcmp(layout, "pages-nhd") == 0)
        *to = at_bshd(t->data, t->dtype, d[0], d[1], d[2], d[3]);
    else
        *to = at_bhsd(t->data, t->dtype, d[0], d[1], d[2], d[3]);
    return true;
}

static bool read_main(struct reading *r, const char *name, const char *layout, struct at_view *to)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, name);
    if (!t)
        return at_say(r->said, "%s: tensor %s: absent, expected in every case", r->path, name);
    return at_case_view(t, r->path, layout, to, r->said);
}

/* Up to `most` trailing extents of four, each full or 1. */
static bool read_wide(struct reading *r, const char *name, int most, const int64_t full[4],
                      struct at_view *to)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, name);
    int64_t d[4] = {1, 1, 1, 1};
    if (!t)
        return true;
    if (t->rank > most)
        return at_say(r->said, "%s: tensor %s: %d extents found, expected at most %d", r->path,
                      name, t->rank, most);
    for (int k = 0; k < t->rank; k++)
        d[most - t->rank + k] = t->dim[k];
    struct at_view x = at_bhsd(t->data, t->dtype, d[0], d[1], d[2], d[3]);
    *to = at_repeated(x, full[0], full[1], full[2], full[3]);
    return true;
}

/* (Hq) */
static bool read_heads(struct reading *r, const char *name, struct at_view *to)
{
    const struct at_tensor *t = at_tensors_find(&r->x->file, name);
    int64_t Hq = r->x->a.q.dim[1];
    if (!t)
        return true;
    if (t->rank != 1 || t->dim[0] != Hq)
        return at_say(r->said, "%s: tensor %s: found rank %d and extent %lld, expected (%lld)",
                      r->path, name, t->rank, (long long)(t->rank ? t->dim[0] : 1), (long long)Hq);
    *to = at_bhsd(t->data, t->dtype, 1, Hq, 1, 1);
    return true;
}

/* -- The descriptor -------------------------------------------------------------------------- */

static bool read_score(struct reading *r)
{
    struct at_attention *a = &r->x->a;
    const json_t *meta = r->x->meta;
    struct at_sizes z = at_sizes(a);
    int64_t full[4] = {z.B, z.Hq, z.Sq, z.Skv};
    int64_t query[4] = {z.B, z.Hq, z.Sq, 1}, key[4] = {z.B, z.Hkv, z.Skv, 1};
    const char *compute = at_meta_text(meta, "compute", "");
    a->score.softcap = at_meta_number(meta, "softcap", 0);
    a->score.left = at_meta_integer(meta, "left", AT_UNBOUNDED);
    a->score.right = at_meta_get(meta, "causal") ? 0 : at_meta_integer(meta, "right", AT_UNBOUNDED);
    a->dropout.p = at_meta_number(meta, "dropout.p", 0);
    a->dropout.seed = (uint64_t)at_meta_integer(meta, "dropout.seed", 0);
    a->dropout.offset = (uint64_t)at_meta_integer(meta, "dropout.offset", 0);
    a->plan.compute = *compute == 0 ? AT_DEFAULT : strcmp(compute, "fp64") == 0 ? AT_F64 : AT_F32;
    return at_case_offset(r) && read_wide(r, "bias", 4, full, &a->score.bias) &&
           read_wide(r, "mask", 4, full, &a->score.mask) &&
           read_wide(r, "keep", 4, full, &a->dropout.keep) &&
           read_wide(r, "q_descale", 3, query, &a->score.qscale) &&
           read_wide(r, "k_descale", 3, key, &a->score.kscale) &&
           read_wide(r, "v_descale", 3, key, &a->score.vscale) &&
           read_heads(r, "alibi", &a->score.alibi) && read_heads(r, "sink", &a->score.sink);
}

static bool read_descriptor(struct reading *r)
{
    struct at_attention *a = &r->x->a;
    struct at_why why = {{0}};
    struct at_view none = {0};
    const json_t *meta = r->x->meta;
    r->x->layout = at_meta_text(meta, "layout", "bhsd");
    const char *kv_layout = at_meta_text(meta, "kv_layout", NULL);
    const char *layout = kv_layout ? kv_layout : r->x->layout;
    *a = at_plain(none, none, none, at_meta_number(meta, "scale", 0));
    if (!read_main(r, "q", r->x->layout, &a->q) || !read_main(r, "k", layout, &a->k) ||
        !read_main(r, "v", layout, &a->v) || !at_case_sequences(r, kv_layout) || !read_score(r))
        return false;
    if (at_validate(a, &why) != AT_OK)
        return at_say(r->said, "%s: tensor or field %s", r->path, why.text);
    return true;
}

/* -- The whole ------------------------------------------------------------------------------- */

static void name_of(struct at_case *x, const char *path)
{
    const char *base = strrchr(path, '/'), *name = at_meta_text(x->meta, "name", NULL);
    base = base ? base + 1 : path;
    int n = (int)strcspn(base, ".");
    snprintf(x->path, sizeof x->path, "%s", path);
    snprintf(x->name, sizeof x->name, "%.*s", name ? (int)strlen(name) : n, name ? name : base);
}

static bool has_inputs(const struct at_case *x)
{
    return at_tensors_find(&x->file, "q") || !json_is_object(at_meta_get(x->meta, "recipe"));
}

/* The file and its metadata made into a case. */
static bool make_case(struct reading *r, const struct at_fields *flags)
{
    struct at_case *x = r->x;
    r->x->meta = at_meta_read(r->path, x->file.attest, flags, true, r->said);
    if (!x->meta || !check_names(r))
        return false;
    if (at_meta_get(x->meta, "interval"))
        return at_say(r->said, "%s: an interval of `attest generate` found, expected its case",
                      r->path);
    if ((!has_inputs(x) && !at_recipe_inputs(x, r->path, r->said)) || !read_flags(r, flags) ||
        !read_descriptor(r) || !at_results_read(x, &x->file, r->path, NULL, x->meta, r->said))
        return false;
    name_of(x, r->path);
    return true;
}

bool at_case_read(const char *path, const struct at_fields *flags, struct at_case *x,
                  struct at_said *said)
{
    *x = (struct at_case){0};
    struct reading r = {path, x, said};
    if (at_tensors_read(path, &x->file, said) && make_case(&r, flags))
        return true;
    at_case_free(x);
    return false;
}

bool at_case_take(struct at_case *x, const char *path, struct at_said *said)
{
    struct reading r = {path, x, said};
    if (make_case(&r, NULL))
        return true;
    at_case_free(x);
    return false;
}

bool at_case_write(const struct at_case *x, const char *path, struct at_said *said)
{
    struct at_tensors all = x->file;
    all.attest = json_dumps(x->meta, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!all.attest)
        return at_say(said, "%s: no memory", path);
    bool done = at_tensors_write(path, &all, said);
    free(all.attest);
    return done;
}

void at_case_free(struct at_case *x)
{
    for (int64_t k = 0; k < x->nmore; k++)
        at_tensors_free(&x->more[k]);
    free(x->more);
    for (int64_t k = 0; k < x->nowned; k++)
        free(x->owned[k]);
    free(x->owned);
    free(x->result);
    json_decref(x->meta);
    at_tensors_free(&x->file);
    *x = (struct at_case){0};
}

struct at_view at_case_like_q(const struct at_case *x, void *data, enum at_dtype dtype, int64_t Dv)
{
    const int64_t *d = x->a.q.dim;
    if (strcmp(x->layout, "bhsd") == 0)
        return at_bhsd(data, dtype, d[0], d[1], d[2], Dv);
    return at_bshd(data, dtype, d[0], d[2], d[1], Dv);
}

struct at_tensor at_case_out(const struct at_case *x, const char *name, enum at_dtype dtype,
                             void *data)
{
    const int64_t *q = x->a.q.dim, Dv = x->a.v.dim[3];
    int64_t bhsd[4] = {q[0], q[1], q[2], Dv}, bshd[4] = {q[0], q[2], q[1], Dv};
    if (strcmp(x->layout, "thd") == 0)
        return at_tensor_of(name, dtype, 3, bshd + 1, data);
    return at_tensor_of(name, dtype, 4, strcmp(x->layout, "bshd") == 0 ? bshd : bhsd, data);
}

struct at_tensor at_case_lse(const struct at_case *x, const char *name, enum at_dtype dtype,
                             void *data)
{
    bool packed = strcmp(x->layout, "thd") == 0;
    return at_tensor_of(name, dtype, packed ? 2 : 3, x->a.q.dim + packed, data);
}

bool at_sees(const struct at_attention *a, const struct at_sizes *z, int64_t b, int64_t h,
             int64_t i)
{
    struct at_span keys = at_keys(a, z, b, i);
    for (int64_t j = keys.lo; j < keys.hi; j++)
        if (at_shown(a, b, h, i, j))
            return true;
    return false;
}

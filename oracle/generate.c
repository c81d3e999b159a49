/* Generates a suite: each case's two files, then the manifest that names them.
 *
 * Files are written beside and renamed, truth before interval before manifest, so that whatever is
 * seen under its name is whole. SPDX-License-Identifier: MIT */
#include "vector.h"
#include <stdio.h>
#include <stdlib.h>

bool at_suite_case(const struct at_request *want, int64_t k, const struct at_plot **plot,
                   int64_t *tile)
{
    size_t n = strlen(want->suite);
    bool full = strcmp(want->suite, "full") == 0;
    for (int64_t p = 0; (*plot = at_plot_at(p)); p++) {
        if (at_plot_since(*plot) > want->version)
            continue;
        if (!full && (strncmp((*plot)->name, want->suite, n) != 0 || (*plot)->name[n] != '-'))
            continue;
        int64_t turns = (*plot)->by_tile ? want->tiles : 1;
        if (k < turns) {
            *tile = want->tile[k];
            return true;
        }
        k -= turns;
    }
    return false;
}

/* -- Progress: one count over all cases ---------------------------------------------------- */

struct overall {
    struct at_progress outer;
    int64_t before, all;
};

static void tell(void *with, int64_t done, int64_t of)
{
    struct overall *o = with;
    (void)of;
    o->outer.tell(o->outer.with, o->before + done, o->all);
}

/* -- Cases ----------------------------------------------------------------------------------- */

static bool one_case(struct at_manifest *m, const struct at_canvas *plan, const char *dir,
                     struct at_progress progress, struct at_generated *done, struct at_said *said)
{
    char name[2][300], path[2][4096];
    struct at_vector v;
    snprintf(name[0], sizeof name[0], "%s.safetensors", plan->name);
    snprintf(name[1], sizeof name[1], "%s.%s.safetensors", plan->name, plan->want->arith);
    for (int k = 0; k < 2; k++)
        if (snprintf(path[k], sizeof path[k], "%s/%s", dir, name[k]) >= (int)sizeof path[k])
            return at_say(said, "%.200s...: the name is too long", dir);
    if (!at_vector_make(&v, plan->want, plan->plot, plan->tile, progress, said))
        return false;
    bool good = at_vector_write(&v, path[0], path[1], said) &&
                at_manifest_add(m, plan, dir, (const char *const[]){name[0], name[1]}, done, said);
    at_vector_free(&v);
    return good && at_manifest_write(m, false, done, said);
}

static bool all_cases(struct at_manifest *m, const struct at_request *want, const char *dir,
                      struct at_progress progress, struct at_generated *done, struct at_said *said)
{
    const struct at_plot *plot;
    int64_t tile;
    bool stored, sampled;
    struct at_canvas c;
    struct overall o = {progress, 0, 0};
    struct at_progress inner = {progress.tell ? tell : NULL, &o};
    for (int64_t k = 0; at_suite_case(want, k, &plot, &tile); k++)
        if (at_canvas_plan(&c, want, plot, tile))
            o.all += at_vector_rows(&c, &stored, &sampled);
    for (int64_t k = 0; at_suite_case(want, k, &plot, &tile); k++) {
        if (!at_canvas_plan(&c, want, plot, tile)) {
            at_manifest_unfit(m, &c, done);
            continue;
        }
        if (!at_manifest_has(m, c.name, dir, done) && !one_case(m, &c, dir, inner, done, said))
            return false;
        o.before += at_vector_rows(&c, &stored, &sampled);
    }
    return true;
}

bool at_generate(const struct at_request *want, const char *dir, struct at_progress progress,
                 struct at_generated *done, struct at_said *said)
{
    struct at_manifest m;
    *done = (struct at_generated){0};
    if (!at_manifest_open(&m, want, dir, said))
        return false;
    bool good =
        all_cases(&m, want, dir, progress, done, said) && at_manifest_write(&m, true, done, said);
    at_manifest_close(&m);
    return good;
}

/* -- Files that are no cases --------------------------------------------------------------- */

bool at_is_beside(const char *path)
{
    const char *base = strrchr(path, '/');
    struct at_tensors file;
    struct at_said said;
    if (strcmp(base ? base + 1 : path, "MANIFEST.json") == 0)
        return true;
    if (!at_tensors_read(path, &file, &said))
        return false; /* the reader of cases says why */
    json_t *meta = file.attest ? json_loads(file.attest, 0, NULL) : NULL;
    bool beside = json_object_get(meta, "interval") != NULL;
    json_decref(meta);
    at_tensors_free(&file);
    return beside;
}

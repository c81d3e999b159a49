/* MANIFEST.json: what a directory of generated cases holds, each file with its SHA-256. Its own
 * hash is the pin: who has it can check everything else.
 *
 * It is written after each case, marked unfinished but for the last time, so that a run that was
 * stopped goes on where it was. SPDX-License-Identifier: MIT */
#include "vector.h"
#include <errno.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cases that were wrong, with the reason; their names stay taken. None yet. */
static const char *const withdrawn[][2] = {{NULL, NULL}};

static json_t *withdrawn_json(void)
{
    json_t *list = json_array();
    for (int k = 0; withdrawn[k][0]; k++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", withdrawn[k][0], "reason", withdrawn[k][1]));
    return list;
}

static bool same_request(const json_t *x, const json_t *y)
{
    static const char *const part[] = {"spec", "suite", "bound", "request"};
    for (int k = 0; k < 4; k++)
        if (!json_equal(json_object_get(x, part[k]), json_object_get(y, part[k])))
            return false;
    return true;
}

bool at_manifest_open(struct at_manifest *m, const struct at_request *want, const char *dir,
                      struct at_said *said)
{
    json_error_t error;
    *m = (struct at_manifest){.old = NULL};
    if (snprintf(m->path, sizeof m->path, "%s/MANIFEST.json", dir) >= (int)sizeof m->path)
        return at_say(said, "%.200s...: the name is too long", dir);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return at_say(said, "%s: cannot be made: %s", dir, strerror(errno));
    m->now = json_pack("{s:i, s:i, s:i, s:o, s:[], s:[], s:o, s:b}", "spec", AT_SPEC, "suite",
                       (int)want->version, "bound", AT_BOUND, "request", at_request_json(want),
                       "cases", "unfit", "withdrawn", withdrawn_json(), "unfinished", 1);
    if (!m->now)
        return at_say(said, "%s: no memory", m->path);
    if (access(m->path, F_OK) != 0)
        return true;
    m->old = json_load_file(m->path, JSON_REJECT_DUPLICATES, &error);
    if (m->old && same_request(m->old, m->now))
        return true;
    at_manifest_close(m);
    return at_say(said,
                  "%s/MANIFEST.json: found one of another request or version, expected none or "
                  "the same: take another directory",
                  dir);
}

void at_manifest_close(struct at_manifest *m)
{
    json_decref(m->old);
    json_decref(m->now);
    m->old = m->now = NULL;
}

static json_t *case_in(const json_t *manifest, const char *name)
{
    size_t k;
    json_t *one;
    json_array_foreach(json_object_get(manifest, "cases"), k, one)
    {
        const char *found = json_string_value(json_object_get(one, "name"));
        if (found && strcmp(found, name) == 0)
            return one;
    }
    return NULL;
}

static bool hash_of(const char *dir, const char *file, char hash[SHA256_DIGEST_STRING_LENGTH],
                    int64_t *bytes)
{
    char path[4096];
    struct stat s;
    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path || stat(path, &s) != 0)
        return false;
    *bytes = s.st_size;
    return SHA256File(path, hash) != NULL;
}

bool at_manifest_has(struct at_manifest *m, const char *name, const char *dir,
                     struct at_generated *done)
{
    json_t *one = case_in(m->old, name), *file;
    size_t k;
    int64_t sum = 0;
    if (json_array_size(json_object_get(one, "files")) != 2)
        return false;
    json_array_foreach(json_object_get(one, "files"), k, file)
    {
        char hash[SHA256_DIGEST_STRING_LENGTH];
        int64_t bytes = 0;
        const char *path = json_string_value(json_object_get(file, "file"));
        const char *want = json_string_value(json_object_get(file, "sha256"));
        if (!path || !want || !hash_of(dir, path, hash, &bytes) || strcmp(hash, want) != 0)
            return false;
        sum += bytes;
    }
    json_array_append(json_object_get(m->now, "cases"), one);
    done->cases++;
    done->skipped += 2;
    done->files += 2;
    done->bytes += sum;
    return true;
}

bool at_manifest_add(struct at_manifest *m, const struct at_canvas *c, const char *dir,
                     const char *const file[2], struct at_generated *done, struct at_said *said)
{
    json_t *files = json_array(), *meta = at_canvas_meta(c);
    for (int k = 0; k < 2; k++) {
        char hash[SHA256_DIGEST_STRING_LENGTH];
        int64_t bytes = 0;
        if (!hash_of(dir, file[k], hash, &bytes)) {
            json_decref(files);
            json_decref(meta);
            return at_say(said, "%s/%s: cannot be read back: %s", dir, file[k], strerror(errno));
        }
        json_array_append_new(files, json_pack("{s:s, s:s, s:I}", "file", file[k], "sha256", hash,
                                               "bytes", (json_int_t)bytes));
        done->bytes += bytes;
        done->files++;
    }
    json_t *one = json_pack("{s:s, s:s, s:s, s:O, s:o}", "name", c->name, "catches",
                            c->plot->catches, "needs", c->plot->needs, "recipe",
                            json_object_get(meta, "recipe"), "files", files);
    json_decref(meta);
    done->cases++;
    return json_array_append_new(json_object_get(m->now, "cases"), one) == 0 ||
           at_say(said, "%s: no memory", m->path);
}

void at_manifest_unfit(struct at_manifest *m, const struct at_canvas *c, struct at_generated *done)
{
    json_array_append_new(json_object_get(m->now, "unfit"),
                          json_pack("{s:s, s:s}", "name", c->name, "why", c->plot->unfit(c)));
    done->unfit++;
}

bool at_manifest_write(struct at_manifest *m, bool last, struct at_generated *done,
                       struct at_said *said)
{
    if (last)
        json_object_del(m->now, "unfinished");
    char *text = json_dumps(m->now, JSON_INDENT(1));
    if (!text)
        return at_say(said, "%s: no memory", m->path);
    size_t n = strlen(text);
    text[n] = '\n'; /* over the terminator: a text file ends in a newline */
    bool good = at_file_write(m->path, text, (int64_t)n + 1, said);
    SHA256Data((const uint8_t *)text, n + 1, done->pin);
    free(text);
    return good;
}

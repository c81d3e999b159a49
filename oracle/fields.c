/* The metadata entry `attest` of a case: a JSON object held against a table of what may be said.
 * Flags of the command line are metadata that the file lacks; nothing has two values.
 * SPDX-License-Identifier: MIT */
#include "case.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- What may be said ------------------------------------------------------------------------ */

enum kind { TEXT, NUMBER, WHOLE, CHOICE, GROUP, MARK, NAMED, ANYTHING };

/* A field by dotted name. least: of a NUMBER or WHOLE; choices stand between bars. */
static const struct rule {
    const char *name;
    enum kind kind;
    double least;
    const char *choices;
} rules[] = {
    {"spec", WHOLE, 1, NULL},
    {"name", TEXT, 0, NULL},
    {"scale", NUMBER, -HUGE_VAL, NULL},
    {"layout", CHOICE, 0, "|bhsd|bshd|thd|"},
    {"kv_layout", CHOICE, 0, "|pages-hnd|pages-nhd|"},
    {"softcap", NUMBER, 0, NULL},
    {"left", WHOLE, -1, NULL},
    {"right", WHOLE, -1, NULL},
    {"causal", CHOICE, 0, "|bottom-right|top-left|"},
    {"offset", WHOLE, -0x1p62, NULL},
    {"dropout", GROUP, 0, NULL},
    {"dropout.p", NUMBER, 0, NULL},
    {"dropout.seed", WHOLE, 0, NULL},
    {"dropout.offset", WHOLE, 0, NULL},
    {"compute", CHOICE, 0, "|fp32|fp64|"},
    {"results", NAMED, 0, NULL},
    {"results.arith", TEXT, 0, NULL},
    {"results.why", TEXT, 0, NULL},
    {"results.from", TEXT, 0, NULL},
    {"lse", GROUP, 0, NULL},
    {"lse.base", CHOICE, 0, "|natural|base2|none|"},
    {"lse.layout", CHOICE, 0, "|bhs|ht|th|padded|"},
    {"empty", GROUP, 0, NULL},
    {"empty.out", CHOICE, 0, "|zero|nan|"},
    {"empty.lse", MARK, 0, "|-inf|+inf|zero|"},
    {"exact", CHOICE, 0, "|one|counted|balanced|"},
    {"interval", ANYTHING, 0, NULL},
    {"recipe", ANYTHING, 0, NULL},
    {"seed", ANYTHING, 0, NULL},
    {"source", ANYTHING, 0, NULL},
};

static const struct rule *rule_of(const char *name)
{
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
        if (strcmp(rules[k].name, name) == 0)
            return &rules[k];
    return NULL;
}

static bool chosen(const struct rule *rule, const json_t *value)
{
    char barred[64];
    const char *text = json_string_value(value);
    if (!text || strlen(text) > 40 || strchr(text, '|'))
        return false;
    snprintf(barred, sizeof barred, "|%s|", text);
    return strstr(rule->choices, barred) != NULL;
}

static bool fits(const struct rule *rule, const json_t *value)
{
    switch (rule->kind) {
    case TEXT: return json_is_string(value);
    case NUMBER: return json_is_number(value) && json_number_value(value) >= rule->least;
    case WHOLE: return json_is_integer(value) && json_number_value(value) >= rule->least;
    case CHOICE: return chosen(rule, value);
    case MARK: return json_is_number(value) || chosen(rule, value);
    case GROUP:
    case NAMED: return json_is_object(value);
    case ANYTHING: return true;
    }
    return false;
}

static void expected(const struct rule *rule, char *text, size_t size)
{
    static const char *const what[] = {"a text",
                                       "a number",
                                       "a whole number",
                                       "one of ",
                                       "an object",
                                       "a number or one of ",
                                       "an object of objects",
                                       "anything"};
    bool least = (rule->kind == NUMBER || rule->kind == WHOLE) && rule->least > -0x1p60;
    int n = snprintf(text, size, "%s%s", what[rule->kind], rule->choices ? rule->choices : "");
    if (least && n > 0)
        snprintf(text + n, size - (size_t)n, " >= %g", rule->least);
}

static bool check_field(const char *path, const char *name, const json_t *value,
                        struct at_said *said)
{
    char want[100];
    const struct rule *rule = rule_of(name);
    if (!rule)
        return at_say(said,
                      "%s: metadata attest: field \"%.60s\" found, expected a known one "
                      "(docs/formats.md)",
                      path, name);
    if (fits(rule, value))
        return true;
    char *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    expected(rule, want, sizeof want);
    at_say(said, "%s: metadata attest: field \"%s\": found %.60s, expected %s", path, name,
           found ? found : "?", want);
    free(found);
    return false;
}

static bool check_fields(const char *path, const char *prefix, json_t *object,
                         struct at_said *said);

static bool check_named(const char *path, json_t *results, struct at_said *said)
{
    const char *name;
    json_t *one;
    json_object_foreach(results, name, one)
    {
        if (!json_is_object(one))
            return at_say(said, "%s: metadata attest: results \"%.60s\" is no object", path, name);
        if (!check_fields(path, "results.", one, said))
            return false;
    }
    return true;
}

/* prefix "": the object itself. */
static bool check_fields(const char *path, const char *prefix, json_t *object, struct at_said *said)
{
    const char *key;
    json_t *value;
    char name[128], group[130];
    json_object_foreach(object, key, value)
    {
        snprintf(name, sizeof name, "%s%.90s", prefix, key);
        if (!check_field(path, name, value, said))
            return false;
        snprintf(group, sizeof group, "%s.", name);
        enum kind kind = rule_of(name)->kind;
        if (kind == GROUP && !check_fields(path, group, value, said))
            return false;
        if (kind == NAMED && !check_named(path, value, said))
            return false;
    }
    return true;
}

/* -- Flags ----------------------------------------------------------------------------------- */

/* 1 and 1.0 are one number. */
static bool same(const json_t *x, const json_t *y)
{
    if (json_is_number(x) && json_is_number(y))
        return json_number_value(x) == json_number_value(y);
    return json_equal(x, y);
}

static bool join_flag(const char *path, json_t *meta, const struct at_field *flag,
                      struct at_said *said)
{
    char group[24], *dot;
    snprintf(group, sizeof group, "%s", flag->name);
    json_t *value = json_loads(flag->text, JSON_DECODE_ANY, NULL), *to = meta;
    const char *name = flag->name;
    if (!value)
        return at_say(said, "%s: the flag for %s says %s, which is no number or word", path,
                      flag->name, flag->text);
    if ((dot = strchr(group, '.'))) {
        *dot = 0;
        name = dot + 1;
        if (!json_object_get(meta, group))
            json_object_set_new(meta, group, json_object());
        to = json_object_get(meta, group);
    }
    const json_t *old = json_object_get(to, name);
    if (!old)
        return json_object_set_new(to, name, value) == 0 || at_say(said, "%s: no memory", path);
    bool agree = same(old, value);
    json_decref(value);
    if (agree)
        return true;
    char *found = json_dumps(old, JSON_ENCODE_ANY);
    at_say(said, "%s: metadata attest: field \"%s\": found %.60s, but the flag says %s", path,
           flag->name, found ? found : "?", flag->text);
    free(found);
    return false;
}

static bool is_tensor(const char *name)
{
    return strcmp(name, "kv_len") == 0 || strcmp(name, "q_len") == 0;
}

static bool join_flags(const char *path, json_t *meta, const struct at_fields *flags,
                       struct at_said *said)
{
    for (int64_t k = 0; flags && k < flags->n; k++)
        if (!is_tensor(flags->at[k].name) && !join_flag(path, meta, &flags->at[k], said))
            return false;
    return true;
}

/* -- Reading --------------------------------------------------------------------------------- */

static json_t *parse(const char *path, const char *text, struct at_said *said)
{
    json_error_t error;
    if (!text)
        return json_pack("{s:i}", "spec", 1);
    json_t *meta = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!meta)
        at_say(said, "%s: metadata attest is not valid JSON: %s (byte %d)", path, error.text,
               error.position);
    else if (!json_is_object(meta)) {
        at_say(said, "%s: metadata attest is no JSON object", path);
        json_decref(meta);
        return NULL;
    }
    return meta;
}

/* causal says right and offset; a second word for either would have to be weighed. */
static bool check_whole(const char *path, const json_t *meta, bool whole, struct at_said *said)
{
    if (at_meta_integer(meta, "spec", 0) != 1)
        return at_say(said, "%s: metadata attest: field \"spec\": found %lld, expected 1", path,
                      (long long)at_meta_integer(meta, "spec", 0));
    if (whole && !at_meta_get(meta, "scale") && !at_meta_get(meta, "interval"))
        return at_say(said,
                      "%s: metadata attest: field \"scale\" absent, expected the number that "
                      "was used (flag --scale)",
                      path);
    if (at_meta_get(meta, "causal") && (at_meta_get(meta, "right") || at_meta_get(meta, "offset")))
        return at_say(said,
                      "%s: metadata attest: field \"causal\" found beside right or offset, "
                      "expected one of them",
                      path);
    if (at_meta_get(meta, "softcap") && !(at_meta_number(meta, "softcap", 0) > 0))
        return at_say(
            said, "%s: metadata attest: field \"softcap\": found 0, expected a number > 0", path);
    return true;
}

json_t *at_meta_read(const char *path, const char *text, const struct at_fields *flags, bool whole,
                     struct at_said *said)
{
    json_t *meta = parse(path, text, said);
    if (meta && check_fields(path, "", meta, said) && join_flags(path, meta, flags, said) &&
        check_fields(path, "", meta, said) && check_whole(path, meta, whole, said))
        return meta;
    json_decref(meta);
    return NULL;
}

const json_t *at_meta_get(const json_t *meta, const char *name)
{
    char group[24];
    const char *dot = strchr(name, '.');
    if (!dot)
        return json_object_get(meta, name);
    snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
    return json_object_get(json_object_get(meta, group), dot + 1);
}

const char *at_meta_text(const json_t *meta, const char *name, const char *absent)
{
    const char *text = json_string_value(at_meta_get(meta, name));
    return text ? text : absent;
}

double at_meta_number(const json_t *meta, const char *name, double absent)
{
    const json_t *x = at_meta_get(meta, name);
    return json_is_number(x) ? json_number_value(x) : absent;
}

int64_t at_meta_integer(const json_t *meta, const char *name, int64_t absent)
{
    const json_t *x = at_meta_get(meta, name);
    return json_is_integer(x) ? json_integer_value(x) : absent;
}

const char *at_meta_conflict(const json_t *case_meta, const json_t *result_meta)
{
    static const char *const question[] = {"scale",  "softcap", "left",   "right",
                                           "causal", "offset",  "dropout"};
    for (size_t k = 0; k < sizeof question / sizeof *question; k++) {
        const json_t *x = at_meta_get(case_meta, question[k]);
        const json_t *y = at_meta_get(result_meta, question[k]);
        if (y && !(x && same(x, y)))
            return question[k];
    }
    return NULL;
}

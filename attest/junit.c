/* --junit FILE: what became of each case, as continuous integration reads it. A case that the
 * kernel does not serve, or that nobody stated an arithmetic for, is skipped.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *at;
    size_t n, room;
    bool full; /* memory ran out */
};

static void put(struct text *t, const char *from, size_t n)
{
    if (t->n + n >= t->room) {
        size_t room = 2 * (t->room + n) + 1000;
        char *grown = realloc(t->at, room);
        t->full = t->full || !grown;
        if (!grown)
            return;
        t->at = grown;
        t->room = room;
    }
    memcpy(t->at + t->n, from, n);
    t->n += n;
}

static void word(struct text *t, const char *from) { put(t, from, strlen(from)); }

/* " name=\"...\"", escaped; a byte that XML cannot hold becomes '?'. */
static void attribute(struct text *t, const char *name, const char *from)
{
    word(t, " ");
    word(t, name);
    word(t, "=\"");
    for (; *from; from++) {
        switch (*from) {
        case '<': word(t, "&lt;"); break;
        case '>': word(t, "&gt;"); break;
        case '&': word(t, "&amp;"); break;
        case '"': word(t, "&quot;"); break;
        default: put(t, (unsigned char)*from < ' ' ? "?" : from, 1);
        }
    }
    word(t, "\"");
}

static void number(struct text *t, const char *name, const char *format, double x)
{
    char text[40];
    snprintf(text, sizeof text, format, x);
    attribute(t, name, text);
}

static void add_case(struct text *t, const char *engine, const struct outcome *x)
{
    static const char *const element[] = {NULL, "failure", "error", "skipped"};
    word(t, "  <testcase");
    attribute(t, "classname", engine);
    attribute(t, "name", x->name);
    attribute(t, "file", x->file);
    number(t, "time", "%.3f", x->seconds);
    if (x->status == PASS) {
        word(t, "/>\n");
        return;
    }
    word(t, "><");
    word(t, element[x->status]);
    attribute(t, "message", x->text);
    word(t, "/></testcase>\n");
}

bool junit_write(const char *path, const char *engine, const struct outcome *x, int n,
                 struct at_said *said)
{
    struct text t = {0};
    int count[4] = {0};
    double seconds = 0;
    for (int k = 0; k < n; k++) {
        count[x[k].status]++;
        seconds += x[k].seconds;
    }
    word(&t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    attribute(&t, "name", "attest check");
    number(&t, "tests", "%.0f", n);
    number(&t, "failures", "%.0f", count[FAIL]);
    number(&t, "errors", "%.0f", count[MISUSE]);
    number(&t, "skipped", "%.0f", count[UNDECIDED]);
    number(&t, "time", "%.3f", seconds);
    word(&t, ">\n");
    for (int k = 0; k < n; k++)
        add_case(&t, engine, &x[k]);
    word(&t, "</testsuite>\n");
    bool done = t.full ? at_say(said, "%s: no memory", path)
                       : at_file_write(path, t.at, (int64_t)t.n, said);
    free(t.at);
    return done;
}

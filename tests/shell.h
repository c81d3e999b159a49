/* The real program in a shell: $ATTEST or build/attest. SPDX-License-Identifier: MIT */
#ifndef SHELL_H
#define SHELL_H

#include "make.h"
#include <math.h>
#include <stdarg.h>
#include <sys/wait.h>

static char said[1 << 17];

/* Runs "attest ..." in a shell; said holds stdout and stderr. */
static inline int attest(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline int attest(const char *format, ...)
{
    char arguments[1500], command[2000];
    const char *binary = getenv("ATTEST");
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "%s %s 2>&1", binary ? binary : "build/attest", arguments);
    FILE *p = popen(command, "r");
    ck_assert_ptr_nonnull(p);
    size_t n = fread(said, 1, sizeof said - 1, p);
    said[n] = 0;
    int status = pclose(p);
    ck_assert_msg(WIFEXITED(status), "attest %s: did not exit", arguments);
    return WEXITSTATUS(status);
}

#define SAYS(text) ck_assert_msg(strstr(said, text) != NULL, "expected \"%s\" in:\n%s", text, said)
#define STATUS(want, ...)                                                                          \
    do {                                                                                           \
        int status_ = attest(__VA_ARGS__);                                                         \
        ck_assert_msg(status_ == (want), "status %d, expected %d:\n%s", status_, want, said);      \
    } while (0)

/* One line on stderr that begins with the program's name. */
static inline void one_line(void)
{
    ck_assert_msg(strncmp(said, "attest: ", 8) == 0, "%s", said);
    ck_assert_msg(strchr(said, '\n') == said + strlen(said) - 1, "%s", said);
}

#define META "{\"spec\":1,\"scale\":0.5,\"causal\":\"bottom-right\"}"
static inline const char *plain(void) { return made_file(made_plain(), "plain.safetensors", META); }

#endif

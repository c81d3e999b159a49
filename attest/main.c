/* attest: judges attention kernels. Each command stands in a file of its own; what a command line
 * means in args.c; printing in report.c and its neighbours. SPDX-License-Identifier: MIT */
#include "program.h"
#include <signal.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(const struct options *o);
} commands[] = {
    {"judge", run_judge}, {"check", run_check}, {"run", run_run},   {"truth", run_truth},
    {"trace", run_trace}, {"show", run_show},   {"list", run_list},
};

/* The command as it can be pasted into a shell. */
void join_line(int argc, char **argv, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "attest");
    for (int k = 0; k < argc && n < size; k++) {
        bool bare = strspn(argv[k], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789_./-,:=@+%") == strlen(argv[k]);
        n += (size_t)snprintf(to + n, size - n, bare && *argv[k] ? " %s" : " '%s'", argv[k]);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct at_said said;
    signal(SIGXFSZ, SIG_IGN); /* a file past its limit is an error of write, told and cleaned up */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(NULL);
        return argc < 2 ? MISUSE : PASS;
    }
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        if (strcmp(commands[k].name, argv[1]) != 0)
            continue;
        if (!read_options(argc - 1, argv + 1, &o, &said))
            return refuse(&said);
        if (o.help) {
            print_usage(argv[1]);
            return PASS;
        }
        return commands[k].run(&o);
    }
    at_say(&said, "command %s: unknown, expected judge, check, run, truth, trace, show or list",
           argv[1]);
    return refuse(&said);
}

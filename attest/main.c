/* attest: judges attention kernels. Each command stands in a file of its own; what a command line
 * means in args.c; printing in report.c and its neighbours. SPDX-License-Identifier: MIT */
#include "bench.h"
#include "program.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(const struct options *o);
} commands[] = {
    {"judge", run_judge}, {"check", run_check}, {"run", run_run},   {"truth", run_truth},
    {"trace", run_trace}, {"show", run_show},   {"list", run_list}, {"generate", run_generate},
};

/* A file is mapped as it was when it was opened. */
static void cut_short(int number)
{
    static const char text[] = "attest: a file was cut short while it was read\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(MISUSE);
}

int main(int argc, char **argv)
{
    struct options o;
    struct at_said said;
    signal(SIGBUS, cut_short);
    signal(SIGXFSZ, SIG_IGN); /* a file past its limit is an error of write, told and cleaned up */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(NULL);
        return argc < 2 ? MISUSE : PASS;
    }
    if (strcmp(argv[1], "bench") == 0) /* measures engines: no case, flags of its own */
        return command_bench(argc - 1, argv + 1);
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
    at_say(&said,
           "command %s: unknown, expected judge, check, run, truth, trace, show, list, "
           "generate or bench",
           argv[1]);
    return refuse(&said);
}

// main.c: the fusec command: finds the subcommand.
#include "frontend/cli/cli.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: fusec COMMAND …\n"
    "\n"
    "  explain FILE (or --explain FILE)     what a graph compiles to, and why\n"
    "      --dim N=4096                     sets a dim; may repeat\n"
    "      --json                           one object for programs\n"
    "      --emit ir|kernels|llvm|asm|cuda|dot   the texts behind it\n"
    "      --device cuda:0|sm_90            for a GPU, which an architecture's need not be there\n"
    "      --threads N, --strict            as the program would be compiled\n"
    "  explain [--json] -- PROGRAM ARGS…    runs a program; what it compiles goes to standard "
    "error\n"
    "  run FILE                             computes a graph\n"
    "      --in x=x.npy                     an input by name; may repeat; named dims follow it\n"
    "      --out y=y.npy                    an output by name: y of 'return y = %v', else out0 …\n"
    "      --eager                          op by op instead of fused\n"
    "      --dim N=4096, --threads N, --strict, --device cuda:0\n"
    "  bench [FILE…]                        eager against compiled, by default the standard\n"
    "                                       workloads\n"
    "      --filter NAME                    only the workload NAME, or if there is none all\n"
    "                                       whose names contain NAME\n"
    "      --scale K                        the first named dim times K, or 1/K\n"
    "      --hot                            large arrays too stay the same from call to call\n"
    "      --list                           the workloads' names, nothing measured\n"
    "      --compile                        instead: how long each kernel takes to compile\n"
    "      --threads N, --device cuda:0, --json\n"
    "  ops [NAME…] [--brief|--json]         the ops, their operands and attributes\n"
    "  devices [--json]                     the devices and how fast they copy\n"
    "  --version, --help\n"
    "\n"
    "FILE is a graph in .fuse form; - is standard input. Exit codes: 0 done, 1 the input is\n"
    "wrong, 2 the command line is wrong, 3 the machine could not do it.\n";

static const struct {
    const char *name;
    int (*run)(struct args *a);
} command[] = {
    {"explain", explain_command}, {"--explain", explain_command}, {"ops", ops_command},
    {"run", run_command},         {"bench", bench_command},       {"devices", devices_command},
};

static int
print(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) ? CLI_FAILED : CLI_OK;
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return print(help);
    if (!strcmp(argv[1], "--version"))
        return print("fusec " FUSEC_VERSION "\n");
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
        struct args a = {command[i].name, argv + 2, argc - 2, false};
        if (a.n && !strcmp(a.at[0], "--help"))
            return print(help);
        if (!strcmp(argv[1], command[i].name))
            return command[i].run(&a);
    }
    fprintf(stderr, "fusec: unknown command '%s' (fusec --help shows what there is)\n", argv[1]);
    return CLI_USAGE;
}

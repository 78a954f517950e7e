// cli.h: what the commands of fusec share: exit codes, arguments, files, output.
//
// Every command is `int NAME_command(struct args *a)`; it writes results to standard output and
// words about failures to standard error, and returns an exit code.
#ifndef FUSEC_FRONTEND_CLI_CLI_H
#define FUSEC_FRONTEND_CLI_CLI_H

#include "ir/base/mem.h"
#include "ir/base/str.h"
#include "ir/diag.h"
#include "ir/graph.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_REFUSED = 1, // the input is wrong: a file, a graph, an array, or no such name in the graph
    CLI_USAGE = 2,   // the command line is wrong, whatever the files hold
    CLI_FAILED = 3,  // the machine or fusec could not do it
};

// ---- args.c

struct args {
    const char *command;
    char **at;
    int n;
    bool failed; // a usage error was told
};
typedef VEC(const char *) word_list;

// True and consumed when the next argument is this flag.
bool args_flag(struct args *a, const char *flag);
// The same for "--name VALUE" and "--name=VALUE"; without a value: failed is set, *value is "".
bool args_value(struct args *a, const char *name, const char **value);
bool args_list(struct args *a, const char *name, word_list *values); // appends
// The same of NAME=VALUE (form: "NAME=FILE"), each name once; and of --dim NAME=SIZE. Otherwise a
// usage error, and true.
bool args_pair(struct args *a, const char *name, const char *form, word_list *pairs);
bool args_dim(struct args *a, word_list *dims);
// The next argument, if it is no option ("-" is none). NULL: it is one, or there is no more.
const char *args_word(struct args *a);
// A whole decimal number within bounds; otherwise a usage error.
bool args_number(struct args *a, const char *name, const char *text, int64_t least, int64_t most,
                 int64_t *value);
// Tells a usage error (with a pointer to --help), sets failed, returns CLI_USAGE.
int args_fail(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int args_unknown(struct args *a); // about the next argument

// Tells d on standard error; the exit code that fits its category.
int cli_fail(const struct args *a, const struct diag *d);
int cli_write(const struct args *a, const struct str *s); // to standard output
bool cli_colour(void); // standard output is a terminal, and NO_COLOR is not set

// "N=4096": a name and a number. at: the value's first byte.
bool split_pair(const char *pair, size_t *name, const char **value);

// ---- load.c

// Parses a file ("-": standard input) and sets dims ("N=4096"). Sizes decide what may broadcast and
// reduce, so once they have changed the graph must be verified anew, with verify_dims.
struct graph *load_graph(const char *path, const word_list *dims, struct diag *d);
bool verify_dims(const struct graph *g, struct diag *d);
void settle_strides(struct graph *g); // of row-major inputs, after dims have changed

// ---- format.c

// Figures for people: 3 significant digits in decimal units: 16.8 MB.
const char *bytes_text(int64_t bytes, char text[32]);
const char *plural(int64_t n, const char *one, const char *many, char text[64]); // "2 kernels"

// ---- the commands

int explain_command(struct args *a);
int run_command(struct args *a);
int bench_command(struct args *a);
int ops_command(struct args *a);
int devices_command(struct args *a);

#endif

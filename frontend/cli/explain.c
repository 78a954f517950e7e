// explain.c: fusec --explain FILE: compiles a graph for the device at hand and says what became of
// it. Nothing is run. fusec --explain -- PROGRAM: runs a program, whose contexts then report what
// they compile (frontend/report.c).
#include "frontend/cli/cli.h"
#include "frontend/cli/explain.h"

#include "runtime/device.h"
#include "runtime/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    const char *file, *emit, *device;
    word_list dims;
    bool json, strict, program;
    int64_t threads;
};

static bool
parse(struct args *a, struct request *q)
{
    const char *text;
    while (a->n && !a->failed && !q->program) {
        if (!q->file && !q->emit && !q->dims.n && args_flag(a, "--"))
            q->program = true; // the rest is its command line
        else if (args_flag(a, "--json"))
            q->json = true;
        else if (args_flag(a, "--strict"))
            q->strict = true;
        else if (args_dim(a, &q->dims) || args_value(a, "--emit", &q->emit) ||
                 args_value(a, "--device", &q->device))
            continue;
        else if (args_value(a, "--threads", &text))
            args_number(a, "--threads", text, 1, 1024, &q->threads);
        else if (q->file || !(q->file = args_word(a)))
            args_unknown(a);
    }
    if (!a->failed && !q->file && !q->program)
        args_fail(a, "a .fuse file was expected");
    if (!a->failed && q->emit && q->json)
        args_fail(a, "--emit and --json exclude each other");
    if (!a->failed && q->emit && !explain_can_emit(q->emit))
        args_fail(a, "--emit: '%s' was found, one of ir, kernels, llvm, asm, cuda, dot was "
                     "expected", q->emit);
    return !a->failed;
}

static struct plan *
compile(const struct request *q, const struct target *t, struct diag *d)
{
    struct graph *g = load_graph(q->file, &q->dims, d);
    struct compile_options options = {.strict = q->strict};
    bool ok = g && (!q->dims.n || verify_dims(g, d));
    struct plan *p = ok ? plan_build(g, t, &options, d) : NULL;
    graph_free(g);
    return p;
}

static int
explain_program(struct args *a, bool json)
{
    if (!a->n)
        return args_fail(a, "a program was expected after --");
    struct diag d = {0};
    if (!setenv("FUSEC_EXPLAIN", json ? "json" : "text", 1)) {
        char **argv = xcalloc((size_t)a->n + 1, sizeof *argv); // a->at need not end in NULL
        memcpy(argv, a->at, (size_t)a->n * sizeof *argv);
        execvp(argv[0], argv);
        diag_set(&d, DIAG_IO, "%s: %s", argv[0], strerror(errno));
        xfree(argv);
    } else {
        diag_set(&d, DIAG_RESOURCE, "no room in the environment");
    }
    return cli_fail(a, &d);
}

// What to compile for: a device, or an architecture of GPUs, of which none need be there.
static bool
find_target(const struct request *q, struct device **device, struct target *t, struct diag *d)
{
    const char *name = q->device ? q->device : "cpu";
    if (!strncmp(name, "sm_", 3)) {
        return cuda_target(t, name) ||
               diag_set(d, DIAG_INVALID, "--device %s: known are sm_80, sm_86, sm_89, sm_90, "
                                         "sm_100 and sm_120", name);
    }
    *device = device_open(name, (uint32_t)q->threads, 0, d);
    if (*device)
        *t = (*device)->target;
    return *device;
}

int
explain_command(struct args *a)
{
    struct request q = {0};
    struct diag d = {0};
    struct str out = {0};
    if (!parse(a, &q)) {
        vec_free(&q.dims);
        return CLI_USAGE;
    }
    if (q.program)
        return explain_program(a, q.json);
    struct device *device = NULL;
    struct target t;
    struct plan *p = find_target(&q, &device, &t, &d) ? compile(&q, &t, &d) : NULL;
    bool ok = p;
    if (ok && q.emit)
        ok = explain_emit(p, &t, q.emit, &out, &d);
    else if (ok && q.json)
        explain_json(p, &out);
    else if (ok)
        explain_text(p, cli_colour(), &out);
    int code = ok ? cli_write(a, &out) : cli_fail(a, &d);
    plan_free(p);
    if (device)
        device_close(device);
    str_free(&out);
    vec_free(&q.dims);
    return code;
}

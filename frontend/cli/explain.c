// explain.c: fusec --explain FILE: compiles a graph for the device at hand and says what became of
// it. Nothing is run. fusec --explain -- PROGRAM: runs a program, whose contexts then report what
// they compile (frontend/report.c).
#include "frontend/cli/cli.h"
#include "frontend/cli/explain.h"

#include "runtime/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    const char *file, *emit;
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
        else if (args_dim(a, &q->dims) || args_value(a, "--emit", &q->emit))
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
        args_fail(a, "--emit: '%s' was found, one of ir, kernels, llvm, asm, dot was expected",
                  q->emit);
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
    struct device *device = device_open("cpu", (uint32_t)q.threads, 0, &d);
    struct plan *p = device ? compile(&q, &device->target, &d) : NULL;
    bool ok = p;
    if (ok && q.emit)
        ok = explain_emit(p, &device->target, q.emit, &out, &d);
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

// bench_compile.c: how long the kernels of a workload take to compile.
//
// Cold is what the first kernel of a process takes: each is compiled in a forked child, while this
// process has not touched LLVM yet. What LLVM takes to find itself ready is measured apart. Warm is
// the median of some compilations in one process, nothing cached. Both are the three steps that a
// device takes (device.h, compile): kernel to text, text to object, object into memory. They are of
// baseline code, which is what a program waits for that has more than one thread; what optimised
// code takes, in the background, or where a program asked for it at once, stands beside.
#include "frontend/cli/bench.h"

#include "codegen/codegen.h"
#include "ir/base/clock.h"
#include "passes/plan.h"
#include "runtime/orc.h"
#include "runtime/target.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = 15 };

struct figures { // times in milliseconds
    double start, emit, object, load;
    uint32_t kernels, text_bytes;
};

static double
all(const struct figures *s)
{
    return s->emit + s->object + s->load;
}

static double
lap(double *since)
{
    double now = clock_us(), ms = (now - *since) / 1e3;
    *since = now;
    return ms;
}

static bool
compile_one(struct jit *jit, const struct launch *l, const struct target *t, enum code_level level,
            struct figures *f, struct diag *d)
{
    struct str text = {0};
    num_vec num = {0};
    struct jit_code code;
    size_t size = 0;
    double clock = clock_us();
    bool ok = cpu_emit(&l->kernel, &l->sched, t, &text, &num, d);
    f->emit = lap(&clock);
    void *object = ok ? cpu_object(text.at, text.n, t, level, &size, d) : NULL;
    f->object = lap(&clock);
    ok = object && jit_load(jit, object, size, &code, d);
    f->load = lap(&clock);
    f->text_bytes = (uint32_t)text.n;
    if (ok)
        jit_unload(jit, &code);
    xfree(object);
    str_free(&text);
    vec_free(&num);
    return ok;
}

// What a program waits for: with one thread there is no background (device.h, DEVICE_TIERED).
static enum code_level
first_level(const struct target *t)
{
    return t->units < 2 ? CODE_OPTIMISED : CODE_BASELINE;
}

// What a fresh process does, up to one kernel.
static bool
compile_from_nothing(const struct graph *g, uint32_t threads, uint32_t kernel, struct figures *f)
{
    struct diag d = {0};
    struct target t;
    char words[256];
    double clock = clock_us();
    cpu_target(&t, threads, words, sizeof words);
    struct jit *jit = jit_new(&d);
    f->start = lap(&clock);
    struct plan *p = plan_build(g, &t, NULL, &d);
    f->kernels = p ? p->launch.n : 0;
    return jit && p &&
           (kernel >= f->kernels ||
            compile_one(jit, &p->launch.at[kernel], &t, first_level(&t), f, &d));
}

// In a child: what LLVM did for one kernel is unknown to the next.
static bool
compile_in_child(const struct graph *g, uint32_t threads, uint32_t kernel, struct figures *f,
                 struct diag *d)
{
    int ends[2];
    if (pipe(ends))
        return diag_set(d, DIAG_RESOURCE, "no pipe to measure through");
    pid_t child = fork();
    if (!child)
        _exit(!(compile_from_nothing(g, threads, kernel, f) &&
                write(ends[1], f, sizeof *f) == sizeof *f));
    close(ends[1]);
    bool ok = child > 0 && read(ends[0], f, sizeof *f) == sizeof *f;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return ok || diag_set(d, DIAG_TOOLCHAIN, "a kernel does not compile in a process of its own");
}

static int
by_total(const void *x, const void *y)
{
    double a = all(x), b = all(y);
    return a < b ? -1 : a > b;
}

bool
bench_compile_cold(const struct graph *g, const char *workload, uint32_t threads,
                   compile_rows *rows, struct diag *d)
{
    struct figures f = {.kernels = 1};
    for (uint32_t i = 0; i < f.kernels; i++) {
        if (!compile_in_child(g, threads, i, &f, d))
            return false;
        struct compile_row r = {
            .workload = workload, .kernel = i, .start_ms = f.start, .cold_ms = all(&f)};
        vec_push(rows, r);
    }
    return true;
}

// f: sorted.
static bool
compile_often(struct jit *jit, const struct launch *l, const struct target *t,
              enum code_level level, struct figures f[REPEATS], struct diag *d)
{
    for (uint32_t k = 0; k < REPEATS; k++)
        if (!compile_one(jit, l, t, level, &f[k], d))
            return false;
    qsort(f, REPEATS, sizeof *f, by_total);
    return true;
}

static bool
measure_kernel(struct jit *jit, const struct launch *l, const struct target *t,
               struct compile_row *r, struct diag *d)
{
    struct figures f[REPEATS] = {0};
    if (!compile_often(jit, l, t, CODE_OPTIMISED, f, d))
        return false;
    r->optimised_ms = all(&f[REPEATS / 2]);
    if (!compile_often(jit, l, t, first_level(t), f, d))
        return false;
    const struct figures *m = &f[REPEATS / 2];
    r->emit_ms = m->emit;
    r->object_ms = m->object;
    r->load_ms = m->load;
    r->warm_ms = all(m);
    r->least_ms = all(&f[0]);
    r->text_bytes = m->text_bytes;
    return true;
}

bool
bench_compile_warm(const struct graph *g, uint32_t threads, struct compile_row *row, struct diag *d)
{
    struct target t;
    char words[256];
    cpu_target(&t, threads, words, sizeof words);
    struct jit *jit = jit_new(d);
    double clock = clock_us();
    struct plan *p = jit ? plan_build(g, &t, NULL, d) : NULL;
    row->plan_ms = lap(&clock);
    bool ok = p;
    for (uint32_t i = 0; ok && i < p->launch.n; i++)
        ok = measure_kernel(jit, &p->launch.at[i], &t, &row[i], d);
    plan_free(p);
    jit_free(jit);
    return ok;
}

// ---- the table

static int
ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

struct spread {
    double median, most;
};

// Of a figure of all rows, which lies `offset` bytes from a row's beginning.
static struct spread
spread_of(const compile_rows *rows, size_t offset)
{
    double *x = xmalloc(rows->n * sizeof *x);
    for (uint32_t i = 0; i < rows->n; i++)
        memcpy(&x[i], (const char *)&rows->at[i] + offset, sizeof x[i]);
    qsort(x, rows->n, sizeof *x, ascending);
    struct spread s = {x[rows->n / 2], x[rows->n - 1]};
    xfree(x);
    return s;
}

void
bench_compile_table(const compile_rows *rows, struct str *out)
{
    if (!rows->n)
        return;
    str_printf(out, "%-25s %6s %8s %8s %8s %8s %8s %8s %8s %8s %9s\n", "workload", "kernel",
               "text kB", "passes", "to text", "object", "load", "warm ms", "min", "cold ms",
               "optimised");
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct compile_row *r = &rows->at[i];
        str_printf(out, "%-25s %6u %8.1f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %9.2f\n",
                   r->workload, r->kernel, r->text_bytes / 1e3, r->plan_ms, r->emit_ms,
                   r->object_ms, r->load_ms, r->warm_ms, r->least_ms, r->cold_ms,
                   r->optimised_ms);
    }
    struct spread start = spread_of(rows, offsetof(struct compile_row, start_ms));
    struct spread warm = spread_of(rows, offsetof(struct compile_row, warm_ms));
    struct spread cold = spread_of(rows, offsetof(struct compile_row, cold_ms));
    struct spread optimised = spread_of(rows, offsetof(struct compile_row, optimised_ms));
    char text[64];
    str_printf(out,
               "%s: warm median %.2f ms, most %.2f; cold median %.2f ms, most %.2f, after "
               "LLVM's start of %.1f\n"
               "optimised, in the background: median %.2f ms, most %.2f\n",
               plural(rows->n, "kernel", "kernels", text), warm.median, warm.most, cold.median,
               cold.most, start.median, optimised.median, optimised.most);
}

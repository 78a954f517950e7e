// lazy.c: what a program pays that rebuilds the same small graph each time it wants the result.
//   build/bench/lazy
// Twenty ops on f32[16]: built through the public interface, looked up, launched, read out. Beside
// it what remains without the parts: the same graph's plan replayed, and its kernel called through
// its address, which is the floor. Allocations are counted: the linker puts functions of this file
// in front of the C library's. In the steady state there are none.
//
// Each figure is the least and the median of many batches. The figures are for one thread that
// nothing disturbs: a context's lock is taken, but never waited for.
#include "fusec.h"

#include "frontend/context.h"
#include "ir/base/clock.h"
#include "runtime/fpstate.h"
#include "runtime/orc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 16, OPS = 20, BATCHES = 201, CALLS = 1000 };

// ---- allocations

static atomic_long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

static void
count_one(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *
__wrap_malloc(size_t n)
{
    count_one();
    return __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    count_one();
    return __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
    count_one();
    return __real_realloc(p, n);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
    count_one();
    return __real_aligned_alloc(align, n);
}

// ---- the program

struct program {
    fc_context *ctx;
    fc_tensor x, y;
    float out[N];
    struct executable *plan; // borrowed from the context's cache
    void *in[2], *result[1];
    kernel_fn *kernel;
    struct kernel_args args;
    const struct launch *launch;
};

static void
must(fc_context *ctx, bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, fc_error(ctx));
    exit(3);
}

// Twenty calls: sums, products and a few functions, each over the two before it.
static fc_tensor
build(fc_tensor x, fc_tensor y)
{
    fc_tensor a = x, b = y, c;
    for (int i = 0; i < OPS / 5; i++) {
        c = fc_add(a, b);
        a = fc_mul(c, y);
        b = fc_relu(a);
        c = fc_sub(b, x);
        b = fc_max(c, a);
        a = c;
    }
    return b;
}

static void
rebuild(struct program *p)
{
    fc_scope_begin(p->ctx);
    if (fc_read(build(p->x, p->y), p->out, sizeof p->out))
        must(p->ctx, false, "reading");
    fc_scope_end(p->ctx);
}

static void
only_build(struct program *p)
{
    fc_scope_begin(p->ctx);
    build(p->x, p->y);
    fc_scope_end(p->ctx);
}

static void
replay(struct program *p)
{
    struct diag d = {0};
    if (!executable_run(p->plan, p->in, p->result, &d))
        must(p->ctx, false, d.text);
}

static void
bare(struct program *p)
{
    p->kernel(&p->args, 0, p->launch->sched.units, NULL);
}

static void
read_again(struct program *p) // a tensor that is computed already
{
    fc_read(p->x, p->out, sizeof p->out);
}

// ---- measuring

static int
by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static double
measure(const char *what, void (*fn)(struct program *), struct program *p)
{
    static double ns[BATCHES];
    for (int i = 0; i < CALLS; i++)
        fn(p);
    long before = atomic_load(&allocations);
    for (int b = 0; b < BATCHES; b++) {
        double start = clock_us();
        for (int i = 0; i < CALLS; i++)
            fn(p);
        ns[b] = (clock_us() - start) * 1e3 / CALLS;
    }
    long made = atomic_load(&allocations) - before;
    qsort(ns, BATCHES, sizeof *ns, by_size);
    printf("%-52s %8.0f %8.0f %12.3f\n", what, ns[0], ns[BATCHES / 2],
           (double)made / (BATCHES * CALLS));
    return ns[BATCHES / 2];
}

// ---- the plan and its kernel, taken out of the context

static void
see_plan(void *user, const struct plan *p)
{
    *(const struct plan **)user = p;
}

static void
take_kernel(struct program *p, struct jit *jit, const struct plan *plan, num_vec *num)
{
    struct str text = {0};
    struct diag d = {0};
    struct jit_code code;
    size_t size = 0;
    p->launch = &plan->launch.at[0];
    must(p->ctx, plan->launch.n == 1, "one kernel was expected");
    const struct target *target = &p->ctx->device->target;
    bool ok = cpu_emit(&p->launch->kernel, &p->launch->sched, target, &text, num, &d);
    void *object = ok ? cpu_object(text.at, text.n, target, CODE_OPTIMISED, &size, &d) : NULL;
    must(p->ctx, object && jit_load(jit, object, size, &code, &d), d.text);
    p->kernel = code.kernel;
    xfree(object);
    str_free(&text);
}

static struct executable *
cached_program(const fc_context *ctx)
{
    for (uint32_t i = 1; i < ctx->plans.entry.n; i++)
        if (ctx->plans.entry.at[i].program)
            return ctx->plans.entry.at[i].program;
    return NULL;
}

int
main(void)
{
    struct program p = {0};
    fc_options o = {.size = sizeof o, .compile = FC_OPTIMISED};
    fc_status made = fc_context_new(&o, &p.ctx);
    must(p.ctx, !made, "no context");
    const struct plan *plan = NULL;
    context_on_plan(p.ctx, see_plan, &plan);
    static _Alignas(64) float x[N], y[N], out[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i - 7;
        y[i] = 1 + (float)i / N;
    }
    p.x = fc_borrow(p.ctx, FC_F32, x, FC_SHAPE(N), NULL, NULL, NULL);
    p.y = fc_borrow(p.ctx, FC_F32, y, FC_SHAPE(N), NULL, NULL, NULL);
    rebuild(&p);
    must(p.ctx, !fc_error_code(p.ctx) && plan, "the program does not run");

    struct diag d = {0};
    struct jit *jit = jit_new(&d);
    must(p.ctx, jit, d.text);
    num_vec num = {0};
    take_kernel(&p, jit, plan, &num);
    int32_t error = 0;
    void *pointer[8];
    for (uint32_t i = 0; i < p.launch->kernel.buffers.n; i++)
        pointer[i] = p.launch->kernel.buffers.at[i].role == BUF_IN ? i ? y : x : out;
    p.args = (struct kernel_args){.ptr = pointer, .num = num.at, .error = &error};
    p.plan = cached_program(p.ctx);
    p.in[0] = x, p.in[1] = y, p.result[0] = out;

    printf("%s\n%-52s %8s %8s %12s\n", fc_device_words(p.ctx), "", "ns min", "median",
           "allocations");
    double all = measure("20 ops on f32[16] rebuilt, found, run, read", rebuild, &p);
    measure("  of which the 20 calls and their handles' release", only_build, &p);
    measure("  reading 64 bytes that are there", read_again, &p);
    double plan_ns = measure("its plan replayed", replay, &p);
    double kernel = measure("its kernel called through its address", bare, &p);
    printf("%.0f ns an op; the replay takes %.0f ns more than its kernel\n", all / OPS,
           plan_ns - kernel);
    vec_free(&num);
    jit_free(jit);
    fc_context_free(p.ctx);
    return 0;
}

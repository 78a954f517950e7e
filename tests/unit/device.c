// device.c: the CPU device and executables, from a graph's text to numbers: shared code, counters,
// the caller's floating-point state, index errors in words, many threads, a forked child.
#include "runtime/device.h"

#include "ir/interp.h"
#include "ir/text.h"
#include "runtime/fpstate.h"
#include "runtime/target.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct device *
open_with(uint32_t threads, uint32_t flags)
{
    struct diag d = {0};
    struct device *dev = device_open("cpu", threads, flags, &d);
    cr_assert_not_null(dev, "%s", d.text);
    return dev;
}

static struct device *
open_cpu(uint32_t threads)
{
    return open_with(threads, 0);
}

static struct executable *
build(struct device *dev, const char *text)
{
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), "model.fuse", &d);
    cr_assert_not_null(g, "%s", d.text);
    struct plan *p = plan_build(g, &dev->target, NULL, &d);
    cr_assert_not_null(p, "%s", d.text);
    graph_free(g);
    struct executable *e = executable_new(p, dev, &d);
    cr_assert_not_null(e, "%s", d.text);
    return e;
}

static struct device_counters
counters(struct device *dev)
{
    struct device_counters c;
    dev->counters(dev, &c);
    return c;
}

// relu(x + y) over n elements, checked against C.
static const char *
relu_add_text(int64_t n)
{
    static _Thread_local char text[200];
    snprintf(text, sizeof text,
             "graph @g(%%x: f32[%lld], %%y: f32[%lld]) {\n  %%a = add %%x, %%y\n"
             "  %%b = relu %%a\n  return %%b\n}\n",
             (long long)n, (long long)n);
    return text;
}

static bool
run_relu_add(struct executable *e, int64_t n, unsigned seed)
{
    float *x = xmalloc((size_t)n * 12), *y = x + n, *z = y + n;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)seed;
        y[i] = (float)(seed >> 9) - 4e6f;
        z[i] = -7;
    }
    struct diag d = {0};
    bool ok = executable_run(e, (void *[]){x, y}, (void *[]){z}, &d);
    for (int64_t i = 0; i < n; i++)
        ok = ok && z[i] == (x[i] + y[i] > 0 ? x[i] + y[i] : 0);
    xfree(x);
    return ok;
}

// ---- devices

Test(device, names)
{
    struct diag d = {0};
    cr_assert_null(device_open("cuda:99", 0, 0, &d)); // no machine has so many
    cr_assert(d.code == DIAG_UNSUPPORTED || d.code == DIAG_TOOLCHAIN);
    cr_assert(strstr(d.text, "cuda:99"), "%s", d.text);
    d = (struct diag){0};
    cr_assert_null(device_open("cuda:one", 0, 0, &d));
    cr_assert_eq(d.code, DIAG_INVALID);
    d = (struct diag){0};
    cr_assert_null(device_open("cudgel", 0, 0, &d));
    cr_assert_eq(d.code, DIAG_INVALID);
    cr_assert(strstr(d.text, "cudgel") && strstr(d.text, "'cpu'"), "%s", d.text);
    d = (struct diag){0};
    cr_assert_null(device_open("", 0, 0, &d));
    cr_assert_eq(d.code, DIAG_INVALID);
    device_close(NULL);
}

Test(device, target_is_plausible)
{
    struct device *dev = open_cpu(0), *three = open_cpu(3);
    const struct target *t = &dev->target;
    cr_assert_eq(t->kind, DEVICE_CPU);
    cr_assert(t->units >= 1 && three->target.units == 3);
    cr_assert(t->vec_bytes == 16 || t->vec_bytes == 32 || t->vec_bytes == 64);
    cr_assert(t->l1 >= 8 << 10 && t->l2 >= t->l1 && t->llc >= t->l2);
    cr_assert_gt(strlen(t->arch), 0);
    cr_assert_not_null(strstr(dev->words, "cores"), "%s", dev->words);
    device_close(dev);
    device_close(three);
}

Test(device, copy_bandwidth)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        double gbps = cpu_copy_gbps(1 << 20, threads);
        cr_assert(gbps > 0.1 && gbps < 5000, "%g GB/s", gbps);
    }
    cr_assert_gt(cpu_copy_gbps(0, 1), 0);
}

Test(device, read_bandwidth)
{
    // a block that ends within a page, a few pages, less than a line
    const int64_t bytes[] = {3 * 4096 + 192, 1 << 20, 0};
    for (uint32_t i = 0; i < 3; i++) {
        double gbps = cpu_read_gbps_among(bytes[i], 1 + i % 2, 2);
        cr_assert(gbps > 0.1 && gbps < 50000, "%g GB/s", gbps);
    }
}

Test(device, memory)
{
    struct device *dev = open_cpu(1);
    struct diag d = {0};
    char *p = dev->ops->alloc(dev, 1000), out[1000], in[1000];
    cr_assert_not_null(p);
    cr_assert_eq((uintptr_t)p % 64, 0);
    memset(in, 5, sizeof in);
    cr_assert(dev->ops->upload(dev, p, in, 1000, &d));
    cr_assert(dev->ops->download(dev, out, p, 1000, &d));
    cr_assert_arr_eq(in, out, 1000);
    cr_assert(dev->ops->upload(dev, NULL, NULL, 0, &d));
    cr_assert_eq(counters(dev).bytes_allocated, 1024);
    dev->ops->release(dev, p, 1000);
    cr_assert_eq(counters(dev).bytes_allocated, 0);
    cr_assert_eq(counters(dev).peak_bytes, 1024);
    cr_assert_null(dev->ops->alloc(dev, INT64_MAX));
    device_close(dev);
}

// ---- executables

Test(executable, sizes_and_tails)
{
    struct device *dev = open_cpu(2);
    for (int64_t n = 1; n <= 70; n++) {
        struct executable *e = build(dev, relu_add_text(n));
        cr_assert(run_relu_add(e, n, (unsigned)n), "n = %lld", (long long)n);
        cr_assert_eq(executable_plan(e)->launch.n, 1);
        executable_unref(e);
    }
    cr_assert_eq(counters(dev).kernels, 70);
    device_close(dev);
}

Test(executable, equal_text_is_compiled_once)
{
    if (!cpu_codegen_available())
        return;
    struct device *dev = open_cpu(2);
    struct executable *a = build(dev, relu_add_text(1000)), *b = build(dev, relu_add_text(1001));
    struct device_counters c = counters(dev);
    cr_assert_eq(c.compiles, 1);
    cr_assert_eq(c.code_hits, 1, "sizes are arguments");
    cr_assert_gt(c.compile_us, 0);
    cr_assert(run_relu_add(a, 1000, 1) && run_relu_add(b, 1001, 2) && run_relu_add(a, 1000, 3));
    cr_assert_eq(counters(dev).kernels, 3);
    executable_unref(executable_ref(a));
    executable_unref(a);
    executable_unref(b);
    a = build(dev, relu_add_text(77));
    cr_assert_eq(counters(dev).compiles, 1, "unused code is kept");
    executable_unref(a);
    device_close(dev);
}

Test(executable, optimised_code_follows_the_second_launch)
{
    if (!cpu_codegen_available())
        return;
    struct device *dev = open_with(2, DEVICE_TIERED);
    struct executable *a = build(dev, relu_add_text(1000));
    cr_assert(run_relu_add(a, 1000, 1));
    dev->ops->settle(dev);
    cr_assert_eq(counters(dev).optimised, 0, "what runs once is not compiled twice");
    cr_assert(run_relu_add(a, 1000, 2));
    dev->ops->settle(dev);
    cr_assert_eq(counters(dev).compiles, 1);
    cr_assert_eq(counters(dev).optimised, 1);
    cr_assert_gt(counters(dev).optimise_us, 0);
    cr_assert(run_relu_add(a, 1000, 3));
    executable_unref(a);
    device_close(dev);
    dev = open_with(1, DEVICE_TIERED); // nothing goes on beside the one thread
    a = build(dev, relu_add_text(1000));
    cr_assert(run_relu_add(a, 1000, 1) && run_relu_add(a, 1000, 2));
    dev->ops->settle(dev);
    cr_assert_eq(counters(dev).optimised, 0);
    executable_unref(a);
    device_close(dev);
}

Test(executable, optimised_code_follows_a_long_launch)
{
    if (!cpu_codegen_available())
        return;
    struct device *dev = open_with(2, DEVICE_TIERED);
    int64_t n = 16 << 20; // some 200 MB of traffic
    struct executable *a = build(dev, relu_add_text(n));
    cr_assert(run_relu_add(a, n, 1));
    dev->ops->settle(dev);
    cr_assert_eq(counters(dev).optimised, 1);
    executable_unref(a);
    device_close(dev);
}

Test(executable, nothing_to_do_is_no_kernel)
{
    struct device *dev = open_cpu(2);
    struct executable *e = build(dev, relu_add_text(0));
    cr_assert(run_relu_add(e, 0, 1));
    cr_assert_eq(counters(dev).kernels, 0);
    executable_unref(e);
    device_close(dev);
}

Test(executable, large_work_over_threads)
{
    struct device *dev = open_cpu(4);
    int64_t n = cpu_codegen_available() ? 3000001 : 30001;
    struct executable *e = build(dev, relu_add_text(n));
    for (unsigned i = 0; i < 3; i++)
        cr_assert(run_relu_add(e, n, i));
    executable_unref(e);
    device_close(dev);
}

Test(executable, two_outputs_of_different_shape)
{
    struct device *dev = open_cpu(2);
    struct executable *e = build(dev, "graph @g(%x: f32[3, 5], %y: f32[5]) {\n  %a = add %x, %y\n"
                                      "  %b = neg %y\n  return %a, %b, %x\n}\n");
    float x[15], y[5], a[15] = {0}, b[5] = {0}, c[15] = {0};
    for (int i = 0; i < 15; i++)
        x[i] = (float)i;
    for (int i = 0; i < 5; i++)
        y[i] = (float)i * 0.5f;
    struct diag d = {0};
    cr_assert(executable_run(e, (void *[]){x, y}, (void *[]){a, b, c}, &d), "%s", d.text);
    for (int i = 0; i < 15; i++)
        cr_assert(a[i] == x[i] + y[i % 5] && c[i] == x[i] && b[i % 5] == -y[i % 5]);
    executable_unref(e);
    device_close(dev);
}

static const char take_text[] = "graph @g(%x: f32[5], %i: i64[N=4]) {\n"
                                "  %r = take %x, %i {axis = 0}\n"
                                "  %s = add %r, %r\n  return %s\n}\n";

Test(executable, index_errors_name_the_op)
{
    struct device *dev = open_cpu(1);
    struct executable *e = build(dev, take_text);
    float x[5] = {0, 1, 2, 3, 4}, out[4];
    int64_t good[4] = {-2, 4, 0, -5}, bad[4] = {-2, 4, 10, -6};
    struct diag d = {0};
    cr_assert(executable_run(e, (void *[]){x, good}, (void *[]){out}, &d), "%s", d.text);
    cr_assert(out[0] == 6 && out[1] == 8 && out[2] == 0 && out[3] == 0);
    cr_assert_not(executable_run(e, (void *[]){x, bad}, (void *[]){out}, &d));
    cr_assert_eq(d.code, DIAG_INDEX);
    cr_assert_not_null(strstr(d.text, "take"), "%s", d.text);
    cr_assert(out[0] == 6 && out[1] == 8 && out[2] == 0 && out[3] == 0, "bad elements are 0");
    d = (struct diag){0};
    cr_assert(executable_run(e, (void *[]){x, good}, (void *[]){out}, &d), "the error is gone");
    executable_unref(e);
    device_close(dev);
}

struct crowd {
    struct device *dev;
    struct executable *shared;
    int64_t n;
    unsigned seed;
    int rounds;
};

// Runs a program with one input x and one output.
static void
run_one(struct executable *e, const float *x, float *out)
{
    struct diag d = {0};
    cr_assert(executable_run(e, (void *[]){(void *)(uintptr_t)x}, (void *[]){out}, &d), "%s",
              d.text);
}

Test(executable, partial_sums_are_the_same_with_any_threads)
{
    if (!cpu_codegen_available())
        return; // the interpreter has no threads
    enum { N = 300001 };
    const char *text = "graph @g(%x: f32[300001]) {\n  %s = sum %x {axes = [0]}\n  return %s\n}\n";
    float *x = xmalloc(N * sizeof *x), first = 0;
    double exact = 0;
    for (int i = 0; i < N; i++)
        exact += x[i] = 1.0f / (float)(1 + i % 1000);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        struct device *dev = open_cpu(threads);
        struct executable *e = build(dev, text);
        for (int i = 0; i < 3; i++) {
            float sum = 0;
            run_one(e, x, &sum);
            if (threads == 1 && i == 0)
                first = sum;
            cr_assert_eq(sum, first, "%u threads: %a, not %a", threads, (double)sum, (double)first);
        }
        executable_unref(e);
        device_close(dev);
    }
    cr_assert_float_eq((double)first, exact, exact * 1e-6);
    xfree(x);
}

static const char chain_text[] = "graph @g(%x: f32[40, 30]) {\n  %p = softmax %x {axis = 1}\n"
                                 "  %t = permute %p {axes = [1, 0]}\n  %m = matmul %t, %p\n"
                                 "  %s = softmax %m {axis = 0}\n  return %s\n}\n";

static void *
run_chain(void *arg)
{
    const struct crowd *c = arg;
    float x[1200], out[900], again[900];
    for (int i = 0; i < 1200; i++)
        x[i] = (float)((i * 37 + (int)c->seed) % 101) / 50;
    run_one(c->shared, x, out);
    for (int round = 0; round < c->rounds; round++) {
        run_one(c->shared, x, again);
        if (memcmp(out, again, sizeof out) != 0)
            return "two runs differ";
    }
    for (int col = 0; col < 30; col++) {
        double sum = 0;
        for (int row = 0; row < 30; row++)
            sum += out[row * 30 + col];
        if (fabs(sum - 1) > 1e-5)
            return "a softmax does not sum to 1";
    }
    return NULL;
}

Test(executable, intermediates_in_an_arena)
{
    struct device *dev = open_cpu(2);
    struct executable *e = build(dev, chain_text);
    const struct plan *p = executable_plan(e);
    cr_assert(p->launch.n > 1 && p->arena_bytes > 0);
    struct crowd c[6];
    pthread_t t[6];
    for (unsigned i = 0; i < 6; i++) {
        c[i] = (struct crowd){.shared = e, .seed = i, .rounds = 30};
        pthread_create(&t[i], NULL, run_chain, &c[i]);
    }
    for (int i = 0; i < 6; i++) {
        void *wrong = NULL;
        pthread_join(t[i], &wrong);
        cr_assert_null(wrong, "%s", (char *)wrong);
    }
    cr_assert_eq(counters(dev).kernels, 6 * 31 * (int)p->launch.n);
    cr_assert_eq(counters(dev).bytes_allocated, 0, "arenas go back");
    cr_assert_geq(counters(dev).peak_bytes, p->arena_bytes);
    cr_assert_leq(counters(dev).peak_bytes, 6 * (p->arena_bytes + 64));
    executable_unref(e);
    device_close(dev);
}

// ---- floating-point state (also of workers, which inherit it from whoever starts them)

#if defined(__x86_64__)
static void
denormals_survive(uint32_t threads, int64_t n)
{
    struct device *dev = open_cpu(threads);
    char text[200];
    snprintf(text, sizeof text,
             "graph @g(%%x: f32[%lld], %%y: f32[%lld]) {\n  %%a = mul %%x, %%y\n  return %%a\n}\n",
             (long long)n, (long long)n);
    fp_state before = fp_enter();
    uint32_t odd = 0x1f80 | 0x8040 | 0x2000; // flush to zero, denormals are zero, round down
    _mm_setcsr(odd);
    struct executable *e = build(dev, text);
    float *x = xmalloc((size_t)n * 12), *y = x + n, *z = y + n;
    for (int64_t i = 0; i < n; i++) {
        x[i] = i % 2 ? 0x1.8p-127f : 0x1.8p-3f;
        y[i] = i % 2 ? 0x1p30f : 0x1p-124f;
    }
    struct diag d = {0};
    _mm_setcsr(odd);
    bool ok = executable_run(e, (void *[]){x, y}, (void *[]){z}, &d);
    uint32_t after = _mm_getcsr();
    volatile float a = 1e-30f, b = 1e-15f;
    float outside = a * b;
    fp_leave(before);
    cr_assert(ok, "%s", d.text);
    cr_assert_eq(after, odd, "the caller's state: %x", after);
    cr_assert_eq(outside, 0, "the caller still flushes");
    for (int64_t i = 0; i < n; i++)
        cr_assert_eq(z[i], i % 2 ? 0x1.8p-97f : 0x1.8p-127f, "%a at %lld", (double)z[i],
                     (long long)i);
    xfree(x);
    executable_unref(e);
    device_close(dev);
}

Test(executable, denormals_and_the_callers_state)
{
    denormals_survive(1, 37);
    denormals_survive(4, cpu_codegen_available() ? 1000003 : 1003);
    volatile float a = 1e-30f, b = 1e-15f;
    cr_assert_eq(a * b, 1e-45f, "after it all the product outside is a denormal");
}
#endif

// ---- threads and processes

static void *
work(void *arg)
{
    const struct crowd *c = arg;
    for (int i = 0; i < c->rounds; i++) {
        if (!run_relu_add(c->shared, c->n, c->seed + (unsigned)i))
            return "the shared program went wrong";
        int64_t n = 1 + (c->seed * 7 + (unsigned)i) % 200;
        struct executable *own = build(c->dev, relu_add_text(n));
        bool ok = run_relu_add(own, n, (unsigned)i);
        executable_unref(own);
        if (!ok)
            return "a program of its own went wrong";
    }
    return NULL;
}

static void
eight_threads(uint32_t flags)
{
    struct device *dev = open_with(3, flags);
    int64_t n = cpu_codegen_available() ? 40000 : 400;
    struct crowd c[8];
    pthread_t t[8];
    struct executable *e = build(dev, relu_add_text(n));
    for (unsigned i = 0; i < 8; i++) {
        c[i] = (struct crowd){dev, e, n, i * 1000, 10};
        pthread_create(&t[i], NULL, work, &c[i]);
    }
    for (int i = 0; i < 8; i++) {
        void *wrong = NULL;
        pthread_join(t[i], &wrong);
        cr_assert_null(wrong, "%s", (char *)wrong);
    }
    cr_assert_eq(counters(dev).kernels, 160);
    cr_assert_leq(counters(dev).compiles, 4, "sizes choose among few schedules");
    executable_unref(e);
    device_close(dev);
}
Test(executable, eight_threads)
{
    eight_threads(0);
    eight_threads(DEVICE_TIERED);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // neither survives such a fork
static void *
compile_on(void *arg) // a new text each time
{
    const struct crowd *c = arg;
    for (int i = 0; i < c->rounds; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "graph @g(%%x: f32[50]) {\n  %%a = add %%x, %u.5\n  return %%a\n}\n",
                 c->seed + (unsigned)i);
        executable_unref(build(c->dev, text));
    }
    return NULL;
}

Test(executable, fork_while_others_compile_and_run)
{
    struct device *dev = open_with(3, DEVICE_TIERED);
    int64_t n = cpu_codegen_available() ? 200000 : 2000;
    struct executable *e = build(dev, relu_add_text(n));
    cr_assert(run_relu_add(e, n, 1));
    struct crowd run = {dev, e, n, 5, 60}, compile = {dev, e, n, 7, 60};
    pthread_t a, b;
    pthread_create(&a, NULL, work, &run);
    pthread_create(&b, NULL, compile_on, &compile);
    for (unsigned i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            struct crowd mine = {dev, e, n, 100 + i, 3}, fresh = {dev, e, n, 1000 + 10 * i, 3};
            exit(work(&mine) || compile_on(&fresh) ? 1 : 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", status);
    }
    void *wrong = NULL;
    pthread_join(a, &wrong);
    cr_assert_null(wrong, "%s", (char *)wrong);
    pthread_join(b, NULL);
    executable_unref(e);
    device_close(dev);
}
#endif

// cuda.c: kernels for GPUs. Every kernel of the benchmark graphs and of random graphs is made into
// CUDA C and compiled by NVRTC, where that is found, for each of the architectures below. Where
// there is a GPU they run on it too and give the kernel interpreter's bits: the order of reductions
// is the same on every device.
#include "codegen/codegen.h"
#include "ir/base/mem.h"
#include "ir/text.h"
#include "runtime/device.h"
#include "runtime/target.h"
#include "tests/support/graph_any.h"
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const architecture[] = {"sm_80", "sm_90", "sm_100"};

// How many kernels of g NVRTC took.
static uint32_t
compile_graph(const struct graph *g, const struct target *t, const char *what)
{
    struct diag d = {0};
    struct plan *p = plan_build(g, t, NULL, &d);
    cr_assert(p, "%s: %s", what, d.text);
    for (uint32_t i = 0; i < p->launch.n; i++) {
        const struct launch *l = &p->launch.at[i];
        struct str text = {0};
        num_vec num = {0};
        size_t size = 0;
        bool ok = cuda_emit(&l->kernel, &l->sched, t, &text, &num, &d);
        cr_assert(ok, "%s, %s: %s", what, l->kernel.name, d.text);
        void *cubin = cuda_object(str_text(&text), t->arch, &size, &d);
        cr_assert(cubin, "%s, %s: %s\n%s", what, l->kernel.name, d.text, str_text(&text));
        xfree(cubin);
        str_free(&text);
        vec_free(&num);
    }
    uint32_t n = p->launch.n;
    plan_free(p);
    return n;
}

static struct graph *
random_graph(uint64_t seed)
{
    return gen_graph(&(struct gen_options){.seed = seed, .min_ops = 2, .max_ops = 12,
                                           .views = true, .reductions = true, .matmul = true,
                                           .composites = true, .math = seed % 4 == 0,
                                           .mixed = seed % 3 == 0, .half = seed % 5 == 0,
                                           .max_extent = seed % 7 == 0 ? 700 : 40});
}

// What random graphs are too small for: long rows, one block each or divided; many columns; rows of
// less than a warp; 64-bit sums; positions.
static const char *const large[] = {
    "graph @split(%x: f32[3, 400000]) { return sum %x {axes=[1]}, argmax %x {axes=[1]},"
    " mean (mul %x, %x) {axes=[1]} }",
    "graph @all(%x: i32[1000001]) { return sum %x {axes=[0]}, max %x {axes=[0]} }",
    "graph @odd(%x: bf16[2, 98305]) { return sum %x {axes=[1]}, min %x {axes=[1]} }",
    "graph @rows(%x: f32[5, 150001]) { return softmax %x {axis=1} }",
    "graph @norm(%x: f16[40, 5000], %w: f16[5000], %b: f16[5000]) { return layer_norm %x, %w, %b }",
    "graph @columns(%x: f32[3000, 70]) { return sum %x {axes=[0]}, argmin %x {axes=[0]} }",
    "graph @narrow(%x: f64[5000, 3]) { return var %x {axes=[1]}, sum %x {axes=[0]} }",
    "graph @scan(%x: f32[3, 70000]) { return cumsum %x {axis=1} }",
    "graph @turn(%x: f32[70, 130], %y: f32[130, 70]) { return add %x, (permute %y {axes=[1,0]}) }",
    "graph @sort(%x: f32[4, 700]) { return sort %x {axis=1}, argsort %x {axis=1} }",
};
enum { LARGE = sizeof large / sizeof *large };

static struct graph *
large_graph(uint32_t i)
{
    struct diag d = {0};
    struct graph *g = graph_parse(large[i], strlen(large[i]), "large", &d);
    cr_assert(g, "%s", d.text);
    return g;
}

Test(cuda, nvrtc_takes_large_kernels, .timeout = 170)
{
    struct diag d = {0};
    if (!cuda_codegen_available(&d))
        cr_skip_test("%s", d.text);
    for (uint32_t i = 0; i < LARGE; i++) {
        struct target t;
        struct graph *g = large_graph(i);
        cr_assert(cuda_target(&t, architecture[i % 3]));
        compile_graph(g, &t, large[i]);
        graph_free(g);
    }
}

// Of all ops, with strided and misaligned inputs.
static struct graph *
graph_of_all_ops(uint64_t seed)
{
    static const int64_t n[] = {1, 3, 7, 16, 33};
    return any_graph(&(struct any_options){.seed = seed, .n = n[seed % 5],
                                           .ops = 1 + (uint32_t)(seed % 9), .halves = seed % 2});
}

Test(cuda, nvrtc_takes_kernels_of_random_graphs, .timeout = 170)
{
    struct diag d = {0};
    if (!cuda_codegen_available(&d))
        cr_skip_test("%s", d.text);
    uint32_t kernels = 0, graphs = seed_count(60);
    for (uint64_t seed = seed_first(); seed < seed_first() + graphs; seed++) {
        struct graph *g = random_graph(seed);
        struct target t;
        cr_assert(cuda_target(&t, architecture[seed % 3]));
        char what[40];
        snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        kernels += compile_graph(g, &t, what);
        graph_free(g);
        g = graph_of_all_ops(seed);
        kernels += compile_graph(g, &t, what);
        graph_free(g);
    }
    cr_log_info("%u kernels of %u graphs compiled", kernels, graphs);
}

// ---- on a GPU

static struct device *gpu;


static void
run_on_gpu(const struct graph *g, uint64_t seed, bool any, struct tally *tally)
{
    struct diag d = {0};
    char where[200];
    uint32_t n = g->inputs.n, m = g->outputs.n;
    struct tensor *in = xcalloc(n + 1, sizeof *in);
    struct guarded *mem = xcalloc(n + 1, sizeof *mem);
    void **at = xcalloc(n + 1, sizeof *at), **block = xcalloc(n + 1, sizeof *block);
    void **result = xcalloc(m + 1, sizeof *result);
    void **want = outputs_of(g), **got = outputs_of(g);
    for (uint32_t i = 0; i < n; i++) {
        mem[i] = any ? any_input(g, i, seed, true, &in[i]) : gen_input(g, i, seed, true, &in[i]);
        int64_t bytes = (int64_t)mem[i].bytes;
        block[i] = gpu->ops->alloc(gpu, bytes);
        cr_assert(gpu->ops->upload(gpu, block[i], mem[i].data, bytes, &d), "%s", d.text);
        at[i] = (char *)block[i] + ((char *)in[i].data - (char *)mem[i].data);
    }
    for (uint32_t i = 0; i < m; i++)
        result[i] = gpu->ops->alloc(gpu, (int64_t)output_bytes(g, i));
    if (!run_fused(g, in, want, NULL, NULL, &d))
        cr_assert_fail("seed %llu: %s", (unsigned long long)seed, d.text);
    struct plan *p = plan_build(g, &gpu->target, NULL, &d);
    cr_assert(p, "seed %llu: %s", (unsigned long long)seed, d.text);
    struct executable *e = executable_new(p, gpu, &d);
    cr_assert(e, "seed %llu: %s", (unsigned long long)seed, d.text);
    cr_assert(executable_run(e, at, result, &d), "seed %llu: %s", (unsigned long long)seed, d.text);
    for (uint32_t i = 0; i < m; i++)
        cr_assert(gpu->ops->download(gpu, got[i], result[i], (int64_t)output_bytes(g, i), &d), "%s",
                  d.text);
    if (!compare_outputs(g, want, got, tally, where))
        fail_with(g, seed, "the GPU and the kernel interpreter differ", where);
    executable_unref(e);
    for (uint32_t i = 0; i < n; i++) {
        gpu->ops->release(gpu, block[i], (int64_t)mem[i].bytes);
        guarded_free(&mem[i]);
    }
    for (uint32_t i = 0; i < m; i++)
        gpu->ops->release(gpu, result[i], (int64_t)output_bytes(g, i));
    free_outputs(g, want);
    free_outputs(g, got);
    xfree(in);
    xfree(mem);
    xfree(at);
    xfree(block);
    xfree(result);
}

Test(cuda, random_graphs_give_the_interpreters_bits, .timeout = 500)
{
    struct diag d = {0};
    struct tally tally = {0};
    gpu = device_open("cuda:0", 0, 0, &d);
    if (!gpu)
        cr_skip_test("%s", d.text);
    uint32_t graphs = seed_count(150);
    for (uint64_t seed = seed_first(); seed < seed_first() + graphs; seed++) {
        struct graph *g = random_graph(seed);
        run_on_gpu(g, seed, false, &tally);
        tally.graphs++;
        graph_free(g);
    }
    for (uint64_t seed = seed_first(); seed < seed_first() + graphs; seed++) {
        struct graph *g = graph_of_all_ops(seed);
        run_on_gpu(g, seed, true, &tally);
        tally.graphs++;
        graph_free(g);
    }
    for (uint32_t i = 0; i < LARGE; i++)
        for (uint32_t again = 0; again < 2; again++) {
            struct graph *g = large_graph(i);
            run_on_gpu(g, i + 1000 * again, false, &tally);
            graph_free(g);
        }
    struct device_counters c;
    gpu->counters(gpu, &c);
    cr_log_info("%llu graphs, %llu elements, %lld launches, %lld kernels compiled",
                (unsigned long long)tally.graphs, (unsigned long long)tally.elements,
                (long long)c.kernels, (long long)c.compiles);
    device_close(gpu);
}

// workloads.c: the benchmark graphs and the least-traffic list: how many kernels, how many bytes;
// the plan's figures against what the kernel interpreter counts and what the device launches.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

// What PyTorch's own performance tests count, in elements of f32 read plus written by all kernels;
// x and y are [10, 10], v and w [10]. The last two they miss.
static const struct {
    const char *text;
    int64_t elements;
} least[] = {
    {"graph @g(%v: f32[10]) { return cos %v }", 20},
    {"graph @g(%v: f32[10], %w: f32[10]) { return add %v, %w }", 30},
    {"graph @g(%v: f32[10]) { return add %v, %v }", 20},
    {"graph @g(%x: f32[10,10], %v: f32[10]) { return add %x, %v }", 210},
    {"graph @g(%x: f32[10,10], %y: f32[10,10]) { return add %x, %y }", 300},
    {"graph @g(%x: f32[10,10]) { return add %x, (permute %x {axes=[1,0]}) }", 200},
    {"graph @g(%x: f32[10,10]) { return sum %x {axes=[1]} }", 110},
    {"graph @g(%x: f32[10,10]) { return sum %x {axes=[0]} }", 110},
    {"graph @g(%v: f32[10], %w: f32[10]) { return concat (sin %v), (sin %w) {axis=0} }", 40},
    {"graph @g(%v: f32[10]) { return concat (cos %v), (sin %v) {axis=0} }", 30},
    {"graph @g(%x: f32[10,10]) { return sum %x {axes=[1]}, cos %x }", 210},
    {"graph @g(%x: f32[10,10]) { return sum %x {axes=[1]}, max %x {axes=[1]} }", 120},
    {"graph @g(%x: f32[10,10], %v: f32[10])"
     "{ return mul (sum %x {axes=[1], keepdims=true}), (cos %v) }", 210},
    {"graph @g(%x: f32[10,10]) { return cos (sum (cos %x) {axes=[1]}) }", 110},
    {"graph @g(%x: f32[10,10]) { return softmax %x {axis=1} }", 200},
    {"graph @g(%x: f32[10,10]) { return softmax (softmax %x {axis=1}) {axis=1} }", 200},
    {"graph @g(%x: f32[10,10], %w: f32[10], %b: f32[10])"
     "{ return layer_norm %x, %w, %b {eps=1e-5} }", 220},
    {"graph @g(%g: f32[10,10], %y: f32[10,10]) { %t = mul %g, %y\n"
     "return sub %t, (mul %y, (sum %t {axes=[1], keepdims=true})) }", 300},
    {"graph @g(%a: f32[10,1,4], %b: f32[1,10,4]) { %d = sub %a, %b\n"
     "return max (sum (mul %d, %d) {axes=[2]}) {axes=[1]} }", 90},
    {"graph @g(%x: f32[10,10], %i: i64[10])"
     "{ return sum (cos (take %x, %i {axis=0})) {axes=[1]} }", 140},
    {"graph @g(%x: f32[10,10]) { return softmax %x {axis=0} }", 200},
    {"graph @g(%x: f32[10,10]) { return sum %x {axes=[0]}, cos %x }", 210},
};

static struct graph *
parse(const char *text, const char *name)
{
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), name, &d);
    cr_assert(g, "%s", d.text);
    return g;
}

// Integers may be positions: in range of every workload.
static void
fill_positions(const struct tensor *t)
{
    if (t->dtype == DT_i64 || t->dtype == DT_i32)
        for (int64_t k = 0; k < tensor_count(t); k++)
            scalar_store(t->dtype, (char *)t->data + k * dtype_size(t->dtype), (uint64_t)(k % 10));
}

// The bytes that interpretation of every kernel counts, per launch, against the plan's.
static void
check_counts(const struct graph *g, const struct target *t, const char *what)
{
    struct diag d = {0};
    struct plan *p = plan_build(g, t, NULL, &d);
    cr_assert(p, "%s: %s", what, d.text);
    struct tensor in[8];
    struct guarded mem[8];
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        mem[i] = gen_input(g, i, 5, true, &in[i]);
        fill_positions(&in[i]);
    }
    void **out = outputs_of(g);
    char *arena = xcalloc((size_t)p->arena_bytes + 64, 1);
    for (uint32_t i = 0; i < p->launch.n; i++) {
        const struct launch *l = &p->launch.at[i];
        void *ptr[64];
        for (uint32_t b = 0; b < l->kernel.buffers.n; b++) {
            const struct plan_buffer *pb = &p->buffer.at[l->buffer[b]];
            ptr[b] = pb->place == PLACE_INPUT    ? in[pb->index].data
                     : pb->place == PLACE_OUTPUT ? out[pb->index]
                                                 : arena + pb->offset;
        }
        struct kernel_counts c = {0};
        cr_assert(interp_kernel(&l->kernel, ptr, t->l2, &c, NULL, &d), "%s: %s", what, d.text);
        if (l->kernel.cls == CLASS_CONTRACT)
            continue; // counted in plain m, n, k order there, by tiles here
        cr_expect_eq(c.bytes_read, l->bytes_read, "%s, %s reads %lld, the plan says %lld", what,
                     l->kernel.name, (long long)c.bytes_read, (long long)l->bytes_read);
        cr_expect_eq(c.bytes_written, l->bytes_written, "%s, %s writes %lld, the plan says %lld",
                     what, l->kernel.name, (long long)c.bytes_written,
                     (long long)l->bytes_written);
    }
    xfree(arena);
    free_outputs(g, out);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&mem[i]);
    plan_free(p);
}

Test(workloads, least_traffic_list)
{
    struct target t = test_target();
    for (uint32_t i = 0; i < sizeof least / sizeof *least; i++) {
        struct graph *g = parse(least[i].text, "least");
        struct diag d = {0};
        struct plan *p = plan_build(g, &t, NULL, &d);
        cr_assert(p, "%s", d.text);
        cr_expect_leq(p->traffic_elements, least[i].elements, "%s: %lld elements, at most %lld",
                      least[i].text, (long long)p->traffic_elements, (long long)least[i].elements);
        cr_expect_eq(p->launch.n, 1, "%s: %u kernels", least[i].text, p->launch.n);
        plan_free(p);
        check_counts(g, &t, least[i].text);
        graph_free(g);
    }
}

// The suite: kernels, and whether the traffic must equal the least possible.
static const struct {
    const char *name;
    uint32_t kernels;
    bool least;
} suite[] = {
    {"add_relu", 1, true},          {"bias_gelu_residual_f32", 1, true},
    {"bias_gelu_residual_bf16", 1, true}, {"softmax_f32", 1, true},
    {"softmax_bf16", 1, true},      {"layernorm_f32", 1, true},
    {"rmsnorm_bf16", 1, true},      {"swiglu_bf16", 1, true},
    {"sum_all_f32", 1, true},       {"colsum_f32", 1, true},
    {"var_rows_f32", 1, true},      {"transpose_add_f32", 1, true},
    {"cross_entropy_fwd", 1, true}, {"adam_f32", 1, true},
    {"matmul_bias_gelu", 1, false}, {"mlp_784_128_10_b64", 2, false},
    {"mlp_u8_784_128_10_b1", 2, false},
    {"attention_naive", 3, false},  {"black_scholes_f32", 1, true},
    {"scale_mask_softmax_f32", 1, true}, {"huber_loss_f32", 1, true},
    {"blend_u8", 1, true},          {"mix_i16", 1, true},
    {"sort_f32", 1, true},          {"sort_long_f32", 1, true},
    {"argsort_i32", 1, true},       {"topk_f32", 1, true},
    {"median_f32", 2, false},
    {"hash_i32", 1, true},          {"sum_i32", 1, true},
    {"count_positive_f32", 1, true}, {"argmax_f32", 1, true},
    {"add_relu_f16", 1, true},      {"layernorm_f16", 1, true},
    {"cumsum_f32", 1, true},        {"cumsum_columns_f32", 1, true},
    {"cumsum_long_f32", 1, false},  {"running_mean_f32", 1, true},
    {"embedding_f32", 1, false},    {"embedding_grad_f32", 1, false},
    {"histogram_u8", 1, true},      {"histogram_64k", 1, true},
    {"dynamic_slice_f32", 1, false}, {"slice_update_f32", 1, true},
    {"one_hot_f32", 1, true},
};

static struct graph *
load(const char *name)
{
    char path[500], *text = xcalloc(1 << 16, 1);
    snprintf(path, sizeof path, "%s/%s.fuse", GRAPH_DIR, name);
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    cr_assert_gt(fread(text, 1, (1 << 16) - 1, f), 0);
    fclose(f);
    struct graph *g = parse(text, path);
    xfree(text);
    return g;
}

Test(workloads, kernels_and_least_traffic)
{
    struct target t = test_target();
    for (uint32_t i = 0; i < sizeof suite / sizeof *suite; i++) {
        struct graph *g = load(suite[i].name);
        struct diag d = {0};
        struct plan *p = plan_build(g, &t, NULL, &d);
        cr_assert(p, "%s", d.text);
        cr_expect_eq(p->launch.n, suite[i].kernels, "%s: %u kernels, not %u", suite[i].name,
                     p->launch.n, suite[i].kernels);
        if (suite[i].least)
            cr_expect_eq(p->traffic_bytes, p->minimum_bytes, "%s: traffic %lld, least %lld",
                         suite[i].name, (long long)p->traffic_bytes, (long long)p->minimum_bytes);
        cr_expect_leq(p->peak_bytes, p->eager_peak_bytes, "%s: peak", suite[i].name);
        plan_free(p);
        graph_free(g);
    }
}

static void
shrink(struct graph *g)
{
    static const struct {
        const char *name;
        int64_t n;
    } dim[] = {{"M", 48}, {"N", 200}, {"V", 300}, {"K", 64},
               {"B", 2},  {"H", 2},   {"T", 24},  {"D", 16}};
    for (uint32_t i = 0; i < sizeof dim / sizeof *dim; i++)
        sym_set_hint(g->sym, dim[i].name, dim[i].n);
}

Test(workloads, plan_figures_are_what_the_interpreter_counts)
{
    for (uint32_t i = 0; i < sizeof suite / sizeof *suite; i++) {
        struct target t = test_target();
        struct graph *g = load(suite[i].name);
        shrink(g);
        check_counts(g, &t, suite[i].name);
        graph_free(g);
    }
}

// Schedules divide work among threads: any number of them must come to an end.
Test(workloads, plans_for_any_number_of_threads)
{
    for (uint32_t i = 0; i < sizeof suite / sizeof *suite; i++) {
        struct graph *g = load(suite[i].name);
        for (uint32_t threads = 1; threads <= 130; threads += threads < 34 ? 1 : 24) {
            struct target t = test_target();
            struct diag d = {0};
            t.units = threads;
            struct plan *p = plan_build(g, &t, NULL, &d);
            cr_assert(p, "%s", d.text);
            for (uint32_t k = 0; k < p->launch.n; k++)
                cr_expect_geq(p->launch.at[k].sched.units, 1, "%s, %u threads", suite[i].name,
                              threads);
            plan_free(p);
        }
        graph_free(g);
    }
}

Test(workloads, contractions_of_any_size_for_any_number_of_threads)
{
    struct rng r = {11};
    for (uint32_t i = 0; i < 4000; i++) {
        char text[300];
        struct target t = test_target();
        struct diag d = {0};
        t.units = 1 + rng_below(&r, 64);
        uint32_t m = 1 + rng_below(&r, 1u << rng_below(&r, 13));
        uint32_t n = 1 + rng_below(&r, 1u << rng_below(&r, 13));
        uint32_t k = 1 + rng_below(&r, 1u << rng_below(&r, 13));
        bool at = rng_below(&r, 2), bt = rng_below(&r, 2);
        snprintf(text, sizeof text,
                 "graph @g(%%a: f32[%u, %u], %%b: f32[%u, %u]) { return matmul %s, %s }",
                 at ? k : m, at ? m : k, bt ? n : k, bt ? k : n,
                 at ? "(permute %a {axes = [1, 0]})" : "%a",
                 bt ? "(permute %b {axes = [1, 0]})" : "%b");
        struct graph *g = parse(text, "contraction");
        struct plan *p = plan_build(g, &t, NULL, &d);
        cr_assert(p, "%s: %s", text, d.text);
        cr_expect_geq(p->launch.at[0].sched.units, 1, "%s", text);
        plan_free(p);
        graph_free(g);
    }
}

Test(workloads, launches_at_run_time_equal_the_plan)
{
    struct diag d = {0};
    struct device *dev = device_open("cpu", 2, 0, &d);
    cr_assert(dev, "%s", d.text);
    for (uint32_t i = 0; i < sizeof suite / sizeof *suite; i++) {
        struct graph *g = load(suite[i].name);
        shrink(g);
        struct tensor in[8];
        struct guarded mem[8];
        void *ptr[8];
        for (uint32_t k = 0; k < g->inputs.n; k++) {
            mem[k] = gen_input(g, k, 5, true, &in[k]);
            ptr[k] = in[k].data;
            fill_positions(&in[k]);
        }
        void **out = outputs_of(g);
        struct plan *p = plan_build(g, &dev->target, NULL, &d);
        cr_assert(p, "%s", d.text);
        uint32_t planned = p->launch.n;
        struct executable *e = executable_new(p, dev, &d);
        cr_assert(e, "%s", d.text);
        struct device_counters before, after;
        dev->counters(dev, &before);
        cr_assert(executable_run(e, ptr, out, &d), "%s", d.text);
        dev->counters(dev, &after);
        cr_expect_eq(after.kernels - before.kernels, planned, "%s", suite[i].name);
        executable_unref(e);
        free_outputs(g, out);
        for (uint32_t k = 0; k < g->inputs.n; k++)
            guarded_free(&mem[k]);
        graph_free(g);
    }
    device_close(dev);
}

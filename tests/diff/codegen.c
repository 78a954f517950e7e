// codegen.c: generated code computes what the kernel interpreter computes, bit for bit, fused and
// op by op, with one thread and two, with every buffer ending (even seeds: beginning) at an
// inaccessible page. FUSEC_SEEDS=10000 runs the long version by hand.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>

struct devices {
    struct device *one, *two;
};

static struct devices
open_devices(void)
{
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct devices v = {device_open("cpu", 1, 0, &d), device_open("cpu", 2, DEVICE_TIERED, &d)};
    cr_assert(v.one && v.two, "%s", d.text);
    return v;
}

static void
guarded_outputs(const struct graph *g, struct guarded *mem, void **out, bool at_end)
{
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        mem[i] = guarded_alloc(output_bytes(g, i), at_end);
        out[i] = mem[i].data;
    }
}

// Takes the graph.
static void
compare_graph(struct graph *g, uint64_t seed, const struct compile_options *co, struct devices v,
              struct tally *t)
{
    struct tensor in[8];
    struct guarded mem[8], out_mem[8];
    bool at_end = seed & 1;
    for (uint32_t i = 0; i < g->inputs.n; i++)
        mem[i] = gen_input(g, i, seed, at_end, &in[i]);
    void *fused[8], **threads = outputs_of(g), **eager = outputs_of(g), **model = outputs_of(g);
    guarded_outputs(g, out_mem, fused, at_end);
    struct diag d = {0};
    char where[200];
    if (!run_fused(g, in, model, NULL, co, &d) || !run_fused(g, in, fused, v.one, co, &d) ||
        !run_fused(g, in, threads, v.two, co, &d) || !run_eager(g, in, eager, v.one, co, &d))
        fail_with(g, seed, "did not run", d.text);
    if (!compare_outputs(g, fused, model, t, where))
        fail_with(g, seed, "generated code and the kernel interpreter differ", where);
    if (!compare_outputs(g, threads, fused, t, where))
        fail_with(g, seed, "two threads and one differ", where);
    if (!compare_outputs(g, fused, eager, t, where))
        fail_with(g, seed, "fused and op by op differ", where);
    t->graphs++;
    free_outputs(g, threads);
    free_outputs(g, eager);
    free_outputs(g, model);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&mem[i]);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        guarded_free(&out_mem[i]);
    graph_free(g);
}

static void
sweep_on(struct devices v, struct gen_options o, const struct compile_options *co, uint32_t n)
{
    struct tally t = {0};
    uint32_t first = seed_first();
    for (uint32_t i = 0; i < seed_count(n); i++) {
        o.seed = first + i;
        compare_graph(gen_graph(&o), o.seed, co, v, &t);
    }
    device_close(v.one);
    device_close(v.two);
    cr_log_info("%llu graphs, %llu comparisons, %.0f %% finite", (unsigned long long)t.graphs,
                (unsigned long long)t.elements, 100.0 * (double)t.finite / (double)t.elements);
}

static void
sweep(struct gen_options o, const struct compile_options *co, uint32_t n)
{
    sweep_on(open_devices(), o, co, n);
}

// Rows of less than a vector, many of them: each lane has a row, and the last lanes have none.
static struct graph *
short_rows(uint64_t seed)
{
    static const char *const form[] = {
        "softmax %%v%u {axis = 1}",
        "log_softmax %%v%u {axis = 1}",
        "layer_norm %%v%u, %%w, %%w",
        "sub %%v%u, (max %%v%u {axes = [1], keepdims = true})",
        "div %%v%u, (sum (abs %%v%u) {axes = [1], keepdims = true})",
        "mul %%v%u, (rsqrt (var %%v%u {axes = [1], keepdims = true}))",
        "mul (flip %%v%u {axes = [1]}), (min %%v%u {axes = [1], keepdims = true})",
        "pow (abs %%v%u), (mean %%v%u {axes = [1], keepdims = true})",
    };
    static const char *const last[] = {"mul %%v%u, 2", "sum %%v%u {axes = [1]}",
                                       "argmax %%v%u {axes = [1]}",
                                       "var %%v%u {axes = [1], correction = 1}"};
    struct rng r = {seed};
    struct str s = {0};
    struct diag d = {0};
    uint32_t rows = 64 + rng_below(&r, 200), n = 1 + rng_below(&r, 17);
    uint32_t steps = 1 + rng_below(&r, 3);
    const char *t = rng_below(&r, 3) ? "f32" : "f64";
    str_printf(&s, "graph @rows(%%v0: %s[%u, %u], %%w: %s[%u]) {\n", t, rows, n, t, n);
    for (uint32_t i = 0; i < steps; i++) {
        str_printf(&s, "  %%v%u = ", i + 1);
        str_printf(&s, form[rng_below(&r, sizeof form / sizeof *form)], i, i);
        str_addc(&s, '\n');
    }
    str_add(&s, "  %out = ");
    str_printf(&s, last[rng_below(&r, sizeof last / sizeof *last)], steps);
    str_add(&s, "\n  return %out\n}\n");
    struct graph *g = graph_parse(str_text(&s), s.n, "rows", &d);
    cr_assert(g, "%s\n%s", d.text, str_text(&s));
    str_free(&s);
    return g;
}

Test(codegen, short_rows)
{
    struct devices v = open_devices();
    struct tally t = {0};
    for (uint32_t i = 0; i < seed_count(30); i++)
        compare_graph(short_rows(seed_first() + i), seed_first() + i, NULL, v, &t);
    device_close(v.one);
    device_close(v.two);
    cr_log_info("%llu comparisons, %.0f %% finite", (unsigned long long)t.elements,
                100.0 * (double)t.finite / (double)t.elements);
}

// With caches so small that arrays of a few KiB are treated as those beyond the last level:
// streaming stores, prefetches, large transposing tiles, many blocks.
static void
sweep_small_caches(struct gen_options o, uint32_t n)
{
    struct devices v = open_devices();
    struct target *t[] = {&v.one->target, &v.two->target};
    for (int i = 0; i < 2; i++) {
        t[i]->units = i ? 3 : 1;
        t[i]->l1 = 1 << 10;
        t[i]->l2 = 2 << 10;
        t[i]->llc = 4 << 10;
    }
    sweep_on(v, o, NULL, n);
}

Test(codegen, pointwise)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 40, .max_extent = 70, .strided = true,
                               .mixed = true, .views = true, .math = true, .composites = true},
          NULL, 60);
}

Test(codegen, pointwise_f32)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 40, .max_extent = 70, .strided = true,
                               .dtype = DT_f32, .views = true, .math = true, .composites = true},
          NULL, 40);
}

Test(codegen, reductions)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 20, .max_extent = 300, .strided = true,
                               .mixed = true, .views = true, .math = true, .composites = true,
                               .reductions = true},
          NULL, 60);
}

Test(codegen, matmuls)
{
    sweep((struct gen_options){.min_ops = 4, .max_ops = 14, .max_extent = 40, .reductions = true,
                               .matmul = true, .dtype = DT_f32},
          NULL, 40);
}

Test(codegen, orders)
{
    sweep((struct gen_options){.min_ops = 1, .max_ops = 10, .max_extent = 300, .strided = true,
                               .mixed = true, .half = true, .views = true, .reductions = true,
                               .orders = true},
          &(struct compile_options){.strict = true}, 60);
}

Test(codegen, small_caches_pointwise)
{
    sweep_small_caches((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 300,
                                            .strided = true, .mixed = true, .views = true,
                                            .composites = true}, 20);
}

Test(codegen, small_caches_reductions)
{
    sweep_small_caches((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 300,
                                            .strided = true, .mixed = true, .views = true,
                                            .composites = true, .reductions = true}, 20);
}

Test(codegen, small_caches_matmuls)
{
    sweep_small_caches((struct gen_options){.min_ops = 4, .max_ops = 14, .max_extent = 60,
                                            .reductions = true, .matmul = true, .views = true,
                                            .dtype = DT_f32}, 15);
}

Test(codegen, half_types_with_strict)
{
    struct compile_options strict = {.strict = true};
    sweep((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 70, .math = true,
                               .composites = true, .views = true, .mixed = true, .half = true,
                               .reductions = true},
          &strict, 40);
}

// A graph whose inputs are literals folds to constants; it must give what the code gives.
Test(codegen, folded_constants_equal_generated_code)
{
    struct devices v = open_devices();
    for (uint32_t i = 0; i < seed_count(60); i++) {
        struct gen_options o = {.seed = seed_first() + i, .min_ops = 2, .max_ops = 20,
                                .mixed = true, .math = true, .composites = true, .scalar = true};
        struct graph *g = gen_graph(&o);
        o.literal_inputs = true;
        struct graph *h = gen_graph(&o);
        struct tensor in[8];
        struct guarded mem[8];
        for (uint32_t k = 0; k < g->inputs.n; k++)
            mem[k] = gen_input(g, k, o.seed, true, &in[k]);
        void **code = outputs_of(g), **folded = outputs_of(h);
        struct diag d = {0};
        struct tally t = {0};
        char where[200];
        if (!run_fused(g, in, code, v.one, NULL, &d) ||
            !run_fused(h, NULL, folded, v.one, NULL, &d))
            fail_with(g, o.seed, "did not run", d.text);
        if (!compare_outputs(g, code, folded, &t, where))
            fail_with(g, o.seed, "folded and generated code differ", where);
        free_outputs(g, code);
        free_outputs(h, folded);
        for (uint32_t k = 0; k < g->inputs.n; k++)
            guarded_free(&mem[k]);
        graph_free(g);
        graph_free(h);
    }
    device_close(v.one);
    device_close(v.two);
}

// codegen.c: generated code computes what the kernel interpreter computes, bit for bit, fused and
// op by op, with one thread and two, with every buffer ending (even seeds: beginning) at an
// inaccessible page. FUSEC_SEEDS=10000 runs the long version by hand.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"

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
    struct devices v = {device_open("cpu", 1, &d), device_open("cpu", 2, &d)};
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

static void
one_seed(const struct gen_options *o, const struct compile_options *co, struct devices v,
         struct tally *t)
{
    struct graph *g = gen_graph(o);
    struct tensor in[8];
    struct guarded mem[8], out_mem[8];
    bool at_end = o->seed & 1;
    for (uint32_t i = 0; i < g->inputs.n; i++)
        mem[i] = gen_input(g, i, o->seed, at_end, &in[i]);
    void *fused[8], **threads = outputs_of(g), **eager = outputs_of(g), **model = outputs_of(g);
    guarded_outputs(g, out_mem, fused, at_end);
    struct diag d = {0};
    char where[200];
    if (!run_fused(g, in, model, NULL, co, &d) || !run_fused(g, in, fused, v.one, co, &d) ||
        !run_fused(g, in, threads, v.two, co, &d) || !run_eager(g, in, eager, v.one, co, &d))
        fail_with(g, o->seed, "did not run", d.text);
    if (!compare_outputs(g, fused, model, t, where))
        fail_with(g, o->seed, "generated code and the kernel interpreter differ", where);
    if (!compare_outputs(g, threads, fused, t, where))
        fail_with(g, o->seed, "two threads and one differ", where);
    if (!compare_outputs(g, fused, eager, t, where))
        fail_with(g, o->seed, "fused and op by op differ", where);
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
sweep(struct gen_options o, const struct compile_options *co, uint32_t n)
{
    struct devices v = open_devices();
    struct tally t = {0};
    uint32_t first = seed_first();
    for (uint32_t i = 0; i < seed_count(n); i++) {
        o.seed = first + i;
        one_seed(&o, co, v, &t);
    }
    device_close(v.one);
    device_close(v.two);
    cr_log_info("%llu graphs, %llu comparisons, %.0f %% finite", (unsigned long long)t.graphs,
                (unsigned long long)t.elements, 100.0 * (double)t.finite / (double)t.elements);
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
        if (!run_fused(g, in, code, v.one, NULL, &d) || !run_fused(h, NULL, folded, v.one, NULL, &d))
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

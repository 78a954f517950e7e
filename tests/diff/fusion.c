// fusion.c: fusing never changes a bit. Random graphs run as one plan and op by op, both through
// the kernel interpreter, so that fusion is tested apart from code generation; graphs of exact ops
// must also equal the graph interpreter, which shares nothing with plans but the op table.
#include "tests/support/run_plan.h"
#include "tests/support/graph_gen.h"

#include "ir/text.h"

#include <criterion/criterion.h>
#include <string.h>

static void
one_graph(struct graph *g /* taken */, uint64_t seed, bool exact, const struct compile_options *co,
          struct tally *t)
{
    struct tensor in[8], ref_out[8];
    struct guarded mem[8];
    for (uint32_t i = 0; i < g->inputs.n; i++)
        mem[i] = gen_input(g, i, seed, seed & 1, &in[i]);
    void **fused = outputs_of(g), **eager = outputs_of(g), *oracle[8];
    struct diag d = {0};
    char where[200];
    if (!run_fused(g, in, fused, NULL, co, &d) || !run_eager(g, in, eager, NULL, co, &d))
        fail_with(g, seed, "did not run", d.text);
    if (!compare_outputs(g, fused, eager, t, where))
        fail_with(g, seed, "fused and eager differ", where);
    if (exact) {
        if (!interp_graph(g, in, ref_out, &d))
            fail_with(g, seed, "interpreter", d.text);
        for (uint32_t i = 0; i < g->outputs.n; i++)
            oracle[i] = ref_out[i].data;
        if (!compare_outputs(g, fused, oracle, t, where))
            fail_with(g, seed, "fused and the graph interpreter differ", where);
        for (uint32_t i = 0; i < g->outputs.n; i++)
            xfree(oracle[i]);
    }
    t->graphs++;
    free_outputs(g, fused);
    free_outputs(g, eager);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&mem[i]);
    graph_free(g);
}

static void
sweep(struct gen_options o, bool exact, const struct compile_options *co, uint32_t n)
{
    struct tally t = {0};
    uint32_t first = seed_first();
    for (uint32_t i = 0; i < seed_count(n); i++) {
        o.seed = first + i;
        one_graph(gen_graph(&o), o.seed, exact, co, &t);
    }
    cr_log_info("%llu graphs, %llu elements, %.0f %% finite", (unsigned long long)t.graphs,
                (unsigned long long)t.elements, 100.0 * (double)t.finite / (double)t.elements);
}

Test(fusion, exact_pointwise_equals_the_interpreter)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 20, .max_extent = 40, .strided = true,
                               .mixed = true, .views = true},
          true, NULL, 300);
}

Test(fusion, pointwise_with_math_functions)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 20, .max_extent = 40, .math = true,
                               .composites = true, .views = true, .mixed = true, .strided = true},
          false, NULL, 200);
}

Test(fusion, reductions_and_views)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 60, .math = true,
                               .composites = true, .views = true, .reductions = true,
                               .strided = true},
          false, NULL, 200);
}

Test(fusion, orders_equal_the_interpreter)
{
    sweep((struct gen_options){.min_ops = 1, .max_ops = 12, .max_extent = 40, .views = true,
                               .strided = true, .mixed = true, .orders = true},
          true, NULL, 200);
}

Test(fusion, orders_and_reductions)
{
    sweep((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 40, .views = true,
                               .mixed = true, .reductions = true, .composites = true, .math = true,
                               .orders = true},
          false, NULL, 100);
}

Test(fusion, matmuls)
{
    sweep((struct gen_options){.min_ops = 4, .max_ops = 14, .max_extent = 20, .reductions = true,
                               .matmul = true, .dtype = DT_f32},
          false, NULL, 100);
}

Test(fusion, factors_that_are_the_same_for_all_k)
{
    static const char *const graphs[] = {
        "graph @outer(%x: f32[4, 1], %y: f32[1, 5]) { return matmul %x, %y }",
        "graph @one(%x: f32[1, 1], %y: f32[1, 1]) { return matmul %x, %y }",
        "graph @rows(%x: f32[4, 1], %y: f32[3, 5]) {\n"
        "  return matmul (broadcast %x {shape = [4, 3]}), %y }",
        "graph @constant(%y: f32[3, 5]) {\n"
        "  return matmul (broadcast 2.0:f32 {shape = [4, 3]}), (neg %y) }",
    };
    struct tally t = {0};
    for (uint32_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct diag d = {0};
        struct graph *g = graph_parse(graphs[i], strlen(graphs[i]), "factors", &d);
        cr_assert(g, "%s", d.text);
        one_graph(g, i, false, NULL, &t);
    }
}

Test(fusion, half_types_with_strict)
{
    struct compile_options strict = {.strict = true};
    sweep((struct gen_options){.min_ops = 2, .max_ops = 16, .max_extent = 40, .math = true,
                               .composites = true, .views = true, .mixed = true, .half = true,
                               .reductions = true},
          false, &strict, 200);
}

// Graphs past the budgets of one kernel: values are cut off, stored and read again.
Test(fusion, large_graphs)
{
    sweep((struct gen_options){.min_ops = 60, .max_ops = 200, .max_extent = 12, .math = true,
                               .composites = true, .views = true, .reductions = true,
                               .strided = true, .mixed = true},
          false, NULL, 60);
}

// Whether the graph interpreter gives different results for two graphs of the same outputs.
static bool
interpreter_differs(const struct graph *g, const struct graph *h, const struct tensor *in)
{
    struct tensor a[8], b[8];
    void *pa[8], *pb[8];
    struct diag d = {0};
    struct tally t = {0};
    char where[200];
    cr_assert(interp_graph(g, in, a, &d) && interp_graph(h, in, b, &d), "%s", d.text);
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        pa[i] = a[i].data;
        pb[i] = b[i].data;
    }
    bool differs = !compare_outputs(g, pa, pb, &t, where);
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        xfree(pa[i]);
        xfree(pb[i]);
    }
    return differs;
}

Test(fusion, a_swapped_op_is_noticed)
{
    // Two graphs from one seed, one with add and sub swapped: their plans must differ in some
    // element exactly where the interpreter says that the swap shows.
    struct gen_options o = {.min_ops = 12, .max_ops = 20, .max_extent = 8, .dtype = DT_f32};
    uint32_t shows = 0;
    for (o.seed = 1; o.seed <= 240; o.seed++) {
        o.swapped_op = OP_none;
        struct graph *g = gen_graph(&o);
        o.swapped_op = OP_add;
        struct graph *h = gen_graph(&o);
        struct tensor in[8];
        struct guarded mem[8];
        for (uint32_t i = 0; i < g->inputs.n; i++)
            mem[i] = gen_input(g, i, o.seed, true, &in[i]);
        void **a = outputs_of(g), **b = outputs_of(h);
        struct diag d = {0};
        struct tally t = {0};
        char where[200];
        cr_assert(run_fused(g, in, a, NULL, NULL, &d), "%s", d.text);
        cr_assert(run_fused(h, in, b, NULL, NULL, &d), "%s", d.text);
        bool differs = interpreter_differs(g, h, in);
        cr_assert_eq(!compare_outputs(g, a, b, &t, where), differs, "seed %llu",
                     (unsigned long long)o.seed);
        shows += differs;
        free_outputs(g, a);
        free_outputs(h, b);
        for (uint32_t i = 0; i < g->inputs.n; i++)
            guarded_free(&mem[i]);
        graph_free(g);
        graph_free(h);
    }
    cr_assert_geq(shows, 10, "only %u of 240 graphs show a swapped op", shows);
    cr_log_info("%u of 240 graphs show it", shows);
}

// pipeline.c: what tools may ask of compilation: to be told of each pass, and to stop after so many
// merges, one kernel less for each; and that it ends on machines of any size, for shapes of any.
#include "ir/base/str.h"
#include "ir/composite.h"
#include "ir/text.h"
#include "passes/plan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct target target = {
    .kind = DEVICE_CPU, .arch = "none", .units = 8, .vec_bytes = 64, .l1 = 32 << 10,
    .l2 = 1 << 20, .llc = 32 << 20,
};

// Softmax op by op: four loops that fuse into one.
static const char text[] = "graph @f(%x: f32[512, 4096]) {\n"
                           "  %m = max %x {axes = [1], keepdims = true}\n"
                           "  %e = exp (sub %x, %m)\n"
                           "  %s = sum %e {axes = [1], keepdims = true}\n"
                           "  return div %e, %s\n"
                           "}\n";

static struct graph *
parsed(const char *source)
{
    struct diag d = {0};
    struct graph *g = graph_parse(source, strlen(source), "text", &d);
    cr_assert_not_null(g, "%s", d.text);
    return g;
}

static uint32_t
kernels(const struct compile_options *o)
{
    struct diag d = {0};
    struct graph *g = parsed(text);
    struct plan *p = plan_build(g, &target, o, &d);
    cr_assert_not_null(p, "%s", d.text);
    uint32_t n = p->launch.n;
    plan_free(p);
    graph_free(g);
    return n;
}

Test(pipeline, stops_after_n_merges)
{
    cr_assert_eq(kernels(NULL), 1);
    uint32_t before = kernels(&(struct compile_options){.stop_after = 1});
    cr_assert_gt(before, 1);
    for (uint32_t n = 2; before > 1; n++) {
        uint32_t now = kernels(&(struct compile_options){.stop_after = n});
        cr_assert_eq(now, before - 1, "merge %u: %u kernels, then %u", n, before, now);
        before = now;
    }
}

static void
note(void *user, const char *pass, const struct graph *g, double us)
{
    cr_expect(g->outputs.n == 1 && us >= 0);
    str_printf(user, "%s ", pass);
}

Test(pipeline, tells_of_each_pass)
{
    struct str told = {0};
    kernels(&(struct compile_options){.after_pass = note, .user = &told});
    cr_assert_str_eq(str_text(&told), "canon rounding decompose canon fuse ");
    str_free(&told);
}

// Schedules are chosen before buffers have their final spans.
Test(pipeline, long_arrays_are_fetched_ahead_and_streamed)
{
    for (int big = 0; big < 2; big++) {
        struct diag d = {0};
        struct graph *g = parsed(big ? text : "graph @f(%x: f32[16, 4096]) { return softmax %x }");
        struct plan *p = plan_build(g, &target, NULL, &d);
        cr_assert_not_null(p, "%s", d.text);
        for (uint32_t i = 0; i < p->launch.n; i++) {
            cr_expect_eq(p->launch.at[i].sched.prefetch, big ? 1 : 0);
            cr_expect_eq(p->launch.at[i].sched.streaming_store, 0);
        }
        plan_free(p);
        graph_free(g);
    }
    struct diag d = {0};
    struct target t = target;
    t.llc = 8 << 20;
    struct graph *g = parsed(text);
    struct plan *p = plan_build(g, &t, NULL, &d);
    cr_assert_not_null(p, "%s", d.text);
    cr_expect_eq(p->launch.at[0].sched.streaming_store, 1);
    plan_free(p);
    graph_free(g);
}

// Rows that fill no vector are taken as columns, if there are some and elements can be collected.
Test(pipeline, short_rows_are_columns)
{
    static const struct {
        const char *text;
        uint8_t cls;
    } cases[] = {
        {"graph @f(%x: f32[1000, 15]) { return softmax %x }", CLASS_COLUMN},
        {"graph @f(%x: f32[1000, 16]) { return softmax %x }", CLASS_ROW},
        {"graph @f(%x: f32[20, 15]) { return softmax %x }", CLASS_ROW},
        {"graph @f(%x: bf16[1000, 15]) { return softmax %x }", CLASS_ROW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diag d = {0};
        struct graph *g = parsed(cases[i].text);
        struct plan *p = plan_build(g, &target, NULL, &d);
        cr_assert_not_null(p, "%s", d.text);
        cr_expect_eq(p->launch.at[0].kernel.cls, cases[i].cls, "%s", cases[i].text);
        plan_free(p);
        graph_free(g);
    }
}

// Tiles of contractions are made smaller until there is work for all threads: 64 rows in tiles of
// 14 cannot be divided more finely by one part more.
Test(pipeline, contractions_end_with_any_number_of_threads)
{
    static const char *const source[] = {
        "graph @f(%x: f32[64, 784], %w: f32[784, 128]) { return matmul %x, %w }",
        "graph @f(%x: f32[100, 300], %w: f32[300, 50]) { return matmul %x, %w }",
        "graph @f(%x: f64[3, 65, 200], %w: f64[200, 65]) { return matmul %x, %w }",
    };
    for (size_t i = 0; i < sizeof source / sizeof *source; i++)
        for (uint32_t units = 1; units <= 64; units++) {
            struct diag d = {0};
            struct target t = target;
            t.units = units;
            struct graph *g = parsed(source[i]);
            struct plan *p = plan_build(g, &t, NULL, &d);
            cr_assert_not_null(p, "%s", d.text);
            cr_assert_gt(p->launch.at[0].sched.units, 0);
            plan_free(p);
            graph_free(g);
        }
}

// ---- graphs of many nodes: twice the nodes, twice the work

static void
chain(struct str *s, int i)
{
    str_printf(s, "  %%v%d = add %%v%d, %%y\n", i + 1, i);
}

static void
diamonds(struct str *s, int i)
{
    str_printf(s, "  %%v%d = add (neg %%v%d), (abs %%v%d)\n", i + 1, i, i);
}

static void
products(struct str *s, int i)
{
    str_printf(s, "  %%v%d = relu (matmul %%v%d, %%y)\n", i + 1, i);
}

static void
reductions(struct str *s, int i)
{
    str_printf(s, "  %%v%d = sub %%v%d, (mean %%v%d {axes = [%d], keepdims = true})\n", i + 1, i, i,
               i % 2);
}

static void
transposes(struct str *s, int i)
{
    str_printf(s, "  %%v%d = add (permute %%v%d {axes = [1, 0]}), %%y\n", i + 1, i);
}

static void
siblings(struct str *s, int i) // all over the same input
{
    str_printf(s, "  %%v%d = relu (add (mul %%y, %d), 1)\n", i + 1, i);
}

static int64_t
work(void (*line)(struct str *, int), int n, bool all_returned)
{
    struct str s = {0};
    struct diag d = {0};
    str_add(&s, "graph @g(%v0: f32[8, 8], %y: f32[8, 8]) {\n");
    for (int i = 0; i < n; i++)
        line(&s, i);
    str_add(&s, "  return ");
    for (int i = all_returned ? 1 : n; i <= n; i++)
        str_printf(&s, "%s%%v%d", i > 1 && all_returned ? ", " : "", i);
    str_add(&s, "\n}\n");
    struct graph *g = graph_parse(s.at, s.n, "grown", &d);
    cr_assert_not_null(g, "%s", d.text);
    struct plan *p = plan_build(g, &target, NULL, &d);
    cr_assert_not_null(p, "%s", d.text);
    int64_t steps = p->work;
    plan_free(p);
    graph_free(g);
    str_free(&s);
    return steps;
}

Test(pipeline, planning_is_linear_in_the_nodes)
{
    static const struct {
        const char *name;
        void (*line)(struct str *, int);
        bool all_returned;
    } kind[] = {{"chain", chain, false},           {"chain, all returned", chain, true},
                {"diamonds", diamonds, false},     {"products", products, false},
                {"reductions", reductions, false}, {"transposes", transposes, false},
                {"siblings", siblings, true}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        int64_t one = work(kind[i].line, 2000, kind[i].all_returned);
        int64_t two = work(kind[i].line, 4000, kind[i].all_returned);
        cr_expect_leq(two, one * 5 / 2, "%s: %lld steps, then %lld", kind[i].name, (long long)one,
                      (long long)two);
    }
}

// What lies between operands and result may be larger than both: a shape is refused with the graph,
// or all passes can take it.
static bool
refused_or_planned(const char *source)
{
    struct diag d = {0};
    struct graph *g = graph_parse(source, strlen(source), "text", &d);
    if (!g) {
        cr_expect(strstr(d.text, "too large to address") || strstr(d.text, "2^48 elements"),
                  "%s\n%s", source, d.text);
        return false;
    }
    struct plan *p = plan_build(g, &target, NULL, &d);
    cr_expect_not_null(p, "%s\n%s", source, d.text);
    plan_free(p);
    graph_free(g);
    return true;
}

Test(pipeline, shapes_at_the_limit_are_refused_or_planned)
{
    static const char *const form[] = {
        "%%a: f32[4, %lld, 2], %%b: f32[4, %lld, 2]) { return attention %%a, %%b, %%b",
        "%%a: f32[%lld, 1], %%b: f32[1, %lld]) { return mse_loss %%a, %%b",
        "%%a: f16[%lld, 1], %%b: f16[1, %lld]) { return bce_loss %%a, %%b",
        "%%a: f32[%lld, 1], %%b: f32[1, %lld]) { return silu (sub %%a, %%b)",
        "%%a: f32[%lld, 1, 4], %%b: f32[4, %lld]) { return matmul %%a, %%b",
        "%%a: f32[1, %lld], %%b: f32[64, %lld, 2]) { return matmul %%a, %%b",
        "%%a: f32[65536, 1, 1, %lld], %%b: f32[65536, %lld, 1]) { return matmul %%a, %%b",
        "%%a: f32[%lld, 1, 1, 8], %%b: f32[%lld, 8, 1]) { return matmul %%a, %%b",
        "%%a: f32[4, %lld], %%i: i32[%lld]) { return scatter %%a, %%i, 1:f32 {axis = 0}"};
    uint32_t accepted = 0, in_all = 0;
    for (size_t f = 0; f < sizeof form / sizeof *form; f++)
        for (int m = 0; m <= 48; m += 4)
            for (int n = 0; n <= 48; n += 4) {
                char source[256], graph[300];
                long long other = 1ll << (f == 5 || f == 6 ? m : n);
                snprintf(source, sizeof source, form[f], 1ll << m, other);
                snprintf(graph, sizeof graph, "graph @g(%s }\n", source);
                accepted += refused_or_planned(graph);
                in_all++;
            }
    cr_expect(accepted > in_all / 2 && accepted < in_all, "%u of %u", accepted, in_all);
}

// The table's texts are read in graphs that no text could have made.
Test(pipeline, expansions_are_not_bound_by_the_limits_of_texts)
{
    struct graph *g = graph_new("large");
    struct shape s = {.rank = 2, .dim = {sym_num(1ll << 26), sym_num(1ll << 26)}};
    ref x = graph_add_input(g, "x", DT_f32, &s, NULL, 6);
    for (uint64_t i = 0; i < 1 << 20; i++)
        graph_literal(g, DT_u64, i, 0);
    ref y = composite_expand(g, OP_silu, DT_f32, &x, NULL, 0);
    cr_assert_eq(graph_node(g, y)->op, OP_mul);
    graph_free(g);
}

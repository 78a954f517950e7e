// scans.c: a scan's bits are those of the kernel interpreter, whatever the layout, what is fused
// around it, the number of threads and the vectors of the processor: random shapes, axes, dtypes
// and views of the operand, op by op and fused, with caches so small that arrays count as those
// beyond them, on 256-bit and 128-bit targets; long rows, which threads divide, and long columns.
// Where order makes no difference they are the graph interpreter's too.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 6 };
static const struct compile_options strict = {.strict = true}; // eager rounds halves after each op

static void
open_devices(struct device **dev)
{
    static const char *const arch[] = {NULL, NULL, NULL, NULL, "x86-64-v3", "x86-64"};
    static const char *const features[] = {NULL, NULL, NULL, NULL, "+avx2,+fma,+f16c", ""};
    struct diag d = {0};
    for (uint32_t i = 0; i < DEVICES; i++) {
        dev[i] = device_open("cpu", i % 2 ? 3 : 1, i == 1 ? DEVICE_TIERED : 0, &d);
        cr_assert(dev[i], "%s", d.text);
        struct target *t = &dev[i]->target;
        if (i == 2 || i == 3) {
            t->units = i == 3 ? 3 : 1;
            t->l1 = 4 << 10, t->l2 = 8 << 10, t->llc = 16 << 10;
        }
        if (!arch[i])
            continue;
        snprintf(t->arch, sizeof t->arch, "%s", arch[i]);
        snprintf(t->features, sizeof t->features, "%s", features[i]);
        t->vec_bytes = *features[i] ? 32 : 16;
    }
}

static void
close_devices(struct device **dev)
{
    for (uint32_t i = 0; i < DEVICES; i++)
        device_close(dev[i]);
}

static struct graph *
parse(const struct str *s)
{
    struct diag d = {0};
    struct graph *g = graph_parse(str_text(s), s->n, "scans", &d);
    cr_assert(g, "%s\n%s", d.text, str_text(s));
    return g;
}

// Products of such numbers neither vanish nor overflow soon.
static void
make_ordinary(struct tensor *x, struct guarded *mem, uint64_t seed)
{
    struct rng r = {seed};
    size_t size = dtype_size(x->dtype);
    for (size_t i = 0; i < mem->bytes / size && dtype_is_float(x->dtype); i++)
        scalar_store(x->dtype, (char *)mem->data + i * size,
                     scalar_from_double(x->dtype, (rng_unit(&r) - 0.5) * 1.5 +
                                                      (rng_below(&r, 2) ? 1 : -1)));
}

static bool
any_order(const struct graph *g)
{
    for (uint32_t i = 1; i < g->node.n; i++) {
        uint16_t op = g->node.at[i].op;
        if (op_is(op, OPK_SCAN) && !op_any_order(op, g->node.at[i].dtype))
            return false;
        if (op_is(op, OPK_ELEM) && !(op_table[op].flags & OPF_EXACT))
            return false;
    }
    return true;
}

// In all ways; takes g.
static void
compare(struct graph *g, uint64_t seed, struct device **dev, uint32_t ndev, struct tally *t)
{
    struct tensor in[4], oracle[4];
    struct guarded mem[4], out_mem[4];
    void *out[4], *right[4];
    struct diag d = {0};
    char where[200], what[100];
    bool at_end = seed & 1;
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        mem[i] = gen_input(g, i, seed, at_end, &in[i]);
        if (seed % 4)
            make_ordinary(&in[i], &mem[i], seed + i);
    }
    void **model = outputs_of(g);
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        out_mem[i] = guarded_alloc(output_bytes(g, i), at_end);
        out[i] = out_mem[i].data;
    }
    if (!run_fused(g, in, model, NULL, &strict, &d))
        fail_with(g, seed, "did not run", d.text);
    for (uint32_t way = 0; way <= ndev; way++) {
        bool ok = way < ndev ? run_fused(g, in, out, dev[way], &strict, &d)
                             : run_eager(g, in, out, dev[0], &strict, &d);
        if (!ok)
            fail_with(g, seed, "did not run", d.text);
        snprintf(what, sizeof what, "way %u differs from the kernel interpreter", way);
        if (!compare_outputs(g, model, out, t, where))
            fail_with(g, seed, what, where);
    }
    if (any_order(g)) {
        if (!interp_graph(g, in, oracle, &d))
            fail_with(g, seed, "interpreter", d.text);
        for (uint32_t i = 0; i < g->outputs.n; i++)
            right[i] = oracle[i].data;
        if (!compare_outputs(g, model, right, t, where))
            fail_with(g, seed, "differs from the graph interpreter", where);
        for (uint32_t i = 0; i < g->outputs.n; i++)
            xfree(right[i]);
    }
    t->graphs++;
    free_outputs(g, model);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        guarded_free(&out_mem[i]);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&mem[i]);
    graph_free(g);
}

static const char *
draw(struct rng *r, const char *const *of, uint32_t n)
{
    return of[rng_below(r, n)];
}
#define DRAW(r, ...)                                                                               \
    draw(r, (const char *const[]){__VA_ARGS__},                                                    \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

// %x is a view of the input %p with the shape that the scans have.
static void
operand(struct str *s, struct rng *r, uint32_t rank, const int64_t *dim, const char *dtype)
{
    uint32_t how = rng_below(r, 6), last = rank - 1;
    str_printf(s, "graph @scans(%%p: %s[", dtype);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t at = how == 1 ? last - i : i;
        int64_t n = how == 2 && at == last ? 2 * dim[at] : how == 3 && at == last ? dim[at] + 1
                                                                                  : dim[at];
        str_printf(s, "%s%lld", i ? ", " : "", (long long)n);
    }
    str_add(s, "]) {\n  %x = ");
    if (how == 1) {
        str_add(s, "permute %p {axes = [");
        for (uint32_t i = 0; i < rank; i++)
            str_printf(s, "%s%u", i ? ", " : "", last - i);
        str_add(s, "]}\n");
    } else if (how == 2 || how == 3) { // every second; from the second on
        str_add(s, "slice %p {start = [");
        for (uint32_t i = 0; i < rank; i++)
            str_printf(s, "%s%u", i ? ", " : "", i == last && how == 3);
        str_add(s, "], stop = [");
        for (uint32_t i = 0; i < rank; i++)
            str_printf(s, "%s%lld", i ? ", " : "",
                       (long long)(i < last ? dim[i] : how == 2 ? 2 * dim[i] : dim[i] + 1));
        str_add(s, "], step = [");
        for (uint32_t i = 0; i < rank; i++)
            str_printf(s, "%s%u", i ? ", " : "", i == last && how == 2 ? 2 : 1);
        str_add(s, "]}\n");
    } else if (how == 4) {
        str_printf(s, "flip %%p {axes = [%u]}\n", rng_below(r, rank));
    } else {
        str_add(s, "add %p, 0\n");
    }
}

static struct graph *
random_scans(uint64_t seed)
{
    static const int64_t extents[] = {1, 2, 3, 7, 15, 16, 17, 33, 37, 64, 100, 257, 300, 513};
    struct rng r = {seed};
    struct str s = {0};
    int64_t dim[3], count = 1;
    uint32_t rank = 1 + rng_below(&r, 3), axis = rng_below(&r, rank);
    for (uint32_t i = 0; i < rank; i++) {
        do
            dim[i] = extents[rng_below(&r, sizeof extents / sizeof *extents)];
        while (count * dim[i] > 30000);
        count *= dim[i];
    }
    const char *dtype = DRAW(&r, "f32", "f32", "f32", "f64", "f16", "bf16", "i8", "u8", "i16",
                             "u16", "i32", "u32", "i64", "u64");
    operand(&s, &r, rank, dim, dtype);
    uint32_t n = 1 + rng_below(&r, 3);
    const char *of = "x";
    char name[3][4] = {"s0", "s1", "s2"};
    for (uint32_t i = 0; i < n; i++) {
        str_printf(&s, "  %%%s = %s (%s %%%s) {axis = %u, reverse = %s}\n", name[i],
                   DRAW(&r, "cumsum", "cumsum", "cumprod", "cummax", "cummin"),
                   DRAW(&r, "abs", "square", "relu"), of, axis,
                   DRAW(&r, "false", "false", "true"));
        of = rng_below(&r, 2) ? name[i] : "x";
    }
    str_printf(&s, "  return %s(%%%s, %%x)", DRAW(&r, "sub", "max", "mul"), name[n - 1]);
    if (n > 1 && rng_below(&r, 2))
        str_add(&s, ", %s0");
    str_add(&s, "\n}\n");
    struct graph *g = parse(&s);
    str_free(&s);
    return g;
}

Test(scans, the_same_bits_in_every_way)
{
    struct device *dev[DEVICES];
    struct tally t = {0};
    open_devices(dev);
    uint32_t n = seed_count(60), first = seed_first();
    for (uint32_t i = 0; i < n; i++)
        compare(random_scans(first + i), first + i, dev, DEVICES, &t);
    cr_log_info("%llu graphs, %llu comparisons, %.0f %% finite", (unsigned long long)t.graphs,
                (unsigned long long)t.elements, 100.0 * (double)t.finite / (double)t.elements);
    cr_assert_gt(t.finite, t.elements / 4, "hardly any number among the results");
    close_devices(dev);
}

// More than one span of the order: rows that threads divide, several at once, scans in turn, which
// they cannot divide, and columns.
Test(scans, long_ones)
{
    static const char *const graphs[] = {
        "graph @row(%x: f32[330001]) { return cumsum %x }",
        "graph @back(%x: f64[327680]) { return cumsum %x {reverse = true} }",
        "graph @rows(%x: f32[3, 270000], %y: bf16[270000]) {\n"
        "  %m = mul %x, %y\n"
        "  return sub (cumsum %m {axis = 1}), %m, cummax %x {axis = 1} }",
        "graph @bool(%x: i8[400000]) { return cummax (gt %x, 5), cumsum %x, cumprod %x }",
        "graph @turn(%x: f32[300000]) { return cumsum (abs (cumsum %x)) }",
        "graph @columns(%x: f32[66001, 9]) { return cumsum %x {axis = 0}, cummin %x {axis = 0} }",
        "graph @wide(%x: f32[65600, 17]) { return cumprod %x {axis = 0, reverse = true} }",
    };
    struct device *dev[DEVICES];
    struct tally t = {0};
    open_devices(dev);
    for (uint32_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        struct diag d = {0};
        struct graph *g = graph_parse(graphs[i], strlen(graphs[i]), "long", &d);
        cr_assert(g, "%s", d.text);
        compare(g, 4 * i + 1 + i % 2, dev, DEVICES, &t);
    }
    close_devices(dev);
}

// The order of a scan is that of its elements, not of memory: rows of x have the bits of columns of
// its transpose.
Test(scans, rows_and_columns_have_the_same_bits)
{
    static const int64_t shape[][2] = {{40, 16}, {33, 257}, {9, 1000}, {64, 5000}, {8, 70000}};
    struct device *dev[DEVICES];
    open_devices(dev);
    for (uint32_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        int64_t rows = shape[i][0], n = shape[i][1];
        struct str a = {0}, b = {0};
        struct diag d = {0};
        str_printf(&a, "graph @a(%%x: f32[%lld, %lld]) { return cumsum %%x {axis = 1} }",
                   (long long)rows, (long long)n);
        str_printf(&b, "graph @b(%%x: f32[%lld, %lld]) { return cumsum %%x {axis = 0} }",
                   (long long)n, (long long)rows);
        struct graph *g[] = {parse(&a), parse(&b)};
        struct tensor in[2];
        struct guarded mem[2] = {gen_input(g[0], 0, i, true, &in[0]),
                                 gen_input(g[1], 0, i, true, &in[1])};
        make_ordinary(&in[0], &mem[0], i);
        float *x = in[0].data, *y = in[1].data;
        for (int64_t k = 0; k < rows * n; k++)
            y[k % n * rows + k / n] = x[k];
        void **out[] = {outputs_of(g[0]), outputs_of(g[1])};
        for (uint32_t v = 0; v < DEVICES; v++) {
            cr_assert(run_fused(g[0], &in[0], out[0], dev[v], NULL, &d), "%s", d.text);
            cr_assert(run_fused(g[1], &in[1], out[1], dev[v], NULL, &d), "%s", d.text);
            const float *p = out[0][0], *q = out[1][0];
            for (int64_t k = 0; k < rows * n; k++)
                cr_assert(!memcmp(&p[k], &q[k % n * rows + k / n], 4),
                          "device %u, %lld x %lld: row %lld, element %lld: %.9g and %.9g", v,
                          (long long)rows, (long long)n, (long long)(k / n), (long long)(k % n),
                          p[k], q[k % n * rows + k / n]);
        }
        for (uint32_t k = 0; k < 2; k++) {
            free_outputs(g[k], out[k]);
            guarded_free(&mem[k]);
            graph_free(g[k]);
        }
        str_free(&a);
        str_free(&b);
    }
    close_devices(dev);
}

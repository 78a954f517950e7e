// chain.c: launches that run block by block give the bits that they give one after the other.
// Random sequences of products and row kernels over a few matrices, op by op (nothing to chain)
// against one plan, with a second-level cache so small that everything that may be chained is.
#include "tests/support/run_plan.h"
#include "tests/support/graph_gen.h"

#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

// Appends the definition of %v<n>: an op over values before it.
static void
add_step(struct rng *r, struct str *s, uint32_t n)
{
    uint32_t a = rng_below(r, 3) ? n - 1 : rng_below(r, n), b = rng_below(r, n);
    static const char *const form[] = {
        "matmul %%v%u, %%v%u",
        "matmul %%v%u, (permute %%v%u {axes = [0, 2, 1]})",
        "matmul (mul %%v%u, 0.125), (permute %%v%u {axes = [0, 2, 1]})",
        "softmax %%v%u {axis = 2}",
        "softmax (add %%v%u, %%v%u) {axis = 2}",
        "layer_norm %%v%u, %%g, %%h",
        "matmul %%v%u, %%w",
        "add (matmul %%v%u, %%w), %%v%u",
        "sub %%v%u, (max %%v%u {axes = [2], keepdims = true})",
        "flip %%v%u {axes = [0]}",                  // another block's elements
        "matmul %%v%u, (flip %%v%u {axes = [0]})",
        "softmax (permute %%v%u {axes = [0, 2, 1]}) {axis = 2}", // across rows
    };
    str_printf(s, "  %%v%u = ", n);
    str_printf(s, form[rng_below(r, sizeof form / sizeof *form)], a, b);
    str_addc(s, '\n');
}

static struct graph *
random_sequence(uint64_t seed)
{
    struct rng r = {seed};
    struct str s = {0};
    struct diag d = {0};
    uint32_t batch = 2 + rng_below(&r, 7), side = 8 * (1 + rng_below(&r, 6));
    side -= rng_below(&r, 3) ? 0 : rng_below(&r, 8); // blocks that end within a cache line
    str_printf(&s, "graph @sequence(%%v0: f32[%u, %u, %u], %%v1: f32[%u, %u, %u], "
                   "%%w: f32[%u, %u], %%g: f32[%u], %%h: f32[%u]) {\n",
               batch, side, side, batch, side, side, side, side, side, side);
    uint32_t n = 2, steps = 2 + rng_below(&r, 7);
    for (uint32_t i = 0; i < steps; i++)
        add_step(&r, &s, n++);
    str_printf(&s, "  return %%v%u", n - 1);
    if (rng_below(&r, 2) && n > 3)
        str_printf(&s, ", %%v%u", 2 + rng_below(&r, n - 3));
    str_add(&s, "\n}\n");
    struct graph *g = graph_parse(str_text(&s), s.n, "sequence", &d);
    cr_assert(g, "%s\n%s", d.text, str_text(&s));
    str_free(&s);
    return g;
}

struct chains {
    uint32_t graphs, chains, launches, local;
};

static void
count_chains(const struct graph *g, const struct target *t, struct chains *c)
{
    struct diag d = {0};
    struct plan *p = plan_build(g, t, NULL, &d);
    cr_assert(p, "%s", d.text);
    c->graphs++;
    c->chains += p->chain.n;
    for (uint32_t i = 0; i < p->chain.n; i++) {
        c->launches += p->chain.at[i].n;
        c->local += p->chain.at[i].local_bytes > 0;
    }
    plan_free(p);
}

// Three of four graphs get ordinary numbers: products of special values are soon all NaN.
static void
make_ordinary(struct tensor *x, uint64_t seed)
{
    struct rng r = {seed};
    for (int64_t i = 0; i < tensor_count(x); i++)
        ((float *)x->data)[i] = (float)(rng_unit(&r) - 0.5);
}

static void
compare_sequence(struct device *dev, uint64_t seed, struct tally *t)
{
    struct graph *g = random_sequence(seed);
    struct tensor in[8];
    struct guarded mem[8];
    struct diag d = {0};
    char where[200];
    for (uint32_t i = 0; i < g->inputs.n; i++)
        mem[i] = gen_input(g, i, seed, seed & 1, &in[i]);
    for (uint32_t i = 0; i < g->inputs.n && seed % 4; i++)
        make_ordinary(&in[i], seed + i);
    void **fused = outputs_of(g), **eager = outputs_of(g);
    if (!run_fused(g, in, fused, dev, NULL, &d) || !run_eager(g, in, eager, dev, NULL, &d))
        fail_with(g, seed, "did not run", d.text);
    if (!compare_outputs(g, fused, eager, t, where))
        fail_with(g, seed, "chained and op by op differ", where);
    free_outputs(g, fused);
    free_outputs(g, eager);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&mem[i]);
    graph_free(g);
}

static void
sweep(uint32_t threads)
{
    struct diag d = {0};
    struct device *dev = device_open("cpu", threads, 0, &d);
    cr_assert(dev, "%s", d.text);
    dev->target.units = threads; // also where there are fewer cores
    struct tally t = {0};
    struct chains c = {0};
    uint32_t first = seed_first(), count = seed_count(40);
    for (uint32_t i = 0; i < count; i++) {
        dev->target.l2 = (4 << 10) << (first + i) % 3;
        struct graph *g = random_sequence(first + i);
        count_chains(g, &dev->target, &c);
        graph_free(g);
        compare_sequence(dev, first + i, &t);
    }
    cr_log_info("%u threads: %u graphs, %u chains of %u launches, %u with local arrays, %" PRIu64
                " elements, %.0f %% finite", threads, c.graphs, c.chains, c.launches, c.local,
                t.elements, 100.0 * (double)t.finite / (double)t.elements);
    cr_assert_gt(c.chains, c.graphs / 20);
    cr_assert_gt(c.local, 0);
    device_close(dev);
}

Test(chain, one_thread)
{
    sweep(1);
}

Test(chain, two_threads)
{
    sweep(2);
}

Test(chain, three_threads)
{
    sweep(3);
}

static struct plan *
plan_of(const char *text, struct target t)
{
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), "text", &d);
    cr_assert(g, "%s", d.text);
    struct plan *p = plan_build(g, &t, NULL, &d);
    cr_assert(p, "%s", d.text);
    graph_free(g);
    return p;
}

#define HEADS(last)                                                                             \
    "graph @heads(%q: f32[16, 512, 64], %k: f32[16, 512, 64], %v: f32[16, 512, 64]) {\n"         \
    "  %s = matmul %q, (permute %k {axes = [0, 2, 1]})\n" last "}\n"

static const char attention[] = HEADS("  return matmul (softmax %s {axis = 2}), %v\n");

Test(chain, heads_are_blocks)
{
    struct plan *p = plan_of(attention, test_target());
    cr_assert_eq(p->chain.n, 1);
    cr_assert_eq(p->chain.at[0].n, 3);
    cr_assert_eq(p->chain.at[0].blocks % 16, 0);
    plan_free(p);
}

Test(chain, not_where_a_block_reads_another)
{
    static const char text[] =
        HEADS("  return matmul (softmax (flip %s {axes = [0]}) {axis = 2}), %v\n");
    struct plan *p = plan_of(text, test_target());
    for (uint32_t i = 0; i < p->chain.n; i++)
        cr_assert_gt(p->chain.at[i].first, 0);
    plan_free(p);
}

Test(chain, not_where_threads_would_idle)
{
    struct target t = test_target();
    t.units = 24; // 16 blocks
    struct plan *p = plan_of(attention, t);
    for (uint32_t i = 0; i < p->chain.n; i++)
        cr_assert_geq(p->chain.at[i].blocks, 24);
    plan_free(p);
}

Test(chain, not_where_it_all_stays_in_the_cache)
{
    struct target t = test_target();
    t.l2 = 64 << 20;
    struct plan *p = plan_of(attention, t);
    cr_assert_eq(p->chain.n, 0);
    plan_free(p);
}

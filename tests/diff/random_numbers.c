// random_numbers.c: random bits and what is made of them: Random123's known answers, numbers worked
// out with NumPy (tests/fixtures/random_numbers.h), and the same bits by every way of evaluation:
// both interpreters, op by op and fused, one thread and two, all vector widths, lanes that are
// neighbours, that begin amid a block, and that are not neighbours at all.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "ir/base/check.h"
#include "ir/philox.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixtures/random_numbers.h"

enum { DEVICES = 4 };
static struct device *devices[DEVICES];

static void
setup(void)
{
    static const struct {
        const char *arch, *features;
        uint32_t bytes;
    } other[] = {{"x86-64-v3", "+avx2,+fma,+f16c", 32}, {"x86-64", "", 16}};
    struct diag d = {0};
    for (uint32_t i = 0; i < DEVICES; i++) {
        devices[i] = device_open("cpu", i == 1 ? 2 : 1, 0, &d);
        cr_assert(devices[i], "%s", d.text);
        struct target *t = &devices[i]->target;
        if (i < 2 || t->vec_bytes < other[i - 2].bytes)
            continue; // a processor with less keeps its own
        snprintf(t->arch, sizeof t->arch, "%s", other[i - 2].arch);
        snprintf(t->features, sizeof t->features, "%s", other[i - 2].features);
        t->vec_bytes = other[i - 2].bytes;
    }
}
static void
teardown(void)
{
    for (uint32_t i = 0; i < DEVICES; i++)
        device_close(devices[i]);
}
TestSuite(random_numbers, .init = setup, .fini = teardown);

static struct graph *
parse(const char *text)
{
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), "random", &d);
    cr_assert(g, "%s", d.text);
    return g;
}

static void
dense_input(const struct graph *g, uint32_t i, void *data, struct tensor *t)
{
    const struct shape *s = graph_shape(g, g->inputs.at[i].node);
    *t = (struct tensor){.dtype = graph_node(g, g->inputs.at[i].node)->dtype, .rank = s->rank,
                         .data = data};
    int64_t run = 1;
    for (uint32_t d = s->rank; d-- > 0;) {
        t->dim[d] = dim_of(g, s, d);
        t->stride[d] = run;
        run *= t->dim[d];
    }
}

// Evaluates a graph of a state and perhaps x; all ways agree; op by op too if it is small. Returns
// the outputs (free them with free_outputs, and the graph).
static void **
evaluate(const char *text, const uint64_t state[2], float *x, bool small, struct graph **out)
{
    struct graph *g = *out = parse(text);
    struct tensor in[2];
    struct diag d = {0};
    struct tally t = {0};
    uint64_t copy[2] = {state[0], state[1]};
    char where[200];
    for (uint32_t i = 0; i < g->inputs.n; i++)
        dense_input(g, i, strcmp(g->inputs.at[i].name, "s") ? (void *)x : copy, &in[i]);
    void **first = outputs_of(g), **other = outputs_of(g);
    cr_assert(run_fused(g, in, first, NULL, NULL, &d), "%s: %s", text, d.text);
    for (uint32_t i = 0; i < DEVICES; i++) {
        cr_assert(run_fused(g, in, other, devices[i], NULL, &d), "%s: %s", text, d.text);
        cr_expect(compare_outputs(g, first, other, &t, where), "%s, device %u: %s", text, i, where);
        if (!small)
            continue;
        cr_assert(run_eager(g, in, other, devices[i], NULL, &d), "%s: %s", text, d.text);
        cr_expect(compare_outputs(g, first, other, &t, where), "%s, op by op: %s", text, where);
    }
    free_outputs(g, other);
    return first;
}

static void
expect_values(const char *text, const uint64_t state[2], const double *want, double tolerance)
{
    struct graph *g;
    void **out = evaluate(text, state, NULL, true, &g);
    struct tensor in, right;
    struct diag d = {0};
    uint64_t copy[2] = {state[0], state[1]};
    dense_input(g, 0, copy, &in);
    cr_assert(interp_graph(g, &in, &right, &d), "%s: %s", text, d.text);
    uint8_t dtype = right.dtype;
    size_t size = dtype_size(dtype);
    cr_assert_eq(tensor_count(&right), RANDOM_COUNT);
    for (size_t i = 0; i < RANDOM_COUNT; i++) {
        double a = scalar_to_double(dtype, scalar_load(dtype, (char *)right.data + i * size));
        double b = scalar_to_double(dtype, scalar_load(dtype, (char *)out[0] + i * size));
        double unit = tolerance * (1 + fabs(want[i]));
        cr_expect(fabs(a - want[i]) <= unit && fabs(b - want[i]) <= unit,
                  "%s: element %zu: %.17g and %.17g, not %.17g", text, i, a, b, want[i]);
    }
    xfree(right.data);
    free_outputs(g, out);
    graph_free(g);
}

static void
expect_bits(const char *text, const void *want, size_t bytes)
{
    struct graph *g;
    void **out = evaluate(text, random_state, NULL, want != random_far, &g);
    cr_assert_eq(output_bytes(g, 0), bytes, "%s", text);
    cr_expect(!memcmp(out[0], want, bytes), "%s", text);
    free_outputs(g, out);
    graph_free(g);
}

Test(random_numbers, known_answers_of_random123)
{
    static const struct {
        uint32_t counter[4];
        uint64_t key;
        uint32_t block[4];
    } known[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t c[4];
        memcpy(c, known[i].counter, sizeof c);
        philox_block(c, known[i].key);
        cr_expect(!memcmp(c, known[i].block, sizeof c), "block %zu", i);
    }
    struct graph *g;
    void **out = evaluate("graph @g(%s: u64[2]) { return random_bits %s {shape = [4]} }",
                          (uint64_t[2]){0, 0}, NULL, true, &g);
    cr_expect(!memcmp(out[0], known[0].block, 16));
    free_outputs(g, out);
    graph_free(g);
}

Test(random_numbers, bits_and_exact_numbers_are_numpys)
{
    expect_bits("graph @g(%s: u64[2]) { return random_bits %s {shape = [91]} }", random_u32,
                sizeof random_u32);
    expect_bits("graph @g(%s: u64[2]) { return random_bits %s {shape = [7, 13], dtype = u64} }",
                random_u64, sizeof random_u64);
    expect_bits("graph @g(%s: u64[2]) { return bernoulli %s {shape = [13, 7], "
                "p = 0.3333333333333333} }", random_third, sizeof random_third);
    expect_bits("graph @g(%s: u64[2]) { return randint %s {shape = [91], low = -7, high = 993} }",
                random_int, sizeof random_int);
    expect_bits("graph @g(%s: u64[2]) { return randint %s {shape = [91], low = -2147483648, "
                "high = 2147483648} }", random_int32, sizeof random_int32);
    static const struct {
        const char *dtype;
        const double *want;
    } uniform[] = {{"f64", random_uniform_f64}, {"f32", random_uniform_f32},
                   {"f16", random_uniform_f16}, {"bf16", random_uniform_bf16}};
    for (size_t i = 0; i < 4; i++) {
        char text[200];
        snprintf(text, sizeof text, "graph @g(%%s: u64[2]) { return uniform %%s {shape = [91], "
                                    "dtype = %s} }", uniform[i].dtype);
        expect_values(text, random_state, uniform[i].want, 0);
    }
}

// f32: the angle is rounded, by up to 2^-23, and the radius is at most 6.8.
Test(random_numbers, normal_numbers_are_numpys)
{
    expect_values("graph @g(%s: u64[2]) { return normal %s {shape = [91]} }", random_state,
                  random_normal_f32, 1e-6);
    expect_values("graph @g(%s: u64[2]) { return normal %s {shape = [91], dtype = f64} }",
                  random_state, random_normal_f64, 4e-15);
    expect_values("graph @g(%s: u64[2]) { return normal %s {shape = [13, 7], dtype = f16} }",
                  random_state, random_normal_f32, 0x1p-11);
    expect_values("graph @g(%s: u64[2]) { return normal %s {shape = [91], dtype = bf16} }",
                  random_state, random_normal_f32, 0x1p-8);
}

// An array of 64 GiB of which a little is looked at: positions need more than 32 bits.
Test(random_numbers, positions_have_64_bits)
{
    expect_bits("graph @g(%s: u64[2]) { %r = random_bits %s {shape = [34359738368]} "
                "return slice %r {start = [17179869187], stop = [17179869278]} }",
                random_far, sizeof random_far);
}

// Rows whose length is no multiple of 4, transposed, reversed, every other element, in windows; in
// reductions along either axis. evaluate compares all ways, the first with scalar code.
Test(random_numbers, any_view_has_the_same_bits)
{
    static const char *const text[] = {
        "graph @g(%s: u64[2], %x: f32[37, 1]) { "
        "return add %x, (uniform %s {shape = [37, 53]}) }",
        "graph @g(%s: u64[2], %x: f32[53, 37]) { "
        "return mul %x, (permute (uniform %s {shape = [37, 53]}) {axes = [1, 0]}) }",
        "graph @g(%s: u64[2], %x: f32[37, 53]) { "
        "return mul %x, (flip (uniform %s {shape = [37, 53]}) {axes = [1]}) }",
        "graph @g(%s: u64[2]) { return slice (random_bits %s {shape = [37, 53]}) "
        "{start = [1, 2], stop = [36, 53], step = [1, 1]} }",
        "graph @g(%s: u64[2]) { return slice (random_bits %s {shape = [40, 60], dtype = u64}) "
        "{start = [1, 3], stop = [36, 53], step = [2, 3]} }",
        "graph @g(%s: u64[2]) { return sum (uniform %s {shape = [37, 53]}) {axes = [1]}, "
        "sum (uniform %s {shape = [37, 53]}) {axes = [0]} }",
        "graph @g(%s: u64[2]) { return sum (normal %s {shape = [9, 700]}) {axes = [1]} }",
        "graph @g(%s: u64[2]) { return reshape (random_bits %s {shape = [6, 35]}) "
        "{shape = [10, 21]} }",
        "graph @g(%s: u64[2]) { return concat (random_bits %s {shape = [3, 5]}), "
        "(random_bits %s {shape = [3, 6]}) {axis = 1} }",
        "graph @g(%s: u64[2]) { return pad (random_bits %s {shape = [5, 21], dtype = u64}) "
        "{low = [1, 3], high = [0, 2]} }",
        "graph @g(%s: u64[2]) { return random_bits %s {shape = [1]}, "
        "random_bits %s {shape = [], dtype = u64}, random_bits %s {shape = [0, 3]} }",
        "graph @g(%s: u64[2]) { return normal %s {shape = [19, 21], dtype = f64} }",
        "graph @g(%s: u64[2], %x: f32[37, 53]) { return dropout %x, %s {p = 0}, "
        "dropout %x, %s {p = 1} }",
        "graph @g(%s: u64[2], %x: f32[64, 96]) { "
        "return softmax (dropout %x, %s {p = 0.25}) {axis = 1} }",
        "graph @g(%s: u64[2]) { %b = bernoulli %s {shape = [300]} "
        "return %b, sum (cast %b {to = i8}) }",
    };
    static float x[64 * 96];
    for (uint32_t i = 0; i < 64 * 96; i++)
        x[i] = (float)(i % 97) - 40;
    for (uint32_t i = 0; i < sizeof text / sizeof *text; i++) {
        struct graph *g;
        void **out = evaluate(text[i], random_state, x, true, &g);
        free_outputs(g, out);
        graph_free(g);
    }
}

// The mask follows the element of x that it is for, so dropout of a transposed array is that of
// its own shape; computed twice, by a reader along rows and one along columns, it is the same.
Test(random_numbers, dropout_in_two_readers_is_one)
{
    struct graph *g;
    static float x[37 * 53], sum[37];
    for (uint32_t i = 0; i < 37 * 53; i++)
        x[i] = (float)(i % 31 + 1);
    void **out = evaluate("graph @g(%s: u64[2], %x: f32[37, 53]) { "
                          "%d = dropout (permute %x {axes = [1, 0]}), %s {p = 0.5} "
                          "return %d, sum %d {axes = [0]}, sum %d {axes = [1]}, "
                          "permute %d {axes = [1, 0]} }", random_state, x, true, &g);
    const float *d = out[0], *rows = out[1], *transposed = out[3];
    for (uint32_t i = 0; i < 53; i++)
        for (uint32_t j = 0; j < 37; j++) {
            bool dropped = philox_element(i * 37 + j, random_state[0], random_state[1], 32) <
                           1u << 31;
            cr_assert_eq(d[i * 37 + j], dropped ? 0 : x[j * 53 + i] * 2, "%u, %u", i, j);
            cr_assert_eq(transposed[j * 53 + i], d[i * 37 + j]);
            sum[j] += d[i * 37 + j];
        }
    for (uint32_t j = 0; j < 37; j++)
        cr_assert_eq(sum[j], rows[j]); // whole numbers: exact in any order
    free_outputs(g, out);
    graph_free(g);
}

// ---- how random they are: fixed states, so that these either hold or do not

enum { DRAWN = 1 << 16 };

static void **
draw(const char *what, uint64_t counter, struct graph **g)
{
    char text[200];
    snprintf(text, sizeof text, "graph @g(%%s: u64[2]) { return %s }", what);
    struct diag d = {0};
    struct tensor in;
    uint64_t state[2] = {2026, counter};
    *g = parse(text);
    dense_input(*g, 0, state, &in);
    void **out = outputs_of(*g);
    cr_assert(run_fused(*g, &in, out, devices[0], NULL, &d), "%s", d.text);
    return out;
}

static int
by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// The greatest distance between the distribution of n numbers (sorted here) and cdf, times sqrt n:
// above 1.95 in one case of a thousand (Kolmogorov, Smirnov).
static double
distance(float *x, uint32_t n, double (*cdf)(double))
{
    double most = 0;
    qsort(x, n, sizeof *x, by_size);
    for (uint32_t i = 0; i < n; i++) {
        double c = cdf((double)x[i]);
        most = fmax(most, fmax(c - (double)i / n, (double)(i + 1) / n - c));
    }
    return most * sqrt(n);
}

static double
uniform_cdf(double x)
{
    return x;
}
static double
normal_cdf(double x)
{
    return erfc(-x * M_SQRT1_2) / 2;
}

Test(random_numbers, moments_and_distributions)
{
    for (uint64_t counter = 0; counter < 4; counter++)
        for (uint32_t kind = 0; kind < 2; kind++) {
            struct graph *g;
            char what[80];
            const char *name = kind ? "normal" : "uniform";
            snprintf(what, sizeof what, "%s %%s {shape = [%d]}", name, DRAWN);
            void **out = draw(what, counter, &g);
            float *x = out[0];
            double sum = 0, squares = 0, fourth = 0, lag = 0;
            for (uint32_t i = 0; i < DRAWN; i++) {
                double v = kind ? (double)x[i] : ((double)x[i] - 0.5) * sqrt(12);
                sum += v;
                squares += v * v;
                fourth += v * v * v * v;
                lag += i % 4 ? v * (kind ? (double)x[i - 1] : ((double)x[i - 1] - 0.5) * sqrt(12))
                             : 0;
            }
            // Within four deviations of what each is for independent numbers.
            double right4 = kind ? 3 : 1.8, root = sqrt(DRAWN);
            cr_expect_lt(fabs(sum) / root, 4, "%s: mean", what);
            cr_expect_lt(fabs(squares - DRAWN) / root, 4 * sqrt(right4 - 1), "%s: variance", what);
            cr_expect_lt(fabs(fourth - right4 * DRAWN) / root, 4 * (kind ? 9.8 : 2), "%s: fourth",
                         what);
            cr_expect_lt(fabs(lag) / root, 4, "%s: neighbours", what);
            cr_expect_lt(distance(x, DRAWN, kind ? normal_cdf : uniform_cdf), 1.95, "%s", what);
            if (!kind)
                cr_expect_lt((double)x[DRAWN - 1], 1.0);
            free_outputs(g, out);
            graph_free(g);
        }
}

// Groups of four do not repeat: neither their own words, nor the next group's, nor those of another
// counter. By chance a word is its neighbour once in 2^32 pairs.
Test(random_numbers, neighbours_and_counters_differ)
{
    char what[80];
    struct graph *g[2];
    snprintf(what, sizeof what, "random_bits %%s {shape = [%d]}", DRAWN);
    void **a = draw(what, 0, &g[0]), **b = draw(what, 1, &g[1]);
    const uint32_t *x = a[0], *y = b[0];
    uint32_t equal = 0, ones = 0;
    for (uint32_t i = 0; i < DRAWN; i++) {
        for (uint32_t back = 1; back <= 8 && back <= i; back++)
            equal += x[i] == x[i - back];
        equal += x[i] == y[i];
        ones += (uint32_t)__builtin_popcount(x[i] ^ y[i]);
    }
    cr_expect_leq(equal, 1);
    cr_expect_lt(fabs((double)ones - DRAWN * 16.0), 4 * sqrt(DRAWN * 8.0));
    for (int i = 0; i < 2; i++) {
        free_outputs(g[i], i ? b : a);
        graph_free(g[i]);
    }
}

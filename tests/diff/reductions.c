// reductions.c: reductions fused with each other at lengths about every limit of the schedules: a
// few elements, odd ones, one more and one less than a block, than what stays in registers, in the
// caches, and beyond. The elements repeat a pattern of small integers, so that the right results
// follow from counting; sums and products of them are exact in every dtype.
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN = 11, OUTPUTS = 11 };

struct rows {
    uint8_t dtype, real; // real: of mean and the like
    int64_t m, n;
    bool may_be_negative;
};

static double
element(const struct rows *x, int64_t i, int64_t j)
{
    double v = (double)((j * 7 + i) % PATTERN);
    return x->dtype == DT_bool ? v > 4 : x->may_be_negative ? v - 5 : v;
}

// A factor: few twos, so that the product stays in range.
static double
factor(const struct rows *x, int64_t i, int64_t j)
{
    bool two = j % 65536 == i % 7;
    return two ? 2 : x->may_be_negative && j % 3 == 0 ? -1 : 1;
}

static struct graph *
graph_of(const struct rows *x)
{
    static const char form[] =
        "graph @rows(%%x: %s[%lld, %lld], %%y: %s[%lld, %lld]) {\n"
        "  %%one = broadcast 1.0:%s {shape = [%lld]}\n"
        "  %%zero = broadcast 0.0:%s {shape = [%lld]}\n"
        "  return sum %%x {axes = [1]}, max %%x {axes = [1]}, argmax %%x {axes = [1]}, "
        "mean %%x {axes = [1]}, var %%x {axes = [1]}, softmax %%x {axis = 1}, "
        "logsumexp %%x {axes = [1]}, layer_norm %%x, %%one, %%zero {eps = 0.5}, "
        "any %%x {axes = [1]}, all %%x {axes = [1]}, %s %%y {axes = [1]}\n}\n";
    struct str s = {0};
    struct diag d = {0};
    const char *t = dtype_name(x->dtype), *real = dtype_name(x->real);
    long long m = x->m, n = x->n;
    str_printf(&s, form, t, m, n, t, m, n, real, n, real, n,
               x->dtype == DT_bool ? "sum" : "prod");
    struct graph *g = graph_parse(str_text(&s), s.n, "rows", &d);
    cr_assert(g, "%s\n%s", d.text, str_text(&s));
    str_free(&s);
    return g;
}

static void *
filled(const struct rows *x, double (*of)(const struct rows *, int64_t, int64_t))
{
    size_t size = dtype_size(x->dtype);
    char *p = xcalloc((size_t)(x->m * x->n), size);
    uint64_t bits[64];
    for (int v = -32; v < 32; v++)
        bits[v + 32] = scalar_from_double(x->dtype, v);
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            scalar_store(x->dtype, p + (size_t)(i * x->n + j) * size,
                         bits[(int)of(x, i, j) + 32]);
    return p;
}

// What a row of the pattern comes to.
struct right {
    double sum, most, mean, var, exps, lse, product;
    int64_t first;
    bool any, all;
};

static struct right
count_row(const struct rows *x, int64_t i)
{
    struct right r = {.most = -1e9, .all = true, .product = x->dtype == DT_bool ? 0 : 1};
    double squares = 0;
    for (int64_t j = 0; j < x->n; j++) {
        double v = element(x, i, j);
        r.sum += v;
        if (v > r.most)
            r.first = j;
        r.most = fmax(r.most, v);
        r.any |= v != 0;
        r.all &= v != 0;
        if (x->dtype == DT_bool)
            r.product += factor(x, i, j) != 0;
        else
            r.product *= factor(x, i, j);
    }
    r.mean = r.sum / (double)x->n;
    for (int64_t j = 0; j < x->n; j++) {
        double v = element(x, i, j);
        squares += (v - r.mean) * (v - r.mean);
        r.exps += exp(v - r.most);
    }
    r.var = squares / (double)x->n;
    r.lse = r.most + log(r.exps);
    return r;
}

static double
at(const struct graph *g, void *const *out, uint32_t k, int64_t i)
{
    uint8_t d = graph_node(g, g->outputs.at[k].node)->dtype;
    return scalar_to_double(d, scalar_load(d, (char *)out[k] + i * dtype_size(d)));
}

static double
tolerance_of(uint8_t real)
{
    return real == DT_f64 ? 1e-13 : real == DT_f32 ? 1e-5 : real == DT_f16 ? 2e-3 : 1.6e-2;
}

#define NEAR(k, index, right_value, scale)                                                         \
    cr_assert(fabs(at(g, out, k, index) - (right_value)) <= tolerance * (scale) + 1e-7,            \
              "%s [%lld, %lld] row %lld, output %d: %.9g, right is %.9g", dtype_name(x->dtype),    \
              (long long)x->m, (long long)x->n, (long long)i, k, at(g, out, k, index),             \
              (double)(right_value))
// Exact in the result's dtype: the right value rounds as the result did.
#define EXACT(k, right_value)                                                                      \
    do {                                                                                           \
        uint8_t type = graph_node(g, g->outputs.at[k].node)->dtype;                                \
        double want = scalar_to_double(type, scalar_from_double(type, right_value));               \
        cr_assert(at(g, out, k, i) == want, "%s [%lld, %lld] row %lld, output %d: %.9g, right is " \
                  "%.9g", dtype_name(x->dtype), (long long)x->m, (long long)x->n, (long long)i, k, \
                  at(g, out, k, i), want);                                                         \
    } while (0)

static void
check_row(const struct rows *x, const struct graph *g, void *const *out, int64_t i)
{
    struct right r = count_row(x, i);
    double tolerance = tolerance_of(x->real), deviation = sqrt(r.var + 0.5);
    EXACT(0, r.sum);
    EXACT(1, r.most);
    EXACT(2, (double)r.first);
    NEAR(3, i, r.mean, fabs(r.mean) + 1);
    NEAR(4, i, r.var, r.var + 1);
    NEAR(6, i, r.lse, fabs(r.lse));
    EXACT(8, r.any);
    EXACT(9, r.all);
    EXACT(10, r.product);
    for (int64_t j = 0; j < x->n; j++) {
        double v = element(x, i, j), soft = exp(v - r.most) / r.exps;
        NEAR(5, i * x->n + j, soft, soft);
        NEAR(7, i * x->n + j, (v - r.mean) / deviation, 4);
    }
}

static void
check_rows(const struct rows *x, struct device *dev)
{
    struct graph *g = graph_of(x);
    struct diag d = {0};
    struct tensor in[2] = {{.data = filled(x, element)}, {.data = filled(x, factor)}};
    void **out = outputs_of(g);
    cr_assert_eq(g->outputs.n, OUTPUTS);
    cr_assert(run_fused(g, in, out, dev, NULL, &d), "%s", d.text);
    for (int64_t i = 0; i < x->m; i++)
        check_row(x, g, out, i);
    free_outputs(g, out);
    xfree(in[0].data);
    xfree(in[1].data);
    graph_free(g);
}

static void
check_dtypes(uint8_t first, uint8_t end)
{
    static const int64_t columns[] = {1,     2,     31,    33,    63,    65,    1023,  1025,
                                      4097,  12289, 33024, 34560, 40448, 65537, 131071};
    static const int64_t rows[] = {1, 3, 16};
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct device *dev = own_device_open((struct own_options){.level = CODE_BASELINE, .pieces = 3},
                                         &d);
    cr_assert(dev, "%s", d.text);
    for (uint8_t dtype = first; dtype < end; dtype++)
        for (uint32_t c = 0; c < sizeof columns / sizeof *columns; c++)
            for (uint32_t m = 0; m < 3; m++) {
                bool wide = dtype_table[dtype].bits >= 32;
                struct rows x = {.dtype = dtype, .m = rows[m], .n = columns[c],
                                 .real = dtype_is_float(dtype) ? dtype : wide ? DT_f64 : DT_f32,
                                 .may_be_negative = dtype_is_float(dtype) ||
                                                    dtype_table[dtype].kind == DTK_SINT};
                check_rows(&x, dev);
            }
    device_close(dev);
}

Test(reductions, bc46_floats_of_any_length)
{
    check_dtypes(DT_f64, DT_i8);
}

Test(reductions, bc46_integers_of_any_length)
{
    check_dtypes(DT_i8, DT_COUNT);
}

// One running f32 would stay at 2^24.
Test(reductions, bc23_a_sum_of_many_ones_is_exact)
{
    enum { MOST = 1 << 25 };
    static const int64_t counts[] = {MOST, 17825792, 16777218};
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    float *ones = xmalloc(MOST * sizeof *ones);
    for (int64_t i = 0; i < MOST; i++)
        ones[i] = 1;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct device *dev = device_open("cpu", threads, 0, &d);
        cr_assert(dev, "%s", d.text);
        for (uint32_t i = 0; i < 3; i++)
            for (int columns = 0; columns < 2; columns++) {
                char text[200];
                long long n = counts[i] / (columns ? 2 : 1);
                snprintf(text, sizeof text,
                         columns ? "graph @g(%%x: f32[%lld, 2]) { return sum %%x {axes = [0]} }"
                                 : "graph @g(%%x: f32[%lld]) { return sum %%x }", n);
                struct graph *g = graph_parse(text, strlen(text), "ones", &d);
                cr_assert(g, "%s", d.text);
                struct tensor in = {.data = ones};
                float sum[2] = {0}, *out = sum;
                cr_assert(run_fused(g, &in, (void *const *)&out, dev, NULL, &d), "%s", d.text);
                cr_assert_eq(sum[0], (float)n);
                cr_assert(!columns || sum[1] == (float)n);
                graph_free(g);
            }
        device_close(dev);
    }
    xfree(ones);
}

// Their sum is more than f16 can hold; the mean is not.
Test(reductions, a_mean_of_many_halves)
{
    enum { N = 65520 };
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct device *dev = own_device_open((struct own_options){.level = CODE_BASELINE}, &d);
    cr_assert(dev, "%s", d.text);
    static uint16_t ones[N];
    for (int i = 0; i < N; i++)
        ones[i] = 0x3c00;
    for (int strict = 0; strict < 2; strict++) {
        static const char text[] = "graph @g(%x: f16[65520]) { return mean %x, (sum %x) }";
        struct compile_options co = {.strict = strict};
        struct graph *g = graph_parse(text, strlen(text), "halves", &d);
        cr_assert(g, "%s", d.text);
        struct tensor in = {.data = ones};
        uint16_t mean = 0, sum = 0;
        void *out[] = {&mean, &sum};
        cr_assert(run_fused(g, &in, out, dev, &co, &d), "%s", d.text);
        cr_assert_eq(mean, 0x3c00, "%#x", mean);
        cr_assert_eq(sum, 0x7c00, "%#x", sum); // 65520 rounds to infinity
        graph_free(g);
    }
    device_close(dev);
}

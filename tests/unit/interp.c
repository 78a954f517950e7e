// interp.c: the graph interpreter against values from NumPy or worked out by hand.
#include "ir/interp.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { MAX_INPUTS = 4 };
static struct graph *g;
static struct tensor inputs[MAX_INPUTS];
static uint32_t ninputs;

static void
setup(void)
{
    g = graph_new("t");
    ninputs = 0;
}
static void
teardown(void)
{
    for (uint32_t i = 0; i < ninputs; i++)
        xfree(inputs[i].data);
    graph_free(g);
}
TestSuite(interp, .init = setup, .fini = teardown);

static ref
input(uint8_t dtype, uint32_t rank, const int64_t *dim, const double *value)
{
    struct tensor t = {.dtype = dtype, .rank = (uint8_t)rank};
    struct shape s = {.rank = (uint8_t)rank};
    int64_t run = 1;
    for (uint32_t i = rank; i-- > 0;) {
        t.dim[i] = dim[i];
        t.stride[i] = run;
        s.dim[i] = sym_num(dim[i]);
        run *= dim[i];
    }
    t.data = xcalloc((size_t)run, 8);
    for (int64_t i = 0; i < run; i++)
        scalar_store(dtype, (char *)t.data + i * dtype_size(dtype),
                     scalar_from_double(dtype, value ? value[i] : (double)i));
    inputs[ninputs++] = t;
    return graph_add_input(g, "x", dtype, &s, NULL, 6);
}
#define DIMS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}
#define SCALAR 0, NULL
#define VALUES(...) (double[]){__VA_ARGS__}
#define REFS(...) (ref[]){__VA_ARGS__}, sizeof((ref[]){__VA_ARGS__}) / sizeof(ref)
#define ATTR(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define NONE NULL, 0

static ref
build(uint16_t op, const ref *in, uint32_t nin, const int64_t *attr, uint32_t nattr)
{
    struct diag d = {0};
    ref r = graph_build(g, op, in, nin, attr, nattr, 0, &d);
    cr_assert(r.i, "%s", d.text);
    return r;
}

// Runs the graph with r as its one output. NaN equals NaN, -0 is not +0; relative tolerance.
static void
expect_near(int line, ref r, int64_t n, const double *want, double tolerance)
{
    struct diag d = {0};
    struct tensor out[1];
    g->outputs.n = 0;
    graph_add_output(g, "y", r);
    cr_assert(interp_graph(g, inputs, out, &d), "line %d: %s", line, d.text);
    cr_assert_eq(tensor_count(&out[0]), n, "line %d: %lld elements", line,
                 (long long)tensor_count(&out[0]));
    uint8_t dtype = out[0].dtype;
    for (int64_t i = 0; i < n; i++) {
        double got = scalar_to_double(dtype, scalar_load(dtype, (char *)out[0].data +
                                                                    i * dtype_size(dtype)));
        bool same = fabs(got - want[i]) <= tolerance * fabs(want[i]);
        if (got == want[i])
            same = !signbit(got) == !signbit(want[i]);
        if (isnan(want[i]))
            same = isnan(got);
        cr_expect(same, "line %d, element %lld: %.17g, expected %.17g", line, (long long)i, got,
                  want[i]);
    }
    xfree(out[0].data);
}
#define EXPECT(r, ...)                                                                             \
    expect_near(__LINE__, r, sizeof((double[]){__VA_ARGS__}) / 8, (double[]){__VA_ARGS__}, 0)
#define NEAR(r, ...)                                                                               \
    expect_near(__LINE__, r, sizeof((double[]){__VA_ARGS__}) / 8, (double[]){__VA_ARGS__}, 2e-7)
#define EMPTY(r) expect_near(__LINE__, r, 0, NULL, 0)

Test(interp, elementwise_broadcasts)
{
    ref a = input(DT_f32, DIMS(2, 3), NULL), b = input(DT_f32, DIMS(3), VALUES(10, 20, 30));
    ref c = input(DT_i8, DIMS(2, 1), VALUES(1, -1));
    EXPECT(build(OP_add, REFS(a, b), NONE), 10, 21, 32, 13, 24, 35);
    EXPECT(build(OP_mul, REFS(c, a), NONE), 0, 1, 2, -3, -4, -5);
    EXPECT(build(OP_where, REFS(c, b, a), NONE), 10, 20, 30, 10, 20, 30);
    EXPECT(build(OP_lt, REFS(a, c), NONE), 1, 0, 0, 0, 0, 0);
    EXPECT(build(OP_square, REFS(a), NONE), 0, 1, 4, 9, 16, 25);
}

Test(interp, orders)
{
    double inf = (double)INFINITY, nan = (double)NAN;
    ref x = input(DT_f32, DIMS(2, 4), VALUES(2, nan, -0.0, 0.0, inf, -inf, 1, 1));
    EXPECT(build(OP_sort, REFS(x), ATTR(1, 0)), -0.0, 0, 2, nan, -inf, 1, 1, inf);
    EXPECT(build(OP_sort, REFS(x), ATTR(1, 1)), nan, 2, -0.0, 0, inf, 1, 1, -inf);
    EXPECT(build(OP_argsort, REFS(x), ATTR(1, 0)), 2, 3, 0, 1, 1, 2, 3, 0);
    EXPECT(build(OP_argsort, REFS(x), ATTR(1, 1)), 1, 0, 2, 3, 0, 2, 3, 1);
    EXPECT(build(OP_argsort, REFS(x), ATTR(0, 1)), 1, 0, 1, 1, 0, 1, 0, 0);
    EXPECT(build(OP_topk, REFS(x), ATTR(2, 1, 1)), nan, 2, inf, 1);
    EXPECT(build(OP_argtopk, REFS(x), ATTR(2, 1, 0)), 2, 3, 1, 2);
    ref b = input(DT_i8, DIMS(5), VALUES(3, -128, 127, 3, 0));
    EXPECT(build(OP_argsort, REFS(b), ATTR(0, 1)), 2, 0, 3, 4, 1);
    EMPTY(build(OP_topk, REFS(b), ATTR(0, 0, 0)));
}

Test(interp, scalars_and_empty_tensors)
{
    ref s = input(DT_f32, SCALAR, VALUES(3)), z = input(DT_f32, DIMS(0, 3), NULL);
    ref l = graph_literal(g, DT_f32, scalar_from_double(DT_f32, 0.5), 0);
    EXPECT(build(OP_mul, REFS(s, l), NONE), 1.5);
    EMPTY(build(OP_add, REFS(s, z), NONE));
    EXPECT(build(OP_sum, REFS(z), ATTR(1, 0, 0)), 0, 0, 0);
    EXPECT(build(OP_prod, REFS(z), ATTR(2, 0, 1, 0)), 1);
    EXPECT(build(OP_mean, REFS(z), ATTR(2, 0, 1, 0)), (double)NAN);
    EXPECT(build(OP_all, REFS(z), ATTR(1, 0, 0)), 1, 1, 1);
    EXPECT(build(OP_any, REFS(z), ATTR(1, 0, 0)), 0, 0, 0);
    EMPTY(build(OP_max_reduce, REFS(z), ATTR(1, 1, 0)));
    EMPTY(build(OP_softmax, REFS(z), ATTR(1)));
    EMPTY(build(OP_softmax, REFS(z), ATTR(0)));
    ref k0 = build(OP_reshape, REFS(z), ATTR(2, 3, 0));
    EXPECT(build(OP_matmul, REFS(k0, z), NONE), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    EXPECT(build(OP_mean, REFS(s), ATTR(0, 0)), 3);
    ref minus_zero = input(DT_f32, DIMS(1), VALUES(-0.0));
    EXPECT(build(OP_sum, REFS(minus_zero), ATTR(1, 0, 0)), -0.0);
}

Test(interp, nan_and_the_first_extreme)
{
    ref a = input(DT_f32, DIMS(3), VALUES(1, NAN, -3));
    ref b = input(DT_f32, DIMS(3), VALUES(NAN, 1, -4));
    ref t = input(DT_i32, DIMS(3, 2), VALUES(3, 2, 3, 4, 1, 4));
    EXPECT(build(OP_max, REFS(a, b), NONE), (double)NAN, (double)NAN, -3);
    EXPECT(build(OP_relu, REFS(a), NONE), 1, (double)NAN, 0);
    EXPECT(build(OP_max_reduce, REFS(a), ATTR(1, 0, 0)), (double)NAN);
    EXPECT(build(OP_argmin, REFS(a), ATTR(1, 0, 0)), 1);
    EXPECT(build(OP_argmax, REFS(b), ATTR(1, 0, 0)), 0);
    EXPECT(build(OP_argmax, REFS(t), ATTR(1, 0, 0)), 0, 1);
    EXPECT(build(OP_argmax, REFS(t), ATTR(1, 1, 1)), 0, 1, 1);
    EXPECT(build(OP_min_reduce, REFS(t), ATTR(1, 1, 0)), 2, 3, 1);
    EXPECT(build(OP_any, REFS(a), ATTR(1, 0, 0)), 1);
}

Test(interp, integers_wrap_at_the_nodes_dtype)
{
    ref x = input(DT_i32, DIMS(2), VALUES(2147483647, -7));
    ref u = input(DT_u8, DIMS(3), VALUES(200, 100, 3));
    ref b = input(DT_bool, DIMS(3), VALUES(1, 1, 0));
    EXPECT(build(OP_cast, REFS(build(OP_add, REFS(x, x), NONE)), ATTR(DT_i64)), -2, -14);
    EXPECT(build(OP_sum, REFS(u), ATTR(1, 0, 0)), 303);
    EXPECT(build(OP_prod, REFS(u), ATTR(1, 0, 0)), 60000);
    EXPECT(build(OP_sum, REFS(b), ATTR(1, 0, 0)), 2);
    EXPECT(build(OP_add, REFS(u, u), NONE), 144, 200, 6);
    EXPECT(build(OP_mean, REFS(u), ATTR(1, 0, 0)), 101);
    EXPECT(build(OP_bitcast, REFS(x), ATTR(DT_u32)), 2147483647, 4294967289.0);
    ref row = build(OP_reshape, REFS(u), ATTR(2, 1, 3));
    ref col = build(OP_reshape, REFS(u), ATTR(2, 3, 1));
    EXPECT(build(OP_matmul, REFS(row, col), NONE), (40000 + 10000 + 9) % 256);
}

Test(interp, roundings_happen_at_every_node)
{
    ref x = input(DT_f32, DIMS(3), VALUES(1.00390625, 1.01171875, 0.1));
    ref h = build(OP_cast, REFS(build(OP_cast, REFS(x), ATTR(DT_bf16))), ATTR(DT_f32));
    EXPECT(h, 1, 1.015625, 0.10009765625);
    ref big = input(DT_f16, DIMS(2), VALUES(60000, 1));
    EXPECT(build(OP_add, REFS(big, big), NONE), (double)INFINITY, 2);
    EXPECT(build(OP_sum, REFS(big), ATTR(1, 0, 0)), 60000);
    ref xx = build(OP_mul, REFS(x, x), NONE), square = build(OP_square, REFS(x), NONE);
    EXPECT(build(OP_sub, REFS(xx, square), NONE), 0, 0, 0);
}

// Large elements that cancel leave the small ones whole, whatever their order.
Test(interp, sums_keep_what_does_not_cancel)
{
    static const double right[] = {4.125, 4.125, 4.125, 4.125, 4.125, 4.125};
    ref x = input(DT_f64, DIMS(6, 3), VALUES(4.125, 0x1p300, -0x1p300, 4.125, -0x1p63, 0x1p63,
                                             0x1p80, 4.125, -0x1p80, -0x1p63, 4.125, 0x1p63,
                                             0x1p64, -0x1p64, 4.125, -0x1p1000, 0x1p1000, 4.125));
    expect_near(__LINE__, build(OP_sum, REFS(x), ATTR(1, 1, 0)), 6, right, 0);
    static const double thirds[] = {1.375, 1.375, 1.375, 1.375, 1.375, 1.375};
    expect_near(__LINE__, build(OP_mean, REFS(x), ATTR(1, 1, 0)), 6, thirds, 0);
    double inf = (double)INFINITY;
    ref y = input(DT_f64, DIMS(3, 2), VALUES(inf, 1, -inf, inf, -0.0, -0.0));
    static const double special[] = {(double)INFINITY, (double)NAN, -0.0};
    expect_near(__LINE__, build(OP_sum, REFS(y), ATTR(1, 1, 0)), 3, special, 0);
}

Test(interp, views)
{
    ref x = input(DT_i32, DIMS(2, 3), NULL), v = input(DT_f32, DIMS(4), NULL);
    EXPECT(build(OP_permute, REFS(x), ATTR(2, 1, 0)), 0, 3, 1, 4, 2, 5);
    EXPECT(build(OP_reshape, REFS(build(OP_permute, REFS(x), ATTR(2, 1, 0))), ATTR(1, 6)), 0, 3, 1,
           4, 2, 5);
    EXPECT(build(OP_broadcast, REFS(build(OP_reshape, REFS(v), ATTR(2, 4, 1))), ATTR(3, 2, 4, 2)),
           0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3);
    EXPECT(build(OP_slice, REFS(x), ATTR(2, 0, 2, 2, 2, -1, 2, 1, -2)), 2, 0, 5, 3);
    EMPTY(build(OP_slice, REFS(v), ATTR(1, 2, 1, 2, 1, 1)));
    EXPECT(build(OP_flip, REFS(x), ATTR(2, 0, 1)), 5, 4, 3, 2, 1, 0);
    EXPECT(build(OP_flip, REFS(x), ATTR(1, -1)), 2, 1, 0, 5, 4, 3);
    ref p = build(OP_pad, REFS(x), ATTR(2, 1, 0, 2, 0, 2, 9));
    EXPECT(p, 9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 3, 4, 5, 9, 9);
    EXPECT(build(OP_concat, REFS(x, x), ATTR(1)), 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5);
    EXPECT(build(OP_concat, REFS(v, build(OP_slice, REFS(v), ATTR(1, 2, 1, 2, 1, 1)), v), ATTR(0)),
           0, 1, 2, 3, 0, 1, 2, 3);
    EXPECT(build(OP_iota, NONE, ATTR(2, 2, 3, 1)), 0, 1, 2, 0, 1, 2);
    EXPECT(build(OP_iota, NONE, ATTR(2, 2, 3, 0)), 0, 0, 0, 1, 1, 1);
}

Test(interp, strided_inputs)
{
    ref x = input(DT_f32, DIMS(2, 3), NULL);
    ref y = build(OP_add, REFS(x, x), NONE);
    inputs[0].stride[0] = 1; // columns first
    inputs[0].stride[1] = 2;
    EXPECT(y, 0, 4, 8, 2, 6, 10);
    void *data = inputs[0].data;
    inputs[0].data = (float *)data + 5; // backwards
    inputs[0].stride[0] = -3;
    inputs[0].stride[1] = -1;
    EXPECT(y, 10, 8, 6, 4, 2, 0);
    EXPECT(x, 5, 4, 3, 2, 1, 0);
    inputs[0].data = data;
}

Test(interp, indexing)
{
    ref x = input(DT_f32, DIMS(2, 3), NULL), i = input(DT_i8, DIMS(2, 2), VALUES(-1, 0, 1, 2));
    ref bad = input(DT_i64, DIMS(4), VALUES(-2, 4, 10, -6));
    EXPECT(build(OP_take, REFS(x, i), ATTR(1)), 2, 0, 1, 2, 5, 3, 4, 5);
    ref s = build(OP_slice, REFS(i), ATTR(2, 0, 0, 2, 1, 2, 2, 1, 1));
    EXPECT(build(OP_take, REFS(x, s), ATTR(0)), 3, 4, 5, 0, 1, 2);
    EXPECT(build(OP_take_along, REFS(x, i), ATTR(1)), 2, 0, 4, 5);

    ref five = build(OP_iota, NONE, ATTR(1, 5, 0));
    struct diag d = {0};
    struct tensor out[1] = {0};
    g->outputs.n = 0;
    graph_add_output(g, "y", build(OP_take, REFS(five, bad), ATTR(0)));
    cr_expect_not(interp_graph(g, inputs, out, &d));
    cr_expect_eq(d.code, DIAG_INDEX);
    cr_expect_str_eq(d.text, "take: index 10 for result [2] is out of range for axis 0 of size 5");
    cr_expect_null(out[0].data);
}

Test(interp, matmul_broadcasts_batches)
{
    ref a = input(DT_f32, DIMS(2, 2, 3), NULL), b = input(DT_f32, DIMS(3, 2), NULL);
    EXPECT(build(OP_matmul, REFS(a, b), NONE), 10, 13, 28, 40, 46, 67, 64, 94);
    ref bt = build(OP_permute, REFS(b), ATTR(2, 1, 0));
    ref batch = input(DT_f32, DIMS(3, 1, 1, 2), NULL);
    EXPECT(build(OP_matmul, REFS(batch, build(OP_reshape, REFS(bt), ATTR(3, 1, 2, 3))), NONE), 1, 3,
           5, 3, 13, 23, 5, 23, 41);
}

Test(interp, softmax_and_logsumexp)
{
    double inf = (double)INFINITY, nan = (double)NAN;
    ref x = input(DT_f32, DIMS(3, 3), VALUES(1, 2, -inf, -inf, -inf, -inf, inf, 0, 0));
    ref y = input(DT_f32, DIMS(2), VALUES(1000, 1000));
    NEAR(build(OP_softmax, REFS(x), ATTR(1)), 0.2689414213699951, 0.7310585786300049, 0, nan, nan,
         nan, nan, nan, nan);
    EXPECT(build(OP_softmax, REFS(y), ATTR(0)), 0.5, 0.5);
    NEAR(build(OP_log_softmax, REFS(y), ATTR(-1)), -M_LN2, -M_LN2);
    NEAR(build(OP_logsumexp, REFS(x), ATTR(1, 1, 0)), 2.3132616875182228, -inf, inf);
    NEAR(build(OP_logsumexp, REFS(y), ATTR(1, 0, 1)), 1000 + M_LN2);
    ref t = input(DT_f32, DIMS(2, 2), VALUES(0, 1, 0, 3));
    NEAR(build(OP_softmax, REFS(t), ATTR(0)), 0.5, 0.11920292202211755, 0.5, 0.8807970779778823);
}

Test(interp, norms_and_variance)
{
    double row[16];
    for (int i = 0; i < 16; i++)
        row[i] = (double)(float)(10000 + i * 1e-3);
    ref x = input(DT_f32, DIMS(2, 2), VALUES(1, 3, 5, 5));
    ref w = input(DT_f32, DIMS(2), VALUES(2, 10));
    ref far = input(DT_f32, DIMS(1, 16), row);
    int64_t none = (int64_t)scalar_from_double(DT_f64, 0);
    int64_t eps = (int64_t)scalar_from_double(DT_f64, 1e-5);
    EXPECT(build(OP_var, REFS(x), ATTR(1, 1, 0, 0)), 1, 0);
    EXPECT(build(OP_var, REFS(x), ATTR(1, 1, 0, 1)), 2, 0);
    EXPECT(build(OP_var, REFS(x), ATTR(1, 1, 0, 2)), (double)INFINITY, (double)NAN);
    EXPECT(build(OP_var, REFS(x), ATTR(1, 1, 0, 3)), (double)INFINITY, (double)NAN);
    NEAR(build(OP_layer_norm, REFS(x, w, w), ATTR(eps)), 2 - 2 * 0.999995000037,
         10 + 9.99995000037, 2, 10);
    NEAR(build(OP_rms_norm, REFS(x, w), ATTR(none)), 0.8944271909999159, 13.416407864998739, 2, 10);
    ref one = graph_literal(g, DT_f32, scalar_from_double(DT_f32, 1), 0);
    one = build(OP_broadcast, REFS(one), ATTR(1, 16));
    ref normed = build(OP_layer_norm, REFS(far, one, one), ATTR(eps));
    ref first = build(OP_slice, REFS(normed), ATTR(2, 0, 0, 2, 1, 1, 2, 1, 1));
    expect_near(__LINE__, first, 1, VALUES(1 - 1.33133), 1e-4);
}

Test(interp, cross_entropy)
{
    ref x = input(DT_f16, DIMS(2, 3), VALUES(0, 0, 0, 1, 2, 3));
    ref t = input(DT_i32, DIMS(2), VALUES(1, -1)), bad = input(DT_i32, DIMS(2), VALUES(1, 3));
    NEAR(build(OP_cross_entropy, REFS(x, t), NONE), (log(3) + 0.4076059644443803) / 2);
    ref y = input(DT_f32, DIMS(1, 2), VALUES((double)INFINITY, 0));
    ref last = build(OP_slice, REFS(t), ATTR(1, 1, 1, 2, 1, 1));
    EXPECT(build(OP_cross_entropy, REFS(y, last), NONE), (double)NAN);
    struct diag d = {0};
    struct tensor out[1] = {0};
    g->outputs.n = 0;
    graph_add_output(g, "y", build(OP_cross_entropy, REFS(x, bad), NONE));
    cr_expect_not(interp_graph(g, inputs, out, &d));
    cr_expect_eq(d.code, DIAG_INDEX);
}

Test(interp, activations)
{
    ref x = input(DT_f32, DIMS(3), VALUES(-1, 0, 2));
    NEAR(build(OP_gelu, REFS(x), NONE), -0.15865525393145707, 0, 1.9544997361036416);
    NEAR(build(OP_gelu_tanh, REFS(x), NONE), -0.15880800939172324, 0, 1.954597694087775);
    NEAR(build(OP_silu, REFS(x), NONE), -0.2689414213699951, 0, 1.7615941559557649);
}

Test(interp, outputs_repeat_and_may_be_inputs)
{
    ref x = input(DT_f32, DIMS(2), VALUES(1, 2));
    ref t = build(OP_add, REFS(x, x), NONE), dead = build(OP_mul, REFS(t, t), NONE);
    struct diag d = {0};
    struct tensor out[4];
    graph_add_output(g, "a", t);
    graph_add_output(g, "b", x);
    graph_add_output(g, "c", t);
    graph_add_output(g, "d", build(OP_sub, REFS(t, x), NONE));
    cr_assert(interp_graph(g, inputs, out, &d));
    cr_expect_eq(((float *)out[0].data)[1], 4);
    cr_expect_eq(((float *)out[1].data)[1], 2);
    cr_expect_eq(((float *)out[2].data)[1], 4);
    cr_expect_eq(((float *)out[3].data)[1], 2);
    cr_expect(out[0].data != out[2].data && out[1].data != inputs[0].data);
    cr_expect_neq(dead.i, t.i);
    for (int i = 0; i < 4; i++)
        xfree(out[i].data);
}

Test(interp, wrong_inputs_are_refused)
{
    ref x = input(DT_f32, DIMS(2), NULL);
    graph_add_output(g, "y", x);
    inputs[0].dim[0] = 1;
    struct diag d = {0};
    struct tensor out[1];
    cr_expect_not(interp_graph(g, inputs, out, &d));
    cr_expect_eq(d.code, DIAG_INVALID);
    inputs[0].dim[0] = 2;
}

Test(interp, chains_are_as_deep_as_they_like)
{
    ref x = input(DT_f32, DIMS(1), NULL), one = graph_literal(g, DT_f32, 0x3f800000, 0);
    for (int i = 0; i < 200000; i++)
        x = build(OP_add, REFS(x, one), NONE);
    EXPECT(x, 200000);
}

// arrays.c: the arrangements that have NumPy's names. The answers are NumPy's (arrays_numpy.py),
// for several dtypes, lazy and eager; nothing that was made on the way may be left, one kernel is
// enough for what reads them, and mistakes are told under the name that was called.
#include "api.h"

#include <math.h>

enum { MOST = 512 };

static const fc_dtype dtypes[] = {FC_F32, FC_F16, FC_I64, FC_U8, FC_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

// Elements are compared as f64, which holds all that is asked for here.
static void
check(fc_context *ctx, const char *what, fc_tensor t, fc_dtype dtype, const int64_t *shape,
      int rank, const double *right, int n)
{
    cr_assert(fc_valid(t), "%s: %s", what, fc_error(ctx));
    cr_assert_eq(fc_dtype_of(t), dtype, "%s gives %s", what, fc_dtype_name(fc_dtype_of(t)));
    cr_assert_eq(fc_rank(t), rank, "%s has rank %d", what, fc_rank(t));
    for (int i = 0; i < rank; i++)
        cr_assert_eq(fc_dim_value(fc_shape(t, i)), shape[i], "%s: size %lld of axis %d", what,
                     (long long)fc_dim_value(fc_shape(t, i)), i);
    static double got[MOST];
    cr_assert_eq(fc_count(t), n, "%s", what);
    fc_tensor wide = fc_cast(t, FC_F64);
    cr_assert_eq(fc_read(wide, got, (size_t)n * sizeof *got), FC_OK, "%s: %s", what, fc_error(ctx));
    for (int i = 0; i < n; i++) {
        double r = dtype == FC_BOOL ? right[i] != 0 : right[i];
        cr_assert(got[i] == r, "%s in %s: element %d is %.17g, right is %.17g", what,
                  fc_dtype_name(dtype), i, got[i], r);
    }
    fc_release(wide);
    fc_release(t);
}

#define LIST(...) __VA_ARGS__
#define NONE(...)
#define ANSWER(shape, elements)                                                                    \
    (const int64_t[]){0, LIST shape} + 1, (int)(sizeof((int64_t[]){0, LIST shape}) / 8) - 1,       \
        (const double[]){0, LIST elements} + 1,                                                    \
        (int)(sizeof((double[]){0, LIST elements}) / sizeof(double)) - 1

// 1, 2, 3 …, stored.
static fc_tensor
counted(fc_context *ctx, fc_dtype dtype, const fc_dim *shape, int rank)
{
    double v[MOST];
    for (int i = 0; i < MOST; i++)
        v[i] = i + 1;
    fc_tensor x = fc_from_host(ctx, FC_F64, v, shape, rank), t = fc_cast(x, dtype);
    cr_assert_eq(fc_eval(ctx, &t, 1), FC_OK, "%s", fc_error(ctx));
    fc_release(x);
    return t;
}

struct sources {
    fc_tensor x, v, m, t, u, e;
};

static struct sources
sources(fc_context *ctx, fc_dtype d)
{
    struct sources s = {fc_full(ctx, d, 7, FC_SCALAR_SHAPE),
                        counted(ctx, d, FC_SHAPE(5)),
                        counted(ctx, d, FC_SHAPE(2, 3)),
                        counted(ctx, d, FC_SHAPE(2, 3, 4)),
                        counted(ctx, d, FC_SHAPE(2, 1, 2, 1, 2, 1)),
                        counted(ctx, d, FC_SHAPE(0, 3))};
    return s;
}

static void
views(int mode, fc_dtype dtype)
{
    fc_context *ctx = new_context(mode);
    struct sources s = sources(ctx, dtype);
    fc_tensor x = s.x, v = s.v, m = s.m, t = s.t, u = s.u, e = s.e;
    cr_assert_eq(fc_eval(ctx, &x, 1), FC_OK);
    int64_t memory = stats(ctx).memory;
#define ARRAY(expression, shape, elements)                                                         \
    check(ctx, #expression, expression, dtype, ANSWER(shape, elements));                           \
    cr_assert_eq(stats(ctx).pending, 0, #expression " leaves something");                          \
    cr_assert_eq(stats(ctx).memory, memory, #expression " leaves memory");
#define NUMBERS NONE
#include "arrays_numpy.def"
#undef ARRAY
#undef NUMBERS
    fc_context_free(ctx);
}

Test(arrays, numpy_arranges_so)
{
    for (int i = 0; i < DTYPES; i++)
        views(FC_LAZY, dtypes[i]);
}

Test(arrays, numpy_arranges_so_eager)
{
    for (int i = 0; i < DTYPES; i++)
        views(FC_EAGER, dtypes[i]);
}

static void
numbers(int mode)
{
    fc_context *ctx = new_context(mode);
#define ARRAY NONE
#define NUMBERS(expression, dtype, shape, elements)                                                \
    check(ctx, #expression, expression, dtype, ANSWER(shape, elements));                           \
    cr_assert_eq(stats(ctx).pending, 0, #expression " leaves something");
#include "arrays_numpy.def"
#undef ARRAY
#undef NUMBERS
    fc_context_free(ctx);
}

Test(arrays, numpy_counts_so)
{
    numbers(FC_LAZY);
    numbers(FC_EAGER);
}

Test(arrays, what_numpy_gives_only_nearly)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        double right[16], x = 1, step = 0.1, big = 0x1.8p1023;
        for (int i = 0; i < 10; i++) { // a product and a sum, each rounded
            volatile double by = i * step;
            right[i] = x + by;
        }
        check(ctx, "arange", fc_arange(ctx, FC_F64, 1, 2.0, 0.1), FC_F64, (int64_t[]){10}, 1, right,
              10);
        // Ends further apart than the largest number: NumPy's distance is infinite.
        check(ctx, "linspace", fc_linspace(ctx, FC_F64, -big, big, 5), FC_F64, (int64_t[]){5}, 1,
              (double[]){-big, -big / 2, 0, big / 2, big}, 5);
        // Ends are exact wherever the steps lead.
        for (int n = 2; n < 60; n++) {
            fc_tensor line = fc_linspace(ctx, FC_F64, 0.1, 0.3 * n, n);
            fc_tensor last = fc_slice_axis(line, 0, -1, FC_END, 1);
            double end;
            cr_assert_eq(fc_item(last, &end), FC_OK, "%s", fc_error(ctx));
            cr_assert_eq(end, 0.3 * n, "of %d numbers the last is %.17g", n, end);
        }
        fc_context_free(ctx);
    }
}

Test(arrays, what_falls_out_of_a_triangle_is_zero_whatever_it_was)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_full(ctx, FC_F32, NAN, FC_SHAPE(2, 2));
        fc_tensor low = fc_cast(fc_isnan(fc_tril(x, -1)), FC_F32);
        fc_tensor high = fc_cast(fc_isnan(fc_triu(x, 0)), FC_F32);
        EXPECT(ctx, low, 0, 0, 1, 0);
        EXPECT(ctx, high, 1, 1, 0, 1);
        fc_context_free(ctx);
    }
}

static void
splits(int mode)
{
    fc_context *ctx = new_context(mode);
    for (int i = 0; i < DTYPES; i++) {
        fc_dtype d = dtypes[i];
        struct sources s = sources(ctx, d);
        fc_tensor out[4];
        cr_assert_eq(fc_split(s.t, NULL, 2, -1, out), FC_OK, "%s", fc_error(ctx));
        check(ctx, "split 0", out[0], d,
              ANSWER((2, 3, 2), (1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22)));
        check(ctx, "split 1", out[1], d,
              ANSWER((2, 3, 2), (3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23, 24)));
        cr_assert_eq(fc_split(s.v, FC_LIST(1, 0, 3, 1), 0, out), FC_OK, "%s", fc_error(ctx));
        check(ctx, "sizes 0", out[0], d, ANSWER((1), (1)));
        check(ctx, "sizes 1", out[1], d, ANSWER((0), ()));
        check(ctx, "sizes 2", out[2], d, ANSWER((3), (2, 3, 4)));
        check(ctx, "sizes 3", out[3], d, ANSWER((1), (5)));
        cr_assert_eq(fc_split(s.e, NULL, 3, 0, out), FC_OK, "%s", fc_error(ctx));
        check(ctx, "empty 2", out[2], d, ANSWER((0, 3), ()));
        fc_tensor whole = fc_concat(out, 2, 0);
        check(ctx, "empty whole", whole, d, ANSWER((0, 3), ()));
        fc_release(out[0]);
        fc_release(out[1]);
        cr_assert_eq(stats(ctx).pending, mode == FC_LAZY, "only the scalar x is left");
        cr_assert_eq(fc_eval(ctx, &s.x, 1), FC_OK);
    }
    fc_context_free(ctx);
}

Test(arrays, parts)
{
    splits(FC_LAZY);
    splits(FC_EAGER);
}

Test(arrays, stacked_dtypes_promote)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x[20];
        for (int i = 0; i < 20; i++)
            x[i] = fc_full(ctx, i % 2 ? FC_I16 : FC_F16, i, FC_SHAPE(2));
        fc_tensor all = fc_stack(x, 20, 1);
        cr_assert_eq(fc_dtype_of(all), FC_F32, "%s", fc_error(ctx));
        EXPECT(ctx, fc_sum(all, FC_LIST(1), false), 190, 190);
        fc_context_free(ctx);
    }
}

Test(arrays, likenesses)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (int i = 0; i < DTYPES; i++) {
            fc_dtype d = dtypes[i];
            struct sources s = sources(ctx, d);
            check(ctx, "zeros", fc_zeros_like(s.m), d, ANSWER((2, 3), (0, 0, 0, 0, 0, 0)));
            check(ctx, "ones", fc_ones_like(s.m), d, ANSWER((2, 3), (1, 1, 1, 1, 1, 1)));
            check(ctx, "full", fc_full_like(s.x, 9), d, ANSWER((), (9)));
            check(ctx, "full", fc_full_like(s.e, 9.0), d, ANSWER((0, 3), ()));
        }
        fc_dim n = fc_dim_named(ctx, "n", 3);
        fc_tensor x = fc_from_host(ctx, FC_F32, (float[]){1, 2, 3}, &n, 1);
        EXPECT(ctx, fc_add(fc_full_like(x, 0.5), x), 1.5, 2.5, 3.5);
        EXPECT(ctx, fc_add(fc_roll(x, 1, 0), x), 4, 3, 5);
        EXPECT(ctx, fc_flatten(fc_tril(fc_stack(((fc_tensor[]){x, x}), 2, 0), 0)), 1, 0, 0, 1, 2,
               0);
        EXPECT(ctx, fc_add(fc_tile(x, FC_LIST(2)), fc_repeat(x, 2, 0)), 2, 3, 5, 3, 5, 6);
        fc_context_free(ctx);
    }
}

static void
kernels(fc_context *ctx, const char *what, fc_tensor y, int64_t most)
{
    int64_t before = stats(ctx).kernels;
    cr_assert_eq(fc_eval(ctx, &y, 1), FC_OK, "%s: %s", what, fc_error(ctx));
    cr_expect_eq(stats(ctx).kernels - before, most, "%s takes %lld kernels", what,
                 (long long)(stats(ctx).kernels - before));
}

Test(arrays, kernels_see_through_them)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = counted(ctx, FC_F32, FC_SHAPE(16, 16)), out[2];
    kernels(ctx, "roll", fc_add_scalar(fc_roll(x, 3, 1), 1), 1);
    kernels(ctx, "roll of a sum", fc_roll(fc_add_scalar(x, 1), -3, 0), 1);
    kernels(ctx, "tile", fc_add_scalar(fc_tile(fc_neg(x), FC_LIST(2, 3)), 1), 1);
    kernels(ctx, "repeat", fc_add_scalar(fc_repeat(fc_neg(x), 3, 0), 1), 1);
    kernels(ctx, "stack", fc_neg(fc_stack(((fc_tensor[]){fc_neg(x), fc_exp(x)}), 2, 0)), 1);
    kernels(ctx, "tril", fc_add_scalar(fc_tril(fc_neg(x), 0), 1), 1);
    kernels(ctx, "diagonal", fc_add_scalar(fc_diagonal(fc_neg(x), 0, 0, 1), 1), 1);
    kernels(ctx, "trace", fc_sum(fc_diagonal(fc_neg(x), 0, 0, 1), FC_ALL, false), 1);
    fc_tensor batch = fc_neg(fc_reshape(x, FC_SHAPE(4, 8, 8)));
    kernels(ctx, "diagonals", fc_exp(fc_diagonal(batch, -1, 2, 0)), 1);
    kernels(ctx, "eye", fc_add(fc_eye(ctx, FC_F32, 16, 16, 0), x), 1);
    kernels(ctx, "arange", fc_mul(fc_arange(ctx, FC_F32, 0, 32, 2), x), 1);
    kernels(ctx, "linspace", fc_mul(fc_linspace(ctx, FC_F32, 0, 1, 16), x), 1);
    cr_assert_eq(fc_split(fc_neg(x), NULL, 2, 1, out), FC_OK);
    kernels(ctx, "split", fc_mul(out[0], out[1]), 1);
    fc_context_free(ctx);
}

static void
wrong_views(fc_context *ctx, fc_tensor m, fc_tensor x)
{
    fc_tensor v = fc_zeros(ctx, FC_U8, FC_SHAPE(5));
    fc_roll(m, 1, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "roll", "axis 2", "-2 to 1");
    fc_roll(x, 1, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "roll", "scalar");
    fc_tile(m, FC_LIST(2, -1));
    EXPECT_ERROR(ctx, FC_INVALID, "tile", "f32[2,3]", "-1 times", "must not be negative");
    fc_tile(m, FC_LIST(1, 1, 1, 1, 1, 1, 1, 1, 1));
    EXPECT_ERROR(ctx, FC_INVALID, "tile", "0 to 8", "9");
    fc_tile(m, NULL, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "tile", "NULL");
    fc_tile(m, FC_LIST(INT64_MAX, 2));
    EXPECT_ERROR(ctx, FC_INVALID, "tile", "f32[2,3]", "too large");
    fc_repeat(v, -2, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "repeat", "u8[5]", "-2 times");
    fc_repeat(v, 2, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "repeat", "axis 1");
    fc_repeat(v, (int64_t)1 << 46, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "repeat", "u8[5]", "too large");
    fc_tril(v, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "tril", "u8[5]", "reshape");
    fc_triu(x, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "triu", "f32[]", "reshape");
    fc_diagonal(v, 0, 0, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "diagonal", "u8[5]");
    fc_diagonal(m, 0, 0, -2);
    EXPECT_ERROR(ctx, FC_INVALID, "diagonal", "0 and -2", "f32[2,3]", "give two");
    fc_diagonal(m, 0, 0, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "diagonal", "axis 3");
    fc_full_like(v, 256);
    EXPECT_ERROR(ctx, FC_INVALID, "full_like", "256", "u8[5]");
    cr_expect_eq(fc_release(v), FC_OK);
}

static void
wrong_parts(fc_context *ctx, fc_tensor m, fc_tensor x)
{
    fc_tensor out[] = {m, m, m}, v = fc_zeros(ctx, FC_F32, FC_SHAPE(3));
    cr_expect_eq(fc_split(m, NULL, 2, 1, out), FC_INVALID);
    cr_expect(!fc_valid(out[0]) && !fc_valid(out[1]) && fc_valid(out[2]));
    EXPECT_ERROR(ctx, FC_INVALID, "split", "axis 1 of f32[2,3]", "2 equal parts", "sizes");
    cr_expect_eq(fc_split(m, FC_LIST(1, 1), 1, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "come to 2", "has 3");
    cr_expect_eq(fc_split(m, FC_LIST(1, 3), 1, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "size 3 of part 1", "2 elements left");
    cr_expect_eq(fc_split(m, FC_LIST(4, -1), 1, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "size 4 of part 0");
    cr_expect_eq(fc_split(fc_add(m, fc_reshape(m, FC_SHAPE(7))), NULL, 3, 1, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "reshape"); // the cause
    cr_expect_eq(fc_split(m, NULL, 0, 1, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "0 parts");
    cr_expect_eq(fc_split(m, NULL, 3, 1, NULL), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "NULL");
    cr_expect_eq(fc_split(m, NULL, 1, 2, out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "split", "axis 2");
    cr_expect(!fc_valid(fc_stack(((fc_tensor[]){m, v}), 2, 0)));
    EXPECT_ERROR(ctx, FC_INVALID, "stack", "operand 2", "f32[3]", "f32[2,3]", "broadcast");
    fc_stack(&m, 1, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "stack", "axis 3", "-3 to 2");
    fc_tensor deep = fc_reshape(x, FC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    fc_stack(&deep, 1, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "stack", "8 axes");
    cr_expect(!fc_valid(fc_stack(NULL, 2, 0)) && !fc_valid(fc_stack(&m, 0, 0)));
    fc_release(deep);
    fc_release(v);
}

static void
wrong_numbers(fc_context *ctx)
{
    fc_arange(ctx, FC_I32, 0, 5, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "step of 0");
    fc_arange(ctx, FC_U8, 0, 257, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "256 does not fit in u8", "wider");
    fc_arange(ctx, FC_U64, -1, 5, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "-1 does not fit in u64");
    fc_arange(ctx, FC_BOOL, 0, 3, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "2 does not fit in bool");
    fc_arange(ctx, FC_I32, 0, 2.0, 0.5);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "0.5 of i32", "integers");
    fc_arange(ctx, FC_F32, 0, INFINITY, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "inf");
    fc_arange(ctx, FC_F32, 0, 1, NAN);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "nan");
    fc_arange(ctx, FC_F64, 0, 1, 1e-300);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "too many");
    fc_arange(ctx, FC_I64, INT64_MIN, INT64_MAX, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "too many");
    fc_arange(ctx, (fc_dtype)99, 0, 1, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "arange", "99 is no dtype");
    fc_linspace(ctx, FC_F32, 0, 1, -1);
    EXPECT_ERROR(ctx, FC_INVALID, "linspace", "-1 numbers");
    fc_linspace(ctx, FC_F32, 0, INFINITY, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "linspace", "inf", "finite");
    fc_linspace(ctx, FC_DTYPE_NONE, 0, 1, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "linspace", "no dtype");
    fc_eye(ctx, FC_F32, 3, -1, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "eye", "3 by -1");
    fc_eye(ctx, FC_F32, 1 << 30, 1 << 30, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "eye", "too large");
    cr_expect(!fc_valid(fc_arange(NULL, FC_F32, 0, 1, 1)));
    cr_expect(!fc_valid(fc_linspace(NULL, FC_F32, 0, 1, 1)));
    cr_expect(!fc_valid(fc_eye(NULL, FC_F32, 1, 1, 0)));
}

// A handle that was released: told once, under the name, and passed on.
static void
stale(fc_context *ctx, fc_tensor gone)
{
    fc_tensor out[1];
    cr_expect(!fc_valid(fc_roll(gone, 1, 0)));
    EXPECT_ERROR(ctx, FC_HANDLE, "roll", "released");
    fc_tensor made[] = {fc_stack(&gone, 1, 0),      fc_tile(gone, FC_LIST(2)),
                        fc_repeat(gone, 2, 0),      fc_flatten(gone),
                        fc_tril(gone, 0),           fc_triu(gone, 0),
                        fc_diagonal(gone, 0, 0, 1), fc_full_like(gone, 1)};
    for (int i = 0; i < (int)(sizeof made / sizeof *made); i++)
        cr_expect(!fc_valid(made[i]), "%d", i);
    EXPECT_ERROR(ctx, FC_HANDLE, "stack", "released");
    cr_expect_eq(fc_split(gone, NULL, 1, 0, out), FC_HANDLE);
    EXPECT_ERROR(ctx, FC_HANDLE, "split", "released");
    cr_expect(!fc_valid(fc_roll((fc_tensor){0}, 1, 0)));
    cr_expect_eq(fc_split((fc_tensor){0}, NULL, 1, 0, out), FC_HANDLE);
    cr_expect_eq(fc_error_code(ctx), FC_OK, "no context to tell");
}

Test(arrays, what_makes_no_sense_is_refused)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor m = fc_zeros(ctx, FC_F32, FC_SHAPE(2, 3));
        fc_tensor x = fc_zeros(ctx, FC_F32, FC_SCALAR_SHAPE);
        wrong_views(ctx, m, x);
        wrong_parts(ctx, m, x);
        wrong_numbers(ctx);
        fc_release(x);
        fc_release(m);
        int64_t left = stats(ctx).pending;
        cr_expect_eq(left, 0, "mistakes left %lld ops", (long long)left);
        stale(ctx, m);
        fc_context_free(ctx);
    }
}

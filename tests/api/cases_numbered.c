// cases_numbered.c: bugs that fusion compilers have shipped, by number. A test of such a case has
// its number in its name, wherever it stands; these are those that stand nowhere else:
//
//   01 05 09 10 11 15 17 18 25 27  cases_values     23 46  diff_reductions
//   28 33 34 37 45 49              layouts          41 70  cases_shapes
//   41 42 55                       lifetime         50     plan_cache
//   64 65                          threads          39 47  cases_indices
#include "everywhere.h"

static void
arg_extremes(const struct world *w)
{
    fc_tensor nan = F(1, NAN, 3), two = F(2, 5, 5, 1), low = F(0, NAN);
    IS_I(fc_sub(fc_argmax(nan, FC_LIST(0), true), I(0)), 1);
    IS_I(fc_sub(fc_argmax(two, FC_LIST(0), true), I(0)), 1);
    IS_I(fc_sub(fc_argmin(two, FC_LIST(0), true), I(0)), 3);
    IS_I(fc_sub(fc_argmin(low, FC_LIST(0), true), I(0)), 1);
    // a computed operand, and what reads the position, in one kernel
    IS_I(fc_sub(fc_argmax(fc_neg(fc_neg(two)), FC_LIST(0), true), I(0)), 1);
    IS_I(fc_add(fc_argmin(fc_mul_scalar(two, 0), FC_LIST(0), true), I(7)), 7);
}
Test(cases_numbered, bc03_ties_and_nan_of_argmax)
{
    everywhere(arg_extremes);
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        const int32_t v[] = {3, 2, 3, 4, 1, 4};
        fc_tensor x = fc_from_host(ctx, FC_I32, v, FC_SHAPE(3, 2));
        EXPECT(ctx, fc_cast(fc_argmax(x, FC_LIST(0), false), FC_F32), 0, 1);
        fc_tensor ones = fc_ones(ctx, FC_F32, FC_SHAPE(1028, 1028));
        int64_t first;
        fc_tensor all = fc_max_reduce(fc_argmax(fc_add(ones, ones), FC_LIST(1), false), FC_ALL,
                                      false);
        cr_assert_eq(fc_item_int(all, &first), FC_OK);
        cr_assert_eq(first, 0);
        fc_tensor equal = fc_exp(fc_zeros(ctx, FC_F32, FC_SHAPE(65537)));
        cr_assert_eq(fc_item_int(fc_argmin(equal, FC_LIST(0), false), &first), FC_OK);
        cr_assert_eq(first, 0);
        fc_context_free(ctx);
    }
}

static void
powers(const struct world *w)
{
    fc_tensor zero = F(-0.0f, -INFINITY, 4);
    IS_F(fc_pow_scalar(zero, 0.5), 0, INFINITY, 2);
    IS_F(fc_sqrt(zero), -0.0f, NAN, 2);
    IS_F(fc_pow(F(0, 1, NAN, -8, -2, -0.0f), F(0, NAN, 0, 1.0f / 3, 3, -3)), 1, 1, 1, NAN, -8,
         -INFINITY);
    IS_F(fc_sub(fc_scalar(w->ctx, 0.0), F(0, -0.0f)), 0, 0);
    IS_F(fc_neg(F(0, -0.0f)), -0.0f, 0);
}
Test(cases_numbered, bc05_powers_and_roots_are_not_each_other)
{
    everywhere(powers);
}

// By plain IEEE a row of nothing but -infinity is NaN, and so is one with an infinity.
Test(cases_numbered, bc06_fully_masked_rows)
{
    const float inf = INFINITY;
    const float v[] = {1, 2, -inf, -inf, -inf, -inf, inf, 0, 0, 1000, 1000, -inf};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++)
        for (int by_hand = 0; by_hand < 2; by_hand++) {
            fc_context *ctx = new_context(mode);
            fc_tensor s = fc_from_host(ctx, FC_F32, v, FC_SHAPE(4, 3)), p = fc_softmax(s, 1);
            if (by_hand) {
                fc_tensor e = fc_exp(fc_sub(s, fc_max_reduce(s, FC_LIST(1), true)));
                p = fc_div(e, fc_sum(e, FC_LIST(1), true));
            }
            float got[12];
            cr_assert_eq(fc_read(p, got, sizeof got), FC_OK, "%s", fc_error(ctx));
            cr_assert_float_eq(got[0], 0.26894143, 1e-6);
            cr_assert_float_eq(got[1], 0.7310586, 1e-6);
            cr_assert_eq(got[2], 0);
            for (int i = 3; i < 9; i++)
                cr_assert(isnan(got[i]), "element %d is %g", i, got[i]);
            cr_assert(got[9] == 0.5f && got[10] == 0.5f && got[11] == 0);
            fc_context_free(ctx);
        }
}

static void
is_close(const struct world *w, fc_tensor t, double scale, const double *right, int n)
{
    double got[37 * 16];
    cr_assert_eq(fc_read(fc_cast(t, FC_F64), got, (size_t)(n * w->times) * 8), FC_OK, "%s",
                 fc_error(w->ctx));
    for (int i = 0; i < n * w->times; i++) {
        cr_assert(fabs(got[i] - right[i % n]) <= scale * fabs(right[i % n]),
                  "%s: element %d is %.9g, not %.9g", w->words, i, got[i], right[i % n]);
        cr_assert_eq(got[i], got[i % n], "%s: the tail differs", w->words);
    }
}
#define CLOSE(t, scale, ...)                                                                       \
    is_close(w, t, scale, (const double[]){__VA_ARGS__}, N_OF(double, __VA_ARGS__))

static void
huge_arguments(const struct world *w)
{
    CLOSE(fc_sinh(F(88, 89, 89.1f, 89.4f)), 5e-7, 8.2581813e37, 2.2448064e38, 2.480891e38,
          3.3488627e38);
    CLOSE(fc_cosh(F(88, -89)), 5e-7, 8.2581813e37, 2.2448064e38);
    CLOSE(fc_sin(F(96079.33f, 1e10f)), 5e-7, -2.633534e-07, -0.48750603);
    CLOSE(fc_sin(fc_mul_scalar(fc_cast(F(1, 1), FC_F64), 1e22)), 1e-15, -0.8522008497671888,
          -0.8522008497671888);
    CLOSE(fc_tanh(F(50, 1e10f, -1e10f, 89)), 0, 1, 1, -1, 1);
    CLOSE(fc_sigmoid(F(89, 1000, 40)), 0, 1, 1, 1);
}
Test(cases_numbered, bc09_huge_arguments)
{
    everywhere(huge_arguments);
}

static void
no_widening(const struct world *w)
{
    fc_tensor x = I(INT32_MAX, INT32_MIN, 65536);
    IS_I(fc_cast(fc_add(x, x), FC_I64), -2, 0, 131072);
    IS_I(fc_cast(fc_mul(x, x), FC_I64), 1, 0, 0);
    IS_I(fc_gt(fc_add_scalar(x, 1), x), 0, 1, 1);
    IS_I(fc_cast(fc_neg(x), FC_I64), -INT32_MAX, INT32_MIN, -65536);
    IS_I(fc_cast(fc_abs(x), FC_I64), INT32_MAX, INT32_MIN, 65536);
    fc_tensor small = fc_cast(I(127, -128, 100), FC_I8), big = fc_cast(I(255, 128, 1), FC_U8);
    IS_I(fc_cast(fc_add(small, small), FC_I32), -2, 0, -56);
    IS_I(fc_cast(fc_mul(big, big), FC_I32), 1, 0, 1);
    IS_F(fc_cast(fc_sub(big, fc_cast(I(0, 255, 2), FC_U8)), FC_F32), 255, 129, 255);
}
Test(cases_numbered, bc13_integers_wrap_at_their_own_width)
{
    everywhere(no_widening);
}

// f32 to bf16 or f16 and back is a rounding, also in front of a sum.
Test(cases_numbered, bc18_a_cast_down_and_up_is_a_rounding)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++)
        for (int half = 0; half < 2; half++) {
            fc_context *ctx = new_context(mode);
            fc_dtype to = half ? FC_F16 : FC_BF16;
            fc_tensor x = fc_div_scalar(fc_cast(fc_iota(ctx, FC_SHAPE(20), 0), FC_F32), 7);
            fc_tensor low = fc_keep(fc_cast(x, to));
            float rounded[20], right = 0, sum;
            cr_assert_eq(fc_read(fc_cast(low, FC_F32), rounded, sizeof rounded), FC_OK);
            for (int i = 0; i < 20; i++) {
                cr_assert(i % 7 == 0 || rounded[i] != (float)i / 7, "%d is not rounded", i);
                right += rounded[i];
            }
            fc_tensor y = fc_cast(fc_cast(x, to), FC_F32);
            expect_floats(ctx, y, rounded, 20);
            cr_assert_eq(fc_read(fc_sum(fc_mul(fc_cast(fc_cast(x, to), FC_F32), fc_ones(
                                                   ctx, FC_F32, FC_SHAPE(20))), FC_ALL, false),
                                 &sum, sizeof sum), FC_OK);
            cr_assert_float_eq(sum, right, 1e-5);
            fc_context_free(ctx);
        }
}

// As a constant of the graph and as an input the number is the same to the last bit.
Test(cases_numbered, bc22_constants_keep_all_their_digits)
{
    const float f[] = {1.0f / 3, 0.08838834764f, 0.70710678f, 1e-45f, 3.4028235e38f, 0.1f, -0.0f};
    const double d[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0.30000000000000004};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        float x[37];
        double y[37];
        for (int i = 0; i < 37; i++)
            y[i] = x[i] = (float)(i - 18) * 1.37f;
        for (int i = 0; i < 7; i++) {
            fc_tensor t = fc_from_host(ctx, FC_F32, x, FC_SHAPE(37));
            fc_tensor c = fc_from_host(ctx, FC_F32, &f[i], FC_SHAPE(1));
            float a[37], b[37];
            fc_tensor constant = fc_mul_scalar(fc_mul_scalar(t, 0.7f), f[i]);
            cr_assert_eq(fc_read(constant, a, sizeof a), FC_OK);
            cr_assert_eq(fc_read(fc_mul(fc_mul_scalar(t, 0.7f), c), b, sizeof b), FC_OK);
            cr_assert(!memcmp(a, b, sizeof a), "%.9g", f[i]);
        }
        for (int i = 0; i < 5; i++) {
            fc_tensor t = fc_from_host(ctx, FC_F64, y, FC_SHAPE(37));
            fc_tensor c = fc_from_host(ctx, FC_F64, &d[i], FC_SHAPE(1));
            double a[37], b[37];
            cr_assert_eq(fc_read(fc_mul_scalar(t, d[i]), a, sizeof a), FC_OK);
            cr_assert_eq(fc_read(fc_mul(t, c), b, sizeof b), FC_OK);
            cr_assert(!memcmp(a, b, sizeof a), "%.17g", d[i]);
        }
        fc_context_free(ctx);
    }
}

// Two sums that look as if they could run side by side, with a division between them; a product in
// one arm of a diamond; recurrences three steps deep.
Test(cases_numbered, bc44_paths_out_of_a_group_and_back)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3, 2}), FC_SHAPE(4));
        fc_tensor r1 = fc_sum(x, FC_ALL, false), z = fc_div(x, r1);
        EXPECT(ctx, fc_add(r1, fc_sum(z, FC_ALL, false)), 9);
        fc_tensor a = fc_reshape(fc_add_scalar(x, 1), FC_SHAPE(2, 2));
        fc_tensor b = fc_matmul(a, a), c = fc_mul_scalar(a, 10);
        EXPECT(ctx, fc_add(b, c), 36, 45, 60, 51);
        float h[4] = {0, 0, 0, 0}, right[4];
        const float m[4] = {0.5f, -0.25f, 0.125f, 1};
        fc_tensor w = fc_from_host(ctx, FC_F32, m, FC_SHAPE(2, 2));
        fc_tensor state = fc_zeros(ctx, FC_F32, FC_SHAPE(2, 2));
        fc_tensor in = fc_reshape(x, FC_SHAPE(2, 2));
        for (int t = 0; t < 3; t++) {
            state = fc_clamp(fc_add(fc_matmul(w, state), in), fc_scalar(ctx, -4.0),
                             fc_scalar(ctx, 4.0));
            for (int i = 0; i < 4; i++) {
                float v = m[i / 2 * 2] * h[i % 2] + m[i / 2 * 2 + 1] * h[2 + i % 2];
                v += (const float[]){1, 2, 3, 2}[i];
                right[i] = v > 4 ? 4 : v < -4 ? -4 : v;
            }
            memcpy(h, right, sizeof h);
        }
        expect_floats(ctx, state, right, 4); // all products are exact
        fc_context_free(ctx);
    }
}

// Rows of equal elements: softmax is 1 / N, a norm is 0 and no NaN; shared weights, twice.
Test(cases_numbered, bc46_rows_of_constants)
{
    static const int64_t columns[] = {1, 2, 31, 33, 1023, 1025, 12289, 33024, 65537};
    enum { ROWS = 3, MOST = 65537 };
    static float v[ROWS * MOST], got[ROWS * MOST];
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            int64_t n = columns[c], all = ROWS * n;
            for (int64_t i = 0; i < all; i++)
                v[i] = 0.1f * (float)(i / n + 1);
            fc_scope_begin(ctx);
            fc_tensor x = fc_from_host(ctx, FC_F32, v, FC_SHAPE(ROWS, n));
            fc_tensor one = fc_ones(ctx, FC_F32, FC_SHAPE(n)), zero = fc_sub(one, one);
            cr_assert_eq(fc_read(fc_softmax(x, 1), got, (size_t)all * 4), FC_OK);
            for (int64_t i = 0; i < all; i++)
                cr_assert_float_eq(got[i], 1 / (double)n, 1e-5 / (double)n, "%lld", (long long)n);
            fc_tensor norm = fc_layer_norm(fc_layer_norm(x, one, zero, 1e-5), one, zero, 1e-5);
            cr_assert_eq(fc_read(norm, got, (size_t)all * 4), FC_OK);
            for (int64_t i = 0; i < all; i++) // rounding errors of the mean, divided by sqrt(eps)
                cr_assert_float_eq(got[i], 0, 0.01, "%lld: %g", (long long)n, (double)got[i]);
            fc_scope_end(ctx);
        }
        fc_context_free(ctx);
    }
}

// What processors lack: conversions of halves, remainders and functions, which no library has to
// provide when the kernel is loaded.
static void
nothing_to_link(const struct world *w)
{
    fc_tensor x = F(1.5f, -2.25f, 65519, 0x1p-25f);
    IS_F(fc_cast(fc_cast(x, FC_F16), FC_F32), 1.5f, -2.25f, 65504, 0);
    IS_F(fc_cast(fc_cast(x, FC_BF16), FC_F32), 1.5f, -2.25f, 65536, 0x1p-25f);
    IS_F(fc_cast(fc_cast(fc_cast(x, FC_F64), FC_F16), FC_F32), 1.5f, -2.25f, 65504, 0);
    IS_F(fc_cast(fc_cast(fc_cast(x, FC_F64), FC_BF16), FC_F32), 1.5f, -2.25f, 65536, 0x1p-25f);
    fc_tensor h = fc_cast(F(3, -7, 5.5f, 2), FC_F16), two = fc_cast(F(2, 2, 2, 2), FC_F16);
    IS_F(fc_cast(fc_fmod(h, two), FC_F32), 1, -1, 1.5f, 0);
    IS_F(fc_cast(fc_mod(h, two), FC_F32), 1, 1, 1.5f, 0);
    IS_F(fc_cast(fc_max(h, two), FC_F32), 3, 2, 5.5f, 2);
    IS_F(fc_cast(fc_sqrt(fc_mul(two, two)), FC_F32), 2, 2, 2, 2);
    IS_F(fc_fmod(F(1e30f, -5.5f), F(7, 2)), fmodf(1e30f, 7), -1.5f);
    IS_F(fc_round(F(0.5f, 1.5f, -2.5f, 2.5f)), 0, 2, -2, 2);
    fc_tensor wide = fc_cast(I(INT32_MAX, -3, 7), FC_I64);
    IS_I(fc_mul(fc_mul(wide, wide), wide), 4611686024869838847, -27, 343); // 2^93 - …, wrapped
    IS_I(fc_floordiv(fc_mul(wide, wide), I(3, -2, 2)), 1537228671377473536, -5, 24);
}
Test(cases_numbered, bc69_nothing_is_left_to_link)
{
    everywhere(nothing_to_link);
}

static void
is_number(fc_context *ctx, fc_tensor t, double right, const char *what, int64_t n)
{
    double got;
    cr_assert_eq(fc_item(t, &got), FC_OK, "%s of %lld: %s", what, (long long)n, fc_error(ctx));
    cr_assert_eq(got, right, "%s of %lld: %g, right is %g", what, (long long)n, got, right);
}

// All n elements are one value: an absent one that took part would show.
static void
whole_lines(fc_context *ctx, fc_dtype dtype, int64_t n)
{
    fc_tensor one = fc_ones(ctx, dtype, FC_SHAPE(1, n)), less = fc_neg(one);
    fc_tensor padded = fc_pad(less, 0, FC_LIST(0, 0), FC_LIST(0, 1));
    is_number(ctx, fc_max_reduce(less, FC_LIST(1), false), -1, "max", n);
    is_number(ctx, fc_min_reduce(one, FC_LIST(1), false), 1, "min", n);
    is_number(ctx, fc_prod(fc_mul(one, one), FC_LIST(1), false), 1, "prod", n);
    is_number(ctx, fc_all(fc_gt_scalar(one, 0), FC_LIST(1), false), 1, "all", n);
    is_number(ctx, fc_any(fc_lt_scalar(one, 0), FC_LIST(1), false), 0, "any", n);
    is_number(ctx, fc_mean(one, FC_LIST(1), false), 1, "mean", n);
    is_number(ctx, fc_max_reduce(padded, FC_LIST(1), false), 0, "max of what is padded", n);
    is_number(ctx, fc_argmax(padded, FC_LIST(1), false), (double)n, "argmax", n);
}

// The least element stands in the last column of 32 rows.
static void
last_of_rows(fc_context *ctx, int64_t n)
{
    fc_tensor x = fc_sub(fc_zeros(ctx, FC_F32, FC_SHAPE(32, n)),
                         fc_cast(fc_iota(ctx, FC_SHAPE(32, n), 1), FC_F32));
    fc_tensor at = fc_argmin(x, FC_LIST(1), false);
    is_number(ctx, fc_min_reduce(at, FC_ALL, false), (double)(n - 1), "least argmin", n);
    is_number(ctx, fc_max_reduce(at, FC_ALL, false), (double)(n - 1), "greatest argmin", n);
}

Test(cases_numbered, bc30_absent_lanes_take_no_part)
{
    static const int64_t n[] = {1, 31, 33, 63, 65, 1023, 1025, 4097, 65537};
    static const fc_dtype dtype[] = {FC_F64, FC_F32, FC_BF16, FC_I8, FC_I64};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
            for (size_t d = 0; d < sizeof dtype / sizeof *dtype; d++)
                whole_lines(ctx, dtype[d], n[i]);
            last_of_rows(ctx, n[i]);
        }
        fc_tensor twos = fc_full(ctx, FC_F64, 2, FC_SHAPE(33));
        is_number(ctx, fc_prod(twos, FC_ALL, false), 8589934592.0, "prod of twos", 33);
        is_number(ctx, fc_prod(fc_cast(twos, FC_I64), FC_ALL, false), 8589934592.0, "prod", 33);
        fc_context_free(ctx);
    }
}

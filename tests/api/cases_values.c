// cases_values.c: values that fusion compilers have got wrong: NaN, signed zeros, extreme
// arguments, integer corners, casts out of range, roundings. Each graph runs lazy and eager, its
// inputs as tensors (once and 37 times over: vector body and tail) and as constants of the graph;
// the right values are IEEE 754's or NumPy's.
#include "everywhere.h"

static void
nan_wins(const struct world *w)
{
    fc_tensor a = F(1, NAN, -3), b = F(NAN, 1, -4);
    IS_F(fc_max(a, b), NAN, NAN, -3);
    IS_F(fc_min(a, b), NAN, NAN, -4);
    IS_F(fc_clamp(a, fc_scalar(w->ctx, 0.5), fc_scalar(w->ctx, 2)), 1, NAN, 0.5f);
    IS_F(fc_clamp(F(5), fc_scalar(w->ctx, 3), fc_scalar(w->ctx, 1)), 1);
    IS_F(fc_relu(a), 1, NAN, 0);
    IS_F(fc_cast(fc_max(fc_cast(a, FC_F16), fc_cast(b, FC_F16)), FC_F32), NAN, NAN, -3);
    IS_F(fc_cast(fc_min(fc_cast(a, FC_BF16), fc_cast(b, FC_BF16)), FC_F32), NAN, NAN, -4);
    IS_F(fc_mul_scalar(F(0, NAN, INFINITY, -1), 0), 0, NAN, NAN, -0.0f);
    IS_F(fc_sub(a, a), 0, NAN, 0);
    fc_tensor c = F(0, 2, INFINITY);
    IS_F(fc_div(c, c), NAN, 1, NAN);
}
Test(cases_values, bc01_nan_wins)
{
    everywhere(nan_wins);
}

static void
signed_zeros(const struct world *w)
{
    fc_tensor x = F(-0.0f, -INFINITY);
    IS_F(fc_reciprocal(fc_add_scalar(x, 0.0)), INFINITY, -0.0f);
    IS_F(fc_reciprocal(fc_sub_scalar(x, 0.0)), -INFINITY, -0.0f);
    IS_F(fc_reciprocal(fc_mul_scalar(x, 1)), -INFINITY, -0.0f);
    IS_F(fc_reciprocal(fc_sub(fc_scalar(w->ctx, 0.0), x)), INFINITY, 0);
    IS_F(fc_reciprocal(fc_neg(x)), INFINITY, 0);
    IS_F(fc_sqrt(x), -0.0f, NAN);
    IS_F(fc_neg(fc_sub(F(1, -1), F(1, -1))), -0.0f, -0.0f);
    IS_F(fc_max(F(0, -0.0f), F(-0.0f, 0)), 0, 0);
    IS_F(fc_min(F(0, -0.0f), F(-0.0f, 0)), -0.0f, -0.0f);
    IS_F(fc_where(fc_lt_scalar(F(-1, 1), 0), F(-0.0f, 1), fc_scalar(w->ctx, 0.0)), -0.0f, 0);
    IS_F(fc_gelu(F(-0.0f, -20, 0, 20)), -0.0f, -0.0f, 0, 20);
    IS_F(fc_gelu_tanh(F(-0.0f, -20, 0, 20)), -0.0f, -0.0f, 0, 20);
}
Test(cases_values, bc05_signed_zeros_keep_their_sign)
{
    everywhere(signed_zeros);
}

static void
extremes(const struct world *w)
{
    IS_F(fc_tanh(F(50, 1e10f, -1e10f)), 1, 1, -1);
    IS_F(fc_sigmoid(F(89, 1000, -1000)), 1, 1, 0);
    IS_F(fc_exp(F(-1000, 1000, -INFINITY)), 0, INFINITY, 0);
    IS_F(fc_sinh(F(88, 89, 89.1f, 89.4f)), 8.2581813e37f, 2.2448064e38f, 2.480891e38f,
         3.3488627e38f);
    IS_F(fc_cosh(F(-88, -89, -89.1f, 90)), 8.2581813e37f, 2.2448064e38f, 2.480891e38f, INFINITY);
    IS_F(fc_mul_scalar(F(0.1875f), 0x1p-124), 0x1.8p-127f);
    IS_F(fc_mul(F(1e-40f), F(1e10f)), 1e-40f * 1e10f);
    IS_I(fc_eq_scalar(F(1e-45f), 0), 0);
}
Test(cases_values, bc09_bc27_extreme_arguments_and_denormals)
{
    everywhere(extremes);
}

static void
integers(const struct world *w)
{
    fc_tensor a = I(-7, 7, -7, 7), b = I(3, -3, -3, 3), least = I(INT32_MIN, 5, -5, INT32_MAX);
    IS_I(fc_floordiv(a, b), -3, -3, 2, 2);
    IS_I(fc_mod(a, b), 2, -2, -1, 1);
    IS_I(fc_fmod(a, b), -1, 1, -1, 1);
    IS_I(fc_floordiv_scalar(a, 4), -2, 1, -2, 1);
    IS_I(fc_mod_scalar(a, 4), 1, 3, 1, 3);
    IS_I(fc_floordiv(least, I(-1, 0, 0, -1)), INT32_MIN, 0, 0, -INT32_MAX);
    IS_I(fc_mod(least, I(-1, 0, 0, -1)), 0, 0, 0, 0);
    IS_I(fc_floordiv_scalar(least, -1), INT32_MIN, -5, 5, -INT32_MAX);
    IS_I(fc_floordiv_scalar(least, 0), 0, 0, 0, 0);
    IS_I(fc_mod_scalar(least, 0), 0, 0, 0, 0);
    fc_tensor d = I(0, 2, 0, -1), five = I(5, 5, -5, INT32_MIN);
    IS_I(fc_where(fc_ne_scalar(d, 0), fc_floordiv(five, d), fc_scalar(w->ctx, 0)), 0, 2, 0,
         INT32_MIN);
    IS_I(fc_cast(fc_add(least, least), FC_I64), 0, 10, -10, -2);
    IS_I(fc_cast(fc_square(I(INT32_MAX)), FC_I64), 1);
    IS_I(fc_gt(fc_add_scalar(least, 1), least), 1, 1, 1, 0);
    IS_I(fc_shl(I(1, 1, 1), I(31, 32, -1)), INT32_MIN, 0, 0);
    IS_I(fc_shr(I(-8, -8, 8), I(1, 40, 40)), -4, -1, 0);
    IS_I(fc_pow(I(3, 0, -1, -2), I(20, -1, -3, 31)), -808182895, 0, -1, INT32_MIN);
    IS_I(fc_pow_scalar(a, 3), -343, 343, -343, 343);
    IS_F(fc_pow(F(2, 0, 9, -8), F(-2, 0, 0.5f, 3)), 0.25f, 1, 3, -512);
    IS_F(fc_mod(F(-7.5f, 7.5f), F(2, -2)), 0.5f, -0.5f);
    IS_F(fc_fmod(F(-7.5f), F(2)), -1.5f);
}
Test(cases_values, bc10_bc11_integers_wrap_and_never_trap)
{
    everywhere(integers);
}

static void
casts(const struct world *w)
{
    IS_I(fc_cast(F(NAN, INFINITY, -INFINITY, 3e9f, -1.9f), FC_I32), 0, INT32_MAX, INT32_MIN,
         INT32_MAX, -1);
    IS_I(fc_cast(F(-1, 300, NAN, 1.9f), FC_U8), 0, 255, 0, 1);
    IS_I(fc_cast(F(-129, 127.9f, NAN), FC_I8), -128, 127, 0);
    IS_I(fc_cast(F(9.2233715e18f, 9.3e18f, -9.3e18f), FC_I64), 9223371487098961920, INT64_MAX,
         INT64_MIN);
    IS_I(fc_cast(F(NAN, 0.5f, -0.0f, INFINITY), FC_BOOL), 1, 1, 0, 1);
    IS_I(fc_cast(I(-1, 256, 130), FC_U8), 255, 0, 130);
    IS_I(fc_cast(I(-1, 256, 130), FC_I8), -1, 0, -126);
    IS_F(fc_cast(fc_cast(F(1.00390625f, 1.01171875f, 0.1f), FC_BF16), FC_F32), 1, 1.015625f,
         0.10009765625f);
    IS_F(fc_cast(fc_cast(F(0.1f, 65520, 6e-8f), FC_F16), FC_F32), 0.0999755859375f, INFINITY,
         0x1p-24f);
}
Test(cases_values, bc15_bc18_casts_saturate_truncate_and_round)
{
    everywhere(casts);
}

static void
no_contraction(const struct world *w)
{
    fc_tensor x = F(0.1f, 1.1f, 3.3f), y = F(0.1f, 1.1f, 3.3f), big = F(1e10f, 1e10f, 1e10f);
    IS_F(fc_sub(fc_mul(x, x), fc_mul(y, y)), 0, 0, 0);
    IS_F(fc_sqrt(fc_sub(fc_square(x), fc_square(y))), 0, 0, 0);
    fc_tensor a = F(1e20f, 1e20f, 1e20f);
    IS_F(fc_add(fc_mul(a, big), fc_mul(fc_neg(a), big)), 0, 0, 0);
    volatile float third = 1.0f / 3, r[3] = {0.1f * third, 1.1f * third, 3.3f * third};
    IS_F(fc_mul_scalar(x, (double)third), r[0], r[1], r[2]);
}
Test(cases_values, bc17_products_and_sums_are_not_contracted)
{
    everywhere(no_contraction);
}

// Small steps far from 0: the mean's rounding error is as large as they are. Equal elements: the
// variance is nothing, and no NaN.
static void
far_from_zero(fc_context *ctx, int n)
{
    enum { MOST = 1000 };
    float x[MOST], y[MOST], v, equal[MOST];
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        x[i] = 10000 + (float)(i % 10) * 1e-3f;
        equal[i] = 0.1f;
        sum += x[i];
    }
    for (int i = 0; i < n; i++)
        squares += (x[i] - sum / n) * (x[i] - sum / n);
    fc_tensor t = fc_from_host(ctx, FC_F32, x, FC_SHAPE(1, n));
    fc_tensor norm = fc_layer_norm(t, fc_ones(ctx, FC_F32, FC_SHAPE(n)),
                                   fc_zeros(ctx, FC_F32, FC_SHAPE(n)), 1e-5);
    cr_assert_eq(fc_read(norm, y, (size_t)n * sizeof *y), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < n; i++)
        cr_assert_float_eq(y[i], (x[i] - sum / n) / sqrt(squares / n + 1e-5), 1e-5, "%d of %d", i,
                           n);
    cr_assert_eq(fc_read(fc_var(t, FC_LIST(1), false, 1), &v, sizeof v), FC_OK);
    cr_assert_float_eq(v, squares / (n - 1), 1e-5 * squares / (n - 1), "variance of %d", n);
    t = fc_from_host(ctx, FC_F32, equal, FC_SHAPE(n));
    cr_assert_eq(fc_read(fc_sqrt(fc_var(t, FC_LIST(0), false, 0)), &v, sizeof v), FC_OK);
    cr_assert(v >= 0 && v < 1e-9f, "deviation %g of %d equal numbers", v, n);
}

Test(cases_values, bc25_variance_far_from_zero)
{
    static const int n[] = {2, 3, 10, 16, 33, 100, 1000};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (size_t i = 0; i < sizeof n / sizeof *n; i++)
            far_from_zero(ctx, n[i]);
        fc_context_free(ctx);
    }
}

Test(cases_values, bc27_the_callers_floating_point_state_is_kept)
{
    volatile float a = 1e-30f, b = 1e-15f, before = a * b;
    cr_assert_gt(before, 0);
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor t = fc_exp(fc_ones(ctx, FC_F32, FC_SHAPE(1000)));
        cr_assert_eq(fc_eval(ctx, &t, 1), FC_OK);
        cr_assert_eq(a * b, before);
        fc_context_free(ctx);
        cr_assert_eq(a * b, before);
    }
}

// NumPy's view of bytes as bools and back, but that what is true counts as 1.
Test(cases_values, bits_of_bool_are_0_and_1)
{
    static const int8_t bytes[] = {0, 1, 2, -1, -128, 0, 127};
    static const uint8_t right[] = {0, 1, 1, 1, 1, 0, 1};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        uint8_t got[7];
        fc_tensor b = fc_bitcast(fc_from_host(ctx, FC_I8, bytes, FC_SHAPE(7)), FC_BOOL);
        cr_assert_eq(fc_dtype_of(b), FC_BOOL);
        cr_assert_eq(fc_read(fc_bitcast(b, FC_U8), got, sizeof got), FC_OK, "%s", fc_error(ctx));
        cr_assert_arr_eq(got, right, sizeof right);
        cr_assert_eq(fc_read(fc_bitcast(fc_not(b), FC_BOOL), got, sizeof got), FC_OK);
        for (int i = 0; i < 7; i++)
            cr_assert_eq(got[i], !right[i]);
        cr_assert_not(fc_valid(fc_bitcast(b, FC_I16)));
        EXPECT_ERROR(ctx, FC_INVALID, "bitcast", "bool has 8 bits", "i16 has 16");
        fc_context_free(ctx);
    }
}

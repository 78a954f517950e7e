// expand.c: the expansions of expand.h: corners of the math functions, division, shifts and casts;
// and what kernel_expand does to a body.
#include "ir/expand.h"

#include "ir/opmath.h"

#include <criterion/criterion.h>
#include <math.h>

static double
f(uint16_t op, uint8_t dtype, double a, double b)
{
    uint64_t in[3] = {scalar_from_double(dtype, a), scalar_from_double(dtype, b)};
    return scalar_to_double(dtype, eval_exact(op, dtype, dtype, in));
}

static int64_t
n(uint16_t op, uint8_t dtype, int64_t a, int64_t b, int64_t c)
{
    uint64_t in[3] = {scalar_from_int(dtype, a), scalar_from_int(dtype, b),
                      scalar_from_int(dtype, c)};
    return scalar_to_int(dtype, eval_exact(op, dtype, dtype, in));
}

static bool
same(double got, double want)
{
    return isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want);
}
static void
expect(double got, double want, const char *what)
{
    cr_expect(same(got, want), "%s: %a, expected %a", what, got, want);
}
#define EXPECT(got, want) expect(got, want, #got)

static const double inf = (double)INFINITY, nan_ = (double)NAN;
#define INF ((double)INFINITY)
#define NOT ((double)NAN)
#define PI 0x1.921fb54442d18p+1
static const uint8_t floats[] = {DT_f64, DT_f32, DT_f16, DT_bf16};

Test(expand, functions_at_their_corners)
{
    for (int i = 0; i < 4; i++) {
        uint8_t d = floats[i];
        EXPECT(f(OP_exp, d, 0, 0), 1);
        EXPECT(f(OP_exp, d, -0.0, 0), 1);
        EXPECT(f(OP_exp, d, inf, 0), inf);
        EXPECT(f(OP_exp, d, -inf, 0), 0);
        EXPECT(f(OP_exp, d, 30000, 0), inf);
        EXPECT(f(OP_exp, d, -30000, 0), 0);
        EXPECT(f(OP_log, d, 1, 0), 0);
        EXPECT(f(OP_log, d, 0, 0), -inf);
        EXPECT(f(OP_log, d, -0.0, 0), -inf);
        EXPECT(f(OP_log, d, -1, 0), nan_);
        EXPECT(f(OP_log, d, inf, 0), inf);
        EXPECT(f(OP_log, d, -inf, 0), nan_);
        EXPECT(f(OP_sin, d, -0.0, 0), -0.0);
        EXPECT(f(OP_sin, d, inf, 0), nan_);
        EXPECT(f(OP_cos, d, -0.0, 0), 1);
        EXPECT(f(OP_cos, d, -inf, 0), nan_);
        EXPECT(f(OP_tanh, d, -0.0, 0), -0.0);
        EXPECT(f(OP_tanh, d, inf, 0), 1);
        EXPECT(f(OP_tanh, d, -inf, 0), -1);
        EXPECT(f(OP_erf, d, -0.0, 0), -0.0);
        EXPECT(f(OP_erf, d, inf, 0), 1);
        EXPECT(f(OP_erf, d, -inf, 0), -1);
        EXPECT(f(OP_sigmoid, d, 0, 0), 0.5);
        EXPECT(f(OP_sigmoid, d, inf, 0), 1);
        EXPECT(f(OP_sigmoid, d, -inf, 0), 0);
        EXPECT(f(OP_rsqrt, d, 4, 0), 0.5);
        EXPECT(f(OP_rsqrt, d, 0, 0), inf);
        EXPECT(f(OP_rsqrt, d, -0.0, 0), -inf);
        EXPECT(f(OP_rsqrt, d, inf, 0), 0);
        EXPECT(f(OP_reciprocal, d, -0.0, 0), -inf);
        EXPECT(f(OP_reciprocal, d, -4, 0), -0.25);
        EXPECT(f(OP_sign, d, -0.0, 0), 0);
        EXPECT(f(OP_sign, d, -inf, 0), -1);
        EXPECT(f(OP_sign, d, 1e-5, 0), 1);
    }
}

struct corner {
    uint16_t op;
    double at, value;
};
static const struct corner corners[] = {
    {OP_exp2, 0, 1}, {OP_exp2, -0.0, 1}, {OP_exp2, -3, 0.125}, {OP_exp2, 10, 1024},
    {OP_exp2, INF, INF}, {OP_exp2, -INF, 0}, {OP_exp2, 30000, INF}, {OP_exp2, -30000, 0},
    {OP_expm1, 0, 0}, {OP_expm1, -0.0, -0.0}, {OP_expm1, INF, INF}, {OP_expm1, -INF, -1},
    {OP_expm1, 30000, INF}, {OP_expm1, -30000, -1},
    {OP_sinh, 0, 0}, {OP_sinh, -0.0, -0.0}, {OP_sinh, INF, INF}, {OP_sinh, -INF, -INF},
    {OP_sinh, 30000, INF}, {OP_sinh, -30000, -INF},
    {OP_cosh, 0, 1}, {OP_cosh, -0.0, 1}, {OP_cosh, INF, INF}, {OP_cosh, -INF, INF},
    {OP_cosh, -30000, INF},
    {OP_log2, 0, -INF}, {OP_log2, -0.0, -INF}, {OP_log2, 1, 0}, {OP_log2, -1, NOT},
    {OP_log2, INF, INF}, {OP_log2, -INF, NOT}, {OP_log2, 0.25, -2},
    {OP_log10, 0, -INF}, {OP_log10, -0.0, -INF}, {OP_log10, 1, 0}, {OP_log10, -1, NOT},
    {OP_log10, INF, INF}, {OP_log10, -INF, NOT}, {OP_log10, 100, 2},
    {OP_log1p, 0, 0}, {OP_log1p, -0.0, -0.0}, {OP_log1p, -1, -INF}, {OP_log1p, -1.5, NOT},
    {OP_log1p, INF, INF}, {OP_log1p, -INF, NOT},
    {OP_tan, 0, 0}, {OP_tan, -0.0, -0.0}, {OP_tan, INF, NOT}, {OP_tan, -INF, NOT},
    {OP_asin, 0, 0}, {OP_asin, -0.0, -0.0}, {OP_asin, 1.5, NOT}, {OP_asin, -1.5, NOT},
    {OP_asin, INF, NOT}, {OP_asin, -INF, NOT}, {OP_asin, 1, PI / 2}, {OP_asin, -1, -PI / 2},
    {OP_acos, 1, 0}, {OP_acos, -1, PI}, {OP_acos, 0, PI / 2}, {OP_acos, -0.0, PI / 2},
    {OP_acos, 1.5, NOT}, {OP_acos, -1.5, NOT}, {OP_acos, INF, NOT}, {OP_acos, -INF, NOT},
    {OP_atan, 0, 0}, {OP_atan, -0.0, -0.0}, {OP_atan, INF, PI / 2}, {OP_atan, -INF, -PI / 2},
    {OP_atan, 1, PI / 4}, {OP_atan, -1, -PI / 4},
    {OP_asinh, 0, 0}, {OP_asinh, -0.0, -0.0}, {OP_asinh, INF, INF}, {OP_asinh, -INF, -INF},
    {OP_acosh, 1, 0}, {OP_acosh, 0.5, NOT}, {OP_acosh, 0, NOT}, {OP_acosh, -1, NOT},
    {OP_acosh, -5, NOT}, {OP_acosh, INF, INF}, {OP_acosh, -INF, NOT},
    {OP_atanh, 0, 0}, {OP_atanh, -0.0, -0.0}, {OP_atanh, 1, INF}, {OP_atanh, -1, -INF},
    {OP_atanh, 1.5, NOT}, {OP_atanh, -1.5, NOT}, {OP_atanh, INF, NOT}, {OP_atanh, -INF, NOT},
    {OP_erfc, 0, 1}, {OP_erfc, -0.0, 1}, {OP_erfc, INF, 0}, {OP_erfc, -INF, 2},
    {OP_erfc, 30000, 0}, {OP_erfc, -30000, 2},
    {OP_cbrt, 0, 0}, {OP_cbrt, -0.0, -0.0}, {OP_cbrt, 8, 2}, {OP_cbrt, -27, -3},
    {OP_cbrt, INF, INF}, {OP_cbrt, -INF, -INF}, {OP_cbrt, 0.125, 0.5},
};

Test(expand, more_functions_at_their_corners)
{
    for (uint32_t i = 0; i < 4 * (sizeof corners / sizeof *corners); i++) {
        const struct corner *c = &corners[i / 4];
        double got = f(c->op, floats[i % 4], c->at, 0);
        double want = scalar_to_double(floats[i % 4], scalar_from_double(floats[i % 4], c->value));
        cr_expect(same(got, want), "%s(%g) %s: %a, expected %a", op_name(c->op), c->at,
                  dtype_name(floats[i % 4]), got, want);
    }
}

// Annex F of C for all pairs of corners, by way of the C library.
Test(expand, atan2_at_its_corners)
{
    static const double corner[] = {0, 0x1p-149, 0x1p-1074, 1e-310, 1e-40, 1e-5, 0.5, 1, 1.5, 1e10,
                                    1e37, 0x1.fffffep127, 1e200, 0x1p1023, 1.7e308, INF};
    enum { N = 2 * (int)(sizeof corner / sizeof *corner) + 1 };
    for (int i = 0; i < N * N; i++) {
        double v[2];
        for (int k = 0; k < 2; k++) {
            int j = k ? i / N : i % N;
            v[k] = j == N - 1 ? NOT : j % 2 ? -corner[j / 2] : corner[j / 2];
        }
        for (int d = 0; d < 2; d++) {
            double a = scalar_to_double(floats[d], scalar_from_double(floats[d], v[0]));
            double b = scalar_to_double(floats[d], scalar_from_double(floats[d], v[1]));
            double got = f(OP_atan2, floats[d], a, b), want = atan2(a, b);
            want = d ? (double)(float)want : want;
            bool near = got == want || fabs(got - want) <= fabs(want) * (d ? 0x1p-23 : 0x1p-52);
            near |= fabs(got - want) <= (d ? 0x1p-149 : 0x1p-1074);
            cr_expect((isnan(want) && isnan(got)) || (near && !signbit(got) == !signbit(want)),
                      "atan2(%a, %a) %s: %a, expected %a", a, b, dtype_name(floats[d]), got, want);
            if (a == 0 || b == 0 || isinf(a) || isinf(b))
                EXPECT(got, want);
        }
    }
}

Test(expand, whole_powers_are_exact)
{
    for (int d = 0; d < 2; d++) {
        int low = d ? -149 : -1074, high = d ? 127 : 1023;
        for (int n = low; n <= high; n++) {
            EXPECT(f(OP_exp2, floats[d], n, 0), ldexp(1, n));
            EXPECT(f(OP_log2, floats[d], ldexp(1, n), 0), n);
        }
        for (int n = 0; n <= (d ? 10 : 22); n++)
            EXPECT(f(OP_log10, floats[d], pow(10, n), 0), n);
    }
}

Test(expand, cube_roots_of_cubes_are_exact)
{
    for (int d = 0; d < 2; d++) {
        int64_t most = d ? 256 : 208064; // its cube has no more digits than the format
        for (int64_t n = 1; n <= most; n += n < 1000 ? 1 : 331) {
            double cube = (double)(n * n * n);
            EXPECT(f(OP_cbrt, floats[d], cube, 0), (double)n);
            EXPECT(f(OP_cbrt, floats[d], ldexp(-cube, d ? -120 : -960), 0),
                   ldexp(-(double)n, d ? -40 : -320));
        }
        for (int n = d ? -49 : -358; 3 * n < (d ? 128 : 1024); n++) // denormals too
            EXPECT(f(OP_cbrt, floats[d], ldexp(1, 3 * n), 0), ldexp(1, n));
    }
}

// Of exp alone what is halved has overflowed there already.
Test(expand, hyperbolic_functions_near_overflow)
{
    static const double at[] = {88, 88.75, 89, 89.1f, 89.4f};
    static const float sinh_of[] = {8.2581813e37f, 1.7482570e38f, 2.2448064e38f, 2.4808910e38f,
                                    3.3488627e38f};
    for (int i = 0; i < 5; i++) {
        cr_expect_float_eq(f(OP_sinh, DT_f32, at[i], 0), (double)sinh_of[i], 1e32);
        cr_expect_float_eq(f(OP_cosh, DT_f32, -at[i], 0), (double)sinh_of[i], 1e32);
    }
    EXPECT(f(OP_sinh, DT_f32, 89.45, 0), INF);
    cr_expect_float_eq(f(OP_sinh, DT_f64, 710.4, 0), 1.6663642832806496e308, 1e293);
    cr_expect_float_eq(f(OP_cosh, DT_f64, -710.4, 0), 1.6663642832806496e308, 1e293);
    EXPECT(f(OP_cosh, DT_f64, 710.5, 0), INF);
    cr_expect_float_eq(f(OP_expm1, DT_f32, 88.5, 0), 2.7230878e38, 1e32);
    cr_expect_float_eq(f(OP_expm1, DT_f64, 709.7, 0), 1.6549840276802644e308, 1e293);
}

Test(expand, nan_of_any_payload_stays_nan)
{
    static const uint16_t ops[] = {
        OP_exp,   OP_log,  OP_sin,  OP_cos,   OP_tanh, OP_erf,  OP_sign, OP_sigmoid, OP_rsqrt,
        OP_reciprocal,     OP_exp2, OP_expm1, OP_sinh, OP_cosh, OP_log2, OP_log10,   OP_log1p,
        OP_tan,   OP_asin, OP_acos, OP_atan,  OP_asinh, OP_acosh, OP_atanh, OP_cbrt,
        OP_erfc,
    };
    static const uint64_t nan32[] = {0x7fc00000, 0xffc00000, 0x7fffffff, 0x7fc00123, 0x7f800001};
    static const uint64_t nan64[] = {0x7ff8000000000000, 0xfff8000000000000, 0x7fffffffffffffff,
                                     0x7ff8000000000abc, 0x7ff0000000000001};
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint32_t j = 0; j < 5; j++) {
            uint64_t r = eval_exact(ops[i], DT_f32, DT_f32, &nan32[j]);
            cr_expect(isnan(scalar_to_double(DT_f32, r)), "%s f32", op_name(ops[i]));
            r = eval_exact(ops[i], DT_f64, DT_f64, &nan64[j]);
            cr_expect(isnan(scalar_to_double(DT_f64, r)), "%s f64", op_name(ops[i]));
        }
}

// Annex F of C for all pairs of corners, by way of the C library.
Test(expand, pow_at_its_corners)
{
    static const double corner[] = {0, 0x1p-149, 0x1p-1074, 1e-310, 1e-40, 1e-5, 0.5, 1 - 0x1p-53,
                                    1, 1 + 0x1p-23, 1.5, 2, 3, 4, 5, 7.25, 1e10, 0x1p24, 0x1p53,
                                    0x1p53 - 1, 1e37, 1e200, 1.7e308, (double)INFINITY};
    enum { N = 2 * (int)(sizeof corner / sizeof *corner) + 1 };
    for (int i = 0; i < N * N; i++) {
        double v[2];
        for (int k = 0; k < 2; k++) {
            int j = k ? i / N : i % N;
            v[k] = j == N - 1 ? nan_ : j % 2 ? -corner[j / 2] : corner[j / 2];
        }
        for (int d = 0; d < 2; d++) {
            double a = scalar_to_double(floats[d], scalar_from_double(floats[d], v[0]));
            double b = scalar_to_double(floats[d], scalar_from_double(floats[d], v[1]));
            double got = f(OP_pow, floats[d], a, b), want = pow(a, b);
            want = d ? (double)(float)want : want;
            bool near = got == want || fabs(got - want) <= fabs(want) * (d ? 0x1p-23 : 0x1p-52);
            near |= fabs(got - want) <= (d ? 0x1p-149 : 0x1p-1074);
            cr_expect((isnan(want) && isnan(got)) || (near && !signbit(got) == !signbit(want)),
                      "pow(%a, %a) %s: %a, expected %a", a, b, dtype_name(floats[d]), got, want);
        }
    }
}

Test(expand, pow_of_plain_exponents)
{
    for (int i = 0; i < 4; i++) {
        uint8_t d = floats[i];
        EXPECT(f(OP_pow, d, 0.1015625, 2), f(OP_mul, d, 0.1015625, 0.1015625));
        EXPECT(f(OP_pow, d, 2, 0.5), f(OP_sqrt, d, 2, 0));
        EXPECT(f(OP_pow, d, 3, -1), f(OP_div, d, 1, 3));
        EXPECT(f(OP_pow, d, -0.0, 0.5), 0);
        EXPECT(f(OP_pow, d, -inf, 0.5), inf);
        EXPECT(f(OP_pow, d, -2, 3), -8);
        EXPECT(f(OP_pow, d, -2, 5), -32);
        EXPECT(f(OP_pow, d, -8, 1.0 / 3), nan_);
        EXPECT(f(OP_pow, d, 7, 1), 7);
    }
}

// Values that others have published.
Test(expand, large_arguments)
{
    EXPECT(f(OP_tanh, DT_f32, 50, 0), 1);
    EXPECT(f(OP_tanh, DT_f32, 1e10, 0), 1);
    EXPECT(f(OP_tanh, DT_f32, -1e10, 0), -1);
    EXPECT(f(OP_tanh, DT_f64, 1e300, 0), 1);
    EXPECT(f(OP_sigmoid, DT_f32, 89, 0), 1);
    EXPECT(f(OP_sigmoid, DT_f32, 1000, 0), 1);
    EXPECT(f(OP_sigmoid, DT_f32, -1000, 0), 0);
    cr_expect_float_eq(f(OP_sin, DT_f32, 96079.33, 0), -2.633534e-07, 1e-13);
    cr_expect_float_eq(f(OP_sin, DT_f32, 1e10, 0), -0.48750603, 1e-7);
    cr_expect_float_eq(f(OP_sin, DT_f64, 1e22, 0), -0.8522008497671888, 2e-16);
    EXPECT(f(OP_erf, DT_f32, 4, 0), 1);
    EXPECT(f(OP_erf, DT_f64, 6, 0), 1);
    EXPECT(f(OP_erf, DT_f64, -1e308, 0), -1);
}

// The double closest to a multiple of pi / 2 (Muller, "Elementary Functions", 2006), and others.
Test(expand, reduction_of_the_hardest_arguments)
{
    double hardest = ldexp(6381956970095103, 797);
    EXPECT(f(OP_sin, DT_f64, hardest, 0), 1);
    EXPECT(f(OP_cos, DT_f64, hardest, 0), -4.6871659242546277e-19);
    EXPECT(f(OP_sin, DT_f64, 0x1.921fb54442d18p+1, 0), 1.2246467991473532e-16);
    EXPECT(f(OP_cos, DT_f64, 0x1.921fb54442d18p+0, 0), 6.123233995736766e-17);
    EXPECT(f(OP_tan, DT_f64, hardest, 0), -0x1.d9ba9a7975636p+60);
    EXPECT(f(OP_tan, DT_f64, 0x1.921fb54442d18p+0, 0), 16331239353195370);
    EXPECT(f(OP_tan, DT_f64, 0x1p-1074, 0), 0x1p-1074);
    EXPECT(f(OP_tan, DT_f32, -0x1p-149, 0), -0x1p-149);
    EXPECT(f(OP_sin, DT_f64, 0x1p-1074, 0), 0x1p-1074);
    EXPECT(f(OP_sin, DT_f32, 0x1p-149, 0), 0x1p-149);
    cr_expect_float_eq(f(OP_sin, DT_f64, 0x1.fffffffffffffp+1023, 0), 0.004961954789184062, 1e-18);
    cr_expect_float_eq(f(OP_sin, DT_f32, 0x1.fffffep+127, 0), -0.52187652, 6e-8);
}

Test(expand, results_reach_the_denormals_and_the_top)
{
    EXPECT(f(OP_exp, DT_f32, -103.9f, 0), 0x1p-149);
    EXPECT(f(OP_exp, DT_f32, -104, 0), 0);
    EXPECT(f(OP_exp, DT_f32, 0x1.62e43p+6f, 0), inf);
    cr_expect(f(OP_exp, DT_f32, 0x1.62e42ep+6f, 0) < inf);
    EXPECT(f(OP_exp, DT_f64, -745, 0), 0x1p-1074);
    EXPECT(f(OP_exp, DT_f64, -746, 0), 0);
    cr_expect(f(OP_exp, DT_f64, 0x1.62e42fefa39efp+9, 0) < inf);
    EXPECT(f(OP_exp, DT_f64, 0x1.62e42fefa39f0p+9, 0), inf);
    EXPECT(f(OP_sigmoid, DT_f32, -103.9f, 0), 0x1p-149);
    EXPECT(f(OP_sigmoid, DT_f64, -745, 0), 0x1p-1074);
    cr_expect_float_eq(f(OP_log, DT_f32, 0x1p-149, 0), -103.27893, 1e-5);
    cr_expect_float_eq(f(OP_log, DT_f64, 0x1p-1074, 0), -744.4400719213812, 1e-12);
    EXPECT(f(OP_tanh, DT_f32, 0x1p-149, 0), 0x1p-149);
    EXPECT(f(OP_tanh, DT_f64, -0x1p-1074, 0), -0x1p-1074);
    static const uint16_t near_0[] = {OP_expm1, OP_sinh, OP_log1p, OP_tan,
                                      OP_asin,  OP_atan, OP_asinh, OP_atanh};
    for (uint32_t i = 0; i < sizeof near_0 / sizeof *near_0; i++)
        for (int d = 0; d < 2; d++) {
            double least = d ? 0x1p-149 : 0x1p-1074;
            EXPECT(f(near_0[i], floats[d], least, 0), least);
            EXPECT(f(near_0[i], floats[d], -3 * least, 0), -3 * least);
        }
    EXPECT(f(OP_exp2, DT_f32, -150, 0), 0);
    EXPECT(f(OP_exp2, DT_f32, 128, 0), inf);
    EXPECT(f(OP_exp2, DT_f64, -1075, 0), 0);
    EXPECT(f(OP_exp2, DT_f64, 1024, 0), inf);
    EXPECT(f(OP_atan2, DT_f32, 0x1p-149, 1), 0x1p-149);
    EXPECT(f(OP_atan2, DT_f64, 0x1p-1000, 0x1p70), 0x1p-1070);
}

Test(expand, classification)
{
    static const double values[] = {0, -0.0, 1, 1e-42, (double)INFINITY, -(double)INFINITY,
                                    (double)NAN};
    for (int i = 0; i < 4; i++)
        for (uint32_t j = 0; j < sizeof values / sizeof *values; j++) {
            uint64_t in[3] = {scalar_from_double(floats[i], values[j])};
            double x = values[j];
            cr_expect_eq(eval_exact(OP_isnan, floats[i], DT_bool, in) != 0, isnan(x) != 0);
            cr_expect_eq(eval_exact(OP_isinf, floats[i], DT_bool, in) != 0, isinf(x) != 0);
            cr_expect_eq(eval_exact(OP_isfinite, floats[i], DT_bool, in) != 0, isfinite(x) != 0);
        }
    uint64_t five[3] = {5};
    cr_expect_eq(eval_exact(OP_isnan, DT_i32, DT_bool, five), 0);
    cr_expect_eq(eval_exact(OP_isinf, DT_u8, DT_bool, five), 0);
    cr_expect_eq(eval_exact(OP_isfinite, DT_i64, DT_bool, five), 1);
}

// NumPy's floor_divide, remainder and fmod, as NumPy 2 gives them.
Test(expand, float_division)
{
    for (int i = 0; i < 2; i++) {
        uint8_t d = floats[i];
        EXPECT(f(OP_floordiv, d, -7.5, 2), -4);
        EXPECT(f(OP_mod, d, -7.5, 2), 0.5);
        EXPECT(f(OP_fmod, d, -7.5, 2), -1.5);
        EXPECT(f(OP_floordiv, d, 7.5, -2), -4);
        EXPECT(f(OP_mod, d, 7.5, -2), -0.5);
        EXPECT(f(OP_floordiv, d, -0.0, 3), -0.0);
        EXPECT(f(OP_mod, d, -0.0, 3), 0);
        EXPECT(f(OP_mod, d, 6, -3), -0.0);
        EXPECT(f(OP_floordiv, d, 1, 0), inf);
        EXPECT(f(OP_floordiv, d, -1, 0), -inf);
        EXPECT(f(OP_floordiv, d, 0, 0), nan_);
        EXPECT(f(OP_mod, d, 1, 0), nan_);
        EXPECT(f(OP_fmod, d, 1, 0), nan_);
        EXPECT(f(OP_floordiv, d, 1, inf), 0);
        EXPECT(f(OP_floordiv, d, -1, inf), -1);
        EXPECT(f(OP_mod, d, -1, inf), inf);
        EXPECT(f(OP_mod, d, 1, -inf), -inf);
        EXPECT(f(OP_floordiv, d, inf, 1), nan_);
        EXPECT(f(OP_mod, d, inf, 1), nan_);
        EXPECT(f(OP_mod, d, 1, nan_), nan_);
    }
    EXPECT(f(OP_floordiv, DT_f64, 1, 0.1), 9);
    EXPECT(f(OP_mod, DT_f64, 1, 0.1), 0x1.9999999999996p-4);
}

static const double awkward[] = {
    0,        -0.0, 1,     -1,   0.1,    -0.1,   2.5,  -2.5,  3,        7,       -7, 1e-40, -1e-310,
    0x1p-149, 1e10, -1e10, 1e22, 3.4e38, -1e300, 0.75, 1e-5f, 16777217, 4503599,
    (double)INFINITY, -(double)INFINITY, (double)NAN,
};
enum { AWKWARD = sizeof awkward / sizeof *awkward };

Test(expand, float_division_is_its_definition)
{
    for (uint32_t i = 0; i < AWKWARD; i++)
        for (uint32_t j = 0; j < AWKWARD; j++) {
            double a = awkward[i], b = awkward[j];
            float a32 = (float)a, b32 = (float)b;
            EXPECT(f(OP_floordiv, DT_f64, a, b), floordiv_(a, b));
            EXPECT(f(OP_mod, DT_f64, a, b), mod_(a, b));
            EXPECT(f(OP_fmod, DT_f64, a, b), fmod(a, b));
            EXPECT(f(OP_floordiv, DT_f32, a, b), (double)floordiv_f(a32, b32));
            EXPECT(f(OP_mod, DT_f32, a, b), (double)mod_f(a32, b32));
        }
}

// Floor division from its definition, in a wider type; b != 0.
static int64_t
floor_of(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static void
check_small(uint8_t dtype, int64_t a, int64_t b, int64_t low, int64_t high)
{
    int64_t floordiv = b ? floor_of(a, b) : 0, mod = b ? a - floordiv * b : 0;
    int64_t fmod_ = b ? a - a / b * b : 0;
    if (floordiv > high)
        floordiv = low; // -128 // -1
    bool in_range = b >= 0 && b < 8;
    int64_t shl = in_range ? scalar_to_int(dtype, scalar_from_int(dtype, a * (1 << b))) : 0;
    int64_t shr = in_range ? floor_of(a, 1 << b) : a < 0 ? -1 : 0;
    cr_expect_eq(n(OP_floordiv, dtype, a, b, 0), floordiv, "%ld // %ld", a, b);
    cr_expect_eq(n(OP_mod, dtype, a, b, 0), mod, "%ld mod %ld", a, b);
    cr_expect_eq(n(OP_fmod, dtype, a, b, 0), fmod_, "%ld fmod %ld", a, b);
    int64_t power = dtype == DT_i8 ? spow_(a, b) : (int64_t)upow_((uint64_t)a, (uint64_t)b);
    cr_expect_eq(n(OP_pow, dtype, a, b, 0), scalar_to_int(dtype, scalar_from_int(dtype, power)),
                 "%ld pow %ld", a, b);
    cr_expect_eq(n(OP_shl, dtype, a, b, 0), shl, "%ld << %ld", a, b);
    cr_expect_eq(n(OP_shr, dtype, a, b, 0), shr, "%ld >> %ld", a, b);
}

Test(expand, all_bytes)
{
    for (int64_t a = -128; a < 128; a++)
        for (int64_t b = -128; b < 128; b++)
            check_small(DT_i8, a, b, -128, 127);
    for (int64_t a = 0; a < 256; a += 3)
        for (int64_t b = 0; b < 256; b++)
            check_small(DT_u8, a, b, 0, 255);
}

Test(expand, integer_corners)
{
    const uint8_t dtypes[] = {DT_i16, DT_i32, DT_i64};
    for (int i = 0; i < 3; i++) {
        uint8_t d = dtypes[i], w = dtype_table[d].bits;
        int64_t least = (int64_t)(~0ull << (w - 1)), most = ~least;
        cr_expect_eq(n(OP_floordiv, d, least, -1, 0), least);
        cr_expect_eq(n(OP_mod, d, least, -1, 0), 0);
        cr_expect_eq(n(OP_fmod, d, least, -1, 0), 0);
        cr_expect_eq(n(OP_floordiv, d, 5, 0, 0), 0);
        cr_expect_eq(n(OP_floordiv, d, -5, 0, 0), 0);
        cr_expect_eq(n(OP_mod, d, -5, 0, 0), 0);
        cr_expect_eq(n(OP_floordiv, d, -7, 3, 0), -3);
        cr_expect_eq(n(OP_mod, d, -7, 3, 0), 2);
        cr_expect_eq(n(OP_floordiv, d, 7, -3, 0), -3);
        cr_expect_eq(n(OP_mod, d, 7, -3, 0), -2);
        cr_expect_eq(n(OP_floordiv, d, -7, 4, 0), -2);
        cr_expect_eq(n(OP_mod, d, least, most, 0), most - 1);
        cr_expect_eq(n(OP_shl, d, 1, w - 1, 0), least);
        cr_expect_eq(n(OP_shl, d, 1, w, 0), 0);
        cr_expect_eq(n(OP_shl, d, 1, -1, 0), 0);
        cr_expect_eq(n(OP_shr, d, least, w - 1, 0), -1);
        cr_expect_eq(n(OP_shr, d, least, w, 0), -1);
        cr_expect_eq(n(OP_shr, d, most, least, 0), 0);
        cr_expect_eq(n(OP_fma, d, most, 2, 3), 1);
        cr_expect_eq(n(OP_clamp, d, 5, 3, 1), 1);
        cr_expect_eq(n(OP_clamp, d, least, -2, 2), -2);
        cr_expect_eq(n(OP_sign, d, least, 0, 0), -1);
    }
    cr_expect_eq(n(OP_shr, DT_u32, 0xffffffff, 32, 0), 0);
    cr_expect_eq(n(OP_sign, DT_u64, -1, 0, 0), 1);
}

Test(expand, clamp_keeps_nan)
{
    for (int i = 0; i < 4; i++) {
        uint64_t in[3] = {scalar_from_double(floats[i], (double)NAN),
                          scalar_from_double(floats[i], 0.5), scalar_from_double(floats[i], 2)};
        cr_expect(isnan(scalar_to_double(floats[i], eval_exact(OP_clamp, floats[i], 0, in))));
        in[0] = scalar_from_double(floats[i], 5);
        in[1] = scalar_from_double(floats[i], 3);
        in[2] = scalar_from_double(floats[i], 1);
        cr_expect_eq(eval_exact(OP_clamp, floats[i], 0, in), in[2]);
    }
}

// One cast, `from` to `to`, as a body, expanded and run.
static uint64_t
expanded_cast(uint8_t from, uint8_t to, uint64_t bits)
{
    struct kernel k = {0};
    vec_push(&k.inst, (struct inst){0});
    vec_push(&k.inst, ((struct inst){.op = OP_load, .dtype = from, .level = LEVEL_ELEM}));
    vec_push(&k.inst, ((struct inst){.op = OP_cast, .dtype = to, .a = 1, .level = LEVEL_ELEM}));
    vec_push(&k.store, ((struct store){.value = 2}));
    kernel_expand(&k);
    uint64_t v[64] = {0, bits};
    cr_assert_lt(k.inst.n, 64);
    for (uint32_t i = 2; i < k.inst.n; i++) {
        const struct inst *in = &k.inst.at[i];
        uint8_t dtype = k.inst.at[in->op == OP_where ? in->b : in->a].dtype;
        v[i] = in->op == OP_literal
                   ? in->bits
                   : eval_primitive(in->op, dtype, in->dtype, v[in->a], v[in->b], v[in->c]);
        bool narrow = dtype_is_half(dtype);
        cr_expect(in->op != OP_cast || !narrow || in->dtype == DT_f32);
        narrow = dtype_is_half(in->dtype);
        cr_expect(in->op != OP_cast || !narrow || dtype == DT_f32);
    }
    uint64_t r = v[k.store.at[0].value];
    kernel_free_body(&k);
    return r;
}

// Casts by way of f32 round once, as the direct conversion does.
Test(expand, casts_round_once)
{
    uint64_t state = 7;
    for (uint8_t from = DT_f64; from < DT_COUNT; from++)
        for (uint8_t to = DT_f64; to < DT_COUNT; to++)
            for (int i = 0; i < 2000; i++) {
                state = state * 6364136223846793005ull + 1442695040888963407ull;
                uint64_t bits = state >> (64 - dtype_table[from].bits);
                if (i % 2) // few bits set: near the halfway cases
                    bits &= (bits << 1) | (bits >> 9);
                bits = from == DT_bool ? bits & 1 : bits;
                uint64_t want = eval_primitive(OP_cast, from, to, bits, 0, 0);
                uint64_t got = expanded_cast(from, to, bits);
                bool both_nan = dtype_is_float(to) && isnan(scalar_to_double(to, got)) &&
                                isnan(scalar_to_double(to, want));
                cr_expect(got == want || both_nan, "%s to %s of %lx: %lx, expected %lx",
                          dtype_name(from), dtype_name(to), bits, got, want);
            }
}

// Midpoints of bf16 and f16, with and without a last bit far below.
Test(expand, casts_round_once_at_midpoints)
{
    uint64_t above = scalar_from_double(DT_f64, 1 + 0x1p-8 + 0x1p-50);
    EXPECT(scalar_to_double(DT_bf16, expanded_cast(DT_f64, DT_bf16, above)), 1 + 0x1p-7);
    above = scalar_from_double(DT_f64, 1 + 0x1p-11 + 0x1p-50);
    EXPECT(scalar_to_double(DT_f16, expanded_cast(DT_f64, DT_f16, above)), 1 + 0x1p-10);
    above = (1ull << 62) + (1ull << 54) + 1;
    EXPECT(scalar_to_double(DT_bf16, expanded_cast(DT_i64, DT_bf16, above)), 0x1p62 + 0x1p55);
    uint64_t tie = (1ull << 63) + (1ull << 55);
    EXPECT(scalar_to_double(DT_bf16, expanded_cast(DT_u64, DT_bf16, tie)), 0x1p63);
}

// sigmoid(x) stored, and exp(x) and its double summed over R; then a row value at stage 1.
static void
make_body(struct kernel *k)
{
    *k = (struct kernel){.naxis = 2, .nred = 1, .nstage = 2};
    vec_push(&k->inst, (struct inst){0});
    vec_push(&k->inst, ((struct inst){.op = OP_load, .dtype = DT_f32, .level = LEVEL_ELEM,
                                      .origin = 3}));
    vec_push(&k->inst, ((struct inst){.op = OP_exp, .dtype = DT_f32, .a = 1, .level = LEVEL_ELEM,
                                      .origin = 4}));
    vec_push(&k->inst, ((struct inst){.op = OP_exp, .dtype = DT_f32, .a = 1, .level = LEVEL_ELEM,
                                      .origin = 5}));
    vec_push(&k->inst, ((struct inst){.op = OP_result, .dtype = DT_f32, .level = LEVEL_ROW,
                                      .stage = 1}));
    vec_push(&k->inst, ((struct inst){.op = OP_log, .dtype = DT_f32, .a = 4, .level = LEVEL_ROW,
                                      .stage = 1, .origin = 6}));
    vec_push(&k->inst, ((struct inst){.op = OP_fma, .dtype = DT_f32, .a = 5, .b = 3, .c = 1,
                                      .level = LEVEL_ELEM, .stage = 1, .origin = 7}));
    vec_push(&k->acc, ((struct acc){.op = OP_sum, .dtype = DT_f32, .value = 2}));
    vec_push(&k->store, ((struct store){.value = 6, .stage = 1, .level = LEVEL_ELEM}));
}

Test(expand, bodies_keep_levels_stages_and_origins)
{
    struct kernel k;
    make_body(&k);
    kernel_expand(&k);
    uint32_t stored = k.store.at[0].value, fma = 0;
    for (uint32_t i = 1; i < k.inst.n; i++) {
        const struct inst *in = &k.inst.at[i];
        cr_expect(in->op == OP_fma || !(op_table[in->op].flags & OPF_EXPAND));
        cr_expect(in->a < i && in->b < i && in->c < i);
        uint8_t level = 0, stage = 0;
        const uint32_t operand[] = {in->a, in->b, in->c};
        for (int j = 0; j < 3 && in->a; j++) {
            const struct inst *o = &k.inst.at[operand[j]];
            level = o->level > level ? o->level : level;
            stage = o->stage > stage ? o->stage : stage;
        }
        if (in->a) {
            cr_expect_eq(in->level, level);
            cr_expect_eq(in->stage, stage);
            cr_expect(in->origin >= 4);
        }
        for (uint32_t j = 1; j < i; j++) { // nothing twice
            const struct inst *o = &k.inst.at[j];
            cr_expect(o->op != in->op || o->dtype != in->dtype || o->a != in->a ||
                      o->b != in->b || o->c != in->c || o->bits != in->bits);
        }
        fma += in->op == OP_fma;
    }
    cr_expect(fma > 5);
    cr_expect_eq(k.inst.at[stored].op, OP_fma);
    cr_expect_eq(k.inst.at[stored].b, k.acc.at[0].value); // the two exps became one
    cr_expect_eq(k.inst.at[k.inst.at[stored].a].level, LEVEL_ROW);
    kernel_free_body(&k);
}

Test(expand, literals_fold)
{
    struct kernel k = {0};
    vec_push(&k.inst, (struct inst){0});
    vec_push(&k.inst, ((struct inst){.op = OP_load, .dtype = DT_i32, .level = LEVEL_ELEM}));
    vec_push(&k.inst, ((struct inst){.op = OP_literal, .dtype = DT_i32, .bits = 3}));
    vec_push(&k.inst, ((struct inst){.op = OP_shl, .dtype = DT_i32, .a = 1, .b = 2,
                                     .level = LEVEL_ELEM}));
    vec_push(&k.store, ((struct store){.value = 3}));
    kernel_expand(&k);
    const struct inst *r = &k.inst.at[k.store.at[0].value];
    cr_expect_eq(r->op, OP_shl_raw);
    cr_expect_eq(r->a, 1);
    cr_expect_eq(k.inst.at[r->b].bits, 3);
    cr_expect_eq(k.inst.n, 4); // and nothing is left of the check
    kernel_free_body(&k);
}

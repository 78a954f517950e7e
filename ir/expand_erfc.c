// expand_erfc.c: erfc, for f32 and f64.
//
// erfc x = exp(-x^2) g(x) for x >= 0, and 2 less that below: g, exp(x^2) erfc(x), falls from 1 to
// 1 / (x sqrt(pi)) only. x^2 is taken in two parts, as what it loses counts as much as it is large.
//
// f32: g is cut into 16 pieces by the leading bits of 1 + scale x, like tanh (ir/expand_table.c).
// f64: (1 + 2 x) g is 1 + u P(t), u = 2 x / (x + 4), t = u - 1, P of degree 21, to 2^-55.8
// (Schonfelder 1978 has t): so that near 0, where it grows fastest, errors of t are of no account.
// What the sum, 1 + 2 x and the quotient by it lose is the second part of g.
//
// Tables and coefficients: ir/fit_tables.py, ir/fit_polynomials.py.
#include "ir/expand_rules.h"
#include "ir/tables.h"

#include "ir/base/check.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const double erfcx_poly[] = {
    0x1.dd2c8b74febf6p-3, -0x1.7d8f1c4524748p-2, 0x1.8d4ecb405c62fp-2, -0x1.47938f4c72edap-2,
    0x1.c0398cb6f0ba5p-3, -0x1.00428c8ff2de1p-3, 0x1.e1a956434d236p-5, -0x1.625ed0938b81ap-6,
    0x1.63f2603df5c76p-8, -0x1.a2bee97c21a58p-12, -0x1.77d65169933a9p-12, 0x1.4dce175a2769cp-13,
    -0x1.1ed6792a82032p-17, -0x1.09fe535769744p-16, 0x1.36b23247e1022p-18, 0x1.23f6fa4f858a6p-20,
    -0x1.a63a5643fa158p-21, -0x1.9db293be267e8p-25, 0x1.dd14eec1d35c9p-24, 0x1.0e9b3af2a3497p-28,
    -0x1.95d2a47f95545p-27, -0x1.e6d0b58be293fp-30,
};

struct pair {
    val hi, lo;
};

static struct pair
erfcx32(struct expander *x, val size)
{
    val y = x_fma(x, size, x_num(x, DT_f32, 1.4765625), x_num(x, DT_f32, 1));
    val index = x_shr(x, x_bitcast(x, DT_i32, y), x_num(x, DT_i32, 21));
    val t = x_sub(x, size, x_lookup(x, TABLE_erfc32, index));
    val sum = x_lookup(x, TABLE_erfc32 + 1 + ERFC_ORDER, index);
    for (uint32_t i = ERFC_ORDER; i-- > 0;)
        sum = x_fma(x, sum, t, x_lookup(x, TABLE_erfc32 + 1 + i, index));
    return (struct pair){sum, x_num(x, DT_f32, 0)};
}

static struct pair
erfcx64(struct expander *x, val size)
{
    val one = x_num(x, DT_f64, 1), two = x_num(x, DT_f64, 2), four = x_num(x, DT_f64, 4);
    val u = x_div(x, x_add(x, size, size), x_add(x, size, four)), t = x_sub(x, u, one);
    val rest = x_poly_by_pairs(x, t, x_mul(x, t, t), erfcx_poly, COUNT(erfcx_poly));
    val p = x_fma(x, u, rest, one), p_lo = x_fma(x, u, rest, x_sub(x, one, p));
    val d = x_fma(x, size, two, one), d_lo = x_fma(x, size, two, x_sub(x, one, d));
    val inverse = x_div(x, one, d), g = x_mul(x, p, inverse), minus_g = x_neg(x, g);
    val left = x_fma(x, minus_g, d_lo, x_add(x, x_fma(x, minus_g, d, p), p_lo));
    return (struct pair){g, x_mul(x, left, inverse)};
}

val
expand_erfc(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "erfc takes f32 and f64, not %s", dtype_name(t));
    val size = x_least(x, x_abs(x, a), t == DT_f64 ? 27.3 : 10.1);
    struct pair g = t == DT_f64 ? erfcx64(x, size) : erfcx32(x, size);
    val minus = x_neg(x, size), square = x_mul(x, minus, size);
    val lo = x_fma(x, minus, size, x_neg(x, square));
    val r = x_exp_product(x, square, lo, g.hi, g.lo);
    return x_where(x, x_lt(x, a, x_num(x, t, 0)), x_sub(x, x_num(x, t, 2), r), r);
}

// expand_root.c: cbrt, for f32 and f64.
//
// y = 1 / cbrt |x| without a division: a third of x's bits, subtracted from a constant, are a
// guess, as the bits of a float are its logarithm, almost: e = 1 - x y^3 is at most 0.1021. The
// third is taken as a float, scaled so that its rounding to an integer is that of an addition. Then
// y (1 - e)^(-1/3), by a minimax polynomial, leaves y 2^-18.5 off; for f64 follows a step of
// Newton's.
// c = x y^2 is put right by Newton's step for c^3 = x, whose remainder x - c^3 is computed with c^2
// in two parts: so that the result is rounded as it should be but for ties that almost are, and of
// cubes exact.
//
// What is so small that the remainder would not be normal, infinity and NaN are a rare operand.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#include <math.h>

struct root_format {
    uint8_t flt, sint, uint, shift; // shift: of the bits before they are a float
    double magic;                   // 2^fraction, and the guess's constant, shifted
    double least, up, down;         // below least: the root of up x, times down
};
static const struct root_format formats[2] = {
    {DT_f32, DT_i32, DT_u32, 8, 0x1.a943ecp+23, 0x1p-100, 0x1p96, 0x1p-32},
    {DT_f64, DT_i64, DT_u64, 12, 0x1.553ee978d4fdfp+52, 0x1p-960, 0x1p300, 0x1p-100},
};
static const double step[3] = {0x1.55546ap-2, 0x1.c9ad42p-3, 0x1.652cd4p-3};

// A multiple of x^(-1/3), of x > 0: some percent off.
static val
guess(struct expander *x, const struct root_format *f, val a)
{
    val bits = x_bitcast(x, f->sint, a), third;
    if (f->flt == DT_f32) {
        third = x_mul(x, x_cast(x, DT_f32, bits), x_num(x, DT_f32, -0x1p-8 / 3));
    } else { // few processors convert 64-bit integers
        val magic = x_num(x, DT_f64, 0x1p52), shifted = x_shr(x, bits, x_num(x, DT_i64, f->shift));
        bits = x_or(x, shifted, x_bitcast(x, DT_i64, magic));
        third = x_mul(x, x_sub(x, x_bitcast(x, DT_f64, bits), magic), x_num(x, DT_f64, -1.0 / 3));
    }
    val sum = x_bitcast(x, f->sint, x_add(x, third, x_num(x, f->flt, f->magic)));
    return x_bitcast_number(x, f->flt, x_shl(x, sum, x_num(x, f->sint, f->shift)));
}

// 1 - a y^3; what is multiplied remains in between.
static val
defect(struct expander *x, val a, val y)
{
    val minus = x_neg(x, x_mul(x, x_mul(x, a, y), y));
    return x_fma(x, minus, y, x_num(x, x_dtype(x, a), 1));
}

// Of an ordinary a > 0, or 0.
static val
root(struct expander *x, const struct root_format *f, val a)
{
    val third = x_num(x, f->flt, 1.0 / 3), y = guess(x, f, a), e = defect(x, a, y);
    y = x_fma(x, x_mul(x, y, e), x_poly(x, e, step, 3), y);
    if (f->flt == DT_f64)
        y = x_fma(x, x_mul(x, y, defect(x, a, y)), third, y);
    val y2 = x_mul(x, y, y), c = x_mul(x, a, y2), square = x_mul(x, c, c);
    val square_lo = x_fma(x, c, c, x_neg(x, square)), minus_c = x_neg(x, c);
    val left = x_fma(x, minus_c, square_lo, x_fma(x, minus_c, square, a));
    return x_fma(x, left, x_mul(x, y2, third), c);
}

val
expand_cbrt(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "cbrt takes f32 and f64, not %s", dtype_name(t));
    const struct root_format *f = &formats[t == DT_f64];
    val size = x_abs(x, a), inf = x_num(x, t, (double)INFINITY);
    val least = x_bitcast(x, f->uint, x_num(x, t, f->least));
    val place = x_sub(x, x_bitcast(x, f->uint, size), least);
    val outside = x_op(x, OP_ge, place, x_sub(x, x_bitcast(x, f->uint, inf), least), 0);
    val rest = x_and(x, outside, x_ne(x, size, x_num(x, t, 0)));
    val small = root(x, f, x_mul(x, size, x_num(x, t, f->up)));
    small = x_mul(x, small, x_num(x, t, f->down));
    small = x_where(x, x_lt(x, size, inf), small, size); // infinity, NaN
    return x_copysign(x, x_where_rarely(x, rest, small, root(x, f, size)), a);
}

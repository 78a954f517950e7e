// expand_divide.c: floordiv, mod and fmod.
//
// Integers: idiv_raw traps or is undefined for b = 0 and for the least value by -1. Both divisors
// are replaced by 1 before dividing. Then the remainder of either is 0, as it should be, and only
// the quotient needs a choice afterwards. The truncated quotient is one too large where the
// remainder is not 0 and its sign is not b's.
//
// Floats: NumPy's divmod. The remainder is C's exact fmod, moved to b's side; the quotient is
// computed from it as (a - fmod) / b, which is within rounding of an integer, and snapped to that.
//
// x_rough_inverse: the bits of d subtracted from a constant are a guess of 1 / d's, some percent
// off (the exponent is negated, the fraction bent straight). A step y (1 + e + e^2 + e^3) with
// e = 1 - d y raises the relative error to its fourth power, y (1 + e) to its second.
#include "ir/expand_rules.h"

struct division {
    val a, b;       // the divisor as divided by
    val by_zero;    // bool: the divisor given is 0
    val by_minus_1; // bool, signed types only; else 0
    val quotient;   // truncated
    val remainder;  // its sign is a's
};

val
x_rough_inverse(struct expander *x, val d)
{
    bool wide = x_dtype(x, d) == DT_f64;
    uint8_t t = x_dtype(x, d), n = wide ? DT_i64 : DT_i32;
    val minus_d = x_neg(x, d), one = x_num(x, t, 1);
    val guess = x_bits(x, n, wide ? 0x7fde623822fc16e6 : 0x7ef311c3);
    val y = x_bitcast_number(x, t, x_sub(x, guess, x_bitcast(x, n, d))); // NaN: 2^127 and more
    val e = x_fma(x, minus_d, y, one);
    y = x_fma(x, y, x_fma(x, e, x_fma(x, e, e, e), e), y);
    return wide ? x_fma(x, y, x_fma(x, minus_d, y, one), y) : y;
}

val
x_inverse(struct expander *x, val d)
{
    val y = x_rough_inverse(x, d);
    return x_fma(x, y, x_fma(x, x_neg(x, d), y, x_num(x, x_dtype(x, d), 1)), y);
}

static struct division
divide(struct expander *x, val a, val b)
{
    uint8_t t = x_dtype(x, a);
    struct division d = {.a = a, .by_zero = x_eq(x, b, x_num(x, t, 0))};
    val replace = d.by_zero;
    if (dtype_table[t].kind == DTK_SINT) {
        d.by_minus_1 = x_eq(x, b, x_num(x, t, -1));
        replace = x_or(x, replace, d.by_minus_1);
    }
    d.b = x_where(x, replace, x_num(x, t, 1), b);
    d.quotient = x_op(x, OP_idiv_raw, a, d.b, 0);
    d.remainder = x_sub(x, a, x_mul(x, d.quotient, d.b));
    return d;
}

// Where the remainder has to move to the divisor's side.
static val
wrong_side(struct expander *x, val remainder, val b)
{
    val zero = x_num(x, x_dtype(x, b), 0);
    return x_and(x, x_ne(x, remainder, zero),
                 x_ne(x, x_lt(x, remainder, zero), x_lt(x, b, zero)));
}

static val
float_floordiv(struct expander *x, val a, val b)
{
    uint8_t t = x_dtype(x, a);
    val zero = x_num(x, t, 0), one = x_num(x, t, 1);
    val m = x_op(x, OP_frem_raw, a, b, 0), plain = x_div(x, a, b);
    val q = x_div(x, x_sub(x, a, m), b);
    q = x_where(x, wrong_side(x, m, b), x_sub(x, q, one), q);
    val f = x_op(x, OP_floor, q, 0, 0);
    val above = x_lt(x, x_num(x, t, 0.5), x_sub(x, q, f));
    f = x_where(x, above, x_add(x, f, one), f);
    f = x_where(x, x_eq(x, q, zero), x_copysign(x, zero, plain), f);
    return x_where(x, x_eq(x, b, zero), plain, f);
}

val
expand_floordiv(struct expander *x, val a, val b, val c)
{
    (void)c;
    uint8_t t = x_dtype(x, a);
    if (dtype_is_float(t))
        return float_floordiv(x, a, b);
    struct division d = divide(x, a, b);
    val zero = x_num(x, t, 0), q = d.quotient;
    if (d.by_minus_1) {
        q = x_where(x, wrong_side(x, d.remainder, d.b), x_sub(x, q, x_num(x, t, 1)), q);
        q = x_where(x, d.by_minus_1, x_neg(x, a), q);
    }
    return x_where(x, d.by_zero, zero, q);
}

val
expand_mod(struct expander *x, val a, val b, val c)
{
    (void)c;
    uint8_t t = x_dtype(x, a);
    if (dtype_is_float(t)) {
        val zero = x_num(x, t, 0), m = x_op(x, OP_frem_raw, a, b, 0);
        val moved = x_where(x, wrong_side(x, m, b), x_add(x, m, b), m);
        return x_where(x, x_eq(x, m, zero), x_copysign(x, zero, b), moved);
    }
    struct division d = divide(x, a, b);
    if (!d.by_minus_1)
        return d.remainder;
    return x_where(x, wrong_side(x, d.remainder, d.b), x_add(x, d.remainder, d.b), d.remainder);
}

val
expand_fmod(struct expander *x, val a, val b, val c)
{
    (void)c;
    if (dtype_is_float(x_dtype(x, a)))
        return x_op(x, OP_frem_raw, a, b, 0);
    return divide(x, a, b).remainder;
}

// expand_rules.h: what the expansions are written with. A rule appends instructions to the body
// under construction and returns the one that has the result. The functions below hash-cons, and
// fold what depends on literals only; so an expansion over literal operands is its value.
#ifndef FUSEC_IR_EXPAND_RULES_H
#define FUSEC_IR_EXPAND_RULES_H

#include "ir/base/hash.h"
#include "ir/expand.h"

typedef uint32_t val; // an instruction of the body under construction; 0 = none

struct expander {
    struct kernel *k; // its insts are under construction
    struct map seen;
    uint32_t origin;  // of the instruction being rewritten
};

static inline uint8_t
x_dtype(const struct expander *x, val a)
{
    return x->k->inst.at[a].dtype;
}

val x_bits(struct expander *x, uint8_t dtype, uint64_t bits);
val x_num(struct expander *x, uint8_t dtype, double v); // rounded to the dtype
val x_op(struct expander *x, uint16_t op, val a, val b, val c);
val x_cast(struct expander *x, uint8_t to, val a);
val x_bitcast(struct expander *x, uint8_t to, val a);
// The same from an integer, to a float that is never NaN in an element whose value is used.
val x_bitcast_number(struct expander *x, uint8_t to, val a);
val x_lookup(struct expander *x, uint32_t table, val index); // entry of a table of ir/tables.h
val x_poly(struct expander *x, val z, const double *c, uint32_t n); // c[0] + c[1] z + …, Horner
// The same as a polynomial in z2 = z z, whose coefficients c[0] + c[1] z … do not wait for each
// other: as many operations but for z2, half the latency, which is what long ones are bound by; and
// as one in z2 z2, with a quarter.
val x_poly_by_pairs(struct expander *x, val z, val z2, const double *c, uint32_t n);
val x_poly_by_fours(struct expander *x, val z, val z2, const double *c, uint32_t n);

// NaN passes.
static inline val
x_least(struct expander *x, val a, double limit)
{
    val l = x_num(x, x_dtype(x, a), limit);
    return x_op(x, OP_where, x_op(x, OP_lt, l, a, 0), l, a);
}
static inline val
x_most(struct expander *x, val a, double limit)
{
    val l = x_num(x, x_dtype(x, a), limit);
    return x_op(x, OP_where, x_op(x, OP_lt, a, l, 0), l, a);
}
// The limit where a is NaN; one instruction of processors that have it.
static inline val
x_size_within(struct expander *x, val a, double limit)
{
    val size = x_op(x, OP_abs, a, 0, 0), l = x_num(x, x_dtype(x, a), limit);
    return x_op(x, OP_where, x_op(x, OP_lt, size, l, 0), size, l);
}
static inline val
x_neg(struct expander *x, val a)
{
    return x_op(x, OP_neg, a, 0, 0);
}
static inline val
x_abs(struct expander *x, val a)
{
    return x_op(x, OP_abs, a, 0, 0);
}
static inline val
x_round(struct expander *x, val a)
{
    return x_op(x, OP_round, a, 0, 0);
}
static inline val
x_add(struct expander *x, val a, val b)
{
    return x_op(x, OP_add, a, b, 0);
}
static inline val
x_sub(struct expander *x, val a, val b)
{
    return x_op(x, OP_sub, a, b, 0);
}
static inline val
x_mul(struct expander *x, val a, val b)
{
    return x_op(x, OP_mul, a, b, 0);
}
static inline val
x_div(struct expander *x, val a, val b)
{
    return x_op(x, OP_div, a, b, 0);
}
static inline val
x_and(struct expander *x, val a, val b)
{
    return x_op(x, OP_and, a, b, 0);
}
static inline val
x_or(struct expander *x, val a, val b)
{
    return x_op(x, OP_or, a, b, 0);
}
static inline val
x_xor(struct expander *x, val a, val b)
{
    return x_op(x, OP_xor, a, b, 0);
}
static inline val
x_lt(struct expander *x, val a, val b)
{
    return x_op(x, OP_lt, a, b, 0);
}
static inline val
x_eq(struct expander *x, val a, val b)
{
    return x_op(x, OP_eq, a, b, 0);
}
static inline val
x_ne(struct expander *x, val a, val b)
{
    return x_op(x, OP_ne, a, b, 0);
}
static inline val
x_copysign(struct expander *x, val a, val b)
{
    return x_op(x, OP_copysign_raw, a, b, 0);
}
static inline val
x_shl(struct expander *x, val a, val b)
{
    return x_op(x, OP_shl_raw, a, b, 0);
}
static inline val
x_shr(struct expander *x, val a, val b)
{
    return x_op(x, OP_shr_raw, a, b, 0);
}
static inline val
x_fma(struct expander *x, val a, val b, val c)
{
    return x_op(x, OP_fma, a, b, c);
}
// b where the bool a is true, else c
static inline val
x_where(struct expander *x, val a, val b, val c)
{
    return x_op(x, OP_where, a, b, c);
}
// The same where a is true for few elements and b is dear: vectors without any skip b.
val x_where_rarely(struct expander *x, val a, val b, val c);

// 1 / d for normal d > 0 with a normal 1 / d, by Newton's steps from a guess of integer arithmetic,
// hence with the same bits everywhere and much cheaper than a division: at most 0.6 ulp off; and to
// half a format's digits, for quotients: q = a y is put right by one more step, q + (a - q d) y.
val x_inverse(struct expander *x, val d);
val x_rough_inverse(struct expander *x, val d);

// exp(hi + lo), f64, |lo| far below 1: where the result is a normal number, and wherever.
val x_exp_sum(struct expander *x, val hi, val lo);
val x_exp_sum_anywhere(struct expander *x, val hi, val lo);

// exp(hi + lo) (g + g_lo), hi <= 0 and hardly below exp's limit, g > 2^-6, the rest small.
val x_exp_product(struct expander *x, val hi, val lo, val g, val g_lo);

val x_tanh32(struct expander *x, val a); // by a table

// A rule per op that needs one; operands have the op's (promoted) dtype.
typedef val expand_rule(struct expander *x, val a, val b, val c);
expand_rule expand_sign, expand_rsqrt, expand_reciprocal, expand_isnan, expand_isinf,
    expand_isfinite, expand_shl, expand_shr, expand_clamp, expand_copysign, expand_fma,
    expand_floordiv, expand_mod, expand_fmod, expand_exp, expand_sigmoid, expand_tanh, expand_erf,
    expand_log, expand_sin, expand_cos, expand_pow, expand_gelu, expand_gelu_tanh,
    expand_exp2, expand_expm1, expand_sinh, expand_cosh, expand_log2, expand_log10, expand_log1p,
    expand_tan, expand_asin, expand_acos, expand_atan, expand_atan2, expand_asinh, expand_acosh,
    expand_atanh, expand_cbrt, expand_erfc;
// Conversions to and from f16 and bf16, by way of f32, still with one rounding.
val expand_cast(struct expander *x, uint8_t to, val a);

#endif

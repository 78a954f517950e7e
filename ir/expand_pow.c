// expand_pow.c: pow, for f32, f64 and integers.
//
// Floats: pow(x, y) = 2^(y log2 |x|), negated where x is negative and y odd. What the logarithm
// loses is multiplied by as much as 2^10, so that it needs more digits than the format has.
//   f32: in f64, with |x| = 2^k m and log2 m = f P(f), f = m - 1, sqrt(1/2) <= m < sqrt(2), to
//        2^-38.5, and 2^r on |r| <= 1/2 to 2^-40.2. The conversion to f32 overflows and rounds into
//        the denormals by itself; so the result is off by little more than that rounding.
//   f64: the logarithm is a sum of two doubles. With s = f / (1 + f / 2), log m =
//        2 atanh(s / 2) = s (1 + s^2 / 12 + s^4 P(s^2)): all but P have two parts; P, to 2^-71
//        of the whole, has one (as in Sun's fdlibm, K. C. Ng 1993, but without tables). exp of the
//        product is x_exp_sum's. All fits: ir/fit_polynomials.py.
// Zeros, infinities, NaN, and in f64 denormals and results that are no normal numbers, are a rare
// operand (C99, F.9.4.4). The exponents 2, 3, 1/2 and -1 have results of their own, as x x, x x x,
// sqrt(x) and 1 / x: for literal exponents, which users write, nothing else remains.
//
// Integers: squares and products, modulo 2^width, for exponents below 16; more bits are a rare
// operand. A negative exponent gives the integer part of 1 / x^n, and 0 for x = 0.
#include "ir/expand_rules.h"

#include <math.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const double log2_poly[] = {
    0x1.71547652b58f7p+0, -0x1.71547651b6c02p-1, 0x1.ec709de34ff79p-2, -0x1.715478873735ap-2,
    0x1.2776b6b9fefb2p-2, -0x1.ec6f2eb55bee5p-3, 0x1.a61b8640c5daap-3, -0x1.7188c1db1dd03p-3,
    0x1.481ee9128187ap-3, -0x1.23d6b399ca5cdp-3, 0x1.0ad5e7fca4792p-3, -0x1.13bcab94c8dfap-3,
    0x1.0f437d780f0f8p-3, -0x1.1d5ab04e2ee35p-4,
};
static const double exp2_poly[] = {
    0x1.ffffffffff79fp-1, 0x1.62e42fef8609cp-1, 0x1.ebfbdff9320c3p-3, 0x1.c6b08dd48c4cbp-5,
    0x1.3b2ab5c4c2b23p-7, 0x1.5d87481280405p-10, 0x1.430acd0c98e3dp-13, 0x1.00daebc925e86p-16,
    0x1.61afa0abffbd5p-20,
};
static const double atanh_poly[] = {
    0x1.9999999999996p-7, 0x1.2492492493488p-9, 0x1.c71c71c499f17p-12, 0x1.745d18be46a53p-14,
    0x1.3b1338703793p-16, 0x1.11278910ce5a5p-18, 0x1.dd1276551bedep-21, 0x1.f4b11b24dda96p-23,
};

static const uint64_t sqrt_half = 0x3fe6a09e667f3bcd, fraction_mask = 0xfffffffffffff; // bits

// ---- integers

// a^e for the lowest n bits of e.
static val
power_of_bits(struct expander *x, val a, val e, uint32_t n)
{
    uint8_t t = x_dtype(x, a);
    val r = x_num(x, t, 1), zero = x_num(x, t, 0);
    for (uint32_t i = 0; i < n; i++) {
        val set = x_ne(x, x_and(x, e, x_bits(x, t, 1ull << i)), zero);
        r = x_where(x, set, i ? x_mul(x, r, a) : a, r);
        a = x_mul(x, a, a);
    }
    return r;
}

static val
integer_power(struct expander *x, val a, val b)
{
    uint8_t t = x_dtype(x, a);
    bool is_signed = dtype_table[t].kind == DTK_SINT;
    uint32_t width = dtype_table[t].bits;
    val zero = x_num(x, t, 0), one = x_num(x, t, 1);
    val large = x_lt(x, x_num(x, t, 15), b);
    val any = power_of_bits(x, a, b, is_signed ? width - 1 : width);
    if (is_signed) {
        val minus_one = x_num(x, t, -1), odd = x_ne(x, x_and(x, b, one), zero);
        val sign = x_where(x, odd, minus_one, one), negative = x_lt(x, b, zero);
        val unit = x_where(x, x_eq(x, a, minus_one), sign, zero);
        any = x_where(x, negative, x_where(x, x_eq(x, a, one), one, unit), any);
        large = x_or(x, large, negative);
    }
    return x_where_rarely(x, large, any, power_of_bits(x, a, b, 4));
}

// ---- floats

// x and y, and what is asked of them.
struct powers {
    val x, y, size; // size: |x|
    uint8_t flt, sint, uint;
};

static val
x_not(struct expander *x, val a)
{
    return x_op(x, OP_not, a, 0, 0);
}

// Where size >= 0 is not in [least, infinity).
static val
is_outside(struct expander *x, const struct powers *p, val size, double least)
{
    val low = x_bitcast(x, p->uint, x_num(x, p->flt, least));
    val high = x_bitcast(x, p->uint, x_num(x, p->flt, (double)INFINITY));
    val place = x_sub(x, x_bitcast(x, p->uint, size), low);
    return x_op(x, OP_ge, place, x_sub(x, high, low), 0);
}

// The result for negative x, -0 included, given that for |x|.
static val
of_negative(struct expander *x, const struct powers *p, val r)
{
    val half = x_mul(x, p->y, x_num(x, p->flt, 0.5)), whole = x_eq(x, x_round(x, p->y), p->y);
    val odd = x_and(x, whole, x_ne(x, x_round(x, half), half));
    val inf = x_num(x, p->flt, (double)INFINITY), zero = x_num(x, p->flt, 0);
    val finite = x_and(x, x_lt(x, zero, p->size), x_lt(x, p->size, inf));
    r = x_where(x, odd, x_neg(x, r), r);
    return x_where(x, x_and(x, finite, x_not(x, whole)), x_num(x, p->flt, (double)NAN), r);
}

// |result| where x is 0 or infinite or y infinite, given the result elsewhere; NaN, and where x is
// 1 or y is 0.
static val
at_the_ends(struct expander *x, const struct powers *p, val elsewhere)
{
    val zero = x_num(x, p->flt, 0), one = x_num(x, p->flt, 1);
    val inf = x_num(x, p->flt, (double)INFINITY), nan = x_num(x, p->flt, (double)NAN);
    val endless = x_eq(x, x_abs(x, p->y), inf);
    val end = x_or(x, endless, x_or(x, x_eq(x, p->size, zero), x_eq(x, p->size, inf)));
    val shrinks = x_ne(x, x_lt(x, p->size, one), x_lt(x, p->y, zero));
    val r = x_where(x, end, x_where(x, shrinks, zero, inf), elsewhere);
    r = x_where(x, x_and(x, endless, x_eq(x, p->size, one)), one, r);
    r = x_where(x, x_op(x, OP_unordered_raw, p->x, p->y, 0), nan, r);
    return x_where(x, x_or(x, x_eq(x, p->x, one), x_eq(x, p->y, zero)), one, r);
}

struct parts64 {
    val k, f; // |x| = 2^k (1 + f), as f64
};

// Of a 2^more.
static struct parts64
split64(struct expander *x, val a, val more)
{
    val offset = x_bits(x, DT_i64, sqrt_half), bits = x_sub(x, x_bitcast(x, DT_i64, a), offset);
    val rest = x_and(x, bits, x_bits(x, DT_i64, fraction_mask));
    val m = x_bitcast(x, DT_f64, x_add(x, rest, offset));
    // An integer, added to the bits of 1.5 * 2^52, is a float.
    val magic = x_num(x, DT_f64, 0x1.8p52);
    val k = x_add(x, x_shr(x, bits, x_num(x, DT_i64, 52)), x_bitcast(x, DT_i64, magic));
    return (struct parts64){x_sub(x, x_bitcast(x, DT_f64, k), x_sub(x, magic, more)),
                            x_sub(x, m, x_num(x, DT_f64, 1))};
}

static val
clamped(struct expander *x, val a, double limit)
{
    val low = x_num(x, DT_f64, -limit), high = x_num(x, DT_f64, limit);
    a = x_where(x, x_lt(x, a, low), low, a);
    return x_where(x, x_lt(x, high, a), high, a);
}

static val
power32(struct expander *x, const struct powers *p, val *far, val *anywhere)
{
    *far = is_outside(x, p, x_abs(x, p->y), 0);
    struct parts64 v = split64(x, x_cast(x, DT_f64, p->size), x_num(x, DT_f64, 0));
    val f2 = x_mul(x, v.f, v.f), magic = x_num(x, DT_f64, 0x1.8p52 + 1023);
    val log2 = x_poly_by_fours(x, v.f, f2, log2_poly, COUNT(log2_poly));
    log2 = x_fma(x, v.f, log2, v.k);
    val z = clamped(x, x_mul(x, x_cast(x, DT_f64, p->y), log2), 300), t = x_add(x, z, magic);
    val r = x_sub(x, z, x_sub(x, t, magic));
    val e = x_poly_by_fours(x, r, x_mul(x, r, r), exp2_poly, COUNT(exp2_poly));
    val scale = x_shl(x, x_bitcast(x, DT_i64, t), x_num(x, DT_i64, 52));
    return *anywhere = x_cast(x, DT_f32, x_mul(x, e, x_bitcast(x, DT_f64, scale)));
}

struct pair {
    val hi, lo;
};

// hi + lo, where |hi| >= |lo| or hi is 0.
static struct pair
sum(struct expander *x, val hi, val lo)
{
    val s = x_add(x, hi, lo);
    return (struct pair){s, x_add(x, x_sub(x, hi, s), lo)};
}

static struct pair
product(struct expander *x, val a, val b)
{
    val p = x_mul(x, a, b);
    return (struct pair){p, x_fma(x, a, b, x_neg(x, p))};
}

// log(1 + f)
static struct pair
log_small(struct expander *x, val f)
{
    val half = x_num(x, DT_f64, 0.5), one = x_num(x, DT_f64, 1), d = x_fma(x, f, half, one);
    val d_lo = x_fma(x, f, half, x_sub(x, one, d)), y = x_inverse(x, d);
    val s = x_mul(x, f, y), minus_s = x_neg(x, s);
    val s_lo = x_mul(x, x_fma(x, minus_s, d_lo, x_fma(x, minus_s, d, f)), y);
    struct pair z = product(x, s, s);
    z.lo = x_fma(x, x_add(x, s, s), s_lo, z.lo);
    val twelfth = x_num(x, DT_f64, 0x1.5555555555555p-4), z2 = x_mul(x, z.hi, z.hi);
    struct pair w = product(x, z.hi, twelfth);
    w.lo = x_fma(x, z.lo, twelfth, x_fma(x, z.hi, x_num(x, DT_f64, 0x1.5555555555555p-58), w.lo));
    val tail = x_poly_by_fours(x, z.hi, z2, atanh_poly, COUNT(atanh_poly));
    struct pair u = sum(x, w.hi, x_fma(x, tail, z2, w.lo)), v = product(x, s, u.hi);
    v.lo = x_add(x, v.lo, x_fma(x, s, u.lo, x_fma(x, s_lo, u.hi, s_lo)));
    struct pair r = sum(x, s, v.hi);
    return (struct pair){r.hi, x_add(x, r.lo, v.lo)};
}

// y log(a 2^more)
static struct pair
exponent64(struct expander *x, val a, val more, val y)
{
    struct parts64 v = split64(x, a, more);
    struct pair h = log_small(x, v.f);
    val turn = x_mul(x, v.k, x_num(x, DT_f64, 0x1.62e42fefa38p-1)); // exact
    struct pair l = sum(x, turn, h.hi);
    l.lo = x_add(x, l.lo, x_fma(x, v.k, x_num(x, DT_f64, 0x1.ef35793c7673p-45), h.lo));
    struct pair e = product(x, y, l.hi);
    e.lo = x_fma(x, y, l.lo, e.lo);
    return e;
}

// *far: where the result is not a normal number, or y is none; to be taken from *anywhere.
static val
power64(struct expander *x, const struct powers *p, val *far, val *anywhere)
{
    val small = x_lt(x, p->size, x_num(x, DT_f64, 0x1p-1022)), zero = x_num(x, DT_f64, 0);
    val scaled = x_where(x, small, x_mul(x, p->size, x_num(x, DT_f64, 0x1p54)), p->size);
    // Beyond 2^70 it does not matter how large y is.
    struct pair e = exponent64(x, scaled, x_where(x, small, x_num(x, DT_f64, -54), zero),
                               clamped(x, p->y, 0x1p70));
    *anywhere = x_exp_sum_anywhere(x, e.hi, e.lo);
    e = exponent64(x, p->size, zero, p->y);
    *far = x_not(x, x_op(x, OP_le, x_abs(x, e.hi), x_num(x, DT_f64, 708), 0));
    return x_exp_sum(x, e.hi, e.lo);
}

// x^y for the exponents that users write; *other: where y is none of them.
static val
plain_power(struct expander *x, const struct powers *p, val *other)
{
    val a = p->x, one = x_num(x, p->flt, 1), inf = x_num(x, p->flt, (double)INFINITY);
    val at[4];
    static const double plain[4] = {2, 3, 0.5, -1};
    for (uint32_t i = 0; i < 4; i++)
        at[i] = x_ne(x, p->y, x_num(x, p->flt, plain[i]));
    *other = x_and(x, x_and(x, at[0], at[1]), x_and(x, at[2], at[3]));
    val square = x_mul(x, a, a), root = x_op(x, OP_sqrt, x_add(x, a, x_num(x, p->flt, 0)), 0, 0);
    root = x_where(x, x_eq(x, a, x_neg(x, inf)), inf, root);
    val r = x_where(x, at[2], x_div(x, one, a), root);
    return x_where(x, at[0], x_where(x, at[1], r, x_mul(x, square, a)), square);
}

val
expand_pow(struct expander *x, val a, val b, val c)
{
    (void)c;
    if (!dtype_is_float(x_dtype(x, a)))
        return integer_power(x, a, b);
    uint8_t t = x_dtype(x, a);
    bool wide = t == DT_f64;
    struct powers p = {a, b, x_abs(x, a), t, wide ? DT_i64 : DT_i32, wide ? DT_u64 : DT_u32};
    val far, elsewhere, other;
    val r = wide ? power64(x, &p, &far, &elsewhere) : power32(x, &p, &far, &elsewhere);
    far = x_or(x, far, is_outside(x, &p, p.size, wide ? 0x1p-1022 : 0x1p-149));
    r = x_where_rarely(x, far, at_the_ends(x, &p, elsewhere), r);
    val negative = x_lt(x, x_bitcast(x, p.sint, a), x_num(x, p.sint, 0));
    r = x_where_rarely(x, negative, of_negative(x, &p, r), r);
    val plain = plain_power(x, &p, &other);
    return x_where_rarely(x, x_not(x, other), plain, r);
}

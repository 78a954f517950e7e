// expand_trig.c: sin, cos and tan, for every finite f32 and f64.
//
// Arguments that people use: |x| = n pi / 2 + r, n = round(|x| 2 / pi), in three fma steps with
// pi / 2 in three parts of full width (Cody, Waite 1980). |x| - n P1 is exact: a multiple of P1's
// last place below 1. Of the other two steps one alone rounds noticeably, as n P3 is below r's last
// place or n P2's sum was exact. Sine and cosine of r (|r| <= pi / 4) are minimax polynomials in
// r^2 (ir/fit_polynomials.py; relative errors: f32 2^-27.9 and 2^-33.0, f64 2^-63.2 and 2^-69.0).
//
// Larger ones, up to the greatest: a rare operand (x_where_rarely). The turn's fraction x / 2 pi
// mod 1 is computed to enough bits that even the argument closest to a multiple of pi / 2 keeps its
// relative accuracy (Payne, Hanek 1983), with arithmetic alone: there are no tables in memory. It
// is rounded to quarter turns; the rest is as above.
//
// f32: 1 / 2 pi is cut into parts of 28 bits, so that a part times x (24 bits) is exact in f64,
// with a bit to spare for adding what is left from the parts before. Whole turns are dropped after
// each part. Products too large to have a fraction drop out by themselves; 7 parts reach 2^-196,
// which serves arguments below 2^128.
//
// f64: |x| = m 2^(o - 64) with m of 53 bits; the fraction of m 2^(o - 64) / 2 pi needs only the
// bits of 1 / 2 pi from place o - 63 on. The 192 bits there are picked from literals: the words by
// a barrel shifter of `where` over the bits of o / 64, the rest by shifts. Their product with m is
// summed in columns of 32 bits, modulo 1. The result, less its quarter turns, becomes the sum of
// two doubles.
//
// tan: r + e, where e is r^3 P(r^2) for f32, to 2^-29.6; for f64 r^3 P(r^2) / Q(r^2), to 2^-58.9,
// where Q is 0 at tan's first poles, so that P is short. After an odd number of quarters it is the
// negated reciprocal, put right by a step of Newton's that takes r and e apart, as their sum is
// rounded. f64 has one quotient for both, of numbers chosen before. An error of r counts up to
// 1.6 times: so r comes in two parts, the second of which is in e.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const double sin32[] = {-0x1.555546p-3, 0x1.110778p-7, -0x1.995406p-13};
static const double cos32[] = {-0.5, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e80cp-16};
static const double sin64[] = {
    -0x1.5555555555555p-3, 0x1.1111111111068p-7, -0x1.a01a019ffe08cp-13, 0x1.71de3a332c532p-19,
    -0x1.ae642b9984aeep-26, 0x1.61093a55611dcp-33, -0x1.9fb6a249a15b8p-41,
};
static const double cos64[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16b3p-10, 0x1.a01a019ffcb74p-16, -0x1.27e4fb5a1ed43p-22,
    0x1.1eed6f7e040bbp-29, -0x1.93744f8e60506p-37, 0x1.9dac877b04619p-45,
};

static const double tan32[] = {
    0x1.55556p-2, 0x1.110d9ep-3, 0x1.bad9c2p-5, 0x1.5cc0d4p-6, 0x1.62cb2ep-7, 0x1.9c132ap-14,
    0x1.1e91acp-8,
};
static const double tan64[] = {
    0x1.5555555555552p-2, -0x1.12cb62eca45a8p-6, 0x1.42a9bef80003cp-17, 0x1.fbd1ebea2fc29p-24,
    0x1.d64789b262bfcp-30, 0x1.df924bc34b6dep-36,
};
static const double tan64_below[] = {1, -0x1.cd1fbc25f87eap-2, 0x1.2b04b63e07ae3p-6};

// 1 / 2 pi, once in parts of 28 bits, once as a bit string after 64 zeros.
static const double turn_parts[7] = {
    0x1.45f3068p-3, 0x1.727220ap-29, 0x1.29fc274p-58, 0x1.7d1f534p-86, 0x1.bb81b68p-115,
    0x1.14acc9ep-141, 0x1.0e4107p-172,
};
enum { TURN_WORDS = 20 };
static const uint64_t turn_bits[TURN_WORDS] = {
    0x0000000000000000, 0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410,
    0x7f9458eaf7aef158, 0x6dc91b8e909374b8, 0x01924bba82746487, 0x3f877ac72c4a69cf,
    0xba208d7d4baed121, 0x3a671c09ad17df90, 0x4e64758e60d4ce7d, 0x272117e2ef7e4a0e,
    0xc7fe25fff7816603, 0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b,
    0x5d49eeb1faf97c5e, 0xcf41ce7de294a4ba, 0x9afed7ec47e35742, 0x1580cc11bf1edaea,
};

struct quick {
    uint8_t flt, sint;
    double limit;      // |x| up to here
    double half_pi[3]; // its parts
    double magic;      // 1.5 * 2^fraction
};
static const struct quick quick[2] = {
    {DT_f32, DT_i32, 0x1p14, {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50}, 0x1.8p23},
    {DT_f64, DT_i64, 0x1p20,
     {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}, 0x1.8p52},
};

struct angle {
    val r, r_lo;  // r_lo: or none
    val quarters; // integer as wide as r, modulo 4 in its two last bits
};

static val
drop_turns(struct expander *x, val turns)
{
    return x_sub(x, turns, x_round(x, turns));
}

static struct angle
reduce32(struct expander *x, val size, bool in_two)
{
    val d = x_cast(x, DT_f64, size), magic = x_num(x, DT_f64, 0x1.8p50); // its last place is 1/4
    val s = drop_turns(x, x_mul(x, d, x_num(x, DT_f64, turn_parts[0])));
    for (uint32_t i = 1; i < 4; i++)
        s = drop_turns(x, x_fma(x, d, x_num(x, DT_f64, turn_parts[i]), s));
    s = x_fma(x, d, x_num(x, DT_f64, turn_parts[4]), s);
    val t = x_add(x, s, magic);
    s = x_sub(x, s, x_sub(x, t, magic));
    s = x_fma(x, d, x_num(x, DT_f64, turn_parts[5]), s); // from here on below 2^-11
    s = x_fma(x, d, x_num(x, DT_f64, turn_parts[6]), s);
    val angle = x_mul(x, s, x_num(x, DT_f64, 0x1.921fb54442d18p+2)), r = x_cast(x, DT_f32, angle);
    val r_lo = in_two ? x_cast(x, DT_f32, x_sub(x, angle, x_cast(x, DT_f64, r))) : 0;
    return (struct angle){r, r_lo, x_cast(x, DT_i32, x_bitcast(x, DT_i64, t))};
}

static val
u64(struct expander *x, uint64_t bits)
{
    return x_bits(x, DT_u64, bits);
}

static val
low_half(struct expander *x, val a)
{
    return x_and(x, a, u64(x, 0xffffffff));
}

static val
high_half(struct expander *x, val a)
{
    return x_shr(x, a, u64(x, 32));
}

// 192 bits of turn_bits from place `offset` on, as three words.
static void
pick_bits(struct expander *x, val offset, val out[3])
{
    val w[TURN_WORDS], index = x_shr(x, offset, u64(x, 6));
    for (uint32_t i = 0; i < TURN_WORDS; i++)
        w[i] = u64(x, turn_bits[i]);
    for (uint32_t step = 16; step; step /= 2) {
        val skip = x_ne(x, x_and(x, index, u64(x, step)), u64(x, 0));
        // Four words are wanted in the end; an index of 16 has no other bits.
        uint32_t need = step == 16 ? 4 : step + 3;
        for (uint32_t i = 0; i < need; i++)
            w[i] = x_where(x, skip, w[i + step], w[i]);
    }
    val up = x_and(x, offset, u64(x, 63)), down = x_xor(x, up, u64(x, 63));
    for (uint32_t i = 0; i < 3; i++)
        out[i] = x_or(x, x_shl(x, w[i], up), x_shr(x, x_shr(x, w[i + 1], u64(x, 1)), down));
}

// The first 128 bits of m * w modulo 1, w being a fraction of 192 bits.
static void
multiply(struct expander *x, val m, const val w[3], val *first, val *second)
{
    val m_low = low_half(x, m), m_high = high_half(x, m), digit[7], column[6];
    for (uint32_t i = 0; i < 3; i++) {
        digit[2 * i + 1] = high_half(x, w[i]);
        digit[2 * i + 2] = low_half(x, w[i]);
    }
    val carry = high_half(x, x_mul(x, m_low, digit[6]));
    for (uint32_t i = 5; i > 0; i--) {
        val low = x_mul(x, m_low, digit[i]), high = x_mul(x, m_high, digit[i + 1]);
        column[i] = x_add(x, x_add(x, low_half(x, low), high), carry);
        carry = x_add(x, high_half(x, column[i]), high_half(x, low));
    }
    *first = x_or(x, x_shl(x, column[1], u64(x, 32)), low_half(x, column[2]));
    *second = x_or(x, x_shl(x, column[3], u64(x, 32)), low_half(x, column[4]));
}

// 32 bits, signed or not, times the last place of `magic`.
static val
to_double(struct expander *x, val bits, double magic)
{
    val base = x_num(x, DT_f64, magic);
    val sum = x_add(x, bits, x_bitcast(x, DT_u64, base));
    return x_sub(x, x_bitcast(x, DT_f64, sum), base);
}

static val
two_sum(struct expander *x, val large, val small, val *rest)
{
    val sum = x_add(x, large, small);
    *rest = x_sub(x, small, x_sub(x, sum, large));
    return sum;
}

static struct angle
reduce64(struct expander *x, val size)
{
    val bits = x_bitcast(x, DT_u64, size), w[3], first, second;
    val m = x_or(x, x_and(x, bits, u64(x, 0xfffffffffffff)), u64(x, 1ull << 52));
    // |x| = m 2^(exponent - 1075)
    val offset = x_sub(x, x_shr(x, bits, u64(x, 52)), u64(x, 1075 - 64));
    pick_bits(x, offset, w);
    multiply(x, m, w, &first, &second);
    val quarters = x_shr(x, x_add(x, first, u64(x, 1ull << 61)), u64(x, 62));
    first = x_sub(x, first, x_shl(x, quarters, u64(x, 62)));
    val signed_half = x_shr(x, x_bitcast(x, DT_i64, first), x_num(x, DT_i64, 32));
    val top = to_double(x, x_bitcast(x, DT_u64, signed_half), 0x1.8p20), lost, lo;
    val hi = two_sum(x, top, to_double(x, low_half(x, first), 0x1p-12), &lost);
    val tail = x_add(x, to_double(x, high_half(x, second), 0x1p-44),
                     to_double(x, low_half(x, second), 0x1p-76));
    hi = two_sum(x, hi, x_add(x, lost, tail), &lo);
    // Turns to radians, in two doubles.
    val tau = x_num(x, DT_f64, 0x1.921fb54442d18p+2);
    val tau_lo = x_num(x, DT_f64, 0x1.1a62633145c07p-52);
    val r = x_mul(x, hi, tau);
    val r_lo = x_fma(x, hi, tau, x_neg(x, r));
    r_lo = x_fma(x, lo, tau, x_fma(x, hi, tau_lo, r_lo));
    return (struct angle){
        .r = r,
        .r_lo = x_add(x, r_lo, x_sub(x, size, size)), // NaN for infinity
        .quarters = x_bitcast(x, DT_i64, quarters),
    };
}

static struct angle
reduce_quickly(struct expander *x, const struct quick *f, val size)
{
    val magic = x_num(x, f->flt, f->magic);
    val t = x_fma(x, size, x_num(x, f->flt, 0x1.45f306dc9c883p-1), magic), r = size;
    val n = x_sub(x, t, magic);
    for (uint32_t i = 0; i < 3; i++)
        r = x_fma(x, n, x_num(x, f->flt, -f->half_pi[i]), r);
    return (struct angle){r, 0, x_bitcast(x, f->sint, t)};
}

static void
sin_cos32(struct expander *x, struct angle v, val *sine, val *cosine)
{
    val z = x_mul(x, v.r, v.r);
    *sine = x_fma(x, x_mul(x, v.r, z), x_poly(x, z, sin32, COUNT(sin32)), v.r);
    *cosine = x_fma(x, z, x_poly(x, z, cos32, COUNT(cos32)), x_num(x, DT_f32, 1));
}

// With r_lo the cosine adds the rounding error of 1 - z / 2 back in.
static void
sin_cos64(struct expander *x, struct angle v, val *sine, val *cosine)
{
    val one = x_num(x, DT_f64, 1), z = x_mul(x, v.r, v.r);
    if (!v.r_lo) {
        *sine = x_fma(x, x_mul(x, v.r, z), x_poly(x, z, sin64, COUNT(sin64)), v.r);
        val p = x_fma(x, x_poly(x, z, cos64, COUNT(cos64)), z, x_num(x, DT_f64, -0.5));
        *cosine = x_fma(x, z, p, one);
        return;
    }
    val half = x_mul(x, z, x_num(x, DT_f64, 0.5)), bow = x_sub(x, one, half);
    val tail = x_fma(x, x_mul(x, v.r, z), x_poly(x, z, sin64, COUNT(sin64)), x_mul(x, v.r_lo, bow));
    *sine = x_add(x, v.r, tail);
    val lost = x_sub(x, x_sub(x, one, bow), half);
    tail = x_fma(x, x_mul(x, z, z), x_poly(x, z, cos64, COUNT(cos64)), lost);
    *cosine = x_add(x, bow, x_fma(x, x_neg(x, v.r), v.r_lo, tail));
}

// sin(|a|) of a reduced argument, a quarter turn further on: cos(a).
static val
turned(struct expander *x, const struct quick *f, struct angle v, bool quarter_on)
{
    uint8_t n = f->sint;
    val s, c, one = x_num(x, n, 1);
    (f->flt == DT_f64 ? sin_cos64 : sin_cos32)(x, v, &s, &c);
    val q = quarter_on ? x_add(x, v.quarters, one) : v.quarters;
    val odd = x_ne(x, x_and(x, q, one), x_num(x, n, 0));
    val sign = x_shl(x, x_and(x, q, x_num(x, n, 2)), x_num(x, n, dtype_table[n].bits - 2));
    return x_bitcast(x, f->flt, x_xor(x, x_bitcast(x, n, x_where(x, odd, c, s)), sign));
}

// r and what it has lost: |x| - n P1 is a multiple of n P2's last place, however small that is, so
// that what their difference loses is found by a subtraction (Dekker 1971).
static struct angle
reduce_in_two(struct expander *x, const struct quick *f, val size)
{
    val magic = x_num(x, f->flt, f->magic);
    val t = x_fma(x, size, x_num(x, f->flt, 0x1.45f306dc9c883p-1), magic);
    val n = x_sub(x, t, magic), part[3];
    for (uint32_t i = 0; i < 3; i++)
        part[i] = x_num(x, f->flt, -f->half_pi[i]);
    val first = x_fma(x, n, part[0], size), r = x_add(x, first, x_mul(x, n, part[1]));
    val lo = x_fma(x, n, part[2], x_fma(x, n, part[1], x_sub(x, first, r)));
    return (struct angle){r, lo, x_bitcast(x, f->sint, t)};
}

// tan(r), or 1 / tan(r) where odd. r_lo counts times the derivative, 1 + z and more.
static val
tan_of32(struct expander *x, struct angle v, val odd)
{
    val r = v.r, z = x_mul(x, r, r);
    val p = x_poly_by_pairs(x, z, x_mul(x, z, z), tan32, COUNT(tan32));
    val e = x_fma(x, x_mul(x, r, z), p, x_fma(x, v.r_lo, z, v.r_lo)), t = x_add(x, r, e);
    val y = x_div(x, x_num(x, DT_f32, 1), t), minus_y = x_neg(x, y);
    val left = x_fma(x, minus_y, e, x_fma(x, minus_y, r, x_num(x, DT_f32, 1)));
    return x_where(x, odd, x_fma(x, y, left, y), t);
}

static val
tan_of64(struct expander *x, struct angle v, val odd)
{
    val r = v.r, z = x_mul(x, r, r);
    val p = x_poly_by_pairs(x, z, x_mul(x, z, z), tan64, COUNT(tan64));
    val below = x_poly(x, z, tan64_below, COUNT(tan64_below));
    val above = x_mul(x, v.r_lo, x_fma(x, below, z, below));
    above = x_fma(x, x_mul(x, r, z), p, above);
    val d = x_where(x, odd, x_fma(x, r, below, above), below), y = x_div(x, x_num(x, DT_f64, 1), d);
    val q = x_mul(x, x_where(x, odd, below, above), y), minus_q = x_neg(x, q);
    val left = x_mul(x, below, x_fma(x, minus_q, r, x_num(x, DT_f64, 1)));
    left = x_fma(x, minus_q, x_where(x, odd, above, below), x_where(x, odd, left, above));
    q = x_fma(x, left, y, q);
    return x_where(x, odd, q, x_add(x, r, q));
}

// tan(|a|) of a reduced argument.
static val
tangent(struct expander *x, const struct quick *f, struct angle v)
{
    uint8_t n = f->sint;
    val last = x_shl(x, v.quarters, x_num(x, n, dtype_table[n].bits - 1)); // bit, as the sign
    val odd = x_lt(x, last, x_num(x, n, 0));
    val t = f->flt == DT_f64 ? tan_of64(x, v, odd) : tan_of32(x, v, odd);
    return x_bitcast(x, f->flt, x_xor(x, x_bitcast(x, n, t), last));
}

// r, negated where a is negative.
static val
with_sign(struct expander *x, const struct quick *f, val r, val a)
{
    val top = x_bitcast(x, f->sint, x_num(x, f->flt, -0.0));
    val sign = x_and(x, x_bitcast(x, f->sint, a), top);
    return x_bitcast(x, f->flt, x_xor(x, x_bitcast(x, f->sint, r), sign));
}

static val
sine(struct expander *x, val a, bool quarter_on)
{
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "sin and cos take f32 and f64, not %s", dtype_name(t));
    const struct quick *f = &quick[t == DT_f64];
    val size = x_abs(x, a), large = x_lt(x, x_num(x, t, f->limit), size);
    struct angle far = t == DT_f64 ? reduce64(x, size) : reduce32(x, size, false);
    val r = x_where_rarely(x, large, turned(x, f, far, quarter_on),
                           turned(x, f, reduce_quickly(x, f, size), quarter_on));
    if (quarter_on)
        return r;
    return with_sign(x, f, r, a);
}

val
expand_sin(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return sine(x, a, false);
}

val
expand_cos(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return sine(x, a, true);
}

val
expand_tan(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "tan takes f32 and f64, not %s", dtype_name(t));
    const struct quick *f = &quick[t == DT_f64];
    val size = x_abs(x, a), large = x_lt(x, x_num(x, t, f->limit), size);
    struct angle far = t == DT_f64 ? reduce64(x, size) : reduce32(x, size, true);
    val near = tangent(x, f, reduce_in_two(x, f, size));
    return with_sign(x, f, x_where_rarely(x, large, tangent(x, f, far), near), a);
}

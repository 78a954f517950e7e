// expand_log.c: log, log2, log10, log1p, asinh, acosh and atanh, for f32 and f64.
//
// x = 2^k m with sqrt(1/2) <= m < sqrt(2): integer arithmetic on the bits, moved by those of
// sqrt(1/2), gives k and m at once. Denormals are scaled up by a power of two before, and k is
// corrected. f = m - 1 is exact and log x = k ln 2 + log(1 + f); ln 2 is split so that k times its
// upper part is exact, and near 1 (k = 0) nothing cancels. Zeros, which data have, give
// -infinity in passing; denormals, negative arguments, infinity and NaN are a rare operand
// (x_where_rarely), found by an unsigned comparison of the bits.
//   f32: log(1 + f) = f + f^2 P(f), degree 9, relative error 2^-30.1
//   f64: with s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2 s + s^3 P(s^2), degree 6, 2^-59.5; as
//        2 s = f - s f, it is f - (f^2/2 - s (f^2/2 + s^2 P)), where the leading f is exact
//        (the scheme of Sun's fdlibm, K. C. Ng 1993). All fits: ir/fit_polynomials.py.
//
// log2 and log10: log(1 + f) is f and a smaller part, which are multiplied by log2 e, or log10 e,
// in two parts, f by both. k log10 2 is in two parts like k ln 2; k itself is exact, and f = 0
// gives it as it is. f32 has polynomials of their own for the smaller part.
//
// log1p(x): k is that of 1 + x, rounded, and f = 2^-k x + (2^-k - 1), an fma, which is exact but
// where 1 + x has almost twice the digits of f: there it is rounded once. So nothing has to be put
// right for what 1 + x lost.
//
// asinh and acosh are log1p of sums, of which what rounding lost is known, almost, and is added to
// f: |x| + x^2 / (1 + sqrt(1 + x^2)), and t + sqrt(t (2 + t)), t = x - 1. Where the squares might
// overflow they are log(2 x), a rare operand.
//
// atanh x = log((1 + x) / (1 - x)) / 2, |x|: as log is for f64, but that s is one quotient,
// s = (1 + x - 2^k (1 - x)) / (1 + x + 2^k (1 - x)), both exact but for one rounding, and x itself
// where k = 0. k need not be the best: the difference of both bit patterns is near enough, so that
// |s| <= 0.215. There atanh s = s + s^3 P(s^2), f32 to 2^-27.6, f64 to 2^-60.8. Near 1, where 2^k
// and 1 no longer fit together, is a rare operand.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#include <math.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const double poly32[] = {
    -0x1p-1, 0x1.555544p-2, -0x1.ffffep-3, 0x1.99a626p-3, -0x1.55667ep-3, 0x1.2323c8p-3,
    -0x1.faa784p-4, 0x1.e6967ap-4, -0x1.e70486p-4, 0x1.1fe334p-4,
};
static const double poly64[] = {
    0x1.5555555555592p-1, 0x1.999999997ff18p-2, 0x1.24924941e1569p-2, 0x1.c71c52145a5e3p-3,
    0x1.74663cea03cb1p-3, 0x1.39a1e93ba3103p-3, 0x1.2f03b4ee33fd4p-3,
};

static const double atanh32[] = {0x1.5555e8p-2, 0x1.9904a2p-3, 0x1.39e4b4p-3};
static const double atanh64[] = {
    0x1.5555555555541p-2, 0x1.99999999a0893p-3, 0x1.2492491e1b79p-3, 0x1.c71c7798ebb9fp-4,
    0x1.745ba5075c1c1p-4, 0x1.3b491db84bc92p-4, 0x1.0ca0a61c084dp-4, 0x1.22c9a7e300611p-4,
};

struct log_format {
    uint8_t flt, sint, fraction;
    int64_t sqrt_half, fraction_mask; // bit patterns
    double least_normal, scale_log2;
    double ln2_hi, ln2_lo;            // hi has at least 12 trailing zero bits
    double one_plus_low, one_plus_high; // log1p: 1 + x is ordinary, and 2^-k normal
    double square_high;                 // its square and 2^-k are ordinary
    const double *atanh;
    uint32_t natanh;
};
static const struct log_format formats[2] = {
    {DT_f32, DT_i32, 23, 0x3f3504f3, 0x7fffff, 0x1p-126, 24, 0x1.62ep-1, 0x1.0bfbe8p-15,
     0x1p-30, 0x1p100, 0x1p60, atanh32, COUNT(atanh32)},
    {DT_f64, DT_i64, 52, 0x3fe6a09e667f3bcd, 0xfffffffffffff, 0x1p-1022, 54, 0x1.62e42fefa38p-1,
     0x1.ef35793c7673p-45, 0x1p-60, 0x1p1000, 0x1p500, atanh64, COUNT(atanh64)},
};

// A logarithm: of e and of 2, each in two parts. The latter's first has trailing zero bits like
// ln2_hi's; for base 2 it is 1.
struct base {
    double e_hi, e_lo, two_hi, two_lo;
    const double *poly32;
};
static const double log2_poly32[] = {
    -0x1.715476p-1, 0x1.ec7086p-2, -0x1.7154d6p-2, 0x1.277fcap-2, -0x1.ec61bcp-3, 0x1.a3ed12p-3,
    -0x1.6fe174p-3, 0x1.61e3dcp-3, -0x1.52c33cp-3, 0x1.758a54p-4,
};
static const double log10_poly32[] = {
    -0x1.bcb7b2p-3, 0x1.287a6p-3, -0x1.bcb69ap-4, 0x1.63d484p-4, -0x1.28b682p-4, 0x1.f97bc4p-5,
    -0x1.b2466ap-5, 0x1.a31e04p-5, -0x1.c63ea6p-5, 0x1.266118p-5,
};
static const struct base bases[2][2] = { // [log10][f64]
    {{0x1.715476p+0, 0x1.4ae0cp-26, 1, 0, log2_poly32},
     {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0, NULL}},
    {{0x1.bcb7b2p-2, -0x1.5b235ep-27, 0x1.344p-2, 0x1.3509f8p-18, log10_poly32},
     {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f8p-2, -0x1.80433b83b532ap-44,
      NULL}},
};

struct parts {
    val k, f; // as floats
    val lo;   // what f lacks, or 0: none
    bool divide;
};

// An exponent, as an integer, as a float.
static val
exponent_value(struct expander *x, const struct log_format *t, val exponent)
{
    if (t->flt == DT_f32)
        return x_cast(x, DT_f32, exponent);
    // Few processors convert 64-bit integers: added to the bits of 1.5 * 2^52 it is a float.
    val magic = x_num(x, t->flt, 0x1.8p52);
    val k = x_add(x, exponent, x_bitcast(x, t->sint, magic));
    return x_sub(x, x_bitcast(x, t->flt, k), magic);
}

// The parts of a 2^more; a is normal.
static struct parts
split(struct expander *x, const struct log_format *t, val a, val more)
{
    val offset = x_bits(x, t->sint, (uint64_t)t->sqrt_half);
    val bits = x_sub(x, x_bitcast(x, t->sint, a), offset);
    val exponent = x_shr(x, bits, x_num(x, t->sint, t->fraction));
    val fraction = x_and(x, bits, x_bits(x, t->sint, (uint64_t)t->fraction_mask));
    val m = x_bitcast(x, t->flt, x_add(x, fraction, offset));
    val f = x_sub(x, m, x_num(x, t->flt, 1));
    return (struct parts){exponent_value(x, t, x_add(x, exponent, more)), f, 0, false};
}

// log(1 + f) = f - (half - s sum)
struct tail {
    val half, s, sum;
};

static struct tail
log_tail64(struct expander *x, val f, val s)
{
    val z = x_mul(x, s, s);
    val p = x_poly_by_pairs(x, z, x_mul(x, z, z), poly64, COUNT(poly64));
    p = x_mul(x, z, p);
    val half = x_mul(x, x_mul(x, f, f), x_num(x, DT_f64, 0.5));
    return (struct tail){half, s, x_add(x, half, p)};
}

static val
low_part(struct expander *x, struct parts v, val ln2_lo)
{
    return v.lo ? x_fma(x, v.k, ln2_lo, v.lo) : x_mul(x, v.k, ln2_lo);
}

// f / (2 + f), by Newton's steps.
static val
newton_quotient(struct expander *x, val f)
{
    val d = x_add(x, f, x_num(x, DT_f64, 2)), y = x_rough_inverse(x, d), q = x_mul(x, f, y);
    return x_fma(x, x_fma(x, x_neg(x, q), d, f), y, q);
}

// The same by a division, which other steps hide.
static val
quotient(struct expander *x, val f)
{
    return x_div(x, f, x_add(x, f, x_num(x, DT_f64, 2)));
}

// k ln 2 + log(1 + f)
static val
log_small(struct expander *x, const struct log_format *t, struct parts v)
{
    val hi = x_num(x, t->flt, t->ln2_hi), lo = x_num(x, t->flt, t->ln2_lo);
    if (t->flt == DT_f32) {
        val f2 = x_mul(x, v.f, v.f);
        val p = x_poly_by_pairs(x, v.f, f2, poly32, COUNT(poly32));
        val tail = x_fma(x, f2, p, low_part(x, v, lo));
        return x_fma(x, v.k, hi, x_add(x, v.f, tail));
    }
    val s = v.divide ? quotient(x, v.f) : newton_quotient(x, v.f);
    struct tail w = log_tail64(x, v.f, s);
    val tail = x_fma(x, w.s, w.sum, low_part(x, v, lo));
    return x_fma(x, v.k, hi, x_sub(x, v.f, x_sub(x, w.half, tail)));
}

// The same to another base.
static val
log_to_base(struct expander *x, const struct log_format *t, const struct base *b, struct parts v)
{
    val e_hi = x_num(x, t->flt, b->e_hi), e_lo = x_num(x, t->flt, b->e_lo);
    bool whole = b->two_lo == 0; // k itself
    val low = whole ? 0 : x_mul(x, v.k, x_num(x, t->flt, b->two_lo)), rest;
    low = low ? x_fma(x, v.f, e_lo, low) : x_mul(x, v.f, e_lo);
    if (t->flt == DT_f32) {
        val f2 = x_mul(x, v.f, v.f);
        val p = x_poly_by_pairs(x, v.f, f2, b->poly32, COUNT(poly32));
        rest = x_fma(x, f2, p, low);
    } else {
        struct tail w = log_tail64(x, v.f, quotient(x, v.f));
        rest = x_fma(x, x_fma(x, w.s, w.sum, x_neg(x, w.half)), e_hi, low);
    }
    val r = x_fma(x, v.f, e_hi, rest);
    return whole ? x_add(x, v.k, r) : x_fma(x, v.k, x_num(x, t->flt, b->two_hi), r);
}

// b: NULL for e.
static val
log_of_parts(struct expander *x, const struct log_format *t, const struct base *b, struct parts v)
{
    return b ? log_to_base(x, t, b, v) : log_small(x, t, v);
}

// Denormals, and what has no logarithm.
static val
log_of_rest(struct expander *x, const struct log_format *t, const struct base *b, val a)
{
    val scaled = x_mul(x, a, x_num(x, t->flt, exp2(t->scale_log2)));
    val r = log_of_parts(x, t, b, split(x, t, scaled, x_num(x, t->sint, -t->scale_log2)));
    r = x_where(x, x_lt(x, a, x_num(x, t->flt, (double)INFINITY)), r, a); // infinity, NaN
    return x_where(x, x_lt(x, a, x_num(x, t->flt, 0)), x_num(x, t->flt, (double)NAN), r);
}

static const struct log_format *
format_of(const struct expander *x, val a)
{
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "logarithms take f32 and f64, not %s", dtype_name(t));
    return &formats[t == DT_f64];
}

// Where a is not in [low, high), as bits: negative numbers and NaN are not.
static val
is_outside(struct expander *x, const struct log_format *t, val a, double low, double high)
{
    uint8_t u = t->flt == DT_f64 ? DT_u64 : DT_u32;
    val least = x_bitcast(x, u, x_num(x, t->flt, low)), end = x_num(x, t->flt, high);
    val place = x_sub(x, x_bitcast(x, u, a), least);
    return x_op(x, OP_ge, place, x_sub(x, x_bitcast(x, u, end), least), 0);
}

static val
logarithm(struct expander *x, const struct log_format *t, const struct base *b, val a)
{
    val inf = x_num(x, t->flt, (double)INFINITY), zero = x_num(x, t->flt, 0);
    val outside = is_outside(x, t, a, t->least_normal, (double)INFINITY);
    val rest = x_and(x, outside, x_ne(x, a, zero));
    val r = log_of_parts(x, t, b, split(x, t, a, x_num(x, t->sint, 0)));
    r = x_where(x, x_eq(x, a, zero), x_neg(x, inf), r);
    return x_where_rarely(x, rest, log_of_rest(x, t, b, a), r);
}

val
expand_log(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return logarithm(x, format_of(x, a), NULL, a);
}

val
expand_log2(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    return logarithm(x, t, &bases[0][t->flt == DT_f64], a);
}

val
expand_log10(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    return logarithm(x, t, &bases[1][t->flt == DT_f64], a);
}

// The parts of 1 + a, and of 1 + a + lo where there is a lo.
static struct parts
split_one_plus(struct expander *x, const struct log_format *t, val a, val lo, val one_plus_a)
{
    val offset = x_bits(x, t->sint, (uint64_t)t->sqrt_half), one = x_num(x, t->flt, 1);
    val bits = x_sub(x, x_bitcast(x, t->sint, one_plus_a), offset);
    val exponent = x_shr(x, bits, x_num(x, t->sint, t->fraction));
    val place = x_shl(x, exponent, x_num(x, t->sint, t->fraction));
    val scale = x_sub(x, x_bitcast(x, t->sint, one), place); // 2^-k
    scale = x_bitcast_number(x, t->flt, scale);
    val rest = x_sub(x, scale, one), f = x_fma(x, scale, a, rest);
    if (lo)
        lo = x_fma(x, scale, lo, x_fma(x, scale, a, x_sub(x, rest, f)));
    return (struct parts){exponent_value(x, t, exponent), f, lo, true};
}

// log(1 + a + lo)
static val
log_of_sum(struct expander *x, const struct log_format *t, val a, val lo)
{
    val sum = x_add(x, a, x_num(x, t->flt, 1));
    return log_small(x, t, split_one_plus(x, t, a, lo, sum));
}

// log(2 a) of large a; infinity and NaN pass.
static val
log_of_twice(struct expander *x, const struct log_format *t, val a)
{
    val r = log_small(x, t, split(x, t, a, x_num(x, t->sint, 1)));
    return x_where(x, x_lt(x, a, x_num(x, t->flt, (double)INFINITY)), r, a);
}

val
expand_log1p(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    val inf = x_num(x, t->flt, (double)INFINITY), minus_one = x_num(x, t->flt, -1);
    val sum = x_add(x, a, x_num(x, t->flt, 1));
    val r = x_copysign(x, log_small(x, t, split_one_plus(x, t, a, 0, sum)), a);
    val large = log_small(x, t, split(x, t, a, x_num(x, t->sint, 0)));
    large = x_where(x, x_lt(x, a, inf), large, a); // infinity, NaN
    large = x_where(x, x_lt(x, a, minus_one), x_num(x, t->flt, (double)NAN), large);
    large = x_where(x, x_eq(x, a, minus_one), x_neg(x, inf), large);
    val rest = is_outside(x, t, sum, t->one_plus_low, t->one_plus_high);
    return x_where_rarely(x, rest, large, r);
}

val
expand_asinh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    val one = x_num(x, t->flt, 1), size = x_abs(x, a);
    val root = x_op(x, OP_sqrt, x_fma(x, size, size, one), 0, 0);
    val more = x_div(x, x_mul(x, size, size), x_add(x, root, one)), sum = x_add(x, size, more);
    val lo = x_add(x, x_sub(x, size, sum), more);
    val large = x_lt(x, x_num(x, t->flt, t->square_high), size);
    val r = log_of_sum(x, t, sum, lo);
    return x_copysign(x, x_where_rarely(x, large, log_of_twice(x, t, size), r), a);
}

val
expand_acosh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    val one = x_num(x, t->flt, 1), above = x_sub(x, a, one);
    val root = x_op(x, OP_sqrt, x_fma(x, above, above, x_add(x, above, above)), 0, 0);
    val sum = x_add(x, root, above), lo = x_add(x, x_sub(x, root, sum), above);
    val nan = x_num(x, t->flt, (double)NAN), r = log_of_sum(x, t, sum, lo);
    val far = x_where(x, x_lt(x, a, one), nan, log_of_twice(x, t, a));
    return x_where_rarely(x, is_outside(x, t, a, 1, t->square_high), far, r);
}

// k ln 2 / 2 + atanh(s)
static val
atanh_of_parts(struct expander *x, const struct log_format *t, val k, val s)
{
    val z = x_mul(x, s, s), lo = x_num(x, t->flt, t->ln2_lo / 2);
    val p = x_poly_by_pairs(x, z, x_mul(x, z, z), t->atanh, t->natanh);
    val tail = x_fma(x, x_mul(x, s, z), p, x_mul(x, k, lo));
    return x_fma(x, k, x_num(x, t->flt, t->ln2_hi / 2), x_add(x, s, tail));
}

val
expand_atanh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct log_format *t = format_of(x, a);
    val size = x_abs(x, a), one = x_num(x, t->flt, 1), zero = x_num(x, t->sint, 0);
    val plus = x_add(x, one, size), minus = x_sub(x, one, size);
    val bits = x_sub(x, x_bitcast(x, t->sint, plus), x_bitcast(x, t->sint, minus));
    bits = x_add(x, bits, x_bits(x, t->sint, 1ull << (t->fraction - 1)));
    val fraction = x_num(x, t->sint, t->fraction), exponent = x_shr(x, bits, fraction);
    val scale = x_add(x, x_shl(x, exponent, fraction), x_bitcast(x, t->sint, one));
    scale = x_bitcast_number(x, t->flt, scale);
    val sum = x_add(x, one, scale), rest = x_sub(x, one, scale), k = exponent_value(x, t, exponent);
    val s = x_div(x, x_fma(x, size, sum, rest), x_fma(x, size, rest, sum));
    val r = atanh_of_parts(x, t, k, x_where(x, x_eq(x, exponent, zero), size, s));
    // 1 - |x| is exact here.
    val minus_scale = x_neg(x, scale);
    val near = x_div(x, x_fma(x, minus_scale, minus, plus), x_fma(x, scale, minus, plus));
    near = atanh_of_parts(x, t, k, near);
    near = x_where(x, x_eq(x, size, one), x_num(x, t->flt, (double)INFINITY), near);
    val inside = x_op(x, OP_le, size, one, 0);
    near = x_where(x, inside, near, x_num(x, t->flt, (double)NAN));
    val far = x_lt(x, x_num(x, t->flt, 1 - 0x1p-10), size);
    return x_copysign(x, x_where_rarely(x, far, near, r), a);
}

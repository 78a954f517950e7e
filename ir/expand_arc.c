// expand_arc.c: asin, acos, atan and atan2, for f32 and f64.
//
// atan t = t + t^3 P(t^2), up to t = 1 for f32 (to 2^-26.9: the last coefficient is moved so that
// atan 1 is rounded right) and up to sqrt(2) - 1 for f64 (to 2^-63.9). Beyond, atan x is a constant
// and atan of a quotient: pi / 2 + atan(-1 / x), and for f64 between sqrt(2) - 1 and sqrt(2) + 1
// pi / 4 + atan((x - 1) / (x + 1)). atan2 has a quotient anyhow, of the smaller of both sizes by
// the larger, or of their difference by their sum; what it adds is a sum of such constants, chosen
// by signs, and t is negated where the angle decreases with it. A division is dear, but beside it
// the polynomial is computed; Newton's steps would take the instructions that that needs.
//
// Constants have two parts. The second, the rest of atan and t are added to the first, small ones
// first, so that 0 and what is tiny come out as they are.
//
// asin x = x + x^3 P(x^2) up to 1/2, and beyond pi / 2 - 2 asin s, s^2 = (1 - |x|) / 2, which is
// exact; f32 to 2^-27.6, f64 to 2^-59.9. acos is pi / 2 less that: pi / 2 - asin x, or 2 asin s, or
// pi - 2 asin s. Beyond 1 the root is that of a negative number, NaN.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#include <math.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

static const double atan32[] = {
    -0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242084p-3, 0x1.c08c1ap-4, -0x1.58081ep-4, 0x1.da2548p-5,
    -0x1.fd71fep-6, 0x1.641562p-7, -0x1.d33a4ap-10,
};
static const double atan64[] = {
    -0x1.5555555555554p-2, 0x1.9999999999584p-3, -0x1.249249246f58cp-3, 0x1.c71c71b458c24p-4,
    -0x1.745d1450451bbp-4, 0x1.3b1364efded85p-4, -0x1.110beb7264216p-4, 0x1.e167bb13896a8p-5,
    -0x1.ab3bf1f15478ap-5, 0x1.6fe4e9ef47b9ep-5, -0x1.0fd548e97806bp-5, 0x1.e84c9dd842f0cp-7,
};
static const double asin32[] = {
    0x1.5555c8p-3, 0x1.330204p-4, 0x1.747bbap-5, 0x1.8c3e2ap-6, 0x1.595c8cp-5,
};
static const double asin64[] = {
    0x1.5555555555577p-3, 0x1.333333332e13p-4, 0x1.6db6db721278dp-5, 0x1.f1c71a94eb95fp-6,
    0x1.6e8bdee1210a0p-6, 0x1.1c49f04c1d99cp-6, 0x1.ca1f8f1402949p-7, 0x1.75857bc26128fp-7,
    0x1.613cdc7d9441fp-7, 0x1.e5f0b5961a1e2p-9, 0x1.639def85024b6p-6, -0x1.57ff9e18dbb5fp-6,
    0x1.0b4769c993794p-5,
};

struct arc_format {
    uint8_t flt, sint, uint;
    double quarter_hi, quarter_lo; // pi / 4
    double top; // half of the last power of two
    const double *atan, *asin;
    uint32_t natan, nasin;
};
static const struct arc_format formats[2] = {
    {DT_f32, DT_i32, DT_u32, 0x1.921fb6p-1, -0x1.777a5cp-26, 0x1p126, atan32, asin32, COUNT(atan32),
     COUNT(asin32)},
    {DT_f64, DT_i64, DT_u64, 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55, 0x1p1022, atan64, asin64,
     COUNT(atan64), COUNT(asin64)},
};

static const struct arc_format *
format_of(const struct expander *x, val a)
{
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "arc functions take f32 and f64, not %s", dtype_name(t));
    return &formats[t == DT_f64];
}

// A multiple of pi / 4.
static val
quarters_hi(struct expander *x, const struct arc_format *f, double n)
{
    return x_num(x, f->flt, n * f->quarter_hi);
}

static val
quarters_lo(struct expander *x, const struct arc_format *f, double n)
{
    return x_num(x, f->flt, n * f->quarter_lo);
}

// What atan t is more than t, and tail.
static val
atan_rest(struct expander *x, const struct arc_format *f, val t, val tail)
{
    val z = x_mul(x, t, t), z2 = x_mul(x, z, z);
    val p = f->flt == DT_f64 ? x_poly_by_fours(x, z, z2, f->atan, f->natan)
                             : x_poly_by_pairs(x, z, z2, f->atan, f->natan);
    return x_fma(x, x_mul(x, t, z), p, tail);
}

// size < 1: itself; beyond: pi / 2 + atan(-1 / size)
static val
atan_of32(struct expander *x, const struct arc_format *f, val size)
{
    val one = x_num(x, DT_f32, 1), zero = x_num(x, DT_f32, 0), large = x_lt(x, one, size);
    val t = x_where(x, large, x_div(x, x_num(x, DT_f32, -1), size), size);
    val rest = atan_rest(x, f, t, x_where(x, large, quarters_lo(x, f, 2), zero));
    return x_add(x, x_where(x, large, quarters_hi(x, f, 2), zero), x_add(x, t, rest));
}

static val
atan_of64(struct expander *x, const struct arc_format *f, val size)
{
    val one = x_num(x, DT_f64, 1), zero = x_num(x, DT_f64, 0);
    val middle = x_lt(x, x_num(x, DT_f64, 0.41421356237309503), size);
    val large = x_lt(x, x_num(x, DT_f64, 2.4142135623730950), size);
    val n = x_where(x, large, x_num(x, DT_f64, -1), x_sub(x, size, one));
    val d = x_where(x, large, size, x_add(x, size, one));
    val t = x_where(x, middle, x_div(x, n, d), size);
    val lo = x_where(x, large, quarters_lo(x, f, 2), quarters_lo(x, f, 1));
    val hi = x_where(x, large, quarters_hi(x, f, 2), quarters_hi(x, f, 1));
    val rest = atan_rest(x, f, t, x_where(x, middle, lo, zero));
    return x_add(x, x_where(x, middle, hi, zero), x_add(x, t, rest));
}

val
expand_atan(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct arc_format *f = format_of(x, a);
    val size = x_abs(x, a);
    return x_copysign(x, (f->flt == DT_f64 ? atan_of64 : atan_of32)(x, f, size), a);
}

// ---- atan2

// The quotient where large is 0, NaN, infinite or so large that its sum with small may be that. d
// and n are halves. middle: 0 where there are none but of f64.
static val
ratio_of_ends(struct expander *x, const struct arc_format *f, val small, val large, val middle)
{
    val inf = x_num(x, f->flt, (double)INFINITY), zero = x_num(x, f->flt, 0);
    val half = x_num(x, f->flt, 0.5), d = x_mul(x, large, half), n = x_mul(x, small, half);
    if (middle) {
        val sum = x_add(x, n, d);
        n = x_where(x, middle, x_sub(x, n, d), n);
        d = x_where(x, middle, sum, d);
    }
    val equal = x_num(x, f->flt, middle ? 0 : 1); // infinities
    val r = x_where(x, x_eq(x, large, inf), x_where(x, x_eq(x, small, inf), equal, zero),
                    x_div(x, n, d));
    r = x_where(x, x_eq(x, large, zero), zero, r);
    val nan = x_op(x, OP_unordered_raw, small, large, 0);
    return x_where(x, nan, x_num(x, f->flt, (double)NAN), r);
}

// n / d is the tangent that is wanted, and hi + lo what is added to its angle, which is negated
// where `back` is true.
struct turned {
    val n, d, hi, lo, middle, back;
};

// Of small / large; pi / 2 less its angle where it is steep, and pi less that where b is negative.
static struct turned
turn(struct expander *x, const struct arc_format *f, val small, val large, val steep, val b)
{
    val zero = x_num(x, f->flt, 0);
    val negative = x_lt(x, x_bitcast(x, f->sint, b), x_num(x, f->sint, 0));
    struct turned v = {small, large, x_where(x, negative, quarters_hi(x, f, 4), zero),
                       x_where(x, negative, quarters_lo(x, f, 4), zero), 0,
                       x_ne(x, steep, negative)};
    v.hi = x_where(x, steep, quarters_hi(x, f, 2), v.hi);
    v.lo = x_where(x, steep, quarters_lo(x, f, 2), v.lo);
    if (f->flt == DT_f32)
        return v;
    val edge = x_mul(x, large, x_num(x, f->flt, 0.41421356237309503));
    v.middle = x_lt(x, x_least(x, edge, 0x1.fffffffffffffp1023), small); // of infinities too
    v.n = x_where(x, v.middle, x_sub(x, small, large), v.n);
    v.d = x_where(x, v.middle, x_add(x, small, large), v.d);
    val hi = x_where(x, v.back, quarters_hi(x, f, -1), quarters_hi(x, f, 1));
    val lo = x_where(x, v.back, quarters_lo(x, f, -1), quarters_lo(x, f, 1));
    v.hi = x_where(x, v.middle, x_add(x, v.hi, hi), v.hi);
    v.lo = x_where(x, v.middle, x_add(x, v.lo, lo), v.lo);
    return v;
}

val
expand_atan2(struct expander *x, val a, val b, val c)
{
    (void)c;
    const struct arc_format *f = format_of(x, a);
    val y = x_abs(x, a), u = x_abs(x, b), steep = x_lt(x, u, y);
    val large = x_where(x, steep, y, u), small = x_where(x, steep, u, y);
    struct turned v = turn(x, f, small, large, steep, b);
    val one = x_num(x, f->uint, 1), place = x_sub(x, x_bitcast(x, f->uint, large), one);
    val top = x_sub(x, x_bitcast(x, f->uint, x_num(x, f->flt, f->top)), one);
    val end = x_op(x, OP_ge, place, top, 0);
    val q = x_where_rarely(x, end, ratio_of_ends(x, f, small, large, v.middle),
                           x_div(x, v.n, v.d));
    val t = x_where(x, v.back, x_neg(x, q), q);
    return x_copysign(x, x_add(x, v.hi, x_add(x, t, atan_rest(x, f, t, v.lo))), a);
}

// ---- asin and acos

// asin size = s + rest up to 1/2; beyond it is pi / 2 - 2 (s + rest).
struct arc {
    val large, s, rest;
};

static struct arc
arc_of(struct expander *x, const struct arc_format *f, val size)
{
    val half = x_num(x, f->flt, 0.5), large = x_lt(x, half, size);
    val less = x_fma(x, size, x_num(x, f->flt, -0.5), half);
    val z = x_where(x, large, less, x_mul(x, size, size)), z2 = x_mul(x, z, z);
    val s = x_where(x, large, x_op(x, OP_sqrt, less, 0, 0), size);
    val p = f->flt == DT_f64 ? x_poly_by_fours(x, z, z2, f->asin, f->nasin)
                             : x_poly(x, z, f->asin, f->nasin);
    return (struct arc){large, s, x_mul(x, x_mul(x, s, z), p)};
}

val
expand_asin(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct arc_format *f = format_of(x, a);
    struct arc v = arc_of(x, f, x_abs(x, a));
    val two = x_num(x, f->flt, -2), hi = quarters_hi(x, f, 2), far = x_fma(x, two, v.s, hi);
    val lost = x_fma(x, two, v.s, x_sub(x, hi, far));
    far = x_add(x, far, x_fma(x, two, v.rest, x_add(x, lost, quarters_lo(x, f, 2))));
    return x_copysign(x, x_where(x, v.large, far, x_add(x, v.s, v.rest)), a);
}

val
expand_acos(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct arc_format *f = format_of(x, a);
    struct arc v = arc_of(x, f, x_abs(x, a));
    val negative = x_lt(x, a, x_num(x, f->flt, 0)), zero = x_num(x, f->flt, 0);
    val sum = x_add(x, v.s, v.rest);
    val hi = x_where(x, negative, quarters_hi(x, f, 4), zero);
    val lo = x_where(x, negative, quarters_lo(x, f, 4), zero);
    hi = x_where(x, v.large, hi, quarters_hi(x, f, 2));
    lo = x_where(x, v.large, lo, quarters_lo(x, f, 2));
    val twice = x_where(x, v.large, x_add(x, sum, sum), x_neg(x, sum));
    twice = x_where(x, negative, x_neg(x, twice), twice);
    return x_add(x, hi, x_add(x, twice, lo));
}

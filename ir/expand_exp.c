// expand_exp.c: exp, exp2, expm1, sigmoid, sinh and cosh, for f32 and f64, and tanh for f64 (f32:
// ir/expand_table.c).
//
// exp(x) = 2^n exp(r), n = round(x / ln 2), r = x - n ln 2 in two fma steps (Cody, Waite 1980), so
// that |r| <= ln 2 / 2. The rounding is an addition: t = fma(x, log2 e, M) with M = 1.5 * 2^23 (or
// 2^52) leaves n in t's low bits, and n = t - M is exact. M also contains an exponent bias, so that
// shifting t's bits to the exponent's place is 2^n as a float; in exp it is 2^(n-1), and exp(r) is
// doubled, so that the product overflows to infinity by itself. Arguments are limited to where it
// is normal or does that, and 0 is chosen for those far below (masks are often -inf): saturation is
// ordinary, and the products of denormals, which processors take long over, are kept out. In
// between, where the result is a denormal and 2^(n-1) has lost its sign, is a rare operand
// (x_where_rarely): the same exp(r) times 2^(n-1+64) (2^(n-1+512)), scaled down. A NaN passes the
// limits and every multiplication.
//
// The polynomials are minimax fits of the relative error of the function (ir/fit_polynomials.py):
//   exp(r) = 1 + r + r^2 P(r)             f32: degree 4, 2^-28.2     f64: degree 10, 2^-63.6
//   expm1(r) = r + r^2 P(r)               f32: degree 5, 2^-28.1     f64: degree 10, 2^-61.6
//   2^r = 1 + c r + r^2 P(r)              f32: degree 4, 2^-28.3     f64: degree 10, 2^-59.7
//   sinh(r) = r + r^3 P(r^2)              f32: degree 2, 2^-34.3     f64: degree 5, 2^-65.2
//   cosh(r) = 1 + r^2 P(r^2)              f32: degree 2, 2^-33.3     f64: degree 5, 2^-70.0
//
// exp2 differs from exp in its reduction, r = x - n, which is exact, as are integers' results.
//
// expm1(x) = 2^n r + (2^n - 1) + 2^n (lo + r^2 P): here r is x - n ln2_hi, exact, and lo what
// n ln 2 has beyond that. Large x, where 2^n overflows before the result does, are a rare operand:
// exp.
//
// sinh and cosh, of |x|: with a = 2^n / 2 and b = 2^-n / 2 they are (a - b) cosh r + (a + b) sinh
// r, and with a + b and a - b exchanged. Neither cancels, and both polynomials are short, as they
// are of r^2; no quotient is taken. The largest term is added last, its rest (a's or b's digits
// that the sum does not hold) with what is small. Near overflow and beyond: exp(x) / 2, with half
// of 2^n.
//
// sigmoid(x) = 1 / (1 + exp(-x)); the sum is (2^n + 1) + (2^n expm1(r) + what 2^n + 1 loses).
// Newton's steps are cheaper than a division (x_inverse). Denormal results are a rare operand here
// as well.
//
// tanh(x) = t / (t + 1) with t = expm1(2 |x|) / 2 = 2^n expm1(r) / 2 + (2^n - 1) / 2: no
// cancellation near 0, and 1 where t + 1 rounds to t. The rest of the quotient is taken as
// t - q - t q: so what the sum t + 1 loses is not lost, and for large t, where t - q rounds, t's
// own error does not count. Nor does it matter there that n ln 2 is subtracted in one step only.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#include <math.h>

struct exp_format {
    uint8_t flt, sint;      // dtypes
    uint8_t fraction;       // bits
    double magic;           // 1.5 * 2^fraction
    double bias;            // of the exponent
    double half_scale_log2; // half of the extreme scale
    double low, high;       // beyond: exp is 0, infinity
    double near;            // exp(-near) and exp(near) are normal, also halved
    double ln2_hi, ln2_lo;
    double tanh_limit; // beyond: 1
    double exp_poly[11], expm1_poly[11];
    uint32_t nexp, nexpm1;
    double low2, high2, near2;   // the same for 2^x
    double exp2_poly[12];        // from r on
    double ordinary;             // up to here 2^n is ordinary, and 2^-n, halved
    double sinh_poly[6], cosh_poly[6];
    uint32_t nsinh;
};

static const struct exp_format formats[2] = {
    {.flt = DT_f32, .sint = DT_i32, .fraction = 23, .magic = 0x1.8p23, .bias = 127,
     .half_scale_log2 = 64, .low = -104, .high = 89, .near = 86,
     .ln2_hi = 0x1.62e43p-1, .ln2_lo = -0x1.05c61p-29,
     .tanh_limit = 10,
     .exp_poly = {0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123de2p-7, 0x1.6ac7d2p-10},
     .nexp = 5,
     .expm1_poly = {
         0x1p-1, 0x1.55552cp-3, 0x1.555502p-5, 0x1.11567p-7, 0x1.6d2e9ap-10, 0x1.3976b6p-13,
     },
     .nexpm1 = 6,
     .low2 = -150, .high2 = 128, .near2 = 125,
     .exp2_poly = {
         0x1.62e43p-1, 0x1.ebfbdcp-3, 0x1.c6af76p-5, 0x1.3b2dd4p-7, 0x1.5f0b86p-10, 0x1.416d1p-13,
     },
     .ordinary = 87,
     .sinh_poly = {0x1.555556p-3, 0x1.110fbep-7, 0x1.a2e31p-13},
     .cosh_poly = {0x1p-1, 0x1.5554e6p-5, 0x1.6d4f3cp-10},
     .nsinh = 3},
    {.flt = DT_f64, .sint = DT_i64, .fraction = 52, .magic = 0x1.8p52, .bias = 1023,
     .half_scale_log2 = 512, .low = -746, .high = 710, .near = 707,
     .ln2_hi = 0x1.62e42fefa39efp-1, .ln2_lo = 0x1.abc9e3b39803fp-56,
     .tanh_limit = 20,
     .exp_poly = {
         0x1p-1, 0x1.555555555555dp-3, 0x1.555555555556cp-5, 0x1.111111110e549p-7,
         0x1.6c16c16c0a3e2p-10, 0x1.a01a01b5f5074p-13, 0x1.a01a01e8befa8p-16, 0x1.71ddeaaae9addp-19,
         0x1.27e44a5425234p-22, 0x1.af744cb4991f4p-26, 0x1.2050c90961a99p-29,
     },
     .nexp = 11,
     .expm1_poly = {
         0x1p-1, 0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f6f5p-7,
         0x1.6c16c16c16466p-10, 0x1.a01a01afa4d02p-13, 0x1.a01a019ff14c1p-16, 0x1.71ddf92723304p-19,
         0x1.27e4f4fb69b27p-22, 0x1.af5d1e1a47be7p-26, 0x1.1f3e99807e1f1p-29,
     },
     .nexpm1 = 11,
     .low2 = -1075, .high2 = 1024, .near2 = 1021,
     .exp2_poly = {
         0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58ep-3, 0x1.c6b08d704a1c3p-5, 0x1.3b2ab6fba5266p-7,
         0x1.5d87fe7879edp-10, 0x1.430912f6d955ep-13, 0x1.ffcbfd251d5eap-17, 0x1.62c02a3065b69p-20,
         0x1.b5238bd61b6f4p-24, 0x1.e4ace5b0a326cp-28, 0x1.ebd9b4e7db26cp-32, 0x1.f94770fabacacp-36,
     },
     .ordinary = 708,
     .sinh_poly = {
         0x1.5555555555555p-3, 0x1.1111111111388p-7, 0x1.a01a019e9f5f2p-13, 0x1.71de408897bd1p-19,
         0x1.ae4cb4a3914f5p-26, 0x1.82e5adadc803fp-33,
     },
     .cosh_poly = {
         0x1p-1, 0x1.5555555555558p-5, 0x1.6c16c16c14ff1p-10, 0x1.a01a01ad86be5p-16,
         0x1.27e4cbf6c0e3ap-22, 0x1.1f8c143cde43ep-29,
     },
     .nsinh = 6},
};

static const struct exp_format *
format_of(const struct expander *x, val a)
{
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "exp and its kin take f32 and f64, not %s", dtype_name(t));
    return &formats[t == DT_f64];
}

// times a = n ln 2 + times r, and 2^(n + shift) as a float, where magic contains shift and the
// bias. bits: what is shifted to the exponent's place.
struct reduced {
    val r, n, bits, scale;
};

static val
power_of_two(struct expander *x, const struct exp_format *f, val bits)
{
    return x_bitcast(x, f->flt, x_shl(x, bits, x_num(x, f->sint, f->fraction)));
}

static struct reduced
reduce_roughly(struct expander *x, const struct exp_format *f, val a, double times, val magic)
{
    val t = x_fma(x, a, x_num(x, f->flt, times * 0x1.71547652b82fep0), magic);
    val n = x_sub(x, t, magic), r = x_fma(x, n, x_num(x, f->flt, -f->ln2_hi / times), a);
    val bits = x_bitcast(x, f->sint, t);
    return (struct reduced){r, n, bits, power_of_two(x, f, bits)};
}

static struct reduced
reduce(struct expander *x, const struct exp_format *f, val a, val magic)
{
    struct reduced v = reduce_roughly(x, f, a, 1, magic);
    v.r = x_fma(x, v.n, x_num(x, f->flt, -f->ln2_lo), v.r);
    return v;
}

// The scale times 2^by.
static val
scaled_by(struct expander *x, const struct exp_format *f, struct reduced v, double by)
{
    return power_of_two(x, f, x_add(x, v.bits, x_num(x, f->sint, by)));
}

// exp(r) times a power of two.
static val
exp_reduced(struct expander *x, const struct exp_format *f, val r, double times)
{
    double c[2 + sizeof f->exp_poly / sizeof *f->exp_poly] = {times, times};
    for (uint32_t i = 0; i < f->nexp; i++)
        c[2 + i] = f->exp_poly[i] * times;
    return x_poly(x, r, c, f->nexp + 2);
}

// a / 2^half_scale_log2, a > 0, rounded into the denormals by adding to a number whose last place
// is theirs. Multiplying would do, but many processors take a hundred times as long for it.
static val
scaled_down(struct expander *x, const struct exp_format *f, val a)
{
    double half = f->half_scale_log2;
    val edge = x_num(x, f->flt, ldexp(1, (int)half + 2 - (int)f->bias - 1));
    val bits = x_bitcast(x, f->sint, a), sum = x_bitcast(x, f->sint, x_add(x, a, edge));
    val step = x_bits(x, f->sint, (uint64_t)half << f->fraction);
    val small = x_sub(x, sum, x_bitcast(x, f->sint, edge));
    val moved = x_where(x, x_lt(x, a, edge), small, x_sub(x, bits, step));
    return x_bitcast_number(x, f->flt, moved);
}

// What the rare operand is computed from: the other elements take 0, which is quick.
static val
where_needed(struct expander *x, val needed, val a)
{
    return x_where(x, needed, a, x_num(x, x_dtype(x, a), 0));
}

// hi - n ln2_hi is exact, as ln2_hi has all of its digits.
static val
exp_sum(struct expander *x, const struct exp_format *f, val hi, val lo, val magic)
{
    struct reduced v = reduce_roughly(x, f, hi, 1, magic);
    lo = x_fma(x, v.n, x_num(x, f->flt, -f->ln2_lo), lo);
    val r = x_add(x, v.r, lo), r2 = x_mul(x, r, r);
    val p = x_poly_by_fours(x, r, r2, f->exp_poly, f->nexp);
    val small = x_add(x, v.r, x_fma(x, p, r2, lo));
    return x_mul(x, x_add(x, x_num(x, f->flt, 1), small), v.scale);
}

val
x_exp_sum(struct expander *x, val hi, val lo)
{
    const struct exp_format *f = format_of(x, hi);
    return exp_sum(x, f, hi, lo, x_num(x, f->flt, f->magic + f->bias));
}

val
x_exp_sum_anywhere(struct expander *x, val hi, val lo)
{
    const struct exp_format *f = format_of(x, hi);
    double middle = f->magic + f->bias, half = f->half_scale_log2;
    val zero = x_num(x, f->flt, 0), inf = x_num(x, f->flt, (double)INFINITY);
    val inside = x_lt(x, x_abs(x, hi), x_num(x, f->flt, -f->low)), small = x_lt(x, hi, zero);
    val end = x_where(x, small, zero, inf);
    hi = where_needed(x, inside, hi);
    val magic = x_where(x, small, x_num(x, f->flt, middle + half), x_num(x, f->flt, middle - half));
    val r = exp_sum(x, f, x_least(x, hi, f->high), where_needed(x, inside, lo), magic);
    r = x_where(x, small, scaled_down(x, f, r), x_mul(x, r, x_num(x, f->flt, exp2(half))));
    return x_where(x, inside, r, end);
}

// doubled times v.scale, the power of a that is wanted; 0 below low, denormal below -near.
static val
scaled_up(struct expander *x, const struct exp_format *f, struct reduced v, val doubled, val a,
          double lowest, double near)
{
    val low = x_num(x, f->flt, lowest), r = x_mul(x, doubled, v.scale);
    r = x_where(x, x_lt(x, a, low), x_num(x, f->flt, 0), r);
    val far = x_and(x, x_lt(x, a, x_num(x, f->flt, -near)), x_op(x, OP_le, low, a, 0));
    val raised = x_mul(x, doubled, scaled_by(x, f, v, f->half_scale_log2));
    return x_where_rarely(x, far, scaled_down(x, f, raised), r);
}

val
x_exp_product(struct expander *x, val hi, val lo, val g, val g_lo)
{
    const struct exp_format *f = format_of(x, hi);
    struct reduced v = reduce_roughly(x, f, hi, 1, x_num(x, f->flt, f->magic + f->bias));
    lo = x_fma(x, v.n, x_num(x, f->flt, -f->ln2_lo), lo);
    val r = x_add(x, v.r, lo), r2 = x_mul(x, r, r);
    val p = x_poly_by_pairs(x, r, r2, f->expm1_poly, f->nexpm1);
    val expm1 = x_add(x, v.r, x_fma(x, p, r2, lo));
    val product = x_add(x, g, x_fma(x, g, expm1, g_lo));
    val raised = x_mul(x, product, scaled_by(x, f, v, f->half_scale_log2));
    val far = x_lt(x, hi, x_num(x, f->flt, 6 - f->near));
    return x_where_rarely(x, far, scaled_down(x, f, raised), x_mul(x, product, v.scale));
}

val
expand_exp(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct exp_format *f = format_of(x, a);
    val limited = x_least(x, x_most(x, a, f->low), f->high);
    struct reduced v = reduce(x, f, limited, x_num(x, f->flt, f->magic + f->bias - 1));
    return scaled_up(x, f, v, exp_reduced(x, f, v.r, 2), a, f->low, f->near);
}

val
expand_exp2(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct exp_format *f = format_of(x, a);
    val limited = x_least(x, x_most(x, a, f->low2), f->high2);
    val magic = x_num(x, f->flt, f->magic + f->bias - 1), t = x_add(x, limited, magic);
    struct reduced v = {.n = x_sub(x, t, magic), .bits = x_bitcast(x, f->sint, t)};
    v.r = x_sub(x, limited, v.n);
    v.scale = power_of_two(x, f, v.bits);
    double doubled[1 + sizeof f->exp2_poly / sizeof *f->exp2_poly] = {2};
    for (uint32_t i = 0; i <= f->nexp; i++)
        doubled[1 + i] = f->exp2_poly[i] * 2;
    val p = x_poly(x, v.r, doubled, f->nexp + 2);
    return scaled_up(x, f, v, p, a, f->low2, f->near2);
}

// exp(a) 2^(by + 1), a > 0: infinite where that is.
static val
exp_high(struct expander *x, const struct exp_format *f, val a, double by)
{
    val limited = x_least(x, a, f->high - 1 - by);
    struct reduced v = reduce(x, f, limited, x_num(x, f->flt, f->magic + f->bias + by));
    return x_mul(x, exp_reduced(x, f, v.r, 2), v.scale);
}

// a = n ln 2 + r, r = hi + lo, rounded; hi is exact.
struct exactly_reduced {
    struct reduced v; // v.r: hi
    val lo, r, r2;
};

static struct exactly_reduced
reduce_exactly(struct expander *x, const struct exp_format *f, val a, double bias)
{
    struct exactly_reduced e = {
        .v = reduce_roughly(x, f, a, 1, x_num(x, f->flt, f->magic + bias)),
    };
    e.lo = x_mul(x, e.v.n, x_num(x, f->flt, -f->ln2_lo));
    e.r = x_add(x, e.v.r, e.lo);
    e.r2 = x_mul(x, e.r, e.r);
    return e;
}

val
expand_expm1(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct exp_format *f = format_of(x, a);
    struct exactly_reduced e = reduce_exactly(x, f, x_most(x, a, -2 * f->tanh_limit), f->bias);
    val p = x_poly_by_pairs(x, e.r, e.r2, f->expm1_poly, f->nexpm1);
    val start = x_add(x, e.v.scale, x_num(x, f->flt, -1)), tail = x_fma(x, p, e.r2, e.lo);
    val r = x_fma(x, e.v.scale, tail, x_fma(x, e.v.scale, e.v.r, start));
    val far = x_lt(x, x_num(x, f->flt, f->ordinary), a);
    return x_where_rarely(x, far, exp_high(x, f, a, -1), x_copysign(x, r, a));
}

// The hyperbolic sine, or cosine, of size >= 0.
static val
hyperbolic(struct expander *x, const struct exp_format *f, val size, bool sine)
{
    struct exactly_reduced e = reduce_exactly(x, f, size, f->bias - 1);
    val both = x_bits(x, f->sint, (uint64_t)(2 * f->bias - 2) << f->fraction);
    val up = e.v.scale, bits = x_sub(x, both, x_bitcast(x, f->sint, up));
    val down = x_bitcast_number(x, f->flt, bits);
    val sum = x_add(x, up, down), difference = x_sub(x, up, down);
    val s = x_fma(x, x_mul(x, e.r, e.r2), x_poly(x, e.r2, f->sinh_poly, f->nsinh), e.lo);
    val c = x_poly(x, e.r2, f->cosh_poly, f->nsinh), r;
    if (sine) {
        val lost = x_sub(x, x_sub(x, up, difference), down);
        r = x_fma(x, x_mul(x, difference, e.r2), c, x_fma(x, sum, s, lost));
        r = x_add(x, difference, x_fma(x, sum, e.v.r, r));
    } else {
        r = x_fma(x, x_mul(x, sum, e.r2), c, x_fma(x, difference, s, down));
        r = x_add(x, up, x_fma(x, difference, e.v.r, r));
    }
    val far = x_lt(x, x_num(x, f->flt, f->ordinary), size);
    return x_where_rarely(x, far, exp_high(x, f, size, -2), r);
}

val
expand_sinh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return x_copysign(x, hyperbolic(x, format_of(x, a), x_abs(x, a), true), a);
}

val
expand_cosh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return hyperbolic(x, format_of(x, a), x_abs(x, a), false);
}

// one + scale exp(r), where expm1 is that of r.
static val
one_and_exp(struct expander *x, val expm1, val scale, val one)
{
    val sum = x_add(x, scale, one), lost = x_sub(x, one, x_sub(x, sum, scale));
    return x_add(x, sum, x_fma(x, scale, expm1, lost));
}

val
expand_sigmoid(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct exp_format *f = format_of(x, a);
    double half = f->half_scale_log2;
    val low = x_num(x, f->flt, f->low), zero = x_num(x, f->flt, 0), one = x_num(x, f->flt, 1);
    val limited = x_least(x, x_most(x, x_neg(x, a), -2 * f->tanh_limit), -f->low);
    struct reduced v = reduce(x, f, limited, x_num(x, f->flt, f->magic + f->bias));
    val r2 = x_mul(x, v.r, v.r), p = x_poly_by_pairs(x, v.r, r2, f->expm1_poly, f->nexpm1);
    val expm1 = x_fma(x, p, r2, v.r);
    val r = x_inverse(x, one_and_exp(x, expm1, v.scale, one));
    r = x_where(x, x_lt(x, a, low), zero, r);
    val far = x_and(x, x_lt(x, a, x_num(x, f->flt, -f->near)), x_op(x, OP_le, low, a, 0));
    val lowered = scaled_by(x, f, v, -half), small = x_num(x, f->flt, exp2(-half));
    val scaled = x_inverse(x, one_and_exp(x, expm1, lowered, small));
    return x_where_rarely(x, far, scaled_down(x, f, scaled), r);
}

// scale * expm1(times r) / times + start, where start + scale r is exact where it cancels, so that
// the sum is rounded but once there.
static val
expm1_from(struct expander *x, const struct exp_format *f, struct reduced v, double times,
           val start)
{
    double c[sizeof f->expm1_poly / sizeof *f->expm1_poly];
    for (uint32_t i = 0; i < f->nexpm1; i++)
        c[i] = f->expm1_poly[i] * pow(times, i + 1);
    val r2 = x_mul(x, v.r, v.r), p = x_poly_by_pairs(x, v.r, r2, c, f->nexpm1);
    return x_fma(x, p, x_mul(x, r2, v.scale), x_fma(x, v.scale, v.r, start));
}

val
expand_tanh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    const struct exp_format *f = format_of(x, a);
    if (f->flt == DT_f32)
        return x_tanh32(x, a);
    val size = x_least(x, x_abs(x, a), f->tanh_limit), half = x_num(x, f->flt, 0.5);
    struct reduced v = reduce_roughly(x, f, size, 2, x_num(x, f->flt, f->magic + f->bias));
    val t = expm1_from(x, f, v, 2, x_fma(x, v.scale, half, x_neg(x, half)));
    val inverse = x_rough_inverse(x, x_add(x, t, x_num(x, f->flt, 1))), q = x_mul(x, t, inverse);
    val rest = x_fma(x, x_neg(x, q), t, x_sub(x, t, q));
    return x_copysign(x, x_fma(x, rest, inverse, q), a);
}

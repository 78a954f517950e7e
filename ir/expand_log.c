// expand_log.c: log, for f32 and f64.
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
//        (the scheme of Sun's fdlibm, K. C. Ng 1993). Both fits: ir/fit_polynomials.py.
#include "ir/expand_rules.h"

#include "ir/base/check.h"

#include <math.h>

static const double poly32[] = {
    -0x1p-1, 0x1.555544p-2, -0x1.ffffep-3, 0x1.99a626p-3, -0x1.55667ep-3, 0x1.2323c8p-3,
    -0x1.faa784p-4, 0x1.e6967ap-4, -0x1.e70486p-4, 0x1.1fe334p-4,
};
static const double poly64[] = {
    0x1.5555555555592p-1, 0x1.999999997ff18p-2, 0x1.24924941e1569p-2, 0x1.c71c52145a5e3p-3,
    0x1.74663cea03cb1p-3, 0x1.39a1e93ba3103p-3, 0x1.2f03b4ee33fd4p-3,
};

struct log_format {
    uint8_t flt, sint, fraction;
    int64_t sqrt_half, fraction_mask; // bit patterns
    double least_normal, scale_log2;
    double ln2_hi, ln2_lo;            // hi has at least 12 trailing zero bits
};
static const struct log_format formats[2] = {
    {DT_f32, DT_i32, 23, 0x3f3504f3, 0x7fffff, 0x1p-126, 24, 0x1.62ep-1, 0x1.0bfbe8p-15},
    {DT_f64, DT_i64, 52, 0x3fe6a09e667f3bcd, 0xfffffffffffff, 0x1p-1022, 54, 0x1.62e42fefa38p-1,
     0x1.ef35793c7673p-45},
};

struct parts {
    val k, f; // as floats
};

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
    if (t->flt == DT_f32)
        return (struct parts){x_cast(x, DT_f32, x_add(x, exponent, more)), f};
    // Few processors convert 64-bit integers: added to the bits of 1.5 * 2^52 it is a float.
    val magic = x_num(x, t->flt, 0x1.8p52);
    val k = x_add(x, x_add(x, exponent, more), x_bitcast(x, t->sint, magic));
    return (struct parts){x_sub(x, x_bitcast(x, t->flt, k), magic), f};
}

// k ln 2 + log(1 + f)
static val
log_small(struct expander *x, const struct log_format *t, struct parts v)
{
    val hi = x_num(x, t->flt, t->ln2_hi), lo = x_num(x, t->flt, t->ln2_lo);
    if (t->flt == DT_f32) {
        val f2 = x_mul(x, v.f, v.f);
        val p = x_poly_by_pairs(x, v.f, f2, poly32, sizeof poly32 / sizeof *poly32);
        val tail = x_fma(x, f2, p, x_mul(x, v.k, lo));
        return x_fma(x, v.k, hi, x_add(x, v.f, tail));
    }
    val d = x_add(x, v.f, x_num(x, t->flt, 2)), y = x_rough_inverse(x, d), q = x_mul(x, v.f, y);
    val s = x_fma(x, x_fma(x, x_neg(x, q), d, v.f), y, q), z = x_mul(x, s, s);
    val p = x_poly_by_pairs(x, z, x_mul(x, z, z), poly64, sizeof poly64 / sizeof *poly64);
    p = x_mul(x, z, p);
    val half = x_mul(x, x_mul(x, v.f, v.f), x_num(x, t->flt, 0.5));
    val tail = x_fma(x, s, x_add(x, half, p), x_mul(x, v.k, lo));
    return x_fma(x, v.k, hi, x_sub(x, v.f, x_sub(x, half, tail)));
}

// Denormals, and what has no logarithm.
static val
log_of_rest(struct expander *x, const struct log_format *t, val a)
{
    val scaled = x_mul(x, a, x_num(x, t->flt, exp2(t->scale_log2)));
    val r = log_small(x, t, split(x, t, scaled, x_num(x, t->sint, -t->scale_log2)));
    r = x_where(x, x_lt(x, a, x_num(x, t->flt, (double)INFINITY)), r, a); // infinity, NaN
    return x_where(x, x_lt(x, a, x_num(x, t->flt, 0)), x_num(x, t->flt, (double)NAN), r);
}

val
expand_log(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t dtype = x_dtype(x, a);
    CHECK(dtype == DT_f32 || dtype == DT_f64, "log takes f32 and f64, not %s", dtype_name(dtype));
    const struct log_format *t = &formats[dtype == DT_f64];
    uint8_t u = dtype == DT_f64 ? DT_u64 : DT_u32;
    val inf = x_num(x, dtype, (double)INFINITY), zero = x_num(x, dtype, 0);
    val least = x_bitcast(x, u, x_num(x, dtype, t->least_normal));
    val place = x_sub(x, x_bitcast(x, u, a), least), last = x_sub(x, x_bitcast(x, u, inf), least);
    val rest = x_and(x, x_op(x, OP_ge, place, last, 0), x_ne(x, a, zero));
    val r = log_small(x, t, split(x, t, a, x_num(x, t->sint, 0)));
    r = x_where(x, x_eq(x, a, zero), x_neg(x, inf), r);
    return x_where_rarely(x, rest, log_of_rest(x, t, a), r);
}

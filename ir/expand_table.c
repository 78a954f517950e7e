// expand_table.c: tanh for f32, and erf, from small constant tables (ir/tables.h).
//
// f32: |x| up to where the function is 1 is cut into 16 pieces by the leading bits of y = first +
// scale |x|, a float: of equal width from one power of two to the next, and wider from there on, as
// the functions flatten. On each it is a polynomial in t = |x| - center, whose coefficients are
// looked up; processors that permute a register of 16 floats by another take one instruction each.
// That is two thirds of the work of a formula good everywhere, which would be expm1 and a quotient
// for tanh, and more accurate: the last step is value + t P(t), t is exact, and so, almost, is the
// value, because of how the centers are chosen. In the piece next to 0 the center is 0. There tanh
// is x P(x), with P(0) = 1; of erf, whose slope is no float, it is x + x P(x).
//
// f64: |x| = n h + d, d exact as h has but 34 bits. erf(x) = e + s d (1 + G), where e = erf(n h) and
// s = erf'(n h) come from a table, and G = sum over i, j of (-2 n h d)^i (-d^2)^j / (i! j! (i + 2 j
// + 1)), less the 1: the series of exp(-2 n h d u - d^2 u^2), integrated over u from 0 to 1. What is
// left out is below 0.3 units in the last place. The step h is one for which the least e are
// doubles, almost; there d is no small part of x, and result and e may lie on either side of a power
// of two.
//
// All tables and coefficients: ir/fit_tables.py.
#include "ir/expand_rules.h"
#include "ir/tables.h"

#include "ir/base/check.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof *(a)))

struct pieces {
    uint32_t table;
    double first, scale, limit;
    uint32_t shift;   // of y's bits: the number of the piece
    double linear_to; // y: up to here the value is |x| itself; 0: nowhere
};
static const struct pieces tanh_pieces = {TABLE_tanh32, 1, 1.625, 9.02, 21, 0};
static const struct pieces erf_pieces = {TABLE_erf32, 1.25, 0.9375, 3.93, 20, 1.375};

static val
by_pieces(struct expander *x, const struct pieces *p, val a)
{
    val size = x_least(x, x_abs(x, a), p->limit);
    val y = x_fma(x, size, x_num(x, DT_f32, p->scale), x_num(x, DT_f32, p->first));
    val index = x_shr(x, x_bitcast(x, DT_i32, y), x_num(x, DT_i32, p->shift));
    val t = x_sub(x, size, x_lookup(x, p->table, index));
    val sum = x_lookup(x, p->table + 1 + PIECE_ORDER, index);
    for (uint32_t i = PIECE_ORDER; i-- > 1;)
        sum = x_fma(x, sum, t, x_lookup(x, p->table + 1 + i, index));
    val value = x_lookup(x, p->table + 1, index);
    if (p->linear_to > 0)
        value = x_where(x, x_lt(x, y, x_num(x, DT_f32, p->linear_to)), size, value);
    return x_copysign(x, x_fma(x, sum, t, value), a);
}

val
x_tanh32(struct expander *x, val a)
{
    return by_pieces(x, &tanh_pieces, a);
}

// The coefficients of d^2j times those of n d.
static const double erf_step = 0x1.7d0570bp-6, erf_limit = 5.93;
static const double erf_terms0[] = {
    -0x1.7d0570bp-6, 0x1.7a10cbb0fafc5p-12, -0x1.195983f2d253fp-18, 0x1.4f002993a4d4dp-25,
    -0x1.4c66e83a9f001p-32, 0x1.1ab4b241e6ee9p-39,
};
static const double erf_terms1[] = {
    -0x1.5555555555555p-2, 0x1.7d0570bp-7, -0x1.c5adc13ac6c86p-13, 0x1.77220543c31a9p-19,
    -0x1.de928489c6e6dp-26,
};
static const double erf_terms2[] = {
    0x1.999999999999ap-4, -0x1.fc0740eaaaaabp-9, 0x1.440e657320460p-14,
};
static const double erf_term3 = -0x1.8618618618618p-6;

static val
erf64(struct expander *x, val a)
{
    val size = x_least(x, x_abs(x, a), erf_limit), magic = x_num(x, DT_f64, 0x1.8p52);
    val place = x_fma(x, size, x_num(x, DT_f64, 1 / erf_step), magic), n = x_sub(x, place, magic);
    val d = x_fma(x, n, x_num(x, DT_f64, -erf_step), size), index = x_bitcast(x, DT_i64, place);
    val e = x_lookup(x, TABLE_erf64, index), s = x_lookup(x, TABLE_erf64 + 1, index);
    val nd = x_mul(x, n, d), d2 = x_mul(x, d, d);
    val sum = x_poly(x, nd, erf_terms2, COUNT(erf_terms2));
    sum = x_fma(x, d2, x_num(x, DT_f64, erf_term3), sum);
    sum = x_fma(x, d2, sum, x_poly(x, nd, erf_terms1, COUNT(erf_terms1)));
    val first = x_mul(x, nd, x_poly(x, nd, erf_terms0, COUNT(erf_terms0)));
    val linear = x_mul(x, s, d), rest = x_fma(x, d2, sum, first);
    return x_copysign(x, x_add(x, e, x_fma(x, linear, rest, linear)), a);
}

val
expand_erf(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t t = x_dtype(x, a);
    CHECK(t == DT_f32 || t == DT_f64, "erf takes f32 and f64, not %s", dtype_name(t));
    return t == DT_f64 ? erf64(x, a) : by_pieces(x, &erf_pieces, a);
}

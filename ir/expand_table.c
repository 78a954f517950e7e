// expand_table.c: tanh and both forms of gelu for f32, and erf, from small constant tables
// (ir/tables.h).
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
// gelu, f32: max(x, 0) - u P(u), u = |x|, where P is what gelu(-u) is of -u, for both forms of gelu
// from a table of their own: of erf and tanh only the product with x counts, so that the error
// below 0, where the product is small, is one of x's last places anyhow. Here the pieces are
// equally wide, but the first, which is half: adding 1.5 2^23 to scale u leaves the number of the
// piece in y's last bits, and P is a polynomial in u itself. The tables have -P. The last piece is
// -0, up to the limit and beyond; so the sign of a result that is 0 is that of x, and infinities do
// no harm.
//
// f64: |x| = n h + d, d exact as h has but 34 bits. erf(x) = e + s d (1 + G), where e = erf(n h)
// and s = erf'(n h) come from a table, and G = sum over i, j of
// (-2 n h d)^i (-d^2)^j / (i! j! (i + 2 j + 1)), less the 1: the series of
// exp(-2 n h d u - d^2 u^2), integrated over u from 0 to 1. What is left out is below 0.3 units in
// the last place. The step h is one for which the least e are doubles, almost; there d is no small
// part of x, and result and e may lie on either side of a power of two.
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

// Pieces of 1 / scale; the limit lies in the last of 16.
struct gate {
    uint32_t table;
    double scale, limit;
};
static const struct gate gelu_gate = {TABLE_gelu32, 0x1.5e304ep+1, 5.4};
static const struct gate gelu_tanh_gate = {TABLE_gelu_tanh32, 0x1.733334p+1, 5.1};

static val
by_gate(struct expander *x, const struct gate *g, val a)
{
    val size = x_size_within(x, a, g->limit), zero = x_num(x, DT_f32, -0.0);
    val y = x_fma(x, size, x_num(x, DT_f32, g->scale), x_num(x, DT_f32, 0x1.8p23));
    val index = x_bitcast(x, DT_i32, y), sum = x_lookup(x, g->table + GELU_ORDER, index);
    for (uint32_t i = GELU_ORDER; i-- > 0;)
        sum = x_fma(x, sum, size, x_lookup(x, g->table + i, index));
    return x_fma(x, size, sum, x_where(x, x_lt(x, a, zero), zero, a));
}

// x (1 + y) / 2; x / 2 y + x / 2 would be +0 where y = -1, and where x = -0.
static val
gated(struct expander *x, val a, val y)
{
    val half = x_num(x, DT_f64, 0.5);
    return x_mul(x, x_most(x, a, -40), x_fma(x, half, y, half));
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

val
expand_gelu(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    if (x_dtype(x, a) != DT_f64)
        return by_gate(x, &gelu_gate, a);
    return gated(x, a, erf64(x, x_mul(x, a, x_num(x, DT_f64, 0.70710678118654752440))));
}

// sqrt(2 / pi) (x + 0.044715 x^3) as x (a + b x^2).
val
expand_gelu_tanh(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    if (x_dtype(x, a) != DT_f64)
        return by_gate(x, &gelu_tanh_gate, a);
    val slope = x_fma(x, x_mul(x, a, a), x_num(x, DT_f64, 0.044715 * 0.79788456080286535588),
                      x_num(x, DT_f64, 0.79788456080286535588));
    return gated(x, a, expand_tanh(x, x_mul(x, a, slope), 0, 0));
}

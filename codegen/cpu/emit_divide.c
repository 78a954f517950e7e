// emit_divide.c: a vector over a number that all its lanes share, without a vector division.
//
// A division of 16 f32 keeps the divider busy for some 10 cycles; with y = 1 / b, once for many,
// three instructions give the same bits:
//
//   q0 = a y,  r = b q0 - a,  q = q0 - r y     (r and q by fused multiply-add)
//
// (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990.
// That q is a / b rounded to nearest also where q0 is not one of its two neighbours has been
// checked for every f32 mantissa b and all a whose quotient is near a midpoint; a test repeats a
// part of it.) r must be exact: b between 2^-27 and 2^27 and |a| from 2^-98 to below 2^98 leave
// room on all sides, and zeros come out right with b > 0. One unsigned comparison of a's bits,
// doubled to drop the sign and shifted, finds what is too large, infinite, NaN, too small or zero;
// then zeros are let through, and whatever is left is divided.
#include "codegen/cpu/emit_parts.h"

#include <string.h>

enum { EXPONENT_ONE = 127, RANGE = 98, RANGE_SHARED = 27 };

static uint32_t
twice_bits_of_power(int exponent)
{
    return (uint32_t)(EXPONENT_ONE + exponent) << 24;
}

static const char *
power(struct emitter *e, int exponent)
{
    return emit_constant(e, DT_f32, twice_bits_of_power(exponent) >> 1, 1);
}

bool
emit_divides_by_shared(const struct emitter *e, const struct emit_scope *s, const struct inst *in)
{
    return in->op == OP_div && in->dtype == DT_f32 && varies(e, s, e->depends[in->a]) &&
           !varies(e, s, e->depends[in->b]) && strstr(e->target->features, "+fma");
}

static const char *
any_lane(struct emitter *e, uint32_t n, const char *mask)
{
    return emit_op(e, "call i1 @llvm.vector.reduce.or.v%ui1(<%u x i1> %s)", n, n, mask);
}

// What depends on b alone; loops do not compute it again.
struct shared_divisor {
    const char *all, *inverse;    // <n x float>
    const char *above, *not_zero; // <n x i32>: limits of the two comparisons
};

static struct shared_divisor
shared_divisor(struct emitter *e, uint32_t n, const char *b)
{
    uint32_t limit = twice_bits_of_power(-RANGE) - twice_bits_of_power(RANGE);
    const char *one = emit_extract(e, DT_f32, b, n, 0, 1);
    const char *y = emit_op(e, "fdiv <1 x float> splat (float 1.0), %s", one);
    const char *low = emit_op(e, "fcmp oge <1 x float> %s, %s", one, power(e, -RANGE_SHARED));
    const char *high = emit_op(e, "fcmp ole <1 x float> %s, %s", one, power(e, RANGE_SHARED));
    const char *fits = emit_and_mask(e, 1, low, high);
    const char *above = emit_op(e, "select <1 x i1> %s, <1 x i32> splat (i32 %d), "
                                   "<1 x i32> splat (i32 -1)", fits, (int)limit);
    const char *least = emit_op(e, "zext <1 x i1> %s to <1 x i32>", fits);
    return (struct shared_divisor){b, emit_splat(e, DT_f32, y, n), emit_splat(e, DT_i32, above, n),
                                   emit_splat(e, DT_i32, least, n)};
}

static const char *
multiply_add(struct emitter *e, uint32_t n, const char *a, const char *b, const char *c)
{
    return emit_row(e, OP_fma, DT_f32, n, a, b, c);
}

static const char *
quotient(struct emitter *e, uint32_t n, const char *a, struct shared_divisor d)
{
    const char *q = emit_op(e, "fmul <%u x float> %s, %s", n, a, d.inverse);
    const char *minus = emit_op(e, "fneg <%u x float> %s", n, a);
    const char *r = multiply_add(e, n, d.all, q, minus);
    return multiply_add(e, n, emit_op(e, "fneg <%u x float> %s", n, r), d.inverse, q);
}

const char *
emit_divide_by_shared(struct emitter *e, uint32_t n, const char *a, const char *b)
{
    struct shared_divisor d = shared_divisor(e, n, b);
    const char *q = quotient(e, n, a, d);
    const char *bits = emit_op(e, "bitcast <%u x float> %s to <%u x i32>", n, a, n);
    const char *twice = emit_op(e, "shl <%u x i32> %s, splat (i32 1)", n, bits);
    const char *shifted = emit_op(e, "sub <%u x i32> %s, splat (i32 %d)", n, twice,
                                  (int)twice_bits_of_power(RANGE));
    const char *odd = emit_op(e, "icmp ult <%u x i32> %s, %s", n, shifted, d.above);
    const char *some = emit_label(e, "odd"), *slow = emit_label(e, "divide");
    const char *end = emit_label(e, "quotient"), *from = e->block;
    emit_rarely(e, any_lane(e, n, odd), some, end);
    emit_place(e, some);
    const char *value = emit_op(e, "icmp uge <%u x i32> %s, %s", n, twice, d.not_zero);
    emit_rarely(e, any_lane(e, n, emit_and_mask(e, n, odd, value)), slow, end);
    emit_place(e, slow);
    const char *divided = emit_row(e, OP_div, DT_f32, n, a, b, NULL);
    emit_jump(e, end);
    emit_place(e, end);
    return emit_op(e, "phi <%u x float> [ %s, %%%s ], [ %s, %%%s ], [ %s, %%%s ]", n, q, from, q,
                   some, divided, slow);
}

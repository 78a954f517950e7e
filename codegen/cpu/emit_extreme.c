// emit_extreme.c: max and min of floats: NaN wins, -0 is below +0.
//
// llvm.maximum takes six instructions on x86, whose own max (a > b ? a : b) gives b where either is
// NaN or both are zeros. Taken both ways round, the two results differ in those cases only. min is
// their bitwise or: of two zeros -0, of NaN and anything NaN. max wants the sign's and instead: the
// bitwise majority of both and of a mask without the sign.
// AVX-512 has vrange, which orders zeros and takes the number where one operand is NaN: three
// instructions, for a compare for NaN and a select. Left to the rest is every type it has no vector
// of. It also limits a size, |a|, in one instruction.
// A literal that is no NaN needs only one way round, literal first, so that the other operand's NaN
// comes through; where it is the zero that should win over the other zero, adding +0 sees to that
// for max.
#include "codegen/cpu/emit_parts.h"

#include <math.h>
#include <string.h>

// a where it is beyond b, else b.
static const char *
beyond(struct emitter *e, bool max, const char *type, uint32_t lanes, const char *a, const char *b)
{
    const char *c = emit_op(e, "fcmp %s %s %s, %s", max ? "ogt" : "olt", type, a, b);
    return emit_op(e, "select <%u x i1> %s, %s %s, %s %s", lanes, c, type, a, type, b);
}

static const char *
both_ways(struct emitter *e, bool max, uint8_t dtype, uint32_t lanes, const char *a, const char *b)
{
    uint8_t sint = dtype == DT_f64 ? DT_i64 : DT_i32;
    const char *type = emit_type(e, dtype, lanes), *bits = emit_type(e, sint, lanes);
    const char *x = beyond(e, max, type, lanes, a, b), *y = beyond(e, max, type, lanes, b, a);
    x = emit_op(e, "bitcast %s %s to %s", type, x, bits);
    y = emit_op(e, "bitcast %s %s to %s", type, y, bits);
    const char *r = emit_op(e, "or %s %s, %s", bits, x, y);
    if (max) {
        uint64_t size = dtype == DT_f64 ? INT64_MAX : INT32_MAX;
        r = emit_op(e, "and %s %s, %s", bits, r, emit_constant(e, sint, size, lanes));
        r = emit_op(e, "or %s %s, %s", bits, r, emit_op(e, "and %s %s, %s", bits, x, y));
    }
    return emit_op(e, "bitcast %s %s to %s", bits, r, type);
}

// What vrange does: the result's sign is its own, or cleared.
enum range { RANGE_MIN = 4, RANGE_MAX = 5, RANGE_LEAST_SIZE = 10 };

// NULL: the target has no such instruction for n lanes.
static const char *
range(struct emitter *e, enum range how, uint8_t dtype, uint32_t lanes, const char *a,
      const char *b)
{
    uint32_t bytes = lanes * dtype_size(dtype);
    const char *features = e->target->features;
    if ((bytes != 64 && bytes != 32 && bytes != 16) || !strstr(features, "+avx512dq") ||
        !strstr(features, "+avx512vl"))
        return NULL;
    const char *type = emit_type(e, dtype, lanes);
    return emit_op(e, "call %s @llvm.x86.avx512.mask.range.p%s.%u(%s %s, %s %s, i32 %d, %s poison, "
                      "i%u -1%s)",
                   type, dtype == DT_f64 ? "d" : "s", 8 * bytes, type, a, type, b, how, type,
                   lanes < 8 ? 8 : lanes, bytes == 64 ? ", i32 4" : "");
}

static const char *
by_range(struct emitter *e, bool max, uint8_t dtype, uint32_t lanes, const char *a, const char *b)
{
    const char *type = emit_type(e, dtype, lanes);
    const char *r = range(e, max ? RANGE_MAX : RANGE_MIN, dtype, lanes, a, b);
    if (!r)
        return NULL;
    const char *odd = emit_op(e, "fcmp uno %s %s, %s", type, a, b);
    uint64_t nan = dtype == DT_f64 ? 0x7ff8000000000000u : 0x7fc00000u;
    return emit_op(e, "select <%u x i1> %s, %s %s, %s %s", lanes, odd, type,
                   emit_constant(e, dtype, nan, lanes), type, r);
}

const char *
emit_extreme(struct emitter *e, bool max, uint8_t dtype, uint32_t lanes, const char *a,
             const char *b, const struct inst *literal)
{
    double c = literal ? scalar_to_double(dtype, literal->bits) : (double)NAN;
    if (isnan(c) || (c == 0 && !max && signbit(c))) {
        const char *r = by_range(e, max, dtype, lanes, a, b);
        return r ? r : both_ways(e, max, dtype, lanes, a, b);
    }
    const char *type = emit_type(e, dtype, lanes), *r = beyond(e, max, type, lanes, b, a);
    return c == 0 && max && !signbit(c) ? emit_op(e, "fadd %s %s, zeroinitializer", type, r) : r;
}

// where(|a| < literal, |a|, literal), with the literal also for NaN.
const char *
emit_size_within(struct emitter *e, const struct emit_scope *s, const struct inst *in)
{
    const struct inst *at = e->kernel.inst.at, *test = &at[in->a], *size = &at[in->b];
    bool within = in->op == OP_where && dtype_is_float(in->dtype) && at[in->c].op == OP_literal &&
                  test->op == OP_lt && test->a == in->b && test->b == in->c && size->op == OP_abs;
    const char *a = s->value[size->a]; // unknown here where the size was hoisted
    if (!within || !a || !(scalar_to_double(in->dtype, at[in->c].bits) >= 0))
        return NULL;
    return range(e, RANGE_LEAST_SIZE, in->dtype, s->lanes, a, s->value[in->c]);
}

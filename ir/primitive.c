// primitive.c: one instruction on scalars, bit for bit what generated code computes.
//
// The meaning of a row is its F or I expression in ops.def. Exact rows compute in their dtype (f16
// and bf16 in f32): every step rounds as the generated instruction does. Inexact rows compute in
// the next wider type, f64 in long double and the others in double, and round once: what the graph
// interpreter calls right; generated code has them expanded (expand.h). libm's double functions are
// no reference for f64: tanh is off by two units in the last place, log10 by as much. Its long
// double ones are off by 5 at most (glibc's manual, "Known Maximum Errors"), of a place that is
// 1/2048 of a double's.
// Integers are computed in 64 bits, sign- or zero-extended, and wrapped to the dtype.
#include "ir/base/check.h"
#include "ir/base/half.h"
#include "ir/expand.h"
#include "ir/opmath.h"
#include "ir/philox.h"
#include "ir/tables.h"

#include <assert.h>
#include <float.h>
#include <string.h>

static_assert(LDBL_MANT_DIG >= DBL_MANT_DIG + 11, "inexact rows of f64 need a wider type");

static _Noreturn void
no_meaning(uint16_t op, const char *kind)
{
    CHECK(false, "%s has no meaning for %s as one instruction", op_name(op), kind);
    __builtin_unreachable();
}

#define NA (no_meaning(op, kind), 0)

static double
eval_float(uint16_t op, double a, double b, double c)
{
    static const char kind[] = "floats";
#define fn(f) f
    switch (op) {
#define OP(name, F, I, ...)                                                                        \
    case OP_##name:                                                                                \
        return (double)(F);
#include "ir/ops.def"
#undef OP
    }
#undef fn
    no_meaning(op, kind);
}

static float
eval_float32(uint16_t op, float a, float b, float c)
{
    static const char kind[] = "floats";
#define fn(x) x##f
    switch (op) {
#define OP(name, F, I, ...)                                                                        \
    case OP_##name:                                                                                \
        return (float)(F);
#include "ir/ops.def"
#undef OP
    }
#undef fn
    no_meaning(op, kind);
}

static double
eval_wide(uint16_t op, long double a, long double b, long double c)
{
    static const char kind[] = "floats";
#define fn(f) f##l
    switch (op) {
#define OP(name, F, I, ...)                                                                        \
    case OP_##name:                                                                                \
        return (double)(F);
#include "ir/ops.def"
#undef OP
    }
#undef fn
    no_meaning(op, kind);
}

#define N int64_t
#define U(x) ((uint64_t)(x))
static int64_t
eval_signed(uint16_t op, unsigned W, int64_t a, int64_t b, int64_t c)
{
    static const char kind[] = "signed integers";
    switch (op) {
#define OP(name, F, I, ...)                                                                        \
    case OP_##name:                                                                                \
        return I;
#include "ir/ops.def"
#undef OP
    }
    no_meaning(op, kind);
}
#undef N

#define N uint64_t
static uint64_t
eval_unsigned(uint16_t op, unsigned W, uint64_t a, uint64_t b, uint64_t c)
{
    static const char kind[] = "unsigned integers and bool";
    switch (op) {
#define OP(name, F, I, ...)                                                                        \
    case OP_##name:                                                                                \
        return I;
#include "ir/ops.def"
#undef OP
    }
    no_meaning(op, kind);
}
#undef N
#undef U
#undef NA

static bool
gives_bool(uint16_t op)
{
    uint8_t rule = op_table[op].rule;
    return rule == DTR_COMPARE || rule == DTR_PREDICATE || op == OP_unordered_raw;
}

// From 64 bits to bf16 in one rounding: the bits that f64 cannot hold become one sticky bit, far
// below bf16's last.
static uint64_t
unsigned_to_float(uint8_t to, uint64_t x)
{
    if (to == DT_f32)
        return scalar_from_double(DT_f32, (double)(float)x);
    if (to == DT_bf16 && x >> 53)
        x = (x & ~0x1fffull) | (x & 0x1fff ? 0x1000 : 0);
    return scalar_from_double(to, (double)x);
}

static uint64_t
eval_cast(uint8_t from, uint8_t to, uint64_t bits)
{
    if (dtype_is_float(from))
        return scalar_from_double(to, scalar_to_double(from, bits));
    if (dtype_is_float(to) && dtype_table[from].kind == DTK_UINT)
        return unsigned_to_float(to, bits);
    return scalar_from_int(to, scalar_to_int(from, bits));
}

static uint64_t
eval_floats(uint16_t op, uint8_t d, uint64_t a, uint64_t b, uint64_t c)
{
    double x = scalar_to_double(d, a), y = scalar_to_double(d, b), z = scalar_to_double(d, c);
    bool exact = op_table[op].flags & OPF_EXACT;
    double r = exact && d == DT_f32    ? (double)eval_float32(op, (float)x, (float)y, (float)z)
               : !exact && d == DT_f64 ? eval_wide(op, x, y, z)
                                       : eval_float(op, x, y, z);
    return gives_bool(op) ? r != 0 : scalar_from_double(d, r);
}

uint64_t
eval_primitive(uint16_t op, uint8_t dtype, uint8_t to, uint64_t a, uint64_t b, uint64_t c)
{
    if (op == OP_where)
        return a ? b : c;
    if (op == OP_bitcast)
        return a;
    if (op == OP_philox)
        return philox_element(a, b, c, dtype_table[to].bits);
    if (op == OP_lookup)
        return table_entry(b, a);
    if (op == OP_cast)
        return eval_cast(dtype, to, a);
    const struct dtype_info *d = &dtype_table[dtype];
    if (d->kind == DTK_FLOAT && d->bits < 32 && op_table[op].flags & OPF_EXACT) {
        uint64_t r = eval_floats(op, DT_f32, eval_cast(dtype, DT_f32, a),
                                 eval_cast(dtype, DT_f32, b), eval_cast(dtype, DT_f32, c));
        return gives_bool(op) ? r : eval_cast(DT_f32, dtype, r);
    }
    if (d->kind == DTK_FLOAT)
        return eval_floats(op, dtype, a, b, c);
    bool wrap = !gives_bool(op);
    if (d->kind == DTK_SINT) {
        int64_t r = eval_signed(op, d->bits, scalar_to_int(dtype, a), scalar_to_int(dtype, b),
                                scalar_to_int(dtype, c));
        return wrap ? scalar_from_int(dtype, r) : r != 0;
    }
    uint64_t r = eval_unsigned(op, d->kind == DTK_BOOL ? 1 : d->bits, a, b, c);
    return wrap ? scalar_from_int(dtype, (int64_t)r) : r != 0;
}

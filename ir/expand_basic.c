// expand_basic.c: the ops with awkward corners: sign, classification, shifts by any amount, clamp,
// integer fma, and the conversions of the 16-bit floats.
//
// Shifts: the raw rows want 0 <= b < width. An unsigned comparison finds both a negative and a too
// large b; the amount is masked, so that the instruction is defined even where its result is not
// used, and the answer is chosen afterwards.
//
// f16 and bf16 are reached from f32 only, so that a back end converts between two pairs of types.
// A wider value is first rounded to odd in f32 (if bits are lost, the last bit kept is 1), which
// makes the second rounding exact (Boldo, Melquiond: "Emulation of FMA and correctly rounded sums:
// proved algorithms using rounding to odd", IEEE TC 2008). 64-bit integers beyond 2^53 first put a
// sticky bit far below what bf16 keeps.
#include "ir/expand_rules.h"

#include <math.h>

static bool
is_signed(uint8_t dtype)
{
    return dtype_table[dtype].kind == DTK_SINT;
}

// The unsigned integer type of the same size.
static uint8_t
unsigned_of(uint8_t dtype)
{
    static const uint8_t of[] = {[8] = DT_u8, [16] = DT_u16, [32] = DT_u32, [64] = DT_u64};
    return of[dtype_table[dtype].bits];
}

val
expand_sign(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    uint8_t t = x_dtype(x, a);
    val zero = x_num(x, t, 0), one = x_num(x, t, 1), rest = a;
    if (dtype_is_float(t))
        rest = x_add(x, a, zero); // -0 becomes +0, NaN stays
    if (dtype_table[t].kind != DTK_UINT)
        rest = x_where(x, x_lt(x, a, zero), x_num(x, t, -1), rest);
    return x_where(x, x_lt(x, zero, a), one, rest);
}

val
expand_rsqrt(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return x_div(x, x_num(x, x_dtype(x, a), 1), x_op(x, OP_sqrt, a, 0, 0));
}

val
expand_reciprocal(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    return x_div(x, x_num(x, x_dtype(x, a), 1), a);
}

val
expand_isnan(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    if (!dtype_is_float(x_dtype(x, a)))
        return x_bits(x, DT_bool, false);
    return x_op(x, OP_unordered_raw, a, a, 0);
}

val
expand_isinf(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    if (!dtype_is_float(x_dtype(x, a)))
        return x_bits(x, DT_bool, false);
    return x_eq(x, x_abs(x, a), x_num(x, x_dtype(x, a), (double)INFINITY));
}

val
expand_isfinite(struct expander *x, val a, val b, val c)
{
    (void)b, (void)c;
    if (!dtype_is_float(x_dtype(x, a)))
        return x_bits(x, DT_bool, true);
    return x_lt(x, x_abs(x, a), x_num(x, x_dtype(x, a), (double)INFINITY));
}

static val
shift_in_range(struct expander *x, val b)
{
    uint8_t u = unsigned_of(x_dtype(x, b));
    return x_lt(x, x_bitcast(x, u, b), x_num(x, u, dtype_table[u].bits));
}

val
expand_shl(struct expander *x, val a, val b, val c)
{
    (void)c;
    uint8_t t = x_dtype(x, a);
    val amount = x_and(x, b, x_num(x, t, dtype_table[t].bits - 1));
    return x_where(x, shift_in_range(x, b), x_shl(x, a, amount), x_num(x, t, 0));
}

val
expand_shr(struct expander *x, val a, val b, val c)
{
    (void)c;
    uint8_t t = x_dtype(x, a);
    val last = x_num(x, t, dtype_table[t].bits - 1);
    if (is_signed(t))
        return x_shr(x, a, x_where(x, shift_in_range(x, b), b, last));
    return x_where(x, shift_in_range(x, b), x_shr(x, a, x_and(x, b, last)), x_num(x, t, 0));
}

// The sign bit of a NaN depends on who computed it (x86 sets it, CUDA does not).
val
expand_copysign(struct expander *x, val a, val b, val c)
{
    (void)c;
    val zero = x_num(x, x_dtype(x, b), 0);
    return x_copysign(x, a, x_where(x, x_eq(x, b, b), b, zero));
}

val
expand_clamp(struct expander *x, val a, val b, val c)
{
    return x_op(x, OP_min, x_op(x, OP_max, a, b, 0), c, 0);
}

val
expand_fma(struct expander *x, val a, val b, val c)
{
    return dtype_is_float(x_dtype(x, a)) ? x_fma(x, a, b, c) : x_add(x, x_mul(x, a, b), c);
}

// f64 to f32, rounded to odd: where the nearest f32 is not the value itself and its last bit is 0,
// its neighbour on the value's side has a last bit of 1. NaN and infinities are left alone.
static val
round_to_odd(struct expander *x, val a)
{
    val near = x_cast(x, DT_f32, a), bits = x_bitcast(x, DT_i32, near);
    val size = x_abs(x, a), near_size = x_abs(x, x_cast(x, DT_f64, near));
    val one = x_num(x, DT_i32, 1), zero = x_num(x, DT_i32, 0);
    val step = x_where(x, x_lt(x, near_size, size), one,
                       x_where(x, x_lt(x, size, near_size), x_num(x, DT_i32, -1), zero));
    val even = x_eq(x, x_and(x, bits, one), zero);
    return x_bitcast(x, DT_f32, x_add(x, bits, x_where(x, even, step, zero)));
}

static val
sticky(struct expander *x, val a)
{
    uint8_t t = x_dtype(x, a);
    val zero = x_num(x, t, 0), size = is_signed(t) ? x_bitcast(x, DT_u64, x_abs(x, a)) : a;
    val lost = x_ne(x, x_and(x, a, x_bits(x, t, 0x1fff)), zero);
    val kept = x_and(x, a, x_bits(x, t, ~0x1fffull));
    val marked = x_or(x, kept, x_where(x, lost, x_bits(x, t, 0x1000), zero));
    return x_where(x, x_lt(x, size, x_bits(x, DT_u64, 1ull << 53)), a, marked);
}

val
expand_cast(struct expander *x, uint8_t to, val a)
{
    uint8_t from = x_dtype(x, a);
    if (dtype_is_half(from) && to != DT_f32) {
        a = x_cast(x, DT_f32, a);
        from = DT_f32;
    }
    if ((to != DT_f16 && to != DT_bf16) || from == DT_f32)
        return x_cast(x, to, a);
    // Integers up to f16's bound of 65520 are exact in f32; so are those of 16 bits, for bf16.
    if (from != DT_f64 && (to == DT_f16 || dtype_table[from].bits <= 16))
        return x_cast(x, to, x_cast(x, DT_f32, a));
    if (from != DT_f64 && dtype_table[from].bits == 64)
        a = sticky(x, a);
    return x_cast(x, to, round_to_odd(x, x_cast(x, DT_f64, a)));
}

// emit_cast.c: conversions between all dtypes, with the meaning of ir/ops.def: float to int
// truncates and saturates, NaN to 0; int to int wraps; anything to bool is != 0; narrowing floats
// round once to nearest even.
//
// f16 and bf16 are bit patterns here. bf16 is rounded with integer arithmetic: the hardware's
// conversions flush denormals. NaN is put aside there, as a carry could make a number of it; one
// whose low half is zero carries nothing. f16 uses the target's F16C when it has it, else integers
// and one exact multiplication or addition that lets the float unit do the shifting.
// Where the source has more bits than an f32 (f64, 64-bit integers), it is first rounded to odd at
// an intermediate width, which makes the second rounding exact (Boldo, Melquiond, "Emulation of a
// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
#include "codegen/cpu/emit_parts.h"

#include <string.h>

// One conversion under way.
struct cast {
    struct emitter *e;
    uint32_t n; // lanes
    const char *f32, *f64, *i16, *i32, *i64, *i1; // vector types
};

static struct cast
cast_of(struct emitter *e, uint32_t n)
{
    return (struct cast){
        .e = e, .n = n, .f32 = emit_type(e, DT_f32, n), .f64 = emit_type(e, DT_f64, n),
        .i16 = emit_type(e, DT_i16, n), .i32 = emit_type(e, DT_i32, n),
        .i64 = emit_type(e, DT_i64, n), .i1 = emit_type(e, DT_bool, n)};
}

static const char *
convert(struct cast *c, const char *how, const char *from, const char *v, const char *to)
{
    return emit_op(c->e, "%s %s %s to %s", how, from, v, to);
}

// Integer arithmetic on i32 lanes with a constant.
static const char *
with(struct cast *c, const char *op, const char *v, uint32_t k)
{
    return emit_op(c->e, "%s %s %s, splat (i32 %d)", op, c->i32, v, (int)k);
}

static const char *
two(struct cast *c, const char *op, const char *type, const char *a, const char *b)
{
    return emit_op(c->e, "%s %s %s, %s", op, type, a, b);
}

static const char *
pick(struct cast *c, const char *type, const char *cond, const char *yes, const char *no)
{
    return emit_op(c->e, "select %s %s, %s %s, %s %s", c->i1, cond, type, yes, type, no);
}

static const char *
bits_of(struct cast *c, const char *v) // f32 → i32
{
    return convert(c, "bitcast", c->f32, v, c->i32);
}

static const char *
float_of(struct cast *c, const char *v) // i32 → f32
{
    return convert(c, "bitcast", c->i32, v, c->f32);
}

static bool
has_f16c(const struct emitter *e)
{
    return strstr(e->target->features, "+f16c") != NULL;
}

// ---- f16 and bf16 to f32

static const char *
widen_bf16(struct cast *c, const char *v)
{
    return float_of(c, with(c, "shl", convert(c, "zext", c->i16, v, c->i32), 16));
}

static const char *
widen_f16(struct cast *c, const char *v)
{
    if (has_f16c(c->e)) {
        const char *half = emit_text(c->e, "<%u x half>", c->n);
        return convert(c, "fpext", half, convert(c, "bitcast", c->i16, v, half), c->f32);
    }
    const char *h = convert(c, "zext", c->i16, v, c->i32);
    const char *sign = with(c, "shl", with(c, "and", h, 0x8000), 16);
    const char *mag = with(c, "shl", with(c, "and", h, 0x7fff), 13);
    // Moved into f32's fields the exponent is 112 too small, for denormals as well.
    const char *f = emit_op(c->e, "fmul %s %s, splat (float 0x46F0000000000000)", c->f32,
                            float_of(c, mag));
    const char *top = with(c, "icmp uge", mag, 0x0f800000); // infinity or NaN
    const char *r = pick(c, c->i32, top, with(c, "or", mag, 0x7f800000), bits_of(c, f));
    return float_of(c, two(c, "or", c->i32, r, sign));
}

// ---- f32 to f16 and bf16

static const char *
narrow_bf16(struct cast *c, const char *v, enum emit_low_half low)
{
    const char *u = bits_of(c, v);
    const char *odd = with(c, "and", with(c, "lshr", u, 16), 1);
    const char *r = two(c, "add", c->i32, with(c, "add", u, 0x7fff), odd);
    if (low == LOW_ANY) {
        const char *nan = two(c, "fcmp uno", c->f32, v, "zeroinitializer");
        r = pick(c, c->i32, nan, with(c, "or", u, 0x400000), r);
    }
    return convert(c, "trunc", c->i32, with(c, "lshr", r, 16), c->i16);
}

static const char *
narrow_f16(struct cast *c, const char *v)
{
    if (has_f16c(c->e)) {
        const char *half = emit_text(c->e, "<%u x half>", c->n);
        return convert(c, "bitcast", half, convert(c, "fptrunc", c->f32, v, half), c->i16);
    }
    const char *u = bits_of(c, v);
    const char *sign = with(c, "and", u, 0x80000000u), *mag = with(c, "and", u, 0x7fffffff);
    // Denormal results: adding 0.5 leaves them in the low bits, rounded by the addition.
    const char *half = emit_op(c->e, "fadd %s %s, splat (float 5.0e-01)", c->f32, float_of(c, mag));
    const char *low = with(c, "sub", bits_of(c, half), 0x3f000000);
    const char *odd = with(c, "and", with(c, "lshr", mag, 13), 1);
    const char *mid = with(c, "add", mag, 0xfff - (112u << 23));
    mid = with(c, "lshr", two(c, "add", c->i32, mid, odd), 13);
    const char *r = pick(c, c->i32, with(c, "icmp ult", mag, 113u << 23), low, mid);
    const char *nan = with(c, "icmp ugt", mag, 0x7f800000);
    const char *big = pick(c, c->i32, nan, "splat (i32 32256)", "splat (i32 31744)");
    r = pick(c, c->i32, with(c, "icmp uge", mag, (127u + 16) << 23), big, r);
    r = two(c, "or", c->i32, r, with(c, "lshr", sign, 16));
    return convert(c, "trunc", c->i32, r, c->i16);
}

// ---- rounding to odd

// f64 → f32: truncated, with the last bit set when anything was lost.
static const char *
f64_to_odd_f32(struct cast *c, const char *v)
{
    const char *near = convert(c, "fptrunc", c->f64, v, c->f32);
    const char *back = convert(c, "fpext", c->f32, near, c->f64);
    const char *abs = emit_op(c->e, "call %s @llvm.fabs.v%uf64(%s %s)", c->f64, c->n, c->f64, v);
    const char *aback =
        emit_op(c->e, "call %s @llvm.fabs.v%uf64(%s %s)", c->f64, c->n, c->f64, back);
    const char *lost = two(c, "fcmp one", c->f64, back, v);
    const char *over = two(c, "fcmp ogt", c->f64, aback, abs);
    const char *u = bits_of(c, near);
    const char *cut = two(c, "sub", c->i32, u, convert(c, "zext", c->i1, over, c->i32));
    return float_of(c, pick(c, c->i32, lost, with(c, "or", cut, 1), u));
}

// 64-bit integers → f64 without losing what a rounding to 8 bits needs: where the magnitude exceeds
// 2^24, the 15 low bits become one sticky bit.
static const char *
int_to_f64(struct cast *c, uint8_t from, const char *v)
{
    bool is_signed = dtype_table[from].kind == DTK_SINT;
    const char *how = is_signed ? "sitofp" : "uitofp", *type = emit_type(c->e, from, c->n);
    if (dtype_table[from].bits < 64)
        return convert(c, how, type, v, c->f64);
    const char *low = emit_op(c->e, "and %s %s, splat (i64 32767)", type, v);
    const char *high = emit_op(c->e, "and %s %s, splat (i64 -32768)", type, v);
    const char *some = two(c, "icmp ne", type, low, "zeroinitializer");
    const char *sticky = emit_op(c->e, "shl %s %s, splat (i64 14)", type,
                                 convert(c, "zext", c->i1, some, type));
    const char *far = two(c, "or", type, high, sticky);
    const char *moved = emit_op(c->e, "add %s %s, splat (i64 16777216)", type, v);
    const char *near = is_signed
                           ? emit_op(c->e, "icmp ult %s %s, splat (i64 33554432)", type, moved)
                           : emit_op(c->e, "icmp ult %s %s, splat (i64 16777216)", type, v);
    return convert(c, how, type, pick(c, type, near, v, far), c->f64);
}

// ---- the table of pairs

static const char *
to_bool(struct cast *c, uint8_t from, const char *v)
{
    const char *type = emit_type(c->e, from, c->n);
    if (dtype_is_half(from)) {
        v = emit_op(c->e, "and %s %s, splat (i16 32767)", type, v);
        return two(c, "icmp ne", type, v, "zeroinitializer");
    }
    return two(c, dtype_is_float(from) ? "fcmp une" : "icmp ne", type, v, "zeroinitializer");
}

static const char *
to_half(struct cast *c, uint8_t from, uint8_t to, const char *v, enum emit_low_half low)
{
    if (from == DT_bool)
        return pick(c, c->i16, v, emit_constant(c->e, DT_i16, scalar_from_int(to, 1), c->n),
                    "zeroinitializer");
    if (dtype_is_int(from) && (to == DT_f16 || dtype_table[from].bits <= 16))
        // Exact, or beyond f16's range either way.
        v = emit_cast(c->e, from, DT_f32, c->n, v, LOW_ANY);
    else if (dtype_is_int(from))
        v = f64_to_odd_f32(c, int_to_f64(c, from, v));
    else if (from == DT_f64)
        v = f64_to_odd_f32(c, v);
    else if (from != DT_f32)
        v = emit_cast(c->e, from, DT_f32, c->n, v, LOW_ANY);
    if (to == DT_f16)
        return narrow_f16(c, v);
    return narrow_bf16(c, v, from == DT_f32 ? low : LOW_ANY);
}

static const char *
float_to_int(struct cast *c, uint8_t from, uint8_t to, const char *v)
{
    char s = dtype_table[to].kind == DTK_SINT ? 's' : 'u';
    uint32_t wi = dtype_table[to].bits, wf = dtype_table[from].bits;
    const char *ti = emit_type(c->e, to, c->n), *tf = emit_type(c->e, from, c->n);
    return emit_op(c->e, "call %s @llvm.fpto%ci.sat.v%ui%u.v%uf%u(%s %s)", ti, s, c->n, wi, c->n,
                   wf, tf, v);
}

static const char *
int_to_int(struct cast *c, uint8_t from, uint8_t to, const char *v)
{
    uint32_t a = from == DT_bool ? 1 : dtype_table[from].bits, b = dtype_table[to].bits;
    if (a == b)
        return v;
    const char *how = a > b ? "trunc" : dtype_table[from].kind == DTK_SINT ? "sext" : "zext";
    return convert(c, how, emit_type(c->e, from, c->n), v, emit_type(c->e, to, c->n));
}

const char *
emit_cast(struct emitter *e, uint8_t from, uint8_t to, uint32_t lanes, const char *v,
          enum emit_low_half low)
{
    struct cast c = cast_of(e, lanes);
    if (from == to)
        return v;
    if (to == DT_bool)
        return to_bool(&c, from, v);
    if (dtype_is_half(to))
        return to_half(&c, from, to, v, low);
    if (dtype_is_half(from)) {
        v = from == DT_f16 ? widen_f16(&c, v) : widen_bf16(&c, v);
        return emit_cast(e, DT_f32, to, lanes, v, LOW_ANY);
    }
    const char *tf = emit_type(e, from, lanes), *tt = emit_type(e, to, lanes);
    if (dtype_is_float(to)) {
        if (dtype_is_float(from))
            return convert(&c, to == DT_f64 ? "fpext" : "fptrunc", tf, v, tt);
        return convert(&c, dtype_table[from].kind == DTK_SINT ? "sitofp" : "uitofp", tf, v, tt);
    }
    return dtype_is_float(from) ? float_to_int(&c, from, to, v) : int_to_int(&c, from, to, v);
}

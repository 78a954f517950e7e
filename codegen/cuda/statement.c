// statement.c: single instructions of a body as statements of CUDA C.
//
// Constants are bit patterns, so that nothing depends on how numbers are printed or read; the least
// i64 has no literal of its own. Arithmetic of integers is done unsigned, where it wraps, at 32
// bits at least, where C does not promote it to something signed. Conversions have the meaning of
// ir/ops.def: float to int truncates and saturates, NaN to 0; anything to bool is != 0; narrowing
// floats round once.
#include "codegen/cuda/cuda.h"

#include "ir/base/check.h"
#include "ir/tables.h"

#include <stdio.h>

const char *
cuda_type(uint8_t dtype)
{
    switch (dtype) {
    case DT_f64:
        return "double";
    case DT_f32:
        return "float";
    case DT_f16:
    case DT_bf16:
        return "u16";
    default: // integers and bool are called as we call them
        return dtype_name(dtype);
    }
}

static void
literal(uint8_t dtype, uint64_t bits, struct str *out)
{
    unsigned long long b = bits;
    switch (dtype) {
    case DT_f64:
        str_printf(out, "__longlong_as_double((i64)0x%llxull)", b);
        break;
    case DT_f32:
        str_printf(out, "__uint_as_float(0x%llxu)", b);
        break;
    case DT_bool:
        str_add(out, b ? "true" : "false");
        break;
    default:
        str_printf(out, "(%s)0x%llxull", cuda_type(dtype), b);
    }
}

// The unsigned type that integers of a dtype compute in.
static const char *
work_type(uint8_t dtype)
{
    return dtype_table[dtype].bits == 64 ? "u64" : "u32";
}

static const char *
template_of(uint16_t op, uint8_t dtype)
{
    const struct op_info *o = &op_table[op];
    switch (dtype_table[dtype].kind) {
    case DTK_FLOAT:
        return dtype_is_half(dtype) && op != OP_where ? NULL : o->cuda_f;
    case DTK_BOOL:
        return o->cuda_b;
    default:
        return o->cuda_i;
    }
}

static void
fill_template(const struct inst *in, uint8_t dtype, struct str *out)
{
    const char *t = template_of(in->op, dtype);
    const uint32_t operand[] = {in->a, in->b, in->c};
    CHECK(t, "%s of %s has no CUDA template", op_name(in->op), dtype_name(dtype));
    for (; *t; t++) {
        if (*t != '$')
            str_addc(out, *t);
        else if (*++t == 'T')
            str_add(out, cuda_type(dtype));
        else if (*t == 'W')
            str_add(out, work_type(dtype));
        else
            str_printf(out, "v%u", operand[*t - '0']);
    }
}

// ---- conversions; v: the operand's name

static void
to_half(uint8_t from, uint8_t to, const char *v, struct str *out)
{
    const struct dtype_info *f = &dtype_table[from];
    str_printf(out, "narrow_%s(", dtype_name(to));
    if (dtype_is_half(from))
        str_printf(out, "widen_%s(%s)", dtype_name(from), v);
    else if (from == DT_f32 || f->bits <= 16) // exact in f32; bool is 0 or 1
        str_printf(out, "(float)%s", v);
    else if (dtype_is_float(from) || f->bits == 64)
        str_printf(out, "odd_f32(%s)", v);
    else
        str_printf(out, "odd_f32((double)%s)", v); // 32 bits are exact in f64
    str_addc(out, ')');
}

static void
float_to_int(uint8_t from, uint8_t to, const char *v, struct str *out)
{
    bool is_signed = dtype_table[to].kind == DTK_SINT;
    uint32_t bits = dtype_table[to].bits;
    uint64_t most = UINT64_MAX >> (64 - bits + is_signed);
    double limit = 2 * (double)(1ull << (bits - 1u - is_signed)); // the first value too large
    str_printf(out, "%s != %s ? (%s)0 : %s >= ", v, v, cuda_type(to), v);
    literal(from, scalar_from_double(from, limit), out);
    str_addc(out, '?');
    literal(to, most, out);
    str_printf(out, " : %s <= ", v);
    literal(from, scalar_from_double(from, is_signed ? -limit : 0), out);
    str_addc(out, '?');
    literal(to, is_signed ? most + 1 : 0, out);
    str_printf(out, " : (%s)%s", cuda_type(to), v);
}

static void
conversion(uint8_t from, uint8_t to, const char *v, struct str *out)
{
    char widened[64];
    if (dtype_is_half(to)) {
        to_half(from, to, v, out);
        return;
    }
    if (dtype_is_half(from)) {
        snprintf(widened, sizeof widened, "widen_%s(%s)", dtype_name(from), v);
        v = widened;
        from = DT_f32;
    }
    if (to == DT_bool)
        str_printf(out, "%s != 0", v);
    else if (dtype_is_float(from) && !dtype_is_float(to))
        float_to_int(from, to, v, out);
    else
        str_printf(out, "(%s)%s", cuda_type(to), v);
}

static void
cast(const struct kernel *k, const struct inst *in, struct str *out)
{
    uint8_t from = k->inst.at[in->a].dtype;
    char v[16];
    snprintf(v, sizeof v, "v%u", in->a);
    if (from == in->dtype)
        str_add(out, v);
    else
        conversion(from, in->dtype, v, out);
}

static void
bitcast(const struct kernel *k, const struct inst *in, struct str *out)
{
    uint8_t from = k->inst.at[in->a].dtype, to = in->dtype;
    const char *how = NULL; // by way of an integer of the width
    if (from == DT_f64)
        how = to == DT_f64 ? NULL : "__double_as_longlong";
    else if (from == DT_f32)
        how = to == DT_f32 ? NULL : "__float_as_uint";
    else if (to == DT_f64)
        how = "__longlong_as_double";
    else if (to == DT_f32)
        how = "__uint_as_float";
    if (how)
        str_printf(out, "(%s)%s(v%u)", cuda_type(to), how, in->a);
    else
        str_printf(out, "(%s)v%u", cuda_type(to), in->a);
}

// ---- tables

static void
lookup(const struct kernel *k, const struct inst *in, struct str *out)
{
    uint64_t name = k->inst.at[in->b].bits;
    struct table t = table_named(name);
    const char *from = t.dtype == DT_f64   ? "__longlong_as_double((i64)"
                       : t.dtype == DT_f32 ? "__uint_as_float("
                                           : "(";
    str_printf(out, "%stable%llu[v%u & %u])", from, (unsigned long long)name, in->a, t.size - 1);
}

void
cuda_tables(const struct kernel *k, uint64_t *defined, struct str *out)
{
    _Static_assert(TABLE_COUNT <= 64, "one bit a table");
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_lookup || *defined >> k->inst.at[in->b].bits & 1)
            continue;
        uint64_t name = k->inst.at[in->b].bits;
        struct table t = table_named(name);
        *defined |= 1ull << name;
        str_printf(out, "static __device__ const u%u table%llu[] = {", dtype_table[t.dtype].bits,
                   (unsigned long long)name);
        for (uint32_t e = 0; e < t.size; e++)
            str_printf(out, "%s0x%llx%s", e % 8 ? ", " : e ? ",\n    " : "\n    ",
                       (unsigned long long)table_entry(name, e),
                       dtype_table[t.dtype].bits == 64 ? "ull" : "");
        str_add(out, "\n};\n");
    }
}

// ---- one instruction

void
cuda_statement(const struct kernel *k, uint32_t i, struct str *out)
{
    const struct inst *in = &k->inst.at[i];
    str_printf(out, "const %s v%u = ", cuda_type(in->dtype), i);
    switch (in->op) {
    case OP_literal:
        literal(in->dtype, in->bits, out);
        break;
    case OP_cast:
        cast(k, in, out);
        break;
    case OP_bitcast:
        bitcast(k, in, out);
        break;
    case OP_lookup:
        lookup(k, in, out);
        break;
    default:
        fill_template(in, in->op == OP_where ? in->dtype : k->inst.at[in->a].dtype, out);
    }
    str_add(out, ";\n");
}

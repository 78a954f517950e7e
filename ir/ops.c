// ops.c: the op table as data, from ops.def, and what reductions start from. -0.0 is the identity
// of float sums: +0.0 would turn a sum of -0.0 alone into +0.0.
#include "ir/ops.h"

#include "ir/base/check.h"
#include "ir/dtype.h"

#include <math.h>
#include <string.h>

const struct op_info op_table[OP_COUNT] = {
    [OP_none] = {.name = "none", .doc = "no op"},
#define OP(opname, F, I, ...) [OP_##opname] = {.name = #opname, __VA_ARGS__},
#include "ir/ops.def"
#undef OP
};

uint16_t
op_by_name(const char *name)
{
    for (uint16_t i = 1; i < OP_COUNT; i++)
        if (!strcmp(op_table[i].name, name))
            return i;
    return OP_none;
}

const char *
op_operand_name(uint16_t op, uint32_t i, uint32_t *n)
{
    const char *name = op_table[op].operands;
    *n = 1;
    if (!name) {
        CHECK(i < 3, "operand %u of %s has no name", i, op_name(op));
        return op_table[op].arity == 1 ? "x" : &"abc"[i];
    }
    for (; i; i--) {
        name += strcspn(name, " ");
        CHECK(*name, "%s has fewer names of operands", op_name(op));
        name++;
    }
    *n = (uint32_t)strcspn(name, " ");
    return name;
}

static uint64_t
extreme(uint8_t dtype, bool highest)
{
    const struct dtype_info *d = &dtype_table[dtype];
    switch (d->kind) {
    case DTK_FLOAT:
        return scalar_from_double(dtype, highest ? (double)INFINITY : -(double)INFINITY);
    case DTK_SINT:
        return scalar_from_int(dtype, highest ? (int64_t)(~0ull >> (65 - d->bits))
                                              : (int64_t)(~0ull << (d->bits - 1)));
    case DTK_UINT:
        return highest ? ~0ull >> (64 - d->bits) : 0;
    default:
        return highest;
    }
}

bool
op_any_order(uint16_t op, uint8_t dtype)
{
    return !dtype_is_float(dtype) || op_table[op].flags & OPF_EXACT;
}

uint64_t
op_identity_bits(uint16_t op, uint8_t dtype)
{
    switch ((enum op_ident)op_table[op].ident) {
    case ID_ZERO:
        return dtype_is_float(dtype) ? scalar_from_double(dtype, -0.0) : 0;
    case ID_ONE:
        return scalar_from_int(dtype, 1);
    case ID_LOWEST:
        return extreme(dtype, false);
    case ID_HIGHEST:
        return extreme(dtype, true);
    case ID_FALSE:
        return 0;
    case ID_TRUE:
        return 1;
    case ID_NONE:
        break;
    }
    CHECK(false, "%s has no identity", op_name(op));
}

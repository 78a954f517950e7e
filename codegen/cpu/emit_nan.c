// emit_nan.c: which f32 values, where they are NaN, have zeros in the low half of their bits.
//
// Rounded to bf16 by integer arithmetic, such a NaN stays one: nothing is carried out of the low
// half. So the conversion need not look for NaN, which is three of its eight instructions.
//
// The processor's own NaN has no low bits, and arithmetic passes the payload of one operand; values
// that come from bf16, from integers and from literals therefore all qualify. What is loaded as f32
// does not, nor an f16, whose NaN reaches lower. max and min may mix the bits of both
// operands where one is NaN, so that for them no value may have low bits, NaN or not.
// Bits that integers have computed qualify where their low half is 0 (an exponent shifted into
// place), or an expansion promises that they make no NaN.
#include "codegen/cpu/emit.h"

#include "ir/dtype.h"

#include <math.h>

static bool
is_nan_literal(const struct inst *in)
{
    return isnan(scalar_to_double(in->dtype, in->bits));
}

static uint8_t
least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static uint8_t
of_literal(const struct inst *in)
{
    if ((in->bits & 0xffff) == 0)
        return LOW_ZERO;
    return in->dtype == DT_f32 && !is_nan_literal(in) ? LOW_ZERO_IF_NAN : LOW_ANY;
}

static uint8_t
of_cast(uint8_t from)
{
    if (from == DT_bf16)
        return LOW_ZERO;
    return dtype_is_float(from) ? LOW_ANY : LOW_ZERO_IF_NAN;
}

// max and min; a literal is compared with, and passes or the other operand does, unless it is 0.
static uint8_t
of_extreme(const struct inst *at, const uint8_t *low, const struct inst *in)
{
    uint8_t both = least(low[in->a], low[in->b]);
    for (uint32_t i = 0; i < 2; i++) {
        const struct inst *o = &at[i ? in->b : in->a];
        if (o->op == OP_literal && !is_nan_literal(o) && o->bits << 33)
            return both;
    }
    return both == LOW_ZERO ? LOW_ZERO : LOW_ANY;
}

static uint8_t
of_result(const struct kernel *k, const uint8_t *low, const struct inst *in)
{
    const struct acc *acc = &k->acc.at[in->aux];
    if (k->cls == CLASS_SCATTER ||
        (k->cls == CLASS_CONTRACT && in->aux == k->contraction.acc)) // has no value
        return LOW_ANY;
    if (acc->op == OP_sum || acc->op == OP_prod)
        return least(low[acc->value], LOW_ZERO_IF_NAN);
    return low[acc->value] == LOW_ZERO ? LOW_ZERO : LOW_ANY;
}

static uint8_t
of_integers(const struct inst *at, const uint8_t *low, const struct inst *in)
{
    const struct inst *by = &at[in->b];
    switch (in->op) {
    case OP_shl_raw:
        return by->op == OP_literal && by->bits >= 16 ? LOW_ZERO : LOW_ANY;
    case OP_and:
        return low[in->a] == LOW_ZERO || low[in->b] == LOW_ZERO ? LOW_ZERO : LOW_ANY;
    case OP_or:
    case OP_xor:
    case OP_add:
    case OP_sub:
        return least(low[in->a], low[in->b]) == LOW_ZERO ? LOW_ZERO : LOW_ANY;
    default:
        return LOW_ANY;
    }
}

// Arithmetic: least of the operands, those that there are.
static uint8_t
of_floats(const uint8_t *low, const struct inst *in)
{
    uint8_t r = LOW_ZERO_IF_NAN;
    for (uint32_t i = 0; i < op_table[in->op].arity; i++)
        r = least(r, low[i == 0 ? in->a : i == 1 ? in->b : in->c]);
    return r;
}

static uint8_t
low_half(const struct kernel *k, const uint8_t *low, const struct inst *in)
{
    const struct inst *at = k->inst.at;
    switch (in->op) {
    case OP_literal:
        return of_literal(in);
    case OP_load:
    case OP_index:
        return LOW_ANY;
    case OP_lookup:
        return LOW_ZERO_IF_NAN; // no table has NaN
    case OP_cast:
        return in->dtype == DT_f32 ? of_cast(at[in->a].dtype) : LOW_ANY;
    case OP_bitcast:
        if (low[in->a] == LOW_ZERO)
            return LOW_ZERO;
        return in->aux == BITCAST_NUMBER ? LOW_ZERO_IF_NAN : LOW_ANY;
    case OP_result:
        return of_result(k, low, in);
    case OP_checked:
        return low[in->a];
    case OP_where:
        return least(low[in->b], low[in->c]);
    case OP_neg:
    case OP_abs:
    case OP_copysign_raw:
        return in->dtype == DT_f32 ? low[in->a] : LOW_ANY;
    case OP_max:
    case OP_min:
        return in->dtype == DT_f32 ? of_extreme(at, low, in) : LOW_ANY;
    default:
        return in->dtype == DT_f32 ? of_floats(low, in) : of_integers(at, low, in);
    }
}

void
emit_find_low_halves(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    e->low_half = arena_alloc(&e->mem, k->inst.n * sizeof *e->low_half);
    e->low_half[0] = LOW_ZERO;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        bool wide = dtype_table[in->dtype].bits == 32;
        e->low_half[i] = wide ? low_half(k, e->low_half, in) : (uint8_t)LOW_ANY;
    }
}

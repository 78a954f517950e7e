// reduce.c: accumulators of row, split and finishing loops, and the binary counter that joins their
// blocks (ir/kernel.h has the order).
//
// The counter's slots are stack memory of the generated function, one vector a level: slot k holds
// 2^k joined blocks. Pushing the block that makes the count c joins slots 0 .. ctz(c) - 1 and
// writes slot ctz(c); nothing is ever cleared, as the bits of the count say which slots live.
#include "codegen/cpu/reduce.h"

#include "codegen/cpu/emit_parts.h"
#include "ir/base/check.h"

#include <string.h>

void
reduce_add(struct reduce_set *set, const struct acc *acc)
{
    CHECK(set->n < REDUCE_MAX, "more accumulators than a schedule may ask for");
    set->acc[set->n++] = acc;
}

void
reduce_identity(struct emitter *e, const struct reduce_set *set, struct emit_acc *out)
{
    for (uint32_t i = 0; i < set->n; i++)
        out[i] = emit_acc_identity(e, set->acc[i], RED_LANES);
}

// Older and newer where every position in older is smaller than its lane's in newer: the newer one
// must be strictly better. Elements that equal the identity are therefore never taken: a position
// that is still the identity's means that all elements equal it, and the first is the result.
static struct emit_acc
join_ordered(struct emitter *e, const struct acc *acc, struct emit_acc older, struct emit_acc newer)
{
    if (!acc_is_arg(acc))
        return emit_acc_join(e, acc, RED_LANES, older, newer);
    const char *type = emit_type(e, acc->dtype, RED_LANES), *take;
    const char *lanes = emit_type(e, DT_i64, RED_LANES);
    bool max = acc->op == OP_argmax;
    if (dtype_is_float(acc->dtype)) {
        const char *beats =
            emit_op(e, "fcmp %s %s %s, %s", max ? "ugt" : "ult", type, newer.value, older.value);
        const char *number = emit_op(e, "fcmp ord %s %s, %s", type, older.value, older.value);
        take = emit_and_mask(e, RED_LANES, beats, number);
    } else {
        take =
            emit_row(e, max ? OP_gt : OP_lt, acc->dtype, RED_LANES, newer.value, older.value, NULL);
    }
    struct emit_acc r;
    r.value = emit_op(e, "select <%d x i1> %s, %s %s, %s %s", RED_LANES, take, type, newer.value,
                      type, older.value);
    r.index = emit_op(e, "select <%d x i1> %s, %s %s, %s %s", RED_LANES, take, lanes, newer.index,
                      lanes, older.index);
    return r;
}

void
reduce_join(struct emitter *e, const struct reduce_set *set, const struct emit_acc *older,
            const struct emit_acc *newer, struct emit_acc *out)
{
    for (uint32_t i = 0; i < set->n; i++)
        out[i] = join_ordered(e, set->acc[i], older[i], newer[i]);
}

// ---- any order

bool
reduce_any_order(const struct reduce_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        const struct acc *a = set->acc[i];
        if ((a->op == OP_sum || a->op == OP_prod) && dtype_is_float(a->dtype))
            return false;
    }
    return true;
}

void
reduce_wide_identity(struct emitter *e, const struct reduce_set *set, struct emit_acc *out)
{
    for (uint32_t s = 0; s < REDUCE_WIDE; s++)
        reduce_identity(e, set, out + s * set->n);
}

void
reduce_join_strands(struct emitter *e, const struct reduce_set *set, const struct emit_acc *p,
                    struct emit_acc *out)
{
    uint32_t n = set->n;
    for (uint32_t i = 0; i < n; i++) { // positions interleave: the full comparison
        const struct acc *a = set->acc[i];
        struct emit_acc low = emit_acc_join(e, a, RED_LANES, p[i], p[n + i]);
        struct emit_acc high = emit_acc_join(e, a, RED_LANES, p[2 * n + i], p[3 * n + i]);
        out[i] = emit_acc_join(e, a, RED_LANES, low, high);
    }
}

struct emit_acc
reduce_step(struct emitter *e, const struct reduce_set *set, uint32_t i, struct emit_acc old,
            const char *x, const char *j, const char *mask)
{
    const char *at = NULL;
    if (acc_is_arg(set->acc[i]))
        at = emit_op(e, "add <%d x i64> %s, %s", RED_LANES, emit_splat_i64(e, j, RED_LANES),
                     emit_iota(e, RED_LANES));
    struct emit_acc one = emit_acc_element(e, set->acc[i], RED_LANES, x, at, mask);
    return join_ordered(e, set->acc[i], old, one);
}

const char *
reduce_lanes(struct emitter *e, const struct reduce_set *set, uint32_t i, struct emit_acc p)
{
    struct emit_acc one = emit_acc_join_lanes(e, set->acc[i], RED_LANES, p);
    if (!acc_is_arg(set->acc[i]))
        return one.value;
    const char *none = emit_constant(e, DT_i64, INT64_MAX, 1);
    const char *unbeaten = emit_row(e, OP_eq, DT_i64, 1, one.index, none, NULL);
    return emit_op(e, "select <1 x i1> %s, <1 x i64> zeroinitializer, <1 x i64> %s", unbeaten,
                   one.index);
}

// ---- fields: a partial result is one vector, or two with the index

struct field {
    uint32_t acc, part;
    uint8_t dtype;
};

// All fields of a set, in order; returns how many.
static uint32_t
fields(const struct reduce_set *set, struct field *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        out[n++] = (struct field){i, 0, set->acc[i]->dtype};
        if (acc_is_arg(set->acc[i]))
            out[n++] = (struct field){i, 1, DT_i64};
    }
    return n;
}

static const char **
field_of(struct emit_acc *p, struct field f)
{
    return f.part ? &p[f.acc].index : &p[f.acc].value;
}

void
reduce_fields(const struct reduce_set *set, struct emit_acc *p, const char **out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++)
        out[i] = *field_of(p, f[i]);
}

void
reduce_carry(struct emitter *e, struct emit_loop *l, const struct reduce_set *set,
             const struct emit_acc *init, struct emit_acc *out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    memset(out, 0, set->n * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        const char *from = f[i].part ? init[f[i].acc].index : init[f[i].acc].value;
        *field_of(out, f[i]) = emit_carry(e, l, emit_type(e, f[i].dtype, RED_LANES), from);
    }
}

// ---- the binary counter

void
reduce_slots(struct emitter *e, struct reduce_set *set)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++) {
        const char *type = emit_memory_type(e, f[i].dtype, RED_LANES);
        set->stack[f[i].acc][f[i].part] =
            emit_entry_op(e, "alloca %s, i64 %d, align 64", type, REDUCE_SLOTS);
    }
}

static const char *
slot(struct emitter *e, const struct reduce_set *set, struct field f, const char *level)
{
    return emit_ptr(e, set->stack[f.acc][f.part], level, emit_memory_type(e, f.dtype, RED_LANES));
}

void
reduce_load_slot(struct emitter *e, const struct reduce_set *set, const char *level,
                 struct emit_acc *out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    memset(out, 0, set->n * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        *field_of(out, f[i]) =
            emit_load_raw(e, f[i].dtype, RED_LANES, slot(e, set, f[i], level), NULL, 16);
}

void
reduce_store_slot(struct emitter *e, const struct reduce_set *set, const char *level,
                  struct emit_acc *p)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++)
        emit_store_raw(e, f[i].dtype, RED_LANES, slot(e, set, f[i], level), *field_of(p, f[i]),
                       NULL, 16);
}

static const char *
trailing_zeros(struct emitter *e, const char *count)
{
    return emit_op(e, "call i64 @llvm.cttz.i64(i64 %s, i1 true)", count);
}

void
reduce_push(struct emitter *e, const struct reduce_set *set, uint32_t level, const char *count,
            const struct emit_acc *p)
{
    const char *top = trailing_zeros(e, count);
    const char *next[EMIT_MAX_CARRY];
    struct emit_acc older[REDUCE_MAX], newer[REDUCE_MAX], both[REDUCE_MAX];
    struct emit_loop l;
    emit_loop_open(e, &l, emit_text(e, "%u", level), top, "1");
    reduce_carry(e, &l, set, p, newer);
    emit_loop_body(e, &l);
    reduce_load_slot(e, set, l.index, older);
    reduce_join(e, set, older, newer, both);
    reduce_fields(set, both, next);
    emit_loop_close(e, &l, next);
    reduce_store_slot(e, set, top, newer);
}

void
reduce_pop(struct emitter *e, const struct reduce_set *set, const char *count, struct emit_acc *out)
{
    struct emit_acc first[REDUCE_MAX], older[REDUCE_MAX], both[REDUCE_MAX];
    const char *next[EMIT_MAX_CARRY];
    reduce_load_slot(e, set, trailing_zeros(e, count), first);
    const char *slots = emit_op(e, "call i64 @llvm.ctpop.i64(i64 %s)", count);
    struct emit_loop l;
    emit_loop_open(e, &l, "1", slots, "1");
    reduce_carry(e, &l, set, first, out);
    const char *left = emit_carry(e, &l, "i64", count);
    emit_loop_body(e, &l);
    const char *rest = emit_op(e, "and i64 %s, %s", left, emit_add(e, left, "-1"));
    reduce_load_slot(e, set, trailing_zeros(e, rest), older);
    reduce_join(e, set, older, out, both);
    reduce_fields(set, both, next);
    next[l.ncarry - 1] = rest;
    emit_loop_close(e, &l, next);
}

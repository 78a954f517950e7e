// emit_reduce.c: partial results of reductions and how they join, for every class. The order in
// which a class joins them is fixed by ir/kernel.h.
//
// argmax and argmin carry (value, position). Joining prefers a NaN, then the better value, then
// the smaller position; the identity stands at the greatest position, so that any element beats
// it. This rule is associative and commutative, so its result does not depend on the order.
#include "codegen/cpu/emit.h"

struct emit_acc
emit_acc_identity(struct emitter *e, const struct acc *a, uint32_t lanes)
{
    struct emit_acc r = {
        .value = emit_constant(e, a->dtype, op_identity_bits(a->op, a->dtype), lanes)};
    if (acc_is_arg(a))
        r.index = emit_constant(e, DT_i64, INT64_MAX, lanes);
    return r;
}

static const char *
choose(struct emitter *e, uint32_t lanes, const char *cond, const char *type, const char *yes,
       const char *no)
{
    return emit_op(e, "select <%u x i1> %s, %s %s, %s %s", lanes, cond, type, yes, type, no);
}

struct emit_acc
emit_acc_element(struct emitter *e, const struct acc *a, uint32_t lanes, const char *value,
                 const char *j, const char *mask)
{
    struct emit_acc r = {.value = value, .index = acc_is_arg(a) ? j : NULL};
    if (!mask)
        return r;
    struct emit_acc none = emit_acc_identity(e, a, lanes);
    r.value = choose(e, lanes, mask, emit_type(e, a->dtype, lanes), value, none.value);
    if (r.index)
        r.index = choose(e, lanes, mask, emit_type(e, DT_i64, lanes), j, none.index);
    return r;
}

// i1 lanes: b is to be preferred to a.
static const char *
prefer_newer(struct emitter *e, const struct acc *acc, uint32_t lanes, struct emit_acc a,
             struct emit_acc b)
{
    const char *t = emit_type(e, acc->dtype, lanes);
    const char *better = emit_row(e, acc->op == OP_argmax ? OP_gt : OP_lt, acc->dtype, lanes,
                                  b.value, a.value, NULL);
    const char *tie = emit_row(e, OP_eq, acc->dtype, lanes, a.value, b.value, NULL);
    if (dtype_is_float(acc->dtype)) {
        const char *an = emit_op(e, "fcmp uno %s %s, %s", t, a.value, a.value);
        const char *bn = emit_op(e, "fcmp uno %s %s, %s", t, b.value, b.value);
        const char *only = emit_op(e, "icmp ugt <%u x i1> %s, %s", lanes, bn, an);
        const char *both = emit_op(e, "and <%u x i1> %s, %s", lanes, an, bn);
        better = emit_op(e, "or <%u x i1> %s, %s", lanes, better, only);
        tie = emit_op(e, "or <%u x i1> %s, %s", lanes, tie, both);
    }
    const char *first = emit_op(e, "icmp slt <%u x i64> %s, %s", lanes, b.index, a.index);
    const char *wins = emit_op(e, "and <%u x i1> %s, %s", lanes, tie, first);
    return emit_op(e, "or <%u x i1> %s, %s", lanes, better, wins);
}

struct emit_acc
emit_acc_join(struct emitter *e, const struct acc *a, uint32_t lanes, struct emit_acc older,
              struct emit_acc newer)
{
    if (!acc_is_arg(a)) {
        uint16_t op = op_table[a->op].combine;
        return (struct emit_acc){
            .value = emit_row(e, op, a->dtype, lanes, older.value, newer.value, NULL)};
    }
    const char *newer_wins = prefer_newer(e, a, lanes, older, newer);
    return (struct emit_acc){
        .value = choose(e, lanes, newer_wins, emit_type(e, a->dtype, lanes), newer.value,
                        older.value),
        .index = choose(e, lanes, newer_wins, emit_type(e, DT_i64, lanes), newer.index,
                        older.index)};
}

// Of the first `part` of n lanes the upper half, in the place of the lower.
static const char *
lowered(struct emitter *e, uint8_t dtype, uint32_t n, uint32_t part, const char *v)
{
    struct str lanes = {0};
    for (uint32_t i = 0; i < n; i++)
        if (i < part / 2)
            str_printf(&lanes, "%si32 %u", i ? ", " : "", part / 2 + i);
        else
            str_add(&lanes, ", i32 poison");
    const char *type = emit_type(e, dtype, n);
    const char *r = emit_op(e, "shufflevector %s %s, %s poison, <%u x i32> <%s>", type, v, type, n,
                            str_text(&lanes));
    str_free(&lanes);
    return r;
}

// Vectors are halved down to one register of 16 bytes. From there on whole registers are joined, of
// which only the lower lanes count: shorter vectors are what LLVM has most work with.
struct emit_acc
emit_acc_join_lanes(struct emitter *e, const struct acc *a, uint32_t lanes, struct emit_acc v)
{
    uint32_t least = dtype_size(a->dtype) == 8 ? 2 : 4, n = lanes;
    for (; n > least; n /= 2) {
        struct emit_acc low = {.value = emit_extract(e, a->dtype, v.value, n, 0, n / 2)};
        struct emit_acc high = {.value = emit_extract(e, a->dtype, v.value, n, n / 2, n / 2)};
        if (v.index) {
            low.index = emit_extract(e, DT_i64, v.index, n, 0, n / 2);
            high.index = emit_extract(e, DT_i64, v.index, n, n / 2, n / 2);
        }
        v = emit_acc_join(e, a, n / 2, low, high);
    }
    for (uint32_t part = n; part > 1; part /= 2) {
        struct emit_acc high = {.value = lowered(e, a->dtype, n, part, v.value)};
        if (v.index)
            high.index = lowered(e, DT_i64, n, part, v.index);
        v = emit_acc_join(e, a, n, v, high);
    }
    v.value = emit_extract(e, a->dtype, v.value, n, 0, 1);
    if (v.index)
        v.index = emit_extract(e, DT_i64, v.index, n, 0, 1);
    return v;
}

const char *
emit_acc_result(const struct acc *a, struct emit_acc v)
{
    return acc_is_arg(a) ? v.index : v.value;
}

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

struct emit_acc
emit_acc_join_lanes(struct emitter *e, const struct acc *a, uint32_t lanes, struct emit_acc v)
{
    for (uint32_t n = lanes / 2; n >= 1; n /= 2) {
        struct emit_acc low = {.value = emit_extract(e, a->dtype, v.value, 2 * n, 0, n)};
        struct emit_acc high = {.value = emit_extract(e, a->dtype, v.value, 2 * n, n, n)};
        if (v.index) {
            low.index = emit_extract(e, DT_i64, v.index, 2 * n, 0, n);
            high.index = emit_extract(e, DT_i64, v.index, 2 * n, n, n);
        }
        v = emit_acc_join(e, a, n, low, high);
    }
    return v;
}

const char *
emit_acc_result(const struct acc *a, struct emit_acc v)
{
    return acc_is_arg(a) ? v.index : v.value;
}

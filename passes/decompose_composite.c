// decompose_composite.c: composites whose operands have roles of their own. A group norm is a norm
// of rows once its groups are axes; attention is two contractions and the softmax between them, in
// three kernels; rotary positions are one pass over x.
#include "passes/decompose.h"

#include "ir/base/check.h"

#include <math.h>

static const struct shape *
shape_of(const struct pass *p, ref a)
{
    return graph_shape(p->dst, a);
}

static uint8_t
dtype_of(const struct pass *p, ref a)
{
    return graph_node(p->dst, a)->dtype;
}

static double
float_attr(int64_t bits)
{
    return scalar_to_double(DT_f64, (uint64_t)bits);
}

// zero as often as where(mask, x, 0) has elements, if it has none along axis.
static ref
nothing_along(struct pass *p, ref x, ref mask, int64_t axis, ref zero)
{
    ref seen = pass_op3(p, OP_where, mask, x, zero);
    const struct shape s = *shape_of(p, seen);
    return dim_of(p->dst, &s, (uint32_t)axis) ? (ref){0} : pass_broadcast(p, zero, &s);
}

// Where no element of a line counts, the sum is 0 and so are the results.
static ref
masked_softmax(struct pass *p, ref x, ref mask, int64_t axis)
{
    uint8_t t = dtype_of(p, x);
    ref zero = pass_number(p, t, 0), empty = nothing_along(p, x, mask, axis, zero);
    if (empty.i)
        return empty;
    ref lowest = pass_number(p, t, -(double)INFINITY);
    ref seen = pass_op3(p, OP_where, mask, x, lowest);
    ref m = decompose_reduce(p, OP_max_reduce, seen, &axis, 1);
    ref e = pass_op3(p, OP_where, mask, pass_op1(p, OP_exp, pass_op2(p, OP_sub, x, m)), zero);
    ref s = decompose_reduce(p, OP_sum, e, &axis, 1);
    s = pass_op3(p, OP_where, pass_op2(p, OP_eq, s, zero), pass_number(p, t, 1), s);
    return pass_op2(p, OP_div, e, s);
}

// [C] as [C, 1, …], to go with [N, C, …].
static ref
by_channel(struct pass *p, ref a, uint32_t rank)
{
    struct shape s = {.rank = (uint8_t)(rank - 1), .dim = {shape_of(p, a)->dim[0]}};
    for (uint32_t d = 1; d < s.rank; d++)
        s.dim[d] = sym_num(1);
    return pass_reshape(p, a, &s);
}

static ref
group_norm(struct pass *p, const ref *in, const int64_t *attr)
{
    const struct shape s = *shape_of(p, in[0]);
    int64_t inner = dim_of(p->dst, &s, 1) / attr[0], axis = 2;
    for (uint32_t d = 2; d < s.rank; d++)
        inner *= dim_of(p->dst, &s, d);
    struct shape grouped = {.rank = 3, .dim = {s.dim[0], sym_num(attr[0]), sym_num(inner)}};
    ref y = decompose_normalised(p, pass_reshape(p, in[0], &grouped), axis, float_attr(attr[1]));
    y = pass_op2(p, OP_mul, pass_reshape(p, y, &s), by_channel(p, in[1], s.rank));
    return pass_op2(p, OP_add, y, by_channel(p, in[2], s.rank));
}

static ref
batch_norm(struct pass *p, const ref *in, const int64_t *attr)
{
    uint32_t rank = shape_of(p, in[0])->rank;
    ref eps = pass_number(p, dtype_of(p, in[0]), float_attr(attr[0]));
    ref scale = by_channel(p, pass_op1(p, OP_rsqrt, pass_op2(p, OP_add, in[2], eps)), rank);
    ref y = pass_op2(p, OP_sub, in[0], by_channel(p, in[1], rank));
    y = pass_op2(p, OP_mul, pass_op2(p, OP_mul, y, scale), by_channel(p, in[3], rank));
    return pass_op2(p, OP_add, y, by_channel(p, in[4], rank));
}

// iota over the last two axes of s, along one of them.
static ref
position(struct pass *p, const struct shape *s, int64_t axis)
{
    int64_t attr[] = {2, s->dim[s->rank - 2].v, s->dim[s->rank - 1].v, axis};
    return pass_op(p, OP_iota, NULL, 0, attr, 4);
}

static ref
attention(struct pass *p, ref r, const ref *in, const int64_t *attr)
{
    bool masked = graph_node(p->src, r)->op == OP_masked_attention;
    const struct shape *q = shape_of(p, in[0]);
    uint8_t t = dtype_of(p, in[0]);
    double scale = float_attr(attr[0]);
    if (scale == 0)
        scale = 1 / sqrt((double)dim_of(p->dst, q, q->rank - 1u));
    ref scores = decompose_matmul(p, in[0], decompose_swapped(p, in[1]));
    scores = pass_op2(p, OP_mul, scores, pass_number(p, t, scale));
    const struct shape s = *shape_of(p, scores);
    if (!dim_of(p->dst, &s, s.rank - 1u)) // nothing to attend to
        return pass_broadcast(p, pass_number(p, t, 0), graph_shape(p->src, r));
    if (masked)
        return decompose_matmul(p, masked_softmax(p, scores, in[3], s.rank - 1), in[2]);
    if (attr[1]) {
        ref sees = pass_op2(p, OP_le, position(p, &s, 1), position(p, &s, 0));
        scores = pass_op3(p, OP_where, sees, scores, pass_number(p, t, -(double)INFINITY));
    }
    return decompose_matmul(p, decompose_softmax(p, scores, s.rank - 1), in[2]);
}

static ref
rope(struct pass *p, const ref *in, bool interleaved)
{
    const struct shape s = *shape_of(p, in[0]);
    uint32_t last = s.rank - 1u;
    int64_t half = dim_of(p->dst, &s, last) / 2, step = interleaved ? 2 : 1;
    if (!half)
        return in[0];
    ref x = pass_slice(p, in[0], last, 0, step, half);
    ref y = pass_slice(p, in[0], last, interleaved ? 1 : half, step, half);
    ref turned[] = {
        pass_op2(p, OP_sub, pass_op2(p, OP_mul, x, in[1]), pass_op2(p, OP_mul, y, in[2])),
        pass_op2(p, OP_add, pass_op2(p, OP_mul, y, in[1]), pass_op2(p, OP_mul, x, in[2]))};
    int64_t axis = last;
    if (interleaved) { // pairs side by side: [..., half, 2]
        struct shape column = *shape_of(p, turned[0]);
        if (column.rank == MAX_RANK) { // no axis to spare: all those before as one
            int64_t rows = shape_count(p->dst, &column) / half;
            column = (struct shape){.rank = 2, .dim = {sym_num(rows), sym_num(half)}};
        }
        axis = column.rank;
        column.dim[column.rank++] = sym_num(1);
        turned[0] = pass_reshape(p, turned[0], &column);
        turned[1] = pass_reshape(p, turned[1], &column);
    }
    return pass_reshape(p, pass_op(p, OP_concat, turned, 2, &axis, 1), &s);
}

ref
decompose_composite(struct pass *p, ref r, const ref *in, const int64_t *attr)
{
    switch (graph_node(p->src, r)->op) {
    case OP_masked_softmax:
        return masked_softmax(p, in[0], in[1], attr[0]);
    case OP_group_norm:
        return group_norm(p, in, attr);
    case OP_batch_norm:
        return batch_norm(p, in, attr);
    case OP_nll_loss:
        return decompose_mean_of_rows(p, pass_op1(p, OP_neg, decompose_picked(p, in[0], in[1])));
    case OP_attention:
    case OP_masked_attention:
        return attention(p, r, in, attr);
    case OP_rope:
        return rope(p, in, attr[0]);
    default:
        CHECK(false, "no expansion for %s", op_name(graph_node(p->src, r)->op));
    }
}

// rounding.c: chooses where f16 and bf16 values are rounded, before fusion and from the graph and
// options alone, so that which kernels are formed never changes a bit.
//
// Every node of a half type is computed in f32. Its value is rounded (cast to the half type and
// back) at explicit casts, outputs, contraction inputs, operands of comparisons and orders, and
// where bits or positions are taken from it; with `strict` after every op. Afterwards arithmetic on
// half types does not occur: only inputs, casts, views, orders and outputs have them.
//
// The pass keeps, per source node, the f32 value; a rounded f16 value in hand is the node itself. A
// view of one is taken of the half value, so that rounding what it shows finds it rounded already.
#include "passes/pass.h"

// The operand's value in its own dtype: a half type rounded.
static ref
rounded(struct pass *p, ref src)
{
    return pass_cast(p, p->to[src.i], graph_node(p->src, src)->dtype);
}

static bool
wants_rounded(uint16_t op)
{
    switch (op_table[op].rule) {
    case DTR_COMPARE:
    case DTR_PREDICATE:
        return true;
    default:
        return op == OP_cast || op == OP_matmul || op == OP_any || op == OP_all;
    }
}

// Ops whose half operands are taken as they are in memory: a scatter that adds is not one of them,
// it adds in f32.
static bool
moves_bits(uint16_t op)
{
    return op == OP_bitcast || (op_is(op, OPK_SCATTER) && !op_table[op].combine);
}

// The view r of v, a half value widened; 0: it is none.
static ref
view_of_widened(struct pass *p, ref r, ref v)
{
    const struct node *n = graph_node(p->src, r), *x = graph_node(p->dst, v);
    if (!op_is(n->op, OPK_VIEW) || n->nin != 1 || n->op == OP_pad || x->op != OP_cast)
        return (ref){0};
    ref half = x->in[0];
    if (graph_node(p->dst, half)->dtype != n->dtype)
        return (ref){0};
    const struct attr *a = &p->src->attrs.at[n->attr];
    return pass_cast(p, pass_op(p, n->op, &half, 1, a->v, a->n), DT_f32);
}

// An order moves elements: of the half values, rounded, and widened behind it.
static ref
order(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    const struct attr *a = &p->src->attrs.at[n->attr];
    ref half = rounded(p, n->in[0]), out = pass_op(p, n->op, &half, 1, a->v, a->n);
    return dtype_is_half(n->dtype) ? pass_cast(p, out, DT_f32) : out;
}

static ref
rewrite(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    const struct attr *a = &p->src->attrs.at[n->attr];
    if (n->op == OP_input)
        return dtype_is_half(n->dtype) ? pass_cast(p, pass_copy(p, r), DT_f32) : pass_copy(p, r);
    if (n->op == OP_literal)
        return dtype_is_half(n->dtype)
                   ? pass_number(p, DT_f32, scalar_to_double(n->dtype, (uint64_t)a->v[0]))
                   : pass_copy(p, r);
    bool touched = dtype_is_half(n->dtype);
    for (uint32_t i = 0; i < n->nin; i++)
        touched |= dtype_is_half(graph_node(p->src, graph_in(p->src, r, i))->dtype);
    if (!touched)
        return pass_copy(p, r);
    if (op_is(n->op, OPK_ORDER))
        return order(p, r);
    VEC(ref) in = {0};
    for (uint32_t i = 0; i < n->nin; i++) {
        ref src = graph_in(p->src, r, i);
        uint8_t dtype = graph_node(p->src, src)->dtype;
        ref v = p->to[src.i];
        if (dtype_is_half(dtype) && moves_bits(n->op))
            v = rounded(p, src);
        else if (dtype_is_half(dtype) && wants_rounded(n->op))
            v = pass_cast(p, rounded(p, src), DT_f32);
        vec_push(&in, v);
    }
    ref out = in.n == 1 ? view_of_widened(p, r, in.at[0]) : (ref){0};
    if (n->op == OP_cast) {
        out = pass_cast(p, in.at[0], n->dtype);
    } else if (n->op == OP_pad) { // its value is a scalar of the node's dtype
        uint32_t rank = graph_shape(p->src, r)->rank;
        int64_t *v = arena_copy(&p->dst->mem, a->v, a->n * sizeof *v);
        v[2 * rank + 2] = (int64_t)scalar_from_double(
            DT_f32, scalar_to_double(n->dtype, (uint64_t)v[2 * rank + 2]));
        out = pass_op(p, n->op, in.at, in.n, v, a->n);
    } else if (!out.i) {
        out = pass_op(p, n->op, in.at, in.n, a->v, a->n);
        if (n->op != OP_bitcast && dtype_is_half(graph_node(p->dst, out)->dtype))
            out = pass_cast(p, out, DT_f32); // made of no operand that could be wide
    }
    vec_free(&in);
    bool moved = op_is(n->op, OPK_VIEW) || op_is(n->op, OPK_INDEX) || n->op == OP_where;
    if (graph_node(p->dst, out)->dtype == n->dtype && n->op != OP_cast && dtype_is_half(n->dtype))
        return pass_cast(p, out, DT_f32);
    if (dtype_is_half(n->dtype) && (n->op == OP_cast || n->op == OP_bitcast ||
                              (p->options->strict && !moved)))
        out = pass_cast(p, pass_cast(p, out, n->dtype), DT_f32);
    return out;
}

struct graph *
pass_rounding(const struct graph *g, const struct compile_options *o)
{
    struct graph *wide = pass_run(g, o, rewrite);
    // Outputs of a half type are rounded at the end.
    struct pass p = {.src = g, .dst = wide, .options = o};
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        uint8_t dtype = graph_node(g, g->outputs.at[i].node)->dtype;
        p.origin = graph_node(g, g->outputs.at[i].node)->origin;
        wide->outputs.at[i].node = pass_cast(&p, wide->outputs.at[i].node, dtype);
    }
    return wide;
}

// canon.c: constant folding and exact simplifications. A rewrite is here only if it changes no bit
// for any input, signed zeros, infinities and NaN included (x + 0 is not x: -0 + 0 is +0; x - 0
// and x + -0 are). Folding evaluates with the same expansions that generated code runs.
#include "passes/pass.h"

#include "ir/expand.h"

#include <string.h>

static bool
literal_bits(const struct graph *g, ref r, uint64_t *bits)
{
    if (graph_node(g, r)->op != OP_literal)
        return false;
    *bits = (uint64_t)graph_attr(g, r)[0];
    return true;
}

static bool
is_number(const struct pass *p, ref r, double x)
{
    uint64_t bits;
    uint8_t dtype = graph_node(p->dst, r)->dtype;
    return literal_bits(p->dst, r, &bits) && bits == scalar_from_double(dtype, x);
}

static bool
same_type(const struct pass *p, ref a, const struct node *n, const struct shape *s)
{
    return graph_node(p->dst, a)->dtype == n->dtype && shape_equal(graph_shape(p->dst, a), s);
}

static ref
folded(struct pass *p, const struct node *n, const ref *in)
{
    uint64_t bits[4] = {0};
    if (!op_is(n->op, OPK_ELEM) || !n->nin)
        return (ref){0};
    for (uint32_t i = 0; i < n->nin; i++)
        if (!literal_bits(p->dst, in[i], &bits[i]))
            return (ref){0};
    uint8_t dtype = graph_node(p->dst, in[n->op == OP_where ? 1 : 0])->dtype;
    return graph_literal(p->dst, n->dtype, eval_exact(n->op, dtype, n->dtype, bits), p->origin);
}

// Whether every value of dtype a is one of dtype b.
static bool
widens(uint8_t a, uint8_t b)
{
    const struct dtype_info *x = &dtype_table[a], *y = &dtype_table[b];
    if (x->kind == DTK_FLOAT && y->kind == DTK_FLOAT)
        return y->bits > x->bits;
    if (x->kind == DTK_SINT || x->kind == DTK_UINT)
        return y->kind == x->kind ? y->bits >= x->bits
                                  : x->kind == DTK_UINT && y->kind == DTK_SINT && y->bits > x->bits;
    return false;
}

static ref
simpler_cast(struct pass *p, const struct node *n, ref a)
{
    const struct node *x = graph_node(p->dst, a);
    if (x->dtype == n->dtype)
        return a;
    if (x->op == OP_cast) {
        ref inner = x->in[0];
        uint8_t from = graph_node(p->dst, inner)->dtype;
        if (from == n->dtype && widens(from, x->dtype))
            return inner;
    }
    return (ref){0};
}

static ref
simpler_elementwise(struct pass *p, const struct node *n, const ref *in, const struct shape *s)
{
    bool is_float = dtype_is_float(n->dtype);
    ref a = in[0], b = in[1];
    switch (n->op) {
    case OP_cast:
        return simpler_cast(p, n, a);
    case OP_neg:
        return graph_node(p->dst, a)->op == OP_neg ? graph_node(p->dst, a)->in[0] : (ref){0};
    case OP_mul:
        if (is_number(p, b, 1) && same_type(p, a, n, s))
            return a;
        return is_number(p, a, 1) && same_type(p, b, n, s) ? b : (ref){0};
    case OP_div:
        return is_number(p, b, 1) && same_type(p, a, n, s) ? a : (ref){0};
    case OP_add:
        if (is_number(p, b, is_float ? -0.0 : 0) && same_type(p, a, n, s))
            return a;
        return is_number(p, a, is_float ? -0.0 : 0) && same_type(p, b, n, s) ? b : (ref){0};
    case OP_sub:
        return is_number(p, b, 0) && same_type(p, a, n, s) ? a : (ref){0};
    case OP_where: {
        uint64_t cond;
        if (!literal_bits(p->dst, a, &cond))
            return (ref){0};
        ref chosen = cond ? b : in[2];
        return same_type(p, chosen, n, s) ? chosen : (ref){0};
    }
    default:
        return (ref){0};
    }
}

static bool
is_identity_view(const struct pass *p, ref r, ref a)
{
    const struct node *n = graph_node(p->src, r);
    const struct shape *s = graph_shape(p->src, r);
    if (!same_type(p, a, n, s))
        return false;
    const int64_t *v = graph_attr(p->src, r);
    switch (n->op) {
    case OP_reshape:
    case OP_broadcast:
    case OP_pad: // equal shapes: nothing is added
        return true;
    case OP_permute:
        for (uint32_t i = 0; i < s->rank; i++)
            if (v[1 + i] != (int64_t)i)
                return false;
        return true;
    case OP_flip:
        return v[0] == 0;
    case OP_slice: // equal shapes: all of it, unless reversed
        for (uint32_t i = 0; i < s->rank; i++)
            if (v[2 * (s->rank + 1u) + 1 + i] < 0)
                return false;
        return true;
    case OP_concat:
        return n->nin == 1;
    default:
        return false;
    }
}

static ref
simpler_view(struct pass *p, ref r, ref a)
{
    const struct node *n = graph_node(p->src, r);
    if (is_identity_view(p, r, a))
        return a;
    const struct node *x = graph_node(p->dst, a);
    if (n->op == OP_reshape && x->op == OP_reshape)
        return pass_reshape(p, x->in[0], graph_shape(p->src, r));
    if (n->op == OP_permute && x->op == OP_permute) {
        const int64_t *outer = graph_attr(p->src, r), *inner = graph_attr(p->dst, a);
        int64_t attr[MAX_RANK + 1] = {outer[0]};
        bool identity = true;
        for (int64_t i = 0; i < outer[0]; i++) {
            attr[1 + i] = inner[1 + outer[1 + i]];
            identity &= attr[1 + i] == i;
        }
        if (identity)
            return x->in[0];
        return pass_op(p, OP_permute, &x->in[0], 1, attr, (uint32_t)outer[0] + 1);
    }
    return (ref){0};
}

static ref
filled(struct pass *p, ref r, uint64_t bits)
{
    ref lit = graph_literal(p->dst, graph_node(p->src, r)->dtype, bits, p->origin);
    return pass_broadcast(p, lit, graph_shape(p->src, r));
}

// Reductions over nothing and products over K = 0.
static ref
empty_result(struct pass *p, ref r, ref a)
{
    const struct node *n = graph_node(p->src, r);
    const struct shape *s = graph_shape(p->dst, a);
    if (n->op == OP_matmul)
        return dim_of(p->dst, s, s->rank - 1u) == 0 ? filled(p, r, 0) : (ref){0};
    if (shape_count(p->dst, s) != 0 || shape_count(p->src, graph_shape(p->src, r)) == 0 ||
        !op_table[n->op].combine)
        return (ref){0};
    bool zero = op_table[n->op].ident == ID_ZERO; // +0, not the order's -0
    return filled(p, r, zero ? 0 : op_identity_bits(n->op, n->dtype));
}

static ref
rewrite(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    if (n->op == OP_input || !n->nin || n->nin > 4)
        return pass_copy(p, r);
    ref in[4] = {{0}}, out = {0};
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = pass_operand(p, r, i);
    if (op_is(n->op, OPK_ELEM)) {
        out = folded(p, n, in);
        if (!out.i)
            out = simpler_elementwise(p, n, in, graph_shape(p->src, r));
    } else if (op_is(n->op, OPK_VIEW)) {
        out = simpler_view(p, r, in[0]);
    } else if (op_is(n->op, OPK_REDUCE) || n->op == OP_matmul) {
        out = empty_result(p, r, in[0]);
    } else if (op_is(n->op, OPK_SCATTER)) {
        bool none = !shape_count(p->dst, graph_shape(p->dst, in[2]));
        out = none ? in[0] : (ref){0};
    }
    return out.i ? out : pass_copy(p, r);
}

struct graph *
pass_canon(const struct graph *g, const struct compile_options *o)
{
    return pass_run(g, o, rewrite);
}

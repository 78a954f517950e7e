// verify.c: whether a graph is one that graph_build could have made. First every number is checked
// (nodes, edges, shapes, attributes, origins, inputs, outputs), then each node is built again in a
// scratch graph from its own operands and attributes. A sound graph rebuilds to itself, node for
// node: the same number (so no two nodes are equal, and no cast was missing), op, dtype, shape and
// attributes. The scratch graph shares the symbol table, so equal dims are equal numbers.
#include "ir/text.h"

#include "ir/base/str.h"

#include <string.h>

struct verifier {
    const struct graph *g;
    struct graph *again;
    struct diag *d;
    ref at;
};

static bool
fail(struct verifier *v, const char *words)
{
    const struct node *n = graph_node(v->g, v->at);
    const char *op = v->at.i && n->op < OP_COUNT ? op_name(n->op) : "graph";
    return diag_set(v->d, DIAG_INTERNAL, "%%%u (%s): %s", v->at.i, op, words);
}

static bool
check_operands(struct verifier *v, const struct node *n)
{
    const struct graph *g = v->g;
    uint8_t arity = op_table[n->op].arity;
    if (arity == 255 ? n->nin == 0 : n->nin != arity)
        return fail(v, "wrong number of operands");
    if (n->nin > 4 && (n->in[0].i >= g->edges.n || n->nin > g->edges.n - n->in[0].i))
        return fail(v, "operands beyond the graph's edges");
    for (uint32_t i = 0; i < n->nin; i++) {
        ref r = node_in(g, n, i);
        if (!r.i || r.i >= v->at.i)
            return fail(v, "an operand does not come before its user");
    }
    return true;
}

static bool
check_numbers(struct verifier *v, const struct node *n)
{
    const struct graph *g = v->g;
    if (n->op == OP_none || n->op >= OP_COUNT || op_is(n->op, OPK_BODY))
        return fail(v, "no op of graphs");
    if (n->dtype == DT_NONE || n->dtype >= DT_COUNT)
        return fail(v, "no dtype");
    if (n->shape >= g->shapes.n || g->shapes.at[n->shape].rank > MAX_RANK)
        return fail(v, "no shape");
    if (n->attr >= g->attrs.n)
        return fail(v, "no attribute row");
    if (n->origin >= g->origins.n)
        return fail(v, "no origin");
    for (uint32_t i = 0; i < g->shapes.at[n->shape].rank; i++) {
        int64_t d = dim_of(g, &g->shapes.at[n->shape], i);
        if (d < 0 || d == SYM_HUGE)
            return fail(v, "a dim is negative or too large");
    }
    return check_operands(v, n);
}

static bool
check_input(struct verifier *v, const struct node *n)
{
    const struct attr *a = &v->g->attrs.at[n->attr];
    uint32_t index = v->again->inputs.n;
    if (a->n != 1 || a->v[0] != index || index >= v->g->inputs.n)
        return fail(v, "input nodes are not in the order of the graph's inputs");
    const struct graph_input *in = &v->g->inputs.at[index];
    if (in->node.i != v->at.i)
        return fail(v, "the graph's input names another node");
    if (in->align_log2 > 6)
        return fail(v, "an alignment of more than 64 bytes");
    ref r = graph_add_input(v->again, in->name, n->dtype, graph_shape(v->g, v->at), in->stride,
                            in->align_log2);
    if (v->again->inputs.at[index].dense != in->dense)
        return fail(v, "strides and the dense flag disagree");
    return r.i == v->at.i || fail(v, "numbered out of order");
}

static bool
check_literal(struct verifier *v, const struct node *n)
{
    const struct attr *a = &v->g->attrs.at[n->attr];
    uint8_t bits = dtype_table[n->dtype].bits;
    if (a->n != 1)
        return fail(v, "a literal without a value");
    if (graph_shape(v->g, v->at)->rank)
        return fail(v, "a literal that is no scalar");
    if ((bits < 64 && (uint64_t)a->v[0] >> bits) || (n->dtype == DT_bool && a->v[0] > 1))
        return fail(v, "a literal of more bits than its dtype");
    ref r = graph_literal(v->again, n->dtype, (uint64_t)a->v[0], 0);
    return r.i == v->at.i || fail(v, "equals an earlier node");
}

static bool
same_attr(const struct attr *a, const struct attr *b)
{
    return a->n == b->n && (!a->n || !memcmp(a->v, b->v, a->n * sizeof *a->v));
}

// Differences between a node and its like that graph_build made.
static bool
compare(struct verifier *v, const struct node *n, ref r)
{
    const struct node *m = graph_node(v->again, r);
    const struct shape *s = graph_shape(v->g, v->at), *t = graph_shape(v->again, r);
    if (r.i < v->at.i)
        return fail(v, "equals an earlier node, or should have been replaced by one");
    if (r.i > v->at.i)
        return fail(v, "the operands' dtypes differ from what the op takes (a cast is missing)");
    if (m->dtype != n->dtype || s->rank != t->rank ||
        memcmp(s->dim, t->dim, s->rank * sizeof *s->dim) != 0) {
        struct str words = {0};
        str_add(&words, "is ");
        shape_print(v->g, n->dtype, s, &words);
        str_add(&words, " where inference gives ");
        shape_print(v->again, m->dtype, t, &words);
        fail(v, words.at);
        str_free(&words);
        return false;
    }
    if (!same_attr(&v->g->attrs.at[n->attr], &v->again->attrs.at[m->attr]))
        return fail(v, "its attributes are not in normal form");
    return true;
}

static bool
check_call(struct verifier *v, const struct node *n)
{
    struct diag d = {0};
    const struct attr *a = &v->g->attrs.at[n->attr];
    const ref *in = n->nin > 4 ? &v->g->edges.at[n->in[0].i] : n->in;
    ref r = graph_build(v->again, n->op, in, n->nin, a->v, a->n, 0, &d);
    if (!r.i)
        return fail(v, d.text);
    return compare(v, n, r);
}

static bool
check_node(struct verifier *v)
{
    const struct node *n = graph_node(v->g, v->at);
    if (!check_numbers(v, n))
        return false;
    if (n->op == OP_input)
        return check_input(v, n);
    return n->op == OP_literal ? check_literal(v, n) : check_call(v, n);
}

static bool
check_graph(struct verifier *v)
{
    const struct graph *g = v->g;
    for (v->at.i = 1; v->at.i < g->node.n; v->at.i++)
        if (!check_node(v))
            return false;
    v->at.i = 0;
    if (v->again->inputs.n != g->inputs.n)
        return fail(v, "an input has no node");
    for (uint32_t i = 0; i < g->outputs.n; i++)
        if (!g->outputs.at[i].node.i || g->outputs.at[i].node.i >= g->node.n)
            return fail(v, "an output is no node");
    return true;
}

bool
graph_verify_at(const struct graph *g, ref *where, struct diag *d)
{
    struct diag mine = {0};
    struct verifier v = {.g = g, .again = graph_new_like(g), .d = &mine};
    bool ok = check_graph(&v);
    graph_free(v.again);
    *where = ok ? (ref){0} : v.at;
    return ok || diag_set(d, mine.code, "%s", mine.text);
}

bool
graph_verify(const struct graph *g, struct diag *d)
{
    ref where;
    return graph_verify_at(g, &where, d);
}

// interp.c: the graph interpreter. It says what is right, so each rule is the shortest that can be
// seen to follow the op's definition: a walk over all points of the result, elements fetched by
// offset. Exact elementwise rows compute in the node's dtype, everything else in double or better
// and rounds once.
//
// Views are computed as tensors that share memory (other strides, a moved first element), then
// copied. Nodes that no output needs are not computed; a value is freed after its last use.
#include "ir/interp.h"

#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/composite.h"
#include "ir/expand.h"
#include "ir/interp_walk.h"

#include <math.h>
#include <string.h>

int64_t
tensor_count(const struct tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

void
walk_start(struct walk *w, uint32_t rank, const int64_t *dim)
{
    *w = (struct walk){.rank = rank, .left = 1};
    for (uint32_t i = 0; i < rank; i++) {
        w->dim[i] = dim[i];
        w->left *= dim[i];
    }
}

void
walk_follow(struct walk *w, const struct tensor *t)
{
    int64_t *stride = w->stride[w->ntensor++];
    uint32_t lead = w->rank - t->rank;
    for (uint32_t i = 0; i < t->rank; i++)
        stride[lead + i] = t->dim[i] == 1 ? 0 : t->stride[i];
}

void
walk_next(struct walk *w)
{
    w->left--;
    for (uint32_t i = w->rank; i-- > 0;) {
        bool carry = ++w->at[i] == w->dim[i];
        for (uint32_t k = 0; k < w->ntensor; k++)
            w->offset[k] += carry ? w->stride[k][i] * (1 - w->dim[i]) : w->stride[k][i];
        if (!carry)
            return;
        w->at[i] = 0;
    }
}

static struct tensor
dense(uint8_t dtype, uint32_t rank, const int64_t *dim)
{
    struct tensor t = {.dtype = dtype, .rank = (uint8_t)rank};
    int64_t run = 1;
    for (uint32_t i = rank; i-- > 0;) {
        t.dim[i] = dim[i];
        t.stride[i] = run;
        run *= dim[i];
    }
    t.data = xcalloc((size_t)tensor_count(&t), dtype_size(dtype));
    return t;
}

void
interp_copy(const struct tensor *to, const struct tensor *from)
{
    struct walk w;
    walk_start(&w, to->rank, to->dim);
    walk_follow(&w, to);
    walk_follow(&w, from);
    for (; w.left; walk_next(&w))
        tensor_put(to, w.offset[0], eval_primitive(OP_cast, from->dtype, to->dtype,
                                                   tensor_get(from, w.offset[1]), 0, 0));
}

static struct tensor
moved(struct tensor t, int64_t elements)
{
    t.data = (char *)t.data + elements * dtype_size(t.dtype);
    return t;
}

static void
elementwise(const struct interp_node *x)
{
    uint32_t nin = x->n->nin;
    uint8_t dtype = x->in[x->n->op == OP_where]->dtype;
    struct walk w;
    walk_start(&w, x->out->rank, x->out->dim);
    for (uint32_t i = 0; i < nin; i++)
        walk_follow(&w, x->in[i]);
    for (int64_t k = 0; w.left; walk_next(&w), k++) {
        uint64_t v[3] = {0};
        for (uint32_t i = 0; i < nin; i++)
            v[i] = tensor_get(x->in[i], w.offset[i]);
        tensor_put(x->out, k, eval_primitive(x->n->op, dtype, x->n->dtype, v[0], v[1], v[2]));
    }
}

// The box that a node's operands broadcast to; returns its rank.
static uint32_t
broadcast_box(const struct interp_node *x, int64_t dim[MAX_RANK])
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->n->nin; i++)
        rank = x->in[i]->rank > rank ? x->in[i]->rank : rank;
    for (uint32_t d = 0; d < rank; d++) {
        dim[d] = 1;
        for (uint32_t i = 0; i < x->n->nin; i++) {
            uint32_t lead = rank - x->in[i]->rank;
            if (d >= lead && x->in[i]->dim[d - lead] != 1)
                dim[d] = x->in[i]->dim[d - lead];
        }
    }
    return rank;
}

// Elementwise composites: f16 and bf16 in f32 where that is exact, else in double; attributes are
// operands, as precise as their companions are computed.
static void
composite(const struct interp_node *x)
{
    uint16_t op = x->n->op;
    uint32_t nin = x->n->nin, n = nin;
    uint8_t dtype = x->in[0]->dtype, wide = dtype;
    if (dtype_is_half(dtype))
        wide = op_table[op].flags & OPF_EXACT ? DT_f32 : DT_f64;
    double number[COMPOSITE_NUMBERS];
    uint64_t v[3 + COMPOSITE_NUMBERS] = {0};
    for (uint32_t i = 0, numbers = composite_numbers(op, x->attr, number); i < numbers; i++) {
        uint64_t bits = scalar_from_double(dtype_is_half(dtype) ? DT_f32 : dtype, number[i]);
        v[n++] = dtype_is_half(dtype) ? eval_primitive(OP_cast, DT_f32, wide, bits, 0, 0) : bits;
    }
    CHECK(n <= 3, "%s has more than three operands and numbers", op_name(op));
    int64_t dim[MAX_RANK], count = 0;
    long double total = 0;
    struct walk w;
    walk_start(&w, broadcast_box(x, dim), dim);
    for (uint32_t i = 0; i < nin; i++)
        walk_follow(&w, x->in[i]);
    for (; w.left; walk_next(&w), count++) {
        for (uint32_t i = 0; i < nin; i++)
            v[i] = eval_primitive(OP_cast, dtype, wide, tensor_get(x->in[i], w.offset[i]), 0, 0);
        uint64_t y = eval_primitive(op, wide, wide, v[0], v[1], v[2]);
        if (op_table[op].flags & OPF_MEAN)
            total += (long double)scalar_to_double(wide, y);
        else
            tensor_put(x->out, count, eval_primitive(OP_cast, wide, dtype, y, 0, 0));
    }
    if (op_table[op].flags & OPF_MEAN)
        tensor_put(x->out, 0, scalar_from_double(dtype, (double)(total / (long double)count)));
}

static void
pad(const struct interp_node *x)
{
    const struct tensor *out = x->out;
    const int64_t *low = x->attr + 1;
    int64_t n = tensor_count(out), base = 0;
    for (int64_t k = 0; k < n; k++)
        tensor_put(out, k, (uint64_t)x->attr[2 * (out->rank + 1)]);
    struct tensor inner = *out;
    for (uint32_t i = 0; i < out->rank; i++) {
        base += low[i] * out->stride[i];
        inner.dim[i] = x->in[0]->dim[i];
    }
    inner = moved(inner, base);
    interp_copy(&inner, x->in[0]);
}

static void
concat(const struct interp_node *x)
{
    int64_t axis = x->attr[0], at = 0;
    for (uint32_t i = 0; i < x->n->nin; i++) {
        struct tensor part = moved(*x->out, at * x->out->stride[axis]);
        part.dim[axis] = x->in[i]->dim[axis];
        interp_copy(&part, x->in[i]);
        at += part.dim[axis];
    }
}

// The operand under other strides, as the view sees it.
static struct tensor
seen_through(const struct interp_node *x)
{
    struct tensor t = *x->in[0];
    const struct tensor from = t;
    uint32_t rank = x->out->rank;
    const int64_t *list = x->attr + 1;
    int64_t base = 0;
    for (uint32_t i = 0; i < rank; i++)
        switch (x->n->op) {
        case OP_permute:
            t.dim[i] = from.dim[list[i]];
            t.stride[i] = from.stride[list[i]];
            break;
        case OP_slice:
            base += x->out->dim[i] ? list[i] * from.stride[i] : 0;
            t.dim[i] = x->out->dim[i];
            t.stride[i] = list[2 * (rank + 1) + i] * from.stride[i];
            break;
        case OP_flip:
            for (int64_t k = 0; k < x->attr[0]; k++)
                if (list[k] == i && from.dim[i]) {
                    base += (from.dim[i] - 1) * from.stride[i];
                    t.stride[i] = -from.stride[i];
                }
            break;
        }
    return moved(t, base);
}

static void
view(const struct interp_node *x)
{
    if (x->n->op == OP_pad)
        return pad(x);
    if (x->n->op == OP_concat)
        return concat(x);
    if (x->n->op != OP_reshape) {
        struct tensor t = seen_through(x);
        return interp_copy(x->out, &t);
    }
    struct walk w; // reshape: the operand's elements in row-major order
    walk_start(&w, x->in[0]->rank, x->in[0]->dim);
    walk_follow(&w, x->in[0]);
    for (int64_t k = 0; w.left; walk_next(&w), k++)
        tensor_put(x->out, k, tensor_get(x->in[0], w.offset[0]));
}

static void
compute(const struct interp_node *x)
{
    const struct op_info *op = &op_table[x->n->op];
    switch ((enum op_kind)op->kind) {
    case OPK_LEAF: // inputs have their value already
        return tensor_put(x->out, 0, (uint64_t)x->attr[0]);
    case OPK_VIEW:
        return view(x);
    case OPK_INDEX:
    case OPK_SCATTER:
        return interp_index(x);
    case OPK_ORDER:
        return interp_order(x);
    case OPK_CONTRACT:
        return interp_matmul(x);
    case OPK_ELEM:
        return elementwise(x);
    case OPK_REDUCE:
    case OPK_SCAN:
        return interp_axes(x);
    case OPK_COMPOSITE:
        return op->rule == DTR_OWN ? interp_axes(x) : composite(x);
    default:
        CHECK(false, "%s in a graph", op->name);
    }
}

struct run {
    const struct graph *g;
    struct tensor *value;  // per node; data NULL: not computed (yet, or any more)
    uint32_t *uses;        // per node: operands and outputs that still want it
    struct diag *d;
};

static void
run_node(struct run *r, uint32_t i)
{
    const struct node *n = &r->g->node.at[i];
    const struct shape *s = graph_shape(r->g, (ref){i});
    const struct tensor **in = xmalloc((n->nin + 1) * sizeof *in);
    int64_t dim[MAX_RANK];
    for (uint32_t k = 0; k < n->nin; k++)
        in[k] = &r->value[node_in(r->g, n, k).i];
    for (uint32_t k = 0; k < s->rank; k++)
        dim[k] = dim_of(r->g, s, k);
    r->value[i] = dense(n->dtype, s->rank, dim);
    struct interp_node x = {r->g, n, graph_attr(r->g, (ref){i}), in, &r->value[i], r->d};
    compute(&x);
    for (uint32_t k = 0; k < n->nin; k++) {
        uint32_t operand = node_in(r->g, n, k).i;
        if (!--r->uses[operand] && r->g->node.at[operand].op != OP_input) {
            xfree(r->value[operand].data);
            r->value[operand].data = NULL;
        }
    }
    xfree(in);
}

// Operands come before their users, so one walk backwards finds all that is needed.
static void
count_uses(struct run *r)
{
    for (uint32_t i = 0; i < r->g->outputs.n; i++)
        r->uses[r->g->outputs.at[i].node.i]++;
    for (uint32_t i = r->g->node.n; i-- > 1;)
        for (uint32_t k = 0; r->uses[i] && k < r->g->node.at[i].nin; k++)
            r->uses[graph_in(r->g, (ref){i}, k).i]++;
}

static bool
check_input(const struct graph *g, uint32_t i, const struct tensor *t, struct diag *d)
{
    const struct graph_input *gi = &g->inputs.at[i];
    const struct shape *s = graph_shape(g, gi->node);
    bool fits = t->dtype == graph_node(g, gi->node)->dtype && t->rank == s->rank;
    for (uint32_t k = 0; fits && k < s->rank; k++)
        fits = t->dim[k] == dim_of(g, s, k);
    if (fits)
        return true;
    struct str want = {0};
    shape_print(g, graph_node(g, gi->node)->dtype, s, &want);
    diag_set(d, DIAG_INVALID, "input %s: expected %s, got %s of rank %d with other sizes", gi->name,
             str_text(&want), dtype_name(t->dtype), t->rank);
    str_free(&want);
    return false;
}

bool
interp_graph(const struct graph *g, const struct tensor *in, struct tensor *out, struct diag *d)
{
    struct run r = {.g = g, .d = d};
    for (uint32_t i = 0; i < g->inputs.n; i++)
        if (!check_input(g, i, &in[i], d))
            return false;
    r.value = xcalloc(g->node.n, sizeof *r.value);
    r.uses = xcalloc(g->node.n, sizeof *r.uses);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        r.value[g->inputs.at[i].node.i] = in[i];
    count_uses(&r);
    for (uint32_t i = 1; i < g->node.n; i++)
        if (r.uses[i] && g->node.at[i].op != OP_input)
            run_node(&r, i);
    bool ok = d->code == DIAG_OK;
    for (uint32_t i = 0; i < g->outputs.n && ok; i++) {
        const struct tensor *v = &r.value[g->outputs.at[i].node.i];
        out[i] = dense(v->dtype, v->rank, v->dim);
        interp_copy(&out[i], v);
    }
    for (uint32_t i = 1; i < g->node.n; i++)
        if (g->node.at[i].op != OP_input)
            xfree(r.value[i].data);
    xfree(r.value);
    xfree(r.uses);
    return ok;
}

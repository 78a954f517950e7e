// pass.c: the skeleton that every graph-to-graph pass shares: liveness by one walk backwards, then
// one walk forwards that rewrites each live node, operands before users. The builders go through
// graph_build, so what a pass makes is typed, folded and hash-consed as what a user makes.
#include "passes/pass.h"

#include "ir/base/check.h"

bool *
graph_live(const struct graph *g)
{
    bool *live = xcalloc(g->node.n, 1);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        live[g->outputs.at[i].node.i] = true;
    for (uint32_t i = g->node.n; i-- > 1;) {
        const struct node *n = &g->node.at[i];
        if (n->op == OP_input)
            live[i] = true;
        if (live[i])
            for (uint32_t k = 0; k < n->nin; k++)
                live[node_in(g, n, k).i] = true;
    }
    return live;
}

static uint32_t *
count_uses(const struct graph *g, const bool *live)
{
    uint32_t *uses = xcalloc(g->node.n, sizeof *uses);
    for (uint32_t i = 1; i < g->node.n; i++)
        for (uint32_t k = 0; live[i] && k < g->node.at[i].nin; k++)
            uses[node_in(g, &g->node.at[i], k).i]++;
    for (uint32_t i = 0; i < g->outputs.n; i++)
        uses[g->outputs.at[i].node.i] += 2;
    return uses;
}

struct graph *
pass_run(const struct graph *src, const struct compile_options *o, pass_rewrite *rewrite)
{
    struct pass p = {.src = src, .dst = graph_new_like(src), .options = o,
                     .to = xcalloc(src->node.n, sizeof *p.to), .live = graph_live(src)};
    p.uses = count_uses(src, p.live);
    for (uint32_t i = 1; i < src->node.n; i++)
        if (p.live[i]) {
            p.origin = src->node.at[i].origin;
            p.to[i] = rewrite(&p, (ref){i});
        }
    for (uint32_t i = 0; i < src->outputs.n; i++)
        graph_add_output(p.dst, src->outputs.at[i].name, p.to[src->outputs.at[i].node.i]);
    xfree(p.to);
    xfree(p.live);
    xfree(p.uses);
    return p.dst;
}

ref
pass_operand(const struct pass *p, ref r, uint32_t i)
{
    return p->to[graph_in(p->src, r, i).i];
}

ref
pass_copy(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    ref few[4] = {{0}}, *in = n->nin > 4 ? xmalloc(n->nin * sizeof *in) : few;
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = pass_operand(p, r, i);
    ref out = graph_copy(p->dst, p->src, r, in);
    if (in != few)
        xfree(in);
    return out;
}

ref
pass_op(struct pass *p, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr,
        uint32_t nattr)
{
    struct diag d = {0};
    ref r = graph_build(p->dst, op, in, nin, attr, nattr, p->origin, &d);
    CHECK(r.i, "a pass built an ill-typed %s: %s", op_name(op), d.text);
    return r;
}

ref
pass_op1(struct pass *p, uint16_t op, ref a)
{
    return pass_op(p, op, &a, 1, NULL, 0);
}

ref
pass_op2(struct pass *p, uint16_t op, ref a, ref b)
{
    ref in[] = {a, b};
    return pass_op(p, op, in, 2, NULL, 0);
}

ref
pass_op3(struct pass *p, uint16_t op, ref a, ref b, ref c)
{
    ref in[] = {a, b, c};
    return pass_op(p, op, in, 3, NULL, 0);
}

ref
pass_cast(struct pass *p, ref a, uint8_t dtype)
{
    if (graph_node(p->dst, a)->dtype == dtype)
        return a;
    int64_t to = dtype;
    return pass_op(p, OP_cast, &a, 1, &to, 1);
}

ref
pass_number(struct pass *p, uint8_t dtype, double x)
{
    return graph_literal(p->dst, dtype, scalar_from_double(dtype, x), p->origin);
}

ref
pass_reduce(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes, bool keepdims)
{
    int64_t attr[MAX_RANK + 3] = {naxes};
    for (uint32_t i = 0; i < naxes; i++)
        attr[1 + i] = axes[i];
    attr[1 + naxes] = keepdims;
    return pass_op(p, op, &a, 1, attr, naxes + 2);
}

static ref
to_shape(struct pass *p, uint16_t op, ref a, const struct shape *s)
{
    if (shape_equal(graph_shape(p->dst, a), s))
        return a;
    int64_t attr[MAX_RANK + 1] = {s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        attr[1 + i] = s->dim[i].v;
    return pass_op(p, op, &a, 1, attr, s->rank + 1u);
}

ref
pass_slice(struct pass *p, ref a, uint32_t axis, int64_t start, int64_t step, int64_t n)
{
    const struct shape s = *graph_shape(p->dst, a);
    int64_t attr[3 * (MAX_RANK + 1)];
    int64_t *first = attr, *stop = attr + 1 + s.rank, *by = attr + 2 + 2 * s.rank;
    *first = *stop = *by = s.rank; // lists with their lengths
    for (uint32_t d = 0; d < s.rank; d++) {
        first[1 + d] = d == axis ? start : 0;
        stop[1 + d] = d == axis ? start + (n - 1) * step + 1 : dim_of(p->dst, &s, d);
        by[1 + d] = d == axis ? step : 1;
    }
    return pass_op(p, OP_slice, &a, 1, attr, 3 * (1u + s.rank));
}

ref
pass_reshape(struct pass *p, ref a, const struct shape *s)
{
    return to_shape(p, OP_reshape, a, s);
}

ref
pass_broadcast(struct pass *p, ref a, const struct shape *s)
{
    return to_shape(p, OP_broadcast, a, s);
}

// eager.c: what eager execution of a graph costs: one kernel for each op as the user called it,
// operands read and results written once each. Views that only change strides are free.
#include "passes/pipeline.h"

static bool
is_alias(const struct graph *g, ref r)
{
    return op_table[graph_node(g, r)->op].flags & OPF_ALIAS;
}

bool
runs_eagerly(const struct graph *g, ref r)
{
    return !op_is(graph_node(g, r)->op, OPK_LEAF) && !is_alias(g, r);
}

// The memory that reading a node touches: a broadcast view no more than what it views.
static int64_t
bytes_behind(const struct graph *g, ref r)
{
    int64_t bytes = graph_bytes(g, r);
    while (is_alias(g, r)) {
        r = graph_in(g, r, 0);
        int64_t b = graph_bytes(g, r);
        bytes = b < bytes ? b : bytes;
    }
    return graph_node(g, r)->op == OP_literal ? 0 : bytes;
}

static ref
owner(const struct graph *g, ref r)
{
    while (is_alias(g, r))
        r = graph_in(g, r, 0);
    return r;
}

// One array that attention stores between its kernels: a number for each pair of positions.
static int64_t
score_bytes(const struct graph *g, ref r)
{
    if (!(op_table[graph_node(g, r)->op].flags & OPF_SCORES))
        return 0;
    struct shape s = *graph_shape(g, r);
    const struct shape *k = graph_shape(g, graph_in(g, r, 1));
    s.dim[s.rank - 1] = k->dim[k->rank - 2];
    uint8_t dtype = graph_node(g, r)->dtype; // f16 and bf16 are f32 there
    return shape_count(g, &s) * (dtype_is_half(dtype) ? 4 : dtype_size(dtype));
}

static int64_t
eager_peak(const struct graph *g)
{
    uint32_t *last = xcalloc(g->node.n, sizeof *last);
    for (uint32_t i = 1; i < g->node.n; i++)
        for (uint32_t k = 0; k < g->node.at[i].nin; k++)
            last[owner(g, node_in(g, &g->node.at[i], k)).i] = i;
    for (uint32_t i = 0; i < g->outputs.n; i++)
        last[owner(g, g->outputs.at[i].node).i] = UINT32_MAX;
    // Arrays by the step after which they are free.
    uint32_t *head = xcalloc(g->node.n, sizeof *head), *next = xcalloc(g->node.n, sizeof *next);
    for (uint32_t i = 1; i < g->node.n; i++)
        if (runs_eagerly(g, (ref){i}) && last[i] != UINT32_MAX && last[i]) {
            next[i] = head[last[i]];
            head[last[i]] = i;
        }
    int64_t live = 0, peak = 0;
    for (uint32_t i = 1; i < g->node.n; i++) {
        if (runs_eagerly(g, (ref){i}))
            live += graph_bytes(g, (ref){i});
        int64_t most = live + 2 * score_bytes(g, (ref){i});
        peak = most > peak ? most : peak;
        for (uint32_t x = head[i]; x; x = next[x])
            live -= graph_bytes(g, (ref){x});
    }
    xfree(last);
    xfree(head);
    xfree(next);
    return peak;
}

void
plan_eager_figures(struct plan *p)
{
    const struct graph *g = p->raw;
    p->eager_kernels = 0;
    p->eager_bytes = 0;
    for (uint32_t i = 1; i < g->node.n; i++) {
        const struct node *n = &g->node.at[i];
        if (!runs_eagerly(g, (ref){i}) || shape_count(g, graph_shape(g, (ref){i})) == 0)
            continue;
        int64_t scores = score_bytes(g, (ref){i});
        p->eager_kernels += scores ? 3 : 1;
        p->eager_bytes += graph_bytes(g, (ref){i}) + 4 * scores;
        for (uint32_t k = 0; k < n->nin; k++) {
            ref in = node_in(g, n, k);
            bool again = false;
            for (uint32_t j = 0; j < k && n->nin <= 4; j++)
                again |= node_in(g, n, j).i == in.i;
            int64_t bytes = bytes_behind(g, in), result = graph_bytes(g, (ref){i});
            if (k == 0 && op_is(n->op, OPK_INDEX)) // no more than what is picked
                bytes = bytes < result ? bytes : result;
            if (!again)
                p->eager_bytes += bytes;
        }
    }
    p->eager_peak_bytes = eager_peak(g);
}

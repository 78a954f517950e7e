// specialise.c: the private copy that a plan is built from. Dims become the numbers that their
// hints say (the plan is guarded on them), and every op gets an origin of its own, so that each
// kernel can name the user's calls that it computes.
#include "passes/pipeline.h"

#include "ir/schema.h"
#include "passes/pass.h"

static struct shape
numbers(const struct graph *g, const struct shape *s)
{
    struct shape out = {.rank = s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        out.dim[i] = sym_num(dim_of(g, s, i));
    return out;
}

// Attribute rows hold dims as sym.v: they become numbers too.
static int64_t *
numeric_attr(const struct graph *g, const struct node *n, struct arena *mem)
{
    const struct attr *a = &g->attrs.at[n->attr];
    int64_t *v = arena_copy(mem, a->v, a->n * sizeof *v);
    struct schema_field field[SCHEMA_MAX];
    uint32_t nfield = schema_fields(op_table[n->op].attrs, field), at = 0;
    for (uint32_t i = 0; i < nfield; i++) {
        uint32_t count = field[i].type == ATTR_INTS || field[i].type == ATTR_DIMS
                             ? (uint32_t)v[at++]
                             : 1;
        for (uint32_t k = 0; k < count && field[i].type == ATTR_DIMS; k++)
            v[at + k] = sym_hint(g->sym, (sym){v[at + k]});
        at += count;
    }
    return v;
}

struct graph *
graph_specialise(const struct graph *g)
{
    struct graph *out = graph_new(g->name);
    bool *live = graph_live(g);
    ref *to = xcalloc(g->node.n, sizeof *to);
    VEC(ref) in = {0};
    for (uint32_t i = 1; i < g->node.n; i++) {
        const struct node *n = &g->node.at[i];
        if (!live[i])
            continue;
        struct shape s = numbers(g, &g->shapes.at[n->shape]);
        if (n->op == OP_input) {
            const struct graph_input *gi = &g->inputs.at[graph_attr(g, (ref){i})[0]];
            to[i] = graph_add_input(out, gi->name, n->dtype, &s, gi->dense ? NULL : gi->stride,
                                    gi->align_log2);
            out->inputs.at[out->inputs.n - 1].by_value = gi->by_value;
            continue;
        }
        const struct origin *o = &g->origins.at[n->origin];
        uint32_t origin = n->op == OP_literal ? 0 : graph_add_origin(out, n->op, o->file, o->line);
        in.n = 0;
        for (uint32_t k = 0; k < n->nin; k++)
            vec_push(&in, to[node_in(g, n, k).i]);
        int64_t *attr = numeric_attr(g, n, &out->mem);
        to[i] = graph_add(out, n->op, n->dtype, graph_add_shape(out, &s),
                          graph_add_attr(out, attr, g->attrs.at[n->attr].n), in.at, n->nin, origin);
    }
    for (uint32_t i = 0; i < g->outputs.n; i++)
        graph_add_output(out, g->outputs.at[i].name, to[g->outputs.at[i].node.i]);
    vec_free(&in);
    xfree(live);
    xfree(to);
    return out;
}

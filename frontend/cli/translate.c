// translate.c: walks a graph and calls the public interface's op functions through the one that
// takes any op (frontend/call.h). Handles are released after their last use, as a program that
// nests its calls within scopes would. Everything that can be is prepared once: a run is the calls
// alone, so that what a caller of the interface pays can be measured.
#include "frontend/cli/translate.h"

#include "frontend/call.h"
#include "ir/schema.h"

struct step {
    uint32_t node;
    uint16_t op;
    uint32_t nin, nattr;
    const uint32_t *in; // nodes
    const int64_t *attr;
    const char *file;
    int line;
    uint32_t ndone;
    const uint32_t *done; // nodes that no later step needs
};

struct translation {
    const struct graph *g;
    VEC(struct step) step;
    fc_tensor *value;   // per node
    fc_tensor *operand; // scratch of a call
    struct arena mem;
};

static int64_t *
numeric_attr(struct translation *t, const struct node *n) // dims as plain numbers
{
    const struct attr *a = &t->g->attrs.at[n->attr];
    int64_t *v = arena_copy(&t->mem, a->v, a->n * sizeof *v);
    struct schema_field field[SCHEMA_MAX];
    uint32_t nfield = schema_fields(op_table[n->op].attrs, field), at = 0;
    for (uint32_t i = 0; i < nfield; i++) {
        bool list = field[i].type == ATTR_INTS || field[i].type == ATTR_DIMS;
        uint32_t count = list ? (uint32_t)v[at++] : 1;
        for (uint32_t k = 0; k < count && field[i].type == ATTR_DIMS; k++)
            v[at + k] = sym_hint(t->g->sym, (sym){v[at + k]});
        at += count;
    }
    return v;
}

static void
add_step(struct translation *t, uint32_t node)
{
    const struct node *n = &t->g->node.at[node];
    const struct origin *o = &t->g->origins.at[n->origin];
    uint32_t *in = arena_alloc(&t->mem, n->nin * sizeof *in);
    for (uint32_t k = 0; k < n->nin; k++)
        in[k] = node_in(t->g, n, k).i;
    struct step s = {.node = node, .op = n->op, .nin = n->nin, .in = in,
                     .nattr = t->g->attrs.at[n->attr].n, .attr = numeric_attr(t, n),
                     .file = n->origin && o->file ? o->file : "graph", .line = (int)o->line};
    vec_push(&t->step, s);
}

static void
find_last_uses(struct translation *t)
{
    const struct graph *g = t->g;
    bool *later = xcalloc(g->node.n, sizeof *later); // a later step or the caller needs it
    VEC(uint32_t) done = {0};
    for (uint32_t i = 0; i < g->outputs.n; i++)
        later[g->outputs.at[i].node.i] = true;
    for (uint32_t i = t->step.n; i-- > 0;) {
        struct step *s = &t->step.at[i];
        done.n = 0;
        for (uint32_t k = 0; k <= s->nin; k++) {
            uint32_t node = k < s->nin ? s->in[k] : s->node;
            if (!later[node] && g->node.at[node].op != OP_input)
                vec_push(&done, node);
            later[node] = true;
        }
        s->ndone = done.n;
        s->done = arena_copy(&t->mem, done.at, done.n * sizeof *done.at);
    }
    vec_free(&done);
    xfree(later);
}

struct translation *
translate_new(const struct graph *g)
{
    struct translation *t = xcalloc(1, sizeof *t);
    uint32_t most = 0;
    t->g = g;
    for (uint32_t i = 1; i < g->node.n; i++) {
        if (g->node.at[i].op != OP_input)
            add_step(t, i);
        most = g->node.at[i].nin > most ? g->node.at[i].nin : most;
    }
    find_last_uses(t);
    t->value = xcalloc(g->node.n, sizeof *t->value);
    t->operand = xcalloc(most + 1, sizeof *t->operand);
    return t;
}

void
translate_free(struct translation *t)
{
    if (!t)
        return;
    vec_free(&t->step);
    xfree(t->value);
    xfree(t->operand);
    arena_free(&t->mem);
    xfree(t);
}

static fc_tensor
literal(fc_context *ctx, uint8_t dtype, uint64_t bits) // fc_scalar with a dtype of its own
{
    context_lock(ctx);
    fc_tensor t = slot_new(ctx, value_literal(ctx, dtype, bits, false));
    context_unlock(ctx);
    return t;
}

static bool
is_invalid(fc_tensor t)
{
    return !(t.id & (((uint64_t)1 << SLOT_BITS) - 1));
}

static fc_tensor
call(struct translation *t, fc_context *ctx, const struct step *s)
{
    if (s->op == OP_literal)
        return literal(ctx, t->g->node.at[s->node].dtype, (uint64_t)s->attr[0]);
    for (uint32_t k = 0; k < s->nin; k++)
        t->operand[k] = t->value[s->in[k]];
    return call_op(ctx, s->op, t->operand, s->nin, s->attr, s->nattr, s->file, s->line);
}

static void
release_node(struct translation *t, uint32_t node)
{
    if (!is_invalid(t->value[node]) && t->g->node.at[node].op != OP_input)
        fc_release(t->value[node]);
    t->value[node] = (fc_tensor){0};
}

bool
translate_run(struct translation *t, fc_context *ctx, const fc_tensor *in, fc_tensor *out)
{
    const struct graph *g = t->g;
    for (uint32_t i = 0; i < g->inputs.n; i++)
        t->value[g->inputs.at[i].node.i] = in[i];
    for (uint32_t i = 0; i < t->step.n; i++) {
        const struct step *s = &t->step.at[i];
        fc_tensor made = call(t, ctx, s);
        t->value[s->node] = made;
        if (is_invalid(made)) {
            for (uint32_t node = 1; node < g->node.n; node++)
                release_node(t, node);
            return false;
        }
        for (uint32_t k = 0; k < s->ndone; k++)
            release_node(t, s->done[k]);
    }
    for (uint32_t i = 0; i < g->outputs.n; i++)
        out[i] = t->value[g->outputs.at[i].node.i];
    for (uint32_t i = 0; i < g->outputs.n; i++)
        t->value[g->outputs.at[i].node.i] = (fc_tensor){0};
    return true;
}

void
translate_release(const struct translation *t, const fc_tensor *out)
{
    const struct graph *g = t->g;
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        ref r = g->outputs.at[i].node;
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= g->outputs.at[k].node.i == r.i;
        if (!again && graph_node(g, r)->op != OP_input)
            fc_release(out[i]);
    }
}

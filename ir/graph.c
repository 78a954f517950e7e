// graph.c: the op graph. Every record is interned: a shape, an attribute row, an origin or a node
// that equals one already there gets its number. Nodes hash over op, dtype, shape, attributes and
// operand numbers; inputs are always new. Hashes only find candidates, equality decides.
#include "ir/graph.h"

#include "ir/base/check.h"
#include "ir/base/str.h"

#include <string.h>

struct graph *
graph_new_over(const char *name, struct symtab *symbols)
{
    struct graph *g = xcalloc(1, sizeof *g);
    g->name = arena_strdup(&g->mem, name ? name : "");
    vec_push(&g->node, ((struct node){0}));
    vec_push(&g->shapes, ((struct shape){0}));
    vec_push(&g->attrs, ((struct attr){0}));
    vec_push(&g->origins, ((struct origin){.file = ""}));
    vec_push(&g->edges, ((ref){0}));
    g->sym = symbols;
    g->borrow_sym = true;
    return g;
}

struct graph *
graph_new(const char *name)
{
    struct graph *g = graph_new_over(name, symtab_new());
    g->borrow_sym = false;
    return g;
}

struct graph *
graph_new_like(const struct graph *src)
{
    struct graph *g = graph_new_over(src->name, src->sym);
    for (uint32_t i = 1; i < src->origins.n; i++) {
        struct origin o = src->origins.at[i];
        o.file = *o.file ? arena_strdup(&g->mem, o.file) : "";
        vec_push(&g->origins, o);
    }
    return g;
}

void
graph_free(struct graph *g)
{
    if (!g)
        return;
    vec_free(&g->node);
    vec_free(&g->edges);
    vec_free(&g->shapes);
    vec_free(&g->attrs);
    vec_free(&g->origins);
    vec_free(&g->inputs);
    vec_free(&g->outputs);
    map_free(&g->node_map);
    map_free(&g->shape_map);
    map_free(&g->attr_map);
    map_free(&g->origin_map);
    if (!g->borrow_sym)
        symtab_free(g->sym);
    arena_free(&g->mem);
    xfree(g);
}

bool
shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i].v != b->dim[i].v)
            return false;
    return true;
}

uint32_t
graph_add_shape(struct graph *g, const struct shape *s)
{
    uint64_t h = hash_mix(1, s->rank);
    for (uint32_t i = 0; i < s->rank; i++)
        h = hash_mix(h, (uint64_t)s->dim[i].v);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&g->shape_map, h, &at));)
        if (shape_equal(&g->shapes.at[id], s))
            return id;
    uint32_t id = g->shapes.n;
    struct shape copy = {.rank = s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        copy.dim[i] = s->dim[i];
    vec_push(&g->shapes, copy);
    map_add(&g->shape_map, h, id);
    return id;
}

uint32_t
graph_add_attr(struct graph *g, const int64_t *v, uint32_t n)
{
    if (!n)
        return 0;
    uint64_t h = hash_bytes(2, v, n * sizeof *v);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&g->attr_map, h, &at));)
        if (g->attrs.at[id].n == n && !memcmp(g->attrs.at[id].v, v, n * sizeof *v))
            return id;
    uint32_t id = g->attrs.n;
    struct attr row = {n, arena_copy(&g->mem, v, n * sizeof *v)};
    vec_push(&g->attrs, row);
    map_add(&g->attr_map, h, id);
    return id;
}

static uint32_t
intern_origin(struct graph *g, struct origin o)
{
    uint64_t h = hash_mix(hash_mix(hash_mix(3, o.op), o.line), (uint64_t)o.a << 32 | o.b);
    h = hash_bytes(h, o.file, strlen(o.file));
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&g->origin_map, h, &at));) {
        const struct origin *p = &g->origins.at[id];
        if (p->op == o.op && p->line == o.line && p->a == o.a && p->b == o.b &&
            !strcmp(p->file, o.file))
            return id;
    }
    uint32_t id = g->origins.n;
    o.file = *o.file ? arena_strdup(&g->mem, o.file) : "";
    vec_push(&g->origins, o);
    map_add(&g->origin_map, h, id);
    return id;
}

uint32_t
graph_add_origin(struct graph *g, uint16_t op, const char *file, uint32_t line)
{
    // Two calls on one line are two user ops: each call gets a number of its own.
    uint32_t id = g->origins.n;
    const char *copy = file && *file ? arena_strdup(&g->mem, file) : "";
    struct origin o = {.op = op, .line = line, .file = copy};
    vec_push(&g->origins, o);
    return id;
}

static uint32_t
calls_behind(const struct graph *g, uint32_t origin)
{
    const struct origin *o = &g->origins.at[origin];
    return o->op ? 1 : o->calls;
}

static uint32_t
join_origins(struct graph *g, uint32_t a, uint32_t b)
{
    if (!a || a == b)
        return b;
    if (!b)
        return a;
    uint32_t known = a;
    if (a > b) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    const struct origin *p = &g->origins.at[b];
    if (p->op == OP_none && (p->a == a || p->b == a))
        return b;
    uint32_t calls = calls_behind(g, a) + calls_behind(g, b);
    if (calls > ORIGINS_MOST)
        return known;
    return intern_origin(g, (struct origin){.file = "", .calls = (uint16_t)calls, .a = a, .b = b});
}

static bool
node_equal(const struct graph *g, const struct node *a, const struct node *b, const ref *in)
{
    if (a->op != b->op || a->dtype != b->dtype || a->shape != b->shape || a->attr != b->attr ||
        a->nin != b->nin || a->region != b->region)
        return false;
    for (uint32_t i = 0; i < a->nin; i++)
        if (node_in(g, a, i).i != in[i].i)
            return false;
    return true;
}

static ref
append_node(struct graph *g, struct node n, const ref *in)
{
    if (n.nin > 4) {
        n.in[0].i = g->edges.n;
        for (uint32_t i = 0; i < n.nin; i++)
            vec_push(&g->edges, in[i]);
    } else {
        for (uint32_t i = 0; i < n.nin; i++)
            n.in[i] = in[i];
    }
    vec_push(&g->node, n);
    return (ref){g->node.n - 1};
}

ref
graph_add(struct graph *g, uint16_t op, uint8_t dtype, uint32_t shape, uint32_t attr,
          const ref *in, uint32_t nin, uint32_t origin)
{
    struct node n = {.op = op, .dtype = dtype, .nin = nin, .shape = shape, .attr = attr,
                     .origin = origin};
    uint64_t h = hash_mix(hash_mix(4, (uint64_t)op << 8 | dtype), (uint64_t)shape << 32 | attr);
    for (uint32_t i = 0; i < nin; i++) {
        CHECK(in[i].i && in[i].i < g->node.n, "%s: operand %u is no node", op_name(op), i);
        h = hash_mix(h, in[i].i);
    }
    n.hash = h;
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&g->node_map, h, &at));)
        if (node_equal(g, &g->node.at[id], &n, in)) {
            uint32_t *known = &g->node.at[id].origin;
            if (op == OP_literal)
                *known = *known == origin ? origin : 0;
            else
                *known = join_origins(g, *known, origin);
            return (ref){id};
        }
    ref r = append_node(g, n, in);
    map_add(&g->node_map, h, r.i);
    return r;
}

static uint32_t
copy_shape(struct graph *g, const struct graph *src, uint32_t shape)
{
    return graph_add_shape(g, &src->shapes.at[shape]);
}

ref
graph_copy(struct graph *g, const struct graph *src, ref r, const ref *in)
{
    CHECK(g->sym == src->sym, "graph_copy between graphs of different symbol tables");
    const struct node *n = graph_node(src, r);
    const struct attr *a = &src->attrs.at[n->attr];
    if (n->op == OP_input) {
        const struct graph_input *gi = &src->inputs.at[a->v[0]];
        ref out = graph_add_input(g, gi->name, n->dtype, graph_shape(src, r), gi->stride,
                                  gi->align_log2);
        g->inputs.at[g->inputs.n - 1].by_value = gi->by_value;
        g->node.at[out.i].origin = n->origin;
        return out;
    }
    return graph_add(g, n->op, n->dtype, copy_shape(g, src, n->shape),
                     graph_add_attr(g, a->v, a->n), in, n->nin, n->origin);
}

ref
graph_add_input(struct graph *g, const char *name, uint8_t dtype, const struct shape *s,
                const int64_t *stride, uint8_t align_log2)
{
    struct graph_input gi = {.name = arena_strdup(&g->mem, name ? name : ""),
                             .align_log2 = align_log2, .dense = true};
    int64_t run = 1;
    for (uint32_t i = s->rank; i-- > 0;) {
        int64_t d = sym_hint(g->sym, s->dim[i]);
        gi.stride[i] = stride ? stride[i] : run;
        if (gi.stride[i] != run && d != 1)
            gi.dense = false;
        run *= d;
    }
    int64_t index = g->inputs.n;
    struct node n = {.op = OP_input, .dtype = dtype, .shape = graph_add_shape(g, s),
                     .attr = graph_add_attr(g, &index, 1)};
    n.hash = hash_mix(5, (uint64_t)index);
    gi.node = append_node(g, n, NULL);
    vec_push(&g->inputs, gi);
    return gi.node;
}

void
graph_add_output(struct graph *g, const char *name, ref r)
{
    struct graph_output o = {arena_strdup(&g->mem, name ? name : ""), r};
    vec_push(&g->outputs, o);
}

ref
graph_literal(struct graph *g, uint8_t dtype, uint64_t bits, uint32_t origin)
{
    int64_t v = (int64_t)bits;
    struct shape scalar = {0};
    return graph_add(g, OP_literal, dtype, graph_add_shape(g, &scalar), graph_add_attr(g, &v, 1),
                     NULL, 0, origin);
}

int64_t
shape_count(const struct graph *g, const struct shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= dim_of(g, s, i);
    return n;
}

int64_t
graph_bytes(const struct graph *g, ref r)
{
    return shape_count(g, graph_shape(g, r)) * dtype_size(graph_node(g, r)->dtype);
}

void
shape_print(const struct graph *g, uint8_t dtype, const struct shape *s, struct str *out)
{
    str_printf(out, "%s[", dtype_name(dtype));
    for (uint32_t i = 0; i < s->rank; i++) {
        if (i)
            str_add(out, ", ");
        sym_print(g->sym, s->dim[i], out);
    }
    str_add(out, "]");
}

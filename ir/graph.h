// graph.h: the op graph. Nodes are fixed-size records in an append-only array, in topological
// order (operands come first), hash-consed as they are added. A pass walks a graph in order and
// builds a new one. Everything a graph refers to (shapes, attributes, origins, names) lives in it.
#ifndef FUSEC_IR_GRAPH_H
#define FUSEC_IR_GRAPH_H

#include "ir/base/hash.h"
#include "ir/base/mem.h"
#include "ir/diag.h"
#include "ir/dtype.h"
#include "ir/ops.h"
#include "ir/sym.h"

typedef struct {
    uint32_t i; // 0 = none
} ref;

enum { MAX_RANK = 8 };

struct shape { // interned: equal shapes of one graph are one id
    uint8_t rank;
    sym dim[MAX_RANK];
};

// Attributes: one interned row of 64-bit words per node, laid out as the op's schema
// (op_info.attrs) says, field after field: int, bool, dtype one word; float the bits of a double;
// bits a scalar of the node's dtype; ints a count, then the values; dims a count, then sym.v.
struct attr {
    uint32_t n;
    const int64_t *v;
};

struct node {
    uint16_t op;
    uint8_t dtype, spare;
    uint32_t nin;
    uint32_t shape; // graph_shape
    uint32_t attr;  // graph_attr; 0 = empty
    ref in[4];      // nin > 4: in[0].i is the start of nin entries of graph.edges
    uint32_t origin; // origins: what the user called
    uint32_t region; // a sub-graph; 0 = none
    uint64_t hash;
};
_Static_assert(sizeof(struct node) == 48, "nodes are 48 bytes");

// What a node came from: one user call (op, file, line) or, after rewriting, a set of them. Sets
// stay small: of what very many calls share, the first ORIGINS_MOST are told.
enum { ORIGINS_MOST = 64 };
struct origin {
    uint16_t op;      // OP_none: a union of a and b
    uint16_t calls;   // of a union: at most so many
    uint32_t line;
    const char *file; // "" when unknown
    uint32_t a, b;
};

// A tensor that the caller provides. Strides are in elements; a dense input has row-major strides.
struct graph_input {
    const char *name;
    ref node;
    int64_t stride[MAX_RANK];
    bool dense;      // strides are row-major
    uint8_t align_log2; // of the first element's address, at most 6
    bool by_value;      // a number of the host's, 8 bytes, wherever the others are
};

struct graph_output {
    const char *name; // may be ""
    ref node;
};

struct graph {
    const char *name;
    VEC(struct node) node; // node.at[0] is a dummy
    VEC(ref) edges;
    VEC(struct shape) shapes;
    VEC(struct attr) attrs;
    VEC(struct origin) origins;
    VEC(struct graph_input) inputs;
    VEC(struct graph_output) outputs;
    struct symtab *sym; // owned, unless borrow_sym
    bool borrow_sym;
    struct map node_map, shape_map, attr_map, origin_map;
    struct arena mem;
};

struct graph *graph_new(const char *name); // the name is copied
// Shapes are over somebody else's symbols: borrowed, they must outlive the graph.
struct graph *graph_new_over(const char *name, struct symtab *symbols);
// The same name, and g's origins under their numbers; shares g's symtab, so g must outlive it.
struct graph *graph_new_like(const struct graph *g);
void graph_free(struct graph *g);

static inline const struct node *
graph_node(const struct graph *g, ref r)
{
    return &g->node.at[r.i];
}
static inline const struct shape *
graph_shape(const struct graph *g, ref r)
{
    return &g->shapes.at[g->node.at[r.i].shape];
}
static inline const int64_t *
graph_attr(const struct graph *g, ref r)
{
    return g->attrs.at[g->node.at[r.i].attr].v;
}
static inline ref
node_in(const struct graph *g, const struct node *n, uint32_t i)
{
    return n->nin > 4 ? g->edges.at[n->in[0].i + i] : n->in[i];
}
static inline ref
graph_in(const struct graph *g, ref r, uint32_t i)
{
    return node_in(g, &g->node.at[r.i], i);
}

uint32_t graph_add_shape(struct graph *g, const struct shape *s);
uint32_t graph_add_attr(struct graph *g, const int64_t *v, uint32_t n);
uint32_t graph_add_origin(struct graph *g, uint16_t op, const char *file, uint32_t line);

// Adds a node as given (dtype and shape already known), or returns the equal one that exists (its
// origins joined with this one's; a literal of several calls is nobody's).
ref graph_add(struct graph *g, uint16_t op, uint8_t dtype, uint32_t shape, uint32_t attr,
              const ref *in, uint32_t nin, uint32_t origin);

// Copies a node of another graph with new operands (already in g). Shape and attributes are
// interned anew; g's symtab must be src's.
ref graph_copy(struct graph *g, const struct graph *src, ref r, const ref *in);

// Adds an input, always a new node.
ref graph_add_input(struct graph *g, const char *name, uint8_t dtype, const struct shape *s,
                    const int64_t *stride, uint8_t align_log2); // stride NULL: dense
void graph_add_output(struct graph *g, const char *name, ref r);
ref graph_literal(struct graph *g, uint8_t dtype, uint64_t bits, uint32_t origin);

// Infers dtype and shape, inserts the casts that promotion asks for, adds the node. On a mistake:
// ref 0 and d says which op, which shapes, and what would be right.
ref graph_build(struct graph *g, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr,
                uint32_t nattr, uint32_t origin, struct diag *d);

// Row-major element count under the hints.
int64_t shape_count(const struct graph *g, const struct shape *s);
bool shape_equal(const struct shape *a, const struct shape *b); // the same dims for all values
int64_t graph_bytes(const struct graph *g, ref r); // of a node's elements, dense
static inline int64_t
dim_of(const struct graph *g, const struct shape *s, uint32_t i)
{
    return sym_hint(g->sym, s->dim[i]);
}
struct str;
void shape_print(const struct graph *g, uint8_t dtype, const struct shape *s, struct str *out);

#endif

// text.h: the .fuse form. parse(print(g)) is g: same nodes in the same order, same names of inputs,
// outputs and dims; a printed graph is canonical, so print(parse(t)) is a fixed point.
#ifndef FUSEC_IR_TEXT_H
#define FUSEC_IR_TEXT_H

#include "ir/graph.h"

struct str;
void graph_print(const struct graph *g, struct str *out);
// Marks one node with words beside it: how verifier errors are shown.
void graph_print_marked(const struct graph *g, ref mark, const char *words, struct str *out);
// NULL on an error: d says file:line:column, what was found and what was expected.
struct graph *graph_parse(const char *text, size_t n, const char *file, struct diag *d);
// The public op whose name is most like this one (shorter than 32); NULL: none is.
const char *op_nearest(const char *name);
// Re-infers every node and compares: shapes, dtypes, operand order, attribute ranges.
bool graph_verify(const struct graph *g, struct diag *d);
// The same; where: the node to mark in a dump (0: the graph as a whole).
bool graph_verify_at(const struct graph *g, ref *where, struct diag *d);

#endif

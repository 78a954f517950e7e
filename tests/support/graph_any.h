// graph_any.h: seeded random graphs of all ops of the table, over values of all shapes and dtypes
// that come up, valid by construction. What an input must hold is in its name, so that a graph
// printed and read again is run on the same values.
#ifndef FUSEC_TESTS_GRAPH_ANY_H
#define FUSEC_TESTS_GRAPH_ANY_H

#include "tests/support/op_cases.h"

struct any_options {
    uint64_t seed;
    int64_t n;    // the extent that most axes have
    uint32_t ops; // wanted
    bool halves;  // f16 and bf16 too
    bool tiny;    // all axes of 1 to 3; many positions that other ops computed
};
struct graph *any_graph(const struct any_options *o);

// Memory for input i, as its name says; t: element 0 and strides. Seeds that 3 divides give special
// values, fill number seed / 3 % FILL_COUNT.
struct guarded any_input(const struct graph *g, uint32_t i, uint64_t seed, bool at_end,
                         struct tensor *t);

#endif

// graph_gen.h: seeded random graphs, valid by construction, and inputs for them.
#ifndef FUSEC_TESTS_GRAPH_GEN_H
#define FUSEC_TESTS_GRAPH_GEN_H

#include "ir/graph.h"
#include "ir/interp.h"

struct rng {
    uint64_t s;
};
uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n);
double rng_unit(struct rng *r); // [0, 1)

struct gen_options {
    uint64_t seed;
    uint32_t min_ops, max_ops;
    uint8_t dtype;      // of most inputs; DT_NONE: drawn
    bool views, reductions, matmul, composites, math, orders;
    bool strided;       // inputs with strides: gaps, reversed, broadcast
    bool mixed;         // inputs and casts of other dtypes too
    bool half;          // f16 and bf16 among them
    int64_t max_extent; // of a dim
    bool scalar;        // rank 0 throughout
    bool literal_inputs;// with scalar: literals of the very values that gen_input gives
    uint32_t swapped_op; // test of the tests: this op is replaced by another (OP_none: no)
};
struct graph *gen_graph(const struct gen_options *o);

// A buffer for one tensor whose last (or first) byte lies beside an inaccessible page.
struct guarded {
    void *map, *data;
    size_t mapped, bytes;
};
struct guarded guarded_alloc(size_t bytes, bool at_end);
void guarded_free(struct guarded *g);

// Input i of g, filled with finite numbers and a few NaN, infinities, denormals and zeros.
// t->data is the address of element 0, which negative strides put inside the buffer.
struct guarded gen_input(const struct graph *g, uint32_t i, uint64_t seed, bool at_end,
                         struct tensor *t);
// Whether two values of a dtype are the same, any NaN being equal to any other.
bool same_bits(uint8_t dtype, uint64_t a, uint64_t b);

#endif

// infer.h: inside graph_build: what an inference rule sees, and what the rules share.
#ifndef FUSEC_IR_INFER_H
#define FUSEC_IR_INFER_H

#include "ir/graph.h"

enum { INFER_ATTRS = 3 * (MAX_RANK + 1) }; // slice has the longest row

struct inference {
    struct graph *g;
    struct diag *d;
    uint16_t op;
    uint32_t origin, nin, nattr;
    ref *in;                   // a private copy: rules replace operands by casts of them
    int64_t attr[INFER_ATTRS]; // a private copy, checked against the schema; rules normalise it
    uint8_t dtype;             // result
    struct shape shape;        // result
    ref instead;               // set when an existing or simpler node is the result
    struct arena scratch;      // text of errors
};

// The rules of ops whose dtype rule is DTR_OWN, by kind. True: dtype and shape are set.
bool infer_view(struct inference *f);
bool infer_index(struct inference *f);
bool infer_order(struct inference *f);
bool infer_reduce(struct inference *f);  // reductions, scans and composites
// Checks the state, operand i, and takes the shape from the attributes where they begin with one.
bool infer_random(struct inference *f, uint32_t i);
bool infer_composite(struct inference *f); // the composites whose operands have other roles
bool infer_random_numbers(struct inference *f); // the composites of random_bits
bool infer_contract(struct inference *f);

// Offsets in bytes must fit in 62 bits whatever the dtype, counting empty axes as 1. So it is with
// results, and with what an op's expansion or its kernel has between operands and result: rules say
// so where that can be larger than both.
bool infer_size(struct inference *f, const struct shape *s, const char *what);

// Of the factors [M, K] and [K, N] of a contraction, each once for all of batch, the larger: with M
// or N 1 that is also the shape of what is summed (passes/decompose.c). batch has two axes to
// spare.
bool infer_factors(struct inference *f, const struct shape *batch, sym m, sym k, sym n);

// Records an error that starts with the op's name; returns false.
bool infer_error(struct inference *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *infer_shape_text(struct inference *f, const struct shape *s); // [3,4]
const char *infer_dim_text(struct inference *f, sym dim);

struct shape infer_in_shape(const struct inference *f, uint32_t i);
uint8_t infer_in_dtype(const struct inference *f, uint32_t i);
int64_t infer_hint(const struct inference *f, sym dim);

void infer_cast_in(struct inference *f, uint32_t i, uint8_t dtype);
uint8_t infer_promoted(const struct inference *f, uint32_t first, uint32_t n);
uint8_t infer_float_of(uint8_t dtype); // floats: themselves; <= 16-bit ints, bool: f32; else f64
void infer_to_float(struct inference *f, uint32_t n); // the result and the first n operands
bool infer_is_index(const struct inference *f, uint32_t i); // of integers, but not u64: signed

// -rank <= *axis < rank, made non-negative; else an error that names the operand's shape.
bool infer_axis(struct inference *f, int64_t *axis, const struct shape *s);
bool infer_axes(struct inference *f, int64_t *axes, int64_t n, const struct shape *s);
// One dim of two operands that must agree; *out takes the more specific of the two.
bool infer_same_dim(const struct inference *f, sym a, sym b, sym *out);
// NumPy's rule for any number of shapes. what: "shapes" or "batch shapes", for the error.
bool infer_broadcast(struct inference *f, const struct shape *s, uint32_t n, const char *what,
                     struct shape *out);

#endif

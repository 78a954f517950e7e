// bound.h: how far a result may lie from the graph interpreter's. A value travels through the graph
// together with a bound of its error; where only exact ops meet exact operands the bound is 0, and
// a result must have the very bits.
#ifndef FUSEC_TESTS_BOUND_H
#define FUSEC_TESTS_BOUND_H

#include "ir/interp.h"

// A tensor and how far each element may be off: NULL: none may; infinite: anything goes, since what
// is computed jumps nearby (a comparison of two inexact numbers that are close, say).
struct bounded {
    struct tensor value; // dense, as interp_graph gives it
    double *error;
};

// Runs g; out: one per output, to be freed with bounded_free. strict: f16 and bf16 values are
// rounded after every op (struct compile_options). False: d has the words of the interpreter, or
// says which composite's expansion is not what the interpreter computes.
bool bound_graph(const struct graph *g, const struct tensor *in, bool strict, struct bounded *out,
                 struct diag *d);
void bounded_free(struct bounded *b);

struct bound_tally {
    uint64_t exact, bounded, anything; // elements compared bit for bit, within a bound, not at all
};
// Compares dense memory with what it must be. where: 200 bytes of words about the first difference.
bool bound_check(const struct bounded *b, const void *got, struct bound_tally *t, char *where);

// The distance between neighbours of a float dtype about x.
double ulp_of(uint8_t dtype, double x);

#endif

// fixture.h: graphs, their inputs and right answers that were worked out apart from this code, read
// from the files tests/fixtures/*.txt, which Python scripts there make.
//
// A file has lines
//     v NAME DTYPE[DIMS] HEX        values, for any graph after it
//     g GRAPH                       a graph as .fuse text, on one line
//     i NAME                        its next input: values of that name
//     o DTYPE[DIMS] BOUND HEX       its next output, right to within BOUND, a word or two
//     r DTYPE[DIMS] UNITS SCALE HEX its next output. The values are the right ones as f64; what
//                                   comes out may be off by UNITS in the last place of DTYPE, of
//                                   the right value or of SCALE where that is larger
// and comments after #. An element is its bit pattern in hexadecimal, two digits a byte; - stands
// for no elements.
#ifndef FUSEC_TESTS_FIXTURE_H
#define FUSEC_TESTS_FIXTURE_H

#include "ir/interp.h"

enum { FIXTURE_TENSORS = 8 };

struct fixture_values {
    char name[32];
    uint8_t dtype;
    size_t n;
    void *data;
};

struct fixture_answer {
    char type[64];
    char bound[32];       // of o
    double units, scale;  // of r
    struct fixture_values right;
};

struct fixture {
    const char *file;
    uint32_t line; // of the graph
    struct graph *g;
    uint32_t nin, nout; // as many as g has
    struct tensor in[FIXTURE_TENSORS];
    struct fixture_answer out[FIXTURE_TENSORS];
};

// Calls f with each graph of a file in turn; returns how many there are. Fails the running test
// where the file makes no sense.
uint32_t fixtures_each(const char *file, void (*f)(const struct fixture *f, void *to), void *to);
// Fails the running test unless output i of the graph has the type that stands in the file.
void fixture_must_have_type(const struct fixture *f, uint32_t i);

#endif

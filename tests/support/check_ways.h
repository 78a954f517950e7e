// check_ways.h: one graph computed in four ways that must agree: by the graph interpreter, fused on
// a device, op by op on the device, and fused in the kernel interpreter. Fails no test; says what
// differs, so that a caller can go on: cut the graph down, or be glad that a planted bug was found.
#ifndef FUSEC_TESTS_CHECK_WAYS_H
#define FUSEC_TESTS_CHECK_WAYS_H

#include "runtime/device.h"
#include "tests/support/bound.h"

struct outcome {
    bool failed;
    char words[600];
    struct bound_tally compared; // added to
};
// Inputs as any_input gives them for the seed, which also draws strict, and whether buffers end or
// begin at an inaccessible page.
bool check_ways(const struct graph *g, uint64_t seed, struct device *dev, struct outcome *told);

#endif

// bound_parts.h: what the files of error bounds share. Private to bound*.c.
#ifndef FUSEC_TESTS_BOUND_PARTS_H
#define FUSEC_TESTS_BOUND_PARTS_H

#include "tests/support/bound.h"

struct bounding {
    const struct graph *g;
    struct bounded *at; // per node; value.data NULL: not needed
    bool strict;
    bool every; // every op counts as rounded: the distance to the true result
    struct diag *d;
};

// Of a float dtype: bits of the significand, the largest number, the least above 0.
int bound_digits(uint8_t dtype);
double bound_largest(uint8_t dtype);
double bound_least(uint8_t dtype);

double *bound_errors(const struct tensor *t); // as many as t has elements, all 0; xfree

// The errors of an elementwise op's result, whose values are there. rounded: its readers have it
// so.
void bound_elementwise(struct bounding *b, const struct node *n, bool rounded,
                       struct bounded *out);

#endif

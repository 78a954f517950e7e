// column_keep.h: which element values a column kernel of several stages holds in scratch memory
// from the stage that computes them to those that need them again.
#ifndef FUSEC_PASSES_COLUMN_KEEP_H
#define FUSEC_PASSES_COLUMN_KEEP_H

#include "ir/kernel.h"

struct kept_value {
    bool kept;
    uint8_t first, last; // stages: computed and stored in first, read until last
    int64_t at;          // bytes per element of the arrays before its own
};
// value: one entry per instruction. allowed: which may be kept; NULL: all elements. Returns the
// bytes per element of all arrays together. Arrays are shared by values of equal size where one is
// read for the last time in the stage that writes the next.
int64_t column_keep(const struct kernel *k, const bool *allowed, struct kept_value *value);

#endif

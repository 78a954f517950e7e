// column_factor.h: what elements of a column kernel need that is the same for all columns.
#ifndef FUSEC_PASSES_COLUMN_FACTOR_H
#define FUSEC_PASSES_COLUMN_FACTOR_H

#include "ir/kernel.h"

// factor: one entry per instruction: whether it is a value of the row at hand alone that takes
// computing (a load or a literal does not) and that something of the columns needs. With several R
// axes there are none. Returns the bytes of all factors of a row.
int64_t column_factors(const struct kernel *k, bool *factor);

#endif

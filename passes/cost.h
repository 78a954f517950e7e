// cost.h: about how long a scheduled kernel takes.
#ifndef FUSEC_PASSES_COST_H
#define FUSEC_PASSES_COST_H

#include "ir/kernel.h"

enum { COST_UNKNOWN = 0 }; // of classes that are not weighed

// In ops on one element of one thread; for comparing schedules of one target only.
int64_t kernel_cost(const struct kernel *k, const struct schedule *s, const struct target *t);

#endif

// schedule_column.h: what the files that schedule column kernels share.
#ifndef FUSEC_PASSES_SCHEDULE_COLUMN_H
#define FUSEC_PASSES_SCHEDULE_COLUMN_H

#include "passes/schedule.h"

enum { COLUMN_SCRATCH = 256 << 10 }; // bytes a thread

struct column_cost {
    int64_t insts;            // of the element level, expanded
    int64_t ops, bytes;       // per element: op costs; bytes of one pass over the loads, and stores
    int64_t passes;           // stages that read elements
    int64_t slot_column;      // bytes of accumulators per column, all 16 lanes, greatest stage
    int64_t array_column;     // bytes of results and row values per column, at most
    int64_t arrays;
    int64_t keep_element;     // bytes per element of values kept between stages
    int64_t factor_row;       // bytes per row of factors (column_factor.h)
    uint8_t width;
};


int64_t column_slots(int64_t rows); // levels of the counter of so many rows' blocks
int64_t column_grain(const struct column_cost *c, int64_t elements); // units of so many elements
// Schedules a kernel of one reduction over one axis, lane by lane (column_lanes.c). s has vec.
bool schedule_column_lanes(const struct kernel *k, const struct column_cost *c,
                           const struct target *t, struct schedule *s);

#endif

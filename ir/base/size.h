// size.h: arithmetic on extents and byte counts, which are int64_t and not negative.
#ifndef FUSEC_IR_BASE_SIZE_H
#define FUSEC_IR_BASE_SIZE_H

#include <stdint.h>

static inline int64_t
min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t
max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t
ceil_div(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}
static inline int64_t
round_up(int64_t x, int64_t to) // to a multiple of it
{
    return ceil_div(x, to) * to;
}

#endif

// clock.h: the monotonic clock. Times are measured and reported, never decided upon: nothing that
// is compiled depends on them.
#ifndef FUSEC_IR_BASE_CLOCK_H
#define FUSEC_IR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t
clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline double
clock_us(void)
{
    return (double)clock_ns() * 1e-3;
}

#endif

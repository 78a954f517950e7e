// order.c: the functions that generated code calls: the widest vectors that this processor has.
#include "runtime/order.h"

#if defined(__x86_64__)
static bool
has_v4(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool
has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma");
}
#endif

void
fusec_order(const struct order_call *c)
{
#if defined(__x86_64__)
    if (has_v4())
        return order_lines_v4(c);
    if (has_v3())
        return order_lines_v3(c);
#endif
    order_lines_any(c);
}

void
fusec_order_split(const struct order_split *c)
{
#if defined(__x86_64__)
    if (has_v4())
        return order_split_v4(c);
    if (has_v3())
        return order_split_v3(c);
#endif
    order_split_any(c);
}

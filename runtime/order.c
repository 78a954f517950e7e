// order.c: the function that generated code calls: the widest vectors that this processor has.
#include "runtime/order.h"

void
fusec_order(const struct order_call *c)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return order_lines_v4(c);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("fma"))
        return order_lines_v3(c);
#endif
    order_lines_any(c);
}

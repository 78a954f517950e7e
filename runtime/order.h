// order.h: lines put in order, for generated code (ir/order.h says how it asks).
#ifndef FUSEC_RUNTIME_ORDER_H
#define FUSEC_RUNTIME_ORDER_H

#include "ir/order.h"

void fusec_order(const struct order_call *c);
void fusec_order_split(const struct order_split *c);

// order_lines.c, compiled once for every processor and, on x86-64, for those with wider vectors:
// the same results from all, in less time.
void order_lines_any(const struct order_call *c);
void order_split_any(const struct order_split *c);
#if defined(__x86_64__)
void order_lines_v3(const struct order_call *c); // AVX2
void order_lines_v4(const struct order_call *c); // AVX-512
void order_split_v3(const struct order_split *c);
void order_split_v4(const struct order_split *c);
#endif

#endif

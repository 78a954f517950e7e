// order.h: lines put in order, for generated code (ir/order.h says how it asks).
#ifndef FUSEC_RUNTIME_ORDER_H
#define FUSEC_RUNTIME_ORDER_H

#include "ir/order.h"

void fusec_order(const struct order_call *c);

#endif

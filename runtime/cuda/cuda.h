// cuda.h: the devices called "cuda:0", "cuda:1" …
#ifndef FUSEC_RUNTIME_CUDA_CUDA_H
#define FUSEC_RUNTIME_CUDA_CUDA_H

#include "runtime/device.h"

// NULL: d says what was looked for, or what the driver said.
struct device *cuda_open(int ordinal, struct diag *d);

#endif

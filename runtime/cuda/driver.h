// driver.h: the CUDA driver, opened when it is first asked for: builds need no toolkit, and
// programs that never ask for a GPU never load it.
#ifndef FUSEC_RUNTIME_CUDA_DRIVER_H
#define FUSEC_RUNTIME_CUDA_DRIVER_H

#include "ir/diag.h"

#include <stddef.h>
#include <stdint.h>

struct cuda_driver {
#define CUDA(name, parameters) int(*name) parameters;
#include "runtime/cuda/driver.def"
#undef CUDA
};

// NULL: d says what was looked for and where.
const struct cuda_driver *cuda_driver(struct diag *d);
// True for status 0; else d has the driver's words and what was being done.
bool cuda_ok(const struct cuda_driver *c, int status, const char *doing, struct diag *d);

// Values of the driver's enumerations that are used.
enum cuda_status { CUDA_OUT_OF_MEMORY = 2 };
enum cuda_attribute {
    CUDA_ATTRIBUTE_SMS = 16, CUDA_ATTRIBUTE_L2_BYTES = 38, CUDA_ATTRIBUTE_MAJOR = 75,
    CUDA_ATTRIBUTE_MINOR = 76, CUDA_ATTRIBUTE_SHARED_BYTES_SM = 81,
};
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_HOST_PORTABLE = 1 };

#endif

// cpu.h: the device called "cpu".
#ifndef FUSEC_RUNTIME_CPU_H
#define FUSEC_RUNTIME_CPU_H

#include "runtime/device.h"

// threads 0: one per core that this process may use; flags: device_flags. NULL: d.
struct device *cpu_open(uint32_t threads, uint32_t flags, struct diag *d);

#endif

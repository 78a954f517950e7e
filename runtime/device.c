// device.c: devices by name.
#include "runtime/device.h"

#include "runtime/cpu.h"

#include <string.h>

struct device *
device_open(const char *name, uint32_t threads, uint32_t flags, struct diag *d)
{
    if (strcmp(name, "cpu") == 0)
        return cpu_open(threads, flags, d);
    if (strncmp(name, "cuda", 4) == 0 && (name[4] == '\0' || name[4] == ':'))
        diag_set(d, DIAG_UNSUPPORTED,
                 "device '%s': this build has no CUDA back end; it knows the device 'cpu'", name);
    else
        diag_set(d, DIAG_INVALID, "no device is called '%s'; this build knows the device 'cpu'",
                 name);
    return NULL;
}

void
device_close(struct device *dev)
{
    if (dev)
        dev->ops->close(dev);
}

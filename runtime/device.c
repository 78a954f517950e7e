// device.c: devices by name.
#include "runtime/device.h"

#include "runtime/cpu.h"
#include "runtime/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static bool
is_number(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < 6 && strspn(s, "0123456789") == n;
}

struct device *
device_open(const char *name, uint32_t threads, uint32_t flags, struct diag *d)
{
    if (strcmp(name, "cpu") == 0)
        return cpu_open(threads, flags, d);
    if (strcmp(name, "cuda") == 0)
        return cuda_open(0, d);
    if (strncmp(name, "cuda:", 5) == 0 && is_number(name + 5))
        return cuda_open(atoi(name + 5), d);
    diag_set(d, DIAG_INVALID, "no device is called '%s'; there are 'cpu', and 'cuda:0' where there "
                              "is a GPU", name);
    return NULL;
}

void
device_close(struct device *dev)
{
    if (dev)
        dev->ops->close(dev);
}

// own_device.h: the host as a device in a test's hands. Kernels are emitted, compiled and loaded as
// the CPU device does it, but a test chooses the code level, may edit the text before it is
// compiled (a planted bug), and launches are cut into pieces that run last one first. Scratch and
// intermediate arrays end at an inaccessible page and hold no zeros at first.
#ifndef FUSEC_TESTS_OWN_DEVICE_H
#define FUSEC_TESTS_OWN_DEVICE_H

#include "runtime/device.h"

struct own_options {
    enum code_level level;
    uint32_t pieces; // that a launch is cut into, at most; 0: 1
    // Changes the text, or leaves it; called for each kernel that is not in the cache.
    void (*edit)(void *user, struct str *text);
    void *user;
};
struct own_counts {
    uint64_t kernels, compiles, hits;
    double compile_us;
};
// NULL: d (builds without LLVM). Close it with device_close.
struct device *own_device_open(struct own_options o, struct diag *d);
void own_device_level(struct device *dev, enum code_level level); // of kernels compiled from now on
struct own_counts own_device_counts(const struct device *dev);

#endif

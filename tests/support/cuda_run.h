// cuda_run.h: for tests of generated CUDA code: programs loaded and run through the driver where
// there is a device. Nothing but the driver's library is needed, opened at run time.
#ifndef FUSEC_TESTS_CUDA_RUN_H
#define FUSEC_TESTS_CUDA_RUN_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CUDA_FUNCTIONS(F)                                                                          \
    F(cuInit, (unsigned flags))                                                                    \
    F(cuDeviceGet, (int *device, int ordinal))                                                     \
    F(cuDeviceGetAttribute, (int *value, int attribute, int device))                               \
    F(cuDevicePrimaryCtxRetain, (void **context, int device))                                      \
    F(cuCtxSetCurrent, (void *context))                                                            \
    F(cuModuleLoadData, (void **module, const void *image))                                        \
    F(cuModuleUnload, (void *module))                                                              \
    F(cuModuleGetFunction, (void **function, void *module, const char *name))                      \
    F(cuMemAlloc_v2, (uint64_t *at, size_t bytes))                                                 \
    F(cuMemFree_v2, (uint64_t at))                                                                 \
    F(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                              \
    F(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                                    \
    F(cuCtxSynchronize, (void))                                                                    \
    F(cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,         \
                       unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments,  \
                       void **extra))

struct cuda {
#define F(name, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(F)
#undef F
    char arch[16]; // sm_90
};

static inline void
cuda_must(int status, const char *doing)
{
    cr_assert_eq(status, 0, "%s: error %d of the driver", doing, status);
}

// False: no driver, or no device.
static inline bool
cuda_open(struct cuda *c)
{
    enum { MAJOR = 75, MINOR = 76 };
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device, major, minor;
    if (!library)
        return false;
#define F(name, parameters)                                                                        \
    *(void **)&c->name = dlsym(library, #name);                                                    \
    cr_assert(c->name, "the driver has no %s", #name);
    CUDA_FUNCTIONS(F)
#undef F
    if (c->cuInit(0) || c->cuDeviceGet(&device, 0))
        return false;
    cuda_must(c->cuDeviceGetAttribute(&major, MAJOR, device), "asking for the architecture");
    cuda_must(c->cuDeviceGetAttribute(&minor, MINOR, device), "asking for the architecture");
    snprintf(c->arch, sizeof c->arch, "sm_%d%d", major, minor);
    cuda_must(c->cuDevicePrimaryCtxRetain(&context, device), "making a context");
    cuda_must(c->cuCtxSetCurrent(context), "making the context current");
    return true;
}

static inline uint64_t
cuda_upload(const struct cuda *c, const void *data, size_t bytes)
{
    uint64_t at;
    cuda_must(c->cuMemAlloc_v2(&at, bytes), "allocating");
    cuda_must(c->cuMemcpyHtoD_v2(at, data, bytes), "copying to the device");
    return at;
}

#endif

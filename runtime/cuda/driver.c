// driver.c: libcuda by dlopen. What is looked for: $FUSEC_CUDA_DRIVER; then the names under which
// drivers install it, where the loader finds them.
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_driver driver;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static struct diag failure; // code 0: the driver is there

static bool
open_library(const char *path, char *words, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    size_t n = strlen(words);
    if (!library) {
        snprintf(words + n, size - n, "%s%s", n ? ", " : "", path);
        return false;
    }
    const char *missing = NULL;
#define CUDA(name, parameters)                                                                     \
    *(void **)&driver.name = dlsym(library, #name);                                                \
    if (!driver.name)                                                                              \
        missing = #name;
#include "runtime/cuda/driver.def"
#undef CUDA
    if (missing) {
        snprintf(words + n, size - n, "%s%s (without %s)", n ? ", " : "", path, missing);
        dlclose(library);
    }
    return !missing;
}

static void
open_driver(void)
{
    static const char *const name[] = {"libcuda.so.1", "libcuda.so"};
    char words[400] = "";
    const char *own = getenv("FUSEC_CUDA_DRIVER");
    bool found = own && *own && open_library(own, words, sizeof words);
    for (size_t i = 0; i < sizeof name / sizeof *name && !found; i++)
        found = open_library(name[i], words, sizeof words);
    if (!found) {
        diag_set(&failure, DIAG_UNSUPPORTED,
                 "no CUDA driver: looked for %s where the loader looks; install the GPU's driver, "
                 "or set FUSEC_CUDA_DRIVER to its libcuda.so.1", words);
        return;
    }
    cuda_ok(&driver, driver.cuInit(0), "starting the CUDA driver", &failure);
}

const struct cuda_driver *
cuda_driver(struct diag *d)
{
    pthread_once(&opened, open_driver);
    if (!failure.code)
        return &driver;
    diag_set(d, failure.code, "%s", failure.text);
    return NULL;
}

bool
cuda_ok(const struct cuda_driver *c, int status, const char *doing, struct diag *d)
{
    if (status == 0)
        return true;
    const char *name = NULL, *words = NULL;
    c->cuGetErrorName(status, &name);
    c->cuGetErrorString(status, &words);
    enum diag_code code = status == CUDA_OUT_OF_MEMORY ? DIAG_RESOURCE : DIAG_UNSUPPORTED;
    return diag_set(d, code, "%s: %s (%s)", doing, words ? words : "an unknown error",
                    name ? name : "?");
}

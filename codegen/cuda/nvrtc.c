// nvrtc.c: CUDA C → cubin, by NVRTC, which is opened when it is first asked for: builds need no
// toolkit, and programs that never compile for CUDA never load it.
//
// What is looked for: $FUSEC_NVRTC; then the name of each major version known to work, the newest
// first, where the loader finds it; then the same where toolkits are installed. A library that
// lacks a function of nvrtc.def is passed over. It stays open, as LLVM does.
#include "codegen/codegen.h"

#include "ir/base/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvrtc {
#define NVRTC(result, name, parameters) result(*name) parameters;
#include "codegen/cuda/nvrtc.def"
#undef NVRTC
    bool found;
    char words[900]; // what was looked for
};
static struct nvrtc nvrtc;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static bool
open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    size_t n = strlen(nvrtc.words);
    if (!library) {
        snprintf(nvrtc.words + n, sizeof nvrtc.words - n, "%s%s", n ? ", " : "", path);
        return false;
    }
#define NVRTC(result, name, parameters)                                                            \
    *(void **)&nvrtc.name = dlsym(library, #name);                                                 \
    if (!nvrtc.name)                                                                               \
        missing = #name;
#include "codegen/cuda/nvrtc.def"
#undef NVRTC
    if (missing) {
        snprintf(nvrtc.words + n, sizeof nvrtc.words - n, "%s%s (without %s)", n ? ", " : "", path,
                 missing);
        dlclose(library);
    }
    return !missing;
}

static void
open_nvrtc(void)
{
    static const char *const name[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    static const char *const folder[] = {"", "/usr/local/cuda/lib64/"};
    const char *own = getenv("FUSEC_NVRTC");
    nvrtc.found = own && *own && open_library(own);
    for (size_t f = 0; f < sizeof folder / sizeof *folder; f++)
        for (size_t i = 0; i < sizeof name / sizeof *name && !nvrtc.found; i++) {
            char path[100];
            snprintf(path, sizeof path, "%s%s", folder[f], name[i]);
            nvrtc.found = open_library(path);
        }
}

bool
cuda_codegen_available(struct diag *d)
{
    pthread_once(&opened, open_nvrtc);
    if (!nvrtc.found)
        diag_set(d, DIAG_TOOLCHAIN, "NVRTC was not found; looked for %s. Install the CUDA toolkit "
                                    "or set FUSEC_NVRTC to the library", nvrtc.words);
    return nvrtc.found;
}

static bool
went_well(int status, const char *doing, struct diag *d)
{
    if (status == 0)
        return true;
    int major = 0, minor = 0;
    nvrtc.nvrtcVersion(&major, &minor);
    return diag_set(d, DIAG_TOOLCHAIN, "NVRTC %d.%d, %s: %s", major, minor, doing,
                    nvrtc.nvrtcGetErrorString(status));
}

// The compiler's own words; the statuses that follow say less.
static void
tell_log(void *program, struct diag *d)
{
    size_t size = 0;
    if (nvrtc.nvrtcGetProgramLogSize(program, &size) || size < 2)
        return;
    char *log = xmalloc(size + 1);
    log[0] = log[size] = '\0';
    if (!nvrtc.nvrtcGetProgramLog(program, log))
        diag_set(d, DIAG_TOOLCHAIN, "NVRTC refused a kernel: %.800s", log);
    xfree(log);
}

static void *
cubin_of(void *program, size_t *size, struct diag *d)
{
    if (!went_well(nvrtc.nvrtcGetCUBINSize(program, size), "asking for the cubin's size", d))
        return NULL;
    void *cubin = xmalloc(*size + 1);
    if (went_well(nvrtc.nvrtcGetCUBIN(program, cubin), "asking for the cubin", d))
        return cubin;
    xfree(cubin);
    return NULL;
}

void *
cuda_object(const char *text, const char *arch, size_t *size, struct diag *d)
{
    char gpu[64];
    // What results mean forbids contraction, flushing of denormals and approximations.
    const char *options[] = {gpu, "--fmad=false", "--ftz=false", "--prec-div=true",
                             "--prec-sqrt=true", "--std=c++17", "-w"};
    if (!cuda_codegen_available(d))
        return NULL;
    snprintf(gpu, sizeof gpu, "--gpu-architecture=%s", arch);
    void *program = NULL, *cubin = NULL;
    if (!went_well(nvrtc.nvrtcCreateProgram(&program, text, "kernel.cu", 0, NULL, NULL),
                   "making a program", d))
        return NULL;
    int status = nvrtc.nvrtcCompileProgram(program, (int)(sizeof options / sizeof *options),
                                           options);
    if (status)
        tell_log(program, d);
    if (went_well(status, "compiling", d))
        cubin = cubin_of(program, size, d);
    nvrtc.nvrtcDestroyProgram(&program);
    return cubin;
}

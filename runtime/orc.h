// orc.h: object bytes of a CPU kernel → functions that can be called.
#ifndef FUSEC_RUNTIME_ORC_H
#define FUSEC_RUNTIME_ORC_H

#include "codegen/codegen.h"

struct jit;
struct jit_code {
    kernel_fn *kernel, *finish; // finish: NULL when the object defines no kernel_finish
    struct jit_dylib *dylib;    // orc.c's
};

// NULL: d (UNSUPPORTED in builds with llvm=off).
struct jit *jit_new(struct diag *d);
void jit_free(struct jit *j); // unloads all code

// Loads an object (copied). False: d has words; a symbol that nobody provides is named there. Any
// thread, inside work that fork() waits for (fork_lock_begin_work): LLVM's locks do not survive
// one.
bool jit_load(struct jit *j, const void *object, size_t n, struct jit_code *out, struct diag *d);
// No thread may be in the code or enter it any more.
void jit_unload(struct jit *j, struct jit_code *c);

#endif

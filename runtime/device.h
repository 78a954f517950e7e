// device.h: what a device can do, as a table of functions. cpu.c and cuda/cuda.c implement it.
#ifndef FUSEC_RUNTIME_DEVICE_H
#define FUSEC_RUNTIME_DEVICE_H

#include "codegen/codegen.h"
#include "passes/plan.h"

struct device;
struct code; // one launch's code: a shared entry of the code cache, and its arguments

struct device_counters { // since the device was opened; read with device->counters
    int64_t kernels;     // launches done: what every report calls kernels
    int64_t compiles;    // kernels compiled
    int64_t optimised;   // of these, how many were compiled again, optimised
    int64_t code_hits;   // kernels found in the code cache
    double compile_us, optimise_us;
    int64_t bytes_allocated, peak_bytes; // device memory in use by buffers and arenas
};

struct device_ops {
    // 64-byte aligned memory, rounded up; kept for reuse after release. NULL when there is no more.
    void *(*alloc)(struct device *d, int64_t bytes);
    void (*release)(struct device *d, void *p, int64_t bytes);
    bool (*upload)(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *);
    bool (*download)(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *);
    // A word that launches may be given as error_op, 0, which the host reads after synchronize.
    // NULL functions: any int32_t will do. NULL: no memory.
    int32_t *(*error_word)(struct device *d);
    void (*error_word_release)(struct device *d, int32_t *word);
    // Compiles a kernel or finds it in the code cache. NULL: diag.
    struct code *(*compile)(struct device *d, const struct kernel *k, const struct schedule *s,
                            struct diag *);
    void (*code_release)(struct device *d, struct code *c);
    // Runs a kernel. ptr: per kernel buffer. scratch and shared memory are the device's business.
    // error_op: not NULL; set to 1 + the instruction's origin when an index was out of range (the
    // launch goes on). Nothing is launched or counted where there is nothing to do. Returns when
    // done or queued (see synchronize).
    bool (*launch)(struct device *d, struct code *c, const struct kernel *k,
                   const struct schedule *s, void *const *ptr, int32_t *error_op, struct diag *);
    // Runs the launches of a chain of p: for each of its blocks their parts, in order. code, ptr:
    // one a launch of the chain. Counts as many kernels.
    bool (*launch_chain)(struct device *d, const struct plan *p, const struct chain *c,
                         struct code *const *code, void *const *const *ptr, int32_t *error_op,
                         struct diag *);
    bool (*synchronize)(struct device *d, struct diag *);
    // GB/s (read plus written) of copying blocks of so many bytes, over `pairs` pairs of blocks,
    // the best of several rounds; 0: memory is short. NULL: runtime/target.h has the host's.
    double (*copy_gbps)(struct device *d, int64_t bytes, int64_t pairs);
    // Returns when no kernel that was launched more than once waits for optimised code.
    void (*settle)(struct device *d);
    void (*close)(struct device *d);
};

struct device {
    const struct device_ops *ops;
    struct target target;
    char name[64];  // "cpu", "cuda:0"
    char words[256];// for people: processor, cores, caches
    void (*counters)(struct device *d, struct device_counters *out);
};

enum device_flags {
    // Kernels are launched as soon as baseline code is there. The second launch, or one that takes
    // long, has optimised code made in the background, on threads that end when that is done; it
    // takes over as soon as it is there. With one thread there is no background: all code is
    // optimised at once, as it is without this flag.
    DEVICE_TIERED = 1,
};

// Opens a device by name: "cpu", "cuda" or "cuda:0", "cuda:1" …. threads, of the host; 0: all
// cores. flags: enum device_flags.
// NULL: d says what was looked for. Devices are safe to use from many threads.
struct device *device_open(const char *name, uint32_t threads, uint32_t flags, struct diag *d);
void device_close(struct device *dev);

// A plan made executable on a device: code for each launch, argument lists, an arena layout.
// Immutable after creation; safe to run from many threads at once (each run takes an instance: an
// arena from the device's allocator).
struct executable;
// The plan is taken, also on failure; the device must outlive the executable. NULL: d.
struct executable *executable_new(struct plan *p, struct device *dev, struct diag *d);
// in: address of element 0 per graph input; out: address of dense memory per graph output. False
// with DIAG_INDEX: all launches ran, and d names the op whose index was out of range. On a GPU the
// results may still be under way (device_ops.synchronize), unless the plan checks positions.
bool executable_run(struct executable *e, void *const *in, void *const *out, struct diag *d);
const struct plan *executable_plan(const struct executable *e);
struct executable *executable_ref(struct executable *e);
void executable_unref(struct executable *e);

#endif

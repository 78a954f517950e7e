// codegen.h: (kernel, schedule, target) → text → object bytes. Pure: no state, no device, no clock.
#ifndef FUSEC_CODEGEN_CODEGEN_H
#define FUSEC_CODEGEN_CODEGEN_H

#include "ir/base/str.h"
#include "ir/diag.h"
#include "ir/kernel.h"

// What generated CPU code looks like from outside. Every kernel object defines
//
//   void kernel(const struct kernel_args *args, int64_t begin, int64_t end, char *scratch);
//
// which runs task units begin <= u < end, one at least; units may run in any order and on any
// thread. When schedule.finish_units > 0 it also defines `kernel_finish` with the same signature,
// to be run over units 0 .. finish_units once all units of `kernel` are done.
struct kernel_args {
    void *const *ptr;     // per kernel buffer: address of its element 0
    const int64_t *num;   // extents, strides, bases … in the order the emitter numbered them
    char *shared;         // schedule.shared_scratch_bytes, 64-byte aligned
    int32_t *error;       // set to 1 + instruction origin when an index was out of range; may race
};
typedef void kernel_fn(const struct kernel_args *args, int64_t begin, int64_t end, char *scratch);

// Prints the LLVM IR of a kernel. The text does not depend on extents, strides and bases (except
// where a stride is 0 or 1 or a schedule parameter), so equal text is equal code: it is the key of
// the object cache. num receives the values for kernel_args.num. The kernel's name is not in it.
typedef VEC(int64_t) num_vec;
bool cpu_emit(const struct kernel *k, const struct schedule *s, const struct target *t,
              struct str *text, num_vec *num, struct diag *d);

// Baseline code is compiled in half the time and runs at a quarter to all of the speed. Both
// compute the same bits, in the same scratch memory: they may take turns within a launch.
enum code_level { CODE_BASELINE, CODE_OPTIMISED };

// LLVM IR text → ELF relocatable object. Returns bytes owned by the caller (xfree); NULL: d.
void *cpu_object(const char *text, size_t n, const struct target *t, enum code_level level,
                 size_t *size, struct diag *d);
// The same text → assembly of the target, optimised, for people.
bool cpu_assembly(const char *text, size_t n, const struct target *t, struct str *out,
                  struct diag *d);
bool cpu_codegen_available(void); // false in builds with llvm=off
// Initialises LLVM's target, once a process. The calls above do so themselves; whoever else uses
// LLVM calls this first.
void cpu_codegen_start(void);

// Prints a kernel as CUDA C. Its text depends on none of the numbers either, which num receives.
// It defines one function, `kernel`, to be launched with schedule.units blocks of schedule.threads
// threads and one parameter, in this order:
//   - per buffer (at least one) the address of its element 0, or 8 bytes by value;
//   - the address of an int, set to 1 + instruction origin when an index was out of range;
//   - that of schedule.shared_scratch_bytes, zeros at first and left from launch to launch;
//   - the numbers (at least one), 32 bits each, or 64 where schedule.index64.
bool cuda_emit(const struct kernel *k, const struct schedule *s, const struct target *t,
               struct str *text, num_vec *num, struct diag *d);
// CUDA C text → cubin for exactly that architecture (sm_90). Returns bytes owned by the caller
// (xfree); NULL: d, with NVRTC's words.
void *cuda_object(const char *text, const char *arch, size_t *size, struct diag *d);
// Whether NVRTC is there; it is opened by the first call. False: d says what was looked for.
bool cuda_codegen_available(struct diag *d);

#endif

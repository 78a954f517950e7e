// fpstate.h: the floating-point control state that generated code is written for: round to nearest,
// denormals kept, no traps. Callers may have set others (flush to zero is common); a kernel launch
// saves what it finds and puts it back, sticky flags included.
#ifndef FUSEC_RUNTIME_FPSTATE_H
#define FUSEC_RUNTIME_FPSTATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
typedef uint32_t fp_state;
// Writing the register waits for all arithmetic under way (some 15 ns), reading it does not, and
// most callers have the state that is wanted: then only new sticky flags have to be taken back.
enum { FP_CONTROL = 0x1f80, FP_STICKY = 0x3f };
static inline fp_state
fp_enter(void) // returns the caller's state
{
    fp_state old = _mm_getcsr();
    if ((old & ~(fp_state)FP_STICKY) != FP_CONTROL)
        _mm_setcsr(FP_CONTROL);
    return old;
}
static inline void
fp_leave(fp_state old)
{
    if (_mm_getcsr() != old)
        _mm_setcsr(old);
}
#elif defined(__aarch64__)
typedef uint64_t fp_state;
static inline fp_state
fp_enter(void)
{
    fp_state old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
    return old;
}
static inline void
fp_leave(fp_state old)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(old));
}
#else
#error "fpstate.h: unknown processor"
#endif

#endif

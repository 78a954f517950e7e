// fpstate.h: the floating-point control state that generated code is written for: round to nearest,
// denormals kept, no traps. Callers may have set others (flush to zero is common); a kernel launch
// saves what it finds and puts it back, sticky flags included.
#ifndef FUSEC_RUNTIME_FPSTATE_H
#define FUSEC_RUNTIME_FPSTATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
typedef uint32_t fp_state;
static inline fp_state
fp_enter(void) // returns the caller's state
{
    fp_state old = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return old;
}
static inline void
fp_leave(fp_state old)
{
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

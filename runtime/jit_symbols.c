// jit_symbols.c: the functions that LLVM calls where the processor has no instruction. The
// compiler's runtime library has some of them, but which ones, and how correct, differs between
// systems.
//
// Calling convention: LLVM (since 15) passes half and bfloat in the low 16 bits of a floating-point
// register, on x86-64 and AArch64 alike. A float argument sits in the same register, so float is
// the type here, with the half's bits at its bottom; this needs no compiler that knows half.
#include "runtime/jit_symbols.h"

#include "ir/base/half.h"
#include "runtime/order.h"

#include <math.h>
#include <string.h>

static uint16_t
half_of(float carrier)
{
    uint32_t bits;
    memcpy(&bits, &carrier, sizeof bits);
    return (uint16_t)bits;
}

static float
carrier_of(uint16_t half)
{
    uint32_t bits = half;
    float carrier;
    memcpy(&carrier, &bits, sizeof bits);
    return carrier;
}

static float
jit_extendhfsf2(float h)
{
    return f16_to_f32(half_of(h));
}

static double
jit_extendhfdf2(float h)
{
    return f16_to_f32(half_of(h));
}

static float
jit_truncsfhf2(float x)
{
    return carrier_of(f32_to_f16(x));
}

static float
jit_truncdfhf2(double x)
{
    return carrier_of(f64_to_f16(x));
}

static float
jit_truncsfbf2(float x)
{
    return carrier_of(f32_to_bf16(x));
}

static float
jit_truncdfbf2(double x)
{
    return carrier_of(f64_to_bf16(x));
}

// The default rounding mode is to nearest even, and kernels run in it (fpstate.h).
static float
jit_roundevenf(float x)
{
    return rintf(x);
}

static double
jit_roundeven(double x)
{
    return rint(x);
}

const struct jit_symbol jit_symbols[] = {
#define SYMBOL(name, address) {#name, (void (*)(void))address},
#include "runtime/jit_symbols.def"
#undef SYMBOL
};
const uint32_t jit_symbol_count = sizeof jit_symbols / sizeof *jit_symbols;

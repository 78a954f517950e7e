// cuda.h: what the CUDA emitters share: the C of single instructions.
#ifndef FUSEC_CODEGEN_CUDA_H
#define FUSEC_CODEGEN_CUDA_H

#include "ir/base/str.h"
#include "ir/kernel.h"

// Functions and types that statements use, to be put in front of all kernels of a program. Without
// any header, so that NVRTC needs no include path.
extern const char cuda_prelude[];

// The C type that holds a dtype's values in registers and in memory. f16 and bf16 are bit patterns,
// as they are converted and moved only.
const char *cuda_type(uint8_t dtype);

// `const T vI = ...;` for instruction i of an expanded body (kernel_expand): literals, elementwise
// rows, casts, bitcasts, look-ups. Operands are named likewise: v1, v2. Loads, indices and results
// of accumulators are the business of the class that knows the loops.
void cuda_statement(const struct kernel *k, uint32_t i, struct str *out);

// The constant tables that k's body looks up, as definitions at file scope; each once for all
// kernels of a program: bit n of *defined tells that table n stands there already.
void cuda_tables(const struct kernel *k, uint64_t *defined, struct str *out);

#endif

// expand.h: each math function and each op with awkward corners, written once as a short expansion
// over exact primitive rows of the op table (add, mul, fma, bitcast, where, shifts …). Emitters
// and the exact evaluator only ever see primitives, so that a function has the same bits in a
// vector body, its tail, a folded constant, and on every device.
#ifndef FUSEC_IR_EXPAND_H
#define FUSEC_IR_EXPAND_H

#include "ir/kernel.h"

// Rewrites k's body so that no instruction carries OPF_EXPAND (fma stays on f32 and f64). f16 and
// bf16 operands of arithmetic rows must have been widened to f32 before. Levels, stages and origins
// of new instructions follow from their operands. Accumulator values, stores and contraction
// operands are renumbered.
void kernel_expand(struct kernel *k);

// The value of one elementwise row on scalars (bit patterns), bit-equal to generated code: expanded
// first where the row is flagged so. dtype: the operands' (after promotion; where: of b and c);
// cast and bitcast: from dtype to `to`. f16 and bf16 compute in f32 and round.
uint64_t eval_exact(uint16_t op, uint8_t dtype, uint8_t to, const uint64_t *in);

// One row on scalars as ops.def says it. For primitive instructions this is the kernel
// interpreter's step, bit-equal to generated code; for rows flagged EXPAND it is the meaning that
// their expansion is measured against (exact rows: equal; the others: libm in the next wider type,
// rounded once), which the graph interpreter uses. where takes its condition in a, b and c in
// dtype.
uint64_t eval_primitive(uint16_t op, uint8_t dtype, uint8_t to, uint64_t a, uint64_t b, uint64_t c);

#endif

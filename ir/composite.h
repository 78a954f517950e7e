// composite.h: elementwise composites, which are rows of ops.def alone. Beside the meaning (F and
// I, for the graph interpreter) stands the expansion into other elementwise ops, as .fuse text:
//
//   .expand = "where(gt(%x, 0), %x, mul(%alpha, expm1(%x)))"
//
//   .expand = "%e = exp(%x) return div(%e, add(%e, 1))"
//
// %x, or %a %b %c, or the row's own names, are the operands, of the result's dtype; attributes go
// by their names and are numbers of that dtype. F and I see the attributes as further operands:
// with one operand alpha is b. A loss (OPF_MEAN) is the mean of what the text says.
//
// Gradients of elementwise rows are such texts too, one an operand, separated by semicolons, in the
// operands, the result %y and what arrives for it, %g:
//
//   .grad = "mul(%g, %b); mul(%g, %a)"
//
// "0": the gradient is 0 everywhere; nothing: the operand is no number (where's condition). At a
// kink the convention is PyTorch's, but that ties of max and min give all to the first operand:
// relu'(0) = abs'(0) = 0, clamp' = 1 at its bounds. What a where does not take gets 0, never 0 NaN.
#ifndef FUSEC_IR_COMPOSITE_H
#define FUSEC_IR_COMPOSITE_H

#include "ir/graph.h"

enum { COMPOSITE_NUMBERS = 4 };

// The attributes of an elementwise composite as numbers, in order; returns how many.
uint32_t composite_numbers(uint16_t op, const int64_t *attr, double number[COMPOSITE_NUMBERS]);

// Adds the expansion of op on operands `in`, which have this dtype; returns its result.
ref composite_expand(struct graph *g, uint16_t op, uint8_t dtype, const ref *in,
                     const int64_t *attr, uint32_t origin);

// Adds what flows back to an operand of an elementwise op with .grad: operands and y are those of
// the op in one float dtype, g is the gradient that arrives for y. {0}: nothing does.
ref gradient_expand(struct graph *g, uint16_t op, uint32_t operand, const ref *in, ref y, ref grad,
                    uint32_t origin);

#endif

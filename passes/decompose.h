// decompose.h: inside pass_decompose: the expansions of composites, by family. r is the source node;
// operands are nodes of p->dst.
#ifndef FUSEC_PASSES_DECOMPOSE_H
#define FUSEC_PASSES_DECOMPOSE_H

#include "passes/pass.h"

ref decompose_composite(struct pass *p, ref r, const ref *in, const int64_t *attr);
ref decompose_random(struct pass *p, ref r, const ref *in, const int64_t *attr);

// Parts that families share (decompose.c): a reduction with axes kept; (x - mean) rsqrt(var + eps)
// along an axis; softmax; a product of matrices; a matrix's two axes swapped.
ref decompose_reduce(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes);
ref decompose_normalised(struct pass *p, ref x, int64_t axis, double eps);
ref decompose_softmax(struct pass *p, ref x, int64_t axis);
ref decompose_matmul(struct pass *p, ref a, ref b);
ref decompose_swapped(struct pass *p, ref a);

#endif

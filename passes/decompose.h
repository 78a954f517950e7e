// decompose.h: inside pass_decompose: the expansions of composites, by family. r is the source
// node; operands are nodes of p->dst.
#ifndef FUSEC_PASSES_DECOMPOSE_H
#define FUSEC_PASSES_DECOMPOSE_H

#include "passes/pass.h"

ref decompose_composite(struct pass *p, ref r, const ref *in, const int64_t *attr);
ref decompose_random(struct pass *p, ref r, const ref *in, const int64_t *attr);

// Parts that families share (decompose.c): a reduction with axes kept; (x - mean) rsqrt(var + eps)
// along an axis; softmax; a product of matrices; a matrix's two axes swapped; of x [N, C] each
// row's element at its target, [N, 1]; the mean over such rows, a scalar.
ref decompose_reduce(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes);
ref decompose_normalised(struct pass *p, ref x, int64_t axis, double eps);
ref decompose_softmax(struct pass *p, ref x, int64_t axis);
ref decompose_matmul(struct pass *p, ref a, ref b);
ref decompose_swapped(struct pass *p, ref a);
ref decompose_picked(struct pass *p, ref x, ref target);
ref decompose_mean_of_rows(struct pass *p, ref x);

#endif

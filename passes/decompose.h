// decompose.h: inside pass_decompose: the expansions of composites, by family. r is the source node;
// operands are nodes of p->dst.
#ifndef FUSEC_PASSES_DECOMPOSE_H
#define FUSEC_PASSES_DECOMPOSE_H

#include "passes/pass.h"

ref decompose_random(struct pass *p, ref r, const ref *in, const int64_t *attr);

#endif

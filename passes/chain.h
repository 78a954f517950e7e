// chain.h: launches that run together, block by block.
#ifndef FUSEC_PASSES_CHAIN_H
#define FUSEC_PASSES_CHAIN_H

#include "passes/plan.h"

// Fills in p->chain and its launches' units_of_block. Before plan_memory, which must keep what is
// read in a chain until all of it is done.
void plan_chains(struct plan *p, const struct target *t);

// Says which arrays may be local to blocks. After plan_memory.
void plan_chain_locals(struct plan *p, const struct target *t);

#endif

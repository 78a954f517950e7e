// schedule_contract.h: how a contraction's scratch is laid out; the schedule reserves it, the
// emitter uses it.
#ifndef FUSEC_PASSES_SCHEDULE_CONTRACT_H
#define FUSEC_PASSES_SCHEDULE_CONTRACT_H

#include "passes/schedule.h"

enum contract_way {   // bits of schedule.pack
    PACK_A = 1,
    PACK_B = 2,
    COPY_B = 4,        // the first rows of a unit that read B's panel pack it on the way
    SUM_IN_OUTPUT = 8, // between panels of k the sums lie in an output
    BY_HAND = 16,      // the innermost loop is assembly: f32 or f64, AVX-512 or AVX2 and FMA
};

struct contract_layout {
    uint32_t width;             // elements of packed A per step of k
    int64_t a_at, b_at, c_at;   // byte offsets: packed A, packed B, accumulators
    int64_t c_row, c_column;    // elements of accumulators per row and per column of the unit; 0:
                                // one register tile is enough
    int64_t bytes;
};
// size: bytes of an accumulator; depth: the extent of k.
struct contract_layout contract_layout(const struct schedule *s, uint32_t size, int64_t depth);

// The store whose place can hold sums: of the accumulator's dtype, vectors along axis n, every
// element its own. UINT32_MAX: none.
uint32_t contract_sum_store(const struct kernel *k, uint32_t m, uint32_t n);
// Sets s->edge from the extents of the axes in their roles and the register tile.
void contract_edges(struct schedule *s, int64_t m, int64_t n);

#endif

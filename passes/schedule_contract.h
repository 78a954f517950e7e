// schedule_contract.h: how a contraction's scratch is laid out; the schedule reserves it, the
// emitter uses it.
#ifndef FUSEC_PASSES_SCHEDULE_CONTRACT_H
#define FUSEC_PASSES_SCHEDULE_CONTRACT_H

#include "passes/schedule.h"

enum contract_packing { PACK_A = 1, PACK_B = 2 }; // schedule.pack

struct contract_layout {
    uint32_t width;             // elements of packed A per step of k
    int64_t a_at, b_at, c_at;   // byte offsets: packed A, packed B, accumulators
    int64_t c_row, c_column;    // elements of accumulators per row and per column of the unit
    int64_t bytes;
};
// size: bytes of an accumulator; depth: the extent of k.
struct contract_layout contract_layout(const struct schedule *s, uint32_t size, int64_t depth);

#endif

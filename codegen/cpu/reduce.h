// reduce.h: accumulators in generated code: lane vectors, the binary counter that joins their
// blocks, the loop that feeds them. The order is the one that ir/kernel.h fixes.
#ifndef FUSEC_CODEGEN_CPU_REDUCE_H
#define FUSEC_CODEGEN_CPU_REDUCE_H

#include "codegen/cpu/emit.h"
#include "passes/schedule_row.h"

enum { REDUCE_MAX = 16, REDUCE_WIDE = 4 };

// Accumulators that are fed by one loop. A partial result is an emit_acc of 16 lanes each.
struct reduce_set {
    uint32_t n;
    const struct acc *acc[REDUCE_MAX];
    const char *stack[REDUCE_MAX][2]; // per accumulator, value and index: the counter's slots
};

// Adds an accumulator (at most REDUCE_MAX) to a set that starts as {0}.
void reduce_add(struct reduce_set *set, const struct acc *acc);

void reduce_identity(struct emitter *e, const struct reduce_set *set, struct emit_acc *out);
// Accumulator i joined with 16 new elements; j: index of the first (i64); mask: those that exist.
struct emit_acc reduce_step(struct emitter *e, const struct reduce_set *set, uint32_t i,
                            struct emit_acc old, const char *x, const char *j, const char *mask);
// All accumulators: older joined with newer, whose positions are greater lane by lane.
void reduce_join(struct emitter *e, const struct reduce_set *set, const struct emit_acc *older,
                 const struct emit_acc *newer, struct emit_acc *out);

// Whether any order of joins gives the same bits. Then REDUCE_WIDE strands of accumulators (strand
// by strand, set->n each) may take the vectors in turn.
bool reduce_any_order(const struct reduce_set *set);
void reduce_wide_identity(struct emitter *e, const struct reduce_set *set, struct emit_acc *out);
void reduce_join_strands(struct emitter *e, const struct reduce_set *set, const struct emit_acc *p,
                         struct emit_acc *out);

// Carries all accumulators around a loop from init on; out: their values in it, and after it.
void reduce_carry(struct emitter *e, struct emit_loop *l, const struct reduce_set *set,
                  const struct emit_acc *init, struct emit_acc *out);
// The values as reduce_carry carried them: what emit_loop_close takes.
void reduce_fields(const struct reduce_set *set, struct emit_acc *p, const char **out);

// The binary counter, by hand: slots, pushes, one pop. Push: count (i64) blocks are done with this
// one; level: the lowest that this value can stand at (2 for the join of four blocks). Pop: all
// slots joined, newest to oldest. A slot can also be used by its number (i64, below REDUCE_SLOTS).
enum { REDUCE_SLOTS = 48 }; // 2^48 blocks are more than an address space holds
void reduce_slots(struct emitter *e, struct reduce_set *set);
void reduce_push(struct emitter *e, const struct reduce_set *set, uint32_t level,
                 const char *count, const struct emit_acc *p);
void reduce_pop(struct emitter *e, const struct reduce_set *set, const char *count,
                struct emit_acc *out);
void reduce_load_slot(struct emitter *e, const struct reduce_set *set, const char *slot,
                      struct emit_acc *out);
void reduce_store_slot(struct emitter *e, const struct reduce_set *set, const char *slot,
                       struct emit_acc *p);

// The lanes joined: <1 x T>; argmax, argmin: <1 x i64>.
const char *reduce_lanes(struct emitter *e, const struct reduce_set *set, uint32_t i,
                         struct emit_acc p);

// Feeds 16 elements starting at j to all accumulators.
typedef void reduce_point(struct emitter *e, const char *j, const char *mask,
                          const struct emit_acc *in, struct emit_acc *out, void *user);
// What is reduced: elements from .. to (i64; from is a multiple of RED_BLOCK and block 0 of the
// counter).
struct reduce_range {
    const char *from, *to;
    uint32_t extent; // what is known about to - from: enum row_extent
    uint32_t blocks; // its blocks, also the one begun; 0: not known
    uint32_t width;  // blocks in flight, 1 or REDUCE_WIDE
};
// reduce_loop.c
void reduce_loop(struct emitter *e, struct reduce_set *set, const struct reduce_range *range,
                 reduce_point *point, void *user, struct emit_acc *out);

#endif

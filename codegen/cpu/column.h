// column.h: what the files of the column class share.
#ifndef FUSEC_CODEGEN_CPU_COLUMN_H
#define FUSEC_CODEGEN_CPU_COLUMN_H

#include "codegen/cpu/emit.h"
#include "passes/column_keep.h"

struct column {
    struct emitter *e;
    uint32_t axis;        // the vector axis: the last of P
    uint32_t vec, unroll;
    int64_t strip;        // columns of a strip; arrays in scratch have this length
    int64_t *array;       // per instruction: 1 + place of its values for the strip; 0: none
    int64_t *acc_at;      // per accumulator: place in a slot
    int64_t slots_at, slot_bytes;
    struct kept_value *keep; // per instruction: element values kept between stages
    int64_t keep_at;
    // while emitting
    struct emit_scope *unit;
    const char *first, *width, *whole, *tail; // the strip: first column, columns, in whole vectors
    const char *local, *global;               // the vector at hand: column in the strip, and at all
    const char *row;                          // the row at hand (i64); NULL: none
    const char *aligned; // i1: elements may be stored around the caches; NULL: never
    uint32_t store_flags;
    uint32_t stage, nacc;
    const struct acc **acc; // the stage's accumulators
};

// Finds out which arrays the strip needs and where they lie; checks against the schedule's scratch.
bool column_layout(struct column *c, struct emitter *e);
// Places the accumulators of the stage at hand within a slot.
void column_place_slots(struct column *c);


// f for each vector of the strip: c->local and c->global are its first column; mask NULL: all lanes
// exist.
typedef void along_strip(struct column *c, void *arg, const char *mask);
void column_each(struct column *c, along_strip *f, void *arg);
struct emit_scope column_scope(struct column *c, struct emit_scope *up, const char *mask);
// All stages of a strip of at most 16 rows.
void column_few(struct column *c);

#endif

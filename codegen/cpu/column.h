// column.h: what the files of the column class share.
#ifndef FUSEC_CODEGEN_CPU_COLUMN_H
#define FUSEC_CODEGEN_CPU_COLUMN_H

#include "codegen/cpu/emit.h"
#include "passes/column_factor.h"
#include "passes/column_keep.h"

struct column {
    struct emitter *e;
    uint32_t axis;        // the vector axis: the last of P
    uint32_t vec, unroll;
    int64_t strip;        // columns of a strip; arrays in scratch have this length
    uint32_t lanes;       // of a slot: 16, or those of a pass (column_lanes.c)
    int64_t *array;       // per instruction: 1 + place of its values for the strip; 0: none
    int64_t *acc_at;      // per accumulator: place in a slot
    int64_t slots_at, slot_bytes;
    struct kept_value *keep; // per instruction: element values kept between stages
    int64_t keep_at;
    int64_t *factor; // per instruction: 1 + place of its values for a block of rows; 0: none
    // while emitting
    struct emit_scope *unit;
    const char *first, *width, *whole, *tail; // the strip: first column, columns, in whole vectors
    const char *local, *global;               // the vector at hand: column in the strip, and at all
    const char *row;                          // the row at hand (i64); NULL: none
    const char *aligned; // i1: elements may be stored around the caches; NULL: never
    uint32_t store_flags;
    bool partial; // results are not known in this function: stores wait for kernel_finish
    uint32_t stage, nacc;
    const struct acc **acc; // the stage's accumulators
};

// Finds out which arrays strips of so many columns need and where they lie, with slots of so many
// lanes that count the blocks of so many rows; checks against the schedule's scratch.
bool column_layout(struct column *c, struct emitter *e, int64_t strip, uint32_t lanes,
                   int64_t rows);
// Finds the accumulators of a stage and places them within a slot.
void column_accs(struct column *c, uint32_t stage);

// Element `index` (i64) of an array of register values at base + byte, and those that follow.
const char *column_load(struct column *c, const char *base, int64_t byte, const char *index,
                        uint8_t dtype);
void column_store(struct column *c, const char *base, int64_t byte, const char *index,
                  uint8_t dtype, const char *value);
// The address of a slot by its level (i64); partial results at lane * strip + column of one.
const char *column_slot(struct column *c, const char *level);
struct emit_acc column_load_acc(struct column *c, const struct acc *a, const char *slot,
                                const char *index);
void column_store_acc(struct column *c, const struct acc *a, const char *slot, const char *index,
                      struct emit_acc v);
// Joins the 16 lanes of a slot; the results are then known.
void column_results(struct column *c, const char *slot);

// i / by and, in *rest, what is left; `by` is a number of that name.
const char *column_divide(struct emitter *e, const char *i, const char *name, int64_t by,
                          const char **rest);
int64_t column_strips(const struct column *c);
// Opens a function and its loop over units; the scopes live as long as *u.
struct column_units {
    struct emit_scope all, unit;
    struct emit_loop loop;
};
void column_units_open(struct column *c, struct column_units *u, const char *function);
// Binds the outer axes and the strip.
void column_unit(struct column *c, const char *outer, const char *number);
// Begins a stage: finds its accumulators, stores and computes what belongs to the row level.
void column_stage(struct column *c, uint32_t stage);

// f for each vector of the strip: c->local and c->global are its first column; mask NULL: all lanes
// exist.
typedef void along_strip(struct column *c, void *arg, const char *mask);
void column_each(struct column *c, along_strip *f, void *arg);
struct emit_scope column_scope(struct column *c, struct emit_scope *up, const char *mask);
// Asks for what the loads at s read `prefetch` rows on.
void column_ask_ahead(struct column *c, struct emit_scope *s);
// All stages of a strip of at most 16 rows.
void column_few(struct column *c);
// The functions of a kernel whose lanes are taken one after the other.
bool column_lanes(struct emitter *e);

#endif

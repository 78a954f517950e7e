// stage.h: the loop over R of one stage of a kernel, for the row and split classes.
#ifndef FUSEC_CODEGEN_CPU_STAGE_H
#define FUSEC_CODEGEN_CPU_STAGE_H

#include "codegen/cpu/reduce.h"
#include "passes/schedule_row.h"

struct stages {
    struct emitter *e;
    uint32_t np, nr;         // axes of P and R
    int64_t points;          // of R
    const char *n;           // the same as an operand
    uint32_t extent, blocks; // see schedule_row.h
    int64_t shared_base;     // bytes of shared memory before the values of accumulators over P
    uint32_t prefetch_stage; // row: 0: none
    bool spread;             // row: each of three stages asks for a part of the next row
    const char *aligned;     // i1: the row may be streamed to; NULL: not known here
    uint32_t ahead;          // split: cache lines between a load and the request for what follows
    int64_t *kept_at;        // per instruction: where in scratch it is kept; -1: it is not
    // while a stage is written
    struct emit_scope *row;
    uint32_t stage;
    struct reduce_set set;
    uint32_t acc[REDUCE_MAX]; // kernel.acc of set.acc
    const char *at;           // first element of the vector being written
    uint32_t strand;          // vectors of a turn of its loop written before
};

// Numbers the scratch of kept values. Lives in e->mem. Installs e->resolve.
void stages_begin(struct stages *st, struct emitter *e);
// Call after emit_function.
void stages_function(struct stages *st);

// Writes stage `stage` over elements from .. to of R below the row scope; partials of the stage's
// accumulators (st->set, st->acc) go to out. Nothing is written when the stage has no ELEM work.
void stages_run(struct stages *st, struct emit_scope *row, uint32_t stage, const char *from,
                const char *to, struct emit_acc *out);
// i1: all ELEM stores of the stage, from element `from` of the row on, go to whole aligned vectors.
const char *stages_aligned(struct stages *st, struct emit_scope *row, uint32_t stage,
                           const char *from);
// The ELEM stores of st->stage at a vector; flags hold where st->aligned does.
void stages_store(struct stages *st, struct emit_scope *s, uint32_t flags);
// Several stages in one loop, each over a row of its own (row_overlap.c).
struct merge {
    struct stages *st;
    uint32_t stages;                    // bit s: stage s is one
    uint32_t store_flags;
    struct emit_scope *row[ROW_MAX_OVERLAP]; // per stage
    const bool *first[ROW_MAX_OVERLAP]; // its own: what no earlier stage has read
};
void stages_merged(struct merge *m, struct emit_acc *out);
// A stage, unrolled over the `vectors` scopes of a row that fits in registers (see stages_bind).
void stages_unrolled(struct stages *st, struct emit_scope *vector, uint32_t vectors, uint32_t stage,
                     struct emit_acc *out);
// Binds the R axes of a 16-lane scope to elements j .. j + 15.
void stages_bind(struct stages *st, struct emit_scope *s, const char *j);

// Makes v known as the result of accumulator acc.
void stages_result(struct stages *st, struct emit_scope *row, uint32_t acc, const char *v);
// What belongs to a point of P, once the results of earlier stages are known: its ROW instructions,
// ROW stores of this stage, and ROW values that accumulators over P need, which go to
// shared, at index. row has one lane, or one for each of several neighbours from there on.
void stages_row(struct stages *st, struct emit_scope *row, uint32_t stage, const char *index);

// The end of kernel_finish: reduces the array of each accumulator over P, computes and stores what
// is level ONCE.
void stages_finish(struct stages *st);

#endif

// pointwise.h: inside the pointwise class: what pointwise.c and pointwise_tiles.c share.
#ifndef FUSEC_CODEGEN_CPU_POINTWISE_H
#define FUSEC_CODEGEN_CPU_POINTWISE_H

#include "codegen/cpu/emit.h"

// The coordinates of a unit, the last the fastest, as values carried around the loop over units.
struct odometer {
    struct emit_loop loop;
    uint32_t n;
    const char *count[MAX_AXES], *at[MAX_AXES];
};

void odometer_open(struct emitter *e, struct odometer *o);
void odometer_close(struct emitter *e, struct odometer *o);

// How many blocks of `size` an axis has.
const char *pointwise_blocks(struct emitter *e, const char *name, uint32_t axis, int64_t size);
// [from, to) of block number `at` of an axis, in blocks of `size`.
void pointwise_block_range(struct emitter *e, const char *at, const char *size, uint32_t axis,
                           const char **from, const char **to);
// Elements [from, to) of a row along an axis.
void pointwise_row_range(struct emitter *e, struct emit_scope *row, uint32_t axis,
                         const char *from, const char *to);

// The body of a kernel with loads to transpose. False: the diagnostic is set.
bool pointwise_tiles(struct emitter *e);

#endif

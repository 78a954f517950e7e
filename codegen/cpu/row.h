// row.h: inside the row class: what row.c, row_overlap.c and row_pieces.c share.
#ifndef FUSEC_CODEGEN_CPU_ROW_H
#define FUSEC_CODEGEN_CPU_ROW_H

#include "codegen/cpu/stage.h"

// Binds the axes of P to a row by its number.
void row_bind(struct stages *st, struct emit_scope *row, const char *flat);
// The dtype of an accumulator's result.
uint8_t row_result_dtype(const struct acc *a);
// The loop over the rows of a task, with stages of consecutive rows in one loop over R.
void row_overlap(struct stages *st);
// The loop over groups of rows, with the last stage of each in pieces of columns.
void row_pieces(struct stages *st);

#endif

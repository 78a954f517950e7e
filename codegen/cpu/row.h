// row.h: inside the row class: what row.c and row_overlap.c share.
#ifndef FUSEC_CODEGEN_CPU_ROW_H
#define FUSEC_CODEGEN_CPU_ROW_H

#include "codegen/cpu/stage.h"

// Binds the axes of P to a row by its number.
void row_bind(struct stages *st, struct emit_scope *row, const char *flat);
// The loop over the rows of a task, with stages of consecutive rows in one loop over R.
void row_overlap(struct stages *st);

#endif

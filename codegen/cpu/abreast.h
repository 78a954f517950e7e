// abreast.h: the row class for kernels of which several rows are taken at once.
#ifndef FUSEC_CODEGEN_CPU_ABREAST_H
#define FUSEC_CODEGEN_CPU_ABREAST_H

#include "codegen/cpu/emit.h"

bool cpu_row_abreast(struct emitter *e); // as cpu_row, where schedule.rows asks for it

#endif

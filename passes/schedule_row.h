// schedule_row.h: what the row and split classes share: their parameters and figures.
#ifndef FUSEC_PASSES_SCHEDULE_ROW_H
#define FUSEC_PASSES_SCHEDULE_ROW_H

#include "ir/kernel.h"

// Schedule parameters of the row and split classes (struct schedule's general fields):
//   tile[0]  vectors of a row that is unrolled and held in registers; 0: a loop
//   tile[1]  what is known about the extent of R (enum row_extent): code that it makes needless is
//            not generated
//   tile[2]  blocks of the reduction order in a row, where they are few; 0: any number
//   unroll   blocks in flight in stages that have little else to hide latency behind, 1 or 4
enum { ROW_TILE_VECTORS = 0, ROW_TILE_EXTENT = 1, ROW_TILE_BLOCKS = 2 };
enum row_extent {
    ROW_NO_TAIL = 1, // a multiple of 16
    ROW_NO_REST = 2, // a multiple of four blocks
    ROW_WHOLE_STRIPS = 4, // rows abreast: the last P axis, a multiple of 16
};
uint16_t row_extent_flags(int64_t points);
enum { ROW_MAX_OVERLAP = 8 }; // stages of a kernel whose rows overlap (struct schedule's overlap)
enum { ROW_MAX_ACCS = 16 }; // accumulators over R of one stage

// Rows abreast (schedule.rows not 0): a unit is 16 rows of the last P axis, and tile[0] counts the
// vectors of a row that is written out without a loop. keep: values computed once for many rows.
// grain: the least rows that a thread takes. False: rows are better taken one by one.
enum { ROW_ABREAST = 4 };
bool schedule_abreast(const struct kernel *k, const struct target *t, struct schedule *s,
                      int64_t grain);
// Per instruction: an element that all points of the last P axis share and that others, or
// accumulators, use. The caller frees.
bool *row_shared_edge(const struct kernel *k);

// Keeps a row of inst's values in scratch, if all that is kept then fits `most` bytes.
void row_keep(const struct kernel *k, struct schedule *s, uint32_t inst, int64_t most);
uint32_t row_inst_cost(const struct kernel *k, uint32_t inst);
uint32_t row_elem_cost(const struct kernel *k); // of one element, all stages
int64_t row_shared_bytes(const struct kernel *k); // for accumulators over P
bool row_too_many_accs(const struct kernel *k);
// Bytes of shared memory that the split class's partial results take, units parts in all.
int64_t split_part_bytes(const struct kernel *k, int64_t units);

#endif

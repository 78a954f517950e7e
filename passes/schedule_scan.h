// schedule_scan.h: schedule parameters of the scan class (struct schedule's general fields).
//   tile[0]  columns of a strip, where memory runs along the last P axis; 0: along R
//   tile[1]  what is known about extents (enum row_extent)
//   tile[2]  levels of the order (ir/kernel.h) that a row reaches: 1: a block, 2: a span, 3: all
//   unroll   columns: rows that are written out one after the other; 0: all go row by row
//   prefetch columns: rows ahead; rows: cache lines ahead
//   finish_units  rows divided among threads, chunk elements (of whole spans) a unit; else 0
#ifndef FUSEC_PASSES_SCHEDULE_SCAN_H
#define FUSEC_PASSES_SCHEDULE_SCAN_H

#include "ir/base/size.h"
#include "passes/schedule_row.h"

enum { SCAN_TILE_STRIP = 0, SCAN_TILE_EXTENT = ROW_TILE_EXTENT, SCAN_TILE_LEVELS = 2 };
enum { SCAN_MAX = 12 }; // scans of one kernel

// Spans of a row, the last of which may be a part of one.
static inline int64_t
scan_span_count(int64_t points)
{
    return ceil_div(points, SCAN_SPAN);
}

// Arrays of one strip in which columns carry what lies before the rows at hand: V, the parts of 16
// rows, (S + B) + V, B, S + B, S. Where order is free V is all that lies before.
enum { SCAN_COLUMN_PLACES = 5 + SCAN_STEPS };
enum { SCAN_COLUMN_GAP = 320 }; // bytes between them, so that they do not share sets of the caches
static inline uint32_t
scan_column_places(bool free, uint32_t levels)
{
    static const uint32_t places[] = {0, 1 + SCAN_STEPS, 3 + SCAN_STEPS, SCAN_COLUMN_PLACES};
    return free ? 1 : places[levels];
}

// Whether some scan's operand depends on another scan's result: then what a span comes to depends
// on those before it.
bool scans_in_turn(const struct kernel *k);

#endif

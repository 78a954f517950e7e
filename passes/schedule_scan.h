// schedule_scan.h: schedule parameters of the scan class (struct schedule's general fields).
//   tile[0]  0: rows along memory
//   tile[1]  what is known about the extent of R (enum row_extent)
//   tile[2]  levels of the order (ir/kernel.h) that a row reaches: 1: one block, 2: one span, 3: all
#ifndef FUSEC_PASSES_SCHEDULE_SCAN_H
#define FUSEC_PASSES_SCHEDULE_SCAN_H

#include "passes/schedule_row.h"

enum { SCAN_TILE_STRIP = 0, SCAN_TILE_EXTENT = ROW_TILE_EXTENT, SCAN_TILE_LEVELS = 2 };
enum { SCAN_MAX = 16 }; // scans of one kernel

#endif

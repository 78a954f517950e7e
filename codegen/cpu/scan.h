// scan.h: inside the scan class: what scan.c (rows) and scan_column.c (columns) share.
#ifndef FUSEC_CODEGEN_CPU_SCAN_H
#define FUSEC_CODEGEN_CPU_SCAN_H

#include "codegen/cpu/emit.h"
#include "passes/schedule_scan.h"

struct scans { // of a kernel, in an order in which each may use the results of those before it
    struct emitter *e;
    uint32_t n, lanes;
    const struct acc *acc[SCAN_MAX];
    bool free[SCAN_MAX];        // of order
    const char *none[SCAN_MAX]; // the identity, in all lanes
    const char *type[SCAN_MAX]; // of a vector
};

// Elements that each turn of the loops over blocks (level 2) and spans (3) takes.
static inline uint32_t
scan_step(uint32_t level)
{
    return level == 2 ? SCAN_BLOCK : SCAN_SPAN;
}

void scans_find(struct scans *p, struct emitter *e, uint32_t lanes);
const char *scans_join(const struct scans *p, uint32_t i, const char *older, const char *newer);
// Makes v known as the result of scan i in s.
void scans_give(const struct scans *p, struct emit_scope *s, uint32_t i, const char *v);

// The functions of a kernel whose vectors run along the last P axis.
void scan_columns(struct emitter *e);

#endif

// schedule_scan.c: parameters of the scan class: kernels whose accumulators run along R, with
// pointwise work before and after them.
//
// A task unit is a row. All that such a kernel does, it does in one pass over the elements: it has
// one stage, and stores elements only. Reductions beside or before a scan are another kernel's.
#include "passes/schedule_scan.h"

#include "passes/plan.h"
#include "passes/schedule.h"

enum { GRAIN_WORK = 1 << 17 }; // least cost given to a thread

static bool
takes_body(const struct kernel *k)
{
    if (!k->nred || k->nstage != 1 || k->acc.n > SCAN_MAX)
        return false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope != ALONG_R)
            return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level != LEVEL_ELEM)
            return false;
    return true;
}

// Bytes per element that are loaded and stored.
static int64_t
element_bytes(const struct kernel *k)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load && k->inst.at[i].level == LEVEL_ELEM)
            bytes += dtype_size(k->inst.at[i].dtype);
    for (uint32_t i = 0; i < k->store.n; i++)
        bytes += dtype_size(k->access.at[k->store.at[i].access].dtype);
    return bytes;
}

static bool
stores_run_along(const struct kernel *k, uint32_t axis)
{
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->access.at[k->store.at[i].access].stride[axis] != 1)
            return false;
    return true;
}

bool
schedule_scan(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *s = (struct schedule){.cls = CLASS_SCAN, .vec = SCAN_LANES, .unroll = 1};
    if (!takes_body(k))
        return *why = REASON_no_class, false;
    int64_t points = kernel_points(k, AXIS_R), rows = kernel_points(k, AXIS_P);
    s->tile[SCAN_TILE_EXTENT] = row_extent_flags(points);
    s->tile[SCAN_TILE_LEVELS] = points <= SCAN_BLOCK ? 1 : points <= SCAN_SPAN ? 2 : 3;
    s->units = rows;
    int64_t work = points * (2 + row_elem_cost(k) / 4);
    s->grain = work < GRAIN_WORK ? (GRAIN_WORK + work - 1) / (work ? work : 1) : 1;
    int64_t bytes = rows * points * element_bytes(k);
    s->streaming_store = t->llc > 0 && bytes > schedule_streaming_bytes(t) &&
                         stores_run_along(k, k->naxis - 1u);
    return true;
}

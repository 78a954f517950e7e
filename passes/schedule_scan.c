// schedule_scan.c: parameters of the scan class: kernels whose accumulators run along R, with
// pointwise work before and after them.
//
// Vectors run along R, or along the last P axis where memory does. All that such a kernel does, it
// does in one pass over the elements: it has one stage, and stores elements only. Reductions beside
// or before a scan are another kernel's.
#include "passes/schedule_scan.h"

#include "ir/base/size.h"
#include "passes/plan.h"
#include "passes/schedule.h"

enum {
    GRAIN_WORK = 1 << 17,  // least cost given to a thread
    MIN_COLUMNS = 8,       // of columns side by side
    MIN_STRIP = 64,        // columns
    MAX_STRIP = 1024,
    STRIPS = 2,            // a thread, at least
    ROWS_AHEAD = 4,        // that are asked for
    MAX_WRITTEN_OUT = 600, // cost of the elements of 16 rows
    MIN_SPANS = 4,         // of a row that is divided
    PARTS = 16,            // units a thread
    LINES_AHEAD = 128,     // of 64 bytes: 330 us became 312, in a row that is divided 5.2 ms 4.3
};

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

// Whether memory runs along the last P axis rather than along R: more bytes move along it with unit
// stride, and there are columns enough to fill half a vector.
static bool
runs_along_columns(const struct kernel *k)
{
    uint32_t p = k->naxis - k->nred - 1u, r = k->naxis - 1u;
    if (k->naxis == k->nred || k->axis[p].extent < MIN_COLUMNS)
        return false;
    int64_t columns = 0, rows = 0;
    for (uint32_t i = 0; i < k->access.n; i++) {
        const struct access *x = &k->access.at[i];
        int64_t size = dtype_size(x->dtype);
        columns += x->stride[p] == 1 && x->stride[r] ? size : 0;
        rows += (x->stride[r] == 1 || x->stride[r] == -1) && x->stride[p] ? size : 0;
    }
    return columns > rows;
}

// Bytes of scratch that a column takes, in all arrays.
static int64_t
column_bytes(const struct kernel *k, uint32_t levels)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        bytes += scan_column_places(op_any_order(a->op, a->dtype), levels) * dtype_size(a->dtype);
    }
    return bytes;
}

// As wide as the first-level cache holds what each row reads of it (V, D and the parts) beside the
// rows, and as many strips as threads can share.
static int64_t
choose_strip(const struct kernel *k, const struct target *t)
{
    int64_t columns = k->axis[k->naxis - k->nred - 1].extent, strip = MAX_STRIP;
    int64_t outer = columns ? kernel_points(k, AXIS_P) / columns : 0, threads = max64(t->units, 1);
    int64_t most = (t->l1 ? t->l1 : 32768) * 2 / 3 / column_bytes(k, 1);
    while (strip > MIN_STRIP && (strip > most || strip / 2 >= columns ||
                                 outer * ceil_div(columns, strip) < STRIPS * threads))
        strip /= 2;
    return strip;
}

static void
schedule_columns(const struct kernel *k, const struct target *t, int64_t bytes, struct schedule *s)
{
    uint32_t axis = k->naxis - k->nred - 1u, levels = s->tile[SCAN_TILE_LEVELS];
    int64_t points = kernel_points(k, AXIS_R), columns = k->axis[axis].extent;
    int64_t strip = choose_strip(k, t), strips = ceil_div(columns, strip);
    bool cached = bytes <= schedule_own_cache(t);
    s->unroll = cached ? (uint8_t)min64(points, SCAN_LANES) : 0;
    if (s->unroll * row_elem_cost(k) > MAX_WRITTEN_OUT)
        s->unroll = 0;
    s->prefetch = cached ? 0 : ROWS_AHEAD;
    if (columns % s->vec == 0)
        s->tile[SCAN_TILE_EXTENT] |= ROW_WHOLE_STRIPS;
    s->tile[SCAN_TILE_STRIP] = (uint16_t)strip;
    int64_t gaps = (64 + SCAN_COLUMN_GAP) * SCAN_COLUMN_PLACES * (int64_t)k->acc.n;
    s->scratch_bytes = strip * column_bytes(k, levels) + gaps;
    s->units = columns ? kernel_points(k, AXIS_P) / columns * strips : 0;
    int64_t work = points * strip * (2 + row_elem_cost(k) / 4);
    s->grain = GRAIN_WORK / max64(work, 1) + 1;
}

bool
scans_in_turn(const struct kernel *k)
{
    bool turn = false, *after = xcalloc(k->inst.n, 1);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        after[i] = x->op == OP_result || after[x->a] || after[x->b] || after[x->c];
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        turn |= after[k->acc.at[i].value];
    xfree(after);
    return turn;
}

// Few long rows: spans are divided among threads, PARTS units for each.
static void
schedule_spans(const struct kernel *k, const struct target *t, struct schedule *s)
{
    int64_t points = kernel_points(k, AXIS_R), rows = kernel_points(k, AXIS_P), bytes = 0;
    int64_t parts = scan_span_count(points), threads = t->units;
    if (threads < 2 || rows >= 2 * threads || parts < MIN_SPANS || scans_in_turn(k))
        return;
    int64_t each = max64(rows * parts / (threads * PARTS), 1); // spans a unit
    for (uint32_t i = 0; i < k->acc.n; i++)
        bytes += rows * parts * SCAN_LANES * dtype_size(k->acc.at[i].dtype);
    s->chunk = each * SCAN_SPAN;
    s->units = s->finish_units = rows * ceil_div(parts, each);
    s->grain = 1;
    s->shared_scratch_bytes = bytes;
}

bool
schedule_scan(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *s = (struct schedule){.cls = CLASS_SCAN, .vec = SCAN_LANES, .unroll = 1};
    if (!takes_body(k))
        return *why = REASON_no_class, false;
    int64_t points = kernel_points(k, AXIS_R), rows = kernel_points(k, AXIS_P);
    bool columns = runs_along_columns(k);
    s->tile[SCAN_TILE_EXTENT] = row_extent_flags(points);
    s->tile[SCAN_TILE_LEVELS] = points <= SCAN_BLOCK ? 1 : points <= SCAN_SPAN ? 2 : 3;
    s->units = rows;
    int64_t work = points * (2 + row_elem_cost(k) / 4);
    s->grain = GRAIN_WORK / max64(work, 1) + 1;
    int64_t bytes = rows * points * element_bytes(k);
    uint32_t along = columns ? k->naxis - k->nred - 1u : k->naxis - 1u;
    // Stores that go from row to row wait longest for their lines.
    int64_t stream = schedule_streaming_bytes(t) / (columns ? 2 : 1);
    s->streaming_store = t->llc > 0 && bytes >= stream && stores_run_along(k, along);
    if (columns) {
        schedule_columns(k, t, bytes, s);
    } else {
        s->prefetch = bytes > schedule_own_cache(t) ? LINES_AHEAD : 0;
        schedule_spans(k, t, s);
    }
    return true;
}

// schedule_split.c: parameters of the split class: few rows, long R.
//
// The row class gives a thread whole rows; where there are fewer rows than threads, R is divided
// instead. That needs a second phase, so only bodies that do no more with the results than a little
// work a row qualify; the others wait for all of R and are better served by one thread with its
// caches. Parts are a power of two of reduction blocks, many a thread, as in the end all wait for
// the last one, and not so short that starting a thread costs more than it saves.
#include "passes/plan.h"
#include "passes/schedule.h"
#include "passes/schedule_row.h"

enum {
    MIN_PART_WORK = 1 << 16, // cost of the elements of a part, at least
    PARTS_PER_THREAD = 32, // and up to twice as many
};

int64_t
split_part_bytes(const struct kernel *k, int64_t units)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        int64_t position = op_gives_position(a->op) ? dtype_size(DT_i64) : 0;
        if (a->scope == OVER_R)
            bytes += units * RED_LANES * (dtype_size(a->dtype) + position);
    }
    return (bytes + 63) & ~(int64_t)63;
}

// One loop over R with accumulators, and nothing per element after it.
static bool
takes_body(const struct kernel *k)
{
    if (!k->nred || k->cls == CLASS_CONTRACT || k->nstage > 2 || row_too_many_accs(k))
        return false;
    bool reduces = false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        reduces |= k->acc.at[i].scope == OVER_R;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].stage > 0 && k->inst.at[i].level == LEVEL_ELEM)
            return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage > 0 && k->store.at[i].level == LEVEL_ELEM)
            return false;
    return reduces;
}

// Elements a part, a power of two of blocks, at least four.
static int64_t
part_length(int64_t rows, int64_t points, int64_t cost, int64_t threads)
{
    int64_t length = 4 * RED_BLOCK;
    while (length * cost < MIN_PART_WORK ||
           rows * ((points + length - 1) / length) > threads * PARTS_PER_THREAD * 2)
        length *= 2;
    return length;
}

// Cache lines from an element to the same one of the next four blocks, which are in flight at once,
// where they come from beyond the cores' own caches; else 0.
static uint8_t
lines_ahead(const struct kernel *k, const struct target *t)
{
    int64_t bytes = 0, width = 1;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->level != LEVEL_ELEM)
            continue;
        bytes += dtype_size(in->dtype);
        width = dtype_size(in->dtype) > width ? dtype_size(in->dtype) : width;
    }
    bytes *= kernel_points(k, AXIS_P) * kernel_points(k, AXIS_R);
    int64_t lines = t->l2 && bytes > schedule_own_cache(t) ? 4 * RED_BLOCK * width / 64 : 0;
    return (uint8_t)lines;
}

bool
schedule_split(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *s = (struct schedule){.cls = CLASS_SPLIT, .vec = 16, .unroll = 4, .finish_units = 1};
    int64_t rows = kernel_points(k, AXIS_P), points = kernel_points(k, AXIS_R);
    int64_t threads = t->units;
    if (!takes_body(k) || rows == 0 || rows >= 2 * threads)
        return *why = REASON_no_class, false;
    s->chunk = part_length(rows, points, 1 + row_elem_cost(k) / 4, threads);
    s->units = rows * ((points + s->chunk - 1) / s->chunk);
    if (s->units < 2 || s->units == rows)
        return *why = REASON_no_class, false;
    s->tile[ROW_TILE_EXTENT] = row_extent_flags(points);
    s->grain = 1;
    s->prefetch = lines_ahead(k, t);
    // Such hardware reads one block after the other faster than four side by side: bare loops over
    // 17 MB took 747 and 1097 us.
    if (s->prefetch && schedule_hardware_asks_ahead(t)) {
        s->prefetch = 0;
        s->unroll = 1;
    }
    s->shared_scratch_bytes = split_part_bytes(k, s->units) + row_shared_bytes(k);
    return true;
}

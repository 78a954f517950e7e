// schedule_column_lanes.c: column kernels of one reduction over one axis, lane by lane.
//
// Where all that is read fits the cores' own caches, or where strips with all their 16 lanes can be
// wide runs of memory and are many, a unit is such a strip. Else the lanes of a pass are as few as
// make a run of 16 KiB of whole rows, or of a strip of them, and rows are cut into parts until
// there is a unit for each thread's every chunk; a second phase joins what they leave. Measured
// with 1 GB on two cores that read 33 GB/s: passes over rows of 16 KiB reached 32.8, of 8 KiB 31.6,
// of 4 KiB 30.3, of 1 KiB 27.7; 16 lanes a pass over rows of 256 bytes to 8 KiB 31.3 to 32.7.
// Bare loops over rows of 16 KiB beyond the caches, reading 1, 2, 4 or all 16 rows of a chain at
// once: 109, 108, 103 and 94 GB/s with 16 threads of a Xeon, 14.0, 17.2, 17.8 and 11.9 with two of
// a Zen 3. Of another Xeon, 16 and 2 threads: row by row 126 and 26.9 GB/s, two rows at once 119
// and 28.8, row by row with requests 8 or 16 KiB ahead, across the end of the row, 139 to 141 and
// 28.9, 2 KiB ahead 124 and 27.1; plain loads from one end to the other 141 and 29.2.
#include "ir/base/size.h"
#include "passes/schedule_column.h"

enum {
    RUN = 16 << 10,      // bytes that a pass reads in one go, at best
    SHORT_RUN = 8 << 10, // and at least where another way is open
    WIDE = 32 << 10,     // bytes of a strip's results of one lane, at most
    PART_BLOCKS = 4,     // of a part, at least: what it leaves is small beside what it reads
    UNITS_A_THREAD = 4,  // at least, so that no thread waits long for the last one
    PARTS_A_THREAD = 8,
    MAX_ACCS = 8,
    STREAMS = 2,         // rows that a go through a strip reads where nothing is asked for ahead
    AHEAD = 8 << 10,     // bytes between a load and the request for what follows, at least
};

static bool
takes_body(const struct kernel *k)
{
    if (k->nred != 1 || k->nstage != 2 || !k->acc.n || k->acc.n > MAX_ACCS)
        return false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage)
            return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ELEM)
            return false;
    return true;
}

struct lanes_plan {
    const struct column_cost *c;
    int64_t rows, columns, outer, threads, group; // group: columns taken at once
    int64_t strip, lanes, part;                   // part: rows
    bool parts;                                   // units leave their lanes to a second phase
};

static int64_t
units(const struct lanes_plan *p)
{
    int64_t n = p->outer * ceil_div(p->columns, p->strip);
    return p->parts ? n * (RED_LANES / p->lanes) * ceil_div(p->rows, p->part) : n;
}

static int64_t
unit_scratch(const struct lanes_plan *p)
{
    int64_t slots = column_slots(min64(p->part, p->rows));
    int64_t column = p->c->slot_column / RED_LANES * p->lanes * slots + p->c->array_column;
    return p->strip * column + 64 * p->c->arrays + RED_BLOCK * p->c->factor_row;
}

static int64_t
finish_scratch(const struct lanes_plan *p)
{
    int64_t slots = column_slots(ceil_div(p->rows, p->part) * RED_BLOCK);
    int64_t column = p->c->slot_column * slots + p->c->array_column;
    return min64(p->strip, COLUMN_PIECE) * column + 64 * p->c->arrays +
           RED_BLOCK * p->c->factor_row;
}

// n strips of equal width, or as near as vectors allow.
static int64_t
divided(int64_t columns, int64_t n, int64_t to)
{
    return round_up(max64(ceil_div(columns, n), 1), to);
}

// A power of two of blocks that holds all rows.
static int64_t
all_rows(const struct lanes_plan *p)
{
    int64_t part = RED_BLOCK;
    while (part < p->rows)
        part *= 2;
    return part;
}

// Strips with all their lanes and rows, as wide as scratch allows.
static bool
plan_strips(struct lanes_plan *p, int64_t vec)
{
    p->lanes = RED_LANES;
    p->part = all_rows(p);
    p->parts = false;
    p->strip = vec;
    int64_t fixed = unit_scratch(p),
            column = (fixed - 64 * p->c->arrays - RED_BLOCK * p->c->factor_row) / vec;
    if (fixed > COLUMN_SCRATCH)
        return false;
    int64_t most = min64((COLUMN_SCRATCH - fixed) / max64(column, 1), WIDE);
    int64_t to = most >= p->group ? p->group : vec;
    most = max64(most / to * to, vec);
    p->strip = divided(p->columns, max64(ceil_div(p->columns, most), 1), to);
    while (p->strip > p->group && units(p) < UNITS_A_THREAD * p->threads &&
           p->strip * p->rows > 4096)
        p->strip = round_up(p->strip / 2, p->group);
    return true;
}

static bool
plan_parts(struct lanes_plan *p, int64_t vec)
{
    int64_t acc = p->c->slot_column / RED_LANES, load = max64(p->c->bytes, 1);
    int64_t n = ceil_div(p->columns * acc, WIDE), strips;
    p->strip = divided(p->columns, max64(n, 1), vec);
    if (p->strip > COLUMN_PIECE)
        p->strip = round_up(p->strip, COLUMN_PIECE);
    p->parts = true;
    for (p->lanes = 1; p->lanes < RED_LANES && p->lanes * p->strip * load < RUN;)
        p->lanes *= 2;
    p->part = all_rows(p);
    while (p->part > PART_BLOCKS * RED_BLOCK && units(p) < PARTS_A_THREAD * p->threads)
        p->part /= 2;
    while (unit_scratch(p) > COLUMN_SCRATCH && p->part > 64 * RED_BLOCK)
        p->part /= 2;
    while (unit_scratch(p) > COLUMN_SCRATCH && p->lanes > 1)
        p->lanes /= 2;
    for (strips = ceil_div(p->columns, p->strip); unit_scratch(p) > COLUMN_SCRATCH; strips++) {
        p->strip = divided(p->columns, strips + 1, vec);
        if (p->strip > COLUMN_PIECE)
            p->strip = round_up(p->strip, COLUMN_PIECE);
        if (p->strip <= COLUMN_PIECE)
            return false;
    }
    return finish_scratch(p) <= COLUMN_SCRATCH;
}

// Whether strips with all their lanes read memory in runs, and keep all threads busy.
static bool
strips_will_do(const struct lanes_plan *p)
{
    bool run = p->strip >= p->columns || p->strip * p->c->bytes >= SHORT_RUN;
    return run && (p->threads == 1 || units(p) >= UNITS_A_THREAD * p->threads);
}

// Vectors at once and rows of a chain that is written out.
static void
choose_chains(const struct lanes_plan *p, struct schedule *s)
{
    int64_t acc = p->c->slot_column / RED_LANES, heavy = p->c->ops > 8;
    s->rows = 4;
    while (s->rows > 1 && s->rows * acc * s->vec * (1 + heavy) > 512)
        s->rows /= 2;
    int64_t rows = min64(p->rows / RED_LANES, RED_STEPS);
    bool light = p->c->ops <= 6 && p->c->insts <= 6;
    s->unroll = light && rows >= 1 ? (uint8_t)rows : 0;
    s->edge[0] = p->rows < RED_BLOCK ? p->rows != rows * RED_LANES : p->rows % RED_BLOCK != 0;
}

// How chains are read that do not fit the cores' own caches. Row by row each element costs a load
// and a store of its chain, which therefore should stay in the first-level cache beside the row.
static void
choose_run(const struct lanes_plan *p, const struct target *t, int64_t traffic, struct schedule *s)
{
    int64_t chains = p->strip * p->c->slot_column / RED_LANES, row = p->strip * p->c->bytes;
    bool asks = traffic > schedule_shared_cache(t) && !schedule_hardware_asks_ahead(t) &&
                chains <= WIDE / 2;
    s->edge[1] = asks ? 1 : STREAMS;
    if (asks)
        s->prefetch = (uint8_t)(RED_LANES * min64(ceil_div(AHEAD, row), 15));
}

bool
schedule_column_lanes(const struct kernel *k, const struct column_cost *c, const struct target *t,
                      struct schedule *s)
{
    uint32_t axis = k->naxis - k->nred - 1u;
    struct lanes_plan p = {.c = c,
                           .rows = kernel_points(k, AXIS_R),
                           .columns = k->axis[axis].extent,
                           .threads = t->units ? t->units : 1};
    p.outer = p.columns ? kernel_points(k, AXIS_P) / p.columns : 0;
    if (!takes_body(k) || p.rows <= RED_LANES || !p.columns || !p.outer)
        return false;
    // With few rows what chains leave is much beside what they read. It should stay in the
    // first-level cache, and then narrow strips of rows in order are better (schedule_column.c).
    int64_t l1 = t->l1 ? t->l1 : 32768;
    if (p.rows < RED_BLOCK && p.columns > l1 * 2 / 3 / c->slot_column)
        return false;
    choose_chains(&p, s);
    p.group = s->rows * s->vec;
    int64_t traffic = p.outer * p.rows * p.columns * c->bytes;
    bool small = traffic <= schedule_own_cache(t);
    if (!(plan_strips(&p, s->vec) && (small || strips_will_do(&p))) && !plan_parts(&p, s->vec))
        return false;
    s->tile[0] = (uint16_t)p.strip;
    if (!small && s->unroll == RED_STEPS)
        choose_run(&p, t, traffic, s);
    s->tile[2] = (uint16_t)p.lanes;
    s->chunk = p.part;
    s->units = units(&p);
    s->grain = column_grain(c, min64(p.part, p.rows) * p.lanes / RED_LANES * p.strip);
    s->scratch_bytes = unit_scratch(&p);
    if (p.parts) {
        s->scratch_bytes = max64(s->scratch_bytes, finish_scratch(&p));
        s->shared_scratch_bytes = s->units * p.lanes * p.strip * (c->slot_column / RED_LANES);
        s->finish_units = p.outer * ceil_div(p.columns, min64(p.strip, COLUMN_PIECE));
    }
    return true;
}

// schedule_column.c: strips of kernels that reduce over R with the last P axis along memory.
//
// A strip's accumulators (16 lanes, per level of the block counter) are scratch memory, at most
// 256 KiB of it, and those of the current block should stay in the first-level cache. Wide strips
// are better: each row of a strip is a run of memory. Kernels of several stages need their
// elements several times: where a strip of 4 vectors and all rows fits, they are kept in scratch
// too. Else they are read again: strips whose rows are a line or two would stay in a cache, but
// cost more in page and cache conflicts than is saved (4096 x 4096 softmax: 16 columns 16 ms, 256
// columns 8 ms). With several passes hardware prefetchers lose track of the rows; 32 rows ahead is
// far enough. Kernels of one reduction are scheduled in schedule_column_lanes.c.
#include "passes/schedule_column.h"

#include "ir/base/size.h"
#include "ir/expand.h"
#include "passes/column_factor.h"
#include "passes/column_keep.h"
#include "passes/plan.h"

enum { MAX_STRIP = 512, KEEP_VECTORS = 4, PREFETCH_ROWS = 32, FEW_INSTS = 400 };
static int64_t
stage_slot(const struct kernel *k, uint8_t stage)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        int64_t position = op_gives_position(a->op) ? dtype_size(DT_i64) : 0;
        if (a->stage == stage)
            bytes += RED_LANES * (dtype_size(a->dtype) + position);
    }
    return bytes;
}

// Row values that elements use, and results: the arrays of column_layout.c, or more.
static void
count_arrays(const struct kernel *k, struct column_cost *c)
{
    bool *row = xcalloc(k->inst.n, sizeof *row);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        row[i] |= in->op == OP_result;
        if (in->level == LEVEL_ELEM)
            row[in->a] = row[in->b] = row[in->c] = true;
    }
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (row[i] && (in->op == OP_result || (in->level == LEVEL_ROW && in->op != OP_literal))) {
            c->array_column += dtype_size(in->dtype);
            c->arrays++;
        }
    }
    xfree(row);
}

static struct column_cost
column_cost(const struct kernel *body)
{
    struct column_cost c = {.width = 1};
    bool reads[256] = {false};
    struct kernel k;
    kernel_copy(&k, body);
    kernel_expand(&k);
    for (uint32_t i = 1; i < k.inst.n; i++) {
        const struct inst *in = &k.inst.at[i];
        c.width = dtype_size(in->dtype) > c.width ? dtype_size(in->dtype) : c.width;
        if (in->level != LEVEL_ELEM)
            continue;
        c.insts++;
        c.ops += op_table[in->op].cost;
        if (in->op == OP_load)
            c.bytes += dtype_size(in->dtype);
    }
    for (uint32_t i = 0; i < k.acc.n; i++) {
        reads[k.acc.at[i].stage] = true;
        c.ops += op_table[k.acc.at[i].op].cost;
    }
    for (uint32_t i = 0; i < k.store.n; i++)
        if (k.store.at[i].level == LEVEL_ELEM) {
            reads[k.store.at[i].stage] = true;
            c.bytes += dtype_size(k.access.at[k.store.at[i].access].dtype);
        }
    for (uint32_t s = 0; s < k.nstage; s++) {
        c.passes += reads[s];
        int64_t slot = stage_slot(&k, (uint8_t)s);
        c.slot_column = slot > c.slot_column ? slot : c.slot_column;
    }
    count_arrays(&k, &c);
    bool *factor = xcalloc(k.inst.n, sizeof *factor);
    c.factor_row = column_factors(&k, factor);
    xfree(factor);
    kernel_free_body(&k);
    return c;
}

int64_t
column_slots(int64_t rows)
{
    int64_t n = 1;
    for (int64_t blocks = (rows + RED_BLOCK - 1) / RED_BLOCK; blocks > 1; blocks /= 2)
        n++;
    return n;
}

int64_t
column_grain(const struct column_cost *c, int64_t elements)
{
    static const int64_t byte_weight_percent = 270, grain_weight = 160000;
    int64_t weight = elements * (c->ops + c->bytes * byte_weight_percent / 100) + 1;
    return weight < grain_weight ? grain_weight / weight : 1;
}

static int64_t
scratch_bytes(const struct column_cost *c, int64_t strip, int64_t rows)
{
    int64_t column = c->slot_column * column_slots(rows) + c->array_column;
    return strip * (column + rows * c->keep_element) + 64 * c->arrays;
}

static int64_t
choose_strip(const struct column_cost *c, const struct target *t, int64_t vec, int64_t rows,
             int64_t columns, int64_t outer)
{
    int64_t l1 = t->l1 ? t->l1 : 32768;
    int64_t threads = t->units ? t->units : 1, strip = MAX_STRIP;
    while (strip > vec && strip / 2 >= columns)
        strip /= 2;
    int64_t column = scratch_bytes(c, 1, rows) - 64 * c->arrays;
    int64_t most = min64(l1 * 2 / 3 / max64(c->slot_column, 1),
                         (COLUMN_SCRATCH - 64 * c->arrays) / max64(column, 1));
    if (most < strip) { // as wide as may be, and as many for each thread
        most = max64(most / vec * vec, vec);
        int64_t n = round_up(max64((columns + most - 1) / most, 1), threads);
        strip = round_up((columns + n - 1) / n, vec);
    }
    while (strip > 2 * vec && outer * ((columns + strip - 1) / strip) < 4 * threads &&
           rows * strip > 4096)
        strip = round_up(strip / 2, vec);
    return strip;
}

// Sets the keep bits if some vectors of columns with all that is kept fit into scratch.
static void
choose_keep(const struct kernel *k, struct column_cost *c, int64_t rows, int64_t columns,
            struct schedule *s)
{
    int64_t strip = s->vec * KEEP_VECTORS;
    strip = columns < strip ? (columns + s->vec - 1) / s->vec * s->vec : strip;
    struct kept_value *value = xcalloc(k->inst.n, sizeof *value);
    bool *allowed = xcalloc(k->inst.n, sizeof *allowed);
    for (uint32_t i = 1; i < k->inst.n && i < 256; i++)
        allowed[i] = true;
    c->keep_element = column_keep(k, allowed, value);
    if (rows > COLUMN_SCRATCH || scratch_bytes(c, strip, rows) > COLUMN_SCRATCH)
        c->keep_element = 0;
    for (uint32_t i = 1; i < k->inst.n && i < 256 && c->keep_element; i++)
        if (value[i].kept)
            s->keep[i / 64] |= (uint64_t)1 << (i % 64);
    xfree(value);
    xfree(allowed);
}

static bool
can_take(const struct kernel *k)
{
    if (!k->nred || k->naxis == k->nred)
        return false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope != OVER_R)
            return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ONCE)
            return false;
    return true;
}

// Whether elements are stored, all along memory.
static bool
elements_run_along(const struct kernel *k, uint32_t axis)
{
    bool any = false;
    for (uint32_t i = 0; i < k->store.n; i++) {
        if (k->store.at[i].level != LEVEL_ELEM)
            continue;
        any = true;
        if (k->access.at[k->store.at[i].access].stride[axis] != 1)
            return false;
    }
    return any;
}

bool
schedule_column(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    if (!can_take(k)) {
        *why = REASON_no_class;
        return false;
    }
    struct column_cost c = column_cost(k);
    uint32_t axis = k->naxis - k->nred - 1u;
    int64_t rows = kernel_points(k, AXIS_R), columns = k->axis[axis].extent;
    int64_t outer = columns ? kernel_points(k, AXIS_P) / columns : 0;
    *s = (struct schedule){.cls = CLASS_COLUMN, .vec = c.width == 1 ? 64 : 16, .unroll = 4};
    struct schedule lanes = *s;
    if (schedule_column_lanes(k, &c, t, &lanes)) {
        *s = lanes;
        return true;
    }
    while (s->unroll > 1 && (s->unroll * c.ops > 32 || s->unroll * RED_LANES > rows))
        s->unroll /= 2;
    choose_keep(k, &c, rows, columns, s);
    int64_t strip = choose_strip(&c, t, s->vec, rows, columns, outer);
    s->scratch_bytes = scratch_bytes(&c, strip, rows);
    if (s->scratch_bytes > COLUMN_SCRATCH) {
        *why = REASON_budget_scratch;
        return false;
    }
    int64_t traffic = outer * rows * columns * c.bytes;
    s->prefetch = c.passes > 1 && traffic > t->l2 ? PREFETCH_ROWS : 0;
    s->streaming_store =
        t->llc > 0 && traffic > schedule_shared_cache(t) && elements_run_along(k, axis);
    if (rows >= 1 && rows <= RED_LANES && rows * c.insts <= FEW_INSTS)
        s->tile[1] = (uint16_t)rows;
    s->tile[0] = (uint16_t)strip;
    s->chunk = strip;
    s->units = outer * ((columns + strip - 1) / strip);
    s->grain = column_grain(&c, rows * strip);
    return true;
}

// schedule_sort.c: parameters of the sort class: blocks of lines a unit.
//
// The class takes any prologue over P and the line and any epilogue over P. Both run with vectors
// along the line or, where the elements of neighbouring lines lie beside each other in memory,
// across the lines of a block (schedule.transpose), so that whole cache lines are used. Lines too
// long for that to stay in the caches are read one by one. One long line is divided among threads:
// in the first phase each spreads a part of it over buckets, in the second each sorts a bucket.
#include "passes/schedule_sort.h"

#include "ir/order.h"
#include "passes/plan.h"
#include "passes/schedule.h"

enum {
    BLOCK = 16,         // lines side by side: a vector
    MAX_BLOCK = 4 << 20 // bytes of such lines, as they come and in order
};

static const struct inst *
ordered_value(const struct kernel *k)
{
    return &k->inst.at[k->acc.at[0].value];
}

static enum sort_result
kind_of(const struct kernel *k, uint32_t acc)
{
    return op_gives_position(k->acc.at[acc].op) ? SORT_POSITIONS : SORT_VALUES;
}

bool
sort_wants(const struct kernel *k, enum sort_result kind)
{
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (kind_of(k, i) == kind)
            return true;
    return false;
}

static bool
is_operand(const struct kernel *k, uint32_t inst)
{
    for (uint32_t i = inst + 1; i < k->inst.n; i++)
        if (k->inst.at[i].a == inst || k->inst.at[i].b == inst || k->inst.at[i].c == inst)
            return true;
    return false;
}

const struct store *
sort_store(const struct kernel *k, const struct schedule *s, enum sort_result kind)
{
    const struct store *only = NULL;
    uint32_t results = 0, stores = 0;
    if (s->transpose)
        return NULL;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_result || kind_of(k, in->aux) != kind)
            continue;
        results++;
        if (is_operand(k, i))
            return NULL;
        for (uint32_t x = 0; x < k->store.n; x++)
            if (k->store.at[x].value == i) {
                only = &k->store.at[x];
                stores++;
            }
    }
    return results == 1 && stores == 1 ? only : NULL;
}

static struct sort_lines
place(int64_t *bytes, const struct schedule *s, int64_t n, int64_t size)
{
    int64_t padded = round_up(n, s->vec);
    struct sort_lines l = {true, *bytes, padded, 1};
    if (s->transpose)
        l = (struct sort_lines){true, *bytes, 1, s->tile[SORT_TILE_LINES]};
    *bytes += round_up(padded * s->tile[SORT_TILE_LINES] * size, 64);
    return l;
}

struct sort_scratch
sort_scratch(const struct kernel *k, const struct schedule *s)
{
    struct sort_scratch x = {0};
    int64_t j = k->axis[k->naxis - 2].extent, n = k->axis[k->naxis - 1].extent;
    uint8_t dtype = k->acc.at[0].dtype;
    if (!(s->pack & SORT_FROM_MEMORY))
        x.from = place(&x.bytes, s, n, dtype_size(dtype));
    for (int kind = 0; kind < SORT_RESULTS; kind++)
        if (sort_wants(k, kind) && !sort_store(k, s, kind))
            x.result[kind] = place(&x.bytes, s, j, kind == SORT_VALUES ? dtype_size(dtype) : 8);
    x.work = x.bytes;
    x.bytes += order_work_bytes(n, j, dtype, sort_wants(k, SORT_POSITIONS));
    return x;
}

// Bytes an element of what runs along an axis.
static int64_t
bytes_along(const struct kernel *k, uint32_t axis)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->access.n; i++)
        if (k->access.at[i].stride[axis] == 1)
            bytes += dtype_size(k->access.at[i].dtype);
    return bytes;
}

// Every store moves along all batch axes and j.
static bool
stores_all(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->store.n; i++)
        for (uint32_t a = 0; a + 1 < k->naxis; a++)
            if (k->axis[a].extent > 1 && !k->access.at[k->store.at[i].access].stride[a])
                return false;
    return true;
}

// Lines are taken across where they lie so and a block of them is not too large.
static bool
runs_across(const struct kernel *k, int64_t beside)
{
    int64_t n = k->axis[k->naxis - 1].extent, element = 0;
    for (uint32_t i = 0; i < k->acc.n; i++)
        element += dtype_size(k->acc.at[i].dtype) + (op_gives_position(k->acc.at[i].op) ? 8 : 0);
    return beside >= BLOCK && n <= MAX_BLOCK / BLOCK / element &&
           bytes_along(k, (uint32_t)sort_block_axis(k)) >
               bytes_along(k, k->naxis - 1u) + bytes_along(k, k->naxis - 2u);
}

// Short lines are sorted side by side, if there are enough of them for all threads.
static int64_t
lines_of_block(const struct kernel *k, const struct target *t, int64_t lines)
{
    int64_t n = k->axis[k->naxis - 1].extent, each = ceil_div(lines, t->units ? t->units : 1);
    return n > ORDER_ABREAST ? 1 : min64(BLOCK, each);
}

// One long line as it lies in memory, to be stored as it is: threads divide it.
static bool
can_split(const struct kernel *k, const struct schedule *s, int64_t lines)
{
    int64_t j = k->axis[k->naxis - 2].extent, n = k->axis[k->naxis - 1].extent;
    bool direct = s->pack & SORT_FROM_MEMORY && lines == 1;
    uint32_t kinds = 0;
    for (int kind = 0; kind < SORT_RESULTS; kind++) {
        direct &= !sort_wants(k, kind) || sort_store(k, s, kind);
        kinds += sort_wants(k, kind);
    }
    return direct && k->store.n == kinds &&
           order_splits(n, j, k->acc.at[0].dtype, sort_wants(k, SORT_POSITIONS));
}

bool
schedule_sort(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *why = REASON_no_class;
    if (k->cls != CLASS_SORT || k->nred != 1 || k->naxis < 2 || k->nstage > 2 || !k->acc.n ||
        !stores_all(k))
        return false;
    int64_t block = sort_block_axis(k), beside = block >= 0 ? k->axis[block].extent : 1, lines = 1;
    for (uint32_t a = 0; a + 2 < k->naxis; a++)
        lines *= k->axis[a].extent;
    *s = (struct schedule){.cls = CLASS_SORT, .vec = 16, .grain = 1};
    s->transpose = runs_across(k, beside);
    int64_t together = s->transpose ? BLOCK : min64(beside, lines_of_block(k, t, lines));
    s->tile[SORT_TILE_LINES] = (uint16_t)together;
    const struct inst *v = ordered_value(k);
    if (!s->transpose && v->op == OP_load && !v->a && !v->b && !v->c)
        s->pack = SORT_FROM_MEMORY;
    s->units = lines / beside * ceil_div(beside, s->tile[SORT_TILE_LINES]);
    if (t->units > 1 && can_split(k, s, lines)) {
        s->units = s->finish_units = min64(ORDER_SPLIT_MOST, 4 * (int64_t)t->units);
        s->shared_scratch_bytes =
            order_split_bytes(k->axis[k->naxis - 1].extent, s->units, k->acc.at[0].dtype,
                              sort_wants(k, SORT_POSITIONS));
        return true;
    }
    s->scratch_bytes = sort_scratch(k, s).bytes;
    return true;
}

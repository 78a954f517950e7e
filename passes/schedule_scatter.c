// schedule_scatter.c: parameters of the scatter class.
//
// A task unit owns a box of the result, and nobody else writes there: so the order of updates is
// that of the index whatever the threads do, and no update needs an atomic operation. The price is
// that each unit goes through the whole index and takes what is its own. Parts of the innermost
// axis, along which the result runs in memory, and of the axes that are not scattered along cost
// the index once more each, which is little where an index has a row of updates; parts of the axis
// that is scattered along cost as much and throw updates away, so it is cut only where rows are
// long.
#include "passes/plan.h"
#include "passes/schedule.h"

enum { LEAST_RUN = 256 };       // bytes of a row that a unit takes
enum { GRAIN_WORK = 1 << 16 }; // least work given to a thread

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t
min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool
schedule_scatter(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *why = REASON_no_class;
    if (k->acc.n != 1 || k->store.n != 1 || k->nstage != 2 ||
        k->inst.at[k->store.at[0].value].op != OP_result)
        return false;
    uint32_t np = k->naxis - k->nred, axis = k->scatter.axis;
    int64_t size = dtype_size(k->acc.at[0].dtype), batch = 1;
    for (uint32_t a = 0; a < axis; a++)
        batch *= k->axis[a].extent;
    bool rows = axis + 1 < np;
    int64_t inner = rows ? k->axis[axis + 1].extent : 1, places = k->axis[axis].extent;
    int64_t want = 4 * (int64_t)(t->units > 1 ? t->units : 1); // task units
    int64_t vec = size == 1 ? 64 : 16, pieces = 1, blocks = 1;
    if (rows && batch < want)
        pieces = min64(ceil_div(want, batch), ceil_div(inner * size, LEAST_RUN));
    s->chunk = ceil_div(ceil_div(inner, pieces), vec) * vec;
    pieces = ceil_div(inner, s->chunk);
    if (rows && batch * pieces < (int64_t)t->units)
        blocks = min64(ceil_div((int64_t)t->units, batch * pieces), places);
    s->cls = CLASS_SCATTER;
    s->vec = (uint8_t)vec;
    s->unroll = 1;
    s->tile[SCATTER_TILE_BLOCKS] = (uint16_t)blocks;
    s->units = batch * pieces * blocks;
    int64_t work = (places + kernel_points(k, AXIS_R)) * min64(inner, s->chunk) / blocks;
    s->grain = ceil_div(GRAIN_WORK, work ? work : 1);
    return true;
}

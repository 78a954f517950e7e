// schedule_scatter.c: parameters of the scatter class.
//
// A task unit owns a box of the result, and nobody else writes there: so the order of updates is
// that of the index whatever the threads do, and no update needs an atomic operation. The price is
// that each unit goes through the whole index and takes what is its own. Parts of the innermost
// axis, along which the result runs in memory, and of the axes that are not scattered along cost
// the index once more each, which is little where an index has a row of updates; parts of the axis
// that is scattered along cost as much and throw updates away, so it is cut only where rows are
// long.
//
// Where updates commute (integers that are added, maxima and minima) and there are many more of
// them than places, R is divided instead: a unit collects its part of the updates in arrays of its
// own, and kernel_finish joins these with what the elements start from. Several arrays a unit,
// taken in turns, so that an update does not wait for the one before it to be stored.
#include "ir/base/size.h"
#include "passes/plan.h"
#include "passes/schedule.h"

enum { LEAST_RUN = 256 };       // bytes of a row that a unit takes
enum { GRAIN_WORK = 1 << 16 }; // least work given to a thread
enum { UPDATES_A_PLACE = 4, LEAST_UPDATES = 1 << 14 }; // where R is divided
enum { FINISH_CHUNK = 4096 };

int64_t
scatter_part_bytes(const struct kernel *k)
{
    return round_up(k->axis[k->scatter.axis].extent * dtype_size(k->acc.at[0].dtype), 64);
}

static bool
commutes(const struct acc *a)
{
    uint16_t combine = op_table[a->op].combine;
    return combine && (combine != OP_add || !dtype_is_float(a->dtype));
}

// One axis to scatter along, one to go through, both long enough.
static bool
divide_updates(const struct kernel *k, const struct target *t, struct schedule *s)
{
    int64_t n = kernel_points(k, AXIS_R), places = k->axis[0].extent, part = scatter_part_bytes(k);
    if (k->naxis != 2 || !commutes(&k->acc.at[0]) || part > t->l2 / 4)
        return false;
    int64_t turns = part <= t->l1 / 8 ? SCATTER_TURNS : 1;
    int64_t most = n / (UPDATES_A_PLACE * places * turns + LEAST_UPDATES);
    s->units = min64(2 * (int64_t)(t->units > 1 ? t->units : 1), most);
    if (s->units < 1)
        return false;
    s->tile[SCATTER_TILE_TURNS] = (uint16_t)turns;
    s->shared_scratch_bytes = s->units * turns * part;
    s->finish_units = ceil_div(places, s->chunk);
    s->grain = 1;
    return true;
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
    struct schedule divided = *s;
    divided.chunk = FINISH_CHUNK;
    if (divide_updates(k, t, &divided))
        *s = divided;
    return true;
}

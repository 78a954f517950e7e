// schedule_pointwise.c: blocks and vectors of kernels without reductions.
//
// Work is weighed in element-ops: the op table's cost of the body plus what its memory traffic
// costs at second-level cache speed (`byte_weight`, fitted on a Zen 5 core: an op of a 512-bit
// vector takes about as long as 6 bytes). A unit weighs about `unit_weight` (a few microseconds),
// less where that would leave threads without work; a thread takes at least `grain_weight`, so
// small kernels stay on the caller's thread.
#include "passes/schedule.h"

#include "ir/base/size.h"
#include "passes/plan.h"

#include <string.h>

static const int64_t byte_weight_percent = 270;
static const int64_t unit_weight = 240000, grain_weight = 160000;
// Hardware follows a stream within a page and not far; asking 3 KiB ahead kept more in flight on
// Granite Rapids than 1 or 4, for two streams and for seven, line by line: loads of four lines,
// then stores of four, moved a tenth less where stores pass the caches. Where hardware follows
// further, bodies of few ops are served without.
enum { LINES_AHEAD = 48, FEW_OPS = 8, MAX_TILE = 256 << 10 };

// What one element of the domain costs, and the greatest width of a value.
struct body_cost {
    int64_t ops, bytes, out_bytes, out_width, loads, width;
};

static struct body_cost
body_cost(const struct kernel *k)
{
    struct body_cost c = {.width = 1, .out_width = 1};
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        c.ops += in->level == LEVEL_ONCE ? 0 : op_table[in->op].cost;
        c.width = max64(c.width, dtype_size(in->dtype));
        if (in->op != OP_load)
            continue;
        c.loads++;
        const struct access *x = &k->access.at[in->aux];
        bool moves = in->a != 0;
        for (uint32_t a = 0; a < k->naxis; a++)
            moves |= a + 1 == k->naxis && x->stride[a];
        c.bytes += moves ? dtype_size(in->dtype) : 0;
    }
    for (uint32_t i = 0; i < k->store.n; i++) {
        c.out_bytes += dtype_size(k->access.at[k->store.at[i].access].dtype);
        c.out_width = max64(c.out_width, dtype_size(k->access.at[k->store.at[i].access].dtype));
    }
    c.bytes += c.out_bytes;
    return c;
}

static bool
all_stores_run_along(const struct kernel *k, uint32_t axis)
{
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->access.at[k->store.at[i].access].stride[axis] != 1)
            return false;
    return true;
}

// ---- transposition

// A load that runs along memory on `axis` and strides along the last.
static bool
is_turned(const struct kernel *k, const struct inst *in, uint32_t axis)
{
    if (in->op != OP_load || in->a || in->b || in->c)
        return false;
    const struct access *x = &k->access.at[in->aux];
    int64_t s = x->stride[k->naxis - 1];
    return x->stride[axis] == 1 && s != 0 && s != 1 && s != -1;
}

static int64_t
tile_bytes(int64_t rows, int64_t columns, int64_t bytes)
{
    return rows * (columns + POINTWISE_TILE_PAD) * bytes;
}

static void
choose_transpose(const struct kernel *k, const struct target *t, int64_t moved,
                 struct schedule *s)
{
    uint32_t last = k->naxis - 1u, best = 0;
    int64_t best_bytes = 0;
    for (uint32_t a = 0; a < last; a++) {
        int64_t bytes = 0;
        for (uint32_t i = 1; i < k->inst.n; i++)
            if (is_turned(k, &k->inst.at[i], a))
                bytes += dtype_size(k->inst.at[i].dtype);
        if (bytes > best_bytes && k->axis[a].extent >= 8 && k->axis[last].extent >= 8) {
            best_bytes = bytes;
            best = a + 1;
        }
    }
    if (!best)
        return;
    // Runs of 512 bytes and 1 KiB on the two sides: each run is a page to find. In the caches a
    // smaller tile, which stays in the first level, does as well.
    int64_t l1 = t->l1 ? t->l1 : 32768, side = 64, room = l1 * 7 / 8;
    if (moved > schedule_own_cache(t)) {
        side = 128;
        room = max64(room, min64(MAX_TILE, t->l2 / 4));
    }
    int64_t rows = 2 * side;
    if (tile_bytes(rows, side, best_bytes) > room)
        rows = side;
    for (; side > 16 && side > s->vec && tile_bytes(rows, side, best_bytes) > room; rows = side)
        side /= 2;
    s->transpose = (uint8_t)best;
    s->tile[0] = (uint16_t)rows;
    s->tile[1] = (uint16_t)side;
    s->scratch_bytes = tile_bytes(rows, side, best_bytes);
}

// ---- sizes

static void
choose_units(const struct kernel *k, const struct target *t, struct schedule *s, int64_t weight)
{
    int64_t points = kernel_points(k, AXIS_P), step = s->vec * s->unroll;
    uint32_t last = k->naxis - 1u;
    int64_t e = k->axis[last].extent;
    int64_t target = max64(256, min64(16384, unit_weight / weight));
    int64_t threads = max64(1, t->units);
    target = max64(256, min64(target, ceil_div(points, 4 * threads)));
    int64_t outer = max64(points, 1) / max64(e, 1);
    if (s->transpose) {
        uint32_t across = s->transpose - 1u;
        s->chunk = min64(round_up(max64(target / s->tile[0], 1), s->tile[1]),
                         round_up(max64(e, 1), s->tile[1]));
        outer = outer / k->axis[across].extent * ceil_div(k->axis[across].extent, s->tile[0]);
        s->units = outer * ceil_div(e, s->chunk);
        s->grain = max64(1, grain_weight / (s->chunk * s->tile[0] * weight));
        return;
    }
    s->chunk = round_up(max64(1, min64(target, e)), step);
    int64_t rows = 1;
    if (last > 0) {
        int64_t middle = k->axis[last - 1].extent;
        if (e < target)
            rows = max64(1, min64(min64(target / max64(e, 1), middle), UINT16_MAX));
        s->tile[0] = (uint16_t)rows;
        outer = outer / max64(middle, 1) * ceil_div(middle, rows);
    }
    s->units = outer * ceil_div(e, s->chunk);
    s->grain = max64(1, grain_weight / (min64(s->chunk, max64(e, 1)) * rows * weight));
}

// Vectors in flight: few for long bodies and short rows, and no more than the registers hold.
static uint8_t
choose_unroll(const struct body_cost *c, const struct target *t, uint8_t vec, int64_t row)
{
    int64_t width = t->vec_bytes ? t->vec_bytes : 32;
    int64_t registers = max64(1, vec * c->width / width) * (c->loads + 2);
    int64_t n = c->ops <= 8 ? 4 : c->ops <= 16 ? 2 : 1;
    while (n > 1 && row < 4 * n * vec)
        n /= 2;
    while (n > 1 && n * registers > (width >= 64 ? 28 : 14))
        n /= 2;
    return (uint8_t)n;
}

bool
schedule_pointwise(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    if (k->nred || k->acc.n) {
        *why = REASON_no_class;
        return false;
    }
    *s = (struct schedule){.cls = CLASS_POINTWISE, .units = 1, .grain = 1, .chunk = 1};
    struct body_cost c = body_cost(k);
    s->vec = c.width == 1 ? 64 : 16;
    s->unroll = choose_unroll(&c, t, s->vec, k->naxis > 1 ? k->axis[k->naxis - 1].extent : 1 << 20);
    if (k->naxis == 0)
        return true;
    uint32_t last = k->naxis - 1u;
    int64_t points = kernel_points(k, AXIS_P);
    int64_t bytes = points * c.bytes, shared = schedule_shared_cache(t);
    s->streaming_store = all_stores_run_along(k, last) && shared > 0 &&
                         bytes > schedule_streaming_bytes(t);
    if (s->streaming_store)
        s->unroll = (uint8_t)min64(s->unroll, max64(1, 64 / (s->vec * c.out_width)));
    if (last > 0)
        choose_transpose(k, t, bytes, s);
    if (s->transpose)
        s->prefetch = bytes > 2 * shared;
    else if (!schedule_hardware_asks_ahead(t) || c.ops > FEW_OPS)
        s->prefetch = t->l2 > 0 && bytes > schedule_own_cache(t) ? LINES_AHEAD : 0;
    choose_units(k, t, s, max64(1, c.ops + c.bytes * byte_weight_percent / 100));
    return true;
}

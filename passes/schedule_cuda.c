// schedule_cuda.c: how kernels are laid out on a GPU. Blocks are units; classes as on the CPU, but
// a row belongs to a group of threads of one block, whatever its length.
//
// Vectors are 16 bytes of the narrowest type that runs along memory, where extents, bases and
// strides let every vector start at a multiple of its size.
#include "passes/schedule.h"

#include "ir/base/size.h"
#include "passes/plan.h"

enum { VEC_BYTES = 16, MOST_LANES = 8, POINTWISE_THREADS = 256, ROW_THREADS = 128,
       MOST_ROW_THREADS = 512, COLUMN_THREADS = 512, CONTRACT_THREADS = 256, WARP = 32,
       SPLIT_LANES = RED_LANES };
// Beyond any position that a kernel computes with are those of lanes that do not exist.
static const int64_t most_index = INT32_MAX - (1 << 20);

static bool
needs_index64(const struct kernel *k)
{
    if (kernel_points(k, AXIS_P) > most_index || kernel_points(k, AXIS_R) > most_index)
        return true;
    for (uint32_t i = 0; i < k->buffers.n; i++)
        if (k->buffers.at[i].span_hi > most_index || k->buffers.at[i].span_lo < -most_index)
            return true;
    for (uint32_t i = 0; i < k->access.n + k->affine.n; i++) {
        const struct access *x = i < k->access.n ? &k->access.at[i]
                                                 : &k->affine.at[i - k->access.n];
        int64_t reach = x->base < 0 ? -x->base : x->base;
        for (uint32_t a = 0; a < k->naxis; a++) {
            int64_t stride = x->stride[a] < 0 ? -x->stride[a] : x->stride[a], part;
            if (__builtin_mul_overflow(stride, k->axis[a].extent, &part) ||
                __builtin_add_overflow(reach, part, &reach))
                return true;
        }
        if (reach > most_index)
            return true;
    }
    return false;
}

// Elements of a vector along an axis: 1 where something that runs along it could not be taken so.
static uint8_t
vector_lanes(const struct kernel *k, const struct target *t, uint32_t axis)
{
    uint32_t least = VEC_BYTES;
    if (t->vec_bytes < VEC_BYTES)
        return 1;
    for (uint32_t i = 0; i < k->access.n; i++)
        if (k->access.at[i].stride[axis] == 1 && dtype_size(k->access.at[i].dtype) < least)
            least = dtype_size(k->access.at[i].dtype);
    int64_t lanes = min64(VEC_BYTES / least, MOST_LANES);
    for (uint32_t i = 0; i < k->access.n; i++) {
        const struct access *x = &k->access.at[i];
        if (x->stride[axis] != 1)
            continue;
        while (lanes > 1 && x->base % lanes)
            lanes /= 2;
        for (uint32_t a = 0; a < k->naxis; a++)
            while (a != axis && lanes > 1 && x->stride[a] % lanes)
                lanes /= 2;
    }
    while (lanes > 1 && k->axis[axis].extent % lanes)
        lanes /= 2;
    return (uint8_t)lanes;
}

static int64_t
body_ops(const struct kernel *k)
{
    int64_t ops = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        ops += k->inst.at[i].level == LEVEL_ONCE ? 0 : op_table[k->inst.at[i].op].cost;
    return ops;
}

static void
pointwise(const struct kernel *k, const struct target *t, struct schedule *s)
{
    int64_t points = kernel_points(k, AXIS_P), ops = body_ops(k);
    s->vec = k->naxis ? vector_lanes(k, t, k->naxis - 1u) : 1;
    s->unroll = ops <= 8 ? 4 : ops <= 24 ? 2 : 1;
    s->threads = POINTWISE_THREADS;
    while (s->unroll > 1 && points < (int64_t)s->threads * s->vec * s->unroll * 4 * t->units)
        s->unroll /= 2;
    s->units = ceil_div(points, (int64_t)s->threads * s->vec * s->unroll);
}

static void
row(const struct kernel *k, const struct target *t, struct schedule *s)
{
    int64_t rows = kernel_points(k, AXIS_P), n = kernel_points(k, AXIS_R);
    s->vec = vector_lanes(k, t, k->naxis - 1u);
    s->unroll = 4;
    int64_t own = 16 / s->vec, group = own, most = rows < t->units ? 1024 : MOST_ROW_THREADS;
    while (group < own * ceil_div(n, RED_BLOCK) && group < most)
        group *= 2;
    s->threads = (uint16_t)(group > WARP ? group : ROW_THREADS);
    s->tile[0] = (uint16_t)group;
    s->units = group > WARP ? rows : ceil_div(rows, s->threads / group);
}

// Fewer rows than multiprocessors: parts of a row, powers of two of chunks (2 vec blocks) each,
// and the last block of a row to be done joins them. What elements need of the result would have
// to wait for all blocks.
static bool
split(const struct kernel *k, const struct target *t, struct schedule *s)
{
    enum { PARTS = 4, MOST_CHUNKS = 64, THREADS = 512 };
    int64_t rows = kernel_points(k, AXIS_P), n = kernel_points(k, AXIS_R), bytes = 0;
    if (k->nstage > 2 || rows >= t->units || n < 1 << 15)
        return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage > 0 && k->store.at[i].level == LEVEL_ELEM)
            return false;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        if (k->acc.at[i].stage > 0)
            return false;
        bytes += 16 * (int64_t)SPLIT_LANES;
    }
    s->vec = vector_lanes(k, t, k->naxis - 1u);
    s->unroll = 4;
    s->threads = THREADS;
    s->tile[0] = THREADS;
    int64_t chunks = ceil_div(n, (int64_t)2 * s->vec * RED_BLOCK), part = MOST_CHUNKS;
    while (part > THREADS / WARP && rows * ceil_div(chunks, part) < PARTS * t->units)
        part /= 2;
    s->tile[1] = (uint16_t)part;
    int64_t parts = ceil_div(chunks, part);
    s->units = rows * parts;
    s->shared_scratch_bytes = round_up(4 * rows, 16) + rows * parts * bytes;
    return true;
}

static void
column(const struct kernel *k, const struct target *t, struct schedule *s)
{
    uint32_t last = k->naxis - k->nred - 1u;
    s->vec = vector_lanes(k, t, last);
    if (s->vec > 4)
        s->vec = 4; // 16 lanes of as many columns share the block's memory
    s->unroll = 4;
    s->threads = COLUMN_THREADS;
    int64_t strips = ceil_div(k->axis[last].extent, (int64_t)WARP * s->vec);
    s->units = kernel_points(k, AXIS_P) / max64(k->axis[last].extent, 1) * strips;
}

// All that a scan does, it does in one pass over the elements.
static bool
takes_scan(const struct kernel *k)
{
    bool takes = k->nred && k->nstage == 1;
    for (uint32_t i = 0; i < k->acc.n; i++)
        takes &= k->acc.at[i].scope == ALONG_R;
    for (uint32_t i = 0; i < k->store.n; i++)
        takes &= k->store.at[i].level == LEVEL_ELEM;
    return takes;
}

bool
schedule_cuda(struct kernel *k, const struct target *t, bool along_columns, struct schedule *s,
              uint8_t *why)
{
    *s = (struct schedule){.grain = 1, .chunk = 1, .index64 = needs_index64(k)};
    bool scans = false, other = false;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        scans |= k->acc.at[i].scope == ALONG_R;
        other |= k->acc.at[i].scope == OVER_P ||
                 (k->cls == CLASS_SORT && k->acc.at[i].descending != k->acc.at[0].descending);
    }
    if (other || (scans && !takes_scan(k))) {
        *why = REASON_no_class;
        return false;
    }
    if (k->cls == CLASS_CONTRACT) {
        s->cls = CLASS_CONTRACT;
        s->vec = s->unroll = 1;
        s->threads = CONTRACT_THREADS;
        s->units = ceil_div(kernel_points(k, AXIS_P), CONTRACT_THREADS);
    } else if (k->cls == CLASS_SORT || k->cls == CLASS_SCATTER) {
        s->cls = k->cls;
        s->vec = s->unroll = 1;
        s->threads = POINTWISE_THREADS;
        int64_t points = kernel_points(k, AXIS_P), line = k->axis[k->naxis - 1].extent;
        if (k->cls == CLASS_SORT)
            points = points / max64(k->axis[k->naxis - 2].extent, 1) * line;
        s->units = ceil_div(points, POINTWISE_THREADS);
    } else if (scans) {
        k->cls = s->cls = CLASS_SCAN;
        s->vec = s->unroll = 1;
        s->threads = ROW_THREADS;
        s->units = ceil_div(kernel_points(k, AXIS_P), ROW_THREADS / SCAN_LANES);
    } else if (!k->nred) {
        k->cls = s->cls = CLASS_POINTWISE;
        pointwise(k, t, s);
    } else if (along_columns) {
        k->cls = s->cls = CLASS_COLUMN;
        column(k, t, s);
    } else if (split(k, t, s)) {
        k->cls = s->cls = CLASS_SPLIT;
    } else {
        k->cls = s->cls = CLASS_ROW;
        row(k, t, s);
    }
    return true;
}

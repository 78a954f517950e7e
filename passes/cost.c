// cost.c: about how long a scheduled kernel takes, to weigh one kernel against two.
//
// Bytes that are no longer moved say nothing about how the joint kernel moves the others: its
// vectors run along one axis, and an array that lies across it costs a cache line an element, which
// is lost before the next row comes where more lines are walked than a cache's sets hold; values
// are computed again in each stage; a row belongs to one thread. So the fuser compares what the
// classes chose.
//
// The unit is that of schedule_pointwise.c: an op on one element, about 4 ps of a Zen 5 core.
// Measured there, in these units an element: arrays that are walked across in the second-level
// cache 60, in the last-level cache 90 to 170, beyond 2000; rows of 1024 stored across 5000.
#include "passes/cost.h"

#include "ir/base/size.h"
#include "passes/schedule.h"
#include "passes/schedule_row.h"
#include "passes/schedule_scan.h"

enum {
    LINE = 64,
    PAGE = 4096,
    PAGE_LINES = 256,  // lines that lie whole pages apart and still stay: 16 sets of 16 ways
    LAUNCH = 40000,    // of a kernel more, once
    ACROSS_NEAR = 60,  // a load whose lanes are not neighbours, its lines at hand
    ACROSS_SHARED = 150,
    ACROSS_FAR = 2000,
    STORE_NEAR = 80,
    STORE_FAR = 4000,
    TURNED = 8,        // through the tile of a pointwise kernel
};

// The axis that vectors run along; naxis: none.
static uint32_t
vector_axis(const struct kernel *k, const struct schedule *s)
{
    uint32_t p = k->naxis - k->nred;
    bool along_p = s->cls == CLASS_POINTWISE || s->cls == CLASS_COLUMN ||
                   (s->cls == CLASS_SCAN && s->tile[SCAN_TILE_STRIP]);
    if (along_p)
        return p ? p - 1 : k->naxis;
    return k->nred ? k->naxis - 1u : k->naxis;
}

static int64_t
access_bytes(const struct kernel *k, const struct access *a)
{
    int64_t bytes = dtype_size(a->dtype);
    for (uint32_t x = 0; x < k->naxis; x++)
        bytes *= a->stride[x] ? k->axis[x].extent : 1;
    return bytes;
}

// Whether the lines of one walk along the vector axis are still there for the next: some other axis
// goes through each of them, and there are not too many.
static bool
lines_stay(const struct kernel *k, const struct schedule *s, const struct target *t,
           const struct access *a, uint32_t axis)
{
    int64_t size = dtype_size(a->dtype), step = a->stride[axis] * size;
    int64_t lines = k->axis[axis].extent;
    bool again = false;
    step = step < 0 ? -step : step;
    for (uint32_t x = 0; x < k->naxis; x++)
        again |= x != axis && k->axis[x].extent > 1 && (a->stride[x] == 1 || a->stride[x] == -1);
    if (s->cls == CLASS_COLUMN || s->cls == CLASS_SCAN)
        lines = s->tile[0] ? min64(lines, s->tile[0]) : lines;
    int64_t sets = step % PAGE == 0 ? PAGE_LINES : t->l2 / LINE;
    for (int64_t part = PAGE / 2; step % PAGE && part >= LINE && sets > PAGE_LINES; part /= 2)
        if (step % part == 0) {
            sets = min64(sets, PAGE_LINES * (PAGE / part));
            break;
        }
    return again && lines <= sets / 2;
}

// One visit of an element.
static int64_t
visit_cost(const struct kernel *k, const struct schedule *s, const struct target *t,
           const struct access *a, bool store)
{
    uint32_t axis = vector_axis(k, s);
    int64_t size = dtype_size(a->dtype), bytes = access_bytes(k, a);
    int64_t own = schedule_own_cache(t), shared = schedule_shared_cache(t);
    int64_t dense = size * (bytes <= own ? 27 : bytes <= shared ? 40 : 120) / 10;
    int64_t stride = axis < k->naxis ? a->stride[axis] : 1;
    stride = stride < 0 ? -stride : stride;
    if (stride == 0)
        return store ? dense : 1;
    if (stride == 1)
        return dense;
    if (s->cls == CLASS_POINTWISE && s->transpose && !store && a->stride[s->transpose - 1] == 1)
        return dense + TURNED;
    int64_t near = store ? STORE_NEAR : ACROSS_NEAR;
    if (lines_stay(k, s, t, a, axis))
        return dense + near;
    int64_t part = min64(stride * size, LINE); // of a line, where neighbours share it
    int64_t lost = store ? STORE_FAR : bytes <= shared ? ACROSS_SHARED : ACROSS_FAR;
    return dense + (part < LINE ? near + dense * (part / size) : lost);
}

// The stages in which each element is computed.
static uint32_t *
stages_of(const struct kernel *k, const struct schedule *s)
{
    uint32_t *in = xcalloc(k->inst.n, sizeof *in);
    bool held = (s->cls == CLASS_ROW && s->tile[ROW_TILE_VECTORS]) || s->cls == CLASS_SCAN ||
                (s->cls == CLASS_COLUMN && s->tile[1]);
    for (uint32_t i = 0; i < k->store.n; i++)
        in[k->store.at[i].value] |= 1u << k->store.at[i].stage;
    for (uint32_t i = 0; i < k->acc.n; i++)
        in[k->acc.at[i].value] |= 1u << k->acc.at[i].stage;
    for (uint32_t i = k->inst.n; i-- > 1;) {
        const struct inst *x = &k->inst.at[i];
        bool kept = held || (i < 256 && s->keep[i / 64] >> (i % 64) & 1);
        if (kept && in[i])
            in[i] = 1u << x->stage;
        const uint32_t operand[] = {x->a, x->b, x->c};
        for (uint32_t j = 0; j < 3 && x->op != OP_result; j++)
            if (operand[j])
                in[operand[j]] |= in[i];
    }
    return in;
}

static int64_t
threads_at_work(const struct schedule *s, const struct target *t)
{
    int64_t most = max64(t->units, 1), n = s->units / max64(s->grain, 1);
    return max64(min64(n, min64(s->units, most)), 1);
}

int64_t
kernel_cost(const struct kernel *k, const struct schedule *s, const struct target *t)
{
    if (s->cls == CLASS_CONTRACT || s->cls == CLASS_SORT || s->cls == CLASS_SCATTER)
        return COST_UNKNOWN;
    int64_t points = kernel_points(k, AXIS_P), all = points * kernel_points(k, AXIS_R);
    int64_t elem = 0, row = 0;
    uint32_t *stages = stages_of(k, s);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        int64_t cost = op_table[x->op].cost;
        if (x->op == OP_load)
            cost = x->a ? ACROSS_NEAR
                        : visit_cost(k, s, t, &k->access.at[x->aux], false);
        if (x->level == LEVEL_ELEM || !k->nred)
            elem += cost * __builtin_popcount(stages[i]);
        else if (x->level == LEVEL_ROW)
            row += x->op == OP_load ? dtype_size(x->dtype) * 3 : cost;
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        elem += k->acc.at[i].scope == OVER_P ? 0 : op_table[k->acc.at[i].op].cost;
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct access *a = &k->access.at[k->store.at[i].access];
        if (k->store.at[i].level == LEVEL_ELEM || !k->nred)
            elem += visit_cost(k, s, t, a, true);
        else if (k->store.at[i].level == LEVEL_ROW)
            row += dtype_size(a->dtype) * 3;
    }
    xfree(stages);
    return LAUNCH + (elem * all + row * points) / threads_at_work(s, t);
}

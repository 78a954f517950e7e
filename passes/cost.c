// cost.c: about how long a scheduled kernel takes, to weigh one kernel against two.
//
// Bytes that are no longer moved say nothing about how the joint kernel moves the others: its
// vectors run along one axis, and an array that lies across it costs a cache line an element, which
// is lost before the next row comes where more lines are walked than a cache's sets hold; values
// are computed again in each stage; a row belongs to one thread. So the fuser compares what the
// classes chose.
//
// The unit is that of schedule_pointwise.c, about 4 ps of a Zen 5 core.
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
    STORE_NEAR = 250,
    STORE_FAR = 4000,
    TURNED = 8,        // through the tile of a pointwise kernel
    OP_UNIT = 2,       // of the op table's cost
    SHORT_ROW = 64,    // elements
    TREE = 100,        // that joins the lanes of a row's result
    SHORT_TREE = 1000, // where little else is done for a row meanwhile
    SCAN_STEP = 30,    // an element of a scan along a row, n times that of n in turn
    SORT_ELEMENT = 40,
    SORT_STEP = 10,    // for each time that a line is halved
    SORT_ACROSS = 1500, // measured: 1024 lines of 1024 sorted and turned 3750 us, sorted 530
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

static int64_t
stride_along(const struct kernel *k, const struct schedule *s, const struct access *a)
{
    uint32_t axis = vector_axis(k, s);
    int64_t stride = axis < k->naxis ? a->stride[axis] : 1;
    return stride < 0 ? -stride : stride;
}

// One visit of an element, where lanes are neighbours.
static int64_t
visit_cost(const struct kernel *k, const struct schedule *s, const struct target *t,
           const struct access *a, bool store)
{
    int64_t size = dtype_size(a->dtype), bytes = access_bytes(k, a);
    int64_t own = schedule_own_cache(t), shared = schedule_shared_cache(t);
    if (!store && !stride_along(k, s, a))
        return 1;
    return size * (bytes <= own ? 27 : bytes <= shared ? 40 : 120) / 10;
}

// What it takes beyond that where they are not.
static int64_t
across_cost(const struct kernel *k, const struct schedule *s, const struct target *t,
            const struct access *a, bool store)
{
    int64_t size = dtype_size(a->dtype), stride = stride_along(k, s, a);
    int64_t dense = visit_cost(k, s, t, a, store), near = store ? STORE_NEAR : ACROSS_NEAR;
    if (stride <= 1)
        return 0;
    if (s->cls == CLASS_POINTWISE && s->transpose && !store && a->stride[s->transpose - 1] == 1)
        return TURNED;
    if (lines_stay(k, s, t, a, vector_axis(k, s)))
        return near;
    if (stride * size < LINE) // neighbours share it
        return near + dense * stride;
    return store                                                ? STORE_FAR
           : access_bytes(k, a) <= schedule_shared_cache(t) ? ACROSS_SHARED
                                                                : ACROSS_FAR;
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

static int64_t
total(double work, const struct schedule *s, const struct target *t)
{
    const double most = 1e18; // of arrays that no memory holds
    double cost = LAUNCH + work / (double)threads_at_work(s, t);
    return (int64_t)(cost < most ? cost : most);
}

// Whether lines are read along memory and results written along it, or both from line to line.
static bool
sorts_straight(const struct kernel *k)
{
    uint32_t j = k->naxis - 2u, line = k->naxis - 1u;
    bool read = false, written = true;
    for (uint32_t i = 1; i < k->inst.n; i++)
        read |= k->inst.at[i].op == OP_load && k->access.at[k->inst.at[i].aux].stride[line] == 1;
    for (uint32_t i = 0; i < k->store.n; i++)
        written &= k->access.at[k->store.at[i].access].stride[j] == 1;
    bool one = k->axis[j].extent == 1 || kernel_points(k, AXIS_P) == k->axis[j].extent;
    return one || read == written;
}

// Sorting n elements of a line, prologue and epilogue beside it.
static int64_t
sort_cost(const struct kernel *k, const struct schedule *s, const struct target *t)
{
    int64_t line = k->axis[k->naxis - 1].extent, results = kernel_points(k, AXIS_P);
    int64_t lines = results / max64(k->axis[k->naxis - 2].extent, 1), each = SORT_ELEMENT;
    for (int64_t n = line; n > 1; n /= 2)
        each += SORT_STEP;
    int64_t across = sorts_straight(k) ? 0 : SORT_ACROSS;
    int64_t elem = 0, result = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        int64_t cost = x->op == OP_load ? dtype_size(x->dtype) * 3 : OP_UNIT * op_table[x->op].cost;
        *(x->level == LEVEL_ELEM ? &elem : &result) += cost;
    }
    for (uint32_t i = 0; i < k->store.n; i++)
        result += dtype_size(k->access.at[k->store.at[i].access].dtype) * 3;
    return total((double)(elem + each) * (double)lines * (double)line +
                     (double)(result + across) * (double)results,
                 s, t);
}

// What a vector of elements takes, and what a row takes.
struct work {
    int64_t ops, moved, across, row;
};

static struct work
work_of(const struct kernel *k, const struct schedule *s, const struct target *t)
{
    struct work w = {0};
    // A row's own values are computed one by one, unless rows lie side by side in vectors.
    int64_t lanes = s->cls == CLASS_ROW && !s->rows ? RED_LANES : 1;
    uint32_t *stages = stages_of(k, s);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        bool loads = x->op == OP_load, elem = x->level == LEVEL_ELEM || !k->nred;
        int64_t cost = OP_UNIT * op_table[x->op].cost;
        int64_t times = __builtin_popcount(stages[i]);
        const struct access *a = loads ? &k->access.at[x->aux] : NULL;
        if (loads && elem) {
            w.moved += times * visit_cost(k, s, t, a, false);
            w.across += times * (x->a ? ACROSS_NEAR : across_cost(k, s, t, a, false));
        } else if (elem)
            w.ops += cost * times;
        else if (x->level == LEVEL_ROW)
            w.row += loads ? dtype_size(x->dtype) * 3 : cost * lanes;
    }
    int64_t tree = kernel_points(k, AXIS_R) < SHORT_ROW ? SHORT_TREE : TREE;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        w.ops += k->acc.at[i].scope == OVER_P ? 0 : OP_UNIT * op_table[k->acc.at[i].op].cost;
        w.row += k->acc.at[i].scope == OVER_R && lanes > 1 ? tree : 0;
    }
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct access *a = &k->access.at[k->store.at[i].access];
        if (k->store.at[i].level == LEVEL_ELEM || !k->nred) {
            w.moved += visit_cost(k, s, t, a, true);
            w.across += across_cost(k, s, t, a, true);
        } else if (k->store.at[i].level == LEVEL_ROW)
            w.row += dtype_size(a->dtype) * 3;
    }
    xfree(stages);
    return w;
}

int64_t
kernel_cost(const struct kernel *k, const struct schedule *s, const struct target *t)
{
    if (s->cls == CLASS_CONTRACT || s->cls == CLASS_SCATTER)
        return COST_UNKNOWN;
    if (s->cls == CLASS_SORT)
        return sort_cost(k, s, t);
    int64_t points = kernel_points(k, AXIS_P), length = kernel_points(k, AXIS_R);
    if (s->cls == CLASS_ROW && k->nred) // the lanes of a row's last vector, there or not
        length = round_up(length, RED_LANES);
    struct work w = work_of(k, s, t);
    int64_t elem;
    if (s->cls == CLASS_SCAN && !s->tile[SCAN_TILE_STRIP]) // all wait for what comes before
        elem = SCAN_STEP * k->acc.n * (scans_in_turn(k) ? k->acc.n : 1) + 3 * w.ops + w.moved;
    else // loads go on while vectors compute
        elem = max64(w.ops, w.moved) + min64(w.ops, w.moved) / 4;
    elem += w.across;
    return total(((double)elem * (double)length + (double)w.row) * (double)points, s, t);
}

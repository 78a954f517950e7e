// schedule_abreast.c: parameters of row kernels that take several rows at once; their loops stand
// in codegen/cpu/abreast.c.
//
// One row after the other, each ends in a tree over 16 lanes, a scalar at a time, and what rows
// share (the vector of a product of matrix and vector) is loaded and computed for each. Here a task
// unit is a strip of 16 rows along the last P axis: ROW_ABREAST of them run through R together, and
// the ends of all 16 are joined by one tree that leaves a row a lane; what follows the reductions
// is computed for 16 rows at once.
//
// That is for kernels that reduce once and store nothing per element, with rows enough to fill
// strips and strips enough for the threads, where rows share something or are short. Elements that
// do not depend on the last P axis and take more than a load are computed once for many strips,
// into the thread's scratch (schedule.keep).
#include "passes/schedule.h"
#include "passes/schedule_row.h"

#include "ir/base/size.h"

enum {
    MIN_ROWS = 6,              // of a strip
    LONG_ROW = 4 * RED_BLOCK,  // from here on blocks in flight do as much as rows abreast
    MAX_PARTIALS = 16,         // accumulators of ROW_ABREAST rows
    MAX_STRAIGHT = 400,        // weight of rows without a loop
    MAX_SHARED_ROW = 64 << 10, // bytes of scratch
    SHARE_COST = 2,            // least cost of a value worth keeping
};

// Elements that are the same for all points of the last P axis.
static void
find_shared(const struct kernel *k, bool *shared)
{
    uint32_t last = k->naxis - k->nred - 1u;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        bool moves = false;
        if (in->op == OP_load)
            moves = k->access.at[in->aux].stride[last] != 0;
        if (in->op == OP_index)
            moves = k->affine.at[in->aux].stride[last] != 0;
        if (in->op == OP_result) // of the rows
            moves = true;
        shared[i] = !moves && (!in->a || shared[in->a]) && (!in->b || shared[in->b]) &&
                    (!in->c || shared[in->c]);
    }
}

// Of those the ones that others, or accumulators, use.
static void
find_edge(const struct kernel *k, const bool *shared, bool *edge)
{
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (!shared[i])
            edge[in->a] = edge[in->b] = edge[in->c] = true;
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        edge[k->acc.at[i].value] = true;
    for (uint32_t i = 0; i < k->inst.n; i++)
        edge[i] &= shared[i] && k->inst.at[i].level == LEVEL_ELEM;
}

bool *
row_shared_edge(const struct kernel *k)
{
    bool *shared = xcalloc(k->inst.n, sizeof *shared), *edge = xcalloc(k->inst.n, sizeof *edge);
    find_shared(k, shared);
    find_edge(k, shared, edge);
    xfree(shared);
    return edge;
}

static bool
shares_any(const struct kernel *k, const bool *edge)
{
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (edge[i])
            return true;
    return false;
}

static void
keep_shared(const struct kernel *k, const bool *edge, struct schedule *s)
{
    uint32_t *cost = xcalloc(k->inst.n, sizeof *cost);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->level != LEVEL_ELEM)
            continue;
        cost[i] = row_inst_cost(k, i) + cost[in->a] + cost[in->b] + cost[in->c];
        cost[i] = cost[i] < 1000 ? cost[i] : 1000;
        if (edge[i] && cost[i] >= SHARE_COST)
            row_keep(k, s, i, MAX_SHARED_ROW);
    }
    xfree(cost);
}

static bool
reduces_once(const struct kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        n += a->scope == OVER_R;
        if (a->scope == OVER_R && (a->stage || op_gives_position(a->op)))
            return false;
    }
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ELEM ||
            (k->store.at[i].level == LEVEL_ONCE && k->acc.n == n))
            return false;
    return n && n * ROW_ABREAST <= MAX_PARTIALS;
}

bool
schedule_abreast(const struct kernel *k, const struct target *t, struct schedule *s, int64_t grain)
{
    if (k->naxis == k->nred || !reduces_once(k))
        return false;
    int64_t rows = k->axis[k->naxis - k->nred - 1].extent, points = kernel_points(k, AXIS_R);
    if (rows < MIN_ROWS)
        return false;
    int64_t all = kernel_points(k, AXIS_P), strips = all / rows * ceil_div(rows, RED_LANES);
    int64_t threads = min64(t->units ? t->units : 1, all / grain);
    if (threads > 1 && strips < 2 * threads)
        return false;
    bool *edge = row_shared_edge(k);
    if (points > LONG_ROW && !shares_any(k, edge)) {
        xfree(edge);
        return false;
    }
    int64_t vectors = ceil_div(points, RED_LANES);
    s->rows = ROW_ABREAST;
    s->units = strips;
    s->grain = ceil_div(grain, RED_LANES);
    s->tile[ROW_TILE_VECTORS] = 0;
    if (vectors * RED_LANES <= RED_BLOCK &&
        vectors * row_elem_cost(k) * ROW_ABREAST <= MAX_STRAIGHT)
        s->tile[ROW_TILE_VECTORS] = (uint16_t)vectors;
    if (rows % RED_LANES == 0)
        s->tile[ROW_TILE_EXTENT] |= ROW_WHOLE_STRIPS;
    s->scratch_bytes = 0;
    for (uint32_t i = 0; i < 4; i++)
        s->keep[i] = 0;
    keep_shared(k, edge, s);
    xfree(edge);
    return true;
}

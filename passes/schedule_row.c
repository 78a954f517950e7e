// schedule_row.c: parameters of the row class: P outside, vectors along R.
//
// The class can take any body with a reduce domain. Rows of a few vectors are unrolled and held in
// registers. Longer ones loop over R once a stage, and a value of an earlier stage is either kept
// in the thread's scratch or computed again: kept where that costs more than a few cheap
// instructions and the rows fit the second-level cache beside what streams through it. Beyond the
// caches stages of consecutive rows may share a loop, or the last of them take a group of rows
// together.
//
// Accumulators over P leave one value a row in shared memory, which bounds P.
#include "ir/base/size.h"
#include "passes/plan.h"
#include "passes/schedule.h"
#include "passes/schedule_row.h"

#include <string.h>

enum {
    MAX_SHARED = 256 << 10,  // bytes of partial results a launch
    MAX_SCRATCH = 128 << 10, // bytes of kept rows a thread
    MAX_VECTORS = 16,        // of a row in registers (one block of the reduction order)
    MAX_BLOCKS = 64,         // of a row that code is specialised for
    MAX_UNROLLED = 220,      // weight of an unrolled row
    MAX_AHEAD = 256 << 10,   // bytes of a row that is fetched ahead
    GROUP_ROWS = 8,          // rows whose last stage goes through the columns together
    OVERLAP_COST = 12,       // least cost of the dearest of three stages that share a loop
    KEEP_COST = 6,           // least cost of a value worth keeping
    GATHER_COST = 8,         // a load whose lanes are not neighbours
    GRAIN_WORK = 1 << 17,    // least cost given to a thread
};

uint32_t
row_inst_cost(const struct kernel *k, uint32_t i)
{
    const struct inst *in = &k->inst.at[i];
    if (in->op == OP_load) {
        int64_t stride = k->nred ? k->access.at[in->aux].stride[k->naxis - 1] : 0;
        return in->a || (stride != 0 && stride != 1) ? GATHER_COST : 1;
    }
    uint32_t cost = op_table[in->op].cost;
    return cost > 1 ? cost : 1;
}

uint32_t
row_elem_cost(const struct kernel *k)
{
    uint32_t cost = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].level == LEVEL_ELEM)
            cost += row_inst_cost(k, i);
    return cost + k->acc.n + k->store.n;
}

int64_t
row_shared_bytes(const struct kernel *k)
{
    int64_t points = kernel_points(k, AXIS_P), bytes = 0;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == OVER_P)
            bytes += (points * dtype_size(k->acc.at[i].dtype) + 63) & ~(int64_t)63;
    return bytes;
}

bool
row_too_many_accs(const struct kernel *k)
{
    for (uint32_t s = 0; s < k->nstage; s++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < k->acc.n; i++)
            n += k->acc.at[i].scope == OVER_R && k->acc.at[i].stage == s;
        if (n > ROW_MAX_ACCS)
            return true;
    }
    return false;
}

uint16_t
row_extent_flags(int64_t points)
{
    int flags = 0;
    flags |= points % RED_LANES == 0 ? ROW_NO_TAIL : 0;
    flags |= points % (4 * RED_BLOCK) == 0 ? ROW_NO_REST : 0;
    return (uint16_t)flags;
}

// Is i read by an instruction, accumulator or store of a later stage?
static bool
crosses_stages(const struct kernel *k, uint32_t i)
{
    uint8_t stage = k->inst.at[i].stage;
    for (uint32_t u = i + 1; u < k->inst.n; u++) {
        const struct inst *in = &k->inst.at[u];
        if (in->stage > stage && (in->a == i || in->b == i || in->c == i))
            return true;
    }
    for (uint32_t u = 0; u < k->acc.n; u++)
        if (k->acc.at[u].value == i && k->acc.at[u].stage > stage)
            return true;
    for (uint32_t u = 0; u < k->store.n; u++)
        if (k->store.at[u].value == i && k->store.at[u].stage > stage)
            return true;
    return false;
}

static bool
is_kept(const struct schedule *s, uint32_t i)
{
    return i < 256 && s->keep[i / 64] >> (i % 64) & 1;
}

// What operand x adds to the cost of an instruction of this stage.
static uint32_t
operand_cost(const struct kernel *k, const struct schedule *s, const uint32_t *cost, uint32_t x,
             uint8_t stage)
{
    if (!x || k->inst.at[x].level != LEVEL_ELEM)
        return 0;
    return is_kept(s, x) && k->inst.at[x].stage < stage ? 1 : cost[x];
}

void
row_keep(const struct kernel *k, struct schedule *s, uint32_t inst, int64_t most)
{
    int64_t points = round_up(kernel_points(k, AXIS_R), RED_LANES);
    int64_t bytes = round_up(points * dtype_size(k->inst.at[inst].dtype), 64);
    if (inst >= 256 || s->scratch_bytes + bytes > most)
        return;
    s->keep[inst / 64] |= (uint64_t)1 << (inst % 64);
    s->scratch_bytes += bytes;
}

// Fills in s->keep and s->scratch_bytes, first come first served: early values feed later ones.
static void
choose_kept(const struct kernel *k, struct schedule *s)
{
    uint32_t *cost = xcalloc(k->inst.n, sizeof *cost);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->level != LEVEL_ELEM)
            continue;
        uint64_t sum = row_inst_cost(k, i);
        const uint32_t operands[] = {in->a, in->b, in->c};
        for (uint32_t x = 0; x < 3; x++)
            sum += operand_cost(k, s, cost, operands[x], in->stage);
        cost[i] = sum < 1000 ? (uint32_t)sum : 1000; // shared operands count twice
        if (cost[i] >= KEEP_COST && crosses_stages(k, i))
            row_keep(k, s, i, MAX_SCRATCH);
    }
    xfree(cost);
}

// Bytes of all accesses, each buffer counted once: by what varies, as spans are not known yet.
static int64_t
touched_bytes(const struct kernel *k)
{
    int64_t all = 0;
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        int64_t most = 0;
        for (uint32_t i = 0; i < k->access.n; i++) {
            const struct access *x = &k->access.at[i];
            int64_t bytes = dtype_size(x->dtype);
            for (uint32_t a = 0; a < k->naxis; a++)
                bytes *= x->stride[a] ? k->axis[a].extent : 1;
            most = x->buffer == b && bytes > most ? bytes : most;
        }
        all += most;
    }
    return all;
}

// Bytes that a row loads per pass over it.
static int64_t
row_bytes(const struct kernel *k)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load && k->inst.at[i].level == LEVEL_ELEM)
            bytes += dtype_size(k->inst.at[i].dtype);
    return bytes * kernel_points(k, AXIS_R);
}

// Stores per element exist, and all run along R.
static bool
stores_dense_rows(const struct kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->store.n && k->nred; i++) {
        const struct store *x = &k->store.at[i];
        if (x->level == LEVEL_ELEM && k->access.at[x->access].stride[k->naxis - 1] != 1)
            return false;
        n += x->level == LEVEL_ELEM;
    }
    return n > 0;
}

// ---- overlapping rows (codegen/cpu/row_overlap.c)

// What a stage does per element; 0: nothing.
static uint32_t
stage_cost(const struct kernel *k, const struct schedule *s, uint32_t stage)
{
    uint32_t cost = 0;
    bool sink = false;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        if (k->inst.at[i].level != LEVEL_ELEM || k->inst.at[i].stage != stage)
            continue;
        cost += row_inst_cost(k, i);
        sink |= is_kept(s, i);
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        sink |= k->acc.at[i].scope == OVER_R && k->acc.at[i].stage == stage;
    for (uint32_t i = 0; i < k->store.n; i++)
        sink |= k->store.at[i].level == LEVEL_ELEM && k->store.at[i].stage == stage;
    return sink ? cost + 1 : 0;
}

// A kept value has one place. It is read in the turn of the rows in which it was written, or in the
// next one by a stage of the common loop, which reads each element before it is written anew.
static bool
kept_in_time(const struct kernel *k, const struct schedule *s, uint32_t overlap)
{
    uint32_t delay[ROW_MAX_OVERLAP] = {0};
    for (uint32_t i = 1; i < k->nstage; i++)
        delay[i] = delay[i - 1] + (overlap >> i & 1);
    for (uint32_t i = 1; i < k->inst.n; i++)
        for (uint32_t t = k->inst.at[i].stage + 1u; is_kept(s, i) && t < k->nstage; t++) {
            uint32_t age = delay[t] - delay[k->inst.at[i].stage];
            if (stage_cost(k, s, t) && age > (overlap >> t & 1))
                return false;
        }
    return true;
}

// All stages with work per element share one loop, where there are two of them or one computes
// much. Of three light ones (layernorm) each asks ahead instead: in one loop, with rows and weights
// that the first-level cache cannot hold together, they ran 2 to 6 % slower.
static void
choose_overlap(const struct kernel *k, struct schedule *s)
{
    uint32_t overlap = 0, most = 0, stages = 0, accs = 0;
    if (k->nstage > ROW_MAX_OVERLAP || k->nred != 1 || k->naxis < 2 || !stage_cost(k, s, 0))
        return;
    for (uint32_t i = 0; i < k->nstage; i++) {
        uint32_t cost = stage_cost(k, s, i);
        overlap |= cost ? 1u << i : 0;
        stages += cost > 0;
        most = cost > most ? cost : most;
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        accs += k->acc.at[i].scope == OVER_R;
    bool pays = stages == 2 || (stages > 2 && most >= OVERLAP_COST);
    if (pays && accs <= ROW_MAX_ACCS && kept_in_time(k, s, overlap))
        s->overlap = (uint8_t)overlap;
}

// ---- the last stage of several rows at once (codegen/cpu/row_pieces.c)

// Bytes of what all rows share that is loaded with a row.
static int64_t
shared_row_bytes(const struct kernel *k)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->level != LEVEL_ELEM)
            continue;
        bool moves = false;
        for (uint32_t a = 0; a + k->nred < k->naxis; a++)
            moves |= k->access.at[in->aux].stride[a] != 0;
        bytes += moves ? 0 : dtype_size(in->dtype) * kernel_points(k, AXIS_R);
    }
    return bytes;
}

// Three light stages, each of which asks for a part of what comes next (codegen/cpu/stage.c), where
// a row and what all rows share fill the first-level cache: layer_norm in rows of 4096 with weight
// and bias. Two groups lie in the second-level cache.
static void
choose_group(const struct kernel *k, const struct target *t, struct schedule *s)
{
    int64_t shared = shared_row_bytes(k), row = row_bytes(k) - shared;
    bool light = k->nstage == 3 && k->nred == 1 && s->tile[ROW_TILE_EXTENT] & ROW_NO_REST;
    if (!light || !s->streaming_store || s->overlap || s->scratch_bytes || !shared)
        return;
    if (shared + row <= t->l1 * 3 / 4 || t->vec_bytes < 64)
        return;
    int64_t rows = min64(GROUP_ROWS, t->l2 / 8 / max64(row, 1));
    s->edge[0] = (uint8_t)(rows > 1 ? rows : 0);
}

bool
schedule_row(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *s = (struct schedule){.cls = CLASS_ROW, .vec = 16, .unroll = 4};
    if ((!k->nred && !k->acc.n) || k->cls == CLASS_CONTRACT)
        return *why = REASON_no_class, false;
    if (row_too_many_accs(k))
        return *why = REASON_budget_insts, false;
    s->shared_scratch_bytes = row_shared_bytes(k);
    if (s->shared_scratch_bytes > MAX_SHARED)
        return *why = REASON_budget_scratch, false;
    int64_t points = kernel_points(k, AXIS_R), rows = kernel_points(k, AXIS_P);
    int64_t vectors = (points + 15) / 16;
    uint32_t cost = row_elem_cost(k);
    if (vectors <= MAX_VECTORS && vectors * cost <= MAX_UNROLLED)
        s->tile[ROW_TILE_VECTORS] = (uint16_t)vectors;
    else
        choose_kept(k, s);
    s->tile[ROW_TILE_EXTENT] = row_extent_flags(points);
    int64_t blocks = (points + RED_BLOCK - 1) / RED_BLOCK;
    s->tile[ROW_TILE_BLOCKS] = blocks <= MAX_BLOCKS ? (uint16_t)blocks : 0;
    s->chunk = vectors * 16;
    s->units = rows;
    int64_t work = points * (2 + cost / 4);
    s->grain = work < GRAIN_WORK ? (GRAIN_WORK + work - 1) / work : 1;
    s->finish_units = s->shared_scratch_bytes > 0;
    if (schedule_abreast(k, t, s, s->grain))
        return true;
    int64_t bytes = touched_bytes(k);
    int64_t shared = schedule_shared_cache(t);
    s->streaming_store =
        shared > 0 && bytes > schedule_streaming_bytes(t) && stores_dense_rows(k);
    bool small_rows = row_bytes(k) <= MAX_AHEAD && !s->tile[ROW_TILE_VECTORS];
    if (k->nstage > 1 && small_rows && bytes > schedule_own_cache(t)) {
        s->prefetch = row_bytes(k) <= t->l1 / 2 ? 1 : 2;
        if (bytes > shared)
            choose_overlap(k, s);
        if (bytes > 2 * shared)
            choose_group(k, t, s);
    }
    return true;
}

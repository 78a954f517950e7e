// schedule_contract.c: tile sizes and strategy of a contraction.
//
// Three questions, in this order:
//   - which of m and n the vectors run along (the roles of the factors follow);
//   - the register tile, rows x vectors: the one that wastes least at the edges and whose loads
//     hide behind its multiply-adds, among those that fit the register file;
//   - which factor is packed, and the tile of C that makes a unit: B's panel and the accumulators
//     have to stay in half the second-level cache, and all threads need work.
// A factor is packed when it has instructions of its own beside a load (they then run once per
// panel), when its layout is not what the innermost loop reads, or when it is read so often that
// the copy pays. Costs below are in cycles of a core that starts two multiply-adds and two loads a
// cycle; only their ratios matter.
#include "passes/schedule_contract.h"

#include "passes/plan.h"

#include <string.h>

static int64_t
ceil_div(int64_t x, int64_t by)
{
    return (x + by - 1) / by;
}
static int64_t
round_up(int64_t x, int64_t to)
{
    return ceil_div(x, to) * to;
}
static int64_t
min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t
max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct contract_layout
contract_layout(const struct schedule *s, uint32_t size, int64_t depth)
{
    int64_t columns = (int64_t)s->unroll * s->vec, lanes = s->vec, kc = s->tile[2];
    int64_t mc = round_up(s->tile[0], s->rows), nc = round_up(s->tile[1], columns);
    int64_t tail = round_up(kc, lanes) - kc; // steps that packing may write beyond the last
    bool one_panel = depth <= kc;
    struct contract_layout l = {
        .width = s->rows < lanes ? s->rows : (uint32_t)round_up(s->rows, lanes)};
    if (s->pack & PACK_A)
        l.b_at = round_up((mc / s->rows * kc + tail) * l.width * size + lanes * size, 64);
    l.c_at = l.b_at;
    if (s->pack & PACK_B)
        l.c_at += round_up((kc + tail) * columns * size, 64);
    l.c_row = one_panel ? 0 : nc;
    l.c_column = one_panel ? 0 : s->rows;
    l.bytes = round_up(l.c_at + (one_panel ? s->rows * columns : mc * nc) * size, 64);
    return l;
}

// ---- what is to be scheduled, in the roles chosen

struct problem {
    const struct kernel *k;
    const struct target *t;
    int64_t batch, M, N, K;
    uint32_t m, n;       // axes
    uint32_t a, b;       // instructions
    uint32_t size, lanes, registers;
};

// A load of the accumulator's dtype and nothing else: its access; else NULL.
static const struct access *
plain_load(const struct problem *p, uint32_t inst)
{
    const struct inst *in = &p->k->inst.at[inst];
    bool plain = in->op == OP_load && !in->a && !in->b && !in->c &&
                 in->dtype == p->k->acc.at[p->k->contraction.acc].dtype;
    return plain ? &p->k->access.at[in->aux] : NULL;
}

static void
swap_roles(struct problem *p)
{
    struct problem q = *p;
    p->M = q.N, p->N = q.M, p->m = q.n, p->n = q.m, p->a = q.b, p->b = q.a;
}

static struct problem
problem_of(const struct kernel *k, const struct target *t)
{
    struct problem p = {.k = k, .t = t, .batch = 1};
    uint32_t bytes = t->vec_bytes >= 64 ? 64 : t->vec_bytes >= 32 ? 32 : 16;
    p.m = k->naxis - 3u, p.n = k->naxis - 2u;
    for (uint32_t i = 0; i < p.m; i++)
        p.batch *= k->axis[i].extent;
    p.M = k->axis[p.m].extent, p.N = k->axis[p.n].extent;
    p.K = k->axis[k->naxis - 1u].extent;
    p.a = k->contraction.a, p.b = k->contraction.b;
    p.size = dtype_size(k->acc.at[k->contraction.acc].dtype);
    p.lanes = bytes / p.size;
    p.registers = bytes == 64 ? 32 : 16;
    return p;
}

// Vectors should run along the axis along which the results lie in memory, unless it is so short
// that most lanes would idle.
static bool
better_swapped(const struct problem *p)
{
    int64_t along_m = 0, along_n = 0;
    for (uint32_t i = 0; i < p->k->store.n; i++) {
        const int64_t *stride = p->k->access.at[p->k->store.at[i].access].stride;
        along_m += stride[p->m] == 1 && stride[p->n] != 1;
        along_n += stride[p->n] == 1;
    }
    if (along_m > along_n)
        return p->M >= p->lanes / 2 || p->M >= p->N;
    return p->N < p->lanes / 2 && p->M > p->N;
}

// ---- the register tile

// Cycles of all multiply-adds with a register tile.
static double
tile_cycles(const struct problem *p, int64_t rows, int64_t vecs)
{
    double fma = (double)(rows * vecs) / 2, latency = 4;
    // Elements of A are broadcast through one pointer a row; more than 8 of those live in memory.
    double loads = (double)(rows + vecs + (rows > 8 ? rows - 8 : 0) / 2) / 2;
    double step = fma > loads ? fma : loads;
    step = (step > latency ? step : latency) + 0.1 * loads;
    double tile = step * (double)p->K + 1.5 * (double)(rows * vecs) + 40;
    return tile * (double)(ceil_div(p->M, rows) * ceil_div(p->N, vecs * p->lanes));
}

enum { MAX_VECS = 6, MAX_ROWS = 28 }; // at most 7: a cut-off panel takes a mask register a vector
static void
choose_tile(const struct problem *p, struct schedule *s)
{
    double best = 1e300;
    for (int64_t vecs = 1; vecs <= MAX_VECS; vecs++) {
        for (int64_t rows = 1; rows <= MAX_ROWS; rows++) {
            if (rows * vecs + vecs + 1 > p->registers - 1)
                continue;
            double cycles = tile_cycles(p, rows, vecs);
            if (cycles < best) {
                best = cycles;
                s->rows = (uint8_t)rows;
                s->unroll = (uint8_t)vecs;
            }
        }
    }
}

// ---- packing and the tile of C

static void
choose_packing(const struct problem *p, struct schedule *s)
{
    uint32_t k = p->k->naxis - 1u;
    const struct access *a = plain_load(p, p->a), *b = plain_load(p, p->b);
    int64_t columns = (int64_t)s->unroll * s->vec;
    if (!a || (a->stride[k] != 1 && p->N > 2 * columns))
        s->pack |= PACK_A;
    bool far = b && b->stride[k] * p->size >= 4096 && p->K >= 64;
    if (!b || (b->stride[p->n] != 1 && p->N != 1) || (p->M >= 16 * s->rows && far))
        s->pack |= PACK_B;
}

// Divides `extent` into equal parts of at most `most`, each a multiple of `unit`.
static int64_t
part(int64_t extent, int64_t most, int64_t unit)
{
    if (extent < 1)
        return unit;
    int64_t parts = ceil_div(extent, max64(most, unit));
    return min64(round_up(ceil_div(extent, parts), unit), 65535 / unit * unit);
}

static int64_t
count_units(const struct problem *p, int64_t mc, int64_t nc)
{
    return p->batch * ceil_div(p->M, mc) * ceil_div(p->N, nc);
}

// Threads that have enough to do for the trouble of waking them.
static int64_t
useful_threads(const struct problem *p, const struct schedule *s)
{
    enum { WAKE = 15000 }; // cycles
    double cycles = tile_cycles(p, s->rows, s->unroll);
    double bytes = (double)p->K * (double)(p->M + p->N) * p->size;
    cycles = (double)p->batch * (cycles > bytes / 16 ? cycles : bytes / 16);
    return max64(1, min64(max64(p->t->units, 1), (int64_t)(cycles / WAKE)));
}

// The next smaller block: one part more, or where rounding to units gives the same again, one unit
// less.
static int64_t
smaller(int64_t extent, int64_t now, int64_t unit)
{
    int64_t parts = ceil_div(extent, now) + 1;
    int64_t next = part(extent, round_up(ceil_div(extent, parts), unit), unit);
    return next < now ? next : max64(now - unit, unit);
}

// Smaller units, the longer side first, until each thread has as many or all have several.
static void
spread(const struct problem *p, const struct schedule *s, int64_t threads, int64_t *mc, int64_t *nc)
{
    int64_t columns = (int64_t)s->unroll * s->vec, n;
    bool computed = !plain_load(p, p->a); // a prologue: each unit across would compute it again
    while ((n = count_units(p, *mc, *nc)) < 4 * threads && n % threads) {
        bool can_n = *nc > columns, can_m = *mc > s->rows;
        if (can_n && ((*nc >= *mc && !computed) || !can_m))
            *nc = smaller(p->N, *nc, columns);
        else if (can_m)
            *mc = smaller(p->M, *mc, s->rows);
        else
            break;
    }
}

// One group of rows: what counts is to read B as it lies in memory, once. Long stretches of a few
// rows of B (or short stretches of the rows of its transpose) keep the prefetchers going.
static void
stream_blocks(const struct problem *p, struct schedule *s, int64_t *nc, int64_t *kc)
{
    if (s->pack & PACK_B && s->rows <= 2)
        s->unroll = s->unroll < 4 ? s->unroll : 4;
    int64_t columns = (int64_t)s->unroll * s->vec;
    if (s->pack & PACK_B) {
        *kc = part(p->K, 128, 1);
        *nc = part(p->N, columns, columns);
    } else if (p->N > 2 * columns) {
        *kc = part(p->K, 16, 1);
        *nc = part(p->N, max64(32768 / p->size / s->rows, columns), columns);
    }
}

// A's rows of a unit live in half the second-level cache, the accumulators (of all panels but the
// last) in three eighths.
static void
choose_blocks(const struct problem *p, struct schedule *s)
{
    int64_t columns = (int64_t)s->unroll * s->vec;
    int64_t cache = min64(max64(p->t->l2, 256 << 10), 1 << 20) / (s->pack & PACK_A ? 2 : 1);
    int64_t kc = part(p->K, p->K <= 512 ? 512 : 320, 1);
    int64_t mc = part(p->M, max64(cache / 2 / (kc * p->size), s->rows), s->rows);
    int64_t room = kc < p->K ? max64(cache * 3 / 8 / (mc * p->size), columns) : p->N;
    int64_t nc = part(p->N, room, columns);
    bool from_memory = (double)p->K * (double)p->N * p->size > (double)cache / 2;
    if (p->M <= s->rows && (from_memory || s->pack & PACK_B))
        stream_blocks(p, s, &nc, &kc);
    int64_t threads = useful_threads(p, s);
    spread(p, s, threads, &mc, &nc);
    s->tile[0] = (uint16_t)mc;
    s->tile[1] = (uint16_t)nc;
    s->tile[2] = (uint16_t)kc;
    s->units = count_units(p, mc, nc);
    s->grain = ceil_div(s->units, threads * 4);
    if (threads == 1)
        s->grain = max64(s->units, 1);
}

bool
schedule_contract(const struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    if (k->cls != CLASS_CONTRACT || k->nred != 1 || k->naxis < 3) {
        *why = REASON_no_class;
        return false;
    }
    memset(s, 0, sizeof *s);
    struct problem p = problem_of(k, t);
    s->cls = CLASS_CONTRACT;
    s->transpose = better_swapped(&p);
    if (s->transpose)
        swap_roles(&p);
    s->vec = (uint8_t)p.lanes;
    choose_tile(&p, s);
    choose_packing(&p, s);
    choose_blocks(&p, s);
    s->chunk = s->tile[1];
    s->scratch_bytes = contract_layout(s, p.size, p.K).bytes;
    return true;
}

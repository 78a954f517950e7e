// schedule_contract.c: tile sizes and strategy of a contraction.
//
// Three questions, in this order:
//   - which of m and n the vectors run along (the roles of the factors follow);
//   - the register tile, rows x vectors: the one that wastes least at the edges and whose loads
//     hide behind its multiply-adds, among those that fit the register file;
//   - which factor is packed, and the tile of C that makes a unit: B's panel has to stay in the
//     first-level cache, A's and the sums in the second, and all threads need work.
// A factor is packed when it has instructions of its own beside a load (they then run once per
// panel), when its layout is not what the innermost loop reads, or when it is read so often that
// the copy pays. Costs below are in cycles of a core that starts two multiply-adds and two loads a
// cycle; only their ratios matter.
//
// With AVX-512, or AVX2 and FMA, and floats the innermost loop is printed as assembly
// (codegen/cpu/contract_asm.c), which reads more layouts where they lie, so the third question has
// other answers there. Its scratch is at most 256 KiB a thread with AVX-512, else at most 768.
#include "passes/schedule_contract.h"

#include "ir/base/size.h"
#include "passes/plan.h"

#include <string.h>

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
    if (s->pack & (PACK_B | COPY_B))
        l.c_at += round_up((kc + tail) * columns * size, 64);
    bool one_tile = one_panel || s->pack & SUM_IN_OUTPUT;
    l.c_row = one_tile ? 0 : nc;
    l.c_column = one_tile ? 0 : s->rows;
    l.bytes = round_up(l.c_at + (one_tile ? s->rows * columns : mc * nc) * size, 64);
    return l;
}

uint32_t
contract_sum_store(const struct kernel *k, uint32_t m, uint32_t n)
{
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct access *x = &k->access.at[k->store.at[i].access];
        bool fits = x->dtype == k->acc.at[k->contraction.acc].dtype && x->stride[n] == 1;
        for (uint32_t d = 0; d + 1 < k->naxis; d++)
            fits = fits && (x->stride[d] != 0 || k->axis[d].extent <= 1);
        if (fits && (x->stride[m] > 0 || k->axis[m].extent <= 1))
            return i;
    }
    return UINT32_MAX;
}

void
contract_edges(struct schedule *s, int64_t m, int64_t n)
{
    int64_t columns = (int64_t)s->unroll * s->vec;
    s->edge[0] = (uint8_t)(m % s->rows);
    s->edge[1] = (uint8_t)ceil_div(n % columns, s->vec);
}

// ---- what is to be scheduled, in the roles chosen

struct problem {
    const struct kernel *k;
    const struct target *t;
    int64_t batch, M, N, K;
    uint32_t m, n;       // axes
    uint32_t a, b;       // instructions
    uint32_t size, lanes, registers;
    bool by_hand; // the innermost loop is assembly
};

static bool
is_half_wide(const struct problem *p) // assembly for AVX2
{
    return p->by_hand && p->lanes * p->size == 32;
}

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

// Among the target's features, of which one more begins as this one does.
static bool
has_fma(const struct target *t)
{
    const char *at = strstr(t->features, "+fma");
    while (at && at[4] && at[4] != ',')
        at = strstr(at + 4, "+fma");
    return at != NULL;
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
    p.by_hand = (bytes == 64 || (bytes == 32 && has_fma(t))) &&
                dtype_is_float(k->acc.at[k->contraction.acc].dtype);
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

// Divides `extent` into equal parts of at most `most`, each a multiple of `unit`.
static int64_t
part(int64_t extent, int64_t most, int64_t unit)
{
    if (extent < 1)
        return unit;
    int64_t parts = ceil_div(extent, max64(most, unit));
    return min64(round_up(ceil_div(extent, parts), unit), 65535 / unit * unit);
}

// ---- the register tile

// Cycles of one step of k.
static double
step_cycles(const struct problem *p, int64_t rows, int64_t vecs)
{
    double fma = (double)(rows * vecs) / 2, latency = 4;
    // Elements of A are broadcast through one pointer a row; LLVM keeps those beyond 8 in memory.
    int64_t pointers = rows > 8 && !p->by_hand ? rows - 8 : 0;
    double loads = (double)(rows + vecs + pointers / 2) / 2;
    double step = fma > loads ? fma : loads;
    return (step > latency ? step : latency) + (p->by_hand ? 0.2 : 0.1) * loads;
}

// Steps of k whose panels of B and of one tile's rows of A fill the first-level cache.
static int64_t
deep_panel(const struct problem *p, int64_t rows, int64_t vecs)
{
    int64_t step = (vecs * p->lanes + rows) * p->size;
    return max64(ceil_div(max64(p->t->l1, 32 << 10), step), 64);
}

// Steps of k in a panel: all of them, if there are few more than fit.
static int64_t
steps_at_once(const struct problem *p, int64_t rows, int64_t vecs)
{
    int64_t deep = deep_panel(p, rows, vecs), most = deep * 3 / 2;
    return part(p->K, p->K <= most ? most : deep, 1);
}

// Cycles around the loop over k of one tile: sums are fetched and put away for each panel. With
// AVX-512 what it takes to begin and end the loop counts for more, as the panels are short.
static double
tile_rest(const struct problem *p, int64_t rows, int64_t sums, int64_t vecs)
{
    if (!p->by_hand)
        return 1.5 * (double)sums + 40;
    if (is_half_wide(p))
        return (3 * (double)sums + 40) *
               (double)max64(ceil_div(p->K, deep_panel(p, 0, vecs) * 3 / 2), 1);
    int64_t panels = ceil_div(p->K, steps_at_once(p, rows, vecs));
    return (3 * (double)sums + 100) * (double)max64(panels, 1);
}

// Cycles of all multiply-adds with a register tile.
static double
tile_cycles(const struct problem *p, int64_t rows, int64_t vecs)
{
    int64_t down = p->M / rows, across = p->N / (vecs * p->lanes);
    int64_t low = p->M % rows, narrow = ceil_div(p->N % (vecs * p->lanes), p->lanes);
    int64_t height[2] = {rows, p->by_hand ? low : rows};
    int64_t width[2] = {vecs, p->by_hand ? narrow : vecs};
    double total = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            double tiles = (double)((i ? low > 0 : down) * (j ? narrow > 0 : across));
            double step = step_cycles(p, height[i], width[j]);
            double rest = tile_rest(p, rows, height[i] * width[j], vecs);
            total += tiles * (step * (double)p->K + rest);
        }
    return total;
}

enum { MAX_VECS = 6, MAX_ROWS = 28 }; // at most 7: a cut-off panel takes a mask register a vector
static void
choose_tile(const struct problem *p, struct schedule *s)
{
    double best = 1e300;
    for (int64_t vecs = 1; vecs <= MAX_VECS; vecs++) {
        for (int64_t rows = 1; rows <= MAX_ROWS; rows++) {
            // Packed rows are as many as a vector has lanes, or fewer.
            if (rows * vecs + vecs + 1 > p->registers - (p->by_hand ? 0 : 1) ||
                (p->by_hand && rows > p->lanes))
                continue;
            double cycles = tile_cycles(p, rows, vecs);
            // One tall product is divided into strips, which are equal only in whole tiles.
            if (p->by_hand && p->batch == 1 && p->M > 16 * rows && p->M % rows)
                cycles *= 1.02;
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

// The loop in assembly reads A along either axis; where N is long, packing makes one stream of it.
// B is packed on the way unless all of it stays in the first-level cache.
static void
choose_packing_by_hand(const struct problem *p, struct schedule *s)
{
    enum { LONG = 512 };
    uint32_t k = p->k->naxis - 1u;
    const struct access *a = plain_load(p, p->a), *b = plain_load(p, p->b);
    s->pack = BY_HAND;
    if (contract_sum_store(p->k, p->m, p->n) != UINT32_MAX)
        s->pack |= SUM_IN_OUTPUT;
    bool readable = a && (s->rows == 1 || a->stride[k] == 1 || a->stride[p->m] == 1);
    if (!readable || (p->M > s->rows && p->N >= LONG && p->K > 1))
        s->pack |= PACK_A;
    if (!b || (b->stride[p->n] != 1 && p->N != 1))
        s->pack |= PACK_B;
    else if (p->M >= 3 * s->rows && p->K * p->N * p->size > p->t->l1 / 2)
        s->pack |= COPY_B;
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
    if (s->pack & PACK_B && p->M <= s->rows) // turned in registers, slower than memory
        bytes += bytes / 2;
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

// Smaller units, the longer side first (with vectors of 256 bits only where no unit stays much
// larger than if the other side were cut, with 512 while there is not one a thread), until each
// thread has as many or all have several. One large unit a thread would leave the others waiting
// for the core that is slowed down by something else.
static void
spread(const struct problem *p, const struct schedule *s, int64_t threads, int64_t *mc, int64_t *nc)
{
    enum { LARGE = 1 << 20 }; // cycles
    int64_t columns = (int64_t)s->unroll * s->vec, n;
    bool computed = !plain_load(p, p->a); // a prologue: each unit across would compute it again
    double cycles = (double)p->batch * tile_cycles(p, s->rows, s->unroll);
    while ((n = count_units(p, *mc, *nc)) < 4 * threads &&
           (n % threads || (threads > 1 && n == threads && cycles > (double)n * LARGE))) {
        bool can_n = *nc > columns, can_m = *mc > s->rows;
        int64_t narrow = smaller(p->N, *nc, columns), low = smaller(p->M, *mc, s->rows);
        bool uneven = is_half_wide(p) && can_m &&
                      5 * narrow * min64(*mc, p->M) > 6 * low * min64(*nc, p->N);
        bool even = p->by_hand && !is_half_wide(p) && n < threads && !computed &&
                    5 * low * min64(*nc, p->N) > 6 * narrow * min64(*mc, p->M);
        if (can_n && ((*nc >= *mc && !computed && !uneven) || even || !can_m))
            *nc = narrow;
        else if (can_m)
            *mc = low;
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
size_blocks(const struct problem *p, const struct schedule *s, int64_t *mc, int64_t *nc,
            int64_t *kc)
{
    int64_t columns = (int64_t)s->unroll * s->vec;
    int64_t cache = min64(max64(p->t->l2, 256 << 10), 1 << 20) / (s->pack & PACK_A ? 2 : 1);
    *kc = part(p->K, p->K <= 512 ? 512 : 320, 1);
    *mc = part(p->M, max64(cache / 2 / (*kc * p->size), s->rows), s->rows);
    int64_t room = *kc < p->K ? max64(cache * 3 / 8 / (*mc * p->size), columns) : p->N;
    *nc = part(p->N, room, columns);
}

// Bytes a thread. With vectors of 256 bits a step of k takes less time, so that packing B again for
// each strip of rows counts for more: A's panel then takes most of the second-level cache.
static int64_t
scratch_by_hand(const struct problem *p)
{
    return max64(is_half_wide(p) ? min64(p->t->l2, 1 << 20) * 3 / 4 : 0, 256 << 10);
}

// B's panel and a tile's rows of A fill the first-level cache, for which it pays to come back to C
// more often; A's panel, if it is packed, and B's fill the scratch. C's tile is as wide as C
// unless its sums are in scratch: A is then packed once, and sums in the output are asked for early
// enough wherever they lie.
static void
size_blocks_by_hand(const struct problem *p, const struct schedule *s, int64_t *mc, int64_t *nc,
                    int64_t *kc)
{
    int64_t columns = (int64_t)s->unroll * s->vec, l2 = max64(p->t->l2, 256 << 10);
    int64_t scratch = scratch_by_hand(p), half = is_half_wide(p) ? scratch : l2 / 2;
    *kc = steps_at_once(p, s->rows, s->unroll);
    int64_t width = contract_layout(s, p->size, p->K).width;
    int64_t room = scratch - 4 * (int64_t)p->lanes * p->size * p->registers -
                   round_up(*kc, p->lanes) * columns * p->size;
    int64_t most = s->pack & PACK_A ? min64(room, half) / (*kc * width * p->size) * s->rows
                                    : l2 / 2 / (*kc * p->size);
    *mc = part(p->M, max64(most, s->rows), s->rows);
    bool in_scratch = *kc < p->K && !(s->pack & SUM_IN_OUTPUT);
    int64_t sums = in_scratch ? 256 << 10 : INT32_MAX;
    *nc = part(p->N, max64(sums / (*mc * p->size), columns), columns);
}

static void
choose_blocks(const struct problem *p, struct schedule *s)
{
    int64_t mc, nc, kc;
    if (p->by_hand)
        size_blocks_by_hand(p, s, &mc, &nc, &kc);
    else
        size_blocks(p, s, &mc, &nc, &kc);
    bool from_memory = (double)p->K * (double)p->N * p->size > (double)p->t->l2 / 2;
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
    if (p.by_hand)
        choose_packing_by_hand(&p, s);
    else
        choose_packing(&p, s);
    choose_blocks(&p, s);
    s->chunk = s->tile[1];
    contract_edges(s, p.M, p.N);
    s->scratch_bytes = contract_layout(s, p.size, p.K).bytes;
    return true;
}

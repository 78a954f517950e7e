// stage.c: the loop over R of one stage, shared by the row and split classes.
//
// A stage's sinks are its accumulators, its ELEM stores and the values kept for later stages. With
// accumulators the loop is reduce_loop's; without, it runs straight along R. Each vector of 16
// elements is a scope of its own below the row's: what depends on the row only has been hoisted.
//
// Kept values stand in the thread's scratch as whole vectors, also behind the end of the row, so
// they are read and written without a mask. A row of few vectors is unrolled instead, with one
// scope a vector for all stages: then everything is kept, in registers, and shared between stages.
//
// R axes that could not be merged are decoded from the flat index of each vector: the last axis
// along the lanes where its extent is a multiple of 16, else lane by lane, which is slow but right.
#include "codegen/cpu/stage.h"

#include "codegen/cpu/emit_parts.h"

#include <string.h>

enum { MAX_WIDE_WEIGHT = 3, MAX_WIDE_SLOW_WEIGHT = 8, MAX_WIDE_ACCS = 4, MERGED_AHEAD = 4096 };

static bool
is_kept_elem(const struct emitter *e, uint32_t inst)
{
    return e->kept[inst] && e->kernel.inst.at[inst].level == LEVEL_ELEM;
}

static const char *
scratch_at(struct stages *st, uint32_t inst)
{
    struct emitter *e = st->e;
    const char *base = emit_scratch(e, st->kept_at[inst]);
    return emit_ptr(e, base, st->at, emit_memory_type(e, e->kernel.inst.at[inst].dtype, 1));
}

// A value kept in an earlier stage is read back.
static const char *
resolve(struct emitter *e, struct emit_scope *s, uint32_t inst, void *user)
{
    struct stages *st = user;
    const struct inst *in = &e->kernel.inst.at[inst];
    if (st->kept_at[inst] < 0 || in->stage >= st->stage || s->lanes != RED_LANES)
        return NULL;
    return emit_load_raw(e, in->dtype, RED_LANES, scratch_at(st, inst), NULL, 16);
}

// Of the stages after the first, the one with most to compute per element.
static uint32_t
dearest_stage(const struct kernel *k)
{
    uint32_t cost[UINT8_MAX + 1] = {0}, best = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].level == LEVEL_ELEM)
            cost[k->inst.at[i].stage] += row_inst_cost(k, i);
    for (uint32_t s = 1; s < k->nstage; s++)
        if (!best || cost[s] > cost[best])
            best = s;
    return best;
}

void
stages_begin(struct stages *st, struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    *st = (struct stages){.e = e, .np = (uint32_t)k->naxis - k->nred, .nr = k->nred};
    st->points = kernel_points(k, AXIS_R);
    st->extent = e->sched->tile[ROW_TILE_EXTENT];
    st->blocks = e->sched->tile[ROW_TILE_BLOCKS];
    st->kept_at = arena_alloc(&e->mem, k->inst.n * sizeof *st->kept_at);
    int64_t vectors = (st->points + RED_LANES - 1) / RED_LANES, at = 0;
    for (uint32_t i = 0; i < k->inst.n; i++) {
        st->kept_at[i] = -1;
        if (e->sched->tile[ROW_TILE_VECTORS] || !is_kept_elem(e, i))
            continue;
        st->kept_at[i] = at;
        at += (vectors * RED_LANES * dtype_size(k->inst.at[i].dtype) + 63) & ~(int64_t)63;
    }
    if (e->sched->cls == CLASS_SPLIT)
        st->ahead = st->nr == 1 ? e->sched->prefetch : 0;
    else if (e->sched->prefetch && st->np)
        st->prefetch_stage = dearest_stage(k);
    e->resolve = resolve;
    e->user = st;
}

// ---- vectors

// <16 x i64>: axis positions of flat elements j + lane.
static void
bind_per_lane(struct stages *st, struct emit_scope *s, const char *j)
{
    struct emitter *e = st->e;
    const char *type = emit_type(e, DT_i64, RED_LANES);
    const char *first = emit_splat_i64(e, j, RED_LANES);
    const char *flat = emit_op(e, "add %s %s, %s", type, first, emit_iota(e, RED_LANES));
    for (uint32_t a = st->nr; a-- > 1;) {
        uint32_t axis = st->np + a;
        const char *extent = emit_num(e, e->kernel.axis[axis].extent);
        const char *all = emit_splat_i64(e, extent, RED_LANES);
        emit_bind(s, axis, EMIT_PER_LANE, emit_op(e, "urem %s %s, %s", type, flat, all));
        flat = emit_op(e, "udiv %s %s, %s", type, flat, all);
    }
    emit_bind(s, st->np, EMIT_PER_LANE, flat);
}

void
stages_bind(struct stages *st, struct emit_scope *s, const char *j)
{
    struct emitter *e = st->e;
    if (st->nr == 0) // only the mask tells the one element
        return;
    uint32_t last = st->np + st->nr - 1;
    if (st->nr == 1) {
        emit_bind(s, last, EMIT_LANES, j);
    } else if (e->kernel.axis[last].extent % RED_LANES == 0) {
        const char *index[MAX_AXES];
        emit_decode(e, j, st->np, st->nr, index);
        for (uint32_t a = 0; a + 1 < st->nr; a++)
            emit_bind(s, st->np + a, EMIT_UNIFORM, index[a]);
        emit_bind(s, last, EMIT_LANES, index[st->nr - 1]);
    } else {
        bind_per_lane(st, s, j);
    }
}

// What one vector of a stage computes or reads (ELEM values only).
static void
mark_needed(const struct stages *st, uint32_t stage, bool *need)
{
    const struct kernel *k = &st->e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == OVER_R && k->acc.at[i].stage == stage)
            need[k->acc.at[i].value] = true;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ELEM && k->store.at[i].stage == stage)
            need[k->store.at[i].value] = true;
    for (uint32_t i = k->inst.n; i-- > 1;) {
        const struct inst *in = &k->inst.at[i];
        need[i] |= st->kept_at[i] >= 0 && in->stage == stage;
        need[i] &= in->level == LEVEL_ELEM;
        if (need[i] && (st->kept_at[i] < 0 || in->stage == stage))
            need[in->a] = need[in->b] = need[in->c] = true;
    }
    need[0] = false;
}

// Instructions that one vector of this stage computes (not those done once a row).
static uint32_t
stage_weight(const struct stages *st)
{
    uint32_t n = 0;
    bool *need = xcalloc(st->e->kernel.inst.n, sizeof *need);
    mark_needed(st, st->stage, need);
    for (uint32_t i = 1; i < st->e->kernel.inst.n; i++)
        n += need[i];
    xfree(need);
    return n;
}

// Blocks in flight: where a stage does little but load and join, four streams of loads fill memory
// better than one, and four chains hide the latency of a join of several instructions (maximum,
// argmax). Elsewhere a processor overlaps consecutive blocks as far as it can, and each copy of the
// body costs compile time.
static uint32_t
stage_width(const struct stages *st)
{
    if (st->e->sched->unroll < REDUCE_WIDE || st->nr > 1 || st->set.n > MAX_WIDE_ACCS)
        return 1;
    uint32_t limit = MAX_WIDE_WEIGHT;
    for (uint32_t i = 0; i < st->set.n; i++)
        if (st->set.acc[i]->op != OP_sum && st->set.acc[i]->op != OP_prod)
            limit = MAX_WIDE_SLOW_WEIGHT;
    return stage_weight(st) <= limit ? REDUCE_WIDE : 1;
}

static bool
is_stored_here(const struct stages *st, const struct store *x)
{
    return x->level == LEVEL_ELEM && x->stage == st->stage;
}

// All values before the first store, which may be to the place that another one's operand is at.
static void
store_with(struct stages *st, struct emit_scope *s, uint32_t flags)
{
    const struct kernel *k = &st->e->kernel;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (is_stored_here(st, &k->store.at[i]))
            emit_value(st->e, s, k->store.at[i].value);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (is_stored_here(st, &k->store.at[i]))
            emit_store(st->e, s, &k->store.at[i], flags);
}

// Those that may stream if the row is aligned, which is known only when running, ask in each turn
// of the loop: a second loop beside it would be text as long as the first.
void
stages_store(struct stages *st, struct emit_scope *s, uint32_t flags)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    if (!flags || !st->aligned) {
        store_with(st, s, flags);
        return;
    }
    for (uint32_t i = 0; i < k->store.n; i++) {
        if (!is_stored_here(st, &k->store.at[i]))
            continue;
        emit_value(e, s, k->store.at[i].value);
        emit_address(e, s, k->store.at[i].access);
    }
    const char *yes = emit_label(e, "aligned"), *no = emit_label(e, "unaligned");
    const char *end = emit_label(e, "stored");
    emit_branch(e, st->aligned, yes, no);
    emit_place(e, yes);
    store_with(st, s, flags);
    emit_jump(e, end);
    emit_place(e, no);
    store_with(st, s, 0);
    emit_endif(e, end);
}

// All sinks of the stage at the vector in scope s.
static void
sinks(struct stages *st, struct emit_scope *s, const struct emit_acc *in, struct emit_acc *out,
      uint32_t store_flags)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 0; i < st->set.n; i++) {
        if (st->set.acc[i]->stage != st->stage)
            continue;
        const char *x = emit_value(e, s, st->set.acc[i]->value);
        out[i] = reduce_step(e, &st->set, i, in[i], x, st->at, s->mask);
    }
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (st->kept_at[i] >= 0 && k->inst.at[i].stage == st->stage)
            emit_store_raw(e, k->inst.at[i].dtype, RED_LANES, scratch_at(st, i),
                           emit_value(e, s, i), NULL, 16);
    stages_store(st, s, store_flags);
}

// Memory is idle while a row's later stages work from the caches, and hardware does not see the
// next row (or group of rows) coming: the stage that computes most asks for what the first one will
// load then (or for what lies `further` elements on).
static void
prefetch_next_row(struct stages *st, struct emit_scope *s, const char *further)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->stage || in->level != LEVEL_ELEM || in->a)
            continue;
        const struct access *x = &k->access.at[in->aux];
        int64_t rows = e->sched->edge[0] ? e->sched->edge[0] : 1;
        int64_t row = rows * x->stride[st->np - 1] * dtype_size(x->dtype);
        if (!row || x->stride[k->naxis - 1] != 1)
            continue;
        const char *there = emit_ptr(e, emit_address(e, s, in->aux), emit_num(e, row), "i8");
        if (further)
            there = emit_ptr(e, there, further, emit_memory_type(e, x->dtype, 1));
        emit_prefetch(e, there, e->sched->prefetch);
    }
}

// Where no stage does most of the work, each asks for a part of the next row: the first two, of
// blocks four at once, for the first and for the second of the four; the last, two vectors a turn,
// for a vector of the other two.
static void
prefetch_spread(struct stages *st, struct emit_scope *s, const char *j)
{
    struct emitter *e = st->e;
    uint32_t strand = st->strand++;
    if (st->stage < 2 && strand == st->stage)
        prefetch_next_row(st, s, NULL);
    if (st->stage < 2 || strand % 2)
        return;
    const char *half = emit_op(e, "lshr i64 %s, 1", j);
    const char *pairs = emit_op(e, "and i64 %s, %d", half, -2 * RED_BLOCK);
    const char *to = emit_add(e, emit_add(e, half, pairs), emit_text(e, "%d", 2 * RED_BLOCK));
    prefetch_next_row(st, s, emit_op(e, "sub i64 %s, %s", to, j));
}

// Of a long row: hardware follows it within a page, and not far enough.
static void
prefetch_along(struct stages *st, struct emit_scope *s)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->stage > st->stage || in->level != LEVEL_ELEM || in->a ||
            k->access.at[in->aux].stride[k->naxis - 1] != 1)
            continue;
        for (uint32_t at = 0; at < RED_LANES * dtype_size(in->dtype); at += 64)
            emit_prefetch(e, emit_ptr(e, emit_address(e, s, in->aux),
                                      emit_text(e, "%u", st->ahead * 64 + at), "i8"), 2);
    }
}

// Of what a stage is the first to read: where memory is read for the first time, MERGED_AHEAD bytes
// on, across the ends of rows.
static void
merged_requests(struct stages *st, struct emit_scope *s, const bool *first)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (!first[i] || in->op != OP_load || in->a)
            continue;
        const struct access *x = &k->access.at[in->aux];
        if (!x->stride[st->np - 1] || x->stride[k->naxis - 1] != 1)
            continue;
        for (uint32_t at = 0; at < RED_LANES * dtype_size(in->dtype); at += 64)
            emit_prefetch(e, emit_ptr(e, emit_address(e, s, in->aux),
                                      emit_text(e, "%u", MERGED_AHEAD + at), "i8"), 2);
    }
}

static void
vector_at(struct stages *st, const char *j, const char *mask, const struct emit_acc *in,
          struct emit_acc *out, uint32_t store_flags)
{
    struct emit_scope s = emit_scope(st->e, st->row, RED_LANES);
    s.mask = mask;
    st->at = j;
    stages_bind(st, &s, j);
    if (st->spread)
        prefetch_spread(st, &s, j);
    else if (st->prefetch_stage && st->stage == st->prefetch_stage && !mask)
        prefetch_next_row(st, &s, NULL);
    if (st->ahead && !mask)
        prefetch_along(st, &s);
    sinks(st, &s, in, out, store_flags);
}

static void
point(struct emitter *e, const char *j, const char *mask, const struct emit_acc *in,
      struct emit_acc *out, void *user)
{
    (void)e;
    vector_at(user, j, mask, in, out, 0);
}

// ---- stages

// Fills in st->set and st->acc with the accumulators of stages (bit s: stage s).
static void
collect_accs(struct stages *st, uint32_t stages)
{
    const struct kernel *k = &st->e->kernel;
    st->set = (struct reduce_set){0};
    for (uint32_t i = 0; i < k->acc.n; i++) {
        if (k->acc.at[i].scope != OVER_R || !(stages >> k->acc.at[i].stage & 1))
            continue;
        st->acc[st->set.n] = i;
        reduce_add(&st->set, &k->acc.at[i]);
    }
}

// The same for one stage; true when it has something to do per element.
static bool
collect(struct stages *st, uint32_t stage)
{
    const struct kernel *k = &st->e->kernel;
    st->stage = stage;
    st->strand = 0;
    collect_accs(st, 1u << stage);
    bool work = st->set.n > 0;
    for (uint32_t i = 0; i < k->store.n; i++)
        work |= k->store.at[i].level == LEVEL_ELEM && k->store.at[i].stage == stage;
    for (uint32_t i = 1; i < k->inst.n; i++)
        work |= st->kept_at[i] >= 0 && k->inst.at[i].stage == stage;
    return work;
}

// Three stages of which none does most of the work: two so light that their loops take four blocks
// at once, and one without accumulators; in rows of whole groups of such blocks.
static bool
can_spread(struct stages *st)
{
    if (st->e->kernel.nstage != 3 || st->nr != 1 || !(st->extent & ROW_NO_REST))
        return false;
    for (uint32_t s = 0; s < 2; s++)
        if (!collect(st, s) || !st->set.n || stage_width(st) == 1 || reduce_any_order(&st->set))
            return false;
    return collect(st, 2) && !st->set.n;
}

void
stages_function(struct stages *st)
{
    st->n = emit_num(st->e, st->points);
    st->spread = st->prefetch_stage && can_spread(st);
}

// A stage without accumulators. Unrolling gains nothing: the vectors are independent.
static void
run_plain(struct stages *st, const char *from, const char *to, uint32_t store_flags)
{
    struct emitter *e = st->e;
    bool tail = !(st->extent & ROW_NO_TAIL);
    const char *whole = tail ? emit_op(e, "and i64 %s, %d", to, -RED_LANES) : to;
    uint32_t turn = st->spread ? 2 : 1;
    struct emit_loop l;
    emit_loop_open(e, &l, from, whole, emit_text(e, "%u", turn * RED_LANES));
    emit_loop_body(e, &l);
    for (uint32_t v = 0; v < turn; v++) {
        const char *j = v ? emit_add(e, l.index, emit_text(e, "%u", v * RED_LANES)) : l.index;
        vector_at(st, j, NULL, NULL, NULL, store_flags);
    }
    emit_loop_close(e, &l, NULL);
    if (!tail)
        return;
    const char *end = emit_if(e, emit_op(e, "icmp slt i64 %s, %s", l.index, to));
    const char *left = emit_op(e, "sub i64 %s, %s", to, l.index);
    vector_at(st, l.index, emit_tail_mask(e, RED_LANES, left), NULL, NULL, 0);
    emit_endif(e, end);
}

const char *
stages_aligned(struct stages *st, struct emit_scope *row, uint32_t stage, const char *from)
{
    struct emitter *e = st->e;
    struct emit_scope s = emit_scope(e, row, RED_LANES);
    stages_bind(st, &s, from);
    const char *bits = "0";
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct store *x = &e->kernel.store.at[i];
        if (x->level != LEVEL_ELEM || x->stage != stage)
            continue;
        const char *address = emit_address(e, &s, x->access);
        const char *number = emit_op(e, "ptrtoint ptr %s to i64", address);
        bits = emit_op(e, "or i64 %s, %s", bits, number);
    }
    return emit_op(e, "icmp eq i64 %s, 0", emit_op(e, "and i64 %s, 127", bits));
}

void
stages_run(struct stages *st, struct emit_scope *row, uint32_t stage, const char *from,
           const char *to, struct emit_acc *out)
{
    if (!collect(st, stage))
        return;
    st->row = row;
    if (st->set.n) {
        struct reduce_range range = {from, to, st->extent, st->blocks, stage_width(st)};
        reduce_loop(st->e, &st->set, &range, point, st, out);
    } else if (st->e->sched->streaming_store) {
        st->aligned = stages_aligned(st, row, stage, from);
        run_plain(st, from, to, EMIT_NONTEMPORAL);
        st->aligned = NULL;
    } else {
        run_plain(st, from, to, 0);
    }
}

// ---- stages of several rows in one loop

// Stages of one loop, the later first: what it reads of a kept value is gone when the earlier one
// has kept the same element of the next row.
static void
merged_point(struct emitter *e, const char *j, const char *mask, const struct emit_acc *in,
             struct emit_acc *out, void *user)
{
    const struct merge *m = user;
    struct stages *st = m->st;
    st->at = j;
    for (uint32_t s = e->kernel.nstage; s-- > 0;) {
        if (!(m->stages >> s & 1))
            continue;
        struct emit_scope at = emit_scope(e, m->row[s], RED_LANES);
        at.mask = mask;
        st->stage = s;
        stages_bind(st, &at, j);
        if (!mask)
            merged_requests(st, &at, m->first[s]);
        sinks(st, &at, in, out, mask ? 0 : m->store_flags);
    }
}

void
stages_merged(struct merge *m, struct emit_acc *out)
{
    struct stages *st = m->st;
    const struct kernel *k = &st->e->kernel;
    bool *earlier = arena_alloc(&st->e->mem, k->inst.n * sizeof *earlier);
    for (uint32_t s = 0; s < k->nstage; s++) {
        bool *need = arena_alloc(&st->e->mem, k->inst.n * sizeof *need);
        mark_needed(st, s, need);
        for (uint32_t i = 0; i < k->inst.n; i++) {
            need[i] &= !earlier[i];
            earlier[i] |= need[i];
        }
        m->first[s] = need;
    }
    collect_accs(st, m->stages);
    struct reduce_range range = {"0", st->n, st->extent, st->blocks, 1};
    reduce_loop(st->e, &st->set, &range, merged_point, m, out);
}

void
stages_unrolled(struct stages *st, struct emit_scope *vector, uint32_t vectors, uint32_t stage,
                struct emit_acc *out)
{
    if (!collect(st, stage))
        return;
    uint32_t n = st->set.n;
    bool strands = n && vectors > REDUCE_WIDE && reduce_any_order(&st->set);
    struct emit_acc p[REDUCE_MAX * REDUCE_WIDE], next[REDUCE_MAX];
    reduce_wide_identity(st->e, &st->set, p);
    for (uint32_t v = 0; v < vectors; v++) {
        struct emit_acc *own = p + (strands ? v % REDUCE_WIDE * n : 0);
        st->at = emit_text(st->e, "%u", v * RED_LANES);
        sinks(st, &vector[v], own, next, 0);
        memcpy(own, next, n * sizeof *own);
    }
    if (strands)
        reduce_join_strands(st->e, &st->set, p, out);
    else
        memcpy(out, p, n * sizeof *out);
}

// ---- a point of P, and the end

static void
set_result(struct emitter *e, struct emit_scope *s, uint32_t acc, const char *v)
{
    for (uint32_t i = 1; i < e->kernel.inst.n; i++)
        if (e->kernel.inst.at[i].op == OP_result && e->kernel.inst.at[i].aux == acc)
            emit_set(s, i, v);
}

void
stages_result(struct stages *st, struct emit_scope *row, uint32_t acc, const char *v)
{
    set_result(st->e, row, acc, v);
}

// Bytes of shared memory before the values of accumulator acc (over P).
static int64_t
shared_offset(const struct stages *st, uint32_t acc)
{
    const struct kernel *k = &st->e->kernel;
    int64_t at = st->shared_base, points = kernel_points(k, AXIS_P);
    for (uint32_t i = 0; i < acc; i++)
        if (k->acc.at[i].scope == OVER_P)
            at += (points * dtype_size(k->acc.at[i].dtype) + 63) & ~(int64_t)63;
    return at;
}

static const char *
shared_at(struct stages *st, uint32_t acc, const char *index)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    const char *base = emit_ptr(e, emit_shared(e), emit_num(e, shared_offset(st, acc)), "i8");
    return emit_ptr(e, base, index, emit_memory_type(e, k->acc.at[acc].dtype, 1));
}

// Computes what a stage needs of the row; each stage may have a row of its own.
static void
hoist_for_stage(struct stages *st, struct emit_scope *row, uint32_t stage)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    uint32_t n = 0;
    uint32_t *inst =
        arena_alloc(&e->mem, (k->acc.n + k->store.n + k->inst.n) * sizeof *inst);
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage == stage)
            inst[n++] = k->acc.at[i].value;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (st->kept_at[i] >= 0 && k->inst.at[i].stage == stage)
            inst[n++] = i;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == stage)
            inst[n++] = k->store.at[i].value;
    emit_hoist(e, row, inst, n);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == stage)
            emit_address(e, row, k->store.at[i].access);
}

void
stages_row(struct stages *st, struct emit_scope *row, uint32_t stage, const char *index)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    hoist_for_stage(st, row, stage);
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct store *x = &k->store.at[i];
        if (x->level == LEVEL_ROW && x->stage == stage)
            emit_store(e, row, x, 0);
    }
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *acc = &k->acc.at[i];
        if (acc->scope == OVER_P && acc->stage == stage)
            emit_store_raw(e, acc->dtype, row->lanes, shared_at(st, i, index),
                           emit_value(e, row, acc->value), row->mask, dtype_size(acc->dtype));
    }
}

struct finish_point {
    struct stages *st;
    struct reduce_set set;
    uint32_t acc;
};

static void
point_of_shared(struct emitter *e, const char *j, const char *mask, const struct emit_acc *in,
                struct emit_acc *out, void *user)
{
    struct finish_point *f = user;
    uint8_t dtype = e->kernel.acc.at[f->acc].dtype;
    const char *p = shared_at(f->st, f->acc, j);
    const char *x = emit_load_raw(e, dtype, RED_LANES, p, mask, dtype_size(dtype));
    out[0] = reduce_step(e, &f->set, 0, in[0], x, j, mask);
}

void
stages_finish(struct stages *st)
{
    struct emitter *e = st->e;
    const struct kernel *k = &e->kernel;
    int64_t points = kernel_points(k, AXIS_P);
    struct reduce_range range = {.from = "0", .to = emit_num(e, points), .width = 1};
    struct emit_scope once = emit_scope(e, NULL, 1);
    for (uint32_t i = 0; i < k->acc.n; i++) {
        if (k->acc.at[i].scope != OVER_P)
            continue;
        struct finish_point f = {.st = st, .acc = i};
        struct emit_acc p;
        reduce_add(&f.set, &k->acc.at[i]);
        reduce_identity(e, &f.set, &p);
        if (points)
            reduce_loop(e, &f.set, &range, point_of_shared, &f, &p);
        set_result(e, &once, i, reduce_lanes(e, &f.set, 0, p));
    }
    emit_hoist(e, &once, NULL, UINT32_MAX);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ONCE)
            emit_store(e, &once, &k->store.at[i], 0);
}

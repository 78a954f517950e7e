// split.c: the split class on CPUs: few rows, long R, and R itself divided among threads.
//
// A row is cut at multiples of schedule.chunk, a power of two of blocks, so each part is a complete
// subtree of the reduction's binary counter (the last one may be shorter, and is what the counter
// would have left in its low slots). A task unit is one part of one row: it leaves its 16 lanes of
// each accumulator in args->shared. kernel_finish pushes the parts of a row as if they were blocks,
// pops, joins the lanes, and does what belongs to the row. So the bits are those of the row class.
#include "codegen/cpu/stage.h"

struct split {
    struct stages st;
    const char *parts; // of a row
    const char *chunk; // elements of a part
    int64_t nparts, units;
};

static void
bind_row(struct split *p, struct emit_scope *row, const char *flat)
{
    const char *index[MAX_AXES] = {0};
    emit_decode(p->st.e, flat, 0, p->st.np, index);
    for (uint32_t a = 0; a < p->st.np; a++)
        emit_bind(row, a, EMIT_UNIFORM, index[a]);
}

static void
function(struct split *p, const char *name)
{
    struct emitter *e = p->st.e;
    emit_function(e, name);
    stages_function(&p->st);
    p->parts = emit_num(e, p->nparts);
    p->chunk = emit_num(e, e->sched->chunk);
}

// Where unit u leaves (field f of) accumulator i of the set.
static const char *
part_at(struct split *p, uint32_t i, bool index, const char *u)
{
    struct emitter *e = p->st.e;
    const struct reduce_set *set = &p->st.set;
    int64_t at = 0;
    for (uint32_t x = 0; x <= i; x++) {
        int64_t value = p->units * RED_LANES * dtype_size(set->acc[x]->dtype);
        int64_t both = value + acc_is_arg(set->acc[x]) * p->units * RED_LANES * 8;
        at += x < i ? both : index * value;
    }
    uint8_t dtype = index ? DT_i64 : set->acc[i]->dtype;
    const char *base = emit_ptr(e, emit_shared(e), emit_num(e, at), "i8");
    return emit_ptr(e, base, u, emit_memory_type(e, dtype, RED_LANES));
}

// One part of one row.
static void
kernel(struct split *p)
{
    struct emitter *e = p->st.e;
    function(p, "kernel");
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    const char *r = emit_op(e, "udiv i64 %s, %s", l.index, p->parts);
    const char *first = emit_op(e, "mul i64 %s, %s", r, p->parts);
    const char *part = emit_op(e, "sub i64 %s, %s", l.index, first);
    const char *from = emit_op(e, "mul i64 %s, %s", part, p->chunk);
    const char *to = emit_min(e, emit_add(e, from, p->chunk), p->st.n);
    struct emit_scope row = emit_scope(e, NULL, 1);
    bind_row(p, &row, r);
    emit_hoist(e, &row, NULL, UINT32_MAX);
    struct emit_acc acc[REDUCE_MAX];
    stages_run(&p->st, &row, 0, from, to, acc);
    for (uint32_t i = 0; i < p->st.set.n; i++) {
        uint8_t dtype = p->st.set.acc[i]->dtype;
        emit_store_raw(e, dtype, RED_LANES, part_at(p, i, false, l.index), acc[i].value, NULL, 16);
        if (acc[i].index)
            emit_store_raw(e, DT_i64, RED_LANES, part_at(p, i, true, l.index), acc[i].index, NULL,
                           16);
    }
    emit_loop_close(e, &l, NULL);
    emit_function_end(e);
}

// The results of row r, from its parts.
static void
join_parts(struct split *p, struct emit_scope *row, const char *r)
{
    struct emitter *e = p->st.e;
    struct reduce_set *set = &p->st.set;
    struct emit_acc acc[REDUCE_MAX];
    const char *first = emit_op(e, "mul i64 %s, %s", r, p->parts);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", p->parts, "1");
    emit_loop_body(e, &l);
    const char *u = emit_add(e, first, l.index);
    for (uint32_t i = 0; i < set->n; i++) {
        acc[i] = (struct emit_acc){0};
        acc[i].value =
            emit_load_raw(e, set->acc[i]->dtype, RED_LANES, part_at(p, i, false, u), NULL, 16);
        if (acc_is_arg(set->acc[i]))
            acc[i].index = emit_load_raw(e, DT_i64, RED_LANES, part_at(p, i, true, u), NULL, 16);
    }
    reduce_push(e, set, 0, emit_add(e, l.index, "1"), acc);
    emit_loop_close(e, &l, NULL);
    reduce_pop(e, set, p->parts, acc);
    for (uint32_t i = 0; i < set->n; i++)
        stages_result(&p->st, row, p->st.acc[i], reduce_lanes(e, set, i, acc[i]));
}

static void
finish(struct split *p)
{
    struct emitter *e = p->st.e;
    function(p, "kernel_finish");
    reduce_slots(e, &p->st.set);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", emit_num(e, kernel_points(&e->kernel, AXIS_P)), "1");
    emit_loop_body(e, &l);
    struct emit_scope row = emit_scope(e, NULL, 1);
    bind_row(p, &row, l.index);
    stages_row(&p->st, &row, 0, l.index);
    join_parts(p, &row, l.index);
    for (uint32_t s = 1; s < e->kernel.nstage; s++)
        stages_row(&p->st, &row, s, l.index);
    emit_loop_close(e, &l, NULL);
    stages_finish(&p->st);
    emit_function_end(e);
}

bool
cpu_split(struct emitter *e)
{
    struct split p = {0};
    stages_begin(&p.st, e);
    p.nparts = (p.st.points + e->sched->chunk - 1) / e->sched->chunk;
    p.units = p.nparts * kernel_points(&e->kernel, AXIS_P);
    p.st.shared_base = split_part_bytes(&e->kernel, p.units);
    kernel(&p);
    finish(&p);
    return true;
}

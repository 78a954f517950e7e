// sort.c: the sort class on CPUs: lines put in order by the runtime, between a prologue that makes
// them and an epilogue over what comes back.
//
// A task unit is a block of lines beside each other (passes/schedule_sort.h). The prologue leaves
// them in scratch, the results are read from there; but lines that are plain loads are read where
// they lie, and results that are stored as they are go to their places. The order itself is the
// runtime's function fusec_order: what it does is no matter of the kernel's text, only what it is
// asked for, the words of struct order_call.
//
// Both loops have vectors along the line, masked at its end, or across the lines of the block.
#include "codegen/cpu/emit.h"

#include "ir/order.h"
#include "passes/schedule_sort.h"

struct sort {
    struct emitter *e;
    uint32_t j, r;          // axes
    int64_t block;          // the axis of the block's lines; -1: none
    struct sort_scratch scratch;
    const char *first, *lines; // of the block: number of its first line, and how many
};

// ---- the loops of prologue and epilogue

typedef void at_vector(struct sort *s, struct emit_scope *v, const char *line, const char *element);

static void
bind_line(struct sort *s, struct emit_scope *line, enum emit_how how, const char *number)
{
    if (s->block >= 0)
        emit_bind(line, (uint32_t)s->block, how, emit_add(s->e, s->first, number));
}

static void
vector_along(struct sort *s, struct emit_scope *line, const char *number, uint32_t axis,
             const char *at, const char *left, at_vector *body)
{
    struct emit_scope v = emit_scope(s->e, line, s->e->sched->vec);
    emit_bind(&v, axis, EMIT_LANES, at);
    v.mask = left ? emit_tail_mask(s->e, v.lanes, left) : NULL;
    body(s, &v, number, at);
}

// Line by line: whole vectors, then what is left under a mask.
static void
along_lines(struct sort *s, struct emit_scope *block, uint32_t axis, at_vector *body)
{
    struct emitter *e = s->e;
    const char *n = emit_extent(e, axis), *vec = emit_text(e, "%u", e->sched->vec);
    const char *whole = emit_op(e, "and i64 %s, -%s", n, vec);
    struct emit_loop lines, l;
    emit_loop_open(e, &lines, "0", s->lines, "1");
    emit_loop_body(e, &lines);
    struct emit_scope line = emit_scope(e, block, 1);
    bind_line(s, &line, EMIT_UNIFORM, lines.index);
    emit_loop_open(e, &l, "0", whole, vec);
    emit_loop_body(e, &l);
    vector_along(s, &line, lines.index, axis, l.index, NULL, body);
    emit_loop_close(e, &l, NULL);
    const char *left = emit_op(e, "sub i64 %s, %s", n, whole);
    const char *end = emit_if(e, emit_op(e, "icmp sgt i64 %s, 0", left));
    vector_along(s, &line, lines.index, axis, whole, left, body);
    emit_endif(e, end);
    emit_loop_close(e, &lines, NULL);
}

// Element by element, all lines of the block at once.
static void
across_lines(struct sort *s, struct emit_scope *block, uint32_t axis, at_vector *body)
{
    struct emitter *e = s->e;
    const char *mask = emit_tail_mask(e, e->sched->vec, s->lines);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", emit_extent(e, axis), "1");
    emit_loop_body(e, &l);
    struct emit_scope v = emit_scope(e, block, e->sched->vec);
    bind_line(s, &v, EMIT_LANES, "0");
    emit_bind(&v, axis, EMIT_UNIFORM, l.index);
    v.mask = mask;
    body(s, &v, "0", l.index);
    emit_loop_close(e, &l, NULL);
}

static void
each_vector(struct sort *s, struct emit_scope *block, uint32_t axis, at_vector *body)
{
    (s->e->sched->transpose ? across_lines : along_lines)(s, block, axis, body);
}

static const char *
scratch_at(struct sort *s, const struct sort_lines *x, uint8_t dtype, const char *line,
           const char *element)
{
    struct emitter *e = s->e;
    const char *base = emit_ptr(e, "%scratch", emit_num(e, x->at), "i8");
    const char *at = emit_add(e, emit_mul(e, line, emit_num(e, x->line)),
                              emit_mul(e, element, emit_num(e, x->element)));
    return emit_ptr(e, base, at, emit_memory_type(e, dtype, 1));
}

// Lines in scratch are padded to whole vectors: no mask.
static void
make_elements(struct sort *s, struct emit_scope *v, const char *line, const char *element)
{
    const struct acc *acc = &s->e->kernel.acc.at[0];
    const char *value = emit_value(s->e, v, acc->value);
    const char *to = scratch_at(s, &s->scratch.from, acc->dtype, line, element);
    emit_store_raw(s->e, acc->dtype, v->lanes, to, value, NULL, dtype_size(acc->dtype));
}

static bool
goes_directly(const struct sort *s, const struct store *st)
{
    const struct kernel *k = &s->e->kernel;
    return st == sort_store(k, s->e->sched, SORT_VALUES) ||
           st == sort_store(k, s->e->sched, SORT_POSITIONS);
}

static void
use_results(struct sort *s, struct emit_scope *v, const char *line, const char *element)
{
    const struct kernel *k = &s->e->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_result)
            continue;
        bool position = op_gives_position(k->acc.at[in->aux].op);
        const struct sort_lines *x =
            &s->scratch.result[position ? SORT_POSITIONS : SORT_VALUES];
        if (!x->used)
            continue;
        const char *from = scratch_at(s, x, in->dtype, line, element);
        emit_set(v, i, emit_load_raw(s->e, in->dtype, v->lanes, from, NULL,
                                     dtype_size(in->dtype)));
    }
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct store *st = &k->store.at[i];
        if (!goes_directly(s, st))
            emit_store(s->e, v, st, 0);
    }
}

// ---- the call

struct place {
    const char *at, *line, *element;
};

static struct place
place_in_scratch(struct sort *s, const struct sort_lines *x)
{
    struct emitter *e = s->e;
    return (struct place){emit_ptr(e, "%scratch", emit_num(e, x->at), "i8"),
                          emit_num(e, x->line), emit_num(e, x->element)};
}

// Where an access finds the first element of the block's first line, and what lies beside it.
static struct place
place_in_memory(struct sort *s, struct emit_scope *block, uint32_t access, uint32_t axis)
{
    struct emitter *e = s->e;
    const struct access *a = &e->kernel.access.at[access];
    struct emit_scope first = emit_scope(e, block, 1);
    bind_line(s, &first, EMIT_UNIFORM, "0");
    emit_bind(&first, axis, EMIT_UNIFORM, "0");
    return (struct place){emit_address(e, &first, access),
                          s->block >= 0 ? emit_stride(e, a->stride[s->block]) : "0",
                          emit_stride(e, a->stride[axis])};
}

static void
put_word(struct emitter *e, const char *call, size_t offset, const char *type, const char *value)
{
    const char *at = emit_op(e, "getelementptr i8, ptr %s, i64 %zu", call, offset);
    emit_line(e, "store %s %s, ptr %s, align 8", type, value, at);
}

static void
put_place(struct emitter *e, const char *call, size_t offset, struct place p)
{
    put_word(e, call, offset, "ptr", p.at);
    put_word(e, call, offset + 8, "i64", p.line);
    put_word(e, call, offset + 16, "i64", p.element);
}
_Static_assert(offsetof(struct order_call, from_line) == 8 &&
                   offsetof(struct order_call, from_element) == 16 &&
                   offsetof(struct order_call, value_element) ==
                       offsetof(struct order_call, value) + 16 &&
                   offsetof(struct order_call, index_element) ==
                       offsetof(struct order_call, index) + 16,
               "put_place knows the order of the words");

static struct place
place_of_result(struct sort *s, struct emit_scope *block, enum sort_result kind)
{
    const struct kernel *k = &s->e->kernel;
    const struct store *st = sort_store(k, s->e->sched, kind);
    if (!sort_wants(k, kind))
        return (struct place){"null", "0", "0"};
    return st ? place_in_memory(s, block, st->access, s->j)
              : place_in_scratch(s, &s->scratch.result[kind]);
}

// The words of struct order_call but for where to work.
static const char *
make_call(struct sort *s, struct emit_scope *block)
{
    struct emitter *e = s->e;
    const struct kernel *k = &e->kernel;
    const struct acc *acc = &k->acc.at[0];
    const char *call = emit_entry_op(e, "alloca [%d x i64], align 16", ORDER_SPLIT_WORDS);
    bool memory = e->sched->pack & SORT_FROM_MEMORY;
    put_place(e, call, offsetof(struct order_call, from),
              memory ? place_in_memory(s, block, k->inst.at[acc->value].aux, s->r)
                     : place_in_scratch(s, &s->scratch.from));
    put_place(e, call, offsetof(struct order_call, value), place_of_result(s, block, SORT_VALUES));
    put_place(e, call, offsetof(struct order_call, index),
              place_of_result(s, block, SORT_POSITIONS));
    put_word(e, call, offsetof(struct order_call, lines), "i64", s->lines);
    put_word(e, call, offsetof(struct order_call, n), "i64", emit_extent(e, s->r));
    put_word(e, call, offsetof(struct order_call, k), "i64", emit_extent(e, s->j));
    put_word(e, call, offsetof(struct order_call, dtype), "i64",
             emit_text(e, "%u", (unsigned)acc->dtype));
    put_word(e, call, offsetof(struct order_call, descending), "i64",
             acc->descending ? "1" : "0");
    return call;
}

static void
call_order(struct sort *s, struct emit_scope *block)
{
    struct emitter *e = s->e;
    const char *call = make_call(s, block);
    put_word(e, call, offsetof(struct order_call, work), "ptr",
             emit_ptr(e, "%scratch", emit_num(e, s->scratch.work), "i8"));
    emit_line(e, "call void @fusec_order(ptr %s)", call);
}

// ---- the kernel

static void
bind_block(struct sort *s, struct emit_scope *block, const char *unit)
{
    struct emitter *e = s->e;
    const char *index[MAX_AXES] = {0};
    s->first = "0";
    s->lines = "1";
    if (s->block < 0)
        return;
    int64_t tile = e->sched->tile[SORT_TILE_LINES];
    const char *beside = emit_extent(e, (uint32_t)s->block), *size = emit_num(e, tile);
    const char *blocks = emit_named(e, "blocks", ceil_div(e->kernel.axis[s->block].extent, tile));
    const char *outer = emit_op(e, "udiv i64 %s, %s", unit, blocks);
    const char *inner = emit_op(e, "sub i64 %s, %s", unit, emit_mul(e, outer, blocks));
    s->first = emit_mul(e, inner, size);
    s->lines = emit_min(e, size, emit_op(e, "sub i64 %s, %s", beside, s->first));
    emit_decode(e, outer, 0, (uint32_t)s->block, index);
    for (uint32_t a = 0; a < s->block; a++)
        emit_bind(block, a, EMIT_UNIFORM, index[a]);
}

static bool
has_epilogue(const struct sort *s)
{
    const struct kernel *k = &s->e->kernel;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (!goes_directly(s, &k->store.at[i]))
            return true;
    return false;
}

// One phase of a line that threads divide.
static void
split_function(struct sort *s, const char *name, bool second)
{
    struct emitter *e = s->e;
    emit_function(e, name);
    struct emit_scope block = emit_scope(e, NULL, 1);
    bind_block(s, &block, "0");
    const char *call = make_call(s, &block);
    put_word(e, call, offsetof(struct order_call, work), "ptr", "null");
    put_word(e, call, offsetof(struct order_split, shared), "ptr", emit_shared(e));
    put_word(e, call, offsetof(struct order_split, parts), "i64", emit_num(e, e->sched->units));
    put_word(e, call, offsetof(struct order_split, second), "i64", second ? "1" : "0");
    struct emit_loop units;
    emit_loop_open(e, &units, "%begin", "%end", "1");
    emit_loop_body(e, &units);
    put_word(e, call, offsetof(struct order_split, unit), "i64", units.index);
    emit_line(e, "call void @fusec_order_split(ptr %s)", call);
    emit_loop_close(e, &units, NULL);
    emit_function_end(e);
}

bool
cpu_sort(struct emitter *e)
{
    struct sort s = {.e = e, .j = e->kernel.naxis - 2u, .r = e->kernel.naxis - 1u,
                     .block = sort_block_axis(&e->kernel),
                     .scratch = sort_scratch(&e->kernel, e->sched)};
    if (e->sched->finish_units) {
        str_add(e->text, "declare void @fusec_order_split(ptr)\n");
        split_function(&s, "kernel", false);
        split_function(&s, "kernel_finish", true);
        return true;
    }
    str_add(e->text, "declare void @fusec_order(ptr)\n");
    emit_function(e, "kernel");
    struct emit_loop units;
    emit_loop_open(e, &units, "%begin", "%end", "1");
    emit_loop_body(e, &units);
    struct emit_scope block = emit_scope(e, NULL, 1);
    bind_block(&s, &block, units.index);
    emit_hoist(e, &block, NULL, UINT32_MAX);
    if (s.scratch.from.used)
        each_vector(&s, &block, s.r, make_elements);
    call_order(&s, &block);
    if (has_epilogue(&s))
        each_vector(&s, &block, s.j, use_results);
    emit_loop_close(e, &units, NULL);
    emit_function_end(e);
    return true;
}

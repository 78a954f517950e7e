// interp_kernel.c: runs a fused kernel point by point, on scalars: what generated code must equal,
// bit for bit, and where all figures of traffic come from.
//
// The loops are those at the top of kernel.h, for every class: ONCE instructions; for each point of
// P, stage by stage, the ROW instructions, then for each point of R the ELEM instructions that the
// sinks of the stage need (computed again where an earlier stage had them), the accumulators' steps
// and the stores; at last the accumulators over P and the instructions that were waiting for them.
// Instructions that no sink needs are not executed, so they count nothing.
//
// A reduction keeps 16 lanes, and for each lane a stack of joined blocks: the binary counter of
// kernel.h. A contraction is the exception: one chain of fused multiply-adds. A scan moves on when
// its result is computed, once a point of R. An order's line is collected and put in order at j =
// 0, and every j finds its element there. A scatter has loops of its own, for all places of its
// axis at once.
//
// Traffic: every load and store is looked up in the buffer's table of last touches, which holds the
// bytes of traffic counted when an element was touched last. Less than half of the cache ago: it is
// still there, and costs nothing.
#include "ir/interp.h"

#include "ir/base/check.h"
#include "ir/expand.h"
#include "ir/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TREE_DEPTH = 64 };
#define MAX_SPAN ((int64_t)1 << 28) // elements of a buffer of which touches are remembered

struct partial {
    uint64_t value;
    int64_t index; // argmax, argmin: which element
};

struct reduction {
    const struct acc *acc;
    bool live;
    int64_t count, blocks;
    uint32_t depth;
    struct partial lane[RED_LANES];
    struct partial tree[TREE_DEPTH][RED_LANES];
    uint64_t result;
    VEC(struct order_item) line; // of an order
};

struct scan { // under way, see kernel.h
    int64_t count;
    uint64_t part[SCAN_STEPS]; // what 2^k elements come to, before those of bit k
    uint64_t vectors, blocks, spans;
};

struct step_list {
    VEC(uint32_t) inst;
    bool loops; // the stage goes through R
};

struct run {
    struct kernel k; // expanded
    void *const *buffer;
    int64_t **touched; // per buffer and element of its span; NULL: nothing is counted
    int64_t l2, moved;
    struct kernel_counts count;
    int64_t *per_buffer;
    uint64_t *value;   // per instruction
    bool *live, *late; // per instruction
    struct reduction *red;
    struct scan *scan; // per accumulator
    struct step_list once, after, row[256], elem[256];
    int64_t axis[MAX_AXES];
    uint32_t bad_index; // origin of a load whose index was out of range, + 1
    struct diag *d;
    bool failed;
};

// ---- reductions

static uint64_t
join_values(const struct acc *a, uint64_t x, uint64_t y)
{
    return eval_primitive(op_table[a->op].combine, a->dtype, a->dtype, x, y, 0);
}

static bool
is_nan(uint8_t dtype, uint64_t bits)
{
    return dtype_is_float(dtype) && isnan(scalar_to_double(dtype, bits));
}

// The first NaN, else the first extreme.
static struct partial
join_first(const struct acc *a, struct partial x, struct partial y)
{
    bool nx = is_nan(a->dtype, x.value), ny = is_nan(a->dtype, y.value);
    struct partial first = x.index <= y.index ? x : y;
    if (nx || ny)
        return nx && ny ? first : nx ? x : y;
    bool largest = op_table[a->op].ident == ID_LOWEST;
    if (order_less(a->dtype, x.value, y.value))
        return largest ? y : x;
    if (order_less(a->dtype, y.value, x.value))
        return largest ? x : y;
    return first;
}

static struct partial
join(const struct acc *a, struct partial older, struct partial newer)
{
    if (!op_table[a->op].combine)
        return join_first(a, older, newer);
    return (struct partial){join_values(a, older.value, newer.value), 0};
}

static void
reset_lanes(struct reduction *r)
{
    for (uint32_t l = 0; l < RED_LANES; l++)
        r->lane[l] = (struct partial){op_identity_bits(r->acc->op, r->acc->dtype), INT64_MAX};
}

static void
reduction_start(struct reduction *r)
{
    r->count = r->blocks = 0;
    r->depth = 0;
    r->result = 0;
    reset_lanes(r);
}

static void
close_block(struct reduction *r)
{
    CHECK(r->depth < TREE_DEPTH, "a reduction of more than 2^64 blocks");
    memcpy(r->tree[r->depth++], r->lane, sizeof r->lane);
    for (int64_t n = ++r->blocks; !(n & 1); n >>= 1) {
        r->depth--;
        for (uint32_t l = 0; l < RED_LANES; l++)
            r->tree[r->depth - 1][l] =
                join(r->acc, r->tree[r->depth - 1][l], r->tree[r->depth][l]);
    }
    reset_lanes(r);
}

static void
reduction_take(struct reduction *r, uint64_t x)
{
    struct partial *lane = &r->lane[r->count % RED_LANES];
    *lane = join(r->acc, *lane, (struct partial){x, r->count});
    if (++r->count % RED_BLOCK == 0)
        close_block(r);
}

static void
reduction_finish(struct reduction *r)
{
    if (r->count % RED_BLOCK || !r->count)
        close_block(r);
    struct partial *lane = r->tree[r->depth - 1];
    for (uint32_t i = r->depth - 1; i-- > 0;)
        for (uint32_t l = 0; l < RED_LANES; l++)
            lane[l] = join(r->acc, r->tree[i][l], lane[l]);
    for (uint32_t half = RED_LANES / 2; half; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            lane[l] = join(r->acc, lane[l], lane[l + half]);
    r->result = op_table[r->acc->op].combine ? lane->value : (uint64_t)lane->index;
}

// ---- scans

static void
scan_start(struct scan *s, const struct acc *a)
{
    *s = (struct scan){0};
    s->vectors = s->blocks = s->spans = op_identity_bits(a->op, a->dtype);
}

// The next element: what the elements up to it come to.
static uint64_t
scan_take(struct scan *s, const struct acc *a, uint64_t x)
{
    uint64_t none = op_identity_bits(a->op, a->dtype);
    int64_t j = s->count++;
    for (uint32_t k = 0; k < SCAN_STEPS; k++) {
        if (j >> k & 1)
            x = join_values(a, s->part[k], x);
        else if (((j + 1) & ((1 << k) - 1)) == 0)
            s->part[k] = x;
    }
    uint64_t before = join_values(a, join_values(a, s->spans, s->blocks), s->vectors);
    if (s->count % SCAN_LANES == 0)
        s->vectors = join_values(a, s->vectors, x);
    if (s->count % SCAN_BLOCK == 0) {
        s->blocks = join_values(a, s->blocks, s->vectors);
        s->vectors = none;
    }
    if (s->count % SCAN_SPAN == 0) {
        s->spans = join_values(a, s->spans, s->blocks);
        s->blocks = none;
    }
    return join_values(a, before, x);
}

// acc = a * b + acc, one rounding in floats
static void
contract(struct run *r, struct reduction *red)
{
    uint64_t a = r->value[r->k.contraction.a], b = r->value[r->k.contraction.b];
    uint8_t d = red->acc->dtype;
    if (dtype_is_float(d))
        red->result = eval_primitive(OP_fma, d, d, a, b, red->result);
    else
        red->result = eval_primitive(OP_add, d, d, eval_primitive(OP_mul, d, d, a, b, 0),
                                     red->result, 0);
}

static bool
is_order(const struct run *r, uint32_t acc)
{
    return op_is(r->k.acc.at[acc].op, OPK_ORDER);
}

// The j of this point of P.
static int64_t
place_in_order(const struct run *r)
{
    return r->axis[r->k.naxis - r->k.nred - 1];
}

static void
order_take(struct reduction *r, uint64_t x)
{
    struct order_item item = {x, r->line.n};
    vec_push(&r->line, item);
}

static void
order_finish(const struct run *r, struct reduction *red)
{
    int64_t j = place_in_order(r);
    if (!j)
        order_items(red->line.at, red->line.n, red->acc->dtype, red->acc->descending);
    const struct order_item *item = &red->line.at[j];
    red->result = op_gives_position(red->acc->op) ? (uint64_t)item->position : item->bits;
}

// ---- memory

static int64_t
affine_at(const struct run *r, const struct access *a)
{
    int64_t at = a->base;
    for (uint32_t i = 0; i < r->k.naxis; i++)
        at += a->stride[i] * r->axis[i];
    return at;
}

// Counts a touch of an element as traffic, unless the cache still has it.
static void
touch(struct run *r, uint32_t buffer, int64_t at, int64_t *bytes)
{
    if (!r->touched)
        return;
    const struct kernel_buffer *b = &r->k.buffers.at[buffer];
    int64_t *last = &r->touched[buffer][at - b->span_lo], size = dtype_size(b->dtype);
    if (*last < 0 || r->moved - *last >= r->l2 / 2) {
        r->moved += size;
        *bytes += size;
        if (r->per_buffer)
            r->per_buffer[buffer] += size;
    }
    *last = r->moved;
}

// The address of an element, which must lie in the span that the kernel declares.
static void *
element(struct run *r, const struct access *a, int64_t at, const char *what)
{
    const struct kernel_buffer *b = &r->k.buffers.at[a->buffer];
    if (at >= b->span_lo && at <= b->span_hi)
        return (char *)r->buffer[a->buffer] + at * dtype_size(b->dtype);
    r->failed = true;
    diag_set(r->d, DIAG_INTERNAL,
             "kernel %s %s element %" PRId64 " of buffer %u, beyond %" PRId64 "..%" PRId64,
             r->k.name ? r->k.name : "?", what, at, a->buffer, b->span_lo, b->span_hi);
    return NULL;
}

static uint64_t
load(struct run *r, const struct inst *in)
{
    if (in->b && !r->value[in->b])
        return 0;
    if (in->c && !r->value[in->c]) {
        r->bad_index = in->origin + 1;
        return 0;
    }
    const struct access *a = &r->k.access.at[in->aux];
    int64_t at = affine_at(r, a);
    if (in->a)
        at += (int64_t)r->value[in->a] * (int64_t)in->bits;
    const void *p = element(r, a, at, "reads");
    if (!p)
        return 0;
    r->count.loads++;
    touch(r, a->buffer, at, &r->count.bytes_read);
    return scalar_load(a->dtype, p);
}

static void
put(struct run *r, const struct store *s)
{
    const struct access *a = &r->k.access.at[s->access];
    int64_t at = affine_at(r, a);
    void *p = element(r, a, at, "writes");
    if (!p)
        return;
    r->count.stores++;
    if (r->k.cls != CLASS_SCATTER) // there the elements lie in memory from the start
        touch(r, a->buffer, at, &r->count.bytes_written);
    scalar_store(a->dtype, p, r->value[s->value]);
}

// ---- instructions

static uint64_t
result(struct run *r, uint32_t acc)
{
    const struct acc *a = &r->k.acc.at[acc];
    return a->scope == ALONG_R ? scan_take(&r->scan[acc], a, r->value[a->value])
                               : r->red[acc].result;
}

static void
step(struct run *r, uint32_t i)
{
    const struct inst *in = &r->k.inst.at[i];
    uint64_t *v = &r->value[i];
    switch (in->op) {
    case OP_literal: *v = in->bits; return;
    case OP_load: *v = load(r, in); return;
    case OP_index: *v = (uint64_t)affine_at(r, &r->k.affine.at[in->aux]); return;
    case OP_result: *v = result(r, in->aux); return;
    case OP_checked:
        *v = r->value[in->a];
        r->bad_index = r->value[in->b] ? r->bad_index : in->origin + 1;
        return;
    default: break;
    }
    uint8_t operand = op_table[in->op].rule == DTR_WHERE ? in->dtype : r->k.inst.at[in->a].dtype;
    *v = eval_primitive(in->op, operand, in->dtype, r->value[in->a], r->value[in->b],
                        r->value[in->c]);
}

static void
run_steps(struct run *r, const struct step_list *l)
{
    for (uint32_t i = 0; i < l->inst.n; i++)
        step(r, l->inst.at[i]);
}

static bool
is_product(const struct run *r, uint32_t acc)
{
    return r->k.cls == CLASS_CONTRACT && acc == r->k.contraction.acc;
}

static void
put_all(struct run *r, uint8_t level, uint32_t stage)
{
    for (uint32_t i = 0; i < r->k.store.n; i++) {
        const struct store *s = &r->k.store.at[i];
        if (s->level == level && (s->stage == stage || level == LEVEL_ONCE))
            put(r, s);
    }
}

// Moves axes [first, end) to the next point, the last fastest; false after the last point.
static bool
next_point(struct run *r, uint32_t first, uint32_t end)
{
    for (uint32_t i = end; i-- > first;) {
        if (++r->axis[i] < r->k.axis[i].extent)
            return true;
        r->axis[i] = 0;
    }
    return false;
}

static void
elem_point(struct run *r, uint32_t stage)
{
    run_steps(r, &r->elem[stage]);
    for (uint32_t i = 0; i < r->k.acc.n; i++) {
        const struct acc *a = &r->k.acc.at[i];
        if (!r->red[i].live || a->scope != OVER_R || a->stage != stage)
            continue;
        if (is_product(r, i))
            contract(r, &r->red[i]);
        else if (is_order(r, i))
            order_take(&r->red[i], r->value[a->value]);
        else
            reduction_take(&r->red[i], r->value[a->value]);
    }
    put_all(r, LEVEL_ELEM, stage);
}

static void
run_stage(struct run *r, uint32_t stage)
{
    uint32_t naxis = r->k.naxis, npar = naxis - r->k.nred;
    run_steps(r, &r->row[stage]);
    bool again = r->k.cls == CLASS_SORT && place_in_order(r) > 0; // the line is there already
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        if (r->red[i].live && r->k.acc.at[i].scope == OVER_R && r->k.acc.at[i].stage == stage) {
            if (!is_order(r, i))
                reduction_start(&r->red[i]);
            else if (!again)
                r->red[i].line.n = 0;
        }
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        if (r->k.acc.at[i].scope == ALONG_R) // again if a later stage needs it again
            scan_start(&r->scan[i], &r->k.acc.at[i]);
    if (r->elem[stage].loops && !again && kernel_points(&r->k, AXIS_R))
        do
            elem_point(r, stage);
        while (!r->failed && next_point(r, npar, naxis));
    for (uint32_t i = 0; i < r->k.acc.n; i++) {
        const struct acc *a = &r->k.acc.at[i];
        if (!r->red[i].live || a->stage != stage)
            continue;
        if (a->scope == OVER_P)
            reduction_take(&r->red[i], r->value[a->value]);
        else if (is_order(r, i))
            order_finish(r, &r->red[i]);
        else if (a->scope == OVER_R && !is_product(r, i))
            reduction_finish(&r->red[i]);
    }
    put_all(r, LEVEL_ROW, stage);
}

// ---- scatters

// The instructions of level ROW and ELEM that `root` needs, and perhaps `other`.
static void
list_needed(struct run *r, uint32_t root, uint32_t other, struct step_list *l)
{
    bool *marked = xcalloc(r->k.inst.n, 1);
    marked[root] = marked[other] = true;
    for (uint32_t i = r->k.inst.n; i-- > 1;) {
        const struct inst *in = &r->k.inst.at[i];
        if (marked[i])
            marked[in->a] = marked[in->b] = marked[in->c] = true;
    }
    for (uint32_t i = 1; i < r->k.inst.n; i++)
        if (marked[i] && r->k.inst.at[i].level != LEVEL_ONCE)
            vec_push(&l->inst, i);
    xfree(marked);
}

// The update at a point of R joins the element that the index names, of those from `first` on that
// lie `step` apart: a place of the axis each.
static void
scatter_update(struct run *r, uint64_t *first, int64_t step)
{
    const struct scatter *s = &r->k.scatter;
    const struct acc *a = &r->k.acc.at[s->acc];
    int64_t at = (int64_t)r->value[s->index];
    if (at < 0 || at >= r->k.axis[s->axis].extent)
        return;
    uint64_t *x = &first[at * step];
    *x = op_table[a->op].combine ? join_values(a, *x, r->value[a->value]) : r->value[a->value];
    r->axis[s->axis] = at;
    for (uint32_t i = 0; i < r->k.store.n; i++) {
        const struct access *out = &r->k.access.at[r->k.store.at[i].access];
        int64_t before = r->moved;
        touch(r, out->buffer, affine_at(r, out),
              op_table[a->op].combine ? &r->count.bytes_read : &r->count.bytes_written);
        if (op_table[a->op].combine) // what was fetched goes back
            r->count.bytes_written += r->moved - before;
    }
    r->axis[s->axis] = 0;
}

// The axes before the one that is scattered along outermost, those behind it innermost; in between
// the elements start, take their updates, and are stored.
static void
run_scatter(struct run *r)
{
    const struct scatter *s = &r->k.scatter;
    uint32_t naxis = r->k.naxis, np = naxis - r->k.nred, axis = s->axis;
    struct step_list init = {0}, update = {0};
    list_needed(r, s->init, 0, &init);
    list_needed(r, s->index, r->k.acc.at[s->acc].value, &update);
    int64_t inner = 1;
    for (uint32_t i = axis + 1; i < np; i++)
        inner *= r->k.axis[i].extent;
    uint64_t *state = xmalloc((size_t)(r->k.axis[axis].extent * inner + 1) * sizeof *state);
    do {
        int64_t i = 0;
        do {
            run_steps(r, &init);
            state[i++] = r->value[s->init];
            const struct access *out = &r->k.access.at[r->k.store.at[0].access];
            touch(r, out->buffer, affine_at(r, out), &r->count.bytes_written);
        } while (next_point(r, axis, np));
        do {
            i = 0;
            do {
                run_steps(r, &update);
                scatter_update(r, &state[i++], inner);
            } while (next_point(r, axis + 1, np));
        } while (!r->failed && next_point(r, np, naxis));
        i = 0;
        do {
            r->red[s->acc].result = state[i++];
            run_steps(r, &r->row[1]);
            put_all(r, LEVEL_ROW, 1);
        } while (!r->failed && next_point(r, axis, np));
    } while (!r->failed && next_point(r, 0, axis));
    xfree(state);
    vec_free(&init.inst);
    vec_free(&update.inst);
}

static void
run_all(struct run *r)
{
    run_steps(r, &r->once);
    if (r->k.cls == CLASS_SCATTER) {
        if (kernel_points(&r->k, AXIS_P))
            run_scatter(r);
        return;
    }
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        if (r->red[i].live && r->k.acc.at[i].scope == OVER_P)
            reduction_start(&r->red[i]);
    if (kernel_points(&r->k, AXIS_P))
        do
            for (uint32_t s = 0; s < r->k.nstage; s++)
                run_stage(r, s);
        while (!r->failed && next_point(r, 0, (uint32_t)(r->k.naxis - r->k.nred)));
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        if (r->red[i].live && r->k.acc.at[i].scope == OVER_P)
            reduction_finish(&r->red[i]);
    run_steps(r, &r->after);
    put_all(r, LEVEL_ONCE, 0);
}

// ---- what is executed when

// Marks the operands of marked instructions; what an accumulator reduces is the operand of its
// result (within a stage that of a scan only). One walk backwards suffices: operands come first.
static void
mark_operands(struct run *r, bool *marked, bool through_accs)
{
    for (uint32_t i = r->k.inst.n; i-- > 1;) {
        const struct inst *in = &r->k.inst.at[i];
        if (!marked[i])
            continue;
        marked[in->a] = marked[in->b] = marked[in->c] = true;
        if (in->op != OP_result)
            continue;
        if (!through_accs && r->k.acc.at[in->aux].scope != ALONG_R)
            continue;
        r->red[in->aux].live = true;
        marked[r->k.acc.at[in->aux].value] = true;
        if (r->k.cls == CLASS_SCATTER)
            marked[r->k.scatter.init] = marked[r->k.scatter.index] = true;
        if (is_product(r, in->aux))
            marked[r->k.contraction.a] = marked[r->k.contraction.b] = true;
    }
}

static void
mark_late(struct run *r)
{
    for (uint32_t i = 1; i < r->k.inst.n; i++) {
        const struct inst *in = &r->k.inst.at[i];
        bool over_p = in->op == OP_result && r->k.acc.at[in->aux].scope == OVER_P;
        r->late[i] = over_p || r->late[in->a] || r->late[in->b] || r->late[in->c];
    }
}

// The ELEM instructions that the sinks of a stage need.
static void
list_elem(struct run *r, uint32_t stage, bool *marked)
{
    struct step_list *l = &r->elem[stage];
    memset(marked, 0, r->k.inst.n);
    for (uint32_t i = 0; i < r->k.acc.n; i++) {
        const struct acc *a = &r->k.acc.at[i];
        if (!r->red[i].live || a->scope != OVER_R || a->stage != stage)
            continue;
        l->loops = marked[a->value] = true;
        if (is_product(r, i))
            marked[r->k.contraction.a] = marked[r->k.contraction.b] = true;
    }
    for (uint32_t i = 0; i < r->k.store.n; i++) {
        const struct store *s = &r->k.store.at[i];
        if (s->level == LEVEL_ELEM && s->stage == stage)
            l->loops = marked[s->value] = true;
    }
    mark_operands(r, marked, false);
    for (uint32_t i = 1; i < r->k.inst.n; i++)
        if (marked[i] && r->k.inst.at[i].level == LEVEL_ELEM)
            vec_push(&l->inst, i);
}

static void
list_steps(struct run *r)
{
    for (uint32_t i = 0; i < r->k.store.n; i++)
        r->live[r->k.store.at[i].value] = true;
    mark_operands(r, r->live, true);
    mark_late(r);
    for (uint32_t i = 1; i < r->k.inst.n; i++) {
        const struct inst *in = &r->k.inst.at[i];
        if (!r->live[i] || in->level == LEVEL_ELEM)
            continue;
        struct step_list *l = in->level == LEVEL_ROW ? &r->row[in->stage]
                              : r->late[i]           ? &r->after
                                                     : &r->once;
        vec_push(&l->inst, i);
    }
    bool *marked = xcalloc(r->k.inst.n, 1);
    for (uint32_t s = 0; s < r->k.nstage; s++)
        list_elem(r, s, marked);
    xfree(marked);
}

// ---- set up and tear down

static bool
remember_touches(struct run *r)
{
    r->touched = xcalloc(r->k.buffers.n, sizeof *r->touched);
    for (uint32_t i = 0; i < r->k.buffers.n; i++) {
        const struct kernel_buffer *b = &r->k.buffers.at[i];
        if (b->span_hi - b->span_lo >= MAX_SPAN)
            return diag_set(r->d, DIAG_RESOURCE, "kernel %s: a buffer of more than 2^28 elements; "
                            "the interpreter cannot count its traffic", r->k.name);
        size_t n = (size_t)(b->span_hi - b->span_lo) + 1;
        r->touched[i] = xmalloc(n * sizeof **r->touched);
        memset(r->touched[i], 0xff, n * sizeof **r->touched);
    }
    return true;
}

static struct run *
run_new(const struct kernel *k, void *const *buffer, int64_t l2, int64_t *per_buffer,
        struct diag *d)
{
    struct run *r = xcalloc(1, sizeof *r);
    kernel_copy(&r->k, k);
    kernel_expand(&r->k);
    r->buffer = buffer;
    r->l2 = l2;
    r->per_buffer = per_buffer;
    r->d = d;
    r->value = xcalloc(r->k.inst.n, sizeof *r->value);
    r->live = xcalloc(r->k.inst.n, 1);
    r->late = xcalloc(r->k.inst.n, 1);
    r->red = xcalloc(r->k.acc.n, sizeof *r->red);
    r->scan = xcalloc(r->k.acc.n, sizeof *r->scan);
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        r->red[i].acc = &r->k.acc.at[i];
    if (per_buffer)
        memset(per_buffer, 0, r->k.buffers.n * sizeof *per_buffer);
    list_steps(r);
    return r;
}

static void
run_free(struct run *r)
{
    for (uint32_t i = 0; r->touched && i < r->k.buffers.n; i++)
        xfree(r->touched[i]);
    xfree(r->touched);
    vec_free(&r->once.inst);
    vec_free(&r->after.inst);
    for (uint32_t s = 0; s < r->k.nstage; s++) {
        vec_free(&r->row[s].inst);
        vec_free(&r->elem[s].inst);
    }
    for (uint32_t i = 0; i < r->k.acc.n; i++)
        vec_free(&r->red[i].line);
    xfree(r->value);
    xfree(r->live);
    xfree(r->late);
    xfree(r->red);
    xfree(r->scan);
    kernel_free_body(&r->k);
    xfree(r);
}

bool
interp_kernel(const struct kernel *k, void *const *buffer, int64_t l2,
              struct kernel_counts *total, int64_t *per_buffer, struct diag *d)
{
    if (!kernel_verify(k, d))
        return false;
    struct diag mine = {0};
    struct run *r = run_new(k, buffer, l2, per_buffer, &mine);
    if ((!total && !per_buffer) || remember_touches(r))
        run_all(r);
    if (r->bad_index)
        diag_set(&mine, DIAG_INDEX, "kernel %s: an index was out of range (origin %u)",
                 k->name ? k->name : "?", r->bad_index - 1);
    if (total)
        *total = r->count;
    run_free(r);
    return mine.code == DIAG_OK || diag_set(d, mine.code, "%s", mine.text);
}

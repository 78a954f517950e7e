// graph_any.c: see graph_any.h. A graph grows by a call of a random op. Elementwise ops, reductions
// and ops along an axis take any values there are; ops whose operands must have shapes of their own
// are called as op_cases.c does it, on values that happen to have such a shape, else on new inputs.
// Where inference refuses a call it is drawn again. Positions (indices, starts) are inputs, as a
// computed one might be out of range, or come from argsort (step_placed).
#include "tests/support/graph_any.h"

#include "ir/base/check.h"
#include "ir/schema.h"

#include <stdio.h>
#include <string.h>

enum { ELEMENTS_MOST = 3000, INPUTS_MOST = 20 };

struct any {
    const struct any_options *o;
    struct graph *g;
    struct rng r;
    VEC(ref) value;
    uint32_t line;
    uint8_t main;
};

static uint8_t
draw_dtype(struct any *s)
{
    if (rng_below(&s->r, 3))
        return s->main;
    uint8_t d = (uint8_t)(1 + rng_below(&s->r, DT_COUNT - 1));
    return dtype_is_half(d) && !s->o->halves ? DT_f32 : d;
}

// x7: ordinary values. at7_5_5: positions below 5, also counted from the end of an axis of 5.
static ref
new_input(struct any *s, const struct operand *o)
{
    char name[40];
    uint32_t number = s->g->inputs.n;
    if (o->below > 0)
        snprintf(name, sizeof name, "at%u_%lld_%lld", number, (long long)o->below,
                 (long long)o->wrap);
    else
        snprintf(name, sizeof name, "x%u", number);
    int64_t stride[MAX_RANK];
    static const enum size_case layout[] = {SIZE_37, SIZE_37, SIZE_STRIDED, SIZE_REVERSED};
    operand_strides(o, layout[rng_below(&s->r, 4)], stride);
    return graph_add_input(s->g, name, o->dtype, &o->shape, stride, 0);
}

static ref
pick(struct any *s)
{
    uint32_t n = s->value.n, near = n < 4 ? n : 4;
    return s->value.at[n - 1 - rng_below(&s->r, rng_below(&s->r, 3) ? near : n)];
}

static ref
build(struct any *s, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr, uint32_t nattr)
{
    struct diag d = {0};
    return graph_build(s->g, op, in, nin, attr, nattr,
                       graph_add_origin(s->g, op, "any", ++s->line), &d);
}

static ref
with_dtype(struct any *s, ref x, uint8_t dtype)
{
    int64_t to = dtype;
    return graph_node(s->g, x)->dtype == dtype ? x : build(s, OP_cast, &x, 1, &to, 1);
}

static ref
literal(struct any *s, uint8_t dtype)
{
    static const double some[] = {0, 1, -1, 0.5, 2, 3, -0.0, 1.0 / 3};
    double x = rng_below(&s->r, 3) ? some[rng_below(&s->r, 8)] : rng_unit(&s->r) * 8 - 4;
    return graph_literal(s->g, dtype, scalar_from_double(dtype, x), 0);
}

// The fields of a schema at random; axes of a shape.
static uint32_t
draw_attr(struct any *s, uint16_t op, const struct shape *x, int64_t *attr)
{
    struct schema_field f[SCHEMA_MAX] = {0};
    uint32_t fields = schema_fields(op_table[op].attrs, f), n = 0;
    double number = 0.25 * (1 + rng_below(&s->r, 6));
    for (uint32_t i = 0; i < fields && i < SCHEMA_MAX; i++)
        if (f[i].type == ATTR_INTS) { // axes
            uint32_t first = rng_below(&s->r, x->rank), at = n++;
            attr[at] = 0;
            for (uint32_t a = 0; a < x->rank; a++)
                if (a == first || (!op_gives_position(op) && !rng_below(&s->r, 3))) {
                    attr[n++] = a;
                    attr[at]++;
                }
        } else if (f[i].type == ATTR_FLOAT) {
            memcpy(&attr[n++], &number, sizeof number);
        } else if (f[i].type == ATTR_DTYPE) {
            attr[n++] = draw_dtype(s);
        } else {
            uint32_t below = f[i].type == ATTR_BOOL || !x->rank ? 2 : x->rank;
            attr[n++] = rng_below(&s->r, below);
        }
    return n;
}

static ref
step_elementwise(struct any *s, uint16_t op)
{
    const struct op_info *row = &op_table[op];
    ref in[3];
    uint32_t first = row->rule == DTR_WHERE;
    for (uint32_t i = 0; i < row->arity; i++) {
        in[i] = pick(s);
        if (i < first)
            in[i] = with_dtype(s, in[i], DT_bool);
        else if (i > first && rng_below(&s->r, 4)) // mostly of one dtype
            in[i] = rng_below(&s->r, 3) ? with_dtype(s, in[i], graph_node(s->g, in[first])->dtype)
                                        : literal(s, graph_node(s->g, in[first])->dtype);
        if (!in[i].i)
            return in[i];
    }
    int64_t attr[32];
    uint32_t nattr = draw_attr(s, op, graph_shape(s->g, in[0]), attr);
    const struct node *x = graph_node(s->g, in[0]);
    // The payload of a computed NaN is nobody's promise.
    if (op == OP_bitcast && dtype_is_float(x->dtype) && x->op != OP_input)
        return (ref){0};
    return build(s, op, in, row->arity, attr, nattr);
}

static ref
step_along(struct any *s, uint16_t op)
{
    ref x = pick(s);
    int64_t attr[32];
    const struct shape shape = *graph_shape(s->g, x);
    if (!shape.rank)
        return (ref){0};
    return build(s, op, &x, 1, attr, draw_attr(s, op, &shape, attr));
}

static bool
same_shape(const struct graph *g, ref x, const struct shape *s)
{
    const struct shape *mine = graph_shape(g, x);
    bool same = mine->rank == s->rank;
    for (uint32_t i = 0; same && i < s->rank; i++)
        same = mine->dim[i].v == s->dim[i].v;
    return same;
}

// A value of the operand's shape, or a new input.
static ref
operand(struct any *s, const struct operand *o)
{
    uint32_t start = rng_below(&s->r, s->value.n);
    for (uint32_t i = 0; i < s->value.n && o->below <= 0; i++) {
        ref x = s->value.at[(start + i) % s->value.n];
        if (same_shape(s->g, x, &o->shape))
            return with_dtype(s, x, o->dtype);
    }
    return s->g->inputs.n < INPUTS_MOST ? new_input(s, o) : (ref){0};
}

static ref
step_own(struct any *s, uint16_t op)
{
    struct call c;
    ref in[OPERANDS_MOST];
    uint32_t form = rng_below(&s->r, call_forms(op));
    int64_t n = s->o->tiny          ? 1 + (int64_t)rng_below(&s->r, 3)
                : rng_below(&s->r, 4) ? s->o->n
                                      : 1 + (int64_t)rng_below(&s->r, 9);
    if (call_make(op, draw_dtype(s), form, SIZE_37, n, &c) != SKIP_NOT)
        return (ref){0};
    for (uint32_t i = 0; i < c.nin; i++)
        if (!(in[i] = operand(s, &c.in[i])).i)
            return in[i];
    return build(s, op, in, c.nin, c.attr, c.nattr);
}

// A scatter or take along an axis, by positions that argsort gives of values of the same shape: all
// operands may be other ops' results, as large as this one's where dtypes are.
static ref
step_placed(struct any *s)
{
    static const uint16_t some[] = {OP_scatter_along,     OP_scatter_along_add,
                                    OP_scatter_along_max, OP_scatter_along_min,
                                    OP_take_along,        OP_scatter,
                                    OP_scatter_add};
    uint16_t op = some[rng_below(&s->r, 7)];
    ref x = pick(s);
    const struct shape shape = *graph_shape(s->g, x);
    if (!shape.rank || graph_node(s->g, x)->dtype == DT_bool)
        return (ref){0};
    struct operand like = {.dtype = graph_node(s->g, x)->dtype, .shape = shape};
    bool line = op == OP_scatter || op == OP_scatter_add; // their index has one axis
    int64_t axis = line ? 0 : rng_below(&s->r, shape.rank);
    ref key = operand(s, &like), update = operand(s, &like);
    if (!key.i || !update.i || (line && shape.rank > 1))
        return (ref){0};
    ref at = build(s, OP_argsort, &key, 1, (int64_t[]){axis, rng_below(&s->r, 2)}, 2);
    return at.i ? build(s, op, (ref[]){x, at, update}, 2 + (op != OP_take_along), &axis, 1) : at;
}

static ref
step(struct any *s)
{
    if (s->o->tiny && !rng_below(&s->r, 4))
        return step_placed(s);
    uint16_t op = (uint16_t)(1 + rng_below(&s->r, OP_COUNT - 1));
    if (op_is(op, OPK_LEAF) || op_is(op, OPK_BODY) || !call_forms(op))
        return (ref){0};
    switch (call_rule(op)) {
    case BY_ELEMENT:
        return step_elementwise(s, op);
    case BY_AXES:
    case BY_AXIS:
        return step_along(s, op);
    default:
        return step_own(s, op);
    }
}

static void
add_inputs(struct any *s)
{
    int64_t n = s->o->n;
    const struct shape some[] = {
        {.rank = 2, .dim = {sym_num(3), sym_num(n)}}, {.rank = 1, .dim = {sym_num(n)}},
        {.rank = 2, .dim = {sym_num(n), sym_num(3)}}, {.rank = 2, .dim = {sym_num(3), sym_num(1)}},
        {.rank = 0},
        {.rank = 3, .dim = {sym_num(2), sym_num(3), sym_num(n)}},
    };
    uint32_t inputs = 2 + rng_below(&s->r, 3);
    for (uint32_t i = 0; i < inputs; i++) {
        struct operand o = {.dtype = i ? draw_dtype(s) : s->main,
                            .shape = some[i ? rng_below(&s->r, 6) : rng_below(&s->r, 3)]};
        vec_push(&s->value, new_input(s, &o));
    }
}

static void
add_outputs(struct any *s)
{
    uint32_t n = 1 + rng_below(&s->r, 3);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        ref y = i ? pick(s) : s->value.at[s->value.n - 1];
        snprintf(name, sizeof name, "y%u", i);
        if (!op_is(graph_node(s->g, y)->op, OPK_LEAF))
            graph_add_output(s->g, name, y);
    }
}

struct graph *
any_graph(const struct any_options *o)
{
    struct any s = {.o = o, .g = graph_new("any"), .r = {hash_mix(o->seed, 4711)}};
    s.main = (uint8_t)(1 + rng_below(&s.r, DT_COUNT - 1));
    if (!o->halves && dtype_is_half(s.main))
        s.main = DT_f32;
    add_inputs(&s);
    uint32_t done = 0;
    for (uint32_t tries = 0; done < o->ops && tries < 100 * o->ops; tries++) {
        ref y = step(&s);
        if (!y.i || op_is(graph_node(s.g, y)->op, OPK_LEAF))
            continue;
        int64_t count = shape_count(s.g, graph_shape(s.g, y));
        if (count > ELEMENTS_MOST)
            continue;
        vec_push(&s.value, y);
        done++;
    }
    add_outputs(&s);
    vec_free(&s.value);
    return s.g;
}

struct guarded
any_input(const struct graph *g, uint32_t i, uint64_t seed, bool at_end, struct tensor *t)
{
    const struct graph_input *in = &g->inputs.at[i];
    const struct shape *s = graph_shape(g, in->node);
    struct operand o = {.dtype = graph_node(g, in->node)->dtype, .shape = *s};
    unsigned number = 0;
    long long below = 0, wrap = 0;
    if (sscanf(in->name, "at%u_%lld_%lld", &number, &below, &wrap) == 3) {
        o.below = below;
        o.wrap = wrap;
    } else {
        CHECK(sscanf(in->name, "x%u", &number) == 1, "input %s", in->name);
    }
    uint64_t h = hash_mix(hash_mix(seed, 99), number);
    enum fill f = seed % 3 == 0 ? (enum fill)(seed / 3 % FILL_COUNT) : FILL_ORDINARY;
    return strided_memory(&o, in->stride, h >> 32 & 1, f, h, at_end, t);
}

// op_cases.c: see op_cases.h. What the row says decides: the kind, the dtype rule and the attribute
// schema. Elementwise ops take operands of one shape; what reduces or works along an axis gets
// three lines of the case's size, along the last axis or across it. Rows whose shapes follow rules
// of their own stand in a table.
#include "tests/support/op_cases.h"

#include "ir/base/check.h"
#include "ir/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const fill_name[FILL_COUNT] = {"ordinary", "NaN",      "infinities",
                                           "-0",       "denormal", "extremes"};
const char *const size_name[SIZE_COUNT] = {"scalar",    "1",       "7",        "37",
                                           "1025",      "0",       "broadcast", "strided",
                                           "reversed",  "misaligned"};
const char *const skip_words[SKIP_COUNT] = {
    [SKIP_NOT] = "run",
    [SKIP_DTYPE] = "the op refuses the dtype",
    [SKIP_VALUE] = "the dtype has no such value",
    [SKIP_NO_AXIS] = "a scalar has no axis",
    [SKIP_NO_VALUE] = "no elements have no such value: refused",
    [SKIP_ONE_SHAPE] = "operands cannot differ in shape",
    [SKIP_BODY_ONLY] = "in kernel bodies only",
    [SKIP_LEAF] = "an operand of all others",
    [SKIP_SAMPLED] = "left to FUSEC_SWEEP=all",
};

// ---- the row's attribute schema

static bool
has_field(uint16_t op, const char *wanted, enum attr_type type)
{
    struct schema_field f[SCHEMA_MAX] = {0};
    uint32_t n = schema_fields(op_table[op].attrs, f);
    for (uint32_t i = 0; i < n && i < SCHEMA_MAX; i++)
        if (!strcmp(f[i].name, wanted) && f[i].type == type)
            return true;
    return false;
}

static void
push(struct call *c, int64_t word)
{
    CHECK(c->nattr < 64, "%s: too many attribute words", op_name(c->op));
    c->attr[c->nattr++] = word;
}

static void
push_list(struct call *c, uint32_t n, const int64_t *v)
{
    push(c, n);
    for (uint32_t i = 0; i < n; i++)
        push(c, v[i]);
}

static int64_t
double_bits(double x)
{
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

// The fields from number `from` on, by name or else by type; n: elements along the axis.
static void
push_fields(struct call *c, uint32_t from, uint32_t form, int64_t axis, int64_t n)
{
    struct schema_field f[SCHEMA_MAX] = {0};
    uint32_t fields = schema_fields(op_table[c->op].attrs, f);
    for (uint32_t i = from; i < fields && i < SCHEMA_MAX; i++)
        switch ((enum attr_type)f[i].type) {
        case ATTR_FLOAT:
            push(c, double_bits(0.25 * (1 + i)));
            break;
        case ATTR_BOOL:
            push(c, (form + i) % 2);
            break;
        case ATTR_DTYPE:
            push(c, 1 + form % (DT_COUNT - 1));
            break;
        case ATTR_INT:
            push(c, !strcmp(f[i].name, "axis") ? axis : !strcmp(f[i].name, "k") ? (n + 1) / 2 : 1);
            break;
        default:
            CHECK(false, "%s: no value for attribute %s", op_name(c->op), f[i].name);
        }
}

// ---- forms by kind

// Which axes of [3, n] or [n, 3] are reduced.
static const struct {
    uint8_t n;
    int64_t axis[2];
    bool columns, keepdims; // columns: x is [n, 3]
} reductions[] = {
    {1, {1}, false, false}, {1, {0}, true, true}, {1, {-1}, false, true}, {2, {0, 1}, false, false},
};

static bool in_table(uint16_t op);

enum call_rule
call_rule(uint16_t op)
{
    const struct op_info *row = &op_table[op];
    if (in_table(op))
        return BY_TABLE;
    if (row->kind == OPK_ELEM || op_is_elementwise_composite(op))
        return BY_ELEMENT;
    if (row->arity == 1 && has_field(op, "axes", ATTR_INTS) && has_field(op, "keepdims", ATTR_BOOL))
        return BY_AXES;
    if (row->arity == 1 && has_field(op, "axis", ATTR_INT))
        return BY_AXIS;
    if (row->kind == OPK_COMPOSITE && has_field(op, "eps", ATTR_FLOAT) &&
        !has_field(op, "axis", ATTR_INT))
        return BY_LAST_AXIS;
    return BY_NOTHING;
}

static uint32_t table_forms(uint16_t op);

uint32_t
call_forms(uint16_t op)
{
    switch (call_rule(op)) {
    case BY_ELEMENT:
        return has_field(op, "to", ATTR_DTYPE) ? DT_COUNT - 1 : 1;
    case BY_AXES:
        return op_gives_position(op) ? 3 : 4;
    case BY_AXIS:
        return 2;
    case BY_LAST_AXIS:
        return 1;
    case BY_TABLE:
        return table_forms(op);
    default:
        return 0;
    }
}

// ---- shapes

int64_t
size_extent(enum size_case size)
{
    static const int64_t n[SIZE_COUNT] = {1, 1, 7, 37, 1025, 0, 37, 37, 37, 37};
    return n[size];
}

static struct shape
shape_of(uint32_t rank, int64_t a, int64_t b, int64_t c)
{
    return (struct shape){.rank = (uint8_t)rank, .dim = {sym_num(a), sym_num(b), sym_num(c)}};
}

static struct shape
plain_shape(const struct call *c, enum size_case size)
{
    bool two = size == SIZE_STRIDED || size == SIZE_REVERSED;
    if (size == SIZE_SCALAR)
        return shape_of(0, 0, 0, 0);
    return two ? shape_of(2, 3, c->n, 0) : shape_of(1, c->n, 0, 0);
}

static enum skip
make_elementwise(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    const struct op_info *row = &op_table[c->op];
    uint32_t first = row->rule == DTR_WHERE;
    if (size == SIZE_BROADCAST && c->nin < 2)
        return SKIP_ONE_SHAPE;
    for (uint32_t i = 0; i < c->nin; i++) {
        c->in[i].dtype = i < first ? DT_bool : dtype;
        c->in[i].shape = plain_shape(c, size);
        if (size == SIZE_BROADCAST)
            c->in[i].shape = i == 0   ? shape_of(2, 3, 1, 0)
                             : i == 1 ? shape_of(1, 37, 0, 0)
                                      : shape_of(3, 2, 1, 37);
    }
    push_fields(c, 0, form, 0, 0);
    uint8_t to = has_field(c->op, "to", ATTR_DTYPE) ? (uint8_t)(1 + form) : dtype;
    if (c->op == OP_bitcast && dtype_size(to) != dtype_size(dtype))
        return SKIP_DTYPE;
    bool is_bool = dtype == DT_bool, is_float = dtype_is_float(dtype);
    bool refused = (row->rule == DTR_NUMERIC && is_bool) ||
                   (row->rule == DTR_INT && (is_bool || is_float)) ||
                   (row->rule == DTR_BITS && is_float);
    return refused ? SKIP_DTYPE : SKIP_NOT;
}

static bool
no_value_of_nothing(uint16_t op)
{
    uint8_t ident = op_table[op].ident;
    return ident == ID_LOWEST || ident == ID_HIGHEST || op == OP_logsumexp;
}

static enum skip
make_reduction(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    bool columns = reductions[form].columns;
    if (size == SIZE_SCALAR)
        return SKIP_NO_AXIS;
    if (size == SIZE_BROADCAST)
        return SKIP_ONE_SHAPE;
    c->in[0] = (struct operand){dtype, columns ? shape_of(2, n, 3, 0) : shape_of(2, 3, n, 0), 0, 0};
    push_list(c, reductions[form].n, reductions[form].axis);
    push(c, reductions[form].keepdims);
    push_fields(c, 2, form, 0, n);
    return n == 0 && no_value_of_nothing(c->op) ? SKIP_NO_VALUE : SKIP_NOT;
}

static enum skip
make_along(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    if (size == SIZE_SCALAR)
        return SKIP_NO_AXIS;
    if (size == SIZE_BROADCAST)
        return SKIP_ONE_SHAPE;
    c->in[0] = (struct operand){dtype, form ? shape_of(2, n, 3, 0) : shape_of(2, 3, n, 0), 0, 0};
    push_fields(c, 0, form, form ? 0 : -1, n);
    return SKIP_NOT;
}

static enum skip
make_norm(struct call *c, uint8_t dtype, enum size_case size)
{
    int64_t n = c->n;
    if (size == SIZE_SCALAR)
        return SKIP_NO_AXIS;
    if (size == SIZE_BROADCAST)
        return SKIP_ONE_SHAPE;
    for (uint32_t i = 0; i < c->nin; i++)
        c->in[i] = (struct operand){dtype, i ? shape_of(1, n, 0, 0) : shape_of(2, 3, n, 0), 0, 0};
    push_fields(c, 0, 0, 0, n);
    return SKIP_NOT;
}

// ---- rows with rules of their own

typedef enum skip own_maker(struct call *c, uint8_t dtype, uint32_t form, enum size_case size);

// x of [3, n]; false: the case has no such operand.
static enum skip
matrix(struct call *c, uint8_t dtype, enum size_case size)
{
    if (size == SIZE_SCALAR)
        return SKIP_NO_AXIS;
    if (size == SIZE_BROADCAST)
        return SKIP_ONE_SHAPE;
    c->in[0] = (struct operand){dtype, shape_of(2, 3, c->n, 0), 0, 0};
    return SKIP_NOT;
}

static enum skip
own_reshape(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    static const int64_t one[] = {1};
    int64_t to[3][3] = {{n, 3, 1}, {3 * n}, {1, n, 3}};
    uint32_t rank[] = {3, 1, 3};
    if (size == SIZE_SCALAR) { // to [1]
        c->in[0] = (struct operand){dtype, shape_of(0, 0, 0, 0), 0, 0};
        push_list(c, 1, one);
        return SKIP_NOT;
    }
    push_list(c, rank[form], to[form]);
    return s;
}

static enum skip
own_permute(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    static const int64_t order[2][3] = {{1, 0}, {2, 0, 1}};
    enum skip s = matrix(c, dtype, size);
    if (s == SKIP_NOT && form)
        c->in[0].shape = shape_of(3, 3, c->n, 5);
    push_list(c, form ? 3 : 2, order[form]);
    return s;
}

static enum skip
own_broadcast(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n, to[] = {3, form ? n : 5, form ? 5 : n};
    c->in[0] = (struct operand){dtype, size == SIZE_SCALAR ? shape_of(0, 0, 0, 0)
                                       : form              ? shape_of(2, n, 1, 0)
                                                           : shape_of(1, n, 0, 0), 0, 0};
    push_list(c, 3, to);
    return size == SIZE_BROADCAST ? SKIP_ONE_SHAPE : SKIP_NOT;
}

static enum skip
own_slice(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    int64_t start[3][2] = {{0, n > 1}, {1, n ? n - 1 : 0}, {2, 0}};
    int64_t stop[3][2] = {{3, n}, {3, n ? -1 : 0}, {-1, n}};
    int64_t step[3][2] = {{2, 1}, {1, n ? -1 : 1}, {-1, 3}};
    push_list(c, 2, start[form]);
    push_list(c, 2, stop[form]);
    push_list(c, 2, step[form]);
    return s;
}

static enum skip
own_flip(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    static const int64_t axes[3][2] = {{1}, {0}, {0, 1}};
    push_list(c, form == 2 ? 2 : 1, axes[form]);
    return matrix(c, dtype, size);
}

static enum skip
own_pad(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    static const int64_t low[2][2] = {{0, 1}, {2, 0}}, high[2][2] = {{0, 2}, {0, 5}};
    push_list(c, 2, low[form]);
    push_list(c, 2, high[form]);
    push(c, (int64_t)scalar_from_double(dtype, form ? 3 : 0));
    return matrix(c, dtype, size);
}

static enum skip
own_concat(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    c->nin = 3;
    for (uint32_t i = 0; i < 3; i++)
        c->in[i] = (struct operand){dtype, form ? shape_of(2, 3, n + i, 0)
                                                : shape_of(2, 1 + i, n, 0), 0, 0};
    push(c, form);
    return s;
}

static enum skip
own_iota(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n, shape[] = {3, n};
    push_list(c, 2, shape);
    push(c, form);
    bool one_way = size >= SIZE_BROADCAST; // no operands that could lie otherwise
    return dtype != DT_i64 ? SKIP_DTYPE : one_way ? SKIP_ONE_SHAPE : SKIP_NOT;
}

static const uint8_t index_dtype[] = {DT_i64, DT_i32, DT_u8};

static enum skip
own_take(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n, some = n < 1 ? 0 : 11;
    enum skip s = matrix(c, dtype, size);
    bool columns = form == 1;
    uint8_t index = index_dtype[form];
    if (columns)
        c->in[0].shape = shape_of(2, n, 3, 0);
    int64_t below = index == DT_u8 && n > 255 ? 255 : n;
    c->in[1] = (struct operand){index, form == 2 ? shape_of(2, 2, some, 0)
                                                 : shape_of(1, some, 0, 0), below, n};
    push(c, columns ? 0 : 1);
    return s;
}

static enum skip
own_take_along(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n, some = n < 1 ? 0 : 11;
    enum skip s = matrix(c, dtype, size);
    bool columns = form == 1;
    if (columns)
        c->in[0].shape = shape_of(2, n, 3, 0);
    c->in[1] = (struct operand){index_dtype[form % 2], columns ? shape_of(2, some, 3, 0)
                                                               : shape_of(2, 3, some, 0), n, n};
    push(c, columns ? 0 : 1);
    return s;
}

static enum skip
own_matmul(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    if (size == SIZE_SCALAR)
        return SKIP_NO_AXIS;
    if (size == SIZE_1025)
        n = form == 1 ? 130 : 1025;
    bool batched = size == SIZE_BROADCAST;
    struct shape a[] = {shape_of(2, 5, n, 0), shape_of(2, n, 9, 0), shape_of(2, 3, n, 0)};
    struct shape b[] = {shape_of(2, n, 7, 0), shape_of(2, 9, n, 0), shape_of(2, n, 1, 0)};
    c->in[0] = (struct operand){dtype, batched ? shape_of(3, 2, 5, n) : a[form], 0, 0};
    c->in[1] = (struct operand){dtype, b[form], 0, 0};
    if (batched) {
        c->in[1].shape = shape_of(3, form ? 1 : 2, n, 9);
    }
    return dtype == DT_bool ? SKIP_DTYPE : SKIP_NOT;
}

static enum skip
own_cross_entropy(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    c->in[1] = (struct operand){index_dtype[form], shape_of(1, 3, 0, 0), n, n};
    return s == SKIP_NOT && n == 0 ? SKIP_NO_VALUE : s;
}

// A window of [3, n] or of [n], its start counted from the front or from either end.
static enum skip
window(struct call *c, uint8_t dtype, uint32_t form, enum size_case size, int64_t dim[2])
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    bool line = form == 1;
    dim[0] = line ? n / 2 : 2;
    dim[1] = n < 2 ? n : n - 1;
    if (line)
        c->in[0].shape = shape_of(1, n, 0, 0);
    c->in[c->nin - 1] = (struct operand){index_dtype[form], shape_of(1, line ? 1 : 2, 0, 0),
                                         line    ? n - n / 2 + 1
                                         : n < 2 ? 1
                                                 : 2,
                                         line ? n : 0};
    return s;
}

static enum skip
own_dynamic_slice(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t dim[2];
    enum skip s = window(c, dtype, form, size, dim);
    push_list(c, form == 1 ? 1 : 2, dim);
    return s;
}

static enum skip
own_slice_update(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t dim[2];
    enum skip s = window(c, dtype, form, size, dim);
    c->in[1] = (struct operand){dtype, form == 1 ? shape_of(1, dim[0], 0, 0)
                                                 : shape_of(2, dim[0], dim[1], 0), 0, 0};
    return s;
}

static enum skip
own_one_hot(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    c->in[0] = (struct operand){dtype, plain_shape(c, size), 11, 0};
    push(c, form == 0 ? 9 : 1);
    push(c, form == 0 ? DT_f32 : form == 1 ? DT_bool : DT_i64);
    bool index = dtype_is_int(dtype) && dtype != DT_u64;
    return size == SIZE_BROADCAST ? SKIP_ONE_SHAPE : index ? SKIP_NOT : SKIP_DTYPE;
}

// Updates of what take and take_along with such an index read.
static enum skip
own_scatter(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    bool along = op_table[c->op].flags & OPF_ALONG;
    enum skip s = along ? own_take_along(c, dtype, form, size) : own_take(c, dtype, form, size);
    const struct shape *x = &c->in[0].shape, *index = &c->in[1].shape;
    c->in[2] = (struct operand){dtype, *index, 0, 0};
    if (along)
        return s;
    int64_t axis = c->attr[0];
    struct shape *to = &c->in[2].shape;
    to->rank = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis)
            to->dim[to->rank++] = x->dim[i];
        else
            for (uint32_t k = 0; k < index->rank; k++)
                to->dim[to->rank++] = index->dim[k];
    return s;
}

// Random numbers of shape [3, n]: the operand is the state.
static enum skip
own_random(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    static const uint8_t floats[] = {DT_f32, DT_f64, DT_f16, DT_bf16};
    int64_t n = c->n, shape[] = {3, n};
    enum skip s = matrix(c, dtype, size);
    c->in[0].shape = shape_of(1, 2, 0, 0);
    push_list(c, 2, shape);
    if (c->op == OP_random_bits)
        push(c, form ? DT_u64 : DT_u32);
    else if (c->op == OP_bernoulli)
        push(c, double_bits(form ? 1 : 0.3));
    else if (c->op == OP_randint)
        push(c, form ? -5 : 0), push(c, form ? 1000 : (int64_t)1 << 32);
    else
        push(c, floats[form]);
    return s != SKIP_NOT ? s : dtype == DT_u64 ? SKIP_NOT : SKIP_DTYPE;
}

static enum skip
own_dropout(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    enum skip s = matrix(c, dtype, size);
    c->in[1] = (struct operand){DT_u64, shape_of(1, 2, 0, 0), 0, 0};
    push(c, double_bits(form ? 0.9 : 0.25));
    return s;
}

static enum skip
own_masked_softmax(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    if (form)
        c->in[0].shape = shape_of(2, n, 3, 0);
    c->in[1] = (struct operand){DT_bool, form ? shape_of(2, n, 1, 0) : shape_of(1, n, 0, 0), 0, 0};
    push(c, form ? 0 : -1);
    return s;
}

// q [3, 5, 6], k [n, 6], v [3, n, 4], the mask over [5, n]; form 1: one position, one head.
static enum skip
own_attention(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    c->in[0].shape = form ? shape_of(2, 1, 6, 0) : shape_of(3, 3, 5, 6);
    c->in[1] = (struct operand){dtype, shape_of(2, n, 6, 0), 0, 0};
    c->in[2] = (struct operand){dtype, form ? shape_of(2, n, 4, 0) : shape_of(3, 3, n, 4), 0, 0};
    push(c, double_bits(form ? 0.5 : 0));
    if (c->op == OP_masked_attention)
        c->in[3] = (struct operand){DT_bool, form ? shape_of(1, n, 0, 0) : shape_of(2, 5, n, 0),
                                    0, 0};
    else
        push(c, !form);
    return s;
}

static enum skip
own_rope(struct call *c, uint8_t dtype, uint32_t form, enum size_case size)
{
    int64_t n = c->n;
    enum skip s = matrix(c, dtype, size);
    c->in[0].shape = shape_of(3, 2, 3, 2 * n);
    for (uint32_t i = 1; i < 3; i++)
        c->in[i] = (struct operand){dtype, shape_of(2, 3, n, 0), 0, 0};
    push(c, form);
    return s;
}

static const struct {
    uint16_t op;
    uint32_t forms;
    own_maker *make;
} own[] = {
    {OP_masked_softmax, 2, own_masked_softmax}, {OP_attention, 2, own_attention},
    {OP_masked_attention, 2, own_attention},    {OP_rope, 2, own_rope},
    {OP_nll_loss, 2, own_cross_entropy},
    {OP_random_bits, 2, own_random},  {OP_uniform, 4, own_random},
    {OP_normal, 4, own_random},       {OP_bernoulli, 2, own_random},
    {OP_randint, 2, own_random},      {OP_dropout, 2, own_dropout},
    {OP_reshape, 3, own_reshape},     {OP_permute, 2, own_permute},
    {OP_broadcast, 2, own_broadcast}, {OP_slice, 3, own_slice},
    {OP_flip, 3, own_flip},           {OP_pad, 2, own_pad},
    {OP_concat, 2, own_concat},       {OP_iota, 2, own_iota},
    {OP_take, 3, own_take},           {OP_take_along, 2, own_take_along},
    {OP_dynamic_slice, 3, own_dynamic_slice}, {OP_slice_update, 3, own_slice_update},
    {OP_one_hot, 3, own_one_hot},
    {OP_scatter, 3, own_scatter},     {OP_scatter_add, 3, own_scatter},
    {OP_scatter_max, 3, own_scatter}, {OP_scatter_min, 3, own_scatter},
    {OP_scatter_along, 2, own_scatter},     {OP_scatter_along_add, 2, own_scatter},
    {OP_scatter_along_max, 2, own_scatter}, {OP_scatter_along_min, 2, own_scatter},
    {OP_matmul, 3, own_matmul},       {OP_cross_entropy, 2, own_cross_entropy},
};
enum { OWN = sizeof own / sizeof *own };

static uint32_t
own_number(uint16_t op)
{
    uint32_t i = 0;
    while (i < OWN && own[i].op != op)
        i++;
    return i;
}

static bool
in_table(uint16_t op)
{
    return own_number(op) < OWN;
}

static uint32_t
table_forms(uint16_t op)
{
    return own[own_number(op)].forms;
}

enum skip
call_make(uint16_t op, uint8_t dtype, uint32_t form, enum size_case size, int64_t n,
          struct call *c)
{
    *c = (struct call){.op = op, .nin = op_table[op].arity, .n = n};
    CHECK(op_table[op].arity == 255 || c->nin <= OPERANDS_MOST, "%s", op_name(op));
    switch (call_rule(op)) {
    case BY_ELEMENT:
        return make_elementwise(c, dtype, form, size);
    case BY_AXES:
        return make_reduction(c, dtype, form, size);
    case BY_AXIS:
        return make_along(c, dtype, form, size);
    case BY_LAST_AXIS:
        return make_norm(c, dtype, size);
    case BY_TABLE:
        return own[own_number(op)].make(c, dtype, form, size);
    default:
        CHECK(false, "%s: no form is known", op_name(op));
        return SKIP_NOT;
    }
}

// ---- values

bool
fill_exists(enum fill f, uint8_t dtype)
{
    return f == FILL_ORDINARY || dtype_is_float(dtype) ||
           (f == FILL_EXTREME && dtype != DT_bool);
}

static uint64_t
ordinary(struct rng *r, uint8_t dtype)
{
    const struct dtype_info *d = &dtype_table[dtype];
    if (d->kind == DTK_BOOL) // any byte but 0 is true
        return rng_below(r, 2) ? (rng_below(r, 4) ? 1 : 1 + rng_below(r, 255)) : 0;
    if (d->kind != DTK_FLOAT)
        return scalar_from_int(dtype, (int64_t)rng_below(r, 13) - (d->kind == DTK_SINT ? 6 : 0));
    if (!rng_below(r, 4)) // integers, among them 0, and halves: ties of rounding
        return scalar_from_double(dtype, (double)rng_below(r, 13) / 2 - 3);
    return scalar_from_double(dtype, rng_unit(r) * 6 - 3);
}

static uint64_t
extreme(struct rng *r, uint8_t dtype)
{
    const struct dtype_info *d = &dtype_table[dtype];
    uint64_t ones = ~0ull >> (64 - d->bits), sign = 1ull << (d->bits - 1);
    if (d->kind == DTK_FLOAT) {
        static const double at[] = {1, 2147483648.0, 4294967296.0, 9223372036854775808.0,
                                    127.5, 255.5, 32767.5, 65535.5, 1e4, 88.8, 709.9, 103.9, 0.5,
                                    1e10, 1e22};
        uint64_t inf = scalar_from_double(dtype, (double)INFINITY);
        uint64_t some[] = {inf - 1, inf - 2, inf / 2, 1, 0};
        uint64_t x = rng_below(r, 2) ? some[rng_below(r, 5)]
                                     : scalar_from_double(dtype, at[rng_below(r, 15)]);
        return x ^ (rng_below(r, 2) ? sign : 0);
    }
    uint64_t some[] = {0, 1, ones, ones - 1, sign, sign - 1, sign + 1, d->bits, d->bits - 1u,
                       d->bits + 1u};
    return some[rng_below(r, 10)] & ones;
}

uint64_t
draw_filled(struct rng *r, uint8_t dtype, enum fill f)
{
    bool special = rng_below(r, 3) == 0;
    if (f == FILL_ORDINARY || !special || !fill_exists(f, dtype))
        return ordinary(r, dtype);
    uint64_t sign = 1ull << (dtype_table[dtype].bits - 1);
    switch (f) {
    case FILL_NAN:
        return scalar_from_double(dtype, (double)NAN) | (rng_below(r, 2) ? sign : 0) |
               rng_below(r, 16);
    case FILL_INFINITE:
        return scalar_from_double(dtype, rng_below(r, 2) ? (double)INFINITY : -(double)INFINITY);
    case FILL_MINUS_ZERO:
        return rng_below(r, 2) ? sign : 0;
    case FILL_DENORMAL:
        return (rng_below(r, 100) + 1) | (rng_below(r, 2) ? sign : 0);
    default:
        return extreme(r, dtype);
    }
}

void
operand_strides(const struct operand *o, enum size_case size, int64_t *stride)
{
    int64_t run = size == SIZE_STRIDED ? 2 : 1;
    for (uint32_t i = o->shape.rank; i-- > 0;) {
        stride[i] = size == SIZE_REVERSED ? -run : run;
        run *= o->shape.dim[i].v;
        run += size == SIZE_STRIDED ? 3 : 0;
    }
}

struct guarded
operand_memory(const struct operand *o, enum size_case size, enum fill f, uint64_t seed,
               bool at_end, struct tensor *t)
{
    int64_t stride[MAX_RANK];
    operand_strides(o, size, stride);
    return strided_memory(o, stride, size == SIZE_MISALIGNED, f, seed, at_end, t);
}

struct guarded
strided_memory(const struct operand *o, const int64_t *stride, int64_t before, enum fill f,
               uint64_t seed, bool at_end, struct tensor *t)
{
    *t = (struct tensor){.dtype = o->dtype, .rank = o->shape.rank};
    int64_t lo = 0, hi = 0, count = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->stride[i] = stride[i];
        t->dim[i] = o->shape.dim[i].v;
        count *= t->dim[i];
        *(t->stride[i] < 0 ? &lo : &hi) += (t->dim[i] - 1) * t->stride[i];
    }
    size_t each = dtype_size(o->dtype), n = count ? (size_t)(hi - lo + 1 + before) : 0;
    struct guarded g = guarded_alloc(n * each, at_end);
    struct rng r = {seed};
    bool all_minus_zero = f == FILL_MINUS_ZERO && dtype_is_float(o->dtype) && rng_below(&r, 2);
    for (size_t k = 0; k < n; k++) {
        uint64_t v = draw_filled(&r, o->dtype, f);
        if (all_minus_zero)
            v = scalar_from_double(o->dtype, -0.0);
        if (o->below > 0) { // a position, from either end
            int64_t at = (int64_t)rng_below(&r, (uint32_t)o->below);
            bool back = dtype_table[o->dtype].kind == DTK_SINT && o->wrap && rng_below(&r, 2);
            v = scalar_from_int(o->dtype, back ? at - o->wrap : at);
        }
        scalar_store(o->dtype, (char *)g.data + k * each, v);
    }
    t->data = (char *)g.data + (before - lo) * (int64_t)each;
    return g;
}

// infer.c: graph_build. From an op, operands and attributes to a node with a dtype and a shape, or
// to an error in words. The call is checked against the op's row (arity, attribute schema); the
// rule of its kind infers dtype and shape, normalises the attributes (axes non-negative, sorted,
// unique) and replaces operands by casts where promotion asks for it; then the node is added.
//
// Building a node again from its own operands and normalised attributes gives that very node: the
// verifier relies on it. Shapes are decided under the hints of symbolic dims; a dim that equals
// another under the hints only stays symbolic.
#include "ir/infer.h"

#include "ir/base/check.h"
#include "ir/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool
infer_error(struct inference *f, const char *fmt, ...)
{
    char text[sizeof f->d->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return diag_set(f->d, DIAG_INVALID, "%s: %s", op_name(f->op), text);
}

const char *
infer_dim_text(struct inference *f, sym dim)
{
    struct str s = {0};
    sym_print(f->g->sym, dim, &s);
    const char *text = arena_strdup(&f->scratch, str_text(&s));
    str_free(&s);
    return text;
}

const char *
infer_shape_text(struct inference *f, const struct shape *s)
{
    struct str text = {0};
    str_add(&text, "[");
    for (uint32_t i = 0; i < s->rank; i++) {
        str_add(&text, i ? "," : "");
        sym_print(f->g->sym, s->dim[i], &text);
    }
    str_add(&text, "]");
    const char *copy = arena_strdup(&f->scratch, str_text(&text));
    str_free(&text);
    return copy;
}

struct shape
infer_in_shape(const struct inference *f, uint32_t i)
{
    return *graph_shape(f->g, f->in[i]);
}

uint8_t
infer_in_dtype(const struct inference *f, uint32_t i)
{
    return graph_node(f->g, f->in[i])->dtype;
}

int64_t
infer_hint(const struct inference *f, sym dim)
{
    return sym_hint(f->g->sym, dim);
}

void
infer_cast_in(struct inference *f, uint32_t i, uint8_t dtype)
{
    const struct node *n = graph_node(f->g, f->in[i]);
    if (n->dtype == dtype)
        return;
    int64_t to = dtype;
    uint32_t shape = n->shape, attr = graph_add_attr(f->g, &to, 1);
    f->in[i] = graph_add(f->g, OP_cast, dtype, shape, attr, &f->in[i], 1, f->origin);
}

uint8_t
infer_promoted(const struct inference *f, uint32_t first, uint32_t n)
{
    uint8_t d = infer_in_dtype(f, first);
    for (uint32_t i = 1; i < n; i++)
        d = dtype_promote(d, infer_in_dtype(f, first + i));
    return d;
}

uint8_t
infer_float_of(uint8_t dtype)
{
    if (dtype_is_float(dtype))
        return dtype;
    return dtype_table[dtype].bits >= 32 ? DT_f64 : DT_f32;
}

void
infer_to_float(struct inference *f, uint32_t n)
{
    f->dtype = infer_float_of(infer_promoted(f, 0, n));
    for (uint32_t i = 0; i < n; i++)
        infer_cast_in(f, i, f->dtype);
}

bool
infer_is_index(const struct inference *f, uint32_t i)
{
    uint8_t d = infer_in_dtype(f, i);
    return dtype_is_int(d) && d != DT_u64;
}

bool
infer_axis(struct inference *f, int64_t *axis, const struct shape *s)
{
    int64_t a = *axis;
    if (!s->rank)
        return infer_error(f, "axis %lld of a scalar; a scalar has no axes", (long long)a);
    if (a < -s->rank || a >= s->rank)
        return infer_error(f, "axis %lld is out of range for shape %s; use %d to %d", (long long)a,
                           infer_shape_text(f, s), -s->rank, s->rank - 1);
    *axis = a < 0 ? a + s->rank : a;
    return true;
}

// Makes axes non-negative, sorted and unique; a repeated axis is an error.
bool
infer_axes(struct inference *f, int64_t *axes, int64_t n, const struct shape *s)
{
    bool named[MAX_RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (!infer_axis(f, &axes[i], s))
            return false;
        if (named[axes[i]])
            return infer_error(f, "axis %lld of %s is named twice", (long long)axes[i],
                               infer_shape_text(f, s));
        named[axes[i]] = true;
    }
    for (int64_t i = 0, at = 0; i < s->rank; i++)
        if (named[i])
            axes[at++] = i;
    return true;
}

bool
infer_same_dim(const struct inference *f, sym a, sym b, sym *out)
{
    if (sym_eq(f->g->sym, a, b) == SYM_NO)
        return false;
    *out = sym_is_num(b) ? b : a;
    return true;
}

static bool
broadcast_dim(const struct inference *f, sym a, sym b, sym *out)
{
    if (a.v == 1 || b.v == 1) {
        *out = a.v == 1 ? b : a;
        return true;
    }
    if (infer_same_dim(f, a, b, out))
        return true;
    bool a_one = infer_hint(f, a) == 1, b_one = infer_hint(f, b) == 1;
    *out = a_one ? b : a;
    return a_one || b_one;
}

static bool
broadcast_error(struct inference *f, const struct shape *s, uint32_t n, const char *what,
                int64_t axis, sym a, sym b)
{
    struct str list = {0};
    for (uint32_t i = 0; i < n; i++) {
        str_add(&list, !i ? "" : i + 1 == n ? " and " : ", ");
        str_add(&list, infer_shape_text(f, &s[i]));
    }
    infer_error(f, "%s %s do not broadcast: axis %lld is %s and %s; make them equal or 1", what,
                str_text(&list), (long long)axis, infer_dim_text(f, a), infer_dim_text(f, b));
    str_free(&list);
    return false;
}

bool
infer_broadcast(struct inference *f, const struct shape *s, uint32_t n, const char *what,
                struct shape *out)
{
    struct shape r = {0};
    bool equal_ranks = true;
    for (uint32_t i = 0; i < n; i++) {
        r.rank = s[i].rank > r.rank ? s[i].rank : r.rank;
        equal_ranks &= s[i].rank == s[0].rank;
    }
    for (uint8_t k = 1; k <= r.rank; k++) { // from the last axis
        sym dim = sym_num(1);
        for (uint32_t i = 0; i < n; i++) {
            sym mine = s[i].rank >= k ? s[i].dim[s[i].rank - k] : sym_num(1), joined;
            if (!broadcast_dim(f, dim, mine, &joined))
                return broadcast_error(f, s, n, what, equal_ranks ? r.rank - k : -k, dim, mine);
            dim = joined;
        }
        r.dim[r.rank - k] = dim;
    }
    *out = r;
    return true;
}

static bool
wrong_dtype(struct inference *f, uint8_t dtype, const char *needs)
{
    if (f->nin > 1 && infer_in_dtype(f, 0) != infer_in_dtype(f, 1))
        return infer_error(f, "needs %s, but %s and %s promote to %s; cast the operands first",
                           needs, dtype_name(infer_in_dtype(f, 0)),
                           dtype_name(infer_in_dtype(f, 1)), dtype_name(dtype));
    return infer_error(f, "needs %s, got %s; cast the operand first", needs, dtype_name(dtype));
}

static bool
cast_dtype(struct inference *f)
{
    uint8_t from = infer_in_dtype(f, 0);
    if (f->attr[0] <= DT_NONE || f->attr[0] >= DT_COUNT)
        return infer_error(f, "%lld is no dtype", (long long)f->attr[0]);
    f->dtype = (uint8_t)f->attr[0];
    if (f->op == OP_bitcast && dtype_size(from) != dtype_size(f->dtype))
        return infer_error(f, "%s has %d bits and %s has %d; the sizes must be equal",
                           dtype_name(from), dtype_table[from].bits, dtype_name(f->dtype),
                           dtype_table[f->dtype].bits);
    // A bool is 0 or 1 wherever it is: its byte is its value, and any non-zero byte is true.
    if (f->op == OP_bitcast && (from == DT_bool || f->dtype == DT_bool)) {
        infer_cast_in(f, 0, f->dtype);
        f->instead = f->in[0];
    }
    return true;
}

// The dtype rules of elementwise rows: promotes the operands and sets the result's dtype.
static bool
elementwise_dtype(struct inference *f)
{
    uint8_t rule = op_table[f->op].rule;
    if (rule == DTR_CAST)
        return cast_dtype(f);
    uint32_t first = rule == DTR_WHERE;
    uint8_t d = infer_promoted(f, first, f->nin - first);
    if (rule == DTR_FLOAT)
        d = infer_float_of(d);
    if (rule == DTR_NUMERIC && d == DT_bool)
        return wrong_dtype(f, d, "numbers");
    if (rule == DTR_INT && !dtype_is_int(d))
        return wrong_dtype(f, d, "integers");
    if (rule == DTR_BITS && dtype_is_float(d))
        return wrong_dtype(f, d, "integers or bool");
    if (rule == DTR_WHERE)
        infer_cast_in(f, 0, DT_bool);
    for (uint32_t i = first; i < f->nin; i++)
        infer_cast_in(f, i, d);
    f->dtype = rule == DTR_COMPARE || rule == DTR_PREDICATE ? DT_bool : d;
    return true;
}

static bool
elementwise(struct inference *f)
{
    struct shape s[3];
    CHECK(f->nin <= 3, "%s has %u operands", op_name(f->op), f->nin);
    for (uint32_t i = 0; i < f->nin; i++)
        s[i] = infer_in_shape(f, i);
    if (!infer_broadcast(f, s, f->nin, "shapes", &f->shape) || !elementwise_dtype(f))
        return false;
    if (op_table[f->op].flags & OPF_MEAN) {
        if (!infer_size(f, &f->shape, "an array to average"))
            return false;
        f->shape.rank = 0;
        for (uint32_t i = 0; i < f->nin && dtype_is_half(f->dtype); i++)
            infer_cast_in(f, i, DT_f32); // the mean of many elements needs f32
        f->dtype = dtype_is_half(f->dtype) ? DT_f32 : f->dtype;
    }
    return true;
}

static bool
infer(struct inference *f)
{
    const struct op_info *op = &op_table[f->op];
    if (op->rule != DTR_OWN)
        return elementwise(f);
    switch ((enum op_kind)op->kind) {
    case OPK_VIEW:
        return infer_view(f);
    case OPK_INDEX:
    case OPK_SCATTER:
        return infer_index(f);
    case OPK_ORDER:
        return infer_order(f);
    case OPK_REDUCE:
    case OPK_SCAN:
    case OPK_COMPOSITE:
        return infer_reduce(f);
    case OPK_CONTRACT:
        return infer_contract(f);
    default:
        return infer_error(f, "cannot be built from operands");
    }
}

// Copies the attribute row and checks it against the schema: "axes:ints keepdims:bool".
static bool
take_attr(struct inference *f, const int64_t *attr, uint32_t nattr)
{
    const char *schema = op_table[f->op].attrs ? op_table[f->op].attrs : "";
    uint32_t at = 0;
    for (const char *p = schema; *p; p += strcspn(p, " "), p += *p == ' ') {
        const char *type = p + strcspn(p, ":") + 1;
        bool list = !strncmp(type, "ints", 4) || !strncmp(type, "dims", 4);
        int name = (int)strcspn(p, ":");
        if (at < nattr && list && (attr[at] < 0 || attr[at] > MAX_RANK))
            return infer_error(f, "%.*s has %lld entries; at most %d are possible",
                               name, p, (long long)attr[at], MAX_RANK);
        uint32_t words = at < nattr && list ? 1 + (uint32_t)attr[at] : 1;
        if (nattr < words || at > nattr - words)
            return infer_error(f, "attribute %.*s is missing (%s)", name, p, schema);
        memcpy(&f->attr[at], &attr[at], words * sizeof *attr);
        if (!strncmp(type, "bool", 4))
            f->attr[at] = attr[at] != 0;
        at += words;
    }
    f->nattr = at;
    if (at != nattr)
        return infer_error(f, "%u attribute words given, %u expected (%s)", nattr, at, schema);
    return true;
}

static bool
take_call(struct inference *f, const ref *in, const int64_t *attr, uint32_t nattr)
{
    const struct op_info *op = &op_table[f->op];
    if (f->op >= OP_COUNT || !op_is_public(f->op))
        return diag_set(f->d, DIAG_INVALID, "%s: not an op that is built from operands",
                        f->op < OP_COUNT ? op_name(f->op) : "unknown op");
    if (op->arity == 255 ? !f->nin : f->nin != op->arity)
        return infer_error(f, "takes %s%d operand%s, got %u", op->arity == 255 ? "at least " : "",
                           op->arity == 255 ? 1 : op->arity,
                           op->arity == 1 || op->arity == 255 ? "" : "s", f->nin);
    for (uint32_t i = 0; i < f->nin; i++) {
        if (!in[i].i || in[i].i >= f->g->node.n)
            return infer_error(f, "operand %u is missing", i);
        f->in[i] = in[i];
    }
    return take_attr(f, attr, nattr);
}

bool
infer_size(struct inference *f, const struct shape *s, const char *what)
{
    int64_t bytes = 8;
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t d = infer_hint(f, s->dim[i]);
        if (__builtin_mul_overflow(bytes, d ? d : 1, &bytes) || bytes > SYM_HUGE)
            return infer_error(f, "%s of shape %s is too large to address", what,
                               infer_shape_text(f, s));
    }
    return true;
}

static bool
check_result(struct inference *f)
{
    for (uint32_t i = 0; i < f->shape.rank; i++) {
        int64_t d = infer_hint(f, f->shape.dim[i]);
        if (d < 0)
            return infer_error(f, "the result's axis %u would be %lld", i, (long long)d);
    }
    return infer_size(f, &f->shape, "a result");
}

ref
graph_build(struct graph *g, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr,
            uint32_t nattr, uint32_t origin, struct diag *d)
{
    struct diag unheard = {0};
    ref few[4], r = {0};
    struct inference f = {.g = g, .d = d ? d : &unheard, .op = op, .nin = nin, .origin = origin,
                          .in = nin <= 4 ? few : xmalloc(nin * sizeof *in)};
    if (take_call(&f, in, attr, nattr) && infer(&f) && check_result(&f))
        r = f.instead.i ? f.instead
                        : graph_add(g, op, f.dtype, graph_add_shape(g, &f.shape),
                                    graph_add_attr(g, f.attr, f.nattr), f.in, nin, origin);
    if (f.in != few)
        xfree(f.in);
    arena_free(&f.scratch);
    return r;
}

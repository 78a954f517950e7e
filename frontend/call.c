// call.c: from a call's arguments to a new value. The steps: find the context, turn handles into
// values, give weak scalars the dtype of their company, infer the result's layout (from a cache:
// the key is the op, its attributes and the operands' layout numbers), make the value; in eager
// mode alias it (views) or compute it at once, in lazy mode see whether work must be flushed.
#include "frontend/call.h"

#include "ir/base/check.h"
#include "ir/expand.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- arguments

void
call_context(struct call *c, fc_context *ctx)
{
    c->ctx = ctx;
}

void
call_tensors(struct call *c, const fc_tensor *t, int n)
{
    c->many = t;
    if (n < 1 || !t)
        c->wrong = "an empty list of tensors";
    else
        c->nin = (uint32_t)n;
}

void
call_number(struct call *c, fc_num x)
{
    c->has_number = true;
    c->number = x;
}

void
call_int(struct call *c, int64_t x)
{
    if (c->nattr < CALL_ATTR)
        c->attr[c->nattr++] = x;
    else
        c->wrong = "too many attributes";
}

void
call_bool(struct call *c, bool x)
{
    call_int(c, x);
}

void
call_float(struct call *c, double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    call_int(c, bits);
}

void
call_dtype(struct call *c, fc_dtype d)
{
    if (d <= FC_DTYPE_NONE || (int)d >= DT_COUNT)
        c->wrong = "no such dtype";
    call_int(c, (int64_t)d);
}

void
call_bits(struct call *c, fc_num x)
{
    c->bits_at = (int32_t)c->nattr;
    c->bits = x;
    call_int(c, 0);
}

void
call_ints(struct call *c, const int64_t *v, int n)
{
    if (!v && op_is(c->op, OPK_VIEW) && n)
        c->wrong = "a NULL list";
    if (n < 0 || n > MAX_RANK)
        c->wrong = "a list is longer than any rank (8), or its length is negative";
    if (c->wrong)
        return;
    c->all_axes = !v && (!op_is(c->op, OPK_VIEW) || c->op == OP_flip);
    call_int(c, v ? n : 0);
    for (int i = 0; v && i < n; i++)
        call_int(c, v[i]);
}

void
call_dims(struct call *c, const fc_dim *v, int n)
{
    if (n < 0 || n > MAX_RANK || (n && !v))
        c->wrong = "a shape is NULL, or its rank is negative or above 8";
    if (c->wrong)
        return;
    call_int(c, n);
    for (int i = 0; i < n; i++)
        call_int(c, v[i].v); // translated when the context is known
}

const char *
number_words(fc_num x, char *words)
{
    if (x.is_large)
        snprintf(words, NUMBER_WORDS, "%" PRIu64, (uint64_t)x.i);
    else if (x.is_int)
        snprintf(words, NUMBER_WORDS, "%" PRId64, x.i);
    else
        snprintf(words, NUMBER_WORDS, "%.15g", x.f);
    return words;
}

uint8_t
number_dtype(fc_num x)
{
    return x.is_large ? DT_u64 : x.is_int ? DT_i64 : DT_f64;
}

static bool
is_integer_of(uint8_t d, double x)
{
    bool is_signed = dtype_table[d].kind == DTK_SINT;
    double end = ldexp(1, dtype_table[d].bits - is_signed);
    return x == trunc(x) && x >= (is_signed ? -end : 0) && x < end;
}

bool
number_bits(uint8_t d, fc_num x, uint64_t *bits)
{
    if (x.is_large) {
        *bits = eval_primitive(OP_cast, DT_u64, d, (uint64_t)x.i, 0, 0);
        return !dtype_is_int(d) || d == DT_u64;
    }
    *bits = x.is_int ? scalar_from_int(d, x.i) : scalar_from_double(d, x.f);
    if (!dtype_is_int(d))
        return true;
    if (!x.is_int)
        return is_integer_of(d, x.f);
    bool negative_into_unsigned = dtype_table[d].kind == DTK_UINT && x.i < 0;
    return !negative_into_unsigned && scalar_to_int(d, *bits) == x.i;
}

// ---- operands

static fc_status
fail(struct call *c, fc_status code, const char *words)
{
    return context_fail(c->ctx, c->file, c->line, code, "%s: %s", c->name, words);
}

static fc_tensor
operand(const struct call *c, uint32_t i)
{
    return c->many ? c->many[i] : c->in[i];
}

static bool
find_context(struct call *c)
{
    for (uint32_t i = 0; !c->ctx && i < c->nin; i++)
        c->ctx = context_of(operand(c, i));
    return c->ctx;
}

static bool
does_not_fit(struct call *c, fc_num x, uint8_t dtype)
{
    char words[NUMBER_WORDS];
    context_fail(c->ctx, c->file, c->line, FC_INVALID, "%s: %s does not fit in %s", c->name,
                 number_words(x, words), dtype_name(dtype));
    return false;
}

static bool
resolve_number(struct call *c)
{
    bool weak = !c->number_dtype;
    uint8_t d = weak ? number_dtype(c->number) : c->number_dtype;
    uint64_t bits;
    if (!number_bits(d, c->number, &bits))
        return does_not_fit(c, c->number, d);
    vec_push(&c->ctx->operands, value_literal(c->ctx, d, bits, weak));
    return true;
}

// Handles to values, with a reference each, in ctx->operands.
static bool
resolve(struct call *c)
{
    fc_context *ctx = c->ctx;
    ctx->operands.n = 0;
    for (uint32_t i = 0; i < c->nin; i++) {
        struct slot *s = slot_find(ctx, operand(c, i));
        if (s) {
            vec_push(&ctx->operands, value_ref(s->value));
            continue;
        }
        // An earlier mistake of this thread explains an invalid handle; then only pass it on.
        struct thread_state *t = thread_find(ctx, false);
        if (!t || !t->error.code)
            context_fail(ctx, c->file, c->line, FC_HANDLE,
                         "%s: operand %u is null, was released, or belongs to another context",
                         c->name, i + 1);
        return false;
    }
    return !c->has_number || resolve_number(c);
}

static uint8_t
value_dtype(const fc_context *ctx, const struct value *v)
{
    return ctx->layouts.at[v->layout].dtype;
}

// The dtype that a weak operand takes beside strong ones of dtype t.
static uint8_t
weak_dtype(uint8_t weak, uint8_t t)
{
    if (dtype_is_float(t) || (dtype_is_int(t) && !dtype_is_float(weak)))
        return t;
    return weak;
}

// Replaces a weak operand by the same scalar at another dtype.
static bool
strengthen(struct call *c, struct value **v, uint8_t dtype)
{
    fc_context *ctx = c->ctx;
    struct value *old = *v, *made;
    uint8_t from = value_dtype(ctx, old);
    if (old->state == VALUE_LITERAL) {
        fc_num x = from == DT_u64   ? fc_num_unsigned(old->bits)
                   : from == DT_i64 ? fc_num_int((int64_t)old->bits)
                                    : fc_num_float(scalar_to_double(from, old->bits));
        uint64_t bits;
        if (!number_bits(dtype, x, &bits))
            return does_not_fit(c, x, dtype);
        made = value_literal(ctx, dtype, bits, false);
        value_unref(ctx, old);
    } else {
        int64_t to = dtype;
        made = value_new(ctx, layout_dense(ctx, dtype, &(struct shape){0}));
        value_set_op(ctx, made, OP_cast, &old, 1, &to, 1);
        made->file = c->file;
        made->line = (uint32_t)c->line;
    }
    *v = made;
    return true;
}

// A weak scalar as a scatter's updates takes the target's dtype; indices are no company.
static bool
settle_updates(struct call *c)
{
    struct value **v = &c->ctx->operands.at[2];
    uint8_t target = value_dtype(c->ctx, c->ctx->operands.at[0]);
    uint8_t d = weak_dtype(value_dtype(c->ctx, *v), target);
    return !(*v)->weak || d == value_dtype(c->ctx, *v) || strengthen(c, v, d);
}

// Weak scalars take the dtype of the strong operands beside them. Sets *weak when all are weak and
// so is the result.
static bool
settle_weak(struct call *c, bool *weak)
{
    fc_context *ctx = c->ctx;
    uint8_t rule = op_table[c->op].rule;
    uint32_t first = rule == DTR_WHERE, n = ctx->operands.n;
    bool any = false;
    for (uint32_t i = first; i < n; i++)
        any |= ctx->operands.at[i]->weak;
    *weak = false;
    if (any && op_is(c->op, OPK_SCATTER) && n == 3)
        return settle_updates(c);
    if (!any || (rule == DTR_OWN && op_table[c->op].arity != 255)) // indices are no company
        return true;
    uint8_t strong = DT_NONE;
    for (uint32_t i = first; i < n; i++) {
        const struct value *v = ctx->operands.at[i];
        uint8_t d = value_dtype(ctx, v);
        if (!v->weak)
            strong = strong ? dtype_promote(strong, d) : d;
    }
    if (!strong) {
        *weak = rule != DTR_COMPARE && rule != DTR_PREDICATE && rule != DTR_CAST && rule != DTR_OWN;
        return true;
    }
    for (uint32_t i = first; i < n; i++) {
        struct value **v = &ctx->operands.at[i];
        uint8_t d = (*v)->weak ? weak_dtype(value_dtype(ctx, *v), strong) : DT_NONE;
        if (d && d != value_dtype(ctx, *v) && !strengthen(c, v, d))
            return false;
    }
    return true;
}

static void
forget_operands(fc_context *ctx)
{
    for (uint32_t i = 0; i < ctx->operands.n; i++)
        value_unref(ctx, ctx->operands.at[i]);
    ctx->operands.n = 0;
}

// ---- attributes that need the context or the operands

static bool
has_dims(uint16_t op) // they are the first attribute
{
    const char *s = op_table[op].attrs, *type = s ? strchr(s, ':') : NULL;
    return type && !strncmp(type, ":dims", 5);
}

static bool
settle_dims(struct call *c) // public dims to syms
{
    for (int64_t i = 1; i <= c->attr[0]; i++) {
        sym s;
        if (!dim_to_sym(c->ctx, (fc_dim){c->attr[i]}, &s))
            return fail(c, FC_INVALID, "a dim is invalid or of another context"), false;
        c->attr[i] = s.v;
    }
    return true;
}

static void
settle_axes(struct call *c) // the list is the first attribute; what follows moves up
{
    uint32_t rank = c->ctx->layouts.at[c->ctx->operands.at[0]->layout].rank;
    if (c->nattr + rank > CALL_ATTR)
        return;
    memmove(c->attr + 1 + rank, c->attr + 1, (c->nattr - 1) * sizeof *c->attr);
    c->attr[0] = rank;
    for (uint32_t i = 0; i < rank; i++)
        c->attr[1 + i] = i;
    c->nattr += rank;
}

static bool
settle_attributes(struct call *c)
{
    if (c->all_axes)
        settle_axes(c);
    if (has_dims(c->op) && !settle_dims(c))
        return false;
    if (c->bits_at < 0)
        return true;
    uint64_t bits;
    uint8_t d = value_dtype(c->ctx, c->ctx->operands.at[0]);
    if (!number_bits(d, c->bits, &bits))
        return does_not_fit(c, c->bits, d);
    c->attr[c->bits_at] = (int64_t)bits;
    return true;
}

// ---- the result's layout

static void
type_key(struct call *c)
{
    fc_context *ctx = c->ctx;
    ctx->key.n = 0;
    vec_reserve(&ctx->key, 1 + c->nattr + ctx->operands.n);
    uint64_t *k = ctx->key.at;
    *k++ = c->op | (uint64_t)ctx->operands.n << 16;
    for (uint32_t i = 0; i < c->nattr; i++)
        *k++ = (uint64_t)c->attr[i];
    for (uint32_t i = 0; i < ctx->operands.n; i++)
        *k++ = ctx->operands.at[i]->layout;
    ctx->key.n = (uint32_t)(k - ctx->key.at);
}

// Where a view of operand 0 lies within its buffer, as long as that is a matter of strides. The
// key has the operand's strides, so the answer is kept with the type.
static void
infer_alias(struct call *c, const struct graph *g, ref r, struct type *t)
{
    fc_context *ctx = c->ctx;
    const struct layout *l = &ctx->layouts.at[ctx->operands.at[0]->layout];
    struct layout out = ctx->layouts.at[t->layout];
    int64_t stride[MAX_RANK];
    bool same = graph_node(g, r)->op == OP_input; // a view that changes nothing
    if (!same && (graph_node(g, r)->op != c->op ||
                  !layout_view(l, c->op, graph_attr(g, r), &out, stride, &t->offset)))
        return;
    out.align_log2 = 0;
    layout_fill(ctx, &out, same ? l->stride : stride);
    t->alias = layout_intern(ctx, &out);
}

// An inference's words, which begin with the op's name, without it.
static const char *
without_op(const struct call *c, const char *words)
{
    size_t n = strlen(op_name(c->op));
    return !strncmp(words, op_name(c->op), n) && words[n] == ':' ? words + n + 2 : words;
}

static struct type
infer_by_graph(struct call *c)
{
    fc_context *ctx = c->ctx;
    struct graph *g = graph_new_over(op_name(c->op), ctx->sym);
    VEC(ref) in = {0};
    for (uint32_t i = 0; i < ctx->operands.n; i++) {
        const struct layout *l = &ctx->layouts.at[ctx->operands.at[i]->layout];
        struct shape s = {.rank = l->rank};
        memcpy(s.dim, l->dim, sizeof s.dim);
        vec_push(&in, graph_add_input(g, "x", l->dtype, &s, NULL, l->align_log2));
    }
    struct diag d = {0};
    struct type t = {0};
    ref r = graph_build(g, c->op, in.at, in.n, c->attr, c->nattr, 0, &d);
    if (r.i && !d.code) {
        t.layout = layout_dense(ctx, graph_node(g, r)->dtype, graph_shape(g, r));
        if (!t.layout)
            fail(c, FC_INVALID, "the result is too large");
        else if (ctx->eager && op_is(c->op, OPK_VIEW) && in.n == 1)
            infer_alias(c, g, r, &t);
    } else {
        fail(c, d.code ? (fc_status)d.code : FC_INVALID, without_op(c, d.text));
    }
    vec_free(&in);
    graph_free(g);
    return t;
}

static struct type
infer_by_cache(struct call *c)
{
    fc_context *ctx = c->ctx;
    type_key(c);
    uint64_t hash = cache_hash(&ctx->types, ctx->key.at, ctx->key.n);
    struct cache_entry *e = cache_find(&ctx->types, hash, ctx->key.at, ctx->key.n);
    if (e)
        return e->type;
    struct type t = infer_by_graph(c);
    if (t.layout)
        cache_add(&ctx->types, hash, ctx->key.at, ctx->key.n)->type = t;
    return t;
}

static struct type
infer(struct call *c) // layout 0: the error is recorded
{
    fc_context *ctx = c->ctx;
    struct value *const *in = ctx->operands.at;
    uint32_t n = ctx->operands.n;
    if (c->nattr || !n || n > 3)
        return infer_by_cache(c);
    uint64_t two = in[0]->layout | (n > 1 ? (uint64_t)in[1]->layout << 32 : 0);
    uint32_t one = n > 2 ? in[2]->layout : 0;
    struct recent_type *r = &ctx->recent[c->op];
    if (r->two != two || r->one != one || !r->type.layout)
        *r = (struct recent_type){two, one, infer_by_cache(c)};
    return r->type;
}

// ---- the result

// Eager views are other strides over the same buffer. NULL: it must be computed.
static struct value *
alias(struct call *c, struct type t)
{
    fc_context *ctx = c->ctx;
    struct value *x = ctx->operands.at[0];
    if (!t.alias || x->state != VALUE_BUFFER)
        return NULL;
    struct layout out = ctx->layouts.at[t.alias];
    char *data = x->data + t.offset * dtype_size(out.dtype);
    out.align_log2 = layout_align(data);
    return value_stored(ctx, layout_intern(ctx, &out), buffer_ref(x->buffer), data);
}

static bool
compute_now(struct call *c, struct value *v)
{
    struct diag d;
    diag_clear(&d);
    fc_status s = eval_values(c->ctx, &v, 1, &d);
    if (s == FC_INDEX) { // the values are in place; told at the next synchronising call
        if (!c->ctx->late.code)
            c->ctx->late = d;
        return true;
    }
    if (s)
        context_fail(c->ctx, c->file, c->line, s, "%s: %s", c->name, d.text);
    return !s;
}

static fc_tensor
make(struct call *c, struct type type, bool weak)
{
    fc_context *ctx = c->ctx;
    struct value *v = ctx->operands.n ? alias(c, type) : NULL;
    if (!v) {
        v = value_new(ctx, type.layout);
        v->weak = weak;
        v->file = c->file;
        v->line = (uint32_t)c->line;
        value_set_op(ctx, v, c->op, ctx->operands.at, ctx->operands.n, c->attr, c->nattr);
        ctx->operands.n = 0; // v holds them; computing lets the lock go
        if (ctx->eager && !compute_now(c, v)) {
            value_unref(ctx, v);
            return invalid_handle(ctx);
        }
    }
    fc_tensor t = slot_new(ctx, v);
    eval_count_op(ctx);
    return t;
}

fc_tensor
call_end(struct call *c)
{
    if (!find_context(c))
        return (fc_tensor){0};
    fc_context *ctx = c->ctx;
    context_lock(ctx);
    fc_tensor t = invalid_handle(ctx);
    bool weak;
    layout_tidy(ctx);
    if (!ctx->device)
        context_fail_device(ctx);
    else if (c->wrong)
        fail(c, FC_INVALID, c->wrong);
    else if (resolve(c) && settle_weak(c, &weak) && settle_attributes(c)) {
        struct type type = infer(c);
        if (type.layout)
            t = make(c, type, weak);
    }
    forget_operands(ctx);
    context_unlock(ctx);
    return t;
}

fc_tensor
call_op(fc_context *ctx, uint16_t op, const fc_tensor *in, uint32_t nin, const int64_t *attr,
        uint32_t nattr, const char *file, int line)
{
    struct call c;
    call_begin(&c, op, file, line);
    call_context(&c, ctx);
    c.many = in;
    c.nin = nin;
    for (uint32_t i = 0; i < nattr; i++)
        call_int(&c, attr[i]);
    return call_end(&c);
}

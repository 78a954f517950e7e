// emit_memory.c: loads and stores.
//
// An access in a scope is one of: uniform (no lane axis moves it: one element, splat), contiguous
// (stride 1 along the lanes: a vector), reversed (stride -1: a vector, shuffled), or scattered (an
// address per lane). Lanes that do not exist (the scope's mask) or that the instruction masks out
// must not touch memory: vectors use masked loads and stores; single elements and emulated gathers
// read a harmless address instead (the argument block, which is longer than any element), chosen
// by a select, so that no branch is needed.
//
// An in-range check that fails writes the launch's error; the address is selected likewise between
// args->error and a word on the stack.
#include "codegen/cpu/emit_parts.h"

#include "ir/base/check.h"

#include <stddef.h>
#include <string.h>

enum shape { UNIFORM, CONTIGUOUS, REVERSED, SCATTERED };

static const char *
element(uint8_t dtype) // type in memory
{
    return dtype_is_half(dtype) ? "i16" : dtype_table[dtype].llvm;
}

static const char *
mangled(struct emitter *e, uint8_t dtype, uint32_t lanes)
{
    bool wide = dtype == DT_f32 || dtype == DT_f64;
    return emit_text(e, "v%u%c%u", lanes, wide ? 'f' : 'i', dtype_table[dtype].bits);
}

const char *
emit_iota(struct emitter *e, uint32_t lanes)
{
    struct str s = {0};
    str_addc(&s, '<');
    for (uint32_t i = 0; i < lanes; i++)
        str_printf(&s, "%si64 %u", i ? ", " : "", i);
    str_addc(&s, '>');
    const char *r = emit_text(e, "%s", str_text(&s));
    str_free(&s);
    return r;
}

static const char *
reversed(struct emitter *e, const char *elem, uint32_t lanes, const char *v)
{
    if (v[0] != '%')
        return v;
    struct str s = {0};
    for (uint32_t i = lanes; i-- > 0;)
        str_printf(&s, "i32 %u%s", i, i ? ", " : "");
    v = emit_op(e, "shufflevector <%u x %s> %s, <%u x %s> poison, <%u x i32> <%s>", lanes, elem, v,
                lanes, elem, lanes, str_text(&s));
    str_free(&s);
    return v;
}

// ---- addresses

static const char *
access_base(struct emitter *e, uint32_t access)
{
    const struct access *x = &e->kernel.access.at[access];
    if (!e->base[access]) {
        const char *base = emit_stride(e, x->base), *b = emit_buffer(e, x->buffer);
        e->base[access] = strcmp(base, "0") == 0
                              ? b
                              : emit_entry_op(e, "getelementptr %s, ptr %s, i64 %s",
                                              element(x->dtype), b, base);
    }
    return e->base[access];
}

// Starts from the nearest scope above that has an address none of whose axes is bound anew, and
// adds what has been bound since.
const char *
emit_base(struct emitter *e, struct emit_scope *s, uint32_t access)
{
    if (s->addr[access])
        return s->addr[access];
    const struct access *x = &e->kernel.access.at[access];
    uint16_t fresh = 0;
    const char *from = NULL;
    for (struct emit_scope *u = s; u && !from; u = u->up) {
        if (u->addr[access]) {
            bool rebound = false;
            for (uint32_t i = 0; i < e->kernel.naxis; i++)
                rebound |= (fresh >> i & 1) && scope_of_axis(u, i);
            from = rebound ? NULL : u->addr[access];
        }
        if (!from)
            fresh |= u->bound;
    }
    const char *offset = "0";
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        const struct emit_scope *b = scope_of_axis(s, i);
        if (!(fresh >> i & 1) || !x->stride[i] || b->axis[i].how == EMIT_PER_LANE)
            continue;
        const char *part = emit_mul(e, b->axis[i].value, emit_stride(e, x->stride[i]));
        offset = emit_add(e, offset, part);
    }
    s->addr[access] = emit_ptr(e, from ? from : access_base(e, access), offset, element(x->dtype));
    return s->addr[access];
}

const char *
emit_address(struct emitter *e, struct emit_scope *s, uint32_t access)
{
    return emit_base(e, s, access);
}

// How lanes move the access; *stride is the lane stride of a SCATTERED one without per-lane axes.
static enum shape
access_shape(const struct emitter *e, const struct emit_scope *s, const struct access *x,
             int64_t *stride, bool *per_lane)
{
    *stride = 0;
    *per_lane = false;
    for (uint32_t i = 0; i < e->kernel.naxis && s->lanes > 1; i++) {
        if (!x->stride[i])
            continue;
        const struct emit_scope *b = scope_of_axis(s, i);
        CHECK(b, "axis %u of an access is not bound", i);
        if (b->axis[i].how == EMIT_LANES)
            *stride += x->stride[i];
        *per_lane |= b->axis[i].how == EMIT_PER_LANE;
    }
    if (*per_lane)
        return SCATTERED;
    if (*stride == 0)
        return UNIFORM;
    return *stride == 1 ? CONTIGUOUS : *stride == -1 ? REVERSED : SCATTERED;
}

static const char *
add_vectors(struct emitter *e, uint32_t lanes, const char *a, const char *b)
{
    return a ? emit_op(e, "add <%u x i64> %s, %s", lanes, a, b) : b;
}

static const char *
scaled(struct emitter *e, uint32_t lanes, const char *v, int64_t stride)
{
    if (stride == 1)
        return v;
    return emit_op(e, "mul <%u x i64> %s, %s", lanes, v,
                   emit_splat_i64(e, emit_stride(e, stride), lanes));
}

// <lanes x ptr> of an access; extra: <lanes x i64> element offsets or NULL.
static const char *
lane_addresses(struct emitter *e, struct emit_scope *s, uint32_t access, int64_t stride,
               const char *extra)
{
    const struct access *x = &e->kernel.access.at[access];
    const char *off = stride ? scaled(e, s->lanes, emit_iota(e, s->lanes), stride) : NULL;
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        const struct emit_scope *b = x->stride[i] ? scope_of_axis(s, i) : NULL;
        if (b && b->axis[i].how == EMIT_PER_LANE)
            off = add_vectors(e, s->lanes, off,
                              scaled(e, s->lanes, b->axis[i].value, x->stride[i]));
    }
    if (extra)
        off = add_vectors(e, s->lanes, off, extra);
    return emit_op(e, "getelementptr %s, ptr %s, <%u x i64> %s", element(x->dtype),
                   emit_base(e, s, access), s->lanes, off ? off : "zeroinitializer");
}

// ---- loads

// Memory bits → register value.
static const char *
from_memory(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *v)
{
    if (dtype != DT_bool)
        return v;
    return emit_op(e, "icmp ne <%u x i8> %s, zeroinitializer", lanes, v);
}

static const char *
lane(struct emitter *e, const char *type, uint32_t lanes, const char *v, uint32_t i)
{
    return emit_op(e, "extractelement <%u x %s> %s, i64 %u", lanes, type, v, i);
}

// One element; where the i1 `on` (may be NULL) is false nothing is read and the value is 0.
static const char *
load_one(struct emitter *e, uint8_t dtype, const char *ptr, const char *on)
{
    const char *t = element(dtype);
    uint32_t align = dtype_size(dtype);
    if (!on)
        return emit_op(e, "load <1 x %s>, ptr %s, align %u", t, ptr, align);
    const char *safe = emit_op(e, "select i1 %s, ptr %s, ptr %%args", on, ptr);
    const char *v = emit_op(e, "load <1 x %s>, ptr %s, align %u", t, safe, align);
    return emit_op(e, "select i1 %s, <1 x %s> %s, <1 x %s> zeroinitializer", on, t, v, t);
}

static const char *
load_vector(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr, const char *mask,
            uint32_t align)
{
    const char *t = emit_memory_type(e, dtype, lanes);
    if (!mask)
        return emit_op(e, "load %s, ptr %s, align %u", t, ptr, align);
    return emit_op(e,
                   "call %s @llvm.masked.load.%s.p0(ptr %s, i32 %u, <%u x i1> %s, %s "
                   "zeroinitializer)",
                   t, mangled(e, dtype, lanes), ptr, align, lanes, mask, t);
}

// Hardware gathers take 4 and 8 bytes. Narrower elements are read one by one.
static const char *
gather(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptrs, const char *mask)
{
    const char *t = emit_memory_type(e, dtype, lanes), *elem = element(dtype);
    if (dtype_size(dtype) >= 4)
        return emit_op(e,
                       "call %s @llvm.masked.gather.%s.v%up0(<%u x ptr> %s, i32 %u, <%u x i1> %s, "
                       "%s zeroinitializer)",
                       t, mangled(e, dtype, lanes), lanes, lanes, ptrs, dtype_size(dtype), lanes,
                       mask ? mask : "splat (i1 true)", t);
    if (mask) {
        const char *none = emit_op(e, "insertelement <1 x ptr> poison, ptr %%args, i64 0");
        const char *nones = emit_op(e, "shufflevector <1 x ptr> %s, <1 x ptr> poison, "
                                       "<%u x i32> zeroinitializer", none, lanes);
        ptrs = emit_op(e, "select <%u x i1> %s, <%u x ptr> %s, <%u x ptr> %s", lanes, mask, lanes,
                       ptrs, lanes, nones);
    }
    const char *v = "poison";
    for (uint32_t i = 0; i < lanes; i++) {
        const char *p = lane(e, "ptr", lanes, ptrs, i);
        const char *one = emit_op(e, "load %s, ptr %s, align %u", elem, p, dtype_size(dtype));
        v = emit_op(e, "insertelement %s %s, %s %s, i64 %u", t, v, elem, one, i);
    }
    if (mask)
        v = emit_op(e, "select <%u x i1> %s, %s %s, %s zeroinitializer", lanes, mask, t, v, t);
    return v;
}

void
emit_check(struct emitter *e, const struct emit_scope *s, uint32_t inst, const char *check,
           const char *mask)
{
    const struct inst *in = &e->kernel.inst.at[inst];
    uint32_t n = s->lanes;
    const char *bad = emit_op(e, "xor <%u x i1> %s, splat (i1 true)", n, check);
    bad = emit_and_mask(e, n, mask, bad);
    const char *any = n == 1 ? lane(e, "i1", 1, bad, 0)
                             : emit_op(e, "call i1 @llvm.vector.reduce.or.v%ui1(<%u x i1> %s)", n,
                                       n, bad);
    const char *name = emit_text(e, "error%u", inst);
    const char *code = emit_op(e, "trunc i64 %s to i32",
                               emit_named(e, name, 1 + (int64_t)in->origin));
    const char *raise = emit_label(e, "raise"), *end = emit_text(e, "%s.end", raise);
    emit_rarely(e, any, raise, end);
    emit_place(e, raise);
    const char *at = emit_op(e, "getelementptr i8, ptr %%args, i64 24");
    const char *error = emit_op(e, "load ptr, ptr %s", at);
    emit_line(e, "store i32 %s, ptr %s", code, error);
    emit_endif(e, end);
}
_Static_assert(offsetof(struct kernel_args, error) == 24, "emit_check knows the place");

// An element that no lane moves: read once and splat. mask: which lanes want it.
static const char *
load_uniform(struct emitter *e, struct emit_scope *s, const struct inst *in, const char *ptr,
             const char *mask, bool mask_is_uniform)
{
    uint32_t n = s->lanes;
    const char *on = NULL;
    if (mask && mask_is_uniform)
        on = lane(e, "i1", n, mask, 0);
    else if (mask)
        on = emit_op(e, "call i1 @llvm.vector.reduce.or.v%ui1(<%u x i1> %s)", n, n, mask);
    const char *v = from_memory(e, in->dtype, 1, load_one(e, in->dtype, ptr, on));
    v = emit_splat(e, in->dtype, v, n);
    if (!mask || mask_is_uniform)
        return v;
    const char *t = emit_type(e, in->dtype, n);
    return emit_op(e, "select <%u x i1> %s, %s %s, %s zeroinitializer", n, mask, t, v, t);
}

// A masked load may be given any address where no lane is on, but one that is not mapped is as dear
// as a fault that the processor looks into and forgets: windows of which nothing is here, and parts
// of a concat or a pad where another part stands, go to a place that is.
static const char *
safe_address(struct emitter *e, uint32_t lanes, const char *ptr, const char *mask)
{
    const char *any = emit_op(e, "call i1 @llvm.vector.reduce.or.v%ui1(<%u x i1> %s)", lanes, lanes,
                              mask);
    return emit_op(e, "select i1 %s, ptr %s, ptr %%args", any, ptr);
}

const char *
emit_load_address(struct emitter *e, struct emit_scope *s, uint32_t inst)
{
    const struct inst *in = &e->kernel.inst.at[inst];
    const char *ptr = emit_base(e, s, in->aux);
    if (!in->a || varies(e, s, e->depends[in->a]))
        return ptr;
    const char *extra = scaled(e, s->lanes, emit_value(e, s, in->a), (int64_t)in->bits);
    return emit_ptr(e, ptr, lane(e, "i64", s->lanes, extra, 0), element(in->dtype));
}

void
emit_check_load(struct emitter *e, struct emit_scope *s, uint32_t inst)
{
    const struct inst *in = &e->kernel.inst.at[inst];
    uint16_t rebound = 0, axes = e->depends[in->b] | e->depends[in->c];
    for (struct emit_scope *u = s; u; u = u->up) {
        if (u->told && u->told[inst] && !(rebound & axes))
            return;
        rebound |= u->bound;
    }
    const char *own = in->b ? s->value[in->b] : NULL;
    emit_check(e, s, inst, s->value[in->c], emit_and_mask(e, s->lanes, s->mask, own));
    if (!s->told)
        s->told = arena_alloc(&e->mem, e->kernel.inst.n * sizeof *s->told);
    s->told[inst] = true;
}

const char *
emit_load(struct emitter *e, struct emit_scope *s, uint32_t inst)
{
    const struct inst *in = &e->kernel.inst.at[inst];
    const struct access *x = &e->kernel.access.at[in->aux];
    uint32_t n = s->lanes;
    int64_t stride;
    bool per_lane;
    enum shape shape = access_shape(e, s, x, &stride, &per_lane);
    const char *own = in->b ? s->value[in->b] : NULL; // without the scope's mask
    if (in->c) {
        emit_check_load(e, s, inst);
        own = emit_and_mask(e, n, own, s->value[in->c]);
    }
    bool own_varies = varies(e, s, e->depends[in->b] | e->depends[in->c]);
    const char *extra = NULL;
    const char *ptr = emit_load_address(e, s, inst);
    if (in->a && varies(e, s, e->depends[in->a]))
        shape = SCATTERED;
    if (in->a && shape == SCATTERED)
        extra = scaled(e, n, s->value[in->a], (int64_t)in->bits);
    if (shape == UNIFORM) {
        const char *mask = own_varies || n == 1 ? emit_and_mask(e, n, s->mask, own) : own;
        return load_uniform(e, s, in, ptr, mask, !own_varies);
    }
    const char *mask = emit_and_mask(e, n, s->mask, own);
    const char *v;
    if (in->b && (shape == CONTIGUOUS || shape == REVERSED))
        ptr = safe_address(e, n, ptr, mask);
    if (shape == CONTIGUOUS) {
        v = load_vector(e, in->dtype, n, ptr, mask, dtype_size(in->dtype));
    } else if (shape == REVERSED) {
        const char *low = emit_ptr(e, ptr, emit_text(e, "-%u", n - 1), element(in->dtype));
        const char *turned = mask ? reversed(e, "i1", n, mask) : NULL;
        v = load_vector(e, in->dtype, n, low, turned, dtype_size(in->dtype));
        v = reversed(e, element(in->dtype), n, v);
    } else {
        v = gather(e, in->dtype, n, lane_addresses(e, s, in->aux, stride, extra), mask);
    }
    return from_memory(e, in->dtype, n, v);
}

const char *
emit_load_raw(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr, const char *mask,
              uint32_t align)
{
    return from_memory(e, dtype, lanes, load_vector(e, dtype, lanes, ptr, mask, align));
}

void
emit_prefetch(struct emitter *e, const char *ptr, uint32_t level)
{
    emit_line(e, "call void @llvm.prefetch.p0(ptr %s, i32 0, i32 %u, i32 1)", ptr, 4 - level);
}

void
emit_prefetch_write(struct emitter *e, const char *ptr)
{
    emit_line(e, "call void @llvm.prefetch.p0(ptr %s, i32 1, i32 3, i32 1)", ptr);
}

// ---- stores

static const char *
to_memory(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *v)
{
    return dtype == DT_bool ? emit_op(e, "zext <%u x i1> %s to <%u x i8>", lanes, v, lanes) : v;
}

static void
store_vector(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr, const char *v,
             const char *mask, uint32_t align, const char *hint)
{
    const char *t = emit_memory_type(e, dtype, lanes);
    if (mask && lanes == 1) {
        const char *end = emit_if(e, lane(e, "i1", 1, mask, 0));
        emit_line(e, "store %s %s, ptr %s, align %u%s", t, v, ptr, align, hint);
        emit_endif(e, end);
    } else if (mask) {
        emit_line(e, "call void @llvm.masked.store.%s.p0(%s %s, ptr %s, i32 %u, <%u x i1> %s)",
                  mangled(e, dtype, lanes), t, v, ptr, align, lanes, mask);
    } else {
        emit_line(e, "store %s %s, ptr %s, align %u%s", t, v, ptr, align, hint);
    }
}

void
emit_store_raw(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr,
               const char *value, const char *mask, uint32_t align)
{
    store_vector(e, dtype, lanes, ptr, to_memory(e, dtype, lanes, value), mask, align, "");
}

void
emit_store_value(struct emitter *e, struct emit_scope *s, uint32_t access, const char *value,
                 uint32_t flags)
{
    const struct access *x = &e->kernel.access.at[access];
    uint32_t n = s->lanes, size = dtype_size(x->dtype);
    int64_t stride;
    bool per_lane;
    enum shape shape = access_shape(e, s, x, &stride, &per_lane);
    const char *v = to_memory(e, x->dtype, n, value);
    const char *ptr = emit_base(e, s, access);
    const char *mask = s->mask;
    if (shape == CONTIGUOUS || n == 1) {
        bool stream = flags & EMIT_NONTEMPORAL;
        uint32_t whole = size * n < 64 ? size * n : 64;
        store_vector(e, x->dtype, n, ptr, v, mask, stream ? whole : size,
                     stream ? ", !nontemporal !0" : "");
    } else if (shape == REVERSED) {
        const char *low = emit_ptr(e, ptr, emit_text(e, "-%u", n - 1), element(x->dtype));
        store_vector(e, x->dtype, n, low, reversed(e, element(x->dtype), n, v),
                     mask ? reversed(e, "i1", n, mask) : NULL, size, "");
    } else {
        emit_line(e,
                  "call void @llvm.masked.scatter.%s.v%up0(%s %s, <%u x ptr> %s, i32 %u, "
                  "<%u x i1> %s)",
                  mangled(e, x->dtype, n), n, emit_memory_type(e, x->dtype, n), v, n,
                  lane_addresses(e, s, access, stride, NULL), size, n,
                  mask ? mask : "splat (i1 true)");
    }
}

void
emit_store(struct emitter *e, struct emit_scope *s, const struct store *st, uint32_t flags)
{
    emit_store_value(e, s, st->access, emit_value(e, s, st->value), flags);
}

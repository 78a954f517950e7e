// graph_gen.c: the generator. A graph has one base shape; every value has it, up to axes of size 1,
// so that any two values broadcast. Each step draws an op from the table and operands among the
// values so far, the recent ones preferred; a step that the inference refuses (an op on the wrong
// kind of dtype) is drawn again. Views come in pairs that restore the base shape.
#include "tests/support/graph_gen.h"

#include "ir/base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t
rng_next(struct rng *r)
{
    return hash_mix(r->s++, 0x5eed);
}

uint32_t
rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

double
rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

static uint64_t draw_value(struct rng *r, uint8_t dtype);

struct gen {
    const struct gen_options *o;
    struct graph *g;
    struct rng r;
    struct shape base;
    VEC(ref) value;
    uint32_t ops, line;
};

static uint8_t
draw_dtype(struct gen *s)
{
    static const uint8_t all[] = {DT_f32, DT_f64, DT_i32, DT_i64, DT_u8, DT_i8, DT_i16, DT_u16,
                                  DT_u32, DT_u64, DT_bool, DT_f16, DT_bf16};
    uint32_t n = s->o->half ? 13 : 11;
    return rng_below(&s->r, 2) ? all[rng_below(&s->r, 2)] : all[rng_below(&s->r, n)];
}

static void
draw_base(struct gen *s)
{
    s->base.rank = (uint8_t)(1 + rng_below(&s->r, 3));
    if (s->o->scalar)
        s->base.rank = 0;
    int64_t left = s->o->max_extent;
    for (uint32_t i = 0; i < s->base.rank; i++) {
        bool last = i + 1 == s->base.rank;
        int64_t n = 1 + rng_below(&s->r, (uint32_t)(last ? left : (left < 5 ? left : 5)));
        s->base.dim[i] = sym_num(n);
    }
}

static void
add_input(struct gen *s, uint32_t number)
{
    struct shape sh = s->base;
    for (uint32_t i = 0; i < sh.rank && number; i++)
        if (!rng_below(&s->r, 5))
            sh.dim[i] = sym_num(1);
    uint8_t dtype = s->o->dtype && (!s->o->mixed || number == 0) ? s->o->dtype : draw_dtype(s);
    int64_t stride[MAX_RANK];
    bool strided = s->o->strided && rng_below(&s->r, 2);
    int64_t run = 1 + (strided && rng_below(&s->r, 2));
    for (uint32_t i = sh.rank; i-- > 0;) {
        stride[i] = run;
        if (strided && !rng_below(&s->r, 4))
            stride[i] = -run;
        else if (strided && !rng_below(&s->r, 8))
            stride[i] = 0;
        run *= sh.dim[i].v;
        run += strided && !rng_below(&s->r, 3) ? 3 : 0;
    }
    if (s->o->literal_inputs) {
        struct rng r = {hash_mix(s->o->seed, number)};
        vec_push(&s->value, graph_literal(s->g, dtype, draw_value(&r, dtype), 0));
        return;
    }
    char name[16] = {'x', (char)('0' + number)};
    ref in = graph_add_input(s->g, name, dtype, &sh, strided ? stride : NULL, 0);
    vec_push(&s->value, in);
}

static ref
pick(struct gen *s)
{
    uint32_t n = s->value.n, back = rng_below(&s->r, 3) ? rng_below(&s->r, n < 4 ? n : 4)
                                                        : rng_below(&s->r, n);
    return s->value.at[n - 1 - back];
}

static ref
build(struct gen *s, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr, uint32_t nattr)
{
    struct diag d = {0};
    bool is_bool = nin && graph_node(s->g, in[0])->dtype == DT_bool; // has no sub
    if (op == s->o->swapped_op && op && !is_bool)
        op = op == OP_add ? OP_sub : OP_add;
    return graph_build(s->g, op, in, nin, attr, nattr,
                       graph_add_origin(s->g, op, "gen", ++s->line), &d);
}

static ref
literal(struct gen *s, uint8_t dtype)
{
    static const double some[] = {0, 1, -1, 0.5, 2, 3, -0.0, 1e-3, 7, 1.0 / 3};
    double x = rng_below(&s->r, 3) ? some[rng_below(&s->r, 10)] : rng_unit(&s->r) * 8 - 4;
    return graph_literal(s->g, dtype, scalar_from_double(dtype, x), 0);
}

static ref
step_elementwise(struct gen *s)
{
    uint16_t op = (uint16_t)(1 + rng_below(&s->r, OP_COUNT - 1));
    const struct op_info *t = &op_table[op];
    bool composite = t->kind == OPK_COMPOSITE && t->arity == 1 && !t->attrs;
    if (t->kind != OPK_ELEM && !(composite && s->o->composites))
        return (ref){0};
    if (!s->o->math && ((t->flags & OPF_EXACT) == 0 || composite))
        return (ref){0};
    ref in[3];
    for (uint32_t i = 0; i < t->arity; i++) {
        in[i] = pick(s);
        if (i && !rng_below(&s->r, 5))
            in[i] = literal(s, graph_node(s->g, in[i])->dtype);
    }
    int64_t to = 0;
    if (op == OP_cast) {
        to = draw_dtype(s);
        if (!s->o->mixed)
            return (ref){0};
    } else if (op == OP_bitcast) {
        to = draw_dtype(s);
        // The payload of a computed NaN is nobody's promise: bits are of inputs and integers.
        if (dtype_is_float(graph_node(s->g, in[0])->dtype) &&
            !op_is(graph_node(s->g, in[0])->op, OPK_LEAF))
            return (ref){0};
        if (!s->o->mixed || dtype_size((uint8_t)to) != dtype_size(graph_node(s->g, in[0])->dtype) ||
            graph_node(s->g, in[0])->dtype == DT_bool || to == DT_bool)
            return (ref){0};
    }
    return build(s, op, in, t->arity, &to, op == OP_cast || op == OP_bitcast);
}

static ref
step_slice(struct gen *s, ref x, bool shift)
{
    struct shape sh = *graph_shape(s->g, x);
    int64_t attr[3 * MAX_RANK + 3];
    uint32_t rank = sh.rank, axis = rng_below(&s->r, rank ? rank : 1);
    attr[0] = attr[rank + 1] = attr[2 * rank + 2] = rank;
    int64_t pad[2 * MAX_RANK + 3] = {0};
    pad[0] = pad[rank + 1] = rank;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n = sh.dim[i].v, cut = i == axis && shift && n > 1 ? 1 : 0;
        attr[1 + i] = cut;
        attr[rank + 2 + i] = n;
        attr[2 * rank + 3 + i] = 1;
        pad[1 + i] = 0;
        pad[rank + 2 + i] = cut;
    }
    pad[2 * rank + 2] = (int64_t)scalar_from_double(graph_node(s->g, x)->dtype, 2);
    ref y = build(s, OP_slice, &x, 1, attr, 3 * rank + 3);
    return y.i ? build(s, OP_pad, &y, 1, pad, 2 * rank + 3) : y;
}

static ref
iota(struct gen *s, int64_t n)
{
    return build(s, OP_iota, NULL, 0, (int64_t[]){1, n, 0}, 3);
}

// [rank] integers: 1 for axis, else 0.
static ref
unit_start(struct gen *s, uint32_t rank, int64_t axis)
{
    ref is_axis[] = {iota(s, rank), graph_literal(s->g, DT_i64, (uint64_t)axis, 0)};
    ref one = build(s, OP_eq, is_axis, 2, NULL, 0);
    return build(s, OP_cast, &one, 1, (int64_t[]){DT_i64}, 1);
}

// Positions in [-n, n) on an axis of n, each of the n once or (n even) some twice.
static ref
positions(struct gen *s, int64_t n)
{
    int64_t factor = rng_below(&s->r, 2) ? n - 1 : 2;
    ref product[] = {iota(s, n), graph_literal(s->g, DT_i64, (uint64_t)factor, 0)};
    ref in_range[] = {build(s, OP_mul, product, 2, NULL, 0),
                      graph_literal(s->g, DT_i64, (uint64_t)n, 0)};
    ref wrap[] = {build(s, OP_mod, in_range, 2, NULL, 0),
                  graph_literal(s->g, DT_i64, rng_below(&s->r, 2) ? (uint64_t)n : 0, 0)};
    return build(s, OP_sub, wrap, 2, NULL, 0);
}

// x scattered to, or taken, along an axis by positions that an order gives of y: both may be other
// ops' results, and all three of one size.
static ref
step_placed(struct gen *s, ref x, ref y, int64_t axis)
{
    static const uint16_t ops[] = {OP_scatter_along, OP_scatter_along_add, OP_scatter_along_max,
                                   OP_scatter_along_min, OP_take_along};
    uint16_t op = ops[rng_below(&s->r, 5)];
    if (!shape_equal(graph_shape(s->g, x), graph_shape(s->g, y)))
        return (ref){0};
    ref at = build(s, OP_argsort, &y, 1, (int64_t[]){axis, 0}, 2);
    return build(s, op, (ref[]){x, at, pick(s)}, 2 + (op != OP_take_along), &axis, 1);
}

// Ops that read or write at positions given by data, with results of the operand's shape.
static ref
step_index(struct gen *s)
{
    ref x = pick(s), y = pick(s);
    struct shape sh = *graph_shape(s->g, x);
    if (!sh.rank)
        return (ref){0};
    int64_t axis = rng_below(&s->r, sh.rank), n = sh.dim[axis].v;
    static const uint16_t scatters[] = {OP_scatter, OP_scatter_add, OP_scatter_max,
                                        OP_scatter_min};
    uint32_t kind = rng_below(&s->r, 7);
    if (kind > 4)
        return step_placed(s, x, y, axis);
    if (kind == 0)
        return build(s, OP_take, (ref[]){x, positions(s, n)}, 2, &axis, 1);
    if (kind > 2)
        return build(s, scatters[rng_below(&s->r, 4)], (ref[]){x, positions(s, n), y}, 3, &axis, 1);
    int64_t sizes[MAX_RANK + 1] = {sh.rank}, pad[2 * MAX_RANK + 3] = {0};
    for (uint32_t i = 0; i < sh.rank; i++)
        sizes[1 + i] = sh.dim[i].v - (i == axis && n > 1);
    pad[0] = pad[sh.rank + 1] = sh.rank;
    pad[1 + axis] = n > 1;
    ref start = n > 1 ? unit_start(s, sh.rank, axis) : unit_start(s, sh.rank, -1);
    if (kind == 2 && shape_equal(&sh, graph_shape(s->g, y)) &&
        graph_node(s->g, x)->dtype == graph_node(s->g, y)->dtype) {
        ref at_front[] = {y, unit_start(s, sh.rank, -1)};
        ref part = build(s, OP_dynamic_slice, at_front, 2, sizes, sh.rank + 1u);
        return build(s, OP_slice_update, (ref[]){x, part, start}, 3, NULL, 0);
    }
    ref part = build(s, OP_dynamic_slice, (ref[]){x, start}, 2, sizes, sh.rank + 1u);
    return build(s, OP_pad, &part, 1, pad, 2u * sh.rank + 3u);
}

static ref
step_view(struct gen *s)
{
    ref x = pick(s);
    struct shape sh = *graph_shape(s->g, x);
    if (!sh.rank)
        return (ref){0};
    int64_t axis = rng_below(&s->r, sh.rank), count = shape_count(s->g, &sh);
    int64_t attr[MAX_RANK + 2] = {1, axis};
    switch (rng_below(&s->r, 8)) {
    case 6:
    case 7:
        return step_index(s);
    case 0:
        return build(s, OP_flip, &x, 1, attr, 2);
    case 1: { // to the base shape
        attr[0] = s->base.rank;
        for (uint32_t i = 0; i < s->base.rank; i++)
            attr[1 + i] = s->base.dim[i].v;
        return build(s, OP_broadcast, &x, 1, attr, s->base.rank + 1u);
    }
    case 2: { // flat, an op, and back
        int64_t flat[] = {1, count};
        attr[0] = sh.rank;
        for (uint32_t i = 0; i < sh.rank; i++)
            attr[1 + i] = sh.dim[i].v;
        ref y = build(s, OP_reshape, &x, 1, flat, 2);
        y = y.i ? build(s, OP_flip, &y, 1, (int64_t[]){1, 0}, 2) : y;
        return y.i ? build(s, OP_reshape, &y, 1, attr, sh.rank + 1u) : y;
    }
    case 3: { // axes of equal extent swapped
        attr[0] = sh.rank;
        for (uint32_t i = 0; i < sh.rank; i++)
            attr[1 + i] = i;
        for (uint32_t i = 0; i < sh.rank; i++)
            if ((int64_t)i != axis && sh.dim[i].v == sh.dim[axis].v) {
                attr[1 + i] = axis;
                attr[1 + axis] = i;
                return build(s, OP_permute, &x, 1, attr, sh.rank + 1u);
            }
        return (ref){0};
    }
    case 4: { // two halves of two values
        int64_t n = sh.dim[axis].v;
        if (n < 2)
            return (ref){0};
        ref half[2];
        for (uint32_t h = 0; h < 2; h++) {
            int64_t sl[3 * MAX_RANK + 3];
            sl[0] = sl[sh.rank + 1] = sl[2 * sh.rank + 2] = sh.rank;
            for (uint32_t i = 0; i < sh.rank; i++) {
                bool cut = (int64_t)i == axis;
                sl[1 + i] = cut && h ? n / 2 : 0;
                sl[sh.rank + 2 + i] = cut && !h ? n / 2 : sh.dim[i].v;
                sl[2 * sh.rank + 3 + i] = 1;
            }
            half[h] = build(s, OP_slice, &x, 1, sl, 3 * sh.rank + 3u);
        }
        ref in[] = {half[1], half[0]};
        return in[0].i && in[1].i ? build(s, OP_concat, in, 2, &axis, 1) : (ref){0};
    }
    default:
        return step_slice(s, x, true);
    }
}

static ref
step_reduction(struct gen *s)
{
    static const uint16_t some[] = {OP_sum, OP_max_reduce, OP_min_reduce, OP_prod, OP_mean, OP_var,
                                    OP_softmax, OP_log_softmax, OP_logsumexp, OP_any, OP_all,
                                    OP_argmax, OP_argmin, OP_cumsum, OP_cumprod, OP_cummax,
                                    OP_cummin};
    uint16_t op = some[rng_below(&s->r, sizeof some / sizeof *some)];
    ref x = pick(s);
    struct shape sh = *graph_shape(s->g, x);
    if (!sh.rank || (!s->o->composites && op_table[op].kind == OPK_COMPOSITE))
        return (ref){0};
    int64_t attr[MAX_RANK + 4] = {0};
    uint32_t n = 0;
    if (op == OP_softmax || op == OP_log_softmax) {
        attr[n++] = rng_below(&s->r, sh.rank);
    } else if (op_is(op, OPK_SCAN)) {
        attr[n++] = rng_below(&s->r, sh.rank);
        attr[n++] = !rng_below(&s->r, 3);
    } else {
        bool one = op == OP_argmax || op == OP_argmin;
        uint32_t first = rng_below(&s->r, sh.rank);
        for (uint32_t i = 0; i < sh.rank; i++)
            if (i == first || (!one && !rng_below(&s->r, 3)))
                attr[++n] = i;
        attr[0] = n++;
        attr[n++] = 1; // keepdims: the result broadcasts with everything
        if (op == OP_var)
            attr[n++] = 0;
    }
    return build(s, op, &x, 1, attr, n);
}

static ref
step_order(struct gen *s)
{
    static const uint16_t some[] = {OP_sort, OP_argsort, OP_topk, OP_argtopk};
    uint16_t op = some[rng_below(&s->r, 4)];
    ref x = pick(s);
    struct shape sh = *graph_shape(s->g, x);
    if (!sh.rank)
        return (ref){0};
    int64_t axis = rng_below(&s->r, sh.rank), n = sh.dim[axis].v, turned = rng_below(&s->r, 2);
    bool all = op == OP_sort || op == OP_argsort;
    // Of some elements one goes on with the others: it broadcasts.
    int64_t k = n ? rng_below(&s->r, 3) ? 1 : 1 + rng_below(&s->r, (uint32_t)n) : 0;
    int64_t attr[] = {k, axis, turned};
    return build(s, op, &x, 1, attr + all, 3 - all);
}

static ref
step_matmul(struct gen *s)
{
    ref a = pick(s), b = pick(s);
    struct shape sa = *graph_shape(s->g, a), sb = *graph_shape(s->g, b);
    if (sa.rank < 2 || sb.rank < 2 || graph_node(s->g, a)->dtype == DT_bool)
        return (ref){0};
    // x yᵀ x has x's shape.
    int64_t attr[MAX_RANK + 1] = {sb.rank};
    for (uint32_t i = 0; i < sb.rank; i++)
        attr[1 + i] = i;
    attr[sb.rank] = sb.rank - 2;
    attr[sb.rank - 1] = sb.rank - 1;
    ref t = build(s, OP_permute, &b, 1, attr, sb.rank + 1u);
    ref in[] = {a, t};
    ref p = t.i ? build(s, OP_matmul, in, 2, NULL, 0) : t;
    ref again[] = {p, b};
    return p.i ? build(s, OP_matmul, again, 2, NULL, 0) : p;
}

static void
add_outputs(struct gen *s)
{
    uint32_t n = 1 + rng_below(&s->r, 3);
    graph_add_output(s->g, "y0", s->value.at[s->value.n - 1]);
    for (uint32_t i = 1; i < n; i++) {
        char name[8] = {'y', (char)('0' + i)};
        ref r = pick(s);
        if (!op_is(graph_node(s->g, r)->op, OPK_LEAF))
            graph_add_output(s->g, name, r);
    }
}

struct graph *
gen_graph(const struct gen_options *o)
{
    struct gen s = {.o = o, .g = graph_new("gen"), .r = {hash_mix(o->seed, 77)}};
    draw_base(&s);
    uint32_t inputs = 1 + rng_below(&s.r, 4);
    for (uint32_t i = 0; i < inputs; i++)
        add_input(&s, i);
    uint32_t want = o->min_ops + rng_below(&s.r, o->max_ops - o->min_ops + 1);
    for (uint32_t tries = 0; s.ops < want && tries < 400 * want; tries++) {
        uint32_t kind = rng_below(&s.r, 20);
        ref r = o->views && kind == 0          ? step_view(&s)
                : o->reductions && kind == 1   ? step_reduction(&s)
                : o->orders && kind < 4        ? step_order(&s)
                : o->matmul && tries % 64 == 0 ? step_matmul(&s)
                                               : step_elementwise(&s);
        if (!r.i)
            continue;
        vec_push(&s.value, r);
        s.ops++;
    }
    add_outputs(&s);
    vec_free(&s.value);
    return s.g;
}

// ---- data

struct guarded
guarded_alloc(size_t bytes, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    struct guarded g = {.bytes = bytes, .mapped = body + 2 * page};
    g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(g.map != MAP_FAILED, "mmap of %zu bytes", g.mapped);
    mprotect(g.map, page, PROT_NONE);
    mprotect((char *)g.map + page + body, page, PROT_NONE);
    g.data = (char *)g.map + page + (at_end ? body - bytes : 0);
    return g;
}

void
guarded_free(struct guarded *g)
{
    munmap(g->map, g->mapped);
}

static uint64_t
draw_value(struct rng *r, uint8_t dtype)
{
    const struct dtype_info *d = &dtype_table[dtype];
    uint32_t kind = rng_below(r, 200);
    if (d->kind == DTK_BOOL)
        return rng_below(r, 2);
    if (d->kind != DTK_FLOAT) {
        if (kind < 10)
            return scalar_from_int(dtype, (int64_t)rng_next(r));
        if (kind < 14)
            return d->kind == DTK_SINT ? 1ull << (d->bits - 1) : ~0ull >> (64 - d->bits);
        return scalar_from_int(dtype, (int64_t)rng_below(r, 13) - (d->kind == DTK_SINT ? 6 : 0));
    }
    switch (kind) {
    case 0:
        return scalar_from_double(dtype, (double)NAN);
    case 1:
        return scalar_from_double(dtype, (double)INFINITY);
    case 2:
        return scalar_from_double(dtype, -(double)INFINITY);
    case 3:
        return scalar_from_double(dtype, -0.0);
    case 4:
        return rng_below(r, 1000) + 1; // denormal
    case 5:
        return scalar_from_double(dtype, 0);
    default:
        if (kind < 20)
            return scalar_from_double(dtype, exp2((double)rng_below(r, 60) - 30));
        return scalar_from_double(dtype, rng_unit(r) * 6 - 3);
    }
}

struct guarded
gen_input(const struct graph *g, uint32_t i, uint64_t seed, bool at_end, struct tensor *t)
{
    const struct graph_input *in = &g->inputs.at[i];
    const struct shape *s = graph_shape(g, in->node);
    *t = (struct tensor){.dtype = graph_node(g, in->node)->dtype, .rank = s->rank};
    int64_t lo = 0, hi = 0, count = 1;
    for (uint32_t d = 0; d < s->rank; d++) {
        t->dim[d] = dim_of(g, s, d);
        t->stride[d] = in->stride[d];
        count *= t->dim[d];
        int64_t reach = (t->dim[d] - 1) * t->stride[d];
        *(reach < 0 ? &lo : &hi) += reach;
    }
    size_t size = dtype_size(t->dtype), n = count ? (size_t)(hi - lo + 1) : 0;
    struct guarded b = guarded_alloc(n * size, at_end);
    struct rng r = {hash_mix(seed, i)};
    for (size_t k = 0; k < n; k++)
        scalar_store(t->dtype, (char *)b.data + k * size, draw_value(&r, t->dtype));
    t->data = (char *)b.data - lo * (int64_t)size;
    return b;
}

bool
same_bits(uint8_t dtype, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    return dtype_is_float(dtype) && isnan(scalar_to_double(dtype, a)) &&
           isnan(scalar_to_double(dtype, b));
}

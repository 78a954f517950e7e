// infer.c: what graph_build infers, normalises and refuses, op kind by op kind.
#include "ir/base/str.h"
#include "ir/graph.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

static ref
input(struct graph *g, uint8_t dtype, int rank, ...)
{
    struct shape s = {.rank = (uint8_t)rank};
    va_list ap;
    va_start(ap, rank);
    for (int i = 0; i < rank; i++)
        s.dim[i] = sym_num(va_arg(ap, int));
    va_end(ap);
    return graph_add_input(g, "x", dtype, &s, NULL, 6);
}

// "f32[3, 4]", or the error's text.
static const char *
built(struct graph *g, ref *out, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr,
      uint32_t nattr)
{
    struct diag d = {0};
    ref r = graph_build(g, op, in, nin, attr, nattr, 0, &d);
    if (out)
        *out = r;
    if (!r.i) {
        cr_expect_eq(d.code, DIAG_INVALID);
        return arena_strdup(&g->mem, d.text);
    }
    cr_expect_eq(d.code, DIAG_OK);
    struct str s = {0};
    shape_print(g, graph_node(g, r)->dtype, graph_shape(g, r), &s);
    const char *text = arena_strdup(&g->mem, str_text(&s));
    str_free(&s);

    // A built node, built again from its own operands and attributes, is itself.
    const struct node *n = graph_node(g, r);
    if (n->op == op) {
        ref again_in[8];
        for (uint32_t i = 0; i < n->nin; i++)
            again_in[i] = graph_in(g, r, i);
        const struct attr *a = &g->attrs.at[n->attr];
        ref again = graph_build(g, op, again_in, n->nin, a->v, a->n, 0, &d);
        cr_expect_eq(again.i, r.i, "%s: %s", op_name(op), d.text);
    }
    return text;
}
#define REFS(...) (ref[]){__VA_ARGS__}, sizeof((ref[]){__VA_ARGS__}) / sizeof(ref)
#define ATTR(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define NONE NULL, 0
#define EXPECT(text, ...) cr_expect_str_eq(built(g, NULL, __VA_ARGS__), text)

static struct graph *g;
static void
setup(void)
{
    g = graph_new("t");
}
static void
teardown(void)
{
    graph_free(g);
}
TestSuite(infer, .init = setup, .fini = teardown);

Test(infer, broadcasting)
{
    ref a = input(g, DT_f32, 2, 3, 4), b = input(g, DT_f32, 1, 4), c = input(g, DT_f32, 2, 3, 1);
    ref s = input(g, DT_f32, 0), z = input(g, DT_f32, 2, 0, 1), bad = input(g, DT_f32, 2, 2, 4);
    EXPECT("f32[3, 4]", OP_add, REFS(a, b), NONE);
    EXPECT("f32[3, 4]", OP_add, REFS(b, c), NONE);
    EXPECT("f32[3, 4]", OP_add, REFS(s, a), NONE);
    EXPECT("f32[0, 4]", OP_add, REFS(z, b), NONE);
    EXPECT("f32[3, 4]", OP_clamp, REFS(s, a, c), NONE);
    EXPECT("add: shapes [3,4] and [2,4] do not broadcast: axis 0 is 3 and 2; make them equal or 1",
           OP_add, REFS(a, bad), NONE);
    EXPECT("fma: shapes [3,4], [4] and [0,1] do not broadcast: axis -2 is 3 and 0; make them "
           "equal or 1", OP_fma, REFS(a, b, z), NONE);
    EXPECT("add: takes 2 operands, got 1", OP_add, REFS(a), NONE);
    EXPECT("add: operand 1 is missing", OP_add, REFS(a, {0}), NONE);
    EXPECT("load: not an op that is built from operands", OP_load, NONE, NONE);
    EXPECT("add: 1 attribute words given, 0 expected ()", OP_add, REFS(a, b), ATTR(7));
}

Test(infer, symbolic_dims_stay)
{
    sym n = sym_named(g->sym, "N", 4), one = sym_named(g->sym, "ONE", 1);
    struct shape sn = {.rank = 2, .dim = {n, sym_num(3)}}, so = {.rank = 1, .dim = {one}};
    ref x = graph_add_input(g, "x", DT_f32, &sn, NULL, 6);
    ref o = graph_add_input(g, "o", DT_f32, &so, NULL, 6);
    ref row = input(g, DT_f32, 2, 1, 3), four = input(g, DT_f32, 2, 4, 3);
    EXPECT("f32[N, 3]", OP_add, REFS(x, row), NONE);
    EXPECT("f32[N, 3]", OP_add, REFS(x, o), NONE);
    EXPECT("f32[4, 3]", OP_add, REFS(x, four), NONE);
    EXPECT("f32[ONE]", OP_add, REFS(o, input(g, DT_f32, 0)), NONE);
    EXPECT("f32[3*N]", OP_reshape, REFS(x), ATTR(1, sym_mul(g->sym, n, sym_num(3)).v));
    EXPECT("f32[3*N, 1]", OP_reshape, REFS(x), ATTR(2, -1, 1));
    EXPECT("f32[3, N]", OP_reshape, REFS(x), ATTR(2, -1, n.v));
    EXPECT("f32[N, 3]", OP_slice, REFS(x), ATTR(2, 0, 0, 2, INT64_MAX, 3, 2, 1, 1));
    EXPECT("f32[2*N, 3]", OP_concat, REFS(x, x), ATTR(0));
    EXPECT("f32[N+3, 3]", OP_pad, REFS(x), ATTR(2, 1, 0, 2, 2, 0, 0));
}

Test(infer, dtype_rules)
{
    ref b = input(g, DT_bool, 1, 2), i8 = input(g, DT_i8, 1, 2), i32 = input(g, DT_i32, 1, 2);
    ref u64 = input(g, DT_u64, 1, 2), i64 = input(g, DT_i64, 1, 2), f16 = input(g, DT_f16, 1, 2);
    ref bf = input(g, DT_bf16, 1, 2), f32 = input(g, DT_f32, 1, 2);
    EXPECT("bool[2]", OP_add, REFS(b, b), NONE);
    EXPECT("i32[2]", OP_add, REFS(i8, i32), NONE);
    EXPECT("f64[2]", OP_add, REFS(i32, f32), NONE);
    EXPECT("f64[2]", OP_add, REFS(i64, u64), NONE);
    EXPECT("f32[2]", OP_mul, REFS(f16, bf), NONE);
    EXPECT("f16[2]", OP_mul, REFS(f16, i8), NONE);
    EXPECT("f32[2]", OP_exp, REFS(i8), NONE);
    EXPECT("f32[2]", OP_exp, REFS(b), NONE);
    EXPECT("f64[2]", OP_exp, REFS(i32), NONE);
    EXPECT("bf16[2]", OP_gelu, REFS(bf), NONE);
    EXPECT("f32[2]", OP_div, REFS(i8, i8), NONE);
    EXPECT("bool[2]", OP_lt, REFS(i8, f32), NONE);
    EXPECT("bool[2]", OP_isnan, REFS(i8), NONE);
    EXPECT("f32[2]", OP_where, REFS(i8, f32, i8), NONE);
    EXPECT("bool[2]", OP_not, REFS(b), NONE);
    EXPECT("i8[2]", OP_relu, REFS(i8), NONE);
    EXPECT("sub: needs numbers, got bool; cast the operand first", OP_sub, REFS(b, b), NONE);
    EXPECT("and: needs integers or bool, got f32; cast the operand first", OP_and, REFS(f32, f32),
           NONE);
    EXPECT("shl: needs integers, but i64 and u64 promote to f64; cast the operands first", OP_shl,
           REFS(i64, u64), NONE);
    EXPECT("shl: needs integers, got bool; cast the operand first", OP_shl, REFS(b, b), NONE);
    EXPECT("u8[2]", OP_cast, REFS(f32), ATTR(DT_u8));
    EXPECT("i32[2]", OP_bitcast, REFS(f32), ATTR(DT_i32));
    EXPECT("bitcast: f32 has 32 bits and f16 has 16; the sizes must be equal", OP_bitcast,
           REFS(f32), ATTR(DT_f16));
    EXPECT("cast: 99 is no dtype", OP_cast, REFS(f32), ATTR(99));
    EXPECT("cast: attribute to is missing (to:dtype)", OP_cast, REFS(f32), NONE);
}

Test(infer, promotion_inserts_casts)
{
    ref i = input(g, DT_i32, 1, 2), f = input(g, DT_f32, 2, 3, 2), sum;
    EXPECT("f64[3, 2]", OP_add, REFS(i, f), NONE);
    built(g, &sum, OP_add, REFS(i, f), NONE);
    ref cast = graph_in(g, sum, 0);
    cr_expect_eq(graph_node(g, cast)->op, OP_cast);
    cr_expect_eq(graph_node(g, cast)->dtype, DT_f64);
    cr_expect_eq(graph_shape(g, cast)->rank, 1, "operands keep their own shapes");
    cr_expect_eq(graph_in(g, cast, 0).i, i.i);
    ref same;
    built(g, &same, OP_add, REFS(f, f), NONE);
    cr_expect_eq(graph_in(g, same, 0).i, f.i, "no cast to the dtype it has");
}

Test(infer, reductions)
{
    ref x = input(g, DT_f16, 3, 2, 0, 4), i = input(g, DT_u8, 2, 3, 5), b = input(g, DT_bool, 1, 7);
    ref s = input(g, DT_f32, 0), r;
    EXPECT("f16[2, 4]", OP_sum, REFS(x), ATTR(1, 1, 0));
    EXPECT("f16[2, 1, 4]", OP_sum, REFS(x), ATTR(1, -2, 5));
    EXPECT("u64[]", OP_sum, REFS(i), ATTR(2, 1, 0, 0));
    EXPECT("i64[]", OP_prod, REFS(b), ATTR(1, 0, 0));
    EXPECT("i64[3]", OP_argmax, REFS(i), ATTR(1, 1, 0));
    EXPECT("bool[5]", OP_any, REFS(i), ATTR(1, 0, 0));
    EXPECT("f16[2, 0]", OP_max_reduce, REFS(x), ATTR(1, 2, 0));
    EXPECT("f32[3]", OP_mean, REFS(i), ATTR(1, 1, 0));
    EXPECT("f32[1, 1]", OP_var, REFS(i), ATTR(2, 0, 1, 1, 1));
    EXPECT("f32[]", OP_logsumexp, REFS(b), ATTR(1, 0, 0));
    EXPECT("max_reduce: axis 1 of [2,0,4] is empty and so has no maximum; give it at least one "
           "element", OP_max_reduce, REFS(x), ATTR(1, 1, 0));
    EXPECT("argmin: axis 1 of [2,0,4] is empty and so has no minimum; give it at least one "
           "element", OP_argmin, REFS(x), ATTR(1, 1, 0));
    EXPECT("argmax: takes one axis, got 2; reshape to reduce over several", OP_argmax, REFS(i),
           ATTR(2, 0, 1, 0));
    EXPECT("sum: axis 1 of [3,5] is named twice", OP_sum, REFS(i), ATTR(2, 1, -1, 0));
    EXPECT("sum: axis 2 is out of range for shape [3,5]; use -2 to 1", OP_sum, REFS(i),
           ATTR(1, 2, 0));
    EXPECT("sum: axis 0 of a scalar; a scalar has no axes", OP_sum, REFS(s), ATTR(1, 0, 0));
    EXPECT("sum: axes has 9 entries; at most 8 are possible", OP_sum, REFS(s), ATTR(9, 0, 0));
    EXPECT("sum: attribute axes is missing (axes:ints keepdims:bool)", OP_sum, REFS(i), ATTR(2, 0));
    built(g, &r, OP_sum, REFS(i), ATTR(2, -1, 0, 0));
    cr_expect_eq(graph_attr(g, r)[1], 0, "axes are sorted");
    cr_expect_eq(graph_attr(g, r)[2], 1, "and non-negative");
    built(g, &r, OP_max_reduce, REFS(s), ATTR(0, 0));
    cr_expect_eq(r.i, s.i, "no axes: nothing to reduce");
    EXPECT("u64[3, 5]", OP_sum, REFS(i), ATTR(0, 0));
}

Test(infer, views)
{
    ref x = input(g, DT_f32, 2, 3, 4), z = input(g, DT_f32, 2, 0, 5), i = input(g, DT_i32, 2, 3, 2);
    EXPECT("f32[2, 6]", OP_reshape, REFS(x), ATTR(2, 2, -1));
    EXPECT("f32[0]", OP_reshape, REFS(z), ATTR(1, -1));
    EXPECT("reshape: [3,4] has 12 elements and [5] has 5; the counts must be equal", OP_reshape,
           REFS(x), ATTR(1, 5));
    EXPECT("reshape: [3,4] has 12 elements; axis 1 of [5,-1] cannot be inferred from them",
           OP_reshape, REFS(x), ATTR(2, 5, -1));
    EXPECT("reshape: shape [-1,-1] has -1 on axes 0 and 1; only one size can be found",
           OP_reshape, REFS(x), ATTR(2, -1, -1));
    EXPECT("f32[4, 3]", OP_permute, REFS(x), ATTR(2, -1, 0));
    EXPECT("permute: axis 1 of [3,4] is named twice", OP_permute, REFS(x), ATTR(2, 1, 1));
    EXPECT("f32[2, 3, 4]", OP_broadcast, REFS(x), ATTR(3, 2, 3, 4));
    EXPECT("broadcast: [3,4] does not broadcast to [3,5]: axis 1 is 4 and not 1 or 5",
           OP_broadcast, REFS(x), ATTR(2, 3, 5));
    EXPECT("f32[3, 4]", OP_flip, REFS(x), ATTR(2, 1, 0));
    EXPECT("f32[5, 4]", OP_pad, REFS(x), ATTR(2, 0, 0, 2, 2, 0, 0));
    EXPECT("pad: axis 0 is padded by -1 and 0; use slice to take elements away", OP_pad, REFS(x),
           ATTR(2, -1, 0, 2, 0, 0, 0));
    EXPECT("f64[3, 6]", OP_concat, REFS(x, i), ATTR(-1));
    EXPECT("concat: shapes [3,4] and [0,5] differ on axis 1; only axis 0 may differ", OP_concat,
           REFS(x, z), ATTR(0));
    EXPECT("reshape: shape [2147483647,2147483647,2147483647] is too large to address", OP_reshape,
           REFS(z), ATTR(3, 2147483647, 2147483647, 2147483647));
    EXPECT("f32[600]", OP_concat, (ref[]){input(g, DT_f32, 1, 597), input(g, DT_f32, 1, 1),
           input(g, DT_f32, 1, 0), input(g, DT_f32, 1, 1), input(g, DT_f32, 1, 1)}, 5, ATTR(0));
}

static void
expect_slice(int64_t start, int64_t stop, int64_t step, const char *shape, int64_t a, int64_t b,
             int64_t c)
{
    ref x = input(g, DT_f32, 1, 10), r;
    cr_expect_str_eq(built(g, &r, OP_slice, REFS(x), ATTR(1, start, 1, stop, 1, step)), shape);
    if (r.i) {
        const int64_t *v = graph_attr(g, r);
        cr_expect(v[1] == a && v[3] == b && v[5] == c, "%lld:%lld:%lld gives %lld:%lld:%lld",
                  (long long)start, (long long)stop, (long long)step, (long long)v[1],
                  (long long)v[3], (long long)v[5]);
    }
}

Test(infer, slices)
{
    expect_slice(0, 10, 1, "f32[10]", 0, 10, 1);
    expect_slice(0, INT64_MAX, 3, "f32[4]", 0, 10, 3);
    expect_slice(1, 9, 3, "f32[3]", 1, 8, 3);
    expect_slice(-3, -1, 1, "f32[2]", 7, 9, 1);
    expect_slice(-1, -1, -1, "f32[10]", 9, -1, -1);
    expect_slice(8, 0, -3, "f32[3]", 8, 1, -3);
    expect_slice(5, 5, 1, "f32[0]", 0, 0, 1);
    expect_slice(7, 2, 1, "f32[0]", 0, 0, 1);
    expect_slice(3, 9, INT64_MAX, "f32[1]", 3, 4, 1);
    expect_slice(9, -1, INT64_MIN, "f32[1]", 9, 10, 1);
    expect_slice(INT64_MIN, INT64_MIN, 1, "f32[0]", 0, 0, 1);
    expect_slice(0, 5, 0, "slice: the step of axis 0 is 0; use 1 for every element", 0, 0, 0);
    expect_slice(9, -2, -1, "slice: axis 0 stops at -2 with a negative step; use -1 for past the "
                            "front", 0, 0, 0);
}

Test(infer, indexing)
{
    ref x = input(g, DT_f32, 3, 2, 5, 3), i = input(g, DT_i32, 2, 4, 6), r;
    ref along = input(g, DT_u8, 3, 2, 7, 3), u = input(g, DT_u64, 1, 3), f = input(g, DT_f32, 1, 3);
    EXPECT("f32[2, 4, 6, 3]", OP_take, REFS(x, i), ATTR(1));
    EXPECT("f32[2, 5]", OP_take, REFS(x, input(g, DT_i64, 0)), ATTR(-1));
    EXPECT("f32[2, 7, 3]", OP_take_along, REFS(x, along), ATTR(1));
    EXPECT("take: the index has dtype u64; cast it to i64", OP_take, REFS(x, u), ATTR(0));
    EXPECT("take: the index has dtype f32; cast it to i64", OP_take, REFS(x, f), ATTR(0));
    EXPECT("take_along: shapes [2,5,3] and [4,6] have different ranks; reshape one", OP_take_along,
           REFS(x, i),
           ATTR(0));
    EXPECT("take_along: shapes [2,5,3] and [2,7,3] differ on axis 1; only axis 0 may differ",
           OP_take_along, REFS(x, along), ATTR(0));
    EXPECT("i64[2, 3]", OP_iota, NONE, ATTR(2, 2, 3, -1));
    EXPECT("iota: axis 0 of a scalar; a scalar has no axes", OP_iota, NONE, ATTR(0, 0));
    EXPECT("iota: the result's axis 0 would be -2", OP_iota, NONE, ATTR(1, -2, 0));
    built(g, &r, OP_iota, NONE, ATTR(2, 2, 3, -1));
    cr_expect_eq(graph_attr(g, r)[3], 1);
}

Test(infer, orders)
{
    ref x = input(g, DT_f16, 2, 4, 3), s = input(g, DT_f32, 0), z = input(g, DT_i8, 2, 0, 5), r;
    EXPECT("f16[4, 3]", OP_sort, REFS(x), ATTR(-1, 0));
    EXPECT("i64[4, 3]", OP_argsort, REFS(x), ATTR(0, 7));
    EXPECT("f16[4, 2]", OP_topk, REFS(x), ATTR(2, 1, 1));
    EXPECT("i64[0, 3]", OP_argtopk, REFS(x), ATTR(0, -2, 0));
    EXPECT("i8[0, 5]", OP_sort, REFS(z), ATTR(0, 0));
    EXPECT("topk: k is 1, and axis 0 of [0,5] has 0 elements; use 0 to 0", OP_topk, REFS(z),
           ATTR(1, 0, 0));
    EXPECT("argtopk: k is 4, and axis 1 of [4,3] has 3 elements; use 0 to 3", OP_argtopk, REFS(x),
           ATTR(4, -1, 0));
    EXPECT("sort: axis 0 of a scalar; a scalar has no axes", OP_sort, REFS(s), ATTR(0, 0));
    built(g, &r, OP_topk, REFS(x), ATTR(2, -1, 5));
    cr_expect_eq(graph_attr(g, r)[1], 1);
    cr_expect_eq(graph_attr(g, r)[2], 1);
}

Test(infer, contractions_and_composites)
{
    ref a = input(g, DT_f32, 3, 5, 2, 3), b = input(g, DT_f16, 2, 3, 4), v = input(g, DT_f32, 1, 3);
    ref t = input(g, DT_i64, 1, 2), x = input(g, DT_f16, 2, 2, 3), e = input(g, DT_i32, 2, 5, 0);
    ref c = input(g, DT_f32, 3, 4, 3, 6), r;
    int64_t eps = (int64_t)scalar_from_double(DT_f64, 1e-5);
    EXPECT("f32[5, 2, 4]", OP_matmul, REFS(a, b), NONE);
    EXPECT("i32[5, 5]", OP_matmul, REFS(e, input(g, DT_i32, 2, 0, 5)), NONE);
    EXPECT("matmul: shapes [5,2,3] and [3]; both need at least two axes, reshape vectors to [1,K] "
           "or [K,1]", OP_matmul, REFS(a, v), NONE);
    EXPECT("matmul: shapes [3,4] and [2,3]: the last axis of the first is 4 and the axis before "
           "the last of the second is 2; they must be equal, perhaps permute one", OP_matmul,
           REFS(b, x), NONE);
    EXPECT("matmul: batch shapes [5] and [4] do not broadcast: axis 0 is 5 and 4; make them equal "
           "or 1", OP_matmul, REFS(a, c), NONE);
    EXPECT("f16[2, 3]", OP_softmax, REFS(x), ATTR(-1));
    built(g, &r, OP_softmax, REFS(input(g, DT_f32, 2, 5, 0)), ATTR(1));
    cr_expect_eq(graph_node(g, r)->op, OP_input, "nothing to normalise");
    EXPECT("f32[2, 3]", OP_layer_norm, REFS(x, v, v), ATTR(eps));
    EXPECT("layer_norm: bias has shape [2]; the last axis of [2,3] asks for [3]", OP_layer_norm,
           REFS(x, v, t), ATTR(eps));
    EXPECT("rms_norm: eps is -1; it must not be negative", OP_rms_norm, REFS(x, v),
           ATTR((int64_t)scalar_from_double(DT_f64, -1)));
    EXPECT("f32[]", OP_cross_entropy, REFS(x, t), NONE);
    EXPECT("cross_entropy: logits [2,3] and targets [3]; they must be [N,C] and [N]",
           OP_cross_entropy, REFS(x, v), NONE);
    EXPECT("cross_entropy: axis 1 of [5,0] is empty: there are no classes", OP_cross_entropy,
           REFS(e, input(g, DT_i64, 1, 5)), NONE);
}

Test(infer, composites_whose_operands_have_roles)
{
    ref x = input(g, DT_f16, 3, 2, 6, 5), w = input(g, DT_f32, 1, 6), v = input(g, DT_f32, 1, 3);
    ref m = input(g, DT_bool, 2, 6, 1), q = input(g, DT_f32, 2, 4, 8);
    ref k = input(g, DT_f32, 2, 9, 8);
    ref wide = input(g, DT_bool, 3, 2, 4, 9), t = input(g, DT_i64, 1, 4);
    int64_t eps = (int64_t)scalar_from_double(DT_f64, 1e-5), zero = 0;
    EXPECT("f16[2, 6, 5]", OP_masked_softmax, REFS(x, m), ATTR(-1));
    EXPECT("masked_softmax: the mask is f32; it must be bool, true where an element counts",
           OP_masked_softmax, REFS(x, w), ATTR(-1));
    EXPECT("f32[2, 6, 5]", OP_group_norm, REFS(x, w, w), ATTR(3, eps));
    EXPECT("group_norm: 4 groups of the 6 channels of [2,6,5]; their number must be a divisor",
           OP_group_norm, REFS(x, w, w), ATTR(4, eps));
    EXPECT("group_norm: bias has shape [3]; the channels of [2,6,5] ask for [6]", OP_group_norm,
           REFS(x, w, v), ATTR(3, eps));
    EXPECT("f32[2, 6, 5]", OP_batch_norm, REFS(x, w, w, w, w), ATTR(eps));
    EXPECT("batch_norm: var has shape [3]; the channels of [2,6,5] ask for [6]", OP_batch_norm,
           REFS(x, w, v, w, w), ATTR(eps));
    EXPECT("batch_norm: shape [6]; [N,C,…] is needed, with the channels on axis 1", OP_batch_norm,
           REFS(w, w, w, w, w), ATTR(eps));
    EXPECT("f32[4, 8]", OP_attention, REFS(q, k, k), ATTR(zero, 1));
    EXPECT("attention: q [4,8], k [9,8] and v [4,8]; they must be [...,T,D], [...,S,D] and "
           "[...,S,E]", OP_attention, REFS(q, k, q), ATTR(zero, 0));
    EXPECT("masked_attention: the mask [2,4,9] is larger than the scores [4,9]",
           OP_masked_attention,
           REFS(q, k, k, wide), ATTR(zero));
    EXPECT("f32[4, 8]", OP_rope, REFS(q, input(g, DT_f32, 2, 4, 4), input(g, DT_f32, 1, 4)),
           ATTR(0));
    EXPECT("rope: shape [2,6,5]; the last axis must have an even size", OP_rope, REFS(x, w, w),
           ATTR(0));
    EXPECT("rope: half of x, cos and sin of shapes [4,4], [6] and [6] do not broadcast: axis -1 is "
           "4 and 6; make them equal or 1", OP_rope, REFS(q, w, w), ATTR(0));
    EXPECT("f32[]", OP_nll_loss, REFS(q, t), NONE);
    EXPECT("nll_loss: log-probabilities [4,8] and targets [6]; they must be [N,C] and [N]",
           OP_nll_loss, REFS(q, w), NONE);
}

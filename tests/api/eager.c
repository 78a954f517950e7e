// eager.c: eager and lazy give the same bits, op by op and for programs; views alias; dtypes of
// weak scalars; dims.
#include "api.h"

#include "frontend/call.h"

#include <stdio.h>

static const float numbers[24] = {0.5f,  -1, 2,  -3.25f, 4, 5,    -6, 7, 8.5f,   -9, 10, 0.125f,
                                  -0.0f, 1,  -2, 3,      9, 1.5f, -7, 2, -0.75f, 6,  11, -12};

// A tensor of dtype d and shape [2,3,4] (or less) made of small numbers.
static fc_tensor
operand(fc_context *ctx, fc_dtype d)
{
    fc_tensor x = fc_from_host(ctx, FC_F32, numbers, FC_SHAPE(2, 3, 4));
    return d == FC_F32 ? x : fc_cast(x, d);
}

// The bytes of a result, or why there is none.
struct result {
    fc_status status;
    fc_dtype dtype;
    size_t n;
    unsigned char bytes[4096];
};

static void
read_result(fc_context *ctx, fc_tensor t, struct result *r)
{
    r->dtype = fc_dtype_of(t);
    r->n = fc_valid(t) ? (size_t)fc_count(t) * fc_dtype_size(r->dtype) : 0;
    cr_assert_leq(r->n, sizeof r->bytes);
    r->status = fc_valid(t) ? fc_read(t, r->bytes, r->n) : fc_error_code(ctx);
    fc_error_clear(ctx);
}

static void
expect_same(const struct result *a, const struct result *b, const char *what)
{
    cr_assert_eq(a->status, b->status, "%s: %d and %d", what, a->status, b->status);
    cr_assert_eq(a->dtype, b->dtype, "%s", what);
    cr_assert_eq(a->n, b->n, "%s", what);
    cr_assert(!memcmp(a->bytes, b->bytes, a->n), "%s: eager and lazy differ", what);
}

// Every elementwise row of the table, over dtypes.
Test(eager, elementwise_ops_equal_lazy)
{
    static struct result r[2];
    fc_context *ctx[2] = {new_context(FC_LAZY), new_context(FC_EAGER)};
    static const fc_dtype dtypes[] = {FC_F32, FC_I32, FC_BOOL};
    for (uint16_t op = 1; op < OP_COUNT; op++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            if (op_table[op].rule == DTR_OWN || op_table[op].rule == DTR_CAST)
                continue;
            for (int m = 0; m < 2; m++) {
                fc_scope_begin(ctx[m]);
                fc_tensor x = operand(ctx[m], dtypes[k]), in[3] = {x, fc_flip(x, FC_LIST(2)), x};
                if (op_table[op].rule == DTR_WHERE)
                    in[0] = fc_cast(x, FC_BOOL);
                fc_tensor y = call_op(ctx[m], op, in, op_table[op].arity, NULL, 0, "eager.c", 1);
                read_result(ctx[m], y, &r[m]);
                fc_scope_end(ctx[m]);
            }
            expect_same(&r[0], &r[1], op_name(op));
            cr_assert(r[0].status == FC_OK || r[0].status == FC_INVALID, "%s on %s: %d",
                      op_name(op), fc_dtype_name(dtypes[k]), r[0].status);
        }
    fc_context_free(ctx[0]);
    fc_context_free(ctx[1]);
}

static fc_tensor
program(fc_context *ctx, int which)
{
    fc_tensor x = operand(ctx, FC_F32), w = fc_slice_axis(x, 1, 0, 2, 1);
    fc_tensor index = fc_from_host(ctx, FC_I64, ((int64_t[]){-1, 0, 2}), FC_SHAPE(3));
    switch (which) {
    case 0:
        return fc_softmax(x, -1);
    case 1:
        return fc_log_softmax(x, 0);
    case 2:
        return fc_sum(fc_permute(x, FC_LIST(2, 0, 1)), FC_LIST(0, 2), true);
    case 3:
        return fc_argmax(fc_flip(x, FC_LIST(1)), FC_LIST(1), false);
    case 4:
        return fc_mean(x, FC_ALL, false);
    case 5:
        return fc_var(x, FC_LIST(2), false, 1);
    case 6:
        return fc_concat(((fc_tensor[]){x, w, fc_neg(x)}), 3, 1);
    case 7:
        return fc_pad(fc_transpose(x, 0, 2), 1.5, FC_LIST(1, 0, 2), FC_LIST(0, 1, 0));
    case 8:
        return fc_take(x, index, 1);
    case 9:
        return fc_reshape(fc_permute(x, FC_LIST(1, 0, 2)), FC_SHAPE(6, -1));
    case 10:
        return fc_broadcast(fc_slice_axis(x, 0, 1, 2, 1), FC_SHAPE(2, 2, 3, 4));
    case 11:
        return fc_slice(x, FC_LIST(1, 2, 3), FC_LIST(-1, -1, -1), FC_LIST(-1, -2, -3));
    case 12:
        return fc_layer_norm(x, fc_ones(ctx, FC_F32, FC_SHAPE(4)),
                             fc_zeros(ctx, FC_F32, FC_SHAPE(4)), 1e-5);
    case 13:
        return fc_gelu(fc_add(x, fc_transpose(fc_reshape(x, FC_SHAPE(2, 4, 3)), 1, 2)));
    case 14:
        return fc_iota(ctx, FC_SHAPE(3, 5), 1);
    case 15:
        return fc_squeeze(fc_unsqueeze(fc_logsumexp(x, FC_LIST(-1), false), 1), 1);
    case 16:
        return fc_matmul(fc_flip(x, FC_LIST(2)), fc_transpose(x, 1, 2));
    case 17:
        return fc_where(fc_gt_scalar(x, 0), fc_sqrt(x), fc_scalar(ctx, -1));
    case 18:
        return fc_slice_axis(fc_flip(x, FC_LIST(0, 1, 2)), 2, FC_END, FC_END, -2);
    case 19:
        return fc_clamp(x, fc_scalar(ctx, -1.5), fc_scalar(ctx, 2));
    }
    return (fc_tensor){0};
}

Test(eager, programs_equal_lazy)
{
    static struct result r[2];
    fc_context *ctx[2] = {new_context(FC_LAZY), new_context(FC_EAGER)};
    for (int which = 0; which < 20; which++) {
        for (int m = 0; m < 2; m++) {
            fc_scope_begin(ctx[m]);
            fc_tensor y = program(ctx[m], which);
            cr_assert(fc_valid(y), "%d: %s", which, fc_error(ctx[m]));
            read_result(ctx[m], y, &r[m]);
            fc_scope_end(ctx[m]);
        }
        char what[16];
        snprintf(what, sizeof what, "program %d", which);
        cr_assert_eq(r[0].status, FC_OK, "%s", what);
        expect_same(&r[0], &r[1], what);
    }
    fc_context_free(ctx[0]);
    fc_context_free(ctx[1]);
}

// Rounding after every op gives the bits of op by op.
Test(eager, strict_lazy_halves_equal_eager)
{
    static struct result r[2][2]; // dtype, mode
    for (int k = 0; k < 2; k++) {
        fc_options o = {.size = sizeof o, .threads = 1, .mode = k, .strict = true};
        fc_context *ctx;
        cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
        for (fc_dtype d = FC_F16; d <= FC_BF16; d++) {
            fc_tensor x = operand(ctx, d), y = fc_mul_scalar(fc_add(x, fc_exp(x)), 0.3);
            read_result(ctx, fc_sub(fc_mul(y, fc_tanh(x)), fc_div(x, fc_add_scalar(y, 1.0))),
                        &r[d == FC_BF16][k]);
            cr_assert_eq(r[d == FC_BF16][k].status, FC_OK);
            cr_assert_eq(r[d == FC_BF16][k].dtype, d);
        }
        fc_context_free(ctx);
    }
    expect_same(&r[0][0], &r[0][1], "strict f16");
    expect_same(&r[1][0], &r[1][1], "strict bf16");
}

Test(eager, views_run_nothing_and_share_memory)
{
    fc_context *ctx = new_context(FC_EAGER);
    fc_tensor x = operand(ctx, FC_F32);
    fc_statistics before = stats(ctx);
    fc_tensor t = fc_permute(x, FC_LIST(2, 1, 0)), f = fc_flip(t, FC_LIST(0, 2));
    fc_tensor s = fc_slice_axis(f, 1, 2, 0, -1), b = fc_broadcast(s, FC_SHAPE(5, 4, 2, 2));
    fc_tensor r = fc_reshape(x, FC_SHAPE(6, 4)), same = fc_reshape(x, FC_SHAPE(2, 3, 4));
    fc_tensor split = fc_reshape(fc_slice_axis(r, 1, 0, 2, 1), FC_SHAPE(2, 3, 2));
    cr_assert(fc_valid(b) && fc_valid(same) && fc_valid(split), "%s", fc_error(ctx));
    cr_assert_eq(stats(ctx).kernels, before.kernels);
    cr_assert_eq(stats(ctx).memory, before.memory);
    EXPECT(ctx, split, 0.5f, -1, 4, 5, 8.5f, -9, -0.0f, 1, 9, 1.5f, -0.75f, 6);
    fc_release(x); // the views keep the memory
    EXPECT(ctx, s, -12, 0.125f, 2, 7, 11, 10, -7, -6, 6, -9, 1.5f, 5, -0.75f, 8.5f, 9, 4);
    fc_tensor copied = fc_reshape(t, FC_SHAPE(24)); // no strides for this one: a copy
    cr_assert_gt(stats(ctx).memory, before.memory);
    cr_assert(fc_valid(copied), "%s", fc_error(ctx));
    fc_context_free(ctx);
}

Test(eager, one_op_is_one_kernel)
{
    fc_context *ctx = new_context(FC_EAGER);
    fc_tensor x = operand(ctx, FC_F32);
    int64_t kernels = stats(ctx).kernels;
    fc_tensor y = fc_softmax(fc_exp(x), 2);
    cr_assert_eq(stats(ctx).kernels, kernels + 2);
    int64_t misses = stats(ctx).plan_misses;
    for (int i = 0; i < 10; i++)
        fc_release(fc_softmax(y, 2));
    cr_assert_leq(stats(ctx).plan_misses, misses + 1); // found again, whatever the data
    cr_assert_eq(stats(ctx).kernels, kernels + 12);
    cr_assert_eq(stats(ctx).pending, 0);
    fc_context_free(ctx);
}

Test(eager, an_index_error_comes_out_at_the_next_synchronising_call)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = operand(ctx, FC_F32);
        fc_tensor i = fc_from_host(ctx, FC_I64, ((int64_t[]){1, 3}), FC_SHAPE(2));
        fc_tensor y = fc_take(x, i, 1);
        cr_assert(fc_valid(y));
        cr_assert_eq(fc_error_code(ctx), FC_OK);
        cr_assert_eq(fc_eval(ctx, &y, 1), FC_INDEX);
        EXPECT_ERROR(ctx, FC_INDEX, "take");
        cr_assert_eq(fc_eval(ctx, &y, 1), FC_OK); // told once; the element reads as 0
        float out[16];
        cr_assert_eq(fc_read(y, out, sizeof out), FC_OK);
        cr_assert_eq(out[4], 0);
        fc_context_free(ctx);
    }
}

Test(eager, weak_scalars_take_the_dtype_of_their_company)
{
    fc_context *ctx = new_context(FC_LAZY);
    static const struct {
        fc_dtype strong, with_int, with_float;
    } rows[] = {{FC_F16, FC_F16, FC_F16}, {FC_BF16, FC_BF16, FC_BF16}, {FC_F64, FC_F64, FC_F64},
                {FC_U8, FC_U8, FC_F64},   {FC_I32, FC_I32, FC_F64},    {FC_BOOL, FC_I64, FC_F64}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fc_tensor x = fc_ones(ctx, rows[k].strong, FC_SHAPE(2));
        cr_assert_eq(fc_dtype_of(fc_add_scalar(x, 1)), rows[k].with_int);
        cr_assert_eq(fc_dtype_of(fc_add_scalar(x, 1.5)), rows[k].with_float);
        cr_assert_eq(fc_dtype_of(fc_add(fc_scalar(ctx, 1.5f), x)), rows[k].with_float);
    }
    fc_tensor both = fc_add(fc_scalar(ctx, 1), fc_scalar(ctx, 2.5));
    cr_assert_eq(fc_dtype_of(both), FC_F64);
    fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(2));
    cr_assert_eq(fc_dtype_of(fc_mul(x, both)), FC_F32); // a sum of weak ones is weak
    EXPECT(ctx, fc_mul(x, both), 3.5f, 3.5f);
    cr_assert_eq(fc_dtype_of(fc_mul(x, fc_lt(fc_scalar(ctx, 1), fc_scalar(ctx, 2)))), FC_F32);
    cr_assert_eq(fc_dtype_of(fc_where(fc_scalar(ctx, 1), fc_scalar(ctx, 2), x)), FC_F32);
    // An index beside a tensor of floats stays an integer.
    cr_assert(fc_valid(fc_take(x, fc_scalar(ctx, 1), 0)), "%s", fc_error(ctx));
    int64_t big;
    fc_tensor m = fc_full(ctx, FC_I64, INT64_MAX, FC_SHAPE(1));
    cr_assert_eq(fc_item_int(m, &big), FC_OK, "%s", fc_error(ctx));
    cr_assert_eq(big, INT64_MAX);
    cr_assert_eq(fc_item_int(fc_sub_scalar(m, INT64_MAX - 1), &big), FC_OK);
    cr_assert_eq(big, 1);
    fc_context_free(ctx);
}

Test(eager, dims)
{
    fc_context *ctx = new_context(FC_LAZY), *other = new_context(FC_LAZY);
    fc_dim n = fc_dim_named(ctx, "N", 3), k = fc_dim_mul(fc_dim_add(n, fc_n(1)), fc_n(2));
    cr_assert_eq(fc_dim_value(n), 3);
    cr_assert_eq(fc_dim_value(k), 8);
    cr_assert_eq(fc_dim_value(fc_dim_add(fc_n(2), fc_n(5))), 7);
    cr_assert_eq(n.v, fc_dim_named(ctx, "N", 3).v);
    fc_dim n5 = fc_dim_named(ctx, "N", 5);
    cr_assert_eq(fc_dim_value(n5), 5);
    cr_assert_eq(fc_dim_value(n), 3);
    cr_assert_eq(fc_dim_value(fc_dim_named(ctx, "N_7", 9)), 9);
    cr_assert_eq(fc_dim_value(fc_dim_named(ctx, "N", 7)), 7);
    fc_dim foreign = fc_dim_named(other, "N", 3);
    cr_assert_not(fc_dim_valid(fc_dim_add(n, foreign)));
    cr_assert_not(fc_dim_valid(fc_dim_mul(fc_n(INT64_C(1) << 40), fc_n(INT64_C(1) << 40))));
    cr_assert_not(fc_dim_valid(fc_dim_add(fc_dim_add(n, foreign), n)));
    cr_assert_eq(fc_dim_value(fc_dim_add(n, foreign)), -1);
    cr_assert_not(fc_valid(fc_zeros(ctx, FC_F32, FC_DIMS(foreign))));
    EXPECT_ERROR(ctx, FC_INVALID, "dim");

    fc_tensor x = fc_from_host(ctx, FC_F32, numbers, FC_DIMS(n, fc_n(2)));
    cr_assert_eq(fc_shape(x, 0).v, n.v);
    cr_assert_eq(fc_shape(x, -1).v, 2);
    cr_assert_not(fc_dim_valid(fc_shape(x, 2)));
    fc_tensor flat = fc_reshape(fc_add(x, x), FC_DIMS(fc_dim_mul(n, fc_n(2))));
    EXPECT(ctx, flat, 1, -2, 4, -6.5f, 8, 10);
    cr_assert_eq(fc_shape(fc_transpose(x, 0, 1), 1).v, n.v);
    fc_context_free(other);
    fc_context_free(ctx);
}

// misuse.c: whatever the caller does wrong, a status with words comes back, and nothing aborts.
#include "api.h"

#include <math.h>
#include <stdint.h>

static fc_tensor
vector(fc_context *ctx, int64_t n)
{
    return fc_full(ctx, FC_F32, 1.0, FC_SHAPE(n));
}

Test(misuse, first_error_names_op_shapes_and_place)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor a = vector(ctx, 3), b = vector(ctx, 4);
    fc_tensor bad = fc_relu(fc_mul(fc_add(a, b), a));
    cr_assert_not(fc_valid(bad));
    float out[3];
    cr_assert_eq(fc_read(bad, out, sizeof out), FC_INVALID); // the cause, not "invalid handle"
    fc_permute(a, FC_LIST(5)); // a later error does not hide the first
    EXPECT_ERROR(ctx, FC_INVALID, "misuse.c:", "add", "[3]", "[4]");
    cr_assert_str_eq(fc_error(ctx), "");
    cr_assert_eq(fc_error_code(ctx), FC_OK);
    EXPECT(ctx, fc_add(a, a), 2, 2, 2); // the context goes on
    fc_context_free(ctx);
}

Test(misuse, null_stale_and_foreign_handles)
{
    fc_context *ctx = new_context(FC_LAZY), *other = new_context(FC_LAZY);
    fc_tensor null = {0}, a = vector(ctx, 3), stale = vector(ctx, 3), foreign = vector(other, 3);
    cr_assert_eq(fc_release(stale), FC_OK);
    float out[3];
    double x;
    const void *p;
    cr_assert_eq(fc_read(null, out, sizeof out), FC_HANDLE);
    cr_assert_eq(fc_item(null, &x), FC_HANDLE);
    cr_assert_eq(fc_data(null, &p), FC_HANDLE);
    cr_assert_eq(fc_release(null), FC_HANDLE);
    cr_assert_not(fc_valid(fc_add(null, null)));
    cr_assert_not(fc_valid(fc_keep(null)));
    cr_assert_not(fc_valid(fc_concat(NULL, 0, 0)));
    cr_assert_eq(fc_rank(null), -1);
    cr_assert_eq(fc_count(null), -1);
    cr_assert_eq(fc_dtype_of(null), FC_DTYPE_NONE);
    cr_assert_not(fc_dim_valid(fc_shape(null, 0)));

    cr_assert_eq(fc_release(stale), FC_HANDLE);
    EXPECT_ERROR(ctx, FC_HANDLE, "fc_release");
    cr_assert_not(fc_valid(stale));
    cr_assert_not(fc_valid(fc_add(a, stale)));
    EXPECT_ERROR(ctx, FC_HANDLE, "misuse.c:", "add", "operand 2");
    cr_assert_not(fc_valid(fc_add(a, foreign)));
    EXPECT_ERROR(ctx, FC_HANDLE, "operand 2");
    cr_assert_not(fc_valid(fc_add(null, a)));
    EXPECT_ERROR(ctx, FC_HANDLE, "operand 1");
    cr_assert_eq(fc_eval(ctx, &foreign, 1), FC_HANDLE);
    EXPECT_ERROR(ctx, FC_HANDLE, "fc_eval");

    fc_context_free(other);
    cr_assert_not(fc_valid(foreign));
    cr_assert_eq(fc_read(foreign, out, sizeof out), FC_HANDLE);
    fc_context_free(ctx);
    cr_assert_not(fc_valid(a));
    cr_assert_eq(fc_release(a), FC_HANDLE);
}

Test(misuse, a_reused_slot_has_another_handle)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor a = vector(ctx, 3);
    fc_release(a);
    for (int i = 0; i < 1000; i++) {
        fc_tensor b = vector(ctx, 3);
        cr_assert_not(fc_valid(a));
        cr_assert(fc_valid(b));
        fc_release(b);
    }
    fc_context_free(ctx);
}

Test(misuse, a_reused_context_number_does_not_revive_handles)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor a = vector(ctx, 3);
    fc_context_free(ctx);
    for (int i = 0; i < 20; i++) {
        fc_context *next = new_context(FC_LAZY);
        fc_tensor b = vector(next, 3);
        cr_assert_not(fc_valid(a));
        cr_assert(fc_valid(b));
        fc_context_free(next);
    }
}

Test(misuse, random_handles_are_invalid)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor a = vector(ctx, 3);
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        fc_tensor t = {i % 2 ? x : a.id ^ (1ull << (x % 64))};
        cr_assert_not(fc_valid(t));
        cr_assert_not(fc_valid(fc_add(a, t)));
        cr_assert_not(fc_valid(fc_neg(t)));
    }
    fc_error_clear(ctx);
    cr_assert(fc_valid(a));
    fc_context_free(ctx);
}

Test(misuse, no_context)
{
    fc_tensor t = fc_scalar(NULL, 1);
    cr_assert_not(fc_valid(t));
    cr_assert_not(fc_valid(fc_zeros(NULL, FC_F32, FC_SHAPE(2))));
    cr_assert_not(fc_valid(fc_from_host(NULL, FC_F32, &t, FC_SHAPE(1))));
    cr_assert_not(fc_valid(fc_iota(NULL, FC_SHAPE(2), 0)));
    cr_assert_eq(fc_eval(NULL, NULL, 0), FC_HANDLE);
    cr_assert_eq(fc_scope_begin(NULL), FC_HANDLE);
    cr_assert_eq(fc_scope_end(NULL), FC_HANDLE);
    cr_assert_eq(fc_stats(NULL, NULL), FC_HANDLE);
    cr_assert_not(fc_dim_valid(fc_dim_named(NULL, "N", 3)));
    fc_error_clear(NULL);
    cr_assert_str_not_empty(fc_error(NULL));
    fc_context_free(NULL);
}

Test(misuse, options)
{
    fc_context *ctx = NULL;
    cr_assert_eq(fc_context_new(NULL, NULL), FC_INVALID);
    const struct {
        fc_options o;
        const char *words;
    } wrong[] = {
        {{.size = 0}, "fc_options.size is 0; set it to sizeof(fc_options)"},
        {{.size = 3}, "fc_options.size is 3; set it to sizeof(fc_options)"},
        {{.size = sizeof(fc_options), .mode = 7}, "mode is 7; it is FC_LAZY (0) or FC_EAGER (1)"},
        {{.size = sizeof(fc_options), .compile = 2}, "compile is 2; it is FC_TIERED (0)"},
        {{.size = sizeof(fc_options), .threads = -4}, "fc_options.threads is -4; 0 is the default"},
        {{.size = sizeof(fc_options), .flush_bytes = -1}, "fc_options.flush_bytes is -1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(fc_context_new(&wrong[i].o, &ctx), FC_INVALID);
        cr_assert(strstr(fc_error(ctx), wrong[i].words), "%s", fc_error(ctx));
        cr_assert_not(fc_valid(fc_zeros(ctx, FC_F32, FC_SHAPE(2))));
        fc_context_free(ctx);
    }
    fc_options o = (fc_options){.size = sizeof o, .device = "abacus"};
    cr_assert_neq(fc_context_new(&o, &ctx), FC_OK);
    cr_assert_not_null(ctx); // good for the words only
    cr_assert(strstr(fc_error(ctx), "abacus"), "%s", fc_error(ctx));
    cr_assert_not(fc_valid(fc_zeros(ctx, FC_F32, FC_SHAPE(2))));
    float x = 1;
    cr_assert_not(fc_valid(fc_from_host(ctx, FC_F32, &x, FC_SHAPE(1))));
    fc_statistics s = {.size = sizeof s};
    cr_assert_eq(fc_stats(ctx, &s), FC_OK);
    fc_context_free(ctx);
    // A caller with an older, shorter struct.
    o = (fc_options){.size = offsetof(fc_options, strict)};
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    s.size = offsetof(fc_statistics, bytes);
    s.bytes = 77;
    cr_assert_eq(fc_stats(ctx, &s), FC_OK);
    cr_assert_eq(s.bytes, 77);
    fc_context_free(ctx);
}

Test(misuse, arguments_of_constructors)
{
    fc_context *ctx = new_context(FC_LAZY);
    float data[4] = {1, 2, 3, 4};
    fc_from_host(ctx, (fc_dtype)99, data, FC_SHAPE(4));
    EXPECT_ERROR(ctx, FC_INVALID, "fc_from_host", "99");
    fc_from_host(ctx, FC_F32, data, FC_SHAPE(-1));
    EXPECT_ERROR(ctx, FC_INVALID, "dim 0");
    fc_from_host(ctx, FC_F32, NULL, FC_SHAPE(4));
    EXPECT_ERROR(ctx, FC_INVALID, "NULL");
    fc_from_host(ctx, FC_F32, data, FC_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 4));
    EXPECT_ERROR(ctx, FC_INVALID, "rank 9");
    fc_from_host(ctx, FC_F32, data, NULL, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "rank 2");
    fc_from_host(ctx, FC_F32, data, FC_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40));
    EXPECT_ERROR(ctx, FC_INVALID, "too large");
    fc_full(ctx, FC_I8, 300, FC_SHAPE(2));
    EXPECT_ERROR(ctx, FC_INVALID, "300", "i8");
    fc_full(ctx, FC_U8, -1, FC_SHAPE(2));
    EXPECT_ERROR(ctx, FC_INVALID, "-1", "u8");
    fc_full(ctx, FC_DTYPE_NONE, 1, FC_SHAPE(2));
    EXPECT_ERROR(ctx, FC_INVALID, "dtype");
    fc_dim_named(ctx, "3x", 3);
    EXPECT_ERROR(ctx, FC_INVALID, "3x");
    fc_dim_named(ctx, NULL, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "identifier");
    fc_dim_named(ctx, "N", -3);
    EXPECT_ERROR(ctx, FC_INVALID, "-3");
    fc_context_free(ctx);
}

Test(misuse, arguments_of_ops)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_zeros(ctx, FC_F32, FC_SHAPE(2, 3)), i = fc_zeros(ctx, FC_I32, FC_SHAPE(2, 3));
    fc_sum(x, FC_LIST(2), false);
    EXPECT_ERROR(ctx, FC_INVALID, "sum", "2", "misuse.c:");
    fc_sum(x, FC_LIST(0, 0), false);
    EXPECT_ERROR(ctx, FC_INVALID, "sum");
    fc_sum(x, FC_LIST(0, 1, 2, 3, 4, 5, 6, 7, 8), false);
    EXPECT_ERROR(ctx, FC_INVALID, "sum");
    fc_sum(x, FC_LIST(0) - 2, false);
    EXPECT_ERROR(ctx, FC_INVALID, "sum");
    fc_permute(x, NULL, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "permute", "NULL");
    fc_reshape(x, FC_SHAPE(4, -1));
    EXPECT_ERROR(ctx, FC_INVALID, "reshape", "6");
    fc_reshape(x, FC_SHAPE(-1, -1));
    EXPECT_ERROR(ctx, FC_INVALID, "reshape");
    fc_reshape(x, NULL, 3);
    EXPECT_ERROR(ctx, FC_INVALID, "reshape");
    fc_cast(x, (fc_dtype)-1);
    EXPECT_ERROR(ctx, FC_INVALID, "cast", "dtype");
    fc_shl(x, x);
    EXPECT_ERROR(ctx, FC_INVALID, "shl");
    fc_pad(i, 1e30, FC_LIST(1), FC_LIST(1));
    EXPECT_ERROR(ctx, FC_INVALID, "pad");
    fc_pad(i, INT64_C(1) << 40, FC_LIST(1, 0), FC_LIST(1, 0));
    EXPECT_ERROR(ctx, FC_INVALID, "pad", "i32");
    fc_max_reduce(fc_zeros(ctx, FC_F32, FC_SHAPE(0, 3)), FC_LIST(0), false);
    EXPECT_ERROR(ctx, FC_INVALID, "max_reduce", "0");
    fc_add_scalar(fc_zeros(ctx, FC_U8, FC_SHAPE(2)), 256);
    EXPECT_ERROR(ctx, FC_INVALID, "256", "u8");
    fc_squeeze(x, 7);
    EXPECT_ERROR(ctx, FC_INVALID, "misuse.c:", "squeeze", "axis 7", "-2 to 1");
    fc_squeeze(x, -9);
    EXPECT_ERROR(ctx, FC_INVALID, "squeeze", "axis -9");
    fc_squeeze(x, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "squeeze", "axis 1 of f32[2,3] has size 3");
    fc_squeeze(fc_sum(x, FC_ALL, false), 0);
    EXPECT_ERROR(ctx, FC_INVALID, "squeeze", "scalar");
    fc_unsqueeze(x, 9);
    EXPECT_ERROR(ctx, FC_INVALID, "unsqueeze", "axis 9", "-3 to 2");
    fc_slice_axis(x, 5, 0, 3, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "slice_axis", "axis 5", "-2 to 1");
    fc_slice_axis(x, -3, 0, 3, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "slice_axis", "axis -3");
    fc_transpose(x, 0, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "transpose", "axis 2", "-2 to 1");
    fc_squeeze(x, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "squeeze");
    fc_unsqueeze(x, 4);
    EXPECT_ERROR(ctx, FC_INVALID, "unsqueeze");
    fc_slice_axis(x, 2, 0, 1, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "slice");
    fc_slice_axis(x, 0, 0, 1, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "slice");
    fc_context_free(ctx);
}

Test(misuse, reading)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(2, 3));
    float out[6];
    cr_assert_eq(fc_read(x, out, 5 * sizeof *out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_read", "24", "20");
    cr_assert_eq(fc_read(x, NULL, 6 * sizeof *out), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "NULL");
    double d;
    cr_assert_eq(fc_item(x, &d), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_item", "6");
    cr_assert_eq(fc_item(x, NULL), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_item", "NULL");
    cr_assert_eq(fc_item_int(x, NULL), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_item_int", "NULL");
    cr_assert_eq(fc_data(x, NULL), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_data", "NULL");
    cr_assert_eq(fc_eval(ctx, NULL, 2), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_eval", "2", "NULL");
    cr_assert_eq(fc_eval(ctx, &x, -1), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_eval", "-1");
    cr_assert_eq(fc_eval(ctx, NULL, 0), FC_OK);
    cr_assert_eq(fc_scope_end(ctx), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_scope_end");
    fc_context_free(ctx);
}

Test(misuse, more_memory_than_there_is)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(1 << 20, 1 << 22)), sum;
        if (mode == FC_LAZY) {
            cr_assert_eq(fc_eval(ctx, &x, 1), FC_RESOURCE);
            EXPECT_ERROR(ctx, FC_RESOURCE, "fc_eval", "bytes");
            sum = fc_sum(fc_slice_axis(x, 0, 0, 1, 1), FC_ALL, false);
            double d; // what need not be stored can be computed still
            cr_assert_eq(fc_item(sum, &d), FC_OK, "%s", fc_error(ctx));
            cr_assert_eq(d, 1 << 22);
        } else {
            cr_assert_not(fc_valid(x));
            EXPECT_ERROR(ctx, FC_RESOURCE, ": full: ", "misuse.c:");
        }
        fc_context_free(ctx);
    }
}

static void
count_release(void *user)
{
    ++*(int *)user;
}

Test(misuse, borrowing)
{
    fc_context *ctx = new_context(FC_LAZY);
    float data[8] = {0};
    int released = 0;
    fc_borrow(ctx, FC_F32, (char *)data + 1, FC_SHAPE(4), NULL, count_release, &released);
    EXPECT_ERROR(ctx, FC_INVALID, "aligned");
    cr_assert_eq(released, 1); // at once: the call failed
    fc_borrow(ctx, FC_F32, NULL, FC_SHAPE(4), NULL, count_release, &released);
    EXPECT_ERROR(ctx, FC_INVALID, "NULL");
    cr_assert_eq(released, 2);
    fc_borrow(ctx, FC_F32, data, FC_SHAPE(4), &(int64_t){INT64_MAX}, count_release, &released);
    EXPECT_ERROR(ctx, FC_INVALID, "strides");
    fc_borrow(ctx, FC_F32, data, FC_SHAPE(4), &(int64_t){INT64_MIN}, count_release, &released);
    EXPECT_ERROR(ctx, FC_INVALID, "strides");
    cr_assert_eq(released, 4);
    fc_borrow(NULL, FC_F32, data, FC_SHAPE(4), NULL, count_release, &released);
    cr_assert_eq(released, 5);
    fc_context_free(ctx);
    cr_assert_eq(released, 5);
}

Test(misuse, figures_without_a_size_or_a_place)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_statistics forgotten = {0}, absurd = {.size = 1 << 20};
    cr_assert_eq(fc_stats(ctx, &forgotten), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_stats", "size");
    cr_assert_eq(fc_stats(ctx, &absurd), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_stats", "size");
    cr_assert_eq(fc_stats(ctx, NULL), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_stats", "NULL");
    fc_context_free(ctx);
}

Test(misuse, names)
{
    cr_assert_str_eq(fc_status_name(FC_OK), "FC_OK");
    cr_assert_str_eq(fc_status_name(FC_INDEX), "FC_INDEX");
    cr_assert_str_not_empty(fc_status_words(FC_HANDLE));
    cr_assert_str_not_empty(fc_status_name((fc_status)-5));
    cr_assert_str_not_empty(fc_status_words((fc_status)1000));
    cr_assert_str_eq(fc_dtype_name(FC_BF16), "bf16");
    cr_assert_str_eq(fc_dtype_name((fc_dtype)-1), "none");
    cr_assert_eq(fc_dtype_size(FC_F64), 8);
    cr_assert_eq(fc_dtype_size(FC_BOOL), 1);
    cr_assert_eq(fc_dtype_size((fc_dtype)1000), 0);
    cr_assert_str_eq(fc_version(), FC_VERSION);
}

Test(misuse, a_full_tensor_is_refused_under_its_own_name)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_full(ctx, FC_U8, 256, FC_SHAPE(2));
    EXPECT_ERROR(ctx, FC_INVALID, "misuse.c:", ": full: 256 does not fit in u8");
    fc_full(ctx, FC_F32, 1, FC_SHAPE(2, -3));
    EXPECT_ERROR(ctx, FC_INVALID, ": full: axis 1 of shape [2,-3] is negative");
    fc_full(ctx, (fc_dtype)99, 1, FC_SHAPE(2));
    EXPECT_ERROR(ctx, FC_INVALID, ": full: no such dtype");
    fc_full(ctx, FC_F32, 1, NULL, 2);
    EXPECT_ERROR(ctx, FC_INVALID, ": full: a shape is NULL");
    fc_broadcast(fc_scalar(ctx, 1), FC_SHAPE(-1));
    EXPECT_ERROR(ctx, FC_INVALID, ": broadcast: ");
    fc_context_free(ctx);
}

Test(misuse, dims_of_a_window_are_those_of_its_context)
{
    fc_context *ctx = new_context(FC_LAZY), *other = new_context(FC_LAZY);
    int64_t at = 1;
    fc_tensor x = fc_iota(ctx, FC_SHAPE(4), 0), start = fc_from_host(ctx, FC_I64, &at, FC_SHAPE(1));
    fc_dim two = fc_dim_named(ctx, "two", 2), foreign = fc_dim_named(other, "two", 2);
    EXPECT(ctx, fc_cast(fc_dynamic_slice(x, start, FC_DIMS(two)), FC_F32), 1, 2);
    fc_dynamic_slice(x, start, FC_DIMS(foreign));
    EXPECT_ERROR(ctx, FC_INVALID, ": dynamic_slice: a dim is invalid or of another context");
    fc_dynamic_slice(x, start, FC_DIMS(fc_dim_add(two, foreign)));
    EXPECT_ERROR(ctx, FC_INVALID, ": dynamic_slice: a dim is invalid or of another context");
    fc_context_free(other);
    fc_context_free(ctx);
}

Test(misuse, integers_are_seen_whole)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = vector(ctx, 3), state = fc_rand_state(ctx);
    int64_t large = (int64_t)1 << 32; // 0 in 32 bits
    fc_topk(x, large + 1, 0, true);
    EXPECT_ERROR(ctx, FC_INVALID, "topk: k is 4294967297");
    fc_randint(state, FC_SHAPE(3), 0, 2 * large);
    EXPECT_ERROR(ctx, FC_INVALID, "randint: from 0 to below 8589934592");
    fc_one_hot(fc_cast(x, FC_I32), large << 16, FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "one_hot: ", "too large");
    fc_context_free(ctx);
}

Test(misuse, words_have_the_shape_and_the_fix)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_zeros(ctx, FC_F32, FC_SHAPE(3, 4));
    float f;
    double d;
    cr_assert_eq(fc_read(x, &f, sizeof f), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_read: f32[3,4] has 48 bytes, dst 4");
    cr_assert_eq(fc_item(x, &d), FC_INVALID);
    EXPECT_ERROR(ctx, FC_INVALID, "fc_item: f32[3,4] has 12 elements, not one");
    cr_assert_not(fc_valid(fc_squeeze(x, 1)));
    EXPECT_ERROR(ctx, FC_INVALID, "squeeze: axis 1 of f32[3,4] has size 4");
    cr_assert_not(fc_valid(fc_transpose(x, 0, 2)));
    EXPECT_ERROR(ctx, FC_INVALID, "transpose: axis 2 is out of range for f32[3,4]; use -2 to 1");
    cr_assert_not(fc_valid(fc_slice_axis(x, 5, 0, 1, 1)));
    EXPECT_ERROR(ctx, FC_INVALID, "slice_axis: axis 5 is out of range for f32[3,4]");
    cr_assert_not(fc_valid(fc_reshape(x, FC_SHAPE(-1, -1))));
    EXPECT_ERROR(ctx, FC_INVALID, "[-1,-1] has -1 on axes 0 and 1; only one size can be found");
    fc_context_free(ctx);
}

Test(misuse, a_full_of_what_does_not_fit)
{
    fc_context *ctx = new_context(FC_LAZY);
    static const struct {
        fc_dtype dtype;
        double value;
        bool fits;
    } c[] = {
        {FC_I32, 1.9, false},          {FC_I32, 2.0, true},    {FC_U8, 256.0, false},
        {FC_U8, 255.0, true},          {FC_U8, -1.0, false},   {FC_I8, -128.0, true},
        {FC_I8, 128.0, false},         {FC_I64, 0x1p63, false}, {FC_I64, -0x1p63, true},
        {FC_U64, 0x1p64, false},       {FC_U64, 0x1p63, true}, {FC_I16, (double)NAN, false},
        {FC_I16, (double)INFINITY, false}, {FC_F16, 1e9, true}, {FC_BOOL, 0.5, true},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        fc_tensor x = fc_full(ctx, c[i].dtype, c[i].value, FC_SHAPE(2));
        cr_assert_eq(fc_valid(x), c[i].fits, "%s %g", fc_dtype_name(c[i].dtype), c[i].value);
        if (!c[i].fits)
            EXPECT_ERROR(ctx, FC_INVALID, "full: ", "does not fit in ", fc_dtype_name(c[i].dtype));
    }
    fc_context_free(ctx);
}

// cases_indices.c: positions given by data. Negative ones wrap once; beyond that what is read is 0,
// whatever was computed of the operand, what is written is dropped, and the next synchronising call
// returns FC_INDEX with the op's name, wherever the op stands among others. Lazy and eager must
// agree on all of it. Values of a tensor that is updated are those before the update.
#include "api.h"

static const float f5[5] = {1, 2, 3, 4, 5};
static const int64_t some[3] = {1, 9, -9}, fine[3] = {-5, 4, -1};
static const int64_t edge[4] = {5, -6, INT64_MIN, INT64_MAX};

static fc_tensor
the_five(fc_context *ctx)
{
    return fc_from_host(ctx, FC_F32, f5, FC_SHAPE(5));
}

// Reading t tells the error, once, and gives these elements.
static void
tells(fc_tensor t, fc_context *ctx, const char *op, int n, const float *right, const char *what)
{
    float got[16];
    cr_assert_eq(fc_read(fc_cast(t, FC_F32), got, (size_t)n * 4), FC_INDEX, "%s: %s", what,
                 fc_error(ctx));
    EXPECT_ERROR(ctx, FC_INDEX, op, "out of range");
    for (int i = 0; i < n; i++)
        cr_assert_eq(got[i], right[i], "%s: element %d is %g, not %g", what, i, (double)got[i],
                     (double)right[i]);
}
#define TELLS(t, op, ...)                                                                          \
    tells(t, ctx, op, sizeof((const float[]){__VA_ARGS__}) / 4, (const float[]){__VA_ARGS__}, #t)

static void
of_loads_and_computed(fc_context *ctx)
{
    fc_tensor x = the_five(ctx), i = fc_from_host(ctx, FC_I64, some, FC_SHAPE(3));
    TELLS(fc_take(x, i, 0), "take", 2, 0, 0);
    TELLS(fc_take(fc_exp(fc_sub(x, x)), i, 0), "take", 1, 0, 0);
    TELLS(fc_take(fc_add_scalar(x, 1), i, 0), "take", 3, 0, 0);
    TELLS(fc_add(fc_take(fc_add_scalar(x, 1), i, 0), fc_take(x, i, 0)), "take", 5, 0, 0);
    TELLS(fc_add_scalar(fc_take(fc_flip(x, FC_ALL), i, 0), 1), "take", 5, 1, 1);
    TELLS(fc_take(x, fc_sub_scalar(fc_add_scalar(i, 1), 1), 0), "take", 2, 0, 0);
    TELLS(fc_sum(fc_take(fc_add_scalar(x, 1), i, 0), FC_ALL, false), "take", 3);
    TELLS(fc_take(fc_eq(x, x), i, 0), "take", 1, 0, 0);
    TELLS(fc_take(fc_concat(((fc_tensor[]){x, fc_neg(x)}), 2, 0),
                  fc_from_host(ctx, FC_I64, edge, FC_SHAPE(4)), 0),
          "take", -1, 5, 0, 0);
    EXPECT(ctx, fc_take(fc_add_scalar(x, 1), fc_from_host(ctx, FC_I64, fine, FC_SHAPE(3)), 0), 2, 6,
           6);
}

static void
of_constants(fc_context *ctx)
{
    fc_tensor x = the_five(ctx), i = fc_from_host(ctx, FC_I64, some, FC_SHAPE(3));
    float three = 3;
    fc_tensor same = fc_broadcast(fc_from_host(ctx, FC_F32, &three, FC_SHAPE(1)), FC_SHAPE(5));
    fc_tensor ones = fc_ones(ctx, FC_F32, FC_SHAPE(5)), nine = fc_full(ctx, FC_I64, 9, FC_SHAPE(3));
    TELLS(fc_take(ones, i, 0), "take", 1, 0, 0);
    TELLS(fc_take(same, i, 0), "take", 3, 0, 0);
    TELLS(fc_take(fc_add(same, ones), i, 0), "take", 4, 0, 0);
    TELLS(fc_take(fc_iota(ctx, FC_SHAPE(5), 0), i, 0), "take", 1, 0, 0);
    TELLS(fc_take(x, nine, 0), "take", 0, 0, 0);
    TELLS(fc_take(ones, nine, 0), "take", 0, 0, 0);
    TELLS(fc_take(fc_exp(fc_zeros(ctx, FC_F32, FC_SHAPE(1))), i, 0), "take", 0, 0, 0);
    fc_tensor empty = fc_zeros(ctx, FC_F32, FC_SHAPE(0));
    TELLS(fc_take(empty, fc_zeros(ctx, FC_I64, FC_SHAPE(2)), 0), "take", 0, 0);
    EXPECT(ctx, fc_take(ones, fc_from_host(ctx, FC_I64, fine, FC_SHAPE(3)), 0), 1, 1, 1);
}

static void
along_and_losses(fc_context *ctx)
{
    static const int64_t along[3] = {0, 9, 1}, classes[2] = {0, 9};
    fc_tensor x = fc_reshape(the_five(ctx), FC_SHAPE(1, 5));
    fc_tensor i = fc_from_host(ctx, FC_I64, along, FC_SHAPE(1, 3));
    TELLS(fc_take_along(x, i, 1), "take_along", 1, 0, 2);
    TELLS(fc_take_along(fc_add_scalar(x, 1), i, 1), "take_along", 2, 0, 3);
    TELLS(fc_take_along(fc_ones(ctx, FC_F32, FC_SHAPE(1, 5)), i, 1), "take_along", 1, 0, 1);
    fc_tensor target = fc_from_host(ctx, FC_I64, classes, FC_SHAPE(2)), loss;
    loss = fc_cross_entropy(fc_zeros(ctx, FC_F32, FC_SHAPE(2, 3)), target);
    cr_assert_eq(fc_eval(ctx, &loss, 1), FC_INDEX);
    EXPECT_ERROR(ctx, FC_INDEX, "cross_entropy");
}

static fc_tensor
start_of(fc_context *ctx, int64_t row, int64_t column)
{
    int64_t at[] = {row, column};
    return fc_from_host(ctx, FC_I64, at, FC_SHAPE(2));
}

static fc_tensor
place(fc_context *ctx, int64_t at)
{
    return fc_from_host(ctx, FC_I64, &at, FC_SHAPE(1));
}

static void
of_windows(fc_context *ctx)
{
    static const float six[6] = {1, 2, 3, 4, 5, 6};
    fc_tensor x = fc_from_host(ctx, FC_F32, six, FC_SHAPE(2, 3)), v = the_five(ctx);
    fc_tensor t = fc_permute(x, FC_LIST(1, 0));
    EXPECT(ctx, fc_dynamic_slice(x, start_of(ctx, 0, 1), FC_SHAPE(2, 2)), 2, 3, 5, 6);
    EXPECT(ctx, fc_dynamic_slice(x, start_of(ctx, -1, -3), FC_SHAPE(1, 2)), 4, 5);
    EXPECT(ctx, fc_dynamic_slice(t, start_of(ctx, 1, 0), FC_SHAPE(2, 2)), 2, 5, 3, 6);
    EXPECT(ctx, fc_dynamic_slice(fc_flip(v, FC_ALL), place(ctx, 1), FC_SHAPE(3)), 4, 3, 2);
    EXPECT(ctx, fc_dynamic_slice(fc_dynamic_slice(v, place(ctx, 1), FC_SHAPE(4)), place(ctx, -2),
                                 FC_SHAPE(2)), 4, 5);
    EXPECT(ctx, fc_dynamic_slice(fc_concat(((fc_tensor[]){v, fc_neg(v)}), 2, 0), place(ctx, 3),
                                 FC_SHAPE(4)), 4, 5, -1, -2);
    EXPECT(ctx, fc_slice_update(x, fc_ones(ctx, FC_F32, FC_SHAPE(1, 2)), start_of(ctx, 1, 1)), 1,
           2, 3, 4, 1, 1);
    EXPECT(ctx, fc_slice_update(x, fc_zeros(ctx, FC_F32, FC_SHAPE(2, 0)), start_of(ctx, 0, 3)), 1,
           2, 3, 4, 5, 6);
    // A start wraps once; a window that is not inside then is told, and moved.
    TELLS(fc_dynamic_slice(v, place(ctx, -2), FC_SHAPE(3)), "dynamic_slice", 3, 4, 5);
    TELLS(fc_dynamic_slice(v, place(ctx, -6), FC_SHAPE(2)), "dynamic_slice", 1, 2);
    TELLS(fc_dynamic_slice(fc_add_scalar(v, 1), place(ctx, 4), FC_SHAPE(2)), "dynamic_slice", 5, 6);
    TELLS(fc_dynamic_slice(v, place(ctx, INT64_MIN), FC_SHAPE(2)), "dynamic_slice", 1, 2);
    TELLS(fc_add_scalar(fc_dynamic_slice(v, place(ctx, INT64_MAX), FC_SHAPE(2)), 1),
          "dynamic_slice", 5, 6);
    TELLS(fc_slice_update(v, fc_neg(v), place(ctx, 3)), "slice_update", -1, -2, -3, -4, -5);
    TELLS(fc_slice_update(v, fc_neg(v), place(ctx, -7)), "slice_update", -1, -2, -3, -4, -5);
}

static void
of_one_hot(fc_context *ctx)
{
    static const int32_t i[4] = {1, -1, 3, 0};
    fc_tensor index = fc_from_host(ctx, FC_I32, i, FC_SHAPE(4));
    EXPECT(ctx, fc_one_hot(index, 3, FC_F32), 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0);
    EXPECT(ctx, fc_cast(fc_one_hot(index, 2, FC_BOOL), FC_F32), 0, 1, 0, 0, 0, 0, 1, 0);
    EXPECT(ctx, fc_cast(fc_one_hot(index, 2, FC_BF16), FC_F32), 0, 1, 0, 0, 0, 0, 1, 0);
    fc_tensor count = fc_sum(fc_one_hot(index, 4, FC_I8), FC_LIST(0), false);
    EXPECT(ctx, fc_cast(count, FC_F32), 1, 1, 0, 1);
}

static void
of_scatters(fc_context *ctx)
{
    static const int64_t twice[4] = {1, -1, 1, 4}, bad[4] = {-5, 5, -6, INT64_MIN}, flat[4] = {0, 2,
                                                                                           2, 1};
    static const float ten[4] = {10, 20, 30, 40};
    fc_tensor v = the_five(ctx), u = fc_from_host(ctx, FC_F32, ten, FC_SHAPE(4));
    fc_tensor i = fc_from_host(ctx, FC_I64, twice, FC_SHAPE(4));
    EXPECT(ctx, fc_scatter(v, i, u, 0), 1, 30, 3, 4, 40); // of several the last stays
    EXPECT(ctx, fc_scatter_add(v, i, u, 0), 1, 42, 3, 4, 65);
    EXPECT(ctx, fc_scatter_max(v, i, u, -1), 1, 30, 3, 4, 40);
    EXPECT(ctx, fc_scatter_min(v, i, fc_neg(u), 0), 1, -30, 3, 4, -40);
    EXPECT(ctx, fc_scatter_along_add(v, i, u, 0), 1, 42, 3, 4, 65);
    EXPECT(ctx, fc_scatter_add(v, i, fc_ones(ctx, FC_F32, FC_SCALAR_SHAPE), 0), 1, 4, 3, 4, 7);
    EXPECT(ctx, fc_scatter(v, fc_full(ctx, FC_I64, -2, FC_SCALAR_SHAPE),
                           fc_full(ctx, FC_F32, 9, FC_SCALAR_SHAPE), 0), 1, 2, 3, 9, 5);
    EXPECT(ctx, fc_scatter_add(v, fc_zeros(ctx, FC_I64, FC_SHAPE(0)),
                               fc_zeros(ctx, FC_F32, FC_SHAPE(0)), 0), 1, 2, 3, 4, 5);
    fc_tensor m = fc_iota(ctx, FC_SHAPE(2, 3), 1);
    fc_tensor j = fc_from_host(ctx, FC_I64, flat, FC_SHAPE(2, 2));
    fc_tensor w = fc_cast(fc_reshape(u, FC_SHAPE(2, 2)), FC_I64);
    EXPECT(ctx, fc_cast(fc_scatter_along(m, j, w, 1), FC_F32), 10, 1, 20, 0, 40, 30);
    EXPECT(ctx, fc_cast(fc_scatter_along_max(m, j, w, 1), FC_F32), 10, 1, 20, 0, 40, 30);
    EXPECT(ctx, fc_cast(fc_scatter_along_min(m, j, w, 1), FC_F32), 0, 1, 2, 0, 1, 2);
    fc_tensor bytes = fc_full(ctx, FC_U8, 250, FC_SHAPE(5)); // wraps at its dtype
    EXPECT(ctx, fc_cast(fc_scatter_add(bytes, i, fc_full(ctx, FC_U8, 5, FC_SHAPE(4)), 0), FC_F32),
           250, 4, 250, 250, 4);
    TELLS(fc_scatter(v, fc_from_host(ctx, FC_I64, bad, FC_SHAPE(4)), u, 0), "scatter", 10, 2, 3, 4,
          5);
    TELLS(fc_scatter_add(fc_add_scalar(v, 1), fc_from_host(ctx, FC_I64, bad, FC_SHAPE(4)), u, 0),
          "scatter_add", 12, 3, 4, 5, 6);
}

// x[1:] = x[:-1] and the like: what is read is the tensor before.
static void
of_updates_that_overlap(fc_context *ctx)
{
    static const float six[6] = {0, 1, 2, 3, 4, 5}, four[4] = {-1, 9, 7, -2};
    fc_tensor x = fc_from_host(ctx, FC_F32, six, FC_SHAPE(3, 2));
    fc_tensor head = fc_slice(x, FC_LIST(0, 0), FC_LIST(2, 2), FC_LIST(1, 1));
    EXPECT(ctx, fc_slice_update(x, head, start_of(ctx, 1, 0)), 0, 1, 0, 1, 2, 3);
    fc_tensor y = fc_mul_scalar(x, 2); // in memory of its own, that the update could take over
    head = fc_slice(y, FC_LIST(0, 0), FC_LIST(2, 2), FC_LIST(1, 1));
    EXPECT(ctx, fc_slice_update(y, head, start_of(ctx, 1, 0)), 0, 2, 0, 2, 4, 6);
    EXPECT(ctx, fc_add(y, fc_slice_update(y, head, start_of(ctx, -2, 0))), 0, 4, 4, 8, 12, 16);
    fc_tensor v = fc_from_host(ctx, FC_F32, four, FC_SHAPE(2, 2));
    for (int column = 0; column < 2; column++) {
        fc_tensor part = fc_slice(v, FC_LIST(0, column), FC_LIST(2, column + 1), FC_LIST(1, 1));
        part = fc_min_scalar(fc_max_scalar(part, 0), column ? 3 : 5);
        v = fc_slice_update(v, part, start_of(ctx, 0, column));
    }
    EXPECT(ctx, v, 0, 3, 5, 0);
    // An update's own operands may be the tensor that it writes to.
    fc_tensor z = fc_mul_scalar(the_five(ctx), 2), to = fc_iota(ctx, FC_SHAPE(5), 0);
    EXPECT(ctx, fc_scatter(z, fc_flip(to, FC_ALL), z, 0), 10, 8, 6, 4, 2);
    EXPECT(ctx, fc_scatter_add(z, fc_zeros(ctx, FC_I64, FC_SHAPE(5)), z, 0), 32, 4, 6, 8, 10);
}

static void
of_mistakes(fc_context *ctx)
{
    fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(2, 3)), s = start_of(ctx, 0, 0);
    fc_dynamic_slice(x, s, FC_SHAPE(2, 4));
    EXPECT_ERROR(ctx, FC_INVALID, "dynamic_slice", "[2,4]", "[2,3]", "axis 1 may be 0 to 3");
    fc_dynamic_slice(x, place(ctx, 0), FC_SHAPE(1, 1));
    EXPECT_ERROR(ctx, FC_INVALID, "dynamic_slice", "start has shape [1]", "asks for [2]");
    fc_dynamic_slice(x, fc_cast(s, FC_F32), FC_SHAPE(1, 1));
    EXPECT_ERROR(ctx, FC_INVALID, "dynamic_slice", "start has dtype f32", "cast it to i64");
    fc_slice_update(x, fc_ones(ctx, FC_F32, FC_SHAPE(3)), s);
    EXPECT_ERROR(ctx, FC_INVALID, "slice_update", "[3] in [2,3]", "number of axes");
    fc_slice_update(x, fc_ones(ctx, FC_F64, FC_SHAPE(1, 1)), s);
    EXPECT_ERROR(ctx, FC_INVALID, "slice_update", "f32 has no room for values of f64");
    fc_scatter(x, s, fc_ones(ctx, FC_F32, FC_SHAPE(2, 2)), 0);
    EXPECT_ERROR(ctx, FC_INVALID, "scatter", "[2,2] do not broadcast to [2,3]");
    fc_scatter_add(x, fc_cast(s, FC_U64), x, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "scatter_add", "dtype u64", "cast it to i64");
    fc_scatter_max(x, s, x, 2);
    EXPECT_ERROR(ctx, FC_INVALID, "scatter_max", "axis 2 is out of range for shape [2,3]");
    fc_scatter_along(x, s, x, 1);
    EXPECT_ERROR(ctx, FC_INVALID, "scatter_along",
                 "[2,3] and [2] have different ranks; reshape one");
    fc_scatter(fc_cast(x, FC_I32), s, x, 0);
    EXPECT_ERROR(ctx, FC_INVALID, "scatter", "i32 has no room for values of f32");
    fc_one_hot(x, 3, FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "one_hot", "dtype f32", "cast it to i64");
    fc_one_hot(s, -1, FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "one_hot", "classes is -1");
}

static void
in_both_modes(void (*check)(fc_context *ctx))
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        check(ctx);
        cr_assert_eq(fc_error_code(ctx), FC_OK, "%s", fc_error(ctx));
        fc_context_free(ctx);
    }
}

Test(cases_indices, bc39_of_loads_and_computed_values)
{
    in_both_modes(of_loads_and_computed);
}
Test(cases_indices, of_constants_and_broadcast_values)
{
    in_both_modes(of_constants);
}
Test(cases_indices, along_an_axis_and_in_losses)
{
    in_both_modes(along_and_losses);
}
Test(cases_indices, of_windows_that_start_at_data)
{
    in_both_modes(of_windows);
}
Test(cases_indices, one_hot_rows)
{
    in_both_modes(of_one_hot);
}
Test(cases_indices, bc39_of_scatters)
{
    in_both_modes(of_scatters);
}
Test(cases_indices, bc47_updates_that_overlap_what_they_read)
{
    in_both_modes(of_updates_that_overlap);
}
Test(cases_indices, mistakes_in_windows)
{
    in_both_modes(of_mistakes);
}

Test(cases_indices, weak_updates_take_the_target_s_dtype)
{
    fc_context *ctx = new_context(FC_LAZY);
    int64_t at[] = {2, 0, 2}, out_of[] = {5};
    fc_tensor i = fc_from_host(ctx, FC_I64, at, FC_SHAPE(3));
    EXPECT(ctx, fc_scatter_add(fc_zeros(ctx, FC_F32, FC_SHAPE(3)), i, fc_scalar(ctx, 1), 0), 1, 0,
           2);
    EXPECT(ctx, fc_scatter(fc_zeros(ctx, FC_F32, FC_SHAPE(3)), i, fc_scalar(ctx, 0.5), 0), 0.5f, 0,
           0.5f);
    fc_tensor u8 = fc_scatter_max(fc_ones(ctx, FC_U8, FC_SHAPE(3)), i, fc_scalar(ctx, 200), 0);
    cr_assert_eq(fc_dtype_of(u8), FC_U8);
    EXPECT(ctx, fc_cast(u8, FC_F32), 200, 1, 200);
    cr_assert_not(fc_valid(fc_scatter(u8, i, fc_scalar(ctx, 256), 0)));
    EXPECT_ERROR(ctx, FC_INVALID, "scatter: 256 does not fit in u8");
    cr_assert_not(fc_valid(fc_scatter(u8, i, fc_scalar(ctx, 0.5), 0)));
    EXPECT_ERROR(ctx, FC_INVALID, "u8 has no room for values of f64");
    fc_tensor beside = fc_from_host(ctx, FC_I64, out_of, FC_SHAPE(1));
    fc_tensor y = fc_scatter(fc_ones(ctx, FC_F32, FC_SHAPE(2)), beside, fc_scalar(ctx, 7), 0);
    cr_assert_eq(fc_eval(ctx, &y, 1), FC_INDEX);
    EXPECT_ERROR(ctx, FC_INDEX, "scatter", "the updates concerned are left out");
    EXPECT(ctx, y, 1, 1);
    fc_context_free(ctx);
}

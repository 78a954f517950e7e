// cases_indices.c: indices out of range, wherever take stands among other ops. Negative ones wrap
// once; beyond that the element is 0, whatever was computed of the operand, and the next
// synchronising call returns FC_INDEX with the op's name. Lazy and eager must agree on both.
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

Test(cases_indices, of_loads_and_computed_values)
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

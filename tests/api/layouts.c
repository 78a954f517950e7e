// layouts.c: what fusion compilers have got wrong about layouts, empty shapes, aliases and cached
// graphs, through the public interface, lazy and eager.
#include "api.h"

#include <sys/mman.h>

static float ramp[4096];

static void
fill_ramp(void)
{
    for (int i = 0; i < 4096; i++)
        ramp[i] = (float)(i % 251) - 100;
}

static fc_tensor
affine(fc_tensor x) // 2 x + 1
{
    return fc_add_scalar(fc_mul_scalar(x, 2.0), 1.0);
}

// One graph over four layouts of its input, in turn, twice: a cached program never misreads.
Test(layouts, bc33_one_graph_over_many_layouts, .init = fill_ramp)
{
    static const struct {
        int64_t offset, stride[2];
    } layout[] = {{0, {6, 1}},  {18, {-6, 1}}, {0, {1, 4}}, {0, {12, 2}},
                  {5, {6, -1}}, {3, {0, 1}},   {1, {6, 1}}, {7, {0, 0}}};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (int round = 0; round < 2; round++)
            for (size_t k = 0; k < sizeof layout / sizeof *layout; k++) {
                const int64_t *s = layout[k].stride;
                const float *base = ramp + layout[k].offset;
                fc_tensor x = fc_borrow(ctx, FC_F32, base, FC_SHAPE(4, 6), s, NULL, NULL);
                float right[24];
                for (int i = 0; i < 24; i++)
                    right[i] = 2 * base[i / 6 * s[0] + i % 6 * s[1]] + 1;
                expect_floats(ctx, affine(x), right, 24);
                expect_floats(ctx, fc_neg(fc_neg(affine(x))), right, 24);
            }
        fc_context_free(ctx);
    }
}

Test(layouts, bc33_two_views_of_one_buffer)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){0, 1, 2, 3, 4}), FC_SHAPE(5));
        EXPECT(ctx, fc_add(fc_flip(x, FC_LIST(0)), x), 4, 4, 4, 4, 4);
        fc_tensor tail = fc_slice_axis(x, 0, 1, FC_END, 1);
        EXPECT(ctx, fc_sub(tail, fc_slice_axis(x, 0, 0, -1, 1)), 1, 1, 1, 1);
        fc_tensor top = fc_slice_axis(x, 0, 1, 4, 1), low = fc_slice_axis(x, 0, 1, 3, 1);
        EXPECT(ctx, fc_sub(fc_max_reduce(top, FC_ALL, false), fc_min_reduce(low, FC_ALL, false)),
               2);
        fc_context_free(ctx);
    }
}

// Every offset from an aligned address and every length of tail, the first call aligned.
Test(layouts, bc34_odd_addresses_and_tails, .init = fill_ramp)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (int64_t offset = 0; offset < 5; offset++)
            for (int64_t n = 1; n < 70; n += offset ? 17 : 3) {
                fc_scope_begin(ctx);
                fc_tensor x = fc_borrow(ctx, FC_F32, ramp + offset, FC_SHAPE(n), NULL, NULL, NULL);
                float right[70];
                for (int64_t i = 0; i < n; i++)
                    right[i] = 2 * ramp[offset + i] + 1;
                expect_floats(ctx, affine(x), right, n);
                fc_scope_end(ctx);
            }
        fc_tensor h = fc_cast(fc_from_host(ctx, FC_F32, ramp, FC_SHAPE(1025)), FC_F16);
        fc_tensor part = fc_cast(fc_slice_axis(h, 0, 1, FC_END, 1), FC_F32);
        expect_floats(ctx, part, ramp + 1, 1024);
        fc_context_free(ctx);
    }
}

Test(layouts, bc28_empty_shapes_and_scalars)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor none = fc_from_host(ctx, FC_F32, NULL, FC_SHAPE(0));
        fc_tensor gap = fc_zeros(ctx, FC_F32, FC_SHAPE(2, 0, 4));
        EXPECT(ctx, fc_sum(none, FC_ALL, false), 0);
        EXPECT(ctx, fc_prod(none, FC_ALL, false), 1);
        EXPECT(ctx, fc_sum(gap, FC_LIST(1), false), 0, 0, 0, 0, 0, 0, 0, 0);
        double mean = 0;
        cr_assert_eq(fc_item(fc_mean(none, FC_ALL, false), &mean), FC_OK);
        cr_assert(mean != mean);
        cr_assert_eq(fc_read(fc_max_reduce(gap, FC_LIST(2), false), NULL, 0), FC_OK, "%s",
                     fc_error(ctx));
        fc_max_reduce(gap, FC_LIST(1), false);
        EXPECT_ERROR(ctx, FC_INVALID, "max_reduce", "1");
        fc_argmax(none, FC_LIST(0), false);
        EXPECT_ERROR(ctx, FC_INVALID, "argmax");
        for (int i = 0; i < 2; i++) {
            fc_tensor x =
                i ? fc_zeros(ctx, FC_F32, FC_SHAPE(0, 5)) : fc_zeros(ctx, FC_F32, FC_SHAPE(5, 0));
            cr_assert_eq(fc_read(fc_softmax(x, 1), NULL, 0), FC_OK, "%s", fc_error(ctx));
            cr_assert_eq(fc_read(fc_add(x, x), NULL, 0), FC_OK, "%s", fc_error(ctx));
        }
        fc_tensor s = fc_from_host(ctx, FC_F32, &(float){3}, FC_SCALAR_SHAPE);
        EXPECT(ctx, fc_mean(s, FC_ALL, false), 3);
        fc_sum(s, FC_LIST(0), false);
        EXPECT_ERROR(ctx, FC_INVALID, "sum", "scalar");
        fc_tensor a = fc_zeros(ctx, FC_F32, FC_SHAPE(3, 0)),
                  b = fc_zeros(ctx, FC_F32, FC_SHAPE(0, 2));
        EXPECT(ctx, fc_matmul(a, b), 0, 0, 0, 0, 0, 0);
        fc_context_free(ctx);
    }
}

Test(layouts, sizes_1_and_0_after_others)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        static const int64_t shape[][4] = {{3, 4, 3, 4}, {1, 4, 3, 4}, {3, 1, 3, 4},
                                           {0, 4, 1, 4}, {1, 1, 1, 1}, {3, 4, 1, 1}};
        for (size_t k = 0; k < sizeof shape / sizeof *shape; k++) {
            const int64_t *s = shape[k];
            fc_tensor x = fc_full(ctx, FC_F32, 2.0, FC_SHAPE(s[0], s[1]));
            fc_tensor y = fc_full(ctx, FC_F32, 3.0, FC_SHAPE(s[2], s[3])), z = fc_mul(x, y);
            float out[12], n = (float)fc_count(z);
            cr_assert_eq(fc_read(z, out, (size_t)n * sizeof *out), FC_OK, "%s", fc_error(ctx));
            for (int i = 0; i < (int)n; i++)
                cr_assert_eq(out[i], 6);
        }
        fc_mul(fc_zeros(ctx, FC_F32, FC_SHAPE(2, 4)), fc_zeros(ctx, FC_F32, FC_SHAPE(3, 4)));
        EXPECT_ERROR(ctx, FC_INVALID, "mul", "[2,4]", "[3,4]");
        fc_context_free(ctx);
    }
}

// The same calls with other dtypes: a program is never used for the bytes of another type.
Test(layouts, bc49_outer_products_of_mixed_dtypes)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        static const fc_dtype dtypes[][2] = {{FC_I32, FC_I32}, {FC_U16, FC_I8}, {FC_U16, FC_U8}};
        fc_tensor xf = fc_from_host(ctx, FC_F32, ((float[]){10, 20}), FC_SHAPE(2));
        fc_tensor yf = fc_from_host(ctx, FC_F32, ((float[]){1, 2}), FC_SHAPE(2));
        for (int k = 0; k < 3; k++) {
            fc_tensor x = fc_cast(xf, dtypes[k][0]), y = fc_cast(yf, dtypes[k][1]);
            fc_tensor column = fc_cast(fc_unsqueeze(y, 1), FC_F32);
            EXPECT(ctx, fc_mul(column, fc_cast(x, FC_F32)), 10, 20, 20, 40);
        }
        fc_context_free(ctx);
    }
}

Test(layouts, bc45_outputs_that_meet)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, 2}), FC_SHAPE(2));
        fc_tensor t = fc_add_scalar(x, 1.0), y = fc_mul_scalar(t, 2.0);
        fc_tensor again = fc_reshape(t, FC_SHAPE(2)), same = fc_reshape(x, FC_SHAPE(2));
        cr_assert_eq(fc_eval(ctx, (fc_tensor[]){t, y, t, again, same}, 5), FC_OK, "%s",
                     fc_error(ctx));
        EXPECT(ctx, t, 2, 3);
        EXPECT(ctx, y, 4, 6);
        EXPECT(ctx, again, 2, 3);
        EXPECT(ctx, same, 1, 2);
        fc_tensor a = fc_add_scalar(x, 1.0), s = fc_sum(a, FC_ALL, false),
                  b = fc_mul_scalar(a, 2.0);
        cr_assert_eq(fc_eval(ctx, (fc_tensor[]){a, s, b}, 3), FC_OK);
        EXPECT(ctx, s, 5);
        EXPECT(ctx, b, 4, 6);
        // Reductions that depend on each other: y = r1 + sum(x / r1).
        fc_tensor v = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3, 2}), FC_SHAPE(4));
        fc_tensor r1 = fc_sum(v, FC_ALL, false);
        EXPECT(ctx, fc_add(r1, fc_sum(fc_div(v, r1), FC_ALL, false)), 9);
        fc_context_free(ctx);
    }
}

Test(layouts, indices_wrap_once_and_no_further)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_cast(fc_iota(ctx, FC_SHAPE(5), 0), FC_F32);
        for (int computed = 0; computed < 2; computed++) {
            int64_t index[4] = {-2, 4, 10, -6};
            fc_tensor i = fc_from_host(ctx, FC_I64, index, FC_SHAPE(4));
            if (computed)
                i = fc_sub_scalar(fc_add_scalar(i, 7), 7);
            fc_tensor y = fc_take(x, i, 0);
            float out[4];
            cr_assert_eq(fc_read(y, out, sizeof out), FC_INDEX);
            EXPECT_ERROR(ctx, FC_INDEX, "take");
            cr_assert_eq(fc_read(y, out, sizeof out), FC_OK);
            cr_assert(out[0] == 3 && out[1] == 4 && out[2] == 0 && out[3] == 0);
        }
        fc_context_free(ctx);
    }
}

Test(layouts, bc37_spans_beyond_32_bits)
{
    // Few elements, far apart: only the pages touched exist.
    size_t bytes = (size_t)3 << 30;
    unsigned char *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq((void *)far, MAP_FAILED);
    far[0] = 7;
    far[(size_t)2 << 30] = 9;
    far[((size_t)2 << 30) + 1] = 11;
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_borrow(ctx, FC_U8, far, FC_SHAPE(2, 2), ((int64_t[]){INT64_C(1) << 31, 1}),
                                NULL, NULL);
        unsigned char out[4];
        cr_assert_eq(fc_read(fc_add_scalar(x, 1), out, 4), FC_OK, "%s", fc_error(ctx));
        cr_assert(out[0] == 8 && out[1] == 1 && out[2] == 10 && out[3] == 12);
        fc_context_free(ctx);
    }
    munmap(far, bytes);
}

// cases_scans.c: cumsum, cumprod, cummax and cummin against NumPy's answers (np.cumsum …,
// np.maximum.accumulate …), for all dtypes, lazy and eager: values and dtypes, NaN and infinities,
// axes, reversed scans, views of the operand and of the result, empty axes, and long ones, whose
// sums must not stick at 2^24.
#include "api.h"

#include <math.h>
#include <stdlib.h>

static const int modes[] = {FC_LAZY, FC_EAGER};
#define EACH_MODE(ctx)                                                                             \
    for (int at_ = 0; at_ < 2; at_++)                                                              \
        for (fc_context *ctx = new_context(modes[at_]); ctx; fc_context_free(ctx), ctx = NULL)

static void
expect_ints(fc_context *ctx, fc_tensor t, fc_dtype dtype, const int64_t *right, int n)
{
    int64_t got[64];
    cr_assert_eq(fc_dtype_of(t), dtype, "dtype %d, right is %d", fc_dtype_of(t), dtype);
    cr_assert_eq(fc_read(fc_cast(t, FC_I64), got, (size_t)n * 8), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < n; i++)
        cr_assert_eq(got[i], right[i], "element %d: %lld, right is %lld", i, (long long)got[i],
                     (long long)right[i]);
}
#define EXPECT_INTS(ctx, t, dtype, ...)                                                            \
    expect_ints(ctx, t, dtype, (const int64_t[]){__VA_ARGS__},                                     \
                sizeof((const int64_t[]){__VA_ARGS__}) / 8)

static void
expect_same(fc_context *ctx, fc_tensor t, const float *right, int n)
{
    float got[64];
    cr_assert_eq(fc_read(t, got, (size_t)n * 4), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < n; i++)
        cr_assert(isnan(right[i]) ? isnan(got[i]) : !memcmp(&got[i], &right[i], 4),
                  "element %d: %.9g, right is %.9g", i, got[i], right[i]);
}
#define EXPECT_SAME(ctx, t, ...)                                                                   \
    expect_same(ctx, t, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)

static fc_tensor
floats(fc_context *ctx, const float *v, int n)
{
    return fc_from_host(ctx, FC_F32, v, FC_SHAPE(n));
}
#define F(ctx, ...)                                                                                \
    floats(ctx, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / 4)

Test(scans, axes_of_a_matrix)
{
    EACH_MODE(ctx) {
        fc_tensor x = fc_reshape(F(ctx, 1, 5, 2, 4, 3, 6), FC_SHAPE(2, 3));
        EXPECT(ctx, fc_cumsum(x, 1, false), 1, 6, 8, 4, 7, 13);
        EXPECT(ctx, fc_cumsum(x, 0, false), 1, 5, 2, 5, 8, 8);
        EXPECT(ctx, fc_cumsum(x, -2, true), 5, 8, 8, 4, 3, 6);
        EXPECT(ctx, fc_cumprod(x, -1, false), 1, 5, 10, 4, 12, 72);
        EXPECT(ctx, fc_cummax(x, 1, false), 1, 5, 5, 4, 4, 6);
        EXPECT(ctx, fc_cummax(x, 1, true), 5, 5, 2, 6, 6, 6);
        EXPECT(ctx, fc_cummin(x, 1, false), 1, 1, 1, 4, 3, 3);
        EXPECT(ctx, fc_cummin(x, 0, true), 1, 3, 2, 4, 3, 6);
        EXPECT(ctx, fc_cumsum(fc_transpose(x, 0, 1), 1, false), 1, 5, 5, 8, 2, 8);
        EXPECT(ctx, fc_transpose(fc_cumsum(x, 1, false), 0, 1), 1, 4, 6, 7, 8, 13);
        EXPECT(ctx, fc_cumsum(fc_cumsum(x, 1, false), 0, false), 1, 6, 8, 5, 13, 21);
        EXPECT(ctx, fc_cumsum(fc_cumsum(x, 1, false), 1, false), 1, 7, 15, 4, 11, 24);
        EXPECT(ctx, fc_cumsum(fc_flip(x, (const int64_t[]){1}, 1), 1, true), 8, 6, 1, 13, 7, 4);
        EXPECT(ctx, fc_sub(fc_cumsum(x, 1, false), x), 0, 1, 6, 0, 4, 7);
        cr_assert_eq(fc_error_code(ctx), FC_OK, "%s", fc_error(ctx));
    }
}

Test(scans, integers_give_64_bits_and_wrap)
{
    static const fc_dtype all[] = {FC_I8, FC_I16, FC_I32, FC_I64, FC_U8, FC_U16, FC_U32, FC_U64};
    EACH_MODE(ctx) {
        fc_tensor x = F(ctx, 100, 27, 100, 1, 120);
        for (int i = 0; i < 8; i++) {
            fc_tensor v = fc_cast(x, all[i]);
            fc_dtype wide = i < 4 ? FC_I64 : FC_U64;
            EXPECT_INTS(ctx, fc_cumsum(v, 0, false), wide, 100, 127, 227, 228, 348);
            EXPECT_INTS(ctx, fc_cumprod(v, 0, false), wide, 100, 2700, 270000, 270000, 32400000);
            EXPECT_INTS(ctx, fc_cummax(v, 0, false), all[i], 100, 100, 100, 100, 120);
            EXPECT_INTS(ctx, fc_cummin(v, 0, false), all[i], 100, 27, 27, 1, 1);
        }
        int64_t large[] = {INT64_MAX, 1, -3, 2}; // NumPy wraps
        fc_tensor l = fc_from_host(ctx, FC_I64, large, FC_SHAPE(4));
        EXPECT_INTS(ctx, fc_cumsum(l, 0, false), FC_I64, INT64_MAX, INT64_MIN, INT64_MAX - 2,
                    INT64_MAX);
        EXPECT_INTS(ctx, fc_cumprod(l, 0, false), FC_I64, INT64_MAX, INT64_MAX, INT64_MIN + 3, 6);
        EXPECT_INTS(ctx, fc_cummin(l, 0, false), FC_I64, INT64_MAX, 1, -3, -3);
    }
}

Test(scans, bool_counts_or_keeps)
{
    EACH_MODE(ctx) {
        fc_tensor b = fc_cast(F(ctx, 0, 1, 1, 0, 1), FC_BOOL);
        EXPECT_INTS(ctx, fc_cumsum(b, 0, false), FC_I64, 0, 1, 2, 2, 3);
        EXPECT_INTS(ctx, fc_cumsum(b, 0, true), FC_I64, 3, 3, 2, 1, 1);
        EXPECT_INTS(ctx, fc_cumprod(b, 0, true), FC_I64, 0, 0, 0, 0, 1);
        EXPECT_INTS(ctx, fc_cummax(b, 0, false), FC_BOOL, 0, 1, 1, 1, 1);
        EXPECT_INTS(ctx, fc_cummin(b, 0, true), FC_BOOL, 0, 0, 0, 0, 1);
    }
}

Test(scans, nan_infinities_and_signed_zeros)
{
    float inf = INFINITY, nan = NAN;
    EACH_MODE(ctx) {
        fc_tensor x = F(ctx, 1, 3, nan, 5, -inf), y = F(ctx, 2, inf, 1, -inf, 4);
        EXPECT_SAME(ctx, fc_cumsum(x, 0, false), 1, 4, nan, nan, nan);
        EXPECT_SAME(ctx, fc_cumprod(x, 0, false), 1, 3, nan, nan, nan);
        EXPECT_SAME(ctx, fc_cummax(x, 0, false), 1, 3, nan, nan, nan);
        EXPECT_SAME(ctx, fc_cummin(x, 0, false), 1, 1, nan, nan, nan);
        EXPECT_SAME(ctx, fc_cummax(x, 0, true), nan, nan, nan, 5, -inf);
        EXPECT_SAME(ctx, fc_cumsum(y, 0, false), 2, inf, inf, nan, nan);
        EXPECT_SAME(ctx, fc_cummax(y, 0, false), 2, inf, inf, inf, inf);
        EXPECT_SAME(ctx, fc_cummin(y, 0, false), 2, 2, 1, -inf, -inf);
        EXPECT_SAME(ctx, fc_cumprod(F(ctx, inf, 2, 0, 1), 0, false), inf, inf, nan, nan);
        EXPECT_SAME(ctx, fc_cumsum(F(ctx, -0.0f, -0.0f, 0, -0.0f), 0, false), -0.0f, -0.0f, 0, 0);
        EXPECT_SAME(ctx, fc_cumprod(F(ctx, -0.0f, 3, -1), 0, false), -0.0f, -0.0f, 0);
    }
}

// NaN in the middle of a vector reaches everything behind it and nothing before it.
Test(scans, nan_in_long_rows)
{
    enum { N = 1025 };
    EACH_MODE(ctx)
        for (int at = 0; at < N; at += 41) {
            float v[N], got[N];
            for (int i = 0; i < N; i++)
                v[i] = i == at ? NAN : 1;
            fc_tensor x = floats(ctx, v, N);
            fc_tensor y[] = {fc_cumsum(x, 0, false), fc_cumprod(x, 0, false),
                             fc_cummax(x, 0, false), fc_cummin(x, 0, false)};
            for (int k = 0; k < 4; k++) {
                cr_assert_eq(fc_read(y[k], got, sizeof got), FC_OK, "%s", fc_error(ctx));
                for (int i = 0; i < N; i++)
                    cr_assert(i < at ? got[i] == (float)(k ? 1 : i + 1) : isnan(got[i]),
                              "NaN at %d: element %d of scan %d is %g", at, i, k, got[i]);
            }
        }
}

Test(scans, half_types_accumulate_in_f32)
{
    // 2048 + 1 is no f16 and 256 + 1 no bf16, but sums of them are not lost.
    EACH_MODE(ctx) {
        fc_tensor x = F(ctx, 2048, 1, 1, 1, 1);
        EXPECT(ctx, fc_cast(fc_cumsum(fc_cast(x, FC_F16), 0, false), FC_F32), 2048, 2048, 2050,
               2052, 2052);
        fc_tensor y = F(ctx, 256, 1, 1, 1, 1);
        EXPECT(ctx, fc_cast(fc_cumsum(fc_cast(y, FC_BF16), 0, false), FC_F32), 256, 256, 258, 260,
               260);
        cr_assert_eq(fc_dtype_of(fc_cumsum(fc_cast(x, FC_F16), 0, false)), FC_F16);
        cr_assert_eq(fc_dtype_of(fc_cummax(fc_cast(x, FC_BF16), 0, false)), FC_BF16);
    }
}

Test(scans, empty_and_single)
{
    EACH_MODE(ctx) {
        fc_tensor none = fc_full(ctx, FC_F32, 1.0, FC_SHAPE(3, 0));
        EXPECT_SAME(ctx, fc_cumsum(fc_full(ctx, FC_F32, 7.0, FC_SHAPE(1)), 0, false), 7);
        fc_tensor all[] = {fc_cumsum(none, 1, false), fc_cumprod(none, 0, false),
                           fc_cummax(none, 1, true), fc_cummin(none, 0, false)};
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(fc_dim_value(fc_shape(all[i], 1)), 0);
            cr_assert_eq(fc_eval(ctx, &all[i], 1), FC_OK, "%s", fc_error(ctx));
        }
        fc_tensor scalar = fc_full(ctx, FC_F32, 1.0, NULL, 0);
        fc_cumsum(scalar, 0, false);
        EXPECT_ERROR(ctx, FC_INVALID, "cumsum", "axis");
        fc_cummax(none, 2, false);
        EXPECT_ERROR(ctx, FC_INVALID, "cummax", "axis 2");
    }
}

// NumPy's float32 cumsum stays at 16777216; ours is each count, rounded once.
Test(scans, ones_do_not_stick)
{
    enum { N = 1 << 25 };
    float *got = malloc(N * sizeof *got);
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor ones = fc_full(ctx, FC_F32, 1.0, FC_SHAPE(N));
    cr_assert_eq(fc_read(fc_cumsum(ones, 0, false), got, N * sizeof *got), FC_OK, "%s",
                 fc_error(ctx));
    for (int i = 0; i < N; i++)
        cr_assert_eq(got[i], (float)(i + 1), "element %d is %.9g", i, got[i]);
    free(got);
    fc_context_free(ctx);
}

// cases_shapes.c: graphs of unusual shape: very wide concats, many inputs and outputs, rank 8,
// sizes that overflow, memory that ends at a page's border, one value asked for twice.
#include "api.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

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

static void
concat_of(fc_context *ctx, int parts, bool computed, bool reduced)
{
    fc_tensor part[512] = {0};
    float got[2048];
    double right = 0, sum;
    int n = 0;
    for (int i = 0; i < parts; i++) {
        float v[3] = {(float)i, (float)i + 0.25f, (float)i + 0.5f};
        part[i] = fc_from_host(ctx, FC_F32, v, FC_SHAPE(1 + i % 3));
        if (computed)
            part[i] = fc_neg(fc_abs(fc_neg(part[i])));
    }
    fc_tensor all = fc_concat(part, parts, 0);
    if (!reduced)
        cr_assert_eq(fc_read(all, got, (size_t)fc_count(all) * 4), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < parts; i++)
        for (int k = 0; k < 1 + i % 3; k++, n++) {
            float v = (float)i + 0.25f * (float)k;
            right += (double)(computed ? -v : v);
            cr_assert(reduced || got[n] == (computed ? -v : v), "%d parts: element %d is %g", parts,
                      n, (double)got[n]);
        }
    cr_assert_eq(fc_item(fc_sum(fc_cast(all, FC_F64), FC_ALL, false), &sum), FC_OK);
    cr_assert_eq(sum, right, "%d parts", parts);
}

// Widths about the budgets of a kernel (tensors, instructions) and far beyond them.
static void
wide_concats(fc_context *ctx)
{
    static const int parts[] = {1, 2, 15, 16, 17, 63, 96, 97, 128, 200, 256, 257, 512};
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++) {
        concat_of(ctx, parts[i], false, false);
        if (parts[i] % 2 == 0)
            concat_of(ctx, parts[i], true, parts[i] % 4 == 0);
    }
}
Test(cases_shapes, bc41_concats_of_any_width)
{
    in_both_modes(wide_concats);
}

static void
concat_of_concats(fc_context *ctx)
{
    fc_tensor row[24], x[24];
    float v[4] = {1, 2, 3, 4};
    for (int i = 0; i < 24; i++) {
        for (int k = 0; k < 24; k++)
            x[k] = fc_mul_scalar(fc_from_host(ctx, FC_F32, v, FC_SHAPE(2, 2)), i * k % 5);
        row[i] = fc_pad(fc_concat(x, 24, 1), 1, FC_LIST(0, 1), FC_LIST(1, 0));
    }
    fc_tensor all = fc_concat(row, 24, 0);
    double sum, right = 0;
    for (int i = 0; i < 24; i++) {
        right += 49 + 2;
        for (int k = 0; k < 24; k++)
            right += 10 * (i * k % 5);
    }
    cr_assert_eq(fc_item(fc_sum(fc_flip(all, FC_ALL), FC_ALL, false), &sum), FC_OK, "%s",
                 fc_error(ctx));
    cr_assert_eq(sum, right, "%g, not %g", sum, right);
}
Test(cases_shapes, concats_of_padded_concats)
{
    in_both_modes(concat_of_concats);
}

static void
many_outputs(fc_context *ctx)
{
    float v[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    fc_tensor x = fc_from_host(ctx, FC_F32, v, FC_SHAPE(8)), out[300];
    for (int i = 0; i < 300; i++)
        out[i] = i % 3 == 2 ? fc_sum(fc_add_scalar(x, i), FC_ALL, false) : fc_add_scalar(x, i);
    cr_assert_eq(fc_eval(ctx, out, 300), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < 300; i++) {
        float f = (float)i;
        if (i % 3 == 2)
            EXPECT(ctx, out[i], 28 + 8 * f);
        else
            EXPECT(ctx, out[i], f, f + 1, f + 2, f + 3, f + 4, f + 5, f + 6, f + 7);
    }
}
Test(cases_shapes, bc41_three_hundred_outputs)
{
    in_both_modes(many_outputs);
}

// n reductions, each over what the one before it leaves: about the stages of a kernel and beyond.
static void
sums_of_sums(fc_context *ctx, int n)
{
    enum { ROWS = 2, COLUMNS = 259 };
    static int64_t v[ROWS][COLUMNS], got[ROWS][COLUMNS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            v[r][c] = (c * 7 + r) % 11;
    fc_scope_begin(ctx);
    fc_tensor x = fc_from_host(ctx, FC_I64, v, FC_SHAPE(ROWS, COLUMNS));
    for (int i = 0; i < n; i++)
        x = fc_sub(x, fc_sum(x, FC_LIST(1), true));
    cr_assert_eq(fc_read(x, got, sizeof got), FC_OK, "%d sums: %s", n, fc_error(ctx));
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < n; i++) {
            uint64_t sum = 0;
            for (int c = 0; c < COLUMNS; c++)
                sum += (uint64_t)v[r][c];
            for (int c = 0; c < COLUMNS; c++)
                v[r][c] = (int64_t)((uint64_t)v[r][c] - sum);
        }
    cr_assert(!memcmp(v, got, sizeof v), "%d sums", n);
    fc_scope_end(ctx);
}

static void
depths_of_sums(fc_context *ctx)
{
    static const int depth[] = {31, 32, 33, 257};
    for (int i = 0; i < (int)(sizeof depth / sizeof *depth); i++)
        sums_of_sums(ctx, depth[i]);
}
Test(cases_shapes, sums_of_sums_of_any_depth)
{
    in_both_modes(depths_of_sums);
}

static void
rank_8(fc_context *ctx)
{
    fc_dim two[9];
    int64_t backwards[8] = {7, 6, 5, 4, 3, 2, 1, 0};
    for (int i = 0; i < 9; i++)
        two[i] = fc_n(2);
    fc_tensor x = fc_reshape(fc_cast(fc_iota(ctx, FC_SHAPE(256), 0), FC_F32), two, 8);
    fc_tensor y = fc_add(fc_permute(x, backwards, 8), x);
    double sum, right = 0;
    cr_assert_eq(fc_item(fc_sum(fc_square(y), FC_ALL, false), &sum), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < 256; i++) {
        int r = 0;
        for (int b = 0; b < 8; b++)
            r |= (i >> b & 1) << (7 - b);
        right += (i + r) * (double)(i + r);
    }
    cr_assert_eq(sum, right);
    fc_tensor none = fc_unsqueeze(x, 0);
    cr_assert_not(fc_valid(none));
    EXPECT_ERROR(ctx, FC_INVALID, "8");
}
Test(cases_shapes, rank_8)
{
    in_both_modes(rank_8);
}

static void
too_large(fc_context *ctx)
{
    const int64_t big = INT64_C(1) << 62;
    float one = 1;
    fc_tensor x = fc_from_host(ctx, FC_F32, &one, FC_SHAPE(1));
    fc_tensor wrong[] = {
        fc_full(ctx, FC_F32, 1.0, FC_SHAPE(INT64_MAX, 2)),
        fc_from_host(ctx, FC_F32, &one, FC_SHAPE(big)),
        fc_broadcast(x, FC_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)),
        fc_broadcast(x, FC_SHAPE(INT64_C(1) << 61)),
        fc_pad(x, 0, FC_LIST(INT64_MAX), FC_LIST(INT64_MAX)),
        fc_reshape(x, FC_SHAPE(INT64_MAX, INT64_MAX)),
        fc_iota(ctx, FC_SHAPE(big, 8), 0),
        fc_sum(x, FC_LIST(INT64_MIN), false),
    };
    for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++)
        cr_assert_not(fc_valid(wrong[i]), "%d", i);
    EXPECT_ERROR(ctx, FC_INVALID, "shape");
    fc_tensor y = fc_exp(fc_broadcast(x, FC_SHAPE(INT64_C(1) << 45)));
    cr_assert(!fc_valid(y) || fc_eval(ctx, &y, 1) == FC_RESOURCE);
    EXPECT_ERROR(ctx, FC_RESOURCE, "memory");
    EXPECT(ctx, fc_add_scalar(x, 1), 2);
}
Test(cases_shapes, sizes_that_overflow_are_refused)
{
    in_both_modes(too_large);
}

// n floats that begin (or end) at an inaccessible page.
static void
at_the_border(fc_context *ctx, float *p, int64_t n)
{
    float got[80];
    double sum;
    for (int i = 0; i < n; i++)
        p[i] = (float)(i + 1);
    fc_tensor x = fc_borrow(ctx, FC_F32, p, FC_SHAPE(n), NULL, NULL, NULL);
    int64_t minus = -1;
    fc_tensor back = fc_borrow(ctx, FC_F32, p + n - 1, FC_SHAPE(n), &minus, NULL, NULL);
    cr_assert_eq(fc_read(fc_add(x, back), got, (size_t)n * 4), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < n; i++)
        cr_assert_eq(got[i], (float)(n + 1));
    cr_assert_eq(fc_item(fc_sum(fc_mul_scalar(x, 2), FC_ALL, false), &sum), FC_OK);
    cr_assert_eq(sum, (double)(n * (n + 1)));
    fc_tensor product = fc_matmul(fc_reshape(x, FC_SHAPE(1, n)), fc_reshape(back, FC_SHAPE(n, 1)));
    cr_assert_eq(fc_item(product, &sum), FC_OK);
    cr_assert_eq(sum, (double)(n * (n + 1) * (n + 2) / 6));
    fc_tensor s = fc_softmax(x, 0);
    cr_assert_eq(fc_eval(ctx, &s, 1), FC_OK);
    fc_release(x);
    fc_release(back);
}

static void
borders(fc_context *ctx)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *m = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(m, MAP_FAILED);
    cr_assert_eq(mprotect(m + page, page, PROT_READ | PROT_WRITE), 0);
    for (int64_t n = 1; n <= 70; n++) {
        at_the_border(ctx, (float *)(m + page), n);
        at_the_border(ctx, (float *)(m + 2 * page) - n, n);
    }
    munmap(m, 3 * page);
}
Test(cases_shapes, bc70_memory_that_ends_at_a_page)
{
    in_both_modes(borders);
}

// A chain of reductions that only an empty result needs is not computed, and writes nowhere.
static void
empty_results(fc_context *ctx)
{
    float v[6] = {1, -2, 3, -4, 5, -6};
    fc_tensor x = fc_from_host(ctx, FC_F32, v, FC_SHAPE(2, 3));
    fc_tensor most = fc_max_reduce(fc_exp(x), FC_LIST(0), true);
    fc_tensor none = fc_slice_axis(fc_sum(most, FC_LIST(1), true), 1, 0, 0, 1);
    fc_tensor sign = fc_sign(x), product = fc_matmul(x, fc_transpose(x, 0, 1));
    fc_tensor out[] = {fc_neg(none), sign, fc_slice_axis(product, 0, 0, 0, 1)};
    cr_assert_eq(fc_eval(ctx, out, 3), FC_OK, "%s", fc_error(ctx));
    cr_assert_eq(fc_count(out[0]) + fc_count(out[2]), 0);
    EXPECT(ctx, sign, 1, -1, 1, -1, 1, -1);
    EXPECT(ctx, x, 1, -2, 3, -4, 5, -6);
}
Test(cases_shapes, what_only_empty_results_need)
{
    in_both_modes(empty_results);
}

// x [m, 2] times y [2, n], which may lie transposed, m a dim by name: with one row or one column
// the rounded products are summed, which here gives 0; else the rounding of a chain shows.
static void
expect_product(fc_context *ctx, int64_t m, int64_t n, bool turned)
{
    const float x[2] = {1, 1 + 0x1p-12f}, y[2] = {-(1 + 0x1p-11f), 1 + 0x1p-12f};
    float a[8], b[8], right[16];
    for (int64_t i = 0; i < 2 * m; i++)
        a[i] = x[i % 2];
    for (int64_t i = 0; i < 2 * n; i++)
        b[i] = turned ? y[i % 2] : y[i / n];
    for (int64_t i = 0; i < m * n; i++)
        right[i] = m == 1 || n == 1 ? 0 : 0x1p-24f;
    fc_dim rows = fc_dim_named(ctx, "M", m);
    fc_tensor p = fc_from_host(ctx, FC_F32, a, (fc_dim[]){rows, fc_n(2)}, 2), q;
    if (turned)
        q = fc_transpose(fc_from_host(ctx, FC_F32, b, FC_SHAPE(n, 2)), 0, 1);
    else
        q = fc_from_host(ctx, FC_F32, b, FC_SHAPE(2, n));
    expect_floats(ctx, fc_matmul(p, q), right, m * n);
    expect_floats(ctx, fc_abs(fc_matmul(fc_neg(p), q)), right, m * n);
}

static void
one_row_or_column(fc_context *ctx)
{
    static const int64_t rows[] = {3, 1, 2, 1, 4, 1};
    for (int turned = 0; turned < 2; turned++)
        for (int i = 0; i < 6; i++)
            for (int64_t n = 4; n >= 1; n--)
                expect_product(ctx, rows[i], n, turned);
}
Test(cases_shapes, products_with_one_row_or_column)
{
    in_both_modes(one_row_or_column);
}

// Heads joined to one axis: dims [heads, rows, width], of which no stride makes [rows, heads *
// width]. A product, or a sort, has one loop for each of its last two axes: neither an operand nor
// what is added to the result, nor who reads it, may split them.
enum { HEADS = 2, ROWS = 3, WIDTH = 4, COLUMNS = HEADS * WIDTH };
struct heads {
    float split[HEADS][ROWS][WIDTH], joined[ROWS][COLUMNS], dense[ROWS][COLUMNS];
    fc_tensor x, y; // the joined, dense
};

static struct heads
make_heads(fc_context *ctx)
{
    struct heads h;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS, k = i % COLUMNS;
        h.joined[row][k] = h.split[k / WIDTH][row][k % WIDTH] = (float)(i * 7 % 11 - 5);
        h.dense[row][k] = (float)(i * 5 % 13 - 6);
    }
    h.x = fc_from_host(ctx, FC_F32, h.split, FC_SHAPE(HEADS, ROWS, WIDTH));
    h.x = fc_reshape(fc_permute(h.x, FC_LIST(1, 0, 2)), FC_SHAPE(ROWS, COLUMNS));
    h.y = fc_from_host(ctx, FC_F32, h.dense, FC_SHAPE(ROWS, COLUMNS));
    return h;
}

static void
products_over_heads(fc_context *ctx)
{
    struct heads h = make_heads(ctx);
    float right[3][ROWS * ROWS] = {0};
    for (int i = 0; i < ROWS * ROWS; i++)
        for (int k = 0; k < COLUMNS; k++) {
            int row = i / ROWS, column = i % ROWS;
            right[0][i] += h.joined[row][k] * h.dense[column][k];
            right[1][i] += h.dense[row][k] * h.joined[column][k];
            right[2][i] += h.joined[row][k] * fabsf(h.joined[column][k]);
        }
    expect_floats(ctx, fc_matmul(h.x, fc_transpose(h.y, 0, 1)), right[0], ROWS * ROWS);
    expect_floats(ctx, fc_matmul(h.y, fc_transpose(h.x, 0, 1)), right[1], ROWS * ROWS);
    expect_floats(ctx, fc_matmul(h.x, fc_transpose(fc_abs(h.x), 0, 1)), right[2], ROWS * ROWS);
}
Test(cases_shapes, products_over_joined_heads)
{
    in_both_modes(products_over_heads);
}

static void
products_to_heads(fc_context *ctx)
{
    struct heads h = make_heads(ctx);
    float w[ROWS][ROWS], bias[COLUMNS], turned[COLUMNS], right[5][ROWS * COLUMNS] = {0};
    for (int i = 0; i < ROWS * ROWS; i++)
        w[i / ROWS][i % ROWS] = (float)(i * 3 % 7 - 3);
    for (int i = 0; i < COLUMNS; i++)
        turned[i % WIDTH * HEADS + i / WIDTH] = bias[i] = (float)(i * i);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS, column = i % COLUMNS;
        int split = (column / WIDTH * ROWS + row) * WIDTH + column % WIDTH;
        for (int k = 0; k < ROWS; k++) {
            right[0][i] += w[row][k] * h.joined[k][column];
            right[1][i] += w[row][k] * fabsf(h.joined[k][column]);
            right[2][i] += w[row][k] * fabsf(h.dense[k][column]);
        }
        right[3][i] = right[2][i] + bias[column];
        right[4][split] = right[2][i] + bias[column];
    }
    fc_tensor a = fc_from_host(ctx, FC_F32, w, FC_SHAPE(ROWS, ROWS));
    fc_tensor b = fc_from_host(ctx, FC_F32, turned, FC_SHAPE(WIDTH, HEADS));
    b = fc_permute(b, FC_LIST(1, 0));
    expect_floats(ctx, fc_matmul(a, h.x), right[0], ROWS * COLUMNS);
    expect_floats(ctx, fc_matmul(a, fc_abs(h.x)), right[1], ROWS * COLUMNS);
    fc_tensor biased = fc_add(fc_matmul(a, fc_abs(h.y)), fc_reshape(b, FC_SHAPE(COLUMNS)));
    expect_floats(ctx, biased, right[3], ROWS * COLUMNS);
    fc_tensor apart = fc_reshape(fc_matmul(a, fc_abs(h.y)), FC_SHAPE(ROWS, HEADS, WIDTH));
    apart = fc_add(fc_permute(apart, FC_LIST(1, 0, 2)), fc_unsqueeze(b, 1));
    expect_floats(ctx, apart, right[4], ROWS * COLUMNS);
}
Test(cases_shapes, products_to_joined_heads)
{
    in_both_modes(products_to_heads);
}

static void
sorted_heads(fc_context *ctx)
{
    struct heads h = make_heads(ctx);
    float right[ROWS][COLUMNS];
    for (int row = 0; row < ROWS; row++)
        for (int n = 0; n < COLUMNS; n++) { // insertion sort
            float x = h.joined[row][n] + h.dense[row][n];
            int at = n;
            for (; at && right[row][at - 1] > x; at--)
                right[row][at] = right[row][at - 1];
            right[row][at] = x;
        }
    expect_floats(ctx, fc_sort(fc_add(h.x, h.y), 1, false), right[0], ROWS * COLUMNS);
}
Test(cases_shapes, sort_of_joined_heads)
{
    in_both_modes(sorted_heads);
}

// order.c: sort, argsort, topk and argtopk through the public interface. What is right was computed
// by NumPy (order_numpy.py): the same data are made here, and hashes of the results compared. The
// other tests hold fusion, layouts and the smallest sizes against a sort by insertion.
#include "api.h"

#include <math.h>

enum { MOST = 65537 };

// ---- the data of order_numpy.py

enum data { random_data, few_data, special_data, rising_data, falling_data, equal_data };

struct answer {
    fc_dtype dtype;
    enum data data;
    int64_t n;
    uint32_t sorted[2], positions[2]; // ascending, descending
};
enum {
    DT_f64 = FC_F64, DT_f32 = FC_F32, DT_f16 = FC_F16, DT_bf16 = FC_BF16, DT_i8 = FC_I8,
    DT_i16 = FC_I16, DT_i32 = FC_I32, DT_i64 = FC_I64, DT_u8 = FC_U8, DT_u16 = FC_U16,
    DT_u32 = FC_U32, DT_u64 = FC_U64, DT_bool = FC_BOOL
};
static const struct answer answers[] = {
#define ORDER(dtype, data, n, a, b, c, d) {(fc_dtype)DT_##dtype, data##_data, n, {a, b}, {c, d}},
#include "order_numpy.def"
#undef ORDER
};

static uint64_t
mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t
width(fc_dtype d)
{
    return (uint32_t)fc_dtype_size(d) * 8;
}

static uint64_t
infinity(fc_dtype d) // bits; 0 for integers
{
    switch (d) {
    case FC_F64: return 0x7ffull << 52;
    case FC_F32: return 0xffull << 23;
    case FC_F16: return 0x1full << 10;
    case FC_BF16: return 0xffull << 7;
    default: return 0;
    }
}

static uint64_t
element(const struct answer *a, int64_t i)
{
    uint64_t inf = infinity(a->dtype), top = 1ull << (width(a->dtype) - 1);
    uint64_t one = inf >> 1 & inf;
    const uint64_t floats[8] = {inf, inf | top, inf | 1, inf | top | 3, 0, top, one, one | top};
    const uint64_t whole[8] = {0, 1, top, top - 1, 2 * top - 1, 2, 3, top + 1};
    const uint64_t *some = inf ? floats : whole;
    uint64_t random = mix((uint64_t)(i + a->n * 1000 + width(a->dtype))), bits = 0;
    switch (a->data) {
    case random_data: bits = random; break;
    case few_data: bits = some[4 + random % 4]; break;
    case special_data: bits = some[random % 8]; break;
    case rising_data: bits = (uint64_t)i; break;
    case falling_data: bits = (uint64_t)(a->n - i); break;
    case equal_data: bits = some[6]; break;
    }
    return a->dtype == FC_BOOL ? bits & 1 : bits;
}

static void
put(fc_dtype d, void *at, int64_t i, uint64_t bits)
{
    memcpy((char *)at + i * (int64_t)fc_dtype_size(d), &bits, fc_dtype_size(d));
}

static uint64_t
get(fc_dtype d, const void *at, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)at + i * (int64_t)fc_dtype_size(d), fc_dtype_size(d));
    return bits;
}

static uint32_t
hashed(fc_dtype d, const void *at, int64_t n)
{
    uint64_t total = 0, inf = infinity(d), top = 1ull << (width(d) - 1);
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = get(d, at, i);
        if (inf && (x & ~top) > inf)
            x = inf | inf >> 1; // one NaN for all
        total += mix(x + mix((uint64_t)i));
    }
    return (uint32_t)(total ^ total >> 32);
}

// ---- against NumPy

static void
expect_hash(fc_context *ctx, fc_tensor t, int64_t n, uint32_t right, const struct answer *a,
            const char *what)
{
    static uint64_t got[MOST];
    fc_dtype d = fc_dtype_of(t);
    cr_assert_eq(fc_read(t, got, (size_t)n * fc_dtype_size(d)), FC_OK, "%s", fc_error(ctx));
    uint32_t hash = hashed(d, got, n);
    cr_assert_eq(hash, right, "%s of %lld elements of %s, data %d: NumPy has another order", what,
                 (long long)n, fc_dtype_name(a->dtype), (int)a->data);
}

static void
check_answer(fc_context *ctx, const struct answer *a)
{
    static uint64_t x[MOST];
    fc_scope_begin(ctx);
    for (int64_t i = 0; i < a->n; i++)
        put(a->dtype, x, i, element(a, i));
    fc_tensor t = fc_from_host(ctx, a->dtype, x, FC_SHAPE(a->n)), r[4];
    for (int d = 0; d < 2; d++) {
        r[d] = fc_sort(t, 0, d);
        r[2 + d] = fc_argsort(t, -1, d);
    }
    cr_assert_eq(fc_eval(ctx, r, 4), FC_OK, "%s", fc_error(ctx));
    for (int d = 0; d < 2; d++) {
        expect_hash(ctx, r[d], a->n, a->sorted[d], a, d ? "sort descending" : "sort");
        expect_hash(ctx, r[2 + d], a->n, a->positions[d], a, d ? "argsort descending" : "argsort");
    }
    fc_scope_end(ctx);
}

Test(order, as_numpy)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
            check_answer(ctx, &answers[i]);
        fc_context_free(ctx);
    }
}

// ---- against insertion

// x before y in ascending order; both f32.
static bool
before(float x, float y)
{
    return x < y || (isnan(y) && !isnan(x));
}

// Positions of n elements `step` apart, in order.
static void
inserted(const float *x, int64_t step, int64_t n, bool descending, int64_t *position)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at; at--) {
            float earlier = x[position[at - 1] * step], mine = x[i * step];
            if (!(descending ? before(earlier, mine) : before(mine, earlier)))
                break;
            position[at] = position[at - 1];
        }
        position[at] = i;
    }
}

static void
expect_line(const float *x, int64_t step, int64_t n, int64_t k, bool descending,
            const float *value, const int64_t *index, int64_t by)
{
    int64_t right[64];
    inserted(x, step, n, descending, right);
    for (int64_t i = 0; i < k; i++) {
        float want = x[right[i] * step], got = value[i * by];
        cr_assert_eq(index[i * by], right[i], "%lld of %lld: position %lld, right is %lld",
                     (long long)i, (long long)n, (long long)index[i * by], (long long)right[i]);
        cr_assert(isnan(want) ? isnan(got) : !memcmp(&want, &got, sizeof got),
                  "%lld of %lld: %g, right is %g", (long long)i, (long long)n, (double)got,
                  (double)want);
    }
}

// The k best, and all, along each axis of [a, n, b], where either lies transposed too.
static void
along_axes(fc_context *ctx, int64_t a, int64_t n, int64_t b, int64_t k, bool descending)
{
    static float x[1 << 15], value[1 << 15];
    static int64_t index[1 << 15];
    static const float some[8] = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, 2, -3};
    for (int64_t i = 0; i < a * n * b; i++) {
        uint64_t r = mix((uint64_t)(i + n));
        x[i] = r % 11 == 0 ? NAN : r % 3 ? some[r / 32 % 8] : (float)(int64_t)(r >> 40);
    }
    for (int turn = 0; turn < 2; turn++) {
        fc_scope_begin(ctx);
        fc_tensor t = fc_from_host(ctx, FC_F32, x, FC_SHAPE(a, n, b));
        t = turn ? fc_permute(t, FC_LIST(2, 1, 0)) : t;
        fc_tensor best[] = {fc_topk(t, (int)k, 1, descending),
                            fc_argtopk(t, (int)k, 1, descending)};
        if (k == n) {
            best[0] = fc_sort(t, 1, descending);
            best[1] = fc_argsort(t, 1, descending);
        }
        cr_assert_eq(fc_eval(ctx, best, 2), FC_OK, "%s", fc_error(ctx));
        cr_assert_eq(fc_read(best[0], value, (size_t)(a * k * b) * 4), FC_OK);
        cr_assert_eq(fc_read(best[1], index, (size_t)(a * k * b) * 8), FC_OK);
        int64_t outer = turn ? b : a, inner = turn ? a : b;
        for (int64_t i = 0; i < outer; i++)
            for (int64_t j = 0; j < inner; j++) {
                const float *line = turn ? x + j * n * b + i : x + i * n * b + j;
                expect_line(line, b, n, k, descending, value + i * k * inner + j,
                            index + i * k * inner + j, inner);
            }
        fc_scope_end(ctx);
    }
}

Test(order, along_every_axis)
{
    static const int64_t size[][4] = {{3, 20, 4, 5}, {1, 1, 1, 1},    {2, 33, 40, 33},
                                      {5, 17, 1, 1}, {1, 50, 17, 49}, {70, 3, 2, 2},
                                      {2, 2, 33, 1}, {40, 13, 5, 13}};
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        for (size_t i = 0; i < sizeof size / sizeof *size; i++)
            for (int d = 0; d < 2; d++)
                along_axes(ctx, size[i][0], size[i][1], size[i][2], size[i][3], d);
        fc_context_free(ctx);
    }
}

// A line that threads divide: the same bits as from one thread.
Test(order, a_long_line_and_threads)
{
    enum { LONG = 300000 };
    static float x[LONG], got[2][LONG];
    static int64_t at[2][LONG];
    for (int64_t i = 0; i < LONG; i++) {
        uint64_t r = mix((uint64_t)i);
        x[i] = r % 5 ? (float)(int32_t)r : r % 2 ? 0.0f : -0.0f;
    }
    for (int t = 0; t < 2; t++) {
        fc_options o = {.size = sizeof o, .threads = t ? 3 : 1};
        fc_context *ctx;
        cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
        fc_tensor v = fc_from_host(ctx, FC_F32, x, FC_SHAPE(LONG));
        cr_assert_eq(fc_read(fc_sort(v, 0, true), got[t], sizeof got[t]), FC_OK, "%s",
                     fc_error(ctx));
        cr_assert_eq(fc_read(fc_argsort(v, 0, true), at[t], sizeof at[t]), FC_OK, "%s",
                     fc_error(ctx));
        fc_context_free(ctx);
    }
    cr_assert_arr_eq(got[0], got[1], sizeof got[0]);
    cr_assert_arr_eq(at[0], at[1], sizeof at[0]);
    for (int64_t i = 0; i < LONG; i++)
        cr_assert(!memcmp(&x[at[0][i]], &got[0][i], sizeof *x), "element %lld", (long long)i);
}

// ---- with other ops, in one kernel

Test(order, between_other_ops_in_one_kernel)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){3, -1, 2, 0, 5, -4}), FC_SHAPE(2, 3));
        fc_tensor y = fc_add_scalar(fc_mul_scalar(x, -2), 1);
        fc_tensor half = fc_mul_scalar(fc_sort(y, 1, false), 0.5);
        int64_t before_it = (int64_t)stats(ctx).kernels;
        EXPECT(ctx, half, -2.5f, -1.5f, 1.5f, -4.5f, 0.5f, 4.5f);
        if (mode == FC_LAZY)
            cr_assert_eq((int64_t)stats(ctx).kernels - before_it, 1);
        EXPECT(ctx, fc_sort(y, 0, true), 1, 3, 9, -5, -9, -3);
        EXPECT(ctx, fc_cast(fc_argsort(y, 1, true), FC_F32), 1, 2, 0, 2, 0, 1);
        EXPECT(ctx, fc_take_along(x, fc_argsort(x, 1, false), 1), -1, 2, 3, -4, 0, 5);
        EXPECT(ctx, fc_add(fc_topk(x, 2, 1, true), fc_cast(fc_argtopk(x, 2, 1, true), FC_F32)), 3,
               4, 6, 0);
        EXPECT(ctx, fc_sum(fc_topk(x, 2, -1, false), FC_LIST(1), false), 1, -4);
        EXPECT(ctx, fc_sort(fc_full(ctx, FC_F32, 7, FC_SHAPE(3)), 0, false), 7, 7, 7);
        fc_context_free(ctx);
    }
}

Test(order, of_nothing)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor none = fc_zeros(ctx, FC_F32, FC_SHAPE(3, 0));
        fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(3, 4));
        fc_tensor t[] = {fc_sort(none, 1, false), fc_argsort(none, 0, true),
                         fc_topk(none, 0, 1, false), fc_topk(x, 0, 1, false),
                         fc_argtopk(x, 0, 0, true)};
        for (size_t i = 0; i < sizeof t / sizeof *t; i++)
            cr_assert_eq(fc_read(t[i], NULL, 0), FC_OK, "%zu: %s", i, fc_error(ctx));
        fc_context_free(ctx);
    }
}

Test(order, misuse)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(2, 3));
    fc_tensor s = fc_full(ctx, FC_F32, 1, FC_SCALAR_SHAPE);
    cr_assert_not(fc_valid(fc_topk(x, 4, 1, false)));
    EXPECT_ERROR(ctx, FC_INVALID, "topk", "k is 4", "axis 1 of [2,3] has 3 elements", "order.c:");
    cr_assert_not(fc_valid(fc_argtopk(x, -1, 0, true)));
    EXPECT_ERROR(ctx, FC_INVALID, "argtopk", "k is -1", "use 0 to 2");
    cr_assert_not(fc_valid(fc_sort(x, 2, false)));
    EXPECT_ERROR(ctx, FC_INVALID, "sort", "axis 2 is out of range for shape [2,3]", "-2 to 1");
    cr_assert_not(fc_valid(fc_argsort(s, 0, false)));
    EXPECT_ERROR(ctx, FC_INVALID, "argsort", "axis 0 of a scalar");
    fc_context_free(ctx);
}

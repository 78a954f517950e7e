// promotion.c: result dtypes of every pair of dtypes, of numbers of the host language beside every
// dtype, and shapes that broadcast or do not: NumPy's answers (tests/fixtures/promotion.txt, made
// by make_fixtures.py there).
#include "api.h"

#include <stdio.h>

static fc_dtype
dtype_named(const char *name)
{
    for (int d = 1; fc_dtype_size((fc_dtype)d); d++)
        if (!strcmp(fc_dtype_name((fc_dtype)d), name))
            return (fc_dtype)d;
    cr_assert_fail("no dtype: %s", name);
    return FC_DTYPE_NONE;
}

static fc_tensor
called(fc_context *ctx, const char *op, fc_tensor a, fc_tensor b)
{
    if (!strcmp(op, "add"))
        return fc_add(a, b);
    if (!strcmp(op, "div"))
        return fc_div(a, b);
    if (!strcmp(op, "lt"))
        return fc_lt(a, b);
    cr_assert_str_eq(op, "where");
    return fc_where(fc_zeros(ctx, FC_BOOL, FC_SHAPE(1)), a, b);
}

static void
gives(fc_context *ctx, fc_tensor t, const char *right, const char *line)
{
    cr_assert(fc_valid(t), "%s: %s", line, fc_error(ctx));
    cr_assert_str_eq(fc_dtype_name(fc_dtype_of(t)), right, "%s", line);
}

static fc_tensor
of_dims(fc_context *ctx, const char *text)
{
    fc_dim dim[8];
    int rank = 0;
    if (*text != '-')
        for (char *at = (char *)text; *at; at += *at == ',')
            dim[rank++] = fc_n(strtol(at, &at, 10));
    return fc_zeros(ctx, FC_F32, dim, rank);
}

static void
check_shapes(fc_context *ctx, const char *a, const char *b, const char *right, const char *line)
{
    fc_tensor t = fc_add(of_dims(ctx, a), of_dims(ctx, b)), want = {0};
    if (!strcmp(right, "error")) {
        cr_assert(!fc_valid(t), "%s", line);
        EXPECT_ERROR(ctx, FC_INVALID, "add", "broadcast");
        return;
    }
    want = of_dims(ctx, right);
    cr_assert(fc_valid(t), "%s: %s", line, fc_error(ctx));
    cr_assert_eq(fc_rank(t), fc_rank(want), "%s", line);
    for (int i = 0; i < fc_rank(t); i++)
        cr_assert_eq(fc_dim_value(fc_shape(t, i)), fc_dim_value(fc_shape(want, i)), "%s", line);
}

// What the four ops give for a tensor of a dtype and another, or a number; right: as TYPE/TYPE/…
static int
check_types(fc_context *ctx, const char *a, const char *b, char *right, const char *words)
{
    static const char *const op[] = {"add", "div", "where", "lt"};
    fc_tensor x = fc_zeros(ctx, dtype_named(a), FC_SHAPE(2)), y;
    if (!strcmp(b, "int") || !strcmp(b, "float"))
        y = !strcmp(b, "int") ? fc_scalar(ctx, 1) : fc_scalar(ctx, 1.5);
    else
        y = fc_zeros(ctx, dtype_named(b), FC_SHAPE(2));
    char *rest = NULL, *type = strtok_r(right, "/", &rest);
    int n = 0;
    for (; type && n < 4; type = strtok_r(NULL, "/", &rest), n++) {
        gives(ctx, called(ctx, op[n], x, y), type, words);
        gives(ctx, called(ctx, op[n], y, x), type, words);
    }
    cr_assert(n == 4 && !type, "%s", words);
    return n;
}

// Returns how many answers stand in it.
static int
check_line(fc_context *ctx, char *line)
{
    int n = 0;
    char *rest = NULL, kind = *line, *a = strtok_r(line + 2, " \n", &rest), words[100];
    for (char *b; (b = strtok_r(NULL, " \n", &rest));) {
        snprintf(words, sizeof words, "%s and %s", a, b);
        char *right = strchr(b, '=');
        cr_assert(right, "%s", words);
        *right++ = '\0';
        fc_scope_begin(ctx);
        if (kind == 's') {
            check_shapes(ctx, a, b, right, words);
            n++;
        } else {
            n += check_types(ctx, a, b, right, words);
        }
        fc_scope_end(ctx);
    }
    return n;
}

Test(promotion, as_numpy)
{
    FILE *file = fopen(FIXTURE_DIR "/promotion.txt", "r");
    cr_assert(file);
    fc_context *ctx = new_context(FC_LAZY);
    char line[1000];
    int n = 0;
    while (fgets(line, sizeof line, file))
        n += *line == '#' ? 0 : check_line(ctx, line);
    fclose(file);
    cr_assert_eq(n, 13 * 15 * 4 + 15 * 15);
    fc_context_free(ctx);
}

// An integer that the dtype cannot hold is an error, as in NumPy 2.
Test(promotion, numbers_that_do_not_fit)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_zeros(ctx, FC_U8, FC_SHAPE(2)), y = fc_zeros(ctx, FC_I8, FC_SHAPE(2));
    cr_assert(fc_valid(fc_add(x, fc_scalar(ctx, 255))));
    cr_assert(!fc_valid(fc_add(x, fc_scalar(ctx, 256))));
    EXPECT_ERROR(ctx, FC_INVALID, "256", "u8");
    cr_assert(!fc_valid(fc_add(x, fc_scalar(ctx, -1))));
    EXPECT_ERROR(ctx, FC_INVALID, "-1", "u8");
    cr_assert(!fc_valid(fc_mul_scalar(y, 128)));
    EXPECT_ERROR(ctx, FC_INVALID, "128", "i8");
    fc_context_free(ctx);
}

// ---- numbers of the host language

enum { NUMBER_ODD = 41 }; // an enum constant is an int

Test(promotion, numbers_of_every_type_arrive)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_ones(ctx, FC_F64, FC_SCALAR_SHAPE);
    double got;
#define ADDS(number)                                                                               \
    do {                                                                                           \
        cr_assert_eq(fc_item(fc_add_scalar(x, number), &got), FC_OK, "%s", fc_error(ctx));         \
        cr_assert_eq(got, 1 + (double)(number), #number ": %.17g", got);                           \
    } while (0)
    ADDS(1.5L);
    ADDS(1.5);
    ADDS(1.5f);
    ADDS((bool)true);
    ADDS((char)65);
    ADDS((signed char)-7);
    ADDS((unsigned char)200);
    ADDS((short)-30000);
    ADDS((unsigned short)60000);
    ADDS(NUMBER_ODD);
    ADDS(-5);
    ADDS(4000000000u);
    ADDS(-5000000000L);
    ADDS(5000000000ul);
    ADDS(-5000000000LL);
    ADDS(0x9E3779B97F4A7C15ull);
    ADDS((size_t)12);
#undef ADDS
    fc_context_free(ctx);
}

Test(promotion, integers_beyond_2_63)
{
    fc_context *ctx = new_context(FC_LAZY);
    uint64_t one = 1, got = 0;
    fc_tensor x = fc_from_host(ctx, FC_U64, &one, FC_SCALAR_SHAPE);
    cr_assert_eq(fc_read(fc_mul_scalar(x, 0x9E3779B97F4A7C15ull), &got, sizeof got), FC_OK);
    cr_assert_eq(got, 0x9E3779B97F4A7C15ull);
    cr_assert_eq(fc_read(fc_full(ctx, FC_U64, UINT64_MAX, FC_SCALAR_SHAPE), &got, sizeof got),
                 FC_OK);
    cr_assert_eq(got, UINT64_MAX);
    cr_assert_eq(fc_read(fc_add(x, fc_scalar(ctx, UINT64_MAX - 1)), &got, sizeof got), FC_OK);
    cr_assert_eq(got, UINT64_MAX);
    fc_tensor alone = fc_scalar(ctx, UINT64_MAX);
    cr_assert_eq(fc_dtype_of(alone), FC_U64);
    cr_assert_eq(fc_read(alone, &got, sizeof got), FC_OK);
    cr_assert_eq(got, UINT64_MAX);
    float f = 0;
    cr_assert_eq(fc_read(fc_full(ctx, FC_F32, UINT64_MAX, FC_SCALAR_SHAPE), &f, sizeof f), FC_OK);
    cr_assert_eq(f, 0x1p64f);
    cr_assert(!fc_valid(fc_full(ctx, FC_I64, UINT64_MAX, FC_SCALAR_SHAPE)));
    EXPECT_ERROR(ctx, FC_INVALID, "18446744073709551615", "does not fit in i64");
    cr_assert(!fc_valid(fc_mul_scalar(fc_ones(ctx, FC_I32, FC_SCALAR_SHAPE), UINT64_MAX)));
    EXPECT_ERROR(ctx, FC_INVALID, "18446744073709551615", "does not fit in i32");
    fc_context_free(ctx);
}

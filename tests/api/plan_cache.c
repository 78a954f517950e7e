// plan_cache.c: the same graph is found, any difference that matters is a miss, and a hash that
// collides changes nothing.
#include "api.h"

#include "frontend/context.h"

// One small graph, every field of whose key can be set.
struct recipe {
    fc_dtype dtype;
    int64_t rows, cols;
    int64_t row_stride, col_stride;
    int offset; // elements from an aligned address
    double literal;
    int axis;
    bool keepdims, swap, second_output, other_op, same_input;
    const char *dim_name;
};
static const struct recipe plain = {
    .dtype = FC_F32, .rows = 4, .cols = 4, .row_stride = 4, .col_stride = 1, .literal = 2};

static _Alignas(64) float memory[256];

static void
run_recipe(fc_context *ctx, const struct recipe *r)
{
    fc_scope_begin(ctx);
    int64_t strides[2] = {r->row_stride, r->col_stride};
    fc_dim rows = r->dim_name ? fc_dim_named(ctx, r->dim_name, r->rows) : fc_n(r->rows);
    const char *at = (const char *)memory + (size_t)r->offset * fc_dtype_size(r->dtype);
    fc_tensor x = fc_borrow(ctx, r->dtype, at, FC_DIMS(rows, fc_n(r->cols)), strides, NULL, NULL);
    fc_tensor y = r->same_input ? x
                                : fc_borrow(ctx, r->dtype, memory, FC_DIMS(rows, fc_n(r->cols)),
                                            NULL, NULL, NULL);
    fc_tensor d = r->swap ? fc_sub(y, x) : fc_sub(x, y);
    fc_tensor m = fc_mul_scalar(fc_add(d, x), r->literal);
    fc_tensor s = r->other_op ? fc_max_reduce(m, FC_LIST(r->axis), r->keepdims)
                              : fc_sum(m, FC_LIST(r->axis), r->keepdims);
    fc_tensor roots[2] = {s, m};
    cr_assert_eq(fc_eval(ctx, roots, r->second_output ? 2 : 1), FC_OK, "%s", fc_error(ctx));
    fc_scope_end(ctx);
}

static void
expect_plans(fc_context *ctx, const struct recipe *r, int64_t misses, const char *what)
{
    fc_statistics before = stats(ctx);
    run_recipe(ctx, r);
    fc_statistics after = stats(ctx);
    cr_assert_eq(after.plan_misses - before.plan_misses, misses, "%s", what);
    cr_assert_eq(after.plan_hits - before.plan_hits, 1 - misses, "%s", what);
}

static void
flip_every_field(uint64_t hash_mask)
{
    fc_context *ctx = new_context(FC_LAZY);
    ctx->plans.hash_mask = ctx->types.hash_mask = hash_mask;
#define FLIP(field)                                                                                \
    {                                                                                              \
#field, plain                                                                              \
    }
    struct {
        const char *what;
        struct recipe r;
    } flip[] = {FLIP(dtype),         FLIP(rows),     FLIP(cols),       FLIP(row_stride),
                FLIP(offset),        FLIP(axis),     FLIP(keepdims),   FLIP(swap),
                FLIP(second_output), FLIP(other_op), FLIP(same_input), FLIP(dim_name),
                FLIP(col_stride),    FLIP(literal)};
    flip[0].r.dtype = FC_F64;
    flip[1].r.rows = 3;
    flip[2].r.cols = 3;
    flip[3].r.row_stride = 5;
    flip[4].r.offset = 1;
    flip[5].r.axis = 1;
    flip[6].r.keepdims = true;
    flip[7].r.swap = true;
    flip[8].r.second_output = true;
    flip[9].r.other_op = true;
    flip[10].r.same_input = true;
    flip[11].r.dim_name = "N";
    flip[12].r.col_stride = -1;
    flip[12].r.offset = 16;
    flip[13].r.literal = 3;
    int n = sizeof flip / sizeof *flip;
    expect_plans(ctx, &plain, 1, "first");
    expect_plans(ctx, &plain, 0, "again");
    for (int i = 0; i < n; i++) {
        expect_plans(ctx, &flip[i].r, 1, flip[i].what);
        expect_plans(ctx, &plain, 0, "the plain one after it");
    }
    for (int i = 0; i < n; i++)
        expect_plans(ctx, &flip[i].r, 0, flip[i].what);
    fc_context_free(ctx);
}

Test(plan_cache, every_field_of_the_key_counts)
{
    flip_every_field(~0ull);
}

Test(plan_cache, an_8_bit_hash_changes_nothing)
{
    flip_every_field(0xff);
}

Test(plan_cache, one_hash_for_all_changes_nothing)
{
    flip_every_field(0);
}

Test(plan_cache, bc50_wiring_counts)
{
    fc_context *ctx = new_context(FC_LAZY);
    ctx->plans.hash_mask = 0xff;
    fc_tensor a = fc_from_host(ctx, FC_F32, ((float[]){3, 3}), FC_SHAPE(2));
    fc_tensor b = fc_from_host(ctx, FC_F32, ((float[]){5, 5}), FC_SHAPE(2));
    fc_tensor c = fc_from_host(ctx, FC_F32, ((float[]){2, 2}), FC_SHAPE(2));
    for (int round = 0; round < 2; round++) {
        fc_tensor d = fc_add(a, b), e = fc_add(a, c);
        EXPECT(ctx, fc_sub(fc_mul(d, e), e), 35, 35);
        d = fc_add(a, b), e = fc_add(a, c);
        EXPECT(ctx, fc_sub(fc_mul(d, e), d), 32, 32);
        EXPECT(ctx, fc_sub(a, b), -2, -2);
        EXPECT(ctx, fc_sub(b, a), 2, 2);
        EXPECT(ctx, fc_add_scalar(a, 1.0), 4, 4);
        EXPECT(ctx, fc_add_scalar(a, 2.0), 5, 5);
        EXPECT(ctx, fc_mul_scalar(a, 2.0), 6, 6);
        EXPECT(ctx, fc_mul_scalar(a, 100.0), 300, 300);
        EXPECT(ctx, fc_div_scalar(a, -0.0), -__builtin_inff(), -__builtin_inff());
        EXPECT(ctx, fc_div_scalar(a, 0.0), __builtin_inff(), __builtin_inff());
    }
    fc_context_free(ctx);
}

Test(plan_cache, literals_that_keep_changing_become_inputs)
{
    for (int mode = FC_LAZY; mode <= FC_EAGER; mode++) {
        fc_context *ctx = new_context(mode);
        fc_tensor p = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3}), FC_SHAPE(3));
        for (int i = 0; i < 300; i++) {
            fc_scope_begin(ctx);
            double a = 0.25 * i;
            EXPECT(ctx, fc_add_scalar(fc_mul_scalar(p, a), i), (float)(a + i), (float)(2 * a + i),
                   (float)(3 * a + i));
            fc_scope_end(ctx);
        }
        cr_assert_leq(stats(ctx).plan_misses, mode == FC_LAZY ? 2 : 4);
        fc_context_free(ctx);
    }
}

Test(plan_cache, is_bounded)
{
    fc_options o = {.size = sizeof o, .threads = 1, .cache_plans = 8};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= 20; n++) {
            double sum;
            fc_scope_begin(ctx);
            fc_tensor x = fc_from_host(ctx, FC_F32, memory, FC_SHAPE(n));
            cr_assert_eq(fc_item(fc_sum(x, FC_ALL, false), &sum), FC_OK, "%s", fc_error(ctx));
            fc_scope_end(ctx);
            cr_assert_leq(ctx->plans.count, 8);
        }
    cr_assert_eq(stats(ctx).plan_misses, 40);
    double sum; // the most recent one is still there
    fc_tensor x = fc_from_host(ctx, FC_F32, memory, FC_SHAPE(20));
    cr_assert_eq(fc_item(fc_sum(x, FC_ALL, false), &sum), FC_OK);
    cr_assert_eq(stats(ctx).plan_misses, 40);
    fc_context_free(ctx);
}

Test(plan_cache, layouts_are_forgotten_when_there_are_too_many)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor early = fc_from_host(ctx, FC_F32, ((float[]){1, 2}), FC_SHAPE(2));
    fc_tensor pending = fc_neg(early);
    for (int64_t n = 1; n <= 70000; n++)
        fc_release(fc_zeros(ctx, FC_F32, FC_SHAPE(n)));
    cr_assert_lt(ctx->layouts.n, 66000);
    EXPECT(ctx, fc_add(pending, early), 0, 0);
    EXPECT(ctx, pending, -1, -2);
    fc_context_free(ctx);
}

static void
count_plan(void *user, const struct plan *p)
{
    *(uint32_t *)user += p->raw->outputs.n;
}

Test(plan_cache, a_hook_sees_each_plan_once)
{
    fc_context *ctx = new_context(FC_LAZY);
    uint32_t outputs = 0;
    context_on_plan(ctx, count_plan, &outputs);
    run_recipe(ctx, &plain);
    run_recipe(ctx, &plain);
    cr_assert_eq(outputs, 1);
    fc_context_free(ctx);
}

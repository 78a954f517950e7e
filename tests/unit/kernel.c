// kernel.c: kernels as text, their invariants, and the kernel interpreter: reductions in their
// fixed order against an independent formulation, staged bodies, masks and gathers, contractions,
// and the figures of traffic.
#include "ir/interp.h"

#include "ir/base/str.h"
#include "ir/expand.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- building kernels by hand

static void
add_axis(struct kernel *k, enum axis_kind kind, int64_t extent)
{
    k->axis[k->naxis++] = (struct axis){extent, (uint8_t)kind};
    k->nred = (uint8_t)(k->nred + (kind == AXIS_R));
}

static uint32_t
add_inst(struct kernel *k, struct inst in)
{
    if (!k->inst.n)
        vec_push(&k->inst, (struct inst){0});
    vec_push(&k->inst, in);
    k->nstage = in.stage >= k->nstage ? (uint8_t)(in.stage + 1) : k->nstage;
    return k->inst.n - 1;
}

// A buffer and one access to it, of n elements.
static uint32_t
add_buffer(struct kernel *k, uint8_t role, uint8_t dtype, int64_t n, int64_t s0, int64_t s1,
           int64_t s2)
{
    struct access a = {.buffer = (uint16_t)k->buffers.n, .dtype = dtype, .stride = {s0, s1, s2}};
    struct kernel_buffer b = {.dtype = dtype, .role = role, .span_hi = n ? n - 1 : 0};
    vec_push(&k->buffers, b);
    vec_push(&k->access, a);
    return k->access.n - 1;
}

static uint32_t
add_load(struct kernel *k, uint32_t access, uint8_t stage, uint8_t level)
{
    return add_inst(k, (struct inst){.op = OP_load, .dtype = k->access.at[access].dtype,
                                     .aux = access, .stage = stage, .level = level});
}

static uint32_t
add_op(struct kernel *k, uint16_t op, uint8_t dtype, uint32_t a, uint32_t b, uint8_t stage,
       uint8_t level)
{
    return add_inst(k, (struct inst){.op = op, .dtype = dtype, .a = a, .b = b, .stage = stage,
                                     .level = level});
}

// An accumulator and its result.
static uint32_t
add_acc(struct kernel *k, uint16_t op, uint8_t dtype, uint32_t value, uint8_t stage, uint8_t scope)
{
    struct acc a = {.op = op, .dtype = dtype, .stage = stage, .scope = scope, .value = value};
    vec_push(&k->acc, a);
    static const uint8_t level[] = {
        [OVER_R] = LEVEL_ROW, [OVER_P] = LEVEL_ONCE, [ALONG_R] = LEVEL_ELEM};
    return add_inst(k, (struct inst){.op = OP_result, .aux = k->acc.n - 1,
                                     .dtype = op_table[op].combine ? dtype : DT_i64,
                                     .stage = (uint8_t)(stage + (scope == OVER_R)),
                                     .level = level[scope]});
}

static void
add_store(struct kernel *k, uint32_t value, uint32_t access, uint8_t stage, uint8_t level)
{
    struct store s = {value, access, stage, level};
    vec_push(&k->store, s);
}

static void
assert_sound(const struct kernel *k)
{
    struct diag d = {0};
    struct str s = {0};
    kernel_print(k, &s);
    cr_assert(kernel_verify(k, &d), "%s\n%s", d.text, s.at);
    str_free(&s);
}

// softmax over rows: max at stage 0, exp and sum at 1, the quotient stored at 2.
static struct kernel
softmax_kernel(int64_t rows, int64_t cols)
{
    struct kernel k = {.name = "fused_softmax_0", .cls = CLASS_ROW};
    add_axis(&k, AXIS_P, rows);
    add_axis(&k, AXIS_R, cols);
    uint32_t in = add_buffer(&k, BUF_IN, DT_f32, rows * cols, cols, 1, 0);
    uint32_t out = add_buffer(&k, BUF_OUT, DT_f32, rows * cols, cols, 1, 0);
    uint32_t x = add_load(&k, in, 0, LEVEL_ELEM);
    uint32_t m = add_acc(&k, OP_max_reduce, DT_f32, x, 0, OVER_R);
    uint32_t d = add_op(&k, OP_sub, DT_f32, x, m, 1, LEVEL_ELEM);
    uint32_t e = add_op(&k, OP_exp, DT_f32, d, 0, 1, LEVEL_ELEM);
    uint32_t s = add_acc(&k, OP_sum, DT_f32, e, 1, OVER_R);
    uint32_t q = add_op(&k, OP_div, DT_f32, e, s, 2, LEVEL_ELEM);
    add_store(&k, q, out, 2, LEVEL_ELEM);
    return k;
}

// One reduction of dtype over r elements for each of p points.
static struct kernel
reduce_kernel(uint16_t op, uint8_t dtype, int64_t p, int64_t r)
{
    struct kernel k = {.name = "reduce", .cls = CLASS_ROW};
    uint8_t to = op_table[op].combine ? dtype : DT_i64;
    add_axis(&k, AXIS_P, p);
    add_axis(&k, AXIS_R, r);
    uint32_t in = add_buffer(&k, BUF_IN, dtype, p * r, r, 1, 0);
    uint32_t out = add_buffer(&k, BUF_OUT, to, p, 1, 0, 0);
    uint32_t x = add_load(&k, in, 0, LEVEL_ELEM);
    add_store(&k, add_acc(&k, op, dtype, x, 0, OVER_R), out, 1, LEVEL_ROW);
    return k;
}

static void
run(const struct kernel *k, void *const *buffer, int64_t l2, struct kernel_counts *counts,
    int64_t *per_buffer)
{
    struct diag d = {0};
    assert_sound(k);
    cr_assert(interp_kernel(k, buffer, l2, counts, per_buffer, &d), "%s", d.text);
}

// ---- text and invariants

Test(kernel, prints_all_there_is)
{
    struct kernel k = softmax_kernel(4, 100);
    struct str s = {0};
    kernel_print(&k, &s);
    cr_assert_str_eq(s.at, "kernel fused_softmax_0: row, 3 stages\n"
                           "  domain p0 < 4 | r0 < 100\n"
                           "  b0 in f32 elements 0..399\n"
                           "  b1 out f32 elements 0..399\n"
                           "  %1 = load @0 b0[100*p0 + r0] : f32, stage 0, elem\n"
                           "  %2 = result acc0 : f32, stage 1, row\n"
                           "  %3 = sub %1, %2 : f32, stage 1, elem\n"
                           "  %4 = exp %3 : f32, stage 1, elem\n"
                           "  %5 = result acc1 : f32, stage 2, row\n"
                           "  %6 = div %4, %5 : f32, stage 2, elem\n"
                           "  acc0 = max_reduce %1 over r : f32, stage 0\n"
                           "  acc1 = sum %4 over r : f32, stage 1\n"
                           "  store @1 b1[100*p0 + r0] = %6 : stage 2, elem\n");
    str_free(&s);
    kernel_free_body(&k);
}

static void
assert_unsound(struct kernel *k, const char *words)
{
    struct diag d = {0};
    cr_assert_not(kernel_verify(k, &d), "expected: %s", words);
    cr_assert(strstr(d.text, words), "expected: %s\nfound:    %s", words, d.text);
    struct str s = {0};
    kernel_print(k, &s); // prints whatever it is
    str_free(&s);
    kernel_free_body(k);
    *k = softmax_kernel(4, 100);
}

Test(kernel, verifier_finds_damage)
{
    struct kernel k = softmax_kernel(4, 100);
    assert_sound(&k);
    k.inst.at[3].a = 3;
    assert_unsound(&k, "does not come before");
    k.inst.at[3].a = 0;
    assert_unsound(&k, "is missing");
    k.inst.at[3].dtype = DT_f64;
    assert_unsound(&k, "gives no f64");
    k.inst.at[3].level = LEVEL_ROW;
    assert_unsound(&k, "a lower level");
    k.inst.at[1].level = LEVEL_ROW;
    assert_unsound(&k, "below that of the axes");
    k.inst.at[2].stage = 0;
    assert_unsound(&k, "from stage 1 on");
    k.inst.at[4].op = OP_relu;
    assert_unsound(&k, "relu is no instruction");
    k.inst.at[4].op = OP_not;
    assert_unsound(&k, "not does not take f32");
    k.inst.at[4].op = OP_lookup;
    assert_unsound(&k, "names no table");
    k.inst.at[1].aux = 7;
    assert_unsound(&k, "no access 7");
    k.inst.at[1].aux = 1;
    assert_unsound(&k, "buffer 1 is an output");
    k.access.at[0].base = 1;
    assert_unsound(&k, "reaches beyond");
    k.access.at[0].stride[1] = INT64_MAX;
    assert_unsound(&k, "reaches beyond");
    k.access.at[1].stride[0] = 99;
    assert_unsound(&k, "several points store");
    k.access.at[1].stride[2] = 1;
    assert_unsound(&k, "axis 2, which does not exist");
    k.store.at[0].level = LEVEL_ROW;
    assert_unsound(&k, "comes before its value");
    k.store.at[0].stage = 3;
    assert_unsound(&k, "nstage is 3");
    k.acc.at[0].value = 2;
    assert_unsound(&k, "does not come before");
    k.acc.at[1].op = OP_exp;
    assert_unsound(&k, "not the reduction");
    k.acc.at[1].dtype = DT_f16;
    assert_unsound(&k, "another dtype");
    k.acc.at[0].scope = OVER_P;
    assert_unsound(&k, "used inside the domain");
    k.axis[0].kind = AXIS_R;
    assert_unsound(&k, "P axes come first");
    k.naxis = 200;
    assert_unsound(&k, "200 axes");
    k.inst.at[1].op = OP_COUNT;
    assert_unsound(&k, "no op");
    k.cls = CLASS_CONTRACT;
    k.contraction = (struct contraction){1, 1, 0};
    assert_unsound(&k, "a contraction has the axes");
    kernel_free_body(&k);
}

// ---- scans

static struct kernel
scan_kernel(uint16_t op, int64_t n)
{
    struct kernel k = {.name = "scan", .cls = CLASS_SCAN};
    add_axis(&k, AXIS_R, n);
    uint32_t in = add_buffer(&k, BUF_IN, DT_f32, n, 1, 0, 0);
    uint32_t out = add_buffer(&k, BUF_OUT, DT_f32, n, 1, 0, 0);
    uint32_t x = add_load(&k, in, 0, LEVEL_ELEM);
    add_store(&k, add_acc(&k, op, DT_f32, x, 0, ALONG_R), out, 0, LEVEL_ELEM);
    return k;
}

// Of 2^k elements: halves, each made the same way.
static float
tree_sum(const float *x, uint32_t k)
{
    return k ? tree_sum(x, k - 1) + tree_sum(x + (1 << (k - 1)), k - 1) : *x;
}

// kernel.h's L: element j of a vector with those before it in the vector.
static float
sum_within(const float *vector, uint32_t j)
{
    float sum = vector[j];
    uint32_t first = j;
    for (uint32_t k = 0; k < SCAN_STEPS; k++)
        if (j >> k & 1) {
            first -= 1u << k;
            sum = tree_sum(vector + first, k) + sum;
        }
    return sum;
}

// The order of kernel.h, stated again from its words.
Test(kernel, a_scan_has_its_order)
{
    enum { N = 2 * SCAN_SPAN + 1000 };
    float *x = xmalloc(N * sizeof *x), *got = xmalloc(N * sizeof *got);
    uint32_t random = 1;
    for (uint32_t i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        x[i] = (float)(random >> 8) * 0x1p-24f - 0.3f;
    }
    struct kernel k = scan_kernel(OP_cumsum, N);
    run(&k, (void *[]){x, got}, 0, NULL, NULL);
    float v = -0.0f, b = -0.0f, s = -0.0f;
    for (uint32_t j = 0; j < N; j++) {
        float right = ((s + b) + v) + sum_within(x + j / 16 * 16, j % 16);
        cr_assert(!memcmp(&right, &got[j], 4), "element %u is %.9g, not %.9g", j, got[j], right);
        if (j % 16 == 15)
            v = v + tree_sum(x + j - 15, SCAN_STEPS);
        if (j % SCAN_BLOCK == SCAN_BLOCK - 1) {
            b = b + v;
            v = -0.0f;
        }
        if (j % SCAN_SPAN == SCAN_SPAN - 1) {
            s = s + b;
            b = -0.0f;
        }
    }
    kernel_free_body(&k);
    xfree(x);
    xfree(got);
}

Test(kernel, malformed_scans_are_refused)
{
    struct kernel k[4];
    for (uint32_t i = 0; i < 4; i++) {
        k[i] = scan_kernel(OP_cumsum, 20);
        assert_sound(&k[i]);
    }
    add_inst(&k[0], (struct inst){.op = OP_result, .dtype = DT_f32, .level = LEVEL_ELEM});
    assert_unsound(&k[0], "would move on twice");
    k[1].inst.at[2].level = LEVEL_ROW;
    assert_unsound(&k[1], "gives an element");
    k[2].acc.at[0].op = OP_sum;
    assert_unsound(&k[2], "that its class asks for");
    k[3].acc.at[0].scope = OVER_R;
    assert_unsound(&k[3], "finished per row");
    for (uint32_t i = 0; i < 4; i++)
        kernel_free_body(&k[i]);
}

Test(kernel, copies_are_their_own)
{
    struct kernel k = softmax_kernel(2, 3), c;
    struct str a = {0}, b = {0};
    kernel_copy(&c, &k);
    c.inst.at[3].op = OP_add;
    kernel_print(&k, &a);
    cr_assert(strstr(a.at, "sub %1, %2"));
    c.inst.at[3].op = OP_sub;
    kernel_free_body(&k);
    kernel_print(&c, &b);
    cr_assert_str_eq(a.at, b.at);
    kernel_free_body(&c);
    str_free(&a);
    str_free(&b);
}

// ---- the fixed order of reductions, said another way: recursively

static float
lane_blocks(const float *x, int64_t n, int64_t lane, int64_t first, int64_t end)
{
    if (end - first == 1) {
        float s = -0.0f;
        for (int64_t i = 0; i < RED_STEPS; i++)
            if (first * RED_BLOCK + i * RED_LANES + lane < n)
                s += x[first * RED_BLOCK + i * RED_LANES + lane];
        return s;
    }
    int64_t half = 1; // the largest power of two below the count: what the binary counter joins
    while (half * 2 < end - first)
        half *= 2;
    return lane_blocks(x, n, lane, first, first + half) +
           lane_blocks(x, n, lane, first + half, end);
}

static float
ordered_sum(const float *x, int64_t n)
{
    float lane[RED_LANES];
    for (int64_t l = 0; l < RED_LANES; l++)
        lane[l] = lane_blocks(x, n, l, 0, n ? (n + RED_BLOCK - 1) / RED_BLOCK : 1);
    for (int64_t half = RED_LANES / 2; half; half /= 2)
        for (int64_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static float
noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)((double)(*seed >> 8) / (1 << 24) - 0.4) * ((*seed >> 5) % 7 ? 1.0f : 1e6f);
}

Test(kernel, sums_in_the_fixed_order)
{
    static const int64_t size[] = {0, 1, 2, 15, 16, 17, 70, 255, 256, 257, 511, 512, 513, 1024,
                                   1300, 2047, 2817, 4096, 5000};
    float *x = xcalloc(10000, sizeof *x), out[2];
    uint32_t seed = 7;
    for (int i = 0; i < 10000; i++)
        x[i] = noise(&seed);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        struct kernel k = reduce_kernel(OP_sum, DT_f32, 2, size[i]);
        run(&k, (void *[]){x, out}, 1 << 20, NULL, NULL);
        for (int p = 0; p < 2; p++) {
            float want = ordered_sum(x + p * size[i], size[i]);
            cr_assert_arr_eq(&out[p], &want, sizeof want, "%lld: %a %a", (long long)size[i],
                             (double)out[p], (double)want);
        }
        kernel_free_body(&k);
    }
    xfree(x);
}

Test(kernel, extremes_and_their_places)
{
    float x[8] = {1, 3, -2, 3, -2, 0.0f, -0.0f, 1}, f;
    float nans[6] = {1, NAN, 9, -NAN, INFINITY, 2}, low[3] = {-INFINITY, -INFINITY, -INFINITY};
    int32_t ints[5] = {4, INT32_MIN, 9, INT32_MIN, 9};
    uint64_t big[3] = {1, UINT64_MAX, UINT64_MAX};
    uint8_t truth[3] = {0, 200, 0}, b;
    int64_t at;
    struct {
        uint16_t op;
        uint8_t dtype;
        int64_t n, want;
        void *x;
    } place[] = {
        {OP_argmax, DT_f32, 8, 1, x},    {OP_argmin, DT_f32, 8, 2, x},
        {OP_argmax, DT_f32, 6, 1, nans}, {OP_argmin, DT_f32, 6, 1, nans},
        {OP_argmax, DT_f32, 3, 0, low},  {OP_argmax, DT_i32, 5, 2, ints},
        {OP_argmin, DT_i32, 5, 1, ints}, {OP_argmax, DT_u64, 3, 1, big},
        {OP_argmax, DT_f32, 1, 0, nans},
    };
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        struct kernel k = reduce_kernel(place[i].op, place[i].dtype, 1, place[i].n);
        run(&k, (void *[]){place[i].x, &at}, 0, NULL, NULL);
        cr_assert_eq(at, place[i].want, "case %zu: %lld", i, (long long)at);
        kernel_free_body(&k);
    }
    struct kernel k = reduce_kernel(OP_max_reduce, DT_f32, 1, 6);
    run(&k, (void *[]){nans, &f}, 0, NULL, NULL);
    cr_assert(isnan(f));
    kernel_free_body(&k);
    k = reduce_kernel(OP_any, DT_bool, 1, 3);
    run(&k, (void *[]){truth, &b}, 0, NULL, NULL);
    cr_assert_eq(b, 1);
    kernel_free_body(&k);
}

Test(kernel, argmax_over_many_blocks_takes_the_first)
{
    int64_t n = 3000, at;
    float *x = xcalloc((size_t)n, sizeof *x);
    struct kernel k = reduce_kernel(OP_argmax, DT_f32, 1, n);
    x[2999] = x[777] = x[1801] = 5;
    run(&k, (void *[]){x, &at}, 0, NULL, NULL);
    cr_assert_eq(at, 777);
    x[2000] = x[2001] = NAN;
    run(&k, (void *[]){x, &at}, 0, NULL, NULL);
    cr_assert_eq(at, 2000);
    kernel_free_body(&k);
    xfree(x);
}

// ---- staged bodies and traffic

Test(kernel, softmax_in_three_stages)
{
    enum { ROWS = 3, COLS = 300 };
    static float x[ROWS * COLS], y[ROWS * COLS], e[COLS];
    uint32_t seed = 3;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = noise(&seed) * 1e-5f;
    struct kernel k = softmax_kernel(ROWS, COLS);
    struct kernel_counts c;
    int64_t bytes[2];
    run(&k, (void *[]){x, y}, 1 << 20, &c, bytes);
    for (int r = 0; r < ROWS; r++) {
        const float *row = x + r * COLS;
        float m = row[0];
        for (int i = 1; i < COLS; i++)
            m = row[i] > m ? row[i] : m;
        for (int i = 0; i < COLS; i++) {
            float d = row[i] - m;
            uint64_t in = 0;
            memcpy(&in, &d, 4);
            uint64_t out = eval_exact(OP_exp, DT_f32, DT_f32, &in);
            memcpy(&e[i], &out, 4);
        }
        float s = ordered_sum(e, COLS);
        for (int i = 0; i < COLS; i++)
            cr_assert_eq(y[r * COLS + i], e[i] / s);
    }
    cr_assert_eq(c.loads, 3 * ROWS * COLS);
    cr_assert_eq(c.stores, ROWS * COLS);
    cr_assert_eq(c.bytes_read, 4 * ROWS * COLS); // a row stays in the cache
    cr_assert_eq(c.bytes_written, 4 * ROWS * COLS);
    cr_assert(bytes[0] == 4 * ROWS * COLS && bytes[1] == 4 * ROWS * COLS);
    run(&k, (void *[]){x, y}, 64, &c, NULL);
    cr_assert_eq(c.bytes_read, 3 * 4 * ROWS * COLS); // it does not stay in this one
    kernel_free_body(&k);
}

// out[p] = x[p] + y broadcast, and the sum over P of x in the epilogue, doubled.
Test(kernel, accumulators_over_p_and_the_epilogue)
{
    enum { N = 700 };
    static float x[N], y[1] = {0.5f}, out[N], total[1];
    uint32_t seed = 5;
    for (int i = 0; i < N; i++)
        x[i] = noise(&seed);
    struct kernel k = {.name = "over_p", .cls = CLASS_POINTWISE};
    add_axis(&k, AXIS_P, N);
    uint32_t ax = add_buffer(&k, BUF_IN, DT_f32, N, 1, 0, 0);
    uint32_t ay = add_buffer(&k, BUF_IN, DT_f32, 1, 0, 0, 0);
    uint32_t ao = add_buffer(&k, BUF_OUT, DT_f32, N, 1, 0, 0);
    uint32_t at = add_buffer(&k, BUF_OUT, DT_f32, 1, 0, 0, 0);
    uint32_t vx = add_load(&k, ax, 0, LEVEL_ROW), vy = add_load(&k, ay, 0, LEVEL_ONCE);
    add_store(&k, add_op(&k, OP_add, DT_f32, vx, vy, 0, LEVEL_ROW), ao, 0, LEVEL_ROW);
    uint32_t s = add_acc(&k, OP_sum, DT_f32, vx, 0, OVER_P);
    add_store(&k, add_op(&k, OP_add, DT_f32, s, s, 0, LEVEL_ONCE), at, 0, LEVEL_ONCE);
    add_op(&k, OP_sqrt, DT_f32, vx, 0, 0, LEVEL_ROW); // needed by nothing
    struct kernel_counts c;
    run(&k, (void *[]){x, y, out, total}, 0, &c, NULL);
    for (int i = 0; i < N; i++)
        cr_assert_eq(out[i], x[i] + 0.5f);
    cr_assert_eq(total[0], 2 * ordered_sum(x, N));
    cr_assert_eq(c.loads, N + 1);
    cr_assert_eq(c.stores, N + 1);
    kernel_free_body(&k);
}

// A masked, gathered load with a check: out[p] = mask[p] ? table[2 * index[p]] : 0.
Test(kernel, masks_gathers_and_checks)
{
    double table[7] = {10, 0, 11, 0, 12, 0, 13}, out[4];
    int64_t index[4] = {3, 99, 1, 0};
    uint8_t mask[4] = {1, 0, 7, 1}, ok[4] = {1, 0, 1, 1};
    struct kernel k = {.name = "gather", .cls = CLASS_POINTWISE};
    add_axis(&k, AXIS_P, 4);
    uint32_t at = add_buffer(&k, BUF_IN, DT_f64, 7, 0, 0, 0);
    uint32_t ai = add_buffer(&k, BUF_IN, DT_i64, 4, 1, 0, 0);
    uint32_t am = add_buffer(&k, BUF_IN, DT_bool, 4, 1, 0, 0);
    uint32_t ak = add_buffer(&k, BUF_IN, DT_bool, 4, 1, 0, 0);
    uint32_t ao = add_buffer(&k, BUF_OUT, DT_f64, 4, 1, 0, 0);
    uint32_t i = add_load(&k, ai, 0, LEVEL_ROW), m = add_load(&k, am, 0, LEVEL_ROW);
    uint32_t c = add_load(&k, ak, 0, LEVEL_ROW);
    uint32_t v = add_inst(&k, (struct inst){.op = OP_load, .dtype = DT_f64, .aux = at, .a = i,
                                            .b = m, .c = c, .bits = 2, .level = LEVEL_ROW,
                                            .origin = 41});
    add_store(&k, v, ao, 0, LEVEL_ROW);
    void *buffer[] = {table, index, mask, ok, out};
    struct kernel_counts n;
    run(&k, buffer, 0, &n, NULL);
    cr_assert(out[0] == 13 && out[1] == 0 && out[2] == 11 && out[3] == 10);
    cr_assert_eq(n.loads, 3 * 4 + 3);
    struct diag d = {0};
    ok[2] = 0; // the kernel goes on, and says so at the end
    cr_assert_not(interp_kernel(&k, buffer, 0, NULL, NULL, &d));
    cr_assert_eq(d.code, DIAG_INDEX);
    cr_assert(strstr(d.text, "41"));
    cr_assert(out[0] == 13 && out[2] == 0 && out[3] == 10);
    d = (struct diag){0};
    index[0] = 4; // beyond the span: the check lied
    cr_assert_not(interp_kernel(&k, buffer, 0, NULL, NULL, &d));
    cr_assert(d.code == DIAG_INTERNAL && strstr(d.text, "reads element 8"), "%s", d.text);
    kernel_free_body(&k);
}

// C[m, n] = relu-like epilogue of A[m, k] B[k, n], one chain of fused multiply-adds.
static void
check_contraction(int64_t m, int64_t n, int64_t depth)
{
    float a[64], b[64], out[64];
    uint32_t seed = 11;
    for (int i = 0; i < 64; i++) {
        a[i] = noise(&seed);
        b[i] = noise(&seed);
    }
    struct kernel k = {.name = "matmul", .cls = CLASS_CONTRACT};
    add_axis(&k, AXIS_P, m);
    add_axis(&k, AXIS_P, n);
    add_axis(&k, AXIS_R, depth);
    uint32_t aa = add_buffer(&k, BUF_IN, DT_f32, 64, depth, 0, 1);
    uint32_t ab = add_buffer(&k, BUF_IN, DT_f32, 64, 0, 1, n);
    uint32_t ac = add_buffer(&k, BUF_OUT, DT_f32, 64, n, 1, 0);
    uint32_t va = add_load(&k, aa, 0, LEVEL_ELEM), vb = add_load(&k, ab, 0, LEVEL_ELEM);
    uint32_t sum = add_acc(&k, OP_sum, DT_f32, 0, 0, OVER_R);
    k.contraction = (struct contraction){va, vb, 0};
    add_store(&k, add_op(&k, OP_abs, DT_f32, sum, 0, 1, LEVEL_ROW), ac, 1, LEVEL_ROW);
    run(&k, (void *[]){a, b, out}, 0, NULL, NULL);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float s = 0;
            for (int64_t l = 0; l < depth; l++)
                s = fmaf(a[i * depth + l], b[l * n + j], s);
            cr_assert_eq(out[i * n + j], fabsf(s));
        }
    kernel_free_body(&k);
}

Test(kernel, contractions_are_chains_of_fma)
{
    check_contraction(3, 5, 7);
    check_contraction(1, 1, 1);
    check_contraction(2, 3, 0);
    check_contraction(0, 3, 4);
}

Test(kernel, empty_domains_touch_nothing)
{
    float x = 1, y = 7;
    struct kernel k = softmax_kernel(0, 5);
    struct kernel_counts c;
    run(&k, (void *[]){&x, &y}, 0, &c, NULL);
    kernel_free_body(&k);
    k = softmax_kernel(5, 0);
    run(&k, (void *[]){&x, &y}, 0, &c, NULL);
    cr_assert(y == 7 && !c.loads && !c.stores && !c.bytes_read && !c.bytes_written);
    kernel_free_body(&k);
}

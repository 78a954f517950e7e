// emit_contract.c: contractions through generated code, bit for bit with the kernel interpreter
// (one chain of fused multiply-adds an element): odd shapes, every transposition, broadcast
// batches, dtypes, prologues and epilogues, forced tiles; nothing outside a buffer.
#include "emit_run.h"

#include "passes/schedule_contract.h"

#include <stdlib.h>

enum epilogue { PLAIN, BIAS_GELU_RESIDUAL };
struct spec {
    int64_t batch, m, k, n;
    uint8_t from, acc;    // dtypes of the factors in memory, and of the sum
    bool ta, tb, tc;      // stored transposed: a as [k][m], b as [n][k], c as [n][m]
    bool wide_a, wide_b;  // rows two elements apart: no stride is 1
    bool flip_a, flip_b;  // backwards along k
    bool one_a, one_b;    // the same factor for all batches
    bool scaled;          // factors are divided by 255
    enum epilogue epilogue;
};

// Strides over (batch, m, n, k) of a matrix with `rows` along axis r and `columns` along axis c.
static void
matrix(const struct kernel *k, int64_t *stride, uint32_t r, uint32_t c, bool transposed, bool wide,
       bool one)
{
    int64_t unit = wide ? 2 : 1;
    memset(stride, 0, MAX_AXES * sizeof *stride);
    stride[transposed ? r : c] = unit;
    stride[transposed ? c : r] = unit * k->axis[transposed ? r : c].extent;
    stride[0] = one ? 0 : unit * k->axis[r].extent * k->axis[c].extent;
    for (uint32_t i = 1; i < 4; i++) // as the passes leave it
        stride[i] = k->axis[i].extent == 1 ? 0 : stride[i];
}

static uint32_t
factor(struct kernel *k, const struct spec *s, int64_t *stride, bool flip)
{
    stride[3] = flip ? -stride[3] : stride[3];
    uint32_t b = kb_buffer(k, s->from, BUF_IN);
    uint32_t v = kb_load(k, kb_access(k, b, 0, stride), 0);
    if (s->from != s->acc)
        v = kb_op(k, OP_cast, s->acc, v, 0, 0);
    if (s->scaled)
        v = kb_op(k, OP_div, s->acc, v, kb_literal(k, s->acc, 255), 0);
    return v;
}

static uint32_t
row_load(struct kernel *k, uint8_t dtype, const int64_t *stride)
{
    uint32_t v = kb_load(k, kb_access(k, kb_buffer(k, dtype, BUF_IN), 0, stride), 0);
    k->inst.at[v].level = LEVEL_ROW;
    return v;
}

// gelu(c + bias) + residual; the sum before the residual is stored as well.
static uint32_t
gelu(struct kernel *k, const struct spec *s, uint32_t c, const int64_t *dense)
{
    uint32_t bias = row_load(k, s->acc, (int64_t[MAX_AXES]){0, 0, 1, 0});
    uint32_t x = kb_op(k, OP_add, 0, c, bias, 0);
    uint32_t half = kb_op(k, OP_mul, 0, x, kb_literal(k, s->acc, 0.5), 0);
    uint32_t scaled = kb_op(k, OP_mul, 0, x, kb_literal(k, s->acc, 0.70710678118654752), 0);
    uint32_t erf = kb_op(k, OP_erf, 0, scaled, 0, 0);
    uint32_t up = kb_op(k, OP_add, 0, erf, kb_literal(k, s->acc, 1), 0);
    uint32_t g = kb_op(k, OP_mul, 0, half, up, 0);
    kb_store(k, g, kb_access(k, kb_buffer(k, s->acc, BUF_OUT), 0, dense));
    return kb_op(k, OP_add, 0, g, row_load(k, s->acc, dense), 0);
}

static void
build(struct kernel *k, const struct spec *s)
{
    int64_t a[MAX_AXES], b[MAX_AXES], c[MAX_AXES];
    kb_begin(k, (int64_t[]){s->batch, s->m, s->n, s->k}, 3, 1);
    k->cls = CLASS_CONTRACT;
    matrix(k, a, 1, 3, s->ta, s->wide_a, s->one_a);
    matrix(k, b, 3, 2, s->tb, s->wide_b, s->one_b);
    matrix(k, c, 1, 2, s->tc, false, false);
    k->contraction.a = factor(k, s, a, s->flip_a);
    k->contraction.b = factor(k, s, b, s->flip_b);
    vec_push(&k->acc, ((struct acc){.op = OP_sum, .dtype = s->acc}));
    k->nstage = 2;
    uint32_t v = kb_inst(k, (struct inst){.op = OP_result, .dtype = s->acc, .stage = 1,
                                          .level = LEVEL_ROW});
    if (s->epilogue == BIAS_GELU_RESIDUAL)
        v = gelu(k, s, v, c);
    kb_store(k, v, kb_access(k, kb_buffer(k, s->acc, BUF_OUT), 0, c));
}

static void
words(char *to, size_t n, const struct spec *s, const struct schedule *q)
{
    snprintf(to, n,
             "%ldx%ldx%ldx%ld %s%s%s%s%s%s%s%s%s%s%s%s rows %u vecs %u pack %u swap %u "
             "mc %u nc %u kc %u",
             (long)s->batch, (long)s->m, (long)s->k, (long)s->n, dtype_name(s->from),
             s->ta ? " ta" : "", s->tb ? " tb" : "", s->tc ? " tc" : "",
             s->wide_a ? " wide a" : "", s->wide_b ? " wide b" : "", s->flip_a ? " flip a" : "",
             s->flip_b ? " flip b" : "", s->one_a ? " one a" : "", s->one_b ? " one b" : "",
             s->scaled ? " /255" : "", s->epilogue ? " epilogue" : "",
             q->rows, q->unroll, q->pack, q->transpose, q->tile[0], q->tile[1], q->tile[2]);
}

// Schedules, lets the caller change the schedule, runs and compares.
static void
check(const struct spec *s, const struct target *t,
      void (*change)(struct schedule *, const struct target *, uint32_t), uint32_t variant)
{
    struct kernel k;
    struct schedule q;
    struct diag d = {0};
    uint8_t why = 0;
    char what[200];
    build(&k, s);
    cr_assert(schedule_contract(&k, t, &q, &why));
    if (change) {
        change(&q, t, variant);
        int64_t m = q.transpose ? s->n : s->m, n = q.transpose ? s->m : s->n;
        q.units = s->batch * ((m + q.tile[0] - 1) / q.tile[0]) * ((n + q.tile[1] - 1) / q.tile[1]);
        contract_edges(&q, m, n);
        q.scratch_bytes = contract_layout(&q, dtype_size(s->acc), s->k).bytes;
    }
    words(what, sizeof what, s, &q);
    struct run_options o = {.target = *t, .seed = (uint64_t)(s->m * 71 + s->n), .what = what};
    struct kernel v;
    kernel_copy(&v, &k);
    for (uint32_t b = 0; b < v.buffers.n; b++)
        v.buffers.at[b].span_hi -= v.buffers.at[b].span_hi > v.buffers.at[b].span_lo;
    cr_assert(kernel_verify(&v, &d), "%s: %s", what, d.text);
    kernel_free_body(&v);
    run_scheduled(&k, &q, &o);
    kernel_free_body(&k);
}

// Panels and units of a few elements, packed and not, in both roles.
static void
small_tiles(struct schedule *q, const struct target *t, uint32_t variant)
{
    static const uint8_t rows[] = {1, 3, 6, 12, 20};
    static const uint8_t vecs[] = {1, 2, 3, 4};
    q->rows = rows[variant % 5];
    q->unroll = vecs[variant % 4];
    uint32_t registers = t->vec_bytes == 64 ? 32 : 16;
    if (q->rows * q->unroll > 28)
        q->unroll = 1;
    while (q->pack & BY_HAND && q->rows * q->unroll + q->unroll + 1u > registers)
        *(q->unroll > 1 ? &q->unroll : &q->rows) -= 1;
    q->tile[0] = (uint16_t)(q->rows * (1 + variant % 2));
    q->tile[1] = (uint16_t)(q->vec * q->unroll * (1 + variant / 2 % 2));
    q->tile[2] = (uint16_t)(1 + variant * 5 % 23);
    q->pack |= (uint8_t)(variant % 4);
    if (variant % 3 == 0)
        q->pack &= (uint8_t)~SUM_IN_OUTPUT;
}

// The host's target and, where that has wider vectors, the one with the loop for 256 bits.
static uint32_t
two_targets(struct target t[2])
{
    t[0] = host_target();
    t[1] = plain_target(true);
    return t[0].vec_bytes == 64 ? 2 : 1;
}

Test(contract, shapes)
{
    static const int64_t sizes[] = {1, 2, 5, 8, 15, 16, 17, 31, 33, 64, 70};
    enum { N = sizeof sizes / sizeof *sizes };
    struct target t = host_target();
    uint64_t seed = 1;
    for (uint32_t i = 0; i < 70; i++) {
        uint64_t r = test_random(&seed);
        struct spec s = {.batch = 1, .m = sizes[r % N], .k = sizes[r / 16 % N],
                         .n = sizes[r / 256 % N], .from = DT_f32, .acc = DT_f32};
        check(&s, &t, NULL, 0);
    }
    for (int64_t i = 1; i <= 70; i += 3) {
        struct spec s = {.batch = 1, .m = i, .k = 71 - i, .n = i * 7 % 71, .from = DT_f32,
                         .acc = DT_f32};
        check(&s, &t, NULL, 0);
    }
}

// Every number of columns of the last vector, in place and through an epilogue, where B lies and
// packed, each with all rows and fewer.
Test(contract, cut_vectors)
{
    struct target t[2];
    uint32_t targets = two_targets(t);
    for (int64_t n = 1; n <= 25; n++)
        for (uint32_t j = 0; j < 2 * targets; j++) {
            uint8_t dtype = j & 1 ? DT_f64 : DT_f32;
            struct spec s = {.batch = 1, .m = 8 + n % 19, .k = 9 + n % 5, .n = n, .from = dtype,
                             .acc = dtype, .ta = n / 4 % 2, .tb = n % 7 == 0,
                             .epilogue = n % 3 ? PLAIN : BIAS_GELU_RESIDUAL};
            check(&s, &t[j / 2], n & 1 ? small_tiles : NULL, (uint32_t)n);
        }
}

// The loop for 512 bits is at least assembled everywhere, and the one for 256 bits is only where
// there are fused multiply-adds.
Test(contract, assembled)
{
    struct target wide = plain_target(true), narrow = plain_target(true);
    wide.vec_bytes = 64;
    snprintf(wide.arch, sizeof wide.arch, "x86-64-v4");
    snprintf(wide.features, sizeof wide.features, "+avx512f,+avx512vl,+avx512dq,+avx512bw");
    snprintf(narrow.features, sizeof narrow.features, "+avx2,+fma4");
    const struct target *const t[] = {&wide, &narrow};
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t dtype = i & 1 ? DT_f64 : DT_f32, why = 0;
        struct spec s = {.batch = 1, .m = 65, .k = 300, .n = 999, .from = dtype, .acc = dtype,
                         .tb = i & 2};
        struct kernel k;
        struct schedule q;
        struct str text = {0};
        num_vec num = {0};
        struct diag d = {0};
        size_t bytes = 0;
        build(&k, &s);
        cr_assert(schedule_contract(&k, t[i / 4], &q, &why));
        cr_assert_eq((q.pack & BY_HAND) != 0, t[i / 4] == &wide);
        cr_assert(cpu_emit(&k, &q, t[i / 4], &text, &num, &d), "%s", d.text);
        void *object = cpu_object(str_text(&text), strlen(str_text(&text)), t[i / 4],
                                  CODE_OPTIMISED, &bytes, &d);
        cr_assert_not_null(object, "%s", d.text);
        xfree(object);
        str_free(&text);
        vec_free(&num);
        kernel_free_body(&k);
    }
}

Test(contract, large)
{
    static const int64_t shape[][3] = {{1, 300, 700}, {700, 40, 1}, {130, 1100, 33}, {257, 9, 129},
                                       {1, 2000, 5}, {9, 3, 700}, {1, 784, 128}};
    struct target t = host_target();
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (uint32_t tb = 0; tb < 2; tb++) {
            struct spec s = {.batch = 1, .m = shape[i][0], .k = shape[i][1], .n = shape[i][2],
                             .from = DT_f32, .acc = DT_f32, .tb = tb};
            check(&s, &t, NULL, 0);
        }
}

Test(contract, empty)
{
    struct target t = host_target();
    for (uint32_t i = 0; i < 16; i++) {
        struct spec s = {.batch = i & 1 ? 2 : 0, .m = i & 2 ? 3 : 0, .k = i & 4 ? 5 : 0,
                         .n = i & 8 ? 20 : 0, .from = DT_f32, .acc = DT_f32};
        check(&s, &t, NULL, 0);
        s.tb = s.scaled = true;
        check(&s, &t, NULL, 0);
    }
}

Test(contract, layouts)
{
    struct target targets[2], t = host_target();
    for (uint32_t i = 0; i < 32 * two_targets(targets); i++) {
        struct spec s = {.batch = 2, .m = 19, .k = 37, .n = 45, .from = DT_f32, .acc = DT_f32,
                         .ta = i & 1, .tb = i & 2, .tc = i & 4, .wide_a = i & 8, .wide_b = i & 16};
        check(&s, &targets[i / 32], NULL, 0);
    }
    struct spec one = {.batch = 3, .m = 17, .k = 20, .n = 35, .from = DT_f32, .acc = DT_f32};
    for (uint32_t i = 1; i < 4; i++) {
        one.one_a = i & 1, one.one_b = i & 2, one.tb = i & 1;
        check(&one, &t, NULL, 0);
    }
}

Test(contract, dtypes)
{
    static const uint8_t pair[][2] = {{DT_f64, DT_f64}, {DT_f16, DT_f32}, {DT_bf16, DT_f32},
                                      {DT_i32, DT_i64}, {DT_u8, DT_u64},  {DT_i8, DT_i64},
                                      {DT_u8, DT_f32},  {DT_i8, DT_i8},   {DT_u8, DT_u8},
                                      {DT_i16, DT_i16}, {DT_u16, DT_u16}, {DT_i32, DT_i32}};
    struct target targets[] = {host_target(), plain_target(true), plain_target(false)};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        for (uint32_t j = 0; j < 12; j++) {
            struct target t = targets[j / 4];
            struct spec s = {.batch = 2, .m = 21, .k = 34, .n = 39, .from = pair[i][0],
                             .acc = pair[i][1], .ta = j & 1, .tb = j & 2};
            s.scaled = s.from == DT_u8 && s.acc == DT_f32;
            check(&s, &t, NULL, 0);
        }
}

Test(contract, epilogue)
{
    struct target t = host_target();
    for (uint32_t i = 0; i < 8; i++) {
        struct spec s = {.batch = 2, .m = i & 1 ? 3 : 29, .k = 50, .n = i & 2 ? 3 : 51,
                         .from = DT_u8, .acc = i & 4 ? DT_f64 : DT_f32, .scaled = true,
                         .epilogue = BIAS_GELU_RESIDUAL};
        check(&s, &t, NULL, 0);
    }
}

Test(contract, tiles)
{
    struct target t[2];
    uint32_t targets = two_targets(t);
    for (uint32_t i = 0; i < 40 * targets; i++) {
        struct spec s = {.batch = 2, .m = 31, .k = 41, .n = 77, .from = DT_f32, .acc = DT_f32,
                         .ta = i % 3 == 0, .tb = i % 5 < 2, .tc = i % 7 < 2};
        check(&s, &t[i / 40], small_tiles, i % 40);
    }
}

Test(contract, targets)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct target t = plain_target(i & 1);
        struct spec s = {.batch = 2, .m = 23, .k = 35, .n = 41,
                         .from = i & 2 ? DT_f64 : DT_f32, .acc = i & 2 ? DT_f64 : DT_f32,
                         .ta = i & 4, .tb = i & 8};
        check(&s, &t, NULL, 0);
        check(&s, &t, small_tiles, i);
    }
}

// Everything at once. FUSEC_SEEDS=3000 runs the long version by hand.
Test(contract, random)
{
    const char *seeds = getenv("FUSEC_SEEDS"), *first = getenv("FUSEC_SEED");
    uint32_t from = first ? (uint32_t)atoi(first) : 0, n = seeds ? (uint32_t)atoi(seeds) : 40;
    for (uint32_t i = from; i < from + n; i++) {
        uint64_t seed = i, r = test_random(&seed), f = test_random(&seed);
        static const uint8_t pair[][2] = {{DT_f32, DT_f32}, {DT_f64, DT_f64}, {DT_f16, DT_f32},
                                          {DT_f32, DT_f32}};
        struct target t = r % 4 ? host_target() : plain_target(r & 4);
        struct spec s = {.batch = 1 + r / 8 % 3, .m = r / 64 % 71, .k = r / 8192 % 71,
                         .n = (r >> 20) % 71, .from = pair[f % 4][0], .acc = pair[f % 4][1],
                         .ta = f & 4, .tb = f & 8, .tc = f & 16, .wide_a = f >> 5 & f >> 6 & 1,
                         .wide_b = f >> 7 & f >> 8 & 1, .flip_a = f >> 9 & f >> 10 & 1,
                         .flip_b = f >> 11 & f >> 12 & 1, .one_a = f & 1 << 13,
                         .one_b = f & 1 << 14, .scaled = f >> 15 & f >> 16 & 1,
                         .epilogue = f & 1 << 17 ? BIAS_GELU_RESIDUAL : PLAIN};
        int64_t *more[] = {&s.m, &s.k, &s.n};
        if (f >> 18 & 1)
            *more[f >> 19 & 1] *= 1 + (int64_t)(f >> 20 & 7);
        check(&s, &t, f >> 24 & 1 ? small_tiles : NULL, (uint32_t)(f >> 25 & 63));
    }
}

// Equal tiles: one text for all sizes of a layout.
Test(contract, one_text)
{
    struct target t = host_target();
    struct str text[2] = {{0}, {0}};
    for (uint32_t i = 0; i < 2; i++) {
        struct spec s = {.batch = 1 + i, .m = 100 + 20 * i, .k = 300 + i, .n = 200 + i * 48,
                         .from = DT_f32, .acc = DT_f32};
        struct kernel k;
        struct schedule q;
        uint8_t why;
        num_vec num = {0};
        struct diag d = {0};
        build(&k, &s);
        cr_assert(schedule_contract(&k, &t, &q, &why));
        q.rows = 10, q.unroll = 2, q.pack = PACK_B;
        q.tile[0] = 50, q.tile[1] = (uint16_t)(64 + 64 * i), q.tile[2] = (uint16_t)(128 + i);
        q.scratch_bytes = contract_layout(&q, 4, s.k).bytes;
        cr_assert(cpu_emit(&k, &q, &t, &text[i], &num, &d));
        vec_free(&num);
        kernel_free_body(&k);
    }
    cr_assert_str_eq(str_text(&text[0]), str_text(&text[1]));
    str_free(&text[0]);
    str_free(&text[1]);
}

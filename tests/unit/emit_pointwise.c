// emit_pointwise.c: every elementwise row and every cast through generated code, bit for bit with
// the interpreter, over sizes 1..70 and beyond, layouts, masks and gathers; nothing outside a
// buffer.
#include "emit_run.h"
#include "ir/tables.h"

static struct schedule
scheduled(const struct kernel *k, const struct target *t)
{
    struct schedule s;
    uint8_t why = 0;
    cr_assert(schedule_pointwise(k, t, &s, &why));
    return s;
}

// One kernel body over several extents of its axes: the text must not change, only the numbers.
struct sweep {
    struct jit jit;
    kernel_fn *fn;
    struct str text;
};

static void
sweep_run(struct sweep *w, const struct kernel *k, const struct run_options *o)
{
    struct schedule s = scheduled(k, &o->target);
    struct str text = {0};
    num_vec num = {0};
    struct diag d = {0};
    cr_assert(cpu_emit(k, &s, &o->target, &text, &num, &d), "%s: %s", o->what, d.text);
    if (!w->fn || strcmp(str_text(&w->text), str_text(&text)) != 0) {
        cr_assert(!w->fn, "%s: the text depends on the extent\n%s\n%s", o->what,
                  str_text(&w->text), str_text(&text));
        w->fn = jit_load(&w->jit, str_text(&text), &o->target, "kernel");
        str_add(&w->text, str_text(&text));
    }
    struct run_code code = {.kernel = w->fn};
    run_check(k, &s, &code, num.at, o, false, false);
    run_check(k, &s, &code, num.at, o, true, true);
    str_free(&text);
    vec_free(&num);
}

static void
sweep_end(struct sweep *w)
{
    jit_free(&w->jit);
    str_free(&w->text);
}

static const int64_t lengths[] = {1, 15, 16, 17, 33, 63, 65, 70, 300};

// out[i] = op(x[i], y[i], z[i]) on one axis.
static void
check_row(uint16_t op, uint8_t dtype, uint8_t to, const struct target *t)
{
    char what[64];
    snprintf(what, sizeof what, "%s %s %s", op_name(op), dtype_name(dtype), dtype_name(to));
    struct run_options o = {.target = *t, .seed = op * 131u + dtype, .what = what};
    struct sweep w = {0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct kernel k;
        kb_begin(&k, &lengths[i], 1, 0);
        uint32_t in[3] = {0};
        for (uint32_t j = 0; j < op_table[op].arity; j++) {
            uint8_t d = op == OP_where && j == 0 ? DT_bool : dtype;
            uint32_t b = kb_buffer(&k, d, BUF_IN);
            in[j] = kb_load(&k, kb_access(&k, b, 0, (int64_t[]){1}), 0);
        }
        uint32_t v = kb_op(&k, op, to, in[0], in[1], in[2]);
        uint32_t out = kb_buffer(&k, k.inst.at[v].dtype, BUF_OUT);
        kb_store(&k, v, kb_access(&k, out, 0, (int64_t[]){1}));
        sweep_run(&w, &k, &o);
        kernel_free_body(&k);
    }
    sweep_end(&w);
}

// Bodies have been widened: f16 and bf16 reach no arithmetic.
static bool
takes(uint16_t op, uint8_t dtype)
{
    if (!op_is(op, OPK_ELEM) || op == OP_cast || op == OP_bitcast)
        return false;
    if (dtype_is_half(dtype))
        return op == OP_where;
    switch (op_table[op].rule) {
    case DTR_FLOAT:
    case DTR_PREDICATE:
        return dtype_is_float(dtype);
    case DTR_NUMERIC:
        return dtype != DT_bool;
    case DTR_INT:
        return dtype_is_int(dtype);
    case DTR_BITS:
        return !dtype_is_float(dtype);
    default:
        return true;
    }
}

static void
check_all_rows(const struct target *t)
{
    for (uint16_t op = 1; op < OP_COUNT; op++)
        for (uint8_t d = 1; d < DT_COUNT; d++)
            if (takes(op, d))
                check_row(op, d, DT_NONE, t);
}

static void
check_all_casts(const struct target *t)
{
    for (uint8_t from = 1; from < DT_COUNT; from++)
        for (uint8_t to = 1; to < DT_COUNT; to++) {
            check_row(OP_cast, from, to, t);
            if (dtype_size(from) == dtype_size(to) && from != DT_bool && to != DT_bool)
                check_row(OP_bitcast, from, to, t);
        }
}

Test(emit_pointwise, every_row_every_dtype)
{
    struct target t = host_target();
    check_all_rows(&t);
}

Test(emit_pointwise, every_cast)
{
    struct target t = host_target();
    check_all_casts(&t);
}

Test(emit_pointwise, casts_without_f16c)
{
    struct target t = plain_target(false);
    for (uint8_t d = 1; d < DT_COUNT; d++) {
        check_row(OP_cast, d, DT_f16, &t);
        check_row(OP_cast, DT_f16, d, &t);
    }
    check_row(OP_max, DT_f32, DT_NONE, &t);
}

Test(emit_pointwise, vectors_of_256_bits)
{
    struct target t = plain_target(true);
    check_row(OP_add, DT_f32, DT_NONE, &t);
    check_row(OP_min, DT_f64, DT_NONE, &t);
    check_row(OP_mul, DT_i64, DT_NONE, &t);
    check_row(OP_where, DT_u16, DT_NONE, &t);
    check_row(OP_and, DT_bool, DT_NONE, &t);
    check_row(OP_cast, DT_f64, DT_bf16, &t);
}

// NaN of all payloads, and numbers with low bits that max and min may mix into one.
static void
fill_nan(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    static const uint32_t singles[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0x7fc08000, 0xff80ffff};
    static const uint16_t halves[] = {0x7fff, 0xffff, 0x7f81, 0x7fc0, 0xff80};
    uint8_t dtype = k->buffers.at[b].dtype;
    uint32_t size = (uint32_t)dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = test_random(seed), number = scalar_from_double(dtype, (double)(r >> 40) / 1e6);
        uint32_t chosen = (uint32_t)(r % 8);
        bool special = chosen < 5 && dtype_is_float(dtype);
        uint64_t nan = size == 2 ? halves[chosen % 5] : singles[chosen % 5];
        scalar_store(dtype, at + i * size, special ? nan : number);
    }
}

// op(a, b) rounded to bf16, a and b f32 that were of other dtypes.
static void
check_nan_rounded(uint16_t op, uint8_t first, uint8_t second, const struct target *t)
{
    struct run_options o = {.target = *t, .seed = op, .what = op_table[op].name, .fill = fill_nan};
    struct kernel k;
    kb_begin(&k, (int64_t[]){300}, 1, 0);
    uint32_t in[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t dtype = i ? second : first;
        uint32_t b = kb_buffer(&k, dtype, BUF_IN);
        in[i] = kb_load(&k, kb_access(&k, b, 0, (int64_t[]){1}), 0);
        in[i] = dtype == DT_f32 ? in[i] : kb_op(&k, OP_cast, DT_f32, in[i], 0, 0);
    }
    uint32_t v = kb_op(&k, op, 0, in[0], op_table[op].arity > 1 ? in[1] : 0, 0);
    // As a kernel does it whose op is rounded and read again.
    v = kb_op(&k, OP_cast, DT_f32, kb_op(&k, OP_cast, DT_bf16, v, 0, 0), 0, 0);
    v = kb_op(&k, OP_cast, DT_bf16, kb_op(&k, OP_add, 0, v, in[1], 0), 0, 0);
    kb_store(&k, v, kb_access(&k, kb_buffer(&k, DT_bf16, BUF_OUT), 0, (int64_t[]){1}));
    struct schedule s = scheduled(&k, &o.target);
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, nan_stays_nan_in_bf16)
{
    static const uint16_t ops[] = {OP_neg, OP_abs, OP_floor, OP_sqrt, OP_add, OP_div, OP_max,
                                   OP_min, OP_copysign, OP_exp, OP_sigmoid, OP_tanh, OP_erf,
                                   OP_log,  OP_gelu};
    static const uint8_t dtypes[] = {DT_bf16, DT_f32, DT_f16, DT_i32};
    struct target t = host_target(), plain = plain_target(false);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (size_t d = 0; d < sizeof dtypes; d++) {
            check_nan_rounded(ops[i], DT_bf16, dtypes[d], &t);
            check_nan_rounded(ops[i], dtypes[d], DT_bf16, &t);
            check_nan_rounded(ops[i], dtypes[d], dtypes[d], d ? &t : &plain);
        }
}

// A dear operand is skipped by vectors that do not need it: sin over arguments of which none, some
// and most are large, of one that is the same for a whole row, and twice, one inside the other.
Test(emit_pointwise, rare_operands)
{
    static const double limits[] = {100, 3e4, 1e30};
    struct target targets[] = {host_target(), plain_target(true), plain_target(false)};
    for (uint32_t i = 0; i < 9; i++)
        for (uint8_t d = DT_f64; d <= DT_f32; d++) {
            struct run_options o = {.target = targets[i / 3], .seed = i, .what = "rare operands"};
            struct kernel k;
            int64_t extent[2] = {3, 70}, row[2] = {1, 0}, all[2] = {70, 1};
            kb_begin(&k, extent, 2, 0);
            double limit = limits[i % 3];
            uint32_t low = kb_literal(&k, d, -limit), high = kb_literal(&k, d, limit);
            uint32_t x = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, all), 0);
            uint32_t y = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, row), 0);
            uint32_t near = kb_op(&k, OP_clamp, 0, x, low, high);
            uint32_t in = kb_op(&k, OP_sin, 0, near, 0, 0), out = kb_buffer(&k, d, BUF_OUT);
            uint32_t twice = kb_op(&k, OP_cos, 0, kb_op(&k, OP_mul, 0, in, high, 0), 0, 0);
            uint32_t sum = kb_op(&k, OP_add, 0, twice, kb_op(&k, OP_sin, 0, y, 0, 0), 0);
            kb_store(&k, sum, kb_access(&k, out, 0, all));
            struct schedule s = scheduled(&k, &o.target);
            run_scheduled(&k, &s, &o);
            kernel_free_body(&k);
        }
}

// out[i] = table[x[i] modulo its size], of many tables at once, and for one index a row.
static void
check_tables(uint8_t index_dtype, uint32_t begin, uint32_t end, const struct target *t)
{
    int64_t extent[2] = {3, 70}, row[2] = {1, 0}, all[2] = {70, 1};
    struct run_options o = {.target = *t, .seed = index_dtype, .what = "tables"};
    struct kernel k;
    kb_begin(&k, extent, 2, 0);
    uint32_t in = kb_buffer(&k, index_dtype, BUF_IN);
    uint32_t index[2] = {kb_load(&k, kb_access(&k, in, 0, all), 0),
                         kb_load(&k, kb_access(&k, in, 0, row), 0)};
    for (uint32_t i = begin; i < end; i++) {
        uint8_t dtype = table_named(i).dtype;
        uint32_t name = kb_literal(&k, index_dtype, i);
        uint32_t v = kb_op(&k, OP_lookup, dtype, index[0], name, 0);
        v = kb_op(&k, OP_sub, 0, v, kb_op(&k, OP_lookup, dtype, index[1], name, 0), 0);
        kb_store(&k, v, kb_access(&k, kb_buffer(&k, dtype, BUF_OUT), 0, all));
    }
    struct schedule s = scheduled(&k, t);
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, tables)
{
    struct target targets[] = {host_target(), plain_target(true), plain_target(false)};
    for (uint32_t i = 0; i < 3; i++) {
        check_tables(DT_i32, 0, TABLE_gelu32, &targets[i]);
        check_tables(DT_i32, TABLE_gelu32, TABLE_erf64, &targets[i]);
        check_tables(DT_i64, TABLE_erf64, TABLE_erfc32, &targets[i]);
        check_tables(DT_i32, TABLE_erfc32, TABLE_COUNT, &targets[i]);
    }
}

// A load that nothing but a rare operand reads: lanes that do not exist read nothing there either.
Test(emit_pointwise, rare_loads)
{
    struct target targets[] = {host_target(), plain_target(true), plain_target(false)};
    for (uint32_t i = 0; i < 12; i++)
        for (int64_t n = 1; n < 40; n += 1 + n / 3) {
            static const uint8_t dtypes[] = {DT_f32, DT_f64, DT_i8, DT_i32};
            struct run_options o = {.target = targets[i % 3], .seed = i, .what = "rare loads"};
            struct kernel k;
            int64_t extent[2] = {3, n}, all[2] = {n, 1}, turned[2] = {1, 3};
            uint8_t d = dtypes[i / 3];
            kb_begin(&k, extent, 2, 0);
            uint32_t x = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, all), 0);
            uint32_t y = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, all), 0);
            uint32_t z = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, turned), 0);
            uint32_t low = kb_op(&k, OP_lt, 0, x, kb_literal(&k, d, 0), 0);
            uint32_t either = kb_op(&k, OP_where, 0, low, kb_op(&k, OP_add, 0, y, z, 0), x);
            k.inst.at[either].aux = WHERE_RARELY;
            kb_store(&k, either, kb_access(&k, kb_buffer(&k, d, BUF_OUT), 0, all));
            struct schedule s = scheduled(&k, &o.target);
            run_scheduled(&k, &s, &o);
            kernel_free_body(&k);
        }
}

// max and min with a literal on either side: zeros of both signs, infinities, NaN.
Test(emit_pointwise, extremes_with_literals)
{
    static const double literals[] = {0, -0.0, 1, -2.5, (double)INFINITY, (double)NAN};
    struct target targets[] = {host_target(), plain_target(true)};
    for (uint32_t i = 0; i < 48; i++) {
        struct run_options o = {.target = targets[i % 2], .seed = i, .what = "a literal extreme"};
        uint8_t d = i & 2 ? DT_f64 : DT_f32;
        uint16_t op = i & 4 ? OP_min : OP_max;
        struct kernel k;
        int64_t extent = 70;
        kb_begin(&k, &extent, 1, 0);
        uint32_t c = kb_literal(&k, d, literals[i / 8]);
        uint32_t x = kb_load(&k, kb_access(&k, kb_buffer(&k, d, BUF_IN), 0, (int64_t[]){1}), 0);
        uint32_t right = kb_op(&k, op, 0, x, c, 0), left = kb_op(&k, op, 0, c, x, 0);
        kb_store(&k, right, kb_access(&k, kb_buffer(&k, d, BUF_OUT), 0, (int64_t[]){1}));
        kb_store(&k, left, kb_access(&k, kb_buffer(&k, d, BUF_OUT), 0, (int64_t[]){1}));
        struct schedule s = scheduled(&k, &o.target);
        run_scheduled(&k, &s, &o);
        kernel_free_body(&k);
    }
}

// ---- layouts

// out = a + b over two or three axes, each operand with strides of its own.
static void
check_layout(const int64_t *extent, uint32_t n, const int64_t *sa, const int64_t *sb,
             const int64_t *so, int64_t base, uint8_t dtype, int streaming, const char *what)
{
    struct run_options o = {.target = host_target(), .seed = 7, .what = what};
    struct kernel k;
    kb_begin(&k, extent, n, 0);
    uint32_t a = kb_buffer(&k, dtype, BUF_IN), b = kb_buffer(&k, dtype, BUF_IN);
    uint32_t out = kb_buffer(&k, dtype, BUF_OUT);
    uint32_t x = kb_load(&k, kb_access(&k, a, base, sa), 0);
    uint32_t y = kb_load(&k, kb_access(&k, b, 0, sb), 0);
    if (dtype_is_half(dtype)) {
        x = kb_op(&k, OP_cast, DT_f32, x, 0, 0);
        y = kb_op(&k, OP_cast, DT_f32, y, 0, 0);
    }
    uint32_t sum = kb_op(&k, OP_add, 0, x, y, 0);
    sum = dtype_is_half(dtype) ? kb_op(&k, OP_cast, dtype, sum, 0, 0) : sum;
    kb_store(&k, sum, kb_access(&k, out, 0, so));
    struct schedule s = scheduled(&k, &o.target);
    s.streaming_store = streaming != 0;
    if (n && streaming)
        s.prefetch = 3;
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

static const uint8_t layout_dtypes[] = {DT_f32, DT_f64, DT_i8, DT_f16, DT_i32, DT_bool};

Test(emit_pointwise, two_axes)
{
    static const int64_t rows[] = {1, 2, 3, 40}, columns[] = {1, 3, 16, 17, 64, 70, 130};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++) {
            int64_t e[] = {rows[i], columns[j]}, n = columns[j];
            uint8_t d = layout_dtypes[(i + j) % sizeof layout_dtypes];
            char what[80];
            snprintf(what, sizeof what, "%s %ld x %ld", dtype_name(d), (long)e[0], (long)e[1]);
            // a row vector, a column vector; padded rows; flipped; strided
            check_layout(e, 2, (int64_t[]){0, 1}, (int64_t[]){1, 0}, (int64_t[]){n + 3, 1}, 0, d, 0,
                         what);
            check_layout(e, 2, (int64_t[]){-n, -1}, (int64_t[]){2 * n, 2}, (int64_t[]){n, 1}, 5, d,
                         1, what);
            check_layout(e, 2, (int64_t[]){n, 1}, (int64_t[]){3 * n, -3}, (int64_t[]){-n, -1}, 0, d,
                         0, what);
            check_layout(e, 2, (int64_t[]){n, 1}, (int64_t[]){0, 0}, (int64_t[]){2 * n, 2}, 0, d, 0,
                         what);
        }
}

Test(emit_pointwise, transposed_operands)
{
    static const int64_t sides[] = {8, 15, 16, 17, 63, 64, 65, 70, 150};
    for (size_t i = 0; i < 2 * sizeof sides / sizeof *sides; i++) {
        int64_t m = sides[i % 9], n = sides[(i * 5 + 2) % 9];
        int64_t two[] = {m, n}, three[] = {2, m, n}, moved[] = {m, 3, n};
        uint8_t d = layout_dtypes[i % sizeof layout_dtypes];
        char what[80];
        snprintf(what, sizeof what, "transposed %s %ld x %ld", dtype_name(d), (long)m, (long)n);
        check_layout(two, 2, (int64_t[]){n, 1}, (int64_t[]){1, m}, (int64_t[]){n, 1}, 0, d, i % 2,
                     what);
        check_layout(three, 3, (int64_t[]){m * n, 1, m}, (int64_t[]){0, 1, m + 1},
                     (int64_t[]){m * n, n, 1}, 2, d, 1, what);
        check_layout(moved, 3, (int64_t[]){1, m * n, m}, (int64_t[]){0, n, 1},
                     (int64_t[]){3 * n, n, 1}, 0, d, 0, what);
    }
}

Test(emit_pointwise, axes_that_do_not_merge)
{
    int64_t e[] = {3, 2, 5, 4}, st[] = {1, 60, 12, 3};
    check_layout(e, 4, (int64_t[]){40, 20, 4, 1}, st, (int64_t[]){40, 20, 4, 1}, 0, DT_f32, 0,
                 "four axes");
    check_layout(e, 1, (int64_t[]){0}, (int64_t[]){0}, (int64_t[]){1}, 0, DT_f64, 0, "splats");
    check_layout(e, 0, NULL, NULL, NULL, 0, DT_f32, 0, "no axes");
    check_layout((int64_t[]){0}, 1, (int64_t[]){1}, (int64_t[]){1}, (int64_t[]){1}, 0, DT_f32, 0,
                 "nothing");
    check_layout((int64_t[]){0, 7}, 2, (int64_t[]){7, 1}, (int64_t[]){7, 1}, (int64_t[]){7, 1}, 0,
                 DT_f32, 0, "no rows");
    check_layout((int64_t[]){7, 0}, 2, (int64_t[]){0, 1}, (int64_t[]){0, 1}, (int64_t[]){0, 1}, 0,
                 DT_f32, 0, "no columns");
}

// Two outputs, one `apart` elements later in its buffer: streamed where both can be aligned. Odd
// lengths begin anywhere, for buffers end at a page.
static void
check_two_outputs(int64_t n, int64_t apart, uint8_t second)
{
    struct run_options o = {.target = host_target(), .seed = (uint64_t)n, .what = "two outputs"};
    struct kernel k;
    kb_begin(&k, &n, 1, 0);
    uint32_t in = kb_buffer(&k, DT_f32, BUF_IN);
    uint32_t out[] = {kb_buffer(&k, DT_f32, BUF_OUT), kb_buffer(&k, second, BUF_OUT)};
    uint32_t x = kb_load(&k, kb_access(&k, in, 0, (int64_t[]){1}), 0);
    kb_store(&k, kb_op(&k, OP_neg, 0, x, 0, 0), kb_access(&k, out[0], 0, (int64_t[]){1}));
    uint32_t y = kb_op(&k, OP_add, 0, x, x, 0);
    y = second == DT_f32 ? y : kb_op(&k, OP_cast, second, y, 0, 0);
    kb_store(&k, y, kb_access(&k, out[1], apart, (int64_t[]){1}));
    struct schedule s = scheduled(&k, &o.target);
    s.streaming_store = true;
    s.prefetch = 32;
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, streaming_stores)
{
    for (int64_t n = 1; n < 300; n += n < 20 ? 1 : 37) {
        check_two_outputs(n, 0, DT_f32);
        check_two_outputs(n, 1, DT_f32);
        check_two_outputs(n, 0, DT_f64);
        check_two_outputs(n, 0, DT_bf16);
    }
}

// A body so long that whole vectors and parts of one share it: x, a bool, a second dtype; the
// second output begins `apart` elements later in its buffer.
static void
check_long_body(int64_t n, int64_t apart, uint8_t second, bool streaming)
{
    struct run_options o = {.target = host_target(), .seed = (uint64_t)n, .what = "a long body"};
    struct kernel k;
    kb_begin(&k, (int64_t[]){3, n}, 2, 0);
    int64_t rows[] = {n, 1};
    uint32_t in[3], out[2];
    const uint8_t dtype[] = {DT_f32, DT_bool, second};
    for (int i = 0; i < 3; i++)
        in[i] = kb_load(&k, kb_access(&k, kb_buffer(&k, dtype[i], BUF_IN), 0, rows), 0);
    for (int i = 0; i < 2; i++)
        out[i] = kb_access(&k, kb_buffer(&k, i ? second : DT_f32, BUF_OUT), i * apart, rows);
    uint32_t power = kb_op(&k, OP_exp, 0, kb_op(&k, OP_exp, 0, in[0], 0, 0), 0, 0);
    uint32_t x = kb_op(&k, OP_where, 0, in[1], power, in[0]);
    uint32_t y = second == DT_f32 ? in[2] : kb_op(&k, OP_cast, DT_f32, in[2], 0, 0);
    y = kb_op(&k, OP_add, 0, x, y, 0);
    kb_store(&k, x, out[0]);
    kb_store(&k, second == DT_f32 ? y : kb_op(&k, OP_cast, second, y, 0, 0), out[1]);
    struct schedule s = scheduled(&k, &o.target);
    s.streaming_store = streaming;
    s.prefetch = streaming ? 32 : 0;
    cr_assert_eq(s.unroll, 1);
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, long_bodies)
{
    static const uint8_t second[] = {DT_f32, DT_f64, DT_bf16};
    for (int64_t n = 17; n < 150; n += n < 20 ? 1 : 15)
        for (size_t i = 0; i < sizeof second; i++)
            for (int64_t apart = 0; apart < 2; apart++) {
                check_long_body(n, apart, second[i], false);
                check_long_body(n, apart, second[i], true);
            }
}

// ---- masks, gathers, positions

// out[i, j] = 1 <= j < n - 1 ? x[i, j - 1] : 0, the loads outside [0, n - 2) masked out.
static void
check_masked(int64_t n, uint8_t dtype, int64_t step, const char *what)
{
    struct run_options o = {.target = host_target(), .seed = (uint64_t)n, .what = what};
    struct kernel k;
    kb_begin(&k, (int64_t[]){3, n}, 2, 0);
    uint32_t b = kb_buffer(&k, dtype, BUF_IN), out = kb_buffer(&k, dtype, BUF_OUT);
    vec_push(&k.affine, ((struct access){.dtype = DT_i64, .stride = {0, 1}}));
    uint32_t j = kb_inst(&k, (struct inst){.op = OP_index, .dtype = DT_i64, .level = LEVEL_ROW});
    uint32_t lo = kb_op(&k, OP_ge, 0, j, kb_literal(&k, DT_i64, 1), 0);
    uint32_t hi = kb_op(&k, OP_lt, 0, j, kb_literal(&k, DT_i64, (double)(n - 1)), 0);
    uint32_t inside = kb_op(&k, OP_and, 0, lo, hi, 0);
    struct access x = {.buffer = (uint16_t)b, .dtype = dtype, .base = -step, .stride = {0, step}};
    if (step < 0)
        x.base = -step * (n - 2);
    vec_push(&k.access, x);
    k.buffers.at[b].span_hi = n > 2 ? (step < 0 ? -step : step) * (n - 3) + 1 : 0;
    uint32_t v = kb_inst(&k, (struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ROW,
                                           .b = inside, .aux = 0});
    kb_store(&k, v, kb_access(&k, out, 0, (int64_t[]){n, 1}));
    struct schedule s = scheduled(&k, &o.target);
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, masked_loads)
{
    for (size_t d = 0; d < sizeof layout_dtypes; d++)
        for (int64_t n = 1; n <= 70; n += n < 4 ? 1 : 11) {
            check_masked(n, layout_dtypes[d], 1, "masked");
            check_masked(n, layout_dtypes[d], -1, "masked, flipped");
            check_masked(n, layout_dtypes[d], 3, "masked, strided");
        }
}

static void
fill_positions(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    if (b != 1) {
        run_fill(k, b, at, n, seed);
        return;
    }
    for (int64_t i = 0; i < n; i++) // 9 table rows; k->name tells whether bad ones occur
        scalar_store(DT_i32, at + 4 * i,
                     (uint32_t)((int64_t)(test_random(seed) % (*k->name == 'b' ? 11 : 9))));
}

// out[i, j] = table[index[i] or index[j], j or i], rows of the table checked against 9.
static void
check_gather(int64_t m, int64_t n, bool along_lanes, bool bad, uint8_t dtype)
{
    struct run_options o = {.target = host_target(), .seed = (uint64_t)(m * n), .what = "gather",
                            .fill = fill_positions};
    struct kernel k;
    kb_begin(&k, (int64_t[]){m, n}, 2, 0);
    k.name = bad ? "bad" : "good";
    int64_t width = along_lanes ? m : n;
    uint32_t table = kb_buffer(&k, dtype, BUF_IN), index = kb_buffer(&k, DT_i32, BUF_IN);
    uint32_t out = kb_buffer(&k, dtype, BUF_OUT);
    uint32_t at = kb_access(&k, table, 0, along_lanes ? (int64_t[]){1, 0} : (int64_t[]){0, 1});
    k.buffers.at[table].span_hi = 9 * width;
    uint32_t from = kb_access(&k, index, 0, along_lanes ? (int64_t[]){0, 1} : (int64_t[]){1, 0});
    uint32_t i = kb_op(&k, OP_cast, DT_i64, kb_load(&k, from, 0), 0, 0);
    uint32_t ok = kb_op(&k, OP_lt, 0, i, kb_literal(&k, DT_i64, 9), 0);
    uint32_t v = kb_inst(&k, (struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ROW,
                                           .a = i, .c = ok, .aux = at, .bits = (uint64_t)width,
                                           .origin = 4});
    kb_store(&k, v, kb_access(&k, out, 0, (int64_t[]){n, 1}));
    struct schedule s = scheduled(&k, &o.target);
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_pointwise, gathers)
{
    for (size_t d = 0; d < sizeof layout_dtypes; d++)
        for (int64_t n = 1; n <= 70; n += 23)
            for (int mode = 0; mode < 4; mode++)
                check_gather(3 + n % 3, n, mode & 1, mode & 2, layout_dtypes[d]);
}

Test(emit_pointwise, text_does_not_depend_on_sizes)
{
    struct str text[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        struct kernel k;
        int64_t e[] = {i ? 64 : 200, i ? 64 : 33}, dense[2];
        kb_begin(&k, e, 2, 0);
        kb_dense(&k, dense);
        uint32_t a = kb_buffer(&k, DT_f32, BUF_IN), out = kb_buffer(&k, DT_f32, BUF_OUT);
        uint32_t x = kb_load(&k, kb_access(&k, a, 0, (int64_t[]){0, 1}), 0);
        kb_store(&k, kb_op(&k, OP_neg, 0, x, 0, 0), kb_access(&k, out, 0, dense));
        struct target t = host_target();
        struct schedule s = scheduled(&k, &t);
        num_vec num = {0};
        struct diag d = {0};
        cr_assert(cpu_emit(&k, &s, &t, &text[i], &num, &d));
        vec_free(&num);
        kernel_free_body(&k);
    }
    cr_assert_str_eq(str_text(&text[0]), str_text(&text[1]));
    str_free(&text[0]);
    str_free(&text[1]);
}

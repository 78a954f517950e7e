// emit_column.c: column kernels against the kernel interpreter, bit for bit: every reduction and
// dtype, row counts around the lanes, groups and blocks of the order, several stages, element
// stores beside reductions, argmax with NaN and ties, several R and P axes.
#include "emit_run.h"

static struct schedule
scheduled(const struct kernel *k, const struct target *t)
{
    struct schedule s;
    uint8_t why = 0;
    cr_assert(schedule_column(k, t, &s, &why));
    return s;
}

// Strips with all rows, all their lanes under way at once.
static void
rows_in_order(const struct kernel *k, struct schedule *s)
{
    int64_t columns = k->axis[k->naxis - k->nred - 1].extent;
    s->tile[0] = s->tile[0] > 64 ? 64 : s->tile[0];
    s->tile[2] = 0;
    s->edge[0] = 0;
    s->unroll = 4;
    s->units = kernel_points(k, AXIS_P) / (columns ? columns : 1) *
               ((columns + s->tile[0] - 1) / s->tile[0]);
    s->finish_units = s->shared_scratch_bytes = 0;
    s->scratch_bytes = 1 << 20;
}

static void
run_column_on(struct kernel *k, const char *what, struct target target)
{
    struct run_options o = {.target = target, .seed = 11, .what = what};
    struct schedule s = scheduled(k, &o.target);
    k->cls = CLASS_COLUMN;
    run_scheduled(k, &s, &o);
    if (s.tile[2])
        rows_in_order(k, &s);
    // nothing of this changes a bit: fewer rows at once, streaming stores, values computed again
    s.unroll = 1;
    s.prefetch = s.prefetch ? 0 : 3;
    s.streaming_store = !s.streaming_store;
    s.keep[0] = 0;
    s.tile[1] = 0; // few rows as if they were many
    run_scheduled(k, &s, &o);
    kernel_free_body(k);
}

static void
run_column(struct kernel *k, const char *what)
{
    run_column_on(k, what, host_target());
}

// A matrix [columns] over [rows], stored row by row: P is the columns, R the rows.
static uint32_t
begin_matrix(struct kernel *k, int64_t rows, int64_t columns, uint8_t dtype)
{
    kb_begin(k, (int64_t[]){columns, rows}, 1, 1);
    uint32_t b = kb_buffer(k, dtype, BUF_IN);
    return kb_load(k, kb_access(k, b, 0, (int64_t[]){1, columns}), 0);
}

static void
check_reduction(uint16_t op, uint8_t dtype, int64_t rows, int64_t columns)
{
    char what[80];
    snprintf(what, sizeof what, "%s %s %ld x %ld", op_name(op), dtype_name(dtype), (long)rows,
             (long)columns);
    struct kernel k;
    uint32_t x = begin_matrix(&k, rows, columns, dtype);
    uint8_t acc = op == OP_sum || op == OP_prod ? dtype_table[dtype].acc : dtype;
    if (op == OP_any || op == OP_all)
        acc = DT_bool;
    else if (dtype == DT_f16 || dtype == DT_bf16)
        acc = DT_f32;
    if (acc != dtype)
        x = kb_op(&k, OP_cast, acc, x, 0, 0);
    uint32_t r = kb_reduce(&k, op, x, OVER_R);
    uint32_t out = kb_buffer(&k, k.inst.at[r].dtype, BUF_OUT);
    kb_store(&k, r, kb_access(&k, out, 0, (int64_t[]){1, 0}));
    run_column(&k, what);
}

// x[batch, r, p] * c, summed over r; c's strides are given.
static uint8_t
class_of_product(int64_t batch, int64_t rows, int64_t columns, const int64_t *c, uint8_t dtype)
{
    struct kernel k;
    kb_begin(&k, (int64_t[]){batch, columns, rows}, 2, 1);
    uint32_t x = kb_buffer(&k, DT_f32, BUF_IN), w = kb_buffer(&k, dtype, BUF_IN);
    uint32_t lx = kb_load(&k, kb_access(&k, x, 0, (int64_t[]){rows * columns, 1, columns}), 0);
    uint32_t lw = kb_load(&k, kb_access(&k, w, 0, c), 0);
    if (dtype != DT_f32)
        lw = kb_op(&k, OP_cast, DT_f32, lw, 0, 0);
    uint32_t s = kb_reduce(&k, OP_sum, kb_op(&k, OP_mul, 0, lx, lw, 0), OVER_R);
    uint32_t out = kb_buffer(&k, DT_f32, BUF_OUT);
    kb_store(&k, s, kb_access(&k, out, 0, (int64_t[]){columns, 1, 0}));
    struct target t = host_target();
    struct schedule sched;
    uint8_t why;
    cr_assert(schedule_kernel(&k, &t, &sched, &why));
    kernel_free_body(&k);
    return sched.cls;
}

// A factor of each row is the same for all columns: it runs along R and yet says nothing for rows.
Test(emit_column, a_factor_of_the_rows_leaves_a_kernel_to_columns)
{
    static const uint8_t dtype[] = {DT_u8, DT_bf16, DT_f32, DT_f64};
    for (size_t d = 0; d < sizeof dtype; d++) {
        cr_expect_eq(class_of_product(1, 784, 128, (int64_t[]){0, 0, 1}, dtype[d]), CLASS_COLUMN);
        cr_expect_eq(class_of_product(9, 128, 64, (int64_t[]){128, 0, 1}, dtype[d]), CLASS_COLUMN);
        cr_expect_eq(class_of_product(9, 128, 64, (int64_t[]){0, 1, 0}, dtype[d]), CLASS_COLUMN);
    }
    // but what runs along R and differs from column to column does
    cr_expect_eq(class_of_product(9, 128, 64, (int64_t[]){8192, 128, 1}, DT_f64), CLASS_ROW);
}

static const uint16_t ops[] = {OP_sum, OP_prod, OP_max_reduce, OP_min_reduce, OP_any, OP_all,
                               OP_argmax, OP_argmin};

Test(emit_column, every_reduction_every_dtype)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint8_t d = 1; d < DT_COUNT; d++)
            if (d != DT_bool || ops[i] == OP_any || ops[i] == OP_all || ops[i] == OP_sum)
                check_reduction(ops[i], d, 70 + d, 33);
}

Test(emit_column, rows_around_lanes_groups_and_blocks)
{
    static const int64_t rows[] = {1, 2, 15, 16, 17, 31, 32, 63, 64, 65, 255, 256, 257, 300, 511,
                                   512, 513, 770, 1024, 1300, 2048, 2310};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_reduction(OP_sum, DT_f32, rows[i], 17);
        check_reduction(OP_sum, DT_f64, rows[i], 5 + (int64_t)i % 5);
        check_reduction(OP_argmax, DT_f32, rows[i], 16);
    }
}

Test(emit_column, empty_sums)
{
    check_reduction(OP_sum, DT_f32, 0, 20);
    check_reduction(OP_prod, DT_i32, 0, 3);
    check_reduction(OP_sum, DT_f32, 20, 0);
}

Test(emit_column, widths)
{
    for (int64_t n = 1; n <= 70; n += 3)
        check_reduction(n % 2 ? OP_sum : OP_max_reduce, n % 3 ? DT_f32 : DT_i8, 40, n);
    check_reduction(OP_sum, DT_f32, 33, 1100); // several strips, the last a narrow one
    check_reduction(OP_all, DT_u8, 33, 1100);
    check_reduction(OP_sum, DT_f64, 600, 700); // strips as wide as scratch has room for
}

Test(emit_column, few_rows)
{
    for (int64_t n = 1; n <= 17; n++) {
        check_reduction(OP_sum, DT_f32, n, 20 + n);
        check_reduction(OP_argmin, n % 2 ? DT_f32 : DT_i16, n, 16);
    }
}

// ---- lane by lane: any passes, parts, chains and vectors at once give the same bits

struct way {
    uint16_t strip, lanes;
    int64_t part;     // rows
    uint8_t vectors;
    bool loops;       // no chain written out
    bool parts;       // with the second phase
    uint8_t run;      // rows of a chain in one go, where chains of 16 are written out
};

static void
run_way(struct kernel *k, const struct way *w, const struct run_options *o)
{
    struct target t = o->target;
    t.l1 = 1 << 20; // few rows of many columns are else taken in order
    struct schedule s = scheduled(k, &t);
    cr_assert(s.tile[2], "%s: not lane by lane", o->what);
    int64_t columns = k->axis[k->naxis - 2].extent, rows = k->axis[k->naxis - 1].extent;
    int64_t strips = (columns + w->strip - 1) / w->strip;
    int64_t outer = kernel_points(k, AXIS_P) / columns, n = outer * strips;
    int64_t parts = (rows + w->part - 1) / w->part;
    s.tile[0] = w->strip;
    s.tile[2] = w->lanes;
    s.chunk = w->part;
    s.rows = w->vectors;
    s.unroll = w->loops ? 0 : s.unroll;
    s.edge[0] |= w->loops;
    s.edge[1] = s.unroll == RED_STEPS ? w->run : 0;
    s.prefetch = w->run == 1 ? 16 : w->run == 2 ? 240 : 0;
    s.scratch_bytes = 4 << 20;
    s.units = w->parts ? n * (RED_LANES / w->lanes) * parts : n;
    s.shared_scratch_bytes = w->parts ? s.units * w->lanes * w->strip * 64 : 0;
    int64_t piece = w->strip < COLUMN_PIECE ? w->strip : COLUMN_PIECE;
    s.finish_units = w->parts ? outer * ((columns + piece - 1) / piece) : 0;
    k->cls = CLASS_COLUMN;
    run_scheduled(k, &s, o);
}

// sum(abs(c * w - b b)), its greatest and where: c of the row and b b of the column, both computed,
// an outer axis. Results as f32, f32, i64 times a value of the column.
static void
make_product(struct kernel *k, int64_t outer, int64_t rows, int64_t columns, uint8_t dtype)
{
    kb_begin(k, (int64_t[]){outer, columns, rows}, 2, 1);
    uint32_t c = kb_buffer(k, DT_u8, BUF_IN), x = kb_buffer(k, dtype, BUF_IN);
    uint32_t b = kb_buffer(k, dtype, BUF_IN);
    uint32_t lx = kb_load(k, kb_access(k, x, 0, (int64_t[]){rows * columns, 1, columns}), 0);
    uint32_t lc = kb_load(k, kb_access(k, c, 0, (int64_t[]){rows, 0, 1}), 0);
    uint32_t lb = kb_load(k, kb_access(k, b, 0, (int64_t[]){0, 1, 0}), 0);
    k->inst.at[lb].level = LEVEL_ROW;
    uint32_t square = kb_op(k, OP_mul, 0, lb, lb, 0); // waits in scratch for the elements
    cr_assert(k->inst.at[square].level == LEVEL_ROW);
    uint32_t scaled = kb_op(k, OP_div, 0, kb_op(k, OP_cast, dtype, lc, 0, 0),
                            kb_literal(k, dtype, 255), 0);
    uint32_t v = kb_op(k, OP_sub, 0, kb_op(k, OP_mul, 0, scaled, lx, 0), square, 0);
    uint32_t s = kb_reduce(k, OP_sum, kb_op(k, OP_abs, 0, v, 0, 0), OVER_R);
    uint32_t m = kb_reduce(k, OP_argmax, v, OVER_R), r = kb_reduce(k, OP_sum, scaled, OVER_R);
    uint32_t out[3] = {kb_buffer(k, dtype, BUF_OUT), kb_buffer(k, DT_i64, BUF_OUT),
                       kb_buffer(k, dtype, BUF_OUT)};
    const int64_t dense[] = {columns, 1, 0};
    uint32_t late = kb_op(k, OP_add, 0, s, lb, 0);
    kb_store(k, late, kb_access(k, out[0], 0, dense));
    kb_store(k, m, kb_access(k, out[1], 0, dense));
    kb_store(k, r, kb_access(k, out[2], 0, dense));
}

static void
make_sum(struct kernel *k, int64_t outer, int64_t rows, int64_t columns, uint8_t dtype)
{
    kb_begin(k, (int64_t[]){outer, columns, rows}, 2, 1);
    uint32_t x = kb_buffer(k, dtype, BUF_IN);
    uint32_t v = kb_load(k, kb_access(k, x, 0, (int64_t[]){rows * columns, 1, columns}), 0);
    uint8_t acc = dtype_is_half(dtype) ? DT_f32 : dtype_table[dtype].acc;
    v = acc == dtype ? v : kb_op(k, OP_cast, acc, v, 0, 0);
    uint32_t s = kb_reduce(k, OP_sum, v, OVER_R);
    kb_store(k, s, kb_access(k, kb_buffer(k, acc, BUF_OUT), 0, (int64_t[]){columns, 1, 0}));
}

typedef void make_kernel(struct kernel *k, int64_t outer, int64_t rows, int64_t columns,
                         uint8_t dtype);

static void
check_ways(make_kernel *make, int64_t outer, int64_t rows, int64_t columns, uint8_t dtype,
           const struct way *way, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char what[120];
        snprintf(what, sizeof what, "%ld x %ld x %ld %s, strip %u, %u lanes, parts of %ld, way %zu",
                 (long)outer, (long)rows, (long)columns, dtype_name(dtype), way[i].strip,
                 way[i].lanes, (long)way[i].part, i);
        struct run_options o = {.target = host_target(), .seed = 5 + i, .what = what};
        struct kernel k;
        make(&k, outer, rows, columns, dtype);
        run_way(&k, &way[i], &o);
        kernel_free_body(&k);
    }
}

Test(emit_column, lanes_any_way)
{
    static const struct way way[] = {
        {128, 16, 4096, 4, false, false, 2}, {16, 16, 4096, 1, false, false, 0},
        {64, 16, 4096, 2, true, false, 0},   {128, 1, 4096, 4, false, true, 1},
        {32, 1, 256, 2, false, true, 2},     {256, 2, 512, 1, true, true, 0},
        {128, 4, 1024, 4, false, true, 4},   {16, 8, 256, 1, true, true, 0},
        {64, 16, 256, 4, false, true, 8},    {32, 16, 512, 1, false, true, 16},
    };
    static const int64_t rows[] = {17, 32, 255, 256, 257, 300, 511, 513, 1040, 2310};
    static const int64_t columns[] = {1, 15, 16, 17, 130, 259};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t n = columns[i % 6];
        const struct way *w = &way[i % 2];
        check_ways(make_sum, 1 + (int64_t)i % 2, rows[i], n, DT_f32, w, 9);
        check_ways(make_product, 2, rows[i], n, i % 3 ? DT_f32 : DT_f64, w + i % 5, 4);
    }
    check_ways(make_sum, 1, 600, 259, DT_u8, way, 10);
    check_ways(make_sum, 1, 600, 259, DT_bf16, way, 10);
    check_ways(make_product, 1, 530, 70, DT_f64, way, 10);
}

static bool
goes_lane_by_lane(int64_t rows, int64_t columns, int64_t l1)
{
    struct kernel k;
    struct target t = host_target();
    t.l1 = l1;
    make_sum(&k, 1, rows, columns, DT_f32);
    struct schedule s = scheduled(&k, &t);
    kernel_free_body(&k);
    return s.tile[2] != 0;
}

// Rows of less than a block leave nearly as much as they read: wide ones are taken in order.
Test(emit_column, few_rows_go_in_order_unless_narrow)
{
    cr_expect(goes_lane_by_lane(17, 128, 48 << 10));
    cr_expect(!goes_lane_by_lane(17, 200000, 48 << 10));
    cr_expect(!goes_lane_by_lane(255, 513, 48 << 10));
    cr_expect(goes_lane_by_lane(256, 513, 48 << 10));
    cr_expect(goes_lane_by_lane(100000, 200000, 48 << 10));
    cr_expect(!goes_lane_by_lane(16, 128, 48 << 10)); // column_few.c
}

// Beyond all caches rows are read one by one and asked for ahead, unless the hardware does that, or
// chains would not stay in the first-level cache.
Test(emit_column, rows_are_asked_for_ahead_beyond_the_caches)
{
    for (int way = 0; way < 4; way++) {
        struct kernel k;
        struct target t = {.kind = DEVICE_CPU, .units = 2, .l1 = 48 << 10, .l2 = 2 << 20,
                           .llc = 32 << 20, .vec_bytes = way == 1 ? 32 : 64};
        strcpy(t.arch, way == 1 ? "znver3" : "sapphirerapids");
        make_sum(&k, 1, way == 2 ? 1 << 11 : 1 << 14, way == 3 ? 6144 : 1024, DT_f32);
        struct schedule s = scheduled(&k, &t);
        kernel_free_body(&k);
        cr_assert(s.tile[2] && s.unroll == RED_STEPS, "lane by lane, chains written out");
        cr_expect_eq(s.prefetch, way ? 0 : 2 * RED_LANES, "way %d: 8 KiB of rows of 4 KiB", way);
        cr_expect_eq(s.edge[1], way ? 2 : 1, "way %d: %u, strip %u", way, s.edge[1], s.tile[0]);
    }
}

// The schedule's own choice where it takes lanes apart: sizes beyond caches that are very small.
Test(emit_column, lanes_as_scheduled)
{
    static const int64_t rows[] = {17, 255, 256, 257, 1030, 4097};
    static const int64_t columns[] = {1, 15, 16, 17, 1023, 1024, 1025, 5000};
    for (uint32_t threads = 1; threads <= 3; threads++)
        for (size_t i = 0; i < 6; i++)
            for (size_t j = (i + threads) % 3; j < 8; j += 3) {
                if (rows[i] * columns[j] > 1500000) // the interpreter takes its time
                    continue;
                struct target t = host_target();
                t.units = threads;
                t.l2 = 16 << 10;
                t.llc = i % 2 ? 64 << 10 : t.llc;
                struct kernel k;
                make_sum(&k, 1, rows[i], columns[j], (i + j) % 4 ? DT_f32 : DT_i16);
                char what[80];
                snprintf(what, sizeof what, "%ld x %ld, %u threads", (long)rows[i],
                         (long)columns[j], threads);
                run_column_on(&k, what, t);
            }
}

Test(emit_column, vectors_of_256_and_128_bits)
{
    for (int wide = 0; wide < 2; wide++)
        for (int64_t rows = 7; rows < 300; rows += 133) {
            struct kernel k;
            uint32_t x = begin_matrix(&k, rows, 21, DT_f16);
            uint32_t s = kb_reduce(&k, OP_sum, kb_op(&k, OP_cast, DT_f32, x, 0, 0), OVER_R);
            uint32_t out = kb_buffer(&k, DT_f16, BUF_OUT);
            s = kb_op(&k, OP_cast, DT_f16, s, 0, 0);
            kb_store(&k, s, kb_access(&k, out, 0, (int64_t[]){1, 0}));
            run_column_on(&k, wide ? "avx2" : "sse2", plain_target(wide));
        }
}

// softmax over axis 0: two reductions, elements stored at stage 2.
static void
check_softmax(int64_t rows, int64_t columns)
{
    struct kernel k;
    uint32_t x = begin_matrix(&k, rows, columns, DT_f32);
    uint32_t m = kb_reduce(&k, OP_max_reduce, x, OVER_R);
    uint32_t e = kb_op(&k, OP_exp, 0, kb_op(&k, OP_sub, 0, x, m, 0), 0, 0);
    uint32_t s = kb_reduce(&k, OP_sum, e, OVER_R);
    uint32_t out = kb_buffer(&k, DT_f32, BUF_OUT);
    kb_store(&k, kb_op(&k, OP_div, 0, e, s, 0), kb_access(&k, out, 0, (int64_t[]){1, columns}));
    run_column(&k, "softmax");
}

Test(emit_column, softmax_over_rows)
{
    check_softmax(1, 1);
    check_softmax(5, 40);
    check_softmax(70, 70);
    check_softmax(300, 19);
    check_softmax(40, 64); // rows of whole cache lines
}

// (sum(x, 0), cos(x), rsqrt(sum(x * x) + eps) * x): stores of elements and rows at all stages.
Test(emit_column, elements_and_rows_stored)
{
    static const int64_t rows[] = {1, 16, 70, 290};
    for (size_t i = 0; i < 4; i++) {
        struct kernel k;
        int64_t n = 23;
        uint32_t x = begin_matrix(&k, rows[i], n, DT_f32);
        uint32_t sum = kb_reduce(&k, OP_sum, x, OVER_R);
        uint32_t cosine = kb_op(&k, OP_cos, 0, x, 0, 0);
        uint32_t squares = kb_reduce(&k, OP_sum, kb_op(&k, OP_mul, 0, x, x, 0), OVER_R);
        uint32_t eps = kb_literal(&k, DT_f32, 1e-5);
        uint32_t scale = kb_op(&k, OP_rsqrt, 0, kb_op(&k, OP_add, 0, squares, eps, 0), 0, 0);
        uint32_t scaled = kb_op(&k, OP_mul, 0, x, scale, 0);
        uint32_t vec[2] = {kb_buffer(&k, DT_f32, BUF_OUT), kb_buffer(&k, DT_f32, BUF_OUT)};
        uint32_t mat[2] = {kb_buffer(&k, DT_f32, BUF_OUT), kb_buffer(&k, DT_f32, BUF_OUT)};
        kb_store(&k, sum, kb_access(&k, vec[0], 0, (int64_t[]){1, 0}));
        kb_store(&k, scale, kb_access(&k, vec[1], 0, (int64_t[]){1, 0}));
        kb_store(&k, cosine, kb_access(&k, mat[0], 0, (int64_t[]){1, n}));
        kb_store(&k, scaled, kb_access(&k, mat[1], 0, (int64_t[]){1, n}));
        run_column(&k, "sum, cos, scaled");
    }
}

// x[p0, r0, p1, r1] * w[r1] + b[p1], summed over r0 and r1.
Test(emit_column, several_axes)
{
    for (int64_t n = 3; n < 60; n += 28) {
        struct kernel k;
        kb_begin(&k, (int64_t[]){3, n, 5, 7}, 2, 2); // p0 p1 r0 r1
        uint32_t x = kb_buffer(&k, DT_f32, BUF_IN), w = kb_buffer(&k, DT_f32, BUF_IN);
        uint32_t b = kb_buffer(&k, DT_f32, BUF_IN), out = kb_buffer(&k, DT_f64, BUF_OUT);
        uint32_t lx = kb_load(&k, kb_access(&k, x, 0, (int64_t[]){35 * n, 1, 7 * n, n}), 0);
        uint32_t lw = kb_load(&k, kb_access(&k, w, 0, (int64_t[]){0, 0, 0, 1}), 0);
        uint32_t lb = kb_load(&k, kb_access(&k, b, 0, (int64_t[]){0, 1, 0, 0}), 0);
        k.inst.at[lb].level = LEVEL_ROW;
        uint32_t v = kb_op(&k, OP_add, 0, kb_op(&k, OP_mul, 0, lx, lw, 0), lb, 0);
        uint32_t s = kb_reduce(&k, OP_sum, kb_op(&k, OP_cast, DT_f64, v, 0, 0), OVER_R);
        kb_store(&k, s, kb_access(&k, out, 0, (int64_t[]){n, 1, 0, 0}));
        run_column(&k, "several axes");
    }
}

Test(emit_column, scratch_stays_within_its_budget)
{
    struct target t = host_target();
    for (int64_t rows = 1; rows < (int64_t)1 << 32; rows *= 37) {
        struct kernel k;
        uint32_t x = begin_matrix(&k, rows, 4096, DT_f32);
        uint32_t a = kb_reduce(&k, OP_argmax, x, OVER_R), s = kb_reduce(&k, OP_sum, x, OVER_R);
        uint32_t out[2] = {kb_buffer(&k, DT_i64, BUF_OUT), kb_buffer(&k, DT_f32, BUF_OUT)};
        kb_store(&k, a, kb_access(&k, out[0], 0, (int64_t[]){1, 0}));
        kb_store(&k, s, kb_access(&k, out[1], 0, (int64_t[]){1, 0}));
        struct schedule sched = scheduled(&k, &t);
        cr_assert(sched.scratch_bytes <= 256 << 10);
        struct str text = {0};
        num_vec num = {0};
        struct diag d = {0};
        cr_assert(cpu_emit(&k, &sched, &t, &text, &num, &d), "%s", d.text);
        str_free(&text);
        vec_free(&num);
        kernel_free_body(&k);
    }
}

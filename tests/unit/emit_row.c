// emit_row.c: the row and split classes against the kernel interpreter, bit for bit, on buffers
// that end or begin at an inaccessible page, all units at once and one by one.
#include "tests/unit/emit_run.h"

typedef bool schedule_fn(const struct kernel *k, const struct target *t, struct schedule *s,
                         uint8_t *why);

static const int64_t extents[] = {1,   2,   3,   4,    5,    7,    8,    9,    11,  13,
                                  15,  16,  17,  23,   31,   32,   33,   47,   48,  49,
                                  63,  64,  65,  70,   255,  256,  257,  300,  511, 768,
                                  777, 1023, 1024, 1025, 1279, 1281, 2049, 4096, 4097};
enum { NEXTENTS = sizeof extents / sizeof *extents };

static void
fill(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    run_fill_sums(k, b, at, n, seed, 40, 37);
}

// Finite values only, so that sums stay numbers.
static void
fill_finite(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    uint8_t dtype = k->buffers.at[b].dtype;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = test_random(seed);
        double x = ((double)(r & 0xffffff) / 0x1000000 - 0.5) * exp2((double)(r >> 24 & 7) - 3);
        uint64_t bits = dtype_is_float(dtype) ? scalar_from_double(dtype, x)
                                              : scalar_from_int(dtype, (int64_t)(r % 999));
        scalar_store(dtype, at + i * dtype_size(dtype), bits);
    }
}

static void
in_loops(struct schedule *s) // not in registers; scratch is the test's to give
{
    s->tile[0] = 0;
    s->scratch_bytes = 1 << 20;
}

static void
streaming(struct schedule *s)
{
    in_loops(s);
    s->streaming_store = 1;
}

static void
not_streaming(struct schedule *s)
{
    s->streaming_store = 0;
}

static void
fetching_ahead(struct schedule *s) // past the last row, too
{
    in_loops(s);
    s->prefetch = 1;
}

static void
asking_ahead(struct schedule *s) // past the end, too
{
    s->prefetch = 64;
}

static void
nothing_known(struct schedule *s)
{
    in_loops(s);
    s->tile[1] = s->tile[2] = 0;
}

struct setup {
    schedule_fn *class;
    void (*edit)(struct schedule *); // may be NULL
    bool finite, narrow;             // narrow: a processor of 256-bit vectors
    bool small;                      // caches that hold nothing
    uint8_t overlap;                 // with small: what the class is to answer
    uint64_t seed;
};

// Schedules by the class's own answer, perhaps edited, and compares. Takes the body.
static void
check(struct kernel *k, const char *what, struct setup u)
{
    struct run_options o = {.target = u.narrow ? plain_target(true) : host_target(),
                            .seed = u.seed,
                            .fill = u.finite ? fill_finite : fill};
    char words[100];
    snprintf(words, sizeof words, "%s over %lld", what, (long long)kernel_points(k, AXIS_R));
    o.what = words;
    struct schedule s;
    struct diag d = {0};
    uint8_t why = 0;
    if (u.small)
        o.target.l2 = o.target.llc = 64;
    cr_assert(u.class(k, &o.target, &s, &why), "%s: refused, reason %u", words, why);
    if (u.small)
        cr_expect_eq(s.overlap, u.overlap, "%s: stages %#x overlap", words, s.overlap);
    if (u.edit)
        u.edit(&s);
    k->cls = s.cls;
    for (uint32_t b = 0; b < k->buffers.n; b++)
        k->buffers.at[b].span_hi--;
    cr_assert(kernel_verify(k, &d), "%s: %s", words, d.text);
    for (uint32_t b = 0; b < k->buffers.n; b++)
        k->buffers.at[b].span_hi++;
    run_scheduled(k, &s, &o);
    kernel_free_body(k);
}

// Setup i of a sweep: the class's choice, loops, loops that know nothing, in turn.
static struct setup
turn(schedule_fn *class, int i)
{
    struct setup u = {.class = class, .seed = (uint64_t)i, .finite = i & 1};
    if (class == schedule_row)
        u.edit = i % 3 == 1 ? in_loops : i % 3 == 2 ? nothing_known : NULL;
    return u;
}

// ---- kernels over [rows, n], rows pitch elements apart

struct rows {
    int64_t rows, n, pitch;
};

static void
begin(struct kernel *k, struct rows z)
{
    kb_begin(k, (int64_t[]){z.rows, z.n}, 1, 1);
}

static uint32_t
matrix(struct kernel *k, uint8_t dtype, uint8_t role, struct rows z)
{
    return kb_access(k, kb_buffer(k, dtype, role), 0, (int64_t[]){z.pitch, 1});
}

static uint32_t
column(struct kernel *k, uint8_t dtype, uint8_t role)
{
    return kb_access(k, kb_buffer(k, dtype, role), 0, (int64_t[]){1, 0});
}

static uint32_t
one(struct kernel *k, uint8_t dtype, uint8_t role)
{
    return kb_access(k, kb_buffer(k, dtype, role), 0, (int64_t[]){0, 0});
}

static uint32_t
load_row(struct kernel *k, uint32_t access)
{
    uint32_t i = kb_load(k, access, 0);
    k->inst.at[i].level = LEVEL_ROW;
    return i;
}

static void
reduction(struct kernel *k, uint16_t op, uint8_t dtype, struct rows z)
{
    begin(k, z);
    uint32_t in = matrix(k, dtype, BUF_IN, z);
    uint32_t to = column(k, op == OP_argmax || op == OP_argmin ? DT_i64 : dtype, BUF_OUT);
    kb_store(k, kb_reduce(k, op, kb_load(k, in, 0), OVER_R), to);
}

static void
softmax(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t in = matrix(k, DT_f32, BUF_IN, z), to = matrix(k, DT_f32, BUF_OUT, z);
    uint32_t x = kb_load(k, in, 0);
    uint32_t max = kb_reduce(k, OP_max_reduce, x, OVER_R);
    uint32_t e = kb_op(k, OP_exp, 0, kb_op(k, OP_sub, 0, x, max, 0), 0, 0);
    uint32_t sum = kb_reduce(k, OP_sum, e, OVER_R);
    kb_store(k, kb_op(k, OP_div, 0, e, sum, 0), to);
}

// Two accumulators, a stage that loads more, a ROW output, and an ELEM output of stage 0.
static void
norm(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t a = matrix(k, DT_f32, BUF_IN, z), b = matrix(k, DT_f32, BUF_IN, z);
    uint32_t weight = kb_access(k, kb_buffer(k, DT_f32, BUF_IN), 0, (int64_t[]){0, 1});
    uint32_t to = matrix(k, DT_f32, BUF_OUT, z), sum_to = matrix(k, DT_f32, BUF_OUT, z);
    uint32_t mean_to = column(k, DT_f32, BUF_OUT);
    uint32_t x = kb_op(k, OP_add, 0, kb_load(k, a, 0), kb_load(k, b, 0), 0);
    kb_store(k, x, sum_to);
    uint32_t n = kb_literal(k, DT_f32, (double)z.n);
    uint32_t mean = kb_op(k, OP_div, 0, kb_reduce(k, OP_sum, x, OVER_R), n, 0);
    kb_store(k, mean, mean_to);
    uint32_t d = kb_op(k, OP_sub, 0, x, mean, 0);
    uint32_t sq = kb_reduce(k, OP_sum, kb_op(k, OP_mul, 0, d, d, 0), OVER_R);
    uint32_t scale = kb_op(k, OP_rsqrt, 0, kb_op(k, OP_div, 0, sq, n, 0), 0, 0);
    uint32_t y = kb_op(k, OP_mul, 0, kb_op(k, OP_mul, 0, d, scale, 0), kb_load(k, weight, 0), 0);
    kb_store(k, y, to);
}

// Two stages: the greatest element's place, the sum, and the squares of the deviations.
static void
variance(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t a = matrix(k, DT_f32, BUF_IN, z), to = column(k, DT_f32, BUF_OUT);
    uint32_t at = column(k, DT_i64, BUF_OUT), x = kb_load(k, a, 0);
    uint32_t n = kb_literal(k, DT_f32, (double)z.n);
    kb_store(k, kb_reduce(k, OP_argmax, x, OVER_R), at);
    uint32_t mean = kb_op(k, OP_div, 0, kb_reduce(k, OP_sum, x, OVER_R), n, 0);
    uint32_t d = kb_op(k, OP_sub, 0, x, mean, 0);
    kb_store(k, kb_reduce(k, OP_sum, kb_op(k, OP_mul, 0, d, d, 0), OVER_R), to);
}

// Stores of every stage, and a last one that computes much: its row is two behind the first's.
static void
dear_norm(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t a = matrix(k, DT_f32, BUF_IN, z), b = matrix(k, DT_bf16, BUF_IN, z);
    uint32_t to[3], mean_to = column(k, DT_f32, BUF_OUT);
    for (int i = 0; i < 3; i++)
        to[i] = matrix(k, DT_f32, BUF_OUT, z);
    uint32_t wide = kb_op(k, OP_cast, DT_f32, kb_load(k, b, 0), 0, 0);
    uint32_t x = kb_op(k, OP_add, 0, kb_load(k, a, 0), wide, 0);
    kb_store(k, x, to[0]);
    uint32_t n = kb_literal(k, DT_f32, (double)z.n);
    uint32_t mean = kb_op(k, OP_div, 0, kb_reduce(k, OP_sum, x, OVER_R), n, 0);
    uint32_t d = kb_op(k, OP_sub, 0, x, mean, 0);
    kb_store(k, d, to[1]);
    uint32_t sq = kb_reduce(k, OP_sum, kb_op(k, OP_mul, 0, d, d, 0), OVER_R);
    kb_store(k, mean, mean_to);
    uint32_t y = kb_op(k, OP_div, 0, d, kb_op(k, OP_add, 0, sq, n, 0), 0);
    kb_store(k, kb_op(k, OP_log, 0, kb_op(k, OP_exp, 0, y, 0, 0), 0, 0), to[2]);
}

// A value of the first stage that is dear, and wanted in both others: it would have to be kept for
// two rows at once.
static void
wanted_twice(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t a = matrix(k, DT_f32, BUF_IN, z), to = matrix(k, DT_f32, BUF_OUT, z);
    uint32_t e = kb_op(k, OP_exp, 0, kb_load(k, a, 0), 0, 0);
    uint32_t sum = kb_reduce(k, OP_sum, e, OVER_R);
    uint32_t most = kb_reduce(k, OP_max_reduce, kb_op(k, OP_div, 0, e, sum, 0), OVER_R);
    kb_store(k, kb_op(k, OP_mul, 0, e, most, 0), to);
}

// As cross-entropy: three stages, the last once a row, its value reduced over P.
static void
losses(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t in = matrix(k, DT_f32, BUF_IN, z), to = one(k, DT_f32, BUF_OUT);
    uint32_t x = kb_load(k, in, 0), max = kb_reduce(k, OP_max_reduce, x, OVER_R);
    uint32_t e = kb_op(k, OP_exp, 0, kb_op(k, OP_sub, 0, x, max, 0), 0, 0);
    uint32_t loss = kb_op(k, OP_log, 0, kb_reduce(k, OP_sum, e, OVER_R), 0, 0);
    uint32_t total = kb_reduce(k, OP_sum, loss, OVER_P);
    k->inst.at[total].stage = k->inst.at[loss].stage;
    k->nstage = (uint8_t)(k->inst.at[loss].stage + 1);
    kb_store(k, total, to);
}

// A ROW value over P: the mean over rows of (log of the sum) - x[target], as in cross-entropy.
static void
over_rows(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t in = matrix(k, DT_f32, BUF_IN, z), bias = column(k, DT_f32, BUF_IN);
    uint32_t to = one(k, DT_f32, BUF_OUT), at = one(k, DT_i64, BUF_OUT);
    uint32_t e = kb_op(k, OP_exp, 0, kb_load(k, in, 0), 0, 0);
    uint32_t sum = kb_reduce(k, OP_sum, e, OVER_R);
    uint32_t loss = kb_op(k, OP_sub, 0, kb_op(k, OP_log, 0, sum, 0, 0), load_row(k, bias), 0);
    uint32_t total = kb_reduce(k, OP_sum, loss, OVER_P);
    uint32_t worst = kb_reduce(k, OP_argmax, loss, OVER_P);
    k->inst.at[total].stage = k->inst.at[worst].stage = k->inst.at[loss].stage;
    k->nstage = (uint8_t)(k->inst.at[loss].stage + 1);
    kb_store(k, kb_op(k, OP_div, 0, total, kb_literal(k, DT_f32, (double)z.rows), 0), to);
    kb_store(k, worst, at);
}

static void
sweep(void (*make)(struct kernel *, struct rows), const char *what)
{
    for (int i = 0; i < NEXTENTS; i++) {
        struct kernel k;
        make(&k, (struct rows){3, extents[i], extents[i] + i % 2});
        check(&k, what, turn(schedule_row, i));
    }
}

static void
sweep_reduction(uint16_t op, uint8_t dtype)
{
    for (int i = 0; i < NEXTENTS; i++) {
        struct kernel k;
        reduction(&k, op, dtype, (struct rows){3, extents[i], extents[i] + i % 2});
        check(&k, op_name(op), turn(schedule_row, i));
    }
}

// ---- the row class

Test(emit_row, sum_f32) { sweep_reduction(OP_sum, DT_f32); }
Test(emit_row, sum_f64) { sweep_reduction(OP_sum, DT_f64); }
Test(emit_row, sum_i64) { sweep_reduction(OP_sum, DT_i64); }
Test(emit_row, prod_f32) { sweep_reduction(OP_prod, DT_f32); }
Test(emit_row, max_f32) { sweep_reduction(OP_max_reduce, DT_f32); }
Test(emit_row, min_u8) { sweep_reduction(OP_min_reduce, DT_u8); }
Test(emit_row, any_bool) { sweep_reduction(OP_any, DT_bool); }
Test(emit_row, all_bool) { sweep_reduction(OP_all, DT_bool); }
Test(emit_row, argmax_f32) { sweep_reduction(OP_argmax, DT_f32); }
Test(emit_row, argmin_i16) { sweep_reduction(OP_argmin, DT_i16); }
Test(emit_row, softmax) { sweep(softmax, "softmax"); }
Test(emit_row, norm) { sweep(norm, "norm"); }
Test(emit_row, over_rows) { sweep(over_rows, "cross-entropy"); }

// Rows shorter than a vector, as columns that lie apart.
Test(emit_row, short_rows_as_columns)
{
    for (int i = 0; extents[i] < RED_LANES; i++) {
        struct rows z = {70, extents[i], extents[i] + i % 2};
        struct kernel k;
        softmax(&k, z);
        check(&k, "softmax", (struct setup){.class = schedule_column});
        norm(&k, z);
        check(&k, "norm", (struct setup){.class = schedule_column});
        reduction(&k, OP_argmax, DT_f64, z);
        check(&k, "argmax", (struct setup){.class = schedule_column});
    }
}

// All elements equal the identity, or all are NaN: the first is the answer, also with tails.
static void
fill_lowest(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++)
        scalar_store(DT_f32, at + i * 4, scalar_from_double(DT_f32, *seed ? NAN : -INFINITY));
    (void)k, (void)b;
}

Test(emit_row, argmax_of_identities)
{
    for (int i = 0; i < NEXTENTS; i++) {
        struct kernel k;
        reduction(&k, OP_argmax, DT_f32, (struct rows){2, extents[i], extents[i]});
        struct run_options o = {.target = host_target(), .seed = (uint64_t)(i & 1),
                                .what = "argmax", .fill = fill_lowest};
        struct schedule s;
        uint8_t why;
        cr_assert(schedule_row(&k, &o.target, &s, &why));
        run_scheduled(&k, &s, &o);
        kernel_free_body(&k);
    }
}

Test(emit_row, long_rows)
{
    for (int i = 0; i < 2; i++) {
        struct rows z = {2, 131071 + i, 131072};
        struct kernel k;
        reduction(&k, OP_sum, DT_f32, z);
        check(&k, "sum", (struct setup){.class = schedule_row, .finite = true});
        reduction(&k, OP_argmin, DT_f64, z);
        check(&k, "argmin", (struct setup){.class = schedule_row, .finite = true});
        softmax(&k, z);
        check(&k, "softmax", (struct setup){.class = schedule_row, .finite = true});
    }
}

Test(emit_row, many_rows)
{
    struct kernel k;
    over_rows(&k, (struct rows){1500, 10, 10});
    check(&k, "cross-entropy", (struct setup){.class = schedule_row, .finite = true});
    reduction(&k, OP_sum, DT_f32, (struct rows){300, 5, 7});
    check(&k, "sum", (struct setup){.class = schedule_row, .finite = true});
}

// Aligned rows take the streaming loop, others the plain one.
Test(emit_row, streaming_stores)
{
    static const int64_t n[] = {64, 70, 320, 1000};
    for (int i = 0; i < 8; i++) {
        struct kernel k;
        softmax(&k, (struct rows){3, n[i / 2], i & 1 ? n[i / 2] + 5 : (n[i / 2] + 31) / 32 * 32});
        check(&k, "softmax", (struct setup){.class = schedule_row, .edit = streaming});
    }
}

Test(emit_row, prefetch)
{
    static const int64_t n[] = {64, 70, 1024, 2100};
    for (int i = 0; i < 4; i++) {
        struct kernel k;
        softmax(&k, (struct rows){3, n[i], n[i]});
        check(&k, "softmax", (struct setup){.class = schedule_row, .edit = fetching_ahead});
        norm(&k, (struct rows){2, n[i], n[i] + 3});
        check(&k, "norm", (struct setup){.class = schedule_row, .edit = fetching_ahead});
    }
}

// As layer_norm: a mean, the squares of the deviations, and a result, each stage a few
// instructions. Rows of whole groups of blocks share the requests for the next row among them.
static void
deviations(struct kernel *k, struct rows z)
{
    begin(k, z);
    uint32_t a = matrix(k, DT_f32, BUF_IN, z), to = matrix(k, DT_f32, BUF_OUT, z);
    uint32_t x = kb_load(k, a, 0), n = kb_literal(k, DT_f32, (double)z.n);
    uint32_t mean = kb_op(k, OP_div, 0, kb_reduce(k, OP_sum, x, OVER_R), n, 0);
    uint32_t d = kb_op(k, OP_sub, 0, x, mean, 0);
    uint32_t sq = kb_reduce(k, OP_sum, kb_op(k, OP_mul, 0, d, d, 0), OVER_R);
    kb_store(k, kb_op(k, OP_mul, 0, d, sq, 0), to);
}

Test(emit_row, prefetch_in_all_stages)
{
    static const int64_t n[] = {1024, 1040, 4096, 5120, 70 * 1024};
    for (int i = 0; i < 5; i++) {
        struct kernel k;
        deviations(&k, (struct rows){3, n[i], n[i] + 16 * (i & 1)});
        check(&k, "deviations", (struct setup){.class = schedule_row, .edit = fetching_ahead});
    }
}

// Stages of consecutive rows in one loop: from no such row to many, rows with rests and tails,
// stores that stream, in aligned rows, and that do not.
Test(emit_row, overlapping_rows)
{
    static const struct {
        void (*make)(struct kernel *, struct rows);
        const char *what;
        uint8_t overlap;
    } kinds[] = {{softmax, "softmax", 7}, {variance, "variance", 3}, {dear_norm, "dear norm", 7},
                 {losses, "losses", 3},   {norm, "norm", 0},         {wanted_twice, "twice", 0}};
    static const int64_t n[] = {273, 511, 800, 1024, 1025, 1280, 2304, 4096, 5120};
    for (int i = 0; i < 9; i++)
        for (uint32_t x = 0; x < sizeof kinds / sizeof *kinds; x++) {
            struct kernel k;
            bool rare = (i + (int)x) % 4 == 0; // whole lines, or rows that begin anywhere
            kinds[x].make(&k, (struct rows){1 + (i + (int)x) % 6, n[i],
                                            rare ? n[i] + 1 : (n[i] + 31) / 32 * 32});
            check(&k, kinds[x].what,
                  (struct setup){.class = schedule_row, .finite = true, .overlap = kinds[x].overlap,
                                 .small = true, .edit = i & 1 ? not_streaming : NULL,
                                 .seed = (uint64_t)i});
        }
}

// The last stage of a group of rows, piece by piece of their columns: from fewer rows than a group
// to several groups and a rest, rows of whole pieces and not, streaming and not.
static void
in_groups(struct schedule *s)
{
    streaming(s);
    memset(s->keep, 0, sizeof s->keep);
    s->prefetch = 2;
    s->edge[0] = 3;
}

Test(emit_row, groups_of_rows)
{
    static const int64_t n[] = {16, 100, 128, 1024, 1100, 2048};
    for (int i = 0; i < 6; i++)
        for (int64_t rows = 1; rows <= 8; rows += 1 + i % 2) {
            int64_t apart = rows % 2 ? (n[i] + 31) / 32 * 32 : n[i] + 1;
            struct kernel k;
            norm(&k, (struct rows){rows, n[i], apart});
            check(&k, "norm", (struct setup){.class = schedule_row, .edit = in_groups});
            deviations(&k, (struct rows){rows, n[i], apart});
            check(&k, "deviations", (struct setup){.class = schedule_row, .edit = in_groups});
        }
}

// Rows are taken together where one does not fit the first-level cache with what all share.
Test(emit_row, which_rows_go_together)
{
    static const struct {
        int64_t rows, n;
        uint8_t group;
    } cases[] = {{32768, 4096, 8}, {8192, 16384, 2}, {131072, 1024, 0}, {64, 4096, 0},
                 {32768, 4100, 0}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kernel k;
        struct schedule s;
        struct target t = {.units = 2, .vec_bytes = 64, .l1 = 48 << 10, .l2 = 2 << 20,
                           .llc = (int64_t)260 << 20};
        uint8_t why = 0;
        norm(&k, (struct rows){cases[i].rows, cases[i].n, cases[i].n});
        cr_assert(schedule_row(&k, &t, &s, &why));
        cr_expect_eq(s.edge[0], cases[i].group, "case %u: %u rows", i, s.edge[0]);
        kernel_free_body(&k);
    }
}

Test(emit_row, narrow_vectors)
{
    static const int64_t n[] = {7, 100, 1100};
    for (int i = 0; i < 3; i++) {
        struct kernel k;
        softmax(&k, (struct rows){2, n[i], n[i]});
        check(&k, "softmax", (struct setup){.class = schedule_row, .narrow = true});
        reduction(&k, OP_argmax, DT_i32, (struct rows){2, n[i], n[i]});
        check(&k, "argmax", (struct setup){.class = schedule_row, .narrow = true});
    }
}

// x[a, p, q, b] summed over a and b, b along the lanes or not; and a column read along R.
Test(emit_row, several_axes)
{
    static const int64_t b[] = {16, 48, 5, 17};
    for (int i = 0; i < 8; i++) {
        int64_t e = b[i / 2], a = i & 1 ? 30 : 3;
        struct kernel k;
        kb_begin(&k, (int64_t[]){4, 3, a, e}, 2, 2);
        uint32_t in = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0,
                                (int64_t[]){3 * e, e, 12 * e, 1});
        uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){1, 4, 0, 0});
        uint32_t all = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0,
                                 (int64_t[]){a * e * 3, a * e, e, 1});
        uint32_t x = kb_load(&k, in, 0), s = kb_reduce(&k, OP_sum, x, OVER_R);
        kb_store(&k, s, to);
        kb_store(&k, kb_op(&k, OP_sub, 0, x, s, 0), all);
        check(&k, "sum", (struct setup){.class = schedule_row, .edit = i & 1 ? in_loops : NULL});
    }
    struct kernel k;
    kb_begin(&k, (int64_t[]){5, 300}, 1, 1);
    uint32_t in = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){1, 5});
    uint32_t turned = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 299, (int64_t[]){0, -1});
    uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){1, 0});
    uint32_t x = kb_op(&k, OP_mul, 0, kb_load(&k, in, 0), kb_load(&k, turned, 0), 0);
    kb_store(&k, kb_reduce(&k, OP_sum, x, OVER_R), to);
    check(&k, "strided sum", (struct setup){.class = schedule_row});
}

// No P axis at all; no R axis but an accumulator over P.
Test(emit_row, one_domain_missing)
{
    struct kernel k;
    kb_begin(&k, (int64_t[]){777}, 0, 1);
    uint32_t in = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){1});
    uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){0});
    kb_store(&k, kb_reduce(&k, OP_sum, kb_load(&k, in, 0), OVER_R), to);
    check(&k, "full sum", (struct setup){.class = schedule_row, .finite = true});
    kb_begin(&k, (int64_t[]){777}, 1, 0);
    in = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){1});
    to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){0});
    uint32_t s = kb_reduce(&k, OP_sum, kb_load(&k, in, 0), OVER_P);
    k.inst.at[s].stage = 0;
    k.nstage = 1;
    kb_store(&k, s, to);
    check(&k, "sum over P", (struct setup){.class = schedule_row, .finite = true});
}

Test(emit_row, refusals)
{
    struct target t = host_target();
    struct schedule s;
    struct kernel k;
    uint8_t why = 0;
    over_rows(&k, (struct rows){100000, 16, 16}); // 400 KB of row values
    cr_assert_not(schedule_row(&k, &t, &s, &why));
    kernel_free_body(&k);
    softmax(&k, (struct rows){1, 1 << 20, 1 << 20});
    cr_assert_not(schedule_split(&k, &t, &s, &why), "stage 1 and 2 need all of R");
    kernel_free_body(&k);
}

// ---- the split class: the interpreter knows one order only, so equal to it is equal to row

Test(emit_split, reductions)
{
    static const uint16_t op[] = {OP_sum, OP_max_reduce, OP_argmax, OP_prod};
    static const int64_t n[] = {131072, 131071, 200000, 300001};
    for (int i = 0; i < 8; i++) {
        struct kernel k;
        struct rows z = {1 + i % 3, n[i / 2], n[i / 2]};
        reduction(&k, op[i / 2], i & 1 ? DT_f64 : DT_f32, z);
        check(&k, op_name(op[i / 2]), (struct setup){.class = schedule_split, .finite = i & 1,
                                                     .edit = i & 2 ? asking_ahead : NULL});
    }
}

// Two accumulators, a store per element, work per row, and an accumulator over P.
Test(emit_split, everything_at_once)
{
    struct rows z = {3, 150003, 150003};
    struct kernel k;
    begin(&k, z);
    uint32_t in = matrix(&k, DT_f32, BUF_IN, z), twice_to = matrix(&k, DT_f32, BUF_OUT, z);
    uint32_t to = column(&k, DT_f32, BUF_OUT), all = one(&k, DT_f32, BUF_OUT);
    uint32_t x = kb_load(&k, in, 0), twice = kb_op(&k, OP_add, 0, x, x, 0);
    kb_store(&k, twice, twice_to);
    uint32_t a = kb_reduce(&k, OP_sum, twice, OVER_R), b = kb_reduce(&k, OP_min_reduce, x, OVER_R);
    uint32_t v = kb_op(&k, OP_sub, 0, a, b, 0);
    kb_store(&k, v, to);
    uint32_t s = kb_reduce(&k, OP_sum, v, OVER_P);
    k.inst.at[s].stage = k.inst.at[v].stage;
    k.nstage = 2;
    kb_store(&k, s, all);
    check(&k, "split", (struct setup){.class = schedule_split, .finite = true});
}

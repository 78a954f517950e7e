// emit_abreast.c: rows taken several at once, against the kernel interpreter, bit for bit, on
// buffers that end or begin at an inaccessible page: strips begun only, rows of all lengths, what
// rows share in registers and in scratch, with and without outer axes.
#include "tests/unit/emit_run.h"

#include "passes/schedule_row.h"

static const int64_t extents[] = {1,   2,   5,    8,    15,   16,   17,  31,  32,
                                  33,  64,  65,   100,  240,  255,  256, 257, 300,
                                  511, 784, 1023, 1024, 1025, 4096, 5000};
static const int64_t row_counts[] = {6, 7, 15, 16, 17, 20, 32, 37, 48};
enum {
    NEXTENTS = sizeof extents / sizeof *extents,
    NROWS = sizeof row_counts / sizeof *row_counts
};

static void
fill(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    run_fill_sums(k, b, at, n, seed, 4000, 997);
}

static void
as_chosen(struct schedule *s)
{
    (void)s;
}

static void
in_loops(struct schedule *s)
{
    s->tile[ROW_TILE_VECTORS] = 0;
}

static void
nothing_known(struct schedule *s)
{
    s->tile[ROW_TILE_VECTORS] = s->tile[ROW_TILE_EXTENT] = s->tile[ROW_TILE_BLOCKS] = 0;
}

static void
nothing_kept(struct schedule *s)
{
    s->keep[0] = s->keep[1] = 0;
}

static void (*const edits[])(struct schedule *) = {as_chosen, in_loops, nothing_known,
                                                   nothing_kept};

// Takes the body. want: whether the class takes rows abreast.
static void
check(struct kernel *k, const char *what, int i, bool want)
{
    struct run_options o = {.target = i % 5 == 4 ? plain_target(true) : host_target(),
                            .seed = (uint64_t)i,
                            .fill = fill};
    o.target.units = want ? 1 : 2; // strips enough for its threads
    char words[100];
    snprintf(words, sizeof words, "%s, %lld rows of %lld, setup %d", what,
             (long long)kernel_points(k, AXIS_P), (long long)kernel_points(k, AXIS_R), i);
    o.what = words;
    struct schedule s;
    struct diag d = {0};
    uint8_t why = 0;
    cr_assert(schedule_row(k, &o.target, &s, &why), "%s: refused, reason %u", words, why);
    cr_assert_eq(s.rows != 0, want, "%s: %u rows at once", words, s.rows);
    edits[i % 4](&s);
    k->cls = s.cls;
    for (uint32_t b = 0; b < k->buffers.n; b++)
        k->buffers.at[b].span_hi--;
    cr_assert(kernel_verify(k, &d), "%s: %s", words, d.text);
    for (uint32_t b = 0; b < k->buffers.n; b++)
        k->buffers.at[b].span_hi++;
    run_scheduled(k, &s, &o);
    kernel_free_body(k);
}

struct problem {
    int64_t outer, rows, n; // outer 0: no such axis
    uint8_t x, w;           // dtypes of the vector and the matrix
    uint16_t op;
    bool dear; // the vector is computed of two arrays
};

// Per outer point: out[row] = relu(reduce over r of x[r] w[row, r] + bias[row]), rows of w padded.
static void
product(struct kernel *k, struct problem z)
{
    bool outer = z.outer != 0;
    int64_t pitch = z.n + 3;
    int64_t sx[3] = {z.n, 0, 1}, sw[3] = {z.rows * pitch, pitch, 1}, sr[3] = {z.rows, 1, 0};
    int64_t reversed[3] = {0, 0, -1};
    uint32_t skip = outer ? 0 : 1;
    kb_begin(k, (int64_t[]){z.outer, z.rows, z.n} + skip, 2 - skip, 1);
    uint32_t ax = kb_access(k, kb_buffer(k, z.x, BUF_IN), 0, sx + skip);
    uint32_t aw = kb_access(k, kb_buffer(k, z.w, BUF_IN), 0, sw + skip);
    uint32_t ab = kb_access(k, kb_buffer(k, z.w, BUF_IN), 0, sr + skip);
    uint32_t to = kb_access(k, kb_buffer(k, z.w, BUF_OUT), 0, sr + skip);
    uint32_t x = kb_load(k, ax, 0);
    if (z.x != z.w)
        x = kb_op(k, OP_cast, z.w, x, 0, 0);
    if (z.dear) {
        uint32_t av = kb_access(k, kb_buffer(k, z.w, BUF_IN), z.n - 1, reversed + skip);
        x = kb_op(k, OP_div, 0, kb_op(k, OP_sub, 0, x, kb_load(k, av, 0), 0),
                  kb_literal(k, z.w, 255), 0);
    }
    uint32_t p = kb_op(k, OP_mul, 0, x, kb_load(k, aw, 0), 0);
    uint32_t sum = kb_reduce(k, z.op, p, OVER_R), bias = kb_load(k, ab, 0);
    k->inst.at[bias].level = LEVEL_ROW;
    kb_store(k, kb_op(k, OP_max, 0, kb_op(k, OP_add, 0, sum, bias, 0), kb_literal(k, z.w, 0), 0),
             to);
}

static void
sweep(struct problem z, const char *what)
{
    int turn = 0;
    for (int i = 0; i < NEXTENTS; i++)
        for (int j = i % 3; j < NROWS; j += 3, turn++) {
            struct kernel k;
            z.n = extents[i];
            z.rows = row_counts[j];
            product(&k, z);
            check(&k, what, turn, true);
        }
}

Test(emit_abreast, f32)
{
    sweep((struct problem){.x = DT_f32, .w = DT_f32, .op = OP_sum}, "f32");
}
Test(emit_abreast, f64)
{
    sweep((struct problem){.x = DT_f64, .w = DT_f64, .op = OP_sum}, "f64");
}
Test(emit_abreast, i32)
{
    sweep((struct problem){.x = DT_i32, .w = DT_i32, .op = OP_sum}, "i32");
}
Test(emit_abreast, most)
{
    sweep((struct problem){.x = DT_f32, .w = DT_f32, .op = OP_max_reduce}, "max");
}
Test(emit_abreast, pixels)
{
    sweep((struct problem){.x = DT_u8, .w = DT_f32, .op = OP_sum, .dear = true}, "pixels");
}
Test(emit_abreast, batch)
{
    sweep((struct problem){.outer = 3, .x = DT_f32, .w = DT_f32, .op = OP_sum}, "batch");
}
Test(emit_abreast, batch_of_pixels)
{
    sweep((struct problem){.outer = 5, .x = DT_u8, .w = DT_f32, .op = OP_sum, .dear = true},
          "batch of pixels");
}

// Two accumulators of different types, one of a value that all rows share, and nothing else shared.
Test(emit_abreast, two_accumulators)
{
    for (int i = 0; i < NEXTENTS; i++) {
        int64_t n = extents[i], rows = row_counts[i % NROWS];
        struct kernel k;
        kb_begin(&k, (int64_t[]){rows, n}, 1, 1);
        uint32_t ax = kb_access(&k, kb_buffer(&k, DT_f64, BUF_IN), 0, (int64_t[]){0, 1});
        uint32_t aw = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){n, 1});
        uint32_t most_to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){1, 0});
        uint32_t to =
            kb_access(&k, kb_buffer(&k, DT_f64, BUF_OUT), 2 * rows - 2, (int64_t[]){-2, 0});
        uint32_t w = kb_load(&k, aw, 0), x = kb_load(&k, ax, 0);
        uint32_t most = kb_reduce(&k, OP_max_reduce, w, OVER_R);
        uint32_t sum = kb_reduce(&k, OP_sum, x, OVER_R);
        kb_store(&k, most, most_to);
        kb_store(&k, kb_op(&k, OP_add, 0, sum, kb_op(&k, OP_cast, DT_f64, most, 0, 0), 0), to);
        check(&k, "two", i, true);
    }
}

// Row values go on into accumulators over all rows, as the largest of some logits and their sum.
Test(emit_abreast, over_rows)
{
    for (int i = 0; i < NEXTENTS; i++) {
        int64_t n = extents[i], rows = row_counts[i % NROWS], outer = 1 + i % 3;
        struct kernel k;
        kb_begin(&k, (int64_t[]){outer, rows, n}, 2, 1);
        uint32_t ax = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){n, 0, 1});
        uint32_t aw = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){0, n, 1});
        uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){rows, 1, 0});
        uint32_t at = kb_access(&k, kb_buffer(&k, DT_i64, BUF_OUT), 0, (int64_t[]){0, 0, 0});
        uint32_t all = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){0, 0, 0});
        uint32_t p = kb_op(&k, OP_mul, 0, kb_load(&k, ax, 0), kb_load(&k, aw, 0), 0);
        uint32_t v = kb_op(&k, OP_exp, 0, kb_reduce(&k, OP_sum, p, OVER_R), 0, 0);
        uint32_t most = kb_reduce(&k, OP_argmax, v, OVER_P), sum = kb_reduce(&k, OP_sum, v, OVER_P);
        k.inst.at[most].stage = k.inst.at[sum].stage = k.inst.at[v].stage;
        k.nstage = (uint8_t)(k.inst.at[v].stage + 1);
        kb_store(&k, v, to);
        kb_store(&k, most, at);
        kb_store(&k, sum, all);
        check(&k, "over rows", i, true);
    }
}

// R of two axes that do not merge.
Test(emit_abreast, several_axes)
{
    static const int64_t inner[] = {16, 48, 5, 17};
    for (int i = 0; i < 8; i++) {
        int64_t b = inner[i / 2], a = i & 1 ? 30 : 3, rows = 21;
        struct kernel k;
        kb_begin(&k, (int64_t[]){rows, a, b}, 1, 2);
        uint32_t ax = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){0, 1, a});
        uint32_t aw = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){b, rows * b, 1});
        uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){1, 0, 0});
        uint32_t p = kb_op(&k, OP_mul, 0, kb_load(&k, ax, 0), kb_load(&k, aw, 0), 0);
        kb_store(&k, kb_reduce(&k, OP_sum, p, OVER_R), to);
        check(&k, "axes", i, true);
    }
}

// Few rows, long rows that share nothing, and what two threads could not divide go row by row.
Test(emit_abreast, not_abreast)
{
    struct kernel k;
    product(&k, (struct problem){.rows = 5, .n = 300, .x = DT_f32, .w = DT_f32, .op = OP_sum});
    check(&k, "five rows", 0, false);
    product(&k, (struct problem){.rows = 48, .n = 60000, .x = DT_f32, .w = DT_f32, .op = OP_sum});
    check(&k, "three strips", 0, false);
    kb_begin(&k, (int64_t[]){64, 1100}, 1, 1);
    uint32_t in = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){1100, 1});
    uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, (int64_t[]){1, 0});
    kb_store(&k, kb_reduce(&k, OP_sum, kb_load(&k, in, 0), OVER_R), to);
    check(&k, "long rows", 0, false);
}

// emit_pointwise.c: every elementwise row and every cast through generated code, bit for bit with the
// interpreter, over sizes 1..70 and beyond, layouts, masks and gathers; nothing outside a buffer.
#include "emit_run.h"

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
    run_check(k, &s, w->fn, num.at, o, false, false);
    run_check(k, &s, w->fn, num.at, o, true, true);
    str_free(&text);
    vec_free(&num);
}

static void
sweep_end(struct sweep *w)
{
    jit_free(&w->jit);
    str_free(&w->text);
}

static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 70, 300};

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

static const char *
row_template(uint16_t op, uint8_t dtype)
{
    const struct op_info *i = &op_table[op];
    switch (dtype_table[dtype].kind) {
    case DTK_FLOAT:
        return i->llvm_f;
    case DTK_SINT:
        return i->llvm_s;
    case DTK_UINT:
        return i->llvm_u;
    default:
        return i->llvm_b;
    }
}

static bool
is_half(uint8_t dtype)
{
    return dtype == DT_f16 || dtype == DT_bf16;
}

// Division by zero, shifts beyond the width and the like never reach these rows.
static bool
is_partial(uint16_t op)
{
    return op == OP_idiv_raw || op == OP_shl_raw || op == OP_shr_raw;
}

static void
check_all_rows(const struct target *t)
{
    for (uint16_t op = 1; op < OP_COUNT; op++)
        for (uint8_t d = 1; d < DT_COUNT; d++)
            if (row_template(op, d) && !is_partial(op) && (!is_half(d) || op == OP_where))
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

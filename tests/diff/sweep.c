// sweep.c: every op of the table with every dtype, at sizes, layouts and values that have corners:
// alone (eager: a kernel of its own) and between neighbours it is fused with. What generated code
// gives must be what the graph interpreter says, bit for bit where ops are exact and within the
// row's bound where not (tests/support/bound.h), and the bits of the kernel interpreter and of the
// ops run one by one. Buffers end, then begin, at an inaccessible page.
//
// What is swept follows from ops.def alone (tests/support/op_cases.h): a new row is swept as soon
// as it stands there, or fails here. A combination that is not run is counted with its reason.
// The short run leaves out a part, another one for each FUSEC_FIRST_SEED; FUSEC_SWEEP=all runs
// everything.
#include "tests/support/bound.h"
#include "tests/support/graph_gen.h"
#include "tests/support/op_cases.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS_MOST = 16, OUTPUTS_MOST = 4, INTERPRETED_MOST = 600 };

struct report {
    uint64_t alone, fused, skipped[SKIP_COUNT];
    struct bound_tally compared;
};

struct sweep {
    struct device *dev;
    bool all;
    uint64_t seed;
    struct report total;
};

// One op with one dtype, form and size.
struct item {
    uint16_t op;
    uint8_t dtype;
    uint32_t form;
    enum size_case size;
    uint64_t hash; // draws what is drawn
    struct call call;
};

// A graph to check, and what its inputs are.
struct subject {
    struct graph *g;
    struct operand in[INPUTS_MOST];
    uint32_t nin;
    bool strict;
};

static void
describe(const struct item *it, enum fill f, const char *what, char *text, size_t n)
{
    snprintf(text, n, "%s of %s, form %u, size %s, values %s: %s", op_name(it->op),
             dtype_name(it->dtype), it->form, size_name[it->size], fill_name[f], what);
}

// ---- graphs

static ref
add_input(struct subject *s, const struct item *it, const struct operand *o)
{
    int64_t stride[MAX_RANK];
    char name[16];
    CHECK(s->nin < INPUTS_MOST, "%s: too many inputs", op_name(it->op));
    snprintf(name, sizeof name, "x%u", s->nin);
    operand_strides(o, it->size, stride);
    s->in[s->nin++] = *o;
    return graph_add_input(s->g, name, o->dtype, &o->shape, stride, 0);
}

static ref
build(struct subject *s, uint16_t op, const ref *in, uint32_t n, const int64_t *attr,
      uint32_t nattr)
{
    struct diag d = {0};
    ref r = graph_build(s->g, op, in, n, attr, nattr, graph_add_origin(s->g, op, "sweep", 1), &d);
    cr_assert(r.i, "%s", d.text);
    return r;
}

static struct subject
op_alone(const struct item *it)
{
    struct subject s = {.g = graph_new("alone")};
    ref in[OPERANDS_MOST];
    for (uint32_t i = 0; i < it->call.nin; i++)
        in[i] = add_input(&s, it, &it->call.in[i]);
    ref y = build(&s, it->op, in, it->call.nin, it->call.attr, it->call.nattr);
    graph_add_output(s.g, "y", y);
    return s;
}

// An exact op before the operand, which nothing can simplify.
static ref
producer(struct subject *s, const struct item *it, uint32_t i)
{
    const struct operand *o = &it->call.in[i];
    ref x = add_input(s, it, o), other = add_input(s, it, o);
    bool keeps_bits = it->op == OP_bitcast; // of NaN, which a computation does not
    if (o->below > 0 || keeps_bits || it->hash >> i & 1) {
        struct operand mask = {DT_bool, o->shape, 0, 0};
        return build(s, OP_where, (ref[]){add_input(s, it, &mask), x, other}, 3, NULL, 0);
    }
    return build(s, OP_max, (ref[]){x, other}, 2, NULL, 0);
}

static ref
consumer(struct subject *s, const struct item *it, ref y)
{
    uint8_t dtype = graph_node(s->g, y)->dtype;
    struct operand mask = {DT_bool, *graph_shape(s->g, y), 0, 0};
    ref one = graph_literal(s->g, dtype, scalar_from_double(dtype, 1), 0);
    int64_t to = dtype_is_float(dtype) ? DT_f64 : DT_i64;
    switch (it->hash >> 8 & 3) {
    case 0:
        return build(s, OP_where, (ref[]){add_input(s, it, &mask), y, one}, 3, NULL, 0);
    case 1:
        return build(s, OP_cast, &y, 1, &to, 1);
    case 2:
        return build(s, OP_le, (ref[]){y, one}, 2, NULL, 0);
    default:
        return build(s, OP_max, (ref[]){y, one}, 2, NULL, 0);
    }
}

static struct subject
op_fused(const struct item *it)
{
    struct subject s = {.g = graph_new("fused"), .strict = it->hash >> 16 & 1};
    ref in[OPERANDS_MOST];
    for (uint32_t i = 0; i < it->call.nin; i++)
        in[i] = i < 3 ? producer(&s, it, i) : add_input(&s, it, &it->call.in[i]);
    ref y = build(&s, it->op, in, it->call.nin, it->call.attr, it->call.nattr);
    ref z = consumer(&s, it, y);
    graph_add_output(s.g, "y", y);
    graph_add_output(s.g, "z", z);
    if (it->hash >> 17 & 1 && it->call.nin)
        graph_add_output(s.g, "x", in[0]);
    return s;
}

// ---- one set of inputs

struct data {
    struct tensor in[INPUTS_MOST];
    struct guarded memory[INPUTS_MOST], out_memory[OUTPUTS_MOST];
    void *ptr[INPUTS_MOST], *out[OUTPUTS_MOST];
};

static void
data_new(struct data *d, const struct subject *s, const struct item *it, enum fill f, bool at_end)
{
    for (uint32_t i = 0; i < s->nin; i++) {
        d->memory[i] = operand_memory(&s->in[i], it->size, f, hash_mix(it->hash, f * 64 + i),
                                      at_end, &d->in[i]);
        d->ptr[i] = d->in[i].data;
    }
    for (uint32_t i = 0; i < s->g->outputs.n; i++) {
        d->out_memory[i] = guarded_alloc(output_bytes(s->g, i), at_end);
        d->out[i] = d->out_memory[i].data;
        memset(d->out[i], 0xa5, d->out_memory[i].bytes);
    }
}

static void
data_free(struct data *d, const struct subject *s)
{
    for (uint32_t i = 0; i < s->nin; i++)
        guarded_free(&d->memory[i]);
    for (uint32_t i = 0; i < s->g->outputs.n; i++)
        guarded_free(&d->out_memory[i]);
}

static void
must_equal(struct sweep *w, const struct subject *s, const struct item *it, enum fill f,
           const struct data *d, void *const *other, const char *what)
{
    char where[200], text[300];
    struct tally t = {0};
    if (compare_outputs(s->g, d->out, other, &t, where))
        return;
    describe(it, f, what, text, sizeof text);
    fail_with(s->g, w->seed, text, where);
}

static void
check_against_interpreter(struct sweep *w, const struct subject *s, const struct item *it,
                          enum fill f, const struct data *d)
{
    struct bounded right[OUTPUTS_MOST];
    struct diag diag = {0};
    char where[200], text[300];
    if (!bound_graph(s->g, d->in, s->strict, right, &diag))
        fail_with(s->g, w->seed, "interpreter", diag.text);
    for (uint32_t i = 0; i < s->g->outputs.n; i++) {
        if (!bound_check(&right[i], d->out[i], &w->total.compared, where)) {
            describe(it, f, "not what the graph interpreter says", text, sizeof text);
            fail_with(s->g, w->seed, text, where);
        }
        bounded_free(&right[i]);
    }
}

static void
check_values(struct sweep *w, const struct subject *s, const struct item *it, enum fill f,
             struct executable *e, bool at_end)
{
    struct data d;
    struct diag diag = {0};
    struct compile_options co = {.strict = s->strict};
    data_new(&d, s, it, f, at_end);
    if (!executable_run(e, d.ptr, d.out, &diag))
        fail_with(s->g, w->seed, "did not run", diag.text);
    check_against_interpreter(w, s, it, f, &d);
    bool small = it->size != SIZE_1025 || w->all;
    if (at_end && small) {
        void **model = outputs_of(s->g);
        if (!run_fused(s->g, d.in, model, NULL, &co, &diag))
            fail_with(s->g, w->seed, "kernel interpreter", diag.text);
        must_equal(w, s, it, f, &d, model, "generated code and the kernel interpreter differ");
        free_outputs(s->g, model);
    }
    bool fused = s->g->outputs.n > 1;
    if (!at_end && fused && small && (s->strict || !graph_has_halves(s->g))) {
        void **eager = outputs_of(s->g);
        if (!run_eager(s->g, d.in, eager, w->dev, &co, &diag))
            fail_with(s->g, w->seed, "op by op", diag.text);
        must_equal(w, s, it, f, &d, eager, "fused and op by op differ");
        free_outputs(s->g, eager);
    }
    data_free(&d, s);
}

// Takes the graph.
static void
check_subject(struct sweep *w, struct subject s, const struct item *it, uint64_t *runs)
{
    struct diag d = {0};
    struct compile_options co = {.strict = s.strict};
    own_device_level(w->dev, it->hash >> 20 & 7 ? CODE_BASELINE : CODE_OPTIMISED);
    struct plan *p = plan_build(s.g, &w->dev->target, &co, &d);
    if (!p)
        fail_with(s.g, w->seed, "no plan", d.text);
    struct executable *e = executable_new(p, w->dev, &d);
    if (!e)
        fail_with(s.g, w->seed, "no code", d.text);
    for (enum fill f = 0; f < (it->size == SIZE_37 ? FILL_COUNT : 1); f++) {
        if (!fill_exists(f, it->dtype)) {
            w->total.skipped[SKIP_VALUE]++;
            continue;
        }
        check_values(w, &s, it, f, e, true);
        check_values(w, &s, it, f, e, false);
        ++*runs;
    }
    executable_unref(e);
    graph_free(s.g);
}

// ---- items

static bool
is_refused(enum skip s)
{
    return s == SKIP_DTYPE || s == SKIP_NO_VALUE;
}

// The op says that it does not take this, and who it is.
static void
check_refusal(const struct item *it)
{
    struct subject s = {.g = graph_new("refused")};
    struct diag d = {0};
    ref in[OPERANDS_MOST];
    if (it->op == OP_iota) // has no operand whose dtype it could refuse
        return graph_free(s.g);
    for (uint32_t i = 0; i < it->call.nin; i++)
        in[i] = add_input(&s, it, &it->call.in[i]);
    ref r = graph_build(s.g, it->op, in, it->call.nin, it->call.attr, it->call.nattr, 0, &d);
    cr_assert(!r.i, "%s takes %s, form %u, size %s", op_name(it->op), dtype_name(it->dtype),
              it->form, size_name[it->size]);
    cr_assert(!strncmp(d.text, op_name(it->op), strlen(op_name(it->op))), "%s", d.text);
    graph_free(s.g);
}

// The short run takes every op with every dtype at size 37, and one in ten of the rest.
static bool
is_sampled(const struct sweep *w, const struct item *it)
{
    bool always = it->size == SIZE_37 && (it->form == 0 || it->hash % 4 == 0);
    return w->all || always || (it->hash >> 32) % 10 == 0;
}

static void
sweep_item(struct sweep *w, struct item *it)
{
    enum skip s = call_make(it->op, it->dtype, it->form, it->size, size_extent(it->size),
                            &it->call);
    uint64_t combinations = it->size == SIZE_37 ? 2 * FILL_COUNT : 2;
    if (is_refused(s))
        check_refusal(it);
    if (s == SKIP_NOT && !is_sampled(w, it))
        s = SKIP_SAMPLED;
    if (s != SKIP_NOT) {
        w->total.skipped[s] += combinations;
        return;
    }
    check_subject(w, op_alone(it), it, &w->total.alone);
    check_subject(w, op_fused(it), it, &w->total.fused);
}

static void
sweep_op(struct sweep *w, uint16_t op, uint8_t first, uint8_t end)
{
    enum { COMBINATIONS = 2 * (SIZE_COUNT - 1 + FILL_COUNT) };
    if (op_is(op, OPK_BODY) || op_is(op, OPK_LEAF)) {
        w->total.skipped[op_is(op, OPK_BODY) ? SKIP_BODY_ONLY : SKIP_LEAF] +=
            (uint64_t)(end - first) * COMBINATIONS;
        return;
    }
    cr_assert(call_forms(op), "%s: tests/support/op_cases.c has no form of it", op_name(op));
    for (uint8_t dtype = first; dtype < end; dtype++)
        for (uint32_t form = 0; form < call_forms(op); form++)
            for (enum size_case size = 0; size < SIZE_COUNT; size++) {
                struct item it = {.op = op, .dtype = dtype, .form = form, .size = size};
                it.hash = hash_mix(hash_mix(w->seed, op * 64u + dtype), form * 64u + size);
                sweep_item(w, &it);
            }
}

static void
print_report(const struct sweep *w, const char *words)
{
    const struct report *r = &w->total;
    struct own_counts c = own_device_counts(w->dev);
    printf("%s: %" PRIu64 " runs alone, %" PRIu64 " fused; elements: %" PRIu64
           " bit for bit, %" PRIu64 " within a bound, %" PRIu64 " unbounded; %" PRIu64
           " kernels compiled in %.1f s\n",
           words, r->alone, r->fused, r->compared.exact, r->compared.bounded,
           r->compared.anything, c.compiles, c.compile_us * 1e-6);
    for (enum skip s = 1; s < SKIP_COUNT; s++)
        if (r->skipped[s])
            printf("    not run: %8" PRIu64 "  %s\n", r->skipped[s], skip_words[s]);
}

// Ops of the kinds in the mask, with dtypes first … end - 1.
static void
sweep_kinds(const char *words, uint32_t kinds, uint8_t first, uint8_t end)
{
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    const char *all = getenv("FUSEC_SWEEP");
    struct sweep w = {.seed = seed_first(), .all = all && !strcmp(all, "all")};
    w.dev = own_device_open((struct own_options){.pieces = 3}, &d);
    cr_assert(w.dev, "%s", d.text);
    for (uint16_t op = 1; op < OP_COUNT; op++)
        if (kinds >> op_table[op].kind & 1)
            sweep_op(&w, op, first, end);
    print_report(&w, words);
    device_close(w.dev);
    cr_assert_gt(w.total.alone, 0);
    cr_assert_gt(w.total.fused, 0);
}

_Static_assert(DT_f64 == 1 && DT_bf16 == 4 && DT_i8 == 5, "floats come first");
enum { OF_BODIES = 1 << OPK_BODY | 1 << OPK_LEAF };

Test(sweep, elementwise_f64_f32)
{
    sweep_kinds("elementwise, f64 and f32", 1 << OPK_ELEM, DT_f64, DT_f16);
}
Test(sweep, elementwise_f16_bf16)
{
    sweep_kinds("elementwise, f16 and bf16", 1 << OPK_ELEM, DT_f16, DT_i8);
}
Test(sweep, elementwise_integers)
{
    sweep_kinds("elementwise, integers and bool", 1 << OPK_ELEM, DT_i8, DT_COUNT);
}
Test(sweep, reductions)
{
    sweep_kinds("reductions", 1 << OPK_REDUCE | OF_BODIES, DT_f64, DT_COUNT);
}
Test(sweep, views)
{
    sweep_kinds("views", 1 << OPK_VIEW, DT_f64, DT_COUNT);
}
Test(sweep, composites)
{
    sweep_kinds("composites", 1 << OPK_COMPOSITE, DT_f64, DT_COUNT);
}
Test(sweep, all_other_kinds) // indexing, contraction
{
    uint32_t done = 1 << OPK_ELEM | 1 << OPK_REDUCE | 1 << OPK_VIEW | 1 << OPK_COMPOSITE;
    sweep_kinds("indexing, contraction and other kinds", ~(done | OF_BODIES | 1 << OPK_NONE),
                DT_f64, DT_COUNT);
}

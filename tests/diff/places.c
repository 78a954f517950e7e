// places.c: arrays that share a place in a plan's arena. Where lives overlap, one array has
// taken the place of another that dies in the kernel that writes it. That is right if each
// element is read at the very points that write it, and before. Here every point of such a
// kernel is gone through and the order of its reads and writes compared, as the loops of
// ir/kernel.h have it at worst: values of a row may be loaded again until the row is done,
// elements in every stage, updates of a scatter after what they join. Small axes are where
// accesses that differ elsewhere are one and the same.
#include "tests/support/check_ways.h"
#include "tests/support/graph_any.h"
#include "tests/support/graph_gen.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"
#include "ir/text.h"
#include "passes/plan.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ELEMENTS = 1 << 16 };

struct touched { // an element: by which point it is written, when; when it was read last
    int64_t by, written, read;
};

struct check {
    const struct plan *plan;
    const struct launch *l;
    uint32_t in, out; // plan buffers
    struct touched *element;
    char *words; // 200 bytes
};

static bool
wrong(struct check *c, const char *what, int64_t element)
{
    snprintf(c->words, 200, "%s: array %u in the place of %u: %s (element %lld)",
             c->l->kernel.name, c->out, c->in, what, (long long)element);
    return false;
}

static int64_t
at_point(const struct kernel *k, const struct access *a, const int64_t *axis)
{
    int64_t at = a->base;
    for (uint32_t i = 0; i < k->naxis; i++)
        at += a->stride[i] * axis[i];
    return at;
}

// Whether a scatter's index or updates need instruction `inst`.
static bool
is_of_updates(const struct kernel *k, uint32_t inst)
{
    bool *needs = xcalloc(k->inst.n, 1); // inst
    needs[inst] = true;
    for (uint32_t i = inst + 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        needs[i] = needs[x->a] || needs[x->b] || needs[x->c];
    }
    bool is = needs[k->scatter.index] || needs[k->acc.at[k->scatter.acc].value];
    xfree(needs);
    return is;
}

// Times within a unit (a point of P where there is R, else one of the domain): of a load the
// latest, of a store the earliest.
static int64_t
load_time(const struct kernel *k, uint32_t inst, int64_t element)
{
    uint8_t level = k->inst.at[inst].level;
    int64_t row = 2 * kernel_points(k, AXIS_R) + 2;
    switch (k->cls) {
    case CLASS_POINTWISE:
        return 0;
    case CLASS_SCATTER:
        return is_of_updates(k, inst) ? INT64_MAX : 0;
    case CLASS_ROW:
    case CLASS_SCAN:
        return level == LEVEL_ELEM ? (k->nstage - 1) * row + 2 * element
               : level == LEVEL_ROW ? k->nstage * row
                                    : INT64_MAX;
    default:
        return INT64_MAX;
    }
}

static int64_t
store_time(const struct kernel *k, const struct store *s, int64_t element)
{
    int64_t row = 2 * kernel_points(k, AXIS_R) + 2;
    if (k->cls == CLASS_POINTWISE || k->cls == CLASS_SCATTER)
        return 1;
    return s->level == LEVEL_ELEM ? s->stage * row + 2 * element + 1 : s->stage * row - 1;
}

static bool
check_stores(struct check *c, const int64_t *axis, int64_t unit, int64_t element)
{
    const struct kernel *k = &c->l->kernel;
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct store *s = &k->store.at[i];
        const struct access *a = &k->access.at[s->access];
        bool once = s->level != LEVEL_ELEM && k->cls != CLASS_POINTWISE && k->nred;
        if (c->l->buffer[a->buffer] != c->out || (once && element))
            continue;
        int64_t at = at_point(k, a, axis);
        struct touched *t = &c->element[at];
        if (t->by >= 0)
            return wrong(c, "written at two points", at);
        *t = (struct touched){unit, store_time(k, s, element), t->read};
    }
    return true;
}

static bool
check_loads(struct check *c, const int64_t *axis, int64_t unit, int64_t element)
{
    const struct kernel *k = &c->l->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        if (x->op != OP_load || c->l->buffer[k->access.at[x->aux].buffer] != c->in)
            continue;
        if (x->a)
            return wrong(c, "read where data say", 0);
        int64_t at = at_point(k, &k->access.at[x->aux], axis);
        if (at < 0 || at >= ELEMENTS)
            continue; // beside the array: masked
        if (c->element[at].by != unit)
            return wrong(c, "read and written by different units", at);
        if (load_time(k, i, element) >= c->element[at].written)
            return wrong(c, "written before it is read", at);
    }
    return true;
}

typedef bool visit(struct check *c, const int64_t *axis, int64_t unit, int64_t element);

static bool
each_point(struct check *c, visit *v)
{
    const struct kernel *k = &c->l->kernel;
    int64_t axis[MAX_AXES] = {0}, inner = kernel_points(k, AXIS_R);
    int64_t points = kernel_points(k, AXIS_P) * inner;
    for (int64_t p = 0; p < points; p++) {
        if (!v(c, axis, p / inner, p % inner))
            return false;
        for (uint32_t i = k->naxis; i-- > 0 && ++axis[i] == k->axis[i].extent;)
            axis[i] = 0;
    }
    return true;
}

static bool
check_pair(struct check *c, uint64_t *shared)
{
    const struct plan_buffer *in = &c->plan->buffer.at[c->in], *out = &c->plan->buffer.at[c->out];
    const struct kernel *k = &c->l->kernel;
    if (in->offset != out->offset || in->bytes != out->bytes)
        return wrong(c, "they overlap", 0);
    if (dtype_size(in->dtype) != dtype_size(out->dtype))
        return wrong(c, "their elements differ in size", 0);
    c->element = xcalloc(ELEMENTS, sizeof *c->element);
    for (int64_t i = 0; i < ELEMENTS; i++)
        c->element[i].by = -1;
    bool ok = in->bytes >= ELEMENTS || (each_point(c, check_stores) && each_point(c, check_loads));
    xfree(c->element);
    shared[k->cls]++;
    return ok;
}

// The end of an array's life: in a chain its blocks live until all blocks are done.
static uint32_t
end_of(const struct plan *p, const struct plan_buffer *b)
{
    for (uint32_t i = 0; i < p->chain.n; i++)
        if (b->last >= p->chain.at[i].first && b->last < p->chain.at[i].first + p->chain.at[i].n &&
            b->first < p->chain.at[i].first)
            return p->chain.at[i].first + p->chain.at[i].n - 1;
    return b->last;
}

// All pairs of arrays that lie over each other. shared: per class, how many took another's place.
static bool
check_places(const struct plan *p, uint64_t *shared, char *words)
{
    for (uint32_t i = 0; i < p->buffer.n; i++)
        for (uint32_t j = 0; j < p->buffer.n; j++) {
            const struct plan_buffer *a = &p->buffer.at[i], *b = &p->buffer.at[j];
            bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            bool later = b->first > end_of(p, a) || a->first > end_of(p, b);
            if (i == j || a->place != PLACE_ARENA || b->place != PLACE_ARENA || apart || later ||
                a->first > b->first)
                continue;
            struct check c = {.plan = p, .l = &p->launch.at[b->first], .in = i, .out = j,
                              .words = words};
            if (a->last != b->first || a->first == b->first)
                return wrong(&c, "both are alive", 0);
            if (!check_pair(&c, shared))
                return false;
        }
    return true;
}

static void
check_graph(const struct graph *g, const struct target *t, uint64_t seed, uint64_t *shared)
{
    struct diag d = {0};
    char words[200];
    struct plan *p = plan_build(g, t, NULL, &d);
    cr_assert(p, "%s", d.text);
    if (!check_places(p, shared, words))
        fail_with(g, seed, "places", words);
    plan_free(p);
}

// ---- graphs by hand: one a class, and all that once went wrong

struct example {
    const char *what, *text;
    uint8_t cls;     // of the kernel in question
    bool shares;     // whether an array takes another's place in such a kernel
};

static const struct example examples[] = {
    {"pointwise",
     "%s = scatter_along %x0, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "%b = tan %s\nreturn matmul %b, %x2",
     CLASS_POINTWISE, true},
    {"two elements of one place",
     "%s = scatter_along %x0, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "%b = tan (add %s, (flip %s {axes = [0]}))\nreturn matmul %b, %x2",
     CLASS_POINTWISE, false},
    {"row",
     "%a = matmul %x0, %x2\n%b = softmax %a {axis = 1}\nreturn matmul %b, %x2",
     CLASS_ROW, true},
    {"row, two results of two operands",
     "%a = matmul %x0, %x2\n%c = softmax %a {axis = 1}\n"
     "%b = scatter_along %x0, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "%d = tan (mul %b, %c)\nreturn (matmul %c, %x2), (matmul %d, %x2)",
     CLASS_ROW, true},
    {"scan",
     "%a = matmul %x0, %x2\n%b = cumsum %a {axis = 1}\nreturn matmul %b, %x2",
     CLASS_SCAN, true},
    {"scan, two results of two operands",
     "%a = matmul %x0, %x2\n%c = cumsum %a {axis = 1}\n"
     "%b = scatter_along %x0, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "%d = tan (mul %b, %c)\nreturn (matmul %c, %x2), (matmul %d, %x2)",
     CLASS_SCAN, true},
    {"scan of columns",
     "%a = matmul %x0, %x2\n%b = cumsum %a {axis = 0}\nreturn matmul %b, %x2",
     CLASS_SCAN, true},
    {"scatter: its start",
     "%a = matmul %x0, %x2\n"
     "%b = scatter_along %a, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "return matmul %b, %x2",
     CLASS_SCATTER, true},
    {"scatter: its updates",
     "%a = matmul %x0, %x2\n"
     "%b = scatter_along %x0, (argsort %x1 {axis = 1}), %a {axis = 1}\n"
     "return matmul %b, %x2",
     CLASS_SCATTER, false},
    {"scatter: its index",
     "%b = scatter_along_add %x0, (argsort %x1 {axis = 1}), %x1 {axis = 1}\n"
     "return matmul %b, %x2",
     CLASS_SCATTER, false},
    {"scatter: start and updates are one array",
     "%a = matmul %x0, %x2\n"
     "%b = scatter_along_add %a, (argsort %x1 {axis = 1}), %a {axis = 1}\n"
     "return matmul %b, %x2",
     CLASS_SCATTER, false},
    {"column",
     "%a = matmul %x0, %x2\n%b = softmax %a {axis = 0}\nreturn matmul %b, %x2",
     CLASS_COLUMN, false},
    {"order",
     "%a = matmul %x0, %x2\n%b = sort %a {axis = 1}\nreturn matmul %b, %x2",
     CLASS_SORT, false},
    {"contraction",
     "%a = matmul %x0, %x2\nreturn matmul (matmul %a, %x2), %x2",
     CLASS_CONTRACT, false},
};

// With a large array beside it, or little would be fused: no plan needs more memory than eager
// does.
static struct graph *
example_graph(const struct example *e, const char *dtype, int64_t m, int64_t n)
{
    char text[700];
    struct diag d = {0};
    int rows = (int)m, columns = (int)n;
    snprintf(text, sizeof text,
             "graph @f(%%x0: %s[%d, %d], %%x1: %s[%d, %d], %%x2: %s[%d, %d], "
             "%%x3: i64[120, 200]) {\n"
             "%s, sum (sort %%x3 {axis = 0}) {axes = [0, 1], keepdims = false}\n}\n", dtype, rows,
             columns, dtype, rows, columns, dtype, columns, columns, e->text);
    struct graph *g = graph_parse(text, strlen(text), e->what, &d);
    cr_assert(g, "%s\n%s", d.text, text);
    return g;
}

Test(places, of_each_class)
{
    struct target t = test_target();
    for (uint32_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *e = &examples[i];
        uint64_t shared[CLASS_COUNT] = {0};
        struct graph *g = example_graph(e, "f64", 40, 40);
        check_graph(g, &t, i, shared);
        cr_assert_eq(shared[e->cls] > 0, e->shares, "%s: %llu", e->what,
                     (unsigned long long)shared[e->cls]);
        graph_free(g);
    }
}

Test(places, results_at_small_axes)
{
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct target t = test_target();
    struct diag d = {0};
    struct device *dev = own_device_open((struct own_options){.pieces = 3}, &d);
    cr_assert(dev, "%s", d.text);
    struct outcome told = {0};
    for (uint32_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (int64_t m = 1; m <= 3; m++)
            for (int64_t n = 1; n <= 3; n++)
                for (uint32_t half = 0; half < 2; half++) {
                    uint64_t shared[CLASS_COUNT] = {0};
                    struct graph *g = example_graph(&examples[i], half ? "f64" : "f32", m, n);
                    check_graph(g, &t, i, shared);
                    if (!check_ways(g, i + 1, dev, &told))
                        fail_with(g, i + 1, examples[i].what, told.words);
                    graph_free(g);
                }
    device_close(dev);
}

// ---- random graphs

Test(places, of_random_graphs)
{
    static const int64_t extent[] = {1, 2, 3, 17};
    struct target t = test_target();
    uint64_t shared[CLASS_COUNT] = {0};
    uint32_t n = seed_count(1200), first = seed_first();
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct any_options o = {.seed = seed, .n = extent[seed % 4], .ops = 16,
                                .tiny = seed % 4 < 3};
        struct graph *g = any_graph(&o);
        check_graph(g, &t, seed, shared);
        graph_free(g);
    }
    for (uint32_t c = 0; c < CLASS_COUNT; c++)
        if (shared[c])
            printf("%s: %llu arrays in the place of others\n", kernel_class_name[c],
                   (unsigned long long)shared[c]);
    cr_assert(shared[CLASS_POINTWISE] && shared[CLASS_ROW] && shared[CLASS_SCAN]);
}

// run_plan.c: see run_plan.h. Input addresses in a plan are those of element 0.
#include "tests/support/run_plan.h"

#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/text.h"
#include "tests/support/graph_gen.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct target
test_target(void)
{
    return (struct target){.kind = DEVICE_CPU, .arch = "x86-64-v4", .units = 2, .vec_bytes = 64,
                           .l1 = 48 << 10, .l2 = 1 << 20, .llc = 32 << 20};
}

bool
graph_has_halves(const struct graph *g)
{
    bool any = false;
    for (uint32_t i = 1; i < g->node.n; i++)
        any |= dtype_is_half(g->node.at[i].dtype);
    return any;
}

size_t
output_bytes(const struct graph *g, uint32_t i)
{
    ref r = g->outputs.at[i].node;
    return (size_t)shape_count(g, graph_shape(g, r)) * dtype_size(graph_node(g, r)->dtype);
}

static bool
interpret_plan(const struct plan *p, void *const *in, void *const *out, struct diag *d)
{
    char *arena = xcalloc((size_t)p->arena_bytes + 64, 1);
    memset(arena, 0xa5, (size_t)p->arena_bytes);
    bool ok = true;
    for (uint32_t i = 0; i < p->launch.n && ok; i++) {
        const struct launch *l = &p->launch.at[i];
        void **ptr = xcalloc(l->kernel.buffers.n + 1, sizeof *ptr);
        for (uint32_t b = 0; b < l->kernel.buffers.n; b++) {
            const struct plan_buffer *pb = &p->buffer.at[l->buffer[b]];
            ptr[b] = pb->place == PLACE_INPUT    ? in[pb->index]
                     : pb->place == PLACE_OUTPUT ? out[pb->index]
                                                 : arena + pb->offset;
        }
        ok = kernel_verify(&l->kernel, d) &&
             interp_kernel(&l->kernel, ptr, 1 << 20, NULL, NULL, d);
        xfree(ptr);
    }
    xfree(arena);
    return ok;
}

// Small work stays on the caller's thread. Where a test asks for several, it is cut as finely as
// the class allows, so that what lies at the seams between threads is run at small sizes too.
static void
divide_scatter(const struct kernel *k, struct schedule *s)
{
    uint32_t np = k->naxis - k->nred, axis = k->scatter.axis;
    int64_t inner = axis + 1 < np ? k->axis[axis + 1].extent : 1, places = k->axis[axis].extent;
    int64_t blocks = places < 3 ? places : 3;
    s->chunk = s->vec;
    s->tile[0] = (uint16_t)blocks;
    s->units = blocks * ((inner + s->chunk - 1) / s->chunk);
    for (uint32_t a = 0; a < axis; a++)
        s->units *= k->axis[a].extent;
}

static void
divide_work(struct plan *p)
{
    for (uint32_t i = 0; i < p->launch.n; i++) {
        const struct kernel *k = &p->launch.at[i].kernel;
        struct schedule *s = &p->launch.at[i].sched;
        s->grain = 1;
        if (s->cls == CLASS_SCATTER && !s->finish_units)
            divide_scatter(k, s);
        if (s->cls != CLASS_POINTWISE || s->transpose || !k->naxis)
            continue;
        int64_t e = k->axis[k->naxis - 1].extent;
        s->chunk = (int64_t)s->vec * s->unroll;
        if (k->naxis > 1)
            s->tile[0] = 1; // rows a unit
        s->units = kernel_points(k, AXIS_P) / e * ((e + s->chunk - 1) / s->chunk);
    }
}

static bool
run_on_device(struct plan *p, struct device *dev, void *const *in, void *const *out,
              struct diag *d)
{
    if (dev->target.units > 1)
        divide_work(p);
    struct executable *e = executable_new(p, dev, d);
    if (!e)
        return false;
    bool ok = executable_run(e, in, out, d);
    executable_unref(e);
    return ok;
}

static bool
run_addresses(const struct graph *g, void *const *in, void *const *out, struct device *dev,
              const struct compile_options *o, struct diag *d)
{
    struct target t = dev ? dev->target : test_target();
    struct plan *p = plan_build(g, &t, o, d);
    if (!p)
        return false;
    if (dev)
        return run_on_device(p, dev, in, out, d);
    bool ok = interpret_plan(p, in, out, d);
    plan_free(p);
    return ok;
}

bool
run_fused(const struct graph *g, const struct tensor *in, void *const *out, struct device *dev,
          const struct compile_options *o, struct diag *d)
{
    void **ptr = xcalloc(g->inputs.n + 1, sizeof *ptr);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        ptr[i] = in[i].data;
    bool ok = run_addresses(g, ptr, out, dev, o, d);
    xfree(ptr);
    return ok;
}

struct graph *
graph_of_one_op(const struct graph *g, ref r)
{
    struct graph *one = graph_new_like(g);
    const struct node *n = graph_node(g, r);
    ref *in = xcalloc(n->nin + 1, sizeof *in);
    for (uint32_t k = 0; k < n->nin; k++) {
        ref x = node_in(g, n, k);
        const struct node *m = graph_node(g, x);
        if (m->op == OP_literal) {
            in[k] = graph_literal(one, m->dtype, (uint64_t)graph_attr(g, x)[0], 0);
            continue;
        }
        const int64_t *stride =
            m->op == OP_input ? g->inputs.at[graph_attr(g, x)[0]].stride : NULL;
        in[k] = graph_add_input(one, "", m->dtype, graph_shape(g, x), stride, 0);
    }
    graph_add_output(one, "", graph_copy(one, g, r, in));
    xfree(in);
    return one;
}

static bool
run_one(const struct graph *g, ref r, void *const *value, void *out, struct device *dev,
        const struct compile_options *o, struct diag *d)
{
    struct graph *one = graph_of_one_op(g, r);
    const struct node *n = graph_node(g, r);
    void **ptr = xcalloc(n->nin + 1, sizeof *ptr);
    uint32_t used = 0;
    for (uint32_t k = 0; k < n->nin; k++)
        if (graph_node(g, node_in(g, n, k))->op != OP_literal)
            ptr[used++] = value[node_in(g, n, k).i];
    bool ok = run_addresses(one, ptr, &out, dev, o, d);
    xfree(ptr);
    graph_free(one);
    return ok;
}

bool
run_eager(const struct graph *g, const struct tensor *in, void *const *out, struct device *dev,
          const struct compile_options *o, struct diag *d)
{
    void **value = xcalloc(g->node.n, sizeof *value);
    bool ok = true;
    for (uint32_t i = 1; i < g->node.n && ok; i++) {
        ref r = {i};
        const struct node *n = graph_node(g, r);
        if (n->op == OP_input) {
            value[i] = in[graph_attr(g, r)[0]].data;
            continue;
        }
        size_t bytes = (size_t)shape_count(g, graph_shape(g, r)) * dtype_size(n->dtype);
        value[i] = xcalloc(bytes + 1, 1);
        if (n->op == OP_literal) {
            uint64_t bits = (uint64_t)graph_attr(g, r)[0];
            memcpy(value[i], &bits, bytes);
        } else {
            ok = run_one(g, r, value, value[i], dev, o, d);
        }
    }
    for (uint32_t i = 0; i < g->outputs.n && ok; i++) {
        ref r = g->outputs.at[i].node;
        CHECK(graph_node(g, r)->op != OP_input, "an input as output is no op to run");
        memcpy(out[i], value[r.i], output_bytes(g, i));
    }
    for (uint32_t i = 1; i < g->node.n; i++)
        if (g->node.at[i].op != OP_input)
            xfree(value[i]);
    xfree(value);
    return ok;
}

bool
compare_outputs(const struct graph *g, void *const *a, void *const *b, struct tally *t,
                char *where)
{
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        uint8_t dtype = graph_node(g, g->outputs.at[i].node)->dtype;
        size_t size = dtype_size(dtype), n = output_bytes(g, i) / size;
        for (size_t k = 0; k < n; k++) {
            uint64_t x = scalar_load(dtype, (char *)a[i] + k * size);
            uint64_t y = scalar_load(dtype, (char *)b[i] + k * size);
            t->elements++;
            t->finite += !dtype_is_float(dtype) || isfinite(scalar_to_double(dtype, x));
            if (!same_bits(dtype, x, y)) {
                snprintf(where, 200, "output %u element %zu: %.17g (%#llx) and %.17g (%#llx)", i, k,
                         scalar_to_double(dtype, x), (unsigned long long)x,
                         scalar_to_double(dtype, y), (unsigned long long)y);
                return false;
            }
        }
    }
    return true;
}

void **
outputs_of(const struct graph *g)
{
    void **out = xcalloc(g->outputs.n + 1, sizeof *out);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        out[i] = xcalloc(output_bytes(g, i) + 1, 1);
    return out;
}

void
free_outputs(const struct graph *g, void **out)
{
    for (uint32_t i = 0; i < g->outputs.n; i++)
        xfree(out[i]);
    xfree(out);
}

void
fail_with(const struct graph *g, uint64_t seed, const char *what, const char *where)
{
    struct str s = {0};
    graph_print(g, &s);
    cr_assert(false, "seed %llu: %s: %s\n%s", (unsigned long long)seed, what, where, str_text(&s));
}

uint32_t
seed_count(uint32_t usual)
{
    const char *s = getenv("FUSEC_SEEDS");
    return s ? (uint32_t)strtoul(s, NULL, 10) : usual;
}

uint32_t
seed_first(void)
{
    const char *s = getenv("FUSEC_FIRST_SEED");
    return s ? (uint32_t)strtoul(s, NULL, 10) : 1;
}

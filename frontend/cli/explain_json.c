// explain_json.c: a plan for programs: one object, its keys always the same.
#include "frontend/cli/explain.h"
#include "frontend/cli/json.h"

#include "ir/text.h"

static void
add_ops(const struct plan *p, struct json *j) // as the user called them, views included
{
    op_fates f = {0};
    find_fates(p, &f);
    json_open(j, "ops", '[');
    for (uint32_t i = 0; i < f.n; i++) {
        const struct op_fate *o = &f.at[i];
        json_open(j, NULL, '{');
        json_text(j, "name", op_name(p->raw->node.at[o->node].op));
        json_int(j, "node", o->node);
        json_int(j, "bytes", o->bytes);
        json_bool(j, "never_stored", o->array && !o->stored);
        json_open(j, "kernels", '[');
        for (uint32_t k = 0; k < o->nkernel; k++)
            json_int(j, NULL, o->kernel[k]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    free_fates(&f);
}

static void
add_buffers(const struct plan *p, const struct launch *l, uint8_t role, const char *key,
            struct json *j)
{
    char name[64];
    uint32_t n, *buffer = launch_buffers(l, role, &n);
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_text(j, NULL, buffer_name(p, l->buffer[buffer[i]], name));
    json_close(j, ']');
    xfree(buffer);
}

static void
add_kernel(const struct plan *p, const struct launch *l, struct json *j)
{
    struct str words = {0};
    class_words(l, &words);
    json_open(j, NULL, '{');
    json_text(j, "name", l->kernel.name);
    json_text(j, "class", kernel_class_name[l->kernel.cls]);
    json_text(j, "schedule", str_text(&words));
    json_open(j, "ops", '[');
    for (uint32_t i = 0; i < l->nop; i++)
        json_text(j, NULL, op_name(l->op[i]));
    json_close(j, ']');
    add_buffers(p, l, BUF_IN, "reads", j);
    add_buffers(p, l, BUF_OUT, "writes", j);
    json_int(j, "bytes_read", l->bytes_read);
    json_int(j, "bytes_written", l->bytes_written);
    json_int(j, "scratch_bytes", launch_scratch(l));
    json_close(j, '}');
    str_free(&words);
}

static void
add_boundary(const struct boundary *b, struct json *j)
{
    json_open(j, NULL, '{');
    json_int(j, "from", b->from);
    json_int(j, "to", b->to);
    json_text(j, "node", b->node);
    json_text(j, "reason", reason_name[b->reason]);
    json_text(j, "words", reason_doc[b->reason]);
    json_int(j, "bytes", b->bytes);
    json_close(j, '}');
}

static void
add_chain(const struct chain *c, struct json *j)
{
    json_open(j, NULL, '{');
    json_int(j, "first", c->first);
    json_int(j, "kernels", c->n);
    json_int(j, "blocks", c->blocks);
    json_int(j, "local_bytes", c->local_bytes);
    json_close(j, '}');
}

static void
add_guard(const struct plan *p, uint32_t input, struct json *j)
{
    const struct graph *g = p->raw;
    const struct graph_input *in = &g->inputs.at[input];
    const struct shape *s = graph_shape(g, in->node);
    json_open(j, NULL, '{');
    json_text(j, "input", in->name);
    json_text(j, "dtype", dtype_name(graph_node(g, in->node)->dtype));
    json_int(j, "rank", s->rank);
    json_open(j, "dims", '[');
    for (uint32_t i = 0; i < s->rank; i++)
        json_int(j, NULL, dim_of(g, s, i));
    json_close(j, ']');
    json_text(j, "layout", in->dense ? "row-major" : "strided");
    json_open(j, "strides", '[');
    for (uint32_t i = 0; i < s->rank && !in->dense; i++)
        json_int(j, NULL, in->stride[i]);
    json_close(j, ']');
    json_int(j, "alignment", (int64_t)1 << in->align_log2);
    json_close(j, '}');
}

void
explain_json(const struct plan *p, struct str *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "graph", p->raw->name);
    add_ops(p, &j);
    json_open(&j, "kernels", '[');
    for (uint32_t i = 0; i < p->launch.n; i++)
        add_kernel(p, &p->launch.at[i], &j);
    json_close(&j, ']');
    json_int(&j, "transfers", plan_transfers(p));
    json_int(&j, "traffic_bytes", p->traffic_bytes);
    json_int(&j, "traffic_elements", p->traffic_elements);
    json_int(&j, "minimum_bytes", p->minimum_bytes);
    json_int(&j, "peak_bytes", p->peak_bytes);
    json_int(&j, "eager_kernels", p->eager_kernels);
    json_int(&j, "eager_transfers", eager_transfers(p));
    json_int(&j, "eager_bytes", p->eager_bytes);
    json_int(&j, "eager_peak_bytes", p->eager_peak_bytes);
    json_open(&j, "boundaries", '[');
    for (uint32_t i = 0; i < p->boundary.n; i++)
        add_boundary(&p->boundary.at[i], &j);
    json_close(&j, ']');
    json_open(&j, "chains", '[');
    for (uint32_t i = 0; i < p->chain.n; i++)
        add_chain(&p->chain.at[i], &j);
    json_close(&j, ']');
    json_open(&j, "guards", '[');
    for (uint32_t i = 0; i < p->raw->inputs.n; i++)
        add_guard(p, i, &j);
    json_close(&j, ']');
    json_close(&j, '}');
    str_addc(out, '\n');
}

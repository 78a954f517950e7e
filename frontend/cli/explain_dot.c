// explain_dot.c: a plan as a drawing for Graphviz: a cluster a kernel with the instructions of its
// body, boxes for arrays, and what flows between them.
#include "frontend/cli/explain.h"

#include "ir/lex.h"
#include "ir/literal.h"

#include <inttypes.h>

static void
add_arrays(const struct plan *p, struct str *out)
{
    char name[64];
    static const char *const style[] = {[PLACE_INPUT] = "solid", [PLACE_OUTPUT] = "bold",
                                        [PLACE_ARENA] = "dashed"};
    for (uint32_t i = 0; i < p->buffer.n; i++) {
        const struct plan_buffer *b = &p->buffer.at[i];
        struct str label = {0};
        str_printf(&label, "%s: %s, %" PRId64 " bytes", buffer_name(p, i, name),
                   dtype_name(b->dtype), b->bytes);
        str_printf(out, "  b%" PRIu32 " [shape=box, style=%s, label=", i, style[b->place]);
        lex_quote(str_text(&label), out);
        str_add(out, "];\n");
        str_free(&label);
    }
}

// Instructions that only stand between a load and what it reads are left out of no drawing: a body
// is small before its math functions are expanded.
static void
add_instructions(const struct launch *l, uint32_t number, struct str *out)
{
    const struct kernel *k = &l->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        str_printf(out, "    k%" PRIu32 "i%" PRIu32 " [label=\"", number, i);
        if (x->op == OP_literal)
            literal_print(x->dtype, x->bits, out);
        else
            str_add(out, op_name(x->op));
        str_printf(out, "\\n%s\"];\n", dtype_name(x->dtype));
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        str_printf(out, "    k%" PRIu32 "a%" PRIu32 " [shape=hexagon, label=\"%s\"];\n", number, i,
                   op_name(k->acc.at[i].op));
}

static void
add_edges(const struct launch *l, uint32_t number, struct str *out)
{
    const struct kernel *k = &l->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        const uint32_t operand[] = {x->a, x->b, x->c};
        for (int o = 0; o < 3; o++)
            if (operand[o])
                str_printf(out, "  k%" PRIu32 "i%" PRIu32 " -> k%" PRIu32 "i%" PRIu32 ";\n", number,
                           operand[o], number, i);
        if (x->op == OP_load)
            str_printf(out, "  b%" PRIu32 " -> k%" PRIu32 "i%" PRIu32 ";\n",
                       l->buffer[k->access.at[x->aux].buffer], number, i);
        else if (x->op == OP_result)
            str_printf(out, "  k%" PRIu32 "a%" PRIu32 " -> k%" PRIu32 "i%" PRIu32 ";\n", number,
                       x->aux, number, i);
    }
    for (uint32_t i = 0; i < k->acc.n; i++) {
        bool product = k->cls == CLASS_CONTRACT && k->contraction.acc == i;
        uint32_t from[2] = {product ? k->contraction.a : k->acc.at[i].value,
                            product ? k->contraction.b : 0};
        for (int o = 0; o < 2; o++)
            if (from[o])
                str_printf(out, "  k%" PRIu32 "i%" PRIu32 " -> k%" PRIu32 "a%" PRIu32 ";\n", number,
                           from[o], number, i);
    }
    for (uint32_t i = 0; i < k->store.n; i++)
        str_printf(out, "  k%" PRIu32 "i%" PRIu32 " -> b%" PRIu32 ";\n", number,
                   k->store.at[i].value, l->buffer[k->access.at[k->store.at[i].access].buffer]);
}

void
explain_dot(const struct plan *p, struct str *out)
{
    str_add(out, "digraph ");
    lex_quote(p->raw->name, out);
    str_add(out, " {\n  node [fontname=\"sans-serif\"];\n");
    add_arrays(p, out);
    for (uint32_t i = 0; i < p->launch.n; i++) {
        const struct launch *l = &p->launch.at[i];
        str_printf(out, "  subgraph cluster_%" PRIu32 " {\n    label=\"%s (%s)\";\n", i,
                   l->kernel.name, kernel_class_name[l->kernel.cls]);
        add_instructions(l, i, out);
        str_add(out, "  }\n");
    }
    for (uint32_t i = 0; i < p->launch.n; i++)
        add_edges(&p->launch.at[i], i, out);
    str_add(out, "}\n");
}

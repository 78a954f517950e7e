// explain_text.c: a plan for people: the graph that was fused, what became of eager's kernels and
// transfers, each kernel, memory, why kernels are apart, and what the plan is guarded on.
#include "frontend/cli/cli.h"
#include "frontend/cli/explain.h"

#include "ir/text.h"

#include <inttypes.h>
#include <string.h>

static const char bold[] = "\033[1m", plain[] = "\033[0m";

struct page {
    const struct plan *p;
    struct str *out;
    bool colour;
};

static void
heading(struct page *g, const char *text)
{
    str_printf(g->out, "%s%s%s\n", g->colour ? bold : "", text, g->colour ? plain : "");
}

// "a 16.8 MB, b 4.00 kB" of the buffers in one role.
static void
print_buffers(struct page *g, const struct launch *l, uint8_t role, const char *label)
{
    char name[64], bytes[32];
    uint32_t n, *buffer = launch_buffers(l, role, &n);
    str_printf(g->out, "  %-10s", label);
    for (uint32_t i = 0; i < n; i++)
        str_printf(g->out, "%s%s %s", i ? ", " : "", buffer_name(g->p, l->buffer[buffer[i]], name),
                   bytes_text(l->buffer_bytes[buffer[i]], bytes));
    str_add(g->out, n ? "\n" : "nothing\n");
    xfree(buffer);
}

// "mul, add 1000 times": an unrolled loop's ops, more than three in a row, are counted.
static void
print_ops(struct page *g, const struct launch *l)
{
    enum { LISTED = 3 };
    str_add(g->out, "  computes  ");
    for (uint32_t i = 0, n; i < l->nop; i += n) {
        for (n = 1; i + n < l->nop && l->op[i + n] == l->op[i];)
            n++;
        if (n > LISTED)
            str_printf(g->out, "%s%s %" PRIu32 " times", i ? ", " : "", op_name(l->op[i]), n);
        else
            for (uint32_t k = 0; k < n; k++)
                str_printf(g->out, "%s%s", i + k ? ", " : "", op_name(l->op[i]));
    }
    str_add(g->out, l->nop ? "\n" : "a copy\n");
}

static void
print_launch(struct page *g, uint32_t number)
{
    const struct launch *l = &g->p->launch.at[number];
    char read[32], written[32], scratch[32], shared[32];
    str_printf(g->out, "%skernel %" PRIu32 ": %s%s\n", g->colour ? bold : "", number,
               l->kernel.name, g->colour ? plain : "");
    print_ops(g, l);
    str_add(g->out, "  by        ");
    class_words(l, g->out);
    str_add(g->out, "\n");
    print_buffers(g, l, BUF_IN, "reads");
    print_buffers(g, l, BUF_OUT, "writes");
    str_printf(g->out, "  bytes     %s read, %s written\n", bytes_text(l->bytes_read, read),
               bytes_text(l->bytes_written, written));
    str_add(g->out, "  scratch   ");
    if (launch_scratch(l))
        str_printf(g->out, "%s a thread, %s shared\n", bytes_text(l->sched.scratch_bytes, scratch),
                   bytes_text(l->sched.shared_scratch_bytes, shared));
    else
        str_add(g->out, "none but registers\n");
}

static void
print_share(struct page *g, const char *whose, int64_t bytes, int64_t other)
{
    char text[32];
    if (other)
        str_printf(g->out, ", %.2f times %s %s", (double)bytes / (double)other, whose,
                   bytes_text(other, text));
}

// Which of eager execution's arrays between ops do not exist here.
static void
print_between(struct page *g)
{
    enum { SHOWN = 12 };
    const struct plan *p = g->p;
    op_fates f = {0};
    char text[64];
    uint32_t n = 0;
    int64_t bytes = 0;
    find_fates(p, &f);
    str_add(g->out, "  never stored: ");
    for (uint32_t i = 0; i < f.n; i++) {
        const struct op_fate *o = &f.at[i];
        if (!o->array || o->stored)
            continue;
        if (n++ < SHOWN)
            str_printf(g->out, "%s%s@%" PRIu32 " (%s)", n > 1 ? ", " : "",
                       op_name(p->raw->node.at[o->node].op), o->node, bytes_text(o->bytes, text));
        bytes += o->bytes;
    }
    if (n > SHOWN)
        str_printf(g->out, " and %" PRIu32 " more", n - SHOWN);
    if (n)
        str_printf(g->out, ": %s that eager execution stores", bytes_text(bytes, text));
    else
        str_add(g->out, "nothing that eager execution stores");
    str_addc(g->out, '\n');
    free_fates(&f);
}

static void
print_traffic(struct page *g)
{
    const struct plan *p = g->p;
    char a[32], b[32];
    heading(g, "memory");
    str_printf(g->out, "  traffic: %s", bytes_text(p->traffic_bytes, a));
    print_share(g, "the least possible", p->traffic_bytes, p->minimum_bytes);
    print_share(g, "eager's", p->traffic_bytes, p->eager_bytes);
    int64_t saved = p->eager_bytes - p->traffic_bytes;
    str_printf(g->out, ": %s %s\n", bytes_text(saved < 0 ? -saved : saved, a),
               saved < 0 ? "added" : "saved");
    print_between(g);
    str_printf(g->out, "  peak: %s beside the inputs, eager %s\n", bytes_text(p->peak_bytes, a),
               bytes_text(p->eager_peak_bytes, b));
}

static void
print_chains(struct page *g)
{
    char bytes[32];
    for (uint32_t i = 0; i < g->p->chain.n; i++) {
        const struct chain *c = &g->p->chain.at[i];
        str_printf(g->out, "  together: kernels %" PRIu32 " to %" PRIu32 " run over one of %" PRId64
                           " blocks at a time", c->first, c->first + c->n - 1, c->blocks);
        if (c->local_bytes)
            str_printf(g->out, "; a thread keeps one block of what they hand on, %s",
                       bytes_text(c->local_bytes, bytes));
        str_addc(g->out, '\n');
    }
}

static void
print_boundaries(struct page *g)
{
    const struct plan *p = g->p;
    char bytes[32];
    heading(g, "boundaries");
    for (uint32_t i = 0; i < p->boundary.n; i++) {
        const struct boundary *b = &p->boundary.at[i];
        str_printf(g->out, "  %s, kernel %" PRIu32 " -> kernel %" PRIu32 ", %s: %s%s%s\n", b->node,
                   b->from, b->to, bytes_text(b->bytes, bytes), reason_name[b->reason],
                   *reason_doc[b->reason] ? ": " : "", reason_doc[b->reason]);
    }
    if (!p->boundary.n)
        str_add(g->out, "  none: no kernel waits for another's result\n");
    print_chains(g);
}

static void
print_guards(struct page *g)
{
    heading(g, "guards");
    for (uint32_t i = 0; i < g->p->raw->inputs.n; i++) {
        str_printf(g->out, "  %s: ", g->p->raw->inputs.at[i].name);
        guard_words(g->p, i, g->out);
        str_addc(g->out, '\n');
    }
    if (!g->p->raw->inputs.n)
        str_add(g->out, "  none: the graph has no inputs\n");
}

void
explain_text(const struct plan *p, bool colour, struct str *out)
{
    struct page g = {p, out, colour};
    char eager[64], transfers[64], mine[64];
    heading(&g, "fused graph");
    graph_print(p->canonical, out);
    str_printf(out, "\n%s%s, %s -> %s, %" PRIu32 "%s\n\n", colour ? bold : "",
               plural(p->eager_kernels, "kernel", "kernels", eager),
               plural(eager_transfers(p), "array transfer", "array transfers", transfers),
               plural(p->launch.n, "kernel", "kernels", mine), plan_transfers(p),
               colour ? plain : "");
    for (uint32_t i = 0; i < p->launch.n; i++) {
        print_launch(&g, i);
        str_addc(out, '\n');
    }
    print_traffic(&g);
    str_addc(out, '\n');
    print_boundaries(&g);
    str_addc(out, '\n');
    print_guards(&g);
}

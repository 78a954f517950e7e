// kinds.c: the table of golden kinds. A new one is a function and a row. What depends on a device
// is made for one that does not exist, the same on every machine.
#include "tests/golden/kinds.h"

#include "frontend/cli/explain.h"
#include "ir/text.h"
#include "passes/pass.h"

#include <string.h>

static const struct target nowhere = {
    .kind = DEVICE_CPU, .arch = "none", .units = 8, .vec_bytes = 64, .l1 = 32 << 10,
    .l2 = 1 << 20, .llc = 32 << 20,
};

static struct plan *
plan_for_nowhere(const struct graph *g, struct str *out)
{
    struct diag d = {0};
    struct plan *p = plan_build(g, &nowhere, NULL, &d);
    if (!p)
        str_printf(out, "%s\n", d.text);
    return p;
}

static void
explain(const struct graph *g, struct str *out)
{
    struct plan *p = plan_for_nowhere(g, out);
    if (p)
        explain_text(p, false, out);
    plan_free(p);
}

static void
json(const struct graph *g, struct str *out)
{
    struct plan *p = plan_for_nowhere(g, out);
    if (p)
        explain_json(p, out);
    plan_free(p);
}

static void
dot(const struct graph *g, struct str *out)
{
    struct plan *p = plan_for_nowhere(g, out);
    if (p)
        explain_dot(p, out);
    plan_free(p);
}

// ---- passes: what one of them makes of the graph, and that a second run changes nothing

// A pass leaves nodes behind that no output needs; they are left out of the text.
static struct graph *
passed(const struct graph *g, pass_fn *pass, const struct compile_options *o)
{
    struct graph *all = pass(g, o), *live = pass_run(all, o, pass_copy);
    graph_free(all);
    return live;
}

static void
print_passed(const struct graph *g, pass_fn *pass, const struct compile_options *o, bool again,
             struct str *out)
{
    struct graph *once = passed(g, pass, o);
    graph_print(once, out);
    if (again) {
        struct graph *twice = passed(once, pass, o);
        struct str second = {0};
        graph_print(twice, &second);
        if (strcmp(str_text(&second), str_text(out)))
            str_printf(out, "not idempotent: a second run gives\n%s", str_text(&second));
        str_free(&second);
        graph_free(twice);
    }
    graph_free(once);
}

static void
canon(const struct graph *g, struct str *out)
{
    print_passed(g, pass_canon, &(struct compile_options){0}, true, out);
}

static void
rounding(const struct graph *g, struct str *out)
{
    print_passed(g, pass_rounding, &(struct compile_options){0}, false, out);
}

static void
strict(const struct graph *g, struct str *out)
{
    print_passed(g, pass_rounding, &(struct compile_options){.strict = true}, false, out);
}

static void
decompose(const struct graph *g, struct str *out)
{
    print_passed(g, pass_decompose, &(struct compile_options){0}, true, out);
}

static void
plan(const struct graph *g, struct str *out)
{
    struct plan *p = plan_for_nowhere(g, out);
    for (uint32_t i = 0; p && i < p->launch.n; i++)
        kernel_print(&p->launch.at[i].kernel, out);
    for (uint32_t i = 0; p && i < p->boundary.n; i++) {
        const struct boundary *b = &p->boundary.at[i];
        str_printf(out, "boundary %s: kernel %u -> %u, %lld bytes, %s\n", b->node, b->from, b->to,
                   (long long)b->bytes, reason_name[b->reason]);
    }
    plan_free(p);
}

const struct golden_kind golden_kinds[] = {
    {"print", graph_print},
    {"canon", canon},
    {"rounding", rounding},
    {"strict", strict},
    {"decompose", decompose},
    {"plan", plan},
    {"explain", explain},
    {"json", json},
    {"dot", dot},
};
const unsigned golden_nkinds = sizeof golden_kinds / sizeof *golden_kinds;

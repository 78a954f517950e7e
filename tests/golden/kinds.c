// kinds.c: the table of golden kinds. A new one is a function and a row. What depends on a device is
// made for one that does not exist, the same on every machine.
#include "tests/golden/kinds.h"

#include "frontend/cli/explain.h"
#include "ir/text.h"

static const struct target nowhere = {
    .kind = DEVICE_CPU, .arch = "none", .units = 8, .vec_bytes = 64, .l1 = 32 << 10,
    .l2 = 1 << 20, .llc = 32 << 20, .copy_gbps = 20, .launch_us = 1,
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

const struct golden_kind golden_kinds[] = {
    {"print", graph_print},
    {"explain", explain},
    {"json", json},
    {"dot", dot},
};
const unsigned golden_nkinds = sizeof golden_kinds / sizeof *golden_kinds;

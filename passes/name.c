// name.c: what a kernel is called, and which of the user's ops it computes. Both come from origins:
// an instruction's origin is a user call or a union of calls, which is walked with an own stack.
// Names depend on the plan alone: the ops in graph order, cut when long, and the launch's number.
#include "passes/fuse.h"

#include "ir/base/str.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(uint32_t) ids;

// The user calls behind an origin set, appended.
static void
flatten(const struct graph *g, uint32_t origin, ids *out)
{
    ids stack = {0};
    vec_push(&stack, origin);
    while (stack.n) {
        uint32_t i = stack.at[--stack.n];
        const struct origin *o = &g->origins.at[i];
        if (!i)
            continue;
        if (o->op) {
            vec_push(out, i);
        } else {
            vec_push(&stack, o->a);
            vec_push(&stack, o->b);
        }
    }
    vec_free(&stack);
}

static int
by_number(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

static ids
user_ops(const struct graph *g, const struct kernel *k)
{
    ids all = {0};
    uint32_t last = 0;
    for (uint32_t i = 1; i < k->inst.n + k->acc.n; i++) {
        uint32_t o = i < k->inst.n ? k->inst.at[i].origin : k->acc.at[i - k->inst.n].origin;
        if (o != last)
            flatten(g, o, &all);
        last = o;
    }
    if (k->acc.n)
        flatten(g, k->acc.at[k->acc.n - 1].origin, &all);
    if (all.n)
        qsort(all.at, all.n, sizeof *all.at, by_number);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all.n; i++)
        if (!n || all.at[n - 1] != all.at[i])
            all.at[n++] = all.at[i];
    all.n = n;
    return all;
}

void
launch_name(const struct graph *g, const struct kernel *k, struct launch *l, uint32_t number,
            struct arena *mem)
{
    enum { MAX_NAME = 60 };
    ids ops = user_ops(g, k);
    struct str s = {0};
    l->nop = ops.n;
    l->op = arena_alloc(mem, (ops.n + 1) * sizeof *l->op);
    str_add(&s, ops.n > 1 ? "fused" : "");
    bool cut = false;
    uint16_t last = OP_none;
    for (uint32_t i = 0; i < ops.n; i++) {
        uint16_t op = g->origins.at[ops.at[i]].op;
        l->op[i] = op;
        cut |= s.n > MAX_NAME;
        if (!cut && op != last)
            str_printf(&s, "%s%s", s.n ? "_" : "", op_name(op));
        last = op;
    }
    if (!ops.n)
        str_add(&s, "copy");
    str_printf(&s, "%s_%u", cut ? "_etc" : "", number);
    l->kernel.name = arena_strdup(mem, str_text(&s));
    str_free(&s);
    vec_free(&ops);
}

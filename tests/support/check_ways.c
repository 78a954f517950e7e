// check_ways.c: see check_ways.h.
#include "tests/support/check_ways.h"

#include "ir/base/check.h"
#include "tests/support/graph_any.h"
#include "tests/support/run_plan.h"

#include <stdio.h>
#include <string.h>

enum { TENSORS_MOST = 64 };

struct check {
    const struct graph *g;
    struct tensor in[TENSORS_MOST];
    struct guarded memory[TENSORS_MOST], out_memory[TENSORS_MOST];
    void *fused[TENSORS_MOST];
    struct compile_options co;
    struct outcome *told;
};

static bool
failed(struct outcome *t, const char *what, const char *words)
{
    t->failed = true;
    snprintf(t->words, sizeof t->words, "%.80s: %.500s", what, words);
    return false;
}

static bool
equals(const struct check *c, void *const *other, const char *what)
{
    struct tally t = {0};
    char where[200];
    return compare_outputs(c->g, c->fused, other, &t, where) || failed(c->told, what, where);
}

static bool
check_interpreter(const struct check *c)
{
    struct bounded right[TENSORS_MOST];
    struct diag d = {0};
    char where[200];
    if (!bound_graph(c->g, c->in, c->co.strict, right, &d))
        return failed(c->told, "interpreter", d.text);
    bool ok = true;
    for (uint32_t i = 0; i < c->g->outputs.n; i++) {
        ok = ok && (bound_check(&right[i], c->fused[i], &c->told->compared, where) ||
                    failed(c->told, "not what the interpreter says", where));
        bounded_free(&right[i]);
    }
    return ok;
}

static bool
compute_and_compare(const struct check *c, struct device *dev)
{
    struct diag d = {0};
    if (!run_fused(c->g, c->in, c->fused, dev, &c->co, &d))
        return failed(c->told, "fused", d.text);
    void **other = outputs_of(c->g);
    bool ok = check_interpreter(c);
    if (ok && !run_fused(c->g, c->in, other, NULL, &c->co, &d))
        ok = failed(c->told, "kernel interpreter", d.text);
    ok = ok && equals(c, other, "generated code and the kernel interpreter differ");
    if (ok && (c->co.strict || !graph_has_halves(c->g))) {
        if (!run_eager(c->g, c->in, other, dev, &c->co, &d))
            ok = failed(c->told, "op by op", d.text);
        ok = ok && equals(c, other, "fused and op by op differ");
    }
    free_outputs(c->g, other);
    return ok;
}

bool
check_ways(const struct graph *g, uint64_t seed, struct device *dev, struct outcome *told)
{
    struct check c = {.g = g, .co = {.strict = seed & 2}, .told = told};
    CHECK(g->inputs.n <= TENSORS_MOST && g->outputs.n <= TENSORS_MOST, "too many tensors");
    bool at_end = seed & 1;
    for (uint32_t i = 0; i < g->inputs.n; i++)
        c.memory[i] = any_input(g, i, seed, at_end, &c.in[i]);
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        c.out_memory[i] = guarded_alloc(output_bytes(g, i), at_end);
        c.fused[i] = c.out_memory[i].data;
        memset(c.fused[i], 0xa5, c.out_memory[i].bytes);
    }
    bool ok = compute_and_compare(&c, dev);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        guarded_free(&c.memory[i]);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        guarded_free(&c.out_memory[i]);
    return ok;
}

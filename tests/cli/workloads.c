// workloads.c: every workload of the bench, at small and awkward sizes, gives the same bits eager
// and compiled (strict, so that f16 and bf16 round alike), through the calls that the bench
// measures.
#include "codegen/codegen.h"
#include "frontend/cli/bench.h"
#include "frontend/cli/translate.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IN = 8, MAX_OUT = 4 };

struct workload {
    struct graph *g;
    struct tensor in[MAX_IN];
};

static struct workload
load(const char *path, int64_t size)
{
    struct workload w = {0};
    struct diag d = {0};
    w.g = load_graph(path, &(word_list){0}, &d);
    cr_assert(w.g, "%s", d.text);
    cr_assert(w.g->inputs.n <= MAX_IN && w.g->outputs.n <= MAX_OUT);
    for (uint32_t i = 0; i < symtab_names(w.g->sym); i++)
        sym_set_hint(w.g->sym, symtab_name(w.g->sym, i, NULL), size + i);
    settle_strides(w.g);
    cr_assert(verify_dims(w.g, &d), "%s: %s", path, d.text);
    for (uint32_t i = 0; i < w.g->inputs.n; i++) {
        ref r = w.g->inputs.at[i].node;
        const struct shape *s = graph_shape(w.g, r);
        struct tensor *t = &w.in[i];
        *t = (struct tensor){.dtype = graph_node(w.g, r)->dtype, .rank = s->rank};
        for (uint32_t a = 0; a < s->rank; a++)
            t->dim[a] = dim_of(w.g, s, a);
        t->data = xmalloc((size_t)tensor_count(t) * 8 + 1);
        bench_fill(w.g, i, t);
    }
    return w;
}

// Computes in a context of a mode; the outputs' bytes, one after the other.
static struct str
compute(const struct workload *w, int mode)
{
    fc_options o = {.size = sizeof o, .mode = mode, .threads = 2, .strict = true};
    fc_context *ctx;
    fc_tensor in[MAX_IN], out[MAX_OUT];
    struct str bytes = {0};
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    for (uint32_t i = 0; i < w->g->inputs.n; i++) {
        const struct tensor *t = &w->in[i];
        fc_dim dim[MAX_RANK];
        for (uint32_t a = 0; a < t->rank; a++)
            dim[a] = fc_n(t->dim[a]);
        in[i] = fc_from_host(ctx, (fc_dtype)t->dtype, t->data, dim, t->rank);
    }
    struct translation *t = translate_new(w->g);
    cr_assert(translate_run(t, ctx, in, out), "%s", fc_error(ctx));
    cr_assert_eq(fc_eval(ctx, out, (int)w->g->outputs.n), FC_OK, "%s", fc_error(ctx));
    for (uint32_t i = 0; i < w->g->outputs.n; i++) {
        size_t n = (size_t)fc_count(out[i]) * fc_dtype_size(fc_dtype_of(out[i]));
        char *copy = xmalloc(n + 1);
        cr_assert_eq(fc_read(out[i], copy, n), FC_OK, "%s", fc_error(ctx));
        str_addn(&bytes, copy, n);
        xfree(copy);
    }
    translate_release(t, out);
    fc_context_free(ctx);
    translate_free(t);
    return bytes;
}

static void
check(const char *path, int64_t size)
{
    struct workload w = load(path, size);
    struct str eager = compute(&w, FC_EAGER), lazy = compute(&w, FC_LAZY);
    cr_expect(eager.n && eager.n == lazy.n);
    size_t at = 0;
    while (at < eager.n && eager.at[at] == lazy.at[at])
        at++;
    cr_expect_eq(at, eager.n, "%s at size %d: byte %zu of the results differs", path, (int)size,
                 at);
    for (uint32_t i = 0; i < w.g->inputs.n; i++)
        xfree(w.in[i].data);
    graph_free(w.g);
    str_free(&eager);
    str_free(&lazy);
}

Test(workloads, compiled_equals_eager_bit_for_bit)
{
    static const int64_t size[] = {1, 17, 70};
    size_t sizes = cpu_codegen_available() ? 3 : 2; // interpreted, the last takes minutes
    struct dirent **list;
    int n = scandir(GRAPHS_DIR, &list, NULL, alphasort), graphs = 0;
    cr_assert(n >= 0, "%s cannot be read", GRAPHS_DIR);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", GRAPHS_DIR, list[i]->d_name);
        for (size_t s = 0; strstr(path, ".fuse") && s < sizes; s++) {
            check(path, size[s]);
            graphs++;
        }
        free(list[i]);
    }
    free(list);
    cr_expect_gt(graphs, 0);
}

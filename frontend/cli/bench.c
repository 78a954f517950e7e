// bench.c: fusec bench [FILE…]: eager against compiled. Without files: the standard workloads,
// whose graphs are found in the source tree that this command was built from, or where it was
// installed.
#include "frontend/cli/bench.h"

#include "frontend/cli/translate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct workload {
    const char *name, *path; // name NULL: the graph's
    int64_t size;            // of the first named dim; 0: as the file says
};

static const struct { // the first nineteen are those that other compilers are measured on
    const char *name, *file;
    int64_t size;
} standard[] = {
    {"add_relu_1000", "add_relu", 1000},
    {"add_relu_1000000", "add_relu", 1000000},
    {"add_relu_10000000", "add_relu", 10000000},
    {"bias_gelu_residual_f32", "bias_gelu_residual_f32", 0},
    {"bias_gelu_residual_bf16", "bias_gelu_residual_bf16", 0},
    {"softmax_f32", "softmax_f32", 0},
    {"softmax_bf16", "softmax_bf16", 0},
    {"layernorm_f32", "layernorm_f32", 0},
    {"rmsnorm_bf16", "rmsnorm_bf16", 0},
    {"swiglu_bf16", "swiglu_bf16", 0},
    {"sum_all_f32", "sum_all_f32", 0},
    {"colsum_f32", "colsum_f32", 0},
    {"var_rows_f32", "var_rows_f32", 0},
    {"transpose_add_f32", "transpose_add_f32", 0},
    {"cross_entropy_fwd", "cross_entropy_fwd", 0},
    {"adam_f32", "adam_f32", 0},
    {"matmul_bias_gelu", "matmul_bias_gelu", 0},
    {"mlp_784_128_10_b64", "mlp_784_128_10_b64", 0},
    {"mlp_u8_784_128_10_b1", "mlp_u8_784_128_10_b1", 0},
    {"attention_naive", "attention_naive", 0},
    {"black_scholes_f32", "black_scholes_f32", 0},
    {"scale_mask_softmax_f32", "scale_mask_softmax_f32", 0},
    {"huber_loss_f32", "huber_loss_f32", 0},
    {"blend_u8", "blend_u8", 0},
    {"mix_i16", "mix_i16", 0},
    {"hash_i32", "hash_i32", 0},
    {"sum_i32", "sum_i32", 0},
    {"count_positive_f32", "count_positive_f32", 0},
    {"argmax_f32", "argmax_f32", 0},
    {"sort_f32", "sort_f32", 0},
    {"sort_long_f32", "sort_long_f32", 0},
    {"argsort_i32", "argsort_i32", 0},
    {"topk_f32", "topk_f32", 0},
    {"median_f32", "median_f32", 0},
    {"add_relu_f16", "add_relu_f16", 0},
    {"layernorm_f16", "layernorm_f16", 0},
    {"cumsum_f32", "cumsum_f32", 0},
    {"cumsum_columns_f32", "cumsum_columns_f32", 0},
    {"cumsum_long_f32", "cumsum_long_f32", 0},
    {"running_mean_f32", "running_mean_f32", 0},
    {"embedding_f32", "embedding_f32", 0},
    {"embedding_grad_f32", "embedding_grad_f32", 0},
    {"histogram_u8", "histogram_u8", 0},
    {"histogram_64k", "histogram_64k", 0},
    {"dynamic_slice_f32", "dynamic_slice_f32", 0},
    {"slice_update_f32", "slice_update_f32", 0},
    {"one_hot_f32", "one_hot_f32", 0},
};

struct request {
    word_list files, dims;
    const char *filter;
    int64_t scale, share; // the first dim times scale / share
    struct bench_options how;
    bool json, list, compile;
};

struct results {
    VEC(struct measurement) row;
    VEC(struct workload) workload;
    struct arena mem;
};

static void
parse_threads(struct args *a, const char *text, struct request *q)
{
    int64_t n = 0;
    args_number(a, "--threads", text, 1, 1024, &n);
    q->how.threads = (uint32_t)n;
}

static void
parse_scale(struct args *a, const char *text, struct request *q)
{
    bool part = !strncmp(text, "1/", 2);
    args_number(a, "--scale", text + (part ? 2 : 0), 1, 1 << 20, part ? &q->share : &q->scale);
}

static bool
parse(struct args *a, struct request *q)
{
    const char *text, *file;
    while (a->n && !a->failed) {
        if (args_flag(a, "--json"))
            q->json = true;
        else if (args_flag(a, "--hot"))
            q->how.hot = true;
        else if (args_flag(a, "--list"))
            q->list = true;
        else if (args_flag(a, "--compile"))
            q->compile = true;
        else if (args_value(a, "--filter", &q->filter) || args_dim(a, &q->dims) ||
                 args_value(a, "--device", &q->how.device))
            continue;
        else if (args_value(a, "--threads", &text))
            parse_threads(a, text, q);
        else if (args_value(a, "--scale", &text))
            parse_scale(a, text, q);
        else if ((file = args_word(a)))
            vec_push(&q->files, file);
        else
            args_unknown(a);
    }
    if (!a->failed && q->compile && q->json)
        args_fail(a, "--compile prints a table, not JSON");
    if (!a->failed && q->compile && q->how.device)
        args_fail(a, "--compile is about the CPU's compiler: --device does not apply");
    if (!a->failed && q->filter && q->files.n)
        args_fail(a, "--filter picks among the standard workloads, not among files");
    return !a->failed;
}

static const char *
graph_directory(void)
{
    return access(FUSEC_GRAPHS, R_OK) == 0 ? FUSEC_GRAPHS : FUSEC_INSTALLED_GRAPHS;
}

static bool
is_standard(const char *name)
{
    for (size_t i = 0; name && i < sizeof standard / sizeof *standard; i++)
        if (!strcmp(standard[i].name, name))
            return true;
    return false;
}

static void
list_workloads(const struct request *q, struct results *r)
{
    for (uint32_t i = 0; i < q->files.n; i++) {
        struct workload w = {NULL, q->files.at[i], 0};
        vec_push(&r->workload, w);
    }
    bool whole = is_standard(q->filter);
    for (size_t i = 0; !q->files.n && i < sizeof standard / sizeof *standard; i++) {
        struct workload w = {standard[i].name, NULL, standard[i].size};
        w.path = arena_printf(&r->mem, "%s/%s.fuse", graph_directory(), standard[i].file);
        if (!q->filter || (whole ? !strcmp(w.name, q->filter) : !!strstr(w.name, q->filter)))
            vec_push(&r->workload, w);
    }
}

static bool
set_sizes(const struct request *q, const struct workload *w, struct graph *g, struct diag *d)
{
    int64_t first;
    if (symtab_names(g->sym) && (w->size || q->scale != q->share)) {
        const char *name = symtab_name(g->sym, 0, &first);
        int64_t size = w->size ? w->size : first;
        if (__builtin_mul_overflow(size, q->scale, &size) || size >= SYM_HUGE)
            return diag_set(d, DIAG_INVALID, "--scale makes %s too large", name);
        size = size > q->share ? size / q->share : size > 1 ? 1 : size;
        sym_set_hint(g->sym, name, size);
    }
    settle_strides(g);
    return verify_dims(g, d);
}

static bool
run_workload(const struct request *q, const struct workload *w, struct results *r, struct diag *d)
{
    struct measurement m = {0};
    struct graph *g = load_graph(w->path, &q->dims, d);
    bool ok = g && set_sizes(q, w, g, d);
    if (ok) {
        m.workload = w->name ? w->name : arena_strdup(&r->mem, g->name);
        ok = bench_measure(g, &q->how, &r->mem, &m, d);
    }
    if (ok)
        vec_push(&r->row, m);
    graph_free(g);
    return ok;
}

// LLVM takes tens of milliseconds to find itself ready: not a workload's affair.
static void
start_compiler(const struct request *q)
{
    fc_options o = {.size = sizeof o, .threads = (int)q->how.threads,
                    .device = q->how.device};
    fc_context *ctx;
    if (!fc_context_new(&o, &ctx)) {
        float x = 1, y;
        fc_read(fc_neg(fc_from_host(ctx, FC_F32, &x, FC_SHAPE(1))), &y, sizeof y);
    }
    fc_context_free(ctx);
}

static int
print_row(struct args *a, const struct results *r)
{
    struct str line = {0};
    if (r->row.n == 1)
        bench_print_head(&line);
    bench_print_row(&r->row.at[r->row.n - 1], &line);
    int code = cli_write(a, &line);
    str_free(&line);
    return code;
}

static int
print_end(struct args *a, const struct request *q, const struct results *r)
{
    struct str out = {0}, notes = {0};
    int code = CLI_OK;
    for (uint32_t i = 0; i < r->row.n; i++)
        bench_note(&r->row.at[i], &notes);
    fputs(str_text(&notes), stderr);
    if (q->json)
        bench_json(r->row.at, r->row.n, &out);
    else if (r->row.n > 1)
        bench_print_means(r->row.at, r->row.n, &out);
    if (out.n)
        code = cli_write(a, &out);
    str_free(&out);
    str_free(&notes);
    return code;
}

static int
print_names(struct args *a, const struct results *r)
{
    struct str out = {0};
    for (uint32_t i = 0; i < r->workload.n; i++) {
        const struct workload *w = &r->workload.at[i];
        str_printf(&out, "%s\n", w->name ? w->name : w->path);
    }
    int code = cli_write(a, &out);
    str_free(&out);
    return code;
}

static int
run_workloads(struct args *a, const struct request *q, struct results *r)
{
    int code = CLI_OK;
    start_compiler(q);
    for (uint32_t i = 0; i < r->workload.n; i++) {
        struct diag d = {0};
        int row;
        if (!run_workload(q, &r->workload.at[i], r, &d))
            row = cli_fail(a, &d);
        else
            row = q->json ? CLI_OK : print_row(a, r);
        code = row ? row : code;
    }
    int end = print_end(a, q, r);
    return end ? end : code;
}

// Two rounds, since what is cold can only be measured before anything is warm. A workload at
// another size has the kernels of the first.
typedef VEC(struct graph *) graphs;

static bool
compile_cold(const struct request *q, const struct results *r, graphs *gs, compile_rows *rows,
             struct diag *d)
{
    for (uint32_t i = 0; i < r->workload.n; i++) {
        const struct workload *w = &r->workload.at[i];
        if (i && w->name && !strcmp(w->path, r->workload.at[i - 1].path))
            continue;
        struct graph *g = load_graph(w->path, &q->dims, d);
        if (!g)
            return false;
        vec_push(gs, g);
        if (!set_sizes(q, w, g, d) ||
            !bench_compile_cold(g, w->name ? w->name : g->name, q->how.threads, rows, d))
            return false;
    }
    return true;
}

static bool
compile_warm(const struct request *q, const graphs *gs, compile_rows *rows, struct diag *d)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < gs->n; i++, row++) {
        if (!bench_compile_warm(gs->at[i], q->how.threads, &rows->at[row], d))
            return false;
        while (row + 1 < rows->n && rows->at[row + 1].kernel)
            row++;
    }
    return true;
}

static int
compile_workloads(struct args *a, const struct request *q, const struct results *r)
{
    compile_rows rows = {0};
    graphs gs = {0};
    struct diag d = {0};
    struct str out = {0};
    bool ok = compile_cold(q, r, &gs, &rows, &d) && compile_warm(q, &gs, &rows, &d);
    if (ok)
        bench_compile_table(&rows, &out);
    int code = ok ? cli_write(a, &out) : cli_fail(a, &d);
    for (uint32_t i = 0; i < gs.n; i++)
        graph_free(gs.at[i]);
    vec_free(&gs);
    vec_free(&rows);
    str_free(&out);
    return code;
}

static int
run_all(struct args *a, const struct request *q)
{
    struct results r = {0};
    int code;
    list_workloads(q, &r);
    if (!r.workload.n)
        code = args_fail(a, "no workload's name contains '%s'", q->filter);
    else
        code = q->list      ? print_names(a, &r)
               : q->compile ? compile_workloads(a, q, &r)
                            : run_workloads(a, q, &r);
    vec_free(&r.row);
    vec_free(&r.workload);
    arena_free(&r.mem);
    return code;
}

int
bench_command(struct args *a)
{
    struct request q = {.scale = 1, .share = 1};
    int code = parse(a, &q) ? run_all(a, &q) : CLI_USAGE;
    vec_free(&q.files);
    vec_free(&q.dims);
    return code;
}

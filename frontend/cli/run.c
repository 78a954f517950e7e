// run.c: fusec run FILE: computes a graph on arrays from files, through the public interface.
//
// A graph's dims are what the arrays say; two arrays that disagree, or an array and --dim, are an
// error that names both. Outputs that no --out names are printed, shortened.
#include "frontend/cli/cli.h"
#include "frontend/cli/npy.h"
#include "frontend/cli/translate.h"

#include "ir/interp_walk.h"
#include "ir/literal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

struct request {
    const char *file, *device;
    word_list in, out, dims;
    int64_t threads;
    bool eager, strict;
};

struct evaluation {
    struct graph *g;
    fc_context *ctx;
    struct translation *t;
    struct tensor *array; // per input
    fc_tensor *in, *out;
    bool computed; // out is to be released
    struct diag d;
};

static bool
parse(struct args *a, struct request *q)
{
    const char *text;
    while (a->n && !a->failed) {
        if (args_flag(a, "--eager"))
            q->eager = true;
        else if (args_flag(a, "--strict"))
            q->strict = true;
        else if (args_pair(a, "--in", "NAME=FILE", &q->in) ||
                 args_pair(a, "--out", "NAME=FILE", &q->out) || args_dim(a, &q->dims) ||
                 args_value(a, "--device", &q->device))
            continue;
        else if (args_value(a, "--threads", &text))
            args_number(a, "--threads", text, 1, 1024, &q->threads);
        else if (q->file || !(q->file = args_word(a)))
            args_unknown(a);
    }
    if (!a->failed && !q->file)
        args_fail(a, "a .fuse file was expected");
    return !a->failed;
}

// ---- inputs

// The list's entry for a name; NULL: none.
static const char *
file_for(const word_list *pairs, const char *name)
{
    for (uint32_t i = 0; i < pairs->n; i++) {
        size_t n;
        const char *path;
        if (split_pair(pairs->at[i], &n, &path) && strlen(name) == n &&
            !memcmp(pairs->at[i], name, n))
            return path;
    }
    return NULL;
}

static void
list_names(const struct graph *g, bool outputs, struct str *out)
{
    uint32_t n = outputs ? g->outputs.n : g->inputs.n;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = outputs ? g->outputs.at[i].name : g->inputs.at[i].name;
        str_add(out, i ? ", " : "");
        if (outputs && !(name && *name))
            str_printf(out, "out%" PRIu32, i);
        else
            str_add(out, name);
    }
}

static bool
is_output(const struct graph *g, uint32_t i, const char *name, size_t n)
{
    char number[32];
    const char *have = g->outputs.at[i].name;
    if (!(have && *have)) {
        snprintf(number, sizeof number, "out%" PRIu32, i);
        have = number;
    }
    return strlen(have) == n && !memcmp(have, name, n);
}

// Every --in and --out names something that the graph has.
static bool
check_pairs(struct evaluation *s, const word_list *pairs, bool outputs)
{
    const struct graph *g = s->g;
    struct str names = {0};
    list_names(g, outputs, &names);
    const char *kind = outputs ? "output" : "input";
    for (uint32_t i = 0; i < pairs->n && !s->d.code; i++) {
        size_t n;
        const char *path;
        bool known = false;
        split_pair(pairs->at[i], &n, &path);
        for (uint32_t k = 0; k < (outputs ? g->outputs.n : g->inputs.n); k++)
            known |= outputs ? is_output(g, k, pairs->at[i], n)
                             : strlen(g->inputs.at[k].name) == n &&
                                   !memcmp(g->inputs.at[k].name, pairs->at[i], n);
        if (!known)
            diag_set(&s->d, DIAG_INVALID, "@%s has no %s %.*s; it has %s", g->name, kind, (int)n,
                     pairs->at[i], names.n ? str_text(&names) : "none");
    }
    str_free(&names);
    return !s->d.code;
}

static bool
read_arrays(struct evaluation *s, const struct request *q)
{
    const struct graph *g = s->g;
    struct str missing = {0};
    for (uint32_t i = 0; i < g->inputs.n; i++)
        if (!file_for(&q->in, g->inputs.at[i].name))
            str_printf(&missing, "%s%s", missing.n ? ", " : "", g->inputs.at[i].name);
    if (missing.n)
        diag_set(&s->d, DIAG_INVALID, "@%s needs %s: give each a --in NAME=FILE", g->name,
                 str_text(&missing));
    str_free(&missing);
    for (uint32_t i = 0; i < g->inputs.n && !s->d.code; i++) {
        const struct graph_input *in = &g->inputs.at[i];
        const struct shape *shape = graph_shape(g, in->node);
        uint8_t dtype = graph_node(g, in->node)->dtype;
        const char *path = file_for(&q->in, in->name);
        struct tensor *t = &s->array[i];
        if (!npy_read(path, t, &s->d))
            break;
        if (t->dtype != dtype)
            diag_set(&s->d, DIAG_INVALID, "%s: %s was found, input %s expects %s", path,
                     dtype_name(t->dtype), in->name, dtype_name(dtype));
        else if (t->rank != shape->rank)
            diag_set(&s->d, DIAG_INVALID, "%s: rank %u was found, input %s expects %u", path,
                     t->rank, in->name, shape->rank);
    }
    return !s->d.code;
}

// ---- dims

struct dim_source { // who said what a dim is
    const char *input; // NULL: --dim
    uint32_t axis;
    int64_t value;
    bool known;
};

static void
source_words(const struct dim_source *s, char words[160])
{
    if (s->input)
        snprintf(words, 160, "%" PRId64 " in %.80s (axis %" PRIu32 ")", s->value, s->input,
                 s->axis);
    else
        snprintf(words, 160, "%" PRId64 " by --dim", s->value);
}

static bool
learn(struct evaluation *s, const char *name, struct dim_source *have, struct dim_source now)
{
    char a[160], b[160];
    if (have->known && have->value != now.value) {
        source_words(have, a);
        source_words(&now, b);
        return diag_set(&s->d, DIAG_INVALID, "dim %s is %s but %s", name, a, b);
    }
    if (!have->known)
        *have = now;
    sym_set_hint(s->g->sym, name, now.value);
    return true;
}

// The names that are dims by themselves take their values from the arrays.
static bool
learn_names(struct evaluation *s, struct dim_source *source)
{
    const struct graph *g = s->g;
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        const struct shape *shape = graph_shape(g, g->inputs.at[i].node);
        for (uint32_t a = 0; a < shape->rank; a++) {
            struct str text = {0};
            bool ok = true;
            sym_print(g->sym, shape->dim[a], &text);
            for (uint32_t k = 0; k < symtab_names(g->sym) && ok; k++) {
                const char *name = symtab_name(g->sym, k, NULL);
                struct dim_source now = {g->inputs.at[i].name, a, s->array[i].dim[a], true};
                if (!strcmp(name, str_text(&text)))
                    ok = learn(s, name, &source[k], now);
            }
            str_free(&text);
            if (!ok)
                return false;
        }
    }
    return true;
}

// Now every dim has a value: the arrays must have it.
static bool
check_shapes(struct evaluation *s)
{
    const struct graph *g = s->g;
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        const struct shape *shape = graph_shape(g, g->inputs.at[i].node);
        for (uint32_t a = 0; a < shape->rank; a++) {
            if (dim_of(g, shape, a) == s->array[i].dim[a])
                continue;
            struct str text = {0};
            sym_print(g->sym, shape->dim[a], &text);
            diag_set(&s->d, DIAG_INVALID,
                     "input %s: axis %" PRIu32 " has size %" PRId64 ", %s%s%" PRId64
                     " was expected",
                     g->inputs.at[i].name, a, s->array[i].dim[a],
                     sym_is_num(shape->dim[a]) ? "" : str_text(&text),
                     sym_is_num(shape->dim[a]) ? "" : " = ", dim_of(g, shape, a));
            str_free(&text);
            return false;
        }
    }
    return true;
}

static bool
settle_dims(struct evaluation *s, const struct request *q)
{
    uint32_t n = symtab_names(s->g->sym);
    struct dim_source *source = xcalloc(n + 1, sizeof *source);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < q->dims.n; i++) { // load_graph has set and checked them
            size_t length;
            const char *value, *name = symtab_name(s->g->sym, k, NULL);
            split_pair(q->dims.at[i], &length, &value);
            if (strlen(name) == length && !memcmp(name, q->dims.at[i], length))
                source[k] = (struct dim_source){NULL, 0, strtoll(value, NULL, 10), true};
        }
    bool ok = learn_names(s, source) && check_shapes(s);
    settle_strides(s->g);
    ok = ok && verify_dims(s->g, &s->d);
    xfree(source);
    return ok;
}

// ---- computing

static bool
context_failed(struct evaluation *s, const char *what)
{
    fc_status code = s->ctx ? fc_error_code(s->ctx) : FC_RESOURCE;
    return diag_set(&s->d, code ? (enum diag_code)code : DIAG_INTERNAL, "%s",
                    s->ctx && *fc_error(s->ctx) ? fc_error(s->ctx) : what);
}

static bool
on_cpu(const struct request *q)
{
    return !q->device || !strcmp(q->device, "cpu");
}

// An array on the context's device, row-major.
static fc_tensor
dense_copy(fc_context *ctx, const struct tensor *t, const fc_dim *shape)
{
    size_t size = dtype_size(t->dtype);
    char *memory = xmalloc((size_t)tensor_count(t) * size + 1), *next = memory;
    struct walk w;
    walk_start(&w, t->rank, t->dim);
    walk_follow(&w, t);
    for (; w.left; walk_next(&w), next += size)
        scalar_store(t->dtype, next, tensor_get(t, w.offset[0]));
    fc_tensor x = fc_from_host(ctx, (fc_dtype)t->dtype, memory, shape, t->rank);
    xfree(memory);
    return x;
}

static bool
compute(struct evaluation *s, const struct request *q)
{
    const struct graph *g = s->g;
    fc_options o = {.size = sizeof o, .threads = (int)q->threads, .strict = q->strict,
                    .mode = q->eager ? FC_EAGER : FC_LAZY, .device = q->device};
    if (fc_context_new(&o, &s->ctx))
        return context_failed(s, "no context could be made");
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        const struct tensor *t = &s->array[i];
        fc_dim shape[MAX_RANK];
        for (uint32_t a = 0; a < t->rank; a++)
            shape[a] = fc_n(t->dim[a]);
        s->in[i] = on_cpu(q) ? fc_borrow(s->ctx, (fc_dtype)t->dtype, t->data, shape,
                                         t->rank, t->stride, NULL, NULL)
                             : dense_copy(s->ctx, t, shape);
        if (!fc_valid(s->in[i]))
            return context_failed(s, "an input was refused");
    }
    s->t = translate_new(g);
    s->computed = translate_run(s->t, s->ctx, s->in, s->out);
    if (!s->computed || fc_eval(s->ctx, s->out, (int)g->outputs.n))
        return context_failed(s, "the graph could not be computed");
    return true;
}

// ---- outputs

static void
show(const struct tensor *t, const char *name, struct str *out)
{
    int64_t n = tensor_count(t);
    str_printf(out, "%s: %s[", name, dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++)
        str_printf(out, "%s%" PRId64, i ? ", " : "", t->dim[i]);
    str_add(out, "] =");
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        str_addc(out, ' ');
        literal_print(t->dtype, scalar_load(t->dtype, (char *)t->data + i * dtype_size(t->dtype)),
                      out);
    }
    str_add(out, n > SHOWN ? " …\n" : "\n");
}

static const char *
out_file(const struct graph *g, const word_list *out, uint32_t i)
{
    for (uint32_t k = 0; k < out->n; k++) {
        size_t n;
        const char *path;
        if (split_pair(out->at[k], &n, &path) && is_output(g, i, out->at[k], n))
            return path;
    }
    return NULL;
}

static bool
write_outputs(struct evaluation *s, const struct request *q, struct str *text)
{
    const struct graph *g = s->g;
    for (uint32_t i = 0; i < g->outputs.n; i++) {
        const char *path = out_file(g, &q->out, i), *name = g->outputs.at[i].name;
        char number[32];
        const struct node *node = graph_node(g, g->outputs.at[i].node);
        const struct shape *shape = graph_shape(g, g->outputs.at[i].node);
        struct tensor t = {.dtype = node->dtype, .rank = shape->rank};
        for (uint32_t a = 0; a < t.rank; a++)
            t.dim[a] = dim_of(g, shape, a);
        const void *data = NULL; // the context's; nobody writes to it
        size_t bytes = (size_t)tensor_count(&t) * dtype_size(t.dtype);
        void *copy = on_cpu(q) ? NULL : xmalloc(bytes + 1);
        fc_status status = copy ? fc_read(s->out[i], copy, bytes) : fc_data(s->out[i], &data);
        bool ok = !status || context_failed(s, "no result");
        t.data = copy ? copy : (void *)(uintptr_t)data;
        snprintf(number, sizeof number, "out%" PRIu32, i);
        if (ok && path)
            ok = npy_write(path, &t, &s->d);
        else if (ok)
            show(&t, name && *name ? name : number, text);
        xfree(copy);
        if (!ok)
            return false;
    }
    return true;
}

static void
end(struct evaluation *s)
{
    if (s->computed)
        translate_release(s->t, s->out);
    fc_context_free(s->ctx);
    translate_free(s->t);
    for (uint32_t i = 0; s->g && i < s->g->inputs.n; i++)
        free(s->array[i].data);
    xfree(s->array);
    xfree(s->in);
    xfree(s->out);
    graph_free(s->g);
}

static bool
run(struct evaluation *s, const struct request *q, struct str *text)
{
    s->g = load_graph(q->file, &q->dims, &s->d);
    if (!s->g)
        return false;
    s->array = xcalloc(s->g->inputs.n + 1, sizeof *s->array);
    s->in = xcalloc(s->g->inputs.n + 1, sizeof *s->in);
    s->out = xcalloc(s->g->outputs.n + 1, sizeof *s->out);
    return check_pairs(s, &q->in, false) && check_pairs(s, &q->out, true) && read_arrays(s, q) &&
           settle_dims(s, q) && compute(s, q) && write_outputs(s, q, text);
}

int
run_command(struct args *a)
{
    struct request q = {0};
    struct evaluation s = {0};
    struct str text = {0};
    int code = CLI_USAGE;
    if (parse(a, &q))
        code = run(&s, &q, &text) ? cli_write(a, &text) : cli_fail(a, &s.d);
    end(&s);
    str_free(&text);
    vec_free(&q.in);
    vec_free(&q.out);
    vec_free(&q.dims);
    return code;
}

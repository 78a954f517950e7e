// fixtures.c: answers made elsewhere. The graphs of tests/fixtures/*.txt, whose results NumPy,
// mpmath and exact rationals computed (make_fixtures.py there, which says how a file reads), in the
// graph interpreter, which the other tests call right, and as compiled code.
#include "tests/support/bound.h"
#include "tests/support/graph_gen.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS_MOST = 4 };

struct values {
    char name[32];
    uint8_t dtype;
    size_t n;
    void *data;
};

// A graph with its inputs and what must come out.
struct fixture {
    struct graph *g;
    struct tensor in[TENSORS_MOST];
    uint32_t nin, nout, line;
    struct {
        char type[64], bound[32];
        struct values right;
    } out[TENSORS_MOST];
};

struct reading {
    const char *file;
    uint32_t line, graphs;
    VEC(struct values) values;
    struct fixture at;
    struct device *dev; // NULL: builds without a code generator
};

// ---- reading

static uint8_t
dtype_by_name(const char *text, size_t n)
{
    for (uint8_t d = 1; d < DT_COUNT; d++)
        if (strlen(dtype_name(d)) == n && !memcmp(dtype_name(d), text, n))
            return d;
    cr_assert_fail("no dtype: %s", text);
    return DT_NONE;
}

static struct values
read_values(const char *type, const char *hex)
{
    struct values v = {.dtype = dtype_by_name(type, strcspn(type, "["))};
    size_t size = dtype_size(v.dtype);
    v.n = *hex == '-' ? 0 : strlen(hex) / (2 * size);
    v.data = xcalloc(v.n + 1, size);
    for (size_t i = 0; i < v.n; i++) {
        char digits[17] = {0};
        memcpy(digits, hex + 2 * size * i, 2 * size);
        scalar_store(v.dtype, (char *)v.data + i * size, strtoull(digits, NULL, 16));
    }
    return v;
}

static const struct values *
find_values(const struct reading *r, const char *name)
{
    for (uint32_t i = r->values.n; i-- > 0;)
        if (!strcmp(r->values.at[i].name, name))
            return &r->values.at[i];
    cr_assert_fail("%s:%u: no values %s", r->file, r->line, name);
    return NULL;
}

static void
take_graph(struct reading *r, const char *text)
{
    struct diag d = {0};
    r->at = (struct fixture){.g = graph_parse(text, strlen(text), r->file, &d), .line = r->line};
    cr_assert(r->at.g, "line %u: %s", r->line, d.text);
}

static void
take_input(struct reading *r, const char *name)
{
    const struct values *v = find_values(r, name);
    struct graph *g = r->at.g;
    cr_assert(r->at.nin < g->inputs.n && r->at.nin < TENSORS_MOST, "line %u", r->line);
    const struct shape *s = graph_shape(g, g->inputs.at[r->at.nin].node);
    struct tensor t = {.dtype = v->dtype, .rank = s->rank, .data = v->data};
    for (uint32_t i = 0; i < s->rank; i++) {
        t.dim[i] = dim_of(g, s, i);
        t.stride[i] = g->inputs.at[r->at.nin].stride[i];
    }
    cr_assert_eq((size_t)tensor_count(&t), v->n, "%s:%u", r->file, r->line);
    r->at.in[r->at.nin++] = t;
}

// ---- comparing

// Units that the bound is counted in, and how many; exact: none.
static double
tolerance(const struct fixture *f, uint32_t i, double right, double argument, bool interpreted)
{
    const char *bound = f->out[i].bound;
    const struct graph *g = f->g;
    uint8_t dtype = f->out[i].right.dtype;
    const struct op_info *row = &op_table[graph_node(g, g->outputs.at[i].node)->op];
    double ulp = ulp_of(dtype, right), units = 1;
    if (*bound == '=')
        return 0;
    if (!strncmp(bound, "+-", 2))
        return strtod(bound + 2, NULL);
    if (!strcmp(bound, "~x") && argument < 0)
        ulp = fmax(ulp, ulp_of(dtype, argument));
    if (bound[1] == 'r' || bound[1] == 'x') // libm is right to a last place
        units = interpreted || dtype_is_half(dtype) ? 1
                : dtype == DT_f64                   ? (double)row->ulp64 + 0.5
                                                    : (double)row->ulp32 + 0.5;
    else
        units = strtod(bound + 1, NULL);
    return units * ulp;
}

static void
must_be_right(const struct reading *r, uint32_t i, const void *got, const char *who)
{
    const struct fixture *f = &r->at;
    const struct values *right = &f->out[i].right;
    bool unary = f->nin == 1 && (size_t)tensor_count(&f->in[0]) == right->n;
    for (size_t k = 0; k < right->n; k++) {
        uint64_t a = scalar_load(right->dtype, (const char *)got + k * dtype_size(right->dtype));
        uint64_t b = scalar_load(right->dtype,
                                 (const char *)right->data + k * dtype_size(right->dtype));
        double x = scalar_to_double(right->dtype, a), y = scalar_to_double(right->dtype, b);
        uint8_t from = unary ? f->in[0].dtype : DT_NONE;
        double argument = unary ? scalar_to_double(from, scalar_load(from, (char *)f->in[0].data +
                                                                     k * dtype_size(from)))
                                : 0;
        double t = tolerance(f, i, y, argument, strcmp(who, "compiled code") != 0);
        bool fits = same_bits(right->dtype, a, b) || (t > 0 && fabs(x - y) <= t);
        cr_assert(fits, "%s:%u: %s of line %u, output %u, element %zu: %.17g (%#llx), right is "
                  "%.17g (%#llx) within %g; argument %.17g", r->file, r->line, who, f->line, i, k,
                  x,
                  (unsigned long long)a, y, (unsigned long long)b, t, argument);
    }
}

static void
must_have_type(const struct reading *r, uint32_t i)
{
    struct str s = {0};
    ref y = r->at.g->outputs.at[i].node;
    shape_print(r->at.g, graph_node(r->at.g, y)->dtype, graph_shape(r->at.g, y), &s);
    cr_assert_str_eq(str_text(&s), r->at.out[i].type, "%s:%u: output %u of line %u", r->file,
                     r->line, i, r->at.line);
    str_free(&s);
}

static void
run_fixture(struct reading *r)
{
    struct fixture *f = &r->at;
    if (!f->g)
        return;
    struct diag d = {0};
    struct tensor out[TENSORS_MOST];
    cr_assert_eq(f->nin, f->g->inputs.n, "%s:%u", r->file, f->line);
    cr_assert_eq(f->nout, f->g->outputs.n, "%s:%u", r->file, f->line);
    cr_assert(interp_graph(f->g, f->in, out, &d), "%s:%u: %s", r->file, f->line, d.text);
    void **compiled = outputs_of(f->g);
    bool ok = !r->dev || run_fused(f->g, f->in, compiled, r->dev, NULL, &d);
    cr_assert(ok, "%s:%u: %s", r->file, f->line, d.text);
    for (uint32_t i = 0; i < f->nout; i++) {
        must_have_type(r, i);
        must_be_right(r, i, out[i].data, "the interpreter");
        if (r->dev)
            must_be_right(r, i, compiled[i], "compiled code");
        xfree(out[i].data);
        xfree(f->out[i].right.data);
    }
    free_outputs(f->g, compiled);
    graph_free(f->g);
    r->at = (struct fixture){0};
    r->graphs++;
}

static void
take_output(struct reading *r, char *text)
{
    struct fixture *f = &r->at;
    cr_assert_lt(f->nout, TENSORS_MOST);
    char *end = strchr(text, ']'), *bound = end + 2, *hex = strchr(bound, ' ');
    cr_assert(end && hex, "%s:%u", r->file, r->line);
    snprintf(f->out[f->nout].type, sizeof f->out[0].type, "%.*s", (int)(end + 1 - text), text);
    snprintf(f->out[f->nout].bound, sizeof f->out[0].bound, "%.*s", (int)(hex - bound), bound);
    f->out[f->nout++].right = read_values(text, hex + 1);
}

static void
take_line(struct reading *r, char *text)
{
    if (*text == 'v' || *text == 'g')
        run_fixture(r);
    char *rest = text + 2, *space = strchr(rest, ' ');
    if (*text == 'v') {
        char *hex = strrchr(rest, ' ');
        struct values v = read_values(space + 1, hex + 1);
        snprintf(v.name, sizeof v.name, "%.*s", (int)(space - rest), rest);
        vec_push(&r->values, v);
    } else if (*text == 'g') {
        take_graph(r, rest);
    } else if (*text == 'i') {
        take_input(r, rest);
    } else if (*text == 'o') {
        take_output(r, rest);
    } else {
        cr_assert_eq(*text, '#', "%s:%u: %s", r->file, r->line, text);
    }
}

static void
run_file(const char *name, uint32_t at_least)
{
    char path[1000];
    snprintf(path, sizeof path, FIXTURE_DIR "/%s", name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    struct diag d = {0};
    struct reading r = {.file = name};
    if (cpu_codegen_available())
        r.dev = own_device_open((struct own_options){.level = CODE_BASELINE, .pieces = 2}, &d);
    char *text = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&text, &cap, file)) > 0;) {
        r.line++;
        text[n - (text[n - 1] == '\n')] = '\0';
        take_line(&r, text);
    }
    run_fixture(&r);
    free(text);
    fclose(file);
    printf("%s: %u graphs\n", name, r.graphs);
    cr_assert_geq(r.graphs, at_least);
    for (uint32_t i = 0; i < r.values.n; i++)
        xfree(r.values.at[i].data);
    vec_free(&r.values);
    if (r.dev)
        device_close(r.dev);
}

Test(fixtures, elementwise)
{
    run_file("elementwise.txt", 400);
}
Test(fixtures, casts)
{
    run_file("casts.txt", 200);
}
Test(fixtures, math)
{
    run_file("math.txt", 70);
}
Test(fixtures, reductions)
{
    run_file("reductions.txt", 700);
}
Test(fixtures, moves) // scans, views, indexing, products
{
    run_file("moves.txt", 300);
}

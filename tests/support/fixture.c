// fixture.c: the reader of tests/fixtures/*.txt: a line at a time; a graph is complete, and handed
// on, where the next one or values begin.
#include "tests/support/fixture.h"

#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    uint32_t line, graphs;
    VEC(struct fixture_values) values;
    struct fixture at; // g NULL: none
    void (*f)(const struct fixture *f, void *to);
    void *to;
};

static uint8_t
dtype_by_name(const char *text, size_t n)
{
    for (uint8_t d = 1; d < DT_COUNT; d++)
        if (strlen(dtype_name(d)) == n && !memcmp(dtype_name(d), text, n))
            return d;
    cr_assert_fail("no dtype: %s", text);
    return DT_NONE;
}

static struct fixture_values
read_values(uint8_t dtype, const char *hex)
{
    struct fixture_values v = {.dtype = dtype};
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

static void
take_values(struct reading *r, const char *text)
{
    const char *type = strchr(text, ' '), *hex = strrchr(text, ' ');
    cr_assert(type && hex > type, "%s:%u", r->at.file, r->line);
    type++;
    struct fixture_values v = read_values(dtype_by_name(type, strcspn(type, "[")), hex + 1);
    snprintf(v.name, sizeof v.name, "%.*s", (int)(type - 1 - text), text);
    vec_push(&r->values, v);
}

static const struct fixture_values *
find_values(const struct reading *r, const char *name)
{
    for (uint32_t i = r->values.n; i-- > 0;)
        if (!strcmp(r->values.at[i].name, name))
            return &r->values.at[i];
    cr_assert_fail("%s:%u: no values %s", r->at.file, r->line, name);
    return NULL;
}

static void
take_graph(struct reading *r, const char *text)
{
    struct diag d = {0};
    const char *file = r->at.file;
    r->at = (struct fixture){.file = file, .line = r->line,
                             .g = graph_parse(text, strlen(text), file, &d)};
    cr_assert(r->at.g, "%s:%u: %s", file, r->line, d.text);
}

static void
take_input(struct reading *r, const char *name)
{
    const struct fixture_values *v = find_values(r, name);
    struct fixture *f = &r->at;
    cr_assert(f->g && f->nin < f->g->inputs.n && f->nin < FIXTURE_TENSORS, "%s:%u", f->file,
              r->line);
    const struct shape *s = graph_shape(f->g, f->g->inputs.at[f->nin].node);
    struct tensor t = {.dtype = v->dtype, .rank = s->rank, .data = v->data};
    for (uint32_t i = 0; i < s->rank; i++) {
        t.dim[i] = dim_of(f->g, s, i);
        t.stride[i] = f->g->inputs.at[f->nin].stride[i];
    }
    cr_assert_eq((size_t)tensor_count(&t), v->n, "%s:%u", f->file, r->line);
    f->in[f->nin++] = t;
}

static void
take_output(struct reading *r, const char *text, bool as_doubles)
{
    struct fixture *f = &r->at;
    const char *end = strchr(text, ']'), *hex = strrchr(text, ' ');
    cr_assert(f->g && end && hex > end && f->nout < FIXTURE_TENSORS, "%s:%u", f->file, r->line);
    struct fixture_answer *a = &f->out[f->nout++];
    snprintf(a->type, sizeof a->type, "%.*s", (int)(end + 1 - text), text);
    uint8_t dtype = dtype_by_name(text, strcspn(text, "["));
    if (as_doubles) {
        char *rest;
        a->units = strtod(end + 1, &rest);
        a->scale = strtod(rest, &rest);
        cr_assert(rest == hex, "%s:%u", f->file, r->line);
    } else {
        snprintf(a->bound, sizeof a->bound, "%.*s", (int)(hex - end - 2), end + 2);
    }
    a->right = read_values(as_doubles ? DT_f64 : dtype, hex + 1);
}

static void
hand_on(struct reading *r)
{
    struct fixture *f = &r->at;
    if (!f->g)
        return;
    cr_assert_eq(f->nin, f->g->inputs.n, "%s:%u", f->file, f->line);
    cr_assert_eq(f->nout, f->g->outputs.n, "%s:%u", f->file, f->line);
    r->f(f, r->to);
    r->graphs++;
    for (uint32_t i = 0; i < f->nout; i++)
        xfree(f->out[i].right.data);
    graph_free(f->g);
    f->g = NULL;
}

static void
take_line(struct reading *r, char *text)
{
    const char *rest = text + 2;
    if (*text == 'v' || *text == 'g')
        hand_on(r);
    if (*text == 'v')
        take_values(r, rest);
    else if (*text == 'g')
        take_graph(r, rest);
    else if (*text == 'i')
        take_input(r, rest);
    else if (*text == 'o' || *text == 'r')
        take_output(r, rest, *text == 'r');
    else
        cr_assert_eq(*text, '#', "%s:%u: %s", r->at.file, r->line, text);
}

uint32_t
fixtures_each(const char *name, void (*f)(const struct fixture *f, void *to), void *to)
{
    char path[1000];
    snprintf(path, sizeof path, FIXTURE_DIR "/%s", name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    struct reading r = {.at.file = name, .f = f, .to = to};
    char *text = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&text, &cap, file)) > 0;) {
        r.line++;
        text[n - (text[n - 1] == '\n')] = '\0';
        take_line(&r, text);
    }
    hand_on(&r);
    free(text);
    fclose(file);
    for (uint32_t i = 0; i < r.values.n; i++)
        xfree(r.values.at[i].data);
    vec_free(&r.values);
    printf("%s: %u graphs\n", name, r.graphs);
    return r.graphs;
}

void
fixture_must_have_type(const struct fixture *f, uint32_t i)
{
    struct str s = {0};
    ref y = f->g->outputs.at[i].node;
    shape_print(f->g, graph_node(f->g, y)->dtype, graph_shape(f->g, y), &s);
    cr_assert_str_eq(str_text(&s), f->out[i].type, "%s:%u: output %u", f->file, f->line, i);
    str_free(&s);
}

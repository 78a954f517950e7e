// load.c: graphs from .fuse files, with dims set on the command line. A dim is a symbol with a
// hint; setting it changes the hint, so strides that follow from it are laid anew, and what the
// parser inferred from the old value (what broadcasts, what is empty) has to be verified again.
#include "frontend/cli/cli.h"

#include "ir/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
read_file(const char *path, struct str *out, struct diag *d)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!f)
        return diag_set(d, DIAG_IO, "%s: cannot be opened: %s", path, strerror(errno));
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        str_addn(out, buffer, n);
    bool ok = !ferror(f);
    if (!ok)
        diag_set(d, DIAG_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (f != stdin)
        fclose(f);
    return ok;
}

static bool
set_dim(struct graph *g, const char *name, size_t n, int64_t value, struct diag *d)
{
    struct str names = {0};
    bool found = false;
    for (uint32_t i = 0; i < symtab_names(g->sym); i++) {
        const char *have = symtab_name(g->sym, i, NULL);
        str_printf(&names, "%s%s", i ? ", " : "", have);
        if (strlen(have) == n && !memcmp(have, name, n))
            found = sym_set_hint(g->sym, have, value);
    }
    if (!found)
        diag_set(d, DIAG_INVALID, "no dim of @%s is called %.*s; %s%s", g->name, (int)n, name,
                 names.n ? "there are " : "there are none", str_text(&names));
    str_free(&names);
    return found;
}

void
settle_strides(struct graph *g)
{
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        struct graph_input *in = &g->inputs.at[i];
        const struct shape *s = graph_shape(g, in->node);
        int64_t step = 1;
        for (uint32_t a = s->rank; in->dense && a-- > 0;) {
            in->stride[a] = step;
            step *= dim_of(g, s, a);
        }
    }
}

static bool
set_dims(struct graph *g, const word_list *dims, struct diag *d)
{
    for (uint32_t i = 0; i < dims->n; i++) {
        size_t n;
        const char *size;
        split_pair(dims->at[i], &n, &size); // as args_dim has checked it
        if (!set_dim(g, dims->at[i], n, strtoll(size, NULL, 10), d))
            return false;
    }
    settle_strides(g);
    return true;
}

bool
verify_dims(const struct graph *g, struct diag *d)
{
    struct diag inner = {0};
    return graph_verify(g, &inner) ||
           diag_set(d, DIAG_INVALID, "with these dims: %s", inner.text);
}

static struct graph *
parse_file(const char *path, const struct str *text, struct diag *d)
{
    const char *at = text->n ? text->at : "";
    if (strncmp(at, "\177ELF", 4) && strncmp(at, "#!", 2))
        return graph_parse(at, text->n, strcmp(path, "-") ? path : "stdin", d);
    diag_set(d, DIAG_INVALID, "%s is a program, not a graph; what it compiles is shown by: "
             "fusec explain -- %s", path, path);
    return NULL;
}

struct graph *
load_graph(const char *path, const word_list *dims, struct diag *d)
{
    struct str text = {0};
    struct graph *g = NULL;
    if (read_file(path, &text, d))
        g = parse_file(path, &text, d);
    str_free(&text);
    if (g && !set_dims(g, dims, d)) {
        graph_free(g);
        return NULL;
    }
    return g;
}

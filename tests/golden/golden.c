// golden.c: golden texts. tests/golden/NAME.fuse says in its first line what is kept beside it:
//
//   # golden: print explain
//
// and for each kind there is NAME.KIND.txt, which must equal what the kind's function (kinds.c)
// writes for the graph, byte for byte. The kind `error` is for texts that must not parse: the
// expected text is the error. FUSEC_UPDATE=1 writes the files instead of comparing them; what
// changed is then read in git diff. An expected text that nothing asks for is a failure too.
#include "tests/golden/kinds.h"

#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static bool
read_file(const char *path, struct str *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char buf[4096];
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
        str_addn(out, buf, n);
    fclose(f);
    return true;
}

static void
write_file(const char *path, const struct str *s)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f, "%s cannot be written", path);
    cr_assert_eq(fwrite(str_text(s), 1, s->n, f), s->n);
    cr_assert_eq(fclose(f), 0);
}

// The line of s that holds byte `at`, and its number.
static int
line_at(const struct str *s, size_t at, const char **start)
{
    int line = 1;
    const char *text = str_text(s);
    *start = text;
    for (size_t i = 0; i < at && i < s->n; i++)
        if (text[i] == '\n') {
            line++;
            *start = text + i + 1;
        }
    return line;
}

static void
compare(const char *path, const struct str *want, const struct str *have)
{
    size_t at = 0;
    while (at < want->n && at < have->n && want->at[at] == have->at[at])
        at++;
    if (at == want->n && at == have->n)
        return;
    const char *w, *h;
    int line = line_at(want, at, &w);
    line_at(have, at, &h);
    cr_expect(false, "%s differs in line %d (FUSEC_UPDATE=1 rewrites it)\n  expected: %.*s\n"
              "  found:    %.*s", path, line, (int)strcspn(w, "\n"), w, (int)strcspn(h, "\n"), h);
}

static void
check(const char *name, const char *kind, const struct str *have)
{
    char path[4096];
    struct str want = {0};
    snprintf(path, sizeof path, "%s/%s.%s.txt", GOLDEN_DIR, name, kind);
    if (getenv("FUSEC_UPDATE"))
        write_file(path, have);
    else if (!read_file(path, &want))
        cr_expect(false, "%s is missing (FUSEC_UPDATE=1 writes it)", path);
    else
        compare(path, &want, have);
    str_free(&want);
}

static void
check_kind(const char *name, const char *kind, const struct graph *g, const struct diag *error)
{
    struct str out = {0};
    unsigned i = 0;
    while (i < golden_nkinds && strcmp(golden_kinds[i].name, kind) != 0)
        i++;
    if (!strcmp(kind, "error")) {
        cr_expect(!g, "%s.fuse was expected not to parse", name);
        str_printf(&out, "%s\n", error->text);
        check(name, kind, &out);
    } else if (!g) {
        cr_expect(false, "%s", error->text);
    } else if (i == golden_nkinds) {
        cr_expect(false, "%s.fuse asks for an unknown kind of golden, %s", name, kind);
    } else {
        golden_kinds[i].text(g, &out);
        check(name, kind, &out);
    }
    str_free(&out);
}

// The kinds that a text asks for, as one string of words.
static void
kinds_of(const struct str *text, char kinds[200])
{
    static const char head[] = "# golden:";
    const char *s = str_text(text);
    size_t n = sizeof head - 1;
    kinds[0] = 0;
    if (!strncmp(s, head, n))
        snprintf(kinds, 200, "%.*s", (int)strcspn(s + n, "\n"), s + n);
}

// Parses and verifies DIR/FILE; NULL: error has the words. text: the file's.
static struct graph *
parse_file(const char *dir, const char *file, struct str *text, struct diag *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    cr_assert(read_file(path, text), "%s cannot be read", path);
    struct graph *g = graph_parse(str_text(text), text->n, file, error);
    if (g)
        cr_expect(graph_verify(g, error), "%s: %s", file, error->text);
    return g;
}

static void
check_file(const char *name)
{
    char file[310], kinds[200], *rest = kinds;
    struct str text = {0};
    struct diag d = {0};
    snprintf(file, sizeof file, "%s.fuse", name);
    struct graph *g = parse_file(GOLDEN_DIR, file, &text, &d);
    kinds_of(&text, kinds);
    cr_expect(strspn(kinds, " ") < strlen(kinds), "%s: the first line is no '# golden: KIND …'",
              file);
    for (char *kind; (kind = strsep(&rest, " "));)
        if (*kind)
            check_kind(name, kind, g, &d);
    graph_free(g);
    str_free(&text);
}

// NAME.KIND.txt: does NAME.fuse ask for KIND?
static void
check_asked_for(const char *file)
{
    char name[300], path[4096], kinds[202] = " ", word[100];
    struct str text = {0};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    const char *kind = file + strlen(name) + 1;
    snprintf(path, sizeof path, "%s/%s.fuse", GOLDEN_DIR, name);
    bool found = read_file(path, &text);
    kinds_of(&text, kinds + 1);
    strcat(kinds, " ");
    snprintf(word, sizeof word, " %.*s ", (int)strcspn(kind, "."), kind);
    cr_expect(found && strstr(kinds, word), "%s is a golden that no .fuse asks for", file);
    str_free(&text);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

Test(golden, all)
{
    struct dirent **list;
    int n = scandir(GOLDEN_DIR, &list, NULL, alphasort), graphs = 0;
    cr_assert(n >= 0, "%s cannot be read", GOLDEN_DIR);
    for (int i = 0; i < n; i++) {
        char name[300];
        const char *file = list[i]->d_name;
        if (ends_with(file, ".fuse")) {
            snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - 5), file);
            check_file(name);
            graphs++;
        } else if (ends_with(file, ".txt")) {
            check_asked_for(file);
        }
        free(list[i]);
    }
    free(list);
    cr_expect_gt(graphs, 0);
}

// The workloads of bench/graphs have no first line for us: what explain says of each is kept in
// tests/golden/bench/.
Test(golden, workloads)
{
    struct dirent **list;
    int n = scandir(GRAPHS_DIR, &list, NULL, alphasort), graphs = 0;
    cr_assert(n >= 0, "%s cannot be read", GRAPHS_DIR);
    for (int i = 0; i < n; i++) {
        char name[300];
        const char *file = list[i]->d_name;
        if (ends_with(file, ".fuse")) {
            struct str text = {0};
            struct diag d = {0};
            struct graph *g = parse_file(GRAPHS_DIR, file, &text, &d);
            snprintf(name, sizeof name, "bench/%.*s", (int)(strlen(file) - 5), file);
            check_kind(name, "explain", g, &d);
            check_kind(name, "json", g, &d);
            graph_free(g);
            str_free(&text);
            graphs++;
        }
        free(list[i]);
    }
    free(list);
    cr_expect_gt(graphs, 0);
}

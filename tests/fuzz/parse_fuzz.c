// parse_fuzz.c: the .fuse parser under libFuzzer. Any bytes are a graph or an error in words; a
// graph verifies, prints, and parses back to the same text.
//
//   CC=clang-19 meson setup build-fuzz -Dfuzz=true -Dllvm=off -Dsanitize=address,undefined
//   ninja -C build-fuzz && build-fuzz/tests/parse_fuzz -max_len=2000 CORPUS tests/golden
#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/text.h"

#include <string.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct diag d = {0};
    struct graph *g = graph_parse((const char *)data, n, "fuzz", &d);
    if (!g) {
        CHECK(d.code == DIAG_INVALID && strlen(d.text) > 5, "an error without words");
        return 0;
    }
    CHECK(graph_verify(g, &d), "%s", d.text);
    struct str first = {0}, second = {0};
    graph_print(g, &first);
    struct graph *again = graph_parse(first.at, first.n, "again", &d);
    CHECK(again, "%s\n%s", d.text, first.at);
    graph_print(again, &second);
    CHECK(g->node.n == again->node.n && !strcmp(first.at, second.at), "%s\n%s", first.at,
          second.at);
    graph_free(g);
    graph_free(again);
    str_free(&first);
    str_free(&second);
    return 0;
}

// kinds.h: the kinds of golden text. A kind turns a graph into the text that is kept beside it.
#ifndef FUSEC_TESTS_GOLDEN_KINDS_H
#define FUSEC_TESTS_GOLDEN_KINDS_H

#include "ir/graph.h"

struct str;
struct golden_kind {
    const char *name;
    // Writes the text. The graph is verified and the callee's to read. What goes wrong is part of
    // the text.
    void (*text)(const struct graph *g, struct str *out);
};
extern const struct golden_kind golden_kinds[];
extern const unsigned golden_nkinds;

#endif

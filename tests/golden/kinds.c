// kinds.c: the table of golden kinds. A new one is a function and a row.
#include "tests/golden/kinds.h"

#include "ir/text.h"

const struct golden_kind golden_kinds[] = {
    {"print", graph_print},
};
const unsigned golden_nkinds = sizeof golden_kinds / sizeof *golden_kinds;

// schedule_sort.h: what the sort class's schedule and its emitters agree on.
//
// A task unit is a block of tile[SORT_TILE_LINES] lines that lie beside each other along the last
// batch axis (at the end of it fewer). A line that is a load and nothing else is read where it
// lies, and a result that one store asks for is written where it belongs. All else goes through
// scratch memory: what is computed, and what runs across lines in memory (`transpose`), as lines
// read one by one would fetch each cache line again for every one of them.
#ifndef FUSEC_PASSES_SCHEDULE_SORT_H
#define FUSEC_PASSES_SCHEDULE_SORT_H

#include "ir/kernel.h"

enum { SORT_TILE_LINES = 0 };

// schedule.pack
enum sort_pack {
    SORT_FROM_MEMORY = 1, // the lines are read where they lie
};

enum sort_result { SORT_VALUES, SORT_POSITIONS, SORT_RESULTS };

// Lines in scratch: element e of line l of the block is number l * line + e * element.
struct sort_lines {
    bool used;
    int64_t at; // byte of the first
    int64_t line, element;
};
struct sort_scratch {
    struct sort_lines from, result[SORT_RESULTS];
    int64_t work; // byte of order_call.work
    int64_t bytes;
};

bool sort_wants(const struct kernel *k, enum sort_result kind); // some result is of this kind
// The store that a kind of result goes to directly, or NULL.
const struct store *sort_store(const struct kernel *k, const struct schedule *s,
                               enum sort_result kind);
struct sort_scratch sort_scratch(const struct kernel *k, const struct schedule *s);

static inline int64_t
sort_block_axis(const struct kernel *k) // the last batch axis; -1: there is none
{
    return k->naxis - 3;
}

#endif

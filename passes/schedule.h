// schedule.h: which class takes a kernel, and with which parameters. One file a class; each answers
// whether it can take the body and the sizes. The classes' emitters stand in codegen/<device>/.
#ifndef FUSEC_PASSES_SCHEDULE_H
#define FUSEC_PASSES_SCHEDULE_H

#include "ir/kernel.h"

// Chooses k->cls (unless its body has one already) and fills in s. k's axes are normalised:
// adjacent axes that every access allows to merge are merged, P axes are ordered so that the last
// one runs along memory where possible. False: no class takes it; *why says so (enum reason).
bool schedule_kernel(struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why);

// Bytes that can be expected to stay in the caches that t's cores do not share; and, beside what
// others keep there, in the last-level cache. What a kernel moves beyond the first is worth asking
// for ahead of its use, what it writes beyond the second goes past the caches.
int64_t schedule_own_cache(const struct target *t);
int64_t schedule_shared_cache(const struct target *t);
// Zen with 256-bit vectors, on which light bodies and sums were served faster without requests for
// what is ahead. Zen with 512-bit vectors has not been measured.
bool schedule_hardware_asks_ahead(const struct target *t);
// Stores of a kernel that touches more bytes than this stream: of the shared cache's bytes all, but
// a quarter on those processors, where kernels of 12 and 34 MB beside 32 took a quarter less.
int64_t schedule_streaming_bytes(const struct target *t);

// Elements between the rows of a transposing tile, so that they do not share a set of the caches.
enum { POINTWISE_TILE_PAD = 16 };

// Columns that a unit of a column kernel's second phase joins; wider strips are multiples of it.
enum { COLUMN_PIECE = 128 };

// One a class, with the same meaning.
typedef bool schedule_fn(const struct kernel *k, const struct target *t, struct schedule *s,
                         uint8_t *why);
schedule_fn schedule_pointwise, schedule_row, schedule_column, schedule_split, schedule_contract,
    schedule_scan, schedule_sort, schedule_scatter;

// The same on a GPU, for all classes that it has. along_columns: memory runs along P. Vectors are
// of 16 bytes, at multiples of that; of one element where the target's are narrower.
bool schedule_cuda(struct kernel *k, const struct target *t, bool along_columns,
                   struct schedule *s, uint8_t *why);

// A scatter's tile[0]: blocks that the axis is cut into that is scattered along; tile[1]: 0, or R
// is divided, and each unit has as many arrays of its own that its updates take turns in.
enum { SCATTER_TILE_BLOCKS = 0, SCATTER_TILE_TURNS = 1 };
enum { SCATTER_TURNS = 4 }; // at most
// Bytes of one such array.
int64_t scatter_part_bytes(const struct kernel *k);

#endif

// target.h: what the host's processor is and how fast it copies.
#ifndef FUSEC_RUNTIME_TARGET_H
#define FUSEC_RUNTIME_TARGET_H

#include "ir/kernel.h"

#include <stddef.h>

// Fills in t for `threads` threads (0: all cores that this process may use), and words for people.
void cpu_target(struct target *t, uint32_t threads, char *words, size_t words_size);

// The same for GPUs of an architecture ("sm_90"), none of which need be there: numbers of its
// largest kind. False: the name is none that is known.
bool cuda_target(struct target *t, const char *arch);

uint32_t cpu_vector_bytes(void); // of the widest vector register

// Copy bandwidth in GB/s (bytes read plus bytes written), as the fastest of memcpy and of copies
// with plain and with streaming vector stores, with and without requests ahead, each the best of
// several rounds. One round copies `bytes` bytes with `threads` threads (0: all cores); successive
// rounds use other buffers, over four times the last-level cache in all. Takes a fraction of a
// second; 0 when memory is short.
double cpu_copy_gbps(int64_t bytes, uint32_t threads);
// The same over `pairs` pairs of blocks: 1 for small copies that stay in the caches. threads > 0.
double cpu_copy_gbps_among(int64_t bytes, uint32_t threads, int64_t pairs);
// The same for reading alone: the fastest of several loops that load each of `blocks` blocks.
double cpu_read_gbps_among(int64_t bytes, uint32_t threads, int64_t blocks);

#endif

// pool.h: the process's threads for data-parallel work.
#ifndef FUSEC_RUNTIME_POOL_H
#define FUSEC_RUNTIME_POOL_H

#include <stdint.h>

enum { POOL_MAX_THREADS = 256 };

// Works on units begin <= u < end. slot: a number below the job's thread count that no other thread
// working on this job has; for scratch memory.
typedef void pool_fn(void *arg, int64_t begin, int64_t end, uint32_t slot);

// Threads that a job of so many units takes when at most `limit` may: each gets `grain` at least.
uint32_t pool_threads(int64_t units, int64_t grain, uint32_t limit);

// Calls fn over all of 0 .. units, divided among `threads` threads (the caller is one of them; see
// pool_threads), and returns when all is done. fn may be called several times per thread, with at
// least `grain` units unless fewer are left. What fn wrote is visible after the return. Any number
// of threads may call at once, fn itself too: while one job has the workers, others run on their
// callers. After fork() the child starts workers of its own when it needs them. Workers run with
// the default floating-point state.
void pool_run(int64_t units, int64_t grain, uint32_t threads, pool_fn *fn, void *arg);

#endif

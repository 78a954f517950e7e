// fork.h: locks that a forked child finds free and with whole data behind them.
#ifndef FUSEC_RUNTIME_FORK_H
#define FUSEC_RUNTIME_FORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// The order in which nested locks are taken, outermost first; fork() takes them all in this order.
// Locks of one rank are never held together by anyone else.
enum fork_rank { FORK_CONTEXT, FORK_CODE, FORK_MEMORY, FORK_RANKS };

// A mutex with a condition and a count of long pieces of work begun under it. fork() waits until
// no such work is under way, so a child never waits for a thread that it does not have.
struct fork_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t busy;
    bool forking;
    uint8_t rank;
    struct fork_lock *next, *prev;
};

void fork_lock_init(struct fork_lock *l, enum fork_rank rank);
void fork_lock_destroy(struct fork_lock *l);
static inline void
fork_lock_take(struct fork_lock *l)
{
    pthread_mutex_lock(&l->mutex);
}
static inline void
fork_lock_drop(struct fork_lock *l)
{
    pthread_mutex_unlock(&l->mutex);
}
// Both with the lock held. Begin may wait for a fork in progress (dropping the lock meanwhile), so
// what was read under the lock before it must be read again.
void fork_lock_begin_work(struct fork_lock *l);
void fork_lock_end_work(struct fork_lock *l);
// With the lock held: waits until some other thread ends its work. May wake without reason.
void fork_lock_wait(struct fork_lock *l);

#endif

// fork.c: what fork() needs from every lock of the process. fork copies memory but only the calling
// thread: a mutex held by another thread stays locked in the child for ever, and the data behind it
// is half written. So all locks stand in one list; before a fork the forking thread takes them all,
// outermost rank first (the same order in which nested locks are taken, so no cycle can arise), and
// after it both processes drop them. Work that runs too long to hold a mutex (a compilation) is
// counted instead, and the fork waits for it: LLVM's own locks are free in the child as well.
//
// The list is process-wide state of necessity: pthread_atfork handlers take no argument.
#include "runtime/fork.h"

#include "ir/base/check.h"

#include <stddef.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fork_lock *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
before_fork(void)
{
    pthread_mutex_lock(&list_mutex);
    for (int rank = 0; rank < FORK_RANKS; rank++)
        for (struct fork_lock *l = list; l; l = l->next) {
            if (l->rank != rank)
                continue;
            pthread_mutex_lock(&l->mutex);
            l->forking = true;
            while (l->busy)
                pthread_cond_wait(&l->changed, &l->mutex);
        }
}

static void
release_all(void)
{
    for (int rank = FORK_RANKS - 1; rank >= 0; rank--)
        for (struct fork_lock *l = list; l; l = l->next) {
            if (l->rank != rank)
                continue;
            l->forking = false;
            pthread_cond_broadcast(&l->changed);
            pthread_mutex_unlock(&l->mutex);
        }
    pthread_mutex_unlock(&list_mutex);
}

// The waiters that a condition remembers did not come along: it starts anew.
static void
after_fork_in_child(void)
{
    for (struct fork_lock *l = list; l; l = l->next)
        l->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    release_all();
}

static void
register_handlers(void)
{
    int rc = pthread_atfork(before_fork, release_all, after_fork_in_child);
    CHECK(rc == 0, "pthread_atfork: error %d", rc);
}

void
fork_lock_init(struct fork_lock *l, enum fork_rank rank)
{
    pthread_once(&once, register_handlers);
    *l = (struct fork_lock){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,
                            .rank = (uint8_t)rank};
    pthread_mutex_lock(&list_mutex);
    l->next = list;
    if (list)
        list->prev = l;
    list = l;
    pthread_mutex_unlock(&list_mutex);
}

void
fork_lock_destroy(struct fork_lock *l)
{
    pthread_mutex_lock(&list_mutex);
    if (l->next)
        l->next->prev = l->prev;
    *(l->prev ? &l->prev->next : &list) = l->next;
    pthread_mutex_unlock(&list_mutex);
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->changed);
}

void
fork_lock_begin_work(struct fork_lock *l)
{
    while (l->forking)
        pthread_cond_wait(&l->changed, &l->mutex);
    l->busy++;
}

void
fork_lock_end_work(struct fork_lock *l)
{
    l->busy--;
    pthread_cond_broadcast(&l->changed);
}

void
fork_lock_wait(struct fork_lock *l)
{
    pthread_cond_wait(&l->changed, &l->mutex);
}

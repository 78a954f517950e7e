// thread.c: how the library's own threads start, and what exit() does about them.
//
// exit() destroys what libraries keep for the whole process, LLVM among them, while other threads
// still run. So before that nothing may begin any more, and what is under way has to end. A handler
// sees to it that was registered after the libraries were loaded, as the last go first. But what
// LLVM makes at its first use, by then, goes before it (two tables of x86 in code that is
// optimised). Destructors of the thread that exits go before all of these: where that is the main
// thread, they see to it. It may also leave by pthread_exit(), and others go on: until one of them
// asks for such work nothing begins.
//
// Waiting is polling, as it happens once, and a count and a mark are all that a fork has to put
// right. Both are state of the process of necessity: such handlers know of nothing else.
#include "runtime/thread.h"

#include "ir/base/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORKING, RESTING, ENDED };
static atomic_uint under_way;
static atomic_int mark;
static _Atomic(pid_t) watched; // the process whose main thread is
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Of the C library, which declares it nowhere; not of all.
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *library)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

bool
thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(t, NULL, fn, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

static void
await_work(void)
{
    while (atomic_load(&under_way))
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void
at_exit(void)
{
    atomic_store(&mark, ENDED);
    await_work();
}

static void
main_thread_ends(void *unused)
{
    (void)unused;
    atomic_compare_exchange_strong(&mark, &(int){WORKING}, RESTING);
    await_work();
}

void
thread_work_wanted(void)
{
    atomic_compare_exchange_strong(&mark, &(int){RESTING}, WORKING);
    pid_t process = getpid();
    if (atomic_load(&watched) == process || syscall(SYS_gettid) != process)
        return;
    atomic_store(&watched, process);
    if (__cxa_thread_atexit_impl)
        __cxa_thread_atexit_impl(main_thread_ends, NULL, &__dso_handle);
}

static void
after_fork_in_child(void)
{
    atomic_store(&under_way, 0);
}

static void
register_handlers(void)
{
    int rc = pthread_atfork(NULL, NULL, after_fork_in_child);
    CHECK(rc == 0, "pthread_atfork: error %d", rc);
    if (atexit(at_exit) != 0) // it is being done
        atomic_store(&mark, ENDED);
}

bool
thread_work_begin(void)
{
    pthread_once(&once, register_handlers);
    atomic_fetch_add(&under_way, 1);
    if (atomic_load(&mark) == WORKING)
        return true;
    thread_work_end();
    return false;
}

void
thread_work_end(void)
{
    atomic_fetch_sub(&under_way, 1);
}

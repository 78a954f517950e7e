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
// Waiting is polling, as it happens once. A forked child has the parent's count and none of its
// threads, so the count says whose it is: a handler of fork() would be missing where it is
// registered while a fork is under way. All is state of the process of necessity: such handlers
// know of nothing else.
#include "runtime/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORKING, RESTING, ENDED };
static _Atomic(uint64_t) under_way; // the process << 32, how many
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

// The count where nothing is under way.
static uint64_t
own(void)
{
    return (uint64_t)getpid() << 32;
}

static void
await_work(void)
{
    for (uint64_t n; (n = atomic_load(&under_way)) >> 32 == own() >> 32 && (uint32_t)n;)
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
register_handler(void)
{
    if (atexit(at_exit) != 0) // it is being done
        atomic_store(&mark, ENDED);
}

bool
thread_work_begin(void)
{
    pthread_once(&once, register_handler);
    uint64_t n = atomic_load(&under_way);
    while (!atomic_compare_exchange_weak(&under_way, &n, (n >> 32 == own() >> 32 ? n : own()) + 1))
        ;
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

// thread.h: threads of the library's own.
#ifndef FUSEC_RUNTIME_THREAD_H
#define FUSEC_RUNTIME_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Starts a thread with all signals blocked, as they are the program's. False: there are no more.
bool thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

// Around work of such a thread that exit() has to wait for; called without locks. False: the
// process is about to end, and nothing may begin. Wanted is called before, without locks, on a
// thread of the program that such work is done for.
void thread_work_wanted(void);
bool thread_work_begin(void);
void thread_work_end(void);

#endif

// thread.h: threads of the library's own.
#ifndef FUSEC_RUNTIME_THREAD_H
#define FUSEC_RUNTIME_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Starts a thread with all signals blocked, as they are the program's. False: there are no more.
bool thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

#endif

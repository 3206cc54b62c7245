/*
 * thread - threads with names, so that top -H, perf and a debugger say which part of a node is busy.
 */
#ifndef MNEMON_RUN_THREAD_H
#define MNEMON_RUN_THREAD_H

#include <pthread.h>

#include "base/err.h"

enum { THREAD_NAME_MAX = 15 }; /* bytes, without the zero: what Linux keeps of it */

/*
 * Start a thread, to be joined. What it starts by itself inherits the name, so threads of libraries are seen
 * with who uses them. ERR_THREADS; *ret_thread is set on success only.
 */
enum err thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context),
                      void *context) MUST_CHECK;

#endif

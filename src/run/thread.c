#include "run/thread.h"

#include <string.h>

#include "base/assert.h"

enum err thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context), void *context) {
    ASSERT(strlen(name) <= THREAD_NAME_MAX);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, context) != 0) {
        return ERR_THREADS; /* EAGAIN: nothing else that it could say is meant for us */
    }
    pthread_setname_np(thread, name); /* nothing depends on it */
    *ret_thread = thread;
    return ERR_OK;
}

#include "run/thread.h"

#include <string.h>

#include "base/assert.h"

int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context), void *context) {
    ASSERT(strlen(name) <= THREAD_NAME_MAX);
    pthread_t thread;
    int number = pthread_create(&thread, NULL, run, context);
    if (number != 0) {
        return number;
    }
    pthread_setname_np(thread, name); /* nothing depends on it */
    *ret_thread = thread;
    return 0;
}

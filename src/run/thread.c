#include "run/thread.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/assert.h"

enum err thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *context), void *context) {
    ASSERT(strlen(name) <= THREAD_NAME_MAX);
    /* It begins with the name of the one that starts it. A name that is given later goes through a file below
     * /proc/self/task, of which the kernel keeps an entry until the process ends, and then takes long. */
    char own[THREAD_NAME_MAX + 1] = "";
    pthread_t thread;
    prctl(PR_GET_NAME, own);
    prctl(PR_SET_NAME, name);
    int status = pthread_create(&thread, NULL, run, context);
    prctl(PR_SET_NAME, own);
    if (status != 0) {
        return ERR_THREADS; /* EAGAIN: nothing else that it could say is meant for us */
    }
    *ret_thread = thread;
    return ERR_OK;
}

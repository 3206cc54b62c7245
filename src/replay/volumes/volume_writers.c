#include "replay/volumes/volume_writers.h"

#include <pthread.h>
#include <stdlib.h>

#include "run/priority.h"
#include "run/thread.h"

/* As many as there are processors of a usual node: they compute, and wait for the disk where that is full. */
enum { THREADS_COUNT = 4 };

struct volume_writers {
    pthread_t threads[THREADS_COUNT];
    size_t threads_count;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct volume_call *first; /* lock */
    struct volume_call *last;  /* lock */
    bool is_stopping;          /* lock */
};

/* NULL: it is over. */
static struct volume_call *take(struct volume_writers *writers) {
    pthread_mutex_lock(&writers->lock);
    while (writers->first == NULL && !writers->is_stopping) {
        pthread_cond_wait(&writers->has_work, &writers->lock);
    }
    struct volume_call *call = writers->first;
    if (call != NULL) {
        writers->first = call->next;
    }
    pthread_mutex_unlock(&writers->lock);
    return call;
}

static void *run(void *context) {
    struct volume_writers *writers = context;
    struct volume_call *call;
    priority_lower(PRIORITY_BEHIND);
    while ((call = take(writers)) != NULL) {
        volume_call_take_in(call);
        priority_yield();
    }
    return NULL;
}

struct volume_writers *volume_writers_new(void) {
    struct volume_writers *writers = calloc(1, sizeof *writers);
    if (writers == NULL) {
        return NULL;
    }
    pthread_mutex_init(&writers->lock, NULL);
    pthread_cond_init(&writers->has_work, NULL);
    while (writers->threads_count < THREADS_COUNT &&
           thread_start(&writers->threads[writers->threads_count], "volume-writer", run, writers) == 0) {
        writers->threads_count++;
    }
    if (writers->threads_count == 0) {
        volume_writers_free(writers);
        return NULL;
    }
    return writers;
}

void volume_writers_free(struct volume_writers *writers) {
    if (writers == NULL) {
        return;
    }
    pthread_mutex_lock(&writers->lock);
    ASSERT(writers->first == NULL);
    writers->is_stopping = true;
    pthread_cond_broadcast(&writers->has_work);
    pthread_mutex_unlock(&writers->lock);
    for (size_t i = 0; i < writers->threads_count; i++) {
        pthread_join(writers->threads[i], NULL);
    }
    pthread_cond_destroy(&writers->has_work);
    pthread_mutex_destroy(&writers->lock);
    free(writers);
}

void volume_writers_add(struct volume_writers *writers, struct volume_call *call) {
    call->next = NULL;
    pthread_mutex_lock(&writers->lock);
    if (writers->first == NULL) {
        writers->first = call;
    } else {
        writers->last->next = call;
    }
    writers->last = call;
    pthread_cond_signal(&writers->has_work);
    pthread_mutex_unlock(&writers->lock);
}

#include "crawl/engine/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "crawl/engine/harvest.h"
#include "run/priority.h"
#include "run/thread.h"

enum { THREADS_MAX = 64 };

struct worker {
    struct workers *workers;
    struct harvest *harvest;
    pthread_t thread;
    bool is_started;
};

struct queue {
    struct trip *first;
    struct trip *last;
};

struct workers {
    struct workers_config config;
    struct worker threads[THREADS_MAX];
    size_t threads_count;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct queue given; /* lock */
    bool is_stopping;   /* lock */
    pthread_mutex_t back_lock;
    struct queue back; /* back_lock */
};

static void push(struct queue *queue, struct trip *trip) {
    trip->next = NULL;
    if (queue->first == NULL) {
        queue->first = trip;
    } else {
        queue->last->next = trip;
    }
    queue->last = trip;
}

static struct trip *pop(struct queue *queue) {
    struct trip *trip = queue->first;
    if (trip != NULL) {
        queue->first = trip->next;
    }
    return trip;
}

/* The loop is woken once for all that comes before it looks. */
static void give_back(struct trip *trip) {
    struct workers *workers = trip->workers;
    pthread_mutex_lock(&workers->back_lock);
    bool was_empty = workers->back.first == NULL;
    push(&workers->back, trip);
    pthread_mutex_unlock(&workers->back_lock);
    if (was_empty) {
        workers->config.wake(workers->config.context);
    }
}

static void *run(void *context) {
    struct worker *worker = context;
    struct workers *workers = worker->workers;
    if (workers->config.gives_way) {
        priority_lower(PRIORITY_LATER);
    }
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct trip *trip = pop(&workers->given);
        if (trip == NULL) {
            if (workers->is_stopping) {
                break;
            }
            pthread_cond_wait(&workers->has_work, &workers->lock);
            continue;
        }
        pthread_mutex_unlock(&workers->lock);
        harvest_run(worker->harvest, trip);
        if (workers->config.gives_way) {
            priority_yield();
        }
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

enum err workers_new(const struct workers_config *config, struct workers **ret_workers) {
    ASSERT(config->threads_count > 0 && config->threads_count <= THREADS_MAX);
    struct workers *workers = calloc(1, sizeof *workers);
    if (workers == NULL) {
        return ERR_MEMORY;
    }
    workers->config = *config;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_mutex_init(&workers->back_lock, NULL);
    pthread_cond_init(&workers->has_work, NULL);
    enum err err = ERR_OK;
    for (size_t i = 0; i < config->threads_count && err == ERR_OK; i++) {
        struct worker *worker = &workers->threads[workers->threads_count++];
        worker->workers = workers;
        worker->harvest = harvest_new(config->instance, config->identity);
        err = worker->harvest != NULL ? ERR_OK : ERR_MEMORY;
        if (err == ERR_OK) {
            worker->is_started = thread_start(&worker->thread, "crawl-worker", run, worker) == 0;
            err = worker->is_started ? ERR_OK : ERR_SYSTEM;
        }
    }
    if (err != ERR_OK) {
        workers_free(workers);
        return err;
    }
    *ret_workers = workers;
    return ERR_OK;
}

void workers_free(struct workers *workers) {
    pthread_mutex_lock(&workers->lock);
    workers->is_stopping = true;
    pthread_cond_broadcast(&workers->has_work);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->threads_count; i++) {
        struct worker *worker = &workers->threads[i];
        if (worker->is_started) {
            pthread_join(worker->thread, NULL);
        }
    }
    instance_drain(workers->config.instance);
    for (size_t i = 0; i < workers->threads_count; i++) {
        if (workers->threads[i].harvest != NULL) {
            harvest_free(workers->threads[i].harvest);
        }
    }
    ASSERT(workers->back.first == NULL);
    pthread_mutex_destroy(&workers->lock);
    pthread_mutex_destroy(&workers->back_lock);
    pthread_cond_destroy(&workers->has_work);
    free(workers);
}

void workers_give(struct workers *workers, struct trip *trip) {
    trip->workers = workers;
    trip->done = give_back;
    pthread_mutex_lock(&workers->lock);
    push(&workers->given, trip);
    pthread_cond_signal(&workers->has_work);
    pthread_mutex_unlock(&workers->lock);
}

struct trip *workers_take(struct workers *workers) {
    pthread_mutex_lock(&workers->back_lock);
    struct trip *trips = workers->back.first;
    workers->back = (struct queue){0};
    pthread_mutex_unlock(&workers->back_lock);
    return trips;
}

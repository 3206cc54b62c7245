#include "crawl/engine/workers.h"

#include <stdlib.h>

#include "crawl/engine/harvest.h"
#include "run/pool.h"

enum { THREADS_MAX = 64 };

struct workers {
    struct workers_config config;
    struct pool pool;
    struct harvest *harvests[THREADS_MAX]; /* by seat */
    pthread_mutex_t lock;
    struct trip *first; /* lock: those that have come back */
    struct trip *last;  /* lock */
};

/* The loop is woken once for all that comes before it looks. */
static void workers_give_back(struct trip *trip) {
    struct workers *workers = trip->workers;
    trip->next = NULL;
    pthread_mutex_lock(&workers->lock);
    bool was_empty = workers->first == NULL;
    *(was_empty ? &workers->first : &workers->last->next) = trip;
    workers->last = trip;
    pthread_mutex_unlock(&workers->lock);
    if (was_empty) {
        workers->config.wake(workers->config.context);
    }
}

static void workers_run(void *context, size_t seat) {
    struct trip *trip = context;
    harvest_run(trip->workers->harvests[seat], trip);
}

static void workers_rest(void *context, size_t seat) {
    struct workers *workers = context;
    harvest_rest(workers->harvests[seat]);
}

enum err workers_new(const struct workers_config *config, struct workers **ret_workers) {
    struct pool_config pool = {
        .name = "crawl-worker",
        .threads_max = config->threads_count,
        .priority = config->gives_way ? PRIORITY_LATER : PRIORITY_USUAL,
    };
    ASSERT(config->threads_count > 0 && config->threads_count <= THREADS_MAX);
    struct workers *workers = calloc(1, sizeof *workers);
    if (workers == NULL) {
        return ERR_MEMORY;
    }
    workers->config = *config;
    pool.rest = workers_rest;
    pool.context = workers;
    pthread_mutex_init(&workers->lock, NULL);
    enum err err = ERR_OK;
    for (size_t i = 0; i < config->threads_count && err == ERR_OK; i++) {
        struct harvest_config harvest = {.instance = config->instance,
                                         .identity = config->identity,
                                         .parsers = config->parsers,
                                         .number = i};
        workers->harvests[i] = harvest_new(&harvest);
        err = workers->harvests[i] != NULL ? ERR_OK : ERR_MEMORY;
    }
    err = err == ERR_OK ? pool_start(&workers->pool, &pool) : err;
    if (err != ERR_OK) {
        workers_free(workers);
        return err;
    }
    *ret_workers = workers;
    return ERR_OK;
}

void workers_free(struct workers *workers) {
    pool_stop(&workers->pool);
    instance_drain(workers->config.instance);
    for (size_t i = 0; i < THREADS_MAX && workers->harvests[i] != NULL; i++) {
        harvest_free(workers->harvests[i]);
    }
    ASSERT(workers->first == NULL);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_give(struct workers *workers, struct trip *trip) {
    trip->workers = workers;
    trip->done = workers_give_back;
    trip->job = (struct pool_job){.run = workers_run, .context = trip};
    bool is_taken = pool_try(&workers->pool, &trip->job);
    ASSERT(is_taken); /* the queue has no bound */
}

struct trip *workers_take(struct workers *workers) {
    pthread_mutex_lock(&workers->lock);
    struct trip *trips = workers->first;
    workers->first = NULL;
    pthread_mutex_unlock(&workers->lock);
    return trips;
}

/*
 * workers - the threads that read and store responses, and the way back to the loop.
 *
 *      loop  ── workers_give() ──>  a worker: harvest_run()  ──>  committer  ── trip->done() ──>  loop
 *
 * How many trips are under way is the crawler's to bound.
 */
#ifndef MNEMON_CRAWL_ENGINE_WORKERS_H
#define MNEMON_CRAWL_ENGINE_WORKERS_H

#include "crawl/engine/trip.h"
#include "store/instance/instance.h"

struct parsers;
struct workers;

struct workers_config {
    struct instance *instance;
    const struct identity *identity; /* what they store is signed by it; NULL: by nobody */
    struct parsers *parsers;         /* where links are looked for; NULL: in their threads */
    size_t threads_count;
    bool gives_way;              /* they run when others do not */
    void (*wake)(void *context); /* any thread: workers_take() will have something */
    void *context;
};

enum err workers_new(const struct workers_config *config, struct workers **ret_workers) MUST_CHECK;

/* Trips that are under way are finished first; take them before. */
void workers_free(struct workers *workers);

/* Its document is read and stored; it comes back by workers_take(). */
void workers_give(struct workers *workers, struct trip *take_trip);

/* All trips that have come back, in their order, linked by next; NULL: none. */
struct trip *workers_take(struct workers *workers);

#endif

/*
 * harvest - what a worker does with a response: learn what it is, find its links, store it.
 *
 * One struct per worker thread. It holds what is expensive to set up: a session of the archive, a seat where
 * documents are parsed. If that is in another process (parse/parsers.h), the worker goes on with the next
 * response meanwhile.
 */
#ifndef MNEMON_CRAWL_ENGINE_HARVEST_H
#define MNEMON_CRAWL_ENGINE_HARVEST_H

#include "crawl/engine/trip.h"
#include "net/identity.h"
#include "store/instance/instance.h"

enum { HARVEST_DECODED_SIZE_MAX = 64 << 20 }; /* of a document that links are looked for in */

struct harvest;

struct harvest_config {
    struct instance *instance;
    const struct identity *identity; /* signs what is stored (crawl/engine/attest.h); NULL: nobody */
    struct parsers *parsers;         /* NULL: links are looked for in the thread itself */
    size_t number;                   /* of the worker, from 0 */
};

/* NULL: out of memory. */
struct harvest *harvest_new(const struct harvest_config *config);
void harvest_free(struct harvest *harvest);

/*
 * For a trip with a result: fill in what the worker finds and store the document. For TRIP_LOOK: look for a
 * capture of the URL since the visit began; if there is one, read it as if it had been fetched just now.
 * done() is called once in any case.
 */
void harvest_run(struct harvest *harvest, struct trip *take_trip);

/* There is no other trip now: finish all that were begun. Before harvest_free() and before the thread sleeps.
 */
void harvest_rest(struct harvest *harvest);

#endif

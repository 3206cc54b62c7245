/*
 * harvest - what a worker does with a response: learn what it is, find its links, store it.
 *
 * One struct per worker thread. It holds what is expensive to set up: a session of the archive, the link
 * finder, the content decoder.
 */
#ifndef MNEMON_CRAWL_ENGINE_HARVEST_H
#define MNEMON_CRAWL_ENGINE_HARVEST_H

#include "crawl/engine/trip.h"
#include "net/identity.h"
#include "store/instance/instance.h"

enum { HARVEST_DECODED_SIZE_MAX = 64 << 20 }; /* of a document that links are looked for in */

struct harvest;

/* identity: signs what is stored (crawl/engine/attest.h); may be NULL. Returns NULL without memory. */
struct harvest *harvest_new(struct instance *instance, const struct identity *identity);
void harvest_free(struct harvest *harvest);

/*
 * For a trip with a result: fill in what the worker finds and store the document. For TRIP_LOOK: look for a
 * capture of the URL since the visit began; if there is one, read it as if it had been fetched just now.
 * done() is called once in any case.
 */
void harvest_run(struct harvest *harvest, struct trip *take_trip);

#endif

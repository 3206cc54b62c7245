/*
 * entrances - where the pages of other nodes are for browsers, for who leads readers to the node that is
 * responsible (ring.redirect) instead of fetching for them.
 *
 * A node says it of itself, when it is asked (BULK_ENTRANCE), and signs it with its key: nobody can say it of
 * another, and what nobody has signed is led to by nobody. It is an origin, "https://archive.example.org",
 * and nothing else: no path, no name, no password. What was said counts for ten minutes, silence for half a
 * one.
 */
#ifndef MNEMON_NODE_READING_ENTRANCES_H
#define MNEMON_NODE_READING_ENTRANCES_H

#include "base/clock.h"
#include "node/rpc/bulk.h"

enum { ENTRANCES_TEXT_SIZE = 256 /* with its zero byte */ };

struct entrances;

struct entrances_config {
    struct bulk *bulk;
    const struct identity *identity; /* borrowed */
    const char *own;                 /* our own, copied; NULL: we have none */
    uint32_t timeout_ms;             /* of a question; 0: 1,000 */
    const struct clock *clock;
    void (*blame)(void *context, const struct peer *peer, const char *sentence); /* any thread */
    void *context;
};

/* "http://HOST", "https://HOST:PORT": exactly as the origin of a URL is written? */
bool entrances_is_origin(struct bytes text);

/* Serves its question: before bulk_start(). NULL: out of memory. */
struct entrances *entrances_new(const struct entrances_config *config);
void entrances_free(struct entrances *entrances); /* after bulk_stop() */

/*
 * False: he has none, does not say, or too many wait already. Any thread but the bulk thread; waits for him.
 */
bool entrances_find(struct entrances *entrances, const struct peer *peer, char out[ENTRANCES_TEXT_SIZE]);

#endif

/*
 * lending - hosts are lent and borrowed between the nodes of a ring, so that a host is asked by one node at a
 * time: what stands between two crawlers (crawl/rules/permit.h).
 *
 * The home of a host is the first holder of the place of its SURT's host part, "org,example)". Messages
 * (lending_code.h) go over streams (bulk.h); between the crawl's loop and the bulk thread they are handed
 * over in both directions, and a thread of its own looks homes up, since that waits for the ring.
 *
 *      crawl's loop        permits ─> home known? ─> parcel ────> bulk thread ──> home
 *                          crawler <── event <────────────────── handler     <── borrower
 *      finder's thread     a home that is not known, did not answer or says it is none
 *
 * What is lost on the way counts as refused after a while (crawler), or as not given back (lend.h). Bounded:
 * parcels and events under way, hosts to look up; what is above is dropped.
 */
#ifndef MNEMON_NODE_LINKS_LENDING_H
#define MNEMON_NODE_LINKS_LENDING_H

#include <uv.h>

#include "crawl/rules/permit.h"
#include "node/ring/holders.h"
#include "node/rpc/bulk.h"

struct crawler;
struct lending;

/* Who is the home of a place: as holders.h, which is the usual one. */
struct lending_homes {
    bool (*know)(void *context, struct ring_id place, struct holders_arc *ret_arc); /* without waiting */
    enum err (*find)(void *context, struct ring_id place, struct holders_arc *ret_arc);
    size_t (*own)(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]); /* without waiting */
    void *context;
};

struct lending_homes lending_homes_of(struct holders *holders);

struct lending_config {
    struct bulk *bulk; /* not started yet; outlives it */
    struct peer self;
    struct lending_homes homes;
    const struct clock *clock; /* (clock_system) */
};

struct lending_stat {
    uint64_t lent_count;     /* leases that we gave to others */
    uint64_t borrowed_count; /* that we got from others */
    uint64_t refused_count;  /* that we did not get */
    uint64_t lost_count;     /* messages that could not be sent */
};

/* Serves BULK_LEND from now on. ERR_MEMORY, ERR_SYSTEM. */
enum err lending_new(const struct lending_config *config, struct lending **ret_lending,
                     struct err_detail *detail) MUST_CHECK;

/* For crawler_config. */
const struct permits *lending_permits(struct lending *lending);

/*
 * The crawler that has these permits, and its loop: before the loop runs, or on it. Until then, and after
 * lending_detach() (on the loop, before the crawler is freed), nothing is lent or borrowed.
 */
void lending_attach(struct lending *lending, uv_loop_t *loop, struct crawler *crawler);
void lending_detach(struct lending *lending);

/* Detached, and bulk is stopped. Waits for a lookup that is under way. */
void lending_free(struct lending *lending);

/* Any thread. */
void lending_stat(struct lending *lending, struct lending_stat *ret_stat);

#endif

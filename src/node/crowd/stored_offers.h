/*
 * stored_offers - what this node keeps for the ring, as answers to wishes of the crowd (crowd.offers = kept).
 *
 *      the ring's loop   stored_offers_look(number, wish)      ──> its thread: key (copies.h), capture,
 *                        crowd_driver_looked(number, finding)  <── offers_put()
 *
 * What was found is put to the offers, as though it had been read here: so it is given to a few nodes only,
 * which then hand it on. A wish for a URL is found by its position, so only if the charter maps by URL; one
 * for a digest always; words never, since titles are not kept. A bounded number waits; what is too much is
 * answered with nothing.
 */
#ifndef MNEMON_NODE_CROWD_STORED_OFFERS_H
#define MNEMON_NODE_CROWD_STORED_OFFERS_H

#include "node/copies/copies.h"
#include "node/crowd/offers.h"
#include "protocol/crowd/wish.h"

struct stored_offers;

struct stored_offers_config {
    struct copies *copies;
    struct offers *offers;
    struct captures_config captures;                                      /* without peer RPC: of its own */
    void (*looked)(void *context, uint64_t number, struct bytes finding); /* its thread; empty: nothing */
    void *context;
};

/* ERR_MEMORY, ERR_SYSTEM. */
enum err stored_offers_start(const struct stored_offers_config *config,
                             struct stored_offers **ret_stored_offers) MUST_CHECK;

/* Nothing is looked for any more. Then the copies may end. */
void stored_offers_stop(struct stored_offers *stored);
void stored_offers_free(struct stored_offers *stored);

/* Any thread, does not wait. False: it cannot be found here, or too many wait. */
bool stored_offers_look(struct stored_offers *stored, uint64_t number, struct bytes wish);

#endif

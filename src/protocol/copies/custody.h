/*
 * custody - captures of which this node may hold the only copy: those that are new here, until the nodes that
 * shall have them say that they do.
 *
 *      custody_add() ──> asked about after a second, then less and less often ──custody_due()──> an offer
 *                             ^                                                                    │
 *                             └──── not yet ──── custody_settle() <── answer, or none ─────────────┘
 *                                                     └──> it has it: no longer in custody
 *
 * An offer is a question, too: its answer says "I have it" of what has come and is durable. So a node that is
 * told of a new capture is told again until it says so. Of an arc of its own a node asks all other holders;
 * of the arcs of others it asks the primary, which then asks the rest.
 *
 * There is room for so many. What does not fit must be counted by other means: comparisons of own arcs, a
 * sweep over the arcs of others (node/copies/copies_offer.c).
 *
 * Pure: no clock, no I/O, no memory but what custody_init() was given. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_CUSTODY_H
#define MNEMON_PROTOCOL_COPIES_CUSTODY_H

#include "base/peer.h"
#include "base/ringkey.h"

struct custody;

/* 0 stands for the default in parentheses. */
struct custody_config {
    uint32_t items_max; /* (65,536) captures times nodes */
    uint32_t peers_max; /* (64) */
};

size_t custody_size(const struct custody_config *config);
struct custody *custody_init(void *memory, const struct custody_config *config);

struct custody_item {
    uint32_t index; /* for custody_settle() and custody_move() */
    struct ringkey key;
    struct peer peer;
    bool is_own; /* of an arc of our own */
};

/* The peer has not said yet that it has the key. False: no room. */
bool custody_add(struct custody *custody, const struct ringkey *key, const struct peer *peer, bool is_own,
                 uint64_t now_us);

/* Is it in custody for any node? Looks at all of them. */
bool custody_has(const struct custody *custody, const struct ringkey *key);

/* Those that are to be asked about now, at most count_max; each must be settled, or is asked about later. */
size_t custody_due(struct custody *custody, uint64_t now_us, struct custody_item *out, size_t count_max);
uint64_t custody_wake_at(const struct custody *custody); /* UINT64_MAX: never */

/* It has it, or need not have it any more; else it is asked again. */
void custody_settle(struct custody *custody, uint32_t index, bool is_there);

/* Another node is the one to ask now. False: no room for it; the item is as it was. */
bool custody_move(struct custody *custody, uint32_t index, const struct peer *peer);

/* ---- for people ---- */

uint32_t custody_count(const struct custody *custody, bool is_own); /* captures times nodes */
typedef void custody_visit(void *context, const struct ringkey *key, const struct peer *peer);
void custody_each_own(const struct custody *custody, custody_visit *visit, void *context);

#endif

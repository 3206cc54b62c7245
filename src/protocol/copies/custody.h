/*
 * custody - captures of which this node may hold the only copy: those that are new here, until the nodes that
 * shall have them say that they do.
 *
 *      custody_add() ──> asked about at once, then less and less often ──custody_due()──> an offer
 *                             ^                                                             │
 *                             └──── not yet ──── custody_settle() <── answer, or none ──────┘
 *                                                     └──> it has it: no longer in custody
 *
 * A node that was away, or slow, was asked in vain about all that waits for it, and none of that is asked
 * about again for a while. Once it says of most that it is asked about that it has it, custody_hurry() asks
 * the rest.
 *
 * An offer is a question, too: its answer says "I have it" of what has come and is durable. So a node that is
 * told of a new capture is told again until it says so. Of an arc of its own a node asks all other holders;
 * of the arcs of others it asks the primary, which then asks the rest. Others may be told once, so that the
 * capture comes to them soon; nobody waits for what they say.
 *
 * What is due comes out node by node, and of one node only when its last offer was answered: so a silent one
 * delays nothing that goes to others.
 *
 * There is room for so many. What does not fit must be counted by other means: comparisons of own arcs, a
 * sweep over the arcs of others (protocol/copies/replicator_offers.c).
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

enum custody_kind {
    CUSTODY_OTHERS, /* of an arc of others: asked of its primary */
    CUSTODY_OWN,    /* of an arc of our own: asked of every other holder */
    CUSTODY_TOLD,   /* not asked, only told; gone after one offer */
    CUSTODY_KINDS_COUNT,
};

struct custody_item {
    uint32_t index; /* for custody_settle() and custody_move() */
    struct ringkey key;
    struct peer peer;
    enum custody_kind kind;
};

/* The peer has not said yet that it has the key. False: no room. */
bool custody_add(struct custody *custody, const struct ringkey *key, const struct peer *peer,
                 enum custody_kind kind, uint64_t now_us);

/* Is it in custody for any node? Looks at all of them. */
bool custody_has(const struct custody *custody, const struct ringkey *key);

/* What one node is to be asked about now, at most count_max; each must be settled or moved, and before that
 * this node is not asked again. 0: nothing is due. */
size_t custody_due(struct custody *custody, uint64_t now_us, struct custody_item *out, size_t count_max);
uint64_t custody_wake_at(const struct custody *custody); /* UINT64_MAX: never, or not before one is settled */

/* The key of one that is due. */
const struct ringkey *custody_key(const struct custody *custody, uint32_t index);
enum custody_kind custody_kind(const struct custody *custody, uint32_t index);

/* It has it, or need not have it any more; else it is asked again. */
void custody_settle(struct custody *custody, uint32_t index, bool is_there, uint64_t now_us);

/* The node has much of what it was asked about: the rest is asked about now, however often it was in vain. */
void custody_hurry(struct custody *custody, const struct peer *peer, uint64_t now_us);

/* Another node is the one to ask, now. False: no room for it; the item is as it was. */
bool custody_move(struct custody *custody, uint32_t index, const struct peer *peer, uint64_t now_us);

/* ---- for people ---- */

uint32_t custody_count(const struct custody *custody, enum custody_kind kind); /* captures times nodes */
typedef void custody_visit(void *context, const struct ringkey *key, const struct peer *peer);
void custody_each_own(const struct custody *custody, custody_visit *visit, void *context);

#endif

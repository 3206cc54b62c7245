/*
 * replica_copies - who has which object, in the experiments with replicas; and which objects nobody has.
 *
 * Objects lie at random places of the ring; each stands for many captures near it. A copy arrives in parts,
 * so that a transfer that was cut off goes on where it stopped. An object is kept as long as a node that is
 * up or will come back has all of it, and unavailable while none of those is up.
 *
 * The nodes are rows of a matrix of bytes, the objects in the order of their places its columns: an arc is a
 * run of columns, and two nodes are compared by looking at one run in two rows.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_REPLICA_COPIES_H
#define MNEMON_SIM_EXPERIMENTS_REPLICA_COPIES_H

#include "base/err.h"
#include "base/prng.h"
#include "protocol/ring/ring_id.h"

enum { REPLICA_WHOLE = 255 }; /* parts of a copy */

struct replica_object {
    struct ring_id place;
    bool is_born;
    bool is_lost;
    uint32_t copies_count; /* whole ones, on nodes that are up or will come back */
    uint32_t up_count;     /* of these */
    uint64_t dark_since_us;
};

struct replica_copies {
    uint32_t nodes_count;
    uint32_t objects_count;
    struct replica_object *objects; /* in the order of their places */
    uint8_t *parts;                 /* [node][object] */
    uint32_t *held_count;           /* [node]: whole copies */
    uint64_t copies_count;
    uint64_t born_count;
    uint64_t lost_count;
    uint64_t dark_us; /* of all objects together, until they were to be had again */
};

enum err replica_copies_init(struct replica_copies *copies, uint32_t nodes_count, uint32_t objects_count,
                             struct prng *prng) MUST_CHECK;
void replica_copies_done(struct replica_copies *copies);

static inline uint8_t *replica_copies_of(const struct replica_copies *copies, uint32_t node) {
    return copies->parts + (size_t)node * copies->objects_count;
}
static inline bool replica_copies_has(const struct replica_copies *copies, uint32_t node, uint32_t object) {
    return replica_copies_of(copies, node)[object] == REPLICA_WHOLE;
}

/* The objects of (from, to]: *ret_count from *ret_first on, behind the last the first again. */
void replica_copies_range(const struct replica_copies *copies, struct ring_id from, struct ring_id to,
                          uint32_t *ret_first, uint32_t *ret_count);

/* The first object from `object` on, before `end`, of which the node has a whole copy; `end` if there is
 * none. Both may count on behind the last object, which the first one follows. */
uint32_t replica_copies_next(const struct replica_copies *copies, uint32_t node, uint32_t object,
                             uint32_t end);

/* A node that is up has all of the object now; or has given its copy up. */
void replica_copies_add(struct replica_copies *copies, uint32_t node, uint32_t object, uint64_t now_us);
void replica_copies_drop(struct replica_copies *copies, uint32_t node, uint32_t object, uint64_t now_us);

/* The node has come up, or gone down. */
void replica_copies_turn(struct replica_copies *copies, uint32_t node, bool is_up, uint64_t now_us);

/* Everything that the node has is gone for good. */
void replica_copies_wipe(struct replica_copies *copies, uint32_t node, bool is_up, uint64_t now_us);

/* dark_us as it would be if all objects were to be had from now on. */
uint64_t replica_copies_dark_us(const struct replica_copies *copies, uint64_t now_us);

#endif

/*
 * replica_world - years of a ring whose nodes keep objects together: the policy of
 * protocol/copies/copy_plan.h, run by every node, over a ring that is always right.
 *
 * Simulated in full: what each keeper decides, who has what, nodes that leave for good and come new, outages,
 * disks that are lost or full, how long transfers take. Idealised: everybody knows at once who is up (the
 * ring itself is what ring_world.h simulates), a comparison takes no time, and a task stays open until what
 * it found missing has arrived, where the node asks again every minute. A process that comes back knows
 * nothing but what is on its disk. Equal configurations give equal worlds: whole numbers only.
 *
 * What a node sends for repair has a line, what it receives another one; both have the same rate. On each
 * there is one object at a time (replica_transfer.h).
 */
#ifndef MNEMON_SIM_EXPERIMENTS_REPLICA_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_REPLICA_WORLD_H

#include "protocol/copies/copy_plan.h"
#include "protocol/copies/transfer_order.h"
#include "sim/experiments/replica_copies.h"
#include "sim/world/digest.h"
#include "sim/world/queue.h"

enum { REPLICA_EXCHANGES_MAX = 64 }; /* of a node at once */

/* What happens to a third of the nodes at half time. */
enum replica_blow { REPLICA_NO_BLOW, REPLICA_AWAY, REPLICA_GONE };

struct replica_config {
    uint64_t seed;
    uint32_t nodes_count;
    uint32_t objects_count;
    uint32_t copies;
    uint64_t duration_us;
    uint64_t lifetime_us;   /* mean, until a node leaves for good and a new one comes elsewhere */
    uint64_t up_us;         /* mean, between outages */
    uint64_t outage_us;     /* mean, of a short outage */
    uint64_t long_us;       /* mean, of a long one */
    uint32_t long_ppm;      /* of the outages are long */
    uint64_t disk_us;       /* mean, until a node loses its disk and goes on; 0: never */
    uint32_t small_percent; /* of the nodes have too small a disk */
    uint32_t born_percent;  /* of the objects are stored in the course of the time */
    uint64_t object_us;     /* how long an object is on the line */
    uint64_t compare_us;
    uint64_t grace_us;
    bool keeps_surplus; /* while there is room for it */
    bool is_idle;       /* nothing is repaired */
    enum replica_blow blow;
};

struct replica_node {
    struct peer peer;
    struct ring_id place;
    bool is_up;
    struct copy_plan *copy_plan; /* while it is up; else NULL */
    void *memory;                /* of the keeper */
    uint32_t held_max;           /* objects that its disk has room for */
    uint64_t leaves_at_us;
    uint64_t change_sequence; /* of the events in the queue that count */
    uint64_t wake_sequence;   /* 0: none */
    uint64_t wake_at_us;
    bool is_sending;
    bool is_receiving;
    bool is_cut; /* nothing begins at it now */
    struct transfer_order_queue queue;
    uint32_t exchanges_count;
    uint32_t exchanges[REPLICA_EXCHANGES_MAX]; /* indices of those that it takes part in */
};

/* A task whose transfers are under way, one after the other. */
struct replica_exchange {
    bool is_open;
    bool is_waiting; /* for a line, or for a node that has the object */
    struct copy_plan_task task;
    uint32_t owner;
    uint32_t peer;
    uint64_t waits_since; /* in the order of those that wait */
    uint32_t object;      /* the one that is on the lines; of handing on, also the one that waits */
    uint32_t sender;      /* of it */
    uint32_t receiver;
    uint64_t sequence; /* of the event at the end of the transfer */
    uint64_t since_us;
    uint64_t work_us; /* that it takes from then on */
};

struct replica_counts {
    uint64_t leaves_count;
    uint64_t outages_count;
    uint64_t disks_count;
    uint64_t compared_count;
    uint64_t received_parts; /* REPLICA_WHOLE for each object */
    uint64_t released_count;
    uint64_t full_count; /* comparisons that ended at a full disk */
    uint64_t copies_sum; /* of every day */
    uint64_t kept_sum;   /* objects, likewise */
    uint64_t days_count;
};

struct replica_world {
    struct replica_config config;
    struct replica_copies copies;
    struct replica_counts counts;
    struct replica_node *nodes;
    uint32_t *up; /* nodes that are up, in the order of their places */
    uint32_t up_count;
    struct replica_exchange *exchanges;
    uint32_t *free_exchanges; /* the indices of those that are not open */
    uint32_t free_count;
    uint64_t waits_last;
    struct queue queue;
    struct prng prng;
    uint64_t now_us;
    uint64_t lives_count;
    enum err err; /* the first failure sticks */
};

enum err replica_world_init(struct replica_world *world, const struct replica_config *config) MUST_CHECK;
void replica_world_done(struct replica_world *world);

enum err replica_world_run(struct replica_world *world) MUST_CHECK;
void replica_world_digest(const struct replica_world *world, struct digest *digest);

/* ---- for replica_transfer.c ---- */

enum replica_event {
    REPLICA_CHANGE,
    REPLICA_WAKE,
    REPLICA_ARRIVAL,
    REPLICA_BIRTH,
    REPLICA_DISK,
    REPLICA_BLOW,
    REPLICA_DAY
};

/* Returns the sequence number; 0 after a failure, which stays in world->err. */
uint64_t replica_world_push(struct replica_world *world, uint64_t at_us, enum replica_event event,
                            uint32_t index);

/* The node has something to decide now. */
void replica_world_wake(struct replica_world *world, uint32_t node);

static inline uint32_t replica_index_of(const struct peer *peer) {
    return (uint32_t)peer->address.ip[0] << 16 | (uint32_t)peer->address.ip[1] << 8 | peer->address.ip[2];
}

/* The index in world->up of the first node at or behind a place. */
uint32_t replica_world_find(const struct replica_world *world, struct ring_id place);

#endif

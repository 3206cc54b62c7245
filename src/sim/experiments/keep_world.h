/*
 * keep_world - hours of a small ring whose nodes keep captures together, at the pace of real nodes: the
 * policy of protocol/copies/keeper.h, and how node/copies/keeping.h does what it says.
 *
 * Simulated: one thread for each node, which fetches a batch, then does a task; comparisons that take at most
 * so many keys, queues of what is wanted that fill up, offers of what is new; a cut in two halves, each of
 * which archives something meanwhile, and which the nodes hear of one after the other; a disk that is lost.
 * Idealised: what the nodes know of the ring is right for their half or for the whole, questions take one
 * time, surplus is handed on but not deleted. Equal configurations give equal worlds.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_KEEP_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_KEEP_WORLD_H

#include "base/prng.h"
#include "protocol/copies/keeper.h"
#include "sim/world/digest.h"
#include "sim/world/queue.h"

enum {
    KEEP_NODES_MAX = 64,
    KEEP_WANTED_MAX = 16384, /* as in node/copies/keeping_state.h */
    KEEP_WANTED_BUSY = 1024,
    KEEP_BATCH_COUNT = 256,
    KEEP_FOUND_MAX = 8192, /* as in node/copies/keeping_task.c */
};

struct keep_config {
    uint64_t seed;
    uint32_t nodes_count;
    uint32_t copies;
    uint32_t captures_count;  /* that all have been kept for long */
    uint32_t late_count;      /* that each of the halves archives while they are apart */
    uint64_t cut_us;          /* for how long; 0: they are not */
    bool loses_disk;          /* the first node, when all is quiet */
    uint64_t learn_us;        /* until the last node knows that the ring has changed */
    uint64_t ask_us;          /* a question and its answer */
    uint32_t fetches_per_s;   /* of a node */
    uint64_t duration_us_max; /* behind the end of the trouble */
    bool is_patient; /* nothing is handed on, nobody knows that there was more than was taken, or that
                        something is wanted already */
};

struct keep_wanted {
    uint32_t capture;
    uint8_t source;
};

struct keep_node {
    struct peer peer;
    struct ring_id place;
    uint8_t half;
    uint64_t seen; /* a bit for each node that it knows of */
    void *memory;
    struct keeper *keeper;
    uint8_t *has;   /* [capture] */
    uint8_t *waits; /* [capture]: it is wanted */
    struct keep_wanted *wanted;
    uint32_t wanted_first;
    uint32_t wanted_count;
    struct keep_wanted batch[KEEP_BATCH_COUNT];
    uint32_t batch_count; /* under way */
    bool has_task;        /* likewise */
    struct keeper_task task;
    uint64_t wake_sequence;
    uint64_t wake_at_us;
};

struct keep_counts {
    uint64_t compared_count;
    uint64_t capped_count;
    uint64_t offered_count;
    uint64_t fetched_count;
    uint64_t vain_count; /* wanted, but there already when its turn came */
    uint64_t handed_count;
};

struct keep_world {
    struct keep_config config;
    struct keep_node nodes[KEEP_NODES_MAX]; /* in the order of their places */
    struct ring_id *places;                 /* of the captures, in their order */
    uint8_t *is_made;                       /* [capture] */
    uint32_t captures_count;
    struct keep_counts counts;
    struct queue queue;
    struct prng prng;
    uint64_t now_us;
    bool is_cut;
    uint64_t over_us;       /* when the trouble ended; 0: not yet */
    uint64_t lacking_count; /* copies that holders of the whole ring do not have */
    uint64_t lacking_first; /* at the end of the trouble */
    bool has_most;          /* 99 of 100 of them are there since … */
    uint64_t most_us;       /* … so long after it */
    uint64_t all_us;        /* all of them, where none is lacking */
    enum err err;
};

enum err keep_world_init(struct keep_world *world, const struct keep_config *config) MUST_CHECK;
void keep_world_done(struct keep_world *world);

/* Until everything is where it belongs, or time is up. */
enum err keep_world_run(struct keep_world *world) MUST_CHECK;
void keep_world_digest(const struct keep_world *world, struct digest *digest);

/* ---- for keep_task.c ---- */

/* Of the nodes that this one knows of: the first at or behind a place, and the one that follows another. */
uint32_t keep_world_primary(const struct keep_world *world, uint32_t viewer, struct ring_id place);
uint32_t keep_world_next(const struct keep_world *world, uint32_t viewer, uint32_t node);
bool keep_world_reaches(const struct keep_world *world, uint32_t node, uint32_t other);

/* Shall the node have the place, as the viewer sees the ring? */
bool keep_world_holds(const struct keep_world *world, uint32_t viewer, uint32_t node, struct ring_id place);

/* The first capture behind a place. */
uint32_t keep_world_behind(const struct keep_world *world, struct ring_id place);

void keep_world_store(struct keep_world *world, uint32_t node, uint32_t capture);
void keep_world_wake(struct keep_world *world, uint32_t node, uint64_t at_us);

/* keep_task.c: how long the task takes; and what comes of it, at its end. */
uint64_t keep_task_cost_us(const struct keep_world *world, uint32_t node, const struct keeper_task *task);
void keep_task_finish(struct keep_world *world, uint32_t node);

/* False: no room. */
bool keep_task_want(struct keep_world *world, uint32_t node, uint32_t capture, uint32_t source);

#endif

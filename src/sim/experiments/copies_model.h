/*
 * copies_model - hours of a small ring whose nodes keep captures together, at the pace of real nodes: the
 * policy of protocol/copies/copy_plan.h, and how node/copies/copies.h does what it says.
 *
 * Simulated: one thread for each node, which fetches a batch, then does a task; comparisons that take at most
 * so many keys, queues of what is wanted that fill up, offers of what is new; a cut in two halves, each of
 * which archives something meanwhile, and which the nodes hear of one after the other; a disk that is lost.
 * Idealised: what the nodes know of the ring is right for their half or for the whole, questions take one
 * time, surplus is handed on but not deleted. Equal configurations give equal worlds.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_COPIES_MODEL_H
#define MNEMON_SIM_EXPERIMENTS_COPIES_MODEL_H

#include "base/prng.h"
#include "protocol/copies/copy_plan.h"
#include "sim/world/digest.h"
#include "sim/world/queue.h"

enum {
    COPIES_MODEL_NODES_MAX = 64,
    COPIES_MODEL_WANTED_MAX = 16384, /* as in node/copies/copies_state.h */
    COPIES_MODEL_WANTED_BUSY = 1024,
    KEEP_BATCH_COUNT = 256,
    COPIES_MODEL_FOUND_MAX = 8192, /* as in node/copies/copies_compare.c */
};

struct copies_model_config {
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

struct copies_model_wanted {
    uint32_t capture;
    uint8_t source;
};

struct copies_model_node {
    struct peer peer;
    struct ring_id place;
    uint8_t half;
    uint64_t seen; /* a bit for each node that it knows of */
    void *memory;
    struct copy_plan *copy_plan;
    uint8_t *has;   /* [capture] */
    uint8_t *waits; /* [capture]: it is wanted */
    struct copies_model_wanted *wanted;
    uint32_t wanted_first;
    uint32_t wanted_count;
    struct copies_model_wanted batch[KEEP_BATCH_COUNT];
    uint32_t batch_count; /* under way */
    bool has_task;        /* likewise */
    struct copy_plan_task task;
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

struct copies_model {
    struct copies_model_config config;
    struct copies_model_node nodes[COPIES_MODEL_NODES_MAX]; /* in the order of their places */
    struct ring_id *places;                                 /* of the captures, in their order */
    uint8_t *is_made;                                       /* [capture] */
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

enum err copies_model_init(struct copies_model *world, const struct copies_model_config *config) MUST_CHECK;
void copies_model_done(struct copies_model *world);

/* Until everything is where it belongs, or time is up. */
enum err copies_model_run(struct copies_model *world) MUST_CHECK;
void copies_model_digest(const struct copies_model *world, struct digest *digest);

/* ---- for copies_model_task.c ---- */

/* Of the nodes that this one knows of: the first at or behind a place, and the one that follows another. */
uint32_t copies_model_primary(const struct copies_model *world, uint32_t viewer, struct ring_id place);
uint32_t copies_model_next(const struct copies_model *world, uint32_t viewer, uint32_t node);
bool copies_model_reaches(const struct copies_model *world, uint32_t node, uint32_t other);

/* Shall the node have the place, as the viewer sees the ring? */
bool copies_model_holds(const struct copies_model *world, uint32_t viewer, uint32_t node,
                        struct ring_id place);

/* The first capture behind a place. */
uint32_t copies_model_behind(const struct copies_model *world, struct ring_id place);

void copies_model_store(struct copies_model *world, uint32_t node, uint32_t capture);
void copies_model_wake(struct copies_model *world, uint32_t node, uint64_t at_us);

/* copies_model_task.c: how long the task takes; and what comes of it, at its end. */
uint64_t copies_model_task_cost_us(const struct copies_model *world, uint32_t node,
                                   const struct copy_plan_task *task);
void copies_model_task_finish(struct copies_model *world, uint32_t node);

/* False: no room. */
bool copies_model_task_want(struct copies_model *world, uint32_t node, uint32_t capture, uint32_t source);

#endif

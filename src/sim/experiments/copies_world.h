/*
 * copies_world - a small ring whose nodes keep captures together: each runs the daemon's machine
 * (protocol/copies/replicator.h, the same object files) on a disk (copies_disk.h), over lines, with a view of
 * the ring that are all simulated.
 *
 * Simulated: questions and answers with their delay, nodes that are down or silent, cuts, lines that carry so
 * many captures a second in either direction, disks that are full, lost or rot, what each node knows of the
 * others. Idealised: a node's view of the ring is what the experiment says, reading and removing take no
 * time, bodies of captures are as large as each other. Equal configurations give equal worlds.
 *
 * An experiment drives it with events of its own (copies_world_at()) and hears what is stored and removed.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_COPIES_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_COPIES_WORLD_H

#include "protocol/copies/replicator.h"
#include "sim/experiments/copies_disk.h"
#include "sim/experiments/copies_lines.h"
#include "sim/world/digest.h"
#include "sim/world/queue.h"

struct copies_world;

struct copies_world_config {
    uint64_t seed;
    uint32_t nodes_count;
    uint32_t copies;
    uint32_t captures_count; /* that there ever are */
    uint64_t delay_us;       /* of a message */
    uint64_t timeout_us;     /* until a question is given up */
    uint32_t loss_ppm;       /* of questions that get no answer */
    uint64_t capture_us;     /* that one is on the line of its giver and of its taker */
    uint32_t capture_size;
    bool keeps_parts;  /* a capture stands for many: what came of it before a cut need not come again */
    bool counts_sites; /* holders are chosen so that no site has all copies */
    uint64_t scrub_us; /* in which a disk reads 64 captures again; 0: it never does */
    struct replicator_config machine; /* seed and secret are drawn */

    /* May be NULL. */
    void (*stored)(void *context, uint32_t node, uint32_t capture);
    void (*removed)(void *context, uint32_t node, uint32_t capture);
    bool (*keeps)(void *context, uint32_t node);                  /* surplus stays there */
    void (*happen)(void *context, uint32_t code, uint32_t index); /* what copies_world_at() asked for */
    void *context;
};

struct copies_world_node {
    struct copies_world *world;
    uint32_t index;
    struct peer peer;
    struct ring_id place;
    bool is_up;
    bool is_idle;  /* it answers and fetches nothing of its own accord */
    uint32_t life; /* messages of an earlier one count no more */
    uint64_t site;
    uint32_t group;          /* nodes of different groups do not reach each other */
    uint64_t silent_from_us; /* it answers nothing from then on … */
    uint64_t silent_to_us;   /* … until then */
    uint32_t held_max;       /* captures that its disk has room for; 0: any number */
    struct copies_disk disk;
    uint8_t *rotten;   /* [capture]: it is there and cannot be read */
    uint32_t scrub_at; /* what is read again next */
    struct replicator *replicator;
    uint64_t generation; /* of its view */
    uint8_t *sees;       /* [node] */
    uint64_t *parts_us;  /* [capture]: of the time on the line; if keeps_parts */
    uint64_t *busy_us;   /* [node]: it said that it is, and that counts until then */
    uint64_t wake_sequence;
    uint64_t wake_at_us;
};

struct copies_message;

struct copies_world {
    struct copies_world_config config;
    struct copies_archive archive;
    struct copies_world_node *nodes; /* in the order of their places, unless one has come anew */
    uint32_t *order;                 /* the nodes in that order */
    uint32_t *row;                   /* those that somebody sees, in that order, from one of them on … */
    uint64_t *row_sites;             /* … and where they stand */
    struct copies_message *messages; /* under way, by index */
    uint32_t messages_count;
    uint32_t messages_max;
    uint32_t free_message;
    struct queue queue;
    struct copies_lines lines;
    struct prng prng;
    uint64_t now_us;
    uint8_t *memory; /* of an answer */
    uint64_t questions_count;
    uint64_t steps_count;
    enum err err; /* the first failure sticks */
};

enum err copies_world_init(struct copies_world *world, const struct copies_world_config *config) MUST_CHECK;
void copies_world_done(struct copies_world *world);

/* Until the function says so, or nothing happens any more, or that time has come. */
enum err copies_world_run(struct copies_world *world, uint64_t until_us, bool (*is_over)(const void *context),
                          const void *context) MUST_CHECK;

/* config.happen(code, index) then; code < 1000. */
void copies_world_at(struct copies_world *world, uint64_t at_us, uint32_t code, uint32_t index);

/* ---- nodes; the views of others are the caller's to change ---- */

/* A process begins, with what is on its disk. */
void copies_world_rise(struct copies_world *world, uint32_t node);
void copies_world_fall(struct copies_world *world, uint32_t node);

/* Another node comes in the place of one that is down: with a key and at a place of its own. */
void copies_world_replace(struct copies_world *world, uint32_t node);

void copies_world_wipe(struct copies_world *world, uint32_t node); /* its disk */
void copies_world_see(struct copies_world *world, uint32_t viewer, uint32_t node, bool is_seen);
void copies_world_look(struct copies_world *world, uint32_t viewer); /* its view has changed */

/* The index in world->order of the first node at or behind the place, whoever knows of it. */
uint32_t copies_world_position(const struct copies_world *world, struct ring_id place);

/* Of the nodes that the viewer knows of, the one at or behind the place, and the one that follows another. */
uint32_t copies_world_primary(const struct copies_world *world, uint32_t viewer, struct ring_id place);
uint32_t copies_world_next(const struct copies_world *world, uint32_t viewer, uint32_t node);

/* A new capture is archived there; or was there all the time, and the node is not told. */
void copies_world_put(struct copies_world *world, uint32_t node, uint32_t capture);
void copies_world_plant(struct copies_world *world, uint32_t node, uint32_t capture);

/* What the node has of it can no longer be read, and nobody is told. */
void copies_world_rot(struct copies_world *world, uint32_t node, uint32_t capture);

static inline bool copies_world_has(const struct copies_world *world, uint32_t node, uint32_t capture) {
    return world->nodes[node].disk.has[capture] != 0;
}

void copies_world_digest(const struct copies_world *world, struct digest *digest);

#endif

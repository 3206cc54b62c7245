/*
 * crowd_world - a simulated world of crowd nodes. For the experiments crowd-*.
 *
 * There is one object, which a node has or has not; all other objects are nobody's. The wrapper around each
 * crowd answers CROWD_ASKED at once, ends a search at its first finding, and joins again when it is alone, if
 * the world says so. All notices also go to the observers of the simulation.
 *
 * How a node comes to its first neighbours:
 *      crowd_world_install()   random ones, all nodes at time 0: as after long shuffling
 *      crowd_world_set_view()  those that the experiment chose, in every life from then on
 *      crowd_world_come()      by the bootstrap list, which names the nodes that came last, whether still
 * there or not: the list itself is the view (the paper's server), or its nodes are contacts
 */
#ifndef MNEMON_SIM_EXPERIMENTS_CROWD_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_CROWD_WORLD_H

#include "protocol/crowd/crowd.h"
#include "sim/world/sim.h"

enum { CROWD_WORLD_LIST_SIZE = 25 };          /* of the bootstrap list */
static const uint64_t CROWD_WORLD_OBJECT = 1; /* the one that nodes may have */

enum crowd_world_found { CROWD_WORLD_OPEN, CROWD_WORLD_FOUND, CROWD_WORLD_LOST };

/* The last search of a node. */
struct crowd_world_search {
    uint64_t number;
    uint64_t asked_at_us;
    uint64_t ended_at_us;
    enum crowd_world_found found;
    uint8_t hops; /* to the holder; 0 if it was lost */
};

struct crowd_world {
    struct program program;
    struct crowd_config config; /* of every node; self, seed and part are the node's own */
    struct sim *sim;
    uint32_t nodes_count;
    uint8_t *parts;                      /* [node]: enum crowd_part, from its next life on */
    bool *has_object;                    /* [node]: free to change */
    struct crowd_world_search *searches; /* [node] */

    bool *is_joining; /* [node]: it came by contacts, and none has told it of anybody yet */
    uint32_t *views;  /* [node * config.view_size]: what it is born with */
    uint8_t *view_counts;

    uint32_t list[CROWD_WORLD_LIST_SIZE]; /* the bootstrap list, oldest first */
    uint32_t list_count;

    bool gives_views;            /* a node that comes has the list as its view and does not join … */
    bool joins_as_well;          /* … but this lets it */
    bool joins_again;            /* on CROWD_ALONE, with the list of that time */
    bool keeps_found;            /* a node that has found the object has it from then on … */
    uint64_t transfer_us;        /* … after so long */
    bool is_withheld_by_tunnels; /* CROWD_TUNNEL gives nothing */
    uint32_t drop_ppm;           /* chance that a query is dropped, by any node … */
    bool is_drop_acknowledged;   /* … as if it had been taken */
    uint64_t dropped_count;      /* of such queries */
    uint32_t eager_searches_max; /* searches_max of node 0, if it is not 0; before its start */
    struct prng prng;            /* of the world: views, contacts */
};

/* Nodes are added, none is started. *world must stay where it is. */
enum err crowd_world_init(struct crowd_world *world, const struct sim_config *sim,
                          const struct crowd_config *config) MUST_CHECK;
void crowd_world_done(struct crowd_world *world);

/* The first `count` nodes begin at time 0 with random views of each other. */
void crowd_world_install(struct crowd_world *world, uint32_t count);

/* At most config.view_size of them; none: it is born without neighbours. */
void crowd_world_set_view(struct crowd_world *world, uint32_t node, const uint32_t *neighbours, size_t count);

/* A node starts now, by the bootstrap list, and is the newest on it from then on. */
enum err crowd_world_come(struct crowd_world *world, uint32_t node) MUST_CHECK;

/* CROWD_FIND; how it went: world->searches[node]. One at a time and node. */
enum err crowd_world_find(struct crowd_world *world, uint32_t node, uint64_t object, uint64_t number,
                          uint64_t at_us) MUST_CHECK;

/* The crowd of a node that is up, or NULL. */
const struct crowd *crowd_world_crowd(const struct crowd_world *world, uint32_t node);

/* Is it up, and not still joining? */
bool crowd_world_is_member(const struct crowd_world *world, uint32_t node);

#endif

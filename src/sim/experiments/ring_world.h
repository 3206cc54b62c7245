/*
 * ring_world - a simulated world of ring nodes, and what must hold in it. For the experiments ring-*.
 *
 * The checker knows everything: it looks into all nodes that are up and holds them to Zave's invariants. A
 * node counts as a member if it says so itself.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_RING_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_RING_WORLD_H

#include "protocol/ring/ring.h"
#include "sim/experiments/ring_liars.h"
#include "sim/world/sim.h"

struct ring_world {
    struct program program;
    struct ring_config config; /* of every node; self and seed are the node's own */
    struct sim *sim;
    uint32_t nodes_count;
    struct vnode *vnodes;   /* [node]: its first place */
    uint32_t *order;        /* nodes by ID */
    bool *is_installed;     /* [node]: begins its first life as a settled member */
    uint32_t fingers_count; /* of those that are installed; the farthest first */
    uint32_t known_count;   /* other places that those know; random ones */
    uint32_t experts_count; /* the first nodes: they know everybody */
    uint32_t *members;      /* scratch: indexes of members by ID */
    uint32_t members_count;
    uint32_t *installed; /* by ID */
    uint32_t installed_count;
    struct prng prng;
    struct ring_liars liars; /* lie and share are free to change */
};

/* Nodes are added, none is started. config->list_size must be set. *world must stay where it is. */
enum err ring_world_init(struct ring_world *world, const struct sim_config *sim,
                         const struct ring_config *config) MUST_CHECK;
void ring_world_done(struct ring_world *world);

/*
 * The first count nodes begin at time 0 as an ideal ring: nobody has to join, which takes long in large
 * worlds. fingers_count, known_count and experts_count say what else they know.
 */
void ring_world_install(struct ring_world *world, uint32_t count);

/* The ring of a node that is up, or NULL. */
const struct ring *ring_world_ring(const struct ring_world *world, uint32_t node);
bool ring_world_is_member(const struct ring_world *world, uint32_t node);

/* RING_JOIN through the given contact; UINT32_MAX: found a ring. */
enum err ring_world_join(struct ring_world *world, uint32_t node, uint32_t contact,
                         uint64_t at_us) MUST_CHECK;

/* The same with up to 16 members as contacts, as of now. */
enum err ring_world_join_members(struct ring_world *world, uint32_t node, uint64_t at_us) MUST_CHECK;

/* RING_FIND. */
enum err ring_world_find(struct ring_world *world, uint32_t node, struct ring_id key, uint64_t number,
                         uint64_t at_us) MUST_CHECK;

/* Members by ID into world->members. */
void ring_world_list_members(struct ring_world *world);

/* Where in world->members the first at or after id is, in the circle; after ring_world_list_members(). */
uint32_t ring_world_position(const struct ring_world *world, struct ring_id id);

/* The member that is responsible for the key; after ring_world_list_members(). */
uint32_t ring_world_owner(const struct ring_world *world, struct ring_id key);

/*
 * As if `dead` (UINT32_MAX: nobody) were not there: every member has a live successor, there are r + 1
 * principals (if that is asked for), and the successors make one ring in order that everybody leads to.
 * NULL, or what is broken.
 */
const char *ring_world_check(struct ring_world *world, uint32_t dead, bool with_principals);

/*
 * Run, looking at every step_us, until it is as an ideal ring. *ret_took_us: how long, also of a failure.
 * ERR_MISMATCH, and the run has failed, if it takes longer than at_most_us.
 */
enum err ring_world_settle(struct ring_world *world, uint64_t step_us, uint64_t at_most_us,
                           uint64_t *ret_took_us) MUST_CHECK;

/* What holds of every honest node, whatever others say: its list is in order. NULL, or what is broken. */
const char *ring_world_check_node(const struct ring_world *world, uint32_t node);

/* Has every node that is up the list and the predecessor of an ideal ring? NULL, or what is missing. */
const char *ring_world_check_ideal(struct ring_world *world, uint32_t *ret_node);

#endif

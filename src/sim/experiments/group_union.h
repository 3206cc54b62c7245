/*
 * group_union - thousands of replicas in groups that share members: the graph over which an update travels
 * if one group would be too large.
 *
 * Groups of about `group_size` are made and measured each for itself (group_costs.h, sites) and have each a
 * topology of its own (protocol/group/topology.h). Two neighbouring groups share two replicas, their corners,
 * which are members of both and of no third; so no single replica joins any two groups alone. Which groups
 * are neighbours:
 *
 *      tree        each has GROUP_UNION_CHILDREN below it
 *      mesh        the same, and each with the one before it too, so that a pair may fail whole
 *
 * Corners are chosen among those that are not behind a modem. Groups are places of their own: what a corner
 * measures in one says nothing about the other.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_GROUP_UNION_H
#define MNEMON_SIM_EXPERIMENTS_GROUP_UNION_H

#include "protocol/group/topology.h"

enum {
    GROUP_UNION_CHILDREN = 8,
    GROUP_UNION_LINKS_MAX = 64, /* of one replica: what a mirror takes by default */
    GROUP_UNION_REPLICAS_MAX = 1 << 17,
};

enum group_union_joins { GROUP_UNION_TREE, GROUP_UNION_MESH };

enum group_union_damage {
    GROUP_UNION_INTACT,
    GROUP_UNION_DEAD,    /* some are dead, whoever they are */
    GROUP_UNION_CORNERS, /* one corner of each pair is */
};

struct group_union_config {
    uint64_t seed;
    uint32_t replicas_count; /* 32 to GROUP_UNION_REPLICAS_MAX */
    uint32_t group_size;     /* at most so many are in a group */
    enum group_union_joins joins;
    enum topology_kind kind;
    enum group_union_damage damage;
    uint32_t dead_ppm; /* of all, for GROUP_UNION_DEAD */
    bool is_repaired;  /* topologies were made without the dead; otherwise they still have them */
};

struct group_union_link {
    uint32_t to;
    uint64_t bandwidth; /* bytes a second */
    uint64_t delay_us;
};

struct group_union_replica {
    bool is_dead;
    bool is_corner;
    bool has_modem;
    uint64_t line; /* bytes a second to and from all others together: what its fastest path carries */
    uint32_t links_count;
    struct group_union_link links[GROUP_UNION_LINKS_MAX];
};

struct group_union {
    struct group_union_config config;
    uint32_t groups_count;
    uint32_t pairs_count; /* of neighbouring groups */
    uint32_t origin; /* the publisher: of the last group, so far from most, with a good line, no corner */
    struct group_union_replica *replicas;
    uint32_t *hops;  /* [replica]: of the last walk; UINT32_MAX: cannot be reached */
    uint32_t *queue; /* of that walk */
};

/* ERR_MEMORY; done() is to be called after a failure too. */
enum err group_union_init(struct group_union *whole, const struct group_union_config *config) MUST_CHECK;
void group_union_done(struct group_union *whole);

/* Distances in hops from one that lives, over those that do, into whole->hops. Returns the farthest. */
uint32_t group_union_walk(struct group_union *whole, uint32_t from);

#endif

/*
 * group_world - a simulated world of one replication group. For the experiments group-*.
 *
 * Node 0 founds the group; others join through a node that the experiment names. Keys are made of the node's
 * number and signatures are hashes: cheap, and good enough among nodes that do not forge. A probe takes as
 * long as a short TCP transfer over that path would (probe_path.h) and is counted with its headers and
 * acknowledgements; both ends learn from it, as the paper has it.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_GROUP_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_GROUP_WORLD_H

#include "protocol/group/group.h"
#include "sim/world/sim.h"

enum {
    GROUP_WORLD_DATAGRAM_HEADERS_SIZE = 28 + 60, /* IPv4, UDP, encryption */
    GROUP_WORLD_SEGMENT_SIZE = 1460,
    GROUP_WORLD_SEGMENT_HEADERS_SIZE = 40,
};

struct group_world_traffic {
    uint64_t size; /* bytes, with all headers */
    uint64_t packets_count;
};

struct group_world_counts {
    uint64_t masters_count; /* times that somebody became master */
    uint64_t out_count;
    uint64_t asked_count;
    uint64_t blamed_count;
    uint64_t probes_count;
};

struct group_world {
    struct program program;
    struct group_config config; /* of every node; self, keys and seed are the node's own */
    struct sim *sim;
    uint32_t nodes_count;
    struct group_world_counts counts;
    struct group_world_traffic probes;
    uint64_t bandwidth;   /* bytes a second, of every path */
    bool has_broken_link; /* between these two, which group_world_reaches_all() then does not use */
    uint32_t broken_link[2];
    bool approves; /* a node that asks is let in; else none is, unless the group is open */
    enum err err;  /* of what was done in answer to notices */
};

/* Nodes are added, none is started. *world must stay where it is. */
enum err group_world_init(struct group_world *world, const struct sim_config *sim,
                          const struct group_config *config) MUST_CHECK;
void group_world_done(struct group_world *world);

struct peer group_world_peer(uint32_t node);

/* Node 0 starts now and founds the group; another starts now and joins through `contact`. */
enum err group_world_found(struct group_world *world) MUST_CHECK;
enum err group_world_join(struct group_world *world, uint32_t node, uint32_t contact) MUST_CHECK;

/* The group of a node that is up, or NULL. */
const struct group *group_world_group(const struct group_world *world, uint32_t node);

/* All datagrams and probes until now. */
struct group_world_traffic group_world_traffic(struct group_world *world);

/*
 * All nodes that are up are members of one topology that has exactly them in it. With `among` only
 * the nodes of that group of the network's are looked at (0 … 31); -1: all.
 */
bool group_world_is_settled(const struct group_world *world, int among);

/* Does an update that begins at this node reach all others that are up and in the same group of the
 * network's, handed on over what each node believes to be the topology, as far as partitions and
 * the broken link let it? */
bool group_world_reaches_all(const struct group_world *world, uint32_t from);

#endif

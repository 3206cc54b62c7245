/*
 * topology - which members of a group hand updates on to which others: the graph that the master computes
 * from the costs.
 *
 * Two generators. Both are deterministic: equal costs and rules give equal graphs.
 *
 *      tree      the paper's: a minimum spanning tree, then for each member with fewer than k edges its
 *                cheapest until it has k. Most of these keep a bridge: one failed link cuts the group.
 *      sparse    ours: from the complete graph the dearest edges are deleted while it stays k-connected
 *                (whichever k - 1 members fail, the others are in one piece) and any two members are at most
 *                ceil(log2 n) hops apart. The default.
 *
 * An edge may be deleted from a k-connected graph exactly if k paths without a common node join its ends
 * without it, so each of the n * (n - 1) / 2 tests is one small flow; and distances change only for members
 * whose every shortest way to one of the ends led over the edge. So n = 256 takes a third of a second.
 *
 * Two things that the rule alone gets wrong. Slow members: hops through a modem count as much as any, so good
 * edges would be deleted because a modem joins their ends, too; a member that is ten times farther from its
 * nearest than is usual, or not measured yet, therefore never lies between others. And hubs: whoever has more
 * edges than the cap gives some away, each for the cheapest other edge with which all rules hold. The cap is
 * a wish, connectivity and diameter are rules: topology_judge() says what came out.
 *
 * The first member is the master; the others follow it in this order when it is silent. Layout on the wire:
 * docs/protocol/group.md.
 */
#ifndef MNEMON_PROTOCOL_GROUP_TOPOLOGY_H
#define MNEMON_PROTOCOL_GROUP_TOPOLOGY_H

#include "protocol/group/costs.h"

enum {
    TOPOLOGY_K_DEFAULT = 2,
    TOPOLOGY_K_MAX = 8,
    TOPOLOGY_DEGREE_DEFAULT = 8,
    TOPOLOGY_EDGES_MAX = 4096, /* k * n for the greatest of both, twice */
    TOPOLOGY_HOPS_MAX = 8,     /* log2 of GROUP_MEMBERS_MAX */
    TOPOLOGY_SIZE_MAX = 1 + 8 + 1 + 2 + GROUP_MEMBERS_MAX * (PEER_SIZE_MAX + 2) + TOPOLOGY_EDGES_MAX * 7,
};

/* ---- graphs ---- */

enum topology_kind { TOPOLOGY_SPARSE, TOPOLOGY_TREE };

struct topology_rules {
    enum topology_kind kind;
    uint32_t k; /* 0: the default; at most TOPOLOGY_K_MAX; in small groups at most n - 1 */

    /* Sparse only. 0: the default, or 2 * k; at least k + 1 and 3; GROUP_MEMBERS_MAX: none. */
    uint32_t degree_max;
};

/* What the generators work with; the caller's, too large for a stack. */
struct topology_work {
    uint64_t edges[GRAPH_EDGES_MAX];
    struct graph_set levels[GRAPH_NODES_MAX][TOPOLOGY_HOPS_MAX + 1]; /* [from][hops]: the members there */
    struct graph_set relays;                                         /* members that may lie between others */
};

void topology_make(const struct topology_rules *rules, const struct costs *costs, struct topology_work *work,
                   struct graph *ret_graph);

/* k of the rules for a group of so many. */
uint32_t topology_k(const struct topology_rules *rules, uint32_t members_count);

/* ceil(log2 n): how far two members of a sparse topology may be apart. */
uint32_t topology_hops_max(uint32_t members_count);

/* Is the graph as the rules want it? Costs and caps of degrees do not matter here. */
bool topology_keeps_rules(const struct topology_rules *rules, const struct graph *graph);

struct topology_judgement {
    uint32_t edges_count;
    uint32_t degree_min;
    uint32_t degree_max;
    uint32_t hops_max;     /* of any two members; GRAPH_APART: not connected */
    uint32_t connectivity; /* members that must fail before it falls apart; counted up to TOPOLOGY_K_MAX */
    struct graph_weakness weakness;
    uint32_t unknown_count; /* edges whose cost nobody knows */
    uint64_t cost_us;       /* of the others together */
};

void topology_judge(const struct graph *graph, const struct costs *costs,
                    struct topology_judgement *ret_judgement);

/* ---- topologies ---- */

struct topology_edge {
    uint16_t a; /* of the members; a < b */
    uint16_t b;
    uint32_t cost_us; /* COSTS_UNKNOWN_US: nobody has measured it */
};

struct topology {
    uint64_t sequence; /* each topology of a group has a greater one than those before */
    uint32_t k;
    uint32_t members_count;
    uint32_t edges_count;
    struct peer members[GROUP_MEMBERS_MAX];         /* the master, then its successors in this order */
    struct topology_edge edges[TOPOLOGY_EDGES_MAX]; /* in the order of a, then b */
};

/* The edges from the graph. ERR_LIMIT if they are too many: then nothing is changed. */
enum err topology_set_edges(struct topology *topology, const struct graph *graph,
                            const struct costs *costs) MUST_CHECK;

/* The graph from the edges. At least one member. */
void topology_get_graph(const struct topology *topology, struct graph *ret_graph);

/* The index of the member at this address; members_count if there is none. */
uint32_t topology_find(const struct topology *topology, const struct address *address);

/*
 * Should `next` replace `current`? Only for a reason, because each change costs traffic and open transfers:
 * other members or another order of them, a current graph that breaks the rules while the next one does not,
 * or one that costs at most nine tenths by what is known now. costs are of next's members.
 */
bool topology_is_better(const struct topology *next, const struct topology *current,
                        const struct topology_rules *rules, const struct costs *costs);

/* ---- wire ---- */

/* One topology has one encoding. Returns what was written; TOPOLOGY_SIZE_MAX bytes are always enough. */
struct bytes topology_write(const struct topology *topology, uint8_t *memory, size_t memory_size);

/*
 * Bounds, order, addresses, that no member is there twice. It need not be connected, nor keep any rule: the
 * master may have its reasons. After an error *ret_topology holds anything.
 */
enum err topology_read(struct bytes bytes, struct topology *ret_topology,
                       struct err_detail *detail) MUST_CHECK;

#endif

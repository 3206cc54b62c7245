/*
 * network - the virtual network: decides when, how often and whether a datagram arrives.
 *
 * It holds no messages and no clock: network_route() is asked at sending time and answers with the arrival
 * times. A datagram passes, in this order:
 *
 *      partition  ->  uplink of the sender  ->  loss  ->  copies
 *      each copy: held while clogged, then latency + distance + jitter + access of both ends + detour
 *
 * Everything is integers and one seeded generator, so a seed gives the same fates on every machine. A change
 * of dials, partition or clog applies to what is sent from then on; what is in flight arrives.
 */
#ifndef MNEMON_SIM_WORLD_NETWORK_H
#define MNEMON_SIM_WORLD_NETWORK_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/map.h"
#include "base/prng.h"

enum {
    NETWORK_COPIES_MAX = 2,
    NETWORK_GROUPS_MAX = 32,
    NETWORK_LINKS_MAX = 1 << 20, /* links with settings of their own */
};

/* What holds for every link that has no settings of its own. All zero: instant, lossless, endless. */
struct network_dials {
    uint32_t latency_us;         /* one way */
    uint32_t jitter_us;          /* 0 … this, uniform, added to each copy */
    uint32_t distance_us;        /* added in proportion to the distance; this much per side of the plane */
    uint32_t loss_ppm;           /* of messages */
    uint32_t duplicate_ppm;      /* chance of a second copy, with a jitter of its own */
    uint32_t reorder_ppm;        /* chance that a copy takes a detour … */
    uint32_t reorder_us;         /* … of 0 … this */
    uint32_t corrupt_ppm;        /* chance that one to eight bits of a copy flip */
    uint32_t backlog_us_max;     /* longer than this nothing waits at an uplink, it is dropped; 0: no limit */
    uint64_t uplink_bytes_per_s; /* of every node; 0: no limit */
};

/* Instead of the dials, on one directed link. */
struct network_link {
    uint32_t latency_us;
    uint32_t jitter_us;
    uint32_t loss_ppm;
};

struct network_traffic {
    uint64_t sent_count;
    uint64_t sent_size;
    uint64_t received_count;
    uint64_t received_size;
};

struct network_node {
    struct network_traffic traffic;
    uint64_t uplink_free_at_us;
    uint64_t uplink_bytes_per_s; /* 0: as the dial says */
    uint64_t clogged_until_us;   /* everything to and from this node is held until then */
    uint32_t access_us;          /* added to everything to and from this node */
    uint16_t x;                  /* place on a plane of 65536 * 65536 */
    uint16_t y;
    uint8_t group; /* for partitions */
};

struct network_counters {
    struct network_traffic traffic;
    uint64_t lost_count;
    uint64_t blocked_count;   /* by a partition */
    uint64_t backlog_count;   /* dropped at an uplink */
    uint64_t duplicate_count; /* second copies */
    uint64_t corrupt_count;
};

struct network {
    struct network_dials dials;
    struct network_counters counters;
    struct network_node *nodes; /* one per node, zeroed, set by its owner as it likes */
    uint32_t nodes_count;
    uint32_t blocked[NETWORK_GROUPS_MAX]; /* bit h of [g]: nothing passes from group g to group h */
    bool is_partitioned;                  /* any bit of it */
    struct map links;                     /* (from, to) -> settings of that link */
    struct prng prng;
};

/* The largest integer whose square is not above the number. */
uint64_t network_square_root(uint64_t number);

enum err network_init(struct network *network, uint32_t nodes_count, uint64_t seed) MUST_CHECK;
void network_done(struct network *network);

/*
 * A datagram of size bytes leaves `from` for `to` now. Returns how many copies arrive, at most
 * NETWORK_COPIES_MAX, and when. Counts it as sent.
 */
unsigned network_route(struct network *network, uint64_t now_us, uint32_t from, uint32_t to, size_t size,
                       uint64_t ret_at_us[NETWORK_COPIES_MAX]);

/* Flip bits of a copy, with the chance of the dial. True if it did. */
bool network_corrupt(struct network *network, uint8_t *data, size_t size);

void network_received(struct network *network, uint32_t to, size_t size);

/* Settings of one directed link. ERR_LIMIT above NETWORK_LINKS_MAX, ERR_MEMORY. */
enum err network_set_link(struct network *network, uint32_t from, uint32_t to,
                          const struct network_link *link) MUST_CHECK;

/* Hold everything that is sent on this link before until_us. */
enum err network_clog_link(struct network *network, uint32_t from, uint32_t to, uint64_t until_us) MUST_CHECK;

/* Nothing passes from the nodes of group `from` to those of group `to`; for a cut both ways call it twice. */
void network_block(struct network *network, uint32_t from, uint32_t to);

/* No group is blocked, nothing is clogged. Groups and settings of links stay. */
void network_heal(struct network *network);

/* Give every node a random place on the plane, for dials.distance_us. */
void network_scatter(struct network *network);

/* One way, without jitter, detours and queues: what a perfect measurement would find. */
uint64_t network_latency_us(const struct network *network, uint32_t from, uint32_t to);

#endif

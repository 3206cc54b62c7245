/*
 * frontier_hosts - all hosts and registrable domains of a frontier: how many URLs each has, and which hosts
 * wait for a lane.
 *
 *      slots   [ . 2 . 0 . . 1 ]     which number a hash leads to, open addressing
 *      blocks  [ 0 1 2 … ][ … ]      hosts by number, 4,096 to a block: they never move
 *
 * Hosts are known by the keyed hash of their name and by a number that is given in the order of their
 * appearance; names are on disk. A host takes about 40 bytes, a domain about 24. Hosts that have waiting
 * URLs but no lane stand in one line, first come, first served. One thread.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_HOSTS_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_HOSTS_H

#include "base/bytes.h"
#include "base/err.h"

#define FRONTIER_HOST_NONE UINT32_MAX

struct frontier_lane;

struct frontier_host {
    uint64_t hash;
    uint32_t domain; /* number */
    uint32_t known_count;
    uint32_t waiting_count;
    uint32_t next : 30; /* in the line */
    uint32_t is_in_line : 1;
    uint32_t has_kept : 1;      /* the owner keeps something with it, on disk */
    struct frontier_lane *lane; /* NULL: none */
};

struct frontier_domain {
    uint64_t hash;
    uint32_t known_count;
};

/* Numbered things of one size that are found by a hash at their start. */
struct frontier_table {
    uint32_t *slots; /* number + 1, or 0; a power of two of them, at most three quarters used */
    size_t slots_count;
    uint8_t **blocks;
    size_t blocks_count;
    size_t count;
    size_t item_size;
};

struct frontier_hosts {
    struct frontier_table hosts;
    struct frontier_table domains;
    uint32_t line_first; /* FRONTIER_HOST_NONE: nobody waits for a lane */
    uint32_t line_last;
    size_t line_count;
};

void frontier_hosts_init(struct frontier_hosts *hosts);
void frontier_hosts_done(struct frontier_hosts *hosts);

static inline size_t frontier_hosts_count(const struct frontier_hosts *hosts) {
    return hosts->hosts.count;
}

/* The number of the host or of the domain with the hash, or FRONTIER_HOST_NONE. */
uint32_t frontier_hosts_find(const struct frontier_hosts *hosts, uint64_t hash);
uint32_t frontier_hosts_find_domain(const struct frontier_hosts *hosts, uint64_t hash);

/* Enter a host that is not there, with its domain, which may be. ERR_MEMORY; ERR_LIMIT above 2^30 hosts. */
enum err frontier_hosts_put(struct frontier_hosts *hosts, uint64_t hash, uint64_t domain_hash,
                            uint32_t *ret_number) MUST_CHECK;

/* The number must be one that was given. */
struct frontier_host *frontier_hosts_at(const struct frontier_hosts *hosts, uint32_t number);
struct frontier_domain *frontier_hosts_domain_at(const struct frontier_hosts *hosts, uint32_t number);

/* The end of the line, and its head, which is taken out: FRONTIER_HOST_NONE if nobody waits. */
void frontier_hosts_line_up(struct frontier_hosts *hosts, uint32_t number);
uint32_t frontier_hosts_next_in_line(struct frontier_hosts *hosts);

size_t frontier_hosts_memory_size(const struct frontier_hosts *hosts);

#endif

/*
 * estimate - what a member knows of its path to another: round trip and bandwidth, damped.
 *
 * A new value counts a tenth, what was known nine tenths (the paper's), so that one congested minute does not
 * change the topology; the first value is taken as it is. Bandwidth is also learned from real transfers, but
 * only from those of at least 32 KiB: shorter ones measure how a connection begins.
 *
 * The cost of a path is the time that an update of some size takes: round trip + size / bandwidth. (The paper
 * prints bandwidth / delay, which is a benefit and cannot be minimised.) If one of the two is not measured
 * yet it is taken to be that of a modem: so what is known only half is dearer than what is known, still in
 * order of what is known, and cheaper than what is not known at all.
 *
 * A report is a list of estimates for the master, in a datagram or several. Layout: docs/protocol/group.md.
 */
#ifndef MNEMON_PROTOCOL_GROUP_ESTIMATE_H
#define MNEMON_PROTOCOL_GROUP_ESTIMATE_H

#include "protocol/group/costs.h"

enum {
    ESTIMATE_TRANSFER_SIZE_MIN = 32 << 10, /* bytes; less says nothing about bandwidth */
    ESTIMATE_SIZE_REFERENCE = 1000000,     /* bytes; of the update that costs are reckoned for */
    ESTIMATE_ROUND_TRIP_US_MAX = 60000000, /* beyond, it is no path */
    ESTIMATE_ROUND_TRIP_US_ASSUMED = 1000000,
    ESTIMATE_BANDWIDTH_ASSUMED = 3600,                               /* bytes a second: 28.8 kbit/s */
    ESTIMATE_ENTRY_SIZE_MAX = PEER_ADDRESS_SIZE_MAX + 4 + 5 + 6 + 5, /* in a report */
};
static const uint64_t ESTIMATE_BANDWIDTH_MAX = UINT64_C(1) << 40; /* bytes a second */

/* All zero: nothing is known. */
struct estimate {
    uint32_t round_trip_us; /* 0: not measured */
    uint32_t round_trips_count;
    uint64_t bandwidth; /* bytes a second; 0: not measured */
    uint32_t transfers_count;
    uint64_t round_trip_at_us; /* when it was measured last */
    uint64_t bandwidth_at_us;
};

/* False if it is too long to be true; then nothing is changed. */
bool estimate_learn_round_trip(struct estimate *estimate, uint64_t sample_us, uint64_t now_us);

/* So many bytes came or went, from the first to the last of them in so long. False if they are too few to
 * say anything. */
bool estimate_learn_transfer(struct estimate *estimate, uint64_t size, uint64_t duration_us, uint64_t now_us);

static inline bool estimate_is_known(const struct estimate *estimate) {
    return estimate->round_trip_us != 0 || estimate->bandwidth != 0;
}

/* The cost of an update of `size` bytes, at most COSTS_US_MAX; COSTS_UNKNOWN_US if nothing is known. */
uint32_t estimate_cost_us(const struct estimate *estimate, uint64_t size);

/* ---- reports ---- */

struct estimate_entry {
    struct address about;
    struct estimate estimate; /* known, in part at least */
};

/*
 * As many of the entries as fit, from the first on; returns how many. memory_size must hold one at least.
 * Counts are not written, ages are, to the second.
 */
size_t estimate_write_report(const struct estimate_entry *entries, size_t entries_count, uint64_t now_us,
                             void *memory, size_t memory_size, struct bytes *ret_report);

/* Nobody is in it twice. Ages become times before now_us, at the earliest 0; counts are 1. */
enum err estimate_read_report(struct bytes report, uint64_t now_us,
                              struct estimate_entry out[GROUP_MEMBERS_MAX], size_t *ret_count) MUST_CHECK;

#endif

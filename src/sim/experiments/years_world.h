/*
 * years_world - years of a ring of the daemon's machines (copies_world.h), and which objects are lost.
 *
 * Simulated: what each machine decides, asks and fetches, nodes that leave for good and come new, outages,
 * disks that are lost or full, lines on which an object takes long. Idealised: everybody knows at once who is
 * up (the ring itself is what ring_world.h simulates), and none is given up for taking long. An object stands
 * for many captures: if its transfer is cut off, it goes on later where it was. A process that comes back
 * knows nothing but what is on its disk.
 *
 * A day lasts YEARS_DAY_US of the machine's time, so that years can be run at all: its fixed times, such as
 * the 10 s until a silent node is given up and the 15 s until it is asked again about a capture, are hours
 * then.
 *
 * An object stands for many captures near it. It is kept as long as a node that is up or will come back has
 * it, and dark while none of those is up. Equal configurations give equal worlds.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_YEARS_WORLD_H
#define MNEMON_SIM_EXPERIMENTS_YEARS_WORLD_H

#include "sim/experiments/copies_world.h"

static const uint64_t YEARS_DAY_US = UINT64_C(100) * 1000000;

/* What happens at half time to a third of the nodes, or to all of the first site. */
enum years_blow { YEARS_NO_BLOW, YEARS_AWAY, YEARS_GONE };

struct years_config {
    uint64_t seed;
    uint32_t nodes_count;
    uint32_t objects_count;
    uint32_t copies;
    uint64_t duration_us;
    uint64_t lifetime_us;   /* mean, until a node leaves for good and a new one comes elsewhere */
    uint64_t up_us;         /* mean, between outages */
    uint64_t outage_us;     /* mean, of a short outage */
    uint64_t long_us;       /* mean, of a long one */
    uint32_t long_ppm;      /* of the outages are long */
    uint64_t disk_us;       /* mean, until a node loses its disk and goes on; 0: never */
    uint32_t small_percent; /* of the nodes have too small a disk … */
    uint32_t large_percent; /* … and the others one for so many percent of the mean; 0: for 400 */
    uint32_t born_percent;  /* of the objects are stored in the course of the time */
    uint64_t object_us;     /* how long an object is on the line */
    uint64_t compare_us;
    uint64_t grace_us;
    bool keeps_surplus; /* while half of the disk is free */
    bool is_idle;       /* nothing is repaired */
    enum years_blow blow;
    uint32_t sites_count; /* half of the nodes stand at the first, and that is what is struck; 0: no sites */
    bool counts_sites;    /* holders are chosen by them */
    const uint32_t *uptimes_ppm; /* of a node, by lot one of these instead of the means above; NULL: none */
    uint32_t uptimes_count;
};

struct years_object {
    bool is_born;
    bool is_lost;
    uint32_t copies_count; /* on nodes that are up or will come back */
    uint32_t up_count;     /* of these */
    uint64_t dark_since_us;
};

struct years_counts {
    uint64_t leaves_count;
    uint64_t outages_count;
    uint64_t disks_count;
    uint64_t compared_count;
    uint64_t received_count;
    uint64_t copies_sum; /* of every day */
    uint64_t kept_sum;   /* objects, likewise */
    uint64_t full_sum;   /* nodes whose disk is full, likewise */
    uint64_t dark_sum;   /* objects that are on no node that is up, of the days from half time to 30 later */
    uint64_t struck_count; /* objects that were lost in the moment of the blow */
    uint64_t days_count;
};

struct years_life {
    uint64_t leaves_at_us;
    uint64_t change_at_us; /* the event that counts */
    uint32_t uptime_ppm;
};

struct years_world {
    struct years_config config;
    struct copies_world world;
    struct years_object *objects;
    struct years_life *lives; /* [node] */
    struct years_counts counts;
    uint64_t copies_count;
    uint64_t born_count;
    uint64_t lost_count;
    uint64_t dark_us; /* of all objects together, until they were to be had again */
};

enum err years_world_init(struct years_world *years, const struct years_config *config) MUST_CHECK;
void years_world_done(struct years_world *years);

enum err years_world_run(struct years_world *years) MUST_CHECK;

/* dark_us as it would be if all objects were to be had from now on. */
uint64_t years_world_dark_us(const struct years_world *years);
void years_world_digest(const struct years_world *years, struct digest *digest);

#endif

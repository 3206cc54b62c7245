/*
 * swarm - the faults of one run, drawn from its seed.
 *
 * Swarm testing (Groce et al. 2012, and TigerBeetle's VOPR): a run does not suffer all faults a little but
 * some at random strength and others not at all, because a fault that is always there hides what only shows
 * in its absence. The caller says which classes its protocol claims to survive.
 *
 * A run has two phases. While faults last: swarm_run_until(). Then swarm_heal() ends all of them and starts
 * every node that is not gone; from there the protocol owes progress, which the caller checks after a
 * stated virtual time.
 */
#ifndef MNEMON_TESTS_SIM_SWARM_H
#define MNEMON_TESTS_SIM_SWARM_H

#include "base/buf.h"
#include "sim/world/sim.h"

/* Bits. First those that hold for the whole run, then those that strike now and then. */
enum swarm_fault {
    SWARM_JITTER = 1 << 0,
    SWARM_LOSS = 1 << 1,
    SWARM_DUPLICATE = 1 << 2,
    SWARM_REORDER = 1 << 3,
    SWARM_CORRUPT = 1 << 4,
    SWARM_SLOW_UPLINK = 1 << 5,
    SWARM_UNSYNCED = 1 << 6, /* crashes lose and tear what was not synced */
    SWARM_SLOW_DISK = 1 << 7,
    SWARM_LATE_START = 1 << 8,

    SWARM_CRASH = 1 << 9,
    SWARM_PARTITION = 1 << 10, /* of two to four groups, sometimes one-way */
    SWARM_CLOG = 1 << 11,      /* a link or a node */
    SWARM_DISK_FULL = 1 << 12,
    SWARM_DISK_ERROR = 1 << 13,
    SWARM_ROT = 1 << 14,
    SWARM_WIPE = 1 << 15,  /* crash with loss of the disk */
    SWARM_LEAVE = 1 << 16, /* for ever */

    /* What "durable before acknowledged" must survive: nothing that destroys synced data. */
    SWARM_RECOVERABLE = (1 << 14) - 1,
    SWARM_ALL = (1 << 17) - 1,
};

enum { SWARM_STRIKES_FIRST = 9, SWARM_FAULTS_COUNT = 17 };

struct swarm_config {
    uint64_t seed;
    unsigned faults;    /* allowed; each is then on or off by a coin */
    uint64_t period_us; /* the protocol's own rhythm; faults come and last some to many of these */
    uint32_t down_max;  /* nodes down at the same time; 0: all but one */
};

struct swarm {
    struct swarm_config config;
    struct sim *sim;
    struct prng prng;
    unsigned faults;                          /* that are on in this run */
    uint64_t interval_us[SWARM_FAULTS_COUNT]; /* mean time between two strikes */
    uint64_t strike_at_us[SWARM_FAULTS_COUNT];
    uint32_t struck_count[SWARM_FAULTS_COUNT];
    struct network_dials calm_network; /* as found, and left at the end */
    struct disk_dials calm_disk;
};

/*
 * Draw the faults of this run, set the dials of the simulation and start all its nodes, some of them later.
 * The simulation must outlive the swarm.
 */
void swarm_init(struct swarm *swarm, const struct swarm_config *config, struct sim *sim);

/* As sim_run_until(), with faults striking on the way. */
enum err swarm_run_until(struct swarm *swarm, uint64_t until_us) MUST_CHECK;

/* No fault from now on, and every node that can be is up within a microsecond of virtual time. */
void swarm_heal(struct swarm *swarm);

/* One line for people: which faults were on and how often they struck. */
void swarm_describe(const struct swarm *swarm, struct buf *out);

#endif

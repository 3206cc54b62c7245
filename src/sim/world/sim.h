/*
 * sim - the deterministic simulator: thousands of nodes, one virtual clock, one thread.
 *
 *      experiment ── sim_start_at, sim_command_at, sim_crash … ──> ┌─────────────────────────────┐
 *      sim_run_until() pops the next event                         │ queue (time, sequence)      │
 *            │                                                     └─────────────────────────────┘
 *            ▼                                                            ▲            ▲
 *      program->step(state, event, outbox) ── ACTION_SEND ──> network ────┘            │
 *                                          ── ACTION_SAVE ──> slots, disk ─────────────┘
 *                                          ── ACTION_NOTICE ──> observers
 *            └── then the observers' checks
 *
 * The same seed and the same calls give the same run, bit for bit, on every machine and compiler;
 * sim_digest() says so. Nothing depends on real time, addresses in memory or hash order. There are no
 * globals: many simulations live in one process, each used by one thread at a time.
 *
 * Everything is bounded by struct sim_config. Messages above a limit are dropped and counted, as a network
 * would; running out of real memory ends the run with ERR_MEMORY. No allocation per event: messages live
 * in a pool, states in one piece per node.
 *
 * Node i has the address 10.x.y.z:7070 with x.y.z = i in base 256.
 */
#ifndef MNEMON_SIM_WORLD_SIM_H
#define MNEMON_SIM_WORLD_SIM_H

#include "base/err.h"
#include "sim/world/digest.h"
#include "sim/world/disk.h"
#include "sim/world/network.h"
#include "sim/world/program.h"

enum {
    SIM_NODES_MAX = 1 << 24,
    SIM_OBSERVERS_MAX = 8,
    SIM_REASON_SIZE_MAX = 160,
    SIM_FAILURE_TEXT_SIZE_MAX = 320
};
static const uint64_t SIM_SECOND_US = 1000000;

/* 0 stands for the default in parentheses. */
struct sim_config {
    uint64_t seed;
    uint32_t nodes_max;         /* required; at most SIM_NODES_MAX */
    uint32_t messages_max;      /* in flight, of all nodes (16 per node, at least 65536) */
    uint32_t inbound_max;       /* in flight towards one node (4096) */
    uint64_t clock_skew_us_max; /* each life's clock is ahead of virtual time by 0 … this (0) */
    struct network_dials network;
    struct disk_dials disk;
};

enum sim_status {
    SIM_UNBORN, /* added, never started */
    SIM_UP,
    SIM_DOWN, /* crashed; may start again with what was durable */
    SIM_GONE, /* for ever */
};

struct sim_counters {
    uint64_t events_count; /* steps of programs */
    uint64_t notices_count;
    uint64_t failed_saves_count; /* groups that were tried again */
    uint64_t crashes_count;
    uint64_t unroutable_count;  /* messages to addresses that are no node's */
    uint64_t undelivered_count; /* arrived at a node that was not up */
    uint64_t overflow_count;    /* dropped because of messages_max or inbound_max */
};

struct sim;

/* Watches a run. Each function may be NULL. Registered once, called in order of registration. */
struct sim_observer {
    void *context;

    /* A program appended ACTION_NOTICE. */
    void (*notice)(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes);

    /*
     * After every step, with the node that stepped: NULL, or why the run has failed. The text must live
     * until the function is called again.
     */
    const char *(*check)(void *context, const struct sim *sim, uint32_t node);
};

struct sim_failure {
    uint64_t seed;
    uint64_t at_us;
    uint64_t event_number; /* counters.events_count of the step that failed */
    uint32_t node;
    char reason[SIM_REASON_SIZE_MAX];
};

/* Returns NULL when out of memory. */
struct sim *sim_new(const struct sim_config *config);
void sim_free(struct sim *sim);

/* One more node, not yet started. The program and its config are borrowed for the whole run. */
enum err sim_add(struct sim *sim, const struct program *program, void *config, uint32_t *ret_node) MUST_CHECK;

/* As many as there may be, of one kind. */
enum err sim_add_all(struct sim *sim, const struct program *program, void *config) MUST_CHECK;

void sim_observe(struct sim *sim, const struct sim_observer *observer);

/* ---- lives ---- */

/*
 * Begin a life at the given time, or now if that has passed: EVENT_RESTORED for each intact slot, then
 * EVENT_START. Nothing happens to a node that is up by then or gone. The last call counts.
 */
void sim_start_at(struct sim *sim, uint32_t node, uint64_t at_us);

/*
 * The node stops between two steps: memory and, by the disk's dials, what it had not synced are lost.
 * Nothing happens to a node that is not up.
 */
void sim_crash(struct sim *sim, uint32_t node);

/* The same, and the disk is empty. It may start again, as a machine that was replaced. */
void sim_wipe(struct sim *sim, uint32_t node);

/* The node stops for ever. */
void sim_leave(struct sim *sim, uint32_t node);

/* ---- driving ---- */

/* EVENT_COMMAND for the node, at most STEP_MESSAGE_SIZE_MAX bytes. Lost if the node is not up then. */
enum err sim_command_at(struct sim *sim, uint32_t node, uint64_t at_us, uint32_t code, uint64_t number,
                        struct bytes bytes) MUST_CHECK;

/*
 * Carry out all events up to and including until_us, which then is the time. ERR_MISMATCH: a check failed,
 * see sim_failure(). ERR_MEMORY. After an error the run stays where it is.
 */
enum err sim_run_until(struct sim *sim, uint64_t until_us) MUST_CHECK;

/* Fail from outside of a step: for what is checked at the end, such as liveness. */
void sim_fail(struct sim *sim, uint32_t node, const char *reason);

/* ---- looking ---- */

uint64_t sim_now_us(const struct sim *sim);
uint64_t sim_seed(const struct sim *sim);
uint32_t sim_nodes_count(const struct sim *sim);
enum sim_status sim_status(const struct sim *sim, uint32_t node);
uint32_t sim_life(const struct sim *sim, uint32_t node); /* lives begun so far */

/* The program's state, or NULL while the node is not up. */
const void *sim_state(const struct sim *sim, uint32_t node);

struct address sim_address(uint32_t node);

/* False if the address is no node's. */
bool sim_node_of(const struct sim *sim, const struct address *address, uint32_t *ret_node);

const struct sim_counters *sim_counters(const struct sim *sim);
const struct sim_failure *sim_failure(const struct sim *sim); /* NULL if nothing failed */
struct digest sim_digest(const struct sim *sim);

/* Mix in what has happened so far; nothing for NULL, a world that could not be made. */
void sim_digest_into(const struct sim *sim, struct digest *digest);

/* "seed 7 failed at 4.603870 s, event 306, node 6: …", ended by a zero byte. Returns out. */
const char *sim_failure_format(const struct sim_failure *failure, char out[SIM_FAILURE_TEXT_SIZE_MAX]);

/* ---- the world's dials, free to change while no event is carried out ---- */

struct network *sim_network(struct sim *sim);
struct disk_dials *sim_disk_dials(struct sim *sim);

/* The node's disk, made on first use. NULL when out of memory. */
struct disk *sim_disk(struct sim *sim, uint32_t node);

/* The same, but NULL if the node has not used it yet. */
struct disk *sim_disk_if_used(struct sim *sim, uint32_t node);

#endif

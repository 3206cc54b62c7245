/*
 * story - one run of the counter under swarm faults, from its seed to its verdict.
 *
 * Safety, after every step: no node shows more than was issued, knows less of itself than it ever
 * acknowledged, or goes back within a life. Liveness, within a bounded virtual time after the faults end:
 * everything counted is durable, all totals are equal and hold at least what was acknowledged.
 */
#ifndef MNEMON_TESTS_SIM_STORY_H
#define MNEMON_TESTS_SIM_STORY_H

#include "base/buf.h"
#include "base/err.h"
#include "counter.h"
#include "sim/world/sim.h"

struct story {
    uint64_t seed;
    uint32_t nodes_count; /* 2 … COUNTER_NODES_MAX */
    enum counter_bug bug;
};

struct story_result {
    bool has_failed;
    struct sim_failure failure;
    struct digest digest;
    uint64_t events_count;
    uint64_t issued_count;
    uint64_t acknowledged_count;
    uint64_t healed_us; /* virtual time from the end of faults to agreement */
};

/* "acknowledges-early"; COUNTER_CORRECT is "none". */
const char *story_bug_name(enum counter_bug bug);

/* *out, unless NULL, gets a line about the faults. ERR_MEMORY; a run that fails its checks is ERR_OK. */
enum err story_run(const struct story *story, struct story_result *ret_result, struct buf *out) MUST_CHECK;

#endif

#include "story.h"

#include <stdlib.h>

#include "base/wire.h"
#include "swarm.h"

static const uint64_t PERIOD_US = 100000;
static const uint64_t FAULTS_US = 60 * 100000;  /* 60 periods of faults and increments … */
static const uint64_t HEALED_US = 100 * 100000; /* … then agreement within 100: 64 nodes need about 12 */

/* What the outside world knows, and what a node showed last. */
struct witness {
    struct counter_config config;
    uint64_t issued[COUNTER_NODES_MAX];
    uint64_t acknowledged[COUNTER_NODES_MAX];
    uint64_t shown[COUNTER_NODES_MAX][COUNTER_NODES_MAX]; /* [node]: its vector after its last step */
    uint32_t shown_life[COUNTER_NODES_MAX];
};

const char *story_bug_name(enum counter_bug bug) {
    static const char *const names[COUNTER_BUGS_COUNT] = {
        "none",         "acknowledges-early", "acknowledges-newest", "merges-by-adding",
        "trusts-order", "trusts-messages",    "forgets-saved",       "stays-silent",
    };
    return names[bug];
}

/* ---- the counter as a program ---- */

static enum err program_init(void *state, const struct birth *birth) {
    counter_init(state, birth->config, birth->index, birth->seed);
    return ERR_OK;
}

static void program_step(void *state, const struct event *event, struct outbox *out) {
    counter_step(state, event, out);
}

static const struct program counter_program = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .actions_max = COUNTER_ACTIONS_MAX,
    .memory_size = COUNTER_MEMORY_SIZE,
    .slots_count = 1,
    .init = program_init,
    .step = program_step,
};

/* ---- safety ---- */

static void on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    (void)sim;
    ASSERT(code == COUNTER_ACKNOWLEDGED);
    struct witness *witness = context;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t count = wire_read_varint(&reader, COUNTER_COUNT_MAX);
    if (count > witness->acknowledged[node]) {
        witness->acknowledged[node] = count;
    }
}

static const char *check_step(void *context, const struct sim *sim, uint32_t node) {
    struct witness *witness = context;
    const struct counter *counter = sim_state(sim, node);
    if (counter->counted < witness->acknowledged[node]) {
        return "safety: the node counts less than it acknowledged";
    }
    bool is_new_life = witness->shown_life[node] != sim_life(sim, node);
    witness->shown_life[node] = sim_life(sim, node);
    for (uint32_t i = 0; i < witness->config.peers_count; i++) {
        if (counter->counts[i] > witness->issued[i]) {
            return "safety: the node shows more than was issued";
        }
        if (!is_new_life && counter->counts[i] < witness->shown[node][i]) {
            return "safety: a count went back within a life";
        }
        witness->shown[node][i] = counter->counts[i];
    }
    return NULL;
}

/* ---- liveness ---- */

static uint64_t sum(const uint64_t *counts, uint32_t count) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += counts[i];
    }
    return total;
}

/* NULL where all is well; otherwise what *ret_node still lacks. */
static const char *find_disagreement(const struct witness *witness, const struct sim *sim,
                                     uint32_t *ret_node) {
    uint64_t acknowledged = sum(witness->acknowledged, witness->config.peers_count);
    const struct counter *first = sim_state(sim, 0);
    for (uint32_t i = 0; i < sim_nodes_count(sim); i++) {
        const struct counter *counter = sim_state(sim, i);
        *ret_node = i;
        if (counter == NULL) {
            return "liveness: the node is not up";
        }
        if (counter->counts[i] != counter->counted) {
            return "liveness: an increment never became durable";
        }
        if (counter_total(counter) < acknowledged) {
            return "liveness: acknowledged increments are missing";
        }
        if (counter_total(counter) != counter_total(first)) {
            return "liveness: totals differ";
        }
    }
    return NULL;
}

static enum err heal(struct swarm *swarm, const struct witness *witness, uint64_t *ret_healed_us) {
    struct sim *sim = swarm->sim;
    uint64_t start_us = sim_now_us(sim);
    swarm_heal(swarm);
    for (;;) {
        enum err err = swarm_run_until(swarm, sim_now_us(sim) + PERIOD_US);
        if (err != ERR_OK) {
            return err;
        }
        uint32_t node;
        const char *reason = find_disagreement(witness, sim, &node);
        *ret_healed_us = sim_now_us(sim) - start_us;
        if (reason == NULL) {
            return ERR_OK;
        }
        if (*ret_healed_us > HEALED_US) {
            sim_fail(sim, node, reason);
            return ERR_MISMATCH;
        }
    }
}

/* ---- the run ---- */

/* Increments at random nodes and times, one per period on average; then the end of all faults. */
static enum err act(struct swarm *swarm, struct witness *witness, uint64_t *ret_healed_us) {
    struct prng prng;
    prng_init_stream(&prng, sim_seed(swarm->sim), 2);
    while (sim_now_us(swarm->sim) < FAULTS_US) {
        uint64_t at_us = sim_now_us(swarm->sim) + prng_exponential(&prng, PERIOD_US);
        enum err err = swarm_run_until(swarm, at_us);
        if (err != ERR_OK) {
            return err;
        }
        uint32_t node = (uint32_t)prng_below(&prng, witness->config.peers_count);
        uint64_t count = prng_between(&prng, 1, 3);
        witness->issued[node] += count;
        for (uint64_t i = 0; i < count; i++) {
            err = sim_command_at(swarm->sim, node, at_us + 10 * i, COUNTER_INCREMENT, 0, bytes_of(NULL, 0));
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    return heal(swarm, witness, ret_healed_us);
}

static enum err add_nodes(struct sim *sim, struct witness *witness) {
    for (uint32_t i = 0; i < witness->config.peers_count; i++) {
        uint32_t node;
        enum err err = sim_add(sim, &counter_program, &witness->config, &node);
        if (err != ERR_OK) {
            return err;
        }
        witness->config.peers[node] = sim_address(node);
    }
    sim_observe(sim, &(struct sim_observer){witness, on_notice, check_step});
    return ERR_OK;
}

static enum err play(const struct story *story, struct sim *sim, struct witness *witness,
                     struct story_result *result, struct buf *out) {
    struct swarm_config config = {
        .seed = prng_mix(story->seed),
        .faults = SWARM_RECOVERABLE,
        .period_us = PERIOD_US,
    };
    struct swarm swarm;
    swarm_init(&swarm, &config, sim);
    enum err err = act(&swarm, witness, &result->healed_us);
    const struct sim_failure *failure = sim_failure(sim);
    if (failure != NULL) {
        result->has_failed = true;
        result->failure = *failure;
        err = ERR_OK;
    }
    result->digest = sim_digest(sim);
    result->events_count = sim_counters(sim)->events_count;
    result->issued_count = sum(witness->issued, story->nodes_count);
    result->acknowledged_count = sum(witness->acknowledged, story->nodes_count);
    if (out != NULL) {
        swarm_describe(&swarm, out);
        err = err != ERR_OK ? err : out->err;
    }
    return err;
}

enum err story_run(const struct story *story, struct story_result *ret_result, struct buf *out) {
    ASSERT(story->nodes_count >= 2 && story->nodes_count <= COUNTER_NODES_MAX);
    struct sim_config config = {
        .seed = story->seed,
        .nodes_max = story->nodes_count,
        .clock_skew_us_max = 3600 * SIM_SECOND_US,
        .network = {.latency_us = 5000, .jitter_us = 1000},
        .disk = {.latency_us = 2000},
    };
    struct story_result result = {0};
    struct sim *sim = sim_new(&config);
    struct witness *witness = calloc(1, sizeof *witness);
    enum err err = sim == NULL || witness == NULL ? ERR_MEMORY : ERR_OK;
    if (err != ERR_OK) {
        goto out;
    }
    witness->config.peers_count = story->nodes_count;
    witness->config.period_us = PERIOD_US;
    witness->config.bug = story->bug;
    err = add_nodes(sim, witness);
    err = err != ERR_OK ? err : play(story, sim, witness, &result, out);
    if (err == ERR_OK) {
        *ret_result = result;
    }
out:
    free(witness);
    sim_free(sim);
    return err;
}

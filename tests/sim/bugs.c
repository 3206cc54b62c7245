/*
 * The proof that the simulator finds bugs: each planted bug of the counter within a bounded number of seeds,
 * and none in the correct one over many more.
 */
#include "../unit/allocations.h"
#include "../unit/unit.h"
#include "story.h"
#include "swarm.h"

enum { NODES_COUNT = 8, CORRECT_SEEDS_COUNT = 1000 };

static struct story_result run(uint64_t seed, uint32_t nodes_count, enum counter_bug bug) {
    struct story_result result;
    assert_int_equal(story_run(&(struct story){seed, nodes_count, bug}, &result, NULL), ERR_OK);
    return result;
}

/* The first seed from 1 that shows the bug, with the kind of reason it must have. */
static void assert_found(enum counter_bug bug, uint64_t seeds_max, const char *reason) {
    for (uint64_t seed = 1; seed <= seeds_max; seed++) {
        struct story_result result = run(seed, NODES_COUNT, bug);
        if (result.has_failed) {
            print_message("# %s: found by seed %llu: %s\n", story_bug_name(bug), (unsigned long long)seed,
                          result.failure.reason);
            assert_non_null(strstr(result.failure.reason, reason));
            assert_int_equal(result.failure.seed, seed);
            return;
        }
    }
    fail_msg("%s: not found by %llu seeds", story_bug_name(bug), (unsigned long long)seeds_max);
}

static void finds_an_acknowledgement_before_it_is_durable(void **state) {
    (void)state;
    assert_found(COUNTER_ACKNOWLEDGES_EARLY, 100, "less than it acknowledged");
}

static void finds_an_acknowledgement_of_more_than_is_durable(void **state) {
    (void)state;
    assert_found(COUNTER_ACKNOWLEDGES_NEWEST, 500, "less than it acknowledged");
}

static void finds_a_merge_by_adding(void **state) {
    (void)state;
    assert_found(COUNTER_MERGES_BY_ADDING, 10, "more than was issued");
}

static void finds_trust_in_the_order_of_messages(void **state) {
    (void)state;
    assert_found(COUNTER_TRUSTS_ORDER, 100, "went back");
}

static void finds_trust_in_corrupt_messages(void **state) {
    (void)state;
    assert_found(COUNTER_TRUSTS_MESSAGES, 100, "safety");
}

static void finds_a_restart_from_zero(void **state) {
    (void)state;
    assert_found(COUNTER_FORGETS_SAVED, 100, "less than it acknowledged");
}

static void finds_silence_after_a_restart(void **state) {
    (void)state;
    assert_found(COUNTER_STAYS_SILENT, 100, "liveness");
}

static void finds_nothing_in_the_correct_counter(void **state) {
    (void)state;
    uint64_t acknowledged_count = 0;
    for (uint64_t seed = 1; seed <= CORRECT_SEEDS_COUNT; seed++) {
        struct story_result result = run(seed, 2 + (uint32_t)(seed % 15), COUNTER_CORRECT);
        if (result.has_failed) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, result.failure.reason);
        }
        acknowledged_count += result.acknowledged_count;
    }
    assert_true(acknowledged_count > 50 * CORRECT_SEEDS_COUNT); /* the runs did something */
}

static void repeats_a_run_bit_for_bit(void **state) {
    (void)state;
    struct digest digests[2] = {run(7, NODES_COUNT, COUNTER_CORRECT).digest,
                                run(7, NODES_COUNT, COUNTER_CORRECT).digest};
    struct digest other = run(8, NODES_COUNT, COUNTER_CORRECT).digest;
    assert_memory_equal(&digests[0], &digests[1], sizeof digests[0]);
    assert_memory_not_equal(&digests[0], &other, sizeof other);
}

/* Fail the 1st, 2nd, 3rd … allocation until a run is clean; the first ones singly, then in strides. */
static void ends_in_an_error_when_memory_runs_out(void **state) {
    (void)state;
    size_t succeed_count = 0;
    size_t failed_runs_count = 0;
    bool is_clean = false;
    while (!is_clean) {
        struct story_result result;
        allocations_left = succeed_count;
        enum err err = story_run(&(struct story){2, 4, COUNTER_CORRECT}, &result, NULL);
        is_clean = allocations_left > 0;
        allocations_left = SIZE_MAX;
        assert_int_equal(err, is_clean ? ERR_OK : ERR_MEMORY);
        failed_runs_count += !is_clean;
        succeed_count += succeed_count < 200 ? 1 : 23;
    }
    assert_in_range(failed_runs_count, 200, 2000);
}

/* ---- the swarm itself, with nodes that only sleep and save ---- */

static enum err sleeper_init(void *state, const struct birth *birth) {
    (void)state;
    (void)birth;
    return ERR_OK;
}

static void sleeper_step(void *state, const struct event *event, struct outbox *out) {
    (void)state;
    if (event->kind == EVENT_WAKE) {
        outbox_save(out, 0, event->now_us, BYTES("alive"));
    }
    outbox_wake_at(out, event->now_us + 1000);
}

static const struct program sleeper_program = {
    .name = "sleeper",
    .state_size = 1,
    .actions_max = 1,
    .memory_size = 16,
    .slots_count = 1,
    .init = sleeper_init,
    .step = sleeper_step,
};

static void strikes_with_every_fault_and_heals_all(void **state) {
    (void)state;
    enum { SLEEPERS_COUNT = 10 };
    unsigned drawn = 0;
    uint32_t struck_count[SWARM_FAULTS_COUNT] = {0};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sim *sim = sim_new(&(struct sim_config){.seed = seed, .nodes_max = SLEEPERS_COUNT});
        assert_non_null(sim);
        for (unsigned i = 0; i < SLEEPERS_COUNT; i++) {
            uint32_t node;
            assert_int_equal(sim_add(sim, &sleeper_program, NULL, &node), ERR_OK);
        }
        struct swarm swarm;
        struct swarm_config config = {.seed = seed, .faults = SWARM_ALL, .period_us = 1000, .down_max = 4};
        swarm_init(&swarm, &config, sim);
        for (uint64_t at_us = 1000; at_us <= SIM_SECOND_US; at_us += 1000) {
            assert_int_equal(swarm_run_until(&swarm, at_us), ERR_OK);
            unsigned down_count = 0;
            for (uint32_t i = 0; i < SLEEPERS_COUNT; i++) {
                down_count += sim_status(sim, i) == SIM_DOWN;
            }
            assert_in_range(down_count, 0, 4);
        }
        swarm_heal(&swarm);
        assert_int_equal(swarm_run_until(&swarm, 2 * SIM_SECOND_US), ERR_OK);
        for (uint32_t i = 0; i < SLEEPERS_COUNT; i++) {
            assert_true(sim_status(sim, i) == SIM_UP || sim_status(sim, i) == SIM_GONE);
        }
        assert_int_equal(sim_network(sim)->dials.loss_ppm, 0);
        assert_false(sim_network(sim)->is_partitioned);
        drawn |= swarm.faults;
        for (unsigned i = 0; i < SWARM_FAULTS_COUNT; i++) {
            struck_count[i] += swarm.struck_count[i];
        }
        sim_free(sim);
    }
    assert_int_equal(drawn, SWARM_ALL);
    for (unsigned i = SWARM_STRIKES_FIRST; i < SWARM_FAULTS_COUNT; i++) {
        assert_true(struck_count[i] > 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_an_acknowledgement_before_it_is_durable),
        cmocka_unit_test(finds_an_acknowledgement_of_more_than_is_durable),
        cmocka_unit_test(finds_a_merge_by_adding),
        cmocka_unit_test(finds_trust_in_the_order_of_messages),
        cmocka_unit_test(finds_trust_in_corrupt_messages),
        cmocka_unit_test(finds_a_restart_from_zero),
        cmocka_unit_test(finds_silence_after_a_restart),
        cmocka_unit_test(finds_nothing_in_the_correct_counter),
        cmocka_unit_test(repeats_a_run_bit_for_bit),
        cmocka_unit_test(ends_in_an_error_when_memory_runs_out),
        cmocka_unit_test(strikes_with_every_fault_and_heals_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The ring in small worlds: from one node to many and back, and what the checkers of ring-invariants find.
 */
#include "../unit/unit.h"
#include "sim/experiment.h"
#include "sim/ring_world.h"

enum { NODES_COUNT = 12 };

static const uint64_t SETTLED_US = 120 * UINT64_C(1000000);

static void begin(struct ring_world *world, uint32_t nodes_count, uint8_t list_size, uint64_t seed) {
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 10000, .jitter_us = 5000, .loss_ppm = 5000},
    };
    struct ring_config config = {
        .list_size = list_size,
        .table_capacity = 64,
        .lookups_max = 4,
        .stabilize_us = SIM_SECOND_US,
        .heal_us = 2 * SIM_SECOND_US,
    };
    assert_int_equal(ring_world_init(world, &sim, &config), ERR_OK);
}

static void run_for(struct ring_world *world, uint64_t us) {
    assert_int_equal(sim_run_until(world->sim, sim_now_us(world->sim) + us), ERR_OK);
}

/* Everybody who is up is a member of one ideal ring within a bounded time. */
static void assert_settles(struct ring_world *world, const char *when) {
    uint64_t end_us = sim_now_us(world->sim) + SETTLED_US;
    const char *reason = "";
    uint32_t node = 0;
    while (reason != NULL && sim_now_us(world->sim) < end_us) {
        run_for(world, SIM_SECOND_US / 4);
        reason = ring_world_check_ideal(world, &node);
    }
    if (reason != NULL) {
        fail_msg("%s: node %u: %s", when, node, reason);
    }
}

static void start(struct ring_world *world, uint32_t node, uint32_t contact) {
    uint64_t now_us = sim_now_us(world->sim);
    sim_start_at(world->sim, node, now_us);
    assert_int_equal(ring_world_join(world, node, contact, now_us + 1), ERR_OK);
}

static void assert_mode(const struct ring_world *world, enum ring_mode mode) {
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        const struct ring *ring = ring_world_ring(world, i);
        assert_true(ring == NULL || ring_mode(ring) == mode);
    }
}

static void grows_from_one_node_to_chord_and_shrinks_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct ring_world world;
        begin(&world, NODES_COUNT, 4, seed);
        for (uint32_t i = 0; i < NODES_COUNT; i++) {
            start(&world, i, i == 0 ? UINT32_MAX : i / 2);
            assert_settles(&world, "growing");
            if (i + 1 <= 4) {
                assert_mode(&world, RING_SMALL);
            }
        }
        run_for(&world, 10 * SIM_SECOND_US);
        assert_mode(&world, RING_CHORD);
        for (uint32_t i = 0; i + 1 < NODES_COUNT; i++) {
            sim_crash(world.sim, i);
            run_for(&world, 10 * SIM_SECOND_US);
            assert_settles(&world, "shrinking");
        }
        assert_mode(&world, RING_SMALL);
        ring_world_done(&world);
    }
}

static void all_join_at_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct ring_world world;
        begin(&world, 40, 4, seed);
        for (uint32_t i = 0; i < 40; i++) {
            start(&world, i, i == 0 ? UINT32_MAX : 0);
        }
        assert_settles(&world, "all at once");
        ring_world_done(&world);
    }
}

static void two_nodes_join_at_each_other(void **state) {
    (void)state;
    struct ring_world world;
    begin(&world, 2, 4, 1);
    start(&world, 0, 1);
    start(&world, 1, 0);
    assert_settles(&world, "at each other");
    ring_world_done(&world);
}

static void all_restart_at_once(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= NODES_COUNT; count++) {
        struct ring_world world;
        begin(&world, count, 4, count);
        for (uint32_t i = 0; i < count; i++) {
            start(&world, i, i == 0 ? UINT32_MAX : 0);
        }
        assert_settles(&world, "before");
        for (uint32_t i = 0; i < count; i++) {
            sim_crash(world.sim, i);
        }
        for (uint32_t i = 0; i < count; i++) {
            start(&world, i, (i + 1) % count);
        }
        assert_settles(&world, "after");
        ring_world_done(&world);
    }
}

static void a_third_killed_at_once_is_forgotten(void **state) {
    (void)state;
    struct ring_world world;
    begin(&world, 30, 8, 5);
    for (uint32_t i = 0; i < 30; i++) {
        start(&world, i, i == 0 ? UINT32_MAX : 0);
    }
    assert_settles(&world, "before");
    for (uint32_t i = 0; i < 10; i++) {
        sim_crash(world.sim, 3 * i);
    }
    assert_settles(&world, "after");
    ring_world_done(&world);
}

static void finds_no_violation_and_all_planted_ones(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    enum err err =
        experiment_ring_invariants(&(struct experiment_args){.seed = 1, .runs = 400}, &report, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    enum { VIOLATIONS = 5 };
    assert_true(report_at(&report, 0, VIOLATIONS)->number == 0);
    assert_true(report_at(&report, 1, VIOLATIONS)->number > 0); /* without the guard on principals */
    assert_true(report_at(&report, 2, VIOLATIONS)->number > 0); /* without padding */
    report_done(&report);
}

static const struct report_cell *cell(const struct report *report, uint32_t column) {
    return report_at(report, 0, column);
}

static void half_of_all_nodes_fail_and_no_lookup_does(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    struct experiment_args args = {.seed = 1, .nodes = 1000, .runs = 3000};
    assert_int_equal(experiment_ring_failure(&args, &report, &detail), ERR_OK);
    enum { WRONG = 2, LOST = 3 };
    assert_true(cell(&report, WRONG)->number == 0);
    assert_true(cell(&report, LOST)->number == 0);
    report_done(&report);
}

static void fewer_hops_the_more_is_known(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    struct experiment_args args = {.seed = 1, .nodes = 512, .runs = 500};
    assert_int_equal(experiment_ring_lookup(&args, &report, &detail), ERR_OK);
    enum { FINGERS = 1, SUCCESSORS = 6, TABLE = 8 };
    assert_true(cell(&report, FINGERS)->number < 6);
    assert_true(cell(&report, SUCCESSORS)->number < cell(&report, FINGERS)->number);
    assert_true(cell(&report, TABLE)->number < 1.5);
    report_done(&report);
}

static void is_one_ring_again_after_every_trouble(void **state) {
    (void)state;
    struct report report;
    struct err_detail detail = {0};
    struct experiment_args args = {.seed = 1, .nodes = 40, .runs = 2};
    enum err err = experiment_ring_partition(&args, &report, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    report_done(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_from_one_node_to_chord_and_shrinks_back),
        cmocka_unit_test(all_join_at_once),
        cmocka_unit_test(two_nodes_join_at_each_other),
        cmocka_unit_test(all_restart_at_once),
        cmocka_unit_test(a_third_killed_at_once_is_forgotten),
        cmocka_unit_test(finds_no_violation_and_all_planted_ones),
        cmocka_unit_test(half_of_all_nodes_fail_and_no_lookup_does),
        cmocka_unit_test(fewer_hops_the_more_is_known),
        cmocka_unit_test(is_one_ring_again_after_every_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The ring in small worlds: from one node to many and back, and what the checkers of ring-invariants find.
 */
#include "../unit/unit.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_world.h"

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

/* The report of an experiment that must not fail. */
static struct report run_experiment(const char *name, struct experiment_args args) {
    struct report report;
    struct err_detail detail = {0};
    enum err err = experiment_start(experiment_find(bytes_of_string(name)), args, &report, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return report;
}

/* By the name of its column. */
static double number_at(const struct report *report, uint32_t row, const char *name) {
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (strcmp(report->columns[column].name, name) == 0) {
            return report_at(report, row, column)->number;
        }
    }
    fail_msg("no column %s", name);
    return 0;
}

static void finds_no_violation_and_all_planted_ones(void **state) {
    (void)state;
    /* Of these runs 396 once showed that who was silent must not be dropped unasked. */
    struct report report =
        run_experiment("ring-invariants", (struct experiment_args){.seed = 301, .runs = 300});
    assert_int_equal(report_rows_count(&report), 3);
    assert_true(number_at(&report, 0, "violations") == 0);
    assert_true(number_at(&report, 2, "violations") > 0); /* without padding */
    report_done(&report);
    /* Without the guard on principals; in 1879 a late answer to a join once made a node adopt nobody. */
    report = run_experiment("ring-invariants",
                            (struct experiment_args){.seed = 1800, .runs = 100, .breakage = "guard"});
    assert_true(number_at(&report, 0, "violations") > 0);
    report_done(&report);
}

static void runs_only_what_is_to_be_broken(void **state) {
    (void)state;
    struct report report = run_experiment(
        "ring-invariants", (struct experiment_args){.seed = 1, .runs = 50, .breakage = "padding"});
    assert_int_equal(report_rows_count(&report), 1);
    assert_true(number_at(&report, 0, "violations") > 0);
    report_done(&report);
}

static void half_of_all_nodes_fail_and_no_lookup_does(void **state) {
    (void)state;
    struct report report =
        run_experiment("ring-failure", (struct experiment_args){.seed = 1, .nodes = 800, .runs = 2000});
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        assert_true(number_at(&report, row, "wrong") == 0);
        assert_true(number_at(&report, row, "lost") == 0);
    }
    assert_true(number_at(&report, report_rows_count(&report) - 1, "failed (%)") == 50);
    report_done(&report);
}

static void fewer_hops_the_more_is_known(void **state) {
    (void)state;
    struct report report = run_experiment("ring-lookup", (struct experiment_args){.seed = 1, .nodes = 1024});
    double fingers = number_at(&report, 0, "fingers only");
    double one_at_a_time = number_at(&report, 0, "fingers, one at a time");
    assert_true(one_at_a_time > 5.5 && one_at_a_time < 6.2); /* 5.84 by the design */
    assert_true(fingers < one_at_a_time);
    assert_true(number_at(&report, 0, "20 successors") < fingers);
    assert_true(number_at(&report, 0, "location table") < 1.5);
    report_done(&report);
}

static void hops_add_up_to_all_lookups(void **state) {
    (void)state;
    struct report report = run_experiment("ring-hops", (struct experiment_args){.seed = 1, .nodes = 256});
    double sum = 0;
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        sum += number_at(&report, row, "lookups (%)");
    }
    assert_true(sum > 99.99 && sum < 100.01);
    report_done(&report);
}

static void is_one_ring_again_after_every_trouble(void **state) {
    (void)state;
    struct report report =
        run_experiment("ring-partition", (struct experiment_args){.seed = 1, .nodes = 40, .runs = 1});
    report_done(&report);
}

static void most_lookups_are_right_while_nodes_come_and_go(void **state) {
    (void)state;
    struct report report =
        run_experiment("ring-churn", (struct experiment_args){.seed = 1, .nodes = 100, .runs = 15});
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        assert_true(number_at(&report, row, "right (%)") > 98);
        assert_true(number_at(&report, row, "joins") > 0);
    }
    report_done(&report);
}

static void costs_less_than_the_target_at_rest(void **state) {
    (void)state;
    struct report report =
        run_experiment("ring-rest", (struct experiment_args){.seed = 1, .nodes = 200, .runs = 10});
    assert_true(number_at(&report, 0, "with IP, UDP, encryption") < number_at(&report, 0, "target"));
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
        cmocka_unit_test(runs_only_what_is_to_be_broken),
        cmocka_unit_test(half_of_all_nodes_fail_and_no_lookup_does),
        cmocka_unit_test(fewer_hops_the_more_is_known),
        cmocka_unit_test(hops_add_up_to_all_lookups),
        cmocka_unit_test(is_one_ring_again_after_every_trouble),
        cmocka_unit_test(most_lookups_are_right_while_nodes_come_and_go),
        cmocka_unit_test(costs_less_than_the_target_at_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Groups in simulation: joining one by one, failures, succession, partitions, and their experiments. */
#include "../unit/unit.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_world.h"
#include "sim/experiments/probe_path.h"
#include "swarm.h"

enum { NODES = 12 };
static const uint64_t MINUTE_US = 60000000;

static void run_for(struct group_world *world, uint64_t us) {
    assert_int_equal(sim_run_until(world->sim, sim_now_us(world->sim) + us), ERR_OK);
    assert_int_equal(world->err, ERR_OK);
}

/* At most so many minutes; how many it took. */
static unsigned run_until_settled(struct group_world *world, int among, unsigned minutes_max) {
    for (unsigned minutes = 0; minutes < minutes_max; minutes++) {
        if (group_world_is_settled(world, among)) {
            return minutes;
        }
        run_for(world, MINUTE_US);
    }
    fail_msg("not settled after %u minutes", minutes_max);
    return 0;
}

/* Each joins through the one before it. */
static void make_world(struct group_world *world, uint64_t seed, uint32_t count,
                       const struct group_config *config, uint32_t loss_ppm) {
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = count,
        .network = {.latency_us = 10000, .jitter_us = 5000, .distance_us = 100000, .loss_ppm = loss_ppm}};
    assert_int_equal(group_world_init(world, &sim, config), ERR_OK);
    network_scatter(sim_network(world->sim));
    assert_int_equal(group_world_found(world), ERR_OK);
    for (uint32_t node = 1; node < count; node++) {
        run_for(world, MINUTE_US / 2);
        assert_int_equal(group_world_join(world, node, node - 1), ERR_OK);
    }
    run_for(world, 1); /* the last is up, too */
}

static void members_come_in_by_a_topology(void **state) {
    (void)state;
    struct group_world world;
    struct group_config config = {.is_open = true};
    make_world(&world, 1, NODES, &config, 20000);
    assert_true(run_until_settled(&world, -1, 10) < 5);
    run_for(&world, 120 * MINUTE_US);
    assert_true(group_world_is_settled(&world, -1));
    const struct group *last = group_world_group(&world, NODES - 1);
    assert_int_equal(group_term(last), group_term(group_world_group(&world, 0)));
    struct peer founder = group_world_peer(0);
    assert_true(peer_equal(group_master(last), &founder));
    assert_true(group_is_master(group_world_group(&world, 0)));
    for (uint32_t node = 0; node < NODES; node++) {
        assert_true(group_world_reaches_all(&world, node));
        assert_true(group_counters(group_world_group(&world, node))->echoed_count > 20);
    }
    assert_int_equal(world.counts.blamed_count, 0);
    assert_int_equal(world.counts.masters_count, 1);
    assert_int_equal(world.counts.out_count, 0);
    group_world_done(&world);
}

static void who_is_not_approved_stays_out(void **state) {
    (void)state;
    struct group_world world;
    struct group_config config = {0};
    make_world(&world, 2, 3, &config, 0);
    run_for(&world, 5 * MINUTE_US);
    assert_int_equal(group_topology(group_world_group(&world, 0))->members_count, 1);
    assert_true(world.counts.asked_count > 1);
    assert_int_equal(group_mode(group_world_group(&world, 1)), GROUP_JOINING);
    world.approves = true;
    assert_true(run_until_settled(&world, -1, 10) < 5);
    group_world_done(&world);
}

static void a_silent_member_drops_out_and_comes_back(void **state) {
    (void)state;
    struct group_world world;
    struct group_config config = {.is_open = false};
    make_world(&world, 3, NODES, &config, 10000);
    world.approves = true;
    run_until_settled(&world, -1, 10);
    world.approves = false;
    run_for(&world, 100 * MINUTE_US);
    sim_crash(world.sim, 5);
    unsigned minutes = run_until_settled(&world, -1, 140);
    assert_in_range(minutes, 55, 130); /* the silence, and what others heard before it */
    for (uint32_t node = 0; node < NODES; node++) {
        assert_true(node == 5 || group_world_reaches_all(&world, node));
    }
    sim_start_at(world.sim, 5, sim_now_us(world.sim)); /* with what it saved: nobody needs to approve again */
    run_for(&world, 1);
    assert_false(group_world_is_settled(&world, -1));
    run_until_settled(&world, -1, 60);
    group_world_done(&world);
}

static void the_next_takes_over_from_a_silent_master(void **state) {
    (void)state;
    struct group_world world;
    struct group_config config = {.is_open = true};
    make_world(&world, 4, NODES, &config, 10000);
    run_until_settled(&world, -1, 10);
    run_for(&world, 30 * MINUTE_US);
    sim_crash(world.sim, 0);
    run_for(&world, 25 * MINUTE_US);
    assert_int_equal(world.counts.masters_count, 2);
    assert_true(group_is_master(group_world_group(&world, 1)));
    assert_true(group_term(group_world_group(&world, 7)) == group_term(group_world_group(&world, 1)));
    sim_start_at(world.sim, 0, sim_now_us(world.sim)); /* the old one gives way */
    run_for(&world, 10 * MINUTE_US);
    assert_false(group_is_master(group_world_group(&world, 0)));
    assert_true(group_world_is_settled(&world, -1));
    assert_int_equal(world.counts.masters_count, 2);

    uint8_t none = 0; /* but the founder may claim */
    assert_int_equal(sim_command_at(world.sim, 0, sim_now_us(world.sim), GROUP_CLAIM, 0, bytes_of(&none, 0)),
                     ERR_OK);
    run_for(&world, MINUTE_US);
    assert_true(group_is_master(group_world_group(&world, 0)));
    assert_true(group_world_is_settled(&world, -1));
    group_world_done(&world);
}

static void cut(struct group_world *world, uint32_t first_of_other) {
    struct network *network = sim_network(world->sim);
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        network->nodes[node].group = node >= first_of_other;
    }
    network_block(network, 0, 1);
    network_block(network, 1, 0);
}

/* The master is with the smaller part; the greater gets another, and after the cut all follow that one. */
static void heal_after(unsigned minutes) {
    struct group_world world;
    struct group_config config = {.is_open = true};
    make_world(&world, 5, NODES, &config, 10000);
    run_until_settled(&world, -1, 10);
    run_for(&world, 100 * MINUTE_US);
    cut(&world, 4);
    run_for(&world, minutes * MINUTE_US);
    assert_int_equal(world.counts.masters_count, 2);
    assert_true(group_is_master(group_world_group(&world, 0)));
    if (minutes > 140) {
        assert_true(group_world_is_settled(&world, 0));
        assert_true(group_world_is_settled(&world, 1));
        assert_true(group_world_reaches_all(&world, 0) && group_world_reaches_all(&world, NODES - 1));
    }
    network_heal(sim_network(world.sim));
    run_until_settled(&world, -1, 240);
    assert_false(group_is_master(group_world_group(&world, 0)));
    for (uint32_t node = 0; node < NODES; node++) {
        sim_network(world.sim)->nodes[node].group = 0;
    }
    assert_true(group_world_reaches_all(&world, 0));
    group_world_done(&world);
}

static void a_short_partition_heals(void **state) {
    (void)state;
    heal_after(30);
}

static void a_long_partition_heals(void **state) {
    (void)state;
    heal_after(200);
}

static void a_master_that_leaves_hands_over(void **state) {
    (void)state;
    struct group_world world;
    struct group_config config = {.is_open = true};
    make_world(&world, 6, 5, &config, 10000);
    run_until_settled(&world, -1, 10);
    assert_int_equal(sim_command_at(world.sim, 0, sim_now_us(world.sim), GROUP_LEAVE, 0, (struct bytes){0}),
                     ERR_OK);
    assert_int_equal(sim_command_at(world.sim, 3, sim_now_us(world.sim), GROUP_LEAVE, 0, (struct bytes){0}),
                     ERR_OK);
    run_for(&world, 2 * MINUTE_US);
    assert_int_equal(group_mode(group_world_group(&world, 0)), GROUP_IDLE);
    assert_int_equal(group_mode(group_world_group(&world, 3)), GROUP_IDLE);
    sim_leave(world.sim, 0);
    sim_leave(world.sim, 3);
    assert_true(run_until_settled(&world, -1, 120) < 100);
    assert_true(group_is_master(group_world_group(&world, 1)));
    group_world_done(&world);
}

static void equal_seeds_give_equal_runs(void **state) {
    (void)state;
    struct digest digests[2] = {{{0}}};
    for (unsigned i = 0; i < 2; i++) {
        struct group_world world;
        struct group_config config = {.is_open = true};
        make_world(&world, 9, 6, &config, 50000);
        run_for(&world, 30 * MINUTE_US);
        sim_digest_into(world.sim, &digests[i]);
        group_world_done(&world);
    }
    assert_memory_equal(&digests[0], &digests[1], sizeof digests[0]);
}

/* ---- faults ---- */

/* 263: two parts that had dropped each other crashed, and so had forgotten each other. */
static const uint64_t swarm_seeds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 263};

/* Bits flip, nodes crash with what they saved, links fail: at the end of that all are in one topology. */
static void comes_ring_services_after_any_faults(void **state) {
    (void)state;
    unsigned faults = SWARM_JITTER | SWARM_LOSS | SWARM_DUPLICATE | SWARM_REORDER | SWARM_CORRUPT |
                      SWARM_UNSYNCED | SWARM_SLOW_DISK | SWARM_CRASH | SWARM_PARTITION | SWARM_CLOG;
    for (size_t i = 0; i < sizeof swarm_seeds / sizeof swarm_seeds[0]; i++) {
        uint64_t seed = swarm_seeds[i];
        struct group_world world;
        struct group_config group = {.is_open = true};
        struct swarm swarm;
        struct swarm_config config = {.seed = seed, .faults = faults, .period_us = MINUTE_US};
        make_world(&world, seed, 9, &group, 0);
        run_until_settled(&world, -1, 10);
        swarm_init(&swarm, &config, world.sim);
        assert_int_equal(swarm_run_until(&swarm, sim_now_us(world.sim) + 300 * MINUTE_US), ERR_OK);
        swarm_heal(&swarm);
        run_for(&world, MINUTE_US);
        run_until_settled(&world, -1, 400);
        for (uint32_t node = 0; node < 9; node++) {
            sim_network(world.sim)->nodes[node].group = 0;
        }
        assert_true(group_world_reaches_all(&world, 0));
        group_world_done(&world);
    }
}

/* ---- whole experiments ---- */

static double cell(const struct report *report, uint32_t row, const char *column) {
    for (uint32_t i = 0; i < report->columns_count; i++) {
        if (strcmp(report->columns[i].name, column) == 0) {
            return report_at(report, row, i)->number;
        }
    }
    fail_msg("no column %s", column);
    return 0;
}

static void traffic_is_about_the_paper_s(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 3, .variant = EXPERIMENT_TRAFFIC_SUMS};
    struct report report = {0};
    struct err_detail detail;
    assert_int_equal(experiment_group_traffic(&args, &report, &detail), ERR_OK);
    double first = cell(&report, 2, "the first 90 minutes");
    double later = cell(&report, 2, "later");
    double rejoining = cell(&report, 2, "later, re-joining");
    assert_true(first > 5 && first < 7.5);
    assert_true(later > 0.9 && later < 1.5);
    assert_true(rejoining > later && rejoining < 2 * later);
    report_done(&report);
}

static void failures_are_got_over(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 5, .nodes = 10, .runs = 1};
    struct report report = {0};
    struct err_detail detail;
    assert_int_equal(experiment_group_failure(&args, &report, &detail), ERR_OK);
    assert_true(cell(&report, 0, "% reached at once") == 100); /* of one member, or one link */
    assert_true(cell(&report, 2, "% reached at once") == 100);
    assert_in_range((unsigned)cell(&report, 0, "a topology without it"), 55, 70);
    assert_in_range((unsigned)cell(&report, 3, "a master"), 10, 20);
    for (uint32_t row = 0; row < report_rows_count(&report); row++) {
        assert_true(cell(&report, row, "% reached then") == 100);
    }
    report_done(&report);
}

/* ---- slow start ---- */

static void a_short_probe_underestimates_a_fast_path(void **state) {
    (void)state;
    struct probe_path fast = {.round_trip_us = 100000,
                              .bandwidth = 1000000,
                              .segment_size = 1000,
                              .window_first = 1,
                              .window_max = 64};
    /* 1, 2, 4, 8 segments in four round trips, the last of 16 within 16 ms of the fifth */
    assert_int_equal(probe_path_us(&fast, 1000), 1000);
    assert_int_equal(probe_path_us(&fast, 15000), 308000);
    assert_int_equal(probe_path_us(&fast, 31000), 416000);
    struct probe_path slow = fast;
    slow.bandwidth = 2000; /* a segment takes five round trips: the path is always full */
    assert_int_equal(probe_path_us(&slow, 31000), 15500000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_in_by_a_topology),
        cmocka_unit_test(who_is_not_approved_stays_out),
        cmocka_unit_test(a_silent_member_drops_out_and_comes_back),
        cmocka_unit_test(the_next_takes_over_from_a_silent_master),
        cmocka_unit_test(a_short_partition_heals),
        cmocka_unit_test(a_long_partition_heals),
        cmocka_unit_test(a_master_that_leaves_hands_over),
        cmocka_unit_test(equal_seeds_give_equal_runs),
        cmocka_unit_test(comes_ring_services_after_any_faults),
        cmocka_unit_test(traffic_is_about_the_paper_s),
        cmocka_unit_test(failures_are_got_over),
        cmocka_unit_test(a_short_probe_underestimates_a_fast_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Replicas in groups that share corners: who is in which, and that an update gets to everybody once. */
#include <stdlib.h>

#include "../unit/unit.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_spread.h"

enum { REPLICAS_COUNT = 500, GROUP_SIZE = 50, UPDATE_SIZE = 4000000 };

static struct group_union_config config_of(enum group_union_joins joins, enum group_union_damage damage) {
    return (struct group_union_config){
        .seed = 1,
        .replicas_count = REPLICAS_COUNT,
        .group_size = GROUP_SIZE,
        .joins = joins,
        .damage = damage,
        .dead_ppm = 50000,
    };
}

static struct group_spread_result spread(const struct group_union_config *config, struct digest *digest) {
    struct group_union whole;
    struct group_spread_result result;
    assert_int_equal(group_union_init(&whole, config), ERR_OK);
    assert_int_equal(group_spread_run(&whole, UPDATE_SIZE, 0, digest, &result), ERR_OK);
    group_union_done(&whole);
    return result;
}

static uint32_t count_apart(struct group_union *whole) {
    uint32_t count = 0;
    group_union_walk(whole, whole->origin);
    for (uint32_t i = 0; i < REPLICAS_COUNT; i++) {
        count += !whole->replicas[i].is_dead && whole->hops[i] == UINT32_MAX ? 1 : 0;
    }
    return count;
}

static void two_corners_join_each_pair_of_neighbours(void **state) {
    (void)state;
    for (unsigned joins = GROUP_UNION_TREE; joins <= GROUP_UNION_MESH; joins++) {
        struct group_union_config config = config_of(joins, GROUP_UNION_INTACT);
        struct group_union whole;
        uint32_t corners_count = 0;
        assert_int_equal(group_union_init(&whole, &config), ERR_OK);
        for (uint32_t i = 0; i < REPLICAS_COUNT; i++) {
            corners_count += whole.replicas[i].is_corner ? 1 : 0;
            assert_false(whole.replicas[i].is_corner && whole.replicas[i].has_modem);
            assert_true(whole.replicas[i].links_count >= 2);
        }
        uint32_t pairs_count = whole.groups_count - 1; /* of a tree */
        assert_int_equal(whole.pairs_count, joins == GROUP_UNION_TREE ? pairs_count : 2 * pairs_count - 1);
        assert_int_equal(corners_count, 2 * whole.pairs_count);
        assert_int_equal(count_apart(&whole), 0);
        group_union_done(&whole);
    }
}

static void no_single_death_cuts_anybody_off(void **state) {
    (void)state;
    struct group_union_config config = config_of(GROUP_UNION_TREE, GROUP_UNION_INTACT);
    struct group_union whole;
    assert_int_equal(group_union_init(&whole, &config), ERR_OK);
    for (uint32_t i = 0; i < REPLICAS_COUNT; i++) {
        if (i != whole.origin) {
            whole.replicas[i].is_dead = true;
            assert_int_equal(count_apart(&whole), 0);
            whole.replicas[i].is_dead = false;
        }
    }
    group_union_done(&whole);
}

static void everybody_gets_an_update_about_once(void **state) {
    (void)state;
    struct group_union_config config = config_of(GROUP_UNION_TREE, GROUP_UNION_INTACT);
    struct digest digest = {0};
    struct group_spread_result result = spread(&config, &digest);
    assert_int_equal(result.reached_count, REPLICAS_COUNT);
    assert_true(result.received_size >= (uint64_t)(REPLICAS_COUNT - 1) * UPDATE_SIZE);
    assert_true(result.received_size < (uint64_t)REPLICAS_COUNT * UPDATE_SIZE * 21 / 20);
    assert_true(result.origin_sent_size < (uint64_t)TOPOLOGY_DEGREE_DEFAULT * UPDATE_SIZE * 21 / 20);
    assert_true(result.half_us < result.no_modem_us && result.no_modem_us <= result.all_us);
    assert_true(result.most_us <= result.all_us);
}

static void half_of_all_corners_may_die_once_topologies_know(void **state) {
    (void)state;
    struct group_union_config config = config_of(GROUP_UNION_TREE, GROUP_UNION_CORNERS);
    struct digest digest = {0};
    config.is_repaired = true;
    struct group_spread_result result = spread(&config, &digest);
    assert_true(result.alive_count < REPLICAS_COUNT);
    assert_int_equal(result.reached_count, result.alive_count);
}

static void who_is_cut_off_is_counted_and_not_waited_for(void **state) {
    (void)state;
    struct group_union_config config = config_of(GROUP_UNION_TREE, GROUP_UNION_DEAD);
    struct digest digest = {0};
    config.dead_ppm = 300000;
    struct group_spread_result result = spread(&config, &digest);
    assert_in_range(result.reached_count, 1, result.alive_count - 1);
    assert_true(result.most_us == UINT64_MAX && result.all_us < UINT64_MAX);
}

static void equal_seeds_give_equal_runs(void **state) {
    (void)state;
    struct group_union_config config = config_of(GROUP_UNION_MESH, GROUP_UNION_DEAD);
    struct digest digests[3] = {0};
    spread(&config, &digests[0]);
    spread(&config, &digests[1]);
    config.seed = 2;
    spread(&config, &digests[2]);
    assert_memory_equal(&digests[0], &digests[1], sizeof digests[0]);
    assert_memory_not_equal(&digests[0], &digests[2], sizeof digests[0]);
}

static void experiments_fill_their_tables(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t rows_count;
    } tables[] = {{"group-scale", 2}, {"group-scale-ways", 15}, {"group-scale-cut", 2}};
    struct experiment_args args = {.seed = 1, .nodes = 100, .runs = 2};
    for (size_t i = 0; i < 3; i++) {
        const struct experiment *experiment = experiment_find(bytes_of_string(tables[i].name));
        struct report report;
        assert_non_null(experiment);
        assert_int_equal(experiment_start(experiment, args, &report, NULL), ERR_OK);
        assert_int_equal(report_rows_count(&report), tables[i].rows_count);
        report_done(&report);
    }
    args.nodes = 63; /* below it there are no two groups */
    struct report report;
    assert_int_equal(experiment_group_scale(&args, &report, NULL), ERR_INVALID);
    report_done(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_corners_join_each_pair_of_neighbours),
        cmocka_unit_test(no_single_death_cuts_anybody_off),
        cmocka_unit_test(everybody_gets_an_update_about_once),
        cmocka_unit_test(half_of_all_corners_may_die_once_topologies_know),
        cmocka_unit_test(who_is_cut_off_is_counted_and_not_waited_for),
        cmocka_unit_test(equal_seeds_give_equal_runs),
        cmocka_unit_test(experiments_fill_their_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Small rings of the daemon's machine (protocol/copies/replicator.h): soon after a cut everything is where it
 * belongs, a lost disk is filled at the pace of the line, and nodes that are silent delay nobody else. */
#include "../unit/unit.h"
#include "sim/experiments/heal_world.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t LEARN_US = UINT64_C(30) * 1000000;

struct found {
    uint64_t all_us;
    uint64_t lacking_first;
    struct replicator_counts counts;
    struct digest digest;
};

static struct found run(struct heal_config config) {
    struct heal_world heal;
    struct found found = {0};
    config.copies = 3;
    config.learn_us = LEARN_US;
    config.duration_us_max = 10800 * SECOND_US;
    digest_init(&found.digest);
    assert_int_equal(heal_world_init(&heal, &config), ERR_OK);
    assert_int_equal(heal_world_run(&heal), ERR_OK);
    assert_int_equal(heal.lacking_count, 0);
    heal_world_digest(&heal, &found.digest);
    found.all_us = heal.all_us;
    found.lacking_first = heal.lacking_first;
    found.counts = heal_world_counts(&heal);
    heal_world_done(&heal);
    return found;
}

static struct found cut(uint64_t seed) {
    return run((struct heal_config){.seed = seed,
                                    .nodes_count = 24,
                                    .captures_count = 6000,
                                    .late_count = 600,
                                    .cut_us = 600 * SECOND_US,
                                    .fetches_per_s = 500});
}

static void after_a_cut_all_is_where_it_belongs_soon_after_the_last_has_heard_of_it(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct found found = cut(seed);
        assert_true(found.lacking_first > 100 && found.counts.handed_on_count > 0);
        assert_in_range(found.all_us, 1, LEARN_US + 20 * SECOND_US);
    }
}

/* A node that has not heard of a change offers to what was the primary, and is relieved of the capture. With
 * the primary of now it was missing for 300 s, until the next comparison, in 22 of 40 seeds. */
static void what_is_archived_while_views_differ_is_soon_where_it_belongs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct found found = run((struct heal_config){.seed = seed,
                                                      .nodes_count = seed % 2 == 0 ? 12 : 6,
                                                      .captures_count = 1000,
                                                      .late_count = 500,
                                                      .cut_us = 60 * SECOND_US,
                                                      .is_at_all_times = true,
                                                      .fetches_per_s = 500});
        assert_in_range(found.all_us, 1, LEARN_US + 20 * SECOND_US);
    }
}

static void a_lost_disk_is_filled_at_full_pace(void **state) {
    enum { PACE = 500 };
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct found found = run((struct heal_config){.seed = seed,
                                                      .nodes_count = 8,
                                                      .captures_count = 60000,
                                                      .loses_disk = true,
                                                      .fetches_per_s = PACE});
        uint64_t least_us = found.lacking_first * SECOND_US / PACE;
        assert_true(found.lacking_first > 5000);
        assert_true(found.all_us < least_us * 105 / 100 + LEARN_US);
        assert_int_equal(found.counts.fetched_count, found.lacking_first); /* none twice */
    }
}

static struct found archive_while_silent(uint64_t seed, uint32_t silent_count, bool are_silent) {
    return run((struct heal_config){.seed = seed,
                                    .nodes_count = 10,
                                    .captures_count = 2000,
                                    .late_count = 100,
                                    .silent_count = silent_count,
                                    .are_answering = !are_silent});
}

/* Every question to a silent node takes 10 s until it is given up: as long as somebody waited for that, all
 * copies would come late by as much. */
static void silent_nodes_delay_nobody_elses_copies(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct found silent = archive_while_silent(seed, 2, true);
        struct found sound = archive_while_silent(seed, 2, false);
        assert_true(silent.lacking_first > 200);
        assert_in_range(sound.all_us, 1, 2 * SECOND_US);
        assert_in_range(silent.all_us, 1, sound.all_us + SECOND_US / 4);
    }
}

/* ---- whole means whole ---- */

struct watch {
    struct heal_world heal;
    uint64_t looks_count;
    uint64_t wholes_count; /* looks at a node that called its arcs whole */
};

/* As node/copies/copies_tally.c says it of the node's own arcs. */
static bool says_whole(const struct replicator *replicator) {
    const struct copy_plan *plan = replicator_plan(replicator);
    bool is_whole = copy_plan_pieces_count(plan) > 0 &&
                    custody_count(replicator_custody(replicator), CUSTODY_OWN) == 0 &&
                    transfer_status(replicator_transfer(replicator)).wanted_count == 0;
    for (size_t i = 0; i < copy_plan_pieces_count(plan) && is_whole; i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(plan, i, &piece);
        is_whole = piece.level == COPY_PLAN_WHOLE;
    }
    return is_whole;
}

static void expect_all_copies(const struct copies_world *world, uint32_t node) {
    for (uint32_t i = 0; i < world->archive.count; i++) {
        struct ring_id place = copies_archive_place(&world->archive, i);
        uint32_t holder = copies_world_primary(world, node, place);
        if (holder != node || !copies_world_has(world, node, i)) {
            continue;
        }
        for (uint32_t j = 0; j < world->config.copies; j++, holder = copies_world_next(world, node, holder)) {
            assert_true(copies_world_has(world, holder, i));
        }
    }
}

static bool look(const void *context) {
    struct watch *watch = (struct watch *)context;
    const struct copies_world *world = &watch->heal.world;
    uint32_t node = (uint32_t)(watch->looks_count++ % world->config.nodes_count);
    if (watch->heal.over_us > 0 && says_whole(world->nodes[node].replicator)) {
        watch->wholes_count++;
        expect_all_copies(world, node);
    }
    return watch->heal.over_us > 0 && world->now_us > watch->heal.over_us + 60 * SECOND_US;
}

/* At any moment, over slow lines, with answers that do not come. */
static void a_node_calls_its_arcs_whole_only_if_all_copies_are_there(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct watch watch = {.looks_count = 0};
        struct heal_config config = {.seed = seed,
                                     .nodes_count = 6,
                                     .copies = 3,
                                     .captures_count = 300,
                                     .late_count = 100,
                                     .fetches_per_s = 20,
                                     .loss_ppm = 20000};
        assert_int_equal(heal_world_init(&watch.heal, &config), ERR_OK);
        assert_int_equal(copies_world_run(&watch.heal.world, UINT64_MAX, look, &watch), ERR_OK);
        assert_int_equal(watch.heal.lacking_count, 0);
        assert_true(watch.heal.lacking_first > 200 && watch.wholes_count > 20);
        heal_world_done(&watch.heal);
    }
}

static void equal_seeds_give_equal_worlds(void **state) {
    (void)state;
    struct found first = cut(3);
    struct found again = cut(3);
    struct found other = cut(4);
    assert_memory_equal(&first.digest, &again.digest, sizeof first.digest);
    assert_memory_not_equal(&first.digest, &other.digest, sizeof first.digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_cut_all_is_where_it_belongs_soon_after_the_last_has_heard_of_it),
        cmocka_unit_test(what_is_archived_while_views_differ_is_soon_where_it_belongs),
        cmocka_unit_test(a_lost_disk_is_filled_at_full_pace),
        cmocka_unit_test(silent_nodes_delay_nobody_elses_copies),
        cmocka_unit_test(a_node_calls_its_arcs_whole_only_if_all_copies_are_there),
        cmocka_unit_test(equal_seeds_give_equal_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

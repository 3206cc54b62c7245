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
        cmocka_unit_test(a_lost_disk_is_filled_at_full_pace),
        cmocka_unit_test(silent_nodes_delay_nobody_elses_copies),
        cmocka_unit_test(equal_seeds_give_equal_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

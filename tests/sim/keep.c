/* A small ring at the pace of real nodes: soon after a cut everything is where it belongs, and a lost disk is
 * filled without pauses. The keeper that lacks the two rules for that is the counter-check. */
#include "../unit/unit.h"
#include "sim/experiments/copies_model.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t LEARN_US = UINT64_C(30) * 1000000;

struct found {
    uint64_t all_us;
    uint64_t lacking_first;
    uint64_t handed_count;
    struct digest digest;
};

static struct found run(struct copies_model_config config) {
    struct copies_model world;
    struct found found = {0};
    config.copies = 3;
    config.learn_us = LEARN_US;
    config.ask_us = SECOND_US / 10;
    config.duration_us_max = 10800 * SECOND_US;
    digest_init(&found.digest);
    assert_int_equal(copies_model_init(&world, &config), ERR_OK);
    assert_int_equal(copies_model_run(&world), ERR_OK);
    assert_int_equal(world.lacking_count, 0);
    copies_model_digest(&world, &found.digest);
    found.all_us = world.all_us;
    found.lacking_first = world.lacking_first;
    found.handed_count = world.counts.handed_count;
    copies_model_done(&world);
    return found;
}

static struct found heal(uint64_t seed, bool is_patient) {
    return run((struct copies_model_config){.seed = seed,
                                            .nodes_count = 24,
                                            .captures_count = 6000,
                                            .late_count = 600,
                                            .cut_us = 600 * SECOND_US,
                                            .fetches_per_s = 500,
                                            .is_patient = is_patient});
}

static struct found refill(uint64_t seed, bool is_patient) {
    return run((struct copies_model_config){.seed = seed,
                                            .nodes_count = 8,
                                            .captures_count = 180000,
                                            .loses_disk = true,
                                            .fetches_per_s = 1000,
                                            .is_patient = is_patient});
}

static void after_a_cut_all_is_where_it_belongs_soon_after_the_last_has_heard_of_it(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct found found = heal(seed, false);
        assert_true(found.lacking_first > 100 && found.handed_count > 0);
        assert_in_range(found.all_us, 1, LEARN_US + 20 * SECOND_US);
    }
    assert_true(heal(1, true).all_us > 1000 * SECOND_US);
}

static void a_lost_disk_is_filled_at_full_pace(void **state) {
    unsigned slow_count = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct found found = refill(seed, false);
        uint64_t least_us = found.lacking_first * SECOND_US / 1000;
        assert_true(found.lacking_first > 20000);
        assert_true(found.all_us < least_us * 11 / 10 + 2 * SECOND_US);
        slow_count += refill(seed, true).all_us > least_us * 3 / 2;
    }
    assert_true(slow_count > 0);
}

static void equal_seeds_give_equal_worlds(void **state) {
    (void)state;
    struct found first = heal(3, false);
    struct found again = heal(3, false);
    struct found other = heal(4, false);
    assert_memory_equal(&first.digest, &again.digest, sizeof first.digest);
    assert_memory_not_equal(&first.digest, &other.digest, sizeof first.digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_cut_all_is_where_it_belongs_soon_after_the_last_has_heard_of_it),
        cmocka_unit_test(a_lost_disk_is_filled_at_full_pace),
        cmocka_unit_test(equal_seeds_give_equal_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

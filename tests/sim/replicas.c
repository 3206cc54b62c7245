/* A small world of replicas, kept by the daemon's machine: repair is what keeps objects, and equal seeds give
 * equal worlds. */
#include "../unit/unit.h"
#include "sim/experiments/volunteers.h"
#include "sim/experiments/years_world.h"

struct found {
    uint64_t lost_count;
    uint64_t received_count;
    uint64_t disks_count;
    uint64_t struck_count;
    struct digest digest;
};

static struct found run(struct years_config config) {
    struct years_world world;
    struct found found = {0};
    digest_init(&found.digest);
    assert_int_equal(years_world_init(&world, &config), ERR_OK);
    assert_int_equal(years_world_run(&world), ERR_OK);
    years_world_digest(&world, &found.digest);
    found.lost_count = world.lost_count;
    found.received_count = world.counts.received_count;
    found.disks_count = world.counts.disks_count;
    found.struck_count = world.counts.struck_count;
    years_world_done(&world);
    return found;
}

static struct found run_months(uint64_t seed, bool is_idle, enum years_blow blow) {
    return run((struct years_config){.seed = seed,
                                     .nodes_count = 24,
                                     .objects_count = 240,
                                     .copies = 4,
                                     .duration_us = 150 * YEARS_DAY_US,
                                     .lifetime_us = 100 * YEARS_DAY_US,
                                     .up_us = 64 * YEARS_DAY_US / 24,
                                     .outage_us = 8 * YEARS_DAY_US / 24,
                                     .long_us = 400 * YEARS_DAY_US / 24,
                                     .long_ppm = 20000,
                                     .disk_us = 1000 * YEARS_DAY_US,
                                     .small_percent = 10,
                                     .born_percent = 10,
                                     .object_us = YEARS_DAY_US / 24,
                                     .compare_us = 16 * YEARS_DAY_US / 24,
                                     .grace_us = YEARS_DAY_US,
                                     .is_idle = is_idle,
                                     .blow = blow});
}

static void repair_keeps_what_is_lost_without_it(void **state) {
    (void)state;
    struct found kept = run_months(1, false, YEARS_NO_BLOW);
    struct found idle = run_months(1, true, YEARS_NO_BLOW);
    assert_int_equal(idle.received_count, 0);
    assert_true(kept.received_count > 0);
    assert_true(idle.lost_count > 20);
    assert_true(4 * kept.lost_count < idle.lost_count);
}

static void a_third_that_goes_for_good_costs_more_than_one_that_comes_back(void **state) {
    (void)state;
    struct found away = run_months(2, false, YEARS_AWAY);
    struct found gone = run_months(2, false, YEARS_GONE);
    assert_true(away.lost_count <= gone.lost_count);
}

static void equal_seeds_give_equal_worlds(void **state) {
    (void)state;
    struct found first = run_months(3, false, YEARS_NO_BLOW);
    struct found again = run_months(3, false, YEARS_NO_BLOW);
    struct found other = run_months(4, false, YEARS_NO_BLOW);
    assert_memory_equal(&first.digest, &again.digest, sizeof first.digest);
    assert_memory_not_equal(&first.digest, &other.digest, sizeof first.digest);
}

/* With the thesis's lines, lifetimes and outages, and lost disks on top. */
static void six_copies_outlast_a_year_and_lost_disks(void **state) {
    (void)state;
    struct found found = run((struct years_config){.seed = 1,
                                                   .nodes_count = 20,
                                                   .objects_count = 400,
                                                   .copies = 6,
                                                   .duration_us = 365 * YEARS_DAY_US,
                                                   .lifetime_us = 360 * YEARS_DAY_US,
                                                   .up_us = 64 * YEARS_DAY_US / 24,
                                                   .outage_us = 8 * YEARS_DAY_US / 24,
                                                   .long_us = 400 * YEARS_DAY_US / 24,
                                                   .long_ppm = 20000,
                                                   .disk_us = 1000 * YEARS_DAY_US,
                                                   .born_percent = 10,
                                                   .object_us = 12 * YEARS_DAY_US / 24,
                                                   .compare_us = 16 * YEARS_DAY_US / 24,
                                                   .grace_us = YEARS_DAY_US,
                                                   .keeps_surplus = true});
    assert_true(found.disks_count > 0);
    assert_int_equal(found.lost_count, 0);
}

/* Nothing but the blow happens, so that every object has its three copies. */
static struct found strike_site(bool counts_sites) {
    return run((struct years_config){.seed = 1,
                                     .nodes_count = 20,
                                     .objects_count = 400,
                                     .copies = 3,
                                     .duration_us = 20 * YEARS_DAY_US,
                                     .lifetime_us = 100000 * YEARS_DAY_US,
                                     .up_us = 100000 * YEARS_DAY_US,
                                     .object_us = YEARS_DAY_US / 24,
                                     .compare_us = YEARS_DAY_US,
                                     .grace_us = YEARS_DAY_US,
                                     .blow = YEARS_GONE,
                                     .sites_count = 4,
                                     .counts_sites = counts_sites});
}

static void no_object_is_lost_with_a_site_if_holders_are_chosen_by_sites(void **state) {
    (void)state;
    struct found apart = strike_site(true);
    struct found anywhere = strike_site(false);
    assert_int_equal(apart.struck_count, 0);
    assert_in_range(anywhere.struck_count, 10, 100); /* 42 are expected */
}

/* The two figures that are known of volunteers (volunteers.h), in what is seen in ten days. */
static void volunteers_are_up_as_often_as_those_that_were_measured(void **state) {
    enum { COUNT = 4000, HOURS = 240 };
    struct volunteers volunteers;
    struct prng prng;
    uint32_t reliable_count = 0;
    uint32_t best_count = 0;
    (void)state;
    prng_init(&prng, 7);
    assert_int_equal(volunteers_init(&volunteers, COUNT, &prng), ERR_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t uptime_ppm = volunteers_uptime_ppm(&volunteers, i, 0, HOURS);
        reliable_count += uptime_ppm > 800000;
        best_count += uptime_ppm > 450000;
        assert_int_equal(volunteers_uptime_ppm(&volunteers, i, 0, 1), 1000000); /* it was found */
    }
    assert_in_range(reliable_count, COUNT * 25 / 1000, COUNT * 50 / 1000); /* 3 % */
    assert_in_range(best_count, COUNT * 18 / 100, COUNT * 30 / 100);       /* 20 % */
    volunteers_done(&volunteers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repair_keeps_what_is_lost_without_it),
        cmocka_unit_test(a_third_that_goes_for_good_costs_more_than_one_that_comes_back),
        cmocka_unit_test(equal_seeds_give_equal_worlds),
        cmocka_unit_test(six_copies_outlast_a_year_and_lost_disks),
        cmocka_unit_test(no_object_is_lost_with_a_site_if_holders_are_chosen_by_sites),
        cmocka_unit_test(volunteers_are_up_as_often_as_those_that_were_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

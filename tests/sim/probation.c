/* Fresh nodes in a small ring of the daemon's machine: as many copies as are wanted are with those that have
 * been up for long, whatever comes and goes beside them (protocol/copies/probation.h). */
#include "../unit/unit.h"
#include "sim/experiments/copies_world.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t MINUTE_US = UINT64_C(60) * 1000000;
static const uint64_t HOUR_US = UINT64_C(3600) * 1000000;
static const uint64_t DAY_US = UINT64_C(24) * UINT64_C(3600) * 1000000;

enum { OLD_COUNT = 8, FRESH_COUNT = 12, COPIES = 3, BEFORE_COUNT = 300, LATE_COUNT = 60 };
enum { COME = 1, GO, ARCHIVE };

struct trial {
    struct copies_world world;
    uint64_t period_us;
    bool is_idle; /* fresh nodes do nothing of their own accord */
    uint32_t made_count;
    uint64_t made_us[BEFORE_COUNT + LATE_COUNT];
};

static bool is_up(const struct trial *trial, uint32_t node) {
    return trial->world.nodes[node].is_up;
}

/* All that are up know of it at once. */
static void tell_all(struct trial *trial, uint32_t node) {
    struct copies_world *world = &trial->world;
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        copies_world_see(world, i, node, is_up(trial, node));
        copies_world_see(world, node, i, is_up(trial, i));
    }
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        if (is_up(trial, i)) {
            copies_world_look(world, i);
        }
    }
}

static void trial_happen(void *context, uint32_t code, uint32_t index) {
    struct trial *trial = context;
    struct copies_world *world = &trial->world;
    if (code == COME) {
        copies_world_replace(world, index);
        world->nodes[index].is_idle = trial->is_idle;
        copies_world_rise(world, index);
        tell_all(trial, index);
    } else if (code == GO) {
        copies_world_fall(world, index);
        copies_world_wipe(world, index);
        tell_all(trial, index);
    } else {
        trial->made_us[trial->made_count] = world->now_us;
        copies_world_put(world, index, trial->made_count++);
    }
}

static void trial_begin(struct trial *trial, uint64_t seed, uint64_t period_us) {
    struct copies_world *world = &trial->world;
    struct copies_world_config config = {
        .seed = seed,
        .nodes_count = OLD_COUNT + FRESH_COUNT,
        .copies = COPIES,
        .captures_count = BEFORE_COUNT + LATE_COUNT,
        .delay_us = SECOND_US / 20,
        .timeout_us = 10 * SECOND_US,
        .capture_us = SECOND_US / 100,
        .capture_size = 3000,
        .machine = {.arcs_max = 1, .probation = {.period_us = period_us, .ring_age_us = 100 * DAY_US}},
        .happen = trial_happen,
        .context = trial,
    };
    *trial = (struct trial){.period_us = period_us};
    assert_int_equal(copies_world_init(world, &config), ERR_OK);
    for (uint32_t i = 0; i < OLD_COUNT * OLD_COUNT; i++) {
        copies_world_see(world, i / OLD_COUNT, i % OLD_COUNT, true);
    }
    for (; trial->made_count < BEFORE_COUNT; trial->made_count++) {
        uint32_t holder =
            copies_world_primary(world, 0, copies_archive_place(&world->archive, trial->made_count));
        for (uint32_t j = 0; j < COPIES; j++, holder = copies_world_next(world, 0, holder)) {
            copies_world_plant(world, holder, trial->made_count);
        }
    }
    for (uint32_t i = 0; i < OLD_COUNT; i++) {
        copies_world_rise(world, i);
    }
    assert_int_equal(copies_world_run(world, HOUR_US, NULL, NULL), ERR_OK);
}

/* Copies of it with nodes that have been there all the time. */
static uint32_t old_copies(const struct trial *trial, uint32_t capture) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < OLD_COUNT; i++) {
        count += copies_world_has(&trial->world, i, capture);
    }
    return count;
}

/* The least that any capture has; new ones have half an hour to get there. */
static uint32_t least_old_copies(const struct trial *trial) {
    uint32_t least = COPIES;
    for (uint32_t i = 0; i < trial->made_count; i++) {
        uint32_t count = old_copies(trial, i);
        bool is_settled = trial->world.now_us >= trial->made_us[i] + HOUR_US / 2;
        least = is_settled && count < least ? count : least;
    }
    return least;
}

/* The least at any of so many hours' minutes. */
static uint32_t run_for(struct trial *trial, uint64_t hours) {
    uint32_t least = COPIES;
    for (uint64_t i = 0; i < hours * 6; i++) {
        assert_int_equal(copies_world_run(&trial->world, trial->world.now_us + 10 * MINUTE_US, NULL, NULL),
                         ERR_OK);
        uint32_t now = least_old_copies(trial);
        least = now < least ? now : least;
    }
    return least;
}

static void archive_some(struct trial *trial, uint64_t hours) {
    struct copies_world *world = &trial->world;
    for (uint32_t i = 0; i < LATE_COUNT; i++) {
        copies_world_at(world, world->now_us + (i + 1) * hours * HOUR_US / LATE_COUNT, ARCHIVE,
                        i % OLD_COUNT);
    }
}

/* Twelve come to a ring of eight at the same time, and go together with all that they have. */
static uint32_t flood(uint64_t seed, uint64_t period_us, uint32_t *ret_lost) {
    static struct trial trial;
    *ret_lost = 0;
    trial_begin(&trial, seed, period_us);
    trial.is_idle = seed % 2 == 0;
    archive_some(&trial, 12);
    for (uint32_t i = 0; i < FRESH_COUNT; i++) {
        copies_world_at(&trial.world, trial.world.now_us + 1 + i, COME, OLD_COUNT + i);
    }
    uint32_t least = run_for(&trial, 14);
    for (uint32_t i = 0; i < trial.made_count; i++) {
        *ret_lost += old_copies(&trial, i) == 0;
    }
    assert_int_equal(trial.made_count, BEFORE_COUNT + LATE_COUNT);
    copies_world_done(&trial.world);
    return least;
}

static void many_fresh_nodes_get_none_of_the_copies_that_count(void **state) {
    uint32_t lost_count;
    uint32_t trusted_lost_count = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        assert_int_equal(flood(seed, 3 * DAY_US, &lost_count), COPIES);
        (void)flood(seed, 0, &lost_count);
        trusted_lost_count += lost_count;
    }
    assert_true(trusted_lost_count > 100); /* and if they are trusted at once, captures are theirs alone */
}

/* Of four places of fresh nodes, each is taken by another node every three hours. */
static void newcomers_that_come_and_go_lose_no_copies(void **state) {
    static struct trial trial;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        trial_begin(&trial, seed, 3 * DAY_US);
        archive_some(&trial, 36);
        for (uint64_t hour = 0; hour < 36; hour++) {
            uint32_t node = OLD_COUNT + (uint32_t)(hour % 4);
            copies_world_at(&trial.world, trial.world.now_us + hour * HOUR_US + 1, COME, node);
            copies_world_at(&trial.world, trial.world.now_us + (hour + 3) * HOUR_US, GO, node);
        }
        assert_int_equal(run_for(&trial, 40), COPIES);
        copies_world_done(&trial.world);
    }
}

/* Then its copies count, and what is surplus elsewhere is given up. */
static void who_stays_counts_after_the_period(void **state) {
    static struct trial trial;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        trial_begin(&trial, seed, DAY_US);
        for (uint32_t i = 0; i < 4; i++) {
            copies_world_at(&trial.world, trial.world.now_us + 1 + i, COME, OLD_COUNT + i);
        }
        assert_int_equal(run_for(&trial, 23), COPIES);
        (void)run_for(&trial, 10);
        uint32_t relieved_count = 0;
        for (uint32_t i = 0; i < trial.made_count; i++) {
            uint32_t fresh_count = 0;
            for (uint32_t j = 0; j < 4; j++) {
                fresh_count += copies_world_has(&trial.world, OLD_COUNT + j, i);
            }
            relieved_count += old_copies(&trial, i) < COPIES;
            assert_true(old_copies(&trial, i) + fresh_count >= COPIES);
        }
        assert_true(relieved_count > BEFORE_COUNT / 4);
        copies_world_done(&trial.world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_fresh_nodes_get_none_of_the_copies_that_count),
        cmocka_unit_test(newcomers_that_come_and_go_lose_no_copies),
        cmocka_unit_test(who_stays_counts_after_the_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

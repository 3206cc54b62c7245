/* Disks that rot, in small rings of the daemon's machine (protocol/copies/replicator_repair.c): what one
 * sound copy is left of is sound everywhere again, though nobody reads it and holders are away for a while.
 */
#include "../unit/unit.h"
#include "sim/experiments/copies_world.h"

enum { NODES_COUNT = 8, COPIES = 3, CAPTURES_COUNT = 1600 };

static const uint64_t SECOND_US = 1000000;
static const uint64_t HOUR_US = UINT64_C(3600) * 1000000;

struct ring {
    struct copies_world world;
    uint32_t rotten_count; /* copies, to begin with */
};

static void make_ring(struct ring *ring, uint64_t seed) {
    struct copies_world *world = &ring->world;
    struct copies_world_config config = {
        .seed = seed,
        .nodes_count = NODES_COUNT,
        .copies = COPIES,
        .captures_count = CAPTURES_COUNT,
        .delay_us = 20000,
        .timeout_us = 10 * SECOND_US,
        .capture_us = 1000,
        .capture_size = 4096,
        .scrub_us = 10 * SECOND_US,
        .machine = {.arcs_max = 1},
    };
    *ring = (struct ring){.rotten_count = 0};
    assert_int_equal(copies_world_init(world, &config), ERR_OK);
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        for (uint32_t j = 0; j < NODES_COUNT; j++) {
            copies_world_see(world, i, j, true);
        }
    }
}

/* Of every tenth capture all copies but one rot, of the ones behind these one does. */
static void plant_and_rot(struct ring *ring) {
    struct copies_world *world = &ring->world;
    for (uint32_t i = 0; i < CAPTURES_COUNT; i++) {
        uint32_t holder = copies_world_primary(world, 0, copies_archive_place(&world->archive, i));
        uint32_t sound = (uint32_t)prng_below(&world->prng, COPIES);
        for (uint32_t j = 0; j < COPIES; j++, holder = copies_world_next(world, 0, holder)) {
            bool rots = i % 10 == 0 ? j != sound : i % 10 == 1 && j == sound;
            copies_world_plant(world, holder, i);
            if (rots) {
                copies_world_rot(world, holder, i);
                ring->rotten_count++;
            }
        }
    }
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        copies_world_rise(world, i);
    }
}

static uint32_t count_rotten(const struct copies_world *world) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        for (uint32_t j = 0; j < CAPTURES_COUNT; j++) {
            count += world->nodes[i].disk.has[j] && world->nodes[i].rotten[j];
        }
    }
    return count;
}

static uint64_t count_repaired(const struct copies_world *world) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        struct replicator_status status;
        replicator_status(world->nodes[i].replicator, &status);
        assert_int_equal(status.damaged_count, 0);
        count += status.counts.repaired_count;
    }
    return count;
}

static void what_rots_is_found_and_repaired(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct ring ring;
        make_ring(&ring, seed);
        plant_and_rot(&ring);
        assert_int_equal(count_rotten(&ring.world), ring.rotten_count);
        assert_int_equal(copies_world_run(&ring.world, HOUR_US, NULL, NULL), ERR_OK);
        assert_int_equal(count_rotten(&ring.world), 0);
        assert_int_equal(count_repaired(&ring.world), ring.rotten_count);
        copies_world_done(&ring.world);
    }
}

/* Two nodes say nothing for two hours: what only they have waits, and no longer than need be. */
static void what_cannot_be_repaired_yet_is_repaired_later(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct ring ring;
        make_ring(&ring, seed);
        plant_and_rot(&ring);
        ring.world.config.scrub_us = 60 * SECOND_US; /* 25 minutes a pass */
        for (uint32_t i = 0; i < 2; i++) {
            ring.world.nodes[i].silent_to_us = 2 * HOUR_US;
        }
        assert_int_equal(copies_world_run(&ring.world, HOUR_US, NULL, NULL), ERR_OK);
        ring.world.config.scrub_us = 1000 * HOUR_US; /* nothing is found again */
        assert_int_equal(copies_world_run(&ring.world, 2 * HOUR_US, NULL, NULL), ERR_OK);
        assert_in_range(count_rotten(&ring.world), 1, ring.rotten_count / 2);
        assert_int_equal(copies_world_run(&ring.world, 3 * HOUR_US, NULL, NULL), ERR_OK);
        assert_int_equal(count_rotten(&ring.world), 0);
        copies_world_done(&ring.world);
    }
}

/* What one node alone has, and rots there, stays damaged and is known to be. */
static void what_nobody_has_stays_known(void **state) {
    (void)state;
    struct ring ring;
    struct replicator_status status;
    make_ring(&ring, 1);
    uint32_t holder = copies_world_primary(&ring.world, 0, copies_archive_place(&ring.world.archive, 7));
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        copies_world_rise(&ring.world, i);
    }
    copies_world_plant(&ring.world, holder, 7);
    copies_world_rot(&ring.world, holder, 7);
    assert_int_equal(copies_world_run(&ring.world, HOUR_US, NULL, NULL), ERR_OK);
    replicator_status(ring.world.nodes[holder].replicator, &status);
    assert_int_equal(count_rotten(&ring.world), 1);
    assert_int_equal(status.damaged_count, 1);
    copies_world_done(&ring.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rots_is_found_and_repaired),
        cmocka_unit_test(what_cannot_be_repaired_yet_is_repaired_later),
        cmocka_unit_test(what_nobody_has_stays_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

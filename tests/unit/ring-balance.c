/* Which part of the keys each node of a small ring owns, and who moves for it (balance.c). */
#include "ring-street.h"

enum { LIST_SIZE = 8, VNODES_COUNT = 8, SETTLE_S = 120, LOSS_S = 600, PERCENT_MAX = 15 };

static struct ring_config fair(void) {
    return (struct ring_config){
        .vnodes_count = VNODES_COUNT, .list_size = LIST_SIZE, .balance_us = LOSS_S * STREET_SECOND_US};
}

static struct address network(uint64_t seed, uint8_t last, uint16_t port) {
    return address_ipv4(10, (uint8_t)(prng_mix(seed) >> 8), (uint8_t)prng_mix(seed), last, port);
}

/* What a house owns of the ring, in percent of an equal part for each place. */
static int percent_of(const struct street *street, uint32_t house) {
    double own = 0;
    double all = 0;
    for (uint32_t i = 0; i < street->count; i++) {
        const struct ring *ring = street->houses[i].ring;
        for (uint8_t j = 0; ring != NULL && j < ring_vnodes_count(ring); j++) {
            struct ring_id arc = ring_id_distance(ring_predecessor(ring, j)->id, ring_vnode_at(ring, j)->id);
            all += 1;
            own += i == house ? (double)arc.high / 0x1p64 : 0;
        }
    }
    return (int)(100 * own * all / ring_vnodes_count(street->houses[house].ring) + 0.5);
}

static int worst_of(const struct street *street) {
    int worst = 0;
    for (uint32_t i = 0; i < street->count; i++) {
        if (street->houses[i].ring != NULL) {
            int off = abs(percent_of(street, i) - 100);
            worst = off > worst ? off : worst;
        }
    }
    return worst;
}

/* Runs until nobody has moved for a while. */
static void rest(struct street *street) {
    street_run(street, SETTLE_S * STREET_SECOND_US);
    assert_true(street_settles(street, SETTLE_S));
}

static void begin(struct street *street, uint64_t seed, uint32_t count, struct ring_config config) {
    street_init(street, seed);
    for (uint32_t i = 0; i < count; i++) {
        street_build(street, network(seed, (uint8_t)(i + 1), 7070), config);
        street_start(street, i, 0);
        assert_true(street_settles(street, SETTLE_S));
    }
    rest(street);
}

static uint64_t rows_of(const struct street *street) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < street->count; i++) {
        const struct ring *ring = street->houses[i].ring;
        if (ring != NULL) {
            uint64_t row = (uint64_t)ring_vnode_at(ring, 0)->index << 8 | ring_vnodes_count(ring);
            rows += prng_mix((uint64_t)i << 32 | row);
        }
    }
    return rows;
}

static void few_equal_nodes_own_equal_parts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (uint32_t count = 2; count <= 5; count++) {
            struct street street;
            begin(&street, seed, count, fair());
            if (worst_of(&street) > PERCENT_MAX) {
                fail_msg("seed %ju, %u nodes: %d %% off", (uintmax_t)seed, count, worst_of(&street));
            }
            street_done(&street);
        }
    }
}

static void without_the_rule_they_do_not(void **state) {
    (void)state;
    int worst = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct street street;
        struct ring_config config = fair();
        config.balance_us = 0;
        begin(&street, seed, 5, config);
        worst = worst_of(&street) > worst ? worst_of(&street) : worst;
        street_done(&street);
    }
    assert_true(worst > 2 * PERCENT_MAX);
}

/* A node of twice the places has twice the part. */
static void parts_are_in_proportion(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct street street;
        begin(&street, seed, 4, fair());
        struct ring_config large = fair();
        large.vnodes_count = 2 * VNODES_COUNT;
        uint32_t house = street_build(&street, network(seed, 99, 7070), large);
        street_start(&street, house, 0);
        rest(&street);
        assert_int_equal(ring_vnodes_count(street.houses[house].ring), 2 * VNODES_COUNT);
        assert_true(worst_of(&street) <= PERCENT_MAX);
        street_done(&street);
    }
}

static void a_restart_moves_nobody(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct street street;
        begin(&street, seed, 5, fair());
        uint64_t rows = rows_of(&street);
        struct street_house *house = &street.houses[2];
        house->config.first_index = ring_vnode_at(house->ring, 0)->index;
        house->config.is_settled = true;
        street_stop(&street, 2);
        street_run(&street, LOSS_S / 2 * STREET_SECOND_US);
        street_start(&street, 2, 0);
        rest(&street);
        assert_true(rows_of(&street) == rows);
        street_done(&street);
    }
}

/* As after a power failure. */
static void a_restart_of_all_moves_nobody(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct street street;
        begin(&street, seed, 5, fair());
        uint64_t rows = rows_of(&street);
        for (uint32_t i = 0; i < street.count; i++) {
            struct street_house *house = &street.houses[i];
            house->config.first_index = ring_vnode_at(house->ring, 0)->index;
            house->config.is_settled = true;
            street_stop(&street, i);
        }
        for (uint32_t i = 0; i < street.count; i++) {
            street_start(&street, i, i == 0 ? 0 : i - 1);
            street_run(&street, 60 * STREET_SECOND_US);
        }
        rest(&street);
        assert_true(rows_of(&street) == rows);
        street_done(&street);
    }
}

static void a_loss_is_evened_out_when_it_lasts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct street street;
        begin(&street, seed, 5, fair());
        street_stop(&street, 2);
        uint64_t rows = rows_of(&street);
        street_run(&street, (LOSS_S - 30) * STREET_SECOND_US);
        assert_true(rows_of(&street) == rows);
        street_run(&street, SETTLE_S * STREET_SECOND_US);
        rest(&street);
        assert_true(worst_of(&street) <= PERCENT_MAX);
        street_done(&street);
    }
}

/* The 32 places of one address are shared, and the next that comes finds some. */
static void many_behind_one_address_find_room(void **state) {
    (void)state;
    struct street street;
    begin(&street, 1, 1, fair());
    for (uint16_t i = 1; i < 12; i++) {
        uint32_t house = street_build(&street, network(1, 1, (uint16_t)(7070 + i)), fair());
        street_start(&street, house, 0);
        assert_true(street_settles(&street, SETTLE_S));
        street_run(&street, SETTLE_S * STREET_SECOND_US);
        assert_true(street_settles(&street, SETTLE_S));
    }
    street_done(&street);
}

static void resize(struct street *street, uint32_t house, uint8_t vnodes_count) {
    street_step(street, house,
                (struct event){.kind = EVENT_COMMAND, .code = RING_RESIZE, .number = vnodes_count});
    rest(street);
    assert_int_equal(ring_vnodes_count(street->houses[house].ring), vnodes_count);
}

/* A node that has less room than it thought, in a small ring and in Chord. */
static void a_node_takes_fewer_places_and_more_again(void **state) {
    (void)state;
    for (uint32_t count = 4; count <= 12; count += 8) {
        struct street street;
        struct ring_config config = fair();
        config.vnodes_max = VNODES_COUNT;
        begin(&street, count, count, config);
        assert_int_equal(ring_mode(street.houses[1].ring), count > LIST_SIZE ? RING_CHORD : RING_SMALL);
        resize(&street, 1, VNODES_COUNT / 2);
        resize(&street, 1, 1);
        resize(&street, 1, VNODES_COUNT / 4);
        if (count <= LIST_SIZE) {
            assert_true(worst_of(&street) <= 2 * PERCENT_MAX); /* in proportion, with little choice */
        }
        street_done(&street);
    }
}

/* Nodes of an older version keep the places that they have. */
static void nodes_that_never_move_are_no_obstacle(void **state) {
    (void)state;
    struct street street;
    struct ring_config old = fair();
    old.balance_us = 0;
    begin(&street, 3, 2, old);
    for (uint8_t i = 0; i < 3; i++) {
        uint32_t house = street_build(&street, network(3, (uint8_t)(50 + i), 7070), fair());
        street_start(&street, house, 0);
        rest(&street);
    }
    assert_int_equal(ring_vnode_at(street.houses[0].ring, 0)->index, 0);
    assert_int_equal(ring_vnode_at(street.houses[1].ring, 0)->index, 0);
    uint64_t rows = rows_of(&street);
    rest(&street);
    assert_true(rows_of(&street) == rows);
    street_done(&street);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_equal_nodes_own_equal_parts),
        cmocka_unit_test(without_the_rule_they_do_not),
        cmocka_unit_test(parts_are_in_proportion),
        cmocka_unit_test(a_restart_moves_nobody),
        cmocka_unit_test(a_restart_of_all_moves_nobody),
        cmocka_unit_test(a_loss_is_evened_out_when_it_lasts),
        cmocka_unit_test(many_behind_one_address_find_room),
        cmocka_unit_test(a_node_takes_fewer_places_and_more_again),
        cmocka_unit_test(nodes_that_never_move_are_no_obstacle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

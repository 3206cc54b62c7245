/* Which part of the keys each node of a small ring owns, and which places it takes for that (even.c). */
#include "ring-street.h"

enum { LIST_SIZE = 16, UNIT = 8, SETTLE_S = 120, LOSS_S = 900, MOVES_S = 600, PERCENT_MAX = 15 };

static struct ring_config fair(void) {
    return (struct ring_config){
        .is_even = true, .list_size = LIST_SIZE, .even_loss_us = LOSS_S * STREET_SECOND_US};
}

static struct address network(uint64_t seed, uint8_t last, uint16_t port) {
    return address_ipv4(10, (uint8_t)(prng_mix(seed) >> 8), (uint8_t)prng_mix(seed), last, port);
}

static double share_of(const struct ring *ring) {
    double share = 0;
    for (uint8_t i = 0; i < ring_vnodes_count(ring); i++) {
        struct ring_id arc = ring_id_distance(ring_predecessor(ring, i)->id, ring_vnode_at(ring, i)->id);
        share += (double)arc.high / 0x1p64;
    }
    return share;
}

/* How far the node is from an equal part that is furthest from it, in percent of that. */
static int worst_of(const struct street *street) {
    int worst = 0;
    int count = 0;
    for (uint32_t i = 0; i < street->count; i++) {
        count += street->houses[i].ring != NULL;
    }
    for (uint32_t i = 0; i < street->count; i++) {
        if (street->houses[i].ring != NULL) {
            int off = abs((int)(100 * count * share_of(street->houses[i].ring) + 0.5) - 100);
            worst = off > worst ? off : worst;
        }
    }
    return worst;
}

/* All have chosen, and the ring is whole. */
static bool street_is_settled(const struct street *street) {
    for (uint32_t i = 0; i < street->count; i++) {
        if (street->houses[i].ring != NULL && !ring_is_settled(street->houses[i].ring)) {
            return false;
        }
    }
    return true;
}

static void rest(struct street *street, uint64_t seconds) {
    street_run(street, seconds * STREET_SECOND_US);
    assert_true(street_is_settled(street));
    assert_true(street_settles(street, SETTLE_S));
}

/* One after the other, `between_s` apart; 0: all at once. */
static void begin(struct street *street, uint64_t seed, uint32_t count, uint64_t between_s,
                  struct ring_config config) {
    street_init(street, seed);
    for (uint32_t i = 0; i < count; i++) {
        street_build(street, network(seed, (uint8_t)(i + 1), 7070), config);
        street_start(street, i, 0);
        if (between_s > 0) {
            rest(street, between_s);
        }
    }
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

static void nodes_that_come_at_once_own_even_parts_within_seconds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        for (uint32_t count = 2; count <= (seed == 1 ? 12 : 5); count += count < 5 ? 1 : 7) {
            struct street street;
            begin(&street, seed, count, 0, fair());
            rest(&street, 15);
            if (worst_of(&street) > PERCENT_MAX) {
                fail_msg("seed %ju, %u nodes: %d %% off", (uintmax_t)seed, count, worst_of(&street));
            }
            uint64_t rows = rows_of(&street);
            rest(&street, MOVES_S);
            assert_true(rows_of(&street) == rows); /* and they stay there */
            street_done(&street);
        }
    }
}

/* What a node remembers and takes for a place of others is one. */
static void places_that_were_given_up_are_not_taken_for_places(void **state) {
    (void)state;
    struct street street;
    begin(&street, 1, 5, 0, fair());
    rest(&street, 15);
    for (uint32_t i = 0; i < street.count; i++) {
        const struct ring *ring = street.houses[i].ring;
        for (uint32_t j = 0; j < ring_known_count(ring); j++) {
            struct ring_known known = ring_known_at(ring, j);
            bool is_there = !ring_is_current(ring, &known.vnode);
            for (uint32_t k = 0; k < street.count; k++) {
                const struct ring *other = street.houses[k].ring;
                for (uint8_t v = 0; v < ring_vnodes_count(other); v++) {
                    is_there |= ring_id_equal(ring_vnode_at(other, v)->id, known.vnode.id);
                }
            }
            assert_true(is_there);
        }
    }
    street_done(&street);
}

static void nodes_that_come_later_get_even_parts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct street street;
        begin(&street, seed, 5, MOVES_S, fair());
        if (worst_of(&street) > PERCENT_MAX) {
            fail_msg("seed %ju: %d %% off", (uintmax_t)seed, worst_of(&street));
        }
        street_done(&street);
    }
}

static void with_one_place_each_parts_are_not_even(void **state) {
    (void)state;
    int worst = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct street street;
        begin(&street, seed, 5, 0, (struct ring_config){.list_size = LIST_SIZE});
        rest(&street, SETTLE_S);
        worst = worst_of(&street) > worst ? worst_of(&street) : worst;
        street_done(&street);
    }
    assert_true(worst > 2 * PERCENT_MAX);
}

/* As it is kept on the disk. */
static void keep(struct street *street, uint32_t house) {
    struct ring_config *config = &street->houses[house].config;
    const struct ring *ring = street->houses[house].ring;
    config->first_index = ring_vnode_at(ring, 0)->index;
    config->vnodes_count = ring_vnodes_count(ring);
    config->even_wanted = ring_wanted(ring);
    config->is_even_chosen = true;
}

static void a_restart_moves_nobody(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct street street;
        begin(&street, seed, 5, 0, fair());
        rest(&street, SETTLE_S);
        uint64_t rows = rows_of(&street);
        keep(&street, 2);
        street_stop(&street, 2);
        street_run(&street, LOSS_S / 2 * STREET_SECOND_US);
        street_start(&street, 2, 0);
        rest(&street, MOVES_S);
        assert_true(rows_of(&street) == rows);
        street_done(&street);
    }
}

/* As after a power failure. */
static void a_restart_of_all_moves_nobody(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct street street;
        begin(&street, seed, 5, 0, fair());
        rest(&street, SETTLE_S);
        uint64_t rows = rows_of(&street);
        for (uint32_t i = 0; i < street.count; i++) {
            keep(&street, i);
            street_stop(&street, i);
        }
        for (uint32_t i = 0; i < street.count; i++) {
            street_start(&street, i, i == 0 ? 0 : i - 1);
            street_run(&street, 150 * STREET_SECOND_US);
        }
        rest(&street, MOVES_S);
        assert_true(rows_of(&street) == rows);
        street_done(&street);
    }
}

static void a_loss_is_evened_out_when_it_lasts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct street street;
        begin(&street, seed, 6, 0, fair());
        rest(&street, SETTLE_S);
        street_stop(&street, 2);
        uint64_t rows = rows_of(&street);
        street_run(&street, (LOSS_S - 30) * STREET_SECOND_US);
        assert_true(rows_of(&street) == rows);
        rest(&street, 2 * MOVES_S);
        if (worst_of(&street) > PERCENT_MAX) {
            fail_msg("seed %ju: %d %% off", (uintmax_t)seed, worst_of(&street));
        }
        street_done(&street);
    }
}

/* The 32 places of one address are shared. */
static void several_behind_one_address_find_room(void **state) {
    (void)state;
    struct street street;
    begin(&street, 1, 1, SETTLE_S, fair());
    for (uint16_t i = 1; i < 4; i++) {
        uint32_t house = street_build(&street, network(1, 1, (uint16_t)(7070 + i)), fair());
        street_start(&street, house, 0);
        street_run(&street, SETTLE_S * STREET_SECOND_US);
        assert_true(street_settles(&street, SETTLE_S));
    }
    street_done(&street);
}

static void resize(struct street *street, uint32_t house, uint8_t vnodes_count, uint8_t expected_least) {
    street_step(street, house,
                (struct event){.kind = EVENT_COMMAND, .code = RING_RESIZE, .number = vnodes_count});
    rest(street, SETTLE_S);
    uint8_t now_count = ring_vnodes_count(street->houses[house].ring);
    assert_true(now_count == vnodes_count || (vnodes_count == UNIT && now_count >= expected_least));
    assert_int_equal(ring_wanted(street->houses[house].ring), vnodes_count);
}

/* A node that has less room than it thought, in a small ring and in Chord. */
static void a_node_takes_a_smaller_part_and_a_whole_one_again(void **state) {
    (void)state;
    for (uint32_t count = 4; count <= 20; count += 16) {
        struct street street;
        begin(&street, count, count, 0, fair());
        rest(&street, SETTLE_S);
        assert_int_equal(ring_mode(street.houses[1].ring), count > LIST_SIZE ? RING_CHORD : RING_SMALL);
        double before = share_of(street.houses[1].ring);
        resize(&street, 1, UNIT - 1, 0);
        resize(&street, 1, UNIT / 2, 0);
        rest(&street, MOVES_S);
        assert_true(share_of(street.houses[1].ring) < 0.8 * before);
        resize(&street, 1, 1, 0);
        assert_true(share_of(street.houses[1].ring) < 0.5 * before);
        resize(&street, 1, UNIT, UNIT);
        street_done(&street);
    }
}

/* Nodes of an older version have one place and keep it; others do not take eight times as much beside them.
 */
static void beside_nodes_of_one_place_a_node_takes_one_that_fits(void **state) {
    (void)state;
    struct street street;
    begin(&street, 3, 3, SETTLE_S, (struct ring_config){.list_size = 8});
    for (uint8_t i = 0; i < 2; i++) {
        struct ring_config config = fair();
        config.list_size = 8;
        uint32_t house = street_build(&street, network(3, (uint8_t)(50 + i), 7070), config);
        street_start(&street, house, 0);
        rest(&street, SETTLE_S);
        assert_int_equal(ring_vnodes_count(street.houses[house].ring), 1);
        assert_true(share_of(street.houses[house].ring) > 0.05 && share_of(street.houses[house].ring) < 0.5);
    }
    assert_int_equal(ring_vnode_at(street.houses[0].ring, 0)->index, 0);
    rest(&street, 2 * MOVES_S);
    uint64_t rows = rows_of(&street);
    rest(&street, 2 * MOVES_S);
    assert_true(rows_of(&street) == rows); /* it ends */
    street_done(&street);
}

/* A member that says something else all the time: the others choose all the same. At the daemon's pace. */
static void a_node_that_keeps_changing_delays_nobody_for_long(void **state) {
    (void)state;
    struct street street;
    street_init(&street, 1);
    for (uint8_t i = 0; i < 4; i++) {
        struct ring_config config = fair();
        config.is_even_chosen = i == 0;
        config.vnodes_count = UNIT;
        street_build(&street, network(1, (uint8_t)(i + 1), 7070), config);
        street.houses[i].config.stabilize_us = 10 * STREET_SECOND_US;
        street_start(&street, i, 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        uint64_t count = i % 2 == 0 ? 2 : 3;
        street_step(&street, 0, (struct event){.kind = EVENT_COMMAND, .code = RING_RESIZE, .number = count});
        street_run(&street, STREET_SECOND_US / 2);
        for (uint32_t j = 1; j < 4 && i < 30; j++) {
            assert_int_equal(ring_vnodes_count(street.houses[j].ring), 1); /* it does delay them */
        }
    }
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(ring_vnodes_count(street.houses[i].ring) >= UNIT);
    }
    street_done(&street);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_come_at_once_own_even_parts_within_seconds),
        cmocka_unit_test(places_that_were_given_up_are_not_taken_for_places),
        cmocka_unit_test(nodes_that_come_later_get_even_parts),
        cmocka_unit_test(with_one_place_each_parts_are_not_even),
        cmocka_unit_test(a_restart_moves_nobody),
        cmocka_unit_test(a_restart_of_all_moves_nobody),
        cmocka_unit_test(a_loss_is_evened_out_when_it_lasts),
        cmocka_unit_test(several_behind_one_address_find_room),
        cmocka_unit_test(a_node_takes_a_smaller_part_and_a_whole_one_again),
        cmocka_unit_test(a_node_that_keeps_changing_delays_nobody_for_long),
        cmocka_unit_test(beside_nodes_of_one_place_a_node_takes_one_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

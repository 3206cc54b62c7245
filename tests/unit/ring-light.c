/* A light node asks and is no part of the ring: protocol/ring/light.c. */
#include "ring-street.h"

enum { LIST_SIZE = 4, VNODES = 2, PATIENCE_S = 90, KEYS = 20 };

static const uint32_t counts[] = {1, 3, 12}; /* alone, a small ring, Chord */
enum { COUNTS_COUNT = sizeof counts / sizeof *counts };

static struct address light_address(void) {
    return address_ipv4(10, 0, 0, 2, 40000);
}

/* Settled members, and a light node that joins through the first of them. */
static uint32_t light_begin(struct street *street, uint64_t seed, uint32_t count) {
    struct ring_config member = {.vnodes_count = VNODES, .list_size = LIST_SIZE};
    struct ring_config light = {.list_size = LIST_SIZE, .is_light = true};
    street_init(street, seed);
    for (uint32_t i = 0; i < count; i++) {
        street_build(street, address_ipv4(192, 0, 2, (uint8_t)(i + 1), 7070), member);
        street_start(street, i, 0);
    }
    assert_true(street_settles(street, PATIENCE_S));
    uint32_t house = street_build(street, light_address(), light);
    street_start(street, house, 0);
    return house;
}

/* True until so much time has passed, a tenth of a second at a time. */
static bool await_known(struct street *street, uint32_t house, uint32_t count) {
    for (unsigned i = 0; i < PATIENCE_S * 10 && ring_known_count(street->houses[house].ring) != count; i++) {
        street_run(street, STREET_SECOND_US / 10);
    }
    return ring_known_count(street->houses[house].ring) == count;
}

static bool is_reached(const struct street *street, uint32_t house) {
    return street->houses[house].has_said_member;
}

static void assert_unknown_to(const struct street *street, uint32_t count) {
    struct address address = light_address();
    for (uint32_t i = 0; i < count; i++) {
        const struct ring *ring = street->houses[i].ring;
        for (uint32_t j = 0; j < ring_known_count(ring); j++) {
            struct ring_known known = ring_known_at(ring, j);
            assert_false(address_equal(&known.vnode.peer.address, &address));
        }
        assert_int_equal(ring_counters(ring)->blamed_count, 0);
        assert_int_equal(ring_counters(ring)->malformed_count, 0);
    }
}

static void it_learns_of_all_and_nobody_learns_of_it(void **state) {
    (void)state;
    for (unsigned c = 0; c < COUNTS_COUNT; c++) {
        struct street street;
        uint32_t light = light_begin(&street, c, counts[c]);
        assert_true(await_known(&street, light, counts[c] * VNODES));
        assert_true(is_reached(&street, light));
        street_run(&street, 20 * STREET_SECOND_US);
        assert_unknown_to(&street, counts[c]);
        assert_false(ring_is_member(street.houses[light].ring, 0));
        assert_int_equal(ring_mode(street.houses[light].ring), RING_LIGHT);
        street_done(&street);
    }
}

static void street_ask(struct street *street, uint32_t house, uint64_t number, struct ring_id key) {
    uint8_t memory[RING_ID_SIZE + 1];
    struct event event = {.kind = EVENT_COMMAND, .code = RING_FIND, .number = number};
    ring_id_write(key, memory);
    memory[RING_ID_SIZE] = 2;
    event.bytes = bytes_of(memory, sizeof memory);
    street_step(street, house, event);
}

static void it_finds_the_owner_of_each_key(void **state) {
    (void)state;
    for (unsigned c = 0; c < COUNTS_COUNT; c++) {
        struct street street;
        struct street_map map;
        uint32_t light = light_begin(&street, 10 + c, counts[c]);
        const struct street_house *house = &street.houses[light];
        assert_true(await_known(&street, light, counts[c] * VNODES));
        street.count--; /* of the members */
        assert_true(street_draw(&street, &map));
        street.count++;
        for (uint32_t i = 0; i < KEYS; i++) {
            struct ring_id key = {.high = UINT64_MAX / KEYS * i, .low = i};
            uint32_t owner = 0;
            while (owner < map.count && ring_id_compare(map.vnodes[owner].vnode->id, key) < 0) {
                owner++;
            }
            street_ask(&street, light, i, key);
            street_run(&street, STREET_SECOND_US);
            assert_int_equal(house->found_number, i);
            assert_true(ring_id_equal(house->found, map.vnodes[owner % map.count].vnode->id));
            assert_true(house->found_hops <= 1); /* it knows whom to ask */
        }
        assert_int_equal(ring_counters(house->ring)->lost_count, 0);
        street_done(&street);
    }
}

static void a_node_that_dies_leaves_its_table_with_all_places(void **state) {
    (void)state;
    struct street street;
    uint32_t light = light_begin(&street, 20, 3);
    assert_true(await_known(&street, light, 3 * VNODES));
    street_stop(&street, 0); /* the contact */
    assert_true(await_known(&street, light, 2 * VNODES));
    assert_true(is_reached(&street, light));
    street_stop(&street, 1);
    street_stop(&street, 2);
    assert_true(await_known(&street, light, 0));
    assert_false(is_reached(&street, light));
    street_done(&street);
}

static void it_says_nothing_of_itself_to_those_that_ask(void **state) {
    (void)state;
    struct street street;
    uint32_t light = light_begin(&street, 30, 3);
    assert_true(await_known(&street, light, 3 * VNODES));
    uint32_t curious = street_build(&street, address_ipv4(192, 0, 2, 99, 7070),
                                    (struct ring_config){.vnodes_count = 1, .list_size = LIST_SIZE});
    street_start(&street, curious, light); /* somebody takes it for a member */
    street_run(&street, 10 * STREET_SECOND_US);
    assert_false(ring_is_member(street.houses[curious].ring, 0));
    assert_false(ring_is_member(street.houses[light].ring, 0));
    assert_int_equal(ring_known_count(street.houses[light].ring), 3 * VNODES);
    street_done(&street);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_of_all_and_nobody_learns_of_it),
        cmocka_unit_test(it_finds_the_owner_of_each_key),
        cmocka_unit_test(a_node_that_dies_leaves_its_table_with_all_places),
        cmocka_unit_test(it_says_nothing_of_itself_to_those_that_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who has which place: nodes behind one address, nodes with many places, IPv6; who comes back after a sleep.
 */
#include <math.h>

#include "ring-street.h"

enum { LIST_SIZE = 4, PATIENCE_S = 90, COPIES = 3 };

static struct address v4(uint8_t last, uint16_t port) {
    return address_ipv4(192, 0, 2, last, port);
}

static struct ring_config plain(uint8_t vnodes_count) {
    return (struct ring_config){.vnodes_count = vnodes_count, .list_size = LIST_SIZE};
}

static uint8_t first_of(const struct street *street, uint32_t house) {
    return ring_vnode_at(street->houses[house].ring, 0)->index;
}

static void assert_settles(struct street *street, const char *when) {
    if (!street_settles(street, PATIENCE_S)) {
        fail_msg("%s: no ring of all within %u s", when, PATIENCE_S);
    }
}

/* A ring of so many, each at an address of its own; the first founds it. */
static void begin(struct street *street, uint64_t seed, uint32_t count, uint8_t vnodes_count) {
    street_init(street, seed);
    for (uint32_t i = 0; i < count; i++) {
        street_build(street, v4((uint8_t)(i + 1), 7070), plain(vnodes_count));
        street_start(street, i, 0);
    }
    assert_settles(street, "before");
}

static const uint32_t counts[] = {1, 3, 12}; /* alone, a small ring, Chord */
enum { COUNTS_COUNT = sizeof counts / sizeof *counts };

/* ---- behind one address ---- */

static void who_comes_second_takes_the_next_vnodes(void **state) {
    (void)state;
    for (unsigned c = 0; c < COUNTS_COUNT; c++) {
        for (uint8_t vnodes = 1; vnodes <= 3; vnodes += 2) {
            struct street street;
            begin(&street, c, counts[c], vnodes);
            uint32_t second = street_build(&street, v4(1, 7071), plain(vnodes));
            uint32_t third = street_build(&street, v4(1, 7072), plain(vnodes));
            street_start(&street, second, counts[c] - 1);
            assert_settles(&street, "the second");
            assert_int_equal(first_of(&street, 0), 0);
            assert_int_equal(first_of(&street, second), vnodes);
            assert_int_equal(street.houses[0].taken_count, 0);
            street_start(&street, third, 0);
            assert_settles(&street, "the third");
            assert_int_equal(first_of(&street, second), vnodes);
            assert_int_equal(first_of(&street, third), 2 * vnodes);
            street_done(&street);
        }
    }
}

/* Whoever of them is first: all have places, and no two the same. */
static void several_that_come_at_once_have_different_vnodes(void **state) {
    (void)state;
    for (unsigned c = 0; c < COUNTS_COUNT; c++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct street street;
            begin(&street, seed, counts[c], 1);
            for (uint16_t i = 0; i < 4; i++) {
                uint32_t house = street_build(&street, v4(99, (uint16_t)(7070 + i)), plain(2));
                street_start(&street, house, 0);
            }
            assert_settles(&street, "all at once");
            street_done(&street);
        }
    }
}

static void who_insists_on_a_taken_vnode_is_no_member(void **state) {
    (void)state;
    for (unsigned c = 0; c < COUNTS_COUNT; c++) {
        struct street street;
        struct ring_config fixed = plain(1);
        fixed.is_first_fixed = true;
        begin(&street, c, counts[c], 1);
        uint32_t other = street_build(&street, v4(200, 7070), plain(1)); /* so that one is left */
        street_start(&street, other, 0);
        uint32_t second = street_build(&street, v4(1, 7071), fixed);
        assert_settles(&street, "before");
        street_start(&street, second, other);
        for (unsigned i = 0; i < 40; i++) {
            street_run(&street, STREET_SECOND_US / 4);
            assert_false(ring_is_member(street.houses[second].ring, 0));
        }
        assert_int_equal(street.houses[second].taken_count, 1);
        assert_int_equal(street.houses[second].taken_next, RING_VIRTUAL_MAX);
        street_join(&street, second, other); /* once more, and it is the same */
        street_run(&street, 5 * STREET_SECOND_US);
        assert_int_equal(street.houses[second].taken_count, 2);
        street_stop(&street, 0); /* now it becomes free */
        street_join(&street, second, other);
        assert_settles(&street, "free");
        assert_int_equal(first_of(&street, second), 0);
        street_done(&street);
    }
}

/* At no time both are members at one ID. */
static void assert_stay_apart(struct street *street, uint32_t a, uint32_t b) {
    for (unsigned i = 0; i < 1000; i++) {
        const struct ring *of_a = street->houses[a].ring;
        const struct ring *of_b = street->houses[b].ring;
        street_run(street, STREET_LATENCY_US);
        assert_false(ring_is_member(of_a, 0) && ring_is_member(of_b, 0) &&
                     ring_id_equal(ring_vnode_at(of_a, 0)->id, ring_vnode_at(of_b, 0)->id));
    }
}

static void who_restarts_comes_back_to_its_vnode(void **state) {
    (void)state;
    for (unsigned c = 1; c < COUNTS_COUNT; c++) {
        struct street street;
        begin(&street, c, counts[c], 1);
        uint32_t second = street_build(&street, v4(1, 7071), plain(1));
        street_start(&street, second, 1);
        assert_settles(&street, "the second");
        for (uint32_t house = 0; house <= second;
             house += second) { /* at once: the others believe it there */
            uint8_t vnode = first_of(&street, house);
            street_stop(&street, house);
            street_start(&street, house, 1);
            assert_stay_apart(&street, 0, second);
            assert_settles(&street, "restarted");
            assert_int_equal(first_of(&street, house), vnode);
        }
        street_done(&street);
    }
}

/* The ring still believes in the old one: it is waited for until that is over. */
static void who_comes_back_at_another_port_waits_for_its_vnode(void **state) {
    (void)state;
    for (unsigned c = 1; c < COUNTS_COUNT; c++) {
        struct street street;
        begin(&street, c, counts[c], 1);
        uint32_t again = street_build(&street, v4(1, 7071), plain(1));
        memcpy(street.houses[again].config.self.key, street.houses[0].config.self.key, PEER_KEY_SIZE);
        street_stop(&street, 0);
        street_start(&street, again, 1);
        assert_settles(&street, "moved");
        assert_int_equal(first_of(&street, again), 0);
        assert_int_equal(street.houses[again].taken_count, 0);
        street_done(&street);
    }
}

static void where_two_rings_meet_one_gives_way(void **state) {
    (void)state;
    for (unsigned c = 1; c < COUNTS_COUNT; c++) {
        struct street street;
        begin(&street, c, counts[c], 1);
        uint32_t founder = street_build(&street, v4(1, 7071), plain(1)); /* has the place of house 0 */
        street_start(&street, founder, founder);
        for (uint8_t i = 1; i < counts[c]; i++) {
            street_start(&street, street_build(&street, v4((uint8_t)(100 + i), 7070), plain(1)), founder);
        }
        street_run(&street, 20 * STREET_SECOND_US);
        assert_int_equal(first_of(&street, founder), 0);
        street_join(&street, street.count - 1, 1);
        assert_settles(&street, "met");
        assert_true(first_of(&street, 0) != first_of(&street, founder));
        street_done(&street);
    }
}

static void who_finds_nothing_free_rests_and_says_so(void **state) {
    (void)state;
    struct street street;
    street_init(&street, 1);
    for (uint16_t i = 0; i < 3; i++) {
        street_build(&street, v4(1, (uint16_t)(7070 + i)), plain(i == 2 ? 1 : 16));
        street_start(&street, i, 0);
        street_run(&street, 30 * STREET_SECOND_US);
    }
    assert_true(ring_is_member(street.houses[1].ring, 0));
    assert_int_equal(first_of(&street, 1), 16);
    assert_false(ring_is_member(street.houses[2].ring, 0));
    assert_int_equal(street.houses[2].taken_next, RING_VIRTUAL_MAX);
    uint32_t taken_count = street.houses[2].taken_count;
    street_run(&street, 30 * STREET_SECOND_US);
    assert_int_equal(street.houses[2].taken_count, taken_count);
    street_done(&street);
}

static struct address v6(uint8_t network, uint8_t host) {
    struct address address = {.ip = {0x20, 0x01, 0x0d, 0xb8}, .port = 7070};
    address.ip[7] = network;
    address.ip[15] = host;
    return address;
}

/* Of an IPv6 address the /64 counts: two machines of one network are as two ports of one machine. */
static void ipv6_vnodes_are_those_of_the_network(void **state) {
    (void)state;
    for (uint8_t count = 2; count <= 12; count += 5) {
        struct street street;
        street_init(&street, count);
        for (uint8_t i = 0; i < count; i++) {
            street_build(&street, v6((uint8_t)(i / 2), (uint8_t)(i + 1)), plain(1));
            street_start(&street, i, 0);
            assert_settles(&street, "IPv6");
            assert_int_equal(first_of(&street, i), i % 2);
        }
        for (uint8_t i = 1; i < count; i += 2) { /* one ID without the index, and no two with it */
            struct vnode a = *ring_vnode_at(street.houses[i - 1].ring, 0);
            struct vnode b = *ring_vnode_at(street.houses[i].ring, 0);
            assert_false(ring_id_equal(a.id, b.id));
        }
        street_done(&street);
    }
}

/* ---- many places ---- */

static double share_of(struct ring_id from, struct ring_id to) {
    return (double)ring_id_distance(from, to).high / 18446744073709551616.0;
}

/* Is the key one of those that a place of the house knows to be among its own and those it holds? */
static bool house_holds(const struct street_house *house, struct ring_id key, bool *ret_knows) {
    bool holds = false;
    for (uint8_t i = 0; i < ring_vnodes_count(house->ring); i++) {
        struct ring_id from;
        struct ring_id to;
        if (!ring_held_arc(house->ring, i, COPIES, &from, &to)) {
            *ret_knows = false;
        } else {
            holds = holds || ring_id_is_owned(from, key, to);
        }
    }
    return holds;
}

/* Each key is held by so many nodes as there are copies, and these are the first behind it. */
static void assert_holders_are_distinct(const struct street *street, const struct street_map *map) {
    struct prng prng;
    prng_init(&prng, 5);
    for (unsigned k = 0; k < 200; k++) {
        struct ring_id key = {prng_u64(&prng), prng_u64(&prng)};
        bool are_holders[STREET_HOUSES_MAX] = {false};
        uint32_t first = 0;
        while (first < map->count && ring_id_compare(map->vnodes[first].vnode->id, key) < 0) {
            first++;
        }
        for (uint32_t i = 0, count = 0; i < map->count && count < COPIES; i++) {
            uint32_t house = map->vnodes[(first + i) % map->count].house;
            count += !are_holders[house];
            are_holders[house] = true;
        }
        for (uint32_t i = 0; i < street->count; i++) {
            bool knows = true;
            bool holds = house_holds(&street->houses[i], key, &knows);
            assert_true(holds == are_holders[i] || (!knows && !holds));
        }
    }
}

/* The root of the mean square of (share - mean) / mean. */
static double spread_of(const double *shares, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (shares[i] * count - 1) * (shares[i] * count - 1);
    }
    return sqrt(sum / count);
}

static void many_vnodes_spread_the_load(void **state) {
    (void)state;
    double spreads[2];
    for (unsigned many = 0; many < 2; many++) {
        static struct street_map map;
        struct street street;
        double shares[12] = {0};
        double sum = 0;
        begin(&street, 7, 12, many == 1 ? 8 : 1);
        assert_true(street_draw(&street, &map));
        assert_holders_are_distinct(&street, &map);
        for (uint32_t i = 0; i < map.count; i++) {
            const struct street_vnode *here = &map.vnodes[i];
            double share = share_of(ring_predecessor(here->ring, here->number)->id, here->vnode->id);
            shares[here->house] += share;
            sum += share;
        }
        assert_true(fabs(sum - 1) < 1e-9);
        spreads[many] = spread_of(shares, 12);
        for (uint32_t i = 0; i < 12; i++) {
            uint64_t vnodes = ring_estimated_size(street.houses[i].ring);
            if (vnodes < (many == 1 ? 60 : 9) || vnodes > (many == 1 ? 135 : 16)) {
                fail_msg("node %u: %ju places", i, (uintmax_t)vnodes);
            }
        }
        street_done(&street);
    }
    if (spreads[1] > 0.35 || spreads[0] < 2 * spreads[1]) {
        fail_msg("with 1 place %.3f of the mean, with 8 places %.3f", spreads[0], spreads[1]);
    }
}

static void a_small_ring_knows_how_many_places_there_are(void **state) {
    (void)state;
    for (uint32_t count = 1; count <= LIST_SIZE; count++) {
        struct street street;
        begin(&street, count, count, 3);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(ring_estimated_size(street.houses[i].ring), 3 * count);
        }
        street_stop(&street, 0);
        street_done(&street);
    }
}

/* ---- asleep ---- */

static void who_was_taken_for_dead_joins_again(void **state) {
    (void)state;
    for (uint32_t count = 3; count <= 12; count += 9) {
        struct street street;
        begin(&street, count, count, 1);
        struct street_house *sleeper = &street.houses[2];
        struct ring *ring = sleeper->ring;
        sleeper->is_asleep = true;
        sleeper->ring = NULL; /* of the others there is a ring without it */
        street_run(&street, 60 * STREET_SECOND_US);
        assert_settles(&street, "asleep");
        sleeper->ring = ring;
        sleeper->is_asleep = false;
        street_step(&street, 2, (struct event){.kind = EVENT_WAKE});
        assert_int_equal(ring_is_member(ring, 0), count == 3); /* a small ring asks everybody anyway */
        assert_settles(&street, "awake");
        street_done(&street);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_second_takes_the_next_vnodes),
        cmocka_unit_test(several_that_come_at_once_have_different_vnodes),
        cmocka_unit_test(who_insists_on_a_taken_vnode_is_no_member),
        cmocka_unit_test(who_restarts_comes_back_to_its_vnode),
        cmocka_unit_test(who_comes_back_at_another_port_waits_for_its_vnode),
        cmocka_unit_test(where_two_rings_meet_one_gives_way),
        cmocka_unit_test(who_finds_nothing_free_rests_and_says_so),
        cmocka_unit_test(ipv6_vnodes_are_those_of_the_network),
        cmocka_unit_test(many_vnodes_spread_the_load),
        cmocka_unit_test(a_small_ring_knows_how_many_places_there_are),
        cmocka_unit_test(who_was_taken_for_dead_joins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

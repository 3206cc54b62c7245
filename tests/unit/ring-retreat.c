/* Rows of virtual nodes beside programs that do not know them (retreat.c). */
#include "ring-street.h"

enum { LIST_SIZE = 16, UNIT = 8, SEEDS = 12, DECIDED_S = 15, BACK_S = 30, CALM_S = 12 };

static struct ring_config new_program(void) {
    return (struct ring_config){.is_even = true, .list_size = LIST_SIZE};
}

static uint32_t build(struct street *street, uint64_t seed, bool is_old) {
    struct address address = address_ipv4(10, (uint8_t)(prng_mix(seed) >> 8), (uint8_t)prng_mix(seed),
                                          (uint8_t)(street->count + 1), 7070);
    uint32_t house =
        street_build(street, address, is_old ? (struct ring_config){.list_size = LIST_SIZE} : new_program());
    street->houses[house].code = is_old ? RING_SENDER_OLD : RING_SENDER_KNOWS_ROWS;
    return house;
}

static void come(struct street *street, uint32_t house, uint32_t contact, unsigned unknown_s) {
    street->houses[house].said_at_us = street->now_us + unknown_s * STREET_SECOND_US;
    street_start(street, house, contact);
}

static void begin(struct street *street, uint64_t seed, uint32_t count) {
    street_init(street, seed);
    for (uint32_t i = 0; i < count; i++) {
        come(street, build(street, seed, false), 0, 0);
    }
    street_run(street, DECIDED_S * STREET_SECOND_US);
}

static bool do_all_have_rows(const struct street *street) {
    for (uint32_t i = 0; i < street->count; i++) {
        const struct street_house *house = &street->houses[i];
        if (house->ring != NULL && house->config.is_even && ring_vnodes_count(house->ring) < UNIT) {
            return false;
        }
    }
    return true;
}

static bool has_anybody_a_row(const struct street *street) {
    for (uint32_t i = 0; i < street->count; i++) {
        if (street->houses[i].ring != NULL && ring_vnodes_count(street->houses[i].ring) > 1) {
            return true;
        }
    }
    return false;
}

/* How many virtual nodes a node has heard of that are none now, and will not be soon, as index 0 of those
 * that have let it wait. */
static unsigned false_count(const struct street *street, uint32_t house, bool is_soon_well) {
    const struct ring *ring = street->houses[house].ring;
    unsigned count = 0;
    for (uint32_t i = 0; i < ring_known_count(ring); i++) {
        struct ring_known known = ring_known_at(ring, i);
        bool is_there = known.misses_count > 0 || (is_soon_well && known.vnode.index == 0);
        for (uint32_t j = 0; j < street->count; j++) {
            const struct ring *other = street->houses[j].ring;
            for (uint8_t v = 0; other != NULL && v < ring_vnodes_count(other); v++) {
                is_there |= ring_id_equal(ring_vnode_at(other, v)->id, known.vnode.id);
            }
        }
        count += !is_there;
    }
    return count;
}

/* It is never told of a row, and is in a ring of one virtual node each soon. */
static void an_old_one_that_comes_finds_no_rows(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct street street;
        begin(&street, seed, 2 + seed % 5);
        assert_true(do_all_have_rows(&street));
        uint32_t old = build(&street, seed, true);
        come(&street, old, seed % 2, seed % 3 * 3);
        for (unsigned i = 0; i < 10 * BACK_S; i++) {
            street_run(&street, STREET_SECOND_US / 10);
            assert_true(!ring_is_member(street.houses[old].ring, 0) || !has_anybody_a_row(&street));
            assert_int_equal(false_count(&street, old, true), 0);
        }
        assert_true(ring_is_member(street.houses[old].ring, 0));
        assert_int_equal(false_count(&street, old, false), 0);
        assert_false(has_anybody_a_row(&street));
        assert_true(street_is_ideal(&street));
        street_run(&street, 20 * CALM_S * STREET_SECOND_US);
        assert_false(has_anybody_a_row(&street)); /* as long as it is there */
        street_done(&street);
    }
}

static void rows_are_chosen_again_when_the_old_one_has_gone(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct street street;
        begin(&street, seed, 4);
        uint32_t old = build(&street, seed, true);
        come(&street, old, 0, 0);
        street_run(&street, BACK_S * STREET_SECOND_US);
        assert_false(has_anybody_a_row(&street));
        if (seed % 2 == 0) {
            street_stop(&street, old);
        } else { /* or comes back as a new one */
            street_stop(&street, old);
            street.houses[old].code = RING_SENDER_KNOWS_ROWS;
            street.houses[old].config.is_even = true;
            come(&street, old, 1, 0);
        }
        street_run(&street, CALM_S / 2 * STREET_SECOND_US);
        assert_false(has_anybody_a_row(&street)); /* not at once: it may come again */
        street_run(&street, 3 * CALM_S * STREET_SECOND_US);
        assert_true(do_all_have_rows(&street));
        assert_true(street_settles(&street, BACK_S));
        street_done(&street);
    }
}

static void together_with_an_old_one_nobody_chooses(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct street street;
        street_init(&street, seed);
        for (uint32_t i = 0; i < 5; i++) {
            come(&street, build(&street, seed, i == 1 || i == 2), i == 4 ? 1 : 0,
                 i); /* one through an old one */
        }
        for (unsigned i = 0; i < 10 * BACK_S; i++) {
            street_run(&street, STREET_SECOND_US / 10);
            for (uint32_t house = 1; house <= 2; house++) {
                assert_int_equal(false_count(&street, house, true), 0);
            }
        }
        assert_false(has_anybody_a_row(&street));
        assert_true(street_is_ideal(&street));
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(false_count(&street, i, false), 0);
            assert_true(ring_is_settled(street.houses[i].ring));
        }
        street_done(&street);
    }
}

/* A node that was away while an old one came still has its row. */
static void a_node_that_returns_with_its_row_gives_it_back(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct street street;
        begin(&street, seed, 4);
        struct ring_config *config = &street.houses[2].config;
        config->first_index = ring_vnode_at(street.houses[2].ring, 0)->index;
        config->vnodes_count = ring_vnodes_count(street.houses[2].ring);
        config->is_even_chosen = true;
        street_stop(&street, 2);
        uint32_t old = build(&street, seed, true);
        come(&street, old, 0, 4);
        street_run(&street, BACK_S * STREET_SECOND_US);
        assert_true(ring_is_member(street.houses[old].ring, 0));
        come(&street, 2, seed % 2 == 0 ? old : 0, 0);
        for (unsigned i = 0; i < 10 * BACK_S; i++) {
            street_run(&street, STREET_SECOND_US / 10);
            assert_int_equal(false_count(&street, old, true), 0);
        }
        assert_int_equal(false_count(&street, old, false), 0);
        assert_false(has_anybody_a_row(&street));
        assert_true(street_is_ideal(&street));
        street_done(&street);
    }
}

/* One that comes and goes makes nodes move less and less often. */
static void each_time_they_wait_for_longer(void **state) {
    (void)state;
    struct street street;
    begin(&street, 1, 3);
    uint32_t old = build(&street, 1, true);
    unsigned waited_s[3];
    for (unsigned i = 0; i < 3; i++) {
        come(&street, old, 0, 0);
        street_run(&street, BACK_S * STREET_SECOND_US);
        assert_false(has_anybody_a_row(&street));
        street_stop(&street, old);
        for (waited_s[i] = 0; waited_s[i] < 1000 && !do_all_have_rows(&street); waited_s[i]++) {
            street_run(&street, STREET_SECOND_US);
        }
    }
    assert_true(waited_s[1] > waited_s[0] + CALM_S / 2 && waited_s[2] > waited_s[1] + CALM_S);
    street_done(&street);
}

/* In Chord nodes go back as they hear of it, and the ring stays whole. */
static void in_chord_nodes_go_back_one_by_one(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 2; seed++) {
        struct street street;
        begin(&street, seed, LIST_SIZE + 3);
        street_run(&street, BACK_S * STREET_SECOND_US);
        assert_int_equal(ring_mode(street.houses[0].ring), RING_CHORD);
        assert_true(do_all_have_rows(&street));
        uint32_t old = build(&street, seed, true);
        come(&street, old, seed, 3);
        for (unsigned i = 0; i < 20 && has_anybody_a_row(&street); i++) {
            street_run(&street, BACK_S * STREET_SECOND_US);
        }
        assert_false(has_anybody_a_row(&street));
        assert_true(street_settles(&street, BACK_S));
        street_stop(&street, old);
        street_run(&street, 8 * CALM_S * STREET_SECOND_US);
        assert_true(do_all_have_rows(&street));
        assert_true(street_settles(&street, BACK_S));
        street_done(&street);
    }
}

/* Programs before take the node through which they join for its index 0: those of Chord begin there. */
static void who_comes_to_a_chord_ring_begins_with_index_0(void **state) {
    (void)state;
    struct street street;
    begin(&street, 1, LIST_SIZE + 3);
    street_run(&street, BACK_S * STREET_SECOND_US);
    uint32_t late = build(&street, 1, false);
    come(&street, late, 3, 0);
    street_run(&street, BACK_S * STREET_SECOND_US);
    assert_int_equal(ring_vnode_at(street.houses[late].ring, 0)->index, 0);
    assert_int_equal(ring_vnodes_count(street.houses[late].ring), UNIT);
    assert_true(street_settles(&street, BACK_S));
    street_done(&street);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_one_that_comes_finds_no_rows),
        cmocka_unit_test(rows_are_chosen_again_when_the_old_one_has_gone),
        cmocka_unit_test(together_with_an_old_one_nobody_chooses),
        cmocka_unit_test(a_node_that_returns_with_its_row_gives_it_back),
        cmocka_unit_test(each_time_they_wait_for_longer),
        cmocka_unit_test(in_chord_nodes_go_back_one_by_one),
        cmocka_unit_test(who_comes_to_a_chord_ring_begins_with_index_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

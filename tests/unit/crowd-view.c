/* The neighbours of a node of the crowd: the paper's four rules, and what they leave open. */
#include "protocol/crowd/view.h"

#include "unit.h"

enum { SELF = 'S' };

static struct crowd_neighbour neighbour_of(uint8_t name) {
    return (struct crowd_neighbour){.peer.address = address_ipv4(10, 0, 0, name, 7070)};
}

static struct address address_of(uint8_t name) {
    return address_ipv4(10, 0, 0, name, 7070);
}

static struct view view_of(uint8_t size_max, const char *names) {
    struct view view;
    struct crowd_neighbour self = neighbour_of(SELF);
    view_init(&view, &self.peer, size_max);
    for (; *names != '\0'; names++) {
        struct crowd_neighbour neighbour = neighbour_of((uint8_t)*names);
        assert_true(view_add(&view, &neighbour));
    }
    return view;
}

static void merge(struct view *view, const char *received, const char *sent) {
    struct crowd_neighbour neighbours[CROWD_VIEW_MAX];
    struct address addresses[CROWD_VIEW_MAX];
    size_t received_count = strlen(received);
    size_t sent_count = strlen(sent);
    for (size_t i = 0; i < received_count; i++) {
        neighbours[i] = neighbour_of((uint8_t)received[i]);
    }
    for (size_t i = 0; i < sent_count; i++) {
        addresses[i] = address_of((uint8_t)sent[i]);
    }
    view_merge(view, neighbours, received_count, addresses, sent_count);
}

/* Exactly these, in any order. */
static void expect(const struct view *view, const char *names) {
    assert_int_equal(view->count, strlen(names));
    for (; *names != '\0'; names++) {
        struct address address = address_of((uint8_t)*names);
        if (view_find(view, &address) < 0) {
            fail_msg("%c is not there", *names);
        }
    }
}

static void no_neighbour_is_there_twice(void **state) {
    (void)state;
    struct view view = view_of(6, "abc");
    struct crowd_neighbour again = neighbour_of('a');
    assert_true(view_add(&view, &again));
    expect(&view, "abc");
    merge(&view, "cdd", "");
    expect(&view, "abcd");
}

static void a_node_is_never_its_own_neighbour(void **state) {
    (void)state;
    struct view view = view_of(6, "ab");
    struct crowd_neighbour self = neighbour_of(SELF);
    assert_false(view_add(&view, &self));
    view_merge(&view, &self, 1, NULL, 0);
    expect(&view, "ab");
    struct crowd_neighbour portless = neighbour_of('c');
    portless.peer.address.port = 0;
    assert_false(view_add(&view, &portless));
    view_merge(&view, &portless, 1, NULL, 0);
    expect(&view, "ab");
}

static void free_places_are_filled_before_anything_is_overwritten(void **state) {
    (void)state;
    struct view view = view_of(4, "ab");
    merge(&view, "xy", "ab");
    expect(&view, "abxy");
    view = view_of(3, "ab");
    merge(&view, "xy", "ab");
    expect(&view, "xyb"); /* in the order in which they were sent */
}

static void only_what_was_sent_is_overwritten(void **state) {
    (void)state;
    struct view view = view_of(3, "abc");
    merge(&view, "xyz", "b");
    expect(&view, "axc");
    view = view_of(3, "abc");
    merge(&view, "xyz", "");
    expect(&view, "abc");
    merge(&view, "xyz", "q"); /* sent, but gone meanwhile */
    expect(&view, "abc");
}

static void what_both_sides_sent_stays(void **state) {
    (void)state;
    struct view view = view_of(3, "abc");
    merge(&view, "xa", "ab"); /* the other side may overwrite its a: it is ours to keep */
    expect(&view, "axc");
}

static void another_key_at_an_address_replaces_by_its_own_word_only(void **state) {
    (void)state;
    struct view view = view_of(3, "ab");
    struct crowd_neighbour changed = neighbour_of('a');
    memset(changed.peer.key, 7, PEER_KEY_SIZE);
    view_merge(&view, &changed, 1, NULL, 0);
    assert_int_equal(view.neighbours[0].peer.key[0], 0);
    assert_true(view_add(&view, &changed));
    assert_int_equal(view.neighbours[0].peer.key[0], 7);
    expect(&view, "ab");
}

static void picks_are_different_and_leave_one_out(void **state) {
    (void)state;
    struct view view = view_of(8, "abcdefgh");
    struct prng prng;
    prng_init(&prng, 1);
    unsigned hits[8] = {0};
    for (unsigned round = 0; round < 7000; round++) {
        uint8_t picked[CROWD_VIEW_MAX];
        assert_int_equal(view_pick(&view, &prng, 3, 4, picked), 4);
        unsigned seen = 0;
        for (unsigned i = 0; i < 4; i++) {
            assert_true(picked[i] < 8 && picked[i] != 3 && (seen >> picked[i] & 1) == 0);
            seen |= 1u << picked[i];
            hits[picked[i]]++;
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        assert_true(i == 3 ? hits[i] == 0 : hits[i] > 3700 && hits[i] < 4300);
    }
    uint8_t picked[CROWD_VIEW_MAX];
    assert_int_equal(view_pick(&view, &prng, -1, 20, picked), 8);
    assert_int_equal(view_pick(&view, &prng, 0, 20, picked), 7);
    view.count = 0;
    assert_int_equal(view_pick(&view, &prng, -1, 20, picked), 0);
}

static void the_oldest_is_found_and_all_grow_older(void **state) {
    (void)state;
    struct view view = view_of(4, "");
    assert_int_equal(view_oldest(&view), -1);
    view = view_of(4, "abc");
    view.neighbours[1].age = 5;
    view.neighbours[2].age = UINT32_MAX;
    assert_int_equal(view_oldest(&view), 2);
    view_age(&view);
    assert_int_equal(view.neighbours[0].age, 1);
    assert_int_equal(view.neighbours[1].age, 6);
    assert_int_equal(view.neighbours[2].age, UINT32_MAX);
    view_remove(&view, 2);
    assert_int_equal(view_oldest(&view), 1);
}

/* Addresses that differ only where the quick comparison does not look. */
static void addresses_are_compared_whole(void **state) {
    (void)state;
    struct view view = view_of(4, "a");
    struct address address = address_of('a');
    address.port++;
    assert_int_equal(view_find(&view, &address), -1);
    address.port--;
    address.ip[0] = 1;
    assert_int_equal(view_find(&view, &address), -1);
    address.ip[0] = 0;
    assert_int_equal(view_find(&view, &address), 0);
}

/* Any merge keeps the rules. */
static void random_merges_keep_the_rules(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (unsigned round = 0; round < 20000; round++) {
        struct view view = view_of((uint8_t)prng_between(&prng, 1, 8), "");
        char received[17] = {0};
        char sent[17] = {0};
        for (uint64_t i = prng_below(&prng, 9); i > 0; i--) {
            struct crowd_neighbour neighbour = neighbour_of((uint8_t)prng_between(&prng, SELF - 6, SELF + 6));
            view_add(&view, &neighbour);
        }
        for (uint64_t i = prng_below(&prng, 17); i > 0; i--) {
            received[i - 1] = (char)prng_between(&prng, SELF - 6, SELF + 6);
        }
        for (uint64_t i = prng_below(&prng, 9); i > 0; i--) {
            sent[i - 1] = (char)prng_between(&prng, SELF - 6, SELF + 6);
        }
        struct view before = view;
        merge(&view, received, sent);
        assert_true(view.count >= before.count && view.count <= view.size_max);
        for (int i = 0; i < view.count; i++) {
            assert_int_equal(view_find(&view, &view.neighbours[i].peer.address), i);
            assert_int_not_equal(view.neighbours[i].peer.address.ip[15], SELF);
        }
        for (int i = 0; i < before.count; i++) {
            uint8_t name = before.neighbours[i].peer.address.ip[15];
            bool is_there = view_find(&view, &before.neighbours[i].peer.address) >= 0;
            assert_true(is_there || (strchr(sent, name) != NULL && view.count == view.size_max &&
                                     strchr(received, name) == NULL));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_neighbour_is_there_twice),
        cmocka_unit_test(a_node_is_never_its_own_neighbour),
        cmocka_unit_test(free_places_are_filled_before_anything_is_overwritten),
        cmocka_unit_test(only_what_was_sent_is_overwritten),
        cmocka_unit_test(what_both_sides_sent_stays),
        cmocka_unit_test(another_key_at_an_address_replaces_by_its_own_word_only),
        cmocka_unit_test(picks_are_different_and_leave_one_out),
        cmocka_unit_test(the_oldest_is_found_and_all_grow_older),
        cmocka_unit_test(addresses_are_compared_whole),
        cmocka_unit_test(random_merges_keep_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* holders: which nodes shall hold a place, from what is known and from what was looked up. */
#include "node/ring/holders.h"

#include "node/transport/transport.h"
#include "ring-street.h"

enum { HOUSES_COUNT = 6, COPIES = 3, PATIENCE_S = 120, SELF = 0 };

struct fixture {
    struct street street;
    struct street_map map;
    struct holders *holders;
    unsigned asked_count;
    struct transport_question *held; /* if is_slow: what waits for an answer */
    bool is_slow;
};

static void answer_question(struct fixture *fixture, struct transport_question *question) {
    const struct street_map *map = &fixture->map;
    struct transport_answer answer = {.err = ERR_OK};
    uint32_t first = 0;
    while (first < map->count && ring_id_compare(map->vnodes[first].vnode->id, question->key) < 0) {
        first++;
    }
    for (uint32_t i = 0; i < map->count && i < question->vnodes_wanted; i++) {
        answer.vnodes[answer.vnodes_count++] = *map->vnodes[(first + i) % map->count].vnode;
    }
    question->answered(question, &answer);
}

/* In the place of the ring's own (node/transport/transport_ask.c): it knows all places, and answers at once,
 * unless it is slow. */
void transport_ask(struct transport *transport, struct transport_question *question) {
    struct fixture *fixture = (struct fixture *)transport;
    fixture->asked_count++;
    if (fixture->is_slow) {
        fixture->held = question;
    } else {
        answer_question(fixture, question);
    }
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    street_init(&fixture->street, 1);
    for (uint32_t i = 0; i < HOUSES_COUNT; i++) {
        struct ring_config config = {.vnodes_count = 1, .list_size = COPIES + 1};
        street_build(&fixture->street, address_ipv4(192, 0, 2, (uint8_t)(i + 1), 7070), config);
        street_start(&fixture->street, i, 0);
    }
    assert_true(street_settles(&fixture->street, PATIENCE_S));
    assert_true(street_draw(&fixture->street, &fixture->map));
    fixture->holders = holders_new((struct transport *)fixture);
    assert_non_null(fixture->holders);
    holders_update(fixture->holders, fixture->street.houses[SELF].ring, COPIES);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    holders_free(fixture->holders);
    street_done(&fixture->street);
    free(fixture);
    return 0;
}

/* In the middle of the arc that ends at this place of the map. */
static struct ring_id middle_of(const struct fixture *fixture, uint32_t index) {
    struct ring_id from =
        fixture->map.vnodes[(index + fixture->map.count - 1) % fixture->map.count].vnode->id;
    struct ring_id to = fixture->map.vnodes[index].vnode->id;
    return (struct ring_id){from.high + (to.high - from.high) / 2, 0};
}

/* Who looks a place up learns of it alone; what is known of the whole arc is known still. */
static void a_lookup_does_not_make_an_arc_shorter(void **state) {
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < fixture->map.count; i++) {
        struct ring_id vnode = fixture->map.vnodes[i].vnode->id;
        struct holders_arc before;
        struct holders_arc found;
        struct holders_arc after;
        assert_true(holders_know(fixture->holders, vnode, &before));
        assert_int_equal(holders_find(fixture->holders, middle_of(fixture, i), &found), ERR_OK);
        assert_true(holders_know(fixture->holders, vnode, &after));
        assert_true(ring_id_equal(found.to, vnode));
        assert_true(ring_id_equal(after.from, before.from));
        assert_true(ring_id_equal(after.to, before.to));
        assert_int_equal(after.count, COPIES);
        assert_true(peer_equal(&after.peers[0], &found.peers[0]));
    }
    assert_int_equal(fixture->asked_count, HOUSES_COUNT - 1); /* of its own arc it knows */
}

/* A node that a lookup asks has just died: somebody who reads does not wait for it, and asks nobody for a
 * while. */
static void a_reader_does_not_wait_for_a_slow_lookup(void **state) {
    struct fixture *fixture = *state;
    struct holders_arc found;
    uint32_t other = 0;
    struct address self = address_ipv4(192, 0, 2, SELF + 1, 7070);
    while (address_equal(&fixture->map.vnodes[other].vnode->peer.address, &self)) {
        other++;
    }
    fixture->is_slow = true;
    struct ring_id place = middle_of(fixture, other);
    assert_int_equal(holders_find_soon(fixture->holders, place, &found), ERR_OK);
    assert_int_equal(found.count, COPIES);
    assert_true(peer_equal(&found.peers[0], &fixture->map.vnodes[other].vnode->peer));
    assert_non_null(fixture->held);
    unsigned asked_count = fixture->asked_count;
    assert_int_equal(holders_find_soon(fixture->holders, place, &found), ERR_OK);
    assert_int_equal(fixture->asked_count, asked_count);
    answer_question(fixture, fixture->held); /* late: nobody is there any more, and nothing is left behind */
    fixture->is_slow = false;
    assert_int_equal(holders_find(fixture->holders, place, &found), ERR_OK); /* this one is sure: it asks */
    assert_int_equal(fixture->asked_count, asked_count + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lookup_does_not_make_an_arc_shorter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_does_not_wait_for_a_slow_lookup, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* holders: which nodes shall hold a place, from what is known and from what was looked up. */
#include "node/ring/holders.h"

#include "node/ring/sites.h"
#include "node/transport/transport.h"
#include "ring-street.h"

enum { HOUSES_COUNT = 6, COPIES = 3, PATIENCE_S = 120, SELF = 0 };

struct fixture {
    struct street street;
    struct street_map map;
    struct holders *holders;
    struct dialects *dialects; /* of tests with sites, as the next */
    struct sites *sites;
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

/* The last so many are in another network. A ring of more nodes than lists name is a Chord ring. */
static struct fixture *build(uint32_t away_count, uint8_t vnodes_count, uint8_t list_size) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    street_init(&fixture->street, 1);
    for (uint32_t i = 0; i < HOUSES_COUNT; i++) {
        struct ring_config config = {.vnodes_count = vnodes_count, .list_size = list_size};
        uint8_t network = i + away_count < HOUSES_COUNT ? 0 : 1;
        street_build(&fixture->street, address_ipv4(192, network, 2, (uint8_t)(i + 1), 7070), config);
        street_start(&fixture->street, i, 0);
    }
    assert_true(street_settles(&fixture->street, PATIENCE_S));
    assert_true(street_draw(&fixture->street, &fixture->map));
    fixture->holders = holders_new((struct transport *)fixture);
    assert_non_null(fixture->holders);
    return fixture;
}

static void update(struct fixture *fixture) {
    holders_update(fixture->holders, fixture->street.houses[SELF].ring, COPIES);
}

static int set_up(void **state) {
    struct fixture *fixture = build(0, 1, COPIES + 1);
    update(fixture);
    *state = fixture;
    return 0;
}

static int set_up_small(void **state) {
    struct fixture *fixture = build(0, 4, HOUSES_COUNT + 1);
    update(fixture);
    *state = fixture;
    return 0;
}

static int set_up_sites(void **state) {
    struct fixture *fixture = build(1, 1, COPIES + 1);
    fixture->dialects = dialects_new(&dialect_of_program, NULL);
    fixture->sites = sites_new(fixture->dialects);
    holders_set_sites(fixture->holders, fixture->sites);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    holders_free(fixture->holders);
    sites_free(fixture->sites);
    dialects_free(fixture->dialects);
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

/* All but one say what they speak. */
static void say_hello(struct fixture *fixture, uint32_t silent) {
    for (uint32_t i = 0; i < fixture->map.count; i++) {
        if (i != silent) {
            dialects_hear(fixture->dialects, &fixture->map.vnodes[i].vnode->peer, &dialect_of_program);
        }
    }
}

static const struct peer *peer_at(const struct fixture *fixture, uint32_t index) {
    return &fixture->map.vnodes[index % fixture->map.count].vnode->peer;
}

static bool is_away(const struct peer *peer) {
    return peer->address.ip[13] == 1;
}

/* By the rule: those that follow, the last replaced if none of them is away. */
static void check_arc(const struct fixture *fixture, uint32_t index, bool is_by_sites,
                      const struct holders_arc *arc) {
    struct peer expected[COPIES];
    bool has_away = false;
    int self_rank = -1;
    for (uint32_t i = 0; i < COPIES; i++) {
        expected[i] = *peer_at(fixture, index + i);
        has_away = has_away || is_away(&expected[i]);
    }
    for (uint32_t i = COPIES; is_by_sites && !has_away; i++) {
        has_away = is_away(peer_at(fixture, index + i));
        expected[COPIES - 1] = has_away ? *peer_at(fixture, index + i) : expected[COPIES - 1];
    }
    assert_int_equal(arc->count, COPIES);
    for (uint32_t i = 0; i < COPIES; i++) {
        assert_true(peer_equal(&arc->peers[i], &expected[i]));
        self_rank = expected[i].address.ip[15] == SELF + 1 ? (int)i : self_rank;
    }
    assert_int_equal(arc->self_rank, self_rank);
}

static void check_all(struct fixture *fixture, bool is_by_sites) {
    update(fixture);
    assert_int_equal(sites_are_used(fixture->sites), is_by_sites);
    for (uint32_t i = 0; i < fixture->map.count; i++) {
        struct holders_arc arc;
        assert_true(holders_know(fixture->holders, middle_of(fixture, i), &arc));
        check_arc(fixture, i, is_by_sites, &arc);
        assert_int_equal(holders_find(fixture->holders, middle_of(fixture, i), &arc), ERR_OK);
        check_arc(fixture, i, is_by_sites, &arc);
    }
}

static void no_site_has_all_copies_once_all_know_the_rule(void **state) {
    struct fixture *fixture = *state;
    uint32_t other = peer_at(fixture, 0)->address.ip[15] == SELF + 1 ? 1 : 0;
    check_all(fixture, false); /* nobody has said anything yet */
    say_hello(fixture, other);
    check_all(fixture, false);
    say_hello(fixture, UINT32_MAX);
    check_all(fixture, true);
    uint64_t generation = holders_generation(fixture->holders);
    update(fixture);
    assert_int_equal(holders_generation(fixture->holders), generation);
    /* An older program comes back: the rule ends for all. */
    dialects_hear_none(fixture->dialects, peer_at(fixture, other));
    check_all(fixture, false);
    assert_true(holders_generation(fixture->holders) > generation);
}

static void names_of_sites_count_more_than_networks(void **state) {
    struct fixture *fixture = *state;
    struct dialect named = dialect_of_program;
    memcpy(named.site, "hall", sizeof "hall");
    say_hello(fixture, UINT32_MAX);
    update(fixture);
    assert_true(sites_are_used(fixture->sites));
    for (uint32_t i = 0; i < fixture->map.count; i++) {
        dialects_hear(fixture->dialects, peer_at(fixture, i), &named);
    }
    update(fixture); /* this node has no name: its network is a site of its own */
    assert_true(sites_are_used(fixture->sites));
    struct holders_arc own[HOLDERS_ARCS_MAX];
    assert_int_equal(holders_own(fixture->holders, own), 1);
    assert_int_equal(own[0].self_rank, 0);
    struct holders_arc arc;
    for (uint32_t i = 0; i < fixture->map.count; i++) {
        assert_true(holders_know(fixture->holders, middle_of(fixture, i), &arc));
        assert_true(arc.self_rank >= 0); /* so it has a copy of everything */
    }
}

/* As at the beginning of a cut: half of a small ring is gone, each node with virtual nodes in no list of
 * ours. What is heard of them is there for longer than they are. */
static void nodes_that_a_small_ring_has_lost_hold_nothing(void **state) {
    enum { LEFT = HOUSES_COUNT / 2 };
    struct fixture *fixture = *state;
    struct peer nodes[HOUSES_COUNT];
    assert_int_equal(holders_all(fixture->holders, nodes, HOUSES_COUNT), HOUSES_COUNT);
    assert_int_equal(holders_vnodes_count(fixture->holders), fixture->map.count);
    for (uint32_t i = LEFT; i < HOUSES_COUNT; i++) {
        street_stop(&fixture->street, i);
    }
    street_run(&fixture->street, PATIENCE_S * STREET_SECOND_US);
    update(fixture);
    assert_true(street_draw(&fixture->street, &fixture->map));
    assert_int_equal(holders_all(fixture->holders, nodes, HOUSES_COUNT), LEFT);
    assert_int_equal(holders_vnodes_count(fixture->holders), fixture->map.count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lookup_does_not_make_an_arc_shorter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_does_not_wait_for_a_slow_lookup, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_that_a_small_ring_has_lost_hold_nothing, set_up_small,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_site_has_all_copies_once_all_know_the_rule, set_up_sites,
                                        tear_down),
        cmocka_unit_test_setup_teardown(names_of_sites_count_more_than_networks, set_up_sites, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

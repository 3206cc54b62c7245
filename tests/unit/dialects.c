/* dialects: what is known of other nodes, and when they are told what we speak. */
#include "node/versions/dialects.h"

#include <stdio.h>

#include "clock-manual.h"
#include "unit.h"

static struct peer peer_of(uint8_t number) {
    struct peer peer = {.address = address_ipv4(127, 0, 0, number, 7070)};
    memset(peer.key, number, sizeof peer.key);
    return peer;
}

static struct dialect speaking(uint16_t lowest, uint16_t highest) {
    return (struct dialect){.lowest = lowest, .highest = highest, .features = UINT64_MAX, .program = "9.9"};
}

static void an_unknown_node_is_spoken_to_in_version_1(void **state) {
    (void)state;
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, NULL);
    struct peer peer = peer_of(2);
    char text[DIALECTS_TEXT_SIZE_MAX];
    struct dialects_known known = dialects_find(dialects, &peer);
    assert_false(known.is_known);
    assert_int_equal(known.version, 1);
    assert_int_equal(dialects_judge(dialects, &peer), DIALECTS_SPEAK);
    assert_false(dialects_has(dialects, &peer, DIALECT_CAPTURES));
    assert_string_equal(dialects_describe(&known, text), "not known yet");
    dialects_free(dialects);
}

static void without_version_1_it_is_waited_for(void **state) {
    (void)state;
    struct dialect own = speaking(2, 3);
    struct dialects *dialects = dialects_new(&own, NULL);
    struct peer peer = peer_of(2);
    struct peer nameless = {.address = peer.address};
    struct dialect theirs = speaking(1, 2);
    char text[DIALECTS_TEXT_SIZE_MAX];
    assert_int_equal(dialects_judge(dialects, &peer), DIALECTS_WAIT);
    assert_int_equal(dialects_judge(dialects, &nameless), DIALECTS_WAIT);
    assert_int_equal(dialects_hear(dialects, &peer, &theirs), 2);
    assert_int_equal(dialects_judge(dialects, &peer), DIALECTS_SPEAK);
    assert_int_equal(dialects_judge(dialects, &nameless), DIALECTS_SPEAK); /* by its address */
    assert_int_equal(dialects_hear_none(dialects, &peer), 0);
    assert_int_equal(dialects_judge(dialects, &peer), DIALECTS_REFUSE);
    assert_false(dialects_has(dialects, &peer, DIALECT_CAPTURES));
    assert_string_equal(dialects_explain(dialects, &peer, text),
                        "it speaks version 1 of the protocol, this node 2 to 3");
    dialects_free(dialects);
}

static void what_was_said_last_counts(void **state) {
    (void)state;
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, NULL);
    struct peer peers[] = {peer_of(2), peer_of(3)};
    struct dialect theirs = speaking(1, 2);
    struct dialect newer = speaking(3, 4);
    char text[DIALECTS_TEXT_SIZE_MAX];
    assert_int_equal(dialects_hear(dialects, &peers[0], &theirs), 2);
    assert_true(dialects_has(dialects, &peers[0], DIALECT_DELETIONS));
    assert_false(dialects_has(dialects, &peers[1], DIALECT_DELETIONS));
    assert_int_equal(dialects_hear(dialects, &peers[1], &theirs), 2);
    assert_true(dialects_has(dialects, &peers[1], DIALECT_DELETIONS));
    struct dialects_known known = dialects_find(dialects, &peers[1]);
    assert_string_equal(dialects_describe(&known, text), "9.9, protocol 1 to 2");
    assert_int_equal(dialects_hear_none(dialects, &peers[1]), 1); /* an older program came back */
    assert_false(dialects_has(dialects, &peers[1], DIALECT_DELETIONS));
    known = dialects_find(dialects, &peers[1]);
    assert_string_equal(dialects_describe(&known, text), "0.2 or earlier, protocol 1");
    assert_int_equal(dialects_hear(dialects, &peers[1], &newer), 0);
    assert_string_equal(dialects_explain(dialects, &peers[1], text),
                        "it speaks versions 3 to 4 of the protocol, this node 1 to 2");
    dialects_free(dialects);
}

static void hellos_are_repeated_ever_more_rarely(void **state) {
    (void)state;
    struct clock_manual clock;
    clock_manual_init(&clock, 0);
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, &clock.clock);
    struct peer peer = peer_of(2);
    unsigned said = 0;
    for (unsigned second = 0; second < 3600; second++) {
        said += dialects_take_turn(dialects, &peer);
        assert_false(dialects_take_turn(dialects, &peer));
        clock_manual_advance(&clock, 1000000);
    }
    assert_in_range(said, 12, 17); /* 1 + 1, 2, 4 … 512 s, then every ten minutes */
    assert_int_equal(dialects_hear(dialects, &peer, &own), 2);
    clock_manual_advance(&clock, UINT64_C(3600) * 1000000);
    assert_false(dialects_take_turn(dialects, &peer)); /* it is known */
    dialects_free(dialects);
}

static void a_node_that_answers_no_hello_but_speaks_is_old(void **state) {
    (void)state;
    struct clock_manual clock;
    clock_manual_init(&clock, 0);
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, &clock.clock);
    struct peer peer = peer_of(2);
    for (unsigned i = 0; i < 3; i++) {
        dialects_hear_other(dialects, &peer);
        assert_false(dialects_find(dialects, &peer).is_known);
        clock_manual_advance(&clock, 4000000);
        assert_true(dialects_take_turn(dialects, &peer));
    }
    dialects_hear_other(dialects, &peer); /* the last hello has just left */
    assert_false(dialects_find(dialects, &peer).is_known);
    clock_manual_advance(&clock, 1000000);
    dialects_hear_other(dialects, &peer);
    assert_true(dialects_find(dialects, &peer).is_known);
    assert_false(dialects_find(dialects, &peer).is_said);
    clock_manual_advance(&clock, 60000000);
    assert_false(dialects_take_turn(dialects, &peer)); /* asked again, but rarely: it may be upgraded */
    clock_manual_advance(&clock, UINT64_C(600) * 1000000);
    assert_true(dialects_take_turn(dialects, &peer));
    dialects_free(dialects);
}

static void a_site_is_a_name_or_a_network(void **state) {
    (void)state;
    struct dialect own = speaking(1, 2);
    struct dialect named = speaking(1, 2);
    memcpy(own.site, "cellar", sizeof "cellar");
    memcpy(named.site, "hall", sizeof "hall");
    struct dialects *dialects = dialects_new(&own, NULL);
    struct peer peer = peer_of(2);
    char site[DIALECTS_SITE_SIZE_MAX];
    assert_string_equal(dialects_site(dialects, &peer, false, site), "127.0.0.0/16");
    assert_string_equal(dialects_site(dialects, &peer, true, site), "cellar");
    dialects_hear(dialects, &peer, &named);
    assert_string_equal(dialects_site(dialects, &peer, false, site), "hall");
    struct peer other = {.key = {9}};
    assert_true(address_parse(BYTES("[2001:db8:7:1::5]:7070"), 0, &other.address));
    assert_string_equal(dialects_site(dialects, &other, false, site), "2001:db8:7::/48");
    dialects_free(dialects);
}

static void answers_are_given_once_a_second(void **state) {
    (void)state;
    struct clock_manual clock;
    clock_manual_init(&clock, 0);
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, &clock.clock);
    struct peer peer = peer_of(2);
    clock_manual_advance(&clock, 1);
    assert_true(dialects_may_answer(dialects, &peer));
    assert_false(dialects_may_answer(dialects, &peer));
    clock_manual_advance(&clock, 1000000);
    assert_true(dialects_may_answer(dialects, &peer));
    dialects_free(dialects);
}

static struct dialect speaking_of_two(const struct address *main, const struct address *second) {
    struct dialect dialect = speaking(1, 2);
    dialect.has_two = true;
    dialect.main = *main;
    dialect.second = *second;
    return dialect;
}

static const struct address second_address = {.ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = 7070};
static const struct address no_address = {.port = 0};

/* Of a node with these ways, which has heard of the two addresses of peer 2 from the second. */
static struct dialects *make_two(bool has_ipv4, bool has_ipv6, struct peer *ret_second) {
    struct dialect own = speaking(1, 2);
    struct dialects *dialects = dialects_new(&own, NULL);
    struct peer main = peer_of(2);
    struct dialect theirs = speaking_of_two(&main.address, &second_address);
    *ret_second = main;
    ret_second->address = second_address;
    dialects_set_ways(dialects, has_ipv4, has_ipv6, &main.address, &no_address);
    dialects_hear(dialects, ret_second, &theirs);
    return dialects;
}

static void the_second_address_is_used_where_there_is_no_way_to_the_main_one(void **state) {
    (void)state;
    struct peer main = peer_of(2);
    struct peer stranger = peer_of(3);
    struct peer second;
    struct address found;
    struct dialects *dialects = make_two(false, true, &second);
    assert_false(dialects_has_way(dialects, &main.address));
    found = dialects_route(dialects, &main);
    assert_true(address_equal(&found, &second_address));
    found = dialects_route(dialects, &stranger);
    assert_true(address_equal(&found, &stranger.address));
    assert_true(dialects_find_main(dialects, &second, &found));
    assert_true(address_equal(&found, &main.address));
    assert_false(dialects_take_turn(dialects, &main)); /* it has said all */
    dialects_free(dialects);
}

static void a_place_counts_only_if_the_node_has_shown_that_it_is_there(void **state) {
    (void)state;
    struct peer main = peer_of(2);
    struct peer second;
    struct address found;
    struct dialects *dialects = make_two(true, true, &second);
    struct dialect theirs = speaking_of_two(&main.address, &second_address);
    found = dialects_route(dialects, &main);
    assert_true(address_equal(&found, &main.address));
    assert_false(dialects_find_main(dialects, &second, &found));
    assert_true(address_equal(&found, &main.address));
    assert_true(dialects_take_turn(dialects, &main)); /* there it is asked */
    assert_false(dialects_take_turn(dialects, &main));
    dialects_hear(dialects, &main, &theirs);
    assert_true(dialects_find_main(dialects, &second, &found));
    assert_true(address_equal(&found, &main.address));
    dialects_hear(dialects, &second, &theirs); /* the same again changes nothing */
    assert_true(dialects_find_main(dialects, &second, &found));
    theirs.main = address_ipv4(127, 0, 0, 9, 7070); /* another place is shown anew */
    dialects_hear(dialects, &second, &theirs);
    assert_false(dialects_find_main(dialects, &second, &found));
    dialects_free(dialects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_node_is_spoken_to_in_version_1),
        cmocka_unit_test(without_version_1_it_is_waited_for),
        cmocka_unit_test(what_was_said_last_counts),
        cmocka_unit_test(hellos_are_repeated_ever_more_rarely),
        cmocka_unit_test(a_node_that_answers_no_hello_but_speaks_is_old),
        cmocka_unit_test(a_site_is_a_name_or_a_network),
        cmocka_unit_test(the_second_address_is_used_where_there_is_no_way_to_the_main_one),
        cmocka_unit_test(a_place_counts_only_if_the_node_has_shown_that_it_is_there),
        cmocka_unit_test(answers_are_given_once_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "crowd-square.h"
#include "protocol/crowd/crowd_state.h"

/* Each knows the next one only. */
static void make_chain(struct square *square, uint32_t count, const struct crowd_config *config) {
    square_init(square, count, config);
    for (uint32_t i = 0; i + 1 < count; i++) {
        square_knows(square, i, &(uint32_t){i + 1}, 1);
    }
}

/* ---- how far ---- */

static void ttl_t_goes_t_hops_far(void **state) {
    (void)state;
    for (uint8_t ttl = 1; ttl <= 4; ttl++) {
        for (uint32_t distance = 1; distance <= 5; distance++) {
            struct square square;
            struct crowd_config config = {.fanout = 2, .ttl_first = ttl, .ttl_last = ttl};
            make_chain(&square, 6, &config);
            square.nodes[distance].holds = SQUARE_WISH;
            square_find(&square, 0, 1, SQUARE_WISH);
            square_run(&square, 5 * SQUARE_SECOND_US);
            assert_int_equal(square.nodes[0].found_count, distance <= ttl);
            assert_int_equal(square.nodes[0].lost_count, distance > ttl);
            if (distance <= ttl) {
                assert_int_equal(square.nodes[0].found_hops, distance);
                assert_true(peer_equal(&square.nodes[0].found_holder, &square.nodes[distance].self));
            }
            for (uint32_t i = 1; i < 6; i++) { /* who is behind the holder or out of reach is not bothered */
                assert_int_equal(square.nodes[i].asked_count, i <= ttl && i <= distance);
            }
            square_done(&square);
        }
    }
}

static void ttl_grows_by_one_and_waits_t_times_hop(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.ttl_last = 3, .tries_at_last = 2};
    make_chain(&square, 6, &config);
    uint64_t start_us = square.now_us;
    square_find(&square, 0, 7, SQUARE_WISH);
    uint8_t ttl = 0;
    assert_true(crowd_is_searching(square.nodes[0].crowd, 7, &ttl));
    assert_int_equal(ttl, 1);
    square_run(&square, 350000);
    assert_true(crowd_is_searching(square.nodes[0].crowd, 7, &ttl));
    assert_int_equal(ttl, 2);
    square_run(&square, 5 * SQUARE_SECOND_US);
    assert_int_equal(square_counters(&square, 0)->tries_count, 4);
    assert_int_equal(square.nodes[0].lost_count, 1);
    assert_false(square.nodes[0].lost_unasked);
    assert_int_equal(square.nodes[0].lost_at_us - start_us, (1 + 2 + 3 + 3) * 300000);
    assert_int_equal(square.nodes[3].asked_count, 2); /* the last two tries, each with an id of its own */
    assert_int_equal(square.nodes[4].asked_count, 0);
    assert_false(crowd_is_searching(square.nodes[0].crowd, 7, &ttl));
    square_done(&square);
}

static void ttl_and_fanout_of_others_are_cut(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 2, .ttl_cap = 4, .ttl_last = 4};
    square_make_star(&square, 20, &config);
    struct crowd_message query = square_query(99, CROWD_TTL_CAP);
    query.fanout = CROWD_FANOUT_MAX;
    square_send(&square, 1, 0, query);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], 4); /* twice our own fanout */
    assert_int_equal(square.nodes[0].sent_fanout, 4);
    assert_int_equal(square.nodes[0].sent_ttl, 2); /* one hop before us, this one, two more */
    square_done(&square);
}

static void query_does_not_go_back(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.ttl_first = 4};
    square_init(&square, 3, &config);
    square_knows(&square, 0, &(uint32_t){1}, 1);
    square_knows(&square, 1, (uint32_t[]){0, 2}, 2);
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[1].sent[CROWD_MESSAGE_QUERY], 1);
    assert_int_equal(square.nodes[2].asked_count, 1);
    square_done(&square);
}

/* ---- what is found ---- */

static void all_holders_are_told_of_once(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 16, .view_size = 32};
    square_make_star(&square, 13, &config);
    for (uint32_t i = 1; i < 13; i++) {
        square.nodes[i].holds = SQUARE_WISH;
    }
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].found_count, LOCATE_FINDINGS_MAX); /* of one try */
    assert_int_equal(square_counters(&square, 0)->found_count, 1);
    assert_int_equal(square_counters(&square, 0)->tries_count, 1); /* no growth after a hit */
    uint8_t ttl;
    assert_false(crowd_is_searching(square.nodes[0].crowd, 1, &ttl)); /* its time is over */
    assert_int_equal(square.nodes[0].lost_count, 0);
    square_done(&square);
}

static void finding_of_earlier_try_counts_late_one_does_not(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.ttl_last = 2};
    make_chain(&square, 2, &config);
    square.nodes[1].is_slow = true;
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, 400000); /* the second try is under way; both queries wait for one answer */
    assert_int_equal(square.nodes[1].asked_count, 1);
    square_answer(&square, 1, square.nodes[1].asked_last, true);
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[1].sent[CROWD_MESSAGE_HIT], 2);
    assert_int_equal(square.nodes[0].found_count, 1);

    square_find(&square, 0, 2, BYTES("another"));
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].lost_count, 1);
    uint64_t unasked_count = square_counters(&square, 0)->unasked_count;
    square_answer(&square, 1, square.nodes[1].asked_last, true);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].found_count, 1);
    assert_int_equal(square_counters(&square, 0)->unasked_count, unasked_count + 2);
    square_done(&square);
}

static void enough_ends_a_search(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {0};
    square_make_star(&square, 4, &config);
    for (uint32_t i = 1; i < 4; i++) {
        square.nodes[i].holds = SQUARE_WISH;
    }
    square_find(&square, 0, 1, SQUARE_WISH);
    square_step(&square, 0, (struct event){.kind = EVENT_COMMAND, .code = CROWD_ENOUGH, .number = 1});
    square_run(&square, 5 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].found_count, 0);
    assert_int_equal(square.nodes[0].lost_count, 0);
    assert_int_equal(square_counters(&square, 0)->tries_count, 1);
    square_step(&square, 0, (struct event){.kind = EVENT_COMMAND, .code = CROWD_ENOUGH, .number = 1});
    square_done(&square);
}

/* A liar is next to us, and the holder behind another neighbour. */
static void discounted_finding_does_not_end_a_search(void **state) {
    (void)state;
    for (int discounts = 0; discounts < 2; discounts++) {
        struct square square;
        struct crowd_config config = {.ttl_last = 3};
        square_init(&square, 4, &config);
        square_knows(&square, 0, (uint32_t[]){1, 2}, 2);
        square_knows(&square, 2, &(uint32_t){3}, 1);
        square.nodes[1].holds = square.nodes[3].holds = SQUARE_WISH;
        square_find(&square, 0, 1, SQUARE_WISH);
        square_run(&square, 3 * SQUARE_LATENCY_US);
        assert_int_equal(square.nodes[0].found_count, 1);
        if (discounts) {
            struct event event = {.kind = EVENT_COMMAND, .code = CROWD_DISCOUNT, .number = 1};
            square_step(&square, 0, event);
        }
        square_run(&square, 3 * SQUARE_SECOND_US);
        assert_int_equal(square.nodes[0].found_count, 1 + discounts);
        assert_int_equal(square_counters(&square, 0)->tries_count, 1 + discounts);
        square_done(&square);
    }
}

static void what_does_not_count_does_not_end_a_search(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {0};
    square_init(&square, 4, &config);
    square_knows(&square, 0, (uint32_t[]){1, 2}, 2);
    square_knows(&square, 2, &(uint32_t){3}, 1);
    square.nodes[1].holds = SQUARE_WISH; /* the liar, as near as can be */
    square.nodes[3].holds = SQUARE_WISH;
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, 3 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[0].found_count, 1);
    square_step(&square, 0, (struct event){.kind = EVENT_COMMAND, .code = CROWD_DISCOUNT, .number = 1});
    square_run(&square, 2 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].found_count, 2);
    assert_int_equal(square_counters(&square, 0)->tries_count, 2); /* and then it ends */
    square_step(&square, 0, (struct event){.kind = EVENT_COMMAND, .code = CROWD_DISCOUNT, .number = 1});
    square_done(&square);
}

static void nobody_to_ask_is_lost_and_not_absent(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.searches_max = 2};
    square_make_star(&square, 2, &config);
    square_find(&square, 1, 1, SQUARE_WISH);
    assert_int_equal(square.nodes[1].lost_count, 1);
    assert_true(square.nodes[1].lost_unasked);
    assert_int_equal(square_counters(&square, 1)->absent_count, 0);
    square_knows(&square, 1, &(uint32_t){0}, 1);
    square.nodes[0].holds = SQUARE_WISH;
    square_find(&square, 1, 1, SQUARE_WISH);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[1].found_count, 1);

    square_find(&square, 1, 2, BYTES("b"));
    square_find(&square, 1, 3, BYTES("c"));
    assert_int_equal(square.nodes[1].lost_count, 1);
    square_find(&square, 1, 4, BYTES("d")); /* more than searches_max */
    assert_int_equal(square.nodes[1].lost_count, 2);
    square_done(&square);
}

static void absent_is_remembered_until_found_or_time_is_over(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.ttl_last = 2};
    make_chain(&square, 3, &config);
    square_knows(&square, 2, &(uint32_t){0}, 1);
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, 2 * SQUARE_SECOND_US);
    uint32_t sent = square.nodes[0].sent[CROWD_MESSAGE_QUERY];
    square_find(&square, 0, 2, SQUARE_WISH);
    assert_int_equal(square.nodes[0].lost_count, 2);
    assert_true(square.nodes[0].lost_unasked);
    assert_int_equal(square_counters(&square, 0)->absent_count, 1);
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], sent);

    square.nodes[1].holds = SQUARE_WISH; /* somebody else finds it through us */
    square_find(&square, 2, 1, SQUARE_WISH);
    square_run(&square, 2 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[2].found_count, 1);
    square_find(&square, 0, 3, SQUARE_WISH);
    square_run(&square, 2 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].found_count, 1);

    square_find(&square, 0, 4, BYTES("other"));
    square_run(&square, 21 * SQUARE_SECOND_US);
    sent = square.nodes[0].sent[CROWD_MESSAGE_QUERY];
    square_find(&square, 0, 5, BYTES("other"));
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], sent + 1);
    square_done(&square);
}

/* ---- how much a node does for others ---- */

static void parts_do_as_they_say(void **state) {
    (void)state;
    static const struct {
        enum crowd_part part;
        bool is_asked;
        uint32_t forwards;
    } rows[] = {
        {CROWD_FULL, true, 3},
        {CROWD_QUERY_ONLY, false, 3},
        {CROWD_TUNNEL, true, 1},
        {CROWD_MUTE, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct square square;
        struct crowd_config config = {.fanout = 3, .part = rows[i].part};
        square_make_star(&square, 8, &config);
        struct crowd_message query = square_query(5, 3);
        query.fanout = 3;
        square_send(&square, 1, 0, query);
        square_run(&square, 2 * SQUARE_LATENCY_US);
        assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_ACK], 1);
        assert_int_equal(square.nodes[0].asked_count, rows[i].is_asked);
        assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], rows[i].forwards);
        square_find(&square, 0, 1, BYTES("mine")); /* all of them may search */
        assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], rows[i].forwards + 3);
        square_done(&square);
    }
}

static void query_only_denies_tunnel_gives(void **state) {
    (void)state;
    for (int is_tunnel = 0; is_tunnel < 2; is_tunnel++) {
        struct square square;
        struct crowd_config config = {.part = is_tunnel ? CROWD_TUNNEL : CROWD_QUERY_ONLY};
        make_chain(&square, 2, &config);
        square.nodes[1].holds = SQUARE_WISH;
        square_find(&square, 0, 1, SQUARE_WISH);
        square_run(&square, 10 * SQUARE_SECOND_US);
        assert_int_equal(square.nodes[0].found_count, is_tunnel);
        square_done(&square);
    }
}

/* ---- repeats ---- */

/* 0 knows 1 and 2, they know 3, who knows 0. */
static void make_diamond(struct square *square, const struct crowd_config *config) {
    square_init(square, 4, config);
    square_knows(square, 0, (uint32_t[]){1, 2}, 2);
    square_knows(square, 1, &(uint32_t){3}, 1);
    square_knows(square, 2, &(uint32_t){3}, 1);
    square_knows(square, 3, &(uint32_t){0}, 1);
}

static void repeats_are_dropped_or_taken(void **state) {
    (void)state;
    for (int takes = 0; takes < 2; takes++) {
        struct square square;
        struct crowd_config config = {.fanout = 2, .ttl_first = 3, .ttl_last = 3, .takes_repeats = takes};
        make_diamond(&square, &config);
        square_find(&square, 0, 1, SQUARE_WISH);
        square_run(&square, SQUARE_SECOND_US);
        assert_int_equal(square_counters(&square, 3)->repeats_count, 1);
        assert_int_equal(square.nodes[3].asked_count, 1 + takes);
        /* Our own that comes back is a repeat, too. */
        assert_int_equal(square_counters(&square, 0)->queries_count, 1 + takes);
        assert_int_equal(square.nodes[0].asked_count, 2 * takes);

        square.nodes[3].holds = BYTES("now");
        square_find(&square, 0, 2, BYTES("now"));
        square_run(&square, SQUARE_SECOND_US);
        assert_int_equal(square.nodes[3].sent[CROWD_MESSAGE_HIT], 1 + takes);
        assert_int_equal(square.nodes[0].found_count, 1);
        square_done(&square);
    }
}

static void owner_is_asked_once_for_one_wish(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {0};
    square_make_star(&square, 6, &config);
    square.nodes[0].is_slow = true;
    for (uint32_t i = 1; i < 5; i++) {
        square_send(&square, i, 0, square_query(i, 0));
    }
    struct crowd_message other = square_query(77, 0);
    other.contents = BYTES("other");
    square_send(&square, 1, 0, other);
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[0].asked_count, 2);
    square_answer(&square, 0, square.nodes[0].asked_last - 1, true);
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_HIT], 4);
    square_send(&square, 5, 0, square_query(78, 0)); /* later: asked anew */
    square_run(&square, 3 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].asked_count, 3);
    square_answer(&square, 0, square.nodes[0].asked_last, true); /* two seconds are over */
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_HIT], 4);
    square_done(&square);
}

/* ---- silence ---- */

static void silent_neighbour_is_replaced_twice_and_dropped(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 1, .ttl_first = 6, .view_size = 8};
    square_make_star(&square, 6, &config);
    for (uint32_t i = 1; i < 6; i++) {
        square.nodes[i].is_dead = true;
    }
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, 5 * SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].sent[CROWD_MESSAGE_QUERY], 3); /* three different ones */
    assert_int_equal(square_counters(&square, 0)->reselected_count, 2);
    assert_int_equal(square_counters(&square, 0)->silent_count, 0);
    assert_true(square.nodes[0].lost_unasked); /* as far as we know nobody has heard it */
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    for (uint64_t i = 2; i < 12; i++) {
        square_find(&square, 0, i, SQUARE_WISH);
        square_run(&square, 5 * SQUARE_SECOND_US);
    }
    assert_int_equal(crowd_neighbours(square.nodes[0].crowd, view), 0);
    assert_int_equal(square_counters(&square, 0)->silent_count, 5);
    square_done(&square);
}

static void another_is_chosen_for_queries_of_others(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 2, .ttl_first = 4, .keeps_silent = true};
    square_init(&square, 5, &config);
    square_knows(&square, 0, &(uint32_t){1}, 1);
    square_knows(&square, 1, (uint32_t[]){2, 3, 4}, 3);
    square.nodes[2].is_dead = square.nodes[3].is_dead = true;
    square.nodes[4].holds = SQUARE_WISH;
    for (uint32_t i = 1; i <= 3; i++) { /* often enough to be dropped, where silent ones are not kept */
        square_find(&square, 0, i, SQUARE_WISH);
        square_run(&square, 3 * SQUARE_SECOND_US);
        assert_int_equal(square.nodes[0].found_count, i);
    }
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    assert_int_equal(crowd_neighbours(square.nodes[1].crowd, view), 3);
    square_done(&square);
}

static void who_was_asleep_blames_nobody(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 4, .ttl_first = 6};
    square_make_star(&square, 12, &config);
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, 2 * SQUARE_LATENCY_US - 1); /* the acknowledgements are there, unread */
    square.now_us += 1500000;
    square_step(&square, 0, (struct event){.kind = EVENT_WAKE});
    assert_int_equal(square_counters(&square, 0)->reselected_count, 0);
    square_run(&square, 1);
    square_run(&square, 5 * SQUARE_SECOND_US);
    assert_int_equal(square_counters(&square, 0)->silent_count, 0);
    assert_int_equal(square_counters(&square, 0)->reselected_count, 0);
    square_done(&square);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ttl_t_goes_t_hops_far),
        cmocka_unit_test(ttl_grows_by_one_and_waits_t_times_hop),
        cmocka_unit_test(ttl_and_fanout_of_others_are_cut),
        cmocka_unit_test(query_does_not_go_back),
        cmocka_unit_test(all_holders_are_told_of_once),
        cmocka_unit_test(finding_of_earlier_try_counts_late_one_does_not),
        cmocka_unit_test(enough_ends_a_search),
        cmocka_unit_test(discounted_finding_does_not_end_a_search),
        cmocka_unit_test(what_does_not_count_does_not_end_a_search),
        cmocka_unit_test(nobody_to_ask_is_lost_and_not_absent),
        cmocka_unit_test(absent_is_remembered_until_found_or_time_is_over),
        cmocka_unit_test(parts_do_as_they_say),
        cmocka_unit_test(query_only_denies_tunnel_gives),
        cmocka_unit_test(repeats_are_dropped_or_taken),
        cmocka_unit_test(owner_is_asked_once_for_one_wish),
        cmocka_unit_test(silent_neighbour_is_replaced_twice_and_dropped),
        cmocka_unit_test(another_is_chosen_for_queries_of_others),
        cmocka_unit_test(who_was_asleep_blames_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "crowd-square.h"

/* ---- floods and lies ---- */

static void flood_of_one_neighbour_is_bounded(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 3};
    square_init(&square, 12, &config);
    square_knows(&square, 0, (uint32_t[]){5, 6, 7, 8, 9, 10, 11}, 7);
    square_knows(&square, 2, &(uint32_t){0}, 1);
    for (uint32_t i = 5; i < 12; i++) {
        square.nodes[i].holds = SQUARE_WISH;
    }
    enum { FLOOD = 10000, SECONDS = 5 };
    for (uint32_t i = 0; i < FLOOD; i++) { /* 2,000 a second, each for something else */
        struct crowd_message query = square_query(prng_mix(i), 7);
        query.contents = bytes_of(&i, sizeof i);
        query.fanout = 16;
        square_send(&square, 1, 0, query);
        if (i % 500 == 0) {
            square_find(&square, 2, i, SQUARE_WISH);
        }
        square_run(&square, SECONDS * SQUARE_SECOND_US / FLOOD);
    }
    square_run(&square, 3 * SQUARE_SECOND_US);
    const struct crowd_counters *counters = square_counters(&square, 0);
    assert_int_equal(square_counters(&square, 2)->found_count, FLOOD / 500);
    assert_int_equal(square_counters(&square, 2)->lost_count, 0);
    uint64_t served_max = 50 * (SECONDS + 2 + 1);
    assert_true(counters->limited_count >= FLOOD - served_max);
    assert_true(counters->forwarded_count <= 6 * served_max + 3 * FLOOD / 500 * 2);
    print_message("# flood of %d: %llu limited, %llu copies sent on\n", FLOOD,
                  (unsigned long long)counters->limited_count, (unsigned long long)counters->forwarded_count);
    square_done(&square);
}

static void turn_is_of_the_most_wanted(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.total_rate = 1};
    square_init(&square, 10, &config);
    square.nodes[0].holds = SQUARE_WISH;
    for (uint32_t i = 1; i < 9; i++) {
        struct crowd_message query = square_query(i, 0);
        query.contents = i < 7 ? bytes_of(&i, sizeof i) : SQUARE_WISH; /* each of six, then one of two */
        square_send(&square, i, 0, query);
    }
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[0].asked_count, 1);
    assert_int_equal(square_counters(&square, 0)->hits_count, 0);
    square_run(&square, SQUARE_SECOND_US);
    assert_int_equal(square.nodes[0].asked_count, 2);
    assert_int_equal(square_counters(&square, 0)->hits_count, 1);
    square_run(&square, 2 * SQUARE_SECOND_US);
    assert_int_equal(square_counters(&square, 0)->crowded_out_count, 6);
    square_done(&square);
}

/* 40 flooders, each within its rate, are more than the node does; one wish comes from many. */
static void what_many_want_comes_first(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.total_rate = 50, .waiting_max = 200, .fanout = 1};
    square_init(&square, 50, &config);
    square.nodes[0].holds = SQUARE_WISH;
    uint32_t wanted_count = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        struct crowd_message query = square_query(prng_mix(i), 0);
        query.contents = bytes_of(&i, sizeof i);
        if (i % 40 == 0) {
            query.contents = SQUARE_WISH;
            wanted_count++;
        }
        square_send(&square, 1 + i % 47, 0, query);
        square_run(&square, 1000);
    }
    square_run(&square, 3 * SQUARE_SECOND_US);
    const struct crowd_counters *counters = square_counters(&square, 0);
    print_message("# overload: %u wanted, %llu hits, %llu crowded out\n", wanted_count,
                  (unsigned long long)counters->hits_count, (unsigned long long)counters->crowded_out_count);
    assert_int_equal(counters->limited_count, 0);
    assert_true(counters->hits_count * 10 >= wanted_count * 9);
    assert_true(counters->crowded_out_count >= 3000);
    assert_true(square.nodes[0].asked_count <= 50 * 7 + 50);
    square_done(&square);
}

/* 100 of 200 nodes search, three times each, for what nobody has. */
static uint64_t search_in_vain(bool is_unlimited) {
    static struct square square;
    struct crowd_config config = {.is_unlimited = is_unlimited, .ttl_last = 4, .searches_max = 4};
    uint64_t forwarded_count = 0;
    square_make_random(&square, 200, &config);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            square_find(&square, i, round, SQUARE_WISH);
            square_run(&square, SQUARE_SECOND_US / 20);
        }
    }
    square_run(&square, 5 * SQUARE_SECOND_US);
    for (uint32_t i = 0; i < 200; i++) {
        forwarded_count += square_counters(&square, i)->forwarded_count;
        assert_int_equal(square.nodes[i].lost_count, i < 100 ? 3 : 0);
    }
    /* It is found as soon as somebody has it and the memory of its absence is over. */
    square_run(&square, 21 * SQUARE_SECOND_US);
    square.nodes[150].holds = square.nodes[160].holds = square.nodes[170].holds = SQUARE_WISH;
    for (uint32_t i = 0; i < 100; i++) {
        square_find(&square, i, 9, SQUARE_WISH);
        square_run(&square, SQUARE_SECOND_US / 20);
    }
    square_run(&square, 10 * SQUARE_SECOND_US);
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < 100; i++) {
        found_count += square.nodes[i].found_count > 0;
    }
    print_message("# absent, %s memory: %llu copies sent on; later found by %u of 100\n",
                  is_unlimited ? "without" : "with", (unsigned long long)forwarded_count, found_count);
    assert_true(found_count >= 95);
    square_done(&square);
    return forwarded_count;
}

static void absent_does_not_flood(void **state) {
    (void)state;
    uint64_t without = search_in_vain(true);
    uint64_t with = search_in_vain(false);
    assert_true(with * 5 < without);
}

static void forged_and_unasked_hits_are_dropped(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 1};
    square_init(&square, 4, &config);
    square_knows(&square, 0, &(uint32_t){1}, 1);
    square_knows(&square, 1, &(uint32_t){2}, 1);
    struct crowd_message hit = {.kind = CROWD_MESSAGE_HIT, .hops = 1, .contents = BYTES("x")};
    hit.number = 12345; /* no such query */
    square_send(&square, 1, 0, hit);
    square_run(&square, SQUARE_LATENCY_US);
    assert_int_equal(square_counters(&square, 0)->unasked_count, 1);

    struct crowd_message query = square_query(6, 3);
    square_send(&square, 0, 1, query);
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square_counters(&square, 1)->forwarded_count, 1);
    hit.number = 6;
    square_send(&square, 3, 1, hit); /* it knows the number, but was not asked */
    square_send(&square, 0, 1, hit); /* it has asked */
    square_send(&square, 3, 1, (struct crowd_message){.kind = CROWD_MESSAGE_ACK, .number = 6});
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square_counters(&square, 1)->unasked_count, 3);
    assert_int_equal(square_counters(&square, 1)->relayed_count, 0);
    for (unsigned i = 0; i < 10; i++) { /* one that was asked, and talks too much */
        square_send(&square, 2, 1, hit);
    }
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square_counters(&square, 1)->relayed_count, 3);
    square_done(&square);
}

static void liar_leaves_room_for_others(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {.fanout = 2};
    square_init(&square, 4, &config);
    square_knows(&square, 0, (uint32_t[]){1, 2}, 2);
    square.nodes[1].is_slow = true;
    square.nodes[2].is_slow = true;
    square_find(&square, 0, 1, SQUARE_WISH);
    square_run(&square, SQUARE_LATENCY_US);
    const struct square_letter *letter = &square.letters[square.first]; /* an ACK, with the number */
    struct crowd_message hit;
    assert_int_equal(crowd_message_read(bytes_of(letter->bytes, letter->size), SQUARE_NETWORK, &hit),
                     CROWD_MESSAGE_GOOD);
    hit.kind = CROWD_MESSAGE_HIT;
    hit.hops = 2;
    hit.contents = BYTES("lie");
    for (uint32_t i = 0; i < 20; i++) {
        hit.holder = square_peer(100 + i);
        square_send(&square, 1, 0, hit);
    }
    hit.holder = square_peer(0); /* the searcher itself */
    square_send(&square, 2, 0, hit);
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[0].found_count, 3);
    square_answer(&square, 2, square.nodes[2].asked_last, true);
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square.nodes[0].found_count, 4);
    assert_true(peer_equal(&square.nodes[0].found_holder, &square.nodes[2].self));
    square_done(&square);
}

static void oversized_is_malformed(void **state) {
    (void)state;
    struct square square;
    struct crowd_config config = {0};
    square_init(&square, 2, &config);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t contents[CROWD_WISH_SIZE_MAX] = {1};
    struct crowd_message query = square_query(1, 1);
    query.contents = bytes_of(contents, sizeof contents);
    struct bytes bytes = crowd_message_write(&query, SQUARE_NETWORK, memory);
    square_post(&square, 1, 0, bytes);
    memory[CROWD_MESSAGE_HEADER_SIZE + 3]++; /* a length of 401, with as many bytes */
    square_post(&square, 1, 0, bytes_of(memory, bytes.size + 1));
    square_run(&square, 2 * SQUARE_LATENCY_US);
    assert_int_equal(square_counters(&square, 0)->malformed_count, 1);
    assert_int_equal(square_counters(&square, 0)->queries_count, 1);
    assert_int_equal(square.nodes[0].asked_count, 1);
    square_done(&square);
}

/* ---- all together ---- */

/* One of 200 has it, all others ask within a second, and who has found it has it from then on. */
static void everybody_finds_what_one_has(void **state) {
    (void)state;
    static struct square square;
    struct crowd_config config = {0};
    uint64_t queries_count = 0;
    uint64_t last_us = 0;
    square_make_random(&square, 200, &config);
    square.nodes[0].holds = SQUARE_WISH;
    uint64_t start_us = square.now_us;
    for (uint32_t i = 1; i < 200; i++) {
        square_find(&square, i, 1, SQUARE_WISH);
        square_run(&square, SQUARE_SECOND_US / 200);
        for (uint32_t k = 0; k < 200; k++) {
            square.nodes[k].holds = square.nodes[k].found_count > 0 ? SQUARE_WISH : square.nodes[k].holds;
        }
    }
    square_run(&square, 10 * SQUARE_SECOND_US);
    for (uint32_t i = 1; i < 200; i++) {
        assert_true(square.nodes[i].found_count > 0);
        assert_int_equal(square.nodes[i].lost_count, 0);
        queries_count += square_counters(&square, i)->queries_count;
        last_us = square.nodes[i].found_at_us > last_us ? square.nodes[i].found_at_us : last_us;
    }
    print_message("# everybody: %llu queries for each node, the last found after %llu ms\n",
                  (unsigned long long)queries_count / 200, (unsigned long long)(last_us - start_us) / 1000);
    assert_true(queries_count / 200 < 200);
    square_done(&square);
}

/* A small table forgets; ids are chosen to be many. What is checked is in assertions: bounds of outboxes. */
static void small_tables_and_random_messages(void **state) {
    (void)state;
    static struct square square;
    struct crowd_config config = {
        .seen_max = 8, .waiting_max = 4, .searches_max = 2, .fanout = 3, .ttl_last = 3, .ack_us = 50000};
    struct prng prng;
    prng_init(&prng, 5);
    square_make_random(&square, 30, &config);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t to = (uint32_t)prng_below(&prng, 30);
        uint32_t from = (uint32_t)prng_below(&prng, 30);
        struct crowd_message message = square_query(prng_below(&prng, 64), (uint8_t)prng_below(&prng, 8));
        message.kind = (uint8_t)prng_between(&prng, CROWD_MESSAGE_QUERY, CROWD_MESSAGE_HIT);
        uint8_t wish = (uint8_t)prng_below(&prng, 8);
        message.contents = bytes_of(&wish, 1);
        if (from != to) {
            square_send(&square, from, to, message);
        }
        square.nodes[to].is_dead = prng_below(&prng, 10) == 0;
        square.nodes[from].is_slow = prng_below(&prng, 4) == 0;
        square_answer(&square, to, square.nodes[to].asked_last, prng_below(&prng, 2) == 0);
        square_run(&square, prng_below(&prng, 1000));
        uint8_t ttl;
        if (!crowd_is_searching(square.nodes[to].crowd, i % 2, &ttl)) {
            square_find(&square, to, i % 2, bytes_of(&wish, 1));
        }
    }
    square_done(&square);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flood_of_one_neighbour_is_bounded),
        cmocka_unit_test(turn_is_of_the_most_wanted),
        cmocka_unit_test(what_many_want_comes_first),
        cmocka_unit_test(absent_does_not_flood),
        cmocka_unit_test(forged_and_unasked_hits_are_dropped),
        cmocka_unit_test(liar_leaves_room_for_others),
        cmocka_unit_test(oversized_is_malformed),
        cmocka_unit_test(everybody_finds_what_one_has),
        cmocka_unit_test(small_tables_and_random_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

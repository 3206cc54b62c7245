#include "sim/world/network.h"

#include "unit.h"

enum { NODES_COUNT = 8, MESSAGES_COUNT = 20000 };

static struct network make(const struct network_dials *dials) {
    struct network network;
    assert_int_equal(network_init(&network, NODES_COUNT, 1), ERR_OK);
    network.dials = *dials;
    return network;
}

static bool is_near(uint64_t value, uint64_t expected, uint64_t tolerance) {
    return value + tolerance >= expected && value <= expected + tolerance;
}

static void delays_by_latency_and_jitter(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.latency_us = 30000, .jitter_us = 10000});
    uint64_t sum_us = 0;
    for (unsigned i = 0; i < MESSAGES_COUNT; i++) {
        uint64_t at_us[NETWORK_COPIES_MAX];
        assert_int_equal(network_route(&network, 1000, 0, 1, 100, at_us), 1);
        assert_in_range(at_us[0], 31000, 41000);
        sum_us += at_us[0];
    }
    assert_true(is_near(sum_us / MESSAGES_COUNT, 36000, 100));
    network_done(&network);
}

static void loses_and_duplicates_as_often_as_asked(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.loss_ppm = 100000, .duplicate_ppm = 250000});
    unsigned copies_counts[NETWORK_COPIES_MAX + 1] = {0};
    for (unsigned i = 0; i < MESSAGES_COUNT; i++) {
        uint64_t at_us[NETWORK_COPIES_MAX];
        copies_counts[network_route(&network, 0, 0, 1, 100, at_us)]++;
    }
    assert_true(is_near(copies_counts[0], MESSAGES_COUNT / 10, 200));
    assert_true(is_near(copies_counts[2], MESSAGES_COUNT * 9 / 10 / 4, 250));
    assert_int_equal(network.counters.lost_count, copies_counts[0]);
    assert_int_equal(network.counters.duplicate_count, copies_counts[2]);
    network_done(&network);
}

static void sends_some_copies_on_a_detour(void **state) {
    (void)state;
    struct network network =
        make(&(struct network_dials){.latency_us = 1000, .reorder_ppm = 200000, .reorder_us = 50000});
    unsigned overtaken_count = 0;
    for (unsigned i = 0; i < MESSAGES_COUNT; i++) {
        uint64_t at_us[NETWORK_COPIES_MAX];
        network_route(&network, 0, 0, 1, 100, at_us);
        assert_in_range(at_us[0], 1000, 51000);
        overtaken_count += at_us[0] > 1000;
    }
    assert_true(is_near(overtaken_count, MESSAGES_COUNT / 5, 300));
    network_done(&network);
}

static void sends_one_after_the_other_through_a_slow_uplink(void **state) {
    (void)state;
    struct network network =
        make(&(struct network_dials){.uplink_bytes_per_s = 1000000, .backlog_us_max = 5000});
    uint64_t at_us[NETWORK_COPIES_MAX];
    for (unsigned i = 1; i <= 6; i++) {
        assert_int_equal(network_route(&network, 0, 0, 1, 1000, at_us), 1);
        assert_int_equal(at_us[0], 1000 * i);
    }
    assert_int_equal(network_route(&network, 0, 0, 1, 1000, at_us), 0); /* 6 ms of backlog */
    assert_int_equal(network.counters.backlog_count, 1);
    assert_int_equal(network_route(&network, 0, 2, 1, 1000, at_us), 1); /* another node's uplink is free */
    network.nodes[2].uplink_bytes_per_s = 100000;
    assert_int_equal(network_route(&network, 20000, 2, 1, 1000, at_us), 1);
    assert_int_equal(at_us[0], 30000);
    network_done(&network);
}

static void prefers_the_settings_of_a_link_to_the_dials(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.latency_us = 1000});
    assert_int_equal(network_set_link(&network, 0, 1, &(struct network_link){.latency_us = 77000}), ERR_OK);
    assert_int_equal(network_set_link(&network, 2, 3, &(struct network_link){.loss_ppm = 1000000}), ERR_OK);
    uint64_t at_us[NETWORK_COPIES_MAX];
    assert_int_equal(network_route(&network, 0, 0, 1, 100, at_us), 1);
    assert_int_equal(at_us[0], 77000);
    assert_int_equal(network_route(&network, 0, 1, 0, 100, at_us), 1);
    assert_int_equal(at_us[0], 1000); /* the way back is another link */
    assert_int_equal(network_route(&network, 0, 2, 3, 100, at_us), 0);
    network_done(&network);
}

static void lets_nothing_through_a_partition_until_it_heals(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){0});
    network.nodes[1].group = 1;
    network.nodes[2].group = 2;
    network_block(&network, 0, 1);
    uint64_t at_us[NETWORK_COPIES_MAX];
    assert_int_equal(network_route(&network, 0, 0, 1, 1, at_us), 0);
    assert_int_equal(network_route(&network, 0, 1, 0, 1, at_us), 1); /* one way */
    assert_int_equal(network_route(&network, 0, 0, 2, 1, at_us), 1);
    network_block(&network, 1, 0);
    assert_int_equal(network_route(&network, 0, 1, 0, 1, at_us), 0);
    assert_int_equal(network.counters.blocked_count, 2);
    network_heal(&network);
    assert_int_equal(network_route(&network, 0, 0, 1, 1, at_us), 1);
    network_done(&network);
}

static void holds_what_is_sent_on_a_clogged_link(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.latency_us = 10});
    uint64_t at_us[NETWORK_COPIES_MAX];
    assert_int_equal(network_clog_link(&network, 0, 1, 5000), ERR_OK);
    network.nodes[3].clogged_until_us = 7000;
    network_route(&network, 100, 0, 1, 1, at_us);
    assert_int_equal(at_us[0], 5010);
    network_route(&network, 100, 1, 0, 1, at_us);
    assert_int_equal(at_us[0], 110);
    network_route(&network, 100, 2, 3, 1, at_us);
    assert_int_equal(at_us[0], 7010);
    network_route(&network, 6000, 0, 1, 1, at_us);
    assert_int_equal(at_us[0], 6010); /* over */
    network_heal(&network);
    network_route(&network, 100, 3, 2, 1, at_us);
    assert_int_equal(at_us[0], 110);
    network_done(&network);
}

static void grows_latency_with_the_distance_on_the_plane(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.latency_us = 1000, .distance_us = 65536});
    network.nodes[1].x = 30000;
    network.nodes[1].y = 40000;
    network.nodes[1].access_us = 9;
    assert_int_equal(network_latency_us(&network, 0, 1), 1000 + 50000 + 9); /* 3-4-5 triangle */
    assert_int_equal(network_latency_us(&network, 1, 0), network_latency_us(&network, 0, 1));
    assert_int_equal(network_latency_us(&network, 0, 2), 1000);
    network_scatter(&network);
    assert_true(network_latency_us(&network, 0, 2) > 1000);
    network_done(&network);
}

static void corrupts_one_to_eight_bits(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){.corrupt_ppm = 500000});
    unsigned corrupt_count = 0;
    for (unsigned i = 0; i < MESSAGES_COUNT; i++) {
        uint8_t message[100] = {0};
        unsigned bits_count = 0;
        bool is_corrupt = network_corrupt(&network, message, sizeof message);
        for (unsigned j = 0; j < sizeof message; j++) {
            bits_count += (unsigned)__builtin_popcount(message[j]);
        }
        assert_in_range(bits_count, 0, is_corrupt ? 8 : 0);
        corrupt_count += is_corrupt;
    }
    assert_true(is_near(corrupt_count, MESSAGES_COUNT / 2, 400));
    network_done(&network);
}

static void counts_messages_and_bytes_per_node_and_in_all(void **state) {
    (void)state;
    struct network network = make(&(struct network_dials){0});
    uint64_t at_us[NETWORK_COPIES_MAX];
    network_route(&network, 0, 3, 4, 100, at_us);
    network_route(&network, 0, 3, 5, 11, at_us);
    network_received(&network, 4, 100);
    assert_int_equal(network.nodes[3].traffic.sent_count, 2);
    assert_int_equal(network.nodes[3].traffic.sent_size, 111);
    assert_int_equal(network.nodes[4].traffic.received_size, 100);
    assert_int_equal(network.counters.traffic.sent_size, 111);
    assert_int_equal(network.counters.traffic.received_count, 1);
    network_done(&network);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_by_latency_and_jitter),
        cmocka_unit_test(loses_and_duplicates_as_often_as_asked),
        cmocka_unit_test(sends_some_copies_on_a_detour),
        cmocka_unit_test(sends_one_after_the_other_through_a_slow_uplink),
        cmocka_unit_test(prefers_the_settings_of_a_link_to_the_dials),
        cmocka_unit_test(lets_nothing_through_a_partition_until_it_heals),
        cmocka_unit_test(holds_what_is_sent_on_a_clogged_link),
        cmocka_unit_test(grows_latency_with_the_distance_on_the_plane),
        cmocka_unit_test(corrupts_one_to_eight_bits),
        cmocka_unit_test(counts_messages_and_bytes_per_node_and_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

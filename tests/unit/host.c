#include "crawl/engine/host.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

/* What the hosts need of a frontier is only where a lane keeps its owner. */
struct frontier_lane {
    void *owner;
};

void frontier_lane_set_owner(struct frontier_lane *lane, void *owner) {
    lane->owner = owner;
}

static struct host *add(struct hosts *hosts, const char *name, struct frontier_lane *lane) {
    struct host *host = hosts_get(hosts, bytes_of_string(name));
    assert_non_null(host);
    assert_int_equal(hosts_add_lane(hosts, host, NULL, lane), ERR_OK);
    return host;
}

static void hosts_come_out_when_their_time_has_come(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lanes[3];
    uint64_t next_us;
    hosts_init(&hosts, 1);
    struct host *a = add(&hosts, "a", &lanes[0]);
    struct host *b = add(&hosts, "b", &lanes[1]);
    struct host *c = add(&hosts, "c", &lanes[2]);
    assert_ptr_equal(hosts_get(&hosts, BYTES("b")), b);
    hosts_queue(&hosts, a, 300);
    hosts_queue(&hosts, b, 100);
    hosts_queue(&hosts, c, 200);
    assert_null(hosts_next(&hosts, 99, &next_us));
    assert_int_equal(next_us, 100);
    assert_ptr_equal(hosts_next(&hosts, 250, &next_us), b);
    assert_ptr_equal(hosts_next(&hosts, 250, &next_us), c);
    assert_null(hosts_next(&hosts, 250, &next_us));
    assert_int_equal(next_us, 300);
    hosts_done(&hosts);
}

static void a_host_is_queued_once_at_its_latest_word(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lane;
    uint64_t next_us;
    hosts_init(&hosts, 1);
    struct host *a = add(&hosts, "a", &lane);
    hosts_queue(&hosts, a, 100);
    hosts_queue(&hosts, a, 500);
    hosts_queue(&hosts, a, 50);
    hosts_queue(&hosts, a, 50);
    assert_ptr_equal(hosts_next(&hosts, 60, &next_us), a);
    assert_null(hosts_next(&hosts, 1000, &next_us)); /* the other entries are stale */
    assert_int_equal(next_us, UINT64_MAX);
    hosts_done(&hosts);
}

static void busy_hosts_are_not_queued(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lane;
    uint64_t next_us;
    hosts_init(&hosts, 1);
    struct host *a = add(&hosts, "a", &lane);
    hosts_queue(&hosts, a, 10);
    hosts_set_busy(&hosts, a, true);
    hosts_queue(&hosts, a, 20);
    assert_null(hosts_next(&hosts, 100, &next_us));
    hosts_set_busy(&hosts, a, false);
    hosts_queue(&hosts, a, 20);
    assert_ptr_equal(hosts_next(&hosts, 100, &next_us), a);
    hosts_done(&hosts);
}

static void idle_hosts_are_remembered_up_to_a_number(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lane;
    char name[32];
    hosts_init(&hosts, 1);
    for (int i = 0; i < HOSTS_IDLE_MAX + 100; i++) {
        snprintf(name, sizeof name, "host-%d", i);
        struct host *host = add(&hosts, name, &lane);
        host->pace.bad_count = 7;
        assert_non_null(host_trap(host));
        hosts_remove_lane(&hosts, lane.owner);
    }
    assert_int_equal(hosts.map.count, HOSTS_IDLE_MAX);
    assert_int_equal(hosts_get(&hosts, BYTES("host-50"))->pace.bad_count, 0);   /* forgotten, a new one */
    assert_int_equal(hosts_get(&hosts, BYTES("host-4000"))->pace.bad_count, 7); /* remembered */
    hosts_done(&hosts);
}

static void a_stale_entry_outlives_no_host(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lane;
    uint64_t next_us;
    char name[32];
    hosts_init(&hosts, 1);
    for (int i = 0; i < HOSTS_IDLE_MAX + 100; i++) {
        snprintf(name, sizeof name, "host-%d", i);
        struct host *host = add(&hosts, name, &lane);
        hosts_queue(&hosts, host, 100);
        hosts_remove_lane(&hosts, lane.owner);
    }
    assert_null(hosts_next(&hosts, 1000, &next_us)); /* ASan looks on */
    hosts_done(&hosts);
}

static void the_lanes_of_a_campaign_go_with_it(void **state) {
    (void)state;
    struct hosts hosts;
    struct frontier_lane lanes[2];
    struct campaign *one = (struct campaign *)&lanes[0]; /* only compared */
    struct campaign *two = (struct campaign *)&lanes[1];
    uint64_t next_us;
    hosts_init(&hosts, 1);
    struct host *a = hosts_get(&hosts, BYTES("a"));
    struct host *b = hosts_get(&hosts, BYTES("b"));
    assert_int_equal(hosts_add_lane(&hosts, a, one, &lanes[0]), ERR_OK);
    assert_int_equal(hosts_add_lane(&hosts, a, two, &lanes[1]), ERR_OK);
    assert_int_equal(hosts_add_lane(&hosts, b, one, &lanes[0]), ERR_OK);
    hosts_queue(&hosts, a, 1);
    hosts_queue(&hosts, b, 1);
    hosts_remove_campaign(&hosts, one);
    assert_true(a->lanes != NULL && a->lanes->next == NULL && a->lanes->campaign == two);
    assert_true(b->lanes == NULL && b->is_idle);
    assert_ptr_equal(hosts_next(&hosts, 5, &next_us), a);
    assert_null(hosts_next(&hosts, 5, &next_us));
    hosts_done(&hosts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_come_out_when_their_time_has_come),
        cmocka_unit_test(a_host_is_queued_once_at_its_latest_word),
        cmocka_unit_test(busy_hosts_are_not_queued),
        cmocka_unit_test(idle_hosts_are_remembered_up_to_a_number),
        cmocka_unit_test(a_stale_entry_outlives_no_host),
        cmocka_unit_test(the_lanes_of_a_campaign_go_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

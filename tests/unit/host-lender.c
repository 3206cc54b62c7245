/* host_lender - one lease at a time, first come, first served, with the pace that the last one left. */
#include "crawl/engine/host_lender.h"

#include <stdio.h>
#include <stdlib.h>

#include "crawl/rules/pace.h"
#include "unit.h"

static const uint64_t SECOND = 1000000;
static const int64_t WALL = INT64_C(1700000000000000);

/* The hosts here have no lanes. */
void frontier_lane_set_owner(struct frontier_lane *lane, void *owner) {
    (void)lane;
    (void)owner;
}

struct admin_pages {
    struct hosts hosts;
    struct host_lender host_lender;
    struct pace_config config;
    struct host *host;
    uint64_t now_us;
    struct host_lender_grant grant;
};

static void know_robots(struct admin_pages *admin_pages, struct host *host, const char *text) {
    struct host_robots *known = &host->robots[0];
    known->state = HOST_ROBOTS_KNOWN;
    known->until_us = WALL + 3600 * (int64_t)SECOND;
    assert_int_equal(robots_parse(&known->robots, bytes_of_string(text), BYTES("mnemon")), ERR_OK);
    assert_true(hosts_keep_text(&admin_pages->hosts, known, bytes_of_string(text)));
    memset(known->digest, 7, PERMIT_DIGEST_SIZE);
}

static int set_up(void **state) {
    struct admin_pages *admin_pages = calloc(1, sizeof *admin_pages);
    if (admin_pages == NULL) {
        return -1;
    }
    hosts_init(&admin_pages->hosts, 1);
    host_lender_init(&admin_pages->host_lender, &admin_pages->hosts, 100);
    admin_pages->config = pace_defaults;
    admin_pages->now_us = 100 * SECOND;
    admin_pages->host = hosts_get(&admin_pages->hosts, BYTES("example.org"));
    know_robots(admin_pages, admin_pages->host, "User-agent: *\nDisallow: /x\n");
    *state = admin_pages;
    return 0;
}

static int tear_down(void **state) {
    struct admin_pages *admin_pages = *state;
    host_lender_done(&admin_pages->host_lender);
    hosts_done(&admin_pages->hosts);
    free(admin_pages);
    return 0;
}

static struct peer peer_of(unsigned number) {
    struct peer peer = {0};
    memcpy(peer.key, &number, sizeof number);
    return peer;
}

static enum err ask(struct admin_pages *admin_pages, unsigned number) {
    struct host_lender_borrower borrower = {.peer = peer_of(number)};
    return host_lender_ask(&admin_pages->host_lender, admin_pages->host, &borrower, 0, admin_pages->now_us);
}

static enum host_lender_verdict next(struct admin_pages *admin_pages) {
    return host_lender_next(&admin_pages->host_lender, admin_pages->host, &admin_pages->config,
                            admin_pages->now_us, WALL, &admin_pages->grant);
}

static bool is_lent_to(struct admin_pages *admin_pages, unsigned number) {
    struct peer peer = peer_of(number);
    return next(admin_pages) == HOST_LENDER_GRANTED &&
           memcmp(admin_pages->grant.borrower.key, peer.key, PEER_KEY_SIZE) == 0;
}

static void take_back(struct admin_pages *admin_pages, unsigned number, const struct pace *pace,
                      uint32_t count) {
    struct peer peer = peer_of(number);
    host_lender_take_back(admin_pages->host, &peer, admin_pages->host_lender.number, pace, count,
                          &admin_pages->config, admin_pages->now_us);
}

static void give_back_unused(struct admin_pages *admin_pages, unsigned number) {
    struct pace pace;
    pace_init(&pace);
    take_back(admin_pages, number, &pace, 0);
}

/* ---- the line ---- */

static void one_at_a_time_and_in_turn(void **state) {
    struct admin_pages *admin_pages = *state;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(ask(admin_pages, i), ERR_OK);
    }
    assert_int_equal(ask(admin_pages, 1), ERR_OK); /* who asks again keeps its place */
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 1; i <= 3; i++) {
            assert_true(is_lent_to(admin_pages, i));
            assert_int_equal(next(admin_pages), HOST_LENDER_LENT);
            assert_int_equal(ask(admin_pages, i), ERR_OK); /* at the end of the line */
            give_back_unused(admin_pages, i);
        }
    }
}

static void nobody_waits_nothing_is_kept(void **state) {
    struct admin_pages *admin_pages = *state;
    assert_int_equal(next(admin_pages), HOST_LENDER_NOBODY);
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    assert_false(admin_pages->host->is_idle);
    give_back_unused(admin_pages, 1);
    assert_int_equal(next(admin_pages), HOST_LENDER_NOBODY);
    assert_null(admin_pages->host->book);
    assert_true(admin_pages->host->is_idle);
    assert_int_equal(admin_pages->host_lender.books_count, 0);
    assert_int_equal(admin_pages->host_lender.borrowers_count, 0);
}

static void who_went_away_is_skipped(void **state) {
    struct admin_pages *admin_pages = *state;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    admin_pages->now_us += HOST_LENDER_STALE_US / 2;
    assert_int_equal(ask(admin_pages, 2), ERR_OK);
    admin_pages->now_us += HOST_LENDER_STALE_US / 2 + 1;
    assert_true(is_lent_to(admin_pages, 2));
}

static void the_line_is_bounded(void **state) {
    struct admin_pages *admin_pages = *state;
    for (unsigned i = 0; i < HOST_LENDER_BORROWERS_MAX; i++) {
        assert_int_equal(ask(admin_pages, i), ERR_OK);
    }
    assert_int_equal(ask(admin_pages, HOST_LENDER_BORROWERS_MAX), ERR_LIMIT);
    assert_int_equal(ask(admin_pages, 0), ERR_OK); /* in line already */
    admin_pages->host_lender.books_count = HOST_LENDER_BOOKS_MAX;
    struct host *first = admin_pages->host;
    admin_pages->host = hosts_get(&admin_pages->hosts, BYTES("example.net"));
    assert_int_equal(ask(admin_pages, 1), ERR_LIMIT);
    admin_pages->host_lender.books_count = 1;
    admin_pages->host_lender.borrowers_count = HOST_LENDER_BORROWERS_ALL;
    assert_int_equal(ask(admin_pages, 1), ERR_LIMIT);
    assert_null(admin_pages->host->book);
    admin_pages->host_lender.borrowers_count = HOST_LENDER_BORROWERS_MAX;
    admin_pages->host = first;
}

/* ---- when ---- */

static void robots_come_first(void **state) {
    struct admin_pages *admin_pages = *state;
    struct host_robots *known = &admin_pages->host->robots[0];
    known->state = HOST_ROBOTS_UNKNOWN;
    admin_pages->host->pace.next_us = admin_pages->now_us + SECOND;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_int_equal(next(admin_pages), HOST_LENDER_LATER); /* robots.txt is a request too */
    assert_int_equal(admin_pages->grant.wait_us, SECOND);
    admin_pages->now_us += SECOND;
    assert_int_equal(next(admin_pages), HOST_LENDER_ROBOTS);
    assert_false(admin_pages->grant.is_https);
    hosts_set_busy(&admin_pages->hosts, admin_pages->host, true);
    assert_int_equal(next(admin_pages), HOST_LENDER_BUSY);
    hosts_set_busy(&admin_pages->hosts, admin_pages->host, false);
    know_robots(admin_pages, admin_pages->host, "User-agent: *\nDisallow: /y\n");
    assert_true(is_lent_to(admin_pages, 1));
    assert_true(admin_pages->grant.lease.robots.has_text);
    assert_bytes_equal(admin_pages->grant.lease.robots.text, BYTES("User-agent: *\nDisallow: /y\n"));
}

static void a_text_that_is_known_is_not_sent(void **state) {
    struct admin_pages *admin_pages = *state;
    struct host_lender_borrower borrower = {.peer = peer_of(1)};
    memset(borrower.digest, 7, PERMIT_DIGEST_SIZE);
    assert_int_equal(
        host_lender_ask(&admin_pages->host_lender, admin_pages->host, &borrower, 0, admin_pages->now_us),
        ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    assert_false(admin_pages->grant.lease.robots.has_text);
    assert_int_equal(admin_pages->grant.lease.robots.policy, ROBOTS_OBEY);
}

/* We knew its rules as a borrower; to lend it, the text is needed. */
static void rules_without_their_text_are_asked_for_again(void **state) {
    struct admin_pages *admin_pages = *state;
    hosts_drop_text(&admin_pages->hosts, &admin_pages->host->robots[0]);
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_int_equal(next(admin_pages), HOST_LENDER_ROBOTS);
}

static void a_new_home_waits(void **state) {
    struct admin_pages *admin_pages = *state;
    struct host_lender_borrower borrower = {.peer = peer_of(1)};
    uint64_t since_us = admin_pages->now_us - SECOND;
    assert_int_equal(host_lender_ask(&admin_pages->host_lender, admin_pages->host, &borrower, since_us,
                                     admin_pages->now_us),
                     ERR_OK);
    assert_int_equal(next(admin_pages), HOST_LENDER_LATER);
    assert_int_equal(admin_pages->grant.wait_us, HOST_LENDER_NEW_US - SECOND);
    admin_pages->now_us += HOST_LENDER_NEW_US - SECOND;
    assert_true(is_lent_to(admin_pages, 1));
}

static void all_leases_of_an_old_home_have_run_out_when_the_new_one_begins(void **state) {
    (void)state;
    assert_true(HOST_LENDER_AHEAD_US + HOST_LENDER_TIME_US < HOST_LENDER_NEW_US);
}

static void a_host_is_lent_shortly_before_its_time(void **state) {
    struct admin_pages *admin_pages = *state;
    admin_pages->host->pace.next_us = admin_pages->now_us + HOST_LENDER_AHEAD_US + SECOND;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_int_equal(next(admin_pages), HOST_LENDER_LATER);
    admin_pages->now_us += SECOND;
    assert_true(is_lent_to(admin_pages, 1));
    assert_int_equal(admin_pages->grant.lease.pace.next_us, admin_pages->now_us + HOST_LENDER_AHEAD_US);
    assert_int_equal(admin_pages->grant.lease.until_us,
                     admin_pages->now_us + HOST_LENDER_AHEAD_US + HOST_LENDER_TIME_US);
}

static void long_rests_are_for_one_request(void **state) {
    struct admin_pages *admin_pages = *state;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    assert_int_equal(admin_pages->grant.lease.requests_max, HOST_LENDER_REQUESTS_MAX);
    give_back_unused(admin_pages, 1);
    pace_set_crawl_delay(&admin_pages->host->pace, &admin_pages->config, 3 * SECOND);
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    assert_int_equal(admin_pages->grant.lease.requests_max, 1);
}

/* ---- the end of a lease ---- */

static void what_is_not_given_back_ends_and_counts_as_just_asked(void **state) {
    struct admin_pages *admin_pages = *state;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    admin_pages->now_us = admin_pages->grant.lease.until_us + HOST_LENDER_GRACE_US;
    assert_int_equal(ask(admin_pages, 2), ERR_OK);
    host_lender_expire(admin_pages->host, &admin_pages->config, admin_pages->now_us);
    assert_int_equal(next(admin_pages), HOST_LENDER_LENT);
    admin_pages->now_us++;
    host_lender_expire(admin_pages->host, &admin_pages->config, admin_pages->now_us);
    uint64_t number = admin_pages->host_lender.number;
    assert_true(is_lent_to(admin_pages, 2));
    assert_int_equal(admin_pages->grant.lease.pace.next_us,
                     admin_pages->now_us + admin_pages->config.delay_min_us);
    /* The first one comes late: the second keeps its lease. */
    struct peer late = peer_of(1);
    struct pace pace;
    pace_init(&pace);
    host_lender_take_back(admin_pages->host, &late, number, &pace, 1, &admin_pages->config,
                          admin_pages->now_us);
    assert_int_equal(next(admin_pages), HOST_LENDER_LENT);
}

static void waits_count_for_the_next(void **state) {
    struct admin_pages *admin_pages = *state;
    struct pace pace = {
        .next_us = admin_pages->now_us + 60 * SECOND, .bad_count = 3, .reason = PACE_RETRY_AFTER};
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_int_equal(ask(admin_pages, 2), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    take_back(admin_pages, 1, &pace, 1);
    assert_int_equal(next(admin_pages), HOST_LENDER_LATER);
    assert_int_equal(admin_pages->grant.wait_us, 60 * SECOND);
    assert_int_equal(admin_pages->host->pace.reason, PACE_RETRY_AFTER);
    assert_int_equal(admin_pages->host->pace.bad_count, 3);
}

static void a_pace_in_the_past_is_believed_as_far_as_the_rules_allow(void **state) {
    struct admin_pages *admin_pages = *state;
    struct pace pace;
    pace_init(&pace);
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    take_back(admin_pages, 1, &pace, 3);
    assert_int_equal(admin_pages->host->pace.next_us,
                     admin_pages->now_us + 3 * admin_pages->config.delay_min_us);
    /* More than were allowed count as those. */
    admin_pages->now_us += 10 * SECOND;
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    take_back(admin_pages, 1, &pace, PERMIT_REQUESTS_MAX);
    assert_int_equal(admin_pages->host->pace.next_us,
                     admin_pages->now_us + HOST_LENDER_REQUESTS_MAX * admin_pages->config.delay_min_us);
}

static void waits_are_bounded_and_death_is_not_hearsay(void **state) {
    struct admin_pages *admin_pages = *state;
    struct pace pace = {.next_us = UINT64_MAX - 1, .reason = PACE_BACKOFF};
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    take_back(admin_pages, 1, &pace, 1);
    assert_int_equal(admin_pages->host->pace.next_us,
                     admin_pages->now_us + admin_pages->config.retry_after_max_us);
    admin_pages->now_us = admin_pages->host->pace.next_us;
    pace = (struct pace){.next_us = UINT64_MAX, .reason = PACE_DEAD, .bad_count = 5, .failures_count = 5};
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    assert_true(is_lent_to(admin_pages, 1));
    take_back(admin_pages, 1, &pace, 1);
    assert_false(pace_is_dead(&admin_pages->host->pace));
    assert_int_equal(admin_pages->host->pace.failures_count, admin_pages->config.failures_max - 1);
    assert_true(admin_pages->host->pace.next_us >=
                admin_pages->now_us + 16 * admin_pages->config.backoff_min_us);
}

/* A home that is new hears from the last borrower of the old one. */
static void a_stranger_can_only_make_it_wait(void **state) {
    struct admin_pages *admin_pages = *state;
    struct peer stranger = peer_of(9);
    struct pace pace = {.next_us = admin_pages->now_us + 30 * SECOND, .reason = PACE_CRAWL_DELAY};
    host_lender_take_back(admin_pages->host, &stranger, 1, &pace, 1, &admin_pages->config,
                          admin_pages->now_us);
    assert_int_equal(admin_pages->host->pace.next_us, admin_pages->now_us + 30 * SECOND);
    pace.next_us = 0;
    host_lender_take_back(admin_pages->host, &stranger, 1, &pace, 1, &admin_pages->config,
                          admin_pages->now_us);
    assert_int_equal(admin_pages->host->pace.next_us, admin_pages->now_us + 30 * SECOND);
}

static void texts_of_idle_hosts_go_first(void **state) {
    struct admin_pages *admin_pages = *state;
    struct host *idle = hosts_get(&admin_pages->hosts, BYTES("idle.example"));
    know_robots(admin_pages, idle, "User-agent: *\n");
    hosts_rest(&admin_pages->hosts, idle);
    assert_int_equal(ask(admin_pages, 1), ERR_OK);
    size_t others_size = HOSTS_TEXTS_SIZE_MAX - admin_pages->hosts.texts_size;
    admin_pages->hosts.texts_size += others_size;
    struct host *host = hosts_get(&admin_pages->hosts, BYTES("new.example"));
    assert_true(hosts_keep_text(&admin_pages->hosts, &host->robots[0], BYTES("short")));
    assert_false(idle->robots[0].has_text);
    assert_int_equal(idle->robots[0].state, HOST_ROBOTS_UNKNOWN);
    assert_true(admin_pages->host->robots[0].has_text);
    assert_false(hosts_keep_text(&admin_pages->hosts, &host->robots[1], BYTES("nothing more is idle here")));
    admin_pages->hosts.texts_size -= others_size;
}

/* ---- on the way ---- */

static void a_pace_travels(void **state) {
    (void)state;
    uint8_t memory[PACE_CODE_SIZE_MAX];
    struct pace paces[] = {
        {.reason = PACE_READY},
        {.next_us = 150 * SECOND, .reason = PACE_CRAWL_DELAY, .crawl_delay_us = 60 * SECOND},
        {.next_us = UINT64_MAX, .reason = PACE_DEAD, .failures_count = UINT16_MAX, .bad_count = 32},
        {.next_us = 101 * SECOND,
         .answer_us = 600 * SECOND,
         .last_status = 999,
         .is_crawl_delay_cut = true,
         .is_robots_waiting = true,
         .reason = PACE_ROBOTS},
    };
    for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
        struct wire_writer writer;
        struct wire_reader reader;
        struct bytes message;
        struct pace read;
        wire_writer_init(&writer, memory, sizeof memory);
        pace_write(&paces[i], 100 * SECOND, &writer);
        assert_int_equal(wire_writer_finish(&writer, &message), ERR_OK);
        wire_reader_init(&reader, message);
        pace_read(&reader, 500 * SECOND, &read);
        assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        uint64_t next_us = paces[i].next_us < 100 * SECOND ? 500 * SECOND : paces[i].next_us + 400 * SECOND;
        assert_int_equal(read.next_us, pace_is_dead(&paces[i]) ? UINT64_MAX : next_us);
        assert_int_equal(read.answer_us, paces[i].answer_us);
        assert_int_equal(read.crawl_delay_us, paces[i].crawl_delay_us);
        assert_int_equal(read.bad_count, paces[i].bad_count);
        assert_int_equal(read.failures_count, paces[i].failures_count);
        assert_int_equal(read.last_status, paces[i].last_status);
        assert_int_equal(read.is_crawl_delay_cut, paces[i].is_crawl_delay_cut);
        assert_int_equal(read.is_robots_waiting, paces[i].is_robots_waiting);
        assert_int_equal(read.reason, paces[i].reason);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_at_a_time_and_in_turn),
        TEST(nobody_waits_nothing_is_kept),
        TEST(who_went_away_is_skipped),
        TEST(the_line_is_bounded),
        TEST(robots_come_first),
        TEST(a_text_that_is_known_is_not_sent),
        TEST(rules_without_their_text_are_asked_for_again),
        TEST(a_new_home_waits),
        TEST(all_leases_of_an_old_home_have_run_out_when_the_new_one_begins),
        TEST(a_host_is_lent_shortly_before_its_time),
        TEST(long_rests_are_for_one_request),
        TEST(what_is_not_given_back_ends_and_counts_as_just_asked),
        TEST(waits_count_for_the_next),
        TEST(a_pace_in_the_past_is_believed_as_far_as_the_rules_allow),
        TEST(waits_are_bounded_and_death_is_not_hearsay),
        TEST(a_stranger_can_only_make_it_wait),
        TEST(texts_of_idle_hosts_go_first),
        TEST(a_pace_travels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

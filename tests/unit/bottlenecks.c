/* why: what holds a node up is said from what was measured, and nothing where nothing does. */
#include "node/admin/bottlenecks.h"

#include <string.h>

#include "node/admin/status.h"
#include "unit.h"

struct fixture {
    struct sample before;
    struct sample now;
    struct sample_volumes volumes;
    struct bottlenecks_facts facts;
};

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){.before = {.at_us = 1000000}, .now = {.at_us = 11000000}};
    fixture->volumes.count = 1;
    fixture->volumes.items[0] = (struct node_status_volume){
        .volume = {.number = 3, .is_writable = true, .place = "/somewhere"},
        .has_disk = true,
        .free_size = UINT64_C(1) << 40,
        .disk_size = UINT64_C(1) << 41,
    };
    fixture->facts = (struct bottlenecks_facts){.now = &fixture->now,
                                                .before = &fixture->before,
                                                .volumes = &fixture->volumes,
                                                .processors_count = 2};
}

/* The sentences are exactly one of this kind, with this in it; none where what is NULL. */
static void expect(const struct fixture *fixture, const char *what, const char *part) {
    struct arena arena;
    struct node_status_sentence *sentences;
    arena_init(&arena, 1 << 16);
    size_t count = bottlenecks_find(&fixture->facts, &arena, &sentences);
    assert_int_equal(count, what != NULL ? 1 : 0);
    if (what != NULL) {
        assert_string_equal(sentences[0].about, what);
        if (strstr(sentences[0].text, part) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", part, sentences[0].text);
        }
    }
    arena_done(&arena);
}

static void nothing_is_said_where_nothing_is_slow(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.now.load = (struct volume_load){.groups_count = 100, .documents_count = 900, .sync_us = 500000};
    fixture.now.has_search = true;
    expect(&fixture, NULL, NULL);
}

static void volumes_that_are_down_or_nearly_full_are_named(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.volumes.items[0].volume.err = ERR_UNREACHABLE;
    strcpy(fixture.volumes.items[0].volume.reason, "no \"route\"");
    expect(&fixture, "volume", "Volume 3 (/somewhere) is down: no \"route\"");
    begin(&fixture);
    fixture.volumes.items[0].free_size = 300000000;
    expect(&fixture, "space", "300 MB are free");
}

static void a_quota_that_is_nearly_used_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.now.quota_size = 100000000;
    fixture.now.used_size = 94000000;
    expect(&fixture, NULL, NULL);
    fixture.now.used_size = 97500000;
    expect(&fixture, "quota", "The quota of disk is nearly used: 97.5 MB of 100 MB (node.disk).");
}

static void a_full_queue_means_that_the_disk_is_the_limit(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.now.queue_percent = 90;
    fixture.now.load = (struct volume_load){
        .groups_count = 10, .documents_count = 500, .commit_us = 400000, .sync_us = 300000};
    expect(&fixture, "disk",
           "90 % full; a commit takes 40.0 ms, 30.0 ms of it the sync, and makes 50 documents durable");
    begin(&fixture);
    fixture.now.load = (struct volume_load){.groups_count = 2, .sync_us = 500000};
    expect(&fixture, "disk", "needs 250 ms");
    fixture.now.load = (struct volume_load){.err = ERR_NO_SPACE};
    expect(&fixture, "disk", "The last commit failed");
    begin(&fixture);
    fixture.now.crawl.hold = CRAWLER_DISK_FULL;
    expect(&fixture, "disk", "The crawl waits");
}

static void a_crawl_that_waits_for_its_hosts_says_for_which(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.now.urls_waiting_count = 70;
    fixture.now.crawl = (struct crawler_stat){.hosts_count = 3, .hosts_waiting_count = 2, .running_count = 1};
    fixture.facts.waiting = BYTES("a.example: Retry-After until 12:03");
    expect(&fixture, "pace",
           "2 of 3 are waited for, with 70 URLs to come – a.example: Retry-After until 12:03.");
    fixture.now.crawl.hosts_count = 10; /* the others could be asked */
    expect(&fixture, NULL, NULL);
}

static void the_rest_is_named_too(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    fixture.now.compactions_count = 2;
    expect(&fixture, "compaction", "(2 at once)");
    begin(&fixture);
    fixture.now.has_search = true;
    fixture.now.search.left_count = 5000;
    expect(&fixture, "search", "5000 captures");
    strcpy(fixture.now.search.error, "the disk is full");
    expect(&fixture, "search", "reads nothing: the disk is full");
    begin(&fixture);
    fixture.now.delays[HTTP_DELAYS_COUNT - 1] = 10;
    expect(&fixture, "http", "Answers are slow");
    begin(&fixture);
    fixture.now.refused_count = 4;
    expect(&fixture, "http", "4 requests were refused");
    begin(&fixture);
    fixture.now.cpu_us = 19000000;
    expect(&fixture, "processor", "190 % of 2");
}

static void delays_are_read_from_the_buckets_between(void **state) {
    (void)state;
    struct sample before = {.delays = {100, 0, 0}};
    struct sample now = {.delays = {100, 0, 0}};
    assert_true(sample_delay_ms(&now, &before, 500) == 0);
    now.delays[0] += 50; /* up to 0.1 ms */
    now.delays[3] += 50; /* 0.5 to 1 ms */
    assert_true(sample_delay_ms(&now, &before, 500) == 0.1);
    double p99 = sample_delay_ms(&now, &before, 990);
    assert_true(p99 > 0.9 && p99 <= 1.0);
}

static void routes_have_short_names(void **state) {
    (void)state;
    assert_bytes_equal(status_page_of("/"), BYTES("start"));
    assert_bytes_equal(status_page_of("/web/*"), BYTES("web"));
    assert_bytes_equal(status_page_of("/web*"), BYTES("web"));
    assert_bytes_equal(status_page_of("/cdx/search/cdx"), BYTES("cdx"));
    assert_bytes_equal(status_page_of("/api/v1/jobs/*"), BYTES("api"));
    assert_bytes_equal(status_page_of("/api/v1/volumes/*"), BYTES("volumes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_where_nothing_is_slow),
        cmocka_unit_test(volumes_that_are_down_or_nearly_full_are_named),
        cmocka_unit_test(a_quota_that_is_nearly_used_is_told),
        cmocka_unit_test(a_full_queue_means_that_the_disk_is_the_limit),
        cmocka_unit_test(a_crawl_that_waits_for_its_hosts_says_for_which),
        cmocka_unit_test(the_rest_is_named_too),
        cmocka_unit_test(delays_are_read_from_the_buckets_between),
        cmocka_unit_test(routes_have_short_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* instance, scrub, damage: what is damaged on one of several volumes is found in time, listed and replaced.
 */
#include "instance-fixture.h"
#include "store/instance/record.h"
#include "store/instance/twins.h"

#include "clock-manual.h"
#include "store/instance/scrub.h"
#include "store/volume/compact.h"
#include "store/volume/segment.h"
#include "store/volume/verify.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"

static struct document document_of(const char *url, int64_t seconds, const char *body) {
    return (struct document){
        .url = bytes_of_string(url),
        .time_us = seconds * FIXTURE_SECOND_US,
        .head = BYTES(HEAD),
        .body = bytes_of_string(body),
    };
}

/* One bit in the middle of a record. */
static void flip(struct fixture *fixture, const struct stored *stored) {
    char name[SEGMENT_NAME_SIZE_MAX];
    char path[SCRATCH_PATH_SIZE];
    size_t index = instance_find_volume(fixture->instance, stored->key.volume);
    scratch_path(fixture->disks[index], segment_name(stored->location.segment, PACK_ZSTD, name), path);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, (long)(stored->location.offset + stored->location.length / 2), SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static bool repair(struct fixture *fixture, const struct key *key, const struct document *document) {
    bool is_repaired = false;
    struct err_detail detail = {0};
    enum err err = instance_repair(fixture->session, key, document, &is_repaired, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return is_repaired;
}

static size_t captures_count(struct fixture *fixture) {
    struct merge *merge;
    struct capture capture;
    size_t count = 0;
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        count++;
    }
    merge_close(merge);
    return count;
}

static void expect_sound(struct fixture *fixture) {
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        struct instance_volume volume;
        struct verify_report report;
        instance_volume(fixture->instance, i, &volume);
        assert_int_equal(verify_volume(volume.volume, &(struct verify_observer){0}, &report, NULL), ERR_OK);
        assert_int_equal(report.damaged_count + report.lost_count + report.captures_count, 0);
    }
}

/* ---- instance ---- */

static void a_capture_leaves_the_volume_that_has_it(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = fixture_capture(fixture, "http://example.org/a", 1, "page", 3);
    fixture_capture(fixture, "http://example.org/b", 2, "page", 3);
    struct capture capture = {
        .volume = 3,
        .surt = BYTES("org,example)/a"),
        .url = BYTES("http://example.org/a"),
        .time_us = FIXTURE_SECOND_US,
    };
    memcpy(capture.digest, stored.key.digest, sizeof capture.digest);
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_OK);
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_NOT_FOUND);
    assert_int_equal(captures_count(fixture), 1);
    fixture_expect(fixture, &stored.key, "page");
    capture.volume = 5;
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_NOT_FOUND);
    fixture_reopen(fixture);
    assert_int_equal(captures_count(fixture), 1);
}

static void each_volume_is_repaired_where_it_is_damaged(void **state) {
    struct fixture *fixture = *state;
    struct stored stored[FIXTURE_VOLUMES_COUNT];
    char url[64];
    char body[32];
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        snprintf(body, sizeof body, "page %zu", i);
        stored[i] = fixture_capture(fixture, url, 1, body, fixture_numbers[i]);
        snprintf(body, sizeof body, "behind %zu", i);
        fixture_capture(fixture, "http://example.org/behind", 1, body, fixture_numbers[i]);
        flip(fixture, &stored[i]);
    }
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        snprintf(body, sizeof body, "page %zu", i);
        struct document document = document_of(url, 1, body);
        assert_true(repair(fixture, &stored[i].key, &document));
        fixture_expect(fixture, &stored[i].key, body);
    }
    expect_sound(fixture);
    fixture_close(fixture);
    fixture->config.volume.is_rebuilding = true;
    fixture_open(fixture);
    expect_sound(fixture);
    assert_int_equal(captures_count(fixture), 2 * FIXTURE_VOLUMES_COUNT);
}

/* A revisit on one volume whose document is on another: made by taking the original out of the first. */
static void a_document_on_another_volume_is_repaired_there(void **state) {
    struct fixture *fixture = *state;
    struct document original = document_of("http://example.org/", 1, "page");
    struct stored there = fixture_put_document(fixture, &original, STORE_REGULAR, 7);
    struct instance_volume volume;
    struct stored here;
    struct stored revisit;
    instance_volume(fixture->instance, 0, &volume);
    struct volume_writer *writer = volume_writer_new(volume.volume);
    struct document again = document_of("http://example.org/again", 2, "page");
    assert_int_equal(volume_put(writer, &original, STORE_REGULAR, &here, NULL), ERR_OK);
    assert_int_equal(volume_put(writer, &again, STORE_REGULAR, &revisit, NULL), ERR_OK);
    volume_writer_free(writer);
    flip(fixture, &here); /* volume 0 forgets it with its index, and keeps the revisit */
    fixture_close(fixture);
    fixture->config.volume.is_rebuilding = true;
    fixture_open(fixture);
    fixture_capture(fixture, "http://example.org/behind", 1, "behind", 7);
    flip(fixture, &there);
    flip(fixture, &revisit);
    assert_true(repair(fixture, &revisit.key, &again));
    assert_false(repair(fixture, &revisit.key, &again));
    fixture_expect(fixture, &there.key, "page");
    fixture_expect(fixture, &revisit.key, "page");
}

static void volume_servers_see_to_themselves(void **state) {
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture_connect(fixture, "[volume-9]\nurl = \"http://127.0.0.1:1\"\ntoken = \"x\"\n");
    fixture_open(fixture);
    struct capture capture = {
        .volume = 9, .surt = BYTES("org,example)/"), .url = BYTES("http://example.org/")};
    struct key key = {.volume = 9};
    struct document document = document_of("http://example.org/", 1, "page");
    bool is_repaired;
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_UNSUPPORTED);
    assert_int_equal(instance_repair(fixture->session, &key, &document, &is_repaired, NULL), ERR_UNSUPPORTED);
}

/* ---- scrub ---- */

enum { SEEN_MAX = 32 };

struct seen {
    size_t count;
    char urls[SEEN_MAX][64];
    uint16_t volumes[SEEN_MAX];
};

static void see(void *context, const struct capture *capture) {
    struct seen *seen = context;
    assert_true(seen->count < SEEN_MAX);
    seen->volumes[seen->count] = capture->volume;
    snprintf(seen->urls[seen->count++], 64, "%.*s", (int)capture->url.size, (const char *)capture->url.data);
}

struct watch {
    struct clock_manual clock;
    struct seen seen;
    struct scrub *scrub;
};

static void start(struct fixture *fixture, struct watch *watch) {
    char path[SCRATCH_PATH_SIZE];
    struct scrub_config config = {
        .instance = fixture->instance,
        .path = scratch_path(fixture->root, "scrub", path),
        .visit = see,
        .context = &watch->seen,
        .clock = &watch->clock.clock,
    };
    assert_int_equal(scrub_open(&config, &watch->scrub, NULL), ERR_OK);
}

/* To the end of the pass; how long that took by the clock. */
static uint64_t run_pass(struct watch *watch) {
    struct scrub_stat stat;
    uint64_t sum_us = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t wait_us;
        assert_int_equal(scrub_run(watch->scrub, &wait_us, NULL), ERR_OK);
        scrub_stat(watch->scrub, &stat);
        if (stat.is_through) {
            return sum_us;
        }
        sum_us += wait_us;
        clock_manual_advance(&watch->clock, wait_us);
    }
    fail_msg("the pass does not end");
    return 0;
}

static void scrubbing_finds_what_is_damaged_at_its_pace(void **state) {
    struct fixture *fixture = *state;
    struct watch watch = {0};
    enum { LARGE_SIZE = 1 << 20, LARGE_COUNT = 6 };
    char *body = malloc(LARGE_SIZE + 1);
    uint32_t random = 1;
    for (size_t i = 0; i < LARGE_SIZE; i++) {
        random = random * 1664525 + 1013904223;
        body[i] = (char)(1 + random % 255 % 127 + (random >> 31));
    }
    body[LARGE_SIZE] = '\0';
    struct stored stored[LARGE_COUNT];
    char url[64];
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        body[0] = (char)('a' + i);
        stored[i] = fixture_capture(fixture, url, 1, body, fixture_numbers[i % 2]);
    }
    fixture_capture(fixture, "http://example.org/behind", 1, "behind 0", fixture_numbers[0]);
    fixture_capture(fixture, "http://example.org/behind", 1, "behind 1", fixture_numbers[1]);
    flip(fixture, &stored[0]);
    flip(fixture, &stored[3]);
    clock_manual_init(&watch.clock, 1000000000);
    start(fixture, &watch);
    uint64_t wait_us;
    assert_int_equal(scrub_run(watch.scrub, &wait_us, NULL), ERR_OK);
    assert_int_equal(scrub_run(watch.scrub, &wait_us, NULL), ERR_OK);
    struct scrub_stat before;
    scrub_stat(watch.scrub, &before);
    assert_true(before.done_size > 0 && before.done_size < before.all_size);
    scrub_close(watch.scrub); /* and goes on there */
    start(fixture, &watch);
    struct scrub_stat stat;
    scrub_stat(watch.scrub, &stat);
    assert_int_equal(stat.done_size, before.done_size);
    uint64_t us = run_pass(&watch);
    scrub_stat(watch.scrub, &stat);
    uint64_t rate = (stat.done_size - before.done_size) * 1000000 / us;
    assert_in_range(rate, SCRUB_RATE_MIN * 9 / 10, SCRUB_RATE_MIN * 11 / 10);
    assert_true(stat.done_size >= stat.all_size);
    assert_int_equal(watch.seen.count, 2);
    assert_int_equal(watch.seen.volumes[0] + watch.seen.volumes[1], fixture_numbers[0] + fixture_numbers[1]);
    /* Then it rests until the month is over, and finds nothing where it was repaired. */
    assert_int_equal(scrub_run(watch.scrub, &wait_us, NULL), ERR_OK);
    assert_true(wait_us > 1000000);
    body[0] = 'a';
    struct document document = document_of("http://example.org/0", 1, body);
    assert_true(repair(fixture, &stored[0].key, &document));
    body[0] = 'a' + 3;
    document = document_of("http://example.org/3", 1, body);
    assert_true(repair(fixture, &stored[3].key, &document));
    clock_manual_advance(&watch.clock, UINT64_C(31) * 24 * 3600 * 1000000);
    watch.seen.count = 0;
    run_pass(&watch);
    assert_int_equal(watch.seen.count, 0);
    scrub_stat(watch.scrub, &stat);
    assert_int_equal(stat.damaged_count, 0);
    scrub_close(watch.scrub);
    free(body);
}

static void scrubbing_names_a_document_whose_capture_is_gone(void **state) {
    struct fixture *fixture = *state;
    struct watch watch = {0};
    struct stored stored = fixture_capture(fixture, "http://example.org/a", 1, "page", 0);
    fixture_capture(fixture, "http://example.org/b", 2, "page", 0);
    struct capture capture = {
        .surt = BYTES("org,example)/a"), .url = BYTES("http://example.org/a"), .time_us = FIXTURE_SECOND_US};
    memcpy(capture.digest, stored.key.digest, sizeof capture.digest);
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_OK);
    flip(fixture, &stored);
    clock_manual_init(&watch.clock, 1000000000);
    start(fixture, &watch);
    run_pass(&watch);
    scrub_close(watch.scrub);
    assert_int_equal(watch.seen.count, 1);
    assert_string_equal(watch.seen.urls[0], "");
}

static void a_scrub_file_that_is_none_begins_a_pass(void **state) {
    struct fixture *fixture = *state;
    static const char *const texts[] = {
        "", "x", "1 2\n", "-1 0 0\n0 0 0\n", "1 2 3\n9999999 1 1\nx y z\n", "5 0 0\n0 99999 12345678\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct watch watch = {0};
        char path[SCRATCH_PATH_SIZE];
        fixture_write(scratch_path(fixture->root, "scrub", path), texts[i]);
        clock_manual_init(&watch.clock, INT64_C(40) * 24 * 3600 * 1000000);
        start(fixture, &watch);
        run_pass(&watch);
        scrub_close(watch.scrub);
    }
}

/* ---- the list ---- */

static void a_list_of_damage_is_read_back_once(void **state) {
    struct fixture *fixture = *state;
    struct seen seen = {0};
    struct buf list;
    char path[SCRATCH_PATH_SIZE];
    struct capture capture = {.volume = 7, .url = BYTES("http://example.org/a b"), .time_us = 1234567};
    scratch_path(fixture->root, "damaged", path);
    buf_init(&list, DAMAGE_LIST_SIZE_MAX);
    damage_put_line(&list, &capture);
    damage_put_line(&list, &(struct capture){.volume = 3});
    buf_put_string(&list, "rubbish\n1 2 zz 3 http://example.org/\n\n");
    buf_put_byte(&list, '\0');
    fixture_write(path, (const char *)list.data);
    buf_done(&list);
    assert_int_equal(damage_take(path, see, &seen, NULL), ERR_OK);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.urls[0], "http://example.org/a b");
    assert_int_equal(seen.volumes[0], 7);
    assert_string_equal(seen.urls[1], "");
    assert_int_equal(seen.volumes[1], 3);
    assert_int_equal(damage_take(path, see, &seen, NULL), ERR_OK);
    assert_int_equal(seen.count, 2);
}

/* ---- documents on two volumes ---- */

static struct twins_stat count_twins(struct fixture *fixture) {
    struct twins_stat stat;
    assert_int_equal(twins_count(fixture->session, UINT64_MAX, &stat, NULL), ERR_OK);
    return stat;
}

/* All captures of the fixture, each with the document; the record of the last. */
static size_t count_captures(struct fixture *fixture, const char *body, struct record *record) {
    struct merge *merge;
    struct capture capture;
    struct instance_session *reader = instance_session_new(fixture->instance);
    size_t count = 0;
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        struct key key;
        struct block block;
        count++;
        assert_int_equal(instance_locate(fixture->session, &capture, &key, &block, NULL), ERR_OK);
        fixture_expect(fixture, &key, body);
        assert_int_equal(record_read(record, reader, capture.volume, &capture.location, NULL), ERR_OK);
    }
    merge_close(merge);
    instance_session_free(reader);
    return count;
}

static bool stops_at_once(void *context) {
    (void)context;
    return false;
}

static void copies_on_several_volumes_become_one_and_nothing_of_a_capture_is_lost(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://example.org/a"),
        .time_us = FIXTURE_SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
        .body = BYTES("one body"),
        .request = BYTES("GET /a HTTP/1.1\r\n\r\n"),
        .ip_address = BYTES("192.0.2.1"),
        .tls = BYTES("verified"),
        .imported = BYTES("key signature"),
    };
    struct record record;
    uint64_t moved_count;
    assert_int_equal(record_init(&record), ERR_OK);
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        document.time_us += FIXTURE_SECOND_US;
        fixture_put_document(fixture, &document, STORE_FORCE_NEW, fixture_numbers[i]);
    }
    /* As a run that was cut off leaves it: one capture on two volumes. */
    assert_int_equal(fixture_put_document(fixture, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY).key.volume,
                     0);
    struct stored plain = fixture_put(fixture, "plain", 0);
    document = (struct document){.body = BYTES("plain"), .time_us = FIXTURE_SECOND_US};
    struct stored other = fixture_put_document(fixture, &document, STORE_FORCE_NEW, 7);
    assert_int_equal(count_twins(fixture).documents_count, 2);

    assert_int_equal(twins_merge(fixture->instance, stops_at_once, NULL, &moved_count, NULL), ERR_CANCELLED);
    assert_int_equal(moved_count, 0);
    assert_int_equal(twins_merge(fixture->instance, NULL, NULL, &moved_count, NULL), ERR_OK);
    assert_true(moved_count >= 2);
    assert_int_equal(count_twins(fixture).documents_count, 1); /* whose keys name their volumes */
    fixture_expect(fixture, &plain.key, "plain");
    fixture_expect(fixture, &other.key, "plain");
    assert_int_equal(count_captures(fixture, "one body", &record), 3);
    assert_bytes_equal(fields_get(&record.header.fields, BYTES("WARC-IP-Address")), BYTES("192.0.2.1"));
    assert_bytes_equal(fields_get(&record.header.fields, BYTES("Mnemon-TLS")), BYTES("verified"));
    assert_bytes_equal(fields_get(&record.header.fields, BYTES("Mnemon-Imported")), BYTES("key signature"));
    assert_true(record.head.size > 0);
    fixture_reopen(fixture);
    assert_int_equal(twins_merge(fixture->instance, NULL, NULL, &moved_count, NULL), ERR_OK);
    assert_int_equal(moved_count, 0);
    record_done(&record);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_capture_leaves_the_volume_that_has_it),
        TEST(each_volume_is_repaired_where_it_is_damaged),
        TEST(a_document_on_another_volume_is_repaired_there),
        TEST(volume_servers_see_to_themselves),
        TEST(scrubbing_finds_what_is_damaged_at_its_pace),
        TEST(scrubbing_names_a_document_whose_capture_is_gone),
        TEST(a_scrub_file_that_is_none_begins_a_pass),
        TEST(a_list_of_damage_is_read_back_once),
        TEST(copies_on_several_volumes_become_one_and_nothing_of_a_capture_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

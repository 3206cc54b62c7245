/* compact: the bytes of removed documents come back to the disk, and nothing else is lost. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/prng.h"
#include "store/index/index_cursor.h"
#include "store/volume/compact.h"
#include "volume-fixture.h"

enum { COMPACT_COUNT = 120 };

static struct bytes compact_body(size_t i, uint8_t body[1000]) {
    struct prng prng;
    prng_init(&prng, i);
    prng_fill(&prng, body, 1000);
    return bytes_of(body, 1000);
}

/* Several small segments with captures of which two of three are then removed. */
static void fill_for_compaction(struct fixture *fixture, struct key keys[COMPACT_COUNT]) {
    uint8_t body[1000];
    close_volume(fixture);
    fixture->config.segment_size_max = 20000;
    open_volume(fixture);
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        char url[64];
        int size = snprintf(url, sizeof url, "http://example.org/%03zu", i);
        struct document document = {
            .url = bytes_of(url, (size_t)size),
            .time_us = (int64_t)i,
            .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"),
            .body = compact_body(i, body),
            .request = BYTES("GET / HTTP/1.1\r\n\r\n"),
        };
        struct stored stored;
        assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        keys[i] = stored.key;
    }
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        if (i % 3 != 0) {
            assert_int_equal(volume_remove(fixture->writer, &keys[i], NULL), ERR_OK);
        }
    }
}

static void expect_every_third(struct fixture *fixture, const struct key keys[COMPACT_COUNT]) {
    uint8_t body[1000];
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        if (i % 3 == 0) {
            expect(fixture, &keys[i], compact_body(i, body));
        } else {
            expect_gone(fixture, &keys[i]);
        }
    }
}

static size_t captures_count(struct fixture *fixture) {
    struct index_cursor *cursor;
    struct capture capture;
    size_t count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), bytes_of(NULL, 0), bytes_of(NULL, 0),
                                       false, &cursor),
                     ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count;
}

static void compaction_gives_back_the_bytes_of_what_was_removed(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    struct volume_stat before;
    struct volume_stat after;
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    volume_stat(fixture->volume, &before);
    assert_int_equal(compact_volume(fixture->volume, 20, &report, NULL), ERR_OK);
    volume_stat(fixture->volume, &after);
    assert_true(report.segments_count >= 4);
    assert_true(after.size < before.size * 2 / 3);
    expect_every_third(fixture, keys);
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0);
    expect_every_third(fixture, keys);
    rebuild(fixture);
    expect_every_third(fixture, keys);
    assert_int_equal(fixture->recovery.damaged_count, 0);
}

static void compaction_forgets_deletions_when_nothing_is_left_of_them(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    uint8_t body[1000];
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    size_t captures_before = captures_count(fixture);
    /* Twice, with new segments in between: the second run meets deletions whose records the first dropped. */
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    for (size_t i = 1000; i < 1080; i++) {
        put(fixture, compact_body(i, body), STORE_REGULAR);
    }
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    assert_true(captures_count(fixture) < captures_before);
    expect_every_third(fixture, keys);
    /*
     * What was removed may come back and stays through a rebuild. Its number is free again where nothing was
     * left of the first life, and another one where its deletion is still there: both keep the promise.
     */
    struct stored again = put(fixture, compact_body(1, body), STORE_REGULAR);
    assert_false(again.is_duplicate);
    rebuild(fixture);
    expect(fixture, &again.key, compact_body(1, body));
    expect_gone(fixture, &keys[2]);
}

static void compaction_reaches_the_newest_segment_too(void **state) {
    struct fixture *fixture = *state;
    uint8_t body[1000];
    struct compact_report report;
    struct stored kept = put(fixture, compact_body(1, body), STORE_REGULAR);
    struct stored removed = put(fixture, compact_body(2, body), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &removed.key, NULL), ERR_OK);
    assert_int_equal(compact_volume(fixture->volume, 10, &report, NULL), ERR_OK);
    assert_int_equal(report.segments_count, 1);
    assert_true(report.freed_size > 900);
    expect(fixture, &kept.key, compact_body(1, body));
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0); /* nothing is entered twice */
    expect(fixture, &kept.key, compact_body(1, body));
    put(fixture, compact_body(3, body), STORE_REGULAR);
    rebuild(fixture);
    expect(fixture, &kept.key, compact_body(1, body));
    expect_gone(fixture, &removed.key);
}

static void expect_stored(void *context, enum err err, const struct stored *stored) {
    (void)stored;
    *(size_t *)context += err == ERR_OK;
}

static void compaction_takes_segments_of_very_many_records(void **state) {
    struct fixture *fixture = *state;
    enum { RECORDS = 70000 }; /* more than the ledger collects between two commits of documents */
    size_t stored_count = 0;
    struct compact_report report;
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct document document = {
            .body = bytes_of(&i, sizeof i), .content_type = BYTES("image/png"), .time_us = 1};
        assert_int_equal(
            volume_submit(fixture->writer, &document, STORE_REGULAR, expect_stored, &stored_count, NULL),
            ERR_OK);
    }
    volume_drain(fixture->volume);
    assert_int_equal(stored_count, RECORDS);
    struct stored removed = put(fixture, BYTES("removed"), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &removed.key, NULL), ERR_OK);
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    assert_true(report.kept_count >= RECORDS);
}

struct reading {
    struct volume *volume;
    const struct key *keys;
    atomic_bool is_stopping;
    size_t count;
};

static void *read_on(void *context) {
    struct reading *reading = context;
    struct volume_reader *reader = volume_reader_new(reading->volume);
    uint8_t body[1000];
    for (size_t i = 0; !reading->is_stopping; i = (i + 3) % COMPACT_COUNT) {
        struct bytes found;
        enum err err = volume_get(reader, &reading->keys[i], &found, NULL);
        if (err != ERR_OK || !bytes_equal(found, compact_body(i, body))) {
            abort();
        }
        reading->count++;
    }
    volume_reader_free(reader);
    return NULL;
}

static void reads_go_on_during_compaction(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    struct reading reading = {.volume = fixture->volume, .keys = keys};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reading), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
        put(fixture, BYTES("between"), STORE_FORCE_NEW);
    }
    reading.is_stopping = true;
    pthread_join(thread, NULL);
    assert_true(reading.count > 0);
    expect_every_third(fixture, keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(compaction_gives_back_the_bytes_of_what_was_removed),
        TEST(compaction_forgets_deletions_when_nothing_is_left_of_them),
        TEST(compaction_reaches_the_newest_segment_too),
        TEST(compaction_takes_segments_of_very_many_records),
        TEST(reads_go_on_during_compaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

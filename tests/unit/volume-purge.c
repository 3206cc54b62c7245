/* volume, compact: of captures that were purged nothing is left after a compaction, and what others have
 * stays.
 */
#include <stdatomic.h>

#include "base/prng.h"
#include "store/index/index_cursor.h"
#include "store/volume/compact.h"
#include "store/volume/verify.h"
#include "volume-fixture.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Secret: head-of-"

enum { TEXT_SIZE = 64, OTHERS_COUNT = 200, OTHER_SIZE = 3000 };

static struct stored put_page(struct fixture *fixture, const char *url, int64_t seconds, const char *body) {
    char head[256];
    char request[256];
    snprintf(head, sizeof head, HEAD "%s\r\n\r\n", url);
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nX-From: %s\r\n\r\n", url);
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = seconds * 1000000,
        .head = bytes_of_string(head),
        .body = bytes_of_string(body),
        .request = bytes_of_string(request),
    };
    struct stored stored = {0};
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    return stored;
}

/* So many others that what is purged is far below the share that a compaction looks for. */
static void put_others(struct fixture *fixture) {
    char url[TEXT_SIZE];
    char body[OTHER_SIZE + 1];
    struct prng prng;
    prng_init(&prng, 1);
    for (int i = 0; i < OTHERS_COUNT; i++) {
        for (size_t j = 0; j < OTHER_SIZE; j++) {
            body[j] = (char)('a' + prng_below(&prng, 26));
        }
        body[OTHER_SIZE] = '\0';
        snprintf(url, sizeof url, "http://others.example/%d", i);
        put_page(fixture, url, 1, body);
    }
}

static size_t count_captures(struct fixture *fixture, const char *url) {
    struct index_cursor *cursor;
    struct capture capture;
    struct bytes all = {NULL, 0};
    size_t count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), all, all, false, &cursor), ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count += url == NULL || bytes_equal(capture.url, bytes_of_string(url));
    }
    index_cursor_close(cursor);
    return count;
}

struct outcome {
    _Atomic int ended_count;
    _Atomic int err;
};

static void on_purged(void *context, enum err err, const struct stored *stored) {
    struct outcome *outcome = context;
    (void)stored;
    outcome->err = err == ERR_BUSY ? ERR_OK : err; /* two captures of one time: look again */
    outcome->ended_count++;
}

/* The captures of the URL that there are; how many. */
static int purge_once(struct fixture *fixture, const char *url) {
    struct index_cursor *cursor;
    struct capture capture;
    struct bytes all = {NULL, 0};
    struct outcome outcome = {0};
    int count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), all, all, false, &cursor), ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        if (bytes_equal(capture.url, bytes_of_string(url))) {
            assert_int_equal(volume_submit_purge(fixture->writer, &capture, on_purged, &outcome, NULL),
                             ERR_OK);
            count++;
        }
    }
    index_cursor_close(cursor);
    volume_drain(fixture->volume);
    assert_int_equal(outcome.err, ERR_OK);
    assert_int_equal(outcome.ended_count, count);
    return count;
}

static void purge(struct fixture *fixture, const char *url) {
    assert_true(purge_once(fixture, url) > 0);
    for (int i = 0; i < 3 && count_captures(fixture, url) > 0; i++) {
        purge_once(fixture, url);
    }
    assert_int_equal(count_captures(fixture, url), 0);
}

/* In any file of the segments, which are not compressed. */
static bool is_on_disk(struct fixture *fixture, const char *text) {
    char path[512];
    bool is_found = false;
    snprintf(path, sizeof path, "%s/volumes/0", fixture->root);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        static char content[4 << 20];
        snprintf(path, sizeof path, "%s/volumes/0/%s", fixture->root, entry->d_name);
        FILE *file = fopen(path, "rb");
        size_t size = file != NULL ? fread(content, 1, sizeof content, file) : 0;
        is_found = is_found || (size > 0 && memmem(content, size, text, strlen(text)) != NULL);
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(directory);
    return is_found;
}

static void compact(struct fixture *fixture) {
    struct compact_report report;
    assert_int_equal(compact_volume(fixture->volume, 20, &report, NULL), ERR_OK);
}

static void expect_sound(struct fixture *fixture) {
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &(struct verify_observer){0}, &report, NULL), ERR_OK);
    assert_int_equal(report.damaged_count + report.lost_count + report.captures_count, 0);
}

static int set_up_plain(void **state) {
    if (set_up(state) != 0) {
        return -1;
    }
    struct fixture *fixture = *state;
    close_volume(fixture);
    fixture->config.framing = PACK_PLAIN;
    open_volume(fixture);
    return 0;
}

static void one_small_page_in_a_large_segment_is_gone_after_a_compaction(void **state) {
    struct fixture *fixture = *state;
    put_others(fixture);
    struct stored stored = put_page(fixture, "http://a.example/private", 2, "a private page");
    put_page(fixture, "http://a.example/private", 3, "a private page"); /* unchanged */
    put_page(fixture, "http://a.example/public", 3, "a public page");
    purge(fixture, "http://a.example/private");
    expect_gone(fixture, &stored.key);
    assert_true(is_on_disk(fixture, "a private page"));
    compact(fixture);
    assert_false(is_on_disk(fixture, "a private page"));
    assert_false(
        is_on_disk(fixture, "http://a.example/private")); /* not in head, request or removal either */
    assert_true(is_on_disk(fixture, "a public page"));
    assert_int_equal(count_captures(fixture, NULL), OTHERS_COUNT + 1);
    expect_sound(fixture);
    rebuild(fixture);
    assert_int_equal(count_captures(fixture, NULL), OTHERS_COUNT + 1);
    struct compact_report report;
    assert_int_equal(compact_volume(fixture->volume, 20, &report, NULL), ERR_OK);
    assert_int_equal(report.segments_count, 0); /* nothing is left to be done */
}

static void what_is_to_be_purged_is_known_to_a_rebuilt_index(void **state) {
    struct fixture *fixture = *state;
    put_others(fixture);
    put_page(fixture, "http://a.example/private", 2, "a private page");
    purge(fixture, "http://a.example/private");
    rebuild(fixture);
    assert_int_equal(count_captures(fixture, NULL), OTHERS_COUNT);
    compact(fixture);
    assert_false(is_on_disk(fixture, "a private page"));
    assert_false(is_on_disk(fixture, "a.example"));
}

static void a_document_that_others_share_loses_only_the_head(void **state) {
    struct fixture *fixture = *state;
    put_others(fixture);
    struct stored stored = put_page(fixture, "http://a.example/private", 2, "what both pages are");
    assert_true(put_page(fixture, "http://b.example/", 3, "what both pages are").is_duplicate);
    purge(fixture, "http://a.example/private");
    expect(fixture, &stored.key, BYTES("what both pages are"));
    compact(fixture);
    assert_false(is_on_disk(fixture, "head-of-http://a.example/private"));
    assert_false(is_on_disk(fixture, "X-From: http://a.example/private"));
    for (int round = 0; round < 2; round++) {
        expect(fixture, &stored.key, BYTES("what both pages are"));
        assert_int_equal(count_captures(fixture, "http://b.example/"), 1);
        expect_sound(fixture);
        assert_true(put_page(fixture, "http://c.example/", 4 + round, "what both pages are").is_duplicate);
        rebuild(fixture);
    }
    purge(fixture, "http://b.example/");
    purge(fixture, "http://c.example/");
    compact(fixture);
    assert_false(is_on_disk(fixture, "what both pages are"));
    assert_false(is_on_disk(fixture, "b.example"));
    rebuild(fixture);
    assert_int_equal(count_captures(fixture, NULL), OTHERS_COUNT);
}

static void a_purged_page_may_be_stored_again(void **state) {
    struct fixture *fixture = *state;
    for (int round = 0; round < 3; round++) {
        struct stored stored = put_page(fixture, "http://a.example/", 2, "once more");
        purge(fixture, "http://a.example/");
        stored = put_page(fixture, "http://a.example/", 2, "once more");
        expect(fixture, &stored.key, BYTES("once more"));
        compact(fixture);
        rebuild(fixture);
        expect(fixture, &stored.key, BYTES("once more"));
        assert_int_equal(count_captures(fixture, NULL), 1);
    }
}

static void what_is_gone_cannot_be_purged(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_page(fixture, "http://a.example/", 2, "page");
    struct capture capture = {
        .surt = BYTES("example,a)/"),
        .url = BYTES("http://a.example/"),
        .time_us = 2000000,
        .location = stored.location,
    };
    struct outcome outcome = {0};
    memcpy(capture.digest, stored.key.digest, sizeof capture.digest);
    purge(fixture, "http://a.example/");
    assert_int_equal(volume_submit_purge(fixture->writer, &capture, on_purged, &outcome, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(outcome.ended_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_small_page_in_a_large_segment_is_gone_after_a_compaction,
                                        set_up_plain, tear_down),
        cmocka_unit_test_setup_teardown(what_is_to_be_purged_is_known_to_a_rebuilt_index, set_up_plain,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_document_that_others_share_loses_only_the_head, set_up_plain,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_purged_page_may_be_stored_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_gone_cannot_be_purged, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

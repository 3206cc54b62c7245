/* volume: duplicates, whatever is known of them and whoever removes what they are of. */
#include <pthread.h>

#include "base/prng.h"
#include "base/sha256.h"
#include "store/index/index_cursor.h"
#include "store/volume/compact.h"
#include "volume-fixture.h"

/* ---- digests that somebody else has computed ---- */

static struct document_sum sum_of(struct bytes body) {
    struct document_sum sum = {.size = body.size};
    struct sha256 sha256;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, body, sum.digest);
    sha256_done(&sha256);
    return sum;
}

static void a_known_digest_is_not_computed_again(void **state) {
    struct fixture *fixture = *state;
    struct document_sum sum = sum_of(BYTES("hello"));
    struct document document = {
        .url = BYTES("http://example.org/"),
        .time_us = 1,
        .head =
            BYTES("HTTP/1.1 404 Not Found\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked\r\n\r\n"),
        .body = BYTES("5\r\nhello\r\n0\r\n\r\n"),
        .sum = &sum,
    };
    struct stored stored;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    assert_memory_equal(stored.key.digest, sum.digest, sizeof sum.digest);
    expect(fixture, &stored.key, BYTES("hello"));
    assert_true(put(fixture, BYTES("hello"), STORE_REGULAR).is_duplicate);
    struct index_cursor *cursor;
    struct capture capture;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(index_cursor_open(volume_index(fixture->volume), BYTES("org,example)/"),
                                           bytes_of(NULL, 0), false, &cursor),
                         ERR_OK);
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
        assert_int_equal(capture.status, 404);
        assert_bytes_equal(capture.mime, BYTES("text/css"));
        index_cursor_close(cursor);
        rebuild(fixture);
    }
}

static void a_duplicate_can_be_stored_without_its_body(void **state) {
    struct fixture *fixture = *state;
    struct document_sum sum = sum_of(BYTES("hello"));
    struct document document = {
        .url = BYTES("http://example.org/"),
        .time_us = 1,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n"),
        .sum = &sum,
        .is_body_left_out = true,
    };
    struct stored stored;
    struct volume_writer *writer = fixture->writer;
    assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_NOT_FOUND);
    struct stored first = put(fixture, BYTES("hello"), STORE_REGULAR);
    assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    assert_true(stored.is_duplicate);
    assert_memory_equal(&stored.key, &first.key, sizeof first.key);
    sum.size++; /* another document of the same digest */
    assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_NOT_FOUND);
    sum.size--;
    assert_int_equal(volume_put(writer, &document, STORE_FORCE_NEW, &stored, NULL), ERR_INVALID);
    document.body = BYTES("hello");
    assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_INVALID);
    document.body = bytes_of(NULL, 0);
    rebuild(fixture);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    expect(fixture, &first.key, BYTES("hello"));
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_NOT_FOUND);
}

/* The record of the newest capture of a SURT, as text. */
static struct bytes newest_record(struct fixture *fixture, const char *surt, struct capture *ret_capture) {
    struct index_cursor *cursor;
    struct bytes record;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), bytes_of_string(surt),
                                       bytes_of(NULL, 0), true, &cursor),
                     ERR_OK);
    assert_int_equal(index_cursor_next(cursor, ret_capture), ERR_OK);
    assert_int_equal(volume_get_record(fixture->reader, &ret_capture->location, &record, NULL), ERR_OK);
    index_cursor_close(cursor);
    return record;
}

static void expect_in(struct bytes record, const char *text) {
    if (bytes_find(record, bytes_of_string(text)) == record.size) {
        fail_msg("\"%s\" is not in \"%.*s\"", text, BYTES_ARG(record));
    }
}

static void a_duplicate_keeps_its_own_type(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://example.org/a"),
        .time_us = 1000000,
        .body = BYTES("same"),
        .content_type = BYTES("text/html"),
    };
    struct stored stored;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    static const char *const types[] = {"text/plain", ""};
    static const char *const expected[] = {"text/plain", "application/octet-stream"};
    for (size_t i = 0; i < 2; i++) {
        struct capture capture;
        document.url = i == 0 ? BYTES("http://example.org/b") : BYTES("http://example.org/c");
        document.content_type = bytes_of_string(types[i]);
        assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        assert_true(stored.is_duplicate);
        for (int round = 0; round < 2; round++) {
            struct bytes record = newest_record(fixture, "org,example)/", &capture);
            expect_in(record, "WARC-Type: revisit");
            expect_in(record, expected[i]);
            assert_int_equal(capture.status, 0);
            assert_bytes_equal(capture.mime, bytes_of_string(expected[i]));
            rebuild(fixture);
        }
    }
}

static void a_revisit_names_its_original(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://example.org/a"),
        .time_us = 1000000,
        .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
        .body = BYTES("same"),
    };
    struct stored stored;
    struct capture capture;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    put(fixture, BYTES("plain"), STORE_REGULAR);
    /* Of the same URL; of another, before and after a rebuild; of a document without one. */
    for (int round = 0; round < 4; round++) {
        document.time_us = 2000000;
        document.url = round == 0 ? BYTES("http://example.org/b") : BYTES("http://example.org/c");
        document.url = round == 1 ? BYTES("http://example.org/a") : document.url;
        document.body = round == 3 ? BYTES("plain") : BYTES("same");
        assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        assert_true(stored.is_duplicate);
        struct bytes record = newest_record(fixture, "org,example)/", &capture);
        assert_int_equal(volume_get_record(fixture->reader, &stored.location, &record, NULL), ERR_OK);
        expect_in(record, round == 3 ? "WARC-Refers-To-Target-URI: urn:sha256:"
                                     : "WARC-Refers-To-Target-URI: http://example.org/a\r\n");
        expect_in(record, "WARC-Refers-To-Date: 1970-01-01T00:00:01Z\r\n");
        expect_in(record, "revisit/identical-payload-digest\r\n");
        rebuild(fixture);
    }
}

static void what_was_not_modified_is_a_revisit_that_says_so(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("same"), STORE_REGULAR);
    struct document_sum sum = sum_of(BYTES("same"));
    struct document document = {
        .url = BYTES("http://example.org/"),
        .time_us = 2000000,
        .head = BYTES("HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
        .sum = &sum,
        .is_body_left_out = true,
        .is_not_modified = true,
    };
    struct stored stored;
    struct capture capture;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    assert_memory_equal(&stored.key, &first.key, sizeof first.key);
    for (int round = 0; round < 2; round++) {
        struct bytes record = newest_record(fixture, "org,example)/", &capture);
        expect_in(record, "revisit/server-not-modified\r\n");
        expect_in(record, "ETag: x");
        assert_int_equal(capture.status, 304);
        assert_int_equal(capture.flags, CAPTURE_REVISIT);
        assert_memory_equal(capture.digest, first.key.digest, KEY_DIGEST_SIZE);
        rebuild(fixture);
    }
    document.is_body_left_out = false;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_INVALID);
}

/* ---- what writers remember of blocks ---- */

static struct block block_of(struct fixture *fixture, const struct key *key) {
    struct block block;
    assert_int_equal(index_find_block(volume_index(fixture->volume), key->digest, key->number, &block),
                     ERR_OK);
    return block;
}

static struct stored put_capture(struct fixture *fixture, const char *url, struct bytes body) {
    struct document document = {.url = bytes_of_string(url), .time_us = 1000000, .body = body};
    struct stored stored;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    return stored;
}

/* A compaction moves the original between two duplicates of it. */
static void a_duplicate_is_of_the_record_that_a_compaction_has_moved(void **state) {
    struct fixture *fixture = *state;
    static const char *const urls[] = {"http://example.org/b", "http://example.org/a",
                                       "http://example.org/c"};
    struct compact_report report;
    static const char *const others[] = {"not for long", "for a while", "for longer"};
    struct stored gone[3];
    for (size_t i = 0; i < 3; i++) {
        gone[i] = put_capture(fixture, "http://example.org/gone", bytes_of_string(others[i]));
    }
    struct stored first = put_capture(fixture, "http://example.org/a", BYTES("same"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(volume_remove(fixture->writer, &gone[i].key, NULL), ERR_OK);
        struct location before = block_of(fixture, &first.key).location;
        assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
        struct block moved = block_of(fixture, &first.key);
        assert_true(moved.location.segment != before.segment);
        struct stored stored = put_capture(fixture, urls[i], BYTES("same"));
        assert_true(stored.is_duplicate);
        struct block block = block_of(fixture, &first.key);
        assert_memory_equal(&block.location, &moved.location, sizeof moved.location);
        assert_int_equal(block.references, (int)i + 2);
        assert_int_equal(block.records_count, i + 2);
        struct bytes record;
        assert_int_equal(volume_get_record(fixture->reader, &stored.location, &record, NULL), ERR_OK);
        expect_in(record, "WARC-Refers-To-Target-URI: http://example.org/a\r\n");
        expect(fixture, &first.key, BYTES("same"));
    }
    rebuild(fixture);
    assert_int_equal(block_of(fixture, &first.key).references, 4);
    expect(fixture, &first.key, BYTES("same"));
}

/* Duplicates and removals in turn, in the same group and in others. */
static void references_are_those_of_the_last_commit(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put_capture(fixture, "http://example.org/a", BYTES("same"));
    int32_t references = 1;
    for (int i = 0; i < 20; i++) {
        if (i % 4 == 3) {
            assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
            references--;
        } else {
            assert_true(put_capture(fixture, "http://example.org/b", BYTES("same")).is_duplicate);
            references++;
        }
        assert_int_equal(block_of(fixture, &first.key).references, references);
    }
    while (references-- > 0) {
        assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    }
    struct stored again = put_capture(fixture, "http://example.org/b", BYTES("same"));
    assert_false(again.is_duplicate);
    assert_int_equal(again.key.number, 1);
    rebuild(fixture);
    assert_int_equal(block_of(fixture, &first.key).references, 0);
    assert_int_equal(block_of(fixture, &again.key).references, 1);
}

/* ---- storing and removing the same at once ---- */

enum { RIVALS_COUNT = 6, RIVAL_ROUNDS = 400 };

struct rival {
    struct volume *volume;
    uint64_t seed;
    int32_t references[8]; /* by number of the block: stores minus removals of this thread */
};

static void *store_and_remove(void *context) {
    struct rival *rival = context;
    struct volume_writer *writer = volume_writer_new(rival->volume);
    struct prng prng;
    struct key key = {0};
    prng_init(&prng, rival->seed);
    for (size_t i = 0; i < RIVAL_ROUNDS; i++) {
        struct document document = {.body = BYTES("contested"), .time_us = 1};
        struct stored stored;
        if (prng_below(&prng, 2) == 0) {
            if (volume_put(writer, &document, STORE_REGULAR, &stored, NULL) == ERR_OK) {
                key = stored.key;
                rival->references[key.number % 8]++;
            }
        } else if (volume_remove(writer, &key, NULL) == ERR_OK) {
            rival->references[key.number % 8]--;
        }
    }
    volume_writer_free(writer);
    return NULL;
}

/* A number whose last reference is gone stays gone: the next store of the document gets another. */
static void no_duplicate_brings_a_removed_document_back(void **state) {
    struct fixture *fixture = *state;
    struct rival rivals[RIVALS_COUNT] = {0};
    pthread_t threads[RIVALS_COUNT];
    struct stored first = put(fixture, BYTES("contested"), STORE_REGULAR);
    for (size_t i = 0; i < RIVALS_COUNT; i++) {
        rivals[i].volume = fixture->volume;
        rivals[i].seed = i;
        assert_int_equal(pthread_create(&threads[i], NULL, store_and_remove, &rivals[i]), 0);
    }
    int32_t told[8] = {1};
    for (size_t i = 0; i < RIVALS_COUNT; i++) {
        pthread_join(threads[i], NULL);
        for (size_t j = 0; j < 8; j++) {
            told[j] += rivals[i].references[j];
        }
    }
    int32_t kept[8] = {0};
    for (int round = 0; round < 2; round++) {
        struct block block;
        memset(kept, 0, sizeof kept);
        bool is_last_live = false;
        for (uint16_t number = 0;
             index_find_block(volume_index(fixture->volume), first.key.digest, number, &block) == ERR_OK;
             number++) {
            kept[number % 8] += block.references;
            assert_true(block.references >= 0);
            assert_false(is_last_live); /* only the last number can be alive */
            is_last_live = block.references > 0;
        }
        assert_memory_equal(kept, told, sizeof kept);
        rebuild(fixture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_known_digest_is_not_computed_again),
        TEST(a_duplicate_can_be_stored_without_its_body),
        TEST(a_duplicate_keeps_its_own_type),
        TEST(a_revisit_names_its_original),
        TEST(what_was_not_modified_is_a_revisit_that_says_so),
        TEST(a_duplicate_is_of_the_record_that_a_compaction_has_moved),
        TEST(references_are_those_of_the_last_commit),
        TEST(no_duplicate_brings_a_removed_document_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

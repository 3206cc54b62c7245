/* volume: what is stored comes back, once. */
#include <pthread.h>

#include "base/prng.h"
#include "store/index/index_cursor.h"
#include "volume-fixture.h"

static void gives_back_what_was_put(void **state) {
    struct fixture *fixture = *state;
    struct bytes bodies[] = {BYTES(""), BYTES("a"), BYTES("hello\r\n\r\nworld"), BYTES("\0\1\2")};
    for (size_t i = 0; i < 4; i++) {
        struct stored stored = put(fixture, bodies[i], STORE_REGULAR);
        assert_false(stored.is_duplicate);
        expect(fixture, &stored.key, bodies[i]);
    }
}

static void stores_a_document_once_and_counts_references(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("same"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("same"), STORE_REGULAR);
    assert_false(first.is_duplicate);
    assert_true(second.is_duplicate);
    assert_memory_equal(&first.key, &second.key, sizeof first.key);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    expect(fixture, &first.key, BYTES("same"));
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    expect_gone(fixture, &first.key);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_NOT_FOUND);
}

static void a_removed_document_can_be_stored_again_under_a_new_key(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("phoenix"), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    struct stored second = put(fixture, BYTES("phoenix"), STORE_REGULAR);
    assert_false(second.is_duplicate);
    assert_int_equal(second.key.number, 1);
    rebuild(fixture);
    expect_gone(fixture, &first.key);
    expect(fixture, &second.key, BYTES("phoenix"));
}

static void force_new_makes_a_block_each_time(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("x"), STORE_FORCE_NEW);
    struct stored second = put(fixture, BYTES("x"), STORE_FORCE_NEW);
    assert_int_equal(first.key.number, 0);
    assert_int_equal(second.key.number, 1);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    rebuild(fixture);
    expect_gone(fixture, &first.key);
    expect(fixture, &second.key, BYTES("x"));
}

static void use_digest_bits(struct fixture *fixture, unsigned bits) {
    close_volume(fixture);
    fixture->config.digest_bits = bits;
    open_volume(fixture);
}

static void compare_mode_tells_collisions_apart(void **state) {
    struct fixture *fixture = *state;
    use_digest_bits(fixture, 8);
    enum { COUNT = 600 };
    struct key keys[COUNT];
    bool has_overflow = false;
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            char text[16];
            int size = snprintf(text, sizeof text, "document %05zu", i); /* all of one size */
            struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_COMPARE);
            assert_int_equal(stored.is_duplicate, round == 1);
            has_overflow = has_overflow || stored.key.number > 0;
            if (round == 0) {
                keys[i] = stored.key;
            }
            assert_memory_equal(&stored.key, &keys[i], sizeof stored.key);
        }
    }
    assert_true(has_overflow);
    rebuild(fixture);
    for (size_t i = 0; i < COUNT; i++) {
        char text[16];
        int size = snprintf(text, sizeof text, "document %05zu", i);
        expect(fixture, &keys[i], bytes_of(text, (size_t)size));
    }
}

static void regular_mode_sees_a_collision_by_its_size(void **state) {
    struct fixture *fixture = *state;
    use_digest_bits(fixture, 1);
    struct stored short_one = put(fixture, BYTES("a"), STORE_REGULAR);
    struct stored stored;
    struct bytes longer[] = {BYTES("bb"), BYTES("ccc"), BYTES("dddd")};
    for (size_t i = 0; i < 3; i++) {
        stored = put(fixture, longer[i], STORE_REGULAR);
        assert_false(stored.is_duplicate);
        expect(fixture, &stored.key, longer[i]);
    }
    expect(fixture, &short_one.key, BYTES("a"));
}

static void captures_are_found_by_url_and_time(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://www.Example.org/A?b=1"),
        .time_us = 5000000,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n"),
        .body = BYTES("5\r\nhello\r\n0\r\n\r\n"),
        .request = BYTES("GET /A?b=1 HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
        .ip_address = BYTES("127.0.0.1"),
    };
    struct stored first;
    struct stored second;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &first, NULL), ERR_OK);
    document.time_us = 6000000;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &second, NULL), ERR_OK);
    assert_true(second.is_duplicate);
    expect(fixture, &first.key, BYTES("hello"));
    for (int round = 0; round < 2; round++) {
        struct index_cursor *cursor;
        struct capture capture;
        struct bytes prefix = BYTES("org,example)/");
        assert_int_equal(
            index_cursor_open(volume_index(fixture->volume), prefix, bytes_of(NULL, 0), false, &cursor),
            ERR_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
            assert_bytes_equal(capture.surt, BYTES("org,example)/a?b=1"));
            assert_bytes_equal(capture.url, document.url);
            assert_bytes_equal(capture.mime, BYTES("text/html"));
            assert_int_equal(capture.status, 200);
            assert_int_equal(capture.time_us, (5 + i) * 1000000);
            assert_int_equal(capture.flags, i == 0 ? 0 : CAPTURE_REVISIT);
            assert_memory_equal(capture.digest, first.key.digest, KEY_DIGEST_SIZE);
        }
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_NOT_FOUND);
        index_cursor_close(cursor);
        rebuild(fixture); /* the same again from the files alone */
    }
}

static void survives_closing_and_opening(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put(fixture, BYTES("kept"), STORE_REGULAR);
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0);
    expect(fixture, &stored.key, BYTES("kept"));
    assert_true(put(fixture, BYTES("kept"), STORE_REGULAR).is_duplicate);
}

static void begins_a_new_segment_when_one_is_large(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    fixture->config.segment_size_max = 20000;
    open_volume(fixture);
    struct key keys[200];
    uint8_t body[1000];
    for (size_t i = 0; i < 200; i++) {
        struct prng prng;
        prng_init(&prng, i);
        prng_fill(&prng, body, sizeof body);
        keys[i] = put(fixture, bytes_of(body, sizeof body), STORE_REGULAR).key;
    }
    struct volume_stat stat;
    volume_stat(fixture->volume, &stat);
    assert_in_range(stat.segments_count, 8, 14);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++) {
            struct prng prng;
            prng_init(&prng, i);
            prng_fill(&prng, body, sizeof body);
            expect(fixture, &keys[i], bytes_of(body, sizeof body));
        }
        if (round == 0) {
            reopen(fixture);
        } else {
            rebuild(fixture);
        }
    }
}

static void all_framings_read_back(void **state) {
    struct fixture *fixture = *state;
    static const enum pack_framing framings[] = {PACK_GZIP, PACK_PLAIN, PACK_ZSTD};
    struct key keys[3];
    for (size_t i = 0; i < 3; i++) {
        close_volume(fixture);
        fixture->config.framing = framings[i];
        fixture->config.level = 0;
        open_volume(fixture);
        char text[32];
        int size = snprintf(text, sizeof text, "framing %zu", i);
        keys[i] = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR).key;
    }
    for (size_t i = 0; i < 3; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "framing %zu", i);
        expect(fixture, &keys[i], bytes_of(text, (size_t)size));
    }
}

static void a_second_process_is_told_that_the_volume_is_in_use(void **state) {
    struct fixture *fixture = *state;
    struct volume *other;
    struct volume_recovery recovery;
    struct err_detail detail = {0};
    assert_int_equal(volume_open(&fixture->config, &other, &recovery, &detail), ERR_BUSY);
    assert_string_equal(detail.text, "volumes/0 is in use by another process");
}

/* ---- dictionary ---- */

/* Pages of one site: much in common, each a little different. */
static struct bytes page(uint32_t number, struct buf *buf) {
    struct prng prng;
    prng_init(&prng, number);
    buf_clear(buf);
    buf_put_string(buf, "<!DOCTYPE html><html><head><title>");
    for (unsigned i = 0; i < 80; i++) {
        buf_put_format(buf, "<li class=\"item item-%u\"><a href=\"/articles/%ju/\">word%ju</a></li>\n", i,
                       (uintmax_t)prng_below(&prng, 100000), (uintmax_t)prng_below(&prng, 500));
    }
    return buf_bytes(buf);
}

static void keep_stored(void *context, enum err err, const struct stored *stored) {
    assert_int_equal(err, ERR_OK);
    *(struct stored *)context = *stored;
}

static void a_dictionary_is_trained_once_and_used_from_then_on(void **state) {
    struct fixture *fixture = *state;
    enum { PAGES = 1600 };
    struct buf buf;
    struct stored *stored = calloc(PAGES, sizeof *stored);
    buf_init(&buf, 1 << 20);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct document document = {.body = page(i, &buf), .content_type = BYTES("text/html"), .time_us = 1};
        assert_int_equal(
            volume_submit(fixture->writer, &document, STORE_REGULAR, keep_stored, &stored[i], NULL), ERR_OK);
    }
    volume_drain(fixture->volume);
    /* The committer may be training still; then the next document comes into the old segment. */
    struct stored last = stored[0];
    for (int i = 0; i < 10000 && last.location.segment == stored[0].location.segment; i++) {
        struct document document = {
            .body = page(PAGES, &buf), .content_type = BYTES("text/html"), .time_us = 1};
        assert_int_equal(volume_put(fixture->writer, &document, STORE_FORCE_NEW, &last, NULL), ERR_OK);
    }
    struct volume_stat stat;
    volume_stat(fixture->volume, &stat);
    assert_int_equal(stat.segments_count, 2);
    assert_true(last.location.length < stored[0].location.length * 9 / 10);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < PAGES; i++) {
            expect(fixture, &stored[i].key, page(i, &buf));
        }
        expect(fixture, &last.key, page(PAGES, &buf));
        if (round == 0) {
            reopen(fixture);
            put(fixture, BYTES("after"), STORE_REGULAR);
        } else {
            rebuild(fixture);
        }
    }
    buf_done(&buf);
    free(stored);
}

/* ---- many at once ---- */

enum { THREADS_COUNT = 8, PER_THREAD = 300, DISTINCT = 400 };

struct work {
    struct volume *volume;
    uint64_t seed;
    struct key keys[PER_THREAD];
    uint32_t names[PER_THREAD];
};

static void *put_many(void *context) {
    struct work *work = context;
    struct volume_writer *writer = volume_writer_new(work->volume);
    struct prng prng;
    prng_init(&prng, work->seed);
    for (size_t i = 0; i < PER_THREAD; i++) {
        char text[64];
        work->names[i] = (uint32_t)prng_below(&prng, DISTINCT);
        int size = snprintf(text, sizeof text, "shared document %u", work->names[i]);
        struct document document = {.body = bytes_of(text, (size_t)size), .time_us = 1};
        struct stored stored;
        if (volume_put(writer, &document, STORE_REGULAR, &stored, NULL) != ERR_OK) {
            abort();
        }
        work->keys[i] = stored.key;
    }
    volume_writer_free(writer);
    return NULL;
}

static void threads_agree_on_one_block_per_document(void **state) {
    struct fixture *fixture = *state;
    struct work *works = calloc(THREADS_COUNT, sizeof *works);
    pthread_t threads[THREADS_COUNT];
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        works[i].volume = fixture->volume;
        works[i].seed = i;
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &works[i]), 0);
    }
    uint32_t counts[DISTINCT] = {0};
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        pthread_join(threads[i], NULL);
        for (size_t j = 0; j < PER_THREAD; j++) {
            assert_int_equal(works[i].keys[j].number, 0);
            counts[works[i].names[j]]++;
        }
    }
    /* As many removals as stores, and not one more. */
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        for (size_t j = 0; j < PER_THREAD; j++) {
            assert_int_equal(volume_remove(fixture->writer, &works[i].keys[j], NULL), ERR_OK);
        }
    }
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        expect_gone(fixture, &works[i].keys[0]);
    }
    free(works);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gives_back_what_was_put),
        TEST(stores_a_document_once_and_counts_references),
        TEST(a_removed_document_can_be_stored_again_under_a_new_key),
        TEST(force_new_makes_a_block_each_time),
        TEST(compare_mode_tells_collisions_apart),
        TEST(regular_mode_sees_a_collision_by_its_size),
        TEST(captures_are_found_by_url_and_time),
        TEST(survives_closing_and_opening),
        TEST(begins_a_new_segment_when_one_is_large),
        TEST(all_framings_read_back),
        TEST(a_second_process_is_told_that_the_volume_is_in_use),
        TEST(a_dictionary_is_trained_once_and_used_from_then_on),
        TEST(threads_agree_on_one_block_per_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

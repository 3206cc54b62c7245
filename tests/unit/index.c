#include "store/index/index.h"

#include <unistd.h>

#include "aborts.h"
#include "allocations.h"
#include "await.h"
#include "base/prng.h"
#include "base/utc.h"
#include "index-fixture.h"
#include "store/index/index_batch.h"
#include "store/index/index_cursor.h"
#include "store/kv/kv.h"
#include "unit.h"

static int tear_down(void **state) {
    allocations_left = SIZE_MAX;
    return destroy(state);
}

static void assert_capture_equal(const struct capture *a, const struct capture *b) {
    assert_bytes_equal(a->surt, b->surt);
    assert_bytes_equal(a->url, b->url);
    assert_bytes_equal(a->mime, b->mime);
    assert_true(a->time_us == b->time_us);
    assert_int_equal(a->location.segment, b->location.segment);
    assert_int_equal(a->location.length, b->location.length);
    assert_true(a->location.offset == b->location.offset);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->block_number, b->block_number);
    assert_int_equal(a->visit_s, b->visit_s);
    assert_int_equal(a->signer, b->signer);
    assert_memory_equal(a->digest, b->digest, KEY_DIGEST_SIZE);
}

static struct index_cursor *walk_surt(struct fixture *fixture, const char *surt, int64_t from_us,
                                      int64_t to_us, bool in_reverse) {
    struct buf from, to;
    buf_init(&from, 1000);
    buf_init(&to, 1000);
    index_put_capture_prefix(&from, bytes_of_string(surt), from_us);
    index_put_capture_prefix(&to, bytes_of_string(surt), to_us);
    struct index_cursor *cursor = walk(fixture, buf_bytes(&from), buf_bytes(&to), in_reverse);
    buf_done(&from);
    buf_done(&to);
    return cursor;
}

/* All that the cursor gives, as "surt@offset surt@offset"; closes it. */
static const char *told(struct index_cursor *cursor, char out[1000]) {
    struct capture capture;
    size_t size = 0;
    enum err err;
    out[0] = '\0';
    while ((err = index_cursor_next(cursor, &capture)) == ERR_OK) {
        int added = snprintf(out + size, 1000 - size, "%s%.*s@%llu", size > 0 ? " " : "",
                             BYTES_ARG(capture.surt), (unsigned long long)capture.location.offset);
        size += (size_t)added;
        assert_true(size < 1000);
    }
    assert_int_equal(err, ERR_NOT_FOUND);
    assert_int_equal(index_cursor_next(cursor, &capture), ERR_NOT_FOUND); /* the end stays the end */
    index_cursor_close(cursor);
    return out;
}

static void returns_every_field_of_a_capture(void **state) {
    struct fixture *fixture = *state;
    struct capture captures[] = {
        capture_of("a", 0, 0),
        {
            .surt = BYTES("b"),
            .time_us = UTC_MAX_US,
            .location = {UINT32_MAX, UINT32_MAX, UINT64_MAX},
            .url = BYTES(""),
            .mime = BYTES("application/x-of-our-own"),
            .status = UINT16_MAX,
            .flags =
                CAPTURE_REVISIT | CAPTURE_TRUNCATED | CAPTURE_WITNESS | CAPTURE_IMPORTED | CAPTURE_SIGNED,
            .block_number = UINT16_MAX,
            .visit_s = UINT32_MAX - 1,
            .signer = UINT16_MAX - 1,
            .voucher = UINT64_MAX - 1,
        },
        {.surt = BYTES("c"), .time_us = UTC_MIN_US, .location = {.segment = 1}, .flags = CAPTURE_TRUNCATED},
        {.surt = BYTES(""), .location = {.segment = 256, .offset = 255}, .mime = BYTES("TEXT/HTML")},
    };
    enum { COUNT = sizeof captures / sizeof *captures };
    for (size_t i = 0; i < COUNT; i++) {
        memset(captures[i].digest, (int)i, KEY_DIGEST_SIZE);
        index_batch_put_capture(fixture->batch, &captures[i]);
        struct block block = {.references = 1};
        index_batch_put_block(fixture->batch, captures[i].digest, 0, &block);
    }
    commit(fixture);
    for (int round = 0; round < 2; round++) {
        struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
        for (size_t i = 0; i < COUNT; i++) {
            struct capture capture;
            assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
            assert_capture_equal(&capture, &captures[(i + COUNT - 1) % COUNT]); /* the empty SURT is first */
        }
        index_cursor_close(cursor);
        compact(fixture);
        reopen(fixture);
    }
}

static struct capture revisit_of(const char *surt, int64_t time_us, uint8_t start, uint8_t end) {
    struct capture capture = capture_of(surt, time_us, 0);
    capture.flags = CAPTURE_REVISIT;
    memset(capture.digest, start, KEY_DIGEST_SIZE);
    capture.digest[KEY_DIGEST_SIZE - 1] = end;
    return capture;
}

static void completes_the_digests_of_revisits_from_their_blocks(void **state) {
    struct fixture *fixture = *state;
    /* Many of one block, one of another with an overflow block beside it, one whose block is gone. */
    struct capture captures[] = {revisit_of("a", 1, 1, 7), revisit_of("a", 2, 1, 7), revisit_of("b", 1, 2, 8),
                                 revisit_of("c", 1, 3, 9), revisit_of("d", 1, 1, 7)};
    struct block block = {.references = 1};
    for (size_t i = 0; i < 5; i++) {
        index_batch_put_capture(fixture->batch, &captures[i]);
        if (i != 3) {
            index_batch_put_block(fixture->batch, captures[i].digest, (uint16_t)i, &block);
        }
    }
    commit(fixture);
    for (int round = 0; round < 2; round++) {
        for (int in_reverse = 0; in_reverse < 2; in_reverse++) {
            struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), in_reverse);
            static const size_t expected[] = {0, 1, 2, 4};
            struct capture capture;
            for (size_t i = 0; i < 4; i++) {
                assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
                assert_capture_equal(&capture, &captures[expected[in_reverse ? 3 - i : i]]);
            }
            assert_int_equal(index_cursor_next(cursor, &capture), ERR_NOT_FOUND);
            index_cursor_close(cursor);
        }
        compact(fixture);
    }
}

static void returns_the_url_as_it_was_fetched(void **state) {
    struct fixture *fixture = *state;
    static const char *const pairs[][2] = {
        {"org,example)/b?a=1&b=2", "http://example.org/b?a=1&b=2"},
        {"org,example)/b", "https://www.example.org/b"},
        {"org,example)/b", "https://WWW.example.org/b"},
        {"org,example)/b", "https://www2.example.org/B/"},
        {"org,example)/b", "http://user:pass@example.org:80/b#part"},
        {"org,example:8080)/", "http://example.org:8080"},
        {"org,example:8080)/", "http://www.example.org:8080/"},
        {"uk,co,example,a)/article/the-story?id=1", "https://a.example.co.uk/Article/The-Story/?id=1"},
        {"1,0,0,127)/", "http://127.0.0.1/"},
        {"[::1]:81)/x", "http://[::1]:81/x"},
        {"[::1])/x", "https://[::1]/x"},
        {"dns:example.org", "dns:example.org"},
        {"urn:uuid:1", "urn:UUID:1"},
        {"org,example", "http://example.org"},
        {"org,example)", "ftp://example.org/"},
        {"", "http://"},
        {")", "https://www."},
        {",", "http://."},
        {"a,b,,c:1:2)x)y", "https://www.c..b.a:1:2x)y"},
        {"aaaa", "aaa"},
        {"aaa", "aaaa"},
        {"org,example)/\xc3\xa9", "http://example.org/\xc3\xa9"},
        {"a", ""},
    };
    enum { COUNT = sizeof pairs / sizeof *pairs };
    for (size_t i = 0; i < COUNT; i++) {
        struct capture capture = capture_of(pairs[i][0], (int64_t)i, i);
        struct capture again;
        capture.url = bytes_of_string(pairs[i][1]);
        index_batch_put_capture(fixture->batch, &capture);
        commit(fixture);
        struct index_cursor *cursor =
            walk_surt(fixture, pairs[i][0], capture.time_us, capture.time_us + 1, false);
        assert_int_equal(index_cursor_next(cursor, &again), ERR_OK);
        assert_bytes_equal(again.url, capture.url);
        assert_bytes_equal(again.surt, capture.surt);
        index_cursor_close(cursor);
    }
}

static void holds_the_longest_surt_and_url(void **state) {
    struct fixture *fixture = *state;
    static char surt[INDEX_SURT_SIZE_MAX];
    static char url[INDEX_URL_SIZE_MAX];
    struct capture capture = capture_of("", 1, 1);
    struct capture again;
    memset(surt, 's', sizeof surt);
    memset(url, 'u', sizeof url);
    memcpy(url, "https://www.", 12); /* what is implied is longer than a URL may be */
    capture.surt = bytes_of(surt, sizeof surt);
    capture.url = bytes_of(url, sizeof url);
    index_batch_put_capture(fixture->batch, &capture);
    commit(fixture);
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    assert_int_equal(index_cursor_next(cursor, &again), ERR_OK);
    assert_capture_equal(&again, &capture);
    index_cursor_close(cursor);
}

static void knows_what_it_cannot_hold(void **state) {
    (void)state;
    static char long_text[INDEX_URL_SIZE_MAX + 1];
    struct capture good = capture_of("a", 0, 0);
    struct capture bad[8];
    for (size_t i = 0; i < 8; i++) {
        bad[i] = good;
    }
    bad[0].surt = BYTES("a\0b");
    bad[1].surt = BYTES("a\xff");
    bad[2].surt = bytes_of(memset(long_text, 'a', sizeof long_text), INDEX_SURT_SIZE_MAX + 1);
    bad[3].url = bytes_of(long_text, INDEX_URL_SIZE_MAX + 1);
    bad[4].mime = bytes_of(long_text, INDEX_MIME_SIZE_MAX + 1);
    bad[5].time_us = UTC_MAX_US + 1;
    bad[6].location.segment = 0;
    bad[7].flags = 32;
    assert_true(index_can_hold(&good));
    for (size_t i = 0; i < 8; i++) {
        assert_false(index_can_hold(&bad[i]));
    }
}

static void put_no_segment(void *argument) {
    struct capture capture = capture_of("a", 0, 0);
    capture.location.segment = 0;
    index_batch_put_capture(argument, &capture);
}

static void putting_what_it_cannot_hold_is_a_mistake(void **state) {
    struct fixture *fixture = *state;
    assert_true(aborts(put_no_segment, fixture->batch, "index_can_hold"));
}

/* ---- order ---- */

static void walks_by_surt_then_time_then_location(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    put(fixture, "b", 1, 1);
    put(fixture, "a", 2, 9);
    put(fixture, "a", 2, 300); /* one byte longer, so bytes alone would sort it first */
    put(fixture, "a", 1, 70000);
    put(fixture, "a", 2, 10);
    commit(fixture);
    assert_string_equal(told(walk(fixture, BYTES(""), BYTES(""), false), text), "a@70000 a@9 a@10 a@300 b@1");
    assert_string_equal(told(walk(fixture, BYTES(""), BYTES(""), true), text), "b@1 a@300 a@10 a@9 a@70000");
}

static void segments_sort_as_numbers(void **state) {
    struct fixture *fixture = *state;
    static const uint32_t segments[] = {1, 255, 256, 65535, 65536, UINT32_MAX};
    struct capture capture = capture_of("a", 0, 0);
    for (size_t i = 6; i > 0; i--) {
        capture.location.segment = segments[i - 1];
        index_batch_put_capture(fixture->batch, &capture);
    }
    commit(fixture);
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
        assert_int_equal(capture.location.segment, segments[i]);
    }
    index_cursor_close(cursor);
}

static void a_surt_is_not_its_longer_neighbours(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    static const char *const surts[] = {"a", "a,b", "ab", "a)/", "a)/b", "A", "b"};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 7; i++) {
            put(fixture, surts[i], 5, i + 1);
        }
        commit(fixture);
        for (int in_reverse = 0; in_reverse < 2; in_reverse++) {
            assert_string_equal(told(walk_surt(fixture, "a", INT64_MIN, INT64_MAX, in_reverse), text), "a@1");
            assert_string_equal(told(walk_surt(fixture, "a,b", INT64_MIN, INT64_MAX, in_reverse), text),
                                "a,b@2");
            assert_string_equal(told(walk_surt(fixture, "ab", INT64_MIN, INT64_MAX, in_reverse), text),
                                "ab@3");
            assert_string_equal(told(walk_surt(fixture, "", INT64_MIN, INT64_MAX, in_reverse), text), "");
            assert_string_equal(told(walk_surt(fixture, "a,", INT64_MIN, INT64_MAX, in_reverse), text), "");
        }
        compact(fixture); /* the same from files with filters */
    }
}

static void walks_a_prefix_of_surts(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    put(fixture, "a", 1, 1);
    put(fixture, "a)/", 1, 2);
    put(fixture, "a)/x", 1, 3);
    put(fixture, "a,b)/", 1, 4);
    put(fixture, "ab)/", 1, 5);
    commit(fixture);
    for (int round = 0; round < 2; round++) {
        assert_string_equal(told(walk(fixture, BYTES("a)/"), BYTES("a)/\xff"), false), text), "a)/@2 a)/x@3");
        assert_string_equal(told(walk(fixture, BYTES("a)"), BYTES("a-"), true), text),
                            "a,b)/@4 a)/x@3 a)/@2");
        assert_string_equal(told(walk(fixture, BYTES("a,b)/"), BYTES(""), false), text), "a,b)/@4 ab)/@5");
        assert_string_equal(told(walk(fixture, BYTES(""), BYTES("a)/x"), true), text), "a)/@2 a@1");
        assert_string_equal(told(walk(fixture, BYTES("b"), BYTES("a"), false), text), "");
        assert_string_equal(told(walk(fixture, BYTES("b"), BYTES("a"), true), text), "");
        compact(fixture);
    }
}

static void times_before_1970_sort_before_it(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    static const int64_t times_us[] = {-1000000, -999999, -1, 0, 1, 999999, 1000000};
    put(fixture, "a", UTC_MAX_US, 9);
    for (size_t i = 7; i > 0; i--) {
        put(fixture, "a", times_us[i - 1], i);
    }
    put(fixture, "a", UTC_MIN_US, 0);
    commit(fixture);
    assert_string_equal(told(walk_surt(fixture, "a", INT64_MIN, INT64_MAX, false), text),
                        "a@0 a@1 a@2 a@3 a@4 a@5 a@6 a@7 a@9");
    assert_string_equal(told(walk_surt(fixture, "a", -1, INT64_MAX, false), text), "a@3 a@4 a@5 a@6 a@7 a@9");
    assert_string_equal(told(walk_surt(fixture, "a", INT64_MIN, 0, true), text), "a@3 a@2 a@1 a@0");
    assert_string_equal(told(walk_surt(fixture, "a", UTC_MAX_US, INT64_MAX, false), text), "a@9");
    assert_string_equal(told(walk_surt(fixture, "a", UTC_MIN_US, UTC_MIN_US + 1, false), text), "a@0");
}

static void bounds_take_the_start_and_leave_the_end(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    for (int64_t i = 0; i < 5; i++) {
        put(fixture, "a", i, (uint64_t)i);
    }
    commit(fixture);
    assert_string_equal(told(walk_surt(fixture, "a", 1, 3, false), text), "a@1 a@2");
    assert_string_equal(told(walk_surt(fixture, "a", 1, 3, true), text), "a@2 a@1");
    assert_string_equal(told(walk_surt(fixture, "a", 3, 3, true), text), "");
}

static void many_captures_at_one_time_are_all_kept(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 20000 };
    for (uint64_t i = 0; i < COUNT; i++) {
        put(fixture, "a", 7, i * 7919 % COUNT);
    }
    commit(fixture);
    struct index_cursor *cursor = walk_surt(fixture, "a", 7, 8, false);
    struct capture capture;
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
        assert_true(capture.location.offset == i);
    }
    assert_int_equal(index_cursor_next(cursor, &capture), ERR_NOT_FOUND);
    index_cursor_close(cursor);
}

/* Random captures, some of them removed, half of them in files: every walk agrees with a sorted table. */
enum { MODEL_SURTS = 12, MODEL_TIMES = 40 };

static void model_surt(size_t i, char out[8]) {
    for (size_t n = i + 1; n > 0; n /= 2) {
        *out++ = n % 2 == 0 ? 'a' : 'b';
    }
    *out = '\0';
}

static size_t model_count(bool model[MODEL_SURTS][MODEL_TIMES], size_t surt, size_t from, size_t to) {
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        count += model[surt][i];
    }
    return count;
}

static void check_model(struct fixture *fixture, bool model[MODEL_SURTS][MODEL_TIMES], struct prng *prng) {
    size_t surt = prng_below(prng, MODEL_SURTS);
    size_t from = prng_below(prng, MODEL_TIMES);
    size_t to = prng_between(prng, from, MODEL_TIMES);
    bool in_reverse = prng_below(prng, 2);
    char text[8];
    model_surt(surt, text);
    struct index_cursor *cursor = walk_surt(fixture, text, (int64_t)from, (int64_t)to, in_reverse);
    struct capture capture;
    size_t count = 0;
    int64_t last_us = -1;
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        assert_bytes_equal(capture.surt, bytes_of_string(text));
        assert_true(capture.time_us >= (int64_t)from && capture.time_us < (int64_t)to);
        assert_true(model[surt][capture.time_us]);
        assert_true(count == 0 || (in_reverse ? capture.time_us < last_us : capture.time_us > last_us));
        last_us = capture.time_us;
        count++;
    }
    index_cursor_close(cursor);
    assert_int_equal(count, model_count(model, surt, from, to));
}

static void walks_agree_with_a_table(void **state) {
    struct fixture *fixture = *state;
    static bool model[MODEL_SURTS][MODEL_TIMES];
    struct prng prng;
    prng_init(&prng, 1);
    for (int step = 0; step < 3000; step++) {
        size_t surt = prng_below(&prng, MODEL_SURTS);
        size_t time = prng_below(&prng, MODEL_TIMES);
        char text[8];
        model_surt(surt, text);
        struct capture capture = capture_of(text, (int64_t)time, 1);
        model[surt][time] = prng_chance_ppm(&prng, 600000);
        if (model[surt][time]) {
            index_batch_put_capture(fixture->batch, &capture);
        } else {
            index_batch_remove_capture(fixture->batch, &capture);
        }
        commit(fixture);
        check_model(fixture, model, &prng);
        if (step % 1000 == 500) {
            compact(fixture);
        }
    }
}

/* ---- blocks, segments, position ---- */

static const uint8_t high[KEY_DIGEST_SIZE] = {2};

static void keeps_what_a_revisit_says_of_its_original(void **state) {
    struct fixture *fixture = *state;
    static const int64_t times_us[] = {UTC_MIN_US, -1, 0, UTC_MAX_US, INT64_MIN};
    uint8_t digest[KEY_DIGEST_SIZE] = {1};
    for (uint16_t i = 0; i < 5; i++) {
        struct block found;
        struct block block = {
            .location = {.segment = 1, .length = 1, .offset = 2},
            .references = 1,
            .origin_time_us = times_us[i],
            .origin_uri_hash = INDEX_URI_HASH_MAX - i,
        };
        index_batch_put_block(fixture->batch, digest, i, &block);
        commit(fixture);
        assert_int_equal(index_find_block(fixture->index, digest, i, &found), ERR_OK);
        assert_true(found.origin_uri_hash == INDEX_URI_HASH_MAX - i);
        assert_true(found.origin_time_us == (i < 4 ? times_us[i] : 0)); /* no such time: none */
    }
}

static void assert_block(struct fixture *fixture, const uint8_t *digest, uint16_t number, uint64_t size) {
    struct block block;
    assert_int_equal(index_find_block(fixture->index, digest, number, &block), ERR_OK);
    assert_true(block.size == size);
}

static void returns_every_field_of_a_block(void **state) {
    struct fixture *fixture = *state;
    static const int32_t references[] = {0, 1, -1, INT32_MAX, INT32_MIN};
    for (uint16_t i = 0; i < 5; i++) {
        struct block block = {
            .location = {i * UINT32_MAX, 17, i * UINT64_C(0x123456789ab)},
            .size = i == 4 ? UINT64_MAX : i,
            .references = references[i],
            .records_count = i == 3 ? UINT32_MAX : i,
        };
        struct block again;
        index_batch_put_block(fixture->batch, low, i, &block);
        commit(fixture);
        assert_int_equal(index_find_block(fixture->index, low, i, &again), ERR_OK);
        assert_int_equal(again.location.segment, block.location.segment);
        assert_int_equal(again.location.length, block.location.length);
        assert_true(again.location.offset == block.location.offset && again.size == block.size);
        assert_int_equal(again.references, block.references);
        assert_int_equal(again.records_count, block.records_count);
    }
}

static void tells_blocks_of_one_digest_apart(void **state) {
    struct fixture *fixture = *state;
    struct block block;
    for (uint16_t number = 0; number < 3; number++) {
        block = block_of(number);
        index_batch_put_block(fixture->batch, low, number, &block);
    }
    commit(fixture);
    assert_block(fixture, low, 0, 0);
    assert_block(fixture, low, 2, 2);
    block.size = 77;
    assert_int_equal(index_find_block(fixture->index, low, 3, &block), ERR_NOT_FOUND);
    assert_int_equal(index_find_block(fixture->index, high, 0, &block), ERR_NOT_FOUND);
    assert_true(block.size == 77);
}

/* Pages that only a writer asked for would fill the cache in the course of a crawl. */
static void a_probe_finds_the_same_and_leaves_the_cache_as_it_is(void **state) {
    enum { COUNT = 10000 };
    struct fixture *fixture = *state;
    for (uint16_t number = 0; number < COUNT; number++) {
        struct block block = block_of(number);
        index_batch_put_block(fixture->batch, low, number, &block);
    }
    commit(fixture);
    compact(fixture);
    index_set_cache_size(fixture->index, 0); /* it is empty now */
    index_set_cache_size(fixture->index, 64 << 20);
    struct block block;
    size_t at_first = kv_stat(index_kv(fixture->index)).cache_size;
    for (uint16_t number = 0; number < COUNT; number++) {
        assert_int_equal(index_probe_block(fixture->index, low, number, &block), ERR_OK);
        assert_true(block.size == number);
    }
    assert_int_equal(index_probe_block(fixture->index, high, 0, &block), ERR_NOT_FOUND);
    size_t after_probes = kv_stat(index_kv(fixture->index)).cache_size;
    for (uint16_t number = 0; number < COUNT; number++) {
        assert_block(fixture, low, number, number);
    }
    size_t after_finds = kv_stat(index_kv(fixture->index)).cache_size;
    assert_in_range(after_probes - at_first, 1, (after_finds - after_probes) / 10); /* filters, no pages */
}

static void walks_blocks_in_order(void **state) {
    struct fixture *fixture = *state;
    static const uint16_t numbers[] = {256, 1, 0, 255};
    struct index_cursor *cursor = NULL;
    for (size_t i = 0; i < 4; i++) {
        struct block block = block_of(numbers[i]);
        index_batch_put_block(fixture->batch, low, numbers[i], &block);
    }
    struct block other = block_of(1000);
    index_batch_put_block(fixture->batch, high, 0, &other);
    commit(fixture);
    assert_int_equal(index_blocks_open(fixture->index, &cursor), ERR_OK);
    static const uint64_t sizes[] = {0, 1, 255, 256, 1000};
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number = 0;
    struct block block;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(index_blocks_next(cursor, digest, &number, &block), ERR_OK);
        assert_true(block.size == sizes[i]);
        assert_int_equal(number, i == 4 ? 0 : sizes[i]);
        assert_memory_equal(digest, i == 4 ? high : low, sizeof digest);
    }
    assert_int_equal(index_blocks_next(cursor, digest, &number, &block), ERR_NOT_FOUND);
    index_cursor_close(cursor);
}

static void keeps_segments_and_position(void **state) {
    struct fixture *fixture = *state;
    struct index_position position = {9, 9};
    struct index_segment segment = {.size = 10, .dead_size = 3, .records_count = 2};
    assert_int_equal(index_position(fixture->index, &position), ERR_OK);
    assert_int_equal(position.segment, 0);
    assert_true(position.offset == 0);
    index_batch_put_segment(fixture->batch, 7, &segment);
    index_batch_set_position(fixture->batch, &(struct index_position){7, UINT64_MAX});
    commit(fixture);
    reopen(fixture);
    segment = (struct index_segment){0};
    assert_int_equal(index_find_segment(fixture->index, 7, &segment), ERR_OK);
    assert_true(segment.size == 10 && segment.dead_size == 3 && segment.records_count == 2);
    assert_int_equal(index_find_segment(fixture->index, 8, &segment), ERR_NOT_FOUND);
    assert_int_equal(index_position(fixture->index, &position), ERR_OK);
    assert_int_equal(position.segment, 7);
    assert_true(position.offset == UINT64_MAX);
}

static void removed_entries_are_gone(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    struct block block = block_of(1);
    struct index_segment segment = {0};
    struct capture capture = capture_of("a", 1, 1);
    index_batch_put_block(fixture->batch, low, 0, &block);
    index_batch_put_block(fixture->batch, low, 1, &block);
    index_batch_put_segment(fixture->batch, 1, &segment);
    put(fixture, "a", 1, 1);
    put(fixture, "a", 1, 2);
    commit(fixture);
    compact(fixture);
    index_batch_remove_block(fixture->batch, low, 0);
    index_batch_remove_segment(fixture->batch, 1);
    capture.url = BYTES("http://another.example/"); /* only the key matters */
    index_batch_remove_capture(fixture->batch, &capture);
    commit(fixture);
    assert_int_equal(index_find_block(fixture->index, low, 0, &block), ERR_NOT_FOUND);
    assert_block(fixture, low, 1, 1);
    assert_int_equal(index_find_segment(fixture->index, 1, &segment), ERR_NOT_FOUND);
    assert_string_equal(told(walk(fixture, BYTES(""), BYTES(""), false), text), "a@2");
}

static void counts_what_it_holds(void **state) {
    struct fixture *fixture = *state;
    struct index_counts counts;
    for (uint16_t i = 0; i < 1000; i++) {
        struct block block = block_of(i);
        index_batch_put_block(fixture->batch, low, i, &block);
        put(fixture, "a", i, 1);
        put(fixture, "a", i, 2);
    }
    commit(fixture);
    index_counts(fixture->index, &counts);
    assert_true(counts.blocks_count == 1000 && counts.captures_count == 2000);
    assert_true(counts.disk_size == 0 && counts.memory_size > 0);
    compact(fixture);
    index_counts(fixture->index, &counts);
    assert_true(counts.blocks_count == 1000 && counts.captures_count == 2000);
    assert_true(counts.disk_size > 10000 && counts.disk_size < 200000);
}

/* ---- batches ---- */

static void remembers_that_a_block_has_died(void **state) {
    struct fixture *fixture = *state;
    const uint8_t digest[KEY_DIGEST_SIZE] = {1};
    struct block block = {.location = {.segment = 1, .length = 10}, .size = 5, .references = 1};
    index_batch_put_block(fixture->batch, digest, 0, &block);
    commit(fixture);
    assert_false(index_has_dead(fixture->index));
    block.references = 0;
    index_batch_put_block(fixture->batch, digest, 0, &block);
    commit(fixture);
    assert_true(index_has_dead(fixture->index));
    reopen(fixture);
    assert_true(index_has_dead(fixture->index));
}

static void a_batch_is_nothing_until_it_is_committed(void **state) {
    struct fixture *fixture = *state;
    put(fixture, "a", 1, 1);
    assert_int_equal(count_all(fixture), 0);
    reopen(fixture);
    assert_int_equal(count_all(fixture), 0);
    put(fixture, "a", 1, 1);
    index_batch_clear(fixture->batch);
    put(fixture, "b", 1, 1);
    commit(fixture);
    assert_int_equal(count_all(fixture), 1);
    put(fixture, "c", 1, 1);
    commit(fixture);
    commit(fixture); /* empty */
    assert_int_equal(count_all(fixture), 2);
}

/* ---- cursors ---- */

static void a_cursor_sees_what_was_there_when_it_was_opened(void **state) {
    struct fixture *fixture = *state;
    char text[1000];
    struct capture second = capture_of("a", 1, 2);
    put(fixture, "a", 1, 1);
    put(fixture, "a", 1, 2);
    put(fixture, "a", 1, 3);
    commit(fixture);
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    struct index_cursor *reverse = walk_surt(fixture, "a", 0, 2, true);
    index_batch_remove_capture(fixture->batch, &second);
    put(fixture, "a", 1, 4);
    put(fixture, "a", 0, 5);
    commit(fixture);
    compact(fixture); /* the files under the cursor are replaced */
    assert_string_equal(told(cursor, text), "a@1 a@2 a@3");
    assert_string_equal(told(reverse, text), "a@3 a@2 a@1");
    assert_string_equal(told(walk(fixture, BYTES(""), BYTES(""), false), text), "a@5 a@1 a@3 a@4");
}

static void what_a_cursor_returned_may_be_removed_on_the_way(void **state) {
    struct fixture *fixture = *state;
    struct capture capture;
    for (uint64_t i = 0; i < 1000; i++) {
        put(fixture, "a", 1, i);
    }
    commit(fixture);
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    size_t count = 0;
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        index_batch_remove_capture(fixture->batch, &capture);
        commit(fixture);
        count++;
    }
    index_cursor_close(cursor);
    assert_int_equal(count, 1000);
    assert_int_equal(count_all(fixture), 0);
}

static void a_cursor_may_be_closed_at_any_time(void **state) {
    struct fixture *fixture = *state;
    struct capture capture;
    put(fixture, "a", 1, 1);
    commit(fixture);
    index_cursor_close(walk(fixture, BYTES(""), BYTES(""), false));
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), true);
    assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
    index_cursor_close(cursor);
}

/* ---- without memory ---- */

static void without_memory_nothing_opens(void **state) {
    struct fixture *fixture = *state;
    struct index *index = NULL;
    struct index_cursor *cursor = NULL;
    allocations_left = 0;
    assert_null(index_batch_new());
    assert_int_equal(index_open(fixture->directory, &index, NULL), ERR_MEMORY);
    assert_int_equal(index_cursor_open(fixture->index, BYTES("a"), BYTES("b"), false, &cursor), ERR_MEMORY);
    assert_int_equal(index_blocks_open(fixture->index, &cursor), ERR_MEMORY);
    allocations_left = 1;
    assert_int_equal(index_cursor_open(fixture->index, BYTES("a"), BYTES("b"), false, &cursor), ERR_MEMORY);
    allocations_left = 2;
    assert_int_equal(index_cursor_open(fixture->index, BYTES("a"), BYTES("b"), false, &cursor), ERR_MEMORY);
    assert_null(cursor);
}

/* Changes reach the index in the order of their keys; of one key, in the order in which they were made. */
static void the_last_change_of_a_key_counts(void **state) {
    struct fixture *fixture = *state;
    struct index_batch *batch = index_batch_new();
    struct capture kept = capture_of("b", 1, 1);
    struct capture gone = capture_of("a", 1, 1);
    struct block block = {.references = 1, .location = {.segment = 1, .length = 1}, .size = 5};
    uint8_t digest[KEY_DIGEST_SIZE] = {7};
    index_batch_remove_capture(batch, &kept);
    index_batch_put_capture(batch, &kept);
    index_batch_put_capture(batch, &gone);
    index_batch_remove_capture(batch, &gone);
    for (uint64_t size = 1; size <= 50; size++) {
        block.size = size;
        index_batch_put_block(batch, digest, 0, &block);
    }
    assert_int_equal(index_commit(fixture->index, batch, NULL), ERR_OK);
    index_batch_free(batch);
    assert_int_equal(count_all(fixture), 1);
    assert_int_equal(index_find_block(fixture->index, digest, 0, &block), ERR_OK);
    assert_int_equal(block.size, 50);
}

/* Fail the first, the second … allocation until all is well: a batch is committed whole or not at all. */
static void without_memory_a_batch_stays_out(void **state) {
    struct fixture *fixture = *state;
    enum err err = ERR_MEMORY;
    size_t failures = 0;
    for (size_t left = 0; err != ERR_OK; left++) {
        struct index_batch *batch = index_batch_new();
        struct err_detail detail = {0};
        struct capture first = capture_of("a", 1, 1);
        struct capture second = capture_of("b,a)/a-surt-that-makes-the-buffers-grow-once-more-than-before"
                                           "-because-it-is-longer-than-what-they-hold-at-first",
                                           1, 1);
        allocations_left = left;
        index_batch_put_capture(batch, &first);
        index_batch_put_capture(batch, &second);
        err = index_commit(fixture->index, batch, &detail);
        allocations_left = SIZE_MAX;
        assert_true(err == ERR_OK || err == ERR_MEMORY);
        assert_int_equal(count_all(fixture), err == ERR_OK ? 2 : 0);
        if (err != ERR_OK) {
            failures++;
            assert_int_equal(index_commit(fixture->index, batch, NULL), ERR_MEMORY);
            index_batch_clear(batch);
            assert_int_equal(index_commit(fixture->index, batch, NULL), ERR_OK);
        }
        index_batch_free(batch);
    }
    assert_true(failures >= 3);
}

static void without_memory_a_walk_says_so(void **state) {
    struct fixture *fixture = *state;
    struct capture capture;
    put(fixture, "a", 1, 1);
    commit(fixture);
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    allocations_left = 0;
    assert_int_equal(index_cursor_next(cursor, &capture), ERR_MEMORY);
    allocations_left = SIZE_MAX;
    index_cursor_close(cursor);
}

/* ---- at rest ---- */

static void a_settled_index_has_every_capture_once(void **state) {
    struct fixture *fixture = *state;
    struct index_counts counts;
    put_batch(fixture, 1);
    compact(fixture);
    index_counts(fixture->index, &counts);
    uint64_t captures_count = counts.captures_count;
    put_batch(fixture, 1); /* the same again */
    assert_int_equal(kv_flush(index_kv(fixture->index), NULL), ERR_OK);
    index_counts(fixture->index, &counts);
    assert_true(counts.captures_count > captures_count);
    index_settle(fixture->index);
    await_that((index_counts(fixture->index, &counts), counts.captures_count == captures_count));
    assert_int_equal(assert_whole_batches(fixture), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(returns_every_field_of_a_capture),
        TEST(completes_the_digests_of_revisits_from_their_blocks),
        TEST(returns_the_url_as_it_was_fetched),
        TEST(holds_the_longest_surt_and_url),
        TEST(knows_what_it_cannot_hold),
        TEST(putting_what_it_cannot_hold_is_a_mistake),
        TEST(walks_by_surt_then_time_then_location),
        TEST(segments_sort_as_numbers),
        TEST(a_surt_is_not_its_longer_neighbours),
        TEST(walks_a_prefix_of_surts),
        TEST(times_before_1970_sort_before_it),
        TEST(bounds_take_the_start_and_leave_the_end),
        TEST(many_captures_at_one_time_are_all_kept),
        TEST(walks_agree_with_a_table),
        TEST(returns_every_field_of_a_block),
        TEST(tells_blocks_of_one_digest_apart),
        TEST(a_probe_finds_the_same_and_leaves_the_cache_as_it_is),
        TEST(keeps_what_a_revisit_says_of_its_original),
        TEST(walks_blocks_in_order),
        TEST(keeps_segments_and_position),
        TEST(removed_entries_are_gone),
        TEST(counts_what_it_holds),
        TEST(remembers_that_a_block_has_died),
        TEST(a_batch_is_nothing_until_it_is_committed),
        TEST(a_cursor_sees_what_was_there_when_it_was_opened),
        TEST(what_a_cursor_returned_may_be_removed_on_the_way),
        TEST(a_cursor_may_be_closed_at_any_time),
        TEST(a_settled_index_has_every_capture_once),
        TEST(without_memory_nothing_opens),
        TEST(the_last_change_of_a_key_counts),
        TEST(without_memory_a_batch_stays_out),
        TEST(without_memory_a_walk_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

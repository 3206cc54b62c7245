/* recent: what was committed last is known without reading it, and is what the segments say. */
#include "store/index/recent.h"

#include "store/volume/follow.h"
#include "volume-fixture.h"

/* ---- the list ---- */

static struct ledger_entry entry_at(uint32_t segment, uint64_t offset, struct bytes url) {
    return (struct ledger_entry){
        .kind = LEDGER_ORIGINAL,
        .location = {.segment = segment, .offset = offset, .length = 10},
        .surt = BYTES("org,example)/"),
        .url = url,
        .mime = BYTES("text/html"),
    };
}

static bool has(struct recent *recent, uint32_t segment, uint64_t offset) {
    struct index_position position = {.segment = segment, .offset = offset};
    struct ledger_entry entry;
    struct buf text;
    buf_init(&text, RECENT_SIZE_MAX);
    bool is_found = recent_find(recent, &position, &text, &entry);
    if (is_found) {
        assert_int_equal(entry.location.offset, offset);
        assert_bytes_equal(entry.surt, BYTES("org,example)/"));
        assert_bytes_equal(entry.mime, BYTES("text/html"));
    }
    buf_done(&text);
    return is_found;
}

static void finds_what_begins_at_a_position(void **state) {
    struct recent recent;
    (void)state;
    recent_init(&recent);
    assert_false(has(&recent, 1, 0));
    for (uint32_t segment = 1; segment < 4; segment++) {
        for (uint64_t offset = 0; offset < 100; offset += 10) {
            struct ledger_entry entry = entry_at(segment, offset, BYTES("http://example.org/"));
            recent_add(&recent, &entry);
        }
    }
    assert_true(has(&recent, 1, 0));
    assert_true(has(&recent, 2, 50));
    assert_true(has(&recent, 3, 90));
    assert_false(has(&recent, 2, 55));
    assert_false(has(&recent, 2, 100));
    assert_false(has(&recent, 4, 0));
    recent_done(&recent);
}

static void forgets_the_oldest(void **state) {
    struct recent recent;
    (void)state;
    recent_init(&recent);
    for (uint64_t i = 0; i < RECENT_COUNT_MAX + 5; i++) {
        struct ledger_entry entry = entry_at(1, i * 10, BYTES("http://example.org/"));
        recent_add(&recent, &entry);
    }
    assert_int_equal(recent.count, RECENT_COUNT_MAX);
    assert_false(has(&recent, 1, 40));
    assert_true(has(&recent, 1, 50));
    assert_true(has(&recent, 1, (RECENT_COUNT_MAX + 4) * 10));
    recent_done(&recent);
}

static void is_bounded_in_bytes(void **state) {
    static uint8_t url[RECENT_SIZE_MAX + 1];
    struct recent recent;
    (void)state;
    recent_init(&recent);
    for (uint64_t i = 0; i < 10; i++) {
        struct ledger_entry entry = entry_at(1, i * 10, bytes_of(url, RECENT_SIZE_MAX / 4));
        recent_add(&recent, &entry);
        assert_true(recent.size <= RECENT_SIZE_MAX);
    }
    assert_int_equal(recent.count, 3);
    struct ledger_entry large = entry_at(1, 100, bytes_of(url, sizeof url));
    recent_add(&recent, &large);
    assert_false(has(&recent, 1, 100));
    assert_true(has(&recent, 1, 90));
    recent_done(&recent);
}

/* ---- against the segments ---- */

static void put_document(struct fixture *fixture, unsigned n) {
    char url[64];
    char body[64];
    int url_size = snprintf(url, sizeof url, "http://example.org/%u?b=2&a=1", n);
    int body_size = snprintf(body, sizeof body, "the body of %u", n % 7); /* many are duplicates */
    struct document document = {
        .url = n % 5 == 4 ? bytes_of(NULL, 0) : bytes_of(url, (size_t)url_size),
        .time_us = 1000000 * (int64_t)(n + 1) + n,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"),
        .body = bytes_of(body, (size_t)body_size),
        .request = n % 2 == 0 ? BYTES("GET / HTTP/1.1\r\n\r\n") : bytes_of(NULL, 0),
        .truncated = n % 3 == 0 ? BYTES("length") : bytes_of(NULL, 0),
    };
    struct stored stored;
    struct err_detail detail = {0};
    if (volume_put(fixture->writer, &document, n % 11 == 0 ? STORE_FORCE_NEW : STORE_REGULAR, &stored,
                   &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    if (n % 13 == 0) {
        assert_int_equal(volume_remove(fixture->writer, &stored.key, NULL), ERR_OK);
    }
}

static void expect_next(struct follow *follow, const struct ledger_entry *expected) {
    struct ledger_entry entry;
    assert_int_equal(follow_next(follow, &entry, NULL), ERR_OK);
    assert_int_equal(entry.kind, expected->kind);
    assert_int_equal(entry.location.segment, expected->location.segment);
    assert_int_equal(entry.location.offset, expected->location.offset);
    assert_int_equal(entry.location.length, expected->location.length);
    if (entry.kind != LEDGER_ORIGINAL && entry.kind != LEDGER_REVISIT) {
        return; /* nothing else is said of it */
    }
    assert_memory_equal(entry.digest, expected->digest, sizeof entry.digest);
    assert_int_equal(entry.number, expected->number);
    assert_int_equal(entry.time_us, expected->time_us);
    assert_int_equal(entry.uri_hash, expected->uri_hash);
    assert_bytes_equal(entry.surt, expected->surt);
    assert_bytes_equal(entry.url, expected->url);
    assert_bytes_equal(entry.mime, expected->mime);
    assert_int_equal(entry.status, expected->status);
    if (entry.surt.size > 0) { /* they belong to the capture */
        assert_int_equal(entry.flags, expected->flags);
    }
    assert_int_equal(entry.is_bare, expected->is_bare);
}

/* With a copy of what it borrows. */
static void keep(const struct ledger_entry *entry, struct buf *text, struct ledger_entry *ret_entry) {
    const struct bytes slices[] = {entry->surt, entry->url, entry->mime};
    struct bytes *kept[] = {&ret_entry->surt, &ret_entry->url, &ret_entry->mime};
    *ret_entry = *entry;
    buf_init(text, RECENT_SIZE_MAX);
    assert_int_equal(buf_reserve(text, entry->surt.size + entry->url.size + entry->mime.size + 1), ERR_OK);
    for (size_t i = 0; i < 3; i++) {
        size_t from = text->size;
        assert_int_equal(buf_put(text, slices[i]), ERR_OK);
        *kept[i] = bytes_slice(buf_bytes(text), from, text->size);
    }
}

static struct index_position go_to_end(struct follow *follow) {
    struct ledger_entry entry;
    enum err err;
    while ((err = follow_next(follow, &entry, NULL)) == ERR_OK) {
    }
    assert_int_equal(err, ERR_NOT_FOUND);
    return follow_position(follow);
}

/* One follows closely and is given what the committer knows; the other reads all of it anew. */
static void gives_the_same_as_the_segments(void **state) {
    enum { COUNT = 60, ENTRIES_MAX = 4 * COUNT };
    struct fixture *fixture = *state;
    struct ledger_entry entries[ENTRIES_MAX];
    struct ledger_entry entry;
    struct buf texts[ENTRIES_MAX];
    size_t count = 0;
    put_document(fixture, 0);
    struct follow *follow = follow_new(fixture->volume);
    struct index_position from = go_to_end(follow);
    for (unsigned n = 1; n < COUNT; n++) {
        put_document(fixture, n);
    }
    for (; follow_next(follow, &entry, NULL) == ERR_OK; count++) {
        assert_true(count < ENTRIES_MAX);
        keep(&entry, &texts[count], &entries[count]);
    }
    assert_true(count >= COUNT - 1);
    assert_false(follow_is_behind(follow));
    follow_free(follow);
    reopen(fixture); /* what was in memory is gone */
    follow = follow_new(fixture->volume);
    follow_seek(follow, &from);
    for (size_t i = 0; i < count; i++) {
        expect_next(follow, &entries[i]);
        buf_done(&texts[i]);
    }
    follow_free(follow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_begins_at_a_position),
        cmocka_unit_test(forgets_the_oldest),
        cmocka_unit_test(is_bounded_in_bytes),
        cmocka_unit_test_setup_teardown(gives_the_same_as_the_segments, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

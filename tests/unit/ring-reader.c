/* ring_reader: an archive that is read through a node that holds none of it. */
#include "await.h"
#include "node/reading/ring_reader_scope.h"
#include "node/reading/ring_reader_state.h"
#include "replay/archive/archive.h"
#include "ring-reader-fixture.h"
#include "store/instance/merge.h"
#include "store/instance/record.h"

enum { MANY_COUNT = 4500 };

/* "surt seconds" lines of a walk through the reader, and how it ended. */
static enum err walk(struct fixture *fixture, struct bytes from, struct bytes to, bool in_reverse,
                     struct buf *out, bool *ret_is_partial) {
    struct merge *merge;
    struct capture capture;
    buf_clear(out);
    enum err err = merge_open(fixture->nodes[READER].session, from, to, in_reverse, &merge, NULL);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = merge_next(merge, &capture, NULL)) == ERR_OK) {
        buf_put(out, capture.surt);
        buf_put_format(out, " %jd\n", (intmax_t)(capture.time_us / SECOND_US));
    }
    *ret_is_partial = merge_is_partial(merge);
    merge_close(merge);
    return err;
}

static void expect(struct fixture *fixture, const char *from, const char *to, bool in_reverse,
                   const char *expected) {
    struct buf out;
    bool is_partial;
    buf_init(&out, 1 << 20);
    assert_int_equal(walk(fixture, bytes_of_string(from), bytes_of_string(to), in_reverse, &out, &is_partial),
                     ERR_NOT_FOUND);
    assert_string_equal(buf_string(&out), expected);
    assert_false(is_partial);
    buf_done(&out);
}

static void put_bounds(const char *surt, struct buf *from, struct buf *to) {
    buf_init(from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(to, BACKEND_CODE_KEY_SIZE_MAX);
    index_put_capture_prefix(from, bytes_of_string(surt), INT64_MIN);
    index_put_capture_prefix(to, bytes_of_string(surt), INT64_MAX);
}

/* The captures of one SURT; returns how many, and the last one, whose slices are gone. */
static size_t list(struct fixture *fixture, const char *surt, struct capture *ret_last,
                   bool *ret_is_partial) {
    struct buf from;
    struct buf to;
    struct merge *merge;
    struct capture capture;
    size_t count = 0;
    put_bounds(surt, &from, &to);
    assert_int_equal(
        merge_open(fixture->nodes[READER].session, buf_bytes(&from), buf_bytes(&to), false, &merge, NULL),
        ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        *ret_last = capture;
        count++;
    }
    *ret_is_partial = merge_is_partial(merge);
    merge_close(merge);
    buf_done(&from);
    buf_done(&to);
    return count;
}

static void put(struct fixture *fixture, unsigned node, const char *url, int64_t seconds, const char *body) {
    struct document document = fixture_document(url, seconds, bytes_of_string(body));
    if (node == 0) {
        fixture_put(fixture, &document);
    } else {
        fixture_put_at(fixture, node, &document);
    }
}

static void put_some(struct fixture *fixture) {
    put(fixture, 0, "http://example.org/a", 1, "a1");
    put(fixture, 0, "http://example.org/a", 2, "a2");
    put(fixture, 0, "http://example.org/ab", 3, "a1");
    put(fixture, 0, "http://www.example.org/a", 4, "a4");
    put(fixture, 0, "http://sub.example.org/", 5, "s5");
    put(fixture, 0, "http://example.net/", 6, "n6");
}

static void walks_find_what_others_hold(void **state) {
    struct fixture *fixture = *state;
    put_some(fixture);
    expect(fixture, "", "", false,
           "net,example)/ 6\norg,example)/a 1\norg,example)/a 2\norg,example)/a 4\norg,example)/ab 3\n"
           "org,example,sub)/ 5\n");
    expect(fixture, "org,example)/", "org,example)/\xff", true,
           "org,example)/ab 3\norg,example)/a 4\norg,example)/a 2\norg,example)/a 1\n");
    expect(fixture, "org,example", "org,example\xff", false,
           "org,example)/a 1\norg,example)/a 2\norg,example)/a 4\norg,example)/ab 3\norg,example,sub)/ 5\n");
    struct capture last;
    bool is_partial;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_false(is_partial);
    assert_int_equal(last.volume, INSTANCE_GUEST_NUMBER);
    assert_int_equal(last.status, 200);
    assert_int_equal(list(fixture, "org,example)/none", &last, &is_partial), 0);
    assert_false(is_partial);
    assert_int_equal(fixture->blames_count, 0);
}

/* What this node has too is given once, from its own volume; who was compared asks nobody. */
static void own_captures_come_first(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    struct ring_view_rpc before;
    struct ring_view_rpc after;
    put_some(fixture);
    struct document document = fixture_document("http://www.example.org/a", 4, BYTES("a4"));
    fixture_put_at(fixture, READER, &document);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_int_equal(last.volume, 0);
    fixture->nodes[READER].is_current = true;
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &before);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1);
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &after);
    assert_int_equal(after.questions_count, before.questions_count);
}

/* How many the shelf itself gives of a SURT, and that their locations are in order. */
static size_t count_given(struct fixture *fixture, const char *surt, bool in_reverse) {
    const struct backend_table *table = fixture->backend->table;
    struct backend_session *session;
    struct backend_cursor *cursor;
    struct capture capture;
    struct capture last = {0};
    struct buf from;
    struct buf to;
    size_t count = 0;
    put_bounds(surt, &from, &to);
    assert_int_equal(table->session_open(fixture->backend, &session), ERR_OK);
    assert_int_equal(
        table->captures_open(session, buf_bytes(&from), buf_bytes(&to), in_reverse, &cursor, NULL), ERR_OK);
    while (table->captures_next(cursor, &capture, NULL) == ERR_OK) {
        if (count > 0 && capture.time_us == last.time_us) {
            bool is_above = capture.location.offset > last.location.offset;
            assert_true(is_above != in_reverse && capture.location.offset != last.location.offset);
        }
        last = capture;
        count++;
    }
    table->cursor_close(cursor);
    table->session_close(session);
    buf_done(&from);
    buf_done(&to);
    return count;
}

/* So much time has passed that what was listed is not fresh, or not even of use where nobody answers. */
static void age_listings(struct fixture *fixture, bool is_gone) {
    struct ring_reader_cache *listings = &((struct ring_reader *)fixture->backend)->listings;
    size_t cursor = 0;
    struct bytes key;
    void *value;
    pthread_mutex_lock(&listings->lock);
    while (map_next(&listings->by_key, &cursor, &key, &value)) {
        struct ring_reader_listing *listing = *(struct ring_reader_listing **)value;
        listing->fresh_until_us = 0;
        listing->made_at_us = is_gone ? 0 : listing->made_at_us;
        listing->count = is_gone ? 0 : listing->count;
    }
    pthread_mutex_unlock(&listings->lock);
}

static uint64_t questions_of(struct fixture *fixture) {
    struct ring_view_rpc stat;
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &stat);
    return stat.questions_count;
}

/* Nobody was compared yet: all holders are asked, and what each has is merged. */
static void holders_that_differ_are_merged(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture->nodes[i].is_current = false;
        put(fixture, i, "http://example.org/a", 10 + i, "one");
        put(fixture, i, "http://example.org/a", 20, i == 3 ? "other" : "same");
    }
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 5);
    assert_false(is_partial);
    assert_int_equal(count_given(fixture, "org,example)/a", false), 5);
    assert_int_equal(count_given(fixture, "org,example)/a", true), 5);
    age_listings(fixture, true);
    fixture->nodes[2].is_current = true; /* it answers for all */
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 2);
}

/* What is new at one holder has not come to the others yet, which think that they know all. */
static void nothing_is_not_said_for_all(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    put(fixture, 3, "http://example.org/a", 1, "new");
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1);
    assert_false(is_partial);
    assert_int_equal(list(fixture, "org,example)/b", &last, &is_partial), 0);
    assert_false(is_partial);
    fixture_stop_peer_rpc(&fixture->nodes[3]);
    assert_int_equal(list(fixture, "org,example)/c", &last, &is_partial), 0);
    assert_false(is_partial); /* one who knows has said so, and nobody else */
    fixture->nodes[1].is_current = fixture->nodes[2].is_current = false;
    assert_int_equal(list(fixture, "org,example)/d", &last, &is_partial), 0);
    assert_true(is_partial);
}

/* The same of this node itself, which asks nobody about what it has. */
static void who_was_compared_and_has_nothing_asks_the_others(void **state) {
    struct fixture *fixture = *state;
    struct node *reader = &fixture->nodes[READER];
    struct capture last;
    bool is_partial;
    put(fixture, 3, "http://example.org/a", 1, "new");
    reader->is_current = true;
    uint64_t before_count = questions_of(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 0);
    assert_int_equal(questions_of(fixture), before_count);
    reader->has_nothing = true;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1);
    assert_false(is_partial);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture_stop_peer_rpc(&fixture->nodes[i]);
    }
    assert_int_equal(list(fixture, "org,example)/b", &last, &is_partial), 0);
    assert_false(is_partial);
    fixture->has_no_holders = true;
    assert_int_equal(list(fixture, "org,example)/c", &last, &is_partial), 0);
    assert_false(is_partial);
    struct ring_reader *backend = (struct ring_reader *)fixture->backend;
    backend->waiters_count = WAITERS_MAX; /* it cannot ask */
    assert_int_equal(list(fixture, "org,example)/d", &last, &is_partial), 0);
    assert_false(is_partial);
    backend->waiters_count = 0;
}

/* The copy was not there when the walk began, and is when this node is asked whether it has any. */
static void what_comes_in_the_middle_is_found(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    struct document document = fixture_document("http://example.org/a", 1, BYTES("new"));
    put(fixture, 3, "http://example.org/a", 1, "new");
    fixture->nodes[READER].is_current = true;
    fixture->nodes[READER].coming = &document;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1);
    assert_int_equal(last.volume, 0);
}

/* ---- documents ---- */

/* The record as the reader sees it. */
static void expect_record(struct fixture *fixture, const struct capture *capture, struct bytes body) {
    struct record record;
    struct bytes request;
    struct instance_session *session = instance_session_new(fixture->nodes[READER].instance);
    instance_session_set_guest(session, true);
    assert_int_equal(record_init(&record), ERR_OK);
    struct location location = capture->location;
    if (capture->flags & CAPTURE_REVISIT) {
        struct key key;
        struct block block;
        assert_int_equal(instance_locate(session, capture, &key, &block, NULL), ERR_OK);
        assert_int_equal(record_read(&record, session, capture->volume, &location, NULL), ERR_OK);
        assert_int_equal(record.header.type, WARC_TYPE_REVISIT);
        assert_int_equal(record.body.size, 0);
        location = block.location;
    }
    assert_int_equal(record_read(&record, session, capture->volume, &location, NULL), ERR_OK);
    assert_int_equal(record.header.type, WARC_TYPE_RESPONSE);
    assert_bytes_equal(record.head, BYTES(HEAD));
    assert_bytes_equal(record.body, body);
    assert_bytes_equal(fields_get(&record.header.fields, BYTES("WARC-IP-Address")), BYTES("192.0.2.1"));
    assert_int_equal(instance_get_request(session, capture->volume, &capture->location, &request, NULL),
                     ERR_OK);
    assert_bytes_equal(request, BYTES("GET / HTTP/1.1\r\n\r\n"));
    struct key key = {.volume = capture->volume};
    struct bytes document;
    memcpy(key.digest, capture->digest, sizeof key.digest);
    assert_int_equal(instance_get(session, &key, &document, NULL), ERR_OK);
    assert_bytes_equal(document, body);
    record_done(&record);
    instance_session_free(session);
}

static void documents_are_read_through(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    put_some(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    expect_record(fixture, &last, BYTES("a4"));
    assert_int_equal(list(fixture, "org,example)/ab", &last, &is_partial), 1);
    assert_true(last.flags & CAPTURE_REVISIT);
    expect_record(fixture, &last, BYTES("a1"));
    uint64_t before_count = questions_of(fixture);
    expect_record(fixture, &last, BYTES("a1")); /* from memory */
    assert_int_equal(questions_of(fixture), before_count);
    struct location unknown = {.segment = RING_READER_OWN, .offset = 12345};
    struct bytes record;
    assert_int_equal(
        instance_get_record(fixture->nodes[READER].session, INSTANCE_GUEST_NUMBER, &unknown, &record, NULL),
        ERR_NOT_FOUND);
}

/* A 304 has no document of its own: that of the capture before it is given, with its head. */
static void what_was_not_modified_leads_to_its_original(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    struct key key;
    struct block block;
    struct bytes record;
    bool is_partial;
    struct instance_session *session = fixture->nodes[READER].session;
    struct document document = fixture_document("http://example.org/a", 2, bytes_of(NULL, 0));
    struct document_sum sum = {.size = 2};
    struct sha256 sha256;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, BYTES("a1"), sum.digest);
    sha256_done(&sha256);
    put(fixture, 0, "http://example.org/a", 1, "a1");
    document.head = BYTES("HTTP/1.1 304 Not Modified\r\n\r\n");
    document.sum = &sum;
    document.is_not_modified = document.is_body_left_out = true;
    fixture_put(fixture, &document);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 2);
    assert_int_equal(last.status, 304);
    assert_int_equal(instance_get_record(session, last.volume, &last.location, &record, NULL), ERR_OK);
    assert_true(bytes_find(record, BYTES("server-not-modified")) < record.size);
    struct location location = last.location;
    location.segment = RING_READER_WHOLE; /* as if only it had been listed */
    assert_int_equal(instance_get_record(session, last.volume, &location, &record, NULL), ERR_OK);
    assert_true(bytes_find(record, BYTES("HTTP/1.1 200 OK")) < record.size);
    assert_int_equal(instance_locate(session, &last, &key, &block, NULL), ERR_OK);
    assert_int_equal(instance_get_record(session, key.volume, &block.location, &record, NULL), ERR_OK);
    assert_true(bytes_ends_with(record, BYTES("\r\n\r\na1\r\n\r\n")));
}

/* Replay knows nothing of a ring: it finds and opens what this node does not have. */
static void replay_reads_through(void **state) {
    struct fixture *fixture = *state;
    struct archive_config config = {
        .instance = fixture->nodes[READER].instance,
        .scratch_directory = fixture->root,
    };
    struct archive *archive = archive_new(&config);
    struct archive_reader *reader = archive_reader_begin(archive);
    struct archive_record record;
    struct capture capture;
    struct bytes surt;
    put_some(fixture);
    static const char *const urls[] = {"http://example.org/a", "http://example.org/ab"};
    static const char *const bodies[] = {"a2", "a1"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(archive_key(reader, bytes_of_string(urls[i]), &surt, NULL), ERR_OK);
        assert_int_equal(
            archive_find(reader, surt, bytes_of(NULL, 0), 2 * SECOND_US, ARCHIVE_CLOSEST, &capture, NULL),
            ERR_OK);
        assert_int_equal(archive_open(reader, &capture, &record, NULL), ERR_OK);
        assert_bytes_equal(record.body, bytes_of_string(bodies[i]));
        assert_bytes_equal(record.head, BYTES(HEAD));
    }
    archive_reader_end(reader);
    archive_free(archive);
}

/* While one of the holders lives, everything is there. */
static void holders_die_one_by_one(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    char body[16];
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://example.org/%u", i); /* another each time: none is in memory */
        snprintf(body, sizeof body, "body %u", i);
        put(fixture, 0, url, i, body);
    }
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        char surt[64];
        snprintf(surt, sizeof surt, "org,example)/%u", i);
        snprintf(body, sizeof body, "body %u", i);
        assert_int_equal(list(fixture, surt, &last, &is_partial), 1);
        assert_false(is_partial);
        expect_record(fixture, &last, bytes_of_string(body));
        fixture_stop_peer_rpc(&fixture->nodes[i]);
    }
    age_listings(fixture, true);
    assert_int_equal(list(fixture, "org,example)/1", &last, &is_partial), 0);
    assert_true(is_partial);
    assert_int_equal(fixture->blames_count, 0);
}

/* Of all nodes some are dead: the walk goes on without them, and says so. */
static void walks_without_some_are_partial(void **state) {
    struct fixture *fixture = *state;
    struct buf out;
    bool is_partial;
    put_some(fixture);
    fixture_stop_peer_rpc(&fixture->nodes[2]);
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 2; i++) { /* the second time nobody waits for it */
        assert_int_equal(walk(fixture, BYTES(""), BYTES(""), false, &out, &is_partial), ERR_NOT_FOUND);
        assert_true(is_partial);
        assert_true(bytes_ends_with(buf_bytes(&out), BYTES("org,example,sub)/ 5\n")));
    }
    buf_done(&out);
}

static void expect_stored(void *context, enum err err, const struct stored *stored) {
    (void)context;
    (void)stored;
    assert_int_equal(err, ERR_OK);
}

/* Several pages of each node, in both directions. */
static void long_walks_come_in_pages(void **state) {
    struct fixture *fixture = *state;
    struct buf out;
    bool is_partial;
    struct document document = fixture_document("http://example.org/", 0, BYTES("x"));
    char url[64];
    size_t lines_count[2] = {0};
    buf_init(&out, 1 << 20);
    for (unsigned i = 0; i < MANY_COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%05u", i / 2);
        document.url = bytes_of_string(url);
        document.time_us = (int64_t)(i + 1) * SECOND_US;
        unsigned node = 1 + i % 3;
        struct instance_session *session = fixture->nodes[node].session;
        assert_int_equal(instance_submit(session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                                         expect_stored, NULL, NULL),
                         ERR_OK);
    }
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        instance_drain(fixture->nodes[i].instance);
    }
    for (int in_reverse = 0; in_reverse < 2; in_reverse++) {
        assert_int_equal(walk(fixture, BYTES("org,"), BYTES("org,\xff"), in_reverse, &out, &is_partial),
                         ERR_NOT_FOUND);
        assert_false(is_partial);
        for (size_t i = 0; i < out.size; i++) {
            lines_count[in_reverse] += out.data[i] == '\n';
        }
    }
    assert_int_equal(lines_count[0], MANY_COUNT);
    assert_int_equal(lines_count[1], MANY_COUNT);
    buf_done(&out);
}

/* ---- lies ---- */

/* Pages that are none, that do not come further, that are out of order or of something else. */
static enum err lie_about_walks(void *context, const struct peer *from, struct bytes question,
                                struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    struct capture capture = {
        .time_us = SECOND_US,
        .location = {.segment = 1, .length = 1},
        .url = BYTES("http://example.org/a"),
        .status = 200,
    };
    struct backend_code_page_end end = {.is_end = true};
    (void)from;
    (void)question;
    (void)detail;
    buf_put_byte(answer, 1);
    switch (node->questions_count % 5) {
    case 0:
        return buf_put(answer, BYTES("noise"));
    case 1:
        capture.surt = BYTES("org,other)/a"); /* outside of the bounds */
        break;
    case 2:
        capture.surt = BYTES("org,example)/b"); /* not in order */
        capture.url = BYTES("http://example.org/b");
        backend_code_put_capture(answer, &capture, BACKEND_CODE_FLAGS_ALL);
        capture.surt = BYTES("org,example)/a");
        capture.url = BYTES("http://example.org/a");
        break;
    case 3:
        end = (struct backend_code_page_end){.next = BYTES("org")}; /* where it began */
        backend_code_put_page_end(answer, &end);
        return answer->err;
    case 4:
        capture.surt = BYTES("org,example)/a");
        capture.url = BYTES("http://elsewhere.example/"); /* who opens it would be led there */
        break;
    }
    backend_code_put_capture(answer, &capture, BACKEND_CODE_FLAGS_ALL);
    backend_code_put_page_end(answer, &end);
    return answer->err;
}

static void false_lists_are_refused(void **state) {
    struct fixture *fixture = *state;
    struct buf out;
    bool is_partial;
    put_some(fixture);
    buf_init(&out, 1 << 20);
    struct node *liar = &fixture->nodes[2];
    liar->peer_rpc->services[PEER_RPC_WALK].handler = lie_about_walks; /* nobody has asked it yet */
    liar->peer_rpc->services[PEER_RPC_WALK].context = liar;
    for (unsigned i = 0; i < 5; i++) {
        liar->questions_count = i;
        fixture->blames_count = 0;
        assert_int_equal(
            walk(fixture, BYTES("org,example)/"), BYTES("org,example)/\xff"), false, &out, &is_partial),
            ERR_NOT_FOUND);
        assert_true(is_partial);
        assert_true(bytes_find(buf_bytes(&out), BYTES("org,example)/ab 3\n")) < out.size);
        assert_int_equal(fixture->blames_count, 1);
        assert_true(peer_equal(&fixture->blamed, &liar->peer));
    }
    buf_done(&out);
}

static void false_documents_are_not_shown(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    struct bytes record;
    bool is_partial;
    put_some(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture->nodes[i].lie = LIE_PAYLOAD;
    }
    assert_int_equal(
        instance_get_record(fixture->nodes[READER].session, last.volume, &last.location, &record, NULL),
        ERR_CORRUPT);
    assert_int_equal(fixture->blames_count, 3);
    fixture->nodes[3].lie = HONEST;
    expect_record(fixture, &last, BYTES("a4"));
}

/* As readers do it. */
struct trier {
    struct archive_reader *reader;
    int64_t time_us;
    unsigned tries_count;
    struct buf *body;
};

static enum err find_nearest(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct trier *trier = context;
    struct bytes surt;
    assert_int_equal(archive_key(trier->reader, BYTES("http://example.org/a"), &surt, NULL), ERR_OK);
    return archive_find(trier->reader, surt, bytes_of(NULL, 0), trier->time_us, ARCHIVE_CLOSEST, ret_capture,
                        detail);
}

static enum err read_nearest(void *context, const struct capture *capture, struct err_detail *detail) {
    struct trier *trier = context;
    struct archive_record record;
    trier->tries_count++;
    enum err err = archive_open(trier->reader, capture, &record, detail);
    return err == ERR_OK ? buf_put(trier->body, record.body) : err;
}

/* Returns how many tries it took; 0: none succeeded. */
static unsigned open_nearest(struct fixture *fixture, int64_t seconds, struct buf *body) {
    struct archive_config config = {
        .instance = fixture->nodes[READER].instance,
        .scratch_directory = fixture->root,
    };
    struct archive *archive = archive_new(&config);
    struct trier trier = {archive_reader_begin(archive), seconds * SECOND_US, 0, body};
    struct archive_attempt attempt = {.find = find_nearest, .use = read_nearest, .context = &trier};
    buf_clear(body);
    enum err err = archive_try(trier.reader, &attempt, NULL);
    archive_reader_end(trier.reader);
    archive_free(archive);
    return err == ERR_OK ? trier.tries_count : 0;
}

/* Who is asked for a listing is a matter of chance: here it is the only one that answers for all. */
static void what_nobody_holds_gives_way_to_what_is_true(void **state) {
    struct fixture *fixture = *state;
    struct buf body;
    struct capture last;
    bool is_partial;
    buf_init(&body, 64);
    put_some(fixture);
    fixture_make_inventor(&fixture->nodes[2], 1);
    fixture->nodes[2].lie = LIE_INVENT;
    fixture->nodes[1].is_current = fixture->nodes[3].is_current = false;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1); /* nothing else, it says */
    assert_int_equal(last.time_us, 10 * SECOND_US);
    assert_int_equal(open_nearest(fixture, 10, &body), 2);
    assert_string_equal(buf_string(&body), "a4");
    assert_true(fixture->blames_count > 0);
    assert_true(peer_equal(&fixture->blamed, &fixture->nodes[2].peer));
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3); /* as the others have it */
    assert_int_equal(last.time_us, 4 * SECOND_US);
    assert_int_equal(open_nearest(fixture, 2, &body), 1);
    assert_string_equal(buf_string(&body), "a2");
    buf_done(&body);
}

/* Who lists without end is passed over after a few of them. */
static void who_invents_many_is_not_asked_any_more(void **state) {
    struct fixture *fixture = *state;
    struct buf body;
    struct capture last;
    bool is_partial;
    buf_init(&body, 64);
    put_some(fixture);
    fixture_make_inventor(&fixture->nodes[2], 50);
    fixture->nodes[1].is_current = fixture->nodes[3].is_current = false;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 50);
    assert_int_equal(open_nearest(fixture, 30, &body), RING_READER_DOUBT_LISTED_MAX + 1);
    assert_string_equal(buf_string(&body), "a4");
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_true(is_partial);                    /* without it */
    assert_int_equal(fixture->blames_count, 0); /* nobody has it: that proves nothing */
    buf_done(&body);
}

/* Of example.org/x it lists what nobody made, with the digest of a document that others have. */
struct borrower {
    peer_rpc_handler *walk; /* the true one, and its context */
    void *context;
    uint8_t digest[SHA256_SIZE];
};

static enum err list_borrowed(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail) {
    const struct borrower *borrower = context;
    struct backend_code_page_end end = {.is_end = true};
    struct capture capture = {
        .surt = BYTES("org,example)/x"),
        .time_us = SECOND_US,
        .location = {.segment = 1, .length = 1},
        .url = BYTES("http://example.org/x"),
        .status = 200,
    };
    if (bytes_find(question, capture.surt) == question.size) {
        return borrower->walk(borrower->context, from, question, answer, detail);
    }
    memcpy(capture.digest, borrower->digest, sizeof capture.digest);
    buf_put_byte(answer, 1);
    backend_code_put_capture(answer, &capture, BACKEND_CODE_FLAGS_ALL);
    backend_code_put_page_end(answer, &end);
    return answer->err;
}

static enum err read_document(struct fixture *fixture, const struct capture *capture,
                              struct bytes *ret_record) {
    struct instance_session *session = fixture->nodes[READER].session;
    struct key key;
    struct block block;
    assert_int_equal(instance_locate(session, capture, &key, &block, NULL), ERR_OK);
    return instance_get_record(session, key.volume, &block.location, ret_record, NULL);
}

/* A revisit's document is looked for by its digest: where that leads to a lie, it leads elsewhere next. */
static void a_borrowed_digest_leads_astray_once(void **state) {
    struct fixture *fixture = *state;
    struct peer_rpc *peer_rpc = fixture->nodes[2].peer_rpc;
    struct borrower borrower = {
        peer_rpc->services[PEER_RPC_WALK].handler, peer_rpc->services[PEER_RPC_WALK].context, {0}};
    struct capture revisit;
    struct capture invented;
    struct sha256 sha256;
    struct bytes record;
    bool is_partial;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, BYTES("a1"), borrower.digest);
    sha256_done(&sha256);
    put_some(fixture);
    fixture->nodes[1].is_current = fixture->nodes[3].is_current = false;
    peer_rpc->services[PEER_RPC_WALK].handler = list_borrowed; /* nobody has asked it yet */
    peer_rpc->services[PEER_RPC_WALK].context = &borrower;
    assert_int_equal(list(fixture, "org,example)/ab", &revisit, &is_partial), 1);
    assert_true(revisit.flags & CAPTURE_REVISIT);
    assert_int_equal(list(fixture, "org,example)/x", &invented, &is_partial), 1);
    assert_int_not_equal(read_document(fixture, &revisit, &record), ERR_OK);
    assert_int_equal(list(fixture, "org,example)/x", &invented, &is_partial), 0);
    assert_int_equal(list(fixture, "org,example)/ab", &revisit, &is_partial), 1);
    assert_int_equal(read_document(fixture, &revisit, &record), ERR_OK);
    assert_true(bytes_ends_with(record, BYTES("\r\n\r\na1\r\n\r\n")));
}

static void doubts_end_and_make_room(void **state) {
    static const uint64_t minute_us = UINT64_C(60) * SECOND_US;
    static struct ring_reader_doubts doubts;
    struct peer peers[3] = {{.key = {1}}, {.key = {2}}, {.key = {3}}};
    (void)state;
    ring_reader_doubts_init(&doubts, 1);
    assert_false(ring_reader_doubts_has(&doubts, 7, 1));
    for (unsigned i = 0; i < 5; i++) { /* five who read the same at once */
        ring_reader_doubts_add(&doubts, 7, &peers[0], 1);
    }
    assert_int_equal(ring_reader_doubts_trust(&doubts, &peers[0], minute_us), RING_READER_DOUBTED);
    assert_int_equal(ring_reader_doubts_trust(&doubts, &peers[1], minute_us), RING_READER_BELIEVED);
    assert_int_equal(ring_reader_doubts_sort(&doubts, peers, 3, minute_us), 2);
    assert_int_equal(peers[0].key[0], 2);
    assert_int_equal(peers[1].key[0], 3);
    assert_true(ring_reader_doubts_has(&doubts, 7, minute_us));
    assert_false(ring_reader_doubts_has(&doubts, 8, minute_us));
    assert_false(ring_reader_doubts_has(&doubts, 7, minute_us + 1));
    assert_int_equal(ring_reader_doubts_trust(&doubts, &peers[2], minute_us + 1), RING_READER_BELIEVED);
    for (uint64_t i = 0; i < 2 * RING_READER_DOUBT_CAPTURES_MAX; i++) {
        ring_reader_doubts_add(&doubts, 100 + i, &peers[2], 2 * minute_us + i);
    }
    assert_int_equal(ring_reader_doubts_trust(&doubts, &peers[2], 2 * minute_us), RING_READER_PASSED_OVER);
    assert_false(ring_reader_doubts_has(&doubts, 100, 2 * minute_us));
    assert_true(ring_reader_doubts_has(&doubts, 99 + 2 * RING_READER_DOUBT_CAPTURES_MAX, 2 * minute_us));
    ring_reader_doubts_note_silent(&doubts, &peers[0], 3 * minute_us);
    assert_true(ring_reader_doubts_is_silent(&doubts, &peers[0], 3 * minute_us + 1));
    assert_false(ring_reader_doubts_is_silent(&doubts, &peers[0], 4 * minute_us));
    assert_int_equal(ring_reader_doubts_trust(&doubts, &peers[0], 3 * minute_us + 1), RING_READER_BELIEVED);
    ring_reader_doubts_done(&doubts);
}

/* ---- waiting ---- */

/* Holders that take their time, and two threads that wait for them. */
struct waiting {
    struct fixture *fixture;
    atomic_uint over_count;
    atomic_bool is_seen; /* that they wait */
};

static enum err answer_late(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail) {
    struct waiting *waiting = context;
    (void)from;
    (void)question;
    (void)answer;
    unsigned turns_count = 0;
    while (!waiting->is_seen && await_turn(&turns_count)) {
    }
    return err_set(detail, ERR_IO, "too late");
}

static void *walk_slowly(void *context) {
    struct waiting *waiting = context;
    struct instance_session *session = instance_session_new(waiting->fixture->nodes[READER].instance);
    struct merge *merge;
    struct capture capture;
    instance_session_set_guest(session, true);
    enum err err = merge_open(session, BYTES("org,"), BYTES("org,\xff"), false, &merge, NULL);
    while (err == ERR_OK && merge_next(merge, &capture, NULL) == ERR_OK) {
    }
    if (err == ERR_OK) {
        merge_close(merge);
    }
    instance_session_free(session);
    waiting->over_count++;
    return NULL;
}

/* As many as may wait for slow nodes; who comes then is served at once with what is here. */
static void slow_nodes_hold_up_only_some(void **state) {
    struct fixture *fixture = *state;
    struct waiting waiting = {.fixture = fixture};
    struct ring_reader *backend = (struct ring_reader *)fixture->backend;
    pthread_t threads[WAITERS_MAX];
    struct buf out;
    bool is_partial;
    struct document document = fixture_document("http://example.org/own", 1, BYTES("own"));
    fixture_put_at(fixture, READER, &document);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture->nodes[i].peer_rpc->services[PEER_RPC_WALK].handler = answer_late;
        fixture->nodes[i].peer_rpc->services[PEER_RPC_WALK].context = &waiting;
    }
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, walk_slowly, &waiting), 0);
    }
    struct ring_view_rpc before = {0};
    struct ring_view_rpc after;
    unsigned turns_count = 0;
    while (before.questions_count < WAITERS_MAX * (NODES_COUNT - 1) && await_turn(&turns_count)) {
        peer_rpc_stat(fixture->nodes[READER].peer_rpc, &before);
    }
    assert_int_equal(before.questions_count, WAITERS_MAX * (NODES_COUNT - 1));
    buf_init(&out, 1 << 16);
    assert_int_equal(walk(fixture, BYTES("org,"), BYTES("org,\xff"), false, &out, &is_partial),
                     ERR_NOT_FOUND);
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &after);
    assert_int_equal(after.questions_count, before.questions_count);
    assert_string_equal(buf_string(&out), "org,example)/own 1\n");
    assert_true(is_partial);
    assert_int_equal(waiting.over_count, 0); /* they still wait */
    waiting.is_seen = true;
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(backend->waiters_count, 0);
    buf_done(&out);
}

/* Without a ring the shelf is empty, and nothing is missing. */
static void without_a_ring_there_is_nothing(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    struct bytes record;
    bool is_partial;
    put_some(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    ring_reader_end(fixture->backend);
    expect(fixture, "", "", false, "");
    assert_int_equal(
        instance_get_record(fixture->nodes[READER].session, last.volume, &last.location, &record, NULL),
        ERR_NOT_FOUND);
    struct backend *unused = ring_reader_new(fixture->root, NULL);
    assert_non_null(unused);
    ring_reader_end(unused);
    unused->table->close(unused);
}

/* ---- what many want ---- */

/* For a moment what was listed is not asked for again; then it is, and what is new is seen. */
static void what_was_listed_is_known_for_a_moment(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    put_some(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    uint64_t before = questions_of(fixture);
    put(fixture, 0, "http://example.org/a", 9, "a9");
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_int_equal(count_given(fixture, "org,example)/a", true), 3);
    assert_int_equal(questions_of(fixture), before);
    age_listings(fixture, false);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 4);
    assert_true(questions_of(fixture) > before);
}

/* Where nobody answers, what is old does for some minutes; it is whole, as far as anybody knows. */
static void old_listings_do_where_nobody_answers(void **state) {
    struct fixture *fixture = *state;
    struct capture last;
    bool is_partial;
    put_some(fixture);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    expect_record(fixture, &last, BYTES("a4"));
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture_stop_peer_rpc(&fixture->nodes[i]);
    }
    age_listings(fixture, false);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_false(is_partial);
    expect_record(fixture, &last, BYTES("a4")); /* from memory */
    age_listings(fixture, true);
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 0);
    assert_true(is_partial);
}

/* A URL with more captures than a listing takes is walked page by page, each time. */
static void long_listings_are_walked(void **state) {
    enum { COUNT = RING_READER_LISTING_COUNT_MAX + 500 };
    struct fixture *fixture = *state;
    struct document document = fixture_document("http://example.org/a", 0, BYTES("x"));
    struct capture last;
    bool is_partial;
    for (unsigned i = 0; i < COUNT; i++) {
        document.time_us = (int64_t)(i + 1) * SECOND_US;
        assert_int_equal(instance_submit(fixture->nodes[1].session, &document, STORE_REGULAR,
                                         INSTANCE_VOLUME_ANY, expect_stored, NULL, NULL),
                         ERR_OK);
    }
    instance_drain(fixture->nodes[1].instance);
    fixture->nodes[2].is_current = fixture->nodes[3].is_current = false;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), COUNT);
        assert_false(is_partial);
        assert_int_equal(count_given(fixture, "org,example)/a", true), COUNT);
    }
}

/* Busy holders are neither silent nor to blame: others are asked, and they themselves when they are not. */
static void busy_holders_are_passed_over(void **state) {
    struct fixture *fixture = *state;
    struct node *reader = &fixture->nodes[READER];
    struct capture last;
    bool is_partial;
    put_some(fixture);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture_set_busy(&fixture->nodes[i], true);
    }
    assert_int_equal(list(fixture, "org,example)/ab", &last, &is_partial), 0);
    assert_true(is_partial);
    uint64_t before = questions_of(fixture);
    assert_int_equal(list(fixture, "org,example)/ab", &last, &is_partial), 0); /* nobody is asked now */
    assert_int_equal(questions_of(fixture), before);
    fixture_set_busy(&fixture->nodes[3], false);
    await_that(!peer_rpc_is_busy(reader->peer_rpc, &fixture->nodes[3].peer));
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 3);
    assert_false(is_partial);
    expect_record(fixture, &last, BYTES("a4"));
    assert_false(ring_reader_doubts_is_silent(&((struct ring_reader *)fixture->backend)->doubts,
                                              &fixture->nodes[1].peer, clock_monotonic_us(&clock_system)));
    assert_int_equal(fixture->blames_count, 0);
}

/* Many that want the same thing at the same time. */
struct reader {
    struct fixture *fixture;
    struct capture capture;
    enum err err;
};

static void *read_record(void *context) {
    struct reader *reader = context;
    struct bytes record;
    struct instance_session *session = instance_session_new(reader->fixture->nodes[READER].instance);
    instance_session_set_guest(session, true);
    reader->err =
        instance_get_record(session, reader->capture.volume, &reader->capture.location, &record, NULL);
    instance_session_free(session);
    return NULL;
}

/* More than may wait at a time: one asks, all have it. */
static void what_many_want_is_asked_for_once(void **state) {
    enum { READERS_COUNT = 4 * WAITERS_MAX };
    struct fixture *fixture = *state;
    struct reader readers[READERS_COUNT];
    pthread_t threads[READERS_COUNT];
    struct capture last;
    bool is_partial;
    put(fixture, 1, "http://example.org/a", 1,
        "a1"); /* the others do not have it, and who has takes its time */
    fixture->nodes[2].is_current = fixture->nodes[3].is_current = false;
    assert_int_equal(list(fixture, "org,example)/a", &last, &is_partial), 1);
    fixture->nodes[1].stop_after = 1;
    for (size_t i = 0; i < READERS_COUNT; i++) {
        readers[i] = (struct reader){.fixture = fixture, .capture = last};
        assert_int_equal(pthread_create(&threads[i], NULL, read_record, &readers[i]), 0);
    }
    for (size_t i = 0; i < READERS_COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].err, ERR_OK);
    }
    assert_int_equal(fixture->nodes[1].questions_count, 1);
}

/* ---- places ---- */

static int setup_by_host(void **state) {
    return fixture_setup_as(state, POSITION_BY_HOST, false);
}

/* In the mapping `host` one holder answers for all of a host; others are not needed. */
static void a_host_has_one_place(void **state) {
    struct fixture *fixture = *state;
    put_some(fixture);
    fixture_stop_peer_rpc(&fixture->nodes[1]);
    expect(fixture, "org,example)/", "org,example)/\xff", false,
           "org,example)/a 1\norg,example)/a 2\norg,example)/a 4\norg,example)/ab 3\n");
}

static void scopes_are_told_apart(void **state) {
    struct sha256 sha256;
    uint8_t url[RINGKEY_POSITION_SIZE];
    uint8_t host[RINGKEY_POSITION_SIZE];
    uint8_t place[RINGKEY_POSITION_SIZE];
    struct buf from;
    struct buf to;
    (void)state;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    position_of_surt(&sha256, BYTES("org,a)/x"), POSITION_BY_URL, url);
    position_of_surt(&sha256, BYTES("org,a)/x"), POSITION_BY_HOST, host);
    put_bounds("org,a)/x", &from, &to);
    assert_true(ring_reader_scope(&sha256, buf_bytes(&from), buf_bytes(&to), POSITION_BY_URL, place));
    assert_memory_equal(place, url, sizeof place);
    assert_true(ring_reader_scope(&sha256, buf_bytes(&from), buf_bytes(&to), POSITION_BY_HOST, place));
    assert_memory_equal(place, host, sizeof place);
    struct bytes prefix = BYTES("org,a)/");
    struct bytes end = BYTES("org,a)/\xff");
    assert_false(ring_reader_scope(&sha256, prefix, end, POSITION_BY_URL, place));
    assert_true(ring_reader_scope(&sha256, prefix, end, POSITION_BY_HOST, place));
    assert_memory_equal(place, host, sizeof place);
    assert_false(ring_reader_scope(&sha256, BYTES("org,a"), BYTES("org,a\xff"), POSITION_BY_HOST, place));
    assert_false(ring_reader_scope(&sha256, prefix, BYTES(""), POSITION_BY_HOST, place));
    assert_false(ring_reader_scope(&sha256, prefix, BYTES("org,b)/"), POSITION_BY_HOST, place));
    position_of_surt(&sha256, BYTES("org,a)/x"), POSITION_BY_SECTION, host);
    assert_true(ring_reader_scope(&sha256, buf_bytes(&from), buf_bytes(&to), POSITION_BY_SECTION, place));
    assert_memory_equal(place, host, sizeof place);
    assert_true(
        ring_reader_scope(&sha256, BYTES("org,a)/x/"), BYTES("org,a)/x/\xff"), POSITION_BY_SECTION, place));
    assert_memory_equal(place, host, sizeof place);
    assert_true(
        ring_reader_scope(&sha256, BYTES("org,a)/x/b"), BYTES("org,a)/x0"), POSITION_BY_SECTION, place));
    assert_memory_equal(place, host, sizeof place);
    assert_false(
        ring_reader_scope(&sha256, BYTES("org,a)/x"), BYTES("org,a)/y"), POSITION_BY_SECTION, place));
    assert_false(
        ring_reader_scope(&sha256, BYTES("org,a)/x/"), BYTES("org,a)/x1"), POSITION_BY_SECTION, place));
    assert_false(ring_reader_scope(&sha256, prefix, end, POSITION_BY_SECTION, place));
    buf_done(&from);
    buf_done(&to);
    sha256_done(&sha256);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_are_told_apart),
        TEST(walks_find_what_others_hold),
        TEST(own_captures_come_first),
        TEST(holders_that_differ_are_merged),
        TEST(nothing_is_not_said_for_all),
        TEST(who_was_compared_and_has_nothing_asks_the_others),
        TEST(what_comes_in_the_middle_is_found),
        TEST(documents_are_read_through),
        TEST(what_was_not_modified_leads_to_its_original),
        TEST(replay_reads_through),
        TEST(holders_die_one_by_one),
        TEST(walks_without_some_are_partial),
        TEST(long_walks_come_in_pages),
        TEST(false_lists_are_refused),
        TEST(false_documents_are_not_shown),
        TEST(what_nobody_holds_gives_way_to_what_is_true),
        TEST(who_invents_many_is_not_asked_any_more),
        TEST(a_borrowed_digest_leads_astray_once),
        cmocka_unit_test(doubts_end_and_make_room),
        TEST(slow_nodes_hold_up_only_some),
        TEST(without_a_ring_there_is_nothing),
        TEST(what_was_listed_is_known_for_a_moment),
        TEST(old_listings_do_where_nobody_answers),
        TEST(long_listings_are_walked),
        TEST(busy_holders_are_passed_over),
        TEST(what_many_want_is_asked_for_once),
        cmocka_unit_test_setup_teardown(a_host_has_one_place, setup_by_host, fixture_teardown),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does: nodes go away while others write to them */
    return cmocka_run_group_tests_name("ring_shelf", tests, NULL, NULL);
}

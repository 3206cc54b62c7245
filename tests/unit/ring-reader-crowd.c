/* ring_reader and the crowd: what is read where the holders are busy or slow, and what is handed on. */
#include "await.h"
#include "node/reading/ring_reader_scope.h"
#include "node/reading/ring_reader_state.h"
#include "offers-fixture.h"
#include "replay/archive/archive.h"
#include "ring-reader-fixture.h"
#include "store/volume/volume_record.h"

static int setup(void **state) {
    return fixture_setup_as(state, POSITION_BY_URL, true);
}

/* ---- one reader ---- */

struct reader {
    struct archive *archive;
    struct archive_reader *reader;
    struct archive_record record;
    struct capture capture;
};

static void reader_init(struct reader *reader, struct fixture *fixture) {
    struct archive_config config = {
        .instance = fixture->nodes[READER].instance,
        .scratch_directory = fixture->root,
    };
    reader->archive = archive_new(&config);
    assert_non_null(reader->archive);
    reader->reader = archive_reader_begin(reader->archive);
}

static void reader_done(struct reader *reader) {
    archive_reader_end(reader->reader);
    archive_free(reader->archive);
}

static enum err reader_read(struct reader *reader, const char *url, int64_t seconds) {
    struct bytes surt;
    assert_int_equal(archive_key(reader->reader, bytes_of_string(url), &surt, NULL), ERR_OK);
    enum err err = archive_find(reader->reader, surt, bytes_of(NULL, 0), seconds * SECOND_US, ARCHIVE_CLOSEST,
                                &reader->capture, NULL);
    return err == ERR_OK ? archive_open(reader->reader, &reader->capture, &reader->record, NULL) : err;
}

/* What the record says of where it came from: a kind, and of which node. */
static void expect_source(struct reader *reader, const char *kind, const struct node *from) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    char expected[ADDRESS_TEXT_SIZE_MAX + 8];
    snprintf(expected, sizeof expected, "%s%s%s", kind, from != NULL ? " " : "",
             from != NULL ? address_format(&from->peer.address, text) : "");
    assert_bytes_equal(fields_get(&reader->record.header->fields, BYTES(VOLUME_SOURCE_FIELD)),
                       bytes_of_string(expected));
}

/* From now on all holders say that they are busy, or none does. */
static void set_busy(struct fixture *fixture, bool is_busy) {
    for (unsigned i = 1; i < OFFERER; i++) {
        fixture_set_busy(&fixture->nodes[i], is_busy);
    }
}

/* The last node offers a capture that it does not hold. */
static void offer(struct fixture *fixture, const char *url, int64_t seconds, const char *body) {
    struct offers_sample sample;
    sample_init(&sample, &fixture->nodes[1].identity, url, seconds, bytes_of_string(body));
    sample_put(fixture->nodes[OFFERER].offers, &sample);
    sample_done(&sample);
}

/* ---- tests ---- */

static void times_of_walks_are_told(void **state) {
    static const int64_t times_us[] = {-5 * (int64_t)SECOND_US, 1, 1600000000123456};
    struct buf from;
    struct buf to;
    (void)state;
    buf_init(&from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&to, BACKEND_CODE_KEY_SIZE_MAX);
    for (size_t i = 0; i < sizeof times_us / sizeof times_us[0]; i++) {
        for (int is_end = 0; is_end < 2; is_end++) {
            buf_clear(&from);
            buf_clear(&to);
            index_put_capture_prefix(&from, BYTES("org,a)/"), is_end ? INT64_MIN : times_us[i]);
            index_put_capture_prefix(&to, BYTES("org,a)/"), is_end ? times_us[i] : INT64_MAX);
            assert_true(ring_reader_scope_time(buf_bytes(&from), buf_bytes(&to)) == times_us[i]);
        }
    }
    buf_clear(&from);
    index_put_capture_prefix(&from, BYTES("org,a)/"), INT64_MIN);
    buf_clear(&to);
    index_put_capture_prefix(&to, BYTES("org,a)/"), INT64_MAX);
    assert_true(ring_reader_scope_time(buf_bytes(&from), buf_bytes(&to)) == INT64_MAX);
    assert_true(ring_reader_scope_time(BYTES("org,a"), BYTES("org,b")) == INT64_MAX);
    buf_done(&from);
    buf_done(&to);
}

/* Nothing of it can be listed: the crowd says what there is, the nearest to the time that was asked for. */
static void what_the_crowd_has_is_read_where_holders_are_busy(void **state) {
    struct fixture *fixture = *state;
    struct reader reader;
    set_busy(fixture, true);
    offer(fixture, "http://example.org/a", 10, "ten");
    offer(fixture, "http://example.org/a", 1000, "thousand");
    reader_init(&reader, fixture);
    assert_int_equal(reader_read(&reader, "http://example.org/a", 12), ERR_OK);
    assert_int_equal(reader.capture.time_us, 10 * SECOND_US);
    assert_int_equal(reader.capture.status, 200);
    assert_bytes_equal(reader.capture.mime, BYTES("text/html"));
    assert_bytes_equal(reader.record.body, BYTES("ten"));
    expect_source(&reader, "crowd", &fixture->nodes[OFFERER]);
    assert_int_equal(reader_read(&reader, "http://example.org/none", 12), ERR_UNREACHABLE);
    assert_int_equal(fixture->blames_count, 0);
    reader_done(&reader);
}

/* What was listed when they were not busy is got from the crowd when they are. */
static void listed_captures_come_from_the_crowd(void **state) {
    struct fixture *fixture = *state;
    struct reader reader;
    struct document document = fixture_document("http://example.org/a", 10, BYTES("ten"));
    char signature[ATTEST_TEXT_SIZE];
    document.head = BYTES(OFFERS_HEAD);
    document.tls = BYTES("verified");
    fixture_sign(fixture, &document, signature);
    fixture_put(fixture, &document);
    offer(fixture, "http://example.org/a", 10, "ten");
    reader_init(&reader, fixture);
    struct bytes surt;
    assert_int_equal(archive_key(reader.reader, BYTES("http://example.org/a"), &surt, NULL), ERR_OK);
    assert_int_equal(archive_find(reader.reader, surt, bytes_of(NULL, 0), 10 * SECOND_US, ARCHIVE_CLOSEST,
                                  &reader.capture, NULL),
                     ERR_OK);
    set_busy(fixture, true);
    assert_int_equal(archive_open(reader.reader, &reader.capture, &reader.record, NULL), ERR_OK);
    assert_bytes_equal(reader.record.body, BYTES("ten"));
    expect_source(&reader, "crowd", &fixture->nodes[OFFERER]);
    reader_done(&reader);
}

/* What a person here has read from the ring this node hands on, and reads again without asking anybody. */
static void what_was_read_is_offered(void **state) {
    struct fixture *fixture = *state;
    struct ring_reader *backend = (struct ring_reader *)fixture->backend;
    struct reader reader;
    struct offers_stat stat;
    struct document document = fixture_document("http://example.org/a", 10, BYTES("ten"));
    fixture_put_at(fixture, 1, &document);
    fixture->nodes[2].is_current = false;
    reader_init(&reader, fixture);
    assert_int_equal(reader_read(&reader, "http://example.org/a", 10), ERR_OK);
    expect_source(&reader, "ring", &fixture->nodes[1]);
    offers_stat(fixture->nodes[READER].offers, &stat);
    assert_int_equal(stat.count, 1);
    reader_done(&reader);
    ring_reader_cache_clear(&backend->cache); /* as if much else had been read since */
    unsigned questions = fixture->nodes[1].questions_count;
    reader_init(&reader, fixture);
    assert_int_equal(reader_read(&reader, "http://example.org/a", 10), ERR_OK);
    assert_bytes_equal(reader.record.body, BYTES("ten"));
    expect_source(&reader, "crowd this-node", NULL);
    assert_int_equal(fixture->nodes[1].questions_count, questions);
    reader_done(&reader);
}

static enum err answer_late(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail) {
    struct fixture *fixture = context;
    (void)from;
    (void)question;
    (void)answer;
    unsigned turns_count = 0;
    while (!fixture->is_over && await_turn(&turns_count)) {
    }
    return err_set(detail, ERR_IO, "too late");
}

/* Holders that take longer than usual are not waited for where the crowd has it. */
static void the_crowd_is_asked_beside_slow_holders(void **state) {
    struct fixture *fixture = *state;
    struct reader reader;
    for (unsigned i = 1; i < OFFERER; i++) {
        fixture->nodes[i].peer_rpc->services[PEER_RPC_WALK].handler = answer_late;
        fixture->nodes[i].peer_rpc->services[PEER_RPC_WALK].context = fixture;
    }
    offer(fixture, "http://example.org/a", 10, "ten");
    reader_init(&reader, fixture);
    assert_int_equal(reader_read(&reader, "http://example.org/a", 10), ERR_OK);
    assert_bytes_equal(reader.record.body, BYTES("ten"));
    expect_source(&reader, "crowd", &fixture->nodes[OFFERER]);
    fixture->is_over = true;
    reader_done(&reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_walks_are_told),    TEST(what_the_crowd_has_is_read_where_holders_are_busy),
        TEST(listed_captures_come_from_the_crowd),    TEST(what_was_read_is_offered),
        TEST(the_crowd_is_asked_beside_slow_holders),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("ring_shelf and the crowd", tests, NULL, NULL);
}

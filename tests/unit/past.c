/* past - what an archive says of the earlier visits of a URL, whoever made them. */
#include "crawl/engine/past.h"

#include "base/sha256.h"
#include "scratch.h"
#include "unit.h"

static const int64_t NOON_US = INT64_C(1772366706) * 1000000;
static const int64_t HOUR_US = INT64_C(3600) * 1000000;

struct world {
    void *scratch;
    struct instance *instance;
    struct instance_session *session;
    struct past past;
};

static int past_set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    char directory[SCRATCH_PATH_SIZE];
    assert_non_null(world);
    assert_int_equal(scratch_make(&world->scratch), 0);
    snprintf(directory, sizeof directory, "%s/data", (const char *)world->scratch);
    struct instance_config config = {.directory = directory};
    assert_int_equal(instance_open(&config, &world->instance, NULL), ERR_OK);
    world->session = instance_session_new(world->instance);
    assert_non_null(world->session);
    assert_int_equal(past_init(&world->past, world->session), ERR_OK);
    *state = world;
    return 0;
}

static int past_tear_down(void **state) {
    struct world *world = *state;
    past_done(&world->past);
    instance_session_free(world->session);
    instance_close(world->instance);
    scratch_remove(&world->scratch);
    free(world);
    return 0;
}

/* A visit at that hour. body NULL: the server says that the page is the one before. */
static void visit(struct world *world, const char *url, int hour, const char *head, const char *body,
                  const char *before) {
    struct document_sum sum = {.size = 0};
    struct sha256 sha256;
    struct stored stored;
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = NOON_US + hour * HOUR_US,
        .head = bytes_of_string(head),
        .body = bytes_of_string(body != NULL ? body : ""),
    };
    if (body == NULL) {
        assert_int_equal(sha256_init(&sha256), ERR_OK);
        sha256_digest(&sha256, bytes_of_string(before), sum.digest);
        sha256_done(&sha256);
        sum.size = strlen(before);
        document.sum = &sum;
        document.is_not_modified = document.is_body_left_out = true;
    }
    assert_int_equal(
        instance_put(world->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
}

#define PAGE "http://example.org/page"
#define FULL "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"1\"\r\nLast-Modified: Sun\r\n\r\n"

static enum err learn(struct world *world, const char *url, struct past_visits *ret_visits) {
    return past_learn(&world->past, bytes_of_string(url), INT64_MAX, ret_visits);
}

static void what_was_never_visited_is_not_known(void **state) {
    struct past_visits visits;
    struct past_version version;
    visit(*state, PAGE "/other", 0, FULL, "other", NULL);
    assert_int_equal(learn(*state, PAGE, &visits), ERR_NOT_FOUND);
    assert_int_equal(learn(*state, "no URL", &visits), ERR_NOT_FOUND);
    struct world *world = *state;
    assert_int_equal(past_read_version(&world->past, BYTES(PAGE), INT64_MAX, &version), ERR_NOT_FOUND);
}

static void validators_are_those_of_the_newest_capture(void **state) {
    struct past_visits visits;
    visit(*state, PAGE, 0, FULL, "first", NULL);
    visit(*state, PAGE, 1, "HTTP/1.1 200 OK\r\nETag: \"2\"\r\n\r\n", "second", NULL);
    assert_int_equal(learn(*state, PAGE, &visits), ERR_OK);
    assert_bytes_equal(visits.history.etag, BYTES("\"2\""));
    assert_int_equal(visits.history.last_modified.size, 0); /* of another payload */
    assert_int_equal(visits.history.last_status, 200);
    assert_int_equal(visits.history.visits_count, 2);
    assert_int_equal(visits.history.changes_count, 1);
    assert_true(visits.history.last_time_us == NOON_US + HOUR_US && visits.history.first_time_us == NOON_US);
    assert_true(visits.content_since_us == NOON_US + HOUR_US);
}

static void what_a_304_leaves_out_is_read_from_the_page_that_it_stands_for(void **state) {
    struct past_visits visits;
    visit(*state, PAGE, 0, FULL, "first", NULL);
    for (int hour = 1; hour < 9; hour++) {
        visit(*state, PAGE, hour, "HTTP/1.1 304 Not Modified\r\nETag: \"1b\"\r\n\r\n", NULL, "first");
    }
    assert_int_equal(learn(*state, PAGE, &visits), ERR_OK);
    assert_bytes_equal(visits.history.etag, BYTES("\"1b\""));
    assert_bytes_equal(visits.history.last_modified, BYTES("Sun"));
    assert_int_equal(visits.history.last_status, 200);
    assert_int_equal(visits.history.visits_count, 9);
    assert_int_equal(visits.history.changes_count, 0);
    assert_true(visits.history.last_time_us == NOON_US + 8 * HOUR_US);
    assert_true(visits.content_since_us == NOON_US);
}

static void a_validator_that_is_too_long_is_none(void **state) {
    struct past_visits visits;
    char head[2 * FRONTIER_VALIDATOR_SIZE_MAX];
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nETag: \"%01200d\"\r\nLast-Modified: Sun\r\n\r\n", 1);
    visit(*state, PAGE, 0, head, "first", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(learn(*state, PAGE, &visits), ERR_OK);
        assert_int_equal(visits.history.etag.size, 0);
        assert_bytes_equal(visits.history.last_modified, BYTES("Sun"));
    }
}

static void the_last_version_has_head_and_payload(void **state) {
    struct world *world = *state;
    struct past_version version;
    struct bytes url = BYTES(PAGE);
    visit(world, PAGE, 0, FULL, "first", NULL);
    visit(world, PAGE, 1, "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked\r\n\r\n",
          "6\r\nsecond\r\n0\r\n\r\n", NULL);
    visit(world, PAGE, 2, "HTTP/1.1 304 Not Modified\r\n\r\n", NULL, "second");
    visit(world, PAGE, 3, "HTTP/1.1 404 Not Found\r\n\r\n", "gone", NULL);
    assert_int_equal(past_read_version(&world->past, url, INT64_MAX, &version), ERR_OK);
    assert_bytes_equal(version.document, BYTES("second"));
    assert_bytes_equal(fields_get(version.fields, BYTES("Content-Type")), BYTES("text/css"));
    assert_int_equal(past_read_version(&world->past, url, NOON_US + HOUR_US, &version), ERR_OK);
    assert_bytes_equal(version.document, BYTES("first"));
    assert_int_equal(past_read_version(&world->past, url, NOON_US, &version), ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_never_visited_is_not_known, past_set_up, past_tear_down),
        cmocka_unit_test_setup_teardown(validators_are_those_of_the_newest_capture, past_set_up,
                                        past_tear_down),
        cmocka_unit_test_setup_teardown(what_a_304_leaves_out_is_read_from_the_page_that_it_stands_for,
                                        past_set_up, past_tear_down),
        cmocka_unit_test_setup_teardown(a_validator_that_is_too_long_is_none, past_set_up, past_tear_down),
        cmocka_unit_test_setup_teardown(the_last_version_has_head_and_payload, past_set_up, past_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

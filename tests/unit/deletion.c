/* deletion, purge, instance: what is deleted is not shown, not stored, and goes from all volumes. */
#include "store/instance/deletion.h"

#include "instance-fixture.h"
#include "store/instance/purge.h"
#include "store/instance/query.h"

/* Does the text mean this capture? */
static bool means(const char *text, const char *surt, const char *url) {
    struct buf memory;
    struct deletion parts[DELETION_PARTS_MAX];
    size_t count;
    bool is_meant = false;
    buf_init(&memory, 1 << 16);
    assert_int_equal(deletion_read_url(bytes_of_string(text), &memory, parts, &count, NULL), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        is_meant = is_meant || deletion_covers(&parts[i], bytes_of_string(surt), bytes_of_string(url), 0);
    }
    buf_done(&memory);
    return is_meant;
}

static void a_url_means_itself_and_all_methods_of_it(void **state) {
    (void)state;
    assert_true(means("http://example.org/a", "org,example)/a", "http://example.org/a"));
    assert_true(means("example.org/a", "org,example)/a", "https://www.example.org/a"));
    assert_false(means("http://example.org/a", "org,example)/ab", "http://example.org/ab"));
    assert_false(means("http://example.org/a", "org,example)/a?b=1", "http://example.org/a?b=1"));
    assert_true(means("http://example.org/a", "org,example)/a?__wb_method=post&b=1",
                      "http://example.org/a?__wb_method=POST&b=1"));
    assert_true(means("http://example.org/a?c=2", "org,example)/a?__wb_method=post&b=1&c=2",
                      "http://example.org/a?c=2&__wb_method=POST&b=1"));
    assert_false(means("http://example.org/a?c=2", "org,example)/a?__wb_method=post&c=2",
                       "http://example.org/a?__wb_method=POST&c=2"));
}

static void a_star_means_all_that_begin_so(void **state) {
    (void)state;
    assert_true(means("http://example.org/a*", "org,example)/ab", "http://example.org/ab"));
    assert_false(means("http://example.org/a*", "org,example)/b", "http://example.org/b"));
    assert_true(means("http://example.org/a/*", "org,example)/a", "http://example.org/a/"));
    assert_true(means("http://example.org/a/*", "org,example)/a/b", "http://example.org/a/b"));
    assert_false(means("http://example.org/a/*", "org,example)/ab", "http://example.org/ab"));
    assert_true(means("http://example.org/*", "org,example)/ab", "http://example.org/ab"));
    assert_false(means("http://example.org/*", "org,example,sub)/ab", "http://sub.example.org/ab"));
    assert_true(means("*.example.org", "org,example,sub)/ab", "http://sub.example.org/ab"));
    assert_true(means("*.example.org", "org,example)/", "http://example.org/"));
    assert_false(means("*.example.org", "org,example2)/", "http://example2.org/"));
    assert_true(means("*", "com,any)/", "http://any.com/"));
    struct buf memory;
    struct deletion parts[DELETION_PARTS_MAX];
    size_t count;
    buf_init(&memory, 1 << 16);
    assert_int_equal(deletion_read_url(BYTES("*."), &memory, parts, &count, NULL), ERR_INVALID);
    assert_int_equal(deletion_read_url(BYTES(""), &memory, parts, &count, NULL), ERR_INVALID);
    buf_done(&memory);
}

/* Against one after the other. */
static void a_set_says_what_its_deletions_say(void **state) {
    (void)state;
    enum { COUNT = 300, LETTERS = 3, SIZE = 6 };
    struct deletion_set *set = deletion_set_new();
    struct deletion all[COUNT];
    char keys[COUNT][SIZE + 1];
    srand(1);
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 2 + (size_t)rand() % (SIZE - 2);
        for (size_t j = 0; j < size; j++) {
            keys[i][j] = (char)('a' + rand() % LETTERS);
        }
        keys[i][size] = '\0';
        all[i] = (struct deletion){
            .key = bytes_of_string(keys[i]), .is_exact = i % 2 == 0, .from_us = rand() % 100, .to_us = 0};
        all[i].to_us = all[i].from_us + rand() % 3;
        assert_int_equal(deletion_set_add(set, &all[i]), ERR_OK);
    }
    deletion_set_seal(set);
    assert_int_equal(deletion_set_count(set), COUNT);
    size_t covered_count = 0;
    for (int i = 0; i < 20000; i++) {
        char surt[SIZE + 3];
        size_t size = (size_t)rand() % sizeof surt;
        for (size_t j = 0; j < size; j++) {
            surt[j] = (char)('a' + rand() % LETTERS);
        }
        struct bytes asked = bytes_of(surt, size);
        int64_t time_us = rand() % 110;
        bool is_covered = false;
        for (size_t j = 0; j < COUNT; j++) {
            is_covered = is_covered || deletion_covers(&all[j], asked, BYTES("http://x/"), time_us);
        }
        assert_int_equal(deletion_set_covers(set, asked, BYTES("http://x/"), time_us), is_covered);
        covered_count += is_covered;
    }
    assert_true(covered_count > 100 && covered_count < 19000);
    deletion_set_free(set);
}

/* ---- on volumes ---- */

static size_t listed_count(struct fixture *fixture, const char *text) {
    struct query query;
    struct capture capture;
    size_t count = 0;
    assert_int_equal(query_init(&query, bytes_of_string(text), QUERY_BY_URL, NULL), ERR_OK);
    query_start(&query, fixture->session);
    while (query_next(&query, &capture) == ERR_OK) {
        count++;
    }
    query_done(&query);
    return count;
}

struct run {
    struct buf memory;
    struct deletion parts[DELETION_PARTS_MAX];
    size_t count;
    size_t each_count;
};

static void run_init(struct run *run, const char *text, int64_t from_s, int64_t to_s) {
    *run = (struct run){.each_count = 0};
    buf_init(&run->memory, 1 << 16);
    assert_int_equal(deletion_read_url(bytes_of_string(text), &run->memory, run->parts, &run->count, NULL),
                     ERR_OK);
    for (size_t i = 0; i < run->count; i++) {
        run->parts[i].from_us = from_s * FIXTURE_SECOND_US;
        run->parts[i].to_us = to_s * FIXTURE_SECOND_US;
    }
}

static void count_each(void *context, const struct capture *capture) {
    struct run *run = context;
    (void)capture;
    run->each_count++;
}

static uint64_t purge(struct fixture *fixture, const char *text, int64_t from_s, int64_t to_s, bool is_dry) {
    struct run run;
    struct err_detail detail = {0};
    uint64_t count;
    run_init(&run, text, from_s, to_s);
    struct purge_config config = {.deletions = run.parts,
                                  .deletions_count = run.count,
                                  .is_dry = is_dry,
                                  .each = count_each,
                                  .context = &run};
    enum err err = purge_run(fixture->session, &config, &count, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    assert_int_equal(run.each_count, count);
    buf_done(&run.memory);
    return count;
}

static void ban(struct fixture *fixture, const char *text, int64_t from_s, int64_t to_s) {
    struct run run;
    struct deletion_set *set = deletion_set_new();
    run_init(&run, text, from_s, to_s);
    for (size_t i = 0; i < run.count; i++) {
        assert_int_equal(deletion_set_add(set, &run.parts[i]), ERR_OK);
    }
    buf_done(&run.memory);
    instance_set_deletions(fixture->instance, set);
}

static void fill(struct fixture *fixture) {
    char url[64];
    char body[64];
    for (int i = 0; i < 12; i++) {
        for (int second = 1; second <= 3; second++) {
            snprintf(url, sizeof url, "http://example.org/%s/%d", i % 2 == 0 ? "even" : "odd", i);
            snprintf(body, sizeof body, "page %d", i / 2 * second);
            fixture_capture(fixture, url, second, body, INSTANCE_VOLUME_ANY);
        }
    }
}

static void captures_of_all_volumes_are_purged(void **state) {
    struct fixture *fixture = *state;
    fill(fixture);
    assert_int_equal(listed_count(fixture, "*"), 36);
    assert_int_equal(purge(fixture, "http://example.org/even/*", 1, 2, true), 12);
    assert_int_equal(listed_count(fixture, "*"), 36);
    assert_int_equal(purge(fixture, "http://example.org/even/*", 1, 2, false), 12);
    assert_int_equal(purge(fixture, "http://example.org/even/*", 1, 2, false), 0);
    assert_int_equal(listed_count(fixture, "*"), 24);
    assert_int_equal(listed_count(fixture, "http://example.org/even/*"), 6);
    fixture_reopen(fixture);
    assert_int_equal(listed_count(fixture, "*"), 24);
    assert_int_equal(purge(fixture, "*", 0, 10, false), 24);
    assert_int_equal(listed_count(fixture, "*"), 0);
}

static void more_than_a_batch_goes_in_batches(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 3 * BACKEND_PURGE_MAX + 17 };
    char body[32];
    for (int i = 0; i < COUNT; i++) { /* of one URL, three at a time */
        snprintf(body, sizeof body, "page %d", i);
        fixture_capture(fixture, "http://example.org/", 1 + i / 3, body, 3);
    }
    assert_int_equal(purge(fixture, "http://example.org/", 0, 1000, false), COUNT);
    assert_int_equal(listed_count(fixture, "*"), 0);
}

static void a_post_goes_with_its_url(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://example.org/form"),
        .time_us = FIXTURE_SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
        .body = BYTES("thanks"),
        .request = BYTES("POST /form HTTP/1.1\r\nHost: example.org\r\n"
                         "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1"),
    };
    fixture_put_document(fixture, &document, STORE_REGULAR, 3);
    fixture_capture(fixture, "http://example.org/form", 1, "the form", 3);
    fixture_capture(fixture, "http://example.org/form?other", 1, "another", 3);
    assert_int_equal(listed_count(fixture, "*"), 3);
    assert_int_equal(purge(fixture, "http://example.org/form", 0, 10, false), 2);
    assert_int_equal(listed_count(fixture, "*"), 1);
    ban(fixture, "http://example.org/form", 0, 10);
    struct stored stored;
    assert_int_equal(instance_put(fixture->session, &document, STORE_REGULAR, 3, &stored, NULL), ERR_DELETED);
}

static void what_is_deleted_is_neither_listed_nor_stored(void **state) {
    struct fixture *fixture = *state;
    struct stored stored;
    struct err_detail detail = {0};
    fill(fixture);
    ban(fixture, "http://example.org/odd/*", 1, 2);
    assert_int_equal(listed_count(fixture, "*"), 24); /* before anything is purged */
    struct document document = {.url = BYTES("http://example.org/odd/1"),
                                .time_us = 2 * FIXTURE_SECOND_US,
                                .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                .body = BYTES("again")};
    assert_int_equal(
        instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, &detail),
        ERR_DELETED);
    assert_string_equal(err_detail_text(&detail, ERR_DELETED), "it has been deleted from the ring");
    document.time_us = 2 * FIXTURE_SECOND_US + 1; /* archived again later */
    assert_int_equal(
        instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, &detail),
        ERR_OK);
    assert_int_equal(listed_count(fixture, "http://example.org/odd/1"), 2);
    assert_int_equal(purge(fixture, "http://example.org/odd/*", 1, 2, false), 12);
    instance_set_deletions(fixture->instance, deletion_set_new()); /* withdrawn */
    assert_int_equal(listed_count(fixture, "*"), 25);
}

static bool always(void *context) {
    (void)context;
    return true;
}

static void a_purge_can_be_stopped_and_begun_again(void **state) {
    struct fixture *fixture = *state;
    struct run run;
    uint64_t count;
    fill(fixture);
    run_init(&run, "*", 0, 10);
    struct purge_config config = {
        .deletions = run.parts, .deletions_count = run.count, .is_stopping = always};
    assert_int_equal(purge_run(fixture->session, &config, &count, NULL), ERR_CANCELLED);
    assert_int_equal(count, 0);
    config.is_stopping = NULL;
    assert_int_equal(purge_run(fixture->session, &config, &count, NULL), ERR_OK);
    assert_int_equal(count, 36);
    buf_done(&run.memory);
}

#define ON_VOLUMES(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_means_itself_and_all_methods_of_it),
        cmocka_unit_test(a_star_means_all_that_begin_so),
        cmocka_unit_test(a_set_says_what_its_deletions_say),
        ON_VOLUMES(captures_of_all_volumes_are_purged),
        ON_VOLUMES(more_than_a_batch_goes_in_batches),
        ON_VOLUMES(a_post_goes_with_its_url),
        ON_VOLUMES(what_is_deleted_is_neither_listed_nor_stored),
        ON_VOLUMES(a_purge_can_be_stopped_and_begun_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

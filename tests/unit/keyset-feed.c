/* The set of keys follows the volumes: what was stored is in it, what was removed is not, whatever happened
 * between. */
#include "store/keyset/keyset_feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "instance-fixture.h"
#include "store/volume/compact.h"

enum { RECORDS_MAX = 50, RUNS_MAX = 1000 };

/* ---- helpers ---- */

struct follower {
    struct keyset *keyset;
    struct keyset_feed *feed;
};

static struct follower follower_open(struct fixture *fixture, enum position_mapping mapping) {
    struct follower follower;
    char path[SCRATCH_PATH_SIZE];
    struct err_detail detail = {0};
    scratch_path(fixture->root, "keys", path);
    if (keyset_open(path, mapping, &follower.keyset, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    follower.feed = keyset_feed_new(follower.keyset, fixture->instance);
    assert_non_null(follower.feed);
    return follower;
}

static void follower_close(struct follower *follower) {
    keyset_feed_free(follower->feed);
    keyset_close(follower->keyset);
}

static void follower_run(struct follower *follower) {
    bool has_more = true;
    for (unsigned i = 0; has_more; i++) {
        struct err_detail detail = {0};
        assert_true(i < RUNS_MAX);
        if (keyset_feed_run(follower->feed, RECORDS_MAX, &has_more, &detail) != ERR_OK) {
            fail_msg("%s", detail.text);
        }
    }
}

/* The name that RocksDB gives a database when it makes it: another one if the set was emptied. */
static const char *identity_of(struct fixture *fixture, char out[64]) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(fixture->root, "keys/IDENTITY", path), "r");
    assert_non_null(file);
    out[fread(out, 1, 63, file)] = '\0';
    fclose(file);
    assert_true(strlen(out) > 30);
    return out;
}

/* What the walk over all captures of the instance gives, as one sum. */
static struct ringkey_sum expected_sum(struct fixture *fixture, struct keyset *keyset) {
    struct ringkey_sum all = {0};
    struct merge *merge;
    struct capture capture;
    struct sha256 sha256;
    struct ringkey before = {0};
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    assert_int_equal(merge_open(fixture->session, bytes_of(NULL, 0), bytes_of(NULL, 0), false, &merge, NULL),
                     ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        struct ringkey key = keyset_key(keyset, &capture);
        if (instance_check(fixture->session, &capture) == ERR_OK && ringkey_compare(&key, &before) != 0) {
            struct ringkey_sum sum = ringkey_sum_of(&sha256, &key);
            ringkey_sum_add(&all, &sum);
            before = key;
        }
    }
    merge_close(merge);
    sha256_done(&sha256);
    return all;
}

static void expect_equal(struct fixture *fixture, struct keyset *keyset, uint64_t count) {
    struct ringkey_range all = {.has_upper = false};
    struct ringkey_sum sum;
    struct ringkey_sum expected = expected_sum(fixture, keyset);
    assert_int_equal(keyset_sum(keyset, &all, &sum), ERR_OK);
    assert_int_equal(sum.count, count);
    assert_true(ringkey_sum_equal(&sum, &expected));
}

static struct stored store(struct fixture *fixture, unsigned n) {
    char url[64];
    char body[64];
    snprintf(url, sizeof url, "http://example.org/%u", n);
    snprintf(body, sizeof body, "the body of %u", n);
    return fixture_capture(fixture, url, n, body, INSTANCE_VOLUME_ANY);
}

/* ---- tests ---- */

static void every_capture_is_in_it(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    char before[64];
    char after[64];
    identity_of(fixture, before);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 0);
    for (unsigned n = 0; n < 200; n++) {
        store(fixture, n);
    }
    fixture_put(fixture, "a document without a URL", INSTANCE_VOLUME_ANY);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 200);
    fixture_capture(fixture, "http://example.org/again", 1, "the body of 1", INSTANCE_VOLUME_ANY);
    fixture_capture(fixture, "http://example.org/again", 2, "the body of 1", INSTANCE_VOLUME_ANY);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 202); /* revisits are captures */
    assert_string_equal(identity_of(fixture, after), before);
    follower_close(&follower);
}

static void count_key(void *context, const struct ringkey *key) {
    (void)key;
    ++*(unsigned *)context;
}

static void tells_of_keys_that_are_new(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    unsigned count = 0;
    store(fixture, 1);
    follower_run(&follower);
    keyset_feed_listen(follower.feed, count_key, &count);
    follower_run(&follower);
    assert_int_equal(count, 0);
    store(fixture, 2);
    store(fixture, 3);
    fixture_put(fixture, "a document without a URL", INSTANCE_VOLUME_ANY);
    follower_run(&follower);
    assert_int_equal(count, 2);
    follower_run(&follower);
    assert_int_equal(count, 2);
    follower_close(&follower);
}

static void leads_back_to_the_capture(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_HOST);
    struct stored stored = store(fixture, 5);
    follower_run(&follower);
    struct ringkey_range all = {.has_upper = false};
    struct ringkey key;
    struct keyset_entry entry;
    size_t count;
    assert_int_equal(keyset_list(follower.keyset, &all, &key, 1, &count), ERR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(keyset_find(follower.keyset, &key, &entry), ERR_OK);
    assert_bytes_equal(entry.surt, BYTES("org,example)/5"));
    assert_int_equal(entry.volume, stored.key.volume);
    assert_int_equal(ringkey_time_us(&key), 5 * FIXTURE_SECOND_US);
    assert_memory_equal(ringkey_digest(&key), stored.key.digest, RINGKEY_DIGEST_SIZE);
    follower_close(&follower);
}

static void what_is_removed_leaves_it(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    struct stored gone[10];
    for (unsigned n = 0; n < 20; n++) {
        struct stored stored = store(fixture, n);
        gone[n % 10] = stored;
    }
    /* A second reference: removing one leaves both captures. */
    struct stored twice =
        fixture_capture(fixture, "http://example.org/twin", 7, "the body of 10", INSTANCE_VOLUME_ANY);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 21);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(instance_remove(fixture->session, &gone[i].key, NULL), ERR_OK);
    }
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 12); /* 0 to 9, 10 and its twin */
    assert_int_equal(instance_remove(fixture->session, &twice.key, NULL), ERR_OK);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 10);
    store(fixture, 12); /* the same capture once more */
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 11);
    for (size_t i = 0; i < instance_volumes_count(fixture->instance); i++) {
        struct instance_volume volume;
        struct compact_report report;
        instance_volume(fixture->instance, i, &volume);
        assert_int_equal(compact_volume(volume.volume, 0, &report, NULL), ERR_OK);
    }
    store(fixture, 30);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 12);
    follower_close(&follower);
}

/* Removed before the set was ever fed, or fed again from the start. */
static void what_was_removed_before_never_comes(void **state) {
    struct fixture *fixture = *state;
    struct stored first = store(fixture, 1);
    store(fixture, 2);
    assert_int_equal(instance_remove(fixture->session, &first.key, NULL), ERR_OK);
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 1);
    assert_int_equal(keyset_clear(follower.keyset, NULL), ERR_OK);
    follower_close(&follower);
    follower = follower_open(fixture, POSITION_BY_URL);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 1);
    follower_close(&follower);
}

/* The child is gone between two commits; what it stored and entered is there, and the rest follows. */
/* Captures that are removed one by one, of a document that stays for the others. */
static void a_removed_capture_leaves_it_alone(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    char before[64];
    char after[64];
    identity_of(fixture, before);
    struct stored stored = fixture_capture(fixture, "http://example.org/a", 1, "page", 3);
    fixture_capture(fixture, "http://example.org/b", 1, "page", 3);
    fixture_capture(fixture, "http://example.org/c", 1, "page", 3);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 3);
    struct capture capture = {.volume = 3, .time_us = FIXTURE_SECOND_US};
    memcpy(capture.digest, stored.key.digest, sizeof capture.digest);
    capture.surt = BYTES("org,example)/a"); /* whose record has the document, and so stays */
    capture.url = BYTES("http://example.org/a");
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_OK);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 2);
    capture.surt = BYTES("org,example)/b");
    capture.url = BYTES("http://example.org/b");
    assert_int_equal(instance_remove_capture(fixture->session, &capture, NULL), ERR_OK);
    struct instance_volume volume;
    struct compact_report report;
    instance_volume(fixture->instance, 1, &volume);
    assert_int_equal(compact_volume(volume.volume, 0, &report, NULL), ERR_OK);
    assert_int_equal(report.segments_count, 1);
    follower_run(&follower); /* is given the records once more */
    expect_equal(fixture, follower.keyset, 1);
    fixture_capture(fixture, "http://example.org/b", 1, "page", 3);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 2); /* it may come again */
    assert_string_equal(identity_of(fixture, after), before);
    assert_int_equal(keyset_clear(follower.keyset, NULL), ERR_OK);
    assert_string_not_equal(identity_of(fixture, after), before);
    follower_close(&follower);
    follower = follower_open(fixture, POSITION_BY_URL);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 2);
    follower_close(&follower);
}

static void goes_on_after_a_crash(void **state) {
    struct fixture *fixture = *state;
    fixture_close(fixture);
    pid_t child = fork();
    if (child == 0) {
        fixture_open(fixture);
        struct follower follower = follower_open(fixture, POSITION_BY_URL);
        for (unsigned n = 0; n < 120; n++) {
            store(fixture, n);
        }
        bool has_more;
        enum err err = keyset_feed_run(follower.feed, RECORDS_MAX, &has_more, NULL);
        _exit(err == ERR_OK && has_more ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    fixture_open(fixture);
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    assert_in_range(keyset_count(follower.keyset), 1, 119);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 120);
    follower_close(&follower);
}

static void an_index_that_was_made_again_changes_nothing(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    char before[64];
    char after[64];
    identity_of(fixture, before);
    for (unsigned n = 0; n < 30; n++) {
        store(fixture, n);
    }
    follower_run(&follower);
    follower_close(&follower);
    fixture->config.volume.is_rebuilding = true;
    fixture_reopen(fixture);
    fixture->config.volume.is_rebuilding = false;
    follower = follower_open(fixture, POSITION_BY_URL);
    store(fixture, 30);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 31);
    assert_string_equal(identity_of(fixture, after), before);
    follower_close(&follower);
}

/* Positions behind the end of the archive, or of a volume that is not there. */
static void another_archive_is_read_from_its_start(void **state) {
    struct fixture *fixture = *state;
    for (unsigned n = 0; n < 30; n++) {
        store(fixture, n);
    }
    static const uint16_t volumes[] = {3, 9};
    for (size_t i = 0; i < 2; i++) {
        struct follower follower = follower_open(fixture, POSITION_BY_URL);
        char before[64];
        char after[64];
        identity_of(fixture, before);
        struct index_position far = {.segment = 1000, .offset = 5};
        struct capture stale = {.surt = BYTES("org,stale)/")};
        keyset_set_position(follower.keyset, volumes[i], &far);
        assert_int_equal(keyset_put(follower.keyset, &stale, NULL), ERR_OK);
        assert_int_equal(keyset_commit(follower.keyset, NULL), ERR_OK);
        follower_run(&follower);
        expect_equal(fixture, follower.keyset, 30);
        assert_string_not_equal(identity_of(fixture, after), before);
        follower_close(&follower);
    }
}

/* Entered at once by who stored it, then seen by the feed. */
static void twice_is_once(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    struct stored stored = store(fixture, 5);
    struct capture capture = {.surt = BYTES("org,example)/5"), .time_us = 5 * FIXTURE_SECOND_US};
    memcpy(capture.digest, stored.key.digest, sizeof capture.digest);
    capture.volume = stored.key.volume;
    assert_int_equal(keyset_put(follower.keyset, &capture, NULL), ERR_OK);
    assert_int_equal(keyset_commit(follower.keyset, NULL), ERR_OK);
    expect_equal(fixture, follower.keyset, 1);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 1);
    follower_close(&follower);
}

/* ---- while others write ---- */

struct writer {
    struct fixture *fixture;
    struct instance_session *session;
    atomic_bool is_done;
};

static void *write_captures(void *context) {
    struct writer *writer = context;
    struct fixture mine = *writer->fixture;
    mine.session = writer->session;
    for (unsigned n = 0; n < 150; n++) {
        struct stored stored = store(&mine, n);
        if (n % 3 == 0) {
            assert_int_equal(instance_remove(mine.session, &stored.key, NULL), ERR_OK);
        }
    }
    atomic_store(&writer->is_done, true);
    return NULL;
}

static void follows_while_others_write(void **state) {
    struct fixture *fixture = *state;
    struct follower follower = follower_open(fixture, POSITION_BY_URL);
    struct writer writer = {.fixture = fixture, .session = instance_session_new(fixture->instance)};
    pthread_t thread;
    assert_non_null(writer.session);
    assert_int_equal(pthread_create(&thread, NULL, write_captures, &writer), 0);
    while (!atomic_load(&writer.is_done)) {
        bool has_more;
        assert_int_equal(keyset_feed_run(follower.feed, 20, &has_more, NULL), ERR_OK);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    instance_session_free(writer.session);
    follower_run(&follower);
    expect_equal(fixture, follower.keyset, 100);
    follower_close(&follower);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_capture_is_in_it, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(tells_of_keys_that_are_new, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(leads_back_to_the_capture, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(what_is_removed_leaves_it, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(what_was_removed_before_never_comes, fixture_set_up,
                                        fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_removed_capture_leaves_it_alone, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(goes_on_after_a_crash, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(an_index_that_was_made_again_changes_nothing, fixture_set_up,
                                        fixture_tear_down),
        cmocka_unit_test_setup_teardown(another_archive_is_read_from_its_start, fixture_set_up,
                                        fixture_tear_down),
        cmocka_unit_test_setup_teardown(twice_is_once, fixture_set_up, fixture_tear_down),
        cmocka_unit_test_setup_teardown(follows_while_others_write, fixture_set_up, fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

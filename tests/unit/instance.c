/* instance: several volumes as one: every document once, wherever it is. */
#include "store/instance/instance.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "instance-fixture.h"
#include "store/volume/verify.h"

static void works_with_a_directory_alone(void **state) {
    struct fixture fixture = {0};
    char path[SCRATCH_PATH_SIZE];
    fixture.config.directory = scratch_path(*state, "data", path);
    fixture.config.must_exist = true;
    assert_int_equal(instance_open(&fixture.config, &fixture.instance, NULL), ERR_NOT_FOUND);
    fixture.config.must_exist = false;
    fixture_open(&fixture);
    assert_int_equal(instance_volumes_count(fixture.instance), 1);
    struct stored stored = fixture_put(&fixture, "alone", INSTANCE_VOLUME_ANY);
    assert_int_equal(stored.key.volume, 0);
    assert_false(stored.is_duplicate);
    assert_true(fixture_put(&fixture, "alone", 0).is_duplicate);
    fixture.config.must_exist = true;
    fixture_reopen(&fixture);
    fixture_expect(&fixture, &stored.key, "alone");
    assert_int_equal(fixture_count_blocks(&fixture), 1);
    struct instance_volume volume;
    instance_volume(fixture.instance, 0, &volume);
    char expected[SCRATCH_PATH_SIZE];
    assert_string_equal(volume.place, scratch_path(path, "volumes/0", expected));
    assert_non_null(volume.volume);
    assert_false(volume.is_remote);
    fixture_close(&fixture);
}

static void uses_the_connector_of_a_directory(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = fixture_put(fixture, "by connector", 7);
    fixture->config = (struct instance_config){.directory = fixture->root, .must_exist = true};
    fixture_reopen(fixture);
    assert_int_equal(instance_volumes_count(fixture->instance), FIXTURE_VOLUMES_COUNT);
    fixture_expect(fixture, &stored.key, "by connector");
}

static void places_documents_by_their_digest(void **state) {
    struct fixture *fixture = *state;
    uint64_t counts[8] = {0};
    for (unsigned i = 0; i < 60; i++) {
        char body[32];
        snprintf(body, sizeof body, "document %u", i);
        struct stored stored = fixture_put(fixture, body, INSTANCE_VOLUME_ANY);
        assert_int_equal(stored.key.volume, fixture_place(body, fixture_numbers, FIXTURE_VOLUMES_COUNT));
        counts[stored.key.volume]++;
        fixture_expect(fixture, &stored.key, body);
    }
    assert_true(counts[0] > 5 && counts[3] > 5 && counts[7] > 5);
    assert_int_equal(fixture_count_blocks(fixture), 60);
}

static void stores_a_document_once_over_all_volumes(void **state) {
    struct fixture *fixture = *state;
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        char body[32];
        snprintf(body, sizeof body, "on volume %u", fixture_numbers[i]);
        struct stored first = fixture_put(fixture, body, fixture_numbers[i]);
        assert_false(first.is_duplicate);
        assert_int_equal(first.key.volume, fixture_numbers[i]);
        for (size_t j = 0; j < FIXTURE_VOLUMES_COUNT; j++) { /* wherever it is wanted the second time */
            struct stored again = fixture_put(fixture, body, fixture_numbers[j]);
            assert_true(again.is_duplicate);
            assert_memory_equal(&again.key, &first.key, sizeof first.key);
        }
        struct block block;
        assert_int_equal(instance_find_block(fixture->session, &first.key, &block, NULL), ERR_OK);
        assert_int_equal(block.references, 4);
    }
    assert_int_equal(fixture_count_blocks(fixture), 3);
    fixture_reopen(fixture);
    assert_true(fixture_put(fixture, "on volume 3", 0).is_duplicate);
}

static void forgets_what_all_have_removed(void **state) {
    struct fixture *fixture = *state;
    struct stored first = fixture_put(fixture, "twice", 3);
    fixture_put(fixture, "twice", INSTANCE_VOLUME_ANY);
    assert_int_equal(instance_remove(fixture->session, &first.key, NULL), ERR_OK);
    fixture_expect(fixture, &first.key, "twice");
    assert_int_equal(instance_remove(fixture->session, &first.key, NULL), ERR_OK);
    struct bytes found;
    assert_int_equal(instance_get(fixture->session, &first.key, &found, NULL), ERR_NOT_FOUND);
    assert_int_equal(instance_remove(fixture->session, &first.key, NULL), ERR_NOT_FOUND);
    assert_false(fixture_put(fixture, "twice", 0).is_duplicate);
}

static void takes_a_sum_for_the_body(void **state) {
    struct fixture *fixture = *state;
    struct stored first = fixture_put(fixture, "known", 7);
    struct document_sum sum = fixture_sum("known");
    struct document document = {.time_us = 1, .sum = &sum, .is_body_left_out = true};
    struct stored again = fixture_put_document(fixture, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY);
    assert_true(again.is_duplicate);
    assert_memory_equal(&again.key, &first.key, sizeof first.key);
    sum.digest[0] ^= 1;
    struct stored none;
    assert_int_equal(
        instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &none, NULL),
        ERR_NOT_FOUND);
}

static void keeps_its_modes(void **state) {
    struct fixture *fixture = *state;
    struct document document = {.body = BYTES("mode"), .time_us = 1};
    struct stored first = fixture_put_document(fixture, &document, STORE_COMPARE, 3);
    struct stored compared = fixture_put_document(fixture, &document, STORE_COMPARE, 0);
    struct stored forced = fixture_put_document(fixture, &document, STORE_FORCE_NEW, 3);
    struct stored elsewhere = fixture_put_document(fixture, &document, STORE_FORCE_NEW, 7);
    assert_false(first.is_duplicate);
    assert_true(compared.is_duplicate);
    assert_memory_equal(&compared.key, &first.key, sizeof first.key);
    assert_false(forced.is_duplicate);
    assert_int_equal(forced.key.number, 1);
    assert_int_equal(forced.key.volume, 3);
    assert_false(elsewhere.is_duplicate);
    assert_int_equal(elsewhere.key.volume, 7);
    assert_int_equal(fixture_count_blocks(fixture), 3);
}

/* Two texts of one size whose digests begin with the same byte, and are not the same. */
static void find_collision(char first[32], char second[32]) {
    int seen[256];
    memset(seen, -1, sizeof seen);
    for (int i = 100; i < 1000; i++) {
        char body[32];
        snprintf(body, sizeof body, "collision %d", i);
        uint8_t byte = fixture_sum(body).digest[0];
        if (seen[byte] >= 0) {
            snprintf(first, 32, "collision %d", seen[byte]);
            snprintf(second, 32, "collision %d", i);
            return;
        }
        seen[byte] = i;
    }
    fail_msg("900 documents without a collision of 8 bits");
}

static void compares_bytes_where_digests_collide(void **state) {
    struct fixture *fixture = *state;
    char bodies[2][32];
    fixture->config.volume.digest_bits = 8;
    fixture_reopen(fixture);
    find_collision(bodies[0], bodies[1]);
    struct document documents[2] = {{.body = bytes_of_string(bodies[0]), .time_us = 1},
                                    {.body = bytes_of_string(bodies[1]), .time_us = 1}};
    /* Regular mode is fooled, as it says; compare mode keeps both. */
    struct stored first = fixture_put_document(fixture, &documents[0], STORE_COMPARE, 3);
    assert_true(fixture_put_document(fixture, &documents[1], STORE_REGULAR, 0).is_duplicate);
    struct stored second = fixture_put_document(fixture, &documents[1], STORE_COMPARE, 0);
    assert_false(second.is_duplicate);
    assert_int_equal(second.key.volume, 3); /* the only one with the signature looked itself */
    assert_int_equal(second.key.number, 1);
    fixture_expect(fixture, &first.key, bodies[0]);
    fixture_expect(fixture, &second.key, bodies[1]);
    /* Now two volumes have the signature, and the one with the same bytes must be found. */
    struct stored copy = fixture_put_document(fixture, &documents[0], STORE_FORCE_NEW, 0);
    assert_int_equal(copy.key.volume, 0);
    struct stored again = fixture_put_document(fixture, &documents[1], STORE_COMPARE, 0);
    assert_true(again.is_duplicate);
    assert_memory_equal(&again.key, &second.key, sizeof second.key);
    again = fixture_put_document(fixture, &documents[0], STORE_COMPARE, 3);
    assert_true(again.is_duplicate);
    assert_int_equal(again.key.volume, 0); /* the lowest that has it */
}

static void places_nothing_on_volumes_that_take_nothing(void **state) {
    struct fixture *fixture = *state;
    struct stored old = fixture_put(fixture, "old", 3);
    fixture_connect(fixture, "[volume-3]\nwritable = no\n");
    fixture_reopen(fixture);
    static const uint16_t writable[] = {0, 7};
    for (unsigned i = 0; i < 20; i++) {
        char body[32];
        snprintf(body, sizeof body, "new %u", i);
        assert_int_equal(fixture_put(fixture, body, INSTANCE_VOLUME_ANY).key.volume,
                         fixture_place(body, writable, 2));
    }
    struct document document = {.body = BYTES("another"), .time_us = 1};
    struct stored stored;
    struct err_detail detail = {0};
    assert_int_equal(instance_put(fixture->session, &document, STORE_REGULAR, 3, &stored, &detail),
                     ERR_PERMISSION);
    assert_string_equal(detail.text, "volume 3 takes no new documents");
    assert_int_equal(instance_put(fixture->session, &document, STORE_REGULAR, 4, &stored, &detail),
                     ERR_NOT_FOUND);
    assert_string_equal(detail.text, "there is no volume 4");
    /* What it has, it has: a duplicate goes there, and can be removed. */
    assert_true(fixture_put(fixture, "old", INSTANCE_VOLUME_ANY).is_duplicate);
    fixture_expect(fixture, &old.key, "old");
    assert_int_equal(instance_remove(fixture->session, &old.key, NULL), ERR_OK);
}

/* ---- captures ---- */

struct expected_capture {
    const char *surt;
    int64_t seconds;
    uint16_t volume;
};

static void expect_walk(struct fixture *fixture, struct bytes from, struct bytes to,
                        const struct expected_capture *expected, size_t count, bool in_reverse) {
    struct merge *merge;
    struct capture capture;
    assert_int_equal(merge_open(fixture->session, from, to, in_reverse, &merge, NULL), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        const struct expected_capture *wanted = &expected[in_reverse ? count - 1 - i : i];
        assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
        assert_bytes_equal(capture.surt, bytes_of_string(wanted->surt));
        assert_int_equal(capture.time_us, wanted->seconds * FIXTURE_SECOND_US);
        assert_int_equal(capture.volume, wanted->volume);
    }
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_NOT_FOUND);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_NOT_FOUND);
    assert_false(merge_is_partial(merge));
    merge_close(merge);
}

static void walks_captures_of_all_volumes_in_one_order(void **state) {
    struct fixture *fixture = *state;
    static const struct expected_capture all[] = {
        {"org,example)/a", 10, 7}, {"org,example)/a", 20, 0}, {"org,example)/a", 20, 3},
        {"org,example)/a", 20, 7}, {"org,example)/a", 30, 3}, {"org,example)/b", 5, 0},
        {"org,example)/b", 6, 0},  {"org,example)/c", 1, 7},
    };
    enum { COUNT = sizeof all / sizeof *all };
    for (size_t i = COUNT; i-- > 0;) { /* stored in another order */
        char body[32];
        char url[64];
        snprintf(body, sizeof body, "capture %zu", i);
        snprintf(url, sizeof url, "http://example.org/%s", strchr(all[i].surt, '/') + 1);
        struct stored stored = fixture_capture(fixture, url, all[i].seconds, body, all[i].volume);
        assert_int_equal(stored.key.volume, all[i].volume);
    }
    expect_walk(fixture, BYTES(""), BYTES(""), all, COUNT, false);
    expect_walk(fixture, BYTES(""), BYTES(""), all, COUNT, true);
    struct buf from;
    struct buf to;
    buf_init(&from, 256);
    buf_init(&to, 256);
    index_put_capture_prefix(&from, BYTES("org,example)/a"), 20 * FIXTURE_SECOND_US);
    index_put_capture_prefix(&to, BYTES("org,example)/a"), INT64_MAX);
    expect_walk(fixture, buf_bytes(&from), buf_bytes(&to), all + 1, 4, false);
    expect_walk(fixture, buf_bytes(&from), buf_bytes(&to), all + 1, 4, true);
    expect_walk(fixture, BYTES("com,"), BYTES("com,\xff"), all, 0, false);
    buf_done(&from);
    buf_done(&to);
}

/* The only capture of a URL. */
static struct capture find_capture(struct fixture *fixture, const char *surt, struct merge **ret_merge) {
    struct buf from;
    struct buf to;
    struct capture capture = {0};
    buf_init(&from, 256);
    buf_init(&to, 256);
    index_put_capture_prefix(&from, bytes_of_string(surt), INT64_MIN);
    index_put_capture_prefix(&to, bytes_of_string(surt), INT64_MAX);
    assert_int_equal(merge_open(fixture->session, buf_bytes(&from), buf_bytes(&to), false, ret_merge, NULL),
                     ERR_OK);
    assert_int_equal(merge_next(*ret_merge, &capture, NULL), ERR_OK);
    buf_done(&from);
    buf_done(&to);
    return capture;
}

static void reads_records_and_requests_where_the_capture_is(void **state) {
    struct fixture *fixture = *state;
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        char url[64];
        char surt[64];
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        snprintf(surt, sizeof surt, "org,example)/%zu", i);
        struct document document = {
            .url = bytes_of_string(url),
            .time_us = FIXTURE_SECOND_US,
            .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
            .body = bytes_of_string(url), /* of each its own */
            .request = i == 1 ? BYTES("") : BYTES("GET / HTTP/1.1\r\n\r\n"),
        };
        fixture_put_document(fixture, &document, STORE_REGULAR, fixture_numbers[i]);
        struct merge *merge;
        struct capture capture = find_capture(fixture, surt, &merge);
        struct bytes record;
        struct bytes request;
        assert_int_equal(capture.volume, fixture_numbers[i]);
        assert_int_equal(
            instance_get_record(fixture->session, capture.volume, &capture.location, &record, NULL), ERR_OK);
        assert_true(bytes_find(record, bytes_of_string(url)) < record.size);
        assert_int_equal(
            instance_get_request(fixture->session, capture.volume, &capture.location, &request, NULL),
            ERR_OK);
        assert_bytes_equal(request, document.request);
        merge_close(merge);
    }
}

/* ---- a revisit whose document is on another volume ---- */

/* Move the segment of the place from one disk to the other, as somebody would who makes room. */
static void move_segment(const struct fixture *fixture, size_t from, const char *from_name, size_t to,
                         const char *to_name) {
    char from_path[2 * SCRATCH_PATH_SIZE];
    char to_path[2 * SCRATCH_PATH_SIZE];
    snprintf(from_path, sizeof from_path, "%s/%s", fixture->disks[from], from_name);
    snprintf(to_path, sizeof to_path, "%s/%s", fixture->disks[to], to_name);
    assert_int_equal(rename(from_path, to_path), 0);
}

static void finds_the_document_of_a_revisit_on_another_volume(void **state) {
    struct fixture *fixture = *state;
    fixture->config.volume.segment_size_max = 1; /* a new segment soon */
    fixture_reopen(fixture);
    struct stored first = fixture_capture(fixture, "http://example.org/first", 1, "the same", 3);
    uint32_t segment = first.location.segment;
    for (unsigned i = 0; segment == first.location.segment; i++) {
        char body[32];
        snprintf(body, sizeof body, "between %u", i);
        segment = fixture_put(fixture, body, 3).location.segment;
    }
    struct stored revisit = fixture_capture(fixture, "http://example.org/second", 2, "the same", 3);
    assert_true(revisit.is_duplicate);
    fixture_close(fixture);
    move_segment(fixture, 1, "00000001.warc.zst", 2, "00000099.warc.zst");
    fixture->config.volume.is_rebuilding = true;
    fixture_open(fixture);

    struct merge *merge;
    struct capture capture = find_capture(fixture, "org,example)/second", &merge);
    struct key key;
    struct block block;
    assert_int_equal(capture.volume, 3);
    assert_int_equal(instance_find_block(fixture->session, &revisit.key, &block, NULL), ERR_NOT_FOUND);
    assert_int_equal(instance_locate(fixture->session, &capture, &key, &block, NULL), ERR_OK);
    assert_int_equal(key.volume, 7);
    fixture_expect(fixture, &key, "the same");
    merge_close(merge);

    assert_int_equal(instance_find_digest(fixture->session, key.digest, 0, &key, &block, NULL), ERR_OK);
    assert_int_equal(key.volume, 7);
    assert_true(fixture_put(fixture, "the same", 3).is_duplicate);
}

static void does_not_find_a_removed_document_elsewhere(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = fixture_capture(fixture, "http://example.org/gone", 1, "copied", 3);
    struct document copy = {.body = BYTES("copied"), .time_us = 1};
    fixture_put_document(fixture, &copy, STORE_FORCE_NEW, 7);
    assert_int_equal(instance_remove(fixture->session, &stored.key, NULL), ERR_OK);
    struct merge *merge;
    struct capture capture = find_capture(fixture, "org,example)/gone", &merge);
    struct key key;
    struct block block;
    assert_int_equal(instance_locate(fixture->session, &capture, &key, &block, NULL), ERR_NOT_FOUND);
    merge_close(merge);
}

/* ---- without waiting, and many at once ---- */

static void count_done(void *context, enum err err, const struct stored *stored) {
    atomic_uint *counts = context; /* done, failed */
    bool is_good = err == ERR_OK && stored->document_size > 0;
    atomic_fetch_add(&counts[is_good ? 0 : 1], 1);
}

enum { THREADS_COUNT = 4, BODIES_COUNT = 50 };

struct submitter {
    struct fixture *fixture;
    unsigned number;
    atomic_uint *counts;
};

/* All threads store the same documents, each in an order of its own. */
static void *submit_all(void *context) {
    struct submitter *submitter = context;
    struct instance_session *session = instance_session_new(submitter->fixture->instance);
    for (unsigned i = 0; i < BODIES_COUNT; i++) {
        char body[32];
        snprintf(body, sizeof body, "submitted %u", (i * 7 + submitter->number * 13) % BODIES_COUNT);
        struct document document = {.body = bytes_of_string(body), .time_us = 1};
        enum err err = instance_submit(session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, count_done,
                                       submitter->counts, NULL);
        memset(body, 'x', sizeof body); /* it is not needed any more */
        if (err != ERR_OK) {
            atomic_fetch_add(&submitter->counts[1], 1);
        }
    }
    instance_session_free(session);
    return NULL;
}

static void stores_once_what_many_threads_submit(void **state) {
    struct fixture *fixture = *state;
    atomic_uint counts[2] = {0, 0};
    pthread_t threads[THREADS_COUNT];
    struct submitter submitters[THREADS_COUNT];
    for (unsigned i = 0; i < THREADS_COUNT; i++) {
        submitters[i] = (struct submitter){.fixture = fixture, .number = i, .counts = counts};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_all, &submitters[i]), 0);
    }
    for (unsigned i = 0; i < THREADS_COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    instance_drain(fixture->instance);
    assert_int_equal(counts[0], THREADS_COUNT * BODIES_COUNT);
    assert_int_equal(counts[1], 0);
    assert_int_equal(fixture_count_blocks(fixture), BODIES_COUNT);
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        struct instance_volume volume;
        struct verify_report report;
        struct verify_observer observer = {0};
        instance_volume(fixture->instance, i, &volume);
        assert_int_equal(verify_volume(volume.volume, &observer, &report, NULL), ERR_OK);
        assert_int_equal(report.damaged_count + report.lost_count, 0);
    }
}

static void *remove_again_and_again(void *context) {
    struct fixture *fixture = context;
    struct instance_session *session = instance_session_new(fixture->instance);
    struct document_sum sum = fixture_sum("comes and goes");
    struct key key = {.volume = 7};
    memcpy(key.digest, sum.digest, sizeof key.digest);
    unsigned removed = 0;
    for (unsigned tries = 0; removed < 20 && tries < 100000; tries++) {
        key.number = (uint16_t)(tries % 64);
        removed += instance_remove(session, &key, NULL) == ERR_OK ? 1 : 0;
    }
    instance_session_free(session);
    return NULL;
}

static void stores_what_is_removed_meanwhile(void **state) {
    struct fixture *fixture = *state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, remove_again_and_again, fixture), 0);
    for (unsigned i = 0; i < 60; i++) {
        fixture_put(fixture, "comes and goes", 7); /* fails the test where it is not stored */
    }
    pthread_join(thread, NULL);
}

static void reports_what_each_volume_holds(void **state) {
    struct fixture *fixture = *state;
    fixture_capture(fixture, "http://example.org/", 1, "page", 3);
    fixture_put(fixture, "plain", 3);
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        struct volume_stat stat;
        assert_int_equal(instance_stat(fixture->session, i, &stat, NULL), ERR_OK);
        assert_int_equal(stat.segments_count, 1);
        assert_int_equal(stat.blocks_count, i == 1 ? 2 : 0);
        assert_int_equal(stat.captures_count, i == 1 ? 1 : 0);
    }
    assert_int_equal(instance_find_volume(fixture->instance, 7), 2);
    assert_int_equal(instance_find_volume(fixture->instance, 1), FIXTURE_VOLUMES_COUNT);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(works_with_a_directory_alone, scratch_make, scratch_remove),
        WITH_FIXTURE(uses_the_connector_of_a_directory),
        WITH_FIXTURE(places_documents_by_their_digest),
        WITH_FIXTURE(stores_a_document_once_over_all_volumes),
        WITH_FIXTURE(forgets_what_all_have_removed),
        WITH_FIXTURE(takes_a_sum_for_the_body),
        WITH_FIXTURE(keeps_its_modes),
        WITH_FIXTURE(compares_bytes_where_digests_collide),
        WITH_FIXTURE(places_nothing_on_volumes_that_take_nothing),
        WITH_FIXTURE(walks_captures_of_all_volumes_in_one_order),
        WITH_FIXTURE(reads_records_and_requests_where_the_capture_is),
        WITH_FIXTURE(finds_the_document_of_a_revisit_on_another_volume),
        WITH_FIXTURE(does_not_find_a_removed_document_elsewhere),
        WITH_FIXTURE(stores_once_what_many_threads_submit),
        WITH_FIXTURE(stores_what_is_removed_meanwhile),
        WITH_FIXTURE(reports_what_each_volume_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
